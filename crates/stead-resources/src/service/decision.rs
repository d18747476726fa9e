//! What differs of a service, and what a set does about it.

use std::path::PathBuf;

use stead_core::call::{Failure, Presumed};
use stead_core::value::Object;
use stead_host::provider::{Context, Plain, Prediction};
use stead_system::fs::SystemRoot;
use stead_system::services::UnitJob;

use super::found::Found;
use super::steps::{self, Change, Step};
use super::unit::{self, Fragment, MASK};
use super::{Activity, Properties};
use crate::input::impossible;

impl Properties<'_> {
    pub(super) fn differing(&self, found: &Found) -> Vec<&'static str> {
        if self.exist == found.unit.exists() {
            if self.exist { self.differing_properties(found) } else { Vec::new() }
        } else {
            vec![Properties::EXIST]
        }
    }

    /// The properties in which a unit differs, be it there or not.
    fn differing_properties(&self, found: &Found) -> Vec<&'static str> {
        let has_drop_ins =
            || self.drop_in_paths().zip(&found.drop_ins).all(|((_, text), is)| is.as_deref() == Some(text));
        let is_running = found.is_running == Some(true);
        // Once it is unmasked, its links count.
        let is_enabled = found.is_enabled() || self.masked == Some(false) && !found.unit.links.is_empty();
        let differing = [
            (Properties::STATE, self.state.is_some_and(|state| !found.is(state))),
            (Properties::ENABLED, self.enabled.is_some_and(|enabled| enabled != is_enabled)),
            (Properties::MASKED, self.masked.is_some_and(|masked| masked != found.is_masked())),
            (Properties::UNIT, self.unit.is_some_and(|unit| found.own().is_none_or(|own| own.text != unit.0))),
            (Properties::DROP_INS, !has_drop_ins()),
            (Properties::RESTARTED_AFTER, found.outdated_by.is_some() && self.state != Some(Activity::Stopped)),
            (Properties::RESTARTED, self.restarted && is_running),
            (Properties::RELOADED_AFTER, found.unread.is_some() && self.state != Some(Activity::Stopped)),
            (Properties::RELOADED, self.reloaded && is_running),
        ];
        differing.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect()
    }

    /// Predicts the outcome of a set. A unit in its desired state is restarted or reloaded once a file is changed that it reads;
    /// `None` if no such change can do that.
    pub(super) fn predicted(&self, cx: &Context, found: &Found, state: &Object, differs: bool) -> Option<Prediction> {
        let after = Plain::new(state.clone());
        if !differs {
            let restarts = self.exist && found.is_running == Some(true) && self.state != Some(Activity::Stopped);
            let at_start = if restarts { self.files_read_at_start(cx, &cx.system_root) } else { Vec::new() };
            let again = if restarts { self.files_read_again(cx) } else { Vec::new() };
            let words = match (at_start.is_empty(), found.reload().word()) {
                (true, reload) => format!("{reload} it"),
                (false, reload) if !again.is_empty() && found.can_reload => format!("restart or {reload} it"),
                (false, _) => format!("{} it", UnitJob::Restart.word()),
            };
            let (words, once) = (vec![words], at_start.into_iter().chain(again));
            let once: Vec<PathBuf> = once.map(PathBuf::from).collect();
            return (!once.is_empty()).then(|| Prediction { after, words, once, ..Prediction::default() });
        }
        // What cannot be done is said by a set; a test says what differs.
        let words = self.change(&cx.system_root, found).ok()?.what_if;
        let mut after = if self.exist { state.clone() } else { Object::default() };
        after.extend(self.after());
        after.remove(Properties::RESTARTED);
        after.remove(Properties::RELOADED);
        Some(Prediction { after: Plain::new(after), words, ..Prediction::default() })
    }

    /// What a set does.
    pub(super) fn change(&self, root: &SystemRoot, found: &Found) -> Result<Change, Failure> {
        let mut change = Change { differing: self.differing(found), ..Change::default() };
        if change.differing.is_empty() {
            return Ok(change);
        }
        let decided =
            if self.exist { self.reach(root, found, &mut change) } else { self.remove(root, found, &mut change) };
        decided?;
        let because = found.reason(&change);
        change.describe(found.unit.exists(), self.exist, because);
        Ok(change)
    }

    pub(super) fn reach(&self, root: &SystemRoot, found: &Found, change: &mut Change) -> Result<(), Failure> {
        let (name, differing) = (self.name.whole(), self.differing_properties(found));
        let differs = |property: &str| differing.contains(&property);
        if differs(Properties::MASKED) && self.masked == Some(false) {
            let own = found.unit.masks.iter().map(|path| steps::unmasked(path)).collect::<Result<Vec<_>, _>>()?;
            change.steps.extend(own);
        }
        if let Some(unit) = self.unit.filter(|_| differs(Properties::UNIT)) {
            change.steps.push(Step::write(root, self.unit_path(), unit.0));
        }
        for ((path, text), present) in self.drop_in_paths().zip(&found.drop_ins) {
            if present.as_deref() != Some(text) {
                change.steps.push(Step::write(root, path, text));
            }
        }
        match self.fragment(found) {
            None if self.masked != Some(true) => {
                let is_to_run = self.state == Some(Activity::Running) || self.enabled == Some(true);
                let is_unwanted = self.state == Some(Activity::Stopped) || self.enabled == Some(false);
                change.presume(steps::no_unit(&name, is_to_run || !is_unwanted), root, &self.unit_path());
            }
            Some(fragment) if differs(Properties::ENABLED) => match self.enabled {
                Some(true) => steps::enable(root, &found.unit.name, &fragment, change)?,
                _ => steps::disable(root, &found.unit.name, &found.unit.links, &fragment, change),
            },
            Some(_) | None => {}
        }
        if differs(Properties::MASKED) && self.masked == Some(true) {
            if found.own().is_some() {
                let hint = "Remove it first, with an instance whose '_exist' is false";
                return Err(impossible(Properties::MASKED, format!("'/{}' is a unit file. {hint}", self.unit_path())));
            }
            if root.at(self.unit_path()).status().is_some() {
                let hint = if found.unit.name == name {
                    "Remove the link first, with `systemctl disable`"
                } else {
                    "Name that"
                };
                let of = if found.unit.name == name { "a unit file" } else { &found.unit.name };
                return Err(impossible(
                    Properties::MASKED,
                    format!("'/{}' is a link to {of}. {hint}", self.unit_path()),
                ));
            }
            change.steps.push(Step::Link { path: self.unit_path(), target: MASK.to_owned() });
        }
        change.job = self.job(found, &differing);
        if change.job.is_some() && found.is_running.is_none() {
            change.presumed.get_or_insert_with(|| Presumed::of(steps::nothing_runs(), Vec::new()));
        }
        let starts = matches!(change.job, Some(UnitJob::Start | UnitJob::Restart)) || self.enabled == Some(true);
        if starts && found.is_masked() && self.masked.is_none() {
            let failure = impossible(Properties::MASKED, format!("'{name}' is masked. Add 'masked: false'"));
            change.presumed.get_or_insert(Presumed::of(failure, Vec::new()));
        }
        Ok(())
    }

    /// The unit file as it is to be.
    pub(super) fn fragment(&self, found: &Found) -> Option<Fragment> {
        let stated = self.unit.map(|unit| Fragment { path: self.unit_path(), text: unit.0.to_owned() });
        stated.or_else(|| found.unit.fragment.clone())
    }

    pub(super) fn job(&self, found: &Found, differing: &[&str]) -> Option<UnitJob> {
        let is_running = found.is_running == Some(true);
        match self.state {
            Some(Activity::Running) if !is_running => return Some(UnitJob::Start),
            Some(Activity::Stopped) => return (!found.is_stopped).then_some(UnitJob::Stop),
            _ => {}
        }
        let has_new_file = self.state.is_some()
            && [Properties::UNIT, Properties::DROP_INS].iter().any(|name| differing.contains(name));
        let is_due = [Properties::RESTARTED, Properties::RESTARTED_AFTER].iter().any(|name| differing.contains(name));
        let is_unread = [Properties::RELOADED, Properties::RELOADED_AFTER].iter().any(|name| differing.contains(name));
        match () {
            () if is_running && (has_new_file || is_due) => Some(UnitJob::Restart),
            () => (is_running && is_unread).then(|| found.reload()),
        }
    }

    pub(super) fn remove(&self, root: &SystemRoot, found: &Found, change: &mut Change) -> Result<(), Failure> {
        let name = self.name.whole();
        if let Some(fragment) = found.unit.fragment.as_ref().filter(|fragment| !fragment.is_own()) {
            let hint = "Remove its package, or mask that unit instead";
            return Err(impossible(
                Properties::NAME,
                format!("'{name}' has the unit file '/{}'. {hint}", fragment.path),
            ));
        }
        if let Some(fragment) = found.own() {
            // Without the file, none of the links to it leads anywhere.
            let unit = &found.unit.name;
            steps::disable(root, unit, &unit::links(root, unit), fragment, change);
            change.steps.push(Step::remove(root, fragment.path.clone()));
            change.steps.extend(steps::remove_drop_ins(root, &self.unit_path()));
        }
        change.steps.extend(found.unit.masks.iter().map(|path| steps::unmasked(path)).collect::<Result<Vec<_>, _>>()?);
        change.job = (!found.is_stopped).then_some(UnitJob::Stop);
        Ok(())
    }
}
