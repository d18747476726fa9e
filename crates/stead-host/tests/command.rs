//! Cases of `corpus/command`: resources that are programs.

use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value as Json, json};
use stead_core::call::{Execution, Exported, Failure, code};
use stead_core::diag::any_error;
use stead_core::manifest::{Declaration, Extension, Manifest, ManifestForm, parse, unplaced};
use stead_host::command::extension::{discover, import, secret};
use stead_host::command::{CommandProvider, CommandSettings, list_adapted};
use stead_host::provider::{Context, Plain, Provider};
use stead_system::fs::User;
use stead_system::process::Environment;
use stead_testkit::{Case, Computed, Suite};

fn main() -> ExitCode {
    stead_testkit::main(&[Suite { folder: "command", run: choose }])
}

fn choose(case: &Case) -> Result<Computed, String> {
    if case.has("extension.json") { run_extension(case) } else { run(case) }
}

fn run(case: &Case) -> Result<Computed, String> {
    let stated = case.section("manifest.json");
    let answers = run_with(case, stated, case.section("left"))?;
    if case.has("alike") {
        let mut once = read(stated)?;
        once["metadata"] = json!({});
        let once = run_with(case, &once.to_string(), "")?;
        let of_calls = answers.split("-> ").next().unwrap_or_default();
        if once != of_calls {
            return Err(format!("as a resident:\n{of_calls}\na program for each call:\n{once}"));
        }
    }
    Ok(vec![("answers", answers)])
}

/// The answers of a resource with this manifest, and then the contents of these files.
fn run_with(case: &Case, stated: &str, left: &str) -> Result<String, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    std::fs::write(folder.path().join("script"), case.section("script")).map_err(|error| error.to_string())?;
    let manifest = Arc::new(manifest(stated, folder.path())?);
    let called = if case.has("adapted.json") {
        Arc::new(adapted(case.section("adapted.json"), &manifest, folder.path())?)
    } else {
        Arc::clone(&manifest)
    };
    let said = Said::default();
    let cx = limited(context(folder.path(), &said), case)?;
    let settings = CommandSettings { elevated: case.section("rights").trim() != "anybody", ..settings() };
    let provider = CommandProvider::new(&called, settings).ok_or("no provider for this manifest")?;
    for line in case.section("calls").lines() {
        said.line(&format!("> {line}"));
        said.line(&answer(&provider, &manifest, &cx, line)?);
    }
    drop(provider);
    for name in left.lines() {
        let text = std::fs::read_to_string(folder.path().join(name)).map_err(|error| format!("{name}: {error}"))?;
        said.line(&format!("-> {name}: {}", text.trim_end().replace('\n', ", ")));
    }
    let said = said.0.lock().map_err(|error| error.to_string())?.join("");
    Ok(without_numbers(&said.replace(&folder.path().display().to_string(), "$DIR")))
}

/// The numbers of processes, which stand in parentheses, are others each time.
fn without_numbers(text: &str) -> String {
    let mut parts = text.split(" (");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |shown, part| {
        let digits = part.len() - part.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let rest = part.get(digits..).unwrap_or_default();
        let number = if digits > 0 && rest.starts_with(')') { "PID" } else { part.get(..digits).unwrap_or_default() };
        format!("{shown} ({number}{rest}")
    })
}

/// The lines that were traced and answered.
#[derive(Clone, Default)]
struct Said(Arc<Mutex<Vec<String>>>);

impl Said {
    fn line(&self, text: &str) {
        self.0.lock().expect("no thread panicked before").push(format!("{text}\n"));
    }
}

fn read(text: &str) -> Result<Json, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

fn settings() -> CommandSettings {
    let path = ("PATH".into(), "/usr/bin:/bin".into());
    let environment = Environment::of([path], &[]);
    let environment = environment.trusting(User::current().trust());
    let (grace, settle) = (Duration::from_millis(300), Duration::from_millis(200));
    CommandSettings { environment, grace, settle, elevated: true }
}

/// The context with the limits of the case: `deadline` in milliseconds, `limit` in bytes, and `cancelled`.
fn limited(cx: Context, case: &Case) -> Result<Context, String> {
    let number = |section: &str, usual: u64| match case.section(section).trim() {
        "" => Ok(usual),
        text => text.parse::<u64>().map_err(|error| format!("{section}: {error}")),
    };
    let deadline = Duration::from_millis(number("deadline", 20_000)?);
    let output_limit = usize::try_from(number("limit", 1 << 20)?).map_err(|error| error.to_string())?;
    if case.has("cancelled") {
        cx.cancel.cancel();
    }
    Ok(Context { deadline, output_limit, ..cx })
}

fn context(root: &Path, said: &Said) -> Context {
    let said = said.clone();
    Context {
        name: "instance".into(),
        deadline: Duration::from_secs(20),
        output_limit: 1 << 20,
        trace: Arc::new(move |level, text| said.line(&format!("{level:?}: {text}"))),
        ..Context::new(root)
    }
}

fn answer(provider: &CommandProvider, adapter: &Manifest, cx: &Context, line: &str) -> Result<String, String> {
    let (operation, input) = line.find(['{', '[']).map_or((line, ""), |at| line.split_at(at));
    // `"$LONG"` stands for a text that is longer than any argument may be.
    let input = input.replace("$LONG", &"x".repeat(140_000));
    let input = if input.is_empty() { Json::Null } else { read(&input)? };
    // Secrets need no wrapping to be known as such.
    let secret = input.to_string().contains("bare secret");
    let input = if secret { Plain::secret(input) } else { Plain::new(input) };
    let reply = match operation.trim() {
        "get" => provider.get(cx, &input).map(|state| state.to_json().to_string()),
        "test" => provider.test(cx, &input).map(|reply| {
            if let Some(pending) = reply.pending {
                return json!({"pending": pending}).to_string();
            }
            let actual = reply.actual.map(|state| state.to_json());
            let verdict = (reply.in_desired_state, reply.differing);
            json!({"actual": actual, "inDesiredState": verdict.0, "differing": verdict.1}).to_string()
        }),
        "set" => set(provider, cx, &input, Execution::Actual),
        "set what-if" => set(provider, cx, &input, Execution::WhatIf),
        "delete" => provider.delete(cx, &input, Execution::Actual).map(|words| format!("{words:?}")),
        "delete what-if" => provider.delete(cx, &input, Execution::WhatIf).map(|words| format!("{words:?}")),
        "export" => provider.export(cx, &input).map(|found| found.iter().map(show).collect::<Vec<_>>().join("\n")),
        "schema" => provider.schema(cx).map(|schema| if schema.is_some() { "a schema" } else { "none" }.to_owned()),
        "list" => list_adapted(adapter, &settings(), cx).map(|found| Json::from(found).to_string()),
        other => return Err(format!("no such operation: '{other}'")),
    };
    Ok(reply.unwrap_or_else(|failure| complain(&failure)))
}

fn set(provider: &CommandProvider, cx: &Context, input: &Plain, execution: Execution) -> Result<String, Failure> {
    provider.set(cx, input, execution).map(|reply| {
        if let Some(pending) = reply.pending {
            return json!({"pending": pending}).to_string();
        }
        let after = reply.after.map(|state| state.to_json());
        json!({"after": after, "changed": reply.changed, "whatIf": reply.what_if}).to_string()
    })
}

fn show(found: &Exported) -> String {
    let properties = found.properties.to_redacted_json();
    let metadata = found.metadata.as_ref().map(stead_core::value::Value::to_redacted_json);
    json!({"type": found.type_name, "name": found.name, "properties": properties, "metadata": metadata}).to_string()
}

fn complain(failure: &Failure) -> String {
    let property = failure.property.as_deref().map(|pointer| format!(" at {pointer}")).unwrap_or_default();
    format!("error[{}] {:?}{property}: {}", code(&failure.kind), failure.kind, failure.message)
}

/// Reads a manifest with what every one must say filled in, so that the cases show what matters to them.
fn declared(form: ManifestForm, text: &str, folder: &Path, usual: &Json) -> Result<Declaration, String> {
    let mut json = usual.clone();
    let stated: Json = read(text)?;
    for (key, value) in stated.as_object().into_iter().flatten() {
        json[key] = value.clone();
    }
    let (declared, findings) = parse(form, &unplaced(&json), &folder.join("test.dsc.resource.json"));
    let messages = || findings.iter().map(|finding| finding.message.as_str()).collect::<Vec<_>>().join("; ");
    match declared.into_iter().next() {
        Some(declared) if !any_error(&findings) => Ok(declared.declaration),
        _ => Err(messages()),
    }
}

fn manifest(text: &str, folder: &Path) -> Result<Manifest, String> {
    let usual = json!({"$schema": "https://aka.ms/dsc/schemas/v3/bundled/resource/manifest.json"});
    match declared(ManifestForm::Resource, text, folder, &usual)? {
        Declaration::Resource(manifest) => Ok(*manifest),
        other => Err(format!("not a resource: {other:?}")),
    }
}

fn adapted(text: &str, adapter: &Arc<Manifest>, folder: &Path) -> Result<Manifest, String> {
    let usual = json!({
        "$schema": "https://aka.ms/dsc/schemas/v3/bundled/adaptedresource/manifest.json",
        "kind": "resource", "capabilities": ["get"], "requireAdapter": adapter.type_name, "schema": {},
    });
    match declared(ManifestForm::Adapted, text, folder, &usual)? {
        Declaration::Adapted(manifest) => Ok(manifest.into_manifest(Arc::clone(adapter))),
        other => Err(format!("not adapted: {other:?}")),
    }
}

fn extension(text: &str, folder: &Path) -> Result<Extension, String> {
    let usual = json!({"$schema": "https://aka.ms/dsc/schemas/v3/bundled/extension/manifest.json"});
    match declared(ManifestForm::Extension, text, folder, &usual)? {
        Declaration::Extension(extension) => Ok(*extension),
        other => Err(format!("not an extension: {other:?}")),
    }
}

fn run_extension(case: &Case) -> Result<Computed, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    std::fs::write(folder.path().join("script"), case.section("script")).map_err(|error| error.to_string())?;
    let extension = extension(case.section("extension.json"), folder.path())?;
    let said = Said::default();
    let cx = context(folder.path(), &said);
    for line in case.section("calls").lines() {
        said.line(&format!("> {line}"));
        let (operation, argument) = line.split_once(' ').unwrap_or((line, ""));
        let reply = match operation {
            "discover" => {
                discover(&extension, &[".dsc.a", ".dsc.b"], &settings(), &cx).map(|found| Json::from(found).to_string())
            }
            "import" => import(&extension, Path::new(argument), &settings(), &cx),
            "secret" => {
                let (name, vault) =
                    argument.split_once(' ').map_or((argument, None), |(name, vault)| (name, Some(vault)));
                let found = secret(&extension, name, vault, &settings(), &cx);
                found.map(|secret| secret.map_or("unknown".to_owned(), |secret| format!("'{}'", secret.expose())))
            }
            other => return Err(format!("no such operation: '{other}'")),
        };
        said.line(&reply.unwrap_or_else(|failure| complain(&failure)));
    }
    let said = said.0.lock().map_err(|error| error.to_string())?.join("");
    Ok(vec![("answers", said.replace(&folder.path().display().to_string(), "$DIR"))])
}
