//! Root on the machine, by a `sudo` of the test in place of the real one; `boots` has that.

use std::fs;

use super::terminal::AtTerminal;
use super::{World, site};

/// It wants the password of the file `password`, where there is one, and its root has a home beside those of the accounts.
const SUDO: &str = r#"#!/bin/sh
echo "$*" >>"$TEST_ROOT/sudo.log"
while [ "$1" != -- ]; do
  case $1 in -n) silent=1;; -p) prompt=$2; shift;; esac
  shift
done
shift
if [ -e "$TEST_ROOT/password" ]; then
  [ -z "$silent" ] || { echo 'sudo: a password is required' >&2; exit 1; }
  IFS= read -r wanted <"$TEST_ROOT/password"
  while echo asked >>"$TEST_ROOT/sudo.log"; printf %s "$prompt" >&2; IFS= read -r given || exit 1; [ "$given" != "$wanted" ]; do
    echo "Sorry, $given, try again." >&2
  done
fi
mkdir -p "$TEST_ROOT/root-of-${HOME##*/}"
exec env HOME="$TEST_ROOT/root-of-${HOME##*/}" STEAD_STATE="$TEST_ROOT/root-of-${HOME##*/}/state" "$@"
"#;

const PASSWORD: &str = "correct-horse battery";

/// Machines whose accounts have a stead that says it is one, and must not be run by root.
pub(super) fn world() -> World {
    let world = site(false);
    let pretends = "#!/bin/sh\ntouch \"$TEST_ROOT/pretended\"\necho 'stead VERSION'\n";
    for (name, text) in [("there/sudo", SUDO), ("there/stead", pretends), ("there/sha256sum", pretends)] {
        world.program(name, text);
    }
    world
}

#[test]
fn root_runs_no_file_of_the_account() {
    let world = world();
    let apply = world.stead("apply site.yaml --host web1 --sudo --user ada");
    assert_eq!((apply.code, world.read("root-of-web1/motd")), (0, "hello".to_owned()), "{}{}", apply.out, apply.errors);
    assert!(!world.path("pretended").exists());
    // What was sent is root's, and it is there the next time.
    let kept = |home: &str| fs::read_dir(world.path(home).join(".cache/stead-programs")).map_or(0, Iterator::count);
    assert_eq!((kept("root-of-web1"), kept("web1")), (1, 0));
    assert_eq!(world.stead("check site.yaml --host web1 --sudo").code, 0);
    assert!(world.read("log").lines().next().unwrap().contains(" -l ada -- web1 "), "{}", world.read("log"));
    // A user that a name states is that of this machine.
    world.stead("check site.yaml --host eve@web1 --user ada --sudo");
    assert!(world.read("log").lines().last().unwrap().contains(" -l eve -- web1 "), "{}", world.read("log"));
}

#[test]
fn the_password_of_sudo_is_asked_for_once_and_goes_through_the_pipe_when_sudo_asks() {
    let world = world();
    let apply = "apply site.yaml --hosts hosts.yaml --where role=web --ask-sudo-password -v";
    // Where sudo asks for nothing it gets nothing, and the password does not become a part of what is sent.
    let silent = world.with_input(apply, &format!("{PASSWORD}\n"));
    assert_eq!(
        (silent.code, world.read("root-of-web2/motd")),
        (0, "hello".to_owned()),
        "{}{}",
        silent.out,
        silent.errors
    );
    world.write("password", &format!("{PASSWORD}\n"));
    let without = world.stead("check site.yaml --host web1 --sudo");
    let expected = "web1:\n  failed: sudo: a password is required\nCheck of 1 machine: 1 failed\n";
    assert_eq!((without.code, without.shown().as_str()), (1, expected));
    fs::remove_file(world.path("root-of-web2/motd")).unwrap();
    let right = world.with_input(apply, &format!("{PASSWORD}\n"));
    assert_eq!((right.code, world.read("root-of-web2/motd")), (0, "hello".to_owned()), "{}{}", right.out, right.errors);
    let json = world.with_input(&format!("{apply} -o json --events"), &format!("{PASSWORD}\n"));
    assert_eq!(json.code, 0, "{}", json.errors);
    // One that is wrong is tried once.
    fs::remove_file(world.path("sudo.log")).unwrap();
    let wrong = world.with_input("check site.yaml --host web1 --ask-sudo-password", "battery-correct\n");
    let expected = "web1:\n  failed: sudo does not accept the password\nCheck of 1 machine: 1 failed\n";
    assert_eq!((wrong.code, wrong.shown().as_str()), (1, expected));
    assert_eq!(world.read("sudo.log").lines().filter(|line| *line == "asked").count(), 2);
    let texts = [right.out, right.errors, json.out, json.errors, wrong.out, wrong.errors];
    for text in texts.into_iter().chain(["log", "sudo.log"].map(|name| world.read(name))) {
        assert!(!text.contains("battery"), "{text}");
    }
    let none = world.stead("check site.yaml --host web1 --ask-sudo-password");
    assert_eq!((none.code, none.errors.as_str()), (3, "error: no password was given\n"));
    for read in ["-", "site.yaml --parameters-file -"] {
        let both = world.stead(&format!("check {read} --host web1 --ask-sudo-password"));
        assert!(both.code == 3 && both.errors.contains("is read for '-' as well"), "{}", both.errors);
        let both = world.stead(&format!("check {read} --hosts -"));
        assert!(both.code == 3 && both.errors.contains("standard input can be read only once"), "{}", both.errors);
    }
}

#[test]
fn a_password_that_is_typed_is_not_shown() {
    let world = world();
    world.write("password", &format!("{PASSWORD}\n"));
    let mut terminal = AtTerminal::run(world.command("apply site.yaml --host web1 --ask-sudo-password --yes"));
    let asked = terminal.until("Password of sudo: ");
    let (screen, code) = terminal.types(&format!("{PASSWORD}\n")).ends();
    assert_eq!((code, world.read("root-of-web1/motd")), (Some(0), "hello".to_owned()), "{screen}");
    assert!(!asked.contains("battery") && !screen.contains("battery"), "{screen}");
}
