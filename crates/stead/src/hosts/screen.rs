//! The view of machines under way: at a terminal a line for each, for programs their events.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::json;
use stead_core::visible::visible;
use stead_hosts::Machine;

use super::ssh::Sign;
use crate::request::{View, Volume};
use crate::terminal::{Lines, Output, complain_json, is_watched};

/// How many calls of a machine are kept at most, whatever it says.
const MOST_CALLS: usize = 64;

/// The machines under way.
pub(super) struct Screen<'a> {
    machines: &'a [Machine],
    lines: Option<Lines>,
    under_way: BTreeMap<usize, UnderWay>,
    events: bool,
}

impl<'a> Screen<'a> {
    pub(super) fn new(machines: &'a [Machine], view: View) -> Self {
        let shows = view.output == Output::Text && !view.events && view.volume > Volume::Quiet && is_watched();
        let lines = shows.then(|| Lines::begin(machines.len()));
        Self { machines, lines, under_way: BTreeMap::new(), events: view.events }
    }

    pub(super) fn begin(&mut self, at: usize) {
        self.under_way.insert(at, UnderWay::new(Instant::now()));
        self.show(at);
    }

    pub(super) fn take(&mut self, at: usize, sign: Sign) {
        if let Some(machine) = self.under_way.get_mut(&at) {
            machine.take(&sign, Instant::now());
            self.show(at);
        }
        if let Sign::Event(mut event) = sign
            && self.events
            && let Some(members) = event.as_object_mut()
        {
            members.insert("machine".to_owned(), json!(self.name(at)));
            complain_json(&event);
        }
    }

    pub(super) fn end(&mut self, at: usize) {
        self.under_way.remove(&at);
        if let Some(lines) = &mut self.lines {
            lines.end(at);
        }
    }

    /// Shows how long everything has taken by now.
    pub(super) fn refresh(&mut self) {
        let all: Vec<usize> = self.under_way.keys().copied().collect();
        for at in all {
            self.show(at);
        }
    }

    fn name(&self, at: usize) -> &'a str {
        self.machines.get(at).map_or("", |machine| machine.name.as_str())
    }

    fn show(&mut self, at: usize) {
        let name = self.name(at);
        if let (Some(lines), Some(machine)) = (&mut self.lines, self.under_way.get(&at)) {
            lines.show(at, format!("{name}  {}", machine.line(Instant::now())));
        }
    }
}

/// How far one machine is: a fold over what it says.
struct UnderWay {
    stage: &'static str,
    since: Instant,
    done: u64,
    total: u64,
    /// The instances under way, in the order in which they began.
    calls: Vec<(String, Instant)>,
}

impl UnderWay {
    fn new(now: Instant) -> Self {
        Self { stage: "connecting", since: now, done: 0, total: 0, calls: Vec::new() }
    }

    fn enter(&mut self, stage: &'static str, now: Instant) {
        (self.stage, self.since) = (stage, now);
    }

    fn take(&mut self, sign: &Sign, now: Instant) {
        let event = match sign {
            Sign::Sends => return self.enter("receiving stead", now),
            Sign::Event(event) => event,
        };
        let instance = event["instance"].as_str().unwrap_or_default();
        match event["event"].as_str().unwrap_or_default() {
            "began" => {
                self.total = event["instances"].as_u64().unwrap_or_default();
                self.enter("preparing", now);
            }
            "callStarted" if self.calls.len() < MOST_CALLS => self.calls.push((instance.to_owned(), now)),
            "callEnded" => {
                self.calls.retain(|(each, _)| each != instance);
                self.enter("working", now);
            }
            "settled" => self.done += 1,
            "retryScheduled" => self.enter("waiting to try again", now),
            _ => {}
        }
    }

    /// Done and total, what takes longest now, and how long.
    fn line(&self, now: Instant) -> String {
        let count = if self.total > 0 { format!("{}/{}  ", self.done, self.total) } else { String::new() };
        let (doing, since) = match self.calls.first() {
            Some((instance, since)) => (visible(instance), *since),
            None => (self.stage.into(), self.since),
        };
        let others = match self.calls.len() {
            0 | 1 => String::new(),
            all => format!(" and {} more", all - 1),
        };
        format!("{count}{doing}{others}{}", elapsed(now.saturating_duration_since(since)))
    }
}

/// How long something takes; of what has just begun, nothing.
fn elapsed(time: Duration) -> String {
    match time.as_secs() {
        0 => String::new(),
        seconds @ 1..60 => format!("  {seconds} s"),
        seconds => format!("  {} min {} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_far_a_machine_is_what_it_does_and_since_when() {
        let begun = Instant::now();
        let after = |seconds| begun + Duration::from_secs(seconds);
        let mut machine = UnderWay::new(begun);
        assert_eq!(machine.line(after(0)), "connecting");
        machine.take(&Sign::Sends, after(1));
        assert_eq!(machine.line(after(4)), "receiving stead  3 s");
        let mut event = |event, at| machine.take(&Sign::Event(event), after(at));
        event(json!({"event": "began", "instances": 3}), 5);
        event(json!({"event": "callStarted", "instance": "A/B:x\u{1b}[2J"}), 5);
        event(json!({"event": "callStarted", "instance": "A/B:y"}), 70);
        event(json!({"event": "settled", "instance": "A/B:z"}), 70);
        let line = machine.line(after(80));
        assert!(line.starts_with("1/3  A/B:x") && line.ends_with(" and 1 more  1 min 15 s"), "{line}");
        assert!(!line.contains('\u{1b}'), "{line}");
        machine.take(&Sign::Event(json!({"event": "callEnded", "instance": "A/B:x\u{1b}[2J"})), after(80));
        assert_eq!(machine.line(after(80)), "1/3  A/B:y  10 s");
        for _ in 0..1000 {
            machine.take(&Sign::Event(json!({"event": "callStarted", "instance": "A/B:w"})), after(81));
        }
        assert_eq!(machine.calls.len(), MOST_CALLS);
    }
}
