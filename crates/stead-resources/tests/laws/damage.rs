//! Archives that are damaged, by accident or on purpose.

use std::fs;

use proptest::prelude::*;
use proptest::sample::{Index, select};
use stead_core::call::Execution;

use crate::states;
use crate::support::{World, plain, provider};

/// Cases with an archive of each format.
const CASES: [&str; 6] = ["drifted", "link_inside", "unpacked", "zip", "xz", "zst_frames"];

/// The archive of a case.
fn archive(case: &str) -> Vec<u8> {
    let path = stead_testkit::repository().join(format!("corpus/resources/archive/{case}.txt"));
    let text = fs::read_to_string(path).unwrap();
    let given = text.lines().find(|line| line.starts_with("archive a.") || line.starts_with("file a.")).unwrap();
    fs::read(World::build(given).root.path().join(given.split(' ').nth(1).unwrap())).unwrap()
}

/// Makes the checksums of the headers of tar right, so that what they say is believed.
fn believable(archive: &mut [u8]) {
    for header in archive.chunks_exact_mut(512).filter(|header| &header[257..262] == b"ustar") {
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }
}

fn damage() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![select(b"\0/.012357SLKxg\x80\xff".to_vec()), any::<u8>()];
    // Most of the bytes of a small archive of tar are zeros: what is changed is near the begin.
    let position = prop_oneof![3 => 0..700_usize, 1 => 0..12_000_usize];
    let cut = proptest::option::weighted(0.2, any::<Index>());
    let changes = proptest::collection::vec((position, byte), 0..5);
    (select(CASES.to_vec()), changes, cut).prop_map(|(case, changes, cut)| {
        let mut archive = archive(case);
        let length = archive.len();
        for (at, byte) in changes {
            archive[at % length] = byte;
        }
        believable(&mut archive);
        archive.truncate(cut.map_or(length, |cut| cut.index(length)));
        archive
    })
}

proptest! {
    #![proptest_config(states(1200))]

    /// It is refused as it is in what-if, or unpacked, and nothing else is touched.
    #[test]
    fn a_damaged_archive_is_refused_or_unpacked(archive in damage()) {
        let world = World::build_in_memory("file other 0644 \"x\"\nfile e/d/own 0600 \"x\"");
        fs::write(world.root.path().join("a"), archive).unwrap();
        let (provider, desired) = (provider("Stead/Archive"), plain(r#"{"path": "e/d", "source": "a"}"#));
        let (cx, before, imprint) = (world.context_for("Stead/Archive"), world.tree(), world.imprint());
        let predicted = provider.set(&cx, &desired, Execution::WhatIf);
        prop_assert_eq!(&world.imprint(), &imprint);
        match (predicted, provider.set(&cx, &desired, Execution::Actual)) {
            (Ok(predicted), Ok(set)) => {
                prop_assert_eq!(predicted.effects, set.effects);
                prop_assert_eq!(provider.test(&cx, &desired).unwrap().in_desired_state, Some(true));
                let after = world.tree();
                let is_new = |line: &&str| !before.lines().any(|former| former == *line);
                prop_assert_eq!(after.lines().filter(|line| !is_new(line)).count(), before.lines().count());
                let is_below = |line: &str| line.split(' ').nth(1).is_some_and(|path| path.starts_with("e/d/"));
                prop_assert!(after.lines().filter(is_new).all(is_below), "{after}");
            }
            (Err(_), Err(_)) => prop_assert_eq!(world.imprint(), imprint, "what was refused was begun"),
            (predicted, set) => prop_assert!(false, "what-if: {:?}, set: {:?}", predicted.err(), set.err()),
        }
    }
}
