//! `stead new`: documents and resources to start from.

use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};
use stead_core::id::TypeName;
use stead_core::value::Value;
use stead_core::visible::visible;
use stead_core::wire::results::DOCUMENT_SCHEMA;
use stead_engine::{PropertyReference, Reference, error_chain};
use stead_resources::builtins;
use stead_system::fs::FsError;

use super::direct::{key, literal};
use super::test::{Observed, observed};
use super::{explain, files};
use crate::exit::Exit;
use crate::input;
use crate::process_env::ProcessEnv;
use crate::request::{Language, NewDocumentRequest, NewRequest, NewResourceRequest, NewTestRequest};
use crate::terminal::{complain, print};

/// Writes a document or a resource. Nothing that exists is overwritten.
pub(crate) fn new(request: &NewRequest, env: &ProcessEnv) -> Exit {
    let made = match request {
        NewRequest::Document(request) => document(request, env),
        NewRequest::Resource(request) => resource(request),
        NewRequest::Test(request) => test(request, env),
    };
    made.map_or_else(|exit| exit, |()| Exit::Success)
}

fn refused(message: &str, help: &str) -> Exit {
    complain(&format!("error: {message}\nhelp: {help}"));
    Exit::Unusable
}

/// Writes a file that is not there yet.
fn create(path: &Path, text: &str, mode: u32) -> Result<(), Exit> {
    created(path, files::create(path, text.as_bytes(), mode))
}

/// Reports why something was not created.
fn created(path: &Path, created: Result<bool, FsError>) -> Result<(), Exit> {
    match created {
        Ok(true) => Ok(()),
        Ok(false) => Err(refused(&format!("'{}' already exists", path.display()), "choose another name, or remove it")),
        Err(error) => {
            complain(&format!("error: {}", error_chain(&error)));
            Err(Exit::Failed)
        }
    }
}

/// An example that can be applied as it is, in the folder of the document.
const BODY: &str = "
# Values that differ between machines. To override one: stead apply --set greeting=Welcome
parameters:
  greeting:
    type: string
    defaultValue: Hello

# The desired state. 'stead resource list' lists the types, 'stead explain file' explains one.
resources:
- name: folder
  type: Stead/Directory
  properties:
    # A relative path starts at the folder of this document.
    path: example
- name: greeting
  type: Stead/File
  properties:
    path: example/greeting.txt
    # Text in brackets is an expression.
    content: \"[concat(parameters('greeting'), '!')]\"
";

fn document(request: &NewDocumentRequest, env: &ProcessEnv) -> Result<(), Exit> {
    let file = &request.file;
    if file.extension().is_some_and(|extension| extension == "json") {
        return Err(refused("JSON cannot hold the comments of a new document", "name a file that ends in .yaml"));
    }
    let body = if request.from.is_empty() { BODY.to_owned() } else { instances(&request.from, env)? };
    let modeline = format!("# yaml-language-server: $schema={DOCUMENT_SCHEMA}");
    let text = format!("{modeline}\n$schema: {DOCUMENT_SCHEMA}\n{body}");
    if file.as_os_str() == "-" {
        print(&text);
        return Ok(());
    }
    create(file, &text, 0o644)?;
    print(&format!("created {}\nnext: stead plan {}\n", file.display(), shown(file)));
    Ok(())
}

fn test(request: &NewTestRequest, env: &ProcessEnv) -> Result<(), Exit> {
    let Observed { file, text, failures } = observed(request, env)?;
    if file.as_os_str() == "-" {
        print(&text);
    } else {
        create(&file, &text, 0o644)?;
        print(&format!("created {}\nnext: stead test {}\n", file.display(), shown(&file)));
    }
    for (name, message) in &failures {
        let why = if message.is_empty() { String::new() } else { format!(": {message}") };
        complain(&format!("warning: '{}' failed, and the test expects that it fails{}", visible(name), visible(&why)));
    }
    if failures.is_empty() {
        return Ok(());
    }
    complain("help: if it is not meant to fail, correct the document and record the test again");
    Err(Exit::Failed)
}

/// A path as a shell takes it.
fn shown(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |letter: char| letter.is_alphanumeric() || "/._-+=@%".contains(letter);
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// One instance of each resource.
fn instances(types: &[String], env: &ProcessEnv) -> Result<String, Exit> {
    let (mut text, mut seen) = ("\nresources:\n".to_owned(), Vec::new());
    for name in types {
        let call = explain::find(name, env.host.session(input::current_folder())).map_err(|error| {
            complain(&format!("error: {error}"));
            complain(&format!("help: {}", error.help().unwrap_or("'stead resource list' lists what there is")));
            Exit::Unusable
        })?;
        let reference = call.reference();
        if !seen.contains(&reference.manifest.type_name) {
            seen.push(reference.manifest.type_name.clone());
            text.push_str(&instance(&reference));
        }
    }
    Ok(text)
}

/// An instance with a comment on each of its properties, those included that it does not state.
fn instance(reference: &Reference<'_>) -> String {
    let type_name = &reference.manifest.type_name;
    let example = reference.example.map_or_else(|| made_up(reference), str::to_owned);
    let head = format!("# {type_name}: {}", sentence(reference.description()));
    let mut lines = vec![head.trim_end_matches([':', ' ']).to_owned()];
    let mut properties = reference.properties();
    properties.retain(|each| !each.name.contains('.') && !each.marks.iter().any(|mark| mark == "read-only"));
    // How deep the properties of the instance are, while its lines are those.
    let mut within = None;
    for line in example.lines().filter(|line| *line != "resources:") {
        let depth = line.len() - line.trim_start().len();
        if within.is_some_and(|within| depth < within) {
            lines.extend(unstated(&mut properties, within.take()));
        }
        let starts_line = |name: &str| line.trim_start().strip_prefix(name).is_some_and(|rest| rest.starts_with(':'));
        let of_line = |property: &PropertyReference<'_>| within == Some(depth) && starts_line(&key(&property.name));
        if let Some(at) = properties.iter().position(of_line) {
            lines.push(format!("{:depth$}# {}", "", about(&properties.remove(at))));
        }
        let is_type = |line: &String| line.trim_start_matches([' ', '-']) == format!("type: {type_name}");
        if line.trim() == "properties:" && lines.last().is_some_and(is_type) {
            within = Some(depth + 2);
        }
        lines.push(line.to_owned());
    }
    lines.extend(unstated(&mut properties, within));
    lines.join("\n") + "\n"
}

/// Properties that are not stated, in comments.
fn unstated(rest: &mut Vec<PropertyReference<'_>>, depth: Option<usize>) -> Vec<String> {
    let depth = depth.unwrap_or_default();
    rest.drain(..).map(|property| format!("{:depth$}# {}: {}", "", key(&property.name), about(&property))).collect()
}

fn about(property: &PropertyReference<'_>) -> String {
    let kind: Vec<&str> = std::iter::once(&property.kind).chain(&property.marks).map(String::as_str).collect();
    line(&format!("{} ({})", sentence(property.description), kind.join(", ")))
}

/// The first sentence of a description, without what ends it.
fn sentence(description: &str) -> String {
    line(description.split(". ").next().unwrap_or_default().trim_end_matches('.'))
}

/// A text on one line, without what a comment cannot hold.
fn line(text: &str) -> String {
    let words: Vec<&str> = text.split(|letter: char| letter.is_whitespace() || letter.is_control()).collect();
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// An instance that states what its schema requires.
fn made_up(reference: &Reference<'_>) -> String {
    let type_name = &reference.manifest.type_name;
    let required = reference.schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str);
    let stated = |name: &str| {
        let value = Value::from(sample(&reference.schema["properties"][name]));
        format!("    {}: {} # fill in", key(name), literal(value))
    };
    let stated: Vec<String> = required.map(stated).collect();
    let properties = if stated.is_empty() { "  properties: {}" } else { "  properties:" };
    let head = [format!("- name: {}", type_name.short().to_lowercase()), format!("  type: {type_name}")];
    [&head[..], &[properties.to_owned()], &stated].concat().join("\n")
}

/// A value that a schema may allow.
fn sample(schema: &Json) -> Json {
    let listed = ["default", "const"].iter().find_map(|word| schema.get(*word));
    let first = ["enum", "examples"].iter().find_map(|word| schema.get(*word)?.get(0));
    if let Some(value) = listed.or(first) {
        return value.clone();
    }
    match schema.get("type").and_then(|kind| kind.as_str().or_else(|| kind.get(0)?.as_str())) {
        Some("boolean") => json!(true),
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or_else(|| json!(1)),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => json!("example"),
    }
}

/// A resource to start from.
struct Template {
    type_name: &'static str,
    /// How the manifest names the program, and how it names that of the new resource, where `NAME` is its name.
    program: (&'static str, &'static str),
    manifest: &'static str,
    source: &'static str,
    ending: &'static str,
    /// Files besides: name, text and mode. `NAME` in a name is that of the resource.
    more: &'static [(&'static str, &'static str, u32)],
}

/// The files that a resource in Python has besides: the library and its tests.
const OF_PYTHON: &[(&str, &str, u32)] = &[
    ("stead_resource.py", include_str!("../../../../examples/resources/python/stead_resource.py"), 0o644),
    ("test_NAME.py", include_str!("../../../../examples/resources/python/test_note.py"), 0o755),
];

/// The template that an example of the guide for authors is.
macro_rules! template {
    ($type_name:literal, $example:literal, $ending:literal, $program:literal => $of_new:literal, $more:expr) => {
        Template {
            type_name: $type_name,
            program: ($program, $of_new),
            manifest: include_str!(concat!("../../../../examples/resources/", $example, ".dsc.resource.json")),
            source: include_str!(concat!("../../../../examples/resources/", $example, ".", $ending)),
            ending: $ending,
            more: $more,
        }
    };
}

impl Template {
    fn of(language: Language) -> Self {
        match language {
            Language::Sh => template!("Example.Shell/Flag", "shell/flag", "sh", "./flag.sh" => "./NAME.sh", &[]),
            Language::Python => {
                template!("Example.Python/Note", "python/note", "py", "./note.py" => "./NAME.py", OF_PYTHON)
            }
            Language::Rust => {
                template!("Example.Rust/Mode", "rust/mode", "rs", "\"mode\"," => "\"target/release/resource-NAME\",", &[])
            }
        }
    }

    /// The files of a new resource, with their modes.
    fn files(&self, type_name: &TypeName, name: &str) -> Vec<(String, String, u32)> {
        let manifest = self.manifest.replace(self.type_name, type_name.as_str());
        let manifest = manifest.replace(self.program.0, &self.program.1.replace("NAME", name));
        let mode = if self.ending == "rs" { 0o644 } else { 0o755 };
        let mut files = vec![
            (format!("{name}.dsc.resource.json"), manifest, 0o644),
            (format!("{name}.{}", self.ending), self.source.to_owned(), mode),
        ];
        files.extend(self.more.iter().map(|(file, text, mode)| {
            (file.replace("NAME", name), text.replace("note.py", &format!("{name}.py")), *mode)
        }));
        if self.ending == "rs" {
            files.push(("Cargo.toml".to_owned(), CARGO.replace("NAME", name), 0o644));
        }
        files
    }
}

const CARGO: &str = "\
[package]
name = \"resource-NAME\"
version = \"1.0.0\"
edition = \"2024\"

[[bin]]
name = \"resource-NAME\"
path = \"NAME.rs\"

[dependencies]
serde_json = \"1\"

[workspace]
";

fn resource(request: &NewResourceRequest) -> Result<(), Exit> {
    let type_name = TypeName::parse(&request.name)
        .map_err(|error| refused(&error.to_string(), "write OWNER/NAME, such as Example.Notes/Note"))?;
    if builtins().iter().any(|built_in| built_in.manifest.type_name == type_name) {
        return Err(refused(&format!("'{type_name}' is a built-in resource"), "choose another name"));
    }
    let name = type_name.short().to_lowercase();
    let folder = request.folder.clone().unwrap_or_else(|| PathBuf::from(&name));
    created(&folder, files::create_directory(&folder))?;
    let mut made = vec![folder.clone()];
    for (file, text, mode) in Template::of(request.language).files(&type_name, &name) {
        let file = folder.join(file);
        // Half a resource is none.
        create(&file, &text, mode).inspect_err(|_| files::discard(&made))?;
        made.push(file);
    }
    for file in &made[1..] {
        print(&format!("created {}\n", file.display()));
    }
    let absolute = std::path::absolute(&folder).unwrap_or_else(|_| folder.clone());
    if request.language == Language::Rust {
        print(&format!("next: cargo build --release --manifest-path {}\n", shown(&folder.join("Cargo.toml"))));
    }
    let state = r#"{"path": "/tmp/example"}"#;
    print(&format!("next: DSC_RESOURCE_PATH={} stead resource check {type_name} -i '{state}'\n", shown(&absolute)));
    Ok(())
}
