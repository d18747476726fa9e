//! PowerShell's conversions of values, held against what is passed on to it.
//!
//! The recorded conversions lie outside of the repository; `corpus/powershell/values/deviations.json` lists the
//! classes of values that are refused although PowerShell converts them, and why, and the types whose texts only
//! PowerShell can check.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

#[path = "support/declared.rs"]
mod declared;
#[path = "support/kept.rs"]
mod kept;

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::value::RawValue;
use stead_powershell::convert::{Json, Path, ValueRefusal, Wire, convert, property_value};
use stead_powershell::worker::{Call, Deadline, Limits, Method, Module, Pool, Records, Settings};
use stead_powershell_reader::resource::DefinitionKind;
use stead_powershell_reader::types::Rule;
use stead_powershell_reader::types::Type;
use stead_system::Cancel;
use stead_system::process::Environment;

use declared::{declared, property};
use kept::kept;

#[derive(Deserialize)]
struct Line {
    #[serde(rename = "type", default)]
    ty: String,
    #[serde(default)]
    json: String,
    result: Option<Box<RawValue>>,
    #[serde(default)]
    differs: BTreeMap<String, Option<Box<RawValue>>>,
    #[serde(default)]
    attribute: String,
    #[serde(default)]
    via: String,
}

#[derive(Deserialize)]
struct Deviations {
    refused: BTreeMap<String, String>,
    left_to_powershell: BTreeMap<String, String>,
}

fn deviations() -> Deviations {
    let file = stead_testkit::repository().join("corpus/powershell/values/deviations.json");
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

fn lines(name: &str, test: &str) -> Option<Vec<Line>> {
    let file = stead_testkit::repository().join("../shared/corpus/powershell/values").join(name);
    let Ok(recorded) = std::fs::read_to_string(file) else {
        stead_testkit::skip(test, "the recorded conversions are not there");
        return None;
    };
    Some(recorded.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

/// Returns the conversion that was recorded for the form in which the value is passed on; `None` for an error.
fn recorded(line: &Line, ty: &Type) -> Option<Json> {
    let rule = match innermost(ty) {
        Type::OrderedDictionary => "ordered",
        Type::PsObject => "pscustomobject",
        _ => "hashtable",
    };
    let node = line.differs.get(rule).unwrap_or(&line.result);
    let node = node.as_ref().map_or(Json::Null, |node| Json::parse(node.get()).unwrap());
    let is_error = |node: &Json| member(node, "error").or(member(node, "refused")).is_some();
    (!is_error(&node)).then_some(node)
}

fn innermost(ty: &Type) -> &Type {
    if let Type::Array(inner) | Type::Nullable(inner) = ty { innermost(inner) } else { ty }
}

#[test]
fn what_is_accepted_means_the_same_in_powershell() {
    let Some(lines) = lines("in.jsonl", "what_is_accepted_means_the_same_in_powershell") else { return };
    let deviations = deviations();
    let (mut wrong, mut used, mut counts) = (BTreeSet::new(), BTreeSet::new(), BTreeMap::<&str, usize>::new());
    for line in &lines {
        let ty = declared(&line.ty);
        let expected = recorded(line, &ty);
        let value = Json::parse(&line.json);
        let built = matches!(innermost(&ty), Type::Credential | Type::SecureString | Type::CimInstance(_));
        let found = value.as_ref().ok().map(|value| convert(&ty, value, Path::PROPERTIES));
        let class = match (&found, &expected) {
            (None | Some(Err(_)), None) => "refused by both",
            (None, Some(_)) => "not valid Unicode",
            (Some(Err(refusal)), Some(_)) => {
                let class = class(refusal, &line.json);
                if !deviations.refused.contains_key(&class) {
                    wrong.insert(format!("{class}: {} {}", line.ty, line.json));
                }
                used.insert(class);
                "refused here"
            }
            (Some(Ok(_)), _) if built => "built by the worker",
            (Some(Ok(_)), None) => {
                if !deviations.left_to_powershell.contains_key(&line.ty) {
                    wrong.insert(format!("accepted, and an error: {} {}", line.ty, line.json));
                }
                used.insert(line.ty.clone());
                "left to PowerShell"
            }
            (Some(Ok(_)), Some(node)) => {
                if !deviations.left_to_powershell.contains_key(&line.ty) && !means(value.as_ref().unwrap(), node) {
                    wrong.insert(format!("another value: {} {} {node:?}", line.ty, line.json));
                }
                "the same"
            }
        };
        *counts.entry(class).or_default() += 1;
    }
    assert!(wrong.is_empty(), "{} wrong: {:#?}", wrong.len(), wrong);
    let listed: BTreeSet<String> =
        deviations.refused.into_keys().chain(deviations.left_to_powershell.into_keys()).collect();
    assert_eq!(used, listed, "deviations that do not occur");
    eprintln!("{} conversions: {counts:?}", lines.len());
}

/// Gives every accepted value to PowerShell: no call fails, and scalars come back as they were stated.
#[test]
fn what_is_accepted_is_assigned_on_real_powershell() {
    let test = "what_is_accepted_is_assigned_on_real_powershell";
    let Some(executable) = stead_testkit::powershell(test) else { return };
    let environment = Environment::of_this_process(&[]);
    let Some(lines) = lines("in.jsonl", test) else { return };
    let names: Vec<&str> = lines.iter().map(|line| line.ty.as_str()).collect::<BTreeSet<_>>().into_iter().collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("In.psm1");
    let class = |(index, name): (usize, &&str)| {
        let ty = if *name == "(none)" { String::new() } else { format!("[{name}]") };
        format!("class H_{index} {{ {ty} $P; [H_{index}] Get() {{ return $this }} }}\n")
    };
    std::fs::write(&path, IN_TYPES.to_owned() + &names.iter().enumerate().map(class).collect::<String>()).unwrap();
    let pool = Pool::new(kept(Settings::new(executable, environment, 1)));
    let (left, mut wrong, mut count) = (deviations().left_to_powershell, Vec::new(), 0);
    for line in lines.iter().filter(|line| !left.contains_key(&line.ty)) {
        let ty = declared(&line.ty);
        let value = Json::parse(&line.json).ok();
        let Some(Ok(wire)) = value.map(|value| convert(&ty, &value, Path::PROPERTIES)) else { continue };
        if matches!(innermost(&ty), Type::CimInstance(_)) && wire != Wire::Null {
            continue;
        }
        count += 1;
        let resource = format!("H_{}", names.binary_search(&line.ty.as_str()).unwrap());
        let properties = [("P".to_owned(), wire)];
        let call = Call {
            kind: DefinitionKind::Class,
            module: Module { path: &path, stamp: "1" },
            resource: &resource,
            method: Method::Get,
            properties: &properties,
            records: Records::None,
            progress: None,
            directory: std::path::Path::new("/"),
            root: std::path::Path::new("/"),
        };
        let cancel = Cancel::default();
        let limits = Limits {
            deadline: Deadline::after(std::time::Duration::from_mins(1)),
            output: 1 << 20,
            cancel: &cancel,
            inherited: &[],
            to_come: 0,
        };
        let is_plain = matches!(ty, Type::Boolean | Type::Integer { .. } | Type::Guid)
            && !line.json.contains(['"', '.', 'e', 'E']);
        match pool.call(&call, &limits, &mut |_| {}) {
            Ok(reply) => {
                let state = reply.state().unwrap().unwrap().get().to_owned();
                let stated = if line.json == "-0" { "0" } else { &line.json };
                if is_plain && state != format!("{{\"P\":{stated}}}") {
                    wrong.push(format!("{} {}: {state}", line.ty, line.json));
                }
            }
            Err(failed) => wrong.push(format!("{} {}: {failed}", line.ty, line.json)),
        }
    }
    assert!(wrong.is_empty(), "{} of {count}: {wrong:#?}", wrong.len());
    eprintln!("{count} values are assigned by PowerShell itself");
}

/// The types that were recorded besides those of .NET.
const IN_TYPES: &str = "enum Color { Red; Green; Blue }
[Flags()] enum Perm { None = 0; Read = 1; Write = 2; Execute = 4 }
enum Ensure { Absent; Present }
class Inner { [string] $Name; [int] $Count }
class Outer { [string] $Name; [Inner] $Inner; [Inner[]] $Many }
class NoDefault { [string] $Name; NoDefault([string] $name) { $this.Name = $name } }
";

/// Returns the class of a refusal: the kind of JSON, and why.
fn class(refusal: &ValueRefusal, json: &str) -> String {
    let kind = match json.as_bytes().first() {
        Some(b'[') => "array",
        Some(b'{') => "object",
        Some(b'"') => "string",
        Some(b't' | b'f') => "boolean",
        Some(b'n') => "null",
        _ => "number",
    };
    format!("{}: {kind}", serde_json::to_value(refusal.mismatch).unwrap().as_str().unwrap())
}

#[test]
fn rules_refuse_what_powershell_refuses() {
    let Some(lines) = lines("in-validate.jsonl", "rules_refuse_what_powershell_refuses") else { return };
    let (mut wrong, mut stricter, mut checked) = (BTreeSet::new(), 0, 0);
    let stated = |line: &&Line| !line.json.is_empty() && (line.via == "property" || line.via == "parameter");
    for line in lines.iter().filter(stated) {
        let Some(rules) = rules(&line.attribute) else { continue };
        checked += 1;
        let property = property(&line.ty, rules);
        let found = property_value(&property, &Json::parse(&line.json).unwrap(), Path::PROPERTIES);
        let expected = recorded(line, &property.ty);
        match (found, expected) {
            (Ok(_), None) => _ = wrong.insert(format!("{} {} {}", line.attribute, line.ty, line.json)),
            (Err(_), Some(_)) => stricter += 1,
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "accepted, and an error: {wrong:#?}");
    assert_eq!(stricter, 8, "null, a fraction or an array where PowerShell converts it first");
    eprintln!("{checked} values with rules, {stricter} of them refused here alone");
}

/// The rules of an attribute; `None` for those that only PowerShell holds against values.
fn rules(attribute: &str) -> Option<Vec<Rule>> {
    let number = |text: &str| text.trim().parse().unwrap();
    let (name, arguments) = attribute.trim_matches(['[', ']']).split_once('(')?;
    let arguments = arguments.trim_end_matches(')');
    let list: Vec<&str> = arguments.split(',').map(|text| text.trim().trim_matches('\'')).collect();
    let pair = (*list.first()?, *list.last()?);
    Some(vec![match name {
        "ValidateSet" if !arguments.contains("IgnoreCase") => {
            Rule::OneOf(list.iter().map(|text| (*text).to_owned()).collect())
        }
        "ValidateRange" if list.len() == 2 => Rule::Range(pair.0.to_owned(), pair.1.to_owned()),
        "ValidateLength" => Rule::Length(number(pair.0), number(pair.1)),
        "ValidateCount" => Rule::Count(number(pair.0), number(pair.1)),
        "ValidateNotNull" => Rule::NotNull,
        "ValidateNotNullOrEmpty" => Rule::NotEmpty,
        _ => return None,
    }])
}

fn member<'a>(object: &'a Json, name: &str) -> Option<&'a Json> {
    let Json::Object(members) = object else { return None };
    members.iter().find(|(each, _)| each.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

/// Returns whether a recorded value means what the JSON says.
fn means(wanted: &Json, node: &Json) -> bool {
    let (Some(Json::String(ty)), Some(value)) = (member(node, "t"), member(node, "v")) else {
        return *wanted == Json::Null && *node == Json::Null;
    };
    match (wanted, value) {
        (Json::Array(wanted), Json::Array(found)) => {
            wanted.len() == found.len() && wanted.iter().zip(found).all(|(wanted, found)| means(wanted, found))
        }
        (wanted, Json::Array(found)) => found.len() == 1 && means(wanted, &found[0]),
        (Json::Number(wanted), Json::Object(_)) => {
            matches!(member(value, "number"), Some(Json::Number(found)) if (number(wanted) - number(found)).abs() < 0.5)
        }
        (Json::Array(names), Json::Object(_)) => {
            let Some(Json::String(found)) = member(value, "name") else { return false };
            found.split(", ").map(|name| Json::String(name.to_owned())).eq(names.iter().cloned())
        }
        (Json::String(text), Json::Object(_)) if member(value, "name").is_some() => {
            let Some(Json::String(name)) = member(value, "name") else { return false };
            let plain = |text: &str| text.to_lowercase().replace(' ', "");
            plain(name) == plain(text)
        }
        (Json::String(_), Json::Object(_)) => {
            ["text", "pattern"].iter().any(|name| member(value, name) == Some(wanted))
        }
        (Json::Object(wanted), Json::Object(found)) => {
            let same = |(name, wanted): &(String, Json)| {
                let found = member(value, name);
                (*wanted == Json::Null && ["Inner", "Outer"].contains(&ty.as_str()))
                    || found.is_some_and(|found| means(wanted, found))
            };
            wanted.iter().all(same)
                && (found.len() == wanted.len() || ["Inner", "Outer", "NoDefault"].contains(&ty.as_str()))
        }
        (Json::Bool(wanted), Json::Bool(found)) => wanted == found,
        (Json::Number(wanted) | Json::String(wanted), Json::Number(found)) => same_number(ty, wanted, found),
        (Json::Number(wanted), Json::String(found)) => wanted == found || (wanted == "-0" && found == "0"),
        (Json::String(wanted), Json::String(found)) => same_text(ty, wanted, found),
        _ => false,
    }
}

fn number(text: &str) -> f64 {
    text.parse().unwrap()
}

fn same_number(ty: &str, wanted: &str, found: &str) -> bool {
    let (one, other) = (number(wanted), number(found));
    match ty {
        "System.Single" | "System.Double" if wanted == "-0" => other == 0.0,
        #[expect(clippy::cast_possible_truncation, reason = "that is what the type does")]
        "System.Single" => (one as f32).to_bits() == (other as f32).to_bits(),
        // What was recorded took the way of a decimal, which misses the nearest double by one.
        "System.Double" if wanted.len() > 20 => one.to_bits().abs_diff(other.to_bits()) <= 1,
        "System.Double" => one.to_bits() == other.to_bits(),
        _ if wanted.contains(['e', 'E']) => (one - other).abs() == 0.0,
        _ => {
            let plain = |text: &str| {
                let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text };
                if text == "-0" { "0".to_owned() } else { text.to_owned() }
            };
            plain(wanted) == plain(found)
        }
    }
}

fn same_text(ty: &str, wanted: &str, found: &str) -> bool {
    let date = |text: &str| {
        let text = if text.contains('T') { text.to_owned() } else { format!("{text}T00:00:00") };
        text.parse::<jiff::Timestamp>()
            .ok()
            .map_or_else(|| text.parse::<jiff::civil::DateTime>().unwrap().to_string(), |at| at.to_string())
    };
    let bare = |text: &str| text.to_lowercase().replace(['-', '{', '}'], "");
    let span = |text: &str| text.trim_end_matches('0').trim_end_matches('.').to_owned();
    match ty {
        "System.DateTime" | "System.DateTimeOffset" => date(wanted) == date(found),
        "System.Guid" => bare(wanted) == bare(found),
        "System.TimeSpan" => span(wanted) == span(found),
        "System.Globalization.CultureInfo" => wanted.eq_ignore_ascii_case(found),
        _ => wanted == found,
    }
}
