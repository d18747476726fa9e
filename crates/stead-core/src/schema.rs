//! Schemas of resources: compiled once, asked often.

/// A compiled JSON Schema, and what the engine reads from it besides.
pub struct Schema {
    json: serde_json::Value,
    validator: jsonschema::Validator,
}

/// A schema that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the schema is not valid: {0}")]
pub struct InvalidSchema(pub String);

/// One way in which a value does not fit a schema.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mismatch {
    /// Where in the value, as a JSON pointer; empty for the whole.
    pub pointer: String,
    /// What is wrong. Guarantees: no part of the value is quoted, it may be secret.
    pub message: String,
}

impl Schema {
    /// Compiles a schema.
    pub fn compile(json: serde_json::Value) -> Result<Self, InvalidSchema> {
        let validator = jsonschema::validator_for(&json).map_err(|error| InvalidSchema(error.to_string()))?;
        Ok(Self { json, validator })
    }

    /// The schema as it was given.
    pub fn json(&self) -> &serde_json::Value {
        &self.json
    }

    /// Every way in which a value does not fit.
    pub fn mismatches(&self, value: &serde_json::Value) -> Vec<Mismatch> {
        let errors = self.validator.iter_errors(value);
        errors
            .map(|error| Mismatch {
                pointer: error.instance_path().to_string(),
                message: error.masked_with("the value").to_string(),
            })
            .collect()
    }
}
