//! Packages of a root of the test's own, by the apt and dpkg of this machine: its own packages stay as they are.

#![expect(clippy::disallowed_methods, reason = "a test looks at its own files as it likes")]
#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

#[path = "support/packages.rs"]
mod packages;
mod support;

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use packages::{Packages, words};
use proptest::sample::select;
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value as Json, json};
use stead_core::call::{Changed, Execution, FailureKind, Verification};
use stead_host::provider::{Binding, Context, Plain, SetReply};
use support::{World, provider};

/// A system that has no packages, and a repository that it takes them from.
struct System {
    world: World,
    repository: tempfile::TempDir,
}

/// The packages of the repository: names, versions and further fields.
const PACKAGES: [(&str, &str, &str); 6] = [
    ("web", "1.0", "Depends: lib (>= 1)\n"),
    ("web", "1.1~rc1", "Depends: lib (>= 1)\n"),
    ("web", "1.1", "Depends: lib (>= 1)\n"),
    ("lib", "1.0-1", ""),
    ("conflicting", "2", "Conflicts: lib\n"),
    ("tool", "1:0.1", ""),
];

impl System {
    /// `None`, with a line that says why, where packages cannot be installed below another root.
    fn new(test: &str) -> Option<Self> {
        if !stead_testkit::is_root(test) {
            return None;
        }
        for program in ["apt-get", "dpkg-deb"] {
            if Command::new(program).arg("--version").output().is_err() {
                stead_testkit::skip(test, &format!("there is no {program}"));
                return None;
            }
        }
        let world = World::build(
            "file var/lib/dpkg/status 0644\ndir var/lib/dpkg/updates 0755\ndir var/lib/dpkg/info 0755\n\
             dir var/lib/apt/lists/partial 0755\ndir var/cache/apt/archives/partial 0755\ndir var/log/apt 0755\n\
             dir etc/apt/sources.list.d 0755\ndir etc/apt/preferences.d 0755\n",
        );
        let system = Self { world, repository: tempfile::tempdir().unwrap() };
        fs::set_permissions(system.repository.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        fs::set_permissions(system.world.root.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        system.fill_repository();
        let uri = format!("file:{}", system.repository.path().display());
        let local = json!({"name": "local", "uris": [uri], "suites": ["./"], "trusted": true});
        system.add_repository(&local);
        Some(system)
    }

    fn fill_repository(&self) {
        let mut index = String::new();
        for (name, version, fields) in PACKAGES {
            let folder = tempfile::tempdir().unwrap();
            let control = format!(
                "Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: n <n@example.org>\n{fields}Description: d\n"
            );
            fs::create_dir_all(folder.path().join("DEBIAN")).unwrap();
            fs::create_dir_all(folder.path().join("etc")).unwrap();
            fs::write(folder.path().join("DEBIAN/control"), &control).unwrap();
            fs::write(folder.path().join("DEBIAN/conffiles"), format!("/etc/{name}.conf\n")).unwrap();
            fs::write(folder.path().join(format!("etc/{name}.conf")), version).unwrap();
            let file = format!("{name}_{}.deb", version.replace(':', "%"));
            let path = self.repository.path().join(&file);
            let built = Command::new("dpkg-deb").arg("--build").arg(folder.path()).arg(&path).output().unwrap();
            assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
            let sum = Command::new("sha256sum").arg(&path).output().unwrap().stdout;
            let sum = String::from_utf8(sum).unwrap();
            let size = fs::metadata(&path).unwrap().len();
            let digest = sum.split(' ').next().unwrap();
            writeln!(index, "{control}Filename: ./{file}\nSize: {size}\nSHA256: {digest}\n").unwrap();
        }
        fs::write(self.repository.path().join("Packages"), index).unwrap();
    }

    /// The context of a set that is bound to what a what-if has shown.
    fn bound_to(&self, shown: SetReply) -> Context {
        let after = shown.after.map(Plain::into_shared).unwrap_or_default();
        let changed = Changed {
            unknown: None,
            before: Arc::default(),
            after,
            changed: shown.changed,
            what_if: shown.what_if,
            presumed: shown.presumed,
            effects: shown.effects,
            verified: Verification::InState,
        };
        Context { binding: Binding::Plan(Some(Arc::new(changed))), ..self.world.context_for("Stead/Package") }
    }

    fn add_repository(&self, desired: &Json) {
        let cx = self.world.context_for("Stead/AptRepository");
        let added = provider("Stead/AptRepository").set(&cx, &Plain::new(desired.clone()), Execution::Actual);
        assert!(added.is_ok(), "{desired}");
    }

    /// Keeps the package lists as they are: of a repository on the same machine they are links to it.
    fn keep_lists(&self) {
        for entry in fs::read_dir(self.world.root.path().join("var/lib/apt/lists")).unwrap() {
            let path = entry.unwrap().path();
            if path.is_symlink() {
                let content = fs::read(&path).unwrap();
                fs::remove_file(&path).unwrap();
                fs::write(&path, content).unwrap();
            }
        }
    }

    /// The status of dpkg about a package, and its version.
    fn status(&self, name: &str) -> Option<(String, String)> {
        let text = fs::read_to_string(self.world.root.path().join("var/lib/dpkg/status")).unwrap();
        let stanza = text.split("\n\n").find(|stanza| stanza.lines().any(|line| line == format!("Package: {name}")))?;
        let field =
            |field: &str| stanza.lines().find_map(|line| line.strip_prefix(field)).unwrap_or_default().to_owned();
        Some((field("Status: "), field("Version: ")))
    }
}

impl Packages for System {
    fn world(&self) -> &World {
        &self.world
    }
}

fn installed(version: &str) -> (String, String) {
    ("install ok installed".to_owned(), version.to_owned())
}

/// When the databases of this machine were last changed.
fn own_databases() -> Vec<Option<(i64, i64)>> {
    let paths = [
        "/var/lib/dpkg/status",
        "/var/lib/dpkg/info",
        "/var/lib/apt/lists",
        "/var/log/dpkg.log",
        "/var/cache/apt/archives",
    ];
    let changed = |path: &&str| Path::new(path).metadata().ok().map(|status| (status.ctime(), status.ctime_nsec()));
    paths.iter().map(changed).collect()
}

#[test]
fn packages_are_installed_held_changed_and_purged() {
    let Some(system) = System::new("packages_are_installed_held_changed_and_purged") else { return };
    let own = own_databases();
    // The lists are not there yet: nothing is known of packages, until they are got.
    let first = json!({"name": "web", "version": "< 1.1", "maximumListAge": 3600});
    let predicted = system.reply(&first, Execution::WhatIf).unwrap();
    assert_eq!(predicted.what_if, ["update the package lists"]);
    assert!(predicted.presumed.is_none());
    assert_eq!(
        predicted.effects.creates.items()[0].to_string(),
        "package lists (never updated, so versions are not known)"
    );
    system.reply(&first, Execution::Actual).unwrap();
    assert_eq!(system.status("web"), Some(installed("1.1~rc1")));
    assert_eq!(system.status("lib"), Some(installed("1.0-1")));

    let (done, destroyed) = system.set(&json!({"name": "web", "version": "latest", "hold": true}));
    assert_eq!((done, destroyed), (words(&["change web from 1.1~rc1 to 1.1", "hold web"]), Vec::new()));
    assert_eq!(system.status("web"), Some(("hold ok installed".to_owned(), "1.1".to_owned())));

    let older = json!({"name": "web", "version": "1.0"});
    assert!(system.refused(&older).contains("held"));
    let older = json!({"name": "web", "version": "1.0", "hold": false});
    assert!(system.refused(&older).contains("newer version 1.1. Add 'allowDowngrade: true'"));
    let (done, _) = system.set(&json!({"name": "web", "version": "1.0", "hold": false, "allowDowngrade": true}));
    assert_eq!(done, ["change web from 1.1 to 1.0", "release the hold of web"]);

    // What a package that conflicts takes away is named.
    let (_, destroyed) = system.set(&json!({"names": ["conflicting", "tool"]}));
    assert_eq!(destroyed, ["package web (1.0)", "package lib (1.0-1)"]);
    assert_eq!(system.status("tool"), Some(installed("1:0.1")));

    let (done, destroyed) = system.set(&json!({"name": "tool", "_exist": false}));
    assert_eq!((done, destroyed), (words(&["remove tool 1:0.1"]), words(&["package tool (1:0.1)"])));
    assert!(system.world.root.path().join("etc/tool.conf").exists());
    system.set(&json!({"name": "tool", "purge": true, "_exist": false}));
    assert!(!system.world.root.path().join("etc/tool.conf").exists());
    system.set(&json!({"name": "conflicting", "automatic": true}));
    assert_eq!(own_databases(), own, "the packages of this machine were touched");
}

#[test]
fn what_cannot_be_installed_is_refused() {
    let Some(system) = System::new("what_cannot_be_installed_is_refused") else { return };
    system.reply(&json!({"name": "tool"}), Execution::Actual).unwrap();
    let nowhere =
        "there is no package 'nowhere' in the package lists. Correct the name, or add the repository that has it";
    assert_eq!(system.refused(&json!({"name": "nowhere"})), nowhere);
    assert!(system.refused(&json!({"name": "web", "version": ">= 7"})).contains("no version of 'web'"));
    let seven = "the package lists have no version '7' of 'web'; there are: 1.1, 1.1~rc1, 1.0";
    assert_eq!(system.refused(&json!({"name": "web", "version": "7"})), seven);
    // Trying again would come to the same.
    let cx = system.world.context_for("Stead/Package");
    for desired in [json!({"name": "nowhere"}), json!({"names": ["lib", "web"], "version": "7"})] {
        let failed = provider("Stead/Package").set(&cx, &Plain::new(desired), Execution::Actual).err().unwrap();
        assert_eq!((failed.kind.clone(), failed.can_heal()), (FailureKind::Refused, false));
    }
    let both = json!({"names": ["conflicting", "lib"]});
    assert!(system.refused(&both).contains("apt-get ended with exit code 100"));
    assert_eq!(system.status("conflicting"), None);
}

/// To apt that is a warning, and the lists are those of the other repositories. What they have is installed.
#[test]
fn a_repository_that_cannot_be_reached_can_have_the_package() {
    let Some(system) = System::new("a_repository_that_cannot_be_reached_can_have_the_package") else { return };
    let repository = |enabled: bool| json!({"name": "far", "uris": ["http://127.0.0.1:9/far"], "suites": ["./"], "trusted": true, "enabled": enabled});
    system.add_repository(&repository(true));
    let cx = system.world.context_for("Stead/Package");
    let set = |name: &str| {
        let desired = Plain::new(json!({"name": name}));
        provider("Stead/Package").set(&cx, &desired, Execution::Actual)
    };
    // With no lists, with those of the other repository that were updated a moment ago, and with a version that they lack.
    for desired in [json!({"name": "elsewhere"}), json!({"name": "elsewhere"}), json!({"name": "web", "version": "7"})]
    {
        let failed = provider("Stead/Package").set(&cx, &Plain::new(desired), Execution::Actual).err().unwrap();
        assert!(failed.message.contains("Failed to fetch http://127.0.0.1:9/far"), "{}", failed.message);
        assert!(failed.can_heal());
    }
    assert!(set("tool").is_ok());
    assert_eq!(system.status("tool"), Some(installed("1:0.1")));
    system.add_repository(&repository(false));
    let failed = set("elsewhere").err().unwrap();
    assert_eq!(
        failed.message,
        "there is no package 'elsewhere' in the package lists. Correct the name, or add the repository that has it"
    );
    assert!(!failed.can_heal());
}

/// apt links the lists of a repository on this machine; any other link out of the root is none of its own.
#[test]
fn no_list_of_another_root_leads_out_of_it() {
    let Some(system) = System::new("no_list_of_another_root_leads_out_of_it") else { return };
    system.reply(&json!({"name": "lib"}), Execution::Actual).unwrap();
    let lists = system.world.root.path().join("var/lib/apt/lists");
    let linked = |entry: fs::DirEntry| entry.path().is_symlink();
    assert!(
        fs::read_dir(&lists).unwrap().any(|entry| linked(entry.unwrap())),
        "apt links no list, so this says little"
    );
    std::os::unix::fs::symlink("/etc/passwd", lists.join("repo.test_debian_Packages")).unwrap();
    assert!(system.refused(&json!({"name": "tool"})).contains("leads out of the system root"));
}

#[test]
fn a_changed_repository_makes_its_lists_stale() {
    let Some(system) = System::new("a_changed_repository_makes_its_lists_stale") else { return };
    system.reply(&json!({"name": "lib"}), Execution::Actual).unwrap();
    let predicted = system.reply(&json!({"name": "tool"}), Execution::WhatIf).unwrap();
    assert_eq!(predicted.what_if, ["install tool 1:0.1"]);
    let enabled = json!({"name": "local", "enabled": true, "architectures": ["all", "amd64"]});
    system.add_repository(&enabled);
    let predicted = system.reply(&json!({"name": "tool"}), Execution::WhatIf).unwrap();
    assert_eq!(predicted.what_if.first().map(String::as_str), Some("update the package lists"));
}

/// A set that is to do what was planned installs just the versions of the plan, whatever newer ones the lists have that it
/// gets; where they are gone it changes nothing.
#[test]
fn what_was_planned_is_installed_or_nothing() {
    let Some(system) = System::new("what_was_planned_is_installed_or_nothing") else { return };
    system.reply(&json!({"name": "tool"}), Execution::Actual).unwrap();
    // The lists of today have an older version than the repository by now.
    let index = fs::read_to_string(system.repository.path().join("Packages")).unwrap();
    let without = |version: &str| {
        let stanzas =
            index.split("\n\n").filter(|stanza| !stanza.contains(&format!("Package: web\nVersion: {version}\n")));
        stanzas.flat_map(|stanza| [stanza, "\n\n"]).collect::<String>()
    };
    let (old, new) = (without("1.1"), index.clone());
    let publish = |index: &str| fs::write(system.repository.path().join("Packages"), index).unwrap();
    publish(&old);
    system.reply(&json!({"name": "lib", "updateLists": "always"}), Execution::Actual).unwrap();
    system.keep_lists();
    publish(&new);
    let desired = json!({"names": ["web"], "updateLists": "always"});
    let shown = |reply: &SetReply| reply.effects.creates.items().iter().map(ToString::to_string).collect::<Vec<_>>();
    let planned = system.reply(&desired, Execution::WhatIf).unwrap();
    let (predicted, cx) = (shown(&planned), system.bound_to(planned));
    assert!(predicted[0].starts_with("package lists (last updated 20"), "{predicted:?}");
    assert_eq!(predicted[1..], ["package web (1.1~rc1)"]);
    let set = |cx| provider("Stead/Package").set(cx, &Plain::new(desired.clone()), Execution::Actual);
    // With lists from which the planned version is gone.
    publish(&without("1.1~rc1"));
    let failed = set(&cx).err().unwrap();
    assert!(failed.message.contains("no version '1.1~rc1' of 'web'"), "{}", failed.message);
    assert_eq!((system.status("web"), failed.can_heal()), (None, false));
    // Again as planned, from old lists: they are updated, and have a newer version as well.
    publish(&old);
    system.keep_lists();
    publish(&new);
    assert_eq!(shown(&set(&cx).ok().unwrap())[1..], ["package web (1.1~rc1)"]);
    assert_eq!(system.status("web"), Some(installed("1.1~rc1")));
    // Without a plan, the newest one.
    system.reply(&json!({"name": "web", "version": "latest", "updateLists": "always"}), Execution::Actual).unwrap();
    assert_eq!(system.status("web"), Some(installed("1.1")));
}

#[test]
fn what_is_exported_is_in_state() {
    let Some(system) = System::new("what_is_exported_is_in_state") else { return };
    system.reply(&json!({"name": "web", "hold": true}), Execution::Actual).unwrap();
    let cx = system.world.context_for("Stead/Package");
    let exported = provider("Stead/Package").export(&cx, &Plain::default()).ok().unwrap();
    let names: Vec<_> = exported.iter().filter_map(|each| each.name.as_deref()).collect();
    assert_eq!(names, ["lib", "web"]);
    for found in exported {
        let tested = provider("Stead/Package").test(&cx, &Plain::new(found.properties.clone())).ok().unwrap();
        assert_eq!(tested.differing, Some(Vec::new()), "{:?}", found.properties);
    }
}

/// Whatever is asked for in whatever order: what a what-if says is what the set does, and a second set does nothing.
#[test]
fn a_sequence_of_states_is_predicted() {
    let Some(system) = System::new("a_sequence_of_states_is_predicted") else { return };
    system.reply(&json!({"name": "lib"}), Execution::Actual).unwrap();
    let states = [
        json!({"name": "web"}),
        json!({"name": "web", "version": "latest", "hold": true}),
        json!({"name": "web", "version": "< 1.1", "hold": false, "allowDowngrade": true}),
        json!({"name": "web", "version": "1.0"}),
        json!({"name": "web", "hold": false, "purge": true, "_exist": false}),
        json!({"names": ["conflicting", "tool"]}),
        json!({"names": ["web", "lib"], "automatic": true}),
        json!({"name": "lib", "_exist": false}),
        json!({"name": "lib", "hold": true}),
    ];
    let inputs = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(Config::default(), inputs);
    for _ in 0..stead_testkit::times("STEAD_STATES", 12) {
        let desired = select(states.to_vec()).new_tree(&mut runner).unwrap().current();
        let predicted = system.reply(&desired, Execution::WhatIf);
        if predicted.is_ok_and(|reply| reply.presumed.is_none()) {
            system.set(&desired);
        } else {
            system.refused(&desired);
        }
    }
}

/// Many packages in the desired state are read from the database once, and start no program.
#[test]
fn many_packages_are_tested_without_a_program() {
    let stanzas = (0..2000).map(|number| {
        let description = "Description: text\n that goes on\n for some lines\n".repeat(4);
        format!(
            "Package: p{number}\nStatus: install ok installed\nArchitecture: all\nVersion: 1.{number}\n{description}\n"
        )
    });
    let world = World::build("file var/lib/dpkg/status 0644\n");
    fs::write(world.root.path().join("var/lib/dpkg/status"), stanzas.collect::<String>()).unwrap();
    let (provider, cx) = (provider("Stead/Package"), world.context_for("Stead/Package"));
    // A program that was started would be ended at once, and the test with it.
    cx.cancel.cancel();
    let latest = Plain::new(json!({"name": "p1", "version": "latest"}));
    let failed = provider.test(&cx, &latest).err().map(|failure| failure.kind);
    assert!(matches!(failed, Some(FailureKind::Cancelled | FailureKind::Start)));
    let start = std::time::Instant::now();
    for number in 0..200 {
        let desired = Plain::new(json!({"name": format!("p{number}"), "version": format!(">= 1.{number}")}));
        assert_eq!(provider.test(&cx, &desired).ok().unwrap().in_desired_state, Some(true));
    }
    println!("200 packages out of 2000 tested in {:?}", start.elapsed());
}
