//! Any bytes are read as a script without a panic, and what is found lies within them.
#![no_main]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use stead_powershell::class::{File, Modules, declared};

struct Nothing;

impl Modules for Nothing {
    fn using(&self, _: &Path, _: &str) -> Option<Arc<File>> {
        None
    }
}

fuzz_target!(|bytes: &[u8]| {
    let file = File::read(Arc::new(PathBuf::from("a.psm1")), bytes);
    assert!(file.script.problems.iter().all(|problem| problem.at <= file.text.as_str().len()));
    declared(&file, &Nothing);
});
