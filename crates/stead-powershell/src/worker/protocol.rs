//! The messages to a worker and from it, a line each: of a request a number, what is asked for and the values, with tabs between them;
//! an answer is JSON. Texts that a worker would have to take out of JSON for each call are stated as [`fields`].

use std::fmt::Write as _;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::value::RawValue;
use stead_host::provider::ActivityProgress;

/// The version of the protocol that this program speaks.
pub(super) const VERSION: u32 = 1;

/// The method that is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// Reads the actual state.
    Get,
    /// Compares it with the desired one.
    Test,
    /// Reaches the desired state.
    Set,
    /// Removes the instance.
    Delete,
    /// Says what a set would do.
    WhatIf,
    /// Lists what is there.
    Export,
}

impl Method {
    /// Its name in PowerShell.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Get => "Get",
            Self::Test => "Test",
            Self::Set => "Set",
            Self::Delete => "Delete",
            Self::WhatIf => "WhatIf",
            Self::Export => "Export",
        }
    }
}

/// How much of what a resource writes besides its result is wanted, each with what is before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Records {
    /// Errors and warnings.
    None,
    /// Messages for a person, as by `Write-Host`.
    Information,
    /// `Write-Verbose`
    Verbose,
    /// `Write-Debug`
    Debug,
}

impl Records {
    /// Its name for a worker.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Information => "information",
            Self::Verbose => "verbose",
            Self::Debug => "debug",
        }
    }
}

/// Texts as one: U+0001 between them, and what is below a space in one, and `\`, as a regular expression has it.
pub(super) fn fields<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let mut joined = String::new();
    for (index, text) in texts.into_iter().enumerate() {
        if index > 0 {
            joined.push('\u{1}');
        }
        for character in text.chars() {
            match character {
                '\\' => joined.push_str("\\\\"),
                '\0'..' ' => {
                    // Writing to a string cannot fail.
                    let _ = write!(joined, "\\u{:04x}", u32::from(character));
                }
                _ => joined.push(character),
            }
        }
    }
    joined
}

/// A line of a worker: what is absent decides which message it is.
#[derive(Deserialize)]
pub(super) struct Line {
    pub(super) id: String,
    hello: Option<Hello>,
    stream: Option<Stream>,
    message: Option<String>,
    #[serde(rename = "type")]
    ty: Option<String>,
    output: Option<Box<RawValue>>,
    refused: Option<String>,
    progress: Option<ActivityProgress>,
    done: Option<Done>,
    error: Option<PowerShellError>,
}

/// A message of a worker, one line each.
pub(super) enum Message {
    Hello(Hello),
    Record(Stream, String),
    Progress(ActivityProgress),
    /// An object: its type, and its JSON or why it has none.
    Output(String, Result<Box<RawValue>, String>),
    Done(Done),
    Error(PowerShellError),
}

impl Line {
    pub(super) fn message(self) -> Option<Message> {
        let output = self.output.or_else(|| RawValue::from_string("null".to_owned()).ok());
        let object = self.ty.zip(self.refused.map(Err).or(output.map(Ok)));
        let record = self.stream.zip(self.message).map(|(stream, message)| Message::Record(stream, message));
        let record = record.or(self.progress.map(Message::Progress));
        let message = self.done.map(Message::Done).or(self.error.map(Message::Error)).or(record);
        message.or(object.map(|(ty, json)| Message::Output(ty, json))).or(self.hello.map(Message::Hello))
    }
}

/// The first message of a worker.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct Hello {
    pub(super) protocol: u32,
    /// The version of PowerShell.
    pub version: String,
    /// `Core` or `Desktop`.
    pub edition: String,
    /// `$PSHOME`: its own modules are in `Modules` below it.
    pub home: PathBuf,
}

impl Hello {
    /// Returns whether this program and PowerShell understand each other.
    pub(super) fn is_understood(&self) -> bool {
        let mut numbers = self.version.split('.').map(str::parse::<u32>);
        let version = (numbers.next(), numbers.next());
        self.protocol == VERSION && matches!(version, (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= (7, 2))
    }
}

/// The stream of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Stream {
    /// `Write-Error`
    Error,
    /// `Write-Warning`
    Warning,
    /// `Write-Verbose`
    Verbose,
    /// `Write-Debug`
    Debug,
    /// `Write-Information`, `Write-Host`, and what programs of the system write to their standard error
    Information,
}

/// How a call came to its end.
#[derive(Clone, Copy, Default, Deserialize)]
pub(super) struct Done {
    /// True if the script ended by itself, and not by `exit`.
    pub(super) ended: bool,
    /// True if `$global:DSCMachineStatus` was 1.
    pub(super) reboot: bool,
}

/// An error of PowerShell that ended a call.
#[derive(Clone, PartialEq, Eq, Default, Debug, Deserialize)]
#[serde(default)]
pub struct PowerShellError {
    /// Its fully qualified id.
    pub id: String,
    /// Its category.
    pub category: String,
    /// The type of the exception.
    #[serde(rename = "type")]
    pub ty: String,
    /// The text of the error.
    pub message: String,
    /// The exceptions within that one, the outermost first: type and text.
    pub inner: Vec<(String, String)>,
    /// The calls that led to it, one a line.
    pub stack: String,
    /// File and line, where PowerShell knows them.
    pub at: String,
    /// `load` while the module is loaded, `call` afterwards.
    pub during: String,
    /// The property that was assigned.
    pub property: String,
    /// True if `$global:DSCMachineStatus` was 1.
    pub reboot: bool,
}
