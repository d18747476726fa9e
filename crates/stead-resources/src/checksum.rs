//! Digests of files as users state them: `sha256:` or `sha512:` and hexadecimal digits.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use sha2::{Digest, Sha256, Sha512};

/// The digest that a file must have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Checksum {
    algorithm: Algorithm,
    digest: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Algorithm {
    Sha256,
    Sha512,
}

impl Checksum {
    /// Reads it; the digits may be capital ones.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (algorithm, digits) = text.split_once(':')?;
        let (algorithm, length) = match algorithm {
            "sha256" => (Algorithm::Sha256, 64),
            "sha512" => (Algorithm::Sha512, 128),
            _ => return None,
        };
        let is_digest = digits.len() == length && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        is_digest.then(|| Self { algorithm, digest: digits.to_ascii_lowercase() })
    }

    /// That of SHA-256 with these digits.
    pub(crate) fn sha256(digits: &str) -> Option<Self> {
        Self::parse(&format!("sha256:{digits}"))
    }

    /// Whether the whole content of a file has it.
    pub(crate) fn is_of(&self, file: &File) -> io::Result<bool> {
        Ok(self.digest_of(file)? == self.digest)
    }

    /// What a file has in its place, as users state it.
    pub(crate) fn actual(&self, file: &File) -> io::Result<String> {
        let word = match self.algorithm {
            Algorithm::Sha256 => "sha256",
            Algorithm::Sha512 => "sha512",
        };
        Ok(format!("{word}:{}", self.digest_of(file)?))
    }

    fn digest_of(&self, file: &File) -> io::Result<String> {
        match self.algorithm {
            Algorithm::Sha256 => digest::<Sha256>(file),
            Algorithm::Sha512 => digest::<Sha512>(file),
        }
    }
}

fn digest<D: Digest>(mut file: &File) -> io::Result<String> {
    file.seek(SeekFrom::Start(0))?;
    let (mut hasher, mut chunk) = (D::new(), vec![0; 64 << 10]);
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok(hex(&hasher.finalize())),
            read => hasher.update(chunk.get(..read).unwrap_or_default()),
        }
    }
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
