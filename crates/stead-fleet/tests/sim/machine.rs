//! A machine of a simulation: the real state machine of its side and the real decision about releases, over a disk that survives.

#![allow(dead_code, reason = "not every test that has this needs all of it")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use stead_core::value::Sensitive;
use stead_hosts::MachineName;
use stead_protocol::{
    Condition, KnownFile, KnownFiles, Machine, MachineAction, MachineAnswer, MachineCall, MachineEvent,
    MachineIdentity, MachineMemory, Membership, Now, SentReport, source_path,
};
use stead_release::{
    Digest, FleetFollower, FleetMemory, KnownRoster, MachineKeys, MachineReport, MachineSecret, Name, Obstacle,
    Release, SourceFile,
};

use crate::random::Random;

/// The disk of a machine, whatever happens to its process.
#[derive(Default)]
struct Disk {
    memory: MachineMemory,
    reports: Vec<SentReport>,
    fleet: FleetMemory,
    /// The release that is staged, and the one that is applied.
    staged: Option<(Name, u64)>,
    applied: Option<(Name, u64)>,
}

/// The releases, as far as a process knows them.
#[derive(Default)]
struct Known {
    files: KnownFiles,
    roster: KnownRoster,
}

/// A look at the releases.
struct Looking {
    /// The files that were asked for in this look, each there or not.
    files: BTreeMap<SourceFile, Option<Arc<[u8]>>>,
    /// The file that is asked for, and the number of the request.
    asked: Option<(u64, SourceFile)>,
    /// The release that was decided on, when only its content is missing: nothing that comes with that is decided again.
    decided: Option<Decided>,
}

/// A release, and its content.
type Decided = ((Name, u64), SourceFile);

/// Something that the world does for a machine.
pub(crate) enum Effect {
    Send(MachineCall),
    /// The document of the staged release converges after so many milliseconds.
    Apply(u64),
    /// A release is staged.
    Staged(Name, u64),
}

pub(crate) struct Simulated {
    pub(crate) name: MachineName,
    pub(crate) keys: Arc<MachineKeys>,
    root: Digest,
    token: String,
    /// How far its clock is from the time, in milliseconds.
    pub(crate) skew: i64,
    /// Its process, while there is one.
    core: Option<Machine>,
    /// How often it has begun.
    pub(crate) boot: u64,
    disk: Disk,
    known: Known,
    looking: Option<Looking>,
    /// The process ends before its so many-th action from now on.
    pub(crate) ends_before: u64,
    pub(crate) woken: u64,
}

impl Simulated {
    pub(crate) fn new(number: usize, root: &Digest) -> Self {
        let mut secret = [7; MachineSecret::LENGTH];
        secret.chunks_mut(8).for_each(|part| part.copy_from_slice(&number.to_be_bytes()));
        Self {
            name: MachineName::parse(&format!("m{number}")).unwrap(),
            keys: Arc::new(MachineKeys::of(&MachineSecret::of(&secret))),
            root: root.clone(),
            token: "token".to_owned(),
            skew: 0,
            core: None,
            boot: 0,
            disk: Disk::default(),
            known: Known::default(),
            looking: None,
            ends_before: u64::MAX,
            woken: u64::MAX,
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        self.core.is_some()
    }

    pub(crate) fn end(&mut self) {
        (self.core, self.looking, self.ends_before, self.woken) = (None, None, u64::MAX, u64::MAX);
        self.known = Known::default();
        self.boot += 1;
    }

    /// Begins with what the disk has.
    pub(crate) fn begin(&mut self, time: u64, random: &mut Random) -> Vec<Effect> {
        let token = (!self.disk.memory.joined).then(|| Sensitive::new(self.token.clone()));
        let (name, keys) = (self.name.clone(), Arc::clone(&self.keys));
        let identity = MachineIdentity { name, keys, token, labels: BTreeMap::new() };
        self.core = Some(Machine::new(identity, self.disk.memory.clone(), random.next(), self.now(time)));
        let mut effects = Vec::new();
        if self.disk.staged != self.disk.applied {
            effects.push(Effect::Apply(1_000));
        }
        effects.extend(self.handle(time, MachineEvent::Is(self.condition())));
        effects
    }

    fn now(&self, time: u64) -> Now {
        Now { passed: time, clock: i64::try_from(time).unwrap() + self.skew }
    }

    fn condition(&self) -> Condition {
        let (release, report) = (self.disk.applied.clone(), self.disk.reports.len() as u64);
        Condition {
            version: "1".to_owned(),
            health: "converged".to_owned(),
            release,
            refuses: None,
            report,
            checked: 0,
        }
    }

    /// When it wants to be woken.
    pub(crate) fn next(&self) -> Option<u64> {
        self.core.as_ref()?.next()
    }

    pub(crate) fn handle(&mut self, time: u64, event: MachineEvent) -> Vec<Effect> {
        let (mut events, mut effects) = (vec![event], Vec::new());
        while let Some(event) = events.pop() {
            let now = self.now(time);
            let Some(core) = &mut self.core else { break };
            let ended = match &event {
                MachineEvent::Answered(answer) => Some((answer.number, Some(answer.clone()))),
                MachineEvent::Lost(number, _) => Some((*number, None)),
                _ => None,
            };
            for action in core.handle(now, event) {
                if self.ends_before == 0 {
                    self.end();
                    return effects;
                }
                self.ends_before -= u64::from(self.ends_before < u64::MAX);
                self.act(action, time, &mut events, &mut effects);
            }
            if let Some((number, answer)) = ended {
                self.fetched(number, answer, time, &mut events, &mut effects);
            }
        }
        effects
    }

    fn act(&mut self, action: MachineAction, time: u64, events: &mut Vec<MachineEvent>, effects: &mut Vec<Effect>) {
        match action {
            MachineAction::Keep(memory) => self.disk.memory = memory,
            MachineAction::Send(call) => effects.push(Effect::Send(call)),
            MachineAction::Look(desired) => {
                self.known.files.begin(Some(desired));
                self.looking = Some(Looking { files: BTreeMap::new(), asked: None, decided: None });
                self.look(time, events, effects);
            }
            MachineAction::ReadReports(after, most) => {
                let behind = self.disk.reports.iter().filter(|report| report.number > after).take(most);
                let reports: Vec<_> = behind.cloned().collect();
                let last = reports.last().map_or(after, |report| report.number);
                events.push(MachineEvent::Reports(reports, last));
            }
            MachineAction::ForgetToken | MachineAction::Check(_) => {}
            MachineAction::LeftOut(number, why) => panic!("{} leaves its report {number} out: {why}", self.name),
        }
    }

    /// An answer to the look that is under way, or its loss.
    fn fetched(
        &mut self,
        number: u64,
        answer: Option<MachineAnswer>,
        time: u64,
        events: &mut Vec<MachineEvent>,
        effects: &mut Vec<Effect>,
    ) {
        let Some(looking) = &mut self.looking else { return };
        let Some((_, file)) = looking.asked.take_if(|(asked, _)| *asked == number) else { return };
        match answer {
            Some(answer) if answer.status == 200 => {
                let content = shared(answer.body);
                self.known.files.keep(file.clone(), Arc::clone(&content));
                looking.files.insert(file, Some(content));
            }
            Some(answer) if answer.status == 404 => drop(looking.files.insert(file, None)),
            _ => return self.ends_look(false, events),
        }
        self.look(time, events, effects);
    }

    fn ends_look(&mut self, is_well: bool, events: &mut Vec<MachineEvent>) {
        self.looking = None;
        self.known.files.ended(is_well);
        events.push(MachineEvent::Looked(is_well));
    }

    /// Decides with the files that there are, as an agent does, and asks for one that is missing.
    fn look(&mut self, time: u64, events: &mut Vec<MachineEvent>, effects: &mut Vec<Effect>) {
        let now = self.now(time);
        let Some(looking) = &mut self.looking else { return };
        let known = &self.known;
        let find = |file: &SourceFile| match known.files.find(file) {
            KnownFile::Here(content) => Some(Some(content)),
            KnownFile::Absent => Some(None),
            KnownFile::Unknown => looking.files.get(file).cloned(),
        };
        let (mut newest, mut missing, mut is_well) = (looking.decided.take(), None, true);
        if newest.is_none() {
            let fetch = |file: &SourceFile| {
                let content = find(file).ok_or_else(|| file.clone())?;
                Ok(content.map(|content| content.to_vec()))
            };
            let follower = FleetFollower {
                root: &self.root,
                machine: self.name.as_str(),
                keys: Some(&self.keys),
                roster: &known.roster,
                fact: |_: &str| None,
                now: Timestamp::from_millisecond(now.clock).unwrap(),
            };
            (newest, missing, is_well) = decided(&mut self.disk, &follower, fetch);
        }
        let bundle = newest.as_ref().map(|(_, blob)| find(blob));
        let is_whole = matches!(bundle, Some(Some(Some(_))));
        if let (Some((release, blob)), Some(None), None) = (&newest, bundle, &missing) {
            missing = Some(blob.clone());
            looking.decided = Some((release.clone(), blob.clone()));
        }
        if let Some(file) = missing {
            let Some(core) = &mut self.core else { return };
            let (keep, call) = core.ask(now, source_path(&file));
            looking.asked = Some((call.number, file));
            if let Some(memory) = keep {
                self.disk.memory = memory;
            }
            return effects.push(Effect::Send(call));
        }
        is_well &= newest.is_none() || is_whole;
        if let Some(((channel, number), _)) = newest.filter(|_| is_whole) {
            effects.push(Effect::Staged(channel.clone(), number));
            self.disk.staged = Some((channel, number));
            effects.push(Effect::Apply(2_000));
        }
        self.ends_look(is_well, events);
    }

    /// The staged release is applied, and reported.
    pub(crate) fn apply(&mut self, time: u64) -> Vec<Effect> {
        if self.core.is_none() || self.disk.applied == self.disk.staged {
            return Vec::new();
        }
        self.disk.applied.clone_from(&self.disk.staged);
        self.report(time)
    }

    /// A job ended that is worth a report.
    pub(crate) fn report(&mut self, time: u64) -> Vec<Effect> {
        let number = self.disk.reports.len() as u64 + 1;
        let report = MachineReport {
            fleet: self.root.clone(),
            machine: self.name.clone(),
            number,
            ended: Timestamp::from_millisecond(self.now(time).clock).unwrap(),
            release: None,
            report: serde_json::json!({ "of": self.name.as_str(), "number": number }),
        };
        self.disk.reports.push(SentReport { number, signed: self.keys.sign(report).to_text() });
        self.handle(time, MachineEvent::Is(self.condition()))
    }

    /// The reports of the machine, by their numbers.
    pub(crate) fn reports(&self) -> &[SentReport] {
        &self.disk.reports
    }

    pub(crate) fn applied(&self) -> Option<&(Name, u64)> {
        self.disk.applied.as_ref()
    }

    pub(crate) fn acknowledged(&self) -> u64 {
        self.disk.memory.acknowledged
    }

    /// The history of the store that it heard of last.
    pub(crate) fn epoch(&self) -> Option<u64> {
        self.disk.memory.epoch
    }

    pub(crate) fn waits_for_an_operator(&self) -> bool {
        self.core.as_ref().is_some_and(|core| *core.membership() == Membership::Waiting)
    }
}

/// The release that a machine should stage, with its content, a file that is missing to say so, and whether nothing else stands in the way.
/// All that was checked is remembered, also where the look ends early.
fn decided<Fact: Fn(&str) -> Option<String>>(
    disk: &mut Disk,
    follower: &FleetFollower<'_, Fact>,
    fetch: impl FnMut(&SourceFile) -> Result<Option<Vec<u8>>, SourceFile>,
) -> (Option<Decided>, Option<SourceFile>, bool) {
    let decision = follower.decide(&disk.fleet, fetch);
    disk.fleet = decision.memory;
    let (missing, is_well) = match decision.obstacle {
        Some(Obstacle::Unreachable(file)) => (Some(file), false),
        obstacle => (None, matches!(obstacle, None | Some(Obstacle::Held(_)))),
    };
    let newest = decision.release.map(|release| {
        let Release { channel, link, bundle, .. } = release.statement();
        ((channel.clone(), link.number), SourceFile::Blob(bundle.clone()))
    });
    (newest.filter(|(release, _)| disk.staged.as_ref() != Some(release)), missing, is_well)
}

/// Long content is in memory once, however many machines have it: each of thousands has the roster.
fn shared(content: Vec<u8>) -> Arc<[u8]> {
    static LONG: Mutex<BTreeSet<Arc<[u8]>>> = Mutex::new(BTreeSet::new());
    if content.len() < 64 << 10 {
        return content.into();
    }
    let mut long = LONG.lock().unwrap();
    if let Some(known) = long.get(content.as_slice()) {
        return Arc::clone(known);
    }
    let content: Arc<[u8]> = content.into();
    long.insert(Arc::clone(&content));
    content
}
