//! Schemas of resources: compiled once, asked often.
//!
//! The drafts 4 to 2020-12 of JSON Schema are understood; nothing is ever fetched.

use jsonschema::error::{TypeKind, ValidationError, ValidationErrorKind as Kind};
use jsonschema::{Draft, JsonType, PatternOptions, Validator};
use serde_json::{Map, Value as Json};

use crate::diag::nearest;

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

/// How many findings of one value are worth reading.
const MISMATCHES: usize = 50;
/// How many steps a pattern with look-around may take back, which bounds its time; patterns without need none.
const BACKTRACKS: usize = 10_000;
/// How many references lead from a property to what describes it, at most; a schema may refer to itself.
const REFERENCES: usize = 16;

impl Schema {
    /// Compiles a schema.
    ///
    /// Guarantees: nothing is fetched; the meta-schemas of all drafts are known and may be referred to. Checking a
    /// value takes time that is linear in its text, except for patterns with look-around, whose time is bounded.
    pub fn compile(json: Json) -> Result<Self, InvalidSchema> {
        let linear = build(&json, PatternOptions::regex());
        let compiled = linear.or_else(|_| build(&json, PatternOptions::fancy_regex().backtrack_limit(BACKTRACKS)));
        let validator = compiled.map_err(|error| InvalidSchema(describe(&error)))?;
        Ok(Self { json, validator })
    }

    /// The schema as written.
    pub fn json(&self) -> &Json {
        &self.json
    }

    /// Every way in which a value does not fit, in the order of the value; at most a page full.
    pub fn validate(&self, value: &Json) -> Vec<Mismatch> {
        let errors = self.validator.iter_errors(value).take(MISMATCHES);
        let mut found: Vec<_> = errors.flat_map(|error| self.mismatches(&error)).collect();
        found.dedup();
        found
    }

    /// What describes a top-level property, references followed.
    pub fn property(&self, name: &str) -> Option<&Json> {
        let described = |schema: &&Json| schema.get("properties").is_some_and(|all| all.get(name).is_some());
        let parts = self.parts();
        let schema = parts.iter().copied().find(described)?;
        schema.get("properties")?.get(name).map(|property| self.followed(property))
    }

    /// The names of the top-level properties, in the order of the schema.
    pub fn property_names(&self) -> Vec<&str> {
        let properties = self.parts().into_iter().filter_map(|schema| schema.get("properties")?.as_object());
        properties.flat_map(Map::keys).map(String::as_str).collect()
    }

    /// The default of every top-level property that has one.
    pub fn defaults(&self) -> Map<String, Json> {
        let default = |name: &str| Some((name.to_owned(), self.keyword(name, "default")?.clone()));
        self.property_names().into_iter().filter_map(default).collect()
    }

    /// Whether a top-level property is taken but never reported.
    pub fn write_only(&self, name: &str) -> bool {
        self.is_marked(name, "writeOnly")
    }

    /// Whether a top-level property is reported but never taken.
    pub fn read_only(&self, name: &str) -> bool {
        self.is_marked(name, "readOnly")
    }

    /// Whether an object with a top-level property of that name can fit: it is described, or others are not excluded.
    pub fn allows(&self, name: &str) -> bool {
        if self.json == Json::Bool(false) || self.property(name) == Some(&Json::Bool(false)) {
            return false;
        }
        let parts = self.parts();
        let closed = parts.iter().any(|schema| is_closed(schema, "unevaluatedProperties"));
        let described = self.property(name).is_some() || parts.iter().any(|schema| has_pattern(schema, name));
        // `additionalProperties` sees only the `properties` beside it, `unevaluatedProperties` those of all parts.
        let admits = |schema: &&Json| {
            let beside = schema.get("properties").is_some_and(|all| all.get(name).is_some());
            beside || has_pattern(schema, name) || !is_closed(schema, "additionalProperties")
        };
        parts.iter().all(admits) && (described || !closed)
    }

    /// A keyword of a property: beside a reference first, then behind it.
    fn keyword(&self, name: &str, keyword: &str) -> Option<&Json> {
        let parts = self.parts();
        let mut beside = parts.iter().filter_map(|schema| schema.get("properties")?.get(name)?.get(keyword));
        beside.next().or_else(|| self.property(name)?.get(keyword))
    }

    fn is_marked(&self, name: &str, keyword: &str) -> bool {
        self.keyword(name, keyword).and_then(Json::as_bool).unwrap_or(false)
    }

    /// The schemas that every value has to fit: the root, what it refers to, and their `allOf`.
    fn parts(&self) -> Vec<&Json> {
        let mut parts = Vec::new();
        self.collect_parts(&self.json, 0, &mut parts);
        parts
    }

    fn collect_parts<'a>(&'a self, schema: &'a Json, depth: usize, parts: &mut Vec<&'a Json>) {
        if depth > REFERENCES || parts.iter().any(|part| std::ptr::eq(*part, schema)) {
            return;
        }
        parts.push(schema);
        if let Some(target) = self.target(schema) {
            self.collect_parts(target, depth + 1, parts);
        }
        let all = schema.get("allOf").and_then(Json::as_array).into_iter().flatten();
        all.for_each(|part| self.collect_parts(part, depth + 1, parts));
    }

    /// What a local reference points to.
    fn target(&self, schema: &Json) -> Option<&Json> {
        let pointer = schema.get("$ref")?.as_str()?.strip_prefix('#')?;
        let decoded = percent_encoding::percent_decode_str(pointer).decode_utf8().ok()?;
        self.json.pointer(&decoded)
    }

    fn followed<'a>(&'a self, schema: &'a Json) -> &'a Json {
        let step = |schema: &&'a Json| self.target(schema);
        std::iter::successors(Some(schema), step).take(REFERENCES).last().unwrap_or(schema)
    }

    fn mismatches(&self, error: &ValidationError<'_>) -> Vec<Mismatch> {
        let pointer = error.instance_path().as_str().to_owned();
        match error.kind() {
            Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
                let known = self.siblings(error);
                unexpected.iter().map(|name| unknown_property(&pointer, name, &known)).collect()
            }
            kind => vec![Mismatch { pointer, message: message(kind) }],
        }
    }

    /// The properties that are known where an unknown one was found.
    fn siblings(&self, error: &ValidationError<'_>) -> Vec<&str> {
        if error.instance_path().as_str().is_empty() {
            return self.property_names();
        }
        let location = error.schema_path().as_str();
        let parent = location.rsplit_once('/').map_or("", |(parent, _)| parent);
        let properties = self.json.pointer(parent).and_then(|schema| schema.get("properties")?.as_object());
        properties.into_iter().flat_map(Map::keys).map(String::as_str).collect()
    }
}

fn build<E>(json: &Json, patterns: PatternOptions<E>) -> Result<Validator, ValidationError<'static>> {
    let mut options =
        jsonschema::options().offline().with_registry(&referencing::SPECIFICATIONS).with_pattern_options(patterns);
    // A meta-schema that nobody knows cannot be asked what its keywords mean; the newest draft is the best guess.
    if Draft::default().detect(json) == Draft::Unknown {
        options = options.with_draft(Draft::default());
    }
    options.build(json)
}

/// A sentence about a schema that cannot be compiled. It quotes the schema, which is no secret.
fn describe(error: &ValidationError<'_>) -> String {
    match error.instance_path().as_str() {
        "" => error.to_string(),
        place => format!("{error} (at {place})"),
    }
}

fn is_closed(schema: &Json, keyword: &str) -> bool {
    schema.get(keyword) == Some(&Json::Bool(false))
}

fn has_pattern(schema: &Json, name: &str) -> bool {
    let patterns = schema.get("patternProperties").and_then(Json::as_object);
    let mut patterns = patterns.into_iter().flat_map(Map::keys);
    patterns.any(|pattern| regex::Regex::new(pattern).is_ok_and(|pattern| pattern.is_match(name)))
}

fn unknown_property(pointer: &str, name: &str, known: &[&str]) -> Mismatch {
    let hint = match nearest(name, known.iter().copied()) {
        Some(near) => format!("; did you mean '{near}'?"),
        None if known.is_empty() => String::new(),
        None => format!("; the properties are {}", known.join(", ")),
    };
    let name_in_pointer = name.replace('~', "~0").replace('/', "~1");
    Mismatch {
        pointer: format!("{pointer}/{name_in_pointer}"),
        message: format!("there is no property '{name}'{hint}"),
    }
}

/// What is wrong, from the schema alone: the texts of the library quote the value.
fn message(kind: &Kind) -> String {
    match kind {
        Kind::Type { kind } => format!("it has to be {}", types(kind)),
        Kind::Required { property } => format!("the property '{}' is missing", property.as_str().unwrap_or_default()),
        Kind::Enum { options } => format!("it has to be one of {}", listed(options)),
        Kind::Constant { expected_value } => format!("it has to be {expected_value}"),
        Kind::Pattern { pattern } => format!("it has to match the pattern {pattern}"),
        Kind::Format { format } => format!("it has to have the format '{format}'"),
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => alternatives(context),
        Kind::OneOfMultipleValid { .. } => "it fits several of the alternatives of which it has to fit one".into(),
        Kind::Not { .. } => "it has a form that is excluded".into(),
        Kind::FalseSchema => "it must not be there".into(),
        Kind::PropertyNames { error } => format!("the name of a property does not fit: {}", message(error.kind())),
        Kind::Contains => "no element has the form that one has to have".into(),
        Kind::UniqueItems => "two elements are equal".into(),
        Kind::MultipleOf { multiple_of } => format!("it has to be a multiple of {multiple_of}"),
        Kind::ContentEncoding { content_encoding } => format!("it has to be encoded as {content_encoding}"),
        Kind::ContentMediaType { content_media_type } => format!("it has to be {content_media_type}"),
        Kind::FromUtf8 { .. } => "it has to hold UTF-8".into(),
        Kind::BacktrackLimitExceeded { .. } | Kind::RegexEngineFailure { .. } => "its pattern takes too long".into(),
        Kind::Referencing(_) => "its schema refers to something that is not there".into(),
        Kind::Custom { keyword, .. } => format!("it does not satisfy '{keyword}'"),
        kind => limit(kind),
    }
}

fn limit(kind: &Kind) -> String {
    match kind {
        Kind::Maximum { limit } => format!("it has to be at most {limit}"),
        Kind::Minimum { limit } => format!("it has to be at least {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("it has to be less than {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("it has to be greater than {limit}"),
        Kind::MaxLength { limit } => format!("it has to be at most {limit} characters long"),
        Kind::MinLength { limit } => format!("it has to be at least {limit} characters long"),
        Kind::MaxItems { limit } => format!("it has to have at most {limit} elements"),
        Kind::MinItems { limit } => format!("it has to have at least {limit} elements"),
        Kind::MaxProperties { limit } => format!("it has to have at most {limit} properties"),
        Kind::MinProperties { limit } => format!("it has to have at least {limit} properties"),
        Kind::AdditionalItems { limit } => format!("it has to have at most {limit} elements"),
        Kind::UnevaluatedItems { .. } => "it has elements that are not allowed".into(),
        other => format!("it does not satisfy '{}'", other.keyword()),
    }
}

fn types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(single) => type_name(*single).to_owned(),
        TypeKind::Multiple(several) => several.iter().map(type_name).collect::<Vec<_>>().join(" or "),
    }
}

fn type_name(name: JsonType) -> &'static str {
    match name {
        JsonType::Null => "null",
        JsonType::Boolean => "a boolean",
        JsonType::Integer => "an integer",
        JsonType::Number => "a number",
        JsonType::String => "a string",
        JsonType::Array => "an array",
        JsonType::Object => "an object",
    }
}

fn listed(options: &Json) -> String {
    let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
    options.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// What each alternative misses, if they are few enough to be read.
fn alternatives(context: &[Vec<ValidationError<'_>>]) -> String {
    let mut reasons: Vec<String> = Vec::new();
    for error in context.iter().filter_map(|errors| errors.first()) {
        let reason = match error.kind() {
            Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
                format!("there is no property '{}'", unexpected.join("', '"))
            }
            kind => message(kind),
        };
        let place = error.instance_path().as_str();
        let reason = if place.is_empty() { reason } else { format!("{place}: {reason}") };
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    match reasons.len() {
        1..=4 => format!("it fits none of the alternatives: {}", reasons.join("; or ")),
        _ => "it fits none of the alternatives".into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema(json: Json) -> Schema {
        Schema::compile(json).unwrap_or_else(|error| panic!("{error}"))
    }

    fn messages(schema: &Schema, value: &Json) -> Vec<String> {
        schema.validate(value).into_iter().map(|found| format!("{}: {}", found.pointer, found.message)).collect()
    }

    fn file() -> Schema {
        schema(json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "required": ["path"],
            "additionalProperties": false,
            "properties": {
                "path": {"type": "string", "minLength": 1},
                "mode": {"type": "string", "pattern": "^[0-7]{4}$", "default": "0644"},
                "state": {"enum": ["present", "absent"]},
                "secret": {"type": "string", "writeOnly": true},
                "size": {"$ref": "#/definitions/size"},
                "owner": {"type": "object", "additionalProperties": false, "properties": {"user": {"type": "string"}}}
            },
            "definitions": {"size": {"type": "integer", "readOnly": true, "default": 0, "maximum": 10}}
        }))
    }

    #[test]
    fn mismatches_name_what_the_schema_says() {
        let value = json!({
            "mod": "0644", "state": "here", "size": 11, "secret": 7, "mode": "rwx", "owner": {"usr": "me"}
        });
        let mut found = messages(&file(), &value);
        found.sort();
        let expected = [
            "/mod: there is no property 'mod'; did you mean 'mode'?",
            "/mode: it has to match the pattern ^[0-7]{4}$",
            "/owner/usr: there is no property 'usr'; did you mean 'user'?",
            "/secret: it has to be a string",
            "/size: it has to be at most 10",
            "/state: it has to be one of \"present\", \"absent\"",
            ": the property 'path' is missing",
        ];
        assert_eq!(found, expected);
        assert!(messages(&file(), &json!({"path": "/x"})).is_empty());
    }

    #[test]
    fn top_level_properties_are_known_through_references() {
        let schema = file();
        assert_eq!(schema.property("size").and_then(|size| size.get("type")), Some(&json!("integer")));
        assert_eq!(Json::Object(schema.defaults()), json!({"mode": "0644", "size": 0}));
        assert!(schema.write_only("secret") && !schema.write_only("mode"));
        assert!(schema.read_only("size") && !schema.read_only("path"));
        assert!(schema.allows("mode") && !schema.allows("_metadata"));
    }

    #[test]
    fn parts_of_a_schema_count_together() {
        let split = json!({
            "allOf": [{"$ref": "#/$defs/base"}, {"properties": {"b": true}}],
            "unevaluatedProperties": false,
            "$defs": {"base": {"properties": {"a": {"default": 1}}, "patternProperties": {"^x-": true}}}
        });
        let schema = schema(split);
        assert_eq!(schema.property_names(), ["a", "b"]);
        assert!(schema.allows("a") && schema.allows("b") && schema.allows("x-1") && !schema.allows("c"));
        assert!(self::schema(json!({"type": "object"})).allows("anything"));
        assert!(!self::schema(json!({"properties": {"no": false}})).allows("no"));
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        let schema =
            schema(json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
            "properties": {"p": {"$ref": "#/properties/p"}}}));
        assert!(schema.defaults().is_empty());
        assert!(schema.property("p").is_some());
    }

    #[test]
    fn meta_schemas_of_every_draft_may_be_referred_to() {
        for draft in [
            "http://json-schema.org/draft-04/schema#",
            "http://json-schema.org/draft-06/schema#",
            "http://json-schema.org/draft-07/schema#",
            "https://json-schema.org/draft/2019-09/schema",
            "https://json-schema.org/draft/2020-12/schema",
        ] {
            let schema = schema(json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "properties": {"schema": {"$ref": draft}}
            }));
            assert!(messages(&schema, &json!({"schema": {"type": "object"}})).is_empty(), "{draft}");
            assert!(!messages(&schema, &json!({"schema": {"type": 1}})).is_empty(), "{draft}");
        }
    }

    #[test]
    fn nothing_is_fetched_and_unknown_drafts_are_guessed() {
        assert!(Schema::compile(json!({"$ref": "https://example.invalid/other.json"})).is_err());
        let guessed = schema(json!({"$schema": "https://example.invalid/mine", "type": "object"}));
        assert_eq!(messages(&guessed, &json!(1)), [": it has to be an object"]);
        let Err(error) = Schema::compile(json!({"type": "objekt"})) else { panic!("it compiled") };
        assert!(error.to_string().contains("/type"), "{error}");
    }

    #[test]
    fn patterns_with_look_around_work_and_patterns_without_are_linear() {
        let around = schema(json!({"pattern": "^(?!root$).+$"}));
        assert!(messages(&around, &json!("me")).is_empty());
        assert_eq!(messages(&around, &json!("root")).len(), 1);
        let linear = schema(json!({"pattern": "^(a+)+$"}));
        assert_eq!(messages(&linear, &json!("a".repeat(50_000) + "b")).len(), 1);
    }

    #[test]
    fn no_message_quotes_the_value() {
        let secret = "s3cr3t-value";
        let shapes = [
            json!({"const": 1}),
            json!({"not": {"type": "string"}}),
            json!({"type": ["integer", "null"]}),
            json!({"anyOf": [{"type": "object"}, {"maxLength": 2}]}),
            json!({"oneOf": [{"minLength": 1}, {"type": "string"}]}),
            json!({"format": "date", "$schema": "http://json-schema.org/draft-07/schema#"}),
            json!({"maxLength": 3}),
            json!(false),
        ];
        for shape in shapes {
            let nested = schema(json!({"properties": {"p": shape.clone()}, "propertyNames": {"maxLength": 1}}));
            let found = messages(&nested, &json!({"p": secret}));
            assert!(!found.is_empty(), "{shape}");
            assert!(found.iter().all(|text| !text.contains(secret)), "{found:?}");
        }
        let items = schema(json!({"uniqueItems": true, "contains": {"type": "null"}, "maxItems": 1}));
        let found = messages(&items, &json!([secret, secret]));
        assert!(found.len() == 3 && found.iter().all(|text| !text.contains(secret)), "{found:?}");
    }
}
