//! What begins when: which of many machines are worked on, and when no more are begun.

use std::num::NonZeroUsize;

/// The rule that a rollout keeps to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rule {
    /// How many machines are worked on at once.
    pub at_once: NonZeroUsize,
    /// After how many failures no other machine is begun.
    pub halt_after: Option<NonZeroUsize>,
}

/// How a machine ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MachineEnd {
    /// As it should.
    Well,
    /// It failed, or was not reached.
    Badly,
}

/// A rollout over machines, which are numbers here: a fold over how they ended.
///
/// Guarantees: machines begin in their order, each once; never more than `at_once` are under way; and where the rule halts after
/// `n` failures, at most `n - 1 + at_once` machines fail, whatever happens. It is over once nothing is under way and nothing begins.
///
/// # Examples
/// ```
/// use std::num::NonZeroUsize;
/// use stead_hosts::{MachineEnd, Rollout, Rule};
///
/// let one = NonZeroUsize::MIN;
/// let mut rollout = Rollout::new(3, Rule { at_once: one, halt_after: Some(one) });
/// assert_eq!((rollout.begin(), rollout.begin()), (Some(0), None));
/// rollout.end(0, MachineEnd::Well);
/// assert_eq!(rollout.begin(), Some(1));
/// rollout.end(1, MachineEnd::Badly);
/// assert_eq!((rollout.begin(), rollout.not_begun()), (None, 2..3));
/// assert!(rollout.is_over());
/// ```
#[derive(Clone, Debug)]
pub struct Rollout {
    rule: Rule,
    machines: usize,
    begun: usize,
    under_way: Vec<usize>,
    failed: usize,
    is_stopped: bool,
}

impl Rollout {
    /// A rollout of which nothing has begun.
    pub fn new(machines: usize, rule: Rule) -> Self {
        Self { rule, machines, begun: 0, under_way: Vec::new(), failed: 0, is_stopped: false }
    }

    /// The machine that begins now, if one does.
    pub fn begin(&mut self) -> Option<usize> {
        let has_room = self.under_way.len() < self.rule.at_once.get();
        if !has_room || self.is_halted() || self.begun == self.machines {
            return None;
        }
        let next = self.begun;
        self.begun += 1;
        self.under_way.push(next);
        Some(next)
    }

    /// Takes in how a machine ended. One that is not under way has not.
    pub fn end(&mut self, machine: usize, ended: MachineEnd) {
        if let Some(at) = self.under_way.iter().position(|each| *each == machine) {
            self.under_way.swap_remove(at);
            self.failed += usize::from(ended == MachineEnd::Badly);
        }
    }

    /// Has nothing else begin.
    pub fn stop(&mut self) {
        self.is_stopped = true;
    }

    /// Returns whether nothing else begins, whatever happens.
    pub fn is_halted(&self) -> bool {
        self.is_stopped || self.rule.halt_after.is_some_and(|most| self.failed >= most.get())
    }

    /// Returns whether nothing is under way and nothing begins.
    pub fn is_over(&self) -> bool {
        self.under_way.is_empty() && (self.is_halted() || self.begun == self.machines)
    }

    /// The machines that have not begun.
    pub fn not_begun(&self) -> std::ops::Range<usize> {
        self.begun..self.machines
    }
}
