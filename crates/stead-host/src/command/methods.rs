//! The methods of a program: which call of the manifest each is, and what its answer says.

use std::sync::atomic::Ordering;

use serde_json::Value as Json;
use stead_core::call::{Execution, Failure};
use stead_core::manifest::{Argument, ProgramCall, ResourceKind};
use stead_core::planner::Method;

use super::CommandProvider;
use super::answer::{Answer, Request, pending, take, take_unknown, what_if_words};
use super::invoke::{BEFORE, PENDING, Printed};
use super::output::Expected;
use crate::provider::{Context, Plain, SetReply, TestReply, TraceLevel};

impl CommandProvider {
    /// The call of a method, if there is one and this process may make it.
    pub(super) fn request(&self, method: Method, cx: &Context) -> Result<Request<'_>, Failure> {
        let (methods, security) = (&self.methods, self.security());
        let (name, call, required, execution) = match method {
            Method::Get => ("get", methods.get.as_ref(), security.get, Execution::Actual),
            Method::Test => ("test", methods.test.as_ref(), security.test, Execution::Actual),
            Method::Set(Execution::Actual) => ("set", methods.set.as_ref(), security.set, Execution::Actual),
            Method::Set(Execution::WhatIf) => ("what-if", self.predictor(cx), security.set, Execution::WhatIf),
            Method::Delete(execution) => ("delete", methods.delete.as_ref(), security.delete, execution),
        };
        let call = call.ok_or_else(|| self.unsupported(name))?;
        self.check_privilege(name, required)?;
        let request = Request::new(name, call, execution);
        match method {
            Method::Delete(Execution::Actual) => Ok(Request { expected: None, ..request }),
            // Without the argument for it the program would not know that it must not delete.
            Method::Delete(Execution::WhatIf) if !has_what_if(call) => Err(self.unsupported("delete what-if")),
            Method::Get | Method::Delete(Execution::WhatIf) => Ok(request.expecting(Expected::Values(1))),
            Method::Test | Method::Set(_) => Ok(request),
        }
    }

    /// The state in the answer to a get.
    pub(super) fn got(&self, request: &Request<'_>, printed: &Printed) -> Result<Plain, Failure> {
        Ok(Plain::new(request.understand(self, printed)?.state.unwrap_or_default()))
    }

    pub(super) fn tested(&self, cx: &Context, request: &Request<'_>, printed: &Printed) -> Result<TestReply, Failure> {
        let still_working = |stated: &Json| {
            let pending = pending(stated).map_err(|what| printed.unexpected(what))?;
            Ok(TestReply { pending: Some(pending), ..TestReply::default() })
        };
        if let Some(stated) = printed.pending() {
            return still_working(&stated);
        }
        let Answer { mut state, verdict, mut differing, .. } = request.understand_test(self, printed)?;
        // Of an adapter that takes documents it is within.
        if let Some(stated) = state.as_ref().and_then(|state| state.pointer(PENDING)) {
            return still_working(stated);
        }
        let unknown = state.as_mut().map_or(Ok(None), take_unknown).map_err(|what| printed.unexpected(what))?;
        if unknown.is_some() {
            differing.get_or_insert_default();
        }
        let stated = verdict.and_then(|verdict| verdict.as_bool()).filter(|_| unknown.is_none());
        if stated.is_none() && differing.is_none() && request.method.returns.is_some() && self.holds_no_others() {
            self.warn_of_no_verdict(cx);
        }
        let none_differ = || Some(unknown.is_none() && differing.as_ref()?.is_empty());
        let in_desired_state = stated.or_else(none_differ);
        Ok(TestReply { actual: state.map(Plain::new), in_desired_state, differing, unknown, ..TestReply::default() })
    }

    pub(super) fn was_set(&self, cx: &Context, request: &Request<'_>, printed: &Printed) -> Result<SetReply, Failure> {
        let is_made = request.execution == Execution::Actual;
        let still_working = |stated: &Json| {
            let pending = pending(stated).map_err(|what| printed.unexpected(what))?;
            if !is_made {
                return Err(printed.unexpected("what is only asked cannot be pending"));
            }
            Ok(SetReply { pending: Some(pending), ..SetReply::default() })
        };
        if let Some(stated) = printed.pending() {
            return still_working(&stated);
        }
        let mut answer = match request.understand(self, printed) {
            Err(failure) if is_made => {
                cx.say(TraceLevel::Warn, &format!("the set was made, but {}", failure.message));
                Answer::default()
            }
            answer => answer?,
        };
        if let Some(stated) = answer.state.as_ref().and_then(|state| state.pointer(PENDING)) {
            return still_working(stated);
        }
        let (mut what_if, mut unknown) = (Vec::new(), None);
        let before = answer.state.as_mut().and_then(|state| take(state, BEFORE)).filter(Json::is_object);
        if !is_made {
            what_if = what_if_words(answer.state.as_ref());
            let taken = answer.state.as_mut().map_or(Ok(None), take_unknown);
            unknown = taken.map_err(|what| printed.unexpected(what))?;
        }
        let ignored = printed.holds(request.expected).is_none()
            && printed.read(Expected::Values(1)).is_ok_and(|values| values.iter().all(Json::is_object));
        if ignored {
            cx.say(TraceLevel::Debug, "the set printed a state, which counts only with \"return\": \"state\"");
        }
        let (after, changed) = (answer.state.map(Plain::new), answer.differing);
        Ok(SetReply {
            before: before.map(Plain::new),
            after,
            ignored,
            changed,
            what_if,
            unknown,
            ..SetReply::default()
        })
    }

    pub(super) fn deleted(&self, request: &Request<'_>, printed: &Printed) -> Result<Vec<String>, Failure> {
        let answer = request.understand(self, printed)?;
        Ok(match request.execution {
            Execution::Actual => Vec::new(),
            Execution::WhatIf => what_if_words(answer.state.as_ref()),
        })
    }

    /// Returns whether its answers are a state, not the results of nested instances.
    fn holds_no_others(&self) -> bool {
        self.manifest.kind == ResourceKind::Resource
    }

    /// Says once that a test leaves the verdict to a comparison.
    fn warn_of_no_verdict(&self, cx: &Context) {
        if !self.has_warned.swap(true, Ordering::Relaxed) {
            let of = &self.manifest.type_name;
            let message =
                format!("the test of '{of}' does not report '_inDesiredState'; its state was compared instead");
            cx.say(TraceLevel::Warn, &message);
        }
    }

    /// The program for a what-if, and what it is called with: the argument of `set` for it, or the method of its own
    /// that older manifests have.
    fn predictor(&self, cx: &Context) -> Option<&ProgramCall> {
        let native = self.methods.set.as_ref().filter(|set| has_what_if(set));
        native.or_else(|| {
            let old = self.methods.what_if.as_ref()?;
            let message = format!(
                "Resource '{}' uses deprecated 'whatIf' operation; a 'whatIfArg' among the arguments of 'set' takes \
                 its place",
                self.manifest.type_name
            );
            cx.say(TraceLevel::Warn, &message);
            Some(old)
        })
    }
}

fn has_what_if(method: &ProgramCall) -> bool {
    method.arguments.iter().any(|argument| matches!(argument, Argument::WhatIf(_)))
}
