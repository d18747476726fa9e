//! A program that is talked to over its standard input while it runs, and says what it likes, as long as it likes.

use std::os::fd::AsFd;
use std::process::{ChildStderr, ChildStdin, ChildStdout};
use std::time::{Duration, Instant};

use super::leader::Leader;
use super::os::{self, Awaited, Moved};
use super::running::TICK;
use super::{Exit, ProcessError, Program, Stream};
use crate::cancel::Cancel;

const CHUNK: usize = 64 << 10;

/// What is done with what a program says: the end of the talk where it returns false.
pub type Listener<'a> = dyn FnMut(Stream, &[u8]) -> bool + 'a;

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

    /// Sends bytes, and hands on what is said until `listen` has heard enough (`None`) or the program has ended.
    ///
    /// Once it is cancelled, or this end is to be the last, its standard input is closed, which asks it to end, and it gets `grace`
    /// for that. Returns [`ProcessError::Cancelled`] where that is not enough.
    pub fn exchange(
        &mut self,
        messages: &[&[u8]],
        grace: Duration,
        cancel: &Cancel,
        listen: &mut Listener<'_>,
    ) -> Result<Option<Exit>, ProcessError> {
        let mut asked: Option<Instant> = None;
        let mut left = messages.iter().copied().filter(|message| !message.is_empty());
        let mut message = left.next().unwrap_or_default();
        loop {
            if cancel.is_cancelled() {
                self.stdin = None;
                if asked.get_or_insert_with(Instant::now).elapsed() > grace {
                    return Err(ProcessError::Cancelled);
                }
            }
            if self.stdout.is_none() && self.stderr.is_none() && self.leader.exit().is_some() {
                return Ok(self.leader.exit());
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

fn heard<P: AsFd>(pipe: &mut Option<P>, stream: Stream, listen: &mut Listener<'_>) -> Result<bool, ProcessError> {
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
