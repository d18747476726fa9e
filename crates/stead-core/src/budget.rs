//! The cost that a document and its run may have: steps of evaluation, and bytes of values.

use std::cell::Cell;

use crate::value::Value;

/// Work and memory.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Cost {
    /// A step is a call, an element of a result, or 16 bytes of text.
    pub steps: u64,
    /// About what values take in memory, as [`Value::weight`] has it.
    pub bytes: u64,
}

impl Cost {
    /// This cost, `count` times.
    #[must_use]
    pub fn times(self, count: u64) -> Self {
        Self { steps: self.steps.saturating_mul(count), bytes: self.bytes.saturating_mul(count) }
    }

    fn plus(self, other: Self) -> Self {
        Self { steps: self.steps.saturating_add(other.steps), bytes: self.bytes.saturating_add(other.bytes) }
    }
}

/// An allowance of [`Cost`], and how much of it was spent.
///
/// Guarantees: once exceeded, it stays exceeded, so that callers need not pass the error on.
///
/// # Examples
/// ```
/// use stead_core::budget::{Budget, Cost, Exceeded, size};
///
/// let budget = Budget::new(Cost { steps: 10, bytes: 4096 });
/// budget.work(8)?;
/// assert_eq!(budget.work(8), Err(Exceeded::Steps { limit: 10 }));
/// // What was spent is not given back.
/// assert!(budget.work(0).is_err());
/// assert_eq!(budget.spent().steps, 16);
/// assert_eq!(size(1536), "1.5 KiB");
/// # Ok::<(), Exceeded>(())
/// ```
#[derive(Debug)]
pub struct Budget {
    limit: Cost,
    spent: Cell<Cost>,
}

/// More was spent than the budget allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Exceeded {
    /// Too much work.
    #[error("more than {limit} steps of evaluation")]
    Steps {
        /// The limit of the budget.
        limit: u64,
    },
    /// Too much memory.
    #[error("more than {} of values", size(*limit))]
    Bytes {
        /// The limit of the budget.
        limit: u64,
    },
}

impl Budget {
    /// For one evaluation: a few dozen megabytes of values at most.
    pub const EVALUATION: Cost = Cost { steps: 2_000_000, bytes: u64::MAX };

    /// For everything that is computed of a document before it runs, included documents and loops counted.
    ///
    /// A hundred thousand instances can take 200 steps and 2000 bytes each, 400 of them for being there. It is spent within a second.
    pub const DOCUMENT: Cost = Cost { steps: 20_000_000, bytes: 192 << 20 };

    /// For what a run holds: desired states, and what resources answered.
    pub const RUN: Cost = Cost { steps: u64::MAX, bytes: 1 << 30 };

    /// A budget of which nothing is spent yet.
    pub fn new(limit: Cost) -> Self {
        Self { limit, spent: Cell::default() }
    }

    /// Returns the cost spent so far, also beyond the limit.
    pub fn spent(&self) -> Cost {
        self.spent.get()
    }

    /// Counts a cost.
    pub fn spend(&self, cost: Cost) -> Result<(), Exceeded> {
        self.spent.set(self.spent.get().plus(cost));
        self.check()
    }

    /// Counts work.
    pub fn work(&self, steps: usize) -> Result<(), Exceeded> {
        self.spend(Cost { steps: steps as u64, bytes: 0 })
    }

    /// Counts a value that is kept.
    pub fn keep(&self, value: &Value) -> Result<(), Exceeded> {
        self.spend(Cost { steps: 0, bytes: value.weight() })
    }

    /// Fails if more was spent than the limit.
    pub fn check(&self) -> Result<(), Exceeded> {
        let (spent, limit) = (self.spent.get(), self.limit);
        match () {
            () if spent.steps > limit.steps => Err(Exceeded::Steps { limit: limit.steps }),
            () if spent.bytes > limit.bytes => Err(Exceeded::Bytes { limit: limit.bytes }),
            () => Ok(()),
        }
    }
}

/// A number of bytes, for display.
pub fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = UNITS.into_iter().find(|(unit, _)| bytes >= *unit);
    let Some((unit, name)) = unit else { return format!("{bytes} bytes") };
    match (bytes / unit, bytes % unit * 10 / unit) {
        (whole, tenths) if whole < 10 && tenths > 0 => format!("{whole}.{tenths} {name}"),
        (whole, _) => format!("{whole} {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_that_was_exceeded_stays_exceeded() {
        let budget = Budget::new(Cost { steps: 10, bytes: 100 });
        assert_eq!(budget.work(10), Ok(()));
        assert_eq!(budget.work(1), Err(Exceeded::Steps { limit: 10 }));
        assert_eq!(budget.work(0), Err(Exceeded::Steps { limit: 10 }));
        assert_eq!(budget.spend(Cost::default().times(u64::MAX)), Err(Exceeded::Steps { limit: 10 }));
    }

    #[test]
    fn a_value_costs_what_it_takes() {
        let budget = Budget::new(Cost { steps: 0, bytes: 1000 });
        assert_eq!(budget.keep(&Value::from("short")), Ok(()));
        assert_eq!(budget.keep(&Value::from("x".repeat(1000))), Err(Exceeded::Bytes { limit: 1000 }));
    }

    #[test]
    fn sizes_are_rounded_down() {
        let sizes = [0, 1023, 1024, 192 << 20, 2_500_000_000].map(size);
        assert_eq!(sizes, ["0 bytes", "1023 bytes", "1 KiB", "192 MiB", "2.3 GiB"]);
    }
}
