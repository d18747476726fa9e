//! `Stead/Directory`: a directory, and on request the content of another one in it.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{OFlags, fstat};
use rustix::io::Errno;
use serde_json::{Map, Value as Json, json};
use stead_core::call::{Execution, Exported, Failure, Presumed, TREE};
use stead_core::manifest::Capabilities;
use stead_core::value::Value;
use stead_host::fs::{self, FsError, Kind, Names, Ownership, Patience, Place, Status};
use stead_host::provider::{Context, Cost, Plain, Provider, SetReply, State, TestReply};

use crate::file::{no_directory, presumed_place, set_mode};
use crate::input::{Input, cannot, invalid, refused};
use crate::permissions::{Permissions, report_all};
use crate::{ALL_BUT_EXPORT, BuiltIn, Profile, reply};

mod export;
mod mirror;

use mirror::{Drift, Mirror};

/// The name of the type.
const TYPE_NAME: &str = "Stead/Directory";

const PROFILE: Profile = Profile {
    type_name: TYPE_NAME,
    description: "A directory with its mode and owner, or a copy of a whole tree.",
    tags: &["file", "directory", "linux"],
    capabilities: Capabilities { export: true, export_filters: true, ..ALL_BUT_EXPORT },
    schema: include_str!("schema.json"),
};

const PROPERTIES: &[&str] = &["path", "mode", "owner", "group", "source", "entries", "_purge", "recurse", "_exist"];
const READ_ONLY: &[&str] = &["drift"];

/// The mode of a new directory when none is asked for, whatever the umask is.
const DEFAULT_MODE: u32 = 0o755;

/// `Stead/Directory` as it is registered.
pub fn built_in() -> Option<BuiltIn> {
    PROFILE.built_in(Arc::new(Directories::default()))
}

/// Carries out `Stead/Directory`.
#[derive(Default)]
pub struct Directories {
    names: Names,
}

impl Provider for Directories {
    fn get(&self, cx: &Context, input: &Plain) -> Result<State, Failure> {
        let desired = Desired::read(cx, input, &self.names)?;
        let Some(current) = desired.look()? else {
            return Ok(Plain::new(reply::state(desired.path_text, false).into()));
        };
        let mut state = reply::state(desired.path_text, true);
        report_all(&current.status, &self.names, &mut state);
        if let Some(drift) = desired.mirror(cx, Some(&current.directory), Execution::WhatIf)? {
            desired.report(&drift, &mut state);
        }
        Ok(Plain::new(state.into()))
    }

    fn test(&self, cx: &Context, input: &Plain) -> Result<TestReply, Failure> {
        let desired = Desired::read(cx, input, &self.names)?;
        let current = desired.look()?;
        let mut state = reply::state(desired.path_text, current.is_some());
        let mut differing = desired.differing(current.as_ref());
        if let (true, Some(current)) = (desired.exist, &current) {
            if let Some(drift) = desired.mirror(cx, Some(&current.directory), Execution::WhatIf)? {
                differing.extend(drift.properties());
                desired.report(&drift, &mut state);
            }
            desired.permissions.report(&current.status, &self.names, &mut state);
        }
        Ok(reply::tested(state, &differing))
    }

    fn set(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<SetReply, Failure> {
        let desired = Desired::read(cx, input, &self.names)?;
        let current = desired.look()?;
        let mut differing = desired.differing(current.as_ref());
        if !desired.exist {
            let what_if = if current.is_some() { desired.remove(cx, execution)? } else { Vec::new() };
            return Ok(desired.reply(&differing, what_if));
        }
        let (drift, what_if, presumed) = match execution {
            Execution::Actual => (desired.bring_about(cx, current)?, Vec::new(), None),
            Execution::WhatIf => {
                let drift = desired.mirror(cx, current.as_ref().map(|current| &current.directory), execution)?;
                let intentions = desired.intentions(&differing, drift.as_ref());
                (drift, intentions, desired.presumed(current.as_ref())?)
            }
        };
        // What is new is new as a whole.
        if !differing.contains(&"_exist") {
            differing.extend(drift.iter().flat_map(Drift::properties));
        }
        Ok(SetReply { presumed, ..desired.reply(&differing, what_if) })
    }

    fn delete(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<Vec<String>, Failure> {
        let desired = Desired::read(cx, input, &self.names)?;
        if desired.look()?.is_none() { Ok(Vec::new()) } else { desired.remove(cx, execution) }
    }

    fn export(&self, cx: &Context, input: &Plain) -> Result<Vec<Exported>, Failure> {
        export::tree(cx, input, &self.names)
    }

    fn cost(&self, desired: &Value) -> Cost {
        reply::cost(desired)
    }

    fn touches(&self, input: &Plain) -> Option<Vec<PathBuf>> {
        let mut touched = reply::touches(input)?;
        // What 'entries' names stays as it is, and what it does not name is nobody else's.
        let inside = ["source", "recurse"].iter().any(|name| input.expose().get(name).is_some());
        let tree = touched.first().filter(|_| inside).map(|path| path.join(TREE));
        touched.extend(tree);
        Some(touched)
    }
}

/// The directory that is there.
struct Current {
    directory: OwnedFd,
    status: Status,
}

struct Desired<'a> {
    path_text: &'a str,
    path: PathBuf,
    exist: bool,
    source: Option<(&'a str, PathBuf)>,
    /// The names that belong into the directory.
    entries: Option<BTreeSet<&'a str>>,
    purge: bool,
    recurse: bool,
    permissions: Permissions<'a>,
}

impl<'a> Desired<'a> {
    fn read(cx: &Context, input: &'a Plain, names: &Names) -> Result<Self, Failure> {
        let input = Input::read(input, PROPERTIES, READ_ONLY)?;
        let (path_text, path) = input.required_path("path", cx)?;
        let source = input.path("source", cx)?;
        let purge = input.flag("_purge")?.unwrap_or(false);
        let entries = entries(&input)?;
        match (&source, &entries) {
            (None, None) if purge => {
                let message = "'_purge' removes what 'source' or 'entries' does not have, so it takes one of them";
                return Err(invalid("_purge", message));
            }
            (Some(_), Some(_)) => return Err(invalid("entries", "what belongs there is said by 'source' already")),
            _ => {}
        }
        Ok(Self {
            path_text,
            path,
            exist: input.flag("_exist")?.unwrap_or(true),
            source,
            entries,
            purge,
            recurse: input.flag("recurse")?.unwrap_or(false),
            permissions: Permissions::read(&input, names)?,
        })
    }

    fn look(&self) -> Result<Option<Current>, Failure> {
        // Looking inside takes the right to list it; knowing that it is there does not.
        let inside = self.source.is_some() || self.entries.is_some();
        let flags = if inside { OFlags::RDONLY | OFlags::NONBLOCK } else { OFlags::PATH };
        let opened = match fs::open(&self.path, flags) {
            Err(FsError::WrongKind { found, .. }) => return Err(not_a_directory(found)),
            Err(FsError::System { source, .. }) if source.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => {
                return Err(not_a_directory(Kind::Special));
            }
            opened => opened?,
        };
        let Some(directory) = opened else { return Ok(None) };
        let status = fstat(&directory).map(Status::from).map_err(|errno| cannot("examine", &self.path, errno))?;
        if status.kind == Kind::Directory {
            Ok(Some(Current { directory, status }))
        } else {
            Err(not_a_directory(status.kind))
        }
    }

    /// What differs of the directory itself.
    fn differing(&self, current: Option<&Current>) -> Vec<&'static str> {
        match current {
            Some(current) if self.exist => self.permissions.differing(&current.status),
            None if !self.exist => Vec::new(),
            _ => vec!["_exist"],
        }
    }

    /// Compares the content with that of the source, or copies it.
    fn mirror(&self, cx: &Context, target: Option<&OwnedFd>, execution: Execution) -> Result<Option<Drift>, Failure> {
        let mirror = Mirror::new(cx, execution, self.purge);
        match (&self.source, &self.entries, target) {
            (Some((_, source)), _, target) => mirror.run(source, target, &self.path).map(Some),
            (None, Some(entries), Some(target)) if self.purge => mirror.purge(entries, target, &self.path).map(Some),
            _ => Ok(None),
        }
    }

    fn report(&self, drift: &Drift, state: &mut Map<String, Json>) {
        if let (Some((source, _)), false) = (&self.source, drift.properties().contains(&"source")) {
            state.insert("source".into(), json!(source));
        }
        if !drift.properties().is_empty() {
            state.insert("drift".into(), json!(drift.lines()));
        }
    }

    fn reply(&self, differing: &[&str], what_if: Vec<String>) -> SetReply {
        let mut after = reply::state(self.path_text, self.exist);
        if self.exist {
            if let Some((source, _)) = &self.source {
                after.insert("source".into(), json!(source));
            }
            self.permissions.echo(&mut after);
        }
        reply::set(after, differing, what_if)
    }

    /// What is not there yet without which it cannot be brought about.
    fn presumed(&self, current: Option<&Current>) -> Result<Option<Presumed>, Failure> {
        if let Some(missing) = self.permissions.presumed() {
            return Ok(Some(missing));
        }
        let Some(Current { status, .. }) = current else { return presumed_place(&self.path) };
        let euid = rustix::process::geteuid();
        let changes = self.permissions.mode.is_some_and(|(_, mode)| mode != status.mode);
        let foreign = changes && !euid.is_root() && status.uid != euid.as_raw();
        let failure = || cannot("change the mode of", &self.path, Errno::PERM);
        Ok(foreign.then(|| Presumed { failure: failure(), path: None }))
    }

    fn intentions(&self, differing: &[&str], drift: Option<&Drift>) -> Vec<String> {
        let create = differing.contains(&"_exist").then(|| "create the directory".to_owned());
        let content = drift.filter(|drift| !drift.properties().is_empty()).map(|drift| {
            let lines = drift.lines().join(", ");
            match &self.source {
                Some((source, _)) => format!("make its content that of '{source}' ({lines})"),
                None => format!("remove what does not belong there ({lines})"),
            }
        });
        create.into_iter().chain(content).chain(self.permissions.intentions(differing)).collect()
    }

    fn bring_about(&self, cx: &Context, current: Option<Current>) -> Result<Option<Drift>, Failure> {
        let ownership = self.permissions.ownership()?;
        if let Some(current) = current {
            let drift = self.mirror(cx, Some(&current.directory), Execution::Actual)?;
            let mode = self.permissions.mode.map(|(_, mode)| mode);
            change_permissions(cx, &current, &self.path, mode, ownership)?;
            return Ok(drift);
        }
        let Some(place) = Place::find(&self.path, &cx.writes)? else { return Err(no_directory(&self.path)) };
        let (mode, ownership) = self.initial_permissions(ownership)?;
        let directory = place.make_directory()?;
        let drift = self.mirror(cx, Some(&directory), Execution::Actual)?;
        let status = fstat(&directory).map(Status::from).map_err(|errno| cannot("examine", &self.path, errno))?;
        change_permissions(cx, &Current { directory, status }, &self.path, Some(mode), ownership)?;
        Ok(drift)
    }

    fn initial_permissions(&self, asked: Ownership) -> Result<(u32, Ownership), Failure> {
        let mode = self.permissions.mode.map(|(_, mode)| mode);
        let Some((_, source)) = &self.source else { return Ok((mode.unwrap_or(DEFAULT_MODE), asked)) };
        let status = mirror::source_status(source)?;
        let inherited = mirror::inherited_ownership(&status);
        let ownership = Ownership { uid: asked.uid.or(inherited.uid), gid: asked.gid.or(inherited.gid) };
        Ok((mode.unwrap_or(status.mode), ownership))
    }

    fn remove(&self, cx: &Context, execution: Execution) -> Result<Vec<String>, Failure> {
        let Some(place) = Place::find(&self.path, &cx.writes)? else { return Ok(Vec::new()) };
        match (self.recurse, execution) {
            (true, Execution::Actual) => {
                fs::remove_tree(&place, &Patience::of(cx))?;
                Ok(Vec::new())
            }
            (true, Execution::WhatIf) => Ok(vec!["remove the directory with everything in it".to_owned()]),
            (false, Execution::Actual) => match place.remove_directory() {
                Err(FsError::System { source, .. })
                    if source.raw_os_error() == Some(Errno::NOTEMPTY.raw_os_error()) =>
                {
                    Err(not_empty())
                }
                removed => removed.map(|_| Vec::new()).map_err(Failure::from),
            },
            (false, Execution::WhatIf) => {
                let opened = place.open(OFlags::RDONLY | OFlags::DIRECTORY)?;
                let filled = opened.map(|directory| fs::entries(&directory, &self.path)).transpose()?;
                let filled = filled.is_some_and(|entries| !entries.is_empty());
                if filled { Err(not_empty()) } else { Ok(vec!["remove the empty directory".to_owned()]) }
            }
        }
    }
}

/// The names that belong into the directory.
fn entries<'a>(input: &Input<'a>) -> Result<Option<BTreeSet<&'a str>>, Failure> {
    let Some(listed) = input.json("entries") else { return Ok(None) };
    let name = |item: &'a Json| item.as_str().filter(|name| !name.is_empty() && !name.contains('/'));
    let names = listed.as_array().and_then(|items| items.iter().map(name).collect::<Option<BTreeSet<_>>>());
    match names {
        Some(names) => Ok(Some(names)),
        None => Err(invalid("entries", "'entries' has to be a list of names, each of one file or directory")),
    }
}

fn change_permissions(
    cx: &Context,
    current: &Current,
    path: &Path,
    mode: Option<u32>,
    ownership: Ownership,
) -> Result<(), Failure> {
    let ownership = ownership.beyond(&current.status);
    let mode = mode.filter(|mode| *mode != current.status.mode || !ownership.is_none());
    if mode.is_none() && ownership.is_none() {
        return Ok(());
    }
    // What was opened for a look only cannot be changed; "." of it is the same directory, opened for more.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(&current.directory, ".", flags, rustix::fs::Mode::empty());
    let directory = std::fs::File::from(opened.map_err(|errno| cannot("open", path, errno))?);
    ownership.apply(directory.as_fd()).map_err(|errno| cannot("change the owner of", path, errno))?;
    if let Some(mode) = mode {
        set_mode(&directory, mode).map_err(|error| cannot("change the mode of", path, error))?;
    }
    Ok(cx.writes.changed(&directory, path)?)
}

fn not_a_directory(found: Kind) -> Failure {
    let hint = match found {
        Kind::Symlink => "Name the path that it leads to, or remove the link with Stead/Symlink and '_exist: false'",
        Kind::File => "Remove it first, with Stead/File and '_exist: false'",
        Kind::Directory | Kind::Special => "It is left alone",
    };
    refused("path", format!("there is a {} where the directory should be. {hint}", found.word()))
}

fn not_empty() -> Failure {
    refused("recurse", "the directory is not empty. Add 'recurse: true' to remove it with everything in it")
}
