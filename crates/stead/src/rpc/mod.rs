//! JSON-RPC 2.0 over standard input and output, a line each: the loop that `serve` and `mcp` have in common.
//!
//! Guarantees
//! - Requests are carried out side by side, and each is answered once: when it is done, or when it is known that it is not carried
//!   out.
//! - What is under way at once is limited in number and in bytes, those of answers included; what exceeds a limit is answered with
//!   an error. What is carried out at once is limited by the results that its kind had before.
//! - A request that panics, and one that hangs in a call of the system, fails alone.
//! - Where nobody reads answers any more, or this process is to end, what is under way is cancelled. A reader that has stopped
//!   reading does not keep this process; one that goes on reading gets everything, unless a signal asks for the end.

mod message;
mod schedule;

use std::io::{self, BufRead, BufReader, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::Value as Json;
use stead_core::text::json_values;
use stead_engine::{Host, RunWatch};
use stead_system::Cancel;
use stead_system::interrupt::Notice;

use crate::input;
use crate::interrupt;
use crate::terminal::{abandon, print_now};
use message::answer;
pub(crate) use message::{Problem, Request, log, object, progress};
pub(crate) use schedule::About;
use schedule::{Begun, Schedule, UnderWay};

/// How long a reader may take nothing of what is written when the conversation has ended: after that it is gone.
const DRAIN: Duration = Duration::from_secs(1);

/// The longest request, in bytes: as long as a document.
const LONGEST_REQUEST: usize = 16 << 20;

/// How many values a request may hold, and how many bytes of it each counts for besides its own.
const MOST_VALUES: usize = 500_000;
const VALUE_BYTES: usize = 24;

/// Larger than the buffer that the standard library has for standard input, which then reads past its own: requests that
/// waited there would not be seen by who waits for input.
const INPUT_BUFFER: usize = 64 << 10;

/// How often requests are checked for one that hangs, and for those that have waited long enough.
const WATCH_EVERY: Duration = Duration::from_secs(1);

/// The requests of a protocol, and what they come to.
pub(crate) trait Protocol: Send + Sync + 'static {
    /// A request that is carried out beside others, as it was read.
    type Call: Send + 'static;

    /// The result of such a request, as it is written.
    type Answer: Serialize;

    /// The id in the answer to a line without one.
    const WITHOUT_ID: Option<Json>;

    /// True if a request that was cancelled has an answer.
    const ANSWERS_CANCELLED: bool;

    /// How long what was cancelled at the end may take to end in order; `None` for as long as it needs.
    const GRACE: Option<Duration>;

    /// Decides how a request is answered, in the order in which requests come.
    fn dispatch(&self, request: Request) -> Dispatch<Self::Call>;

    /// Carries out a request beside others, on a thread of its own.
    ///
    /// Once `cancel` is set nobody waits for the result, and it should end in order and soon.
    fn carry_out(&self, work: Work<Self::Call>) -> Result<Self::Answer, Problem>;

    /// The request that a notification cancels, if it is one that does.
    fn cancelled(&self, notification: &Request) -> Option<Json>;

    /// The error of a request that hangs.
    fn hung(&self, subject: &str) -> Problem;

    /// Ends the conversation once nothing is under way: the answer to the last request.
    fn finish(&self) -> Result<Json, Problem>;
}

/// How a request is answered.
pub(crate) enum Dispatch<C> {
    /// Before anything else is read.
    Now(Result<Json, Problem>),
    /// When it is done, beside others.
    Beside(About, C),
    /// When everything under way has ended, by [`Protocol::finish`]. Nothing more is read.
    Last,
}

/// A request that is carried out.
pub(crate) struct Work<C> {
    pub(crate) id: Json,
    pub(crate) call: C,
    pub(crate) cancel: Cancel,
    pub(crate) watch: Arc<RunWatch>,
    /// Writes a line, which waits while too much is to be written.
    pub(crate) say: Arc<dyn Fn(String) + Send + Sync>,
}

/// A conversation with the program at standard input and output.
pub(crate) struct Server<P: Protocol> {
    protocol: P,
    host: Host,
    schedule: Mutex<Schedule<P::Call>>,
    /// The schedule has changed.
    changed: Condvar,
}

impl<P: Protocol> Server<P> {
    pub(crate) fn new(host: Host, protocol: P) -> Arc<Self> {
        Arc::new(Self { protocol, host, schedule: Mutex::default(), changed: Condvar::new() })
    }

    /// The protocol that is spoken.
    pub(crate) fn protocol(&self) -> &P {
        &self.protocol
    }

    /// Answers the requests on standard input until it ends, the last one came, or a signal asks for the end (`stop`).
    pub(crate) fn converse(self: &Arc<Self>, stop: &Cancel) -> Result<(), String> {
        self.until_ended(stop, |notice| self.read(BufReader::with_capacity(INPUT_BUFFER, Requests { notice })))
    }

    /// Carries out the requests of a file, each after the one before.
    pub(crate) fn replay(self: &Arc<Self>, path: &Path, stop: &Cancel) -> Result<(), String> {
        self.until_ended(stop, |_| {
            let text = input::read(path).map_err(|error| error.to_string())?;
            for line in text.text.lines().filter(|line| !line.trim().is_empty()) {
                if stop.is_cancelled() || !self.take(line) {
                    break;
                }
                self.wait(None, |schedule| schedule.is_busy() && !schedule.ends);
            }
            Ok(())
        })
    }

    fn until_ended(
        self: &Arc<Self>,
        stop: &Cancel,
        requests: impl FnOnce(Notice) -> Result<(), String>,
    ) -> Result<(), String> {
        let failed = |error: io::Error| format!("cannot serve: {error}");
        let watched = Arc::downgrade(self);
        self.host.submit(move || watch(&watched)).map_err(failed)?;
        let writing = Arc::clone(self);
        std::thread::Builder::new().name("answers".to_owned()).spawn(move || writing.write()).map_err(failed)?;
        let notice = interrupt::notice(stop).map_err(failed)?;
        self.end_when(notice.try_clone().map_err(failed)?).map_err(failed)?;
        let done = requests(notice);
        self.end();
        self.wait(P::GRACE, Schedule::is_running);
        if !self.drain(stop) {
            abandon();
        }
        done
    }

    fn schedule(&self) -> MutexGuard<'_, Schedule<P::Call>> {
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the schedule, and wakes who waits for that.
    fn change<T>(&self, change: impl FnOnce(&mut Schedule<P::Call>) -> T) -> T {
        let changed = change(&mut self.schedule());
        self.changed.notify_all();
        changed
    }

    /// Waits as long as something holds, at most so long. False if it still does.
    fn wait(&self, longest: Option<Duration>, holds: impl Fn(&Schedule<P::Call>) -> bool) -> bool {
        // As long as anybody can mean.
        let longest = longest.unwrap_or(Duration::from_hours(24 * 365));
        let waited = self.changed.wait_timeout_while(self.schedule(), longest, |schedule| holds(schedule));
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Waits until everything is written, as long as its reader goes on reading; once a signal asked for the end, for a moment.
    fn drain(&self, stop: &Cancel) -> bool {
        loop {
            let before = self.schedule().pieces;
            if self.wait(Some(DRAIN), Schedule::is_writing) {
                return true;
            }
            if stop.is_cancelled() || self.schedule().pieces == before {
                return false;
            }
        }
    }

    /// Cancels what is under way, and answers what was not begun: in one step, so that nobody sees an end without the answers.
    fn end(&self) {
        self.change(|schedule| {
            for one in schedule.end() {
                let line = line_of::<P>(&one, Err(cancelled(&one)));
                schedule.answered(&one, line, false);
            }
        });
    }

    /// Cancels what is under way once this process is to end.
    fn end_when(self: &Arc<Self>, notice: Notice) -> io::Result<()> {
        let server = Arc::downgrade(self);
        let work = move || {
            notice.wait();
            if let Some(server) = server.upgrade() {
                server.end();
            }
        };
        std::thread::Builder::new().name("stop".to_owned()).spawn(work).map(drop)
    }

    /// Writes lines, one after the other, until the conversation has ended and all of them are written.
    fn write(self: &Arc<Self>) {
        loop {
            let mut schedule = self.schedule();
            let line = loop {
                match schedule.next_line() {
                    Some(line) => break line,
                    None if schedule.ends && !schedule.has_requests() => return,
                    None => schedule = self.changed.wait(schedule).unwrap_or_else(PoisonError::into_inner),
                }
            };
            drop(schedule);
            // It can take as long as its reader likes, and requests go on meanwhile.
            let is_read = print_now(&line.text, || self.schedule().pieces += 1);
            self.change(|schedule| schedule.written(&line, is_read));
            self.begin();
        }
    }

    /// Has a line written once those before it are, and waits while too much is to be written. False where nobody reads it.
    fn say(&self, line: String) -> bool {
        self.change(|schedule| schedule.say(line));
        self.wait(None, Schedule::is_full);
        !self.schedule().unread
    }

    /// Carries out each line, until they end, one of them says so, or this process is to end.
    fn read(self: &Arc<Self>, mut lines: impl BufRead) -> Result<(), String> {
        loop {
            let line = match input::line(&mut lines, LONGEST_REQUEST) {
                Err(error) if error.kind() == io::ErrorKind::OutOfMemory => return Err(self.too_long()),
                read => read.map_err(|error| format!("cannot read requests: {error}"))?,
            };
            match line.len() {
                0 => return Ok(()),
                LONGEST_REQUEST => return Err(self.too_long()),
                _ if line.trim_ascii().is_empty() => {}
                _ => {
                    if self.schedule().ends || !self.take(&String::from_utf8_lossy(&line)) {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Refuses a request for its length. What follows is the rest of it, and means nothing by itself.
    fn too_long(&self) -> String {
        let why = "a request is too long".to_owned();
        self.say(unreadable::<P>(None, Problem::new(Problem::LIMIT, why.clone())));
        why
    }

    /// Begins with one request. False at the last one, and where nobody reads answers.
    fn take(self: &Arc<Self>, line: &str) -> bool {
        let values = json_values(line.as_bytes());
        if values > MOST_VALUES {
            let problem = Problem::new(Problem::LIMIT, format!("the request has more than {MOST_VALUES} values"));
            return self.say(unreadable::<P>(Request::id_of(line), problem));
        }
        let request = match Request::read(line) {
            Ok(request) => request,
            Err(wrong) => {
                let (id, problem) = *wrong;
                return self.say(unreadable::<P>(id, problem));
            }
        };
        let Some(id) = request.id.clone() else {
            self.notified(&request);
            return true;
        };
        let dispatched = guarded(|| Ok(self.protocol.dispatch(request)));
        match dispatched.unwrap_or_else(|problem| Dispatch::Now(Err(problem))) {
            Dispatch::Now(result) => self.say(answer(Some(&id), result)),
            Dispatch::Beside(about, call) => {
                let bytes = line.len() + VALUE_BYTES * values;
                match self.change(|schedule| schedule.admit(&id, about, call, bytes)) {
                    Ok(()) => self.begin(),
                    Err(problem) => return self.say(answer::<Json>(Some(&id), Err(problem))),
                }
                !self.schedule().unread
            }
            Dispatch::Last => {
                self.wait(None, |schedule| schedule.is_busy() && !schedule.ends);
                self.say(answer(Some(&id), guarded(|| self.protocol.finish())));
                false
            }
        }
    }

    fn notified(self: &Arc<Self>, notification: &Request) {
        let Some(id) = self.protocol.cancelled(notification) else { return };
        if let Some(never_began) = self.change(|schedule| schedule.cancel(&id.to_string())) {
            self.tell(&never_began, Err(cancelled(&never_began)));
            // Others may have waited for it to be alone.
            self.begin();
        }
    }

    /// Begins with what may be begun, each on a thread of its own.
    fn begin(self: &Arc<Self>) {
        while let Some(Begun { key, id, call, cancel, watch }) = self.change(|schedule| schedule.next(Instant::now())) {
            let (server, saying) = (Arc::clone(self), Arc::clone(self));
            let (of, unstarted) = (key.clone(), Arc::clone(&watch));
            let say = Arc::new(move |line| {
                saying.say(line);
            });
            let work = move || {
                let work = Work { id, call, cancel, watch: Arc::clone(&watch), say };
                let result = guarded(|| server.protocol.carry_out(work));
                server.end_of(&key, &watch, result);
            };
            if let Err(error) = self.host.submit(work) {
                let problem = Problem::new(Problem::LIMIT, format!("cannot start a thread: {error}"));
                self.end_of(&of, &unstarted, Err(problem.with("retryable", true)));
            }
        }
    }

    /// A request has come to its end. Where it hung it was answered for.
    fn end_of(self: &Arc<Self>, key: &str, watch: &Arc<RunWatch>, result: Result<P::Answer, Problem>) {
        let taken = self.schedule().take_out(key, watch);
        if let Some(request) = taken {
            self.tell(&request, result);
            self.begin();
        }
    }

    /// Has the answer to a request written that was taken out.
    fn tell(&self, request: &UnderWay, result: Result<P::Answer, Problem>) {
        let is_result = result.is_ok();
        let line = line_of::<P>(request, result);
        self.change(|schedule| schedule.answered(request, line, is_result));
    }

    /// Answers the requests that hang: each calls the system on its own thread.
    fn answer_for(self: &Arc<Self>, hangs: fn(&RunWatch) -> bool) {
        for one in self.change(|schedule| schedule.take_out_hanging(hangs)) {
            self.tell(&one, Err(self.protocol.hung(&one.about.subject)));
        }
        self.begin();
    }
}

/// Standard input, which ends when this process is to end.
struct Requests {
    notice: Notice,
}

impl Read for Requests {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut input = io::stdin();
        if self.notice.comes_before(&input) { Ok(0) } else { input.read(into) }
    }
}

/// The answer to a request; `None` where nobody waits for it.
fn line_of<P: Protocol>(request: &UnderWay, result: Result<P::Answer, Problem>) -> Option<String> {
    (P::ANSWERS_CANCELLED || !request.is_cancelled).then(|| answer(Some(&request.id), result))
}

/// The answer to a line that is not a request.
fn unreadable<P: Protocol>(id: Option<Json>, problem: Problem) -> String {
    answer::<Json>(id.or(P::WITHOUT_ID).as_ref(), Err(problem))
}

/// The error of a request that was cancelled before it was begun.
fn cancelled(request: &UnderWay) -> Problem {
    Problem::new(Problem::CANCELLED, "the request was cancelled").with("type", request.about.subject.as_str())
}

/// Answers requests that hang, as long as there is a server.
fn watch<P: Protocol>(server: &Weak<Server<P>>) {
    loop {
        std::thread::sleep(WATCH_EVERY);
        let Some(server) = server.upgrade() else { return };
        server.answer_for(RunWatch::hangs);
    }
}

/// The result of a call. One that panics fails alone; the hook has reported where it was.
fn guarded<T>(call: impl FnOnce() -> Result<T, Problem>) -> Result<T, Problem> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| Err(Problem::new(Problem::INTERNAL, "internal error")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_fails_its_request_alone() {
        let failed = guarded::<Json>(|| panic!("a defect of an operation")).map_err(|problem| problem.to_json());
        assert_eq!(failed, Err(serde_json::json!({ "code": -32603, "message": "internal error" })));
        assert_eq!(guarded(|| Ok(Json::from(1))).map_err(|problem| problem.to_json()), Ok(1.into()));
    }
}
