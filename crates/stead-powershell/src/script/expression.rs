//! Expressions.

use stead_core::diag::codes::powershell::script as codes;

use super::Scope;
use super::definition::Bracketed;
use super::parser::{Parsed, Parser};
use crate::token::{Kind, Mode, Token, is_name};

impl Parser<'_, '_> {
    /// An expression, if one starts here.
    pub(super) fn expression(&mut self) -> Parsed<bool> {
        if !self.unary()? {
            return Ok(false);
        }
        loop {
            let token = self.peek();
            match token.kind {
                Kind::Binary(_) | Kind::Sign | Kind::SplitJoin => {}
                Kind::Comma if !self.comma_ends => {}
                Kind::Question => return self.ternary().map(|()| true),
                _ => return Ok(true),
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
        self.nested_operand(question)?;
        self.skip_lines();
        let Some(colon) = self.take_if(Kind::Colon) else {
            return self.fail(&codes::MISSING_EXPRESSION, question.start, "':' is missing after '?'");
        };
        self.skip_lines();
        self.nested_operand(colon)
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
            Kind::Sign | Kind::Step | Kind::Not | Kind::SplitJoin => {}
            Kind::Comma if !self.comma_ends => {}
            Kind::BracketOpen => return self.nest(|parser| parser.cast().map(|()| true)),
            _ => {
                return self.nest(|parser| {
                    let found = parser.primary()?;
                    if found {
                        parser.selectors(true)?;
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
            if next.kind == Kind::BracketOpen {
                continue;
            }
            // `[int], 1` is a list of a type and a number, `[int]::Max` a member of the type.
            let value = next.kind != Kind::Comma && self.unary()?;
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
            Kind::Number | Kind::Literal | Kind::Variable => {
                self.take();
            }
            Kind::Expandable => {
                self.take();
                self.text(token);
            }
            Kind::ParenOpen => self.parentheses()?,
            Kind::SubOpen | Kind::ArrayOpen => {
                self.take();
                self.within(Scope::Statement, |parser| {
                    parser.statements();
                    parser.close(Kind::ParenClose, token)
                })?;
            }
            Kind::TableOpen => self.within(self.scope, Self::table)?,
            Kind::BraceOpen => {
                self.take();
                self.within(Scope::ScriptBlock, |parser| {
                    parser.block_content();
                    parser.close(Kind::BraceClose, token)
                })?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn parentheses(&mut self) -> Parsed<()> {
        let open = self.take();
        self.skip_lines();
        if self.peek().kind == Kind::ParenClose {
            self.report(&codes::MISSING_EXPRESSION, open.end, "an expression is missing in '()'");
            self.take();
            return Ok(());
        }
        self.within(self.scope, Self::pipeline)?;
        self.close(Kind::ParenClose, open)?;
        Ok(())
    }

    /// `@{ key = value }`
    fn table(&mut self) -> Parsed<()> {
        let open = self.take();
        loop {
            self.skip_ends();
            if matches!(self.peek().kind, Kind::BraceClose | Kind::End) {
                break;
            }
            self.key()?;
            self.skip_lines();
            let value = self.peek();
            if matches!(value.kind, Kind::BraceClose | Kind::Semicolon | Kind::End) {
                return self.fail(&codes::MISSING_EXPRESSION, value.start, "a value is missing in the table");
            }
            self.nest(Self::statement)?;
            if !matches!(self.peek().kind, Kind::NewLine | Kind::Semicolon | Kind::BraceClose) {
                break;
            }
        }
        self.close(Kind::BraceClose, open)?;
        Ok(())
    }

    /// A key of a table and its `=`.
    fn key(&mut self) -> Parsed<()> {
        let key = self.lexer.peek(Mode::Member);
        if key.kind == Kind::Word {
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
        if equals.kind == Kind::Assign && self.lexer.text(equals) == "=" {
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
                Kind::BraceOpen | Kind::TableOpen => depth += 1,
                Kind::BraceClose => depth -= 1,
                Kind::End => return,
                _ => {}
            }
        }
    }

    /// Members, indexes and calls behind a value. In an expression a `.` may start the next line.
    pub(super) fn selectors(&mut self, lines: bool) -> Parsed<()> {
        loop {
            let token = self.peek();
            if token.kind == Kind::NewLine && lines && self.skip_to_member() {
                continue;
            }
            match token.kind {
                _ if token.spaced && token.kind != Kind::Step => return Ok(()),
                Kind::Dot | Kind::ColonColon | Kind::QuestionDot if lines || self.names_member(token) => {
                    self.take();
                    self.member(token)?;
                }
                // The name of a member may be a number.
                Kind::Number if self.lexer.text(token).starts_with('.') => {
                    self.back(token.start + 1);
                    self.member(token)?;
                }
                Kind::BracketOpen | Kind::QuestionBracket => {
                    self.take();
                    self.index(token)?;
                }
                Kind::Step if lines => {
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
        if matches!(token.kind, Kind::Dot | Kind::QuestionDot | Kind::ColonColon) && self.names_member(token) {
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
            Kind::Word | Kind::Number => {
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
            Kind::ParenOpen if !next.spaced => self.call(),
            Kind::BraceOpen if !next.spaced => self.nest(Self::primary).map(drop),
            _ => Ok(()),
        }
    }

    /// `[type, type]` between the name of a method and its arguments; nothing is taken when it is something else.
    fn type_arguments(&mut self) -> bool {
        let open = self.peek();
        let rest = self.lexer.source().get(open.end..).unwrap_or_default();
        if open.kind != Kind::BracketOpen || open.spaced || !rest.starts_with(|c: char| c.is_alphabetic() || c == '[') {
            return false;
        }
        let problems = self.script.problems.len();
        self.take();
        let types = self.type_list();
        let next = self.peek();
        if types.is_ok() && next.kind == Kind::ParenOpen && !next.spaced {
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
            while parser.peek().kind != Kind::ParenClose {
                let start = parser.peek();
                if !parser.expression()? {
                    return parser.fail(&codes::MISSING_EXPRESSION, start.start, "an argument is missing");
                }
                parser.skip_lines();
                if parser.take_if(Kind::Comma).is_none() {
                    break;
                }
                parser.skip_lines();
                if parser.peek().kind == Kind::ParenClose {
                    let end = parser.peek().start;
                    return parser.fail(&codes::MISSING_EXPRESSION, end, "an argument is missing after the comma");
                }
            }
            parser.close(Kind::ParenClose, open)
        })?;
        Ok(())
    }

    fn index(&mut self, open: Token) -> Parsed<()> {
        self.skip_lines();
        self.within(self.scope, |parser| {
            if !parser.expression()? {
                return parser.fail(&codes::MISSING_EXPRESSION, open.end, "an index is missing in '[]'");
            }
            parser.close(Kind::BracketClose, open)
        })?;
        Ok(())
    }
}
