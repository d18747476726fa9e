//! Laws of the keys of machines and of what is sealed to them: the machine that an envelope is for opens it, nobody else does, and
//! nothing of it can be changed.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

mod support;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use stead_hosts::MachineName;
use stead_release::{
    ChainLink, Digest, Envelope, EnvelopeAddress, MachineKeys, MachineReport, MachineSecret, Numbered, PublicIdentity,
    ReleaseRefusal, ReleaseSecrets, Roster, RosterMachine, SealedParameters, Signed,
};
use support::Key;

const CANARY: &str = "kiwi-4711-canary";

fn keys(number: u8) -> MachineKeys {
    MachineKeys::of(&MachineSecret::of(&[number; MachineSecret::LENGTH]))
}

fn values() -> Map<String, Value> {
    json!({ "token": CANARY, "certificates": { "web": ["a", "b"] } }).as_object().unwrap().clone()
}

fn address(keys: &MachineKeys) -> EnvelopeAddress {
    EnvelopeAddress {
        fleet: Digest::of(b"root"),
        channel: "web".parse().unwrap(),
        release: Numbered { number: 3, digest: Digest::of(b"release") },
        machine: MachineName::parse("web1").unwrap(),
        key: keys.sealing().clone(),
    }
}

fn code(refused: Result<ReleaseSecrets, ReleaseRefusal>) -> &'static str {
    refused.map(|_| ()).unwrap_err().code().id
}

#[test]
fn the_machine_that_it_is_for_opens_an_envelope() {
    let (keys, secrets) = (keys(1), ReleaseSecrets::new(&values()).unwrap());
    let sealed = SealedParameters::of(&secrets).unwrap();
    let envelope = Envelope::seal(address(&keys), &secrets).unwrap();
    let text = envelope.to_text();
    let opened = Envelope::parse(text.as_bytes()).unwrap().open(&keys, &address(&keys), &sealed).unwrap();
    assert_eq!(opened.expose_parameters(), values());
    assert_eq!(opened.expose().len() % 256, 0, "its length says little");
    assert!(!text.contains(CANARY) && !format!("{opened:?} {envelope:?} {sealed}").contains(CANARY));
    assert_ne!(Envelope::seal(address(&keys), &secrets).unwrap(), envelope, "no two envelopes have one key");
    let again = ReleaseSecrets::new(&values()).unwrap();
    assert!(!again.are(&sealed), "the same values are not known again by their digest");
}

#[test]
fn what_is_addressed_otherwise_is_refused_by_its_code() {
    let (own, other) = (keys(1), keys(2));
    let secrets = ReleaseSecrets::new(&values()).unwrap();
    let sealed = SealedParameters::of(&secrets).unwrap();
    let wanted = address(&own);
    let release = |number, digest| Numbered { number, digest };
    let digest = &wanted.release.digest;
    let changed = [
        ("E1409", EnvelopeAddress { fleet: Digest::of(b"other"), ..wanted.clone() }),
        ("E1410", EnvelopeAddress { channel: "db".parse().unwrap(), ..wanted.clone() }),
        ("E1431", EnvelopeAddress { release: release(2, digest.clone()), ..wanted.clone() }),
        ("E1431", EnvelopeAddress { release: release(3, Digest::of(b"other")), ..wanted.clone() }),
        ("E1432", EnvelopeAddress { machine: MachineName::parse("web2").unwrap(), ..wanted.clone() }),
        ("E1432", EnvelopeAddress { key: other.sealing().clone(), ..wanted.clone() }),
    ];
    for (expected, address) in changed {
        let envelope = Envelope::seal(address, &secrets).unwrap();
        assert_eq!(code(envelope.open(&own, &wanted, &sealed)), expected);
        // A header that is rewritten is authenticated with what is sealed.
        let mut rewritten = envelope;
        rewritten.address = wanted.clone();
        assert_eq!(code(rewritten.open(&own, &wanted, &sealed)), "E1433");
    }
    // The wrong machine has the right address.
    let envelope = Envelope::seal(wanted.clone(), &secrets).unwrap();
    assert_eq!(code(envelope.open(&other, &wanted, &sealed)), "E1432");
}

/// Whoever has the public key of a machine can seal to it.
#[test]
fn other_secrets_than_those_that_were_signed_for_are_refused() {
    let keys = keys(1);
    let sealed = SealedParameters::of(&ReleaseSecrets::new(&values()).unwrap()).unwrap();
    for values in [values(), json!({ "token": "mine" }).as_object().unwrap().clone()] {
        let envelope = Envelope::seal(address(&keys), &ReleaseSecrets::new(&values).unwrap()).unwrap();
        assert_eq!(code(envelope.open(&keys, &address(&keys), &sealed)), "E1434");
    }
    assert!(SealedParameters::of(&ReleaseSecrets::new(&Map::new()).unwrap()).is_none());
}

#[test]
fn whatever_byte_of_an_envelope_is_changed_it_is_refused() {
    let (keys, secrets) = (keys(1), ReleaseSecrets::new(&values()).unwrap());
    let sealed = SealedParameters::of(&secrets).unwrap();
    let text = Envelope::seal(address(&keys), &secrets).unwrap().to_text().into_bytes();
    for place in 0..text.len() {
        let mut changed = text.clone();
        changed[place] ^= 1 << (place % 7);
        let opened = Envelope::parse(&changed).map(|envelope| envelope.open(&keys, &address(&keys), &sealed));
        assert!(!matches!(opened, Ok(Ok(_))), "byte {place}");
        assert!(Envelope::parse(&text[..place]).is_err(), "{place} bytes");
    }
    assert!(Envelope::parse(&vec![b'a'; stead_release::LONGEST_ENVELOPE + 1]).is_err());
    assert!(Envelope::parse(&[&text, &*keys.identity().to_text().into_bytes()].concat()).is_err());
}

#[test]
fn an_identity_is_signed_by_the_machine_that_states_it() {
    let (own, other) = (keys(1), keys(2));
    let text = own.identity().to_text();
    assert_eq!(PublicIdentity::read(text.as_bytes()).unwrap().sealing, *own.sealing());
    let refused = |text: &str| PublicIdentity::read(text.as_bytes()).unwrap_err().code().id;
    let bytes = |text: &str| {
        String::from_utf8(Signed::<PublicIdentity>::parse(text.as_bytes()).unwrap().bytes().to_vec()).unwrap()
    };
    let signature = |text: &str| text.replacen(&bytes(text), "", 1);
    // The key that secrets are sealed to is exchanged on its way.
    let exchanged = text.replace(&own.sealing().to_string(), &other.sealing().to_string());
    assert_eq!(refused(&exchanged), "E1403");
    assert_eq!(refused(&bytes(&text)), "E1404");
    assert_eq!(refused(&(bytes(&text) + &signature(&other.identity().to_text()))), "E1432");
    assert_eq!(refused(&(text.clone() + &signature(&other.identity().to_text()))), "E1432");
    assert_eq!(refused(&(bytes(&text) + &Key::new(1).sign("stead-report", bytes(&text).as_bytes()))), "E1402");
    assert_eq!(refused("stead-root 1\n"), "E1402");
}

fn roster(of: &MachineKeys) -> Roster {
    let digest = Digest::of(b"root");
    let made = Timestamp::UNIX_EPOCH;
    let link = ChainLink { fleet: digest.clone(), number: 1, parent: digest.clone(), signers: digest, made };
    let member = RosterMachine { key: of.key().clone(), sealing: None, labels: BTreeMap::new(), hold: None };
    let machines = BTreeMap::from([(MachineName::parse("web1").unwrap(), member)]);
    Roster { link, acts: None, machines, floors: BTreeMap::new() }
}

fn report() -> MachineReport {
    MachineReport {
        fleet: Digest::of(b"root"),
        machine: MachineName::parse("web1").unwrap(),
        number: 7,
        ended: Timestamp::UNIX_EPOCH,
        release: Some(("web".parse().unwrap(), Numbered { number: 3, digest: Digest::of(b"release") })),
        report: json!({ "result": "converged", "took": 0.1, "instances": [{ "name": "a\nb" }] }),
    }
}

#[test]
fn a_report_is_of_the_machine_that_signed_it() {
    let (own, other) = (keys(1), keys(2));
    let roster = roster(&own);
    let read = |text: &str| MachineReport::read(text.as_bytes(), &Digest::of(b"root"), &roster);
    let refused = |text: &str| read(text).unwrap_err().code().id;
    let text = own.sign(report()).to_text();
    assert_eq!(read(&text).unwrap().statement(), &report());
    assert_eq!((own.sign(report()).to_text(), report().file_name()), (text.clone(), "web1-7.report".to_owned()));
    for release in [None, report().release] {
        assert!(read(&own.sign(MachineReport { release, ..report() }).to_text()).is_ok());
    }
    assert_eq!(refused(&other.sign(report()).to_text()), "E1432");
    assert_eq!(refused(&Signed::new(report()).to_text()), "E1404");
    assert_eq!(refused(&own.sign(MachineReport { fleet: Digest::of(b"other"), ..report() }).to_text()), "E1409");
    let unknown = MachineReport { machine: MachineName::parse("web2").unwrap(), ..report() };
    assert_eq!(refused(&own.sign(unknown).to_text()), "E1417");
    assert_eq!(refused(&own.identity().to_text()), "E1402");
    for place in 0..text.len() {
        let mut changed = text.clone().into_bytes();
        changed[place] ^= 1 << (place % 7);
        let read = MachineReport::read(&changed, &Digest::of(b"root"), &roster);
        assert!(read.is_err(), "byte {place}");
    }
}
