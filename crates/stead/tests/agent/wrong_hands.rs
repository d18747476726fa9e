//! What those who have a source, a clock, a snapshot, a copy or the key of a machine can do, each by itself.

use std::fs;
use std::process::Command;

use rustix::process::Signal;
use serde_json::{Value as Json, json};
use stead_testkit::{is_root, until};

use crate::machine::Machine;
use crate::releases::{BOTH, FOR_WEB, Shop};

/// A clock that differs from that of the system by as many seconds as a file says.
const CLOCK: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *found) {
    long result = syscall(SYS_clock_gettime, clock, found);
    const char *path = getenv("TEST_CLOCK");
    FILE *file = clock == CLOCK_REALTIME && path ? fopen(path, "r") : NULL;
    long seconds = 0;
    if (file && fscanf(file, "%ld", &seconds) == 1) found->tv_sec += seconds;
    if (file) fclose(file);
    return result;
}
"#;

const DAY: i64 = 24 * 60 * 60;

/// The clocks of a machine and of its operators, which can be set.
struct Clocks {
    shop: Shop,
    library: String,
}

impl Clocks {
    /// `None` where there is no compiler for the clock, which is reported.
    fn new(test: &str) -> Option<Self> {
        let mut shop = Shop::new();
        shop.machine.write("clock.c", CLOCK);
        let [source, library] = ["clock.c", "clock.so"].map(|name| shop.machine.path(name).display().to_string());
        let made = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o", &library, &source]).status();
        if !made.is_ok_and(|made| made.success()) {
            stead_testkit::skip(test, "there is no C compiler, to make a clock that can be set");
            return None;
        }
        shop.machine.stop();
        let mut clocks = Self { shop, library };
        clocks.write("machine", 0);
        clocks.write("operators", 0);
        let clock = clocks.shop.machine.path("machine.clock").display().to_string();
        let variables = [("LD_PRELOAD", clocks.library.as_str()), ("TEST_CLOCK", &clock)];
        clocks.shop.machine.start_with_variables(&variables);
        Some(clocks)
    }

    /// Sets a clock to so many days from now, and has the machine look at everything.
    fn set(&self, whose: &str, days: i64) {
        self.write(whose, days);
        self.shop.machine.signal(Signal::USR1);
    }

    fn write(&self, whose: &str, days: i64) {
        self.shop.machine.write(&format!("{whose}.clock.new"), &(days * DAY).to_string());
        let [new, clock] = ["clock.new", "clock"].map(|name| self.shop.machine.path(&format!("{whose}.{name}")));
        fs::rename(new, clock).unwrap();
    }

    /// Runs the program as an operator, with their clock.
    fn stead(&self, words: &str) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stead"));
        command.args(words.split(' ')).current_dir(self.shop.machine.path("")).env("HOME", self.shop.machine.path(""));
        command.env("LD_PRELOAD", &self.library).env("TEST_CLOCK", self.shop.machine.path("operators.clock"));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// The machine shows that nothing newer came, keeps what it has, and repairs it.
    fn is_frozen(&self, content: &str) {
        let shown = || self.shop.machine.status_and_code();
        until(|| (shown().0["Source"]["Releases"]["Frozen"] == true).then_some(()));
        assert_eq!(shown().1, Some(4));
        let text = String::from_utf8(self.shop.machine.run(&["status"]).stdout).unwrap();
        assert!(text.contains("expired at") && text.contains("nothing newer came"), "{text}");
        self.keeps(content);
    }

    fn is_current(&self, content: &str) {
        self.shop.until_source(|source| source["Releases"]["Frozen"] == false && source["Failure"].is_null());
        self.keeps(content);
        until(|| (self.shop.machine.status_and_code().1 == Some(0)).then_some(()));
    }

    fn keeps(&self, content: &str) {
        self.shop.machine.write("kept", "drifted\n");
        self.shop.machine.signal(Signal::USR1);
        self.shop.until_kept(content);
    }
}

#[test]
fn a_source_that_is_frozen_shows_at_its_end_and_no_clock_makes_a_release_valid_again() {
    let Some(mut clocks) = Clocks::new("a_source_that_is_frozen_shows_at_its_end") else { return };
    clocks.shop.publish("one", FOR_WEB);
    clocks.shop.enrol(BOTH);
    clocks.shop.follow(&clocks.shop.folder());
    clocks.shop.until_kept("one");
    clocks.is_current("one");
    // Within its end nobody can tell; behind it everybody can.
    clocks.set("machine", 89);
    clocks.is_current("one");
    clocks.set("machine", 91);
    clocks.is_frozen("one");
    clocks.shop.until_code("E1414");
    // A clock that is ahead takes nothing that is over, and keeps nothing from a machine that has the right time again.
    clocks.shop.publish("two", FOR_WEB);
    clocks.shop.until_code("E1414");
    clocks.is_frozen("one");
    clocks.set("machine", 0);
    clocks.shop.until_kept("two");
    clocks.is_current("two");
    // Operators stated a later time: no clock of the machine goes before that.
    clocks.set("operators", 100);
    clocks.stead(&format!("release roster add web1 --fleet fleet/root --key web1.pub --label role=web {BOTH}"));
    clocks.shop.machine.signal(Signal::USR1);
    clocks.is_frozen("two");
    clocks.set("machine", -3650);
    clocks.is_frozen("two");
    clocks.shop.until_code("E1414");
    clocks.stead(&format!("release make site.bundle --fleet fleet/root --channel web {FOR_WEB}"));
    clocks.is_current("two");
    clocks.shop.machine.stop();
}

fn copy(machine: &Machine, from: &str, to: &str) {
    let _ = fs::remove_dir_all(machine.path(to));
    assert!(Command::new("cp").arg("-a").args([from, to].map(|name| machine.path(name))).status().unwrap().success());
}

/// How many generations there are, and the number of the release that was staged last.
fn staged(shop: &Shop) -> (usize, Json) {
    let generations = shop.machine.json(&["history"])["generations"].as_array().unwrap().len();
    (generations, shop.machine.status()["Source"]["Releases"]["Staged"]["number"].clone())
}

#[test]
fn a_machine_that_is_restored_goes_on_to_the_newest_and_never_behind_the_roster() {
    let mut shop = Shop::having("one");
    shop.machine.stop();
    copy(&shop.machine, "state", "state.one");
    copy(&shop.machine, "fleet", "fleet.one");
    shop.machine.start();
    shop.publish("two", FOR_WEB);
    shop.enrol(BOTH);
    shop.until_kept("two");
    shop.machine.stop();
    copy(&shop.machine, "fleet", "fleet.two");
    // The source is current: it takes what it had taken, once.
    let restored = |shop: &mut Shop, content: &str| {
        copy(&shop.machine, "state.one", "state");
        shop.machine.write("kept", content);
        shop.machine.start();
    };
    restored(&mut shop, "two\n");
    until(|| (staged(&shop) == (2, json!(2))).then_some(()));
    shop.until_kept("two");
    // The source is older than the machine: refused, and nothing is changed.
    copy(&shop.machine, "fleet.one", "fleet");
    shop.until_code("E1411");
    assert_eq!((staged(&shop), shop.machine.read("kept").as_deref()), ((2, json!(2)), Some("two\n")));
    shop.machine.stop();
    // Both are older, and the roster says so.
    fs::copy(shop.machine.path("fleet.two/roster"), shop.machine.path("fleet/roster")).unwrap();
    restored(&mut shop, "one\n");
    shop.until_code("E1411");
    assert_eq!((staged(&shop), shop.machine.read("kept").as_deref()), ((1, json!(1)), Some("one\n")));
    // Once the source is current, so is the machine.
    copy(&shop.machine, "fleet.two", "fleet");
    shop.until_kept("two");
    shop.until_source(|source| source["Failure"].is_null());
    assert_eq!(staged(&shop), (2, json!(2)));
    shop.machine.stop();
}

#[test]
fn the_key_of_a_machine_signs_nothing_for_machines() {
    let mut shop = Shop::new();
    shop.publish("one", FOR_WEB);
    shop.enrol(BOTH);
    shop.follow(&shop.folder());
    shop.until_kept("one");
    // One operator's key and that of the machine are not those of two operators.
    shop.publish("two", "--where role=web --expires 90d --sign ann");
    shop.until_code("E1404");
    let release = shop.machine.path("fleet/web/2.release");
    let signed = fs::read_to_string(&release).unwrap();
    let statement = signed.split("-----BEGIN SSH SIGNATURE-----").next().unwrap();
    shop.machine.write("statement", statement);
    let [key, text] = ["web1", "statement"].map(|name| shop.machine.path(name));
    let mut stolen = Command::new("ssh-keygen");
    stolen.args(["-q", "-Y", "sign", "-n", "stead-release", "-f"]).arg(key).arg(text);
    assert!(stolen.status().unwrap().success());
    fs::write(&release, signed + &shop.machine.read("statement.sig").unwrap()).unwrap();
    shop.until_code("E1406");
    assert_eq!(shop.machine.read("kept").as_deref(), Some("one\n"));
    shop.machine.stop();
}

/// A machine is copied, and the copy has an id of its own.
#[test]
fn a_clone_has_other_keys_and_takes_nothing_in_the_name_of_the_first() {
    const TEST: &str = "a_clone_has_other_keys_and_takes_nothing_in_the_name_of_the_first";
    if !is_root(TEST) {
        return;
    }
    let mut shop = Shop::new();
    shop.publish("one", FOR_WEB);
    shop.machine.write("web1.identity", &shop.machine.ok(&["identity"]));
    let enrolled =
        format!("release roster add web1 --fleet fleet/root --identity web1.identity --label role=web {BOTH}");
    shop.stead(&enrolled);
    shop.follow(&shop.folder());
    shop.until_kept("one");
    shop.machine.stop();
    shop.publish("two", FOR_WEB);
    shop.machine.write("machine-id", "00112233445566778899aabbccddeeff\n");
    let key = fs::read(shop.machine.path("state/machine.key")).unwrap();
    shop.machine.start_with_id("machine-id");
    shop.until_code("E1432");
    assert_eq!((staged(&shop), shop.machine.read("kept").as_deref()), ((1, json!(1)), Some("one\n")));
    assert_eq!(shop.machine.count("keysMade", ""), 1, "those of the copy");
    assert_ne!(fs::read(shop.machine.path("state/machine.key")).unwrap(), key);
    shop.machine.kill();
}
