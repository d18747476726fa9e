//! Values that a resource accepts, and that probably do something else than was meant.

use stead_core::value::{Object, pointer};

/// The codes of such findings.
pub mod codes {
    stead_core::codes! {
        SUSPICIOUS = "W0814", "a value that probably does something else than was meant", "\
The value is valid and is used as it is written, and experience says that something else was meant. Among the values:

- the mode of a directory without `x`, which nobody but root can enter then;
- a `%` in the command of a job of cron, where the command ends;
- operators of a shell, such as `>` and `||`, in a list of arguments, where no shell reads them;
- a setting of a unit that systemd does not know, which it ignores;
- a `template` that is the name of a file, which would be all that is written;
- a `match` that does not match the `line` that it finds, so that each change adds another line.

The warning says what the value does, and the help what does the other. Nothing is changed because of it, and a value that
is meant as it is can stay.";
    }
}

/// A value that is valid, and probably does something else than was meant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lint {
    /// Where it is in the properties, as a JSON pointer.
    pub property: String,
    /// The effect of the value.
    pub message: String,
    /// The value or form that does what was probably meant.
    pub help: String,
}

impl Lint {
    /// About a property, or a value within it.
    pub fn new(steps: &[&str], message: impl Into<String>, help: impl Into<String>) -> Self {
        let property = steps.iter().fold(String::new(), |outer, step| pointer::within(&outer, step));
        Self { property, message: message.into(), help: help.into() }
    }
}

/// Finds such values in the properties of an instance. Some of these may be missing, because they are not known yet, and
/// secret ones are covered.
pub trait Linter {
    /// Returns what it finds.
    fn lint(&self, properties: &Object) -> Vec<Lint>;
}

impl Linter for fn(&Object) -> Vec<Lint> {
    fn lint(&self, properties: &Object) -> Vec<Lint> {
        self(properties)
    }
}
