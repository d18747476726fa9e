//! Arrays without regard to order: every desired element has an actual one of its own.

use std::collections::HashMap;

use super::{Case, Rules, Shape, matches as element_matches, scalar};
use crate::value::Value;

/// Returns whether the arrays are equally long and the elements can be paired so that each actual one is as desired.
///
/// Elements that are equal are paired first, by key. That is never wrong: whatever else the two could be paired with
/// can be paired with each other. What is left are objects and arrays that are desired in part; they are paired along
/// augmenting paths. Usual states are in the same order, so an element tries the one at its own place first.
pub(super) fn matches(wanted: &[Value], actual: &[Value], rules: &Rules<'_>) -> bool {
    if wanted.len() != actual.len() {
        return false;
    }
    let (wanted, actual) = without_equal_pairs(wanted, actual, rules);
    let rules = rules.without_schema();
    let composite = |value: &&Value| matches!(value, Value::Object(_) | Value::Array(_) | Value::Sealed(_));
    wanted.iter().all(composite) && actual.iter().all(composite) && Pairing::new(&wanted, &actual, &rules).completes()
}

fn without_equal_pairs<'v>(
    wanted: &'v [Value],
    actual: &'v [Value],
    rules: &Rules<'_>,
) -> (Vec<&'v Value>, Vec<&'v Value>) {
    let mut places: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, value) in actual.iter().enumerate().rev() {
        if let Some(key) = scalar::key(value, rules.case) {
            places.entry(key).or_default().push(at);
        }
    }
    let mut taken = vec![false; actual.len()];
    let mut left = Vec::new();
    for value in wanted {
        let place = scalar::key(value, rules.case).and_then(|key| places.get_mut(&key)?.pop());
        match place.and_then(|at| taken.get_mut(at)) {
            Some(taken) => *taken = true,
            None => left.push(value),
        }
    }
    let free = actual.iter().zip(taken).filter(|(_, taken)| !taken).map(|(value, _)| value).collect();
    (left, free)
}

/// A pairing of desired and actual elements in the making.
struct Pairing<'p> {
    wanted: &'p [&'p Value],
    actual: &'p [&'p Value],
    rules: &'p Rules<'p>,
    /// Which actual elements each desired one may have, by the members that tell elements apart.
    groups: Vec<Vec<usize>>,
    /// Which desired element has each actual one.
    owner: Vec<Option<usize>>,
    /// Which actual element each desired one has.
    has: Vec<Option<usize>>,
}

impl<'p> Pairing<'p> {
    fn new(wanted: &'p [&'p Value], actual: &'p [&'p Value], rules: &'p Rules<'p>) -> Self {
        let groups = candidates(wanted, actual, rules);
        Self { wanted, actual, rules, groups, owner: vec![None; actual.len()], has: vec![None; wanted.len()] }
    }

    fn completes(mut self) -> bool {
        (0..self.wanted.len()).all(|at| self.place(at))
    }

    /// Finds an actual element for a desired one by moving others aside, breadth first, so that no stack grows.
    fn place(&mut self, start: usize) -> bool {
        let mut came_from: HashMap<usize, usize> = HashMap::new();
        let mut queue = std::collections::VecDeque::from([start]);
        while let Some(at) = queue.pop_front() {
            for candidate in self.groups.get(at).cloned().unwrap_or_default() {
                if came_from.contains_key(&candidate) || !self.fits(at, candidate) {
                    continue;
                }
                came_from.insert(candidate, at);
                match self.owner.get(candidate).copied().flatten() {
                    Some(owner) => queue.push_back(owner),
                    None => return self.hand_over(candidate, start, &came_from),
                }
            }
        }
        false
    }

    fn fits(&self, wanted: usize, actual: usize) -> bool {
        let pair = self.wanted.get(wanted).zip(self.actual.get(actual));
        pair.is_some_and(|(wanted, actual)| element_matches(wanted, actual, Shape::ANY, self.rules))
    }

    /// Gives each element on the path the place that was found for it. Always true, for the caller to pass on.
    fn hand_over(&mut self, free: usize, start: usize, came_from: &HashMap<usize, usize>) -> bool {
        let mut place = Some(free);
        while let Some(at) = place {
            let Some(&wanted) = came_from.get(&at) else { break };
            let had = self.has.get_mut(wanted).and_then(|has| has.replace(at));
            if let Some(owner) = self.owner.get_mut(at) {
                *owner = Some(wanted);
            }
            place = had.filter(|_| wanted != start);
        }
        true
    }
}

/// For each desired element the actual ones that agree with it in all members that are neither objects, arrays nor
/// sealed; the one at its own place first.
fn candidates(wanted: &[&Value], actual: &[&Value], rules: &Rules<'_>) -> Vec<Vec<usize>> {
    let mut by_names: HashMap<Vec<&str>, HashMap<String, Vec<usize>>> = HashMap::new();
    let mut groups = Vec::with_capacity(wanted.len());
    for (at, value) in wanted.iter().enumerate() {
        let names = telling_names(value);
        let index = by_names.entry(names.clone()).or_insert_with(|| index(actual, &names, rules));
        let mut group = signature(value, &names, rules).and_then(|key| index.get(&key).cloned()).unwrap_or_default();
        if let Some(own) = group.iter().position(|place| *place == at) {
            group.swap(0, own);
        }
        groups.push(group);
    }
    groups
}

fn index(actual: &[&Value], names: &[&str], rules: &Rules<'_>) -> HashMap<String, Vec<usize>> {
    let mut index: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, value) in actual.iter().enumerate() {
        if let Some(key) = signature(value, names, rules) {
            index.entry(key).or_default().push(at);
        }
    }
    index
}

fn telling_names(value: &Value) -> Vec<&str> {
    let members = value.as_object().into_iter().flatten();
    let telling = |value: &Value| !matches!(value, Value::Object(_) | Value::Array(_) | Value::Sealed(_));
    members.filter(|(_, value)| telling(value)).map(|(name, _)| name.as_str()).collect()
}

fn signature(value: &Value, names: &[&str], rules: &Rules<'_>) -> Option<String> {
    if names.is_empty() {
        return Some(String::new());
    }
    let members = value.as_object()?;
    let missing = (rules.case == Case::PowerShell).then_some(&Value::Null);
    let keys = names.iter().map(|name| scalar::key(rules.member(members, name).or(missing)?, rules.case));
    keys.collect::<Option<Vec<_>>>().map(|keys| keys.join(","))
}
