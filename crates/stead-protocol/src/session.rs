//! Proofs of machines. The first request is signed by the machine's key; the answer has a key for a session, since a signature costs
//! fifteen times what a MAC does. Controllers derive session keys and keep none.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use stead_core::value::Sensitive;
use stead_release::{MachineRequest, PublicKey, Signed};

/// How long a session key is accepted at least, in milliseconds; at most twice as long.
const HOUR: u64 = 3_600_000;
const WORD: &str = "session ";

/// The key of a session, as the machine keeps it.
pub struct SessionSecret(hmac::Key);

impl SessionSecret {
    /// The key out of the header of an answer.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = STANDARD.decode(text).ok().filter(|bytes| bytes.len() == 32)?;
        Some(Self(hmac::Key::new(hmac::HMAC_SHA256, &bytes)))
    }

    /// The header that proves a request.
    pub fn prove(&self, request: MachineRequest) -> String {
        let tag = hmac::sign(&self.0, Signed::new(request).bytes());
        format!("{WORD}{}", STANDARD.encode(tag))
    }
}

/// How a request is proved.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Proof {
    /// By the key of the machine: the text of the signed request.
    Key(Vec<u8>),
    /// By that of its session.
    Session(Vec<u8>),
}

impl Proof {
    /// Reads the header.
    pub fn parse(header: &str) -> Option<Self> {
        match header.strip_prefix(WORD) {
            Some(tag) => STANDARD.decode(tag).ok().map(Self::Session),
            None => STANDARD.decode(header).ok().map(Self::Key),
        }
    }

    /// The header of a request that a machine signed by its key.
    pub fn of(signed: &Signed<MachineRequest>) -> String {
        STANDARD.encode(signed.to_text())
    }

    /// Returns whether the key of a machine signed just this request.
    pub fn is_by(text: &[u8], request: &MachineRequest, key: &PublicKey) -> bool {
        let Ok(signed) = Signed::<MachineRequest>::parse(text) else { return false };
        let [signature] = signed.signatures() else { return false };
        let is_for_this = signature.namespace() == <MachineRequest as stead_release::Signable>::PURPOSE;
        signed.statement() == request && signature.key() == key && is_for_this && signature.is_of(signed.bytes())
    }
}

/// What controllers derive session keys from.
pub struct Sessions(hmac::Key);

impl Sessions {
    /// Those of a secret that all controllers of a fleet share.
    pub fn new(secret: &Sensitive<String>) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret.expose().as_bytes()))
    }

    /// The key of a machine's session at a time, as the header of an answer.
    pub fn header(&self, key: &PublicKey, now: u64) -> String {
        STANDARD.encode(self.derived(key, now / HOUR))
    }

    /// Returns whether a request is proved by the session of a machine, of this hour or one beside it.
    pub fn is_by(&self, tag: &[u8], request: &MachineRequest, key: &PublicKey, now: u64) -> bool {
        let signed = Signed::new(request.clone());
        let hour = now / HOUR;
        let mut hours = [hour, hour.saturating_sub(1), hour + 1].into_iter();
        hours.any(|hour| {
            let key = hmac::Key::new(hmac::HMAC_SHA256, self.derived(key, hour).as_ref());
            hmac::verify(&key, signed.bytes(), tag).is_ok()
        })
    }

    fn derived(&self, key: &PublicKey, hour: u64) -> hmac::Tag {
        hmac::sign(&self.0, format!("stead-session {key} {hour}").as_bytes())
    }
}
