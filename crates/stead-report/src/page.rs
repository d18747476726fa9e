//! What a page is about.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use stead_core::visible::visible_but;

/// A run or a plan, as a page shows it.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use stead_report::{Act, Ending, Page, Text, html};
///
/// let page = Page {
///     act: Act::Apply,
///     ending: Ending::Finished,
///     document: Text::from("<i>.yaml"),
///     began: None,
///     elapsed: Duration::ZERO,
///     instances: Vec::new(),
///     knows_needs: true,
///     facts: Vec::new(),
///     parameters: Vec::new(),
///     notes: Vec::new(),
///     command: Text::from("stead history show last"),
/// };
/// let file = html(&page);
/// assert!(file.contains("<h1>Nothing had to change</h1>"));
/// // Text of others is text.
/// assert!(!file.contains("<i>"));
/// ```
#[derive(Clone, Debug)]
pub struct Page {
    /// What was done.
    pub act: Act,
    /// How it ended.
    pub ending: Ending,
    /// What the document is called.
    pub document: Text,
    /// When it began.
    pub began: Option<Timestamp>,
    /// How long it took.
    pub elapsed: Duration,
    /// The instances that it is about, in the order of the document.
    pub instances: Vec<Instance>,
    /// True if it is known which instance needs which.
    pub knows_needs: bool,
    /// What else is known of it: a name and a value each.
    pub facts: Vec<(&'static str, Text)>,
    /// The parameters, with secrets covered.
    pub parameters: Vec<Parameter>,
    /// What somebody must know or do.
    pub notes: Vec<Text>,
    /// The command that shows the same in a terminal.
    pub command: Text,
}

/// What was done with a document.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act {
    /// It was said what an apply would change.
    Plan,
    /// The machine was brought to the desired state.
    Apply,
    /// It was compared.
    Check,
    /// It was read.
    Read,
}

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// Every instance has ended.
    Finished,
    /// It is not over.
    Running,
    /// It ended before every instance had.
    Early,
}

/// One instance. Others are named by their place in [`Page::instances`].
#[derive(Clone, Debug)]
pub struct Instance {
    /// Its name.
    pub name: Text,
    /// Its type.
    pub type_name: Text,
    /// The path that it manages, if its name does not tell.
    pub path: Option<Text>,
    /// How it ended.
    pub outcome: Outcome,
    /// The word for that.
    pub word: &'static str,
    /// Why, line by line.
    pub message: Vec<Text>,
    /// What differs.
    pub lines: Vec<Line>,
    /// What is wrong in the document, as a terminal shows it.
    pub snippet: Vec<Text>,
    /// Where it is declared.
    pub place: Option<Text>,
    /// The code under which more is written about its failure.
    pub code: Option<&'static str>,
    /// What it waits for.
    pub needs: Vec<Need>,
    /// The instance that it is nested in.
    pub within: Option<usize>,
    /// The instance that kept it from beginning.
    pub held_by: Option<usize>,
    /// True if others are nested in it, so that it is not counted by itself.
    pub is_container: bool,
    /// The attempts at it, in order.
    pub attempts: Vec<Attempt>,
}

/// What an instance waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Need {
    /// The place of the other instance.
    pub instance: usize,
    /// True if the document does not say so.
    pub is_implied: bool,
}

/// One attempt at an instance.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Attempt {
    /// How long it had waited for it.
    pub waited: Duration,
    /// Its calls.
    pub calls: Vec<Call>,
}

/// A call of a provider.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Call {
    /// The operation.
    pub operation: &'static str,
    /// True if it may change something.
    pub changes: bool,
    /// When it began, from the beginning of the run.
    pub began: Duration,
    /// How long it took.
    pub elapsed: Duration,
}

/// A parameter of the document.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: Text,
    /// Its value; `None` for a secret.
    pub value: Option<Text>,
    /// True if it was supplied, and not left at its default.
    pub is_supplied: bool,
}

/// A line below the heading of an instance: what is added, removed or changed, or what stands around it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line {
    /// `+`, `-`, `~`, `|` for what a program printed, a space for what stays; `None` for what is only said.
    pub sign: Option<char>,
    /// True if it belongs to the line above it.
    pub is_deeper: bool,
    /// The text.
    pub text: Text,
}

/// How an instance ended; the worst is the first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Outcome {
    /// It could not be done.
    Failed,
    /// It was still at work when the run gave up waiting.
    Pending,
    /// It was not begun.
    Skipped,
    /// The run ended before it did.
    NotReached,
    /// It is not as declared.
    Drifted,
    /// Nobody can tell yet.
    Unknown,
    /// It took the place of something else.
    Replaced,
    /// It is gone.
    Removed,
    /// It is new.
    Created,
    /// It is another.
    Changed,
    /// It is as it was.
    Unchanged,
}

impl Outcome {
    /// All of them, the worst first.
    pub const ALL: [Self; 11] = [
        Self::Failed,
        Self::Pending,
        Self::Skipped,
        Self::NotReached,
        Self::Drifted,
        Self::Unknown,
        Self::Replaced,
        Self::Removed,
        Self::Created,
        Self::Changed,
        Self::Unchanged,
    ];

    /// The name of its colour.
    pub(crate) fn shade(self) -> &'static str {
        match self {
            Self::Failed | Self::Pending => "bad",
            Self::Skipped | Self::Drifted => "warn",
            Self::Replaced | Self::Removed | Self::Created | Self::Changed => "work",
            Self::NotReached | Self::Unknown => "none",
            Self::Unchanged => "plain",
        }
    }

    /// The name of its sign.
    pub(crate) fn sign(self) -> &'static str {
        match self {
            Self::Failed | Self::Pending => "stop",
            Self::Skipped => "over",
            Self::Drifted => "drift",
            Self::Unknown | Self::NotReached => "open",
            Self::Created => "plus",
            Self::Removed => "minus",
            Self::Changed | Self::Replaced => "tilde",
            Self::Unchanged => "ring",
        }
    }

    /// The word for several of it.
    pub(crate) fn word(self, act: Act) -> &'static str {
        match (self, act) {
            (Self::Failed, _) => "failed",
            (Self::Pending, _) => "pending",
            (Self::Skipped, _) => "skipped",
            (Self::NotReached, _) => "not reached",
            (Self::Drifted, _) => "drifted",
            (Self::Unknown, _) => "unknown",
            (Self::Replaced, Act::Plan) => "to replace",
            (Self::Removed, Act::Plan) => "to remove",
            (Self::Created, Act::Plan) => "to create",
            (Self::Changed, Act::Plan) => "to change",
            (Self::Replaced, _) => "replaced",
            (Self::Removed, _) => "removed",
            (Self::Created, _) => "created",
            (Self::Changed, _) => "changed",
            (Self::Unchanged, Act::Apply) => "unchanged",
            (Self::Unchanged, Act::Read) => "read",
            (Self::Unchanged, Act::Plan | Act::Check) => "in desired state",
        }
    }

    /// Returns whether something is, was or would be another.
    pub fn is_change(self) -> bool {
        matches!(self, Self::Drifted | Self::Replaced | Self::Removed | Self::Created | Self::Changed)
    }

    /// Returns whether it is one of those that somebody must look at first.
    pub(crate) fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::Pending)
    }
}

impl Instance {
    /// Returns whether it is counted: what is nested in a container is, and not the container.
    pub(crate) fn is_counted(&self) -> bool {
        !self.is_container || self.outcome.is_failure()
    }

    /// How long its calls took.
    pub(crate) fn elapsed(&self) -> Duration {
        self.calls().map(|call| call.elapsed).sum()
    }

    /// Every call, in order.
    pub(crate) fn calls(&self) -> impl Iterator<Item = &Call> {
        self.attempts.iter().flat_map(|attempt| &attempt.calls)
    }
}

/// A text that comes from elsewhere. No character of it steers how the rest is read: those are written in visible signs.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Text(String);

/// How many characters of a text are shown: a line that is longer is not about to be read.
const LONGEST: usize = 2_000;

impl Text {
    /// How wide it is, in columns of a terminal.
    pub(crate) fn columns(&self) -> usize {
        self.0.chars().map(columns).sum()
    }

    /// The first columns of it, and a sign that there is more.
    pub(crate) fn cut(&self, most: usize) -> String {
        if self.columns() <= most {
            return self.0.clone();
        }
        let mut left = most.saturating_sub(1);
        let fits = |character: &char| {
            let wide = columns(*character);
            let fits = wide <= left;
            left = left.saturating_sub(if fits { wide } else { left });
            fits
        };
        self.0.chars().take_while(fits).chain(['…']).collect()
    }

    /// How many bytes it is at most where it is written.
    pub(crate) fn weight(&self) -> usize {
        weight(&self.0)
    }
}

/// How many bytes a text is at most where it is written.
pub(crate) fn weight(text: &str) -> usize {
    text.bytes().map(|byte| if matches!(byte, b'<' | b'>' | b'&' | b'"' | b'\'') { 5 } else { 1 }).sum()
}

/// Roughly: what is far from the Latin letters is mostly wide.
fn columns(character: char) -> usize {
    if u32::from(character) < 0x1100 { 1 } else { 2 }
}

impl<T: AsRef<str>> From<T> for Text {
    fn from(text: T) -> Self {
        let text = text.as_ref();
        let shown = visible_but(text, &['\t']);
        match shown.char_indices().nth(LONGEST) {
            None => Self(shown.into_owned()),
            Some((at, _)) => {
                Self(format!("{}… ({} characters)", shown.get(..at).unwrap_or_default(), text.chars().count()))
            }
        }
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A duration for users.
pub fn human(elapsed: Duration) -> String {
    match elapsed.as_secs() {
        0 => format!("{} ms", elapsed.as_millis()),
        1..=119 => format!("{:.1} s", elapsed.as_secs_f64()),
        seconds @ 120..=7_199 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(Text::from("abcdef").cut(6), "abcdef");
        assert_eq!(Text::from("abcdef").cut(4), "abc…");
        assert_eq!(Text::from("日本語").cut(4), "日…");
        assert!(Text::from("é".repeat(9_000)).to_string().ends_with("é… (9000 characters)"));
    }
}
