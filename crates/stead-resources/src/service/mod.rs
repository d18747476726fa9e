//! `Stead/Service`: a service, or another unit, of systemd.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use stead_core::call::{Execution, Exported, Failure, Presumed};
use stead_core::claims::{Claims, Extent, Provision, Ties};
use stead_core::manifest::Capabilities;
use stead_core::statements::Statement;
use stead_core::value::{Object, Value};
use stead_declare::resource;
use stead_host::provider::{Context, Cost, Plain, Prediction, Provider, Review, SetReply, State, TestReply};
use stead_system::fs::{SystemPath, SystemRoot};
use stead_system::services::{Invocation, Job, Lasting, Systemd};

use crate::declared::Declared as _;
use crate::input::{PathText, exclusive, impossible, read, read_each};
use crate::text::{DropInName, FileText, UnitName, unit_file_flaw, whole_name, words};
use crate::{ALL_BUT_EXPORT, BuiltIn, reply};

mod drop_ins;
mod meaning;
mod steps;
mod unit;

pub(crate) use drop_ins::{StatedFile, overridden};
use steps::{Change, Step};
use unit::{ADMINISTRATOR, Fragment, MASK, Unit};

/// A service, or another unit, of systemd: whether it runs and starts at boot, and its unit file. systemd reloads changed unit
/// files before anything is started. Below a root other than that of the running system, only files and links are managed.
#[resource(
    "Stead/Service",
    about = "A service of systemd.",
    tags("linux", "service", "systemd"),
    capabilities = Capabilities { export: true, ..ALL_BUT_EXPORT },
)]
struct Properties<'a> {
    /// The name of the unit. '.service' is added to a name without the ending of another kind of unit.
    #[property(key)]
    name: UnitName<'a>,
    /// Whether it runs. A service of type oneshot stays running only with `RemainAfterExit`.
    state: Option<Activity>,
    /// Whether it starts at boot: the links that the section [Install] of its unit file defines.
    enabled: Option<bool>,
    /// Whether it is masked, so that nothing can start it.
    masked: Option<bool>,
    /// The content of its unit file in /etc/systemd/system, for a unit that is not part of a package. If 'state' is running,
    /// it is restarted when the file changed after its start.
    unit: Option<FileText<'a>>,
    /// The content of drop-in files, by their names without '.conf', as in
    /// {"limits": "[Service]\nLimitNOFILE=65536\n"}. Other drop-in files are not changed; it fails where one that systemd reads
    /// later takes back what this or 'unit' states, naming it: with an empty value, or with another one of a setting that stead
    /// knows to have one value.
    drop_ins: Option<BTreeMap<DropInName<'a>, FileText<'a>>>,
    /// Files that it reads at its start, such as its configuration: it is restarted if it runs and one of them changed after
    /// its start, by whatever program. A restart that an interrupted run did not reach is done by the next run.
    #[property(option)]
    #[serde(default)]
    restarted_after: Vec<PathText<'a>>,
    /// Restarts it by every set if it runs: for an instance with the directive 'onChanges', which is only set when another
    /// instance changed something.
    #[property(option)]
    restarted: bool,
    /// How many seconds a service must keep running after it was started or restarted. The run looks at it when that time
    /// has passed and all else is done, for all services at once: one that has ended or was started again by systemd has
    /// failed. One that ends later is found by the next check or job: raise this for a service that takes longer to fail.
    /// 0 for no such look.
    #[property(option)]
    #[serde(default = "stable_for")]
    #[schemars(range(max = 600), extend("default" = STABLE_FOR))]
    stable_for: u32,
    /// Whether the unit exists. To make it absent, it is stopped and disabled, and its files in /etc/systemd/system are
    /// removed; the unit file of a package is not removed.
    exist: bool,
}

/// Services that fail when they read their configuration, or do not find what they need, do so in this time as a rule.
const STABLE_FOR: u32 = 3;

/// The longest that a run waits for.
const LONGEST_STABLE_FOR: u32 = 600;

fn stable_for() -> u32 {
    STABLE_FOR
}

words! {
    /// Whether a service runs.
    pub(crate) enum Activity {
        /// It runs.
        Running = "running",
        /// It does not.
        Stopped = "stopped",
    }
}

impl<'a> crate::input::Properties<'a> for Properties<'a> {
    fn check(&self) -> Result<(), Failure> {
        let is_masked = self.masked == Some(true);
        exclusive((Properties::MASKED, is_masked), (Properties::UNIT, self.unit.is_some()))?;
        if is_masked && self.state == Some(Activity::Running) {
            return Err(crate::input::invalid(
                Properties::STATE,
                "'state' cannot be \"running\" while 'masked' is true",
            ));
        }
        if is_masked && self.enabled == Some(true) {
            return Err(crate::input::invalid(Properties::ENABLED, "'enabled' cannot be true while 'masked' is true"));
        }
        if self.restarted && self.state == Some(Activity::Stopped) {
            return Err(crate::input::invalid(
                Properties::RESTARTED,
                "'restarted' cannot be true while 'state' is \"stopped\"",
            ));
        }
        if self.stable_for > LONGEST_STABLE_FOR {
            return Err(crate::input::invalid(Properties::STABLE_FOR, "'stableFor' must be between 0 and 600"));
        }
        let unit = self.unit.iter().map(|unit| (Properties::UNIT, *unit));
        let drop_ins = self.drop_ins.iter().flatten().map(|(_, text)| (Properties::DROP_INS, *text));
        let flawed = unit.chain(drop_ins).find_map(|(name, text)| Some((name, unit_file_flaw(text.0)?)));
        flawed.map_or(Ok(()), |(name, flaw)| {
            Err(crate::input::invalid(name, format!("systemd would ignore a part of '{name}': {flaw}")))
        })
    }
}

/// `Stead/Service` as it is registered.
pub(crate) fn built_in() -> Option<BuiltIn> {
    Properties::built_in(Arc::new(Services::default()))
}

/// The unit file of that name in the administrator's directory.
pub(crate) fn own_unit_file(cx: &Context, name: &str) -> Option<String> {
    let fragment = Unit::find(&cx.system_root, name).fragment?;
    fragment.is_own().then_some(fragment.text)
}

/// Where the administrator's unit file of that name is.
pub(crate) fn own_unit_path(name: &str) -> String {
    format!("/{ADMINISTRATOR}/{name}")
}

/// Where the unit file of that name is, relative to the root, if it is not the administrator's.
pub(crate) fn foreign_unit_file(cx: &Context, name: &str) -> Option<String> {
    let fragment = Unit::find(&cx.system_root, name).fragment?;
    (!fragment.is_own()).then_some(fragment.path)
}

/// The removals of the administrator's drop-ins of a unit, which can say otherwise than its file until then.
pub(crate) fn drop_in_removals(name: &str) -> Provision {
    Provision::Removals(PathBuf::from(format!("/{ADMINISTRATOR}/{name}.d")).into())
}

/// Whether a unit with this unit file is enabled, or can be.
pub(crate) fn can_be_enabled(cx: &Context, name: &str, text: &str) -> bool {
    !unit::Install::of(text, name).links.is_empty() || !Unit::find(&cx.system_root, name).links.is_empty()
}

/// The names of the timers whose unit files are in the administrator's directory.
pub(crate) fn own_timers(cx: &Context) -> BTreeSet<String> {
    let mut names = unit::configured(&cx.system_root, ".timer");
    names.retain(|name| own_unit_file(cx, name).is_some());
    names
}

/// Lets systemd, where it runs, read unit files and what it makes them of again.
pub(crate) fn read_units_again() -> Result<(), Failure> {
    if Systemd::is_running() { Systemd::default().reload() } else { Ok(()) }
}

/// Carries out `Stead/Service`.
#[derive(Default)]
pub(crate) struct Services {
    systemd: Systemd,
    /// The services started, by name, which are reviewed at the end of the run.
    started: Mutex<BTreeMap<String, Start>>,
}

/// A start of a service.
struct Start {
    invocation: Invocation,
    at: Instant,
}

impl Provider for Services {
    /// Whether it was to be restarted is known only once.
    fn has_state_elsewhere(&self, cx: &Context, input: &Plain) -> bool {
        is_live(cx) && input.expose().get(Properties::RESTARTED) != Some(&Value::Bool(true))
    }

    fn validate(&self, _cx: &Context, input: &Plain) -> Result<(), Failure> {
        read::<Properties<'_>>(input).map(|_| ())
    }

    fn get(&self, cx: &Context, input: &Plain) -> Result<State, Failure> {
        let desired: Properties<'_> = read_each(input)?;
        let found = self.find(cx, &desired)?;
        Ok(Plain::new(desired.state(&found)))
    }

    fn test(&self, cx: &Context, input: &Plain) -> Result<TestReply, Failure> {
        let desired: Properties<'_> = read(input)?;
        let found = self.find(cx, &desired)?;
        desired.check_in_force(&cx.system_root)?;
        let (state, differing) = (desired.state(&found), desired.differing(&found));
        let predicted = desired.predicted(cx, &found, &state, !differing.is_empty());
        Ok(TestReply { predicted, ..reply::tested(state, &differing) })
    }

    fn set(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<SetReply, Failure> {
        read::<Properties<'_>>(input)?.check_in_force(&cx.system_root)?;
        self.put(cx, input, execution)
    }

    fn delete(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<Vec<String>, Failure> {
        let desired = Properties { exist: false, ..read_each(input)? };
        Ok(self.bring_about(cx, &desired, execution)?.what_if)
    }

    fn export(&self, cx: &Context, _filter: &Plain) -> Result<Vec<Exported>, Failure> {
        let (root, mut names) = (&cx.system_root, BTreeSet::new());
        if is_live(cx) {
            names.extend(self.systemd.running("*.service")?);
        }
        let running = names.clone();
        names.extend(unit::configured(root, ".service"));
        let exported = |name: String| {
            let is_running = is_live(cx).then(|| running.contains(&name));
            let (unit, is_stopped) = (Unit::find(root, &name), is_running != Some(true));
            let found = Found { unit, is_running, is_stopped, outdated_by: None, drop_ins: Vec::new() };
            let state = state(&name, &found);
            Exported::named(name, state)
        };
        Ok(names.into_iter().map(exported).collect())
    }

    fn review(&self, cx: &Context, input: &Plain) -> Review {
        let Ok(desired) = read_each::<Properties<'_>>(input) else { return Review::Lasted };
        let name = desired.name.whole();
        let Some(left) = self.left_to_last(&desired) else { return Review::Lasted };
        let invocation = self.started().get(&name).map(|start| start.invocation.clone());
        let verdict = if is_live(cx) { self.systemd.has_lasted(&name, invocation.as_ref()) } else { Ok(Lasting::Done) };
        if verdict.as_ref().is_ok_and(|verdict| *verdict == Lasting::Runs) && !left.is_zero() {
            return Review::TooEarly(left);
        }
        self.started().remove(&name);
        verdict.map_or_else(Review::Failed, |_| Review::Lasted)
    }

    fn manages(&self, _cx: &Context, input: &Plain) -> Option<Claims> {
        let stated: Properties<'_> = read_each(input).ok()?;
        let absolute = |path: String| Path::new("/").join(path);
        if !stated.exist {
            return Some(Claims::path(absolute(stated.unit_path()), Extent::Absent));
        }
        let unit = stated.unit.map(|_| stated.unit_path());
        let files = unit.into_iter().chain(stated.drop_in_paths().map(|(path, _)| path));
        let files: Claims = files.map(|path| (absolute(path), Extent::Whole)).collect();
        (!files.0.is_empty()).then_some(files)
    }

    fn states(&self, cx: &Context, input: &Plain) -> Vec<Statement> {
        let stated = whole_name(reply::text(input, Properties::NAME).unwrap_or_default());
        // A unit file that is stated takes the place of a link by that name.
        let is_own = input.expose().get(Properties::UNIT).is_some();
        let name = if is_own { stated } else { unit::real_name(&cx.system_root, &stated).unwrap_or(stated) };
        reply::states(
            &format!("the unit '{name}'"),
            input,
            &[Properties::STATE, Properties::ENABLED, Properties::MASKED],
        )
    }

    fn ties(&self, input: &Plain) -> Ties {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let files = input.expose().get(Properties::RESTARTED_AFTER).and_then(Value::as_array).into_iter().flatten();
        let files = files.filter_map(|file| Some(Provision::Path(Path::new(file.as_str()?).into())));
        // A package brings the unit that has its name, as a rule.
        let name = input.expose().get(Properties::NAME).and_then(text);
        let brought = |name: &String| Provision::Package(name.strip_suffix(".service").unwrap_or(name).to_owned());
        let package = name.as_ref().map(brought);
        let writes =
            [Properties::UNIT, Properties::DROP_INS].iter().any(|property| input.expose().get(property).is_some());
        let writes = writes && !reply::is_removal(input);
        let folder = name.as_deref().filter(|_| writes).map(|name| drop_in_removals(&whole_name(name)));
        Ties { provides: Vec::new(), uses: files.chain(package).chain(folder).collect() }
    }

    fn test_cost(&self, _desired: &Value) -> Cost {
        // systemd answers questions at once.
        Cost::Inline
    }
}

/// Whether the running system is what is managed, and systemd its service manager.
pub(crate) fn is_live(cx: &Context) -> bool {
    cx.manages_running_system() && Systemd::is_running()
}

/// Whether a system is started by the init of System V.
fn has_other_init(root: &SystemRoot) -> bool {
    let exists = |path: &str| root.at(path).followed().is_some();
    exists("etc/inittab") && !exists("usr/lib/systemd/systemd") && !exists("lib/systemd/systemd")
}

impl Services {
    /// Brings a unit about, whatever other files say of it.
    pub(crate) fn put(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<SetReply, Failure> {
        let desired: Properties<'_> = read(input)?;
        let change = self.bring_about(cx, &desired, execution)?;
        let Change { differing, what_if, effects, presumed, restarts_itself, .. } = change;
        let mut after = desired.after();
        if restarts_itself {
            let service = Object::from_iter([("service".to_owned(), Value::from(&*desired.name.whole()))]);
            after.insert("_restartRequired".to_owned(), Value::Array(vec![Value::Object(service)]));
            // It is asked for, and done when this process ends: a test in the meantime does not count against it.
            let files = input.expose().get(Properties::RESTARTED_AFTER).cloned();
            after.extend(files.map(|files| (Properties::RESTARTED_AFTER.to_owned(), files)));
        }
        Ok(SetReply { presumed, effects, ..reply::set(after, &differing, what_if) })
    }

    fn find(&self, cx: &Context, desired: &Properties<'_>) -> Result<Found, Failure> {
        let (root, name) = (&cx.system_root, desired.name.whole());
        if has_other_init(root) {
            // Unit files and links, which packages bring anyway, start nothing there.
            return Err(impossible(Properties::NAME, "this system uses sysvinit; only systemd services are supported"));
        }
        let read = |path: &str| unit::text_of(root, path);
        let unit = Unit::find(root, &name);
        let mut found = Found {
            // A unit file that is stated takes the place of a link by that name.
            unit: if desired.unit.is_some() { unit.named(root, &name) } else { unit },
            is_running: None,
            is_stopped: true,
            outdated_by: None,
            drop_ins: desired.drop_in_paths().map(|(path, _)| read(&path)).collect(),
        };
        if is_live(cx) {
            let status = self.systemd.status(&name)?;
            let files = desired.files_read_at_start(cx, root);
            let mut outdated_by = None;
            if status.is_running() && !files.is_empty() {
                let started = self.systemd.started_at(&status)?;
                let is_newer = |file: &&SystemPath| started > 0 && steps::changed_at(file) > Some(started);
                outdated_by = files.iter().find(is_newer).cloned();
            }
            // One that ends and is started again, over and over, does not run.
            let runs = match desired.lasting() {
                Some(stable_for) if status.is_running() && desired.state == Some(Activity::Running) => {
                    self.systemd.runs_on(&cx.cancel, &name, stable_for)?
                }
                _ => status.is_running(),
            };
            let (is_running, is_stopped) = (Some(runs), status.is_stopped());
            found = Found { is_running, is_stopped, outdated_by, ..found };
        }
        Ok(found)
    }

    fn bring_about(&self, cx: &Context, desired: &Properties<'_>, execution: Execution) -> Result<Change, Failure> {
        let found = self.find(cx, desired)?;
        let change = desired.change(&cx.system_root, &found)?;
        if execution == Execution::WhatIf {
            let presumed = change.presumed.clone().or_else(|| change.not_writable(cx));
            return Ok(Change { presumed, ..change });
        }
        if let Some(presumed) = change.presumed {
            return Err(presumed.failure);
        }
        let restarts_itself = self.carry_out(cx, desired, &change)?;
        Ok(Change { restarts_itself, ..change })
    }

    /// How long a service that should run must keep running from now on; `None` if nothing is required of it.
    fn left_to_last(&self, desired: &Properties<'_>) -> Option<Duration> {
        let since = self.started().get(&desired.name.whole()).map(|start| start.at.elapsed());
        // After a crash of this process it is not known when it was started.
        let since = since.or((desired.state == Some(Activity::Running)).then_some(Duration::MAX))?;
        Some(desired.lasting()?.saturating_sub(since))
    }

    fn started(&self) -> MutexGuard<'_, BTreeMap<String, Start>> {
        self.started.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes systemd carry out a job, and remembers a start for its review.
    fn run(&self, cx: &Context, name: &str, job: Job) -> Result<(), Failure> {
        self.started().remove(name);
        self.systemd.run(&cx.cancel, cx.deadline, name, job)?;
        if job != Job::Stop {
            let invocation = self.systemd.invocation(name)?;
            self.started().insert(name.to_owned(), Start { invocation, at: Instant::now() });
        }
        Ok(())
    }

    /// Changes the files, and has systemd do the rest. A unit that goes is stopped while systemd still knows it. Whether it is a
    /// restart of this very process, which is left to it: its end would wait for this set, and the set for its end.
    fn carry_out(&self, cx: &Context, desired: &Properties<'_>, change: &Change) -> Result<bool, Failure> {
        let name = desired.name.whole();
        let ends = matches!(change.job, Some(Job::Stop | Job::Restart)) || desired.masked == Some(true);
        let is_own = ends && is_live(cx) && self.systemd.is_main_process(&name)?;
        if is_own && (change.job == Some(Job::Stop) || desired.masked == Some(true)) {
            let hint = format!("use `systemctl stop {name}`");
            return Err(impossible(Properties::NAME, format!("stead runs in '{name}' and cannot stop it; {hint}")));
        }
        let run = |job: Option<Job>| job.map_or(Ok(()), |job| self.run(cx, &name, job));
        let (first, last) = if change.job == Some(Job::Stop) { (change.job, None) } else { (None, change.job) };
        run(first)?;
        for step in &change.steps {
            step.take(cx)?;
        }
        if !change.steps.is_empty() && is_live(cx) {
            self.systemd.reload()?;
        }
        run(last.filter(|_| !is_own))?;
        Ok(is_own && last == Some(Job::Restart))
    }
}

/// What there is of a service.
struct Found {
    unit: Unit,
    /// `None` where nothing can run.
    is_running: Option<bool>,
    /// Whether it neither runs nor is about to.
    is_stopped: bool,
    /// A file that it reads at its start and that was changed after that.
    outdated_by: Option<SystemPath>,
    /// The content of the drop-ins that are stated.
    drop_ins: Vec<Option<String>>,
}

impl Found {
    fn activity(&self) -> Activity {
        if self.is_running == Some(true) { Activity::Running } else { Activity::Stopped }
    }

    fn is(&self, activity: Activity) -> bool {
        match activity {
            Activity::Running => self.is_running == Some(true),
            Activity::Stopped => self.is_stopped,
        }
    }

    fn is_masked(&self) -> bool {
        !self.unit.masks.is_empty()
    }

    /// Whether it starts at boot, which a masked unit does not whatever links lead to it.
    fn is_enabled(&self) -> bool {
        !self.is_masked() && !self.unit.links.is_empty()
    }

    fn own(&self) -> Option<&Fragment> {
        self.unit.fragment.as_ref().filter(|fragment| fragment.is_own())
    }
}

/// The state of a unit, without contents of files.
fn state(name: &str, found: &Found) -> Object {
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
    fn unit_path(&self) -> String {
        format!("{ADMINISTRATOR}/{}", self.name.whole())
    }

    /// The drop-ins that are stated: where they are, and their content.
    fn drop_in_paths(&self) -> impl Iterator<Item = (String, &str)> {
        let stated = self.drop_ins.iter().flatten();
        stated.map(|(name, text)| (format!("{}.d/{}.conf", self.unit_path(), name.0), text.0))
    }

    /// Fails where systemd reads other files so that those that are stated would not be in force.
    fn check_in_force(&self, root: &SystemRoot) -> Result<(), Failure> {
        let unit =
            self.unit.map(|unit| StatedFile { property: Properties::UNIT, path: self.unit_path(), text: unit.0 });
        let drop_in = |(path, text)| StatedFile { property: Properties::DROP_INS, path, text };
        let stated: Vec<_> = unit.into_iter().chain(self.drop_in_paths().map(drop_in)).collect();
        let found = if self.exist { overridden(root, &self.name.whole(), &stated) } else { None };
        found.map_or(Ok(()), Err)
    }

    /// The files that count for whether a service that runs is outdated, where they are.
    fn files_read_at_start(&self, cx: &Context, root: &SystemRoot) -> Vec<SystemPath> {
        let mut files: Vec<_> = self.restarted_after.iter().map(|path| path.resolve(cx)).collect();
        if self.state == Some(Activity::Running) {
            files.extend(self.unit.map(|_| root.at(self.unit_path())));
            files.extend(self.drop_in_paths().map(|(path, _)| root.at(path)));
        }
        files
    }

    fn state(&self, found: &Found) -> Object {
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
    fn after(&self) -> Object {
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
        after.extend(self.restarted.then(|| (Properties::RESTARTED.to_owned(), Value::from(true))));
        after
    }

    fn differing(&self, found: &Found) -> Vec<&'static str> {
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
        ];
        differing.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect()
    }

    /// How long the unit must run without an end, once it was started: a service, unless it should not run.
    fn lasting(&self) -> Option<Duration> {
        let is_service = Path::new(&self.name.whole()).extension() == Some("service".as_ref());
        let is_to_run = self.exist && self.state != Some(Activity::Stopped) && self.stable_for > 0;
        (is_service && is_to_run).then(|| Duration::from_secs(self.stable_for.into()))
    }

    /// Predicts the outcome of a set. A unit in its desired state is restarted once a file is changed that it reads at its start;
    /// `None` if no such change can restart it.
    fn predicted(&self, cx: &Context, found: &Found, state: &Object, differs: bool) -> Option<Prediction> {
        let after = Plain::new(state.clone());
        if !differs {
            let restarts = self.exist && found.is_running == Some(true) && self.state != Some(Activity::Stopped);
            let once = if restarts { self.files_read_at_start(cx, &cx.system_root) } else { Vec::new() };
            let once: Vec<PathBuf> = once.into_iter().map(PathBuf::from).collect();
            let words = vec![format!("{} it", Job::Restart.word())];
            return (!once.is_empty()).then(|| Prediction { after, words, once, ..Prediction::default() });
        }
        // What cannot be done is said by a set; a test says what differs.
        let words = self.change(&cx.system_root, found).ok()?.what_if;
        let mut after = if self.exist { state.clone() } else { Object::default() };
        after.extend(self.after());
        after.remove(Properties::RESTARTED);
        Some(Prediction { after: Plain::new(after), words, ..Prediction::default() })
    }

    /// What a set does.
    fn change(&self, root: &SystemRoot, found: &Found) -> Result<Change, Failure> {
        let mut change = Change { differing: self.differing(found), ..Change::default() };
        if change.differing.is_empty() {
            return Ok(change);
        }
        let decided =
            if self.exist { self.reach(root, found, &mut change) } else { self.remove(root, found, &mut change) };
        decided?;
        let because =
            found.outdated_by.as_ref().filter(|_| change.job == Some(Job::Restart) && change.steps.is_empty());
        change.describe(found.unit.exists(), self.exist, because.map(|path| &**path));
        Ok(change)
    }

    fn reach(&self, root: &SystemRoot, found: &Found, change: &mut Change) -> Result<(), Failure> {
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
                _ => steps::disable(root, &found.unit.name, &fragment, change),
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
            change.presumed.get_or_insert_with(|| Presumed { failure: steps::nothing_runs(), paths: Vec::new() });
        }
        let starts = matches!(change.job, Some(Job::Start | Job::Restart)) || self.enabled == Some(true);
        if starts && found.is_masked() && self.masked.is_none() {
            let failure = impossible(Properties::MASKED, format!("'{name}' is masked. Add 'masked: false'"));
            change.presumed.get_or_insert(Presumed { failure, paths: Vec::new() });
        }
        Ok(())
    }

    /// The unit file as it is to be.
    fn fragment(&self, found: &Found) -> Option<Fragment> {
        let stated = self.unit.map(|unit| Fragment { path: self.unit_path(), text: unit.0.to_owned() });
        stated.or_else(|| found.unit.fragment.clone())
    }

    fn job(&self, found: &Found, differing: &[&str]) -> Option<Job> {
        let is_running = found.is_running == Some(true);
        match self.state {
            Some(Activity::Running) if !is_running => return Some(Job::Start),
            Some(Activity::Stopped) => return (!found.is_stopped).then_some(Job::Stop),
            _ => {}
        }
        let has_new_file = self.state.is_some()
            && [Properties::UNIT, Properties::DROP_INS].iter().any(|name| differing.contains(name));
        let is_due = [Properties::RESTARTED, Properties::RESTARTED_AFTER].iter().any(|name| differing.contains(name));
        (is_running && (has_new_file || is_due)).then_some(Job::Restart)
    }

    fn remove(&self, root: &SystemRoot, found: &Found, change: &mut Change) -> Result<(), Failure> {
        let name = self.name.whole();
        if let Some(fragment) = found.unit.fragment.as_ref().filter(|fragment| !fragment.is_own()) {
            let hint = "Remove its package, or mask that unit instead";
            return Err(impossible(
                Properties::NAME,
                format!("'{name}' has the unit file '/{}'. {hint}", fragment.path),
            ));
        }
        if let Some(fragment) = found.own() {
            steps::disable(root, &name, fragment, change);
            change.steps.push(Step::remove(root, fragment.path.clone()));
            change.steps.extend(steps::remove_drop_ins(root, &self.unit_path()));
        }
        change.steps.extend(found.unit.masks.iter().map(|path| steps::unmasked(path)).collect::<Result<Vec<_>, _>>()?);
        change.job = (!found.is_stopped).then_some(Job::Stop);
        Ok(())
    }
}
