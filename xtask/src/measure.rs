//! Lengths: how long files and functions are, and how many public items say what they promise.
//!
//! Tests, benches, examples and `#[cfg(test)]` modules are left out. A function reaches from its signature to its closing
//! brace. A function that is nothing but one table, an array or a match with short arms, is listed and marked, not counted
//! as too long: cutting it up would not make it easier to read.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

use crate::repository::{Finding, Repository};

/// Above this, a function that is not a table is too long.
const LONG: usize = 60;
const VERY_LONG: usize = 100;
/// Nine of ten functions are at most this long.
const NINE_OF_TEN: usize = 30;
/// Arms of a table are at most this long.
const ARM: usize = 8;

/// The figures as text, and what is too long.
pub(crate) fn check(repository: &Repository) -> Result<(String, Vec<Finding>), String> {
    let mut by_crate: BTreeMap<String, Figures> = BTreeMap::new();
    let skipped = test_files(repository)?;
    for (path, text) in repository.sources() {
        if skipped
            .iter()
            .any(|skipped| path == skipped || path.starts_with(&format!("{}/", skipped.trim_end_matches(".rs"))))
        {
            continue;
        }
        let name = path.split_once("/src/").map_or(path, |(folder, _)| folder).rsplit('/').next().unwrap_or(path);
        by_crate.entry(name.to_owned()).or_default().add(path, text)?;
    }
    let mut total = Figures::default();
    for figures in by_crate.values() {
        total.absorb(figures);
    }
    Ok((table(&by_crate, &total), judge(&total)))
}

fn judge(total: &Figures) -> Vec<Finding> {
    let long = total.functions.iter().filter(|function| function.lines > LONG && !function.is_table);
    let mut findings: Vec<Finding> = long
        .map(|function| {
            Finding::at(&function.path, function.line, format!("{} has {} lines", function.name, function.lines))
        })
        .collect();
    let lengths = total.lengths();
    let ninth = quantile(&lengths, 90);
    if ninth > NINE_OF_TEN {
        let message = format!("nine of ten functions have up to {ninth} lines, more than {NINE_OF_TEN}");
        findings.push(Finding::of("crates", message));
    }
    findings
}

/// Files that are modules of tests: `#[cfg(test)] mod name;`.
fn test_files(repository: &Repository) -> Result<BTreeSet<String>, String> {
    let mut files = BTreeSet::new();
    for (path, text) in repository.sources() {
        let file = syn::parse_file(text).map_err(|error| format!("{path}: {error}"))?;
        let stem = path.trim_end_matches(".rs");
        let (folder, name) = stem.rsplit_once('/').unwrap_or(("", stem));
        let below = if ["mod", "lib", "main"].contains(&name) { folder } else { stem };
        for item in &file.items {
            if let syn::Item::Mod(module) = item
                && module.content.is_none()
                && is_test(&module.attrs)
            {
                files.insert(format!("{below}/{}.rs", module.ident));
            }
        }
    }
    Ok(files)
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let cfg_test = attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Path>().is_ok_and(|argument| argument.is_ident("test"));
        cfg_test || attribute.path().is_ident("test")
    })
}

#[derive(Clone, Debug)]
struct Function {
    path: String,
    line: usize,
    name: String,
    lines: usize,
    is_table: bool,
}

/// The numbers that were counted.
#[derive(Clone, Default, Debug)]
struct Figures {
    files: Vec<usize>,
    functions: Vec<Function>,
    public: usize,
    documented: usize,
}

impl Figures {
    fn add(&mut self, path: &str, text: &str) -> Result<(), String> {
        let file = syn::parse_file(text).map_err(|error| format!("{path}: {error}"))?;
        self.files.push(text.lines().count());
        Counter { path, figures: self }.visit_file(&file);
        Ok(())
    }

    fn absorb(&mut self, other: &Self) {
        self.files.extend(&other.files);
        self.functions.extend(other.functions.iter().cloned());
        self.public += other.public;
        self.documented += other.documented;
    }

    fn lengths(&self) -> Vec<usize> {
        self.functions.iter().map(|function| function.lines).collect()
    }
}

struct Counter<'a> {
    path: &'a str,
    figures: &'a mut Figures,
}

impl Counter<'_> {
    fn function(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let line = signature.span().start().line;
        self.figures.functions.push(Function {
            path: self.path.to_owned(),
            line,
            name: signature.ident.to_string(),
            lines: block.brace_token.span.close().end().line + 1 - line,
            is_table: is_table(block),
        });
    }

    fn item(&mut self, visibility: &syn::Visibility, attributes: &[syn::Attribute]) {
        if matches!(visibility, syn::Visibility::Public(_)) {
            self.figures.public += 1;
            self.figures.documented += usize::from(attributes.iter().any(|each| each.path().is_ident("doc")));
        }
    }
}

impl<'ast> Visit<'ast> for Counter<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_test(&module.attrs) {
            visit::visit_item_mod(self, module);
        } else if let Some(lines) = self.figures.files.last_mut() {
            *lines -= lines_of(module.span());
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !is_test(&item.attrs) {
            self.item(&item.vis, &item.attrs);
            self.function(&item.sig, &item.block);
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.item(&item.vis, &item.attrs);
        self.function(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.function(&item.sig, block);
        }
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.item(&item.vis, &item.attrs);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.item(&item.vis, &item.attrs);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.item(&item.vis, &item.attrs);
        visit::visit_item_trait(self, item);
    }
}

/// Returns whether the body is a single array, `vec!`, or match with short arms.
fn is_table(block: &syn::Block) -> bool {
    let [syn::Stmt::Expr(expression, None)] = block.stmts.as_slice() else { return false };
    let inner = match expression {
        syn::Expr::Reference(reference) => reference.expr.as_ref(),
        other => other,
    };
    match inner {
        syn::Expr::Array(_) => true,
        syn::Expr::Macro(called) => called.mac.path.is_ident("vec"),
        syn::Expr::Match(table) => table.arms.iter().all(|arm| lines_of(arm.span()) <= ARM),
        _ => false,
    }
}

fn lines_of(span: proc_macro2::Span) -> usize {
    span.end().line + 1 - span.start().line
}

/// The smallest value that this percentage of all values does not exceed; 0 for no values.
fn quantile(values: &[usize], percent: usize) -> usize {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or(0)
}

fn table(by_crate: &BTreeMap<String, Figures>, total: &Figures) -> String {
    let mut text = String::from(
        "crate              files  lines: med   p90   max     fns   med   p90   p99   max      >60        >100    pub doc\n",
    );
    let rows = by_crate.iter().map(|(name, figures)| (name.as_str(), figures));
    for (name, figures) in rows.chain([("total", total)]) {
        text.push_str(&row(name, figures));
    }
    let mut long: Vec<&Function> = total.functions.iter().filter(|function| function.lines > LONG).collect();
    long.sort_by_key(|function| std::cmp::Reverse(function.lines));
    for Function { path, line, name, lines, is_table } in long {
        let mark = if *is_table { " (table)" } else { "" };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{lines:>5} lines  {name}{mark}  {path}:{line}");
    }
    text
}

fn row(name: &str, figures: &Figures) -> String {
    let lengths = figures.lengths();
    let above = |limit: usize| lengths.iter().filter(|lines| **lines > limit).count();
    let (long, very_long) = (above(LONG), above(VERY_LONG));
    format!(
        "{name:<18} {:>5} {:>11} {:>5} {:>5} {:>7} {:>5} {:>5} {:>5} {:>5} {:>4} {:>5} {:>4} {:>5} {:>7}\n",
        figures.files.len(),
        quantile(&figures.files, 50),
        quantile(&figures.files, 90),
        quantile(&figures.files, 100),
        lengths.len(),
        quantile(&lengths, 50),
        quantile(&lengths, 90),
        quantile(&lengths, 99),
        quantile(&lengths, 100),
        long,
        share(long, lengths.len()),
        very_long,
        share(very_long, lengths.len()),
        share(figures.documented, figures.public),
    )
}

/// A share in per cent with one decimal.
fn share(part: usize, whole: usize) -> String {
    let tenths = (part * 1000 + whole / 2).checked_div(whole).unwrap_or(0);
    format!("{}.{}%", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_short() {
        let repository = Repository::read().expect("the repository is readable");
        let (text, findings) = check(&repository).expect("the check runs");
        assert!(findings.is_empty(), "{findings:#?}\n{text}");
    }

    fn figures(text: &str) -> Figures {
        let mut figures = Figures::default();
        figures.add("x.rs", text).expect("it is Rust");
        figures
    }

    #[test]
    fn a_function_reaches_from_signature_to_brace_and_tests_are_left_out() {
        let found = figures(
            "/// Doc.\npub fn a() {\n}\n#[cfg(test)]\nmod tests { fn b() {} }\n#[test]\nfn c() {}\npub struct D;\n",
        );
        assert_eq!(found.lengths(), [2]);
        assert_eq!(found.files, [6]);
        assert_eq!((found.public, found.documented), (2, 1));
    }

    #[test]
    fn tables_are_known() {
        let table = |text: &str| figures(text).functions[0].is_table;
        assert!(table("fn a() -> [u8; 1] { [1] }"));
        assert!(table("fn a() -> &'static [u8] { &[1] }"));
        assert!(table("fn a() -> Vec<u8> { vec![1] }"));
        assert!(table("fn a(x: u8) -> u8 { match x { 1 => 2, _ => 3 } }"));
        assert!(!table("fn a(x: u8) -> u8 { let y = x; match y { 1 => 2, _ => 3 } }"));
        let long_arm = "\n".repeat(ARM);
        assert!(!table(&format!("fn a(x: u8) -> u8 {{ match x {{ _ => {{ {long_arm} 3 }} }} }}")));
    }

    #[test]
    fn long_functions_are_found_and_tables_are_not() {
        let body = "    x();\n".repeat(LONG);
        let rows = "    1,\n".repeat(LONG);
        let text = format!("fn long() {{\n{body}}}\nfn table() -> Vec<u8> {{ vec![\n{rows}] }}\nfn s() {{}}\n");
        let found: Vec<String> = judge(&figures(&text)).into_iter().map(|finding| finding.message).collect();
        assert_eq!(found[0], "long has 62 lines");
        assert_eq!(found.len(), 2, "the other is about nine of ten: {found:?}");
    }

    #[test]
    fn quantiles_are_values_that_occur() {
        let values: Vec<usize> = (1..=10).collect();
        assert_eq!((quantile(&values, 50), quantile(&values, 90), quantile(&values, 100)), (5, 9, 10));
        assert_eq!(quantile(&[], 50), 0);
    }
}
