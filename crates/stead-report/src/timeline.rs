//! What ran beside what.

use std::collections::BTreeSet;
use std::time::Duration;

use askama::Template;
use askama::filters::HtmlSafe;

use crate::page::{Instance, Page, human};

/// How high a lane is, and where the first one begins.
const LANE: f64 = 30.0;
const TOP: f64 = 24.0;
/// How many lanes are drawn: nobody reads more.
const MOST_LANES: usize = 24;
/// What is narrower, in hundredths of the whole, is drawn together with what stands beside it.
const NARROW: f64 = 0.25;
/// How many marks the axis has at most.
const MARKS: f64 = 9.0;

/// Calls as bars in lanes.
#[derive(Template)]
#[template(path = "timeline.svg", escape = "html")]
pub(crate) struct Timeline<'a> {
    bars: Vec<Bar>,
    /// The instances, one after the other, that the run had to wait for at its end.
    pub(crate) chain: Vec<usize>,
    marks: Vec<(f64, String)>,
    anchors: &'a BTreeSet<usize>,
    pub(crate) lanes: usize,
    /// How many calls found no lane.
    pub(crate) left_out: usize,
    pub(crate) calls: usize,
    height: f64,
}

impl HtmlSafe for Timeline<'_> {}

/// One call, or several that are too short to be drawn apart.
struct Bar {
    at: usize,
    said: String,
    label: String,
    class: String,
    in_chain: bool,
    has_failed: bool,
    x: f64,
    y: f64,
    width: f64,
    count: usize,
}

/// A call that is to be placed.
struct Placed {
    at: usize,
    began: f64,
    width: f64,
    operation: &'static str,
    changes: bool,
    elapsed: Duration,
}

impl<'a> Timeline<'a> {
    /// The timeline of a page; `None` where nothing was called.
    pub(crate) fn new(page: &'a Page, anchors: &'a BTreeSet<usize>) -> Option<Self> {
        let calls = placed(page);
        if calls.is_empty() {
            return None;
        }
        let chain = chain(page);
        let mut ends: Vec<f64> = Vec::new();
        let mut bars: Vec<Vec<Bar>> = Vec::new();
        let mut left_out = 0;
        for call in &calls {
            let lane = match ends.iter().position(|end| *end <= call.began) {
                Some(lane) => lane,
                None if ends.len() < MOST_LANES => {
                    ends.push(0.0);
                    bars.push(Vec::new());
                    ends.len() - 1
                }
                None => {
                    left_out += 1;
                    continue;
                }
            };
            ends[lane] = call.began + call.width;
            let bar = Bar::new(page, call, TOP + LANE * float(lane), chain.contains(&call.at));
            match bars[lane].last_mut() {
                Some(last) if last.takes(&bar) => last.take(&bar),
                _ => bars[lane].push(bar),
            }
        }
        let lanes = ends.len();
        let height = TOP + LANE * float(lanes) + 4.0;
        let (bars, marks) = (bars.into_iter().flatten().collect(), marks(page.elapsed));
        Some(Self { bars, chain, marks, anchors, lanes, left_out, calls: calls.len(), height })
    }
}

impl Bar {
    fn new(page: &Page, call: &Placed, y: f64, in_chain: bool) -> Self {
        let instance = &page.instances[call.at];
        let kind = if call.changes { "full" } else { "hollow" };
        Self {
            at: call.at,
            said: format!("{}: {} in {}", instance.name, call.operation, human(call.elapsed)),
            label: instance.name.cut(24),
            class: format!("{kind} r-{}", instance.outcome.shade()),
            in_chain,
            has_failed: instance.outcome.is_failure(),
            x: call.began,
            y,
            width: call.width,
            count: 1,
        }
    }

    /// Returns whether the next bar of the lane is drawn together with this one.
    fn takes(&self, next: &Self) -> bool {
        let is_narrow = |bar: &Self| bar.width < NARROW;
        (is_narrow(self) || self.count > 1) && is_narrow(next) && next.x - (self.x + self.width) < NARROW
    }

    fn take(&mut self, next: &Self) {
        self.width = next.x + next.width - self.x;
        self.count += 1;
        self.in_chain |= next.in_chain;
        self.has_failed |= next.has_failed;
        let shade = if self.has_failed { "bad" } else { "plain" };
        self.said = format!("{} short calls{}", self.count, if self.has_failed { ", with failed ones" } else { "" });
        self.class = format!("hollow r-{shade}");
    }

    /// Returns whether its name fits into it, on a screen that is not small.
    fn is_labelled(&self) -> bool {
        self.count == 1 && self.width > 18.0
    }

    fn middle(&self) -> f64 {
        self.y + 17.0
    }

    fn below(&self) -> f64 {
        self.y + 25.0
    }
}

#[expect(clippy::cast_precision_loss, reason = "a number of lanes")]
fn float(number: usize) -> f64 {
    number as f64
}

/// Where something is, in hundredths of the whole.
fn share(part: Duration, whole: Duration) -> f64 {
    let share = if whole.is_zero() { 0.0 } else { part.as_secs_f64() / whole.as_secs_f64() * 100.0 };
    share.clamp(0.0, 100.0)
}

/// All calls by their beginning.
fn placed(page: &Page) -> Vec<Placed> {
    let of = |(at, instance): (usize, &'_ Instance)| {
        let calls = instance.calls().map(move |call| {
            let began = share(call.began, page.elapsed);
            let width = share(call.elapsed, page.elapsed).min(100.0 - began);
            let (operation, changes, elapsed) = (call.operation, call.changes, call.elapsed);
            Placed { at, began, width, operation, changes, elapsed }
        });
        calls.collect::<Vec<_>>()
    };
    let mut calls: Vec<Placed> = page.instances.iter().enumerate().flat_map(of).collect();
    calls.sort_by(|one, other| one.began.total_cmp(&other.began).then(one.at.cmp(&other.at)));
    calls
}

/// From what ended last back to what it had waited for longest, again and again; the first one first.
fn chain(page: &Page) -> Vec<usize> {
    let ended = |at: usize| {
        let calls = page.instances.get(at).into_iter().flat_map(Instance::calls);
        calls.map(|call| call.began + call.elapsed).max()
    };
    let all = 0..page.instances.len();
    let mut next = all.filter_map(|at| Some((ended(at)?, at))).max();
    let mut chain = Vec::new();
    while let Some((_, at)) = next {
        if chain.contains(&at) {
            break;
        }
        chain.push(at);
        let needs = page.instances[at].needs.iter();
        next = needs.filter_map(|need| Some((ended(need.instance)?, need.instance))).max();
    }
    chain.reverse();
    chain
}

/// Marks at round times.
fn marks(elapsed: Duration) -> Vec<(f64, String)> {
    let whole = elapsed.as_secs_f64();
    let mut step = 0.001;
    for factor in [2.0, 2.5, 2.0].into_iter().cycle() {
        if whole / step <= MARKS || step > 1e9 {
            break;
        }
        step *= factor;
    }
    let times = std::iter::successors(Some(0.0), |at| Some(at + step)).take_while(|at| *at < whole * 0.97);
    let digits = if step >= 1.0 {
        0
    } else if step >= 0.1 {
        1
    } else if step >= 0.01 {
        2
    } else {
        3
    };
    times.map(|at| (at / whole * 100.0, if at == 0.0 { "0 s".to_owned() } else { format!("{at:.digits$}") })).collect()
}

/// Where the calls of one instance are, for its line in a table.
#[derive(Template)]
#[template(path = "track.svg", escape = "html")]
pub(crate) struct Track {
    bars: Vec<(String, f64, f64)>,
}

impl HtmlSafe for Track {}

impl Track {
    pub(crate) fn new(page: &Page, instance: &Instance) -> Self {
        let bars = instance.calls().map(|call| {
            let kind = if call.changes { "full" } else { "hollow" };
            let began = share(call.began, page.elapsed);
            let width = share(call.elapsed, page.elapsed).clamp(0.8, 100.0);
            (format!("{kind} r-{}", instance.outcome.shade()), began.min(99.2), width.min(100.0 - began.min(99.2)))
        });
        Self { bars: bars.take(40).collect() }
    }
}
