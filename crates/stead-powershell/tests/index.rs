//! The index follows every change.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use stead_powershell::index::Index;
use stead_powershell_reader::module::{Disk, Module, Modules};
use stead_system::fs::{Trust, User};

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
        let read = self.search(word, |index, modules| index.read(modules).0);
        read.iter().map(|module| Module::clone(module)).collect()
    }

    /// Searches the index of this machine.
    fn search<T>(&self, word: &str, of: impl FnOnce(&Index<'_>, &Modules<'_>) -> T) -> T {
        let environment = |_: &str| Some(word.to_owned());
        let (files, directories) = (Disk::new(User::current().trust()), [self.path("modules")]);
        let modules = Modules { files: &files, environment: &environment, directories: &directories };
        let cache = self.path("cache");
        of(&Index { cache: Some(&cache), user: User::current(), now: self.now }, &modules)
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

/// A property with all that one can have, and one with nothing.
const CLASS: &str = "class Base { [DscProperty(Key)] [string] $Name }\n[DscResource()] class R : Base {\n# Said.\n\
    [DscProperty(Mandatory, NotConfigurable)] [ValidateSet('a')] [string] $A = 'a'\n[DscProperty()] $B\n}";

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
    machine.write("modules/A/A.psm1", CLASS);
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
fn what_is_damaged_is_read_again() {
    let machine = Machine::new();
    let read = machine.indexed("w");
    let file = machine.path("cache/powershell.index");
    let whole = fs::read(&file).unwrap();
    for at in (0..whole.len()).step_by(29).chain([whole.len() - 1]) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        for damaged in [bytes, whole[..at].to_vec()] {
            fs::write(&file, &damaged).unwrap();
            assert_eq!(machine.indexed("w"), read, "byte {at}");
            assert_ne!(fs::read(&file).unwrap(), damaged, "it is written anew, byte {at}");
        }
    }
}

#[test]
fn what_has_not_settled_is_read_again() {
    let mut machine = Machine::new();
    machine.now = SystemTime::now();
    let read = machine.indexed("w");
    let index = fs::read_to_string(machine.path("cache/powershell.index")).unwrap();
    assert!(index.contains("Unread") && !index.contains("Kept") && !index.contains("resources"), "{index}");
    assert_eq!(machine.indexed("w"), read);
}

/// A module that nobody asks for is not read, and what was read of it stays in the index.
#[test]
fn one_module_is_read_alone() {
    let machine = Machine::new();
    let one =
        |name| machine.search("w", |index, modules| index.search(modules).modules(index, modules, Some(name)).len());
    let index = || fs::read_to_string(machine.path("cache/powershell.index")).unwrap();
    assert_eq!([one("a"), one("none")], [1, 0]);
    assert_eq!([index().matches("Unread").count(), index().matches("Kept").count()], [1, 1]);
    assert_eq!(machine.indexed("w"), machine.direct("w"));
    machine.write("modules/A/A.psd1", "@{ ModuleVersion = '2.0' }");
    machine.write("modules/C/C.psd1", "@{ ModuleVersion = '1.0' }");
    assert_eq!(one("C"), 1);
    assert_eq!([index().matches("Unread").count(), index().matches("Kept").count()], [0, 3]);
    assert_eq!(machine.indexed("w"), machine.direct("w"));
}

/// Rights of a directory above change nothing below it.
#[test]
fn a_directory_that_others_can_change_is_left_out_though_the_index_has_it() {
    if !stead_testkit::is_root("a_directory_that_others_can_change_is_left_out_though_the_index_has_it") {
        return;
    }
    let machine = Machine::new();
    assert_eq!(machine.indexed("w").len(), 2);
    fs::set_permissions(machine.folder.path(), Permissions::from_mode(0o777)).unwrap();
    assert_eq!(
        machine.search("w", |index, modules| (index.read(modules).0.len(), index.search(modules).errors.len())),
        (0, 1)
    );
}
