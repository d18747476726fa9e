//! Names: of resource types, of instances, and the small numbers that stand for them inside.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// The fully qualified name of a resource type, such as `Microsoft.DSC/Group`.
///
/// Guarantees: it has the form `word(.word)*/word`. Names compare without regard to case and are printed as written.
///
/// # Examples
/// ```
/// use stead_core::id::TypeName;
///
/// let name = TypeName::parse("Microsoft.Windows/Registry")?;
/// assert_eq!(name.short(), "Registry");
/// // Compared without regard to case, printed as written.
/// assert_eq!(name, TypeName::parse("microsoft.windows/registry")?);
/// assert_eq!(name.to_string(), "Microsoft.Windows/Registry");
/// assert!(TypeName::parse("Registry").is_err());
/// # Ok::<(), stead_core::id::InvalidTypeName>(())
/// ```
#[derive(Clone)]
pub struct TypeName {
    text: Arc<str>,
}

/// Text that is not the name of a resource type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a resource type: expected 'Owner[.Area...]/Name'")]
pub struct InvalidTypeName(pub String);

impl TypeName {
    /// Reads a type name; letters, digits and `_` of any script count as word characters. The owner may have hyphens within, as the
    /// modules of PowerShell do.
    pub fn parse(text: &str) -> Result<Self, InvalidTypeName> {
        let valid = text.split_once('/').is_some_and(|(owner, name)| is_word(name) && owner.split('.').all(is_owner));
        if valid { Ok(Self { text: text.into() }) } else { Err(InvalidTypeName(text.to_owned())) }
    }

    /// The name as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The part behind the slash.
    pub fn short(&self) -> &str {
        self.text.rsplit_once('/').map_or(&*self.text, |(_, name)| name)
    }

    /// Everything before that: whose the resource is.
    pub fn owner(&self) -> &str {
        self.text.rsplit_once('/').map_or("", |(owner, _)| owner)
    }
}

fn is_owner(part: &str) -> bool {
    part.split('-').all(is_word)
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

fn folded(text: &str) -> impl Iterator<Item = char> + '_ {
    text.chars().flat_map(char::to_lowercase)
}

impl PartialEq for TypeName {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.text, &other.text) || self.cmp(other) == Ordering::Equal
    }
}
impl Eq for TypeName {}
impl PartialOrd for TypeName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for TypeName {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.text.is_ascii() && other.text.is_ascii() {
            let (one, other) = (self.text.as_bytes(), other.text.as_bytes());
            // Most names begin alike.
            let same = one.iter().zip(other).take_while(|(one, other)| one == other).count();
            let [one, other] = [&one[same..], &other[same..]].map(|rest| rest.iter().map(u8::to_ascii_lowercase));
            return one.cmp(other);
        }
        folded(&self.text).cmp(folded(&other.text))
    }
}
impl Hash for TypeName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // In pieces: a call for every character would cost more than all else that finding an instance does.
        let (mut piece, mut length) = ([0; 64], 0);
        if self.text.is_ascii()
            && let Some(piece) = piece.get_mut(..self.text.len())
        {
            piece.copy_from_slice(self.text.as_bytes());
            piece.make_ascii_lowercase();
            state.write(piece);
            return state.write_u8(0xff);
        }
        for c in folded(&self.text) {
            length += c.encode_utf8(&mut piece[length..]).len();
            if length > piece.len() - 4 {
                state.write(&piece[..length]);
                length = 0;
            }
        }
        state.write(&piece[..length]);
        state.write_u8(0xff);
    }
}
impl fmt::Display for TypeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
impl fmt::Debug for TypeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
impl serde::Serialize for TypeName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}
impl<'de> serde::Deserialize<'de> for TypeName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

/// The characters that stay as they are in the name part of a resource id: those that a URI never encodes.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Names one instance among its adjacent ones: `Type:name`, the name percent-encoded.
///
/// This is what `resourceId()` returns and what `dependsOn` and `reference()` take.
///
/// # Examples
/// ```
/// use stead_core::id::ResourceId;
///
/// let id = ResourceId::parse("Stead/File:home%20page")?;
/// assert_eq!(&*id.name, "home page");
/// assert_eq!(id.to_string(), "Stead/File:home%20page");
/// # Ok::<(), stead_core::id::InvalidResourceId>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ResourceId {
    /// The type; compared without regard to case.
    pub type_name: TypeName,
    /// The name, decoded; compared exactly.
    pub name: Arc<str>,
}

/// Text that is not a resource id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidResourceId {
    /// There is no colon between a type and a name.
    #[error("'{0}' is not a resource id: expected 'Type:name'")]
    NoName(String),
    /// The part in front of the colon is not a type.
    #[error(transparent)]
    Type(#[from] InvalidTypeName),
    /// The name is not percent-encoded UTF-8.
    #[error("the name in '{0}' is not percent-encoded UTF-8")]
    Encoding(String),
}

impl ResourceId {
    /// Reads `Type:name`.
    pub fn parse(text: &str) -> Result<Self, InvalidResourceId> {
        let (type_name, name) = text.split_once(':').ok_or_else(|| InvalidResourceId::NoName(text.to_owned()))?;
        let type_name = TypeName::parse(type_name)?;
        let name = percent_decode_str(name).decode_utf8().map_err(|_| InvalidResourceId::Encoding(text.to_owned()))?;
        Ok(Self { type_name, name: name.into() })
    }
}

/// As its text, `Type:name`.
impl serde::Serialize for ResourceId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
impl<'de> serde::Deserialize<'de> for ResourceId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

impl fmt::Display for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.type_name, utf8_percent_encode(&self.name, KEPT))
    }
}

/// An instance of a graph, by its place in document order (nested instances after the one that holds them).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The place as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The handle of a secret in the vault of the host.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct SecretName(pub Arc<str>);

impl Borrow<str> for SecretName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_names_ignore_case_and_keep_it() {
        let name = TypeName::parse("Microsoft.DSC/Group").unwrap();
        assert_eq!(name, TypeName::parse("microsoft.dsc/GROUP").unwrap());
        assert_eq!(name.to_string(), "Microsoft.DSC/Group");
        for bad in ["", "a", "a/", "/b", "a/b/c", "a..b/c", "a b/c", "a/b:c"] {
            assert!(TypeName::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn resource_ids_encode_names() {
        let id =
            ResourceId { type_name: TypeName::parse("Microsoft/OSInfo").unwrap(), name: "Nested OSInfo/ä:1".into() };
        assert_eq!(id.to_string(), "Microsoft/OSInfo:Nested%20OSInfo%2F%C3%A4%3A1");
        assert_eq!(serde_json::from_value::<ResourceId>(serde_json::to_value(&id).unwrap()).unwrap(), id);
        assert_eq!(ResourceId::parse(&id.to_string()), Ok(id));
    }
}
