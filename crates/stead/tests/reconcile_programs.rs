//! Reconcilers and pending rules that are programs: what they decide, and that nothing is lost when they fail.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::Value as Json;
use tempfile::TempDir;

/// Fails each time, with the same message.
const HOPELESS: &str = "resources:\n- {name: copy, type: Stead/Command, properties: {test: 'false', set: 'exit 1'}}\n";

/// The number of re-runs under the default rule: as many as there may be without progress.
const BY_DEFAULT: u64 = 3;

/// A folder with a document, and programs below `programs`.
struct Site {
    folder: TempDir,
}

/// How an apply ended.
struct Ended {
    code: Option<i32>,
    report: Json,
    log: String,
}

impl Ended {
    fn re_runs(&self) -> u64 {
        self.report["instances"][0]["reRuns"].as_u64().unwrap_or(0)
    }

    fn assert_default_decided(&self, why: &str) {
        let log = &self.log;
        assert_eq!((self.code, self.re_runs()), (Some(4), BY_DEFAULT), "{log}");
        assert_eq!(log.matches("failed: ").count(), 1, "once: {log}");
        assert!(log.contains(why), "{log}");
    }
}

impl Site {
    fn new(document: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("programs")).unwrap();
        fs::set_permissions(folder.path().join("programs"), Permissions::from_mode(0o755)).unwrap();
        fs::write(folder.path().join("main.yaml"), document).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn program(&self, name: &str, script: &str) {
        let path = self.path("programs").join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    }

    fn apply(&self, arguments: &[&str]) -> Ended {
        let output = Command::new(env!("CARGO_BIN_EXE_stead"))
            .args(["apply", "main.yaml", "--output", "json"])
            .args(if arguments.contains(&"--wait") { &[] } else { &["--wait", "0.01"][..] })
            .args(arguments)
            .current_dir(self.folder.path())
            .envs([("HOME", self.folder.path()), ("STEAD_STATE", &self.folder.path().join("state"))])
            .env("DSC_RESOURCE_PATH", self.path("programs"))
            .output()
            .unwrap();
        let report = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        Ended { code: output.status.code(), report, log }
    }
}

#[test]
fn a_rule_decides_what_is_pending() {
    let site = Site::new(HOPELESS);
    site.program(
        "stead-pending-counted",
        "while read -r question; do\n  echo \"$question\" >> \"$DSC_CONFIG_ROOT/questions\"\n  \
         if [ -e \"$DSC_CONFIG_ROOT/enough\" ]; then echo '{\"pending\": false}'; else echo '{\"pending\": true}'; fi\n  \
         case $question in *'\"reRuns\":6'*) touch \"$DSC_CONFIG_ROOT/enough\" ;; esac\n\
         done",
    );
    let ended = site.apply(&["-P", "counted"]);
    assert_eq!((ended.code, ended.re_runs()), (Some(4), 7), "{}", ended.log);
    let questions = fs::read_to_string(site.path("questions")).unwrap();
    let questions: Vec<Json> = questions.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let numbers =
        |member: &str| questions.iter().map(|question| question[member].as_u64().unwrap()).collect::<Vec<_>>();
    assert_eq!(numbers("reRuns"), (0..8).collect::<Vec<_>>());
    assert_eq!(numbers("unchanged"), (0..8).collect::<Vec<_>>());
    let first = &questions[0];
    assert_eq!((&first["version"], &first["instance"]), (&1.into(), &"Stead/Command:copy".into()), "{first}");
    assert_eq!((&first["working"], &first["wait"]), (&false.into(), &0.01.into()), "{first}");
    assert_eq!((&first["type"], &first["result"]), (&"Stead/Command".into(), &"failed".into()), "{first}");
    assert!(first["reason"].as_str().unwrap().contains("exit"), "{first}");
}

#[test]
fn a_reconciler_says_when_and_how_often() {
    for pace in ["each", "together"] {
        let site = Site::new(HOPELESS);
        site.program(
            "stead-reconciler-five",
            &format!(
                "echo '{{\"version\": 1, \"pace\": \"{pace}\"}}'\nwhile read -r question; do\n  case $question in\n    \
                 *'\"runReRuns\":5'*) echo '{{\"giveUp\": true}}' ;;\n    *) echo '{{\"runAgainAfter\": 0.01}}' ;;\n  \
                 esac\ndone"
            ),
        );
        let ended = site.apply(&["-R", "five", "--wait", "3600"]);
        assert_eq!((ended.code, ended.re_runs()), (Some(4), 5), "{pace}: {}", ended.log);
        // A bound that users state holds for all.
        let ended = site.apply(&["-R", "five", "--max-pending-reruns", "2"]);
        assert_eq!((ended.code, ended.re_runs()), (Some(4), 2), "{pace}: {}", ended.log);
    }
}

#[test]
fn the_examples_do_as_they_say() {
    let site = Site::new(HOPELESS);
    for name in ["stead-pending-patient", "stead-pending-idem", "stead-reconciler-eager"] {
        let example = stead_testkit::repository().join("examples/reconcile").join(name);
        fs::copy(example, site.path("programs").join(name)).unwrap();
    }
    let ended = site.apply(&["-P", "patient"]);
    assert_eq!((ended.code, ended.re_runs()), (Some(4), 20), "{}", ended.log);
    let ended = site.apply(&["-P", "idem"]);
    assert_eq!((ended.code, ended.re_runs()), (Some(4), 3), "{}", ended.log);
    let ended = site.apply(&["-R", "eager", "--max-pending-reruns", "20", "--wait", "3600"]);
    assert_eq!((ended.code, ended.re_runs()), (Some(4), 20), "{}", ended.log);
    // A rule that is named is asked first, the default one too.
    let ended = site.apply(&["-R", "eager", "-P", "default", "--max-pending-reruns", "6"]);
    assert_eq!((ended.code, ended.re_runs()), (Some(4), 3), "{}", ended.log);
}

#[test]
fn a_program_that_dies_loses_nothing() {
    let site = Site::new(HOPELESS);
    site.program("stead-pending-dying", "read -r question\necho 'no idea' >&2\nexit 7");
    let ended = site.apply(&["-P", "dying"]);
    ended.assert_default_decided("failed: it ended: exit code 7");
    assert!(ended.log.contains("no idea"), "{}", ended.log);
    site.program("stead-reconciler-dying", "exit 7");
    site.apply(&["-R", "dying"]).assert_default_decided("failed: it ended: exit code 7");
    site.program("stead-reconciler-dying", "echo '{\"version\": 1, \"pace\": \"each\"}'\nkill -9 $$");
    site.apply(&["-R", "dying"]).assert_default_decided("failed: it ended: signal 9");
    // Half an answer is none.
    site.program("stead-pending-dying", "read -r question\nprintf '{\"pending\": true}'");
    site.apply(&["-P", "dying"]).assert_default_decided("failed: it ended: exit code 0");
}

#[test]
fn a_program_that_answers_nonsense_loses_nothing() {
    let site = Site::new(HOPELESS);
    let answers = [
        ("maybe", "its answer is not understood"),
        ("{\"pending\": \"yes\"}", "its answer is not understood"),
        ("{}", "missing field 'pending'"),
        ("", "its answer is not understood"),
    ];
    for (answer, why) in answers {
        site.program("stead-pending-odd", &format!("while read -r question; do echo '{answer}'; done"));
        site.apply(&["-P", "odd"]).assert_default_decided(why);
    }
    let answers = [
        ("{\"runAgainAfter\": -1}", "-1 is not a time in seconds"),
        ("{\"runAgainAfter\": 1, \"giveUp\": true}", "expected 'runAgainAfter'"),
        ("{\"giveUp\": false}", "expected 'runAgainAfter'"),
    ];
    let greeting = "echo '{\"version\": 1, \"pace\": \"each\"}'";
    for (answer, why) in answers {
        let script = format!("{greeting}\nwhile read -r question; do echo '{answer}'; done");
        site.program("stead-reconciler-odd", &script);
        site.apply(&["-R", "odd"]).assert_default_decided(why);
    }
    for (greeting, why) in [
        ("{\"version\": 2, \"pace\": \"each\"}", "version 2 is not supported"),
        ("{\"version\": 1, \"pace\": \"slow\"}", "unknown variant 'slow'"),
        ("{\"giveUp\": true}", "missing field 'version'"),
    ] {
        site.program("stead-reconciler-odd", &format!("echo '{greeting}'\ncat"));
        site.apply(&["-R", "odd"]).assert_default_decided(why);
    }
    // More than was asked for.
    site.program("stead-pending-odd", "yes '{\"pending\": true}'");
    site.apply(&["-P", "odd"]).assert_default_decided("failed: it wrote ");
    site.program("stead-pending-odd", "read -r question\ntr '\\0' x < /dev/zero");
    site.apply(&["-P", "odd"]).assert_default_decided("failed: it wrote too much");
}

/// A request that cannot be copied needs no program: the deadline holds for the rule alone.
#[test]
fn a_program_that_is_silent_loses_nothing() {
    let site = Site::new("resources:\n- {name: copy, type: Stead/File, properties: {path: copy, source: missing}}\n");
    site.program("stead-pending-mute", "sleep 3600 &\necho $! > \"$DSC_CONFIG_ROOT/child\"\nwait");
    site.apply(&["-P", "mute", "--deadline", "1"]).assert_default_decided("failed: it did not answer within 1s");
    assert!(!lives(&site.path("child")));
}

/// Returns whether the process lives whose number a file holds.
fn lives(file: &Path) -> bool {
    Path::new("/proc").join(fs::read_to_string(file).unwrap().trim()).exists()
}

#[test]
fn nothing_of_a_program_is_left_after_the_run() {
    let site = Site::new(HOPELESS);
    site.program(
        "stead-pending-parent",
        "echo $$ > \"$DSC_CONFIG_ROOT/parent\"\nsleep 3600 &\necho $! > \"$DSC_CONFIG_ROOT/child\"\n\
         while read -r question; do echo '{\"pending\": false}'; done\necho finished >> \"$DSC_CONFIG_ROOT/last\"",
    );
    let ended = site.apply(&["-P", "parent"]);
    assert_eq!((ended.code, ended.re_runs()), (Some(4), 0), "{}", ended.log);
    assert!(!lives(&site.path("parent")) && !lives(&site.path("child")));
    // The end of its input asked it to end, and it had the time.
    assert_eq!(fs::read_to_string(site.path("last")).unwrap(), "finished\n");
}

#[test]
fn a_program_is_not_started_where_nothing_is_pending() {
    let site = Site::new("resources:\n- {name: a, type: Stead/File, properties: {path: a, content: x}}\n");
    for name in ["stead-pending-eager", "stead-reconciler-eager"] {
        site.program(name, "echo started >> \"$DSC_CONFIG_ROOT/log\"");
    }
    let ended = site.apply(&["-P", "eager", "-R", "eager"]);
    assert_eq!(ended.code, Some(0), "{}", ended.log);
    assert!(!site.path("log").exists());
}

#[test]
fn a_rule_is_asked_once_about_each_attempt() {
    let second = HOPELESS.replace("resources:\n", "").replace("copy", "other");
    let site = Site::new(&format!("{HOPELESS}{second}"));
    let log = "echo \"$question\" >> \"$DSC_CONFIG_ROOT/questions\"";
    let answer = "case $question in *:copy*) echo '{\"pending\": true}';; *) echo '{\"pending\": false}';; esac";
    site.program("stead-pending-watchful", &format!("while read -r question; do {log}; {answer}; done"));
    let ended = site.apply(&["-P", "watchful", "--max-pending-reruns", "3"]);
    assert_eq!((ended.code, ended.re_runs()), (Some(4), 3), "{}", ended.log);
    let questions = fs::read_to_string(site.path("questions")).unwrap();
    let about = |name: &str| questions.lines().filter(|line| line.contains(&format!("\"{name}\""))).count();
    assert_eq!((about("Stead/Command:copy"), about("Stead/Command:other")), (3, 1), "{questions}");
}

#[test]
fn a_program_is_given_no_secret() {
    let site = Site::new(
        "parameters: {secret: {type: secureString}}\n\
         resources:\n- {name: leak, type: Stead/Command, properties: {test: 'false', set: \
         \"[concat('echo ', parameters('secret'), ' >&2; exit 1')]\"}}\n",
    );
    site.program(
        "stead-pending-curious",
        "while read -r question; do\n  echo \"$question\" >> \"$DSC_CONFIG_ROOT/questions\"\n  \
         echo '{\"pending\": false}'\ndone",
    );
    let ended = site.apply(&["-P", "curious", "--set", "secret=correct-horse"]);
    let questions = fs::read_to_string(site.path("questions")).unwrap();
    assert!(questions.contains("Stead/Command:leak") && !questions.contains("correct-horse"), "{questions}");
    assert!(!ended.log.contains("correct-horse"), "{}", ended.log);
}

#[test]
fn a_document_names_programs_too() {
    let document = format!("directives:\n  reconcile: {{pending: once}}\n{HOPELESS}");
    let site = Site::new(&document);
    let ended = site.apply(&[]);
    assert_eq!(ended.code, Some(3), "{}", ended.log);
    let finding = &ended.report["findings"][0];
    assert_eq!((&finding["code"], &finding["line"]), (&"E0526".into(), &2.into()), "{finding}");
    site.program("stead-pending-once", "while read -r question; do echo '{\"pending\": false}'; done");
    let ended = site.apply(&[]);
    assert_eq!((ended.code, ended.re_runs()), (Some(4), 0), "{}", ended.log);
}

#[test]
fn root_does_not_run_a_program_that_others_could_write() {
    if !stead_testkit::is_root("root_does_not_run_a_program_that_others_could_write") {
        return;
    }
    let site = Site::new(HOPELESS);
    site.program("stead-pending-open", "while read -r question; do echo '{\"pending\": false}'; done");
    for (path, mode) in [("programs/stead-pending-open", 0o757), ("programs", 0o775)] {
        let usual = fs::metadata(site.path(path)).unwrap().permissions();
        fs::set_permissions(site.path(path), Permissions::from_mode(mode)).unwrap();
        let ended = site.apply(&["-P", "open"]);
        assert_eq!(ended.code, Some(3), "{}", ended.log);
        let finding = &ended.report["findings"][0];
        assert_eq!(finding["code"], "E0526", "{}", ended.report);
        assert!(finding["message"].as_str().unwrap().contains("refusing to run"), "{finding}");
        assert!(finding["help"].as_str().unwrap().contains("chmod"), "{finding}");
        fs::set_permissions(site.path(path), usual).unwrap();
    }
    assert_eq!(site.apply(&["-P", "open"]).code, Some(4));
}
