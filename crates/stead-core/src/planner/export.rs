//! Exports, and instances as a document has them.

use std::sync::Arc;

use super::{Planned, Planner, PlannerStep, Reading, Stage, done, unsupported};
use crate::call::{Exported, Outcome};
use crate::export::{ExportFilter, escaped};
use crate::manifest::Implementation;
use crate::value::{Object, Value};

impl Planner<'_> {
    pub(super) fn export(&mut self) -> Planned {
        if !self.capabilities().export {
            return self.export_the_only_one();
        }
        let Some(found) = self.exported.take() else { return Ok(PlannerStep::Export) };
        Ok(self.exported(found))
    }

    /// The instances that the directive of the asking one keeps.
    fn exported(&self, found: Vec<Exported>) -> PlannerStep {
        let filter = self.call.export_filter.as_deref();
        let kept = found.into_iter().filter(|found| filter.is_none_or(|filter| fits(found, filter)));
        done(Outcome::Exported(kept.map(as_in_document).collect()), None)
    }

    fn export_the_only_one(&mut self) -> Planned {
        // Where there may be many, the one of these properties says nothing of them.
        if matches!(self.call.manifest.implementation, Implementation::Adapted { .. }) {
            let filters = self.desired.as_object().is_some_and(|desired| !desired.is_empty());
            let with = if filters { "Export method with parameters" } else { "Export method" };
            return Err(unsupported(&format!("{with} not implemented by resource '{}'", self.call.manifest.type_name)));
        }
        let Some(Reading { state, metadata }) = self.before.take() else { return self.read(Stage::Before) };
        let properties = Arc::unwrap_or_clone(state);
        let only = Exported { type_name: None, name: None, properties, depends_on: Vec::new(), metadata };
        Ok(self.exported(vec![only]))
    }
}

/// Returns whether a filter keeps an instance: by its properties, and one of an exporter by all that it says of it.
fn fits(found: &Exported, filter: &ExportFilter) -> bool {
    let Some(type_name) = &found.type_name else { return filter.apply(&found.properties).is_some() };
    let texts = [("type", Some(type_name.as_str())), ("name", found.name.as_deref())];
    let texts = texts.into_iter().filter_map(|(key, text)| Some((key.to_owned(), Value::from(text?))));
    let properties = ("properties".to_owned(), found.properties.clone());
    filter.apply(&Value::Object(texts.chain([properties]).collect())).is_some()
}

/// The instance as a document has it.
fn as_in_document(found: Exported) -> Exported {
    let Exported { type_name, mut name, properties, depends_on, mut metadata } = found;
    let Value::Object(mut members) = properties else {
        return Exported { type_name, name, properties: escaped(properties), depends_on, metadata };
    };
    // As in dsc, the last property takes the place of each that is taken out.
    if let Some(Value::String(own)) = members.swap_remove("_name") {
        name = name.or(Some(own));
    }
    if let Some(context) = members.swap_remove("_securityContext") {
        metadata = Some(with_security_context(metadata, context));
    }
    Exported { type_name, name, properties: escaped(Value::Object(members)), depends_on, metadata }
}

fn with_security_context(metadata: Option<Value>, context: Value) -> Value {
    let mut members = match metadata {
        Some(Value::Object(members)) => members,
        _ => Object::new(),
    };
    let own = Object::from_iter([("securityContext".to_owned(), context)]);
    members.insert("Microsoft.DSC".to_owned(), Value::Object(own));
    Value::Object(members)
}
