//! A document with every file that it can read: one form for what an agent keeps, what a plan names and what is sent.
//!
//! ```text
//! stead-bundle 1 sha256-DIGEST LENGTH         the name of the bundle, and how long what it names is
//! identity NAME                               from here on the manifest, LENGTH bytes; the name that the document states
//! document SIZE DIGEST NAME                   the document, and what messages call it
//! folder MODE PATH                            a folder, in the order of the paths, with
//! file MODE SIZE DIGEST PATH                  the files
//! …                                           the contents, one behind the other, in the order of their digests
//! ```
//!
//! The name of a bundle is the SHA-256 of its manifest, and the manifest names every content by its SHA-256 and length.
//! Whoever knows the name can check the manifest before a word of it is read, and each content as it arrives; contents can
//! be kept and sent by themselves, each once. There is nothing in it of parameters, times or the folder that it was made in:
//! equal files give equal bytes.
//!
//! Guarantees: what [`Bundle::decode`] accepts is what [`Bundle::encode`] writes, to the byte.

mod manifest;
pub mod path;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::diag::counted;
use crate::digest::sha256;
use crate::identity::DocumentIdentity;
use manifest::Manifest;

/// The limit of all contents of a bundle, in bytes: it is in memory as a whole. Larger files are better downloaded
/// where they are needed.
pub const MOST_BYTES: u64 = 64 << 20;
/// How many files and folders it may have.
pub const MOST_ENTRIES: usize = 20_000;
/// How long its manifest may be.
const LONGEST_MANIFEST: usize = 8 << 20;
/// How long the first line may be.
const LONGEST_HEADER: usize = 128;
/// The first bytes of every bundle.
pub const BEGIN: &str = "stead-bundle ";
const FORM: &str = "stead-bundle 1 ";

/// Why bytes are not a bundle, or files cannot be one.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BundleError {
    /// It does not begin as one.
    #[error("it is not a bundle")]
    NotABundle,
    /// It has a format that this program does not know.
    #[error("its format is not supported by this version of stead")]
    Form,
    /// It has fewer bytes than it says.
    #[error("it is truncated")]
    Truncated,
    /// There is something behind it.
    #[error("{} its end", followed_by(*.0))]
    Excess(usize),
    /// It is not the requested bundle.
    #[error("it is the bundle {found}, not {wanted}")]
    Other {
        /// Its name.
        found: String,
        /// The name that was given.
        wanted: String,
    },
    /// The manifest does not have the digest that the first line states.
    #[error("its manifest is damaged: its digest does not match")]
    Manifest,
    /// A line of the manifest is not as this program writes it.
    #[error("line {0} of its manifest is not valid")]
    Line(usize),
    /// A content does not have the digest that the manifest states.
    #[error("the content of '{0}' is damaged: its digest does not match")]
    Content(String),
    /// A path cannot be in a bundle.
    #[error("'{path}' cannot be in a bundle: {reason}")]
    Path {
        /// The path.
        path: String,
        /// Why.
        reason: &'static str,
    },
    /// It has the identity of another document.
    #[error("its identity is not that of its document")]
    Identity,
    /// It has more than a bundle may.
    #[error("it has more than {0}")]
    TooLarge(String),
}

fn followed_by(bytes: usize) -> String {
    format!("{} {}", counted(bytes, "extra byte"), if bytes == 1 { "follows" } else { "follow" })
}

/// Which paths a bundle may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// Those of files that lie in the folder of the document: it can be used on any machine.
    Folder,
    /// Absolute ones as well, of files of the machine that it was made on.
    Machine,
}

/// A file or a folder of a bundle.
#[derive(Clone, PartialEq, Eq)]
pub enum Entry {
    /// A folder.
    Folder {
        /// Its permissions.
        mode: u32,
    },
    /// A file.
    File {
        /// Its permissions.
        mode: u32,
        /// The bytes of the file.
        content: Arc<[u8]>,
    },
}

/// A document with its files.
///
/// Invariants: the paths are valid, none lies below a file, and there is not more than a bundle may have, where a content
/// counts for each file that has it.
///
/// # Examples
/// ```
/// use std::collections::BTreeMap;
///
/// use stead_core::bundle::{Bundle, BundleError, Entry, Reach};
///
/// let page = Entry::File { mode: 0o644, content: b"<h1>Hello</h1>".as_slice().into() };
/// let entries = BTreeMap::from([("www/index.html".to_owned(), page)]);
/// let bundle = Bundle::new(None, ("main.yaml".to_owned(), "resources: []".into()), entries)?;
/// let mut bytes = bundle.encode();
/// assert_eq!(Bundle::decode(&bytes, Reach::Folder, Some(bundle.name()))?.name(), bundle.name());
/// // The name commits to every byte.
/// if let Some(last) = bytes.last_mut() {
///     *last ^= 1;
/// }
/// assert!(Bundle::decode(&bytes, Reach::Folder, None).is_err());
/// # Ok::<(), BundleError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Bundle {
    identity: Option<DocumentIdentity>,
    document: (String, Arc<str>),
    entries: BTreeMap<String, Entry>,
    name: String,
}

/// Shows no content, which may be secret.
impl fmt::Debug for Bundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Bundle").field(&self.name).finish()
    }
}

impl Bundle {
    /// The bundle of a document: the identity that it states, what messages call it and its text; with files and folders by
    /// their paths.
    pub fn new(
        identity: Option<DocumentIdentity>,
        document: (String, Arc<str>),
        entries: BTreeMap<String, Entry>,
    ) -> Result<Self, BundleError> {
        let mut bundle = Self { identity, document, entries, name: String::new() };
        path::check_label(&bundle.document.0)?;
        bundle.identity.as_ref().map_or(Ok(()), |identity| path::check_label(identity.as_str()))?;
        path::check_tree(&bundle.entries)?;
        let files = bundle.files().map(|(_, content)| content.len() as u64);
        let bytes: u64 = files.chain([bundle.document.1.len() as u64]).sum();
        if bytes > MOST_BYTES {
            return Err(BundleError::TooLarge(format!("{} MiB", MOST_BYTES >> 20)));
        }
        bundle.name = name_of(Manifest::of(&bundle).to_text().as_bytes());
        Ok(bundle)
    }

    /// Its name: `sha256-` and the digest of its manifest, which stands for all that is in it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The identity that the document states itself, as it says.
    pub fn identity(&self) -> Option<&DocumentIdentity> {
        self.identity.as_ref()
    }

    /// Returns the name of the document in messages, and its text.
    pub fn document(&self) -> (&str, &Arc<str>) {
        (&self.document.0, &self.document.1)
    }

    /// Its files and folders, by their paths.
    pub fn entries(&self) -> &BTreeMap<String, Entry> {
        &self.entries
    }

    /// The content of the file at a path.
    pub fn file(&self, path: &str) -> Option<&Arc<[u8]>> {
        match self.entries.get(path)? {
            Entry::File { content, .. } => Some(content),
            Entry::Folder { .. } => None,
        }
    }

    /// Returns whether the bundle has a file or a folder at a path, or something below it.
    pub fn holds(&self, path: &str) -> bool {
        let below = || format!("{path}/");
        self.entries.contains_key(path)
            || self.entries.range(below()..).next().is_some_and(|(found, _)| found.starts_with(&below()))
    }

    /// Returns how far the paths reach: [`Reach::Machine`] if absolute paths of the machine that made the bundle are
    /// in it.
    pub fn reach(&self) -> Reach {
        let is_absolute = self.entries.keys().any(|path| path.starts_with('/'));
        if is_absolute { Reach::Machine } else { Reach::Folder }
    }

    /// Every content by its digest, with what it is the content of.
    fn contents(&self) -> BTreeMap<String, (&str, &[u8])> {
        let document = (self.document.0.as_str(), self.document.1.as_bytes());
        self.files().chain([document]).map(|(path, content)| (sha256(content), (path, content))).collect()
    }

    fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.entries.iter().filter_map(|(path, entry)| match entry {
            Entry::File { content, .. } => Some((path.as_str(), &**content)),
            Entry::Folder { .. } => None,
        })
    }

    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        let manifest = Manifest::of(self).to_text();
        let mut bytes = format!("{FORM}{} {}\n{manifest}", self.name, manifest.len()).into_bytes();
        for (_, content) in self.contents().into_values() {
            bytes.extend_from_slice(content);
        }
        bytes
    }

    /// The name that the first line of a bundle states. Nothing is checked: whoever has only the beginning knows by it whether
    /// to go on.
    pub fn stated_name(bytes: &[u8]) -> Result<&str, BundleError> {
        header(bytes).map(|(name, ..)| name)
    }

    /// The bundle that bytes are. `wanted`: the name that it must have, where the caller knows it.
    ///
    /// Guarantees: nothing of the manifest is looked at before its digest is the one that the name states, and nothing of a
    /// content before it is.
    pub fn decode(bytes: &[u8], reach: Reach, wanted: Option<&str>) -> Result<Self, BundleError> {
        let (name, length, rest) = header(bytes)?;
        if let Some(wanted) = wanted.filter(|wanted| *wanted != name) {
            return Err(BundleError::Other { found: name.to_owned(), wanted: wanted.to_owned() });
        }
        let (manifest, contents) = rest.split_at_checked(length).ok_or(BundleError::Truncated)?;
        if name_of(manifest) != name {
            return Err(BundleError::Manifest);
        }
        let bundle = Manifest::parse(manifest, reach)?.filled(contents)?;
        // Each bundle has exactly one encoding, whose digest is its name; any other is refused.
        if bundle.name != name {
            return Err(BundleError::Line(1));
        }
        Ok(bundle)
    }
}

fn name_of(manifest: &[u8]) -> String {
    format!("sha256-{}", sha256(manifest))
}

/// The name and the length of the manifest that the first line states, and what is behind it.
fn header(bytes: &[u8]) -> Result<(&str, usize, &[u8]), BundleError> {
    if !bytes.starts_with(BEGIN.as_bytes()) {
        return Err(BundleError::NotABundle);
    }
    let stated = bytes.strip_prefix(FORM.as_bytes()).ok_or(BundleError::Form)?;
    let end = stated.iter().take(LONGEST_HEADER).position(|byte| *byte == b'\n').ok_or(BundleError::Truncated)?;
    let (line, rest) = (stated.get(..end).unwrap_or_default(), stated.get(end + 1..).unwrap_or_default());
    let parts = std::str::from_utf8(line).ok().and_then(|line| line.split_once(' '));
    let (name, length) = parts.ok_or(BundleError::Manifest)?;
    let length = manifest::number(length).filter(|length| *length <= LONGEST_MANIFEST as u64);
    let length = length.and_then(|length| usize::try_from(length).ok()).ok_or(BundleError::Manifest)?;
    Ok((name, length, rest))
}
