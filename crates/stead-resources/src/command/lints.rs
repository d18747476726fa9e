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
    let lists = commands.filter_map(|name| Some((name, properties.get(name)?.as_array()?)));
    lists.filter_map(|(name, list)| operator(name, list).or_else(|| line(name, list))).collect()
}

/// A whole command line as the only item, which is the name of a program then.
fn line(name: &str, arguments: &[Value]) -> Option<Lint> {
    let [only] = arguments else { return None };
    let text = only.as_str().filter(|text| text.trim().contains(' ') && !text.starts_with('/'))?;
    let program =
        text.split(' ').next().filter(|word| word.chars().all(|each| each.is_ascii_alphanumeric() || each == '-'))?;
    let message = format!("the first item is the program, whose name is taken with all that is behind '{program}'");
    Some(Lint::new(&[name, "0"], message, "write the command as one text, or each argument as an item of its own"))
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
