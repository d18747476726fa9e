//! Schemas of resources: compiled once, asked often.
//!
//! The drafts 4 to 2020-12 of JSON Schema are understood; nothing is ever fetched.

use jsonschema::error::{ValidationError, ValidationErrorKind as Kind};
use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::{Map, Value as Json};

mod digest;
mod mismatch;
mod reason;

pub use digest::digest;

pub use mismatch::SchemaMismatch;
pub use reason::{Reason, Spelling, Type, is_key_of_instances};

/// A compiled JSON Schema, and what the engine reads from it besides.
///
/// # Examples
/// ```
/// use serde_json::json;
/// use stead_core::schema::Schema;
///
/// let schema = Schema::compile(json!({
///     "type": "object",
///     "additionalProperties": false,
///     "required": ["path"],
///     "properties": {
///         "path": { "type": "string" },
///         "mode": { "type": "string", "default": "0644" },
///         "password": { "type": "string", "writeOnly": true },
///     },
/// }))?;
/// let found = schema.validate(&json!({ "path": "/etc/motd", "mode": 644 }));
/// assert_eq!((found.len(), found[0].pointer.as_str()), (1, "/mode"));
/// assert!(found[0].to_string().starts_with("'mode' must be a string"), "{}", found[0]);
/// assert!(schema.write_only("password") && !schema.allows("owner"));
/// assert_eq!(schema.defaults().get("mode"), Some(&json!("0644")));
/// # Ok::<(), stead_core::schema::InvalidSchema>(())
/// ```
pub struct Schema {
    json: serde_json::Value,
    validator: jsonschema::Validator,
}

/// A schema that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the schema is not valid: {0}")]
pub struct InvalidSchema(pub String);

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
    pub fn validate(&self, value: &Json) -> Vec<SchemaMismatch> {
        let errors = self.validator.iter_errors(value).take(MISMATCHES);
        let mut found: Vec<_> = errors.flat_map(|error| self.mismatches(&error)).collect();
        found.dedup();
        found
    }

    /// Returns the schema of a top-level property, references followed.
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

    /// Returns whether a top-level property is taken but never reported.
    pub fn write_only(&self, name: &str) -> bool {
        self.is_marked(name, "writeOnly")
    }

    /// Returns whether a top-level property is reported but never taken.
    pub fn read_only(&self, name: &str) -> bool {
        self.is_marked(name, "readOnly")
    }

    /// Returns whether an object with a top-level property of that name can fit: it is described, or others are not
    /// excluded.
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

    /// The schemas that every value must fit: the root, what it refers to, and their `allOf`.
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

    /// Returns the schema that a local reference points to.
    fn target(&self, schema: &Json) -> Option<&Json> {
        let pointer = schema.get("$ref")?.as_str()?.strip_prefix('#')?;
        let decoded = percent_encoding::percent_decode_str(pointer).decode_utf8().ok()?;
        self.json.pointer(&decoded)
    }

    fn followed<'a>(&'a self, schema: &'a Json) -> &'a Json {
        let step = |schema: &&'a Json| self.target(schema);
        std::iter::successors(Some(schema), step).take(REFERENCES).last().unwrap_or(schema)
    }

    fn mismatches(&self, error: &ValidationError<'_>) -> Vec<SchemaMismatch> {
        let pointer = error.instance_path().as_str();
        match error.kind() {
            Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
                let known = self.siblings(error);
                unexpected.iter().map(|name| SchemaMismatch::unknown_property(pointer, name, &known)).collect()
            }
            _ => vec![SchemaMismatch::of(error, &self.json)],
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

/// A sentence about a schema that cannot be compiled. It quotes the schema, which is not a secret.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema(json: Json) -> Schema {
        Schema::compile(json).unwrap_or_else(|error| panic!("{error}"))
    }

    fn messages(schema: &Schema, value: &Json) -> Vec<String> {
        schema.validate(value).into_iter().map(|found| found.line()).collect()
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
            "'mode' must match the regular expression ^[0-7]{4}$",
            "'path' is required",
            "'secret' must be a string; write it in quotes",
            "'size' must be at most 10",
            "'state' must be one of \"present\", \"absent\"",
            "there is no property 'mod'; did you mean 'mode'?",
            "there is no property 'usr' in 'owner'; did you mean 'user'?",
        ];
        assert_eq!(found, expected);
        assert!(messages(&file(), &json!({"path": "/x"})).is_empty());
    }

    #[test]
    fn what_conflicts_and_what_is_missing_is_named() {
        let cases = [
            (json!({"not": {"required": ["after", "before"]}}), "'after' and 'before' cannot be used together"),
            (
                json!({"oneOf": [{"required": ["after"]}, {"required": ["before"]}]}),
                "'after' and 'before' cannot be used together",
            ),
            (json!({"anyOf": [{"required": ["line"]}, {"required": ["match"]}]}), "'line' or 'match' is required"),
            (json!({"dependentRequired": {"after": ["line"]}}), "'line' is required when 'after' is used"),
            (
                json!({"if": {"properties": {"kind": {"const": "x"}}}, "then": {"required": ["line"]}}),
                "'line' is required when 'kind' is \"x\"",
            ),
            (
                json!({"if": {"required": ["after"]}, "then": {"properties": {"before": false}}}),
                "'before' cannot be used here when 'after' is used",
            ),
            (json!({"properties": {"kind": {"enum": ["y", "z"]}}}), "'kind' must be one of \"y\", \"z\""),
            (json!({"properties": {"kind": {"type": "boolean"}}}), "'kind' must be true or false"),
            (
                json!({"properties": {"count": {"type": "integer"}}}),
                "'count' must be an integer; write it without quotes",
            ),
            (
                json!({"properties": {"kind": {"oneOf": [{"type": "integer"}, {"type": "array"}]}}}),
                "'kind' must be an integer, or must be a list",
            ),
            (json!({"properties": {"kind": {"not": {"const": "x"}}}}), "'kind' must not be \"x\""),
        ];
        let value = json!({"after": "a", "before": "b", "kind": "x", "count": "3"});
        for (shape, expected) in cases {
            assert_eq!(messages(&schema(shape.clone()), &value), [expected], "{shape}");
        }
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
        assert_eq!(messages(&guessed, &json!(1)), ["the properties must be an object"]);
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
