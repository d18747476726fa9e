//! The configuration of sshd.

use std::fs;
use std::path::Path;

use super::{accepted, has, has_namespace, in_namespace, output_of, values};
use crate::support::{World, provider};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Map, Value as Json, json};
use stead_core::call::Execution;
use stead_core::value::Value;
use stead_host::provider::Plain;

/// Lines of such a file. What they set is none of sshd's defaults.
const LINES: &[&str] = &[
    "# a comment",
    "",
    "#MaxAuthTries 6",
    "MaxAuthTries 3",
    "  maxauthtries=4 # why",
    "\"PermitTTY\" no",
    "PermitTTY yes",
    "ChallengeResponseAuthentication no",
    "KbdInteractiveAuthentication yes",
    "PubkeyAcceptedKeyTypes ssh-ed25519",
    "pubkeyacceptedalgorithms = rsa-sha2-512",
    "AllowUsers a",
    "AllowUsers b \"c\"",
    "Port 2222",
    "Port 2223",
    "ForceCommand echo \"a  b\" # c",
    "Banner \"/etc/a b\"",
    "AcceptEnv A B",
    "AuthorizedKeysFile a b",
    "SetEnv A=1 \"B=2 3\"",
    "Include /etc/ssh/sshd_config.d/*.conf",
    "Include sshd_config.d/[ab].conf /etc/ssh/none",
];

/// Those of an included file, which includes no file that includes it.
const OTHERS: &[&str] = &["PermitTTY no", "MaxAuthTries 3", "AllowUsers a", "Include /etc/ssh/sshd_config.d/a.conf"];

const MATCHES: &[&str] = &["Match User a", "match group=g User \"a,b\"", "Match Address 10.0.0.0/8"];

/// Lines that may stand behind a `Match`.
const IN_MATCH: &[&str] =
    &["  PermitTTY no", "\tMaxAuthTries 3", "AllowUsers d", "# c", "Banner /b", "KbdInteractiveAuthentication no"];

fn text(lines: &'static [&'static str]) -> impl Strategy<Value = String> {
    let block = (select(MATCHES), proptest::collection::vec(select(IN_MATCH), 0..4));
    let all = (proptest::collection::vec(select(lines), 0..9), proptest::collection::vec(block, 0..3));
    all.prop_map(|(mut lines, blocks)| {
        lines.extend(blocks.into_iter().flat_map(|(first, rest)| std::iter::once(first).chain(rest)));
        lines.iter().flat_map(|line| [line, "\n"]).collect()
    })
}

/// Properties, and what `sshd -T` prints of each.
fn stated() -> impl Strategy<Value = Vec<(&'static str, Json, Vec<&'static str>)>> {
    let all = vec![
        ("MaxAuthTries", json!(3), vec!["3"]),
        ("PermitTTY", json!(false), vec!["no"]),
        ("KbdInteractiveAuthentication", json!(false), vec!["no"]),
        ("PubkeyAcceptedAlgorithms", json!(["ssh-ed25519", "rsa-sha2-256"]), vec!["ssh-ed25519,rsa-sha2-256"]),
        ("AllowUsers", json!(["a", "c"]), vec!["a", "c"]),
        ("Port", json!([2222, 22]), vec!["22", "2222"]),
        ("ForceCommand", json!("echo \"a  b\" # c"), vec!["echo \"a  b\" # c"]),
        ("Banner", json!("/etc/a b"), vec!["/etc/a b"]),
        ("acceptenv", json!("A B"), vec!["A", "B"]),
        ("AuthorizedKeysFile", json!(["a", "b"]), vec!["a b"]),
    ];
    let count = all.len();
    subsequence(all, 1..=count)
}

fn desired(stated: &[(&str, Json, Vec<&str>)], others: &[(&str, Json)]) -> Plain {
    let stated = stated.iter().map(|(name, value, _)| ((*name).to_owned(), value.clone()));
    let others = others.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    Plain::new(Json::Object(stated.chain(others).collect::<Map<_, _>>()))
}

/// The tree of a machine with the main file and two that it may include.
fn world([main, a, b]: &[String; 3]) -> World {
    let file = |path: &str, text: &String| format!("file etc/ssh/{path} 0644 {}\n", json!(text));
    World::build_in_memory(
        &[file("sshd_config", main), file("sshd_config.d/a.conf", a), file("sshd_config.d/b.conf", b)].concat(),
    )
}

/// The settings that sshd takes in each of these roots: all lines of `sshd -T`. The words behind a root are further arguments of it.
fn read_by_sshd(roots: &[String]) -> Vec<Vec<String>> {
    let script = "mount -t tmpfs tmpfs /run; mkdir /run/sshd; keys=$(mktemp -d /run/keys.XXXX)
        ssh-keygen -q -t ed25519 -N '' -f $keys/key
        mount -t tmpfs tmpfs /etc/ssh
        for each; do
            root=${each%% *}
            rm -rf /etc/ssh/*; cp -r \"$root\"/etc/ssh/. /etc/ssh
            for key in $(sed -n 's/^HostKey //p' /etc/ssh/sshd_config); do cp $keys/key $key; done
            sshd -T ${each#\"$root\"} -h $keys/key -f /etc/ssh/sshd_config 2>&1 || true
            echo end
        done";
    let output = output_of(in_namespace(script).args(roots), &"sshd -T");
    let mut all = vec![Vec::new()];
    for line in output.lines() {
        match line {
            "end" => all.push(Vec::new()),
            line => all.last_mut().unwrap().push(line.to_owned()),
        }
    }
    all
}

/// Returns whether sshd takes exactly these values of a keyword.
fn takes(printed: &[String], keyword: &str, meant: &[&str]) -> bool {
    let keyword = format!("{} ", keyword.to_lowercase());
    let mut found: Vec<&str> = printed.iter().filter_map(|line| line.strip_prefix(&keyword)).collect();
    found.sort_unstable();
    found.dedup();
    found == meant
}

#[test]
fn sshd_reads_what_is_stated() {
    if !has("sshd", "sshd") || !has("sshd", "ssh-keygen") || !has_namespace("sshd") {
        return;
    }
    let files = (text(LINES), text(&LINES[..20]), text(OTHERS)).prop_map(|(main, a, b)| [main, a, b]);
    let tried = values((files, stated()), 60);
    let provider = provider("Stead/SshdConfig");
    let (mut before, mut after, mut differing, mut is_set) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (files, stated) in &tried {
        let (world, input) = (self::world(files), desired(stated, &[("validate", json!(false))]));
        let cx = world.context_for("Stead/SshdConfig");
        // All that differs before anything is changed, also where it cannot be reached.
        let found = provider.get(&cx, &input).unwrap();
        let differs =
            |name: &str, value: &Json| found.expose().get(name).map(Value::to_redacted_json) != Some(value.clone());
        differing.push(stated.iter().map(|(name, value, _)| differs(name, value)).collect::<Vec<_>>());
        let start = self::world(files);
        is_set.push(provider.set(&cx, &input, Execution::Actual).map_err(|failure| failure.message));
        before.push(start);
        after.push(world);
    }
    let read = |worlds: &[World]| {
        read_by_sshd(&worlds.iter().map(|world| world.root.path().display().to_string()).collect::<Vec<_>>())
    };
    let (before, afterwards) = (read(&before), read(&after));
    let mut count = 0;
    for (at, (files, stated)) in tried.iter().enumerate() {
        for ((name, value, meant), differs) in stated.iter().zip(&differing[at]) {
            assert_eq!(!takes(&before[at], name, meant), *differs, "{name}: {value} in {files:#?}: {:#?}", before[at]);
        }
        match &is_set[at] {
            Ok(_) => {
                count += 1;
                for (name, value, meant) in stated {
                    let text = fs::read_to_string(after[at].root.path().join("etc/ssh/sshd_config")).unwrap();
                    assert!(
                        takes(&afterwards[at], name, meant),
                        "{name}: {value}\n{text}\n{files:#?}\n{:#?}",
                        afterwards[at]
                    );
                }
            }
            Err(message) => assert!(message.contains("/etc/ssh/sshd_config.d/"), "{message}"),
        }
    }
    accepted("Stead/SshdConfig", count, tried.len(), 30);
}

/// Files of distributions, guides and products: stated as they are exported, in place of another file, sshd takes the same of them, also
/// for the connections that their first lines name. A second set changes nothing.
#[test]
fn files_as_they_are_found_are_stated_as_they_are_exported() {
    if !has("sshd", "sshd") || !has("sshd", "ssh-keygen") || !has_namespace("sshd") {
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/sshd");
    let mut texts: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    texts.retain(|path| path.extension().is_some_and(|extension| extension == "conf"));
    texts.sort();
    let usual = fs::read_to_string(texts.iter().find(|path| path.ends_with("debian.conf")).unwrap()).unwrap();
    let provider = provider("Stead/SshdConfig");
    let (mut worlds, mut asked) = (Vec::new(), Vec::new());
    for path in &texts {
        let text = fs::read_to_string(path).unwrap();
        let [found, stated] = [&text, &usual].map(|text| world(&[text.clone(), String::new(), String::new()]));
        let cx = found.context_for("Stead/SshdConfig");
        let all = provider.get(&cx, &desired(&[], &[("validate", json!(false))])).unwrap();
        let mut all = all.to_json();
        all["_purge"] = json!(true);
        all["validate"] = json!(false);
        let (cx, input) = (stated.context_for("Stead/SshdConfig"), Plain::new(all));
        provider.set(&cx, &input, Execution::Actual).unwrap_or_else(|failure| panic!("{path:?}: {}", failure.message));
        let again = provider.set(&cx, &input, Execution::Actual).unwrap();
        assert_eq!(again.changed, Some(Vec::new()), "{path:?}");
        let connections = text.lines().filter_map(|line| line.strip_prefix('#').filter(|line| line.starts_with("-C ")));
        let connections: Vec<_> = connections.collect();
        // A few criteria cannot be asked about without a connection.
        for connection in if connections.is_empty() { vec![""] } else { connections } {
            let of = |world: &World| format!("{} {connection}", world.root.path().display());
            asked.extend([of(&found), of(&stated)]);
        }
        worlds.extend([found, stated]);
    }
    // Warnings name the line.
    let lines = |read: &[String]| read.iter().filter(|line| !line.contains(" line ")).cloned().collect::<Vec<_>>();
    for (of, read) in asked.chunks(2).zip(read_by_sshd(&asked).chunks(2)) {
        assert!(read[0].len() > 50, "{of:?}: {read:#?}");
        assert_eq!(lines(&read[0]), lines(&read[1]), "{of:?}");
    }
    assert!(texts.len() >= 30);
}

/// Of the blocks that a connection meets the first one with a keyword counts: a block that is stated is in front of a broader one, or
/// the line of that is named.
#[test]
fn a_block_counts_before_broader_ones() {
    if !has("sshd", "sshd") || !has("sshd", "ssh-keygen") || !has_namespace("sshd") {
        return;
    }
    let provider = provider("Stead/SshdConfig");
    let criteria = json!({ "user": "a", "address": "10.0.0.0/8" });
    let block = json!([{ "criteria": criteria, "PermitTTY": false, "MaxSessions": 3 }]);
    let input = desired(&[], &[("match", block), ("validate", json!(false))]);
    let set = |text: &str| {
        let world = world(&[text.to_owned(), String::new(), String::new()]);
        let set = provider.set(&world.context_for("Stead/SshdConfig"), &input, Execution::Actual);
        set.map(|_| world).map_err(|failure| failure.message)
    };
    let reached = [
        "Match all\n  PermitTTY yes\n",
        "PermitTTY yes\nMatch User b\n  PermitTTY yes\n# why\nMatch User a\n  MaxSessions 4\n  PermitTTY yes\n",
        "Match Address 10.0.0.0/8\n  PermitTTY no\n  MaxSessions 5\n",
        "Match User a Address 10.0.0.0/8\n  PermitTTY yes\nMatch all\n  PermitTTY yes\n",
    ];
    let worlds: Vec<World> = reached.iter().map(|text| set(text).unwrap_or_else(|why| panic!("{text}{why}"))).collect();
    let asked: Vec<String> =
        worlds.iter().map(|world| format!("{} -C user=a,host=h,addr=10.1.1.1", world.root.path().display())).collect();
    for ((read, text), world) in read_by_sshd(&asked).iter().zip(reached).zip(&worlds) {
        let now = fs::read_to_string(world.root.path().join("etc/ssh/sshd_config")).unwrap();
        assert!(takes(read, "PermitTTY", &["no"]) && takes(read, "MaxSessions", &["3"]), "{text}\n{now}");
        let again = provider.set(&world.context_for("Stead/SshdConfig"), &input, Execution::Actual).unwrap();
        assert_eq!(again.changed, Some(Vec::new()), "{now}");
    }
    let behind = "Match User a\n  PermitTTY yes\nMatch Address 10.0.0.0/8 User a\n  PermitTTY no\n";
    let said = set(behind).map(|_| ()).unwrap_err();
    assert!(said.contains("sshd_config' sets 'PermitTTY' to 'yes' in line 2"), "{said}");
}

/// sshd waits for a FIFO, and reads files of any size: what is not known of one is not taken for nothing.
#[test]
fn what_is_read_with_the_file_is_read_or_named() {
    let provider = provider("Stead/SshdConfig");
    let main = "Include /etc/ssh/sshd_config.d/*.conf\n".to_owned();
    let input = desired(&[], &[("PermitTTY", json!(false)), ("validate", json!(false))]);
    let outcome = |make: &dyn Fn(&Path)| {
        let world = world(&[main.clone(), String::new(), String::new()]);
        make(&world.root.path().join("etc/ssh/sshd_config.d/odd.conf"));
        let set = provider.set(&world.context_for("Stead/SshdConfig"), &input, Execution::Actual);
        set.map(|_| ()).map_err(|failure| failure.message)
    };
    let named = |make: &dyn Fn(&Path), why: &str| {
        let said = outcome(make).unwrap_err();
        assert!(said.contains("/etc/ssh/sshd_config.d/odd.conf") && said.contains(why), "{said}");
    };
    let fifo = |path: &Path| rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::RWXU).unwrap();
    named(&fifo, "FIFO");
    named(&|path| drop(std::os::unix::net::UnixListener::bind(path).unwrap()), "no such device");
    named(&|path| fs::File::create(path).unwrap().set_len(100 << 20).unwrap(), "has more than");
    named(&|path| std::os::unix::fs::symlink("odd.conf", path).unwrap(), "symbolic links");
    outcome(&|path| fs::create_dir(path).unwrap()).unwrap();
    outcome(&|path| std::os::unix::fs::symlink("/dev/null", path).unwrap()).unwrap();
}

/// The lines of a text that no keyword that is stated is on.
fn others(text: &str, stated: &[(&str, Json, Vec<&str>)]) -> Vec<String> {
    let names: Vec<String> = stated.iter().map(|(name, _, _)| name.to_lowercase()).collect();
    let former = [
        ("challengeresponseauthentication", "kbdinteractiveauthentication"),
        ("pubkeyacceptedkeytypes", "pubkeyacceptedalgorithms"),
    ];
    let is_stated = |line: &&str| {
        let word = line.trim().trim_start_matches('"').split(['"', ' ', '=']).next().unwrap_or_default().to_lowercase();
        let word =
            former.iter().find(|(former, _)| *former == word).map_or(word.as_str(), |(_, present)| present).to_owned();
        names.contains(&word)
    };
    let mut is_global = true;
    let kept = text.split_inclusive('\n').filter(|line| {
        is_global &= !line.to_lowercase().starts_with("match");
        !is_global || !is_stated(line)
    });
    kept.map(str::to_owned).collect()
}

#[test]
fn other_lines_stay() {
    let files = (text(LINES), text(&LINES[..20]), text(OTHERS)).prop_map(|(main, a, b)| [main, a, b]);
    let mut count = 0;
    let tried = values((files, stated()), 400);
    for (files, stated) in &tried {
        let (world, input) = (self::world(files), desired(stated, &[("validate", json!(false))]));
        let cx = world.context_for("Stead/SshdConfig");
        let set = provider("Stead/SshdConfig").set(&cx, &input, Execution::Actual);
        let now = ["sshd_config", "sshd_config.d/a.conf", "sshd_config.d/b.conf"]
            .map(|name| fs::read_to_string(world.root.path().join("etc/ssh").join(name)).unwrap());
        assert_eq!(now[1..], files[1..], "other files");
        assert_eq!(others(&now[0], stated), others(&files[0], stated), "{:?}\n{}", input.expose(), now[0]);
        if set.is_ok() {
            count += 1;
            let again = provider("Stead/SshdConfig").set(&cx, &input, Execution::Actual).unwrap();
            assert_eq!(again.changed, Some(Vec::new()), "{files:#?}");
        } else {
            assert_eq!(now, *files, "a set that fails changes nothing");
        }
    }
    accepted("Stead/SshdConfig, other lines", count, tried.len(), 30);
}

#[test]
fn what_sshd_refuses_is_never_in_place() {
    if !has("sshd -t", "sshd") || !rustix::process::geteuid().is_root() {
        return;
    }
    let world = World::build("file sshd_config 0644 \"X11Forwarding no\\n\"");
    let path = world.root.path().join("sshd_config");
    let set = |others: &[(&str, Json)]| {
        let input = desired(&[], &[&[("path", json!(path))], others].concat());
        provider("Stead/SshdConfig").set(&world.context(), &input, Execution::Actual)
    };
    let key = world.root.path().join("key");
    super::printed("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", key.to_str().unwrap()], &"a key");
    for (name, value) in [("NoSuchKeyword", json!("yes")), ("PermitRootLogin", json!("perhaps"))] {
        let failure = set(&[("HostKey", json!(key)), (name, value)]).err().unwrap();
        assert_eq!(failure.property.as_deref(), Some("/validate"));
        let said = [format!("line 3: Bad configuration option: {name}"), "line 3: unsupported option".to_owned()];
        assert!(said.iter().any(|said| failure.message.contains(said)), "{}", failure.message);
        assert_eq!(fs::read_to_string(&path).unwrap(), "X11Forwarding no\n");
    }
    set(&[("HostKey", json!(key)), ("PermitRootLogin", json!(false))]).unwrap();
    assert!(fs::read_to_string(&path).unwrap().contains("PermitRootLogin no\n"));
}

#[test]
fn below_another_root_sshd_looks_at_the_file_alone() {
    if !has("sshd", "sshd") {
        return;
    }
    // What a file of the same name says on the machine that runs the test is not about the other system.
    let machine = tempfile::tempdir().unwrap();
    let other = machine.path().join("other.conf");
    fs::write(&other, "Nonsense yes\n").unwrap();
    let include = format!("  \"include\" {0}\nInclude={0}\nPermitTTY yes\n", other.display());
    let world = world(&[include.clone(), String::new(), String::new()]);
    let cx = world.context_for("Stead/SshdConfig");
    let provider = provider("Stead/SshdConfig");
    let set = |stated: Json| {
        provider.set(&cx, &Plain::new(stated), Execution::Actual).map(|_| ()).map_err(|failure| failure.message)
    };
    set(json!({ "MaxAuthTries": 3 })).unwrap();
    let refused = set(json!({ "MaxAuthTires": 3 })).unwrap_err();
    assert!(refused.contains("MaxAuthTires"), "{refused}");
    let now = fs::read_to_string(world.root.path().join("etc/ssh/sshd_config")).unwrap();
    assert_eq!(now, include + "MaxAuthTries 3\n");
}
