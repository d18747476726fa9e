//! `resource check`

use serde_json::{Value as Json, json};
use stead_core::diag::{Diagnostic, any_error, to_json};
use stead_core::manifest::Kind;
use stead_core::value::Value;
use stead_host::check::{Depth, Subject, check as examine};

use super::{given, tell};
use crate::args::{Check, Output};
use crate::engine::{Called, Refusal};
use crate::exit::Exit;
use crate::output::{data_as, print};
use crate::session::Session;

/// Checks a resource with every desired state that is given.
pub(super) fn check(session: Session, arguments: &Check) -> Exit {
    match examined(session, arguments) {
        Ok(exit) | Err(exit) => exit,
    }
}

fn examined(session: Session, arguments: &Check) -> Result<Exit, Exit> {
    let inline = arguments.input.iter().map(|text| given(&session, Some(text), None));
    let files = arguments.file.iter().map(|path| given(&session, None, Some(path)));
    let texts = inline.chain(files).collect::<Result<Vec<_>, _>>()?;
    let mut called = Called::find(session, &arguments.resource, None).map_err(super::resource::refused)?;
    if called.manifest.kind != Kind::Resource {
        tracing::error!("'{}' is no plain resource; only those are checked", called.manifest.type_name);
        return Err(Exit::DscError);
    }
    let mut findings = Vec::new();
    for text in texts.iter().flatten() {
        let desired = desired(&mut called, text)?;
        let depth = if arguments.set { Depth::Set } else { Depth::Look };
        let cx = called.session.context(called.manifest.type_name.as_str());
        let provider = called.session.provider(&called.manifest);
        let built_in = called.session.built_in.get(&called.manifest.type_name).map(|each| &each.schema);
        let subject = Subject { manifest: &called.manifest, provider: &*provider, schema: built_in };
        for finding in examine(subject, &cx, &desired, depth) {
            if !findings.contains(&finding) {
                findings.push(finding);
            }
        }
    }
    report(&called, arguments, &findings);
    Ok(if any_error(&findings) { Exit::DscError } else { Exit::Success })
}

/// The state as it is handed to programs: with its secrets in their wrappings.
fn desired(called: &mut Called, text: &crate::input::Text) -> Result<Json, Exit> {
    match crate::input::value(&mut called.session, text) {
        Ok(value @ Value::Object(_)) => Ok(value.to_redacted_json()),
        Ok(_) => Err(super::resource::refused(Refusal::Failed("a desired state has to be an object".to_owned()))),
        Err(findings) => {
            tell(&findings, &called.session.sources);
            Err(Exit::DscInput)
        }
    }
}

fn report(called: &Called, arguments: &Check, findings: &[Diagnostic]) {
    let sources = &called.session.sources;
    if arguments.output != Output::Text {
        let all: Vec<Json> = findings.iter().map(|finding| to_json(finding, sources)).collect();
        data_as(&json!({ "version": 1, "findings": all }), arguments.output);
        return;
    }
    for finding in findings {
        print(&format!("{}\n", finding.brief(sources)));
        finding.help.iter().for_each(|help| print(&format!("  help: {help}\n")));
    }
    let unset = if arguments.set { "" } else { "; set was not called, --set does" };
    let count = if findings.is_empty() { "no mistakes".to_owned() } else { findings.len().to_string() };
    print(&format!("{}: {count} found{unset}\n", called.manifest.type_name));
}
