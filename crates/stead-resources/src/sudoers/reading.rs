//! Files of sudo, read: the rules that they state, command by command.

use std::collections::HashMap;

/// One command in a rule: who may run it, or may not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Grant {
    pub(super) line: usize,
    pub(super) users: Vec<String>,
    pub(super) hosts: Vec<String>,
    pub(super) run_as: Vec<String>,
    /// With its arguments.
    pub(super) command: String,
    pub(super) is_refused: bool,
    /// True if no password is required, false if one is; `None` where that is not said.
    pub(super) nopasswd: Option<bool>,
    pub(super) noexec: Option<bool>,
}

/// Lists of words that have a name, by what kind of words they are and the name.
pub(super) type Aliases = HashMap<(String, String), Vec<String>>;

/// The lines of a file with the numbers of their first ones, those that end with a backslash joined, without comments.
pub(super) fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let (mut lines, mut continues) = (Vec::<(usize, String)>::new(), false);
    for (number, line) in (1..).zip(text.lines()) {
        let more = line.ends_with('\\');
        let part = line.strip_suffix('\\').unwrap_or(line);
        match lines.last_mut().filter(|_| continues) {
            Some((_, line)) => line.push_str(part),
            None => lines.push((number, part.to_owned())),
        }
        continues = more;
    }
    let plain = |(number, line): (usize, String)| (number, without_comment(&line).trim().to_owned());
    lines.into_iter().map(plain).filter(|(_, line)| !line.is_empty()).collect()
}

/// A line up to a comment; a number of a user begins with the same sign.
fn without_comment(line: &str) -> &str {
    let begins = |at: usize| {
        let (front, behind) = line.split_at(at);
        !front.ends_with('\\')
            && !behind.get(1..).is_some_and(|rest| rest.starts_with(|next: char| next.is_ascii_digit()))
    };
    let at = line.match_indices('#').map(|(at, _)| at).find(|at| begins(*at));
    at.and_then(|at| line.get(..at)).unwrap_or(line)
}

/// Splits a text at a sign that no backslash is in front of and that is in no parentheses or quotes.
pub(super) fn split(text: &str, at: char) -> Vec<&str> {
    let (mut parts, mut from, mut depth, mut quoted, mut escaped) = (Vec::new(), 0, 0_usize, false, false);
    for (place, sign) in text.char_indices() {
        match sign {
            _ if escaped => {}
            '"' => quoted = !quoted,
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if sign == at && depth == 0 && !quoted => {
                parts.extend(text.get(from..place));
                from = place + sign.len_utf8();
            }
            _ => {}
        }
        escaped = sign == '\\' && !escaped;
    }
    parts.extend(text.get(from..));
    parts
}

pub(super) fn words(list: &str) -> Vec<String> {
    let words = split(list, ',').into_iter().map(str::trim).filter(|word| !word.is_empty());
    words.map(|word| word.replace("! ", "!")).collect()
}

/// Adds the lists that a line gives names.
pub(super) fn read_aliases(line: &str, aliases: &mut Aliases) {
    let Some((kind, lists)) = line.split_once(char::is_whitespace) else { return };
    if !["User_Alias", "Runas_Alias", "Host_Alias", "Cmnd_Alias", "Cmd_Alias"].contains(&kind) {
        return;
    }
    let kind = kind.split_once('_').map_or(kind, |(kind, _)| kind).replace("Cmnd", "Cmd");
    for list in split(lists, ':') {
        if let Some((name, list)) = list.split_once('=') {
            aliases.insert((kind.clone(), name.trim().to_owned()), words(list));
        }
    }
}

/// Words with lists in place of their names.
fn expanded(words: Vec<String>, kind: &str, aliases: &Aliases, depth: usize) -> Vec<String> {
    const DEEPEST: usize = 8;
    let expand = |word: String| {
        let (sign, name) = word.strip_prefix('!').map_or(("", word.as_str()), |name| ("!", name));
        match aliases.get(&(kind.to_owned(), name.to_owned())).filter(|_| depth < DEEPEST) {
            Some(list) => {
                let list = list.iter().map(|each| format!("{sign}{each}").replace("!!", "")).collect();
                expanded(list, kind, aliases, depth + 1)
            }
            None => vec![word],
        }
    };
    words.into_iter().flat_map(expand).collect()
}

/// Reads the rules of a line.
pub(super) fn of_line(line: usize, text: &str, aliases: &Aliases) -> Vec<Grant> {
    let word = text.split(|sign: char| !sign.is_ascii_alphabetic() && sign != '_').next().unwrap_or_default();
    if word == "Defaults" || word.ends_with("_Alias") {
        return Vec::new();
    }
    let (mut found, mut users) = (Vec::new(), Vec::new());
    for (at, part) in split(text, ':').into_iter().enumerate().fold(Vec::new(), joined) {
        let Some((front, commands)) = part.split_once('=') else { return found };
        // The users stand in front of the first list of hosts, and a comma holds words together.
        let front = words(front).join(",");
        let hosts = match front.split_once(char::is_whitespace).filter(|_| at == 0) {
            Some((who, hosts)) => {
                users = expanded(words(who), "User", aliases, 0);
                hosts.trim().to_owned()
            }
            None => front,
        };
        let hosts = expanded(words(&hosts), "Host", aliases, 0);
        found.extend(of_commands(line, &users, &hosts, commands, aliases));
    }
    found
}

/// Puts together again what a colon behind a tag, such as `NOPASSWD:`, has parted.
fn joined(mut parts: Vec<(usize, String)>, (_, part): (usize, &str)) -> Vec<(usize, String)> {
    let is_tag = |former: &str| {
        let last = former.rsplit([' ', '\t', ',', '=', ')', ':']).find(|word| !word.is_empty()).unwrap_or_default();
        TAGS.contains(&last)
    };
    match parts.last_mut() {
        Some((_, former)) if is_tag(former) || !part.contains('=') => {
            former.push(':');
            former.push_str(part);
        }
        _ => parts.push((parts.len(), part.to_owned())),
    }
    parts
}

const TAGS: [&str; 17] = [
    "EXEC",
    "NOEXEC",
    "FOLLOW",
    "NOFOLLOW",
    "INTERCEPT",
    "NOINTERCEPT",
    "LOG_INPUT",
    "NOLOG_INPUT",
    "LOG_OUTPUT",
    "NOLOG_OUTPUT",
    "MAIL",
    "NOMAIL",
    "PASSWD",
    "NOPASSWD",
    "SETENV",
    "NOSETENV",
    "APPARMOR_PROFILE",
];

/// What is said of a command in front of it.
const OPTIONS: [&str; 10] =
    ["APPARMOR_PROFILE", "CHROOT", "CWD", "LIMITPRIVS", "NOTAFTER", "NOTBEFORE", "PRIVS", "ROLE", "TIMEOUT", "TYPE"];

/// The commands of a list; whom they run as and their tags hold for those behind as well.
fn of_commands(line: usize, users: &[String], hosts: &[String], list: &str, aliases: &Aliases) -> Vec<Grant> {
    let (mut run_as, mut nopasswd, mut noexec) = (vec!["root".to_owned()], None, None);
    let mut found = Vec::new();
    for command in split(list, ',') {
        let mut rest = command.trim();
        if let Some((inside, behind)) = rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
            let named = words(inside.split(':').next().unwrap_or_default());
            run_as = expanded(named, "Runas", aliases, 0);
            for word in run_as.iter_mut().filter(|word| *word == "#0") {
                "root".clone_into(word);
            }
            rest = behind.trim();
        }
        while let Some((option, behind)) = rest.split_once(char::is_whitespace) {
            let name = option.split_once('=').map(|(name, _)| name);
            if !name.is_some_and(|name| OPTIONS.contains(&name)) {
                break;
            }
            rest = behind.trim();
        }
        while let Some((tag, behind)) = rest.split_once(':').filter(|(tag, _)| TAGS.contains(&tag.trim())) {
            match tag.trim() {
                "NOPASSWD" => nopasswd = Some(true),
                "PASSWD" => nopasswd = Some(false),
                "NOEXEC" => noexec = Some(true),
                "EXEC" => noexec = Some(false),
                _ => {}
            }
            rest = behind.trim();
        }
        let commands = expanded(vec![rest.replace("! ", "!")], "Cmd", aliases, 0);
        found.extend(commands.into_iter().filter(|command| !command.is_empty()).map(|command| Grant {
            line,
            users: users.to_vec(),
            hosts: hosts.to_vec(),
            run_as: run_as.clone(),
            command: command.trim_start_matches('!').to_owned(),
            is_refused: command.starts_with('!'),
            nopasswd,
            noexec,
        }));
    }
    found
}
