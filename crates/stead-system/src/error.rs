//! Why file work failed.

use std::io;
use std::path::{Path, PathBuf};

use stead_core::call::{Failure, FailureKind};

use crate::kind::FileKind;

/// File work that could not be done.
#[derive(Debug, thiserror::Error)]
pub enum FsError {
    /// The system refused it.
    #[error("cannot {doing} '{}'", path.display())]
    System {
        /// The action that was tried, as in "cannot …".
        doing: &'static str,
        /// With what.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A link on the way that somebody else could have placed.
    #[error("the symbolic link '{}' is not followed: {because}", link.display())]
    UntrustedLink {
        /// The link.
        link: PathBuf,
        /// Why it is not trusted.
        because: &'static str,
    },
    /// Links lead to links without an end.
    #[error("'{}' leads through too many symbolic links", .0.display())]
    TooManyLinks(PathBuf),
    /// Something else is there.
    #[error("'{}' is a {}, not a {}", path.display(), found.word(), wanted.word())]
    WrongKind {
        /// Where.
        path: PathBuf,
        /// The kind of node that exists.
        found: FileKind,
        /// The kind that it should be.
        wanted: FileKind,
    },
    /// There is more than is read.
    #[error("'{}' has more than {}", path.display(), amount(*max))]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The bytes that it may have.
        max: u64,
    },
    /// The path ends in nothing that can be created or removed, such as `/` or `..`.
    #[error("'{}' does not end in a name", .0.display())]
    NoName(PathBuf),
    /// Somebody else exchanged what had just been created.
    #[error("'{}' was exchanged while it was being created", .0.display())]
    Exchanged(PathBuf),
    /// Somebody else changed it each time that it was to be replaced.
    #[error("'{}' is being changed by another program", .0.display())]
    KeepsChanging(PathBuf),
    /// A file that was written may be lost at a power failure.
    #[error("cannot flush '{}' to the disk", path.display())]
    Flush {
        /// The file, or one on the file system, that could not be flushed.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A program that is called with the root of a system would leave it through a link.
    #[error("a symbolic link on the way to '{}' leads out of the system root for a program that opens it", .0.display())]
    LeavesRoot(PathBuf),
    /// Something is mounted where it should be removed or replaced.
    #[error("'{}' is a mount point", .0.display())]
    MountPoint(PathBuf),
    /// The run was cancelled.
    #[error("the run was cancelled")]
    Cancelled,
    /// It took longer than allowed.
    #[error("it took longer than {} s", .0.as_secs())]
    Deadline(std::time::Duration),
}

impl FsError {
    pub(crate) fn system(doing: &'static str, path: &Path, error: impl Into<io::Error>) -> Self {
        Self::System { doing, path: path.to_owned(), source: error.into() }
    }
}

impl From<FsError> for Failure {
    /// The failure of a call, about the property `path`, with a hint where there is one.
    fn from(error: FsError) -> Self {
        let kind = match &error {
            FsError::NoName(_) => FailureKind::Invalid,
            FsError::Cancelled => FailureKind::Cancelled,
            FsError::MountPoint(_) => FailureKind::Refused,
            FsError::Deadline(_) => FailureKind::Deadline,
            FsError::WrongKind { .. }
            | FsError::TooLarge { .. }
            | FsError::UntrustedLink { .. }
            | FsError::LeavesRoot(_) => FailureKind::Blocked,
            FsError::System { source, .. } => failure_kind(source),
            _ => FailureKind::System,
        };
        let message = match &error {
            FsError::System { source, .. } => format!("{error}: {}{}", reason(source), advice(source)),
            FsError::Flush { source, .. } => format!("{error}: {}", reason(source)),
            FsError::UntrustedLink { .. } => format!("{error}. Name the path that it leads to"),
            FsError::KeepsChanging(_) => format!("{error}. Stop that program, or let it alone manage the file"),
            FsError::WrongKind { found: FileKind::Symlink, wanted: FileKind::File, .. } => {
                format!("{error}. Name the path that it leads to")
            }
            FsError::LeavesRoot(_) => format!("{error}. Make the link relative, to a place below the root"),
            FsError::MountPoint(_) => {
                format!("{error}, which cannot be replaced. Unmount it first, or change what is mounted there")
            }
            _ => error.to_string(),
        };
        Self { property: Some("/path".to_owned()), ..Self::new(kind, message) }
    }
}

/// Returns advice about an error of the system, to stand behind its reason.
pub fn advice(error: &io::Error) -> &'static str {
    if error.kind() == io::ErrorKind::PermissionDenied && !crate::user::is_root() {
        ". Run stead as root, or as a user who may do that"
    } else {
        ""
    }
}

/// A number of bytes, in MiB where it is a multiple of it.
fn amount(bytes: u64) -> String {
    if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) {
        format!("{} MiB", bytes >> 20)
    } else {
        format!("{bytes} bytes")
    }
}

/// The kind of failure that an error of the system is: blocked where it stays until something else is created, removed or
/// permitted.
pub fn failure_kind(error: &io::Error) -> FailureKind {
    use io::ErrorKind::{
        AlreadyExists, DirectoryNotEmpty, InvalidFilename, IsADirectory, NotADirectory, NotFound, PermissionDenied,
        ReadOnlyFilesystem,
    };
    match error.kind() {
        AlreadyExists | DirectoryNotEmpty | InvalidFilename | IsADirectory | NotADirectory | NotFound
        | PermissionDenied | ReadOnlyFilesystem => FailureKind::Blocked,
        _ => FailureKind::System,
    }
}

/// Returns the text of the system's error, without the number that it ends in.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let mut letters = text.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

/// An error and what caused it, in one line.
pub fn error_chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| error.source());
    let said = |cause: &(dyn std::error::Error + 'static)| match cause.downcast_ref() {
        Some(refused) => reason(refused),
        None => cause.to_string(),
    };
    std::iter::once(error.to_string()).chain(causes.map(said)).collect::<Vec<_>>().join(": ")
}
