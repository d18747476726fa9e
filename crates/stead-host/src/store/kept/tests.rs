use std::fs;
use std::thread;

use tempfile::TempDir;

use super::*;

fn slot(store: &TempDir, name: &str) -> Slot {
    Slot::of(store.path(), Path::new("/"), &DocumentIdentity::of_file(Path::new(name)))
}

fn kept(owed: &[&str]) -> Kept {
    Kept { owed: owed.iter().map(|path| (*path).to_owned()).collect(), ..Kept::default() }
}

fn owe(slot: &Slot, path: &str) {
    slot.change(|kept| kept.owed.extend([path.to_owned()])).unwrap();
}

#[test]
fn what_is_kept_is_found_again_by_root_and_document() {
    let store = tempfile::tempdir().unwrap();
    let (one, other) = (slot(&store, "/one"), slot(&store, "/other"));
    assert_eq!(one.read().unwrap(), RecordReading::Known(kept(&[])));
    assert!(!store.path().join(FOLDER).exists(), "reading creates nothing");
    owe(&one, "T:a");
    owe(&one, "T:b");
    assert_eq!(one.read().unwrap(), RecordReading::Known(kept(&["T:a", "T:b"])));
    assert_eq!(other.read().unwrap(), RecordReading::Known(kept(&[])));
    let elsewhere = Slot::of(store.path(), Path::new("/srv/root"), &DocumentIdentity::of_file(Path::new("/one")));
    assert_eq!(elsewhere.read().unwrap(), RecordReading::Known(kept(&[])));
    one.change(|kept| kept.owed.clear()).unwrap();
    assert!(!one.path().exists(), "nothing is kept of it");
}

#[test]
fn every_cut_and_every_flipped_bit_is_damage_and_what_is_damaged_is_set_aside() {
    let store = tempfile::tempdir().unwrap();
    let slot = slot(&store, "/one");
    owe(&slot, "T:a");
    let whole = fs::read(slot.path()).unwrap();
    let cut = (0..whole.len()).map(|length| whole[..length].to_vec());
    let flipped = (0..whole.len()).map(|at| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        bytes
    });
    for damaged in cut.chain(flipped) {
        fs::write(slot.path(), &damaged).unwrap();
        assert_eq!(slot.read().unwrap(), RecordReading::Damaged(slot.path()), "{}", String::from_utf8_lossy(&damaged));
    }
    let damaged = fs::read(slot.path()).unwrap();
    owe(&slot, "T:b");
    assert_eq!(slot.read().unwrap(), RecordReading::Known(kept(&["T:b"])));
    assert_eq!(fs::read(slot.path().with_extension("json.damaged")).unwrap(), damaged);
}

#[test]
fn a_record_of_another_document_is_damage() {
    let store = tempfile::tempdir().unwrap();
    let (one, other) = (slot(&store, "/one"), slot(&store, "/other"));
    owe(&one, "T:a");
    fs::copy(one.path(), other.path()).unwrap();
    assert_eq!(other.read().unwrap(), RecordReading::Damaged(other.path()));
}

#[test]
fn a_record_of_a_newer_version_is_refused_and_left_alone() {
    let store = tempfile::tempdir().unwrap();
    let slot = slot(&store, "/one");
    owe(&slot, "T:a");
    let newer = serde_json::json!({ "kept": { "owed": ["T:a"], "images": {} } });
    let newer = record::encode(FORM + 1, &newer).unwrap();
    fs::write(slot.path(), &newer).unwrap();
    let refused = |error: StoreError| matches!(error, StoreError::Newer { found, .. } if found == FORM + 1);
    assert!(slot.read().is_err_and(refused));
    assert!(slot.change(|kept| kept.owed.clear()).is_err_and(refused));
    assert_eq!(fs::read(slot.path()).unwrap(), newer);
}

#[test]
fn one_at_a_time_changes_a_record() {
    let store = tempfile::tempdir().unwrap();
    let slot = slot(&store, "/one");
    thread::scope(|scope| {
        for writer in 0..4 {
            let slot = slot.clone();
            scope.spawn(move || (0..10).for_each(|each| owe(&slot, &format!("T:{writer}-{each}"))));
        }
    });
    let RecordReading::Known(kept) = slot.read().unwrap() else { panic!("damaged") };
    assert_eq!(kept.owed.len(), 40);
}

fn thing(created: bool) -> Managed {
    let type_name = TypeName::parse("Stead/File").unwrap();
    Managed { name: "f".into(), type_name, removal: None, created, since: 0, after: Vec::new() }
}

fn creates(keys: &[&str]) -> Note {
    let created = keys.iter().map(|key| ((*key).to_owned(), thing(true))).collect();
    Note { created, ..Note::default() }
}

fn leaves(keys: &[&str]) -> Note {
    Note { leaving: keys.iter().map(|key| (*key).to_owned()).collect(), ..Note::default() }
}

/// The keys of what is known to have been created.
fn created(slot: &Slot) -> Vec<String> {
    let RecordReading::Known(kept) = slot.read().unwrap() else { panic!("damaged") };
    kept.managed.into_iter().filter_map(|(key, managed)| managed.created.then_some(key)).collect()
}

fn changed(slot: &Slot, keys: &[&str], left: &[&str]) {
    let things = |keys: &[&str]| keys.iter().map(|key| ((*key).to_owned(), thing(true))).collect();
    slot.change(|kept| (kept.managed, kept.left) = (things(keys), things(left))).unwrap();
}

/// The keys of what is managed, and of what was left behind.
fn keys(slot: &Slot) -> (Vec<String>, Vec<String>) {
    let RecordReading::Known(kept) = slot.read().unwrap() else { panic!("damaged") };
    (kept.managed.into_keys().collect(), kept.left.into_keys().collect())
}

/// All files of the folder.
fn files(slot: &Slot) -> BTreeMap<PathBuf, Vec<u8>> {
    let all = fs::read_dir(&slot.folder).unwrap().map(|entry| entry.unwrap().path());
    all.map(|path| (path.clone(), fs::read(&path).unwrap())).collect()
}

#[test]
fn of_things_only_the_part_that_changes_is_written() {
    let store = tempfile::tempdir().unwrap();
    let slot = slot(&store, "/one");
    changed(&slot, &["a"], &["b"]);
    let stamps = || {
        let all = files(&slot).into_keys().filter(|path| path.extension().is_some_and(|kind| kind != "json"));
        all.map(|path| (fs::metadata(&path).unwrap().modified().unwrap(), path)).collect::<BTreeSet<_>>()
    };
    let before = stamps();
    owe(&slot, "T:a");
    assert_eq!(stamps(), before, "a debt is not a thing");
    changed(&slot, &["a", "c"], &["b"]);
    let names = |of: BTreeSet<(_, PathBuf)>| of.into_iter().map(|(_, path)| path).collect::<BTreeSet<_>>();
    let stays = &before & &stamps();
    let ends = |path: &PathBuf| path.to_string_lossy().ends_with(".left.a");
    assert!(stays.iter().any(|(_, path)| ends(path)), "{stays:?}");
    assert!(names(stamps()).iter().any(|path| path.to_string_lossy().ends_with(".managed.b")));
    changed(&slot, &[], &[]);
    slot.change(|kept| kept.owed.clear()).unwrap();
    assert_eq!(stamps(), BTreeSet::new(), "no part is left");
}

#[test]
fn a_kill_between_any_two_writes_of_a_change_leaves_the_former_record_or_the_new_one() {
    let store = tempfile::tempdir().unwrap();
    let slot = slot(&store, "/one");
    changed(&slot, &["a"], &["b"]);
    let (former, record) = (files(&slot), slot.path());
    changed(&slot, &["c"], &["d"]);
    let new = files(&slot);
    let written: Vec<&PathBuf> = new.keys().filter(|path| former.get(*path) != new.get(*path)).collect();
    assert_eq!(written.len(), 3, "two parts and the record: {written:?}");
    let state = |is_there: &dyn Fn(&PathBuf) -> bool, later: bool| {
        fs::remove_dir_all(&slot.folder).unwrap();
        fs::create_dir(&slot.folder).unwrap();
        for (path, content) in former.iter().filter(|(path, _)| !later || is_there(path)) {
            fs::write(path, content).unwrap();
        }
        for path in written.iter().filter(|path| if **path == &record { later } else { later || is_there(path) }) {
            fs::write(path, &new[*path]).unwrap();
        }
    };
    let parts = written.iter().filter(|path| ***path != record).count();
    for count in 0..=parts {
        let some: Vec<&PathBuf> = written.iter().filter(|path| ***path != record).take(count).copied().collect();
        state(&|path| some.contains(&path), false);
        assert_eq!(keys(&slot), (vec!["a".to_owned()], vec!["b".to_owned()]), "{count} parts were written");
        changed(&slot, &["e"], &["b"]);
        assert_eq!(keys(&slot), (vec!["e".to_owned()], vec!["b".to_owned()]));
    }
    let replaced: Vec<&PathBuf> = former.keys().filter(|path| !new.contains_key(*path)).collect();
    for count in 0..=replaced.len() {
        let kept = &replaced[count..];
        state(&|path| kept.contains(&path) || new.contains_key(path), true);
        assert_eq!(keys(&slot), (vec!["c".to_owned()], vec!["d".to_owned()]), "{count} former parts were removed");
        changed(&slot, &["c"], &["e"]);
        assert_eq!(keys(&slot), (vec!["c".to_owned()], vec!["e".to_owned()]));
    }
}

#[test]
fn what_is_owed_outlives_damage_to_things_and_what_was_compared_lasts_as_long_as_they_do() {
    let store = tempfile::tempdir().unwrap();
    let slot = slot(&store, "/one");
    let text = String::new;
    let accounted = Accounted { document: text(), succeeded: text(), others: text(), left: BTreeMap::default() };
    changed(&slot, &["a"], &[]);
    slot.change(|kept| kept.accounted = Some(accounted.clone())).unwrap();
    owe(&slot, "T:a");
    let outline = || match slot.outline().unwrap() {
        RecordReading::Known(outline) => outline,
        RecordReading::Damaged(path) => panic!("{} is damaged", path.display()),
    };
    assert_eq!(outline().accounted, Some(accounted.clone()));
    slot.noting().note(creates(&["b"])).unwrap();
    assert_eq!((outline().accounted, outline().owed.len()), (None, 1), "nobody compared it");
    slot.change(|kept| kept.accounted = Some(accounted.clone())).unwrap();
    changed(&slot, &["a"], &[]);
    assert_eq!(outline().accounted, None);
    let part = files(&slot).into_keys().find(|path| path.to_string_lossy().contains(".managed.")).unwrap();
    fs::write(&part, "{}").unwrap();
    assert_eq!(slot.read().unwrap(), RecordReading::Damaged(part));
    slot.change(|_| {}).unwrap();
    assert_eq!(slot.read().unwrap(), RecordReading::Known(kept(&["T:a"])));
}

#[test]
fn what_is_damaged_stays_until_a_record_replaces_it_so_that_a_kill_makes_nothing_of_what_is_owed() {
    let store = tempfile::tempdir().unwrap();
    let slot = slot(&store, "/one");
    changed(&slot, &["a"], &["b"]);
    owe(&slot, "T:a");
    let part = files(&slot).into_keys().find(|path| path.to_string_lossy().contains(".managed.")).unwrap();
    for damaged in [part, slot.path()] {
        fs::write(&damaged, "{}").unwrap();
        // All that a process does that is killed before it has written anything.
        let folder = Folder::create(&slot.folder).unwrap();
        assert!(matches!(slot.intact(&folder).unwrap().behind, Behind::Damage));
        assert_eq!(slot.read().unwrap(), RecordReading::Damaged(damaged));
        owe(&slot, "T:a");
        assert_eq!(slot.read().unwrap(), RecordReading::Known(kept(&["T:a"])));
        let is_part = |path: &PathBuf| [".managed.", ".left."].iter().any(|part| path.to_string_lossy().contains(part));
        assert!(!files(&slot).keys().any(is_part), "parts of no record are removed");
    }
    fs::write(slot.path(), "{}").unwrap();
    slot.change(|_| {}).unwrap();
    assert_eq!(slot.read().unwrap(), RecordReading::Known(Kept::default()));
}

#[test]
fn a_record_of_the_third_form_is_read_and_its_things_are_moved() {
    let store = tempfile::tempdir().unwrap();
    let slot = slot(&store, "/one");
    owe(&slot, "T:a");
    let things = Things::from([("a".to_owned(), thing(true))]);
    let kept = serde_json::json!({"owed": ["T:a"], "managed": things});
    let third = serde_json::json!({"root": "/", "document": slot.owner.document, "kept": kept});
    fs::write(slot.path(), record::encode(3, &third).unwrap()).unwrap();
    assert_eq!(created(&slot), ["a"]);
    slot.change(|_| {}).unwrap();
    assert_eq!(created(&slot), ["a"]);
    let moved = String::from_utf8(fs::read(slot.path()).unwrap()).unwrap();
    assert!(moved.starts_with(&format!("{{\"form\":{FORM}")) && !moved.contains("Stead/File"), "{moved}");
}

#[test]
fn a_record_of_the_fourth_form_is_read_and_is_of_this_one_with_the_next_change() {
    let store = tempfile::tempdir().unwrap();
    let slot = slot(&store, "/one");
    changed(&slot, &["a"], &["b"]);
    let text = String::from_utf8(fs::read(slot.path()).unwrap()).unwrap();
    let json: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let kept = serde_json::json!({"root": json["root"], "document": json["document"], "kept": json["kept"]});
    fs::write(slot.path(), record::encode(4, &kept).unwrap()).unwrap();
    let fourth = fs::read_to_string(slot.path()).unwrap();
    assert!(fourth.starts_with("{\"form\":4,") && fourth.contains("parts"), "{fourth}");
    assert_eq!(keys(&slot), (vec!["a".to_owned()], vec!["b".to_owned()]));
    slot.change(|_| {}).unwrap();
    assert_eq!(fs::read_to_string(slot.path()).unwrap(), fourth, "nothing changed");
    slot.change(|kept| kept.managed.values_mut().for_each(|thing| thing.since = 7)).unwrap();
    let RecordReading::Known(moved) = slot.read().unwrap() else { panic!("damaged") };
    assert_eq!((moved.managed["a"].since, moved.left["b"].since), (7, 0));
    assert!(fs::read_to_string(slot.path()).unwrap().starts_with(&format!("{{\"form\":{FORM},")));
}

fn notes_at(slot: &Slot) -> PathBuf {
    slot.folder.join(notes_of(&slot.file))
}

#[test]
fn notes_are_read_with_the_record_and_taken_in_by_its_next_change() {
    let store = tempfile::tempdir().unwrap();
    let (one, other) = (slot(&store, "/one"), slot(&store, "/other"));
    let mut noting = one.noting();
    noting.note(creates(&["a", "b"])).unwrap();
    noting.note(leaves(&["a"])).unwrap();
    // Those of another process.
    one.noting().note(creates(&["c"])).unwrap();
    noting.note(creates(&["d"])).unwrap();
    assert_eq!(created(&one), ["b", "c", "d"]);
    let Ok([others]) = <[Kept; 1]>::try_from(other.others().unwrap()) else { panic!("there is one") };
    assert!(others.managed["b"].created);
    let notes = fs::read(notes_at(&one)).unwrap();
    one.change(|kept| drop(kept.managed.remove("b"))).unwrap();
    assert!(!notes_at(&one).exists());
    // A kill left them behind the record that has them.
    fs::write(notes_at(&one), notes).unwrap();
    assert_eq!(created(&one), ["c", "d"]);
    noting.note(creates(&["e"])).unwrap();
    assert_eq!(created(&one), ["c", "d", "e"]);
    one.change(|kept| kept.managed.clear()).unwrap();
    assert_eq!(fs::read_dir(&one.folder).unwrap().count(), 1, "nothing is left but the lock");
}

#[test]
fn what_was_noted_is_not_read_again_unless_another_process_wrote_since() {
    let store = tempfile::tempdir().unwrap();
    let slot = slot(&store, "/one");
    changed(&slot, &["a"], &["b"]);
    let mut noting = slot.noting();
    for (key, is_another_there) in [("c", false), ("d", true)] {
        noting.note(creates(&["b", key])).unwrap();
        noting.note(leaves(&["a"])).unwrap();
        if is_another_there {
            slot.noting().note(creates(&["e"])).unwrap();
        }
        let noted = slot.read().unwrap();
        noting.change(|_| {}).unwrap();
        assert_eq!(slot.read().unwrap(), noted);
        assert!(!notes_at(&slot).exists());
    }
    assert_eq!(created(&slot), ["b", "c", "d", "e"]);
    noting.note(creates(&["f"])).unwrap();
    let mut flipped = fs::read(notes_at(&slot)).unwrap();
    flipped[0] ^= 1;
    fs::write(notes_at(&slot), flipped).unwrap();
    noting.change(|kept| kept.owed.extend(["T:a".to_owned()])).unwrap();
    assert_eq!(created(&slot), ["b", "c", "d", "e", "f"]);
}

#[test]
fn a_cut_through_notes_loses_the_last_alone_and_any_other_damage_is_found() {
    let store = tempfile::tempdir().unwrap();
    let slot = slot(&store, "/one");
    let mut noting = slot.noting();
    for key in ["a", "b", "c"] {
        noting.note(creates(&[key])).unwrap();
    }
    let whole = fs::read(notes_at(&slot)).unwrap();
    for length in 0..whole.len() {
        fs::write(notes_at(&slot), &whole[..length]).unwrap();
        let lines = str::from_utf8(&whole[..length]).unwrap().matches('\n').count();
        assert_eq!(created(&slot).len(), lines.saturating_sub(1), "cut at {length}");
    }
    slot.noting().note(creates(&["d"])).unwrap();
    assert_eq!(created(&slot), ["a", "b", "d"], "what is incomplete is cut off first");
    for at in 0..whole.len() - 1 {
        let mut flipped = whole.clone();
        flipped[at] ^= 1;
        fs::write(notes_at(&slot), flipped).unwrap();
        assert_eq!(slot.read().unwrap(), RecordReading::Damaged(notes_at(&slot)), "flipped at {at}");
    }
    slot.change(|kept| kept.owed.extend(["T:a".to_owned()])).unwrap();
    assert_eq!(slot.read().unwrap(), RecordReading::Known(kept(&["T:a"])));
}

#[test]
fn after_another_boot_nothing_counts_that_was_not_flushed() {
    let store = tempfile::tempdir().unwrap();
    let slot = slot(&store, "/one");
    slot.change(|kept| drop(kept.managed.insert("a".to_owned(), thing(true)))).unwrap();
    let record = fs::read(slot.path()).unwrap();
    let json = &record[..record.iter().position(|byte| *byte == b'\n').unwrap()];
    let head = serde_json::json!({"form": FORM, "follows": sha256(json), "boot": "another"});
    let lines = [head, serde_json::to_value(creates(&["b"])).unwrap(), serde_json::to_value(leaves(&["a"])).unwrap()];
    let (_, mut notes) = crate::journal::Chain::default().wrap(&lines).unwrap();
    // What the disk has of what followed.
    notes.extend(b"\0\0\0\n\0\0");
    fs::write(notes_at(&slot), notes).unwrap();
    assert_eq!(created(&slot), [""; 0], "the file of 'b' may not be there, and 'a' may be another's");
    slot.noting().note(creates(&["c"])).unwrap();
    assert_eq!(created(&slot), ["c"]);
}

/// Puts a link, or a directory in which something of somebody is, in the place of a file.
fn put_in_place(path: &Path, is_link: bool) {
    if path.exists() {
        fs::remove_file(path).unwrap();
    }
    if is_link { std::os::unix::fs::symlink("nowhere", path) } else { fs::create_dir_all(path.join("of somebody")) }
        .unwrap();
}

/// Returns whether such a directory is beside the path.
fn is_aside(path: &Path) -> bool {
    let name = format!("{}.damaged-1", path.file_name().unwrap().to_string_lossy());
    path.with_file_name(name).join("of somebody").is_dir()
}

#[test]
fn something_else_in_the_place_of_a_file_is_damage_and_makes_way_for_the_next_one() {
    for (place, is_link) in
        ["json", "notes", "managed.a", "left.a"].into_iter().flat_map(|it| [(it, false), (it, true)])
    {
        let store = tempfile::tempdir().unwrap();
        let slot = slot(&store, "/one");
        changed(&slot, &["a"], &["b"]);
        owe(&slot, "T:a");
        let path = slot.path().with_extension(place);
        put_in_place(&path, is_link);
        assert_eq!(slot.read().unwrap(), RecordReading::Damaged(path.clone()), "{place}");
        owe(&slot, "T:a");
        assert_eq!(slot.read().unwrap(), RecordReading::Known(kept(&["T:a"])), "{place}");
        assert_eq!(is_aside(&path), !is_link, "{place}: what is of somebody stays");
    }
}

#[test]
fn something_else_where_a_file_is_written_next_makes_way_for_it() {
    for is_link in [false, true] {
        let store = tempfile::tempdir().unwrap();
        let slot = slot(&store, "/one");
        changed(&slot, &["a"], &["b"]);
        for place in ["managed.b", "json.damaged"] {
            put_in_place(&slot.path().with_extension(place), is_link);
        }
        changed(&slot, &["a", "c"], &["b"]);
        assert_eq!(keys(&slot), (vec!["a".to_owned(), "c".to_owned()], vec!["b".to_owned()]));
        fs::write(slot.path(), "{}").unwrap();
        owe(&slot, "T:a");
        assert_eq!(fs::read(slot.path().with_extension("json.damaged")).unwrap(), b"{}");
        assert_eq!(is_aside(&slot.path().with_extension("managed.b")), !is_link);
    }
}
