//! A source: the folder that machines follow.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use stead_hosts::MachineName;
use stead_release::{
    Digest, Envelope, Fleet, Floor, LONGEST, MachineReport, Name, PublicIdentity, Release, ReleaseRefusal, Root,
    Roster, Signed, SourceFile, Walk,
};
use stead_system::fs::{FsError, Writes};

use crate::commands::files;
use crate::input::{self, Unreadable};

/// A source, and its fleet as far as its lists of signers lead.
pub(super) struct Source {
    folder: PathBuf,
    pub(super) fleet: Fleet,
}

/// Why a source cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unusable {
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// Something in it is refused.
    #[error("{}: {refusal}", path.display())]
    Refused { path: PathBuf, refusal: ReleaseRefusal },
    #[error(transparent)]
    Unwritten(#[from] FsError),
}

impl Source {
    /// Reads the source that a root statement is in, with the lists of signers that follow.
    pub(super) fn open(root: &Path) -> Result<Self, Unusable> {
        Self::until(root, u64::MAX)
    }

    /// The same, with the lists of signers before one.
    pub(super) fn until(root: &Path, list: u64) -> Result<Self, Unusable> {
        let bytes = read(root)?;
        let refused = |refusal| Unusable::Refused { path: root.to_path_buf(), refusal };
        let digest = Signed::<Root>::parse(&bytes).map_err(|form| refused(form.into()))?.digest();
        let fleet = Fleet::of_root(&bytes, &digest).map_err(refused)?;
        let mut source = Self { folder: root.parent().unwrap_or(Path::new("")).to_path_buf(), fleet };
        for number in 1..list {
            let path = source.signers(number);
            let Some(bytes) = read_if_there(&path)? else { break };
            source.fleet.follow(&bytes).map_err(|refusal| Unusable::Refused { path, refusal })?;
        }
        Ok(source)
    }

    fn path(&self, file: &SourceFile) -> PathBuf {
        self.folder.join(file.to_string())
    }

    /// Where a list of signers is.
    pub(super) fn signers(&self, number: u64) -> PathBuf {
        self.path(&SourceFile::Signers(number))
    }

    /// Where a release is.
    pub(super) fn release(&self, channel: &Name, number: u64) -> PathBuf {
        self.path(&SourceFile::Release(channel.clone(), number))
    }

    /// Where the roster is.
    pub(super) fn roster_path(&self) -> PathBuf {
        self.path(&SourceFile::Roster)
    }

    /// Where a bundle is.
    pub(super) fn blob(&self, name: &Digest) -> PathBuf {
        self.path(&SourceFile::Blob(name.clone()))
    }

    /// Where the secrets of a release are, sealed to a machine.
    pub(super) fn envelope(&self, channel: &Name, number: u64, machine: &MachineName) -> PathBuf {
        self.path(&SourceFile::Envelope(channel.clone(), number, machine.clone()))
    }

    /// Checks that machines would take a release from a file in its place, whoever it is for.
    pub(super) fn takes(&self, release: &Signed<Release>, file: &Path) -> Result<(), Unusable> {
        let refused = |refusal| Unusable::Refused { path: file.to_path_buf(), refusal };
        let Release { channel, link, expires, .. } = release.statement();
        let mut walk = self.walk(channel, Some(link.number))?;
        walk.step(release.to_text().as_bytes()).map_err(refused)?;
        match walk.newest(&|_| None, Timestamp::now()) {
            Err(ReleaseRefusal::Expired(_)) => Err(refused(ReleaseRefusal::Expired(*expires))),
            _ => Ok(()),
        }
    }

    /// The roster, if there is one.
    pub(super) fn roster(&self) -> Result<Option<Signed<Roster>>, Unusable> {
        self.roster_that(|bytes| self.fleet.roster(bytes, None))
    }

    /// The roster that the next one is made of, if there is one.
    pub(super) fn roster_to_change(&self) -> Result<Option<Signed<Roster>>, Unusable> {
        self.roster_that(|bytes| self.fleet.roster_to_change(bytes))
    }

    fn roster_that(
        &self,
        check: impl FnOnce(&[u8]) -> Result<Signed<Roster>, ReleaseRefusal>,
    ) -> Result<Option<Signed<Roster>>, Unusable> {
        let path = self.roster_path();
        let Some(bytes) = read_if_there(&path)? else { return Ok(None) };
        check(&bytes).map(Some).map_err(|refusal| Unusable::Refused { path, refusal })
    }

    /// Walks over the releases of a channel: to the last one, or to the one before `until`.
    pub(super) fn walk<'s>(&'s self, channel: &'s Name, until: Option<u64>) -> Result<Walk<'s>, Unusable> {
        let mut walk = Walk::new(&self.fleet, channel, Floor::first(&self.fleet));
        while until.is_none_or(|until| walk.next() < until) {
            let path = self.release(channel, walk.next());
            let Some(bytes) = read_if_there(&path)? else { break };
            walk.step(&bytes).map_err(|refusal| Unusable::Refused { path, refusal })?;
        }
        Ok(walk)
    }

    /// The channels that there are: folders with a first release.
    pub(super) fn channels(&self) -> Result<Vec<Name>, Unusable> {
        let failed = |source| Unreadable::File { path: self.folder.clone(), source };
        let mut channels = Vec::new();
        let folder = if self.folder.as_os_str().is_empty() { Path::new(".") } else { &self.folder };
        for entry in std::fs::read_dir(folder).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let channel = name.to_str().and_then(|name| name.parse::<Name>().ok());
            channels.extend(channel.filter(|channel| self.release(channel, 1).is_file()));
        }
        channels.sort();
        Ok(channels)
    }
}

/// Reads a file that is signed.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, Unreadable> {
    input::read_bytes(path, LONGEST)
}

fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, Unreadable> {
    if path.symlink_metadata().is_ok() { read(path).map(Some) } else { Ok(None) }
}

/// Writes a file of a source, whole, with the folder that it lies in.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), Unusable> {
    let failed = |source| Unreadable::File { path: path.to_path_buf(), source };
    let path = std::path::absolute(path).map_err(failed)?;
    if let Some(folder) = path.parent() {
        files::create_directory(folder)?;
    }
    Ok(files::write(&path, bytes, 0o644, &Writes::default())?)
}

/// The kinds of files that are signed, by what the first line says.
pub(super) enum AnyStatement {
    Root(Signed<Root>),
    Signers(Signed<stead_release::Succession>),
    Roster(Signed<Roster>),
    Release(Signed<Release>),
    Identity(Signed<PublicIdentity>),
    Envelope(Box<Envelope>),
    Report(Signed<MachineReport>),
}

impl AnyStatement {
    /// Reads a file of any kind.
    pub(super) fn read(path: &Path) -> Result<Self, Unusable> {
        Self::of(&read(path)?, path)
    }

    /// The kind of a file's bytes.
    pub(super) fn of(bytes: &[u8], path: &Path) -> Result<Self, Unusable> {
        let begins = |purpose: &str| bytes.starts_with(purpose.as_bytes());
        let read = if begins("stead-root ") {
            Signed::parse(bytes).map(Self::Root)
        } else if begins("stead-signers ") {
            Signed::parse(bytes).map(Self::Signers)
        } else if begins("stead-roster ") {
            Signed::parse(bytes).map(Self::Roster)
        } else if begins("stead-identity ") {
            Signed::parse(bytes).map(Self::Identity)
        } else if begins("stead-report ") {
            Signed::parse(bytes).map(Self::Report)
        } else if begins("stead-envelope ") {
            Envelope::parse(bytes).map(|envelope| Self::Envelope(Box::new(envelope)))
        } else {
            Signed::parse(bytes).map(Self::Release)
        };
        read.map_err(|form| Unusable::Refused { path: path.to_path_buf(), refusal: form.into() })
    }
}
