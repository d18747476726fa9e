//! The journal of a unit, for messages.

use stead_core::call::Failure;
use stead_host::provider::Context;
use stead_system::fs::SystemPath;

use super::is_live;
use crate::program::{self, Invocation, SearchPath, labelled};

/// As many lines say why a unit did not start, and which line of its file systemd does not understand.
const LINES: usize = 10;

/// A failure of a job of a unit with the last lines of its journal, where there are any. Whoever may not read the journal gets the failure alone.
pub(super) fn with_journal(cx: &Context, unit: &str, failure: Failure) -> Failure {
    let words = ["--unit", unit, "--since", "-2min", "--lines", &LINES.to_string(), "--output", "cat", "--quiet"];
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
