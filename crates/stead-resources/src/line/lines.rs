//! The lines of a text and what is to be done with one of them; no effects.

use std::ops::Range;

use regex::bytes::Regex;

use crate::edit::{Content, Position};

/// A text as lines.
///
/// Guarantees: nothing is lost; bytes that are not UTF-8, mixed endings and a missing last newline are kept.
pub(super) struct Lines {
    bytes: Vec<u8>,
    lines: Vec<Line>,
}

struct Line {
    text: Range<usize>,
    /// Where its ending ends.
    end: usize,
}

/// What is asked for.
pub(super) struct Wanted<'a> {
    pub(super) exist: bool,
    pub(super) line: Option<&'a [u8]>,
    pub(super) matching: Option<Regex>,
    pub(super) position: Position,
}

/// What is to be done; indices of lines count from zero.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// Nothing.
    Keep,
    /// The line is put in front of that index.
    Insert(usize),
    /// The line takes the place of that one.
    Replace(usize),
    /// Those are taken away.
    Remove(Vec<usize>),
}

/// Several lines match, and it is not clear which one is meant.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Ambiguous(pub(super) Vec<usize>);

impl Content for Lines {
    fn of(bytes: Vec<u8>) -> Result<Self, &'static str> {
        Ok(Self::new(bytes))
    }
}

impl Lines {
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        let mut lines = Vec::new();
        let mut start = 0;
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let text = piece.strip_suffix(b"\n").map_or(piece, |text| text.strip_suffix(b"\r").unwrap_or(text));
            lines.push(Line { text: start..start + text.len(), end: start + piece.len() });
            start += piece.len();
        }
        Self { bytes, lines }
    }

    /// The text of a line without its ending.
    pub(super) fn text(&self, index: usize) -> &[u8] {
        self.lines.get(index).map_or(&[], |line| self.slice(&line.text))
    }

    fn slice(&self, range: &Range<usize>) -> &[u8] {
        self.bytes.get(range.clone()).unwrap_or_default()
    }

    fn ending_of(&self, line: &Line) -> &[u8] {
        self.slice(&(line.text.end..line.end))
    }

    /// The ending that a new line gets: that of the first line.
    fn ending(&self) -> &[u8] {
        self.lines.first().map(|line| self.ending_of(line)).filter(|ending| !ending.is_empty()).unwrap_or(b"\n")
    }

    fn matching(&self, regex: &Regex) -> Vec<usize> {
        (0..self.lines.len()).filter(|index| regex.is_match(self.text(*index))).collect()
    }

    /// Decides what is to be done.
    ///
    /// Guarantees: after it is done, the decision is [`Step::Keep`].
    pub(super) fn decide(&self, wanted: &Wanted<'_>) -> Result<Step, Ambiguous> {
        let matching = wanted.matching.as_ref().map(|regex| self.matching(regex)).unwrap_or_default();
        let is_line = |index: &usize| wanted.line.is_some_and(|line| line == self.text(*index));
        if !wanted.exist {
            let mut doomed: Vec<usize> = (0..self.lines.len()).filter(is_line).chain(matching).collect();
            doomed.sort_unstable();
            doomed.dedup();
            return Ok(if doomed.is_empty() { Step::Keep } else { Step::Remove(doomed) });
        }
        let others = matching.iter().any(|index| !is_line(index));
        if (0..self.lines.len()).any(|index| is_line(&index)) {
            // A second setting of the same thing makes the first one void in many formats. An expression that does not
            // match the line itself is about something else, such as an example in a comment.
            let about_line = matching.iter().any(is_line);
            return if others && about_line { Err(Ambiguous(matching)) } else { Ok(Step::Keep) };
        }
        match matching.as_slice() {
            [] => Ok(Step::Insert(self.position(&wanted.position))),
            [one] => Ok(Step::Replace(*one)),
            _ => Err(Ambiguous(matching)),
        }
    }

    fn position(&self, position: &Position) -> usize {
        let end = self.lines.len();
        match position {
            Position::Begin => 0,
            Position::End => end,
            Position::After(regex, which) => {
                which.among(self.matching(regex).into_iter()).map_or(end, |index| index + 1)
            }
            Position::Before(regex, which) => which.among(self.matching(regex).into_iter()).unwrap_or(end),
        }
    }

    /// The text after a step has been taken.
    pub(super) fn after(&self, step: &Step, line: &[u8]) -> Vec<u8> {
        let mut text = Vec::with_capacity(self.bytes.len() + line.len() + 2);
        match step {
            Step::Keep => text.extend_from_slice(&self.bytes),
            Step::Insert(at) => self.insert(*at, line, &mut text),
            Step::Replace(at) => {
                for (index, old) in self.lines.iter().enumerate() {
                    let (new, ending) = (if index == *at { line } else { self.slice(&old.text) }, self.ending_of(old));
                    text.extend_from_slice(new);
                    text.extend_from_slice(if new.is_empty() && ending.is_empty() { self.ending() } else { ending });
                }
            }
            Step::Remove(doomed) => self.remove(doomed, &mut text),
        }
        text
    }

    fn insert(&self, at: usize, line: &[u8], text: &mut Vec<u8>) {
        let start = at.checked_sub(1).and_then(|last| self.lines.get(last)).map_or(0, |line| line.end);
        let (front, back) = self.bytes.split_at_checked(start).unwrap_or((&self.bytes, &[]));
        text.extend_from_slice(front);
        // Without a newline at its end the text stays without one.
        let unfinished = back.is_empty() && !front.is_empty() && !front.ends_with(b"\n");
        if unfinished {
            text.extend_from_slice(self.ending());
        }
        text.extend_from_slice(line);
        // An empty line without an ending would be none.
        if !unfinished || line.is_empty() {
            text.extend_from_slice(self.ending());
        }
        text.extend_from_slice(back);
    }

    fn remove(&self, doomed: &[usize], text: &mut Vec<u8>) {
        let kept = self.lines.iter().enumerate().filter(|(index, _)| doomed.binary_search(index).is_err());
        let mut ending: &[u8] = &[];
        let mut empty = false;
        for (_, line) in kept {
            empty = line.text.is_empty();
            text.extend_from_slice(ending);
            text.extend_from_slice(self.slice(&line.text));
            ending = self.ending_of(line);
        }
        let finished = self.lines.last().is_some_and(|line| !self.ending_of(line).is_empty());
        if finished || empty {
            text.extend_from_slice(ending);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::Match;
    use proptest::prelude::*;

    fn wanted<'a>(exist: bool, line: &'a str, matching: Option<&str>, position: Position) -> Wanted<'a> {
        let matching = matching.map(|pattern| Regex::new(pattern).unwrap());
        Wanted { exist, line: Some(line.as_bytes()), matching, position }
    }

    fn done(text: &str, wanted: &Wanted<'_>) -> String {
        let lines = Lines::new(text.as_bytes().to_vec());
        let step = lines.decide(wanted).unwrap();
        String::from_utf8(lines.after(&step, wanted.line.unwrap_or_default())).unwrap()
    }

    #[test]
    fn the_end_of_the_text_stays_as_it_is() {
        let add = wanted(true, "b", None, Position::End);
        for (before, after) in
            [("", "b\n"), ("a", "a\nb"), ("a\n", "a\nb\n"), ("a\r\n", "a\r\nb\r\n"), ("a\r\nc", "a\r\nc\r\nb")]
        {
            assert_eq!(done(before, &add), after, "{before:?}");
        }
        let remove = wanted(false, "b", None, Position::End);
        for (before, after) in [("b", ""), ("b\n", ""), ("a\nb", "a"), ("a\nb\n", "a\n"), ("b\r\nc\r\nb", "c")] {
            assert_eq!(done(before, &remove), after, "{before:?}");
        }
    }

    #[test]
    fn several_matches_are_refused_unless_they_are_the_line() {
        let port = wanted(true, "Port 22", Some("^Port"), Position::End);
        let decide = |text: &str| Lines::new(text.as_bytes().to_vec()).decide(&port);
        assert_eq!(decide("Port 1\nPort 2\n"), Err(Ambiguous(vec![0, 1])));
        assert_eq!(decide("Port 22\nPort 2\n"), Err(Ambiguous(vec![0, 1])));
        assert_eq!(decide("Port 22\nPort 22\n"), Ok(Step::Keep));
        assert_eq!(decide("x\nPort 2\n"), Ok(Step::Replace(1)));
        let commented = wanted(true, "Port 22", Some("^#Port"), Position::End);
        assert_eq!(Lines::new(b"#Port 1\n#Port 2\nPort 22".to_vec()).decide(&commented), Ok(Step::Keep));
    }

    fn position(which: u8) -> Position {
        match which {
            0 => Position::Begin,
            1 => Position::End,
            2 => Position::After(Regex::new("^a").unwrap(), Match::Last),
            3 => Position::Before(Regex::new("^a").unwrap(), Match::First),
            _ => Position::Before(Regex::new("b$").unwrap(), Match::Last),
        }
    }

    proptest! {
        #[test]
        fn a_step_is_taken_once(
            text in "([abc]{0,2}(\n|\r\n)){0,6}[abc]{0,2}",
            exist: bool,
            line in "[abc]{0,2}",
            matching in proptest::option::of("\\^?[abc]"),
            which in 0_u8..5,
        ) {
            let wanted = wanted(exist, &line, matching.as_deref(), position(which));
            let lines = Lines::new(text.clone().into_bytes());
            if let Ok(step) = lines.decide(&wanted) {
                let after = lines.after(&step, line.as_bytes());
                let ends_empty = [&b"\n\n"[..], b"\n\r\n"].iter().any(|end| after.ends_with(end));
                if !text.is_empty() && after.len() > 2 && !ends_empty {
                    prop_assert_eq!(text.ends_with('\n'), after.ends_with(b"\n"));
                }
                let again = Lines::new(after).decide(&wanted);
                prop_assert_eq!(again, Ok(Step::Keep));
            }
        }
    }
}
