//! Where tokens stand: the lines that there are stay, each as deep as what it belongs to.

use super::tokens::{BLANKS, FormatTokenKind, Token};

/// How much deeper a level is.
const STEP: usize = 2;
/// JSON on one line is broken into several where it is longer.
const LONGEST: usize = 100;

/// Writes the tokens of a text again.
pub(super) fn lay_out(text: &str, tokens: &[Token]) -> String {
    let content = tokens.iter().find(|token| !matches!(token.kind, FormatTokenKind::Comment | FormatTokenKind::Marker));
    let is_json = content.is_some_and(|token| token.kind == FormatTokenKind::Open);
    let brackets = brackets(tokens);
    let out = String::with_capacity(text.len() + text.len() / 8);
    let (levels, open) = (Vec::new(), Vec::new());
    let mut layout = Layout { text, tokens, brackets, is_json, out, line: 0, levels, open, content: None, next: 0 };
    for at in 0..tokens.len() {
        layout.token(at);
    }
    layout.out.push('\n');
    layout.out
}

struct Layout<'t> {
    text: &'t str,
    tokens: &'t [Token],
    /// The brackets, by the token that opens them.
    brackets: Vec<Bracket>,
    is_json: bool,
    out: String,
    /// Where the last line of `out` starts.
    line: usize,
    /// Lists and objects without brackets, from the outermost.
    levels: Vec<Level>,
    /// Brackets that are open, from the outermost.
    open: Vec<Open>,
    /// The last token that was written and is not a comment.
    content: Option<Token>,
    /// A token that is not a comment, with nothing but comments before it.
    next: usize,
}

/// A list or an object without brackets, and how deep it was and is.
#[derive(Clone, Copy)]
struct Level {
    before: usize,
    now: usize,
    is_list: bool,
}

/// A bracket that is open.
#[derive(Clone, Copy)]
struct Open {
    /// True if each element has a line of its own.
    has_lines: bool,
    /// How deep the closing bracket is if it has a line of its own.
    depth: usize,
}

impl Open {
    /// Returns how deep lines between the brackets are.
    fn inner(self) -> usize {
        self.depth + if self.has_lines { STEP } else { 0 }
    }

    /// Returns the number of lines that end between two tokens: none but between elements, and behind comments.
    fn lines_between(self, before: Token, token: Token) -> usize {
        let ends_line = match (before.kind, token.kind) {
            (FormatTokenKind::Comment, _) => true,
            (_, FormatTokenKind::Comment) => token.breaks > 0,
            (FormatTokenKind::Open, FormatTokenKind::Close) | (_, FormatTokenKind::Comma) => false,
            (FormatTokenKind::Open | FormatTokenKind::Comma, _) | (_, FormatTokenKind::Close) => self.has_lines,
            _ => false,
        };
        let is_at_border = before.kind == FormatTokenKind::Open || token.kind == FormatTokenKind::Close;
        usize::from(ends_line) + usize::from(ends_line && token.breaks > 1 && !is_at_border)
    }
}

#[derive(Clone, Copy, Default)]
struct Bracket {
    /// The token that closes it.
    end: usize,
    /// True if a line ends between its elements.
    has_lines: bool,
}

fn brackets(tokens: &[Token]) -> Vec<Bracket> {
    let mut all = vec![Bracket::default(); tokens.len()];
    let mut open: Vec<usize> = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        if let Some(bracket) = open.last().and_then(|open| all.get_mut(*open)) {
            bracket.has_lines |= token.breaks > 0;
            bracket.end = at;
        }
        match token.kind {
            FormatTokenKind::Open => open.push(at),
            FormatTokenKind::Close => drop(open.pop()),
            _ => {}
        }
    }
    all
}

impl<'t> Layout<'t> {
    fn token(&mut self, at: usize) {
        let Some(token) = self.tokens.get(at).copied() else { return };
        let before = at.checked_sub(1).and_then(|at| self.tokens.get(at)).copied();
        match before.map(|before| (before, self.lines_between(before, token))) {
            Some((before, 0)) => self.blanks(self.blanks_between(before, token)),
            other => {
                let depth = self.depth_of(at, token);
                self.out.extend(std::iter::repeat_n('\n', other.map_or(0, |(_, lines)| lines)));
                self.line = self.out.len();
                self.blanks(depth);
            }
        }
        self.enter(at, token);
        self.write(token);
        if token.kind != FormatTokenKind::Comment {
            self.content = Some(token);
        }
    }

    fn blanks(&mut self, count: usize) {
        self.out.extend(std::iter::repeat_n(' ', count));
    }

    fn column(&self) -> usize {
        self.out.len() - self.line
    }

    /// Returns the number of lines that end between two tokens. There is at most one empty line.
    fn lines_between(&self, before: Token, token: Token) -> usize {
        match self.open.last() {
            Some(open) => open.lines_between(before, token),
            None if matches!(before.kind, FormatTokenKind::Block { keeps: true, .. }) => 1,
            None if before.kind == FormatTokenKind::Dash
                && token.kind != FormatTokenKind::Comment
                && token.column > before.column =>
            {
                0
            }
            None => token.breaks.min(2),
        }
    }

    /// Returns the number of blanks between two tokens of a line.
    fn blanks_between(&self, before: Token, token: Token) -> usize {
        match (before.kind, token.kind) {
            (FormatTokenKind::Question | FormatTokenKind::Colon | FormatTokenKind::Property, _)
            | (_, FormatTokenKind::Comment) => 1,
            (FormatTokenKind::Open, FormatTokenKind::Close)
            | (_, FormatTokenKind::Comma)
            | (FormatTokenKind::Scalar | FormatTokenKind::Close, FormatTokenKind::Colon) => 0,
            (FormatTokenKind::Open, _) => usize::from(self.is_json && self.written(before) == "{"),
            (_, FormatTokenKind::Close) => usize::from(self.is_json && self.written(token) == "}"),
            // Also before a colon behind a name, which it would belong to.
            _ => 1,
        }
    }

    /// Returns how deep a line is that starts with a token.
    fn depth_of(&mut self, at: usize, token: Token) -> usize {
        match (self.open.last(), token.kind) {
            (Some(open), FormatTokenKind::Close) => open.depth,
            (Some(open), _) => open.inner(),
            (None, FormatTokenKind::Marker) => 0,
            (None, FormatTokenKind::Comment) => self.depth_of_comment(at, token),
            (None, _) => self.place(token).1,
        }
    }

    /// Returns how many levels stay around the first token of a line, and how deep it is.
    fn place(&self, token: Token) -> (usize, usize) {
        let is_dash = token.kind == FormatTokenKind::Dash;
        if !is_dash && !token.is_key {
            return (self.levels.len(), self.value_depth());
        }
        let is_left =
            |level: &&Level| level.before > token.column || (level.before == token.column && level.is_list && !is_dash);
        let kept = self.levels.len() - self.levels.iter().rev().take_while(is_left).count();
        let around = kept.checked_sub(1).and_then(|last| self.levels.get(last));
        let depth = match around {
            None => 0,
            Some(level) if level.before == token.column && level.is_list == is_dash => level.now,
            Some(level) if is_dash && !level.is_list && !self.is_explicit() => level.now,
            Some(level) => level.now + STEP,
        };
        (kept, depth)
    }

    /// Returns whether a list belongs to `?`, or to a colon with a line of its own.
    fn is_explicit(&self) -> bool {
        let is_indicator =
            |token: Token| token.is_key && matches!(token.kind, FormatTokenKind::Question | FormatTokenKind::Colon);
        self.content.is_some_and(is_indicator)
    }

    /// Returns how deep a value is that starts on a line of its own, and text of several lines.
    fn value_depth(&self) -> usize {
        match (self.open.last(), self.levels.last()) {
            (Some(open), _) => open.inner() + STEP,
            (None, Some(level)) => level.now + STEP,
            (None, None) => 0,
        }
    }

    /// A comment belongs to what follows, unless it is deeper than that: then to what stands above it.
    fn depth_of_comment(&mut self, at: usize, comment: Token) -> usize {
        while self.tokens.get(self.next).is_some_and(|token| self.next < at || token.kind == FormatTokenKind::Comment) {
            self.next += 1;
        }
        if let Some(token) = self.tokens.get(self.next).filter(|token| token.kind != FormatTokenKind::Marker) {
            let (kept, depth) = self.place(*token);
            let is_same = |level: &Level| level.before == token.column && level.now == depth;
            let opens_level = kept == self.levels.len() && !self.levels.last().is_some_and(is_same);
            if opens_level || comment.column <= token.column {
                return depth;
            }
        }
        let inside = self.levels.partition_point(|level| level.before <= comment.column);
        match (inside.checked_sub(1).and_then(|last| self.levels.get(last)), self.levels.get(inside)) {
            (Some(level), _) if level.before == comment.column => level.now,
            (_, Some(inner)) => inner.now,
            // It would become a line of the text.
            (Some(level), None)
                if self.content.is_some_and(|token| matches!(token.kind, FormatTokenKind::Block { .. })) =>
            {
                level.now
            }
            (Some(level), None) => level.now + STEP,
            (None, None) => 0,
        }
    }

    /// Notes the levels and brackets that a token starts.
    fn enter(&mut self, at: usize, token: Token) {
        match token.kind {
            FormatTokenKind::Marker => self.levels.clear(),
            FormatTokenKind::Close => drop(self.open.pop()),
            _ if !self.open.is_empty() => {}
            FormatTokenKind::Dash => self.enter_level(token),
            _ if token.is_key => self.enter_level(token),
            _ => {}
        }
        if token.kind == FormatTokenKind::Open {
            self.enter_bracket(at);
        }
    }

    fn enter_level(&mut self, token: Token) {
        let (kept, _) = self.place(token);
        self.levels.truncate(kept);
        let is_list = token.kind == FormatTokenKind::Dash;
        let is_in = |level: &Level| level.before == token.column && level.is_list == is_list;
        if !self.levels.last().is_some_and(is_in) {
            self.levels.push(Level { before: token.column, now: self.column(), is_list });
        }
    }

    fn enter_bracket(&mut self, at: usize) {
        let is_first = self.out.get(self.line..).unwrap_or_default().trim_matches(' ').is_empty();
        let depth = match (self.open.last(), self.levels.last()) {
            (Some(open), _) => open.inner(),
            (None, _) if is_first => self.column(),
            (None, Some(level)) => level.now + if level.is_list { STEP } else { 0 },
            (None, None) => 0,
        };
        let bracket = self.brackets.get(at).copied().unwrap_or_default();
        let has_lines = bracket.has_lines || (self.is_json && self.is_too_long(at, bracket.end));
        self.open.push(Open { has_lines, depth });
    }

    fn is_too_long(&self, start: usize, end: usize) -> bool {
        let mut length = self.column();
        let tokens = self.tokens.get(start..=end).unwrap_or_default();
        tokens.windows(2).any(|pair| {
            let [one, next] = pair else { return false };
            length += one.end - one.start + self.blanks_between(*one, *next);
            length >= LONGEST || self.written(*one).contains('\n')
        })
    }

    fn written(&self, token: Token) -> &'t str {
        self.text.get(token.start..token.end).unwrap_or_default()
    }

    fn write(&mut self, token: Token) {
        let written = self.written(token);
        match token.kind {
            FormatTokenKind::Block { indentation, .. } => self.block(written, indentation),
            FormatTokenKind::Scalar if written.contains('\n') => self.scalar(written),
            _ => self.out.push_str(written),
        }
    }

    /// Text behind `|` or `>`: its lines are moved together.
    fn block(&mut self, written: &str, indentation: usize) {
        let mut lines = written.split('\n');
        let header = lines.next().unwrap_or_default();
        let (indicator, comment) = header.split_at(header.find('#').unwrap_or(header.len()));
        self.out.push_str(indicator.trim_end_matches(BLANKS));
        self.blanks(usize::from(!comment.is_empty()));
        self.out.push_str(comment.trim_end_matches(BLANKS));
        let stated = indicator.chars().find_map(|letter| letter.to_digit(10)).map(|digit| digit as usize);
        let depth = self.levels.last().map_or(0, |level| level.now) + stated.unwrap_or(STEP);
        for line in lines {
            self.out.push('\n');
            let content = line.get(indentation..).unwrap_or_default();
            if !content.is_empty() {
                self.blanks(depth);
                self.out.push_str(content);
            }
        }
    }

    /// Text of several lines, plain or in quotes: blanks at the borders of its lines mean nothing, but for those behind a
    /// backslash.
    fn scalar(&mut self, written: &str) {
        let depth = self.value_depth();
        let escapes = written.starts_with('"');
        for (number, line) in written.split('\n').enumerate() {
            let mut content = line.trim_end_matches(BLANKS);
            let backslashes = content.len() - content.trim_end_matches('\\').len();
            if escapes && backslashes % 2 == 1 {
                content = line.get(..=content.len()).unwrap_or(content);
            }
            if number > 0 {
                content = content.trim_start_matches(BLANKS);
                self.out.push('\n');
                self.blanks(if content.is_empty() { 0 } else { depth });
            }
            self.out.push_str(content);
        }
    }
}
