//! Cases of `corpus/powershell`: values on their way to a worker, and what a call came to.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

#[path = "support/declared.rs"]
mod declared;
#[path = "support/kept.rs"]
mod kept;
#[path = "support/recorder.rs"]
mod recorder;
#[path = "support/stand_in.rs"]
mod stand_in;

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use stead_powershell::convert::{Json, Purpose, ValueRefusal, Wire, properties};
use stead_powershell::worker::{Call, Deadline, Limits, Method, Module, Pool, Records, Settings};
use stead_powershell_reader::resource::DefinitionKind;
use stead_powershell_reader::types::{Property, Rule};
use stead_system::Cancel;
use stead_system::process::Environment;
use stead_testkit::{Case, Computed, Suite};

fn main() -> ExitCode {
    if recorder::is_asked_for() {
        recorder::main();
        return ExitCode::SUCCESS;
    }
    if stand_in::is_asked_for() {
        stand_in::main();
        return ExitCode::SUCCESS;
    }
    let values = Suite { folder: "powershell/values", run: convert };
    let worker = Suite { folder: "powershell/worker", run: judge };
    stead_testkit::main(&[values, worker])
}

/// Converts what is `stated` by what is `declared`.
fn convert(case: &Case) -> Result<Computed, String> {
    let declared: Vec<Property> = case.section("declared").lines().map(property).collect();
    let stated = Json::parse(case.section("stated")).map_err(|error| error.to_string())?;
    let Json::Object(stated) = stated else { return Err("'stated' must be an object".to_owned()) };
    Ok(match properties(&declared, &stated, Purpose::Instance) {
        Ok(wires) => vec![("assigned", wires.iter().map(assigned).collect())],
        Err(refusals) => vec![("refused", refusals.iter().map(refused).collect())],
    })
}

fn assigned((name, wire): &(String, Wire)) -> String {
    format!("{name}: {}\n", serde_json::to_string(wire).unwrap())
}

fn refused(refusal: &ValueRefusal) -> String {
    format!("{} {refusal}\n", refusal.code.id)
}

/// `Name: type`, with the words `key`, `mandatory` and `read-only` and a range behind it.
fn property(line: &str) -> Property {
    let (name, rest) = line.split_once(": ").unwrap();
    let mut words = rest.split_whitespace();
    let mut property = Property { name: name.to_owned(), ..declared::property(words.next().unwrap(), Vec::new()) };
    for word in words {
        match word {
            "key" => property.key = true,
            "mandatory" => property.mandatory = true,
            "read-only" => property.read_only = true,
            "not-empty" => property.rules.push(Rule::NotEmpty),
            range => {
                let (least, greatest) = range.split_once("..").unwrap();
                property.rules.push(Rule::Range(least.to_owned(), greatest.to_owned()));
            }
        }
    }
    property
}

/// Judges a call by the `lines` that the worker sends: those of PowerShell itself for a `resource`, where it is at hand.
fn judge(case: &Case) -> Result<Computed, String> {
    let method = match case.section("method").trim() {
        "Get" => Method::Get,
        "Test" => Method::Test,
        "Set" => Method::Set,
        "Export" => Method::Export,
        "WhatIf" => Method::WhatIf,
        other => return Err(format!("there is no method '{other}'")),
    };
    let recorded = if case.has("resource") { recorder::lines(case, method)? } else { None };
    let text = recorded.clone().unwrap_or_else(|| case.section("lines").to_owned());
    let lines = [("lines".to_owned(), Wire::String(text))];
    let module = Module { path: Path::new("/m/M.psd1"), stamp: "" };
    let call = Call {
        kind: DefinitionKind::Class,
        module,
        resource: "Lines",
        method,
        properties: &lines,
        records: Records::Debug,
        progress: None,
        directory: Path::new("/"),
        root: Path::new("/"),
    };
    let cancel = Cancel::default();
    let limits = Limits {
        deadline: Deadline::after(Duration::from_mins(1)),
        output: 1 << 20,
        cancel: &cancel,
        inherited: &[],
        to_come: 0,
    };
    let settings = Settings::new(std::env::current_exe().unwrap(), Environment::of_this_process(&[]), 1);
    let mut records = String::new();
    let reply = Pool::new(settings).call(&call, &limits, &mut |record| {
        writeln!(records, "{:?}: {}", record.stream, record.message).unwrap();
    });
    let result = reply.map_err(|failed| failed.to_string()).and_then(|reply| {
        let result = match method {
            Method::Test => reply.verdict().map(|verdict| format!("{verdict}\n")),
            Method::Get => reply.state().map(|state| format!("{}\n", state.map_or("nothing", |state| state.get()))),
            Method::Export => reply.states().map(|states| joined(states.iter().map(|state| state.get()))),
            _ => Ok(joined(reply.texts().iter().map(String::as_str))),
        };
        let reboot = if reply.reboot_required { "restart required\n" } else { "" };
        result.map(|result| result + reboot).map_err(|error| error.to_string())
    });
    let result = result.unwrap_or_else(|failed| format!("failed: {failed}\n"));
    let played = vec![("records", records), ("result", result)];
    Ok(recorded.map(|lines| ("lines", lines)).into_iter().chain(played).collect())
}

fn joined<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    lines.flat_map(|line| [line, "\n"]).collect()
}
