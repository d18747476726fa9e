//! What the documents show is what the program prints: their `console` blocks are run, one after the other, in one folder
//! in which the `yaml` blocks that begin with `# NAME.yaml` are files, and `sh` blocks whose second line begins with `# NAME:`
//! are programs. `STEAD_BLESS=1` writes what is printed into them.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use stead_testkit::repository;
use tempfile::TempDir;

/// Commands that build, test or install are left to the reader.
const NOT_RUN: [&str; 4] = ["cargo test", "cargo install", "git ", "stead completer"];

#[test]
fn the_readme_shows_what_is_printed() {
    let reader = Reader::new();
    reader.check("README.md", &repository());
}

#[test]
fn every_step_of_the_guide_works() {
    let reader = Reader::new();
    reader.check("docs/first-document.md", &reader.home());
}

#[test]
fn every_step_of_the_guide_to_the_agent_works() {
    let reader = Reader::new();
    reader.check("docs/agent.md", &reader.home());
}

#[test]
fn every_step_of_the_guide_from_idem_works() {
    let reader = Reader::new();
    reader.check("docs/from-idem.md", &reader.home());
}

#[test]
fn every_step_of_the_guide_from_puppet_works() {
    let reader = Reader::new();
    reader.check("docs/from-puppet.md", &reader.home());
}

#[test]
fn every_step_of_the_guide_from_ansible_works() {
    let reader = Reader::new();
    reader.check("docs/from-ansible.md", &reader.home());
}

#[test]
fn every_step_about_reconciliation_works() {
    let reader = Reader::new();
    reader.check("docs/reconciliation.md", &reader.home());
    // The program that it shows is the one that lies among the examples.
    let shown = fs::read_to_string(reader.home().join("stead-pending-patient")).unwrap();
    let example = repository().join("examples/reconcile/stead-pending-patient");
    assert_eq!(shown, fs::read_to_string(example).unwrap());
}

#[test]
fn the_guides_from_other_programs_name_every_resource() {
    let names = stead_resources::builtins().into_iter().map(|each| each.manifest.type_name.to_string());
    let names: BTreeSet<String> = names.filter(|name| name.starts_with("Stead/")).collect();
    for guide in ["docs/from-puppet.md", "docs/from-ansible.md"] {
        let text = fs::read_to_string(repository().join(guide)).unwrap();
        let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && !"./".contains(letter));
        let types = words.map(|word| word.trim_matches('.')).filter(|word| word.starts_with("Stead/"));
        let found: BTreeSet<String> = types.map(str::to_owned).collect();
        assert_eq!(found, names, "{guide}");
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

/// Somebody who follows a document, in a home of their own.
struct Reader {
    folder: TempDir,
}

impl Reader {
    fn new() -> Self {
        let reader = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(reader.home()).unwrap();
        reader
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("you")
    }

    fn check(&self, document: &str, here: &Path) {
        let path = repository().join(document);
        let text = fs::read_to_string(&path).unwrap();
        let followed = self.follow(&text, here);
        if std::env::var_os("STEAD_BLESS").is_some() {
            fs::write(&path, followed).unwrap();
        } else {
            // What runs at once ends in any order.
            assert_eq!(sorted(&text), sorted(&followed), "{document}; this is printed:\n{followed}");
        }
    }

    /// The document with what its commands print now.
    fn follow(&self, text: &str, here: &Path) -> String {
        let mut followed = String::new();
        let mut rest = text;
        while let Some((before, block)) = rest.split_once("\n```") {
            let (block, after) = block.split_once("\n```").unwrap();
            let (language, body) = block.split_once('\n').unwrap();
            let body = match language {
                "yaml" => self.write(body, here),
                "sh" => self.write_program(body, here),
                "console" => self.run_all(body, here),
                _ => body.to_owned(),
            };
            followed.extend([before, "\n```", language, "\n", body.trim_end(), "\n```"]);
            rest = after;
        }
        followed + rest
    }

    fn write(&self, body: &str, here: &Path) -> String {
        let first = body.lines().next().unwrap_or_default();
        if let Some(name) = first.strip_prefix("# ").filter(|name| Path::new(name).extension().is_some()) {
            assert!(here.starts_with(self.folder.path()), "{name} would be written to {}", here.display());
            fs::write(here.join(name), format!("{body}\n")).unwrap();
        }
        body.to_owned()
    }

    fn write_program(&self, body: &str, here: &Path) -> String {
        let second = body.lines().nth(1).and_then(|line| line.strip_prefix("# ")?.split_once(':'));
        if let Some((name, _)) = second {
            assert!(here.starts_with(self.folder.path()), "{name} would be written to {}", here.display());
            fs::write(here.join(name), format!("{body}\n")).unwrap();
            fs::set_permissions(here.join(name), Permissions::from_mode(0o755)).unwrap();
        }
        body.to_owned()
    }

    fn run_all(&self, body: &str, here: &Path) -> String {
        let mut shown = String::new();
        let mut keeps = false;
        for line in body.lines() {
            if let Some(command) = line.strip_prefix("$ ") {
                keeps = NOT_RUN.iter().any(|each| command.starts_with(each));
                shown.extend([line, "\n"]);
                if !keeps {
                    shown += &self.run(command, here);
                }
            } else if keeps {
                shown.extend([line, "\n"]);
            }
        }
        shown
    }

    fn run(&self, command: &str, here: &Path) -> String {
        let command = command.replace("cargo run --release -- ", "stead ");
        let output = self.shell(&command, here).output().unwrap();
        if command.contains("stead agent run") {
            // A reader takes longer to type the next command than the agent to start.
            while !self.shell("stead agent status", here).output().unwrap().status.success() {}
        }
        let text = String::from_utf8_lossy(&output.stdout).replace(&*self.home().to_string_lossy(), "/home/you");
        text.lines().map(|line| without_time(line) + "\n").collect()
    }

    fn shell(&self, command: &str, here: &Path) -> Command {
        let program = Path::new(env!("CARGO_BIN_EXE_stead"));
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", &format!("{{ {command} ; }} 2>&1")])
            .current_dir(here)
            .env_clear()
            .env("PATH", format!("{}:/usr/bin:/bin", program.parent().unwrap().display()))
            .envs([("NO_COLOR", "1"), ("LANG", "C.UTF-8")])
            .env("HOME", self.home())
            // Where root keeps it is not for tests.
            .env("STEAD_STATE", self.home().join(".local/state/stead"))
            .env("STEAD_LOCKS", self.folder.path());
        shell
    }
}

/// How long it takes, and when it is done, differs from run to run.
fn without_time(line: &str) -> String {
    let line = &without_date(line);
    match line.rsplit_once(" in ") {
        Some((head, tail)) if tail.ends_with(" ms") || tail.ends_with(" s") => format!("{head} in 2 ms"),
        _ => line.to_owned(),
    }
}

fn without_date(line: &str) -> String {
    const FORM: &str = "2026-01-01T00:00:00";
    let is_date = |text: &str| {
        let same = |(found, form): (char, char)| found == form || found.is_ascii_digit() && form.is_ascii_digit();
        text.chars().zip(FORM.chars()).all(same)
    };
    let ends = line.char_indices().filter_map(|(at, _)| Some((at, at + line.get(at..)?.get(..FORM.len())?.len())));
    let dates: Vec<_> = ends.filter(|(from, to)| is_date(&line[*from..*to])).collect();
    let mut masked = line.to_owned();
    for (from, to) in dates {
        masked.replace_range(from..to, FORM);
    }
    masked
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}
