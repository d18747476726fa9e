//! What there is of a service, and the state that is reported of it.

use stead_core::value::{Object, Value};
use stead_system::fs::SystemPath;
use stead_system::services::UnitJob;

use super::steps::Change;
use super::unit::{Fragment, Unit};
use super::{Activity, Properties};

/// What there is of a service.
pub(super) struct Found {
    pub(super) unit: Unit,
    /// `None` where nothing can run.
    pub(super) is_running: Option<bool>,
    /// Whether it neither runs nor is about to.
    pub(super) is_stopped: bool,
    /// A file that it reads at its start and that was changed after that.
    pub(super) outdated_by: Option<SystemPath>,
    /// A file that it reads when it reloads and that was changed after that.
    pub(super) unread: Option<SystemPath>,
    /// Whether its unit says how it reloads; only known where that counts.
    pub(super) can_reload: bool,
    /// The content of the drop-ins that are stated.
    pub(super) drop_ins: Vec<Option<String>>,
}

impl Found {
    /// A unit that does not run, with the content of the drop-ins that are stated.
    pub(super) fn of(unit: Unit, drop_ins: Vec<Option<String>>) -> Self {
        Self { unit, is_running: None, is_stopped: true, outdated_by: None, unread: None, can_reload: false, drop_ins }
    }

    /// How it comes to read its configuration again.
    pub(super) fn reload(&self) -> UnitJob {
        if self.can_reload { UnitJob::Reload } else { UnitJob::Restart }
    }

    /// Why it is restarted or reloaded, where that is because of a file that this change does not write.
    pub(super) fn reason(&self, change: &Change) -> Option<String> {
        let changed =
            |path: &SystemPath, since: &str| format!("since '{}' was changed after its {since}", path.display());
        let outdated = self.outdated_by.as_ref().map(|path| changed(path, "start"));
        let unread = || self.unread.as_ref().map(|path| changed(path, "last reload"));
        match change.job.filter(|_| change.steps.is_empty())? {
            UnitJob::Restart if self.can_reload => outdated,
            UnitJob::Restart => outdated.or_else(|| Some(format!("{}, and it cannot reload", unread()?))),
            UnitJob::Reload => unread(),
            UnitJob::Start | UnitJob::Stop => None,
        }
    }

    fn activity(&self) -> Activity {
        if self.is_running == Some(true) { Activity::Running } else { Activity::Stopped }
    }

    pub(super) fn is(&self, activity: Activity) -> bool {
        match activity {
            Activity::Running => self.is_running == Some(true),
            Activity::Stopped => self.is_stopped,
        }
    }

    pub(super) fn is_masked(&self) -> bool {
        !self.unit.masks.is_empty()
    }

    /// Returns whether it starts at boot, which a masked unit does not whatever links lead to it.
    pub(super) fn is_enabled(&self) -> bool {
        !self.is_masked() && !self.unit.links.is_empty()
    }

    pub(super) fn own(&self) -> Option<&Fragment> {
        self.unit.fragment.as_ref().filter(|fragment| fragment.is_own())
    }
}

/// The state of a unit, without contents of files.
pub(super) fn state(name: &str, found: &Found) -> Object {
    let mut state = Object::with_capacity(7);
    state.insert(Properties::NAME.to_owned(), Value::from(name));
    state.insert(Properties::EXIST.to_owned(), Value::from(found.unit.exists()));
    if found.unit.exists() {
        if found.is_running.is_some() {
            state.insert(Properties::STATE.to_owned(), Value::from(found.activity().word()));
        }
        state.insert(Properties::ENABLED.to_owned(), Value::from(found.is_enabled()));
        state.insert(Properties::MASKED.to_owned(), Value::from(found.is_masked()));
    }
    state
}

impl Properties<'_> {
    pub(super) fn state(&self, found: &Found) -> Object {
        let mut state = state(&self.name.whole(), found);
        state.insert(Properties::NAME.to_owned(), Value::from(self.name.0));
        if let Some(own) = found.own().filter(|_| self.unit.is_some()) {
            state.insert(Properties::UNIT.to_owned(), Value::from(own.text.as_str()));
        }
        if let Some(stated) = &self.drop_ins {
            let present = stated.keys().zip(&found.drop_ins);
            let present = present.filter_map(|(name, text)| Some((name.0.to_owned(), Value::from(text.as_deref()?))));
            state.insert(Properties::DROP_INS.to_owned(), Value::Object(present.collect()));
        }
        state
    }

    /// The state that a set leads to: what is stated.
    pub(super) fn after(&self) -> Object {
        let mut after = Object::with_capacity(7);
        after.insert(Properties::NAME.to_owned(), Value::from(self.name.0));
        after.insert(Properties::EXIST.to_owned(), Value::from(self.exist));
        if !self.exist {
            return after;
        }
        let drop_ins = self.drop_ins.as_ref().map(|stated| {
            Value::Object(stated.iter().map(|(name, text)| (name.0.to_owned(), Value::from(text.0))).collect())
        });
        let stated = [
            (Properties::STATE, self.state.map(|state| Value::from(state.word()))),
            (Properties::ENABLED, self.enabled.map(Value::from)),
            (Properties::MASKED, self.masked.map(Value::from)),
            (Properties::UNIT, self.unit.map(|unit| Value::from(unit.0))),
            (Properties::DROP_INS, drop_ins),
        ];
        after.extend(stated.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        // It was asked for and done: what a test finds, which always asks for it, does not count against it.
        let asked = [(Properties::RESTARTED, self.restarted), (Properties::RELOADED, self.reloaded)];
        let asked = asked.into_iter().filter(|(_, is_asked)| *is_asked);
        after.extend(asked.map(|(name, _)| (name.to_owned(), Value::from(true))));
        after
    }
}
