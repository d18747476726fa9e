//! Modes of directories that are those of files, and 'recurse' where nothing is removed.

use stead_core::value::{Object, Value};
use stead_host::provider::Lint;
use stead_system::fs::{format_mode, parse_mode};

use super::Properties;

/// Finds what would close a directory, or would not reach what is in it.
pub(super) fn lints(properties: &Object) -> Vec<Lint> {
    let is = |name: &str| properties.get(name).and_then(Value::as_bool);
    if is(Properties::EXIST) == Some(false) {
        return Vec::new();
    }
    let mode = properties.get(Properties::MODE).and_then(Value::as_str).and_then(parse_mode);
    // By itself it is for a directory that the document will not have any more.
    let owned =
        [Properties::MODE, Properties::OWNER, Properties::GROUP].iter().any(|name| properties.get(name).is_some());
    let recursion = (owned && is(Properties::RECURSE) == Some(true)).then(recursion);
    mode.and_then(closed).into_iter().chain(recursion).collect()
}

/// A class of users that may list the names in a directory, and may not use any of them.
fn closed(mode: u32) -> Option<Lint> {
    let missing = [0o100, 0o010, 0o001].into_iter().filter(|x| mode & (x << 2) != 0 && mode & x == 0).sum::<u32>();
    let who = match missing {
        0 => return None,
        x if x & 0o100 != 0 => "nobody but root",
        0o010 => "its group",
        0o001 => "other users",
        _ => "its group and other users",
    };
    let can = if missing & 0o100 != 0 { "can" } else { "cannot" };
    let message = format!("without 'x' in the mode {}, {who} {can} enter the directory", format_mode(mode));
    Some(Lint::new(&[Properties::MODE], message, format!("write \"{}\"", format_mode(mode | missing))))
}

fn recursion() -> Lint {
    let message = "'recurse' is for the removal of a directory: what is in this one keeps its mode and owner";
    let help = "the files of a directory are stated with Stead/File, or with 'source' and their modes there";
    Lint::new(&[Properties::RECURSE], message, help)
}
