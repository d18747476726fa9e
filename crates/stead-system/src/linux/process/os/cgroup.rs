//! Control groups of version 2. A program that a process starts is in its group, whatever it does with its session,
//! its parents, its environment and its signals, and the kernel ends the whole group at once.

use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, mkdirat, openat, unlinkat};
use rustix::io::Errno;

/// The prefix of the names of these groups.
const PREFIX: &str = "stead-";

/// How long it takes at most until it is noticed that a group is empty.
const POLL: Duration = Duration::from_millis(2);

/// A group within that of the process that created it.
pub(in crate::linux::process) struct Group {
    directory: OwnedFd,
}

impl Group {
    /// Creates a group for this process, with a name that ends in `token`, and removes empty ones of processes that are gone.
    ///
    /// Fails where version 2 is not mounted or cannot be written, and before Linux 5.14, which cannot end a group at once.
    pub(in crate::linux::process) fn create(token: &str) -> io::Result<Self> {
        let own = open(&directory_of(&current()?)?)?;
        remove_abandoned(&own);
        let name = format!("{PREFIX}{}-{token}", std::process::id());
        mkdirat(&own, name.as_str(), Mode::RWXU | Mode::RGRP | Mode::XGRP | Mode::ROTH | Mode::XOTH)?;
        let group = Self { directory: openat(&own, name.as_str(), DIRECTORY, Mode::empty())? };
        if openat(&group.directory, "cgroup.kill", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()).is_err() {
            group.remove();
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(group)
    }

    /// The group with a name that ends in `token`: within that of this process or beside it, or of the process that was in
    /// the group `recorded`, by [`current`], when it created this one or later.
    pub(in crate::linux::process) fn find(token: &str, recorded: Option<&str>) -> Option<Self> {
        let own = current().ok();
        let places = recorded.into_iter().chain(own.as_deref());
        places.flat_map(|place| [place, outer(place)]).find_map(|place| Self::find_within(place, token))
    }

    fn find_within(place: &str, token: &str) -> Option<Self> {
        let place = open(&directory_of(place).ok()?).ok()?;
        let is_it = |name: &CString| is_ours(name) && text(name).is_some_and(|name| name.ends_with(token));
        let name = children(&place).into_iter().find(is_it)?;
        Some(Self { directory: openat(&place, &*name, DIRECTORY, Mode::empty()).ok()? })
    }

    /// A group by its directory; `None` if it is not a directory.
    pub(in crate::linux::process) fn of_directory(directory: OwnedFd) -> Option<Self> {
        let status = rustix::fs::fstat(&directory).ok()?;
        FileType::from_raw_mode(status.st_mode).is_dir().then_some(Self { directory })
    }

    /// Moves this process into it, and with it what this process will start.
    pub(in crate::linux::process) fn enter(&self) -> io::Result<()> {
        write(&self.directory, "cgroup.procs", "0")
    }

    /// Moves this process to where it was.
    pub(in crate::linux::process) fn leave(&self) -> io::Result<()> {
        write(&self.directory, "../cgroup.procs", "0")
    }

    /// The processes in it, but for those in groups that they made themselves.
    pub(in crate::linux::process) fn members(&self) -> Vec<i32> {
        let listed = read(&self.directory, "cgroup.procs").unwrap_or_default();
        listed.lines().filter_map(|pid| pid.parse().ok()).collect()
    }

    /// Kills every process in the group and below it, and waits up to `patience` until they are gone.
    pub(in crate::linux::process) fn end(&self, patience: Duration) {
        let begun = Instant::now();
        while self.is_populated() && begun.elapsed() < patience {
            // Repeatedly: a process that is moved here meanwhile is not ended by the kill before.
            let _ = write(&self.directory, "cgroup.kill", "1");
            std::thread::sleep(POLL);
        }
    }

    /// Removes it and the groups below it. What still has a process stays.
    pub(in crate::linux::process) fn remove(&self) {
        let _ = self.remove_below();
        // Its own name is known to its parent alone.
        if let (Ok(parent), Ok(own)) =
            (openat(&self.directory, "..", DIRECTORY, Mode::empty()), identity(&self.directory))
        {
            let is_own = |name: &CString| {
                openat(&parent, &**name, DIRECTORY, Mode::empty()).is_ok_and(|child| identity(&child).ok() == Some(own))
            };
            if let Some(name) = children(&parent).iter().find(|name| is_ours(name) && is_own(name)) {
                let _ = unlinkat(&parent, &**name, AtFlags::REMOVEDIR);
            }
        }
    }

    /// Without recursion: a program can make as many levels as it likes.
    fn remove_below(&self) -> io::Result<()> {
        let (mut at, mut names) = (self.directory.try_clone()?, Vec::new());
        loop {
            if let Some(name) = children(&at).into_iter().next() {
                at = openat(&at, &*name, DIRECTORY, Mode::empty())?;
                names.push(name);
            } else {
                let Some(name) = names.pop() else { return Ok(()) };
                at = openat(&at, "..", DIRECTORY, Mode::empty())?;
                unlinkat(&at, &*name, AtFlags::REMOVEDIR)?;
            }
        }
    }

    fn is_populated(&self) -> bool {
        read(&self.directory, "cgroup.events").is_ok_and(|events| events.lines().any(|line| line == "populated 1"))
    }
}

impl AsFd for Group {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

fn open(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, DIRECTORY, Mode::empty())?)
}

/// The group that this process is in, as a path from the outermost one, which is empty.
pub(in crate::linux::process) fn current() -> io::Result<String> {
    let groups = fs::read_to_string("/proc/self/cgroup")?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/"));
    group.map(str::to_owned).ok_or_else(|| io::ErrorKind::Unsupported.into())
}

/// The group that a group lies in.
fn outer(group: &str) -> &str {
    group.rsplit_once('/').map_or("", |(outer, _)| outer)
}

/// The directory of a group.
fn directory_of(group: &str) -> io::Result<PathBuf> {
    let unsupported = || io::Error::from(io::ErrorKind::Unsupported);
    // It is outside of what this process can see.
    if group.split('/').any(|name| name == "..") {
        return Err(unsupported());
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    mounts.lines().find_map(|line| below_mount(line, group)).ok_or_else(unsupported)
}

/// The path of a group, if this line describes a mount of version 2 that shows it.
fn below_mount(line: &str, group: &str) -> Option<PathBuf> {
    let (mount, kind) = line.split_once(" - ")?;
    let mut fields = mount.split(' ').skip(3);
    let (root, point) = (fields.next()?, fields.next()?);
    // A path with a blank is escaped here; nobody mounts it there.
    let shown = kind.starts_with("cgroup2 ") && !point.contains('\\');
    let below = Path::new("/").join(group);
    shown.then(|| below.strip_prefix(root).ok().map(|below| Path::new(point).join(below))).flatten()
}

/// Removes groups that were left when a process and what supervised it were killed, and that are empty by now.
fn remove_abandoned(own: &OwnedFd) {
    for name in children(own).iter().filter(|name| is_ours(name)) {
        let pid = text(name).and_then(|name| name.strip_prefix(PREFIX)?.split('-').next()?.parse().ok());
        if pid.is_some_and(|pid| super::procfs::stat(pid).is_none()) {
            let _ = unlinkat(own, &**name, AtFlags::REMOVEDIR);
        }
    }
}

fn is_ours(name: &CString) -> bool {
    text(name).is_some_and(|name| name.starts_with(PREFIX))
}

fn text(name: &CStr) -> Option<&str> {
    name.to_str().ok()
}

/// The groups in a group.
fn children(directory: &OwnedFd) -> Vec<CString> {
    let entries = Dir::read_from(directory).into_iter().flatten().flatten();
    let groups = entries.filter(|entry| entry.file_type() == FileType::Directory);
    groups.map(|entry| entry.file_name().to_owned()).filter(|name| !name.to_bytes().starts_with(b".")).collect()
}

fn identity(directory: &OwnedFd) -> Result<(u64, u64), Errno> {
    rustix::fs::fstat(directory).map(|status| (status.st_dev, status.st_ino))
}

fn write(directory: &OwnedFd, name: &str, text: &str) -> io::Result<()> {
    let file = openat(directory, name, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(&file, text.as_bytes())?;
    Ok(())
}

fn read(directory: &OwnedFd, name: &str) -> io::Result<String> {
    use std::io::Read;
    let mut text = String::new();
    let file = openat(directory, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    fs::File::from(file).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_found_below_the_mount_that_shows_it() {
        let unified = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate";
        let bound = "31 23 0:26 /system.slice /sys/fs/cgroup/unified rw shared:9 - cgroup2 none rw";
        let other = "29 23 0:25 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory";
        let found = |line: &str, group: &str| below_mount(line, group);
        assert_eq!(found(unified, "system.slice/a.service"), Some("/sys/fs/cgroup/system.slice/a.service".into()));
        assert_eq!(found(unified, ""), Some("/sys/fs/cgroup/".into()));
        assert_eq!(found(bound, "system.slice/a.service"), Some("/sys/fs/cgroup/unified/a.service".into()));
        assert_eq!((found(bound, "user.slice"), found(other, "")), (None, None));
    }
}
