//! The adapter `Ansible/Module`, with the Ansible that is installed: `ansible` on the `PATH`, or in the folder that `STEAD_TEST_ANSIBLE`
//! names. Without one these tests are skipped.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use stead_testkit::{repository, skip};
use tempfile::TempDir;

#[path = "support/forms.rs"]
mod forms;
#[path = "ansible/trust.rs"]
mod trust;

/// A home with a collection, `own.site`, and folders to work in.
struct Site {
    home: TempDir,
    path: OsString,
    more: Vec<(&'static str, OsString)>,
}

/// The end of a command.
struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Ended {
    fn json(&self) -> Json {
        serde_json::from_str(&self.stdout).unwrap_or_else(|_| panic!("{}{}", self.stdout, self.stderr))
    }

    /// The status of each instance, by its name.
    fn statuses(&self) -> BTreeMap<String, String> {
        let report = self.json();
        let instances = report["instances"].as_array().unwrap().iter();
        let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
        instances.map(|instance| (text(&instance["name"]), text(&instance["status"]))).collect()
    }
}

impl Site {
    fn new(test: &str) -> Option<Self> {
        let stated = std::env::var_os("STEAD_TEST_ANSIBLE").map(PathBuf::from);
        let usual = std::env::var_os("PATH").unwrap_or_default();
        let folders = || std::env::split_paths(&usual).filter(|folder| folder.join("ansible-playbook").exists());
        let Some(folder) = stated.or_else(|| folders().next()) else {
            skip(test, "ansible is not installed");
            return None;
        };
        let path = std::env::join_paths(std::iter::once(folder).chain(std::env::split_paths(&usual))).unwrap();
        let home = tempfile::tempdir().unwrap();
        let modules = home.path().join(".ansible/collections/ansible_collections/own/site/plugins/modules");
        fs::create_dir_all(&modules).unwrap();
        for module in fs::read_dir(repository().join("corpus/ansible/collection")).unwrap() {
            let module = module.unwrap();
            fs::copy(module.path(), modules.join(module.file_name())).unwrap();
        }
        Some(Self { home, path, more: Vec::new() })
    }

    fn folder(&self, name: &str) -> PathBuf {
        let folder = self.home.path().join(name);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn run(&self, program: &str, folder: &Path, arguments: &[&str]) -> Ended {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(folder).env("PATH", &self.path).env("HOME", self.home.path());
        command.env("DSC_RESOURCE_PATH", repository().join("adapters/ansible")).env("ANSIBLE_PIPELINING", "1");
        for (name, value) in [("STEAD_LOCKS", "locks"), ("XDG_CACHE_HOME", ".cache"), ("XDG_STATE_HOME", "state")] {
            command.env(name, self.home.path().join(value));
        }
        command.envs(self.more.iter().map(|(name, value)| (*name, value)));
        let output = command.env_remove("ANSIBLE_CONFIG").output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ended { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// What hostile code writes.
    fn mark(&self) -> PathBuf {
        self.home.path().join("mark")
    }

    /// A file of Python that makes the mark, also where it is loaded before Python can open files.
    fn plant(&self, file: &str, text: &str) {
        let file = self.home.path().join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let mark = self.mark();
        let makes = format!("posix.open(b'{}', posix.O_CREAT | posix.O_WRONLY)", mark.display());
        fs::write(&file, format!("import posix; posix.close({makes})\n{text}")).unwrap();
    }

    fn stead(&self, folder: &Path, arguments: &[&str]) -> Ended {
        self.run(env!("CARGO_BIN_EXE_stead"), folder, arguments)
    }

    /// Applies, or plans, a document of these instances.
    fn apply(&self, verb: &str, resources: &Json) -> Ended {
        let folder = self.folder("work");
        fs::write(folder.join("main.json"), json!({ "resources": resources }).to_string()).unwrap();
        let yes: &[&str] = if verb == "apply" { &["--yes"] } else { &[] };
        self.stead(&folder, &[&[verb, "main.json", "-o", "json"], yes].concat())
    }
}

/// A task of the table, with `$DIR` replaced.
fn tasks(folder: &Path) -> Vec<Json> {
    let table = fs::read_to_string(repository().join("corpus/ansible/tasks.json")).unwrap();
    serde_json::from_str(&table.replace("$DIR", folder.to_str().unwrap())).unwrap()
}

/// Writes what is there before the tasks.
fn prepare(folder: &Path) {
    for task in tasks(folder) {
        for (name, text) in task["files"].as_object().into_iter().flatten() {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text.as_str().unwrap()).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        }
    }
}

/// What is below a folder: kinds, modes and texts.
fn tree(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let (name, path) = {
            let entry = entry.unwrap();
            (entry.file_name().to_string_lossy().into_owned(), entry.path())
        };
        let mode = fs::symlink_metadata(&path).unwrap().permissions().mode();
        let text = if path.is_symlink() {
            fs::read_link(&path).unwrap().strip_prefix(folder).unwrap().display().to_string()
        } else if path.is_dir() {
            found.extend(tree(&path).into_iter().map(|(inner, about)| (format!("{name}/{inner}"), about)));
            String::new()
        } else {
            fs::read_to_string(&path).unwrap().replace(folder.to_str().unwrap(), "$DIR")
        };
        found.insert(name, format!("{mode:o} {text}"));
    }
    found
}

/// The verdict of `ansible-playbook` on each task.
fn verdicts(said: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut task = String::new();
    for line in said.lines() {
        if let Some(rest) = line.strip_prefix("TASK [") {
            rest.split(']').next().unwrap().clone_into(&mut task);
        }
        let verdict =
            ["ok", "changed", "skipping", "fatal"].iter().find(|verdict| line.starts_with(&format!("{verdict}: [")));
        verdict.map(|verdict| found.insert(task.clone(), (*verdict).to_owned()));
    }
    found
}

/// A module is skipped in check mode where it has none, and would run; the task `skipped` is because there is nothing to do.
fn has_nothing_to_do(task: &str, verdict: &str) -> bool {
    verdict == "ok" || task == "skipped"
}

/// Each task of the table through stead and through `ansible-playbook`: what is planned, what is there afterwards, and that a second run
/// changes nothing.
#[test]
fn modules_do_what_ansible_playbook_has_them_do() {
    const TEST: &str = "modules_do_what_ansible_playbook_has_them_do";
    if stead_testkit::asked("STEAD_PEERS").is_none() {
        return skip(TEST, "it runs ansible-playbook where STEAD_PEERS is stated");
    }
    let Some(site) = Site::new(TEST) else { return };
    let (ours, theirs) = (site.folder("ours"), site.folder("theirs"));
    prepare(&ours);
    prepare(&theirs);
    let instance = |task: &Json| {
        let module = task["module"].as_str().unwrap();
        json!({"name": task["name"], "type": format!("Ansible.ansible.builtin/{module}"), "properties": task["args"]})
    };
    let document = json!({"resources": tasks(&ours).iter().map(instance).collect::<Vec<_>>()});
    fs::write(ours.join("../main.json"), document.to_string()).unwrap();
    let mut steps = Vec::new();
    for task in tasks(&theirs) {
        let mut arguments = task["args"].clone();
        // A task is a template, a property is what it says.
        if let Some(content) = arguments.get("content").and_then(Json::as_str) {
            arguments["content"] = format!("!unsafe {content}").into();
        }
        let module = format!("ansible.builtin.{}", task["module"].as_str().unwrap());
        steps.push(json!({"name": task["name"], module: arguments}));
    }
    let play = json!([{"hosts": "localhost", "connection": "local", "gather_facts": false, "tasks": steps}]);
    let play = play.to_string().replace("\"!unsafe ", " !unsafe \"");
    fs::write(theirs.join("../play.yaml"), play).unwrap();

    let home = site.home.path();
    let compare = |stead: &[&str], ansible: &[&str]| {
        let (mine, other) = (site.stead(home, stead), site.run("ansible-playbook", home, ansible));
        let (statuses, verdicts) = (mine.statuses(), verdicts(&other.stdout));
        assert_eq!(statuses.len(), steps.len(), "{}{}", mine.stdout, mine.stderr);
        assert_eq!(verdicts.len(), steps.len(), "{}{}", other.stdout, other.stderr);
        for (task, verdict) in &verdicts {
            let expected = match verdict.as_str() {
                _ if has_nothing_to_do(task, verdict) => "unchanged",
                "skipping" => "unknown",
                _ => "changed",
            };
            assert_eq!(statuses[task], expected, "{task}: {verdict}\n{}", mine.stdout);
        }
        verdicts.iter().filter(|(task, verdict)| !has_nothing_to_do(task, verdict)).count()
    };
    let planned = compare(&["plan", "main.json", "-o", "json"], &["play.yaml", "--check", "--diff"]);
    assert_eq!(tree(&ours), tree(&theirs), "neither a plan nor a check changes anything");
    let changed = compare(&["apply", "main.json", "--yes", "-o", "json"], &["play.yaml"]);
    assert_eq!(planned, changed);
    assert_eq!(tree(&ours), tree(&theirs));
    assert_eq!(compare(&["apply", "main.json", "--yes", "-o", "json"], &["play.yaml"]), 0);
}

/// The processor time of programs that this process has waited for, with those that they have.
fn processor_time() -> Duration {
    let about = fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = about.rsplit(')').next().unwrap().split_whitespace().collect();
    // User and system time, in hundredths of a second.
    Duration::from_millis(fields[13..15].iter().map(|ticks| ticks.parse::<u64>().unwrap() * 10).sum())
}

/// A hundred tasks take a fifteenth of the processor time of `ansible-playbook`, or less, where all of them change something and where none does; also
/// without optimizations and where the processors have much else to do. The time on the clock is said.
#[test]
fn a_hundred_tasks_take_a_fifteenth_of_the_time() {
    const TEST: &str = "a_hundred_tasks_take_a_fifteenth_of_the_time";
    if stead_testkit::asked("STEAD_PEERS").is_none() {
        return skip(TEST, "it runs ansible-playbook where STEAD_PEERS is stated");
    }
    let Some(site) = Site::new(TEST) else { return };
    let (folder, other) = (site.folder("work"), site.folder("other"));
    let instance = |(at, of, properties): (u32, &str, Json)| json!({"name": at.to_string(), "type": format!("Ansible.ansible.builtin/{of}"), "properties": properties});
    let resources = Json::from(hundred(&folder).map(instance).collect::<Vec<_>>());
    let steps: Vec<Json> =
        hundred(&other).map(|(_, of, args)| json!({format!("ansible.builtin.{of}"): args})).collect();
    let play = json!([{"hosts": "localhost", "connection": "local", "gather_facts": false, "tasks": steps}]);
    fs::write(folder.join("play.yaml"), play.to_string()).unwrap();
    let measured = |run: &dyn Fn() -> Ended| {
        let (begun, before) = (Instant::now(), processor_time());
        let ended = run();
        (ended, begun.elapsed().as_secs_f64(), processor_time().saturating_sub(before).as_secs_f64())
    };
    for (status, changed) in [("changed", "changed=100 "), ("unchanged", "changed=0 ")] {
        let (ours, wall, time) = measured(&|| site.apply("apply", &resources));
        let (theirs, their_wall, their_time) = measured(&|| site.run("ansible-playbook", &folder, &["play.yaml"]));
        let factors = [their_time / time, their_wall / wall];
        println!(
            "100 tasks, {status}: {time:.2} s of processor time, {wall:.2} s; {factors:.1?} times that with ansible-playbook"
        );
        assert!(ours.statuses().values().all(|each| each == status), "{}{}", ours.stdout, ours.stderr);
        assert!(theirs.stdout.contains("ok=100 ") && theirs.stdout.contains(changed), "{}", theirs.stdout);
        assert!(factors[0] >= 15.0, "{factors:?}");
    }
}

/// A hundred tasks in a folder: the number of each, its module and its options.
fn hundred(folder: &Path) -> impl Iterator<Item = (u32, &'static str, Json)> {
    let path = |name: &str| folder.join(name).display().to_string();
    let task = move |at: u32| match at % 4 {
        0 => (at, "file", json!({"path": path(&format!("d{at}")), "state": "directory", "mode": "0755"})),
        1 => (at, "copy", json!({"dest": path(&format!("c{at}")), "content": format!("text {at}\n"), "mode": "0600"})),
        2 => (at, "lineinfile", json!({"path": path("lines"), "line": format!("line {at}"), "create": true})),
        _ => (
            at,
            "blockinfile",
            json!({"path": path(&format!("b{at}")), "block": format!("block {at}"), "create": true}),
        ),
    };
    (0..100).map(task)
}

/// Returns whether a module without check mode changes anything is not guessed.
#[test]
fn a_module_without_check_mode_is_unknown() {
    let Some(site) = Site::new("a_module_without_check_mode_is_unknown") else { return };
    let path = site.folder("work").join("blunt");
    let resources = json!([{"name": "blunt", "type": "Ansible.own.site/blunt", "properties": {"path": path}}]);
    site.apply("plan", &resources);
    for verb in ["plan", "check"] {
        for form in ["text", "json"] {
            let plan = site.stead(&site.folder("work"), &[verb, "main.json", "-o", form]);
            let says = plan.stdout.contains("remote module (own.site.blunt) does not support check mode");
            assert!(says, "{verb}, {form}: {}{}", plan.stdout, plan.stderr);
            assert_eq!(plan.code, Some(2), "{verb}, {form}");
            if form == "json" {
                assert_eq!(plan.statuses()["blunt"], "unknown");
                assert_eq!(plan.json()["totals"]["unknown"], 1, "{}", plan.stdout);
            }
        }
    }
    assert!(!path.exists());
    assert_eq!(site.apply("apply", &resources).code, Some(0));
    assert_eq!(fs::read_to_string(path).unwrap(), "again\n");
}

/// The state before a change has nothing of what the module returned of it; where nothing changes it was so before.
#[test]
fn what_was_there_has_no_result_of_a_change() {
    let Some(site) = Site::new("what_was_there_has_no_result_of_a_change") else { return };
    let folder = site.folder("work");
    let set = |of: &str, properties: Json, more: &[&str]| {
        let (of, input) = (format!("Ansible.ansible.builtin/{of}"), properties.to_string());
        site.stead(&folder, &[&["dsc", "resource", "set", "-r", &of, "-i", &input, "-o", "json"], more].concat()).json()
    };
    let made = json!({"path": folder.join("made"), "state": "directory"});
    for more in [&["--what-if"][..], &[]] {
        let said = set("file", made.clone(), more);
        assert_eq!(said["beforeState"]["_exist"], false, "{said}");
        assert!(said["beforeState"].get("result").is_none() && said["afterState"].get("result").is_some(), "{said}");
    }
    let said = set("file", made, &[]);
    assert_eq!(said["beforeState"]["result"], said["afterState"]["result"], "{said}");
    let said = set("command", json!({"argv": ["echo", "said"]}), &[]);
    assert_eq!(said["afterState"]["result"]["stdout"], "said", "{said}");
    assert!(said["beforeState"].get("result").is_none(), "{said}");
}

/// The document of the page about Ansible has no mistake.
#[test]
fn the_example_of_the_page_is_right() {
    let Some(site) = Site::new("the_example_of_the_page_is_right") else { return };
    let page = fs::read_to_string(repository().join("docs/ansible.md")).unwrap();
    let example = page.split("```yaml ansible\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let folder = site.folder("work");
    fs::write(folder.join("main.yaml"), example).unwrap();
    let linted = site.stead(&folder, &["lint", "main.yaml"]);
    assert_eq!(linted.code, Some(0), "{}", linted.stderr);
    assert!(!linted.stderr.contains("warning"), "{}", linted.stderr);
}

/// Questions of actions about files are answered as Ansible's modules answer them: paths with variables, files that are not text,
/// folders and what is not there. Ciphers, which are loaded as they are needed, are there for a template.
#[test]
fn actions_see_what_is_there() {
    let Some(site) = Site::new("actions_see_what_is_there") else { return };
    let folder = site.folder("work");
    fs::write(folder.join("bytes"), b"a\0b").unwrap();
    fs::write(folder.join("old"), "old\n").unwrap();
    let copied = |name: &str, dest: &str| json!({"name": name, "type": "Ansible.ansible.builtin/copy", "properties": {"content": "new\n", "dest": dest}});
    let path = |name: &str| folder.join(name).display().to_string();
    let own = folder.strip_prefix(site.home.path()).unwrap().display().to_string();
    let resources = json!([
        copied("absent", &path("absent")),
        copied("text", &path("old")),
        copied("bytes", &path("bytes")),
        copied("variable", &format!("$HOME/{own}/variable")),
    ]);
    let texts = |ended: &Ended| -> BTreeMap<String, Json> {
        let report = ended.json();
        let instances = report["instances"].as_array().unwrap().iter();
        instances
            .map(|each| (each["name"].as_str().unwrap().to_owned(), each["changes"][0]["before"].clone()))
            .collect()
    };
    let plan = site.apply("plan", &resources);
    let before = texts(&plan);
    assert_eq!(before["text"], "old\n", "{}", plan.stdout);
    assert_eq!(before["absent"], "", "{}", plan.stdout);
    assert!(!before["bytes"].to_string().contains("a\\u0000b"), "{}", plan.stdout);
    let applied = site.apply("apply", &resources);
    assert!(applied.statuses().values().all(|status| status == "changed"), "{}{}", applied.stdout, applied.stderr);
    for name in ["absent", "old", "bytes", "variable"] {
        assert_eq!(fs::read_to_string(folder.join(name)).unwrap(), "new\n", "{name}");
    }
    let again = site.apply("apply", &resources);
    assert!(again.statuses().values().all(|status| status == "unchanged"), "{}{}", again.stdout, again.stderr);
    fs::write(folder.join("vault.j2"), "{{ 'open' | vault('word', salt='0123456789abcdef') | unvault('word') }}")
        .unwrap();
    let template = json!([{"name": "vault", "type": "Ansible.ansible.builtin/template", "properties": {"src": "vault.j2", "dest": path("vault")}}]);
    let written = site.apply("apply", &template);
    assert_eq!(fs::read_to_string(path("vault")).unwrap_or_default(), "open", "{}{}", written.stdout, written.stderr);
}

/// What a module says must be the answer of a module: everything else is a failure of that instance, and of no other.
#[test]
fn nonsense_of_a_module_fails_it_alone() {
    let Some(site) = Site::new("nonsense_of_a_module_fails_it_alone") else { return };
    let noise = ["nothing", "nonsense", "much", "array", "dies"];
    let of = |kind: &str| json!({"name": kind, "type": "Ansible.own.site/noise", "properties": {"kind": kind}});
    let mut resources: Vec<Json> = noise.iter().map(|kind| of(kind)).collect();
    resources.push(of("lingers"));
    let ended = site.apply("apply", &resources.into());
    let statuses = ended.statuses();
    for kind in noise {
        assert_eq!(statuses[kind], "failed", "{kind}\n{}", ended.stdout);
    }
    assert_eq!(statuses["lingers"], "unchanged", "{}{}", ended.stdout, ended.stderr);
    assert!(!ended.stdout.contains('\u{1b}') && ended.stdout.len() < 1 << 20);
}

/// Nothing that stead writes or prints has a secret in any form: one for an option with `no_log`, and one for an option without.
#[test]
fn secrets_stay_secret() {
    const SECRET: &str = "fail Pa$$w0rd/ü<&'\"\\ of ours";
    let Some(site) = Site::new("secrets_stay_secret") else { return };
    let folder = site.folder("work");
    for option in ["token", "note"] {
        for secret in [SECRET, &SECRET[5..]] {
            let document = json!({
                "parameters": {"secret": {"type": "secureString"}},
                "resources": [{"name": "kept", "type": "Ansible.own.site/vault",
                    "properties": {"path": folder.join("kept"), option: "[parameters('secret')]"}}],
            });
            fs::write(folder.join("main.json"), document.to_string()).unwrap();
            fs::write(folder.join("secret.json"), json!({"parameters": {"secret": secret}}).to_string()).unwrap();
            for verb in [&["plan"][..], &["apply", "--yes"], &["check"]] {
                for form in ["json", "text"] {
                    let arguments = ["main.json", "--parameters-file", "secret.json", "-o", form, "-v"];
                    let ended = site.stead(&folder, &[verb, &arguments].concat());
                    let said = ended.stdout + &ended.stderr;
                    assert!(said.contains("kept"), "{said}");
                    for form in forms::forms(secret).into_iter().chain([secret.chars().rev().collect()]) {
                        assert!(!said.contains(&form), "{option}, {verb:?}: {form}\n{said}");
                    }
                }
            }
            fs::remove_file(folder.join("secret.json")).unwrap();
            assert_nowhere(site.home.path(), &forms::forms(secret));
        }
    }
}

/// No file below a folder has any of the texts.
fn assert_nowhere(folder: &Path, texts: &[String]) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            assert_nowhere(&path, texts);
        } else if let Ok(bytes) = fs::read(&path) {
            let text = String::from_utf8_lossy(&bytes);
            assert!(!texts.iter().any(|secret| text.contains(secret)), "{}", path.display());
        }
    }
}

/// The list has the modules of Ansible and of collections, and their options are explained as those of any resource.
#[test]
fn modules_are_listed_and_explained() {
    let Some(site) = Site::new("modules_are_listed_and_explained") else { return };
    let folder = site.folder("work");
    let listed = site.stead(&folder, &["resource", "list", "--adapter", "Ansible/Module", "-o", "json"]);
    for name in ["Ansible.ansible.builtin/copy", "Ansible.own.site/vault"] {
        assert!(listed.stdout.contains(&format!("\"{name}\"")), "{name}: {}", listed.stderr);
    }
    let explained = site.stead(&folder, &["explain", "Ansible.ansible.builtin/copy.mode"]);
    assert!(
        explained.stdout.contains("The permissions of the destination"),
        "{}{}",
        explained.stdout,
        explained.stderr
    );
    let adapter = repository().join("adapters/ansible/ansible_adapter.py");
    let once = ["-E", "-S", adapter.to_str().unwrap(), "get", "--type", "Ansible.ansible.builtin/stat"];
    let once = site.run("python3", &folder, &once);
    assert!(once.stderr.contains("missing required arguments: path"), "{}{}", once.stdout, once.stderr);
    let mistake =
        json!([{"name": "x", "type": "Ansible.ansible.builtin/file", "properties": {"path": "/x", "stat": "absent"}}]);
    let refused = site.apply("plan", &mistake);
    assert_eq!(refused.code, Some(3));
    assert!(
        refused.stderr.contains("'stat'") || refused.stdout.contains("'stat'"),
        "{}{}",
        refused.stdout,
        refused.stderr
    );
}
