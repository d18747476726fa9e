//! Statements.

use stead_core::diag::codes::powershell::script as codes;

use super::flow::{Flow, Way};
use super::parser::{Parsed, Parser};
use super::{Scope, Using, UsingKind};
use crate::token::{Mode, Token, TokenKind};

/// The names of blocks that a script block may consist of.
const BLOCKS: &[&str] = &["begin", "process", "end", "clean", "dynamicparam"];

/// Words that are kept for later versions of the language.
const RESERVED: &[&str] = &["define", "from", "var"];

impl Parser<'_, '_> {
    /// The using statements at the start of a file.
    pub(super) fn usings(&mut self) {
        self.skip_ends();
        while self.is_word("using") {
            let _ = self.using(true);
            self.skip_ends();
        }
    }

    fn using(&mut self, allowed: bool) -> Parsed<()> {
        let keyword = self.take();
        if !allowed {
            self.report(&codes::USING, keyword.start, "'using' is only valid before everything else in a script");
        }
        let word = self.lexer.next(Mode::Argument);
        let kind = match self.lexer.text(word).to_ascii_lowercase().as_str() {
            "assembly" => UsingKind::Assembly,
            "module" => UsingKind::Module,
            "namespace" => UsingKind::Namespace,
            _ => {
                return self.fail(
                    &codes::USING,
                    word.start,
                    "expected 'namespace', 'module' or 'assembly' after 'using'",
                );
            }
        };
        let start = self.lexer.peek(Mode::Argument);
        if matches!(start.kind, TokenKind::NewLine | TokenKind::Semicolon | TokenKind::End) {
            return self.fail(&codes::USING, start.start, "'using' names nothing");
        }
        let name = if start.kind == TokenKind::TableOpen {
            self.unary()?;
            self.since(start.start).to_owned()
        } else {
            let token = self.lexer.next(Mode::Argument);
            self.plain(token)
        };
        self.end_of_statement()?;
        let at = self.place(keyword.start);
        self.script.usings.push(Using { kind, name, at });
        Ok(())
    }

    /// The text from that offset to the last token that was taken.
    pub(super) fn since(&self, start: usize) -> &str {
        self.lexer.source().get(start..self.lexer.offset()).unwrap_or_default()
    }

    /// Reads the content of a file or a script block: parameters, then named blocks or statements.
    pub(super) fn block_content(&mut self) -> Vec<super::Parameter> {
        self.skip_lines();
        let parameters = self.leading_parameters();
        self.skip_ends();
        if self.word().is_some_and(|word| is_one_of(word, BLOCKS)) {
            self.named_blocks();
        } else {
            self.statements();
        }
        parameters
    }

    fn named_blocks(&mut self) {
        while self.word().is_some_and(|word| is_one_of(word, BLOCKS)) {
            let keyword = self.take();
            self.skip_lines();
            if self.peek().kind != TokenKind::BraceOpen {
                let name = self.lexer.text(keyword).to_owned();
                self.report(&codes::INCOMPLETE, keyword.start, format!("'{name}' requires a block"));
                break;
            }
            let scope = self.scope;
            let _ = self.statement_block(if scope == Scope::Top { Scope::Statement } else { scope });
            self.skip_ends();
        }
        if !matches!(self.peek().kind, TokenKind::End | TokenKind::BraceClose) {
            let token = self.peek();
            self.unexpected(token);
            self.statements();
        }
    }

    /// Statements up to a bracket that closes, or the end.
    pub(super) fn statements(&mut self) {
        loop {
            self.skip_ends();
            let token = self.peek();
            if matches!(token.kind, TokenKind::End | TokenKind::BraceClose | TokenKind::ParenClose) {
                return;
            }
            let _ = self.statement();
            if self.lexer.offset() <= token.start {
                // A rule that takes nothing must not be tried again at the same place.
                self.unexpected(token);
                self.take();
            }
        }
    }

    /// `{ ... }` of a statement.
    pub(super) fn statement_block(&mut self, scope: Scope) -> Parsed<()> {
        self.skip_lines();
        let Some(open) = self.take_if(TokenKind::BraceOpen) else {
            let token = self.peek();
            return self.fail(&codes::INCOMPLETE, token.start, "a block in braces is missing");
        };
        self.within(scope, |parser| {
            parser.statements();
            parser.close(TokenKind::BraceClose, open)
        })?;
        Ok(())
    }

    fn body(&mut self) -> Parsed<()> {
        self.statement_block(Scope::Statement)
    }

    /// One statement.
    pub(super) fn statement(&mut self) -> Parsed<()> {
        self.nest(Self::statement_here)
    }

    pub(super) fn statement_here(&mut self) -> Parsed<()> {
        let token = self.peek();
        match token.kind {
            TokenKind::Word if self.is_property(token) => self.pipelines(),
            TokenKind::Word => self.statement_of(token),
            TokenKind::BracketOpen => match self.attributes_of_definition() {
                Some((attributes, at)) if self.is_word("enum") => self.enumeration(attributes, at),
                Some((attributes, at)) => self.class(attributes, at),
                None => self.pipelines(),
            },
            TokenKind::Label => {
                self.take();
                self.flow.label = Some(self.lexer.text(token).trim_start_matches(':').to_owned());
                self.skip_lines();
                self.statement()
            }
            _ => self.pipelines(),
        }
    }

    /// The statement that begins with that word.
    fn statement_of(&mut self, token: Token) -> Parsed<()> {
        let word = self.lexer.text(token).to_ascii_lowercase();
        match word.as_str() {
            "if" => self.if_statement(),
            "switch" => self.switch_statement(),
            "while" => self.while_statement(),
            "for" => self.for_statement(),
            "foreach" => self.foreach_statement(),
            "do" => self.do_statement(),
            "try" => self.try_statement(),
            "trap" => self.trap_statement(),
            "data" => self.data_statement(),
            "return" | "throw" | "exit" => self.leave_statement(),
            "break" | "continue" => self.jump_statement(),
            "function" | "filter" | "workflow" => self.function(),
            "configuration" => self.configuration(),
            "class" => self.class(Vec::new(), token.start),
            "enum" => self.enumeration(Vec::new(), token.start),
            "using" => self.using(false),
            word if RESERVED.contains(&word) => {
                self.take();
                self.fail(&codes::UNEXPECTED, token.start, format!("'{word}' is a reserved word"))
            }
            _ => self.pipelines(),
        }
    }

    /// `( ... )` with a condition in it.
    fn condition(&mut self) -> Parsed<()> {
        self.skip_lines();
        let Some(open) = self.take_if(TokenKind::ParenOpen) else {
            let token = self.peek();
            return self.fail(&codes::INCOMPLETE, token.start, "a condition in parentheses is missing");
        };
        self.skip_lines();
        self.within(self.scope, Self::pipeline)?;
        self.close(TokenKind::ParenClose, open)?;
        Ok(())
    }

    /// Returns whether that word comes next, behind any number of lines; it is taken then.
    fn continues(&mut self, word: &str) -> bool {
        let before = self.lexer.offset();
        self.skip_lines();
        if self.is_word(word) {
            self.take();
            return true;
        }
        self.back(before);
        false
    }

    fn if_statement(&mut self) -> Parsed<()> {
        self.take();
        let mut end = Way::None;
        loop {
            self.condition()?;
            let before = self.flow.way.clone();
            self.body()?;
            end.join(std::mem::replace(&mut self.flow.way, before));
            if self.continues("elseif") {
                continue;
            }
            if self.continues("else") {
                self.body()?;
            }
            self.flow.way.join(end);
            return Ok(());
        }
    }

    fn while_statement(&mut self) -> Parsed<()> {
        self.take();
        let label = self.flow.label.take();
        self.condition()?;
        self.flow.label = label;
        self.conditional_rounds(Self::body)
    }

    fn do_statement(&mut self) -> Parsed<()> {
        self.take();
        let left = self.rounds(Self::body)?;
        self.flow.way.join(left.continued);
        if self.continues("while") || self.continues("until") {
            self.condition()?;
            self.flow.way.join(left.broken);
            return Ok(());
        }
        let token = self.peek();
        self.fail(&codes::INCOMPLETE, token.start, "'while' or 'until' is missing after the block of 'do'")
    }

    fn for_statement(&mut self) -> Parsed<()> {
        self.take();
        self.skip_lines();
        let Some(open) = self.take_if(TokenKind::ParenOpen) else {
            let token = self.peek();
            return self.fail(&codes::INCOMPLETE, token.start, "'(' is missing after 'for'");
        };
        let mut has_condition = false;
        let mut before = self.flow.way.clone();
        for part in 0..3 {
            self.skip_lines();
            // What comes behind each round may read what the round assigns.
            if part == 2 {
                before = std::mem::take(&mut self.flow.way);
            }
            if !matches!(self.peek().kind, TokenKind::Semicolon | TokenKind::ParenClose) {
                self.within(self.scope, Self::pipeline)?;
                has_condition |= part == 1;
            }
            if !matches!(self.peek().kind, TokenKind::Semicolon | TokenKind::NewLine) {
                break;
            }
            self.take();
        }
        self.close(TokenKind::ParenClose, open)?;
        if !self.flow.way.reaches() {
            self.flow.way = before;
        }
        let before = self.flow.way.clone();
        let left = self.rounds(Self::body)?;
        self.flow.way = left.broken;
        if has_condition {
            self.flow.way.join(before);
        }
        Ok(())
    }

    fn foreach_statement(&mut self) -> Parsed<()> {
        self.take();
        self.skip_lines();
        while self.lexer.peek(Mode::Argument).kind == TokenKind::Parameter {
            let flag = self.lexer.next(Mode::Argument);
            if self.lexer.text(flag).eq_ignore_ascii_case("-throttlelimit") {
                self.argument()?;
            }
            self.skip_lines();
        }
        let Some(open) = self.take_if(TokenKind::ParenOpen) else {
            let token = self.peek();
            return self.fail(&codes::INCOMPLETE, token.start, "'(' is missing after 'foreach'");
        };
        self.skip_lines();
        let Some(variable) = self.take_if(TokenKind::Variable) else {
            let token = self.peek();
            return self.fail(&codes::INCOMPLETE, token.start, "'foreach' requires a variable");
        };
        self.skip_lines();
        if !self.is_word("in") {
            let token = self.peek();
            return self.fail(&codes::INCOMPLETE, token.start, "'in' is missing after the variable of 'foreach'");
        }
        self.take();
        self.skip_lines();
        self.within(self.scope, Self::pipeline)?;
        self.close(TokenKind::ParenClose, open)?;
        let name = self.variable(variable);
        self.flow.assign(&name);
        self.conditional_rounds(Self::body)
    }

    fn switch_statement(&mut self) -> Parsed<()> {
        self.take();
        self.skip_lines();
        let mut file = false;
        while self.lexer.peek(Mode::Argument).kind == TokenKind::Parameter {
            let flag = self.lexer.next(Mode::Argument);
            let name = self.lexer.text(flag).to_ascii_lowercase();
            if "-file".starts_with(&name) {
                file = true;
                self.argument()?;
            }
            self.skip_lines();
        }
        if !file {
            self.condition()?;
        }
        self.skip_lines();
        let Some(open) = self.take_if(TokenKind::BraceOpen) else {
            let token = self.peek();
            return self.fail(&codes::INCOMPLETE, token.start, "'{' is missing after the condition of 'switch'");
        };
        self.conditional_rounds(|parser| parser.within(Scope::Statement, |parser| parser.clauses(open)))
    }

    fn clauses(&mut self, open: Token) -> Parsed<()> {
        self.skip_ends();
        while !matches!(self.peek().kind, TokenKind::BraceClose | TokenKind::End) {
            self.argument()?;
            let before = self.flow.way.clone();
            self.body()?;
            self.flow.way = before;
            self.skip_ends();
        }
        self.close(TokenKind::BraceClose, open).map(drop)
    }

    fn try_statement(&mut self) -> Parsed<()> {
        let keyword = self.take();
        let before = self.flow.way.clone();
        self.body()?;
        let mut end = self.flow.way.clone();
        let (mut handled, mut all) = (false, false);
        while self.continues("catch") {
            handled = true;
            self.skip_lines();
            all |= self.peek().kind != TokenKind::BracketOpen;
            while self.peek().kind == TokenKind::BracketOpen {
                self.bracketed()?;
                self.skip_lines();
                if self.take_if(TokenKind::Comma).is_some() {
                    self.skip_lines();
                }
            }
            self.flow.way = before.clone();
            self.body()?;
            end.join(self.flow.way.clone());
        }
        if self.continues("finally") {
            let reaches = end.reaches();
            self.flow.way = end;
            // An error that nothing catches leads there as well, and no further: PowerShell joins both ways all the same.
            if !all {
                self.flow.way.join(before);
            }
            self.body()?;
            if !reaches {
                self.flow.way = Way::None;
            }
            return Ok(());
        }
        self.flow.way = end;
        if handled {
            return Ok(());
        }
        self.fail(&codes::INCOMPLETE, keyword.start, "'try' requires 'catch' or 'finally'")
    }

    fn trap_statement(&mut self) -> Parsed<()> {
        self.take();
        self.skip_lines();
        if self.peek().kind == TokenKind::BracketOpen {
            self.bracketed()?;
        }
        self.apart(Flow::default(), Self::body).0
    }

    fn data_statement(&mut self) -> Parsed<()> {
        self.take();
        self.skip_lines();
        if self.lexer.peek(Mode::Argument).kind == TokenKind::Word {
            let name = self.lexer.next(Mode::Argument);
            let name = self.lexer.text(name).to_owned();
            self.flow.assign(&name);
            self.skip_lines();
        }
        while self.lexer.peek(Mode::Argument).kind == TokenKind::Parameter {
            self.lexer.next(Mode::Argument);
            self.argument_list()?;
            self.skip_lines();
        }
        self.apart(Flow::default(), Self::body).0
    }

    fn leave_statement(&mut self) -> Parsed<()> {
        self.take();
        if !self.ends_pipeline() {
            self.pipelines()?;
        }
        self.flow.way = Way::None;
        Ok(())
    }

    fn jump_statement(&mut self) -> Parsed<()> {
        let word = self.take();
        let is_break = self.lexer.text(word).eq_ignore_ascii_case("break");
        let start = self.peek().start;
        let has_label = !self.ends_pipeline() && self.argument()?;
        let label = has_label.then(|| self.since(start).to_owned());
        self.flow.jump(is_break, label.as_deref());
        self.end_of_statement()
    }

    /// Returns whether nothing more of a pipeline follows.
    pub(super) fn ends_pipeline(&mut self) -> bool {
        let kind = self.peek().kind;
        matches!(
            kind,
            TokenKind::NewLine | TokenKind::Semicolon | TokenKind::End | TokenKind::BraceClose | TokenKind::ParenClose
        )
    }

    /// Checks that a statement is over.
    pub(super) fn end_of_statement(&mut self) -> Parsed<()> {
        if self.ends_pipeline() {
            return Ok(());
        }
        let token = self.peek();
        self.unexpected(token);
        Err(super::parser::Broken)
    }
}

pub(super) fn is_one_of(word: &str, words: &[&str]) -> bool {
    words.iter().any(|known| known.eq_ignore_ascii_case(word))
}
