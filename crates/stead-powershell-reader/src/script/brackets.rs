//! Attributes and types in brackets.

use stead_core::diag::codes::powershell::script as codes;

use super::parser::{Parsed, Parser};
use super::{Argument, Attribute, Constant, TypeForm, TypeName};
use crate::token::{Mode, TokenKind};

/// The content of brackets in front of a definition.
pub(super) enum Bracketed {
    Attribute(Attribute),
    Type(TypeName),
}

/// Arguments of an attribute that have a name.
type NamedArguments = Vec<(String, Argument)>;

impl Parser<'_, '_> {
    /// The attributes before `class` or `enum` and their offset, if that is what the bracket here starts.
    pub(super) fn attributes_of_definition(&mut self) -> Option<(Vec<Attribute>, usize)> {
        let start = self.peek().start;
        let found = self.attributes_before(&["class", "enum"])?;
        let mut attributes = Vec::new();
        for bracketed in found {
            match bracketed {
                Bracketed::Attribute(attribute) => attributes.push(attribute),
                Bracketed::Type(ty) => {
                    self.report(&codes::ATTRIBUTE, start, format!("'[{}]' requires parentheses here", ty.text));
                }
            }
        }
        Some((attributes, start))
    }

    /// Reads the brackets up to one of those words; nothing is taken when another thing follows.
    pub(super) fn attributes_before(&mut self, words: &[&str]) -> Option<Vec<Bracketed>> {
        let start = self.peek();
        if start.kind != TokenKind::BracketOpen || self.no_definition.contains(&start.start) {
            return None;
        }
        let spaced = self.lexer.source().get(start.end..).is_some_and(|rest| rest.starts_with(char::is_whitespace));
        let before = self.marks();
        let mut found = Vec::new();
        while !spaced && self.peek().kind == TokenKind::BracketOpen {
            let Ok(bracketed) = self.nest(Self::bracketed) else { break };
            found.push(bracketed);
            self.skip_lines();
        }
        if self.word().is_some_and(|word| words.iter().any(|known| known.eq_ignore_ascii_case(word))) {
            return Some(found);
        }
        self.undo(before);
        self.back(start.start);
        if words.contains(&"class") {
            self.no_definition.insert(start.start);
        }
        None
    }

    /// The expression from that offset to the last token taken, as a constant.
    pub(super) fn constant(&mut self, start: usize) -> Argument {
        let text = self.since(start).to_owned();
        Argument { value: Constant::evaluate(&text), text, at: self.place(start) }
    }

    /// An attribute or a type in brackets.
    pub(super) fn bracketed(&mut self) -> Parsed<Bracketed> {
        self.nest(Self::bracketed_here)
    }

    fn bracketed_here(&mut self) -> Parsed<Bracketed> {
        let open = self.take();
        self.skip_lines();
        let name = self.type_name()?;
        if self.peek().kind == TokenKind::ParenOpen {
            let (positional, named) = self.attribute_arguments()?;
            self.skip_lines();
            self.close_bracket()?;
            let at = self.place(open.start);
            return Ok(Bracketed::Attribute(Attribute { name: name.text, positional, named, at }));
        }
        if self.peek().kind == TokenKind::Comma {
            self.assembly();
        }
        self.close_bracket()?;
        Ok(Bracketed::Type(name))
    }

    fn close_bracket(&mut self) -> Parsed<()> {
        let token = self.peek();
        if token.kind == TokenKind::BracketClose {
            self.take();
            return Ok(());
        }
        self.fail(&codes::NOT_CLOSED, token.start, "']' is missing after an attribute or a type")
    }

    /// The name of an assembly behind that of a type, which goes up to the bracket.
    fn assembly(&mut self) {
        while !matches!(self.lexer.peek(Mode::Type).kind, TokenKind::BracketClose | TokenKind::NewLine | TokenKind::End)
        {
            self.lexer.next(Mode::Type);
        }
    }

    fn attribute_arguments(&mut self) -> Parsed<(Vec<Argument>, NamedArguments)> {
        let open = self.take();
        let (mut positional, mut named) = (Vec::new(), Vec::new());
        self.within(self.scope, |parser| {
            parser.comma_ends = true;
            parser.skip_lines();
            while parser.peek().kind != TokenKind::ParenClose {
                parser.attribute_argument(&mut positional, &mut named)?;
                parser.skip_lines();
                if parser.take_if(TokenKind::Comma).is_none() {
                    break;
                }
                parser.skip_lines();
            }
            parser.close(TokenKind::ParenClose, open)
        })?;
        Ok((positional, named))
    }

    fn attribute_argument(
        &mut self,
        positional: &mut Vec<Argument>,
        named: &mut Vec<(String, Argument)>,
    ) -> Parsed<()> {
        let token = self.lexer.peek(Mode::Member);
        let start = token.start;
        if token.kind != TokenKind::Word {
            if !self.expression()? {
                return self.fail(&codes::MISSING_EXPRESSION, start, "an argument of the attribute is missing");
            }
            positional.push(self.constant(start));
            return Ok(());
        }
        self.lexer.next(Mode::Member);
        let name = self.lexer.text(token).to_owned();
        let equals = self.peek();
        if equals.kind != TokenKind::Assign {
            let argument =
                Argument { text: String::new(), value: Some(Constant::Boolean(true)), at: self.place(start) };
            named.push((name, argument));
            return Ok(());
        }
        self.take();
        self.skip_lines();
        let value = self.peek().start;
        if !self.expression()? {
            return self.fail(&codes::MISSING_EXPRESSION, equals.end, format!("a value is missing after '{name} ='"));
        }
        let mut argument = self.constant(value);
        argument.at = self.place(start);
        named.push((name, argument));
        Ok(())
    }

    /// The name of a type, with its arguments and dimensions.
    pub(super) fn type_name(&mut self) -> Parsed<TypeName> {
        let start = self.lexer.peek(Mode::Type).start;
        let form = self.nest(Self::type_form)?;
        Ok(TypeName { text: self.since(start).to_owned(), form, at: self.place(start) })
    }

    fn type_form(&mut self) -> Parsed<TypeForm> {
        let token = self.lexer.peek(Mode::Type);
        if token.kind != TokenKind::Word {
            return self.fail(&codes::TYPE_NAME, token.start, "the name of a type is missing");
        }
        self.lexer.next(Mode::Type);
        let name = self.lexer.text(token).to_owned();
        self.dimensioned(TypeForm::Name(name))
    }

    /// A type with the dimensions behind it, each of which is a level: a list of lists lies within them.
    fn dimensioned(&mut self, form: TypeForm) -> Parsed<TypeForm> {
        if self.lexer.peek(Mode::Type).kind != TokenKind::BracketOpen {
            return Ok(form);
        }
        let open = self.lexer.next(Mode::Type);
        let form = match (self.dimensions(), form) {
            (Some(rank), form) => TypeForm::Array(Box::new(form), rank),
            (None, TypeForm::Name(name)) => TypeForm::Generic(name, self.type_list()?),
            (None, _) => return self.fail(&codes::TYPE_NAME, open.start, "this is not the name of a type"),
        };
        self.nest(|parser| parser.dimensioned(form))
    }

    /// The number of dimensions in `[]`, `[,]` and the like, of which the first bracket is taken.
    fn dimensions(&mut self) -> Option<usize> {
        let before = self.lexer.offset();
        let mut rank = 1;
        while self.lexer.peek(Mode::Type).kind == TokenKind::Comma {
            self.lexer.next(Mode::Type);
            rank += 1;
        }
        if self.lexer.peek(Mode::Type).kind == TokenKind::BracketClose {
            self.lexer.next(Mode::Type);
            return Some(rank);
        }
        self.back(before);
        None
    }

    /// The arguments of a generic type, of which the first bracket is taken, with the last.
    pub(super) fn type_list(&mut self) -> Parsed<Vec<TypeForm>> {
        let mut types = Vec::new();
        loop {
            self.skip_lines();
            let bracketed = self.take_if(TokenKind::BracketOpen).is_some();
            types.push(self.nest(Self::type_form)?);
            if bracketed {
                self.assembly();
                self.close_bracket()?;
            }
            self.skip_lines();
            if self.take_if(TokenKind::Comma).is_none() {
                self.close_bracket()?;
                return Ok(types);
            }
        }
    }
}
