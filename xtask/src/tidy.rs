//! Checks that the compiler does not make: which crate may need which, that the map names every part, that links lead
//! to something, and which words may not be in the repository.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};

use crate::circles;
use crate::language;
use crate::links;
use crate::repository::{Finding, Package, Repository, array, has_extension, string};
use crate::roof;

/// The crates that ship, from the bottom up: each may need those in front of it only.
const LAYERS: &[&str] = &[
    "stead-declare",
    "stead-core",
    "stead-sls",
    "stead-hosts",
    "stead-release",
    "stead-protocol",
    "stead-report",
    "stead-system",
    "stead-host",
    "stead-resources",
    "stead-powershell-reader",
    "stead-powershell",
    "stead-engine",
    "stead-agent",
    "stead-puppet",
    "stead-lsp",
    "stead",
    "stead-fleet",
];

/// The crates that only developers build: nothing that ships may need one outside of tests.
const TOOLS: &[&str] = &["stead-bench", "stead-test-resources", "stead-testkit", "xtask"];

/// All that the core may need. Text, numbers and data are fine; clocks, files, processes and networks are not.
const CORE_MAY_NEED: &[&str] = &[
    "annotate-snippets",
    "base64",
    "granit-parser",
    "hashbrown",
    "memchr",
    "minijinja",
    "jiff",
    "jsonschema",
    "percent-encoding",
    "referencing",
    "regex",
    "semver",
    "serde",
    "serde-saphyr",
    "serde_json",
    "sha2",
    "strsim",
    "thiserror",
    "url",
    "zeroize",
];

/// The crates that the core may not need by way of others either.
const CORE_NEVER_REACHES: &[&str] = &["hyper", "mio", "rand", "reqwest", "rustix", "tokio", "ureq"];

/// What the program that runs as root on each machine never contains, but for what speaks SQL: a server, an async runtime.
const PROGRAM_NEVER_REACHES: &[&str] = &["hyper", "mio", "tokio"];
/// What speaks SQL, of which the program contains nothing: docs/security-advisories.md says so.
const SPEAK_SQL: &[&str] = &[
    "diesel",
    "duckdb",
    "libsqlite3-sys",
    "mysql",
    "mysql_async",
    "postgres",
    "rusqlite",
    "sqlx-core",
    "tokio-postgres",
];

/// The source of the program.
const PROGRAM: &str = "crates/stead/src/";

/// The parts of the program that know how a command line is written. All others get requests.
const OF_COMMAND_LINE: &[&str] = &["args/", "completion.rs", "lib.rs", "manual.rs"];

const MAP: &str = "ARCHITECTURE.md";
/// Bytes: a limit on lines would have paragraphs joined.
const MAP_BYTES: usize = 26_000;
const DECISION_LINES: usize = 60;

/// Text that may be nowhere in the repository but in this list: a line is the text, a tab, and the reason.
const FORBIDDEN: &str = "xtask/forbidden.txt";

/// Everything that is not tidy.
pub(crate) fn check(repository: &Repository) -> Result<Vec<Finding>, String> {
    let mut findings = direction(repository);
    findings.extend(core_needs(repository));
    let never = [PROGRAM_NEVER_REACHES, SPEAK_SQL].concat();
    findings.extend(reaches(repository, "stead", &never, "which no program of root contains"));
    findings.extend(roof::check(repository, |name| LAYERS.contains(&name)));
    findings.extend(map(repository));
    findings.extend(promises(repository));
    findings.extend(command_line(repository)?);
    findings.extend(words(repository)?);
    findings.extend(language::check(repository)?);
    findings.extend(decisions(repository));
    findings.extend(links::check(repository));
    findings.extend(exceptions(repository));
    findings.extend(cases(repository));
    findings.extend(kinds(repository));
    findings.sort();
    Ok(findings)
}

fn direction(repository: &Repository) -> Vec<Finding> {
    let members: BTreeSet<&str> = repository.members().map(Package::name).collect();
    let mut findings = Vec::new();
    for package in repository.members() {
        let manifest = package.folder() + "/Cargo.toml";
        let layer = LAYERS.iter().position(|layer| *layer == package.name());
        if layer.is_none() && !TOOLS.contains(&package.name()) {
            findings.push(Finding::of(
                &manifest,
                "is neither a crate that ships nor a tool: say which in xtask/src/tidy.rs",
            ));
        }
        let of_ours = package.needs_with_tests().filter(|need| members.contains(need));
        for need in of_ours {
            let below = LAYERS.iter().position(|layer| *layer == need);
            if matches!((layer, below), (Some(layer), Some(below)) if below >= layer) {
                findings.push(Finding::of(&manifest, format!("needs {need}, which lies above it")));
            }
        }
        let tools = package.needs().filter(|need| layer.is_some() && TOOLS.contains(need));
        findings.extend(tools.map(|tool| Finding::of(&manifest, format!("ships, and needs {tool}, which does not"))));
    }
    findings
}

fn core_needs(repository: &Repository) -> Vec<Finding> {
    let Some(core) = repository.members().find(|package| package.name() == "stead-core") else {
        return vec![Finding::of("Cargo.toml", "has no member stead-core")];
    };
    let manifest = core.folder() + "/Cargo.toml";
    let strange = core.needs().filter(|need| !CORE_MAY_NEED.contains(need));
    let direct = strange.map(|need| Finding::of(&manifest, format!("needs {need}, which the core may not")));
    direct.chain(reaches(repository, "stead-core", CORE_NEVER_REACHES, "which the core may not")).collect()
}

/// The packages that a member reaches by way of others and must not.
fn reaches(repository: &Repository, member: &str, never: &[&str], remedy: &str) -> Vec<Finding> {
    let Some(member) = repository.members().find(|package| package.name() == member) else { return Vec::new() };
    let (manifest, reached) = (member.folder() + "/Cargo.toml", reach(repository, member.id()));
    let found = never.iter().filter(|name| reached.contains(**name));
    found.map(|name| Finding::of(&manifest, format!("reaches {name}, {remedy}"))).collect()
}

/// Names of all packages that are linked or built for a package, tests left out.
pub(crate) fn reach<'a>(repository: &'a Repository, from: &'a str) -> BTreeSet<&'a str> {
    let names: BTreeMap<&str, &str> = repository.packages().map(|package| (package.id(), package.name())).collect();
    let nodes = repository.metadata.get("resolve").map_or(&[][..], |resolve| array(resolve, "nodes"));
    let nodes: BTreeMap<&str, _> = nodes.iter().map(|node| (string(node, "id"), node)).collect();
    let mut seen = BTreeSet::from([from]);
    let mut open = vec![from];
    while let Some(id) = open.pop() {
        let needs = nodes.get(id).map_or(&[][..], |node| array(node, "deps"));
        let shipped =
            needs.iter().filter(|need| array(need, "dep_kinds").iter().any(|kind| string(kind, "kind") != "dev"));
        open.extend(shipped.map(|need| string(need, "pkg")).filter(|id| seen.insert(id)));
    }
    seen.into_iter().filter_map(|id| names.get(id).copied()).collect()
}

fn map(repository: &Repository) -> Vec<Finding> {
    let text = match repository.text(MAP) {
        Ok(text) => text,
        Err(finding) => return vec![finding],
    };
    let excess = format!("has {} bytes, more than {MAP_BYTES}: leave out what the code says", text.len());
    let mut findings: Vec<Finding> = (text.len() > MAP_BYTES).then(|| Finding::of(MAP, excess)).into_iter().collect();
    for package in repository.members() {
        let source = package.folder() + "/src/";
        let mut parts = BTreeSet::from([package.name().to_owned()]);
        let below = repository.files.keys().filter_map(|path| path.strip_prefix(&source)?.split_once('/'));
        parts.extend(below.map(|(folder, _)| format!("{folder}/")));
        let absent = parts.into_iter().filter(|part| !mentions(text, part));
        findings.extend(absent.map(|part| Finding::of(MAP, format!("does not mention {part} of {}", package.name()))));
        findings.extend(vanished(repository, text, package.name(), &source));
    }
    findings
}

/// Returns a finding for each file that the table of a crate in [`MAP`] names, and that does not exist.
fn vanished(repository: &Repository, text: &str, name: &str, source: &str) -> Vec<Finding> {
    let heading = format!("### crates/{name}:");
    let section = text.split_once(&heading).map_or("", |(_, section)| section.split("\n##").next().unwrap_or_default());
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
    let parts = rows.flat_map(|cell| cell.trim_end_matches('`').split("`, `"));
    let is_there = |part: &&str| {
        let path = format!("{source}{part}");
        repository.files.keys().any(|file| *file == path || (part.ends_with('/') && file.starts_with(&path)))
    };
    let absent = parts.filter(|part| !is_there(part));
    absent.map(|part| Finding::of(MAP, format!("names {part} of {name}, which is not there"))).collect()
}

/// Checks that every promise in [`MAP`] names a test or a case that exists.
fn promises(repository: &Repository) -> Vec<Finding> {
    let Ok(text) = repository.text(MAP) else { return Vec::new() };
    let section = text.split("\n## ").find(|section| section.starts_with("What always holds"));
    let promises = section.unwrap_or_default().split("\n- ").skip(1);
    promises.flat_map(|promise| broken(repository, promise)).collect()
}

fn broken(repository: &Repository, promise: &str) -> Vec<Finding> {
    let title: String = promise.chars().take_while(|c| *c != '\n').collect();
    let Some((_, held)) = promise.split_once("Held by") else {
        return vec![Finding::of(MAP, format!("does not name what holds '{title}'"))];
    };
    let names = held.split('`').skip(1).step_by(2);
    let is_there = |name: &&str| {
        let function = format!("fn {name}(");
        repository.files.contains_key(*name)
            || name.starts_with("cargo xtask ")
            || repository.files.iter().any(|(path, text)| has_extension(path, "rs") && text.contains(&function))
    };
    let absent = names.filter(|name| !is_there(name));
    absent.map(|name| Finding::of(MAP, format!("names '{name}', which is not there"))).collect()
}

/// Parts of the program that know of the command line and should not.
fn command_line(repository: &Repository) -> Result<Vec<Finding>, String> {
    let mut findings = Vec::new();
    for (path, text) in repository.files.iter().filter(|(path, _)| has_extension(path, "rs")) {
        let Some(inner) = path.strip_prefix(PROGRAM) else { continue };
        if OF_COMMAND_LINE.iter().any(|part| inner.starts_with(part)) {
            continue;
        }
        let (inside, foreign) = circles::named(inner, text)?;
        let first = |path: &Vec<String>| path.first().cloned().unwrap_or_default();
        let args = inside.iter().filter(|path| first(path) == "args");
        let clap = foreign.iter().filter(|path| first(path).starts_with("clap"));
        let names = args.chain(clap).map(|path| path.join("::"));
        findings.extend(names.map(|name| Finding::of(path, format!("names {name}: only {OF_COMMAND_LINE:?} may"))));
    }
    Ok(findings)
}

/// Returns whether the text has the word, not as a part of a longer one.
fn mentions(text: &str, word: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(inside) && (word.ends_with('/') || !after.is_some_and(inside))
    })
}

fn too_long(path: &str, text: &str, limit: usize) -> Vec<Finding> {
    let lines = text.lines().count();
    let long = lines > limit;
    long.then(|| Finding::of(path, format!("has {lines} lines, more than {limit}"))).into_iter().collect()
}

fn words(repository: &Repository) -> Result<Vec<Finding>, String> {
    let list = repository.text(FORBIDDEN).map_err(|finding| finding.to_string())?;
    let forbidden: Vec<(&str, &str)> =
        list.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('\t')).collect();
    let others = repository.files.iter().filter(|(path, _)| *path != FORBIDDEN);
    Ok(others.flat_map(|(path, text)| words_of(path, text, &forbidden)).collect())
}

fn words_of(path: &str, text: &str, forbidden: &[(&str, &str)]) -> Vec<Finding> {
    let found = |(number, line): (usize, &str)| {
        let hit = forbidden.iter().find(|(word, _)| mentions(line, word));
        hit.map(|(word, reason)| Finding::at(path, number + 1, format!("has '{word}': {reason}")))
    };
    text.lines().enumerate().filter_map(found).collect()
}

fn decisions(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut numbers = BTreeMap::new();
    for (path, text) in &repository.files {
        let Some(name) = path.strip_prefix("docs/decisions/") else { continue };
        let number = name.split_once('-').map_or("", |(number, _)| number);
        if number.len() != 4 || !number.bytes().all(|byte| byte.is_ascii_digit()) || !has_extension(name, "md") {
            findings.push(Finding::of(path, "is not named NNNN-title.md"));
        } else if let Some(other) = numbers.insert(number, path) {
            findings.push(Finding::of(path, format!("has the number of {other}")));
        }
        findings.extend(too_long(path, text, DECISION_LINES));
    }
    findings
}

fn exceptions(repository: &Repository) -> Vec<Finding> {
    let rust = repository.files.iter().filter(|(path, _)| has_extension(path, "rs"));
    rust.flat_map(|(path, text)| exceptions_of(path, text)).collect()
}

/// Lints that are switched off without a reason.
fn exceptions_of(path: &str, text: &str) -> Vec<Finding> {
    match syn::parse_file(text) {
        Ok(file) => {
            let mut visitor = Exceptions { path, findings: Vec::new() };
            visitor.visit_file(&file);
            visitor.findings
        }
        Err(error) => vec![Finding::at(path, error.span().start().line, format!("is not Rust: {error}"))],
    }
}

/// How often what ships may name the kind of a resource that this process carries out: once to ask, and once where manifests of
/// such resources are made. What a resource can do, and what may be relied on, its manifest says.
const KIND_ASKED: usize = 2;

fn kinds(repository: &Repository) -> Vec<Finding> {
    let shipped = repository.sources().filter(|(path, _)| path.starts_with("crates/") && path.contains("/src/"));
    let asked: Vec<Finding> = shipped
        .flat_map(|(path, text)| text.match_indices("Implementation::InProcess").map(move |_| path))
        .map(|path| Finding::of(path, "names `Implementation::InProcess`: ask for what is needed of the resource"))
        .collect();
    if asked.len() > KIND_ASKED { asked } else { Vec::new() }
}

/// Folders of cases whose README does not explain a section; those that are named like files are.
fn cases(repository: &Repository) -> Vec<Finding> {
    let mut sections: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (path, text) in &repository.files {
        let Some((folder, _)) = path.strip_prefix("corpus/").and_then(|path| path.split_once('/')) else { continue };
        let named = sections.entry(folder).or_default();
        if has_extension(path, "txt") {
            let headers = text.lines().filter_map(|line| line.strip_prefix("-- ")?.strip_suffix(" --"));
            named.extend(headers.filter(|name| !name.contains('.')));
        }
    }
    sections.iter().flat_map(|(folder, sections)| unexplained(repository, folder, sections)).collect()
}

fn unexplained(repository: &Repository, folder: &str, sections: &BTreeSet<&str>) -> Vec<Finding> {
    let readme = format!("corpus/{folder}/README.md");
    let text = match repository.text(&readme) {
        Ok(text) => text,
        Err(finding) => return vec![finding],
    };
    let unknown = sections.iter().filter(|name| !text.contains(&format!("`{name}`")));
    unknown.map(|name| Finding::of(&readme, format!("does not explain the section '{name}'"))).collect()
}

struct Exceptions<'a> {
    path: &'a str,
    findings: Vec<Finding>,
}

impl<'ast> Visit<'ast> for Exceptions<'_> {
    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        if (attribute.path().is_ident("allow") || attribute.path().is_ident("expect"))
            && let syn::Meta::List(list) = &attribute.meta
            && !list.tokens.clone().into_iter().any(|token| token.to_string() == "reason")
        {
            let line = attribute.pound_token.span.start().line;
            self.findings.push(Finding::at(self.path, line, "switches a lint off without a reason"));
        }
        visit::visit_attribute(self, attribute);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::repository;

    #[test]
    fn folders_of_cases_explain_their_sections() {
        let files = [
            ("corpus/README.md", ""),
            ("corpus/a/README.md", "`tree` is explained."),
            ("corpus/a/b/case.txt", "-- main.yaml --\n-- tree --\n-- other --\n"),
            ("corpus/b/case.txt", "-- tree --\n"),
        ];
        let expected = ["corpus/a/README.md: does not explain the section 'other'", "corpus/b/README.md: is missing"];
        assert_eq!(messages(cases(&made_up(&[], &files))), expected);
    }

    #[test]
    fn the_repository_is_tidy() {
        let repository = Repository::read().expect("the repository is readable");
        let findings = check(&repository).expect("the check runs");
        assert!(findings.is_empty(), "{findings:#?}");
    }

    /// A repository with these packages, each with what it needs, and these files.
    fn made_up(packages: &[(&str, &[&str])], files: &[(&str, &str)]) -> Repository {
        let id = |name: &str| format!("id of {name}");
        let package = |(name, needs): &(&str, &[&str])| {
            let needs: Vec<_> = needs.iter().map(|need| json!({ "name": need, "kind": null })).collect();
            let manifest = repository::root().join("crates").join(name).join("Cargo.toml");
            json!({ "name": name, "id": id(name), "source": null, "manifest_path": manifest, "dependencies": needs })
        };
        let node = |(name, needs): &(&str, &[&str])| {
            let needs: Vec<_> =
                needs.iter().map(|need| json!({ "pkg": id(need), "dep_kinds": [{ "kind": null }] })).collect();
            json!({ "id": id(name), "deps": needs })
        };
        let nodes: Vec<_> = packages.iter().map(node).collect();
        let packages: Vec<_> = packages.iter().map(package).collect();
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        Repository { files, metadata: json!({ "packages": packages, "resolve": { "nodes": nodes } }) }
    }

    fn messages(findings: Vec<Finding>) -> Vec<String> {
        findings.into_iter().map(|finding| finding.to_string()).collect()
    }

    #[test]
    fn a_crate_may_need_those_below_it_only() {
        let packages: &[(&str, &[&str])] = &[
            ("stead-core", &["stead-host"]),
            ("stead-host", &["stead-core", "xtask"]),
            ("stead-resources", &["stead-core", "stead-host"]),
            ("xtask", &["stead"]),
            ("stead", &["stead-resources"]),
            ("stranger", &[]),
        ];
        let expected = [
            "crates/stead-core/Cargo.toml: needs stead-host, which lies above it",
            "crates/stead-host/Cargo.toml: ships, and needs xtask, which does not",
            "crates/stranger/Cargo.toml: is neither a crate that ships nor a tool: say which in xtask/src/tidy.rs",
        ];
        assert_eq!(messages(direction(&made_up(packages, &[]))), expected);
    }

    #[test]
    fn the_core_may_need_little_and_reach_little() {
        let packages: &[(&str, &[&str])] =
            &[("stead-core", &["regex", "log"]), ("regex", &["rand"]), ("log", &[]), ("rand", &[])];
        let expected = [
            "crates/stead-core/Cargo.toml: needs log, which the core may not",
            "crates/stead-core/Cargo.toml: reaches rand, which the core may not",
        ];
        assert_eq!(messages(core_needs(&made_up(packages, &[]))), expected);
    }

    #[test]
    fn nothing_is_linked_that_speaks_sql() {
        let repository = Repository::read().expect("the repository is readable");
        let found = reaches(&repository, "stead", SPEAK_SQL, "which speaks SQL");
        assert!(found.is_empty(), "{found:#?}");
        // The controller is a program of its own, and shows that what is there is found.
        let found = reaches(&repository, "stead-fleet", SPEAK_SQL, "which speaks SQL");
        assert_eq!(found.len(), 4, "{found:#?}");
    }

    #[test]
    fn the_program_reaches_no_server() {
        let packages: &[(&str, &[&str])] = &[("stead", &["ureq"]), ("ureq", &["tokio"]), ("tokio", &[])];
        let found =
            reaches(&made_up(packages, &[]), "stead", PROGRAM_NEVER_REACHES, "which no program of root contains");
        assert_eq!(messages(found), ["crates/stead/Cargo.toml: reaches tokio, which no program of root contains"]);
    }

    #[test]
    fn the_map_has_every_crate_and_folder() {
        const MAPPED: &str =
            "### crates/stead-core: begins with context/\n\n| `lib.rs`, `run.rs` | it |\n## `stead-core`";
        let packages: &[(&str, &[&str])] = &[("stead-core", &[]), ("stead-host", &[])];
        let files = [("crates/stead-core/src/lib.rs", ""), ("crates/stead-core/src/text/node.rs", "")];
        assert_eq!(messages(map(&made_up(packages, &files))), ["ARCHITECTURE.md: is missing"]);
        let mapped = [files[0], files[1], ("ARCHITECTURE.md", MAPPED)];
        let expected = [
            "ARCHITECTURE.md: does not mention text/ of stead-core",
            "ARCHITECTURE.md: names run.rs of stead-core, which is not there",
            "ARCHITECTURE.md: does not mention stead-host of stead-host",
        ];
        assert_eq!(messages(map(&made_up(packages, &mapped))), expected);
    }

    #[test]
    fn only_its_own_part_knows_the_command_line() {
        let files = [
            ("crates/stead/src/args/mod.rs", "use clap::Parser;"),
            ("crates/stead/src/commands/a.rs", "use crate::args::{self, Plan}; use crate::request::PlanRequest;"),
            ("crates/stead/src/commands/b.rs", "use super::super::args::Plan; fn f(error: clap_complete::Shell) {}"),
            ("crates/stead/src/lib.rs", "mod args; use args::Arguments; use clap::Parser;"),
            ("crates/stead-lsp/src/lib.rs", "use crate::args::Plan;"),
        ];
        let findings = command_line(&made_up(&[], &files)).expect("it is Rust");
        let named = messages(findings).into_iter().map(|finding| finding.split(": only").next().unwrap().to_owned());
        let expected = [
            "crates/stead/src/commands/a.rs: names args::Plan",
            "crates/stead/src/commands/a.rs: names args::self",
            "crates/stead/src/commands/b.rs: names args::Plan",
            "crates/stead/src/commands/b.rs: names clap_complete::Shell",
        ];
        assert_eq!(named.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn decisions_have_a_number_of_their_own_and_one_page() {
        let long = "line\n".repeat(DECISION_LINES + 1);
        let files = [
            ("docs/decisions/0001-a.md", "a"),
            ("docs/decisions/0001-b.md", long.as_str()),
            ("docs/decisions/c.md", "c"),
        ];
        let expected = [
            "docs/decisions/0001-b.md: has the number of docs/decisions/0001-a.md",
            "docs/decisions/0001-b.md: has 61 lines, more than 60",
            "docs/decisions/c.md: is not named NNNN-title.md",
        ];
        assert_eq!(messages(decisions(&made_up(&[], &files))), expected);
    }

    #[test]
    fn a_word_is_found_only_as_a_whole() {
        assert!(mentions("see `stead-core`.", "stead-core"));
        assert!(!mentions("see `stead-core-extra`.", "stead-core"));
        assert!(mentions("- `src/text/`: places", "text/"));
        assert!(!mentions("context/", "text/"));
    }

    #[test]
    fn lints_are_switched_off_only_with_a_reason() {
        let text = "#[allow(dead_code)]\nfn a() {}\n#[expect(dead_code, reason = \"b\")]\nfn b() {}\n";
        let findings = exceptions_of("x.rs", text);
        assert_eq!(findings, [Finding::at("x.rs", 1, "switches a lint off without a reason")]);
    }

    #[test]
    fn every_crate_takes_the_lints_of_the_workspace() {
        let repository = Repository::read().unwrap();
        let root = repository::root();
        let workspace = std::fs::read_to_string(root.join("Cargo.toml")).unwrap();
        assert!(workspace.contains("\nunsafe_code = \"forbid\"\n"), "unsafe code is not forbidden");
        for package in repository.members() {
            let manifest = std::fs::read_to_string(root.join(package.folder()).join("Cargo.toml")).unwrap();
            assert!(manifest.contains("\n[lints]\nworkspace = true\n"), "{} has lints of its own", package.folder());
        }
    }

    #[test]
    fn forbidden_words_are_found_with_their_line() {
        let findings = words_of("x.md", "fine\nhere is bad news\nbadly\n", &[("bad", "be kind")]);
        assert_eq!(findings, [Finding::at("x.md", 2, "has 'bad': be kind")]);
    }

    #[test]
    fn long_texts_are_found() {
        assert!(too_long("x.md", "a\nb\n", 2).is_empty());
        assert_eq!(too_long("x.md", "a\nb\nc\n", 2), [Finding::of("x.md", "has 3 lines, more than 2")]);
    }
}
