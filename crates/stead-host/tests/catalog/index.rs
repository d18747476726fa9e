//! The index of what was found.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;

use super::{Fake, Machine, age, resource};

/// One change of the files of a machine.
#[derive(Clone, Debug)]
enum Change {
    Write(usize, u8),
    InPlace(usize, u8),
    Remove(usize),
    Rename(usize, usize),
    Link(usize, usize),
    Swap,
    Age(usize),
    Mode(usize, u32),
}

const NAMES: [&str; 6] = [
    "a/1.dsc.resource.json",
    "a/2.dsc.resource.yaml",
    "a/x.txt",
    "b/1.dsc.resource.json",
    "b/list.dsc.manifests.json",
    "b/e.dsc.extension.json",
];

fn change() -> impl Strategy<Value = Change> {
    let name = 0..NAMES.len();
    prop_oneof![
        3 => (name.clone(), any::<u8>()).prop_map(|(name, content)| Change::Write(name, content)),
        3 => (name.clone(), any::<u8>()).prop_map(|(name, content)| Change::InPlace(name, content)),
        1 => name.clone().prop_map(Change::Remove),
        1 => (name.clone(), name.clone()).prop_map(|(from, to)| Change::Rename(from, to)),
        1 => (name.clone(), name.clone()).prop_map(|(from, to)| Change::Link(from, to)),
        1 => Just(Change::Swap),
        2 => name.clone().prop_map(Change::Age),
        1 => (name, prop::sample::select(vec![0o644, 0o600, 0o666])).prop_map(|(name, mode)| Change::Mode(name, mode)),
    ]
}

/// One of a few texts of the same length, so that size alone tells nothing; some of them are wrong.
fn content(seed: u8) -> String {
    let version = seed % 4;
    match seed % 11 {
        0 => format!("{{\"type\": \"A/R{version}\", \"version\": \"x.0.0\"}}"),
        1 => json!({"resources": [resource("A/L", &format!("{version}.0.0"))]}).to_string(),
        _ => resource(&format!("A/R{version}"), &format!("{version}.0.0")).to_string(),
    }
}

fn apply(machine: &Machine, change: &Change) {
    let path = |at: &usize| machine.path(NAMES[*at]);
    let _ = match change {
        Change::Write(at, seed) => {
            let temporary = machine.path("new");
            fs::write(&temporary, content(*seed)).and_then(|()| fs::rename(&temporary, path(at)))
        }
        Change::InPlace(at, seed) => fs::write(path(at), content(*seed)),
        Change::Remove(at) => fs::remove_file(path(at)),
        Change::Rename(from, to) => fs::rename(path(from), path(to)),
        Change::Link(from, to) => symlink(path(from), path(to)),
        Change::Swap => {
            let other = machine.path("other");
            fs::rename(machine.path("a"), &other)
                .and_then(|()| fs::rename(machine.path("b"), machine.path("a")))
                .and_then(|()| fs::rename(other, machine.path("b")))
        }
        Change::Age(at) => {
            let path = path(at);
            if path.exists() {
                age(&path);
            }
            Ok(())
        }
        Change::Mode(at, mode) => fs::set_permissions(path(at), fs::Permissions::from_mode(*mode)),
    };
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(stead_testkit::cases(stead_testkit::ALL_LAWS, 64)))]

    /// A run with an index sees what one without sees, however files change between two runs.
    #[test]
    fn the_index_never_changes_the_answer(rounds in prop::collection::vec(prop::collection::vec(change(), 0..6), 1..6)) {
        let mut machine = Machine::new();
        let cache = machine.cache.clone();
        for changes in rounds {
            for change in &changes {
                apply(&machine, change);
            }
            machine.cache.clone_from(&cache);
            let indexed = machine.seen();
            machine.cache = None;
            prop_assert_eq!(indexed, machine.seen());
        }
    }
}

/// The folders below those of modules are known by the index until they change, also where a search of that folder alone comes between.
#[test]
fn folders_of_modules_that_have_not_changed_are_known() {
    let mut machine = Machine::new();
    let modules = machine.path("modules");
    for folder in ["One/1.0.0", "Two"] {
        fs::create_dir_all(modules.join(folder)).unwrap();
    }
    machine.write("modules/One/1.0.0/m.dsc.resource.json", &resource("A/One", "1.0.0"));
    std::thread::sleep(Duration::from_millis(2100));
    machine.fake = Arc::new(Fake { modules: vec![modules.clone()], ..Fake::default() });
    let index = |machine: &Machine| fs::read_to_string(machine.path("cache/manifests.index")).unwrap();
    assert!(machine.seen().contains("A/One"));
    let first = index(&machine);
    assert!(first.contains("\"folders\":[\"One\",\"Two\"]"), "{first}");
    machine.directories.push(modules.clone());
    machine.seen();
    assert_eq!(index(&machine).matches("\"folders\"").count(), first.matches("\"folders\"").count());
    machine.directories.pop();
    fs::create_dir(modules.join("Two/2.0.0")).unwrap();
    machine.write("modules/Two/2.0.0/m.dsc.resource.json", &resource("A/Two", "1.0.0"));
    let seen = machine.seen();
    assert!(seen.contains("A/One") && seen.contains("A/Two"), "{seen}");
    fs::rename(modules.join("One"), machine.path("elsewhere")).unwrap();
    symlink(machine.path("elsewhere"), modules.join("One")).unwrap();
    let seen = machine.seen();
    assert!(!seen.contains("A/One") && seen.contains("A/Two"), "{seen}");
}

/// An index sees every change after the files have been left alone long enough for it to rely on their times; this is
/// what makes sure that the index is used at all.
#[test]
fn an_index_that_relies_on_times_sees_every_change() {
    let machine = Machine::new();
    NAMES.iter().zip(2..).for_each(|(name, seed)| fs::write(machine.path(name), content(seed)).unwrap());
    // What was just written is not settled, and is read again each time.
    std::thread::sleep(Duration::from_millis(2100));
    let first = machine.seen();
    let index = fs::read_to_string(machine.path("cache/manifests.index")).unwrap();
    assert!(index.contains("\"content\":{"), "{index}");
    assert_eq!(machine.seen(), first);
    let changes = [
        Change::InPlace(0, 7),
        Change::Write(1, 8),
        Change::Remove(3),
        Change::Write(3, 9),
        Change::Rename(0, 2),
        Change::Link(1, 0),
        Change::Swap,
        Change::Mode(4, 0o666),
    ];
    for change in changes {
        apply(&machine, &change);
        let indexed = machine.seen();
        let plain = Machine {
            cache: None,
            home: tempfile::tempdir().unwrap(),
            directories: machine.directories.clone(),
            user: machine.user,
            fake: machine.fake.clone(),
            built_in: machine.built_in.clone(),
        };
        assert_eq!(indexed, plain.seen(), "{change:?}");
    }
}
