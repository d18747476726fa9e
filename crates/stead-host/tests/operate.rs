//! Cases of `corpus/operate`: a call, and a resource that answers by a script.

#![expect(clippy::unwrap_used, reason = "a test may fail this way")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value as Json, json};
use stead_core::call::{
    Call, Changed, Execution, Exported, Failure, FailureKind, Operation, Outcome, Response, Tested, Verification,
    Wanted,
};
use stead_core::export::ExportFilter;
use stead_core::expr::{Answer, Environment, Expression};
use stead_core::id::{NodeId, ResourceId, SecretName, TypeName};
use stead_core::instance_path::InstancePath;
use stead_core::manifest::{Capabilities, CommandResource, Implementation, Manifest, ResourceKind, Version};
use stead_core::schema::Schema;
use stead_core::value::{Recipe, Seal, Sensitive, Value};
use stead_host::operate::carry_out;
use stead_host::provider::{Context, Plain, Provider, SetReply, State, TestReply, TraceLevel};
use stead_host::vault::{MemoryVault, Vault, VaultError};
use stead_system::Cancel;
use stead_testkit::{Case, Computed, Suite};

fn main() -> ExitCode {
    // What a resource says when it panics may be secret; the program has a hook of its own for that.
    std::panic::set_hook(Box::new(|_| {}));
    stead_testkit::main(&[Suite { folder: "operate", run }])
}

fn run(case: &Case) -> Result<Computed, String> {
    let section = |name: &str| match case.section(name) {
        "" => Ok(Json::Null),
        text => serde_json::from_str::<Json>(text).map_err(|error| format!("{name}: {error}")),
    };
    let resource = section("resource")?;
    let scripted = Scripted::new(&resource, section("script")?)?;
    let vault = Named::of(&section("secrets")?);
    let call = call(&section("call")?, manifest(&resource));
    let traced = Arc::new(Mutex::new(String::new()));
    let cx = context(&traced, case.has("cancelled"));
    let answer = carry_out(&call, &scripted, &vault, &cx);
    let calls = scripted.calls.lock().map_err(|error| error.to_string())?.clone();
    let traced = traced.lock().map_err(|error| error.to_string())?.clone();
    Ok(vec![("calls", calls), ("traced", traced), ("answer", shown(&answer))])
}

fn context(traced: &Arc<Mutex<String>>, cancelled: bool) -> Context {
    let (traced, cancel) = (Arc::clone(traced), Cancel::default());
    if cancelled {
        cancel.cancel();
    }
    Context {
        name: "instance".into(),
        cancel,
        trace: Arc::new(move |level, text| {
            writeln!(traced.lock().unwrap(), "{level:?}: {text}").unwrap();
        }),
        ..Context::new(std::path::Path::new("/"))
    }
}

fn call(json: &Json, manifest: Arc<Manifest>) -> Call {
    let operation = match json["operation"].as_str() {
        Some("test") => Operation::Test,
        Some("set") => Operation::Set,
        Some("export") => Operation::Export,
        _ => Operation::Get,
    };
    let execution = if json["execution"] == "whatIf" { Execution::WhatIf } else { Execution::Actual };
    let tested = json.get("tested").map(|tested| {
        let names = tested["differing"].as_array().into_iter().flatten().filter_map(Json::as_str);
        Arc::new(Tested {
            unknown: None,
            actual: value(&tested["actual"]).into(),
            in_desired_state: tested["inDesiredState"].as_bool().unwrap_or(false),
            differing: names.map(str::to_owned).collect(),
            predicted: None,
            metadata: None,
        })
    });
    let id = ResourceId { type_name: manifest.type_name.clone(), name: "instance".into() };
    Call {
        instance: InstancePath::new(None, id, NodeId(0)),
        manifest,
        operation,
        execution,
        desired: Arc::new(value(&json["desired"])),
        tested,
        pending: None,
        metadata: json.get("metadata").map(|metadata| Arc::new(value(metadata))),
        export_filter: json.get("exportFilter").map(|filter| Arc::new(ExportFilter::parse(&value(filter)).unwrap())),
        wanted: match json["wanted"].as_str() {
            Some("verdict") => Wanted::Verdict,
            Some("all") => Wanted::All,
            Some("answer") => Wanted::Answer,
            _ => Wanted::Reported,
        },
    }
}

fn manifest(json: &Json) -> Arc<Manifest> {
    let can = |name: &str| json["can"].as_array().into_iter().flatten().any(|each| each == name);
    let capabilities = Capabilities {
        get: can("get"),
        set: can("set"),
        set_handles_exist: can("setHandlesExist"),
        set_what_if: can("setWhatIf"),
        implements_pretest: can("implementsPretest"),
        reports_before: can("reportsBefore"),
        test: can("test"),
        delete: can("delete"),
        delete_what_if: can("deleteWhatIf"),
        export: can("export"),
        export_filters: can("exportFilters"),
        resolve: false,
    };
    let kind = match json["kind"].as_str() {
        Some("exporter") => ResourceKind::Exporter,
        Some("group") => ResourceKind::Group,
        _ => ResourceKind::Resource,
    };
    let deprecated = json["deprecatedWhatIf"].as_bool().unwrap_or(false).then(|| stead_core::manifest::ProgramCall {
        executable: "x".to_owned(),
        arguments: Vec::new(),
        input: stead_core::manifest::Input::None,
        returns: None,
        what_if_returns: None,
    });
    let command = CommandResource { what_if: deprecated, ..CommandResource::default() };
    let (type_name, version) = (TypeName::parse("Test/Scripted").unwrap(), Version::parse("1.0.0").unwrap());
    let bare = Manifest::new(type_name, version, Implementation::Command(Arc::new(command)));
    Arc::new(Manifest { kind, capabilities, ..bare })
}

fn value(json: &Json) -> Value {
    match json {
        Json::Array(items) => Value::Array(items.iter().map(value).collect()),
        Json::Object(members) => match members.iter().next() {
            Some((key, Json::String(name))) if key == "$secret" => secret(name),
            Some((key, Json::String(text))) if key == "$expression" => {
                Expression::parse(text).unwrap().evaluate(&Secrets).unwrap()
            }
            _ => Value::Object(members.iter().map(|(name, each)| (name.clone(), value(each))).collect()),
        },
        other => Value::from(other.clone()),
    }
}

fn secret(name: &str) -> Value {
    Value::secret(SecretName(name.into()))
}

/// A vault with secrets whose handles are the names that a case gives them.
#[derive(Default)]
struct Named {
    named: BTreeMap<SecretName, Value>,
    others: MemoryVault,
}

impl Named {
    fn of(secrets: &Json) -> Self {
        let named = secrets.as_object().into_iter().flatten();
        let named = named.map(|(name, plain)| (SecretName(name.as_str().into()), Value::from(plain.clone())));
        Self { named: named.collect(), others: MemoryVault::default() }
    }
}

impl Seal for Named {
    fn seal(&self, plaintext: Value) -> SecretName {
        self.others.seal(plaintext)
    }
}

impl Vault for Named {
    fn reveal(&self, name: &SecretName) -> Result<Sensitive<Value>, VaultError> {
        match self.named.get(name) {
            Some(plaintext) => Ok(Sensitive::new(plaintext.clone())),
            None if name.0.contains('/') => self.others.reveal(name),
            None => Err(VaultError::Unknown(name.0.to_string())),
        }
    }
}

/// Every parameter is the secret of its name.
struct Secrets;

impl Environment for Secrets {
    fn parameter(&self, name: &str) -> Answer {
        Answer::Value(secret(name))
    }
}

/// A resource that answers by a script and notes what it was asked.
struct Scripted {
    schema: Option<Arc<Schema>>,
    wrapped: bool,
    answers: Mutex<BTreeMap<String, Vec<Json>>>,
    calls: Mutex<String>,
}

impl Scripted {
    fn new(resource: &Json, script: Json) -> Result<Self, String> {
        let schema = match resource.get("schema") {
            Some(schema) => Some(Arc::new(Schema::compile(schema.clone()).map_err(|error| error.to_string())?)),
            None => None,
        };
        let answers = match script {
            Json::Object(methods) => methods,
            _ => Map::new(),
        };
        let list = |answers: Json| answers.as_array().cloned().unwrap_or_default().into_iter().rev().collect();
        let answers = answers.into_iter().map(|(method, answers)| (method, list(answers))).collect();
        let wrapped = resource["wrapped"].as_bool().unwrap_or(false);
        Ok(Self { schema, wrapped, answers: Mutex::new(answers), calls: Mutex::default() })
    }

    fn ask(&self, cx: &Context, method: &str, input: &Plain) -> Result<Json, Failure> {
        writeln!(self.calls.lock().unwrap(), "{method} {}", input.to_json()).unwrap();
        let next = self.answers.lock().unwrap().get_mut(method).and_then(Vec::pop);
        let answer =
            next.ok_or_else(|| Failure::new(FailureKind::System, format!("the script has no answer to '{method}'")))?;
        if let Some(text) = answer["trace"].as_str() {
            cx.say(TraceLevel::Info, text);
        }
        if let Some(text) = answer["panic"].as_str() {
            std::panic::panic_any(text.to_owned());
        }
        if let Some(fail) = answer.get("fail") {
            let text = |name: &str| fail[name].as_str().map(str::to_owned);
            let kind = match fail["kind"].as_str() {
                Some("start") => FailureKind::Start,
                _ => FailureKind::Exit(fail["exit"].as_i64().unwrap_or(1).try_into().unwrap()),
            };
            let message = text("message").unwrap_or_default();
            return Err(Failure { property: text("property"), ..Failure::new(kind, message) });
        }
        Ok(filled(answer["ok"].clone(), &input.to_json()))
    }
}

fn filled(answer: Json, input: &Json) -> Json {
    match answer {
        Json::String(text) if text == "$input" => input.clone(),
        Json::Array(items) => Json::Array(items.into_iter().map(|item| filled(item, input)).collect()),
        Json::Object(members) => {
            Json::Object(members.into_iter().map(|(name, each)| (name, filled(each, input))).collect())
        }
        other => other,
    }
}

fn names(json: Option<&Json>) -> Option<Vec<String>> {
    Some(json?.as_array()?.iter().filter_map(Json::as_str).map(str::to_owned).collect())
}

impl Provider for Scripted {
    fn schema(&self, _cx: &Context) -> Result<Option<Arc<Schema>>, Failure> {
        Ok(self.schema.clone())
    }
    fn get(&self, cx: &Context, input: &Plain) -> Result<State, Failure> {
        self.ask(cx, "get", input).map(Plain::new)
    }
    fn test(&self, cx: &Context, input: &Plain) -> Result<TestReply, Failure> {
        let answer = self.ask(cx, "test", input)?;
        Ok(TestReply {
            actual: answer.get("actual").cloned().map(Plain::new),
            in_desired_state: answer["inDesiredState"].as_bool(),
            differing: names(answer.get("differing")),
            unknown: answer["unknown"].as_str().map(str::to_owned),
            predicted: None,
            pending: None,
        })
    }
    fn set(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<SetReply, Failure> {
        let method = if execution == Execution::Actual { "set" } else { "set what-if" };
        let answer = self.ask(cx, method, input)?;
        Ok(SetReply {
            after: answer.get("after").cloned().map(Plain::new),
            unread: answer["unread"].as_str().map(|why| Failure::new(FailureKind::Exit(1), why)),
            changed: names(answer.get("changed")),
            what_if: names(answer.get("whatIf")).unwrap_or_default(),
            unknown: answer["unknown"].as_str().map(str::to_owned),
            ..SetReply::default()
        })
    }
    fn delete(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<Vec<String>, Failure> {
        let method = if execution == Execution::Actual { "delete" } else { "delete what-if" };
        Ok(names(Some(&self.ask(cx, method, input)?)).unwrap_or_default())
    }
    fn export(&self, cx: &Context, input: &Plain) -> Result<Vec<Exported>, Failure> {
        let answer = self.ask(cx, "export", input)?;
        let instances = answer.as_array().cloned().unwrap_or_default();
        let exported = |instance: Json| match instance.get("properties").cloned() {
            Some(properties) => Exported {
                type_name: instance["type"].as_str().map(|name| TypeName::parse(name).unwrap()),
                name: instance["name"].as_str().map(str::to_owned),
                properties: Value::from(properties),
                depends_on: Vec::new(),
                metadata: instance.get("metadata").cloned().map(Value::from),
            },
            None => Exported {
                type_name: None,
                name: None,
                properties: Value::from(instance),
                depends_on: Vec::new(),
                metadata: None,
            },
        };
        Ok(instances.into_iter().map(exported).collect())
    }
    fn wants_wrapped_secrets(&self) -> bool {
        self.wrapped
    }
}

fn shown(answer: &Response) -> String {
    let mut json = outcome(&answer.outcome);
    if let Some(why) = answer.outcome.unknown() {
        json["unknown"] = json!(why);
    }
    if let (Some(metadata), Json::Object(members)) = (&answer.metadata, &mut json) {
        members.insert("metadata".to_owned(), with_seals(metadata));
    }
    if let (false, Json::Object(members)) = (answer.restarts.is_empty(), &mut json) {
        members.insert("restarts".to_owned(), json!(format!("{:?}", answer.restarts)));
    }
    serde_json::to_string_pretty(&json).unwrap() + "\n"
}

fn outcome(outcome: &Outcome) -> Json {
    match outcome {
        Outcome::Got(state) => json!({ "got": with_seals(state) }),
        Outcome::Tested(tested) => {
            let Tested { actual, in_desired_state, differing, .. } = &**tested;
            json!({ "actual": with_seals(actual), "inDesiredState": in_desired_state, "differing": differing })
        }
        Outcome::Changed(done) => {
            let Changed { before, after, changed, what_if, verified, .. } = &**done;
            let verified = match verified {
                Verification::InState => json!("in desired state"),
                Verification::Differs(names) => json!({ "differs": names }),
                Verification::NotVerifiable => json!("not verifiable"),
            };
            let mut json = json!({ "before": with_seals(before), "after": with_seals(after), "changed": changed });
            if !what_if.is_empty() {
                json["whatIf"] = json!(what_if);
            }
            json["verified"] = verified;
            json
        }
        Outcome::Exported(instances) => {
            let instance = |each: &Exported| {
                let mut json = json!({ "properties": with_seals(&each.properties) });
                if let Some(type_name) = &each.type_name {
                    json["type"] = json!(type_name.as_str());
                }
                if let Some(name) = &each.name {
                    json["name"] = json!(name);
                }
                if let Some(metadata) = &each.metadata {
                    json["metadata"] = with_seals(metadata);
                }
                json
            };
            json!({ "exported": instances.iter().map(instance).collect::<Vec<_>>() })
        }
        Outcome::Deleted(words) => json!({ "deleted": words }),
        Outcome::Pending(pending) => json!({ "pending": pending.message }),
        Outcome::Failed(failure) => {
            let Failure { kind, message, property, .. } = &**failure;
            json!({ "failed": format!("{kind:?}"), "message": message, "property": property })
        }
    }
}

fn with_seals(value: &Value) -> Json {
    match value {
        Value::Sealed(sealed) => match sealed.recipe() {
            Recipe::Secret(name) if name.0.contains('/') => json!("(sealed)"),
            Recipe::Secret(name) => json!(format!("(secret {})", name.0)),
            Recipe::Computed(_) => json!("(computed)"),
        },
        Value::Array(items) => items.iter().map(with_seals).collect(),
        Value::Object(members) => {
            Json::Object(members.iter().map(|(name, each)| (name.clone(), with_seals(each))).collect())
        }
        plain => plain.to_redacted_json(),
    }
}
