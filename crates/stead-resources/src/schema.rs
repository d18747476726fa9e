//! The schema of a built-in resource, compiled when it is first needed.

use std::sync::{Arc, OnceLock};

use stead_core::call::{Failure, FailureKind};
use stead_core::schema::Schema;

/// The text of a schema, and what became of it.
pub(crate) struct Lazy {
    text: &'static str,
    compiled: OnceLock<Option<Arc<Schema>>>,
}

impl Lazy {
    pub(crate) const fn new(text: &'static str) -> Self {
        Self { text, compiled: OnceLock::new() }
    }

    /// The compiled schema. A test makes sure that it is one; a failure here is a defect of stead.
    pub(crate) fn get(&self) -> Result<Option<Arc<Schema>>, Failure> {
        let compile = || serde_json::from_str(self.text).ok().and_then(|json| Schema::compile(json).ok()).map(Arc::new);
        match self.compiled.get_or_init(compile) {
            Some(schema) => Ok(Some(Arc::clone(schema))),
            None => Err(Failure::new(FailureKind::System, "the built-in schema of the resource is not valid")),
        }
    }
}
