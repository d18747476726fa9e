//! Output: data on standard output, everything else on standard error.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anstream::ColorChoice;
use anstream::adapter::strip_bytes;
use serde::Serialize;
use serde_json::Value as Json;

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
            // Stripped as a whole: the stream that strips writes every line by itself.
            let strips =
                anstream::stdout().current_choice() == ColorChoice::Never && !self.text.iter().copied().all(is_plain);
            let text = if strips { Cow::Owned(strip_bytes(&self.text).into_vec()) } else { Cow::Borrowed(&*self.text) };
            let mut out = io::stdout().lock();
            self.failed = out.write_all(&text).and_then(|()| out.flush()).err();
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

/// Prints text on standard output: at once on a terminal, else when there is enough of it, or at the end.
///
/// Errors are reported by [`finish`]; the run goes on.
pub(crate) fn print(text: &str) {
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

/// Prints a line on standard output, at once: somebody waits for it. False when it cannot be written.
pub(crate) fn print_now(line: &str) -> bool {
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
            complain(&format!("error: cannot write standard output: {}", stead_host::fs::reason(&error)));
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

/// Prints a line on standard error.
pub(crate) fn complain(text: &str) {
    let mut out = anstream::stderr().lock();
    let _ = writeln!(out, "{text}");
}

/// Prints text on standard error as it is.
pub(crate) fn complain_text(text: &str) {
    let mut out = anstream::stderr().lock();
    let _ = out.write_all(text.as_bytes());
}

/// Whether users read standard error.
pub(crate) fn is_watched() -> bool {
    io::stderr().is_terminal()
}

/// Prints JSON in a format; to a terminal YAML unless another was asked for, as dsc does.
pub(crate) fn data(value: &Json, format: Option<OutputFormat>) {
    let usual = if is_terminal() { OutputFormat::Yaml } else { OutputFormat::Json };
    let format = format.unwrap_or(usual);
    print(&match format {
        OutputFormat::Json => serde_json::to_string(value).unwrap_or_default() + "\n",
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
        Output::Yaml => print(&yaml(value)),
        Output::Text | Output::Json => print(&(pretty(value) + "\n")),
    }
}

/// Whether messages on standard error are coloured: for users, unless they asked for none.
pub(crate) fn is_coloured() -> bool {
    is_watched() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Prints one of several values.
pub(crate) fn list_item(value: &impl Serialize, format: ListFormat, first: bool) {
    print(&match format {
        ListFormat::Json | ListFormat::TableNoTruncate => serde_json::to_string(value).unwrap_or_default() + "\n",
        ListFormat::PrettyJson => pretty(value) + "\n",
        ListFormat::Yaml if first => yaml(value),
        ListFormat::Yaml => format!("---\n{}", yaml(value)),
    });
}

/// JSON in many lines.
pub(crate) fn pretty(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// YAML, ending in a line break.
pub(crate) fn yaml(value: &impl Serialize) -> String {
    // Text stays in one line however long it is, so that it can be searched for.
    let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
    let mut text = serde_saphyr::to_string_with_options(value, options).unwrap_or_default();
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}
