//! The file of a table, and the line by which nftables.service reads it.

use stead_host::provider::Context;

use crate::edit::{FileEdit, Missing, glob};
use crate::part::lines::ending;

/// The folder of the files.
pub(super) const FOLDER: &str = "/etc/nftables.d";

/// The files that nftables.service reads, of which a distribution has one.
const MAINS: [&str; 2] = ["/etc/sysconfig/nftables.conf", "/etc/nftables.conf"];

const INCLUDE: &str = r#"include "/etc/nftables.d/*.nft""#;

/// The words for things that a statement names with their table.
const OBJECTS: [&str; 14] = [
    "table",
    "chain",
    "rule",
    "set",
    "map",
    "element",
    "flowtable",
    "counter",
    "quota",
    "limit",
    "synproxy",
    "secmark",
    "ct",
    "meter",
];

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

/// A file of the folder that nftables.service reads.
pub(super) struct Beside {
    pub(super) path: String,
    /// Its text; `None` for a device, a FIFO or a socket.
    pub(super) text: Option<String>,
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

    /// The content in such a text; `None` in one of somebody else.
    pub(super) fn content<'t>(&self, text: &'t str) -> Option<&'t str> {
        text.strip_prefix(&self.head())?.strip_suffix("}\n")
    }

    fn head(&self) -> String {
        let table = format!("table {} {}", self.family, self.name);
        format!("# Managed by stead.\n{table}\ndelete {table}\n{table} {{\n")
    }

    /// Returns whether the main file reads that of the table, and does nothing else to the table behind it.
    pub(super) fn is_read_by(&self, main: &str) -> bool {
        let statements: Vec<&str> = main.lines().flat_map(statements).collect();
        let changed = statements.iter().rposition(|statement| self.is_changed_by(statement));
        let behind = statements.get(changed.map_or(0, |at| at + 1)..).unwrap_or_default();
        behind.iter().any(|statement| self.is_included_by(statement))
    }

    /// The main file with one `include` for each file that it reads: those beside that of the table, and that of the table if `own` is
    /// stated, each from the place that is given.
    pub(super) fn composed(&self, main: &str, beside: &[(String, String)], own: Option<&str>) -> String {
        let path = self.path();
        let mut files: Vec<(String, String)> = beside.iter().filter(|(other, _)| *other != path).cloned().collect();
        files.extend(own.map(|own| (path.clone(), own.to_owned())));
        files.sort();
        let included = |statement: &str| {
            let Some(pattern) = pattern(statement).filter(|_| self.is_included_by(statement)) else {
                return statement.to_owned();
            };
            let read = files.iter().filter(|(name, _)| includes(pattern, name));
            read.map(|(_, at)| format!("include \"{at}\"")).collect::<Vec<_>>().join("; ")
        };
        let line = |line: &str| {
            let is_read = statements(line).any(|statement| self.is_included_by(statement));
            if is_read { statements(line).map(included).collect::<Vec<_>>().join("; ") } else { line.to_owned() }
        };
        main.lines().map(|each| line(each) + "\n").collect()
    }

    /// Returns whether a statement takes the table away, or adds to it.
    fn is_changed_by(&self, statement: &str) -> bool {
        let mut words =
            statement.split(|each: char| each.is_whitespace() || each == '{').filter(|word| !word.is_empty());
        let mut word = words.next().unwrap_or_default();
        let takes_away = ["flush", "delete", "destroy", "reset"].contains(&word);
        if takes_away || ["add", "create", "insert", "replace"].contains(&word) {
            word = words.next().unwrap_or_default();
        }
        if takes_away && word == "ruleset" {
            return words.next().is_none_or(|family| family == self.family);
        }
        let family = words.next().unwrap_or_default();
        let is_family = ["inet", "ip", "ip6", "arp", "bridge", "netdev"].contains(&family);
        let (family, name) = if is_family { (family, words.next().unwrap_or_default()) } else { ("ip", family) };
        let is_numbered = takes_away && word == "table" && name == "handle";
        OBJECTS.contains(&word) && family == self.family && (name == self.name || is_numbered)
    }

    fn is_included_by(&self, statement: &str) -> bool {
        pattern(statement).is_some_and(|pattern| includes(pattern, &self.path()))
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

/// Returns whether a main file reads a file of the folder, or would once it has the line for tables.
pub(super) fn is_read(main: &str, path: &str) -> bool {
    let patterns = main.lines().flat_map(statements).filter_map(pattern).chain(pattern(INCLUDE));
    patterns.into_iter().any(|pattern| includes(pattern, path))
}

/// The statements of a line, without its comment.
fn statements(line: &str) -> impl Iterator<Item = &str> {
    line.split('#').next().unwrap_or_default().split(';').map(str::trim)
}

/// The pattern of the files that a statement includes.
fn pattern(statement: &str) -> Option<&str> {
    let quoted = statement.strip_prefix("include")?.trim_start();
    let quote = quoted.chars().next().filter(|first| matches!(first, '"' | '\''))?;
    quoted.get(1..)?.split(quote).next()
}

/// Returns whether a pattern includes the file at a path.
fn includes(pattern: &str, path: &str) -> bool {
    // Relative paths begin where nft looks for them.
    let pattern = if pattern.starts_with('/') { pattern.to_owned() } else { format!("/etc/{pattern}") };
    glob(&pattern).is_some_and(|glob| glob.is_match(path))
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
            "include \"nftables.d/*.nft\"\ntable ip filter {\n  chain filter {\n  }\n}\ndelete table inet other\nflush ruleset ip",
        ];
        let others = [
            "",
            "# include \"/etc/nftables.d/*.nft\"",
            "include \"/etc/nftables.d/ip-*.nft\"",
            "include \"/etc/nftables.d/*.nft\"\n  flush   ruleset\n",
            "include \"/etc/nftables.d/*.nft\"\nadd table inet zz; flush ruleset inet # all",
            "include \"/etc/nftables.d/*.nft\"\ndelete table inet filter\n",
            "include \"/etc/nftables.d/*.nft\"\ntable inet filter {\n  chain input {\n  }\n}\n",
            "include \"/etc/nftables.d/*.nft\"\nadd rule inet filter input accept\n",
            "include \"/etc/nftables.d/*.nft\"\nflush chain inet filter input",
            "include \"/etc/nftables.d/*.nft\"\ndelete table inet handle 3\n",
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
    fn what_is_included_is_named_one_by_one() {
        let table = Table { family: "inet", name: "t" };
        let at = |name: &str, at: &str| (format!("{FOLDER}/{name}"), at.to_owned());
        let beside = [at("a.nft", "/etc/nftables.d/a.nft"), at("inet-t.nft", "/old"), at("z\".nft", "/z")];
        let main = "flush ruleset # all\nadd table ip a; include \"nftables.d/*\"; add table ip b\ninclude \"/x\"\n";
        let composed = table.composed(main, &beside, Some("/new"));
        let includes = "include \"/etc/nftables.d/a.nft\"; include \"/new\"; include \"/z\"";
        assert_eq!(
            composed,
            format!("flush ruleset # all\nadd table ip a; {includes}; add table ip b\ninclude \"/x\"\n")
        );
        assert!(!table.composed(main, &beside, None).contains("inet-t"));
    }

    #[test]
    fn content_is_found_in_its_text() {
        let table = Table { family: "ip", name: "a" };
        for content in ["", "chain c {\n}\n"] {
            assert_eq!(table.content(&table.text(content)), Some(content));
        }
        assert_eq!(table.text("x").lines().nth(Table::LINES_BEFORE), Some("x"));
        assert_eq!(table.content("flush ruleset\n"), None);
        assert!(Table::of_file("ip6-a-b.nft").is_some_and(|table| table.family == "ip6" && table.name == "a-b"));
    }
}
