//! The adapter `Idem/State`, with the Idem that is installed: `idem` on the `PATH`, or the one that `STEAD_TEST_IDEM` names. Without
//! one these tests are skipped.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value as Json, json};
use stead_testkit::{repository, skip};
use tempfile::TempDir;

#[path = "support/forms.rs"]
mod forms;

/// An environment of Python with Idem and the states of `corpus/idem/adapter/own`.
struct Site {
    home: TempDir,
    path: OsString,
}

fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command:?}\n{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

impl Site {
    fn new(test: &str) -> Option<Self> {
        let usual = std::env::var_os("PATH").unwrap_or_default();
        let stated = std::env::var_os("STEAD_TEST_IDEM").map(PathBuf::from);
        let found = || std::env::split_paths(&usual).map(|folder| folder.join("idem")).find(|program| program.exists());
        let Some(program) = stated.or_else(found) else {
            skip(test, "idem is not installed");
            return None;
        };
        let start = fs::read_to_string(program).unwrap();
        let python = start.lines().next().unwrap().trim_start_matches("#!").to_owned();
        let home = tempfile::tempdir().unwrap();
        let own = home.path().join("env");
        succeed(Command::new(&python).args(["-m", "venv", "--without-pip"]).arg(&own));
        let places = ["-c", "import sysconfig; print(sysconfig.get_path('purelib'))"];
        let peer = succeed(Command::new(&python).args(places));
        let ours = PathBuf::from(succeed(Command::new(own.join("bin/python3")).args(places)).trim());
        fs::write(ours.join("peer.pth"), peer).unwrap();
        copy(&repository().join("corpus/idem/adapter/own"), &ours.join("own"));
        let script = format!("#!{}\nfrom idem.scripts import start\nstart()\n", own.join("bin/python3").display());
        let program = own.join("bin/idem");
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let folders = std::iter::once(own.join("bin")).chain(std::env::split_paths(&usual));
        let path = std::env::join_paths(folders).unwrap();
        Some(Self { home, path })
    }

    fn run(&self, program: &str, arguments: &[&str]) -> (String, String) {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.home.path()).env("PATH", &self.path).env("HOME", self.home.path());
        command.env("DSC_RESOURCE_PATH", repository().join("adapters/idem"));
        command.env("ACCT_FILE", repository().join("corpus/idem/adapter/profiles.yaml"));
        for (name, value) in [("STEAD_LOCKS", "locks"), ("XDG_CACHE_HOME", "cache"), ("XDG_STATE_HOME", "state")] {
            command.env(name, self.home.path().join(value));
        }
        let output = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        (text(output.stdout), text(output.stderr))
    }

    fn stead(&self, arguments: &[&str]) -> (String, String) {
        self.run(env!("CARGO_BIN_EXE_stead"), arguments)
    }

    /// Converts an SLS file. Returns the document, which is empty where it is refused, and what was said.
    fn convert(&self, sls: &str) -> (String, String) {
        fs::write(self.home.path().join("main.sls"), sls).unwrap();
        self.stead(&["sls", "convert", "main.sls"])
    }

    /// Converts an SLS file, and applies the document, or plans it.
    fn converted(&self, sls: &str, verb: &[&str]) -> Json {
        let (document, said) = self.convert(sls);
        assert!(!document.is_empty(), "{said}");
        self.carried_out(&document, verb)
    }

    fn carried_out(&self, document: &str, verb: &[&str]) -> Json {
        fs::write(self.home.path().join("main.yaml"), document).unwrap();
        // Loading Idem takes its time where the processors have much else to do.
        let options = ["--deadline", "600", "-o", "json"];
        let (report, said) = self.stead(&[&["--env", "ACCT_FILE"], verb, &["main.yaml"], &options[..]].concat());
        serde_json::from_str(&report).unwrap_or_else(|_| panic!("{report}{said}"))
    }

    /// A folder with what is there before.
    fn folder(&self, name: &str) -> PathBuf {
        let folder = self.home.path().join(name);
        fs::create_dir_all(&folder).unwrap();
        let there = json!({"name": "there", "size": 1, "resource_id": "id-there", "color": "red"});
        fs::write(folder.join("there"), there.to_string()).unwrap();
        folder
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The files of a folder: what states keep, as values, and the calls that were noted, in their order.
fn kept(folder: &Path) -> BTreeMap<String, Json> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let value = |path: &Path| {
        let text = fs::read_to_string(path).unwrap();
        serde_json::from_str(&text).unwrap_or(Json::String(text))
    };
    files.map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), value(&path))).collect()
}

fn statuses(report: &Json) -> Vec<&str> {
    report["instances"].as_array().unwrap().iter().filter_map(|instance| instance["status"].as_str()).collect()
}

/// Each SLS file through stead and through Idem: the same calls in the same order, and the same things afterwards.
#[test]
fn states_do_what_idem_has_them_do() {
    const TEST: &str = "states_do_what_idem_has_them_do";
    if stead_testkit::asked("STEAD_PEERS").is_none() {
        return skip(TEST, "it runs idem where STEAD_PEERS is stated");
    }
    let Some(site) = Site::new(TEST) else { return };
    let mut seen = 0;
    for entry in fs::read_dir(repository().join("corpus/idem/adapter/sls")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let (ours, theirs) = (site.folder(&format!("ours-{name}")), site.folder(&format!("theirs-{name}")));
        let text = fs::read_to_string(&path).unwrap();
        let of = |folder: &Path| text.replace("$DIR", folder.to_str().unwrap());
        let before = kept(&ours);
        site.converted(&of(&ours), &["plan"]);
        assert_eq!(kept(&ours), before, "{name}: a plan changes nothing");
        let report = site.converted(&of(&ours), &["apply", "--yes", "-R", "basic"]);
        fs::write(site.home.path().join("peer.sls"), of(&theirs)).unwrap();
        // In parallel, which is the default, it has no order of its own where none is stated.
        let options = ["--esm-plugin=null", "--output=json", "--no-progress-bar", "--runtime=serial"];
        let (said, errors) = site.run("idem", &[&["state", "peer.sls"], &options[..]].concat());
        assert_eq!(kept(&ours), kept(&theirs), "{name}\n{report:#}\n{said}{errors}");
        let succeeded = !said.contains("\"result\": false");
        assert_eq!(statuses(&report).contains(&"failed"), !succeeded, "{name}\n{report:#}\n{said}");
        seen += 1;
    }
    assert_eq!(seen, 11);
}

/// The modules of the recorded cases that only differ from `seq` in how long is waited between two calls, which the run says here.
const WAITING: [&str; 7] = ["seqs0", "seqs1", "seqs8", "seqx", "seqx1", "seqr", "sequ"];

/// The SLS file of a recorded case, in which states note their calls in a log.
fn recorded(case: &Json, log: &Path) -> String {
    let mut states = case["states"].clone();
    for state in states.as_object_mut().unwrap().values_mut() {
        let functions = std::mem::take(state.as_object_mut().unwrap());
        for (name, mut arguments) in functions {
            let (module, function) = name.split_once('.').unwrap();
            let module = if WAITING.contains(&module) { "seq" } else { module };
            arguments.as_array_mut().unwrap().push(json!({ "path": log }));
            state[format!("{module}.{function}")] = arguments;
        }
    }
    states.to_string()
}

/// The recorded cases of Idem's loop, through the program and the adapter: the same calls, and as many runs again, or what a list of
/// deviations has.
#[test]
fn recorded_cases_come_out_as_idem_has_them() {
    const TEST: &str = "recorded_cases_come_out_as_idem_has_them";
    if stead_testkit::asked("STEAD_PEERS").is_none() {
        return skip(TEST, "it runs many cases where STEAD_PEERS is stated");
    }
    let read = |path: &str| -> Option<BTreeMap<String, Json>> {
        serde_json::from_str(&fs::read_to_string(repository().join(path)).ok()?).unwrap()
    };
    let Some(cases) = read("../shared/corpus/idem/cases.json") else {
        return skip(TEST, "the recorded cases are not there");
    };
    let Some(site) = Site::new(TEST) else { return };
    let of_the_loop = read("corpus/idem/deviations.json").unwrap();
    let mut of_the_adapter = read("corpus/idem/adapter/deviations.json").unwrap();
    let (log, mut seen) = (site.home.path().join("log"), 0);
    for (name, case) in &cases {
        let sls = recorded(&case["in"], &log);
        let deviations = [
            of_the_adapter.remove(name).unwrap_or_default(),
            of_the_loop.get(name).map_or(Json::Null, |it| it["stead"].clone()),
        ];
        let stated = |key: &str| deviations.iter().find_map(|deviation| deviation.get(key));
        let calls = stated("calls").unwrap_or(&case["out"]["calls"]).as_array().cloned().unwrap_or_default();
        let re_runs = stated("re_runs_count").unwrap_or(&case["out"]["loop"]["re_runs_count"]).as_u64().unwrap_or(0);
        let most = case["in"]["max"].as_u64().unwrap_or(600).to_string();
        let reconciler = case["in"]["plugin"].as_str().unwrap_or("basic");
        let apply =
            ["apply", "--yes", "--width", "1", "--wait", "0.01", "-R", reconciler, "--max-pending-reruns", &most];
        let verb = if case["in"]["test"] == true { &["plan"][..] } else { &apply };
        let _ = fs::remove_file(&log);
        let (document, _) = site.convert(&sls);
        let report = if document.is_empty() { Json::Null } else { site.carried_out(&document, verb) };
        let said = fs::read_to_string(&log).unwrap_or_default();
        assert_eq!(json!(said.lines().collect::<Vec<_>>()), Json::from(calls), "{name}\n{sls}\n{report:#}");
        assert_eq!(report["reconcile"]["re_runs_count"].as_u64().unwrap_or(0), re_runs, "{name}\n{report:#}");
        seen += 1;
    }
    assert!(of_the_adapter.is_empty(), "there are no such cases: {:?}", of_the_adapter.keys());
    assert_eq!(seen, 47);
}

/// A state says what it would do; what is present changes nothing the second time, and a state that goes on working is called again.
#[test]
fn states_are_resources() {
    let Some(site) = Site::new("states_are_resources") else { return };
    let folder = site.folder("work");
    let sls = format!(
        "one:\n  thing.present:\n  - path: {0}/one\nthere:\n  thing.absent:\n  - path: {0}/there\nslow:\n  work.run:\n  - path: {0}/log\n  - calls: 2\n",
        folder.display()
    );
    let plan = site.converted(&sls, &["plan"]);
    let actions: Vec<&str> =
        plan["instances"].as_array().unwrap().iter().filter_map(|each| each["action"].as_str()).collect();
    assert_eq!(actions, ["create", "remove", "change"], "{plan:#}");
    assert_eq!(kept(&folder).len(), 1);
    let first = site.converted(&sls, &["apply", "--yes"]);
    assert_eq!(statuses(&first), ["changed"; 3], "{first:#}");
    assert_eq!(kept(&folder)["log"], "slow 1\nslow 2\n");
    let second = site.converted(&sls, &["apply", "--yes"]);
    assert_eq!(statuses(&second), ["unchanged", "unchanged", "changed"], "{second:#}");
}

/// A state runs with the profile of acct that it names. One that is not there fails it before it is called: it does not run without.
#[test]
fn a_state_runs_with_the_profile_that_it_names() {
    let Some(site) = Site::new("a_state_runs_with_the_profile_that_it_names") else { return };
    let log = site.folder("work").join("log");
    let sls = ["default", "other", "nobody"]
        .map(|profile| format!("{profile}:\n  login.run:\n  - path: {}\n  - acct_profile: {profile}\n", log.display()));
    let report = site.converted(&sls.concat(), &["apply", "--yes", "-R", "none"]);
    assert_eq!(statuses(&report), ["unchanged", "unchanged", "failed"], "{report:#}");
    let said = report.to_string();
    assert!(said.contains("profile 'nobody'") && !said.contains("of-anne") && !said.contains("of-bob"), "{report:#}");
    let log = fs::read_to_string(log).unwrap();
    assert!(log.contains("default as anne") && log.contains("other as bob") && log.lines().count() == 2, "{log}");
}

/// What a state takes is known before anything runs.
#[test]
fn what_a_state_does_not_take_is_refused() {
    let Some(site) = Site::new("what_a_state_does_not_take_is_refused") else { return };
    let wrong = json!({"resources": [{"name": "x", "type": "Idem/thing", "properties": {"name": "x", "path": "/x", "colr": "red"}}]});
    fs::write(site.home.path().join("main.json"), wrong.to_string()).unwrap();
    let (said, errors) = site.stead(&["plan", "main.json"]);
    assert!((said + &errors).contains("it takes no 'colr'"), "{errors}");
}

/// A state that returns nonsense, raises, or ends the process fails itself and no other.
#[test]
fn nonsense_of_a_state_fails_it_alone() {
    const KINDS: [&str; 6] = ["nothing", "list", "bare", "much", "raises", "ends"];
    let Some(site) = Site::new("nonsense_of_a_state_fails_it_alone") else { return };
    let of = |kind: &str| json!({"name": kind, "type": "Idem/noise", "properties": {"name": kind, "fun": "run", "kind": kind}});
    let resources: Vec<Json> = KINDS.iter().chain(&["prints"]).map(|kind| of(kind)).collect();
    fs::write(site.home.path().join("main.json"), json!({ "resources": resources }).to_string()).unwrap();
    let (said, errors) = site.stead(&["apply", "main.json", "--yes", "-R", "none", "-o", "json"]);
    let report: Json = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}{errors}"));
    assert_eq!(statuses(&report), [&["failed"; 6][..], &["unchanged"]].concat(), "{report:#}");
    assert!(said.len() + errors.len() < 1 << 20 && !said.contains('\u{1b}'));
}

/// Nothing that stead prints has a secret in any form.
#[test]
fn secrets_stay_secret() {
    let Some(site) = Site::new("secrets_stay_secret") else { return };
    let folder = site.folder("work");
    for secret in ["Pa$$w0rd/ü<&'\"\\ of ours", "fail Pa$$w0rd/ü<&'\"\\ of ours"] {
        let document = json!({
            "parameters": {"secret": {"type": "secureString"}},
            "resources": [{"name": "kept", "type": "Idem/thing",
                "properties": {"name": "kept", "path": folder.join("kept"), "token": "[parameters('secret')]"}}],
        });
        fs::write(site.home.path().join("main.json"), document.to_string()).unwrap();
        fs::write(site.home.path().join("secret.json"), json!({"parameters": {"secret": secret}}).to_string()).unwrap();
        for verb in [&["plan"][..], &["apply", "--yes", "-R", "none"], &["check"]] {
            for form in ["json", "text"] {
                let arguments = ["main.json", "--parameters-file", "secret.json", "-o", form, "-v"];
                let (said, errors) = site.stead(&[verb, &arguments].concat());
                let said = said + &errors;
                assert!(said.contains("kept"), "{said}");
                for form in forms::forms(secret).into_iter().chain([secret.chars().rev().collect()]) {
                    assert!(!said.contains(&form), "{verb:?}: {form}\n{said}");
                }
            }
        }
        for place in [site.home.path(), &repository().join("adapters")] {
            assert_no_log(place);
        }
    }
}

/// No log of Idem is below a folder: what states log is in none.
fn assert_no_log(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            assert_no_log(&path);
        }
        assert!(path.extension().is_none_or(|extension| extension != "log"), "{}", path.display());
    }
}
