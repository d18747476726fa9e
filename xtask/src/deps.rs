//! Licences, duplicate versions and sources of dependencies, as `deny.toml` wants them.
//!
//! cargo-deny checks the same and more, but takes minutes to build and the network to run. This takes neither, so it can
//! be a test. It reads the few arrays of `deny.toml` that it needs, one entry a line; an array that it does not find is
//! empty and so refuses everything, which is how a change of that form would show.

use std::collections::{BTreeMap, BTreeSet};

use crate::repository::{Finding, Package, Repository};

const RULES: &str = "deny.toml";

/// Everything about dependencies that the rules do not accept.
pub(crate) fn check(repository: &Repository) -> Result<Vec<Finding>, String> {
    let text = repository.text(RULES).map_err(|finding| finding.to_string())?;
    let rules = Rules::read(text);
    let mut findings = Vec::new();
    for package in repository.packages() {
        findings.extend(licence(&rules, package.name(), package.licence()));
        findings.extend(source(&rules, package));
    }
    findings.extend(duplicates(&rules, repository.packages().map(|package| (package.name(), package.version()))));
    findings.sort();
    Ok(findings)
}

/// The rules of `deny.toml`.
struct Rules<'a> {
    licences: BTreeSet<&'a str>,
    /// `name@version`, the version cut short or not.
    skipped: Vec<&'a str>,
    registries: Vec<&'a str>,
}

impl<'a> Rules<'a> {
    fn read(text: &'a str) -> Self {
        let skipped = entries(text, "bans", "skip");
        Self {
            licences: entries(text, "licenses", "allow").into_iter().flatten().collect(),
            skipped: skipped.into_iter().filter_map(|strings| strings.first().copied()).collect(),
            registries: entries(text, "sources", "allow-registry").into_iter().flatten().collect(),
        }
    }
}

/// The strings of each line of an array of a section.
fn entries<'a>(text: &'a str, section: &str, key: &str) -> Vec<Vec<&'a str>> {
    let header = format!("[{section}]");
    let opening = format!("{key} = [");
    let lines = text.lines().map(str::trim).skip_while(|line| *line != header).skip(1);
    let mut lines = lines.take_while(|line| !is_header(line)).skip_while(|line| !line.starts_with(&opening)).peekable();
    let Some(first) = lines.next() else { return Vec::new() };
    let rest = first.strip_prefix(&opening).unwrap_or_default();
    if rest.ends_with(']') {
        return vec![strings(rest)];
    }
    lines.take_while(|line| !line.starts_with(']')).filter(|line| !line.starts_with('#')).map(strings).collect()
}

fn is_header(line: &str) -> bool {
    line.starts_with('[') && line.ends_with(']')
}

/// Returns the texts between quotation marks.
fn strings(line: &str) -> Vec<&str> {
    line.split('"').skip(1).step_by(2).collect()
}

fn licence(rules: &Rules<'_>, name: &str, expression: &str) -> Option<Finding> {
    if expression.is_empty() {
        return Some(Finding::of(RULES, format!("{name} names no licence")));
    }
    let accepted = Spdx::new(expression).accepted(&rules.licences);
    (!accepted).then(|| Finding::of(RULES, format!("{name} has the licence {expression}, which is not allowed")))
}

fn source(rules: &Rules<'_>, package: Package<'_>) -> Option<Finding> {
    let source = package.source()?;
    let known = source.strip_prefix("registry+").is_some_and(|registry| rules.registries.contains(&registry));
    (!known).then(|| Finding::of(RULES, format!("{} comes from {source}", package.name())))
}

/// All but the newest version of each package must be explained, and nothing else.
fn duplicates<'a>(rules: &Rules<'_>, packages: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<Finding> {
    let mut versions: BTreeMap<&str, BTreeSet<(Vec<u64>, &str)>> = BTreeMap::new();
    for (name, version) in packages {
        let numbers = version.split(['.', '-', '+']).map(|part| part.parse().unwrap_or(0)).collect();
        versions.entry(name).or_default().insert((numbers, version));
    }
    let mut findings = Vec::new();
    let mut used = BTreeSet::new();
    for (name, mut versions) in versions {
        versions.pop_last();
        for (_, version) in versions {
            match rules.skipped.iter().find(|skipped| covers(skipped, name, version)) {
                Some(skipped) => drop(used.insert(*skipped)),
                None => findings.push(Finding::of(RULES, format!("{name} {version} is there besides a newer one"))),
            }
        }
    }
    let unused = rules.skipped.iter().filter(|skipped| !used.contains(*skipped));
    findings.extend(unused.map(|skipped| Finding::of(RULES, format!("{skipped} needs no explanation any more"))));
    findings
}

fn covers(skipped: &str, name: &str, version: &str) -> bool {
    let Some((skipped, wanted)) = skipped.split_once('@') else { return false };
    let rest = version.strip_prefix(wanted);
    skipped == name && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// A licence expression: `A OR (B AND C)`, and `A/B`, which old packages use for OR.
struct Spdx {
    words: Vec<String>,
    at: usize,
}

impl Spdx {
    fn new(expression: &str) -> Self {
        let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
        Self { words: spaced.split_whitespace().map(str::to_owned).collect(), at: 0 }
    }

    /// Returns whether the allowed licences suffice. A text that is not an expression is not accepted.
    fn accepted(mut self, allowed: &BTreeSet<&str>) -> bool {
        let accepted = self.any(allowed);
        accepted && self.at == self.words.len()
    }

    fn any(&mut self, allowed: &BTreeSet<&str>) -> bool {
        let mut accepted = self.all(allowed);
        while self.take("OR") {
            accepted |= self.all(allowed);
        }
        accepted
    }

    fn all(&mut self, allowed: &BTreeSet<&str>) -> bool {
        let mut accepted = self.one(allowed);
        while self.take("AND") {
            accepted &= self.one(allowed);
        }
        accepted
    }

    fn one(&mut self, allowed: &BTreeSet<&str>) -> bool {
        if self.take("(") {
            let accepted = self.any(allowed);
            return self.take(")") && accepted;
        }
        let Some(licence) = self.words.get(self.at).cloned() else { return false };
        self.at += 1;
        if self.take("WITH") {
            // An exception only permits more than its licence, but it is a text of its own: it is allowed as a whole.
            let exception = self.words.get(self.at).cloned().unwrap_or_default();
            self.at += 1;
            return allowed.contains(format!("{licence} WITH {exception}").as_str());
        }
        allowed.contains(licence.as_str())
    }

    fn take(&mut self, word: &str) -> bool {
        let found = self.words.get(self.at).is_some_and(|next| next == word);
        self.at += usize::from(found);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
[licenses]
allow = [
    # a word on it
    "MIT",
    "Zlib",
]
[bans]
skip = [
    { crate = "a@1", reason = "b has not moved on" },
]
[sources]
allow-registry = ["https://example.org/index"]
"#;

    #[test]
    fn dependencies_are_as_the_rules_want_them() {
        let repository = Repository::read().expect("the repository is readable");
        let findings = check(&repository).expect("the check runs");
        assert!(findings.is_empty(), "{findings:#?}");
    }

    #[test]
    fn rules_are_read() {
        let rules = Rules::read(TEXT);
        assert_eq!(rules.licences, BTreeSet::from(["MIT", "Zlib"]));
        assert_eq!(rules.skipped, ["a@1"]);
        assert_eq!(rules.registries, ["https://example.org/index"]);
        assert!(Rules::read("").licences.is_empty());
    }

    #[test]
    fn licence_expressions_are_understood() {
        let rules = Rules::read(TEXT);
        let refused = |expression: &str| licence(&rules, "x", expression).is_some();
        for expression in ["MIT", "MIT OR GPL-3.0", "GPL-3.0/MIT", "(GPL-3.0 OR MIT) AND Zlib", "MIT AND Zlib"] {
            assert!(!refused(expression), "{expression}");
        }
        for expression in
            ["", "GPL-3.0", "MIT AND GPL-3.0", "GPL-3.0 OR MIT AND BSD-3-Clause", "MIT WITH X", "(MIT", "MIT Zlib"]
        {
            assert!(refused(expression), "{expression}");
        }
    }

    #[test]
    fn older_versions_have_to_be_explained_and_explanations_used() {
        let rules = Rules::read(TEXT);
        let found = |packages: &[(&'static str, &'static str)]| {
            let findings = duplicates(&rules, packages.iter().copied());
            findings.into_iter().map(|finding| finding.message).collect::<Vec<_>>()
        };
        assert!(found(&[("a", "1.10.0"), ("a", "2.0.0"), ("b", "1.0.0")]).is_empty());
        assert_eq!(found(&[("a", "10.0.0"), ("a", "2.0.0")])[0], "a 2.0.0 is there besides a newer one");
        assert_eq!(found(&[("a", "1.0.0")]), ["a@1 needs no explanation any more"]);
    }
}
