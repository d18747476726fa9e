//! What is mounted on the running system, and changing it.

#![expect(clippy::disallowed_methods, reason = "it asks the running kernel, and is not called for another system")]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use stead_core::call::{Failure, Presumed};
use stead_core::destruction::{Entries, Item, ItemKind};
use stead_host::provider::Context;
use stead_system::fs::{Handle, Status};
use stead_system::mount::{self, Flags};
use stead_system::user;

use super::Properties;
use super::options::Options;
use super::point::Point;
use super::source;
use super::table::Entry;
use crate::input::{blocked, cannot, impossible, transient};
use crate::program::SystemProgram;
use crate::removal;
use crate::text::decoded;

const MOUNT: SystemProgram = SystemProgram { name: "mount", package: "mount" };
const UMOUNT: SystemProgram = SystemProgram { name: "umount", package: "mount" };
const SWAPON: SystemProgram = SystemProgram { name: "swapon", package: "mount" };
const SWAPOFF: SystemProgram = SystemProgram { name: "swapoff", package: "mount" };

/// What is mounted at a mount point, on top of all else that is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mounted {
    pub(super) fstype: String,
    pub(super) source: String,
    /// Its number, until it is unmounted.
    id: String,
    /// The mount point without links.
    point: PathBuf,
    /// The options of this mount, and those of the file system, which other mounts of it share.
    options: String,
    shared: String,
    /// The fields that say how mounts below pass to other mounts.
    propagation: Vec<String>,
    device: String,
    /// The directory of the file system that it shows.
    root: String,
    /// Whether its files are in memory, and nowhere else mounted.
    is_volatile: bool,
    /// Whether it hides another mount of which that is true.
    hides_volatile: bool,
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

/// Those of them whose files are only there while they are mounted.
const IN_MEMORY: [&str; 3] = ["tmpfs", "ramfs", "hugetlbfs"];

/// Mount points without which the system does not run.
const REQUIRED: [&str; 7] = ["/", "/proc", "/sys", "/sys/fs/cgroup", "/dev", "/dev/pts", "/run"];

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
    let Some(point) = Point::find(Path::new(path))? else { return Ok(None) };
    let (mut here, elsewhere): (Vec<_>, Vec<_>) =
        Mounted::all()?.into_iter().partition(|mounted| mounted.point == point.path);
    for mounted in &mut here {
        let stays = elsewhere.iter().any(|other| other.device == mounted.device);
        mounted.is_volatile = IN_MEMORY.contains(&mounted.fstype.as_str()) && !stays;
    }
    let top = here.pop();
    let hides_volatile = here.iter().any(|hidden| hidden.is_volatile);
    Ok(top.map(|top| Mounted { hides_volatile, ..top }))
}

fn is_swap(device: &str) -> bool {
    let used = fs::read_to_string("/proc/swaps").unwrap_or_default();
    let Some(path) = source::path(device).and_then(|path| fs::canonicalize(path).ok()) else { return false };
    used.lines().skip(1).filter_map(|line| line.split_whitespace().next()).any(|name| Path::new(&decoded(name)) == path)
}

impl Mounted {
    fn all() -> Result<Vec<Self>, Failure> {
        let table = Path::new("/proc/self/mountinfo");
        let text = fs::read(table).map_err(|error| cannot("read", table, error))?;
        Ok(String::from_utf8_lossy(&text).lines().filter_map(Self::of).collect())
    }

    /// The mount that what is open lies in.
    fn holding(opened: &Handle) -> Result<Option<Self>, Failure> {
        let id = mount::holding(opened).map_err(|error| cannot("read", Path::new("/proc/self/fdinfo"), error))?;
        Ok(Self::all()?.into_iter().find(|mounted| Some(&mounted.id) == id.as_ref()))
    }

    /// A line of mountinfo; see proc(5).
    fn of(line: &str) -> Option<Self> {
        let (front, back) = line.split_once(" - ")?;
        let front: Vec<&str> = front.split(' ').collect();
        let mut back = back.split(' ');
        Some(Self {
            id: (*front.first()?).to_owned(),
            device: (*front.get(2)?).to_owned(),
            root: decoded(front.get(3)?),
            point: decoded(front.get(4)?).into(),
            options: (*front.get(5)?).to_owned(),
            propagation: front.iter().skip(6).map(|field| (*field).to_owned()).collect(),
            fstype: decoded(back.next()?),
            source: decoded(back.next()?),
            shared: back.next().unwrap_or_default().to_owned(),
            is_volatile: false,
            hides_volatile: false,
        })
    }

    fn swap(device: &str) -> Self {
        let [id, options, shared, number, root] = [const { String::new() }; 5];
        Self {
            id,
            fstype: "swap".to_owned(),
            source: device.to_owned(),
            point: PathBuf::new(),
            options,
            shared,
            propagation: Vec::new(),
            device: number,
            root,
            is_volatile: false,
            hides_volatile: false,
        }
    }

    /// The options that it has.
    pub(super) fn options(&self) -> String {
        format!("{},{}", self.options, self.shared)
    }

    /// The properties in which it is not what an entry asks for.
    pub(super) fn differing(&self, wanted: &Entry) -> Vec<&'static str> {
        // systemd mounts it as soon as something is looked for below.
        let is_on_demand = self.fstype == "autofs";
        if wanted.is_swap() || is_on_demand {
            return Vec::new();
        }
        let options = Options::of(&wanted.options);
        if !self.is_of_type(&wanted.fstype, &options) {
            return vec![Properties::FSTYPE];
        }
        if self.has_other_source(wanted, &options) {
            return vec![Properties::DEVICE];
        }
        let differ = options.differ_from(&self.fstype, &self.options, &self.shared)
            || options.differ_in_propagation(&self.propagation);
        if differ { vec![Properties::OPTIONS] } else { Vec::new() }
    }

    fn is_of_type(&self, fstype: &str, options: &Options<'_>) -> bool {
        let is_any = options.is_bind() || matches!(fstype, "auto" | "none") || fstype.contains([',', '.']);
        // What is mounted by a program may be of a type that only the program knows.
        is_any || self.fstype == fstype || self.fstype.starts_with("fuse") || self.fstype.starts_with(fstype)
    }

    /// Returns whether something else is certainly mounted.
    fn has_other_source(&self, wanted: &Entry, options: &Options<'_>) -> bool {
        if options.is_bind() {
            let place = |path: &str| fs::metadata(path).ok().map(|metadata| Status::from(&metadata).identity.inode());
            return place(&wanted.device).is_some_and(|source| place(&wanted.path) != Some(source));
        }
        if WITHOUT_DEVICE.contains(&wanted.fstype.as_str()) {
            return self.root != "/";
        }
        source::differs(&wanted.device, &self.fstype, &self.source, &self.device)
    }

    /// Why it must not be unmounted, if the system or this process could not go on without it.
    fn is_required(&self) -> Option<Failure> {
        let point = self.point.display();
        if REQUIRED.iter().any(|required| Path::new(required) == self.point) {
            let hint = "To change only its entry in /etc/fstab, use Stead/Line";
            let message = format!("'{point}' is required by the running system and cannot be unmounted. {hint}");
            return Some(blocked(Properties::PATH, message));
        }
        // Swap space has no mount point, and an empty path begins every other.
        let has_point = !self.point.as_os_str().is_empty();
        let own = has_point && std::env::current_exe().is_ok_and(|program| program.starts_with(&self.point));
        own.then(|| impossible(Properties::PATH, format!("cannot unmount '{point}': stead runs from it")))
    }

    /// Returns whether an unmount loses files.
    pub(super) fn is_volatile(&self) -> bool {
        self.is_volatile || self.hides_volatile
    }

    /// What an unmount loses, below a path as the instance states it. What another mount hides is not listed.
    pub(super) fn lost(&self, cx: &Context, path: &str) -> Result<Option<Item>, Failure> {
        let point = if self.is_volatile { Point::find(&self.point)? } else { None };
        let opened = point.and_then(|point| point.open().ok());
        let listed = opened.map(|directory| removal::below(&directory, &cx.patience())).transpose()?;
        let mut entries = listed.unwrap_or_default();
        if self.hides_volatile {
            entries.mark_incomplete();
        }
        let is_empty = entries == Entries::default();
        Ok((!is_empty).then(|| Item { path: path.to_owned(), kind: ItemKind::Directory(entries) }))
    }
}

/// What keeps something from being mounted or unmounted, as things are.
pub(super) fn presumed(
    cx: &Context,
    mounted: Option<&Mounted>,
    wanted: &Entry,
    actions: &[Action],
) -> Result<Option<Presumed>, Failure> {
    let certain = |failure: Failure| Presumed::of(failure, Vec::new());
    if !actions.is_empty() && !user::is_root() {
        return Ok(Some(certain(impossible(Properties::STATE, "only root can mount and unmount file systems"))));
    }
    let required = mounted.filter(|_| actions.contains(&Action::Unmount)).and_then(Mounted::is_required);
    if let Some(failure) = required {
        return Ok(Some(certain(failure)));
    }
    let options = Options::of(&wanted.options);
    let program = actions.iter().find_map(|action| program_of(*action, mounted, wanted, &options)?.presumed());
    if !actions.contains(&Action::Mount) {
        return Ok(program);
    }
    let is_needed = !wanted.is_swap() && !options.makes_mount_point();
    let is_missing = is_needed && Point::find(Path::new(&wanted.path))?.is_none();
    let hint = "Create it with a Stead/Directory that this instance depends on";
    let point = is_missing.then(|| {
        Presumed::of(
            blocked(Properties::PATH, format!("there is no directory '{}'. {hint}", wanted.path)),
            vec![cx.resolve(&wanted.path).into()],
        )
    });
    let path = source::path(&wanted.device);
    let is_missing = match &path {
        Some(path) if options.is_bind() => Point::find(path)?.is_none(),
        Some(path) => !WITHOUT_DEVICE.contains(&wanted.fstype.as_str()) && !path.exists(),
        None => false,
    };
    let source = is_missing.then(|| Presumed::of(no_source(wanted), path.into_iter().collect()));
    Ok(Presumed::all([point, source, program]))
}

fn no_source(wanted: &Entry) -> Failure {
    transient(Properties::DEVICE, format!("there is no '{}' to mount", wanted.device))
}

/// The program that carries an action out, if one does. Devices, networks and programs need what `mount` knows: types that
/// are not stated, labels, helpers.
fn program_of(
    action: Action,
    mounted: Option<&Mounted>,
    wanted: &Entry,
    options: &Options<'_>,
) -> Option<&'static SystemProgram> {
    let is_own = options.are_for_kernel() && (options.is_bind() || WITHOUT_DEVICE.contains(&wanted.fstype.as_str()));
    // Programs that serve a file system may have more to end.
    let is_served =
        |mounted: &Mounted| ["fuse", "nfs", "cifs", "smb3"].iter().any(|kind| mounted.fstype.starts_with(kind));
    match action {
        Action::Unmount if wanted.is_swap() => Some(&SWAPOFF),
        Action::Unmount => mounted.is_some_and(is_served).then_some(&UMOUNT),
        Action::Mount if wanted.is_swap() => Some(&SWAPON),
        Action::Remount if options.is_bind() => None,
        Action::Mount | Action::Remount => (!is_own).then_some(&MOUNT),
    }
}

/// Changes what is mounted.
pub(super) fn act(cx: &Context, action: Action, wanted: &Entry) -> Result<(), Failure> {
    let options = Options::of(&wanted.options);
    let program = program_of(action, None, wanted, &options);
    match (action, program) {
        (Action::Unmount, _) => return unmount_all(cx, wanted),
        (Action::Mount, Some(_)) if wanted.is_swap() => return swap_on(cx, wanted),
        // It takes care of all options, but some versions take flags from a bind mount that are not stated.
        (Action::Mount, Some(program)) => {
            mount_with(cx, program, wanted, &wanted.options)?;
            return if options.is_bind() { remount_bound(wanted, &options) } else { Ok(()) };
        }
        (Action::Remount, Some(program)) => mount_with(cx, program, wanted, &options.for_remount())?,
        (Action::Mount, None) if options.is_bind() => bind(wanted, &options)?,
        (Action::Mount, None) => mount_new(wanted, &options)?,
        (Action::Remount, None) if options.is_bind() => remount_bound(wanted, &options)?,
        (Action::Remount, None) => remount(wanted, options.flags(), &options.data())?,
    }
    propagate(wanted, &options)
}

fn with_point(doing: &str, wanted: &Entry, work: impl FnOnce(&Handle) -> io::Result<()>) -> Result<(), Failure> {
    let path = Path::new(&wanted.path);
    let point = Point::find(path)?;
    let point = point.ok_or_else(|| blocked(Properties::PATH, format!("there is no directory '{}'", wanted.path)))?;
    let done = point.open().and_then(|point| work(&point));
    done.map_err(|errno| cannot(doing, path, errno))
}

fn mount_new(wanted: &Entry, options: &Options<'_>) -> Result<(), Failure> {
    with_point("mount", wanted, |point| {
        mount::at(point, &wanted.device, &wanted.fstype, options.flags(), &options.data())
    })
}

fn bind(wanted: &Entry, options: &Options<'_>) -> Result<(), Failure> {
    let source = open_source(wanted)?.ok_or_else(|| no_source(wanted))?;
    with_point("mount", wanted, |point| {
        if options.has("rbind") { mount::bind_recursive(&source, point) } else { mount::bind(&source, point) }
    })?;
    remount_bound(wanted, options)
}

fn open_source(wanted: &Entry) -> Result<Option<Handle>, Failure> {
    let path = Path::new(&wanted.device);
    let opened = Point::find(path)?.map(|source| source.open());
    opened.transpose().map_err(|errno| cannot("open", path, errno))
}

/// Gives a bind mount the flags of what it shows, with those that it states. If that is not there any more, it keeps its own.
fn remount_bound(wanted: &Entry, options: &Options<'_>) -> Result<(), Failure> {
    let source = open_source(wanted)?.map(|source| Mounted::holding(&source));
    let source = source.unwrap_or_else(|| find(&wanted.path, None))?.ok_or_else(|| no_source(wanted))?;
    remount(wanted, options.flags_of_bind(&source.options), "")
}

fn remount(wanted: &Entry, flags: Flags, data: &str) -> Result<(), Failure> {
    with_point("change the options of", wanted, |point| mount::change(point, flags, data))
}

fn propagate(wanted: &Entry, options: &Options<'_>) -> Result<(), Failure> {
    let Some(propagation) = options.propagation() else { return Ok(()) };
    with_point("change the propagation of", wanted, |point| mount::propagate(point, propagation))
}

/// What is mounted over another mount hides it: all of them go.
fn unmount_all(cx: &Context, wanted: &Entry) -> Result<(), Failure> {
    const MOST: usize = 64;
    if wanted.is_swap() {
        let device = source::path(&wanted.device).unwrap_or_else(|| wanted.device.as_str().into());
        return SWAPOFF.run(cx, &["--", &device.to_string_lossy()]).map(|_| ());
    }
    let path = Path::new(&wanted.path);
    for _ in 0..MOST {
        let Some(mounted) = find(&wanted.path, None)? else { return Ok(()) };
        if let Some(required) = mounted.is_required() {
            return Err(required);
        }
        if let Some(program) = program_of(Action::Unmount, Some(&mounted), wanted, &Options::of(&wanted.options)) {
            program.run(cx, &["--", &mounted.point.to_string_lossy()])?;
        } else if let Some(point) = Point::find(path)? {
            let done = mount::remove(&point.through_descriptor());
            done.map_err(|errno| cannot("unmount", path, errno))?;
        }
    }
    Err(blocked(Properties::PATH, format!("more than {MOST} file systems are mounted at '{}'", wanted.path)))
}

fn swap_on(cx: &Context, wanted: &Entry) -> Result<(), Failure> {
    let options = Options::of(&wanted.options).data();
    let mut arguments = if options.is_empty() { Vec::new() } else { vec!["-o", &options] };
    arguments.extend(["--", &wanted.device]);
    SWAPON.run(cx, &arguments).map(|_| ())
}

fn mount_with(cx: &Context, program: &SystemProgram, wanted: &Entry, options: &str) -> Result<(), Failure> {
    // What the path leads to was checked; a missing directory is one that `mount` makes.
    let point = Point::find(Path::new(&wanted.path))?;
    let path = point.map_or_else(|| wanted.path.clone(), |point| point.path.to_string_lossy().into_owned());
    program.run(cx, &["-t", &wanted.fstype, "-o", options, "--", &wanted.device, &path]).map(|_| ())
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
        let on_demand = Mounted::of("36 35 0:40 / /mnt rw,relatime shared:1 - autofs systemd-1 rw,fd=1").unwrap();
        let wanted = Entry::of("/dev/a /mnt ext4 ro,x-systemd.automount 0 2").unwrap();
        assert_eq!(
            (on_demand.differing(&wanted), Mounted { fstype: "ext2".to_owned(), ..on_demand }.differing(&wanted)),
            (vec![], vec!["fstype"])
        );
        assert_eq!(mounted.as_ref().map(|it| it.propagation.concat()).as_deref(), Some("master:1shared:2"));
        assert_eq!(found, Some(("ext3", "/dev/root", "98:0", "rw,noatime,rw,errors=continue".to_owned())));
    }
}
