//! `Stead/Ini`: one key of a file with sections.

use std::ops::Range;
use std::sync::Arc;

use stead_core::call::Failure;
use stead_core::value::{Object, Value};
use stead_declare::resource;
use stead_host::provider::Context;

use crate::BuiltIn;
use crate::declared::Declared as _;
use crate::edit::{FileLocks, Missing};
use crate::guard::Guard;
use crate::input::{FilePath, blocked, required_if};
use crate::part::lines::{Line, ending, inserted, lines, replaced};
use crate::part::{Location, Part, Parts, Stated};
use crate::text::{IniKey, IniSection, IniValue, is_blank};

/// One key of a file of lines 'key = value' or 'key: value' in sections '[name]', such as those of systemd, Git or Samba.
/// Comments, order and spacing of the file stay as they are. Where a key is set several times the last one counts, and is
/// changed. A value that goes on in more lines, which are indented deeper than its key, is not changed. What other files say
/// of the same setting, such as those of a folder ending in '.d', is not looked at.
#[resource("Stead/Ini", about = "A key of a section in an INI file.", tags("file", "ini", "text", "linux"), state)]
struct Properties<'a> {
    /// Where the file is. A relative path starts at the directory of the document, or at the system root that was given.
    #[property(identity, place)]
    path: FilePath<'a>,
    /// The name of the section, without brackets. Without it the key is before the first section.
    #[property(identity)]
    section: Option<IniSection<'a>>,
    /// The key.
    #[property(identity)]
    key: IniKey<'a>,
    /// The value as it is written in the file, with its quotes: everything behind the '=', up to the end of the line. A note
    /// behind '#' or ';' is part of the value, as systemd, Puppet and Ansible read it. Required unless '_exist' is false.
    #[property(tells(multiple = true))]
    value: Option<IniValue<'a>>,
    /// Whether the key has several values of which this is one: the line with this value is added or removed, and lines with
    /// other values stay.
    #[property(option)]
    multiple: bool,
    /// Whether the file is created, with mode 0644, when it is not there; with 0600 where the properties hold a secret.
    #[property(option)]
    create: bool,
    /// A command that must accept the whole file as it is to be before it is in place, such as 'nginx -t -c %s': words without a shell, with %s
    /// where the path of that goes, which is a file of the same name that only this user can read. If it ends with another
    /// exit code than 0, the file stays as it is. It is run where something is changed, not for a plan, and is a program of the
    /// running system.
    #[property(option, removal)]
    validate: Option<Guard<'a>>,
    /// Whether the key exists.
    exist: bool,
}

impl<'a> crate::input::Properties<'a> for Properties<'a> {
    fn check(&self) -> Result<(), Failure> {
        required_if(self.exist || self.multiple, &[(Properties::VALUE, self.value.is_some())])
    }
}

/// `Stead/Ini` as it is registered.
pub(crate) fn built_in(locks: &FileLocks) -> Option<BuiltIn> {
    Properties::built_in(Arc::new(Parts::<Ini>::new(locks)))
}

struct Ini;

impl Part for Ini {
    type Stated<'a> = Properties<'a>;
    const NOUN: &'static str = "key";

    fn key(stated: &Value) -> Option<String> {
        let text = |name: &str| stated.get(name).and_then(Value::as_str).unwrap_or_default();
        let is_one_of_several = stated.get(Properties::MULTIPLE) == Some(&Value::Bool(true));
        let value = if is_one_of_several { text(Properties::VALUE).trim() } else { "" };
        Some([text(Properties::SECTION), text(Properties::KEY), value].join("\0"))
    }
}

impl<'a> Stated<'a> for Properties<'a> {
    fn guard(&self) -> Option<Guard<'a>> {
        self.validate
    }

    fn location(&self, cx: &Context) -> Result<Location<'a>, Failure> {
        Ok(Location::stated(cx, self.path.0.0, Missing::create_if(self.create)))
    }

    fn wanted(&self) -> Object {
        self.value.map(|value| (Properties::VALUE.to_owned(), Value::from(value.0.trim()))).into_iter().collect()
    }

    fn find(&self, text: &str) -> Result<Option<Object>, Failure> {
        let found = self.own(text).pop();
        Ok(found.map(|found| [(Properties::VALUE.to_owned(), Value::from(found.value))].into()))
    }

    fn put(&self, text: &str) -> Result<String, Failure> {
        let value = self.value.map_or("", |value| value.0.trim());
        if let Some(found) = self.own(text).pop() {
            found.check_single()?;
            return Ok(match found.value_range {
                Some(range) if found.value.is_empty() && style(text).ends_with(' ') => {
                    replaced(text, &range, &format!(" {value}"))
                }
                Some(range) => replaced(text, &range, value),
                None => replaced(text, &found.name_range, &[self.key.0, style(text), value].concat()),
            });
        }
        let (line, ending) = ([self.key.0, style(text), value].concat(), ending(text));
        if let Some(at) = self.end_of_section(text) {
            // Behind the last line with the same key, where it is one of several.
            let at = self.assignments(text).pop().map_or(at, |last| last.end);
            return Ok(inserted(text, at, &[&line, ending].concat()));
        }
        let gap = if text.trim().is_empty() { "" } else { ending };
        let header = format!("{gap}[{}]{ending}", self.section_name().unwrap_or_default());
        Ok(inserted(text, text.len(), &[&header, &line, ending].concat()))
    }

    fn remove(&self, text: &str) -> Result<String, Failure> {
        let mut rest = text.to_owned();
        for found in self.own(text).into_iter().rev() {
            found.check_single()?;
            rest = replaced(&rest, &found.line, "");
        }
        Ok(rest)
    }
}

/// A line that sets the key.
struct Assignment<'t> {
    line: Range<usize>,
    name_range: Range<usize>,
    value: &'t str,
    /// `None` of a key that stands alone.
    value_range: Option<Range<usize>>,
    /// The line, from 1, in which the value may go on.
    goes_on: Option<usize>,
    /// Where what belongs to it ends.
    end: usize,
}

impl Assignment<'_> {
    fn check_single(&self) -> Result<(), Failure> {
        let Some(line) = self.goes_on else { return Ok(()) };
        let hint = "Edit the file by hand, or manage it with Stead/File";
        Err(blocked(
            Properties::KEY,
            format!("line {line} may continue the value of this key and would be left behind. {hint}"),
        ))
    }
}

impl Properties<'_> {
    fn section_name(&self) -> Option<&str> {
        self.section.map(|section| section.0)
    }

    /// The lines to manage: all that set the key, or with several values those that have this one.
    fn own<'t>(&self, text: &'t str) -> Vec<Assignment<'t>> {
        let value = self.value.filter(|_| self.multiple).map(|value| value.0.trim());
        let mut all = self.assignments(text);
        all.retain(|each| value.is_none_or(|value| value == each.value));
        all
    }

    /// Every line that sets the key, in the order of the file.
    fn assignments<'t>(&self, text: &'t str) -> Vec<Assignment<'t>> {
        let all = lines(text);
        let mut section = None;
        let mut found = Vec::new();
        for (at, line) in all.iter().enumerate() {
            match header(line.text) {
                Some(name) => section = Some(name),
                None if section == self.section_name() => {
                    found.extend(self.assignment(line, all.get(at + 1..).unwrap_or_default(), at + 2));
                }
                None => {}
            }
        }
        found
    }

    /// Returns the assignment of the key on a line; `None` if it assigns another or none. `behind` are the lines
    /// behind it, of which the first has this number.
    fn assignment<'t>(&self, line: &Line<'t>, behind: &[Line<'_>], number: usize) -> Option<Assignment<'t>> {
        let (name, value) = self.split(line.text);
        if name.trim() != self.key.0 || is_comment(line.text) {
            return None;
        }
        let from = line.range.start + name.len() - name.trim_start().len();
        let trimmed = value.map(|value| (value.trim(), value.len() - value.trim_start().len()));
        let value_range = trimmed.map(|(value, space)| {
            let start = line.range.start + name.len() + 1;
            // Blanks behind an empty value make way for one.
            if value.is_empty() { start..start + space } else { start + space..start + space + value.len() }
        });
        // What is indented deeper than the key belongs to its value, whatever it looks like.
        let goes_on = |next: &&Line<'_>| indent(next.text) > indent(line.text) && !next.text.trim().is_empty();
        let more = behind.iter().take_while(goes_on).count();
        let first = behind.iter().take(more).position(|next| !is_comment(next.text));
        let joined = line.text.ends_with('\\').then_some(0);
        Some(Assignment {
            line: line.range.clone(),
            name_range: from..from + name.trim().len(),
            value: trimmed.map_or("", |(value, _)| value),
            value_range,
            goes_on: joined.or(first).map(|at| number + at),
            end: more.checked_sub(1).and_then(|last| behind.get(last)).map_or(line.range.end, |last| last.range.end),
        })
    }

    /// Splits a line at the sign into the key and the value. A colon is a sign only in front of a blank, with nothing
    /// but the key in front of it: other colons are parts of keys and values.
    fn split<'t>(&self, line: &'t str) -> (&'t str, Option<&'t str>) {
        let at_colon = line
            .split_once(':')
            .filter(|(name, value)| name.trim() == self.key.0 && (value.is_empty() || value.starts_with(is_blank)));
        let split = at_colon.or_else(|| line.split_once('='));
        split.map_or((line, None), |(name, value)| (name, Some(value)))
    }

    /// Where a new key of the section goes: behind its last line that is not empty; `None` where there is no such section.
    fn end_of_section(&self, text: &str) -> Option<usize> {
        let mut end = self.section.is_none().then_some(0);
        let mut section = None;
        for line in lines(text) {
            section = header(line.text).or(section);
            let counts = !line.text.trim().is_empty() && (self.section.is_some() || !is_comment(line.text));
            if section == self.section_name() && counts {
                end = Some(line.range.end);
            }
        }
        end
    }
}

fn header(line: &str) -> Option<&str> {
    let inside = line.trim().strip_prefix('[')?;
    inside.split_once(']').map(|(name, _)| name.trim())
}

/// How many blanks a line begins with.
fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(is_blank).len()
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with(['#', ';'])
}

/// What is between key and value in new lines: as in the first one that has both.
fn style(text: &str) -> &'static str {
    let first = text.lines().filter(|line| !is_comment(line)).find_map(|line| line.split_once('='));
    match first {
        Some((name, _)) if !name.ends_with(' ') => "=",
        _ => " = ",
    }
}
