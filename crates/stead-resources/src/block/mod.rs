//! `Stead/Block`: a marked region of a text file.

use std::ops::Range;
use std::sync::Arc;

use regex::bytes::Regex;
use stead_core::call::Failure;
use stead_core::value::{Object, Value};
use stead_declare::resource;
use stead_host::provider::Context;

use crate::BuiltIn;
use crate::declared::Declared as _;
use crate::edit::{FileLocks, Match, Missing, Position, compile};
use crate::guard::Guard;
use crate::input::{FilePath, blocked, invalid};
use crate::part::lines::{Line, ending, inserted, lines, replaced};
use crate::part::{Location, Part, Parts, Stated};
use crate::text::{SingleLine, TextBlock};

/// A block of lines in a text file, between a line 'BEGIN name' and a line 'END name', each behind the sign of a comment.
/// Many instances may share a file. The rest of the file stays as it is; it is replaced at once and keeps its mode and owner.
#[resource(
    "Stead/Block",
    about = "A marked block of lines in a text file.",
    tags("file", "block", "text", "linux"),
    exclusive(after, before),
    state
)]
#[schemars(extend("not" = { "required": ["after", "before"] }))]
struct Properties<'a> {
    /// Where the file is. A relative path starts at the directory of the document, or at the system root that was given.
    #[property(key, place)]
    path: FilePath<'a>,
    /// The name of the block in its two marks.
    #[property(key)]
    name: SingleLine<'a>,
    /// The lines of the block. They get the line endings of the file. Required unless '_exist' is false.
    #[property(required)]
    content: Option<TextBlock<'a>>,
    /// The sign that begins the marks, which makes them comments in the file.
    #[property(option, removal)]
    #[serde(default = "hash")]
    #[schemars(extend("default" = "#"))]
    comment: SingleLine<'a>,
    /// Where a new block goes: after the last line that this regular expression matches, or at BOF (beginning of file) or EOF
    /// (end of file). At the end when no line matches.
    #[property(option)]
    after: Option<&'a str>,
    /// Where a new block goes: before the last line that this regular expression matches, or at BOF or EOF. At the end
    /// when no line matches.
    #[property(option)]
    before: Option<&'a str>,
    /// Whether 'after' and 'before' mean the first line that matches, in place of the last: such as the first section of a
    /// file, in front of which its general settings are.
    #[property(option)]
    first_match: bool,
    /// Whether the file is created, with mode 0644, when it is not there; with 0600 where the properties hold a secret.
    #[property(option)]
    create: bool,
    /// A command that must accept the whole file as it is to be before it is in place, such as 'nginx -t -c %s': words without a shell, with %s
    /// where the path of that goes, which is a file of the same name that only this user can read. If it ends with another
    /// exit code than 0, the file stays as it is. It is run where something is changed, not for a plan, and is a program of the
    /// running system.
    #[property(option, removal)]
    validate: Option<Guard<'a>>,
    /// Whether the block exists.
    exist: bool,
}

fn hash() -> SingleLine<'static> {
    SingleLine::HASH
}

impl<'a> crate::input::Properties<'a> for Properties<'a> {
    fn check(&self) -> Result<(), Failure> {
        self.stated_position()?;
        match self.content {
            Some(content) if content.0.lines().any(|line| self.is_mark(line)) => {
                Err(invalid(Properties::CONTENT, "'content' must not contain a mark of the block"))
            }
            _ => Ok(()),
        }
    }
}

/// `Stead/Block` as it is registered.
pub(crate) fn built_in(locks: &FileLocks) -> Option<BuiltIn> {
    Properties::built_in(Arc::new(Parts::<Block>::new(locks)))
}

struct Block;

impl Part for Block {
    type Stated<'a> = Properties<'a>;
    const NOUN: &'static str = "block";

    fn key(stated: &Value) -> Option<String> {
        let text = |name: &str| stated.get(name).and_then(Value::as_str).unwrap_or_default();
        Some([text(Properties::NAME), text(Properties::COMMENT)].join("\0"))
    }
}

impl<'a> Stated<'a> for Properties<'a> {
    fn has_position(&self) -> bool {
        true
    }

    fn guard(&self) -> Option<Guard<'a>> {
        self.validate
    }

    fn location(&self, cx: &Context) -> Result<Location<'a>, Failure> {
        Ok(Location::stated(cx, self.path.0.0, Missing::create_if(self.create)))
    }

    fn find(&self, text: &str) -> Result<Option<Object>, Failure> {
        let Some(found) = self.locate(text)? else { return Ok(None) };
        let content = text.get(found.content).unwrap_or_default();
        let same = |stated: &&str| stated.lines().eq(content.lines());
        let stated = self.content.map(|stated| stated.0).filter(same);
        // What has other line endings, or none at its end, has the same lines.
        Ok(Some([content_of(stated.unwrap_or(content))].into()))
    }

    fn put(&self, text: &str) -> Result<String, Failure> {
        let ending = ending(text);
        let content: String =
            self.content.map_or("", |content| content.0).lines().flat_map(|line| [line, ending]).collect();
        if let Some(found) = self.locate(text)? {
            return Ok(replaced(text, &found.content, &content));
        }
        let [begin, end] = self.marks();
        Ok(inserted(text, self.position(text)?, &[&begin, ending, &content, &end, ending].concat()))
    }

    fn remove(&self, text: &str) -> Result<String, Failure> {
        Ok(self.locate(text)?.map_or_else(|| text.to_owned(), |found| replaced(text, &found.whole, "")))
    }
}

/// Where a block is in a text.
struct Found {
    /// From its first mark to its last one.
    whole: Range<usize>,
    /// Between the marks.
    content: Range<usize>,
}

impl Properties<'_> {
    fn marks(&self) -> [String; 2] {
        ["BEGIN", "END"].map(|word| format!("{} {word} {}", self.comment.0, self.name.0).trim().to_owned())
    }

    fn is_mark(&self, line: &str) -> bool {
        self.marks().iter().any(|mark| mark == line.trim())
    }

    fn locate(&self, text: &str) -> Result<Option<Found>, Failure> {
        let [begin, end] = self.marks();
        let marks: Vec<Line<'_>> = lines(text).into_iter().filter(|line| self.is_mark(line.text)).collect();
        match marks.as_slice() {
            [] => Ok(None),
            [first, last] if first.text.trim() == begin && last.text.trim() == end => {
                Ok(Some(Found { whole: first.range.start..last.range.end, content: first.range.end..last.range.start }))
            }
            _ => Err(blocked(
                Properties::NAME,
                format!("the file must have one line '{begin}' and behind it one line '{end}'"),
            )),
        }
    }

    /// Where a new block begins.
    fn position(&self, text: &str) -> Result<usize, Failure> {
        let found = |regex: &Regex, which: Match| {
            which.among(lines(text).into_iter().filter(|line| regex.is_match(line.text.as_bytes())))
        };
        Ok(match self.stated_position()? {
            Position::Begin => 0,
            Position::After(regex, which) => found(&regex, which).map_or(text.len(), |line| line.range.end),
            Position::Before(regex, which) => found(&regex, which).map_or(text.len(), |line| line.range.start),
            Position::End => text.len(),
        })
    }

    fn stated_position(&self) -> Result<Position, Failure> {
        Position::of(self.after, self.before, Match::of(self.first_match), compile)
    }
}

fn content_of(text: &str) -> (String, Value) {
    (Properties::CONTENT.to_owned(), Value::from(text))
}
