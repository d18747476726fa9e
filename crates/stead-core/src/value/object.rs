//! Objects: named values in the order in which they were written.

use std::fmt;
use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;

use super::Value;

/// Up to this many members, a linear search is faster than computing a hash, and nothing else needs to be
/// stored. Nearly every object of a document is that small.
const SEARCHED: usize = 16;

/// An object; members keep the order in which they were written, and no name occurs twice.
///
/// Two objects are equal if they have the same members in whatever order.
///
/// # Examples
/// ```
/// use stead_core::value::{Object, Value};
///
/// let mut object = Object::from([("z".to_owned(), Value::from(1)), ("a".to_owned(), Value::from(2))]);
/// // A member that is replaced keeps its place.
/// object.insert("z".to_owned(), Value::from(3));
/// object.insert("m".to_owned(), Value::Null);
/// assert_eq!(object.keys().collect::<Vec<_>>(), ["z", "a", "m"]);
/// // Order does not matter when objects are compared.
/// let other = object.iter().rev().map(|(name, value)| (name.clone(), value.clone())).collect::<Object>();
/// assert_eq!(object, other);
/// ```
#[derive(Clone, Default)]
pub struct Object {
    members: Vec<(String, Value)>,
    /// Where each name is in `members`; only when there are more than [`SEARCHED`].
    places: Option<Box<Places>>,
}

#[derive(Clone, Default)]
struct Places {
    hasher: RandomState,
    table: HashTable<usize>,
}

impl Object {
    /// An object without members.
    pub fn new() -> Self {
        Self::default()
    }

    /// An object without members that has room for so many.
    pub fn with_capacity(members: usize) -> Self {
        Self { members: Vec::with_capacity(members), places: None }
    }

    /// Returns the number of members.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Returns whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The value of that name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.members.get(self.position(name)?).map(|(_, value)| value)
    }

    /// The value of that name, to be changed.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        let position = self.position(name)?;
        self.members.get_mut(position).map(|(_, value)| value)
    }

    /// The member of that name.
    pub fn get_key_value(&self, name: &str) -> Option<(&String, &Value)> {
        self.members.get(self.position(name)?).map(|(name, value)| (name, value))
    }

    /// Returns whether there is a value of that name.
    pub fn contains_key(&self, name: &str) -> bool {
        self.position(name).is_some()
    }

    /// The member that was written first.
    pub fn first(&self) -> Option<(&String, &Value)> {
        self.members.first().map(|(name, value)| (name, value))
    }

    /// Sets the value of that name: in its place if there is one, else behind all others. Returns the value that it
    /// replaces.
    pub fn insert(&mut self, name: String, value: Value) -> Option<Value> {
        if let Some(old) = self.get_mut(&name) {
            return Some(std::mem::replace(old, value));
        }
        self.members.push((name, value));
        match &mut self.places {
            Some(places) => places.add(self.members.len() - 1, &self.members),
            None if self.members.len() > SEARCHED => self.places = Some(Box::new(Places::of(&self.members))),
            None => {}
        }
        None
    }

    /// Takes the member of that name out; the others keep their order. Takes time in the number of members.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        let position = self.position(name)?;
        let (_, value) = self.members.remove(position);
        self.place();
        Some(value)
    }

    /// Takes the member of that name out; the last one comes in its place.
    pub fn swap_remove(&mut self, name: &str) -> Option<Value> {
        let position = self.position(name)?;
        let (_, value) = self.members.swap_remove(position);
        self.place();
        Some(value)
    }

    /// Takes the last member out.
    pub fn pop(&mut self) -> Option<(String, Value)> {
        let last = self.members.pop();
        self.place();
        last
    }

    /// Keeps the members for which `keep` holds, in their order.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, &mut Value) -> bool) {
        self.members.retain_mut(|(name, value)| keep(name, value));
        self.place();
    }

    /// The members in their order.
    pub fn iter(&self) -> Iter<'_> {
        self.into_iter()
    }

    /// The members in their order, with values to be changed.
    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = (&String, &mut Value)> + ExactSizeIterator {
        self.members.iter_mut().map(|(name, value)| (&*name, value))
    }

    /// The names in their order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &String> + ExactSizeIterator + Clone {
        self.members.iter().map(|(name, _)| name)
    }

    /// The values in the order of their names.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &Value> + ExactSizeIterator + Clone {
        self.members.iter().map(|(_, value)| value)
    }

    /// The values in the order of their names, to be changed.
    pub fn values_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Value> + ExactSizeIterator {
        self.members.iter_mut().map(|(_, value)| value)
    }

    fn position(&self, name: &str) -> Option<usize> {
        match &self.places {
            Some(places) => places.find(name, &self.members),
            None => self.members.iter().position(|(other, _)| other == name),
        }
    }

    /// Finds all places anew, after members were taken out.
    fn place(&mut self) {
        self.places = (self.members.len() > SEARCHED).then(|| Box::new(Places::of(&self.members)));
    }
}

impl Places {
    fn of(members: &[(String, Value)]) -> Self {
        let mut places = Self::default();
        (0..members.len()).for_each(|position| places.add(position, members));
        places
    }

    fn add(&mut self, position: usize, members: &[(String, Value)]) {
        let Self { hasher, table } = self;
        let hash = |position: &usize| hasher.hash_one(members.get(*position).map(|(name, _)| name.as_str()));
        table.insert_unique(hash(&position), position, hash);
    }

    fn find(&self, name: &str, members: &[(String, Value)]) -> Option<usize> {
        let is_named = |position: &usize| members.get(*position).is_some_and(|(other, _)| other == name);
        self.table.find(self.hasher.hash_one(Some(name)), is_named).copied()
    }
}

/// The members of an object in their order.
pub type Iter<'o> = std::iter::Map<std::slice::Iter<'o, (String, Value)>, fn(&(String, Value)) -> (&String, &Value)>;

impl<'o> IntoIterator for &'o Object {
    type Item = (&'o String, &'o Value);
    type IntoIter = Iter<'o>;

    fn into_iter(self) -> Iter<'o> {
        self.members.iter().map(|(name, value)| (name, value))
    }
}

impl IntoIterator for Object {
    type Item = (String, Value);
    type IntoIter = std::vec::IntoIter<(String, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.members.into_iter()
    }
}

impl Extend<(String, Value)> for Object {
    fn extend<I: IntoIterator<Item = (String, Value)>>(&mut self, members: I) {
        for (name, value) in members {
            self.insert(name, value);
        }
    }
}

impl FromIterator<(String, Value)> for Object {
    /// Of members with the same name, the last one counts, in the place of the first.
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(members: I) -> Self {
        let members = members.into_iter();
        let mut object = Self::with_capacity(members.size_hint().0);
        object.extend(members);
        object
    }
}

impl<const N: usize> From<[(String, Value); N]> for Object {
    fn from(members: [(String, Value); N]) -> Self {
        members.into_iter().collect()
    }
}

impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().all(|(name, value)| other.get(name) == Some(value))
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum ObjectEdit {
        Insert(u8, i64),
        Remove(u8),
        SwapRemove(u8),
        Pop,
        Keep(i64),
    }

    fn step() -> impl Strategy<Value = ObjectEdit> {
        prop_oneof![
            20 => (0..60_u8, any::<i64>()).prop_map(|(name, value)| ObjectEdit::Insert(name, value)),
            3 => (0..60_u8).prop_map(ObjectEdit::Remove),
            3 => (0..60_u8).prop_map(ObjectEdit::SwapRemove),
            1 => Just(ObjectEdit::Pop),
            1 => (2..10_i64).prop_map(ObjectEdit::Keep),
        ]
    }

    /// Carries the same steps out on a list that is always searched from its start.
    fn carry_out(step: &ObjectEdit, object: &mut Object, model: &mut Vec<(String, i64)>) {
        match step {
            ObjectEdit::Insert(name, value) => {
                object.insert(name.to_string(), Value::from(*value));
                match model.iter_mut().find(|(other, _)| *other == name.to_string()) {
                    Some((_, old)) => *old = *value,
                    None => model.push((name.to_string(), *value)),
                }
            }
            ObjectEdit::Remove(name) => {
                let removed = object.remove(&name.to_string()).is_some();
                let before = model.len();
                model.retain(|(other, _)| *other != name.to_string());
                assert_eq!(removed, model.len() < before);
            }
            ObjectEdit::SwapRemove(name) => {
                let found = model.iter().position(|(other, _)| *other == name.to_string());
                let removed = found.map(|position| Value::from(model.swap_remove(position).1));
                assert_eq!(object.swap_remove(&name.to_string()), removed);
            }
            ObjectEdit::Pop => assert_eq!(object.pop().map(|(name, _)| name), model.pop().map(|(name, _)| name)),
            ObjectEdit::Keep(divisor) => {
                object.retain(|_, value| value.as_i64().is_some_and(|value| value % divisor != 0));
                model.retain(|(_, value)| value % divisor != 0);
            }
        }
    }

    proptest! {
        #[test]
        fn small_and_large_ones_behave_alike(steps in prop::collection::vec(step(), 0..120)) {
            let (mut object, mut model) = (Object::new(), Vec::new());
            for step in &steps {
                carry_out(step, &mut object, &mut model);
                let members: Vec<_> = model.iter().map(|(name, value)| (name, Value::from(*value))).collect();
                prop_assert!(object.iter().eq(members.iter().map(|(name, value)| (*name, value))));
                for name in 0..60_u8 {
                    let expected = members.iter().find(|(other, _)| **other == name.to_string()).map(|(_, value)| value);
                    prop_assert_eq!(object.get(&name.to_string()), expected);
                }
            }
        }
    }
}
