//! Hints for options and commands that are called otherwise here.

use std::ffi::OsString;

use clap::CommandFactory;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use stead_core::diag::nearest;

use super::elsewhere::{ALWAYS, COMMANDS, INNER, OPTIONS};
use super::{Arguments, documents};

/// Adds a hint to an error where an option is meant that the command has by another name, or another command has. What is only
/// somewhat similar is not suggested.
pub(crate) fn with_hint(mut error: clap::Error, words: &[OsString]) -> clap::Error {
    match error.kind() {
        ErrorKind::InvalidSubcommand => of_command(&mut error, words),
        ErrorKind::UnknownArgument => of_option(&mut error, words),
        ErrorKind::InvalidValue => of_value(&mut error, words),
        ErrorKind::MissingRequiredArgument => of_missing(&mut error, words),
        _ => {}
    }
    error
}

fn of_command(error: &mut clap::Error, words: &[OsString]) {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return };
    let parent = called(words, word);
    let inner = INNER.iter().find(|(of, written, _)| *of == parent.get_name() && written.contains(&&**word));
    if let Some((.., tip)) = inner {
        return suggest(error, ContextKind::SuggestedSubcommand, Some((*tip).to_owned()));
    }
    let known = COMMANDS.iter().find(|(written, _)| written.contains(&&**word)).map(|(_, tip)| (*tip).to_owned());
    let known = known.or_else(|| document_alone(word)).or_else(|| function_of_salt(word));
    let similar = match error.get(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::Strings(similar)) => similar.as_slice(),
        _ => &[],
    };
    let near = nearest(word, similar.iter().map(String::as_str)).map(str::to_owned);
    if let (None, Some(near)) = (&known, near) {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![near]));
        return;
    }
    let hint = match parent.get_name() {
        "help" => format!(
            "'stead explain {word}' explains resources, properties, keys and codes; 'stead help' lists the commands"
        ),
        "history" => "'stead history show RUN' shows a run, 'stead history' lists them".to_owned(),
        _ => known.unwrap_or_else(|| format!("'{} --help' lists the commands", command_line(&parent))),
    };
    suggest(error, ContextKind::SuggestedSubcommand, Some(hint));
}

/// The hint for a document without a command.
fn document_alone(word: &str) -> Option<String> {
    let is_document = [".yaml", ".yml", ".json"].iter().any(|ending| word.ends_with(ending));
    is_document
        .then(|| format!("'stead plan {word}' shows what a document would change, and 'stead apply {word}' changes it"))
}

/// The hint for a function of an execution module, such as `pkg.install`.
fn function_of_salt(word: &str) -> Option<String> {
    let is_name = |name: &str| !name.is_empty() && name.chars().all(|each| each.is_ascii_lowercase() || each == '_');
    let (module, function) = word.split_once('.')?;
    (is_name(module) && is_name(function))
        .then(|| "'stead set TYPE NAME=VALUE' sets one resource without a document".to_owned())
}

/// The hint for what a command requires.
fn of_missing(error: &mut clap::Error, words: &[OsString]) {
    let command = called(words, "\u{0}");
    let hint = match &*command_line(&command) {
        "stead history show" => "'stead history show last' shows the newest run, 'stead history' lists them",
        "stead show" => {
            "'stead plan FILE --out PLAN' saves a plan, 'stead show PLAN' shows it; 'stead history show last' shows a run"
        }
        "stead hosts" => "'stead hosts FILE' lists the machines of an inventory",
        _ if words.iter().any(|word| word.to_string_lossy().starts_with("--where")) => {
            "'--hosts FILE' names the inventory whose machines '--where' chooses"
        }
        line if takes_document(&command) => {
            let hint = documents::hint(&with_the_rest(line, error));
            return suggest(error, ContextKind::SuggestedArg, Some(hint));
        }
        _ => return,
    };
    suggest(error, ContextKind::SuggestedArg, Some(hint.to_owned()));
}

/// A command with the options that are missing besides its document.
fn with_the_rest(line: &str, error: &clap::Error) -> String {
    let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else { return line.to_owned() };
    let options = missing.iter().filter(|each| each.starts_with('-')).map(|option| format!(" {option}"));
    line.to_owned() + &options.collect::<String>()
}

/// Returns whether a command is about one document.
fn takes_document(command: &clap::Command) -> bool {
    let is_document = |each: &clap::Arg| {
        let names = each.get_value_names().unwrap_or_default();
        names.iter().any(|name| name == "DOCUMENT")
            || names.iter().any(|name| name == "FILE") && has_long(command, "set")
    };
    command.get_positionals().any(is_document)
}

/// Puts a hint in the place of what is similar; nothing is changed if there is none.
fn suggest(error: &mut clap::Error, similar: ContextKind, hint: Option<String>) {
    if let Some(hint) = hint {
        error.remove(similar);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(hint)]));
    }
}

fn of_option(error: &mut clap::Error, words: &[OsString]) {
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else { return };
    let command = called(words, option);
    let has = |option: &str| option == ALWAYS || has_long(&command, option);
    let is_test = has("filter") && has("width");
    let written = as_written(words, option);
    let number = number_behind_w(words).filter(|_| !is_test);
    let own = with_one_hyphen(words, &command).or_else(|| in_front(words, &command, option));
    let own = own.or_else(|| second_document(option, &command)).or_else(|| parameter(option, &command));
    let own = own.or_else(|| value_apart(words, option, &command)).or_else(|| limited(words, &written, &command));
    let own = own.or_else(|| values_in_file(words, &written, &command));
    let hint = number.map(|number| no_number(&number)).or(own).or_else(|| match written.as_str() {
        "-w" if is_test => Some("'--width' states how many tests run at once".to_owned()),
        "-w" if has("width") => {
            Some("'--width' states how many instances run at once; 'stead apply -w' is 'stead plan'".to_owned())
        }
        written => {
            let mut meant = OPTIONS.iter().filter(|each| each.written.contains(&written));
            meant.find(|each| each.with.split(' ').all(has)).map(|each| each.tip.to_owned())
        }
    });
    let similar = match error.get(ContextKind::SuggestedArg) {
        Some(ContextValue::String(similar)) => {
            let name = option.trim_start_matches('-');
            name.len() > 2 && similar.ends_with(name) || nearest(option, [similar.as_str()]).is_some()
        }
        _ => false,
    };
    let hint = hint.or_else(|| (!similar).then(|| format!("'{} --help' lists the options", command_line(&command))));
    if hint.is_some() {
        // Else it would show the option that is only similar.
        error.insert(ContextKind::Usage, ContextValue::StyledStr(command.clone().render_usage()));
    }
    suggest(error, ContextKind::SuggestedArg, hint);
}

/// A word such as `-out=p`, which is read as `-o` with the value `ut=p`.
fn of_value(error: &mut clap::Error, words: &[OsString]) {
    let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidValue) else { return };
    let is_read_so = |word: &&OsString| word.to_str().is_some_and(|word| is_long(word) && word.get(2..) == Some(value));
    let Some(word) = words.iter().find(is_read_so) else { return };
    let command = called(words, &word.to_string_lossy());
    let hint = with_one_hyphen(std::slice::from_ref(word), &command);
    suggest(error, ContextKind::SuggestedValue, hint);
}

/// Returns whether a word is an option of several letters behind one hyphen.
fn is_long(word: &str) -> bool {
    let name = word.strip_prefix('-').unwrap_or_default().split('=').next().unwrap_or_default();
    name.len() > 2 && name.starts_with(|c: char| c.is_ascii_alphabetic()) && !name.contains(char::is_whitespace)
}

fn has_long(command: &clap::Command, option: &str) -> bool {
    command.get_arguments().any(|each| {
        each.get_long() == Some(option) || each.get_all_aliases().is_some_and(|aliases| aliases.contains(&option))
    })
}

/// The hint for an option of the command that is written with one hyphen.
fn with_one_hyphen(words: &[OsString], command: &clap::Command) -> Option<String> {
    let words =
        words.iter().filter_map(|word| word.to_str()).take_while(|word| *word != "--").filter(|word| is_long(word));
    let names = words.map(|word| word.trim_start_matches('-').split('=').next().unwrap_or_default());
    names.filter(|name| has_long(command, name)).map(|name| format!("'--{name}' is written with two hyphens")).next()
}

/// The hint for an option that stands in front of the command that has it.
fn in_front(words: &[OsString], command: &clap::Command, option: &str) -> Option<String> {
    let is_root = command.get_name() == Arguments::command().get_name();
    let mut behind = words.iter().skip_while(|word| !word.to_string_lossy().starts_with(option)).skip(1);
    let inner = behind.find_map(|word| command.find_subcommand(word)).filter(|_| is_root)?;
    let long = option.strip_prefix("--").is_some_and(|name| has_long(inner, name));
    let mut letters = option.strip_prefix('-').unwrap_or_default().chars();
    let letter = letters.next().filter(|_| letters.next().is_none());
    let short = letter.is_some() && inner.get_arguments().any(|each| each.get_short() == letter);
    let meant = OPTIONS.iter().find(|each| {
        each.written.contains(&option) && each.with.split(' ').all(|with| with == ALWAYS || has_long(inner, with))
    });
    match meant {
        _ if long || short => {
            Some(format!("options stand behind their command: 'stead {} {option}'", inner.get_name()))
        }
        Some(meant) => Some(format!("{}; options stand behind their command", meant.tip)),
        None => None,
    }
}

/// The hint for a parameter that is not behind '--set', or not in one word with its value. The value may be a secret.
fn parameter(word: &str, command: &clap::Command) -> Option<String> {
    let takes_one = has_long(command, "set") && has_long(command, "parameters-file");
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|each| each.is_ascii_alphanumeric() || matches!(each, '_' | '-' | '.'))
    };
    let stated = word.split_once('=').map(|(name, _)| name).filter(|name| is_name(name) && !name.starts_with('-'));
    stated.filter(|_| takes_one).map(|name| format!("'--set {name}=VALUE' supplies a parameter"))
}

/// The hint for the value of a parameter behind its name: `--set port 8080`.
fn value_apart(words: &[OsString], value: &str, command: &clap::Command) -> Option<String> {
    let is_apart = |three: &[OsString]| match three {
        [option, name, word] => option == "--set" && word == value && !name.as_encoded_bytes().contains(&b'='),
        _ => false,
    };
    let [_, name, _] = words.windows(3).find(|three| is_apart(three))? else { return None };
    let name = name.to_str().filter(|_| has_long(command, "set"))?;
    Some(format!("'--set {name}=VALUE' supplies a parameter, as one word"))
}

/// The word behind an option, or behind '=' in one word with it.
fn value_of<'w>(words: &'w [OsString], option: &str) -> Option<&'w str> {
    let mut behind = words.iter().filter_map(|word| word.to_str()).skip_while(|word| !word.starts_with(option));
    match behind.next()?.strip_prefix(option)?.strip_prefix('=') {
        Some(value) => Some(value),
        None => behind.next(),
    }
}

/// The hint for machines that are chosen by name from an inventory.
fn limited(words: &[OsString], option: &str, command: &clap::Command) -> Option<String> {
    let is_limit = matches!(option, "--limit" | "-l") && has_long(command, "where");
    let is_inventory = words.iter().any(|word| matches!(word.to_str(), Some("--hosts" | "-i" | "--inventory")));
    let name = value_of(words, option).filter(|_| is_limit && is_inventory)?;
    let is_name =
        |name: &str| !name.is_empty() && name.chars().all(|each| each.is_ascii_alphanumeric() || "-_.*".contains(each));
    is_name(name)
        .then(|| format!("'--where name={name}' limits a run to a machine, '--where role=web' to those with a label"))
}

/// The hint for `-e @FILE`.
fn values_in_file(words: &[OsString], option: &str, command: &clap::Command) -> Option<String> {
    let is_set = matches!(option, "-e" | "--extra-vars" | "--var") && has_long(command, "parameters-file");
    let file = value_of(words, option)?.strip_prefix('@').filter(|_| is_set)?;
    Some(format!("'--parameters-file {}' names a file with parameters", file.escape_debug()))
}

/// The hint for a second document.
fn second_document(word: &str, command: &clap::Command) -> Option<String> {
    let is_document = [".yaml", ".yml", ".json"].iter().any(|ending| word.ends_with(ending)) && !word.starts_with('-');
    let is_file =
        |each: &clap::Arg| each.get_value_names().is_some_and(|names| names.iter().any(|name| name == "FILE"));
    let takes_one = command.get_positionals().any(is_file);
    let hint = "takes one document, which can include others: Microsoft.DSC/Include";
    (is_document && takes_one).then(|| format!("'{}' {hint}", command_line(command)))
}

/// A command as it is typed.
fn command_line(command: &clap::Command) -> String {
    command.get_bin_name().unwrap_or("stead").to_owned()
}

/// The option that was written: where letters are taken one by one, as of `-target`, the word with two hyphens.
fn as_written(words: &[OsString], option: &str) -> String {
    let letter = option.strip_prefix('-').filter(|letter| !letter.starts_with('-'));
    let mut words = words.iter().filter_map(|word| word.to_str()?.strip_prefix('-'));
    let is_it = |word: &&str| {
        let name = word.split('=').next().unwrap_or_default();
        name.len() > 2 && !name.starts_with('-') && letter.is_some_and(|letter| name.contains(letter))
    };
    let word = words.find(is_it).map(|word| format!("-{}", word.split('=').next().unwrap_or_default()));
    let word =
        word.map(|word| format!("-{word}")).filter(|word| OPTIONS.iter().any(|each| each.written.contains(&&**word)));
    word.unwrap_or_else(|| option.to_owned())
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
