//! Sources of releases: where they are, and how their files are read. What is taken from them is decided by
//! [`stead_release::FleetFollower`], and carried out by the service.

mod folder;
mod git;
mod grown;
mod web;

use std::fmt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use stead_core::bundle::MOST_BYTES;
use stead_release::{LONGEST, LONGEST_ENVELOPE, LONGEST_STATEMENT, Name, SourceFile};
use stead_resources::transfer;
use stead_system::Cancel;
use url::Url;

use folder::FolderFiles;
use git::GitFiles;
use web::WebFiles;

pub(crate) use grown::grown;

/// Where the releases are that a machine follows.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum SourceAddress {
    /// A folder, by an absolute path.
    Folder(PathBuf),
    /// A folder of a web server, by its address: `https://HOST/PATH/`, or of HTTP if the server is this machine.
    Web(Url),
    /// A controller, by its address: `fleet+https://HOST`, or of HTTP if it, or the proxy before it, is this machine.
    Controller(Url),
    /// A Git repository, by its address, and a branch or a tag of it: `git+https://HOST/PATH#REFERENCE`, and the same with `ssh`
    /// and `file`.
    Git {
        /// The address, as git takes it.
        address: String,
        /// The branch or the tag.
        reference: String,
    },
}

/// The reason why a text does not say where releases are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadAddress {
    /// It is neither of the known forms.
    #[error(
        "a source is the absolute path of a folder, or 'https://', or 'git+https://', 'git+ssh://' or 'git+file://' with '#' and a branch or a tag; a controller is 'https://HOST'"
    )]
    Form,
    /// It has a password, which would be shown with it.
    #[error("a source must not have a password; what is signed needs none, and a repository takes a key of SSH")]
    Password,
}

impl TryFrom<String> for SourceAddress {
    type Error = BadAddress;

    fn try_from(text: String) -> Result<Self, BadAddress> {
        if let Some(git) = text.strip_prefix("git+") {
            return repository(git);
        }
        if let Some(controller) = text.strip_prefix(CONTROLLER) {
            return website(controller).map(Self::Controller);
        }
        if text.starts_with("http") {
            return website(&text).map(Self::Web);
        }
        if Path::new(&text).is_absolute() { Ok(Self::Folder(text.into())) } else { Err(BadAddress::Form) }
    }
}

/// The beginning of the address of a controller.
pub(crate) const CONTROLLER: &str = "fleet+";

/// A folder of a web server by its address.
fn website(text: &str) -> Result<Url, BadAddress> {
    let mut url = Url::parse(text).map_err(|_| BadAddress::Form)?;
    if url.password().is_some() || !url.username().is_empty() {
        return Err(BadAddress::Password);
    }
    let is_known = matches!(url.scheme(), "https" | "http") && !transfer::is_open(&url);
    if !is_known || url.query().is_some() || url.fragment().is_some() {
        return Err(BadAddress::Form);
    }
    if !url.path().ends_with('/') {
        url.set_path(&format!("{}/", url.path()));
    }
    Ok(url)
}

/// A repository by its address and a reference.
fn repository(text: &str) -> Result<SourceAddress, BadAddress> {
    let url = Url::parse(text).map_err(|_| BadAddress::Form)?;
    if url.password().is_some() || url.scheme() == "https" && !url.username().is_empty() {
        return Err(BadAddress::Password);
    }
    let is_known = matches!(url.scheme(), "https" | "ssh" | "file") && url.query().is_none();
    let (address, reference) = text.split_once('#').filter(|_| is_known).ok_or(BadAddress::Form)?;
    let is_usual = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.' | '/');
    let is_reference = !reference.is_empty() && !reference.starts_with('-') && reference.chars().all(is_usual);
    let is_visible = address.chars().all(|letter| letter.is_ascii_graphic());
    if !is_reference || !is_visible {
        return Err(BadAddress::Form);
    }
    Ok(SourceAddress::Git { address: address.to_owned(), reference: reference.to_owned() })
}

impl From<SourceAddress> for String {
    fn from(address: SourceAddress) -> Self {
        address.to_string()
    }
}

impl fmt::Display for SourceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => path.display().fmt(f),
            Self::Web(url) => url.fmt(f),
            Self::Controller(url) => write!(f, "{CONTROLLER}{url}"),
            Self::Git { address, reference } => write!(f, "git+{address}#{reference}"),
        }
    }
}

impl SourceAddress {
    /// What reads the files there; `None` for a controller, of which the service has the connection. It may keep in `place`, a folder
    /// of its own, what it fetched; `cancel` ends it early.
    pub fn reader(&self, place: &Path, cancel: &Cancel) -> Option<Box<dyn Fetch>> {
        Some(match self {
            Self::Controller(_) => return None,
            Self::Folder(path) => Box::new(FolderFiles::new(path.clone())),
            Self::Web(base) => Box::new(WebFiles::new(base.clone(), place.join("web"), cancel.clone())),
            Self::Git { address, reference } => {
                let (address, reference) = (address.clone(), reference.clone());
                Box::new(GitFiles::new(address, reference, place.join("git"), cancel.clone()))
            }
        })
    }
}

/// The files of a source of releases.
///
/// Guarantees: what it gives is not longer than a file of its kind may be. Nothing is promised of the content: whoever has the
/// source, or is between it and the machine, decides that.
pub trait Fetch: Send {
    /// Begins a look at the source.
    ///
    /// # Errors
    /// When the source cannot be asked.
    fn begin(&mut self) -> Result<(), FetchError> {
        Ok(())
    }

    /// Returns whether there is anything to look at yet.
    fn is_ready(&self) -> bool {
        true
    }

    /// Ends a look, which came to its end or did not.
    fn ended(&mut self, is_done: bool) {
        let _ = is_done;
    }

    /// The channel of the release that the source says is for this machine, if it says so.
    fn channel(&self) -> Option<Name> {
        None
    }

    /// The content of a file; `None` if the source does not have it.
    ///
    /// # Errors
    /// When the source cannot be asked, or the file cannot be read.
    fn file(&mut self, file: &SourceFile) -> Result<Option<Vec<u8>>, FetchError>;
}

/// The reason why a source cannot be asked.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{reason}")]
pub struct FetchError {
    /// Why, in one line.
    pub reason: String,
    /// The time before which the source does not want to be asked again.
    pub until: Option<Timestamp>,
}

impl FetchError {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), until: None }
    }
}

/// The largest bundle, in bytes: its contents and its manifest.
pub(crate) const LARGEST_BUNDLE: u64 = MOST_BYTES * 2;

/// How long a file may be, in bytes.
pub(crate) fn longest(file: &SourceFile) -> u64 {
    match file {
        SourceFile::Blob(_) => LARGEST_BUNDLE,
        SourceFile::Envelope(..) => LONGEST_ENVELOPE as u64,
        SourceFile::Roster => LONGEST as u64,
        SourceFile::Root | SourceFile::Signers(_) | SourceFile::Release(..) => LONGEST_STATEMENT as u64,
    }
}
