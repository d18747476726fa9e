//! One crate names the interfaces of an operating system; the others go by what that gives them.

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

use crate::repository::{Finding, Package, Repository};

/// The crate that may.
const ROOF: &str = "stead-system";

/// Packages that are about one family of systems.
const OF_A_SYSTEM: &[&str] = &["libc", "nix", "rustix", "signal-hook", "zbus"];

const REMEDY: &str = "which is specific to the operating system: use stead-system, or add it to that";

/// Every place in a crate that ships, but the roof and tests, that names an operating system.
pub(crate) fn check(repository: &Repository, ships: impl Fn(&str) -> bool) -> Vec<Finding> {
    let members = repository.members().filter(|member| ships(member.name()) && member.name() != ROOF);
    members.flat_map(|member| of_member(repository, member)).collect::<Vec<Finding>>()
}

fn of_member(repository: &Repository, member: Package<'_>) -> Vec<Finding> {
    let manifest = member.folder() + "/Cargo.toml";
    let needs = member.needs().filter(|need| OF_A_SYSTEM.contains(need));
    let mut findings: Vec<Finding> =
        needs.map(|need| Finding::of(&manifest, format!("needs {need}, {REMEDY}"))).collect();
    let root = member.folder() + "/src/";
    let sources = repository.sources().filter(|(path, _)| path.starts_with(&root) && !path.ends_with("/tests.rs"));
    findings.extend(sources.flat_map(|(path, text)| named(path, text)));
    findings
}

/// The places of one file.
fn named(path: &str, text: &str) -> Vec<Finding> {
    match syn::parse_file(text) {
        Ok(file) => {
            let mut names = Names { path, found: Vec::new() };
            names.visit_file(&file);
            names.found
        }
        Err(error) => vec![Finding::of(path, error.to_string())],
    }
}

/// Returns whether a path is one of a system: of a package for it, or below `std::os`.
fn is_of_a_system(parts: &[String]) -> bool {
    match parts {
        [first, second, ..] if matches!(first.as_str(), "std" | "core") => second == "os",
        [first, ..] => OF_A_SYSTEM.iter().any(|package| package.replace('-', "_") == *first),
        [] => false,
    }
}

struct Names<'p> {
    path: &'p str,
    found: Vec<Finding>,
}

impl Names<'_> {
    fn add(&mut self, parts: &[String], line: usize) {
        if is_of_a_system(parts) {
            self.found.push(Finding::at(self.path, line, format!("names {}, {REMEDY}", parts.join("::"))));
        }
    }

    fn tree(&mut self, tree: &syn::UseTree, before: &mut Vec<String>, line: usize) {
        match tree {
            syn::UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.tree(&path.tree, before, line);
                before.pop();
            }
            syn::UseTree::Group(group) => group.items.iter().for_each(|item| self.tree(item, before, line)),
            syn::UseTree::Name(name) => self.add(&[before.as_slice(), &[name.ident.to_string()]].concat(), line),
            syn::UseTree::Rename(name) => self.add(&[before.as_slice(), &[name.ident.to_string()]].concat(), line),
            syn::UseTree::Glob(_) => self.add(before, line),
        }
    }

    /// A macro gets no syntax but tokens: what looks like a path in it counts as one.
    fn tokens(&mut self, tokens: TokenStream) {
        let (mut parts, mut line): (Vec<String>, usize) = (Vec::new(), 0);
        for token in tokens {
            match token {
                TokenTree::Punct(mark) if mark.as_char() == ':' && !parts.is_empty() => parts.push(String::new()),
                TokenTree::Ident(name) => {
                    let goes_on = parts.last().is_some_and(String::is_empty);
                    parts.retain(|part| goes_on && !part.is_empty());
                    line = if parts.is_empty() { name.span().start().line } else { line };
                    parts.push(name.to_string());
                }
                other => {
                    parts.clear();
                    if let TokenTree::Group(group) = other {
                        self.tokens(group.stream());
                    }
                }
            }
            // Two names are enough to tell, and a path is reported once.
            let is_whole = parts.iter().filter(|part| !part.is_empty()).count() == 2;
            if is_whole && parts.last().is_some_and(|part| !part.is_empty()) {
                self.add(&parts, line);
            }
        }
    }
}

fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
        _ => false,
    })
}

impl<'ast> Visit<'ast> for Names<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_for_tests(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if !is_for_tests(&item.attrs) {
            self.tree(&item.tree, &mut Vec::new(), item.span().start().line);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let parts: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.add(&parts, path.span().start().line);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        self.tokens(called.tokens.clone());
        visit::visit_macro(self, called);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_name_a_system_is_found_and_tests_may() {
        let text = r#"use std::{fs, os::fd::OwnedFd};
use rustix::fs::OFlags as How;
fn f(file: &dyn std::os::fd::AsFd) {
    let _ = nix::unistd::getuid();
    println!("{}", signal_hook::consts::SIGINT + (std::os::raw::c_int::MIN));
    let _ = <u32 as From<zbus::Error>>::from;
    use libc::*;
}
#[cfg(not(test))]
mod shipped { use rustix::io; }
#[cfg(test)]
mod tests { use std::os::unix::fs::symlink; }
#[cfg(test)]
use rustix::process;
use std::fs::File;
mod os { pub mod unix {} }
use os::unix;
fn g() { format!("{:?}", fs::os_text(b"libc")); let nix = 1; dbg!(nix); }
"#;
        let found: Vec<(Option<usize>, String)> = named("f.rs", text)
            .into_iter()
            .map(|finding| {
                let message = finding.message.split(',').next().unwrap_or_default().to_owned();
                (finding.line, message)
            })
            .collect();
        let expected = [
            (1, "names std::os::fd::OwnedFd"),
            (2, "names rustix::fs::OFlags"),
            (3, "names std::os::fd::AsFd"),
            (4, "names nix::unistd::getuid"),
            (5, "names signal_hook::consts"),
            (5, "names std::os"),
            (6, "names zbus::Error"),
            (7, "names libc"),
            (10, "names rustix::io"),
        ];
        let expected: Vec<_> = expected.iter().map(|(line, text)| (Some(*line), (*text).to_owned())).collect();
        assert_eq!(found, expected);
    }
}
