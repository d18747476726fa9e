//! The JSON Schema of a resource, from the type that declares its properties.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value as Json};

/// The JSON Schema of the properties that a type declares: descriptions are its doc comments.
pub(crate) fn of<T: JsonSchema>() -> Json {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut json = settings.with_transform(plain).into_generator().into_root_schema_for::<T>().to_value();
    let properties = json.get_mut("properties").and_then(Json::as_object_mut);
    properties.into_iter().flatten().filter_map(|(_, property)| property.as_object_mut()).for_each(of_json);
    json
}

/// Without the line breaks of its comments.
fn plain(schema: &mut Schema) {
    schemars::transform::transform_subschemas(&mut plain, schema);
    if let Some(Json::String(text)) = schema.get("description") {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        schema.insert("description".to_owned(), text.into());
    }
}

/// Without what is about Rust: null for what may be left out but is never null, and the widths of numbers.
fn of_json(property: &mut Map<String, Json>) {
    if property.get("default") == Some(&Json::Null) {
        property.remove("default");
    }
    let is_width = |format: &Json| format.as_str().is_some_and(|format| format.contains("int") || format == "double");
    if property.get("format").is_some_and(is_width) {
        property.remove("format");
    }
    // What is optional has null behind its own type; where null stands first it is meant.
    if let Some(Json::Array(types)) = property.get("type")
        && let [own, Json::String(last)] = types.as_slice()
        && last == "null"
    {
        let own = own.clone();
        property.insert("type".to_owned(), own);
    }
    if let Some(Json::Array(forms)) = property.get_mut("anyOf") {
        forms.retain(|form| form.get("type") != Some(&"null".into()));
        if let [Json::Object(only)] = forms.as_slice() {
            let only = only.clone();
            property.remove("anyOf");
            // The description of the property says more than that of its type.
            for (name, value) in only {
                property.entry(name).or_insert(value);
            }
        }
    }
    if let Some(Json::Array(values)) = property.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
}
