//! No resource leaves the root of another system, wherever on its paths a link is: links are planted at every component of all
//! that it touches, which is found by watching it, and what was there is moved behind them.
//!
//! Each component and each resource is tried with one link, and `STEAD_LINKS` more are tried: `STEAD_LINKS=100000` tries all.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};
use stead_core::call::Execution;
use stead_core::claims::Claim;
use stead_host::provider::{Context, Plain};
use stead_resources::BuiltIn;
use stead_system::fs::SystemRoot;

use super::support::{World, walk};
use super::{carried_out, example};

/// A program that a document names goes where it wants.
const FREE: [&str; 2] = ["Stead/Command", "Microsoft.DSC.Transitional/RunCommandOnSet"];

/// Those that touch no files.
const NO_FILES: [&str; 2] = ["Microsoft.DSC.Debug/Echo", "Microsoft/Process"];

/// Records every access to anything below a directory.
struct Watch {
    events: OwnedFd,
    folders: BTreeMap<i32, PathBuf>,
}

impl Watch {
    fn over(root: &Path) -> Self {
        let events = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
        let mut watch = Self { events, folders: BTreeMap::new() };
        let below = walk(root).into_keys().map(|path| root.join(path)).filter(|path| !path.is_symlink());
        for folder in below.chain([root.to_owned()]).filter(|path| path.is_dir()) {
            let flags = WatchFlags::ALL_EVENTS & !WatchFlags::CLOSE;
            watch.folders.insert(inotify::add_watch(&watch.events, &folder, flags).unwrap(), folder);
        }
        watch
    }

    /// The paths that were accessed since the last call.
    fn seen(&self) -> BTreeSet<PathBuf> {
        let mut room = [MaybeUninit::uninit(); 4096];
        let (mut reader, mut seen) = (Reader::new(&self.events, &mut room), BTreeSet::new());
        while let Ok(event) = reader.next() {
            let Some(folder) = self.folders.get(&event.wd()) else { continue };
            let name = event.file_name().map(|name| std::ffi::OsStr::from_bytes(name.to_bytes()));
            seen.insert(name.map_or_else(|| folder.clone(), |name| folder.join(name)));
        }
        seen
    }
}

fn context(world: &World) -> Context {
    Context { system_root: SystemRoot::below(world.root.path()), ..world.context() }
}

/// Runs all operations, one after the other. Returns whether the set succeeded, and the verdict of a test right after
/// it.
fn operate(built_in: &BuiltIn, world: &World) -> (bool, Option<bool>) {
    let name = built_in.manifest.type_name.as_str();
    let (cx, provider, input) = (context(world), &built_in.provider, Plain::new(example(name)));
    drop(provider.get(&cx, &input));
    drop(provider.test(&cx, &input));
    drop(provider.set(&cx, &input, Execution::WhatIf));
    drop(provider.export(&cx, &Plain::new(serde_json::json!({"path": "."}))));
    let set = provider.set(&cx, &input, Execution::Actual).is_ok();
    let holds = provider.test(&cx, &input).ok().and_then(|tested| tested.verdict());
    drop(provider.delete(&cx, &input, Execution::WhatIf));
    drop(provider.delete(&cx, &input, Execution::Actual));
    (set, holds)
}

/// Every component of every path that a resource touches in a system, relative to the root; and how it ends there.
fn touched(built_in: &BuiltIn) -> (BTreeSet<PathBuf>, (bool, Option<bool>)) {
    let world = World::system();
    let (root, before, watch) = (world.root.path(), walk(world.root.path()), Watch::over(world.root.path()));
    let ended = operate(built_in, &world);
    // Before the test itself looks.
    let seen = watch.seen();
    let changed = walk(root).into_iter().filter(|(path, node)| before.get(path) != Some(node));
    let changed: Vec<PathBuf> = changed.map(|(path, _)| root.join(path)).collect();
    let input = Plain::new(example(built_in.manifest.type_name.as_str()));
    let claimed = built_in.provider.claims(&input).map(|claims| claims.0).unwrap_or_default().into_iter();
    let claimed = claimed.map(|Claim::Path { path, .. }| PathBuf::from(context(&world).resolve(&*path)));
    let all: Vec<PathBuf> = seen.into_iter().chain(changed).chain(claimed).collect();
    let below = all.iter().filter_map(|path| path.strip_prefix(root).ok());
    let components = below.flat_map(Path::ancestors).filter(|path| !path.as_os_str().is_empty());
    // A record of a database is claimed as if it were in a directory.
    let first = World::system();
    let is_possible = |path: &&Path| path.ancestors().skip(1).all(|above| !first.root.path().join(above).is_file());
    (components.filter(is_possible).map(Path::to_owned).collect(), ended)
}

/// Puts a link in the place of what is at `at`, which is moved to where the link leads; an empty directory if there is nothing.
fn plant(root: &Path, at: &Path, real: &Path, target: &Path) {
    let place = root.join(at);
    if let Some(above) = place.parent() {
        fs::create_dir_all(above).unwrap();
    }
    if place.symlink_metadata().is_ok() {
        fs::rename(&place, real).unwrap();
    } else {
        fs::create_dir(real).unwrap();
    }
    symlink(target, place).unwrap();
}

/// A link in the place of a component of a path that a resource touches.
struct Planted {
    built_in: &'static BuiltIn,
    at: PathBuf,
    /// The beginning of its target: empty, or a magic link, which leads to the root of the process that follows it.
    magic: &'static str,
}

/// All links that can be tried: of both kinds, at every component of every path that any resource touches.
fn links() -> Vec<Planted> {
    let mut all = Vec::new();
    for built_in in carried_out().into_iter().filter(|each| !FREE.contains(&each.manifest.type_name.as_str())) {
        let components = touched(built_in).0;
        let name = &built_in.manifest.type_name;
        assert_eq!(components.is_empty(), NO_FILES.contains(&name.as_str()), "{name} touches {components:?}");
        for at in components {
            all.extend(["", "/proc/self/root"].map(|magic| Planted { built_in, at: at.clone(), magic }));
        }
    }
    all
}

/// Some of the links, others in each run: every component and every resource is among them.
fn some_of(all: &[Planted]) -> Vec<&Planted> {
    let mut more = stead_testkit::times("STEAD_LINKS", 20);
    let shuffled = Just((0..all.len()).collect::<Vec<_>>()).prop_shuffle();
    let order = shuffled.new_tree(&mut TestRunner::default()).unwrap().current();
    let (mut paths, mut resources) = (BTreeSet::new(), BTreeSet::new());
    let mut some = Vec::new();
    for link in order.into_iter().map(|at| &all[at]) {
        let is_new = paths.insert(&link.at) | resources.insert(&link.built_in.manifest.type_name);
        if is_new || more > 0 {
            more -= usize::from(!is_new);
            some.push(link);
        }
    }
    some
}

#[test]
fn no_link_leads_out_of_the_system_root() {
    let all = links();
    let some = some_of(&all);
    let _ = writeln!(std::io::stderr(), "{} of {} links are tried", some.len(), all.len());
    let mut wrong = Vec::new();
    for Planted { built_in, at, magic } in some {
        let world = World::system();
        let outside = tempfile::tempdir_in(world.root.path().parent().unwrap()).unwrap();
        let real = outside.path().join("real");
        let target = format!("{magic}{}", real.display());
        plant(world.root.path(), at, &real, Path::new(&target));
        let (before, watch) = (walk(outside.path()), Watch::over(outside.path()));
        operate(built_in, &world);
        let seen = watch.seen();
        if !seen.is_empty() || walk(outside.path()) != before {
            let name = &built_in.manifest.type_name;
            wrong.push(format!("{name}: a link at {} to {target}: {seen:?}", at.display()));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn links_to_directories_lead_to_what_is_below_the_system_root() {
    let mut wrong = Vec::new();
    for built_in in carried_out() {
        let name = built_in.manifest.type_name.as_str();
        let (components, expected) = touched(built_in);
        let existing = World::system();
        // A link as the last component is not followed, and need not be.
        let is_on_the_way = |at: &PathBuf| components.iter().any(|path| path != at && path.starts_with(at));
        let directories = components.iter().filter(|at| existing.root.path().join(at).is_dir());
        // A working tree is refused where it is a link.
        let directories = directories.filter(|at| name != "Stead/Git" || !at.starts_with("w"));
        for at in directories.filter(|at| is_on_the_way(at)) {
            let up: PathBuf = at.components().skip(1).map(|_| "..").collect();
            for target in [PathBuf::from("/real"), up.join("real")] {
                let world = World::system();
                plant(world.root.path(), at, &world.root.path().join("real"), &target);
                let found = operate(built_in, &world);
                if found != expected {
                    let (at, target) = (at.display(), target.display());
                    wrong.push(format!("{name}: a link at {at} to {target}: {found:?}, without it {expected:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
