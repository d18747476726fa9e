//! The reference in `docs/reference` is what resources and functions say of themselves, and its examples work.
//! `STEAD_BLESS=1` writes it.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::num::NonZeroUsize;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use stead_core::document::{AT_DOCUMENTS, AT_INSTANCES, ForeignWords, Meaning, Part, TOPICS, Topic, When};
use stead_core::event::{Mode, Status};
use stead_core::expr;
use stead_core::graph::Values;
use stead_core::run::Run;
use stead_core::text::{Limits, Source, Sources};
use stead_core::value::Object;
use stead_engine::{DocumentKey, Host, HostOptions, Prepared, ResourceCall, RunOptions, Session};
use stead_resources::{BuiltIn, builtins};
use tempfile::TempDir;

fn session(root: &Path) -> Session {
    Host::new(HostOptions::default()).session(root)
}

/// A small system in a directory: what the examples need, and nothing of them.
fn system() -> TempDir {
    let root = tempfile::tempdir().unwrap();
    let package = |name| format!("Package: {name}\nStatus: install ok installed\nArchitecture: all\nVersion: 1.5\n\n");
    let files = [
        ("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n".to_owned()),
        ("etc/group", "root:x:0:\n".to_owned()),
        ("etc/shadow", "root:*:1::::::\n".to_owned()),
        ("etc/profile", "# profile\n".to_owned()),
        ("etc/hostname", "old\n".to_owned()),
        ("etc/hosts", "127.0.0.1 localhost\n".to_owned()),
        ("etc/motd", "Welcome.\n".to_owned()),
        ("etc/ssh/sshd_config", "#PermitRootLogin yes\nUsePAM yes\n".to_owned()),
        ("usr/local/bin/tool", "tool\n".to_owned()),
        ("usr/share/zoneinfo/Europe/Berlin", "TZif\n".to_owned()),
        ("usr/share/keyrings/debian-archive-keyring.gpg", "key".to_owned()),
        ("bin/sh", String::new()),
        ("usr/share/zoneinfo/UTC", "TZif\n".to_owned()),
        ("var/lib/dpkg/status", [package("curl"), package("rsync")].concat()),
    ];
    let directories = ["bin", "etc/apt/sources.list.d", "etc/cron.d", "etc/security/limits.d", "etc/sysctl.d"];
    for directory in directories.into_iter().chain([
        "etc/systemd/system",
        "etc/sudoers.d",
        "etc/modules-load.d",
        "etc/modprobe.d",
        "etc/nginx/conf.d",
        "etc/docker",
        "etc/containers",
        "etc/prometheus",
        "home",
        "root",
        "srv",
        "usr/lib",
    ]) {
        fs::create_dir_all(root.path().join(directory)).unwrap();
    }
    for (path, text) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    fs::set_permissions(root.path().join("usr/local/bin/tool"), fs::Permissions::from_mode(0o755)).unwrap();
    archive(&root.path().join("srv/site.tar"));
    repository(&root.path().join("srv/application.git"));
    root
}

fn archive(path: &Path) {
    let mut archive = tar::Builder::new(fs::File::create(path).unwrap());
    let mut header = tar::Header::new_gnu();
    header.set_mode(0o644);
    header.set_size(5);
    archive.append_data(&mut header, "site-1.0/index.html", &b"site\n"[..]).unwrap();
    archive.finish().unwrap();
}

/// A repository with one commit on the branch `main`.
fn repository(path: &Path) {
    let git = |arguments: &[&str]| {
        let who = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
        let done =
            Command::new("git").args(who).arg("-C").arg(path.parent().unwrap()).args(arguments).output().unwrap();
        assert!(done.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    };
    git(&["init", "-q", "-b", "main", "application.git"]);
    git(&["-C", "application.git", "commit", "-q", "--allow-empty", "-m", "first"]);
}

fn run(session: &Session, prepared: &Prepared, mode: Mode) -> Run {
    session.run(prepared, RunOptions::new(mode, NonZeroUsize::MIN)).unwrap()
}

fn statuses(run: &Run) -> Vec<String> {
    let all = run.graph().iter().map(|(id, node)| {
        let failure = run.report().record(id).failure().map(|failure| failure.message.clone()).unwrap_or_default();
        format!("{}: {:?} {failure}", node.name, run.report().status(id))
    });
    all.collect()
}

/// The example of a resource. `visudo` is not there on every machine, and the check of rules by it has cases of its own.
fn example(built_in: &BuiltIn) -> String {
    built_in.example.replace("      nopasswd: true\n", "      nopasswd: true\n    validate: false\n")
}

/// Types whose example runs by every set.
const RUNS_ALWAYS: [&str; 1] = ["Microsoft.DSC.Transitional/RunCommandOnSet"];

/// Replaces every file below a folder by a folder.
fn turn_files_into_folders(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            turn_files_into_folders(&path);
        } else {
            fs::remove_file(&path).unwrap();
            fs::create_dir(&path).unwrap();
        }
    }
}

/// Systems on which little can be read or written.
fn damaged() -> [TempDir; 4] {
    let [empty, etc_is_a_file] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    fs::write(etc_is_a_file.path().join("etc"), "").unwrap();
    let [no_etc, no_files] = [system(), system()];
    fs::remove_dir_all(no_etc.path().join("etc")).unwrap();
    turn_files_into_folders(no_files.path());
    [empty, etc_is_a_file, no_etc, no_files]
}

#[test]
fn a_failure_points_at_a_property_that_there_is() {
    let mut pointing = BTreeSet::new();
    for (built_in, root) in builtins().iter().flat_map(|each| damaged().map(|root| (each, root))) {
        let mut session = session(root.path()).with(|options| options.system_root = Some(root.path().to_owned()));
        let Ok(prepared) = session.prepare("example.yaml", example(built_in), Object::new()) else { continue };
        for mode in [Mode::PLAN, Mode::TEST, Mode::APPLY] {
            let run = run(&session, &prepared, mode);
            for (id, node) in run.graph().iter() {
                let failure = run.report().record(id).failure();
                let Some(pointer) = failure.and_then(|failure| failure.property.as_deref()) else { continue };
                let schema = stead_resources::builtin_of(&node.manifest).unwrap().schema();
                let property = pointer.trim_start_matches('/').split('/').next().unwrap();
                assert!(schema["properties"].get(property).is_some(), "{}: {pointer}", node.manifest.type_name);
                pointing.insert(node.manifest.type_name.to_string());
            }
        }
    }
    assert!(pointing.len() > 10, "few failures point at anything: {pointing:?}");
}

#[test]
fn every_example_works() {
    for built_in in builtins() {
        let (name, root) = (built_in.manifest.type_name.as_str(), system());
        assert!(built_in.example.contains(name), "the example of {name} has no instance of it");
        let mut session = session(root.path()).with(|options| options.system_root = Some(root.path().to_owned()));
        let prepared = session.prepare("example.yaml", example(built_in), Object::new());
        let prepared = prepared.unwrap_or_else(|unusable| panic!("{name}: {:?}", unusable.findings));
        assert!(prepared.warnings.is_empty(), "{name}: {:?}", prepared.warnings);
        let findings = session.check_properties(&prepared, Mode::APPLY);
        assert!(findings.is_empty(), "{name}: {findings:?}");
        let planned = run(&session, &prepared, Mode::PLAN);
        let applied = run(&session, &prepared, Mode::APPLY);
        assert_eq!(applied.totals().failed, 0, "{name}: {:#?}", statuses(&applied));
        assert_eq!(statuses(&planned), statuses(&applied), "{name}");
        let again = run(&session, &prepared, Mode::APPLY);
        let is_changed = |(id, _)| matches!(again.report().status(id), Some(Status::Changed));
        let changes = again.graph().iter().any(is_changed);
        assert_eq!(changes, RUNS_ALWAYS.contains(&name), "{name}: {:#?}", statuses(&again));
    }
}

/// The pages, by file name.
fn pages() -> BTreeMap<String, String> {
    let mut pages = BTreeMap::new();
    let mut index = String::from(
        "# Reference\n\nGenerated from what resources and functions say of themselves; `stead explain` prints the same.\n\n\
         - [Documents](document.md)\n- [Functions](functions.md)\n",
    );
    for built_in in builtins() {
        let name = built_in.manifest.type_name.as_str();
        let call = ResourceCall::find(session(Path::new("/")), name, None).unwrap_or_else(|_| panic!("{name}"));
        let file = file(name);
        let description = built_in.manifest.description.as_deref().unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = writeln!(index, "- [{name}]({file}): {description}");
        pages.insert(file, call.reference().to_markdown());
    }
    pages.insert("README.md".to_owned(), index);
    pages.insert("functions.md".to_owned(), functions());
    pages.insert("document.md".to_owned(), documents());
    pages
}

fn file(type_name: &str) -> String {
    format!("{}.md", type_name.replace('/', "."))
}

fn functions() -> String {
    let mut text = String::from("# Functions\n\nWhat expressions can call, as in `\"[concat('a', 'b')]\"`.\n");
    // A '<' would begin a tag of HTML.
    let escaped = |text: &str| text.replace('<', "\\<");
    for function in expr::functions() {
        let (name, syntax, description) = (function.name, function.syntax, escaped(function.description));
        let _ = write!(text, "\n## {name}\n\n{description}\n\n```text\n{syntax}\n```\n");
        if let Some(constraints) = function.constraints {
            let _ = write!(text, "\n{}\n", escaped(constraints));
        }
    }
    text
}

/// The keys and directives of documents, and the words about them.
fn documents() -> String {
    let mut text = String::from(
        "# Documents\n\nEach key that can be written in a document; `stead explain KEY` shows the same, also for a path such as \
         `directives.onChanges` or `metadata.tags`. On one page, with the functions that are used most: [cheat sheet](../cheat-sheet.md).\n",
    );
    for (part, title) in Part::ALL {
        let _ = write!(text, "\n## {title}\n");
        let (mut known, mut example, mut described) = (Vec::new(), "", (String::new(), String::new()));
        for key in DocumentKey::all().iter().filter(|key| key.part == part) {
            if key.name.contains('.') {
                let _ = writeln!(text, "\n- `{}` ({})\n  : {}", key.name, key.summary(), key.description);
                continue;
            }
            let _ = write!(text, "\n### {}\n\n", key.name);
            if key.description == described.1 {
                let _ = write!(text, "*{}*\n\nSee `{}`.\n", key.summary(), described.0);
            } else if key.example == example {
                text += &DocumentKey { example: "", ..key.clone() }.to_markdown();
            } else {
                text += &key.to_markdown();
            }
            (example, described) = (key.example, (key.name.clone(), key.description.clone()));
            known.push(key.name.clone());
        }
        let is_more = |topic: &&Topic| topic.part == part && !known.iter().any(|name| name == topic.name);
        for topic in TOPICS.iter().filter(is_more) {
            let _ = write!(text, "\n### {}\n\n{}\n", topic.name, topic.text);
            if !topic.form.is_empty() {
                let _ = write!(text, "\n```yaml\n{}\n```\n", topic.form);
            }
        }
    }
    text
}

/// The names of the keys that a schema has.
fn stated_keys(schema: &serde_json::Value) -> BTreeSet<String> {
    schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
}

#[test]
fn every_key_of_the_schema_is_in_the_reference() {
    let schemas = stead_testkit::repository().join("schemas");
    let read = |name: &str| -> serde_json::Value {
        serde_json::from_str(&fs::read_to_string(schemas.join(name)).unwrap()).unwrap()
    };
    let definitions = read("definitions.json");
    let of_definition = |name: &str| stated_keys(&definitions["$defs"][name]);
    for (part, wanted) in [
        (Part::Document, stated_keys(&read("configuration.json"))),
        (Part::Instance, stated_keys(&read("resource.json"))),
        (Part::Metadata, of_definition("documentMetadata")),
        (Part::Parameter, of_definition("parameter")),
        (Part::Function, of_definition("functionNamespace")),
        (Part::Output, of_definition("outputDefinition")),
        (Part::Loop, of_definition("copy")),
        (Part::Directive, of_definition("instanceDirectives")),
        (Part::DocumentDirective, of_definition("documentDirectives")),
    ] {
        let found: BTreeSet<String> = DocumentKey::of(part).map(|key| key.name.clone()).collect();
        assert_eq!(found, wanted, "{part:?}");
        assert!(found.len() > 1, "{part:?}");
    }
    let page = documents();
    for key in DocumentKey::all() {
        assert!(!key.kind.is_empty() && !key.description.is_empty(), "{}", key.path());
        let form = if key.name.contains('.') { format!("- `{}` (", key.name) } else { format!("### {}\n", key.name) };
        assert!(page.contains(&form), "{}", key.path());
        assert!(DocumentKey::named(&key.path()).contains(&key), "{}", key.path());
    }
    let within: Vec<String> =
        DocumentKey::named("directives.reconcile.maxPendingReruns").iter().map(|key| key.summary()).collect();
    assert_eq!(within, ["integer, default 600, since 0.1.0"]);
}

#[test]
fn what_dsc_does_not_have_is_marked() {
    for key in DocumentKey::all().iter().filter(|key| matches!(key.part, Part::Directive | Part::DocumentDirective)) {
        let written = format!("{}:", key.name);
        if key.name.contains('.') || !key.example.contains(&written) {
            continue;
        }
        let example = key.example;
        let text =
            if example.contains("resources:") { example.to_owned() } else { format!("{example}\nresources: []\n") };
        let mut sources = Sources::default();
        let source = sources.add(Source::new("document.yaml", &*text));
        let (document, findings) = stead_core::document::parse(source, &text, &Limits::default());
        assert!(findings.is_empty(), "{findings:?}");
        let own = document.not_portable(&sources);
        let is_own = own.iter().any(|finding| finding.message.contains(&format!("the directive '{}'", key.name)));
        assert_eq!(key.marks.iter().any(|mark| mark == "not in DSC v3"), is_own, "{}: {own:?}", key.path());
    }
}

/// The findings about a document in an empty folder, each with its help.
fn mistakes(document: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("more.yaml"), "resources: []\n").unwrap();
    let mut session = session(folder.path()).with(|options| options.values = Values::Open);
    let findings = match session.prepare("document.yaml", document, Object::new()) {
        Ok(prepared) => [prepared.warnings.clone(), session.check_properties(&prepared, Mode::PLAN)].concat(),
        Err(unusable) => unusable.findings,
    };
    findings.iter().map(|found| format!("{} {}", found.message, found.help.as_deref().unwrap_or_default())).collect()
}

#[test]
fn every_key_is_written_as_it_is_explained() {
    for topic in TOPICS.iter().filter(|topic| !topic.form.is_empty()) {
        let form = topic.form;
        let document = if form.contains("resources:") { form.to_owned() } else { format!("{form}\nresources: []\n") };
        assert_eq!(mistakes(&document), [""; 0], "{}", topic.name);
    }
}

#[test]
fn no_two_topics_have_a_name_and_none_that_of_a_resource() {
    let short = |built_in: &BuiltIn| built_in.manifest.type_name.short().to_owned();
    let resources: BTreeSet<String> = builtins().iter().map(short).collect();
    let topics = TOPICS.iter().flat_map(Topic::names).map(str::to_owned);
    let names: Vec<String> = topics.chain(resources).collect();
    for name in &names {
        assert_eq!(names.iter().filter(|each| each.eq_ignore_ascii_case(name)).count(), 1, "{name}");
    }
}

/// A document with one instance beside another, of a type unless the lines have one, which has these lines.
fn with_instance(usual: &str, lines: &[&str], more: &str) -> String {
    let has = |key: &str| lines.iter().any(|line| line.starts_with(key));
    let stated = lines.iter().find_map(|line| line.strip_prefix("type: "));
    let properties = match stated.unwrap_or(usual) {
        "Stead/Service" | "Stead/Package" => "name: it",
        "Stead/Command" => "set: 'true'",
        "Stead/Directory" => "path: it",
        "Stead/Symlink" => "path: it, target: other",
        _ => "path: it, content: x",
    };
    let name = if has("name:") { "" } else { "\n  name: it" };
    let type_name = if has("type:") { String::new() } else { format!("\n  type: {usual}") };
    let lines = lines.join("\n  ");
    let other = "- {name: other, type: Stead/File, properties: {path: other, content: x}}";
    format!("resources:\n{other}\n- properties: {{{properties}{more}}}{type_name}{name}\n  {lines}\n")
}

/// The type of an instance at which a row holds, and a value for which it does.
fn site(row: &ForeignWords) -> (&'static str, &'static str) {
    match (row.when, row.meaning) {
        (When::Type(name), _) => (name, "x"),
        (When::Value(values), Meaning::Inside(form, _)) => {
            let of_property = [("version", "Stead/Package"), ("state", "Stead/Service")];
            let known = of_property.iter().find(|(property, _)| form.starts_with(property));
            (known.map_or("Stead/File", |(_, name)| name), values[0])
        }
        (When::Value(values), _) => ("Stead/File", values[0]),
        (When::Object, _) => ("Stead/File", "{}"),
        (When::Otherwise, _) => ("Stead/File", "x"),
    }
}

/// A document in which a row was followed.
fn followed(row: &ForeignWords, is_instance: bool) -> Option<String> {
    let (usual, _) = site(row);
    let directive = |name: &str| match name {
        "securityContext" => "directives: {securityContext: current}".to_owned(),
        "configurationMode" => "directives: {configurationMode: ApplyOnly}".to_owned(),
        "exclusive" => "directives: {exclusive: true}".to_owned(),
        "reconcileWait" => "directives: {reconcileWait: 5}".to_owned(),
        "reconcilePending" => "directives: {reconcilePending: default}".to_owned(),
        name => format!("directives: {{{name}: [\"[resourceId('Stead/File', 'other')]\"]}}"),
    };
    let property = |name: &str| match name {
        "enabled" => "enabled: true",
        "version" => "version: latest",
        _ => "test: test -e /srv/done",
    };
    Some(match row.meaning {
        Meaning::Key(_) | Meaning::Advice(_) => return None,
        Meaning::Directive(name) => with_instance(usual, &[&directive(name)], ""),
        Meaning::Property(name) => with_instance(usual, &[], &format!(", {}", property(name))),
        Meaning::Inside(form, _) => with_instance(usual, &[], &format!(", {form}")),
        Meaning::Form(forms, _) | Meaning::Example(forms, _) if is_instance => with_instance(usual, forms, ""),
        Meaning::Form(forms, _) | Meaning::Example(forms, _)
            if forms.iter().any(|form| form.starts_with("resources")) =>
        {
            forms.join("\n")
        }
        Meaning::Form(forms, _) | Meaning::Example(forms, _) => format!("{}\nresources: []", forms.join("\n")),
    })
}

#[test]
fn what_is_said_of_a_foreign_word_can_be_followed() {
    for (table, is_instance) in [(AT_INSTANCES, true), (AT_DOCUMENTS, false)] {
        for row in table {
            if let Some(followed) = followed(row, is_instance) {
                assert_eq!(mistakes(&followed), [""; 0], "{followed}");
            }
            let advice: Vec<&str> = match row.meaning {
                Meaning::Key(_) => continue,
                Meaning::Form(forms, _) | Meaning::Example(forms, _) => forms.to_vec(),
                Meaning::Directive(advice)
                | Meaning::Property(advice)
                | Meaning::Inside(advice, _)
                | Meaning::Advice(advice) => {
                    vec![advice]
                }
            };
            for word in row.words {
                let (usual, value) = site(row);
                let written = format!("{word}: {value}");
                let wrong = if is_instance {
                    with_instance(usual, &[&written], "")
                } else {
                    format!("{written}\nresources: []\n")
                };
                let said = mistakes(&wrong).join("\n");
                // What is said of changes has the name of the instance itself.
                let is_said = |form: &&str| said.contains(*form) || said.contains(&form.replace("'other'", "'it'"));
                assert!(advice.iter().all(is_said), "{word}: {said}");
            }
        }
    }
}

#[test]
fn a_foreign_word_for_a_key_is_corrected() {
    for (table, is_instance) in [(AT_INSTANCES, true), (AT_DOCUMENTS, false)] {
        for ForeignWords { words, meaning, .. } in table {
            let Meaning::Key(key) = meaning else { continue };
            for word in words.iter().filter(|word| !word.eq_ignore_ascii_case(key)) {
                let written = format!("{word}: {{}}");
                let wrong = if is_instance {
                    format!("resources:\n- {written}\n")
                } else {
                    format!("{written}\nresources: []\n")
                };
                let said = mistakes(&wrong).join("\n");
                assert!(said.contains(&format!("did you mean '{key}'?")), "{word}: {said}");
            }
        }
    }
}

#[test]
fn the_reference_is_what_resources_and_functions_say() {
    let types = builtins().iter().map(|built_in| built_in.manifest.type_name.to_string());
    let mut list: Vec<String> = types.map(|name| format!("[{name}](reference/{})", file(&name))).collect();
    list.insert(0, "[Functions](reference/functions.md)".to_owned());
    list.insert(0, "[Documents](reference/document.md)".to_owned());
    stead_testkit::check_list("docs/SUMMARY.md", "- [Reference](reference/README.md)", &list);
    stead_testkit::check_folder("docs/reference", &pages());
}
