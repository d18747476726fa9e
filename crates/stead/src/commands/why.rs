//! `stead graph --why`: what an instance begins after and what begins after it, and why.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value as Json, json};
use stead_core::diag;
use stead_core::graph::{Implied, NeedKind};
use stead_core::id::NodeId;
use stead_engine::{Prepared, Session};

use crate::exit::Exit;
use crate::terminal::{Output, complain, data_as, plain, print};

/// Explains the instances of a name, or of a type and a name as in `resourceId()`.
pub(super) fn why(session: &Session, prepared: &Prepared, name: &str, output: Output) -> Exit {
    let graph = &prepared.graph;
    let is_meant = |id: &NodeId| {
        let found = graph.id_of(*id);
        *found.name == *name || found.to_string().eq_ignore_ascii_case(name)
    };
    let meant: Vec<NodeId> = graph.order.iter().copied().filter(is_meant).collect();
    if meant.is_empty() {
        complain(&format!("error: no instance has the name '{name}'"));
        let names: Vec<String> = graph.order.iter().map(|id| graph.id_of(*id).name.to_string()).collect();
        if let Some(near) = diag::nearest(name, names.iter().map(String::as_str)) {
            complain(&format!("help: {}", diag::did_you_mean(near)));
        }
        return Exit::Unusable;
    }
    let why = Why { prepared, causes: session.causes(prepared) };
    match output {
        Output::Text => print(&meant.iter().map(|id| why.text(*id)).collect::<Vec<_>>().join("\n")),
        output => {
            let instances = meant.iter().map(|id| why.data(*id)).collect::<Vec<Json>>();
            data_as(&json!({ "version": 1, "instances": instances }), output);
        }
    }
    Exit::Success
}

struct Why<'a> {
    prepared: &'a Prepared,
    causes: BTreeMap<Implied, String>,
}

impl Why<'_> {
    /// What an instance needs, and how.
    fn needs(&self, id: NodeId) -> Vec<(NodeId, NeedKind, Option<&str>)> {
        let graph = &self.prepared.graph;
        let cause = |needed: NodeId| {
            let implied = Implied { instance: id, needed };
            let cause = self.causes.get(&implied).map(String::as_str);
            graph.implied.contains(&implied).then(|| cause.unwrap_or_default())
        };
        graph.node(id).needs.iter().map(|need| (need.node, need.kind, cause(need.node))).collect()
    }

    fn needed_by(&self, id: NodeId) -> Vec<(NodeId, NeedKind, Option<&str>)> {
        let all = self.prepared.graph.order.iter();
        let mine =
            all.flat_map(|other| self.needs(*other).into_iter().map(|(node, kind, cause)| (node, *other, kind, cause)));
        mine.filter(|(node, ..)| *node == id).map(|(_, other, kind, cause)| (other, kind, cause)).collect()
    }

    fn text(&self, id: NodeId) -> String {
        let graph = &self.prepared.graph;
        let heading = |id: NodeId| {
            let found = graph.id_of(id);
            plain(&format!("{} '{}'", found.type_name, found.name)).into_owned()
        };
        let mut text = format!("{}\n", heading(id));
        // Writing to a string cannot fail.
        if let Some(container) = graph.container(id) {
            let _ = writeln!(text, "  is nested in {}, and begins after what that depends on", heading(container));
        }
        let (after, before) = (self.needs(id), self.needed_by(id));
        if after.is_empty() && before.is_empty() {
            text.push_str("  depends on no other instance, and none depends on it\n");
        }
        for (intro, links) in [("begins after", after), ("begins before", before)] {
            if !links.is_empty() {
                let _ = writeln!(text, "  {intro}");
            }
            for (other, kind, cause) in links {
                let because = cause.map_or_else(|| stated(kind).to_owned(), |cause| format!("implied by {cause}"));
                let _ = writeln!(text, "    {}: {}", heading(other), plain(&because));
            }
        }
        text
    }

    fn data(&self, id: NodeId) -> Json {
        let graph = &self.prepared.graph;
        let links = |links: Vec<(NodeId, NeedKind, Option<&str>)>| {
            let link = |(other, kind, cause): (NodeId, NeedKind, Option<&str>)| {
                json!({
                    "instance": graph.id_of(other).to_string(),
                    "kind": super::drawing::word(kind),
                    "implied": cause.is_some(),
                    "cause": cause,
                })
            };
            links.into_iter().map(link).collect::<Vec<Json>>()
        };
        json!({
            "id": graph.id_of(id).to_string(),
            "within": graph.container(id).map(|container| graph.id_of(container).to_string()),
            "needs": links(self.needs(id)),
            "neededBy": links(self.needed_by(id)),
        })
    }
}

/// How a document says that one instance waits for another.
fn stated(kind: NeedKind) -> &'static str {
    match kind {
        NeedKind::Require => "stated by 'dependsOn' or reference()",
        NeedKind::Notify => "stated by stateChanged() in 'condition'",
        NeedKind::RequireAny => "stated by 'requireAny'",
        NeedKind::OnChanges => "stated by 'onChanges'",
        NeedKind::OnFailure => "stated by 'onFailure'",
        NeedKind::Order => "stated by 'before', or because both change the same path",
    }
}
