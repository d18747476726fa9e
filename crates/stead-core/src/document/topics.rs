//! The keys and directives of documents and the words of their field, explained.

mod words;

use words::WORDS;

/// A key, a directive or a word, and what it means.
#[derive(Clone, Copy, Debug)]
pub struct Topic {
    /// Its name, as it is written.
    pub name: &'static str,
    /// Other words for it.
    pub also: &'static [&'static str],
    /// Where it belongs.
    pub part: Part,
    /// Its meaning, in Markdown.
    pub text: &'static str,
    /// How it is written, in YAML; empty for a word that is not written.
    pub form: &'static str,
}

/// The part of the reference that a topic belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// A key of a document.
    Document,
    /// A key of the metadata that means something.
    Metadata,
    /// A key of a parameter.
    Parameter,
    /// A key of functions.
    Function,
    /// A key of an output.
    Output,
    /// A key of an instance.
    Instance,
    /// A key of a loop.
    Loop,
    /// A directive of an instance.
    Directive,
    /// A directive of a document.
    DocumentDirective,
    /// A word.
    Word,
}

impl Part {
    /// All of them with their titles, in the order of the reference.
    pub const ALL: [(Self, &'static str); 10] = [
        (Self::Document, "Keys of a document"),
        (Self::Metadata, "Keys of metadata"),
        (Self::Parameter, "Keys of a parameter"),
        (Self::Function, "Keys of functions"),
        (Self::Output, "Keys of an output"),
        (Self::Instance, "Keys of an instance"),
        (Self::Loop, "Keys of a loop"),
        (Self::Directive, "Directives of an instance"),
        (Self::DocumentDirective, "Directives of a document"),
        (Self::Word, "Words"),
    ];

    /// Its title.
    pub fn title(self) -> &'static str {
        Self::ALL.iter().find(|(each, _)| *each == self).map_or("", |(_, title)| title)
    }
}

/// The topic of a name, whatever its case.
pub fn topic(name: &str) -> Option<&'static Topic> {
    let is_name = |topic: &&Topic| topic.names().any(|each| each.eq_ignore_ascii_case(name));
    TOPICS.iter().find(is_name)
}

impl Topic {
    /// Its name, and the other words for it.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.also.iter().copied())
    }
}

const fn key(part: Part, name: &'static str, text: &'static str, form: &'static str) -> Topic {
    Topic { name, also: &[], part, text, form }
}

const fn with_names(
    part: Part,
    (name, also): (&'static str, &'static [&'static str]),
    text: &'static str,
    form: &'static str,
) -> Topic {
    Topic { name, also, part, text, form }
}

use Part::{Directive, Document, DocumentDirective, Instance, Parameter};

/// All topics, part by part.
pub const TOPICS: &[Topic] = &ALL;

const ALL: [Topic; KEYS.len() + WORDS.len()] = {
    let (mut all, mut at) = ([KEYS[0]; KEYS.len() + WORDS.len()], 0);
    while at < all.len() {
        all[at] = if at < KEYS.len() { KEYS[at] } else { WORDS[at - KEYS.len()] };
        at += 1;
    }
    all
};

/// The keys and directives.
const KEYS: &[Topic] = &[
    key(
        Document,
        "resources",
        "The instances, a list. The order of the list is not the order of the run.",
        "\
resources:
- name: greeting
  type: Stead/File
  properties: {path: greeting.txt, content: Hello}",
    ),
    key(
        Document,
        "parameters",
        "Values that a caller supplies, by name: with `--set`, `--parameters-file` or `STEAD_PARAM_NAME`. \
Expressions read them with `parameters('NAME')`.",
        "\
parameters:
  port: {type: int, defaultValue: 80}",
    ),
    key(
        Document,
        "variables",
        "Values that are computed once, by name. Expressions read them with `variables('NAME')`.",
        "\
variables:
  url: \"[format('http://localhost:{0}/', 80)]\"",
    ),
    key(
        Document,
        "functions",
        "Functions of the document itself, in namespaces. Expressions call them as `NAMESPACE.NAME()`.",
        "\
functions:
- namespace: site
  members:
    url:
      parameters: [{name: port, type: int}]
      output: {type: string, value: \"[format('http://localhost:{0}/', parameters('port'))]\"}",
    ),
    key(
        Document,
        "outputs",
        "Values that a run reports at its end, by name. They may refer to instances.",
        "\
outputs:
  family: {type: string, value: \"[facts('os.family')]\"}",
    ),
    key(
        Document,
        "metadata",
        "Notes, which are never computed. `name` of a document tells it from others between runs; `tags` of an \
instance select it with `--only` and `--skip`.",
        "\
metadata: {name: web}
resources:
- {name: a, type: Stead/File, metadata: {tags: [config]}, properties: {path: a}}",
    ),
    key(
        Document,
        "directives",
        "How stead runs the document or an instance.",
        "\
directives: {implicitOrder: false}",
    ),
    key(
        Document,
        "executionInformation",
        "Information about the run that produced this document. Ignored by stead.",
        "executionInformation: {}",
    ),
    key(Document, "contentVersion", "The version of the document, for its readers.", "contentVersion: 1.0.0"),
    key(
        Document,
        "$schema",
        "The JSON Schema of documents, for editors.",
        "\
$schema: https://aka.ms/dsc/schemas/v3/bundled/config/document.json",
    ),
    key(
        Parameter,
        "defaultValue",
        "The value where none is supplied. A parameter without it needs one.",
        "\
parameters: {port: {type: int, defaultValue: 80}}",
    ),
    key(
        Parameter,
        "allowedValues",
        "The only values that are accepted.",
        "\
parameters: {color: {type: string, defaultValue: red, allowedValues: [red, green]}}",
    ),
    with_names(
        Parameter,
        ("minValue", &["maxValue"]),
        "The least integer that is accepted; `maxValue` is the largest.",
        "\
parameters: {port: {type: int, defaultValue: 80, minValue: 1, maxValue: 65535}}",
    ),
    with_names(
        Parameter,
        ("minLength", &["maxLength"]),
        "The least length of a string or an array; `maxLength` is the largest.",
        "\
parameters: {title: {type: string, defaultValue: web, minLength: 1, maxLength: 20}}",
    ),
    with_names(
        Parameter,
        ("secureString", &["secureObject"]),
        "A type of parameters: a string that is sealed and never shown. `secureObject` is an object of that \
kind. Supply both in a parameters file.",
        "\
parameters: {password: {type: secureString}}",
    ),
    key(
        Parameter,
        "description",
        "The purpose of the parameter, for those who supply it.",
        "\
parameters: {port: {type: int, defaultValue: 80, description: The port of the site}}",
    ),
    key(
        Instance,
        "type",
        "The resource that it is an instance of: `Owner/Name`. `stead resource list` lists them.",
        "\
resources:
- {name: a, type: Stead/File, properties: {path: a}}",
    ),
    key(
        Instance,
        "name",
        "A name of your choice. Instances of one type have different names.",
        "\
resources:
- {name: greeting, type: Stead/File, properties: {path: greeting.txt}}",
    ),
    key(
        Instance,
        "properties",
        "The desired state. Only what is stated is managed; `stead explain TYPE` lists what can be.",
        "\
resources:
- {name: a, type: Stead/File, properties: {path: a, mode: \"0640\"}}",
    ),
    key(
        Instance,
        "dependsOn",
        "The instances that must have succeeded before this one begins, each as `[resourceId('TYPE', 'NAME')]`. If \
one of them fails, this one is skipped.",
        "\
resources:
- {name: a, type: Stead/File, properties: {path: a}}
- name: b
  type: Stead/File
  dependsOn: [\"[resourceId('Stead/File', 'a')]\"]
  properties: {path: b}",
    ),
    key(
        Instance,
        "condition",
        "An expression for true or false. If it is false, the instance is left out.",
        "\
resources:
- name: a
  type: Stead/File
  condition: \"[equals(facts('os.family'), 'Debian')]\"
  properties: {path: a}",
    ),
    key(
        Instance,
        "copy",
        "A loop: the instance stands for one of each element of the list `each`, or of each member of an object, which has \
`key` and `value`. Expressions call the item by the word in `as`, as a function, and the instances are named after their items: by a text \
or number itself, an object's `name` or `key`, else the index. A `name` of the instance comes before that. With `count` in place of `each` \
there are so many instances, numbered by `copyIndex()`, which makes their names differ. A list of loops is loops within each other, and \
`dependsOn: [NAME]` waits for the whole loop.",
        "\
resources:
- type: Stead/File
  copy: {name: pages, each: [index, about], as: page}
  properties: {path: \"[concat(page(), '.html')]\", content: x}
- name: \"[format('file-{0}', copyIndex())]\"
  type: Stead/File
  copy: {name: files, count: 2}
  properties: {path: \"[format('file-{0}', copyIndex())]\", content: x}
  dependsOn: [pages]",
    ),
    with_names(
        Instance,
        ("requireVersion", &["apiVersion"]),
        "A requirement for the version of the resource, such as `>=1.0.0`. `apiVersion` is another name of it.",
        "\
resources:
- {name: a, type: Stead/File, requireVersion: '>=1.0.0', properties: {path: a}}",
    ),
    key(
        Instance,
        "_exist",
        "A property of many resources: whether the thing exists. `false` removes it.",
        "\
resources:
- {name: a, type: Stead/File, properties: {path: a, _exist: false}}",
    ),
    key(
        Directive,
        "onChanges",
        "The instance is carried out only if one of these has changed: a handler. A run that ends before it is \
done owes it, and the next run does it.",
        "\
resources:
- {name: conf, type: Stead/File, properties: {path: conf, content: x}}
- name: reload
  type: Stead/Command
  directives: {onChanges: [\"[resourceId('Stead/File', 'conf')]\"]}
  properties: {set: echo reloaded}",
    ),
    key(
        Directive,
        "onFailure",
        "The instance is carried out only if one of these has failed.",
        "\
resources:
- {name: conf, type: Stead/File, properties: {path: conf, content: x}}
- name: alarm
  type: Stead/Command
  directives: {onFailure: [\"[resourceId('Stead/File', 'conf')]\"]}
  properties: {set: echo failed}",
    ),
    key(
        Directive,
        "requireAny",
        "The instance begins as soon as one of these has succeeded, and is skipped if none can.",
        "\
resources:
- {name: a, type: Stead/File, properties: {path: a}}
- name: b
  type: Stead/File
  directives: {requireAny: [\"[resourceId('Stead/File', 'a')]\"]}
  properties: {path: b}",
    ),
    key(
        Directive,
        "before",
        "These begin after the instance, whatever becomes of it.",
        "\
resources:
- name: a
  type: Stead/File
  directives: {before: [\"[resourceId('Stead/File', 'b')]\"]}
  properties: {path: a}
- {name: b, type: Stead/File, properties: {path: b}}",
    ),
    key(
        Directive,
        "exclusive",
        "`true`: no other instance is carried out meanwhile. A list of names: none that states one of them as \
well.",
        "\
resources:
- {name: a, type: Stead/File, directives: {exclusive: [database]}, properties: {path: a}}",
    ),
    key(
        Directive,
        "reconcileWait",
        "How long stead waits before it runs the instance again, in seconds.",
        "\
resources:
- {name: a, type: Stead/File, directives: {reconcileWait: 5}, properties: {path: a}}",
    ),
    key(
        Directive,
        "reconcilePending",
        "The rule that says whether the instance is pending: `default`, or the name of a program.",
        "\
resources:
- {name: a, type: Stead/File, directives: {reconcilePending: default}, properties: {path: a}}",
    ),
    key(
        Directive,
        "exportFilter",
        "Which instances an export keeps: those that fit one of these objects in all its members.",
        "\
resources:
- {name: a, type: Microsoft/OSInfo, directives: {exportFilter: [{family: Linux}]}}",
    ),
    key(Directive, "requireAdapter", "The adapter that is to carry out the instance, where there are several.", ""),
    key(
        Directive,
        "securityContext",
        "The rights that are required: `current`, `elevated` or `restricted`. The document, or the instance, is \
refused without them.",
        "\
directives: {securityContext: current}",
    ),
    key(
        Directive,
        "configurationMode",
        "What the agent does about drift, of the document or of one instance: `ApplyOnly`, \
`ApplyAndMonitor`, `ApplyAndAutoCorrect` or `MonitorOnly`.",
        "\
directives: {configurationMode: ApplyAndMonitor}",
    ),
    key(
        DocumentDirective,
        "implicitOrder",
        "`false` turns off the order that stead derives from paths, accounts and packages.",
        "directives: {implicitOrder: false}",
    ),
    key(
        DocumentDirective,
        "removed",
        "The treatment of things that earlier runs of the document created and that it no longer has: `report` names \
them, `remove` removes them, `keep` leaves them alone and says nothing.",
        "directives: {removed: remove}",
    ),
    key(
        DocumentDirective,
        "secretsFrom",
        "Where `secret()` is resolved with `--host` and `--hosts`: where the command is called, or on each machine.",
        "directives: {secretsFrom: machine}",
    ),
    key(
        DocumentDirective,
        "resourceDiscovery",
        "When resources are looked for: `preDeployment`, before anything runs, or \
`duringDeployment`, so that a document can install a resource and use it.",
        "directives: {resourceDiscovery: duringDeployment}",
    ),
    key(
        DocumentDirective,
        "environment",
        "The variables of the environment that programs of resources are given as well; `*` at the end is \
for several.",
        "directives: {environment: [JAVA_HOME]}",
    ),
    key(
        DocumentDirective,
        "files",
        "The files that go into the bundle of the document although no property names them, as patterns.",
        "directives: {files: ['templates/*']}",
    ),
    key(
        DocumentDirective,
        "reconcile",
        "Whether and when what did not reach its desired state is run again.",
        "directives: {reconcile: {reconciler: basic, maxPendingReruns: 20, wait: 5}}",
    ),
    key(DocumentDirective, "version", "A requirement for the version of DSC.", "directives: {version: '>=3.0.0'}"),
];

#[cfg(test)]
mod tests {
    use super::super::parts::PARAMETER_KEYS;
    use super::super::read::{DIRECTIVES, DOCUMENT_KEYS, INSTANCE_KEYS, instance_directive_names};
    use super::topic;

    #[test]
    fn every_key_and_directive_is_explained() {
        let known = [DOCUMENT_KEYS, PARAMETER_KEYS, INSTANCE_KEYS, DIRECTIVES].concat();
        let types = ["secureString", "secureObject"];
        for name in known.into_iter().chain(instance_directive_names()).chain(types) {
            assert!(topic(name).is_some(), "{name}");
        }
    }
}
