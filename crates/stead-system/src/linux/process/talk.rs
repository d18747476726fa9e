//! A program that is talked to over its standard input while it runs, and says what it likes, as long as it likes.

use std::os::fd::AsFd;
use std::process::{ChildStderr, ChildStdin, ChildStdout};
use std::time::{Duration, Instant};

use super::leader::Leader;
use super::os::{self, Awaited, Moved};
use super::running::TICK;
use super::{Exit, ProcessError, Processes, Program, Stream};
use crate::cancel::Cancel;

const CHUNK: usize = 64 << 10;

/// What is done with what a program says: the end of the talk where it returns false.
pub type OutputHandler<'a> = dyn FnMut(Stream, &[u8]) -> bool + 'a;

/// How long what a program left behind may hold its pipes open once it has ended itself.
const AFTERWARDS: Duration = Duration::from_secs(1);

/// How long an exchange may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimeLimits {
    /// In all, where that is bounded.
    pub deadline: Option<Duration>,
    /// Until its end, once the program was asked for that.
    pub grace: Duration,
}

/// A program with its standard input open.
///
/// Guarantees: as for [`super::Conversation`].
pub struct Talk {
    leader: Leader,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
}

impl Talk {
    /// Starts the program.
    pub fn start(program: &Program<'_>) -> Result<Self, ProcessError> {
        // With a pipe as its standard input.
        let mut leader = Leader::start(&Program { input: Some(&[]), ..*program })?;
        let child = &mut leader.child;
        let talk = Self { stdin: child.stdin.take(), stdout: child.stdout.take(), stderr: child.stderr.take(), leader };
        let nonblocking = talk.stdin.iter().try_for_each(os::set_nonblocking);
        let nonblocking = nonblocking.and_then(|()| talk.stdout.iter().try_for_each(os::set_nonblocking));
        nonblocking.and_then(|()| talk.stderr.iter().try_for_each(os::set_nonblocking)).map_err(failed)?;
        Ok(talk)
    }

    /// Sends bytes, and hands on what is said until `listen` has heard enough (`None`) or the program has ended; what it left behind
    /// is not waited for.
    ///
    /// Once it is cancelled, its standard input is closed, which asks it to end, and it gets a grace for that. Returns
    /// [`ProcessError::Cancelled`] where that is not enough, and [`ProcessError::Deadline`] where it takes too long.
    pub fn exchange(
        &mut self,
        messages: &[&[u8]],
        patience: TimeLimits,
        cancel: &Cancel,
        listen: &mut OutputHandler<'_>,
    ) -> Result<Option<Exit>, ProcessError> {
        let begun = Instant::now();
        let (mut asked, mut ended): (Option<Instant>, Option<Instant>) = (None, None);
        let mut left = messages.iter().copied().filter(|message| !message.is_empty());
        let mut message = left.next().unwrap_or_default();
        loop {
            if cancel.is_cancelled() {
                self.stdin = None;
                if asked.get_or_insert_with(Instant::now).elapsed() >= patience.grace {
                    return Err(ProcessError::Cancelled);
                }
            }
            if let Some(exit) = self.leader.exit() {
                let is_silent = self.stdout.is_none() && self.stderr.is_none();
                if is_silent || ended.get_or_insert_with(Instant::now).elapsed() > AFTERWARDS {
                    return Ok(Some(exit));
                }
            }
            if let Some(deadline) = patience.deadline.filter(|deadline| begun.elapsed() > *deadline) {
                return Err(ProcessError::Deadline { after: deadline, processes: Processes::default() });
            }
            let awaited = Awaited {
                stdin: self.stdin.as_ref().filter(|_| !message.is_empty()).map(AsFd::as_fd),
                stdout: self.stdout.as_ref().map(AsFd::as_fd),
                stderr: self.stderr.as_ref().map(AsFd::as_fd),
                exit: self.leader.awaited(),
                ..Awaited::default()
            };
            let ready = os::wait(&awaited, TICK).map_err(failed)?;
            if ready.stdin
                && let Some(pipe) = &self.stdin
            {
                match os::write(pipe, message).map_err(failed)? {
                    Moved::Bytes(count) => {
                        let rest = message.get(count..).filter(|rest| !rest.is_empty());
                        message = rest.or_else(|| left.next()).unwrap_or_default();
                    }
                    Moved::Blocked => {}
                    Moved::Closed => self.stdin = None,
                }
            }
            let mut goes_on = true;
            if ready.stderr {
                goes_on &= heard(&mut self.stderr, Stream::Stderr, listen)?;
            }
            if ready.stdout {
                goes_on &= heard(&mut self.stdout, Stream::Stdout, listen)?;
            }
            if ready.exit {
                self.leader.note_end().map_err(failed)?;
            }
            if !goes_on {
                return Ok(None);
            }
        }
    }
}

impl Drop for Talk {
    /// The program itself is ended with its [`Leader`]; here it is what it left behind.
    fn drop(&mut self) {
        self.leader.end_left_behind();
    }
}

fn heard<P: AsFd>(pipe: &mut Option<P>, stream: Stream, listen: &mut OutputHandler<'_>) -> Result<bool, ProcessError> {
    let Some(open) = pipe else { return Ok(true) };
    let mut chunk = Vec::new();
    match os::read(open, &mut chunk, CHUNK).map_err(failed)? {
        Moved::Bytes(_) => Ok(listen(stream, &chunk)),
        Moved::Blocked => Ok(true),
        Moved::Closed => {
            *pipe = None;
            Ok(true)
        }
    }
}

fn failed(source: std::io::Error) -> ProcessError {
    ProcessError::System { doing: "talk to the program", source }
}
