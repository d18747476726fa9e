//! A plan of all machines: saved, shown, and done on each as it is or not at all.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value as Json;

use super::terminal::AtTerminal;
use super::{Answer, World, root, site};

#[test]
fn what_was_planned_is_done_on_each_machine_or_nothing_there() {
    let world = site(true);
    let planned = world.stead("plan site.yaml --hosts hosts.yaml --out all.plan");
    assert_eq!(planned.code, 2, "{}", planned.errors);
    assert_eq!(fs::metadata(world.path("all.plan")).unwrap().permissions().mode() & 0o777, 0o600);
    let shown = world.stead("show all.plan");
    assert_eq!((shown.code, shown.out), (0, planned.shown()), "{}", shown.errors);
    let data: Json = serde_json::from_str(&world.stead("show all.plan -o json").out).unwrap();
    assert_eq!(data["machines"][2]["report"]["instances"][0]["action"], "create", "{data}");
    // What changes here meanwhile has no effect; what changes on a machine leaves that one out.
    world.write("site.yaml", "resources: []");
    world.write("page.html", "other");
    world.write("web2/motd", "in between");
    let applied = world.stead("apply all.plan --brief");
    let expected = "web1, db1:
  + Stead/File 'motd'  created
  + Stead/File 'page'  created
web2:
  error: the saved plan is out of date for 1 instance; nothing was changed
    Stead/File 'motd'
      planned: create (content: \"hello\")
      now:     change (content: \"hello\")
";
    assert!(
        applied.code == 3 && applied.out.starts_with(expected),
        "{} {}{}",
        applied.code,
        applied.out,
        applied.errors
    );
    assert!(applied.shown().ends_with("Applied on 3 machines: 2 changed · 1 refused\n"), "{}", applied.out);
    assert_eq!((world.read("web1/page"), world.path("web2/page").exists()), ("<p>\n".to_owned(), false));
    assert_eq!(world.read("web2/motd"), "in between");
}

#[test]
fn a_plan_of_some_machines_names_those_that_it_has_none_of() {
    let world = site(true);
    world.write("hosts.yaml", "machines: {web1: null, gone: null, web2: {labels: {role: web}}}");
    let planned = world.stead("plan site.yaml --hosts hosts.yaml --out all.plan");
    let warning = "warning: the saved plan is without 1 machine, which made none: gone\n";
    assert_eq!((planned.code, planned.errors.as_str()), (1, warning), "{}", planned.out);
    let missing = world.stead("apply all.plan --hosts hosts.yaml");
    assert!(
        missing.code == 3 && missing.errors.starts_with("error: the plan has no machine 'gone'\n"),
        "{}",
        missing.errors
    );
    let some = world.stead("apply all.plan --hosts hosts.yaml --where role=web --at-once 1 --halt-after 1");
    assert_eq!((some.code, world.read("web2/motd").as_str()), (0, "hello"), "{}{}", some.out, some.errors);
    assert!(!world.path("web1/motd").exists());
    for options in ["--only motd", "--parameters {}", "--system-root .", "--report page"] {
        assert_eq!(world.stead(&format!("apply all.plan {options}")).code, 3, "{options}");
    }
    let changed = world.read("all.plan").replace("web2", "web3");
    world.write("all.plan", &changed);
    let damaged = world.stead("apply all.plan");
    let expected = "error: all.plan: the plan was changed or damaged after it was made\n";
    assert!(damaged.code == 3 && damaged.errors.starts_with(expected), "{}", damaged.errors);
    world.write("kept", "text");
    assert_eq!(world.stead("plan site.yaml --host web1 --out kept").code, 1);
    assert_eq!(world.read("kept"), "text");
}

#[test]
fn a_plan_of_all_has_no_secrets_and_those_of_the_inventory_are_given_anew() {
    let world = site(true);
    world.write(
        "site.yaml",
        "parameters: {token: {type: secureString}}
resources: [{name: secret, type: Stead/File, properties: {path: secret, content: \"[parameters('token')]\"}}]
",
    );
    let machines = |token: &str| {
        format!(
            "machines: {{web1: {{parameters: {{token: {token}}}}}, web2: {{parameters: {{token: hunter2-of-web2}}}}}}"
        )
    };
    world.write("hosts.yaml", &machines("hunter2-of-web1"));
    assert_eq!(world.stead("plan site.yaml --hosts hosts.yaml --out all.plan").code, 2);
    assert!(!world.read("all.plan").contains("hunter2"));
    let without = world.stead("apply all.plan");
    assert!(
        without.code == 3 && without.out.contains("the saved plan needs the secret parameter 'token'"),
        "{}",
        without.out
    );
    let applied = world.stead("apply all.plan --hosts hosts.yaml -v");
    assert_eq!(
        (applied.code, world.read("web1/secret").as_str()),
        (0, "hunter2-of-web1"),
        "{}{}",
        applied.out,
        applied.errors
    );
    assert_eq!(world.read("web2/secret"), "hunter2-of-web2");
    assert!(!(applied.out + &applied.errors).contains("hunter2"));
    // A value that looks like a number stays the text that it is.
    world.write("hosts.yaml", &machines("'0123456789'"));
    assert_eq!(world.stead("plan site.yaml --hosts hosts.yaml --host web1 --out all.plan").code, 2);
    let number = world.stead("apply all.plan --hosts hosts.yaml --host web1");
    assert_eq!((number.code, world.read("web1/secret").as_str()), (0, "0123456789"), "{}{}", number.out, number.errors);
}

/// What a plan says that it needs is what its machine says.
#[test]
fn a_machine_gets_no_parameter_that_the_document_does_not_declare() {
    let world = site(false);
    world.pretends(
        r#"head -n 1 >>"$TEST_ROOT/orders"
echo '{"changes":true,"instances":[{"name":"motd","type":"Stead/File","status":"changed","action":"change","changes":[]}]}'
echo '{"plan":"{\"plan\":{\"secrets\":[\"other\",\"token\"]}}"}'
exit 2
"#,
    );
    world.write("site.yaml", "parameters: {token: {type: secureString}}\nresources: []\n");
    world.write(
        "hosts.yaml",
        "parameters: {other: of-another-document, token: of-this-document}\nmachines: {web1: null}",
    );
    assert_eq!(world.stead("plan site.yaml --hosts hosts.yaml --out all.plan").code, 2);
    world.stead("apply all.plan --hosts hosts.yaml");
    let orders = world.read("orders");
    let given: Vec<Json> = orders.lines().map(|order| serde_json::from_str(order).unwrap()).collect();
    let expected = serde_json::json!({ "token": "\"of-this-document\"" });
    assert_eq!(given[1]["work"]["plan"]["secrets"], expected, "{orders}");
    assert!(!orders.contains("of-another-document"));
}

#[test]
fn machines_of_a_plan_are_reached_where_they_were() {
    let world = site(true);
    let hosts = "machines: {one: {address: web1, user: deploy, port: 2222}, two: {address: web2}}";
    world.write("hosts.yaml", hosts);
    assert_eq!(world.stead("plan site.yaml --hosts hosts.yaml --out all.plan").code, 2);
    world.write("log", "");
    let applied = world.stead("apply all.plan --host one --deadline 77");
    assert_eq!((applied.code, world.read("web1/motd").as_str()), (0, "hello"), "{}{}", applied.out, applied.errors);
    assert!(!world.path("one").exists() && !world.path("web2/motd").exists());
    assert!(world.read("log").contains(" -l deploy -p 2222 -- web1 "), "{}", world.read("log"));
    world.stead("apply all.plan --host eve@one --host two --user ada");
    let log = world.read("log");
    assert!(log.contains(" -l eve -p 2222 -- web1 ") && log.contains(" -l ada -- web2 "), "{log}");
    let missing = world.stead("apply all.plan --host three");
    let expected = "error: the plan has no machine 'three'\n";
    assert!(missing.code == 3 && missing.errors.starts_with(expected), "{}", missing.errors);
    world.write("log", "");
    world.stead("apply all.plan --deadline 77");
    assert!(world.read("log").lines().all(|line| line.contains(" --deadline 77")), "{}", world.read("log"));
}

/// They are about the machines of the plan, where no others are named.
#[test]
fn a_plan_of_all_takes_the_options_for_many_machines_alone() {
    let world = site(true);
    let plan = || assert_eq!(world.stead("plan site.yaml --hosts hosts.yaml --out all.plan").code, 2);
    plan();
    world.write("web1/motd", "meanwhile");
    let halted = world.stead("apply all.plan --at-once 1 --halt-after 1 --user ada --brief");
    assert!(
        halted.code == 1 && halted.shown().ends_with("Applied on 3 machines: 1 refused · 2 not begun\n"),
        "{}{}",
        halted.out,
        halted.errors
    );
    assert!(world.read("log").lines().last().unwrap().contains(" -l ada -- web1 "), "{}", world.read("log"));
    plan();
    let begun = world.stead("apply all.plan --detach");
    assert!(begun.code == 0 && begun.shown().ends_with("Applied on 3 machines: 3 begun\n"), "{}", begun.errors);
}

#[test]
fn what_is_no_secret_of_a_plan_is_refused_and_what_is_one_can_be_a_variable() {
    let world = site(true);
    let document = "parameters: {text: {type: string, defaultValue: x}, token: {type: secureString}}
resources: [{name: secret, type: Stead/File, properties: {path: secret, content: \"[parameters('token')]\"}}]
";
    world.write("site.yaml", document);
    assert_eq!(world.stead("plan site.yaml --host web1 --set token=hunter2-of-plan --out all.plan").code, 2);
    for name in ["text", "other"] {
        let refused = world.stead(&format!("apply all.plan --set token=hunter2 --set {name}=y"));
        let expected = format!("error: '{name}' is not a secret parameter of the saved plan\n");
        assert!(refused.code == 3 && refused.errors.starts_with(&expected), "{}", refused.errors);
    }
    let apply = &mut world.command("apply all.plan");
    let applied = Answer::of(apply.env("STEAD_PARAM_token", "hunter2-of-variable").output().unwrap());
    assert_eq!((applied.code, world.read("web1/secret").as_str()), (0, "hunter2-of-variable"), "{}", applied.out);
    let plan = world.stead("plan all.plan");
    assert!(plan.code == 3 && plan.errors.contains("this is a saved plan, not a document"), "{}", plan.errors);
}

#[test]
fn a_machine_that_sends_no_plan_failed() {
    let world = site(true);
    let planned = world.stead("plan site.yaml --host web1 --host two --out all.plan");
    assert!(
        planned.code == 1 && planned.out.contains("two:\n  failed: it sent no plan that can be read\n"),
        "{}",
        planned.out
    );
    assert_eq!(planned.errors, "warning: the saved plan is without 1 machine, which made none: two\n");
}

#[test]
fn a_plan_of_root_is_done_as_root_and_no_other_is() {
    let world = site(true);
    assert_eq!(world.stead("plan site.yaml --host web2 --out all.plan").code, 2);
    let refused = world.stead("apply all.plan --host web2 --sudo");
    let expected = "error: this plan was made without '--sudo'; it cannot be applied with it\n";
    assert!(refused.code == 3 && refused.errors.starts_with(expected), "{}", refused.errors);
    let world: World = root::world();
    world.write("password", "correct-horse\n");
    let input = "correct-horse\n";
    let planned = world.with_input("plan site.yaml --host web2 --ask-sudo-password --out all.plan", input);
    assert_eq!(planned.code, 2, "{}{}", planned.out, planned.errors);
    let asked = world.with_input("apply all.plan", input);
    assert_eq!((asked.code, world.read("root-of-web2/motd").as_str()), (0, "hello"), "{}{}", asked.out, asked.errors);
    fs::remove_file(world.path("password")).unwrap();
    assert_eq!(world.stead("plan site.yaml --host web1 --sudo --out all.plan").code, 2);
    let applied = world.stead("apply all.plan");
    assert_eq!(
        (applied.code, world.read("root-of-web1/motd").as_str()),
        (0, "hello"),
        "{}{}",
        applied.out,
        applied.errors
    );
}

#[test]
fn at_a_terminal_what_a_plan_of_all_removes_is_shown_and_asked_for_once() {
    let world = site(true);
    let there = |name: &str| {
        fs::create_dir_all(world.path(name)).unwrap();
        world.write(&format!("{name}/old"), "x");
    };
    ["web1", "web2"].into_iter().for_each(there);
    world.write("site.yaml", "resources: [{name: old, type: Stead/File, properties: {path: old, _exist: false}}]");
    assert_eq!(world.stead("plan site.yaml --hosts hosts.yaml --out all.plan").code, 2);
    let question = "Apply this plan? It removes or replaces what is there in 2 instances on 2 machines. [y/N] ";
    for answer in ["n\n", "\n", "\x04"] {
        let mut terminal = AtTerminal::run(world.command("apply all.plan"));
        let asked = terminal.until(question);
        assert!(asked.contains("web1, web2:") && asked.contains("- Stead/File 'old'"), "{asked}");
        let (screen, code) = terminal.types(answer).ends();
        assert!(code == Some(6) && screen.contains("nothing was changed"), "{screen}");
        assert!(world.path("web1/old").exists() && world.path("web2/old").exists());
    }
    // It is about those that are meant.
    let mut terminal = AtTerminal::run(world.command("apply all.plan --host web2"));
    terminal.until("what is there in 1 instance on 1 machine. [y/N] ");
    let (screen, code) = terminal.types("y\n").ends();
    assert_eq!(
        (code, world.path("web1/old").exists(), world.path("web2/old").exists()),
        (Some(0), true, false),
        "{screen}"
    );
    for (words, code) in [("apply all.plan --host db1", 0), ("apply all.plan --host web1 --yes", 0)] {
        let (screen, ended) = AtTerminal::run(world.command(words)).types("n\n").ends();
        assert!(ended == Some(code) && !screen.contains("Apply this plan?"), "{words}: {screen}");
    }
    assert!(!world.path("web1/old").exists());
    // Nobody is asked without a terminal.
    there("web1");
    assert_eq!((world.stead("apply all.plan --host web1").code, world.path("web1/old").exists()), (0, false));
}

/// Each plan is read once, and found by its name: a plan of many machines takes no longer for each of them.
#[test]
fn a_plan_of_five_hundred_machines_is_done_on_each() {
    let world = site(false);
    world.pretends(
        r#"head -n 1 >/dev/null
echo '{"changes":true,"instances":[{"name":"motd","type":"Stead/File","status":"changed","action":"change","changes":[]}]}'
echo "{\"plan\":\"{\\\"plan\\\":{\\\"secrets\\\":[\\\"token\\\"]},\\\"of\\\":\\\"${HOME##*/}\\\"}\"}"
exit 0
"#,
    );
    world.write("site.yaml", "parameters: {token: {type: secureString}}\nresources: []\n");
    let machine = |number: usize| format!("  m{number:03}: {{parameters: {{token: t{number:03}-of-this}}}}\n");
    world.write("hosts.yaml", &format!("machines:\n{}", (0..500).map(machine).collect::<String>()));
    assert_eq!(world.stead("plan site.yaml --hosts hosts.yaml --out all.plan").code, 0);
    world.pretends(
        r#"head -n 1 >"$HOME/order"
echo '{"changes":true,"instances":[]}'
"#,
    );
    let applied = world.stead("apply all.plan --hosts hosts.yaml");
    assert!(
        applied.code == 0 && applied.shown().ends_with("Applied on 500 machines: 500 changed\n"),
        "{}",
        applied.out
    );
    for number in [0, 7, 250, 499] {
        let order: Json = serde_json::from_str(&world.read(&format!("m{number:03}/order"))).unwrap();
        let work = &order["work"]["plan"];
        assert_eq!(work["secrets"], serde_json::json!({ "token": format!("\"t{number:03}-of-this\"") }));
        assert!(work["plan"].as_str().unwrap().contains(&format!("m{number:03}")), "{work}");
    }
}
