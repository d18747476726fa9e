//! From text to tokens to a tree.
//!
//! ```text
//! expression = '[' call ']'
//! call       = name '(' [ value { ',' value } ] ')' { '.' word | '[' value ']' }
//! value      = call | 'text' | integer | true | false
//! name       = word { '.' word }
//! ```
//!
//! Space and line breaks may stand between any two tokens; within text, `''` is one quote.

mod hints;
mod lexer;

use std::ops::Range;
use std::sync::Arc;

use super::builtin::{Builtin, ValueKind};
use super::builtins::{NAMESPACE, find, functions};
use super::codes;
use super::{Fault, Help};
use crate::diag::{Code, Meant, counted};
use crate::value::Value;
use crate::visible::is_obeyed;
pub(crate) use hints::filtered;
pub(super) use hints::is_of_others;
use lexer::{Lexer, Token};

/// How deep calls may be nested; deeper is a mistake, and evaluation recurses.
pub(super) const MAX_DEPTH: usize = 64;

/// The longest text of an expression, in bytes.
pub(super) const MAX_LENGTH: usize = 1 << 20;

/// A part of an expression.
#[derive(Clone, PartialEq)]
pub(super) struct Node {
    pub(super) at: Range<usize>,
    pub(super) kind: ExpressionForm,
}

/// The syntactic form of a part.
#[derive(Clone, PartialEq)]
pub(super) enum ExpressionForm {
    /// A literal.
    Constant(Value),
    /// A call of a function of the language; the number of arguments is right.
    Call { builtin: &'static Builtin, arguments: Vec<Node> },
    /// A call of a function that the document defines.
    UserCall { name: Box<str>, arguments: Vec<Node> },
    /// `lambda('a', 'b', body)`; only where the function that it is given to takes one.
    Lambda(Arc<Lambda>),
    /// Members and elements of a value.
    Access { of: Box<Node>, path: Vec<Accessor> },
    /// `user()`: the item of a loop around, by what the loop calls it.
    Item(Box<str>),
}

/// A function without a name.
#[derive(Clone, PartialEq)]
pub(super) struct Lambda {
    pub(super) parameters: Vec<Box<str>>,
    pub(super) body: Node,
}

/// One step of an access.
#[derive(Clone, PartialEq)]
pub(super) struct Accessor {
    pub(super) at: Range<usize>,
    pub(super) step: AccessStep,
}

impl Accessor {
    /// The name that it selects, if it is written.
    pub(super) fn member(&self) -> Option<&str> {
        match &self.step {
            AccessStep::Member(name) => Some(name),
            AccessStep::Index(index) => match &index.kind {
                ExpressionForm::Constant(Value::String(name)) => Some(name),
                _ => None,
            },
        }
    }
}

/// The selector of a step.
#[derive(Clone, PartialEq)]
pub(super) enum AccessStep {
    /// `.name`
    Member(Box<str>),
    /// `[value]`
    Index(Box<Node>),
}

impl Node {
    /// Calls `visit` with this part and every part of it, in the order written.
    pub(super) fn walk<'n>(&'n self, visit: &mut dyn FnMut(&'n Node)) {
        visit(self);
        match &self.kind {
            ExpressionForm::Constant(_) | ExpressionForm::Item(_) => {}
            ExpressionForm::Call { arguments, .. } | ExpressionForm::UserCall { arguments, .. } => {
                for argument in arguments {
                    argument.walk(visit);
                }
            }
            ExpressionForm::Lambda(lambda) => lambda.body.walk(visit),
            ExpressionForm::Access { of, path } => {
                of.walk(visit);
                for accessor in path {
                    if let AccessStep::Index(index) = &accessor.step {
                        index.walk(visit);
                    }
                }
            }
        }
    }
}

/// Returns whether a word is what a loop calls its item.
pub(super) type IsItem<'i> = &'i dyn Fn(&str) -> bool;

/// Reads a whole expression.
pub(super) fn parse(text: &str, is_item: IsItem<'_>) -> Result<Node, Fault> {
    if text.len() > MAX_LENGTH {
        let message = format!("the expression is longer than {MAX_LENGTH} bytes");
        return Err(fault(&codes::TOO_LARGE, 0..0, message, "read large text from a parameter"));
    }
    whole(text, is_item).map_err(|fault| match fault.message.strip_prefix(UNABLE) {
        Some(reason) => Fault { message: format!("{UNABLE}{}: {reason}", shown(text)), ..fault },
        None => fault,
    })
}

/// The token that ends an expression, as messages name it.
const END: &str = "']' at the end of the expression";

/// The beginning of a message about how an expression is written. The expression follows.
const UNABLE: &str = "Unable to parse: ";

/// The longest part of an expression that a message repeats, in characters.
const MAX_SHOWN: usize = 200;

fn shown(text: &str) -> String {
    // A message is one line.
    let text = text.trim_end().replace(is_obeyed, " ");
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or("")),
        None => text,
    }
}

fn whole(text: &str, is_item: IsItem<'_>) -> Result<Node, Fault> {
    let mut parser = Parser::new(text, is_item)?;
    parser.expect(&Token::OpenBracket, "'[' at the beginning")?;
    let root = parser.root()?;
    parser.expect(&Token::CloseBracket, END)?;
    match parser.token {
        Token::End => Ok(root),
        _ => Err(fault(
            &codes::TRAILING,
            parser.at.start..text.len(),
            format!("{UNABLE}there is text behind the ']' that ends the expression"),
            "an expression is the whole value; use concat() or format() to add text, or write '[[' for a literal '['",
        )),
    }
}

fn fault(code: Code, at: Range<usize>, message: impl Into<String>, help: &str) -> Fault {
    Fault { code, message: message.into(), at, help: Some(help.into()) }
}

/// Text as it stands in an expression.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

struct Parser<'t> {
    lexer: Lexer<'t>,
    token: Token,
    at: Range<usize>,
    depth: usize,
    is_item: IsItem<'t>,
}

impl<'t> Parser<'t> {
    fn new(text: &'t str, is_item: IsItem<'t>) -> Result<Self, Fault> {
        let mut lexer = Lexer { text, next: 0 };
        let (token, at) = lexer.token()?;
        Ok(Self { lexer, token, at, depth: 0, is_item })
    }

    /// The token that is next, and moves on behind it.
    fn bump(&mut self) -> Result<(Token, Range<usize>), Fault> {
        let (token, at) = self.lexer.token()?;
        Ok((std::mem::replace(&mut self.token, token), std::mem::replace(&mut self.at, at)))
    }

    fn word(&self, at: &Range<usize>) -> &'t str {
        self.lexer.text.get(at.clone()).unwrap_or("")
    }

    fn expect(&mut self, wanted: &Token, name: &str) -> Result<Range<usize>, Fault> {
        if self.token == *wanted { Ok(self.bump()?.1) } else { Err(self.unexpected(name)) }
    }

    fn unexpected(&self, wanted: &str) -> Fault {
        // Text that happens to stand there may be long.
        let shown: String = self.word(&self.at).chars().take(40).collect();
        let found = match &self.token {
            Token::End => "the text ends".to_owned(),
            Token::Text(_) => format!("the text {shown} follows"),
            _ => format!("'{shown}' follows"),
        };
        Fault {
            code: &codes::UNEXPECTED,
            message: format!("Unable to parse: expected {wanted}, but {found}"),
            at: self.at.clone(),
            help: match (&self.token, wanted) {
                (Token::End, END) => Some(Help::Missing("]")),
                (Token::Word, END) => self.operator().or_else(|| self.help_for(wanted).map(Help::from)),
                _ => self.help_for(wanted).map(Help::from),
            },
        }
    }

    /// The advice about an operator that is a word.
    fn operator(&self) -> Option<Help> {
        let behind = self.lexer.text.get(self.at.end..)?;
        hints::operator(self.word(&self.at), self.word(&(0..self.at.start)), behind).map(Help::from)
    }

    /// Returns advice about the token that is probably missing where something else stands.
    fn help_for(&self, wanted: &str) -> Option<&'static str> {
        match (&self.token, wanted) {
            (Token::Close, END) => Some("remove the ')': it closes nothing"),
            (Token::Comma, END) => Some(
                "an expression is one function call: of two conditions and(a, b) or or(a, b), of a list createArray(a, b)",
            ),
            (Token::Text(_) | Token::Word | Token::Integer, END) => {
                Some("an expression is one function call; use concat() or format() to join values")
            }
            (Token::Comma | Token::Close, "a value") => Some("remove the comma, or write the missing argument"),
            (Token::CloseBracket, "a value") => Some("write the missing value before the ']'"),
            (Token::OpenBracket, "a value") => {
                Some("brackets stand around the whole expression only; an array is made with createArray(a, b)")
            }
            _ => None,
        }
    }

    fn root(&mut self) -> Result<Node, Fault> {
        let help =
            || Some("for text that begins with '[' write '[['; a plain value is written without brackets".into());
        if !matches!(self.token, Token::Word | Token::Text(_) | Token::Integer) {
            return Err(Fault { help: help(), ..self.unexpected("a function call") });
        }
        let node = self.value()?;
        match node.kind {
            ExpressionForm::Constant(_) => Err(Fault {
                code: &codes::UNEXPECTED,
                message: "Unable to parse: this is not a function call".to_owned(),
                at: node.at,
                help: help(),
            }),
            _ => Ok(node),
        }
    }

    fn value(&mut self) -> Result<Node, Fault> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(fault(
                &codes::TOO_LARGE,
                self.at.clone(),
                format!("calls are nested more than {MAX_DEPTH} deep"),
                "compute a part in a variable",
            ));
        }
        let node = match &self.token {
            Token::Text(_) => self.text()?,
            Token::Integer => self.integer()?,
            Token::Word => self.named()?,
            _ => return Err(self.unexpected("a value")),
        };
        self.depth -= 1;
        Ok(node)
    }

    fn text(&mut self) -> Result<Node, Fault> {
        let (token, at) = self.bump()?;
        let Token::Text(content) = token else { return Err(self.unexpected("text")) };
        Ok(Node { at, kind: ExpressionForm::Constant(content.into()) })
    }

    fn integer(&mut self) -> Result<Node, Fault> {
        let (_, at) = self.bump()?;
        let digits = self.word(&at);
        match digits.parse::<i64>() {
            Ok(integer) => Ok(Node { at, kind: ExpressionForm::Constant(integer.into()) }),
            Err(_) => Err(fault(
                &codes::INTEGER_SIZE,
                at,
                format!("the integer {digits} does not fit into 64 bits"),
                "integers reach from -9223372036854775808 to 9223372036854775807",
            )),
        }
    }

    fn named(&mut self) -> Result<Node, Fault> {
        let (_, mut at) = self.bump()?;
        let mut name = self.word(&at).to_owned();
        while self.token == Token::Dot {
            self.bump()?;
            if self.token != Token::Word {
                return Err(self.unexpected("the name of a function behind '.'"));
            }
            let (_, word) = self.bump()?;
            name.push('.');
            name.push_str(self.word(&word));
            at.end = word.end;
        }
        match (self.token == Token::Open, &*name) {
            (true, _) => self.call(&name, at),
            (false, "true") => Ok(Node { at, kind: ExpressionForm::Constant(true.into()) }),
            (false, "false") => Ok(Node { at, kind: ExpressionForm::Constant(false.into()) }),
            (false, _) => Err(self.no_call(&name, at)),
        }
    }

    /// A name without parentheses behind it.
    fn no_call(&self, name: &str, at: Range<usize>) -> Fault {
        let is_first = self.word(&(0..at.start)).trim() == "[";
        let help: Help = if let Some(item) = hints::item(name, self.is_item) {
            item
        } else if let Some(read) = hints::read(name) {
            read.into()
        } else if let Some(read) = hints::read_in_brackets(name, self.word(&(at.end..self.lexer.text.len()))) {
            read.into()
        } else if hints::is_function(name) {
            match self.token {
                Token::Word => format!("its arguments stand in parentheses: {name}(...)").into(),
                _ => format!("call it: {name}()").into(),
            }
        } else if let Some(advice) = hints::loop_of_others(name) {
            advice.into()
        } else if is_first {
            let text = self.lexer.text.lines().next().unwrap_or_default();
            format!("text that begins with '[' is an expression; for literal text write '[{}'", shown(text)).into()
        } else if ["map(", "filter("].iter().any(|function| self.lexer.text.contains(function)) {
            let meant = format!("lambda('{name}', ...), and in it lambdaVariables('{name}') is its value");
            format!("a function without a name is {meant}").into()
        } else {
            let read = format!("the value of a parameter is parameters('{name}')");
            format!("strings are written in single quotes: '{name}'; {read}").into()
        };
        let message = format!("Unable to parse: '{name}' is not a function call");
        Fault { code: &codes::UNEXPECTED, message, at, help: Some(help) }
    }

    fn call(&mut self, name: &str, name_at: Range<usize>) -> Result<Node, Fault> {
        if find(name).is_none() && !name.contains('.') && (self.is_item)(name) {
            return self.item(name, name_at);
        }
        // The name is looked up first: what follows an unknown function is seldom the mistake.
        let is_own = name.split_once('.').is_none_or(|(namespace, _)| namespace == NAMESPACE);
        let behind = || self.lexer.text.get(name_at.end..).unwrap_or_default();
        let helped = |fault: Fault| match hints::call_of_others(name, behind()) {
            Some(help) => Fault { help: Some(help.into()), ..fault },
            None => fault,
        };
        let builtin = if is_own { Some(lookup(name, &name_at).map_err(helped)?) } else { None };
        let (arguments, end) = self.arguments()?;
        let at = name_at.start..end;
        let kind = match builtin {
            None => {
                arguments.iter().try_for_each(|argument| refuse_lambda(argument, name))?;
                ExpressionForm::UserCall { name: name.into(), arguments }
            }
            Some(builtin) if builtin.run.is_lambda() => ExpressionForm::Lambda(Arc::new(lambda(arguments, &at)?)),
            Some(builtin) => {
                check_count(builtin, &arguments, &at)?;
                check_lambdas(builtin, &arguments)?;
                written_out(builtin, arguments)
            }
        };
        self.accesses(Node { at, kind })
    }

    /// The item of a loop, which is called without arguments.
    fn item(&mut self, name: &str, name_at: Range<usize>) -> Result<Node, Fault> {
        let (arguments, end) = self.arguments()?;
        if let Some(first) = arguments.first() {
            let message = format!("'{name}' is the item of a loop, which takes no arguments");
            let help = format!("its members are {name}().member");
            return Err(fault(&codes::ARGUMENT_COUNT, first.at.clone(), message, &help));
        }
        self.accesses(Node { at: name_at.start..end, kind: ExpressionForm::Item(name.into()) })
    }

    fn arguments(&mut self) -> Result<(Vec<Node>, usize), Fault> {
        let open = self.bump()?.1;
        let mut arguments = Vec::new();
        if self.token != Token::Close {
            arguments.push(self.value()?);
            while self.token == Token::Comma {
                self.bump()?;
                arguments.push(self.value()?);
            }
        }
        if self.token != Token::Close {
            let place = self.word(&(0..open.start)).chars().count() + 1;
            let is_behind_text = self.word(&(0..self.at.start)).trim_end().ends_with('\'');
            let help = if self.token == Token::Word && is_behind_text {
                "the string ends before it; write a quote inside a string twice: 'it''s'".to_owned()
            } else {
                format!("the '(' at character {place} is not closed")
            };
            return Err(Fault { help: Some(help.into()), ..self.unexpected("',' or ')'") });
        }
        Ok((arguments, self.bump()?.1.end))
    }

    fn accesses(&mut self, of: Node) -> Result<Node, Fault> {
        let mut path = Vec::new();
        loop {
            let start = self.at.start;
            let step = match self.token {
                Token::Dot => self.member()?,
                Token::OpenBracket => self.index()?,
                _ => break,
            };
            path.push(Accessor { at: start..step.1, step: step.0 });
        }
        let Some(last) = path.last() else { return Ok(of) };
        Ok(Node { at: of.at.start..last.at.end, kind: ExpressionForm::Access { of: Box::new(of), path } })
    }

    fn member(&mut self) -> Result<(AccessStep, usize), Fault> {
        self.bump()?;
        if self.token != Token::Word {
            let help = match self.token {
                Token::Integer => {
                    format!("an element of a list is selected by its position: [{}]", self.word(&self.at))
                }
                _ => "members with other characters are written ['name']".to_owned(),
            };
            return Err(Fault { help: Some(help.into()), ..self.unexpected("the name of a member behind '.'") });
        }
        let (_, at) = self.bump()?;
        Ok((AccessStep::Member(self.word(&at).into()), at.end))
    }

    fn index(&mut self) -> Result<(AccessStep, usize), Fault> {
        self.bump()?;
        let index = self.value()?;
        refuse_lambda(&index, "[ ]")?;
        let end = self.expect(&Token::CloseBracket, "']' behind the index")?.end;
        Ok((AccessStep::Index(Box::new(index)), end))
    }
}

/// The name of a function of stead's own behind its namespace.
fn in_namespace(name: &str) -> Option<&str> {
    name.strip_prefix(NAMESPACE)?.strip_prefix('.')
}

fn lookup(name: &str, at: &Range<usize>) -> Result<&'static Builtin, Fault> {
    find(name).ok_or_else(|| {
        let names = || functions().iter().map(|function| function.name);
        let help = match names().find(|each| each.eq_ignore_ascii_case(name)) {
            Some(each) => format!("function names are case-sensitive: it is '{each}'").into(),
            // Nearly 'items'; it is the item of a loop, which is stated otherwise or not at all.
            None if name == "item" => "an instance with `copy: {name: all, each: [a, b]}` has item()".into(),
            None => match names()
                .find(|each| in_namespace(each) == Some(name))
                .or_else(|| hints::function_of_others(name))
                .map(Meant::only)
                .or_else(|| Meant::word(name, names()))
            {
                Some(meant) => Help::Meant { wrong: name.to_owned(), meant },
                None => "'stead function list' shows every function".into(),
            },
        };
        let message = format!("Unknown function '{name}'");
        Fault { code: &codes::UNKNOWN_FUNCTION, message, at: at.clone(), help: Some(help) }
    })
}

/// `stead.templateFile(PATH, VARIABLES)` is short for `stead.template(stead.file(PATH), VARIABLES)`; all others are themselves.
fn written_out(builtin: &'static Builtin, mut arguments: Vec<Node>) -> ExpressionForm {
    if builtin.name == "stead.templateFile"
        && let (Some(template), Some(file), Some(path)) =
            (find("stead.template"), find("stead.file"), arguments.first_mut())
    {
        let (at, kind) = (path.at.clone(), std::mem::replace(&mut path.kind, ExpressionForm::Constant(Value::Null)));
        path.kind = ExpressionForm::Call { builtin: file, arguments: vec![Node { at, kind }] };
        return ExpressionForm::Call { builtin: template, arguments };
    }
    ExpressionForm::Call { builtin, arguments }
}

fn check_count(builtin: &'static Builtin, arguments: &[Node], at: &Range<usize>) -> Result<(), Fault> {
    let (name, min, max) = (builtin.name, builtin.min, builtin.max);
    let given = arguments.len();
    if given >= min && max.is_none_or(|max| given <= max) {
        return Ok(());
    }
    let message = match max {
        None => format!("Function '{name}' requires at least {}", counted(min, "argument")),
        Some(0) => format!("Function '{name}' does not accept arguments"),
        Some(max) if max == min => format!("Function '{name}' requires exactly {}", counted(min, "argument")),
        Some(max) => format!("Function '{name}' requires between {min} and {max} arguments"),
    };
    Err(Fault {
        code: &codes::ARGUMENT_COUNT,
        message: format!("{message}, but {given} {} given", if given == 1 { "is" } else { "are" }),
        at: at.clone(),
        help: Some(format!("it is used as {}", builtin.syntax).into()),
    })
}

fn check_lambdas(builtin: &'static Builtin, arguments: &[Node]) -> Result<(), Fault> {
    for (position, argument) in arguments.iter().enumerate() {
        let wanted = builtin.accepts_at(position).contains(&ValueKind::Lambda);
        match &argument.kind {
            ExpressionForm::Lambda(lambda) if wanted && lambda.parameters.len() > 2 => {
                let message = format!("Function '{}' gives its lambda one or two values", builtin.name);
                let help = "its parameters are the element and, if there is a second, the index";
                return Err(fault(&codes::LAMBDA, argument.at.clone(), message, help));
            }
            ExpressionForm::Lambda(_) if wanted => {}
            _ if wanted => {
                let message = format!("Function '{}' requires a lambda as argument {}", builtin.name, position + 1);
                let help = format!("it is used as {}", builtin.syntax);
                return Err(fault(&codes::LAMBDA, argument.at.clone(), message, &help));
            }
            _ => refuse_lambda(argument, builtin.name)?,
        }
    }
    Ok(())
}

fn refuse_lambda(argument: &Node, taker: &str) -> Result<(), Fault> {
    if !matches!(argument.kind, ExpressionForm::Lambda(_)) {
        return Ok(());
    }
    let message = format!("'{taker}' does not accept lambda arguments");
    Err(fault(&codes::LAMBDA, argument.at.clone(), message, "map() and filter() take a lambda"))
}

fn lambda(mut arguments: Vec<Node>, at: &Range<usize>) -> Result<Lambda, Fault> {
    let count = arguments.len();
    let body = arguments.pop().filter(|_| count >= 2).ok_or_else(|| {
        let message = "Function 'lambda' requires at least 2 arguments: a parameter and a body";
        fault(&codes::LAMBDA, at.clone(), message, "it is used as lambda('x', <expression>)")
    })?;
    refuse_lambda(&body, "lambda")?;
    let mut parameters: Vec<Box<str>> = Vec::with_capacity(arguments.len());
    for argument in arguments {
        let ExpressionForm::Constant(Value::String(name)) = argument.kind else {
            let message = "the parameters of a lambda are names in quotes";
            return Err(fault(&codes::LAMBDA, argument.at, message, "it is used as lambda('x', <expression>)"));
        };
        if parameters.iter().any(|each| **each == *name) {
            let message = format!("the lambda has two parameters named '{name}'");
            return Err(fault(&codes::LAMBDA, argument.at, message, "give them different names"));
        }
        parameters.push(name.into());
    }
    Ok(Lambda { parameters, body })
}
