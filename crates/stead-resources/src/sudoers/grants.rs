//! The effect of the rules of sudo when all of its files are read: the last one that fits counts.

use std::path::Path;

use stead_core::call::Failure;
use stead_system::fs::{FsError, SystemRoot};

use super::FOLDER;
use super::reading::{Aliases, Grant, logical_lines, of_line, read_aliases};
use crate::input::impossible;

/// The file that sudo reads; it names the others.
const MAIN: &str = "/etc/sudoers";

/// More than such a file has, with all its comments.
const MAX_SIZE: u64 = 16 << 20;

/// Returns why a file of rules at a path would not be in force: sudo does not read it, or reads another one after it that says
/// otherwise of the same command. What cannot be read here is not known to say anything.
pub(super) fn overridden(root: &SystemRoot, path: &str, property: &str, content: &str) -> Option<Failure> {
    let mut files = Files { root, own: path, parts: Vec::new(), place: None, too_large: None };
    let has_main = root.at(MAIN).followed().is_some();
    match files.add(MAIN, 0) {
        Some(()) if files.place.is_none() => {
            let message = format!("'{MAIN}' does not include '{FOLDER}', so that sudo reads no file in it");
            return Some(impossible(property, message));
        }
        None if !has_main => files.add_folder(FOLDER, 0),
        _ => {}
    }
    if let Some(why) = files.too_large {
        return Some(impossible(property, format!("cannot determine whether the rules are in force: {why}")));
    }
    let mut aliases = Aliases::new();
    let texts = files.parts.iter().map(|part| part.text.as_str()).chain([content]);
    texts.flat_map(logical_lines).for_each(|(_, line)| read_aliases(&line, &mut aliases));
    let here = Here::of(root);
    let own = here.grants(content, &aliases);
    let later = files.parts.iter().skip(files.place.unwrap_or(files.parts.len()));
    let located = |part: &'_ Part| {
        let grants = here.grants(&part.text, &aliases).into_iter();
        grants.map(|grant| (part.path.clone(), part.first + grant.line, grant)).collect::<Vec<_>>()
    };
    let later: Vec<_> = later.flat_map(located).collect();
    own.iter().enumerate().find_map(|(at, grant)| {
        // What another rule of the file says is as it was meant.
        if own.iter().skip(at + 1).any(|other| grant.meets(other) && grant.contradicted(other).is_some()) {
            return None;
        }
        let mut found = None;
        for (path, line, other) in later.iter().filter(|(.., other)| grant.meets(other)) {
            found = grant.contradicted(other).map(|how| (path, line, how));
        }
        let (path, line, how) = found?;
        let who = grant.users.join(",");
        let hint = "Remove that line, or choose a 'name' that comes later";
        let message = format!("'{path}' {how} for '{who}' in line {line}, which is read later. {hint}");
        Some(impossible(property, message))
    })
}

/// The names that this machine has.
struct Here(Vec<String>);

impl Here {
    /// Its name with its domain and without.
    fn of(root: &SystemRoot) -> Self {
        let name = root.text("/etc/hostname", MAX_SIZE).unwrap_or_default().trim().to_owned();
        let short = name.split('.').next().unwrap_or_default().to_owned();
        Self([name, short].into_iter().filter(|name| !name.is_empty()).collect())
    }

    /// Reads the rules of a text, command by command, in its order. Those for this machine are for all that matter here.
    fn grants(&self, text: &str, aliases: &Aliases) -> Vec<Grant> {
        let mut found: Vec<_> =
            logical_lines(text).into_iter().flat_map(|(number, line)| of_line(number, &line, aliases)).collect();
        for host in found.iter_mut().flat_map(|grant| &mut grant.hosts) {
            let (sign, name) = host.strip_prefix('!').map_or(("", host.as_str()), |name| ("!", name));
            if self.0.iter().any(|own| own.eq_ignore_ascii_case(name)) {
                *host = format!("{sign}{ALL}");
            }
        }
        found
    }
}

/// The texts that sudo reads, one after the other.
struct Files<'r> {
    root: &'r SystemRoot,
    /// The file that is to be, which is not among the parts.
    own: &'r str,
    parts: Vec<Part>,
    /// How many parts are in front of it, if its folder is read.
    place: Option<usize>,
    /// The error of a file that sudo reads and that is too large to be read here.
    too_large: Option<FsError>,
}

/// Lines of a file up to one that includes another.
struct Part {
    path: String,
    /// How many lines are in front of them.
    first: usize,
    text: String,
}

impl Files<'_> {
    /// As many as sudo follows.
    const DEEPEST: usize = 128;

    /// Adds a file with those that it includes; `None` where it cannot be read.
    fn add(&mut self, path: &str, depth: usize) -> Option<()> {
        let content = match self.root.read(path, MAX_SIZE) {
            Ok(content) => content.filter(|_| depth < Self::DEEPEST)?,
            Err(error) => {
                // Of a folder sudo reads nothing that is not a file.
                self.too_large =
                    self.too_large.take().or(Some(error).filter(|it| matches!(it, FsError::TooLarge { .. })));
                return None;
            }
        };
        let text = String::from_utf8_lossy(&content.bytes);
        let mut part = Part { path: path.to_owned(), first: 0, text: String::new() };
        for (number, line) in text.lines().enumerate() {
            let Some((is_folder, other)) = included(line) else {
                part.text.push_str(line);
                part.text.push('\n');
                continue;
            };
            let next = Part { path: path.to_owned(), first: number + 1, text: String::new() };
            self.parts.push(std::mem::replace(&mut part, next));
            if is_folder { self.add_folder(&other, depth + 1) } else { _ = self.add(&other, depth + 1) }
        }
        self.parts.push(part);
        Some(())
    }

    /// Adds the files of a folder in the order of their names: all but those with a dot in it, or a tilde at its end.
    fn add_folder(&mut self, folder: &str, depth: usize) {
        let names = self.root.entries(folder).unwrap_or_default().into_keys();
        let names = names.filter_map(|name| name.into_string().ok());
        let names = names.filter(|name| !name.contains('.') && !name.ends_with('~'));
        let own = Path::new(self.own).file_name().filter(|_| folder == FOLDER).and_then(|name| name.to_str());
        for name in names {
            if own.is_some_and(|own| self.place.is_none() && *own <= *name) {
                self.place = Some(self.parts.len());
            }
            if Some(name.as_str()) != own {
                self.add(&format!("{folder}/{name}"), depth);
            }
        }
        if own.is_some() && self.place.is_none() {
            self.place = Some(self.parts.len());
        }
    }
}

/// The file or folder that a line includes, and whether it is a folder.
fn included(line: &str) -> Option<(bool, String)> {
    let (word, path) = line.trim().strip_prefix(['@', '#'])?.split_once(char::is_whitespace)?;
    let path = path.trim().trim_matches('"');
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/etc/{path}") };
    let path = path.trim_end_matches('/').to_owned();
    matches!(word, "include" | "includedir").then(|| (word == "includedir", path))
}

impl Grant {
    /// Returns whether another rule is about all that this one states, for one of its users, on one of its hosts. One about a
    /// part of it, such as one command of all, refines it, which is how rules are layered.
    fn meets(&self, other: &Self) -> bool {
        let has = |words: &[String], word: &str| {
            let last =
                words.iter().rfind(|each| matches!(each.trim_start_matches('!'), each if each == word || each == ALL));
            last.is_some_and(|last| !last.starts_with('!'))
        };
        let share = |one: &[String], others: &[String]| one.iter().any(|word| has(others, word));
        // Of those that a command may run as, it runs as root where nobody is named.
        let is_usual = || self.run_as.iter().any(|word| word == ALL) && has(&other.run_as, "root");
        share(&self.users, &other.users)
            && share(&self.hosts, &other.hosts)
            && (share(&self.run_as, &other.run_as) || is_usual())
            && covers(&other.command, &self.command)
    }

    /// Returns how another rule for the same says otherwise.
    fn contradicted(&self, other: &Self) -> Option<String> {
        let command = &other.command;
        match (self.is_refused, other.is_refused) {
            (false, true) => return Some(format!("forbids {command}")),
            (true, false) => return Some(format!("allows {command}")),
            (true, true) => return None,
            (false, false) => {}
        }
        let asks = (self.nopasswd == Some(true) && other.nopasswd != Some(true))
            .then(|| format!("requires a password for {command}"));
        let asks_not = (self.nopasswd == Some(false) && other.nopasswd == Some(true))
            .then(|| format!("requires no password for {command}"));
        let executes = (self.noexec == Some(true) && other.noexec != Some(true))
            .then(|| format!("lets {command} run other commands"));
        asks.or(asks_not).or(executes)
    }
}

/// The word for all users, hosts or commands.
const ALL: &str = "ALL";

/// Returns whether a command of a rule stands for another one: without arguments it stands for it with any, and a folder for the
/// commands in it. Patterns are not compared.
fn covers(command: &str, other: &str) -> bool {
    let program = other.split_whitespace().next().unwrap_or_default();
    let folder = program.rsplit_once('/').map_or("", |(folder, _)| folder);
    command == ALL || command == other || command == program || command.strip_suffix('/') == Some(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(own: &str, later: &str) -> Option<String> {
        verdict_beside(own, &|path| std::fs::write(path, later).unwrap())
    }

    fn verdict_beside(own: &str, make_later: &dyn Fn(&Path)) -> Option<String> {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("etc/sudoers.d");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(root.path().join("etc/sudoers"), "%adm ALL=(ALL) ALL\n@includedir /etc/sudoers.d\n").unwrap();
        std::fs::write(root.path().join("etc/hostname"), "web1.example.com\n").unwrap();
        make_later(&folder.join("zz"));
        let found = overridden(&SystemRoot::below(root.path()), "/etc/sudoers.d/web", "rules", own);
        found.map(|failure| failure.message)
    }

    /// sudo reads files of any size, and nothing else.
    #[test]
    fn what_is_not_known_of_a_file_is_named() {
        let own = "kim ALL=(root) NOPASSWD: ALL\n";
        let said = verdict_beside(own, &|path| std::fs::File::create(path).unwrap().set_len(100 << 20).unwrap());
        assert!(said.as_deref().is_some_and(|said| said.contains("sudoers.d/zz' has more than 16 MiB")), "{said:?}");
        let fifo = |path: &Path| rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::RWXU).unwrap();
        assert_eq!(verdict_beside(own, &fifo), None);
        assert_eq!(verdict_beside(own, &|path| std::fs::create_dir(path).unwrap()), None);
    }

    #[test]
    fn the_last_rule_that_fits_counts() {
        let own = "kim,%adm ALL=(root) NOPASSWD: /usr/bin/systemctl restart web, /bin/b\n";
        let in_force = [
            "",
            "tom ALL=(ALL) ALL\n",
            "kim ALL=(ALL) NOPASSWD: ALL\n",
            "kim ALL=(www) ALL\n",
            "kim ALL=(root) /usr/bin/systemctl restart db\n",
            "ALL,!kim,!%adm ALL=(ALL) ALL\n",
            "# kim ALL=(ALL) ALL\n",
            "kim ALL=(ALL) ALL\nkim ALL=(ALL) NOPASSWD: ALL\n",
            "Defaults:kim !lecture\n",
        ];
        for later in in_force {
            assert_eq!(verdict(own, later), None, "{later}");
        }
        let taken_back = [
            ("kim ALL=(ALL) ALL\n", "requires a password for ALL", 1),
            ("\nkim ALL = (ALL : ALL) PASSWD: \\\n  /bin/a, /bin/b\n", "requires a password for /bin/b", 2),
            ("ALL ALL=!/bin/\n", "forbids /bin/", 1),
            (
                "User_Alias OPS = tom, kim : X = a\nCmnd_Alias B = /bin/b\nOPS ALL = B\n",
                "requires a password for /bin/b",
                3,
            ),
            ("tom, %adm one = NOPASSWD: ALL : ALL = ALL\n", "requires a password for ALL", 1),
            ("kim ALL=/usr/bin/systemctl\n", "requires a password for /usr/bin/systemctl", 1),
        ];
        for (later, how, line) in taken_back {
            let found = verdict(own, later).unwrap_or_default();
            assert!(found.starts_with(&format!("'/etc/sudoers.d/zz' {how} for ")), "{later}: {found}");
            assert!(found.contains(&format!(" in line {line},")), "{later}: {found}");
        }
        let of_all = "%adm,kim ALL=(ALL:ALL) NOPASSWD: ALL\n";
        let layered = [
            "kim db1=(ALL) ALL\n",
            "%adm ALL=(ALL:ALL) !/usr/bin/su\n",
            "%adm ALL=(ALL) PASSWD: /usr/sbin/visudo, /sbin/\n",
            "kim ALL=(www) ALL\n",
        ];
        for later in layered {
            assert_eq!(verdict(of_all, later), None, "{later}");
        }
        for later in ["kim ALL=(ALL) ALL\n", "kim ALL=ALL\n", "ALL ALL=(ALL) NOPASSWD: ALL, !ALL\n"] {
            assert!(verdict(of_all, later).is_some(), "{later}");
        }
        for later in ["kim web1=(ALL) ALL\n", "kim web1.example.com=(#0) ALL\n", "kim ALL=(ALL) CWD=/tmp ALL\n"] {
            assert!(verdict(of_all, later).is_some(), "{later}");
        }
        assert_eq!(verdict(of_all, "kim ALL,!web1=(ALL) ALL\n"), None);
        assert_eq!(verdict("kim db1=NOPASSWD: /bin/a\n", "kim db2=/bin/a\n"), None);
        assert!(verdict("kim db1=NOPASSWD: /bin/a\n", "kim ALL,!db2=/bin/a\n").is_some());
        assert!(verdict("kim ALL=(ALL) !/bin/su\n", "kim ALL=(ALL) ALL\n").unwrap().contains("allows ALL"));
        assert!(verdict("kim ALL=(ALL) PASSWD: /bin/a\n", "kim ALL=NOPASSWD: ALL\n").unwrap().contains("no password"));
        // The order of one file is meant, whatever it says.
        assert_eq!(verdict("kim ALL=NOPASSWD: ALL\nkim ALL=ALL\n", "kim ALL=ALL\n"), None);
    }
}
