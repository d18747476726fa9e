//! Documents that SLS files became, resolved.

use std::collections::BTreeSet;

use stead_core::document;
use stead_core::graph::{Facts, Graph, Inputs, Names, Resolution, Values, resolve};
use stead_core::parameters::Supplied;
use stead_core::text::{Limits, Source, Sources};

use super::{brief, catalog, seal};

/// The graph of a document that must be without findings, with a resource of each type that it names.
pub(crate) fn graph(text: &str) -> Result<Graph, String> {
    let mut sources = Sources::default();
    let id = sources.add(Source::new("document", text));
    let (document, findings) = document::parse(id, text, &Limits::default());
    if !findings.is_empty() {
        return Err(format!("{text}\n{}", brief::findings(&findings, &sources)));
    }
    let types: BTreeSet<_> = document.resources.iter().map(|instance| instance.type_name.value.clone()).collect();
    let lines: Vec<String> = types.iter().map(|each| format!("{each} resource 1.0.0 get set test")).collect();
    let (parameters, facts, catalog) = (Supplied::default(), Facts::new(), catalog::Known::with(&lines.join("\n"))?);
    let inputs = Inputs {
        folder: "",
        catalog: &catalog,
        parameters: &parameters,
        facts: &facts,
        seal: &seal::Legible,
        version: "3.2.0",
        names: Names::Unique,
        values: Values::Open,
    };
    match resolve(&document.into(), &inputs, &mut sources) {
        Resolution::Graph(graph, findings) if findings.is_empty() => Ok(graph),
        Resolution::Graph(_, findings) | Resolution::Faulty { findings, .. } => {
            Err(format!("{text}\n{}", brief::findings(&findings, &sources)))
        }
        Resolution::Needs(wants) => Err(format!("{text}\nneeds {wants:?}")),
    }
}
