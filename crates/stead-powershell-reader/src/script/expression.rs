//! Expressions.

use stead_core::diag::codes::powershell::script as codes;

use super::Scope;
pub(super) use super::definition::Bracketed;
use super::flow::{Flow, Way};
use super::parser::{Parsed, Parser};
use crate::token::{Level, Mode, Token, TokenKind, is_name};

impl Parser<'_, '_> {
    /// An expression, if one starts here.
    pub(super) fn expression(&mut self) -> Parsed<bool> {
        if !self.unary()? {
            return Ok(false);
        }
        // The way around what is right of an `-and` or `-or`.
        let mut around = Way::None;
        loop {
            let token = self.peek();
            let is_logical = matches!(token.kind, TokenKind::Binary(Level::Logical));
            let ends = match token.kind {
                TokenKind::Binary(_) | TokenKind::Sign | TokenKind::SplitJoin => false,
                TokenKind::Comma => self.comma_ends,
                _ => true,
            };
            if is_logical || ends {
                self.flow.way.join(std::mem::take(&mut around));
            }
            if token.kind == TokenKind::Question {
                return self.ternary().map(|()| true);
            }
            if ends {
                return Ok(true);
            }
            if is_logical && !self.lexer.text(token).to_lowercase().ends_with("xor") {
                around = self.flow.way.clone();
            }
            self.take();
            self.skip_lines();
            self.operand(token)?;
        }
    }

    fn operand(&mut self, operator: Token) -> Parsed<()> {
        if self.unary()? {
            return Ok(());
        }
        let text = self.lexer.text(operator).to_owned();
        self.fail(&codes::MISSING_EXPRESSION, operator.end, format!("a value is missing after '{text}'"))
    }

    fn ternary(&mut self) -> Parsed<()> {
        let question = self.take();
        self.skip_lines();
        let before = self.flow.way.clone();
        self.nested_operand(question)?;
        let first = std::mem::replace(&mut self.flow.way, before);
        self.skip_lines();
        let Some(colon) = self.take_if(TokenKind::Colon) else {
            return self.fail(&codes::MISSING_EXPRESSION, question.start, "':' is missing after '?'");
        };
        self.skip_lines();
        self.nested_operand(colon)?;
        self.flow.way.join(first);
        Ok(())
    }

    fn nested_operand(&mut self, operator: Token) -> Parsed<()> {
        if self.nest(Self::expression)? {
            return Ok(());
        }
        let text = self.lexer.text(operator).to_owned();
        self.fail(&codes::MISSING_EXPRESSION, operator.end, format!("a value is missing after '{text}'"))
    }

    /// A value with what stands in front of it, if one starts here.
    pub(super) fn unary(&mut self) -> Parsed<bool> {
        let token = self.peek();
        match token.kind {
            TokenKind::Sign | TokenKind::Step | TokenKind::Not | TokenKind::SplitJoin => {}
            TokenKind::Comma if !self.comma_ends => {}
            TokenKind::BracketOpen => return self.nest(|parser| parser.cast().map(|()| true)),
            _ => {
                return self.nest(|parser| {
                    let alone = parser.flow.alone.len();
                    let found = parser.primary()?;
                    if found {
                        let end = parser.lexer.offset();
                        parser.selectors(true)?;
                        if parser.lexer.offset() != end {
                            parser.flow.alone.truncate(alone);
                        }
                    }
                    Ok(found)
                });
            }
        }
        self.nest(|parser| {
            parser.take();
            parser.skip_lines();
            parser.operand(token)?;
            Ok(true)
        })
    }

    /// Attributes and types in brackets, with the value that they apply to.
    fn cast(&mut self) -> Parsed<()> {
        let open = self.peek();
        loop {
            let attribute = matches!(self.bracketed()?, Bracketed::Attribute(_));
            if attribute {
                self.skip_lines();
            }
            let next = self.peek();
            if next.kind == TokenKind::BracketOpen {
                continue;
            }
            // `[int], 1` is a list of a type and a number, `[int]::Max` a member of the type.
            let value = next.kind != TokenKind::Comma && self.unary()?;
            return match (value, attribute) {
                (true, _) => Ok(()),
                (false, false) => self.selectors(true),
                (false, true) => self.fail(&codes::ATTRIBUTE, open.start, "the attribute applies to nothing"),
            };
        }
    }

    /// A value without operators, if one starts here.
    pub(super) fn primary(&mut self) -> Parsed<bool> {
        let token = self.peek();
        match token.kind {
            TokenKind::Number | TokenKind::Literal => {
                self.take();
            }
            TokenKind::Variable => {
                self.take();
                let name = self.read_variable(token);
                self.flow.alone.push((name, token.start));
            }
            TokenKind::Expandable => {
                self.take();
                self.text(token);
            }
            TokenKind::ParenOpen => self.parentheses()?,
            TokenKind::SubOpen | TokenKind::ArrayOpen => {
                self.take();
                self.within(Scope::Statement, |parser| {
                    parser.statements();
                    parser.close(TokenKind::ParenClose, token)
                })?;
            }
            TokenKind::TableOpen => self.within(self.scope, Self::table)?,
            TokenKind::BraceOpen => {
                self.take();
                let block = |parser: &mut Self| {
                    parser.block_content();
                    parser.close(TokenKind::BraceClose, token)
                };
                self.apart(Flow::default(), |parser| parser.within(Scope::ScriptBlock, block)).0?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn parentheses(&mut self) -> Parsed<()> {
        let open = self.take();
        self.skip_lines();
        if self.peek().kind == TokenKind::ParenClose {
            self.report(&codes::MISSING_EXPRESSION, open.end, "an expression is missing in '()'");
            self.take();
            return Ok(());
        }
        self.within(self.scope, Self::pipeline)?;
        self.close(TokenKind::ParenClose, open)?;
        Ok(())
    }

    /// `@{ key = value }`
    fn table(&mut self) -> Parsed<()> {
        let open = self.take();
        loop {
            self.skip_ends();
            if matches!(self.peek().kind, TokenKind::BraceClose | TokenKind::End) {
                break;
            }
            self.key()?;
            self.skip_lines();
            let value = self.peek();
            if matches!(value.kind, TokenKind::BraceClose | TokenKind::Semicolon | TokenKind::End) {
                return self.fail(&codes::MISSING_EXPRESSION, value.start, "a value is missing in the table");
            }
            self.nest(Self::statement)?;
            if !matches!(self.peek().kind, TokenKind::NewLine | TokenKind::Semicolon | TokenKind::BraceClose) {
                break;
            }
        }
        self.close(TokenKind::BraceClose, open)?;
        Ok(())
    }

    /// A key of a table and its `=`.
    fn key(&mut self) -> Parsed<()> {
        let key = self.lexer.peek(Mode::Member);
        if key.kind == TokenKind::Word {
            self.lexer.next(Mode::Member);
        } else {
            let found = self.within(self.scope, |parser| {
                parser.comma_ends = true;
                parser.unary()
            })?;
            if !found {
                self.unexpected(key);
                self.skip_table();
                return Err(super::parser::Broken);
            }
        }
        let equals = self.peek();
        if equals.kind == TokenKind::Assign && self.lexer.text(equals) == "=" {
            self.take();
            return Ok(());
        }
        self.report(&codes::MISSING_EXPRESSION, key.end, "'=' is missing after a key of the table");
        self.skip_table();
        Err(super::parser::Broken)
    }

    /// Skips to behind the brace that closes a table, so that what is in it is not taken for statements.
    fn skip_table(&mut self) {
        let mut depth = 1_usize;
        while depth > 0 {
            match self.take().kind {
                TokenKind::BraceOpen | TokenKind::TableOpen => depth += 1,
                TokenKind::BraceClose => depth -= 1,
                TokenKind::End => return,
                _ => {}
            }
        }
    }

    /// Members, indexes and calls behind a value. In an expression a `.` may start the next line.
    pub(super) fn selectors(&mut self, lines: bool) -> Parsed<()> {
        loop {
            let token = self.peek();
            if token.kind == TokenKind::NewLine && lines && self.skip_to_member() {
                continue;
            }
            match token.kind {
                _ if token.spaced && token.kind != TokenKind::Step => return Ok(()),
                TokenKind::Dot | TokenKind::ColonColon | TokenKind::QuestionDot
                    if lines || self.names_member(token) =>
                {
                    self.take();
                    self.member(token)?;
                }
                // The name of a member may be a number.
                TokenKind::Number if self.lexer.text(token).starts_with('.') => {
                    self.back(token.start + 1);
                    self.member(token)?;
                }
                TokenKind::BracketOpen | TokenKind::QuestionBracket => {
                    self.take();
                    self.index(token)?;
                }
                TokenKind::Step if lines => {
                    self.take();
                }
                _ => return Ok(()),
            }
        }
    }

    /// Goes to a `.name` at the start of the next line that is not empty, if that is what is there.
    fn skip_to_member(&mut self) -> bool {
        let before = self.lexer.offset();
        self.skip_lines();
        let token = self.peek();
        if matches!(token.kind, TokenKind::Dot | TokenKind::QuestionDot | TokenKind::ColonColon)
            && self.names_member(token)
        {
            self.back(token.start);
            return true;
        }
        self.back(before);
        false
    }

    /// Returns whether the name of a member follows right behind.
    fn names_member(&self, token: Token) -> bool {
        let rest = self.lexer.source().get(token.end..).unwrap_or_default();
        rest.starts_with(|c: char| is_name(c) || matches!(c, '$' | '\'' | '"' | '('))
    }

    /// The name behind a `.` or `::`, and the arguments of a call.
    fn member(&mut self, dot: Token) -> Parsed<()> {
        self.skip_lines();
        let name = self.lexer.peek(Mode::Member);
        match name.kind {
            TokenKind::Word | TokenKind::Number => {
                self.lexer.next(Mode::Member);
            }
            _ if self.nest(Self::primary)? => {}
            _ => return self.fail(&codes::INCOMPLETE, dot.end, "the name of a member is missing"),
        }
        if self.type_arguments() {
            return self.call();
        }
        let next = self.peek();
        match next.kind {
            TokenKind::ParenOpen if !next.spaced => self.call(),
            TokenKind::BraceOpen if !next.spaced => self.nest(Self::primary).map(drop),
            _ => Ok(()),
        }
    }

    /// `[type, type]` between the name of a method and its arguments; nothing is taken when it is something else.
    fn type_arguments(&mut self) -> bool {
        let open = self.peek();
        let rest = self.lexer.source().get(open.end..).unwrap_or_default();
        if open.kind != TokenKind::BracketOpen
            || open.spaced
            || !rest.starts_with(|c: char| c.is_alphabetic() || c == '[')
        {
            return false;
        }
        let problems = self.script.problems.len();
        self.take();
        let types = self.type_list();
        let next = self.peek();
        if types.is_ok() && next.kind == TokenKind::ParenOpen && !next.spaced {
            return true;
        }
        self.script.problems.truncate(problems);
        self.back(open.start);
        false
    }

    /// The arguments of a call, in parentheses.
    pub(super) fn call(&mut self) -> Parsed<()> {
        let open = self.take();
        self.within(self.scope, |parser| {
            parser.comma_ends = true;
            parser.skip_lines();
            while parser.peek().kind != TokenKind::ParenClose {
                let start = parser.peek();
                if !parser.expression()? {
                    return parser.fail(&codes::MISSING_EXPRESSION, start.start, "an argument is missing");
                }
                parser.skip_lines();
                if parser.take_if(TokenKind::Comma).is_none() {
                    break;
                }
                parser.skip_lines();
                if parser.peek().kind == TokenKind::ParenClose {
                    let end = parser.peek().start;
                    return parser.fail(&codes::MISSING_EXPRESSION, end, "an argument is missing after the comma");
                }
            }
            parser.close(TokenKind::ParenClose, open)
        })?;
        Ok(())
    }

    fn index(&mut self, open: Token) -> Parsed<()> {
        self.skip_lines();
        self.within(self.scope, |parser| {
            if !parser.expression()? {
                return parser.fail(&codes::MISSING_EXPRESSION, open.end, "an index is missing in '[]'");
            }
            parser.close(TokenKind::BracketClose, open)
        })?;
        Ok(())
    }
}
