//! The book shows what the program prints, and every example in it is run: see [`reader`] for what a block may be.
//! `STEAD_BLESS=1` writes what is printed into the pages.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

mod ci;
mod codes;
mod picture;
mod reader;
#[path = "../support/terminal.rs"]
mod terminal;

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::sync::Mutex;

use reader::Reader;
use stead_testkit::repository;

/// The pages of the book that are not generated, and the page that leads to it.
fn pages() -> Vec<String> {
    let summary = fs::read_to_string(repository().join("docs/SUMMARY.md")).unwrap();
    let links = summary.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let written = links.filter(|link| !link.starts_with("reference/") && !link.starts_with("codes/"));
    let pages: Vec<String> = written.map(|link| format!("docs/{link}")).chain(["README.md".to_owned()]).collect();
    assert!(pages.len() > 20, "{pages:?}");
    pages
}

/// Each page by a reader of its own. What is wrong with the pages, and in how many nothing was shown.
fn read(pages: &[String]) -> Vec<String> {
    let (open, wrong) = (Mutex::new(pages.iter()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let page = open.lock().unwrap().next();
                    let Some(page) = page else { break };
                    wrong.lock().unwrap().extend(Reader::new().check(page));
                }
            });
        }
    });
    wrong.into_inner().unwrap()
}

#[test]
fn every_example_of_the_book_is_run_and_shows_what_is_printed() {
    let wrong = read(&pages());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_claim_about_security_names_its_test() {
    assert_eq!(stead_testkit::check_table("docs/security.md"), 32);
}

#[test]
fn every_promise_of_the_program_names_its_test() {
    assert_eq!(stead_testkit::check_table("docs/promises.md"), 19);
}

#[test]
fn every_kind_of_advisory_of_others_names_what_holds_it_off() {
    assert_eq!(stead_testkit::check_table("docs/security-advisories.md"), 35);
    let text = fs::read_to_string(repository().join("docs/security-advisories.md")).unwrap();
    let names: Vec<&str> = text
        .split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-')
        .filter(|word| word.starts_with("CVE-"))
        .collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "an advisory is named twice");
    assert!(text.contains(&format!(" {} by name.", names.len())), "there are {}", names.len());
}

#[test]
fn the_guides_from_other_programs_name_every_resource() {
    let names = stead_resources::builtins().iter().map(|each| each.manifest.type_name.to_string());
    let names: BTreeSet<String> = names.filter(|name| name.starts_with("Stead/")).collect();
    for guide in ["docs/from-puppet.md", "docs/from-ansible.md"] {
        let text = fs::read_to_string(repository().join(guide)).unwrap();
        let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && !"./".contains(letter));
        let types = words.map(|word| word.trim_matches('.')).filter(|word| word.starts_with("Stead/"));
        let found: BTreeSet<String> = types.map(str::to_owned).collect();
        assert_eq!(found, names, "{guide}");
    }
}

/// The examples of Puppet are made of these cases; a type says at each run that it is old once the schema is another.
#[test]
fn the_examples_of_puppet_have_the_schema_of_the_resource() {
    for case in ["file", "file-dsc"] {
        let text = fs::read_to_string(repository().join(format!("corpus/puppet/{case}.txt"))).unwrap();
        let resources = text.split("-- resources.json --\n").nth(1).unwrap().split("\n-- ").next().unwrap();
        let resources: serde_json::Value = serde_json::from_str(resources).unwrap();
        let is_file = |each: &&stead_resources::BuiltIn| each.manifest.type_name.to_string() == "Stead/File";
        let file = stead_resources::builtins().iter().find(is_file).unwrap();
        assert_eq!(resources[0]["schema"]["properties"], file.schema()["properties"], "{case}");
    }
}

#[test]
fn every_command_is_on_the_map() {
    let output = Command::new(env!("CARGO_BIN_EXE_stead")).arg("--help").output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // A description may have several lines.
    let names = commands.filter_map(|line| line.strip_prefix("  ")?.split(' ').next().filter(|name| !name.is_empty()));
    let names: Vec<&str> = names.filter(|name| *name != "help").collect();
    assert!(names.contains(&"plan"), "{help}");
    let map = fs::read_to_string(repository().join("ARCHITECTURE.md")).unwrap();
    let program = map.split("### crates/stead: ").nth(1).unwrap().split("\n### ").next().unwrap();
    for name in names {
        assert!(program.contains(&format!("`{name}`")), "{name} is not among the commands");
    }
}
