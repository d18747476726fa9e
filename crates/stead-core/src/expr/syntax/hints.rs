//! The meaning of what is written in expressions in the way of other languages.

use super::functions;
use crate::expr::Help;

/// The function that other languages call by a name.
pub(super) fn function_of_others(name: &str) -> Option<&'static str> {
    const NAMES: [(&[&str], &str); 23] = [
        (&["upper", "uppercase", "ucase", "upcase"], "toUpper"),
        (&["lower", "lowercase", "lcase", "downcase"], "toLower"),
        (&["len", "size", "count"], "length"),
        (&["env", "getenv", "environ"], "envvar"),
        (&["eq", "equal", "is"], "equals"),
        (&["gt"], "greater"),
        (&["lt"], "less"),
        (&["strip", "trimspace", "chomp"], "trim"),
        (&["str", "tostring", "to_string", "to_s"], "string"),
        (&["b64encode", "base64encode"], "base64"),
        (&["b64decode", "base64decode"], "base64ToString"),
        (&["default", "ifnull", "nvl", "coalescelist"], "coalesce"),
        (&["tonumber", "to_number", "toint", "to_int", "parseint", "to_i"], "int"),
        (&["tobool", "to_bool"], "bool"),
        (&["jsonencode", "json_encode", "to_json", "to_nice_json"], "stead.toJson"),
        (&["yamlencode", "to_yaml", "to_nice_yaml"], "stead.toYaml"),
        (&["jsondecode", "json_decode", "from_json", "parsejson"], "json"),
        (&["yamldecode", "from_yaml", "parseyaml", "loadyaml"], "stead.fromYaml"),
        (&["templatefile", "template_file", "epp"], "stead.templateFile"),
        (&["now", "timestamp", "strftime"], "utcNow"),
        (&["dig"], "tryGet"),
        (&["isempty", "is_empty"], "empty"),
        (&["keys"], "objectKeys"),
    ];
    let lower = name.to_lowercase();
    NAMES.iter().find(|(words, _)| words.contains(&&*lower)).map(|(_, function)| *function)
}

/// Returns whether a word without parentheses is what other languages read, so that text was hardly meant.
pub(in crate::expr) fn is_of_others(word: &str) -> bool {
    read(word).is_some() || loop_of_others(word).is_some()
}

/// How a word without parentheses is read that is not the item of a loop around.
pub(super) fn read(name: &str) -> Option<String> {
    const READS: [(&[&str], &str); 5] = [
        (&["parameters", "parameter", "params", "param", "var"], "parameters"),
        (&["variables", "variable", "vars", "local", "locals"], "variables"),
        (&["facts", "fact", "ansible_facts", "grains"], "facts"),
        (&["env", "environ"], "envvar"),
        (&["secrets"], "secret"),
    ];
    let (word, member) = name.split_once('.')?;
    let function = READS.iter().find(|(words, _)| words.contains(&word)).map(|(_, function)| *function)?;
    let member = if function == "facts" { crate::expr::fact_of_others(member).unwrap_or(member) } else { member };
    Some(format!("write {function}('{member}')"))
}

/// Advice about an operator in words between two values, or one in front of its argument: the call to write.
pub(super) fn operator(word: &str, before: &str, behind: &str) -> Option<String> {
    let one = before.trim_start_matches('[').trim();
    let other = behind.trim().strip_suffix(']').unwrap_or(behind).trim();
    let array = other.strip_prefix('[').and_then(|list| list.strip_suffix(']'));
    let list = array.map_or_else(|| other.to_owned(), |list| format!("createArray({list})"));
    let call = match word {
        "in" => format!("contains({list}, {one})"),
        "and" | "or" => format!("{word}({one}, {other})"),
        "eq" | "is" => format!("equals({one}, {other})"),
        "ne" => format!("not(equals({one}, {other}))"),
        "gt" | "lt" => format!("{}({one}, {other})", function_of_others(word)?),
        _ => return None,
    };
    let is_whole = !one.is_empty() && !other.is_empty() && call.len() <= super::MAX_SHOWN;
    Some(format!(
        "there are no operators; use {}",
        if is_whole { &call } else { "a function: and(a, b), contains(list, a)" }
    ))
}

/// The item of a loop that a word without parentheses is.
pub(super) fn item(name: &str, is_item: &dyn Fn(&str) -> bool) -> Option<Help> {
    let (word, members) = name.split_at(name.find('.').unwrap_or(name.len()));
    is_item(word).then(|| Help::Item { wrong: name.to_owned(), called: format!("{word}(){members}") })
}

/// The loop that other tools have for what a word without parentheses reads.
pub(super) fn loop_of_others(name: &str) -> Option<&'static str> {
    match name {
        "each.value" | "each.key" | "item.name" | "item.key" | "item.value" => Some(
            "this is the item of a loop: the instance needs `copy: {name: items, each: [a, b]}`, and [item()] is its item",
        ),
        "count.index" | "loop.index" => Some(
            "this is the index of a loop: the instance needs `copy: {name: each, count: 2}`, and [copyIndex()] is it",
        ),
        _ => None,
    }
}

/// Advice about a call that other languages write in another way: `behind` begins with its arguments.
pub(super) fn call_of_others(name: &str, behind: &str) -> Option<String> {
    let arguments = behind.trim_start().strip_prefix('(')?.split_once(')')?.0;
    let mut texts = arguments.split(',').map(|each| each.trim().strip_prefix('\'')?.strip_suffix('\''));
    match (name, texts.next()??, texts.next().flatten()) {
        ("lookup" | "query", "env", Some(variable)) => Some(format!("write envvar('{variable}')")),
        ("lookup" | "query", "file", Some(path)) => Some(format!("write stead.file('{path}')")),
        ("lookup" | "hiera" | "query", key, _) => {
            Some(format!("values come from parameters: declare '{key}' in 'parameters', and write parameters('{key}')"))
        }
        ("grains", key, _) => Some(format!("write facts('{key}')")),
        _ => None,
    }
}

/// Advice about a sign that other languages have: a filter behind `|`, or a variable behind `$`.
pub(super) fn of_sign(sign: char, before: &str, behind: &str) -> Option<String> {
    match sign {
        '|' => filter(before, behind),
        '$' => variable(behind),
        _ => None,
    }
}

fn filter(before: &str, behind: &str) -> Option<String> {
    let value = before.trim_start_matches('[').trim();
    // Within a call it is not known where the value begins.
    let is_whole = !value.is_empty() && value.matches('(').count() == value.matches(')').count();
    let call = filtered(if is_whole { value } else { "a" }, behind)?;
    Some(format!("there are no filters; use {call}"))
}

/// Returns the call that a filter of Jinja is: `a | f(b)` is `f(a, b)`.
pub(crate) fn filtered(value: &str, filter: &str) -> Option<String> {
    let filter = filter.trim_start();
    let end = filter.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(filter.len());
    let (name, rest) = filter.split_at(end);
    let known = if is_function(name) { Some(name) } else { function_of_others(name) };
    let function = known.filter(|_| !name.is_empty())?;
    let inner =
        rest.trim_start().strip_prefix('(').and_then(|rest| rest.split_once(')')).map_or("", |(inner, _)| inner);
    let call = if inner.is_empty() { format!("{function}({value})") } else { format!("{function}({value}, {inner})") };
    (call.len() <= super::MAX_SHOWN).then_some(call)
}

/// `$facts['os']['family']` of Puppet, and variables of PowerShell.
fn variable(behind: &str) -> Option<String> {
    let end = behind.find([',', ')', ' ']).unwrap_or(behind.len());
    let written = behind.get(..end)?.trim_end_matches(']');
    if let Some(name) = written.strip_prefix("env:") {
        return Some(format!("write envvar('{name}')"));
    }
    let path = written.strip_prefix("facts").or_else(|| written.strip_prefix("::facts"))?;
    let names: Vec<&str> = path.split(['[', ']', '.', '\'', '"']).filter(|name| !name.is_empty()).collect();
    (!names.is_empty()).then(|| format!("write facts('{}')", names.join(".")))
}

/// Advice about `parameters['site']`: `behind` begins with the bracket.
pub(super) fn read_in_brackets(name: &str, behind: &str) -> Option<String> {
    let (member, _) = behind.trim_start().strip_prefix('[')?.split_once(']')?;
    let member = member.trim().trim_matches(['\'', '"']);
    let is_name = !member.is_empty() && member.chars().all(|c| c.is_alphanumeric() || "_-".contains(c));
    read(&format!("{name}.{member}")).filter(|_| is_name)
}

/// Returns whether there is a function of a name.
pub(super) fn is_function(name: &str) -> bool {
    functions().iter().any(|function| function.name == name)
}
