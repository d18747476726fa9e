//! JSON-RPC 2.0 over standard input and output, a line each: the loop that `serve` and `mcp` have in common.
//!
//! Guarantees
//! - Requests are carried out side by side and answered when they are done, each once.
//! - What is under way at once is limited in number and in bytes, those of answers included; what exceeds a limit is answered with
//!   an error and lost by nobody. What is carried out at once is limited by the answers that a subject had before.
//! - A request that panics, and one that hangs in a call of the system, fails alone.
//! - Where nobody reads answers any more, or this process is to end, what is under way is cancelled. A reader that has stopped
//!   reading does not keep this process.

mod message;

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
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
use crate::terminal::{abandon, print_now};
use message::answer;
pub(crate) use message::{Problem, Request, log, object};

/// How many requests may be under way at once.
const MOST_UNDER_WAY: usize = 256;

/// How many bytes of requests may be under way at once, but for one that has more by itself. A request takes six times as much
/// memory while it is carried out. As many bytes of answers may wait for their reader before nothing more is begun.
const MOST_BYTES: usize = 24 << 20;

/// How many requests about one subject are carried out at once before one of them has been answered.
const FIRST_AT_ONCE: usize = 2;

/// How many bytes the answers of requests that are carried out at once may come to, as far as earlier ones tell. An answer takes six
/// times as much memory before it is written.
const MOST_EXPECTED: usize = 8 << 20;

/// How long answers may take to be written when the conversation has ended. Whoever does not read by then is gone.
const DRAIN: Duration = Duration::from_secs(1);

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

    /// True if a request that was cancelled has an answer.
    const ANSWERS_CANCELLED: bool;

    /// How long what was cancelled at the end may take to end in order; `None` for as long as it needs.
    const GRACE: Option<Duration>;
}

/// How a request is answered.
pub(crate) enum Turn {
    /// Before anything else is read.
    Now(Result<Json, Problem>),
    /// When it is done, beside others.
    Beside(About),
    /// When everything under way has ended, by [`Protocol::finish`]. Nothing more is read.
    Last,
}

/// The subject of a request, and how it is carried out.
#[derive(Clone, Default)]
pub(crate) struct About {
    /// The name for messages; requests about the same have answers of about the same size.
    pub(crate) subject: String,
    /// True if nothing else may be carried out meanwhile.
    pub(crate) alone: bool,
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
    /// The state has changed.
    changed: Condvar,
}

/// A request that has no answer yet.
struct UnderWay {
    id: Json,
    about: About,
    bytes: usize,
    cancel: Cancel,
    /// True once its caller cancelled it.
    is_cancelled: bool,
    watch: Arc<RunWatch>,
}

/// A request that waits to be carried out.
struct Waiting {
    key: String,
    request: Request,
}

/// The requests about a subject.
#[derive(Default)]
struct Known {
    /// How many requests about it are carried out.
    running: usize,
    /// The bytes of its longest answer; `None` before the first one.
    longest: Option<usize>,
}

impl Known {
    fn has_room(&self) -> bool {
        self.running < self.longest.map_or(FIRST_AT_ONCE, |longest| (MOST_EXPECTED / longest.max(1)).max(1))
    }
}

#[derive(Default)]
struct State {
    /// True where nobody reads answers any more.
    unread: bool,
    /// True once this process is to end.
    ends: bool,
    /// By the ids that are in use.
    under_way: HashMap<String, UnderWay>,
    /// How many requests are under way, until their answers are written.
    requests: usize,
    /// The bytes of these requests.
    bytes: usize,
    /// Requests that are not begun, the first one first.
    waiting: VecDeque<Waiting>,
    /// By subject.
    known: HashMap<String, Known>,
    /// How many requests are carried out, and whether one of them does not suffer others.
    running: usize,
    is_alone: bool,
    /// Lines to be written, with the bytes of the request that they answer.
    answers: VecDeque<(String, Option<usize>)>,
    /// The bytes of these lines, and of the one that is being written.
    unwritten: usize,
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

    fn say(&mut self, line: String, request: Option<usize>) {
        self.unwritten += line.len();
        self.answers.push_back((line, request));
    }

    /// Takes out the next request that may be begun. One that must be alone is not overtaken.
    fn next(&mut self) -> Option<(Waiting, About)> {
        if self.is_alone || self.unwritten >= MOST_BYTES {
            return None;
        }
        let mut at = 0;
        while let Some(waiting) = self.waiting.get(at) {
            // One that hung has been answered for.
            let Some(one) = self.under_way.get(&waiting.key) else {
                self.waiting.remove(at);
                continue;
            };
            let about = one.about.clone();
            let may_begin = if about.alone {
                self.running == 0
            } else {
                self.known.get(&about.subject).is_none_or(Known::has_room)
            };
            if may_begin {
                self.running += 1;
                self.is_alone = about.alone;
                self.known.entry(about.subject.clone()).or_default().running += 1;
                return self.waiting.remove(at).map(|waiting| (waiting, about));
            }
            if about.alone {
                return None;
            }
            at += 1;
        }
        None
    }

    fn ended(&mut self, about: &About) {
        self.running -= 1;
        self.is_alone = false;
        if let Some(known) = self.known.get_mut(&about.subject) {
            known.running -= 1;
        }
    }
}

impl<P: Protocol> Server<P> {
    pub(crate) fn new(host: Host, protocol: P) -> Arc<Self> {
        Arc::new(Self { protocol, host, state: Mutex::default(), changed: Condvar::new() })
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
                self.wait(None, |state| state.requests > 0 && !state.ends);
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
        // Nobody reads the answers of what is still under way.
        self.end();
        self.wait(P::GRACE, |state| state.running > 0);
        if !self.wait(Some(DRAIN), |state| state.unwritten > 0 && !state.unread) {
            abandon();
        }
        done
    }

    /// Cancels what is under way, and begins nothing more.
    fn end(&self) {
        let mut state = self.state();
        state.ends = true;
        state.waiting.clear();
        state.cancel_all();
        drop(state);
        self.changed.notify_all();
    }

    /// Writes answers, one after the other, as long as this process lives.
    fn write(self: &Arc<Self>) {
        loop {
            let mut state = self.state();
            while state.answers.is_empty() {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            let Some((line, request)) = state.answers.pop_front() else { continue };
            drop(state);
            // It can take as long as its reader likes, and requests go on meanwhile.
            let is_read = print_now(&line);
            let mut state = self.state();
            state.unwritten -= line.len();
            if let Some(bytes) = request {
                state.release(bytes);
            }
            if !is_read {
                state.unread = true;
                state.cancel_all();
            }
            drop(state);
            self.changed.notify_all();
            self.begin();
        }
    }

    /// Has a line written once those before it are, and waits while too much is to be written. False where nobody reads it.
    fn say(&self, line: String) -> bool {
        self.state().say(line, None);
        self.changed.notify_all();
        self.wait(None, |state| state.unwritten >= MOST_BYTES && !state.unread && !state.ends);
        !self.state().unread
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
                server.end();
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
            return self.say(unreadable::<P>(Request::id_of(line), problem));
        }
        let mut request = match Request::read(line) {
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
        match self.protocol.turn(&mut request) {
            Turn::Now(result) => self.say(answer(Some(&id), result)),
            Turn::Beside(about) => match self.admit(&id, about, request, line.len() + VALUE_BYTES * values) {
                Ok(()) => {
                    self.begin();
                    !self.state().unread
                }
                Err(problem) => self.say(answer(Some(&id), Err(problem))),
            },
            Turn::Last => {
                self.wait(None, |state| state.requests > 0 && !state.ends);
                self.say(answer(Some(&id), self.protocol.finish()));
                self.wait(None, |state| state.unwritten > 0 && !state.unread && !state.ends);
                false
            }
        }
    }

    fn notified(&self, notification: &Request) {
        let Some(id) = self.protocol.cancelled(notification) else { return };
        let key = id.to_string();
        let mut state = self.state();
        let Some(one) = state.under_way.get_mut(&key) else { return };
        one.is_cancelled = true;
        one.cancel.cancel();
        let is_waiting = state.waiting.iter().any(|waiting| waiting.key == key);
        state.waiting.retain(|waiting| waiting.key != key);
        let never_began = if is_waiting { state.under_way.remove(&key) } else { None };
        drop(state);
        if let Some(one) = never_began {
            let problem = Problem::new(Problem::CANCELLED, "the request was cancelled");
            self.tell(&one, Err(problem.with("type", one.about.subject.as_str())));
        }
    }

    /// Notes a request as under way, if there is room for it.
    fn admit(&self, id: &Json, about: About, request: Request, bytes: usize) -> Result<(), Problem> {
        let mut state = self.state();
        if !state.has_room(bytes) {
            let message =
                format!("too many requests in progress (limit {MOST_UNDER_WAY}, and {} MiB)", MOST_BYTES >> 20);
            return Err(Problem::new(Problem::LIMIT, message).with("retryable", true));
        }
        let key = id.to_string();
        let Entry::Vacant(free) = state.under_way.entry(key.clone()) else {
            return Err(Problem::new(Problem::REQUEST, format!("request id {id} is already in use")));
        };
        let (cancel, watch) = (Cancel::default(), Arc::<RunWatch>::default());
        free.insert(UnderWay { id: id.clone(), about, bytes, cancel, is_cancelled: false, watch });
        state.requests += 1;
        state.bytes += bytes;
        state.waiting.push_back(Waiting { key, request });
        Ok(())
    }

    /// Begins with what may be begun, each on a thread of its own.
    fn begin(self: &Arc<Self>) {
        loop {
            let mut state = self.state();
            let Some((Waiting { key, request }, about)) = state.next() else { return };
            let Some(one) = state.under_way.get(&key) else { return };
            let (id, cancel, watch) = (one.id.clone(), one.cancel.clone(), Arc::clone(&one.watch));
            drop(state);
            let (server, key, unstarted) = (Arc::clone(self), key, Arc::clone(&watch));
            let (of, same) = (key.clone(), about.clone());
            let work = move || {
                let work = Work { id: &id, request: &request, cancel, watch: &watch };
                let result = guarded(|| server.protocol.carry_out(work));
                server.state().ended(&about);
                // Where it hung it was answered for.
                if let Some(done) = server.take_out(&key, &watch) {
                    server.tell(&done, result);
                }
                server.begin();
            };
            if let Err(error) = self.host.submit(work) {
                self.state().ended(&same);
                if let Some(one) = self.take_out(&of, &unstarted) {
                    let problem = Problem::new(Problem::LIMIT, format!("cannot start a thread: {error}"));
                    self.tell(&one, Err(problem.with("retryable", true)));
                }
            }
        }
    }

    /// Takes a request out of those that have no answer: whoever does answers it. `None` where it has one.
    fn take_out(&self, key: &str, watch: &Arc<RunWatch>) -> Option<UnderWay> {
        let mut state = self.state();
        // Its id may be that of another request by now.
        let is_same = state.under_way.get(key).is_some_and(|one| Arc::ptr_eq(&one.watch, watch));
        if is_same { state.under_way.remove(key) } else { None }
    }

    /// Has an answer written. Whoever reads it can use the id again, and the room only once it is written.
    fn tell(&self, request: &UnderWay, result: Result<Json, Problem>) {
        let is_awaited = P::ANSWERS_CANCELLED || !request.is_cancelled;
        let line = if is_awaited { answer(Some(&request.id), result) } else { String::new() };
        let mut state = self.state();
        let known = state.known.entry(request.about.subject.clone()).or_default();
        known.longest = known.longest.max(Some(line.len()));
        if is_awaited {
            state.say(line, Some(request.bytes));
        } else {
            state.release(request.bytes);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Answers the requests that hang: each calls the system on its own thread.
    fn answer_for(&self, hangs: fn(&RunWatch) -> bool) {
        let hanging: Vec<UnderWay> =
            self.state().under_way.extract_if(|_, one| hangs(&one.watch)).map(|(_, one)| one).collect();
        for one in hanging {
            // Should it ever return, it does nothing more.
            one.cancel.cancel();
            one.watch.release();
            self.tell(&one, Err(self.protocol.hung(&one.about.subject)));
        }
    }

    /// Waits as long as something holds, at most so long. False if it still does.
    fn wait(&self, longest: Option<Duration>, holds: impl Fn(&State) -> bool) -> bool {
        // As long as anybody can mean.
        let longest = longest.unwrap_or(Duration::from_hours(24 * 365));
        let waited = self.changed.wait_timeout_while(self.state(), longest, |state| holds(state));
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
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

/// The answer to a line that is not a request.
fn unreadable<P: Protocol>(id: Option<Json>, problem: Problem) -> String {
    answer(id.or(P::WITHOUT_ID).as_ref(), Err(problem))
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

    type Tested = Server<Nothing>;

    fn admit(server: &Tested, id: u64, subject: &str, alone: bool) {
        let line = format!(r#"{{"id": {id}, "method": "get"}}"#);
        let request = Request::read(&line).unwrap_or_else(|_| panic!("{line}"));
        let about = About { subject: subject.to_owned(), alone };
        server.admit(&id.into(), about, request, 10).unwrap_or_else(|problem| panic!("{problem:?}"));
    }

    fn server() -> Arc<Tested> {
        Server::new(Host::new(stead_engine::HostOptions::default()), Nothing)
    }

    #[test]
    fn a_request_that_hangs_is_answered_for_once() {
        let server = server();
        let watch_of = |id: &str| Arc::clone(&server.state().under_way[id].watch);
        admit(&server, 1, "", false);
        let cancel = server.state().under_way["1"].cancel.clone();
        let hung = watch_of("1");
        server.answer_for(RunWatch::hangs);
        assert_eq!(server.state().answers.len(), 0, "none hangs");
        server.answer_for(|_| true);
        assert!(cancel.is_cancelled());
        assert!(server.state().under_way.is_empty());
        assert_eq!(server.state().answers.len(), 1);
        // Another request may have its id now, and what hung returns.
        admit(&server, 1, "", false);
        let other = watch_of("1");
        assert!(server.take_out("1", &hung).is_none());
        assert!(server.take_out("1", &other).is_some());
        assert!(server.take_out("1", &other).is_none());
    }

    #[test]
    fn requests_begin_as_far_as_earlier_answers_allow_and_one_by_one_where_asked() {
        let server = server();
        let begun = || std::iter::from_fn(|| server.state().next()).map(|(waiting, _)| waiting.key).collect::<Vec<_>>();
        (0..6).for_each(|id| admit(&server, id, "large", false));
        admit(&server, 6, "", true);
        admit(&server, 7, "small", false);
        assert_eq!(begun(), ["0", "1"], "the one that is alone is not overtaken");
        let large = About { subject: "large".to_owned(), alone: false };
        let has_answers_of = |bytes| {
            server.state().known.entry("large".to_owned()).or_default().longest = Some(bytes);
        };
        has_answers_of(MOST_EXPECTED / 3);
        server.state().ended(&large);
        assert_eq!(begun(), ["2", "3"]);
        has_answers_of(MOST_EXPECTED * 2);
        (0..2).for_each(|_| server.state().ended(&large));
        assert!(begun().is_empty());
        server.state().ended(&large);
        assert_eq!(begun(), ["4"], "one can always be carried out");
        server.state().ended(&large);
        assert_eq!(begun(), ["5"]);
        server.state().ended(&large);
        assert_eq!(begun(), ["6"]);
        server.state().ended(&About { subject: String::new(), alone: true });
        assert_eq!(begun(), ["7"]);
        // Answers that nobody reads hold back what follows.
        admit(&server, 8, "small", false);
        server.state().say("x".repeat(MOST_BYTES), None);
        assert!(begun().is_empty());
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
