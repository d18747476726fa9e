//! The keys of a machine: made on it, and never anywhere else. One signs, secrets are sealed to the other.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hpke::kem::X25519HkdfSha256;
use hpke::{Deserializable as _, Kem, Serializable as _};
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use zeroize::Zeroizing;

use crate::key::PublicKey;
use crate::name::BadFleetName;
use crate::refusal::ReleaseRefusal;
use crate::signature::Signature;
use crate::signed::{Lines, Signable, Signed, StatementLines};

/// The random numbers that the keys of a machine are made of. They cannot be printed.
pub struct MachineSecret(Zeroizing<[u8; Self::LENGTH]>);

impl MachineSecret {
    /// How many bytes they are: half of them for each key.
    pub const LENGTH: usize = 64;

    /// Draws new ones; `None` if the system has no random numbers.
    pub fn random() -> Option<Self> {
        let mut secret = Zeroizing::new([0; Self::LENGTH]);
        SystemRandom::new().fill(&mut *secret).ok()?;
        Some(Self(secret))
    }

    /// Those that were drawn before.
    pub fn of(bytes: &[u8; Self::LENGTH]) -> Self {
        Self(Zeroizing::new(*bytes))
    }

    /// The numbers themselves, to be kept where only the machine reads them.
    pub fn expose(&self) -> &[u8; Self::LENGTH] {
        &self.0
    }
}

/// The keys of a machine, with their private parts.
///
/// # Examples
/// ```
/// use stead_release::{PublicIdentity, MachineKeys, MachineSecret};
///
/// let keys = MachineKeys::of(&MachineSecret::random().ok_or("no random numbers")?);
/// let text = keys.identity().to_text();
/// let identity = PublicIdentity::read(text.as_bytes())?;
/// assert_eq!(identity.key, *keys.key());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct MachineKeys {
    pair: Ed25519KeyPair,
    key: PublicKey,
    private: <X25519HkdfSha256 as Kem>::PrivateKey,
    sealing: SealingKey,
}

impl MachineKeys {
    /// The keys that are made of a secret: the same for the same one.
    ///
    /// # Panics
    /// Never: 32 bytes are a seed of Ed25519, whichever they are.
    pub fn of(secret: &MachineSecret) -> Self {
        let (signing, sealing) = secret.expose().split_at(MachineSecret::LENGTH / 2);
        #[expect(clippy::expect_used, reason = "the length is that of a seed, and nothing else can be wrong with it")]
        let pair = Ed25519KeyPair::from_seed_unchecked(signing).expect("a seed has 32 bytes");
        let (private, public) = X25519HkdfSha256::derive_keypair(sealing);
        let key = PublicKey::ed25519(pair.public_key().as_ref());
        Self { pair, key, private, sealing: SealingKey(public.to_bytes().into()) }
    }

    /// The public key of the one that signs.
    pub fn key(&self) -> &PublicKey {
        &self.key
    }

    /// The public key of the one that secrets are sealed to.
    pub fn sealing(&self) -> &SealingKey {
        &self.sealing
    }

    pub(crate) fn private(&self) -> &<X25519HkdfSha256 as Kem>::PrivateKey {
        &self.private
    }

    /// A statement that this machine signs.
    pub fn sign<S: Signable>(&self, statement: S) -> Signed<S> {
        let signed = Signed::new(statement);
        let sign = |message: &[u8]| self.pair.sign(message).as_ref().to_vec();
        let signature = Signature::by(self.key.clone(), S::PURPOSE, signed.bytes(), sign);
        signed.with(signature)
    }

    /// Both public keys, signed by the first: whoever has that has made the other as well.
    pub fn identity(&self) -> Signed<PublicIdentity> {
        self.sign(PublicIdentity { key: self.key.clone(), sealing: self.sealing.clone() })
    }
}

/// A public key of X25519 that secrets are sealed to. Its text is base64.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SealingKey([u8; 32]);

impl SealingKey {
    /// The key of these bytes, as HPKE takes it.
    pub(crate) fn public(&self) -> Option<<X25519HkdfSha256 as Kem>::PublicKey> {
        <X25519HkdfSha256 as Kem>::PublicKey::from_bytes(&self.0).ok()
    }
}

impl fmt::Display for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&STANDARD.encode(self.0))
    }
}

impl FromStr for SealingKey {
    type Err = BadFleetName;

    fn from_str(text: &str) -> Result<Self, BadFleetName> {
        let bytes = STANDARD.decode(text).ok().and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or(BadFleetName::SealingKey)
    }
}

/// The public keys of a machine, as it states them for the roster.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PublicIdentity {
    /// The key that it signs with, and that signs this.
    pub key: PublicKey,
    /// The key that secrets are sealed to.
    pub sealing: SealingKey,
}

impl PublicIdentity {
    /// Reads the public keys that a machine printed. Both must be of the same machine: the first has signed the second.
    pub fn read(bytes: &[u8]) -> Result<Self, ReleaseRefusal> {
        let signed = Signed::<Self>::parse(bytes)?;
        signed.is_by(&signed.statement().key)?;
        Ok(signed.statement().clone())
    }
}

impl Signable for PublicIdentity {
    const PURPOSE: &'static str = "stead-identity";
    const WORD: &'static str = "machine identity";

    fn write(&self, lines: &mut Lines) {
        lines.put("key", &self.key);
        lines.put("sealing", &self.sealing);
    }

    fn read(lines: &mut StatementLines<'_>) -> Option<Self> {
        let key = lines.parsed("key", |line| PublicKey::parse(line).ok())?;
        Some(Self { key, sealing: lines.value("sealing")? })
    }
}

impl<S: Signable> Signed<S> {
    /// Checks that one machine has signed it, and nobody else.
    pub(crate) fn is_by(&self, key: &PublicKey) -> Result<(), ReleaseRefusal> {
        let [signature] = self.signatures() else {
            let have = self.signatures().len();
            let unsigned = ReleaseRefusal::Unsigned { have, wanted: 1 };
            return Err(if have == 0 { unsigned } else { ReleaseRefusal::OtherMachine(key.fingerprint()) });
        };
        if signature.namespace() != S::PURPOSE {
            return Err(ReleaseRefusal::Purpose(signature.key().fingerprint()));
        }
        if signature.key() != key {
            return Err(ReleaseRefusal::OtherMachine(signature.key().fingerprint()));
        }
        if signature.is_of(self.bytes()) { Ok(()) } else { Err(ReleaseRefusal::Altered(key.fingerprint())) }
    }
}
