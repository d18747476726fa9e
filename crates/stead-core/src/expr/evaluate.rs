//! From a tree and what it can see to a value.

use std::ops::Range;

use super::builtin::{Ask, Builtin, Lazy, Run, ValueKind, Wrong};
use super::codes;
use super::syntax::{AccessStep, Accessor, ExpressionForm, Lambda, Node};
use super::{Environment, Fault, Help, Stop};
use crate::budget::{Budget, Exceeded};
use crate::diag::{Code, Meant};
use crate::value::{DataType, Key, Object, SealedStep, Value};

/// How deep values may be nested. Every use of a variable could add a level, and values are walked recursively.
pub(super) const MAX_NESTING: usize = 256;

/// The cost of one value whose parts have been paid for.
pub(super) fn shallow(value: &Value) -> usize {
    match value {
        Value::String(text) => 1 + text.len() / 16,
        Value::Array(items) => 1 + items.len(),
        Value::Object(members) => 1 + members.len(),
        _ => 1,
    }
}

/// Pays for a value that is copied as a whole.
fn pay_deep(budget: &Budget, value: &Value) -> Result<(), Exceeded> {
    budget.work(shallow(value))?;
    match value {
        Value::Array(items) => items.iter().try_for_each(|item| pay_deep(budget, item)),
        Value::Object(members) => members.values().try_for_each(|member| pay_deep(budget, member)),
        _ => Ok(()),
    }
}

/// The member that held the answer of an instance in earlier versions of the language.
const STATE: &str = "actualState";

/// A part of a value that is not sealed.
///
/// `reference(id)` is the state of an instance, but documents also say `reference(id).actualState`. Where the state has no
/// such member of its own, that means the state itself.
pub(super) fn access(of: Value, key: &Key) -> Result<Value, Wrong> {
    let wrong = |message: String| Wrong { code: &codes::ACCESS, argument: None, message, help: None };
    match (of, key) {
        (Value::Object(members), Key::Member(name)) => member(members, name),
        (Value::Object(members), Key::Index(Value::String(name))) => member(members, name),
        (Value::Object(members), Key::State) if members.contains_key(STATE) => member(members, STATE),
        (of, Key::State) => Ok(of),
        (of, Key::Member(_)) => {
            Err(wrong(NOT_AN_OBJECT.to_owned()).with_help(format!("the value is of type {}", of.kind())))
        }
        (Value::Array(mut items), Key::Index(Value::Number(index))) => {
            let position = index.as_i64().and_then(|index| usize::try_from(index).ok()).filter(|at| *at < items.len());
            let count = items.len();
            position.map(|position| items.remove(position)).ok_or_else(|| {
                wrong("Index is out of bounds".to_owned())
                    .with_help(format!("the index is {index}, the number of elements is {count}; indexes start at 0"))
            })
        }
        (Value::Array(_), Key::Index(other)) => {
            let message = format!("Invalid index: an array is indexed with an integer, not with a {}", other.kind());
            Err(wrong(message).with_help("an element is selected by its position: [0] is the first one"))
        }
        (Value::Object(_), Key::Index(other)) => {
            Err(wrong(format!("Invalid index: an object is indexed with a string, not with a {}", other.kind())))
        }
        (of, Key::Index(_)) => {
            Err(wrong(NOT_AN_ARRAY.to_owned()).with_help(format!("the value is of type {}", of.kind())))
        }
    }
}

/// Checks that a value of one of these kinds can have the member or element that a step selects.
pub(super) fn access_of_kinds(kinds: &[ValueKind], step: &AccessStep) -> Result<(), Wrong> {
    let has = |kind: ValueKind| kinds.contains(&kind);
    let message = match step {
        AccessStep::Member(_) if !has(ValueKind::Object) => NOT_AN_OBJECT,
        AccessStep::Index(_) if !has(ValueKind::Object) && !has(ValueKind::Array) => NOT_AN_ARRAY,
        _ => return Ok(()),
    };
    let names: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
    let help = Some(format!("the value is of type {}", names.join(" or ")).into());
    Err(Wrong { code: &codes::ACCESS, argument: None, message: message.to_owned(), help })
}

const NOT_AN_OBJECT: &str = "Member access on non-object value";
const NOT_AN_ARRAY: &str = "Index access on non-array value";

fn member(mut members: Object, name: &str) -> Result<Value, Wrong> {
    members.remove(name).ok_or_else(|| Wrong {
        code: &codes::ACCESS,
        argument: None,
        message: format!("Member '{name}' not found"),
        help: hint(name, members.keys().map(String::as_str)),
    })
}

pub(super) fn hint<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> Option<Help> {
    let known = known.filter(|each| !each.is_empty());
    if let Some(meant) = Meant::name(name, known.clone()) {
        return Some(Help::Meant { wrong: name.to_owned(), meant });
    }
    // More than a handful does not help any more.
    let names: Vec<&str> = known.take(9).collect();
    (1..9).contains(&names.len()).then(|| format!("available: {}", names.join(", ")).into())
}

/// Returns whether an open value is of a type.
pub(crate) fn fits(data_type: DataType, value: &Value) -> bool {
    match data_type {
        DataType::String | DataType::SecureString => matches!(value, Value::String(_)),
        DataType::Int => value.as_i64().is_some(),
        DataType::Bool => matches!(value, Value::Bool(_)),
        DataType::Object | DataType::SecureObject => matches!(value, Value::Object(_)),
        DataType::Array => matches!(value, Value::Array(_)),
    }
}

/// The parameters of the function of the document that is being computed.
#[derive(Default)]
pub(super) struct Frame {
    pub(super) parameters: Vec<(Box<str>, Value)>,
}

/// One evaluation.
pub(super) struct Evaluator<'e> {
    pub(super) environment: &'e dyn Environment,
    pub(super) lambda_variables: Vec<(Box<str>, Value)>,
    pub(super) frame: Option<Frame>,
    /// The values that `lambdaVariables(n)` stands for in a [`crate::value::Closure`].
    captured: Vec<Value>,
    budget: Budget,
}

pub(super) fn stop(code: Code, at: &Range<usize>, message: impl Into<String>, help: Option<Help>) -> Stop {
    Stop::Fault(Fault { code, message: message.into(), at: at.clone(), help })
}

impl<'e> Evaluator<'e> {
    pub(super) fn new(environment: &'e dyn Environment, budget: Budget) -> Self {
        Self::with_captured(environment, budget, Vec::new())
    }

    /// An evaluation of a closure.
    pub(super) fn with_captured(environment: &'e dyn Environment, budget: Budget, captured: Vec<Value>) -> Self {
        Self { environment, lambda_variables: Vec::new(), frame: None, captured, budget }
    }

    /// Has parameters of lambdas around, whose values are not known.
    pub(super) fn bind(&mut self, names: &[&str]) {
        self.lambda_variables.extend(names.iter().map(|name| ((*name).into(), Value::Null)));
    }

    pub(super) fn into_budget(self) -> Budget {
        self.budget
    }

    pub(super) fn value(&mut self, node: &Node) -> Result<Value, Stop> {
        match &node.kind {
            ExpressionForm::Constant(value) => self.copied(value.clone(), &node.at),
            ExpressionForm::Call { builtin, arguments } => self.call(builtin, arguments, &node.at),
            ExpressionForm::UserCall { name, arguments } => self.user_call(name, arguments, &node.at),
            ExpressionForm::Access { of, path } => self.accesses(of, path),
            ExpressionForm::Item(called) => self.item(called, &node.at),
            ExpressionForm::Lambda(_) => Err(stop(&codes::LAMBDA, &node.at, "a lambda is not a value", None)),
        }
    }

    /// Pays for a value that came from outside as a whole.
    pub(super) fn copied(&mut self, value: Value, at: &Range<usize>) -> Result<Value, Stop> {
        if value.depth() > MAX_NESTING {
            let message = format!("values are nested more than {MAX_NESTING} deep");
            return Err(stop(&codes::LIMIT, at, message, None));
        }
        pay_deep(&self.budget, &value).map_err(|_| too_large(at))?;
        Ok(value)
    }

    fn call(&mut self, builtin: &'static Builtin, arguments: &[Node], at: &Range<usize>) -> Result<Value, Stop> {
        match builtin.run {
            Run::Total(_) | Run::Pure(_) => {
                let values = self.arguments(builtin, arguments)?;
                self.pure(builtin, values, arguments, at)
            }
            Run::Lazily(Lazy::If) => self.choose(builtin, arguments, at),
            Run::Lazily(Lazy::And) => self.junction(builtin, arguments, false),
            Run::Lazily(Lazy::Or) => self.junction(builtin, arguments, true),
            Run::Lazily(Lazy::Coalesce) => self.coalesce(builtin, arguments),
            Run::Lazily(Lazy::Map | Lazy::Filter) => self.over(builtin, arguments, at),
            Run::Asks(ask) => match self.captured(ask, arguments) {
                Some(value) => self.copied(value, at),
                None => self.ask(ask, builtin, arguments, at),
            },
            Run::Lambda => Err(stop(&codes::LAMBDA, at, "a lambda is not a value", None)),
        }
    }

    /// The captured value that a call stands for: one whose argument is a number instead of a name.
    fn captured(&self, ask: Ask, arguments: &[Node]) -> Option<Value> {
        let [Node { kind: ExpressionForm::Constant(Value::Number(number)), .. }] = arguments else { return None };
        let position = usize::try_from(number.as_u64()?).ok()?;
        self.captured.get(position).filter(|_| ask == Ask::LambdaVariable).cloned()
    }

    pub(super) fn arguments(&mut self, builtin: &'static Builtin, arguments: &[Node]) -> Result<Vec<Value>, Stop> {
        let each = arguments.iter().enumerate().map(|(position, node)| self.argument(builtin, position, node));
        each.collect()
    }

    fn argument(&mut self, builtin: &'static Builtin, position: usize, node: &Node) -> Result<Value, Stop> {
        let value = self.value(node)?;
        builtin.check(position, &value).map_err(|wrong| located(wrong, std::slice::from_ref(node), &node.at))?;
        Ok(value)
    }

    fn pure(
        &mut self,
        builtin: &'static Builtin,
        values: Vec<Value>,
        nodes: &[Node],
        at: &Range<usize>,
    ) -> Result<Value, Stop> {
        self.budget.work(1).map_err(|_| too_large(at))?;
        if builtin.sight.is_blocked(&values) {
            return Ok(apply(builtin, values));
        }
        let outcome = builtin.compute(values).unwrap_or(Ok(Value::Null));
        let result = outcome.map_err(|wrong| located(wrong.of(builtin), nodes, at))?;
        self.budget.work(shallow(&result)).map_err(|_| too_large(at))?;
        Ok(result)
    }

    /// The value of a part that may turn out not to be needed: what is wrong with it counts only if it is.
    fn possible(&mut self, builtin: &'static Builtin, position: usize, node: &Node) -> Result<Value, Stop> {
        needed_later(self.argument(builtin, position, node))
    }

    fn choose(&mut self, builtin: &'static Builtin, nodes: &[Node], at: &Range<usize>) -> Result<Value, Stop> {
        let [condition, then, otherwise] = nodes else {
            return Err(stop(&codes::ARGUMENT_COUNT, at, "Function 'if' requires exactly 3 arguments", None));
        };
        match self.argument(builtin, 0, condition)? {
            Value::Bool(true) => self.argument(builtin, 1, then),
            Value::Bool(false) => self.argument(builtin, 2, otherwise),
            sealed => {
                let arguments = vec![sealed, self.possible(builtin, 1, then)?, self.possible(builtin, 2, otherwise)?];
                Ok(apply(builtin, arguments))
            }
        }
    }

    /// `and` ends at the first false, `or` at the first true.
    fn junction(&mut self, builtin: &'static Builtin, nodes: &[Node], decisive: bool) -> Result<Value, Stop> {
        for (position, node) in nodes.iter().enumerate() {
            match self.argument(builtin, position, node)? {
                Value::Bool(truth) if truth == decisive => return Ok(decisive.into()),
                Value::Bool(_) => {}
                sealed => return self.rest(builtin, sealed, nodes, position + 1),
            }
        }
        Ok((!decisive).into())
    }

    fn coalesce(&mut self, builtin: &'static Builtin, nodes: &[Node]) -> Result<Value, Stop> {
        for (position, node) in nodes.iter().enumerate() {
            match self.argument(builtin, position, node)? {
                Value::Null => {}
                // Behind the last one there is nothing to choose.
                sealed @ Value::Sealed(_) if position + 1 < nodes.len() => {
                    return self.rest(builtin, sealed, nodes, position + 1);
                }
                value => return Ok(value),
            }
        }
        Ok(Value::Null)
    }

    /// Defers a choice whose deciding argument is sealed, with the arguments behind it.
    fn rest(&mut self, builtin: &'static Builtin, decider: Value, nodes: &[Node], from: usize) -> Result<Value, Stop> {
        let mut arguments = vec![decider];
        for (position, node) in nodes.iter().enumerate().skip(from) {
            arguments.push(self.possible(builtin, position, node)?);
        }
        Ok(apply(builtin, arguments))
    }

    fn over(&mut self, builtin: &'static Builtin, nodes: &[Node], at: &Range<usize>) -> Result<Value, Stop> {
        let [array, Node { kind: ExpressionForm::Lambda(lambda), .. }] = nodes else {
            let message = format!("Function '{}' requires an array and a lambda", builtin.name);
            return Err(stop(&codes::LAMBDA, at, message, None));
        };
        match self.argument(builtin, 0, array)? {
            Value::Array(items) => self.each(builtin, lambda, items),
            sealed => {
                let closure = self.capture(builtin, lambda)?;
                Ok(Value::deferred(SealedStep::Each { array: sealed, closure }))
            }
        }
    }

    /// `map` or `filter` over the elements of an array.
    fn each(&mut self, builtin: &Builtin, lambda: &Lambda, items: Vec<Value>) -> Result<Value, Stop> {
        if matches!(builtin.run, Run::Lazily(Lazy::Map)) {
            let mapped = items.into_iter().enumerate().map(|(index, item)| self.applied(lambda, item, index));
            return Ok(Value::Array(mapped.collect::<Result<_, _>>()?));
        }
        let mut verdicts = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            let verdict = self.applied(lambda, item.clone(), index)?;
            if !matches!(verdict, Value::Bool(_) | Value::Sealed(_)) {
                let message = format!("Function 'filter': the lambda must return a boolean, not a {}", verdict.kind());
                return Err(stop(&codes::ARGUMENT_TYPE, &lambda.body.at, message, None));
            }
            verdicts.push((item, verdict));
        }
        if verdicts.iter().any(|(_, verdict)| verdict.has_sealed()) {
            return Ok(Value::deferred(SealedStep::Keep(verdicts)));
        }
        let kept = verdicts.into_iter().filter(|(_, verdict)| verdict.as_bool() == Some(true));
        Ok(Value::Array(kept.map(|(item, _)| item).collect()))
    }

    fn applied(&mut self, lambda: &Lambda, item: Value, index: usize) -> Result<Value, Stop> {
        self.budget.work(1).map_err(|_| too_large(&lambda.body.at))?;
        let outer = self.lambda_variables.len();
        let index = Value::from(i64::try_from(index).unwrap_or(i64::MAX));
        self.lambda_variables.extend(lambda.parameters.iter().cloned().zip([item, index]));
        let result = self.value(&lambda.body);
        self.lambda_variables.truncate(outer);
        result
    }

    fn accesses(&mut self, of: &Node, path: &[Accessor]) -> Result<Value, Stop> {
        let mut value = self.value(of)?;
        let is_reference = matches!(&of.kind, ExpressionForm::Call { builtin, .. } if matches!(builtin.run, Run::Asks(Ask::Reference)));
        for (position, accessor) in path.iter().enumerate() {
            let key = match &accessor.step {
                AccessStep::Member(name) if is_reference && position == 0 && &**name == STATE => Key::State,
                AccessStep::Member(name) => Key::Member(name.clone()),
                AccessStep::Index(index) => Key::Index(self.value(index)?),
            };
            let is_sealed = matches!(value, Value::Sealed(_)) || matches!(key, Key::Index(Value::Sealed(_)));
            value = if is_sealed {
                Value::deferred(SealedStep::Access { of: value, key })
            } else {
                access(value, &key).map_err(|wrong| located(wrong, &[], &accessor.at))?
            };
        }
        Ok(value)
    }
}

/// A function that waits for its secrets.
fn apply(builtin: &'static Builtin, arguments: Vec<Value>) -> Value {
    Value::deferred(SealedStep::Apply { function: builtin.name.into(), arguments })
}

/// All expressions of a document together cost too much.
pub(super) fn exceeded(what: Exceeded, at: &Range<usize>) -> Stop {
    let help = "the limit is for all expressions of the document together: use fewer iterations or smaller values";
    stop(&codes::LIMIT, at, format!("the document takes {what}"), Some(help.into()))
}

fn too_large(at: &Range<usize>) -> Stop {
    let help = "an evaluation may produce about two million elements or 32 MiB of text".to_owned();
    stop(&codes::LIMIT, at, "the evaluation of the expression grows too large", Some(help.into()))
}

/// Places a mistake in an argument at that argument.
pub(super) fn located(wrong: Wrong, nodes: &[Node], call: &Range<usize>) -> Stop {
    let node = wrong.argument.and_then(|argument| nodes.get(argument));
    stop(wrong.code, node.map_or(call, |node| &node.at), wrong.message, wrong.help)
}

/// Delays an error of a part until its value is needed: an array can be empty, and a condition false.
pub(super) fn needed_later(value: Result<Value, Stop>) -> Result<Value, Stop> {
    match value {
        Err(Stop::Fault(fault)) if fault.code != &codes::LIMIT => Ok(Value::deferred(SealedStep::Failed)),
        other => other,
    }
}
