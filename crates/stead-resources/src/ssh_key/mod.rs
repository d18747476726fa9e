//! `Stead/SshKey`: a key that a user may log in with.

use std::sync::Arc;

use stead_core::call::Failure;
use stead_core::claims::{Claims, Extent};
use stead_core::value::{Object, Value};
use stead_declare::resource;
use stead_host::provider::{Context, TraceLevel};
use stead_system::fs::Ownership;

use crate::accounts::{Account, Databases};
use crate::declared::Declared as _;
use crate::edit::{FileLocks, Missing};
use crate::input::invalid;
use crate::part::lines::{InForce, lines, put_entry, without_entry};
use crate::part::{Instances, Location, Look, Part, Parts, Stated};
use crate::text::{KeyFault, KeyOptions, KeyType, PublicKey, SingleLine, Word};
use crate::{ALL, BuiltIn, reply};

/// A public key with which a user may log in: a line in the file of authorized keys, in '.ssh' of the home directory. File
/// and directory are created with mode 0600 and 0700 and belong to the user. Links that the user placed are not followed.
#[resource(
    "Stead/SshKey",
    about = "A public key in the authorized keys of a user.",
    tags("ssh", "key", "user", "linux"),
    capabilities = ALL,
    state,
)]
struct Properties<'a> {
    /// The name of the user.
    #[property(key)]
    user: Word<'a>,
    /// The key in Base64, without its type and its comment.
    #[property(key)]
    key: PublicKey<'a>,
    /// The type of the key, such as 'ssh-ed25519'. Required unless '_exist' is false.
    #[property(name = "type", required)]
    kind: Option<KeyType<'a>>,
    /// The options of the key in the syntax of sshd(8), such as 'no-pty,from="10.0.0.1"'; none if empty. Other lines with the
    /// same key and other options are removed. If not stated, the options stay as they are.
    options: Option<KeyOptions<'a>>,
    /// The comment behind the key; none if empty. If not stated, the comment stays as it is.
    comment: Option<SingleLine<'a>>,
    /// Whether all other keys are removed from the file, and all lines that are neither keys nor comments. Other files that
    /// sshd(8) reads, such as `authorized_keys2`, are not changed. By default other keys stay.
    exclusive: Option<bool>,
    /// Keys that stay when 'exclusive' is true, such as those of other instances.
    #[property(option)]
    #[serde(default)]
    kept: Vec<PublicKey<'a>>,
    /// Whether the key exists.
    exist: bool,
}

impl<'a> crate::input::Properties<'a> for Properties<'a> {
    fn check(&self) -> Result<(), Failure> {
        if self.exclusive == Some(true) && !self.exist {
            return Err(invalid(Properties::EXCLUSIVE, "'exclusive' cannot be true while '_exist' is false"));
        }
        match self.kind.filter(|_| self.exist).and_then(|kind| self.key.fault(kind)) {
            None => Ok(()),
            Some(KeyFault::Type(name)) => {
                Err(invalid(Properties::KIND, format!("'type' does not match 'key', which is of type '{name}'")))
            }
            Some(KeyFault::Length) => Err(invalid(
                Properties::KEY,
                "'key' is truncated or has extra characters: copy it again from the .pub file",
            )),
        }
    }
}

/// `Stead/SshKey` as it is registered.
pub(crate) fn built_in(locks: &FileLocks) -> Option<BuiltIn> {
    Properties::built_in(Arc::new(Parts::<Key>::new(locks)))
}

struct Key;

impl Part for Key {
    type Stated<'a> = Properties<'a>;
    const NOUN: &'static str = "key";

    fn claims(stated: &Value) -> Option<Claims> {
        let text = |name: &str| stated.get(name).and_then(Value::as_str);
        // Where the home of the user is may change in the run: only that of root is sure.
        let key = text(Properties::KEY).filter(|_| text(Properties::USER) == Some("root"))?;
        Some(Claims::path("/root/.ssh/authorized_keys", Extent::Part { line: None, key: Some(key.to_owned()) }))
    }

    /// The keys of all users of the system's own databases. A file that cannot be read is passed over.
    fn instances(cx: &Context, filter: &Value, look: &Look<'_>) -> Result<Instances, Failure> {
        let wanted = filter.get(Properties::USER).and_then(Value::as_str);
        let mut found = Vec::new();
        let databases = Databases::read(cx)?;
        for record in databases.users().records().filter(|record| wanted.is_none_or(|user| user == record.name())) {
            let path = file_of(&record.get(5));
            match look(&path) {
                Ok(text) => {
                    let text = text.as_ref().map_or("", |text| text.content.as_str());
                    found.extend(text.lines().filter_map(Entry::of).map(|entry| instance(&record.name(), &entry)));
                }
                Err(failure) => cx.say(TraceLevel::Warn, &failure.message),
            }
        }
        Ok(found)
    }
}

/// Where the authorized keys of a user with this home are.
fn file_of(home: &str) -> String {
    format!("{}/.ssh/authorized_keys", home.trim_end_matches('/'))
}

/// A key as an instance, named after the user and what tells the key to a reader: its comment, or else its end.
fn instance(user: &str, entry: &Entry<'_>) -> (String, Object) {
    let end = entry.key.get(entry.key.len().saturating_sub(16)..).unwrap_or(entry.key);
    let name = if entry.comment.is_empty() { end } else { entry.comment };
    let mut properties: Object = [(Properties::USER, user), (Properties::KEY, entry.key)].map(text_property).into();
    properties.extend(entry.properties());
    (format!("{user} {name}"), properties)
}

fn text_property((name, text): (&str, &str)) -> (String, Value) {
    (name.to_owned(), Value::from(text))
}

impl<'a> Stated<'a> for Properties<'a> {
    fn location(&self, cx: &Context) -> Result<Location<'a>, Failure> {
        let user = Account::find(cx, self.user.0, Properties::USER)?;
        let account = user.as_ref().ok().filter(|_| cx.gives_files_away());
        let ownership = account.map_or_else(Ownership::default, Account::ownership);
        let missing = Missing::Create { mode: 0o600, ownership };
        let (home, absent) = match user {
            Ok(user) => (user.home, None),
            Err(presumed) => (format!("~{}", self.user.0), Some(presumed)),
        };
        let shown = file_of(&home);
        let path = cx.resolve(&shown);
        Ok(Location { shown: shown.into(), path, missing, directory: Some(0o700), absent })
    }

    fn wanted(&self) -> Object {
        let stated = [
            (Properties::KIND, self.kind.map(|kind| Value::from(kind.0))),
            (Properties::OPTIONS, self.options.map(|options| Value::from(options.0))),
            (Properties::COMMENT, self.comment.map(|comment| Value::from(comment.0.trim()))),
            // What is not to be exclusive may be.
            (Properties::EXCLUSIVE, self.exclusive.filter(|exclusive| *exclusive).map(Value::from)),
        ];
        reply::stated(stated)
    }

    fn displaced(&self, text: &str) -> Vec<usize> {
        self.kept_lines(text).into_iter().enumerate().filter(|(_, kept)| !kept).map(|(at, _)| at + 1).collect()
    }

    fn find(&self, text: &str) -> Result<Option<Object>, Failure> {
        let mut own = text.lines().filter_map(Entry::of).filter(|entry| self.is_own(entry)).peekable();
        let Some(first) = own.peek().map(Entry::properties) else { return Ok(None) };
        let mut properties = Object::from(first);
        // sshd takes the key with the options of any of its lines.
        if let Some(other) = self.options.and_then(|options| own.find(|entry| entry.options != options.0)) {
            properties.insert(Properties::OPTIONS.to_owned(), Value::from(other.options));
        }
        if self.exclusive == Some(true) {
            let exclusive = self.kept_lines(text).into_iter().all(|kept| kept);
            properties.insert(Properties::EXCLUSIVE.to_owned(), Value::from(exclusive));
        }
        Ok(Some(properties))
    }

    fn put(&self, text: &str) -> Result<String, Failure> {
        let former = text.lines().filter_map(Entry::of).find(|entry| self.is_own(entry));
        let (options, comment) = former.map_or(("", ""), |former| (former.options, former.comment));
        let words = [
            self.options.map_or(options, |options| options.0),
            self.kind.map_or("", |kind| kind.0),
            self.key.0,
            self.comment.map_or(comment, |comment| comment.0.trim()),
        ];
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        let kept = lines(text).into_iter().zip(self.kept_lines(text)).filter(|(_, kept)| *kept);
        let kept: String = kept.filter_map(|(line, _)| text.get(line.range)).collect();
        let is_own = |line: &str| Entry::of(line).is_some_and(|entry| self.is_own(&entry));
        Ok(put_entry(&kept, InForce::First, is_own, &words.join(" ")))
    }

    fn remove(&self, text: &str) -> Result<String, Failure> {
        Ok(without_entry(text, |line| Entry::of(line).is_some_and(|entry| self.is_own(&entry))))
    }
}

impl Properties<'_> {
    fn is_own(&self, entry: &Entry<'_>) -> bool {
        entry.has_key(self.key.0)
    }

    /// Of each line, whether it stays when the key is put: its own first one does, others of it only where their options do
    /// not matter, and all others unless it is exclusive. Then a line that sshd may read in another way goes as well.
    fn kept_lines(&self, text: &str) -> Vec<bool> {
        let (mut has_own, is_exclusive) = (false, self.exclusive == Some(true));
        let mut stays = |line: &str| match Entry::of(line) {
            Some(entry) if self.is_own(&entry) => {
                let is_first = !std::mem::replace(&mut has_own, true);
                is_first || !is_exclusive && self.options.is_none()
            }
            _ if !is_exclusive => true,
            Some(entry) => self.kept.iter().any(|kept| entry.has_key(kept.0)),
            None => is_ignored(line),
        };
        text.lines().map(&mut stays).collect()
    }
}

/// A line with a key, taken apart as sshd(8) does: words end with a space or a tab, and a quote in the options that has a
/// backslash in front of it is part of them.
struct Entry<'t> {
    options: &'t str,
    kind: &'t str,
    key: &'t str,
    comment: &'t str,
}

const BLANKS: [char; 2] = [' ', '\t'];

/// Returns whether sshd ignores a line.
fn is_ignored(line: &str) -> bool {
    let line = line.trim_start_matches(BLANKS);
    line.is_empty() || line.starts_with('#')
}

impl<'t> Entry<'t> {
    fn of(line: &'t str) -> Option<Self> {
        let line = line.trim_start_matches(BLANKS);
        if is_ignored(line) {
            return None;
        }
        let (first, rest) = word(line);
        let (options, kind, rest) = if is_kind(first) {
            ("", first, rest)
        } else {
            let (options, rest) = line.split_at_checked(end_of_options(line)?)?;
            let (kind, rest) = word(rest.trim_start_matches(BLANKS));
            (options, kind, rest)
        };
        let (key, comment) = word(rest);
        (is_kind(kind) && !key.is_empty()).then_some(Self { options, kind, key, comment: comment.trim_end() })
    }

    /// Returns whether it is this key. The decoder of sshd passes over other blanks, such as a carriage return.
    fn has_key(&self, key: &str) -> bool {
        self.key.chars().filter(|each| !each.is_ascii_whitespace() && *each != '\u{b}').eq(key.chars())
    }

    fn properties(&self) -> [(String, Value); 3] {
        [(Properties::KIND, self.kind), (Properties::OPTIONS, self.options), (Properties::COMMENT, self.comment)]
            .map(text_property)
    }
}

fn is_kind(word: &str) -> bool {
    ["ssh-", "ecdsa-", "sk-"].iter().any(|begin| word.starts_with(begin)) && !word.contains([',', '=', '"'])
}

/// The first word, and what is behind it and the blanks that follow.
fn word(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_once(BLANKS).unwrap_or((text, ""));
    (word, rest.trim_start_matches(BLANKS))
}

/// Where the options in front of a key end; `None` where a quote is left open.
fn end_of_options(text: &str) -> Option<usize> {
    let (mut quoted, mut escaped) = (false, false);
    let mut signs = text.bytes().enumerate().peekable();
    while let Some((at, sign)) = signs.next() {
        match sign {
            _ if escaped => escaped = false,
            b'\\' => escaped = signs.peek().is_some_and(|(_, next)| *next == b'"'),
            b'"' => quoted = !quoted,
            b' ' | b'\t' if !quoted => return Some(at),
            _ => {}
        }
    }
    (!quoted).then_some(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_may_hold_spaces_and_quotes() {
        let entry = Entry::of(r#"command="echo \"a b\" # x",no-pty ssh-rsa AAAA me and you"#).unwrap();
        assert_eq!(entry.options, r#"command="echo \"a b\" # x",no-pty"#);
        assert_eq!((entry.kind, entry.key, entry.comment), ("ssh-rsa", "AAAA", "me and you"));
    }

    #[test]
    fn a_line_is_read_as_sshd_reads_it() {
        let lines = [
            // A backslash in front of another one is nothing special: the quote behind it stays open.
            (r#"command="a\\" ssh-rsa BBBB" ssh-rsa AAAA"#, "AAAA"),
            (r#"a="\" ssh-rsa BBBB" ssh-rsa AAAA"#, "AAAA"),
            (r#"a=\" ssh-rsa AAAA "#, "AAAA"),
            ("no-pty,x=\u{a0}y \t ssh-rsa\t AAAA", "AAAA"),
            ("ssh-rsa AAAA\rssh-rsa BBBB", "AAAA\rssh-rsa"),
        ];
        for (line, key) in lines {
            assert_eq!(Entry::of(line).map(|entry| entry.key), Some(key), "{line}");
        }
        assert!(Entry::of("ssh-rsa AA\rAA\u{b}").unwrap().has_key("AAAA"));
    }

    #[test]
    fn what_is_no_key_is_none() {
        for line in ["", "# ssh-rsa AAAA", "ssh-rsa", "no-pty AAAA", "x y z", "a=\" ssh-rsa AAAA", "ssh-rsa  "] {
            assert!(Entry::of(line).is_none(), "{line}");
        }
    }
}
