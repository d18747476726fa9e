//! Diagnostic codes: each is declared once, says something, is shown by at least one case, and has its place in the book.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

use crate::repository::{Finding, Repository};

/// Codes that are declared twice, say nothing, that no file below `corpus/` mentions, or that no page below `docs/codes/` has.
pub(crate) fn check(repository: &Repository) -> Result<Vec<Finding>, String> {
    let mut declared = Vec::new();
    for (path, text) in repository.sources() {
        declared.extend(declared_in(path, text)?);
    }
    if declared.is_empty() {
        return Err("no code is declared anywhere: has the macro been renamed?".to_owned());
    }
    let cases = repository.files.iter().filter(|(path, _)| path.starts_with("corpus/"));
    let cases: Vec<&str> = cases.map(|(_, text)| text.as_str()).collect();
    let mut findings = judge(&declared, &cases);
    let pages = repository.files.iter().filter(|(path, _)| path.starts_with("docs/codes/"));
    findings.extend(unexplained(&declared, &pages.map(|(_, text)| text.as_str()).collect::<String>()));
    Ok(findings)
}

/// Codes that the pages of the book lack, which are printed from those that the program knows.
fn unexplained(declared: &[Declared], pages: &str) -> Vec<Finding> {
    let headings: BTreeSet<&str> = pages.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    let missing = declared.iter().filter(|code| !headings.contains(code.id.as_str()));
    let message =
        |id: &str| format!("{id} is not in docs/codes: the program does not know it (crates/stead/src/codes.rs)");
    missing.map(|code| Finding::at(&code.path, code.line, message(&code.id))).collect()
}

/// One entry of a `codes!`.
#[derive(Debug)]
struct Declared {
    path: String,
    line: usize,
    id: String,
    /// Title and explanation.
    texts: Vec<String>,
}

fn judge(declared: &[Declared], cases: &[&str]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut first: BTreeMap<&str, &Declared> = BTreeMap::new();
    for code in declared {
        let id = code.id.as_str();
        let mut found = |message: String| findings.push(Finding::at(&code.path, code.line, message));
        if !is_code(id) {
            found(format!("'{id}' is not a code: E or W and four digits"));
        }
        if let Some(other) = first.get(id) {
            found(format!("{id} is declared in {}:{} too", other.path, other.line));
            continue;
        }
        if code.texts.len() != 2 || code.texts.iter().any(|text| text.trim().is_empty()) {
            found(format!("{id} has no title or no explanation"));
        }
        if !cases.iter().any(|case| case.contains(id)) {
            found(format!("no case below corpus/ shows {id}"));
        }
        first.insert(id, code);
    }
    findings
}

fn is_code(text: &str) -> bool {
    let digits = text.strip_prefix(['E', 'W']).unwrap_or_default();
    digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn declared_in(path: &str, text: &str) -> Result<Vec<Declared>, String> {
    let file = syn::parse_file(text).map_err(|error| format!("{path}: {error}"))?;
    let mut visitor = Macros { path, declared: Vec::new() };
    visitor.visit_file(&file);
    Ok(visitor.declared)
}

struct Macros<'a> {
    path: &'a str,
    declared: Vec<Declared>,
}

impl<'ast> Visit<'ast> for Macros<'_> {
    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        if called.path.segments.last().is_some_and(|segment| segment.ident == "codes") {
            self.declared.extend(entries(self.path, called.tokens.clone()));
        }
        visit::visit_macro(self, called);
    }
}

/// The entries `NAME = "E0101", "title", "explanation";`.
fn entries(path: &str, tokens: TokenStream) -> Vec<Declared> {
    let mut entries = Vec::new();
    let mut literals: Vec<(usize, String)> = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Literal(literal) => {
                let line = literal.span().start().line;
                literals.push((
                    line,
                    syn::parse_str::<syn::LitStr>(&literal.to_string())
                        .map_or_else(|_| literal.to_string(), |text| text.value()),
                ));
            }
            TokenTree::Punct(punct) if punct.as_char() == ';' => {
                let mut each = literals.drain(..);
                if let Some((line, id)) = each.next() {
                    entries.push(Declared {
                        path: path.to_owned(),
                        line,
                        id,
                        texts: each.map(|(_, text)| text).collect(),
                    });
                }
            }
            _ => {}
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_declared_once_and_has_a_case() {
        let repository = Repository::read().expect("the repository is readable");
        let findings = check(&repository).expect("the check runs");
        assert!(findings.is_empty(), "{findings:#?}");
    }

    fn messages(text: &str, cases: &[&str]) -> Vec<String> {
        let declared = declared_in("x.rs", text).expect("it is Rust");
        judge(&declared, cases).into_iter().map(|finding| finding.to_string()).collect()
    }

    #[test]
    fn good_codes_pass() {
        let text = "codes! {\n/// A.\nA = \"E0001\", \"a\", \"why a\";\nB = \"W0002\", \"b\", r#\"why b\"#;\n}";
        assert!(messages(text, &["error[E0001]: a", "W0002"]).is_empty());
    }

    #[test]
    fn a_code_that_the_program_does_not_know_is_found() {
        let declared = declared_in("x.rs", "codes! { A = \"E0001\", \"a\", \"why\"; B = \"E0002\", \"b\", \"why\"; }");
        let found = unexplained(&declared.expect("it is Rust"), "# Codes\n\n## E0001\n\nSee also E0002.\n");
        assert_eq!(
            found.iter().map(|each| each.message.as_str().split(' ').next()).collect::<Vec<_>>(),
            [Some("E0002")]
        );
    }

    #[test]
    fn bad_codes_are_found() {
        let text = "mod a { crate::codes! { A = \"E0001\", \"a\", \"why\"; B = \"E0001\", \"b\", \"why\"; } }
            stead_core::codes! { C = \"E2\", \"c\", \"why\"; D = \"E0004\", \"d\", \" \"; }";
        let expected = [
            "x.rs:1: E0001 is declared in x.rs:1 too",
            "x.rs:2: 'E2' is not a code: E or W and four digits",
            "x.rs:2: no case below corpus/ shows E2",
            "x.rs:2: E0004 has no title or no explanation",
        ];
        assert_eq!(messages(text, &["E0001 E0004"]), expected);
    }
}
