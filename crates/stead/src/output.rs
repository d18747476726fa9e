//! Output: data on standard output, everything else on standard error.
//!
//! Everything that is printed goes through here, and so no text of others reaches a terminal that it would obey: see
//! [`for_users`] and [`json`].

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anstream::ColorChoice;
use anstream::adapter::strip_str;
use serde::Serialize;
use serde_json::Value as Json;
use stead_core::visible::{is_obeyed, visible_but, visible_json};

use crate::args::{ListFormat, Output, OutputFormat};
use crate::exit::Exit;

/// What was printed and not written yet. Global as standard output itself is.
static STANDARD_OUTPUT: Mutex<Buffer> = Mutex::new(Buffer { text: Vec::new(), failed: None, pace: Pace::AtEnd });

static IS_TERMINAL: LazyLock<bool> = LazyLock::new(|| io::stdout().is_terminal());

struct Buffer {
    text: Vec<u8>,
    /// The first error; nothing is written after it.
    failed: Option<io::Error>,
    pace: Pace,
}

/// When text that is too little to be written at once is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pace {
    AtEnd,
    /// Within a moment, by a thread that is started for the first text.
    Soon,
    /// Within a moment, by a thread that was started.
    Started,
}

impl Buffer {
    const LARGEST: usize = 64 << 10;

    fn write(&mut self) {
        if self.failed.is_none() && !self.text.is_empty() {
            let mut out = io::stdout().lock();
            self.failed = out.write_all(&self.text).and_then(|()| out.flush()).err();
        }
        self.text.clear();
    }
}

/// Whether nothing of it is ever stripped.
fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\n')
}

fn buffer() -> MutexGuard<'static, Buffer> {
    STANDARD_OUTPUT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Prints text for users on standard output: at once on a terminal, else when there is enough of it, or at the end.
///
/// Errors are reported by [`finish`]; the run goes on.
pub(crate) fn print(text: &str) {
    print_coloured(&for_users(text));
}

/// Like [`print`], for text with colours of this program. Whoever puts a name into it has it written by
/// [`stead_core::visible::visible`]: else it could be coloured as well.
pub(crate) fn print_coloured(text: &str) {
    let text = coloured(text);
    let strips = !text.bytes().all(is_plain) && anstream::stdout().current_choice() == ColorChoice::Never;
    write(&if strips { strip_str(&text).to_string() } else { text.into_owned() });
}

/// Prints text unchanged for other programs, and with escapes like `print` on a terminal.
pub(crate) fn print_exactly(text: &str) {
    if is_terminal() { print(text) } else { write(text) }
}

fn write(text: &str) {
    let mut buffer = buffer();
    buffer.text.extend_from_slice(text.as_bytes());
    if is_terminal() || buffer.text.len() >= Buffer::LARGEST {
        buffer.write();
    } else if buffer.pace == Pace::Soon {
        buffer.pace = Pace::Started;
        // The thread ends with the process.
        thread::spawn(write_again_and_again);
    }
}

/// Prints a line of JSON on standard output, at once: a program waits for it. False when it cannot be written.
pub(crate) fn print_now(line: &str) -> bool {
    let line = if is_terminal() { visible_json(line) } else { Cow::Borrowed(line) };
    let mut buffer = buffer();
    buffer.text.extend_from_slice(line.as_bytes());
    buffer.text.push(b'\n');
    buffer.write();
    buffer.failed.is_none()
}

fn write_again_and_again() {
    const MOMENT: Duration = Duration::from_millis(50);
    loop {
        thread::sleep(MOMENT);
        buffer().write();
    }
}

/// While `work` is done, what is printed is written within a moment, so that a run that is killed has reported what it did.
pub(crate) fn written_soon<T>(work: impl FnOnce() -> T) -> T {
    let replace = |from: Pace, to: Pace| {
        let mut buffer = buffer();
        buffer.pace = if buffer.pace == from { to } else { buffer.pace };
    };
    replace(Pace::AtEnd, Pace::Soon);
    let done = work();
    // What comes now is the end.
    replace(Pace::Soon, Pace::AtEnd);
    done
}

/// Writes what was printed, for those who wait for it.
pub(crate) fn flush() {
    buffer().write();
}

/// Writes what is left. Returns how the program ends: as it would have, unless standard output could not be written.
pub(crate) fn finish(exit: Exit) -> Exit {
    let failed = {
        let mut buffer = buffer();
        buffer.write();
        buffer.failed.take()
    };
    match failed {
        Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            complain(&format!("error: cannot write standard output: {}", stead_system::fs::reason(&error)));
            Exit::Output
        }
        // The reader stopped early, which is not an error; an error of the command still counts.
        Some(_) if exit == Exit::Success => Exit::ClosedPipe,
        Some(_) | None => exit,
    }
}

/// Whether users read standard output.
pub(crate) fn is_terminal() -> bool {
    *IS_TERMINAL
}

/// Text for users: what a terminal would obey is written in visible signs, but for line breaks and tabs.
pub(crate) fn for_users(text: &str) -> Cow<'_, str> {
    visible_but(text, &['\n', '\t'])
}

/// Like [`for_users`], but leaves colours as they are, which may be those of this program.
fn coloured(text: &str) -> Cow<'_, str> {
    let is_harmless = |character: char| !is_obeyed(character) || matches!(character, '\n' | '\t');
    if text.bytes().all(|byte| is_plain(byte) || byte == b'\t') || text.chars().all(is_harmless) {
        return Cow::Borrowed(text);
    }
    let (mut out, mut rest) = (String::with_capacity(text.len() + 64), text);
    while let Some(character) = rest.chars().next() {
        let style = style_at(rest);
        let length = style.unwrap_or(character.len_utf8());
        let (head, tail) = rest.split_at(length);
        if style.is_some() || is_harmless(character) {
            out.push_str(head);
        } else {
            out.extend(character.escape_default());
        }
        rest = tail;
    }
    Cow::Owned(out)
}

/// How long the sequence is that begins a text and sets a colour or a weight in which text can still be read.
fn style_at(text: &str) -> Option<usize> {
    const LONGEST: usize = 16;
    let parameters = text.strip_prefix("\x1b[")?;
    let end = parameters.find('m').filter(|end| *end <= LONGEST)?;
    let is_style =
        |number: &str| matches!(number.parse(), Ok(0..=4 | 22 | 24 | 30..=37 | 39 | 90..=97_u8)) || number.is_empty();
    parameters.get(..end)?.split(';').all(is_style).then_some("\x1b[".len() + end + 1)
}

/// Prints a line for users on standard error.
pub(crate) fn complain(text: &str) {
    let mut out = anstream::stderr().lock();
    let _ = writeln!(out, "{}", for_users(text));
}

/// Prints text for users on standard error, without a line break.
pub(crate) fn complain_text(text: &str) {
    complain_coloured(&for_users(text));
}

/// Like [`complain_text`], for text with colours as that of [`print_coloured`].
pub(crate) fn complain_coloured(text: &str) {
    let mut out = anstream::stderr().lock();
    let _ = out.write_all(coloured(text).as_bytes());
}

/// Prints a line of JSON on standard error.
pub(crate) fn complain_json(value: &Json) {
    let mut out = io::stderr().lock();
    let _ = writeln!(out, "{}", json(value));
}

/// Whether users read standard error.
pub(crate) fn is_watched() -> bool {
    io::stderr().is_terminal()
}

/// Prints JSON in a format; to a terminal YAML unless another was asked for, as dsc does.
pub(crate) fn data(value: &Json, format: Option<OutputFormat>) {
    let usual = if is_terminal() { OutputFormat::Yaml } else { OutputFormat::Json };
    let format = format.unwrap_or(usual);
    write(&match format {
        OutputFormat::Json => json(value) + "\n",
        OutputFormat::PrettyJson => pretty(value) + "\n",
        OutputFormat::Yaml => yaml(value),
    });
}

/// Prints one of several values; in YAML they are separated by a line.
pub(crate) fn data_item(value: &Json, format: Option<OutputFormat>, first: bool) {
    let is_yaml = format == Some(OutputFormat::Yaml) || (format.is_none() && is_terminal());
    if is_yaml && !first {
        print("---\n");
    }
    data(value, format);
}

/// Prints JSON in one of the formats of commands for users.
pub(crate) fn data_as(value: &Json, output: Output) {
    match output {
        Output::Yaml => write(&yaml(value)),
        Output::Text | Output::Json => write(&(pretty(value) + "\n")),
    }
}

/// Whether messages on standard error are coloured: for users, unless they asked for none.
pub(crate) fn is_coloured() -> bool {
    is_watched() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Prints one of several values.
pub(crate) fn list_item(value: &impl Serialize, format: ListFormat, first: bool) {
    write(&match format {
        ListFormat::Json | ListFormat::TableNoTruncate => json(value) + "\n",
        ListFormat::PrettyJson => pretty(value) + "\n",
        ListFormat::Yaml if first => yaml(value),
        ListFormat::Yaml => format!("---\n{}", yaml(value)),
    });
}

/// JSON in a line, without anything that a terminal would obey.
pub(crate) fn json(value: &impl Serialize) -> String {
    visible_json(&serde_json::to_string(value).unwrap_or_default()).into_owned()
}

/// JSON on several lines, without anything that a terminal would obey.
pub(crate) fn pretty(value: &impl Serialize) -> String {
    visible_json(&serde_json::to_string_pretty(value).unwrap_or_default()).into_owned()
}

/// YAML, ending in a line break; in the way of JSON if a terminal would obey something in it.
pub(crate) fn yaml(value: &impl Serialize) -> String {
    // Text stays in one line however long it is, so that it can be searched for.
    let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
    let mut text = serde_saphyr::to_string_with_options(value, options).unwrap_or_default();
    if text.contains(|character: char| is_obeyed(character) && !matches!(character, '\n' | '\t')) {
        text = json(value);
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_reach_the_screen_and_nothing_else_that_is_obeyed() {
        let text = "\x1b[1m\x1b[31m- old\x1b[0m\n\tא ü\x1b[92;1mx\x1b[m";
        assert_eq!(coloured(text), text);
        assert_eq!(for_users("\x1b[1mא\tü\n"), "\\u{1b}[1mא\tü\n");
        assert_eq!(
            coloured("\x1b]0;t\x07\x1b[2J\x1b[8mh\r\u{9b}\u{202e}"),
            r"\u{1b}]0;t\u{7}\u{1b}[2J\u{1b}[8mh\r\u{9b}\u{202e}"
        );
    }

    #[test]
    fn yaml_holds_the_same_text() {
        let value = serde_json::json!({ "name": "a\u{202e}b\u{9b}", "lines": "a\nb" });
        let text = yaml(&value);
        assert!(!text.contains('\u{202e}') && !text.contains('\u{9b}'), "{text}");
        assert_eq!(serde_json::from_str::<Json>(&text).unwrap(), value);
    }
}
