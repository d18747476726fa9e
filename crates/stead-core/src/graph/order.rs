//! Order among adjacent instances: what is needed first, and where there is a choice as in the document.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A chain of instances of which each needs the next and the last needs the first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cycle(pub Vec<usize>);

/// Sorts `0..needs.len()` so that each comes after all that it needs; among those that could come next, the smallest
/// does.
///
/// Guarantees: linear but for a logarithm; an error names a real cycle, each of its members once.
///
/// Assumptions: `needs` holds only numbers below its length; one may occur several times.
///
/// # Examples
/// ```
/// use stead_core::graph::{Cycle, sort};
///
/// // The first one needs the last and waits for it; what is ready comes in the order of the document.
/// assert_eq!(sort(&[vec![2], vec![], vec![]]), Ok(vec![1, 2, 0]));
/// assert!(matches!(sort(&[vec![1], vec![0]]), Err(Cycle(_))));
/// ```
pub fn sort(needs: &[Vec<usize>]) -> Result<Vec<usize>, Cycle> {
    if needs.iter().all(Vec::is_empty) {
        return Ok((0..needs.len()).collect());
    }
    let mut open: Vec<usize> = needs.iter().map(Vec::len).collect();
    let needed_by = invert(needs);
    let mut ready: BinaryHeap<Reverse<usize>> = (0..needs.len()).filter(|at| open[*at] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(needs.len());
    while let Some(Reverse(at)) = ready.pop() {
        order.push(at);
        for &waiting in &needed_by[at] {
            open[waiting] -= 1;
            if open[waiting] == 0 {
                ready.push(Reverse(waiting));
            }
        }
    }
    if order.len() == needs.len() { Ok(order) } else { Err(find_cycle(needs, &open)) }
}

fn invert(needs: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut needed_by = vec![Vec::new(); needs.len()];
    for (at, needed) in needs.iter().enumerate() {
        for &each in needed {
            needed_by[each].push(at);
        }
    }
    needed_by
}

/// Every member that is still open needs one that is open too, so following those ends in a cycle.
fn find_cycle(needs: &[Vec<usize>], open: &[usize]) -> Cycle {
    let mut seen_at = vec![usize::MAX; needs.len()];
    let mut path = Vec::new();
    let mut at = open.iter().position(|count| *count > 0).unwrap_or(0);
    while seen_at[at] == usize::MAX {
        seen_at[at] = path.len();
        path.push(at);
        at = needs[at].iter().copied().find(|each| open[*each] > 0).unwrap_or(at);
    }
    let mut cycle = path.split_off(seen_at[at]);
    // It is reported from its earliest member on: the same cycle then reads the same wherever the search met it.
    let first = cycle.iter().enumerate().min_by_key(|(_, member)| **member).map_or(0, |(place, _)| place);
    cycle.rotate_left(first);
    Cycle(cycle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn document_order_breaks_ties_and_needs_come_first() {
        // A needs B, B needs C, as in a document that lists A, B, C.
        assert_eq!(sort(&[vec![1], vec![2], vec![]]), Ok(vec![2, 1, 0]));
        assert_eq!(sort(&[vec![], vec![], vec![0]]), Ok(vec![0, 1, 2]));
        assert_eq!(sort(&[vec![2], vec![], vec![1], vec![]]), Ok(vec![1, 2, 0, 3]));
        assert_eq!(sort(&[vec![1, 1], vec![]]), Ok(vec![1, 0]));
    }

    #[test]
    fn cycles_are_real_and_minimal() {
        assert_eq!(sort(&[vec![0]]), Err(Cycle(vec![0])));
        assert_eq!(sort(&[vec![1], vec![2], vec![0]]), Err(Cycle(vec![0, 1, 2])));
        assert_eq!(sort(&[vec![1], vec![2], vec![3, 1], vec![]]), Err(Cycle(vec![1, 2])));
    }
}
