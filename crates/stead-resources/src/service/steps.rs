//! What is done to the files of a unit: decided first, then shown or carried out.

use std::ffi::OsStr;
use std::path::Path;

use stead_core::call::{Failure, Presumed};
use stead_core::destruction::{Effect, Effects, Item, ItemKind};
use stead_host::provider::Context;
use stead_system::fs::{FileKind, Former, FsError, How, Ownership, Place, Replacement, SystemPath, SystemRoot};

use super::Properties;
use super::unit::{ADMINISTRATOR, Fragment, Install, MASK, Unit};
use crate::input::{blocked, impossible};
use crate::pending;
use stead_system::services::UnitJob;

/// What becomes of a service.
#[derive(Default)]
pub(super) struct Change {
    pub(super) differing: Vec<&'static str>,
    pub(super) steps: Vec<Step>,
    pub(super) job: Option<UnitJob>,
    pub(super) what_if: Vec<String>,
    pub(super) effects: Effects,
    pub(super) presumed: Option<Presumed>,
    /// True if the restart of this process is left to it.
    pub(super) restarts_itself: bool,
}

/// One change of a file. Paths are relative to the root.
pub(super) enum Step {
    Write { path: String, text: String, former: Option<ItemKind> },
    Link { path: String, target: String },
    Remove { path: String, kind: ItemKind },
}

impl Step {
    pub(super) fn write(root: &SystemRoot, path: String, text: &str) -> Self {
        let former = kind_at(&root.at(&path));
        Self::Write { path, text: text.to_owned(), former }
    }

    pub(super) fn remove(root: &SystemRoot, path: String) -> Self {
        let kind = kind_at(&root.at(&path)).unwrap_or(ItemKind::File { size: 0 });
        Self::Remove { path, kind }
    }

    fn path(&self) -> &str {
        match self {
            Self::Write { path, .. } | Self::Link { path, .. } | Self::Remove { path, .. } => path,
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Write { path, former: None, .. } => format!("create '/{path}'"),
            Self::Write { path, former: Some(ItemKind::Symlink { .. }), .. } => {
                format!("replace the link '/{path}' with a file")
            }
            Self::Write { path, .. } => format!("replace the content of '/{path}'"),
            Self::Link { path, target } => format!("link '/{path}' to '{target}'"),
            Self::Remove { path, .. } => format!("remove '/{path}'"),
        }
    }

    pub(super) fn take(&self, cx: &Context) -> Result<(), Failure> {
        let path = cx.system_root.at(self.path());
        match self {
            Self::Write { text, .. } => {
                write(&place(cx, &path)?, text)?;
            }
            Self::Link { target, .. } => place(cx, &path)?.replace_by_link(OsStr::new(target), Ownership::default())?,
            Self::Remove { .. } => {
                if let Some(place) = Place::find(&path, &cx.writes)? {
                    place.remove()?;
                }
            }
        }
        Ok(())
    }
}

/// What is at a path: a link is not followed.
fn kind_at(path: &SystemPath) -> Option<ItemKind> {
    let size = path.status()?.size;
    let target = path.link_target().map(|target| target.to_string_lossy().into_owned());
    Some(target.map_or(ItemKind::File { size }, |target| ItemKind::Symlink { target }))
}

/// Writes a unit file. One that is there keeps its mode, its owner and its attributes.
fn write(place: &Place, text: &str) -> Result<(), Failure> {
    let file = place.status()?.filter(|status| status.kind == FileKind::File);
    let mut replacement = Replacement::begin(place, file.as_ref().map_or(Former::Any, Former::Unchanged))?;
    let (mut mode, mut ownership) = (0o644, Ownership::default());
    if let Some(status) = &file {
        if let Some(former) = place.open(How::Read)? {
            replacement.keep_attributes(&former.into())?;
        }
        (mode, ownership) = (status.mode, Ownership { uid: Some(status.uid), gid: Some(status.gid) });
    }
    replacement.write(text.as_bytes())?;
    let done = replacement.finish(mode, ownership)?;
    done.map(|_| ()).ok_or_else(|| FsError::KeepsChanging(place.path().to_owned()).into())
}

/// The place of a path, whose directories are made where they are missing.
fn place(cx: &Context, path: &SystemPath) -> Result<Place, Failure> {
    if let Some(place) = Place::find(path, &cx.writes)? {
        return Ok(place);
    }
    let Some(parent) = path.parent() else { return Err(pending::no_directory(path)) };
    place(cx, &parent)?.make_directory_with(0o755, Ownership::default())?;
    Place::find(path, &cx.writes)?.ok_or_else(|| pending::no_directory(path))
}

impl Change {
    /// Says in words what is done, and why, and lists what it creates and destroys.
    pub(super) fn describe(&mut self, existed: bool, exists: bool, because: Option<String>) {
        self.effects = Effects::of(match (existed, exists) {
            (false, _) => Effect::Create,
            (true, true) => Effect::Change,
            (true, false) => Effect::Remove,
        });
        for step in &self.steps {
            let path = format!("/{}", step.path());
            match step {
                Step::Write { text, former: None, .. } => {
                    self.effects.creates.push(Item { path, kind: ItemKind::File { size: text.len() as u64 } });
                }
                Step::Write { former: Some(link @ ItemKind::Symlink { .. }), .. } => {
                    self.effects.destroys.push(Item { path, kind: link.clone() });
                }
                Step::Write { .. } => {}
                Step::Link { target, .. } => {
                    self.effects.creates.push(Item { path, kind: ItemKind::Symlink { target: target.clone() } });
                }
                Step::Remove { kind, .. } => self.effects.destroys.push(Item { path, kind: kind.clone() }),
            }
        }
        self.what_if = self.steps.iter().map(Step::words).collect();
        let because = because.map(|because| format!(", {because}"));
        self.what_if.extend(self.job.map(|job| format!("{} it{}", job.word(), because.unwrap_or_default())));
    }

    /// Notes what is missing, unless something else is.
    pub(super) fn presume(&mut self, failure: Failure, root: &SystemRoot, missing: &str) {
        self.presumed.get_or_insert_with(|| Presumed::of(failure, vec![root.at(missing).into()]));
    }

    /// What keeps the files from being written.
    pub(super) fn not_writable(&self, cx: &Context) -> Option<Presumed> {
        self.steps.iter().find_map(|step| {
            let path = cx.system_root.at(step.path());
            let mut places = path.ancestors().map(|path| Place::find(&path, &cx.writes));
            let nearest = places.find_map(Result::transpose)?;
            match nearest {
                Ok(place) => pending::not_writable(&place),
                Err(error) => Some(Presumed::of(error.into(), Vec::new())),
            }
        })
    }
}

/// Lets the links that a unit file asks for lead to it, and those of the units that belong to it.
pub(super) fn enable(root: &SystemRoot, name: &str, fragment: &Fragment, change: &mut Change) -> Result<(), Failure> {
    let install = Install::of(&fragment.text, name);
    if install.has_odd_names {
        let what = "has an entry in [Install] that is not a full unit name";
        return Err(blocked(Properties::ENABLED, format!("the unit file '/{}' {what}", fragment.path)));
    }
    if install.links.is_empty() {
        let hint = "Such a unit is started by others. Leave out 'enabled'";
        return Err(impossible(
            Properties::ENABLED,
            format!("the unit file '/{}' asks for no links in a section [Install]. {hint}", fragment.path),
        ));
    }
    let mut add = |install: Install, target: &str| {
        let missing = install.links.into_iter().filter(|link| root.at(link).status().is_none());
        change.steps.extend(missing.map(|path| Step::Link { path, target: format!("/{target}") }));
    };
    for other in install.also.iter().filter(|other| *other != name) {
        if let Some(fragment) = Unit::find(root, other).fragment {
            add(Install::of(&fragment.text, other), &fragment.path);
        }
    }
    add(install, &fragment.path);
    Ok(())
}

/// Removes the links that enable a unit, and those of the units that belong to it.
pub(super) fn disable(root: &SystemRoot, name: &str, links: &[String], fragment: &Fragment, change: &mut Change) {
    let also = Install::of(&fragment.text, name).also;
    let others = also.iter().filter(|other| *other != name).flat_map(|other| Unit::find(root, other).links);
    change.steps.extend(others.chain(links.iter().cloned()).map(|path| Step::remove(root, path)));
}

/// Removes a mask that an administrator made.
pub(super) fn unmasked(path: &str) -> Result<Step, Failure> {
    if path.starts_with(ADMINISTRATOR) || path.starts_with("run/systemd/system/") {
        let kind = ItemKind::Symlink { target: MASK.to_owned() };
        return Ok(Step::Remove { path: path.to_owned(), kind });
    }
    Err(impossible(Properties::MASKED, format!("a package masks it, by '/{path}'. State its unit file in 'unit'")))
}

/// Removes the drop-ins of a unit.
pub(super) fn remove_drop_ins(root: &SystemRoot, unit: &str) -> Vec<Step> {
    let folder = format!("{unit}.d");
    let entries = root.entries(&folder).unwrap_or_default();
    let names = entries.into_keys().filter_map(|name| name.into_string().ok());
    let files = names.filter(|name| Path::new(name).extension() == Some(OsStr::new("conf")));
    files.map(|name| Step::remove(root, format!("{folder}/{name}"))).collect()
}

/// When a file was last changed, in microseconds since 1970.
pub(super) fn changed_at(path: &SystemPath) -> Option<u64> {
    u64::try_from(path.followed()?.changed_at().as_micros()).ok()
}

/// The failure that there is no such unit, which is to run or not.
pub(super) fn no_unit(name: &str, is_to_run: bool) -> Failure {
    let hint = if is_to_run {
        "Install its package with an instance that this one depends on, or state its unit file in 'unit'"
    } else {
        "Add '_exist: false' for a unit that must not be there, in place of 'state' and 'enabled'"
    };
    blocked(Properties::NAME, format!("there is no unit '{name}'. {hint}"))
}

pub(super) fn nothing_runs() -> Failure {
    impossible(Properties::STATE, "systemd does not run in this root. State only 'enabled' and 'masked'")
}
