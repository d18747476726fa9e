//! Which locales a system has: directories below /usr/lib/locale, and the archive of the C library beside them.

use std::collections::BTreeSet;
use std::fs::File;

use stead_core::call::Failure;
use stead_host::provider::Context;
use stead_system::fs::{How, read_at, read_exact_at};

use crate::edit::entries_in;

const FOLDER: &str = "/usr/lib/locale";

/// The locales of a system, by their [`normalized`] names.
pub(super) fn generated(cx: &Context) -> Result<BTreeSet<String>, Failure> {
    let mut names = BTreeSet::new();
    let open = |path: String, flags| cx.system_root.open(&path, flags);
    for name in entries_in(cx, FOLDER)?.into_keys().filter_map(|name| name.into_string().ok()) {
        if open(format!("{FOLDER}/{name}/LC_CTYPE"), How::Look)?.is_some() {
            names.insert(normalized(&name));
        }
    }
    let archive = open(format!("{FOLDER}/locale-archive"), How::Read)?;
    if let Some(file) = archive {
        names.extend(archived(&File::from(file)).unwrap_or_default().iter().map(|name| normalized(name)));
    }
    Ok(names)
}

/// Returns whether the C library has a locale without anybody generating it.
pub(super) fn is_built_in(name: &str) -> bool {
    matches!(normalized(name).as_str(), "C" | "POSIX" | "C.utf8")
}

/// A name as the C library compares it: of the codeset only letters and digits count, small or not.
pub(super) fn normalized(name: &str) -> String {
    let (rest, modifier) = name.split_once('@').map_or((name, None), |(rest, modifier)| (rest, Some(modifier)));
    let Some((language, codeset)) = rest.split_once('.') else { return name.to_owned() };
    let plain: String =
        codeset.chars().filter(char::is_ascii_alphanumeric).map(|each| each.to_ascii_lowercase()).collect();
    let prefix = if plain.bytes().all(|byte| byte.is_ascii_digit()) { "iso" } else { "" };
    let modifier = modifier.map(|modifier| format!("@{modifier}")).unwrap_or_default();
    format!("{language}.{prefix}{plain}{modifier}")
}

/// The beginning of an archive: a magic number, then numbers of 32 bits in the order of this machine, among them where the table
/// of names is and how many places it has.
const MAGIC: u32 = 0xde02_0109;
const HEADER: usize = 14 * 4;
const TABLE: usize = 2;
const PLACES: usize = 4;

/// A place of the table: a hash, where the name is, and where the locale is, or 0 for a free place.
const PLACE: usize = 3 * 4;

/// More places than an archive of all locales has.
const MAX_PLACES: u32 = 1 << 20;

/// The longest name that is read.
const MAX_NAME: usize = 256;

/// The names in an archive; `None` of what is not one. Only its table is read: the locales themselves are large.
fn archived(file: &File) -> Option<Vec<String>> {
    let header = bytes_at::<HEADER>(file, 0)?;
    let (table, places) = (number(&header, TABLE)?, number(&header, PLACES)?);
    if number(&header, 0)? != MAGIC || places > MAX_PLACES {
        return None;
    }
    let mut names = Vec::new();
    let mut all = vec![0; usize::try_from(places).ok()? * PLACE];
    read_exact_at(file, &mut all, table.into()).ok()?;
    for place in all.chunks_exact(PLACE).filter(|place| number(place, 2) != Some(0)) {
        names.extend(name_at(file, number(place, 1)?));
    }
    Some(names)
}

fn name_at(file: &File, at: u32) -> Option<String> {
    let mut bytes = [0; MAX_NAME];
    let length = read_at(file, &mut bytes, at.into()).ok()?;
    let bytes = bytes.get(..length)?;
    let end = bytes.iter().position(|byte| *byte == 0)?;
    String::from_utf8(bytes.get(..end)?.to_vec()).ok()
}

fn bytes_at<const N: usize>(file: &File, at: u64) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    read_exact_at(file, &mut bytes, at).ok()?;
    Some(bytes)
}

fn number(bytes: &[u8], index: usize) -> Option<u32> {
    let bytes = bytes.get(index * 4..index * 4 + 4)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

/// The locales that the system can generate, with their codesets, as /usr/share/i18n/SUPPORTED lists them; empty where
/// there is no such list.
pub(super) fn supported(cx: &Context) -> Result<Vec<(String, String)>, Failure> {
    const LIST: &str = "/usr/share/i18n/SUPPORTED";
    const MAX_SIZE: u64 = 1 << 20;
    let list = cx.system_root.read(LIST, MAX_SIZE)?;
    let text = list.map(|content| String::from_utf8_lossy(&content.bytes).into_owned()).unwrap_or_default();
    let pair = |line: &str| line.split_once(' ').map(|(name, codeset)| (name.to_owned(), codeset.trim().to_owned()));
    Ok(text.lines().filter_map(pair).collect())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn names_are_compared_as_the_c_library_does() {
        let pairs = [
            ("de_DE.UTF-8", "de_DE.utf8"),
            ("de_DE.utf8", "de_DE.utf8"),
            ("de_DE@euro", "de_DE@euro"),
            ("de_DE.ISO-8859-15@euro", "de_DE.iso885915@euro"),
            ("x.8859-1", "x.iso88591"),
        ];
        for (name, expected) in pairs {
            assert_eq!(normalized(name), expected);
        }
    }

    #[test]
    fn the_names_in_an_archive_are_read() {
        let mut archive = Vec::new();
        let table = u32::try_from(HEADER).unwrap();
        let strings = table + 3 * 12;
        let mut header = [0_u32; 14];
        (header[0], header[TABLE], header[PLACES]) = (MAGIC, table, 3);
        let places = [[1, strings, 500], [0, 0, 0], [2, strings + 11, 600]];
        archive.extend(header.iter().chain(places.iter().flatten()).flat_map(|number| number.to_ne_bytes()));
        archive.extend(b"de_DE.utf8\0fr_FR\0");
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&archive).unwrap();
        assert_eq!(archived(&file).unwrap(), ["de_DE.utf8", "fr_FR"]);
        file.set_len(60).unwrap();
        assert!(archived(&file).is_none());
    }
}
