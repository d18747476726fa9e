//! The recorded cases of Idem: each is converted, and the graph of the document has the needs that its requisites say.

#![expect(clippy::unwrap_used, reason = "a test may fail this way")]

#[path = "../../stead-core/tests/support/brief.rs"]
mod brief;
#[path = "../../stead-core/tests/support/catalog.rs"]
mod catalog;
#[path = "support/converted.rs"]
mod converted;
#[path = "../../stead-core/tests/support/seal.rs"]
mod seal;

use serde_json::Value as Json;
use stead_core::diag::Diagnostic;
use stead_core::graph::{Graph, Need, NeedKind, Node};
use stead_core::text::{Source, Sources};
use stead_sls::{Conversion, Converted, Layout, Sls, convert};

/// Cases that name a state that does not exist.
const REFUSED: [&str; 2] = ["missing_requisite", "dangling_self"];

#[test]
#[expect(clippy::disallowed_methods, reason = "the cases are a file; the core itself reads none")]
fn recorded_cases_have_the_needs_that_they_state() {
    let path = stead_testkit::repository().join("../shared/corpus/idem/cases.json");
    let Ok(text) = std::fs::read_to_string(&path) else {
        let reason = format!("there is no {}", path.display());
        return stead_testkit::skip("recorded_cases_have_the_needs_that_they_state", &reason);
    };
    let cases: serde_json::Map<String, Json> = serde_json::from_str(&text).unwrap();
    for (name, case) in &cases {
        let states = case["in"]["states"].as_object().unwrap();
        let (document, findings) = converted(&Json::Object(states.clone()).to_string());
        let codes: Vec<&str> = findings.iter().map(|finding| finding.code.id).collect();
        assert_eq!(document.is_none(), REFUSED.contains(&name.as_str()), "{name}: {codes:?}");
        let Some(document) = document else {
            assert_eq!(codes, ["E1003"], "{name}");
            continue;
        };
        let expected: &[&str] = match name.split('_').next() {
            Some("prereq") => &["W1006"],
            Some("listen") => &["W1007"],
            _ => &[],
        };
        assert_eq!(codes, expected, "{name}");
        let graph = converted::graph(&document.value().to_redacted_json().to_string()).unwrap();
        for (id, state) in states {
            check_state(name, &graph, id, state);
        }
    }
}

fn converted(text: &str) -> (Option<Converted>, Vec<Diagnostic>) {
    let mut sources = Sources::default();
    let source = sources.add(Source::new("case.sls", text));
    match convert(&[Sls { reference: "case".to_owned(), layout: Layout::Single, text: Ok(source) }], &sources) {
        Conversion::Done { document, findings } => (document, findings),
        Conversion::Needs(files) => panic!("a case includes {files:?}"),
    }
}

fn node<'g>(graph: &'g Graph, name: &str) -> &'g Node {
    graph.iter().find(|(_, node)| *node.name == *name).unwrap_or_else(|| panic!("there is no '{name}'")).1
}

fn has(graph: &Graph, from: &str, kind: NeedKind, to: &str) -> bool {
    let is_wanted = |need: &Need| need.kind == kind && *graph.node(need.node).name == *to;
    node(graph, from).needs.iter().any(is_wanted)
}

/// Checks that the graph has the needs that the requisites of a state say; a pattern stands for two states.
fn check_state(name: &str, graph: &Graph, id: &str, state: &Json) {
    let arguments = state.as_object().unwrap().values().flat_map(|arguments| arguments.as_array().unwrap());
    for (key, value) in arguments.filter_map(Json::as_object).flatten() {
        let targets = value.as_array().into_iter().flatten().filter_map(Json::as_object).flat_map(|each| each.values());
        for target in targets.filter_map(Json::as_str) {
            let targets = if target == "w*" { vec!["w1", "w2"] } else { vec![target] };
            for target in targets {
                let (watch, listen) = (format!("{id}_watch"), format!("{id}_listen"));
                let holds = match key.as_str() {
                    "require" => has(graph, id, NeedKind::Require, target),
                    "require_any" => has(graph, id, NeedKind::RequireAny, target),
                    "onchanges" => has(graph, id, NeedKind::OnChanges, target),
                    "watch" => {
                        has(graph, id, NeedKind::Require, target)
                            && has(graph, &watch, NeedKind::OnChanges, target)
                            && has(graph, &watch, NeedKind::Require, id)
                    }
                    "listen" => has(graph, &listen, NeedKind::OnChanges, target),
                    "prereq" => has(graph, target, NeedKind::Order, id),
                    _ => true,
                };
                assert!(holds, "{name}: {id} {key} {target}");
            }
        }
    }
    if name == "arg_bind_waits_for_source" && id == "b" {
        assert!(has(graph, "b", NeedKind::Require, "a"), "{name}");
    }
}
