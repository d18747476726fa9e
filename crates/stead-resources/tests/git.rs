//! Working trees of Git, from repositories of the test's own.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

mod support;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::{Value as Json, json};
use stead_core::call::{Execution, Failure};
use stead_host::provider::{Context, Plain, SetReply};
use support::{World, provider};

/// A repository `srv/r` below a root, with a commit on `main` that is tagged.
struct Origin {
    world: World,
}

impl Origin {
    /// `None` where there is no git, which is said.
    fn new(test: &str) -> Option<Self> {
        if Command::new("git").arg("--version").output().is_err() {
            stead_testkit::skip(test, "there is no program 'git'");
            return None;
        }
        let origin = Self { world: World::build("dir srv/r 0755\n") };
        origin.git(&["init", "--quiet", "--initial-branch=main"]);
        origin.commit("one");
        origin.git(&["tag", "-a", "v1", "-m", "first"]);
        Some(origin)
    }

    fn path(&self, below: &str) -> std::path::PathBuf {
        self.world.root.path().join(below)
    }

    fn git(&self, arguments: &[&str]) -> String {
        git_in(&self.path("srv/r"), arguments)
    }

    /// Commits a file with this text, and returns the number of the commit.
    fn commit(&self, text: &str) -> String {
        fs::write(self.path("srv/r/f"), text).unwrap();
        self.git(&["add", "f"]);
        self.git(&["commit", "--quiet", "-m", text]);
        self.git(&["rev-parse", "HEAD"])
    }

    fn context(&self) -> Context {
        self.world.context_for("Stead/Git")
    }

    /// Sets, as the what-if says.
    fn set(&self, desired: &Json) -> Result<SetReply, Failure> {
        let (git, desired) = (provider("Stead/Git"), Plain::new(desired.clone()));
        let before = self.world.imprint();
        let tested = git.test(&self.context(), &desired);
        let predicted = git.set(&self.context(), &desired, Execution::WhatIf);
        assert_eq!(self.world.imprint(), before, "a test or a what-if changed something");
        let set = git.set(&self.context(), &desired, Execution::Actual);
        match (&predicted, &set) {
            (Ok(predicted), Ok(set)) => {
                assert_eq!((&predicted.changed, &predicted.effects), (&set.changed, &set.effects));
                assert!(predicted.after.as_ref().unwrap().expose() == set.after.as_ref().unwrap().expose());
                assert_eq!(tested.ok().unwrap().differing, set.changed);
                let again = git.test(&self.context(), &desired).ok().unwrap();
                assert_eq!(again.in_desired_state, Some(true));
            }
            (predicted, Err(failure)) => {
                let is_predicted = predicted.as_ref().map_or(true, |reply| reply.presumed.is_some());
                assert!(is_predicted, "{}", failure.message);
            }
            (Err(failure), Ok(_)) => panic!("{}", failure.message),
        }
        set
    }

    fn sets(&self, desired: &Json) -> Vec<String> {
        self.set(desired).map_err(|failure| failure.message).unwrap().changed.unwrap()
    }

    fn refuses(&self, desired: &Json) -> String {
        self.set(desired).err().expect("it is refused").message
    }

    fn head(&self) -> String {
        let got = provider("Stead/Git").get(&self.context(), &Plain::new(json!({"path": "w"}))).ok().unwrap();
        got.expose().get("commit").unwrap().as_str().unwrap().to_owned()
    }

    fn text(&self) -> String {
        fs::read_to_string(self.path("w/f")).unwrap()
    }
}

fn git_in(directory: &Path, arguments: &[&str]) -> String {
    let author = ["-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgSign=false"];
    let output = Command::new("git").args(author).args(arguments).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn desired(revision: &str) -> Json {
    json!({"path": "w", "repository": "srv/r", "revision": revision})
}

fn with(mut desired: Json, property: &str, value: impl Into<Json>) -> Json {
    desired[property] = value.into();
    desired
}

#[test]
fn a_branch_stays_where_it_was_unless_updates_are_asked_for() {
    let Some(origin) = Origin::new("a_branch_stays_where_it_was_unless_updates_are_asked_for") else { return };
    assert_eq!(origin.sets(&desired("main")), ["_exist"]);
    assert_eq!(origin.text(), "one");
    let second = origin.commit("two");
    assert_eq!(origin.sets(&desired("main")), [""; 0]);
    assert_eq!(origin.sets(&with(desired("main"), "update", true)), ["revision"]);
    assert_eq!((origin.text().as_str(), origin.head()), ("two", second));
    assert_eq!(origin.sets(&with(desired("main"), "update", true)), [""; 0]);
}

#[test]
fn tags_and_commits_are_checked_out() {
    let Some(origin) = Origin::new("tags_and_commits_are_checked_out") else { return };
    let second = origin.commit("two");
    assert_eq!(origin.sets(&desired("v1")), ["_exist"]);
    assert_eq!(origin.text(), "one");
    assert_eq!(origin.sets(&desired(&second)), ["revision"]);
    assert_eq!((origin.text().as_str(), origin.head()), ("two", second));
    assert!(origin.refuses(&desired("v2")).starts_with("the repository has no branch or tag 'v2'"));
}

#[test]
fn a_shallow_clone_has_the_commits_asked_for() {
    let Some(origin) = Origin::new("a_shallow_clone_has_the_commits_asked_for") else { return };
    origin.commit("two");
    let repository = format!("file://{}", "/srv/r");
    let shallow = json!({"path": "w", "repository": repository, "revision": "main", "depth": 1});
    assert_eq!(origin.sets(&shallow), ["_exist"]);
    assert_eq!(git_in(&origin.path("w"), &["rev-list", "--count", "HEAD"]), "1");
}

#[test]
fn changes_are_kept_unless_force_is_stated() {
    let Some(origin) = Origin::new("changes_are_kept_unless_force_is_stated") else { return };
    origin.sets(&desired("v1"));
    let second = origin.commit("two");
    fs::write(origin.path("w/f"), "mine").unwrap();
    fs::write(origin.path("w/untracked"), "mine").unwrap();
    assert_eq!(origin.sets(&desired("v1")), [""; 0]);
    let refused = origin.refuses(&desired(&second));
    assert!(refused.starts_with("'f' was changed in the working tree"), "{refused}");
    let removed = json!({"path": "w", "_exist": false});
    assert!(origin.refuses(&removed).starts_with("'f' was changed in the working tree"));
    let reply = origin.set(&with(desired("v1"), "force", true)).map_err(|failure| failure.message).unwrap();
    assert_eq!(reply.changed.unwrap(), ["modified"]);
    assert_eq!(reply.effects.destroys.items()[0].to_string(), "content of w/f (4 bytes)");
    assert_eq!(origin.text(), "one");
    assert!(origin.path("w/untracked").exists());
    assert_eq!(origin.sets(&removed), ["_exist"]);
    assert!(!origin.path("w").exists());
}

#[test]
fn a_commit_that_only_head_has_is_kept() {
    let Some(origin) = Origin::new("a_commit_that_only_head_has_is_kept") else { return };
    origin.sets(&desired("v1"));
    git_in(&origin.path("w"), &["commit", "--quiet", "--allow-empty", "-m", "mine"]);
    let refused = origin.refuses(&desired("v1"));
    assert!(refused.starts_with("the commit that is checked out is on no branch"), "{refused}");
    assert_eq!(origin.sets(&with(desired("v1"), "force", true)), ["revision"]);
}

#[test]
fn nothing_that_a_repository_brings_is_run() {
    let Some(origin) = Origin::new("nothing_that_a_repository_brings_is_run") else { return };
    origin.sets(&desired("v1"));
    origin.commit("two");
    let hook = origin.path("w/.git/hooks/post-checkout");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, format!("#!/bin/sh\ntouch {}\n", origin.path("ran").display())).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    origin.sets(&with(desired("main"), "update", true));
    assert_eq!(origin.text(), "two");
    assert!(!origin.path("ran").exists());
}

#[test]
fn an_interrupted_clone_is_continued() {
    let Some(origin) = Origin::new("an_interrupted_clone_is_continued") else { return };
    git_in(origin.world.root.path(), &["init", "--quiet", "w"]);
    assert_eq!(origin.sets(&desired("main")), ["repository", "revision"]);
    assert_eq!(origin.text(), "one");
}

#[test]
fn credentials_are_in_no_argument_and_in_no_message() {
    let Some(origin) = Origin::new("credentials_are_in_no_argument_and_in_no_message") else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let (mut head, mut byte) = (Vec::new(), [0]);
        while !head.ends_with(b"\r\n\r\n") && client.read(&mut byte).is_ok_and(|read| read == 1) {
            head.push(byte[0]);
        }
        client.write_all(b"HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n").unwrap();
        String::from_utf8(head).unwrap()
    });
    let url = format!("http://user:canary-password@{address}/r.git");
    let stated = Plain::new(json!({"path": "w", "repository": url, "revision": "main"}));
    let failure = provider("Stead/Git").set(&origin.context(), &stated, Execution::WhatIf).err().unwrap();
    assert!(failure.message.contains("git ls-remote ended with exit code"), "{}", failure.message);
    let said = failure.message + &origin.world.trace.lock().unwrap().concat();
    assert!(!said.contains("canary"), "{said}");
    let asked = server.join().unwrap();
    assert!(asked.contains("Authorization: Basic dXNlcjpjYW5hcnktcGFzc3dvcmQ="), "{asked}");
}

#[test]
fn a_repository_that_an_instance_before_makes_is_presumed() {
    let world = World::build("");
    let stated = Plain::new(json!({"path": "w", "repository": "srv/r", "revision": "main"}));
    let planned = provider("Stead/Git").set(&world.context_for("Stead/Git"), &stated, Execution::WhatIf);
    let presumed = planned.map_err(|failure| failure.message).unwrap().presumed.unwrap();
    assert_eq!(presumed.paths, [world.root.path().join("srv/r")]);
}
