//! A program that is talked to in lines over its standard input and output by several threads, and answers in any order.

use std::io;
use std::os::fd::AsFd;
use std::process::{ChildStderr, ChildStdin, ChildStdout};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::leader::{Leader, Pipes};
use super::os::{self, Awaited, Moved};
use super::running::TICK;
use super::{ConversationError, Exit, ProcessError, Processes, Program};

const CHUNK: usize = 64 << 10;

/// How much is read at most of what a program wrote to its standard error before it ended.
const MOST_ERRORS: usize = 1 << 20;

/// The half of a dialogue that speaks to a program. Nothing here waits.
pub struct Speaker {
    stdin: Arc<ChildStdin>,
    unsent: Vec<u8>,
}

/// The half that hears a program, and the program itself.
///
/// Guarantees: as for [`super::Conversation`].
pub struct Hearer {
    leader: Leader,
    stdin: Option<Arc<ChildStdin>>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    /// The bytes that were read and are not a whole line yet.
    unread: Vec<u8>,
    /// How many of them are known to have no end of a line.
    seen: usize,
    /// The longest line that is taken.
    limit: usize,
    /// True once what it left behind was looked for.
    is_searched: bool,
}

/// The messages that came together.
#[derive(Default)]
pub struct HeardLines {
    /// The lines of its standard output, without their ends.
    pub lines: Vec<Vec<u8>>,
    /// The bytes on its standard error.
    pub errors: Vec<u8>,
}

/// Starts a program. Lines that are longer than `limit` bytes are an error.
pub fn start(program: &Program<'_>, limit: usize) -> Result<(Speaker, Hearer), ProcessError> {
    let (leader, Pipes { stdin, stdout, stderr }) = Leader::start_with_pipes(program)?;
    let stdin = Arc::new(stdin.ok_or_else(|| failed(io::ErrorKind::BrokenPipe.into()))?);
    let own = Some(Arc::clone(&stdin));
    let unread = Vec::new();
    let hearer = Hearer { leader, stdin: own, stdout, stderr, unread, seen: 0, limit, is_searched: false };
    Ok((Speaker { stdin, unsent: Vec::new() }, hearer))
}

impl Speaker {
    /// Says something, after what was said before; as much of it as the program takes now.
    pub fn say(&mut self, message: &[u8]) -> io::Result<()> {
        self.unsent.extend_from_slice(message);
        self.go_on()
    }

    /// Goes on with what is not said yet.
    pub fn go_on(&mut self) -> io::Result<()> {
        let mut said = 0;
        while let Some(rest) = self.unsent.get(said..).filter(|rest| !rest.is_empty()) {
            match os::write(&*self.stdin, rest)? {
                Moved::Bytes(count) => said += count,
                Moved::Blocked => break,
                Moved::Closed => return Err(io::ErrorKind::BrokenPipe.into()),
            }
        }
        self.unsent.drain(..said);
        Ok(())
    }

    /// Returns whether all was said.
    pub fn is_done(&self) -> bool {
        self.unsent.is_empty()
    }
}

impl Hearer {
    /// Waits for what it says, or until it takes more of what is said to it where somebody wants to say more, at most that long.
    ///
    /// An error is the end of the conversation. What it said before it ended is returned first.
    pub fn hear(&mut self, says_more: bool, timeout: Duration) -> Result<HeardLines, ConversationError> {
        let stdin = self.stdin.as_deref().filter(|_| says_more);
        let awaited = Awaited { stdin: stdin.map(AsFd::as_fd), ..self.awaited() };
        let ready = os::wait(&awaited, timeout).map_err(failed)?;
        if ready.exit {
            self.leader.note_end().map_err(failed)?;
        }
        let mut heard = HeardLines::default();
        if ready.stderr {
            read(&mut self.stderr, &mut heard.errors).map_err(failed)?;
        }
        if ready.stdout {
            read(&mut self.stdout, &mut self.unread).map_err(failed)?;
            self.take_lines(&mut heard.lines);
            if self.unread.len() > self.limit {
                return Err(ConversationError::TooMuch);
            }
        }
        let is_silent = heard.lines.is_empty() && heard.errors.is_empty();
        if is_silent && (self.stdout.is_none() || self.leader.exit().is_some() && !ready.stdout && !ready.stderr) {
            return Err(ConversationError::Ended(self.await_end()));
        }
        if heard.lines.iter().any(|line| line.len() > self.limit) { Err(ConversationError::TooMuch) } else { Ok(heard) }
    }

    /// Returns whether it has not ended.
    pub fn is_running(&mut self) -> bool {
        self.leader.note_end().is_ok() && self.leader.exit().is_none()
    }

    /// How much memory it takes with everything that it started, in bytes.
    pub fn resident_memory(&self) -> u64 {
        self.leader.tree.resident_memory()
    }

    /// The bytes that are on its standard error by now.
    pub fn last_errors(&mut self) -> Vec<u8> {
        let mut errors = Vec::new();
        loop {
            let before = errors.len();
            if before >= MOST_ERRORS || read(&mut self.stderr, &mut errors).is_err() || errors.len() == before {
                return errors;
            }
        }
    }

    /// Closes its standard input, which asks it to end. [`Self::end`] waits for that.
    ///
    /// Assumptions: the [`Speaker`] is gone.
    pub fn ask_to_end(&mut self) {
        self.stdin = None;
    }

    /// Closes its standard input, which asks it to end, and gives it that long before it is forced. Returns what it left behind,
    /// which is ended.
    ///
    /// Assumptions: the [`Speaker`] is gone.
    pub fn end(mut self, grace: Duration) -> Processes {
        self.stdin = None;
        let begun = Instant::now();
        while self.leader.exit().is_none()
            && let Some(left) = grace.checked_sub(begun.elapsed())
        {
            let Ok(ready) = os::wait(&self.awaited(), left.min(TICK)) else { break };
            let mut ignored = Vec::new();
            let read_out = !ready.stdout || read(&mut self.stdout, &mut ignored).is_ok();
            let read_errors = !ready.stderr || read(&mut self.stderr, &mut ignored).is_ok();
            if !(read_out && read_errors) || ready.exit && self.leader.note_end().is_err() {
                break;
            }
        }
        self.end_left_behind()
    }

    /// Ends what the program left behind, once it has ended. Returns what that was.
    ///
    /// All processes of the machine are looked at: the quick way can overlook one while others come and go. This is done once for a
    /// program that stays.
    fn end_left_behind(&mut self) -> Processes {
        if self.leader.exit().is_none() || std::mem::replace(&mut self.is_searched, true) {
            return Processes::default();
        }
        let left = self.leader.members();
        if !left.0.is_empty() {
            self.leader.end_all();
        }
        left
    }

    fn awaited(&self) -> Awaited<'_> {
        let (stdout, stderr) = (self.stdout.as_ref().map(AsFd::as_fd), self.stderr.as_ref().map(AsFd::as_fd));
        Awaited { stdout, stderr, exit: self.leader.awaited(), ..Awaited::default() }
    }

    fn take_lines(&mut self, lines: &mut Vec<Vec<u8>>) {
        let mut from = 0;
        while let Some(end) = self.unread.get(self.seen..).and_then(|rest| rest.iter().position(|byte| *byte == b'\n'))
        {
            let end = self.seen + end;
            lines.push(self.unread.get(from..end).unwrap_or_default().to_vec());
            from = end + 1;
            self.seen = from;
        }
        self.unread.drain(..from);
        self.seen = self.unread.len();
    }

    /// How it ended, if it does so in a moment.
    fn await_end(&mut self) -> Option<Exit> {
        let begun = Instant::now();
        while self.leader.exit().is_none()
            && let Some(left) = TICK.checked_sub(begun.elapsed())
        {
            let exit = Awaited { exit: self.leader.awaited(), ..Awaited::default() };
            os::wait(&exit, left).ok().filter(|ready| ready.exit)?;
            self.leader.note_end().ok()?;
        }
        self.leader.exit()
    }
}

impl Drop for Hearer {
    /// The program itself is ended with its [`Leader`]; here it is what it left behind.
    fn drop(&mut self) {
        self.end_left_behind();
    }
}

fn read<P: AsFd>(pipe: &mut Option<P>, into: &mut Vec<u8>) -> io::Result<()> {
    let Some(open) = pipe else { return Ok(()) };
    if let Moved::Closed = os::read(open, into, CHUNK)? {
        *pipe = None;
    }
    Ok(())
}

fn failed(source: io::Error) -> ProcessError {
    ProcessError::System { doing: "talk to the program", source }
}
