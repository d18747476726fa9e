//! Completions: a script for the shell, which asks this program for what a word may become.
//!
//! A script calls `STEAD_COMPLETE=SHELL stead -- WORD...`; the last word is the one to complete. Nothing is run for an answer
//! and nothing is written: a document that the words name is parsed, and that is all that is read of the machine.

use std::env;

use clap::{CommandFactory, ValueEnum};
use clap_complete::engine::complete;
use clap_complete::env::{Elvish, EnvCompleter, Powershell};
use stead_core::visible::is_obeyed;

use crate::args::Arguments;
use crate::args::candidates::{unquoted, words};
use crate::exit::Exit;
use crate::input;
use crate::request::Shell;
use crate::terminal::print_exactly;

/// Names the shell that asks.
const VARIABLE: &str = "STEAD_COMPLETE";

/// Prints the script for the program of that name: it is completed as it is called.
pub(crate) fn script(shell: Shell, program: &str) -> Exit {
    let of_clap = |shell: &dyn EnvCompleter| {
        let mut script = Vec::new();
        // Writing to memory does not fail.
        let _ = shell.write_registration(VARIABLE, program, program, program, &mut script);
        String::from_utf8_lossy(&script).into_owned()
    };
    print_exactly(&match shell {
        Shell::Elvish => of_clap(&Elvish),
        Shell::Powershell => of_clap(&Powershell),
        Shell::Nushell => include_str!("completion/nushell.nu").replace("NAME", program),
        Shell::Fish => include_str!("completion/fish.fish").replace("NAME", program),
        Shell::Zsh => include_str!("completion/zsh.zsh").replace("NAME", program),
        Shell::Bash => include_str!("completion/bash.sh").replace("NAME", program),
    });
    Exit::Success
}

/// Answers a script, if this is a call of one.
pub(crate) fn answer() -> Option<Exit> {
    let shell = Shell::from_str(&env::var(VARIABLE).ok()?, true).ok()?;
    let mut words = words()?;
    let current = words.last()?.to_string_lossy().into_owned();
    // The other shells remove quotes themselves, or do not complete within them.
    if matches!(shell, Shell::Bash | Shell::Fish | Shell::Nushell) {
        words = words.iter().map(|word| unquoted(&word.to_string_lossy()).into()).collect();
    }
    if words.len() > 2 && words[1] == "dsc" {
        words.remove(1);
    }
    let last = words.len() - 1;
    let found = complete(&mut Arguments::command(), words, last, Some(&input::current_folder()));
    for candidate in found.unwrap_or_default() {
        let value = candidate.get_value().to_string_lossy();
        // One would end a line, or change what the terminal shows.
        if !value.contains(is_obeyed) {
            let help = candidate.get_help().map(ToString::to_string).unwrap_or_default();
            let first = help.lines().next().unwrap_or_default().replace(is_obeyed, " ");
            print_exactly(&line(shell, &value, &first, &current));
        }
    }
    Some(Exit::Success)
}

fn line(shell: Shell, value: &str, help: &str, current: &str) -> String {
    match shell {
        // It inserts what it gets, behind the quote that the word begins with.
        Shell::Bash => match value.strip_prefix("~/").filter(|_| current.starts_with("~/")) {
            // In quotes it would be a name like any other.
            Some(below_home) => format!("~/{}\n", quoted(below_home, None)),
            None => format!("{}\n", quoted(value, current.chars().next())),
        },
        Shell::Elvish => format!("{value}\n"),
        _ => format!("{value}\t{help}\n"),
    }
}

/// A word that a shell reads as this text, without the quote that it may begin with.
fn quoted(text: &str, quote: Option<char>) -> String {
    let escaped = |is_plain: &dyn Fn(char) -> bool| {
        let letters = text.chars().flat_map(|letter| [(!is_plain(letter)).then_some('\\'), Some(letter)]);
        letters.flatten().collect()
    };
    match quote {
        Some('\'') => text.replace('\'', r"'\''"),
        Some('"') => escaped(&|letter| !r#""$`\"#.contains(letter)),
        _ => escaped(&|letter| letter.is_alphanumeric() || "/_-.,+=:@%".contains(letter)),
    }
}
