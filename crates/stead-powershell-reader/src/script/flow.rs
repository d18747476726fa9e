//! Which ways lead through the body of a method, and what is assigned on each, as PowerShell follows them: it asks for no value of a
//! condition, and a loop with one may end at once.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Parameter;

/// The variables that a method has without assigning them.
const GIVEN: [&str; 21] = [
    "true",
    "false",
    "null",
    "this",
    "_",
    "psitem",
    "args",
    "input",
    "myinvocation",
    "pscmdlet",
    "psboundparameters",
    "psscriptroot",
    "pscommandpath",
    "error",
    "lastexitcode",
    "matches",
    "pwd",
    "stacktrace",
    "nestedpromptlevel",
    "outputencoding",
    "?",
];

/// Those that it has in a loop, which is not looked for.
const OF_LOOPS: [&str; 2] = ["foreach", "switch"];

/// How many variables of a method are followed: of one with more nothing is said, so that reading takes linear time.
const MOST: usize = 100;

/// The knowledge at a place.
#[derive(Clone, Default)]
pub(super) enum Way {
    /// No way leads there.
    #[default]
    None,
    /// One does: the variables that are assigned on each, in small letters.
    Some(Arc<BTreeSet<String>>),
}

impl Way {
    pub(super) fn reaches(&self) -> bool {
        matches!(self, Self::Some(_))
    }

    /// The knowledge where both ways lead.
    pub(super) fn join(&mut self, other: Self) {
        match (&mut *self, other) {
            (Self::Some(own), Self::Some(others)) if !Arc::ptr_eq(own, &others) => {
                Arc::make_mut(own).retain(|name| others.contains(name));
            }
            (Self::None, other) => *self = other,
            (Self::Some(_), _) => {}
        }
    }
}

/// The knowledge at a place of a body, with the loops around it.
pub(super) struct Flow {
    /// The ways that lead there.
    pub(super) way: Way,
    /// True in a method, in which variables that are read must be assigned.
    is_method: bool,
    /// The loops around it, the innermost last.
    pub(super) loops: Vec<Loop>,
    /// The label of the loop that begins next.
    pub(super) label: Option<String>,
    /// The variables of the expression that is read that stand alone, with their places: an assignment may follow.
    pub(super) alone: Vec<(String, usize)>,
}

/// A loop, or a switch, and what leaves a round of it.
#[derive(Default)]
pub(super) struct Loop {
    pub(super) label: Option<String>,
    /// Where a `break` ends it.
    pub(super) broken: Way,
    /// Where a `continue` begins the next round.
    pub(super) continued: Way,
}

impl Default for Flow {
    fn default() -> Self {
        Self { way: Way::Some(Arc::default()), is_method: false, loops: Vec::new(), label: None, alone: Vec::new() }
    }
}

impl Flow {
    /// That of a method with these parameters, at its start.
    pub(super) fn of_method(parameters: &[Parameter]) -> Self {
        let names = parameters.iter().map(|parameter| parameter.name.to_lowercase()).collect();
        Self { way: Way::Some(Arc::new(names)), is_method: true, ..Self::default() }
    }

    /// That of a script in a text, at its start.
    pub(super) fn within(&self) -> Self {
        Self { way: self.way.clone(), is_method: self.is_method, ..Self::default() }
    }

    /// Takes in that a variable is assigned.
    pub(super) fn assign(&mut self, name: &str) {
        let Way::Some(names) = &mut self.way else { return };
        self.is_method &= names.len() < MOST;
        if self.is_method {
            Arc::make_mut(names).insert(name.to_lowercase());
        }
    }

    /// Takes back that a variable is assigned.
    pub(super) fn forget(&mut self, name: &str) {
        if let Way::Some(names) = &mut self.way {
            Arc::make_mut(names).remove(&name.to_lowercase());
        }
    }

    /// Follows a `break` or `continue` to the loop of that label, else to the innermost one.
    pub(super) fn jump(&mut self, is_break: bool, label: Option<&str>) {
        let way = std::mem::take(&mut self.way);
        let is_meant = |each: &&mut Loop| match (label, &each.label) {
            (None, _) => true,
            (Some(wanted), own) => own.as_ref().is_some_and(|own| own.eq_ignore_ascii_case(wanted)),
        };
        if let Some(meant) = self.loops.iter_mut().rev().find(is_meant) {
            if is_break { meant.broken.join(way) } else { meant.continued.join(way) }
        }
    }

    /// Returns whether PowerShell refuses a method for reading that variable here.
    pub(super) fn lacks(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        let is_known = name.contains(':') || GIVEN.contains(&&*name) || OF_LOOPS.contains(&&*name);
        self.is_method && !is_known && matches!(&self.way, Way::Some(names) if !names.contains(&name))
    }
}
