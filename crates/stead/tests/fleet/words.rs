//! Commands without a document: `get`, `set`, `export`, `facts` and `history` of many machines; and runs that go on without their caller.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value as Json;

use super::server::server;
use super::{World, site};

fn data(world: &World, words: &str) -> Json {
    let answer = world.stead(words);
    serde_json::from_str(&answer.out).unwrap_or_else(|_| panic!("{words}: {}{}", answer.out, answer.errors))
}

#[test]
fn machines_are_asked_and_equal_answers_are_shown_once() {
    let world = site(true);
    let family = world.stead("facts os.kind --hosts hosts.yaml");
    assert_eq!(
        (family.code, family.shown().as_str()),
        (
            3,
            "web1, web2, db1:\n  error: there is no fact 'os.kind'\n  help: 'stead facts' lists all facts\nAsked 3 machines: 3 refused\n"
        )
    );
    let facts = world.stead("facts os.family --hosts hosts.yaml");
    let (names, answer) = facts.out.split_once('\n').unwrap();
    assert_eq!((facts.code, names), (0, "web1, web2, db1:"), "{}", facts.errors);
    assert!(answer.starts_with("  ") && facts.shown().ends_with("\nAsked 3 machines: 3 answered\n"), "{answer}");
    let family = data(&world, "facts os.family --host web1 -o json");
    assert!(family["machines"][0]["report"].is_string() && family["machines"][0]["message"].is_null(), "{family}");
    let all = data(&world, "facts --host web1 -o json");
    assert!(all["machines"][0]["report"]["os"].is_object(), "{all}");
    let groups = data(&world, "export Group --host web1 --host gone -o json");
    assert_eq!(groups["totals"], serde_json::json!({ "answered": 1, "unreachable": 1 }));
    assert!(groups["machines"][0]["report"]["resources"].as_array().unwrap().len() > 1, "{groups}");
    assert_eq!(world.stead("get Nothing --host web1").code, 3);
    // Nothing that is read ends so.
    assert_eq!(world.stead("get File x --host two").code, 1);
}

#[test]
fn lines_of_json_are_one_for_each_machine_and_the_totals_of_a_run() {
    let world = site(true);
    let lines = |words: &str| -> Vec<Json> {
        let answer = world.stead(words);
        answer
            .out
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{words}: {line}")))
            .collect()
    };
    let names = |lines: &[Json]| lines.iter().map(|line| line["name"].as_str().map(str::to_owned)).collect::<Vec<_>>();
    let three = || vec![Some("web1".to_owned()), Some("web2".to_owned()), Some("db1".to_owned())];
    let facts = lines("facts os.family --hosts hosts.yaml -o ndjson");
    assert_eq!(names(&facts), three());
    let planned = lines("plan site.yaml --hosts hosts.yaml --out all.plan -o ndjson");
    assert_eq!(names(&planned), [three(), vec![None]].concat());
    assert_eq!(planned[3]["totals"], serde_json::json!({ "to change": 3 }));
    assert_eq!(names(&lines("show all.plan -o ndjson")), three());
}

/// Relative paths start at the home of the account, wherever the program lies.
#[test]
fn an_instance_is_set_and_shown_on_many_machines() {
    for has_stead in [true, false] {
        let world = site(has_stead);
        let planned = world.stead("set File note content=hello --host web1 --what-if");
        assert_eq!((planned.code, world.path("web1/note").exists()), (2, false), "{}{}", planned.out, planned.errors);
        assert!(planned.shown().ends_with("\nPlan for 1 machine: 1 to change\n"), "{}", planned.out);
        let set = world.stead("set File note content=hello --hosts hosts.yaml");
        assert_eq!((set.code, world.read("web2/note").as_str()), (0, "hello"), "{}{}", set.out, set.errors);
        let again = world.stead("set File note content=hello --hosts hosts.yaml");
        assert_eq!((again.code, again.shown().as_str()), (0, "Applied on 3 machines: 3 unchanged\n"));
        fs::set_permissions(world.path("db1/note"), PermissionsExt::from_mode(0o600)).unwrap();
        let get = world.stead("get File note --hosts hosts.yaml");
        let shown = get.shown();
        assert_eq!(get.code, 0, "{}", get.errors);
        assert!(shown.starts_with("web1, web2:\n") && shown.contains("\ndb1:\n"), "{shown}");
        assert!(shown.contains("      mode: \"0644\"\n") && shown.contains("      mode: \"0600\"\n"), "{shown}");
    }
}

#[test]
fn the_history_of_many_machines_is_theirs() {
    let world = site(true);
    let none = world.stead("history --host web1");
    assert_eq!((none.code, none.shown().as_str()), (0, "web1:\n  no recorded runs\nAsked 1 machine: 1 answered\n"));
    assert_eq!(world.stead("apply site.yaml --hosts hosts.yaml --record").code, 0);
    let listed = world.stead("history --host db1");
    let row = listed.out.lines().nth(3).unwrap_or_default();
    let is_whole = row.contains("  apply  ") && row.ends_with("  finished: 2 created, 0 unchanged, 0 failed");
    assert!(listed.out.starts_with("db1:\n") && is_whole, "{}{}", listed.out, listed.errors);
    let last = data(&world, "history show last --host web1 -o json");
    assert_eq!(last["machines"][0]["report"]["state"], "finished", "{last}");
    assert_eq!(world.stead("history --host web1 show last --html").code, 3);
}

#[test]
fn a_run_goes_on_without_its_caller_and_the_history_shows_how_it_ended() {
    let world = site(false);
    let Some(_server) = server(&world) else { return };
    let waits = "resources:
- {name: one, type: Stead/Command, properties: {set: 'while [ ! -e go ]; do sleep 0.05; done', test: 'test -e go'}}
- {name: two, type: Stead/File, dependsOn: [\"[resourceId('Stead/Command', 'one')]\"], properties: {path: two, content: x}}
";
    world.write("site.yaml", waits);
    let begun = world.stead("apply site.yaml --hosts hosts.yaml --detach");
    let expected =
        "real:\n  begun; 'stead history' for these machines shows how it ended\nApplied on 1 machine: 1 begun\n";
    assert_eq!((begun.code, begun.shown().as_str()), (0, expected), "{}", begun.errors);
    let state =
        || data(&world, "history --hosts hosts.yaml -o json")["machines"][0]["report"]["runs"][0]["state"].clone();
    assert_eq!(state(), "running");
    world.write("real/go", "");
    stead_testkit::until(|| (state() == "finished").then_some(()));
    assert_eq!(world.read("real/two"), "x");
    // What cannot begin is said at once.
    world.write("site.yaml", "resources: [{name: x, type: Stead/Nothing, properties: {}}]");
    let refused = world.stead("apply site.yaml --hosts hosts.yaml --detach");
    assert!(
        refused.code == 3 && refused.out.contains("Stead/Nothing"),
        "{} {}{}",
        refused.code,
        refused.out,
        refused.errors
    );
}
