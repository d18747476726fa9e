//! Files that nobody signed, as long as they may be: how much memory it takes to refuse them.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

use stead_release::{LONGEST, LONGEST_STATEMENT, Release, Root, Roster, Signable, Signed};

const DIGEST: &str = "sha256-e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
/// The most that a machine may take for a file of the longest kind, in KiB.
const LITTLE: u64 = 256 << 10;

/// The most memory that this process ever had, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn link() -> String {
    format!("fleet {DIGEST}\nnumber 1\nparent {DIGEST}\nsigners {DIGEST}\nmade 2026-01-01T00:00:00Z\n")
}

/// A text of a length, with a part that is repeated by its number.
fn long(begin: &str, part: impl Fn(usize) -> String, end: &str, length: usize) -> Vec<u8> {
    let mut text = begin.to_owned();
    let mut number = 0;
    while text.len() + end.len() + part(number).len() < length {
        text += &part(number);
        number += 1;
    }
    (text + end).into_bytes()
}

fn refuse<S: Signable>(about: &str, text: &[u8]) {
    let before = peak();
    assert!(Signed::<S>::parse(text).is_err(), "{about}");
    let more = peak() - before;
    assert!(more < LITTLE, "{about}: a file of {} KiB took {more} KiB", text.len() >> 10);
}

#[test]
fn what_nobody_signed_costs_little_memory() {
    let until = format!("{}channel web\nexpires 2027-01-01T00:00:00Z\n", link());
    let key = |number: usize| format!("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{number:043}");
    for length in [LONGEST_STATEMENT, LONGEST] {
        let begin = format!("stead-release 1\n{until}where all\nbundle {DIGEST}\nparameters {{\"a\":[");
        refuse::<Release>("parameters", &long(&begin, |_| "0,".to_owned(), "0]}\n", length));
        let begin = format!("stead-release 1\n{until}where role=");
        refuse::<Release>("a filter", &long(&begin, |_| "a,".to_owned(), "a\n", length));
        let begin = format!("stead-roster 1\n{}machine web1 {}\n", link(), key(1));
        refuse::<Roster>("labels", &long(&begin, |number| format!("label a{number} b\n"), "", length));
        let begin = "stead-root 1\nname shop\nthreshold 2\n";
        refuse::<Root>("signers", &long(begin, |number| format!("signer {}\n", key(number)), "", length));
    }
}
