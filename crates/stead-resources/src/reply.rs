//! What resources that are about a path have in common: their states and their answers.

use stead_core::claims::{Claims, Extent, Provision, Ties};
use stead_core::statements::Statement;
use stead_core::value::{Object, Value};
use stead_host::provider::{Cost, Plain, Prediction, SetReply, TestReply};
use stead_system::fs::parse_mode;

use crate::accounts::record_path;

/// A state: where it is, and whether it is there.
pub(crate) fn state(path: &str, exist: bool) -> Object {
    // With room for what else there is to say.
    let mut state = Object::with_capacity(5);
    state.insert("path".to_owned(), Value::from(path));
    state.insert("_exist".to_owned(), Value::from(exist));
    state
}

/// The properties that have a value.
pub(crate) fn stated<'n>(properties: impl IntoIterator<Item = (&'n str, Option<Value>)>) -> Object {
    properties.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// The answer to a test that found this state, in which these properties differ.
pub(crate) fn tested(actual: Object, differing: &[&str]) -> TestReply {
    TestReply {
        actual: Some(Plain::new(actual)),
        in_desired_state: Some(differing.is_empty()),
        unknown: None,
        differing: Some(owned(differing)),
        predicted: None,
        pending: None,
    }
}

/// The answer to a test that found the desired state, where nobody reads more.
pub(crate) fn in_state() -> TestReply {
    TestReply { in_desired_state: Some(true), differing: Some(Vec::new()), ..TestReply::default() }
}

/// The answer to a test, of which a set would come to what it answers in what-if.
pub(crate) fn tested_as(actual: Object, differing: &[&str], set: SetReply) -> TestReply {
    let after = set.after.filter(|_| !differing.is_empty());
    let (effects, words) = (set.effects, set.what_if);
    let predicted = after.map(|after| Prediction { after, effects, words, once: Vec::new() });
    TestReply { predicted, ..tested(actual, differing) }
}

/// The answer to a set after which, or in what-if would be, this state; these properties differed.
pub(crate) fn set(after: Object, differing: &[&str], what_if: Vec<String>) -> SetReply {
    let (after, changed) = (Some(Plain::new(after)), Some(owned(differing)));
    SetReply { after, changed, what_if, ..SetReply::default() }
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// How long a call takes: what must be copied may be large.
pub(crate) fn cost(desired: &Value) -> Cost {
    let copies = desired.as_object().is_some_and(|properties| properties.contains_key("source"));
    if copies { Cost::Process } else { Cost::Inline }
}

/// The claims of an instance that manages this much of what is at its `path`, and reads its `source`; `None` without a
/// path.
pub(crate) fn claims(input: &Plain, extent: Extent) -> Option<Claims> {
    let [path, mode, source] = texts(input, ["path", "mode", "source"]);
    let mode = mode.and_then(parse_mode).filter(|_| extent != Extent::Absent);
    let mut claims = Claims::path(path?, extent);
    if let Some(mode) = mode {
        claims = claims.and_mode(mode);
    }
    Some(match source {
        Some(source) => claims.and_reads(source),
        None => claims,
    })
}

/// That an instance uses the accounts that it names as `owner`, `user` and `group`.
pub(crate) fn ties(input: &Plain) -> Ties {
    let account = |name: Option<&str>, database| {
        let is_name = |name: &&str| !name.is_empty() && !name.contains('/') && name.parse::<u32>().is_err();
        Some(Provision::Path(record_path(database, name.filter(is_name)?).into()))
    };
    let [owner, user, group] = texts(input, ["owner", "user", "group"]);
    let named = [account(owner, "passwd"), account(user, "passwd"), account(group, "group")];
    Ties { provides: Vec::new(), uses: named.into_iter().flatten().collect() }
}

/// Returns what an instance states of a thing: whether it exists and, unless it is to be removed, those of these properties that
/// the instance has.
pub(crate) fn states(thing: &str, input: &Plain, properties: &[&'static str]) -> Vec<Statement> {
    let exists = (Statement::EXISTENCE, Value::Bool(!is_removal(input)));
    let of = |name: &&'static str| Some((*name, input.expose().get(name).filter(|value| !value.is_null())?.clone()));
    let properties = properties.iter().filter(|_| !is_removal(input)).filter_map(of);
    let statement = |(property, value)| Statement { thing: thing.to_owned(), property, value };
    std::iter::once(exists).chain(properties).map(statement).collect()
}

/// Returns the owner and the group that an instance states by name for its `path`. Numbers are left out: a name may mean the
/// same.
pub(crate) fn owners(input: &Plain) -> Vec<Statement> {
    let [owner, group] = texts(input, ["owner", "group"]);
    let state = |(property, name): (&'static str, Option<&str>)| {
        let name = name.filter(|name| name.parse::<u32>().is_err() && !is_removal(input))?;
        let thing = format!("'{}'", text(input, "path")?);
        Some(Statement { thing, property, value: Value::from(name) })
    };
    [("owner", owner), ("group", group)].into_iter().filter_map(state).collect()
}

/// Returns whether an instance is to be removed, as far as that is known.
pub(crate) fn is_removal(input: &Plain) -> bool {
    input.expose().get("_exist") == Some(&Value::Bool(false))
}

/// The values of properties, found in one pass: it is asked of each instance of each run, and most state few.
pub(crate) fn values<'a, const N: usize>(input: &'a Plain, names: [&str; N]) -> [Option<&'a Value>; N] {
    let mut found = [None; N];
    for (stated, value) in input.expose().as_object().into_iter().flatten() {
        let places = names.iter().zip(&mut found);
        places.filter(|(name, _)| **name == *stated).for_each(|(_, place)| *place = Some(value));
    }
    found
}

/// Those of them that are texts.
fn texts<'a, const N: usize>(input: &'a Plain, names: [&str; N]) -> [Option<&'a str>; N] {
    values(input, names).map(|value| value?.as_str())
}

pub(crate) fn text<'a>(input: &'a Plain, name: &str) -> Option<&'a str> {
    input.expose().get(name).and_then(Value::as_str)
}
