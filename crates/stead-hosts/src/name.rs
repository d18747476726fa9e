//! Names that reach the command line of `ssh`, and the screens of users.

use std::fmt;

/// The longest name or address, as of a host in the domain name system.
const LONGEST: usize = 253;

/// The reason why a text is not a name, in a few words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadName {
    /// It is empty, or longer than a name may be.
    Length,
    /// It begins with a character that programs take for an option or a path.
    Start(char),
    /// It holds a character that is not in names.
    Character(char),
}

impl fmt::Display for BadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length => write!(f, "it must have 1 to {LONGEST} characters"),
            Self::Start(character) => write!(f, "it must not begin with '{}'", character.escape_default()),
            Self::Character(character) => write!(f, "it must not contain '{}'", character.escape_default()),
        }
    }
}

fn check(text: &str, more: &[char]) -> Result<(), BadName> {
    if text.is_empty() || text.len() > LONGEST {
        return Err(BadName::Length);
    }
    let is_usual = |character: char| character.is_ascii_alphanumeric() || matches!(character, '.' | '_' | '-');
    match text.chars().find(|character| !is_usual(*character) && !more.contains(character)) {
        Some(other) => Err(BadName::Character(other)),
        None => match text.chars().next() {
            Some(first @ ('-' | '.' | '@' | '+')) => Err(BadName::Start(first)),
            _ => Ok(()),
        },
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $type:ident, $more:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $type(String);

        impl $type {
            /// Returns the text as a name, or why it is none.
            pub fn parse(text: &str) -> Result<Self, BadName> {
                check(text, $more).map(|()| Self(text.to_owned()))
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name!(
    /// The name of a machine in an inventory, such as `web1` or `web1.example.org`.
    ///
    /// Guarantees: letters, digits, `.`, `_` and `-`, of which `.` and `-` are not the first. No program takes it for an option, no
    /// shell and no terminal does anything with it.
    MachineName,
    &[]
);

name!(
    /// Where `ssh` finds a machine: a name of its configuration or of the network, or an address.
    ///
    /// Guarantees: those of a [`MachineName`], where `:` and `%` are in addresses as well.
    Address,
    &[':', '%']
);

name!(
    /// The account on a machine.
    ///
    /// Guarantees: those of a [`MachineName`], where `@` and `+` are in it as well.
    UserName,
    &['@', '+']
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_or_a_terminal_would_obey_is_not_a_name() {
        for text in ["web1", "web-1.example.org", "_x", "10.0.0.1"] {
            assert_eq!(MachineName::parse(text).map(|name| name.to_string()), Ok(text.to_owned()));
        }
        let long = "a".repeat(254);
        let hostile =
            ["", "-oProxyCommand=id", "-", ".ssh", "a b", "a\nb", "a\u{1b}[2J", "a;id", "$(id)", "a/b", "ä", &long];
        for text in hostile {
            assert!(MachineName::parse(text).is_err(), "{text:?}");
            assert!(Address::parse(text).is_err(), "{text:?}");
            assert!(UserName::parse(text).is_err(), "{text:?}");
        }
        assert!(Address::parse("fe80::1%eth0").is_ok() && MachineName::parse("fe80::1").is_err());
        assert!(UserName::parse("ann@corp.example").is_ok() && Address::parse("ann@web1").is_err());
        assert_eq!(Address::parse("-x").map_err(|why| why.to_string()), Err("it must not begin with '-'".to_owned()));
    }
}
