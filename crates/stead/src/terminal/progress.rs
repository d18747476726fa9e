//! The bar that shows how far a run is, with a line for each of those that run.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

/// How many of those that run have a line.
const LINES: usize = 4;

/// The instances under way, in the order in which they began.
type Running = Arc<Mutex<Vec<(usize, String, Instant)>>>;

/// A bar on standard error; it appears with the first step.
pub(crate) struct Progress {
    bar: ProgressBar,
    running: Running,
}

impl Progress {
    /// A bar that fits the terminal.
    pub(crate) fn begin() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let running = Running::default();
        // A line that does not fit is broken by the terminal, and would not be erased.
        let columns = super::width(&std::io::stderr()).unwrap_or(60);
        let style = of_template(&format!("{} {{elapsed}} {{wide_msg}}{{running}}", head(columns)));
        let shown = Arc::clone(&running);
        let style = style.with_key("running", move |_: &ProgressState, to: &mut dyn std::fmt::Write| {
            // A screen that cannot be written to shows nothing.
            let _ = to.write_str(&lines(&shown, Instant::now(), columns));
        });
        Self { bar: bar.with_style(style), running }
    }

    /// Shows that one of so many begins, under a number of its own.
    pub(crate) fn starts(&self, total: usize, number: usize, name: String) {
        // The bar is asked before the list is locked: who draws the bar holds it while they read the list.
        let ticks = self.bar.length().is_some();
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if !running.iter().any(|(other, ..)| *other == number) {
            running.push((number, name, Instant::now()));
        }
        drop(running);
        self.bar.set_length(total as u64);
        // Each call would end the thread of the one before.
        if !ticks {
            self.bar.enable_steady_tick(Duration::from_millis(250));
        }
    }

    /// Shows that it has ended.
    pub(crate) fn ends(&self, number: usize) {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).retain(|(other, ..)| *other != number);
    }

    /// Shows that one of so many steps is done, and what it was.
    pub(crate) fn step(&self, total: usize, name: String) {
        self.bar.set_length(total as u64);
        self.bar.set_message(name);
        self.bar.inc(1);
    }

    /// Shows a line beside the bar.
    pub(crate) fn say(&self, line: String) {
        self.bar.set_message(line);
    }

    /// Prints something above the bar.
    pub(crate) fn beside(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }

    /// Takes the bar off the screen.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// A line for each that has run for a second, those that began first, and how many more there are.
fn lines(running: &Running, now: Instant, columns: usize) -> String {
    let running = running.lock().unwrap_or_else(PoisonError::into_inner);
    let took = |began: &Instant| now.saturating_duration_since(*began).as_secs();
    let long: Vec<_> = running.iter().filter(|(_, _, began)| took(began) > 0).collect();
    let mut text = String::new();
    for (_, name, began) in long.iter().take(LINES) {
        let line = format!("  {:>4} s  {name}", took(began));
        // Writing to a string cannot fail.
        let _ = write!(text, "\n{}", line.chars().take(columns.saturating_sub(1)).collect::<String>());
    }
    if let Some(more) = long.len().checked_sub(LINES).filter(|more| *more > 0) {
        let _ = write!(text, "\n          and {more} more");
    }
    text
}

/// The beginning of a bar that fits so many columns.
fn head(columns: usize) -> &'static str {
    if columns < 60 { "{pos}/{len}" } else { "{bar:30} {pos}/{len}" }
}

fn of_template(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// A bar for several things, and below it a line for each that is under way; as many as the terminal has room for.
pub(crate) struct Lines {
    all: MultiProgress,
    bar: ProgressBar,
    under_way: BTreeMap<usize, ProgressBar>,
}

impl Lines {
    /// For so many things, of which nothing is done.
    pub(crate) fn begin(total: usize) -> Self {
        let columns = super::width(&std::io::stderr()).unwrap_or(60);
        let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        let bar =
            all.add(ProgressBar::new(total as u64).with_style(of_template(&format!("{} {{wide_msg}}", head(columns)))));
        Self { all, bar, under_way: BTreeMap::new() }
    }

    /// Shows the line of one thing.
    pub(crate) fn show(&mut self, at: usize, line: String) {
        let added = || self.all.add(ProgressBar::new_spinner().with_style(of_template("  {wide_msg}")));
        self.under_way.entry(at).or_insert_with(added).set_message(line);
    }

    /// Takes its line off the screen, and counts it.
    pub(crate) fn end(&mut self, at: usize) {
        if let Some(line) = self.under_way.remove(&at) {
            line.finish_and_clear();
            self.all.remove(&line);
        }
        self.bar.inc(1);
    }
}

impl Drop for Lines {
    /// Takes everything off the screen.
    fn drop(&mut self) {
        self.under_way.values().for_each(ProgressBar::finish_and_clear);
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use stead_testkit::until;

    use super::*;

    #[test]
    fn who_waits_for_the_bar_does_not_hold_the_list() {
        let progress = Progress::begin();
        let (says, hears) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            // Nobody else has the bar while this runs, as when it is drawn.
            progress.beside(|| {
                scope.spawn(|| {
                    says.send(std::fs::read_link("/proc/thread-self").unwrap()).unwrap();
                    progress.starts(1, 0, "a".to_owned());
                });
                let stat = std::path::Path::new("/proc").join(hears.recv().unwrap()).join("stat");
                until(|| std::fs::read_to_string(&stat).unwrap().contains(") S ").then_some(()));
                assert!(progress.running.try_lock().is_ok());
            });
        });
    }

    #[test]
    fn those_that_began_first_have_a_line_each() {
        let (running, began) = (Running::default(), Instant::now());
        let later = |seconds| began + Duration::from_secs(seconds);
        for number in 0..6 {
            running.lock().unwrap().push((number, format!("n{number}"), later(number as u64)));
        }
        assert_eq!(lines(&running, began, 80), "");
        assert_eq!(lines(&running, later(2), 80), "\n     2 s  n0\n     1 s  n1");
        assert!(lines(&running, later(60), 80).ends_with("n3\n          and 2 more"));
        assert_eq!(lines(&running, later(1), 10), "\n     1 s ");
    }
}
