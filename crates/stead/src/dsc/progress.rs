//! Progress as JSON lines on standard error.

use serde_json::{Value as Json, json};
use stead_core::call::{FailureKind, Operation};
use stead_core::event::{Event, EventKind, Status};
use stead_core::id::NodeId;
use stead_core::run::Run;
use stead_core::wire::results::{self, reason};

use crate::terminal::complain_json;

/// The lines of one activity.
pub(super) struct Progress {
    id: String,
    completed: usize,
}

impl Progress {
    pub(super) fn new() -> Self {
        // Lines of one run belong together by this; nothing else depends on it.
        let seed = jiff::Timestamp::now().as_nanosecond().unsigned_abs() ^ (u128::from(std::process::id()) << 96);
        let hex = format!("{seed:032x}");
        let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
        Self {
            id: format!("{}-{}-4{}-8{}-{}", part(0, 8), part(8, 12), part(13, 16), part(17, 20), part(20, 32)),
            completed: 0,
        }
    }

    /// Does what looks for extensions and resources, and tells that it does.
    pub(super) fn of_search<T>(search: impl FnOnce() -> T) -> T {
        let (extensions, resources) = (Self::new(), Self::new());
        extensions.searching("extensions", 0);
        let found = search();
        // Resources come from the same search; dsc makes two.
        extensions.searching("extensions", 1);
        resources.searching("resources", 0);
        resources.searching("resources", 1);
        found
    }

    /// Tells that something is looked for, or with 1 that it was.
    fn searching(&self, what: &str, completed: usize) {
        let activity = format!("Searching for {what}");
        let line = json!({ "id": self.id, "activity": activity, "totalItems": 1, "completedItems": completed });
        complain_json(&line);
    }

    pub(super) fn event(&mut self, run: &Run, event: &Event) {
        let (EventKind::CallStarted { instance, .. }
        | EventKind::ContainerOpened { instance }
        | EventKind::Settled { instance, .. }) = &event.kind
        else {
            return;
        };
        let node = instance.node();
        let settled = run.report().status(node).is_some();
        self.completed += usize::from(settled);
        let graph = run.graph();
        let mut line = json!({
            "id": self.id,
            "activity": format!("{} '{}'", activity(run.mode().operation), graph.node(node).name),
            "totalItems": graph.nodes.len(),
            "completedItems": self.completed,
            "resourceName": graph.node(node).name,
            "resourceType": graph.declaration(node).type_name.value.as_str(),
        });
        if settled && let Some((key, value)) = ending(run, node) {
            line[key] = value;
        }
        complain_json(&line);
    }
}

fn activity(operation: Operation) -> &'static str {
    match operation {
        Operation::Get => "Get",
        Operation::Test => "Test",
        Operation::Set => "Set",
        Operation::Delete => "Delete",
        Operation::Export => "Export",
    }
}

fn ending(run: &Run, node: NodeId) -> Option<(&'static str, Json)> {
    let record = run.report().record(node);
    if record.status() == Some(&Status::Failed) {
        let code = match record.failure().map(|failure| &failure.kind) {
            Some(FailureKind::Exit(code)) => *code,
            _ => 2,
        };
        let message = reason(run.graph(), run.report(), node).unwrap_or_default();
        return Some(("failure", json!({ "message": message, "exitCode": code })));
    }
    results::result(run.graph(), record, run.mode(), node).map(|result| ("result", result))
}
