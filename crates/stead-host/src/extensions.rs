//! Extensions at work: they open secrets, and turn files of other formats into documents.

use std::path::Path;
use std::sync::Arc;

use stead_core::call::{Failure, FailureKind};
use stead_core::expr::{Answer, Environment, Stop};
use stead_core::manifest::{Extension, ImportMethod};
use stead_core::value::{Sensitive, Value};

use crate::catalog::Discovery;
use crate::command::{CommandSettings, extension};
use crate::provider::{Context, TraceLevel};

/// Endings of files that are documents already: no extension is asked for them, so that reading one needs no search of
/// the machine.
const DOCUMENTS: [&str; 3] = ["json", "yaml", "yml"];

/// The extensions of this machine, and what their programs are run with.
pub struct Extensions {
    discovery: Arc<Discovery>,
    settings: CommandSettings,
    cx: Context,
}

impl Extensions {
    /// The extensions that were or will be discovered. Each is called with `cx` under its own name.
    pub fn new(discovery: Arc<Discovery>, settings: CommandSettings, cx: Context) -> Self {
        Self { discovery, settings, cx }
    }

    /// Asks every extension that opens secrets for one.
    ///
    /// Guarantees: the plaintext is in no error. Two extensions may know the same secret if they
    /// agree on it. One that fails is traced as a warning; it is the error if no other knows the secret.
    pub fn open_secret(&self, name: &str, from: Option<&str>) -> Result<Sensitive<String>, String> {
        let mut able = self.discovery.extensions().values().filter(|extension| extension.secret.is_some()).peekable();
        if able.peek().is_none() {
            return Err(self.without_vaults());
        }
        let mut opened: Option<Sensitive<String>> = None;
        let mut failed = Vec::new();
        for each in able {
            match self.ask(each, name, from) {
                Ok(Some(plaintext)) => match &opened {
                    Some(known) if known.expose() != plaintext.expose() => return Err(ambiguous(name)),
                    _ => opened = Some(plaintext),
                },
                Ok(None) => {}
                Err(message) => {
                    self.cx.say(TraceLevel::Warn, &message);
                    failed.push(message);
                }
            }
        }
        opened.ok_or_else(|| {
            let why = std::iter::once(not_found(name, from)).chain(failed);
            why.collect::<Vec<_>>().join("; ")
        })
    }

    /// That nothing opens secrets, with what was left out of the search and may do so.
    fn without_vaults(&self) -> String {
        let mut why = "No extensions supporting secrets was found".to_owned();
        for problem in self.discovery.problems().iter().filter(|problem| problem.may_hide_extension()) {
            let help = problem.help().map(|help| format!(" ({help})")).unwrap_or_default();
            why = format!("{why}; {problem}{help}");
        }
        why.replace('\n', "; ")
    }

    fn ask(&self, each: &Extension, name: &str, from: Option<&str>) -> Result<Option<Sensitive<String>>, String> {
        extension::secret(each, name, from, &self.settings, &self.context(each))
            .map_err(|failure| format!("Extension '{}': {}", each.type_name, failure.message.trim_end()))
    }

    /// Has the extension for its ending turn a file into a document. `None` when it is a document already, as far as
    /// its ending says, or when there is no interpreter for it.
    ///
    /// Of several extensions for an ending the first by type is asked, and what it fails at is the answer: reading a file
    /// of another format as a document would only say something misleading.
    pub fn import(&self, file: &Path) -> Option<Result<String, Failure>> {
        let ending = file.extension()?.to_str()?;
        if DOCUMENTS.iter().any(|known| known.eq_ignore_ascii_case(ending)) {
            return None;
        }
        let reads = |method: &ImportMethod| {
            method.file_extensions.iter().any(|own| own.trim_start_matches('.').eq_ignore_ascii_case(ending))
        };
        let each = self.discovery.extensions().values().find(|each| each.import.as_ref().is_some_and(reads))?;
        let cx = self.context(each);
        let printed = extension::import(each, file, &self.settings, &cx);
        Some(printed.and_then(|printed| document(each, printed)).map_err(|failure| {
            // Who reads it says so, too, and does not come to it.
            if let Some(advice) = &each.deprecation {
                cx.say(TraceLevel::Warn, &format!("Extension '{}' is deprecated: {advice}", each.type_name));
            }
            let message = format!("the extension '{}' cannot read it: {}", each.type_name, failure.message.trim_end());
            Failure { message, ..failure }
        }))
    }

    fn context(&self, extension: &Extension) -> Context {
        Context { name: extension.type_name.as_str().into(), ..self.cx.clone() }
    }
}

fn ambiguous(name: &str) -> String {
    format!(
        "Multiple secrets with the same name '{name}' and different values was returned, try specifying a vault as the second \
         argument"
    )
}

fn not_found(name: &str, from: Option<&str>) -> String {
    let within = from.map(|vault| format!(" in vault '{vault}'")).unwrap_or_default();
    format!("Secret '{name}' not found{within}")
}

/// Returns the document that `output` makes of the text that was printed.
fn document(extension: &Extension, printed: String) -> Result<String, Failure> {
    if printed.trim().is_empty() {
        return Err(Failure::new(FailureKind::Protocol, "it printed nothing"));
    }
    let Some(output) = extension.import.as_ref().and_then(|method| method.output.as_ref()) else { return Ok(printed) };
    let wrong = |message: String| Failure::new(FailureKind::Protocol, format!("'output' of its manifest {message}"));
    match output.evaluate(&Printed(printed)) {
        Ok(Value::String(text)) => Ok(text),
        // JSON is a document, too.
        Ok(value @ Value::Object(_)) => Ok(value.to_redacted_json().to_string()),
        Ok(other) => Err(wrong(format!("must return text or an object, but returns {}", other.kind()))),
        Err(Stop::Fault(fault)) => Err(wrong(format!("cannot be evaluated: {}", fault.message))),
        Err(Stop::Missing(_) | Stop::Unknown(_) | Stop::Open(_)) => {
            Err(wrong("depends on something that is not known here".to_owned()))
        }
    }
}

/// All that `output` can see.
struct Printed(String);

impl Environment for Printed {
    fn stdout(&self) -> Answer {
        Answer::Value(Value::from(self.0.as_str()))
    }
}
