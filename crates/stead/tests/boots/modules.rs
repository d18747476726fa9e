//! Modules of Ansible on a whole machine: through stead on one, through `ansible-playbook` on its twin.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Map, Value as Json, json};

use crate::debian::Debian;

const TEST: &str = "modules_of_ansible_leave_a_machine_as_ansible_leaves_it";

/// What the tasks need; `ansible` has the collections.
const INSTALLED: [&str; 8] =
    ["ansible", "python3-apt", "git", "cron", "openssh-client", "debconf-utils", "gpg", "procps"];

/// The package that a task installs.
const PACKAGE: &str = "hello";

/// Packages are those of the machine, without a signature, and start nothing by themselves.
const SOURCES: [(&str, &str); 2] = [
    ("/etc/apt/sources.list", "deb [trusted=yes] file:///srv/mirror bookworm-backports main\n"),
    (
        "/etc/apt/apt.conf.d/90unsigned",
        "Acquire::AllowInsecureRepositories \"true\";\nAPT::Get::AllowUnauthenticated \"true\";\n",
    ),
];

/// What is there besides the files of the tasks.
const SET_UP: &str = "cd /srv/work && mkdir -p inner && echo inner >inner/text && tar cf site.tar --mtime=@0 inner && rm -r inner && \
     git init -q -b main repository && cd repository && echo text >file && git add file && \
     git -c user.name=n -c user.email=n@example.com commit -q -m first && apt-get -qq update";

/// The kind, mode, owner and content of all that the tasks may have changed. What git keeps has times in it.
const STATE: &str = "cd / && find etc home srv/work -name .git -prune -o -type f -printf '%p %m %u %g ' \
     -exec sha256sum {} ';' -o -printf '%p %m %u %g %l\n' | sort; crontab -l 2>/dev/null || true";

/// The result of each task, by its name.
type Results = BTreeMap<String, Json>;

#[test]
fn modules_of_ansible_leave_a_machine_as_ansible_leaves_it() {
    if stead_testkit::asked("STEAD_PEERS").is_none() {
        return stead_testkit::skip(TEST, "it runs ansible-playbook where STEAD_PEERS is stated");
    }
    if !stead_testkit::is_root(TEST) {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("modules");
    let fresh = match fresh(&folder.join("fresh")) {
        Ok(fresh) => fresh,
        Err(reason) => return stead_testkit::skip(TEST, &reason),
    };
    let [mut ours, mut theirs] = ["ours", "theirs"].map(|name| started(&fresh, &folder.join(name)));
    let before = ours.ok(&["sh", "-c", STATE]);
    let (planned, checked) = (stead(&ours, &["plan"]), ansible(&theirs, &["--check", "--diff"]));
    let unsaid = checked
        .iter()
        .flat_map(|(task, said)| lacking(&planned[task], said).into_iter().map(move |what| format!("{task}: {what}")));
    assert_eq!(unsaid.collect::<Vec<_>>(), Vec::<String>::new());
    assert_eq!(ours.ok(&["sh", "-c", STATE]), before, "a plan changes nothing");
    let (applied, ran) = (stead(&ours, &["apply", "--yes"]), ansible(&theirs, &[]));
    assert_eq!(disagreeing(&applied, &ran), Vec::<String>::new());
    let changed = ran.values().filter(|said| said["changed"] == true).count();
    assert!(changed >= 25, "{changed}: {ran:#?}");
    let [one, other] = [&ours, &theirs].map(|machine| machine.ok(&["sh", "-c", STATE]));
    let differing: Vec<&str> = one.lines().filter(|line| !other.lines().any(|each| each == *line)).collect();
    assert_eq!((differing, one.lines().count()), (Vec::new(), other.lines().count()));
    assert_ne!(one, before);
    let (again, also) = (stead(&ours, &["apply", "--yes"]), ansible(&theirs, &[]));
    assert_eq!(disagreeing(&again, &also), Vec::<String>::new());
    assert!(again.values().all(|said| said["status"] == "unchanged"), "{again:#?}");
    println!("{} tasks, {changed} of which changed something, in each way alike", ran.len());
    for machine in [&mut ours, &mut theirs] {
        machine.shut_down();
        machine.delete();
    }
}

/// A machine with what the tasks need, made once.
fn fresh(folder: &Path) -> Result<Debian, String> {
    let fresh = Debian::of(folder, true)?;
    if !fresh.root("/srv/mirror").is_dir() {
        fresh.install_packages(&INSTALLED)?;
        fresh.mirror(&[PACKAGE])?;
    }
    Ok(fresh)
}

/// A copy of it that is on, with the program, the adapter, and the tasks in the words of each.
fn started(fresh: &Debian, folder: &Path) -> Debian {
    let mut machine = fresh.copy(folder);
    machine.install(Path::new(env!("CARGO_BIN_EXE_stead")), "/usr/local/bin/stead");
    let adapters = stead_testkit::repository().join("adapters");
    fs::create_dir_all(machine.root("/usr/lib/stead")).unwrap();
    let copied = Command::new("cp").args(["-rL"]).arg(adapters).arg(machine.root("/usr/lib/stead/adapters")).status();
    assert!(copied.unwrap().success());
    for (path, text) in SOURCES {
        machine.write(path, text);
    }
    let tasks = fs::read_to_string(stead_testkit::repository().join("corpus/ansible/machine.json")).unwrap();
    let tasks: Vec<Json> = serde_json::from_str(&tasks).unwrap();
    for (path, text) in tasks.iter().flat_map(|task| task["files"].as_object().into_iter().flatten()) {
        machine.write(path, text.as_str().unwrap());
    }
    let instance = |task: &Json| {
        let (collection, name) = task["module"].as_str().unwrap().rsplit_once('.').unwrap();
        json!({"name": task["name"], "type": format!("Ansible.{collection}/{name}"), "properties": task["args"]})
    };
    let step = |task: &Json| {
        let members = [("name", &task["name"]), (task["module"].as_str().unwrap(), &task["args"])];
        Json::from(members.into_iter().map(|(name, value)| (name.to_owned(), value.clone())).collect::<Map<_, _>>())
    };
    let resources: Vec<Json> = tasks.iter().map(instance).collect();
    machine.write("/srv/main.json", &json!({ "resources": resources }).to_string());
    let steps: Vec<Json> = tasks.iter().map(step).collect();
    let play = json!([{"hosts": "localhost", "connection": "local", "gather_facts": false, "tasks": steps}]);
    machine.write("/srv/play.yaml", &play.to_string());
    machine.boot();
    machine.wait_until_started();
    machine.ok(&["sh", "-c", SET_UP]);
    machine
}

fn stead(machine: &Debian, arguments: &[&str]) -> Results {
    let program = ["DSC_RESOURCE_PATH=/usr/lib/stead/adapters/ansible", "stead"];
    let printed =
        machine.run(&[&program, &arguments[..1], &["/srv/main.json", "-o", "json"], &arguments[1..]].concat());
    let shown = String::from_utf8_lossy(&printed.stderr);
    let report: Json = serde_json::from_slice(&printed.stdout).unwrap_or_else(|_| panic!("{shown}"));
    let instances = report["instances"].as_array().unwrap().iter();
    let found: Results = instances.map(|each| (each["name"].as_str().unwrap().to_owned(), each.clone())).collect();
    let failed: Vec<&Json> = found.values().filter(|each| each["status"] == "failed").collect();
    assert!(failed.is_empty(), "{failed:#?}{shown}");
    found
}

fn ansible(machine: &Debian, arguments: &[&str]) -> Results {
    let program =
        ["ANSIBLE_STDOUT_CALLBACK=ansible.posix.json", "ANSIBLE_PIPELINING=1", "ansible-playbook", "/srv/play.yaml"];
    let printed = machine.run(&[&program, arguments].concat());
    let shown = [&printed.stdout, &printed.stderr].map(|bytes| String::from_utf8_lossy(bytes)).concat();
    let report: Json = serde_json::from_slice(&printed.stdout).unwrap_or_else(|_| panic!("{shown}"));
    let tasks = report["plays"][0]["tasks"].as_array().unwrap().iter();
    let found: Results = tasks
        .map(|task| (task["task"]["name"].as_str().unwrap().to_owned(), task["hosts"]["localhost"].clone()))
        .collect();
    assert!(found.values().all(|each| each["failed"] != true), "{shown}");
    found
}

/// The tasks that have another verdict in one than in the other.
fn disagreeing(ours: &Results, theirs: &Results) -> Vec<String> {
    let expected = |said: &Json| if said["changed"] == true { "changed" } else { "unchanged" };
    let differing = theirs.iter().filter(|(task, said)| ours[*task]["status"] != expected(said));
    differing.map(|(task, said)| format!("{task}: {said:#}\n{:#}", ours[task])).collect()
}

/// What a plan lacks of the verdict and the diff of check mode.
fn lacking(planned: &Json, said: &Json) -> Vec<String> {
    let has_none = said["msg"].as_str().is_some_and(|why| why.contains("check mode"));
    let expected = match (&said["skipped"], &said["changed"]) {
        (Json::Bool(true), _) if has_none => "unknown",
        (_, Json::Bool(true)) => "changed",
        _ => "unchanged",
    };
    if planned["status"] != expected {
        return vec![format!("it is not {expected}")];
    }
    let side = |name: &str, side: &str| {
        let path = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
        let mut changes = planned["changes"].as_array().unwrap().iter();
        changes.find(|change| change["path"] == path).map(|change| change[side].clone())
    };
    let diffs = match &said["diff"] {
        Json::Array(diffs) => diffs.clone(),
        one => vec![one.clone()],
    };
    let mut lacking = Vec::new();
    for diff in diffs.iter().filter(|_| expected == "changed") {
        match (&diff["before"], &diff["after"]) {
            (Json::Object(before), Json::Object(after)) => {
                let differing = after.iter().filter(|(name, value)| before.get(*name) != Some(value));
                let unsaid = differing.filter(|(name, value)| side(name, "after").as_ref() != Some(value));
                lacking.extend(unsaid.map(|(name, value)| format!("{name} becomes {value}")));
            }
            (Json::String(before), Json::String(after)) if before != after => {
                let says = |name: &str, text: &str| {
                    side("text", name).and_then(|said| Some(said.as_str()?.contains(text))).unwrap_or(text.is_empty())
                };
                if !says("before", before) || !says("after", after) {
                    lacking.push(format!("{before:?} becomes {after:?}"));
                }
            }
            _ => {}
        }
    }
    lacking
}
