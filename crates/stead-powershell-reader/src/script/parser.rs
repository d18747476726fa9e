//! The state of the parser, and what all of its rules use.

use std::collections::{BTreeMap, BTreeSet};

use stead_core::diag::Code;
use stead_core::diag::codes::powershell::script as codes;

use super::flow::{Flow, Loop};
use super::problem::SyntaxProblem;
use super::{Scope, Script};
use crate::token::{Lexer, Mode, Nested, StringPart, Token, TokenKind, parts};

/// How deeply constructs may be nested. PowerShell reads a few thousand levels; scripts in the field have less than a hundred.
const MAX_DEPTH: usize = 200;

/// The levels that a script in a text counts as, since each level of them is read once more.
const DEPTH_OF_TEXT: usize = 12;

/// A construct that could not be finished; the reason is among the problems.
#[derive(Debug)]
pub(super) struct Broken;

pub(super) type Parsed<T> = Result<T, Broken>;

/// Where the text of a parser lies in the file.
#[derive(Clone, Copy)]
enum Origin<'p> {
    File,
    Nested(&'p Nested, usize, &'p Origin<'p>),
}

impl Origin<'_> {
    fn offset(&self, offset: usize) -> usize {
        match self {
            Self::File => offset,
            Self::Nested(nested, start, outer) => outer.offset(start + nested.origin(offset)),
        }
    }
}

/// Reads a script by recursive descent.
pub(super) struct Parser<'a, 'p> {
    pub(super) lexer: Lexer<'a>,
    pub(super) script: Script,
    pub(super) scope: Scope,
    /// True if a comma ends an expression instead of making a list.
    pub(super) comma_ends: bool,
    /// In how many configurations this is: there, what follows a resource in braces are properties.
    pub(super) configurations: usize,
    /// The offsets of brackets at the start of a statement that are known to start no definition.
    pub(super) no_definition: BTreeSet<usize>,
    /// The definitions in the texts that were read, by where they start and end. A text that is read again after a
    /// step back would otherwise have its texts read again, and those within them twice as often at each level.
    texts: BTreeMap<(usize, usize), Script>,
    /// Where ways through the body lead that is being read.
    pub(super) flow: Flow,
    depth: usize,
    stopped: bool,
    origin: Origin<'p>,
}

/// Reads the text of a file.
pub(super) fn parse(text: &str) -> Script {
    let mut parser = Parser::new(text, Origin::File, Scope::Top, 0);
    parser.file();
    parser.finish()
}

impl<'a, 'p> Parser<'a, 'p> {
    fn new(text: &'a str, origin: Origin<'p>, scope: Scope, depth: usize) -> Self {
        Self {
            lexer: Lexer::new(text),
            script: Script::default(),
            scope,
            comma_ends: false,
            configurations: 0,
            no_definition: BTreeSet::new(),
            texts: BTreeMap::new(),
            flow: Flow::default(),
            depth,
            stopped: false,
            origin,
        }
    }

    fn finish(self) -> Script {
        let mut script = self.script;
        if !self.stopped {
            let flaws = self.lexer.into_flaws().into_iter();
            script.problems.extend(flaws.map(|(flaw, at)| SyntaxProblem::of_token(flaw, self.origin.offset(at))));
        }
        script.problems.sort_by_key(|problem| problem.at);
        script
    }

    fn file(&mut self) {
        self.usings();
        self.block_content();
        self.rest();
    }

    /// Reads on behind a bracket that closes nothing.
    fn rest(&mut self) {
        while self.peek().kind != TokenKind::End {
            let stray = self.take();
            self.unexpected(stray);
            self.statements();
        }
    }

    /// The offset in the file of an offset in the text that is parsed.
    pub(super) fn place(&self, offset: usize) -> usize {
        self.origin.offset(offset)
    }

    pub(super) fn peek(&mut self) -> Token {
        self.lexer.peek(Mode::Expression)
    }

    pub(super) fn take(&mut self) -> Token {
        self.lexer.next(Mode::Expression)
    }

    /// Takes the next token when it is of that kind.
    pub(super) fn take_if(&mut self, kind: TokenKind) -> Option<Token> {
        (self.peek().kind == kind).then(|| self.take())
    }

    pub(super) fn skip_lines(&mut self) {
        self.lexer.skip_lines();
    }

    pub(super) fn skip_ends(&mut self) {
        while matches!(self.peek().kind, TokenKind::NewLine | TokenKind::Semicolon) {
            self.take();
        }
    }

    /// The next token, which closes what opened before; or a problem that names what is missing.
    pub(super) fn close(&mut self, kind: TokenKind, opened: Token) -> Parsed<Token> {
        self.skip_lines();
        if let Some(token) = self.take_if(kind) {
            return Ok(token);
        }
        let open = self.lexer.text(opened).to_owned();
        self.fail(&codes::NOT_CLOSED, opened.start, format!("'{open}' is not closed"))
    }

    /// The text of the next token if it is a word, as the start of a statement sees it.
    pub(super) fn word(&mut self) -> Option<&'a str> {
        let token = self.peek();
        (token.kind == TokenKind::Word).then(|| self.lexer.text(token))
    }

    pub(super) fn is_word(&mut self, word: &str) -> bool {
        self.word().is_some_and(|text| text.eq_ignore_ascii_case(word))
    }

    pub(super) fn report(&mut self, code: Code, at: usize, message: impl Into<String>) {
        self.report_at(code, self.place(at), message);
    }

    /// Reports a mistake that has its place in the file already.
    pub(super) fn report_at(&mut self, code: Code, place: usize, message: impl Into<String>) {
        if !self.stopped {
            self.script.problems.push(SyntaxProblem::new(code, place, message));
        }
    }

    pub(super) fn fail<T>(&mut self, code: Code, at: usize, message: impl Into<String>) -> Parsed<T> {
        self.report(code, at, message);
        Err(Broken)
    }

    pub(super) fn unexpected(&mut self, token: Token) {
        let text: String = self.lexer.text(token).chars().take(40).collect();
        let message = match token.kind {
            TokenKind::End => "the script ends too early".to_owned(),
            TokenKind::NewLine => "the line ends too early".to_owned(),
            _ => format!("'{text}' is not valid here"),
        };
        self.report(&codes::UNEXPECTED, token.start, message);
    }

    /// Runs a rule one level deeper, unless that is too deep: then the rest of the text is not read.
    pub(super) fn nest<T>(&mut self, rule: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= MAX_DEPTH {
            let at = self.lexer.offset();
            self.stop(at);
            return Err(Broken);
        }
        self.depth += 1;
        let parsed = rule(self);
        self.depth -= 1;
        parsed
    }

    /// Goes back to an offset, unless the rest is not read.
    pub(super) fn back(&mut self, offset: usize) {
        if !self.stopped {
            self.lexer.reset(offset);
        }
    }

    fn stop(&mut self, at: usize) {
        self.report(&codes::TOO_DEEP, at, format!("more than {MAX_DEPTH} levels of nesting"));
        self.stopped = true;
        self.lexer.reset(self.lexer.source().len());
    }

    /// Runs a rule in another scope.
    pub(super) fn within<T>(&mut self, scope: Scope, rule: impl FnOnce(&mut Self) -> T) -> T {
        let (scope, comma) = (std::mem::replace(&mut self.scope, scope), std::mem::take(&mut self.comma_ends));
        let result = rule(self);
        (self.scope, self.comma_ends) = (scope, comma);
        result
    }

    /// Returns how much was found so far, to come back to with [`Self::undo`].
    pub(super) fn marks(&self) -> [usize; 4] {
        let Script { types, functions, configurations, problems, .. } = &self.script;
        [types.len(), functions.len(), configurations.len(), problems.len()]
    }

    /// Forgets what was found since then.
    pub(super) fn undo(&mut self, [types, functions, configurations, problems]: [usize; 4]) {
        self.script.types.truncate(types);
        self.script.functions.truncate(functions);
        self.script.configurations.truncate(configurations);
        if !self.stopped {
            self.script.problems.truncate(problems);
        }
    }

    /// Reads the scripts in a text that was taken.
    pub(super) fn text(&mut self, token: Token) {
        if self.stopped {
            return;
        }
        self.read_text(token);
        if !self.lexer.text(token).contains("$(") {
            return;
        }
        let place = (token.start, token.end);
        let found = if let Some(known) = self.texts.get(&place) {
            known.clone()
        } else {
            let found = self.scripts_in(token);
            self.texts.insert(place, found.clone());
            found
        };
        self.script.types.extend(found.types);
        self.script.functions.extend(found.functions);
        self.script.problems.extend(found.problems);
    }

    fn scripts_in(&mut self, token: Token) -> Script {
        let mut found = Script::default();
        for part in parts(self.lexer.text(token)) {
            let StringPart::SubExpression(nested) = part else { continue };
            let depth = self.depth + DEPTH_OF_TEXT;
            if depth >= MAX_DEPTH {
                self.stop(token.start);
                break;
            }
            let origin = Origin::Nested(&nested, token.start, &self.origin);
            let mut parser = Parser::new(&nested.script, origin, Scope::Statement, depth);
            parser.flow = self.flow.within();
            parser.statements();
            parser.rest();
            self.stopped |= parser.stopped;
            self.flow.way = parser.flow.way.clone();
            let inner = parser.finish();
            found.types.extend(inner.types);
            found.functions.extend(inner.functions);
            found.problems.extend(inner.problems);
        }
        found
    }

    /// Reads what has ways of its own; returns with it whether one leads to its end.
    pub(super) fn apart<T>(&mut self, flow: Flow, rule: impl FnOnce(&mut Self) -> T) -> (T, bool) {
        let outer = std::mem::replace(&mut self.flow, flow);
        let read = rule(self);
        (read, std::mem::replace(&mut self.flow, outer).way.reaches())
    }

    /// Reads a loop; returns what left its rounds.
    pub(super) fn rounds(&mut self, rule: impl FnOnce(&mut Self) -> Parsed<()>) -> Parsed<Loop> {
        let label = self.flow.label.take();
        self.flow.loops.push(Loop { label, ..Loop::default() });
        let read = rule(self);
        let left = self.flow.loops.pop().unwrap_or_default();
        read.map(|()| left)
    }

    /// Reads a loop that its condition, or the end of what it goes over, may end before its first round.
    pub(super) fn conditional_rounds(&mut self, rule: impl FnOnce(&mut Self) -> Parsed<()>) -> Parsed<()> {
        let before = self.flow.way.clone();
        self.rounds(rule)?;
        self.flow.way = before;
        Ok(())
    }

    /// Checks a variable that is read, and returns its name; a name with a scope is not followed.
    pub(super) fn read_variable(&mut self, token: Token) -> String {
        let written = crate::token::variable_name(self.lexer.text(token).trim_start_matches(['$', '@']));
        self.read_name(if written.is_empty() { "?" } else { &written }, token.start);
        self.variable(token)
    }

    /// Says of each variable once that it is read too early: a text that reads one many times has no more findings for it.
    fn read_name(&mut self, name: &str, at: usize) {
        if self.flow.lacks(name) {
            self.report(&codes::MEMBER, at, format!("the method reads '${name}' before it assigns it"));
            self.flow.assign(name);
        }
    }

    /// Checks the variables in a text.
    pub(super) fn read_text(&mut self, token: Token) {
        let text = self.lexer.text(token);
        for part in parts(text) {
            let StringPart::Variable(name) = part else { continue };
            let place = [format!("${name}"), format!("${{{name}}}")].iter().find_map(|written| text.find(written));
            self.read_name(&name, token.start + place.unwrap_or_default());
        }
    }

    /// Forgets that variables were read to which an assignment follows, behind as many problems.
    pub(super) fn not_read(&mut self, targets: &[(String, usize)], known: usize) {
        let since = self.script.problems.split_off(known.min(self.script.problems.len()));
        let named: BTreeMap<usize, &str> = targets.iter().map(|(name, at)| (self.place(*at), name.as_str())).collect();
        for problem in since {
            match named.get(&problem.at).filter(|_| problem.code.id == codes::MEMBER.id) {
                Some(name) => self.flow.forget(name),
                None => self.script.problems.push(problem),
            }
        }
    }
}
