//! The world between machines and controllers: time that passes when nothing else happens, a network that loses, doubles and delays,
//! processes that die, and what was seen of it all. Everything random comes from the seed, so that a seed is a world.

use std::collections::{BTreeMap, BinaryHeap};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use stead_fleet::server::{Controller, Look};
use stead_protocol::{DesiredAnswer, MachineAnswer, MachineCall, MachineEvent};
use stead_release::Name;
use tokio::sync::mpsc;

use crate::controllers::{BEGIN, Process, Running, Time, copied, lead, open};
use crate::machine::{Effect, Simulated};
use crate::operators::{Job, Operator};
use crate::queue::Due;
use crate::random::Random;

/// How long a machine waits for an answer.
const PATIENCE: u64 = 60_000;
/// How often a controller looks at all that there is.
const TURN: u64 = 2_000;
/// How long everything may take to be as it should once nothing fails any more: the longest wait is five minutes.
const SETTLE: u64 = 15 * 60_000;

/// The properties of a world.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nature {
    pub(crate) machines: usize,
    pub(crate) controllers: usize,
    pub(crate) releases: usize,
    /// How long things fail, in milliseconds.
    pub(crate) trouble: u64,
    /// Of a thousand messages, so many are lost, and so many arrive twice.
    pub(crate) lost: u64,
    pub(crate) doubled: u64,
    /// The longest way of a message, in milliseconds: messages pass each other.
    pub(crate) delay: u64,
    /// How far clocks of machines and controllers are from the time, in milliseconds.
    pub(crate) skew: i64,
    /// Processes die, at any step.
    pub(crate) deaths: bool,
    /// Controllers are cut off from their store.
    pub(crate) cuts: bool,
    /// The store is lost, and an older copy takes its place.
    pub(crate) restores: bool,
    /// So many machines end for good; then none reports, since theirs would be lost.
    pub(crate) killed: usize,
    /// All controllers are away from a time on, for so long, in milliseconds.
    pub(crate) away: Option<(u64, u64)>,
}

enum Happening {
    Time(usize, u64),
    Event(usize, u64, MachineEvent),
    Arrives(usize, u64, MachineCall, usize),
    Apply(usize, u64),
    Report(usize),
    BeginMachine(usize),
    Kill(usize),
    Look(usize, Look),
    Turn(usize),
    BeginController(usize),
    Cut(usize, bool),
    Operate,
    Publish,
    Copy,
    Restore,
    Away(u64),
    Settle,
}

/// Who waits for an answer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Client {
    Machine { at: usize, boot: u64, number: u64 },
    Operator(u64),
}

/// An answer of a controller to a request.
struct Reply {
    from: usize,
    request: u64,
    to: Client,
    answer: MachineAnswer,
}

/// The events that were seen.
#[derive(Default)]
pub(crate) struct History {
    /// The releases that each machine staged, in their order.
    pub(crate) staged: BTreeMap<usize, Vec<(Name, u64)>>,
    /// Defects, in words.
    pub(crate) wrong: Vec<String>,
    /// When each machine asked a controller for something newer, in milliseconds behind the beginning, in the order of time.
    pub(crate) asked: Vec<(u64, usize)>,
    /// When each machine staged something, likewise.
    pub(crate) staged_at: Vec<u64>,
    /// When each thing was published.
    pub(crate) published_at: Vec<u64>,
    /// The requests by machines and numbers.
    pub(crate) numbers: BTreeMap<(usize, u64), String>,
    /// When each machine ended for good, likewise, by its name.
    pub(crate) killed: BTreeMap<String, u64>,
    pub(crate) deaths: u64,
    pub(crate) restores: u64,
    pub(crate) reports: u64,
    /// When everything was in the desired state, in milliseconds behind the end of the trouble.
    pub(crate) settled: Option<u64>,
}

pub(crate) struct World {
    nature: Nature,
    random: Random,
    time: Time,
    _folder: tempfile::TempDir,
    store: PathBuf,
    copy: Option<PathBuf>,
    queue: BinaryHeap<Due<Happening>>,
    count: u64,
    controllers: Vec<Option<Running>>,
    waiting: Vec<BTreeMap<u64, Client>>,
    machines: Vec<Simulated>,
    operator: Operator,
    replies: (mpsc::UnboundedSender<Reply>, mpsc::UnboundedReceiver<Reply>),
    /// The last answer of each controller, in its present process, to each machine, by the history of the store.
    desired: BTreeMap<(usize, usize, Option<u64>), (String, u64)>,
    pub(crate) history: History,
}

impl World {
    pub(crate) fn new(seed: u64, nature: Nature) -> Self {
        // What a power cut takes is tried elsewhere.
        let folder = tempfile::tempdir_in(stead_testkit::memory_folder()).unwrap();
        let store = folder.path().join("fleet.db");
        lead(&store, &folder.path().join("first.db"));
        let time = Time(tokio::time::Instant::now());
        let operator = Operator::new(&mut open(&store, time), nature.machines, nature.releases > 0);
        let machines: Vec<_> = (0..nature.machines).map(|number| Simulated::new(number, &operator.root())).collect();
        Self {
            nature,
            random: Random::new(seed),
            time,
            _folder: folder,
            store,
            copy: None,
            queue: BinaryHeap::new(),
            count: 0,
            controllers: (0..nature.controllers).map(|_| None).collect(),
            waiting: vec![BTreeMap::new(); nature.controllers],
            machines,
            operator,
            replies: mpsc::unbounded_channel(),
            desired: BTreeMap::new(),
            history: History::default(),
        }
    }

    /// A controller that is there.
    pub(crate) fn controller(&self) -> Option<Arc<Controller>> {
        self.controllers.iter().flatten().next().map(|running| Arc::clone(&running.controller))
    }

    fn now(&self) -> u64 {
        self.time.now()
    }

    fn is_trouble(&self) -> bool {
        self.now() < BEGIN + self.nature.trouble
    }

    fn later(&mut self, wait: u64, what: Happening) {
        self.count += 1;
        self.queue.push(Due(self.now() + wait, self.count, what));
    }

    /// Lets everything happen until all is in the desired state.
    pub(crate) async fn run(&mut self) {
        self.begin();
        while self.history.settled.is_none() && self.history.wrong.is_empty() {
            let Some(Due(at, ..)) = self.queue.peek() else { break };
            let due = self.time.0 + Duration::from_millis(at - BEGIN);
            tokio::select! {
                biased;
                Some(reply) = self.replies.1.recv() => self.replied(reply),
                () = tokio::time::sleep_until(due) => {
                    if let Some(Due(_, _, what)) = self.queue.pop() {
                        self.happen(what);
                    }
                }
            }
            self.follow_up();
        }
    }

    fn begin(&mut self) {
        for at in 0..self.nature.controllers {
            self.later(0, Happening::BeginController(at));
            self.later(TURN, Happening::Turn(at));
        }
        let signed = self.operator.begin(&self.machines);
        self.operator.jobs.extend(signed);
        self.later(1, Happening::Operate);
        for at in 0..self.nature.machines {
            let skew = self.skew();
            self.machines[at].skew = skew;
            let wait = self.random.below(5_000);
            self.later(wait, Happening::BeginMachine(at));
            if self.nature.killed == 0 {
                let wait = self.random.between(5_000, self.nature.trouble);
                self.later(wait, Happening::Report(at));
            }
        }
        for release in 1..self.nature.releases as u64 {
            let (step, wait) = (self.nature.trouble / self.nature.releases as u64, self.random.below(2_000));
            self.later(release * step + wait, Happening::Publish);
        }
        if self.nature.restores {
            let at = self.random.between(self.nature.trouble / 4, self.nature.trouble / 2);
            self.later(at, Happening::Copy);
            let until = self.random.between(1_000, self.nature.trouble / 2);
            self.later(at + until, Happening::Restore);
        }
        if let Some((from, length)) = self.nature.away {
            self.later(from, Happening::Away(length));
        }
        for number in 0..self.nature.killed {
            let wait = self.random.between(60_000, 120_000);
            self.later(wait, Happening::Kill(number * self.nature.machines / self.nature.killed));
        }
        self.later(self.nature.trouble, Happening::Settle);
    }

    fn skew(&mut self) -> i64 {
        let skew = self.nature.skew.unsigned_abs();
        i64::try_from(self.random.below(2 * skew + 1)).unwrap() - self.nature.skew
    }

    fn happen(&mut self, what: Happening) {
        let now = self.now();
        match what {
            Happening::Time(at, boot) if self.machines[at].boot == boot => {
                self.machines[at].woken = u64::MAX;
                self.event(at, MachineEvent::Time);
            }
            Happening::Event(at, boot, event) if self.machines[at].boot == boot => self.event(at, event),
            Happening::Apply(at, boot) if self.machines[at].boot == boot => {
                let effects = self.machines[at].apply(now);
                self.effects(at, effects);
            }
            Happening::Time(..) | Happening::Event(..) | Happening::Apply(..) => {}
            Happening::Arrives(at, boot, call, controller) => {
                let to = Client::Machine { at, boot, number: call.number };
                self.arrives(controller, to, &call);
            }
            Happening::Report(at) => {
                if self.machines[at].is_running() {
                    let effects = self.machines[at].report(now);
                    self.effects(at, effects);
                }
                if self.is_trouble() {
                    let wait = self.random.between(10_000, 90_000);
                    self.later(wait, Happening::Report(at));
                }
            }
            Happening::BeginMachine(at) => self.begin_machine(at),
            Happening::Kill(at) => {
                self.machines[at].end();
                self.history.killed.insert(self.machines[at].name.to_string(), now - BEGIN);
            }
            Happening::Look(at, look) => self.look(at, look),
            Happening::Turn(at) => {
                self.look(at, Look::AtAll);
                self.later(TURN, Happening::Turn(at));
            }
            Happening::BeginController(at) => self.begin_controller(at),
            Happening::Cut(at, is_cut_off) => {
                if let Some(running) = &self.controllers[at] {
                    running.process.is_cut_off.store(is_cut_off, Ordering::SeqCst);
                }
            }
            Happening::Operate => self.operate(),
            Happening::Publish => self.operator.sign(),
            Happening::Copy => self.copy = Some(copied(&self.store, "copy.db")),
            Happening::Restore => self.restore(),
            Happening::Away(length) => {
                for at in 0..self.nature.controllers {
                    self.end_controller(at, length);
                }
            }
            Happening::Settle => self.settle(),
        }
    }

    fn event(&mut self, at: usize, event: MachineEvent) {
        let now = self.now();
        let effects = self.machines[at].handle(now, event);
        self.effects(at, effects);
    }

    fn effects(&mut self, at: usize, effects: Vec<Effect>) {
        for effect in effects {
            let boot = self.machines[at].boot;
            match effect {
                Effect::Send(call) => self.send(at, boot, &call),
                Effect::Apply(wait) => self.later(wait, Happening::Apply(at, boot)),
                Effect::Staged(channel, number) => self.staged(at, channel, number),
            }
        }
        let machine = &self.machines[at];
        let (boot, now) = (machine.boot, self.now());
        if machine.boot > 0 && !machine.is_running() && machine.woken == u64::MAX {
            // It died at one of its actions, and begins again.
            self.machines[at].woken = 0;
            self.history.deaths += 1;
            let wait = self.random.between(100, 20_000);
            return self.later(wait, Happening::BeginMachine(at));
        }
        if let Some(next) = machine.next().filter(|next| *next < machine.woken) {
            self.machines[at].woken = next;
            self.later(next.saturating_sub(now), Happening::Time(at, boot));
        }
    }

    fn staged(&mut self, at: usize, channel: Name, number: u64) {
        let before = self.history.staged.entry(at).or_default();
        if before.last().is_some_and(|(_, last)| *last >= number) {
            self.history.wrong.push(format!("m{at} goes from {:?} to release {number}", before.last()));
        }
        before.push((channel, number));
        let passed = self.now() - BEGIN;
        self.history.staged_at.push(passed);
    }

    fn send(&mut self, at: usize, boot: u64, call: &MachineCall) {
        let is_twice = self.history.numbers.insert((at, call.number), call.path.clone()).is_some();
        if is_twice {
            self.history.wrong.push(format!("m{at} uses the number {} twice", call.number));
        }
        let trouble = self.is_trouble();
        let copies = 1 + u64::from(trouble && self.random.happens(self.nature.doubled));
        for _ in 0..copies {
            if trouble && self.random.happens(self.nature.lost) {
                self.lost(at, boot, call.number, PATIENCE);
                continue;
            }
            let (controller, wait) =
                (self.random.below(self.nature.controllers as u64), self.random.below(self.nature.delay));
            let controller = usize::try_from(controller).unwrap();
            self.later(wait, Happening::Arrives(at, boot, call.clone(), controller));
        }
    }

    fn lost(&mut self, at: usize, boot: u64, number: u64, wait: u64) {
        self.later(wait, Happening::Event(at, boot, MachineEvent::Lost(number, "lost".to_owned())));
    }

    /// A request is at a controller.
    fn arrives(&mut self, at: usize, from: Client, call: &MachineCall) {
        self.count += 1;
        let request_number = self.count;
        let passed = self.now() - BEGIN;
        let Some(running) = &mut self.controllers[at] else { return self.refused(from) };
        if let (Client::Machine { at, .. }, true) = (from, call.waits) {
            self.history.asked.push((passed, at));
        }
        let mut request = Request::builder().method(call.method).uri(&call.path);
        for (name, value) in &call.headers {
            request = request.header(*name, value);
        }
        let request = request.body(Full::new(Bytes::from(call.body.clone()))).unwrap();
        let (controller, process) = (Arc::clone(&running.controller), Arc::clone(&running.process));
        let (sender, number) = (self.replies.0.clone(), call.number);
        self.waiting[at].insert(request_number, from);
        running.tasks.spawn(async move {
            let (head, body) = controller.answer(request).await.into_parts();
            if process.is_dead.load(Ordering::SeqCst) {
                return;
            }
            let body = body.collect().await.unwrap().to_bytes().to_vec();
            let header = |name: &str| head.headers.get(name)?.to_str().ok();
            let answer = MachineAnswer::of(number, head.status.as_u16(), header, body);
            sender.send(Reply { from: at, request: request_number, to: from, answer }).unwrap();
        });
    }

    /// Nobody listens, or the process that listened is gone: that is known at once.
    fn refused(&mut self, client: Client) {
        match client {
            Client::Machine { at, boot, number } => {
                let wait = self.random.between(1, 50);
                self.lost(at, boot, number, wait);
            }
            Client::Operator(_) => self.operator.lost(),
        }
    }

    fn replied(&mut self, reply: Reply) {
        self.waiting[reply.from].remove(&reply.request);
        match reply.to {
            Client::Machine { at: machine, boot, number } => {
                self.compare(reply.from, machine, &reply.answer);
                if self.is_trouble() && self.random.happens(self.nature.lost) {
                    return self.lost(machine, boot, number, PATIENCE);
                }
                let wait = self.random.below(self.nature.delay);
                self.later(wait, Happening::Event(machine, boot, MachineEvent::Answered(reply.answer)));
            }
            Client::Operator(_) => {
                self.operator.answered(&reply.answer);
                let passed = self.now() - BEGIN;
                self.history.published_at.push(passed);
            }
        }
    }

    /// The answers of a process to one machine never go back within one history of the store.
    fn compare(&mut self, at: usize, machine: usize, answer: &MachineAnswer) {
        if answer.tag.is_none() || answer.status != 200 {
            return;
        }
        let DesiredAnswer { channel, number, .. } = serde_json::from_slice(&answer.body).unwrap();
        let before = self.desired.insert((at, machine, answer.epoch), (channel.clone(), number));
        if let Some(before) = before.filter(|before| before.0 == channel && before.1 > number) {
            self.history.wrong.push(format!("controller {at} goes from {before:?} to {number} for m{machine}"));
        }
    }

    fn begin_machine(&mut self, at: usize) {
        if self.machines[at].is_running() {
            return;
        }
        let now = self.now();
        let trouble = self.is_trouble();
        if self.nature.deaths && trouble {
            self.machines[at].ends_before = self.random.between(1, 120);
        }
        self.machines[at].woken = u64::MAX;
        let effects = self.machines[at].begin(now, &mut self.random);
        self.effects(at, effects);
    }

    fn begin_controller(&mut self, at: usize) {
        let (deaths, trouble) = (self.nature.deaths, self.is_trouble());
        let dies_in = if deaths && trouble { self.random.between(1, 150) } else { u64::MAX };
        let process = Process {
            is_dead: AtomicBool::new(false),
            dies_in: AtomicU64::new(dies_in),
            dies_behind: self.random.happens(500),
            is_cut_off: AtomicBool::new(false),
            is_moved: AtomicBool::new(false),
            hints: AtomicBool::new(false),
        };
        let skew = self.skew();
        self.controllers[at] = Some(Running::begin(&self.store, self.time, skew, process));
        if self.nature.cuts && trouble {
            let (from, length) = (self.random.below(60_000), self.random.between(500, 20_000));
            self.later(from, Happening::Cut(at, true));
            self.later(from + length, Happening::Cut(at, false));
        }
    }

    fn look(&mut self, at: usize, look: Look) {
        let Some(running) = &mut self.controllers[at] else { return };
        if !running.process.is_cut_off.load(Ordering::SeqCst) && !running.process.is_dead.load(Ordering::SeqCst) {
            running.planner.look(&running.controller, look).unwrap();
        }
    }

    /// What follows from a step: others hear of changes, and who died is gone.
    fn follow_up(&mut self) {
        for at in 0..self.nature.controllers {
            let Some(running) = &mut self.controllers[at] else { continue };
            while running.tasks.try_join_next().is_some() {}
            let is_dead = running.process.is_dead.load(Ordering::SeqCst);
            if running.process.hints.swap(false, Ordering::SeqCst) {
                for other in 0..self.nature.controllers {
                    let is_lost = self.is_trouble() && self.random.happens(self.nature.lost);
                    if other == at || !is_lost {
                        let wait = if other == at { 0 } else { self.random.below(20) };
                        self.later(wait, Happening::Look(other, Look::AtChanges));
                    }
                }
            }
            if is_dead {
                let wait = self.random.between(200, 15_000);
                self.end_controller(at, wait);
            }
        }
    }

    fn end_controller(&mut self, at: usize, wait: u64) {
        self.history.deaths += 1;
        self.controllers[at] = None;
        self.desired.retain(|(controller, ..), _| *controller != at);
        for client in std::mem::take(&mut self.waiting[at]).into_values() {
            self.refused(client);
        }
        self.later(wait, Happening::BeginController(at));
    }

    /// The operator does what is next, and once more what was not answered.
    fn operate(&mut self) {
        for machine in self.machines.iter().filter(|machine| machine.waits_for_an_operator()) {
            self.operator.admit(&machine.name);
        }
        if let Some((number, Job { method, path, body })) = self.operator.next() {
            let at = usize::try_from(self.random.below(self.nature.controllers as u64)).unwrap();
            let headers = vec![("authorization", "Bearer operator".to_owned())];
            let call = MachineCall { number, waits: false, method, path, headers, body };
            self.arrives(at, Client::Operator(number), &call);
        }
        self.later(500, Happening::Operate);
    }

    /// The store is lost: an older copy takes its place, and operators publish again what they signed.
    fn restore(&mut self) {
        let Some(copy) = self.copy.take() else { return };
        lead(&self.store, &copy);
        // Controllers end with it, or find the other one instead.
        let ends = self.random.happens(500);
        for at in 0..self.nature.controllers {
            match &mut self.controllers[at] {
                Some(_) if ends => self.end_controller(at, 3_000),
                Some(running) => {
                    running.process.is_moved.store(true, Ordering::SeqCst);
                    running.planner.reopen().unwrap();
                }
                None => {}
            }
        }
        self.history.restores += 1;
        self.operator.again();
    }

    /// Nothing fails any more: everything must come to be as it should, and stay within its time.
    fn settle(&mut self) {
        let behind = self.now() - (BEGIN + self.nature.trouble);
        for at in 0..self.nature.machines {
            self.machines[at].ends_before = u64::MAX;
        }
        for running in self.controllers.iter().flatten() {
            running.process.dies_in.store(u64::MAX, Ordering::SeqCst);
            running.process.is_cut_off.store(false, Ordering::SeqCst);
        }
        let left = self.left();
        if left.is_empty() {
            self.history.reports = self.machines.iter().map(|machine| machine.reports().len() as u64).sum();
            self.history.settled = Some(behind);
        } else if behind > SETTLE {
            self.history.wrong.extend(left);
        } else {
            self.later(1_000, Happening::Settle);
        }
    }

    /// The distance to the desired state, in words.
    fn left(&mut self) -> Vec<String> {
        let mut left = self.operator.left();
        let newest = self.operator.newest();
        let mut store = open(&self.store, self.time);
        let epoch = store.changes(u64::MAX >> 1).unwrap().epoch;
        for (at, machine) in self.machines.iter().enumerate() {
            if machine.epoch() != Some(epoch) {
                left.push(format!("m{at} has not heard that the store is another one"));
            }
            if machine.applied() != newest.as_ref() {
                left.push(format!("m{at} has {:?} and not {newest:?}", machine.applied()));
            }
            if machine.acknowledged() < machine.reports().len() as u64 {
                left.push(format!("of m{at} report {} is not acknowledged", machine.acknowledged() + 1));
            }
        }
        if left.is_empty() {
            let wrong = self.operator.compared(&mut store, &self.machines);
            self.history.wrong.extend(wrong);
            // Whatever died and was restored, each machine is one.
            let two = store.forks().unwrap();
            self.history.wrong.extend(two.iter().map(|(machine, number)| format!("{machine:?} is two at {number}")));
        }
        left
    }
}
