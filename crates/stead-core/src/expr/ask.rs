//! The functions that depend on more than their arguments: parameters, instances, what only the machine knows.

use std::ops::Range;

use super::builtin::{Ask, Builtin};
use super::builtins::date;
use super::codes;
use super::evaluate::{Evaluator, hint, located, stop};
use super::facts::{FactPath, fact_of_others, fact_origin, fact_path, fact_paths};
use super::syntax::Node;
use super::{Answer, FactKey, Fault, Help, Stop, fact_at};
use crate::diag::Meant;
use crate::id::{ResourceId, SecretName};
use crate::value::Value;

/// The fault of a path at which no machine has a fact.
pub(super) fn unknown_fact(path: &str, at: &Range<usize>) -> Fault {
    let message = format!("there is no fact '{path}'");
    let meant = fact_of_others(path).map(Meant::only).or_else(|| Meant::word(path, fact_paths()));
    let help = match meant {
        Some(meant) => Help::Meant { wrong: path.to_owned(), meant },
        None => below(path).unwrap_or_else(|| "`stead facts` lists them all".to_owned()).into(),
    };
    Fault { code: &codes::UNKNOWN_NAME, message, at: at.clone(), help: Some(help) }
}

/// The paths where the last name of a path was looked for.
fn below(path: &str) -> Option<String> {
    let (above, _) = path.rsplit_once('.')?;
    let known: Vec<&str> =
        fact_paths().filter(|known| known.strip_prefix(above).is_some_and(|rest| rest.starts_with('.'))).collect();
    (!known.is_empty()).then(|| format!("available: {}", known.join(", ")))
}

/// One call of such a function.
struct Question<'q> {
    builtin: &'static Builtin,
    /// Text or integers: everything such a function accepts.
    arguments: &'q [Value],
    nodes: &'q [Node],
    at: &'q Range<usize>,
}

impl<'q> Question<'q> {
    fn text(&self, position: usize) -> Option<&'q str> {
        self.arguments.get(position).and_then(Value::as_str)
    }

    /// The first argument, which every function has that is asked about a name.
    fn name(&self) -> &'q str {
        self.text(0).unwrap_or("")
    }

    fn place(&self, position: usize) -> &'q Range<usize> {
        self.nodes.get(position).map_or(self.at, |node| &node.at)
    }

    fn refused(&self, position: usize, message: impl Into<String>) -> Stop {
        stop(&codes::ARGUMENT_VALUE, self.place(position), message, None)
    }

    fn absent(&self, message: String, known: &[String]) -> Stop {
        let help = hint(self.name(), known.iter().map(String::as_str)).or_else(|| self.declaration().map(Help::from));
        stop(&codes::UNKNOWN_NAME, self.place(0), message, help)
    }

    /// Returns where a name is declared that nothing is like.
    fn declaration(&self) -> Option<&'static str> {
        match self.builtin.name {
            "parameters" => Some("declare it in 'parameters'"),
            "variables" => Some("declare it in 'variables', before it is used"),
            "facts" => Some("this machine does not have it; `stead facts` lists those that it has"),
            _ => None,
        }
    }

    fn not_here(&self) -> Stop {
        let name = self.builtin.name;
        let restriction = match name {
            "utcNow" => "can only be used as a parameter default",
            "copyIndex" => "can only be used when processing a 'Copy' loop",
            _ => "is not available here",
        };
        let help = match name {
            "copyIndex" => Some(
                "add 'copy' to the instance; what is nested in a loop gets its index as a parameter, from a Microsoft.DSC/Include \
                 with 'parametersContent'",
            ),
            _ => None,
        };
        let help = help.map(Help::from);
        stop(&codes::NOT_HERE, self.at, format!("The '{name}()' function {restriction}"), help)
    }

    /// The value of an answer; `absent` says what is missing.
    fn settle(&self, answer: Answer, absent: impl FnOnce() -> String) -> Result<Value, Stop> {
        match answer {
            Answer::Value(value) => Ok(value),
            Answer::Unknown(id) => Err(Stop::Unknown(id)),
            Answer::Open(kinds) => Err(Stop::Open(kinds)),
            Answer::Absent { known } => Err(self.absent(absent(), &known)),
            Answer::NotHere => Err(self.not_here()),
        }
    }
}

impl Evaluator<'_> {
    /// The item of a loop around.
    pub(super) fn item(&mut self, called: &str, at: &Range<usize>) -> Result<Value, Stop> {
        let known = match self.environment.item(called) {
            Answer::Value(item) => return self.copied(item, at),
            Answer::Unknown(id) => return Err(Stop::Unknown(id)),
            Answer::Open(kinds) => return Err(Stop::Open(kinds)),
            Answer::Absent { known } => known,
            Answer::NotHere => Vec::new(),
        };
        let message = format!("no enclosing loop has an item named '{called}'");
        Err(stop(&codes::UNKNOWN_NAME, at, message, hint(called, known.iter().map(String::as_str))))
    }

    pub(super) fn ask(
        &mut self,
        ask: Ask,
        builtin: &'static Builtin,
        nodes: &[Node],
        at: &Range<usize>,
    ) -> Result<Value, Stop> {
        let arguments = self.arguments(builtin, nodes)?;
        if let Some(sealed) = arguments.iter().position(Value::has_sealed) {
            let place = nodes.get(sealed).map_or(at, |node| &node.at);
            let message = format!("argument {} of '{}' is a secret, but must be readable", sealed + 1, builtin.name);
            return Err(stop(&codes::SEALED, place, message, None));
        }
        let question = Question { builtin, arguments: &arguments, nodes, at };
        if self.frame.is_some() && is_foreign_to_functions(ask) {
            let message = format!("The '{}()' function is not available in user-defined functions", builtin.name);
            let help = "hand in what the function needs as an argument".to_owned();
            return Err(stop(&codes::NOT_HERE, at, message, Some(help.into())));
        }
        let value = self.answer(ask, &question)?;
        self.copied(value, at)
    }

    fn answer(&mut self, ask: Ask, question: &Question<'_>) -> Result<Value, Stop> {
        let environment = self.environment;
        let name = question.name();
        match ask {
            Ask::Parameter => self.parameter(question),
            Ask::Variable => self.variable(question),
            Ask::LambdaVariable => self.lambda_variable(question),
            Ask::Reference => {
                let id = resource_id(question)?;
                question.settle(environment.reference(&id), || not_executed(name))
            }
            Ask::StateChanged => {
                let id = resource_id(question)?;
                question.settle(environment.state_changed(&id), || not_executed(name))
            }
            Ask::RestartRequired => self.restart_required(question),
            Ask::CopyIndex => self.copy_index(question),
            Ask::Stdout => question.settle(environment.stdout(), || "there is no output".to_owned()),
            Ask::UtcNow => self.utc_now(question),
            Ask::EnvironmentVariable => {
                let key = FactKey::EnvironmentVariable(name.to_owned());
                self.present(key, question, || format!("Environment variable '{name}' not found"))
            }
            Ask::Executable => self.fact(FactKey::Executable(name.to_owned())),
            Ask::SystemRoot => self.fact(FactKey::SystemRoot),
            Ask::Context => self.fact(FactKey::Context),
            Ask::Facts => self.machine_fact(question),
            Ask::File => self.fact(FactKey::document(&environment.folder(), name)),
            Ask::Secret => self.secret(question),
        }
    }

    fn fact(&self, key: FactKey) -> Result<Value, Stop> {
        self.environment.fact(&key).ok_or(Stop::Missing(key))
    }

    /// A fact that must not be null.
    fn present(&self, key: FactKey, question: &Question<'_>, absent: impl FnOnce() -> String) -> Result<Value, Stop> {
        match self.fact(key)? {
            Value::Null => Err(stop(&codes::ABSENT_FACT, question.place(0), absent(), None)),
            value => Ok(value),
        }
    }

    /// All facts of the machine, or the one at a path.
    fn machine_fact(&self, question: &Question<'_>) -> Result<Value, Stop> {
        let all = self.fact(FactKey::Machine)?;
        let Some(path) = question.text(0) else { return Ok(all) };
        let found = fact_at(&all, path).cloned();
        found.map_err(|unknown| match fact_path(path) {
            FactPath::Nothing => Stop::Fault(unknown_fact(path, question.place(0))),
            FactPath::Of(_) | FactPath::Named => {
                let stop = question.absent(format!("there is no fact '{path}'"), &unknown.known);
                match fact_origin(path) {
                    Some(origin) => helped(stop, || not_on_this_machine(&all, path, origin)),
                    None => stop,
                }
            }
        })
    }

    fn parameter(&self, question: &Question<'_>) -> Result<Value, Stop> {
        let name = question.name();
        let absent = || format!("Parameter '{name}' not found");
        let Some(frame) = &self.frame else {
            let answer = self.environment.parameter(name);
            return question.settle(answer, absent).map_err(|stop| match self.environment.variable(name) {
                Answer::Value(_) | Answer::Open(_) => helped(stop, || format!("it is a variable: variables('{name}')")),
                _ => stop,
            });
        };
        let found = frame.parameters.iter().find(|(each, _)| **each == *name);
        found.map(|(_, value)| value.clone()).ok_or_else(|| {
            let known: Vec<String> = frame.parameters.iter().map(|(each, _)| each.to_string()).collect();
            question.absent(format!("{} in context", absent()), &known)
        })
    }

    fn lambda_variable(&self, question: &Question<'_>) -> Result<Value, Stop> {
        let name = question.name();
        let found = self.lambda_variables.iter().rev().find(|(each, _)| **each == *name);
        found.map(|(_, value)| value.clone()).ok_or_else(|| {
            let known: Vec<String> = self.lambda_variables.iter().map(|(each, _)| each.to_string()).collect();
            question.absent(format!("Lambda parameter '{name}' not found"), &known)
        })
    }

    fn variable(&self, question: &Question<'_>) -> Result<Value, Stop> {
        let name = question.name();
        let absent = || format!("Variable '{name}' does not exist or has not been initialized yet");
        let value = question.settle(self.environment.variable(name), absent);
        value.map_err(|stop| match self.environment.parameter(name) {
            Answer::Value(_) | Answer::Open(_) => helped(stop, || format!("it is a parameter: parameters('{name}')")),
            _ if self.environment.is_declared(name) => helped(stop, || {
                "it is declared further down: a variable sees those above it, so move its declaration up".to_owned()
            }),
            _ => stop,
        })
    }

    fn restart_required(&self, question: &Question<'_>) -> Result<Value, Stop> {
        let (kind, name) = (question.name(), question.text(1));
        match (kind, name) {
            ("process" | "service", None) => {
                return Err(question.refused(0, format!("The 'name' argument is required for kind '{kind}'")));
            }
            ("system", Some(_)) => {
                return Err(question.refused(1, "The 'name' argument is not allowed for kind 'system'"));
            }
            ("process" | "service" | "system", _) => {}
            _ => {
                let message = format!("Invalid kind '{kind}', must be one of: process, service, system");
                return Err(question.refused(0, message));
            }
        }
        question.settle(self.environment.restart_required(kind, name), || "there is no such restart".to_owned())
    }

    fn copy_index(&self, question: &Question<'_>) -> Result<Value, Stop> {
        let loop_name = question.text(0);
        let position = usize::from(loop_name.is_some());
        let offset = match question.arguments.get(position) {
            None => 0,
            Some(offset) => offset
                .as_i64()
                .filter(|_| question.arguments.len() == position + 1)
                .ok_or_else(|| question.refused(position, "the offset must be an integer and the last argument"))?,
        };
        if offset < 0 {
            return Err(question.refused(position, "The offset cannot be negative"));
        }
        let index = question.settle(self.environment.copy_index(loop_name), || {
            format!("The specified loop name '{}' was not found", question.name())
        })?;
        let sum = index.as_i64().and_then(|index| index.checked_add(offset));
        let overflow = || {
            let message = "Function 'copyIndex': the result overflows the 64 bits of an integer";
            stop(&codes::ARITHMETIC, question.at, message, None)
        };
        sum.map(Value::from).ok_or_else(overflow)
    }

    fn utc_now(&self, question: &Question<'_>) -> Result<Value, Stop> {
        if !self.environment.allows_now() {
            return Err(question.not_here());
        }
        let now = self.fact(FactKey::Now)?;
        let formatted = date::format(now.as_str().unwrap_or(""), question.text(0));
        formatted.map(Value::from).map_err(|wrong| located(wrong.of(question.builtin), question.nodes, question.at))
    }

    fn secret(&self, question: &Question<'_>) -> Result<Value, Stop> {
        let (name, vault) = (question.name(), question.text(1));
        let key = FactKey::Secret(name.to_owned(), vault.map(str::to_owned));
        let known = self.present(key, question, || match vault {
            Some(vault) => format!("Secret '{name}' not found in vault '{vault}'"),
            None => format!("Secret '{name}' not found"),
        })?;
        match known {
            Value::String(known) => Ok(Value::secret(SecretName(known.into()))),
            _ => Err(question.refused(0, format!("the vault gave no name for the secret '{name}'"))),
        }
    }
}

/// Why a machine lacks a fact that others have, and what is null in its place.
fn not_on_this_machine(all: &Value, path: &str, origin: &str) -> String {
    let (outer, name) = path.rsplit_once('.').map_or((None, path), |(outer, name)| (Some(outer), name));
    let has_outer = outer.is_none_or(|outer| fact_at(all, outer).is_ok());
    let outer = outer.map(|outer| format!("'{outer}'")).unwrap_or_default();
    let instead = format!("; \"[tryGet(facts({outer}), '{name}')]\" is null where it is missing");
    format!(
        "it comes from {origin} of this machine, or of the folder of '--system-root', and is not there{}",
        if has_outer { &instead } else { "" }
    )
}

fn is_foreign_to_functions(ask: Ask) -> bool {
    match ask {
        Ask::Variable
        | Ask::Reference
        | Ask::StateChanged
        | Ask::RestartRequired
        | Ask::CopyIndex
        | Ask::Stdout
        | Ask::UtcNow => true,
        Ask::Parameter
        | Ask::LambdaVariable
        | Ask::EnvironmentVariable
        | Ask::Executable
        | Ask::SystemRoot
        | Ask::Context
        | Ask::Facts
        | Ask::File
        | Ask::Secret => false,
    }
}

/// A fault with a better help.
fn helped(stop: Stop, help: impl FnOnce() -> String) -> Stop {
    match stop {
        Stop::Fault(fault) => Stop::Fault(Fault { help: Some(help().into()), ..fault }),
        other => other,
    }
}

fn not_executed(id: &str) -> String {
    format!("Invalid resourceId or resource has not executed yet: {id}")
}

fn resource_id(question: &Question<'_>) -> Result<ResourceId, Stop> {
    ResourceId::parse(question.name()).map_err(|error| {
        let help = format!("{error}; resourceId('Type', 'name') makes one");
        stop(&codes::ARGUMENT_VALUE, question.place(0), not_executed(question.name()), Some(help.into()))
    })
}
