//! With what rights a document and its instances must run.

use super::{Graph, codes};
use crate::diag::Diagnostic;
use crate::id::NodeId;

impl Graph {
    /// Returns the reason why nothing of the document may run: the outermost one asks for other rights than there
    /// are.
    pub fn refused(&self, elevated: bool) -> Option<Diagnostic> {
        let needed = self.scopes.first()?.document.directives.security_context.as_ref()?;
        let why = needed.value.refusal(elevated)?;
        Some(Diagnostic::error(&codes::RIGHTS, needed.span, format!("Security context: {why}")))
    }

    /// Returns the reason why a node may not run: it, its document or a container around it asks for other rights
    /// than there are.
    ///
    /// Guarantees: what is nested cannot loosen what is asked for outside of it.
    pub fn refusal(&self, id: NodeId, elevated: bool) -> Option<&'static str> {
        let scope = self.scope(self.node(id).scope);
        let own = self.declaration(id).directives().security_context.as_ref();
        let mut stated = own.into_iter().chain(&scope.document.directives.security_context);
        let why = stated.find_map(|context| context.value.refusal(elevated));
        why.or_else(|| self.refusal(scope.container?, elevated))
    }
}
