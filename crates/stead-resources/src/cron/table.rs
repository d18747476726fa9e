//! A table of cron: lines with jobs, lines that set variables, and comments.

use std::ops::Range;

use crate::part::lines::{Line, inserted, lines, replaced};
use crate::text::{is_blank, variable};

/// A table as it was read.
pub(super) struct Table<'t> {
    text: &'t str,
    jobs: Vec<Job<'t>>,
    /// Whether each variable of the text is one of its only job.
    is_system: bool,
    /// The lines for which cron ignores the table, by their numbers.
    flaws: Vec<(usize, Flaw)>,
}

/// A line with a job.
pub(super) struct Job<'t> {
    /// The name in a comment in front of it.
    pub(super) name: Option<&'t str>,
    pub(super) schedule: &'t str,
    /// In a table with a column of users.
    pub(super) user: Option<&'t str>,
    pub(super) command: &'t str,
    /// From the comment with its name, or else the line itself, to its end.
    range: Range<usize>,
    /// The line itself.
    line: Range<usize>,
}

/// How a comment begins that names the job below it: ours, that of Puppet and that of Ansible.
const MARKS: [&str; 3] = ["# stead: ", "# Puppet Name: ", "#Ansible: "];

impl<'t> Table<'t> {
    /// A table in /etc/cron.d, with a column of users.
    pub(super) fn system(text: &'t str) -> Self {
        Self::read(text, true)
    }

    /// The crontab of a user.
    pub(super) fn user(text: &'t str) -> Self {
        Self::read(text, false)
    }

    fn read(text: &'t str, is_system: bool) -> Self {
        let (mut jobs, mut mark) = (Vec::new(), None);
        for Line { text: line, range } in lines(text) {
            if let Some(name) = named(line).filter(|_| !is_system) {
                mark = Some((name, range.start));
            } else if let Some((schedule, user, command)) = columns(line, is_system) {
                let (name, start) = mark.take().map_or((None, range.start), |(name, start)| (Some(name), start));
                jobs.push(Job { name, schedule, user, command, range: start..range.end, line: range });
            } else if !is_variable(line) {
                // The job that had the name is gone, or is a comment by now: what follows is another one.
                mark = None;
            }
        }
        let flaw = |(at, line): (usize, &str)| Some((at + 1, Flaw::of(line, is_system)?));
        Self { text, jobs, is_system, flaws: text.lines().enumerate().filter_map(flaw).collect() }
    }

    /// The lines for which cron ignores the table, by their numbers.
    pub(super) fn flaws(&self) -> &[(usize, Flaw)] {
        &self.flaws
    }

    pub(super) fn jobs(&self) -> &[Job<'t>] {
        &self.jobs
    }

    /// Where the variables of a job are.
    fn scope(&self, job: &Job<'_>) -> Range<usize> {
        if self.is_system { 0..self.text.len() } else { job.range.clone() }
    }

    /// The variables that are set for a job alone: those behind its name or, in a file of its own, all of them.
    pub(super) fn variables(&self, job: &Job<'_>) -> impl Iterator<Item = (&'t str, &'t str)> {
        self.text.get(self.scope(job)).unwrap_or_default().lines().filter_map(variable)
    }

    /// The text with other lines in place of a job, and of its variables where they are replaced as well.
    pub(super) fn with(&self, job: &Job<'_>, new: &str, replaces_variables: bool) -> String {
        let scope = self.scope(job);
        let goes = |line: &Line<'_>| replaces_variables && scope.contains(&line.range.start) && is_variable(line.text);
        let kept = lines(self.text).into_iter().filter(|line| !goes(line));
        let text =
            |line: Line<'_>| if line.range == job.line { new } else { self.text.get(line.range).unwrap_or_default() };
        kept.map(text).collect()
    }

    /// The text with a job, where it had none.
    pub(super) fn with_only(&self, new: &str, replaces_variables: bool) -> String {
        let kept = lines(self.text).into_iter().filter(|line| !replaces_variables || !is_variable(line.text));
        let kept: String = kept.filter_map(|line| self.text.get(line.range)).collect();
        inserted(&kept, kept.len(), new)
    }

    /// The text with one more job, with its name in front of it.
    pub(super) fn with_new(&self, name: &str, new: &str) -> String {
        let [own, ..] = MARKS;
        inserted(self.text, self.text.len(), &format!("{own}{name}\n{new}"))
    }

    /// The text without a job, its name and its variables.
    pub(super) fn without(&self, job: &Job<'_>) -> String {
        replaced(self.text, &job.range, "")
    }
}

/// The name of the job below, in a comment.
fn named(line: &str) -> Option<&str> {
    MARKS.iter().find_map(|mark| line.trim().strip_prefix(mark)).map(str::trim)
}

/// When, by whom if there is a column for that, and what a line has cron run; `None` of a line without a job.
fn columns(line: &str, has_user: bool) -> Option<(&str, Option<&str>, &str)> {
    let line = line.trim_matches(is_blank);
    if line.is_empty() || line.starts_with('#') || variable(line).is_some() {
        return None;
    }
    let count = if line.starts_with('@') { 1 } else { 5 };
    let mut rest = line;
    for _ in 0..count {
        rest = behind_word(rest)?;
    }
    let schedule = line.get(..line.len() - rest.len())?.trim_end();
    if !has_user {
        return Some((schedule, None, rest));
    }
    let command = behind_word(rest)?;
    Some((schedule, Some(rest.get(..rest.len() - command.len())?.trim_end()), command))
}

/// What is behind the first word; `None` where nothing is.
fn behind_word(text: &str) -> Option<&str> {
    text.split_once(is_blank).map(|(_, rest)| rest.trim_start_matches(is_blank)).filter(|rest| !rest.is_empty())
}

/// An error in a line, for which cron ignores the whole table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Flaw {
    /// It sets a variable and has no value for it.
    Variable,
    /// It is none of what may be on a line.
    NoJob,
}

impl Flaw {
    fn of(line: &str, has_user: bool) -> Option<Self> {
        let text = line.trim_matches(is_blank);
        if text.is_empty() || text.starts_with('#') || variable(line).is_some() || columns(line, has_user).is_some() {
            return None;
        }
        let is_variable = text.split_once('=').is_some_and(|(name, _)| is_name(name.trim_matches(is_blank)));
        Some(if is_variable { Self::Variable } else { Self::NoJob })
    }
}

/// Returns whether a line sets a variable or, without a valid value, is meant to.
fn is_variable(line: &str) -> bool {
    variable(line).is_some() || Flaw::of(line, false) == Some(Flaw::Variable)
}

/// Returns whether a text is a valid name of a variable.
pub(super) fn is_name(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|each| each.is_ascii_alphanumeric() || each == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_found_by_the_names_that_other_tools_give_them() {
        let text = "# Puppet Name: a b\nX=1\n@daily one\n#Ansible: c\n1 2 * * * two  x\n* * * * * three\n";
        let table = Table::user(text);
        let jobs: Vec<_> = table.jobs().iter().map(|job| (job.name, job.schedule, job.command)).collect();
        let expected =
            [(Some("a b"), "@daily", "one"), (Some("c"), "1 2 * * *", "two  x"), (None, "* * * * *", "three")];
        assert_eq!(jobs, expected);
        assert_eq!(table.variables(&table.jobs()[0]).collect::<Vec<_>>(), [("X", "1")]);
        assert_eq!(table.without(&table.jobs()[0]), "#Ansible: c\n1 2 * * * two  x\n* * * * * three\n");
    }

    #[test]
    fn a_name_is_that_of_the_job_right_below() {
        for between in ["\n", "# of another one\n", "#* * * * * disabled\n", "A=1\n#\n", "no job\n"] {
            let text = format!("#Ansible: a\n{between}@daily x\n");
            assert_eq!(Table::user(&text).jobs()[0].name, None, "{between}");
        }
    }
}
