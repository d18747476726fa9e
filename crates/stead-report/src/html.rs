//! A page as one file.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use askama::Template;
use askama::filters::HtmlSafe;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::tz::TimeZone;
use sha2::{Digest as _, Sha256};

use crate::drawing::{Drawing, Loose, connected};
use crate::layout::{Edges, levels};
use crate::page::{Act, Ending, Instance, Line, Outcome, Page, Parameter, Text, human, weight};
use crate::timeline::{Timeline, Track};

/// The sheet of a page.
const SHEET: &str = concat!(include_str!("../templates/colours.css"), include_str!("../templates/page.css"));

/// The only sheet that a browser takes from the page, by its digest: text that got into a page could not bring its own.
static SHEET_DIGEST: LazyLock<String> = LazyLock::new(|| STANDARD.encode(Sha256::digest(SHEET)));

/// How the file begins, by which a report differs from other pages.
pub const BEGIN: &str = "<!doctype html><!-- report of stead -->";

/// How many bytes are spent on what is shown in full, on what has a line each, and on parameters and notes each. A page of any
/// run has at most two megabytes, so that it opens at once and can be sent.
const BYTES_IN_FULL: usize = 700_000;
const BYTES_OF_LINES: usize = 450_000;
const BYTES_OF_TEXTS: usize = 120_000;
/// How many columns of a text are shown that may have any length.
const MOST_COLUMNS: usize = 2_000;
/// What an instance costs besides its texts.
const ITEM: usize = 900;
const ROW: usize = 420;
/// How many lines are shown of one thing.
const MOST_LINES: usize = 120;
/// How many names are listed where all of them would be a wall.
const MOST_NAMES: usize = 60;
/// Up to so many connected instances the graph is drawn as a whole.
const MOST_DRAWN: usize = 60;
/// How many instances the list of the slowest has.
const SLOWEST: usize = 10;

/// The page as one file of HTML.
///
/// Guarantees: it needs nothing from elsewhere and asks browsers to load nothing, no script runs in it, and no text of a
/// [`Page`] becomes anything but text. It has at most two megabytes. Equal pages give equal files.
pub fn html(page: &Page) -> String {
    let parts = Parts::new(page);
    let anchors = parts.anchors();
    let timeline = Timeline::new(page, &anchors);
    let slowest = slowest(page);
    let graph = GraphPart::new(page, &anchors);
    let file = File {
        page,
        parts: &parts,
        anchors: &anchors,
        timeline,
        slowest,
        graph,
        begin: BEGIN,
        sheet: SHEET,
        digest: &SHEET_DIGEST,
    };
    file.render().unwrap_or_default()
}

#[derive(Template)]
#[template(path = "page.html", escape = "html")]
struct File<'a> {
    page: &'a Page,
    parts: &'a Parts<'a>,
    anchors: &'a BTreeSet<usize>,
    timeline: Option<Timeline<'a>>,
    slowest: Vec<Slow<'a>>,
    graph: Option<GraphPart<'a>>,
    begin: &'static str,
    sheet: &'static str,
    digest: &'static str,
}

/// The first texts for which there is room.
fn fitting(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut left = BYTES_OF_TEXTS;
    let fits = |text: String| {
        left = left.checked_sub(ROW + weight(&text))?;
        Some(text)
    };
    texts.map_while(fits).collect()
}

impl File<'_> {
    /// The notes for which there is room.
    fn notes(&self) -> Vec<String> {
        fitting(self.page.notes.iter().map(|note| note.cut(MOST_COLUMNS)))
    }

    /// The parameters for which there is room, with what is shown of their values.
    fn parameters(&self) -> Vec<(&Parameter, String)> {
        let shown = |parameter: &Parameter| parameter.value.as_ref().map(|it| it.cut(MOST_COLUMNS)).unwrap_or_default();
        self.page.parameters.iter().zip(fitting(self.page.parameters.iter().map(shown))).collect()
    }

    fn count(&self, is_meant: impl Fn(Outcome) -> bool) -> usize {
        self.page.instances.iter().filter(|each| each.is_counted() && is_meant(each.outcome)).count()
    }

    /// The answer in one line.
    fn heading(&self) -> String {
        let all = self.count(|_| true);
        let of = |outcome| self.count(|each| each == outcome);
        let (failed, pending) = (of(Outcome::Failed), of(Outcome::Pending));
        let (changes, verb) = (self.count(Outcome::is_change), self.verb());
        let instances = if all == 1 { "instance" } else { "instances" };
        match (self.page.ending, self.page.act) {
            (Ending::Running, _) => format!("Running: {} of {all} have ended", all - of(Outcome::NotReached)),
            _ if failed > 0 => format!("{verb} failed in {failed} of {all} {instances}"),
            (Ending::Early, _) => format!("Ended early: {} of {all} were not reached", of(Outcome::NotReached)),
            _ if pending > 0 => format!("Gave up on {pending} of {all}"),
            (_, Act::Plan) if changes > 0 => format!("Plan: {changes} of {all} would change"),
            (_, Act::Plan) if of(Outcome::Unknown) > 0 => format!("Plan: {} of {all} may change", of(Outcome::Unknown)),
            (_, Act::Plan) => "Nothing would change".to_owned(),
            (_, Act::Check) if changes > 0 => format!("Drift in {changes} of {all} {instances}"),
            (_, Act::Check) => "Nothing has drifted".to_owned(),
            (_, Act::Apply) if changes > 0 => format!("Applied: {changes} of {all} changed"),
            (_, Act::Apply) => "Nothing had to change".to_owned(),
            (_, Act::Read) => format!("Read: {all} {instances}"),
        }
    }

    fn verb(&self) -> &'static str {
        match self.page.act {
            Act::Plan => "Plan",
            Act::Apply => "Apply",
            Act::Check => "Check",
            Act::Read => "Read",
        }
    }

    /// How many ended how, in a sentence.
    fn lead(&self) -> String {
        let tallies = self.parts.tallies.iter();
        tallies.map(|tally| format!("{} {}", tally.count, tally.word)).collect::<Vec<_>>().join(", ")
    }

    fn took(&self) -> String {
        human(self.page.elapsed)
    }

    fn began(&self) -> Option<(String, String)> {
        let at = self.page.began?.to_zoned(TimeZone::UTC);
        Some((at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(), at.strftime("%-d %B %Y, %H:%M:%S UTC").to_string()))
    }
}

/// The sign of an outcome; the word stands beside it.
#[derive(Clone, Copy, Template)]
#[template(
    source = r##"<svg class="g {{ self.0.shade() }}" aria-hidden="true"><use href="#s-{{ self.0.sign() }}"/></svg>"##,
    ext = "html"
)]
pub(crate) struct Sign(pub(crate) Outcome);

impl HtmlSafe for Sign {}

impl Instance {
    fn signed(&self) -> Sign {
        Sign(self.outcome)
    }
}

/// How many ended in one way, and its part of the bar.
struct Tally {
    sign: Sign,
    count: usize,
    word: &'static str,
    part: &'static str,
    x: f64,
    width: f64,
}

/// The least part of the bar that can still be seen, in hundredths.
const VISIBLE: f64 = 1.3;

#[expect(clippy::cast_precision_loss, reason = "a number of instances")]
fn tallies(page: &Page) -> Vec<Tally> {
    let mut counts: BTreeMap<Outcome, usize> = BTreeMap::new();
    page.instances
        .iter()
        .filter(|each| each.is_counted())
        .for_each(|each| *counts.entry(each.outcome).or_default() += 1);
    let all: f64 = counts.values().map(|count| *count as f64).sum();
    let wide: Vec<f64> = counts.values().map(|count| (*count as f64 / all * 100.0).max(VISIBLE)).collect();
    let whole: f64 = wide.iter().sum();
    let mut x = 0.0;
    let tally = |((outcome, count), wide): ((&Outcome, &usize), f64)| {
        let (from, width) = (x, wide / whole * 100.0);
        x += width;
        let (word, part) = (outcome.word(page.act), part_of(*outcome));
        Tally { sign: Sign(*outcome), count: *count, word, part, x: from, width: width - 0.25 }
    };
    counts.iter().zip(wide).map(tally).collect()
}

/// The part of the page in which an outcome is.
fn part_of(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Failed | Outcome::Pending => "failed",
        Outcome::Skipped => "skipped",
        Outcome::NotReached => "left",
        Outcome::Unknown => "unknown",
        Outcome::Unchanged => "unchanged",
        _ => "changed",
    }
}

/// The instances by how they ended.
struct Parts<'a> {
    tallies: Vec<Tally>,
    items: Vec<Section<'a>>,
    rows: Vec<Section<'a>>,
}

/// One part of the page.
struct Section<'a> {
    id: &'static str,
    title: &'static str,
    all: usize,
    /// Those that are shown in full.
    items: Vec<Item<'a>>,
    /// Those that have a line.
    rows: Vec<Row<'a>>,
    /// True if the lines are folded: nobody needs to read them.
    is_folded: bool,
}

impl Section<'_> {
    fn more(&self) -> usize {
        self.all - self.items.len() - self.rows.len()
    }

    fn names(&self) -> String {
        let names: Vec<String> = self.rows.iter().take(4).map(|row| row.instance.name.cut(40)).collect();
        let more = self.all - names.len();
        if more == 0 { names.join(", ") } else { format!("{} and {more} more", names.join(", ")) }
    }
}

/// An instance with everything that is known of it.
struct Item<'a> {
    at: usize,
    sign: Sign,
    instance: &'a Instance,
    page: &'a Page,
    held: Vec<usize>,
}

/// An instance in a line.
struct Row<'a> {
    at: usize,
    sign: Sign,
    instance: &'a Instance,
}

impl<'a> Item<'a> {
    fn first(&self) -> Option<&'a Text> {
        self.instance.message.first()
    }

    fn rest(&self) -> &'a [Text] {
        let rest = self.instance.message.get(1..).unwrap_or_default();
        rest.get(..MOST_LINES).unwrap_or(rest)
    }

    fn lines(&self) -> &'a [Line] {
        let lines = &self.instance.lines;
        lines.get(..MOST_LINES).unwrap_or(lines)
    }

    fn snippet(&self) -> &'a [Text] {
        let snippet = &self.instance.snippet;
        snippet.get(..MOST_LINES).unwrap_or(snippet)
    }

    fn took(&self) -> Option<String> {
        let elapsed = self.instance.elapsed();
        (!elapsed.is_zero()).then(|| human(elapsed))
    }

    fn tries(&self) -> Option<usize> {
        Some(self.instance.attempts.len()).filter(|tries| *tries > 1)
    }

    fn held_named(&self) -> impl Iterator<Item = (usize, &'a Text)> {
        self.held.iter().take(MOST_NAMES).map(|at| (*at, &self.page.instances[*at].name))
    }

    fn held_more(&self) -> usize {
        self.held.len().saturating_sub(MOST_NAMES)
    }

    fn weight(&self) -> usize {
        let texts = self.instance.message.iter().take(MOST_LINES + 1).chain(self.snippet());
        let lines: usize = self.lines().iter().map(|line| line.text.weight() + 40).sum();
        let held: usize = self.held_named().map(|(_, name)| name.weight() + 40).sum();
        ITEM + texts.map(|text| text.weight() + 20).sum::<usize>() + lines + held + row_weight(self.instance)
    }
}

fn row_weight(instance: &Instance) -> usize {
    let texts = [Some(&instance.name), Some(&instance.type_name), instance.path.as_ref(), instance.place.as_ref()];
    let first = instance.message.first();
    ROW + texts.into_iter().flatten().chain(first).map(Text::weight).sum::<usize>()
}

impl<'a> Parts<'a> {
    fn new(page: &'a Page) -> Self {
        let mut held: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for at in 0..page.instances.len() {
            if let Some(cause) = cause(page, at) {
                held.entry(cause).or_default().push(at);
            }
        }
        let of = |id: &str| {
            let meant = page.instances.iter().enumerate().filter(|(_, each)| each.is_counted());
            meant.filter(|(_, each)| part_of(each.outcome) == id).map(|(at, _)| at).collect::<Vec<_>>()
        };
        let (changed, unchanged) = match page.act {
            Act::Plan => ("To change", "In the desired state"),
            Act::Check => ("Drifted", "In the desired state"),
            Act::Apply => ("Changed", "Unchanged"),
            Act::Read => ("Changed", "Read"),
        };
        let (mut in_full_left, mut lines_left) = (BYTES_IN_FULL, BYTES_OF_LINES);
        let full = [("failed", "Failed"), ("changed", changed)];
        let full = full.map(|named| in_full(page, named, &of(named.0), &held, (&mut in_full_left, &mut lines_left)));
        let lines = [("unknown", "Unknown"), ("skipped", "Skipped"), ("left", "Not reached"), ("unchanged", unchanged)];
        let lines = lines.map(|(id, title)| in_lines(page, (id, title), &of(id), &mut lines_left));
        let keep = |sections: Vec<Section<'a>>| sections.into_iter().filter(|section| section.all > 0).collect();
        Self { tallies: tallies(page), items: keep(full.into()), rows: keep(lines.into()) }
    }

    /// The instances that links can lead to.
    fn anchors(&self) -> BTreeSet<usize> {
        let sections = || self.items.iter().chain(&self.rows);
        let items = sections().flat_map(|section| section.items.iter().map(|item| item.at));
        items.chain(sections().flat_map(|section| section.rows.iter().map(|row| row.at))).collect()
    }

    fn sections(&self) -> impl Iterator<Item = &Section<'a>> {
        self.items.iter().chain(&self.rows)
    }
}

/// The instance whose failure kept another from beginning, however many stand between.
fn cause(page: &Page, at: usize) -> Option<usize> {
    let mut cause = page.instances.get(at)?.held_by?;
    for _ in 0..page.instances.len() {
        match page.instances.get(cause)?.held_by {
            Some(next) if next != cause => cause = next,
            _ => break,
        }
    }
    page.instances.get(cause)?.outcome.is_failure().then_some(cause)
}

fn in_full<'a>(
    page: &'a Page,
    (id, title): (&'static str, &'static str),
    meant: &[usize],
    held: &BTreeMap<usize, Vec<usize>>,
    (left, lines_left): (&mut usize, &mut usize),
) -> Section<'a> {
    let mut items = Vec::new();
    for at in meant {
        let instance = &page.instances[*at];
        let held = held.get(at).cloned().unwrap_or_default();
        let item = Item { at: *at, sign: Sign(instance.outcome), instance, page, held };
        let Some(rest) = left.checked_sub(item.weight()) else { break };
        *left = rest;
        items.push(item);
    }
    let rows = rows(page, meant.get(items.len()..).unwrap_or_default(), lines_left);
    Section { id, title, all: meant.len(), items, rows, is_folded: false }
}

fn in_lines<'a>(
    page: &'a Page,
    (id, title): (&'static str, &'static str),
    meant: &[usize],
    left: &mut usize,
) -> Section<'a> {
    let (items, rows) = (Vec::new(), rows(page, meant, left));
    Section { id, title, all: meant.len(), items, rows, is_folded: id == "unchanged" }
}

fn rows<'a>(page: &'a Page, meant: &[usize], left: &mut usize) -> Vec<Row<'a>> {
    let row = |at: &usize| {
        let instance = &page.instances[*at];
        *left = left.checked_sub(row_weight(instance))?;
        Some(Row { at: *at, sign: Sign(instance.outcome), instance })
    };
    meant.iter().map_while(row).collect()
}

/// An instance that took long.
struct Slow<'a> {
    at: usize,
    sign: Sign,
    instance: &'a Instance,
    work: String,
    test: String,
    set: String,
    waited: String,
    track: Track,
}

fn slowest(page: &Page) -> Vec<Slow<'_>> {
    let mut timed: Vec<(usize, &Instance)> =
        page.instances.iter().enumerate().filter(|(_, instance)| !instance.elapsed().is_zero()).collect();
    timed.sort_by_key(|(_, instance)| std::cmp::Reverse(instance.elapsed()));
    let shown = |duration: std::time::Duration| if duration.is_zero() { String::new() } else { human(duration) };
    let slow = |(at, instance): (usize, &'_ Instance)| {
        let of = |changes: bool| {
            shown(instance.calls().filter(|call| call.changes == changes).map(|call| call.elapsed).sum())
        };
        let waited = shown(instance.attempts.iter().map(|attempt| attempt.waited).sum());
        (at, of(false), of(true), waited)
    };
    let each = timed.into_iter().take(SLOWEST).map(|(at, instance)| {
        let (at, test, set, waited) = slow((at, instance));
        let (work, track) = (human(instance.elapsed()), Track::new(page, instance));
        Slow { at, sign: Sign(instance.outcome), instance, work, test, set, waited, track }
    });
    each.collect()
}

/// What waits for what: all of it, or what stands around failures and a table of the rest.
struct GraphPart<'a> {
    drawing: Option<Drawing<'a>>,
    table: Option<Table>,
    is_whole: bool,
    /// What is drawn, for the list of it.
    drawn: Vec<usize>,
    loose: Vec<usize>,
    more_loose: usize,
}

impl<'a> GraphPart<'a> {
    fn new(page: &'a Page, anchors: &BTreeSet<usize>) -> Option<Self> {
        if !page.knows_needs {
            return None;
        }
        let connected = connected(page);
        if connected.is_empty() {
            return None;
        }
        let is_whole = connected.len() <= MOST_DRAWN;
        let drawn = if is_whole { connected.clone() } else { around_failures(page) };
        let mut drawing = (!drawn.is_empty()).then(|| Drawing::new(page, &drawn, Loose::LeftOut));
        if let Some(drawing) = &mut drawing {
            drawing.anchors = anchors.intersection(&drawn).copied().collect();
        }
        let loose: Vec<usize> = (0..page.instances.len()).filter(|at| !connected.contains(at)).collect();
        let named: Vec<usize> = loose.iter().copied().take(if is_whole { MOST_NAMES } else { 0 }).collect();
        let more_loose = loose.len() - named.len();
        let table = (!is_whole).then(|| Table::new(page));
        Some(Self { drawing, table, is_whole, drawn: drawn.into_iter().collect(), loose: named, more_loose })
    }
}

/// What failed, what it held back, and what it had needed; as much of it as can be drawn.
fn around_failures(page: &Page) -> BTreeSet<usize> {
    let mut drawn = BTreeSet::new();
    let failed = |(at, instance): (usize, &Instance)| instance.outcome.is_failure().then_some(at);
    for at in page.instances.iter().enumerate().filter_map(failed) {
        let held = (0..page.instances.len()).filter(|held| cause(page, *held) == Some(at)).take(12);
        let needs = page.instances[at].needs.iter().map(|need| need.instance).take(12);
        let group: BTreeSet<usize> = [at].into_iter().chain(held).chain(needs).collect();
        if drawn.union(&group).count() > MOST_DRAWN {
            break;
        }
        drawn.extend(group);
    }
    drawn
}

/// How many instances of each type stand how far from the beginning.
struct Table {
    levels: Vec<String>,
    rows: Vec<(Text, Vec<usize>)>,
    more: usize,
}

/// How many columns and rows the table has.
const MOST_LEVELS: usize = 10;
const MOST_TYPES: usize = 40;

impl Table {
    fn new(page: &Page) -> Self {
        let edges: Vec<(usize, usize)> = page
            .instances
            .iter()
            .enumerate()
            .flat_map(|(to, instance)| instance.needs.iter().map(move |need| (need.instance, to)))
            .collect();
        let levels = levels(&Edges { nodes: page.instances.len(), edges: &edges });
        let columns = levels.iter().max().map_or(0, |last| last + 1).min(MOST_LEVELS);
        let mut types: BTreeMap<&Text, Vec<usize>> = BTreeMap::new();
        for (instance, level) in page.instances.iter().zip(&levels) {
            let counts = types.entry(&instance.type_name).or_insert_with(|| vec![0; columns]);
            if let Some(count) = counts.get_mut((*level).min(columns - 1)) {
                *count += 1;
            }
        }
        let name = |level: usize| {
            let is_last = level + 1 == MOST_LEVELS;
            if is_last { format!("{level} and more") } else { level.to_string() }
        };
        let mut rows: Vec<(Text, Vec<usize>)> =
            types.into_iter().map(|(type_name, counts)| (type_name.clone(), counts)).collect();
        rows.sort_by_key(|(_, counts)| std::cmp::Reverse(counts.iter().sum::<usize>()));
        let more = rows.len().saturating_sub(MOST_TYPES);
        rows.truncate(MOST_TYPES);
        Self { levels: (0..columns).map(name).collect(), rows, more }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The colours of each scheme by their names.
    fn schemes() -> Vec<BTreeMap<&'static str, f64>> {
        let colour = |declaration: &'static str| {
            let (name, value) = declaration.split_once(':')?;
            let digits = value.strip_prefix('#')?;
            let digits = if digits.len() == 3 {
                digits.chars().flat_map(|digit| [digit, digit]).collect()
            } else {
                digits.to_owned()
            };
            let part = |from: usize| f64::from(u8::from_str_radix(&digits[from..from + 2], 16).unwrap()) / 255.0;
            let linear = |part: f64| if part <= 0.040_45 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) };
            let luminance = 0.2126 * linear(part(0)) + 0.7152 * linear(part(2)) + 0.0722 * linear(part(4));
            Some((name.strip_prefix("--")?, luminance))
        };
        let blocks = crate::drawing::COLOURS.split(":root{").skip(1).filter_map(|block| block.split_once('}'));
        blocks.map(|(block, _)| block.split(';').filter_map(colour).collect()).collect()
    }

    fn failed(at: u64) -> Instance {
        let call = crate::Call {
            operation: "set",
            changes: true,
            began: std::time::Duration::from_millis(at),
            elapsed: std::time::Duration::from_millis(1),
        };
        Instance {
            name: Text::from(format!("<{at}>").as_str()),
            type_name: Text::from("Stead/Command"),
            path: None,
            outcome: if at.is_multiple_of(2) { Outcome::Failed } else { Outcome::Changed },
            word: "failed",
            message: vec![Text::from("<".repeat(2_000).as_str())],
            lines: Vec::new(),
            snippet: Vec::new(),
            place: None,
            code: None,
            needs: Vec::new(),
            within: None,
            held_by: None,
            is_container: false,
            attempts: vec![crate::Attempt { waited: std::time::Duration::ZERO, calls: vec![call] }],
        }
    }

    #[test]
    fn a_page_has_two_megabytes_at_most_however_much_it_is_about() {
        let long = Text::from("<".repeat(5_000).as_str());
        let parameter = crate::Parameter { name: Text::from("p"), value: Some(long.clone()), is_supplied: true };
        let page = Page {
            act: Act::Apply,
            ending: Ending::Finished,
            document: Text::from("d.yaml"),
            began: None,
            elapsed: std::time::Duration::from_secs(20),
            instances: (0..20_000).map(failed).collect(),
            knows_needs: true,
            facts: Vec::new(),
            parameters: vec![parameter; 2_000],
            notes: vec![long; 2_000],
            command: Text::from("stead history show last"),
        };
        let file = html(&page);
        assert!(file.starts_with(BEGIN));
        assert!(file.len() <= 2_000_000, "{}", file.len());
        assert_eq!(file.matches(" more parameters").count(), 1);
        assert_eq!(file.matches(" more notes").count(), 1);
    }

    #[test]
    fn every_text_and_every_shape_stands_out() {
        let (text, shape) = (4.5, 3.0);
        let pairs = [
            ("ink", "bg", text),
            ("ink", "well", text),
            ("ink", "hover", text),
            ("ink", "accent-soft", text),
            ("ink", "bad-soft", text),
            ("ink", "warn-soft", text),
            ("ink", "work-soft", text),
            ("ink", "good-soft", text),
            ("ink2", "bg", text),
            ("ink2", "well", text),
            ("ink2", "hover", text),
            ("accent", "bg", text),
            ("accent", "hover", text),
            ("bad", "bg", text),
            ("warn", "bg", text),
            ("work", "bg", text),
            ("bad", "hover", text),
            ("warn", "hover", text),
            ("work", "hover", text),
            ("bad", "bad-soft", shape),
            ("warn", "warn-soft", shape),
            ("work", "work-soft", shape),
            ("edge", "bg", shape),
            ("edge", "well", shape),
        ];
        let schemes = schemes();
        assert_eq!(schemes.len(), 3, "light, dark, print");
        for scheme in &schemes {
            for (front, back, least) in pairs {
                let (one, other) = (scheme[front], scheme[back]);
                let contrast = (one.max(other) + 0.05) / (one.min(other) + 0.05);
                assert!(contrast >= least, "{front} on {back}: {contrast:.2}");
            }
        }
    }

    #[test]
    fn nothing_in_the_sheet_loads_anything() {
        assert!(!SHEET.contains("url(") && !SHEET.contains("@import") && !SHEET.contains('<'));
    }
}
