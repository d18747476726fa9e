//! Reading the desired state.
//!
//! Guarantees: no message quotes a value, because any value may be a secret that was put in the wrong place.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value as Json};
use stead_core::call::{Failure, FailureKind};
use stead_core::diag::nearest;
use stead_host::provider::{Context, Plain};

/// The properties of one instance.
pub(crate) struct Input<'a> {
    members: &'a Map<String, Json>,
}

impl<'a> Input<'a> {
    /// Takes an object whose members are all known and none of which can only be read.
    pub(crate) fn read(plain: &'a Plain, known: &[&str], read_only: &[&str]) -> Result<Self, Failure> {
        let Json::Object(members) = plain.expose() else {
            return Err(failure(FailureKind::Invalid, "", "the properties have to be an object"));
        };
        if let Some(name) = members.keys().find(|name| !known.contains(&name.as_str())) {
            let message = if read_only.contains(&name.as_str()) {
                format!("the property '{name}' can only be read. Leave it out")
            } else {
                let hint = nearest(name, known.iter().copied());
                let hint = hint.map(|hint| format!(". Did you mean '{hint}'?")).unwrap_or_default();
                format!("there is no property '{name}'{hint}")
            };
            return Err(invalid(name, message));
        }
        Ok(Self { members })
    }

    /// A text.
    pub(crate) fn text(&self, name: &str) -> Result<Option<&'a str>, Failure> {
        match self.json(name) {
            None => Ok(None),
            Some(Json::String(text)) => Ok(Some(text)),
            Some(other) => Err(not_a(name, "text", other)),
        }
    }

    /// True or false.
    pub(crate) fn flag(&self, name: &str) -> Result<Option<bool>, Failure> {
        match self.json(name) {
            None => Ok(None),
            Some(Json::Bool(truth)) => Ok(Some(*truth)),
            Some(other) => Err(not_a(name, "true or false", other)),
        }
    }

    /// Anything.
    pub(crate) fn json(&self, name: &str) -> Option<&'a Json> {
        // There are few members, and most names are asked for in vain: comparing is faster than hashing.
        self.members.iter().find(|(own, _)| *own == name).map(|(_, value)| value)
    }

    /// Whether it is there.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.json(name).is_some()
    }

    /// A path, as written and resolved.
    pub(crate) fn path(&self, name: &str, cx: &Context) -> Result<Option<(&'a str, PathBuf)>, Failure> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        if text.is_empty() || text.contains('\0') {
            return Err(invalid(name, format!("'{name}' has to be a path")));
        }
        if text == "~" || text.starts_with("~/") {
            let hint = "Write [path(envvar('HOME'), ...)] for a home, './~' for something of that name";
            return Err(invalid(name, format!("'~' in '{name}' is not replaced by a home. {hint}")));
        }
        Ok(Some((text, cx.root.join(text))))
    }

    /// The path of what is no directory, which has to be there.
    pub(crate) fn required_file(&self, name: &str, cx: &Context) -> Result<(&'a str, PathBuf), Failure> {
        let (text, path) = self.required_path(name, cx)?;
        if text.len() > 1 && text.ends_with('/') {
            return Err(invalid(name, format!("'{name}' ends in '/', as only the path of a directory does")));
        }
        Ok((text, path))
    }

    /// A path that has to be there.
    pub(crate) fn required_path(&self, name: &str, cx: &Context) -> Result<(&'a str, PathBuf), Failure> {
        self.path(name, cx)?.ok_or_else(|| invalid(name, format!("the property '{name}' is missing")))
    }
}

/// A failure about a property, or about the whole when its name is empty.
pub(crate) fn failure(kind: FailureKind, property: &str, message: impl Into<String>) -> Failure {
    let property = (!property.is_empty()).then(|| format!("/{}", property.replace('~', "~0").replace('/', "~1")));
    Failure { kind, message: message.into(), property }
}

/// The failure that a property makes no sense.
pub(crate) fn invalid(property: &str, message: impl Into<String>) -> Failure {
    failure(FailureKind::Invalid, property, message)
}

/// The failure that the system refused something.
pub(crate) fn refused(property: &str, message: impl Into<String>) -> Failure {
    failure(FailureKind::System, property, message)
}

/// The failure that the system refused something, with what it said.
pub(crate) fn cannot(doing: &str, path: &Path, error: impl Into<io::Error>) -> Failure {
    let reason = stead_host::fs::reason(&error.into());
    refused("path", format!("cannot {doing} '{}': {reason}", path.display()))
}

fn not_a(name: &str, wanted: &str, found: &Json) -> Failure {
    invalid(name, format!("'{name}' has to be {wanted}, not {}", kind(found)))
}

/// The word that messages use for a kind of JSON value.
pub(crate) fn kind(json: &Json) -> &'static str {
    match json {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "text",
        Json::Array(_) => "an array",
        Json::Object(_) => "an object",
    }
}
