//! The body of a configuration: statements that declare instances.

use std::ops::Range;

use crate::manifest::expression::{Dialect, Parse, Parser, fail};
use crate::manifest::{Entry, Expression, ManifestFault, Value, same};
use crate::token::{Mode, Token, TokenKind, variable_name};

/// A statement, with where it stands.
pub struct Statement {
    /// Where it stands in the body.
    pub at: Range<usize>,
    /// The statement.
    pub kind: StatementKind,
}

/// A statement that can be evaluated.
pub enum StatementKind {
    /// `Import-DscResource`, its arguments with the parameters that name them.
    Import(Vec<(Option<String>, Expression)>),
    /// `$name = value`
    Assign(String, Expression),
    /// Conditions with what they guard; the last may be without a condition.
    If(Vec<(Option<Expression>, Vec<Statement>)>),
    /// `foreach ($name in values) { }`
    ForEach(String, Expression, Vec<Statement>),
    /// `Keyword Name { Property = value }`
    Instance(DeclaredInstance),
}

/// An instance as declared.
pub struct DeclaredInstance {
    /// The name of its resource.
    pub keyword: String,
    /// Its own name.
    pub name: Expression,
    /// Where that stands.
    pub name_at: Range<usize>,
    /// Its properties, in the order written.
    pub properties: Vec<Entry>,
}

/// The statements of a body, behind its `param` block; offsets are those of the body. What is nothing of these is refused.
pub fn statements(body: &str) -> Result<Vec<Statement>, ManifestFault> {
    Parser::parse(body, Dialect::Configuration, 0, |parser| {
        skip_parameters(parser)?;
        up_to(parser, TokenKind::End)
    })
}

/// The expression that a text is, such as the default of a parameter.
pub fn expression(text: &str) -> Result<Expression, ManifestFault> {
    Parser::parse(text, Dialect::Configuration, 0, Parser::statement)
}

fn skip_parameters(parser: &mut Parser<'_>) -> Parse<()> {
    let begin = parser.lexer.offset();
    loop {
        parser.skip_lines();
        let token = parser.peek();
        match token.kind {
            TokenKind::BracketOpen => skip_brackets(parser)?,
            TokenKind::Word if same(parser.lexer.text(token), "param") => {
                parser.next();
                parser.skip_lines();
                return skip_brackets(parser);
            }
            // Without a parameter block, what is in brackets is the cast of a statement.
            _ => {
                parser.lexer.reset(begin);
                return Ok(());
            }
        }
    }
}

/// Skips what is between brackets; the script as a whole was parsed before, so that they match.
fn skip_brackets(parser: &mut Parser<'_>) -> Parse<()> {
    let mut depth = 0_usize;
    loop {
        // A word of a command may hold a bracket, that of a member does not.
        let token = parser.lexer.next(Mode::Member);
        match token.kind {
            TokenKind::ParenOpen
            | TokenKind::SubOpen
            | TokenKind::ArrayOpen
            | TokenKind::BraceOpen
            | TokenKind::TableOpen
            | TokenKind::BracketOpen
            | TokenKind::QuestionBracket => depth += 1,
            TokenKind::ParenClose | TokenKind::BraceClose | TokenKind::BracketClose if depth > 1 => depth -= 1,
            TokenKind::ParenClose | TokenKind::BraceClose | TokenKind::BracketClose => return Ok(()),
            TokenKind::End => return parser.unexpected(token),
            _ => {}
        }
    }
}

/// Statements up to a token, which is read.
fn up_to(parser: &mut Parser<'_>, end: TokenKind) -> Parse<Vec<Statement>> {
    let mut statements = Vec::new();
    loop {
        while parser.eat(TokenKind::NewLine) || parser.eat(TokenKind::Semicolon) {}
        let token = parser.peek();
        if token.kind == end {
            parser.next();
            return Ok(statements);
        }
        let kind = parser.nested(|parser| statement(parser, token))?;
        statements.push(Statement { at: token.start..parser.lexer.offset(), kind });
    }
}

fn statement(parser: &mut Parser<'_>, token: Token) -> Parse<StatementKind> {
    match token.kind {
        TokenKind::Variable => assignment(parser),
        TokenKind::Word => match parser.lexer.text(token).to_ascii_lowercase().as_str() {
            "if" => condition(parser),
            "foreach" => each(parser),
            "import-dscresource" => import(parser),
            "node" => fail(token, "'Node' is not supported in a composite resource: it does not choose machines"),
            _ => instance(parser),
        },
        TokenKind::End => parser.unexpected(token),
        _ => fail(token, format!("'{}' is not a statement that can be expanded", parser.lexer.text(token))),
    }
}

fn block(parser: &mut Parser<'_>) -> Parse<Vec<Statement>> {
    parser.skip_lines();
    parser.expect(TokenKind::BraceOpen)?;
    up_to(parser, TokenKind::BraceClose)
}

fn assignment(parser: &mut Parser<'_>) -> Parse<StatementKind> {
    let variable = parser.next();
    let name = name_of(parser, variable)?;
    let operator = parser.peek();
    if operator.kind != TokenKind::Assign || parser.lexer.text(operator) != "=" {
        return fail(variable, "only '$name = value' can be expanded here");
    }
    parser.next();
    parser.skip_lines();
    let value = parser.statement()?;
    ended(parser)?;
    Ok(StatementKind::Assign(name, value))
}

fn name_of(parser: &Parser<'_>, variable: Token) -> Parse<String> {
    let name = variable_name(parser.lexer.text(variable).get(1..).unwrap_or_default());
    let automatic = ["true", "false", "null", "_", "PSScriptRoot", "PSBoundParameters"];
    if name.contains(':') || automatic.iter().any(|known| same(known, &name)) {
        return fail(variable, format!("'${name}' cannot be assigned in a composite resource"));
    }
    Ok(name)
}

/// Refuses what follows a statement on its line.
fn ended(parser: &mut Parser<'_>) -> Parse<()> {
    let token = parser.peek();
    if matches!(token.kind, TokenKind::NewLine | TokenKind::Semicolon | TokenKind::BraceClose | TokenKind::End) {
        return Ok(());
    }
    parser.unexpected(token)
}

fn condition(parser: &mut Parser<'_>) -> Parse<StatementKind> {
    let mut branches = Vec::new();
    loop {
        parser.next();
        parser.skip_lines();
        parser.expect(TokenKind::ParenOpen)?;
        parser.skip_lines();
        let condition = parser.statement()?;
        parser.skip_lines();
        parser.expect(TokenKind::ParenClose)?;
        branches.push((Some(condition), block(parser)?));
        let after = parser.lexer.offset();
        parser.skip_lines();
        let token = parser.peek();
        let word = if token.kind == TokenKind::Word { parser.lexer.text(token) } else { "" };
        if same(word, "elseif") {
            continue;
        }
        if same(word, "else") {
            parser.next();
            branches.push((None, block(parser)?));
        } else {
            parser.lexer.reset(after);
        }
        return Ok(StatementKind::If(branches));
    }
}

fn each(parser: &mut Parser<'_>) -> Parse<StatementKind> {
    parser.next();
    parser.expect(TokenKind::ParenOpen)?;
    parser.skip_lines();
    let variable = parser.next();
    if variable.kind != TokenKind::Variable {
        return parser.unexpected(variable);
    }
    let name = name_of(parser, variable)?;
    parser.skip_lines();
    let word = parser.next();
    if !same(parser.lexer.text(word), "in") {
        return parser.unexpected(word);
    }
    parser.skip_lines();
    let values = parser.statement()?;
    parser.skip_lines();
    parser.expect(TokenKind::ParenClose)?;
    Ok(StatementKind::ForEach(name, values, block(parser)?))
}

fn import(parser: &mut Parser<'_>) -> Parse<StatementKind> {
    parser.next();
    let (mut arguments, mut named) = (Vec::new(), None);
    loop {
        let token = parser.lexer.peek(Mode::Argument);
        match token.kind {
            TokenKind::NewLine | TokenKind::Semicolon | TokenKind::BraceClose | TokenKind::End => break,
            TokenKind::Parameter => {
                parser.lexer.next(Mode::Argument);
                named = Some(parser.lexer.text(token).trim_matches(['-', ':']).to_ascii_lowercase());
            }
            _ => arguments.push((named.take(), arguments_of(parser)?)),
        }
    }
    Ok(StatementKind::Import(arguments))
}

/// `a, b` behind a command.
fn arguments_of(parser: &mut Parser<'_>) -> Parse<Expression> {
    let mut items = vec![argument(parser)?];
    while parser.lexer.peek(Mode::Argument).kind == TokenKind::Comma {
        parser.lexer.next(Mode::Argument);
        parser.skip_lines();
        items.push(argument(parser)?);
    }
    Ok(if items.len() == 1 { items.remove(0) } else { Expression::List(items) })
}

fn argument(parser: &mut Parser<'_>) -> Parse<Expression> {
    let token = parser.lexer.peek(Mode::Argument);
    if matches!(token.kind, TokenKind::Word | TokenKind::Number) {
        parser.lexer.next(Mode::Argument);
        return parser.expandable(token);
    }
    parser.primary()
}

fn instance(parser: &mut Parser<'_>) -> Parse<StatementKind> {
    let keyword = parser.next();
    let start = parser.lexer.peek(Mode::Argument);
    if matches!(
        start.kind,
        TokenKind::NewLine | TokenKind::BraceOpen | TokenKind::Semicolon | TokenKind::Parameter | TokenKind::End
    ) {
        let word = parser.lexer.text(keyword);
        return fail(keyword, format!("'{word}' is not expanded: only 'Resource Name {{ Property = value }}' is"));
    }
    let name = argument(parser)?;
    let name_at = start.start..parser.lexer.offset();
    parser.skip_lines();
    let open = parser.peek();
    if open.kind != TokenKind::BraceOpen {
        let word = parser.lexer.text(keyword);
        return fail(keyword, format!("the command '{word}' is not evaluated in a composite resource"));
    }
    parser.next();
    let properties = parser.entries(property)?;
    let keyword = parser.lexer.text(keyword).to_owned();
    Ok(StatementKind::Instance(DeclaredInstance { keyword, name, name_at, properties }))
}

/// The value of a property. A script is given to the resource as its text.
fn property(parser: &mut Parser<'_>) -> Parse<Expression> {
    let open = parser.peek();
    if open.kind != TokenKind::BraceOpen {
        return parser.statement();
    }
    let mut depth = 0_usize;
    loop {
        let token = parser.next();
        match token.kind {
            TokenKind::BraceOpen | TokenKind::TableOpen => depth += 1,
            TokenKind::BraceClose if depth > 1 => depth -= 1,
            TokenKind::BraceClose => {
                let text = parser.lexer.source().get(open.end..token.start).unwrap_or_default();
                return if ["$using:", "${using:"].iter().any(|word| text.to_ascii_lowercase().contains(word)) {
                    fail(open, "'$using:' is not evaluated in a composite resource")
                } else {
                    Ok(Expression::Constant(Value::from(text)))
                };
            }
            TokenKind::End => return parser.unexpected(token),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_body_is_parsed_or_refused(body in "([${}()\\[\\]@'\"#=,;.\n -]|if|foreach|in|Log|param|a|1|Import-DscResource){0,40}") {
            let _ = statements(&body);
        }
    }

    #[test]
    fn a_script_is_its_text() {
        let parsed = statements("Script a { TestScript = { @{ A = '}' }; \"$(1)\" }; B = 1 }").ok();
        let Some([Statement { kind: StatementKind::Instance(declaration), .. }]) = parsed.as_deref() else {
            panic!("not an instance")
        };
        let text = Expression::Constant(Value::from(" @{ A = '}' }; \"$(1)\" "));
        assert_eq!(declaration.properties.first().map(|entry| &entry.value), Some(&text));
    }

    #[test]
    fn what_stands_before_the_statements_is_skipped() {
        for body in [
            "param([string] $A)\n$b = 1",
            "\n[CmdletBinding()]\nparam\n(\n[Parameter(Mandatory)] [string[]] $A = @('x'),\n[hashtable[]] $B\n)\n$b = 1",
            "$b = 1",
            "foreach ($a in $b) { Log $a { M = 1 } }",
            "foreach ($a in $b) { Log \"x_$a\"\n{\n  m   = $a + '.h'\n D = '[L]B'\n }\n}",
            "if ($a) { Log x { M = 'g'; D = $(if ($R) { 'l' }) } }",
            "if ($a -eq 'x' -and -not $P.ContainsKey('p')) { } elseif ($E) { foreach ($e in $E) { Log $e.N { M = $e['T'] } } }",
        ] {
            let parsed = statements(body);
            assert!(parsed.is_ok_and(|statements| statements.len() == 1), "{body}: {:?}", statements(body).err());
        }
    }
}
