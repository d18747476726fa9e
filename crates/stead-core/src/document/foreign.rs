//! Words of other tools, and what they are in a document.

use crate::diag::Diagnostic;

/// Words that users of Ansible, Salt, Puppet, Chef, Terraform or PowerShell write as keys.
#[derive(Clone, Copy, Debug)]
pub struct ForeignWords {
    /// The words, in small letters, without '_', '-' and spaces.
    pub words: &'static [&'static str],
    /// The key or the form that they are in a document.
    pub meaning: Meaning,
}

/// A key of documents, or a form with which a document says the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Meaning {
    /// This key, with the same value.
    Key(&'static str),
    /// Keys with values of their own, each in YAML, and where they are written.
    Form(&'static [&'static str], &'static str),
}

/// The place of a form that is written at the instance itself.
const HERE: &str = "";
/// The place of a form that is written at another instance.
const AT_THE_OTHER: &str = " at the instance that is to run after this one has changed";

use Meaning::{Form, Key};

const fn row(words: &'static [&'static str], meaning: Meaning) -> ForeignWords {
    ForeignWords { words, meaning }
}

/// Words at an instance.
pub const AT_INSTANCES: &[ForeignWords] = &[
    row(&["id", "title"], Key("name")),
    row(&["resource", "resourcetype"], Key("type")),
    row(&["settings", "props", "params", "args", "arguments", "attributes", "config", "spec"], Key("properties")),
    row(&["require", "requires", "depends", "dependson", "dependencies", "needs", "after"], Key("dependsOn")),
    row(
        &["when", "if", "onlyif", "unless", "enabled", "notif"],
        Form(&["condition: \"[equals(facts('os.family'), 'Debian')]\""], HERE),
    ),
    row(
        &["notify", "notifies", "onchange", "watchin", "onchangesin", "listenin"],
        Form(&["directives: {onChanges: [\"[resourceId('Stead/File', 'other')]\"]}"], AT_THE_OTHER),
    ),
    row(
        &["subscribe", "subscribes", "listen", "watch", "onchanges", "trigger", "triggers", "handlers", "handler"],
        Form(&["directives: {onChanges: [\"[resourceId('Stead/File', 'other')]\"]}"], HERE),
    ),
    row(
        &["onfail", "onfailure", "rescue"],
        Form(&["directives: {onFailure: [\"[resourceId('Stead/File', 'other')]\"]}"], HERE),
    ),
    row(
        &["before", "prereq", "requirein"],
        Form(&["directives: {before: [\"[resourceId('Stead/File', 'other')]\"]}"], HERE),
    ),
    row(
        &["requireany", "dependsonany"],
        Form(&["directives: {requireAny: [\"[resourceId('Stead/File', 'other')]\"]}"], HERE),
    ),
    row(
        &["loop", "foreach", "withitems", "withdict", "repeat", "each", "count", "names"],
        Form(&["copy: {name: each, count: 2}", "name: \"[format('item-{0}', copyIndex())]\""], HERE),
    ),
    row(&["tags", "tag", "labels"], Form(&["metadata: {tags: [web]}"], HERE)),
    row(&["description", "comment", "annotations"], Form(&["metadata: {description: text}"], HERE)),
    row(
        &["become", "becomeuser", "sudo", "runas", "psdscrunascredential"],
        Form(&["directives: {securityContext: elevated}"], HERE),
    ),
    row(
        &["ensure", "state", "exists", "present", "absent"],
        Form(&["properties: {path: example, _exist: false}"], HERE),
    ),
    row(&["retries", "retry", "until", "delay"], Form(&["directives: {reconcileWait: 5}"], HERE)),
    row(&["noop", "checkmode", "audit"], Form(&["directives: {configurationMode: MonitorOnly}"], HERE)),
    row(&["version"], Form(&["requireVersion: '>=1.0.0'"], HERE)),
    row(&["securitycontext"], Form(&["directives: {securityContext: elevated}"], HERE)),
    row(&["configurationmode"], Form(&["directives: {configurationMode: ApplyOnly}"], HERE)),
    row(&["exclusive"], Form(&["directives: {exclusive: true}"], HERE)),
    row(&["reconcilewait"], Form(&["directives: {reconcileWait: 5}"], HERE)),
];

/// Words of a document.
pub const AT_DOCUMENTS: &[ForeignWords] = &[
    row(&["vars", "locals", "values"], Key("variables")),
    row(&["params", "inputs"], Key("parameters")),
    row(
        &["tasks", "states", "steps", "instances", "configuration", "packages", "services", "files"],
        Form(&["resources: [{name: example, type: Stead/File, properties: {path: example}}]"], HERE),
    ),
    row(
        &["include", "includes", "import", "imports", "roles", "modules"],
        Form(
            &["resources: [{name: more, type: Microsoft.DSC/Include, properties: {configurationFile: more.yaml}}]"],
            HERE,
        ),
    ),
    row(&["name", "title", "description"], Form(&["metadata: {name: web}"], HERE)),
];

/// Returns what a word of another tool is in a document.
pub(super) fn meaning(table: &[ForeignWords], word: &str) -> Option<Meaning> {
    let plain: String = word.chars().filter(|c| !"_- ".contains(*c)).flat_map(char::to_lowercase).collect();
    table.iter().find(|row| row.words.contains(&&*plain)).map(|row| row.meaning)
}

impl Meaning {
    /// The finding about the word with what to write in its place.
    pub(super) fn explain(self, finding: Diagnostic, word: &str, written: Option<&str>) -> Diagnostic {
        match self {
            Key(key) => finding.with_meant(word, key, written),
            Form(forms, place) => {
                let forms: Vec<String> = forms.iter().map(|form| format!("`{form}`")).collect();
                finding.with_help(format!("write {}{place}", forms.join(" and ")))
            }
        }
    }
}
