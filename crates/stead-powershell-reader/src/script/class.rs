//! Classes and enumerations, and their members.

use stead_core::diag::codes::powershell::script as codes;

use super::brackets::Bracketed;
use super::flow::Flow;
use super::parser::{Broken, Parsed, Parser};
use super::problem::SyntaxProblem;
use super::{Argument, Attribute, Member, MemberKind, Parameter, Scope, TypeDefinition, TypeForm, TypeName};
use crate::token::{Mode, Token, TokenKind};

/// The modifiers in front of the name of a member.
#[derive(Default)]
struct Modifiers {
    hidden: bool,
    is_static: bool,
    attributes: Vec<Attribute>,
    ty: Option<TypeName>,
}

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
                self.script.problems.push(SyntaxProblem::new(&codes::ATTRIBUTE, argument.at, message));
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
        let returns = modifiers.ty.as_ref().is_some_and(|ty| !is_void(&ty.form));
        match self.method_parts(class, &text, name, returns) {
            Ok(parameters) => Ok(modifiers.member(text, MemberKind::Method(parameters), self.place(start))),
            Err(Broken) => Err(after(&modifiers)),
        }
    }

    fn method_parts(&mut self, class: usize, name: &str, token: Token, returns: bool) -> Parsed<Vec<Parameter>> {
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
        // What is wrong in the body is reported there, and the method is a method all the same. PowerShell follows the ways through one
        // that it can read.
        let known = self.script.problems.len();
        let (body, reaches_end) = self.apart(Flow::of_method(&parameters), |parser| {
            parser.nest(|parser| parser.statement_block(Scope::Function))
        });
        let is_readable = self.script.problems.iter().skip(known).all(|problem| problem.code.id == codes::MEMBER.id);
        if returns && body.is_ok() && reaches_end && is_readable {
            let message =
                format!("the method '{name}' has a type, and a way through it ends without 'return' or 'throw'");
            self.report(&codes::MEMBER, token.start, message);
        }
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
}

impl Modifiers {
    fn member(self, name: String, kind: MemberKind, at: usize) -> Member {
        let Self { hidden, is_static, attributes, ty } = self;
        Member { name, hidden, is_static, attributes, ty, kind, at }
    }
}

/// Returns whether a method of that type returns nothing.
fn is_void(form: &TypeForm) -> bool {
    matches!(form, TypeForm::Name(name) if ["void", "system.void"].contains(&name.to_ascii_lowercase().as_str()))
}

fn modifiers_are_absent(modifiers: &Modifiers) -> bool {
    !modifiers.hidden && !modifiers.is_static && modifiers.attributes.is_empty() && modifiers.ty.is_none()
}

/// A broken member takes its class along when PowerShell has read an attribute or a type of it.
fn after(modifiers: &Modifiers) -> MemberError {
    let absent = modifiers.attributes.is_empty() && modifiers.ty.is_none();
    if absent { MemberError::Defined } else { MemberError::Undefined }
}
