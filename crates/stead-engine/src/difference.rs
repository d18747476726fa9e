//! The differences to show of an instance: which of its properties differ, and what its program printed.

use std::borrow::Cow;
use std::path::PathBuf;

use serde_json::Value as Json;
use stead_core::call::Changed;
use stead_core::destruction::Effect;
use stead_core::diff::{Alteration, Change, Rules, changes, overlaid};
use stead_core::event::Status;
use stead_core::id::NodeId;
use stead_core::report::Record;
use stead_core::run::Run;
use stead_core::value::{Object, Value, pointer};
use stead_resources::{BuiltIn, builtin_of};

/// The differences between before and after, or between the actual and the desired state.
pub struct Difference {
    /// The effect on the instance.
    pub effect: Effect,
    /// Without `_exist`, which the effect covers.
    pub properties: Vec<Change>,
    /// The differences in the words of the resource: the texts of the property `drift`.
    pub words: Vec<String>,
}

/// The members of states that are not properties of the instance.
const NO_PROPERTIES: [&str; 2] = ["/_exist", "/_inDesiredState"];

impl Difference {
    /// Of an instance; `None` where nothing differs or nothing was compared.
    pub fn of(run: &Run, node: NodeId) -> Option<Self> {
        Self::of_record(run.report().record(node), builtin_of(&run.graph().node(node).manifest))
    }

    /// Compares as [`Self::of`] does, from the record of an instance and its resource, if that is built in.
    pub fn of_record(record: &Record, built_in: Option<&BuiltIn>) -> Option<Self> {
        let (effect, schema) = (record.effect()?, built_in.map(BuiltIn::schema));
        let shown = built_in.map(|built_in| built_in.shown).unwrap_or_default();
        Some(match (record.changed(), &record.tested, &record.desired) {
            _ if let Some((before, after)) = record.net_change().filter(|_| record.is_changed()) => {
                Self::between((effect, shown), before, after, None)
            }
            (Some(changed), _, _) => {
                Self::between((effect, shown), &changed.before, &changed.after, changed.changed.as_deref())
            }
            (None, Some(tested), Some(desired)) => {
                let after = match &tested.predicted {
                    Some(predicted) => Cow::Borrowed(&*predicted.after),
                    None => Cow::Owned(stated(schema, &tested.actual, desired)),
                };
                Self::between((effect, shown), &tested.actual, &after, Some(&tested.differing))
            }
            _ => return None,
        })
    }

    /// Of one set of an instance of this resource.
    pub fn of_set(changed: &Changed, built_in: Option<&BuiltIn>) -> Self {
        let shown = built_in.map(|built_in| built_in.shown).unwrap_or_default();
        Self::between((changed.effect(), shown), &changed.before, &changed.after, changed.changed.as_deref())
    }

    /// Compares two states. Besides the properties that the resource names, those in `shown` are kept where they have another
    /// value.
    fn between((effect, shown): (Effect, &[&str]), before: &Value, after: &Value, named: Option<&[String]>) -> Self {
        let known_before = match before {
            _ if is_new(effect) => Cow::Owned(identity(before)),
            // It is not known.
            Value::Null if after.as_object().is_some() => Cow::Owned(Value::Object(Object::new())),
            _ => Cow::Borrowed(before),
        };
        let mut properties = changes(&known_before, after);
        let is_shown = |change: &Change| {
            let property = pointer::steps(&change.path).next().unwrap_or_default();
            matches!(change.what, Alteration::Replaced { .. }) && shown.contains(&&*property)
        };
        properties.retain(|change| {
            !NO_PROPERTIES.contains(&change.path.as_str()) && (tells(effect, change, named) || is_shown(change))
        });
        let words = if effect == Effect::Change { drift(before) } else { Vec::new() };
        // The words say more than that a property such as `source` is not reported.
        properties.retain(|change| words.is_empty() || !matches!(change.what, Alteration::Added(_)));
        Self { effect, properties, words }
    }
}

/// The actual state with what is desired of it.
fn stated(schema: Option<&Json>, actual: &Value, desired: &Value) -> Value {
    // Options, which the schema calls writeOnly, are not part of a state.
    let rules = schema.map_or_else(Rules::default, Rules::of_schema);
    overlaid(actual, desired, &rules)
}

/// Describes what a set does, or would do, in the words of the resource; empty if it has none.
pub fn words(run: &Run, node: NodeId) -> Vec<String> {
    let record = run.report().record(node);
    if let Some(changed) = record.changed() {
        return changed.what_if.clone();
    }
    let shows = matches!(record.status(), Some(Status::Changed | Status::Drifted));
    let Some(predicted) = record.tested.as_ref().filter(|_| shows).and_then(|tested| tested.predicted.as_deref())
    else {
        return Vec::new();
    };
    let cause = changed_of(run, node, &predicted.once).map(|path| format!(", since '{path}' changes"));
    predicted.words.iter().map(|word| format!("{word}{}", cause.as_deref().unwrap_or_default())).collect()
}

/// The first of these paths that an instance changes which comes directly before another, as that states it.
fn changed_of<'r>(run: &'r Run, node: NodeId, paths: &[PathBuf]) -> Option<&'r str> {
    run.graph().node(node).needs.iter().find_map(|need| {
        let record = run.report().record(need.node);
        let stated = record.desired.as_ref().filter(|_| record.is_changed())?.as_object()?.get("path")?.as_str()?;
        paths.iter().any(|path| path.ends_with(stated.trim_start_matches('/'))).then_some(stated)
    })
}

/// The schema of the properties of an instance, where it can be known without asking a program.
pub fn schema(run: &Run, node: NodeId) -> Option<&'static Json> {
    builtin_of(&run.graph().node(node).manifest).map(BuiltIn::schema)
}

/// Returns the output of a program of an instance, as its state tells.
pub fn printed(run: &Run, node: NodeId) -> Option<&Value> {
    let property = builtin_of(&run.graph().node(node).manifest)?.printed?;
    run.report().record(node).state()?.get(property)
}

fn is_new(effect: Effect) -> bool {
    matches!(effect, Effect::Create | Effect::Replace)
}

/// Returns the path and the names of an absent instance. It has no other properties, even if its state repeats the desired ones.
fn identity(absent: &Value) -> Value {
    let mut members = absent.as_object().cloned().unwrap_or_default();
    members.retain(|name, _| matches!(name, "path" | "name" | "names"));
    Value::Object(members)
}

fn drift(state: &Value) -> Vec<String> {
    let drift = state.as_object().and_then(|state| state.get("drift")).and_then(Value::as_array).unwrap_or_default();
    drift.iter().filter_map(|text| text.as_str().map(str::to_owned)).collect()
}

/// Returns whether a change is shown. A created instance is new as a whole, and of a removed one nothing is left. Of
/// one that stays the resource says what has changed: one that tells more of the state before than of the state after
/// has not removed anything.
fn tells(effect: Effect, change: &Change, named: Option<&[String]>) -> bool {
    let property = pointer::steps(&change.path).next().unwrap_or_default();
    match effect {
        Effect::Create | Effect::Replace => true,
        // A property that only says how to remove it is not a difference.
        Effect::Remove => matches!(change.what, Alteration::Removed(_)),
        Effect::Change => match named {
            Some(named) => named.is_empty() || named.iter().any(|name| name.eq_ignore_ascii_case(&property)),
            // Over several tries nobody says which.
            None => pointer::steps(&change.path).count() > 1 || !matches!(change.what, Alteration::Removed(_)),
        },
    }
}
