//! A case made ready to run: the document resolved with what the other sections supply.

use stead_core::diag::{Diagnostic, any_error};
use stead_core::document;
use stead_core::expr::FactKey;
use stead_core::graph::{Facts, Graph, Inputs, Resolution, resolve};
use stead_core::parameters::Supplied;
use stead_core::text::{self, Limits, Node, Source, Sources};
use stead_core::value::Value;
use stead_testkit::Case;

use super::catalog::Known;
use super::seal::Legible;

/// The version that `directives.version` is compared with.
const VERSION: &str = "3.2.0";

/// A document and what became of it.
pub(crate) struct Prepared {
    /// `None` when it cannot be used.
    pub(crate) graph: Option<Graph>,
    pub(crate) findings: Vec<Diagnostic>,
    pub(crate) sources: Sources,
    pub(crate) facts: Facts,
}

/// Resolves `main.yaml`. Other sections are the documents that it can include, `parameters` is what is supplied to it,
/// `catalog` has resources besides those that every case has, and `facts` what the machine knows.
pub(crate) fn prepare(case: &Case) -> Result<Prepared, String> {
    let catalog = Known::with(case.section("catalog"))?;
    let mut sources = Sources::default();
    let main = case.section("main.yaml");
    let id = sources.add(Source::new("main.yaml", main));
    let supplied = supplied(case.section("parameters"), &mut sources)?;
    let (document, mut findings) = document::parse(id, main, &Limits::default());
    let mut prepared = Prepared { graph: None, findings: Vec::new(), sources, facts: Facts::new() };
    if !any_error(&findings) {
        let document = document.into();
        loop {
            let inputs = Inputs {
                folder: "",
                catalog: &catalog,
                parameters: &supplied,
                facts: &prepared.facts,
                version: VERSION,
                names: stead_core::graph::Names::Unique,
                values: stead_core::graph::Values::Required,
                seal: &Legible,
            };
            let wants = match resolve(&document, &inputs, &mut prepared.sources) {
                Resolution::Needs(wants) => wants,
                Resolution::Graph(graph, warnings) => {
                    findings.extend(warnings);
                    prepared.graph = Some(graph);
                    break;
                }
                Resolution::Faulty { findings: faults, .. } => {
                    findings.extend(faults);
                    break;
                }
            };
            for key in wants {
                let value = fact(case, &key);
                prepared.facts.insert(key, value);
            }
        }
    }
    Ok(Prepared { findings, ..prepared })
}

fn supplied(text: &str, sources: &mut Sources) -> Result<Supplied, String> {
    if text.is_empty() {
        return Ok(Supplied::default());
    }
    let node = node("parameters", text, sources)?;
    Supplied::of_tree(&node).map_err(|finding| finding.message)
}

fn value(text: &str) -> Result<Value, String> {
    node("value", text, &mut Sources::default()).map(|node| node.literal())
}

fn node(name: &str, text: &str, sources: &mut Sources) -> Result<Node, String> {
    let id = sources.add(Source::new(name, text));
    let (node, findings) = text::read(id, text, &Limits::default());
    node.ok_or_else(|| findings.iter().map(|each| each.brief(sources)).collect())
}

/// Returns the answer of the machine: a document is a section, anything else a line `KEY = VALUE` or `KEY ! reason`
/// in `facts`.
pub(crate) fn fact(case: &Case, key: &FactKey) -> Result<Value, String> {
    let wanted = match key {
        FactKey::Document(path) if case.has(path) => return Ok(case.section(path).into()),
        FactKey::Document(path) => return Err(format!("there is no file '{path}'")),
        FactKey::Now => "now".to_owned(),
        FactKey::Machine => "facts".to_owned(),
        FactKey::Context => "context".to_owned(),
        FactKey::SystemRoot => "root".to_owned(),
        FactKey::EnvironmentVariable(name) => format!("variable {name}"),
        FactKey::Executable(name) => format!("executable {name}"),
        FactKey::Secret(name, _) => format!("secret {name}"),
    };
    for line in case.section("facts").lines() {
        if let Some(text) = line.strip_prefix(&format!("{wanted} = ")) {
            return value(text);
        }
        if let Some(reason) = line.strip_prefix(&format!("{wanted} ! ")) {
            return Err(reason.to_owned());
        }
    }
    Ok(Value::Null)
}
