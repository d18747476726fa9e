//! Functions, configurations and their parameters.

use stead_core::diag::codes::powershell::script as codes;

pub(super) use super::brackets::Bracketed;
use super::flow::Flow;
use super::parser::{Parsed, Parser};
use super::{Function, Parameter, Scope};
use crate::token::{Mode, StringPart, Token, TokenKind, parts, unquote};

impl Parser<'_, '_> {
    /// The text of a token that holds a name: without quotes and escapes.
    pub(super) fn plain(&self, token: Token) -> String {
        let text = self.lexer.text(token);
        match token.kind {
            TokenKind::Literal => unquote(text),
            TokenKind::Expandable | TokenKind::Word => {
                let parts = parts(text).into_iter();
                parts.map(|part| if let StringPart::Text(text) = part { text } else { String::new() }).collect()
            }
            _ => text.to_owned(),
        }
    }

    /// The parameters at the start of a script block or file, with the attributes before them.
    pub(super) fn leading_parameters(&mut self) -> Vec<Parameter> {
        if !self.is_word("param") && self.attributes_before(&["param"]).is_none() {
            return Vec::new();
        }
        let keyword = self.take();
        self.skip_lines();
        if self.peek().kind != TokenKind::ParenOpen {
            self.back(keyword.start);
            return Vec::new();
        }
        self.nest(Self::parameters).unwrap_or_default()
    }

    /// `function name(parameters) { ... }`
    pub(super) fn function(&mut self) -> Parsed<()> {
        let keyword = self.take();
        self.function_named(keyword, Scope::Function).map(|function| self.script.functions.push(function))
    }

    /// `configuration name { ... }`
    pub(super) fn configuration(&mut self) -> Parsed<()> {
        let keyword = self.take();
        self.configurations += 1;
        let read = self.function_named(keyword, Scope::Function);
        self.configurations -= 1;
        read.map(|function| self.script.configurations.push(function))
    }

    fn function_named(&mut self, keyword: Token, scope: Scope) -> Parsed<Function> {
        let word = self.lexer.text(keyword).to_owned();
        let name = self.lexer.next(Mode::Argument);
        let named = matches!(
            name.kind,
            TokenKind::Word | TokenKind::Number | TokenKind::Parameter | TokenKind::Literal | TokenKind::Expandable
        );
        if !named {
            self.back(name.start);
            return self.fail(&codes::INCOMPLETE, keyword.end, format!("a name is missing after '{word}'"));
        }
        let name = self.plain(name);
        self.skip_lines();
        let mut parameters = Vec::new();
        if self.peek().kind == TokenKind::ParenOpen {
            parameters = self.parameters()?;
            self.skip_lines();
        }
        let Some(open) = self.take_if(TokenKind::BraceOpen) else {
            let token = self.peek();
            return self.fail(&codes::INCOMPLETE, token.start, format!("the body of '{word} {name}' is missing"));
        };
        let outer = self.scope;
        let content = |parser: &mut Self| {
            let more = parser.block_content();
            parameters.extend(more);
            parser.close(TokenKind::BraceClose, open)
        };
        let (close, _) = self.apart(Flow::default(), |parser| parser.within(scope, content));
        let close = close.map_or(self.lexer.offset(), |close| close.start);
        let body = self.place(open.end)..self.place(close);
        Ok(Function { name, parameters, body, scope: outer, at: self.place(keyword.start) })
    }

    /// `(parameters)`
    pub(super) fn parameters(&mut self) -> Parsed<Vec<Parameter>> {
        let open = self.take();
        let mut parameters = Vec::new();
        self.within(self.scope, |parser| {
            parser.comma_ends = true;
            parser.skip_lines();
            while parser.peek().kind != TokenKind::ParenClose {
                let Some(parameter) = parser.parameter()? else { break };
                parameters.push(parameter);
                parser.skip_lines();
                if parser.take_if(TokenKind::Comma).is_none() {
                    break;
                }
                parser.skip_lines();
                if parser.peek().kind == TokenKind::ParenClose {
                    let end = parser.peek().start;
                    parser.report(&codes::INCOMPLETE, end, "a parameter is missing after the comma");
                }
            }
            parser.close(TokenKind::ParenClose, open)
        })?;
        Ok(parameters)
    }

    fn parameter(&mut self) -> Parsed<Option<Parameter>> {
        let start = self.peek().start;
        let (mut attributes, mut ty) = (Vec::new(), None);
        while self.peek().kind == TokenKind::BracketOpen {
            match self.bracketed()? {
                Bracketed::Attribute(attribute) => attributes.push(attribute),
                Bracketed::Type(name) => ty = ty.or(Some(name)),
            }
            self.skip_lines();
        }
        let Some(variable) = self.take_if(TokenKind::Variable) else { return Ok(None) };
        let name = self.variable(variable);
        let default = self.default()?;
        Ok(Some(Parameter { name, ty, attributes, default, at: self.place(start) }))
    }

    /// The name of a variable, without its scope.
    pub(super) fn variable(&self, token: Token) -> String {
        let name = crate::token::variable_name(self.lexer.text(token).trim_start_matches('$'));
        let name = if name.is_empty() { "$".to_owned() } else { name };
        name.rsplit_once(':').map_or(name.clone(), |(_, name)| name.to_owned())
    }

    /// The text of what follows a `=`.
    pub(super) fn default(&mut self) -> Parsed<Option<String>> {
        let equals = self.peek();
        if equals.kind != TokenKind::Assign || self.lexer.text(equals) != "=" {
            return Ok(None);
        }
        self.take();
        self.skip_lines();
        let start = self.peek().start;
        let found = self.nest(Self::expression)?;
        Ok(found.then(|| self.since(start).to_owned()))
    }
}
