//! The output of a worker during a call: handed on by lines, limited, and its end kept for the message of a failure.
//!
//! Only whole lines are handed on: of a line that is cut, the part of a secret could not be recognized.

use stead_system::process::Stream;

/// How much is handed on of one call. The line that goes beyond it and what is behind that are read and counted.
const MOST: usize = 1 << 20;

/// How much is kept of the end of standard error.
const TAIL: usize = 4 << 10;

/// The outputs of a program during one call.
#[derive(Default)]
pub(super) struct Printed {
    lines: [Vec<u8>; 2],
    taken: usize,
    left_out: usize,
    tail: Vec<u8>,
    /// True if the tail begins within a line.
    is_tail_cut: bool,
}

impl Printed {
    /// Takes bytes and hands on the lines that they complete.
    pub(super) fn take(&mut self, stream: Stream, bytes: &[u8], line: &mut dyn FnMut(String)) {
        let index = match stream {
            Stream::Stdout => 0,
            Stream::Stderr => {
                self.keep(bytes);
                1
            }
        };
        let room = MOST.saturating_sub(self.taken).min(bytes.len());
        self.taken += room;
        self.left_out += bytes.len() - room;
        let Some(open) = self.lines.get_mut(index) else { return };
        for part in bytes.get(..room).unwrap_or_default().split_inclusive(|byte| *byte == b'\n') {
            open.extend_from_slice(part);
            if part.ends_with(b"\n") {
                hand_on(&std::mem::take(open), line);
            }
        }
    }

    /// The call is over: hands on what has no line end, and how much was left out.
    pub(super) fn finish(&mut self, line: &mut dyn FnMut(String)) {
        for open in self.lines.each_mut().map(std::mem::take) {
            if self.left_out == 0 {
                hand_on(&open, line);
            } else {
                self.left_out += open.len();
            }
        }
        if self.left_out > 0 {
            line(format!("output truncated: {} more bytes", self.left_out));
        }
    }

    /// The last lines of standard error.
    pub(super) fn tail(&self) -> String {
        let from = self.tail.len().saturating_sub(TAIL);
        let end = self.tail.get(from..).unwrap_or_default();
        let is_cut = self.is_tail_cut || from > 0;
        let first = if is_cut { end.iter().position(|byte| *byte == b'\n').unwrap_or(end.len()) } else { 0 };
        String::from_utf8_lossy(end.get(first..).unwrap_or_default()).trim().to_owned()
    }

    fn keep(&mut self, bytes: &[u8]) {
        let from = bytes.len().saturating_sub(TAIL);
        if from > 0 {
            self.tail.clear();
        }
        self.tail.extend_from_slice(bytes.get(from..).unwrap_or_default());
        let surplus = if self.tail.len() > 4 * TAIL { self.tail.len() - TAIL } else { 0 };
        self.tail.drain(..surplus);
        self.is_tail_cut |= from + surplus > 0;
    }
}

fn hand_on(bytes: &[u8], line: &mut dyn FnMut(String)) {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_end();
    if !text.is_empty() {
        line(text.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_read_and_not_kept() {
        let mut printed = Printed::default();
        let mut lines = Vec::new();
        for _ in 0..160 {
            printed.take(Stream::Stderr, &b"x".repeat(64 << 10), &mut |line| lines.push(line));
        }
        printed.take(Stream::Stderr, b"\nthe end\n", &mut |line| lines.push(line));
        printed.finish(&mut |line| lines.push(line));
        assert_eq!(lines, ["output truncated: 10485769 more bytes"]);
        assert_eq!(printed.tail(), "the end");
    }

    /// Whoever covers secrets sees whole lines.
    #[test]
    fn no_line_is_cut() {
        let long = "x".repeat(100 << 10) + "secret" + &"y".repeat(100 << 10);
        let mut printed = Printed::default();
        let mut lines = Vec::new();
        for piece in format!("{long}\n{long}").as_bytes().chunks(4 << 10) {
            printed.take(Stream::Stderr, piece, &mut |line| lines.push(line));
        }
        assert_eq!(printed.tail(), "", "the last line is longer than what is kept of it");
        printed.finish(&mut |line| lines.push(line));
        assert_eq!(lines, [long.clone(), long]);
    }
}
