//! `serve`: calls of resources for another program, which asks many times and starts this one once.
//!
//! Requests are carried out side by side and answered when they are done, by runs of a single instance as everywhere.

mod calls;
mod protocol;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use serde_json::Value as Json;
use stead_core::call::Execution;
use stead_core::text::json_values;
use stead_engine::{RunWatch, Session, error_chain};
use stead_host::provider::Cancel;

use crate::args::Serve;
use crate::exit::Exit;
use crate::input;
use crate::interrupt;
use crate::output::{complain, print_now};
use crate::process_env::ProcessEnv;
use protocol::{CancelParams, Problem, Request, ResourceParams, answer};

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

/// Answers requests until the input ends.
pub(crate) fn serve(arguments: &Serve, env: &ProcessEnv) -> Exit {
    let stop = Cancel::default();
    let session = env.host.session(input::current_folder());
    let sets = if arguments.replay.is_none() || arguments.apply { Execution::Actual } else { Execution::WhatIf };
    let server = Arc::new(Server { session, sets, state: Mutex::default(), ended: Condvar::new() });
    let watching = Arc::downgrade(&server);
    let watched = server.session.host().submit(move || watch(&watching));
    let done = watched.and_then(|()| interrupt::notice(&stop)).map_err(|error| format!("cannot serve: {error}"));
    let done = done.and_then(|notice| {
        server.end_when(&notice)?;
        match &arguments.replay {
            Some(path) => server.replay(path, &stop),
            None => server.read(BufReader::with_capacity(INPUT_BUFFER, Requests { notice })),
        }
    });
    server.end();
    let flushed = server.session.flush().map_err(|error| error_chain(&error));
    match done.and(flushed) {
        Ok(()) => interrupt::exit(&stop, Exit::Success),
        Err(why) => {
            complain(&format!("error: {why}"));
            Exit::Unusable
        }
    }
}

/// Standard input, which ends when this process is to end.
struct Requests {
    notice: UnixStream,
}

impl Read for Requests {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut input = io::stdin();
        if interrupt::ends_before_input(&self.notice, Some(&input)) { Ok(0) } else { input.read(into) }
    }
}

struct Server {
    /// What requests have in common: the resources that there are.
    session: Session,
    /// The execution of sets that do not ask for what-if: those of a recorded session need not be meant for real
    /// again.
    sets: Execution,
    state: Mutex<State>,
    ended: Condvar,
}

/// A request that has no answer yet.
struct UnderWay {
    id: Json,
    type_name: String,
    bytes: usize,
    cancel: Cancel,
    watch: Arc<RunWatch>,
}

#[derive(Default)]
struct State {
    greeted: bool,
    /// True once the note was written that sets only report.
    noted: bool,
    /// Whether nobody reads answers any more.
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

impl Server {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cancels what is under way once this process is to end.
    fn end_when(self: &Arc<Self>, notice: &UnixStream) -> Result<(), String> {
        let notice = notice.try_clone().map_err(|error| format!("cannot serve: {error}"))?;
        let server = Arc::downgrade(self);
        let work = move || {
            interrupt::ends_before_input(&notice, None);
            if let Some(server) = server.upgrade() {
                server.state().cancel_all();
            }
        };
        std::thread::Builder::new().spawn(work).map(drop).map_err(|error| format!("cannot start a thread: {error}"))
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
            let message = format!("the request has more than {MOST_VALUES} values");
            return print_now(&answer(&Request::id_of(line), Err(Problem::new(Problem::LIMIT, message))));
        }
        let mut request = match Request::read(line) {
            Ok(request) => request,
            Err(wrong) => {
                let (id, problem) = *wrong;
                return print_now(&answer(&id, Err(problem)));
            }
        };
        let Some(id) = request.id.clone() else {
            self.notified(&request);
            return true;
        };
        if self.sets == Execution::WhatIf && request.method == "set" {
            request.only_say();
            self.note_what_if();
        }
        match request.method.as_str() {
            "shutdown" => {
                self.wait();
                print_now(&answer(&id, self.flush().map(|()| Json::Null)));
                false
            }
            // Its answer comes before anything else is read.
            "initialize" => {
                let result = calls::initialize(&self.session, &request);
                self.state().greeted |= result.is_ok();
                print_now(&answer(&id, result))
            }
            _ => match self.begin(&id, request, line.len() + VALUE_BYTES * values) {
                Ok(()) => !self.state().unread,
                Err(problem) => print_now(&answer(&id, Err(problem))),
            },
        }
    }

    /// Says once that sets change nothing.
    fn note_what_if(&self) {
        if !std::mem::replace(&mut self.state().noted, true) {
            complain("note: sets only report what they would change; add --apply to carry them out");
        }
    }

    fn notified(&self, request: &Request) {
        if request.method == "$/cancel"
            && let Ok(CancelParams { id }) = request.params()
            && let Some(one) = self.state().under_way.get(&id.to_string())
        {
            one.cancel.cancel();
        }
    }

    fn begin(self: &Arc<Self>, id: &Json, request: Request, bytes: usize) -> Result<(), Problem> {
        let (cancel, watch) = self.admit(id, &request, bytes)?;
        let (server, id, unstarted) = (Arc::clone(self), id.clone(), Arc::clone(&watch));
        let key = id.to_string();
        let work = move || {
            let result = guarded(|| calls::carry_out(&server.session, &id, &request, cancel, &watch));
            // Where it hung it was answered for.
            if let Some(done) = server.take_out(&id.to_string(), &watch) {
                server.tell(&answer(&id, result), done.bytes);
            }
        };
        self.session.host().submit(work).map_err(|error| {
            if let Some(one) = self.take_out(&key, &unstarted) {
                self.state().release(one.bytes);
            }
            Problem::new(Problem::LIMIT, format!("cannot start a thread: {error}")).with("retryable", true)
        })
    }

    /// Notes a request as under way, if there is room for it.
    fn admit(&self, id: &Json, request: &Request, bytes: usize) -> Result<(Cancel, Arc<RunWatch>), Problem> {
        let mut state = self.state();
        if !state.greeted {
            return Err(Problem::new(Problem::HANDSHAKE, "the first request must be 'initialize'"));
        }
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
            type_name: ResourceParams::type_of(request).to_owned(),
            bytes,
            cancel: cancel.clone(),
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
    fn tell(&self, answer: &str, bytes: usize) {
        // It can take as long as its reader likes, and other requests go on meanwhile.
        let is_read = print_now(answer);
        let mut state = self.state();
        state.release(bytes);
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
            self.tell(&answer(&one.id, Err(calls::hung(&one.type_name))), one.bytes);
        }
    }

    /// Has all changes written to the disk: once for a session, as once for a run. A flush for each would take longer than most
    /// changes do.
    fn flush(&self) -> Result<(), Problem> {
        self.session.flush().map_err(|error| Problem::new(Problem::FAILED, error_chain(&error)))
    }

    /// Waits until nothing is under way.
    fn wait(&self) {
        let state = self.state();
        let is_busy = |state: &mut State| state.requests > 0;
        drop(self.ended.wait_while(state, is_busy).unwrap_or_else(PoisonError::into_inner));
    }

    /// Ends what is under way: nobody reads its answers any more.
    fn end(&self) {
        self.state().cancel_all();
        self.wait();
    }

    /// Carries out the requests of a file, each after the one before. A file need not begin with `initialize`.
    fn replay(self: &Arc<Self>, path: &Path, stop: &Cancel) -> Result<(), String> {
        let text = input::read(path).map_err(|error| error.to_string())?;
        self.state().greeted = true;
        for line in text.text.lines().filter(|line| !line.trim().is_empty()) {
            if stop.is_cancelled() || !self.take(line) {
                break;
            }
            self.wait();
        }
        Ok(())
    }
}

/// Answers requests that hang, as long as there is a server.
fn watch(server: &Weak<Server>) {
    loop {
        std::thread::sleep(WATCH_EVERY);
        let Some(server) = server.upgrade() else { return };
        server.answer_for(RunWatch::hangs);
    }
}

/// What a call answers. One that panics fails alone; the hook has reported where it was.
fn guarded(call: impl FnOnce() -> Result<Json, Problem>) -> Result<Json, Problem> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| Err(Problem::new(Problem::INTERNAL, "internal error")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_fails_its_request_alone() {
        let failed = guarded(|| panic!("a defect of an operation")).map_err(|problem| problem.to_json());
        assert_eq!(failed, Err(serde_json::json!({ "code": -32603, "message": "internal error" })));
        assert_eq!(guarded(|| Ok(Json::from(1))).map_err(|problem| problem.to_json()), Ok(1.into()));
    }

    #[test]
    fn a_request_that_hangs_is_answered_for_once() {
        let session = stead_engine::Host::new(stead_engine::HostOptions::default()).session("/");
        let server = Server { session, sets: Execution::Actual, state: Mutex::default(), ended: Condvar::new() };
        server.state().greeted = true;
        let request = |id: u64| {
            let line = format!(r#"{{"id": {id}, "method": "get", "params": {{"type": "Stead/File"}}}}"#);
            Request::read(&line).unwrap_or_else(|_| panic!("{line}"))
        };
        let (cancel, hung) = server.admit(&1.into(), &request(1), 10).unwrap_or_else(|problem| panic!("{problem:?}"));
        server.answer_for(RunWatch::hangs);
        assert_eq!(server.state().requests, 1, "none hangs");
        server.answer_for(|_| true);
        assert!(cancel.is_cancelled());
        assert!(server.state().under_way.is_empty());
        assert_eq!(server.state().bytes, 0);
        // Another request may have its id now, and what hung returns.
        let (_, other) = server.admit(&1.into(), &request(1), 10).unwrap_or_else(|problem| panic!("{problem:?}"));
        assert!(server.take_out("1", &hung).is_none());
        assert!(server.take_out("1", &other).is_some());
        assert!(server.take_out("1", &other).is_none());
        let answered = calls::hung("Stead/File").to_json();
        assert_eq!((answered["code"].as_i64(), &answered["data"]["retryable"]), (Some(-32001), &Json::from(true)));
    }

    #[test]
    fn what_is_not_read_is_answered_with_its_id() {
        for (line, id) in [
            (r#"{"params":[1,2],"id":7,"method":"get"}"#, Json::from(7)),
            (r#"{"params":{"id":1},"id":"a"}"#, Json::from("a")),
            (r#"{"id":[1,2],"params":[]}"#, Json::Null),
            (r#"{"id":{"a":1}}"#, Json::Null),
            (r#"{"id":8"#, Json::Null),
            (r#"{"params":[]}"#, Json::Null),
            ("[1]", Json::Null),
        ] {
            assert_eq!(Request::id_of(line), id, "{line}");
        }
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
