//! A machine with an agent, one step a line; the README of the cases lists the steps.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use stead_agent::{
    Activity, AgentState, BootId, Generation, HoldReason, Interrupted, Job, JobOutcome, JobResult, LeftOver, Moment,
    Next, Settings, Settled, Spread, Stage, StageStatus, Status, Submission, Trouble, TroubleKind, Work,
};
use stead_core::document::ConfigurationMode;
use stead_core::source::SourceId;
use stead_testkit::{Case, Computed};

pub(crate) fn run(case: &Case) -> Result<Computed, String> {
    let (settings, findings) = Settings::read(SourceId::default(), case.section("settings.yaml"));
    if let Some(finding) = findings.first() {
        return Err(finding.message.clone());
    }
    let mut machine = Machine::new(settings);
    let mut text = String::new();
    for line in case.section("steps").lines().filter(|line| !line.starts_with("  ")) {
        let said = machine.step(line).map_err(|error| format!("{line}: {error}"))?;
        let given_up = machine.give_up();
        text.extend([line, "\n"]);
        for shown in said.into_iter().chain(given_up).chain(machine.shown()) {
            text.extend(["  ", &shown, "\n"]);
        }
    }
    Ok(vec![("steps", text)])
}

struct Machine {
    state: AgentState,
    now: Timestamp,
    boot: u32,
    busy: bool,
    shutdown: Option<Timestamp>,
}

/// The outcome of one resource: a letter, a number that tells it from others, and `*` if it owes a notification.
struct Resource<'a> {
    name: &'a str,
    fate: char,
}

impl Machine {
    fn new(settings: Settings) -> Self {
        let now = "2026-06-01T12:00:00Z".parse().unwrap();
        Self { state: AgentState { settings, ..AgentState::default() }, now, boot: 1, busy: false, shutdown: None }
    }

    fn moment(&self) -> Moment {
        Moment { now: self.now, boot: self.boot_id(), zone: TimeZone::UTC, shutdown: self.shutdown }
    }

    fn boot_id(&self) -> BootId {
        BootId(self.boot.to_string())
    }

    /// Carries out a step, and returns what there is to say about it besides what follows.
    fn step(&mut self, line: &str) -> Result<Option<String>, String> {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        let said = match verb {
            "deliver" => self.deliver(rest)?,
            "restore" => self.restore(rest)?,
            "remove" => refused(self.state.remove(stage(rest)?)),
            "use-existing" => refused(self.state.use_existing()),
            "stop" => {
                self.end(JobResult::Aborted, &[], &[]);
                self.state.hold(HoldReason::Stopped);
                None
            }
            "set" => {
                let (name, value) = rest.split_once('=').ok_or("not NAME=VALUE")?;
                let settings = self.state.settings.with(name, value).map_err(|error| error.to_string())?;
                self.state.configure(settings);
                None
            }
            "overflow" => {
                self.state.check_at_once();
                None
            }
            "begin" => self.begin()?,
            "end" => self.end_with(rest)?,
            "abort" => {
                self.end(JobResult::Aborted, &[], &[]);
                None
            }
            "job" => {
                self.begin()?;
                self.end_with(rest)?
            }
            "crash" => {
                self.start(rest.split_whitespace());
                None
            }
            "crash-reading" => {
                self.start_after(Interrupted::Reading);
                None
            }
            "boot" => {
                self.boot += 1;
                self.start(rest.split_whitespace());
                None
            }
            "order" => self.order()?,
            "order-fails" => self.order_fails()?,
            "schedule" => self.schedule(rest)?,
            "restart" => {
                self.order()?;
                self.boot += 1;
                self.start(std::iter::empty());
                None
            }
            "wait" => {
                self.now = self.later(rest)?;
                None
            }
            _ => return Err("unknown step".to_owned()),
        };
        Ok(said)
    }

    fn order_fails(&mut self) -> Result<Option<String>, String> {
        let said = self.order()?;
        self.state.restart_failed("exit code 1".to_owned());
        Ok(said)
    }

    fn schedule(&mut self, time: &str) -> Result<Option<String>, String> {
        self.shutdown = Some(self.later(time)?);
        Ok(None)
    }

    fn later(&self, time: &str) -> Result<Timestamp, String> {
        let time: SignedDuration = time.parse().map_err(|error: jiff::Error| error.to_string())?;
        Ok(self.now.checked_add(time).unwrap())
    }

    fn deliver(&mut self, rest: &str) -> Result<Option<String>, String> {
        let mut words = rest.split_whitespace();
        let content = words.next().ok_or("no name")?.to_owned();
        let mut generation = Generation {
            content,
            origin: "case".to_owned(),
            identity: None,
            accepted: self.now,
            user: 0,
            mode: None,
            instance_modes: BTreeSet::new(),
            converged: None,
            ended: None,
            restores: None,
        };
        let (mut force, mut publish) = (false, false);
        for word in words {
            match word {
                "force" => force = true,
                "publish" => publish = true,
                _ => generation.mode = Some(mode(word)?),
            }
        }
        Ok(refused(self.state.submit(Submission { generation, force, publish })))
    }

    fn restore(&mut self, number: &str) -> Result<Option<String>, String> {
        let number = if number.is_empty() { None } else { Some(number.parse().map_err(|_| "not a number")?) };
        Ok(match self.state.to_restore(number) {
            Ok(generation) => refused(self.state.submit(Submission { generation, force: true, publish: false })),
            Err(refusal) => Some(format!("refused: {refusal}")),
        })
    }

    /// Begins the job that is to be begun, or goes on with the interrupted one.
    fn begin(&mut self) -> Result<Option<String>, String> {
        let boot = self.boot_id();
        let job = match (self.state.next(&self.moment()), self.state.job.clone()) {
            (Next::Begin { generation, kind, work }, _) => {
                Job { id: "job".to_owned(), generation, kind, work, began: self.now, boot, only: BTreeSet::new() }
            }
            (Next::Resume, Some(job)) => Job { boot, ..job },
            (next, _) => return Err(format!("no job is to be begun: {next:?}")),
        };
        self.state.begin(job);
        self.busy = true;
        Ok(None)
    }

    /// Ends the job: what became of the resources, in order. After one that asks for a restart none is processed, but by a
    /// job that only tests.
    fn end_with(&mut self, line: &str) -> Result<Option<String>, String> {
        let mut words = line.split_whitespace();
        let resources: Vec<Resource<'_>> = words
            .next()
            .unwrap_or("")
            .split(',')
            .filter_map(|name| Some(Resource { name, fate: name.chars().next()? }))
            .collect();
        if let Some(wrong) = resources.iter().find(|each| !"SFrD".contains(each.fate)) {
            return Err(format!("'{}' is not a resource", wrong.name));
        }
        let stop = resources.iter().position(|each| each.fate == 'r').map_or(resources.len(), |at| at + 1);
        let (processed, left) = resources.split_at(stop);
        let result = match () {
            () if processed.iter().any(|each| each.fate == 'F') => JobResult::Failed,
            () if processed.iter().any(|each| "rD".contains(each.fate)) => JobResult::NotInState,
            () => JobResult::Converged,
        };
        let owed: Vec<&str> =
            words.filter_map(|word| word.strip_prefix("owed=")).flat_map(|list| list.split(',')).collect();
        self.end(result, processed, &owed);
        let of = |part: &[Resource<'_>], fates: &str| {
            let names: Vec<&str> = part.iter().filter(|each| fates.contains(each.fate)).map(|each| each.name).collect();
            if names.is_empty() { "-".to_owned() } else { names.join(",") }
        };
        let (inside, outside) = (of(processed, "S"), of(processed, "FrD"));
        Ok(Some(format!("in desired state {inside}; not {outside}; not processed {}", of(left, "SFrD"))))
    }

    fn end(&mut self, result: JobResult, processed: &[Resource<'_>], owed: &[&str]) {
        let named = |fates: &str| {
            processed
                .iter()
                .filter(|each| fates.contains(each.fate))
                .map(|each| each.name.to_owned())
                .collect::<BTreeSet<_>>()
        };
        let restart = if self.applies() { named("r") } else { BTreeSet::new() };
        let is_applied = self
            .state
            .job
            .as_ref()
            .is_some_and(|job| job.work == Work::Apply && self.state.pending == Some(job.generation));
        let kind = |fate| match fate {
            'F' => TroubleKind::Failed,
            'r' => TroubleKind::Restart,
            _ if is_applied => TroubleKind::Pending,
            _ => TroubleKind::Drifted,
        };
        let wrong = processed.iter().filter(|each| "FrD".contains(each.fate));
        let troubles = wrong.map(|each| Trouble::new(each.name.to_owned(), kind(each.fate), "", self.now)).collect();
        let job = self.state.job.clone();
        let settled = job.filter(|_| self.applies()).map(|job| Settled {
            known: self.state.owed_by(job.generation),
            owed: owed.iter().map(|path| (*path).to_owned()).collect(),
        });
        let outcome = JobOutcome {
            troubles,
            error: None,
            result,
            restart,
            settled,
            not_in_state: named("FrD").len() as u64,
            instances: processed.len() as u64,
        };
        self.busy = false;
        self.state.end(outcome, self.now, Spread::NONE);
    }

    /// Returns whether a job is under way that changes the machine.
    fn applies(&self) -> bool {
        self.state.job.as_ref().is_some_and(|job| job.work == Work::Apply)
    }

    /// The agent starts. What it did not save is gone: the state is what its record says.
    fn start<'a>(&mut self, in_flight: impl Iterator<Item = &'a str>) {
        let in_flight: Vec<String> = in_flight.map(str::to_owned).collect();
        self.start_after(Interrupted::Working(&in_flight));
    }

    fn start_after(&mut self, interrupted: Interrupted<'_>) {
        let record = serde_json::to_string(&self.state).unwrap();
        self.state = serde_json::from_str(&record).unwrap();
        self.busy = false;
        self.state.started(&self.boot_id(), interrupted, self.now);
    }

    /// Gives up on the interrupted job if that is next.
    fn give_up(&mut self) -> Option<String> {
        if self.busy || self.state.next(&self.moment()) != Next::Abandon {
            return None;
        }
        self.state.abandon_job(LeftOver::default(), &self.boot_id(), self.now);
        Some("the interrupted job is given up".to_owned())
    }

    fn order(&mut self) -> Result<Option<String>, String> {
        match self.state.next(&self.moment()) {
            Next::Restart => self.state.ordered_restart(self.now),
            next => return Err(format!("the machine is not to be restarted: {next:?}")),
        }
        Ok(None)
    }

    /// Returns the lines that are to be seen after a step.
    fn shown(&self) -> Vec<String> {
        let activity = self.state.job.clone().filter(|_| self.busy).map(Activity::of);
        let status = self.state.status(&self.moment(), activity.as_ref());
        let name = |number: Option<u64>| {
            number
                .and_then(|number| self.state.generations.get(&number))
                .map_or("-", |generation| generation.content.as_str())
        };
        let stages = format!(
            "pending {}, current {}, previous {}",
            name(status.pending),
            name(status.current),
            name(status.previous)
        );
        let mut line = format!("{:?}", status.lcm_state);
        if let Some(job) = &status.job {
            let _ = write!(line, ", {:?} {:?}", job.kind, job.status);
        }
        if status.reboot_requested {
            line += ", reboot requested";
        }
        let lists = [("quarantined", &status.quarantined), ("owed", &status.owed)];
        for (what, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
            let _ = write!(line, ", {what} {}", list.join(","));
        }
        let until = status.next_attempt.map(|at| format!(", {}", self.ahead(at))).unwrap_or_default();
        let mut shown = vec![stages, line, format!("{}{until}", status.lcm_state_detail)];
        shown.push(format!("{:?}", status.health).to_lowercase() + &self.wrong(&status));
        shown
    }

    /// The known problems of the staged documents, and since when they exist.
    fn wrong(&self, status: &Status) -> String {
        let of = |stage: &StageStatus| {
            let wrong = stage.troubles.iter().map(|it| {
                let age = self.now.duration_since(it.since);
                let age = if age.is_zero() { String::new() } else { format!(" for {age:#}") };
                format!(" {} {}{age}", it.kind.as_str(), it.instance)
            });
            let wrong: Vec<String> = wrong.collect();
            if wrong.is_empty() { String::new() } else { format!("; {}:{}", stage.stage.as_str(), wrong.join(",")) }
        };
        status.stages.iter().map(of).collect()
    }

    fn ahead(&self, at: Timestamp) -> String {
        format!("for {:#}", at.duration_since(self.now))
    }
}

fn refused<E: std::fmt::Display>(done: Result<u64, E>) -> Option<String> {
    done.err().map(|refusal| format!("refused: {refusal}"))
}

fn stage(name: &str) -> Result<Stage, String> {
    let stages = [Stage::Pending, Stage::Current, Stage::Previous];
    stages.into_iter().find(|stage| stage.as_str() == name).ok_or_else(|| "no such stage".to_owned())
}

fn mode(word: &str) -> Result<ConfigurationMode, String> {
    let found = ConfigurationMode::ALL.iter().find(|(name, _)| *name == word);
    found.map(|(_, mode)| *mode).ok_or_else(|| format!("'{word}' is not a mode"))
}
