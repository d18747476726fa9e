//! Files are cut off and changed: it is found, set aside and survived.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::json;
use sha2::{Digest, Sha256};
use stead_agent::{AgentState, Damage, Repair, Reports, Store, StoreError};
use stead_host::store::StoreError as PrivateError;
use stead_testkit::times;
use tempfile::TempDir;

use crate::script::{number_of, steps, take};
use crate::victim::{fast_directory, store_in};

const SEED: usize = 0;
const REPORTS: u32 = 40;

/// A store after all steps, and what its files hold.
struct Filled {
    _home: TempDir,
    directory: PathBuf,
    files: BTreeMap<PathBuf, Vec<u8>>,
    state: AgentState,
}

impl Filled {
    fn new() -> Self {
        let home = fast_directory();
        let directory = store_in(&home);
        let (mut store, mut state, repairs) = Store::open_with(&directory, None).unwrap();
        assert_eq!(repairs, []);
        for step in steps(SEED).into_iter().enumerate() {
            take(&mut state, step, |delivered| store.put(delivered)).unwrap();
            store.save(&state).unwrap();
        }
        store.keep_only(&std::collections::BTreeSet::new()).unwrap();
        let (reports, repair) = Reports::open(&store);
        assert_eq!(repair, None);
        for number in 0..REPORTS {
            reports.append(instant(number), &format!("job-{number}"), &json!({"text": "x".repeat(300)})).unwrap();
        }
        drop((store, reports));
        let mut files = BTreeMap::new();
        for entry in fs::read_dir(&directory).unwrap().chain(fs::read_dir(directory.join("documents")).unwrap()) {
            let path = entry.unwrap().path();
            if path.is_file() {
                files.insert(path.clone(), fs::read(path).unwrap());
            }
        }
        Self { _home: home, directory, files, state }
    }

    fn file(&self, name: &str) -> (PathBuf, &[u8]) {
        let path = self.directory.join(name);
        let content = &self.files[&path];
        (path, content)
    }

    /// One of the documents, by its name.
    fn document(&self) -> String {
        self.state.generations.values().next_back().unwrap().content.clone()
    }

    fn restore(&self) {
        for entry in
            fs::read_dir(&self.directory).unwrap().chain(fs::read_dir(self.directory.join("documents")).unwrap())
        {
            let path = entry.unwrap().path();
            if path.is_file() && !self.files.contains_key(&path) {
                fs::remove_file(path).unwrap();
            }
        }
        for (path, content) in &self.files {
            fs::write(path, content).unwrap();
        }
    }

    fn open(&self) -> (Store, AgentState, Vec<Repair>) {
        Store::open_with(&self.directory, None).unwrap()
    }
}

fn instant(number: u32) -> Timestamp {
    Timestamp::from_second(i64::from(number)).unwrap()
}

/// Random numbers that are the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    /// The content with something in it changed.
    fn damage(&mut self, content: &[u8]) -> Vec<u8> {
        let mut damaged = content.to_vec();
        let (at, to) = (self.below(content.len()), self.below(content.len()));
        match self.below(6) {
            0 => damaged[at.min(to)..at.max(to)].fill(0),
            1 => damaged.extend_from_slice(&content[at..]),
            2 => damaged.drain(at.min(to)..at.max(to)).for_each(drop),
            3 => (0..8).for_each(|_| damaged[self.below(content.len())] ^= 1 << self.below(8)),
            _ => damaged[at] ^= 1 << self.below(8),
        }
        if damaged == content {
            damaged[at] ^= 1;
        }
        damaged
    }
}

/// Damages a file so often, after cutting it off at so many lengths, and has each answer checked. Returns how often it did.
fn damage_all(filled: &Filled, name: &str, often: usize, check: impl Fn(&[u8])) -> usize {
    let (path, content) = filled.file(name);
    let stride = (content.len() / often.max(1)).max(1);
    let cut_off = (0..content.len()).step_by(stride).map(|length| content[..length].to_vec());
    let mut random = Random(7);
    let mut tried = 0;
    for damaged in cut_off.chain((0..often).map(|_| random.damage(content))) {
        filled.restore();
        fs::write(&path, &damaged).unwrap();
        check(&damaged);
        tried += 1;
    }
    filled.restore();
    tried
}

fn damaged_as(filled: &Filled, damage: Damage, name: &str) -> Vec<Repair> {
    vec![Repair { damage, set_aside: vec![filled.directory.join(format!("{name}.damaged"))] }]
}

fn often(share: usize) -> usize {
    times("STEAD_AGENT_DAMAGE", 500) * share / 100
}

#[test]
fn a_damaged_record_is_set_aside_and_the_former_one_used() {
    let (filled, last) = (Filled::new(), steps(SEED).len());
    let newest = damage_all(&filled, "state.json", often(30), |damaged| {
        let (store, state, repairs) = filled.open();
        let expected = damaged_as(&filled, Damage::Record, "state.json");
        assert_eq!((repairs, number_of(&store, &state, SEED).unwrap()), (expected, last - 1));
        assert_eq!(fs::read(filled.directory.join("state.json.damaged")).unwrap(), damaged);
        drop(store);
        let (_, again, repairs) = filled.open();
        assert_eq!((again, repairs), (state, vec![]));
    });
    let former = damage_all(&filled, "state.former.json", often(10), |_| {
        let (store, state, repairs) = filled.open();
        let expected = damaged_as(&filled, Damage::FormerRecord, "state.former.json");
        assert_eq!((repairs, number_of(&store, &state, SEED).unwrap()), (expected, last));
    });
    println!("state.json was damaged {newest} times, state.former.json {former} times");
}

#[test]
fn losing_both_records_is_reported() {
    let filled = Filled::new();
    for content in [Some("{}"), None] {
        filled.restore();
        for name in ["state.json", "state.former.json"] {
            match content {
                Some(content) => fs::write(filled.directory.join(name), content).unwrap(),
                None => fs::remove_file(filled.directory.join(name)).unwrap(),
            }
        }
        let (_, state, repairs) = filled.open();
        assert_eq!(state, AgentState::default());
        let [Repair { damage: Damage::AllRecords, set_aside }] = &repairs[..] else { panic!("{repairs:?}") };
        assert_eq!(set_aside.len(), if content.is_some() { 2 } else { 0 });
        assert_eq!(filled.open().2, []);
    }
}

#[test]
fn a_record_of_another_version_is_left_alone() {
    let filled = Filled::new();
    let json = r#"{"newest":"of a later version"}"#;
    let checksum = Sha256::digest(json).iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
    let record = format!("{json}\n{{\"sha256\":\"{checksum}\"}}\n");
    let path = filled.directory.join("state.json");
    fs::write(&path, &record).unwrap();
    assert!(matches!(Store::open_with(&filled.directory, None), Err(StoreError::Version { .. })));
    assert_eq!(fs::read_to_string(path).unwrap(), record);
}

#[test]
fn a_damaged_key_opens_nothing_and_is_replaced() {
    let filled = Filled::new();
    let document = filled.document();
    let tried = damage_all(&filled, "key", often(20), |_| {
        let (store, state, repairs) = filled.open();
        assert_eq!((&state, repairs), (&filled.state, damaged_as(&filled, Damage::Key, "key")));
        assert!(matches!(store.get(&document), Err(StoreError::DamagedDocument(_))));
        assert_eq!(
            store.get(&store.put(&crate::script::document(1, 9)).unwrap()).unwrap(),
            crate::script::document(1, 9)
        );
    });
    println!("the key was damaged {tried} times");
    fs::remove_file(filled.directory.join("key")).unwrap();
    assert_eq!(filled.open().2, [Repair { damage: Damage::Key, set_aside: vec![] }]);
}

#[test]
fn a_damaged_document_is_not_opened() {
    let filled = Filled::new();
    let name = filled.document();
    let tried = damage_all(&filled, &format!("documents/{name}"), often(20), |_| {
        let (store, _, repairs) = filled.open();
        assert_eq!(repairs, []);
        assert!(matches!(store.get(&name), Err(StoreError::DamagedDocument(_))));
    });
    println!("a document was damaged {tried} times");
    let (path, content) = filled.file(&format!("documents/{name}"));
    for (other, _) in filled.files.iter().filter(|(other, _)| other.parent() == path.parent() && **other != path) {
        fs::write(other, content).unwrap();
        let other = other.file_name().unwrap().to_str().unwrap();
        assert!(matches!(filled.open().0.get(other), Err(StoreError::DamagedDocument(_))), "one for another");
    }
}

#[test]
fn damaged_reports_are_set_aside_and_begun_anew() {
    // What it does when others changed its file is contained, and need not be shown.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !info.location().is_some_and(|location| location.file().contains("redb")) {
            hook(info);
        }
    }));
    let filled = Filled::new();
    let (store, _, _) = filled.open();
    let whole = Reports::open(&store).0.list(usize::MAX).unwrap();
    assert_eq!(whole.len(), usize::try_from(REPORTS).unwrap());
    let (set_aside, name) = (std::cell::Cell::new(0), "reports.redb");
    let tried = damage_all(&filled, name, often(20), |_| {
        let (reports, repair) = Reports::open(&store);
        let found = reports.list(usize::MAX).unwrap();
        if let Some(repair) = repair {
            assert_eq!(vec![repair], damaged_as(&filled, Damage::Reports, name));
            assert_eq!(found, []);
            set_aside.set(set_aside.get() + 1);
        } else {
            assert!(found.is_empty() || found == whole, "a part of it was read");
        }
        reports.append(instant(0), "next", &json!({})).unwrap();
        assert!(reports.get("next").unwrap().is_some());
    });
    println!(
        "reports.redb was damaged {tried} times, and begun anew {} times; else no part in use was hit",
        set_aside.get()
    );
}

#[test]
fn reports_are_listed_newest_first_and_pruned() {
    let home = fast_directory();
    let (store, _, _) = Store::open_with(&store_in(&home), None).unwrap();
    let (reports, repair) = Reports::open(&store);
    assert_eq!((repair, reports.list(9).unwrap()), (None, vec![]));
    assert_eq!(reports.get("a").unwrap(), None);
    for (number, job) in [(2, "b"), (1, "a"), (3, "c"), (4, "b")] {
        reports.append(instant(number), job, &json!({"number": number})).unwrap();
    }
    let listed = |reports: &Reports| {
        let list = reports.list(2).unwrap();
        list.into_iter().map(|stored| format!("{}{}", stored.job, stored.report["number"])).collect::<Vec<_>>()
    };
    assert_eq!(listed(&reports), ["b4", "c3"]);
    let found = reports.get("a").unwrap().unwrap();
    assert_eq!((found.at, found.report), (instant(1), json!({"number": 1})));
    let from = |number: u64, most: usize| {
        let found = reports.after(number, most).unwrap().into_iter();
        found.map(|stored| (stored.number, stored.job)).collect::<Vec<_>>()
    };
    let all = from(0, 9);
    assert_eq!(all.iter().map(|(_, job)| job.as_str()).collect::<Vec<_>>(), ["a", "c", "b"]);
    assert!(all.is_sorted_by(|one, next| one.0 < next.0), "{all:?}");
    assert_eq!(from(all[1].0, 1), all[1..2]);
    assert_eq!(from(all[2].0 + 1, 9), []);
    reports.prune(instant(4)).unwrap();
    assert_eq!((listed(&reports), reports.get("a").unwrap()), (vec!["b4".to_owned()], None));
    drop(reports);
    assert_eq!(listed(&Reports::open(&store).0), ["b4"]);
}

/// Whoever collects reports misses none that are written after a database was damaged and a new one begun.
#[test]
fn a_cursor_outlives_the_database() {
    let home = fast_directory();
    let (store, _, _) = Store::open_with(&store_in(&home), None).unwrap();
    let (reports, _) = Reports::open(&store);
    (1..9).for_each(|number| reports.append(instant(number), "former", &json!({})).unwrap());
    let cursor = reports.list(1).unwrap()[0].number + 1;
    drop(reports);
    std::fs::write(store_in(&home).join("reports.redb"), "damaged").unwrap();
    let (reports, repair) = Reports::open(&store);
    assert!(repair.is_some());
    reports.append(instant(10), "later", &json!({})).unwrap();
    assert_eq!(reports.after(cursor, 9).unwrap()[0].job, "later");
}

#[test]
fn reports_are_in_the_order_in_which_jobs_ended_and_bounded() {
    let home = fast_directory();
    let (store, _, _) = Store::open_with(&store_in(&home), None).unwrap();
    let reports = Reports::open(&store).0.with_limit(1000);
    let listed = || reports.list(9).unwrap().into_iter().map(|stored| stored.job).collect::<Vec<_>>();
    // The clock was ahead for one of them.
    for (at, job) in [(5, "a"), (900, "b"), (6, "c")] {
        reports.append(instant(at), job, &json!({})).unwrap();
    }
    assert_eq!(listed(), ["c", "b", "a"]);
    reports.append(instant(7), "large", &json!("x".repeat(980))).unwrap();
    assert_eq!(listed(), ["large", "c", "b", "a"]);
    reports.append(instant(8), "next", &json!("y".repeat(30))).unwrap();
    assert_eq!(listed(), ["next"], "the oldest ones make way");
    reports.append(instant(9), "larger", &json!("x".repeat(2000))).unwrap();
    assert_eq!(listed(), ["larger"], "the newest one stays");
}

/// A record that a newer version wrote may say what this one would pass over.
#[test]
fn a_record_of_a_newer_version_is_refused_and_left_alone() {
    let home = fast_directory();
    let directory = store_in(&home);
    drop(Store::open_with(&directory, None).unwrap());
    let newer = r#"{"form":99,"held":"somehow"}"#;
    let checksum = stead_core::digest::sha256(newer.as_bytes());
    let text = format!("{newer}\n{{\"sha256\":\"{checksum}\"}}\n");
    fs::write(directory.join("state.json"), &text).unwrap();
    let Err(refused) = Store::open_with(&directory, None) else { panic!("it was read") };
    assert!(matches!(refused, StoreError::Newer { found: 99, .. }), "{refused}");
    assert!(refused.to_string().contains("newer version of stead (form 99; this version reads up to 2)"), "{refused}");
    assert_eq!(fs::read_to_string(directory.join("state.json")).unwrap(), text);
}

#[test]
fn a_credential_takes_the_place_of_the_key() {
    let home = fast_directory();
    let (directory, credentials) = (store_in(&home), home.path());
    let document = crate::script::document(0, 10);
    let open = |credentials: Option<&Path>| Store::open_with(&directory, credentials);
    let before = open(None).unwrap().0.put(&document).unwrap();
    fs::write(credentials.join("stead-agent-key"), "too short").unwrap();
    assert!(matches!(open(Some(credentials)), Err(StoreError::Private(PrivateError::Credential(_)))));
    fs::write(credentials.join("stead-agent-key"), [7; 32]).unwrap();
    let (store, _, repairs) = open(Some(credentials)).unwrap();
    assert_eq!((store.get(&before).unwrap(), repairs), (document.clone(), vec![]));
    let after = store.put(&document).unwrap();
    assert_ne!(after, before);
    drop(store);
    fs::remove_file(directory.join("key")).unwrap();
    let (store, _, repairs) = open(Some(credentials)).unwrap();
    assert_eq!((store.get(&after).unwrap(), repairs), (document, vec![]));
    assert!(!directory.join("key").exists());
    drop(store);
    assert_eq!(open(None).unwrap().2, [Repair { damage: Damage::Key, set_aside: vec![] }]);
}
