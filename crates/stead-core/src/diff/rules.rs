//! The rules of a comparison, besides the two states.

use serde_json::Value as Json;

use crate::value::{Object, Value};

/// How names of properties and values are compared, above all the meaning of upper and lower case.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Case {
    /// They differ.
    #[default]
    Exact,
    /// They are the same in names of properties, and differ in values.
    IgnoredInNames,
    /// They are the same, in values and in names of properties.
    Ignored,
    /// They are the same, and values are equal as PowerShell has it: nothing and what is empty, a number and its text, one
    /// value and a list of it, text with spaces around it and without, a point in time in whatever offset.
    PowerShell,
}

/// The rules of a comparison, besides the two states.
///
/// # Examples
/// ```
/// use serde_json::json;
/// use stead_core::diff::{Case, Rules, contains};
/// use stead_core::value::Value;
///
/// let actual = Value::from(json!({ "StartType": "Automatic", "State": "running" }));
/// let desired = Value::from(json!({ "startType": "AUTOMATIC" }));
/// assert!(!contains(&actual, &desired, &Rules::default()));
/// assert!(contains(&actual, &desired, &Rules { case: Case::Ignored, schema: None }));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Rules<'a> {
    /// The meaning of upper and lower case.
    pub case: Case,
    /// The JSON Schema of the properties, for `writeOnly` and `default`.
    pub schema: Option<&'a Json>,
}

impl<'a> Rules<'a> {
    /// The rules of a resource with this schema.
    pub fn of_schema(schema: &'a Json) -> Self {
        Self { case: Case::Exact, schema: Some(schema) }
    }

    pub(super) fn shape(&self) -> Shape<'a> {
        self.schema.map_or(Shape::ANY, |root| Shape { root: Some(root), node: Some(root) })
    }

    /// Inside arrays the schema does not count: a default there could make one element equal to two different ones.
    pub(super) fn without_schema(self) -> Rules<'static> {
        Rules { case: self.case, schema: None }
    }

    /// Returns the member of an object with this name, as names are compared.
    pub fn member<'v>(&self, members: &'v Object, name: &str) -> Option<&'v Value> {
        self.entry(members, name).map(|(_, value)| value)
    }

    /// A member and the name under which it is there.
    pub(super) fn entry<'v>(&self, members: &'v Object, name: &str) -> Option<(&'v String, &'v Value)> {
        members.get_key_value(name).or_else(|| match self.case {
            Case::Exact => None,
            Case::IgnoredInNames | Case::Ignored | Case::PowerShell => {
                let name = name.to_lowercase();
                members.iter().find(|(key, _)| key.to_lowercase() == name)
            }
        })
    }
}

/// How many references of a schema are followed one after the other; more is a circle.
const REFERENCES: usize = 16;

/// The part of a schema that is about one value.
#[derive(Clone, Copy)]
pub(super) struct Shape<'a> {
    root: Option<&'a Json>,
    node: Option<&'a Json>,
}

impl<'a> Shape<'a> {
    /// Nothing is known.
    pub(super) const ANY: Self = Self { root: None, node: None };

    pub(super) fn property(self, name: &str) -> Self {
        let find = |part: &'a Json| part.get("properties")?.get(name);
        Self { node: self.parts().find_map(find), ..self }
    }

    pub(super) fn is_write_only(self) -> bool {
        self.parts().any(|part| part.get("writeOnly").and_then(Json::as_bool) == Some(true))
    }

    pub(super) fn default(self) -> Option<&'a Json> {
        self.parts().find_map(|part| part.get("default"))
    }

    /// The schema itself, what it refers to, and what it is put together from.
    fn parts(self) -> impl Iterator<Item = &'a Json> {
        let references = std::iter::successors(self.node, move |node| self.referred(node)).take(REFERENCES);
        references.flat_map(move |part| {
            let all_of = part.get("allOf").and_then(Json::as_array).map_or(&[][..], Vec::as_slice);
            let named = all_of.iter().flat_map(move |each| [Some(each), self.referred(each)]).flatten();
            std::iter::once(part).chain(named)
        })
    }

    fn referred(self, node: &'a Json) -> Option<&'a Json> {
        let pointer = node.get("$ref")?.as_str()?.strip_prefix('#')?;
        self.root?.pointer(pointer)
    }
}
