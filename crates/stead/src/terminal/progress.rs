//! The bar that shows how far a run is.

use std::collections::BTreeMap;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar on standard error; it appears with the first step.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// A bar that fits the terminal.
    pub(crate) fn begin() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        Self(bar.with_style(style()))
    }

    /// Shows that one of so many steps is done, and what it was.
    pub(crate) fn step(&self, total: usize, name: String) {
        self.0.set_length(total as u64);
        self.0.set_message(name);
        self.0.inc(1);
    }

    /// Shows a line beside the bar.
    pub(crate) fn say(&self, line: String) {
        self.0.set_message(line);
    }

    /// Prints something above the bar.
    pub(crate) fn beside(&self, print: impl FnOnce()) {
        self.0.suspend(print);
    }

    /// Takes the bar off the screen.
    pub(crate) fn clear(&self) {
        self.0.finish_and_clear();
    }
}

/// A line that does not fit is broken by the terminal, and would not be erased.
fn style() -> ProgressStyle {
    let is_narrow = super::width(&std::io::stderr()).is_some_and(|columns| columns < 60);
    of_template(if is_narrow { "{pos}/{len} {wide_msg}" } else { "{bar:30} {pos}/{len} {wide_msg}" })
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
        let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        let bar = all.add(ProgressBar::new(total as u64).with_style(style()));
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
