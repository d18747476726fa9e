//! Statements of instances about things that have a name in place of a path, and which of them contradict each other.

use std::collections::BTreeSet;

use hashbrown::HashMap;

use crate::id::NodeId;
use crate::value::Value;

/// One property of a named thing, as an instance wants it to be.
#[derive(Clone, PartialEq, Debug)]
pub struct Statement {
    /// The thing with its kind, such as `the package 'vim'`. Of a thing with several names it is the same for all of them.
    pub thing: String,
    /// The property; [`Statement::EXISTENCE`] for whether the thing is there at all.
    pub property: &'static str,
    /// The value, which is not a secret.
    pub value: Value,
}

impl Statement {
    /// The property of every thing that says whether it is there.
    pub const EXISTENCE: &'static str = "_exist";
}

/// Two instances that state a property of one thing differently.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Disagreement {
    /// The one that comes first in the order given.
    pub first: NodeId,
    /// The one that comes later.
    pub second: NodeId,
    /// The thing, as the statements name it.
    pub thing: String,
    /// The property.
    pub property: &'static str,
}

/// The instances that state a property of one thing differently: each with the first one that it contradicts about that thing,
/// in the order of the later of the two. Takes time in proportion to the statements.
///
/// # Examples
/// ```
/// use stead_core::id::NodeId;
/// use stead_core::statements::{Statement, disagreements};
///
/// let package = |version: &str| [Statement {
///     thing: "the package 'vim'".to_owned(),
///     property: "version",
///     value: version.into(),
/// }];
/// let (old, new) = (package("9.0"), package("9.1"));
/// assert!(disagreements([(NodeId(0), &new[..]), (NodeId(1), &new[..])]).is_empty());
/// let found = disagreements([(NodeId(0), &old[..]), (NodeId(1), &new[..])]);
/// assert_eq!((found[0].first, found[0].second, found[0].property), (NodeId(0), NodeId(1), "version"));
/// ```
pub fn disagreements<'s>(instances: impl IntoIterator<Item = (NodeId, &'s [Statement])>) -> Vec<Disagreement> {
    let mut first: HashMap<(&str, &str), (NodeId, &Value)> = HashMap::new();
    let mut reported: BTreeSet<(NodeId, &str)> = BTreeSet::new();
    let mut found = Vec::new();
    for (node, statements) in instances {
        for Statement { thing, property, value } in statements {
            let (earlier, stated) = *first.entry((thing, property)).or_insert((node, value));
            if earlier != node && stated != value && reported.insert((node, thing)) {
                found.push(Disagreement { first: earlier, second: node, thing: thing.clone(), property });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(property: &'static str, value: &str) -> Statement {
        Statement { thing: "the package 'a'".to_owned(), property, value: Value::from(value) }
    }

    #[test]
    fn what_is_stated_differently_is_found_once_for_each_later_instance() {
        let all = [
            vec![state("version", "1"), state("hold", "yes")],
            vec![state("version", "1")],
            vec![state("version", "2"), state("hold", "no")],
            vec![state("hold", "no")],
        ];
        let numbered = all.iter().zip(0..).map(|(each, number)| (NodeId(number), each.as_slice()));
        let found: Vec<_> =
            disagreements(numbered).iter().map(|each| (each.first, each.second, each.property)).collect();
        assert_eq!(found, [(NodeId(0), NodeId(2), "version"), (NodeId(0), NodeId(3), "hold")]);
    }
}
