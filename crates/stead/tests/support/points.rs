//! Where a program can be killed, out of the log of strace.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The system calls in a log, each with how often its thread had made it.
pub(crate) fn points(log: &Path) -> BTreeSet<(String, usize)> {
    let mut counts = BTreeMap::<(String, String), usize>::new();
    let mut points = BTreeSet::new();
    for line in fs::read_to_string(log).unwrap().lines().filter(|line| !line.contains("resumed>")) {
        let Some((thread, (name, _))) =
            line.split_once(' ').and_then(|(thread, rest)| Some((thread, rest.trim_start().split_once('(')?)))
        else {
            continue;
        };
        let count = counts.entry((thread.to_owned(), name.to_owned())).or_default();
        *count += 1;
        points.insert((name.to_owned(), *count));
    }
    points
}
