//! Secrets of vaults: those of the caller, which machines ask for, and those of machines.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, io};

use stead_testkit::until;

use super::{Answer, PROGRAM, World};

/// A vault that keeps what it was asked for.
const VAULT: &str = r#"echo "$2 $4" >>"${0%/*}/asked"
case $2 in database|part|other) echo "hunter2-of-$2";; esac"#;

const SITE: &str = "resources:
- {name: database, type: Stead/File, properties: {path: database, content: \"[secret('database')]\"}}
- {name: part, type: Microsoft.DSC/Include, properties: {configurationFile: part.yaml}}
";

const PART: &str = "resources:
- {name: part, type: Stead/File, properties: {path: part, content: \"[secret('part', 'shelf')]\"}}
";

/// A world with a vault where the command is called.
fn world(site: &str) -> World {
    let world = World::new(true);
    world.vault(VAULT);
    world.write("site.yaml", site);
    world.write("part.yaml", PART);
    world.write("hosts.yaml", "machines: {web1: null, web2: null}");
    world
}

/// The names that the vault was asked for since the last time.
fn asked(world: &World) -> Vec<String> {
    let asked = world.read("bin/asked").lines().map(str::to_owned).collect();
    let _ = fs::remove_file(world.path("bin/asked"));
    asked
}

fn shows_nothing(answer: &Answer) {
    assert!(!answer.out.contains("hunter2") && !answer.errors.contains("hunter2"), "{}{}", answer.out, answer.errors);
}

#[test]
fn secrets_are_found_where_the_command_is_called_once_for_all_machines() {
    let world = world(SITE);
    let plan = world.stead("plan site.yaml --hosts hosts.yaml");
    let expected = "web1, web2:
  + Stead/File 'database'  to be created
      + content: <secureValue>
  + Stead/File 'part'  to be created
      + content: <secureValue>
Plan for 2 machines: 2 to change
";
    assert_eq!((plan.code, plan.shown().as_str()), (2, expected), "{}", plan.errors);
    let mut names = asked(&world);
    names.sort();
    assert_eq!(names, ["database ", "part shelf"]);
    let apply = world.stead("apply site.yaml --hosts hosts.yaml -o json --events");
    assert_eq!(apply.code, 0, "{}{}", apply.out, apply.errors);
    shows_nothing(&apply);
    for machine in ["web1", "web2"] {
        let read = |name: &str| world.read(&format!("{machine}/{name}"));
        assert_eq!((read("database").as_str(), read("part").as_str()), ("hunter2-of-database", "hunter2-of-part"));
    }
    let check = world.stead("check site.yaml --hosts hosts.yaml");
    assert_eq!((check.code, check.shown().as_str()), (0, "Check of 2 machines: 2 in desired state\n"));
}

/// The error is that of one machine.
#[test]
fn what_no_vault_knows_and_what_is_computed_is_an_error_at_its_place() {
    let site = "parameters: {name: {type: string, defaultValue: database}}
resources:
- {name: computed, type: Stead/File, properties: {path: a, content: \"[secret(parameters('name'))]\"}}
- {name: vault, type: Stead/File, properties: {path: b, content: \"[secret('database', parameters('name'))]\"}}
- {name: absent, type: Stead/File, properties: {path: c, content: \"[secret('databse')]\"}}
- {name: never, type: Stead/File, condition: false, properties: {path: d, content: \"[secret(parameters('name'))]\"}}
";
    let world = world(site);
    let plan = world.stead("plan site.yaml --host web1 --brief");
    let computed = "the document does not name the secret 'database' as literal text, and so it is not looked for where the \
                    command was called; state 'directives: {secretsFrom: machine}', or write its name and vault as text";
    let expected = format!(
        "web1:
  ! Stead/File 'computed'  failed: {computed}
  ! Stead/File 'vault'  failed: {computed}
  ! Stead/File 'absent'  failed: Secret 'databse' not found
"
    );
    assert!(plan.shown().starts_with(&expected), "{}{}", plan.out, plan.errors);
    assert_eq!((plan.code, asked(&world)), (1, vec!["databse ".to_owned()]));
    let report = world.stead("plan site.yaml --host web1 -o json").out;
    let here = world.stead("plan site.yaml -o json").out;
    let finding = |report: &str| {
        let report: serde_json::Value = serde_json::from_str(report).unwrap();
        let report = report.pointer("/machines/0/report").cloned().unwrap_or(report);
        let absent = report["instances"].as_array().unwrap().iter().find(|each| each["name"] == "absent");
        absent.cloned().unwrap()
    };
    let (there, here) = (finding(&report), finding(&here));
    assert_eq!((&there["message"], &there["code"]), (&here["message"], &here["code"]), "{there} {here}");
}

#[test]
fn a_document_has_its_machines_find_secrets_themselves() {
    let world = world(&format!("directives: {{secretsFrom: machine}}\n{SITE}"));
    world.vault_in("there", "echo \"its-own-$2\"");
    let apply = world.stead("apply site.yaml --host web1");
    assert_eq!((apply.code, world.read("web1/database").as_str()), (0, "its-own-database"), "{}", apply.out);
    assert_eq!(asked(&world), [""; 0]);
    // Otherwise a vault of the machine counts for nothing.
    world.write("site.yaml", &SITE.replace("'database'", "'absent'"));
    let caller = world.stead("plan site.yaml --host web1 --brief");
    assert!(caller.out.contains("failed: Secret 'absent' not found"), "{}", caller.out);
}

#[test]
fn a_plan_of_all_holds_names_and_no_secrets_and_asks_for_those_again() {
    let world = world(SITE);
    let plan = world.stead("plan site.yaml --hosts hosts.yaml --out all.plan");
    assert_eq!(plan.code, 2, "{}", plan.errors);
    asked(&world);
    assert!(!world.read("all.plan").contains("hunter2"));
    // The document may have changed since.
    world.write("site.yaml", "resources: []");
    let apply = world.stead("apply all.plan");
    assert_eq!((apply.code, world.read("web2/part").as_str()), (0, "hunter2-of-part"), "{}{}", apply.out, apply.errors);
    assert_eq!(asked(&world).len(), 2);
    shows_nothing(&apply);
    let refused = world.stead("apply all.plan --detach");
    let expected = "error: with '--detach' nobody answers a run that asks for the secrets of this document
help: state 'directives: {secretsFrom: machine}', or apply it without '--detach'
";
    assert_eq!((refused.code, refused.errors.as_str()), (3, expected));
}

/// Takes an order and the bundle behind it, and asks for what it likes.
const HOSTILE: &str = r#"IFS= read -r order
count=${order#*\"bundle\":}
head -c "${count%%,*}" >/dev/null
ask() { printf "%s\n" "$1" >&2; IFS= read -r answer; printf "%s\n" "$answer" >>"$HOME/got"; }
"#;

#[test]
fn a_machine_gets_only_what_the_document_names() {
    let world = world(SITE);
    let asks = r#"case $HOME in *web2) exec PROGRAM "$@";; esac
HOSTILE
ask '{"secret":{"name":"other","vault":null}}'
ask '{"secret":{"name":"database","vault":"shelf"}}'
ask '{"secret":{"name":"part","vault":null}}'
ask '{"secret":{"name":"","vault":null}}'
ask '{"secret":{"name":"*","vault":"*"}}'
ask '{"secret":{"name":"database\nother","vault":null}}'
echo '{"secret":{"name":"other","vault":null,"machine":"web2"}}' >&2
echo '{"secret":"other"}' >&2
ask '{"secret":{"name":"database","vault":null}}
{"secret":{"name":"part","vault":"shelf"}}'
echo 'hunter2-of-database' | tr a-z A-Z >&2
echo '{"instances":[{"name":"x","type":"A/B","status":"failed","message":"\u0068unter2-of-database"}]}'
exit 1
"#;
    world.pretends(&asks.replace("HOSTILE", HOSTILE).replace("PROGRAM", PROGRAM));
    let apply = world.stead("apply site.yaml --hosts hosts.yaml -v");
    shows_nothing(&apply);
    assert!(!apply.out.contains("HUNTER2") && apply.out.contains("<secureValue>"), "{}", apply.out);
    let got = world.read("web1/got");
    let answers: Vec<&str> = got.lines().collect();
    let (last, refused) = answers.split_last().unwrap();
    assert!(refused.len() == 6 && refused.iter().all(|answer| answer.starts_with("{\"refused\":")), "{got}");
    assert_eq!(*last, "{\"secret\":\"hunter2-of-database\"}");
    // The vault never heard of the others.
    let mut names = asked(&world);
    names.sort();
    assert_eq!(names, ["database ", "part shelf"]);
    assert_eq!(world.read("web2/part"), "hunter2-of-part", "{}", apply.out);
}

#[test]
fn words_and_documents_that_leave_it_to_their_machine_are_not_answered() {
    let world = world(&format!("directives: {{secretsFrom: machine}}\n{SITE}"));
    let asks = r#"IFS= read -r order
echo '{"secret":{"name":"database","vault":null}}' >&2
echo '{"instances":[]}'
exit 0"#;
    world.pretends(asks);
    for words in ["apply site.yaml --host web1", "facts --host web1"] {
        let answer = world.stead(words);
        assert_eq!((answer.code, asked(&world)), (0, vec![]), "{}{}", answer.out, answer.errors);
    }
}

#[test]
fn a_machine_that_ends_while_it_is_answered_harms_nobody() {
    let world = world(SITE);
    let gone = r#"case $HOME in *web2) exec PROGRAM "$@";; esac
HOSTILE
echo '{"secret":{"name":"database","vault":null}}' >&2
exit 255
"#;
    world.pretends(&gone.replace("HOSTILE", HOSTILE).replace("PROGRAM", PROGRAM));
    let apply = world.stead("apply site.yaml --hosts hosts.yaml --brief");
    assert_eq!((apply.code, world.read("web2/database").as_str()), (1, "hunter2-of-database"), "{}", apply.errors);
    assert!(apply.out.contains("web1:\n  failed: "), "{}", apply.out);
}

#[test]
fn a_command_that_ends_does_not_wait_for_a_vault() {
    let world = world(SITE);
    world.vault("touch \"${0%/*}/begun\"; sleep 600");
    let mut command = world.command("apply site.yaml --host web1");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until(|| world.path("bin/begun").exists().then_some(()));
    let began = Instant::now();
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    let answer = Answer::of(child.wait_with_output().unwrap());
    assert!(began.elapsed() < Duration::from_secs(50), "{}", answer.out);
    assert_eq!((answer.code, world.path("web1/database").exists()), (6, false), "{}{}", answer.out, answer.errors);
}

/// A run on a machine that has asked; its caller is the test.
fn waiting(world: &World, home: &Path) -> (std::process::Child, BufReader<std::process::ChildStderr>) {
    assert_eq!(world.stead("bundle site.yaml -o site.bundle").code, 0);
    let bundle = fs::read(world.path("site.bundle")).unwrap();
    let order = serde_json::json!({
        "protocol": 3, "bundle": bundle.len(), "work": {"document": {
            "operation": "apply", "identity": "name:test", "parameters": {"parameters": {}}, "asks": true,
            "only": [], "skip": [], "width": null, "systemRoot": null, "reconcile": {}, "record": null,
        }},
    });
    let mut there = Command::new(PROGRAM);
    there.arg("remote").env("HOME", home).env("STEAD_STATE", home.join("state"));
    let mut child = there.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(&[format!("{order}\n").as_bytes(), &bundle].concat()).unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("{\"secret\":") {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0, "it never asked");
    }
    assert_eq!(line, "{\"secret\":{\"name\":\"database\",\"vault\":null}}\n");
    (child, said)
}

#[test]
fn a_run_that_waits_for_an_answer_ends_with_its_caller_and_when_it_is_ended() {
    let world = world(&SITE[..SITE.find("- {name: part").unwrap()]);
    for is_signalled in [false, true] {
        let home = world.path(if is_signalled { "signalled" } else { "left" });
        fs::create_dir(&home).unwrap();
        let (mut child, mut said) = waiting(&world, &home);
        let pipe = child.stdin.take();
        if is_signalled {
            assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
        } else {
            drop(pipe);
        }
        io::copy(&mut said, &mut io::sink()).unwrap();
        assert_eq!((child.wait().unwrap().code(), home.join("database").exists()), (Some(6), false), "{is_signalled}");
    }
    // Other lines are passed over.
    let home = world.path("answered");
    fs::create_dir(&home).unwrap();
    let (mut child, mut said) = waiting(&world, &home);
    let answers = b"garbage\n{\"other\":\"x\"}\n{\"secret\":\"hunter2-of-database\"}\n";
    child.stdin.as_mut().unwrap().write_all(answers).unwrap();
    let mut rest = Vec::new();
    io::copy(&mut said, &mut rest).unwrap();
    assert_eq!(
        (child.wait().unwrap().code(), fs::read_to_string(home.join("database")).unwrap()),
        (Some(0), "hunter2-of-database".to_owned())
    );
    assert!(!String::from_utf8_lossy(&rest).contains("hunter2"));
}
