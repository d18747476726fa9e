//! Cases of `corpus/builtins`, the built-in resources as the engine calls them, and of `corpus/osinfo`.

use std::fmt::Write;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value as Json;
use stead_core::call::{Call, Changed, Execution, Exported, Operation, Outcome, Tested, Wanted};
use stead_core::id::{NodeId, ResourceId};
use stead_core::instance_path::InstancePath;
use stead_core::value::{Seal, Value};
use stead_host::operate::carry_out;
use stead_host::provider::Context;
use stead_host::vault::MemoryVault;
use stead_resources::{BuiltIn, builtins, osinfo};
use stead_testkit::{Case, Computed, Suite};

fn main() -> ExitCode {
    stead_testkit::main(&[
        Suite { folder: "builtins", run: run_case },
        Suite { folder: "osinfo", run: describe_machine },
    ])
}

fn describe_machine(case: &Case) -> Result<Computed, String> {
    let state = osinfo::describe("Linux", case.section("os-release"), case.section("machine").trim());
    let state = serde_json::to_string_pretty(&state).map_err(|error| error.to_string())?;
    Ok(vec![("state", state + "\n")])
}

fn run_case(case: &Case) -> Result<Computed, String> {
    let mut words = case.section("call").split_whitespace();
    let type_name = words.next().ok_or("the case calls nothing")?;
    let built_in = builtins().iter().find(|each| each.manifest.type_name.as_str() == type_name);
    let root = tempfile::tempdir().map_err(|error| error.to_string())?;
    set_up(case.section("setup"), root.path())?;
    let properties: Json = serde_json::from_str(case.section("properties")).map_err(|error| error.to_string())?;
    let vault = MemoryVault::default();
    let desired = sealed(properties, &vault);
    let run = Run::new(built_in.ok_or("there is no such type")?, desired, vault, root.path());
    let mut outcomes = String::new();
    for word in words {
        let line = format!("{word}: {}\n", run.carry_out(word)?);
        outcomes.push_str(&without_numbers_of_processes(&line.replace(&*root.path().to_string_lossy(), "${ROOT}")));
    }
    let messages = run.messages.lock().map_err(|error| error.to_string())?.concat();
    Ok(vec![("outcomes", outcomes), ("messages", messages)])
}

/// The text with `(PID)` for every number in parentheses behind a space.
fn without_numbers_of_processes(text: &str) -> String {
    let masked = |part: &str| match part.split_once(')') {
        Some((number, rest)) if number.parse::<u32>().is_ok() => format!(" (PID){rest}"),
        _ => format!(" ({part}"),
    };
    let mut parts = text.split(" (");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + &masked(part))
}

fn set_up(script: &str, root: &Path) -> Result<(), String> {
    match Command::new("/bin/sh").arg("-ec").arg(script).current_dir(root).status() {
        Ok(status) if status.success() => Ok(()),
        other => Err(format!("the setup failed: {other:?}")),
    }
}

/// The properties with secrets in place of the texts that say so.
fn sealed(json: Json, vault: &MemoryVault) -> Value {
    match json {
        Json::String(text) => match text.strip_prefix("sealed:") {
            Some(secret) => Value::secret(vault.seal(Value::from(secret))),
            None => Value::String(text),
        },
        Json::Array(items) => Value::Array(items.into_iter().map(|item| sealed(item, vault)).collect()),
        Json::Object(members) => {
            Value::Object(members.into_iter().map(|(name, value)| (name, sealed(value, vault))).collect())
        }
        plain => Value::from(plain),
    }
}

/// One instance and the directory that it is in.
struct Run {
    built_in: &'static BuiltIn,
    desired: Arc<Value>,
    vault: MemoryVault,
    context: Context,
    messages: Arc<Mutex<Vec<String>>>,
}

impl Run {
    fn new(built_in: &'static BuiltIn, desired: Value, vault: MemoryVault, root: &Path) -> Self {
        let messages = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&messages);
        let context = Context {
            name: "case".into(),
            deadline: Duration::from_secs(20),
            output_limit: 1 << 16,
            trace: Arc::new(move |level, text| {
                if let Ok(mut heard) = heard.lock() {
                    heard.push(format!("{level:?}: {text}\n"));
                }
            }),
            ..Context::new(root)
        };
        Self { built_in, desired: Arc::new(desired), vault, context, messages }
    }

    fn carry_out(&self, word: &str) -> Result<String, String> {
        let outcome = match word {
            "get" => self.call(Operation::Get, Execution::Actual, None),
            "test" => self.call(Operation::Test, Execution::Actual, None),
            "set" => self.set(Execution::Actual),
            "what-if" => self.set(Execution::WhatIf),
            "export" => self.call(Operation::Export, Execution::Actual, None),
            other => return Err(format!("nothing is called '{other}'")),
        };
        Ok(shown(&outcome))
    }

    fn set(&self, execution: Execution) -> Outcome {
        if self.built_in.manifest.capabilities.implements_pretest {
            return self.call(Operation::Set, execution, None);
        }
        match self.call(Operation::Test, Execution::Actual, None) {
            Outcome::Tested(tested) => self.call(Operation::Set, execution, Some(tested)),
            other => other,
        }
    }

    fn call(&self, operation: Operation, execution: Execution, tested: Option<Arc<Tested>>) -> Outcome {
        let id = ResourceId { type_name: self.built_in.manifest.type_name.clone(), name: "case".into() };
        let call = Call {
            instance: InstancePath::new(None, id, NodeId(0)),
            manifest: Arc::clone(&self.built_in.manifest),
            operation,
            execution,
            desired: Arc::clone(&self.desired),
            tested,
            pending: None,
            export_filter: None,
            metadata: None,
            wanted: Wanted::Reported,
        };
        carry_out(&call, &*self.built_in.provider, &self.vault, &self.context).outcome
    }
}

fn shown(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Got(state) => state.to_redacted_json().to_string(),
        Outcome::Tested(tested) => {
            let Tested { actual, in_desired_state, differing, .. } = &**tested;
            let verdict = if *in_desired_state { "in desired state" } else { "differs" };
            format!("{verdict} {differing:?} {}", actual.to_redacted_json())
        }
        Outcome::Changed(done) => {
            let Changed { before, after, changed, what_if, presumed, verified, effects, .. } = &**done;
            let mut text = format!("{verified:?}, changed {changed:?}");
            for (title, state) in [("before", before), ("after", after)] {
                let _infallible = write!(text, "\n    {title} {}", state.to_redacted_json());
            }
            let effect = effects.effect.map(|effect| format!("effect: {}", effect.word()));
            let presumed =
                presumed.as_ref().map(|presumed| format!("fails as things are: {}", presumed.failure.message));
            what_if.iter().chain(&effect).chain(&presumed).fold(text, |text, words| format!("{text}\n    {words}"))
        }
        Outcome::Exported(instances) => {
            instances.iter().fold(format!("{} instances", instances.len()), |text, each| {
                let Exported { name, properties, .. } = each;
                format!("{text}\n    {name:?} {}", properties.to_redacted_json())
            })
        }
        Outcome::Deleted(words) => format!("deleted: {words:?}"),
        Outcome::Pending(pending) => format!("pending: {}", pending.message),
        Outcome::Failed(failure) => format!("{:?} {:?}: {}", failure.kind, failure.property, failure.message),
    }
}
