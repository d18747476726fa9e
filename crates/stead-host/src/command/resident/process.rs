//! One resident: a process, the calls that it has, and whoever of them hears it for all.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value as Json;
use stead_core::call::{Failure, FailureKind};
use stead_system::process::dialogue::{Heard, Hearer, Speaker};
use stead_system::process::{ConversationError, Exit};

use super::protocol::{self, Message};
use crate::command::invoke::with_words;
use crate::command::secrets::Secrets;
use crate::command::stderr::{Lines, keep, read_line};
use crate::provider::{Context, TraceLevel};

/// How often who waits looks whether it is to go on waiting.
const TICK: Duration = Duration::from_millis(100);

/// The same while something is not said yet that another hears for.
const SHORT_TICK: Duration = Duration::from_millis(2);

/// How many secrets a process is given before another takes its place: what it says is looked through for all of them.
const MOST_SECRETS: usize = 1000;

/// How often its memory is looked at.
const MEASURED_EVERY: Duration = Duration::from_secs(1);

/// How much a call may log that nobody took yet; what is beyond is left out.
const MOST_LOGGED: usize = 4 << 20;

/// How long a process may take to end when it is asked to.
const GRACE: Duration = Duration::from_millis(500);

/// A process that stays, with the calls that it has.
///
/// Guarantees: a call ends once, whatever the process does: by its answer, or by the end of the process, which is ended where it
/// says anything that no call of it asked for. Nothing is sent twice. Dropping it ends the process with all that it started.
pub(super) struct Process {
    /// The program, for messages.
    program: String,
    state: Mutex<State>,
    /// Wakes those that have a call.
    changed: Condvar,
    /// Wakes one that has no call yet.
    room: Condvar,
}

/// The end of a call that has no answer, or an error for one.
pub(super) struct Fault {
    pub(super) failure: Failure,
    /// True if the process ended by itself, and had answered other calls before.
    pub(super) had_answered: bool,
}

impl From<Failure> for Fault {
    fn from(failure: Failure) -> Self {
        Self { failure, had_answered: false }
    }
}

struct State {
    /// How many calls it has at most.
    width: usize,
    /// Absent once it is over.
    speaker: Option<Speaker>,
    /// Absent while somebody hears, and once it is over.
    hearer: Option<Hearer>,
    calls: BTreeMap<u64, Slot>,
    next: u64,
    /// Why it is of no use any more.
    over: Option<Failure>,
    /// True if that is because it ended by itself.
    has_left: bool,
    /// How many calls it answered, the greeting among them.
    answered: u64,
    /// All that it was given.
    secrets: Secrets,
    errors: Lines,
    /// The end of its standard error.
    tail: String,
    /// True once it took no more of what was said.
    is_deaf: bool,
    last_used: Instant,
    last_measured: Instant,
}

/// A call under way.
#[derive(Default)]
struct Slot {
    logs: Vec<(TraceLevel, String)>,
    logged: usize,
    answer: Option<Result<Json, Failure>>,
}

/// The limits of a call: when it must be over, and how long it may take to end early.
struct Limits<'a> {
    cx: &'a Context,
    begun: Instant,
    grace: Duration,
}

impl Limits<'_> {
    fn left(&self) -> Duration {
        self.cx.deadline.saturating_sub(self.begun.elapsed())
    }

    /// Why the call is to end, if it is.
    fn ends(&self) -> Option<FailureKind> {
        match () {
            () if self.cx.cancel.is_cancelled() => Some(FailureKind::Cancelled),
            () if self.left().is_zero() => Some(FailureKind::Deadline),
            () => None,
        }
    }

    fn failure(&self, kind: FailureKind, program: &str) -> Failure {
        let message = match kind {
            FailureKind::Cancelled => "it was cancelled".to_owned(),
            _ => format!("'{program}' did not answer within {:?}", self.cx.deadline),
        };
        Failure::new(kind, message)
    }
}

impl Process {
    /// Greets a process that was started. One that does not answer in time, or wrongly, is ended.
    pub(super) fn greet(program: &str, halves: (Speaker, Hearer), cx: &Context) -> Result<Self, Failure> {
        let (speaker, hearer) = halves;
        let state = State {
            width: 1,
            speaker: Some(speaker),
            hearer: Some(hearer),
            calls: BTreeMap::new(),
            next: 1,
            over: None,
            has_left: false,
            answered: 0,
            secrets: Secrets::default(),
            errors: Lines::default(),
            tail: String::new(),
            is_deaf: false,
            last_used: Instant::now(),
            last_measured: Instant::now(),
        };
        let (changed, room) = <(Condvar, Condvar)>::default();
        let process = Self { program: program.to_owned(), state: Mutex::new(state), changed, room };
        let limits = Limits { cx, begun: Instant::now(), grace: Duration::ZERO };
        let answer = process.ask(process.lock(), &limits, &protocol::greeting).map_err(|fault| fault.failure)?;
        process.lock().width = protocol::width(&answer).map_err(|why| {
            Failure::new(FailureKind::Protocol, format!("'{program}' cannot be called as a resident: {why}"))
        })?;
        Ok(process)
    }

    /// Asks something; `None` if it ended before it was asked.
    pub(super) fn call(
        &self,
        cx: &Context,
        grace: Duration,
        secrets: &Secrets,
        line: &dyn Fn(u64) -> Vec<u8>,
    ) -> Option<Result<Json, Fault>> {
        let limits = Limits { cx, begun: Instant::now(), grace };
        let mut state = self.lock();
        while state.calls.len() >= state.width && state.over.is_none() {
            if let Some(kind) = limits.ends() {
                // Who waits as well is woken in its place.
                self.room.notify_one();
                let why = limits.failure(kind.clone(), &self.program).message + "; it was busy with other calls";
                return Some(Err(Failure::new(kind, why).into()));
            }
            state = wait(&self.room, state, TICK.min(limits.left()));
        }
        if state.calls.is_empty() && state.over.is_none() {
            state = self.hear(state, Duration::ZERO);
        }
        if let Some(over) = &state.over {
            tracing::debug!("{}; another is started", state.secrets.scrub(&over.message));
            return None;
        }
        state.secrets.add(secrets);
        Some(self.ask(state, &limits, line))
    }

    /// Returns whether it can be asked.
    pub(super) fn is_over(&self) -> bool {
        self.lock().over.is_some()
    }

    /// Returns whether it was given so many secrets, or takes so much memory, that another is to take its place.
    pub(super) fn is_worn(&self, most_memory: u64) -> bool {
        let mut state = self.lock();
        if state.secrets.len() > MOST_SECRETS {
            return true;
        }
        let is_due = state.last_measured.elapsed() >= MEASURED_EVERY;
        let measured = state.hearer.as_ref().filter(|_| is_due).map(Hearer::resident_memory);
        if measured.is_some() {
            state.last_measured = Instant::now();
        }
        measured.is_some_and(|memory| memory > most_memory)
    }

    /// When it was last asked; `None` while it has calls.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let state = self.lock();
        state.calls.is_empty().then_some(state.last_used)
    }

    fn ask<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        limits: &Limits<'_>,
        line: &dyn Fn(u64) -> Vec<u8>,
    ) -> Result<Json, Fault> {
        let id = state.next;
        state.next += 1;
        state.calls.insert(id, Slot::default());
        state.say(&line(id));
        let result = self.follow(state, id, limits);
        let mut state = self.lock();
        state.calls.remove(&id);
        state.last_used = Instant::now();
        let result = result.map_err(|fault| Fault { failure: state.scrubbed(fault.failure), ..fault });
        let is_followed = !state.calls.is_empty();
        drop(state);
        self.room.notify_one();
        if is_followed {
            self.changed.notify_all();
        }
        result
    }

    /// Waits for the end of a call, and hears for all where nobody else does.
    fn follow<'a>(&'a self, mut state: MutexGuard<'a, State>, id: u64, limits: &Limits<'_>) -> Result<Json, Fault> {
        let mut ending: Option<(FailureKind, Instant)> = None;
        loop {
            state = self.deliver(state, id, limits.cx);
            if state.calls.get(&id).is_some_and(|call| call.answer.is_some())
                && let Some(answer) = state.calls.remove(&id).and_then(|call| call.answer)
            {
                state.answered += 1;
                return answer.map_err(|failure| match &ending {
                    Some((kind, _)) if failure.kind == FailureKind::Cancelled => {
                        limits.failure(kind.clone(), &self.program).into()
                    }
                    _ => failure.into(),
                });
            }
            if let Some(over) = &state.over {
                // The first answer is that to the greeting.
                let had_answered = state.has_left && state.answered > 1 && ending.is_none();
                return Err(Fault { failure: over.clone(), had_answered });
            }
            match &ending {
                None => {
                    if let Some(kind) = limits.ends() {
                        state.say(&protocol::cancel(id));
                        ending = Some((kind, Instant::now()));
                    }
                }
                Some((kind, since)) if since.elapsed() >= limits.grace => {
                    let failure = limits.failure(kind.clone(), &self.program);
                    let others = format!("'{}' was ended, since it did not end another call in time", self.program);
                    drop(self.end(state, Failure::new(FailureKind::Protocol, others)));
                    return Err(failure.into());
                }
                Some(_) => {}
            }
            state.go_on();
            let left = if ending.is_some() { limits.grace } else { limits.left() };
            state = if state.hearer.is_some() {
                self.hear(state, TICK.min(left))
            } else {
                let tick = if state.is_speaking() { SHORT_TICK } else { TICK };
                wait(&self.changed, state, tick.min(left))
            };
        }
    }

    /// Hands on what was logged for a call, without the secrets that the process knows.
    fn deliver<'a>(&'a self, mut state: MutexGuard<'a, State>, id: u64, cx: &Context) -> MutexGuard<'a, State> {
        let logs = match state.calls.get_mut(&id) {
            Some(call) if !call.logs.is_empty() => call.take_logs(),
            _ => return state,
        };
        let clean: Vec<_> =
            logs.into_iter().map(|(level, text)| (level, state.secrets.scrub(&text).into_owned())).collect();
        drop(state);
        for (level, text) in &clean {
            (cx.trace)(*level, text);
        }
        self.lock()
    }

    /// Hears what the process says, at most that long, and takes it in.
    fn hear<'a>(&'a self, mut state: MutexGuard<'a, State>, timeout: Duration) -> MutexGuard<'a, State> {
        let Some(mut hearer) = state.hearer.take() else { return state };
        let says_more = state.is_speaking() && !state.is_deaf;
        drop(state);
        let heard = hearer.hear(says_more, timeout);
        let mut state = self.lock();
        if state.over.is_some() {
            // It was ended meanwhile.
            drop(state);
            drop(hearer);
            return self.lock();
        }
        let over = match heard {
            Ok(heard) => {
                let is_silent = heard.lines.is_empty() && heard.errors.is_empty();
                let wrong = state.take_in(&heard).map(|why| self.said_wrong(&why));
                wrong.or_else(|| (state.is_deaf && is_silent).then(|| self.ended(None)))
            }
            Err(error) => {
                state.has_left = matches!(error, ConversationError::Ended(_));
                Some(self.failed(&error))
            }
        };
        state.hearer = Some(hearer);
        if let Some(over) = over {
            return self.end(state, over);
        }
        // Whoever hears is one of them.
        if state.calls.len() > 1 {
            self.changed.notify_all();
        }
        state
    }

    /// Ends it by force. The calls that it has fail.
    fn end<'a>(&'a self, mut state: MutexGuard<'a, State>, why: Failure) -> MutexGuard<'a, State> {
        let said = std::mem::take(&mut state.tail);
        let message = with_words(why.message, said.trim());
        state.over.get_or_insert(Failure { message, ..Failure::new(why.kind, "") });
        let halves = (state.speaker.take(), state.hearer.take());
        drop(state);
        self.changed.notify_all();
        self.room.notify_all();
        drop(halves);
        self.lock()
    }

    fn failed(&self, error: &ConversationError) -> Failure {
        match error {
            ConversationError::Ended(exit) => self.ended(*exit),
            ConversationError::TooMuch => {
                let message = format!("'{}' answered with a longer line than is read, and was ended", self.program);
                Failure::new(FailureKind::OutputLimit, message)
            }
            other => Failure::new(FailureKind::System, format!("'{}' failed: {other}", self.program)),
        }
    }

    fn ended(&self, exit: Option<Exit>) -> Failure {
        let program = &self.program;
        let (kind, how) = match exit {
            Some(Exit::Code(code)) => (FailureKind::Exit(code), format!(": exit code {code}")),
            Some(Exit::Signal(signal)) => (FailureKind::Signal(signal), format!(": signal {signal}")),
            None => (FailureKind::Protocol, String::new()),
        };
        // An exit code of 0 says nothing of the call.
        let kind = if kind == FailureKind::Exit(0) { FailureKind::Protocol } else { kind };
        Failure::new(kind, format!("'{program}' ended in the call{how}"))
    }

    fn said_wrong(&self, why: &str) -> Failure {
        let message = format!("'{}' said something that is not understood, and was ended: {why}", self.program);
        Failure::new(FailureKind::Protocol, message)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wait<'a>(what: &Condvar, state: MutexGuard<'a, State>, timeout: Duration) -> MutexGuard<'a, State> {
    what.wait_timeout(state, timeout).unwrap_or_else(PoisonError::into_inner).0
}

impl Drop for Process {
    fn drop(&mut self) {
        let mut state = self.lock();
        state.speaker = None;
        let hearer = state.hearer.take();
        drop(state);
        let Some(hearer) = hearer else { return };
        let left = hearer.end(GRACE);
        if !left.0.is_empty() {
            tracing::warn!("'{}' left processes behind, which were ended: {left}", self.program);
        }
    }
}

impl Slot {
    fn take_logs(&mut self) -> Vec<(TraceLevel, String)> {
        self.logged = 0;
        std::mem::take(&mut self.logs)
    }

    fn log(&mut self, level: TraceLevel, text: String) {
        self.logged += text.len();
        if self.logged <= MOST_LOGGED {
            self.logs.push((level, text));
        }
    }
}

impl State {
    /// A failure without the secrets that the process knows.
    fn scrubbed(&self, failure: Failure) -> Failure {
        let known = |text: &str| self.secrets.scrub(text).into_owned();
        let property = failure.property.as_deref().map(known);
        let error_id = failure.error_id.as_deref().map(|id| known(id).into());
        Failure { message: known(&failure.message), property, error_id, ..failure }
    }

    fn say(&mut self, line: &[u8]) {
        let said = self.speaker.as_mut().map(|speaker| speaker.say(line));
        self.is_deaf |= said.is_some_and(|said| said.is_err());
    }

    /// Goes on with what is not said yet.
    fn go_on(&mut self) {
        if self.is_speaking() {
            let said = self.speaker.as_mut().map(Speaker::go_on);
            self.is_deaf |= said.is_some_and(|said| said.is_err());
        }
    }

    fn is_speaking(&self) -> bool {
        self.speaker.as_ref().is_some_and(|speaker| !speaker.is_done())
    }

    /// Takes in what was heard. Returns what is wrong with it, if something is.
    fn take_in(&mut self, heard: &Heard) -> Option<String> {
        let mut lines = Vec::new();
        self.errors.hear(&heard.errors, &mut |line| lines.push(read_line(line)));
        for message in lines {
            if message.plain || message.level == TraceLevel::Error {
                keep(&mut self.tail, &message.text);
            }
            // It does not say which call it is about.
            if let Some((_, call)) = self.calls.iter_mut().next() {
                call.log(message.level, message.text);
            }
        }
        heard.lines.iter().find_map(|line| self.take_line(line).err())
    }

    fn take_line(&mut self, line: &[u8]) -> Result<(), String> {
        match protocol::read(line)? {
            Message::Answer(id, answer) => match self.calls.get_mut(&id).map(|call| &mut call.answer) {
                Some(slot @ None) => {
                    *slot = Some(answer);
                    Ok(())
                }
                Some(Some(_)) => Err("it answered a call twice".to_owned()),
                None => Err("it answered a call that it does not have".to_owned()),
            },
            Message::Log(id, level, text) => {
                let call = match id {
                    Some(id) => self.calls.get_mut(&id),
                    None => self.calls.values_mut().next(),
                };
                // A call may have ended before what is said about it is read.
                if let Some(call) = call {
                    call.log(level, text);
                }
                Ok(())
            }
        }
    }
}
