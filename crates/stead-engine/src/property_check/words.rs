//! Words of other tools in the properties of built-in resources, where the type says what they mean.

use stead_core::expr::Template;
use stead_core::text::Kind;

/// The meaning of a word at a type.
#[derive(Clone, Copy)]
pub(super) enum Meaning {
    /// This property, with the same value.
    Property(&'static str),
    /// In words, what to do.
    Advice(&'static str),
}

use Meaning::{Advice, Property};

/// The types, the words in small letters without '_' and '-', and what they mean. No property that can be stated is among them.
const WORDS: &[(&str, &[&str], Meaning)] = &[
    ("Stead/Symlink", &["source", "src", "to", "linkto"], Property("target")),
    ("Stead/Template", &["content"], Property("template")),
    (
        "Stead/Download",
        &["sha256"],
        Advice("the digest that the file must have is 'checksum': \"sha256:\" and the digits"),
    ),
    ("Stead/Download", &["size"], Advice("the largest size that is accepted is 'maxSize'")),
    ("Stead/File", &["sha256"], Advice("remove it; a file that is downloaded has 'checksum' of Stead/Download")),
    ("Stead/Template", &["sha256"], Advice("remove it: what the template makes is compared by its content")),
    ("Stead/Git", &["version", "branch", "tag", "ref", "rev", "commit"], Property("revision")),
    ("Stead/Mount", &["opts", "mountoptions"], Property("options")),
    ("Stead/Mount", &["type", "fs", "filesystem"], Property("fstype")),
    ("Stead/Mount", &["passno"], Property("pass")),
    (
        "Stead/AptRepository",
        &["repo", "line", "deb"],
        Advice(
            "write the parts of the line: `uris: [https://example.org/debian]`, `suites: [bookworm]`, `components: [main]`",
        ),
    ),
    ("Stead/AptRepository", &["key", "keyring", "keyurl"], Property("signedBy")),
    ("Stead/AptRepository", &["filename"], Property("name")),
    (
        "Stead/Nftables",
        &["rules", "rule", "chains"],
        Advice("chains and rules are written in 'content', in the syntax of nft(8), such as `tcp dport 22 accept`"),
    ),
    (
        "Stead/Command",
        &["user", "becomeuser", "runas", "group"],
        Advice(
            "commands run as the user that stead runs as; to change it, write `set: [runuser, -u, USER, --, PROGRAM]`",
        ),
    ),
    ("Stead/Command", &["unless", "notif"], Property("test")),
    (
        "Stead/Command",
        &["onlyif"],
        Advice(
            "write the opposite in 'test': with exit code 0 there is nothing to do, as in `test: \"! test -e /srv/todo\"`",
        ),
    ),
    (
        "Stead/Command",
        &["removes"],
        Advice("write `test: \"! test -e PATH\"`: with exit code 0 there is nothing to do"),
    ),
    (
        "Stead/Command",
        &["refreshonly"],
        Advice("remove it, and write `directives: {onChanges: [...]}` beside 'properties'"),
    ),
    (
        "Stead/Service",
        &["daemonreload"],
        Advice("remove it: systemd reads changed unit files again before a service is started or restarted"),
    ),
    ("Stead/User", &["password"], Advice("write 'passwordHash', as `mkpasswd` prints it")),
    ("Stead/User", &["sshkey", "sshkeys", "authorizedkeys"], Advice("keys are instances of Stead/SshKey")),
    ("Stead/KernelModule", &["params", "parameters", "args"], Property("options")),
    ("Stead/Cron", &["job", "script"], Property("command")),
    ("Stead/Package", &["latest"], Advice("write `version: latest`")),
];

/// Returns what a word in the properties of a type means.
pub(super) fn meaning(type_name: &str, word: &str, value: Option<&Template>) -> Option<Meaning> {
    let plain: String = word.chars().filter(|each| !"_-".contains(*each)).flat_map(char::to_lowercase).collect();
    if type_name == "Stead/Service" && plain == "running" {
        return Some(match value.map(|value| &value.kind) {
            Some(Kind::Bool(false)) => Advice("write `state: stopped`"),
            _ => Advice("write `state: running`"),
        });
    }
    if type_name == "Stead/File" && matches!(&*plain, "state" | "ensure") {
        match value.and_then(Template::as_str) {
            Some("directory") => {
                return Some(Advice("a directory has a type of its own: write `type: Stead/Directory`"));
            }
            Some("link" | "symlink") => {
                return Some(Advice("a link has a type of its own: write `type: Stead/Symlink`"));
            }
            _ => {}
        }
    }
    let row = WORDS.iter().find(|(of, words, _)| *of == type_name && words.contains(&&*plain))?;
    Some(row.2)
}

/// Returns the form of a value that is written as a text in another tool.
pub(super) fn form(type_name: &str, property: &str, value: &Template) -> Option<&'static str> {
    let is_text = matches!(value.kind, Kind::String(_));
    (type_name == "Stead/Sudoers" && property == "rules" && is_text).then_some(
        "write `{groups: [ops], commands: [ALL], nopasswd: true}`; lines of sudoers(5) are written in 'content', in place of 'rules'",
    )
}
