//! Signatures in the form of `ssh-keygen`, made here: by keys that tests know, for any purpose and bytes.

#![allow(dead_code, reason = "each test program uses a part")]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _};
use sha2::{Digest as _, Sha256, Sha512};
use stead_release::PublicKey;

fn string(bytes: &[u8]) -> Vec<u8> {
    [&u32::try_from(bytes.len()).unwrap().to_be_bytes(), bytes].concat()
}

/// A positive integer, as SSH writes it.
fn integer(bytes: &[u8]) -> Vec<u8> {
    let digits = &bytes[bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len() - 1)..];
    let sign: &[u8] = if digits[0] >= 0x80 { &[0] } else { &[] };
    string(&[sign, digits].concat())
}

/// The bytes that are signed of a message, for a purpose.
pub(crate) fn to_be_signed(namespace: &str, message: &[u8]) -> Vec<u8> {
    let parts = [namespace.as_bytes(), b"", b"sha512", &Sha512::digest(message)].map(string);
    [b"SSHSIG".to_vec(), parts.concat()].concat()
}

fn armored(blob: &[u8], namespace: &str, signature: &[u8]) -> String {
    let parts = [blob, namespace.as_bytes(), b"", b"sha512", signature].map(string);
    let bytes = [b"SSHSIG".to_vec(), 1u32.to_be_bytes().to_vec(), parts.concat()].concat();
    let digits = STANDARD.encode(bytes);
    let lines: Vec<&str> = digits.as_bytes().chunks(70).map(|line| std::str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN SSH SIGNATURE-----\n{}\n-----END SSH SIGNATURE-----\n", lines.join("\n"))
}

fn line(algorithm: &str, blob: &[u8]) -> PublicKey {
    PublicKey::parse(&format!("{algorithm} {}", STANDARD.encode(blob))).unwrap()
}

/// An Ed25519 key, which is the same for the same number.
pub(crate) struct Key {
    pair: Ed25519KeyPair,
    blob: Vec<u8>,
    pub(crate) public: PublicKey,
}

impl Key {
    pub(crate) fn new(number: u8) -> Self {
        let pair = Ed25519KeyPair::from_seed_unchecked(&[number; 32]).unwrap();
        let blob = [string(b"ssh-ed25519"), string(pair.public_key().as_ref())].concat();
        Self { public: line("ssh-ed25519", &blob), pair, blob }
    }

    pub(crate) fn sign(&self, namespace: &str, message: &[u8]) -> String {
        let signature = self.pair.sign(&to_be_signed(namespace, message));
        armored(&self.blob, namespace, &[string(b"ssh-ed25519"), string(signature.as_ref())].concat())
    }
}

/// An authenticator with an Ed25519 key, as FIDO and OpenSSH describe it: it signs its flags and a counter as well.
pub(crate) struct Authenticator {
    pair: Ed25519KeyPair,
    blob: Vec<u8>,
    pub(crate) public: PublicKey,
}

const APPLICATION: &[u8] = b"ssh:";
const HARDWARE: &[u8] = b"sk-ssh-ed25519@openssh.com";

impl Authenticator {
    pub(crate) fn new(number: u8) -> Self {
        let pair = Ed25519KeyPair::from_seed_unchecked(&[number; 32]).unwrap();
        let blob = [HARDWARE, pair.public_key().as_ref(), APPLICATION].map(string).concat();
        Self { public: line("sk-ssh-ed25519@openssh.com", &blob), pair, blob }
    }

    pub(crate) fn sign(&self, namespace: &str, message: &[u8], flags: u8) -> String {
        let behind = [vec![flags], 7u32.to_be_bytes().to_vec()].concat();
        let message = to_be_signed(namespace, message);
        let signed = [&*Sha256::digest(APPLICATION), &behind, &*Sha256::digest(message)].concat();
        let signature = self.pair.sign(&signed);
        let parts = [string(HARDWARE), string(signature.as_ref()), behind].concat();
        armored(&self.blob, namespace, &parts)
    }
}

/// An ECDSA key in an authenticator.
pub(crate) struct AuthenticatorP256 {
    pair: EcdsaKeyPair,
    blob: Vec<u8>,
    pub(crate) public: PublicKey,
}

const HARDWARE_P256: &[u8] = b"sk-ecdsa-sha2-nistp256@openssh.com";

impl AuthenticatorP256 {
    pub(crate) fn new() -> Self {
        let random = SystemRandom::new();
        let file = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, file.as_ref(), &random).unwrap();
        let blob = [HARDWARE_P256, b"nistp256", pair.public_key().as_ref(), APPLICATION].map(string).concat();
        Self { public: line("sk-ecdsa-sha2-nistp256@openssh.com", &blob), pair, blob }
    }

    pub(crate) fn sign(&self, namespace: &str, message: &[u8], flags: u8) -> String {
        let behind = [vec![flags], 7u32.to_be_bytes().to_vec()].concat();
        let message = to_be_signed(namespace, message);
        let signed = [&*Sha256::digest(APPLICATION), &behind, &*Sha256::digest(message)].concat();
        let signature = self.pair.sign(&SystemRandom::new(), &signed).unwrap();
        let (r, s) = signature.as_ref().split_at(32);
        let parts = [string(HARDWARE_P256), string(&[integer(r), integer(s)].concat()), behind].concat();
        armored(&self.blob, namespace, &parts)
    }
}
