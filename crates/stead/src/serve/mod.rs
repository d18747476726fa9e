//! `serve`: calls of resources for another program, which asks many times and starts this one once.
//!
//! Requests are carried out by runs of a single instance, as everywhere, or of whole documents.

mod batch;
mod calls;
mod compared;
mod forms;
mod invoke;
mod places;
mod protocol;
mod secrets;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value as Json;
use stead_core::call::Execution;
use stead_engine::error_chain;
use stead_system::Cancel;

use crate::exit::Exit;
use crate::input;
use crate::interrupt;
use crate::process_env::ProcessEnv;
use crate::request::ServeRequest;
use crate::rpc::{About, Dispatch, Problem, Protocol, Request, Server, Work};
use crate::terminal::complain;
use places::Places;
use protocol::{CancelParams, called_by, only_say, subject_of};

/// Answers requests until the input ends.
pub(crate) fn serve(request: &ServeRequest, env: &ProcessEnv) -> Exit {
    let stop = Cancel::default();
    let (sets, is_replay) = match request {
        ServeRequest::Converse => (Execution::Actual, false),
        ServeRequest::Replay { sets, .. } => (*sets, true),
    };
    let resources = Resources {
        places: Places::new(env.host.session(input::current_folder()), Arc::clone(&env.host_of)),
        sets,
        // A file of requests need not begin with `initialize`.
        greeted: AtomicBool::new(is_replay),
        noted: AtomicBool::default(),
    };
    let server = Server::new(env.host.clone(), resources);
    let done = match request {
        ServeRequest::Converse => server.converse(&stop),
        ServeRequest::Replay { file, .. } => server.replay(file, &stop),
    };
    let flushed = server.protocol().flush().map_err(|error| error_chain(&error));
    match done.and(flushed) {
        Ok(()) => interrupt::exit(&stop, Exit::Success),
        Err(why) => {
            complain(&format!("error: {why}"));
            Exit::Unusable
        }
    }
}

/// The protocol of `docs/serve.md`.
struct Resources {
    /// The resources that there are, for each place that requests come from.
    places: Places,
    /// The execution of sets that do not ask for what-if: those of a recorded session need not be meant for real
    /// again.
    sets: Execution,
    greeted: AtomicBool,
    /// True once the note was written that sets only report.
    noted: AtomicBool,
}

impl Resources {
    /// Says once that sets change nothing.
    fn note_what_if(&self) {
        if !self.noted.swap(true, Ordering::Relaxed) {
            complain("note: sets only report what they would change; add --apply to carry them out");
        }
    }

    /// Has all changes written to the disk: once for a session, as once for a run. A flush for each would take longer than most
    /// changes do.
    fn flush(&self) -> Result<(), stead_system::fs::FsError> {
        self.places.base().flush()
    }
}

impl Protocol for Resources {
    type Call = Request;
    type Answer = Json;

    const WITHOUT_ID: Option<Json> = Some(Json::Null);
    const ANSWERS_CANCELLED: bool = true;
    const GRACE: Option<Duration> = None;

    fn dispatch(&self, mut request: Request) -> Dispatch<Request> {
        if self.sets == Execution::WhatIf && matches!(called_by(&request), "set" | "batch") {
            only_say(&mut request);
            self.note_what_if();
        }
        match request.method.as_str() {
            "shutdown" => Dispatch::Last,
            "initialize" => {
                let result = calls::initialize(self.places.base(), &request);
                self.greeted.fetch_or(result.is_ok(), Ordering::Relaxed);
                Dispatch::Now(result)
            }
            _ if !self.greeted.load(Ordering::Relaxed) => {
                Dispatch::Now(Err(Problem::new(Problem::HANDSHAKE, "the first request must be 'initialize'")))
            }
            method => {
                let subject = subject_of(&request).to_owned();
                let kind = format!("{method} {} {subject}", called_by(&request));
                let about = About { kind, subject, alone: false };
                Dispatch::Beside(about, request)
            }
        }
    }

    fn carry_out(&self, work: Work<Request>) -> Result<Json, Problem> {
        match work.call.method.as_str() {
            "invoke" => invoke::invoke(&self.places, work),
            "list" => invoke::list(&self.places, &work),
            "batch" => batch::batch(&self.places, &work),
            _ => calls::carry_out(&self.places, &work),
        }
    }

    fn cancelled(&self, notification: &Request) -> Option<Json> {
        let is_cancel = notification.method == "$/cancel";
        is_cancel.then(|| notification.params().ok().map(|CancelParams { id }| id)).flatten()
    }

    fn hung(&self, subject: &str) -> Problem {
        calls::hung(subject)
    }

    fn finish(&self) -> Result<Json, Problem> {
        self.flush().map(|()| Json::Null).map_err(|error| Problem::new(Problem::FAILED, error_chain(&error)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_hung_can_be_tried_again() {
        let answered = calls::hung("Stead/File").to_json();
        assert_eq!((answered["code"].as_i64(), &answered["data"]["retryable"]), (Some(-32001), &Json::from(true)));
    }
}
