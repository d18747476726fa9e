//! The controller as a service of a whole machine.

use stead_testkit::until;

use crate::debian::Debian;
use crate::site::fleet_program;

const TEST: &str = "an_installed_controller_has_an_account_that_can_do_nothing_else";
const UNIT: &str = "stead-fleet.service";
/// The most that systemd may count against the unit, of 10.
const EXPOSURE: f64 = 1.5;

#[test]
fn an_installed_controller_has_an_account_that_can_do_nothing_else() {
    let Some(program) = fleet_program(TEST) else { return };
    let Some(mut machine) = Debian::of_test(TEST, "controller") else { return };
    let has_server = machine.root("/usr/lib/postgresql").is_dir()
        || match machine.install_packages(&["postgresql"]) {
            Ok(()) => true,
            Err(why) => {
                stead_testkit::skip(&format!("{TEST}, with PostgreSQL"), &why);
                false
            }
        };
    let wants = "/etc/systemd/system/multi-user.target.wants/stead-fleet.service";
    for path in ["/var/lib/stead-fleet", "/etc/systemd/system/stead-fleet.service", wants, "/etc/stead"] {
        machine.remove(path);
    }
    machine.install(&program, "/usr/local/bin/stead-fleet");
    machine.boot();
    machine.wait_until_started();
    // An account of a former run of this test.
    machine.run(&["userdel", "stead-fleet"]);
    what_others_can_change_is_refused(&machine);
    // Root had one before: what that left is the account's.
    machine.ok(&["stead-fleet", "operator", "ann", "--role", "viewer"]);
    // What the file states is what it runs with: a server that is not there.
    assert!(!machine.run(&["stead-fleet", "install", "--name", "127.0.0.1"]).status.success());
    let log = machine.ok(&["journalctl", "-u", UNIT, "--no-pager"]);
    assert!(log.contains("cannot use the store") || log.contains("the database"), "{log}");
    machine.remove("/etc/stead/fleet.env");
    let printed = machine.ok(&["stead-fleet", "install", "--name", "127.0.0.1", "--listen", "[::]:443"]);
    assert!(printed.starts_with("/etc/systemd/system/stead-fleet.service is installed; "), "{printed}");
    answers(&machine, &printed, "https://127.0.0.1:443");
    let printed = machine.ok(&["stead-fleet", "install", "--name", "127.0.0.1"]);
    answers(&machine, &printed, "https://127.0.0.1:7443");
    is_contained(&machine);
    machine.ok(&["systemctl", "kill", "--signal", "KILL", UNIT]);
    until(|| machine.run(&["systemctl", "is-active", UNIT]).status.success().then_some(()));
    machine.cut_power();
    machine.boot();
    machine.wait_until_started();
    answers(&machine, &printed, "https://127.0.0.1:7443");
    if has_server {
        is_the_same_with_a_server(&machine);
    }
    machine.shut_down();
}

/// The store is named in a file that only root reads: what is printed to do next is done in that store.
fn is_the_same_with_a_server(machine: &Debian) {
    let sql = "CREATE ROLE fleet LOGIN PASSWORD 'of-fleet'; CREATE DATABASE fleet OWNER fleet";
    machine.ok(&["systemctl", "start", "postgresql.service"]);
    until(|| {
        machine.run(&["runuser", "-u", "postgres", "--", "psql", "-c", "SELECT 1"]).status.success().then_some(())
    });
    for statement in ["DROP DATABASE IF EXISTS fleet", "DROP ROLE IF EXISTS fleet"].into_iter().chain(sql.split("; ")) {
        machine.ok(&["runuser", "-u", "postgres", "--", "psql", "-v", "ON_ERROR_STOP=1", "-c", statement]);
    }
    machine.write(
        "/etc/stead/fleet.env",
        "STEAD_FLEET_STORE='host=127.0.0.1 dbname=fleet user=fleet password=of-fleet'\n",
    );
    machine.ok(&["chmod", "600", "/etc/stead/fleet.env"]);
    let printed = machine.ok(&["stead-fleet", "install", "--name", "127.0.0.1"]);
    answers(machine, &printed, "https://127.0.0.1:7443");
    machine.remove("/etc/stead/fleet.env");
}

fn what_others_can_change_is_refused(machine: &Debian) {
    machine.write("/etc/stead/fleet.env", "STEAD_FLEET_STORE=host=db\n");
    for path in ["/etc/stead/fleet.env", "/usr/local/bin/stead-fleet"] {
        machine.ok(&["chmod", "o+w", path]);
        let refused = machine.run_text(&["stead-fleet", "install"]);
        let why = format!("'{path}', which others can change");
        assert!(refused.contains("error: the service would ") && refused.contains(&why), "{refused}");
        machine.ok(&["chmod", "o-w", path]);
    }
    machine.ok(&["chmod", "600", "/etc/stead/fleet.env"]);
    assert!(!machine.run(&["getent", "passwd", "stead-fleet"]).status.success(), "nothing was done");
}

/// It runs as its account, and an operator whom the command makes that is printed, by the letter, is answered.
fn answers(machine: &Debian, printed: &str, url: &str) {
    let state = machine.ok(&["systemctl", "show", UNIT, "-p", "ActiveState,UnitFileState,User"]);
    assert_eq!(state, "User=stead-fleet\nActiveState=active\nUnitFileState=enabled\n");
    let line = printed.lines().find_map(|line| line.strip_prefix("create an operator: ")).unwrap();
    let token = machine.ok(&["sh", "-c", &line.replace(" NAME ", " ben ")]);
    assert_eq!(token.lines().count(), 1, "{token}");
    machine.write("/root/ben.token", &token);
    let folder = "/var/lib/stead-fleet";
    let certificate = format!("{folder}/tls.pem");
    machine.ok(&[
        "stead-fleet",
        "status",
        "--url",
        url,
        "--certificate",
        &certificate,
        "--token-file",
        "/root/ben.token",
    ]);
    let others = machine.ok(&["find", folder, "(", "!", "-user", "stead-fleet", "-o", "-perm", "/077", ")"]);
    assert_eq!(others, "", "everything in the folder is the account's alone");
}

fn is_contained(machine: &Debian) {
    let security = machine.ok(&["systemd-analyze", "security", "--no-pager", UNIT]);
    let line = security.lines().find(|line| line.contains("Overall exposure level")).unwrap_or_default();
    let level: f64 = line.split_whitespace().find_map(|word| word.parse().ok()).unwrap_or(10.0);
    println!("systemd-analyze security: {level}");
    assert!(level <= EXPOSURE, "{security}");
    let status = machine.ok(&["sh", "-c", &format!("cat /proc/$(systemctl show {UNIT} -p MainPID --value)/status")]);
    for line in ["CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"] {
        assert!(status.lines().any(|each| each == line), "{line}: {status}");
    }
}
