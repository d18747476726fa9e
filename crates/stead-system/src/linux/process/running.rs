//! One call from its start to the moment when nothing of it is left.

use std::io;
use std::time::{Duration, Instant};

use super::leader::Leader;
use super::os::{self, Awaited, End, Ready};
use super::pump::Pump;
use super::tree::PATIENCE;
use super::{Exit, Finished, Limits, ProcessError, Processes, Program};
use crate::cancel::Cancel;

/// How often the flag that cancels is looked at.
pub(super) const TICK: Duration = Duration::from_millis(100);

/// How long a program that floods may take to end: every moment of it costs a processor.
const FLOOD_GRACE: Duration = Duration::from_secs(1);

/// How long a program that only reads may take to end after its call was cancelled.
const READER_GRACE: Duration = Duration::from_millis(200);

/// How long at most only the end of a program is waited for: most read what they are given, answer with less than a pipe holds, and
/// end, and to wake up for each of that takes longer than they do. One that writes more waits so long, once.
const BRIEF: Duration = Duration::from_millis(3);

/// A program under way.
pub(super) struct Running<'a> {
    leader: Leader,
    pump: Pump<'a>,
    limits: &'a Limits,
    begun: Instant,
}

impl<'a> Running<'a> {
    pub(super) fn start(program: &Program<'a>, limits: &'a Limits) -> Result<Self, ProcessError> {
        let begun = Instant::now();
        let mut leader = Leader::start(program)?;
        let pump = Pump::new(&mut leader.child, program.input.unwrap_or_default(), limits.output)
            .map_err(|source| ProcessError::System { doing: "watch the program", source })?;
        Ok(Self { leader, pump, limits, begun })
    }

    /// Follows the program to its end and makes sure that it was the end of all of it.
    pub(super) fn finish(mut self, cancel: &Cancel, errors: &mut dyn FnMut(&[u8])) -> Result<Finished, ProcessError> {
        let exit = match self.follow(cancel, errors) {
            Ok(exit) => exit,
            Err(cause) => return Err(self.end(cause)),
        };
        if !self.pump.is_closed() || self.leader.tree.has_survivors() {
            self.settle(exit, cancel)?;
        }
        let stdout = std::mem::take(&mut self.pump.output);
        Ok(Finished { exit, stdout, stderr_bytes: self.pump.error_bytes })
    }

    /// Moves bytes until the program ended and its outputs are closed, or have not been for too long after it.
    fn follow(&mut self, cancel: &Cancel, errors: &mut dyn FnMut(&[u8])) -> Result<Exit, ProcessError> {
        let mut ended: Option<Instant> = None;
        self.follow_briefly(errors)?;
        loop {
            if let Some(exit) = self.leader.exit() {
                let since = ended.get_or_insert_with(Instant::now);
                if self.pump.is_closed() || since.elapsed() >= self.limits.settle {
                    return Ok(exit);
                }
            }
            if cancel.is_cancelled() {
                return Err(ProcessError::Cancelled);
            }
            let Some(left) = self.limits.deadline.checked_sub(self.begun.elapsed()).filter(|left| !left.is_zero())
            else {
                return Err(ProcessError::Deadline { after: self.limits.deadline, processes: Processes::default() });
            };
            let ready = self.wait(left.min(TICK))?;
            self.pump.advance(ready, errors)?;
        }
    }

    /// Gives the program its input and waits a moment for its end; what it wrote is read then.
    fn follow_briefly(&mut self, errors: &mut dyn FnMut(&[u8])) -> Result<(), ProcessError> {
        self.pump.advance(Ready { stdin: true, ..Ready::default() }, errors)?;
        if !self.pump.is_fed() {
            return Ok(());
        }
        let awaited = Awaited { exit: self.leader.awaited(), ..Awaited::default() };
        let ready = os::wait(&awaited, BRIEF.min(self.limits.deadline));
        if self.noted(ready)?.exit {
            let written = Ready { stdout: true, stderr: true, ..Ready::default() };
            // What there is, and its end.
            self.pump.advance(written, errors)?;
            self.pump.advance(written, errors)?;
        }
        Ok(())
    }

    fn wait(&mut self, timeout: Duration) -> Result<Ready, ProcessError> {
        let ready = os::wait(&Awaited { exit: self.leader.awaited(), ..self.pump.awaited() }, timeout);
        self.noted(ready)
    }

    /// Takes in that the program ended, if it did.
    fn noted(&mut self, ready: io::Result<Ready>) -> Result<Ready, ProcessError> {
        let failed = |source| ProcessError::System { doing: "wait for the program", source };
        let ready = ready.map_err(failed)?;
        if ready.exit {
            self.leader.note_end().map_err(failed)?;
            self.pump.close_input();
        }
        Ok(ready)
    }

    /// The program ended, and something of it may be left: lets that end by itself for a moment, then by force.
    fn settle(&mut self, exit: Exit, cancel: &Cancel) -> Result<(), ProcessError> {
        let begun = Instant::now();
        while self.pump.is_closed() && begun.elapsed() < self.limits.settle && !cancel.is_cancelled() {
            std::thread::sleep(Duration::from_millis(5));
            if !self.leader.tree.has_survivors() {
                return Ok(());
            }
        }
        let left = self.leader.members();
        let immortal = self.leader.end_all();
        if !immortal.0.is_empty() {
            return Err(ProcessError::Immortal { processes: immortal });
        }
        if left.0.is_empty() && self.pump.is_closed() {
            return Ok(());
        }
        Err(ProcessError::LeftBehind { exit, processes: left })
    }

    /// Ends everything: asks the group, waits for a grace, then forces whatever is there.
    fn end(&mut self, cause: ProcessError) -> ProcessError {
        let left = self.leader.members();
        let grace = match cause {
            ProcessError::OutputLimit { .. } => self.limits.grace.min(FLOOD_GRACE),
            ProcessError::Cancelled if !self.limits.changes => self.limits.grace.min(READER_GRACE),
            _ => self.limits.grace,
        };
        self.leader.end_group(End::Ask);
        self.drain(grace);
        self.leader.end_group(End::Force);
        let immortal = self.leader.end_all();
        self.drain(PATIENCE);
        match cause {
            _ if !immortal.0.is_empty() => ProcessError::Immortal { processes: immortal },
            ProcessError::Deadline { after, .. } => ProcessError::Deadline { after, processes: left },
            other => other,
        }
    }

    /// Waits for the program to end, reading what it writes and forgetting it.
    fn drain(&mut self, at_most: Duration) {
        let begun = Instant::now();
        while let Some(left) = at_most.checked_sub(begun.elapsed())
            && self.leader.exit().is_none()
        {
            match self.wait(left.min(TICK)) {
                Ok(ready) => self.pump.discard(ready),
                Err(_) => return,
            }
        }
    }
}
