//! Text that is longer than the screen, a page at a time.

use std::env;
use std::ffi::OsString;
use std::io;
use std::path::Path;

use anstream::adapter::strip_str;
use stead_system::process::{Environment, Executable, become_reader};
use stead_system::terminal::{height, width};

/// Has the pager take the place of this process, with the text as its input. Returns where the text fits on the screen, where
/// there is no pager, and with the reason where there is one that is not run.
pub(super) fn show(text: &[u8]) -> Option<String> {
    if fits(&String::from_utf8_lossy(text)) {
        return None;
    }
    let words = words(|name| env::var(name).ok());
    let (name, arguments) = words.split_first()?;
    // A name is looked for on the path alone: others may write to the working directory.
    match Executable::find(name, Path::new("/dev/null"), &Environment::of_this_process(&[]))? {
        Err(refused) => Some(format!("the pager '{name}' {}", refused.reason())),
        Ok(pager) => {
            let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
            let error = become_reader(&pager, &arguments, &variables(|name| env::var_os(name).is_some()), text);
            Some(format!("the pager '{name}' cannot be started: {error}"))
        }
    }
}

fn fits(text: &str) -> bool {
    let Some((rows, columns)) = height(&io::stdout()).zip(width(&io::stdout())) else { return true };
    let taken = text.lines().map(|line| strip_str(line).to_string().chars().count().div_ceil(columns).max(1));
    // The prompt of the shell takes a row.
    taken.sum::<usize>() < rows
}

/// The pager and its arguments: no words for none. A shell has no part in it.
fn words(variable: impl Fn(&str) -> Option<String>) -> Vec<String> {
    if variable("TERM").is_none_or(|terminal| terminal == "dumb") {
        return Vec::new();
    }
    let stated = variable("STEAD_PAGER").or_else(|| variable("PAGER")).unwrap_or_else(|| "less".to_owned());
    let words: Vec<String> = stated.split_whitespace().map(str::to_owned).collect();
    // Who states `false` wants none either: it would show nothing.
    if words.first().is_some_and(|name| matches!(&**name, "cat" | "false")) { Vec::new() } else { words }
}

/// What the pager is given besides the environment of this process: `less` shows colours and leaves what was read on the screen.
/// For whoever is root by sudo it starts no shell and writes no file.
fn variables(is_set: impl Fn(&str) -> bool) -> Vec<(&'static str, &'static str)> {
    let less = (!is_set("LESS")).then_some(("LESS", "FRX"));
    let secure = is_set("SUDO_UID").then_some(("LESSSECURE", "1"));
    less.into_iter().chain(secure).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pager_is_the_one_that_is_stated() {
        for (stated, expected) in [
            (&[("TERM", "xterm")][..], &["less"][..]),
            (&[("TERM", "xterm"), ("PAGER", "more -s")], &["more", "-s"]),
            (&[("TERM", "xterm"), ("PAGER", "more"), ("STEAD_PAGER", "most")], &["most"]),
            (&[("TERM", "xterm"), ("PAGER", "more"), ("STEAD_PAGER", "")], &[]),
            (&[("TERM", "xterm"), ("PAGER", "cat")], &[]),
            (&[("TERM", "xterm"), ("PAGER", "false")], &[]),
            (&[("TERM", "dumb"), ("PAGER", "more")], &[]),
            (&[("PAGER", "more")], &[]),
        ] {
            let variable =
                |name: &str| stated.iter().find(|(each, _)| *each == name).map(|(_, value)| (*value).to_owned());
            assert_eq!(words(variable), expected, "{stated:?}");
        }
    }

    #[test]
    fn a_pager_of_sudo_starts_no_shell() {
        assert_eq!(variables(|_| false), [("LESS", "FRX")]);
        assert_eq!(variables(|name| name == "LESS"), []);
        assert_eq!(variables(|name| name == "SUDO_UID"), [("LESS", "FRX"), ("LESSSECURE", "1")]);
    }
}
