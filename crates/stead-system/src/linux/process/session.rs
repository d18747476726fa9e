//! A program that is talked to over a socket of its own while it runs: what it prints is not part of the protocol.

use std::io;
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::process::{ChildStderr, ChildStdout};
use std::time::{Duration, Instant};

use super::leader::Leader;
use super::os::{self, Awaited, Moved, Ready, procfs};
use super::running::TICK;
use super::{ConversationError, ProcessError, Program, Stream};
use crate::cancel::Cancel;
use crate::linux::socket::{self, Listener};

const CHUNK: usize = 64 << 10;

/// A program that connected to a socket.
///
/// Guarantees: as for [`super::Conversation`].
pub struct ProgramSession {
    leader: Leader,
    channel: socket::Connection,
    printed: Printed,
    /// The bytes that were read and are not a whole line yet.
    unread: Vec<u8>,
    /// How many of them are known to have no end of a line: the parts of a long line are looked through once.
    seen: usize,
    /// The longest line that is taken.
    limit: usize,
    /// True once the program was asked to end.
    asked: bool,
}

/// An event of a program while it is waited for.
pub enum Heard<'a> {
    /// It sent a line, here without its end.
    Line(&'a [u8]),
    /// It printed.
    Printed(Stream, &'a [u8]),
}

/// Decides by what was heard whether to wait any longer.
pub type Hear<'a> = dyn FnMut(Heard<'_>) -> ControlFlow<()> + 'a;

impl ProgramSession {
    /// Starts the program and waits for it to connect. A process that does not belong to it is turned away.
    ///
    /// Lines that are longer than `limit` bytes end the session.
    pub fn start(
        program: &Program<'_>,
        listener: &Listener,
        limit: usize,
        deadline: Duration,
        cancel: &Cancel,
        hear: &mut Hear<'_>,
    ) -> Result<Self, ConversationError> {
        let begun = Instant::now();
        let mut leader = Leader::start(program)?;
        let mut printed = Printed::of(&mut leader).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        loop {
            let left = remaining(begun, deadline, cancel)?;
            let awaited = Awaited { channel: Some(listener.as_fd()), ..printed.awaited(&leader) };
            let ready = os::wait(&awaited, left.min(TICK)).map_err(failed)?;
            printed.read(ready, hear).map_err(failed)?;
            if ready.channel
                && let Ok(channel) = listener.next_connection()
                && belongs(&channel, leader.child.id())
            {
                channel.set_nonblocking(true).map_err(failed)?;
                return Ok(Self { leader, channel, printed, unread: Vec::new(), seen: 0, limit, asked: false });
            }
            if ready.exit {
                leader.note_end().map_err(failed)?;
                printed.drain(hear);
                leader.end_left_behind();
                return Err(ConversationError::Ended(leader.exit()));
            }
        }
    }

    /// Sends bytes and hands on what is heard until `hear` has heard enough. Returns within the deadline; after an error the
    /// program is of no use any more. Nothing is sent to one that has sent something unasked.
    pub fn exchange(
        &mut self,
        message: &[u8],
        deadline: Duration,
        cancel: &Cancel,
        hear: &mut Hear<'_>,
    ) -> Result<(), ConversationError> {
        if self.is_quiet() { self.converse(message, deadline, cancel, hear) } else { Err(ConversationError::Unasked) }
    }

    /// Hands on what is heard, as [`Self::exchange`] does, of a program that speaks first.
    pub fn listen(
        &mut self,
        deadline: Duration,
        cancel: &Cancel,
        hear: &mut Hear<'_>,
    ) -> Result<(), ConversationError> {
        self.converse(&[], deadline, cancel, hear)
    }

    fn converse(
        &mut self,
        mut message: &[u8],
        deadline: Duration,
        cancel: &Cancel,
        hear: &mut Hear<'_>,
    ) -> Result<(), ConversationError> {
        let begun = Instant::now();
        loop {
            if self.take_lines(hear).is_break() {
                // What was printed before the last line is there already.
                self.printed.drain(hear);
                return Ok(());
            }
            let left = remaining(begun, deadline, cancel)?;
            let writing = (!message.is_empty()).then(|| self.channel.as_fd());
            let channel = Some(self.channel.as_fd());
            let awaited = Awaited { stdin: writing, channel, ..self.printed.awaited(&self.leader) };
            let ready = os::wait(&awaited, left.min(TICK)).map_err(failed)?;
            self.printed.read(ready, hear).map_err(failed)?;
            if ready.stdin
                && let Moved::Bytes(count) = os::write(&self.channel, message).map_err(failed)?
            {
                message = message.get(count..).unwrap_or_default();
            }
            if ready.channel && self.read()? || ready.exit {
                if self.take_lines(hear).is_break() {
                    return Ok(());
                }
                return Err(ConversationError::Ended(self.await_end(hear)));
            }
        }
    }

    /// Closes the socket, which asks the program to end. [`Self::end`] waits for that.
    pub fn ask_to_end(&mut self) {
        self.asked = self.asked || self.channel.end().is_ok();
    }

    /// Closes the socket, which asks the program to end, and gives it that long before it is forced.
    pub fn end(mut self, grace: Duration) {
        let begun = Instant::now();
        self.ask_to_end();
        while self.asked
            && self.leader.exit().is_none()
            && let Some(left) = grace.checked_sub(begun.elapsed())
        {
            let Ok(ready) = os::wait(&self.printed.awaited(&self.leader), left.min(TICK)) else { return };
            let read = self.printed.read(ready, &mut |_| ControlFlow::Continue(()));
            if read.is_err() || (ready.exit && self.leader.note_end().is_err()) {
                return;
            }
        }
    }

    /// How much memory the program takes with everything that it started, in bytes.
    pub fn resident_memory(&self) -> u64 {
        self.leader.tree.resident_memory()
    }

    /// Returns whether nothing came from it that was not asked for. That its socket is closed is seen when it is talked to.
    pub fn is_quiet(&mut self) -> bool {
        let awaited = Awaited { channel: Some(self.channel.as_fd()), ..Awaited::default() };
        let is_readable = os::wait(&awaited, Duration::ZERO).is_ok_and(|ready| ready.channel);
        (!is_readable || self.read().is_ok()) && self.unread.is_empty()
    }

    /// Returns whether it has not ended.
    pub fn is_running(&mut self) -> bool {
        self.leader.note_end().is_ok() && self.leader.exit().is_none()
    }

    /// Reads what is there; whether the other end is closed.
    fn read(&mut self) -> Result<bool, ConversationError> {
        let closed = match os::read(&self.channel, &mut self.unread, CHUNK) {
            Ok(moved) => matches!(moved, Moved::Closed),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => true,
            Err(error) => return Err(failed(error).into()),
        };
        if self.unread.len() > self.limit + CHUNK { Err(ConversationError::TooMuch) } else { Ok(closed) }
    }

    fn take_lines(&mut self, hear: &mut Hear<'_>) -> ControlFlow<()> {
        let mut from = 0;
        let mut flow = ControlFlow::Continue(());
        while flow.is_continue()
            && let Some(end) = self.unread.get(self.seen..).and_then(|rest| rest.iter().position(|byte| *byte == b'\n'))
        {
            let end = self.seen + end;
            flow = hear(Heard::Line(self.unread.get(from..end).unwrap_or_default()));
            from = end + 1;
            self.seen = from;
        }
        self.unread.drain(..from);
        self.seen = if flow.is_continue() { self.unread.len() } else { 0 };
        flow
    }

    /// How it ended, if it does so in a moment, and what it printed last.
    fn await_end(&mut self, hear: &mut Hear<'_>) -> Option<super::Exit> {
        let begun = Instant::now();
        while self.leader.exit().is_none()
            && let Some(left) = TICK.checked_sub(begun.elapsed())
        {
            let ready = os::wait(&self.printed.awaited(&self.leader), left).ok()?;
            self.printed.read(ready, hear).ok()?;
            if ready.exit {
                self.leader.note_end().ok()?;
            }
        }
        self.printed.drain(hear);
        self.leader.exit()
    }
}

impl Drop for ProgramSession {
    /// The program itself is ended with its [`Leader`]; here it is what it left behind.
    fn drop(&mut self) {
        self.leader.end_left_behind();
    }
}

/// The output of a program.
struct Printed {
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
}

impl Printed {
    fn of(leader: &mut Leader) -> io::Result<Self> {
        let printed = Self { stdout: leader.child.stdout.take(), stderr: leader.child.stderr.take() };
        printed.stdout.iter().try_for_each(os::set_nonblocking)?;
        printed.stderr.iter().try_for_each(os::set_nonblocking)?;
        Ok(printed)
    }

    fn awaited<'a>(&'a self, leader: &'a Leader) -> Awaited<'a> {
        let (stdout, stderr) = (self.stdout.as_ref().map(AsFd::as_fd), self.stderr.as_ref().map(AsFd::as_fd));
        Awaited { stdout, stderr, exit: leader.awaited(), ..Awaited::default() }
    }

    /// Hands on a piece of what is there; whether there was any.
    fn read(&mut self, ready: Ready, hear: &mut Hear<'_>) -> io::Result<bool> {
        let stdout = ready.stdout && read(&mut self.stdout, Stream::Stdout, hear)?;
        let stderr = ready.stderr && read(&mut self.stderr, Stream::Stderr, hear)?;
        Ok(stdout || stderr)
    }

    /// Hands on what was printed so far, but not without end.
    fn drain(&mut self, hear: &mut Hear<'_>) {
        const MOST_PIECES: usize = 64;
        let both = Ready { stdout: true, stderr: true, ..Ready::default() };
        for _ in 0..MOST_PIECES {
            if !self.read(both, hear).unwrap_or(false) {
                return;
            }
        }
    }
}

fn read<P: AsFd>(pipe: &mut Option<P>, stream: Stream, hear: &mut Hear<'_>) -> io::Result<bool> {
    let Some(open) = pipe else { return Ok(false) };
    let mut chunk = Vec::new();
    match os::read(open, &mut chunk, CHUNK)? {
        Moved::Bytes(_) => {
            let _ = hear(Heard::Printed(stream, &chunk));
            return Ok(true);
        }
        Moved::Blocked => {}
        Moved::Closed => *pipe = None,
    }
    Ok(false)
}

/// Returns whether the other end is a process of the group that the program leads.
fn belongs(channel: &socket::Connection, leader: u32) -> bool {
    let group = channel.process().and_then(procfs::stat).map(|process| process.group);
    group.is_some() && group == i32::try_from(leader).ok()
}

fn remaining(begun: Instant, deadline: Duration, cancel: &Cancel) -> Result<Duration, ConversationError> {
    if cancel.is_cancelled() {
        return Err(ProcessError::Cancelled.into());
    }
    let left = deadline.checked_sub(begun.elapsed()).filter(|left| !left.is_zero());
    left.ok_or(ConversationError::Silent(deadline))
}

fn failed(source: io::Error) -> ProcessError {
    ProcessError::System { doing: "talk to the program", source }
}
