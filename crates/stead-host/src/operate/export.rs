//! Exports: listing, filtering, and taking apart what a resource says of each instance.

use stead_core::call::{Exported, Failure, FailureKind, Operation, Outcome, Response};
use stead_core::export::{Filter, escaped};
use stead_core::manifest::Implementation;
use stead_core::value::{Object, Value};

use super::attempt::{Attempt, answered};
use crate::provider::TraceLevel;

impl Attempt<'_> {
    /// Lists the instances that are there.
    pub(super) fn export(&self) -> Result<Response, Failure> {
        let found = match () {
            () if !self.capabilities().export => vec![self.only_instance()?],
            () if self.capabilities().export_filters => self.list(&self.input)?,
            () => self.filtered()?,
        };
        let instances = found.into_iter().map(as_in_document).collect();
        Ok(answered(Outcome::Exported(instances), None))
    }

    /// Whether the input has to fit the schema of the properties: a filter does only where nothing else is said of it.
    pub(super) fn checks_input(&self) -> bool {
        if self.call.operation != Operation::Export || !self.capabilities().export {
            return true;
        }
        let own_schema = match &self.call.manifest.implementation {
            Implementation::Command(command) => command.export_schema.is_some(),
            _ => false,
        };
        self.capabilities().export_filters && !own_schema
    }

    fn only_instance(&self) -> Result<Exported, Failure> {
        let reading = self.read()?;
        Ok(Exported {
            type_name: None,
            name: None,
            properties: reading.state,
            depends_on: Vec::new(),
            metadata: reading.metadata,
        })
    }

    fn list(&self, input: &crate::provider::Plain) -> Result<Vec<Exported>, Failure> {
        self.proceed()?;
        self.provider.export(&self.cx, input)?.into_iter().map(|instance| self.sealed(instance)).collect()
    }

    fn filtered(&self) -> Result<Vec<Exported>, Failure> {
        let invalid = |error: stead_core::export::InvalidFilter| Failure::new(FailureKind::Invalid, error.to_string());
        let filter = Filter::parse(self.resealer.plain()).map_err(invalid)?;
        if *self.desired != Value::Null {
            let message = "the resource does not support export filtering, the engine filters the exported instances";
            self.note(TraceLevel::Info, message);
        }
        self.proceed()?;
        let found = self.provider.export(&self.cx, &crate::provider::Plain::default())?;
        let kept = found.into_iter().filter_map(|instance| {
            let properties = filter.apply(&instance.properties)?;
            Some(Exported { properties, ..instance })
        });
        kept.map(|instance| self.sealed(instance)).collect()
    }

    /// What came from the resource is in the clear, whatever its type says.
    fn sealed(&self, found: Exported) -> Result<Exported, Failure> {
        let plain = |value: &Value| crate::provider::Plain::new(value.to_redacted_json());
        let reading = match found.type_name {
            None => self.reading(plain(&found.properties))?,
            Some(_) => self.reading_of_other(&plain(&found.properties)),
        };
        let metadata = found.metadata.map(|metadata| self.resealer.state(metadata.to_redacted_json()));
        let metadata = metadata.and_then(|metadata| self.metadata(metadata)).or(reading.metadata);
        let name = found.name.map(|name| self.resealer.text(&name));
        Ok(Exported {
            type_name: found.type_name,
            name,
            properties: reading.state,
            depends_on: found.depends_on,
            metadata,
        })
    }
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
