//! The file of a table, and the line by which nftables.service reads it.

use stead_host::provider::Context;

use crate::edit::{FileEdit, Missing, glob};
use crate::part::lines::ending;

/// The folder of the files.
pub(super) const FOLDER: &str = "/etc/nftables.d";

/// The files that nftables.service reads, of which a distribution has one.
const MAINS: [&str; 2] = ["/etc/sysconfig/nftables.conf", "/etc/nftables.conf"];

const INCLUDE: &str = r#"include "/etc/nftables.d/*.nft""#;

/// The file that nftables.service reads on the system that is managed.
pub(super) fn main_file(cx: &Context) -> &'static str {
    let [redhat, usual] = MAINS;
    if cx.system_root.status(redhat).is_some() { redhat } else { usual }
}

/// A table by its family and its name.
pub(super) struct Table<'a> {
    pub(super) family: &'a str,
    pub(super) name: &'a str,
}

impl<'a> Table<'a> {
    /// The lines of a text in front of the content.
    pub(super) const LINES_BEFORE: usize = 4;

    pub(super) fn path(&self) -> String {
        format!("{FOLDER}/{}-{}.nft", self.family, self.name)
    }

    /// The table whose file has this name.
    pub(super) fn of_file(name: &'a str) -> Option<Self> {
        let (family, name) = name.strip_suffix(".nft")?.split_once('-')?;
        Some(Self { family, name })
    }

    /// The text that loads the table in place of one of the same name, as one transaction.
    pub(super) fn text(&self, content: &str) -> String {
        let newline = if content.is_empty() || content.ends_with('\n') { "" } else { "\n" };
        format!("{}{content}{newline}}}\n", self.head())
    }

    /// The content in such a text, or all of another one.
    pub(super) fn content<'t>(&self, text: &'t str) -> &'t str {
        text.strip_prefix(&self.head()).and_then(|rest| rest.strip_suffix("}\n")).unwrap_or(text)
    }

    fn head(&self) -> String {
        let table = format!("table {} {}", self.family, self.name);
        format!("# Managed by stead.\n{table}\ndelete {table}\n{table} {{\n")
    }

    /// Returns whether the main file reads that of the table, and takes nothing away behind it.
    pub(super) fn is_read_by(&self, main: &str) -> bool {
        let code = main.lines().map(|line| line.split('#').next().unwrap_or_default());
        let statements: Vec<&str> = code.flat_map(|line| line.split(';')).map(str::trim).collect();
        let undoes = |statement: &str| {
            statement.split_whitespace().next().is_some_and(|verb| ["flush", "delete", "destroy"].contains(&verb))
        };
        let undone = statements.iter().rposition(|statement| undoes(statement));
        let behind = statements.get(undone.map_or(0, |at| at + 1)..).unwrap_or_default();
        behind.iter().filter_map(|line| included(line)).any(|pattern| {
            // Relative paths begin where nft looks for them.
            let pattern = if pattern.starts_with('/') { pattern.to_owned() } else { format!("/etc/{pattern}") };
            glob(&pattern).is_some_and(|glob| glob.is_match(self.path()))
        })
    }

    /// Has the main file read that of the table.
    pub(super) fn include(&self, main: &str) -> FileEdit<'_> {
        let edit = move |text: &str| {
            if self.is_read_by(text) {
                return text.to_owned();
            }
            let first = if text.is_empty() { "#!/usr/sbin/nft -f\n" } else { "" };
            let end = ending(text);
            let newline = if text.is_empty() || text.ends_with('\n') { "" } else { end };
            // A backslash at the end goes on with the next line, which is empty then.
            let goes_on = if text.trim_end_matches(['\r', '\n']).ends_with('\\') { end } else { "" };
            format!("{first}{text}{newline}{goes_on}{INCLUDE}{end}")
        };
        FileEdit { path: main.to_owned(), missing: Missing::create_if(true), edit: Box::new(edit) }
    }
}

/// The pattern of the files that a line includes.
fn included(line: &str) -> Option<&str> {
    let quoted = line.trim().strip_prefix("include")?.trim_start();
    let quote = quoted.chars().next().filter(|first| matches!(first, '"' | '\''))?;
    quoted.get(1..)?.split(quote).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_reads_the_file_unless_it_is_flushed_behind_it() {
        let table = Table { family: "inet", name: "filter" };
        let reads = [
            INCLUDE,
            "flush ruleset\ninclude \"nftables.d/*.nft\"\n",
            "include '/etc/nftables.d/inet-*'",
            "include \"/etc/nftables.d/inet-filter.nft\"\n# flush ruleset",
            "delete table ip old; include \"nftables.d/*.nft\" # all of them",
        ];
        let others = [
            "",
            "# include \"/etc/nftables.d/*.nft\"",
            "include \"/etc/nftables.d/ip-*.nft\"",
            "include \"/etc/nftables.d/*.nft\"\n  flush   ruleset\n",
            "include \"/etc/nftables.d/*.nft\"\nadd table inet zz; flush ruleset inet # all",
            "include \"/etc/nftables.d/*.nft\"\ndelete table inet filter\n",
            "add table inet zz \\\n",
        ];
        for main in reads {
            assert!(table.is_read_by(main), "{main}");
        }
        for main in others {
            assert!(!table.is_read_by(main), "{main}");
            let after = (table.include("/main").edit)(main);
            assert!(table.is_read_by(&after) && after.contains(main), "{after}");
        }
    }

    #[test]
    fn content_is_found_in_its_text() {
        let table = Table { family: "ip", name: "a" };
        for content in ["", "chain c {\n}\n"] {
            assert_eq!(table.content(&table.text(content)), content);
        }
        assert_eq!(table.text("x").lines().nth(Table::LINES_BEFORE), Some("x"));
        assert_eq!(table.content("flush ruleset\n"), "flush ruleset\n");
        assert!(Table::of_file("ip6-a-b.nft").is_some_and(|table| table.family == "ip6" && table.name == "a-b"));
    }
}
