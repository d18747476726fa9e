//! Unit files, as systemd reads them.

use std::borrow::Cow;

use stead_core::diag::nearest;

use super::is_whole_name;

/// The sections that units of all kinds have; those that begin with `X-` are for others.
const SECTIONS: [&str; 12] = [
    "Unit",
    "Install",
    "Service",
    "Socket",
    "Timer",
    "Path",
    "Mount",
    "Automount",
    "Swap",
    "Slice",
    "Scope",
    "Manager",
];

/// The settings of `[Install]` whose values are names of units.
pub(crate) const NAMES: [&str; 5] = ["WantedBy", "RequiredBy", "UpheldBy", "Alias", "Also"];

/// A statement on one line, or on several that backslashes join.
enum Statement<'t> {
    Section(&'t str),
    Assignment(&'t str, String),
    Neither,
}

/// The statements of a unit file with the numbers of their first lines, without comments and blank lines.
fn statements(text: &str) -> Vec<(usize, Statement<'_>)> {
    let mut found: Vec<(usize, Statement<'_>)> = Vec::new();
    let mut continues = false;
    for (at, line) in text.lines().map(|line| line.trim_matches([' ', '\t', '\r', '\u{c}'])).enumerate() {
        if line.starts_with(['#', ';']) || line.is_empty() && !continues {
            continue;
        }
        // An even number of backslashes stands for half as many.
        let backslashes = line.len() - line.trim_end_matches('\\').len();
        let more = backslashes % 2 == 1;
        let part = if more { line.get(..line.len() - 1).unwrap_or(line) } else { line };
        if std::mem::replace(&mut continues, more) {
            if let Some((_, Statement::Assignment(_, value))) = found.last_mut() {
                value.push(' ');
                value.push_str(part);
            }
        } else {
            found.push((at + 1, statement(part)));
        }
    }
    found
}

fn statement(line: &str) -> Statement<'_> {
    // A section that is not closed has systemd read nothing of the file, whatever follows on the line.
    if let Some(section) = line.strip_prefix('[') {
        return section.strip_suffix(']').map_or(Statement::Neither, Statement::Section);
    }
    match line.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Statement::Assignment(key.trim(), value.trim().to_owned()),
        _ => Statement::Neither,
    }
}

/// A setting of a unit file.
pub(crate) struct Setting<'t> {
    /// The number of its first line, from 1.
    pub(crate) line: usize,
    pub(crate) section: &'t str,
    pub(crate) key: &'t str,
    /// The value; empty where it takes back the values in front of it.
    pub(crate) value: String,
}

/// The settings of a unit file or drop-in in its order, lines that end with a backslash joined.
pub(crate) fn settings(text: &str) -> Vec<Setting<'_>> {
    let mut section = "";
    let setting = |(line, statement)| match statement {
        Statement::Section(name) => {
            section = name;
            None
        }
        Statement::Assignment(key, value) => Some(Setting { line, section, key, value: value.trim().to_owned() }),
        Statement::Neither => None,
    };
    statements(text).into_iter().filter_map(setting).collect()
}

/// The assignments of a section.
pub(crate) fn assignments<'t>(text: &'t str, section: &str) -> Vec<(&'t str, String)> {
    let own = settings(text).into_iter().filter(|setting| setting.section == section);
    own.map(|setting| (setting.key, setting.value)).collect()
}

/// Describes the first line of a unit file or drop-in that systemd would ignore although its author meant it, by its
/// number and the reason. No text of it is quoted.
pub(crate) fn unit_file_flaw(text: &str) -> Option<String> {
    let mut section = None;
    for (number, statement) in statements(text) {
        let flaw: Option<Cow<'_, str>> = match statement {
            Statement::Section(name) if SECTIONS.contains(&name) || name.starts_with("X-") => {
                section = Some(name);
                None
            }
            Statement::Section(name) => Some(match nearest(name, SECTIONS.iter().copied()) {
                Some(meant) => format!("begins a section that systemd does not know. Write '[{meant}]'").into(),
                None => "begins a section that systemd does not know".into(),
            }),
            Statement::Neither => Some("is neither a section nor an assignment nor a comment".into()),
            Statement::Assignment(..) if section.is_none() => Some("is in front of the first section".into()),
            Statement::Assignment(key, value) if section == Some("Install") && NAMES.contains(&key) => {
                let is_name = |word: &str| is_whole_name(&without_specifiers(word));
                let all = value.split_whitespace().all(is_name);
                (!all).then_some("has an entry that is not a full unit name, such as multi-user.target".into())
            }
            Statement::Assignment(..) => None,
        };
        if let Some(flaw) = flaw {
            return Some(format!("line {number} {flaw}"));
        }
    }
    None
}

/// A name with a letter for each specifier.
fn without_specifiers(word: &str) -> String {
    let mut signs = word.chars();
    let mut name = String::with_capacity(word.len());
    while let Some(sign) = signs.next() {
        name.push(if sign == '%' && signs.next().is_some() { 'x' } else { sign });
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments_go_on_behind_an_odd_number_of_backslashes() {
        let text = "[Service]\nA=b \\\n# comment\n  c\nB=d\\\\\nC=e\n\n[Other]\nA=x\n";
        let expected = [("A", "b c"), ("B", "d\\\\"), ("C", "e")];
        assert_eq!(assignments(text, "Service"), expected.map(|(key, value)| (key, value.to_owned())));
    }

    #[test]
    fn what_systemd_would_ignore_is_found() {
        let cases = [
            (
                "[Unit]\nDescription=x\n; c\n\n[X-Own]\nA=b\n[Install]\nWantedBy=a.target b@%i.service dev-a\\x2db.device\nAlias=\n",
                None,
            ),
            ("A=b\n", Some("line 1 is in front")),
            ("[Servce]\n", Some("line 1 begins a section")),
            ("[Service]\nExecStart\n", Some("line 2 is neither")),
            ("[Service]\n[Unit=a\n", Some("line 2 is neither")),
            ("[Install]\nWantedBy=../../srv/evil\n", Some("line 2 has an entry that is not")),
            ("[Install]\nAlias=../../../etc/evil.service\n", Some("line 2 has an entry that is not")),
            ("[Install]\nAlso=a.service \\\n  /b.service\n", Some("line 2 has an entry that is not")),
            ("[Install]\nWantedBy=multi-user\n", Some("line 2 has an entry that is not")),
        ];
        for (text, flaw) in cases {
            let found = unit_file_flaw(text);
            assert!(
                found.as_deref().is_some_and(|found| flaw.is_some_and(|flaw| found.starts_with(flaw)))
                    || found.is_none() && flaw.is_none(),
                "{text}: {found:?}"
            );
        }
    }
}
