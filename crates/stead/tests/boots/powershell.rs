//! The agent as it is installed, with resources of PowerShell, from the delivery of a document until it is current: through
//! restarts that resources ask for, a share that comes later, and workers, agents and machines that end in the middle of a call.

use std::path::Path;
use std::process::Command;

use serde_json::{Value as Json, json};
use stead_testkit::until;

use crate::debian::Debian;
use crate::forms::forms;

const TEST: &str = "an_installed_agent_converges_with_resources_of_powershell";

/// Where PowerShell looks for modules, in the machine.
const MODULES: &str = "/usr/local/share/powershell/Modules/Source";

const DOCUMENT: &str = "/srv/document.json";
const PARAMETERS: &str = "/srv/parameters.json";

/// A password and a token, with characters that each encoder writes in another way.
const SECRETS: [&str; 2] = ["pässwörd {2} & <3>'a'+\"b\"/c", "tökén <1> & \"canary\"/d?e=f"];

/// What both kinds of resources do: each call is written down, and waits as long as the test holds it. `$properties` is one
/// of the words for which PowerShell by itself logs a script.
const KEPT: &str = r#"
function Enter-Call([string] $Value, [string] $Name, [string] $Method) {
    $boot = [IO.File]::ReadAllText('/proc/sys/kernel/random/boot_id').Trim()
    [IO.File]::AppendAllText('/srv/source/calls', "$Value $Name $Method $boot $PID`n")
    while ([IO.File]::Exists("/srv/source/hold-$Value-$Method-$Name")) { [Threading.Thread]::Sleep(10) }
    $boot
}
function Test-Kept([string] $Name, [string] $Value, [bool] $Restarts, [pscredential] $Login) {
    $boot = Enter-Call $Value $Name test
    $file, $properties = "/srv/source/state/$Name", @{ Text = $Value }
    if ($Login) { $properties.Text += $Login.GetNetworkCredential().Password }
    if (-not [IO.File]::Exists($file) -or [IO.File]::ReadAllText($file) -cne $properties.Text) { return $false }
    -not $Restarts -or [IO.File]::ReadAllText("$file.restart") -cne $boot
}
function Set-Kept([string] $Name, [string] $Value, [bool] $Restarts, [bool] $Fails, [pscredential] $Login) {
    $boot = Enter-Call $Value $Name set
    if ($Fails) { throw "$Name cannot be set" }
    $file, $properties = "/srv/source/state/$Name", @{ Text = $Value }
    if ($Login) { $properties.Text += $Login.GetNetworkCredential().Password }
    [IO.File]::WriteAllText($file, $properties.Text)
    if ($Restarts) {
        [IO.File]::WriteAllText("$file.restart", $boot)
        $global:DSCMachineStatus = 1
    }
}
"#;

const CLASS: &str = r"
[DscResource()]
class Step {
    [DscProperty(Key)] [string] $Name
    [DscProperty()] [string] $Value
    [DscProperty()] [bool] $Restarts
    [DscProperty()] [bool] $Fails
    [DscProperty()] [pscredential] $Login
    [Step] Get() { return $this }
    [bool] Test() { return Test-Kept $this.Name $this.Value $this.Restarts $this.Login }
    [void] Set() { Set-Kept $this.Name $this.Value $this.Restarts $this.Fails $this.Login }
}
";

const SCRIPTED: &str = r"
function Get-TargetResource { param([string] $Name, [string] $Value) @{ Name = $Name; Value = $Value } }
function Test-TargetResource { param([string] $Name, [string] $Value) Test-Kept $Name $Value }
function Set-TargetResource { param([string] $Name, [string] $Value) Set-Kept $Name $Value }
Export-ModuleMember -Function *-TargetResource
";

const SCHEMA: &str = r#"
[ClassVersion("1.0.0"), FriendlyName("Scripted")]
class Scripted : OMI_BaseResource { [Key] String Name; [Write] String Value; };
"#;

/// The table of states of the Local Configuration Manager: instances in their order, then its state, the status of the job, those
/// in their desired state, and those that are not. S succeeds, F fails, r asks for a restart. Who is in neither list was not begun.
const STATES: [(&str, &str, &str, &str, &str); 10] = [
    ("S", "Idle", "Success", "S", ""),
    ("F", "PendingConfiguration", "Failure", "", "F"),
    ("S F", "PendingConfiguration", "Failure", "S", "F"),
    ("F S", "PendingConfiguration", "Failure", "S", "F"),
    ("S1 F S2", "PendingConfiguration", "Failure", "S1 S2", "F"),
    ("F1 S F2", "PendingConfiguration", "Failure", "S", "F1 F2"),
    ("S r", "PendingReboot", "Success", "S", "r"),
    ("F r", "PendingReboot", "Failure", "", "F r"),
    ("r S", "PendingReboot", "Success", "", "r"),
    ("r F", "PendingReboot", "Success", "", "r"),
];

/// What ends in the middle of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Victim {
    Worker,
    Agent,
    Machine,
}

/// A call as the resource itself wrote it down.
struct Call {
    name: String,
    method: String,
    boot: String,
    process: String,
}

/// The machine, and how many documents it was given.
struct Source {
    machine: Debian,
    versions: usize,
}

#[test]
fn an_installed_agent_converges_with_resources_of_powershell() {
    let Some(pwsh) = stead_testkit::powershell(TEST) else { return };
    if !stead_testkit::is_root(TEST) {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("source");
    let machine = match Debian::of(&folder, stead_testkit::asked("STEAD_BOOTS").is_some() || has_shared()) {
        Ok(machine) => machine,
        Err(reason) => return stead_testkit::skip(TEST, &reason),
    };
    prepare(&machine, pwsh.parent().unwrap());
    let mut source = Source { machine, versions: 0 };
    source.machine.boot();
    source.machine.wait_until_started();
    assert!(source.machine.ok(&["stead", "agent", "install"]).contains("the agent is running"));
    states(&mut source);
    let first = is_staged_first(&mut source);
    let second = is_resumed_after_a_restart(&mut source, first);
    let mut former = waits_for_a_share(&mut source, second);
    for _ in 0..stead_testkit::asked("STEAD_BOOTS").unwrap_or(1).div_ceil(10) {
        for victim in [Victim::Worker, Victim::Agent, Victim::Machine] {
            for method in ["test", "set"] {
                former = goes_on(&mut source, former, victim, method);
            }
        }
    }
    shows_no_secret(&source);
    source.machine.shut_down();
}

/// Tells whether what tests need beside the repository is at hand, and so what a Debian is made of.
fn has_shared() -> bool {
    stead_testkit::repository().join("../shared/tools/powershell/install").is_file()
}

/// A machine with PowerShell, a module and the program, and with nothing of a former test.
fn prepare(machine: &Debian, pwsh: &Path) {
    for path in
        ["/var/lib/stead", "/etc/systemd/system/stead-agent.service", "/srv/source", "/srv/share", "/var/log/journal"]
    {
        machine.remove(path);
    }
    machine.remove("/etc/systemd/system/multi-user.target.wants/stead-agent.service");
    if !machine.root("/opt/pwsh").is_dir() {
        let copied = Command::new("cp").arg("-a").arg(pwsh).arg(machine.root("/opt/pwsh")).status();
        assert!(copied.unwrap().success());
        std::os::unix::fs::symlink("/opt/pwsh/pwsh", machine.root("/usr/local/bin/pwsh")).unwrap();
    }
    machine.install(Path::new(env!("CARGO_BIN_EXE_stead")), "/usr/local/bin/stead");
    machine.write("/srv/source/state/README", "");
    // What is logged outlasts the machine.
    machine.write("/var/log/journal/README", "");
    let exported = "DscResourcesToExport = @('Step', 'Scripted')";
    machine.write(
        &format!("{MODULES}/Source.psd1"),
        &format!("@{{ RootModule = 'Source.psm1'; ModuleVersion = '1.0.0'; {exported} }}\n"),
    );
    machine.write(&format!("{MODULES}/Source.psm1"), &format!("{KEPT}{CLASS}"));
    machine.write(&format!("{MODULES}/DscResources/Scripted/Scripted.psm1"), &format!("{KEPT}{SCRIPTED}"));
    machine.write(&format!("{MODULES}/DscResources/Scripted/Scripted.schema.mof"), SCHEMA);
    let [password, token] = SECRETS;
    let login = json!({"username": "operator", "password": password});
    let parameters = json!({"parameters": {"login": {"value": login}, "token": {"value": token}}});
    machine.write(PARAMETERS, &parameters.to_string());
}

impl Source {
    fn set(&self, settings: &[&str]) {
        self.machine.ok(&[&["stead", "agent", "settings", "set"], settings].concat());
    }

    /// A document of a chain: a class, a script, a class with a login, a script of the document with a secret in it, a file
    /// from a share, and a file.
    fn chain(&mut self, restarts: bool) -> String {
        self.versions += 1;
        let version = format!("v{}", self.versions);
        let set = format!(
            "[concat('$o = @{{ Properties = ''{version}', parameters('token'), '''}}; \
             [IO.File]::WriteAllText(''/srv/source/state/d'', $o.Properties)')]"
        );
        let test = format!(
            "$properties = '/srv/source/state/d'; (Test-Path $properties) -and (Get-Content $properties).StartsWith('{version}t')"
        );
        let step = |name: &str, kind: &str, mut properties: Json| {
            properties["Name"] = name.into();
            properties["Value"] = version.clone().into();
            (name.to_owned(), kind.to_owned(), properties)
        };
        let links = [
            step("a", "Source/Step", json!({})),
            step("b", "Source/Scripted", json!({})),
            step("c", "Source/Step", json!({"Restarts": restarts, "Login": "[parameters('login')]"})),
            (
                "d".into(),
                "PSDesiredStateConfiguration/Script".into(),
                json!({"GetScript": "@{ Result = 'd' }", "TestScript": test, "SetScript": set}),
            ),
            (
                "e".into(),
                "PSDesiredStateConfiguration/File".into(),
                json!({"DestinationPath": "/srv/source/state/e", "SourcePath": "/srv/share/data", "Checksum": "SHA-256"}),
            ),
            ("f".into(), "Stead/File".into(), json!({"path": "/srv/source/state/f", "content": version})),
        ];
        let mut resources: Vec<Json> = Vec::new();
        for (name, kind, properties) in links {
            let before = resources
                .last()
                .map(|last| format!("{}:{}", last["type"].as_str().unwrap(), last["name"].as_str().unwrap()));
            let needs: Vec<String> = before.into_iter().collect();
            resources.push(json!({"name": name, "type": kind, "properties": properties, "dependsOn": needs}));
        }
        let parameters = json!({"login": {"type": "secureObject"}, "token": {"type": "secureString"}});
        self.machine.write(DOCUMENT, &json!({"parameters": parameters, "resources": resources}).to_string());
        version
    }

    /// Delivers the document by `apply` or `publish`. Returns its number.
    fn deliver(&self, verb: &str, more: &[&str]) -> u64 {
        let words = [&[verb, DOCUMENT], more].concat();
        until(|| self.machine.agent(&words)?["generation"].as_u64())
    }

    fn deliver_chain(&mut self, verb: &str, restarts: bool) -> (String, u64) {
        let version = self.chain(restarts);
        let generation = self.deliver(verb, &["--parameters-file", PARAMETERS]);
        (version, generation)
    }

    /// What became of this document: its stage, unless it is none that counts.
    fn stage(&self, generation: u64) -> Option<String> {
        let history = self.machine.agent(&["history"])?;
        let all = history["generations"].as_array()?;
        Some(all.iter().find(|each| each["generation"] == generation)?["stage"].as_str()?.to_owned())
    }

    /// Waits until this document is current, and sees that the former one is the previous one, and that everything is as it says.
    fn becomes_current(&self, version: &str, generation: u64, former: u64) {
        until(|| (self.stage(generation).as_deref() == Some("current")).then_some(()));
        assert_eq!(self.stage(former).as_deref(), Some("previous"), "{version}");
        let state = |name: &str| self.machine.read(&format!("/srv/source/state/{name}")).unwrap_or_default();
        let [password, token] = SECRETS;
        let wanted = [
            version.to_owned(),
            version.to_owned(),
            format!("{version}{password}"),
            format!("{version}{token}"),
            "data".to_owned(),
        ];
        assert_eq!(["a", "b", "c", "d", "e"].map(state), wanted);
        assert_eq!(state("f"), version);
    }

    /// The calls for a version of the document, in their order.
    fn calls(&self, version: &str) -> Vec<Call> {
        let log = self.machine.read("/srv/source/calls").unwrap_or_default();
        let call = |line: &str| {
            let mut words = line.split(' ').map(str::to_owned);
            let mut word = || words.next().unwrap_or_default();
            (word() == version).then(|| Call { name: word(), method: word(), boot: word(), process: word() })
        };
        log.lines().filter_map(call).collect()
    }

    /// The methods of an instance that were called for a version, in one word each.
    fn methods(&self, version: &str, name: &str) -> Vec<String> {
        let calls = self.calls(version).into_iter();
        calls.filter(|call| call.name == name).map(|call| call.method).collect()
    }
}

/// Each row of the table of states holds for resources of PowerShell.
fn states(source: &mut Source) {
    source.set(&["Width=1", "ResourceRetryCount=0", "PendingRetrySecs=600", "RebootNodeIfNeeded=false"]);
    for (number, (order, state, status, right, wrong)) in STATES.into_iter().enumerate() {
        let step = |name: &str| {
            let own = json!({"Name": name, "Value": format!("row{number}"), "Restarts": name == "r", "Fails": name.starts_with('F')});
            json!({"name": name, "type": "Source/Step", "properties": own})
        };
        let resources: Vec<Json> = order.split(' ').map(step).collect();
        source.machine.write(DOCUMENT, &json!({ "resources": resources }).to_string());
        let generation = source.deliver("apply", &[]);
        let (found, stage) = until(|| {
            let found = source.machine.agent(&["status"])?;
            let stage = found["Stages"].as_array()?.iter().find(|each| each["Generation"] == generation)?.clone();
            (found["LCMState"] != "Busy" && !stage["LastJob"]["EndDate"].is_null()).then_some((found, stage))
        });
        let restarts = wrong.contains('r');
        assert_eq!(
            (&found["LCMState"], &found["RebootRequested"]),
            (&json!(state), &json!(restarts)),
            "{order}: {found:#}"
        );
        assert_eq!(
            (&stage["LastJob"]["Status"], &stage["LastJob"]["Type"]),
            (&json!(status), &json!("Initial")),
            "{order}"
        );
        let troubles = stage["Troubles"].as_array().unwrap().iter();
        let troubles: Vec<&str> =
            troubles.map(|each| each["instance"].as_str().unwrap().rsplit(':').next().unwrap()).collect();
        assert_eq!(troubles.join(" "), wrong, "{order}: {stage:#}");
        let is_right =
            |name: &&str| source.machine.read(&format!("/srv/source/state/{name}")) == Some(format!("row{number}"));
        let is_right: Vec<&str> = order.split(' ').filter(|name| *name != "r").filter(is_right).collect();
        assert_eq!(is_right.join(" "), right, "{order}");
        if restarts {
            source.machine.shut_down();
            source.machine.boot();
            source.machine.wait_until_started();
        }
    }
    source.set(&["ResourceRetrySecs=1", "PendingRetrySecs=1", "PendingRetryMaxSecs=1"]);
}

/// What is published is pending, and nothing is called for it; then it is tested, set where it must be, and becomes current.
fn is_staged_first(source: &mut Source) -> u64 {
    source.machine.write("/srv/share/data", "data");
    let (before, before_version) = (source.chain(false), source.deliver("apply", &["--parameters-file", PARAMETERS]));
    until(|| (source.stage(before_version).as_deref() == Some("current")).then_some(()));
    let (version, generation) = source.deliver_chain("publish", false);
    // A check of the current document may be under way.
    let status =
        until(|| source.machine.agent(&["status"]).filter(|status| status["LCMState"] == "PendingConfiguration"));
    assert_eq!((&status["Pending"], &status["Current"]), (&json!(generation), &json!(before_version)), "{status:#}");
    assert!(source.calls(&version).is_empty() && !source.calls(&before).is_empty());
    source.machine.ok(&["stead", "agent", "apply", "--use-existing"]);
    source.becomes_current(&version, generation, before_version);
    for name in ["a", "b", "c"] {
        assert_eq!(source.methods(&version, name)[..2], ["test", "set"], "{name}");
    }
    generation
}

/// What asks for a restart is the last that is begun. After the restart all are tested, and nothing is set a second time.
fn is_resumed_after_a_restart(source: &mut Source, former: u64) -> u64 {
    let (version, generation) = source.deliver_chain("apply", true);
    let status = until(|| source.machine.agent(&["status"]).filter(|status| status["LCMState"] == "PendingReboot"));
    assert_eq!(status["RebootRequestedBy"], json!(["Source/Step:c"]), "{status:#}");
    assert_eq!((&status["Pending"], &status["Current"]), (&json!(generation), &json!(former)));
    assert!(source.machine.read("/srv/source/state/f").as_deref() != Some(&version));
    let before = source.calls(&version).len();
    // The machine may be off before there is an answer.
    source.machine.run(&["stead", "agent", "settings", "set", "RebootNodeIfNeeded=true"]);
    until(|| (!source.machine.is_on()).then_some(()));
    source.machine.boot();
    source.becomes_current(&version, generation, former);
    let calls = source.calls(&version);
    assert!(calls[..before].iter().all(|call| call.boot != calls[before].boot), "it was restarted");
    assert_eq!(calls[before].method, "test");
    for name in ["a", "b", "c"] {
        let sets = source.methods(&version, name).iter().filter(|method| *method == "set").count();
        assert_eq!(sets, 1, "{name} is set once");
    }
    generation
}

/// A share that is not there keeps a document pending, with the reason, and the one before it current; when it comes, it converges.
fn waits_for_a_share(source: &mut Source, former: u64) -> u64 {
    source.machine.remove("/srv/share");
    source.machine.remove("/srv/source/state/e");
    let (version, generation) = source.deliver_chain("apply", false);
    let status = until(|| {
        let status = source.machine.agent(&["status"])?;
        (status["Pending"] == generation && status["Failures"].as_u64()? > 0).then_some(status)
    });
    let troubles = status["Stages"][0]["Troubles"].to_string();
    assert!(troubles.contains(":e\"") && troubles.contains("/srv/share/data"), "{troubles}");
    assert_eq!(source.stage(former).as_deref(), Some("current"));
    assert!(source.machine.read("/srv/source/state/f").as_deref() != Some(&version));
    source.machine.write("/srv/share/data", "data");
    source.becomes_current(&version, generation, former);
    let sets = source.methods(&version, "a").iter().filter(|method| *method == "set").count();
    assert_eq!(sets, 1, "what was in its state was not set again");
    generation
}

/// Whatever ends during a call: everything else is tested and not set again, the call is made again after a test, and nothing of
/// the former worker is left.
fn goes_on(source: &mut Source, former: u64, victim: Victim, method: &str) -> u64 {
    let version = source.chain(false);
    let gate = format!("/srv/source/hold-{version}-{method}-c");
    source.machine.write(&gate, "");
    let generation = source.deliver("apply", &["--parameters-file", PARAMETERS]);
    let held = until(|| source.calls(&version).pop().filter(|call| call.name == "c" && call.method == method));
    let before = source.calls(&version).len();
    match victim {
        Victim::Worker => drop(source.machine.ok(&["sh", "-c", &format!("kill -9 {}", held.process)])),
        Victim::Agent => {
            drop(source.machine.ok(&["systemctl", "kill", "--kill-who=main", "-s", "KILL", "stead-agent"]));
        }
        Victim::Machine => source.machine.cut_power(),
    }
    source.machine.remove(&gate);
    if victim == Victim::Machine {
        source.machine.boot();
    }
    source.becomes_current(&version, generation, former);
    let what = format!("{victim:?} in {method}");
    let after = source.calls(&version).split_off(before);
    let again = after.iter().find(|call| call.name == "c").map(|call| call.method.as_str());
    assert_eq!(again, Some("test"), "{what}");
    for name in ["a", "b"] {
        let sets = source.methods(&version, name).iter().filter(|method| *method == "set").count();
        assert_eq!(sets, 1, "{what}: {name}");
    }
    let is_gone =
        format!("test \"$(cat /proc/{}/comm)\" != pwsh && ! cat /proc/[0-9]*/stat | grep -F '(pwsh) Z'", held.process);
    if victim != Victim::Machine {
        until(|| source.machine.run(&["sh", "-c", &is_gone]).status.success().then_some(()));
    }
    generation
}

/// The journal of the machine, and what else was logged or reported, has neither secret in any form, and nothing of PowerShell's own.
fn shows_no_secret(source: &Source) {
    let shown = [
        source.machine.ok(&["journalctl", "-o", "export", "--all", "--no-pager"]),
        source.machine.ok(&["sh", "-c", "cat /var/log/journal/*/* | tr -cd '\\11\\12\\15\\40-\\176\\200-\\377'"]),
        source.machine.ok(&[
            "sh",
            "-c",
            "cat /var/lib/stead/log.jsonl; stead agent report -n 1000 -o json; stead agent status",
        ]),
    ];
    assert!(shown[0].contains("STEAD_EVENT=agentStarted"), "the search is blind");
    for form in SECRETS.iter().flat_map(|secret| forms(secret)) {
        for (number, text) in shown.iter().enumerate() {
            let found =
                text.find(&form).map(|at| text[..at + form.len()].chars().rev().take(400).collect::<Vec<char>>());
            let found: Option<String> = found.map(|letters| letters.into_iter().rev().collect());
            assert_eq!(found, None, "{form} is in {number}");
        }
    }
    let own = source.machine.run(&["journalctl", "-t", "powershell", "-o", "cat", "--no-pager"]);
    assert_eq!(String::from_utf8_lossy(&own.stdout).replace("-- No entries --\n", ""), "");
}
