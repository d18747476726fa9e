//! One name, one type: two public types have two names unless `xtask/names.txt` says why not, and types of ours keep theirs
//! where they are imported. Where two of one name meet in a file, the module is named with one of them.

use std::collections::BTreeMap;

use syn::visit::{self, Visit};

use crate::repository::{Finding, Repository};

/// The names that stay, each with its crates and the reason.
const LIST: &str = "xtask/names.txt";

/// Every import of a type of ours under another name, and every name that is one too many.
pub(crate) fn check(repository: &Repository) -> Vec<Finding> {
    let sources = || repository.sources().filter(|(path, _)| path.starts_with("crates/"));
    let renamed = sources().flat_map(|(path, text)| renamed(path, text));
    let list = repository.text(LIST).unwrap_or_default();
    renamed.chain(shared(&names(sources()), list)).collect()
}

/// By name, the files in which public types have it.
type Names<'a> = BTreeMap<String, Vec<&'a str>>;

fn names<'a>(sources: impl Iterator<Item = (&'a str, &'a str)>) -> Names<'a> {
    let mut names = Names::new();
    for (path, text) in sources {
        let mut types = Types { found: Vec::new() };
        // What cannot be read is reported where its imports are looked at.
        if let Ok(file) = syn::parse_file(text) {
            types.visit_file(&file);
        }
        types.found.into_iter().for_each(|name| names.entry(name).or_default().push(path));
    }
    names
}

/// The names of two types that are not in the list as they are found, and entries of the list that are not needed.
fn shared(names: &Names<'_>, list: &str) -> Vec<Finding> {
    let lines = list.lines().enumerate().filter(|(_, line)| !line.starts_with('#'));
    let mut listed = BTreeMap::new();
    let mut findings = Vec::new();
    for (number, line) in lines {
        let mut parts = line.splitn(3, ": ");
        match (parts.next(), parts.next(), parts.next()) {
            (Some(name), Some(crates), Some(reason)) if !reason.is_empty() && listed.insert(name, crates).is_none() => {
            }
            _ => findings.push(Finding::at(LIST, number + 1, "is not 'NAME: CRATE CRATE..: REASON' for another name")),
        }
    }
    for (name, paths) in names.iter().filter(|(_, paths)| paths.len() > 1) {
        let of = |path: &&str| path.split('/').nth(1).unwrap_or_default().trim_start_matches("stead-").to_owned();
        let mut crates: Vec<String> = paths.iter().map(of).collect();
        crates.sort();
        let crates = crates.join(" ");
        if listed.remove(name.as_str()) != Some(crates.as_str()) {
            let others = paths[1..].join(", ");
            let message =
                format!("'{name}' is a type in {others} as well; {LIST} does not say why ('{name}: {crates}: ..')");
            findings.push(Finding::of(paths[0], message));
        }
    }
    findings
        .extend(listed.into_keys().map(|name| Finding::of(LIST, format!("no two public types are called '{name}'"))));
    findings
}

/// The public types of a file, tests aside.
struct Types {
    found: Vec<String>,
}

impl Types {
    fn note(&mut self, visibility: &syn::Visibility, name: &syn::Ident) {
        if matches!(visibility, syn::Visibility::Public(_)) {
            self.found.push(name.to_string());
        }
    }
}

impl<'ast> Visit<'ast> for Types {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        match item {
            syn::Item::Struct(of) => self.note(&of.vis, &of.ident),
            syn::Item::Enum(of) => self.note(&of.vis, &of.ident),
            syn::Item::Trait(of) => self.note(&of.vis, &of.ident),
            syn::Item::Type(of) => self.note(&of.vis, &of.ident),
            // Tests are modules of their own.
            syn::Item::Mod(of) if of.ident != "tests" => visit::visit_item_mod(self, of),
            _ => {}
        }
    }
}

fn renamed(path: &str, text: &str) -> Vec<Finding> {
    let file = match syn::parse_file(text) {
        Ok(file) => file,
        Err(error) => return vec![Finding::of(path, error.to_string())],
    };
    let mut imports = Imports { found: Vec::new() };
    imports.visit_file(&file);
    let finding = |(name, other): (String, String)| {
        Finding::of(path, format!("imports '{name}' as '{other}': name its module instead, as in `module::{name}`"))
    };
    imports.found.into_iter().map(finding).collect()
}

struct Imports {
    found: Vec<(String, String)>,
}

impl Imports {
    fn tree(&mut self, tree: &syn::UseTree) {
        match tree {
            syn::UseTree::Path(path) => self.tree(&path.tree),
            syn::UseTree::Group(group) => group.items.iter().for_each(|item| self.tree(item)),
            syn::UseTree::Rename(name) if is_type(&name.ident) && is_type(&name.rename) => {
                self.found.push((name.ident.to_string(), name.rename.to_string()));
            }
            syn::UseTree::Rename(_) | syn::UseTree::Name(_) | syn::UseTree::Glob(_) => {}
        }
    }
}

impl<'ast> Visit<'ast> for Imports {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if let syn::UseTree::Path(path) = &item.tree
            && is_ours(&path.ident)
        {
            self.tree(&item.tree);
        }
        visit::visit_item_use(self, item);
    }
}

fn is_ours(root: &syn::Ident) -> bool {
    let root = root.to_string();
    root.starts_with("stead") || matches!(root.as_str(), "crate" | "self" | "super")
}

fn is_type(name: &syn::Ident) -> bool {
    let name = name.to_string();
    name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_keep_their_names() {
        let repository = Repository::read().expect("the repository is readable");
        let findings = check(&repository);
        assert!(findings.is_empty(), "{findings:#?}");
    }

    #[test]
    fn a_name_of_two_public_types_needs_a_reason() {
        let one = "pub struct Kind; pub(crate) enum Own {} mod tests { pub struct Kind; } pub mod more { pub trait Other {} }";
        let files = [
            ("crates/stead-a/src/x.rs", one),
            ("crates/stead-a/src/y.rs", "pub enum Kind {} struct Own;"),
            ("crates/b/src/x.rs", "pub type Kind = u8;"),
        ];
        let names_of = |files: &[(&'static str, &'static str)]| names(files.iter().copied());
        assert_eq!(names_of(&files).keys().collect::<Vec<_>>(), ["Kind", "Other"]);
        let found = |count: usize, list: &str| {
            shared(&names_of(&files[..count]), list).iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        };
        let unlisted = "crates/stead-a/src/x.rs: 'Kind' is a type in crates/stead-a/src/y.rs as well; \
                        xtask/names.txt does not say why ('Kind: a a: ..')";
        assert_eq!(found(2, ""), unlisted);
        assert_eq!(found(2, "Kind: a b: of both"), unlisted, "it has other crates");
        assert_eq!(found(2, "# for readers\nKind: a a: of both"), "");
        assert_eq!(found(3, "Kind: a a b: of all"), "");
        assert!(found(3, "Kind: a a: of both").contains("('Kind: a a b: ..')"));
        assert_eq!(found(1, "Kind: a a: of both"), "xtask/names.txt: no two public types are called 'Kind'");
        for wrong in ["Kind: a a", "Kind: a a: ", "Kind: a a: one\nKind: a a: another"] {
            assert!(found(2, wrong).contains("is not 'NAME: CRATE CRATE..: REASON'"), "{wrong}");
        }
    }

    #[test]
    fn imports_under_another_name_are_found() {
        for (text, count) in [
            ("use stead_core::value::Value as Stated;", 1),
            ("use crate::{text::{Entry as Member, Kind}, a::Part as Other};", 2),
            ("mod tests { use super::Kind as Form; }", 1),
            ("use stead_core::graph::Resources as _; use serde_json::Value as Json; use crate::codes as own;", 0),
        ] {
            assert_eq!(renamed("f.rs", text).len(), count, "{text}");
        }
    }
}
