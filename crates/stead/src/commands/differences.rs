//! What is told of an instance: whether it comes or goes, and which of its properties differ.

use std::borrow::Cow;

use stead_core::diff::{Alteration, Change, Rules, changes, exists, overlaid};
use stead_core::report::Record;
use stead_core::value::Value;

/// What differs between before and after, or between what is and what should be.
pub(super) struct Difference {
    pub(super) kind: Kind,
    /// Not among them: that it is there, which the kind tells.
    pub(super) properties: Vec<Change>,
    /// What the resource tells of its differences in words: the texts of the property `drift`.
    pub(super) words: Vec<String>,
}

/// Whether an instance is there before and after.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Comes,
    Goes,
    Stays,
}

impl Difference {
    /// `None` where nothing was compared.
    pub(super) fn of(record: &Record) -> Option<Self> {
        let (before, after, named) = match (record.changed(), &record.tested, &record.desired) {
            (Some(changed), _, _) => (&changed.before, Cow::Borrowed(&changed.after), changed.changed.as_deref()),
            (None, Some(tested), Some(desired)) => {
                let desired = overlaid(&tested.actual, desired, &Rules::default());
                (&tested.actual, Cow::Owned(desired), Some(tested.differing.as_slice()))
            }
            _ => return None,
        };
        let kind = Kind::between(before, &after);
        let known_before = if kind == Kind::Comes { Cow::Owned(identity(before)) } else { Cow::Borrowed(before) };
        let mut properties = changes(&known_before, &after);
        properties.retain(|change| change.path != "/_exist" && kind.tells(change, named));
        let words = if kind == Kind::Stays { drift(before) } else { Vec::new() };
        // Words tell more than that something is not yet from where it should be.
        properties.retain(|change| words.is_empty() || !matches!(change.what, Alteration::Added(_)));
        Some(Self { kind, properties, words })
    }
}

/// What is absent has no properties, whatever its state repeats of what is desired; only where it is counts.
fn identity(absent: &Value) -> Value {
    let mut members = absent.as_object().cloned().unwrap_or_default();
    members.retain(|name, _| name == "path");
    Value::Object(members)
}

fn drift(state: &Value) -> Vec<String> {
    let told = state.as_object().and_then(|state| state.get("drift")).and_then(Value::as_array).unwrap_or_default();
    told.iter().filter_map(|text| text.as_str().map(str::to_owned)).collect()
}

impl Kind {
    fn between(before: &Value, after: &Value) -> Self {
        let is_there = |state: &Value| state.as_object().is_none_or(exists);
        match (is_there(before), is_there(after)) {
            (false, true) => Self::Comes,
            (true, false) => Self::Goes,
            _ => Self::Stays,
        }
    }

    /// What comes is new as a whole, and of what goes nothing is left. Of what stays the resource says what has changed:
    /// one that tells more of the state before than of the state after has not removed anything.
    fn tells(self, change: &Change, named: Option<&[String]>) -> bool {
        let property = change.path.trim_start_matches('/').split('/').next().unwrap_or_default();
        match self {
            Self::Comes => true,
            // What only says how it is to be removed is no difference.
            Self::Goes => matches!(change.what, Alteration::Removed(_)),
            Self::Stays => named.is_none_or(|named| named.is_empty() || named.iter().any(|name| name == property)),
        }
    }
}
