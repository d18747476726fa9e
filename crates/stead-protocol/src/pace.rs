//! When a request may be sent: one at a time of each kind, and all machines apart from each other.

/// Over how long machines are spread that lost their controller at once, and the longest wait for one, in milliseconds.
const SPREAD: u64 = 10_000;
const LONGEST: u64 = 5 * 60_000;
/// Nothing is asked again sooner.
const SHORTEST: u64 = 1_000;
/// Whoever wants to be left alone for longer is asked all the same.
const LONGEST_RETRY_AFTER: u64 = 24 * 3600;

/// Numbers that nobody predicts if the seed is not known (`SplitMix64`).
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below a limit.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit.max(1)
    }
}

/// Requests of one kind, of which one is under way at most.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// The number of the one that is under way, and since when.
    pub(crate) under_way: Option<(u64, u64)>,
    /// Nothing is sent before.
    pub(crate) due: u64,
    /// How often in a row there was no answer that helps.
    pub(crate) failures: u32,
}

impl Pace {
    pub(crate) fn is_due(&self, now: u64) -> bool {
        self.under_way.is_none() && now >= self.due
    }

    /// When the next one is due, if none is under way.
    pub(crate) fn next(&self) -> Option<u64> {
        self.under_way.is_none().then_some(self.due)
    }

    pub(crate) fn send(&mut self, number: u64, now: u64) {
        self.under_way = Some((number, now));
    }

    /// Ends the one of this number. Returns when it was sent; `None` if it is not under way.
    pub(crate) fn end(&mut self, number: u64) -> Option<u64> {
        let (_, sent) = self.under_way.take_if(|(under_way, _)| *under_way == number)?;
        Some(sent)
    }

    /// The answer helped: the next one may follow, but not in a circle.
    pub(crate) fn succeeded(&mut self, sent: u64) {
        (self.failures, self.due) = (0, sent.saturating_add(SHORTEST));
    }

    /// It is tried again after a random part of a wait that grows, behind the time that whoever answered named, in seconds. The second wait is
    /// as long as the first: a controller that begins again lets all machines go, and is not there yet when the first of them come back.
    pub(crate) fn failed(&mut self, now: u64, retry_after: Option<u64>, random: &mut Random) {
        let longest = SPREAD.checked_shl(self.failures.saturating_sub(1)).map_or(LONGEST, |wait| wait.min(LONGEST));
        self.failures = (self.failures + 1).min(16);
        let named = retry_after.unwrap_or_default().min(LONGEST_RETRY_AFTER) * 1000;
        self.due = now.saturating_add(named).saturating_add(SHORTEST + random.below(longest));
    }

    /// All machines are let go at once when a controller ends: the next request is at a random place behind that.
    pub(crate) fn spread(&mut self, now: u64, random: &mut Random) {
        self.due = self.due.max(now.saturating_add(random.below(SPREAD)));
    }
}
