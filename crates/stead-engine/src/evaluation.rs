//! Expressions by themselves.

use stead_core::budget::Budget;
use stead_core::diag::Diagnostic;
use stead_core::expr::{Expression, Fault, Stop, codes};
use stead_core::graph::ScopeId;
use stead_core::text::{Source, Span};
use stead_core::value::Value;

use crate::prepared::Prepared;
use crate::session::Session;

impl Session {
    /// The value of an expression, brackets included, that sees the parameters, variables and functions of a document.
    ///
    /// Errors: what is wrong with it, at a place of the expression, which is a source of the session from then on. What an
    /// instance answers is not known here.
    pub fn evaluate(&mut self, prepared: &Prepared, text: &str) -> Result<Value, Box<Diagnostic>> {
        let source = self.sources.add(Source::new("<expression>", text));
        let placed = |fault: Fault| {
            let at = |position: usize| u32::try_from(position).unwrap_or(u32::MAX);
            Box::new(fault.finding(Span::new(source, at(fault.at.start), at(fault.at.end)), text.get(fault.at.clone())))
        };
        let expression = Expression::parse(text).map_err(placed)?;
        let (mut facts, budget) = (prepared.facts.clone(), Budget::new(Budget::DOCUMENT));
        loop {
            let view = prepared.graph.static_view((ScopeId(0), None), &facts, &*self.vault, &budget);
            let whole = || 0..text.len();
            let key = match expression.evaluate(&view) {
                Ok(value) => return Ok(value),
                Err(Stop::Fault(fault)) => return Err(placed(fault)),
                Err(Stop::Missing(key)) => key,
                Err(Stop::Unknown(_) | Stop::Open(_)) => {
                    let message = "the value is not known before the document has run".to_owned();
                    return Err(placed(Fault { code: &codes::NOT_HERE, message, at: whole(), help: None }));
                }
            };
            let fact = self.machine.fact(&key);
            if let Err(message) = &fact {
                let message = message.clone();
                return Err(placed(Fault { code: &codes::ABSENT_FACT, message, at: whole(), help: None }));
            }
            facts.insert(key, fact);
        }
    }
}
