//! Work that somebody made in a working tree is lost only where the document says so, and the what-if does.

use super::*;

/// A repository with commits `one` (tagged v1) and `two` on main, which has the file `u` as well.
fn with_two(test: &str) -> Option<(Origin, String)> {
    let origin = Origin::new(test)?;
    fs::write(origin.path("srv/r/u"), "theirs").unwrap();
    origin.git(&["add", "u"]);
    let second = origin.commit("two");
    Some((origin, second))
}

/// Lets the working tree have all commits.
fn fetch(origin: &Origin) {
    let from = origin.path("srv/r").display().to_string();
    git_in(&origin.path("w"), &["fetch", "--quiet", &from, "main"]);
}

fn planned(origin: &Origin, desired: &Json) -> Result<SetReply, String> {
    let planned = provider("Stead/Git").set(&origin.context(), &Plain::new(desired.clone()), Execution::WhatIf);
    planned.map_err(|failure| failure.message)
}

#[test]
fn a_commit_of_the_remote_repository_is_left_without_force() {
    let Some((origin, second)) = with_two("a_commit_of_the_remote_repository_is_left_without_force") else { return };
    let first = origin.git(&["rev-parse", "v1^{commit}"]);
    assert_eq!(origin.sets(&desired(&first)), ["_exist"]);
    for (revision, commit) in [(&second, &second), (&first, &first), (&"main".to_owned(), &second), (&first, &first)] {
        assert_eq!(origin.sets(&desired(revision)), ["revision"]);
        assert_eq!(&origin.head(), commit);
    }
    assert_eq!(origin.sets(&json!({"path": "w", "_exist": false})), ["_exist"]);
}

#[test]
fn a_commit_of_ones_own_is_left_with_force_only() {
    let Some((origin, second)) = with_two("a_commit_of_ones_own_is_left_with_force_only") else { return };
    for begin in ["v1", "main", second.as_str()] {
        assert_eq!(origin.sets(&desired(begin)), ["_exist"]);
        git_in(&origin.path("w"), &["commit", "--quiet", "--allow-empty", "-m", "mine"]);
        let own = origin.head();
        for revision in ["v1", "main", second.as_str()] {
            for update in [false, true] {
                let refused = origin.refuses(&with(desired(revision), "update", update));
                assert!(refused.contains(&own[..12]) && refused.contains("is on no branch"), "{refused}");
                let forced = with(with(desired(revision), "update", update), "force", true);
                let what_if = planned(&origin, &forced).unwrap().what_if;
                assert!(what_if[0].contains(&own[..12]), "{what_if:?}");
            }
        }
        git_in(&origin.path("w"), &["branch", "--force", "mine"]);
        assert_eq!(origin.sets(&desired("v1")), ["revision"]);
        let removed = json!({"path": "w", "_exist": false});
        assert!(origin.refuses(&removed).contains(&format!("{} was not pushed", &own[..12])));
        assert_eq!(origin.sets(&with(removed, "force", true)), ["_exist"]);
    }
}

#[test]
fn a_commit_of_ones_own_that_a_document_names_stays_ones_own() {
    let Some((origin, _)) = with_two("a_commit_of_ones_own_that_a_document_names_stays_ones_own") else { return };
    origin.sets(&desired("v1"));
    let tree = origin.path("w");
    git_in(&tree, &["checkout", "--quiet", "-b", "mine"]);
    git_in(&tree, &["commit", "--quiet", "--allow-empty", "-m", "mine"]);
    let own = origin.head();
    git_in(&tree, &["checkout", "--quiet", "HEAD~1"]);
    assert_eq!(origin.sets(&desired(&own)), ["revision"]);
    assert!(origin.refuses(&json!({"path": "w", "_exist": false})).contains("was not pushed"));
    git_in(&tree, &["branch", "--quiet", "-D", "mine"]);
    assert!(origin.refuses(&desired("main")).contains("is on no branch"));
}

#[test]
fn what_is_stashed_and_submodules_are_removed_with_force_only() {
    let Some((origin, _)) = with_two("what_is_stashed_and_submodules_are_removed_with_force_only") else { return };
    origin.sets(&desired("main"));
    let removed = json!({"path": "w", "_exist": false});
    fs::create_dir(origin.path("w/.git/modules")).unwrap();
    assert!(origin.refuses(&removed).starts_with("there are submodules"));
    fs::remove_dir(origin.path("w/.git/modules")).unwrap();
    git_in(&origin.path("w"), &["commit", "--quiet", "--allow-empty", "-m", "mine"]);
    git_in(&origin.path("w"), &["tag", "mine"]);
    git_in(&origin.path("w"), &["checkout", "--quiet", "HEAD~1"]);
    assert!(origin.refuses(&removed).contains("was not pushed"));
    git_in(&origin.path("w"), &["tag", "--delete", "mine"]);
    fs::write(origin.path("w/f"), "mine").unwrap();
    git_in(&origin.path("w"), &["stash", "--quiet"]);
    assert!(origin.refuses(&removed).contains("was not pushed"));
    assert_eq!(origin.sets(&with(removed, "force", true)), ["_exist"]);
}

#[test]
fn what_git_does_not_track_is_not_overwritten() {
    for is_ignored in [false, true] {
        let Some((origin, second)) = with_two("what_git_does_not_track_is_not_overwritten") else { return };
        origin.sets(&desired("v1"));
        if is_ignored {
            fs::create_dir_all(origin.path("w/.git/info")).unwrap();
            fs::write(origin.path("w/.git/info/exclude"), "u\n").unwrap();
        }
        fs::write(origin.path("w/u"), "mine").unwrap();
        let mine = || fs::read_to_string(origin.path("w/u")).unwrap();
        let forced = with(desired(&second), "force", true);
        // Before the commit is there nobody knows, and nothing is overwritten that no what-if has shown.
        assert_eq!(planned(&origin, &forced).unwrap().effects.destroys.total(), 0);
        assert!(origin.refuses(&forced).starts_with("'u' is not tracked, and would be overwritten"));
        assert!(origin.refuses(&desired(&second)).starts_with("'u' is not tracked, and would be overwritten"));
        assert!(planned(&origin, &desired(&second)).is_err_and(|message| message.starts_with("'u' is not tracked")));
        assert_eq!(mine(), "mine");
        let reply = origin.set(&forced).map_err(|failure| failure.message).unwrap();
        assert_eq!(reply.effects.destroys.items()[0].to_string(), "content of w/u (4 bytes)");
        assert_eq!(mine(), "theirs");
    }
}

#[test]
fn a_directory_and_a_file_in_each_others_place_are_not_overwritten() {
    let Some((origin, _)) = with_two("a_directory_and_a_file_in_each_others_place_are_not_overwritten") else { return };
    fs::create_dir_all(origin.path("srv/r/d/e")).unwrap();
    fs::write(origin.path("srv/r/d/e/x"), "theirs").unwrap();
    origin.git(&["add", "d"]);
    let third = origin.commit("three");
    for (make, names) in [
        (&["file w/d/e/x"][..], "'d/e/x' is"),
        (&["file w/d/e"], "'d/e' is"),
        (&["file w/d"], "'d' is"),
        (&["link w/d"], "'d' is"),
        (&["file w/u/a", "file w/u/b"], "'u/a' and 1 more is"),
    ] {
        origin.sets(&desired("v1"));
        fetch(&origin);
        for line in make {
            let (kind, name) = line.split_once(' ').unwrap();
            let path = origin.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            if kind == "file" {
                fs::write(path, "mine").unwrap();
            } else {
                std::os::unix::fs::symlink("nowhere", path).unwrap();
            }
        }
        let refused = origin.refuses(&desired(&third));
        assert!(refused.starts_with(names), "{refused}");
        let reply = origin.set(&with(desired(&third), "force", true)).map_err(|failure| failure.message).unwrap();
        assert_eq!(reply.effects.destroys.total(), make.len() as u64);
        origin.sets(&json!({"path": "w", "_exist": false}));
    }
    // A tracked file that makes way for a directory is not lost.
    origin.git(&["rm", "--quiet", "-r", "f"]);
    fs::create_dir(origin.path("srv/r/f")).unwrap();
    fs::write(origin.path("srv/r/f/x"), "theirs").unwrap();
    origin.git(&["add", "f"]);
    origin.git(&["commit", "--quiet", "-m", "four"]);
    origin.sets(&desired("v1"));
    fetch(&origin);
    assert_eq!(origin.sets(&desired("main")), ["revision"]);
    assert_eq!(origin.sets(&desired("v1")), ["revision"]);
}
