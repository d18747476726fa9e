//! Classes, enumerations, functions, their parameters, attributes and types.

use stead_core::diag::codes::powershell::script as codes;

use super::parser::{Broken, Parsed, Parser};
use super::problem::Problem;
use super::{
    Argument, Attribute, Constant, Function, Member, MemberKind, Parameter, Scope, TypeDefinition, TypeForm, TypeName,
};
use crate::token::{Mode, StringPart, Token, TokenKind, parts, unquote};

/// The content of brackets in front of a definition.
pub(super) enum Bracketed {
    Attribute(Attribute),
    Type(TypeName),
}

/// The modifiers in front of the name of a member.
#[derive(Default)]
struct Modifiers {
    hidden: bool,
    is_static: bool,
    attributes: Vec<Attribute>,
    ty: Option<TypeName>,
}

/// Arguments of an attribute that have a name.
type NamedArguments = Vec<(String, Argument)>;

/// The consequence of a broken member: whether its class can still be defined.
enum MemberError {
    Defined,
    Undefined,
}

impl From<Broken> for MemberError {
    fn from(Broken: Broken) -> Self {
        Self::Defined
    }
}

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
    fn attributes_before(&mut self, words: &[&str]) -> Option<Vec<Bracketed>> {
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
        let close = self.within(scope, |parser| {
            let more = parser.block_content();
            parameters.extend(more);
            parser.close(TokenKind::BraceClose, open)
        });
        let close = close.map_or(self.lexer.offset(), |close| close.start);
        let body = self.place(open.end)..self.place(close);
        Ok(Function { name, parameters, body, scope: outer, at: self.place(keyword.start) })
    }

    /// `(parameters)`
    fn parameters(&mut self) -> Parsed<Vec<Parameter>> {
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
    fn variable(&self, token: Token) -> String {
        let name = crate::token::variable_name(self.lexer.text(token).trim_start_matches('$'));
        let name = if name.is_empty() { "$".to_owned() } else { name };
        name.rsplit_once(':').map_or(name.clone(), |(_, name)| name.to_owned())
    }

    /// The text of what follows a `=`.
    fn default(&mut self) -> Parsed<Option<String>> {
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

    /// `class name : bases { members }`
    pub(super) fn class(&mut self, attributes: Vec<Attribute>, at: usize) -> Parsed<()> {
        let keyword = self.take();
        self.skip_lines();
        let name = self.type_definition_name(keyword)?;
        self.skip_lines();
        let bases = self.bases();
        self.skip_lines();
        let open = self.body_of_type(keyword)?;
        let at = self.place(at);
        let scope = self.scope;
        let index = self.script.types.len();
        let ty = TypeDefinition { name, enumeration: false, bases, attributes, members: Vec::new(), scope, at };
        self.script.types.push(ty);
        self.within(Scope::Function, |parser| parser.class_members(index, open))
    }

    fn class_members(&mut self, index: usize, open: Token) -> Parsed<()> {
        loop {
            self.skip_lines();
            match self.class_member(index) {
                Ok(Some(member)) => {
                    self.check_constants(&member.attributes);
                    self.add_member(index, member);
                }
                Ok(None) => break,
                Err(MemberError::Defined) => return Err(Broken),
                Err(MemberError::Undefined) => {
                    self.script.types.remove(index);
                    return Err(Broken);
                }
            }
        }
        self.close(TokenKind::BraceClose, open)?;
        Ok(())
    }

    /// Arguments of attributes in a class are constants; those of parameters may be script blocks as well.
    fn check_constants(&mut self, attributes: &[Attribute]) {
        for attribute in attributes {
            let named = attribute.named.iter().map(|(_, argument)| argument);
            for argument in attribute.positional.iter().chain(named).filter(|argument| argument.value.is_none()) {
                let message = format!("'{}' is not a constant", argument.text);
                self.script.problems.push(Problem::new(&codes::ATTRIBUTE, argument.at, message));
            }
        }
    }

    fn add_member(&mut self, index: usize, member: Member) {
        if let Some(ty) = self.script.types.get_mut(index) {
            ty.members.push(member);
        }
    }

    fn type_definition_name(&mut self, keyword: Token) -> Parsed<String> {
        let name = self.lexer.peek(Mode::Member);
        if name.kind == TokenKind::Word {
            self.lexer.next(Mode::Member);
            return Ok(self.lexer.text(name).to_owned());
        }
        let word = self.lexer.text(keyword).to_owned();
        self.fail(&codes::INCOMPLETE, keyword.end, format!("a name is missing after '{word}'"))
    }

    fn body_of_type(&mut self, keyword: Token) -> Parsed<Token> {
        if let Some(open) = self.take_if(TokenKind::BraceOpen) {
            return Ok(open);
        }
        let word = self.lexer.text(keyword).to_owned();
        let token = self.peek();
        self.fail(&codes::INCOMPLETE, token.start, format!("the body of the {word} is missing"))
    }

    /// The types behind a colon, if there is one.
    fn bases(&mut self) -> Vec<TypeName> {
        let mut bases = Vec::new();
        if self.lexer.peek(Mode::Member).kind != TokenKind::Colon {
            return bases;
        }
        self.lexer.next(Mode::Member);
        loop {
            self.skip_lines();
            match self.type_name() {
                Ok(name) => bases.push(name),
                Err(Broken) => return bases,
            }
            self.skip_lines();
            if self.take_if(TokenKind::Comma).is_none() {
                return bases;
            }
        }
    }

    fn class_member(&mut self, class: usize) -> Result<Option<Member>, MemberError> {
        let start = self.lexer.peek(Mode::Member).start;
        let mut modifiers = Modifiers::default();
        let name = self.modifiers(&mut modifiers)?;
        match name.kind {
            TokenKind::Variable => self.property(name, modifiers, start).map(Some).map_err(MemberError::from),
            TokenKind::Word => self.method(class, name, modifiers, start).map(Some),
            _ if self.lexer.offset() == start || modifiers_are_absent(&modifiers) => Ok(None),
            _ => {
                self.report(&codes::MEMBER, name.start, "the name of a property or method is missing");
                Err(after(&modifiers))
            }
        }
    }

    /// Reads what stands before the name of a member, and returns the token of the name, which is not taken.
    fn modifiers(&mut self, modifiers: &mut Modifiers) -> Result<Token, MemberError> {
        loop {
            let token = self.lexer.peek(Mode::Member);
            let word = self.lexer.text(token);
            match token.kind {
                TokenKind::BracketOpen => match self.bracketed() {
                    Ok(Bracketed::Attribute(attribute)) => modifiers.attributes.push(attribute),
                    Ok(Bracketed::Type(ty)) => self.type_of_member(modifiers, ty),
                    // A type that does not end is a type all the same.
                    Err(Broken) => return Err(MemberError::Undefined),
                },
                TokenKind::Word if word.eq_ignore_ascii_case("hidden") => {
                    self.modifier(&mut modifiers.hidden, token);
                }
                TokenKind::Word if word.eq_ignore_ascii_case("static") => {
                    self.modifier(&mut modifiers.is_static, token);
                }
                _ => return Ok(token),
            }
            self.skip_lines();
        }
    }

    fn modifier(&mut self, stated: &mut bool, token: Token) {
        self.lexer.next(Mode::Member);
        if std::mem::replace(stated, true) {
            let word = self.lexer.text(token).to_ascii_lowercase();
            self.report(&codes::MEMBER, token.start, format!("'{word}' stands here twice"));
        }
    }

    fn type_of_member(&mut self, modifiers: &mut Modifiers, ty: TypeName) {
        if modifiers.ty.is_some() {
            self.report_at(&codes::MEMBER, ty.at, "a member has one type only");
        } else {
            modifiers.ty = Some(ty);
        }
    }

    fn property(&mut self, name: Token, modifiers: Modifiers, start: usize) -> Parsed<Member> {
        self.take();
        let end = name.end;
        let name = self.variable(name);
        let default = self.default()?;
        self.end_of_property(end);
        Ok(modifiers.member(name, MemberKind::Property(default), self.place(start)))
    }

    /// A line end or `;` after a property or the name of an enumeration.
    fn end_of_property(&mut self, at: usize) {
        match self.peek().kind {
            TokenKind::NewLine | TokenKind::Semicolon => self.skip_ends(),
            TokenKind::BraceClose => {}
            _ => self.report(&codes::MEMBER, at, "a line end or ';' is missing before the next member"),
        }
    }

    fn method(&mut self, class: usize, name: Token, modifiers: Modifiers, start: usize) -> Result<Member, MemberError> {
        self.lexer.next(Mode::Member);
        let text = self.lexer.text(name).to_owned();
        match self.method_parts(class, &text, name) {
            Ok(parameters) => Ok(modifiers.member(text, MemberKind::Method(parameters), self.place(start))),
            Err(Broken) => Err(after(&modifiers)),
        }
    }

    fn method_parts(&mut self, class: usize, name: &str, token: Token) -> Parsed<Vec<Parameter>> {
        if self.peek().kind != TokenKind::ParenOpen {
            return self.fail(
                &codes::MEMBER,
                token.end,
                format!("'(' is missing after the name of the method '{name}'"),
            );
        }
        let parameters = self.nest(Self::parameters)?;
        self.skip_lines();
        let constructor = self.script.types.get(class).is_some_and(|class| class.name.eq_ignore_ascii_case(name));
        if constructor && let Some(colon) = self.take_if(TokenKind::Colon) {
            self.base_call(colon)?;
        }
        self.skip_lines();
        if self.peek().kind != TokenKind::BraceOpen {
            let at = self.peek().start;
            return self.fail(&codes::MEMBER, at, format!("the body of the method '{name}' is missing"));
        }
        // What is wrong in the body is reported there, and the method is a method all the same.
        let _ = self.nest(|parser| parser.statement_block(Scope::Function));
        Ok(parameters)
    }

    fn base_call(&mut self, colon: Token) -> Parsed<()> {
        self.skip_lines();
        if !self.is_word("base") {
            return self.fail(&codes::MEMBER, colon.end, "'base' is missing after the ':' of a constructor");
        }
        self.take();
        self.skip_lines();
        if self.peek().kind != TokenKind::ParenOpen {
            return self.fail(&codes::MEMBER, colon.end, "'(' is missing after 'base'");
        }
        self.nest(Self::call)
    }

    /// `enum name : type { names }`
    pub(super) fn enumeration(&mut self, attributes: Vec<Attribute>, at: usize) -> Parsed<()> {
        let keyword = self.take();
        self.skip_lines();
        let name = self.type_definition_name(keyword)?;
        let bases = self.bases();
        self.skip_lines();
        let open = self.body_of_type(keyword)?;
        let at = self.place(at);
        let mut members = Vec::new();
        self.skip_lines();
        while let Some(member) = self.enumeration_member() {
            members.push(member);
        }
        let scope = self.scope;
        self.script.types.push(TypeDefinition { name, enumeration: true, bases, attributes, members, scope, at });
        self.close(TokenKind::BraceClose, open)?;
        Ok(())
    }

    fn enumeration_member(&mut self) -> Option<Member> {
        let token = self.lexer.peek(Mode::Member);
        if token.kind != TokenKind::Word {
            return None;
        }
        self.lexer.next(Mode::Member);
        let name = self.lexer.text(token).to_owned();
        let value = if self.peek().kind == TokenKind::Assign { self.enumeration_value(token) } else { None };
        self.end_of_property(token.end);
        Some(Modifiers::default().member(name, MemberKind::Value(value), self.place(token.start)))
    }

    fn enumeration_value(&mut self, name: Token) -> Option<Argument> {
        self.take();
        let start = self.peek().start;
        match self.nest(Self::expression) {
            Ok(true) => Some(self.constant(start)),
            Ok(false) => {
                self.report(&codes::MISSING_EXPRESSION, name.end, "a value is missing after the '='");
                None
            }
            Err(Broken) => None,
        }
    }

    /// The expression from that offset to the last token taken, as a constant.
    fn constant(&mut self, start: usize) -> Argument {
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

impl Modifiers {
    fn member(self, name: String, kind: MemberKind, at: usize) -> Member {
        let Self { hidden, is_static, attributes, ty } = self;
        Member { name, hidden, is_static, attributes, ty, kind, at }
    }
}

fn modifiers_are_absent(modifiers: &Modifiers) -> bool {
    !modifiers.hidden && !modifiers.is_static && modifiers.attributes.is_empty() && modifiers.ty.is_none()
}

/// A broken member takes its class along when PowerShell has read an attribute or a type of it.
fn after(modifiers: &Modifiers) -> MemberError {
    let absent = modifiers.attributes.is_empty() && modifiers.ty.is_none();
    if absent { MemberError::Defined } else { MemberError::Undefined }
}
