//! Secrets of a release, sealed to one machine: HPKE (RFC 9180) with X25519, HKDF-SHA256 and ChaCha20-Poly1305.
//!
//! The release commits to its secrets by a digest, which its signers sign. An envelope needs no signature: whoever seals other
//! secrets to the key of a machine, which is public, has these refused.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hpke::aead::ChaCha20Poly1305;
use hpke::kdf::HkdfSha256;
use hpke::kem::X25519HkdfSha256;
use hpke::{Deserializable as _, Kem, OpModeR, OpModeS, Serializable as _, single_shot_open, single_shot_seal};
use stead_hosts::MachineName;
use zeroize::Zeroizing;

use crate::machine::{MachineKeys, SealingKey};
use crate::name::{Digest, Name};
use crate::refusal::ReleaseRefusal;
use crate::secrets::{ReleaseSecrets, SealedParameters};
use crate::signed::{BadForm, Lines, Signable, Signed, StatementLines};
use crate::statements::{Numbered, Release};

/// The longest file of an envelope, in bytes.
pub const LONGEST_ENVELOPE: usize = 1 << 20;
/// The first thing that a key for sealing is derived from.
const INFO: &[u8] = b"stead-envelope 1";

/// The release and the machine that an envelope is for. All of it is authenticated with what is sealed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EnvelopeAddress {
    /// The digest of the root statement.
    pub fleet: Digest,
    /// The channel of the release.
    pub channel: Name,
    /// The release.
    pub release: Numbered,
    /// The name of the machine in the roster.
    pub machine: MachineName,
    /// Its key in the roster.
    pub key: SealingKey,
}

impl EnvelopeAddress {
    /// The address of the secrets of a release for a machine with this key.
    pub fn new(release: &Signed<Release>, machine: MachineName, key: SealingKey) -> Self {
        let Release { link, channel, .. } = release.statement();
        let numbered = Numbered { number: link.number, digest: release.digest() };
        Self { fleet: link.fleet.clone(), channel: channel.clone(), release: numbered, machine, key }
    }

    fn write(&self, lines: &mut Lines) {
        lines.put("fleet", &self.fleet);
        lines.put("channel", &self.channel);
        lines.put("release", &self.release);
        lines.put("machine", self.machine.as_str());
        lines.put("key", &self.key);
    }

    fn read(lines: &mut StatementLines<'_>) -> Option<Self> {
        Some(Self {
            fleet: lines.value("fleet")?,
            channel: lines.value("channel")?,
            release: lines.value("release")?,
            machine: lines.parsed("machine", |line| MachineName::parse(line).ok())?,
            key: lines.value("key")?,
        })
    }

    /// What is authenticated with the secrets.
    fn bytes(&self) -> Vec<u8> {
        let mut lines = Lines::default();
        self.write(&mut lines);
        lines.into_text().into_bytes()
    }

    /// Checks that an envelope with this address is for the release and the machine of another one.
    pub fn is(&self, wanted: &Self) -> Result<(), ReleaseRefusal> {
        if self.fleet != wanted.fleet {
            return Err(ReleaseRefusal::Fleet(self.fleet.clone()));
        }
        if self.channel != wanted.channel {
            return Err(ReleaseRefusal::Channel(self.channel.clone()));
        }
        if self.release != wanted.release {
            return Err(ReleaseRefusal::OtherRelease(self.release.number));
        }
        let is_machine = (&self.machine, &self.key) == (&wanted.machine, &wanted.key);
        let of = || ReleaseRefusal::OtherMachine(format!("'{}' with the key {}", self.machine, self.key));
        if is_machine { Ok(()) } else { Err(of()) }
    }
}

/// The secrets of a release, sealed to one machine. Nobody signs it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Envelope {
    /// What it is for.
    pub address: EnvelopeAddress,
    /// The public part of the key that was made for it, in the encoding of HPKE.
    encapsulated: Vec<u8>,
    sealed: Vec<u8>,
}

impl Envelope {
    /// Seals secrets; `None` if the key of the machine is not one.
    pub fn seal(address: EnvelopeAddress, secrets: &ReleaseSecrets) -> Option<Self> {
        let (key, bytes) = (address.key.public()?, secrets.expose().as_bytes());
        let sealed = single_shot_seal::<ChaCha20Poly1305, HkdfSha256, X25519HkdfSha256>(
            &OpModeS::Base,
            &key,
            INFO,
            bytes,
            &address.bytes(),
        );
        let (encapsulated, sealed) = sealed.ok()?;
        Some(Self { address, encapsulated: encapsulated.to_bytes().to_vec(), sealed })
    }

    /// Reads an envelope.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadForm> {
        if bytes.len() > LONGEST_ENVELOPE {
            return Err(BadForm::TooLarge);
        }
        let signed = Signed::<Self>::parse(bytes)?;
        if signed.signatures().is_empty() { Ok(signed.statement().clone()) } else { Err(BadForm::Signature(1)) }
    }

    /// The text of the file.
    pub fn to_text(&self) -> String {
        Signed::new(self.clone()).to_text()
    }

    /// The secrets in it, for the machine of these keys: refused unless it is addressed so, and has what the release commits to.
    pub fn open(
        &self,
        keys: &MachineKeys,
        wanted: &EnvelopeAddress,
        sealed: &SealedParameters,
    ) -> Result<ReleaseSecrets, ReleaseRefusal> {
        self.address.is(wanted)?;
        if self.address.key != *keys.sealing() {
            return Err(ReleaseRefusal::OtherMachine(format!("with the key {}", self.address.key)));
        }
        let encapsulated = <X25519HkdfSha256 as Kem>::EncappedKey::from_bytes(&self.encapsulated);
        let opened = single_shot_open::<ChaCha20Poly1305, HkdfSha256, X25519HkdfSha256>(
            &OpModeR::Base,
            keys.private(),
            &encapsulated.map_err(|_| ReleaseRefusal::Unopened)?,
            INFO,
            &self.sealed,
            &self.address.bytes(),
        );
        let opened = Zeroizing::new(opened.map_err(|_| ReleaseRefusal::Unopened)?);
        let secrets = ReleaseSecrets::read(&opened).ok().filter(|secrets| secrets.are(sealed));
        secrets.ok_or(ReleaseRefusal::OtherSecrets)
    }
}

impl Signable for Envelope {
    const PURPOSE: &'static str = "stead-envelope";
    const WORD: &'static str = "sealed envelope";

    fn write(&self, lines: &mut Lines) {
        self.address.write(lines);
        lines.put("encapsulated", STANDARD.encode(&self.encapsulated));
        lines.put("sealed", STANDARD.encode(&self.sealed));
    }

    fn read(lines: &mut StatementLines<'_>) -> Option<Self> {
        let address = EnvelopeAddress::read(lines)?;
        let bytes = |text: &str| STANDARD.decode(text).ok();
        let encapsulated = lines.parsed("encapsulated", bytes).filter(|bytes| bytes.len() == 32)?;
        Some(Self { address, encapsulated, sealed: lines.parsed("sealed", bytes)? })
    }
}
