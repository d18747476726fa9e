//! How a function is declared: what it takes and returns, and how it is explained.

use crate::expr::builtin::{Builtin, Run, Sight, ValueKind};

/// A function of that name, to be completed by the methods below.
pub(super) const fn function(name: &'static str, run: Run, categories: &'static [&'static str]) -> Builtin {
    Builtin {
        name,
        categories,
        description: "",
        syntax: "",
        constraints: None,
        min: 0,
        max: None,
        accepts: &[],
        rest: None,
        returns: &[],
        run,
        sight: Sight::Whole,
    }
}

impl Builtin {
    pub(super) const fn takes(self, min: usize, max: Option<usize>, accepts: &'static [&'static [ValueKind]]) -> Self {
        Self { min, max, accepts, ..self }
    }

    pub(super) const fn then(self, rest: &'static [ValueKind]) -> Self {
        Self { rest: Some(rest), ..self }
    }

    pub(super) const fn returns(self, returns: &'static [ValueKind]) -> Self {
        Self { returns, ..self }
    }

    pub(super) const fn sees(self, sight: Sight) -> Self {
        Self { sight, ..self }
    }

    pub(super) const fn says(self, syntax: &'static str, description: &'static str) -> Self {
        Self { description, syntax, ..self }
    }

    pub(super) const fn if_only(self, constraints: &'static str) -> Self {
        Self { constraints: Some(constraints), ..self }
    }
}
