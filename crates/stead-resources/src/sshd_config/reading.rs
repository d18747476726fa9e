//! Lines of `sshd_config(5)`, as sshd reads them.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;

use stead_core::call::Failure;
use stead_system::fs::{FileKind, SystemRoot};

use super::keyword::{Form, form, known_as};
use crate::edit::glob;
use crate::part::lines::lines;

/// The file that sshd begins with.
pub(super) const MAIN: &str = "/etc/ssh/sshd_config";

/// More than such files have, with all their comments.
const MAX_SIZE: u64 = 16 << 20;

/// More files than anybody includes. Where files include each other sshd gives up.
const MAX_FILES: usize = 1000;

/// The criteria of connections for which lines count; empty for lines that always count.
pub(super) type Section = BTreeSet<String>;

/// A line with a keyword.
pub(super) struct Line<'t> {
    /// Its number, from 0.
    pub(super) at: usize,
    /// Where it counts; of a `Match` where the lines behind it do.
    pub(super) section: Section,
    /// The keyword as [`known_as`] has it.
    pub(super) keyword: String,
    /// The keyword as it is written.
    pub(super) written: &'t str,
    /// The rest of the line behind the keyword.
    pub(super) rest: &'t str,
}

const BLANKS: [char; 3] = [' ', '\t', '\r'];

/// The keyword of a line and what is behind it; `None` for an empty line and a comment.
pub(super) fn split(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start_matches(BLANKS).trim_end_matches([' ', '\t', '\r', '\u{c}']);
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    if let Some((keyword, rest)) = line.strip_prefix('"').and_then(|quoted| quoted.split_once('"')) {
        return Some((keyword, rest.trim_start_matches(BLANKS)));
    }
    let (keyword, rest) = line.split_at(line.find([' ', '\t', '\r', '=']).unwrap_or(line.len()));
    let rest = rest.trim_start_matches(BLANKS);
    Some((keyword, rest.strip_prefix('=').unwrap_or(rest).trim_start_matches(BLANKS)))
}

/// The lines of a text that have a keyword.
pub(super) fn outline(text: &str) -> Vec<Line<'_>> {
    let mut section = Section::new();
    let with_keyword = lines(text).into_iter().enumerate().filter_map(|(at, line)| Some((at, split(line.text)?)));
    let outlined = with_keyword.map(|(at, (written, rest))| {
        let keyword = known_as(written);
        if keyword == "match" {
            section = criteria(rest);
        }
        Line { at, section: section.clone(), keyword, written, rest }
    });
    outlined.collect()
}

/// The criteria of a `Match`.
pub(super) fn criteria(rest: &str) -> Section {
    let mut words = criteria_words(rest).into_iter();
    let mut section = Section::new();
    while let Some(word) = words.next() {
        let name = word.to_ascii_lowercase();
        let is_alone = matches!(name.as_str(), "all" | "invalid-user");
        let value = if is_alone { None } else { words.next() };
        section.insert(value.map_or(name.clone(), |value| format!("{name} {value}")));
    }
    section
}

/// The words of a `Match`, between which are blanks or one '='. A backslash is a letter there, in quotes as well.
fn criteria_words(rest: &str) -> Vec<&str> {
    let (mut words, mut left) = (Vec::new(), rest.trim_start_matches(BLANKS));
    while !left.is_empty() && !left.starts_with('#') {
        let (word, behind) = match left.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => left.split_at(left.find([' ', '\t', '\r', '=', '"']).unwrap_or(left.len())),
        };
        words.push(word);
        let behind = behind.trim_start_matches(BLANKS);
        left = behind.strip_prefix('=').unwrap_or(behind).trim_start_matches(BLANKS);
    }
    words
}

/// The arguments that sshd finds in what is behind a keyword; `None` where a quote is left open.
pub(super) fn arguments(rest: &str) -> Option<Vec<String>> {
    let mut all = Vec::new();
    let mut signs = rest.chars().peekable();
    loop {
        while signs.next_if(|sign| matches!(sign, ' ' | '\t' | '\r')).is_some() {}
        match signs.peek() {
            None | Some('#') => return Some(all),
            Some(_) => {}
        }
        let (mut argument, mut quote) = (String::new(), None);
        while let Some(sign) = signs.next_if(|sign| quote.is_some() || !matches!(sign, ' ' | '\t' | '\r')) {
            match (sign, quote) {
                ('\\', _) => {
                    let is_escaped = |next: &char| matches!(next, '\'' | '"' | '\\') || *next == ' ' && quote.is_none();
                    argument.push(signs.next_if(is_escaped).unwrap_or('\\'));
                }
                ('"' | '\'', None) => quote = Some(sign),
                (_, Some(open)) if open == sign => quote = None,
                _ => argument.push(sign),
            }
        }
        if quote.is_some() {
            return None;
        }
        all.push(argument);
    }
}

/// The arguments of a line, in a form in which lines that mean the same are equal.
pub(super) fn meant(keyword: &str, rest: &str) -> Vec<String> {
    let as_it_is = || vec![rest.trim_matches(BLANKS).to_owned()];
    if form(keyword) == Form::Rest { as_it_is() } else { arguments(rest).unwrap_or_else(as_it_is) }
}

/// A line of all that sshd reads, in the order in which it does.
pub(super) struct Setting {
    pub(super) section: Section,
    pub(super) keyword: String,
    pub(super) rest: String,
    pub(super) from: Origin,
}

/// Where a line is.
pub(super) enum Origin {
    /// In the file of the instance, by its number from 0.
    Own(usize),
    /// In another file.
    Other {
        path: String,
        /// Its number from 0.
        line: usize,
        /// The line of the file of the instance, from 0, by which the other one is read.
        included_at: Option<usize>,
    },
}

/// The files that are read with that of an instance.
#[derive(Clone)]
pub(super) struct Files {
    /// The system that has them; `None` where nothing else is read.
    pub(super) system: Option<SystemRoot>,
    /// The file of the instance, as it is stated.
    pub(super) own: String,
    /// The other files, once they were read: an instance reads each once.
    texts: RefCell<BTreeMap<String, Rc<str>>>,
}

/// One pass over the files.
struct Pass<'f> {
    files: &'f Files,
    /// The text of the file of the instance.
    text: &'f str,
    settings: Vec<Setting>,
    included_at: Option<usize>,
    has_own: bool,
    /// The files that are being read, the innermost one last.
    open: Vec<String>,
    read: usize,
}

impl Files {
    pub(super) fn new(system: Option<SystemRoot>, own: &str) -> Self {
        Self { system, own: own.to_owned(), texts: RefCell::default() }
    }

    /// The text of a file; empty where there is none, or a directory. sshd waits for a FIFO.
    fn text(&self, path: &str) -> Result<Rc<str>, Failure> {
        if let Some(known) = self.texts.borrow().get(path) {
            return Ok(Rc::clone(known));
        }
        let is_empty = |system: &SystemRoot| {
            system.status(path).is_some_and(|status| status.kind == FileKind::Directory)
                || system.at(path).link_target().is_some_and(|target| target == Path::new("/dev/null"))
        };
        let content = match self.system.as_ref().filter(|system| !is_empty(system)) {
            Some(system) => system.read(path, MAX_SIZE)?,
            None => None,
        };
        let text: Rc<str> = content.map_or_else(Rc::default, |it| String::from_utf8_lossy(&it.bytes).into());
        self.texts.borrow_mut().insert(path.to_owned(), Rc::clone(&text));
        Ok(text)
    }

    /// All that sshd reads, with this text in the file of the instance. What sshd does not include is looked at alone.
    pub(super) fn settings(&self, text: &str) -> Result<Vec<Setting>, Failure> {
        let pass = || Pass {
            files: self,
            text,
            settings: Vec::new(),
            included_at: None,
            has_own: false,
            open: Vec::new(),
            read: 0,
        };
        if self.own != MAIN {
            let mut from_main = pass();
            from_main.file(MAIN, &Section::new())?;
            if from_main.has_own {
                return Ok(from_main.settings);
            }
        }
        let mut alone = pass();
        alone.file(&self.own, &Section::new())?;
        Ok(alone.settings)
    }
}

impl Pass<'_> {
    fn file(&mut self, path: &str, outer: &Section) -> Result<(), Failure> {
        if self.read == MAX_FILES || self.open.iter().any(|open| open == path) {
            return Ok(());
        }
        self.read += 1;
        self.open.push(path.to_owned());
        let is_own = path == self.files.own;
        self.has_own |= is_own;
        let text = if is_own { self.text.into() } else { self.files.text(path)? };
        for line in outline(&text).into_iter().filter(|line| line.keyword != "match") {
            let section: Section = outer.union(&line.section).cloned().collect();
            let patterns = (line.keyword == "include").then(|| meant(&line.keyword, line.rest));
            let other = || Origin::Other { path: path.to_owned(), line: line.at, included_at: self.included_at };
            self.settings.push(Setting {
                section: section.clone(),
                rest: line.rest.to_owned(),
                from: if is_own { Origin::Own(line.at) } else { other() },
                keyword: line.keyword,
            });
            let included = patterns.into_iter().flatten().flat_map(|pattern| self.files.matching(&pattern));
            for included in included.collect::<Vec<_>>() {
                let outermost = self.included_at;
                self.included_at = outermost.or(is_own.then_some(line.at));
                self.file(&included, &section)?;
                self.included_at = outermost;
            }
        }
        self.open.pop();
        Ok(())
    }
}

impl Files {
    /// The files of a pattern, in the order of their names.
    fn matching(&self, pattern: &str) -> Vec<String> {
        let pattern = if pattern.starts_with('/') { pattern.to_owned() } else { format!("/etc/ssh/{pattern}") };
        let mut found = vec![String::new()];
        for part in pattern.split('/').filter(|part| !part.is_empty()) {
            found = found.iter().flat_map(|folder| self.named(folder, part)).collect();
        }
        found
    }

    /// The paths in a folder that match one part of a pattern.
    fn named(&self, folder: &str, part: &str) -> Vec<String> {
        if !part.contains(['*', '?', '[', '\\']) {
            return vec![format!("{folder}/{part}")];
        }
        let Some(matcher) = glob(part) else { return Vec::new() };
        let folder_path = if folder.is_empty() { "/" } else { folder };
        let names = self.system.as_ref().and_then(|system| system.entries(folder_path).ok());
        let names = names.unwrap_or_default().into_keys();
        let mut names: BTreeSet<String> = names.filter_map(|name| name.into_string().ok()).collect();
        // That of the instance is read once it is there.
        let own = self.own.rsplit_once('/').filter(|(own_folder, _)| *own_folder == folder);
        names.extend(own.map(|(_, name)| name.to_owned()));
        let is_meant = |name: &String| matcher.is_match(name) && (part.starts_with('.') || !name.starts_with('.'));
        names.into_iter().filter(is_meant).map(|name| format!("{folder}/{name}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_split_as_sshd_does() {
        let read = |line| split(line).map(|(keyword, rest)| (keyword, arguments(rest)));
        let args = |of: &[&str]| Some(of.iter().map(|&each| each.to_owned()).collect::<Vec<_>>());
        assert_eq!(read(" \"X11Forwarding\"\tyes \u{c}"), Some(("X11Forwarding", args(&["yes"]))));
        assert_eq!(read("IPQoS = af21   cs1"), Some(("IPQoS", args(&["af21", "cs1"]))));
        assert_eq!(read("Port=22"), Some(("Port", args(&["22"]))));
        assert_eq!(read("AllowUsers a\\ b \"c d\" e'f g' # h"), Some(("AllowUsers", args(&["a b", "c d", "ef g"]))));
        assert_eq!(read("Banner \"a"), Some(("Banner", None)));
        assert_eq!(read("\t# Port 22"), None);
    }

    #[test]
    fn criteria_have_no_order() {
        assert_eq!(criteria("user a,b Group=c"), criteria("Group c User \"a,b\" # d"));
        assert_ne!(criteria("User a"), criteria("Group a"));
        assert_eq!(criteria("All"), Section::from(["all".to_owned()]));
    }
}
