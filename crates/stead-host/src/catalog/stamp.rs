//! What tells that a file or directory is the one that was seen, unchanged.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

/// Identity and times of a file or directory.
///
/// Two equal stamps mean unchanged content if the first was [`settled`](Self::settled) when it was taken: every change
/// sets `ctime`, which programs cannot set back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// How old a change must be for the next one to show in the time stamps: file systems keep them in steps of up to
/// two seconds.
const STEP: Duration = Duration::from_secs(2);

impl Stamp {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// What tells a directory from every other, whatever its content.
    pub(super) fn identity(&self) -> (u64, u64) {
        (self.device, self.inode)
    }

    /// Whether a change after `now` cannot leave the times as they are. `now` must be taken before the stamp.
    pub(super) fn settled(&self, now: SystemTime) -> bool {
        let limit = now.checked_sub(STEP).and_then(|limit| limit.duration_since(SystemTime::UNIX_EPOCH).ok());
        let limit = limit.map(|limit| (i64::try_from(limit.as_secs()).unwrap_or(0), i64::from(limit.subsec_nanos())));
        limit.is_some_and(|limit| self.modified < limit && self.changed < limit)
    }
}
