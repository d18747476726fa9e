//! Manual pages: there is one for each command, it states what `--help` does, and `man` has nothing to complain about.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};

use stead_testkit::{repository, skip};

use super::{Answer, answer};

fn stead(words: &[&str]) -> Answer {
    answer(Command::new(env!("CARGO_BIN_EXE_stead")).args(words).stdin(Stdio::null()).env("HOME", "/nonexistent"))
}

/// Every command that help lists, by its words, and its page.
fn pages() -> Vec<(Vec<String>, String)> {
    let (mut pages, mut open) = (Vec::new(), vec![Vec::new()]);
    while let Some(words) = open.pop() {
        let called: Vec<&str> = words.iter().map(String::as_str).collect();
        let page = stead(&[&["manual"][..], &called].concat());
        assert_eq!(page.exit, 0, "{words:?}: {}", page.stderr);
        let help = stead(&[&called[..], &["--help"]].concat()).stdout;
        for name in commands_in(&help) {
            let reference = [&["stead"][..], &called, &[name]].concat().join("\\-");
            assert!(page.stdout.contains(&format!("\n{reference}(1)\n")), "{words:?} does not name {name}");
            open.push([words.as_slice(), &[name.to_owned()]].concat());
        }
        assert_eq!(options_of_page(&page.stdout), options_of_help(&help), "{words:?}");
        pages.push((words, page.stdout));
    }
    pages
}

/// The names of the commands that a help lists.
fn commands_in(help: &str) -> Vec<&str> {
    let commands = help.split("\nCommands:\n").nth(1).unwrap_or_default().split("\n\n").next().unwrap();
    let names = commands.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    names.filter(|name| !name.is_empty() && *name != "help").collect()
}

/// Every command that does something by itself, by its words: those of which help lists no other, and `more`.
pub(super) fn every_command(more: &[&str]) -> BTreeSet<String> {
    let (mut found, mut open) = (BTreeSet::new(), vec![Vec::new()]);
    while let Some(words) = open.pop() {
        let called: Vec<&str> = words.iter().map(String::as_str).collect();
        let help = stead(&[&called[..], &["--help"]].concat()).stdout;
        let names = commands_in(&help);
        if names.is_empty() || more.contains(&&*called.join(" ")) {
            found.insert(called.join(" "));
        }
        open.extend(names.iter().map(|name| [words.as_slice(), &[(*name).to_owned()]].concat()));
    }
    found
}

fn options_of_help(help: &str) -> BTreeSet<String> {
    let options = help.lines().filter(|line| line.trim_start().starts_with('-') && line.find('-') < Some(8));
    options.filter_map(|line| Some(line.split("--").nth(1)?.split([' ', '.']).next()?.to_owned())).collect()
}

fn options_of_page(page: &str) -> BTreeSet<String> {
    let headers = page.split("\n.TP\n").skip(1).filter_map(|item| item.lines().next());
    let long = |line: &str| Some(line.split(r"\fB\-\-").nth(1)?.split(r"\fR").next()?.replace('\\', ""));
    headers.filter_map(long).collect()
}

#[test]
fn every_command_has_a_page_with_its_options() {
    let pages = pages();
    let apply = &pages.iter().find(|(words, _)| *words == ["apply"]).unwrap().1;
    assert!(pages.len() > 50 && options_of_page(apply).contains("system-root"), "{} pages", pages.len());
    assert_eq!(stead(&["manual", "applx"]).exit, 3);
    let Ok(lexgrog) = Command::new("lexgrog").arg("--version").output() else {
        return skip("every_command_has_a_page_with_its_options", "there is no lexgrog");
    };
    assert!(lexgrog.status.success());
    let folder = tempfile::tempdir().unwrap();
    let files = pages.iter().map(|(words, page)| {
        let name = [&["stead".to_owned()][..], words].concat().join("-");
        let path = folder.path().join(format!("{name}.1"));
        fs::write(&path, page).unwrap();
        path
    });
    let files: Vec<_> = files.collect();
    let parsed = answer(Command::new("lexgrog").args(&files));
    assert_eq!(parsed.exit, 0, "{}{}", parsed.stdout, parsed.stderr);
    let formatted = answer(Command::new("groff").args(["-man", "-ww", "-z", "-Tutf8"]).args(&files));
    assert_eq!((formatted.exit, formatted.stderr.as_str()), (0, ""));
}

/// A variable that the program reads is in the manual.
#[test]
fn the_manual_names_the_environment() {
    /// Between processes of the program, or for its tests.
    const INTERNAL: &[&str] = &[
        "STEAD_CALL",
        "STEAD_POWERSHELL_CONFIGURATION",
        "STEAD_POWERSHELL_ENDPOINT",
        "STEAD_POWERSHELL_MODULES",
        "STEAD_POWERSHELL_WORKER",
    ];
    /// Fields of the journal of systemd.
    const FIELDS: &[&str] = &["STEAD_EVENT", "STEAD_INSTANCE", "STEAD_JOB", "STEAD_JSON"];
    let page = stead(&["manual"]).stdout;
    let mut folders: Vec<_> =
        ["stead", "stead-agent", "stead-engine", "stead-host", "stead-powershell", "stead-resources"]
            .map(|name| repository().join("crates").join(name).join("src"))
            .into();
    let mut found = 0;
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
            for word in code.split('"').filter(|word| word.starts_with("STEAD_") || word.starts_with("DSC_")) {
                let is_name = word.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_');
                let is_known =
                    INTERNAL.contains(&word) || FIELDS.contains(&word) || page.contains(&format!(r"\fB{word}"));
                assert!(!is_name || is_known, "{word} in {} is not in the manual", path.display());
                found += usize::from(is_name);
            }
        }
    }
    assert!(found > 20, "{found}");
}
