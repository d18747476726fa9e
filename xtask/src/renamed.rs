//! One name, one type: two public types of a crate have two names, and types of ours keep theirs where they are imported.
//! Where two of one name meet in a file, the module is named with one of them.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};

use crate::repository::{Finding, Repository};

/// The crates and the names that two modules of them share: the module is a part of the name. They are nodes of a tree of text and
/// of a graph, entries of an object and of a bundle, and what scripts, classes, manifests and MOF, which are languages of their own, have alike.
const KNOWN_BY_MODULE: [(&str, &str); 6] = [
    ("stead-core", "Entry"),
    ("stead-core", "Node"),
    ("stead-powershell-reader", "Entry"),
    ("stead-powershell-reader", "Modules"),
    ("stead-powershell-reader", "Script"),
    ("stead-powershell-reader", "Value"),
];

/// How many names public types of more than one crate have, at most: the crate tells what a `Status` or an `Inventory` is of.
const SHARED_BY_CRATES: usize = 93;

/// Every import of a type of ours under another name, and every name that is one too many.
pub(crate) fn check(repository: &Repository) -> Vec<Finding> {
    let sources = || repository.sources().filter(|(path, _)| path.starts_with("crates/"));
    let renamed = sources().flat_map(|(path, text)| renamed(path, text));
    renamed.chain(shared(&names(sources()), &KNOWN_BY_MODULE, SHARED_BY_CRATES)).collect()
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

fn shared(names: &Names<'_>, known_by_module: &[(&str, &str)], most: usize) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut twice = BTreeSet::new();
    let mut shared = Vec::new();
    for (name, paths) in names {
        let mut crates: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for path in paths {
            crates.entry(path.split('/').nth(1).unwrap_or_default()).or_default().push(path);
        }
        shared.extend((crates.len() > 1).then_some(name.as_str()));
        for (of, paths) in crates.into_iter().filter(|(_, paths)| paths.len() > 1) {
            twice.insert((of, name.as_str()));
            if !known_by_module.contains(&(of, name)) {
                let message = format!("'{of}' has another public type '{name}', in {}", paths[1..].join(", "));
                findings.push(Finding::of(paths[0], message));
            }
        }
    }
    let over = known_by_module.iter().filter(|known| !twice.contains(*known));
    findings.extend(over.map(|(of, name)| Finding::of("xtask/src/renamed.rs", format!("'{of}' has one '{name}'"))));
    if shared.len() > most {
        let message = format!(
            "{} names are those of public types in two crates, not {most}: {}",
            shared.len(),
            shared.join(", ")
        );
        findings.push(Finding::of("xtask/src/renamed.rs", message));
    }
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
    fn a_name_of_two_public_types_of_a_crate_is_found() {
        let one = "pub struct Kind; pub(crate) enum Own {} mod tests { pub struct Kind; } pub mod more { pub trait Other {} }";
        let files = [("crates/a/src/x.rs", one), ("crates/a/src/y.rs", "pub enum Kind {} struct Own;")];
        let names_of = |files: &[(&'static str, &'static str)]| names(files.iter().copied());
        assert_eq!(names_of(&files).keys().collect::<Vec<_>>(), ["Kind", "Other"]);
        let found = |files: &[(&'static str, &'static str)], known: &[(&str, &str)], most| {
            shared(&names_of(files), known, most).iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        };
        let twice = "crates/a/src/x.rs: 'a' has another public type 'Kind', in crates/a/src/y.rs";
        assert_eq!(found(&files, &[], 0), twice);
        assert_eq!(found(&files, &[("a", "Kind")], 0), "");
        assert_eq!(found(&files[..1], &[("a", "Kind")], 0), "xtask/src/renamed.rs: 'a' has one 'Kind'");
        let crates = [files[0], ("crates/b/src/x.rs", "pub type Kind = u8;")];
        let many = "xtask/src/renamed.rs: 1 names are those of public types in two crates, not 0: Kind";
        assert_eq!((found(&crates, &[], 0), found(&crates, &[], 1)), (many.to_owned(), String::new()));
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
