//! Which reports are sent next, and which one is to blame when some are not taken.

use serde::{Deserialize, Serialize};
use stead_core::visible::visible;

use crate::MOST_REPORTS;

/// How often in a row reports are not taken before one of them is suspected, and how often one is not taken while others are until it
/// is left out. Whatever is lost by chance, and a controller that is away, is neither.
const FAILURES: u32 = 3;
const STRIKES: u32 = 3;

/// The reports that were left out, since whoever answers for the controller takes others and never these.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LeftOut {
    /// How many there are.
    pub count: u64,
    /// The number of the last of them.
    pub number: u64,
    /// Why it was not taken.
    pub why: String,
}

impl LeftOut {
    /// Counts one more.
    pub fn add(&mut self, number: u64, why: &str) {
        *self = Self { count: self.count + 1, number, why: visible(why).to_string() };
    }
}

/// A batch of reports that is under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch {
    /// The first and the last number that it is of: those between that are not worth sending are left out.
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// The history of the store that it was made for.
    pub(crate) epoch: Option<u64>,
}

/// How a batch was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NotTaken {
    /// The controller says that one of it is not a report that it takes.
    Form,
    /// There was no answer, or another one.
    Otherwise,
}

/// What follows when a batch was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Consequence {
    /// A part of it is sent at once.
    Part,
    /// The report of this number is left out, and all up to the second number are done with.
    LeftOut(u64, u64),
    /// It is tried again later, or what is behind it.
    Later,
}

/// A report that is not taken again and again.
#[derive(Debug)]
struct Suspect {
    /// Behind which number others are read while they are tried, and next time.
    tries_behind: Option<u64>,
    next: u64,
    /// True if another one was taken since it was not.
    is_alone: bool,
    strikes: u32,
}

/// The reports on their way.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) batch: Option<Batch>,
    /// True while they are read.
    pub(crate) reads: bool,
    /// How many a batch has at most: fewer while one of them is not taken.
    pub(crate) most: usize,
    suspect: Option<Suspect>,
}

impl Default for Outgoing {
    fn default() -> Self {
        Self { batch: None, reads: false, most: MOST_REPORTS, suspect: None }
    }
}

impl Outgoing {
    /// Behind which number reports are read if those up to another one are acknowledged, and how many.
    pub(crate) fn wanted(&self, acknowledged: u64) -> (u64, usize) {
        match &self.suspect {
            None => (acknowledged, self.most),
            Some(suspect) => (suspect.tries_behind.unwrap_or(acknowledged), 1),
        }
    }

    /// True while those behind one that is not taken are tried.
    pub(crate) fn tries_others(&self) -> bool {
        self.suspect.as_ref().is_some_and(|suspect| suspect.tries_behind.is_some())
    }

    /// Takes in that nothing up to a number is worth sending. False if that changes nothing: those before it are not done with.
    pub(crate) fn passes(&mut self, last: u64) -> bool {
        let Some(suspect) = &mut self.suspect else { return true };
        let Some(behind) = &mut suspect.tries_behind else { return true };
        if last > *behind {
            *behind = last;
        } else {
            // There are no others: it is tried itself.
            suspect.tries_behind = None;
        }
        false
    }

    /// Takes in that a batch was taken. Returns whether all up to its end are done with.
    pub(crate) fn taken(&mut self) -> bool {
        let Some(suspect) = self.suspect.as_mut().filter(|suspect| suspect.tries_behind.is_some()) else {
            (self.suspect, self.most) = (None, (self.most * 2).min(MOST_REPORTS));
            return true;
        };
        (suspect.tries_behind, suspect.is_alone) = (None, true);
        false
    }

    /// Takes in that a batch was not taken, as the so many-th in a row.
    pub(crate) fn not_taken(&mut self, batch: Batch, failures: u32, how: NotTaken) -> Consequence {
        let Batch { first, last, .. } = batch;
        if let Some(suspect) = &mut self.suspect {
            if suspect.tries_behind.take().is_some() {
                // Perhaps that one is another such report.
                suspect.next = last;
                return Consequence::Later;
            }
            suspect.strikes += u32::from(std::mem::take(&mut suspect.is_alone));
            if how == NotTaken::Otherwise && suspect.strikes < STRIKES {
                suspect.tries_behind = Some(suspect.next);
                return Consequence::Later;
            }
        } else if how == NotTaken::Form && first < last && self.most > 1 {
            self.most /= 2;
            return Consequence::Part;
        } else if failures >= FAILURES && self.most > 1 {
            // One by one, until some are taken.
            self.most = 1;
            return Consequence::Later;
        } else if how == NotTaken::Otherwise {
            let suspect = Suspect { tries_behind: Some(last), next: last, is_alone: false, strikes: 0 };
            self.suspect = (failures >= FAILURES).then_some(suspect);
            return Consequence::Later;
        }
        self.suspect = None;
        Consequence::LeftOut(first, last)
    }
}
