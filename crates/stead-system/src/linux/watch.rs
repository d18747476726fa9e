//! Watching what instances read and manage: what changes is noticed the moment it happens.
//!
//! A folder is watched once for everything in it, so that a file that is replaced, removed or created anew is noticed as
//! well. What cannot be watched is left to the interval, and named.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;
use stead_core::claims::{Claim, Claims, Extent};

/// An instance and what it reads and manages.
pub struct Watched {
    /// Its path.
    pub instance: String,
    /// The paths that it reads and manages.
    pub claims: Claims,
}

/// The answer to a request to watch something.
pub struct WatchOutcome {
    /// The instances that cannot be watched, by their paths.
    pub unwatched: BTreeSet<String>,
    /// Those of which a folder is watched that was not before, by their paths: something may have happened in it until then.
    pub newly: BTreeSet<String>,
}

/// The kind of change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Drift {
    /// Something that these instances read or manage, by their paths.
    Instances(BTreeSet<String>),
    /// So much changed at once that the kernel lost count: it may be anything.
    Anything,
}

/// Everything that makes a file, its content or its attributes another.
const CHANGES: WatchFlags = WatchFlags::from_bits_retain(
    WatchFlags::ATTRIB.bits()
        | WatchFlags::CLOSE_WRITE.bits()
        | WatchFlags::CREATE.bits()
        | WatchFlags::DELETE.bits()
        | WatchFlags::MODIFY.bits()
        | WatchFlags::MOVED_FROM.bits()
        | WatchFlags::MOVED_TO.bits()
        | WatchFlags::DELETE_SELF.bits()
        | WatchFlags::MOVE_SELF.bits()
        | WatchFlags::ONLYDIR.bits(),
);

/// Watches folders. Clones watch the same ones.
#[derive(Clone)]
pub struct Watcher {
    queue: Arc<OwnedFd>,
    folders: Arc<Mutex<Folders>>,
}

#[derive(Default)]
struct Folders {
    by_path: HashMap<PathBuf, i32>,
    by_descriptor: HashMap<i32, Folder>,
}

/// A folder that is watched.
#[derive(Default)]
struct Folder {
    path: PathBuf,
    /// Who manages an entry, by its name.
    entries: HashMap<OsString, BTreeSet<String>>,
    /// Who manages which entries there are.
    all: BTreeSet<String>,
}

impl Watcher {
    /// One that watches nothing yet.
    pub fn new() -> io::Result<Self> {
        let queue = inotify::init(CreateFlags::CLOEXEC)?;
        Ok(Self { queue: Arc::new(queue), folders: Arc::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Folders> {
        self.folders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches this, and nothing else any more.
    pub fn watch(&self, watched: &[Watched]) -> WatchOutcome {
        let mut wanted: HashMap<PathBuf, Folder> = HashMap::new();
        let mut unwatched = BTreeSet::new();
        for Watched { instance, claims } in watched {
            if !add(&mut wanted, instance, claims) {
                unwatched.insert(instance.clone());
            }
        }
        let mut folders = self.lock();
        let former = std::mem::take(&mut *folders);
        let mut newly = BTreeSet::new();
        for (path, mut folder) in wanted {
            let known = former.by_path.get(&path).copied();
            let descriptor = known.map_or_else(|| inotify::add_watch(&*self.queue, &path, CHANGES), Ok);
            match descriptor {
                Ok(descriptor) => {
                    if known.is_none() {
                        newly.extend(folder.everybody());
                    }
                    folder.path.clone_from(&path);
                    folders.by_path.insert(path, descriptor);
                    // Two paths may lead to one folder.
                    folders.by_descriptor.entry(descriptor).or_default().add(folder);
                }
                Err(_) => unwatched.extend(folder.everybody()),
            }
        }
        for (path, descriptor) in &former.by_path {
            if !folders.by_path.contains_key(path) && !folders.by_descriptor.contains_key(descriptor) {
                let _ = inotify::remove_watch(&*self.queue, *descriptor);
            }
        }
        WatchOutcome { unwatched, newly }
    }

    /// Watches one more instance; whether all of it can be watched.
    pub fn add(&self, watched: &Watched) -> bool {
        let mut wanted = HashMap::new();
        let mut all = add(&mut wanted, &watched.instance, &watched.claims);
        let mut folders = self.lock();
        for (path, folder) in wanted {
            all &= folders.watch(&self.queue, path, folder).is_some();
        }
        all
    }

    /// Watches an instance no longer. `claims` is what it was added with.
    pub fn remove(&self, watched: &Watched) {
        let mut wanted = HashMap::new();
        add(&mut wanted, &watched.instance, &watched.claims);
        let mut folders = self.lock();
        for (path, folder) in wanted {
            folders.forget(&self.queue, &path, &folder, &watched.instance);
        }
    }

    /// Hands on what changes. Returns when changes cannot be read any more.
    pub fn run(&self, mut woken: impl FnMut(Drift)) {
        while let Ok(drift) = self.changed(None) {
            drift.into_iter().for_each(&mut woken);
        }
    }

    /// Returns the changes, waiting at most so long for one; without a limit, as long as it takes.
    ///
    /// Errors: changes cannot be read any more.
    pub fn changed(&self, longest: Option<Duration>) -> io::Result<Option<Drift>> {
        let limit = longest.map(Timespec::try_from).and_then(Result::ok);
        let mut queue = [PollFd::new(&*self.queue, PollFlags::IN)];
        match poll(&mut queue, limit.as_ref()) {
            Ok(0) | Err(Errno::INTR) => return Ok(None),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let mut buffer = vec![MaybeUninit::<u8>::uninit(); 64 << 10];
        let mut reader = inotify::Reader::new(&*self.queue, &mut buffer);
        let mut instances = BTreeSet::new();
        let mut lost = false;
        // Everything that is in the buffer belongs together.
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            // A folder that is gone is watched again after a look at everything.
            lost |= event.events().intersects(
                ReadFlags::QUEUE_OVERFLOW | ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::UNMOUNT,
            );
            let name = event.file_name().map(|name| name.to_bytes().to_owned());
            self.lock().changed(event.wd(), name.as_deref(), event.events(), &mut instances);
            if reader.is_buffer_empty() {
                break;
            }
        }
        Ok(match (lost, instances.is_empty()) {
            (true, _) => Some(Drift::Anything),
            (false, true) => None,
            (false, false) => Some(Drift::Instances(instances)),
        })
    }
}

impl Folders {
    /// Watches a folder for those who manage something in it, besides those it is watched for; `None` where it cannot be.
    fn watch(&mut self, queue: &OwnedFd, path: PathBuf, mut folder: Folder) -> Option<()> {
        let descriptor = match self.by_path.get(&path) {
            Some(descriptor) => *descriptor,
            None => inotify::add_watch(queue, &path, CHANGES).ok()?,
        };
        folder.path.clone_from(&path);
        self.by_path.insert(path, descriptor);
        // Two paths may lead to one folder.
        self.by_descriptor.entry(descriptor).or_default().add(folder);
        Some(())
    }

    /// Watches what an instance manages in a folder no longer, nor the folder if that was the last.
    fn forget(&mut self, queue: &OwnedFd, path: &Path, managed: &Folder, instance: &str) {
        let Some(descriptor) = self.by_path.get(path).copied() else { return };
        let Some(folder) = self.by_descriptor.get_mut(&descriptor) else { return };
        folder.all.remove(instance);
        for name in managed.entries.keys() {
            if let Some(instances) = folder.entries.get_mut(name) {
                instances.remove(instance);
                if instances.is_empty() {
                    folder.entries.remove(name);
                }
            }
        }
        if folder.all.is_empty() && folder.entries.is_empty() {
            self.by_descriptor.remove(&descriptor);
            self.by_path.retain(|_, known| *known != descriptor);
            // It may be gone.
            let _ = inotify::remove_watch(queue, descriptor);
        }
    }

    fn changed(&mut self, descriptor: i32, name: Option<&[u8]>, what: ReadFlags, instances: &mut BTreeSet<String>) {
        use std::os::unix::ffi::OsStrExt;

        let Some(folder) = self.by_descriptor.get(&descriptor) else { return };
        match name {
            Some(name) => {
                instances.extend(folder.entries.get(std::ffi::OsStr::from_bytes(name)).into_iter().flatten().cloned());
                let comes_or_goes = ReadFlags::CREATE | ReadFlags::DELETE | ReadFlags::MOVED_FROM | ReadFlags::MOVED_TO;
                if what.intersects(comes_or_goes) {
                    instances.extend(folder.all.iter().cloned());
                }
            }
            None => instances.extend(folder.everybody()),
        }
        // The folder itself is gone: it is watched again with the next full check.
        if what.intersects(ReadFlags::IGNORED | ReadFlags::MOVE_SELF)
            && self.by_descriptor.remove(&descriptor).is_some()
        {
            self.by_path.retain(|_, known| *known != descriptor);
        }
    }
}

impl Folder {
    fn add(&mut self, other: Self) {
        self.path = other.path;
        for (name, instances) in other.entries {
            self.entries.entry(name).or_default().extend(instances);
        }
        self.all.extend(other.all);
    }

    fn everybody(&self) -> BTreeSet<String> {
        self.entries.values().flatten().chain(&self.all).cloned().collect()
    }
}

/// Notes what an instance manages; whether all of it can be watched.
fn add(wanted: &mut HashMap<PathBuf, Folder>, instance: &str, claims: &Claims) -> bool {
    let mut all = !claims.0.is_empty();
    for Claim::Path { path, extent } in &claims.0 {
        if let (Some(parent), Some(name)) = (path.parent(), path.file_name()) {
            let folder = wanted.entry(parent.to_owned()).or_default();
            folder.entries.entry(name.to_owned()).or_default().insert(instance.to_owned());
        } else {
            all = false;
        }
        match extent {
            Extent::Entries { .. } if is_folder(path) => {
                wanted.entry(path.to_path_buf()).or_default().all.insert(instance.to_owned());
            }
            // There may be any number of folders in it.
            Extent::Tree { .. } => all = false,
            _ => {}
        }
    }
    all
}

fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_dir())
}
