//! Links between the texts of the repository: what they lead to exists, headings included, and so do tests that pages have
//! readers run; the book has every page, and the Rust that it shows is code of the repository.

use std::collections::BTreeSet;

use crate::repository::{Finding, Repository, has_extension};

/// The list of the pages of the book, and the folder that it is in.
pub(crate) const SUMMARY: &str = "docs/SUMMARY.md";
const BOOK: &str = "docs/";

/// Pages that only others link to: the book adds those that are linked.
const NOT_LISTED: &str = "docs/decisions/";

/// A link of a page.
#[derive(Debug, PartialEq)]
pub(crate) struct Link<'t> {
    pub(crate) line: usize,
    /// As it is written, in bytes of the whole text.
    pub(crate) at: std::ops::Range<usize>,
    pub(crate) target: &'t str,
}

/// Links that lead nowhere, tests and code that are not there, and pages that are not in the book.
pub(crate) fn check(repository: &Repository) -> Vec<Finding> {
    let pages = repository.files.iter().filter(|(path, _)| has_extension(path, "md"));
    let of_page = |(path, text): (&String, &String)| {
        let findings = broken(repository, path, text).into_iter().chain(lost_tests(repository, path, text));
        findings.chain(other_code(repository, path, text))
    };
    let mut findings: Vec<Finding> = pages.flat_map(of_page).collect();
    findings.extend(absent(repository));
    findings
}

/// The commands of a page that run tests of which there is no file.
fn lost_tests(repository: &Repository, page: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split(|mark: char| mark.is_whitespace() || mark == '`').collect();
        let named = words.windows(4).filter_map(|words| match words {
            ["-p", package, "--test", name] => Some((package, name)),
            _ => None,
        });
        for (package, name) in named {
            let file = format!("crates/{package}/tests/{name}");
            if !exists(repository, &format!("{file}.rs")) && !exists(repository, &format!("{file}/main.rs")) {
                findings.push(Finding::at(
                    page,
                    at + 1,
                    format!("runs a test of '{package}' that is not there: '{name}'"),
                ));
            }
        }
    }
    findings
}

/// The Rust in a page of the book that is not in a file as it stands.
fn other_code(repository: &Repository, page: &str, text: &str) -> Vec<Finding> {
    if !page.starts_with(BOOK) || page.starts_with(NOT_LISTED) {
        return Vec::new();
    }
    let shown = text.match_indices("```rust").filter_map(|(at, _)| {
        let (_, block) = text.get(at..)?.split_once('\n')?;
        Some((text.get(..at)?.lines().count() + 1, block.split("```").next()?))
    });
    let is_code =
        |code: &str| repository.files.iter().any(|(path, text)| has_extension(path, "rs") && text.contains(code));
    let other = shown.filter(|(_, code)| !is_code(code));
    other
        .map(|(line, _)| {
            Finding::at(page, line, "shows Rust that no file of the repository has as it stands".to_owned())
        })
        .collect()
}

fn absent(repository: &Repository) -> Vec<Finding> {
    let text = match repository.text(SUMMARY) {
        Ok(text) => text,
        Err(finding) => return vec![finding],
    };
    let listed: BTreeSet<String> = links(text).filter_map(|link| resolved(SUMMARY, link.target)).collect();
    let pages = repository.files.keys().filter(|path| path.starts_with(BOOK) && has_extension(path, "md"));
    let absent = pages.filter(|path| *path != SUMMARY && !path.starts_with(NOT_LISTED) && !listed.contains(*path));
    absent.map(|path| Finding::of(SUMMARY, format!("does not list {path}"))).collect()
}

fn broken(repository: &Repository, page: &str, text: &str) -> Vec<Finding> {
    let broken = links(text).filter_map(|link| {
        let path = resolved(page, link.target)?;
        let reason = match anchor(link.target) {
            _ if !exists(repository, &path) => "which is not there",
            Some(anchor) if !anchors(repository.files.get(&path)?).contains(anchor) => "which has no such heading",
            _ => return None,
        };
        Some(Finding::at(page, link.line, format!("links to '{}', {reason}", link.target)))
    });
    broken.collect()
}

fn exists(repository: &Repository, path: &str) -> bool {
    let folder = format!("{path}/");
    repository.files.contains_key(path) || repository.files.keys().any(|file| file.starts_with(&folder))
}

/// The links of a text, without those in blocks and spans of code.
pub(crate) fn links(text: &str) -> impl Iterator<Item = Link<'_>> {
    let mut fence = None;
    let mut start = 0;
    let lines = text.split_inclusive('\n').enumerate().map(move |(number, line)| {
        let at = start;
        start += line.len();
        (number + 1, at, line)
    });
    let lines = lines.filter(move |(_, _, line)| {
        let marks = line.trim_start();
        let length = marks.len() - marks.trim_start_matches('`').len();
        match fence {
            None if length >= 3 => fence = Some(length),
            None => return true,
            Some(open) if length >= open && marks.trim_end().len() == length => fence = None,
            Some(_) => {}
        }
        false
    });
    lines.flat_map(|(line, at, text)| {
        let targets = targets(text).into_iter();
        targets.map(move |found| Link { line, at: at + found.start..at + found.end, target: &text[found] })
    })
}

/// Where the targets of `[text](target)` and `[name]: target` are in a line.
fn targets(line: &str) -> Vec<std::ops::Range<usize>> {
    let until = |from: usize, end: &[char]| Some(from..from + line.get(from..)?.find(end)?);
    if line.starts_with('[')
        && let Some(at) = line.find("]: ")
    {
        return until(at + "]: ".len(), &['\n']).into_iter().collect();
    }
    let is_code = |at: usize| line[..at].matches('`').count() % 2 == 1;
    let ends = line.match_indices("](").map(|(at, _)| at).filter(|at| !is_code(*at));
    ends.filter_map(|at| until(at + "](".len(), &[')'])).collect()
}

/// The path of what a link of a page leads to; nothing for an address.
pub(crate) fn resolved(page: &str, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let path = target.split('#').next().unwrap_or_default();
    if path.is_empty() {
        return Some(page.to_owned());
    }
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in path.trim_end_matches('/').split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." => {}
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

fn anchor(target: &str) -> Option<&str> {
    target.split_once('#').map(|(_, anchor)| anchor)
}

/// The anchors of the headings of a page, as mdBook and code hosts make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    headings.map(anchor_of).collect()
}

fn anchor_of(heading: &str) -> String {
    let kept = heading.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
    kept.map(|letter| if letter == ' ' { '-' } else { letter }).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn messages(files: &[(&str, &str)]) -> Vec<String> {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        let findings = check(&Repository { files, metadata: Value::Null });
        findings.into_iter().map(|finding| finding.to_string()).collect()
    }

    #[test]
    fn a_link_leads_to_a_file_a_folder_or_a_heading() {
        let page = "[a](b.md) [b](../x/y.rs) [c](../x/) [d](b.md#a-heading-its-e0104) [e](#top) [f](https://a.example/)\n\
                    # Top\n`[code](nowhere)`\n```text\n[code](nowhere)\n```\n[name]: b.md\n";
        let other = "## A heading: it's `E0104`\n";
        let good =
            [("docs/SUMMARY.md", "[A](a.md) [B](b.md)"), ("docs/a.md", page), ("docs/b.md", other), ("x/y.rs", "")];
        assert_eq!(messages(&good), [""; 0]);
    }

    #[test]
    fn a_test_that_readers_run_is_there() {
        let page = "`cargo test -p a --test one -- x`\n$ cargo test -p a --test two\ncargo test -p b --test one\n";
        let files = [
            ("docs/SUMMARY.md", "[A](a.md)"),
            ("docs/a.md", page),
            ("crates/a/tests/one.rs", ""),
            ("crates/a/tests/two/main.rs", ""),
        ];
        assert_eq!(messages(&files), ["docs/a.md:3: runs a test of 'b' that is not there: 'one'"]);
    }

    #[test]
    fn rust_in_the_book_is_code() {
        let page = "# A\n```rust\nfn a() {}\n```\n```rust\nfn b() {}\n```\n";
        let files = [("docs/SUMMARY.md", "[A](a.md)"), ("docs/a.md", page), ("x/a.rs", "fn a() {}\nfn c() {}\n")];
        assert_eq!(messages(&files), ["docs/a.md:5: shows Rust that no file of the repository has as it stands"]);
    }

    #[test]
    fn a_link_that_leads_nowhere_is_found() {
        let page = "[a](c.md)\n[b](b.md#c)\n[name]: ../x\n";
        let bad = [("docs/SUMMARY.md", "[A](a.md) [B](b.md)"), ("docs/a.md", page), ("docs/b.md", "# B\n")];
        let expected = [
            "docs/a.md:1: links to 'c.md', which is not there",
            "docs/a.md:2: links to 'b.md#c', which has no such heading",
            "docs/a.md:3: links to '../x', which is not there",
        ];
        assert_eq!(messages(&bad), expected);
    }

    #[test]
    fn the_book_has_every_page_but_decisions() {
        let files = [("docs/SUMMARY.md", ""), ("docs/a.md", ""), ("docs/decisions/0001-a.md", ""), ("README.md", "")];
        assert_eq!(messages(&files), ["docs/SUMMARY.md: does not list docs/a.md"]);
        assert_eq!(messages(&[("README.md", "")]), ["docs/SUMMARY.md: is missing"]);
    }
}
