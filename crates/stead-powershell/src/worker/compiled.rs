//! The worker as PowerShell runs it: compiled by the PowerShell that starts it first, and kept for later ones.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::PathBuf;

use stead_core::digest::sha256;
use stead_host::cache::{CacheError, CacheFile};
use stead_system::fs::User;
use stead_system::scratch::Scratch;

/// The files that are compiled. Nothing in them is newer than the oldest PowerShell that is used.
const SOURCES: [(&str, &str); 6] = [
    ("Worker.cs", include_str!("source/Worker.cs")),
    ("Runspaces.cs", include_str!("source/Runspaces.cs")),
    ("Calls.cs", include_str!("source/Calls.cs")),
    ("Reports.cs", include_str!("source/Reports.cs")),
    ("Wire.cs", include_str!("source/Wire.cs")),
    ("Json.cs", include_str!("source/Json.cs")),
];

/// What was compiled last, behind a line that says of what and by which version.
const CACHE: CacheFile =
    CacheFile::new("powershell-worker", concat!("stead PowerShell worker ", env!("CARGO_PKG_VERSION"), " "));

/// The variable that tells the loader where the files are.
const FOLDER: &str = "STEAD_POWERSHELL_WORKER";

/// Where what was compiled is kept: in a directory that only this user can change, and for root below such ones.
#[derive(Clone, Debug)]
pub struct KeptWorker {
    /// The directory.
    pub folder: PathBuf,
    /// Whose it is.
    pub user: User,
}

/// The files of one process.
pub(super) struct Files<'a> {
    folder: PathBuf,
    kept: Option<&'a KeptWorker>,
    /// What was kept: the version of PowerShell that compiled it, and that.
    known: Option<(String, Vec<u8>)>,
}

impl<'a> Files<'a> {
    /// Writes the sources for a process, and what was compiled of them before. A file that others could have changed, or that is
    /// not what was written, counts as missing.
    pub(super) fn write(own: &Scratch, kept: Option<&'a KeptWorker>) -> io::Result<Self> {
        let folder = own.path().join("worker");
        own.create_folder(&folder)?;
        for (name, text) in SOURCES {
            own.create_file(&folder.join(name), text.as_bytes(), 0o600)?;
        }
        let known = kept.and_then(read);
        if let Some((version, compiled)) = &known {
            own.create_file(&folder.join(name(version)), compiled, 0o600)?;
        }
        Ok(Self { folder, kept, known })
    }

    /// The variable that tells the loader of them.
    pub(super) fn variable(&self) -> (OsString, OsString) {
        (FOLDER.into(), self.folder.clone().into())
    }

    /// Keeps what a PowerShell of this version compiled before it said so, also where what was kept could not be loaded. No code but
    /// ours has run in it.
    pub(super) fn keep(&self, version: &str) {
        let Some(kept) = self.kept else { return };
        let is_known =
            |compiled: &[u8]| self.known.as_ref().is_some_and(|(of, known)| of == version && known == compiled);
        let written = fs::read(self.folder.join(name(version))).map_err(CacheError::from).and_then(|compiled| {
            if is_known(&compiled) {
                return Ok(());
            }
            CACHE.write(&kept.folder, kept.user, &[format!("{} {version}\n", sources()).as_bytes(), &compiled].concat())
        });
        if let Err(error) = written {
            tracing::debug!(%error, "the compiled worker of PowerShell cannot be kept");
        }
    }
}

/// The version of PowerShell that compiled what is kept, and that.
fn read(kept: &KeptWorker) -> Option<(String, Vec<u8>)> {
    let text = CACHE.read(&kept.folder, kept.user).ok()?;
    let body = CACHE.body(&text)?;
    let end = body.iter().position(|byte| *byte == b'\n')?;
    let (head, compiled) = (std::str::from_utf8(body.get(..end)?).ok()?, body.get(end + 1..)?);
    let (of, version) = head.split_once(' ')?;
    (of == sources()).then(|| (version.to_owned(), compiled.to_vec()))
}

/// The name that the loader looks for.
fn name(version: &str) -> String {
    format!("{version}.dll")
}

/// The digest of the sources.
fn sources() -> String {
    sha256(SOURCES.map(|(_, text)| text).concat())
}
