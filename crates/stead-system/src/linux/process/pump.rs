//! The bytes of one call: in and out at the same time, without ever waiting for one of the pipes alone.

use std::io;
use std::os::fd::AsFd;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout};

use super::os::{self, Awaited, Moved, Ready};
use super::{ProcessError, Stream};

/// As much as a pipe holds; more would not be there at once.
const CHUNK: usize = 64 << 10;

/// The three pipes of a program; each is closed as soon as nothing more can go through it.
pub(super) struct Pump<'a> {
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    /// The bytes that are still to be written.
    input: &'a [u8],
    /// The bytes that were read from standard output.
    pub(super) output: Vec<u8>,
    /// How many bytes were read from standard error.
    pub(super) error_bytes: usize,
    chunk: Vec<u8>,
    limit: usize,
}

impl<'a> Pump<'a> {
    pub(super) fn new(child: &mut Child, input: &'a [u8], limit: usize) -> io::Result<Self> {
        let pump = Self {
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            input,
            output: Vec::new(),
            error_bytes: 0,
            chunk: Vec::new(),
            limit,
        };
        pump.stdin.iter().try_for_each(os::set_nonblocking)?;
        pump.stdout.iter().try_for_each(os::set_nonblocking)?;
        pump.stderr.iter().try_for_each(os::set_nonblocking)?;
        Ok(pump)
    }

    /// Returns whether both outputs are closed by everybody.
    pub(super) fn is_closed(&self) -> bool {
        self.stdout.is_none() && self.stderr.is_none()
    }

    /// Returns whether the program has all of its input, or does not want it.
    pub(super) fn is_fed(&self) -> bool {
        self.stdin.is_none()
    }

    /// The pipes that something may still go through.
    pub(super) fn awaited(&self) -> Awaited<'_> {
        Awaited {
            stdin: self.stdin.as_ref().map(AsFd::as_fd),
            stdout: self.stdout.as_ref().map(AsFd::as_fd),
            stderr: self.stderr.as_ref().map(AsFd::as_fd),
            ..Awaited::default()
        }
    }

    /// Gives up writing: nobody reads any more.
    pub(super) fn close_input(&mut self) {
        self.stdin = None;
    }

    /// Moves what can be moved without waiting.
    pub(super) fn advance(&mut self, ready: Ready, errors: &mut dyn FnMut(&[u8])) -> Result<(), ProcessError> {
        let failed = |doing| move |source| ProcessError::System { doing, source };
        if ready.stdin {
            self.write().map_err(failed("write to the standard input of the program"))?;
        }
        if ready.stdout {
            self.read_output().map_err(failed("read the standard output of the program"))?;
            self.check(self.output.len(), Stream::Stdout)?;
        }
        if ready.stderr {
            self.read_errors(errors).map_err(failed("read the standard error of the program"))?;
            self.check(self.error_bytes, Stream::Stderr)?;
        }
        Ok(())
    }

    /// Reads and forgets, so that a program that is asked to end does not hang on a full pipe.
    pub(super) fn discard(&mut self, ready: Ready) {
        self.close_input();
        self.output.clear();
        if ready.stdout && self.read_output().is_err() {
            self.stdout = None;
        }
        if ready.stderr && self.read_errors(&mut |_| {}).is_err() {
            self.stderr = None;
        }
    }

    fn check(&self, bytes: usize, stream: Stream) -> Result<(), ProcessError> {
        if bytes > self.limit { Err(ProcessError::OutputLimit { stream, limit: self.limit }) } else { Ok(()) }
    }

    fn write(&mut self) -> io::Result<()> {
        let Some(pipe) = &self.stdin else { return Ok(()) };
        match os::write(pipe, self.input)? {
            Moved::Bytes(count) => self.input = self.input.get(count..).unwrap_or_default(),
            Moved::Blocked => {}
            // It does not want to read the rest, which is its good right.
            Moved::Closed => self.input = &[],
        }
        if self.input.is_empty() {
            self.stdin = None;
        }
        Ok(())
    }

    fn read_output(&mut self) -> io::Result<()> {
        let Some(pipe) = &self.stdout else { return Ok(()) };
        if let Moved::Closed = os::read(pipe, &mut self.output, CHUNK)? {
            self.stdout = None;
        }
        Ok(())
    }

    fn read_errors(&mut self, errors: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        let Some(pipe) = &self.stderr else { return Ok(()) };
        self.chunk.clear();
        match os::read(pipe, &mut self.chunk, CHUNK)? {
            Moved::Bytes(count) => {
                self.error_bytes = self.error_bytes.saturating_add(count);
                errors(&self.chunk);
            }
            Moved::Blocked => {}
            Moved::Closed => self.stderr = None,
        }
        Ok(())
    }
}
