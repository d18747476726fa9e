//! Machines with a real SSH server and a network of their own: `STEAD_MACHINES=10 cargo test -p stead --test boots machines_over_ssh`
//! makes a Debian once, and boots ten copies of it. All but the first are reached through the first alone.

use std::fs;
use std::process::Command;

use serde_json::Value as Json;

use crate::site::{PASSWORD, Reach, Site};

const TEST: &str = "machines_over_ssh";

/// How many machines there are where nothing is asked for.
const MACHINES: usize = 2;

#[test]
fn machines_over_ssh() {
    if !stead_testkit::is_root(TEST) {
        return;
    }
    let asked = stead_testkit::asked("STEAD_MACHINES");
    let makes = asked.is_some() || stead_testkit::asked("STEAD_BOOTS").is_some();
    let mut site = match Site::new(asked.unwrap_or(MACHINES).max(MACHINES), makes, Reach::ThroughTheFirst) {
        Ok(site) => site,
        Err(reason) => return stead_testkit::skip(TEST, &reason),
    };
    is_planned_and_applied(&site);
    drift_is_found_and_repaired(&site);
    what_was_planned_is_done_or_nothing(&site);
    root_is_reached_with_and_without_a_password(&site);
    nobody_is_asked_for_the_key_of_a_jump_host(&site);
    a_machine_that_is_off_halts_the_rest(&mut site);
}

/// Nothing of stead is on any of them before, nor what others need.
fn is_planned_and_applied(site: &Site) {
    let all = site.names();
    for machine in &site.machines {
        for program in ["stead", "curl", "wget", "python3"] {
            assert!(!machine.run(&["which", program]).status.success(), "{program}");
        }
    }
    let reached = site.stead("hosts --check -o json");
    let reached: Json = serde_json::from_str(&reached.0).unwrap();
    assert!(reached["machines"].as_array().unwrap().iter().all(|each| each["reached"] == true), "{reached}");
    let count = site.machines.len();
    let (plan, errors, code) = site.stead("plan site.yaml --hosts hosts.yaml --brief");
    let expected = format!(
        "{all}:\n  + Stead/File 'motd'  to be created\n  + Stead/File 'page'  to be created\nPlan for {count} machines: {count} to change in "
    );
    assert!(code == Some(2) && plan.starts_with(&expected), "{plan}{errors}");
    assert_eq!(site.machines[0].read("/home/deploy/motd"), None);
    let (applied, errors, code) = site.stead("apply site.yaml --hosts hosts.yaml --brief");
    assert!(code == Some(0) && applied.contains(&format!(": {count} changed in ")), "{applied}{errors}");
    let (again, errors, code) = site.stead("apply site.yaml --hosts hosts.yaml");
    let expected = format!("Applied on {count} machines: {count} unchanged in ");
    assert!(code == Some(0) && again.starts_with(&expected), "{again}{errors}");
}

fn drift_is_found_and_repaired(site: &Site) {
    let last = site.machines.last().unwrap();
    let name = site.names().rsplit(", ").next().unwrap().to_owned();
    last.write("/home/deploy/motd", "drift");
    let (check, errors, code) = site.stead("check site.yaml --hosts hosts.yaml --brief");
    let expected = format!("{name}:\n  ~ Stead/File 'motd'  drifted\n");
    assert!(code == Some(2) && check.starts_with(&expected), "{check}{errors}");
    let (applied, errors, code) = site.stead("apply site.yaml --hosts hosts.yaml --where drifts");
    assert_eq!((code, last.read("/home/deploy/motd").as_deref()), (Some(0), Some("hello")), "{applied}{errors}");
}

/// All but the one that changes meanwhile.
fn what_was_planned_is_done_or_nothing(site: &Site) {
    let last = site.machines.last().unwrap();
    let (planned, errors, code) = site.stead("plan site.yaml --hosts hosts.yaml --set text=planned --out all.plan");
    assert_eq!(code, Some(2), "{planned}{errors}");
    last.write("/home/deploy/motd", "meanwhile");
    let (applied, errors, code) = site.stead("apply all.plan --brief");
    let others = site.machines.len() - 1;
    let expected = format!(": {others} changed · 1 refused in ");
    assert!(code == Some(3) && applied.contains(&expected), "{applied}{errors}");
    assert!(applied.contains("the saved plan is out of date for 1 instance; nothing was changed"), "{applied}");
    assert_eq!(site.machines[0].read("/home/deploy/motd").as_deref(), Some("planned"));
    assert_eq!(last.read("/home/deploy/motd").as_deref(), Some("meanwhile"));
    let (applied, errors, code) = site.stead("apply site.yaml --hosts hosts.yaml");
    assert_eq!(code, Some(0), "{applied}{errors}");
}

fn root_is_reached_with_and_without_a_password(site: &Site) {
    let last = site.machines.last().unwrap();
    let (applied, errors, code) = site.stead("apply site.yaml --hosts hosts.yaml --sudo");
    assert_eq!((code, last.read("/root/motd").as_deref()), (Some(0), Some("hello")), "{applied}{errors}");
    let owner = last.ok(&["stat", "-c", "%U", "/root/motd", "/root/.cache/stead-programs"]);
    assert_eq!(owner, "root\nroot\n");
    let (refused, _, code) = site.stead("apply site.yaml --hosts hosts.yaml --user ada --sudo --set text=ada");
    assert!(code == Some(1) && refused.contains("sudo: a password is required"), "{refused}");
    let with = "apply site.yaml --hosts hosts.yaml --user ada --ask-sudo-password --set text=ada";
    let (refused, errors, code) = site.stead_with(with, "battery-horse\n");
    assert!(code == Some(1) && refused.contains("failed: sudo does not accept the password"), "{refused}{errors}");
    assert_eq!(last.read("/root/motd").as_deref(), Some("hello"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_stead"));
    command.args(with.split(' ')).arg("--yes");
    let mut terminal = crate::terminal::AtTerminal::run(site.environment(command));
    let asked = terminal.until("Password of sudo: ");
    let (applied, code) = terminal.types(&format!("{PASSWORD}\n")).ends();
    assert_eq!((code, last.read("/root/motd").as_deref()), (Some(0), Some("ada")), "{applied}");
    for text in [asked, applied, last.run_text(&["journalctl", "--no-pager"])] {
        assert!(!text.contains(PASSWORD), "{text}");
    }
}

/// `ssh` calls itself for a jump host, without the options that it was called with.
fn nobody_is_asked_for_the_key_of_a_jump_host(site: &Site) {
    let known = fs::read_to_string(site.path("known")).unwrap();
    let others: String =
        known.lines().filter(|line| !line.starts_with("10.77.")).flat_map(|line| [line, "\n"]).collect();
    fs::write(site.path("known"), &others).unwrap();
    let mut command = Command::new("setsid");
    command.args(["--ctty", "--wait", env!("CARGO_BIN_EXE_stead"), "check", "site.yaml", "--hosts", "hosts.yaml"]);
    let (screen, code) = crate::terminal::AtTerminal::run(site.environment(command)).ends();
    assert!(code == Some(1) && !screen.contains("continue connecting"), "{screen}");
    assert!(screen.contains("unreachable: Host key verification failed."), "{screen}");
    assert_eq!(fs::read_to_string(site.path("known")).unwrap(), others);
    fs::write(site.path("known"), &known).unwrap();
}

fn a_machine_that_is_off_halts_the_rest(site: &mut Site) {
    site.machines.last_mut().unwrap().cut_power();
    let halted = "apply site.yaml --hosts backwards.yaml --at-once 1 --halt-after 1 --brief";
    let (applied, errors, code) = site.stead(halted);
    let rest = site.machines.len() - 1;
    let expected = format!(": 1 unreachable · {rest} not begun in ");
    assert!(code == Some(1) && applied.contains(&expected), "{applied}{errors}");
    let at = site.machines.len() - 1;
    site.boot(at);
    let (applied, errors, code) = site.stead(halted);
    assert!(code == Some(0) && applied.contains(" unchanged in "), "{applied}{errors}");
}
