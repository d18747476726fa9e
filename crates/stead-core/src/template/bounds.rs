//! Limits that the engine does not have: it joins lists without counting, and goes by recursion through values within values and
//! through long expressions.
//!
//! What a template adds or assigns is led through filters, which are written into its text: no line changes its number.

use std::collections::BTreeMap;

use minijinja::value::{Kwargs, Rest, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State, Value, filters};

/// How many elements a list may have that is joined with another one, so that the longest expression joins some megabytes.
const MOST_JOINED: usize = 20_000;

/// How many elements a list may have that is computed and assigned.
const MOST_ASSIGNED: usize = 100_000;

/// How deep a value may be that is assigned.
const DEEPEST: usize = 100;

/// How many operators, filters and attributes may follow each other in an expression.
const LONGEST: usize = 200;

/// What the filters are called. No template can name them by accident.
const JOINED: &str = "|__stead_joined";
const ASSIGNED: &str = ")|__stead_assigned";

/// How a message begins that is about these limits.
const PROBLEM: &str = "the template makes ";

/// Gives an environment the filters.
pub(super) fn enable(environment: &mut Environment<'_>) {
    environment.add_filter(JOINED.trim_start_matches('|'), joined);
    environment.add_filter(ASSIGNED.trim_start_matches(")|"), assigned);
    environment.add_filter("chain", chain);
    environment.add_filter("sum", sum);
}

/// The message about a limit, if it is one that an error is about.
pub(super) fn message(error: &Error) -> Option<&str> {
    error.detail().filter(|detail| detail.starts_with(PROBLEM))
}

/// A part of a template as its author wrote it.
pub(super) fn as_written(part: &str) -> String {
    part.replace(ASSIGNED, "").replace(JOINED, "")
}

fn refused(problem: &str) -> Error {
    Error::new(ErrorKind::InvalidOperation, format!("{PROBLEM}{problem}"))
}

fn is_list(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable) && !value.is_tuple()
}

/// A list with its elements in memory, at most so many.
fn listed(state: &State<'_, '_>, value: &Value, most: usize) -> Result<Value, Error> {
    let elements: Vec<Value> = value.try_iter()?.take(most + 1).collect();
    if elements.len() > most {
        return Err(refused(&format!("a list of more than {most} elements")));
    }
    state.consume_fuel(elements.len() as u64 / 32)?;
    Ok(Value::from(elements))
}

/// What is beside a '+'.
fn joined(state: &State<'_, '_>, value: Value) -> Result<Value, Error> {
    if is_list(&value) { listed(state, &value, MOST_JOINED) } else { Ok(value) }
}

/// What is assigned.
fn assigned(state: &State<'_, '_>, value: Value) -> Result<Value, Error> {
    // A list that is computed when it is read would be computed through all from which it was.
    let value = if value.kind() == ValueKind::Iterable { listed(state, &value, MOST_ASSIGNED)? } else { value };
    let mut pending = vec![(value.clone(), 0)];
    while let Some((container, depth)) = pending.pop() {
        let Ok(elements) = container.try_iter() else { continue };
        if depth > DEEPEST {
            return Err(refused(&format!("values within values, more than {DEEPEST} levels deep")));
        }
        let is_map = container.kind() == ValueKind::Map;
        let mut seen = 0;
        for element in elements {
            let inner = if is_map { container.get_item(&element)? } else { element };
            seen += 1;
            if matches!(inner.kind(), ValueKind::Seq | ValueKind::Iterable | ValueKind::Map) {
                pending.push((inner, depth + 1));
            }
        }
        state.consume_fuel(1 + seen / 16)?;
    }
    Ok(value)
}

/// The filter of the engine, over values that are in memory.
#[expect(clippy::needless_pass_by_value, reason = "the engine hands them over")]
fn chain(state: &State<'_, '_>, value: Value, others: Rest<Value>) -> Result<Value, Error> {
    let held = |value: &Value| match value.kind() {
        ValueKind::Map => {
            let keys: Vec<Value> = value.try_iter()?.take(MOST_JOINED).collect();
            state.consume_fuel(keys.len() as u64)?;
            let pairs = keys.into_iter().map(|key| Ok((key.clone(), value.get_item(&key)?)));
            pairs.collect::<Result<BTreeMap<Value, Value>, Error>>().map(Value::from)
        }
        _ => joined(state, value.clone()),
    };
    let others = others.iter().map(held).collect::<Result<Vec<_>, Error>>()?;
    filters::chain(state, held(&value)?, Rest(others))
}

/// The filter of the engine, and lists in one list where it begins with one.
fn sum(
    state: &State<'_, '_>,
    values: Value,
    attribute: Option<&str>,
    start: Option<Value>,
    kwargs: Kwargs,
) -> Result<Value, Error> {
    let first = start.clone().map_or_else(|| kwargs.peek::<Option<Value>>("start"), |start| Ok(Some(start)))?;
    let Some(first) = first.filter(is_list) else { return filters::sum(state, values, attribute, start, kwargs) };
    let attribute = attribute.map_or_else(|| kwargs.get::<Option<&str>>("attribute"), |name| Ok(Some(name)))?;
    kwargs.get::<Option<Value>>("start")?;
    kwargs.assert_all_used()?;
    let mut all: Vec<Value> = first.try_iter()?.take(MOST_ASSIGNED + 1).collect();
    for value in values.try_iter()? {
        let path = attribute.into_iter().flat_map(|path| path.split('.'));
        let list = path.into_iter().try_fold(value, |value, name| value.get_attr(name))?;
        all.extend(list.try_iter()?.take(MOST_ASSIGNED + 1));
        state.consume_fuel(1)?;
        if all.len() > MOST_ASSIGNED {
            return Err(refused(&format!("a list of more than {MOST_ASSIGNED} elements")));
        }
    }
    Ok(Value::from(all))
}

/// The text of a template in which what is beside a '+', and what is assigned, goes through the filters; or the line in which an
/// expression is too long.
pub(super) fn bounded(text: &str) -> Result<String, usize> {
    let mut scan = Scan { text, at: 0, edits: Vec::new() };
    while let Some(kind) = scan.enter_block() {
        match kind {
            Kind::Raw => scan.after_tag("endraw"),
            Kind::Expression | Kind::Tag => scan.block()?,
        }
    }
    let (mut edited, mut from) = (String::with_capacity(text.len()), 0);
    for (at, insertion) in scan.edits {
        edited.push_str(text.get(from..at).unwrap_or_default());
        edited.push_str(insertion);
        from = at;
    }
    edited.push_str(text.get(from..).unwrap_or_default());
    Ok(edited)
}

#[derive(PartialEq, Eq)]
enum Kind {
    Expression,
    Tag,
    Raw,
}

/// One pass over the text.
struct Scan<'t> {
    text: &'t str,
    at: usize,
    edits: Vec<(usize, &'static str)>,
}

/// What is between two brackets, or in no brackets.
#[derive(Default)]
struct Level {
    /// Whether an operand follows a '+'.
    is_added: bool,
    operators: usize,
}

/// Where the scan of a block is.
struct Block {
    levels: Vec<Level>,
    /// Where the last sign ended, if an operand may end there.
    operand: Option<usize>,
    /// Whether a value is assigned up to its end.
    assigns: bool,
}

impl<'t> Scan<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_past(&mut self, end: &str) {
        self.at = self.rest().find(end).map_or(self.text.len(), |found| self.at + found + end.len());
    }

    /// Goes into the next block; `None` at the end of the text.
    fn enter_block(&mut self) -> Option<Kind> {
        loop {
            self.at +=
                self.rest().find("{{").into_iter().chain(self.rest().find("{%")).chain(self.rest().find("{#")).min()?;
            let opening = self.rest().get(..2);
            self.at += 2;
            match opening {
                Some("{#") => self.skip_past("#}"),
                Some("{%") if is_tag(self.rest(), "raw") => return Some(Kind::Raw),
                Some("{%") => return Some(Kind::Tag),
                _ => return Some(Kind::Expression),
            }
        }
    }

    fn after_tag(&mut self, name: &str) {
        while !self.rest().is_empty() && !is_tag(self.rest(), name) {
            self.skip_past("{%");
        }
    }

    /// Scans a block to its end.
    fn block(&mut self) -> Result<(), usize> {
        let is_set = is_tag(self.rest(), "set");
        let mut block = Block { levels: vec![Level::default()], operand: None, assigns: false };
        loop {
            let rest = self.rest();
            let ends = rest.trim_start_matches(['-', '+']);
            let Some(letter) = rest.chars().next() else { return Ok(()) };
            let is_outside = block.levels.len() == 1;
            if ends.starts_with("%}") || is_outside && ends.starts_with("}}") {
                self.operand_ends(&mut block);
                if block.assigns {
                    self.edits.push((self.at, ASSIGNED));
                }
                self.at += rest.len() - ends.len() + 2;
                return Ok(());
            }
            if is_set && is_outside && letter == '=' && !block.assigns {
                self.edits.push((self.at + 1, "("));
                block.assigns = true;
            }
            self.token(letter, &mut block)?;
        }
    }

    fn operand_ends(&mut self, block: &mut Block) {
        let Some(level) = block.levels.last_mut() else { return };
        if let Some(at) = block.operand.filter(|_| std::mem::take(&mut level.is_added)) {
            self.edits.push((at, JOINED));
        }
    }

    fn token(&mut self, letter: char, block: &mut Block) -> Result<(), usize> {
        let rest = self.rest();
        let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
        match letter {
            letter if letter.is_whitespace() => self.at += letter.len_utf8(),
            letter if is_word(letter) => {
                // A word behind an operand is an operator.
                if block.operand.is_some() {
                    self.operand_ends(block);
                    self.operator(block)?;
                }
                let length = rest.find(|letter| !is_word(letter)).unwrap_or(rest.len());
                let word = rest.get(..length).unwrap_or_default();
                self.at += length;
                let is_operator =
                    matches!(word, "and" | "or" | "not" | "in" | "is" | "if" | "else" | "set" | "elif" | "for");
                block.operand = Some(self.at).filter(|_| !is_operator);
            }
            '"' | '\'' => {
                self.at += text_length(rest, letter);
                block.operand = Some(self.at);
            }
            '(' | '[' | '{' => {
                if block.operand.is_some() {
                    self.operator(block)?;
                }
                self.at += 1;
                block.levels.push(Level::default());
                block.operand = None;
            }
            ')' | ']' | '}' => {
                self.operand_ends(block);
                block.levels.truncate((block.levels.len() - 1).max(1));
                self.at += 1;
                block.operand = Some(self.at);
            }
            '.' | '|' => {
                self.operator(block)?;
                self.at += 1;
                block.operand = None;
            }
            _ => self.sign(letter, block)?,
        }
        Ok(())
    }

    fn sign(&mut self, letter: char, block: &mut Block) -> Result<(), usize> {
        let operand = block.operand;
        self.operator(block)?;
        if let (Some(at), Some(level)) = (operand, block.levels.last_mut()) {
            let was_added = std::mem::replace(&mut level.is_added, letter == '+');
            if was_added || letter == '+' {
                self.edits.push((at, JOINED));
            }
            if matches!(letter, ',' | ':' | '=') {
                level.operators = 0;
            }
        }
        self.at += letter.len_utf8();
        block.operand = None;
        Ok(())
    }

    fn operator(&self, block: &mut Block) -> Result<(), usize> {
        let Some(level) = block.levels.last_mut() else { return Ok(()) };
        level.operators += 1;
        let line = || self.text.get(..self.at).unwrap_or_default().matches('\n').count() + 1;
        if level.operators > LONGEST { Err(line()) } else { Ok(()) }
    }
}

/// Whether the text behind '{%' is a tag of that name.
fn is_tag(behind: &str, name: &str) -> bool {
    let rest = behind.trim_start_matches(['-', '+']).trim_start().strip_prefix(name);
    rest.is_some_and(|rest| !rest.starts_with(|letter: char| letter.is_alphanumeric() || letter == '_'))
}

/// How long the text in quotes is with which something begins.
fn text_length(rest: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, letter) in rest.char_indices().skip(1) {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            letter if letter == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(text: &str) -> String {
        let bounded = bounded(text).unwrap_or_else(|line| panic!("{text}: line {line}"));
        assert_eq!(as_written(&bounded).replace("=(", "="), text);
        bounded.replace(JOINED, "@").replace(ASSIGNED, ")!")
    }

    #[test]
    fn what_is_beside_a_plus_and_what_is_assigned_is_marked() {
        for (text, expected) in [
            ("a + b {{ 'c' }}", "a + b {{ 'c' }}"),
            ("{{ a + b }}", "{{ a@ + b@ }}"),
            ("{{a+b.c[0]|d(1+x)-e}}", "{{a@+b.c[0]|d(1@+x@)@-e}}"),
            ("{{ [a + b, c] + (d + e) * f }}", "{{ [a@ + b@, c]@ + (d@ + e@)@ * f }}"),
            ("{{ a + b if c else d + e }}", "{{ a@ + b@ if c else d@ + e@ }}"),
            ("{{ 'a + b' + \"\\\"+\" }}", "{{ 'a + b'@ + \"\\\"+\"@ }}"),
            ("{{ -a + -b + 1.5 }}", "{{ -a@ + -b@ + 1.5@ }}"),
            ("{{ {'a': {'b': 1 + c}} }}", "{{ {'a': {'b': 1@ + c@}} }}"),
            ("{%- set n.l = n.l + [1] -%}", "{%- set n.l =( n.l@ + [1]@ )!-%}"),
            ("{% set a = b == c %}", "{% set a =( b == c )!%}"),
            ("{% set a %}+{% endset %}", "{% set a %}+{% endset %}"),
            ("{% for a in b + c if d %}", "{% for a in b@ + c@ if d %}"),
            ("{% raw %}{{ a + b }}{% endraw %}{{ c + d }}", "{% raw %}{{ a + b }}{% endraw %}{{ c@ + d@ }}"),
            ("{# a {{ b + c #}{{+ a +}}", "{# a {{ b + c #}{{+ a +}}"),
            ("{{ a is defined and b + c }}", "{{ a is defined and b@ + c@ }}"),
            ("{{ 'ä' ~ ü + ö }}", "{{ 'ä' ~ ü@ + ö@ }}"),
            ("{{ a +", "{{ a@ +"),
            ("{{ 'a", "{{ 'a"),
        ] {
            assert_eq!(marked(text), expected, "{text}");
        }
    }

    #[test]
    fn an_expression_is_not_endless() {
        assert_eq!(bounded(&format!("a\n{{{{ a{} }}}}", "|list".repeat(LONGEST + 1))), Err(2));
        assert!(bounded(&format!("{{{{ [a{}] }}}}", ", b.c".repeat(10 * LONGEST))).is_ok());
    }
}
