//! Packages of a root of the test's own, by the dnf and rpm of this machine: its own packages stay as they are.

#![expect(clippy::disallowed_methods, reason = "a test looks at its own files as it likes")]
#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

#[path = "support/packages.rs"]
mod packages;
mod support;

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use packages::{Packages, words};
use serde_json::json;
use stead_core::call::Execution;
use stead_host::provider::Plain;
use support::{Tree, World, provider};

/// Says that the process has the home directory of a test, with settings of rpm.
const HOME: &str = "STEAD_TEST_HOME";

/// The packages of the repository: names, versions and further lines.
const PACKAGES: [(&str, &str, &str); 11] = [
    ("web", "1.0", "Requires: lib >= 1\n"),
    ("web", "1.1~rc1", "Requires: lib >= 1\n"),
    ("web", "1.1", "Requires: lib >= 1\n"),
    ("lib", "1.0", ""),
    ("conflicting", "2", "Conflicts: lib\n"),
    ("tool", "0.1", "Epoch: 1\n"),
    ("kernel", "1", ""),
    ("kernel", "2", ""),
    ("base", "1", ""),
    ("base", "2", ""),
    ("tied", "1", "Requires: base = 1\n"),
];

/// A system that has no packages, and a repository that it takes them from.
struct System {
    world: World,
    repository: tempfile::TempDir,
}

impl System {
    /// `None`, with a line that says why, where packages cannot be installed below another root, and in the process that
    /// starts itself again with settings of rpm.
    fn new(test: &str) -> Option<Self> {
        if !stead_testkit::is_root(test) {
            return None;
        }
        for program in ["dnf-3", "rpmbuild", "createrepo_c"] {
            if Command::new(program).arg("--version").output().is_err() {
                stead_testkit::skip(test, &format!("there is no {program}"));
                return None;
            }
        }
        let Some(home) = std::env::var_os(HOME) else {
            again(test);
            return None;
        };
        let world = World::build("dir etc/yum.repos.d 0755\ndir var/lib/rpm 0755\n");
        fs::set_permissions(world.root.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let repository = tempfile::tempdir().unwrap();
        for (name, version, lines) in PACKAGES {
            build(Path::new(&home), repository.path(), name, version, lines);
        }
        must(Command::new("createrepo_c").arg("--quiet").arg(repository.path()));
        must(Command::new("rpm").arg("--root").arg(world.root.path()).arg("--initdb"));
        let system = Self { world, repository };
        let address = system.repository.path().display();
        let settings = format!("[local]\nname=local\nbaseurl=file://{address}\ngpgcheck=0\n");
        fs::write(system.path("etc/yum.repos.d/local.repo"), settings).unwrap();
        Some(system)
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.world.root.path().join(path)
    }

    /// The version of a package, as rpm says it.
    fn version(&self, name: &str) -> Option<String> {
        let query = ["-q", "--qf", "%{EPOCHNUM}:%{VERSION}-%{RELEASE}", name];
        let output = Command::new("rpm").arg("--root").arg(self.world.root.path()).args(query).output().unwrap();
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    }
}

impl Packages for System {
    fn world(&self) -> &World {
        &self.world
    }

    /// Returns all files, but for those that every call of rpm and dnf writes: their logs, and the files beside the
    /// databases.
    fn imprint(&self) -> Tree {
        let mut tree = self.world.imprint();
        tree.retain(|path, _| {
            let path = path.to_string_lossy();
            !["var/log", "var/cache", "var/lib/dnf", "dev"].iter().any(|own| path.starts_with(own))
                && !["var", "var/lib", "var/lib/rpm"].contains(&&*path)
                && !path.ends_with("-shm")
                && !path.ends_with("-wal")
        });
        tree
    }
}

/// Runs a test in a process whose rpm has its database where that of other systems is: Debian's is in the home directory.
fn again(test: &str) {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join(".rpmmacros"), "%_dbpath /var/lib/rpm\n").unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env("HOME", home.path()).env(HOME, home.path());
    must(&mut command);
}

fn must(command: &mut Command) {
    let output = command.output().unwrap();
    let [printed, complained] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert!(output.status.success(), "{command:?}: {printed}{complained}");
}

fn build(home: &Path, repository: &Path, name: &str, version: &str, lines: &str) {
    let spec = home.join(format!("{name}.spec"));
    let text = format!(
        "Name: {name}\nVersion: {version}\nRelease: 1\nSummary: s\nLicense: MIT\nBuildArch: noarch\n{lines}%description\nd\n%files\n"
    );
    fs::write(&spec, text).unwrap();
    let define = |name: &str, path: &Path| ["--define".to_owned(), format!("{name} {}", path.display())];
    let mut command = Command::new("rpmbuild");
    command.args(["-bb", "--quiet"]).args(define("_topdir", home)).args(define("_rpmdir", repository)).arg(spec);
    must(&mut command);
}

#[test]
fn packages_of_rpm_are_installed_held_changed_and_removed() {
    let Some(system) = System::new("packages_of_rpm_are_installed_held_changed_and_removed") else { return };
    // The lists are not there yet: nothing is known of packages, until they are got.
    let first = json!({"name": "web", "version": "< 1.1"});
    let predicted = system.reply(&first, Execution::WhatIf).unwrap();
    assert_eq!(predicted.what_if, ["update the package lists"]);
    assert!(predicted.presumed.is_none());
    system.reply(&first, Execution::Actual).unwrap();
    assert_eq!(system.version("web").as_deref(), Some("0:1.1~rc1-1"));
    assert_eq!(system.version("lib").as_deref(), Some("0:1.0-1"));

    let held = json!({"name": "web", "version": "latest", "hold": true});
    assert!(system.refused(&held).contains("python3-dnf-plugin-versionlock"));
    fs::create_dir_all(system.path("etc/dnf/plugins")).unwrap();
    fs::write(system.path("etc/dnf/plugins/versionlock.conf"), "[main]\nenabled = 1\n").unwrap();
    let (done, destroyed) = system.set(&held);
    assert_eq!((done, destroyed), (words(&["change web from 1.1~rc1-1 to 1.1-1", "hold web"]), Vec::new()));
    let list = || fs::read_to_string(system.path("etc/dnf/plugins/versionlock.list")).unwrap();
    assert_eq!(list(), "web-0:1.1-1.*\n");

    let older = json!({"name": "web", "version": "1.0"});
    assert!(system.refused(&older).contains("held"));
    let older = json!({"name": "web", "version": "1.0", "hold": false});
    assert!(system.refused(&older).contains("newer version 1.1-1. Add 'allowDowngrade: true'"));
    let (done, _) = system.set(&json!({"name": "web", "version": "1.0", "hold": false, "allowDowngrade": true}));
    assert_eq!(done, ["change web from 1.1-1 to 1.0-1", "release the hold of web"]);
    assert_eq!(list(), "");
    // A lock of several packages is not given up for one of them.
    fs::write(system.path("etc/dnf/plugins/versionlock.list"), "we*\n").unwrap();
    assert!(system.refused(&json!({"name": "web", "hold": false})).contains("the lock 'we*'"));
    assert_eq!(list(), "we*\n");
    fs::write(system.path("etc/dnf/plugins/versionlock.list"), "").unwrap();

    // What a removal takes away is named.
    let (done, destroyed) = system.set(&json!({"name": "lib", "_exist": false}));
    assert_eq!(done, ["remove lib 1.0-1", "remove web 1.0-1"]);
    assert_eq!(destroyed, ["package lib (1.0-1)", "package web (1.0-1)"]);
    let (done, destroyed) = system.set(&json!({"names": ["conflicting", "tool"]}));
    assert_eq!((done, destroyed), (words(&["install conflicting 2-1", "install tool 1:0.1-1"]), Vec::new()));
    let (_, destroyed) = system.set(&json!({"name": "conflicting", "_exist": false}));
    assert_eq!(destroyed, ["package conflicting (2-1)"]);
    let (done, _) = system.set(&json!({"name": "web", "recommends": false}));
    assert_eq!(done, ["install web 1.1-1", "install lib 1.0-1"]);
}

#[test]
fn what_dnf_cannot_do_is_refused() {
    let Some(system) = System::new("what_dnf_cannot_do_is_refused") else { return };
    system.reply(&json!({"name": "lib"}), Execution::Actual).unwrap();
    assert!(system.refused(&json!({"name": "nowhere"})).contains("there is no package 'nowhere' in the package lists"));
    assert!(system.refused(&json!({"name": "web", "version": ">= 7"})).contains("no version of 'web'"));
    assert!(system.refused(&json!({"name": "web", "version": "7"})).contains("no version '7' of 'web'"));
    assert!(system.refused(&json!({"name": "conflicting"})).contains("conflicts with lib"));
    for (property, value) in [("automatic", json!(true)), ("purge", json!(true)), ("release", json!("x"))] {
        let refused = system.refused(&json!({"name": "web", property: value}));
        assert!(refused.starts_with(&format!("'{property}' is not supported")), "{refused}");
    }
    assert_eq!(system.version("web"), None);
}

#[test]
fn packages_of_rpm_that_are_exported_are_in_state() {
    let Some(system) = System::new("packages_of_rpm_that_are_exported_are_in_state") else { return };
    system.reply(&json!({"names": ["web", "tool"]}), Execution::Actual).unwrap();
    let cx = system.world.context_for("Stead/Package");
    let exported = provider("Stead/Package").export(&cx, &Plain::default()).ok().unwrap();
    let names: Vec<_> = exported.iter().filter_map(|each| each.name.as_deref()).collect();
    assert_eq!(names, ["lib", "tool", "web"]);
    for found in exported {
        let tested = provider("Stead/Package").test(&cx, &Plain::new(found.properties.clone())).ok().unwrap();
        assert_eq!(tested.differing, Some(Vec::new()), "{:?}", found.properties);
    }
}

#[test]
fn a_kernel_is_installed_beside_the_former_one() {
    let Some(system) = System::new("a_kernel_is_installed_beside_the_former_one") else { return };
    system.reply(&json!({"name": "kernel", "version": "1"}), Execution::Actual).unwrap();
    let (done, destroyed) = system.set(&json!({"name": "kernel", "version": "latest"}));
    assert_eq!((done, destroyed), (words(&["install kernel 2-1"]), Vec::new()));
    let exported = provider("Stead/Package").export(&system.world.context_for("Stead/Package"), &Plain::default());
    let exported = exported.ok().unwrap();
    let versions: Vec<_> = exported.iter().map(|each| each.properties.get("version").unwrap().as_str()).collect();
    assert_eq!(versions, [Some("2-1")]);
    let (_, destroyed) = system.set(&json!({"name": "kernel", "_exist": false}));
    assert_eq!(destroyed, ["package kernel (1-1)", "package kernel (2-1)"]);
}

#[test]
fn what_others_need_is_not_made_older_unless_that_is_allowed() {
    let Some(system) = System::new("what_others_need_is_not_made_older_unless_that_is_allowed") else { return };
    system.reply(&json!({"name": "base"}), Execution::Actual).unwrap();
    let tied = json!({"name": "tied"});
    let refused = system.refused(&tied);
    assert!(refused.contains("'base'") && refused.contains("allowDowngrade"), "{refused}");
    assert_eq!(system.version("base").as_deref(), Some("0:2-1"));
    let (done, _) = system.set(&json!({"name": "tied", "allowDowngrade": true}));
    assert_eq!(done, ["install tied 1-1", "change base from 2-1 to 1-1"]);
}

/// A process that has the database open keeps what others change from its file.
#[test]
fn a_change_is_noticed_while_the_database_is_open() {
    let Some(system) = System::new("a_change_is_noticed_while_the_database_is_open") else { return };
    let desired = json!({"name": "tool"});
    system.reply(&desired, Execution::Actual).unwrap();
    let database = system.path("var/lib/rpm/rpmdb.sqlite");
    let age = || database.metadata().unwrap().modified().unwrap().elapsed().ok();
    stead_testkit::until(|| age().filter(|age| age.as_millis() > 200));
    let script = "import sqlite3,sys; c=sqlite3.connect(sys.argv[1]); c.execute('begin'); \
                  c.execute('select count(*) from Packages').fetchone(); print(1,flush=True); sys.stdin.read()";
    let mut command = Command::new("/usr/bin/python3");
    command.args(["-c", script]).arg(&database).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut reader = command.spawn().unwrap();
    reader.stdout.as_mut().unwrap().read_exact(&mut [0; 2]).unwrap();
    let (package, cx) = (provider("Stead/Package"), system.world.context_for("Stead/Package"));
    let is_there = || package.test(&cx, &Plain::new(desired.clone())).ok().unwrap().in_desired_state;
    assert_eq!(is_there(), Some(true));
    must(Command::new("rpm").arg("--root").arg(system.world.root.path()).args(["-e", "tool"]));
    assert_eq!(is_there(), Some(false));
    drop(reader.stdin.take());
    assert!(reader.wait().unwrap().success());
}
