//! What a worker prints during a call: handed on by lines, limited, and its end kept for the message of a failure.

use stead_host::process::Stream;

/// How much is handed on of one call. What is behind it is read and counted.
const MOST: usize = 1 << 20;

/// How much is kept of the end of standard error.
const TAIL: usize = 4 << 10;

/// The longest line that is handed on as one.
const LONGEST_LINE: usize = 16 << 10;

/// The outputs of a program during one call.
#[derive(Default)]
pub(super) struct Printed {
    lines: [Vec<u8>; 2],
    handed_on: usize,
    left_out: usize,
    tail: Vec<u8>,
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
        let room = MOST.saturating_sub(self.handed_on).min(bytes.len());
        self.handed_on += room;
        self.left_out += bytes.len() - room;
        let Some(open) = self.lines.get_mut(index) else { return };
        for part in bytes.get(..room).unwrap_or_default().split_inclusive(|byte| *byte == b'\n') {
            open.extend_from_slice(part);
            if part.ends_with(b"\n") || open.len() >= LONGEST_LINE {
                hand_on(&std::mem::take(open), line);
            }
        }
    }

    /// The call is over: hands on what was not a whole line, and how much was left out.
    pub(super) fn finish(&mut self, line: &mut dyn FnMut(String)) {
        self.lines.iter_mut().for_each(|open| hand_on(&std::mem::take(open), line));
        if self.left_out > 0 {
            line(format!("{} more bytes were printed and are left out", self.left_out));
        }
    }

    /// The end of standard error.
    pub(super) fn tail(&self) -> String {
        let from = self.tail.len().saturating_sub(TAIL);
        String::from_utf8_lossy(self.tail.get(from..).unwrap_or_default()).trim().to_owned()
    }

    fn keep(&mut self, bytes: &[u8]) {
        self.tail.extend_from_slice(bytes.get(bytes.len().saturating_sub(TAIL)..).unwrap_or_default());
        if self.tail.len() > 4 * TAIL {
            self.tail.drain(..self.tail.len() - TAIL);
        }
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
        assert!(lines.iter().map(String::len).sum::<usize>() <= MOST + 100);
        assert!(printed.tail().ends_with("the end") && printed.tail().len() <= TAIL);
        assert_eq!(lines.last().unwrap(), "9437193 more bytes were printed and are left out");
    }
}
