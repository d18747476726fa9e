//! Limits that the engine does not have: it joins lists without counting, and goes by recursion through values within values and
//! through long expressions.
//!
//! Values that a template adds or assigns are led through filters, which are written into its text: no line changes
//! its number.

use std::collections::BTreeMap;

use minijinja::value::{Kwargs, Rest, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State, Value, filters};

/// How many elements a list may have that is joined with another one, so that the longest expression joins some megabytes.
const MOST_JOINED: usize = 20_000;

/// How many elements a list may have that is computed and assigned.
const MOST_ASSIGNED: usize = 100_000;

/// How deep a value may be that is assigned.
const DEEPEST: usize = 100;

/// How many operators, filters and attributes may follow each other in an expression, and 'elif' in a block.
const LONGEST: usize = 200;

/// How deep brackets, and blocks, may be nested.
const MOST_NESTED: usize = 50;

/// For how many elements the engine makes room before it has them.
const MOST_RESERVED: usize = 1024;

/// How many values, or pieces of 64 bytes, an element may hold of a list that is repeated.
const MOST_REPEATED: u64 = 100;

/// The calls of the filters, as they are written into a template. No template has their names by accident.
const JOINED: &str = "|__stead_joined ";
const REPEATED: &str = "|__stead_repeated ";
const MEASURED: &str = "|__stead_measured ";
const ASSIGNED: &str = ")|__stead_assigned ";

/// The opening of the parenthesis that [`ASSIGNED`] closes. Nobody writes one with a form feed.
const OPEN: &str = "(\x0c";

/// How a message begins that is about these limits.
const PROBLEM: &str = "the template makes ";

/// Gives an environment the filters.
pub(super) fn enable(environment: &mut Environment<'_>) {
    environment.add_filter(name(JOINED), joined);
    environment.add_filter(name(ASSIGNED), assigned);
    environment.add_filter(name(REPEATED), repeated);
    environment.add_filter(name(MEASURED), assigned);
    environment.add_filter("batch", batch);
    environment.add_filter("slice", slice);
    environment.add_filter("chain", chain);
    environment.add_filter("sum", sum);
}

fn name(mark: &str) -> &str {
    mark.trim_matches([')', '|', ' '])
}

/// The message about a limit, if it is one that an error is about.
pub(super) fn message(error: &Error) -> Option<&str> {
    error.detail().filter(|detail| detail.starts_with(PROBLEM))
}

/// A part of a template as its author wrote it.
pub(super) fn as_written(part: &str) -> String {
    [OPEN, ASSIGNED, JOINED, REPEATED, MEASURED].iter().fold(part.to_owned(), |part, mark| part.replace(mark, ""))
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

/// Checks an operand of '+', and computes it if it is a list. Fails for a list of more than [`MOST_JOINED`] elements.
fn joined(state: &State<'_, '_>, value: Value) -> Result<Value, Error> {
    if is_list(&value) { listed(state, &value, MOST_JOINED) } else { Ok(value) }
}

/// Checks an operand of '*', and computes it if it is a list. Fails for a list that has too many or too large elements.
fn repeated(state: &State<'_, '_>, value: Value) -> Result<Value, Error> {
    let value = joined(state, value)?;
    if is_list(&value) || value.is_tuple() {
        for element in value.try_iter()? {
            if measured(state, &element)? > MOST_REPEATED {
                return Err(refused(&format!("a list of more than {MOST_REPEATED} values many times")));
            }
        }
    }
    Ok(value)
}

/// Checks a value that is assigned, passed on or iterated over. Fails if it is nested too deep, or is a computed list of more
/// than [`MOST_ASSIGNED`] elements.
fn assigned(state: &State<'_, '_>, value: Value) -> Result<Value, Error> {
    // A list that is computed when it is read would be computed through all from which it was.
    let value = if value.kind() == ValueKind::Iterable { listed(state, &value, MOST_ASSIGNED)? } else { value };
    measured(state, &value)?;
    Ok(value)
}

/// Returns the number of values, or pieces of 64 bytes, in a value, each counted as often as it occurs; a part of it
/// is paid for.
fn measured(state: &State<'_, '_>, value: &Value) -> Result<u64, Error> {
    let (mut pending, mut total) = (vec![(value.clone(), 0)], 0);
    while let Some((container, depth)) = pending.pop() {
        if !matches!(container.kind(), ValueKind::Seq | ValueKind::Iterable | ValueKind::Map) {
            total += length(&container);
            continue;
        }
        let Ok(elements) = container.try_iter() else { continue };
        if depth > DEEPEST {
            return Err(refused(&format!("values within values, more than {DEEPEST} levels deep")));
        }
        let is_map = container.kind() == ValueKind::Map;
        let (mut seen, mut pieces) = (0, 0);
        for element in elements {
            let inner = if is_map { container.get_item(&element)? } else { element };
            seen += 1;
            match inner.kind() {
                ValueKind::Seq | ValueKind::Iterable | ValueKind::Map => pending.push((inner, depth + 1)),
                _ => pieces += length(&inner),
            }
        }
        total += 1 + seen + pieces;
        state.consume_fuel(1 + seen / 16 + pieces)?;
    }
    Ok(total)
}

/// Returns the number of pieces of 64 bytes in a text.
fn length(value: &Value) -> u64 {
    value.as_str().map_or(0, |text| text.len() as u64 / 64)
}

/// The filter of the engine, which makes room for a list, and fills it up, for nothing.
fn batch(state: &State<'_, '_>, value: Value, count: usize, filler: Option<Value>) -> Result<Value, Error> {
    let reserved = if filler.is_some() { count } else { count.min(MOST_RESERVED) };
    state.consume_fuel(reserved as u64)?;
    filters::batch(state, value, count, filler)
}

/// The filter of the engine, which makes lists for nothing.
fn slice(state: &State<'_, '_>, value: Value, count: usize, filler: Option<Value>) -> Result<Value, Error> {
    state.consume_fuel(count as u64)?;
    filters::slice(state, value, count, filler)
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

/// The text of a template in which what is joined, assigned, handed over and gone through is led through the filters; or what is too
/// long or deep in it, and in which line.
pub(super) fn bounded(text: &str) -> Result<String, (usize, &'static str)> {
    let mut scan = Scan { text, at: 0, edits: Vec::new(), open: Vec::new() };
    while let Some(kind) = scan.enter_block() {
        if kind == TagKind::Raw {
            scan.leave_raw();
            continue;
        }
        scan.block(kind == TagKind::Tag)
            .map_err(|problem| (text.get(..scan.at).unwrap_or_default().matches('\n').count() + 1, problem))?;
    }
    scan.edits.sort_by_key(|(at, _)| *at);
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
enum TagKind {
    Expression,
    Tag,
    Raw,
}

/// One pass over the text.
struct Scan<'t> {
    text: &'t str,
    at: usize,
    edits: Vec<(usize, &'static str)>,
    /// How many 'elif' each block has that is open.
    open: Vec<usize>,
}

/// The state of the scan between two brackets, or outside of all brackets.
#[derive(Default)]
struct Level {
    /// The filter for the operand that follows an operator.
    pending: Option<&'static str>,
    /// How many operators follow each other, and how many of what is within brackets beside them.
    operators: usize,
    inner: usize,
    /// The most of them between two commas.
    most: usize,
    /// Where a value begins that is handed over or assigned.
    slot: Option<usize>,
    /// True if that value can be more than a number or a text.
    is_open: bool,
    /// True if each comma begins another such value.
    has_slots: bool,
}

impl Level {
    fn next(&mut self) {
        self.most = self.most.max(self.operators + self.inner);
        (self.operators, self.inner) = (0, 0);
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Operand {
    Constant,
    Variable,
    Computed,
}

/// Filters and tests that go through values within values for nothing.
const DEEP: &[&str] =
    &["sort", "unique", "min", "max", "groupby", "dictsort", "select", "reject", "selectattr", "rejectattr", "map"];

/// Where the scan of a block is.
struct Block<'t> {
    levels: Vec<Level>,
    /// The first word of a tag.
    tag: Option<&'t str>,
    is_tag: bool,
    /// Where the last sign ended, if an operand may end there.
    operand: Option<usize>,
    /// The kind of that operand.
    is: Operand,
    /// The sign before it.
    before: char,
}

impl<'t> Scan<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_past(&mut self, end: &str) {
        self.at = self.rest().find(end).map_or(self.text.len(), |found| self.at + found + end.len());
    }

    /// Goes into the next block; `None` at the end of the text.
    fn enter_block(&mut self) -> Option<TagKind> {
        loop {
            self.at += self.rest().find('{')? + 1;
            let kind = match self.rest().chars().next() {
                Some('{') => Some(TagKind::Expression),
                Some('%') => Some(TagKind::Tag),
                Some('#') => None,
                _ => continue,
            };
            self.at += 1;
            match kind {
                None => self.skip_past("#}"),
                Some(TagKind::Tag) if is_whole_tag(self.rest(), "raw") => return Some(TagKind::Raw),
                kind => return kind,
            }
        }
    }

    fn leave_raw(&mut self) {
        while !self.rest().is_empty() && !is_whole_tag(self.rest(), "endraw") {
            self.skip_past("{%");
        }
    }

    /// Scans a block to its end.
    fn block(&mut self, is_tag: bool) -> Result<(), &'static str> {
        let levels = vec![Level::default()];
        let mut block = Block { levels, tag: None, is_tag, operand: None, is: Operand::Constant, before: ' ' };
        if self.rest().starts_with(['-', '+']) {
            self.at += 1;
        }
        loop {
            let rest = self.rest();
            let ends = rest.trim_start_matches(['-', '+']);
            let Some(letter) = rest.chars().next() else { return Ok(()) };
            if ends.starts_with("%}") || block.levels.len() == 1 && ends.starts_with("}}") {
                self.operand_ends(&mut block);
                let has_value = block.levels.first().is_some_and(|level| level.slot.is_some());
                self.slot_ends(&mut block);
                self.at += rest.len() - ends.len() + 2;
                return self.nested(block.tag.unwrap_or_default(), has_value);
            }
            self.token(letter, &mut block)?;
        }
    }

    /// Counts the blocks that are open behind a tag.
    fn nested(&mut self, tag: &str, has_value: bool) -> Result<(), &'static str> {
        match tag {
            "set" if has_value => {}
            "if" | "for" | "with" | "filter" | "macro" | "call" | "autoescape" | "set" => self.open.push(0),
            "elif" => self.open.iter_mut().next_back().into_iter().for_each(|count| *count += 1),
            tag if tag.starts_with("end") => drop(self.open.pop()),
            _ => {}
        }
        let is_deep = self.open.len() > MOST_NESTED || self.open.iter().sum::<usize>() > LONGEST;
        if is_deep {
            Err("blocks are nested too deeply, or have too many 'elif'; make several of them")
        } else {
            Ok(())
        }
    }

    fn operand_ends(&mut self, block: &mut Block<'_>) {
        let Some(level) = block.levels.last_mut() else { return };
        let pending = level.pending.take();
        if let (Some(at), Some(filter)) = (block.operand, pending)
            && (filter != MEASURED || block.is > Operand::Constant)
        {
            self.edits.push((at, filter));
        }
    }

    /// Ends a value that is handed over or assigned.
    fn slot_ends(&mut self, block: &mut Block<'_>) {
        let Some(level) = block.levels.last_mut() else { return };
        if let Some(from) = level.slot.take().filter(|_| std::mem::take(&mut level.is_open)) {
            self.edits.extend([(from, OPEN), (block.operand.unwrap_or(self.at), ASSIGNED)]);
        }
    }

    fn token(&mut self, letter: char, block: &mut Block<'t>) -> Result<(), &'static str> {
        let rest = self.rest();
        match letter {
            letter if letter.is_whitespace() => self.at += letter.len_utf8(),
            letter if is_word(letter) => self.word(letter, block)?,
            '"' | '\'' => {
                self.at += text_length(rest, letter);
                (block.operand, block.is) = (Some(self.at), Operand::Constant);
            }
            '(' | '[' | '{' => self.opens(letter, block)?,
            ')' | ']' | '}' => {
                self.operand_ends(block);
                self.slot_ends(block);
                if block.levels.len() > 1
                    && let Some(mut level) = block.levels.pop()
                    && let Some(outer) = block.levels.last_mut()
                {
                    level.next();
                    outer.inner = outer.inner.max(level.most + 1);
                }
                self.at += 1;
                (block.operand, block.is) = (Some(self.at), Operand::Computed);
                short(block)?;
            }
            '.' | '|' => {
                let filter = rest.trim_start_matches('|').trim_start();
                let is_deep = DEEP.iter().any(|name| filter.starts_with(name)) && block.is > Operand::Constant;
                let is_measured = letter == '|' && (is_deep || block.is == Operand::Computed);
                if let Some(at) = block.operand.filter(|_| is_measured) {
                    self.edits.push((at, MEASURED));
                }
                operator(block)?;
                self.at += 1;
                (block.operand, block.before) = (None, letter);
            }
            _ => self.sign(letter, block)?,
        }
        Ok(())
    }

    fn word(&mut self, letter: char, block: &mut Block<'t>) -> Result<(), &'static str> {
        let rest = self.rest();
        let word = rest.get(..rest.find(|letter| !is_word(letter)).unwrap_or(rest.len())).unwrap_or_default();
        let is_first = block.is_tag && block.tag.is_none();
        let is_outside = block.levels.len() == 1;
        let is_attribute = matches!(block.before, '.' | '|') && block.operand.is_none();
        let is_operator = is_first
            || !is_attribute && matches!(word, "and" | "or" | "not" | "in" | "is" | "if" | "else" | "recursive");
        // A word behind an operand is an operator.
        if block.operand.is_some() || is_operator && !is_first {
            let is_loop = is_outside && block.tag == Some("for");
            let begins =
                is_loop && word == "in" && block.levels.iter().all(|level| level.slot.is_none() && !level.has_slots);
            let compares = (matches!(word, "in" | "not") || word == "is" && block.is == Operand::Computed) && !begins;
            if let Some(level) = block.levels.last_mut().filter(|level| compares && level.pending.is_none()) {
                level.pending = Some(MEASURED);
            }
            self.operand_ends(block);
            if is_loop && matches!(word, "if" | "recursive") {
                self.slot_ends(block);
            }
            if let Some(level) = block.levels.last_mut() {
                level.pending = Some(MEASURED).filter(|_| compares && word != "is");
                if begins {
                    // No other 'in' of this tag begins anything.
                    (level.slot, level.has_slots) = (Some(self.at + word.len()), true);
                }
            }
            operator(block)?;
            if begins {
                self.at += word.len();
                (block.operand, block.before) = (None, ' ');
                return Ok(());
            }
        }
        self.at += word.len();
        if is_first {
            block.tag = Some(word);
        }
        if let Some(level) = block.levels.last_mut().filter(|_| !letter.is_ascii_digit()) {
            level.is_open = true;
        }
        block.is = match block.before {
            '|' => Operand::Computed,
            '.' => block.is.max(Operand::Variable),
            _ if letter.is_ascii_digit() => Operand::Constant,
            _ => Operand::Variable,
        };
        (block.operand, block.before) = (Some(self.at).filter(|_| !is_operator), ' ');
        Ok(())
    }

    fn opens(&mut self, letter: char, block: &mut Block<'_>) -> Result<(), &'static str> {
        if block.operand.is_some() {
            operator(block)?;
        }
        self.at += 1;
        if let Some(level) = block.levels.last_mut() {
            level.is_open = true;
        }
        let is_declared = block.levels.len() == 1 && block.tag == Some("macro");
        let is_call = letter == '(' && block.operand.is_some() && !is_declared;
        block.levels.push(Level { slot: Some(self.at).filter(|_| is_call), has_slots: is_call, ..Level::default() });
        (block.operand, block.before) = (None, ' ');
        // The first level is the tag itself.
        if block.levels.len() > MOST_NESTED + 1 {
            Err("brackets are nested too deeply; assign parts of it first")
        } else {
            Ok(())
        }
    }

    fn sign(&mut self, letter: char, block: &mut Block<'_>) -> Result<(), &'static str> {
        let rest = self.rest();
        let compares = ["==", "!=", "<=", ">="].iter().any(|sign| rest.starts_with(sign));
        let filter = match letter {
            '+' => Some(JOINED),
            '*' => Some(REPEATED),
            '~' | '<' | '>' => Some(MEASURED),
            _ => Some(MEASURED).filter(|_| compares),
        };
        operator(block)?;
        let is_assigned = letter == '=' && !compares;
        if let Some(level) = block.levels.last_mut().filter(|_| block.operand.is_some()) {
            // The stricter one of those on both sides.
            let both =
                [REPEATED, JOINED, MEASURED].into_iter().find(|one| [level.pending, filter].contains(&Some(one)));
            level.pending = both;
        }
        if block.operand.is_some() {
            self.operand_ends(block);
        }
        if letter == ',' {
            let is_set = block.levels.len() == 1 && block.tag == Some("set");
            if !is_set {
                self.slot_ends(block);
            }
        }
        self.at += if compares { 2 } else { letter.len_utf8() };
        let is_outside = block.levels.len() == 1;
        let assigns = is_outside && matches!(block.tag, Some("set" | "with"));
        if let Some(level) = block.levels.last_mut() {
            if block.operand.is_some() {
                level.pending = filter;
            }
            if is_assigned && (level.has_slots && !is_outside || assigns && level.slot.is_none())
                || letter == ',' && level.has_slots && !is_outside
                || letter == '*' && block.operand.is_none() && level.has_slots && !level.is_open
            {
                (level.slot, level.is_open) = (Some(self.at), false);
            }
            if is_assigned || matches!(letter, ',' | ':') {
                level.next();
            }
        }
        (block.operand, block.before) = (None, ' ');
        Ok(())
    }
}

fn operator(block: &mut Block<'_>) -> Result<(), &'static str> {
    if let Some(level) = block.levels.last_mut() {
        level.operators += 1;
    }
    short(block)
}

/// Refuses what recursion would go through too deeply.
fn short(block: &Block<'_>) -> Result<(), &'static str> {
    let around: usize = block.levels.iter().map(|level| level.operators).sum();
    let inner = block.levels.last().map_or(0, |level| level.inner);
    if around + inner > LONGEST {
        Err("an expression has too many operators in a row; assign parts of it first")
    } else {
        Ok(())
    }
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// Returns whether the text behind '{%' is a tag of that name, without anything else in it.
fn is_whole_tag(behind: &str, name: &str) -> bool {
    let space = |letter: char| letter.is_ascii_whitespace();
    let rest = behind.strip_prefix(['-', '+']).unwrap_or(behind).trim_start_matches(space).strip_prefix(name);
    let rest = rest.map(|rest| rest.trim_start_matches(space));
    rest.is_some_and(|rest| rest.strip_prefix(['-', '+']).unwrap_or(rest).starts_with("%}"))
}

/// Returns the length of the text in quotes with which something begins.
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
mod tests;
