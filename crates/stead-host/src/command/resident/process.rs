//! One resident: a process, the calls that it has, and whoever of them hears it for all.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value as Json;
use stead_core::call::{Failure, FailureKind};
use stead_system::process::dialogue::{HeardLines, Hearer, Speaker};
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
pub(super) const GRACE: Duration = Duration::from_millis(500);

/// A process that stays, with the calls that it has.
///
/// Guarantees: a call ends once, whatever the process does: by its answer, or by the end of the process, which is ended where it
/// says anything that no call of it asked for. Nothing is sent twice. Dropping it ends the process with all that it started.
pub(super) struct Process {
    /// The program, for messages.
    program: String,
    /// The longest line that is read of it.
    longest: usize,
    state: Mutex<State>,
    /// Wakes those that have a call.
    changed: Condvar,
    /// Wakes one that has no call yet.
    free: Condvar,
    /// Dropped once it has ended.
    _room: Box<dyn Send + Sync>,
}

/// The state of a process between calls.
pub(super) enum Fitness {
    /// It can be asked.
    Fit,
    /// It has not failed, but another is to take its place.
    Worn,
    /// It has ended, for this reason.
    Over(String),
}

/// The end of a call without a result.
pub(super) enum Fault {
    /// The answer is an error.
    Answered(Failure),
    /// There is no answer.
    Ended {
        failure: Failure,
        /// True if the process ended by itself, and had answered other calls before.
        had_answered: bool,
    },
}

impl From<Failure> for Fault {
    fn from(failure: Failure) -> Self {
        Self::Ended { failure, had_answered: false }
    }
}

impl Fault {
    fn map(self, change: impl Fn(Failure) -> Failure) -> Self {
        match self {
            Self::Answered(failure) => Self::Answered(change(failure)),
            Self::Ended { failure, had_answered } => Self::Ended { failure: change(failure), had_answered },
        }
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
    /// When it was asked to end.
    asked_to_end: Option<Instant>,
}

/// A call under way.
#[derive(Default)]
struct Slot {
    logs: Vec<(TraceLevel, String)>,
    logged: usize,
    answer: Option<Result<Json, Failure>>,
}

/// The limits of a call: when it must be over, and how long it may take to end early.
pub(super) struct Limits<'a> {
    pub(super) cx: &'a Context,
    begun: Instant,
    deadline: Duration,
    grace: Duration,
}

impl<'a> Limits<'a> {
    /// The limits of a call that begins now, in whatever steps it is carried out.
    pub(super) fn new(cx: &'a Context, grace: Duration) -> Self {
        Self { cx, begun: Instant::now(), deadline: cx.deadline, grace }
    }

    /// Those of a step that may not take longer than this, and is ended at once.
    pub(super) fn at_most(&self, longest: Duration) -> Self {
        let (begun, deadline) =
            if self.left() > longest { (Instant::now(), longest) } else { (self.begun, self.deadline) };
        Self { cx: self.cx, begun, deadline, grace: Duration::ZERO }
    }

    pub(super) fn left(&self) -> Duration {
        self.deadline.saturating_sub(self.begun.elapsed())
    }

    /// Why the call is to end, if it is.
    pub(super) fn ends(&self) -> Option<FailureKind> {
        match () {
            () if self.cx.cancel.is_cancelled() => Some(FailureKind::Cancelled),
            () if self.left().is_zero() => Some(FailureKind::Deadline),
            () => None,
        }
    }

    /// The failure of a call that ends early, for which this was waited.
    pub(super) fn failure(&self, kind: FailureKind, what: &str) -> Failure {
        let message = match kind {
            FailureKind::Cancelled => "it was cancelled".to_owned(),
            _ => format!("{what} within {:?}", self.deadline),
        };
        Failure::new(kind, message)
    }
}

impl Process {
    /// Greets a process that was started. One that does not answer in time, or wrongly, is ended.
    pub(super) fn greet(
        program: &str,
        halves: (Speaker, Hearer),
        limits: &Limits<'_>,
        room: Box<dyn Send + Sync>,
    ) -> Result<Self, Failure> {
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
            asked_to_end: None,
        };
        let (changed, free) = <(Condvar, Condvar)>::default();
        let (program, state) = (program.to_owned(), Mutex::new(state));
        let process = Self { program, longest: limits.cx.output_limit, state, changed, free, _room: room };
        let (Fault::Answered(failure) | Fault::Ended { failure, .. }) =
            match process.ask(process.lock(), limits, &protocol::greeting) {
                Ok((answer, _)) => return process.with_width(&answer),
                Err(fault) => fault,
            };
        Err(failure)
    }

    /// Takes in the answer to the greeting.
    fn with_width(self, answer: &Json) -> Result<Self, Failure> {
        self.lock().width = protocol::width(answer).map_err(|why| {
            Failure::new(FailureKind::Protocol, format!("'{}' cannot be called as a resident: {why}", self.program))
        })?;
        Ok(self)
    }

    /// Asks something. Returns the answer and what was on standard error meanwhile, or `None` if it ended before it was asked.
    pub(super) fn call(
        &self,
        limits: &Limits<'_>,
        secrets: &Secrets,
        line: &dyn Fn(u64) -> Vec<u8>,
    ) -> Option<Result<(Json, String), Fault>> {
        let mut state = self.lock();
        while state.calls.len() >= state.width && state.over.is_none() {
            if let Some(kind) = limits.ends() {
                // Who waits as well is woken in its place.
                self.free.notify_one();
                let why = format!("'{}' did not end its other calls", self.program);
                return Some(Err(limits.failure(kind, &why).into()));
            }
            state = wait(&self.free, state, TICK.min(limits.left()));
        }
        if state.calls.is_empty() && state.over.is_none() {
            state = self.hear(state, Duration::ZERO);
        }
        if let Some(over) = &state.over {
            tracing::debug!("{}; another is started", state.secrets.scrub(&over.message));
            return None;
        }
        if state.speaker.is_none() {
            return Some(Err(Failure::new(FailureKind::Cancelled, "the session has ended").into()));
        }
        state.secrets.add(secrets);
        Some(self.ask(state, limits, line))
    }

    /// Returns whether it can be asked. One that was given too many secrets, or takes too much memory, is worn.
    pub(super) fn fitness(&self, most_memory: u64) -> Fitness {
        let mut state = self.lock();
        if let Some(over) = &state.over {
            return Fitness::Over(state.secrets.scrub(&over.message).into_owned());
        }
        let is_due = state.last_measured.elapsed() >= MEASURED_EVERY;
        let measured = state.hearer.as_ref().filter(|_| is_due).map(Hearer::resident_memory);
        if measured.is_some() {
            state.last_measured = Instant::now();
        }
        let is_worn = state.secrets.len() > MOST_SECRETS || measured.is_some_and(|memory| memory > most_memory);
        if is_worn { Fitness::Worn } else { Fitness::Fit }
    }

    /// When it was last asked.
    pub(super) fn last_used(&self) -> Instant {
        self.lock().last_used
    }

    /// Closes its standard input. Whoever drops it waits for its end.
    pub(super) fn ask_to_end(&self) {
        let mut state = self.lock();
        state.speaker = None;
        state.hearer.iter_mut().for_each(Hearer::ask_to_end);
        state.asked_to_end.get_or_insert_with(Instant::now);
    }

    fn ask<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        limits: &Limits<'_>,
        line: &dyn Fn(u64) -> Vec<u8>,
    ) -> Result<(Json, String), Fault> {
        let id = state.next;
        state.next += 1;
        if state.calls.is_empty() {
            // It is about calls that have ended.
            state.tail.clear();
        }
        state.calls.insert(id, Slot::default());
        state.say(&line(id));
        let result = self.follow(state, id, limits);
        let mut state = self.lock();
        state.calls.remove(&id);
        state.last_used = Instant::now();
        let said = state.secrets.scrub(state.tail.trim()).into_owned();
        let result = result.map(|answer| (answer, said)).map_err(|fault| fault.map(|failure| state.scrubbed(failure)));
        let is_followed = !state.calls.is_empty();
        drop(state);
        self.free.notify_one();
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
                        self.ended_early(&state, limits, kind).into()
                    }
                    _ => Fault::Answered(failure),
                });
            }
            if let Some(over) = &state.over {
                // The first answer is that to the greeting.
                let had_answered = state.has_left && state.answered > 1 && ending.is_none();
                return Err(Fault::Ended { failure: over.clone(), had_answered });
            }
            match &ending {
                None => {
                    if let Some(kind) = limits.ends() {
                        state.say(&protocol::cancel(id));
                        ending = Some((kind, Instant::now()));
                    }
                }
                Some((kind, since)) if since.elapsed() >= limits.grace => {
                    let others = format!("'{}' was ended, since it did not end another call in time", self.program);
                    let state = self.end(state, Failure::new(FailureKind::Protocol, others));
                    return Err(self.ended_early(&state, limits, kind).into());
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

    fn ended_early(&self, state: &State, limits: &Limits<'_>, kind: &FailureKind) -> Failure {
        let failure = limits.failure(kind.clone(), &format!("'{}' did not answer", self.program));
        match kind {
            FailureKind::Deadline => Failure { message: with_words(failure.message, state.tail.trim()), ..failure },
            _ => failure,
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
            cx.say(*level, text);
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
        let errors = state.hearer.as_mut().map(Hearer::last_errors).unwrap_or_default();
        state.take_errors(&errors, true);
        let message = with_words(why.message, state.tail.trim());
        state.over.get_or_insert(Failure { message, ..Failure::new(why.kind, "") });
        let halves = (state.speaker.take(), state.hearer.take());
        drop(state);
        self.changed.notify_all();
        self.free.notify_all();
        drop(halves);
        self.lock()
    }

    fn failed(&self, error: &ConversationError) -> Failure {
        match error {
            ConversationError::Ended(exit) => self.ended(*exit),
            ConversationError::TooMuch => {
                let Self { program, longest, .. } = self;
                let message = format!("'{program}' sent a line of more than {longest} bytes, and was ended");
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
        Failure::new(kind, format!("'{program}' ended without an answer{how}"))
    }

    fn said_wrong(&self, why: &str) -> Failure {
        let message = format!("'{}' violated the protocol and was ended: {why}", self.program);
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
        let (hearer, asked_to_end) = (state.hearer.take(), state.asked_to_end);
        drop(state);
        let Some(hearer) = hearer else { return };
        let left = hearer.end(GRACE.saturating_sub(asked_to_end.map_or(Duration::ZERO, |since| since.elapsed())));
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
    fn take_in(&mut self, heard: &HeardLines) -> Option<String> {
        self.take_errors(&heard.errors, false);
        heard.lines.iter().find_map(|line| self.take_line(line).err())
    }

    /// Takes in what was on standard error; at its end also a line that has none.
    fn take_errors(&mut self, bytes: &[u8], is_end: bool) {
        let mut lines = Vec::new();
        self.errors.hear(bytes, &mut |line| lines.push(read_line(line)));
        if is_end {
            self.errors.end(&mut |line| lines.push(read_line(line)));
        }
        for message in lines {
            if message.plain || message.level == TraceLevel::Error {
                keep(&mut self.tail, &message.text);
            }
            // It does not say which call it is about.
            if let Some((_, call)) = self.calls.iter_mut().next() {
                call.log(message.level, message.text);
            }
        }
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
