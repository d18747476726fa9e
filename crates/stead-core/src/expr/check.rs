//! Mistakes in an expression that are certain whatever the values turn out to be that are not known yet.

use std::ops::Range;

use super::ask::unknown_fact;
use super::builtin::{Ask, Builtin, Lazy, Run, ValueKind};
use super::builtins::check_template;
use super::evaluate::{Evaluator, access_of_kinds, located};
use super::facts::{FactPath, fact_path};
use super::syntax::{AccessStep, ExpressionForm, Lambda, Node};
use super::{Answer, Environment, Expression, Fault, Stop, UserFunction, exceeded};
use crate::budget::Budget;
use crate::value::{DataType, Value};

impl Expression {
    /// Everything that is wrong with it in this environment, in which some answers are not known yet.
    ///
    /// Guarantees: what is not known is assumed to be right, and so is what may turn out not to be needed: of
    /// a branch that might not be taken only the names are checked.
    pub fn check(&self, environment: &dyn Environment) -> Vec<Fault> {
        let mut check = Check { environment, faults: Vec::new() };
        check.known(&self.root);
        check.names(&self.root, &mut Vec::new());
        check.faults
    }

    /// The names in it that do not exist: for an expression that may never be computed.
    pub fn check_names(&self, environment: &dyn Environment) -> Vec<Fault> {
        let mut check = Check { environment, faults: Vec::new() };
        check.names(&self.root, &mut Vec::new());
        check.faults
    }
}

impl UserFunction {
    /// Everything that is wrong with the expression of its output, whatever it is called with.
    pub fn check(&self, expression: &Expression) -> Vec<Fault> {
        if !self.is_readable {
            return Vec::new();
        }
        expression.check(&Body(self))
    }
}

/// The environment of the body of a function: its parameters.
struct Body<'a>(&'a UserFunction);

impl Environment for Body<'_> {
    fn parameter(&self, name: &str) -> Answer {
        match self.0.parameters.iter().find(|parameter| parameter.name.value == name) {
            Some(parameter) => Answer::Open(kinds_of(parameter.value)),
            None => Answer::Absent { known: self.0.parameters.iter().map(|each| each.name.value.clone()).collect() },
        }
    }
}

/// The kinds of value that a type has.
pub(crate) fn kinds_of(data_type: DataType) -> &'static [ValueKind] {
    match data_type {
        DataType::String | DataType::SecureString => &[ValueKind::String],
        DataType::Int => &[ValueKind::Number],
        DataType::Bool => &[ValueKind::Boolean],
        DataType::Object | DataType::SecureObject => &[ValueKind::Object],
        DataType::Array => &[ValueKind::Array],
    }
}

/// The knowledge about a part before it is computed.
enum PartialValue {
    Value(Value),
    /// It will be of one of these kinds.
    Kinds(&'static [ValueKind]),
}

impl PartialValue {
    const NOTHING: Self = Self::Kinds(ValueKind::VALUES);

    fn value(&self) -> Option<&Value> {
        match self {
            Self::Value(value) => Some(value),
            Self::Kinds(_) => None,
        }
    }

    fn is(&self, truth: bool) -> bool {
        matches!(self, Self::Value(value) if value.as_bool() == Some(truth))
    }
}

struct Check<'e> {
    environment: &'e dyn Environment,
    faults: Vec<Fault>,
}

impl Check<'_> {
    /// Checks a part that is certain to be computed, and returns what is known of it.
    fn known(&mut self, node: &Node) -> PartialValue {
        let shared = self.environment.budget();
        if shared.is_some_and(|budget| budget.check().is_err()) {
            return self.parts(node, ValueKind::VALUES);
        }
        let mut evaluator = Evaluator::new(self.environment, Budget::new(Budget::EVALUATION));
        let value = evaluator.value(node);
        let spent = evaluator.into_budget().spent();
        if let Some(Err(what)) = shared.map(|shared| shared.spend(spent))
            && let Stop::Fault(fault) = exceeded(what, &node.at)
        {
            return self.wrong(fault);
        }
        match value {
            Ok(value) => PartialValue::Value(value),
            Err(Stop::Fault(fault)) => self.wrong(fault),
            Err(Stop::Open(kinds)) => self.parts(node, kinds),
            Err(Stop::Unknown(_) | Stop::Missing(_)) => self.parts(node, ValueKind::VALUES),
        }
    }

    fn wrong(&mut self, fault: Fault) -> PartialValue {
        if !self.faults.iter().any(|other| other.code == fault.code && other.at == fault.at) {
            self.faults.push(fault);
        }
        PartialValue::NOTHING
    }

    /// Checks something that cannot be computed yet because of a value of these kinds, and returns what is known of
    /// it.
    fn parts(&mut self, node: &Node, open: &'static [ValueKind]) -> PartialValue {
        match &node.kind {
            ExpressionForm::Constant(value) => PartialValue::Value(value.clone()),
            ExpressionForm::Lambda(_) => PartialValue::NOTHING,
            ExpressionForm::Item(_) => PartialValue::Kinds(open),
            ExpressionForm::Call { builtin, arguments } => self.call(builtin, arguments, open),
            ExpressionForm::UserCall { name, arguments } => self.user_function(name, arguments, &node.at),
            ExpressionForm::Access { of, path } => {
                let mut of = self.known(of);
                for accessor in path {
                    if let AccessStep::Index(index) = &accessor.step {
                        self.known(index);
                    }
                    if let PartialValue::Kinds(kinds) = of
                        && let Err(wrong) = access_of_kinds(kinds, &accessor.step)
                        && let Stop::Fault(fault) = located(wrong, &[], &accessor.at)
                    {
                        self.wrong(fault);
                    }
                    of = PartialValue::NOTHING;
                }
                PartialValue::NOTHING
            }
        }
    }

    fn call(&mut self, builtin: &'static Builtin, arguments: &[Node], open: &'static [ValueKind]) -> PartialValue {
        match (builtin.run, arguments) {
            (Run::Lazily(Lazy::If), [condition, then, otherwise]) => {
                let decided = self.argument(builtin, 0, condition);
                match decided {
                    _ if decided.is(true) => self.known(then),
                    _ if decided.is(false) => self.known(otherwise),
                    _ => PartialValue::NOTHING,
                }
            }
            // Whether the others are computed depends on the first.
            (Run::Lazily(_), [first, ..]) => {
                self.argument(builtin, 0, first);
                PartialValue::Kinds(builtin.returns)
            }
            _ => {
                let each = arguments.iter().enumerate();
                let known: Vec<PartialValue> =
                    each.map(|(position, node)| self.argument(builtin, position, node)).collect();
                self.together(builtin, arguments, &known);
                let is_answer = known.iter().all(|each| matches!(each, PartialValue::Value(_)));
                PartialValue::Kinds(if is_answer { open } else { builtin.returns })
            }
        }
    }

    /// Reports what some of the arguments make certain, whatever the others are.
    fn together(&mut self, builtin: &'static Builtin, nodes: &[Node], known: &[PartialValue]) {
        let values: Vec<Option<&Value>> = known.iter().map(PartialValue::value).collect();
        let checked = match (builtin.name, values.as_slice()) {
            ("format", [Some(Value::String(template)), rest @ ..]) => check_template(template, rest.len()),
            ("substring", [Some(text), Some(start), None]) => {
                let beginning = vec![Value::clone(text), Value::clone(start), Value::from(0)];
                builtin.compute(beginning).map_or(Ok(()), |outcome| outcome.map(drop))
            }
            _ => Ok(()),
        };
        let (Some(first), Err(wrong)) = (nodes.first(), checked) else { return };
        if let Stop::Fault(fault) = located(wrong.of(builtin), nodes, &first.at) {
            self.wrong(fault);
        }
    }

    fn argument(&mut self, builtin: &'static Builtin, position: usize, node: &Node) -> PartialValue {
        let known = self.known(node);
        let checked = match &known {
            PartialValue::Value(value) => builtin.check(position, value),
            PartialValue::Kinds(kinds) => builtin.check_kinds(position, kinds),
        };
        match checked.map_err(|wrong| located(wrong, std::slice::from_ref(node), &node.at)) {
            Err(Stop::Fault(fault)) => self.wrong(fault),
            _ => known,
        }
    }

    fn user_function(&mut self, name: &str, arguments: &[Node], at: &Range<usize>) -> PartialValue {
        let Some(function) = self.environment.function(name).filter(|function| function.is_readable) else {
            return PartialValue::NOTHING;
        };
        if let Err(Stop::Fault(fault)) = function.check_count(arguments.len(), at) {
            return self.wrong(fault);
        }
        for (parameter, node) in function.parameters.iter().zip(arguments) {
            let known = match self.known(node) {
                PartialValue::Value(value) => ValueKind::of(&value),
                PartialValue::Kinds([kind]) => Some(*kind),
                PartialValue::Kinds(_) => None,
            };
            let wrong = known.filter(|kind| !kinds_of(parameter.value).contains(kind));
            if let Some(found) = wrong
                && let Stop::Fault(fault) = function.wrong_argument(parameter, found.as_str(), &node.at)
            {
                self.wrong(fault);
            }
        }
        PartialValue::Kinds(kinds_of(function.output_type.value))
    }

    /// The names that are written in it, also where it might not be computed. `bound` are the parameters of the lambdas
    /// around.
    fn names<'n>(&mut self, node: &'n Node, bound: &mut Vec<&'n str>) {
        match &node.kind {
            ExpressionForm::Constant(_) | ExpressionForm::Item(_) => {}
            ExpressionForm::Call { builtin, arguments } => {
                self.name(builtin, node, arguments, bound);
                for argument in arguments {
                    self.names(argument, bound);
                }
            }
            ExpressionForm::UserCall { name, arguments } => {
                let evaluator = Evaluator::new(self.environment, Budget::new(Budget::EVALUATION));
                if let Err(Stop::Fault(fault)) = evaluator.function(name, &node.at) {
                    self.wrong(fault);
                }
                for argument in arguments {
                    self.names(argument, bound);
                }
            }
            ExpressionForm::Lambda(lambda) => self.body(lambda, bound),
            ExpressionForm::Access { of, path } => {
                self.names(of, bound);
                for accessor in path {
                    if let AccessStep::Index(index) = &accessor.step {
                        self.names(index, bound);
                    }
                }
            }
        }
    }

    fn body<'n>(&mut self, lambda: &'n Lambda, bound: &mut Vec<&'n str>) {
        let outer = bound.len();
        bound.extend(lambda.parameters.iter().map(|name| &**name));
        self.names(&lambda.body, bound);
        bound.truncate(outer);
    }

    /// A call by a name that is written in the expression.
    fn name(&mut self, builtin: &'static Builtin, node: &Node, arguments: &[Node], bound: &[&str]) {
        let [Node { kind: ExpressionForm::Constant(Value::String(name)), at }] = arguments else { return };
        if matches!(builtin.run, Run::Asks(Ask::Facts)) && fact_path(name) == FactPath::Nothing {
            self.wrong(unknown_fact(name, at));
            return;
        }
        let is_checked = match builtin.run {
            Run::Asks(Ask::Parameter | Ask::Variable) => true,
            Run::Asks(Ask::LambdaVariable) => !bound.contains(&name.as_str()),
            _ => false,
        };
        if !is_checked {
            return;
        }
        let mut evaluator = Evaluator::new(self.environment, Budget::new(Budget::EVALUATION));
        evaluator.bind(bound);
        if let Err(Stop::Fault(fault)) = evaluator.value(node) {
            self.wrong(fault);
        }
    }
}
