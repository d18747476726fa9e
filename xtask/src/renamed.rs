//! Types of ours keep their names: where two of one name meet in a file, the module is named with one of them.

use syn::visit::{self, Visit};

use crate::repository::{Finding, Repository};

/// Every import of a type of ours under another name.
pub(crate) fn check(repository: &Repository) -> Vec<Finding> {
    let sources = repository.sources().filter(|(path, _)| path.starts_with("crates/"));
    sources.flat_map(|(path, text)| renamed(path, text)).collect()
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
