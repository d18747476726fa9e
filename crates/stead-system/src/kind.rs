//! The kinds of things in a file system, and modes as users write them.

use serde::{Deserialize, Serialize};

/// The kind of node that a name leads to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FileKind {
    /// A regular file
    File,
    /// A directory
    Directory,
    /// A symbolic link
    Symlink,
    /// A FIFO, a socket or a device
    Special,
}

impl FileKind {
    /// The word that messages use.
    pub fn word(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Directory => "directory",
            Self::Symlink => "symbolic link",
            Self::Special => "device, FIFO or socket",
        }
    }
}

/// Reads a mode: three or four octal digits.
pub fn parse_mode(text: &str) -> Option<u32> {
    let octal = matches!(text.len(), 3 | 4) && text.bytes().all(|digit| matches!(digit, b'0'..=b'7'));
    octal.then(|| u32::from_str_radix(text, 8).ok()).flatten()
}

/// Writes a mode as four octal digits.
pub fn format_mode(mode: u32) -> String {
    format!("{mode:04o}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_three_or_four_octal_digits() {
        assert_eq!(parse_mode("644"), Some(0o644));
        assert_eq!(parse_mode("4755"), Some(0o4755));
        for bad in ["", "7", "0o644", "u=rw", "888", "00644", "-644", "+644"] {
            assert_eq!(parse_mode(bad), None, "{bad}");
        }
        assert_eq!(format_mode(0o44), "0044");
    }
}
