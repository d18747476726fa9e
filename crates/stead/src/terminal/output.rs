//! Text and data on their way out: data on standard output, everything else on standard error.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anstream::ColorChoice;
use serde_json::Value as Json;
use stead_core::visible::visible_json;
use stead_report::json;

use super::untrusted::{coloured, for_users, is_plain, uncoloured};
use super::{is_terminal, pager};
use crate::exit::Exit;

/// The text that was printed and is not written yet. Global as standard output itself is.
static STANDARD_OUTPUT: Mutex<Buffer> = Mutex::new(Buffer { text: Vec::new(), failed: None, pace: Pace::AtEnd });

static IS_ABANDONED: AtomicBool = AtomicBool::new(false);

/// True if colours are taken out of what is printed. Looked at once: a run of many changes has a line with colours for each.
static STRIPS: LazyLock<bool> = LazyLock::new(|| anstream::stdout().current_choice() == ColorChoice::Never);

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
    /// At the end, by the pager where it is longer than the screen.
    Paged,
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
    let strips = !text.bytes().all(is_plain) && *STRIPS;
    write(&if strips { uncoloured(text) } else { coloured(text) });
}

/// Prints text unchanged for other programs, and with escapes like `print` on a terminal.
pub(crate) fn print_exactly(text: &str) {
    if is_terminal() { print(text) } else { write(text) }
}

/// Prints text as it is.
pub(super) fn write(text: &str) {
    let mut buffer = buffer();
    buffer.text.extend_from_slice(text.as_bytes());
    if buffer.pace == Pace::Paged {
        return;
    }
    if is_terminal() || buffer.text.len() >= Buffer::LARGEST {
        buffer.write();
    } else if buffer.pace == Pace::Soon {
        buffer.pace = Pace::Started;
        // The thread ends with the process.
        thread::spawn(write_again_and_again);
    }
}

/// Prints a line of JSON on standard output, at once: a program waits for it. False when it cannot be written. Calls `wrote` after
/// each piece, so that a slow reader is known from one that has stopped.
pub(crate) fn print_now(line: &str, mut wrote: impl FnMut()) -> bool {
    let line = if is_terminal() { visible_json(line) } else { Cow::Borrowed(line) };
    let print_piece = |piece: &[u8]| {
        let mut buffer = buffer();
        buffer.text.extend_from_slice(piece);
        buffer.write();
        wrote();
        buffer.failed.is_none()
    };
    line.as_bytes().chunks(Buffer::LARGEST).chain([b"\n".as_slice()]).all(print_piece)
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

/// From now on, what is printed on a terminal is shown at the end, a page at a time.
pub(crate) fn page() {
    if is_terminal() {
        buffer().pace = Pace::Paged;
    }
}

/// Writes what was printed, for those who wait for it. What is paged is shown at the end.
pub(crate) fn flush() {
    let mut buffer = buffer();
    if buffer.pace != Pace::Paged {
        buffer.write();
    }
}

/// Gives up what is not written: nobody reads it, and this process is to end.
pub(crate) fn abandon() {
    IS_ABANDONED.store(true, Ordering::Relaxed);
}

/// Writes what is left. Returns how the program ends: as it would have, unless standard output could not be written.
pub(crate) fn finish(exit: Exit) -> Exit {
    // Another thread waits for the reader, and has what is to be written.
    if IS_ABANDONED.load(Ordering::Relaxed) {
        return exit;
    }
    let failed = {
        let mut buffer = buffer();
        let is_paged = buffer.pace == Pace::Paged && exit == Exit::Success;
        if let Some(why) = is_paged.then(|| pager::show(&buffer.text)).flatten() {
            complain(&format!("warning: {why}"));
        }
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

/// Prints a line for users on standard error: in one piece, so that no line of another program or of standard output gets into it.
pub(crate) fn complain(text: &str) {
    let line = for_users(text).into_owned() + "\n";
    let mut out = anstream::stderr().lock();
    let _ = out.write_all(line.as_bytes());
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
    let line = json(value) + "\n";
    let _ = io::stderr().lock().write_all(line.as_bytes());
}
