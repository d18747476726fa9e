//! The search of a machine: what is found, what is left out and why, and that the index never changes the answer.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::{Timespec, Timestamps};
use serde_json::{Value as Json, json};
use stead_core::call::{Failure, FailureKind};
use stead_core::expr::FactKey;
use stead_core::id::TypeName;
use stead_core::manifest::{
    Catalog, Extension, Implementation, Manifest, NotChosen, Version, VersionRequirement, listing,
};
use stead_core::value::Value;
use stead_host::catalog::{Discovery, ProblemReason, Programs, Search, WantedType};
use stead_system::fs::User;

#[path = "catalog/index.rs"]
mod index;

/// Programs that answer from tables and count how often they were run.
#[derive(Default)]
struct Fake {
    lists: BTreeMap<String, Vec<Json>>,
    discovers: BTreeMap<String, Vec<Json>>,
    /// Adapters that can tell for one type what they list.
    selective: bool,
    runs: AtomicUsize,
    /// The folders of modules.
    modules: Vec<PathBuf>,
}

fn answer(table: &BTreeMap<String, Vec<Json>>, name: &TypeName) -> Result<Vec<Json>, Failure> {
    let failure = || Failure::new(FailureKind::Exit(1), "it failed");
    table.get(name.as_str()).cloned().ok_or_else(failure)
}

impl Programs for Fake {
    fn module_folders(&self) -> Vec<PathBuf> {
        self.modules.clone()
    }

    fn list_adapted(&self, adapter: &Manifest) -> Result<Vec<Json>, Failure> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        answer(&self.lists, &adapter.type_name)
    }

    fn find_adapted(&self, adapter: &Manifest, wanted: &TypeName) -> Option<Result<Vec<Json>, Failure>> {
        let listed = self.lists.get(adapter.type_name.as_str()).filter(|_| self.selective)?;
        Some(Ok(listed.iter().filter(|each| each["type"] == wanted.as_str()).cloned().collect()))
    }

    fn discover(&self, extension: &Extension) -> Result<Vec<Json>, Failure> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        answer(&self.discovers, &extension.type_name)
    }

    fn fact(&self, key: &FactKey) -> Option<Value> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        match key {
            FactKey::Executable(name) if name == "there" => Some("/bin/there".into()),
            FactKey::Executable(_) => Some(Value::Null),
            _ => None,
        }
    }
}

struct Machine {
    home: tempfile::TempDir,
    directories: Vec<PathBuf>,
    cache: Option<PathBuf>,
    user: User,
    fake: Arc<Fake>,
    built_in: Catalog,
}

impl Machine {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let directories = ["a", "b"].map(|name| home.path().join(name)).to_vec();
        for directory in &directories {
            fs::create_dir(directory).unwrap();
        }
        let (cache, user) = (Some(home.path().join("cache")), User::current());
        Self { home, directories, cache, user, fake: Arc::default(), built_in: Catalog::default() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn write(&self, name: &str, manifest: &Json) {
        fs::write(self.path(name), manifest.to_string()).unwrap();
    }

    fn discovery(&self) -> Discovery {
        let search = Search {
            relative: Vec::new(),
            is_alone: false,
            directories: self.directories.clone(),
            programs: Vec::new(),
            user: self.user,
            cache: self.cache.clone(),
        };
        Discovery::new(search, Arc::new(self.built_in.clone()), self.fake.clone())
    }

    /// Everything found and everything said, as text.
    fn seen(&self) -> String {
        let discovery = self.discovery();
        let discovered = discovery.discovered();
        let resources = discovered.catalog.iter().flat_map(|(_, versions)| versions);
        let lines = resources.map(|manifest| listing(manifest).to_string());
        let extensions = discovered.extensions.values().map(|extension| extension.manifest.to_string());
        let problems = discovered.problems.iter().map(ToString::to_string);
        lines.chain(extensions).chain(problems).collect::<Vec<_>>().join("\n")
    }

    fn problems(&self) -> Vec<String> {
        let found = self.discovery().discovered().problems.clone();
        let home = self.home.path().to_str().unwrap().to_owned();
        found.iter().map(|problem| problem.to_string().replace(&home, "")).collect()
    }
}

fn resource(type_name: &str, version: &str) -> Json {
    json!({"$schema": "s", "type": type_name, "version": version, "get": {"executable": "x"}})
}

fn adapter(type_name: &str) -> Json {
    let methods = json!({"list": {"executable": "x", "args": ["list"]}, "inputKind": "single"});
    json!({"$schema": "s", "type": type_name, "version": "1.0.0", "get": {"executable": "x"}, "validate": {"executable": "x"}, "adapter": methods})
}

fn wanted(type_name: &str) -> WantedType {
    WantedType { type_name: TypeName::parse(type_name).unwrap(), requirement: None, adapter: None }
}

fn built_in(type_name: &str, version: &str) -> Arc<Manifest> {
    let (type_name, version) = (TypeName::parse(type_name).unwrap(), Version::parse(version).unwrap());
    Arc::new(Manifest::new(type_name, version, Implementation::InProcess))
}

/// Makes a file or directory look as if it had been left alone for a while, as far as a program can.
fn age(path: &Path) {
    let old = Timespec { tv_sec: 1_000_000_000, tv_nsec: 0 };
    let times = Timestamps { last_access: old, last_modification: old };
    rustix::fs::utimensat(rustix::fs::CWD, path, &times, rustix::fs::AtFlags::empty()).unwrap();
}

#[test]
fn the_first_of_equal_manifests_counts_and_every_version_is_kept() {
    let machine = Machine::new();
    machine.write("a/one.dsc.resource.json", &resource("A/B", "1.0.0"));
    machine.write("b/one.dsc.resource.json", &resource("a/b", "1.0.0"));
    machine.write("b/two.DSC.Resource.yaml", &resource("A/B", "2.0.0"));
    machine.write("b/no.dsc.resource.txt", &resource("A/No", "2.0.0"));
    let discovery = machine.discovery();
    let versions = discovery.discovered().catalog.versions(&TypeName::parse("A/B").unwrap());
    let paths: Vec<_> = versions.iter().map(|manifest| listing(manifest)["path"].clone()).collect();
    assert_eq!(
        paths,
        ["b/two.DSC.Resource.yaml", "a/one.dsc.resource.json"].map(|name| machine
            .path(name)
            .to_str()
            .unwrap()
            .to_owned())
    );
    assert!(discovery.problems().is_empty());
    assert_eq!(discovery.discovered().catalog.iter().count(), 1);
}

#[test]
fn one_directory_under_two_names_is_searched_once() {
    let mut machine = Machine::new();
    machine.write("a/bad.dsc.resource.json", &json!([]));
    symlink(machine.path("a"), machine.path("link")).unwrap();
    machine.directories.push(machine.path("link"));
    machine.directories.push(machine.path("missing"));
    machine.directories.push(machine.path("a/bad.dsc.resource.json"));
    assert_eq!(machine.problems().len(), 1);
}

#[test]
fn nothing_that_is_wrong_ends_the_search() {
    let machine = Machine::new();
    machine.write("a/good.dsc.resource.json", &resource("A/Good", "1.0.0"));
    machine.write("a/key.dsc.resource.json", &json!({"$schema": "s", "type": "A/B", "version": "1.0.0", "gets": {}}));
    fs::write(machine.path("a/text.dsc.resource.yaml"), "a: [").unwrap();
    fs::write(machine.path("a/bytes.dsc.resource.json"), b"\xff\xfe").unwrap();
    fs::write(machine.path("a/big.dsc.manifests.json"), vec![b' '; (4 << 20) + 1]).unwrap();
    fs::create_dir(machine.path("a/folder.dsc.resource.json")).unwrap();
    symlink("nowhere", machine.path("a/link.dsc.resource.json")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        machine.path("a/pipe.dsc.resource.json"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    let found = machine.problems();
    let expected = [
        "/a/big.dsc.manifests.json is larger than 4194304 bytes",
        "/a/bytes.dsc.resource.json is not UTF-8",
        "/a/folder.dsc.resource.json is not a file",
        "/a/key.dsc.resource.json:1:47: error[E0602]: unknown key 'gets' in a resource manifest",
        "/a/link.dsc.resource.json cannot be read: entity not found",
        "/a/pipe.dsc.resource.json is not a file",
        "/a/text.dsc.resource.yaml:1:",
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    found.iter().zip(expected).for_each(|(found, expected)| assert!(found.starts_with(expected), "{found}"));
    assert!(machine.discovery().find(&wanted("A/Good")).is_ok());
    assert_eq!(machine.problems(), found, "the same from the index");
}

#[test]
fn the_newest_of_what_is_built_in_and_installed_counts() {
    let mut machine = Machine::new();
    for name in ["A/Older", "A/Same", "A/Newer", "A/Alone"] {
        machine.built_in.add(built_in(name, "1.0.0"));
    }
    machine.write("a/older.dsc.resource.json", &resource("A/Older", "0.9.0"));
    machine.write("a/same.dsc.resource.json", &resource("A/Same", "1.0.0"));
    machine.write("a/newer.dsc.resource.json", &resource("A/Newer", "2.0.0"));
    let discovery = machine.discovery();
    let found = |name: &str, rule: Option<&str>| {
        let requirement = rule.map(|rule| VersionRequirement::parse(rule).unwrap());
        let found = discovery.find(&WantedType { requirement, ..wanted(name) }).unwrap();
        let is_built_in = matches!(found.implementation, Implementation::InProcess);
        (found.version.to_string(), is_built_in)
    };
    assert_eq!(found("a/newer", None), ("2.0.0".to_owned(), false));
    assert_eq!(found("A/Newer", Some("^1")), ("1.0.0".to_owned(), true));
    assert_eq!(found("A/Older", None), ("1.0.0".to_owned(), true));
    assert_eq!(found("A/Older", Some("<1")), ("0.9.0".to_owned(), false));
    assert_eq!(found("A/Same", None), ("1.0.0".to_owned(), true));
    assert_eq!(found("A/Alone", None), ("1.0.0".to_owned(), true));
    for name in ["A/Newer", "A/Older", "A/Same", "A/Alone"] {
        let listed = discovery.discovered().catalog.find(&TypeName::parse(name).unwrap(), None).unwrap();
        assert_eq!(listed.version.to_string(), found(name, None).0, "{name} is listed as it is used");
    }
}

#[test]
fn what_only_this_program_carries_out_needs_no_search_and_is_not_replaced() {
    let mut machine = Machine::new();
    machine.built_in.add(built_in("Stead/Own", "1.0.0"));
    machine.write("a/own.dsc.resource.json", &resource("Stead/Own", "2.0.0"));
    machine.write("a/other.dsc.resource.json", &resource("Stead/Other", "2.0.0"));
    let discovery = machine.discovery();
    assert_eq!(discovery.find(&wanted("stead/own")).unwrap().version.to_string(), "1.0.0");
    assert!(!discovery.has_searched());
    let own = TypeName::parse("Stead/Own").unwrap();
    assert_eq!(discovery.discovered().catalog.versions(&own).len(), 1);
    let problems: Vec<String> = discovery.problems().iter().map(ToString::to_string).collect();
    assert!(problems.iter().any(|text| text.contains("'Stead/Own', which is built in")), "{problems:?}");
    assert!(discovery.find(&wanted("Stead/Other")).is_ok(), "what is not built in may have any name");
}

#[test]
fn conditions_are_asked_of_the_machine_each_time() {
    let machine = Machine::new();
    let conditions = [
        ("A/There", "[not(equals(tryWhich('there'), null()))]"),
        ("A/ThereToo", "[not(equals(tryWhich('there'), null()))]"),
        ("A/Gone", "[not(equals(tryWhich('gone'), null()))]"),
        ("A/Text", "[concat('a', 'b')]"),
        ("A/Unknown", "[equals(envvar('HOME'), 'x')]"),
        ("A/Fault", "[div(1, 0)]"),
    ];
    for (at, (name, condition)) in conditions.iter().enumerate() {
        let mut manifest = resource(name, "1.0.0");
        manifest["condition"] = json!(condition);
        machine.write(&format!("a/{at}.dsc.resource.json"), &manifest);
    }
    let discovery = machine.discovery();
    let found: Vec<_> = discovery.discovered().catalog.iter().map(|(name, _)| name.to_string()).collect();
    assert_eq!(found, ["A/There", "A/ThereToo"]);
    assert_eq!(machine.fake.runs.load(Ordering::SeqCst), 3, "each fact is found out once");
    let problems = machine.problems();
    let expected =
        ["'A/Text' must be true or false, not string", "'A/Unknown' depends on something", "'A/Fault' cannot be"];
    assert_eq!(problems.len(), expected.len(), "{problems:#?}");
    for (problem, expected) in problems.iter().zip(expected) {
        assert!(problem.contains(&format!("the condition of {expected}")), "{problem}");
    }
}

#[test]
fn adapted_resources_need_their_adapter_and_their_file() {
    let machine = Machine::new();
    let adapted = |name: &str, adapter: &str, path: &str| {
        json!({"$schema": "s", "type": name, "kind": "resource", "version": "1.0.0", "capabilities": ["get"],
            "path": path, "requireAdapter": adapter, "schema": {}})
    };
    let all = [
        adapted("A/Good", "Z/Shell", "script.sh"),
        adapted("A/NoFile", "Z/Shell", "none.sh"),
        adapted("A/NoAdapter", "Z/Other", "script.sh"),
        adapted("A/Plain", "Z/Plain", "script.sh"),
    ];
    fs::write(machine.path("a/script.sh"), "").unwrap();
    machine.write("a/all.dsc.manifests.json", &json!({"adaptedResources": all}));
    machine.write("b/shell.dsc.resource.json", &adapter("Z/Shell"));
    machine.write("b/plain.dsc.resource.json", &resource("Z/Plain", "1.0.0"));
    let found = machine.discovery().find(&wanted("A/Good")).unwrap();
    let Implementation::Adapted { adapter, .. } = &found.implementation else { panic!("not adapted") };
    assert_eq!(adapter.type_name.as_str(), "Z/Shell");
    let expected = [
        format!("/a/all.dsc.manifests.json: 'A/NoFile' is implemented in {}", "/a/none.sh, which is not there"),
        "/a/all.dsc.manifests.json: 'A/NoAdapter' needs the adapter 'Z/Other'".into(),
        "/a/all.dsc.manifests.json: 'A/Plain' needs the adapter 'Z/Plain'".into(),
    ];
    assert_eq!(machine.problems(), expected);
}

#[test]
fn an_adapter_that_can_look_up_one_type_lists_nothing_else() {
    let mut machine = Machine::new();
    machine.write("a/First.dsc.resource.json", &adapter("Z/First"));
    let listed = |name: &str| json!({"type": name, "kind": "resource", "version": "1.0.0", "capabilities": ["get"], "requireAdapter": "Z/First"});
    let lists = BTreeMap::from([("Z/First".to_owned(), vec![listed("L/One"), listed("L/Other")])]);
    machine.fake = Arc::new(Fake { lists, selective: true, ..Fake::default() });
    let discovery = machine.discovery();
    let found = ["L/One", "L/One", "L/Other"].map(|name| discovery.find(&wanted(name)).unwrap());
    assert!(Arc::ptr_eq(&found[0], &found[1]), "what is found twice is the same");
    assert_eq!(machine.fake.runs.load(Ordering::SeqCst), 0);
    let error = discovery.find(&wanted("L/Othr")).unwrap_err();
    assert_eq!(error.help().as_deref(), Some("did you mean 'L/Other'?"));
    assert_eq!(machine.fake.runs.load(Ordering::SeqCst), 1, "what is near needs the whole list");
}

#[test]
fn adapters_are_asked_once_and_only_for_types_that_nobody_knows() {
    let mut machine = Machine::new();
    for name in ["Z/First", "Z/Second", "Z/Broken"] {
        machine.write(&format!("a/{}.dsc.resource.json", &name[2..]), &adapter(name));
    }
    machine.write("a/known.dsc.resource.json", &resource("A/Known", "1.0.0"));
    let listed = |name: &str, adapter: &str, version: &str| json!({"type": name, "kind": "resource", "version": version, "capabilities": ["get"], "requireAdapter": adapter});
    let lists = BTreeMap::from([
        (
            "Z/First".to_owned(),
            vec![listed("L/Both", "Z/First", "1.0.0"), listed("L/Liar", "Z/Second", "1.0.0"), json!(1)],
        ),
        ("Z/Second".to_owned(), vec![listed("L/Both", "Z/Second", "2.0.0"), listed("L/Second", "Z/Second", "1.0.0")]),
    ]);
    machine.fake = Arc::new(Fake { lists, ..Fake::default() });
    let discovery = machine.discovery();
    let runs = || machine.fake.runs.load(Ordering::SeqCst);
    let excluded = WantedType { requirement: Some(VersionRequirement::parse("=9").unwrap()), ..wanted("A/Known") };
    assert!(discovery.find(&wanted("A/Known")).is_ok());
    assert!(matches!(discovery.find(&excluded), Err(NotChosen::Version { .. })));
    assert_eq!(runs(), 0);
    let directed = WantedType { adapter: Some(TypeName::parse("z/second").unwrap()), ..wanted("L/Both") };
    assert_eq!(discovery.find(&directed).unwrap().version.to_string(), "2.0.0");
    assert_eq!(runs(), 1);
    assert_eq!(discovery.find(&wanted("L/Both")).unwrap().version.to_string(), "1.0.0");
    assert!(discovery.find(&wanted("L/Second")).is_ok());
    let error = discovery.find(&wanted("L/Secnd")).unwrap_err();
    assert_eq!(error.help().as_deref(), Some("did you mean 'L/Second'?"));
    assert!(discovery.find(&wanted("L/Liar")).is_err());
    assert_eq!(runs(), 3);
    let problems: Vec<_> = discovery.problems().iter().map(ToString::to_string).collect();
    assert_eq!(problems.len(), 3, "{problems:#?}");
    assert!(problems[0].contains("'Z/Broken' cannot list its resources: it failed"));
}

#[test]
fn extensions_find_resources_but_no_extensions() {
    let mut machine = Machine::new();
    let extension = |name: &str, version: &str| json!({"$schema": "s", "type": name, "version": version, "discover": {"executable": "x"}});
    machine.write("a/old.dsc.extension.json", &extension("X/Find", "1.0.0"));
    machine.write("a/new.dsc.extension.json", &extension("X/Find", "1.1.0"));
    machine.write("a/broken.dsc.extension.json", &extension("X/Broken", "1.0.0"));
    fs::create_dir(machine.path("far")).unwrap();
    machine.write("far/r.dsc.resource.json", &resource("Far/Resource", "1.0.0"));
    machine.write("far/e.dsc.extension.json", &extension("Far/Extension", "1.0.0"));
    let at = |name: &str| json!({"manifestPath": machine.path(name)});
    let found = vec![
        at("far/r.dsc.resource.json"),
        at("far/e.dsc.extension.json"),
        at("far/missing.dsc.resource.json"),
        at("far/other.txt"),
        json!({"manifestPath": "far/r.dsc.resource.json"}),
        json!({"manifestContent": resource("Far/Content", "1.0.0")}),
        json!({"manifestContent": {"type": "bad"}}),
        json!({}),
    ];
    machine.fake = Arc::new(Fake { discovers: BTreeMap::from([("X/Find".to_owned(), found)]), ..Fake::default() });
    let discovery = machine.discovery();
    assert_eq!(discovery.extensions().len(), 2);
    assert_eq!(machine.fake.runs.load(Ordering::SeqCst), 0, "listing extensions runs none");
    assert!(discovery.find(&wanted("Far/Resource")).is_ok() && discovery.find(&wanted("Far/Content")).is_ok());
    assert_eq!(discovery.extensions()[&TypeName::parse("X/Find").unwrap()].version.to_string(), "1.1.0");
    assert_eq!(machine.fake.runs.load(Ordering::SeqCst), 2, "each extension runs once, in its newest version");
    let problems: Vec<_> = discovery.problems().iter().map(ToString::to_string).collect();
    let expected = [
        "the extension 'X/Broken': it failed",
        "it found an extension",
        "cannot be read",
        "does not have the name of a manifest",
        "is not an absolute path",
        "requires 'version'",
        "neither 'manifestPath' nor 'manifestContent'",
    ];
    assert_eq!(problems.len(), expected.len(), "{problems:#?}");
    problems.iter().zip(expected).for_each(|(problem, expected)| assert!(problem.contains(expected), "{problem}"));
}

#[test]
fn root_trusts_nobody_else() {
    if !stead_testkit::is_root("root_trusts_nobody_else") {
        return;
    }
    let machine = Machine::new();
    let names = ["good", "writable", "given"].map(|name| format!("a/{name}.dsc.resource.json"));
    for (name, at) in names.iter().zip(0..) {
        machine.write(name, &resource(&format!("A/R{at}"), "1.0.0"));
    }
    let untrusted = || -> Vec<String> {
        let found = machine.discovery().discovered().problems.clone();
        let texts = found.into_iter().map(|problem| match problem.reason {
            ProblemReason::Untrusted(untrusted) => untrusted.to_string(),
            other => panic!("{other:?}"),
        });
        texts.map(|text| text.replace(machine.home.path().to_str().unwrap(), "")).collect()
    };
    let mode = |name: &str, mode: u32| {
        fs::set_permissions(machine.path(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    assert_eq!(untrusted(), [""; 0]);
    mode(&names[1], 0o646);
    std::os::unix::fs::chown(machine.path(&names[2]), Some(12345), None).unwrap();
    let given = format!("'/{}' is owned by user 12345, not by root", names[2]);
    assert_eq!(untrusted(), [given.clone(), format!("'/{}' can be written by everyone (mode 0646)", names[1])]);
    assert!(machine.discovery().find(&wanted("A/R0")).is_ok() && machine.discovery().find(&wanted("A/R1")).is_err());
    mode(&names[1], 0o664);
    assert_eq!(
        untrusted(),
        [given, format!("'/{}' can be written by its group or an access list (mode 0664)", names[1])]
    );
    mode("a", 0o1777);
    assert_eq!(untrusted(), ["'/a' can be written by everyone (mode 1777)"]);
    mode("a", 0o755);
    std::os::unix::fs::chown(machine.path("a"), Some(12345), None).unwrap();
    assert_eq!(untrusted(), ["'/a' is owned by user 12345, not by root"]);
    // A link out of a trusted directory into one that is not.
    symlink(machine.path(&names[0]), machine.path("b/link.dsc.resource.json")).unwrap();
    assert_eq!(untrusted(), ["'/a' is owned by user 12345, not by root"; 2]);
    // An ancestor of both.
    std::os::unix::fs::chown(machine.home.path(), Some(12345), None).unwrap();
    assert_eq!(untrusted(), ["'' is owned by user 12345, not by root"; 2]);
    let stranger = Machine { user: User { id: 12345 }, cache: None, ..machine };
    assert!(stranger.problems().is_empty(), "only root needs to be careful");
}
