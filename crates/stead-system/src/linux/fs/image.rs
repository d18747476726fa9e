//! What was at a name before it was changed, so that it can be put back.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, fstat, openat, statat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use stead_core::digest::hex;

use super::attributes::Attributes;
use super::handle::How;
use super::ownership::Ownership;
use super::status::Status;
use crate::kind::FileKind;

/// What is at a name: enough to put it there again.
#[derive(Clone, Serialize, Deserialize, Default)]
pub struct Image {
    /// The node.
    pub node: ImageNode,
    /// The twelve bits of the mode; of a link they mean nothing.
    pub mode: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// Access lists, labels and attributes of users.
    pub(super) attributes: Attributes,
}

/// The node of an image. The content of a file is beside it, and bytes are kept as such.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub enum ImageNode {
    /// Nothing is there.
    #[default]
    Absent,
    /// A file, with its content.
    File,
    /// A file of which only the mode, the owner or the attributes change.
    SameContent,
    /// A directory, without what is in it.
    Directory,
    /// A symbolic link to this target.
    Link(Vec<u8>),
    /// What cannot be kept: why.
    Lost(Loss),
}

/// Why something cannot be kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Loss {
    /// It is larger than what a run may still keep.
    TooLarge,
    /// It is a device, a socket or a FIFO.
    Special,
    /// This process may change it, and not read it.
    Unreadable,
}

/// What is at a name, for comparisons: two equal ones are the same node with the same content, mode and owner.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Mark {
    /// `None` where nothing is.
    kind: Option<FileKind>,
    /// That of a link means nothing.
    mode: u32,
    uid: u32,
    gid: u32,
    /// The digest of the content of a file, or of the target of a link.
    content: Option<String>,
}

impl Mark {
    pub(super) const ABSENT: Self = Self { kind: None, mode: 0, uid: 0, gid: 0, content: None };

    pub(super) fn of(status: &Status, content: Option<String>) -> Self {
        let mode = if status.kind == FileKind::Symlink { 0 } else { status.mode };
        Self { kind: Some(status.kind), mode, uid: status.uid, gid: status.gid, content }
    }
}

/// Keeps what is about to be changed.
pub trait Keeper: Send + Sync {
    /// How many bytes of content it still takes.
    fn room(&self) -> u64;

    /// Keeps what is at a path without links. Returns once it survives the end of this process.
    ///
    /// # Errors
    /// Then nothing is changed.
    fn keep(&self, path: &Path, image: &Image, content: &[u8]) -> std::io::Result<()>;

    /// Takes note that something cannot be kept.
    ///
    /// # Errors
    /// When nothing may be changed then: the error that it was given.
    fn cannot(&self, error: std::io::Error) -> std::io::Result<()>;

    /// Says that what was kept last of a path is not there any more, or not as it was.
    fn changed(&self, path: &Path);
}

impl Image {
    pub(super) fn of(status: &Status, node: ImageNode, attributes: Attributes) -> Self {
        Self { node, mode: status.mode, uid: status.uid, gid: status.gid, attributes }
    }

    /// The owner and the group.
    pub fn ownership(&self) -> Ownership {
        Ownership { uid: Some(self.uid), gid: Some(self.gid) }
    }

    /// Returns whether this is what was there, given the content that was kept with it.
    pub fn is_at(&self, mark: &Mark, content: &[u8]) -> bool {
        let (kind, digest) = match &self.node {
            ImageNode::Absent => return *mark == Mark::ABSENT,
            ImageNode::Lost(_) => return false,
            ImageNode::SameContent => (FileKind::File, mark.content.clone()),
            ImageNode::File => (FileKind::File, Some(hex(&Sha256::digest(content)))),
            ImageNode::Directory => (FileKind::Directory, None),
            ImageNode::Link(target) => (FileKind::Symlink, Some(hex(&Sha256::digest(target)))),
        };
        let mode = if kind == FileKind::Symlink { 0 } else { self.mode };
        *mark == Mark { kind: Some(kind), mode, uid: self.uid, gid: self.gid, content: digest }
    }

    /// What is at a name in a directory, with the content of a file of at most `max` bytes.
    pub(super) fn read(directory: &impl AsFd, name: &OsStr, max: u64) -> Result<(Self, Vec<u8>), Errno> {
        let stat = match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok((Self::default(), Vec::new())),
            stat => Status::from(stat?),
        };
        let plain = |node| Ok((Self::of(&stat, node, Attributes::default()), Vec::new()));
        match stat.kind {
            FileKind::Special => plain(ImageNode::Lost(Loss::Special)),
            FileKind::Symlink => {
                let target = rustix::fs::readlinkat(directory, name, Vec::new())?;
                plain(ImageNode::Link(target.into_bytes()))
            }
            FileKind::File if stat.size > max => plain(ImageNode::Lost(Loss::TooLarge)),
            kind => match openat(directory, name, How::Read.flags() | OFlags::NOFOLLOW, Mode::empty()) {
                Ok(opened) => Self::read_open(File::from(opened), kind, max),
                Err(Errno::ACCESS | Errno::PERM) if kind == FileKind::Directory => plain(ImageNode::Directory),
                Err(Errno::ACCESS | Errno::PERM) => plain(ImageNode::Lost(Loss::Unreadable)),
                Err(errno) => Err(errno),
            },
        }
    }

    fn read_open(file: File, kind: FileKind, max: u64) -> Result<(Self, Vec<u8>), Errno> {
        let status = Status::from(fstat(&file)?);
        let attributes = Attributes::of(&file)?;
        if kind == FileKind::Directory {
            return Ok((Self::of(&status, ImageNode::Directory, attributes), Vec::new()));
        }
        let mut content = Vec::with_capacity(usize::try_from(status.size).unwrap_or_default() + 1);
        let read = file.take(max + 1).read_to_end(&mut content);
        read.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        let too_large = content.len() as u64 > max;
        let node = if too_large { ImageNode::Lost(Loss::TooLarge) } else { ImageNode::File };
        Ok((Self::of(&status, node, attributes), if too_large { Vec::new() } else { content }))
    }
}
