//! Somebody who follows a page, in a home of their own. A block of a page is
//!
//! - `console`: commands behind `$ `, which are run one after the other, and what they print; with another word, as in
//!   `console puppet`, only where there is that program, installed or of this repository, or with `root`, only for root. Where a question with an answer is
//!   shown, somebody sits at a terminal and types it. With `machines` every machine is reached over SSH. With `pwsh` they are commands of PowerShell behind `PS> `, in one session
//!   that ends with the first that fails;
//! - a file, if its first line is a comment with a name (`# first.yaml`) or its second one of a program (`# NAME: ..`):
//!   it is written, and a command of the page must use it;
//! - a part of a file of the repository, as it stands there, where other tests use it;
//! - in a language of another program: those are named in [`OTHERS`]; `sh` is for commands of others.
//!
//! Any other block is an example that no test runs.

use std::cell::RefCell;
use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use stead_testkit::repository;
use tempfile::TempDir;

use crate::terminal::AtTerminal;

const TEST: &str = "a block of a page";

/// Commands that build, test or install are left to the reader.
const NOT_RUN: [&str; 5] = ["cargo build", "cargo test", "cargo install", "git ", "stead completer"];

/// The languages that other programs read. One of the words behind the fence is enough, as in `yaml ansible`.
const OTHERS: [&str; 5] = ["ansible", "hcl", "lua", "powershell", "puppet"];

/// What `ssh` is to commands that reach machines: each of those is a folder beside the home of the reader.
const SSH: &str = r#"#!/bin/sh
while [ "$1" != -- ]; do shift; done
home=${0%/bin/ssh}/$2
mkdir -p "$home" && cd "$home" && exec env -i HOME="$home" STEAD_STATE="$home/state" PATH="$PATH" sh -c "$3"
"#;

/// Where controllers listen.
const PORT: &str = ":7443";

/// The end of every question of `apply` on a terminal.
const QUESTION: &str = "[y/N] ";

/// Where files are that blocks may be parts of.
const SHOWN: [&str; 4] = ["examples", "crates", "corpus", "schemas"];

pub(crate) struct Reader {
    folder: TempDir,
    /// A port that nobody else has, in place of [`PORT`].
    port: String,
    /// `export` and `cd`, which hold for what follows.
    kept: RefCell<String>,
}

/// The kind of a block.
enum Block<'t> {
    Console,
    File(&'t str),
    Program(&'t str),
    Other,
    /// Nothing that a test runs.
    Unknown,
}

impl Reader {
    /// Some folders of the repository lie in the home.
    pub(crate) fn new() -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let reader = Self { folder: tempfile::tempdir().unwrap(), port: format!(":{free}"), kept: RefCell::default() };
        fs::create_dir(reader.home()).unwrap();
        fs::create_dir(reader.home().join("powershell")).unwrap();
        fs::create_dir_all(reader.machines()).unwrap();
        fs::write(reader.machines().join("ssh"), SSH).unwrap();
        fs::set_permissions(reader.machines().join("ssh"), Permissions::from_mode(0o755)).unwrap();
        for folder in ["examples", "powershell/Stead", "puppet"] {
            std::os::unix::fs::symlink(repository().join(folder), reader.home().join(folder)).unwrap();
        }
        reader
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("you")
    }

    /// The folder of the program that reaches machines.
    fn machines(&self) -> PathBuf {
        self.folder.path().join("machines/bin")
    }

    /// Follows a page, and says what is wrong with it.
    pub(crate) fn check(&self, page: &str) -> Vec<String> {
        let path = repository().join(page);
        let text = fs::read_to_string(&path).unwrap();
        let mut wrong: Vec<String> = not_run(&text).into_iter().map(|reason| format!("{page}: {reason}")).collect();
        let followed = self.follow(&text);
        if std::env::var_os("STEAD_BLESS").is_some() {
            fs::write(&path, followed).unwrap();
        } else if sorted(&text) != sorted(&followed) {
            // What runs at once ends in any order.
            let (shown, printed) = (sorted(&text), sorted(&followed));
            let absent = |lines: &[&str], others: &[&str], mark: &str| {
                let lines = lines.iter().filter(|line| !others.contains(line));
                lines.flat_map(|line| ["\n", mark, line]).collect::<String>()
            };
            let differing = absent(&shown, &printed, "shown:   ") + &absent(&printed, &shown, "printed: ");
            wrong.push(format!("{page}: STEAD_BLESS=1 writes what is printed:{differing}"));
        }
        wrong
    }

    /// The page with what its commands print now.
    fn follow(&self, text: &str) -> String {
        let mut followed = String::new();
        let mut rest = text;
        while let Some((before, language, body, after)) = next_block(rest) {
            let block = match block(language, body) {
                Block::Console if lacks(language) => body.to_owned(),
                Block::Console if is_powershell(language) => self.run_in_powershell(body),
                Block::Console if language.ends_with(" machines") => {
                    *self.kept.borrow_mut() = format!("PATH={}:$PATH; ", self.machines().display());
                    let run = self.run_all(body);
                    self.kept.borrow_mut().clear();
                    run
                }
                Block::Console => self.run_all(body),
                Block::File(name) => self.write(name, body, 0o644),
                Block::Program(name) => self.write(name, body, 0o755),
                Block::Other | Block::Unknown => body.to_owned(),
            };
            followed.extend([before, "\n```", language, "\n", block.trim_end(), "\n```"]);
            rest = after;
        }
        followed + rest
    }

    fn write(&self, name: &str, body: &str, mode: u32) -> String {
        assert!(is_within(name), "the file '{name}' of an example is outside of the reader's folder");
        let path = self.home().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("{body}\n")).unwrap();
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        body.to_owned()
    }

    fn run_all(&self, body: &str) -> String {
        let mut shown = String::new();
        let commands = format!("\n{body}");
        for lines in commands.split("\n$ ").skip(1) {
            let (command, printed) = lines.split_once('\n').unwrap_or((lines, ""));
            shown.extend(["$ ", command, "\n"]);
            shown += &match printed.split_once(QUESTION) {
                _ if NOT_RUN.iter().any(|each| command.starts_with(each)) => {
                    printed.lines().flat_map(|line| [line, "\n"]).collect()
                }
                Some((_, answer)) => self.answer(command, answer.lines().next().unwrap_or_default()),
                None => self.run(command),
            };
        }
        shown
    }

    fn run(&self, command: &str) -> String {
        let command = command.replace("cargo run -- ", "stead ").replace(PORT, &self.port);
        let output = self.shell(&command).output().unwrap();
        if ["export ", "cd "].iter().any(|keeps| command.starts_with(keeps)) {
            self.kept.borrow_mut().extend([&command, "; "]);
        }
        if command.contains("stead agent run") && !command.contains("--state") {
            // A reader takes longer to type the next command than the agent to start. One with a state of its own the page waits for.
            while !self.shell("stead agent history").output().unwrap().status.success() {}
        }
        self.shown(&String::from_utf8_lossy(&output.stdout))
    }

    /// Runs commands of PowerShell one after the other, in one session.
    fn run_in_powershell(&self, body: &str) -> String {
        let commands: Vec<String> = commands_of_powershell(body).map(|each| each.replace('\'', "''")).collect();
        let script = format!(
            "$ErrorActionPreference = 'Stop'; $PSStyle.OutputRendering = 'PlainText'\nforeach ($each in '{}') {{\n\
             \"PS> $each\"; $printed = (Invoke-Expression $each | Out-String -Width 120).Trim(); if ($printed) {{ $printed }} }}\n",
            commands.join("', '")
        );
        fs::write(self.home().join("session.ps1"), script).unwrap();
        let pwsh = stead_testkit::powershell(TEST).unwrap();
        let folder = pwsh.parent().unwrap().display();
        let session =
            format!("PATH=$PATH:{folder} POWERSHELL_TELEMETRY_OPTOUT=1 pwsh -NoProfile -NonInteractive session.ps1");
        let output = self.shell(&session).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        let printed = if output.status.success() { printed } else { format!("{printed}(it failed)\n").into() };
        self.shown(&printed)
    }

    /// What a command prints in colours.
    pub(crate) fn in_colours(&self, command: &str) -> String {
        let output = self.shell(command).env_remove("NO_COLOR").env("CLICOLOR_FORCE", "1").output().unwrap();
        self.shown(&String::from_utf8_lossy(&output.stdout))
    }

    /// Runs a command on a terminal, where it asks a question.
    fn answer(&self, command: &str, answer: &str) -> String {
        let mut shell = self.shell(command);
        shell.env("TERM", "dumb");
        let mut at = AtTerminal::run(shell);
        let screen = at.until(QUESTION) + &at.types(&format!("{answer}\n")).ends().0;
        // What progress shows is erased.
        let lines =
            screen.lines().map(|line| line.rsplit_once("\x1b[2K").map_or(line, |(_, rest)| rest).to_owned() + "\n");
        self.shown(&lines.collect::<String>())
    }

    fn shown(&self, printed: &str) -> String {
        let text = printed.replace(&*self.home().to_string_lossy(), "/home/you").replace(&self.port, PORT);
        text.lines().map(|line| without_time(line) + "\n").collect()
    }

    fn shell(&self, command: &str) -> Command {
        let programs = beside("");
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", &format!("{{ {} {command} ; }} 2>&1", self.kept.borrow())])
            .current_dir(self.home())
            .stdin(Stdio::null())
            .env_clear()
            .env("PATH", format!("{}:/usr/bin:/bin", programs.display()))
            .envs([("NO_COLOR", "1"), ("LANG", "C.UTF-8")])
            .env("HOME", self.home())
            // Where root keeps it is not for tests.
            .env("STEAD_STATE", self.home().join(".local/state/stead"));
        shell
    }
}

/// The text before the next block, its language, what is in it, and the text behind it.
fn next_block(text: &str) -> Option<(&str, &str, &str, &str)> {
    let (before, block) = text.split_once("\n```")?;
    let (block, after) = block.split_once("\n```").unwrap();
    let (language, body) = block.split_once('\n').unwrap();
    Some((before, language, body, after))
}

fn is_powershell(language: &str) -> bool {
    language.split(' ').any(|word| word == "pwsh")
}

fn commands_of_powershell(body: &str) -> impl Iterator<Item = &str> {
    body.lines().filter_map(|line| line.strip_prefix("PS> "))
}

/// Returns whether a block needs a program that is not installed.
fn lacks(language: &str) -> bool {
    let is_there = |program: &str| match program {
        "root" => stead_testkit::is_root(TEST),
        "machines" => true,
        "pwsh" => stead_testkit::powershell(TEST).is_some(),
        _ if Path::new("/usr/bin").join(program).exists() || beside(program).exists() => true,
        _ => {
            stead_testkit::skip(TEST, &format!("there is no {program}"));
            false
        }
    };
    !language.split(' ').skip(1).all(is_there)
}

/// A program of this repository.
fn beside(program: &str) -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_stead")).with_file_name(program)
}

fn block<'t>(language: &str, body: &'t str) -> Block<'t> {
    if language.starts_with("console") {
        return Block::Console;
    }
    let mut lines = body.lines();
    let name = lines.next().and_then(|line| line.trim_start_matches(['#', '/', '-']).strip_prefix(' '));
    if let Some(name) = name.filter(|name| !name.contains(' ') && Path::new(name).extension().is_some()) {
        return Block::File(name);
    }
    let program = lines.next().and_then(|line| Some(line.strip_prefix("# ")?.split_once(':')?.0));
    if let Some(name) = program.filter(|name| body.starts_with("#!") && !name.contains(' ')) {
        return Block::Program(name);
    }
    let is_other = language.split(' ').any(|word| OTHERS.contains(&word));
    let calls_stead = || body.lines().any(|line| line.trim_start().starts_with("stead "));
    if is_other || language == "sh" && !calls_stead() || is_shown(body) { Block::Other } else { Block::Unknown }
}

/// Returns whether a file of the repository has these lines.
fn is_shown(body: &str) -> bool {
    static FILES: LazyLock<Vec<String>> = LazyLock::new(|| {
        let mut folders: Vec<PathBuf> = SHOWN.iter().map(|folder| repository().join(folder)).collect();
        let mut files = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()) {
                match entry.file_type().unwrap() {
                    kind if kind.is_dir() => folders.push(entry.path()),
                    _ => files.extend(fs::read_to_string(entry.path()).map(|text| format!("\n{text}\n"))),
                }
            }
        }
        files
    });
    let lines = format!("\n{body}\n");
    FILES.iter().any(|file| file.contains(&lines))
}

/// Returns whether a file of that name lies in the folder that names start from: examples are followed as root, too.
fn is_within(name: &str) -> bool {
    Path::new(name).components().all(|part| matches!(part, Component::Normal(_)))
}

/// The examples of a page that nothing runs.
fn not_run(text: &str) -> Vec<String> {
    let mut commands = String::new();
    let mut blocks = Vec::new();
    let mut rest = text;
    while let Some((_, language, body, after)) = next_block(rest) {
        blocks.push((language, body));
        if language.starts_with("console") {
            let run = |line: &&str| line.starts_with("$ ") || line.starts_with("PS> ");
            commands.extend(body.lines().filter(run).flat_map(|line| [line, "\n"]));
        }
        rest = after;
    }
    let reason = |(language, body): &(&str, &str)| {
        let first = body.lines().next().unwrap_or_default();
        match block(language, body) {
            Block::File(name) | Block::Program(name) if !is_within(name) => {
                Some(format!("'{name}' is outside of the reader's folder"))
            }
            Block::File(name) | Block::Program(name) => {
                let used = name.split(['/', '-']).any(|part| commands.contains(part.split('.').next().unwrap_or(part)));
                (!used).then(|| format!("no command uses '{name}'"))
            }
            Block::Unknown => Some(format!("no test runs the example in '{language}' that begins with '{first}'")),
            Block::Console | Block::Other => None,
        }
    };
    let indented = text.lines().filter(|line| line.starts_with(' ') && line.trim_start().starts_with("```"));
    blocks.iter().filter_map(reason).chain(indented.map(|line| format!("a block is indented: '{line}'"))).collect()
}

/// How long it takes, and when it is done, differs from run to run.
fn without_time(line: &str) -> String {
    let forms =
        ["2026-01-01T00:00:00.000000Z", "2026-01-01T00:00:00.000Z", "2026-01-01T00:00:00", "20260101T000000Z-001"];
    let line = forms.iter().fold(without_digest(line), |line, form| masked(&line, form));
    [" in ", " after "].iter().fold(line, |line, word| {
        let duration = |(at, _)| {
            let (head, tail) = line.split_at(at + word.len());
            let (number, unit) = tail.split_once(' ')?;
            let rest = unit.strip_prefix("ms").or_else(|| unit.strip_prefix('s'))?;
            let ends = rest.is_empty() || rest.starts_with([')', ' ']);
            (ends && number.parse::<f64>().is_ok()).then(|| format!("{head}2 ms{rest}"))
        };
        line.match_indices(word).find_map(duration).unwrap_or(line)
    })
}

/// What is signed names keys and a time: its digest differs from run to run.
fn without_digest(line: &str) -> String {
    const SIGNED: [&str; 4] =
        ["release sha256-", "roster sha256-", "list of signers sha256-", "root statement sha256-"];
    let digest = SIGNED.iter().find_map(|signed| line.find(signed).map(|at| at + signed.len()));
    let is_digit = |character: char| character.is_ascii_hexdigit();
    match digest.and_then(|at| line.split_at_checked(at)) {
        Some((before, after)) => format!("{before}{}{}", "0".repeat(64), after.trim_start_matches(is_digit)),
        None => line.to_owned(),
    }
}

/// The line with each stretch of this form as the form itself: digits stand for digits.
fn masked(line: &str, form: &str) -> String {
    let fits = |text: &str| {
        let same = |(found, form): (char, char)| found == form || found.is_ascii_digit() && form.is_ascii_digit();
        text.chars().zip(form.chars()).all(same)
    };
    let mut masked = line.to_owned();
    for (from, _) in line.char_indices() {
        if line.get(from..from + form.len()).is_some_and(fits) {
            masked.replace_range(from..from + form.len(), form);
        }
    }
    masked
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn an_example_that_nothing_runs_is_found() {
    let page = "\n```yaml\n# a.yaml\nresources: []\n```\n```console\n$ stead lint a.yaml\n```\n```yaml ansible\n- hosts: all\n```\
                \n```sh\npuppet apply\n```\n```yaml\n# b.yaml\n```\n```yaml\n# /etc/a.yaml\n```\n```json\n{\"made\": \"up\"}\n```\n```sh\nstead plan a.yaml\n```\n  ```sh\n";
    let expected = [
        "no command uses 'b.yaml'",
        "'/etc/a.yaml' is outside of the reader's folder",
        "no test runs the example in 'json' that begins with '{\"made\": \"up\"}'",
        "no test runs the example in 'sh' that begins with 'stead plan a.yaml'",
        "a block is indented: '  ```sh'",
    ];
    assert_eq!(not_run(page), expected);
}
