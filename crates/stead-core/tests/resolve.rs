//! Cases of `corpus/resolve`: a document, the order and the needs of its instances, or everything that is wrong.
//!
//! `main.yaml` is resolved; sections of other names are the documents that it may include. `parameters`, `facts` and
//! `catalog` supply the rest (see `support/prepare.rs` and `support/catalog.rs`). `order` is the order of a run, what is
//! nested indented; `needs` has a line for each instance that needs others; `values` the parameters and variables of
//! each scope. `matrix` lets each instance depend on and refer to each in iteration: the line `# NAME needs` in its
//! declaration is replaced. `codes` says which codes of the module have a case.

#[path = "support/brief.rs"]
mod brief;
#[path = "support/catalog.rs"]
mod catalog;
#[path = "support/prepare.rs"]
mod prepare;
#[path = "support/seal.rs"]
mod seal;

use std::process::ExitCode;

use stead_core::graph::{Graph, Need, NeedKind, Scope};
use stead_core::id::NodeId;
use stead_core::value::Value;
use stead_testkit::{Case, Computed, Suite};

fn main() -> ExitCode {
    stead_testkit::main(&[Suite { folder: "resolve", run }])
}

fn run(case: &Case) -> Result<Computed, String> {
    if case.has("codes") {
        return Ok(vec![("codes", shown_codes())]);
    }
    if case.has("matrix") {
        return Ok(vec![("matrix", matrix(case)?)]);
    }
    let prepared = prepare::prepare(case)?;
    let mut computed = Computed::new();
    if let Some(graph) = &prepared.graph {
        computed.push(("order", graph.order.iter().map(|id| order_line(graph, *id)).collect()));
        computed.push(("needs", graph.order.iter().filter_map(|id| needs_line(graph, *id)).collect()));
        if case.has("values") {
            computed.push(("values", graph.scopes.iter().map(|scope| values(graph, scope)).collect()));
        }
    }
    computed.push(("diagnostics", brief::findings(&prepared.findings, &prepared.sources)));
    Ok(computed)
}

fn order_line(graph: &Graph, id: NodeId) -> String {
    let depth = std::iter::successors(graph.container(id), |id| graph.container(*id)).count();
    format!("{:indent$}{}\n", "", graph.node(id).name, indent = 2 * depth)
}

fn needs_line(graph: &Graph, id: NodeId) -> Option<String> {
    let needs: Vec<String> = graph.node(id).needs.iter().map(|need| need_text(graph, *need)).collect();
    (!needs.is_empty()).then(|| format!("{} needs {}\n", graph.node(id).name, needs.join(", ")))
}

/// The name of what is needed, with the kind of the need where it is another than the usual one.
fn need_text(graph: &Graph, Need { node, kind }: Need) -> String {
    let name = &graph.node(node).name;
    let label = match kind {
        NeedKind::Require => return name.to_string(),
        NeedKind::Notify => "a notification of",
        NeedKind::RequireAny => "any of",
        NeedKind::OnChanges => "changes of",
        NeedKind::OnFailure => "failure of",
        NeedKind::Order => "the end of",
    };
    format!("{label} {name}")
}

fn values(graph: &Graph, scope: &Scope) -> String {
    let name = scope.container.map_or("(outermost)", |container| &graph.node(container).name);
    let json = |values| Value::Object(values).to_redacted_json();
    format!("{name}: {} {}\n", json(scope.parameters.clone()), json(scope.variables.clone()))
}

/// Returns the findings of each pair of instances: when one depends on the other, then when it refers to it.
fn matrix(case: &Case) -> Result<String, String> {
    let graph = prepare::prepare(case)?.graph.ok_or("the document without needs is wrong")?;
    let mut out = Vec::new();
    for (from, this) in graph.iter() {
        for (to, other) in graph.iter() {
            let id = graph.id_of(to);
            let depends = with_need(case, &this.name, &format!("dependsOn: ['{id}']"))?;
            let refers = with_need(case, &this.name, &format!("condition: \"[empty(reference('{id}'))]\""))?;
            let pair = if from == to { "itself" } else { &other.name };
            out.push(format!("{} -> {pair}\n  {depends}\n  {refers}\n", this.name));
        }
    }
    Ok(out.concat())
}

/// Returns the findings when an instance has this need.
fn with_need(case: &Case, name: &str, need: &str) -> Result<String, String> {
    let text = case.section("main.yaml").replace(&format!("# {name} needs"), need);
    let prepared = prepare::prepare(&Case::of("main.yaml", &text))?;
    let found = prepared.findings.iter().map(|finding| {
        let help = finding.help.as_ref().map(|help| format!("; {help}")).unwrap_or_default();
        format!("{} {}{help}", finding.code, finding.message)
    });
    let found: Vec<String> = found.collect();
    Ok(if found.is_empty() { "allowed".to_owned() } else { found.join(" | ") })
}

/// Lists the codes of the module, each with whether some case shows it.
fn shown_codes() -> String {
    let folder = stead_testkit::repository().join("corpus/resolve");
    let mut cases = Vec::new();
    read_below(&folder, &mut cases);
    let codes = stead_core::graph::codes::CODES.iter();
    let lines = codes.map(|code| {
        let shown = cases.iter().any(|case| case.contains(&format!("error[{}]", code.id)));
        format!("{} {}\n", code.id, if shown { "is shown" } else { "has no case" })
    });
    lines.collect()
}

#[expect(clippy::disallowed_methods, reason = "the test reads the corpus, which the core does not")]
fn read_below(folder: &std::path::Path, cases: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.path() {
            path if path.is_dir() => read_below(&path, cases),
            path => cases.extend(std::fs::read_to_string(path)),
        }
    }
}
