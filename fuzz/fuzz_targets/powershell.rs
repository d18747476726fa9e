//! Any bytes are read as each kind of file that a module consists of without a panic, and what is found lies within them.
#![no_main]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use stead_powershell_reader::class::{File, Modules, declared};
use stead_powershell_reader::manifest::{self, Context};
use stead_powershell_reader::mof;
use stead_powershell_reader::text::Text;

struct Nothing;

impl Modules for Nothing {
    fn using(&self, _: &Path, _: &str) -> Option<Arc<File>> {
        None
    }
}

fuzz_target!(|bytes: &[u8]| {
    let path = Arc::new(PathBuf::from("a"));
    let file = File::read(path.clone(), bytes);
    let text = file.text.as_str();
    assert!(file.script.problems.iter().all(|problem| text.is_char_boundary(problem.at)));
    declared(&file, &Nothing);

    let text = Text::decode(bytes);
    let context = Context { folder: "/m", environment: &|_| None, variables: None };
    if let Err(fault) = manifest::read(text.as_str(), &context) {
        assert!(fault.offset <= text.as_str().len());
    }

    mof::read(bytes, &path);
});
