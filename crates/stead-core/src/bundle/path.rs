//! Paths of bundles: what they mean, and which there can be.

use std::collections::BTreeMap;

use super::{BundleError, Entry, MOST_ENTRIES};

/// The longest path, and the longest name in one, in bytes: those of the system.
const LONGEST_PATH: usize = 4000;
const LONGEST_NAME: usize = 255;

/// Joins a path to a folder and removes `.`, `..` and repeated slashes, as the entries of a bundle have it. `None`
/// when it leads out of the folder of the document. That folder itself is empty.
///
/// # Examples
/// ```
/// use stead_core::bundle::path::normal;
///
/// assert_eq!(normal("web", "../shared//motd").as_deref(), Some("shared/motd"));
/// assert_eq!(normal("web", "../../motd"), None);
/// assert_eq!(normal("web", "/etc/./motd").as_deref(), Some("/etc/motd"));
/// ```
pub fn normal(folder: &str, path: &str) -> Option<String> {
    let is_absolute = path.starts_with('/') || folder.starts_with('/');
    let start = if path.starts_with('/') { "" } else { folder };
    let mut parts: Vec<&str> = Vec::new();
    for part in start.split('/').chain(path.split('/')) {
        match part {
            ".." if parts.pop().is_none() && !is_absolute => return None,
            "" | "." | ".." => {}
            name => parts.push(name),
        }
    }
    let joined = parts.join("/");
    Some(if is_absolute { format!("/{joined}") } else { joined })
}

/// The folder that a path lies in, empty for that of the document.
pub fn folder_of(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some(("", _)) => "/",
        Some((folder, _)) => folder,
        None => "",
    }
}

/// Joins a path to a folder, without changing how it is written.
pub fn within(folder: &str, path: &str) -> String {
    if folder.is_empty() || path.starts_with('/') {
        path.to_owned()
    } else {
        format!("{}/{path}", folder.trim_end_matches('/'))
    }
}

/// Refuses a text that would not be one line.
pub(super) fn check_label(text: &str) -> Result<(), BundleError> {
    let reason = match text {
        "" => "it is empty",
        _ if text.len() > LONGEST_PATH => "it is too long",
        _ if text.contains(char::is_control) => "it has control characters",
        _ => return Ok(()),
    };
    Err(BundleError::Path { path: shown(text), reason })
}

/// Refuses a path that is written in more than one way, or leads elsewhere.
pub(super) fn check(path: &str) -> Result<(), BundleError> {
    check_label(path)?;
    let refused = |reason| Err(BundleError::Path { path: shown(path), reason });
    for name in path.strip_prefix('/').unwrap_or(path).split('/') {
        match name {
            "" => return refused("it has an empty name"),
            "." | ".." => return refused("it has '.' or '..'"),
            _ if name.len() > LONGEST_NAME => return refused("it has a name that is too long"),
            _ => {}
        }
    }
    Ok(())
}

/// Refuses paths that cannot be beside each other, and too many of them.
pub(super) fn check_tree(entries: &BTreeMap<String, Entry>) -> Result<(), BundleError> {
    if entries.len() > MOST_ENTRIES {
        return Err(BundleError::TooLarge(format!("{MOST_ENTRIES} files")));
    }
    for path in entries.keys() {
        check(path)?;
        let above = path.match_indices('/').filter_map(|(at, _)| path.get(..at));
        if above.into_iter().any(|above| matches!(entries.get(above), Some(Entry::File { .. }))) {
            return Err(BundleError::Path { path: shown(path), reason: "it lies below a file" });
        }
    }
    Ok(())
}

/// A path for a message, in which nothing can be hidden.
fn shown(path: &str) -> String {
    const MOST: usize = 200;
    path.chars().take(MOST).flat_map(char::escape_debug).collect()
}
