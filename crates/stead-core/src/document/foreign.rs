//! Words of other tools, and what they are in a document.

use crate::diag::{Diagnostic, Meant};
use crate::expr::condition_of_others;
use crate::text::{Kind, Never, Node};

/// Words that users of Ansible, Salt, Puppet, Chef, Terraform or PowerShell write as keys.
#[derive(Clone, Copy, Debug)]
pub struct ForeignWords {
    /// The words, in small letters, without '_', '-' and spaces.
    pub words: &'static [&'static str],
    /// The values and types with which they mean this.
    pub when: When,
    /// The key or the form that they are in a document.
    pub meaning: Meaning,
}

/// The values and types with which a word has a meaning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// Wherever no row before it holds.
    Otherwise,
    /// With one of these values, in small letters.
    Value(&'static [&'static str]),
    /// At an instance of this type.
    Type(&'static str),
    /// With an object.
    Object,
}

/// A key of documents, or a form with which a document says the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Meaning {
    /// This key, with the same value.
    Key(&'static str),
    /// This directive, with the same value.
    Directive(&'static str),
    /// This property, with the same value.
    Property(&'static str),
    /// This in the properties, in YAML, and a note about it.
    Inside(&'static str, &'static str),
    /// Keys with these values, each in YAML, and where they are written.
    Form(&'static [&'static str], &'static str),
    /// Keys with values of the user's own, each in YAML with an example, and where they are written.
    Example(&'static [&'static str], &'static str),
    /// Nothing of its own: in words, what to do.
    Advice(&'static str),
}

/// The place of a form that is written at the instance itself.
const HERE: &str = "";
/// The place of a form that is written at another instance.
const AT_A_HANDLER: &str = " at an instance that is to run only after this one has changed; a service that is always looked at \
                            states the files that it reads in its property 'restartedAfter'";
/// The place of a form that is written at this instance, if that is a handler.
const ONLY_THEN: &str = " at an instance that is to run only after a change, such as a command: it is left alone otherwise. One \
                         that is always looked at has `dependsOn`";
const A_RESOURCE: &str = " for a version of the resource; that of software is a property";
const WAITS: &str =
    ": `apply --reconcile basic` runs what is pending again, and waits so many seconds before this instance";
const TO_THE_AGENT: &str = ", and the agent only watches it; a run that is to leave it out has `--skip`";
const SERVICE: &str = "Stead/Service";
const PACKAGE: &str = "Stead/Package";
const COMMAND: &str = "Stead/Command";
const YES: When = When::Value(&["true", "yes", "on", "present"]);
const NO: When = When::Value(&["false", "no", "off", "absent"]);

use Meaning::{Advice, Directive, Example, Form, Inside, Key, Property};
use When::{Object, Otherwise, Type, Value};

const fn row(words: &'static [&'static str], meaning: Meaning) -> ForeignWords {
    where_it(words, Otherwise, meaning)
}

const fn where_it(words: &'static [&'static str], when: When, meaning: Meaning) -> ForeignWords {
    ForeignWords { words, when, meaning }
}

/// Words for a condition.
const CONDITIONS: &[&str] = &["when", "if", "onlyif", "enabled"];
/// Words that ask for a state.
const STATE: &[&str] = &["ensure", "state"];
/// Words for a loop.
const LOOPS: &[&str] =
    &["loop", "foreach", "withitems", "withlist", "withdict", "withsequence", "repeat", "each", "names"];
/// Words that ask for a run of another instance after a change of this one.
const NOTIFIES: &[&str] = &["notify", "notifies", "onchange", "watchin", "onchangesin", "listenin"];
/// Words that ask for a restart.
const RESTARTS: &[&str] = &["restart", "restarts", "reload", "reloads", "restartservice", "reloadservice"];
/// Words that ask for a run after a change of another instance.
const AFTER_CHANGES: &[&str] =
    &["subscribe", "subscribes", "listen", "watch", "trigger", "triggers", "handlers", "handler"];
const RESTARTED_AFTER: Meaning =
    Inside("restartedAfter: [/etc/service.conf]", ", with the files after whose change it is to be restarted");
const ON_CHANGES: &str = "directives: {onChanges: [\"[resourceId('Stead/File', 'other')]\"]}";

/// Words at an instance. Of the rows that have a word, the first one that holds counts.
pub const AT_INSTANCES: &[ForeignWords] = &[
    row(&["id", "title"], Key("name")),
    row(&["resource", "resourcetype"], Key("type")),
    where_it(
        &["settings", "props", "params", "args", "arguments", "attributes", "config", "spec"],
        Object,
        Key("properties"),
    ),
    row(
        &["nolog", "sensitive"],
        Advice("remove it: a parameter of the type secureString is never shown, nor is anything that is made of it"),
    ),
    row(&["require", "requires", "depends", "dependson", "dependencies", "needs", "after"], Key("dependsOn")),
    where_it(&["enabled"], Type(SERVICE), Property("enabled")),
    where_it(&["unless", "notif"], Type(COMMAND), Property("test")),
    where_it(
        &["onlyif"],
        Type(COMMAND),
        Inside("test: [sh, -c, '! test -e /srv/todo']", ": with exit code 0 there is nothing to do"),
    ),
    where_it(CONDITIONS, NO, Form(&["condition: false"], HERE)),
    where_it(CONDITIONS, YES, Form(&["condition: true"], HERE)),
    row(&["unless", "notif"], Example(&["condition: \"[not(equals(facts('os.family'), 'Debian'))]\""], HERE)),
    row(CONDITIONS, Example(&["condition: \"[equals(facts('os.family'), 'Debian')]\""], HERE)),
    row(NOTIFIES, Example(&[ON_CHANGES], AT_A_HANDLER)),
    where_it(AFTER_CHANGES, Type(SERVICE), RESTARTED_AFTER),
    where_it(RESTARTS, Type(SERVICE), RESTARTED_AFTER),
    row(RESTARTS, Example(&[ON_CHANGES], AT_A_HANDLER)),
    row(AFTER_CHANGES, Example(&[ON_CHANGES], ONLY_THEN)),
    row(&["onchanges"], Example(&[ON_CHANGES], HERE)),
    row(&["onfailure"], Example(&["directives: {onFailure: [\"[resourceId('Stead/File', 'other')]\"]}"], HERE)),
    row(&["onfail", "rescue"], Example(&["directives: {onFailure: [\"[resourceId('Stead/File', 'other')]\"]}"], HERE)),
    row(
        &["before", "prereq", "requirein"],
        Example(&["directives: {before: [\"[resourceId('Stead/File', 'other')]\"]}"], HERE),
    ),
    row(
        &["requireany", "dependsonany"],
        Example(&["directives: {requireAny: [\"[resourceId('Stead/File', 'other')]\"]}"], HERE),
    ),
    row(LOOPS, Example(&["copy: {name: items, each: [a, b], as: item}"], HERE)),
    row(&["count"], Example(&["copy: {name: each, count: 2}", "name: \"[format('item-{0}', copyIndex())]\""], HERE)),
    row(&["tags", "tag", "labels"], Example(&["metadata: {tags: [web]}"], HERE)),
    row(&["description", "comment", "annotations"], Example(&["metadata: {description: text}"], HERE)),
    where_it(
        &["become", "sudo", "becomeuser", "runas"],
        Value(&["true", "yes", "root", "administrator"]),
        Form(&["directives: {securityContext: elevated}"], HERE),
    ),
    where_it(&["become", "sudo"], NO, Advice("remove it: nothing gets more rights than stead has")),
    row(
        &["become", "becomeuser", "sudo", "runas", "psdscrunascredential"],
        Advice(
            "everything runs as the user that stead runs as; a command changes to another one itself: [runuser, -u, USER, --, COMMAND]",
        ),
    ),
    where_it(&["present", "exists", "exist"], YES, Inside("_exist: true", "")),
    where_it(&["present", "exists", "exist"], NO, Inside("_exist: false", "")),
    where_it(&["absent"], YES, Inside("_exist: false", "")),
    where_it(&["absent"], NO, Inside("_exist: true", "")),
    where_it(STATE, Value(&["present", "installed", "file", "created", "true"]), Inside("_exist: true", "")),
    where_it(
        STATE,
        Value(&["absent", "removed", "purged", "uninstalled", "deleted", "false"]),
        Inside("_exist: false", ""),
    ),
    where_it(STATE, Value(&["directory"]), Form(&["type: Stead/Directory"], HERE)),
    where_it(STATE, Value(&["link", "symlink"]), Form(&["type: Stead/Symlink"], HERE)),
    where_it(STATE, Value(&["latest"]), Inside("version: latest", "")),
    where_it(STATE, Value(&["running", "started"]), Inside("state: running", "")),
    where_it(STATE, Value(&["stopped", "dead"]), Inside("state: stopped", "")),
    row(
        &["ensure", "state", "exists", "exist", "present", "absent"],
        Advice("properties say it: '_exist: false' of what should not be there, '_exist: true' of what should"),
    ),
    row(
        &["register", "returns", "output", "outputs"],
        Advice(
            "the result of each instance is kept: another one reads it with \"[reference(resourceId('Owner/Type', 'name')).property]\"",
        ),
    ),
    row(
        &["vars", "variables", "defaults"],
        Advice(
            "variables belong to the document: write `variables:` beside 'resources', and read one with \"[variables('name')]\"",
        ),
    ),
    row(&["parameters", "inputs"], Advice("parameters belong to the document: write `parameters:` beside 'resources'")),
    row(
        &["ignoreerrors", "ignorefailure", "ignoreerror", "ignore", "failhard", "anyerrorsfatal"],
        Advice(
            "remove it: a failure stops only what depends on the instance. What is to run after a failure has \
             `directives: {onFailure: [...]}`",
        ),
    ),
    where_it(&["creates"], Type(COMMAND), Property("creates")),
    where_it(
        &["changedwhen", "checkcmd"],
        Type(COMMAND),
        Inside("test: [grep, -q, done, /srv/state]", ": with exit code 0 there is nothing to do"),
    ),
    row(
        &["changedwhen", "failedwhen", "checkcmd"],
        Advice("remove it: the resource determines what changed and what failed; for Stead/Command, 'test' does"),
    ),
    row(
        &["delegateto", "runonce", "hosts", "localaction", "connection"],
        Advice("remove it: an instance applies to the machine of the run; '--hosts' selects machines"),
    ),
    row(
        &["lifecycle", "provider", "provisioner", "preventdestroy"],
        Advice("remove it: before something is removed or replaced, `apply` asks; `--only` and `--skip` limit a run"),
    ),
    row(
        &["block", "tasks", "always"],
        Advice("what belongs together is a 'Microsoft.DSC/Group', with `resources` in its properties"),
    ),
    row(&["retries", "retry", "until", "delay"], Example(&["directives: {reconcileWait: 5}"], WAITS)),
    where_it(
        &["noop", "checkmode", "audit"],
        NO,
        Advice("remove it: what differs is changed, and only `plan` shows it"),
    ),
    row(&["noop", "checkmode", "audit"], Form(&["directives: {configurationMode: MonitorOnly}"], TO_THE_AGENT)),
    where_it(&["version"], Type(PACKAGE), Property("version")),
    row(&["version"], Example(&["requireVersion: '>=1.0.0'"], A_RESOURCE)),
    row(&["securitycontext"], Directive("securityContext")),
    row(&["configurationmode"], Directive("configurationMode")),
    row(&["exclusive"], Directive("exclusive")),
    row(&["reconcilewait"], Directive("reconcileWait")),
    row(&["reconcilepending"], Directive("reconcilePending")),
];

/// Words of a document.
pub const AT_DOCUMENTS: &[ForeignWords] = &[
    where_it(&["vars", "locals", "values"], Object, Key("variables")),
    where_it(&["params", "inputs"], Object, Key("parameters")),
    row(
        &[
            "tasks",
            "pretasks",
            "posttasks",
            "states",
            "steps",
            "instances",
            "configuration",
            "packages",
            "services",
            "files",
        ],
        Example(&["resources: [{name: example, type: Stead/File, properties: {path: example}}]"], HERE),
    ),
    row(
        &["include", "includes", "import", "imports", "roles", "modules"],
        Example(
            &["resources: [{name: more, type: Microsoft.DSC/Include, properties: {configurationFile: more.yaml}}]"],
            HERE,
        ),
    ),
    row(
        &["importtasks", "includetasks", "importplaybook"],
        Example(
            &["resources: [{name: more, type: Microsoft.DSC/Include, properties: {configurationFile: more.yaml}}]"],
            HERE,
        ),
    ),
    row(
        &["psmodulepath"],
        Advice(
            "it belongs to an adapter of PowerShell, as one text without expressions: folders with a colon between two, and \
             `$env:PSModulePath` for those that are looked through anyway",
        ),
    ),
    row(&["version"], Key("contentVersion")),
    row(
        &["hosts", "targets", "nodes", "inventory", "serial"],
        Advice(
            "remove it: the command says for which machines a document is, `stead apply --host web` or \
             `stead apply --hosts FILE --where role=web`",
        ),
    ),
    row(
        &["become", "becomeuser", "sudo", "remoteuser", "runas"],
        Advice("remove it, and run stead as root: `sudo stead apply`; everything runs as the user that stead runs as"),
    ),
    row(
        &["gatherfacts"],
        Advice("remove it: facts are read where an expression has them, as in \"[facts('os.family')]\""),
    ),
    row(
        &["handlers", "handler"],
        Advice(
            "state each handler below 'resources', with `directives: {onChanges: [\"[resourceId('Stead/File', 'other')]\"]}` for \
             what triggers it, and `restarted: true` in the properties of a Stead/Service",
        ),
    ),
    row(&["name"], Example(&["metadata: {name: web}"], HERE)),
    row(&["title", "description"], Example(&["metadata: {description: text}"], HERE)),
];

/// Words of a parameter.
pub const AT_PARAMETERS: &[ForeignWords] = &[
    where_it(
        &["sensitive", "secret", "secure", "nolog", "masked", "ephemeral"],
        NO,
        Advice("remove it: only a parameter of the type 'secureString' or 'secureObject' is a secret"),
    ),
    row(
        &["sensitive", "secret", "secure", "nolog", "masked", "ephemeral"],
        Form(
            &["type: secureString"],
            " in place of the type that it has: its values are secrets, and it has no default",
        ),
    ),
    where_it(
        &["required", "mandatory"],
        NO,
        Example(&["defaultValue: text"], ": a parameter that has one is optional"),
    ),
    row(&["required", "mandatory"], Advice("remove it: a parameter without 'defaultValue' is required")),
    row(&["optional", "nullable"], Example(&["defaultValue: text"], ": a parameter that has one is optional")),
    row(&["value", "default"], Key("defaultValue")),
    row(&["enum", "choices", "options", "oneof", "values", "validvalues", "validateset"], Key("allowedValues")),
    row(&["min", "minimum"], Key("minValue")),
    row(&["max", "maximum"], Key("maxValue")),
    row(
        &["pattern", "regex", "validation", "validate", "constraint", "constraints"],
        Advice("remove it: 'allowedValues', 'minValue', 'maxValue', 'minLength' and 'maxLength' limit a value"),
    ),
];

/// Words of a loop.
pub(super) const AT_LOOPS: &[ForeignWords] = &[
    row(&["items", "list", "in", "values", "over", "input", "foreach", "withitems", "loop", "elements"], Key("each")),
    row(&["var", "loopvar", "item", "itemname", "called", "iterator", "itemvar"], Key("as")),
    row(&["times", "number", "total"], Key("count")),
    row(
        &["src", "source", "dest", "path", "content", "owner", "group", "mode", "remotesrc", "force", "backup"],
        Advice(
            "'copy' is a loop here: a file is an instance of `type: Stead/File` with `path`, and `content` or `source`, below `properties:`",
        ),
    ),
];

/// Words in the properties of an instance, of which only those count that lead to a property of its resource.
const IN_PROPERTIES: &[ForeignWords] = &[
    row(&["path", "file", "filename", "src", "source", "document", "include", "name"], Property("configurationFile")),
    row(&["dest", "destination", "filename", "filepath", "destinationpath"], Property("path")),
    row(&["src", "sourcepath"], Property("source")),
    row(&["src"], Property("target")),
    row(&["src"], Property("device")),
    row(&["repo", "remote"], Property("repository")),
    row(&["uri"], Property("url")),
    row(&["regexp", "regex", "pattern"], Property("match")),
    row(&["insertafter"], Property("after")),
    row(&["insertbefore"], Property("before")),
    where_it(&["append"], NO, Inside("membership: exact", ": the user is taken out of all other groups")),
    row(&["append"], Inside("membership: minimum", ", which is the default: other groups stay")),
    row(&["command", "cmd", "exec", "execute", "run", "shell", "script"], Property("set")),
    row(&["chdir", "cwd"], Property("workingDirectory")),
    row(&["env"], Property("environment")),
    row(
        &["minute", "hour", "day", "weekday", "month", "monthday", "specialtime"],
        Inside(
            "schedule: '5 2 * * *'",
            " for 02:05 each day; the fields are minute, hour, day of the month, month, day of the week",
        ),
    ),
    row(&["pkg", "package"], Property("name")),
    row(&["pkgs", "packages"], Property("names")),
    row(&["text", "contents"], Property("content")),
    row(&["perm", "perms", "permissions", "filemode"], Property("mode")),
    row(&["user"], Property("owner")),
    where_it(STATE, Value(&["latest"]), Inside("version: latest", "")),
    where_it(
        STATE,
        Value(&["present", "installed", "file", "created", "directory", "true"]),
        Inside("_exist: true", ""),
    ),
    where_it(
        STATE,
        Value(&["absent", "removed", "purged", "uninstalled", "deleted", "false"]),
        Inside("_exist: false", ""),
    ),
    where_it(STATE, Value(&["running", "started"]), Inside("state: running", "")),
    where_it(STATE, Value(&["stopped", "dead"]), Inside("state: stopped", "")),
    where_it(&["present", "exists", "exist"], YES, Inside("_exist: true", "")),
    where_it(&["present", "exists", "exist"], NO, Inside("_exist: false", "")),
    where_it(&["absent"], YES, Inside("_exist: false", "")),
    where_it(&["absent"], NO, Inside("_exist: true", "")),
];

/// Returns what a word of other tools is in a document: the place where they have it, and what to write there, wherever no value and no
/// type beside it says otherwise.
pub fn foreign_meanings(word: &str) -> Vec<(&'static str, String)> {
    let tables = [("a document", AT_DOCUMENTS), ("an instance", AT_INSTANCES), ("a parameter", AT_PARAMETERS)];
    let site = || Site::<Never> { value: None, type_name: None };
    let meant = tables.into_iter().filter_map(|(place, table)| Some((place, meaning(table, word, site())?.advice())));
    meant.collect()
}

/// Returns what a word of another tool in the properties of an instance is there, where its resource has that.
pub fn property_meaning<L>(word: &str, value: Option<&Node<L>>, known: &[String]) -> Option<Meaning> {
    let is_known = |name: &str| known.iter().any(|each| each == name);
    let leads_somewhere = |row: &&ForeignWords| match row.meaning {
        Property(name) => is_known(name),
        Inside(form, _) => form.split(':').next().is_some_and(is_known),
        _ => false,
    };
    // No other tool has a word that begins so: it is a canonical property.
    if word.starts_with('_') {
        return None;
    }
    meanings(IN_PROPERTIES, word, Site { value, type_name: None }).find(leads_somewhere).map(|row| row.meaning)
}

/// The value and the type beside a word.
pub(super) struct Site<'s, L = Never> {
    /// The value behind it.
    pub(super) value: Option<&'s Node<L>>,
    /// The type of the instance, as it is written.
    pub(super) type_name: Option<&'s str>,
}

impl<L> Site<'_, L> {
    fn is(&self, when: When) -> bool {
        match when {
            Otherwise => true,
            Value(words) => match self.value.map(|value| &value.kind) {
                Some(Kind::Bool(truth)) => words.contains(&if *truth { "true" } else { "false" }),
                Some(Kind::String(text)) => words.contains(&&*text.to_lowercase()),
                _ => false,
            },
            Object => self.value.is_some_and(|value| matches!(value.kind, Kind::Object(_))),
            // One without an owner is a mistake of its own.
            Type(wanted) => self.type_name.is_some_and(|stated| {
                let short = wanted.rsplit('/').next().unwrap_or(wanted);
                [wanted, short].iter().any(|each| each.eq_ignore_ascii_case(stated))
            }),
        }
    }
}

/// Returns what a word of another tool is in a document.
pub(super) fn meaning<L>(table: &[ForeignWords], word: &str, site: Site<'_, L>) -> Option<Meaning> {
    meanings(table, word, site).next().map(|row| row.meaning)
}

/// A relation of other tools to a change.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    /// Something else runs after a change of this instance.
    Notifies,
    /// A service is restarted or reloaded.
    Restarts,
    /// This instance runs after a change of another one.
    After,
}

/// Returns the relation to a change that a key of an instance is to another tool.
pub(super) fn change(key: &str) -> Option<Change> {
    match &*plain(key) {
        word if NOTIFIES.contains(&word) => Some(Change::Notifies),
        word if RESTARTS.contains(&word) => Some(Change::Restarts),
        word if word == "onchanges" || AFTER_CHANGES.contains(&word) => Some(Change::After),
        _ => None,
    }
}

/// Returns whether a key of an instance is a loop to another tool.
pub(super) fn is_loop(key: &str) -> bool {
    LOOPS.contains(&&*plain(key))
}

/// Returns the expression of a condition that is written in the way of another tool, below one of its words.
pub(super) fn condition(key: &str, value: Option<&Node>) -> Option<String> {
    let (plain, text) = (plain(key), value?.as_str()?);
    let meant = condition_of_others(text).filter(|meant| !meant.contains(['"', '`']))?;
    match &*plain {
        word if CONDITIONS.contains(&word) => Some(meant),
        "unless" | "notif" => Some(format!("[not({})]", meant.strip_prefix('[')?.strip_suffix(']')?)),
        _ => None,
    }
}

/// Returns whether a key of a document has what belongs below `resources` to another tool.
pub(super) fn has_resources(key: &str) -> bool {
    let meaning = meaning::<Never>(AT_DOCUMENTS, key, Site { value: None, type_name: None });
    matches!(meaning, Some(Example(forms, _)) if forms.iter().any(|form| form.starts_with("resources:")))
}

/// A word in small letters, without what other tools have between its parts.
fn plain(word: &str) -> String {
    word.chars().filter(|c| !"_- ".contains(*c)).flat_map(char::to_lowercase).collect()
}

fn meanings<'t, L>(table: &'t [ForeignWords], word: &str, site: Site<'_, L>) -> impl Iterator<Item = &'t ForeignWords> {
    let plain = plain(word);
    table.iter().filter(move |row| row.words.contains(&&*plain) && site.is(row.when))
}

impl Meaning {
    /// Returns the finding about the word with what to write in its place.
    pub fn explain(self, finding: Diagnostic, word: &str, written: Option<&str>) -> Diagnostic {
        match self {
            Key(key) => finding.with_meant(word, &Meant::only(key), written),
            other => finding.with_help(other.advice()),
        }
    }

    /// Advice in words: the form to write in place of the word.
    pub fn advice(self) -> String {
        match self {
            Key(key) => format!("write it as '{key}'"),
            Directive(name) => format!("write it as '{name}', inside 'directives'"),
            Property(name) => format!("write it as '{name}', inside 'properties'"),
            Inside(form, note) => format!("write `{form}` inside 'properties'{note}"),
            Form(forms, place) => format!("write {}{place}", quoted(forms)),
            Example(forms, place) => format!("write, for example, {}{place}", quoted(forms)),
            Advice(advice) => advice.to_owned(),
        }
    }
}

fn quoted(forms: &[&str]) -> String {
    forms.iter().map(|form| format!("`{form}`")).collect::<Vec<_>>().join(" and ")
}
