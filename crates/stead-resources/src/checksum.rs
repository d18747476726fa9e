//! Digests of files as users state them: `sha256:` or `sha512:` and hexadecimal digits.

use std::convert;
use std::fs::File;
use std::io::{self, Read, Seek};

use sha2::digest::Output;
use sha2::{Digest, Sha256, Sha512};
use stead_core::digest::hex;

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

    /// Returns whether the whole content of a file has it.
    pub(crate) fn is_of(&self, file: &File) -> io::Result<bool> {
        self.is_of_chunks(file, convert::identity, |_| Ok(()))
    }

    /// The same, while `each` gets every chunk.
    pub(crate) fn is_of_chunks<E>(
        &self,
        file: &File,
        unreadable: impl Fn(io::Error) -> E,
        each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<bool, E> {
        Ok(self.digest_of(file, unreadable, each)? == self.digest)
    }

    /// What a file has in its place, as users state it.
    pub(crate) fn actual(&self, file: &File) -> io::Result<String> {
        let word = match self.algorithm {
            Algorithm::Sha256 => "sha256",
            Algorithm::Sha512 => "sha512",
        };
        Ok(format!("{word}:{}", self.digest_of(file, convert::identity, |_| Ok(()))?))
    }

    fn digest_of<E>(
        &self,
        mut file: &File,
        unreadable: impl Fn(io::Error) -> E,
        each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<String, E> {
        file.rewind().map_err(&unreadable)?;
        Ok(match self.algorithm {
            Algorithm::Sha256 => hex(&digest::<Sha256, E>(&mut file, unreadable, each)?),
            Algorithm::Sha512 => hex(&digest::<Sha512, E>(&mut file, unreadable, each)?),
        })
    }
}

/// As much as is read at once.
pub(crate) const CHUNK: usize = 64 << 10;

/// The digest of all that is read from somewhere. `each` gets every chunk; all but the last have [`CHUNK`] bytes.
pub(crate) fn digest<D: Digest, E>(
    from: &mut (impl Read + ?Sized),
    unreadable: impl Fn(io::Error) -> E,
    mut each: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<Output<D>, E> {
    let (mut hasher, mut chunk) = (D::new(), Vec::with_capacity(CHUNK));
    loop {
        chunk.clear();
        Read::take(&mut *from, CHUNK as u64).read_to_end(&mut chunk).map_err(&unreadable)?;
        if chunk.is_empty() {
            return Ok(hasher.finalize());
        }
        hasher.update(&chunk);
        each(&chunk)?;
    }
}
