//! What a saved plan shows: what its instances say, and nothing else.

use serde_json::Value as Json;
use stead_core::destruction::{Effect, Effects};
use stead_core::diff::{Alteration, Change};
use stead_core::event::{Mode, SkipReason, Status};
use stead_core::id::TypeName;
use stead_core::value::Value;
use stead_core::visible::visible;
use stead_engine::{Difference, SavedPlan, is_single};
use stead_resources::builtin;

use crate::request::Detail;

use super::super::report::{UNKNOWN, counts, described, heading_of, headline, until, wording};
use super::super::values;

/// The lines, as a plan prints them, without the time that it took. In brief, only the first one of each instance.
pub(crate) fn text(plan: &SavedPlan, detail: Detail) -> String {
    let shown = plan.instances.iter().filter(|each| is_single(each));
    let lines: String = shown
        .map(|each| {
            headline_of(each)
                + &match detail {
                    Detail::Brief => String::new(),
                    Detail::Full => body(each),
                }
        })
        .collect();
    format!("{lines}Plan: {}\n", counts(Mode::PLAN, &plan.totals()))
}

/// The lines about an instance of the report of a run elsewhere, as the run itself would print them; empty where it is as it
/// should be, and of a container that is only the sum of what is in it.
pub(crate) fn reported(instance: &Json, mode: Mode, detail: Detail) -> String {
    let status = match instance["status"].as_str() {
        Some("changed") => Status::Changed,
        Some("drifted") => Status::Drifted,
        Some("failed") => Status::Failed,
        Some("pending") => Status::Pending,
        Some("skipped") => Status::Skipped(SkipReason::Cancelled),
        Some("unknown") => Status::Undetermined,
        _ => return String::new(),
    };
    let differs = matches!(status, Status::Changed | Status::Drifted);
    let why =
        ["message", "due"].iter().find_map(|name| instance[*name].as_str().filter(|_| !differs || *name == "due"));
    let why = why.map(|why| format!(": {}", visible(why.trim_end()))).unwrap_or_default();
    let is_container = TypeName::parse(&text_of(instance, "type")).is_ok_and(|name| is_container(&name));
    if differs && is_container {
        return String::new();
    }
    let first = headline(wording(mode, &status, effect(instance)), &heading(instance), &why);
    if differs && detail == Detail::Full { first + &differences(instance) } else { first }
}

/// Returns whether an instance of the report of a plan removes or replaces what is there.
pub(crate) fn removes(instance: &Json) -> bool {
    let effects: Option<Effects> = serde_json::from_value(instance["effects"].clone()).ok();
    let is_gone = matches!(effect(instance), Some(Effect::Remove | Effect::Replace));
    is_gone || effects.is_some_and(|effects| effects.is_destructive())
}

/// Returns whether the plan does not know what becomes of an instance.
pub(crate) fn is_unknown(instance: &Json) -> bool {
    instance["status"] == "unknown"
}

/// Returns whether instances of a type are nested in it.
fn is_container(name: &TypeName) -> bool {
    matches!(name.as_str(), "Microsoft.DSC/Group" | "Microsoft.DSC/Include" | "Microsoft.DSC/Assertion")
}

/// The first line about one; empty where nothing becomes of it.
fn headline_of(instance: &Json) -> String {
    match instance["status"].as_str() {
        Some("changed") => {
            let due = instance["due"].as_str().map(|due| format!(": {}", visible(due))).unwrap_or_default();
            headline(wording(Mode::PLAN, &Status::Changed, effect(instance)), &heading(instance), &due)
        }
        Some("unknown") => {
            let why = instance["until"].as_str().map(until);
            let why = why.or_else(|| Some(format!(": {}", visible(instance["message"].as_str()?))));
            headline(UNKNOWN, &heading(instance), &why.unwrap_or_default())
        }
        _ => String::new(),
    }
}

fn effect(instance: &Json) -> Option<Effect> {
    serde_json::from_value(instance["action"].clone()).ok()
}

fn heading(instance: &Json) -> String {
    let names = instance["names"].as_array().into_iter().flatten();
    let names: Vec<&str> = names.filter_map(Json::as_str).collect();
    let names = if names.is_empty() { instance["name"].as_str().into_iter().collect() } else { names };
    heading_of(&text_of(instance, "type"), &names, instance["desired"]["path"].as_str())
}

/// Returns the lines below the headline; empty for an instance that does not change.
fn body(instance: &Json) -> String {
    if instance["status"] == "changed" { differences(instance) } else { String::new() }
}

/// What differs in an instance.
fn differences(instance: &Json) -> String {
    let difference = effect(instance).map(|effect| Difference {
        effect,
        properties: instance["changes"].as_array().into_iter().flatten().filter_map(change).collect(),
        words: texts(&instance["drift"]),
    });
    let effects: Option<Effects> = serde_json::from_value(instance["effects"].clone()).ok();
    let built_in = TypeName::parse(&text_of(instance, "type")).ok().and_then(|name| builtin(&name));
    let words = texts(&instance["words"]);
    values::shown(&described(difference.as_ref(), effects.as_ref(), Some(&words), built_in))
}

/// A change of a property; `None` of that it is there, which the headline says.
fn change(change: &Json) -> Option<Change> {
    let path = change["path"].as_str().filter(|path| *path != "/_exist")?.to_owned();
    let value = |name: &str| change.get(name).map(|value| Value::from(value.clone()));
    let what = match (value("before"), value("after")) {
        (Some(old), Some(new)) => Alteration::Replaced { old, new },
        (Some(old), None) => Alteration::Removed(old),
        (None, new) => Alteration::Added(new?),
    };
    Some(Change { path, what })
}

fn text_of(instance: &Json, member: &str) -> String {
    instance[member].as_str().unwrap_or_default().to_owned()
}

fn texts(list: &Json) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(|text| text.as_str().map(str::to_owned)).collect()
}
