//! `Stead/Timer`: a timer of systemd, and the service that it starts.

use std::path::Path;
use std::sync::Arc;

use stead_core::call::{Execution, Exported, Failure, Presumed};
use stead_core::claims::{Claims, Extent, Provision, Ties};
use stead_core::destruction::{Effect, Effects, Item};
use stead_core::manifest::Capabilities;
use stead_core::value::{Object, Value};
use stead_declare::resource;
use stead_host::provider::{Context, Cost, Plain, Provider, SetReply, State, TestReply};
use stead_system::user::{Names, NamesByRoot, Subject};

use crate::declared::Declared as _;
use crate::input::{blocked, exclusive, invalid, read, read_each};
use crate::permissions::without_account;
use crate::service::{
    Activity, Services, StatedFile, can_be_enabled, drop_in_removals, foreign_unit_file, is_live, overridden,
    own_timers, own_unit_file, own_unit_path, without_unit,
};
use crate::text::{CalendarEvents, TimeSpan, UnitAccount, UnitCommand, UnitDirectory, UnitLine, UnitName, whole_name};
use crate::{ALL_BUT_EXPORT, BuiltIn, is_wanted, reply};

mod units;

use units::{Settings, is_marked, lost_lines, render, service_of};

/// A timer of systemd and the command that it runs: the unit files NAME.timer and NAME.service in /etc/systemd/system.
/// A file is written whole when one of its properties differs; the plan lists the lines that are lost then. Settings of
/// your own are kept in NAME.timer.d and NAME.service.d; it fails where one of them takes back what is stated, naming
/// it. Unit files of packages are not replaced. The timer is enabled and started; one that runs is started again when
/// it changes. Properties have the names of settings in systemd.timer(5) and systemd.exec(5).
#[resource(
    "Stead/Timer",
    about = "A timer of systemd and the command that it runs.",
    tags("timer", "schedule", "systemd", "linux"),
    undo = State,
    capabilities = Capabilities { export: true, ..ALL_BUT_EXPORT },
    exclusive(command, unit),
    any(on_calendar, on_boot_sec, on_active_sec, on_startup_sec),
    any(command, unit),
)]
struct Properties<'a> {
    /// The name of the timer; '.timer' may be left out.
    #[property(key)]
    name: UnitName<'a>,
    /// The description of both units.
    description: Option<UnitLine<'a>>,
    /// The calendar events at which it elapses, one or several, such as 'daily' or 'Mon..Fri *-*-* 04:00'. This, 'onBootSec',
    /// 'onActiveSec' or 'onStartupSec' is required unless '_exist' is false.
    on_calendar: Option<CalendarEvents<'a>>,
    /// Time after the start of the timer at which it elapses.
    on_active_sec: Option<TimeSpan<'a>>,
    /// Time after boot at which it elapses, such as '15min'.
    on_boot_sec: Option<TimeSpan<'a>>,
    /// Time after the start of systemd at which it elapses.
    on_startup_sec: Option<TimeSpan<'a>>,
    /// Time after the last start of the unit at which it elapses again.
    on_unit_active_sec: Option<TimeSpan<'a>>,
    /// Time after the last stop of the unit at which it elapses again.
    on_unit_inactive_sec: Option<TimeSpan<'a>>,
    /// The accuracy of the timer, such as '1s'.
    accuracy_sec: Option<TimeSpan<'a>>,
    /// The maximum of a random delay.
    randomized_delay_sec: Option<TimeSpan<'a>>,
    /// Whether it elapses at once when it was missed while the machine was off.
    persistent: Option<bool>,
    /// The command line, as `ExecStart` has it: an absolute path with arguments, not read by a shell; a literal '%' is written
    /// '%%'. This or 'unit' is required unless '_exist' is false.
    command: Option<UnitCommand<'a>>,
    /// The user that the command runs as; root if not stated.
    user: Option<UnitAccount<'a>>,
    /// The group that the command runs as.
    group: Option<UnitAccount<'a>>,
    /// The working directory of the command.
    working_directory: Option<UnitDirectory<'a>>,
    /// The unit that it starts, in place of 'command'.
    unit: Option<UnitName<'a>>,
    /// Whether the timer starts at boot.
    #[serde(default = "is_wanted")]
    enabled: bool,
    /// Whether the timer runs. Not compared below another root.
    #[serde(default = "running")]
    state: Activity,
    /// Whether the timer exists. If false, it is stopped and both unit files are removed; with 'unit' only that of the timer.
    exist: bool,
}

fn running() -> Activity {
    Activity::Running
}

impl<'a> crate::input::Properties<'a> for Properties<'a> {
    fn check(&self) -> Result<(), Failure> {
        let is_other_kind = self.name.whole() == self.name.0 && self.name.0.strip_suffix(".timer").is_none();
        if is_other_kind || self.stem().is_empty() {
            return Err(invalid(Properties::NAME, "'name' must be the name of a timer, such as \"backup\""));
        }
        let of_command = [(Properties::USER, self.user.is_some()), (Properties::GROUP, self.group.is_some())];
        let of_command =
            of_command.into_iter().chain([(Properties::WORKING_DIRECTORY, self.working_directory.is_some())]);
        of_command.into_iter().try_for_each(|stated| exclusive((Properties::UNIT, self.unit.is_some()), stated))
    }
}

/// `Stead/Timer` as it is registered.
pub(crate) fn built_in() -> Option<BuiltIn> {
    Properties::built_in(Arc::new(Timers::default()))
}

/// Carries out `Stead/Timer`: what `Stead/Service` would do with the two units.
#[derive(Default)]
struct Timers {
    services: Services,
    names: NamesByRoot,
}

impl Provider for Timers {
    fn has_state_elsewhere(&self, cx: &Context, _input: &Plain) -> bool {
        is_live(cx)
    }

    fn validate(&self, _cx: &Context, input: &Plain) -> Result<(), Failure> {
        read::<Properties<'_>>(input).map(|_| ())
    }

    fn get(&self, cx: &Context, input: &Plain) -> Result<State, Failure> {
        let stated: Properties<'_> = read_each(input)?;
        let found = Settings::find(cx, &stated.stem(), stated.unit.is_some());
        let timer = self.services.get(cx, &stated.timer(cx, None))?;
        Ok(Plain::new(stated.state(cx, found.as_ref(), &timer)))
    }

    fn test(&self, cx: &Context, input: &Plain) -> Result<TestReply, Failure> {
        let desired: Properties<'_> = read(input)?;
        let found = Settings::find(cx, &desired.stem(), desired.unit.is_some());
        let timer = self.services.get(cx, &desired.timer(cx, None))?;
        let actual = desired.state(cx, found.as_ref(), &timer);
        let set = self.bring_about(cx, &desired, Execution::WhatIf)?;
        let changed = set.changed.clone().unwrap_or_default();
        let names: Vec<&str> = changed.iter().map(String::as_str).collect();
        Ok(reply::tested_as(actual, &names, set))
    }

    fn set(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<SetReply, Failure> {
        self.bring_about(cx, &read(input)?, execution)
    }

    fn delete(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<Vec<String>, Failure> {
        let desired = Properties { exist: false, ..read_each(input)? };
        Ok(self.bring_about(cx, &desired, execution)?.what_if)
    }

    fn export(&self, cx: &Context, _filter: &Plain) -> Result<Vec<Exported>, Failure> {
        let exported = |unit: String| {
            let name = unit.strip_suffix(".timer").unwrap_or(&unit).to_owned();
            let input = Plain::new(Value::Object([(Properties::NAME.to_owned(), Value::from(name.as_str()))].into()));
            let properties = self.get(cx, &input)?.expose().clone();
            Ok(Exported { type_name: None, name: Some(name), properties, depends_on: Vec::new(), metadata: None })
        };
        own_timers(cx).into_iter().map(exported).collect()
    }

    fn ties(&self, input: &Plain) -> Ties {
        let mut ties = reply::ties(input);
        let unit = reply::text(input, Properties::UNIT).filter(|_| !reply::is_removal(input));
        if let Some(unit) = unit {
            ties.uses.push(Provision::Path(Path::new(&own_unit_path(&whole_name(unit))).into()));
            ties = ties.and_packages([unit.strip_suffix(".service").unwrap_or(unit)]);
        }
        let name = reply::text(input, Properties::NAME).filter(|_| !reply::is_removal(input)).into_iter();
        let stem = |name: &str| name.strip_suffix(".timer").unwrap_or(name).to_owned();
        ties.uses.extend(
            name.flat_map(|name| ["timer", "service"].map(|kind| drop_in_removals(&format!("{}.{kind}", stem(name))))),
        );
        ties
    }

    fn manages(&self, _cx: &Context, input: &Plain) -> Option<Claims> {
        let stated: Properties<'_> = read_each(input).ok()?;
        let extent = if stated.exist { Extent::Whole } else { Extent::Absent };
        let kinds = ["timer", "service"].into_iter().take(if stated.unit.is_some() { 1 } else { 2 });
        let file = |kind| (Path::new("/").join(own_unit_path(&format!("{}.{kind}", stated.stem()))), extent.clone());
        Some(kinds.map(file).collect())
    }

    fn cost(&self, _desired: &Value) -> Cost {
        Cost::Process
    }
}

impl Timers {
    fn bring_about(&self, cx: &Context, desired: &Properties<'_>, execution: Execution) -> Result<SetReply, Failure> {
        desired.check_in_force(cx)?;
        let missing = desired.missing(cx, &self.names.of(&cx.system_root))?;
        if let (Some(Presumed { failure, .. }), Execution::Actual) = (&missing, execution) {
            return Err(failure.clone());
        }
        let found = Settings::find(cx, &desired.stem(), desired.unit.is_some());
        let (timer, service) = (desired.timer(cx, found.as_ref()), desired.service(cx, found.as_ref()));
        // The command is there before the timer that runs it, and goes after it.
        let mut order = vec![(true, &timer)];
        order.extend(service.as_ref().map(|service| (false, service)));
        if desired.exist {
            order.reverse();
        }
        let mut effects = Effects::default();
        for (_, unit) in &order {
            effects.destroys.extend(lost(cx, unit, found.as_ref())?);
        }
        let mut replies = Vec::with_capacity(2);
        for (is_timer, unit) in order {
            replies.push((is_timer, self.services.put(cx, unit, execution)?));
        }
        let reply = desired.joined(cx, found.as_ref(), replies, effects);
        Ok(SetReply { presumed: Presumed::all([missing, reply.presumed]), ..reply })
    }
}

/// What the file that is there loses to that of a unit that is to be. Fails where it is none of the administrator's.
fn lost(cx: &Context, unit: &Plain, found: Option<&Settings>) -> Result<Vec<Item>, Failure> {
    let text = |name: &str| unit.expose().get(name).and_then(Value::as_str);
    let (Some(name), Some(new)) = (text(Properties::NAME), text(Properties::UNIT)) else { return Ok(Vec::new()) };
    if let Some(path) = foreign_unit_file(cx, name) {
        let hint = "Choose another name, or change it with a Stead/Service and 'dropIns'";
        return Err(blocked(
            Properties::NAME,
            format!("'{name}' has the unit file '/{path}', which is not replaced. {hint}"),
        ));
    }
    let lines = own_unit_file(cx, name).map(|former| lost_lines(&former, new, found)).unwrap_or_default();
    Ok(lines.into_iter().map(|kind| Item { path: own_unit_path(name), kind }).collect())
}

impl Properties<'_> {
    /// The name of the units without their endings.
    fn stem(&self) -> String {
        self.name.0.strip_suffix(".timer").unwrap_or(self.name.0).to_owned()
    }

    fn settings(&self) -> Settings {
        let span = |span: Option<TimeSpan<'_>>| span.map(|span| Value::from(span.0));
        let account = |account: Option<UnitAccount<'_>>| account.map(|account| Value::from(account.0));
        Settings::of([
            (Properties::DESCRIPTION, self.description.map(|line| Value::from(line.0))),
            (Properties::ON_CALENDAR, self.on_calendar.as_ref().map(CalendarEvents::value)),
            (Properties::ON_ACTIVE_SEC, span(self.on_active_sec)),
            (Properties::ON_BOOT_SEC, span(self.on_boot_sec)),
            (Properties::ON_STARTUP_SEC, span(self.on_startup_sec)),
            (Properties::ON_UNIT_ACTIVE_SEC, span(self.on_unit_active_sec)),
            (Properties::ON_UNIT_INACTIVE_SEC, span(self.on_unit_inactive_sec)),
            (Properties::ACCURACY_SEC, span(self.accuracy_sec)),
            (Properties::RANDOMIZED_DELAY_SEC, span(self.randomized_delay_sec)),
            (Properties::PERSISTENT, self.persistent.map(Value::from)),
            (Properties::COMMAND, self.command.map(|command| Value::from(command.0))),
            (Properties::USER, account(self.user)),
            (Properties::GROUP, account(self.group)),
            (Properties::WORKING_DIRECTORY, self.working_directory.map(|directory| Value::from(directory.0))),
            (Properties::UNIT, self.unit.map(|unit| Value::from(unit.0))),
        ])
    }

    /// What is asked of the unit of the timer.
    fn timer(&self, cx: &Context, found: Option<&Settings>) -> Plain {
        let name = format!("{}.timer", self.stem());
        let mut stated =
            vec![(Properties::NAME, Value::from(name.as_str())), (Properties::EXIST, Value::from(self.exist))];
        if self.exist {
            let text = self.text(cx, found, &name);
            stated.extend([(Properties::UNIT, Value::from(text)), (Properties::ENABLED, Value::from(self.enabled))]);
            stated.extend(is_live(cx).then(|| (Properties::STATE, Value::from(self.state.word()))));
        }
        plain(stated)
    }

    /// What is asked of the unit of the service, if it belongs to the timer.
    fn service(&self, cx: &Context, found: Option<&Settings>) -> Option<Plain> {
        let name = format!("{}.service", self.stem());
        if self.unit.is_some() || !self.exist && service_of(cx, &self.stem()).is_none() {
            return None;
        }
        let mut stated =
            vec![(Properties::NAME, Value::from(name.as_str())), (Properties::EXIST, Value::from(self.exist))];
        stated.extend(self.exist.then(|| (Properties::UNIT, Value::from(self.text(cx, found, &name)))));
        Some(plain(stated))
    }

    /// The unit file of that name: what is there, where it says what is asked for.
    fn text(&self, cx: &Context, found: Option<&Settings>, name: &str) -> String {
        let (wanted, is_timer) = (self.settings(), name == format!("{}.timer", self.stem()));
        let is_as_wanted = found.is_some_and(|found| !wanted.differ_in(found, is_timer));
        let is_enough = |text: &String| !is_timer || !self.enabled || can_be_enabled(cx, name, text);
        let kept = own_unit_file(cx, name).filter(|text| is_as_wanted && is_enough(text));
        kept.unwrap_or_else(|| render(&wanted, &self.stem(), name))
    }

    /// The units and accounts that the timer needs and that are not there yet.
    fn missing(&self, cx: &Context, names: &Names) -> Result<Option<Presumed>, Failure> {
        if !self.exist {
            return Ok(None);
        }
        let account = |subject, account: Option<UnitAccount<'_>>, property| {
            let name = account.map(|account| account.0.replace("%%", "%"));
            name.map_or(Ok(None), |name| without_account(cx, names, (subject, &name, property)))
        };
        let unit = self.unit.and_then(|unit| without_unit(cx, &unit.whole(), Properties::UNIT));
        let user = account(Subject::User, self.user, Properties::USER)?;
        Ok(Presumed::all([unit, user, account(Subject::Group, self.group, Properties::GROUP)?]))
    }

    /// Fails where a drop-in takes back what is stated.
    fn check_in_force(&self, cx: &Context) -> Result<(), Failure> {
        let wanted = self.settings();
        let overridden = |(kind, text): (&str, String)| {
            let name = format!("{}.{kind}", self.stem());
            let path = own_unit_path(&name).trim_start_matches('/').to_owned();
            overridden(&cx.system_root, &name, &[StatedFile { property: Properties::NAME, path, text: &text }])
        };
        let texts = [("timer", wanted.timer_settings()), ("service", wanted.service_settings())];
        let found = if self.exist { texts.into_iter().find_map(overridden) } else { None };
        found.map_or(Ok(()), Err)
    }

    /// Where its unit files are, of those that were not written here.
    fn files_of_others(&self, cx: &Context) -> Vec<String> {
        let names = ["timer", "service"].map(|kind| format!("{}.{kind}", self.stem()));
        let is_other = |name: &&String| own_unit_file(cx, name).is_some_and(|text| !is_marked(&text));
        names.iter().filter(is_other).map(|name| own_unit_path(name)).collect()
    }

    fn state(&self, cx: &Context, found: Option<&Settings>, timer: &State) -> Object {
        let mut state: Object = [(Properties::NAME.to_owned(), Value::from(self.name.0))].into();
        let exists = found.is_some();
        state.insert(Properties::EXIST.to_owned(), Value::from(exists));
        if let Some(found) = found {
            state.extend(found.properties(&self.settings()));
            let reported = |name: &str| Some((name.to_owned(), timer.expose().get(name)?.clone()));
            state.extend(
                [Properties::ENABLED, Properties::STATE]
                    .into_iter()
                    .filter(|name| *name != Properties::STATE || is_live(cx))
                    .filter_map(reported),
            );
        }
        state
    }

    /// The state that a set leads to: what is stated.
    fn after(&self, cx: &Context) -> Object {
        let mut after: Object = [(Properties::NAME.to_owned(), Value::from(self.name.0))].into();
        after.insert(Properties::EXIST.to_owned(), Value::from(self.exist));
        if self.exist {
            let wanted = self.settings();
            after.extend(wanted.properties(&wanted));
            after.insert(Properties::ENABLED.to_owned(), Value::from(self.enabled));
            after.extend(is_live(cx).then(|| (Properties::STATE.to_owned(), Value::from(self.state.word()))));
        }
        after
    }

    /// The answers about both units as one.
    fn joined(
        &self,
        cx: &Context,
        found: Option<&Settings>,
        replies: Vec<(bool, SetReply)>,
        mut effects: Effects,
    ) -> SetReply {
        let mut changed: Vec<&str> = match (self.exist, found) {
            (true, Some(found)) => self.settings().differing(found),
            (true, None) => vec![Properties::EXIST],
            (false, _) => Vec::new(),
        };
        let (mut what_if, mut presumed) = (Vec::new(), Vec::new());
        let foreign = self.files_of_others(cx);
        let words = |words: String| {
            let is_foreign = foreign.iter().any(|path| words.ends_with(&format!("content of '{path}'")));
            if is_foreign { format!("{words}, which was not written by stead") } else { words }
        };
        for (is_timer, reply) in replies {
            for name in reply.changed.iter().flatten() {
                let name = match name.as_str() {
                    Properties::ENABLED if is_timer => Properties::ENABLED,
                    Properties::STATE | "restartedAfter" if is_timer => Properties::STATE,
                    Properties::EXIST if !self.exist => Properties::EXIST,
                    // A file that is missing, or says something else, is noted by what it says.
                    _ => continue,
                };
                if !changed.contains(&name) && !changed.contains(&Properties::EXIST) {
                    changed.push(name);
                }
            }
            what_if.extend(reply.what_if.into_iter().map(words));
            presumed.push(reply.presumed);
            effects.creates.extend(reply.effects.creates.items().iter().cloned());
            effects.destroys.extend(reply.effects.destroys.items().iter().cloned());
        }
        effects.effect = (!changed.is_empty()).then_some(match (self.exist, found) {
            (false, _) => Effect::Remove,
            (true, None) => Effect::Create,
            (true, Some(_)) => Effect::Change,
        });
        let presumed = Presumed::all(presumed);
        SetReply { presumed, effects, ..reply::set(self.after(cx), &changed, what_if) }
    }
}

fn plain(stated: Vec<(&str, Value)>) -> Plain {
    let stated: Object = stated.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Plain::new(Value::Object(stated))
}
