//! Regular expressions of JSON Schema that mean the same in Ruby.

/// The pattern as Ruby has it, between slashes; `None` where it is not certain that it means the same, or where matching could
/// take long.
///
/// Guarantees: what is returned accepts exactly the texts that the pattern accepts.
pub(crate) fn to_ruby(pattern: &str) -> Option<String> {
    let mut reader = Reader {
        rest: pattern.chars().peekable(),
        ruby: String::with_capacity(pattern.len() + 4),
        unlimited: 0,
        choices: 1,
    };
    reader.alternatives(0)?;
    reader.rest.next().is_none().then_some(reader.ruby)
}

/// How deep groups may be nested.
const DEPTH: usize = 8;

/// How many parts may be repeated without a limit: Ruby tries every way to divide a text among them.
const UNLIMITED: usize = 3;

/// How many ways there may be to choose alternatives and limited repetitions: Ruby tries every one of them, too.
const CHOICES: u64 = 4096;

struct Reader<'p> {
    rest: std::iter::Peekable<std::str::Chars<'p>>,
    ruby: String,
    unlimited: usize,
    choices: u64,
}

/// The length of the texts that a part matches. A part with different ones is not repeated, which can take
/// exponential time in Ruby.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Length {
    Fixed,
    Varies,
}

impl Length {
    fn and(self, other: Self) -> Self {
        if self == other { self } else { Self::Varies }
    }
}

impl Reader<'_> {
    fn alternatives(&mut self, depth: usize) -> Option<Length> {
        let mut length = self.sequence(depth)?;
        let mut count = 1;
        while self.rest.next_if_eq(&'|').is_some() {
            self.ruby.push('|');
            self.sequence(depth)?;
            length = Length::Varies;
            count += 1;
        }
        self.choose(count)?;
        Some(length)
    }

    fn sequence(&mut self, depth: usize) -> Option<Length> {
        let mut length = Length::Fixed;
        while let Some(next) = self.rest.next_if(|next| !matches!(next, '|' | ')')) {
            length = length.and(self.part(next, depth)?);
        }
        Some(length)
    }

    fn part(&mut self, first: char, depth: usize) -> Option<Length> {
        let of = match first {
            // Ruby's own anchors of this form are those of a line.
            '^' => return self.anchor("\\A"),
            '$' => return self.anchor("\\z"),
            '(' => self.group(depth)?,
            '[' => self.class()?,
            '\\' => self.escape()?,
            // Without a dot: line separators differ.
            '.' | '*' | '+' | '?' | '{' | '}' | ']' => return None,
            _ => self.literal(first)?,
        };
        self.quantifier(of)
    }

    fn anchor(&mut self, ruby: &str) -> Option<Length> {
        self.ruby.push_str(ruby);
        let repeated = self.rest.peek().is_some_and(|next| matches!(next, '*' | '+' | '?' | '{'));
        (!repeated).then_some(Length::Fixed)
    }

    fn literal(&mut self, character: char) -> Option<Length> {
        if character.is_control() || crate::ruby::is_invisible(character) {
            return None;
        }
        if matches!(character, '/' | '#') {
            self.ruby.push('\\');
        }
        self.ruby.push(character);
        Some(Length::Fixed)
    }

    fn group(&mut self, depth: usize) -> Option<Length> {
        if depth >= DEPTH {
            return None;
        }
        if self.rest.next_if_eq(&'?').is_some() {
            self.rest.next_if_eq(&':')?;
        }
        self.ruby.push_str("(?:");
        let length = self.alternatives(depth + 1)?;
        self.rest.next_if_eq(&')')?;
        self.ruby.push(')');
        Some(length)
    }

    /// The rest of an escape. Beside letters that mean the same in both, every punctuation stands for itself.
    fn escape(&mut self) -> Option<Length> {
        let escaped = self.rest.next()?;
        let same = matches!(escaped, 'd' | 'w' | 'n' | 'r' | 't') || escaped.is_ascii_punctuation();
        self.ruby.extend(['\\', escaped]);
        same.then_some(Length::Fixed)
    }

    /// The rest of a class. Ruby refuses an empty one, and has operators and nested classes where the schema has characters.
    fn class(&mut self) -> Option<Length> {
        self.ruby.push('[');
        if self.rest.next_if_eq(&'^').is_some() {
            self.ruby.push('^');
        }
        let mut is_empty = true;
        while self.rest.next_if_eq(&']').is_none() {
            self.class_item(is_empty)?;
            is_empty = false;
        }
        self.ruby.push(']');
        (!is_empty).then_some(Length::Fixed)
    }

    /// A character, an escape or a range.
    fn class_item(&mut self, is_first: bool) -> Option<()> {
        let low = self.rest.next()?;
        match low {
            '\\' => {
                self.escape()?;
                // The end of a range is not an escape, nor is its start.
                return self.rest.peek().is_none_or(|next| *next != '-').then_some(());
            }
            '-' if !is_first && self.rest.peek() != Some(&']') => return None,
            '-' => self.ruby.push_str("\\-"),
            '[' | '&' => self.ruby.extend(['\\', low]),
            _ => drop(self.literal(low)?),
        }
        if low == '-' || self.rest.peek() != Some(&'-') {
            return Some(());
        }
        self.rest.next();
        if self.rest.peek() == Some(&']') {
            self.ruby.push_str("\\-");
            return Some(());
        }
        self.ruby.push('-');
        let high = self.rest.next_if(|high| high.is_alphanumeric() && *high >= low)?;
        low.is_alphanumeric().then(|| self.ruby.push(high))
    }

    fn quantifier(&mut self, of: Length) -> Option<Length> {
        let Some(sign) = self.rest.next_if(|next| matches!(next, '*' | '+' | '?' | '{')) else { return Some(of) };
        if of == Length::Varies && sign != '?' {
            return None;
        }
        self.ruby.push(sign);
        let length = match sign {
            '{' => self.counts()?,
            '?' => {
                self.choose(2)?;
                Length::Varies
            }
            _ => self.count_unlimited()?,
        };
        if self.rest.next_if_eq(&'?').is_some() {
            // In Ruby `{2}?` is optional, not lazy.
            if sign == '{' {
                return None;
            }
            self.ruby.push('?');
        }
        let again = self.rest.peek().is_some_and(|next| matches!(next, '*' | '+' | '?' | '{'));
        (!again).then_some(length)
    }

    /// The rest of `{2}`, `{2,}` or `{2,3}`.
    fn counts(&mut self) -> Option<Length> {
        let mut counts = String::new();
        loop {
            match self.rest.next()? {
                '}' => break,
                next => counts.push(next),
            }
        }
        let number = |text: &str| text.parse::<u64>().ok().filter(|_| text.len() < 4 && !text.starts_with('+'));
        let length = match counts.split_once(',') {
            None => number(&counts).map(|_| Length::Fixed)?,
            Some((least, "")) => number(least).and_then(|_| self.count_unlimited())?,
            Some((least, most)) => {
                self.choose(number(most)?.checked_sub(number(least)?)? + 1)?;
                Length::Varies
            }
        };
        self.ruby.push_str(&counts);
        self.ruby.push('}');
        Some(length)
    }

    fn choose(&mut self, ways: u64) -> Option<()> {
        self.choices = self.choices.checked_mul(ways).filter(|choices| *choices <= CHOICES)?;
        Some(())
    }

    fn count_unlimited(&mut self) -> Option<Length> {
        self.unlimited += 1;
        (self.unlimited <= UNLIMITED).then_some(Length::Varies)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::strategy::ValueTree as _;
    use proptest::test_runner::TestRunner;

    use super::*;
    use crate::ruby::{self, tests};

    const PIECES: &[&str] = &[
        "a", "b", "-", "1", "/", "#", "'", "^", "$", "|", "(", "(?:", ")", "[", "[^", "]", "a-c", "\\d", "\\w", "\\-",
        "\\n", "\\.", "\\\\", "*", "+", "?", "{2}", "{1,}", "{1,2}", "&&", " ", "_", ":", "@",
    ];

    const TEXTS: &[&str] = &[
        "", "a", "b", "c", "ab", "ba", "aa", "aab", "a\nb", "a\n", "\na", "-", "a-c", "1", "11", "a1", "/", "#", "'",
        "_", ".", "\\", "|", "&", "&&", "a b", ":", "@", "^", "$", "[", "]", "abc", "aaa", "bbb", "{2}", "\r\n",
    ];

    #[test]
    fn what_takes_exponential_time_is_left_to_the_engine() {
        for pattern in [&"a?".repeat(30), &"(a|aa)".repeat(30), &"a{0,9}".repeat(9), "a*a*a*a*", "(a?)*", "a{3,2}"] {
            assert_eq!(to_ruby(pattern), None, "{pattern}");
        }
        let sixty = (0..60).map(|number| number.to_string()).collect::<Vec<_>>().join("|");
        for pattern in ["^[0-7]{3,4}$", "^v?[0-9]+(-[a-z]+)?$", "^a{0,64}$", &format!("^({sixty})$")] {
            assert!(to_ruby(pattern).is_some(), "{pattern}");
        }
    }

    fn patterns() -> Vec<(String, String)> {
        let pattern =
            proptest::collection::vec(proptest::sample::select(PIECES), 1..8).prop_map(|pieces| pieces.concat());
        let mut runner = TestRunner::deterministic();
        let all = (0..20_000).map(|_| pattern.new_tree(&mut runner).expect("a pattern").current());
        all.filter_map(|pattern| to_ruby(&pattern).map(|ruby| (pattern, ruby))).collect()
    }

    #[test]
    fn what_is_kept_means_the_same_in_ruby() {
        let patterns = patterns();
        assert!(patterns.len() > 1000, "{} of the patterns are kept", patterns.len());
        let texts: Vec<_> = TEXTS.iter().map(|text| ruby::string(text)).collect();
        let literals: Vec<_> = patterns.iter().map(|(_, ruby)| ruby::string(ruby)).collect();
        let program = format!(
            "texts = [{}]\n[\n{},\n].each do |pattern|\n  regexp = Regexp.new(pattern)\n  \
             puts texts.map {{ |text| regexp.match?(text) ? 1 : 0 }}.join\nend\n",
            texts.join(", "),
            literals.join(",\n")
        );
        let Some(output) = tests::run("what_is_kept_means_the_same_in_ruby", &program) else { return };
        let mut compared = 0;
        for ((pattern, ruby), found) in patterns.iter().zip(output.lines()) {
            // The crate has operators in classes, too, which JSON Schema does not.
            let is_special = ["&&", "--", "[["].iter().any(|operator| pattern.contains(operator));
            let Some(ours) = regex::Regex::new(pattern).ok().filter(|_| !is_special) else { continue };
            compared += 1;
            let expected: String = TEXTS.iter().map(|text| if ours.is_match(text) { '1' } else { '0' }).collect();
            assert_eq!(found, expected, "{pattern} {ruby}");
        }
        assert!(compared > 1000, "{compared} patterns are compared");
    }
}
