//! Git as another user, whom the working tree belongs to.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::process::Command;

use serde_json::{Value as Json, json};
use stead_core::call::Execution;
use stead_host::provider::Plain;

use super::{Origin, git_in, with};
use crate::support::provider;

/// A user whom every system has.
const UID: u32 = 1;

/// An origin, and the user `deploy`, who can read it. `None` where the test is not run by root, or there are no programs to
/// become another user, which is said.
fn origin(test: &str) -> Option<Origin> {
    if !stead_testkit::is_root(test) {
        return None;
    }
    if Command::new("setpriv").arg("--version").output().is_err() {
        stead_testkit::skip(test, "there is no program 'setpriv'");
        return None;
    }
    let origin = Origin::new(test)?;
    fs::create_dir(origin.path("etc")).unwrap();
    fs::write(origin.path("etc/passwd"), format!("deploy:x:{UID}:{UID}::/home/deploy:/bin/sh\n")).unwrap();
    fs::set_permissions(origin.world.root.path(), fs::Permissions::from_mode(0o755)).unwrap();
    own(&origin, "srv/r", UID);
    Some(origin)
}

fn own(origin: &Origin, path: &str, uid: u32) {
    let status = Command::new("chown").args(["-R", &format!("{uid}:{uid}")]).arg(origin.path(path)).status();
    assert!(status.unwrap().success());
}

/// Commits, which git only does as the owner.
fn commit(origin: &Origin, text: &str) {
    own(origin, "srv/r", 0);
    origin.commit(text);
    own(origin, "srv/r", UID);
}

fn desired(path: &str) -> Json {
    json!({"path": path, "repository": "srv/r", "revision": "main", "user": "deploy"})
}

fn owner(origin: &Origin, path: &str) -> (u32, u32) {
    let metadata = fs::symlink_metadata(origin.path(path)).unwrap();
    (metadata.uid(), metadata.gid())
}

#[test]
fn a_working_tree_belongs_to_the_user_whom_git_runs_as() {
    let Some(origin) = origin("a_working_tree_belongs_to_the_user_whom_git_runs_as") else { return };
    assert_eq!(origin.sets(&desired("w")), ["_exist"]);
    for path in ["w", "w/f", "w/.git", "w/.git/HEAD", "w/.git/config", "w/.git/index"] {
        assert_eq!(owner(&origin, path), (UID, UID), "{path}");
    }
    // What the repository names runs as the user, in a session without root's terminal, and without its groups.
    let ran = origin.path("w/.git/ran");
    let filter = format!("{{ id -u; id -G; echo $HOME; ps -o tty= -p $$; }} >{}; cat", ran.display());
    own(&origin, "w", 0);
    git_in(&origin.path("w"), &["config", "filter.x.smudge", &filter]);
    fs::create_dir_all(origin.path("w/.git/info")).unwrap();
    fs::write(origin.path("w/.git/info/attributes"), "f filter=x\n").unwrap();
    own(&origin, "w", UID);
    commit(&origin, "two");
    assert_eq!(origin.sets(&with(desired("w"), "update", true)), ["revision"]);
    assert_eq!((origin.text().as_str(), owner(&origin, "w/f")), ("two", (UID, UID)));
    let ran = fs::read_to_string(ran).unwrap();
    assert_eq!(ran.split_whitespace().collect::<Vec<_>>(), ["1", "1", "/home/deploy", "?"], "{ran}");

    fs::write(origin.path("w/f"), "mine").unwrap();
    assert_eq!(origin.sets(&with(desired("w"), "force", true)), ["modified"]);
    assert_eq!(origin.sets(&with(with(desired("w"), "force", true), "_exist", false)), ["_exist"]);
    assert!(!origin.path("w").exists());
}

/// Settings of users for all of their repositories do not count: the files that are checked out would depend on them.
#[test]
fn attributes_of_the_user_are_ignored() {
    let Some(origin) = origin("attributes_of_the_user_are_ignored") else { return };
    let home = origin.path("home");
    let passwd = format!("deploy:x:{UID}:{UID}::{}:/bin/sh\n", home.display());
    fs::write(origin.path("etc/passwd"), passwd).unwrap();
    fs::create_dir_all(home.join(".config/git")).unwrap();
    fs::write(home.join(".config/git/attributes"), "f text eol=crlf\n").unwrap();
    own(&origin, "home", UID);
    commit(&origin, "a\n");
    assert_eq!(origin.sets(&desired("w")), ["_exist"]);
    assert_eq!(origin.text(), "a\n");
}

#[test]
fn git_runs_as_a_user_only_for_what_belongs_to_this_one() {
    let Some(origin) = origin("git_runs_as_a_user_only_for_what_belongs_to_this_one") else { return };
    fs::create_dir(origin.path("w")).unwrap();
    assert!(origin.refuses(&desired("w")).contains("/w' does not belong to the user 'deploy'"));
    // An instance before may change that.
    let planned = provider("Stead/Git").set(&origin.context(), &Plain::new(desired("w")), Execution::WhatIf);
    assert_eq!(*planned.ok().unwrap().presumed.unwrap().paths, [origin.path("w")]);
    chown(origin.path("w"), Some(UID), None).unwrap();
    assert_eq!(origin.sets(&desired("w")), ["_exist"]);
    commit(&origin, "two");
    chown(origin.path("w/.git"), Some(0), None).unwrap();
    let updated = with(desired("w"), "update", true);
    assert!(
        origin.refuses(&with(updated.clone(), "force", true)).contains("w/.git' does not belong to the user 'deploy'")
    );
    chown(origin.path("w/.git"), Some(2), None).unwrap();
    assert!(origin.refuses(&updated).contains("belongs to another user"));
}

/// Who states root asks for what happens without a user: others could have written what git would run.
#[test]
fn root_as_the_user_runs_git_only_where_nobody_else_writes() {
    let Some(origin) = origin("root_as_the_user_runs_git_only_where_nobody_else_writes") else { return };
    own(&origin, "srv/r", 0);
    let passwd = fs::read_to_string(origin.path("etc/passwd")).unwrap() + "root:x:0:0::/root:/bin/sh\n";
    fs::write(origin.path("etc/passwd"), passwd).unwrap();
    let stated = with(desired("w"), "user", "root");
    assert_eq!(origin.sets(&stated), ["_exist"]);
    chown(origin.path("w/.git/config"), Some(UID), None).unwrap();
    let refused = origin.refuses(&with(with(stated, "update", true), "force", true));
    assert!(refused.contains("git would run programs as root that a repository names"), "{refused}");
}

#[test]
fn a_user_that_an_instance_before_creates_is_presumed() {
    let Some(origin) = origin("a_user_that_an_instance_before_creates_is_presumed") else { return };
    let stated = with(desired("w"), "user", "later");
    assert!(origin.refuses(&stated).contains("there is no user 'later'"));
    let planned = provider("Stead/Git").set(&origin.context(), &Plain::new(stated), Execution::WhatIf);
    assert_eq!(*planned.ok().unwrap().presumed.unwrap().paths, [origin.path("etc/passwd/later")]);
}
