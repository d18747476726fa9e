//! Commands whose options are declared when they are called.

use std::ffi::OsString;
use std::ops::Deref;

use clap::builder::Resettable;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches, Subcommand};

/// The options of a command, or its commands, declared once it is the one that is called or described. To declare those of
/// all commands takes as long as all else that a start takes.
///
/// What the help says about the command is what its variant says, not the type of its options.
#[derive(Debug)]
pub(crate) struct Deferred<T>(T);

impl<T> Deferred<T> {
    /// What was given.
    pub(crate) fn into_inner(self) -> T {
        self.0
    }
}

impl<T: Args> Deferred<T> {
    /// Reads what follows the name of a command; `None` where it cannot be read or asks for help.
    pub(crate) fn alone(words: &[OsString]) -> Option<Self> {
        let command = T::augment_args(Command::new("stead").no_binary_name(true));
        let matches = command.try_get_matches_from(words).ok()?;
        T::from_arg_matches(&matches).ok().map(Self)
    }
}

impl<T> Deref for Deferred<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Args> Args for Deferred<T> {
    fn augment_args(command: Command) -> Command {
        command.defer(|command| with_own_about(command, T::augment_args))
    }

    fn augment_args_for_update(command: Command) -> Command {
        command.defer(|command| with_own_about(command, T::augment_args_for_update))
    }
}

impl<T: Subcommand> Subcommand for Deferred<T> {
    fn augment_subcommands(command: Command) -> Command {
        command.defer(|command| with_own_about(command, T::augment_subcommands))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        command.defer(|command| with_own_about(command, T::augment_subcommands_for_update))
    }

    fn has_subcommand(name: &str) -> bool {
        T::has_subcommand(name)
    }
}

impl<T: FromArgMatches> FromArgMatches for Deferred<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}

fn with_own_about(command: Command, declare: fn(Command) -> Command) -> Command {
    let (about, long_about) = (command.get_about().cloned(), command.get_long_about().cloned());
    declare(command).about(Resettable::from(about)).long_about(Resettable::from(long_about))
}
