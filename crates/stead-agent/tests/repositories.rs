//! Releases in a Git repository, whoever has filled it.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::process::Command;

use stead_agent::{BadAddress, Fetch, FetchError, SourceAddress};
use stead_release::SourceFile;
use stead_system::Cancel;
use tempfile::TempDir;

/// A repository with a working tree, and a place for what is fetched of it.
struct Repository(TempDir);

impl Repository {
    fn new() -> Self {
        let repository = Self(tempfile::tempdir().unwrap());
        fs::create_dir(repository.path("tree")).unwrap();
        repository.git(&["init", "--quiet", "--initial-branch=main"]);
        repository
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn git(&self, arguments: &[&str]) {
        let names = ["-c", "user.name=ann", "-c", "user.email=ann@example.org", "-c", "core.hooksPath=/dev/null"];
        let mut command = Command::new("git");
        command.args(names).args(arguments).current_dir(self.path("tree")).env("HOME", self.0.path());
        let output = command.env("GIT_CONFIG_NOSYSTEM", "1").output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn commit(&self) {
        self.git(&["add", "--all", "--force"]);
        self.git(&["commit", "--quiet", "--message", "next"]);
    }

    fn put(&self, name: &str, content: &str) {
        let path = self.path("tree").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn reader(&self, reference: &str) -> Box<dyn Fetch> {
        let address = format!("git+file://{}#{reference}", self.path("tree").display());
        let address = SourceAddress::try_from(address).unwrap();
        address.reader(&self.path("kept"), &Cancel::default()).unwrap()
    }
}

fn text(read: Result<Option<Vec<u8>>, FetchError>) -> Option<String> {
    read.unwrap().map(|bytes| String::from_utf8(bytes).unwrap())
}

fn release(number: u64) -> SourceFile {
    SourceFile::Release("web".parse().unwrap(), number)
}

#[test]
fn a_look_reads_one_commit_of_a_branch_or_a_tag() {
    let repository = Repository::new();
    repository.put("root", "the root");
    repository.put("web/1.release", "one");
    repository.commit();
    repository.git(&["tag", "first"]);
    let mut files = repository.reader("main");
    assert_eq!(files.begin(), Ok(()));
    repository.put("web/2.release", "two");
    repository.put("web/1.release", "changed");
    repository.commit();
    let read = |files: &mut Box<dyn Fetch>, number| text(files.file(&release(number)));
    assert_eq!(text(files.file(&SourceFile::Root)).as_deref(), Some("the root"));
    assert_eq!((read(&mut files, 1).as_deref(), read(&mut files, 2)), (Some("one"), None), "as it was");
    assert_eq!(files.begin(), Ok(()));
    assert_eq!((read(&mut files, 1).as_deref(), read(&mut files, 2).as_deref()), (Some("changed"), Some("two")));
    assert_eq!(text(files.file(&SourceFile::Roster)), None);
    // Another process goes on with what was fetched, also with another reference.
    let mut files = repository.reader("first");
    assert_eq!(files.begin(), Ok(()));
    assert_eq!((read(&mut files, 1).as_deref(), read(&mut files, 2)), (Some("one"), None));
    let refused = repository.reader("none").begin().unwrap_err().reason;
    assert!(refused.contains("couldn't find remote ref none"), "{refused}");
}

/// Whatever can be in a repository that has programs run, leads elsewhere, or costs much.
#[test]
fn nothing_of_a_repository_runs_and_nothing_leads_out_of_it() {
    let repository = Repository::new();
    let mark = repository.path("ran");
    let script = format!("#!/bin/sh\ntouch '{}'\n", mark.display());
    repository.put("root", "the root $Id$");
    repository.put(".gitattributes", "* filter=evil ident text eol=crlf diff=evil merge=evil\n");
    repository.put(".gitmodules", "[submodule \"s\"]\n path = s\n url = ext::sh -c touch% ran\n update = !touch ran\n");
    repository.put("roster/roster", "a folder in its place");
    repository.put("signers/2", "two");
    for number in 0..1_000 {
        repository.put(&format!("many/{number}"), "x");
    }
    symlink("/etc/passwd", repository.path("tree/signers/1")).unwrap();
    repository.commit();
    let hooks = repository.path("tree/.git/hooks");
    fs::create_dir_all(&hooks).unwrap();
    for hook in ["post-checkout", "post-merge", "pre-receive", "reference-transaction", "post-upload-pack"] {
        fs::write(hooks.join(hook), &script).unwrap();
        fs::set_permissions(hooks.join(hook), Permissions::from_mode(0o755)).unwrap();
    }
    let program = hooks.join("post-checkout").display().to_string();
    let mut config = fs::read_to_string(repository.path("tree/.git/config")).unwrap();
    let _ = write!(
        config,
        "[filter \"evil\"]\n clean = {program}\n smudge = {program}\n process = {program}\n[core]\n fsmonitor = {program}\n \
         sshCommand = {program}\n pager = {program}\n[uploadpack]\n packObjectsHook = {program}\n"
    );
    fs::write(repository.path("tree/.git/config"), config).unwrap();
    let mut files = repository.reader("main");
    assert_eq!(files.begin(), Ok(()));
    assert_eq!(text(files.file(&SourceFile::Root)).as_deref(), Some("the root $Id$"), "to the byte");
    assert_eq!(text(files.file(&SourceFile::Signers(2))).as_deref(), Some("two"));
    for file in [SourceFile::Signers(1), SourceFile::Roster] {
        let refused = files.file(&file).unwrap_err().reason;
        assert_eq!(refused, format!("'{file}' is not a file of the commit"));
    }
    assert!(!mark.exists(), "something ran");
    // The repository of the agent has no working tree.
    let kept: Vec<_> =
        fs::read_dir(repository.path("kept/git")).unwrap().map(|each| each.unwrap().file_name()).collect();
    assert!(!kept.iter().any(|name| name == "many" || name == "root"), "{kept:?}");
}

#[test]
fn a_file_is_not_larger_than_one_of_its_kind_may_be() {
    let repository = Repository::new();
    let large = fs::File::create(repository.path("tree/root")).unwrap();
    large.set_len(stead_release::LONGEST as u64 + 1).unwrap();
    repository.commit();
    let mut files = repository.reader("main");
    assert_eq!(files.begin(), Ok(()));
    assert_eq!(files.file(&SourceFile::Root).unwrap_err().reason, "'root' is too large");
}

/// Power that fails and servers that end early leave files of git behind, of which each would stay, or keep a machine away for ever.
#[test]
fn what_git_leaves_behind_keeps_no_look_away_and_does_not_stay() {
    let repository = Repository::new();
    repository.put("root", "the root");
    repository.commit();
    let mut files = repository.reader("main");
    assert_eq!(files.begin(), Ok(()));
    let kept = repository.path("kept/git");
    let pack = fs::read_dir(kept.join("objects/pack")).unwrap().count();
    assert!(pack > 0, "a fetch of a few objects is a pack, too, of which tidying keeps count");
    let left = [
        "shallow.lock",
        "config.lock",
        "refs/stead/followed.lock",
        "objects/pack/tmp_pack_a",
        "objects/pack/tmp_idx_a",
    ];
    for name in left {
        fs::write(kept.join(name), "").unwrap();
    }
    repository.put("root", "another root");
    repository.commit();
    assert_eq!(files.begin(), Ok(()));
    assert_eq!(text(files.file(&SourceFile::Root)).as_deref(), Some("another root"));
    let stay: Vec<_> = left.into_iter().filter(|name| kept.join(name).exists()).collect();
    assert!(stay.is_empty(), "{stay:?}");
}

/// What nobody fetched is not fetched from where the settings of a repository say, by the programs that they name.
#[test]
fn an_object_that_is_missing_is_fetched_from_nowhere() {
    let repository = Repository::new();
    repository.put("root", "the root");
    repository.commit();
    let mut files = repository.reader("main");
    assert_eq!(files.begin(), Ok(()));
    let (kept, mark, program) = (repository.path("kept/git"), repository.path("ran"), repository.path("upload"));
    fs::write(&program, format!("#!/bin/sh\ntouch '{}'\n", mark.display())).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let settings = format!(
        "[core]\n repositoryformatversion = 1\n bare = true\n[extensions]\n partialClone = evil\n[remote \"evil\"]\n \
         promisor = true\n url = file://{}\n uploadpack = {}\n",
        repository.path("tree").display(),
        program.display()
    );
    fs::write(kept.join("config"), settings).unwrap();
    fs::remove_dir_all(kept.join("objects/pack")).unwrap();
    assert!(files.file(&SourceFile::Root).is_err());
    assert!(!mark.exists(), "something ran");
}

/// Each look at another commit is a pack, of which there are not more and more.
#[test]
fn what_is_kept_of_former_looks_is_tidied() {
    let repository = Repository::new();
    let mut files = repository.reader("main");
    let packs = || {
        let names = fs::read_dir(repository.path("kept/git/objects/pack")).unwrap();
        names.filter(|each| each.as_ref().unwrap().path().extension().is_some_and(|end| end == "pack")).count()
    };
    let (mut most, mut tidied) = (0, false);
    while !tidied {
        repository.put("root", &format!("root {most}"));
        repository.commit();
        assert_eq!(files.begin(), Ok(()));
        tidied = packs() < most;
        most = most.max(packs());
        assert!(most <= 64, "{most} packs");
    }
    assert_eq!((packs(), text(files.file(&SourceFile::Root))), (1, Some(format!("root {most}"))));
}

#[test]
fn an_address_says_what_is_followed_and_has_no_password() {
    let read = |text: &str| SourceAddress::try_from(text.to_owned());
    for text in [
        "/srv/fleet",
        "https://example.org/",
        "https://example.org:8443/fleet/",
        "http://127.0.0.1:8000/fleet/",
        "http://[::1]/",
        "http://localhost/fleet/",
        "git+https://example.org/fleet.git#main",
        "git+ssh://git@example.org/fleet#releases/web",
        "git+file:///srv/fleet#v1.0",
    ] {
        assert_eq!(read(text).map(String::from), Ok(text.to_owned()));
    }
    assert_eq!(read("https://example.org/fleet").map(String::from), Ok("https://example.org/fleet/".to_owned()));
    for text in ["https://ann:word@example.org/", "https://token@example.org/", "https://:word@example.org/"] {
        assert_eq!(read(text), Err(BadAddress::Password), "{text}");
    }
    for text in
        ["git+https://ann:word@example.org/x#main", "git+https://token@example.org/x#main", "git+ssh://a:b@h/x#m"]
    {
        assert_eq!(read(text), Err(BadAddress::Password), "{text}");
    }
    for text in [
        "fleet",
        "",
        "git+https://example.org/x",
        "git+https://example.org/x#",
        "git+https://example.org/x#-main",
        "git+https://example.org/x#a:b",
        "git+https://example.org/x?y#main",
        "git+http://example.org/x#main",
        "git+ext::sh -c true#main",
        "git+file:///srv/a b\n#main",
        "http://example.org/x",
        "http://127.0.0.1.example.org/",
        "https://",
        "https://example.org/x?y",
        "https://example.org/x#main",
        "httpx://example.org/",
    ] {
        assert_eq!(read(text), Err(BadAddress::Form), "{text}");
    }
    let place = tempfile::tempdir().unwrap();
    let address = format!("file://{}", place.path().join("none").display());
    let gone = read(&format!("git+{address}#main")).unwrap();
    let refused = gone.reader(&place.path().join("kept"), &Cancel::default()).unwrap().begin().unwrap_err().reason;
    assert!(refused.starts_with(&format!("git fetch of '{address}' ended with exit code")), "{refused}");
}
