//! A program that is asked again and again while it runs: a line in, a line out.

use std::os::fd::AsFd;
use std::process::{ChildStderr, ChildStdin, ChildStdout};
use std::time::{Duration, Instant};

use super::leader::{Leader, Pipes};
use super::os::{self, Awaited, Moved};
use super::running::TICK;
use super::{Exit, ProcessError, Program};
use crate::cancel::Cancel;

/// The longest line that is taken for an answer.
const LONGEST_ANSWER: usize = 64 << 10;

/// How much may be written to standard error for one answer.
const MOST_ERRORS: usize = 1 << 20;

const CHUNK: usize = 4 << 10;

/// A program that answers lines with lines.
///
/// Guarantees: when it is dropped, the program and every process that it started are gone, by force if need be. It ends
/// with this process if there is a [`super::Supervision`].
pub struct Conversation {
    leader: Leader,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    /// The bytes that were read and not returned.
    unread: Vec<u8>,
}

/// Why there is no answer. The program is of no use any more.
#[derive(Debug, thiserror::Error)]
pub enum ConversationError {
    /// It could not be started, or not be talked to.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// It ended, or closed its standard output.
    #[error("it ended{}", .0.map(|exit| format!(": {exit}")).unwrap_or_default())]
    Ended(Option<Exit>),
    /// It was silent for too long.
    #[error("it did not answer within {0:?}")]
    Silent(Duration),
    /// It wrote a longer line than is read, or more to its standard error.
    #[error("it wrote too much")]
    TooMuch,
    /// It wrote something that it was not asked for.
    #[error("it wrote a line without being asked")]
    Unasked,
}

impl Conversation {
    /// Starts the program.
    pub fn start(program: &Program<'_>) -> Result<Self, ConversationError> {
        let (leader, Pipes { stdin, stdout, stderr }) = Leader::start_with_pipes(program)?;
        Ok(Self { leader, stdin, stdout, stderr, unread: Vec::new() })
    }

    /// The line that answers `question`, without its end. An empty question waits for what the program says first.
    ///
    /// The standard error that the program writes meanwhile is handed to `errors`. Returns within the deadline.
    pub fn ask(
        &mut self,
        question: &[u8],
        deadline: Duration,
        cancel: &Cancel,
        errors: &mut dyn FnMut(&[u8]),
    ) -> Result<Vec<u8>, ConversationError> {
        let begun = Instant::now();
        let mut exchange = Exchange { rest: &[], errors, error_bytes: 0 };
        if !question.is_empty() {
            self.advance(Duration::ZERO, &mut exchange)?;
            if !self.unread.is_empty() {
                return Err(ConversationError::Unasked);
            }
            exchange.rest = question;
        }
        loop {
            if let Some(line) = self.take_line() {
                return Ok(line);
            }
            if self.stdout.is_none() {
                return Err(ConversationError::Ended(self.await_end(&mut exchange)));
            }
            if cancel.is_cancelled() {
                return Err(ProcessError::Cancelled.into());
            }
            let left = deadline.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Err(ConversationError::Silent(deadline));
            }
            self.advance(left.min(TICK), &mut exchange)?;
        }
    }

    /// Ends it: the end of its standard input asks it to, and after a grace it is forced.
    pub fn end(mut self, grace: Duration, errors: &mut dyn FnMut(&[u8])) {
        self.stdin = None;
        let begun = Instant::now();
        let mut exchange = Exchange { rest: &[], errors, error_bytes: 0 };
        while self.leader.exit().is_none() && begun.elapsed() < grace {
            self.unread.clear();
            if self.advance(grace.saturating_sub(begun.elapsed()).min(TICK), &mut exchange).is_err() {
                break;
            }
        }
        // What it said last.
        let _ = self.advance(Duration::ZERO, &mut exchange);
    }

    fn take_line(&mut self) -> Option<Vec<u8>> {
        let end = self.unread.iter().position(|byte| *byte == b'\n')?;
        let rest = self.unread.split_off(end + 1);
        let mut line = std::mem::replace(&mut self.unread, rest);
        line.truncate(end);
        Some(line)
    }

    /// Moves what can be moved, waiting for that at most so long.
    fn advance(&mut self, timeout: Duration, exchange: &mut Exchange<'_, '_>) -> Result<(), ConversationError> {
        let awaited = Awaited {
            stdin: self.stdin.as_ref().filter(|_| !exchange.rest.is_empty()).map(AsFd::as_fd),
            stdout: self.stdout.as_ref().map(AsFd::as_fd),
            stderr: self.stderr.as_ref().map(AsFd::as_fd),
            exit: self.leader.awaited(),
            ..Awaited::default()
        };
        let ready = os::wait(&awaited, timeout).map_err(failed)?;
        if ready.stderr {
            self.read_errors(exchange)?;
        }
        if ready.stdout {
            self.read_answer()?;
        }
        if ready.stdin {
            self.write(exchange)?;
        }
        if ready.exit {
            self.leader.note_end().map_err(failed)?;
        }
        Ok(())
    }

    fn write(&mut self, exchange: &mut Exchange<'_, '_>) -> Result<(), ConversationError> {
        let Some(pipe) = &self.stdin else { return Ok(()) };
        match os::write(pipe, exchange.rest).map_err(failed)? {
            Moved::Bytes(count) => exchange.rest = exchange.rest.get(count..).unwrap_or_default(),
            Moved::Blocked => {}
            // It may answer all the same; otherwise it is silent.
            Moved::Closed => self.stdin = None,
        }
        Ok(())
    }

    fn read_answer(&mut self) -> Result<(), ConversationError> {
        let Some(pipe) = &self.stdout else { return Ok(()) };
        if let Moved::Closed = os::read(pipe, &mut self.unread, CHUNK).map_err(failed)? {
            self.stdout = None;
        }
        if self.unread.len() > LONGEST_ANSWER { Err(ConversationError::TooMuch) } else { Ok(()) }
    }

    fn read_errors(&mut self, exchange: &mut Exchange<'_, '_>) -> Result<(), ConversationError> {
        let Some(pipe) = &self.stderr else { return Ok(()) };
        let mut chunk = Vec::new();
        match os::read(pipe, &mut chunk, CHUNK).map_err(failed)? {
            Moved::Bytes(count) => exchange.error_bytes += count,
            Moved::Blocked => {}
            Moved::Closed => self.stderr = None,
        }
        (exchange.errors)(&chunk);
        if exchange.error_bytes > MOST_ERRORS { Err(ConversationError::TooMuch) } else { Ok(()) }
    }

    /// How it ended, if it does so in a moment, and what it said last.
    fn await_end(&mut self, exchange: &mut Exchange<'_, '_>) -> Option<Exit> {
        let begun = Instant::now();
        while self.leader.exit().is_none() && begun.elapsed() < TICK {
            self.advance(TICK.saturating_sub(begun.elapsed()), exchange).ok()?;
        }
        let _ = self.advance(Duration::ZERO, exchange);
        self.leader.exit()
    }
}

impl Drop for Conversation {
    /// The program itself is ended with its [`Leader`]; here it is what it left behind.
    fn drop(&mut self) {
        if self.leader.exit().is_some() && self.leader.tree.has_survivors() {
            self.leader.end_all();
        }
    }
}

/// The exchange with a program for one answer.
struct Exchange<'q, 'e> {
    /// The bytes that are still to be written.
    rest: &'q [u8],
    errors: &'e mut dyn FnMut(&[u8]),
    error_bytes: usize,
}

fn failed(source: std::io::Error) -> ProcessError {
    ProcessError::System { doing: "talk to the program", source }
}
