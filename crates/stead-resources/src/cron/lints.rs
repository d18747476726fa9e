//! Commands of jobs that end at a '%', which most likely was to be part of them.

use stead_core::value::{Object, Value};
use stead_host::provider::Lint;

use super::Properties;

/// Finds a command that cron cuts where its author did not mean it.
pub(super) fn lints(properties: &Object) -> Vec<Lint> {
    let command = properties.get(Properties::COMMAND).and_then(Value::as_str).unwrap_or_default();
    let cut = cuts(command).then(|| {
        let message = "cron ends the command at the first '%', and gives it the rest as standard input";
        Lint::new(&[Properties::COMMAND], message, "write '\\%' for a percent sign")
    });
    cut.into_iter().collect()
}

/// Returns whether a '%' without a backslash cuts a command where it is most likely a part of it: within quotes or parentheses, in a
/// word, or in front of one. Behind a whole command, as in `mail -s news kim%Dear Kim,%`, it begins its input.
fn cuts(command: &str) -> bool {
    let (mut quote, mut depth, mut escaped, mut before) = (None, 0_i32, false, ' ');
    let mut signs = command.chars().peekable();
    while let Some(each) = signs.next() {
        match each {
            '%' if !escaped => {
                let within = quote.is_some() || depth > 0;
                let in_word =
                    matches!(before, '+' | '=' | ':' | '-' | '_' | '.' | '/' | ',') || before.is_ascii_digit();
                let begins = before == ' ' && signs.peek().is_some_and(|next| *next != ' ');
                return within || in_word || begins;
            }
            _ if escaped => {}
            '"' | '\'' | '`' if quote.is_none() => quote = Some(each),
            _ if quote == Some(each) => quote = None,
            '(' if quote != Some('\'') => depth += 1,
            ')' if quote != Some('\'') => depth -= 1,
            _ => {}
        }
        escaped = each == '\\' && !escaped;
        before = each;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_input_is_not_taken_for_a_cut() {
        for command in [
            "tar czf /b/$(date +%F).tgz /srv",
            "date +%F",
            "echo \"100%\"",
            "printf '%s\\n' x",
            "curl -w %{http_code} http://localhost",
            "resize --to=50%",
            "log `date +%s`",
        ] {
            assert!(cuts(command), "{command}");
        }
        for command in ["mail -s news kim%Dear Kim,%%yours", "cat % text", "date +\\%F", "true", "echo \\%\\%"] {
            assert!(!cuts(command), "{command}");
        }
    }
}
