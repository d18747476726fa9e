//! One suite for both stores: each case of `corpus/fleet/store` runs on SQLite and on PostgreSQL, and both must say the same.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test may end with a panic wherever it is")]
#![expect(clippy::doc_markdown, reason = "databases have such names")]

#[path = "../support/cluster.rs"]
mod cluster;
mod script;

use std::process::ExitCode;

use stead_fleet::store::StorePlace;
use stead_testkit::{Case, Computed, Suite};

fn main() -> ExitCode {
    stead_testkit::main(&[Suite { folder: "fleet/store", run }])
}

fn run(case: &Case) -> Result<Computed, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let steps = case.section("steps");
    let file = script::run(&StorePlace::File(folder.path().join("fleet.db")), 1, steps)?;
    for controllers in [1, 3] {
        let Some(server) = cluster::database(&case.name) else { break };
        let other = script::run(&server, controllers, steps)?;
        if other != file {
            return Err(format!("{controllers} on PostgreSQL say otherwise:\n{other}--- than SQLite:\n{file}"));
        }
    }
    Ok(vec![("steps", file)])
}
