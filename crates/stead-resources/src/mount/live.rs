//! What is mounted on the running system, and changing it.

use std::ffi::CString;
use std::fs;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive, mount_remount, unmount};
use stead_core::call::{Failure, Presumed};
use stead_host::provider::Context;

use super::options::Options;
use super::table::{Entry, decoded};
use crate::input::{cannot, refused};
use crate::program::{self, Invocation};

/// What is mounted at a mount point, on top of all else that is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mounted {
    pub(super) fstype: String,
    pub(super) source: String,
    /// The options of this mount, and those of the file system, which other mounts of it share.
    options: String,
    shared: String,
    device: String,
    /// The directory of the file system that it shows.
    root: String,
}

/// File systems without a device, which the kernel mounts as it is asked to.
const WITHOUT_DEVICE: [&str; 12] = [
    "tmpfs",
    "ramfs",
    "proc",
    "sysfs",
    "devpts",
    "devtmpfs",
    "mqueue",
    "hugetlbfs",
    "debugfs",
    "tracefs",
    "configfs",
    "cgroup2",
];

/// What is done to a mount.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Action {
    Mount,
    Remount,
    Unmount,
}

impl Action {
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Mount => "mount it",
            Self::Remount => "mount it again with its options",
            Self::Unmount => "unmount it",
        }
    }
}

/// What is mounted at a path, if anything is; for swap space, whether it is used.
pub(super) fn find(path: &str, device: Option<&str>) -> Result<Option<Mounted>, Failure> {
    if path == super::table::NO_PATH {
        return Ok(device.filter(|device| is_swap(device)).map(Mounted::swap));
    }
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.into());
    let table = Path::new("/proc/self/mountinfo");
    let text = fs::read(table).map_err(|error| cannot("read", table, error))?;
    let text = String::from_utf8_lossy(&text);
    let at = |line: &str| line.split(' ').nth(4).is_some_and(|field| Path::new(&decoded(field)) == real);
    Ok(text.lines().rev().find(|line| at(line)).and_then(Mounted::of))
}

fn is_swap(device: &str) -> bool {
    let used = fs::read_to_string("/proc/swaps").unwrap_or_default();
    let Some(path) = block_device(device).and_then(|path| fs::canonicalize(path).ok()) else { return false };
    used.lines().skip(1).filter_map(|line| line.split_whitespace().next()).any(|name| Path::new(&decoded(name)) == path)
}

impl Mounted {
    /// A line of mountinfo; see proc(5).
    fn of(line: &str) -> Option<Self> {
        let (front, back) = line.split_once(" - ")?;
        let front: Vec<&str> = front.split(' ').collect();
        let mut back = back.split(' ');
        Some(Self {
            device: (*front.get(2)?).to_owned(),
            root: decoded(front.get(3)?),
            options: (*front.get(5)?).to_owned(),
            fstype: decoded(back.next()?),
            source: decoded(back.next()?),
            shared: back.next().unwrap_or_default().to_owned(),
        })
    }

    fn swap(device: &str) -> Self {
        let [options, shared, number, root] = [const { String::new() }; 4];
        Self { fstype: "swap".to_owned(), source: device.to_owned(), options, shared, device: number, root }
    }

    /// The options that it has.
    pub(super) fn options(&self) -> String {
        format!("{},{}", self.options, self.shared)
    }

    /// The properties in which it is not what an entry asks for.
    pub(super) fn differing(&self, wanted: &Entry) -> Vec<&'static str> {
        if wanted.is_swap() {
            return Vec::new();
        }
        let options = Options::of(&wanted.options);
        if !self.is_of_type(&wanted.fstype, &options) {
            return vec!["fstype"];
        }
        if self.has_other_source(wanted, &options) {
            return vec!["device"];
        }
        if options.differ_from(&self.fstype, &self.options, &self.shared) { vec!["options"] } else { Vec::new() }
    }

    fn is_of_type(&self, fstype: &str, options: &Options<'_>) -> bool {
        let is_any = options.is_bind() || matches!(fstype, "auto" | "none") || fstype.contains([',', '.']);
        // What is mounted by a program may be of a type that only the program knows.
        is_any || self.fstype == fstype || self.fstype.starts_with("fuse") || self.fstype.starts_with(fstype)
    }

    /// Whether something else is certainly mounted.
    fn has_other_source(&self, wanted: &Entry, options: &Options<'_>) -> bool {
        if options.is_bind() {
            let place = |path: &str| fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()));
            return place(&wanted.device).is_some_and(|source| place(&wanted.path) != Some(source));
        }
        let number =
            |path: &Path| fs::metadata(path).ok().map(|metadata| metadata.rdev()).filter(|number| *number != 0);
        if WITHOUT_DEVICE.contains(&wanted.fstype.as_str()) {
            return self.root != "/";
        }
        let Some(stated) = block_device(&wanted.device).and_then(|path| number(&path)) else { return false };
        let of_number = format!("{}:{}", rustix::fs::major(stated), rustix::fs::minor(stated));
        self.source.starts_with("/dev/") && self.device != of_number && number(Path::new(&self.source)) != Some(stated)
    }
}

/// Where a device is that is stated by its path, label or UUID.
fn block_device(device: &str) -> Option<PathBuf> {
    const TAGS: [(&str, &str); 4] =
        [("UUID=", "by-uuid"), ("LABEL=", "by-label"), ("PARTUUID=", "by-partuuid"), ("PARTLABEL=", "by-partlabel")];
    let tagged = TAGS.iter().find_map(|(tag, folder)| Some((folder, device.strip_prefix(tag)?.trim_matches('"'))));
    match tagged {
        Some((folder, value)) => Some(Path::new("/dev/disk").join(folder).join(value.replace(' ', "\\x20"))),
        None => device.starts_with('/').then(|| device.into()),
    }
}

/// What keeps something from being mounted, as things are.
pub(super) fn presumed(cx: &Context, wanted: &Entry, actions: &[Action]) -> Option<Presumed> {
    if !actions.is_empty() && !rustix::process::geteuid().is_root() {
        let failure = refused("state", "only root can mount and unmount file systems");
        return Some(Presumed { failure, paths: Vec::new() });
    }
    if !actions.contains(&Action::Mount) {
        return None;
    }
    let options = Options::of(&wanted.options);
    let point = || {
        let is_needed = !wanted.is_swap() && !options.makes_mount_point();
        let missing = is_needed && !Path::new(&wanted.path).exists();
        let hint = "Create it with a Stead/Directory that this instance depends on";
        missing.then(|| Presumed {
            failure: refused("path", format!("there is no directory '{}'. {hint}", wanted.path)),
            paths: vec![cx.resolve(&wanted.path)],
        })
    };
    let source = || {
        let is_path = options.is_bind() || !WITHOUT_DEVICE.contains(&wanted.fstype.as_str());
        let path = block_device(&wanted.device).filter(|path| is_path && !path.exists())?;
        let failure = refused("device", format!("there is no '{}' to mount", wanted.device));
        Some(Presumed { failure, paths: vec![path] })
    };
    Presumed::all([point(), source()])
}

/// Changes what is mounted.
pub(super) fn act(cx: &Context, action: Action, wanted: &Entry) -> Result<(), Failure> {
    let options = Options::of(&wanted.options);
    let is_own = options.are_for_kernel() && (options.is_bind() || WITHOUT_DEVICE.contains(&wanted.fstype.as_str()));
    match action {
        Action::Unmount => unmount_all(cx, wanted),
        Action::Mount if wanted.is_swap() => swap_on(cx, wanted),
        Action::Mount | Action::Remount if !is_own => with_program(cx, action, wanted, &options),
        Action::Mount if options.is_bind() => bind(wanted, &options),
        Action::Mount => mount_new(wanted, &options),
        Action::Remount => remount(wanted, &options),
    }
}

/// The mount point, opened by a path that only root could have made lead elsewhere.
fn with_point(wanted: &Entry, work: impl FnOnce(&str) -> rustix::io::Result<()>) -> Result<(), Failure> {
    let path = Path::new(&wanted.path);
    let opened = stead_host::fs::open(path, OFlags::PATH)?;
    let point = opened.ok_or_else(|| refused("path", format!("there is no directory '{}'", wanted.path)))?;
    work(&format!("/proc/self/fd/{}", point.as_raw_fd())).map_err(|errno| cannot("mount", path, errno))
}

fn mount_new(wanted: &Entry, options: &Options<'_>) -> Result<(), Failure> {
    let data = CString::new(options.data()).map_err(|error| refused("options", error.to_string()))?;
    with_point(wanted, |point| {
        mount(wanted.device.as_str(), point, wanted.fstype.as_str(), options.flags(), data.as_c_str())
    })
}

fn bind(wanted: &Entry, options: &Options<'_>) -> Result<(), Failure> {
    let source = wanted.device.as_str();
    with_point(wanted, |point| {
        if options.has("rbind") { mount_bind_recursive(source, point) } else { mount_bind(source, point) }
    })?;
    // It has the flags of where it comes from until then.
    remount(wanted, options)
}

fn remount(wanted: &Entry, options: &Options<'_>) -> Result<(), Failure> {
    let (flags, data) = if options.is_bind() {
        (options.flags() | MountFlags::BIND, String::new())
    } else {
        (options.flags(), options.data())
    };
    let done = mount_remount(wanted.path.as_str(), flags, data.as_str());
    done.map_err(|errno| cannot("change the options of", Path::new(&wanted.path), errno))
}

/// What is mounted over another mount hides it: all of them go.
fn unmount_all(cx: &Context, wanted: &Entry) -> Result<(), Failure> {
    const MOST: usize = 64;
    if wanted.is_swap() {
        let device = block_device(&wanted.device).unwrap_or_else(|| wanted.device.as_str().into());
        return run(cx, "swapoff", &["--", &device.to_string_lossy()]);
    }
    for _ in 0..MOST {
        let Some(mounted) = find(&wanted.path, None)? else { return Ok(()) };
        // Programs that serve a file system may have more to end.
        if mounted.fstype.starts_with("fuse") || mounted.fstype.starts_with("nfs") || mounted.fstype == "cifs" {
            run(cx, "umount", &["--", &wanted.path])?;
        } else {
            let done = unmount(wanted.path.as_str(), UnmountFlags::NOFOLLOW);
            done.map_err(|errno| cannot("unmount", Path::new(&wanted.path), errno))?;
        }
    }
    Err(refused("path", format!("more than {MOST} file systems are mounted at '{}'", wanted.path)))
}

fn swap_on(cx: &Context, wanted: &Entry) -> Result<(), Failure> {
    let options = Options::of(&wanted.options).data();
    let mut arguments = if options.is_empty() { Vec::new() } else { vec!["-o", &options] };
    arguments.extend(["--", &wanted.device]);
    run(cx, "swapon", &arguments)
}

/// Devices, networks and programs need what `mount` knows: types that are not stated, labels, helpers.
fn with_program(cx: &Context, action: Action, wanted: &Entry, options: &Options<'_>) -> Result<(), Failure> {
    let stated = if action == Action::Remount { options.for_remount() } else { wanted.options.clone() };
    run(cx, "mount", &["-t", &wanted.fstype, "-o", &stated, "--", &wanted.device, &wanted.path])
}

fn run(cx: &Context, name: &str, arguments: &[&str]) -> Result<(), Failure> {
    let invocation = Invocation {
        program: name.to_owned(),
        arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
        environment: vec![("LC_ALL".to_owned(), "C.UTF-8".to_owned())],
        directory: PathBuf::from("/"),
        timeout: None,
    };
    let ended = program::run(cx, &invocation, name)?;
    if ended.code == 0 { Ok(()) } else { Err(ended.failure(name)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_mountinfo_is_taken_apart() {
        let line = "36 35 98:0 /mnt1 /mnt\\0402 rw,noatime master:1 shared:2 - ext3 /dev/root rw,errors=continue";
        let mounted = Mounted::of(line);
        let found =
            mounted.as_ref().map(|it| (it.fstype.as_str(), it.source.as_str(), it.device.as_str(), it.options()));
        assert_eq!(found, Some(("ext3", "/dev/root", "98:0", "rw,noatime,rw,errors=continue".to_owned())));
    }

    #[test]
    fn a_device_is_found_by_its_label() {
        assert_eq!(block_device("UUID=\"1-2\"").as_deref(), Some(Path::new("/dev/disk/by-uuid/1-2")));
        assert_eq!(block_device("LABEL=a b").as_deref(), Some(Path::new("/dev/disk/by-label/a\\x20b")));
        assert_eq!(block_device("server:/srv"), None);
    }
}
