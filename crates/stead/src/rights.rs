//! Cases of `corpus/rights`: what runs with which rights.
//!
//! The rights of the test itself make no difference.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use stead_core::call::Execution;
use stead_core::event::Mode;
use stead_core::value::Object;
use stead_testkit::{Case, Computed, Suite, check_all};

use stead_engine::{Host, HostOptions, RunOptions, failure_lines, finding_line, set_mode};

#[test]
fn what_runs_with_which_rights() {
    check_all(&Suite { folder: "rights", run });
}

fn run(case: &Case) -> Result<Computed, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    for (name, text) in case.files() {
        fs::write(folder.path().join(name), text).map_err(|error| error.to_string())?;
    }
    let modes = [
        ("get", Mode::GET),
        ("test", Mode::TEST),
        ("set", set_mode(Execution::Actual)),
        ("what-if", set_mode(Execution::WhatIf)),
        ("plan", Mode::PLAN),
        ("apply", Mode::APPLY),
    ];
    let mut outcomes = String::new();
    for (who, elevated) in [("root", true), ("anybody", false)] {
        let each = modes.map(|(name, mode)| Ok((name, outcome(case, folder.path(), mode, elevated)?)));
        let each = each.into_iter().collect::<Result<Vec<_>, String>>()?;
        for alike in each.chunk_by(|one, other| one.1 == other.1) {
            let names: Vec<_> = alike.iter().map(|(name, _)| *name).collect();
            let outcome = alike.first().map(|(_, outcome)| outcome.as_str()).unwrap_or_default();
            let _ = write!(outcomes, "> {} as {who}\n{outcome}", names.join(", "));
        }
    }
    Ok(vec![("outcomes", outcomes)])
}

fn outcome(case: &Case, folder: &Path, mode: Mode, elevated: bool) -> Result<String, String> {
    let host = Host::new(HostOptions { elevated, ..HostOptions::default() });
    let mut session = host.session(folder);
    let prepared = session.prepare("main.yaml", case.section("main.yaml"), Object::new());
    let prepared = prepared.map_err(|unusable| format!("{:?}", unusable.findings))?;
    if let Some(finding) = prepared.graph.refused(elevated) {
        return Ok(format!("refused: {}\n", finding_line(&finding, &prepared.sources)));
    }
    let run = session.run(&prepared, RunOptions::new(mode, host.width())).map_err(|error| error.to_string())?;
    let document = session.result_document(&run);
    let results = document["results"].as_array().map(Vec::as_slice).unwrap_or_default();
    let names: Vec<_> = results.iter().filter_map(|result| result["name"].as_str()).collect();
    let done = format!("done: {}", names.join(", "));
    let lines: String =
        std::iter::once(&done).chain(&failure_lines(&run)).flat_map(|line| [line.as_str(), "\n"]).collect();
    Ok(lines.replace(&format!("{}/", folder.display()), ""))
}
