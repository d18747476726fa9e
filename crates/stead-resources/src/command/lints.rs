//! Operators of a shell in lists of arguments, which no shell reads.

use stead_core::value::{Object, Value};
use stead_host::provider::Lint;

use super::Properties;

const OPERATORS: [&str; 13] =
    [">", ">>", "<", "|", "||", "&&", "&>", "2>", "2>&1", ">&2", "1>&2", "2>/dev/null", ">/dev/null"];

/// Programs that have such operators themselves.
const OWN: [&str; 6] = ["expr", "test", "[", "find", "dpkg", "jq"];

/// Finds the first operator of each command.
pub(super) fn lints(properties: &Object) -> Vec<Lint> {
    let commands = [Properties::GET, Properties::TEST, Properties::SET].into_iter();
    commands.filter_map(|name| operator(name, properties.get(name)?.as_array()?)).collect()
}

fn operator(name: &str, arguments: &[Value]) -> Option<Lint> {
    let program = arguments.first()?.as_str()?;
    let program = program.rsplit('/').next().unwrap_or(program);
    let own = OWN.contains(&program);
    let is_operator = |word: &str| OPERATORS.contains(&word) && (!own || matches!(word, "||" | "&&"));
    let words = arguments.iter().enumerate().skip(1).filter_map(|(at, word)| Some((at, word.as_str()?)));
    let (at, word) = words.into_iter().find(|(_, word)| is_operator(word))?;
    let message = format!("'{word}' is an argument of the program here: a list is run without a shell");
    Some(Lint::new(&[name, &at.to_string()], message, "for a shell, write the command as one text"))
}
