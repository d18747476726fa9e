//! The order in which parameters get their values: a default may use other parameters.

use std::collections::BTreeMap;

use super::order::{Cycle, sort};
use crate::document::{Document, Parameter, parameters_in};

/// How many circles are named; each costs a look at all parameters.
const MOST_CIRCLES: usize = 20;

/// The parameters of a document in the order in which they get their values.
#[derive(Default)]
pub(super) struct Ordered<'a> {
    /// Those for which there is an order, each behind those that its default uses. A name that is computed may be any: what has
    /// one comes behind all others.
    pub(super) parameters: Vec<&'a Parameter>,
    /// Those whose defaults use each other.
    pub(super) circles: Vec<Vec<&'a Parameter>>,
    /// Those that are in further circles, or may be.
    pub(super) others: Vec<&'a Parameter>,
}

/// Orders the parameters of a document. One whose value is supplied uses no others.
pub(super) fn ordered(document: &Document, is_supplied: impl Fn(&str) -> bool) -> Ordered<'_> {
    let all = &document.parameters;
    let places: BTreeMap<&str, usize> = all.iter().map(|each| each.name.value.as_str()).zip(0..).collect();
    let mut computes = vec![false; all.len()];
    let mut needs = vec![Vec::new(); all.len()];
    for ((parameter, computes), needs) in all.iter().zip(&mut computes).zip(&mut needs) {
        let default = parameter.default.iter().filter(|_| !is_supplied(&parameter.name.value));
        for name in default.flat_map(parameters_in) {
            match name {
                Some(name) => needs.extend(places.get(name.as_str()).copied()),
                None => *computes = true,
            }
        }
    }
    let (mut found, mut is_left) = (Ordered::default(), vec![false; all.len()]);
    let order = loop {
        let members = match sort(&needs) {
            Ok(order) => break order,
            Err(Cycle(members)) if found.circles.len() < MOST_CIRCLES => {
                found.circles.push(members.iter().map(|at| &all[*at]).collect());
                members
            }
            Err(_) => {
                let others: Vec<usize> = (0..all.len()).filter(|at| !needs[*at].is_empty()).collect();
                found.others = others.iter().map(|at| &all[*at]).collect();
                others
            }
        };
        for at in members {
            needs[at].clear();
            is_left[at] = true;
        }
    };
    // What uses one that comes late comes late as well.
    for at in &order {
        computes[*at] |= needs[*at].iter().any(|each| computes[*each]);
    }
    let (late, early): (Vec<usize>, Vec<usize>) =
        order.into_iter().filter(|at| !is_left[*at]).partition(|at| computes[*at]);
    found.parameters = early.into_iter().chain(late).map(|at| &all[at]).collect();
    found
}
