//! Hints for options and commands that are called otherwise here.

use std::ffi::OsString;

use clap::CommandFactory;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::Arguments;

/// Adds a hint to an error where an option is meant that the command has by another name, or another command has.
pub(crate) fn with_hint(mut error: clap::Error, words: &[OsString]) -> clap::Error {
    if let Some(hint) = error.get(ContextKind::InvalidSubcommand).and_then(known_elsewhere) {
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(hint)]));
        return error;
    }
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else { return error };
    let command = called(words, option);
    let has = |option: &str| command.get_arguments().any(|each| each.get_long() == Some(option));
    let is_test = has("filter") && has("width");
    if let Some(number) = number_behind_w(words).filter(|_| !is_test) {
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(no_number(&number))]));
        return error;
    }
    let hint = match option.as_str() {
        "-w" if is_test => "'--width' states how many tests run at once",
        "-w" if has("width") => "'--width' states how many instances run at once; 'stead apply -w' is 'stead plan'",
        "--check" if has("what-if") => "'--what-if' shows what would change",
        "--dry-run" | "--what-if" | "--noop" | "--check" | "--test" => "'stead plan' shows what apply would do",
        "--detailed-exitcode" => "without it, 'stead plan' ends with 2 where apply would change something",
        "--diff" | "-D" => "plans and results show each difference without it",
        "--tags" | "--limit" | "--target" | "-l" | "-t" if has("only") => {
            "'--only' limits a run to names, types and tags"
        }
        "--skip-tags" if has("skip") => "'--skip' leaves out names, types and tags",
        "--var" | "--extra-vars" | "-e" if has("set") => "'--set NAME=VALUE' supplies a parameter",
        "--var-file" | "--vars-file" | "--values" if has("parameters-file") => {
            "'--parameters-file' names a file with parameters"
        }
        "--auto-approve" | "--assume-yes" if has("yes") => "'--yes' asks nothing",
        "--json" if has("output") => "'-o json' prints JSON",
        "--inventory" | "-i" if has("hosts") => "'--hosts FILE' names an inventory of machines",
        "--inventory" | "-i" | "--hosts" | "--host" => {
            "this command is about this machine; plan, apply and check take '--hosts INVENTORY'"
        }
        "--root" if has("system-root") && has("relative-to") => {
            "'--system-root' names another operating system, '--relative-to' where relative paths start"
        }
        "--root" if has("system-root") => "'--system-root' names another operating system",
        "--root" if has("relative-to") => "'--relative-to' names where relative paths start",
        _ => return error,
    };
    if error.kind() == ErrorKind::UnknownArgument {
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(hint)]));
    }
    error
}

/// The command that does here what one of other programs does.
fn known_elsewhere(word: &ContextValue) -> Option<&'static str> {
    let ContextValue::String(word) = word else { return None };
    match word.as_str() {
        "init" | "create" => Some("'stead new document' writes a document to start from"),
        "validate" => Some("'stead lint' checks a document"),
        "format" => Some("'stead fmt' formats documents"),
        _ => None,
    }
}

/// The hint for `-w` with a number.
pub(super) fn no_number(number: &str) -> String {
    format!(
        "'-w' shows what would change and takes no number; '--width {number}' states how many instances run at once"
    )
}

/// The number that stands behind `-w`, or in one word with it.
fn number_behind_w(words: &[OsString]) -> Option<String> {
    let is_number = |word: &&str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let words: Vec<&str> = words.iter().map_while(|word| word.to_str()).take_while(|word| *word != "--").collect();
    let joined = words.iter().find_map(|word| word.strip_prefix("-w")).map(|rest| rest.trim_start_matches('='));
    let next = words.windows(2).find(|pair| pair.first() == Some(&"-w")).and_then(|pair| pair.get(1).copied());
    joined.filter(is_number).or(next.filter(is_number)).map(str::to_owned)
}

/// The command that an option stands behind, with its options.
fn called(words: &[OsString], option: &str) -> clap::Command {
    let mut all = Arguments::command();
    all.build();
    let deeper = |command: clap::Command, word: &OsString| command.find_subcommand(word).cloned().unwrap_or(command);
    let is_option = |word: &&OsString| word.to_str().is_some_and(|word| word.starts_with(option));
    words.iter().skip(1).take_while(|word| !is_option(word)).fold(all, deeper)
}
