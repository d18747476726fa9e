//! The lines of a manifest.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::Arc;

use super::{Bundle, BundleError, Entry, MOST_BYTES, MOST_ENTRIES, Reach};
use crate::digest::sha256;
use crate::identity::DocumentIdentity;

/// A manifest, whose contents are only named.
pub(super) struct Manifest<'t> {
    identity: Option<&'t str>,
    document: (&'t str, ContentName),
    entries: Vec<(&'t str, Listed)>,
}

/// A content by its length and digest.
#[derive(Clone, PartialEq, Eq)]
struct ContentName {
    size: u64,
    digest: String,
}

enum Listed {
    Folder { mode: u32 },
    File { mode: u32, content: ContentName },
}

impl ContentName {
    fn of(content: &[u8]) -> Self {
        Self { size: content.len() as u64, digest: sha256(content) }
    }

    /// Parses `SIZE DIGEST`, and returns it with the rest of the line.
    fn parse(line: &str) -> Option<(Self, &str)> {
        let (size, line) = line.split_once(' ')?;
        let (digest, rest) = line.split_once(' ')?;
        let is_digest = digest.len() == 64 && digest.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        is_digest.then(|| Some((Self { size: number(size)?, digest: digest.to_owned() }, rest)))?
    }
}

/// A number as it is written here: without a sign, and without zeros in front.
pub(super) fn number(text: &str) -> Option<u64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|_| is_plain)
}

/// Parses `MODE` in octal digits, and returns it with the rest of the line.
fn mode(line: &str) -> Option<(u32, &str)> {
    let (mode, rest) = line.split_once(' ')?;
    let is_octal = mode.len() == 3 && mode.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
    is_octal.then(|| Some((u32::from_str_radix(mode, 8).ok()?, rest)))?
}

impl<'t> Manifest<'t> {
    pub(super) fn of(bundle: &'t Bundle) -> Self {
        let listed = |entry: &Entry| match entry {
            Entry::Folder { mode } => Listed::Folder { mode: *mode },
            Entry::File { mode, content } => Listed::File { mode: *mode, content: ContentName::of(content) },
        };
        let (name, text) = &bundle.document;
        Self {
            identity: bundle.identity.as_ref().and_then(DocumentIdentity::name),
            document: (name, ContentName::of(text.as_bytes())),
            entries: bundle.entries.iter().map(|(path, entry)| (path.as_str(), listed(entry))).collect(),
        }
    }

    pub(super) fn to_text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        if let Some(identity) = self.identity {
            let _ = writeln!(text, "identity {identity}");
        }
        let (name, ContentName { size, digest }) = &self.document;
        let _ = writeln!(text, "document {size} {digest} {name}");
        for (path, listed) in &self.entries {
            let _ = match listed {
                Listed::Folder { mode } => writeln!(text, "folder {mode:03o} {path}"),
                Listed::File { mode, content: ContentName { size, digest } } => {
                    writeln!(text, "file {mode:03o} {size} {digest} {path}")
                }
            };
        }
        text
    }

    pub(super) fn parse(bytes: &'t [u8], reach: Reach) -> Result<Self, BundleError> {
        let text = std::str::from_utf8(bytes).map_err(|_| BundleError::Line(1))?;
        let text = text.strip_suffix('\n').ok_or(BundleError::Truncated)?;
        let mut lines = text.split('\n').zip(1..).peekable();
        let identity = lines.peek().and_then(|(line, _)| line.strip_prefix("identity "));
        if identity.is_some() {
            lines.next();
        }
        let document = lines.next().and_then(|(line, _)| ContentName::parse(line.strip_prefix("document ")?));
        let (content, name) = document.ok_or(BundleError::Line(1))?;
        let mut entries: Vec<(&str, Listed)> = Vec::new();
        for (line, at) in lines {
            let (path, listed) = entry(line).ok_or(BundleError::Line(at))?;
            if path.starts_with('/') && reach == Reach::Folder {
                let reason = "it is absolute: the bundle is for one machine";
                return Err(BundleError::Path { path: path.to_owned(), reason });
            }
            if entries.last().is_some_and(|(before, _)| *before >= path) {
                return Err(BundleError::Line(at));
            }
            entries.push((path, listed));
            if entries.len() > MOST_ENTRIES {
                return Err(BundleError::TooLarge(format!("{MOST_ENTRIES} files")));
            }
        }
        Ok(Self { identity, document: (name, content), entries })
    }

    /// The bundle with the contents that are named, which stand one behind the other in the order of their digests.
    pub(super) fn filled(self, contents: &[u8]) -> Result<Bundle, BundleError> {
        let contents = self.contents(contents)?;
        let content = |named: &ContentName| contents.get(named.digest.as_str()).cloned().unwrap_or_default();
        let (name, named) = &self.document;
        let bytes = content(named);
        let text = std::str::from_utf8(&bytes).map_err(|_| BundleError::Content((*name).to_owned()))?;
        let entries = self.entries.iter().map(|(path, listed)| {
            let entry = match listed {
                Listed::Folder { mode } => Entry::Folder { mode: *mode },
                Listed::File { mode, content: named } => Entry::File { mode: *mode, content: content(named) },
            };
            ((*path).to_owned(), entry)
        });
        let identity =
            self.identity.map(|name| DocumentIdentity::of_name(name).ok_or(BundleError::Line(1))).transpose();
        Bundle::new(identity?, ((*name).to_owned(), Arc::from(text)), entries.collect())
    }

    /// Each content by its digest, which it has.
    fn contents(&self, bytes: &[u8]) -> Result<HashMap<&str, Arc<[u8]>>, BundleError> {
        let mut wanted: BTreeMap<&str, (u64, &str)> = BTreeMap::new();
        let mut total = Some(0u64);
        let files = self.entries.iter().filter_map(|(path, listed)| match listed {
            Listed::File { content, .. } => Some((*path, content)),
            Listed::Folder { .. } => None,
        });
        for (path, named) in files.chain([(self.document.0, &self.document.1)]) {
            // A content of several files is on the disk as often as they are.
            total = total.and_then(|total| total.checked_add(named.size));
            if wanted.insert(&named.digest, (named.size, path)).is_some_and(|(size, _)| size != named.size) {
                return Err(BundleError::Content(path.to_owned()));
            }
        }
        if total.is_none_or(|total| total > MOST_BYTES) {
            return Err(BundleError::TooLarge(format!("{} MiB", MOST_BYTES >> 20)));
        }
        let (mut found, mut rest) = (HashMap::new(), bytes);
        for (digest, (size, path)) in wanted {
            let size = usize::try_from(size).unwrap_or(usize::MAX);
            let (content, behind) = rest.split_at_checked(size).ok_or(BundleError::Truncated)?;
            if sha256(content) != digest {
                return Err(BundleError::Content(path.to_owned()));
            }
            found.insert(digest, Arc::from(content));
            rest = behind;
        }
        if rest.is_empty() { Ok(found) } else { Err(BundleError::Excess(rest.len())) }
    }
}

fn entry(line: &str) -> Option<(&str, Listed)> {
    if let Some(folder) = line.strip_prefix("folder ") {
        let (mode, path) = mode(folder)?;
        return Some((path, Listed::Folder { mode }));
    }
    let (mode, rest) = mode(line.strip_prefix("file ")?)?;
    let (content, path) = ContentName::parse(rest)?;
    Some((path, Listed::File { mode, content }))
}
