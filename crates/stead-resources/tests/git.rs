//! Working trees of Git, from repositories of the test's own.

#![expect(clippy::disallowed_methods, reason = "a test looks at its own files as it likes")]
#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

#[path = "git/laws.rs"]
mod laws;
#[path = "git/losses.rs"]
mod losses;
mod support;
#[path = "git/users.rs"]
mod users;

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use stead_core::call::{Execution, Failure, FailureKind};
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
                // What is in the way of a commit that is not there yet cannot be known.
                let is_predicted = predicted.as_ref().map_or(true, |reply| reply.presumed.is_some())
                    || failure.message.contains("was just fetched");
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
    assert!(refused.starts_with("the commit that is checked out ("), "{refused}");
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

/// A server that answers one request, and returns what it was asked.
fn server(answer: &'static str) -> (SocketAddr, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let (mut head, mut byte) = (Vec::new(), [0]);
        while !head.ends_with(b"\r\n\r\n") && client.read(&mut byte).is_ok_and(|read| read == 1) {
            head.push(byte[0]);
        }
        client.write_all(answer.as_bytes()).unwrap();
        String::from_utf8(head).unwrap()
    });
    (address, server)
}

const NOT_FOUND: &str = "HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

#[test]
fn credentials_are_in_no_argument_and_in_no_message() {
    let Some(origin) = Origin::new("credentials_are_in_no_argument_and_in_no_message") else { return };
    for (stated, sent) in [
        ("user:canary-password@", "Authorization: Basic dXNlcjpjYW5hcnktcGFzc3dvcmQ="),
        ("canary-token@", "Authorization: Basic Y2FuYXJ5LXRva2VuOg=="),
    ] {
        let (address, server) = server(NOT_FOUND);
        let stated = with(desired("main"), "repository", format!("http://{stated}{address}/r.git"));
        let failure =
            provider("Stead/Git").set(&origin.context(), &Plain::new(stated), Execution::WhatIf).err().unwrap();
        assert!(failure.message.contains("git ls-remote ended with exit code"), "{}", failure.message);
        let said = failure.message + &origin.world.trace.lock().unwrap().concat();
        assert!(!said.contains("canary"), "{said}");
        let asked = server.join().unwrap();
        assert!(asked.contains(sent), "{asked}");
    }
}

#[test]
fn credentials_do_not_follow_a_redirect() {
    let Some(origin) = Origin::new("credentials_do_not_follow_a_redirect") else { return };
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    let redirect = format!("location: http://{}/r.git/info/refs\r\n", elsewhere.local_addr().unwrap());
    let answer = format!("HTTP/1.1 302 Found\r\n{redirect}connection: close\r\ncontent-length: 0\r\n\r\n");
    let (address, server) = server(answer.leak());
    let stated = with(desired("main"), "repository", format!("http://user:word@{address}/r.git"));
    let failure = provider("Stead/Git").set(&origin.context(), &Plain::new(stated), Execution::WhatIf).err().unwrap();
    assert!(failure.message.ends_with("set 'repository' to the final URL"), "{}", failure.message);
    server.join().unwrap();
    assert_eq!(elsewhere.accept().err().unwrap().kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn credentials_that_somebody_stored_are_neither_shown_nor_kept() {
    let Some(origin) = Origin::new("credentials_that_somebody_stored_are_neither_shown_nor_kept") else { return };
    origin.sets(&desired("v1"));
    let work_tree = origin.path("w");
    let commit = origin.head();
    for stored in ["https://canary-token@host.example/r.git", "https://user:canary@host.example:99999/r.git"] {
        git_in(&work_tree, &["config", "remote.origin.url", stored]);
        let stated = json!({"path": "w", "repository": "https://host.example/r.git", "revision": commit});
        let tested = provider("Stead/Git").test(&origin.context(), &Plain::new(stated.clone())).ok().unwrap();
        let shown = tested.actual.unwrap().to_json().to_string();
        assert!(shown.contains("https://host.example") && !shown.contains("canary"), "{shown}");
        assert_eq!(origin.sets(&stated), ["repository"]);
        assert!(!fs::read_to_string(work_tree.join(".git/config")).unwrap().contains("canary"));
    }
}

#[test]
fn a_server_that_says_nothing_does_not_hang_the_call() {
    let Some(origin) = Origin::new("a_server_that_says_nothing_does_not_hang_the_call") else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stated = with(desired("main"), "repository", format!("http://{}/r.git", listener.local_addr().unwrap()));
    let (cx, begin) = (Context { deadline: Duration::from_secs(1), ..origin.context() }, Instant::now());
    let failure = provider("Stead/Git").set(&cx, &Plain::new(stated), Execution::Actual).err().unwrap();
    assert_eq!(failure.kind, FailureKind::Deadline, "{}", failure.message);
    // Listening: the connection was made, and nobody answered.
    assert!(listener.accept().is_ok() && begin.elapsed() < Duration::from_secs(30));
}

/// All that a set calls shares one deadline.
#[test]
fn calls_of_git_share_a_deadline() {
    let Some(origin) = Origin::new("calls_of_git_share_a_deadline") else { return };
    origin.sets(&desired("v1"));
    let second = origin.commit("two");
    let tree = origin.path("w");
    git_in(&tree, &["fetch", "--quiet", &origin.path("srv/r").display().to_string(), "main"]);
    // Each call takes less than that, all of them more.
    git_in(&tree, &["config", "filter.slow.clean", "sleep 1; cat"]);
    git_in(&tree, &["config", "filter.slow.smudge", "sleep 1; cat"]);
    fs::create_dir_all(tree.join(".git/info")).unwrap();
    fs::write(tree.join(".git/info/attributes"), "f filter=slow\n").unwrap();
    fs::remove_file(tree.join("f")).unwrap();
    fs::write(tree.join("f"), "one").unwrap();
    let cx = Context { deadline: Duration::from_millis(2500), ..origin.context() };
    let failure = provider("Stead/Git").set(&cx, &Plain::new(desired(&second)), Execution::Actual).err().unwrap();
    assert_eq!(failure.kind, FailureKind::Deadline, "{}", failure.message);
}

/// The settings of a repository name programs: root runs them only where nobody else could have written them.
#[test]
fn what_others_can_write_is_not_run_by_root() {
    let test = "what_others_can_write_is_not_run_by_root";
    if !stead_testkit::is_root(test) {
        return;
    }
    let Some(origin) = Origin::new(test) else { return };
    origin.sets(&desired("v1"));
    origin.commit("two");
    let updated = with(desired("main"), "force", true);
    let ran = origin.path("ran");
    git_in(&origin.path("w"), &["config", "filter.x.clean", &format!("touch {}; cat", ran.display())]);
    fs::create_dir_all(origin.path("w/.git/info")).unwrap();
    fs::write(origin.path("w/.git/info/attributes"), "f filter=x\n").unwrap();
    fs::write(origin.path("w/f"), "mine").unwrap();
    let reason = "git would run programs as root";
    for name in ["w/.git/config", "w/.git/objects", "w/.git/refs/stead", "w/.git/objects/pack", "w/.git", "w", ""] {
        let path = origin.path(name);
        let mode = fs::metadata(&path).unwrap().permissions();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode.mode() | 0o002)).unwrap();
        assert!(origin.refuses(&updated).contains(reason), "{name}");
        fs::set_permissions(&path, mode).unwrap();
        chown(&path, Some(1), None).unwrap();
        let refused = origin.refuses(&updated);
        assert!(refused.contains(reason) || refused.contains("belongs to another user"), "{name}: {refused}");
        chown(&path, Some(0), None).unwrap();
    }
    assert!(!ran.exists());
    assert_eq!(origin.sets(&updated), ["revision", "modified"]);
    assert!(ran.exists(), "the settings name a program that runs");
}

#[test]
fn a_repository_of_somebody_else_on_this_machine_is_refused() {
    let test = "a_repository_of_somebody_else_on_this_machine_is_refused";
    if !stead_testkit::is_root(test) {
        return;
    }
    let Some(origin) = Origin::new(test) else { return };
    for name in ["srv/r", "srv/r/.git"] {
        chown(origin.path(name), Some(1), None).unwrap();
    }
    let refused = origin.refuses(&desired("main"));
    assert!(refused.contains("it belongs to another user. Change its owner to the user who runs stead"), "{refused}");
}

#[test]
fn root_clones_to_where_nobody_else_can_write() {
    let test = "root_clones_to_where_nobody_else_can_write";
    if !stead_testkit::is_root(test) {
        return;
    }
    let Some(origin) = Origin::new(test) else { return };
    fs::create_dir(origin.path("home")).unwrap();
    chown(origin.path("home"), Some(1), None).unwrap();
    let desired = with(desired("main"), "path", "home/w");
    assert!(
        origin.refuses(&desired).contains("'ROOT/home' is owned by user 1, not by root".trim_start_matches("'ROOT"))
    );
    assert_eq!(fs::read_dir(origin.path("home")).unwrap().count(), 0);
    // An instance before may change that.
    let planned = provider("Stead/Git").set(&origin.context(), &Plain::new(desired.clone()), Execution::WhatIf);
    assert_eq!(*planned.ok().unwrap().presumed.unwrap().paths, [origin.path("home")]);
    chown(origin.path("home"), Some(0), None).unwrap();
    assert_eq!(origin.sets(&desired), ["_exist"]);
}

#[test]
fn one_name_may_go_on_where_another_ends() {
    let Some(origin) = Origin::new("one_name_may_go_on_where_another_ends") else { return };
    for name in ["release", "release/1.0", "release/1.0/a", "release", "#12,x=y"] {
        git_in(&origin.path("srv/r"), &["for-each-ref", "refs/heads/release*"]);
        origin.git(&["checkout", "--quiet", "--detach"]);
        for branch in origin.git(&["for-each-ref", "--format=%(refname)", "refs/heads/release"]).lines() {
            origin.git(&["update-ref", "-d", branch]);
        }
        let commit = origin.commit(name);
        origin.git(&["branch", name]);
        origin.sets(&desired(name));
        assert_eq!(origin.head(), commit);
        let recorded = git_in(&origin.path("w"), &["for-each-ref", "--format=%(refname)", "refs/stead"]);
        assert_eq!(recorded, format!("refs/stead/revision/{name}/@"));
    }
}

/// A set that ended between checking out and noting it.
#[test]
fn a_checkout_that_was_not_recorded_is_no_work_of_somebody() {
    let Some(origin) = Origin::new("a_checkout_that_was_not_recorded_is_no_work_of_somebody") else { return };
    let first = origin.git(&["rev-parse", "main"]);
    origin.sets(&desired("main"));
    git_in(&origin.path("w"), &["update-ref", &format!("refs/stead/revision/{first}/@"), &first]);
    git_in(&origin.path("w"), &["update-ref", "-d", "refs/stead/revision/main/@"]);
    assert_eq!(origin.sets(&desired("main")), ["revision"]);
    git_in(&origin.path("w"), &["update-ref", &format!("refs/stead/revision/{first}/@"), &first]);
    git_in(&origin.path("w"), &["update-ref", "-d", "refs/stead/revision/main/@"]);
    let second = origin.commit("two");
    assert_eq!(origin.sets(&desired("main")), ["revision"]);
    assert_eq!(origin.head(), second);
}

/// A first set that was killed while files were written: nothing but what it wrote is in the tree.
#[test]
fn a_first_checkout_that_was_killed_is_continued() {
    let Some(origin) = Origin::new("a_first_checkout_that_was_killed_is_continued") else { return };
    origin.sets(&desired("main"));
    fs::write(origin.path("w/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::remove_file(origin.path("w/.git/index")).unwrap();
    fs::write(origin.path("w/.git/index.lock"), "").unwrap();
    fs::write(origin.path("w/f"), "on").unwrap();
    let reply = origin.set(&desired("main")).map_err(|failure| failure.message).unwrap();
    assert_eq!(reply.effects.destroys.items()[0].to_string(), "content of w/f (2 bytes)");
    assert_eq!(origin.text(), "one");
    // Later on it is somebody's work that may be lost.
    fs::write(origin.path("w/f"), "on").unwrap();
    let second = origin.commit("two");
    assert!(origin.refuses(&desired(&second)).starts_with("'f' was changed"));
}

#[test]
fn a_test_asks_nobody_unless_updates_are_asked_for() {
    let Some(origin) = Origin::new("a_test_asks_nobody_unless_updates_are_asked_for") else { return };
    origin.sets(&desired("main"));
    fs::rename(origin.path("srv/r"), origin.path("srv/away")).unwrap();
    let tested = |desired: Json| provider("Stead/Git").test(&origin.context(), &Plain::new(desired));
    assert_eq!(tested(desired("main")).ok().unwrap().in_desired_state, Some(true));
    assert_eq!(tested(desired("v1")).ok().unwrap().differing.unwrap(), ["revision"]);
    assert!(tested(with(desired("main"), "update", true)).is_err());
}

#[test]
fn a_commit_that_nobody_has_is_said_to_be_missing() {
    let Some(origin) = Origin::new("a_commit_that_nobody_has_is_said_to_be_missing") else { return };
    origin.sets(&desired("v1"));
    let nowhere = "1".repeat(40);
    git_in(&origin.path("w"), &["tag", "v1"]);
    let own = git_in(&origin.path("w"), &["rev-parse", "refs/tags/v1"]);
    assert_ne!(own, origin.git(&["rev-parse", "refs/tags/v1"]));
    let failure = provider("Stead/Git").set(&origin.context(), &Plain::new(desired(&nowhere)), Execution::Actual);
    let message = failure.err().unwrap().message;
    assert!(message.starts_with(&format!("the repository has no commit {nowhere}")), "{message}");
    assert_eq!(git_in(&origin.path("w"), &["rev-parse", "refs/tags/v1"]), own, "tags of one's own stay");
}

#[test]
fn a_repository_that_an_instance_before_makes_is_presumed() {
    let world = World::build("");
    let stated = Plain::new(json!({"path": "w", "repository": "srv/r", "revision": "main"}));
    let planned = provider("Stead/Git").set(&world.context_for("Stead/Git"), &stated, Execution::WhatIf);
    let presumed = planned.map_err(|failure| failure.message).unwrap().presumed.unwrap();
    assert_eq!(*presumed.paths, [world.root.path().join("srv/r")]);
}
