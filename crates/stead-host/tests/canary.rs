//! Secrets of many shapes go through every operation, and nothing that comes out shows one.

#![expect(clippy::unwrap_used, reason = "a test may fail this way")]

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value as Json, json};
use stead_core::call::{Call, Execution, Exported, Failure, FailureKind, Operation, Outcome, Response, Wanted};
use stead_core::destruction::{Effect, Effects, Item, ItemKind};
use stead_core::id::{NodeId, ResourceId, TypeName};
use stead_core::instance_path::InstancePath;
use stead_core::manifest::{Capabilities, Implementation, Manifest, Version};
use stead_core::value::{Object, Seal, SealedStep, Value};
use stead_host::operate::carry_out;
use stead_host::provider::{Context, Plain, Prediction, Provider, SetReply, State, TestReply, TraceLevel};
use stead_host::vault::MemoryVault;

/// Returns the secrets, and for each every text that must not be seen of it.
fn canaries() -> Vec<(Value, Vec<String>)> {
    let long = "CanaryOfManyBytes-".to_owned() + &"0123456789abcdef".repeat(4096);
    let lines = "-----BEGIN CANARY-----\nMIIEcanaryInTheMine0\nq83vEjRWcanary==\n-----END CANARY-----\n";
    let object = json!({"user": "canary-user", "deep": {"list": ["canary-in-list", 918_273_645]}});
    let texts = [
        "CanaryPlain",
        "can4",
        "canary \"quoted\" \\ back",
        "canary+/=?&% url",
        "kanárek žlutý 🐤",
        " canary-with-blanks \n",
        "Y2FuYXJ5LWxvb2tzLWxpa2UtYmFzZTY0",
        "<secureValue>canary",
    ];
    let mut canaries: Vec<_> = texts.iter().map(|text| (Value::from(*text), vec![text.trim().to_owned()])).collect();
    canaries.push((Value::from(lines), lines.lines().map(str::to_owned).collect()));
    canaries.push((Value::from(long.clone()), vec![long]));
    let seen = ["canary-user", "canary-in-list", "918273645"].map(str::to_owned).to_vec();
    canaries.push((Value::from(object), seen));
    canaries.push((Value::Array(vec![Value::from("canary-element")]), vec!["canary-element".to_owned()]));
    canaries
}

/// The forms in which a text may show.
fn forms(text: &str) -> Vec<String> {
    let json = Json::from(text).to_string();
    let url = utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let base64 = STANDARD.encode(text);
    // The last letters of base64 depend on what follows.
    let base64 = base64.trim_end_matches('=');
    let base64 = base64[..base64.len() - 1].to_owned();
    let mut forms = vec![
        text.to_owned(),
        json[1..json.len() - 1].to_owned(),
        url,
        base64,
        format!("{text:?}").trim_matches('"').to_owned(),
        hex(text),
        hex(text).to_uppercase(),
        text.to_uppercase(),
        text.to_lowercase(),
    ];
    forms.extend([1, 2].map(|offset| base64_within(text, offset)));
    forms
}

/// The letters of base64 that a text alone decides when so many bytes are before it.
fn base64_within(text: &str, offset: usize) -> String {
    let encoded = STANDARD.encode(format!("{}{text}...", &"--"[..offset]));
    encoded[(offset * 8).div_ceil(6)..(offset + text.len()) * 8 / 6].to_owned()
}

fn hex(text: &str) -> String {
    text.bytes()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}

/// A resource that tells everything it was given, in every way it can.
struct Chatty {
    end: End,
}

#[derive(Clone, Copy, Debug)]
enum End {
    Well,
    Failing,
    Panicking,
}

fn texts(json: &Json, found: &mut Vec<String>) {
    match json {
        Json::String(text) => found.push(text.clone()),
        Json::Number(number) => found.push(number.to_string()),
        Json::Array(items) => items.iter().for_each(|item| texts(item, found)),
        Json::Object(members) => members.values().for_each(|value| texts(value, found)),
        Json::Null | Json::Bool(_) => {}
    }
}

fn gossip(input: &Json) -> Vec<String> {
    let mut found = Vec::new();
    texts(input, &mut found);
    let of = |text: &String| {
        [
            text.clone(),
            format!("in {text} within"),
            text.trim().to_owned(),
            Json::from(text.as_str()).to_string(),
            STANDARD.encode(text),
            STANDARD.encode(format!("u:{text}:p")),
            STANDARD.encode(format!("us:{text}")),
            STANDARD.encode(format!("usr:{text}:pw")),
            format!("http://h/?q={}&x", utf8_percent_encode(text, NON_ALPHANUMERIC)),
            text.replace('\n', "\r\n"),
        ]
    };
    // The longest is tried in fewer ways, to keep the test short.
    let (long, short): (Vec<_>, Vec<_>) = found.iter().partition(|text| text.len() > 1000);
    let encoded =
        |text: &&String| [hex(text), hex(text).to_uppercase(), text.to_uppercase(), text.to_lowercase()].join(" ");
    let encoded: Vec<String> = short.iter().map(encoded).collect();
    let mut all: Vec<String> = short.into_iter().flat_map(of).collect();
    all.push(encoded.join(" "));
    all.extend(long.into_iter().flat_map(|text| [format!("in {text} within"), STANDARD.encode(text)]));
    all.extend(found.iter().flat_map(|text| text.lines().map(|line| format!("line: {line}"))));
    all.push(input.to_string());
    all
}

fn repeated(input: &Json) -> Json {
    let gossip = gossip(input);
    let mut state = json!({"list": gossip, "wrapped": {"secureString": "canary-user"}, "number": 918_273_645});
    for (at, text) in gossip.iter().enumerate() {
        state[text] = json!(at);
    }
    for (name, value) in input.as_object().into_iter().flatten() {
        state[name] = value.clone();
        state[format!("{name}-moved")] = json!([value, {"deep": value}]);
    }
    state["_metadata"] = json!({ "said": gossip });
    state
}

impl Chatty {
    fn tell(&self, cx: &Context, input: &Plain) -> Result<Json, Failure> {
        let gossip = gossip(&input.to_json());
        for text in &gossip {
            cx.say(TraceLevel::Debug, text);
        }
        let all = gossip.join(" | ");
        match self.end {
            End::Well => Ok(repeated(&input.to_json())),
            End::Failing => {
                let named = (Some(all.clone()), Some(all.clone()));
                Err(Failure {
                    property: named.0,
                    error_id: named.1.map(Into::into),
                    ..Failure::new(FailureKind::Exit(1), all)
                })
            }
            End::Panicking => std::panic::panic_any(all),
        }
    }
}

impl Provider for Chatty {
    fn get(&self, cx: &Context, input: &Plain) -> Result<State, Failure> {
        self.tell(cx, input).map(Plain::new)
    }
    fn test(&self, cx: &Context, input: &Plain) -> Result<TestReply, Failure> {
        let actual = Some(Plain::new(self.tell(cx, input)?));
        let words = gossip(&input.to_json());
        let (after, effects) = (Plain::new(self.tell(cx, input)?), effects_naming(&words));
        let predicted = Prediction { after, effects, words: words.clone(), once: Vec::new() };
        Ok(TestReply {
            actual,
            in_desired_state: Some(false),
            differing: Some(words),
            unknown: None,
            predicted: Some(predicted),
            pending: None,
        })
    }
    fn set(&self, cx: &Context, input: &Plain, _execution: Execution) -> Result<SetReply, Failure> {
        let after = Some(Plain::new(self.tell(cx, input)?));
        let words = gossip(&input.to_json());
        let effects = effects_naming(&words);
        Ok(SetReply { after, changed: Some(words.clone()), what_if: words, effects, ..SetReply::default() })
    }
    fn delete(&self, cx: &Context, input: &Plain, _execution: Execution) -> Result<Vec<String>, Failure> {
        self.tell(cx, input)?;
        Ok(gossip(&input.to_json()))
    }
    fn export(&self, cx: &Context, input: &Plain) -> Result<Vec<Exported>, Failure> {
        let state = self.tell(cx, input)?;
        let instance = |text: String| Exported {
            type_name: None,
            name: Some(text.clone()),
            properties: Value::from(state.clone()),
            depends_on: Vec::new(),
            metadata: Some(Value::from(json!({ "said": text, text: 1 }))),
        };
        Ok(gossip(&input.to_json()).into_iter().take(2).map(instance).collect())
    }
}

/// Effects that name these words wherever a text can be.
fn effects_naming(words: &[String]) -> Effects {
    let mut effects = Effects::of(Effect::Change);
    for word in words {
        let line = ItemKind::Line { number: 1, text: word.clone() };
        effects.destroys.push(Item { path: word.clone(), kind: line });
        effects.creates.push(Item { path: "link".to_owned(), kind: ItemKind::Symlink { target: word.clone() } });
    }
    effects
}

fn manifest(own_test: bool) -> Arc<Manifest> {
    let capabilities = Capabilities {
        get: true,
        set: true,
        set_what_if: own_test,
        test: own_test,
        delete: true,
        delete_what_if: own_test,
        export: true,
        export_filters: true,
        ..Capabilities::default()
    };
    let (type_name, version) = (TypeName::parse("Test/Chatty").unwrap(), Version::parse("1.0.0").unwrap());
    Arc::new(Manifest { capabilities, ..Manifest::new(type_name, version, Implementation::InProcess) })
}

/// A secret as it is, or what is computed of it.
fn sealed(at: usize, plaintext: &Value, vault: &MemoryVault) -> Value {
    let secret = Value::secret(vault.seal(plaintext.clone()));
    if at.is_multiple_of(2) {
        return Value::deferred(SealedStep::Apply {
            function: "coalesce".into(),
            arguments: vec![Value::Null, secret],
        });
    }
    secret
}

/// Everything that can be read of an answer.
fn readable(answer: &Response) -> String {
    let values: Vec<&Value> = match &answer.outcome {
        Outcome::Got(state) => vec![&**state],
        Outcome::Tested(tested) => tested.states().collect(),
        Outcome::Changed(changed) => vec![&*changed.before, &*changed.after],
        Outcome::Exported(all) => {
            all.iter().flat_map(|each| std::iter::once(&each.properties).chain(&each.metadata)).collect()
        }
        Outcome::Deleted(_) | Outcome::Pending(_) | Outcome::Failed(_) => Vec::new(),
    };
    let json = values.into_iter().chain(answer.metadata.as_deref()).map(|value| value.to_redacted_json().to_string());
    format!("{answer:?}\n{}", json.collect::<Vec<_>>().join("\n"))
}

#[test]
fn no_operation_shows_a_secret() {
    // What a resource says when it panics goes to the hook of the program first, which is not under test here.
    std::panic::set_hook(Box::new(|_| {}));
    let canaries = canaries();
    assert_eq!(canaries.len(), 12);
    let vault = MemoryVault::default();
    let seals = canaries.iter().enumerate().map(|(at, (plain, _))| (format!("p{at}"), sealed(at, plain, &vault)));
    let mut desired: Object = seals.collect();
    desired.insert("nested".to_owned(), Value::Array(desired.values().take(4).cloned().collect()));
    let seen: Vec<String> = canaries.iter().flat_map(|(_, seen)| seen).flat_map(|text| forms(text)).collect();
    let clear: Json = canaries.iter().map(|(plain, _)| plain.to_redacted_json()).collect();
    let control = gossip(&clear).join("\n");
    assert!(
        seen.iter().filter(|text| control.contains(text.as_str())).count() > canaries.len() * 3,
        "the search is blind"
    );

    let operations = [
        (Operation::Get, Execution::Actual),
        (Operation::Test, Execution::Actual),
        (Operation::Set, Execution::Actual),
        (Operation::Set, Execution::WhatIf),
        (Operation::Export, Execution::Actual),
    ];
    let mut gone = desired.clone();
    gone.insert("_exist".to_owned(), Value::Bool(false));
    // The longest takes the most time and behaves like the others: it takes part once in each operation.
    let longest = canaries.iter().position(|(_, seen)| seen.iter().any(|text| text.len() > 1000)).unwrap();
    let shorter = |wanted: &Object| {
        let mut wanted = wanted.clone();
        wanted.remove(&format!("p{longest}"));
        wanted
    };
    let (most, most_gone) = (shorter(&desired), shorter(&gone));
    for end in [End::Well, End::Failing, End::Panicking] {
        for (operation, execution) in operations {
            let first = if matches!(end, End::Well) { &desired } else { &most };
            for (own_test, wanted) in [(true, first), (false, &most), (true, &most_gone)] {
                let shown = shown(operation, execution, manifest(own_test), wanted, &vault, &Chatty { end });
                let found: Vec<_> = seen.iter().filter(|text| shown.contains(text.as_str())).collect();
                assert!(found.is_empty(), "{operation:?} {execution:?} {end:?} shows {found:?}");
            }
        }
    }
}

fn shown(
    operation: Operation,
    execution: Execution,
    manifest: Arc<Manifest>,
    desired: &Object,
    vault: &MemoryVault,
    provider: &Chatty,
) -> String {
    let traced = Arc::new(Mutex::new(String::new()));
    let to = Arc::clone(&traced);
    let cx = Context {
        name: "chatty".into(),
        trace: Arc::new(move |_, text| to.lock().unwrap().push_str(text)),
        ..Context::new(std::path::Path::new("/"))
    };
    let id = ResourceId { type_name: manifest.type_name.clone(), name: "chatty".into() };
    let call = Call {
        instance: InstancePath::new(None, id, NodeId(0)),
        manifest,
        operation,
        execution,
        desired: Arc::new(Value::Object(desired.clone())),
        tested: None,
        pending: None,
        metadata: None,
        export_filter: None,
        wanted: Wanted::Reported,
    };
    let answer = carry_out(&call, provider, vault, &cx);
    let failed = matches!(answer.outcome, Outcome::Failed(_));
    assert_eq!(failed, !matches!(provider.end, End::Well), "{operation:?} {execution:?}");
    let traced = traced.lock().unwrap();
    assert!(!traced.is_empty());
    readable(&answer) + &traced
}

/// A resource that answers the same whatever it is given.
struct Fixed(Json);

impl Provider for Fixed {
    fn get(&self, cx: &Context, _input: &Plain) -> Result<State, Failure> {
        cx.say(TraceLevel::Debug, &self.0.to_string());
        Ok(Plain::new(self.0.clone()))
    }
}

fn get(desired: Json, answer: Json, vault: &MemoryVault) -> (Json, String) {
    let traced = Arc::new(Mutex::new(String::new()));
    let to = Arc::clone(&traced);
    let trace = Arc::new(move |_, text: &str| to.lock().unwrap().push_str(text));
    let manifest = manifest(false);
    let id = ResourceId { type_name: manifest.type_name.clone(), name: "other".into() };
    let call = Call {
        instance: InstancePath::new(None, id, NodeId(0)),
        manifest,
        operation: Operation::Get,
        execution: Execution::Actual,
        desired: Arc::new(Value::from(desired)),
        tested: None,
        pending: None,
        metadata: None,
        export_filter: None,
        wanted: Wanted::Reported,
    };
    let answer = carry_out(&call, &Fixed(answer), vault, &Context { trace, ..Context::new(std::path::Path::new("/")) });
    let Outcome::Got(state) = answer.outcome else { panic!("a state") };
    let traced = traced.lock().unwrap().clone();
    (state.to_redacted_json(), traced)
}

#[test]
fn secrets_of_other_instances_are_covered() {
    let vault = MemoryVault::default();
    vault.seal(Value::from("hunter2-of-another"));
    vault.seal(Value::from("-----BEGIN KEY-----\nMIIEvQIBADAN\n-----END KEY-----\n"));
    vault.seal(Value::from("short"));
    vault.seal(Value::from(9_182_736_450_i64));
    let answer = json!({
        "content": "hunter2-of-another",
        "within": "password=hunter2-of-another;",
        "line": "MIIEvQIBADAN",
        "hex": hex("hunter2-of-another"),
        "encoded": STANDARD.encode("hunter2-of-another"),
        "capitals": "HUNTER2-OF-ANOTHER",
        "short": "short",
        "number": 9_182_736_450_i64,
    });
    let (state, traced) = get(json!({}), answer.clone(), &vault);
    let covered = json!({
        "content": "<secureValue>",
        "within": "password=<secureValue>;",
        "line": "<secureValue>",
        "hex": "<secureValue>",
        "encoded": "<secureValue>",
        "capitals": "<secureValue>",
        "short": "short",
        "number": "<secureValue>",
    });
    assert_eq!(state, covered);
    assert!(!traced.contains("hunter2") && !traced.contains("MIIE"), "{traced}");

    let (state, _) = get(json!({"within": ["password=hunter2-of-another;"]}), answer.clone(), &vault);
    assert_eq!(state["within"], answer["within"], "what the instance states in the clear is not a secret of another");
    assert_eq!(state["content"], "<secureValue>");

    vault.wipe();
    assert_eq!(get(json!({}), answer.clone(), &vault).0, answer);
}
