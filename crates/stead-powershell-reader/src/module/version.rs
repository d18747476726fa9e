//! Versions of modules, as `System.Version` has them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Two to four numbers. `1.0` is below `1.0.0`: what is not stated is below 0.
///
/// # Examples
/// ```
/// use stead_powershell_reader::module::Version;
///
/// assert!(Version::parse("1.0") < Version::parse("1.0.0"));
/// assert!(Version::parse("1.9") < Version::parse("1.10"));
/// assert_eq!(Version::parse("1.0.0-beta"), None);
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Version(Vec<u32>);

impl Version {
    /// Reads a version; `None` when it is not one.
    pub fn parse(text: &str) -> Option<Self> {
        let part = |part: &str| {
            let digits = part.trim();
            let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            plain.then(|| digits.parse::<i32>().ok()).flatten().and_then(|number| u32::try_from(number).ok())
        };
        let parts: Vec<u32> = text.split('.').map(part).collect::<Option<_>>()?;
        (2..=4).contains(&parts.len()).then_some(Self(parts))
    }

    /// The version of these parts.
    pub(super) fn of(parts: &[u32]) -> Self {
        Self(parts.to_vec())
    }

    /// Returns the version of a module whose manifest is not valid.
    pub fn none() -> Self {
        Self(vec![0, 0])
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, part) in self.0.iter().enumerate() {
            write!(f, "{}{part}", if at > 0 { "." } else { "" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_by_number() {
        let version = |text| Version::parse(text).unwrap();
        assert!(version("1.10") > version("1.9.9"));
        assert!(version("1.0") < version("1.0.0"));
        assert_eq!(version("01.02.3").to_string(), "1.2.3");
        assert_eq!(
            ["1", "1.0-beta", "1..2", "1.2.3.4.5", "a.b", "1.4294967296"].map(Version::parse),
            const { [const { None }; 6] }
        );
    }
}
