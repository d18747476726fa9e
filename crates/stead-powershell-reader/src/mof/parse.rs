//! The grammar of a schema, as far as DSC uses it: classes; pragmas, instances and declarations of qualifiers are read over.

use super::MofFault;
use super::declaration::{ClassDeclaration, PropertyDeclaration, Qualifier, Qualifiers, Shape, Value};
use super::lex::{Lexer, Token};
use crate::types::Type;

/// The content of a file as it was read.
#[derive(Default)]
pub(super) struct Parsed {
    pub(super) classes: Vec<ClassDeclaration>,
    /// The qualifiers that the file declares itself.
    pub(super) declared: Vec<String>,
    /// The qualifiers of methods and their parameters, which are not kept otherwise.
    pub(super) methods: Vec<Qualifiers>,
    pub(super) parameters: Vec<Qualifiers>,
    /// The mistakes that PowerShell refuses, although they can be read.
    pub(super) refused: Vec<MofFault>,
}

/// Reads a whole schema. The first error ends it, because PowerShell refuses the file then.
pub(super) fn parse(text: &str) -> Result<Parsed, MofFault> {
    let mut lexer = Lexer::new(text);
    let (token, start, end) = lexer.token()?;
    let mut parser = Parser { text, lexer, token, start, end, before: 0, depth: 0, parsed: Parsed::default() };
    while parser.token != Token::End {
        parser.declaration()?;
    }
    let mut parsed = parser.parsed;
    parsed.refused.append(&mut parser.lexer.refused);
    Ok(parsed)
}

/// Deeper nesting of values is refused.
const DEEPEST: usize = 64;

struct Parser<'a> {
    text: &'a str,
    lexer: Lexer<'a>,
    /// The token that comes next, and where it starts and ends.
    token: Token<'a>,
    start: usize,
    end: usize,
    /// Where the token before it ended.
    before: usize,
    depth: usize,
    parsed: Parsed,
}

impl<'a> Parser<'a> {
    fn advance(&mut self) -> Result<Token<'a>, MofFault> {
        self.before = self.end;
        let (token, start, end) = self.lexer.token()?;
        (self.start, self.end) = (start, end);
        Ok(std::mem::replace(&mut self.token, token))
    }

    fn expected<T>(&self, what: &str) -> Result<T, MofFault> {
        let found = match self.text.get(self.start..self.end) {
            None | Some("") => "the end of the file".to_owned(),
            Some(text) => format!("'{}'", text.chars().take(40).collect::<String>().escape_debug()),
        };
        // What is missing at the end of a line is missing there, not where the next token stands.
        let missing = matches!(what, "';'" | "','" | "'}'") && self.token == Token::End;
        let offset = if missing { self.before.saturating_sub(1) } else { self.start };
        Err(MofFault::syntax(offset, format!("expected {what}, found {found}")))
    }

    fn is_word(&self, keyword: &str) -> bool {
        matches!(self.token, Token::Word(word) if word.eq_ignore_ascii_case(keyword))
    }

    fn eat_word(&mut self, keyword: &str) -> Result<bool, MofFault> {
        let found = self.is_word(keyword);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn eat(&mut self, symbol: char) -> Result<bool, MofFault> {
        let found = self.token == Token::Symbol(symbol);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn expect(&mut self, symbol: char) -> Result<(), MofFault> {
        if self.eat(symbol)? { Ok(()) } else { self.expected(&format!("'{symbol}'")) }
    }

    fn name(&mut self, what: &str) -> Result<(String, usize), MofFault> {
        let Token::Word(word) = self.token else { return self.expected(what) };
        let offset = self.start;
        self.advance()?;
        Ok((word.to_owned(), offset))
    }

    /// Items between a start that has been read and an end, separated by commas.
    fn list<T>(&mut self, end: char, item: fn(&mut Self) -> Result<T, MofFault>) -> Result<Vec<T>, MofFault> {
        let mut items = Vec::new();
        if self.eat(end)? {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if !self.eat(',')? {
                self.expect(end)?;
                return Ok(items);
            }
        }
    }

    fn declaration(&mut self) -> Result<(), MofFault> {
        if self.token == Token::Pragma {
            return self.pragma();
        }
        if self.eat_word("Qualifier")? {
            return self.qualifier_declaration();
        }
        let qualifiers = self.qualifiers()?;
        if self.eat_word("class")? {
            return self.class(qualifiers);
        }
        if self.eat_word("instance")? {
            return self.instance();
        }
        self.expected("'class' or 'instance'")
    }

    fn pragma(&mut self) -> Result<(), MofFault> {
        self.advance()?;
        self.name("the name of a pragma")?;
        self.expect('(')?;
        self.value()?;
        self.expect(')')
    }

    /// `Qualifier Name : type[] = default, QualifierScope(..), Flavor(..);`
    fn qualifier_declaration(&mut self) -> Result<(), MofFault> {
        let (name, _) = self.name("the name of a qualifier")?;
        self.expect(':')?;
        self.name("a type")?;
        self.shape()?;
        if self.eat('=')? {
            self.value()?;
        }
        while self.eat(',')? {
            self.name("'Scope' or 'Flavor'")?;
            self.expect('(')?;
            self.list(')', |parser| parser.name("a name"))?;
        }
        self.parsed.declared.push(name);
        self.expect(';')
    }

    /// `instance of Class as $Alias { name = value; };`, behind `instance`.
    fn instance(&mut self) -> Result<(), MofFault> {
        if !self.eat_word("of")? {
            return self.expected("'of'");
        }
        self.name("the name of a class")?;
        if self.eat_word("as")? {
            self.expect('$')?;
            self.name("an alias")?;
        }
        self.expect('{')?;
        while !self.eat('}')? {
            self.qualifiers()?;
            self.name("the name of a property")?;
            self.expect('=')?;
            self.value()?;
            self.expect(';')?;
        }
        self.expect(';')
    }

    fn qualifiers(&mut self) -> Result<Qualifiers, MofFault> {
        Ok(Qualifiers(if self.eat('[')? { self.list(']', Self::qualifier)? } else { Vec::new() }))
    }

    fn qualifier(&mut self) -> Result<Qualifier, MofFault> {
        let (name, offset) = self.name("the name of a qualifier")?;
        let value = if self.eat('(')? {
            let value = self.value()?;
            self.expect(')')?;
            Some(value)
        } else if self.token == Token::Symbol('{') {
            Some(self.value()?)
        } else {
            None
        };
        let mut flavors = 0;
        if self.eat(':')? {
            while matches!(self.token, Token::Word(_)) {
                self.name("a flavor")?;
                flavors += 1;
            }
        }
        Ok(Qualifier { name, value, flavors, offset })
    }

    fn class(&mut self, qualifiers: Qualifiers) -> Result<(), MofFault> {
        let (name, offset) = self.name("the name of a class")?;
        if self.eat_word("as")? {
            self.expect('$')?;
            self.name("an alias")?;
        }
        let base = if self.eat(':')? { Some(self.name("the name of a class")?.0) } else { None };
        self.expect('{')?;
        let mut properties = Vec::new();
        while !self.eat('}')? {
            properties.extend(self.member()?);
        }
        self.expect(';')?;
        self.parsed.classes.push(ClassDeclaration { name, base, qualifiers, properties, offset });
        Ok(())
    }

    /// A property; nothing for a method.
    fn member(&mut self) -> Result<Option<PropertyDeclaration>, MofFault> {
        let qualifiers = self.qualifiers()?;
        let (written, element) = self.data_type()?;
        let (name, offset) = self.name("the name of a property")?;
        if self.eat('(')? {
            self.parsed.methods.push(qualifiers);
            self.list(')', Self::parameter)?;
            self.expect(';')?;
            return Ok(None);
        }
        let shape = self.shape()?;
        let default = if self.eat('=')? {
            let start = self.start;
            let value = self.value()?;
            let text = self.text.get(start..self.before).unwrap_or_default();
            Some((value, text.to_owned()))
        } else {
            None
        };
        self.expect(';')?;
        Ok(Some(PropertyDeclaration { name, written, element, shape, qualifiers, default, offset }))
    }

    fn parameter(&mut self) -> Result<(), MofFault> {
        let qualifiers = self.qualifiers()?;
        self.data_type()?;
        self.name("the name of a parameter")?;
        self.shape()?;
        self.parsed.parameters.push(qualifiers);
        Ok(())
    }

    /// A type as written, and what it is.
    fn data_type(&mut self) -> Result<(String, Type), MofFault> {
        let offset = self.start;
        let (written, _) = self.name("a type")?;
        if self.is_word("ref") {
            self.advance()?;
            return Ok((format!("{written} ref"), Type::Other(format!("{written} ref"))));
        }
        let integer = |bits, signed| Type::Integer { bits, signed };
        let ty = match written.to_ascii_lowercase().as_str() {
            "string" => Type::String,
            "boolean" => Type::Boolean,
            "char16" => Type::Char,
            "datetime" => Type::DateTime,
            "real32" => Type::Single,
            "real64" => Type::Double,
            "uint8" => integer(8, false),
            "uint16" => integer(16, false),
            "uint32" => integer(32, false),
            "uint64" => integer(64, false),
            "sint8" => integer(8, true),
            "sint16" => integer(16, true),
            "sint32" => integer(32, true),
            "sint64" => integer(64, true),
            _ => return Err(MofFault::syntax(offset, format!("'{written}' is not a type of MOF"))),
        };
        Ok((written, ty))
    }

    /// `[]` or `[3]`.
    fn shape(&mut self) -> Result<Shape, MofFault> {
        if !self.eat('[')? {
            return Ok(Shape::Single);
        }
        let Token::Integer(number) = self.token else { return self.expect(']').map(|()| Shape::Array) };
        let Some(size) = u64::try_from(number).ok().filter(|size| *size > 0) else { return self.expected("a size") };
        self.advance()?;
        self.expect(']').map(|()| Shape::Fixed(size))
    }

    fn value(&mut self) -> Result<Value, MofFault> {
        match &self.token {
            Token::Text(_) => self.text_value(),
            Token::Symbol('{') => self.array_value(),
            Token::Symbol('$') => {
                self.advance()?;
                self.name("an alias").map(|(name, _)| Value::Text(name))
            }
            Token::Integer(number) => self.constant(Value::Integer(*number)),
            Token::Real(number) => self.constant(Value::Real(*number)),
            Token::Character(character) => self.constant(Value::Character(*character)),
            Token::Word(word) if word.eq_ignore_ascii_case("true") => self.constant(Value::Boolean(true)),
            Token::Word(word) if word.eq_ignore_ascii_case("false") => self.constant(Value::Boolean(false)),
            Token::Word(word) if word.eq_ignore_ascii_case("null") => self.constant(Value::Null),
            _ => self.expected("a value"),
        }
    }

    fn constant(&mut self, value: Value) -> Result<Value, MofFault> {
        self.advance()?;
        Ok(value)
    }

    /// One or more strings that follow each other.
    fn text_value(&mut self) -> Result<Value, MofFault> {
        let mut joined = String::new();
        while let Token::Text(part) = &self.token {
            joined.push_str(part);
            self.advance()?;
        }
        Ok(Value::Text(joined))
    }

    fn array_value(&mut self) -> Result<Value, MofFault> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(MofFault::syntax(self.start, "values are nested too deeply".to_owned()));
        }
        self.advance()?;
        let values = self.list('}', Self::value)?;
        self.depth -= 1;
        Ok(Value::Array(values))
    }
}
