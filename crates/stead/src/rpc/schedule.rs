//! The requests that are under way, those of them that are carried out, and the lines that are to be written: decisions without
//! effects.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value as Json;
use stead_engine::RunWatch;
use stead_system::Cancel;

use super::message::Problem;

/// How many requests may be under way at once.
const MOST_UNDER_WAY: usize = 256;

/// How many bytes of requests may be under way at once, but for one that has more by itself. A request takes six times as much
/// memory while it is carried out. As many bytes may wait to be written before whoever says more waits.
const MOST_BYTES: usize = 24 << 20;

/// How many requests of a kind are carried out at once before one of them has been answered with a result, and how long the others
/// wait for that: requests that take long may need each other.
const FIRST_AT_ONCE: usize = 2;
const PATIENCE: Duration = Duration::from_secs(1);

/// How many bytes the answers of requests that are carried out at once may come to, as far as earlier ones tell. An answer takes six
/// times as much memory before it is written. As many bytes may wait to be written before nothing more is begun.
const MOST_EXPECTED: usize = 8 << 20;

/// The subject of a request, and how it is carried out.
#[derive(Clone, Default)]
pub(crate) struct About {
    /// The name for messages.
    pub(crate) subject: String,
    /// Requests of the same kind have answers of about the same size.
    pub(crate) kind: String,
    /// True if nothing else may be carried out meanwhile.
    pub(crate) alone: bool,
}

/// A request that has no answer yet.
pub(super) struct UnderWay {
    pub(super) id: Json,
    pub(super) about: About,
    pub(super) cancel: Cancel,
    /// True once its caller cancelled it.
    pub(super) is_cancelled: bool,
    /// True once it is carried out.
    is_begun: bool,
    bytes: usize,
    watch: Arc<RunWatch>,
}

/// A request that is to be carried out now.
pub(super) struct Begun<C> {
    pub(super) key: String,
    pub(super) id: Json,
    pub(super) call: C,
    pub(super) cancel: Cancel,
    pub(super) watch: Arc<RunWatch>,
}

/// A line that is to be written, and the bytes of the request that it answers.
pub(super) struct Line {
    pub(super) text: String,
    request: Option<usize>,
}

/// The requests of a kind.
#[derive(Default)]
struct Known {
    /// How many of them are carried out.
    running: usize,
    /// The bytes of the longest result; `None` before the first one.
    longest: Option<usize>,
    /// When the first of them was begun.
    since: Option<Instant>,
}

impl Known {
    fn has_room(&self, now: Instant) -> bool {
        match self.longest {
            Some(longest) => self.running < (MOST_EXPECTED / longest.max(1)).max(1),
            None => self.running < FIRST_AT_ONCE || self.since.is_some_and(|since| now - since >= PATIENCE),
        }
    }
}

/// The schedule of a conversation, of which `C` are the calls.
pub(super) struct Schedule<C> {
    /// True where nobody reads answers any more.
    pub(super) unread: bool,
    /// True once this process is to end.
    pub(super) ends: bool,
    /// By the ids that are in use.
    under_way: HashMap<String, UnderWay>,
    /// How many requests are under way, until their answers are written.
    requests: usize,
    /// The bytes of these requests.
    bytes: usize,
    /// Calls that are not begun, by their ids, the first one first.
    waiting: VecDeque<(String, C)>,
    /// By kind.
    known: HashMap<String, Known>,
    /// How many requests are carried out, and whether one of them suffers no others.
    running: usize,
    is_alone: bool,
    lines: VecDeque<Line>,
    /// The bytes of these lines, and of the one that is being written.
    unwritten: usize,
    /// How many pieces of lines have been written.
    pub(super) pieces: u64,
}

impl<C> Default for Schedule<C> {
    fn default() -> Self {
        Self {
            unread: false,
            ends: false,
            under_way: HashMap::new(),
            requests: 0,
            bytes: 0,
            waiting: VecDeque::new(),
            known: HashMap::new(),
            running: 0,
            is_alone: false,
            lines: VecDeque::new(),
            unwritten: 0,
            pieces: 0,
        }
    }
}

impl<C> Schedule<C> {
    fn has_room(&self, bytes: usize) -> bool {
        self.requests == 0 || self.requests < MOST_UNDER_WAY && self.bytes + bytes <= MOST_BYTES
    }

    /// Takes in a request, if there is room for it.
    pub(super) fn admit(&mut self, id: &Json, about: About, call: C, bytes: usize) -> Result<(), Problem> {
        if !self.has_room(bytes) {
            let message =
                format!("too many requests in progress (limit {MOST_UNDER_WAY}, and {} MiB)", MOST_BYTES >> 20);
            return Err(Problem::new(Problem::LIMIT, message).with("retryable", true));
        }
        let key = id.to_string();
        let Entry::Vacant(free) = self.under_way.entry(key.clone()) else {
            return Err(Problem::new(Problem::REQUEST, format!("request id {id} is already in use")));
        };
        let (cancel, watch) = (Cancel::default(), Arc::<RunWatch>::default());
        free.insert(UnderWay { id: id.clone(), about, cancel, is_cancelled: false, is_begun: false, bytes, watch });
        self.requests += 1;
        self.bytes += bytes;
        self.waiting.push_back((key, call));
        Ok(())
    }

    /// Takes out the next request that may be begun. One that must be alone is not overtaken.
    pub(super) fn next(&mut self, now: Instant) -> Option<Begun<C>> {
        if self.ends || self.is_alone || self.unwritten >= MOST_EXPECTED {
            return None;
        }
        for at in 0..self.waiting.len() {
            let one = self.under_way.get_mut(&self.waiting.get(at)?.0)?;
            let About { kind, alone, .. } = &one.about;
            let may_begin =
                if *alone { self.running == 0 } else { self.known.get(kind).is_none_or(|known| known.has_room(now)) };
            if may_begin {
                self.running += 1;
                self.is_alone = *alone;
                let known = self.known.entry(kind.clone()).or_default();
                known.running += 1;
                known.since.get_or_insert(now);
                one.is_begun = true;
                let (id, cancel, watch) = (one.id.clone(), one.cancel.clone(), Arc::clone(&one.watch));
                let (key, call) = self.waiting.remove(at)?;
                return Some(Begun { key, id, call, cancel, watch });
            }
            if *alone {
                return None;
            }
        }
        None
    }

    /// Takes a request out of those that have no answer: whoever does answers it. `None` where it has one.
    pub(super) fn take_out(&mut self, key: &str, watch: &Arc<RunWatch>) -> Option<UnderWay> {
        // Its id may be that of another request by now.
        let is_same = self.under_way.get(key).is_some_and(|one| Arc::ptr_eq(&one.watch, watch));
        if is_same { self.under_way.remove(key) } else { None }
    }

    /// Takes out the requests that hang, and has nobody wait for them.
    pub(super) fn take_out_hanging(&mut self, hangs: fn(&RunWatch) -> bool) -> Vec<UnderWay> {
        let hanging: Vec<_> = self.under_way.extract_if(|_, one| hangs(&one.watch)).map(|(_, one)| one).collect();
        for one in &hanging {
            // Should it ever return, it does nothing more.
            one.cancel.cancel();
            one.watch.release();
        }
        hanging
    }

    /// Cancels a request. Returns it if it was not begun: nobody else answers it.
    pub(super) fn cancel(&mut self, key: &str) -> Option<UnderWay> {
        let one = self.under_way.get_mut(key)?;
        one.is_cancelled = true;
        one.cancel.cancel();
        if one.is_begun {
            return None;
        }
        self.waiting.retain(|(waiting, _)| waiting != key);
        self.under_way.remove(key)
    }

    /// Cancels what is under way, and begins nothing more. Returns what was not begun: nobody else answers it.
    pub(super) fn end(&mut self) -> Vec<UnderWay> {
        self.ends = true;
        let never_began = std::mem::take(&mut self.waiting).into_iter();
        let never_began = never_began.filter_map(|(key, _)| self.under_way.remove(&key)).collect();
        self.cancel_all();
        never_began
    }

    pub(super) fn cancel_all(&self) {
        self.under_way.values().for_each(|one| one.cancel.cancel());
    }

    /// Has a line written that answers nothing.
    pub(super) fn say(&mut self, text: String) {
        self.push(Line { text, request: None });
    }

    /// A request that was taken out is answered, or is not worth an answer. Whoever reads that can use its id again.
    ///
    /// `is_result` says whether the answer tells how long others of the kind are: text that names nothing is not kept.
    pub(super) fn answered(&mut self, request: &UnderWay, answer: Option<String>, is_result: bool) {
        let kind = &request.about.kind;
        if let (true, Some(answer), Some(known)) = (is_result, &answer, self.known.get_mut(kind)) {
            known.longest = known.longest.max(Some(answer.len()));
        }
        if request.is_begun {
            self.running -= 1;
            self.is_alone = false;
            if let Some(known) = self.known.get_mut(kind) {
                known.running -= 1;
                if known.running == 0 && known.longest.is_none() {
                    self.known.remove(kind);
                }
            }
        }
        match answer {
            Some(text) => self.push(Line { text, request: Some(request.bytes) }),
            None => self.release(request.bytes),
        }
    }

    fn push(&mut self, line: Line) {
        self.unwritten += line.text.len();
        self.lines.push_back(line);
    }

    /// Takes out the next line to be written.
    pub(super) fn next_line(&mut self) -> Option<Line> {
        self.lines.pop_front()
    }

    /// A line was written, or could not be. The room of the request that it answers is free.
    pub(super) fn written(&mut self, line: &Line, is_read: bool) {
        self.unwritten -= line.text.len();
        if let Some(bytes) = line.request {
            self.release(bytes);
        }
        if !is_read {
            self.unread = true;
            self.cancel_all();
        }
    }

    fn release(&mut self, bytes: usize) {
        self.requests -= 1;
        self.bytes -= bytes;
    }

    /// Returns whether any request has an answer that is not written.
    pub(super) fn has_requests(&self) -> bool {
        self.requests > 0
    }

    /// Returns whether anything is carried out.
    pub(super) fn is_running(&self) -> bool {
        self.running > 0
    }

    /// Returns whether anything is carried out, or waits to be.
    pub(super) fn is_busy(&self) -> bool {
        self.running > 0 || !self.waiting.is_empty()
    }

    /// Returns whether anything is to be written, and somebody reads it.
    pub(super) fn is_writing(&self) -> bool {
        self.unwritten > 0 && !self.unread
    }

    /// Returns whether so much is to be written that whoever says more waits.
    pub(super) fn is_full(&self) -> bool {
        self.unwritten >= MOST_BYTES && !self.unread && !self.ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admit(schedule: &mut Schedule<()>, id: u64, kind: &str, alone: bool) {
        let about = About { subject: String::new(), kind: kind.to_owned(), alone };
        schedule.admit(&id.into(), about, (), 10).unwrap_or_else(|problem| panic!("{problem:?}"));
    }

    fn begun(schedule: &mut Schedule<()>) -> Vec<String> {
        begun_at(schedule, Instant::now())
    }

    fn begun_at(schedule: &mut Schedule<()>, now: Instant) -> Vec<String> {
        std::iter::from_fn(|| schedule.next(now)).map(|begun| begun.key).collect()
    }

    fn answer(schedule: &mut Schedule<()>, key: &str, bytes: usize) {
        let watch = Arc::clone(&schedule.under_way[key].watch);
        let request = schedule.take_out(key, &watch).unwrap_or_else(|| panic!("{key} is under way"));
        schedule.answered(&request, Some("x".repeat(bytes)), true);
        while let Some(line) = schedule.next_line() {
            schedule.written(&line, true);
        }
    }

    #[test]
    fn requests_begin_as_far_as_earlier_answers_allow_and_one_by_one_where_asked() {
        let mut all = Schedule::default();
        (0..6).for_each(|id| admit(&mut all, id, "large", false));
        admit(&mut all, 6, "", true);
        admit(&mut all, 7, "small", false);
        assert_eq!(begun(&mut all), ["0", "1"], "the one that is alone is not overtaken");
        answer(&mut all, "0", MOST_EXPECTED / 3);
        assert_eq!(begun(&mut all), ["2", "3"]);
        answer(&mut all, "1", MOST_EXPECTED * 2);
        answer(&mut all, "2", 1);
        assert!(begun(&mut all).is_empty());
        answer(&mut all, "3", 1);
        assert_eq!(begun(&mut all), ["4"], "one can always be carried out");
        answer(&mut all, "4", 1);
        assert_eq!(begun(&mut all), ["5"]);
        answer(&mut all, "5", 1);
        assert_eq!(begun(&mut all), ["6"]);
        answer(&mut all, "6", 1);
        assert_eq!(begun(&mut all), ["7"]);
        // Answers that nobody reads hold back what follows.
        admit(&mut all, 8, "small", false);
        all.say("x".repeat(MOST_BYTES));
        assert!(begun(&mut all).is_empty() && all.is_full());
    }

    #[test]
    fn one_that_hangs_is_answered_for_once_and_keeps_no_room() {
        let mut all = Schedule::default();
        admit(&mut all, 1, "", true);
        admit(&mut all, 2, "", false);
        let hung = all.next(Instant::now()).unwrap_or_else(|| panic!("it begins"));
        assert!(all.take_out_hanging(RunWatch::hangs).is_empty(), "none hangs");
        let taken = all.take_out_hanging(|_| true);
        let first = taken.iter().find(|one| one.id == 1).unwrap_or_else(|| panic!("it hangs"));
        all.answered(first, Some(String::new()), false);
        assert!(hung.cancel.is_cancelled() && !all.is_running());
        // Another request may have its id now, and what hung returns.
        admit(&mut all, 1, "", false);
        assert!(all.take_out("1", &hung.watch).is_none());
    }

    #[test]
    fn what_was_not_begun_is_handed_back_when_it_is_cancelled_and_at_the_end() {
        let mut all = Schedule::default();
        (0..4).for_each(|id| admit(&mut all, id, "", false));
        assert_eq!(begun(&mut all), ["0", "1"]);
        assert!(all.cancel("0").is_none() && all.under_way["0"].cancel.is_cancelled());
        assert_eq!(all.cancel("2").map(|one| one.id), Some(2.into()));
        assert!(all.cancel("2").is_none());
        assert_eq!(all.end().into_iter().map(|one| one.id).collect::<Vec<_>>(), [Json::from(3)]);
        admit(&mut all, 4, "", false);
        assert!(begun(&mut all).is_empty(), "nothing begins after the end");
    }

    #[test]
    fn requests_that_take_long_do_not_wait_for_a_result_of_their_kind() {
        let mut all = Schedule::default();
        let now = Instant::now();
        (0..4).for_each(|id| admit(&mut all, id, "", false));
        assert_eq!(begun_at(&mut all, now), ["0", "1"]);
        assert!(begun_at(&mut all, now + PATIENCE / 2).is_empty());
        assert_eq!(begun_at(&mut all, now + PATIENCE), ["2", "3"]);
    }

    #[test]
    fn kinds_are_kept_only_of_results() {
        let mut all = Schedule::default();
        admit(&mut all, 1, "no such kind", false);
        let begun = all.next(Instant::now()).unwrap_or_else(|| panic!("it begins"));
        let request = all.take_out("1", &begun.watch).unwrap_or_else(|| panic!("it is under way"));
        all.answered(&request, Some("an error".to_owned()), false);
        assert!(all.known.is_empty());
    }

    #[test]
    fn requests_and_their_bytes_are_limited_but_never_a_single_one() {
        let with =
            |requests: usize, bytes: usize| Schedule::<()> { requests, bytes: requests * bytes, ..Schedule::default() };
        assert!(with(0, 0).has_room(MOST_BYTES + 1));
        assert!(with(MOST_UNDER_WAY - 1, 10).has_room(10));
        assert!(!with(MOST_UNDER_WAY, 10).has_room(10));
        assert!(with(2, MOST_BYTES / 4).has_room(MOST_BYTES / 2));
        assert!(!with(2, MOST_BYTES / 4).has_room(MOST_BYTES / 2 + 1));
    }
}
