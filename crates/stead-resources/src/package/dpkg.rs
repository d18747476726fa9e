//! The database of dpkg, read without a program: its status, what an interrupted dpkg left beside it, and apt's marks.

use std::collections::{BTreeMap, BTreeSet};

use stead_core::call::Failure;
use stead_host::provider::Context;
use stead_system::fs::SystemPath;

use super::manager::{Installed, Package, Presence, native};
use crate::accounts::path;

/// Where the database is, below the root of a system.
pub(super) const STATUS: &str = "var/lib/dpkg/status";
const UPDATES: &str = "var/lib/dpkg/updates";
const NATIVE: &str = "var/lib/dpkg/arch";
const MARKS: &str = "var/lib/apt/extended_states";

/// The files that tell one state of the database from every other.
pub(super) fn files(cx: &Context) -> Vec<SystemPath> {
    [STATUS, UPDATES, MARKS].iter().map(|name| path(cx, name)).collect()
}

/// Returns whether dpkg was broken off while it changed packages.
pub(super) fn is_interrupted(cx: &Context) -> bool {
    !updates(cx).is_empty()
}

/// What was to be written to the status, in order.
fn updates(cx: &Context) -> Vec<String> {
    let names = cx.system_root.entries(UPDATES).unwrap_or_default().into_keys();
    let names = names.filter_map(|name| name.into_string().ok());
    names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())).collect()
}

/// What is installed.
pub(super) fn installed(cx: &Context) -> Result<Installed, Failure> {
    let automatic = automatic(&contents(cx, MARKS)?);
    let mut packages = packages(&contents(cx, STATUS)?);
    for name in updates(cx) {
        for newer in self::packages(&contents(cx, &format!("{UPDATES}/{name}"))?) {
            packages.retain(|older| (&older.name, &older.architecture) != (&newer.name, &newer.architecture));
            packages.push(newer);
        }
    }
    let own = contents(cx, NATIVE)?;
    // What dpkg notes, or else its own.
    let noted = String::from_utf8_lossy(&own).lines().next().unwrap_or_default().to_owned();
    let native = if noted.is_empty() { native("dpkg", &packages) } else { noted };
    for package in packages.iter_mut().filter(|_| !automatic.is_empty()) {
        let is_automatic = automatic.get(&*package.name).is_some_and(|architectures| {
            // apt notes a package of every architecture under the one of the system.
            &*package.architecture == "all" || architectures.contains(&*package.architecture)
        });
        package.automatic = Some(is_automatic);
    }
    packages.retain(|package| !package.version.is_empty());
    Ok(Installed::new(packages, native))
}

/// The largest file that is read: a status of a million packages.
const MAX_SIZE: u64 = 1 << 30;

/// The content of a file, which is empty when there is none.
fn contents(cx: &Context, name: &str) -> Result<Vec<u8>, Failure> {
    let content = cx.system_root.read(name, MAX_SIZE)?;
    Ok(content.map(|content| content.bytes).unwrap_or_default())
}

/// The packages that apt notes as automatically installed, with their architectures.
fn automatic(text: &[u8]) -> BTreeMap<String, BTreeSet<String>> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for stanza in stanzas(text, &[b"Package", b"Architecture", b"Auto-Installed"]) {
        let text = |field: &str| stanza.get(field.as_bytes()).map(|text| String::from_utf8_lossy(text).into_owned());
        if text("Auto-Installed").as_deref() == Some("1") {
            all.entry(text("Package").unwrap_or_default()).or_default().extend(text("Architecture"));
        }
    }
    all
}

/// The packages of a status.
pub(super) fn packages(text: &[u8]) -> Vec<Package> {
    let of = |stanza: BTreeMap<&[u8], &[u8]>| {
        let text = |field: &str| stanza.get(field.as_bytes()).map(|text| String::from_utf8_lossy(text));
        let status = text("Status")?;
        let mut words = status.split(' ');
        let (selection, flag, state) = (words.next()?, words.next()?, words.next()?);
        let presence = match state {
            "not-installed" => return None,
            "config-files" => Presence::Configuration,
            "installed" | "triggers-awaited" | "triggers-pending" if flag == "ok" => Presence::Installed,
            _ => Presence::Broken,
        };
        Some(Package {
            name: text("Package")?.into(),
            architecture: text("Architecture").unwrap_or_default().into(),
            version: text("Version").unwrap_or_default().into(),
            presence,
            hold: selection == "hold",
            automatic: Some(false),
        })
    };
    stanzas(text, &[b"Package", b"Status", b"Architecture", b"Version"]).into_iter().filter_map(of).collect()
}

/// These fields of every stanza.
fn stanzas<'t>(text: &'t [u8], fields: &[&[u8]]) -> Vec<BTreeMap<&'t [u8], &'t [u8]>> {
    let (mut all, mut stanza, mut start) = (Vec::new(), BTreeMap::new(), 0);
    for end in memchr::memchr_iter(b'\n', text).chain([text.len()]) {
        let line = text.get(start..end).unwrap_or_default();
        start = end + 1;
        if line.is_empty() {
            all.extend(Some(std::mem::take(&mut stanza)).filter(|stanza| !stanza.is_empty()));
        }
        // A line that continues another one begins with a space; most fields are those of no interest.
        if line.first().is_none_or(|first| !b"PSAV".contains(first)) {
            continue;
        }
        if let Some(colon) = memchr::memchr(b':', line)
            && let (name, value) = line.split_at(colon)
            && fields.contains(&name)
        {
            stanza.insert(name, value.get(1..).unwrap_or_default().trim_ascii());
        }
    }
    all.extend(Some(stanza).filter(|stanza| !stanza.is_empty()));
    all
}
