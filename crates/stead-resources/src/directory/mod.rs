//! `Stead/Directory`: a directory, and on request the content of another one in it.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use stead_core::call::{Execution, Exported, Failure, Presumed};
use stead_core::claims::{Claims, Extent, Ties};
use stead_core::destruction::{Effect, Effects};
use stead_core::manifest::Capabilities;
use stead_core::statements::Statement;
use stead_core::value::{Object, Value};
use stead_declare::resource;
use stead_host::provider::{Context, Cost, Lint, Linter, Plain, Provider, SetReply, State, TestReply};
use stead_system::fs::{self, FileKind, FsError, Handle, How, Ownership, Place, Status, SystemPath};
use stead_system::user::{Names, NamesByRoot};

use crate::declared::Declared as _;
use crate::input::{EntryName, Mode, PathText, ReadOnly, blocked, invalid, read};
use crate::parents::Parents;
use crate::permissions::{Permissions, report_all};
use crate::text::AccountName;
use crate::{ALL_BUT_EXPORT, BuiltIn, pending, removal, reply};

mod export;
mod lints;
mod mirror;

use mirror::Mirror;
pub(crate) use mirror::{Difference, Drift};

/// A directory with its mode and owner, and on request with the content of another. Export lists a whole tree: the filter
/// takes 'path', 'relativeTo' and 'purge' (whether directories state their entries, so that others are removed), and yields
/// Stead/Directory, Stead/File and Stead/Symlink.
#[resource(
    "Stead/Directory",
    about = "A directory with its mode and owner, or a copy of a whole tree.",
    tags("file", "directory", "linux"),
    capabilities = Capabilities { export: true, export_filters: true, ..ALL_BUT_EXPORT },
    exclusive(source, entries),
)]
struct Properties<'a> {
    /// Where the directory is. A relative path starts at the directory of the document, or at the system root that was
    /// given. Its parent directory must exist, unless 'parents' is stated.
    #[property(key, place)]
    path: PathText<'a>,
    /// The permissions of the directory itself, as octal digits in quotes. A new directory gets those of 'source', or 0755,
    /// when none are given.
    mode: Option<Mode<'a>>,
    /// The name or number of the user that the directory itself belongs to.
    owner: Option<AccountName<'a>>,
    /// The name or number of the group that the directory itself belongs to.
    group: Option<AccountName<'a>>,
    /// Whether missing parent directories are created, with mode 0755. They stay when it is removed, and their mode and owner are
    /// not managed; use Stead/Directory for that.
    #[property(option)]
    parents: bool,
    /// A directory on this machine whose files, directories and symbolic links are to be in this one, with their modes, and
    /// with their owners when run as root. FIFOs, sockets and devices are left out. A relative path starts at the directory of
    /// the document, or at the system root if the document itself manages that path.
    source: Option<PathText<'a>>,
    /// The names that belong into the directory. They are not created; with '_purge' everything else in it is removed.
    entries: Option<Vec<EntryName<'a>>>,
    /// Whether what 'source' or 'entries' does not have is removed. Takes one of them. Never follows symbolic links and
    /// never crosses mount points.
    #[property(option, name = "_purge")]
    purge: bool,
    /// Whether the directory is removed with everything in it. Without it only an empty directory is removed.
    #[property(option)]
    recurse: bool,
    /// Whether the directory exists.
    exist: bool,
    /// In what the content differs from 'source' or 'entries': at most 100 lines such as 'missing: a/b', 'different: c' and
    /// 'extra: d'.
    drift: Option<ReadOnly<Vec<String>>>,
}

impl<'a> crate::input::Properties<'a> for Properties<'a> {
    fn check(&self) -> Result<(), Failure> {
        if self.purge && self.source.is_none() && self.entries.is_none() {
            return Err(invalid(Properties::PURGE, "'_purge' requires 'source' or 'entries'"));
        }
        Ok(())
    }
}

/// The mode of a new directory when none is asked for, whatever the umask is.
const DEFAULT_MODE: u32 = 0o755;

/// `Stead/Directory` as it is registered.
pub fn built_in() -> Option<BuiltIn> {
    Properties::built_in(Arc::new(Directories::default()))
}

/// Carries out `Stead/Directory`.
#[derive(Default)]
pub struct Directories {
    names: NamesByRoot,
}

impl Provider for Directories {
    fn linter(&self) -> Option<&dyn Linter> {
        const LINTER: fn(&Object) -> Vec<Lint> = lints::lints;
        Some(&LINTER)
    }

    /// What lies deep in a tree with the content of another one does not show at its path.
    fn has_state_elsewhere(&self, _cx: &Context, input: &Plain) -> bool {
        input.expose().get(Properties::SOURCE).is_some()
    }

    fn validate(&self, cx: &Context, input: &Plain) -> Result<(), Failure> {
        Desired::read(cx, input, &self.names.of(&cx.system_root)).map(|_| ())
    }

    fn get(&self, cx: &Context, input: &Plain) -> Result<State, Failure> {
        let desired = Desired::read(cx, input, &self.names.of(&cx.system_root))?;
        let Some(current) = desired.look()? else {
            return Ok(Plain::new(reply::state(desired.path_text, false)));
        };
        let mut state = reply::state(desired.path_text, true);
        report_all(&current.status, &self.names.of(&cx.system_root), &mut state);
        if let Some(drift) = desired.mirror(cx, Some(&current.directory), Execution::WhatIf)? {
            desired.report(&drift, &mut state);
        }
        Ok(Plain::new(state))
    }

    fn test(&self, cx: &Context, input: &Plain) -> Result<TestReply, Failure> {
        let desired = Desired::read(cx, input, &self.names.of(&cx.system_root))?;
        let current = desired.look()?;
        let mut state = reply::state(desired.path_text, current.is_some());
        let mut differing = desired.differing(current.as_ref());
        let set = match &current {
            Some(current) if desired.exist => {
                let drift = desired.mirror(cx, Some(&current.directory), Execution::WhatIf)?;
                if let Some(drift) = &drift {
                    desired.report(drift, &mut state);
                }
                desired.permissions.report(&current.status, &self.names.of(&cx.system_root), &mut state);
                let own = differing.clone();
                differing.extend(drift.iter().flat_map(Drift::properties));
                Some(desired.done(own, false, drift, Vec::new()))
            }
            // A set may be refused: without 'recurse', what is in it stays.
            Some(_) => desired.set_absent(cx, true, Execution::WhatIf).ok(),
            None => desired.with_parents()?,
        };
        Ok(reply::tested_as(state, &differing, set.unwrap_or_default()))
    }

    fn set(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<SetReply, Failure> {
        let desired = Desired::read(cx, input, &self.names.of(&cx.system_root))?;
        let current = desired.look()?;
        let differing = desired.differing(current.as_ref());
        if !desired.exist {
            return desired.set_absent(cx, current.is_some(), execution);
        }
        let created = current.is_none();
        let parents = if created { desired.parents_above()? } else { Parents::default() };
        let (drift, what_if, presumed) = match execution {
            Execution::Actual => (desired.bring_about(cx, current)?, Vec::new(), None),
            Execution::WhatIf => {
                let drift = desired.mirror(cx, current.as_ref().map(|current| &current.directory), execution)?;
                let intentions = desired.intentions(&differing, drift.as_ref());
                (drift, intentions, desired.presumed(current.as_ref())?)
            }
        };
        let done = desired.done(differing, created, drift, what_if);
        Ok(SetReply { presumed, effects: parents.before(done.effects), ..done })
    }

    fn delete(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<Vec<String>, Failure> {
        let desired = Desired::read(cx, input, &self.names.of(&cx.system_root))?;
        if desired.look()?.is_none() { Ok(Vec::new()) } else { desired.remove(cx, execution) }
    }

    fn export(&self, cx: &Context, input: &Plain) -> Result<Vec<Exported>, Failure> {
        export::tree(cx, input, &self.names.of(&cx.system_root))
    }

    fn cost(&self, desired: &Value) -> Cost {
        reply::cost(desired)
    }

    fn states(&self, _cx: &Context, input: &Plain) -> Vec<Statement> {
        reply::owners(input)
    }

    fn ties(&self, input: &Plain) -> Ties {
        reply::ties(input)
    }

    fn claims(&self, input: &Plain) -> Option<Claims> {
        let (stated, purge) = (input.expose(), input.expose().get(Properties::PURGE) == Some(&Value::Bool(true)));
        let names = |listed: &Value| -> Option<BTreeSet<String>> {
            listed.as_array()?.iter().map(|name| name.as_str().map(str::to_owned)).collect()
        };
        let extent = match () {
            () if reply::is_removal(input) => Extent::Absent,
            () if stated.get(Properties::SOURCE).is_some() => Extent::Tree { purge },
            () if purge => Extent::Entries { kept: names(stated.get(Properties::ENTRIES)?)? },
            () => Extent::Directory,
        };
        reply::claims(input, extent)
    }
}

/// The directory that is there.
struct Current {
    directory: Handle,
    status: Status,
}

#[expect(clippy::struct_excessive_bools, reason = "each is a property that is stated or not")]
struct Desired<'a> {
    path_text: &'a str,
    path: SystemPath,
    exist: bool,
    source: Option<(&'a str, SystemPath)>,
    /// The names that belong into the directory.
    entries: Option<BTreeSet<&'a str>>,
    purge: bool,
    recurse: bool,
    /// Whether missing directories above it are created.
    parents: bool,
    permissions: Permissions<'a>,
}

impl<'a> Desired<'a> {
    fn read(cx: &Context, input: &'a Plain, names: &Names) -> Result<Self, Failure> {
        let stated: Properties<'a> = read(input)?;
        let source = match stated.source {
            Some(source) => Some((source.0, source.source(cx, Properties::SOURCE)?)),
            None => None,
        };
        Ok(Self {
            path_text: stated.path.0,
            path: stated.path.resolve(cx),
            exist: stated.exist,
            source,
            entries: stated.entries.map(|entries| entries.into_iter().map(|name| name.0).collect()),
            purge: stated.purge,
            recurse: stated.recurse,
            parents: stated.parents,
            permissions: Permissions::find(cx, stated.mode, stated.owner, stated.group, names)?,
        })
    }

    fn look(&self) -> Result<Option<Current>, Failure> {
        // Looking inside takes the right to list it; knowing that it is there does not.
        let inside = self.source.is_some() || self.entries.is_some();
        let how = if inside { How::Read } else { How::Look };
        let opened = match fs::open(&self.path, how) {
            Err(FsError::WrongKind { found, .. }) => return Err(not_a_directory(found)),
            Err(FsError::System { source, .. }) if fs::is_not_openable(&source) => {
                return Err(not_a_directory(FileKind::Special));
            }
            opened => opened?,
        };
        let Some(directory) = opened else { return Ok(None) };
        let status = fs::status_of(&directory, &self.path)?;
        if status.kind == FileKind::Directory {
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
            _ => vec![Properties::EXIST],
        }
    }

    /// Compares the content with that of the source, or copies it. Where something is mounted in the way, nothing is changed: what
    /// would come to it is found before.
    fn mirror(&self, cx: &Context, target: Option<&Handle>, execution: Execution) -> Result<Option<Drift>, Failure> {
        if execution == Execution::Actual && target.is_some_and(|target| !fs::mounts_below(target).is_empty()) {
            self.mirror(cx, target, Execution::WhatIf)?;
        }
        let mirror = Mirror::new(cx, execution, self.purge, self.path_text);
        match (&self.source, &self.entries, target) {
            (Some((_, source)), _, target) => mirror.run(source, target, &self.path).map(Some),
            (None, Some(entries), Some(target)) if self.purge => mirror.purge(entries, target, &self.path).map(Some),
            _ => Ok(None),
        }
    }

    fn report(&self, drift: &Drift, state: &mut Object) {
        if let (Some((source, _)), false) = (&self.source, drift.properties().contains(&Properties::SOURCE)) {
            state.insert(Properties::SOURCE.into(), Value::from(*source));
        }
        if !drift.properties().is_empty() {
            state.insert(Properties::DRIFT.into(), Value::from(drift.lines()));
        }
    }

    fn reply(&self, differing: &[&str], what_if: Vec<String>) -> SetReply {
        let mut after = reply::state(self.path_text, self.exist);
        if self.exist {
            if let Some((source, _)) = &self.source {
                after.insert(Properties::SOURCE.into(), Value::from(*source));
            }
            self.permissions.echo(&mut after);
        }
        reply::set(after, differing, what_if)
    }

    /// The answer once its content is, or in what-if would be, as desired.
    fn done(
        &self,
        mut differing: Vec<&'static str>,
        created: bool,
        drift: Option<Drift>,
        what_if: Vec<String>,
    ) -> SetReply {
        // What is new is new as a whole.
        if !created {
            differing.extend(drift.iter().flat_map(Drift::properties));
        }
        let effects = drift.map(Drift::into_effects).unwrap_or_default();
        let effect = if created { Effect::Create } else { Effect::Change };
        let effects = Effects { effect: (!differing.is_empty()).then_some(effect), ..effects };
        SetReply { effects, ..self.reply(&differing, what_if) }
    }

    /// The directories that come into being with it.
    fn parents_above(&self) -> Result<Parents, Failure> {
        Parents::above(&self.path, self.path_text, self.parents && self.exist)
    }

    /// What its creation comes to where directories above it come into being as well.
    fn with_parents(&self) -> Result<Option<SetReply>, Failure> {
        let parents = self.parents_above()?;
        if parents.is_empty() || self.source.is_some() {
            return Ok(None);
        }
        let done = self.done(vec![Properties::EXIST], true, None, Vec::new());
        Ok(Some(SetReply { effects: parents.before(done.effects), ..done }))
    }

    fn set_absent(&self, cx: &Context, is_there: bool, execution: Execution) -> Result<SetReply, Failure> {
        if !is_there {
            return Ok(self.reply(&[], Vec::new()));
        }
        let mut effects = Effects::of(Effect::Remove);
        if let Some(place) = Place::find(&self.path, &cx.writes)? {
            let lost = removal::item(&place, self.path_text.to_owned(), &cx.patience())?;
            effects.destroys.extend(lost);
        }
        let what_if = self.remove(cx, execution)?;
        let presumed = match execution {
            Execution::WhatIf if self.recurse => pending::not_removable(&self.path)?,
            Execution::WhatIf => pending::at(&self.path)?,
            Execution::Actual => None,
        };
        Ok(SetReply { presumed, effects, ..self.reply(&[Properties::EXIST], what_if) })
    }

    /// What does not exist yet and is required to reach it.
    fn presumed(&self, current: Option<&Current>) -> Result<Option<Presumed>, Failure> {
        let accounts = self.permissions.presumed();
        let Some(Current { status, directory }) = current else {
            let parents = self.parents_above()?;
            let place = if parents.is_empty() { pending::at(&self.path)? } else { parents.presumed()? };
            return Ok(Presumed::all([accounts, place]));
        };
        if accounts.is_some() {
            return Ok(accounts);
        }
        let ownership = self.permissions.ownership()?.beyond(status);
        let changes = !self.permissions.differing(status).is_empty();
        let refused = changes.then(|| pending::not_changeable(&self.path, status, directory, ownership)).flatten();
        Ok(refused.or_else(|| pending::not_owner(&self.path, ownership)))
    }

    fn intentions(&self, differing: &[&str], drift: Option<&Drift>) -> Vec<String> {
        let create = differing.contains(&Properties::EXIST).then(|| "create the directory".to_owned());
        let content = drift.filter(|drift| !drift.properties().is_empty()).map(|drift| match &self.source {
            Some((source, _)) => format!("copy the content of '{source}' ({})", drift.summary()),
            None => format!("remove what 'entries' does not name ({})", drift.summary()),
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
        self.parents_above()?.create(&cx.writes)?;
        let Some(place) = Place::find(&self.path, &cx.writes)? else { return Err(pending::no_directory(&self.path)) };
        let (mode, ownership) = self.initial_permissions(ownership)?;
        let directory = place.make_directory()?;
        let drift = self.mirror(cx, Some(&directory), Execution::Actual)?;
        let status = fs::status_of(&directory, &self.path)?;
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
                fs::remove_tree(&place, &cx.patience())?;
                Ok(Vec::new())
            }
            (true, Execution::WhatIf) => Ok(vec!["remove the directory with everything in it".to_owned()]),
            (false, Execution::Actual) => match place.remove_directory() {
                Err(FsError::System { source, .. }) if source.kind() == ErrorKind::DirectoryNotEmpty => {
                    Err(not_empty())
                }
                removed => removed.map(|_| Vec::new()).map_err(Failure::from),
            },
            (false, Execution::WhatIf) => {
                if removal::is_filled(&place)? {
                    Err(not_empty())
                } else {
                    Ok(vec!["remove the empty directory".to_owned()])
                }
            }
        }
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
    let directory = fs::reopen_directory(&current.directory, path)?;
    Ok(cx.writes.change(&directory, path, ownership, mode)?)
}

fn not_a_directory(found: FileKind) -> Failure {
    let hint = match found {
        FileKind::Symlink => {
            "Name the path that it leads to, or remove the link with Stead/Symlink and '_exist: false'"
        }
        FileKind::File => "Remove it first, with Stead/File and '_exist: false'",
        FileKind::Directory | FileKind::Special => "It is left alone",
    };
    blocked(Properties::PATH, format!("there is a {} where the directory should be. {hint}", found.word()))
}

fn not_empty() -> Failure {
    blocked(Properties::RECURSE, "the directory is not empty. Add 'recurse: true' to remove it with everything in it")
}
