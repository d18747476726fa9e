//! The program that a machine gets: the one for its processor, out of a folder or the own one; and machines that have little.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use serde_json::Value as Json;

use super::{PROGRAM, World, site};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A folder with programs as their archives are unpacked: for this processor one that differs from the own one, and one that
/// says it is for another processor.
fn artifacts(world: &World) -> [Vec<u8>; 2] {
    let mut here = fs::read(PROGRAM).unwrap();
    let mut other = here.clone();
    other[18] = if cfg!(target_arch = "x86_64") { 183 } else { 62 };
    here.extend(b"another build");
    let place = |kind: &str, bytes: &[u8]| {
        let folder = world.path(&format!("artifacts/stead-{VERSION}-{kind}/bin"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("stead"), bytes).unwrap();
    };
    place(&format!("{}-linux-gnu", std::env::consts::ARCH), &here);
    place("other-linux-gnu", &other);
    // Neither is used: one is of another version, the other one an archive.
    fs::write(world.path("artifacts/stead-0.0.0-x86_64-linux-musl"), &here).unwrap();
    fs::write(world.path(&format!("artifacts/stead-{VERSION}-aarch64-linux-musl.tar.gz")), b"\x1f\x8b").unwrap();
    [here, other]
}

fn other_processor() -> &'static str {
    if cfg!(target_arch = "x86_64") { "aarch64" } else { "x86_64" }
}

fn kept(world: &World, machine: &str) -> Vec<u8> {
    let folder = world.path(machine).join(".cache/stead-programs");
    let mut programs = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (program, other) = (programs.next().unwrap(), programs.next());
    assert!(other.is_none(), "{other:?}");
    fs::read(program).unwrap()
}

#[test]
fn a_machine_gets_the_program_for_its_processor() {
    let world = site(false);
    let [here, other] = artifacts(&world);
    let apply = world.stead("apply site.yaml --host web1 --artifacts artifacts");
    assert_eq!((apply.code, world.read("web1/motd").as_str()), (0, "hello"), "{}{}", apply.out, apply.errors);
    assert!(kept(&world, "web1") == here, "it is the one of the folder");
    world.program("there/uname", &format!("#!/bin/sh\n[ \"$1\" = -s ] && echo Linux || echo {}\n", other_processor()));
    let without = world.stead("apply site.yaml --host web2");
    let expected = format!(
        "web2:\n  failed: it has no stead {VERSION}, and there is no program for it (Linux {}); 'stead artifacts' lists those that there are\n",
        other_processor()
    );
    assert!(without.code == 1 && without.out.starts_with(&expected), "{}", without.out);
    assert!(!world.path("web2/.cache").exists());
    let with = world.stead("apply site.yaml --host web2 --artifacts artifacts");
    assert!(with.code == 1 && with.out.starts_with("web2:\n  failed: stead cannot be started there"), "{}", with.out);
    assert!(kept(&world, "web2") == other, "it is the one for its processor");
}

/// Several machines can have one home, which lies on another.
#[test]
fn machines_with_one_home_get_the_program_beside_each_other() {
    let world = site(false);
    fs::create_dir(world.path("web1")).unwrap();
    symlink("web1", world.path("web2")).unwrap();
    world.write("hosts.yaml", "machines: {web1: {}, web2: {}}");
    // Each goes on once both are about to get it.
    let both = "for turn in $(seq 2000); do [ $(ls $TEST_ROOT | grep -c ^gets) = 2 ] && break; sleep 0.01; done";
    world.program("there/head", &format!("#!/bin/sh\n: >$TEST_ROOT/gets.$$\n{both}\nexec /usr/bin/head \"$@\"\n"));
    let check = world.stead("check site.yaml --hosts hosts.yaml");
    assert_eq!((check.code, check.errors.as_str()), (2, ""), "{}", check.out);
    assert!(check.shown().ends_with("2 machines: 2 drifted\n"), "{}", check.out);
    kept(&world, "web1");
}

/// Between the look at a program and its start its own account can exchange it. That harms this machine alone.
#[test]
fn a_program_that_is_exchanged_after_the_look_gets_what_its_own_machine_gets() {
    let world = site(false);
    world.write(
        "site.yaml",
        "parameters: {token: {type: secureString}}
resources: [{name: secret, type: Stead/File, properties: {path: secret, content: \"[parameters('token')]\"}}]
",
    );
    let machine = |name: &str| format!("{name}: {{parameters: {{token: hunter2-of-{name}}}}}");
    world.write("hosts.yaml", &format!("machines: {{{}}}", ["web1", "web2", "web3"].map(machine).join(", ")));
    world.program(
        "exchanged",
        "#!/bin/sh\nhead -n 1 >>\"$TEST_ROOT/orders\"\necho '{\"name\":\"web2\",\"instances\":[]}'\n",
    );
    world.program(
        "there/sha256sum",
        "#!/bin/sh
/usr/bin/sha256sum
case $HOME in */web2) for program in stead-* new-*; do [ -e $program ] || continue; rm $program; cp $TEST_ROOT/exchanged $program; done;; esac
",
    );
    let apply = world.stead("apply site.yaml --hosts hosts.yaml --brief");
    let orders = world.read("orders");
    assert!(orders.contains("hunter2-of-web2") && orders.matches("hunter2").count() == 1, "{orders}{}", apply.out);
    for name in ["web1", "web3"] {
        assert_eq!(
            world.read(&format!("{name}/secret")),
            format!("hunter2-of-{name}"),
            "{}{}",
            apply.out,
            apply.errors
        );
    }
    let shown = apply.shown();
    assert!(shown.starts_with("web1, web3:\n") && shown.ends_with("3 machines: 2 changed · 1 unchanged\n"), "{shown}");
    // What lies there now is not what is compared the next time.
    world.program("there/sha256sum", "#!/bin/sh\nexec /usr/bin/sha256sum\n");
    let next = world.stead("apply site.yaml --hosts hosts.yaml --brief");
    assert_eq!((next.code, world.read("web2/secret").as_str()), (0, "hunter2-of-web2"), "{}{}", next.out, next.errors);
    assert_eq!(world.read("orders"), orders);
}

#[test]
fn the_programs_that_are_sent_are_listed() {
    let world = site(false);
    let programs = |words: &str| -> Vec<Json> {
        let listed = world.stead(words);
        let data: Json = serde_json::from_str(&listed.out).unwrap_or_else(|_| panic!("{}", listed.errors));
        data["programs"].as_array().unwrap().clone()
    };
    let [own] = programs("artifacts -o json").try_into().unwrap();
    assert_eq!((own["processor"].as_str(), &own["path"]), (Some(std::env::consts::ARCH), &Json::Null), "{own}");
    let digest = Command::new("sha256sum").arg(PROGRAM).output().unwrap().stdout;
    assert!(String::from_utf8(digest).unwrap().starts_with(own["sha256"].as_str().unwrap()), "{own}");
    let sent = artifacts(&world);
    let listed = programs("artifacts artifacts -o json");
    assert_eq!(listed.len(), 2, "{listed:?}");
    for each in &listed {
        let bytes = if each["processor"] == std::env::consts::ARCH { &sent[0] } else { &sent[1] };
        assert_eq!((each["bytes"].as_u64(), &each["static"]), (Some(bytes.len() as u64), &own["static"]), "{each}");
        assert!(each["path"].as_str().unwrap().starts_with("artifacts/stead-"), "{each}");
    }
    let text = world.stead("artifacts artifacts");
    let linked = if own["static"] == true { "statically" } else { "dynamically" };
    assert!(text.out.starts_with("Processor  Linked") && text.out.contains(linked), "{}", text.out);
    fs::create_dir(world.path("empty")).unwrap();
    let none = world.stead("check site.yaml --host web1 --artifacts empty");
    let expected = format!("error: there is no program of stead {VERSION} in 'empty'\nhelp: ");
    assert!(none.code == 3 && none.errors.starts_with(&expected), "{}", none.errors);
    assert!(!world.path("log").exists(), "nothing was reached");
}

/// A shell and its programs in one, and nothing else.
#[test]
fn a_machine_with_busybox_alone_is_enough() {
    const TEST: &str = "a_machine_with_busybox_alone_is_enough";
    let Some(busybox) = ["/bin/busybox", "/usr/bin/busybox"].into_iter().find(|path| Path::new(path).exists()) else {
        return stead_testkit::skip(TEST, "there is no BusyBox");
    };
    let world = site(false);
    fs::create_dir(world.path("busybox")).unwrap();
    let list = Command::new(busybox).arg("--list").output().unwrap().stdout;
    for name in String::from_utf8(list).unwrap().lines() {
        symlink(busybox, world.path("busybox").join(name)).unwrap();
    }
    let on_it = |words: &str| {
        let mut command = world.command(words);
        super::Answer::of(command.env("TEST_PATH", world.path("busybox")).output().unwrap())
    };
    for (expected, code) in [("1 changed", 0), ("1 unchanged", 0)] {
        let apply = on_it("apply site.yaml --host web1");
        assert!(
            apply.code == code && apply.shown().ends_with(&format!("machine: {expected}\n")),
            "{}{}",
            apply.out,
            apply.errors
        );
    }
    assert_eq!((world.read("web1/motd").as_str(), on_it("check site.yaml --host web1").code), ("hello", 0));
}
