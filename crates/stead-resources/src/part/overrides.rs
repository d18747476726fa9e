//! Files of a directory that are read one after the other, so that a later one can say otherwise.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use stead_core::call::Failure;
use stead_host::provider::Context;

use super::lines::lines;
use crate::input::impossible;

/// More than such files have, with all their comments.
const MAX_SIZE: u64 = 16 << 20;

/// The setting that is in force in place of the line of an instance.
pub(crate) struct Override {
    /// The file, as messages name it.
    path: String,
    /// The line, from 1, and the value that it sets; `None` where the file keeps that of the instance from being read.
    line: Option<(usize, String)>,
    /// True if it bounds the value of the instance, whatever comes later.
    is_cap: bool,
}

impl Override {
    /// The value that is in force, if it is known.
    pub(crate) fn value(&self) -> Option<&str> {
        self.line.as_ref().map(|(_, value)| value.as_str())
    }

    /// Turns it into a bound of the value of the instance.
    pub(crate) fn into_cap(self) -> Self {
        Self { is_cap: true, ..self }
    }

    /// The failure that what is asked for is not in force while that is there.
    pub(crate) fn failure(&self) -> Failure {
        let path = &self.path;
        let message = match &self.line {
            Some((line, value)) if self.is_cap => {
                format!("{path} limits it to {value} in line {line}. Raise that limit first")
            }
            Some((line, value)) => {
                let hint = "Remove that line, or state that file in 'path'";
                format!("{path} sets it to {value} in line {line}, which is read later. {hint}")
            }
            None => {
                format!("{path} has the same name and is read in place of this file. Remove it, or state it in 'path'")
            }
        };
        impossible("value", message)
    }
}

/// The last line of a file behind the one of an instance that sets the same in another way, which `value_of` says of lines that
/// are not that of the instance.
pub(crate) fn overridden_within(
    cx: &Context,
    path: &str,
    is_own: impl Fn(&str) -> bool,
    value_of: impl Fn(&str) -> Option<String>,
) -> Result<Option<Override>, Failure> {
    let Some(content) = cx.system_root.read(path, MAX_SIZE)? else { return Ok(None) };
    let text = String::from_utf8_lossy(&content.bytes);
    let lines = lines(&text);
    let Some(own) = lines.iter().rposition(|line| is_own(line.text)) else { return Ok(None) };
    let later = lines.iter().enumerate().skip(own + 1);
    let found = later.filter_map(|(at, line)| Some((at + 1, value_of(line.text)?))).last();
    Ok(found.map(|line| Override { path: format!("'{path}'"), line: Some(line), is_cap: false }))
}

/// The last line of a file that sets something.
pub(crate) fn set_in(
    cx: &Context,
    path: &str,
    value_of: impl Fn(&str) -> Option<String>,
) -> Result<Option<Override>, Failure> {
    let Some(content) = cx.system_root.read(path, MAX_SIZE)? else { return Ok(None) };
    let text = String::from_utf8_lossy(&content.bytes);
    let found = lines(&text).iter().enumerate().filter_map(|(at, line)| Some((at + 1, value_of(line.text)?))).last();
    Ok(found.map(|line| Override { path: format!("'{path}'"), line: Some(line), is_cap: false }))
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
    let shown = |path: &Path| {
        let target = cx.system_root.at(path).link_target();
        let target = target.map(|target| format!(" (a link to {})", target.display())).unwrap_or_default();
        format!("'{}'{target}", path.display())
    };
    let namesakes = directories.iter().take(own_rank).map(|directory| Path::new(directory).join(own_name));
    if let Some(path) = namesakes.into_iter().find(|path| cx.system_root.at(path).status().is_some()) {
        return Ok(Some(Override { path: shown(&path), line: None, is_cap: false }));
    }
    let mut later: BTreeMap<std::ffi::OsString, &str> = BTreeMap::new();
    for directory in directories.iter().rev() {
        let names = cx.system_root.entries(directory).unwrap_or_default().into_keys();
        let is_later = |name: &OsStr| name > own_name;
        let is_read = |name: &OsStr| Path::new(name).extension() == Some(OsStr::new("conf"));
        later.extend(names.filter(|name| is_read(name) && is_later(name)).map(|name| (name, *directory)));
    }
    for (name, directory) in later.iter().rev() {
        let path = Path::new(directory).join(name);
        let Some(content) = cx.system_root.read(&path, MAX_SIZE)? else { continue };
        let text = String::from_utf8_lossy(&content.bytes);
        let found =
            lines(&text).iter().enumerate().filter_map(|(at, line)| Some((at + 1, value_of(line.text)?))).last();
        if found.is_some() {
            return Ok(Some(Override { path: shown(&path), line: found, is_cap: false }));
        }
    }
    Ok(None)
}
