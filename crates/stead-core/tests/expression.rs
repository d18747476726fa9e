//! Cases of `corpus/expression`: expressions and their values.

use std::fmt::Write;
use std::process::ExitCode;

mod expressions;

use expressions::World;
use stead_core::expr::{Expression, Fault, Stop};
use stead_core::value::Value;
use stead_testkit::{Case, Computed, Suite};

fn main() -> ExitCode {
    stead_testkit::main(&[Suite { folder: "expression", run }])
}

fn run(case: &Case) -> Result<Computed, String> {
    let world = world(case.section("environment"))?;
    let mut computed = Vec::new();
    if case.has("table") {
        let lines = case.section("table").lines().map(|line| row(line, &world));
        computed.push(("table", lines.map(|line| line + "\n").collect()));
    }
    if case.has("expression") {
        let text = case.section("expression").trim_end();
        let result = match evaluate(text, &world) {
            Err(Stop::Fault(fault)) => pointed(text, &fault),
            other => short(text, &world, other),
        };
        computed.push(("result", result + "\n"));
    }
    if computed.is_empty() { Err("neither a table nor an expression".to_owned()) } else { Ok(computed) }
}

fn world(environment: &str) -> Result<World, String> {
    if environment.trim().is_empty() {
        return Ok(World::default());
    }
    World::new(serde_json::from_str(environment).map_err(|error| format!("environment: {error}"))?)
}

/// A line of a table with its result; remarks and empty lines stay as they are.
fn row(line: &str, world: &World) -> String {
    if line.trim().is_empty() || line.starts_with('#') {
        return line.to_owned();
    }
    let text = line.split_once(" => ").map_or(line, |(text, _)| text).trim_end();
    format!("{text} => {}", short(text, world, evaluate(text, world)))
}

fn evaluate(text: &str, world: &World) -> Result<Value, Stop> {
    Expression::parse(text).map_err(Stop::Fault)?.evaluate(world)
}

fn short(text: &str, world: &World, result: Result<Value, Stop>) -> String {
    match result {
        Ok(value) if value.has_sealed() => {
            let opened = match world.open(&value) {
                Ok(plain) => plain.to_redacted_json().to_string(),
                Err(error) => format!("error: {error}"),
            };
            format!("{} opens {opened}", value.to_redacted_json())
        }
        Ok(value) => value.to_redacted_json().to_string(),
        Err(Stop::Missing(key)) => format!("missing {key:?}"),
        Err(Stop::Unknown(id)) => format!("unknown {id}"),
        Err(Stop::Fault(fault)) => {
            let part = text.get(fault.at.clone()).unwrap_or("(not a part of the text)");
            let help = fault.help.map(|help| format!(" ({help})")).unwrap_or_default();
            format!("{} `{part}` {}{help}", fault.code, fault.message)
        }
    }
}

/// The message with the expression, and carets below the part that it is about.
fn pointed(text: &str, fault: &Fault) -> String {
    let mut out = format!("error[{}]: {}\n", fault.code, fault.message);
    let mut start = 0;
    for line in text.split('\n') {
        let end = start + line.len();
        let _ = writeln!(out, "  | {line}");
        let from = fault.at.start.clamp(start, end);
        let upto = fault.at.end.clamp(start, end);
        let is_here = upto > from || (fault.at.is_empty() && (start..=end).contains(&fault.at.start));
        if is_here {
            let before = text[start..from].chars().count();
            let carets = text[from..upto].chars().count().max(1);
            let _ = writeln!(out, "  | {}{}", " ".repeat(before), "^".repeat(carets));
        }
        start = end + 1;
    }
    if let Some(help) = &fault.help {
        let _ = writeln!(out, "help: {help}");
    }
    out.trim_end().to_owned()
}
