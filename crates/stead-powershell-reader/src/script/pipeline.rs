//! Pipelines, commands and their arguments.

use stead_core::diag::codes::powershell::script as codes;

use super::flow::Way;
use super::parser::{Broken, Parsed, Parser};
use super::statement::is_one_of;
use crate::token::{Mode, Token, TokenKind};

/// The words that start statements that may be the value of an assignment.
const STATEMENTS: &[&str] =
    &["if", "switch", "while", "for", "foreach", "do", "try", "trap", "data", "class", "enum", "configuration"];

impl Parser<'_, '_> {
    /// Pipelines with `&&` and `||` between them, as a whole statement.
    pub(super) fn pipelines(&mut self) -> Parsed<()> {
        self.pipeline()?;
        self.end_of_statement()
    }

    /// Pipelines with `&&` and `||` between them.
    pub(super) fn pipeline(&mut self) -> Parsed<()> {
        // What one of several assigns counts in the others alone.
        let (before, mut around) = (self.flow.way.clone(), Way::None);
        loop {
            self.single_pipeline()?;
            self.flow.way.join(around.clone());
            if self.take_if(TokenKind::Ampersand).is_some() {
                return Ok(());
            }
            if !self.pipe_follows(TokenKind::Chain) {
                return Ok(());
            }
            self.take();
            self.skip_lines();
            around = before.clone();
        }
    }

    /// Returns whether that comes next, on this line or at the start of the next that is not empty.
    fn pipe_follows(&mut self, kind: TokenKind) -> bool {
        if self.peek().kind != TokenKind::NewLine {
            return self.peek().kind == kind;
        }
        let before = self.lexer.offset();
        self.skip_lines();
        let follows = self.peek().kind == kind;
        if !follows {
            self.back(before);
        }
        follows
    }

    fn single_pipeline(&mut self) -> Parsed<()> {
        let first = self.peek();
        let (outer, known) = (std::mem::take(&mut self.flow.alone), self.script.problems.len());
        let is_expression = self.expression();
        let targets = std::mem::replace(&mut self.flow.alone, outer);
        if is_expression? {
            if self.peek().kind == TokenKind::Assign {
                self.not_read(&targets, known);
                self.assignment()?;
                for (name, _) in &targets {
                    self.flow.assign(name);
                }
                return Ok(());
            }
            // An assignment may follow parentheses.
            self.flow.alone.extend(targets);
            self.redirections()?;
        } else if matches!(first.kind, TokenKind::Pipe | TokenKind::Chain) {
            return self.fail(&codes::EMPTY_PIPE, first.start, "a command is missing before the pipe");
        } else if self.ends_pipeline() {
            return self.fail(&codes::MISSING_EXPRESSION, first.start, "an expression is missing");
        } else {
            self.command()?;
        }
        while self.pipe_follows(TokenKind::Pipe) {
            let pipe = self.take();
            self.skip_lines();
            self.piped(pipe)?;
        }
        Ok(())
    }

    fn piped(&mut self, pipe: Token) -> Parsed<()> {
        let token = self.peek();
        if self.ends_pipeline() || matches!(token.kind, TokenKind::Pipe | TokenKind::Chain) {
            return self.fail(&codes::EMPTY_PIPE, pipe.start, "a command is missing after the pipe");
        }
        if self.expression()? {
            return self.fail(
                &codes::EMPTY_PIPE,
                token.start,
                "an expression is only valid at the start of a pipeline",
            );
        }
        self.command()
    }

    /// Reads the value behind the target of an assignment, which may be any statement.
    fn assignment(&mut self) -> Parsed<()> {
        let operator = self.take();
        self.skip_lines();
        if self.ends_pipeline() {
            return self.fail(&codes::MISSING_EXPRESSION, operator.start, "a value is missing after the assignment");
        }
        self.nest(Self::assigned_statement)
    }

    fn assigned_statement(&mut self) -> Parsed<()> {
        match self.word() {
            Some(word) if is_one_of(word, STATEMENTS) => self.statement_here(),
            _ => self.pipeline(),
        }
    }

    fn redirections(&mut self) -> Parsed<()> {
        loop {
            match self.peek().kind {
                TokenKind::Merge => {
                    self.take();
                }
                TokenKind::Redirect => self.redirection()?,
                _ => return Ok(()),
            }
        }
    }

    fn redirection(&mut self) -> Parsed<()> {
        let arrow = self.take();
        if !self.argument()? {
            return self.fail(&codes::INCOMPLETE, arrow.start, "the name of a file is missing after the redirection");
        }
        Ok(())
    }

    /// A command with its arguments.
    fn command(&mut self) -> Parsed<()> {
        let first = self.lexer.peek(Mode::Argument);
        if let Some(value) = self.value_of_property(first) {
            self.back(value);
            return self.nest(Self::assigned_statement);
        }
        let invokes = matches!(first.kind, TokenKind::Ampersand) || self.lexer.text(first) == ".";
        if invokes {
            self.lexer.next(Mode::Argument);
            self.lexer.peek(Mode::Argument);
        }
        if !self.argument()? {
            let token = self.lexer.peek(Mode::Argument);
            self.unexpected(token);
            if !invokes {
                self.lexer.next(Mode::Argument);
            }
            return Err(Broken);
        }
        self.arguments()
    }

    /// Returns whether a configuration gives a property of that name to a resource: no word is a keyword in front of a `=`.
    pub(super) fn is_property(&self, name: Token) -> bool {
        let follows = self.lexer.source().get(name.end..).unwrap_or_default().trim_start_matches([' ', '\t']);
        self.configurations > 0 && follows.starts_with('=')
    }

    /// Returns where the value starts of a property that a configuration gives to a resource without a blank, as in
    /// `Texts=@()`;
    /// with blanks it reads as a command with arguments, which comes to the same.
    fn value_of_property(&self, first: Token) -> Option<usize> {
        let (name, value) = self.lexer.text(first).split_once('=').filter(|_| self.configurations > 0)?;
        let is_name = !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
        (first.kind == TokenKind::Word && is_name && !value.is_empty()).then(|| first.start + name.len() + 1)
    }

    fn arguments(&mut self) -> Parsed<()> {
        loop {
            let token = self.lexer.peek(Mode::Argument);
            match token.kind {
                TokenKind::Redirect => self.redirection()?,
                TokenKind::Merge | TokenKind::Verbatim => {
                    self.lexer.next(Mode::Argument);
                }
                TokenKind::Input => {
                    return self.fail(&codes::UNEXPECTED, token.start, "'<' is reserved");
                }
                TokenKind::Parameter => {
                    self.lexer.next(Mode::Argument);
                    if self.lexer.text(token).ends_with(':') && !self.argument()? {
                        return self.fail(&codes::INCOMPLETE, token.start, "the value of this parameter is missing");
                    }
                }
                TokenKind::Comma => {
                    self.lexer.next(Mode::Argument);
                    self.skip_lines();
                    self.element()?;
                }
                _ if self.argument()? => {}
                _ => return Ok(()),
            }
        }
    }

    /// An argument after a comma.
    fn element(&mut self) -> Parsed<()> {
        if self.argument()? {
            return Ok(());
        }
        let token = self.lexer.peek(Mode::Argument);
        self.fail(&codes::MISSING_EXPRESSION, token.start, "an argument is missing after the comma")
    }

    pub(super) fn argument_list(&mut self) -> Parsed<()> {
        self.element()?;
        while self.lexer.peek(Mode::Argument).kind == TokenKind::Comma {
            self.lexer.next(Mode::Argument);
            self.skip_lines();
            self.element()?;
        }
        Ok(())
    }

    /// One argument of a command, if there is one.
    pub(super) fn argument(&mut self) -> Parsed<bool> {
        let token = self.lexer.peek(Mode::Argument);
        match token.kind {
            TokenKind::Splat => {
                self.lexer.next(Mode::Argument);
                self.read_variable(token);
                Ok(true)
            }
            TokenKind::Word | TokenKind::Number | TokenKind::Parameter => {
                self.lexer.next(Mode::Argument);
                self.text(token);
                Ok(true)
            }
            TokenKind::Literal
            | TokenKind::Expandable
            | TokenKind::Variable
            | TokenKind::ParenOpen
            | TokenKind::BraceOpen
            | TokenKind::SubOpen
            | TokenKind::ArrayOpen
            | TokenKind::TableOpen => {
                self.nest(|parser| {
                    parser.lexer.peek(Mode::Expression);
                    parser.primary()?;
                    parser.selectors(false)
                })?;
                Ok(true)
            }
            TokenKind::Unknown => {
                self.lexer.next(Mode::Argument);
                Ok(true)
            }
            _ => Ok(false),
        }
    }
}
