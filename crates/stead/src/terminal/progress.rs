//! The bar that shows how far a run is.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar on standard error; it appears with the first step.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// A bar that fits the terminal.
    pub(crate) fn begin() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        // A line that does not fit is broken by the terminal, and would not be erased.
        let is_narrow = super::width(&std::io::stderr()).is_some_and(|columns| columns < 60);
        let template = if is_narrow { "{pos}/{len} {wide_msg}" } else { "{bar:30} {pos}/{len} {wide_msg}" };
        Self(bar.with_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())))
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
