//! The features of a document that DSC v3 does not have.

use std::collections::HashSet;

use super::{DataType, Document, Exclusive, Instance, Over, Parameter, Reconcile, codes};
use crate::diag::Diagnostic;
use crate::expr::{self, Expression, Placed, Subexpression, Template, expressions};
use crate::id::TypeName;
use crate::text::{Kind, Sources, Span, locate};

/// Whose types only stead has.
const OWNER: &str = "stead";

impl Document {
    /// Warnings about the functions, directives and types that DSC v3 does not have, and about values that it cannot compute,
    /// in the order written.
    ///
    /// Content nested in a group is a document of its own, and so is an included one.
    pub fn not_portable(&self, sources: &Sources) -> Vec<Diagnostic> {
        let mut found = self.directives_of_stead();
        let loops: HashSet<&str> =
            self.resources.iter().flat_map(|instance| &instance.copy).map(|copy| copy.name.value.as_str()).collect();
        for instance in &self.resources {
            let type_name = &instance.type_name;
            if is_of_stead(&type_name.value) {
                found.push(finding(type_name.span, &format!("the type '{}'", type_name.value)));
            }
            found.extend(instance.directives_of_stead());
            found.extend(instance.loops_of_stead(&loops));
        }
        for Placed { expression, span } in self.all_values().flat_map(expressions) {
            let own = expression.builtins().filter(|(builtin, _)| builtin.is_own());
            found.extend(own.map(|(builtin, at)| {
                finding(locate(sources, span, at), &format!("the function '{}()'", builtin.name))
            }));
            found.extend(self.secure_arguments(&Placed { expression, span }, sources));
        }
        for properties in self.resources.iter().filter_map(|instance| instance.properties.as_ref()) {
            self.elements(properties, &mut found);
        }
        found.sort_by_key(|finding| finding.span);
        found
    }

    /// Secure parameters as arguments of functions that take text: dsc passes an object.
    fn secure_arguments(&self, placed: &Placed<'_>, sources: &Sources) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        for (builtin, call) in placed.expression.all_calls() {
            for (at, argument) in call.arguments().enumerate() {
                let accepted = builtin.accepts.get(at).copied().or(builtin.rest).unwrap_or(&[]);
                let is_secure = self.declared(argument).is_some_and(DataType::is_secure);
                if is_secure && !accepted.contains(&expr::ValueKind::Object) {
                    let place = locate(sources, placed.span, argument.at());
                    found.push(finding(place, &format!("a secure parameter as an argument of '{}()'", builtin.name)));
                }
            }
        }
        found
    }

    /// The declared type of the parameter whose value a part of an expression is.
    fn declared(&self, part: Subexpression<'_>) -> Option<DataType> {
        let (builtin, call) = part.call()?;
        let argument = call.arguments().next().filter(|_| builtin.name == "parameters")?;
        let named = |parameter: &&Parameter| argument.text() == Some(&*parameter.name.value);
        self.parameters.iter().find(named).map(|parameter| parameter.data_type.value)
    }

    /// Elements of arrays that dsc refuses: arrays, and expressions that are not text.
    fn elements(&self, node: &Template, found: &mut Vec<Diagnostic>) {
        match &node.kind {
            Kind::Object(entries) => entries.iter().for_each(|entry| self.elements(&entry.value, found)),
            Kind::Array(items) => {
                for item in items {
                    match &item.kind {
                        Kind::Array(_) => found.push(finding(item.span, "an array within an array")),
                        Kind::Compiled(expression) if !self.may_be_text(expression) => {
                            found.push(finding(item.span, "an expression that is not text, in an array,"));
                        }
                        _ => {}
                    }
                    self.elements(item, found);
                }
            }
            _ => {}
        }
    }

    fn may_be_text(&self, expression: &Expression) -> bool {
        let whole = expression.whole();
        match (self.declared(whole), whole.call()) {
            (Some(declared), _) => matches!(declared, DataType::String | DataType::SecureString),
            (None, Some((builtin, _))) => builtin.returns.contains(&expr::ValueKind::String),
            (None, None) => true,
        }
    }

    fn directives_of_stead(&self) -> Vec<Diagnostic> {
        let directives = &self.directives;
        let reconcile = &directives.reconcile;
        let places = [
            reconcile.reconciler.as_ref().map(|each| each.span),
            reconcile.pending.as_ref().map(|each| each.span),
            reconcile.wait.as_ref().map(|each| each.span),
        ];
        let is_stated = *reconcile != Reconcile::default();
        let place = places.into_iter().flatten().next().unwrap_or(Span::new(self.source, 0, 0));
        let stated = [
            ("configurationMode", directives.configuration_mode.as_ref().map(|each| each.span)),
            ("reconcile", is_stated.then_some(place)),
            ("files", directives.files.first().map(|each| each.span)),
            ("implicitOrder", directives.implicit_order.as_ref().map(|each| each.span)),
            ("removed", directives.removed.as_ref().map(|each| each.span)),
            ("secretsFrom", directives.secrets_from.as_ref().map(|each| each.span)),
            ("environment", directives.environment.first().map(|each| each.span)),
        ];
        stated.into_iter().filter_map(|(name, span)| Some(directive(span?, name))).collect()
    }
}

impl Instance {
    /// Loops over items, loops within each other, and loops that are waited for as a whole.
    fn loops_of_stead(&self, loops: &HashSet<&str>) -> Vec<Diagnostic> {
        let each = self.copy.iter().filter_map(|copy| match &copy.over {
            Over::Each { items, .. } => Some(finding(items.span, "'each' of a loop")),
            Over::Count(_) => None,
        });
        let within = self.copy.get(1).map(|inner| finding(inner.name.span, "a loop within a loop"));
        let is_loop = |entry: &&Template| entry.literal().as_str().is_some_and(|name| loops.contains(name));
        let whole = self.depends_on.iter().filter(is_loop);
        let whole = whole.map(|entry| finding(entry.span, "the name of a loop in 'dependsOn'"));
        each.chain(within).chain(whole).collect()
    }

    fn directives_of_stead(&self) -> Vec<Diagnostic> {
        let directives = self.directives();
        let exclusive = directives.exclusive.as_ref().map(|exclusive| match exclusive {
            Exclusive::Names(names) => names.first().map_or(self.span, |name| name.span),
            Exclusive::All => self.span,
        });
        let stated = [
            ("configurationMode", directives.configuration_mode.as_ref().map(|each| each.span)),
            ("reconcileWait", directives.reconcile_wait.as_ref().map(|each| each.span)),
            ("reconcilePending", directives.reconcile_pending.as_ref().map(|each| each.span)),
            ("exclusive", exclusive),
        ];
        let relations = directives
            .relations
            .iter()
            .map(|(relation, ids)| (relation.as_str(), Some(ids.first().map_or(self.span, |id| id.span))));
        stated.into_iter().chain(relations).filter_map(|(name, span)| Some(directive(span?, name))).collect()
    }
}

fn is_of_stead(type_name: &TypeName) -> bool {
    type_name.as_str().split_once('/').is_some_and(|(owner, _)| owner.eq_ignore_ascii_case(OWNER))
}

fn directive(span: Span, name: &str) -> Diagnostic {
    finding(span, &format!("the directive '{name}'"))
}

fn finding(span: Span, what: &str) -> Diagnostic {
    Diagnostic::warning(&codes::NOT_PORTABLE, span, format!("{what} is not supported by dsc"))
}
