//! Resources that are programs. A case has a manifest, the script that it names, and calls; what comes back is compared.
//!
//! ```text
//! -- manifest.json --   a resource manifest; `sh` with the argument `script` runs the script
//! -- adapted.json --    optional: the adapted resource that is called through the manifest
//! -- script --          the program
//! -- calls --           an operation a line, and the input as JSON: `set what-if {"a":1}`
//! -- answers --         what came of each: traces first, then the reply or the failure
//! ```

use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value as Json, json};
use stead_core::call::{Execution, Exported, Failure, code};
use stead_core::id::TypeName;
use stead_core::manifest::{
    AdaptedResource, AdapterInput, AdapterMethods, Argument, Capabilities, CommandResource, Implementation, Input,
    Kind, Manifest, Method, OperationSecurity, Returns, SchemaSource, Version,
};
use stead_host::command::{CommandProvider, Settings, list_adapted};
use stead_host::process::Environment;
use stead_host::provider::{Cancel, Context, Plain, Provider};
use stead_testkit::{Case, Computed, Suite};

fn main() -> ExitCode {
    stead_testkit::main(&[Suite { folder: "command", run }])
}

fn run(case: &Case) -> Result<Computed, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    std::fs::write(folder.path().join("script"), case.section("script")).map_err(|error| error.to_string())?;
    let manifest = Arc::new(manifest(&read(case.section("manifest.json"))?, folder.path())?);
    let called = if case.has("adapted.json") {
        Arc::new(adapted(&read(case.section("adapted.json"))?, &manifest)?)
    } else {
        Arc::clone(&manifest)
    };
    let said = Said::default();
    let cx = context(folder.path(), &said);
    let provider = CommandProvider::new(&called, settings()).ok_or("no provider for this manifest")?;
    for line in case.section("calls").lines() {
        said.line(&format!("> {line}"));
        said.line(&answer(&provider, &manifest, &cx, line)?);
    }
    let said = said.0.lock().map_err(|error| error.to_string())?.join("");
    Ok(vec![("answers", said.replace(&folder.path().display().to_string(), "$DIR"))])
}

/// What was traced and answered, line by line.
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

fn settings() -> Settings {
    let path = ("PATH".into(), "/usr/bin:/bin".into());
    let environment = Environment::of([path], &[]);
    Settings { environment, grace: Duration::from_millis(300), settle: Duration::from_millis(200) }
}

fn context(root: &Path, said: &Said) -> Context {
    let said = said.clone();
    Context {
        name: "instance".into(),
        deadline: Duration::from_secs(20),
        output_limit: 1 << 20,
        cancel: Cancel::default(),
        root: root.into(),
        trace: Arc::new(move |level, text| said.line(&format!("{level:?}: {text}"))),
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
        "get" => provider.get(cx, &input).map(|state| state.into_exposed().to_string()),
        "test" => provider.test(cx, &input).map(|reply| {
            let actual = reply.actual.map(Plain::into_exposed);
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
        let after = reply.after.map(Plain::into_exposed);
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

// The subset of manifests that the cases need.

fn base(json: &Json, implementation: Implementation) -> Result<Manifest, String> {
    let text = |key: &str| json[key].as_str().unwrap_or_default();
    Ok(Manifest {
        type_name: TypeName::parse(text("type")).map_err(|error| error.to_string())?,
        version: Version::Semantic(text("version").parse().map_err(|error| format!("{error}"))?),
        kind: match text("kind") {
            "adapter" => Kind::Adapter,
            "exporter" => Kind::Exporter,
            "group" => Kind::Group,
            _ => Kind::Resource,
        },
        capabilities: Capabilities::default(),
        description: None,
        deprecation: None,
        tags: Vec::new(),
        author: None,
        require_adapter: None,
        security: OperationSecurity::default(),
        implementation,
    })
}

fn manifest(json: &Json, folder: &Path) -> Result<Manifest, String> {
    let method = |key: &str| json.get(key).map(method);
    let exit_codes = json["exitCodes"].as_object().into_iter().flatten();
    let resource = CommandResource {
        manifest_path: folder.join("test.dsc.resource.json"),
        manifest: json.clone(),
        get: method("get"),
        set: method("set"),
        what_if: method("whatIf"),
        test: method("test"),
        delete: method("delete"),
        export: method("export"),
        validate: method("validate"),
        resolve: None,
        schema: json.get("schema").map(schema_source),
        export_schema: None,
        adapter: json.get("adapter").map(|adapter| AdapterMethods {
            list: adapter.get("list").map(self::method),
            input_kind: match adapter["inputKind"].as_str() {
                Some("full") => AdapterInput::Full,
                Some("sequence") => AdapterInput::Sequence,
                _ => AdapterInput::Single,
            },
        }),
        exit_codes: exit_codes
            .filter_map(|(code, text)| Some((code.parse().ok()?, text.as_str()?.to_owned())))
            .collect(),
    };
    base(json, Implementation::Command(Arc::new(resource)))
}

fn schema_source(json: &Json) -> SchemaSource {
    if let Some(embedded) = json.get("embedded") {
        return SchemaSource::Embedded(embedded.clone());
    }
    let Method { executable, arguments, .. } = method(&json["command"]);
    SchemaSource::Command { executable, arguments }
}

fn adapted(json: &Json, adapter: &Arc<Manifest>) -> Result<Manifest, String> {
    let resource = AdaptedResource {
        adapter: Arc::clone(adapter),
        path: json["path"].as_str().map(Into::into),
        content: json.get("content").cloned(),
        schema: json.get("schema").cloned(),
        properties: Vec::new(),
        implemented_as: None,
        manifest_path: None,
        manifest: json.clone(),
    };
    base(json, Implementation::Adapted(Arc::new(resource)))
}

fn method(json: &Json) -> Method {
    let returns = |key: &str| match json[key].as_str() {
        Some("state") => Some(Returns::State),
        Some("stateAndDiff") => Some(Returns::StateAndDiff),
        _ => None,
    };
    Method {
        executable: json["executable"].as_str().unwrap_or_default().to_owned(),
        arguments: json["args"].as_array().into_iter().flatten().map(argument).collect(),
        input: match json["input"].as_str() {
            Some("stdin") => Input::Stdin,
            Some("env") => Input::Environment,
            _ => Input::None,
        },
        returns: returns("return"),
        what_if_returns: returns("whatIfReturns"),
    }
}

fn argument(json: &Json) -> Argument {
    let text = |key: &str| json[key].as_str().map(str::to_owned);
    let flag = |key: &str| json[key].as_bool().unwrap_or_default();
    None.or_else(|| json.as_str().map(|literal| Argument::Literal(literal.to_owned())))
        .or_else(|| text("jsonInputArg").map(|name| Argument::Json { name, mandatory: flag("mandatory") }))
        .or_else(|| text("adaptedContentArg").map(Argument::AdaptedContent))
        .or_else(|| text("resourceTypeArg").map(Argument::ResourceType))
        .or_else(|| text("resourceVersionArg").map(Argument::ResourceVersion))
        .or_else(|| text("resourcePathArg").map(|name| Argument::ResourcePath { name, quoted: flag("includeQuotes") }))
        .or_else(|| text("whatIfArg").map(Argument::WhatIf))
        .unwrap_or_else(|| panic!("not an argument: {json}"))
}
