//! Reports as they are stored: packed with a dictionary of what reports have in common.

use std::borrow::Cow;

use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::CParameter;

use super::engine::{Answer, FleetStoreError, failed};

/// A report as it came.
const PLAIN: i64 = 0;
/// A frame of zstd with the dictionary. What was stored with a dictionary needs the same bytes of it for as long as it is kept: another
/// one has other forms beside these.
const SHIPPED: i64 = 1;
/// A frame with the dictionary and the name of the fleet behind it, which each report of the fleet states more than once.
const OF_FLEET: i64 = 2;
const DICTIONARY: &[u8] = include_bytes!("reports-1.dictionary");
/// The level: the next ones take three times the time for two hundredths of the bytes.
const LEVEL: i32 = 4;
/// The beginning of all frames, which rows leave out.
const MAGIC: [u8; 4] = zstd::zstd_safe::MAGICNUMBER.to_le_bytes();
/// The longest report that is packed, and the most that one is unpacked to. None that arrives is longer.
const LONGEST: usize = stead_protocol::LONGEST_BODY;

/// Packs and unpacks reports. Each connection has its own.
pub(super) struct Packing {
    shipped: Frames,
    /// Once the fleet has a root statement, which never changes.
    of_fleet: Option<Frames>,
}

/// Makes frames with one dictionary, and reads them.
struct Frames {
    compressor: Compressor<'static>,
    decompressor: Decompressor<'static>,
}

/// A report as a row has it.
pub(super) struct Packed<'b> {
    /// How it is packed.
    pub(super) form: i64,
    /// The bytes of the row.
    pub(super) body: Cow<'b, [u8]>,
}

impl Packing {
    pub(super) fn new() -> Answer<Self> {
        Ok(Self { shipped: Frames::new(DICTIONARY)?, of_fleet: None })
    }

    /// Returns whether the name of the fleet is known.
    pub(super) fn knows_fleet(&self) -> bool {
        self.of_fleet.is_some()
    }

    /// Takes in the name of the fleet: the digest of its root statement.
    pub(super) fn learn_fleet(&mut self, root: &str) -> Answer<()> {
        self.of_fleet = Some(Frames::new(&[DICTIONARY, root.as_bytes()].concat())?);
        Ok(())
    }

    /// The report as it is stored: as it came, if packing would not make it shorter.
    pub(super) fn pack<'b>(&mut self, report: &'b [u8]) -> Answer<Packed<'b>> {
        if report.len() <= LONGEST {
            let (form, frames) = match &mut self.of_fleet {
                Some(frames) => (OF_FLEET, frames),
                None => (SHIPPED, &mut self.shipped),
            };
            let mut packed = frames.compressor.compress(report).map_err(failed)?;
            packed.drain(..MAGIC.len().min(packed.len()));
            if packed.len() < report.len() {
                return Ok(Packed { form, body: packed.into() });
            }
        }
        Ok(Packed { form: PLAIN, body: report.into() })
    }

    /// The report as it came. A row that says it is longer than any that arrives is not valid, and takes no memory.
    pub(super) fn unpack(&mut self, form: i64, body: Vec<u8>) -> Answer<Vec<u8>> {
        let frames = match form {
            PLAIN => return Ok(body),
            SHIPPED => Some(&mut self.shipped),
            OF_FLEET => self.of_fleet.as_mut(),
            _ => None,
        };
        let frame = [&MAGIC[..], &body].concat();
        let report = frames.and_then(|frames| frames.decompressor.decompress(&frame, LONGEST).ok());
        report.ok_or(FleetStoreError::Row("reports"))
    }
}

impl Frames {
    fn new(dictionary: &[u8]) -> Answer<Self> {
        let mut compressor = Compressor::with_dictionary(LEVEL, dictionary).map_err(failed)?;
        // The form names the dictionary, and its signature shows whether a report is whole.
        compressor.set_parameter(CParameter::DictIdFlag(false)).map_err(failed)?;
        compressor.set_parameter(CParameter::ChecksumFlag(false)).map_err(failed)?;
        Ok(Self { compressor, decompressor: Decompressor::with_dictionary(dictionary).map_err(failed)? })
    }
}

#[cfg(test)]
mod tests {
    use stead_release::Digest;

    use super::*;

    #[test]
    fn what_is_packed_is_unpacked_to_the_same_bytes_and_nothing_gets_longer() {
        let (mut packing, mut other) = (Packing::new().unwrap(), Packing::new().unwrap());
        let mut state = 7_u64;
        let mut noise = |length: usize| -> Vec<u8> {
            let mut byte = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 56) as u8
            };
            (0..length).map(|_| byte()).collect()
        };
        let text = br#"{"number":1,"signed":"stead-report 1\nfleet sha256-"#;
        let mut reports = vec![Vec::new(), b"x".to_vec(), text.to_vec(), text.repeat(9_000), vec![0; LONGEST]];
        reports.extend([vec![0; LONGEST + 1], DICTIONARY.to_vec()]);
        reports.extend([1, 100, 3_000, LONGEST].map(&mut noise));
        for (at, report) in reports.iter().chain(&reports).enumerate() {
            if at == reports.len() {
                packing.learn_fleet("sha256-0").unwrap();
                other.learn_fleet("sha256-0").unwrap();
            }
            let packed = packing.pack(report).unwrap();
            assert!(packed.body.len() <= report.len(), "{} bytes", report.len());
            assert_eq!(packed.form == PLAIN, packed.body == *report, "{} bytes", report.len());
            let (form, body) = (packed.form, packed.body.into_owned());
            assert!(other.unpack(form, body).unwrap() == *report, "{} bytes", report.len());
        }
    }

    #[test]
    fn a_row_that_is_longer_than_any_report_or_is_none_is_not_valid() {
        let mut packing = Packing::new().unwrap();
        let mut refused = |form: i64, body: &[u8]| {
            let unpacked = packing.unpack(form, body.to_vec());
            assert!(matches!(unpacked, Err(FleetStoreError::Row("reports"))), "{form}: {unpacked:?}");
        };
        // With a thousand times the bytes of a report, in a few of a row: said at its beginning or not.
        let mut compressor = Compressor::with_dictionary(LEVEL, DICTIONARY).unwrap();
        for is_said in [true, false] {
            compressor.set_parameter(CParameter::ContentSizeFlag(is_said)).unwrap();
            for length in [LONGEST + 1, 1000 * LONGEST] {
                let bomb = compressor.compress(&vec![0; length]).unwrap();
                assert!(bomb.len() < length / 1000, "{}", bomb.len());
                refused(SHIPPED, &bomb[MAGIC.len()..]);
            }
        }
        let packed = compressor.compress(&b"stead-report".repeat(20)).unwrap();
        for (form, body) in
            [(SHIPPED, &packed[..packed.len() - 1]), (SHIPPED, b""), (SHIPPED, b"{}"), (2, &packed), (-1, b"")]
        {
            refused(form, body);
        }
    }

    #[test]
    fn a_dictionary_that_reports_are_stored_with_stays() {
        let digest = "sha256-be551610163448449002c876ae87933656ca06704232889c388cc27a416765b3";
        assert_eq!(Digest::of(DICTIONARY).as_str(), digest, "it is never changed: a newer one has a form of its own");
    }
}
