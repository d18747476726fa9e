//! JSON-RPC 2.0 over standard input and output, a line each: the loop that `serve` and `mcp` have in common.
//!
//! Guarantees
//! - Requests are carried out side by side and answered when they are done, each once.
//! - What is under way at once is limited in number and in bytes; what exceeds a limit is answered with an error and lost by
//!   nobody.
//! - A request that panics, and one that hangs in a call of the system, fails alone.
//! - Where nobody reads answers any more, or this process is to end, what is under way is cancelled.

mod message;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{self, BufRead, BufReader, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use serde_json::Value as Json;
use stead_core::text::json_values;
use stead_engine::{Host, RunWatch};
use stead_system::Cancel;
use stead_system::interrupt::Notice;

use crate::input;
use crate::interrupt;
use crate::terminal::print_now;
use message::answer;
pub(crate) use message::{Problem, Request, log, object};

/// How many requests may be under way at once.
const MOST_UNDER_WAY: usize = 256;

/// How many bytes of requests may be under way at once, but for one that has more by itself. A request takes six times as much
/// memory while it is carried out.
const MOST_BYTES: usize = 24 << 20;

/// The longest request, in bytes: as long as a document.
const LONGEST_REQUEST: u64 = 16 << 20;

/// How many values a request may hold, and how many bytes of it each counts for besides its own.
const MOST_VALUES: usize = 500_000;
const VALUE_BYTES: usize = 24;

/// Larger than the buffer that the standard library has for standard input, which then reads past its own: requests that
/// waited there would not be seen by who waits for input.
const INPUT_BUFFER: usize = 64 << 10;

/// How often requests are checked for one that hangs.
const WATCH_EVERY: Duration = Duration::from_secs(5);

/// The requests of a protocol, and what they come to.
pub(crate) trait Protocol: Send + Sync + 'static {
    /// Decides how a request is answered, in the order in which requests come.
    fn turn(&self, request: &mut Request) -> Turn;

    /// Carries out a request beside others, on a thread of its own or, where that takes microseconds, on this one.
    ///
    /// Once `cancel` is set nobody waits for the result, and it should end in order and soon.
    fn carry_out(&self, request: Work<'_>) -> Result<Json, Problem>;

    /// The request that a notification cancels, if it is one that does.
    fn cancelled(&self, notification: &Request) -> Option<Json>;

    /// The error of a request that hangs.
    fn hung(&self, subject: &str) -> Problem;

    /// Ends the conversation once nothing is under way: what is said to the last request.
    fn finish(&self) -> Result<Json, Problem>;

    /// The id in the answer to a line without one.
    const WITHOUT_ID: Option<Json>;

    /// Whether a request that was cancelled has an answer.
    const ANSWERS_CANCELLED: bool;

    /// How long what was cancelled at the end may take to end in order; `None` for as long as it needs.
    const GRACE: Option<Duration>;
}

/// How a request is answered.
pub(crate) enum Turn {
    /// Before anything else is read.
    Now(Result<Json, Problem>),
    /// When it is done, beside others. The text says what it is about, in messages.
    Beside(String),
    /// When everything under way has ended, by [`Protocol::finish`]. Nothing more is read.
    Last,
}

/// A request that is carried out.
pub(crate) struct Work<'a> {
    pub(crate) id: &'a Json,
    pub(crate) request: &'a Request,
    pub(crate) cancel: Cancel,
    pub(crate) watch: &'a Arc<RunWatch>,
}

/// A conversation with the program at standard input and output.
pub(crate) struct Server<P> {
    protocol: P,
    host: Host,
    state: Mutex<State>,
    ended: Condvar,
}

/// A request that has no answer yet.
struct UnderWay {
    id: Json,
    subject: String,
    bytes: usize,
    cancel: Cancel,
    /// True once its caller cancelled it.
    is_cancelled: bool,
    watch: Arc<RunWatch>,
}

#[derive(Default)]
struct State {
    /// True where nobody reads answers any more.
    unread: bool,
    /// By the ids that are in use.
    under_way: HashMap<String, UnderWay>,
    /// How many requests are under way, until their answers are written.
    requests: usize,
    /// The bytes of these requests.
    bytes: usize,
}

impl State {
    fn has_room(&self, bytes: usize) -> bool {
        self.requests == 0 || self.requests < MOST_UNDER_WAY && self.bytes + bytes <= MOST_BYTES
    }

    fn cancel_all(&self) {
        self.under_way.values().for_each(|one| one.cancel.cancel());
    }

    fn release(&mut self, bytes: usize) {
        self.requests -= 1;
        self.bytes -= bytes;
    }
}

impl<P: Protocol> Server<P> {
    pub(crate) fn new(host: Host, protocol: P) -> Arc<Self> {
        Arc::new(Self { protocol, host, state: Mutex::default(), ended: Condvar::new() })
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
                self.wait(None);
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
        let notice = interrupt::notice(stop).map_err(failed)?;
        self.end_when(notice.try_clone().map_err(failed)?).map_err(failed)?;
        let done = requests(notice);
        // Nobody reads the answers of what is still under way.
        self.state().cancel_all();
        self.wait(P::GRACE);
        done
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cancels what is under way once this process is to end.
    fn end_when(self: &Arc<Self>, notice: Notice) -> io::Result<()> {
        let server = Arc::downgrade(self);
        let work = move || {
            notice.wait();
            if let Some(server) = server.upgrade() {
                server.state().cancel_all();
            }
        };
        std::thread::Builder::new().name("stop".to_owned()).spawn(work).map(drop)
    }

    /// Carries out each line, until they end or one of them says so.
    fn read(self: &Arc<Self>, mut lines: impl BufRead) -> Result<(), String> {
        loop {
            let mut line = Vec::new();
            let read = lines.by_ref().take(LONGEST_REQUEST).read_until(b'\n', &mut line);
            match read.map_err(|error| format!("cannot read requests: {error}"))? {
                0 => return Ok(()),
                // What follows is the rest of this request, and means nothing by itself.
                length if length as u64 == LONGEST_REQUEST => return Err("a request is too long".to_owned()),
                _ if line.trim_ascii().is_empty() => {}
                _ => {
                    if !self.take(&String::from_utf8_lossy(&line)) {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Begins with one request. False at the last one, and where nobody reads answers.
    fn take(self: &Arc<Self>, line: &str) -> bool {
        let values = json_values(line.as_bytes());
        if values > MOST_VALUES {
            let problem = Problem::new(Problem::LIMIT, format!("the request has more than {MOST_VALUES} values"));
            return unreadable::<P>(Request::id_of(line), problem);
        }
        let mut request = match Request::read(line) {
            Ok(request) => request,
            Err(wrong) => {
                let (id, problem) = *wrong;
                return unreadable::<P>(id, problem);
            }
        };
        let Some(id) = request.id.clone() else {
            self.notified(&request);
            return true;
        };
        match self.protocol.turn(&mut request) {
            Turn::Now(result) => print_now(&answer(Some(&id), result)),
            Turn::Beside(subject) => match self.begin(&id, request, subject, line.len() + VALUE_BYTES * values) {
                Ok(()) => !self.state().unread,
                Err(problem) => print_now(&answer(Some(&id), Err(problem))),
            },
            Turn::Last => {
                self.wait(None);
                print_now(&answer(Some(&id), self.protocol.finish()));
                false
            }
        }
    }

    fn notified(&self, notification: &Request) {
        let Some(id) = self.protocol.cancelled(notification) else { return };
        if let Some(one) = self.state().under_way.get_mut(&id.to_string()) {
            one.is_cancelled = true;
            one.cancel.cancel();
        }
    }

    fn begin(self: &Arc<Self>, id: &Json, request: Request, subject: String, bytes: usize) -> Result<(), Problem> {
        let (cancel, watch) = self.admit(id, subject, bytes)?;
        let (server, id, unstarted) = (Arc::clone(self), id.clone(), Arc::clone(&watch));
        let key = id.to_string();
        let work = move || {
            let work = Work { id: &id, request: &request, cancel, watch: &watch };
            let result = guarded(|| server.protocol.carry_out(work));
            // Where it hung it was answered for.
            if let Some(done) = server.take_out(&id.to_string(), &watch) {
                server.tell(&done, result);
            }
        };
        self.host.submit(work).map_err(|error| {
            if let Some(one) = self.take_out(&key, &unstarted) {
                self.state().release(one.bytes);
            }
            Problem::new(Problem::LIMIT, format!("cannot start a thread: {error}")).with("retryable", true)
        })
    }

    /// Notes a request as under way, if there is room for it.
    fn admit(&self, id: &Json, subject: String, bytes: usize) -> Result<(Cancel, Arc<RunWatch>), Problem> {
        let mut state = self.state();
        if !state.has_room(bytes) {
            let message =
                format!("too many requests in progress (limit {MOST_UNDER_WAY}, and {} MiB)", MOST_BYTES >> 20);
            return Err(Problem::new(Problem::LIMIT, message).with("retryable", true));
        }
        let Entry::Vacant(free) = state.under_way.entry(id.to_string()) else {
            return Err(Problem::new(Problem::REQUEST, format!("request id {id} is already in use")));
        };
        let (cancel, watch) = (Cancel::default(), Arc::<RunWatch>::default());
        free.insert(UnderWay {
            id: id.clone(),
            subject,
            bytes,
            cancel: cancel.clone(),
            is_cancelled: false,
            watch: Arc::clone(&watch),
        });
        state.requests += 1;
        state.bytes += bytes;
        Ok((cancel, watch))
    }

    /// Takes a request out of those that have no answer: whoever does answers it. `None` where it has one.
    fn take_out(&self, key: &str, watch: &Arc<RunWatch>) -> Option<UnderWay> {
        let mut state = self.state();
        // Its id may be that of another request by now.
        let is_same = state.under_way.get(key).is_some_and(|one| Arc::ptr_eq(&one.watch, watch));
        if is_same { state.under_way.remove(key) } else { None }
    }

    /// Writes an answer. Whoever reads it can use the id again, and the room only once it is written.
    fn tell(&self, request: &UnderWay, result: Result<Json, Problem>) {
        let is_awaited = P::ANSWERS_CANCELLED || !request.is_cancelled;
        // It can take as long as its reader likes, and other requests go on meanwhile.
        let is_read = !is_awaited || print_now(&answer(Some(&request.id), result));
        let mut state = self.state();
        state.release(request.bytes);
        if !is_read {
            state.unread = true;
            state.cancel_all();
        }
        drop(state);
        self.ended.notify_all();
    }

    /// Answers the requests that hang: each calls the system on its own thread.
    fn answer_for(&self, hangs: fn(&RunWatch) -> bool) {
        let hanging: Vec<UnderWay> =
            self.state().under_way.extract_if(|_, one| hangs(&one.watch)).map(|(_, one)| one).collect();
        for one in hanging {
            // Should it ever return, it does nothing more.
            one.cancel.cancel();
            one.watch.release();
            self.tell(&one, Err(self.protocol.hung(&one.subject)));
        }
    }

    /// Waits until nothing is under way, at most so long.
    fn wait(&self, longest: Option<Duration>) {
        let state = self.state();
        let is_busy = |state: &mut State| state.requests > 0;
        if let Some(longest) = longest {
            drop(self.ended.wait_timeout_while(state, longest, is_busy).unwrap_or_else(PoisonError::into_inner));
        } else {
            drop(self.ended.wait_while(state, is_busy).unwrap_or_else(PoisonError::into_inner));
        }
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

/// Answers a line that is not a request. False where nobody reads answers.
fn unreadable<P: Protocol>(id: Option<Json>, problem: Problem) -> bool {
    print_now(&answer(id.or(P::WITHOUT_ID).as_ref(), Err(problem)))
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
fn guarded(call: impl FnOnce() -> Result<Json, Problem>) -> Result<Json, Problem> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| Err(Problem::new(Problem::INTERNAL, "internal error")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A protocol whose requests are begun by tests alone.
    struct Nothing;

    impl Protocol for Nothing {
        fn turn(&self, _: &mut Request) -> Turn {
            Turn::Last
        }

        fn carry_out(&self, _: Work<'_>) -> Result<Json, Problem> {
            Ok(Json::Null)
        }

        fn cancelled(&self, _: &Request) -> Option<Json> {
            None
        }

        fn hung(&self, subject: &str) -> Problem {
            Problem::new(Problem::DEADLINE, subject)
        }

        fn finish(&self) -> Result<Json, Problem> {
            Ok(Json::Null)
        }

        const WITHOUT_ID: Option<Json> = None;
        const ANSWERS_CANCELLED: bool = false;
        const GRACE: Option<Duration> = None;
    }

    #[test]
    fn a_panic_fails_its_request_alone() {
        let failed = guarded(|| panic!("a defect of an operation")).map_err(|problem| problem.to_json());
        assert_eq!(failed, Err(serde_json::json!({ "code": -32603, "message": "internal error" })));
        assert_eq!(guarded(|| Ok(Json::from(1))).map_err(|problem| problem.to_json()), Ok(1.into()));
    }

    #[test]
    fn a_request_that_hangs_is_answered_for_once() {
        let server = Server::new(Host::new(stead_engine::HostOptions::default()), Nothing);
        let admit = || server.admit(&1.into(), String::new(), 10).unwrap_or_else(|problem| panic!("{problem:?}"));
        let (cancel, hung) = admit();
        server.answer_for(RunWatch::hangs);
        assert_eq!(server.state().requests, 1, "none hangs");
        server.answer_for(|_| true);
        assert!(cancel.is_cancelled());
        assert!(server.state().under_way.is_empty());
        assert_eq!(server.state().bytes, 0);
        // Another request may have its id now, and what hung returns.
        let (_, other) = admit();
        assert!(server.take_out("1", &hung).is_none());
        assert!(server.take_out("1", &other).is_some());
        assert!(server.take_out("1", &other).is_none());
    }

    fn state(requests: usize, bytes: usize) -> State {
        State { requests, bytes: requests * bytes, ..State::default() }
    }

    #[test]
    fn requests_and_their_bytes_are_limited_but_never_a_single_one() {
        assert!(state(0, 0).has_room(MOST_BYTES + 1));
        assert!(state(MOST_UNDER_WAY - 1, 10).has_room(10));
        assert!(!state(MOST_UNDER_WAY, 10).has_room(10));
        assert!(state(2, MOST_BYTES / 4).has_room(MOST_BYTES / 2));
        assert!(!state(2, MOST_BYTES / 4).has_room(MOST_BYTES / 2 + 1));
    }
}
