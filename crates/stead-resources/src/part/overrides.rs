//! Files of a directory that are read one after the other, so that a later one can say otherwise.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use stead_core::call::Failure;
use stead_host::provider::Context;

use super::lines::lines;
use crate::input::impossible;

/// More than such files have.
const MAX_SIZE: u64 = 1 << 20;

/// Another line that is in force in place of one.
pub(crate) struct Override {
    /// The file, as messages name it.
    path: String,
    /// From 1.
    line: usize,
    /// What it sets.
    value: String,
}

impl Override {
    /// What it sets.
    pub(crate) fn value(&self) -> &str {
        &self.value
    }

    /// The failure that what is asked for is not in force while that line is there.
    pub(crate) fn failure(&self) -> Failure {
        let Self { path, line, value } = self;
        let hint = "Remove that line, or state that file in 'path'";
        impossible("value", format!("{path} sets it to {value} after that, in line {line}. {hint}"))
    }
}

/// The last line behind a file that sets the same; of the lines `value_of` says what they set, if it is the same.
///
/// The files of all directories count in the order of their names; of those with one name, that of the first directory. A file
/// that lies in none of them is read by others, who are not known.
pub(crate) fn overridden(
    cx: &Context,
    own: &str,
    directories: &[&str],
    value_of: impl Fn(&str) -> Option<String>,
) -> Result<Option<Override>, Failure> {
    let own = Path::new(own);
    let rank = |path: &Path| directories.iter().position(|directory| path.parent() == Some(Path::new(directory)));
    let (Some(own_rank), Some(own_name)) = (rank(own), own.file_name()) else { return Ok(None) };
    let mut later: BTreeMap<std::ffi::OsString, &str> = BTreeMap::new();
    for (at, directory) in directories.iter().enumerate().rev() {
        let names = cx.system_root.entries(directory).unwrap_or_default().into_keys();
        let is_later = |name: &OsStr| name > own_name || name == own_name && at < own_rank;
        let is_read = |name: &OsStr| Path::new(name).extension() == Some(OsStr::new("conf"));
        later.extend(names.filter(|name| is_read(name) && is_later(name)).map(|name| (name, *directory)));
    }
    for (name, directory) in later.iter().rev() {
        let path = Path::new(directory).join(name);
        let Some(content) = cx.system_root.read(&path, MAX_SIZE)? else { continue };
        let text = String::from_utf8_lossy(&content.bytes);
        let found =
            lines(&text).iter().enumerate().filter_map(|(at, line)| Some((at + 1, value_of(line.text)?))).last();
        if let Some((line, value)) = found {
            let target = cx.system_root.at(&path).link_target();
            let target = target.map(|target| format!(" (a link to {})", target.display())).unwrap_or_default();
            return Ok(Some(Override { path: format!("'{}'{target}", path.display()), line, value }));
        }
    }
    Ok(None)
}
