//! Plans in files: `plan --out`, `apply` of such a file, and `show`.

pub(crate) mod plan_file;
mod text;

pub(crate) use text::reported;
pub(super) use text::{is_unknown, removes, text};

use std::path::Path;

use stead_core::diag::counted;
use stead_core::event::Mode;
use stead_core::report::Record;
use stead_core::run::Run;
use stead_engine::{PlanError, Planned, RunOptions, SavedPlan, error_chain};

use super::Done;
use super::ready::Ready;
use crate::exit::Exit;
use crate::input;
use crate::request::{DocumentRequest, ShowRequest};
use crate::terminal::{Output, complain, data_as, plain, print_coloured};

/// Writes a plan into a file that only this user can read.
pub(super) fn save(path: &Path, ready: &Ready, done: &Done) -> Result<(), Exit> {
    plan_file::write(path, SavedPlan::BEGIN, &text_of(ready, done)?)?;
    warn_of_open_versions(&done.run);
    Ok(())
}

/// Prints a plan, as a member of JSON.
pub(super) fn print(ready: &Ready, done: &Done) -> Result<(), Exit> {
    data_as(&serde_json::json!({ "plan": text_of(ready, done)? }), Output::Json);
    warn_of_open_versions(&done.run);
    Ok(())
}

fn text_of(ready: &Ready, Done { run, summary }: &Done) -> Result<String, Exit> {
    if run.report().cancelled {
        return Err(Exit::Cancelled);
    }
    if summary.has_failures(run) {
        complain("error: the plan was not saved because it has failures");
        return Err(Exit::Failed);
    }
    let plan = SavedPlan::new(&ready.session, &ready.prepared, run, ready.parts.clone());
    plan.to_text().map_err(|error| {
        complain(&format!("error: the plan was not saved: {}", error_chain(&error)));
        Exit::Failed
    })
}

/// Says of which packages a plan does not show what it installs.
fn warn_of_open_versions(run: &Run) {
    let is_open = |record: &&Record| record.changed().is_some_and(|changed| changed.effects.leaves_versions_open());
    let names = run.report().records().iter().filter(is_open).filter_map(|record| record.instance.as_ref());
    let names: Vec<String> = names.map(|path| format!("'{}'", plain(path.name()))).collect();
    if !names.is_empty() {
        complain(&format!(
            "warning: the plan does not bind the versions of {}: there are no package lists",
            names.join(", ")
        ));
        complain("help: update the package lists first, with 'apt-get update' or 'dnf makecache'");
    }
}

/// The plan that a file is to be applied from, if it is one.
///
/// Guarantees: root applies only what nobody else could have written, and nobody what was planned on another machine.
pub(super) fn to_apply(path: &Path) -> Option<Result<SavedPlan, Exit>> {
    let text = plan_file::own(path, SavedPlan::BEGIN)?;
    Some(text.and_then(|text| parsed(path, &text)).and_then(|plan| of_this_machine(plan, path)))
}

fn parsed(path: &Path, text: &str) -> Result<SavedPlan, Exit> {
    SavedPlan::read(text).map_err(|error| unusable_plan(path, &error))
}

/// A plan that was not made on another machine.
pub(super) fn of_this_machine(plan: SavedPlan, path: &Path) -> Result<SavedPlan, Exit> {
    plan.check_machine().map_err(|error| unusable_plan(path, &error))?;
    if plan.is_of_unknown_machine() {
        complain("note: this machine has no /etc/machine-id; it is not known whether the plan was made on it");
    }
    Ok(plan)
}

fn unusable(error: &dyn std::fmt::Display) -> Exit {
    complain(&format!("error: {error}"));
    Exit::Unusable
}

fn unusable_plan(path: &Path, error: &PlanError) -> Exit {
    refused(&format!("{}: {}", path.display(), error_chain(error)))
}

/// The document of a plan, as it is applied with what else was asked for.
pub(super) fn document(plan: &SavedPlan, request: DocumentRequest) -> Result<DocumentRequest, Exit> {
    let supplied = &request.supplied;
    let others = supplied.single.iter().map(|(name, _)| name).find(|name| !plan.secrets.contains(name));
    if supplied.parameters.is_some()
        || !supplied.files.is_empty()
        || supplied.root.is_some()
        || request.system_root.is_some()
    {
        return Err(refused("a saved plan has its own parameters, '--relative-to' and '--system-root'"));
    }
    if let Some(name) = others {
        return Err(refused(&format!("'{name}' is not a secret parameter of the saved plan")));
    }
    if !request.parts.only.is_empty() || !request.parts.skip.is_empty() {
        return Err(refused("'--only' and '--skip' cannot be used with a saved plan"));
    }
    let is_given = |name: &String| {
        supplied.single.iter().any(|(given, _)| given == name)
            || std::env::var_os(format!("STEAD_PARAM_{name}")).is_some()
    };
    if let Some(name) = plan.secrets.iter().find(|name| !is_given(name)) {
        let name = plain(name);
        complain(&format!("error: the saved plan needs the secret parameter '{name}'"));
        complain(&format!("help: set the environment variable STEAD_PARAM_{name}, or pass --set {name}=VALUE"));
        return Err(Exit::Unusable);
    }
    request.of_plan(plan).map_err(|error| unusable(&error))
}

fn refused(message: &str) -> Exit {
    Source::Saved.refused(message)
}

/// Where a plan is from that is to be done.
#[derive(Clone, Copy)]
pub(super) enum Source {
    /// A file.
    Saved,
    /// It was shown, and the user said yes to it.
    Shown,
}

impl Source {
    fn name(self) -> &'static str {
        match self {
            Self::Saved => "the saved plan",
            Self::Shown => "the plan that was shown",
        }
    }

    fn refused(self, message: &str) -> Exit {
        complain(&format!("error: {message}"));
        self.help();
        Exit::Unusable
    }

    fn help(self) {
        complain(match self {
            Self::Saved => "help: make a new plan with 'stead plan --out'",
            Self::Shown => "help: apply the document again, and look at the plan",
        });
    }
}

/// Plans once more, and refuses where anything else would be done than what a plan says; returns what it has shown.
pub(super) fn confirm((plan, source): (&SavedPlan, Source), ready: &Ready) -> Result<Planned, Exit> {
    let Ready { session, prepared, width, .. } = ready;
    if !plan.is_of(prepared) {
        return Err(source.refused(&format!("a document that {} includes has changed", source.name())));
    }
    let run = session.run(prepared, RunOptions::new(Mode::PLAN, *width)).map_err(|error| {
        complain(&format!("error: {}", error_chain(&error)));
        Exit::Failed
    })?;
    if run.report().cancelled {
        return Err(Exit::Cancelled);
    }
    let deviations = plan.deviations(&run);
    if deviations.is_empty() {
        let Some(path) = plan.changed_reads(session, &run).first().map(|path| plain(path).into_owned()) else {
            return Ok(plan.binding(&run));
        };
        let message = format!("'{path}', which {} reads, has changed; nothing was changed", source.name());
        return Err(source.refused(&message));
    }
    complain(&format!(
        "error: {} is out of date for {}; nothing was changed",
        source.name(),
        counted(deviations.len(), "instance")
    ));
    for deviation in deviations.iter().take(MAX_DEVIATIONS) {
        let or = |words: &Option<String>, none: &str| words.clone().unwrap_or_else(|| none.to_owned());
        complain(&format!("  {}", plain(&deviation.instance)));
        complain(&format!("    planned: {}", plain(&or(&deviation.planned, "not in the plan"))));
        complain(&format!("    now:     {}", plain(&or(&deviation.now, "not in the document"))));
    }
    if deviations.len() > MAX_DEVIATIONS {
        complain(&format!("  and {}", counted(deviations.len() - MAX_DEVIATIONS, "more instance")));
    }
    source.help();
    Err(Exit::Unusable)
}

/// How many instances are listed for which a plan no longer holds.
const MAX_DEVIATIONS: usize = 20;

/// Shows what a saved plan does.
pub(crate) fn show(request: &ShowRequest) -> Exit {
    let path = &request.file;
    let plan = match plan_file::any(path, SavedPlan::BEGIN).map(|text| text.and_then(|text| parsed(path, &text))) {
        Some(Ok(plan)) => plan,
        Some(Err(exit)) => return exit,
        None => {
            match input::read(path) {
                Ok(_) => {
                    complain(&format!("error: {} is not a saved plan", path.display()));
                    complain(
                        "help: 'stead plan DOCUMENT --out FILE' saves one; 'stead plan' shows what a document would change",
                    );
                }
                Err(error) => complain(&format!("error: {error}")),
            }
            return Exit::Unusable;
        }
    };
    match request.output {
        Output::Text => {
            print_coloured(&text(&plan, request.detail));
            complain(&format!("note: its relative paths start at {}", plain(&plan.root.display().to_string())));
            if let Some(root) = &plan.system_root {
                complain(&format!("note: it is for the operating system in {}", plain(&root.display().to_string())));
            }
            if plan.check_machine().is_err() {
                complain("note: it was made on another machine, and cannot be applied on this one");
            } else if plan.is_of_unknown_machine() {
                complain("note: it was made on a machine without /etc/machine-id, and can be applied on each of those");
            }
            if !plan.secrets.is_empty() {
                complain(&format!(
                    "note: to apply it, these parameters must be given: {}",
                    plain(&plan.secrets.join(", "))
                ));
            }
        }
        output => data_as(&data(&plan), output),
    }
    Exit::Success
}

/// The plan for programs.
fn data(plan: &SavedPlan) -> serde_json::Value {
    serde_json::json!({
        "version": 1,
        "changes": plan.has_changes(),
        "document": plan.name,
        "root": plan.root,
        "systemRoot": plan.system_root,
        "parameters": plan.parameters,
        "secrets": plan.secrets,
        "only": plan.only,
        "skip": plan.skip,
        "instances": plan.instances,
    })
}
