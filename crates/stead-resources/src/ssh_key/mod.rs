//! `Stead/SshKey`: a key that a user may log in with.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use stead_core::call::{Failure, Presumed};
use stead_core::value::{Object, Value};
use stead_host::fs::Ownership;
use stead_host::provider::Context;

use crate::accounts::{Account, record_path};
use crate::edit::{FileLocks, Missing};
use crate::input::{PublicKey, SingleLine, Word, required};
use crate::part::lines::{InForce, entry, put_entry, without_entry};
use crate::part::{Location, Part, Parts, Stated};
use crate::{ALL_BUT_EXPORT, BuiltIn, Profile, is_wanted, schema};

const PROFILE: Profile = Profile {
    type_name: "Stead/SshKey",
    description: "A public key in the authorized keys of a user.",
    tags: &["ssh", "key", "user", "linux"],
    capabilities: ALL_BUT_EXPORT,
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
    kind: Option<Word<'a>>,
    /// What the key is restricted to, as in the file: 'no-pty,from="10.0.0.1"'; nothing if empty. Without it the options stay
    /// as they are.
    #[serde(borrow)]
    options: Option<SingleLine<'a>>,
    /// The comment behind the key; none if empty. Without it the comment stays as it is.
    #[serde(borrow)]
    comment: Option<SingleLine<'a>>,
    /// Whether the key is there.
    #[serde(rename = "_exist", default = "is_wanted")]
    exist: bool,
}

impl<'a> crate::input::Properties<'a> for Properties<'a> {
    fn check(&self) -> Result<(), Failure> {
        if self.exist && self.kind.is_none() { Err(required(&["type"])) } else { Ok(()) }
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

    fn claimed(stated: &Value) -> Option<String> {
        // Where the home of the user is may change in the run: only that of root is sure.
        let is_root = stated.get("user").and_then(Value::as_str) == Some("root");
        is_root.then(|| "/root/.ssh/authorized_keys".to_owned())
    }
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
                let paths = vec![record_path("passwd", self.user.0)];
                (format!("~{}", self.user.0), Some(Presumed { failure, paths }))
            }
        };
        let shown = format!("{}/.ssh/authorized_keys", home.trim_end_matches('/'));
        let path = cx.resolve(&shown);
        Ok(Location { shown: shown.into(), path, missing, directory: Some(0o700), absent })
    }

    fn identity(&self) -> Object {
        [("user", self.user.0), ("key", self.key.0)].map(|(name, text)| (name.to_owned(), Value::from(text))).into()
    }

    fn wanted(&self) -> Object {
        let stated = [
            ("type", self.kind.map(|kind| kind.0)),
            ("options", self.options.map(|options| options.0.trim())),
            ("comment", self.comment.map(|comment| comment.0.trim())),
        ];
        stated.into_iter().filter_map(|(name, text)| Some((name.to_owned(), Value::from(text?)))).collect()
    }

    fn find(&self, text: &str) -> Result<Option<Object>, Failure> {
        let line = entry(text, InForce::First, |line| self.is_own(line));
        let found = line.and_then(|line| Entry::of(line.text));
        Ok(found.map(|Entry { options, kind, comment, .. }| {
            let found = [("type", kind), ("options", options), ("comment", comment)];
            found.map(|(name, text)| (name.to_owned(), Value::from(text))).into()
        }))
    }

    fn put(&self, text: &str) -> Result<String, Failure> {
        let line = entry(text, InForce::First, |line| self.is_own(line));
        let former = line.and_then(|line| Entry::of(line.text));
        let (options, comment) = former.map_or(("", ""), |former| (former.options, former.comment));
        let words = [
            self.options.map_or(options, |options| options.0.trim()),
            self.kind.map_or("", |kind| kind.0),
            self.key.0,
            self.comment.map_or(comment, |comment| comment.0.trim()),
        ];
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        Ok(put_entry(text, InForce::First, |line| self.is_own(line), &words.join(" ")))
    }

    fn remove(&self, text: &str) -> Result<String, Failure> {
        Ok(without_entry(text, |line| self.is_own(line)))
    }
}

impl Properties<'_> {
    fn is_own(&self, line: &str) -> bool {
        Entry::of(line).is_some_and(|entry| entry.key == self.key.0)
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
