//! Resolves and runs large documents with a world that does nothing, and says how long each step took.
//!
//! `large SHAPE COUNT [plan]`, shapes being `beside`, `chain`, `fan`, `groups` (of 100), `references` and `unknown`
//! (needs that do not exist). A plan finds every instance to differ, each with a path of its own.

#[path = "../../stead-core/tests/support/catalog.rs"]
mod catalog;

use std::fmt::Write as _;
use std::io::Write as _;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use stead_core::call::{Call, Changed, Execution, Operation, Outcome, Response, Tested, Verification};
use stead_core::claims::{Claims, Extent};
use stead_core::document;
use stead_core::event::{Event, Mode};
use stead_core::expr::FactKey;
use stead_core::footprint::Footprint;
use stead_core::graph::{Facts, Inputs, Names, Resolution, Values, resolve};
use stead_core::parameters::Supplied;
use stead_core::run::{Run, Setup};
use stead_core::text::{Limits, Source, Sources};
use stead_core::value::Value;
use stead_host::executor::{Calls, Limits as Width, Stop, execute};
use stead_host::journal::NoJournal;
use stead_host::provider::Cost;
use stead_host::vault::MemoryVault;

struct Nothing;

impl Calls for Nothing {
    fn carry_out(&self, call: &Call) -> Response {
        let actual = Arc::new((*call.desired).clone());
        let outcome = if call.operation == Operation::Set {
            Outcome::Changed(Box::new(Changed {
                unknown: None,
                before: Arc::clone(&actual),
                after: actual,
                changed: Some(vec!["output".to_owned()]),
                what_if: Vec::new(),
                presumed: None,
                effects: stead_core::destruction::Effects::default(),
                verified: Verification::NotVerifiable,
            }))
        } else {
            let in_desired_state = call.execution == Execution::Actual || call.name().ends_with('7');
            Outcome::Tested(Arc::new(Tested {
                unknown: None,
                actual,
                in_desired_state,
                differing: Vec::new(),
                predicted: None,
                metadata: None,
            }))
        };
        Response::of(outcome)
    }

    fn footprint(&self, call: &Call, response: &Response) -> Option<Footprint> {
        let claims = Claims::path(Path::new("/etc").join(&**call.name()), Extent::Whole).and_reads("/etc/common");
        Some(Footprint::new(claims, &response.outcome, |path| path.into()))
    }

    fn cost(&self, _call: &Call) -> Cost {
        Cost::Inline
    }

    fn fact(&self, _key: &FactKey) -> Result<Value, String> {
        Ok(Value::Null)
    }

    fn flush(&self) -> std::io::Result<()> {
        Ok(())
    }
}

fn text(shape: &str, count: usize) -> String {
    let mut text = "$schema: s\nresources:\n".to_owned();
    for at in 0..count {
        let indent = if shape == "groups" { "      " } else { "" };
        if shape == "groups" && at.is_multiple_of(100) {
            let group = at / 100;
            // Writing to a string does not fail.
            let _ = write!(text, "- name: g{group}\n  type: Microsoft.DSC/Group\n  properties:\n    resources:\n");
        }
        let _ = write!(text, "{indent}- name: i{at}\n{indent}  type: Test/Echo\n");
        let needs = match shape {
            "chain" if at > 0 => format!("dependsOn: ['Test/Echo:i{}']", at - 1),
            "fan" if at > 0 => "dependsOn: ['Test/Echo:i0']".to_owned(),
            "unknown" => format!("dependsOn: ['Test/Echo:x{at}']"),
            _ => "dependsOn: []".to_owned(),
        };
        let output = match shape {
            "references" if at > 0 => format!("\"[reference('Test/Echo:i{}').output]\"", at - 1),
            _ => "hello".to_owned(),
        };
        let _ = write!(text, "{indent}  {needs}\n{indent}  properties: {{output: {output}}}\n");
    }
    text
}

/// The most memory that this process has had, in MiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) / 1024
}

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let shape = arguments.first().map_or("beside", String::as_str);
    let count = arguments.get(1).and_then(|count| count.parse().ok()).unwrap_or(100_000);
    let mode = if arguments.get(2).is_some_and(|mode| mode == "plan") { Mode::PLAN } else { Mode::APPLY };
    let mut out = std::io::stdout().lock();
    let mut sources = Sources::default();
    let text = text(shape, count);
    let id = sources.add(Source::new("main.yaml", &text));
    let begun = Instant::now();
    let (document, _) = document::parse(id, &text, &Limits::default());
    write!(out, "{shape} {count}: read {} ms", begun.elapsed().as_millis())?;
    let catalog = catalog::Known::with("").map_err(std::io::Error::other)?;
    let (parameters, facts) = (Supplied::default(), Facts::new());
    let inputs = Inputs {
        folder: "",
        catalog: &catalog,
        parameters: &parameters,
        facts: &facts,
        version: "3.0.0",
        names: Names::Unique,
        values: Values::Required,
        seal: &MemoryVault::default(),
    };
    let begun = Instant::now();
    let resolved = resolve(&Arc::new(document), &inputs, &mut sources);
    write!(out, ", resolved {} ms", begun.elapsed().as_millis())?;
    let graph = match resolved {
        Resolution::Graph(graph, _) => graph,
        Resolution::Faulty { findings, .. } => return writeln!(out, ", {} findings, {} MiB", findings.len(), peak()),
        Resolution::Needs(_) => return writeln!(out, ", needs facts"),
    };
    let begun = Instant::now();
    let mut run = Run::new(Setup::new(Arc::new(graph), Arc::new(sources), Arc::new(MemoryVault::default()), mode));
    let (calls, pool): (Arc<dyn Calls>, _) = (Arc::new(Nothing), Arc::default());
    let (limits, stop) = (Width::of(NonZeroUsize::MIN), Stop::default());
    let ended = execute(&mut run, &calls, &pool, &mut NoJournal, limits, &stop, &mut |_: &Run, _: &Event| {});
    ended.map_err(std::io::Error::other)?;
    writeln!(out, ", ran {} ms, {} MiB, {:?}", begun.elapsed().as_millis(), peak(), run.totals())
}
