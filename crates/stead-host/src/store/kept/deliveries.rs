//! Things by the deliveries that made them, over the records of all documents that were delivered.

use std::path::Path;

use stead_system::folder::Folder;

use super::{
    FOLDER, FORM, Found, Managed, Owner, RecordReading, Slot, StoreError, Things, Undecodable, record, records_in,
};

impl Slot {
    /// The things of other documents on this root, as far as they are wanted.
    ///
    /// # Errors
    /// As [`Slot::others`].
    pub fn of_others(&self, is_wanted: impl Fn(&Managed) -> bool) -> Result<Things, StoreError> {
        let all = self.others()?.into_iter().flat_map(|kept| kept.managed.into_iter().chain(kept.left));
        Ok(all.filter(|(_, managed)| is_wanted(managed)).collect())
    }

    /// Takes things over from other documents on this root, as far as they are wanted: the records of those do not have them any
    /// more.
    ///
    /// Guarantees: whenever it ends, each of them is in a record, and what was not taken over is by the next call.
    ///
    /// # Errors
    /// As [`Slot::others`] and [`Slot::change`], and when the record is damaged, which a change would hide.
    pub fn take_over(&self, is_wanted: impl Fn(&Managed) -> bool) -> Result<(), StoreError> {
        let taken = self.of_others(&is_wanted)?;
        if taken.is_empty() {
            return Ok(());
        }
        if let RecordReading::Damaged(path) = self.read()? {
            return Err(StoreError::Damaged(path));
        }
        self.change(|kept| kept.take(taken))?;
        let is_other = |slot: &Self| slot.file != self.file && slot.owner.root == self.owner.root;
        for other in all(&self.folder)?.into_iter().filter(is_other) {
            other.change(|kept| {
                for things in [&mut kept.managed, &mut kept.left] {
                    things.retain(|_, managed| !is_wanted(managed));
                }
            })?;
        }
        Ok(())
    }

    /// Forgets in all records of a store by which deliveries things were made: deliveries are numbered anew.
    ///
    /// # Errors
    /// When the system fails. What is damaged or newer is left as it is.
    pub fn number_anew(store: &Path) -> Result<(), StoreError> {
        for slot in all(&store.join(FOLDER))? {
            match slot.read() {
                Ok(RecordReading::Known(_)) => slot.change(|kept| {
                    let all = kept.managed.values_mut().chain(kept.left.values_mut());
                    all.for_each(|managed| managed.since = 0);
                })?,
                Ok(RecordReading::Damaged(_)) | Err(StoreError::Newer { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The records in a folder whose owners are known.
fn all(folder: &Path) -> Result<Vec<Slot>, StoreError> {
    let Some(opened) = Folder::existing(folder)? else { return Ok(Vec::new()) };
    let mut slots = Vec::new();
    for file in records_in(&opened)? {
        let Found::Intact(json) = record::read(&opened, &file)? else { continue };
        let owner: Result<Owner, Undecodable> = record::decode(FORM, &json);
        slots.extend(owner.ok().map(|owner| Slot { folder: folder.to_owned(), file, owner }));
    }
    Ok(slots)
}

#[cfg(test)]
mod tests {
    use stead_core::id::TypeName;
    use stead_core::identity::DocumentIdentity;

    use super::*;

    fn slot(store: &Path, root: &str, name: &str) -> Slot {
        Slot::of(store, Path::new(root), &DocumentIdentity::of_file(Path::new(name)))
    }

    fn things(things: &[(&str, u64)]) -> Things {
        let thing = |since| {
            let type_name = TypeName::parse("Stead/File").unwrap();
            Managed { name: "f".into(), type_name, removal: None, created: true, since, after: Vec::new() }
        };
        things.iter().map(|(key, since)| ((*key).to_owned(), thing(*since))).collect()
    }

    /// Makes things, and leaves others behind.
    fn makes(slot: &Slot, managed: &[(&str, u64)], left: &[(&str, u64)]) {
        slot.change(|kept| {
            kept.managed.extend(things(managed));
            kept.left.extend(things(left));
        })
        .unwrap();
    }

    /// The things that are managed, and those that were left behind.
    fn has(slot: &Slot) -> [Vec<(String, u64)>; 2] {
        let RecordReading::Known(kept) = slot.read().unwrap() else { panic!("damaged") };
        [kept.managed, kept.left].map(|of| of.into_iter().map(|(key, managed)| (key, managed.since)).collect())
    }

    fn pairs(things: &[(&str, u64)]) -> Vec<(String, u64)> {
        things.iter().map(|(key, since)| ((*key).to_owned(), *since)).collect()
    }

    #[test]
    fn what_is_taken_over_is_in_one_record() {
        let store = tempfile::tempdir().unwrap();
        let (one, two) = (slot(store.path(), "/", "/one"), slot(store.path(), "/", "/two"));
        let elsewhere = slot(store.path(), "/srv/root", "/two");
        makes(&one, &[("a", 1)], &[("c", 1), ("e", 1)]);
        makes(&two, &[("b", 1), ("c", 3)], &[("f", 1), ("g", 4)]);
        makes(&elsewhere, &[("d", 3)], &[]);
        let is_newer = |managed: &Managed| managed.since > 2;
        assert_eq!(one.of_others(is_newer).unwrap(), things(&[("c", 3), ("g", 4)]));
        one.take_over(is_newer).unwrap();
        let expected = [
            [pairs(&[("a", 1), ("c", 3), ("g", 4)]), pairs(&[("e", 1)])],
            [pairs(&[("b", 1)]), pairs(&[("f", 1)])],
            [pairs(&[("d", 3)]), Vec::new()],
        ];
        assert_eq!([has(&one), has(&two), has(&elsewhere)], expected);
        // It ended between the two changes.
        makes(&two, &[("c", 3)], &[("g", 4)]);
        one.take_over(is_newer).unwrap();
        assert_eq!([has(&one), has(&two), has(&elsewhere)], expected);
        // What is damaged stays so, to be reported by the run.
        makes(&two, &[("h", 3)], &[]);
        std::fs::write(one.path(), "damaged").unwrap();
        assert!(matches!(one.take_over(is_newer), Err(StoreError::Damaged(path)) if path == one.path()));
        assert_eq!(one.read().unwrap(), RecordReading::Damaged(one.path()));
        assert_eq!(has(&two), [pairs(&[("b", 1), ("h", 3)]), pairs(&[("f", 1)])]);
    }

    #[test]
    fn numbers_that_count_anew_say_nothing_of_what_was_made_before() {
        let store = tempfile::tempdir().unwrap();
        let (one, two) = (slot(store.path(), "/", "/one"), slot(store.path(), "/", "/two"));
        Slot::number_anew(store.path()).unwrap();
        makes(&one, &[("a", 1), ("b", 7)], &[("d", 5)]);
        makes(&two, &[("c", 3)], &[]);
        std::fs::write(two.path(), "damaged").unwrap();
        Slot::number_anew(store.path()).unwrap();
        assert_eq!(has(&one), [pairs(&[("a", 0), ("b", 0)]), pairs(&[("d", 0)])]);
        assert_eq!(std::fs::read_to_string(two.path()).unwrap(), "damaged");
    }
}
