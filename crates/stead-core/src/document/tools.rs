//! Texts in the languages of other tools, given in place of a document.

use std::sync::LazyLock;

use regex::Regex;

use super::fields::names_type;
use crate::diag::Diagnostic;
use crate::diag::secret_forms::pattern;
use crate::text::{self, Entry, Kind, Node, SourceId, Span};

/// The language of another tool.
struct Language {
    /// The name of a text in it.
    name: &'static str,
    /// A line that only this language has.
    line: Regex,
    /// The advice to its author.
    help: &'static str,
}

/// Only so much of a text is looked at, in bytes.
const REACH: usize = 16 << 10;

static LANGUAGES: LazyLock<[Language; 9]> = LazyLock::new(|| {
    let language = |name, line, help| Language { name, line: pattern(line), help };
    [
        language(
            "a Puppet manifest",
            r#"(?m)^[ \t]*(?:(?:class|define|node)[ \t]+['"]?[A-Za-z][\w:.-]*['"]?[^\n]*\{|[a-z][a-z0-9_:]*[ \t]*\{[ \t]*(?:'[^'\n]*'|"[^"\n]*"|\$\w+|[a-z][\w-]*|\[[^\]\n]*\])[ \t]*:[ \t]*(?:\r?$|[a-z_]+[ \t]*=>)|include[ \t]+[a-z][a-z0-9_]*(?:::[a-z0-9_]+)*[ \t]*\r?$)"#,
            "nothing converts it: write each of its resources as an instance below 'resources:'; `stead new document` writes an example, \
             and the guide 'From Puppet' has both languages side by side",
        ),
        language(
            "a Terraform configuration",
            r#"(?m)^[ \t]*(?:(?:resource|data)[ \t]+"[^"\n]*"[ \t]+"[^"\n]*"|(?:variable|provider|module|output)[ \t]+"[^"\n]*"|(?:terraform|locals))[ \t]*\{"#,
            "nothing converts it: Terraform creates machines, and a document says what is in one; `stead new document` writes an \
             example, and the guide 'From Terraform' has both languages side by side",
        ),
        language(
            "a Chef recipe",
            r#"(?m)^[ \t]*[a-z][a-z0-9_]*[ \t]+(?:'[^'\n]*'|"[^"\n]*")[ \t]+do\b"#,
            "nothing converts it: write each of its resources as an instance below 'resources:'; `stead new document` writes an example",
        ),
        language(
            "a configuration of PowerShell",
            r"(?mi)^[ \t]*(?:configuration[ \t]+[a-z_][\w-]*[ \t]*(?:\{[^\n]*)?\r?$|import-dscresource\b)",
            "write each of its resources as an instance below 'resources:'; where it is a composite resource of a module, its type is \
             'MODULE/NAME'. The guide 'From DSC' has both side by side",
        ),
        language(
            "a MOF file",
            r"(?mi)^[ \t]*instance[ \t]+of[ \t]+\w+",
            "write what it was compiled from as a document: each 'instance of' is an instance below 'resources:'. The guide 'From DSC' has \
             both side by side",
        ),
        language(
            "a CFEngine policy",
            r"(?m)^[ \t]*(?:bundle[ \t]+(?:agent|common|server|edit_line)|body[ \t]+\w+[ \t]+control)\b",
            "nothing converts it: write each of its promises as an instance below 'resources:'; `stead new document` writes an example",
        ),
        language(
            "an Ansible inventory",
            r"(?m)^\[[A-Za-z0-9_.-]+\][ \t]*\r?\n(?:[ \t]*\r?\n)*[A-Za-z0-9][^\s=]*(?:[ \t]+[A-Za-z_]\w*=[^\n]*|[ \t]*)\r?$|^\[[A-Za-z0-9_.-]+:(?:vars|children)\][ \t]*\r?$",
            "the option '--hosts' of plan, apply and check takes it, beside a document",
        ),
        language(
            "a file that ansible-vault encrypted",
            r"\A\s*\$ANSIBLE_VAULT;[^\n]*",
            "it is not decrypted here: `ansible-vault view FILE | stead plan -` reads what is in it; a document that takes its secrets from \
             parameters of the type 'secureString' needs no encryption",
        ),
        language(
            "a script",
            r"\A#![^\n]*",
            "a document says what is to be there, and `Stead/Command` runs a script where that is wanted; `stead new document` writes an example",
        ),
    ]
});

/// Returns the finding about a text in another language, in place of those that come of reading it as YAML.
///
/// Guarantees: `None` for a text with the key `resources` at its top, whether it can be read or not.
pub(super) fn of_another(source: SourceId, text: &str, tree: Option<&Node>) -> Option<Diagnostic> {
    if let Some(Node { kind: Kind::Object(entries), .. }) = tree {
        return of_mapping(entries);
    }
    // A document with a fault has no tree, and its texts may be in any language.
    let is_document = |line: &str| {
        line.starts_with("resources:") || line.trim_start_matches([' ', '\t', '{']).starts_with("\"resources\"")
    };
    if text.lines().any(is_document) {
        return None;
    }
    let text = text.get(..text.floor_char_boundary(REACH))?;
    let (language, found) = LANGUAGES.iter().find_map(|each| Some((each, each.line.find(text)?)))?;
    let line = found.as_str();
    let start = found.start() + (line.len() - line.trim_start().len());
    let end = start + line.trim_start().lines().next().unwrap_or_default().trim_end().len();
    let at = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    let span = Span { source, start: at(start), end: at(end) };
    let message = format!("this is {}, not a document", language.name);
    Some(Diagnostic::error(&text::codes::SYNTAX, span, message).with_help(language.help))
}

/// The finding about an object that stead reads, and which is not a document.
fn of_own_file(entries: &[Entry]) -> Option<Diagnostic> {
    let get = |key: &str| entries.iter().find(|entry| &*entry.key == key);
    if get("resources").is_some() {
        return None;
    }
    let is_manifest = || get("version").is_some() && OPERATIONS.iter().any(|key| get(key).is_some());
    let (name, help, entry) = match (get("tests"), get("machines"), get("type").filter(|_| is_manifest())) {
        (Some(tests), ..) => ("a file of tests", "`stead test FILE` runs them", tests),
        (_, Some(machines), _) => {
            ("an inventory", "the option '--hosts' of plan, apply and check takes it, beside a document", machines)
        }
        (.., Some(kind)) => (
            "the manifest of a resource",
            "`stead resource check` looks at the resource; an instance of it has this 'type' in a document",
            kind,
        ),
        _ => return None,
    };
    let finding = Diagnostic::error(&text::codes::SYNTAX, entry.key_span, format!("this is {name}, not a document"));
    Some(finding.with_help(help))
}

/// The keys of a manifest for what its resource can do.
const OPERATIONS: [&str; 5] = ["get", "set", "test", "export", "schema"];

/// The finding about an object that is what another tool reads.
fn of_mapping(entries: &[Entry]) -> Option<Diagnostic> {
    const EXAMPLE: &str = "`stead new document` writes a document to start from";
    let get = |key: &str| entries.iter().find(|entry| &*entry.key == key);
    if let Some(finding) = of_own_file(entries) {
        return Some(finding);
    }
    if get("resources").is_some() || get("parameters").is_some() || get("properties").is_some() {
        return None;
    }
    let is_service = |entry: &Entry| entry.value.get("image").is_some() || entry.value.get("build").is_some();
    let services = || get("services")?.value.entries().filter(|services| services.iter().any(is_service));
    let (name, help, entry) = if let Some(salt) = entries.iter().find(|entry| is_state(entry)) {
        ("a state file of Salt or Idem", "`stead sls FILE` converts it to a document", salt)
    } else if let (Some(version), Some(_)) = (get("apiVersion"), get("kind")) {
        ("a Kubernetes manifest", EXAMPLE, version)
    } else if services().is_some() {
        ("a Docker Compose file", EXAMPLE, get("services")?)
    } else if let (Some(jobs), Some(_)) = (get("jobs"), get("on").or_else(|| get("stages"))) {
        (
            "a workflow of a CI system",
            "`stead new document` writes a document to start from; a workflow runs `stead apply FILE`",
            jobs,
        )
    } else if let Some(first) = get("runcmd").or_else(|| get("write_files")).or_else(|| get("bootcmd")) {
        ("a cloud-init configuration", EXAMPLE, first)
    } else if let Some(version) = get("AWSTemplateFormatVersion") {
        ("a CloudFormation template", EXAMPLE, version)
    } else {
        return None;
    };
    let finding = Diagnostic::error(&text::codes::SYNTAX, entry.key_span, format!("this is {name}, not a document"));
    Some(finding.with_help(help))
}

/// Returns whether a member is a state such as `nginx: {pkg.installed: []}`.
fn is_state(entry: &Entry) -> bool {
    let is_function = |key: &str| {
        let is_word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        key.split_once('.').is_some_and(|(module, function)| is_word(module) && function.split('.').all(is_word))
    };
    let states = entry.value.entries().unwrap_or_default();
    states.iter().any(|state| is_function(&state.key) && matches!(state.value.kind, Kind::Array(_) | Kind::Null))
}

/// Returns what to do about a list in place of a document, by its first element.
pub(super) fn help_for_list(first: &Node) -> Option<&'static str> {
    let has = |keys: &[&str]| keys.iter().any(|key| first.get(key).is_some());
    let is_task = || {
        let keys = first.entries().unwrap_or_default().iter().map(|entry| &*entry.key);
        keys.into_iter()
            .any(|key| names_type(key) || ["block", "include_tasks", "import_tasks", "when", "become"].contains(&key))
    };
    if has(&["type"]) {
        Some("write 'resources:' in the line above the list")
    } else if !has(&["hosts", "tasks", "roles", "import_playbook"]) && is_task() {
        Some(
            "this is a list of tasks: write each as an instance below 'resources:', with `type:` in place of the module and its \
             properties below `properties:`; `stead new document` writes an example",
        )
    } else if has(&["hosts", "tasks", "roles", "import_playbook"]) {
        Some(
            "this is an Ansible playbook: write each task as an instance below 'resources:'; `stead new document` writes an example",
        )
    } else {
        None
    }
}

/// Returns whether a value below a key that nothing reads is what belongs below `resources`.
pub(super) fn is_list_of_instances(value: &Node) -> bool {
    value.items().is_some_and(|items| items.iter().any(|item| item.get("type").is_some()))
}

/// Returns whether an instance names what it is an instance of where its type is not looked for.
pub(super) fn is_typed_elsewhere(entries: &[Entry]) -> bool {
    entries.iter().any(|entry| {
        names_type(&entry.key)
            || (&*entry.key == "copy" && (entry.value.get("dest").is_some() || entry.value.get("src").is_some()))
    })
}
