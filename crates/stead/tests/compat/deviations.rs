//! The lists that say what is expected: intended deviations, and how much must agree.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::Path;

use crate::case::Case;

/// The cases in which stead means to differ.
#[derive(Default)]
pub(crate) struct Deviations(Vec<Entry>);

struct Entry {
    suite: String,
    name: String,
    /// `None` for every number.
    number: Option<u64>,
}

impl Deviations {
    /// Reads the entries of a Markdown file: its lines of the form ``- `suite` name (number)``, the number or `*`.
    pub(crate) fn read(file: &Path) -> Result<Self, Box<dyn Error>> {
        let text = fs::read_to_string(file)?;
        let mut entries = Vec::new();
        for line in text.lines().filter(|line| line.starts_with("- `")) {
            entries.push(entry(line).ok_or_else(|| format!("{}: cannot read: {line}", file.display()))?);
        }
        Ok(Self(entries))
    }

    /// Returns whether the case is listed.
    pub(crate) fn lists(&self, case: &Case) -> bool {
        self.0.iter().any(|entry| entry.covers(case))
    }

    /// The entries that no case has to do with: mistyped, or of a case that is no longer there.
    pub(crate) fn idle<'a>(&'a self, cases: &'a [Case]) -> impl Iterator<Item = String> + 'a {
        let idle = self.0.iter().filter(|entry| !cases.iter().any(|case| entry.covers(case)));
        idle.map(|entry| format!("{}: {}", entry.suite, entry.name))
    }
}

impl Entry {
    fn covers(&self, case: &Case) -> bool {
        self.suite == case.suite && self.name == case.name && self.number.is_none_or(|number| number == case.number)
    }
}

fn entry(line: &str) -> Option<Entry> {
    let (suite, rest) = line.strip_prefix("- `")?.split_once("` ")?;
    let (name, number) = rest.trim_end().strip_suffix(')')?.rsplit_once(" (")?;
    let number = if number == "*" { None } else { Some(number.parse().ok()?) };
    // What would be a tag of HTML is escaped.
    Some(Entry { suite: suite.to_owned(), name: name.replace('\\', ""), number })
}

/// Of a hundred cases.
#[derive(Clone, Copy, Default)]
pub(crate) struct Share {
    /// How many agree, be it when results of failed runs are not printed.
    pub(crate) agree: usize,
    /// How many agree or differ as listed.
    pub(crate) good: usize,
}

/// Reads how much of each suite is required; `total` stands for all together.
pub(crate) fn required(file: &Path) -> Result<BTreeMap<String, Share>, Box<dyn Error>> {
    let text = fs::read_to_string(file)?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let [suite, agree, good] = *line.split_whitespace().collect::<Vec<_>>() else {
                return Err(format!("not a suite and two percentages: {line}").into());
            };
            Ok((suite.to_owned(), Share { agree: agree.parse()?, good: good.parse()? }))
        })
        .collect()
}
