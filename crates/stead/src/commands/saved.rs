//! Plans in files: `plan --out`, `apply` of such a file, and `show`.

use std::fs::File;
use std::io::Read as _;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use stead_core::diag::counted;
use stead_core::event::Mode;
use stead_core::run::Run;
use stead_engine::{Execution, Parts, Prepared, SavedPlan, Session, Summary, error_chain};
use stead_host::fs::Writes;

use super::files;
use super::report::{Printer, Style};
use crate::args::{Apply, Document, Output, Show};
use crate::exit::Exit;
use crate::input;
use crate::output::{complain, data_as, print};

/// How many bytes a saved plan may have: several times what a document may.
const MOST_BYTES: usize = 256 * 1024 * 1024;

/// Writes a plan into a file that only this user can read.
pub(super) fn save(
    path: &Path,
    (document, session, prepared): (&Document, &Session, &Prepared),
    (run, summary): (&Run, &Summary),
) -> Result<(), Exit> {
    if run.report().cancelled {
        return Err(Exit::Cancelled);
    }
    if summary.has_failures(run) {
        complain("error: the plan was not saved because it has failures");
        return Err(Exit::Failed);
    }
    if beginning(path).is_some_and(|begin| !begin.is_empty() && begin != SavedPlan::BEGIN.as_bytes()) {
        complain(&format!("error: the plan was not saved: '{}' exists and is not a saved plan", path.display()));
        complain("help: choose another file name, or remove the file first");
        return Err(Exit::Failed);
    }
    let parts = Parts { only: document.only.clone(), skip: document.skip.clone() };
    let printer = Printer::new(Style::saved(), Arc::clone(&prepared.sources));
    let plan = SavedPlan::new(session, prepared, run, parts, (printer.text(run, summary), summary.has_changes()));
    let text = plan.to_text();
    if text.len() > MOST_BYTES {
        complain(&format!("error: the plan was not saved because it has more than {MOST_BYTES} bytes"));
        return Err(Exit::Failed);
    }
    let written = std::path::absolute(path).map_err(|error| stead_host::fs::reason(&error)).and_then(|absolute| {
        files::write(&absolute, text.as_bytes(), 0o600, &Writes::default()).map_err(|error| error_chain(&error))
    });
    written.map_err(|reason| {
        complain(&format!("error: the plan was not saved: {reason}"));
        Exit::Failed
    })
}

/// What a file begins with, as much as tells a plan from something else.
fn beginning(path: &Path) -> Option<Vec<u8>> {
    let mut begin = Vec::new();
    let file = path.is_file().then(|| File::open(path).ok()).flatten()?;
    file.take(SavedPlan::BEGIN.len() as u64).read_to_end(&mut begin).ok().map(|_| begin)
}

/// The plan in a file; `None` where it holds something else, such as a document.
pub(super) fn read(path: &Path) -> Option<Result<SavedPlan, Exit>> {
    // What cannot be read is reported as a document that cannot.
    beginning(path).filter(|begin| path.as_os_str() != "-" && begin == SavedPlan::BEGIN.as_bytes())?;
    let unusable = |error: &dyn std::fmt::Display| {
        complain(&format!("error: {error}"));
        Exit::Unusable
    };
    let text = match input::read_at_most(path, MOST_BYTES) {
        Ok(text) => text.text,
        Err(error) => return Some(Err(unusable(&error))),
    };
    Some(SavedPlan::read(&text).map_err(|error| unusable(&format!("{}: {error}", path.display()))))
}

/// The command line that the plan stands for.
pub(super) fn document(plan: &SavedPlan, arguments: Apply) -> Result<Apply, Exit> {
    let supplied = &arguments.document.supplied;
    let others = supplied.set.iter().map(|(name, _)| name).find(|name| !plan.secrets.contains(name));
    if supplied.parameters.is_some()
        || !supplied.parameters_file.is_empty()
        || supplied.root.is_some()
        || arguments.document.system_root.is_some()
    {
        return Err(refused("a saved plan has its own parameters, '--relative-to' and '--system-root'"));
    }
    if let Some(name) = others {
        return Err(refused(&format!("'{name}' is not a secret parameter of the saved plan")));
    }
    if !arguments.document.only.is_empty() || !arguments.document.skip.is_empty() {
        return Err(refused("'--only' and '--skip' cannot be used with a saved plan"));
    }
    let is_given = |name: &String| {
        supplied.set.iter().any(|(given, _)| given == name) || std::env::var_os(format!("STEAD_PARAM_{name}")).is_some()
    };
    if let Some(name) = plan.secrets.iter().find(|name| !is_given(name)) {
        complain(&format!("error: the saved plan needs the secret parameter '{name}'"));
        complain(&format!("help: set the environment variable STEAD_PARAM_{name}, or pass --set {name}=VALUE"));
        return Err(Exit::Unusable);
    }
    Ok(Apply { document: arguments.document.of_plan(plan), ..arguments })
}

fn refused(message: &str) -> Exit {
    complain(&format!("error: {message}"));
    complain("help: make a new plan with 'stead plan --out'");
    Exit::Unusable
}

/// Plans once more, and refuses where anything else would be done than what is saved.
pub(super) fn confirm(
    plan: &SavedPlan,
    session: &Session,
    prepared: &Prepared,
    width: NonZeroUsize,
) -> Result<(), Exit> {
    if !plan.is_of(prepared) {
        return Err(refused("a document that the saved plan includes has changed"));
    }
    let run = session.run(prepared, Execution::new(Mode::PLAN, width)).map_err(|error| {
        complain(&format!("error: {}", error_chain(&error)));
        Exit::Failed
    })?;
    if run.report().cancelled {
        return Err(Exit::Cancelled);
    }
    let deviations = plan.deviations(&run);
    if deviations.is_empty() {
        return Ok(());
    }
    complain(&format!(
        "error: the saved plan is out of date for {}; nothing was changed",
        counted(deviations.len(), "instance")
    ));
    for deviation in deviations.iter().take(MAX_DEVIATIONS) {
        let or = |words: &Option<String>, none: &str| words.clone().unwrap_or_else(|| none.to_owned());
        complain(&format!("  {}", deviation.instance));
        complain(&format!("    planned: {}", or(&deviation.planned, "not in the plan")));
        complain(&format!("    now:     {}", or(&deviation.now, "not in the document")));
    }
    if deviations.len() > MAX_DEVIATIONS {
        complain(&format!("  and {}", counted(deviations.len() - MAX_DEVIATIONS, "more instance")));
    }
    complain("help: make a new plan with 'stead plan --out'");
    Err(Exit::Unusable)
}

/// How many instances are listed for which a plan no longer holds.
const MAX_DEVIATIONS: usize = 20;

/// Shows a saved plan as it was shown when it was made.
pub(crate) fn show(arguments: &Show) -> Exit {
    let path = &arguments.file;
    let plan = match read(path) {
        Some(Ok(plan)) => plan,
        Some(Err(exit)) => return exit,
        None => {
            match input::read(path) {
                Ok(_) => complain(&format!("error: {} is not a saved plan", path.display())),
                Err(error) => complain(&format!("error: {error}")),
            }
            return Exit::Unusable;
        }
    };
    match arguments.output {
        Output::Text => {
            print(&plan.text);
            if let Some(root) = &plan.system_root {
                complain(&format!("note: it is for the operating system in {}", root.display()));
            }
            if !plan.secrets.is_empty() {
                complain(&format!("note: to apply it, these parameters must be given: {}", plan.secrets.join(", ")));
            }
        }
        output => data_as(
            &serde_json::json!({
                "version": 1,
                "changes": plan.changes,
                "document": plan.name,
                "root": plan.root,
            "systemRoot": plan.system_root,
                "parameters": plan.parameters,
                "secrets": plan.secrets,
                "only": plan.only,
                "skip": plan.skip,
                "instances": plan.instances,
            }),
            output,
        ),
    }
    Exit::Success
}
