//! Cases of `corpus/agent`: settings as text, and what the agent does with documents, jobs, restarts and crashes.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

#[path = "corpus/lcm.rs"]
mod lcm;
#[path = "corpus/settings.rs"]
mod settings;

use std::process::ExitCode;

use stead_testkit::Suite;

fn main() -> ExitCode {
    stead_testkit::main(&[
        Suite { folder: "agent/lcm", run: lcm::run },
        Suite { folder: "agent/settings", run: settings::run },
    ])
}
