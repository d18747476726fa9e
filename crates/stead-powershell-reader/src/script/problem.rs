//! Mistakes that PowerShell's parser refuses.

use stead_core::diag::Code;
use stead_core::diag::codes::powershell::script as codes;

use crate::token::Flaw;

/// An error of PowerShell's parser.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SyntaxProblem {
    /// The kind of error.
    pub code: Code,
    /// The mistake, in one sentence.
    pub message: String,
    /// The offset that it is about.
    pub at: usize,
}

impl SyntaxProblem {
    pub(super) fn new(code: Code, at: usize, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), at }
    }

    pub(super) fn of_token(flaw: Flaw, at: usize) -> Self {
        let (code, message) = match flaw {
            Flaw::UnterminatedString => (&codes::UNTERMINATED, "the closing quote of this string is missing"),
            Flaw::UnterminatedComment => (&codes::UNTERMINATED, "the comment is not closed by '#>'"),
            Flaw::UnterminatedReference => {
                (&codes::UNTERMINATED, "the closing bracket of this '$(' or '${' is missing")
            }
            Flaw::HereStringHeader => (&codes::HERE_STRING, "a here-string starts on the line below its opening quote"),
            Flaw::UnknownCharacter => (&codes::UNEXPECTED, "'@' is only valid before a quote, a bracket or a name"),
            Flaw::VariableReference => (&codes::VARIABLE, "the ':' is not followed by the name of a variable"),
        };
        Self::new(code, at, message)
    }
}
