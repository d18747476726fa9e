//! `Stead/Ini`: one key of a file with sections.

use std::ops::Range;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use stead_core::call::Failure;
use stead_core::value::{Object, Value};
use stead_host::provider::Context;

use crate::edit::{FileLocks, Missing};
use crate::input::{FilePath, IniName, SingleLine, refused, required_if};
use crate::part::lines::{Line, ending, inserted, lines, replaced};
use crate::part::{Location, Part, Parts, Stated};
use crate::{ALL_BUT_EXPORT, BuiltIn, Profile, is_wanted, schema};

const PROFILE: Profile = Profile {
    type_name: "Stead/Ini",
    description: "A key of a section in an INI file.",
    example: include_str!("example.yaml"),
    tags: &["file", "ini", "text", "linux"],
    capabilities: ALL_BUT_EXPORT,
    schema: schema::of::<Properties<'_>>,
};

/// One key of a file of lines 'key = value' in sections '[name]', such as those of systemd, Git or Samba. Comments, order and
/// spacing of the file stay as they are. Where a key is set several times the last one counts, and is changed.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Stead/Ini")]
struct Properties<'a> {
    /// Where the file is. A relative path starts at the directory of the document, or at the system root that was given.
    #[serde(borrow)]
    path: FilePath<'a>,
    /// The name of the section, without brackets. Without it the key is before the first section.
    #[serde(borrow)]
    section: Option<IniName<'a>>,
    /// The key.
    #[serde(borrow)]
    key: IniName<'a>,
    /// The value as it is written in the file, with its quotes: everything behind the '=', up to the end of the line. A note
    /// behind '#' or ';' is part of the value, as systemd, Puppet and Ansible read it. Required unless '_exist' is false.
    #[serde(borrow)]
    value: Option<SingleLine<'a>>,
    /// Whether the file is created, with mode 0644, when it is not there.
    #[serde(default)]
    #[schemars(extend("writeOnly" = true))]
    create: bool,
    /// Whether the key exists.
    #[serde(rename = "_exist", default = "is_wanted")]
    exist: bool,
}

impl<'a> crate::input::Properties<'a> for Properties<'a> {
    fn check(&self) -> Result<(), Failure> {
        required_if(self.exist, &[("value", self.value.is_some())])
    }
}

/// `Stead/Ini` as it is registered.
pub(crate) fn built_in(locks: &FileLocks) -> Option<BuiltIn> {
    PROFILE.built_in(Arc::new(Parts::<Ini>::new(locks)))
}

struct Ini;

impl Part for Ini {
    type Stated<'a> = Properties<'a>;
    const NOUN: &'static str = "key";
    const KEYS: &'static [&'static str] = &["section", "key"];
}

impl<'a> Stated<'a> for Properties<'a> {
    fn exist(&self) -> bool {
        self.exist
    }

    fn location(&self, cx: &Context) -> Result<Location<'a>, Failure> {
        Ok(Location::stated(cx, self.path.0.0, Missing::create_if(self.create)))
    }

    fn identity(&self) -> Object {
        let stated = [("path", Some(self.path.0.0)), ("section", self.section_name()), ("key", Some(self.key.0))];
        stated.into_iter().filter_map(|(name, text)| Some((name.to_owned(), Value::from(text?)))).collect()
    }

    fn wanted(&self) -> Object {
        self.value.map(|value| ("value".to_owned(), Value::from(value.0.trim()))).into_iter().collect()
    }

    fn find(&self, text: &str) -> Result<Option<Object>, Failure> {
        let found = self.assignments(text).pop();
        Ok(found.map(|found| [("value".to_owned(), Value::from(found.value))].into()))
    }

    fn put(&self, text: &str) -> Result<String, Failure> {
        let value = self.value.map_or("", |value| value.0.trim());
        if let Some(found) = self.assignments(text).pop() {
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
            return Ok(inserted(text, at, &[&line, ending].concat()));
        }
        let gap = if text.trim().is_empty() { "" } else { ending };
        let header = format!("{gap}[{}]{ending}", self.section_name().unwrap_or_default());
        Ok(inserted(text, text.len(), &[&header, &line, ending].concat()))
    }

    fn remove(&self, text: &str) -> Result<String, Failure> {
        let mut rest = text.to_owned();
        for found in self.assignments(text).into_iter().rev() {
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
    /// Whether the value goes on in the next line.
    goes_on: bool,
}

impl Assignment<'_> {
    fn check_single(&self) -> Result<(), Failure> {
        let message = "the value in the file has several lines, which Stead/Ini does not change";
        if self.goes_on { Err(refused("key", message)) } else { Ok(()) }
    }
}

impl Properties<'_> {
    fn section_name(&self) -> Option<&str> {
        self.section.map(|section| section.0)
    }

    /// Every line that sets the key, in the order of the file.
    fn assignments<'t>(&self, text: &'t str) -> Vec<Assignment<'t>> {
        let all = lines(text);
        let mut section = None;
        let mut found = Vec::new();
        for (at, line) in all.iter().enumerate() {
            match header(line.text) {
                Some(name) => section = Some(name),
                None if section == self.section_name() => found.extend(self.assignment(line, all.get(at + 1))),
                None => {}
            }
        }
        found
    }

    fn assignment<'t>(&self, line: &Line<'t>, next: Option<&Line<'_>>) -> Option<Assignment<'t>> {
        let (name, value) = line.text.split_once('=').map_or((line.text, None), |(name, value)| (name, Some(value)));
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
        let continues = |next: &&Line<'_>| {
            next.text.starts_with([' ', '\t']) && !next.text.trim().is_empty() && !next.text.contains('=')
        };
        Some(Assignment {
            line: line.range.clone(),
            name_range: from..from + name.trim().len(),
            value: trimmed.map_or("", |(value, _)| value),
            value_range,
            goes_on: line.text.ends_with('\\') || next.filter(continues).is_some_and(|next| !is_comment(next.text)),
        })
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
