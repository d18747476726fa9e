//! `Stead/Service`: a service, or another unit, of systemd.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use stead_core::call::{Execution, Exported, Failure};
use stead_core::claims::{Claims, Extent, Provision, Ties};
use stead_core::manifest::Capabilities;
use stead_core::statements::Statement;
use stead_core::value::{Object, Value};
use stead_declare::resource;
use stead_host::provider::{Context, Cost, Lint, Linter, Plain, Provider, Review, SetReply, State, TestReply, WayBack};
use stead_system::fs::{SystemPath, SystemRoot};
use stead_system::services::{Invocation, Lasting, Systemd, UnitJob};

use crate::declared::Declared as _;
use crate::input::{PathText, exclusive, impossible, read, read_each};
use crate::text::{DropInName, FileText, UnitName, unit_file_flaw, whole_name, words};
use crate::{ALL_BUT_EXPORT, BuiltIn, reply};

mod decision;
mod drop_ins;
mod files;
mod found;
mod journal;
mod lints;
mod meaning;
mod steps;
mod unit;
mod way_back;

pub(crate) use drop_ins::{StatedFile, overridden};
pub(crate) use files::{
    can_be_enabled, drop_in_removals, foreign_unit_file, own_timers, own_unit_file, own_unit_path, read_units_again,
    without_unit,
};
use found::{Found, state};
use steps::Change;
use unit::{ADMINISTRATOR, Unit};

/// A service, or another unit, of systemd: whether it runs and starts at boot, and its unit file. systemd reloads changed unit
/// files before anything is started. Below a root other than that of the running system, only files and links are managed.
#[resource(
    "Stead/Service",
    about = "A service of systemd.",
    tags("linux", "service", "systemd"),
    undo = State,
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
    /// Files that it reads again when it reloads: it is reloaded if it runs and one of them changed after its start and its last
    /// reload, by whatever program, or if that reload failed. One whose unit says nothing of how it reloads is restarted, as by
    /// `systemctl reload-or-restart`. A file that is written while it starts or reloads is taken for read.
    #[property(option)]
    #[serde(default)]
    reloaded_after: Vec<PathText<'a>>,
    /// Reloads it by every set if it runs, or restarts it where it cannot reload: for an instance with the directive
    /// 'onChanges', as 'restarted' is.
    #[property(option)]
    reloaded: bool,
    /// How many seconds a service must keep running after it was started, restarted or reloaded. The run looks at it when that time
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

impl serde::Serialize for Activity {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
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
        let asked = [(Properties::RESTARTED, self.restarted), (Properties::RELOADED, self.reloaded)];
        let asked = asked.into_iter().find(|(_, is_asked)| *is_asked && self.state == Some(Activity::Stopped));
        if let Some((name, _)) = asked {
            return Err(crate::input::invalid(name, format!("'{name}' cannot be true while 'state' is \"stopped\"")));
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

/// Carries out `Stead/Service`.
#[derive(Default)]
pub(crate) struct Services {
    systemd: Systemd,
    /// The services started, by name, which are reviewed at the end of the run.
    started: Mutex<BTreeMap<String, Start>>,
    /// The jobs that failed last, by the service that did not come up.
    down: Mutex<BTreeMap<String, UnitJob>>,
}

/// A start of a service.
struct Start {
    invocation: Invocation,
    at: Instant,
}

impl Provider for Services {
    fn linter(&self) -> Option<&dyn Linter> {
        const LINTER: fn(&Object) -> Vec<Lint> = lints::lints;
        Some(&LINTER)
    }

    /// Returns whether it was to be restarted or reloaded is known only once.
    fn has_state_elsewhere(&self, cx: &Context, input: &Plain) -> bool {
        let is_asked = |name: &str| input.expose().get(name) == Some(&Value::Bool(true));
        is_live(cx) && !is_asked(Properties::RESTARTED) && !is_asked(Properties::RELOADED)
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
        let desired = stated(cx, input)?;
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
            let found = Found { is_running, is_stopped, ..Found::of(unit, Vec::new()) };
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
        let failed = |failure| {
            self.down().insert(name.clone(), UnitJob::Restart);
            Review::Failed(failure)
        };
        verdict.map_or_else(failed, |_| Review::Lasted)
    }

    fn way_back(&self) -> Option<&dyn WayBack> {
        Some(self)
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
        let lists = Properties::READ_FILES.into_iter();
        let files = lists.filter_map(|name| input.expose().get(name)?.as_array()).flatten();
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

/// Returns whether the running system is what is managed, and systemd its service manager.
pub(crate) fn is_live(cx: &Context) -> bool {
    cx.manages_running_system() && Systemd::is_running()
}

/// Reads the stated properties of a unit, without those that only a running system has where these are left out.
fn stated<'i>(cx: &Context, input: &'i Plain) -> Result<Properties<'i>, Failure> {
    let stated: Properties<'i> = read(input)?;
    let state = stated.state.filter(|_| !cx.files_alone() || is_live(cx));
    Ok(Properties { state, ..stated })
}

/// Returns whether a system is started by the init of System V.
fn has_other_init(root: &SystemRoot) -> bool {
    let exists = |path: &str| root.at(path).followed().is_some();
    exists("etc/inittab") && !exists("usr/lib/systemd/systemd") && !exists("lib/systemd/systemd")
}

impl Services {
    /// Brings a unit about, whatever other files say of it.
    pub(crate) fn put(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<SetReply, Failure> {
        let desired = stated(cx, input)?;
        let change = self.bring_about(cx, &desired, execution)?;
        let Change { differing, what_if, effects, presumed, restarts_itself, .. } = change;
        let mut after = desired.after();
        if restarts_itself {
            let service = Object::from_iter([("service".to_owned(), Value::from(&*desired.name.whole()))]);
            after.insert("_restartRequired".to_owned(), Value::Array(vec![Value::Object(service)]));
            // It is asked for, and done when this process ends: a test in the meantime does not count against it.
            let files = |name: &str| Some((name.to_owned(), input.expose().get(name)?.clone()));
            after.extend(Properties::READ_FILES.into_iter().filter_map(files));
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
        // A unit file that is stated takes the place of a link by that name.
        let unit = if desired.unit.is_some() { unit.named(root, &name) } else { unit };
        let mut found = Found::of(unit, desired.drop_in_paths().map(|(path, _)| read(&path)).collect());
        if is_live(cx) {
            let status = self.systemd.status(&name)?;
            let files = desired.files_read_at_start(cx, root);
            if status.is_running() && !files.is_empty() {
                let started = self.systemd.started_at(&status)?;
                let is_newer = |file: &&SystemPath| started > 0 && steps::changed_at(file) > Some(started);
                found.outdated_by = files.iter().find(is_newer).cloned();
            }
            let files = desired.files_read_again(cx);
            if status.is_running() && (desired.reloaded || !files.is_empty()) {
                let loaded = self.systemd.loaded_at(&status)?;
                found.unread = files.into_iter().find(|file| steps::changed_at(file) > Some(loaded));
                found.can_reload = self.systemd.can_reload(&status)?;
            }
            // One that ends and is started again, over and over, does not run.
            let runs = match desired.lasting() {
                Some(stable_for) if status.is_running() && desired.state == Some(Activity::Running) => {
                    self.systemd.runs_on(&cx.cancel, &name, stable_for)?
                }
                _ => status.is_running(),
            };
            let (is_running, is_stopped) = (Some(runs), status.is_stopped());
            found = Found { is_running, is_stopped, ..found };
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
        self.down().remove(&desired.name.whole());
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

    fn down(&self) -> MutexGuard<'_, BTreeMap<String, UnitJob>> {
        self.down.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes systemd carry out a job, and remembers a start for its review, or that it did not come up.
    fn run(&self, cx: &Context, name: &str, job: UnitJob) -> Result<(), Failure> {
        self.started().remove(name);
        let began = SystemTime::now();
        let done = self.systemd.run(&cx.cancel, cx.deadline, name, job);
        if done.is_err() && job != UnitJob::Stop {
            self.down().insert(name.to_owned(), job);
        } else {
            self.down().remove(name);
        }
        done.map_err(|failure| journal::with_journal(cx, name, began, failure))?;
        if job != UnitJob::Stop {
            let invocation = self.systemd.invocation(name)?;
            self.started().insert(name.to_owned(), Start { invocation, at: Instant::now() });
        }
        Ok(())
    }

    /// Changes the files, and has systemd do the rest. A unit that goes is stopped while systemd still knows it. Whether it is a
    /// restart of this very process, which is left to it: its end would wait for this set, and the set for its end.
    fn carry_out(&self, cx: &Context, desired: &Properties<'_>, change: &Change) -> Result<bool, Failure> {
        let name = desired.name.whole();
        let ends = matches!(change.job, Some(UnitJob::Stop | UnitJob::Restart)) || desired.masked == Some(true);
        let is_own = ends && is_live(cx) && self.systemd.is_main_process(&name)?;
        if is_own && (change.job == Some(UnitJob::Stop) || desired.masked == Some(true)) {
            let hint = format!("use `systemctl stop {name}`");
            return Err(impossible(Properties::NAME, format!("stead runs in '{name}' and cannot stop it; {hint}")));
        }
        let run = |job: Option<UnitJob>| job.map_or(Ok(()), |job| self.run(cx, &name, job));
        let (first, last) = if change.job == Some(UnitJob::Stop) { (change.job, None) } else { (None, change.job) };
        run(first)?;
        for step in &change.steps {
            step.take(cx)?;
        }
        if !change.steps.is_empty() && is_live(cx) {
            self.systemd.reload()?;
        }
        run(last.filter(|_| !is_own))?;
        Ok(is_own && last == Some(UnitJob::Restart))
    }
}

impl Properties<'_> {
    /// The properties that list files that it reads.
    const READ_FILES: [&'static str; 2] = [Self::RESTARTED_AFTER, Self::RELOADED_AFTER];

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

    /// The files that count for whether a service that runs has read its configuration, where they are.
    fn files_read_again(&self, cx: &Context) -> Vec<SystemPath> {
        self.reloaded_after.iter().map(|path| path.resolve(cx)).collect()
    }

    /// Returns whether nothing is stated by which it would not run.
    fn is_to_run(&self) -> bool {
        self.exist && self.state != Some(Activity::Stopped) && self.masked != Some(true)
    }

    /// How long the unit must run without an end, once it was started: a service, unless it should not run.
    fn lasting(&self) -> Option<Duration> {
        let is_service = Path::new(&self.name.whole()).extension() == Some("service".as_ref());
        (is_service && self.is_to_run() && self.stable_for > 0).then(|| Duration::from_secs(self.stable_for.into()))
    }
}
