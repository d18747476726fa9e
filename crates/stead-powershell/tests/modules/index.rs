//! The index follows every change.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use stead_host::fs::{Trust, User};
use stead_powershell::index::Index;
use stead_powershell::module::{Disk, Module, Modules};

struct Machine {
    folder: tempfile::TempDir,
    /// The present time of the index: later than all changes, so that their stamps are settled.
    now: SystemTime,
}

impl Machine {
    fn new() -> Self {
        let machine = Self { folder: tempfile::tempdir().unwrap(), now: SystemTime::now() + Duration::from_mins(1) };
        for name in ["A", "B"] {
            machine
                .write(&format!("modules/{name}/{name}.psd1"), "@{ ModuleVersion = '1.0'; Description = $env:WORD }");
        }
        machine
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn direct(&self, word: &str) -> Vec<Module> {
        let environment = |_: &str| Some(word.to_owned());
        let directories = [self.path("modules")];
        Modules { files: &Disk::new(Trust::Everyone), environment: &environment, directories: &directories }.read().0
    }

    fn indexed(&self, word: &str) -> Vec<Module> {
        let environment = |_: &str| Some(word.to_owned());
        let directories = [self.path("modules")];
        let modules =
            Modules { files: &Disk::new(Trust::Everyone), environment: &environment, directories: &directories };
        let cache = self.path("cache");
        Index { cache: &cache, user: User::current(), now: self.now }.read(&modules).0
    }

    /// The index gives what reading gives, twice, and that differs from before.
    #[track_caller]
    fn changed(&self, before: &mut Vec<Module>) {
        for _ in 0..2 {
            assert_eq!(self.indexed("w"), self.direct("w"));
        }
        let now = self.direct("w");
        assert_ne!(*before, now);
        *before = now;
    }
}

#[test]
fn the_index_follows_every_change() {
    let machine = Machine::new();
    let mut before = Vec::new();
    machine.changed(&mut before);
    machine.write("modules/A/A.psd1", "@{ ModuleVersion = '2.0'; Description = $env:WORD }");
    machine.changed(&mut before);
    machine.write("modules/A/A.psd1", "@{ ModuleVersion = '3.0'; Description = $env:WORD; RootModule = 'A.psm1' }");
    machine.changed(&mut before);
    machine.write("modules/A/A.psm1", "");
    machine.changed(&mut before);
    machine.write("modules/deep/C/C.psd1", "@{ ModuleVersion = '1.0' }");
    machine.changed(&mut before);
    machine.write("modules/A/4.0/A.psd1", "@{ ModuleVersion = '4.0' }");
    machine.changed(&mut before);
    machine.write("modules/B/dscresources/R/R.schema.mof", "class R : OMI_BaseResource { [Key] string Name; };");
    machine.changed(&mut before);
    machine.write("modules/B/dscresources/R/R.psm1", "");
    machine.changed(&mut before);
    machine.write("modules/B/dscresources/R/R.schema.mof", "class R : OMI_BaseResource { [Key] string Nome; };");
    machine.changed(&mut before);
    fs::rename(machine.path("modules/A"), machine.path("modules/Z")).unwrap();
    machine.changed(&mut before);
    fs::remove_dir_all(machine.path("modules/B/dscresources")).unwrap();
    machine.changed(&mut before);
    machine.write("elsewhere/1/D.psd1", "@{ ModuleVersion = '1.0' }");
    machine.write("elsewhere/2/D.psd1", "@{ ModuleVersion = '2.0' }");
    symlink("../elsewhere/1", machine.path("modules/D")).unwrap();
    machine.changed(&mut before);
    fs::remove_file(machine.path("modules/D")).unwrap();
    symlink("../elsewhere/2", machine.path("modules/D")).unwrap();
    machine.changed(&mut before);
    assert_ne!(machine.indexed("other"), before, "a variable that a manifest reads");
}

#[test]
fn a_damaged_index_counts_as_empty() {
    let machine = Machine::new();
    let read = machine.indexed("w");
    let file = machine.path("cache/powershell.index");
    let mut bytes = fs::read(&file).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&file, &bytes).unwrap();
    assert_eq!(machine.indexed("w"), read);
    assert_ne!(fs::read(&file).unwrap(), bytes, "it is written anew");
}

#[test]
fn what_has_not_settled_is_read_again() {
    let mut machine = Machine::new();
    machine.now = SystemTime::now();
    let read = machine.indexed("w");
    let index = fs::read_to_string(machine.path("cache/powershell.index")).unwrap();
    assert!(!index.contains("ModuleVersion") && !index.contains(Path::new("A.psd1").to_str().unwrap()), "{index}");
    assert_eq!(machine.indexed("w"), read);
}
