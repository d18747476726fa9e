//! `Stead/File`: a regular file, its content, mode and owner.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags, fchmod, fstat};
use serde_json::{Map, Value as Json, json};
use stead_core::call::{Execution, Failure, Presumed};
use stead_core::value::Value;
use stead_host::fs::{self, Former, FsError, Kind, Names, Ownership, Place, Replacement, Status, Writes};
use stead_host::provider::{Context, Cost, Plain, Provider, SetReply, State, TestReply};

use crate::input::{Input, cannot, invalid, refused};
use crate::permissions::{Permissions, report_all};
use crate::{ALL_BUT_EXPORT, BuiltIn, Profile, reply};

pub(crate) mod content;

use content::Content;

const PROFILE: Profile = Profile {
    type_name: "Stead/File",
    description: "A file with its content, mode and owner.",
    tags: &["file", "content", "linux"],
    capabilities: ALL_BUT_EXPORT,
    schema: include_str!("schema.json"),
};

const PROPERTIES: &[&str] =
    &["path", "content", "contentBase64", "source", "mode", "owner", "group", "backup", "_exist"];
const READ_ONLY: &[&str] = &["size", "sha256", "modified"];

/// The mode of a new file when none is asked for, whatever the umask is: a run has to give the same result everywhere.
const DEFAULT_MODE: u32 = 0o644;

/// `Stead/File` as it is registered.
pub fn built_in() -> Option<BuiltIn> {
    PROFILE.built_in(Arc::new(Files::default()))
}

/// Carries out `Stead/File`.
#[derive(Default)]
pub struct Files {
    names: Names,
}

impl Provider for Files {
    fn get(&self, cx: &Context, input: &Plain) -> Result<State, Failure> {
        let desired = Desired::read(cx, input, &self.names)?;
        let Some(current) = Current::open(&desired.path, |flags| fs::open(&desired.path, flags), false)? else {
            return Ok(Plain::new(reply::state(desired.path_text, false).into()));
        };
        let mut state = reply::state(desired.path_text, true);
        report_all(&current.status, &self.names, &mut state);
        state.insert("size".into(), json!(current.status.size));
        if let Some(digest) = content::sha256(&current.file).map_err(|error| cannot("read", &desired.path, error))? {
            state.insert("sha256".into(), json!(digest));
        }
        if let Some(modified) = current.status.modified() {
            state.insert("modified".into(), json!(modified));
        }
        desired
            .content
            .report(&current.file, &current.status, &mut state)
            .map_err(|error| cannot("read", &desired.path, error))?;
        Ok(Plain::new(state.into()))
    }

    fn test(&self, cx: &Context, input: &Plain) -> Result<TestReply, Failure> {
        let desired = Desired::read(cx, input, &self.names)?;
        let current = Current::open(&desired.path, |flags| fs::open(&desired.path, flags), desired.reads())?;
        let differing = desired.differing(current.as_ref())?;
        let actual = desired.actual(current.as_ref(), &differing, &self.names)?;
        Ok(reply::tested(actual, &differing))
    }

    fn set(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<SetReply, Failure> {
        let desired = Desired::read(cx, input, &self.names)?;
        let Some(place) = Place::find(&desired.path, &cx.writes)? else { return desired.without_directory(execution) };
        if cx.found_absent && desired.exist && execution == Execution::Actual && desired.create(&place)? {
            return Ok(desired.reply(&["_exist"], Vec::new()));
        }
        if execution == Execution::Actual {
            let differing = fs::retry_changed(&desired.path, || desired.converge(&place))?;
            return Ok(desired.reply(&differing, Vec::new()));
        }
        let (current, differing) = desired.compare(&place)?;
        let reply = desired.reply(&differing, desired.intentions(current.as_ref(), &differing));
        Ok(SetReply { presumed: desired.presumed(&place, current.as_ref(), &differing)?, ..reply })
    }

    fn delete(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<Vec<String>, Failure> {
        let desired = Desired { exist: false, ..Desired::read(cx, input, &self.names)? };
        let Some(place) = Place::find(&desired.path, &cx.writes)? else { return Ok(Vec::new()) };
        if execution == Execution::WhatIf {
            let (current, differing) = desired.compare(&place)?;
            return Ok(desired.intentions(current.as_ref(), &differing));
        }
        fs::retry_changed(&desired.path, || desired.converge(&place))?;
        Ok(Vec::new())
    }

    fn cost(&self, desired: &Value) -> Cost {
        reply::cost(desired)
    }

    fn touches(&self, input: &Plain) -> Option<Vec<PathBuf>> {
        reply::touches(input)
    }
}

/// The file that is there.
struct Current {
    file: File,
    status: Status,
}

impl Current {
    /// Opens it without waiting for anything; when its content is not needed, it may be unreadable.
    fn open(
        path: &Path,
        open: impl Fn(OFlags) -> Result<Option<OwnedFd>, FsError>,
        reads: bool,
    ) -> Result<Option<Self>, Failure> {
        let opened = match open(OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY) {
            // A socket cannot be opened at all, and what cannot be read can still be examined.
            Err(FsError::System { source, .. }) if source.raw_os_error() == Some(ENXIO) => open(OFlags::PATH)?,
            Err(FsError::System { source, .. }) if !reads && source.kind() == io::ErrorKind::PermissionDenied => {
                open(OFlags::PATH)?
            }
            Err(error) => return Err(instead(error)),
            Ok(opened) => opened,
        };
        let Some(fd) = opened else { return Ok(None) };
        let status = fstat(&fd).map(Status::from).map_err(|errno| cannot("examine", path, errno))?;
        match status.kind {
            Kind::File => Ok(Some(Self { file: fd.into(), status })),
            found => Err(not_a_file(found)),
        }
    }
}

const ENXIO: i32 = rustix::io::Errno::NXIO.raw_os_error();

fn instead(error: FsError) -> Failure {
    if let FsError::WrongKind { found, .. } = error { not_a_file(found) } else { error.into() }
}

fn not_a_file(found: Kind) -> Failure {
    let hint = match found {
        Kind::Symlink => "Name the path that it leads to, or remove the link with Stead/Symlink and '_exist: false'",
        Kind::Directory => "Remove it first, with Stead/Directory and '_exist: false'",
        Kind::File | Kind::Special => "It is left alone",
    };
    refused("path", format!("there is a {} where the file should be. {hint}", found.word()))
}

/// Whether and how former content is kept.
enum Backup<'a> {
    No,
    /// As `name.backup-` and the begin of the SHA-256 of the content, so that every content is kept once.
    Numbered,
    /// Under the name with this suffix, the last one only.
    Suffix(&'a str),
}

/// A desired state.
struct Desired<'a> {
    path_text: &'a str,
    path: PathBuf,
    exist: bool,
    content: Content<'a>,
    permissions: Permissions<'a>,
    backup: Backup<'a>,
}

impl<'a> Desired<'a> {
    fn read(cx: &Context, input: &'a Plain, names: &Names) -> Result<Self, Failure> {
        let input = Input::read(input, PROPERTIES, READ_ONLY)?;
        let (path_text, path) = input.required_file("path", cx)?;
        Ok(Self {
            path_text,
            path,
            exist: input.flag("_exist")?.unwrap_or(true),
            content: Content::read(&input, cx)?,
            permissions: Permissions::read(&input, names)?,
            backup: read_backup(&input)?,
        })
    }

    /// Whether it takes the content to compare.
    fn reads(&self) -> bool {
        self.exist && !matches!(self.content, Content::Any)
    }

    fn differing(&self, current: Option<&Current>) -> Result<Vec<&'static str>, Failure> {
        match current {
            None if self.exist => Ok(vec!["_exist"]),
            Some(_) if !self.exist => Ok(vec!["_exist"]),
            None => Ok(Vec::new()),
            Some(current) => {
                let same = self.content.is_in(&current.file, &current.status, &self.path)?;
                let content = (!same).then(|| self.content.property());
                Ok(content.into_iter().chain(self.permissions.differing(&current.status)).collect())
            }
        }
    }

    fn actual(
        &self,
        current: Option<&Current>,
        differing: &[&str],
        names: &Names,
    ) -> Result<Map<String, Json>, Failure> {
        let Some(current) = current else { return Ok(reply::state(self.path_text, false)) };
        let mut state = reply::state(self.path_text, true);
        if self.exist {
            if differing.contains(&self.content.property()) {
                let reported = self.content.report(&current.file, &current.status, &mut state);
                reported.map_err(|error| cannot("read", &self.path, error))?;
            } else {
                self.content.echo(&mut state);
            }
            self.permissions.report(&current.status, names, &mut state);
        }
        Ok(state)
    }

    /// The answer once it is, or in what-if would be, as desired.
    fn reply(&self, differing: &[&str], what_if: Vec<String>) -> SetReply {
        let mut after = reply::state(self.path_text, self.exist);
        if self.exist {
            self.content.echo(&mut after);
            self.permissions.echo(&mut after);
        }
        reply::set(after, differing, what_if)
    }

    /// What is not there yet without which it cannot be brought about.
    fn presumed(
        &self,
        place: &Place,
        current: Option<&Current>,
        differing: &[&str],
    ) -> Result<Option<Presumed>, Failure> {
        if differing.is_empty() {
            return Ok(None);
        }
        let content = self.content.presumed().filter(|_| self.exist);
        if let Some(missing) = content.or_else(|| self.permissions.presumed()) {
            return Ok(Some(missing));
        }
        let former = current.filter(|_| self.exist && differing.contains(&self.content.property()));
        let writes = former.is_some() || differing.contains(&"_exist");
        let ownership = match (former, current) {
            (Some(former), _) => self.kept(former)?,
            (None, Some(current)) => self.permissions.ownership()?.beyond(&current.status),
            (None, None) => self.permissions.ownership()?,
        };
        let place = writes.then(|| not_writable(place)).flatten();
        let owner = ownership.check_allowed(&self.path).err().filter(|_| self.exist);
        Ok(place.or_else(|| owner.map(|error| Presumed { failure: error.into(), path: None })))
    }

    fn without_directory(&self, execution: Execution) -> Result<SetReply, Failure> {
        match (self.exist, execution) {
            (false, _) => Ok(self.reply(&[], Vec::new())),
            // Something else in the document may be about to create it.
            (true, Execution::WhatIf) => {
                let reply = self.reply(&["_exist"], self.intentions(None, &["_exist"]));
                Ok(SetReply { presumed: Some(presumed_directory(&self.path)), ..reply })
            }
            (true, Execution::Actual) => Err(no_directory(&self.path)),
        }
    }

    fn intentions(&self, current: Option<&Current>, differing: &[&str]) -> Vec<String> {
        if differing.is_empty() {
            return Vec::new();
        }
        let mut intentions = match (self.exist, current) {
            (true, None) => vec!["create the file".to_owned()],
            (true, Some(_)) if differing.contains(&self.content.property()) => vec!["replace its content".to_owned()],
            (true, Some(_)) => Vec::new(),
            (false, _) => vec!["remove the file".to_owned()],
        };
        let loses_content = !intentions.is_empty() && current.is_some();
        if loses_content && !matches!(self.backup, Backup::No) {
            intentions.push("keep its former content beside it".to_owned());
        }
        intentions.extend(self.permissions.intentions(differing));
        intentions
    }

    /// What is there and what of it differs, if it may be changed.
    fn compare(&self, place: &Place) -> Result<(Option<Current>, Vec<&'static str>), Failure> {
        let current = Current::open(&self.path, |flags| place.open(flags), self.reads())?;
        let differing = self.differing(current.as_ref())?;
        if let Some(current) = &current {
            self.check_in_place(place, current, &differing)?;
        }
        Ok((current, differing))
    }

    /// Returns what differed; `None` when somebody else changed the file meanwhile.
    fn converge(&self, place: &Place) -> Result<Option<Vec<&'static str>>, Failure> {
        let (current, differing) = self.compare(place)?;
        Ok(self.bring_about(place, current.as_ref(), &differing)?.then_some(differing))
    }

    /// Returns false when somebody else changed the file meanwhile.
    fn bring_about(&self, place: &Place, current: Option<&Current>, differing: &[&str]) -> Result<bool, Failure> {
        match current {
            _ if differing.is_empty() => Ok(true),
            None => self.replace(place, None, self.mode_or(DEFAULT_MODE), self.permissions.ownership()?),
            Some(current) if !self.exist => {
                self.keep(place, current)?;
                place.remove()?;
                Ok(true)
            }
            Some(current) if differing.contains(&self.content.property()) => {
                let replaced = self.kept(current)?;
                self.keep(place, current)?;
                self.replace(place, Some(current), self.mode_or(current.status.mode), replaced)
            }
            Some(current) => self.change_permissions(place, current),
        }
    }

    /// Creates the file, unless something is there by now, and returns whether it did.
    fn create(&self, place: &Place) -> Result<bool, Failure> {
        self.replace(place, None, self.mode_or(DEFAULT_MODE), self.permissions.ownership()?)
    }

    fn mode_or(&self, other: u32) -> u32 {
        self.permissions.mode.map_or(other, |(_, mode)| mode)
    }

    /// The owner that new content gets in place of other: the one asked for, else the one that is.
    fn kept(&self, current: &Current) -> Result<Ownership, Failure> {
        let asked = self.permissions.ownership()?;
        let Status { uid, gid, .. } = current.status;
        Ok(Ownership { uid: Some(asked.uid.unwrap_or(uid)), gid: Some(asked.gid.unwrap_or(gid)) })
    }

    /// Returns whether what is there is the new file; false when it is one that somebody else put there meanwhile.
    fn replace(
        &self,
        place: &Place,
        former: Option<&Current>,
        mode: u32,
        ownership: Ownership,
    ) -> Result<bool, Failure> {
        let Some(former) = former else {
            let replacement = Replacement::begin(place, Former::Absent)?;
            self.content.write(&replacement)?;
            return Ok(replacement.finish(mode, ownership)?.is_some());
        };
        // Again, because a backup is another name of it, and that has changed its status.
        let status = fstat(&former.file).map(Status::from).map_err(|errno| cannot("examine", &self.path, errno))?;
        if !status.identity.has_content_of(&former.status.identity) {
            return Ok(false);
        }
        let mut replacement = Replacement::begin(place, Former::Unchanged(&status))?;
        replacement.keep_attributes(&former.file)?;
        match &self.content {
            Content::Any => content::copy(&former.file, &replacement)?,
            content => content.write(&replacement)?,
        }
        Ok(replacement.finish(mode, ownership)?.is_some())
    }

    /// Refuses to change permissions in place where that is not safe, unless the content is known for a new file.
    fn check_in_place(&self, place: &Place, current: &Current, differing: &[&str]) -> Result<(), Failure> {
        let needed = self.exist && !self.reads() && !differing.is_empty();
        if !needed || fs::may_change_in_place(&place.directory_status()?, &current.status) {
            return Ok(());
        }
        let why = "others can write to its directory, and it may be another name of somebody else's file";
        Err(refused("path", format!("the permissions of the file are not changed: {why}. State its content")))
    }

    fn change_permissions(&self, place: &Place, current: &Current) -> Result<bool, Failure> {
        let asked = self.permissions.ownership()?;
        let in_place = fs::may_change_in_place(&place.directory_status()?, &current.status);
        if !in_place || asked.takes_over(&current.status) {
            return self.replace(place, Some(current), self.mode_or(current.status.mode), self.kept(current)?);
        }
        let ownership = asked.beyond(&current.status);
        ownership.apply(current.file.as_fd()).map_err(|errno| cannot("change the owner of", &self.path, errno))?;
        // The system takes set-user-id away when the owner changes.
        let changes = |mode: &u32| *mode != current.status.mode || !ownership.is_none();
        if let Some(mode) = self.permissions.mode.map(|(_, mode)| mode).filter(changes) {
            set_mode(&current.file, mode).map_err(|error| cannot("change the mode of", &self.path, error))?;
        }
        place.writes().changed(&current.file, &self.path)?;
        Ok(true)
    }

    fn keep(&self, place: &Place, current: &Current) -> Result<(), Failure> {
        let Some(name) = self.backup_name(place.name(), current)? else { return Ok(()) };
        if place.keep_as(&name)? {
            return Ok(());
        }
        let copy = place.sibling(&name)?;
        let mut replacement = Replacement::begin(&copy, Former::Any)?;
        replacement.keep_attributes(&current.file)?;
        content::copy(&current.file, &replacement)?;
        let Status { mode, uid, gid, .. } = current.status;
        replacement.finish(mode, Ownership { uid: Some(uid), gid: Some(gid) })?;
        Ok(())
    }

    fn backup_name(&self, name: &OsStr, current: &Current) -> Result<Option<OsString>, Failure> {
        let mut backup = name.to_owned();
        match self.backup {
            Backup::No => return Ok(None),
            Backup::Suffix(suffix) => backup.push(suffix),
            Backup::Numbered => {
                let digest = content::sha256(&current.file).map_err(|error| cannot("read", &self.path, error))?;
                backup.push(format!(".backup-{:.12}", digest.unwrap_or_default()));
            }
        }
        Ok(Some(backup))
    }
}

/// The failure that a file is to be created in a directory that is not there.
pub(crate) fn no_directory(path: &Path) -> Failure {
    let directory = path.parent().unwrap_or(path).display();
    let hint = "Create it with a Stead/Directory that this instance depends on";
    refused("path", format!("there is no directory '{directory}'. {hint}"))
}

/// In what-if: that the directory has to come about first.
pub(crate) fn presumed_directory(path: &Path) -> Presumed {
    Presumed { failure: no_directory(path), path: Some(path.to_owned()) }
}

/// In what-if: that names in the directory cannot be given or taken away as it is.
pub(crate) fn not_writable(place: &Place) -> Option<Presumed> {
    place.check_writable().err().map(|error| Presumed { failure: error.into(), path: Some(place.path().to_owned()) })
}

/// In what-if: what keeps anything from being put there.
pub(crate) fn presumed_place(path: &Path) -> Result<Option<Presumed>, Failure> {
    Ok(Place::find(path, &Writes::unrecorded())?
        .map_or_else(|| Some(presumed_directory(path)), |place| not_writable(&place)))
}

/// Changes the mode of an open file, of one that was opened by `O_PATH` too.
pub(crate) fn set_mode(file: &File, mode: u32) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    match fchmod(file, Mode::from_raw_mode(mode)) {
        Err(rustix::io::Errno::BADF) => {
            let itself = format!("/proc/self/fd/{}", file.as_raw_fd());
            Ok(rustix::fs::chmod(itself, Mode::from_raw_mode(mode))?)
        }
        changed => Ok(changed?),
    }
}

fn read_backup<'a>(input: &Input<'a>) -> Result<Backup<'a>, Failure> {
    match input.json("backup") {
        None | Some(Json::Bool(false)) => Ok(Backup::No),
        Some(Json::Bool(true)) => Ok(Backup::Numbered),
        Some(Json::String(suffix)) if !suffix.is_empty() && !suffix.contains(['/', '\0']) => Ok(Backup::Suffix(suffix)),
        Some(_) => Err(invalid("backup", "'backup' has to be true, false, or a suffix such as \".orig\"")),
    }
}
