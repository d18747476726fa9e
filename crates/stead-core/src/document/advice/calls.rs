//! Calls that cannot do what they were meant to do: comparisons that are always false, and formats that leave values out.

use std::collections::BTreeSet;
use std::ops::Range;

use super::constants::{self, Misspelling};
use super::{Document, codes};
use crate::diag::{Diagnostic, did_you_mean, nearest};
use crate::expr::{
    Builtin, Expression, FactPath, FunctionCall, Placed, Subexpression, Template, ValueKind, fact_path, kinds_of,
};
use crate::text::{Kind, Sources, Span, locate, shown};

/// The functions that compare which of two is greater.
const ORDERS: [&str; 4] = ["greater", "greaterOrEquals", "less", "lessOrEquals"];
/// The member of `context()` that has the name of facts about distributions.
const OS_FAMILY: &str = "context().os.family";
/// How other languages write a place in a format.
const PRINTF: [&str; 5] = ["%s", "%d", "%i", "%v", "%f"];
/// How many variables are followed that read others.
const DEPTH: usize = 4;

/// A warning for each such call.
pub(super) fn without_effect(document: &Document, sources: &Sources) -> Vec<Diagnostic> {
    let mut all = Vec::new();
    document.computing_values().for_each(|value| own_expressions(value, &mut all));
    let mut found = Vec::new();
    for placed in &all {
        for (builtin, at) in placed.expression.all_calls() {
            let call = Call { document, sources, placed, builtin, at };
            match builtin.name {
                "equals" => found.extend(call.equality()),
                "contains" => found.extend(call.elements()),
                "format" => found.extend(call.format()),
                "concat" => found.extend(call.joined()),
                name if ORDERS.contains(&name) => found.extend(call.order()),
                _ => {}
            }
        }
    }
    found
}

/// The expressions of a value, without those of instances that are nested in it: their document has other parameters.
fn own_expressions<'d>(value: &'d Template, found: &mut Vec<Placed<'d>>) {
    match &value.kind {
        Kind::Compiled(expression) => found.push(Placed { expression, span: value.span }),
        Kind::Array(items) => items.iter().for_each(|item| own_expressions(item, found)),
        Kind::Object(entries) => {
            entries
                .iter()
                .filter(|entry| &*entry.key != "resources")
                .for_each(|entry| own_expressions(&entry.value, found));
        }
        Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::String(_) => {}
    }
}

/// A call, and where it stands.
struct Call<'c> {
    document: &'c Document,
    sources: &'c Sources,
    placed: &'c Placed<'c>,
    builtin: &'static Builtin,
    at: FunctionCall<'c>,
}

impl<'c> Call<'c> {
    fn expression(&self) -> &'c Expression {
        self.placed.expression
    }

    fn written(&self, part: Subexpression<'_>) -> &'c str {
        self.expression().text.get(part.at()).unwrap_or_default()
    }

    fn place(&self, range: Range<usize>) -> Span {
        locate(self.sources, self.placed.span, range)
    }

    fn both(&self) -> Option<[Subexpression<'c>; 2]> {
        let mut arguments = self.at.arguments();
        Some([arguments.next()?, arguments.next()?])
    }

    /// The finding with the change of a part, where that stands in the document as it is computed.
    fn with_fix(&self, finding: Diagnostic, range: Range<usize>, new: String) -> Diagnostic {
        let place = self.place(range.clone());
        let is_plain = self.sources.text(self.placed.span).is_some_and(|text| text.starts_with('"'));
        let is_same = self.sources.text(place) == self.expression().text.get(range);
        if is_plain && is_same && !new.contains(['"', '\\', '\n']) { finding.with_fix(place, new) } else { finding }
    }

    /// A comparison with the values that it compares.
    fn equality(&self) -> Option<Diagnostic> {
        let [one, other] = self.both()?;
        self.compared(one, other, (self.at.at(), "this comparison is always false"))
    }

    /// The elements of a list in the call that its other argument never is.
    fn elements(&self) -> Vec<Diagnostic> {
        let Some([list, wanted]) = self.both() else { return Vec::new() };
        let Some((_, elements)) = list.call().filter(|(builtin, _)| builtin.name == "createArray") else {
            return Vec::new();
        };
        let each = elements.arguments();
        let found = each.map(|element| self.compared(element, wanted, (element.at(), "this element is never found")));
        found.flatten().collect()
    }

    /// The finding about two values that are never the same, of which one is computed.
    fn compared(
        &self,
        one: Subexpression<'_>,
        other: Subexpression<'_>,
        (range, what): (Range<usize>, &str),
    ) -> Option<Diagnostic> {
        let found =
            |why: &str| Diagnostic::warning(&codes::COMPARISON, self.place(range.clone()), format!("{what}: {why}"));
        let of_context =
            [(one, other), (other, one)].into_iter().find(|(_, context)| self.written(*context) == OS_FAMILY);
        if let Some((constant, _)) = of_context
            && let Some(text) = constant.text()
        {
            let why = format!("'{OS_FAMILY}' is 'Linux' wherever stead runs");
            let help = "the family of distributions is facts('os.family')";
            return (!["Linux", "Windows", "macOS"].contains(&text)).then(|| found(&why).with_help(help));
        }
        let kinds = (self.kind(one)?, self.kind(other)?);
        if kinds.0 != kinds.1 {
            return self.mismatch((one, kinds.0), (other, kinds.1), found);
        }
        let (constant, computed) = if one.text().is_some() { (one, other) } else { (other, one) };
        let (text, (builtin, call)) = (constant.text()?, computed.call()?);
        let argument = call.arguments().next()?;
        let misspelled = match builtin.name {
            "facts" => constants::fact(argument.text()?, text)?,
            "toLower" => constants::letters(text, text.to_lowercase(), "toLower() returns small letters")?,
            "toUpper" => constants::letters(text, text.to_uppercase(), "toUpper() returns capital letters")?,
            "parameters" => self.not_allowed(argument.text()?, text)?,
            _ => return None,
        };
        let finding = found(&misspelled.why).with_help(misspelled.help);
        Some(match misspelled.right {
            Some(right) => self.with_fix(finding, constant.at(), format!("'{}'", right.replace('\'', "''"))),
            None => finding,
        })
    }

    /// A text that is not among the allowed values of a parameter.
    fn not_allowed(&self, name: &str, text: &str) -> Option<Misspelling> {
        let parameter = self.document.parameters.iter().find(|parameter| parameter.name.value == name)?;
        let allowed = &parameter.allowed.as_ref()?.value;
        let words: Vec<&str> = allowed.iter().filter_map(|each| each.as_str()).collect();
        let why = format!("'{}' is not one of the allowed values of '{}'", shown(text), shown(name));
        if words.len() != allowed.len() || words.contains(&text) {
            return None;
        }
        let same = words.iter().find(|word| word.eq_ignore_ascii_case(text));
        let help = match (same, nearest(text, words.iter().copied())) {
            (Some(same), _) => format!("write '{}'", shown(same)),
            (None, Some(meant)) => did_you_mean(&shown(meant)),
            (None, None) => format!("they are: {}", shown(&words.join(", "))),
        };
        Some(Misspelling { why, help, right: same.map(|same| (*same).to_owned()) })
    }

    /// Two values of different kinds. Two that are written out are what somebody tries.
    fn mismatch(
        &self,
        (one, kind): (Subexpression<'_>, ValueKind),
        (other, other_kind): (Subexpression<'_>, ValueKind),
        found: impl Fn(&str) -> Diagnostic,
    ) -> Option<Diagnostic> {
        let is_constant = |part: Subexpression<'_>| part.call().is_none();
        let (constant, computed) = match (is_constant(one), is_constant(other)) {
            (true, true) => return None,
            (true, false) => (Some(one), other_kind),
            (false, true) => (Some(other), kind),
            (false, false) => (None, kind),
        };
        let of = |part, kind: ValueKind| Some(format!("{} is {}", shown(self.written(part)), kind_word(kind)?));
        let finding = found(&format!("{}, and {}", of(one, kind)?, of(other, other_kind)?));
        let Some(constant) = constant else {
            return Some(finding.with_help("convert one of them with string(), int() or bool()"));
        };
        let bare = constant.text().filter(|text| match computed {
            ValueKind::Number => text.parse::<i64>().is_ok_and(|number| number.to_string() == **text),
            ValueKind::Boolean => ["true", "false"].contains(text),
            _ => false,
        });
        Some(match bare {
            Some(bare) => {
                let finding = finding.with_help(format!("write {bare} without quotes"));
                self.with_fix(finding, constant.at(), bare.to_owned())
            }
            None if constant.text().is_none() && computed == ValueKind::String => {
                let quoted = format!("'{}'", self.written(constant));
                self.with_fix(finding.with_help(format!("write {quoted}, in quotes")), constant.at(), quoted)
            }
            None => finding.with_help("convert one of them with string(), int() or bool()"),
        })
    }

    /// The kind of an argument, if it has only one. Of a secret nothing is said.
    fn kind(&self, part: Subexpression<'_>) -> Option<ValueKind> {
        let written = self.written(part);
        match part.call() {
            _ if part.text().is_some() => Some(ValueKind::String),
            Some((builtin, call)) => self.kind_of_call(builtin, &call, DEPTH),
            None if ["true", "false"].contains(&written) => Some(ValueKind::Boolean),
            None => written.parse::<i64>().is_ok().then_some(ValueKind::Number),
        }
    }

    fn kind_of_call(&self, builtin: &Builtin, call: &FunctionCall<'_>, depth: usize) -> Option<ValueKind> {
        let named = || call.arguments().next()?.text().map(str::to_owned);
        match builtin.name {
            "parameters" => {
                let name = named()?;
                let parameter = self.document.parameters.iter().find(|parameter| parameter.name.value == name)?;
                let data_type = parameter.data_type.value;
                only(kinds_of(data_type)).filter(|_| !data_type.is_secure())
            }
            "variables" => {
                let name = named()?;
                let variable = self.document.variables.iter().find(|variable| variable.name.value == name)?;
                match &variable.value.kind {
                    Kind::String(_) => Some(ValueKind::String),
                    Kind::Number(_) => Some(ValueKind::Number),
                    Kind::Bool(_) => Some(ValueKind::Boolean),
                    Kind::Compiled(expression) => {
                        let whole = expression.whole();
                        let (builtin, call) = whole.call().filter(|_| depth > 0)?;
                        self.kind_of_call(builtin, &call, depth - 1)
                    }
                    Kind::Null | Kind::Array(_) | Kind::Object(_) => None,
                }
            }
            "facts" => match fact_path(&named()?) {
                FactPath::Of(kind) => Some(kind),
                FactPath::Named | FactPath::Nothing => None,
            },
            "secret" => None,
            _ => only(builtin.returns),
        }
    }

    /// Two integers that are text: they are in the order of their letters.
    fn order(&self) -> Option<Diagnostic> {
        let [one, other] = self.both()?;
        let (constant, computed) = if one.text().is_some() { (one, other) } else { (other, one) };
        let limit = integer(constant.text()?)?;
        let (builtin, call) = computed.call()?;
        let argument = call.arguments().next()?;
        let value = match (builtin.name, argument.text()?) {
            // Releases have had two digits for long.
            ("facts", "os.release.major") if limit < 10 => 12,
            ("parameters", name) => {
                let parameter = self.document.parameters.iter().find(|parameter| parameter.name.value == name)?;
                integer(parameter.default.as_ref()?.as_str()?)?
            }
            _ => return None,
        };
        if value.cmp(&limit) == value.to_string().cmp(&limit.to_string()) {
            return None;
        }
        let (less, greater) = if value.to_string() < limit.to_string() { (value, limit) } else { (limit, value) };
        let number = |part: Subexpression<'_>| match part.text() {
            Some(text) => text.to_owned(),
            None => format!("int({})", shown(self.written(part))),
        };
        let message = format!("text is compared letter by letter: '{less}' is less than '{greater}'");
        let finding = Diagnostic::warning(&codes::COMPARISON, self.place(self.at.at()), message);
        let call = format!("{}({}, {})", self.builtin.name, number(one), number(other));
        Some(finding.with_help(format!("compare numbers: {call}")))
    }

    /// Text with places of a format, in a call that joins.
    fn joined(&self) -> Option<Diagnostic> {
        let template = self.at.arguments().find(|part| part.text().is_some_and(|text| text.contains("{0}")))?;
        let message = "'concat' joins its arguments: '{0}' stays as it is";
        let finding = Diagnostic::warning(&codes::FORMAT, self.place(template.at()), message);
        Some(finding.with_help("use format(), whose first argument has the places of the others"))
    }

    /// A format that has no place for some of its values.
    fn format(&self) -> Option<Diagnostic> {
        let mut arguments = self.at.arguments();
        let template = arguments.next()?;
        let (text, count) = (template.text()?, arguments.len());
        let used = places(text)?;
        let unused = (0..count).find(|index| !used.contains(index))?;
        let finding = |message: String| Diagnostic::warning(&codes::FORMAT, self.place(template.at()), message);
        if !used.is_empty() {
            let finding = finding(format!("the format has no {{{unused}}}: value {} is left out", unused + 1));
            return Some(finding.with_help(format!("write {{{unused}}} where it belongs, or remove the value")));
        }
        let finding = finding("the format has no place for its values: they are left out".to_owned());
        let Some(meant) = of_printf(text, count) else {
            return Some(finding.with_help("write {0} where the first one belongs, or remove the values"));
        };
        let finding = finding.with_help(format!("write '{}'", shown(&meant)));
        Some(self.with_fix(finding, template.at(), format!("'{}'", meant.replace('\'', "''"))))
    }
}

/// An integer that is written as such.
fn integer(text: &str) -> Option<u64> {
    text.parse::<u64>().ok().filter(|number| number.to_string() == text)
}

/// The values that a format has places for; `None` where it is wrong, which is another finding.
fn places(text: &str) -> Option<BTreeSet<usize>> {
    let (mut used, mut rest, mut next) = (BTreeSet::new(), text, 0..);
    while let Some(at) = rest.find(['{', '}']) {
        let special = rest.get(at..)?;
        if let Some(after) = special.strip_prefix("{{").or_else(|| special.strip_prefix("}}")) {
            rest = after;
            continue;
        }
        let (place, after) = special.strip_prefix('{')?.split_once('}')?;
        let index = place.split_once(':').map_or(place, |(index, _)| index).trim();
        used.insert(if index.is_empty() { next.next()? } else { index.parse().ok()? });
        rest = after;
    }
    Some(used)
}

/// A format of C as one with places, if it has one for each value.
fn of_printf(text: &str, count: usize) -> Option<String> {
    let mut places: Vec<usize> = PRINTF.iter().flat_map(|place| text.match_indices(place)).map(|(at, _)| at).collect();
    places.sort_unstable();
    let is_all = places.len() == count && count > 0 && text.matches('%').count() == count;
    let mut meant = text.to_owned();
    for (index, at) in places.into_iter().enumerate().rev() {
        meant.replace_range(at..at + 2, &format!("{{{index}}}"));
    }
    is_all.then_some(meant)
}

fn only(kinds: &[ValueKind]) -> Option<ValueKind> {
    if let [only] = kinds { Some(*only) } else { None }
}

fn kind_word(kind: ValueKind) -> Option<&'static str> {
    match kind {
        ValueKind::String => Some("a string"),
        ValueKind::Number => Some("a number"),
        ValueKind::Boolean => Some("a boolean"),
        ValueKind::Array => Some("an array"),
        ValueKind::Object => Some("an object"),
        ValueKind::Null | ValueKind::Lambda => None,
    }
}
