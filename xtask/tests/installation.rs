//! The files of an installation, which all packages have.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// What is there besides the manual and the schemas, which lie in folders of their own.
const FILES: &[&str] = &[
    "usr/bin/stead",
    "usr/lib/systemd/system/stead-agent.service",
    "usr/share/bash-completion/completions/stead",
    "usr/share/doc/stead/THIRD-PARTY.gz",
    "usr/share/doc/stead/changelog.gz",
    "usr/share/fish/vendor_completions.d/stead.fish",
    "usr/share/licenses/stead/LICENSE-APACHE",
    "usr/share/licenses/stead/LICENSE-MIT",
    "usr/share/zsh/site-functions/_stead",
];

#[test]
fn an_installation_has_what_belongs_to_it() {
    // Tests of the whole workspace build it, too.
    let program = Path::new(env!("CARGO_BIN_EXE_xtask")).with_file_name("stead");
    if !program.exists() {
        return stead_testkit::skip("an_installation_has_what_belongs_to_it", "stead is not built");
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut package = Command::new(env!("CARGO_BIN_EXE_xtask"));
    package.args(["package", "folder", "--binary"]).arg(program).arg("--out").arg(folder.path());
    succeeds(package.env("SOURCE_DATE_EPOCH", "0"));
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
    let unit = fs::read_to_string(folder.path().join(FILES[1])).unwrap();
    assert!(unit.contains("\nExecStart=\"/usr/bin/stead\" agent --state \"/var/lib/stead\" run\n"), "{unit}");
    // Nothing names the place where the files were put together.
    let staged = folder.path().display().to_string();
    for file in all.iter().filter(|file| *file != FILES[0]) {
        let unpacked = succeeds(Command::new("gzip").args(["-dcf"]).arg(folder.path().join(file)));
        assert!(!unpacked.contains(&staged), "{file}");
    }
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
