//! One form for all that is signed: lines, and signatures of just these bytes behind them.

use std::fmt::Write as _;
use std::str::{FromStr, Split};

use stead_core::diag::Code;

use crate::codes;
use crate::name::Digest;
use crate::signature::{BEGIN, Signature};

/// The longest file that is read, in bytes: the roster of a large fleet.
pub const LONGEST: usize = 32 << 20;
/// The longest file of any other kind, in bytes. Whoever signed nothing can have a machine read as much.
pub const LONGEST_STATEMENT: usize = 1 << 20;
/// How many signatures a statement may have: no more signers are in a list.
pub const MOST_SIGNATURES: usize = 32;

/// The reason why bytes are not a statement.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadForm {
    /// It is a statement of another kind.
    #[error("it is a {found}, not a {wanted}")]
    Other {
        /// The kind that it is.
        found: &'static str,
        /// The kind that was to be read.
        wanted: &'static str,
    },
    /// It does not begin as a statement of a version that is known here.
    #[error("it is not a {0}")]
    Unknown(&'static str),
    /// A line is not as it is written by this program.
    #[error("line {0} is not valid")]
    Line(usize),
    /// A signature is not as `ssh-keygen` writes it, or its key has an algorithm that is not supported.
    #[error("signature {0} is not valid")]
    Signature(usize),
    /// It is longer than a statement may be.
    #[error("it is too large")]
    TooLarge,
}

impl BadForm {
    /// The code of the finding.
    pub fn code(&self) -> Code {
        match self {
            Self::Other { .. } => &codes::PURPOSE,
            _ => &codes::FORM,
        }
    }
}

/// A kind of statement: how its lines are written and read.
///
/// Laws: what `read` makes of what `write` wrote is equal; other lines than those that `write` writes are never accepted, since
/// they are compared.
pub trait Signable: Sized {
    /// Its first word, which is also the namespace of its signatures: what was signed for one purpose is nothing for another.
    const PURPOSE: &'static str;
    /// The word for it in messages.
    const WORD: &'static str;
    /// How long a file of it may be, in bytes.
    const LONGEST: usize = LONGEST_STATEMENT;

    /// Writes its lines behind the first.
    fn write(&self, lines: &mut Lines);

    /// Reads its lines.
    fn read(lines: &mut StatementLines<'_>) -> Option<Self>;
}

/// The lines of a statement that is written.
#[derive(Default)]
pub struct Lines(String);

impl Lines {
    /// Appends a line.
    pub(crate) fn put(&mut self, word: &str, value: impl std::fmt::Display) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "{word} {value}");
    }
}

/// The lines of a statement that is read.
pub struct StatementLines<'t> {
    left: Split<'t, char>,
    line: usize,
}

impl Lines {
    /// The text of the lines.
    pub(crate) fn into_text(self) -> String {
        self.0
    }
}

impl<'t> StatementLines<'t> {
    /// What `parse` makes of the text behind a word that begins the next line. If there is nothing of it, the line is the next one
    /// still.
    pub(crate) fn parsed<T>(&mut self, word: &str, parse: impl FnOnce(&'t str) -> Option<T>) -> Option<T> {
        let mut ahead = self.left.clone();
        let value = parse(ahead.next()?.strip_prefix(word)?.strip_prefix(' ')?)?;
        self.left = ahead;
        self.line += 1;
        Some(value)
    }

    /// The value behind a word that begins the next line.
    pub(crate) fn value<T: FromStr>(&mut self, word: &str) -> Option<T> {
        self.parsed(word, |text| text.parse().ok())
    }
}

/// A statement with the bytes that are signed, and its signatures.
///
/// Invariant: the bytes are those that the statement is written as. Nothing is ever written anew to be checked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signed<S> {
    statement: S,
    bytes: Box<str>,
    signatures: Vec<Signature>,
}

impl<S: Signable> Signed<S> {
    /// A statement that nobody has signed.
    pub fn new(statement: S) -> Self {
        let bytes = written(&statement).into();
        Self { statement, bytes, signatures: Vec::new() }
    }

    /// Reads a statement with its signatures, none of which is checked.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadForm> {
        if bytes.len() > S::LONGEST {
            return Err(BadForm::TooLarge);
        }
        let text = std::str::from_utf8(bytes).map_err(|_| BadForm::Unknown(S::WORD))?;
        let (stated, mut left) = text.split_at(text.find(BEGIN).unwrap_or(text.len()));
        let statement = statement(stated)?;
        let mut signatures = Vec::new();
        while !left.is_empty() {
            let read = Signature::read(left).filter(|_| signatures.len() < MOST_SIGNATURES);
            let (signature, rest) = read.ok_or(BadForm::Signature(signatures.len() + 1))?;
            signatures.push(signature);
            left = rest;
        }
        Ok(Self { statement, bytes: stated.into(), signatures })
    }

    /// The statement itself.
    pub fn statement(&self) -> &S {
        &self.statement
    }

    /// The bytes that are signed.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.as_bytes()
    }

    /// The name of the statement: the digest of what is signed. Further signatures do not change it.
    pub fn digest(&self) -> Digest {
        Digest::of(self.bytes())
    }

    /// Its signatures, of which none is checked.
    pub fn signatures(&self) -> &[Signature] {
        &self.signatures
    }

    /// Adds a signature as `ssh-keygen -Y sign` prints it. `None` if it is not one of these bytes for this purpose, or if its key has
    /// signed already.
    pub fn add(&mut self, text: &str) -> Option<()> {
        let (signature, "") = Signature::read(text)? else { return None };
        let is_new = self.signatures.iter().all(|other| other.key() != signature.key());
        let is_ours = signature.namespace() == S::PURPOSE && signature.is_of(self.bytes());
        (is_new && is_ours && self.signatures.len() < MOST_SIGNATURES).then(|| self.signatures.push(signature))
    }

    /// Adds a signature that was made here.
    pub(crate) fn with(mut self, signature: Signature) -> Self {
        self.signatures.push(signature);
        self
    }

    /// The text of the file.
    pub fn to_text(&self) -> String {
        self.signatures.iter().fold(self.bytes.to_string(), |text, signature| text + &signature.to_text())
    }
}

fn first_line(purpose: &str) -> String {
    format!("{purpose} 1\n")
}

fn written<S: Signable>(statement: &S) -> String {
    let mut lines = Lines(first_line(S::PURPOSE));
    statement.write(&mut lines);
    lines.0
}

fn statement<S: Signable>(text: &str) -> Result<S, BadForm> {
    let Some(lines) = text.strip_prefix(&first_line(S::PURPOSE)) else {
        let other = crate::PURPOSES.into_iter().find(|(purpose, _)| text.starts_with(&first_line(purpose)));
        return Err(match other {
            Some((_, found)) => BadForm::Other { found, wanted: S::WORD },
            None => BadForm::Unknown(S::WORD),
        });
    };
    let mut reading = StatementLines { left: lines.split('\n'), line: 2 };
    let statement = S::read(&mut reading).ok_or(BadForm::Line(reading.line))?;
    let again = written(&statement);
    if again == text {
        return Ok(statement);
    }
    let same = text.split('\n').zip(again.split('\n')).take_while(|(found, wanted)| found == wanted).count();
    Err(BadForm::Line(same + 1))
}
