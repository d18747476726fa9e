//! The content of reports: all of what a document has, and why something was not done.

use std::collections::BTreeMap;

use jiff::{ToSpan, Zoned};
use serde_json::{Value as Json, json};
use stead_testkit::until;

use crate::machine::Machine;

/// A report that is as wanted, by instance; `None` if there is none yet. It need not be the newest: whatever is watched may
/// have been looked at once more since.
fn reported(machine: &Machine, is_wanted: impl Fn(&Json) -> bool) -> Option<BTreeMap<String, Json>> {
    let reports = machine.json(&["report", "-n", "20"]);
    let report =
        reports["reports"].as_array().unwrap().iter().map(|each| &each["report"]).find(|each| is_wanted(each))?;
    let by_name = |each: &Json| (each["name"].as_str().unwrap().to_owned(), each.clone());
    Some(report["instances"].as_array().unwrap().iter().map(by_name).collect())
}

fn file(machine: &Machine, name: &str) -> Json {
    json!({"name": name, "type": "Stead/File", "properties": {"path": machine.path(name), "content": "right\n"}})
}

/// Every instance is in the report, also behind one that failed or asked for a restart, and each that was not processed
/// says why.
#[test]
fn what_was_not_processed_has_a_reason() {
    let mut machine = Machine::new();
    machine.start();
    machine.ok(&["settings", "set", "ResourceRetryCount=0", "PendingRetrySecs=600", "Width=1"]);
    let fails = json!({"name": "fails", "type": "Stead/Command", "properties": {"test": "false", "set": "exit 1"}});
    let mut behind = file(&machine, "behind");
    behind["dependsOn"] = json!(["Stead/Command:fails"]);
    let asks = json!({"name": "asks", "type": "Test/Restart", "properties": {"path": machine.path("asks")}});
    machine.deliver("one", &json!([fails, behind, file(&machine, "before"), asks, file(&machine, "after")]));
    let found = until(|| reported(&machine, |report| report["result"] == "failed"));
    let said = |name: &str| (found[name]["status"].as_str().unwrap(), found[name]["message"].as_str().unwrap_or(""));
    assert_eq!(found.len(), 5);
    assert_eq!(said("before").0, "changed", "what does not need it goes on");
    let (status, why) = said("behind");
    assert!(status == "skipped" && why.contains("'fails' (Stead/Command), which it depends on, failed"), "{why}");
    assert_eq!(said("after"), ("notRun", "a resource asked for a restart of the machine before it was begun"));
    machine.stop();
}

/// A test finds all drift, and says of each what it is not corrected for.
#[test]
fn drift_that_is_not_corrected_has_a_reason() {
    let mut machine = Machine::new();
    machine.start();
    let mut monitored = file(&machine, "monitored");
    monitored["directives"] = json!({"configurationMode": "ApplyAndMonitor"});
    let auto = json!({"configurationMode": "ApplyAndAutoCorrect"});
    machine.deliver_with("one", &auto, &json!([file(&machine, "corrected"), monitored]));
    machine.wait(0);
    // Two days from now is outside of it for the whole of this test.
    let day = (Zoned::now() + 2.days()).strftime("%a").to_string();
    let window = format!("MaintenanceWindows=[{{Days: [{day}], From: \"00:00\", To: \"01:00\", For: Set}}]");
    machine.ok(&["settings", "set", &window]);
    for name in ["corrected", "monitored"] {
        machine.write(name, "wrong\n");
    }
    // Everything is tested at once by new settings.
    machine.ok(&["settings", "set", &window]);
    let both = |report: &Json| report["totals"]["drifted"] == 2;
    let found = until(|| reported(&machine, both));
    assert_eq!(found["corrected"]["notCorrected"], "no maintenance window is open");
    assert_eq!(found["monitored"]["notCorrected"], "its mode is ApplyAndMonitor");
    machine.stop();
}

/// Names and messages reach the reader as they are.
#[test]
fn a_report_is_json_whatever_it_is_about() {
    let mut machine = Machine::new();
    machine.start();
    machine.set("ResourceRetryCount=0", "PendingRetrySecs=600");
    let name = "quotes \" and ' and \\ and \u{1f980}";
    let set = "printf 'it says \"no\"\\tand \\\\\n' >&2; exit 1";
    machine
        .deliver("one", &json!([{"name": name, "type": "Stead/Command", "properties": {"test": "false", "set": set}}]));
    let found = until(|| reported(&machine, |report| report["result"] == "failed"));
    let message = found[name].to_string();
    assert!(message.contains(r#"it says \"no\"\tand \\"#), "{message}");
    machine.stop();
}

/// What asks for a restart and fails then has asked for it: the machine is restarted before anything else is called, and it is
/// reported as what it was, not as what was not begun.
#[test]
fn a_restart_that_is_asked_for_before_a_failure_comes() {
    let Some(pwsh) = stead_testkit::powershell("a_restart_that_is_asked_for_before_a_failure_comes") else { return };
    let mut machine = Machine::new();
    let (log, folder) = (machine.path("calls"), machine.path("modules/Asker"));
    std::fs::create_dir_all(&folder).unwrap();
    let class = format!(
        "[DscResource()] class Asker {{ [DscProperty(Key)] [string] $Name
            [Asker] Get() {{ return $this }}
            [bool] Test() {{ Add-Content -LiteralPath '{log}' -Value test; return $false }}
            [void] Set() {{ Add-Content -LiteralPath '{log}' -Value set; $global:DSCMachineStatus = 1; throw 'not before a restart' }} }}",
        log = log.display()
    );
    std::fs::write(folder.join("Asker.psm1"), class).unwrap();
    let manifest = "@{ RootModule = 'Asker.psm1'; ModuleVersion = '1.0'; DscResourcesToExport = 'Asker' }";
    std::fs::write(folder.join("Asker.psd1"), manifest).unwrap();
    machine.start_with_variables(&[
        ("PATH", &format!("{}:/usr/bin:/bin", pwsh.parent().unwrap().display())),
        ("PSModulePath", &machine.path("modules").display().to_string()),
    ]);
    machine.ok(&["settings", "set", "ResourceRetryCount=3", "PendingRetrySecs=600", "Width=1"]);
    let asks = json!({"name": "a", "type": "Asker/Asker", "properties": {"Name": "n"}});
    machine.deliver("one", &json!([asks, file(&machine, "after")]));
    until(|| (machine.status()["LCMState"] == "PendingReboot").then_some(()));
    assert_eq!(machine.read("calls").unwrap(), "test\nset\n", "nothing is called again before the restart");
    let found = until(|| reported(&machine, |_| true));
    let (status, message) = (&found["a"]["status"], found["a"]["message"].as_str().unwrap_or_default());
    assert_eq!(status, "failed", "{}", found["a"]);
    assert!(message.contains("not before a restart") && message.ends_with("; it asks for a restart of the machine"));
    let troubles = machine.troubles("pending").concat();
    assert!(troubles.contains("asks for a restart of the machine"), "{troubles}");
    machine.stop();
}

/// Figures are about the job that ended last, in a file that other programs read while it is replaced.
#[test]
fn figures_are_about_the_last_job() {
    let mut machine = Machine::new();
    let figures = machine.path("stead.prom");
    machine.start_with(&["--metrics", &figures.display().to_string(), "--metrics-for-all"]);
    let wrong = json!({"name": "wrong", "type": "Stead/Command", "properties": {"test": "false", "set": "exit 1"}});
    machine.ok(&["settings", "set", "ResourceRetryCount=0", "PendingRetrySecs=600"]);
    machine.deliver("one", &json!([file(&machine, "right"), wrong]));
    let said = |figure: &str, value: &str| {
        let text = machine.read("stead.prom")?;
        let labels = "{document=\"agent\",operation=\"apply\"";
        text.contains(&format!("stead_{}{value}\n", figure.replacen('{', labels, 1))).then_some(text)
    };
    let failed = until(|| said("instances{,status=\"failed\"} ", "1"));
    for (figure, value) in [("run_success{} ", "0"), ("instances{,status=\"changed\"} ", "1")] {
        assert!(said(figure, value).is_some(), "{figure}: {failed}");
    }
    assert_eq!(failed.matches("# TYPE ").count(), 5, "{failed}");
    machine.deliver("two", &json!([file(&machine, "right")]));
    until(|| said("run_success{} ", "1"));
    assert!(said("instances{,status=\"unchanged\"} ", "1").is_some());
    machine.stop();
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&figures).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o644);
    std::fs::write(&figures, "somebody's").unwrap();
    let refused = machine.run(&["run", "--metrics", &figures.display().to_string()]);
    assert_eq!((refused.status.code(), machine.read("stead.prom").as_deref()), (Some(3), Some("somebody's")));
}
