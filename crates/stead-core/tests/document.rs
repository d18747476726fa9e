//! Cases of `corpus/document`: a text, what is found in it, and what it is read into.

mod support;

use std::process::ExitCode;

use stead_core::diag::{self, Diagnostic};
use stead_core::text::{self, Limits, Node, Source, Sources};
use stead_core::{document, text::locate};
use stead_testkit::{Case, Computed, Suite};
use support::{document as show, tree};

fn main() -> ExitCode {
    stead_testkit::main(&[Suite { folder: "document", run }])
}

fn run(case: &Case) -> Result<Computed, String> {
    let (name, text) = written(case)?;
    let limits = limits(case.section("limits"))?;
    let mut sources = Sources::default();
    let id = sources.add(Source::new(name, &text));
    let mut computed = Computed::new();
    let found = if ["value", "spans", "located"].iter().any(|section| case.has(section)) {
        let (root, found) = text::read(id, &text, &limits);
        of_text(case, root.as_ref(), &sources, &mut computed);
        found
    } else {
        let (document, mut found) = document::parse(id, &text, &limits);
        let whole = document::of_tree(id, &text, text::read(id, &text, &limits), &limits);
        if format!("{:?}", (&document, &found)) != format!("{whole:?}") {
            return Err("the document is another one by its tree".to_owned());
        }
        if case.has("portable") {
            found.extend(document.not_portable(&sources));
        }
        if case.has("tree") {
            computed.push(("tree", show::dump(&document)));
        }
        found
    };
    of_findings(case, &found, &sources, &mut computed);
    Ok(computed)
}

fn written(case: &Case) -> Result<(&'static str, String), String> {
    if case.has("escaped") {
        return Ok(("main.yaml", unescaped(case.section("escaped"))));
    }
    let name = ["main.yaml", "main.json"].into_iter().find(|name| case.has(name)).ok_or("the case holds no text")?;
    Ok((name, case.section(name).to_owned()))
}

fn unescaped(text: &str) -> String {
    text.replace("\\t", "\t").replace("\\r", "\r").replace("\\0", "\0").replace("\\u{feff}", "\u{feff}")
}

/// Lines such as `depth 3`.
fn limits(text: &str) -> Result<Limits, String> {
    let mut limits = Limits::default();
    for line in text.lines() {
        let (name, number) = line.split_once(' ').ok_or("a limit is a name and a number")?;
        let number = number.parse().map_err(|_| format!("'{number}' is not a number"))?;
        match name {
            "bytes" => limits.bytes = number,
            "depth" => limits.depth = number,
            "nodes" => limits.nodes = number,
            "aliases" => limits.aliases = number,
            "findings" => limits.findings = number,
            _ => return Err(format!("there is no limit '{name}'")),
        }
    }
    Ok(limits)
}

fn of_text(case: &Case, root: Option<&Node>, sources: &Sources, computed: &mut Computed) {
    if case.has("value") {
        computed.push(("value", root.map(tree::value).unwrap_or_default()));
    }
    if case.has("spans") {
        computed.push(("spans", root.map(|root| tree::spans(root, sources)).unwrap_or_default()));
    }
    if case.has("located") {
        computed.push(("located", root.map(|root| located(root, case.section("parts"), sources)).unwrap_or_default()));
    }
}

/// Where each line of `parts` stands that occurs in a string of the tree.
fn located(root: &Node, parts: &str, sources: &Sources) -> String {
    let mut out = Vec::new();
    for (path, node) in tree::scalars(root) {
        for part in parts.lines() {
            let Some(at) = node.as_str().and_then(|text| text.find(part)) else { continue };
            let span = locate(sources, node.span, at..at + part.len());
            out.push(format!("{path} '{part}' {}\n", tree::slice(span, sources)));
        }
    }
    out.concat()
}

fn of_findings(case: &Case, found: &[Diagnostic], sources: &Sources, computed: &mut Computed) {
    computed.push(("diagnostics", support::findings(found, sources)));
    if case.has("rendered") {
        computed.push(("rendered", found.iter().map(|finding| diag::render(finding, sources, false)).collect()));
    }
    if case.has("json") {
        let lines = found.iter().map(|finding| format!("{:#}\n", diag::to_json(finding, sources)));
        computed.push(("json", lines.collect()));
    }
}
