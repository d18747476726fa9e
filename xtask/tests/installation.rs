//! The files of an installation, which all packages have.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const UNIT: &str = "usr/lib/systemd/system/stead-agent.service";

/// The files besides the manual and the schemas, which lie in folders of their own.
const FILES: &[&str] = &[
    "usr/bin/stead",
    "usr/lib/stead/adapters/ansible/ansible.cfg",
    "usr/lib/stead/adapters/ansible/ansible.dsc.resource.json",
    "usr/lib/stead/adapters/ansible/ansible_actions.py",
    "usr/lib/stead/adapters/ansible/ansible_adapter.py",
    "usr/lib/stead/adapters/ansible/ansible_child.py",
    "usr/lib/stead/adapters/ansible/ansible_docs.py",
    "usr/lib/stead/adapters/ansible/ansible_load.py",
    "usr/lib/stead/adapters/ansible/ansible_run.py",
    "usr/lib/stead/adapters/common/adapter.py",
    "usr/lib/stead/adapters/common/start.py",
    "usr/lib/stead/adapters/common/stead_resource.py",
    "usr/lib/stead/adapters/idem/idem.dsc.resource.json",
    "usr/lib/stead/adapters/idem/idem_adapter.py",
    UNIT,
    "usr/share/bash-completion/completions/stead",
    "usr/share/doc/stead/THIRD-PARTY.gz",
    "usr/share/doc/stead/changelog.gz",
    "usr/share/doc/stead/stead.cdx.json.gz",
    "usr/share/fish/vendor_completions.d/stead.fish",
    "usr/share/licenses/stead/LICENSE-APACHE",
    "usr/share/licenses/stead/LICENSE-MIT",
    "usr/share/zsh/site-functions/_stead",
];

/// The files of the controller, in packages of Fedora.
const CONTROLLER: &[&str] = &[
    "usr/bin/stead-fleet",
    "usr/share/doc/stead-fleet/THIRD-PARTY.gz",
    "usr/share/doc/stead-fleet/changelog.gz",
    "usr/share/doc/stead-fleet/stead-fleet.cdx.json.gz",
    "usr/share/licenses/stead-fleet/LICENSE-APACHE",
    "usr/share/licenses/stead-fleet/LICENSE-MIT",
];

/// Makes a package of what the tests of the whole workspace built. `None`, which is reported, if they are not those.
fn package(test: &str, format: &str, name: &str, out: &Path) -> Option<String> {
    let program = Path::new(env!("CARGO_BIN_EXE_xtask")).with_file_name(name);
    if !program.exists() {
        stead_testkit::skip(test, &format!("{name} is not built"));
        return None;
    }
    Some(package_of(&program, format, name, out))
}

/// Makes a package of a program.
fn package_of(program: &Path, format: &str, name: &str, out: &Path) -> String {
    let mut package = Command::new(env!("CARGO_BIN_EXE_xtask"));
    package.args(["package", format, "--program", name, "--binary"]).arg(program).arg("--out").arg(out);
    succeeds(package.env("SOURCE_DATE_EPOCH", "0")).trim().to_owned()
}

#[test]
fn an_installation_has_what_belongs_to_it() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    if package("an_installation_has_what_belongs_to_it", "folder", "stead", folder.path()).is_none() {
        return;
    }
    let all = files(folder.path(), folder.path());
    let below = |path: &str| all.iter().filter(|file| file.starts_with(path)).count();
    let (manual, schemas) = ("usr/share/man/man1/", "usr/share/stead/schemas/");
    let schemas_there = fs::read_dir(stead_testkit::repository().join("schemas")).unwrap().count();
    assert!(below(manual) > 50 && below(schemas) == schemas_there, "{all:#?}");
    let rest = all.iter().filter(|file| !file.starts_with(manual) && !file.starts_with(schemas));
    assert_eq!(rest.map(String::as_str).collect::<Vec<_>>(), FILES);

    let program = folder.path().join(FILES[0]);
    assert_eq!(fs::metadata(&program).unwrap().permissions().mode() & 0o7777, 0o755);
    assert!(succeeds(Command::new(&program).arg("--version")).starts_with("stead "));
    let unit = fs::read_to_string(folder.path().join(UNIT)).unwrap();
    assert!(unit.contains("\nExecStart=\"/usr/bin/stead\" agent --state \"/var/lib/stead\" run\n"), "{unit}");
    // Nothing names the place where the files were put together.
    let staged = folder.path().display().to_string();
    for file in all.iter().filter(|file| *file != FILES[0]) {
        let unpacked = succeeds(Command::new("gzip").args(["-dcf"]).arg(folder.path().join(file)));
        assert!(!unpacked.contains(&staged), "{file}");
    }
}

/// The controller is a package of its own, which says what it is made of; that of the program has none of it.
#[test]
fn the_controller_is_a_package_of_its_own() {
    const TEST: &str = "the_controller_is_a_package_of_its_own";
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    if package(TEST, "folder", "stead-fleet", folder.path()).is_none() {
        return;
    }
    let all = files(folder.path(), folder.path());
    assert_eq!(all.iter().map(String::as_str).collect::<Vec<_>>(), CONTROLLER);
    let version = succeeds(Command::new(folder.path().join(CONTROLLER[0])).arg("--version"));
    assert!(version.starts_with("stead-fleet "), "{version}");
    let bill = succeeds(Command::new("gzip").args(["-dc"]).arg(folder.path().join(CONTROLLER[3])));
    assert!(bill.contains("\"name\": \"rusqlite\"") && !bill.contains("\"name\": \"lsp-server\""), "{bill}");
    if Command::new("dpkg-shlibdeps").arg("--version").output().is_err() {
        return stead_testkit::skip(TEST, "there is no dpkg-dev");
    }
    let made = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    // Which program it is says nothing here, and a small one is packed at once.
    let file = package_of(Path::new("/bin/true"), "deb", "stead-fleet", made.path());
    let fields = succeeds(Command::new("dpkg-deb").args(["--field", &file, "Package", "Depends", "Recommends"]));
    assert!(fields.contains("Package: stead-fleet\nDepends: libc6"), "{fields}");
    let listed = succeeds(Command::new("dpkg-deb").args(["--contents", &file]));
    let found = listed.lines().filter(|line| !line.ends_with('/'));
    let found: BTreeSet<&str> = found.filter_map(|line| line.rsplit_once(" ./")).map(|(_, path)| path).collect();
    let documents = ["changelog.Debian.gz", "copyright"].map(|name| format!("usr/share/doc/stead-fleet/{name}"));
    let expected = CONTROLLER[..4].iter().copied().chain(documents.iter().map(String::as_str));
    assert_eq!(found, expected.collect());
}

/// It has no unit, and nothing of whoever made it, or when.
#[test]
fn an_archive_has_an_installation_below_one_folder() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let package = package("an_archive_has_an_installation_below_one_folder", "tar", "stead", folder.path());
    let Some(archive) = package else { return };
    let name = Path::new(&archive).file_name().unwrap().to_str().unwrap().trim_end_matches(".tar.gz").to_owned();
    let mut list = Command::new("tar");
    list.args(["--list", "--verbose", "--numeric-owner", "--utc", "--full-time", "--file", &archive]);
    let listed = succeeds(&mut list);
    let mut found = BTreeSet::new();
    for line in listed.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [mode, owner, _, date, time, path] = words[..] else { panic!("{line}") };
        let expected = if mode.starts_with('d') || path.ends_with("bin/stead") { "rwxr-xr-x" } else { "rw-r--r--" };
        assert_eq!((&mode[1..], owner, date, time), (expected, "0/0", "1970-01-01", "00:00:00"), "{line}");
        found.insert(format!("usr{}", path.strip_prefix(&name).unwrap()));
    }
    let lacking: Vec<&str> = FILES.iter().copied().filter(|file| !found.contains(*file)).collect();
    assert_eq!(lacking, [UNIT]);
    // The time in the header of gzip.
    assert_eq!(fs::read(&archive).unwrap()[4..8], [0; 4]);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "what is not the result stays");
}

fn succeeds(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn files(root: &Path, folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let found = entries.flat_map(|path| {
        if path.is_dir() {
            return files(root, &path);
        }
        BTreeSet::from([path.strip_prefix(root).unwrap().display().to_string()])
    });
    found.collect()
}
