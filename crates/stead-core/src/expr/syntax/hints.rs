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
        (&["lookup", "dig"], "tryGet"),
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

/// Returns whether there is a function of a name.
pub(super) fn is_function(name: &str) -> bool {
    functions().iter().any(|function| function.name == name)
}
