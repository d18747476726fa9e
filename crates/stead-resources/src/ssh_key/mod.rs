//! `Stead/SshKey`: a key that a user may log in with.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use stead_core::call::{Failure, Presumed};
use stead_core::claims::{Claims, Extent};
use stead_core::value::{Object, Value};
use stead_host::fs::Ownership;
use stead_host::provider::{Context, TraceLevel};

use crate::accounts::{Account, Databases, record_path};
use crate::edit::{FileLocks, Missing};
use crate::input::{KeyOptions, KeyType, PublicKey, SingleLine, Word, invalid, required_if};
use crate::part::lines::{InForce, entry, put_entry, without_entry};
use crate::part::{Instances, Location, Look, Part, Parts, Stated};
use crate::{ALL, BuiltIn, Profile, is_wanted, reply, schema};

const PROFILE: Profile = Profile {
    type_name: "Stead/SshKey",
    description: "A public key in the authorized keys of a user.",
    example: include_str!("example.yaml"),
    tags: &["ssh", "key", "user", "linux"],
    capabilities: ALL,
    schema: schema::of::<Properties<'_>>,
};

/// A public key with which a user may log in: a line in the file of authorized keys, in '.ssh' of the home directory. File
/// and directory are created with mode 0600 and 0700 and belong to the user. Links that the user placed are not followed.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Stead/SshKey")]
struct Properties<'a> {
    /// The name of the user.
    #[serde(borrow)]
    user: Word<'a>,
    /// The key itself: the long word in Base64.
    #[serde(borrow)]
    key: PublicKey<'a>,
    /// The type of the key, such as 'ssh-ed25519'. Required unless '_exist' is false.
    #[serde(borrow, rename = "type")]
    kind: Option<KeyType<'a>>,
    /// What the key is restricted to, as in the file: 'no-pty,from="10.0.0.1"'; nothing if empty. Without it the options stay
    /// as they are.
    #[serde(borrow)]
    options: Option<KeyOptions<'a>>,
    /// The comment behind the key; none if empty. Without it the comment stays as it is.
    #[serde(borrow)]
    comment: Option<SingleLine<'a>>,
    /// Whether every other key is removed from the file, so that nobody else can log in as the user with a key. By default
    /// other keys stay.
    exclusive: Option<bool>,
    /// The other keys that stay where 'exclusive' is true, such as those of other instances.
    #[serde(borrow, default)]
    #[schemars(extend("writeOnly" = true))]
    kept: Vec<PublicKey<'a>>,
    /// Whether the key exists.
    #[serde(rename = "_exist", default = "is_wanted")]
    exist: bool,
}

impl<'a> crate::input::Properties<'a> for Properties<'a> {
    fn check(&self) -> Result<(), Failure> {
        if self.exclusive == Some(true) && !self.exist {
            return Err(invalid("exclusive", "'exclusive' cannot be true while '_exist' is false"));
        }
        required_if(self.exist, &[("type", self.kind.is_some())])
    }
}

/// `Stead/SshKey` as it is registered.
pub(crate) fn built_in(locks: &FileLocks) -> Option<BuiltIn> {
    let built_in = PROFILE.built_in(Arc::new(Parts::<Key>::new(locks)))?;
    Some(BuiltIn { keys: &["user", "key"], ..built_in })
}

struct Key;

impl Part for Key {
    type Stated<'a> = Properties<'a>;
    const NOUN: &'static str = "key";

    fn claims(stated: &Value) -> Option<Claims> {
        let text = |name: &str| stated.get(name).and_then(Value::as_str);
        // Where the home of the user is may change in the run: only that of root is sure.
        let key = text("key").filter(|_| text("user") == Some("root"))?;
        Some(Claims::path("/root/.ssh/authorized_keys", Extent::Part { line: None, key: Some(key.to_owned()) }))
    }

    /// The keys of all users of the system's own databases. A file that cannot be read is passed over.
    fn instances(cx: &Context, filter: &Value, look: &Look<'_>) -> Result<Instances, Failure> {
        let wanted = filter.get("user").and_then(Value::as_str);
        let mut found = Vec::new();
        let databases = Databases::read(cx)?;
        for record in databases.users().records().filter(|record| wanted.is_none_or(|user| user == record.name())) {
            let path = file_of(&record.get(5));
            match look(&path) {
                Ok(text) => {
                    let text = text.as_ref().map_or("", |text| text.content.as_str());
                    found.extend(text.lines().filter_map(Entry::of).map(|entry| instance(&record.name(), &entry)));
                }
                Err(failure) => (cx.trace)(TraceLevel::Warn, &failure.message),
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
    let mut properties: Object = [("user", user), ("key", entry.key)].map(text_property).into();
    properties.extend(entry.properties());
    (format!("{user} {name}"), properties)
}

fn text_property((name, text): (&str, &str)) -> (String, Value) {
    (name.to_owned(), Value::from(text))
}

impl<'a> Stated<'a> for Properties<'a> {
    fn exist(&self) -> bool {
        self.exist
    }

    fn location(&self, cx: &Context) -> Result<Location<'a>, Failure> {
        let user = Account::find(cx, self.user.0, "user")?;
        let ownership = user.as_ref().ok().map_or_else(Ownership::default, Account::ownership);
        let missing = Missing::Create { mode: 0o600, ownership };
        let (home, absent) = match user {
            Ok(user) => (user.home, None),
            Err(failure) => {
                let paths = vec![cx.resolve(record_path("passwd", self.user.0))];
                (format!("~{}", self.user.0), Some(Presumed { failure, paths }))
            }
        };
        let shown = file_of(&home);
        let path = cx.resolve(&shown);
        Ok(Location { shown: shown.into(), path, missing, directory: Some(0o700), absent })
    }

    fn identity(&self) -> Object {
        reply::texts([("user", self.user.0), ("key", self.key.0)])
    }

    fn wanted(&self) -> Object {
        let stated = [
            ("type", self.kind.map(|kind| Value::from(kind.0))),
            ("options", self.options.map(|options| Value::from(options.0))),
            ("comment", self.comment.map(|comment| Value::from(comment.0.trim()))),
            // What is not to be exclusive may be.
            ("exclusive", self.exclusive.filter(|exclusive| *exclusive).map(Value::from)),
        ];
        reply::stated(stated)
    }

    fn displaced(&self, text: &str) -> Vec<usize> {
        let numbered = text.lines().enumerate().filter(|(_, line)| self.displaces(line));
        numbered.map(|(at, _)| at + 1).collect()
    }

    fn find(&self, text: &str) -> Result<Option<Object>, Failure> {
        let line = entry(text, InForce::First, |line| self.is_own(line));
        let Some(found) = line.and_then(|line| Entry::of(line.text)) else { return Ok(None) };
        let mut properties: Object = found.properties().into();
        if self.exclusive == Some(true) {
            let exclusive = !text.lines().any(|line| self.displaces(line));
            properties.insert("exclusive".to_owned(), Value::from(exclusive));
        }
        Ok(Some(properties))
    }

    fn put(&self, text: &str) -> Result<String, Failure> {
        let line = entry(text, InForce::First, |line| self.is_own(line));
        let former = line.and_then(|line| Entry::of(line.text));
        let (options, comment) = former.map_or(("", ""), |former| (former.options, former.comment));
        let words = [
            self.options.map_or(options, |options| options.0),
            self.kind.map_or("", |kind| kind.0),
            self.key.0,
            self.comment.map_or(comment, |comment| comment.0.trim()),
        ];
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        let text = without_entry(text, |line| self.displaces(line));
        Ok(put_entry(&text, InForce::First, |line| self.is_own(line), &words.join(" ")))
    }

    fn remove(&self, text: &str) -> Result<String, Failure> {
        Ok(without_entry(text, |line| self.is_own(line)))
    }
}

impl Properties<'_> {
    fn is_own(&self, line: &str) -> bool {
        Entry::of(line).is_some_and(|entry| entry.key == self.key.0)
    }

    /// Whether a line has a key that goes because this one is exclusive.
    fn displaces(&self, line: &str) -> bool {
        let stays = |key: &str| key == self.key.0 || self.kept.iter().any(|kept| kept.0 == key);
        self.exclusive == Some(true) && Entry::of(line).is_some_and(|entry| !stays(entry.key))
    }
}

/// A line with a key.
struct Entry<'t> {
    options: &'t str,
    kind: &'t str,
    key: &'t str,
    comment: &'t str,
}

impl<'t> Entry<'t> {
    fn of(line: &'t str) -> Option<Self> {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return None;
        }
        let (first, rest) = word(line)?;
        let (options, kind, rest) = if is_kind(first) {
            ("", first, rest)
        } else {
            let (kind, rest) = word(rest)?;
            (first, kind, rest)
        };
        let (key, comment) = word(rest)?;
        is_kind(kind).then_some(Self { options, kind, key, comment })
    }

    fn properties(&self) -> [(String, Value); 3] {
        [("type", self.kind), ("options", self.options), ("comment", self.comment)].map(text_property)
    }
}

fn is_kind(word: &str) -> bool {
    ["ssh-", "ecdsa-", "sk-"].iter().any(|begin| word.starts_with(begin))
}

/// The first word, in which quotes hold spaces, and what is behind it.
fn word(text: &str) -> Option<(&str, &str)> {
    let (mut quoted, mut escaped) = (false, false);
    let ends = |(_, each): &(usize, char)| {
        let is_quote = *each == '"' && !escaped;
        quoted ^= is_quote;
        escaped = *each == '\\' && !escaped;
        !quoted && each.is_whitespace()
    };
    let end = text.char_indices().find(ends).map_or(text.len(), |(at, _)| at);
    let (word, rest) = text.split_at_checked(end)?;
    (!word.is_empty()).then_some((word, rest.trim_start()))
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
    fn what_is_no_key_is_none() {
        for line in ["", "# ssh-rsa AAAA", "ssh-rsa", "no-pty AAAA", "x y z"] {
            assert!(Entry::of(line).is_none(), "{line}");
        }
    }
}
