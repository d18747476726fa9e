//! The terminal, and other inputs of this process.

use std::io;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use super::fs::AsHandle;

/// How many columns of text the terminal has; `None` when it does not say, or there is none.
pub fn width(output: &impl AsHandle) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(output).ok()?;
    Some(usize::from(size.ws_col)).filter(|width| *width > 0)
}

/// How many rows of text the terminal has; `None` when it does not say, or there is none.
pub fn height(output: &impl AsHandle) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(output).ok()?;
    Some(usize::from(size.ws_row)).filter(|height| *height > 0)
}

/// Has this process neither read from nor write to whoever started it any more.
pub fn leave() -> io::Result<()> {
    let nothing = std::fs::File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    rustix::stdio::dup2_stderr(&nothing).map_err(io::Error::from)
}

/// A terminal that does not show what is typed, until this is dropped.
pub struct Hidden<T: AsHandle> {
    terminal: T,
    former: Termios,
}

impl<T: AsHandle> Hidden<T> {
    /// Hides it from now on. What was typed before counts no more.
    pub fn begin(terminal: T) -> io::Result<Self> {
        let former = tcgetattr(&terminal)?;
        let mut hidden = former.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        tcsetattr(&terminal, OptionalActions::Flush, &hidden)?;
        Ok(Self { terminal, former })
    }
}

impl<T: AsHandle> Drop for Hidden<T> {
    fn drop(&mut self) {
        // The terminal may be gone.
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.former);
    }
}

/// The state of an input after waiting for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TerminalInput {
    /// It can be read at once: there is something, or its end.
    Ready,
    /// There is nothing yet.
    Nothing,
    /// It cannot be waited for.
    Unknown,
}

/// Waits for an input for so long. A signal may end the wait early.
pub fn wait_for_input(input: &impl AsHandle, longest: Duration) -> TerminalInput {
    let longest = Timespec::try_from(longest).ok();
    match poll(&mut [PollFd::new(input, PollFlags::IN)], longest.as_ref()) {
        Ok(0) | Err(Errno::INTR) => TerminalInput::Nothing,
        Ok(_) => TerminalInput::Ready,
        Err(_) => TerminalInput::Unknown,
    }
}
