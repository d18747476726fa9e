//! `config resolve`, and documents that are named by an include.

use serde_json::{Value as Json, json};
use stead_core::expr::FactKey;
use stead_core::parameters::Supplied;
use stead_core::text::{self, Limits, SourceId};
use stead_core::value::{Object, Value, redacting_wrapped};

use super::tell;
use crate::exit::Exit;
use crate::input::{self, Text};
use crate::terminal::{OutputFormat, data};
use stead_engine::{Prepared, Session};

/// What an include names.
pub(super) struct Included {
    /// The document.
    pub(super) document: Text,
    /// Its parameters, when the include has any.
    pub(super) parameters: Option<Supplied>,
}

/// Reads an include and what it names.
pub(super) fn read(session: &mut Session, text: &Text) -> Result<Included, Exit> {
    let include = input::value(session, text).map_err(|findings| {
        tell(&findings, &session.sources);
        Exit::DscError
    })?;
    let include = include.as_object().ok_or_else(|| wrong("an include must be an object"))?;
    let document = named(session, include, ["configurationFile", "configurationContent"])?;
    let document = document.ok_or_else(|| wrong("an include needs 'configurationFile' or 'configurationContent'"))?;
    let parameters = match named(session, include, ["parametersFile", "parametersContent"])? {
        Some(text) => Some(supplied(session, &text)?),
        None => None,
    };
    Ok(Included { document, parameters })
}

/// The text that one of two keys gives: a path, or the text itself.
fn named(session: &Session, include: &Object, [file, content]: [&str; 2]) -> Result<Option<Text>, Exit> {
    match (include.get(file), include.get(content)) {
        (None, None) => Ok(None),
        (Some(Value::String(path)), None) => match session.machine().fact(&FactKey::Document(path.clone())) {
            Ok(Value::String(text)) => Ok(Some(Text { name: path.clone(), text })),
            Ok(_) => Err(Exit::DscError),
            Err(why) => Err(wrong(&why)),
        },
        (None, Some(Value::String(text))) => Ok(Some(Text { name: format!("<{content}>"), text: text.clone() })),
        _ => Err(wrong(&format!("an include takes either '{file}' or '{content}', as text"))),
    }
}

fn supplied(session: &mut Session, text: &Text) -> Result<Supplied, Exit> {
    let nowhere = Supplied::default();
    let supplied = input::tree(session, text)
        .and_then(|tree| Supplied::of_tree(&tree).map_err(|finding| vec![finding.placed(Some(tree.span), &nowhere)]));
    supplied.map_err(|findings| {
        tell(&findings, &session.sources);
        Exit::DscError
    })
}

fn wrong(why: &str) -> Exit {
    tracing::error!("{why}");
    Exit::DscError
}

/// Prints the document that an include names, and the values of its parameters.
pub(super) fn print_resolved(prepared: &Prepared, format: Option<OutputFormat>) -> Exit {
    let Some(scope) = prepared.graph.scopes.first() else { return Exit::DscError };
    let values = || Value::Object(scope.parameters.clone()).to_redacted_json();
    let parameters = if scope.parameters.is_empty() { Json::Null } else { values() };
    let document = prepared.sources.get(scope.document.source).map(|source| as_written(&source.text));
    data(&json!({ "configuration": document, "parameters": parameters }), format);
    Exit::Success
}

fn as_written(text: &str) -> Json {
    let (node, _) = text::read(SourceId::default(), text, &Limits::default());
    node.map_or(Json::Null, |node| redacting_wrapped(node.literal()).to_redacted_json())
}
