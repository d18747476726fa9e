//! Importers that are programs: what the properties of an instance stand for is a document, which `resolve` prints.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;
use stead_core::call::Failure;
use stead_core::diag::{Code, Diagnostic, any_error};
use stead_core::document;
use stead_core::graph::{Expansion, ExpansionFinding, codes};
use stead_core::manifest::{Manifest, unplaced};
use stead_core::parameters::Supplied;
use stead_core::text::{Limits, Sources, Span};
use stead_core::value::{Object, Value};
use stead_host::command::{CommandProvider, CommandSettings, resolve};
use stead_host::provider::{Context, Plain, Provider};

type Findings = Vec<ExpansionFinding>;

/// The importers that one document uses.
///
/// Guarantees: a program is asked once for the same properties, however often the document is gone through until all facts
/// for it are known.
pub(crate) struct Importers<'a> {
    settings: &'a CommandSettings,
    cx: Context,
    answers: RefCell<BTreeMap<String, Json>>,
}

impl<'a> Importers<'a> {
    pub(crate) fn new(settings: &'a CommandSettings, cx: Context) -> Self {
        Self { settings, cx, answers: RefCell::default() }
    }

    /// The document that the properties of an instance stand for.
    pub(crate) fn expand(
        &self,
        importer: &Manifest,
        properties: &Object,
        sources: &mut Sources,
    ) -> Result<Expansion, Findings> {
        let properties = Value::Object(properties.clone());
        if properties.has_sealed() {
            return Err(about_properties(&codes::SECRET_HERE, "the properties of an importer cannot hold a secret"));
        }
        let resolved = self.answer(importer, &Plain::new(properties))?;
        let Some(configuration) = resolved.get("configuration") else {
            return Err(refused(importer, "its program printed no 'configuration'"));
        };
        let parameters = match resolved.get("parameters").filter(|parameters| !parameters.is_null()) {
            Some(parameters) => Supplied::of_tree_or_members(&unplaced(parameters))
                .map_err(|finding| vec![finding.placed(None, &Supplied::default()).into()])?,
            None => Supplied::default(),
        };
        // The program may have put into it what it read in files that only root can.
        let text = configuration.to_string();
        let source = sources.add_private(&format!("<resolved by {}>", importer.type_name), &text);
        let (document, findings) = document::parse(source, &text, &Limits::default());
        if any_error(&findings) {
            return Err(findings.into_iter().map(|finding| finding.without_words_of(&text).into()).collect());
        }
        Ok(Expansion { document, parameters: parameters.values })
    }

    fn answer(&self, importer: &Manifest, properties: &Plain) -> Result<Json, Findings> {
        let key = format!("{} {} {}", importer.type_name, importer.version, properties.to_json());
        if let Some(known) = self.answers.borrow().get(&key) {
            return Ok(known.clone());
        }
        let cx = Context { name: importer.type_name.as_str().into(), ..self.cx.clone() };
        let failed = |failure: Failure| refused(importer, failure.message.trim_end());
        if let Some(provider) = CommandProvider::new(&Arc::new(importer.clone()), self.settings.clone())
            && let Some(schema) = provider.schema(&cx).map_err(failed)?
        {
            let mismatches = schema.validate(&properties.to_json());
            if !mismatches.is_empty() {
                let finding = |mismatch: &stead_core::schema::SchemaMismatch| ExpansionFinding {
                    property: mismatch.pointer.clone(),
                    ..placeless(&codes::BAD_INCLUDE, mismatch.line())
                };
                return Err(mismatches.iter().map(finding).collect());
            }
        }
        let resolved = resolve(importer, properties, self.settings, &cx).map_err(failed)?;
        self.answers.borrow_mut().insert(key, resolved.clone());
        Ok(resolved)
    }
}

fn refused(importer: &Manifest, why: &str) -> Findings {
    about_properties(&codes::BAD_INCLUDE, &format!("'{}' cannot be resolved: {why}", importer.type_name))
}

fn about_properties(code: Code, message: &str) -> Findings {
    vec![placeless(code, message.to_owned())]
}

/// A finding about the properties.
fn placeless(code: Code, message: String) -> ExpansionFinding {
    Diagnostic { span: None, ..Diagnostic::error(code, Span::default(), message) }.into()
}
