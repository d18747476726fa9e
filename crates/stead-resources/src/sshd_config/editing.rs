//! Editing such a file: only the lines of what is stated change.

use stead_core::call::Failure;

use super::keyword::{accumulates, known_as};
use super::reading::{Files, Origin, Section, Setting, criteria, outline, split};
use super::stated::{Wanted, units};
use crate::input::impossible;
use crate::part::lines::ending;

/// A line that keeps a keyword from having the value that is stated.
pub(super) struct Elsewhere {
    pub(super) path: String,
    /// From 1.
    pub(super) line: usize,
    pub(super) rest: String,
    /// True if it is in another block than the stated one, whose criteria include those of the stated one.
    is_broader: bool,
}

impl Elsewhere {
    /// The failure that a keyword would not have its value while that is there.
    pub(super) fn failure(&self, keyword: &str, own: &str) -> Failure {
        let Self { path, line, rest, is_broader } = self;
        let hint = if path != own {
            "Remove that line, or manage that file with 'path'"
        } else if *is_broader {
            "Remove that line, or move the block that is stated in front of the block with that line"
        } else {
            "Remove that line, or state the keyword in 'match' with the criteria {\"all\": true}"
        };
        let message = format!("'{path}' sets '{keyword}' to '{rest}' in line {line}, and sshd uses that line. {hint}");
        impossible(keyword, message)
    }
}

impl Wanted<'_> {
    fn is_of(&self, setting: &Setting) -> bool {
        setting.keyword == self.keyword && setting.section == self.section
    }

    /// The lines that are in force. What a 'Match all' sets counts in place of what stands in front of every 'Match', and the first
    /// block of those that a connection meets.
    pub(super) fn in_force<'s>(&self, settings: &'s [Setting]) -> Vec<&'s Setting> {
        let of_all = |setting: &&Setting| {
            setting.keyword == self.keyword && setting.section.len() == 1 && setting.section.contains("all")
        };
        if self.section.is_empty()
            && !accumulates(&self.keyword)
            && let Some(setting) = settings.iter().find(of_all)
        {
            return vec![setting];
        }
        let count = if accumulates(&self.keyword) { usize::MAX } else { 1 };
        let is_met =
            |setting: &&Setting| setting.keyword == self.keyword && is_broader(&setting.section, &self.section);
        if count == 1 && !self.section.is_empty() {
            return settings.iter().find(is_met).into_iter().collect();
        }
        settings.iter().filter(|setting| self.is_of(setting)).take(count).collect()
    }

    /// Returns whether it is as it is stated.
    pub(super) fn holds(&self, settings: &[Setting]) -> bool {
        let sorted = |mut all: Vec<String>| {
            all.sort();
            all.dedup();
            all
        };
        let found = self.in_force(settings);
        let found = found.iter().flat_map(|setting| units(&setting.keyword, &setting.rest)).collect();
        sorted(found) == sorted(self.meant())
    }

    /// The line of another file, or of a broader block of this one, that says otherwise.
    pub(super) fn elsewhere(&self, settings: &[Setting], own: &str) -> Option<Elsewhere> {
        let wanted = self.meant();
        self.in_force(settings).into_iter().find_map(|setting| {
            let (path, line) = match &setting.from {
                Origin::Own(_) if self.is_of(setting) => return None,
                Origin::Own(line) => (own, line),
                Origin::Other { path, line, .. } => (path.as_str(), line),
            };
            let is_other = units(&setting.keyword, &setting.rest).iter().any(|unit| !wanted.contains(unit));
            let is_broader = !self.section.is_empty() && setting.section != self.section;
            is_other.then(|| Elsewhere {
                path: path.to_owned(),
                line: line + 1,
                rest: setting.rest.clone(),
                is_broader,
            })
        })
    }
}

/// Returns whether what meets the criteria of a block meets those of another one, which may be the same.
fn is_broader(other: &Section, section: &Section) -> bool {
    !other.is_empty() && other.iter().all(|criterion| criterion == "all" || section.contains(criterion))
}

/// A text that is being edited.
pub(super) struct Edited<'f> {
    files: &'f Files,
    /// The lines, with their endings.
    lines: Vec<String>,
    ending: &'static str,
}

impl<'f> Edited<'f> {
    pub(super) fn new(files: &'f Files, text: &str) -> Self {
        let lines = text.split_inclusive('\n').map(str::to_owned).collect();
        Self { files, lines, ending: ending(text) }
    }

    pub(super) fn text(&self) -> String {
        self.lines.concat()
    }

    /// Removes lines by their numbers.
    pub(super) fn remove(&mut self, numbers: &[usize]) {
        let mut at = 0;
        self.lines.retain(|_| {
            at += 1;
            !numbers.contains(&(at - 1))
        });
    }

    fn insert(&mut self, at: usize, new: &[String]) {
        if let Some(former) = at.checked_sub(1).and_then(|at| self.lines.get_mut(at))
            && !former.ends_with('\n')
        {
            former.push_str(self.ending);
        }
        let new = new.iter().map(|line| format!("{line}{}", self.ending));
        self.lines.splice(at..at, new);
    }

    /// Has a keyword be as it is stated, as far as this file decides that.
    pub(super) fn put(&mut self, wanted: &Wanted<'_>) -> Result<(), Failure> {
        let text = self.text();
        let settings = self.files.settings(&text)?;
        if wanted.holds(&settings) {
            return Ok(());
        }
        let of = || settings.iter().filter(|setting| wanted.is_of(setting));
        let own: Vec<usize> = of().filter_map(Setting::own).collect();
        let others: Vec<String> =
            of().filter(|it| it.own().is_none()).flat_map(|it| units(&it.keyword, &it.rest)).collect();
        let is_needed = |rest: &&String| {
            !accumulates(&wanted.keyword) || units(&wanted.keyword, rest).iter().any(|unit| !others.contains(unit))
        };
        let new = wanted.written(wanted.lines.iter().filter(is_needed));
        let front = if accumulates(&wanted.keyword) || !wanted.section.is_empty() { None } else { of().next() };
        // The first line counts: it comes in front of the one by which another file with a line is read.
        let front = front.and_then(|first| match first.from {
            Origin::Other { included_at, .. } => included_at,
            Origin::Own(_) => None,
        });
        let at = front.or(own.first().copied()).unwrap_or_else(|| self.place(wanted));
        let indent = match (front, own.first().and_then(|at| self.lines.get(*at))) {
            (None, Some(former)) => indent(former),
            _ if wanted.section.is_empty() => String::new(),
            _ => self.indent_at(at),
        };
        let new: Vec<String> = new.into_iter().map(|line| indent.clone() + &line).collect();
        let removed_before = own.iter().filter(|line| **line < at).count();
        self.remove(&own);
        self.insert(at - removed_before, &new);
        Ok(())
    }

    /// Where a new line goes: behind the comment with the keyword's default, or else behind all lines of its section.
    fn place(&self, wanted: &Wanted<'_>) -> usize {
        let text = self.text();
        let all = outline(&text);
        if !wanted.section.is_empty() {
            let mut of_block = all.iter().skip_while(|line| line.section != wanted.section);
            let first = of_block.next().map_or(self.lines.len(), |line| line.at + 1);
            let rest = of_block.take_while(|line| line.section == wanted.section && line.keyword != "match");
            return rest.last().map_or(first, |line| line.at + 1);
        }
        let end = all.iter().find(|line| line.keyword == "match").map(|line| line.at);
        let is_default = |line: &String| {
            let comment = line.trim_start().strip_prefix('#').filter(|comment| !comment.starts_with([' ', '\t']));
            comment.and_then(split).is_some_and(|(keyword, _)| known_as(keyword) == wanted.keyword)
        };
        let global = self.lines.iter().take(end.unwrap_or(self.lines.len()));
        let default = global.enumerate().rfind(|(_, line)| is_default(line)).map(|(at, _)| at + 1);
        let last = all.iter().take_while(|line| line.keyword != "match").last().map(|line| line.at + 1);
        default.or(last).or(end).unwrap_or(self.lines.len())
    }

    /// The blanks in front of a new line of a block: those of the line in front of it, unless that begins the block.
    fn indent_at(&self, at: usize) -> String {
        let former = at.checked_sub(1).and_then(|at| self.lines.get(at));
        let is_first = former.and_then(|line| split(line)).is_none_or(|(keyword, _)| known_as(keyword) == "match");
        former.filter(|_| !is_first).map_or_else(|| "    ".to_owned(), |line| indent(line))
    }

    /// Has the file a block for what is stated in it: if it has none, at its end, or in front of a block that would count in its place.
    pub(super) fn put_block(&mut self, line: &str, stated: &[Wanted<'_>]) {
        let (text, section) = (self.text(), criteria(line));
        let all = outline(&text);
        if all.iter().any(|line| line.keyword == "match" && line.section == section) {
            return;
        }
        let is_stated = |keyword: &str| !accumulates(keyword) && stated.iter().any(|it| it.keyword == keyword);
        let broader = all.iter().position(|line| is_stated(&line.keyword) && is_broader(&line.section, &section));
        let front = broader.and_then(|at| all.get(..at)?.iter().rfind(|line| line.keyword == "match"));
        if let Some(front) = front {
            return self.insert(front.at, &[format!("Match {line}"), String::new()]);
        }
        let gap = if text.is_empty() { None } else { Some(String::new()) };
        let new: Vec<String> = gap.into_iter().chain([format!("Match {line}")]).collect();
        self.insert(self.lines.len(), &new);
    }
}

impl Setting {
    fn own(&self) -> Option<usize> {
        match self.from {
            Origin::Own(at) => Some(at),
            Origin::Other { .. } => None,
        }
    }
}

fn indent(line: &str) -> String {
    line.chars().take_while(|sign| matches!(sign, ' ' | '\t')).collect()
}
