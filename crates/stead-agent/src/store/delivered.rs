//! Documents as they are delivered to the agent.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use stead_core::bundle::{Bundle, BundleError, Reach};

/// A document with its files, and what it is applied with. The texts and the parameters may hold secrets.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Delivered {
    /// The name that messages call it by.
    pub name: String,
    /// The text of a document that an older version stored, whose files are read where they lie; empty with a bundle.
    pub text: String,
    /// The bundle of the document, in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<String>,
    /// The values of its parameters.
    pub parameters: Map<String, Json>,
    /// The folder that relative paths start in, but for those of files of the bundle.
    pub root: PathBuf,
}

impl Delivered {
    /// Makes a delivery from a bundle.
    pub fn of_bundle(name: String, bundle: &Bundle, parameters: Map<String, Json>, root: PathBuf) -> Self {
        Self { name, text: String::new(), bundle: Some(STANDARD.encode(bundle.encode())), parameters, root }
    }

    /// Its bundle; `None` of a document that an older version stored.
    pub fn bundle(&self) -> Result<Option<Arc<Bundle>>, BundleError> {
        let Some(bundle) = &self.bundle else { return Ok(None) };
        let bytes = STANDARD.decode(bundle).map_err(|_| BundleError::NotABundle)?;
        Bundle::decode(&bytes, Reach::Machine, None).map(Arc::new).map(Some)
    }
}

impl fmt::Debug for Delivered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delivered").field("name", &self.name).field("root", &self.root).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_an_older_version_stored_is_read_and_written_as_it_was() {
        let stored = json!({"name": "site.yaml", "text": "resources: []", "parameters": {"a": 1}, "root": "/srv"});
        let delivered: Delivered = serde_json::from_value(stored.clone()).unwrap();
        assert_eq!((delivered.text.as_str(), delivered.bundle()), ("resources: []", Ok(None)));
        assert_eq!(serde_json::to_value(&delivered).unwrap(), stored);
    }

    #[test]
    fn a_bundle_that_is_not_whole_is_refused() {
        let document = ("site.yaml".to_owned(), Arc::from("resources: []"));
        let bundle = Bundle::new(None, document, std::collections::BTreeMap::new()).unwrap();
        let delivered = Delivered::of_bundle("site.yaml".to_owned(), &bundle, Map::new(), PathBuf::from("/"));
        assert_eq!(delivered.bundle(), Ok(Some(Arc::new(bundle.clone()))));
        for cut in [STANDARD.encode(&bundle.encode()[1..]), "?".to_owned(), String::new()] {
            assert!(Delivered { bundle: Some(cut), ..delivered.clone() }.bundle().is_err());
        }
    }
}
