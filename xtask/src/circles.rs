//! Modules that import each other: neither can be read, tested or moved without the other.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};

use crate::repository::{Finding, Repository};

/// The circles among the modules of every crate. A parent and what is within it may know each other.
pub(crate) fn check(repository: &Repository) -> Result<Vec<Finding>, String> {
    let mut findings = Vec::new();
    for member in repository.members() {
        let root = member.folder() + "/src/";
        let files = repository.sources().filter_map(|(path, text)| Some((path.strip_prefix(&root)?, text)));
        findings.extend(circles(files)?.into_iter().map(|circle| Finding::of(&root, circle.join(" <-> "))));
    }
    Ok(findings)
}

/// A module by its path from the root of the crate.
type Module = Vec<String>;

/// The paths that a file of a crate names, tests within it aside: those into the crate, and those out of it.
pub(crate) fn named(path: &str, text: &str) -> Result<(BTreeSet<Module>, BTreeSet<Module>), String> {
    let module = module_of(path);
    let file = syn::parse_file(text).map_err(|error| format!("{path}: {error}"))?;
    let mut paths = Paths { module: &module, found: BTreeSet::new(), foreign: BTreeSet::new() };
    paths.visit_file(&file);
    Ok((paths.found, paths.foreign))
}

/// The sets of sibling modules that reach each other, by the paths of their files from `src`.
fn circles<'a>(files: impl Iterator<Item = (&'a str, &'a str)>) -> Result<Vec<Vec<String>>, String> {
    let mut uses: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    for (path, text) in files {
        uses.entry(module_of(path)).or_default().extend(named(path, text)?.0);
    }
    let modules: BTreeSet<Module> = uses.keys().cloned().collect();
    let edges = uses.iter().flat_map(|(module, used)| {
        let modules = &modules;
        used.iter().filter_map(move |used| between_siblings(module, used, modules))
    });
    Ok(components(&edges.collect()))
}

fn module_of(path: &str) -> Module {
    let path = path.trim_end_matches(".rs").trim_end_matches("/mod");
    path.split('/').filter(|part| !matches!(*part, "lib" | "main")).map(str::to_owned).collect()
}

/// The two modules beside each other that a use goes between; nothing if it stays within one or goes to a parent.
fn between_siblings(module: &Module, used: &Module, modules: &BTreeSet<Module>) -> Option<(Module, Module)> {
    let common = module.iter().zip(used).take_while(|(one, other)| one == other).count();
    let (from, to) = (module.get(..=common)?.to_vec(), used.get(..=common)?.to_vec());
    modules.contains(&to).then_some((from, to))
}

fn components(edges: &BTreeSet<(Module, Module)>) -> Vec<Vec<String>> {
    let mut reached: BTreeSet<(&Module, &Module)> = edges.iter().map(|(from, to)| (from, to)).collect();
    loop {
        let further = reached.iter().flat_map(|(from, over)| {
            edges.iter().filter(move |(start, _)| start == *over).map(move |(_, to)| (*from, to))
        });
        let all: BTreeSet<_> = reached.iter().copied().chain(further).collect();
        if all.len() == reached.len() {
            break;
        }
        reached = all;
    }
    let of = |one: &Module| -> Vec<String> {
        let mutual = reached.iter().filter(|(from, to)| *from == one && reached.contains(&(*to, one)));
        mutual.map(|(_, to)| to.join("::")).collect()
    };
    let circles: BTreeSet<Vec<String>> = edges.iter().map(|(from, _)| of(from)).filter(|all| all.len() > 1).collect();
    circles.into_iter().collect()
}

/// Every path that a file names: into the crate as the path from its root, and others as they are written.
struct Paths<'a> {
    module: &'a Module,
    found: BTreeSet<Module>,
    foreign: BTreeSet<Module>,
}

impl Paths<'_> {
    fn add(&mut self, path: &[String]) {
        let supers = path.iter().take_while(|part| *part == "super").count();
        let path = match path.first().map(String::as_str) {
            Some("crate") => path.get(1..).unwrap_or_default().to_vec(),
            Some("super") => {
                let base = self.module.len().saturating_sub(supers);
                let rest = path.get(supers..).unwrap_or_default();
                self.module.iter().take(base).chain(rest).cloned().collect()
            }
            _ => {
                self.foreign.insert(path.to_vec());
                return;
            }
        };
        self.found.insert(path);
    }

    fn tree(&mut self, tree: &syn::UseTree, before: &mut Vec<String>) {
        match tree {
            syn::UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.tree(&path.tree, before);
                before.pop();
            }
            syn::UseTree::Group(group) => group.items.iter().for_each(|item| self.tree(item, before)),
            syn::UseTree::Name(name) => self.add(&[before.as_slice(), &[name.ident.to_string()]].concat()),
            syn::UseTree::Rename(name) => self.add(&[before.as_slice(), &[name.ident.to_string()]].concat()),
            syn::UseTree::Glob(_) => self.add(before),
        }
    }
}

impl<'ast> Visit<'ast> for Paths<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        // Tests within a file may use anything.
        if !module.attrs.iter().any(|attribute| attribute.path().is_ident("cfg")) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.tree(&item.tree, &mut Vec::new());
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let parts: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.add(&parts);
        visit::visit_path(self, path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_do_not_import_each_other() {
        let repository = Repository::read().expect("the repository is readable");
        let findings = check(&repository).expect("the check runs");
        assert!(findings.is_empty(), "{findings:#?}");
    }

    #[test]
    fn circles_are_found_between_siblings_and_not_with_parents() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c; use crate::a::A;"),
            ("a/mod.rs", "mod x; mod y; use crate::b::B; use x::X;"),
            ("a/x.rs", "use super::y::Y; use super::A;"),
            ("a/y.rs", "fn f() -> super::x::X { panic!() }"),
            ("b.rs", "use crate::c::{C, self};"),
            ("c.rs", "use crate::a; mod tests { use crate::b; }"),
            ("d.rs", "use crate::a; #[cfg(test)] mod tests { use crate::e; }"),
            ("e.rs", "use crate::d;"),
        ];
        let found = circles(files.into_iter()).expect("it is Rust");
        assert_eq!(found, [vec!["a", "b", "c"], vec!["a::x", "a::y"]]);
    }
}
