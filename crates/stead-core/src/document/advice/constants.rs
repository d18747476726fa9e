//! Texts that a fact or a function never has as its value.

use crate::expr::{DISTRIBUTIONS, FAMILIES};
use crate::text::shown;

/// Facts with few values, and those.
const CLOSED: [(&str, &[&str]); 3] = [
    ("kernel", &["Linux"]),
    ("service_provider", &["systemd", "openrc", "sysvinit"]),
    ("package_provider", &["apt", "dnf", "yum", "zypper", "pacman", "apk"]),
];

/// A text that is never a value, and what is.
pub(super) struct Misspelling {
    /// The reason.
    pub(super) why: String,
    /// Advice.
    pub(super) help: String,
    /// The text to write in its place, if only one can be meant.
    pub(super) right: Option<String>,
}

/// Returns what is wrong with a text that a fact is compared with.
pub(super) fn fact(path: &str, text: &str) -> Option<Misspelling> {
    let lower = text.to_lowercase();
    let by_id = |table: &[(&str, &'static str)]| table.iter().find(|(id, _)| *id == lower).map(|(_, name)| *name);
    let by_name = |table: &[(&str, &'static str)]| {
        table.iter().find(|(_, name)| name.eq_ignore_ascii_case(text)).map(|(_, name)| *name)
    };
    let right = match path {
        "os.name" => by_name(DISTRIBUTIONS).or_else(|| by_id(DISTRIBUTIONS))?,
        "os.family" => match by_name(FAMILIES) {
            Some(right) => right,
            None => return of_a_family(text, by_name(DISTRIBUTIONS).or_else(|| by_id(DISTRIBUTIONS))?),
        },
        _ => {
            let (_, values) = CLOSED.iter().find(|(closed, _)| *closed == path)?;
            values.iter().find(|value| value.eq_ignore_ascii_case(text))?
        }
    };
    let why = format!("the fact '{path}' is written '{right}'");
    (right != text).then(|| Misspelling { why, help: format!("write '{right}'"), right: Some(right.to_owned()) })
}

/// The name of a distribution, where its family is asked for.
fn of_a_family(text: &str, name: &str) -> Option<Misspelling> {
    let (id, _) = DISTRIBUTIONS.iter().find(|(_, each)| *each == name)?;
    // Those that are like others say so themselves.
    let family = match FAMILIES.iter().find(|(each, _)| each == id) {
        Some((_, family)) => *family,
        None if ["almalinux", "rocky", "ol"].contains(id) => "RedHat",
        None if ["linuxmint", "raspbian"].contains(id) => "Debian",
        None => return None,
    };
    let why = format!("'{}' belongs to the family '{family}'", shown(text));
    let help = format!("the name of a distribution is facts('os.name'): equals(facts('os.name'), '{name}')");
    Some(Misspelling { why, help, right: None })
}

/// Returns what is wrong with a text where only small letters, or only capital ones, are returned.
pub(super) fn letters(text: &str, right: String, why: &str) -> Option<Misspelling> {
    let help = format!("write '{}'", shown(&right));
    (right != text).then(|| Misspelling { why: why.to_owned(), help, right: Some(right) })
}
