//! The desired state of a file, whatever its content comes from.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::path::Path;

use stead_core::call::{Execution, Failure, Presumed};
use stead_core::destruction::{Effect, Effects, Item, ItemKind};
use stead_core::value::{Object, Value};
use stead_host::predicted_files::PredictedFile;
use stead_host::provider::{Context, Plain, Prediction, SetReply, State, TestReply};
use stead_system::fs::{self, Former, Ownership, Place, Replacement, Status, SystemPath};
use stead_system::user::Names;

use super::content::{self, FileContent, Shown};
use super::{Current, Properties};
use crate::guard::Guard;
use crate::input::{Backup, FilePath, blocked, cannot, transient};
use crate::parents::Parents;
use crate::permissions::{Permissions, report_all};
use crate::{pending, reply};

/// The mode of a new file when none is asked for, whatever the umask is: a run must give the same result everywhere.
const DEFAULT_MODE: u32 = 0o644;

/// That of one whose properties hold a secret: who states no mode has not thought of who may read it.
const SECRET_MODE: u32 = 0o600;

/// The desired state of a file whose content comes from anywhere: what resources that write whole files have in common.
pub(crate) struct Desired<'a, C> {
    pub(crate) path_text: &'a str,
    pub(crate) path: SystemPath,
    pub(crate) exist: bool,
    pub(crate) content: C,
    /// Its content as it is shown, once that was needed: it may take reading a large file.
    shown: OnceCell<Option<Shown>>,
    permissions: Permissions<'a>,
    pub(super) backup: Backup<'a>,
    /// Whether missing directories above it are created.
    pub(super) parents: bool,
    /// The mode of a new file where none is stated.
    default_mode: u32,
    /// The command that must accept new content.
    pub(crate) guard: Option<Guard<'a>>,
    /// The content that it accepted.
    accepted: OnceCell<Vec<u8>>,
}

impl<'a, C: FileContent> Desired<'a, C> {
    /// That there is a file with this content.
    pub(crate) fn new(
        cx: &Context,
        path: FilePath<'a>,
        content: C,
        permissions: Permissions<'a>,
        backup: Backup<'a>,
    ) -> Self {
        let (path_text, path) = (path.0.0, path.0.resolve(cx));
        let shown = OnceCell::new();
        Self {
            path_text,
            path,
            exist: true,
            content,
            shown,
            permissions,
            backup,
            parents: false,
            default_mode: DEFAULT_MODE,
            guard: None,
            accepted: OnceCell::new(),
        }
    }

    /// Gives a new file the mode 0600 if the properties hold a secret and state no mode.
    pub(crate) fn private_if_secret(self, input: &Plain) -> Self {
        if input.is_secret() { Self { default_mode: SECRET_MODE, ..self } } else { self }
    }

    /// The actual state.
    pub(crate) fn get(&self, names: &Names) -> Result<State, Failure> {
        let Some(current) = Current::open(&self.path, |flags| fs::open(&self.path, flags), false)? else {
            return Ok(Plain::new(reply::state(self.path_text, false)));
        };
        let mut state = reply::state(self.path_text, true);
        report_all(&current.status, names, &mut state);
        state.insert(Properties::SIZE.into(), Value::from(current.status.size));
        if let Some(digest) = content::sha256(&current.file).map_err(|error| cannot("read", &self.path, error))? {
            state.insert(Properties::SHA256.into(), Value::from(digest));
        }
        if let Some(modified) = current.status.modified() {
            state.insert(Properties::MODIFIED.into(), Value::from(modified));
        }
        self.content.give(&current, &self.path, &mut state)?;
        Ok(Plain::new(state))
    }

    /// Compares the actual state with it.
    pub(crate) fn test(&self, cx: &Context, names: &Names) -> Result<TestReply, Failure> {
        let current = Current::open(&self.path, |flags| fs::open(&self.path, flags), self.reads())?;
        let differing = self.differing(current.as_ref())?;
        if cx.verdict_suffices && differing.is_empty() {
            return Ok(reply::in_state());
        }
        let actual = self.actual(current.as_ref(), &differing, names)?;
        let predicted = self.prediction(cx, current.as_ref(), &differing)?;
        Ok(TestReply { predicted, ..reply::tested(actual, &differing) })
    }

    /// Reaches it.
    pub(crate) fn set(&self, cx: &Context, execution: Execution) -> Result<SetReply, Failure> {
        match Place::find(&self.path, &cx.writes)? {
            Some(place) => self.set_at(&place, cx, execution),
            None => self.without_directory(cx, execution),
        }
    }

    fn set_at(&self, place: &Place, cx: &Context, execution: Execution) -> Result<SetReply, Failure> {
        if let (Some(guard), Execution::Actual) = (self.guard, execution) {
            self.guarded(place, cx, guard)?;
        }
        if cx.found_absent && self.exist && execution == Execution::Actual && self.create(place)? {
            let effects = self.effects(Some(place), None, &[Properties::EXIST])?;
            return Ok(SetReply { effects, ..self.reply(&[Properties::EXIST], Vec::new()) });
        }
        if execution == Execution::Actual {
            let (differing, effects) = fs::retry_changed(&self.path, || self.converge(place))?;
            return Ok(SetReply { effects, ..self.reply(&differing, Vec::new()) });
        }
        let (current, differing) = self.compare(place)?;
        let effects = self.effects(Some(place), current.as_ref(), &differing)?;
        let presumed = self.presumed(place, current.as_ref(), &differing)?;
        self.predict_file(cx, current.as_ref(), &differing);
        let reply = self.reply(&differing, self.intentions(current.as_ref(), &differing));
        Ok(SetReply { presumed, effects, ..reply })
    }

    /// Has the command accept what is to be written, if there is new content.
    fn guarded(&self, place: &Place, cx: &Context, guard: Guard<'_>) -> Result<(), Failure> {
        let (_, differing) = self.compare(place)?;
        if self.is_checked(&differing) {
            let content = self.content.bytes()?;
            guard.check(cx, &self.path, &content)?;
            self.accepted.get_or_init(|| content.into_owned());
        }
        Ok(())
    }

    /// Writes the content: where a command had to accept it, just what it accepted.
    fn write(&self, replacement: &Replacement<'_>) -> Result<(), Failure> {
        match (self.guard, self.accepted.get()) {
            (None, _) => self.content.write(replacement),
            (Some(_), Some(accepted)) => Ok(replacement.write(accepted)?),
            (Some(_), None) if !self.content.is_stated() => Ok(()),
            (Some(_), None) => Err(transient(Properties::PATH, "the file was changed by others meanwhile")),
        }
    }

    /// Removes the file. Returns what would be done in words, when only asked.
    pub(crate) fn delete(self, cx: &Context, execution: Execution) -> Result<Vec<String>, Failure> {
        let absent = Self { exist: false, ..self };
        let Some(place) = Place::find(&absent.path, &cx.writes)? else { return Ok(Vec::new()) };
        if execution == Execution::WhatIf {
            let (current, differing) = absent.compare(&place)?;
            return Ok(absent.intentions(current.as_ref(), &differing));
        }
        fs::retry_changed(&absent.path, || absent.converge(&place))?;
        Ok(Vec::new())
    }

    fn shown(&self) -> Option<&Shown> {
        self.shown.get_or_init(|| self.content.shown()).as_ref()
    }

    /// Returns whether it takes the content to compare.
    fn reads(&self) -> bool {
        self.exist && self.content.is_stated()
    }

    fn differing(&self, current: Option<&Current>) -> Result<Vec<&'static str>, Failure> {
        match current {
            None if self.exist => Ok(vec![Properties::EXIST]),
            Some(_) if !self.exist => Ok(vec![Properties::EXIST]),
            None => Ok(Vec::new()),
            Some(current) => {
                let same = self.content.is_in(&current.file, &current.status, &self.path)?;
                let content = (!same).then(|| self.content.property());
                Ok(content.into_iter().chain(self.permissions.differing(&current.status)).collect())
            }
        }
    }

    fn actual(&self, current: Option<&Current>, differing: &[&str], names: &Names) -> Result<Object, Failure> {
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

    /// The state once it is as desired.
    fn after(&self, differing: &[&str]) -> Object {
        let mut after = reply::state(self.path_text, self.exist);
        if self.exist {
            if self.replaces_content(differing) {
                self.content.announce(self.shown(), &mut after);
            } else {
                self.content.echo(&mut after);
            }
            self.permissions.echo(&mut after);
        }
        after
    }

    fn reply(&self, differing: &[&str], what_if: Vec<String>) -> SetReply {
        reply::set(self.after(differing), differing, what_if)
    }

    /// Returns whether the content that is there, if any, is not the one afterwards.
    fn replaces_content(&self, differing: &[&str]) -> bool {
        differing.contains(&Properties::EXIST) || differing.contains(&self.content.property())
    }

    /// Returns whether a command must accept the content, if one must.
    fn is_checked(&self, differing: &[&str]) -> bool {
        self.exist && self.content.is_stated() && self.replaces_content(differing)
    }

    /// What a set would come to; `None` where the desired state tells it, or what is there keeps a set from it.
    fn prediction(
        &self,
        cx: &Context,
        current: Option<&Current>,
        differing: &[&str],
    ) -> Result<Option<Prediction>, Failure> {
        let is_stated = !self.replaces_content(differing) || self.content.is_shown_as_stated();
        let parents = if current.is_none() { self.parents_above()? } else { Parents::default() };
        let is_stated = is_stated && parents.is_empty();
        if differing.is_empty() || (self.exist && is_stated && !matches!(self.backup, Backup::Suffix(_))) {
            return Ok(None);
        }
        let Ok(place) = Place::find(&self.path, &cx.writes) else { return Ok(None) };
        let effects = self.effects(place.as_ref(), current, differing)?;
        let (after, effects) = (Plain::new(self.after(differing)), parents.before(effects));
        Ok(Some(Prediction { after, effects, ..Prediction::default() }))
    }

    /// What a set creates and destroys besides what the states show; without a place, where there is not even a directory.
    fn effects(
        &self,
        place: Option<&Place>,
        current: Option<&Current>,
        differing: &[&str],
    ) -> Result<Effects, Failure> {
        if differing.is_empty() {
            return Ok(Effects::default());
        }
        let mut effects = Effects::of(match (self.exist, current) {
            (false, _) => Effect::Remove,
            (true, None) => Effect::Create,
            (true, Some(_)) => Effect::Change,
        });
        if !self.replaces_content(differing) {
            return Ok(effects);
        }
        if self.exist {
            effects.creates.extend(self.shown().and_then(|shown| shown.item(self.path_text)));
        }
        if let (Some(place), Some(current)) = (place, current) {
            effects.destroys.extend(self.lost(place, current)?);
        }
        Ok(effects)
    }

    /// What is lost with the content of a file that is there: that content, or what its copy takes the place of.
    fn lost(&self, place: &Place, current: &Current) -> Result<Option<Item>, Failure> {
        match self.backup_name(place.name(), current)? {
            Some(name) if matches!(self.backup, Backup::Suffix(_)) => {
                let former = place.sibling(&name)?;
                let shown = Path::new(self.path_text).with_file_name(&name).display().to_string();
                let Some(status) = former.status()? else { return Ok(None) };
                Ok(Some(Item { path: shown, kind: ItemKind::File { size: status.size } }))
            }
            Some(_) => Ok(None),
            None if self.exist => {
                let shown = self.content.shown_of(&current.file, &current.status);
                Ok(shown.map_err(|error| cannot("read", &self.path, error))?.item(self.path_text))
            }
            None => {
                let kind = ItemKind::File { size: current.status.size };
                Ok(Some(Item { path: self.path_text.to_owned(), kind }))
            }
        }
    }

    /// What does not exist yet and is required to reach it.
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
        let guard = self.guard.filter(|_| self.is_checked(differing)).and_then(Guard::presumed);
        if let Some(missing) = Presumed::all([content, guard, self.permissions.presumed()]) {
            return Ok(Some(missing));
        }
        let former = current.filter(|_| self.exist && differing.contains(&self.content.property()));
        let writes = former.is_some() || differing.contains(&Properties::EXIST);
        let ownership = match (former, current) {
            (Some(former), _) => self.kept(former)?,
            (None, Some(current)) => self.permissions.ownership()?.beyond(&current.status),
            (None, None) => self.permissions.ownership()?,
        };
        let pending = if writes { pending::not_writable(place) } else { self.not_changeable(place, current)? };
        let owner = || pending::not_owner(&self.path, ownership).filter(|_| self.exist);
        Ok(pending.or_else(owner))
    }

    /// What keeps the permissions from being changed: in place, or where that is not safe in a new file.
    fn not_changeable(&self, place: &Place, current: Option<&Current>) -> Result<Option<Presumed>, Failure> {
        let Some(current) = current else { return Ok(None) };
        if !fs::may_change_in_place(&place.directory_status()?, &current.status) {
            return Ok(pending::not_writable(place));
        }
        let ownership = self.permissions.ownership()?.beyond(&current.status);
        Ok(pending::not_changeable(&self.path, &current.status, &current.file, ownership))
    }

    fn presumed_without_directory(&self, parents: &Parents) -> Result<Option<Presumed>, Failure> {
        let directory =
            if parents.is_empty() { Some(pending::without_directory(&self.path)) } else { parents.presumed()? };
        let guard = self.guard.filter(|_| self.content.is_stated()).and_then(Guard::presumed);
        Ok(Presumed::all([directory, self.content.presumed(), guard, self.permissions.presumed()]))
    }

    /// The directories that come into being with it.
    fn parents_above(&self) -> Result<Parents, Failure> {
        Parents::above(&self.path, self.path_text, self.parents && self.exist)
    }

    fn without_directory(&self, cx: &Context, execution: Execution) -> Result<SetReply, Failure> {
        let parents = self.parents_above()?;
        match (self.exist, execution) {
            (false, _) => Ok(self.reply(&[], Vec::new())),
            (true, Execution::Actual) if !parents.is_empty() => {
                parents.create(&cx.writes)?;
                let place = Place::find(&self.path, &cx.writes)?.ok_or_else(|| pending::no_directory(&self.path))?;
                let reply = self.set_at(&place, cx, execution)?;
                Ok(SetReply { effects: parents.before(reply.effects), ..reply })
            }
            // Something else in the document may be about to create it.
            (true, Execution::WhatIf) => {
                let reply = self.reply(&[Properties::EXIST], self.intentions(None, &[Properties::EXIST]));
                let effects = parents.before(self.effects(None, None, &[Properties::EXIST])?);
                self.predict_file(cx, None, &[Properties::EXIST]);
                Ok(SetReply { presumed: self.presumed_without_directory(&parents)?, effects, ..reply })
            }
            (true, Execution::Actual) => Err(pending::no_directory(&self.path)),
        }
    }

    /// In what-if: has those behind it find the file as it will be.
    fn predict_file(&self, cx: &Context, current: Option<&Current>, differing: &[&str]) {
        let is_of_interest = self.exist && !differing.is_empty();
        let forecast = cx.forecast.as_ref().filter(|forecast| is_of_interest && forecast.is_shared(&self.path));
        let ownership = current.map_or_else(|| self.permissions.ownership(), |current| self.kept(current));
        let Some((forecast, ownership)) = forecast.zip(ownership.ok()) else { return };
        let content = match current {
            Some(current) if !self.replaces_content(differing) => content::read_all(&current.file).ok(),
            _ if self.content.is_stated() => self.content.bytes().ok().map(Cow::into_owned),
            _ => Some(Vec::new()),
        };
        let mode = self.mode_or(current.map_or(self.default_mode, |current| current.status.mode));
        if let Some(content) = content {
            let status = Status::to_come(mode, ownership.uid, ownership.gid, content.len() as u64);
            forecast.leave(&self.path, PredictedFile { content: content.into(), status });
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
        intentions
            .extend(self.guard.filter(|_| self.is_checked(differing)).map(|guard| guard.intention(self.path_text)));
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

    /// Returns what differed and what became of it; `None` when somebody else changed the file meanwhile.
    fn converge(&self, place: &Place) -> Result<Option<(Vec<&'static str>, Effects)>, Failure> {
        let (current, differing) = self.compare(place)?;
        let effects = self.effects(Some(place), current.as_ref(), &differing)?;
        Ok(self.bring_about(place, current.as_ref(), &differing)?.then_some((differing, effects)))
    }

    /// Returns false when somebody else changed the file meanwhile.
    fn bring_about(&self, place: &Place, current: Option<&Current>, differing: &[&str]) -> Result<bool, Failure> {
        match current {
            _ if differing.is_empty() => Ok(true),
            None => self.replace(place, None, self.mode_or(self.default_mode), self.permissions.ownership()?),
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
        self.replace(place, None, self.mode_or(self.default_mode), self.permissions.ownership()?)
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
            self.write(&replacement)?;
            return Ok(replacement.finish(mode, ownership)?.is_some());
        };
        // Again, because a backup is another name of it, and that has changed its status.
        let status = fs::status_of(&former.file, &self.path)?;
        if !status.identity.has_content_of(&former.status.identity) {
            return Ok(false);
        }
        let mut replacement = Replacement::begin(place, Former::Unchanged(&status))?;
        replacement.keep_attributes(&former.file)?;
        let is_new = self.guard.is_none()
            || self.accepted.get().is_some()
            || !self.content.is_in(&former.file, &former.status, &self.path)?;
        if self.content.is_stated() && is_new {
            self.write(&replacement)?;
        } else if self.content.is_stated() {
            // No command is asked about content that was in place.
            self.content.write(&replacement)?;
        } else {
            content::copy(&former.file, &replacement)?;
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
        Err(blocked(Properties::PATH, format!("the permissions of the file are not changed: {why}. State its content")))
    }

    fn change_permissions(&self, place: &Place, current: &Current) -> Result<bool, Failure> {
        let asked = self.permissions.ownership()?;
        let in_place = fs::may_change_in_place(&place.directory_status()?, &current.status);
        if !in_place || asked.takes_over(&current.status) {
            return self.replace(place, Some(current), self.mode_or(current.status.mode), self.kept(current)?);
        }
        let ownership = asked.beyond(&current.status);
        // The system takes set-user-id away when the owner changes.
        let changes = |mode: &u32| *mode != current.status.mode || !ownership.is_none();
        let mode = self.permissions.mode.map(|(_, mode)| mode).filter(changes);
        place.writes().change(&current.file, &self.path, ownership, mode)?;
        Ok(true)
    }
}
