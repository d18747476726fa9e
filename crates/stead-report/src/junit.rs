//! Results of tests in the form that pipelines read.

use std::time::Duration;

use askama::Template;

use crate::page::Text;

/// Tests that belong together.
#[derive(Clone, Debug)]
pub struct Suite {
    /// Its name.
    pub name: Text,
    /// Its tests.
    pub cases: Vec<Case>,
}

/// One test.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its name.
    pub name: Text,
    /// How long it took.
    pub elapsed: Duration,
    /// Why it failed, in lines each; empty where it did not.
    pub failures: Vec<Vec<Text>>,
    /// The parts of it that were not run.
    pub not_run: Vec<Text>,
    /// True if nothing of it was run.
    pub is_skipped: bool,
}

#[derive(Template)]
#[template(path = "junit.xml")]
struct File<'a> {
    suites: &'a [Suite],
}

impl Suite {
    fn failed(&self) -> usize {
        self.cases.iter().filter(|case| !case.failures.is_empty()).count()
    }

    fn skipped(&self) -> usize {
        self.cases.iter().filter(|case| case.is_skipped).count()
    }

    fn seconds(&self) -> String {
        seconds(self.cases.iter().map(|case| case.elapsed).sum())
    }
}

impl Case {
    fn seconds(&self) -> String {
        seconds(self.elapsed)
    }
}

fn seconds(elapsed: Duration) -> String {
    format!("{:.3}", elapsed.as_secs_f64())
}

/// The file of `JUnit` that has these suites.
///
/// Guarantees: it is well-formed, whatever the texts are.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use stead_report::{Case, Suite, Text, junit};
///
/// let failures = vec![vec![Text::from("a < b \u{1b}")]];
/// let case = Case { name: Text::from("first"), elapsed: Duration::ZERO, failures, not_run: Vec::new(), is_skipped: false };
/// let file = junit(&[Suite { name: Text::from("web.test.yaml"), cases: vec![case] }]);
/// assert!(file.contains("a &#60; b \\u{1b}"));
/// ```
pub fn junit(suites: &[Suite]) -> String {
    // Writing to a text cannot fail.
    File { suites }.render().unwrap_or_default() + "\n"
}
