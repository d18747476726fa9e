//! Cases of `corpus/sls`: SLS files, the document that they become, and what each instance of it needs.

#[path = "../../stead-core/tests/support/brief.rs"]
mod brief;
#[path = "../../stead-core/tests/support/catalog.rs"]
mod catalog;
#[path = "support/converted.rs"]
mod converted;
#[path = "../../stead-core/tests/support/seal.rs"]
mod seal;

use std::process::ExitCode;

use converted::graph;

use stead_core::diag::Diagnostic;
use stead_core::graph::{Graph, Need, NeedKind};
use stead_core::id::NodeId;
use stead_core::text::{Source, Sources};
use stead_core::value::Value;
use stead_sls::{Conversion, Converted, Layout, Sls, convert};
use stead_testkit::{Case, Computed, Suite};

fn main() -> ExitCode {
    stead_testkit::main(&[Suite { folder: "sls", run }])
}

fn run(case: &Case) -> Result<Computed, String> {
    let mut sources = Sources::default();
    let given = if case.has("files") { case.section("files") } else { "main.sls" };
    let files = given.lines().map(|name| file(case, name.trim_end_matches(".sls"), &mut sources)).collect();
    let (converted, findings) = converted(case, files, &mut sources);
    let mut computed = vec![("findings", brief::findings(&findings, &sources))];
    if let Some(converted) = converted {
        let text = converted.text(yaml);
        computed.push(("needs", needs(&graph(&text)?)));
        computed.push(("document", text));
    }
    Ok(computed)
}

/// Converts, with the included files that the case has.
fn converted(case: &Case, mut files: Vec<Sls>, sources: &mut Sources) -> (Option<Converted>, Vec<Diagnostic>) {
    loop {
        match convert(&files, sources) {
            Conversion::Done { document, findings } => return (document, findings),
            Conversion::Needs(references) => {
                files.extend(references.iter().map(|reference| file(case, reference, sources)));
            }
        }
    }
}

fn file(case: &Case, reference: &str, sources: &mut Sources) -> Sls {
    let path = reference.replace('.', "/");
    let named = |layout: Layout| (layout, format!("{path}{}", layout.suffix()));
    let found = [Layout::Single, Layout::Init].map(named).into_iter().find(|(_, name)| case.has(name));
    let reason = Err("there is no such file".to_owned());
    let (layout, text) = found.map_or((Layout::Single, reason), |(layout, name)| {
        (layout, Ok(sources.add(Source::new(&name, case.section(&name)))))
    });
    Sls { reference: reference.to_owned(), layout, text }
}

fn yaml(value: &Value) -> String {
    let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
    let text = serde_saphyr::to_string_with_options(&value.to_redacted_json(), options).unwrap_or_default();
    text.trim_end().to_owned() + "\n"
}

fn needs(graph: &Graph) -> String {
    graph.order.iter().filter_map(|id| needs_line(graph, *id)).collect()
}

fn needs_line(graph: &Graph, id: NodeId) -> Option<String> {
    let needs: Vec<String> = graph.node(id).needs.iter().map(|need| need_text(graph, *need)).collect();
    (!needs.is_empty()).then(|| format!("{} needs {}\n", graph.node(id).name, needs.join(", ")))
}

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
