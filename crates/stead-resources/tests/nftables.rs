//! `Stead/Nftables` with the real nft, in a network of its own and with a folder /etc of its own.

#![expect(clippy::disallowed_methods, reason = "a test looks at its own files as it likes")]
#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

mod support;

use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value as Json, json};
use stead_core::call::{Execution, FailureKind};
use stead_host::provider::{Context, Plain, Provider, SetReply};
use support::{World, provider, walk};

const TYPE: &str = "Stead/Nftables";

const FOLDER: &str = "/etc/nftables.d";

/// What Debian installs.
const DEBIAN: &str = "#!/usr/sbin/nft -f\n\nflush ruleset\n\ntable inet t {\n\tchain input {\n\t\ttype filter hook input priority filter;\n\t}\n}\n";

/// Runs a test once more in a network and with an /etc of its own. Returns whether this is that run.
fn is_apart(test: &str) -> bool {
    if std::env::var("STEAD_TEST_APART").is_ok_and(|apart| apart == test) {
        return true;
    }
    if !stead_testkit::is_root(test) {
        return false;
    }
    if Command::new("nft").arg("--version").output().is_err() {
        stead_testkit::skip(test, "there is no nft");
        return false;
    }
    let own = std::env::current_exe().unwrap();
    let ended = Command::new("unshare")
        .args(["-m", "-n", "--propagation", "private", "sh", "-c"])
        .arg("mount -t tmpfs tmpfs /etc && exec \"$@\"")
        .arg("sh")
        .arg(own)
        .args(["--exact", test, "--nocapture"])
        .env("STEAD_TEST_APART", test)
        .output()
        .unwrap();
    let said = [ended.stdout, ended.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(ended.status.success(), "{said}");
    let _ = writeln!(std::io::stderr(), "{said}");
    false
}

/// What nft prints; its failure where it fails.
fn nft(arguments: &[&str]) -> Result<String, String> {
    let ended = Command::new("nft").args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    if ended.status.success() { Ok(text(ended.stdout)) } else { Err(text(ended.stderr)) }
}

fn load(text: &str) {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), text).unwrap();
    nft(&["-f", file.path().to_str().unwrap()]).unwrap_or_else(|said| panic!("{text}{said}"));
}

/// All tables without counters, and the files of /etc.
fn imprint() -> String {
    format!("{}\n{:#?}", nft(&["-s", "list", "ruleset"]).unwrap(), files())
}

fn files() -> Vec<(String, String)> {
    let all = walk(Path::new("/etc")).into_keys().map(|name| Path::new("/etc").join(name));
    all.filter(|path| path.is_file())
        .map(|path| (path.display().to_string(), fs::read_to_string(&path).unwrap()))
        .collect()
}

/// The rest of the rules: what is none of the table that the tests are about.
fn others() -> String {
    let listed: Json = serde_json::from_str(&nft(&["-j", "list", "ruleset"]).unwrap()).unwrap();
    let is_own = |object: &Json| {
        let members = object.as_object().unwrap().values().next().unwrap();
        members["family"] == "inet" && (members["table"] == "t" || members["name"] == "t")
    };
    let objects = listed["nftables"].as_array().unwrap().iter().filter(|object| !is_own(object));
    objects.map(Json::to_string).collect::<Vec<_>>().join("\n")
}

/// The resource, with the running system.
struct Subject {
    cx: Context,
    provider: Arc<dyn Provider>,
    _world: World,
}

impl Subject {
    fn new() -> Self {
        let world = World::build("");
        Self { cx: world.context(), provider: provider(TYPE), _world: world }
    }

    fn set(&self, desired: &Json) -> Result<SetReply, String> {
        let set = self.provider.set(&self.cx, &Plain::new(desired.clone()), Execution::Actual);
        set.map_err(|failure| failure.message)
    }

    fn what_if(&self, desired: &Json) -> Result<SetReply, String> {
        let set = self.provider.set(&self.cx, &Plain::new(desired.clone()), Execution::WhatIf);
        set.map_err(|failure| failure.message)
    }

    fn state(&self, desired: &Json) -> Json {
        let state = self.provider.get(&self.cx, &Plain::new(desired.clone()));
        state.unwrap_or_else(|failure| panic!("{}", failure.message)).to_json()
    }

    /// Why a table is not set, in what-if too. Nothing is changed then.
    fn refused(&self, desired: &Json) -> String {
        let untouched = imprint();
        let said = self.set(desired).err().unwrap();
        assert_eq!(self.what_if(desired).unwrap().presumed.unwrap().failure.message, said);
        assert_eq!(imprint(), untouched, "{said}");
        said
    }

    fn differing(&self, desired: &Json) -> Vec<String> {
        let tested = self.provider.test(&self.cx, &Plain::new(desired.clone()));
        tested.unwrap_or_else(|failure| panic!("{}", failure.message)).differing.unwrap_or_default()
    }
}

/// Contents with another text for each that filters in the same way, and one that does not.
const CONTENTS: [[&str; 3]; 11] = [
    ["", "# nothing\n", "chain c {\n}\n"],
    [
        "chain input {\n  type filter hook input priority filter; policy drop;\n  ct state established,related accept\n  tcp dport { 22, 80 } counter accept comment \"x } y\"\n}\n",
        "chain input { type filter hook input priority 0; policy drop; # }\n ct state related,established accept; tcp dport { 80, 0x16 } counter packets 7 bytes 9 accept comment \"x } y\"\n}",
        "chain input {\n  type filter hook input priority filter; policy drop;\n  tcp dport { 22, 80 } counter accept comment \"x } y\"\n  ct state established,related accept\n}\n",
    ],
    [
        "set good {\n  type ipv4_addr\n  flags interval\n  elements = { 10.0.0.0/8, 192.0.2.1 }\n}\nchain c {\n  ip saddr @good accept\n}\n",
        "chain c {\n  ip saddr @good accept\n}\nset good {\n  typeof ip saddr; flags interval;\n  elements = { 192.0.2.1, 10.0.0.0/8 }\n}\n",
        "set good {\n  type ipv4_addr\n  flags interval\n  elements = { 10.0.0.0/8 }\n}\nchain c {\n  ip saddr @good accept\n}\n",
    ],
    [
        "set met { type ipv4_addr; flags dynamic, timeout; timeout 1h; }\ncounter n { }\nquota q { over 1 mbytes }\nchain c {\n  tcp dport 22 add @met { ip saddr } counter name n\n  quota name q drop\n}\n",
        "define port = 22\nset met { type ipv4_addr; flags dynamic, timeout; timeout 60m; elements = { 192.0.2.7 } }\ncounter n { packets 5 bytes 6 }\nquota q { over 1 mbytes used 3 bytes }\nchain c {\n  tcp dport $port add @met { ip saddr } counter name n\n  quota name q drop\n}\n",
        "set met { type ipv4_addr; flags dynamic, timeout; timeout 2h; }\ncounter n { }\nquota q { over 1 mbytes }\nchain c {\n  tcp dport 22 add @met { ip saddr } counter name n\n  quota name q drop\n}\n",
    ],
    [
        "set s { type ipv4_addr; flags timeout; elements = { 192.0.2.1 } }\n",
        "set s { type ipv4_addr; flags timeout; elements = { 192.0.2.1, 192.0.2.2 timeout 1h } }\n",
        "set s { type ipv4_addr; flags timeout; elements = { 192.0.2.3 } }\n",
    ],
    [
        "chain a {\n  iif lo accept\n  jump b\n}\nchain b {\n  oifname \"lo\" drop\n}\n",
        "chain b {\n  oifname lo drop\n}\nchain a {\n  iif \"lo\" accept; jump b\n}\n",
        "chain a {\n  iif lo accept\n  jump b\n}\nchain b {\n  iifname \"lo\" drop\n}\n",
    ],
    [
        "flags dormant\nchain c {\n  type filter hook input priority filter; policy drop;\n}\n",
        "chain c {\n  type filter hook input priority 0; policy drop;\n}\nflags dormant\n",
        "chain c {\n  type filter hook input priority filter; policy drop;\n}\n",
    ],
    [
        "set s { type ipv4_addr; flags interval; auto-merge; elements = { 10.0.0.0/8 } }\n",
        "set s {\n  type ipv4_addr\n  flags interval\n  elements = { 10.0.0.0/8 }\n  auto-merge\n}\n",
        "set s { type ipv4_addr; flags interval; elements = { 10.0.0.0/8 } }\n",
    ],
    [
        "comment \"of a table\"\nchain c {\n  comment \"one\"\n  drop\n}\n",
        "comment \"of a table\"\nchain c { comment \"one\"; drop; } # two\n",
        "comment \"of a table\"\nchain c {\n  comment \"two\"\n  drop\n}\n",
    ],
    [
        "map m {\n  type inet_service : verdict\n  elements = { 22 : accept, 23 : drop }\n}\nchain c {\n  tcp dport vmap @m\n}\n",
        "map m { type inet_service : verdict; elements = { 23 : drop, 0x16 : accept }; }\nchain c { tcp dport vmap @m; }\n",
        "map m {\n  type inet_service : verdict\n  elements = { 22 : drop, 23 : drop }\n}\nchain c {\n  tcp dport vmap @m\n}\n",
    ],
    [
        "set met { type ipv4_addr; size 100; }\nmap at { type ipv4_addr : inet_service; size 100; flags dynamic; }\nchain c {\n  add @met { ip saddr }\n  update @at { ip saddr : tcp dport }\n}\n",
        "set met { type ipv4_addr; size 100; elements = { 192.0.2.7 }\n }\nmap at { type ipv4_addr : inet_service; size 100; flags dynamic; elements = { 192.0.2.7 : 22 }\n }\nchain c {\n  add @met { ip saddr }\n  update @at { ip saddr : tcp dport }\n}\n",
        "set met { type ipv4_addr; size 200; }\nmap at { type ipv4_addr : inet_service; size 100; flags dynamic; }\nchain c {\n  add @met { ip saddr }\n  update @at { ip saddr : tcp dport }\n}\n",
    ],
];

/// What there is before: a table of the running kernel and a file, each with a content or none, a main file, and another table.
#[derive(Clone, Debug)]
struct Start {
    live: Option<&'static str>,
    file: Option<&'static str>,
    main: Option<&'static str>,
    other: bool,
    /// The file is one that stead did not write.
    is_foreign: bool,
}

fn content() -> impl Strategy<Value = &'static str> {
    (prop::sample::select(CONTENTS.to_vec()), 0..3_usize).prop_map(|(row, at)| row[at])
}

fn start() -> impl Strategy<Value = Start> {
    let mains = vec![
        DEBIAN,
        "flush ruleset\ninclude \"/etc/nftables.d/*.nft\"\n",
        "flush ruleset\ninclude \"/etc/nftables.d/*.nft\"\ntable inet t {\n  chain behind {\n  }\n}\n",
    ];
    let apart = (proptest::option::of(content()), proptest::option::of(content()));
    let alike = proptest::option::of(content()).prop_map(|content| (content, content));
    let main = proptest::option::of(prop::sample::select(mains));
    (prop_oneof![apart, alike], main, any::<bool>(), prop::bool::weighted(0.3))
        .prop_map(|((live, file), main, other, is_foreign)| Start { live, file, main, other, is_foreign })
}

/// A table that is asked for. Those with a content that nft refuses are some of them.
fn desired() -> impl Strategy<Value = Json> {
    let content = prop_oneof![8 => content(), 1 => Just("chain c {\n  tcp dport\n}\n")];
    let flags = || proptest::option::of(any::<bool>());
    (content, flags(), prop_oneof![3 => Just(true), 1 => Just(false)]).prop_map(|(content, boot, exist)| {
        let mut members = Map::from_iter([("name".to_owned(), json!("t")), ("content".to_owned(), json!(content))]);
        members.extend(boot.map(|boot| ("boot".to_owned(), json!(boot))));
        members.extend((!exist).then(|| ("_exist".to_owned(), json!(false))));
        Json::Object(members)
    })
}

fn begin(start: &Start) {
    nft(&["flush", "ruleset"]).unwrap();
    for (path, _) in files() {
        fs::remove_file(path).unwrap();
    }
    if start.other {
        load(
            "table ip t {\n  chain c {\n    tcp dport 22 counter packets 3 bytes 4 accept\n  }\n}\ntable inet tt {\n}\n",
        );
    }
    if let Some(content) = start.live {
        load(&format!("table inet t {{\n{content}\n}}\n"));
    }
    if let Some(main) = start.main {
        fs::write("/etc/nftables.conf", main).unwrap();
    }
    if let Some(content) = start.file {
        fs::create_dir_all(FOLDER).unwrap();
        let newline = if content.is_empty() || content.ends_with('\n') { "" } else { "\n" };
        let head = if start.is_foreign { "" } else { "# Managed by stead.\ntable inet t\ndelete table inet t\n" };
        let text = format!("{head}table inet t {{\n{content}{newline}}}\n");
        fs::write(format!("{FOLDER}/inet-t.nft"), text).unwrap();
    }
}

/// The properties that an undo sets: those that are stated, as they were.
fn former(desired: &Json, before: &Json) -> Json {
    let mut former = desired.clone();
    for name in ["content", "boot", "_exist"] {
        if let Some(value) = before.get(name) {
            former[name] = value.clone();
        }
    }
    former
}

fn check_case(subject: &Subject, start: &Start, desired: &Json) {
    begin(start);
    let (untouched, before, others_before) = (imprint(), subject.state(desired), others());
    subject.provider.test(&subject.cx, &Plain::new(desired.clone())).ok();
    let what_if = subject.what_if(desired);
    assert_eq!(imprint(), untouched, "get, test and what-if change nothing");
    let files_before = files();
    let set = subject.set(desired);
    assert_eq!(others(), others_before, "other tables stay");
    let set = match set {
        Ok(set) => set,
        Err(said) => {
            assert!(what_if.map_or(true, |reply| reply.presumed.is_some()), "it was not predicted: {said}");
            assert_eq!(imprint(), untouched, "what is refused changes nothing");
            return;
        }
    };
    let what_if = what_if.unwrap_or_else(|said| panic!("{said}"));
    assert!(what_if.presumed.is_none(), "{:?}", what_if.presumed);
    let shown =
        |reply: &SetReply| (reply.changed.clone(), reply.after.as_ref().map(Plain::to_json), reply.effects.clone());
    assert_eq!(shown(&what_if), shown(&set));
    assert_eq!(subject.differing(desired), [""; 0], "it is in the desired state");
    assert_eq!(subject.state(desired), set.after.unwrap().to_json(), "the state is the one that was announced");
    let settled = imprint();
    assert_eq!(subject.set(desired).unwrap().changed.unwrap(), [""; 0]);
    assert_eq!(imprint(), settled, "a second set changes nothing");
    if desired["_exist"] != false && desired["boot"] != false {
        nft(&["flush", "ruleset"]).unwrap();
        nft(&["-f", "/etc/nftables.conf"]).unwrap();
        assert_eq!(subject.differing(desired), [""; 0], "it is so after a boot");
    }
    // An undo: the files as they were, then the state.
    for (path, _) in files() {
        fs::remove_file(path).unwrap();
    }
    for (path, text) in &files_before {
        fs::write(path, text).unwrap();
    }
    let back = former(desired, &before);
    subject.set(&back).unwrap_or_else(|said| panic!("{said}"));
    assert_eq!(files(), files_before, "an undo leaves the files alone that are back");
    let is_kept = before["loaded"] == true || before["_exist"] == false;
    let expected = if is_kept { before } else { json!({"content": before["content"], "loaded": true}) };
    let after = subject.state(&back);
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&after[name], value, "{name} is as it was");
    }
}

/// Whatever there was: a table becomes as it is stated, others stay, it is so after a boot, and can be taken back.
#[test]
fn a_table_becomes_as_it_is_stated_and_can_be_taken_back() {
    if !is_apart("a_table_becomes_as_it_is_stated_and_can_be_taken_back") {
        return;
    }
    let subject = Subject::new();
    let cases = u32::try_from(stead_testkit::times("STEAD_NFTABLES", 8)).unwrap();
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let outcome = TestRunner::new(config).run(&(start(), desired()), |(start, desired)| {
        check_case(&subject, &start, &desired);
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    println!("{cases} tables were set and taken back");
}

/// Files of the folder count as nft reads them: by any name and through links. It would wait for a FIFO.
#[test]
fn files_of_any_kind_and_name_count_as_nft_reads_them() {
    if !is_apart("files_of_any_kind_and_name_count_as_nft_reads_them") {
        return;
    }
    let subject = Subject::new();
    let desired = json!({"name": "t", "content": "chain c {\n  drop\n}\n"});
    subject.set(&desired).unwrap();
    let is_same = || assert_eq!(subject.differing(&desired), [""; 0]);
    for name in ["a b.nft", "q\"q.nft", "q'q.nft", "g[x]g.nft", "g*g.nft", "b\\b.nft"] {
        let path = format!("{FOLDER}/{name}");
        fs::write(&path, "table inet other {\n}\n").unwrap();
        is_same();
        fs::write(&path, "add rule inet nowhere c drop\n").unwrap();
        assert_eq!(subject.differing(&desired), ["boot"], "{name}");
        let said = subject.refused(&desired);
        assert!(said.contains(&format!("{path}:1:")), "{name}: {said}");
        fs::remove_file(path).unwrap();
    }
    let not_text = Path::new(FOLDER).join(std::ffi::OsStr::from_bytes(b"caf\xe9.nft"));
    fs::write(&not_text, "table inet other {\n}\n").unwrap();
    is_same();
    fs::write(&not_text, "add rule inet nowhere c drop\n").unwrap();
    assert_eq!(subject.differing(&desired), ["boot"]);
    fs::remove_file(&not_text).unwrap();
    let path = format!("{FOLDER}/odd.nft");
    let link = |target: &str| std::os::unix::fs::symlink(target, &path).unwrap();
    let refused = |why: &str| {
        let said = subject.refused(&desired);
        assert!(said.contains(&path) && said.contains(why), "{said}");
        fs::remove_file(&path).unwrap();
    };
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
    refused("FIFO");
    link("odd.nft");
    refused("Too many levels of symbolic links");
    fs::write("/etc/other", "add rule inet nowhere c drop\n").unwrap();
    link("/etc/other");
    refused("No such file or directory");
    for target in ["/dev/null", "/etc", "/nowhere"] {
        link(target);
        is_same();
        fs::remove_file(&path).unwrap();
    }
    fs::File::create(&path).unwrap().set_len(100 << 20).unwrap();
    let said = subject.set(&desired).err().unwrap();
    assert!(said.contains(&path) && said.contains("has more than"), "{said}");
    // One that nft does not read may be anything.
    fs::rename(&path, format!("{FOLDER}/odd.bak")).unwrap();
    is_same();
}

/// What filters in the same way is equal, and nothing else is.
#[test]
fn tables_are_compared_by_what_they_do() {
    if !is_apart("tables_are_compared_by_what_they_do") {
        return;
    }
    let subject = Subject::new();
    for [one, alike, other] in CONTENTS {
        let desired = json!({"name": "t", "content": one});
        subject.set(&desired).unwrap();
        let reload =
            |content: &str| load(&format!("table inet t\ndelete table inet t\ntable inet t {{\n{content}\n}}\n"));
        reload(alike);
        assert_eq!(subject.differing(&desired), [""; 0], "{one}{alike}");
        reload(other);
        assert_eq!(subject.differing(&desired), ["content"], "{one}{other}");
        nft(&["delete", "table", "inet", "t"]).unwrap();
        assert_eq!(subject.differing(&desired), ["loaded"], "{one}");
        subject.set(&desired).unwrap();
        assert_eq!(subject.differing(&desired), [""; 0], "{one}");
    }
}

/// A file that stead did not write has no content of a table, stays beside a table that has no file, and is replaced by one that has.
#[test]
fn a_file_of_somebody_else_has_no_content() {
    if !is_apart("a_file_of_somebody_else_has_no_content") {
        return;
    }
    let subject = Subject::new();
    let (path, foreign) = (format!("{FOLDER}/inet-t.nft"), "flush ruleset\ntable inet t {\n\tchain old {\n\t}\n}\n");
    fs::create_dir_all(FOLDER).unwrap();
    fs::write(&path, foreign).unwrap();
    fs::write("/etc/nftables.conf", "flush ruleset\ninclude \"/etc/nftables.d/*.nft\"\n").unwrap();
    let desired = json!({"name": "t", "content": "chain new {\n}\n"});
    assert_eq!(subject.state(&desired)["_exist"], false);
    nft(&["-f", "/etc/nftables.conf"]).unwrap();
    let before = subject.state(&desired);
    assert_eq!(before["content"], "chain old {\n}\n", "{before}");
    assert_eq!(before["boot"], false);
    let exported = subject.provider.export(&subject.cx, &Plain::new(json!({}))).unwrap();
    assert_eq!(exported[0].properties.to_redacted_json()["content"], "chain old {\n}\n");
    subject.set(&desired).unwrap();
    assert_eq!(subject.differing(&desired), [""; 0]);
    fs::write(&path, foreign).unwrap();
    let back = former(&desired, &before);
    subject.set(&back).unwrap();
    assert_eq!(subject.state(&back)["content"], "chain old {\n}\n");
    let gone = json!({"name": "t", "_exist": false});
    let words = subject.what_if(&gone).unwrap().what_if;
    assert!(words.iter().any(|each| each.starts_with(&format!("leave '{path}' in place"))), "{words:?}");
    subject.set(&gone).unwrap();
    assert_eq!(subject.state(&gone)["_exist"], false);
    assert_eq!(fs::read_to_string(&path).unwrap(), foreign);
}

/// All that nftables.service reads counts: where it changes the table, or nft refuses it, the table is not there at boot.
#[test]
fn all_that_is_read_at_boot_is_tried() {
    if !is_apart("all_that_is_read_at_boot_is_tried") {
        return;
    }
    let subject = Subject::new();
    let desired = json!({"name": "t", "content": "chain c {\n  drop\n}\n"});
    let others = [
        ("table inet t {\n  chain more {\n  }\n}\n", "the table differs after a restart"),
        ("flush ruleset\n", "the table differs after a restart"),
        ("add rule inet nowhere c drop\n", "/etc/nftables.d/zz.nft:1:15-21: Error: "),
    ];
    fs::create_dir_all(FOLDER).unwrap();
    for (text, why) in others {
        subject.set(&desired).unwrap();
        fs::write(format!("{FOLDER}/zz.nft"), text).unwrap();
        assert_eq!(subject.differing(&desired), ["boot"], "{text}");
        let said = subject.refused(&desired);
        assert!(said.contains(why), "{said}");
        fs::remove_file(format!("{FOLDER}/zz.nft")).unwrap();
        assert_eq!(subject.differing(&desired), [""; 0]);
    }
    fs::write("/etc/nftables.conf", "flush ruleset\nwrong\ninclude \"/etc/nftables.d/*.nft\"\n").unwrap();
    let said = subject.set(&desired).err().unwrap();
    assert!(said.starts_with("nftables.service cannot load its files at boot:\n/etc/nftables.conf:"), "{said}");
    // As nft says it of the files themselves, whatever line it is about.
    let main = "wrong words\ninclude \"/etc/nftables.d/*.nft\"\n";
    fs::write("/etc/nftables.conf", main).unwrap();
    let of_itself = nft(&["-c", "-f", "/etc/nftables.conf"]).unwrap_err();
    let said = subject.set(&desired).err().unwrap();
    assert!(
        of_itself.starts_with("/etc/nftables.conf:1:") && said.ends_with(of_itself.trim_end()),
        "{said}\n{of_itself}"
    );
    // What the main file says of the table behind the line is no longer behind one.
    fs::write("/etc/nftables.conf", "include \"/etc/nftables.d/*.nft\"\ntable inet t {\n  chain d {\n  }\n}\n")
        .unwrap();
    assert_eq!(subject.differing(&desired), ["boot"]);
    subject.set(&desired).unwrap();
    assert_eq!(subject.differing(&desired), [""; 0]);
}

/// A comment that changes is written to the file, and the table of the running kernel stays, with what it counted.
#[test]
fn another_comment_does_not_load_the_table_again() {
    if !is_apart("another_comment_does_not_load_the_table_again") {
        return;
    }
    let subject = Subject::new();
    let with =
        |comment: &str| json!({"name": "t", "content": format!("# {comment}\nchain c {{\n  counter drop\n}}\n")});
    subject.set(&with("one")).unwrap();
    let handles = || nft(&["-a", "list", "table", "inet", "t"]).unwrap();
    let before = handles();
    assert_eq!(subject.what_if(&with("two")).unwrap().what_if, ["write the file of the table"]);
    assert_eq!(subject.set(&with("two")).unwrap().changed.unwrap(), ["content"]);
    assert_eq!(handles(), before);
    assert_eq!(subject.differing(&with("two")), [""; 0]);
}

/// A table of any length is compared and taken back whole.
#[test]
fn a_long_table_is_taken_back_whole() {
    if !is_apart("a_long_table_is_taken_back_whole") {
        return;
    }
    let subject = Subject::new();
    let long = format!("# {}\nchain c {{\n  drop\n}}\n", "x".repeat(300_000));
    let (former, desired) = (json!({"name": "t", "content": long}), json!({"name": "t", "content": "chain c {\n}\n"}));
    subject.set(&former).unwrap();
    assert_eq!(subject.differing(&former), [""; 0]);
    assert_eq!(subject.set(&former).unwrap().changed.unwrap(), [""; 0]);
    let state = subject.state(&desired);
    assert_eq!(state["content"], former["content"]);
}

/// A table that a file of somebody else names stays: without it nothing would be loaded at boot.
#[test]
fn a_table_that_others_name_is_not_removed() {
    if !is_apart("a_table_that_others_name_is_not_removed") {
        return;
    }
    let subject = Subject::new();
    let stated = json!({"name": "t", "content": "chain c {\n}\n"});
    subject.set(&stated).unwrap();
    fs::write(format!("{FOLDER}/zz.nft"), "table ip other {\n}\nadd chain inet t c\n").unwrap();
    let removal = json!({"name": "t", "_exist": false});
    let said = subject.refused(&removal);
    assert!(said.contains("cannot load its files at boot without the table"), "{said}");
    let without_file = json!({"name": "t", "content": "chain c {\n}\n", "boot": false});
    let said = subject.refused(&without_file);
    assert!(said.contains("cannot load its files at boot without the table"), "{said}");
    assert_eq!(subject.differing(&stated), [""; 0]);
    fs::remove_file(format!("{FOLDER}/zz.nft")).unwrap();
    subject.set(&without_file).unwrap();
    subject.set(&removal).unwrap();
    assert_eq!(subject.state(&removal)["_exist"], false);
}

/// An error is shown with its line of the content, and what no longer belongs to a device is compared all the same.
#[test]
fn errors_have_their_line_and_interfaces_their_names() {
    if !is_apart("errors_have_their_line_and_interfaces_their_names") {
        return;
    }
    let subject = Subject::new();
    let wrong = json!({"name": "t", "content": "chain c {\n  tcp dport\n}\n"});
    let said = subject.refused(&wrong);
    assert!(said.contains("nft refuses the table:\nline 2, characters 12-12: Error: syntax error"), "{said}");
    assert!(!Path::new(FOLDER).exists());
    // What waits for an interface is tried again when that has come.
    let later = json!({"name": "t", "content": "chain c {\n  iif wan0 drop\n}\n"});
    let refused = subject.provider.set(&subject.cx, &Plain::new(later), Execution::Actual).err().unwrap();
    assert_eq!(refused.kind, FailureKind::Blocked, "{}", refused.message);
    let added = Command::new("ip").args(["link", "add", "wan0", "type", "bridge"]).status();
    if added.is_ok_and(|status| status.success()) {
        let device = json!({"name": "t", "content": "chain c {\n  iif wan0 drop\n}\n"});
        subject.set(&device).unwrap();
        assert_eq!(subject.differing(&device), [""; 0]);
    } else {
        stead_testkit::skip("errors_have_their_line_and_interfaces_their_names", "no interface can be made");
    }
}
