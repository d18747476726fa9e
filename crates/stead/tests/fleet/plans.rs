//! A plan of all machines: saved, shown, and done on each as it is or not at all.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value as Json;

use super::{World, root, site};

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
    let warning = "warning: the saved plan is without 1 machine, which made none\n";
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

#[test]
fn a_plan_of_root_is_done_as_root() {
    let world: World = root::world();
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
