//! The journal of a unit, for messages.

use std::time::{SystemTime, UNIX_EPOCH};

use stead_core::call::Failure;
use stead_host::provider::Context;
use stead_system::fs::SystemPath;

use super::is_live;
use crate::program::{self, Invocation, SearchPath, Tail, labelled};

/// A failure of a job of a unit with the last lines of its journal since the job began, where there are any: of the unit and of systemd,
/// which names what it does not understand in the file of the unit. Whoever may not read the journal gets the failure alone.
pub(super) fn with_journal(cx: &Context, unit: &str, began: SystemTime, failure: Failure) -> Failure {
    let since = began.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let (since, lines) = (format!("@{since:.6}"), Tail::LINES.to_string());
    let words = ["--unit", unit, "--since", &since, "--lines", &lines, "--output", "cat", "--quiet"];
    let journal = Invocation {
        program: "journalctl".to_owned(),
        arguments: words.into_iter().map(str::to_owned).chain(["--no-pager".to_owned()]).collect(),
        environment: Vec::new(),
        directory: SystemPath::here("/"),
        timeout: None,
        search: SearchPath::System,
    };
    let read = if is_live(cx) { program::run(cx, &journal, "'journalctl'").ok() } else { None };
    let said = read.filter(|ended| ended.code == 0).map(|ended| labelled("journal of the unit", &ended.output));
    Failure { message: failure.message + &said.unwrap_or_default(), ..failure }
}
