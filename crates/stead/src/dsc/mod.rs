//! The commands for programs, with the options, results and exit codes of dsc.

mod check;
mod config;
mod describe;
mod include;
pub(crate) mod listing;
mod notes;
mod progress;
mod resource;
pub(crate) mod validate;

use stead_core::diag::{Diagnostic, Severity};
use stead_core::text::Sources;
use stead_core::{document, parameters};
use stead_engine::{CallRefusal, Session, finding_line};

use crate::exit::Exit;
use crate::input::{self, BadParameters, Text, Unreadable};
use crate::process_env::ProcessEnv;
use crate::request::Given;

pub(crate) use config::config;
pub(crate) use listing::{extensions, functions, schema};
pub(crate) use resource::resource;

/// The text of an input, if there is one.
fn given(session: &Session, input: Option<&Given>) -> Result<Option<Text>, Exit> {
    input.map(|given| input::given(session, given).map_err(|error| unreadable(&error))).transpose()
}

/// A session whose relative paths start from where this process is.
fn session_here(env: &ProcessEnv) -> Session {
    env.host.session(input::current_folder())
}

fn unreadable(error: &Unreadable) -> Exit {
    tracing::error!("{error}");
    // It is not what the file says that is wrong.
    if matches!(error, Unreadable::Import { .. }) { Exit::DscError } else { Exit::DscInput }
}

fn bad_parameters(bad: &BadParameters, sources: &Sources) -> Exit {
    match bad {
        BadParameters::Unreadable(error) => return unreadable(error),
        BadParameters::Findings(findings) => tell(findings, sources),
    }
    Exit::DscInput
}

/// Reports findings in one line each, the way messages are printed here.
fn tell(findings: &[Diagnostic], sources: &Sources) {
    for finding in findings {
        let (line, kind) = (finding_line(finding, sources), kind_as_dsc(finding));
        match finding.severity {
            Severity::Error => tracing::error!("{kind}{line}"),
            Severity::Warning => tracing::warn!("{kind}{line}"),
        }
    }
}

/// What messages of dsc about such a mistake begin with, which scripts look for.
fn kind_as_dsc(finding: &Diagnostic) -> &'static str {
    match finding.code {
        code if *code == document::codes::UNKNOWN_KEY => "unknown field: ",
        code if *code == parameters::CIRCULAR => {
            "Circular dependency or unresolvable parameter references detected in parameters: "
        }
        _ if finding.message == parameters::NOT_THERE => "Parameter input failure: JSON: missing field `parameters`: ",
        code if parameters::CODES.contains(&code) => "Parameter input failure: ",
        _ => "",
    }
}

/// Reports why a call of a resource was refused, with the exit code for that.
fn refused(refusal: CallRefusal) -> Exit {
    match refusal {
        CallRefusal::NotFound(message) => {
            tracing::error!("{message}");
            Exit::DscNotFound
        }
        CallRefusal::Failed(message) => {
            tracing::error!("{message}");
            Exit::DscError
        }
        CallRefusal::Input(findings) => {
            for finding in findings {
                tracing::error!("{}", finding.message);
            }
            Exit::DscInput
        }
    }
}
