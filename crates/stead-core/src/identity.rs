//! The identity of a document from one run to the next.

use std::fmt;
use std::path::Path;

use percent_encoding::{NON_ALPHANUMERIC, percent_encode, utf8_percent_encode};
use serde::{Deserialize, Serialize};

/// The name under which the records of a document are found again by later runs.
///
/// It is the `name` of its metadata, or else the real path of its file. The text does not matter, so that a document
/// stays the same one when it is edited. A document without a name from standard input is identified by the folder
/// that its paths start from.
///
/// Guarantees: different identities have different texts, each of one line, and a text is read as the identity that it was
/// written for.
///
/// # Examples
/// ```
/// use std::path::Path;
///
/// use stead_core::identity::DocumentIdentity;
///
/// let named = DocumentIdentity::of_stated_name(" web server ").ok_or("it has no name")?;
/// assert_eq!(named.as_str(), "name:web server");
/// assert_eq!(DocumentIdentity::of_file(Path::new("/srv/web.yaml")).as_str(), "file:/srv/web.yaml");
/// // Several documents may be piped into stead in one folder.
/// assert!(DocumentIdentity::of_input(Path::new("/srv")).is_shared());
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DocumentIdentity(String);

/// A text that does not identify a document.
#[derive(Debug, thiserror::Error)]
#[error("'{}' does not identify a document: it must be a line that begins with 'name:', 'file:' or 'input:'", .0.escape_debug())]
pub struct NotAnIdentity(String);

const NAME: &str = "name:";
const FILE: &str = "file:";
const INPUT: &str = "input:";

impl DocumentIdentity {
    /// Of a document that states a name, without the blanks around it; `None` where nothing is left.
    pub fn of_stated_name(name: &str) -> Option<Self> {
        let name = name.trim();
        (!name.is_empty()).then(|| Self(format!("{NAME}{}", escaped(name))))
    }

    /// The identity whose [`Self::name`] is this text.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::try_from(format!("{NAME}{name}")).ok()
    }

    /// The name that the document states, if it states one, as a line.
    pub fn name(&self) -> Option<&str> {
        self.0.strip_prefix(NAME)
    }

    /// Of a document in a file, by its real path.
    pub fn of_file(path: &Path) -> Self {
        Self(format!("{FILE}{}", path_text(path)))
    }

    /// Of a document from standard input, by the folder that its paths start from.
    pub fn of_input(folder: &Path) -> Self {
        Self(format!("{INPUT}{}", path_text(folder)))
    }

    /// Returns whether several documents may have this identity, so that unknown entries in its records may belong to
    /// another.
    pub fn is_shared(&self) -> bool {
        self.0.starts_with(INPUT)
    }

    /// The identity as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A path as text. One that is not Unicode is written with all its bytes escaped.
fn path_text(path: &Path) -> String {
    match path.to_str() {
        Some(text) => escaped(text),
        None => percent_encode(path.as_os_str().as_encoded_bytes(), NON_ALPHANUMERIC).to_string(),
    }
}

/// A text as one line.
fn escaped(text: &str) -> String {
    let escape = |character: char| match character {
        '%' => "%25".to_owned(),
        control if control.is_control() => {
            utf8_percent_encode(control.encode_utf8(&mut [0; 4]), NON_ALPHANUMERIC).to_string()
        }
        character => character.to_string(),
    };
    text.chars().map(escape).collect()
}

impl fmt::Display for DocumentIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<DocumentIdentity> for String {
    fn from(identity: DocumentIdentity) -> Self {
        identity.0
    }
}

impl TryFrom<String> for DocumentIdentity {
    type Error = NotAnIdentity;

    fn try_from(text: String) -> Result<Self, NotAnIdentity> {
        let is_of_kind = |kind: &&str| text.strip_prefix(*kind).is_some_and(|rest| !rest.is_empty());
        let is_one = !text.contains(char::is_control) && [NAME, FILE, INPUT].iter().any(is_of_kind);
        if is_one { Ok(Self(text)) } else { Err(NotAnIdentity(text)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stated_name_is_one_line() {
        let of = |name: &str| DocumentIdentity::of_stated_name(name).map(String::from);
        assert_eq!(of(" web ").as_deref(), Some("name:web"));
        assert_eq!(of("a\n50%\u{9b}").as_deref(), Some("name:a%0A50%25%C2%9B"));
        assert_eq!(of(" "), None);
    }

    #[test]
    fn different_paths_have_different_texts() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;

        let paths: [&[u8]; 6] = [b"/a", b"/a\xff", b"/a%FF", b"/a%25FF", b"/a\n", b"/\xc3\xa4"];
        let texts = paths.map(|path| DocumentIdentity::of_file(Path::new(OsStr::from_bytes(path))));
        for (at, text) in texts.iter().enumerate() {
            assert!(texts.iter().skip(at + 1).all(|other| other != text), "{text}");
            assert_eq!(DocumentIdentity::try_from(text.to_string()).unwrap(), *text);
        }
        assert_eq!(texts[5].as_str(), "file:/ä");
        for text in ["web", "name:", "name:a\nb"] {
            assert!(DocumentIdentity::try_from(text.to_owned()).is_err());
        }
    }
}
