//! fstab(5): one file system on each line.

use crate::part::lines::{InForce, Line, entry, put_entry, replaced, without_entry};
use crate::text::{decoded, encoded, fields, stray};

/// The fields of a line, decoded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    pub(super) device: String,
    pub(super) path: String,
    pub(super) fstype: String,
    pub(super) options: String,
    pub(super) dump: u32,
    pub(super) pass: u32,
    /// Text in place of a number, such as a comment, from there to the end of the line: mount(8) ignores such a line.
    pub(super) stray: Option<String>,
}

/// What a line of swap space has in place of a mount point.
pub(super) const NO_PATH: &str = "none";

impl Entry {
    /// The file system that a line is about, if it is about any.
    pub(super) fn of(line: &str) -> Option<Self> {
        let fields: Vec<String> =
            fields(line).into_iter().map(|range| decoded(line.get(range).unwrap_or(""))).collect();
        let [device, path, fstype, rest @ ..] = fields.as_slice() else { return None };
        let number = |at: usize| rest.get(at).and_then(|text| text.parse().ok()).unwrap_or(0);
        Some(Self {
            device: device.clone(),
            path: if fstype == "swap" { NO_PATH.to_owned() } else { without_slash(path).to_owned() },
            fstype: fstype.clone(),
            options: rest.first().cloned().unwrap_or_else(|| super::options::DEFAULTS.to_owned()),
            dump: number(1),
            pass: number(2),
            stray: stray(line).map(str::to_owned),
        })
    }

    /// Returns whether it is about the same mount point, or where there is none, about the same device.
    pub(super) fn is_at(&self, path: &str, device: Option<&str>) -> bool {
        self.path == path && (path != NO_PATH || device == Some(self.device.as_str()))
    }

    /// Returns whether it is swap space.
    pub(super) fn is_swap(&self) -> bool {
        self.path == NO_PATH
    }

    fn texts(&self) -> [String; 6] {
        let Self { device, path, fstype, options, dump, pass, .. } = self;
        let [device, path, fstype, options] = [device, path, fstype, options].map(|field| encoded(field));
        [device, path, fstype, options, dump.to_string(), pass.to_string()]
    }
}

/// The entry in force for a mount point: later ones are ignored.
pub(super) fn find(text: &str, is_own: impl Fn(&Entry) -> bool) -> Option<Entry> {
    let line = entry(text, InForce::First, |line| Entry::of(line).is_some_and(|entry| is_own(&entry)))?;
    Entry::of(line.text)
}

/// All entries, in their order.
pub(super) fn all(text: &str) -> Vec<Entry> {
    text.lines().filter_map(Entry::of).collect()
}

/// The text with an entry in place of the one in force, or at its end. What is in the desired state keeps its form.
pub(super) fn with(text: &str, is_own: impl Fn(&Entry) -> bool, new: &Entry) -> String {
    let is_own = |line: &str| Entry::of(line).is_some_and(|entry| is_own(&entry));
    let line = match entry(text, InForce::First, is_own) {
        Some(Line { text: old, .. }) => edited(old, new),
        None => new.texts().join("\t"),
    };
    put_entry(text, InForce::First, is_own, &line)
}

/// The text without the entries of a mount point.
pub(super) fn without(text: &str, is_own: impl Fn(&Entry) -> bool) -> String {
    without_entry(text, |line| Entry::of(line).is_some_and(|entry| is_own(&entry)))
}

/// A mount point as the kernel names it.
pub(super) fn without_slash(path: &str) -> &str {
    let trimmed = path.trim_end_matches('/');
    if trimmed.is_empty() && !path.is_empty() { "/" } else { trimmed }
}

/// A line with other values, in its columns.
fn edited(line: &str, new: &Entry) -> String {
    let ranges = fields(line);
    let texts = new.texts();
    if let Some(stray) = stray(line) {
        return format!("{} {stray}", texts.join("\t"));
    }
    let mut edited = line.trim_end().to_owned();
    for text in texts.get(ranges.len()..).unwrap_or_default() {
        edited.push('\t');
        edited.push_str(text);
    }
    for (range, text) in ranges.iter().zip(&texts).rev() {
        let same = |old: &str| without_slash(&decoded(old)) == without_slash(&decoded(text));
        let is_same = line.get(range.clone()).is_some_and(same);
        if !is_same {
            edited = replaced(&edited, range, text);
        }
    }
    edited
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_keeps_its_columns() {
        let line = "UUID=1   /srv\\040a  ext4   ro";
        let entry = Entry::of(line).map(|entry| Entry { fstype: "xfs".to_owned(), pass: 2, ..entry });
        assert_eq!(entry.map(|entry| edited(line, &entry)).as_deref(), Some("UUID=1   /srv\\040a  xfs   ro\t0\t2"));
    }
}
