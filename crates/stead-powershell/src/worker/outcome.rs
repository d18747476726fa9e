//! The outcome of a call, by the messages that the worker sent: this is where failures are seen that PowerShell
//! passes over.

use serde_json::value::RawValue;
use stead_host::provider::ActivityProgress;

use super::Call;
use super::protocol::{Done, Message, Method, PowerShellError, Stream};

/// A record of a stream, in the order in which they were written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StreamRecord {
    /// The stream.
    pub stream: Stream,
    /// The text.
    pub message: String,
}

/// Why a call failed, though the worker goes on.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WorkerError {
    /// PowerShell says so.
    #[error("{}", in_words(.0))]
    PowerShell(Box<PowerShellError>),
    /// The script was left before its end.
    #[error("the resource left its script early: by 'exit', or by 'break' or 'continue' outside of a loop")]
    Left {
        /// True if it asked for a restart of the machine before.
        reboot: bool,
    },
    /// There is no verdict.
    #[error("Test must return true or false{0}")]
    Verdict(String),
    /// The state cannot be expressed.
    #[error("the state has no JSON form: {0}")]
    State(String),
    /// There are several states, of these types.
    #[error("Get returned {} objects, of the types {}; expected one", .0.len(), listed(.0))]
    States(Vec<String>),
}

impl WorkerError {
    /// Returns whether the resource asked for a restart of the machine before it failed.
    pub fn asks_for_restart(&self) -> bool {
        match self {
            Self::PowerShell(error) => error.reboot,
            Self::Left { reboot } => *reboot,
            Self::Verdict(_) | Self::State(_) | Self::States(_) => false,
        }
    }
}

/// The first of them, as many as a reader wants.
fn listed(types: &[String]) -> String {
    let shown: Vec<String> = types.iter().take(5).map(|ty| format!("'{ty}'")).collect();
    shown.join(", ") + if types.len() > shown.len() { " and others" } else { "" }
}

fn in_words(error: &PowerShellError) -> String {
    let message = error.message.trim();
    let mut text = if message.is_empty() { error.id.clone() } else { message.to_owned() };
    if !error.property.is_empty() {
        text = format!("property '{}': {text}", error.property);
    }
    if error.during == "load" {
        text = format!("cannot load the module: {text}");
    }
    if error.at.is_empty() { text } else { format!("{text} ({})", error.at) }
}

/// The outcome of a method that was carried out.
#[derive(Debug, Default)]
pub struct MethodReply {
    /// The objects that it returned or leaked: of each the type and the JSON.
    pub(super) outputs: Vec<Output>,
    /// True if it asked for a restart of the machine.
    pub reboot_required: bool,
}

/// One object.
#[derive(Debug)]
pub(super) struct Output {
    ty: String,
    json: Result<Box<RawValue>, String>,
}

impl Output {
    fn is_state(&self) -> bool {
        match &self.json {
            Ok(json) => json.get().starts_with('{'),
            Err(_) => true,
        }
    }

    fn text(&self) -> &str {
        self.json.as_ref().map_or_else(String::as_str, |json| json.get())
    }

    /// Returns its message: a string as itself, since a secret in it would not be recognized in JSON.
    fn message(&self) -> String {
        serde_json::from_str(self.text()).unwrap_or_else(|_| self.text().to_owned())
    }
}

impl MethodReply {
    /// The verdict of a test: what it wrote last, which must be a boolean.
    pub fn verdict(&self) -> Result<bool, WorkerError> {
        match self.outputs.last().map(|last| (last.ty.as_str(), last.text())) {
            Some(("System.Boolean", "true")) => Ok(true),
            Some(("System.Boolean", "false")) => Ok(false),
            Some(("", _)) => Err(WorkerError::Verdict(", not null".to_owned())),
            Some((other, _)) => Err(WorkerError::Verdict(format!(", not a value of the type '{other}'"))),
            None => Err(WorkerError::Verdict(", and returned nothing".to_owned())),
        }
    }

    /// The state that a get returned, as JSON; `None` for null and nothing.
    pub fn state(&self) -> Result<Option<&RawValue>, WorkerError> {
        let states: Vec<&Output> = self.outputs.iter().filter(|output| output.is_state()).collect();
        match states.as_slice() {
            [] => match self.outputs.last() {
                Some(last) if !last.ty.is_empty() => {
                    Err(WorkerError::State(format!("it is a value of the type '{}'", last.ty)))
                }
                _ => Ok(None),
            },
            [one] => one.json.as_deref().map(Some).map_err(|refused| WorkerError::State(refused.clone())),
            several => Err(WorkerError::States(several.iter().map(|one| one.ty.clone()).collect())),
        }
    }

    /// The states that an export returned.
    pub fn states(&self) -> Result<Vec<&RawValue>, WorkerError> {
        let states = self.outputs.iter().filter(|output| output.is_state());
        states.map(|one| one.json.as_deref().map_err(|refused| WorkerError::State(refused.clone()))).collect()
    }

    /// Returns the results as text.
    pub fn texts(&self) -> Vec<String> {
        self.outputs.iter().filter(|output| !output.ty.is_empty()).map(Output::message).collect()
    }
}

/// Takes the messages of one call.
pub(super) struct Collector<'a> {
    method: Method,
    reply: MethodReply,
    forward: &'a mut dyn FnMut(StreamRecord),
    progress: Option<&'a dyn Fn(ActivityProgress)>,
}

/// How far a call is.
pub(super) enum Progress {
    /// It goes on.
    Running,
    /// It came to its end.
    Ended(Result<MethodReply, WorkerError>),
}

impl<'a> Collector<'a> {
    pub(super) fn new(call: &Call<'a>, forward: &'a mut dyn FnMut(StreamRecord)) -> Self {
        Self { method: call.method, reply: MethodReply::default(), forward, progress: call.progress }
    }

    /// Something that was printed or written besides.
    pub(super) fn forward(&mut self, stream: Stream, message: String) {
        (self.forward)(StreamRecord { stream, message });
    }

    pub(super) fn take(&mut self, message: Message) -> Progress {
        match message {
            Message::Hello(_) => {}
            Message::Record(stream, message) => self.forward(stream, message),
            Message::Progress(progress) => {
                if let Some(sink) = self.progress {
                    sink(progress);
                }
            }
            Message::Output(ty, json) => self.reply.outputs.push(Output { ty, json }),
            Message::Done(done) => return Progress::Ended(self.end(done)),
            Message::Error(error) => return Progress::Ended(Err(WorkerError::PowerShell(Box::new(error)))),
        }
        Progress::Running
    }

    fn end(&mut self, done: Done) -> Result<MethodReply, WorkerError> {
        if !done.ended {
            return Err(WorkerError::Left { reboot: done.reboot });
        }
        self.leaked();
        Ok(MethodReply { reboot_required: done.reboot, ..std::mem::take(&mut self.reply) })
    }

    /// Turns output besides the result into messages.
    fn leaked(&mut self) {
        let leaked = match self.method {
            Method::Test => self.reply.outputs.len().saturating_sub(1),
            Method::Set | Method::Delete => self.reply.outputs.len(),
            Method::Get | Method::WhatIf | Method::Export => 0,
        };
        let texts: Vec<String> = self.reply.outputs.iter().take(leaked).map(Output::message).collect();
        for text in texts {
            self.forward(Stream::Information, text);
        }
    }
}
