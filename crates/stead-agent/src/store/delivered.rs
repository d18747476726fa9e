//! What is delivered to the agent.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

/// A document, and what it is applied with. The text and the parameters may hold secrets.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Delivered {
    /// What messages call it.
    pub name: String,
    /// The text of the document.
    pub text: String,
    /// The values of its parameters.
    pub parameters: Map<String, Json>,
    /// The root of the machine that it describes.
    pub root: PathBuf,
}

impl fmt::Debug for Delivered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delivered").field("name", &self.name).field("root", &self.root).finish_non_exhaustive()
    }
}
