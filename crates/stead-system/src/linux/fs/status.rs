//! What is known of a file without reading it.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{FileType, Stat};
use rustix::process::{getegid, geteuid};
use serde::{Deserialize, Serialize};

use crate::kind::FileKind;

impl From<FileType> for FileKind {
    fn from(kind: FileType) -> Self {
        match kind {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Symlink,
            _ => Self::Special,
        }
    }
}

/// The result of `fstat`.
#[derive(Clone, Copy, Debug)]
pub struct Status {
    /// The kind of node.
    pub kind: FileKind,
    /// The twelve bits of the mode.
    pub mode: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// Bytes of content.
    pub size: u64,
    /// Names that it has.
    pub links: u64,
    /// Which content of which file it is.
    pub identity: Identity,
    modified: (i64, i64),
}

/// Tells one content of one file from every other, as far as the clock of the file system can.
///
/// Two equal ones mean unchanged content if the first was [`settled`](Self::settled) when it was taken: every change sets the
/// time of the last change, which programs cannot set back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(into = "Numbers", from = "Numbers")]
pub struct Identity {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// An identity as it is stored: an index holds thousands.
type Numbers = (u64, u64, u64, (i64, i64), (i64, i64));

impl From<Identity> for Numbers {
    fn from(identity: Identity) -> Self {
        (identity.device, identity.inode, identity.size, identity.modified, identity.changed)
    }
}

impl From<Numbers> for Identity {
    fn from((device, inode, size, modified, changed): Numbers) -> Self {
        Self { device, inode, size, modified, changed }
    }
}

/// How old a change must be for the next one to show in the times: file systems keep them in steps of up to two seconds.
const STEP: Duration = Duration::from_secs(2);

impl Identity {
    /// The identity of what the system describes so.
    pub fn of(metadata: &Metadata) -> Self {
        Status::from(metadata).identity
    }

    /// Returns whether a change after `now` cannot leave the times as they are. `now` must be taken before the identity.
    pub fn settled(&self, now: SystemTime) -> bool {
        let limit = now.checked_sub(STEP).and_then(|limit| limit.duration_since(UNIX_EPOCH).ok());
        let limit = limit.map(|limit| (i64::try_from(limit.as_secs()).unwrap_or(0), i64::from(limit.subsec_nanos())));
        limit.is_some_and(|limit| self.modified < limit && self.changed < limit)
    }

    /// Device and inode.
    pub fn inode(&self) -> (u64, u64) {
        (self.device, self.inode)
    }

    /// When its content, and when anything of it, was last changed: seconds since 1970 and nanoseconds.
    pub fn times(&self) -> ((i64, i64), (i64, i64)) {
        (self.modified, self.changed)
    }

    /// Returns whether it is the same content of the same file, whatever else was changed of it, such as its names.
    pub fn has_content_of(&self, other: &Self) -> bool {
        Self { changed: other.changed, ..*self } == *other
    }

    /// Returns whether nothing of it has changed for so long, not even its names, given the present in seconds.
    pub(super) fn is_older_than(&self, time: Duration, now: i64) -> bool {
        let age = now.saturating_sub(self.changed.0);
        u64::try_from(age).is_ok_and(|age| age > time.as_secs())
    }

    /// Returns whether a change since could have left it as it is, given the present in seconds and nanoseconds.
    ///
    /// File systems count time in ticks of up to ten milliseconds; two changes within one are not distinguished.
    pub fn is_fresh(&self, now: (i64, i64)) -> bool {
        const TICK_NANOSECONDS: i64 = 50_000_000;
        let (seconds, nanoseconds) = (now.0.saturating_sub(self.changed.0), now.1.saturating_sub(self.changed.1));
        seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds) < TICK_NANOSECONDS
    }
}

impl Status {
    /// That of a file which this process will write, as far as that is known before.
    pub fn to_come(mode: u32, uid: Option<u32>, gid: Option<u32>, size: u64) -> Self {
        let uid = uid.unwrap_or_else(|| geteuid().as_raw());
        let gid = gid.unwrap_or_else(|| getegid().as_raw());
        let identity = Identity { device: 0, inode: 0, size, modified: (0, 0), changed: (0, 0) };
        Self { kind: FileKind::File, mode, uid, gid, size, links: 1, identity, modified: (0, 0) }
    }
}

impl From<&Metadata> for Status {
    fn from(metadata: &Metadata) -> Self {
        let modified = (metadata.mtime(), metadata.mtime_nsec());
        let changed = (metadata.ctime(), metadata.ctime_nsec());
        let (device, inode, size) = (metadata.dev(), metadata.ino(), metadata.size());
        Self {
            kind: FileType::from_raw_mode(metadata.mode()).into(),
            mode: metadata.mode() & 0o7777,
            uid: metadata.uid(),
            gid: metadata.gid(),
            size,
            links: metadata.nlink(),
            identity: Identity { device, inode, size, modified, changed },
            modified,
        }
    }
}

impl Status {
    /// The time of the last change of content.
    pub fn modified_at(&self) -> Option<SystemTime> {
        let nanoseconds = u32::try_from(self.modified.1).ok()?;
        UNIX_EPOCH.checked_add(Duration::new(u64::try_from(self.modified.0).ok()?, nanoseconds))
    }

    /// When anything of it last changed, since 1970.
    pub fn changed_at(&self) -> Duration {
        let (seconds, nanoseconds) = self.identity.changed;
        Duration::new(u64::try_from(seconds).unwrap_or_default(), u32::try_from(nanoseconds).unwrap_or_default())
    }

    /// The time of the last change of content, as RFC 3339 text in UTC.
    pub fn modified(&self) -> Option<String> {
        let nanoseconds = i32::try_from(self.modified.1).ok()?;
        jiff::Timestamp::new(self.modified.0, nanoseconds).ok().map(|time| time.to_string())
    }
}

#[expect(
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::unnecessary_cast,
    reason = "the widths and signs of these differ by platform"
)]
impl From<Stat> for Status {
    fn from(stat: Stat) -> Self {
        let modified = (stat.st_mtime as i64, stat.st_mtime_nsec as i64);
        let changed = (stat.st_ctime as i64, stat.st_ctime_nsec as i64);
        let size = stat.st_size as u64;
        Self {
            kind: FileType::from_raw_mode(stat.st_mode).into(),
            mode: stat.st_mode & 0o7777,
            uid: stat.st_uid,
            gid: stat.st_gid,
            size,
            links: stat.st_nlink as u64,
            identity: Identity { device: stat.st_dev as u64, inode: stat.st_ino as u64, size, modified, changed },
            modified,
        }
    }
}
