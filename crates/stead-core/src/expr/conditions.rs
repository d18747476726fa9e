//! Conditions in the way of other tools, as expressions.

use super::Expression;
use super::facts::fact_of_others;
use super::syntax::quoted;

/// The longest condition that is translated, in bytes.
const LONGEST: usize = 200;

/// Returns the expression that a condition of another tool is, if all of it is known.
///
/// # Examples
/// ```
/// use stead_core::expr::condition_of_others;
///
/// let debian = Some("[equals(facts('os.family'), 'Debian')]".to_owned());
/// assert_eq!(condition_of_others("ansible_os_family == 'Debian'"), debian);
/// assert_eq!(condition_of_others("equals(facts('os.family'), 'Debian')"), debian);
/// assert_eq!(condition_of_others("something == 'else'"), None);
/// ```
pub fn condition_of_others(text: &str) -> Option<String> {
    let inner = ["{{", "${{", "${"].iter().find_map(|open| text.trim().strip_prefix(open));
    let text = inner.map_or(text, |inner| inner.trim_end_matches('}')).trim();
    match text.to_lowercase().as_str() {
        "yes" | "on" | "true" => return Some("true".to_owned()),
        "no" | "off" | "false" => return Some("false".to_owned()),
        _ => {}
    }
    let expression = format!("[{}]", call(text).filter(|_| text.len() <= LONGEST)?);
    Expression::parse(&expression).is_ok().then_some(expression)
}

fn call(text: &str) -> Option<String> {
    let text = text.trim();
    if text.ends_with(')') && Expression::parse(&format!("[{text}]")).is_ok() {
        return Some(text.to_owned());
    }
    for (words, function) in [([" or ", " || "], "or"), ([" and ", " && "], "and")] {
        if let Some((one, other)) = words.iter().find_map(|word| text.split_once(word)) {
            return Some(format!("{function}({}, {})", call(one)?, call(other)?));
        }
    }
    if let Some(rest) = text.strip_prefix("not ").or_else(|| text.strip_prefix('!')) {
        return Some(format!("not({})", call(rest)?));
    }
    if let Some((one, other)) = text.split_once("!=") {
        return Some(format!("not(equals({}, {}))", operand(one)?, operand(other)?));
    }
    let (one, other) = text.split_once("==")?;
    Some(format!("equals({}, {})", operand(one)?, operand(other)?))
}

/// A value that is compared: a text, a number, or a fact.
fn operand(text: &str) -> Option<String> {
    let text = text.trim();
    let within = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    if let Some(inner) = within('\'').or_else(|| within('"')).filter(|inner| !inner.contains(['\'', '"'])) {
        return Some(quoted(inner));
    }
    if text.parse::<i64>().is_ok() || ["true", "false"].contains(&text) {
        return Some(text.to_owned());
    }
    if text.ends_with(')') && Expression::parse(&format!("[{text}]")).is_ok() {
        return Some(text.to_owned());
    }
    let name = text.replace("']['", ".").replace("['", ".").replace("']", "");
    let is_fact = ["ansible_", "facts.", "$facts.", "grains."].iter().any(|begin| name.starts_with(begin));
    let fact = fact_of_others(name.trim_start_matches('$')).filter(|_| is_fact)?;
    Some(format!("facts('{fact}')"))
}
