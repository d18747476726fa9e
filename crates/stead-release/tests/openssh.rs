//! Keys and signatures beside `ssh-keygen`: what it signs is accepted here, and what is accepted here it verifies.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

mod support;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use stead_release::{Digest, Fleet, PublicKey, Root, Signable as _, Signed, Signers};
use support::{Authenticator, AuthenticatorP256, Key};

fn ssh_keygen(arguments: &[&str], input: &[u8]) -> Option<(bool, String)> {
    let child = Command::new("ssh-keygen")
        .args(arguments)
        .env_remove("SSH_AUTH_SOCK")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else {
        stead_testkit::skip("what_openssh_signs_is_accepted_and_the_other_way_round", "there is no ssh-keygen");
        return None;
    };
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    Some((output.status.success(), String::from_utf8(output.stdout).unwrap()))
}

/// The fleet of one signer: a statement that anybody can sign.
fn statement(key: &PublicKey) -> Signed<Root> {
    let signers = Signers::new(BTreeSet::from([key.clone()]), 1).unwrap();
    Signed::new(Root { name: "fleet".parse().unwrap(), signers })
}

/// Returns whether `ssh-keygen -Y verify` agrees.
fn verifies(folder: &Path, key: &PublicKey, namespace: &str, bytes: &[u8], signature: &str) -> bool {
    let (allowed, file) = (folder.join("allowed"), folder.join("signature"));
    std::fs::write(&allowed, format!("ann {key}\n")).unwrap();
    std::fs::write(&file, signature).unwrap();
    let [allowed, file] = [&allowed, &file].map(|path| path.to_str().unwrap());
    ssh_keygen(&["-Y", "verify", "-n", namespace, "-f", allowed, "-I", "ann", "-s", file], bytes).unwrap().0
}

#[test]
fn what_openssh_signs_is_accepted_and_the_other_way_round() {
    let folder = tempfile::tempdir().unwrap();
    for algorithm in ["ed25519", "ecdsa"] {
        let file = folder.path().join(algorithm);
        let path = file.to_str().unwrap();
        let Some(made) = ssh_keygen(&["-q", "-t", algorithm, "-N", "", "-C", "ann lee", "-f", path], b"") else {
            return;
        };
        assert!(made.0);
        let public = std::fs::read_to_string(file.with_extension("pub")).unwrap();
        let key = PublicKey::parse(&public).unwrap();
        assert!(public.starts_with(&key.to_string()), "{public}");
        let listed = ssh_keygen(&["-l", "-f", path], b"").unwrap().1;
        assert!(listed.contains(&key.fingerprint()), "{listed}");
        // Of 20 signatures of ECDSA, some have numbers that are shorter or begin with a set bit.
        for _ in 0..20 {
            let mut signed = statement(&key);
            let (_, text) = ssh_keygen(&["-Y", "sign", "-n", Root::PURPOSE, "-f", path], signed.bytes()).unwrap();
            let mut other = Signed::new(Root { name: "other".parse().unwrap(), ..signed.statement().clone() });
            assert!(other.add(&text).is_none(), "the signature is of other bytes");
            signed.add(&text).unwrap();
            assert!(signed.add(&text).is_none(), "each key signs once");
            assert_eq!(signed.to_text(), format!("{}{text}", std::str::from_utf8(signed.bytes()).unwrap()));
            assert_eq!(Signed::<Root>::parse(signed.to_text().as_bytes()), Ok(signed));
        }
        let (_, text) = ssh_keygen(&["-Y", "sign", "-n", "file", "-f", path], statement(&key).bytes()).unwrap();
        assert!(statement(&key).add(&text).is_none(), "it was signed for another purpose");
    }
}

#[test]
fn a_hardware_key_counts_if_somebody_touched_it() {
    if ssh_keygen(&["-?"], b"").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (Authenticator::new(1), AuthenticatorP256::new());
    let by_first = |bytes: &[u8], flags| first.sign(Root::PURPOSE, bytes, flags);
    let by_second = |bytes: &[u8], flags| second.sign(Root::PURPOSE, bytes, flags);
    for flags in [1, 5, 0, 4] {
        for (key, text) in [
            (&first.public, by_first(statement(&first.public).bytes(), flags)),
            (&second.public, by_second(statement(&second.public).bytes(), flags)),
        ] {
            let mut signed = statement(key);
            assert!(
                verifies(folder.path(), key, Root::PURPOSE, signed.bytes(), &text),
                "it is as OpenSSH has it: {key}"
            );
            assert_eq!(signed.add(&text).is_some(), flags & 1 == 1, "{key} with {flags}");
        }
    }
}

#[test]
fn no_byte_of_a_signed_file_can_be_another() {
    let key = Key::new(1);
    let mut signed = statement(&key.public);
    signed.add(&key.sign(Root::PURPOSE, signed.bytes())).unwrap();
    let text = signed.to_text();
    for at in 0..text.len() {
        for bit in 0..8 {
            let mut other = text.clone().into_bytes();
            other[at] ^= 1 << bit;
            let Ok(read) = Signed::<Root>::parse(&other) else { continue };
            let holds = read.signatures().iter().all(|signature| signature.is_of(read.bytes()));
            assert!(!holds || read.signatures().is_empty(), "byte {at}, bit {bit}");
        }
    }
    let digest = Digest::of(signed.bytes());
    assert!(Fleet::of_root(signed.bytes(), &digest).is_ok());
    assert!(Fleet::of_root(&[signed.bytes(), b"\n"].concat(), &digest).is_err());
}

#[test]
fn other_algorithms_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rsa");
    let path = file.to_str().unwrap();
    let Some(_) = ssh_keygen(&["-q", "-t", "rsa", "-b", "2048", "-N", "", "-f", path], b"") else { return };
    let public = std::fs::read_to_string(file.with_extension("pub")).unwrap();
    let refused = PublicKey::parse(&public).unwrap_err().to_string();
    assert_eq!(refused, "its algorithm 'ssh-rsa' is not supported");
    for text in [
        "",
        "ssh-ed25519",
        "ssh-ed25519 AAAA",
        "ecdsa-sha2-nistp256 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f",
    ] {
        assert!(PublicKey::parse(text).is_err(), "{text:?}");
    }
}
