//! Modules in a warm worker, on PowerShell itself: each test writes modules and calls them.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

#[path = "on_powershell/apart.rs"]
mod apart;
#[path = "on_powershell/compiled.rs"]
mod compiled;
#[path = "support/kept.rs"]
mod kept;

use kept::kept;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value as Json, json};
use stead_core::call::Operation;
use stead_host::provider::{Context, Plain, Provider as _};
use stead_powershell::convert::Wire;
use stead_powershell::provider::{PowerShellProvider, Source};
use stead_powershell::worker::{
    Call, Deadline, Failed, Limits, Method, MethodReply, Module, Pool, PowerShellError, Records, Settings, Stream,
    StreamRecord, WorkerError,
};
use stead_powershell_reader::resource::{DefinitionKind, Methods, Resource};
use stead_powershell_reader::text::LineColumn;
use stead_powershell_reader::types::{Property, Type};
use stead_system::Cancel;
use stead_system::process::Environment;

/// A folder of modules and a worker for them.
struct Bench {
    folder: tempfile::TempDir,
    pool: Pool,
}

impl Bench {
    /// `None` where there is no PowerShell.
    fn new(test: &str) -> Option<Self> {
        Self::with(test, |_, _| {})
    }

    fn with(test: &str, set: impl FnOnce(&Path, &mut Environment)) -> Option<Self> {
        let executable = stead_testkit::powershell(test)?;
        let folder = tempfile::tempdir().unwrap();
        let mut environment = Environment::of_this_process(&[]);
        set(folder.path(), &mut environment);
        Some(Self { folder, pool: Pool::new(kept(Settings::new(executable, environment, 1))) })
    }

    /// A module of a class with the properties Name, How and Out.
    fn class(&self, name: &str, before: &str, methods: &str) -> PathBuf {
        let properties =
            "[DscProperty(Key)] [string] $Name\n[DscProperty()] [string] $How\n[DscProperty()] [string] $Out";
        let usual = [
            ("Get()", format!("[{name}] Get() {{ return $this }}")),
            ("Test()", "[bool] Test() { return $true }".to_owned()),
            ("Set()", "[void] Set() { }".to_owned()),
        ];
        let mut text = format!("{before}\n[DscResource()] class {name} {{\n{properties}\n{methods}\n");
        for (_, method) in usual.iter().filter(|(method, _)| !methods.contains(method)) {
            writeln!(text, "{method}").unwrap();
        }
        self.write(&format!("{name}/{name}.psm1"), &(text + "}\n"));
        let manifest =
            format!("@{{ RootModule = '{name}.psm1'; ModuleVersion = '1.0'; DscResourcesToExport = '{name}' }}");
        self.write(&format!("{name}/{name}.psd1"), &manifest)
    }

    fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    fn call(&self, module: &Path, method: Method, how: &str) -> (Result<MethodReply, Failed>, Vec<StreamRecord>) {
        self.call_with(module, method, how, Records::Information)
    }

    fn call_with(
        &self,
        module: &Path,
        method: Method,
        how: &str,
        records: Records,
    ) -> (Result<MethodReply, Failed>, Vec<StreamRecord>) {
        self.call_of(module, method, Wire::String(how.to_owned()), records)
    }

    fn call_of(
        &self,
        module: &Path,
        method: Method,
        how: Wire,
        records: Records,
    ) -> (Result<MethodReply, Failed>, Vec<StreamRecord>) {
        self.call_at(module, method, how, records, [Path::new("/"); 2])
    }

    /// Where it stands, and the folder of its document.
    fn call_at(
        &self,
        module: &Path,
        method: Method,
        how: Wire,
        records: Records,
        [directory, root]: [&Path; 2],
    ) -> (Result<MethodReply, Failed>, Vec<StreamRecord>) {
        let is_class = module.extension().is_some_and(|extension| extension == "psd1");
        let properties = [("Name", Wire::String("n".to_owned())), ("How", how)];
        let properties = properties.map(|(name, value)| (name.to_owned(), value));
        let cancel = Cancel::default();
        let deadline = Deadline::after(std::time::Duration::from_mins(1));
        let limits = Limits { deadline, output: 16 << 20, cancel: &cancel, inherited: &[], to_come: 0 };
        let call = Call {
            kind: if is_class { DefinitionKind::Class } else { DefinitionKind::Script },
            module: Module { path: module, stamp: "1" },
            resource: module.file_stem().unwrap().to_str().unwrap(),
            method,
            properties: &properties,
            records,
            progress: None,
            directory,
            root,
        };
        let mut written = Vec::new();
        let reply = self.pool.call(&call, &limits, &mut |record| written.push(record));
        (reply, written)
    }

    fn state(&self, module: &Path, how: &str) -> Json {
        let (reply, _) = self.call(module, Method::Get, how);
        serde_json::from_str(reply.unwrap().state().unwrap().unwrap().get()).unwrap()
    }

    fn out(&self, module: &Path, how: &str) -> String {
        self.state(module, how)["Out"].as_str().unwrap_or_default().to_owned()
    }
}

fn error(reply: Result<MethodReply, Failed>) -> PowerShellError {
    match reply {
        Err(Failed::Call(WorkerError::PowerShell(error))) => *error,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it did not fail"),
    }
}

fn texts(records: &[StreamRecord], stream: Stream) -> Vec<&str> {
    records.iter().filter(|record| record.stream == stream).map(|record| record.message.as_str()).collect()
}

#[test]
fn a_module_that_does_not_load_says_why() {
    let Some(bench) = Bench::new("a_module_that_does_not_load_says_why") else { return };
    let cases = [
        ("Thrower", "Write-Error 'before'\nthrow 'no licence'", "no licence", "no licence"),
        ("Newer", "#Requires -Version 99.0", "ScriptRequiresUnmatchedPSVersion", "PowerShell 99.0"),
        ("Desktop", "#Requires -PSEdition Desktop", "ScriptRequiresUnmatchedPSEdition", "'Desktop'"),
        ("Needy", "#Requires -Modules NotThere", "ScriptRequiresMissingModules", "'NotThere'"),
    ];
    for (name, before, id, message) in cases {
        let module = bench.class(name, before, "");
        let failed = bench.call(&module, Method::Get, "").0;
        assert!(failed.as_ref().is_err_and(|failed| failed.to_string().starts_with("cannot load the module: ")));
        let found = error(failed);
        assert!(found.message.contains(message), "{name}: {found:?}");
        assert!(found.id.starts_with(id) && found.during == "load", "{name}: {found:?}");
        let place = format!("{}:2", module.with_extension("psm1").display());
        assert_eq!(found.at, if name == "Thrower" { place } else { String::new() }, "{name}");
    }
    let module = bench.class("Assembly", "", "");
    let manifest = std::fs::read_to_string(&module).unwrap().replace("@{", "@{ RequiredAssemblies = 'NotThere.dll';");
    std::fs::write(&module, manifest).unwrap();
    let found = error(bench.call(&module, Method::Get, "").0);
    assert!(found.message.contains("Could not load file or assembly 'NotThere"), "{found:?}");
}

#[test]
fn a_module_that_loads_with_an_error_works() {
    let Some(bench) = Bench::new("a_module_that_loads_with_an_error_works") else { return };
    let before = "Write-Error 'an error'; Write-Warning 'a warning'; Write-Host 'a word'";
    let module = bench.class("Loud", before, "");
    let script = bench.write(
        "Loud2/Loud2.psm1",
        &format!("{before}\nfunction Get-TargetResource {{ param($Name, $How) @{{ Name = $Name }} }}"),
    );
    for module in [module, script] {
        let (reply, records) = bench.call(&module, Method::Get, "");
        reply.unwrap();
        let found = [Stream::Error, Stream::Warning, Stream::Information].map(|stream| texts(&records, stream));
        assert_eq!(found, [["an error"], ["a warning"], ["a word"]]);
        assert!(bench.call(&module, Method::Get, "").1.is_empty(), "it is loaded once");
    }
}

/// Errors that commands report end nothing: a set runs to its end and fails then with all of them, a get and a test succeed.
#[test]
fn a_set_goes_on_after_errors_and_fails_at_its_end() {
    let Some(bench) = Bench::new("a_set_goes_on_after_errors_and_fails_at_its_end") else { return };
    let body =
        "Write-Error 'one' -ErrorId One; Get-Item -LiteralPath /not/there; Set-Content -LiteralPath $HOW -Value done";
    let reads = "Write-Error 'read'";
    let methods = format!(
        "[Goer] Get() {{ {reads}; return $this }} [bool] Test() {{ {reads}; return $true }} [void] Set() {{ {} }}",
        body.replace("$HOW", "$this.How")
    );
    let class = bench.class("Goer", "", &methods);
    let script = bench.write(
        "GoerS/GoerS.psm1",
        &format!(
            "function Get-TargetResource {{ param($Name, $How) {reads}; @{{ Name = $Name }} }}
             function Test-TargetResource {{ param($Name, $How) {reads}; $true }}
             function Set-TargetResource {{ param($Name, $How) {} }}",
            body.replace("$HOW", "$How")
        ),
    );
    for module in [class, script] {
        let done = bench.folder.path().join("done");
        let (reply, records) = bench.call(&module, Method::Set, done.to_str().unwrap());
        let found = error(reply);
        assert_eq!(found.message, "2 errors: one; Cannot find path '/not/there' because it does not exist.");
        assert!(found.id.starts_with("One") && found.at.contains(".psm1:"), "{found:?}");
        assert_eq!(texts(&records, Stream::Error).len(), 2, "each is shown as well: {records:?}");
        std::fs::remove_file(&done).unwrap();
        for method in [Method::Get, Method::Test] {
            let (reply, records) = bench.call(&module, method, "");
            reply.unwrap();
            assert_eq!(texts(&records, Stream::Error), ["read"]);
        }
    }
}

/// What a method went on from may be why it ended.
#[test]
fn an_error_that_ends_a_method_has_those_before_it() {
    let Some(bench) = Bench::new("an_error_that_ends_a_method_has_those_before_it") else { return };
    let body = "Write-Error 'one'; if ($this.How) { Write-Error 'two' }; throw [TimeoutException]::new('the end')";
    let methods = format!("[Ender] Get() {{ {body} }} [bool] Test() {{ {body} }} [void] Set() {{ {body} }}");
    let module = bench.class("Ender", "", &methods);
    for method in [Method::Get, Method::Test, Method::Set] {
        let found = error(bench.call(&module, method, "").0);
        assert_eq!((&*found.message, &*found.ty), ("the end; before it: one", "System.TimeoutException"), "{found:?}");
        assert_eq!(error(bench.call(&module, method, "x").0).message, "the end; before it: one; two");
    }
}

/// The failure is of the call that it is for, and the worker goes on.
#[test]
fn a_property_that_cannot_be_built_fails_its_call() {
    let Some(bench) = Bench::new("a_property_that_cannot_be_built_fails_its_call") else { return };
    let module = bench.class("Built", "", "");
    bench.call(&module, Method::Get, "").0.unwrap();
    let twice = ["a", "A"].map(|name| (name.to_owned(), Wire::Null)).to_vec();
    for value in [Wire::Decimal("1e40".to_owned()), Wire::Hashtable(twice)] {
        let found = error(bench.call_of(&module, Method::Get, value, Records::None).0);
        assert_eq!(found.during, "read", "{found:?}");
    }
    assert_eq!(bench.pool.workers(), 1);
    bench.call(&module, Method::Get, "").0.unwrap();
}

#[test]
fn only_errors_that_were_reported_fail_a_set() {
    let Some(bench) = Bench::new("only_errors_that_were_reported_fail_a_set") else { return };
    let set = "[void] Set() { & ([scriptblock]::Create($this.How)) }";
    let module = bench.class("Runs", "", set);
    let cases = [
        ("Get-Item /not/there -ErrorAction SilentlyContinue", None),
        ("try { Get-Item /not/there -ErrorAction Stop } catch { }", None),
        ("Get-Item /not/there 2>$null", None),
        ("$x = Get-Item /not/there 2>&1", None),
        ("/bin/sh -c 'echo said >&2; exit 3'", None),
        ("Get-Item /not/there; $Error.Clear()", Some("Cannot find path")),
        ("Start-ThreadJob { Write-Error 'in a job' } | Receive-Job -Wait", Some("in a job")),
        ("[int]::Parse('x'); Write-Error 'never'", Some("The input string 'x'")),
        ("1..150 | ForEach-Object { Write-Error \"e$_\" }", Some("150 errors: e1; e2; ")),
    ];
    for (how, expected) in cases {
        let (reply, _) = bench.call(&module, Method::Set, how);
        match expected {
            None => drop(reply.unwrap_or_else(|failed| panic!("{how}: {failed}"))),
            Some(expected) => {
                let found = error(reply).message;
                assert!(found.contains(expected) && !found.contains("never"), "{how}: {found}");
            }
        }
    }
    let found = error(bench.call(&module, Method::Set, "1..150 | ForEach-Object { Write-Error \"e$_\" }").0).message;
    assert!(found.ends_with("; e100; and 50 more"), "{found}");
}

/// A method that leaves its script, in whatever way, fails by itself; the next one has a pipeline again. What it started for later is
/// carried out while nothing is called.
#[test]
fn a_method_that_leaves_its_script_ends_no_other() {
    let Some(bench) = Bench::new("a_method_that_leaves_its_script_ends_no_other") else { return };
    let module = bench.class("Leaves", "", "[void] Set() { & ([scriptblock]::Create($this.How)) }");
    for how in ["exit", "break", "continue", "exit 3", "continue there", "throw 'x'"] {
        bench.call(&module, Method::Set, how).0.unwrap_err();
        bench.call(&module, Method::Test, "").0.unwrap();
        bench.call(&module, Method::Set, "1").0.unwrap();
    }
    let done = bench.folder.path().join("done");
    let later = format!(
        "$timer = [System.Timers.Timer]@{{ Interval = 50; AutoReset = $false }}
         Register-ObjectEvent $timer Elapsed -Action {{ Set-Content -LiteralPath '{}' -Value x }}
         $timer.Start()",
        done.display()
    );
    bench.call(&module, Method::Set, &later).0.unwrap();
    stead_testkit::until(|| done.exists().then_some(()));
    assert_eq!(bench.pool.workers(), 1);
}

/// PowerShell computes the path of modules anew for each runspace, with the directories of the user first.
#[test]
fn modules_come_from_the_path_of_the_worker_from_the_first_call_on() {
    let test = "modules_come_from_the_path_of_the_worker_from_the_first_call_on";
    if !stead_testkit::is_root(test) {
        return;
    }
    let others = |folder: &Path, environment: &mut Environment| {
        environment.set("XDG_DATA_HOME", folder.join("data"));
        environment.set("HOME", folder.join("home"));
    };
    let Some(bench) = Bench::with(test, others) else { return };
    let evil = format!("Set-Content -LiteralPath '{}' -Value x", bench.folder.path().join("evil").display());
    for folder in ["data/powershell/Modules", "home/.local/share/powershell/Modules"] {
        for command in ["Invoke-Evil", "New-CimInstance"] {
            let name = command.replace('-', "");
            bench.write(&format!("{folder}/{name}/{name}.psm1"), &format!("{evil}; function {command} {{ {evil} }}"));
            let manifest =
                format!("@{{ RootModule = '{name}.psm1'; ModuleVersion = '1.0'; FunctionsToExport = '{command}' }}");
            bench.write(&format!("{folder}/{name}/{name}.psd1"), &manifest);
        }
    }
    let module = bench.class("First", "", "[First] Get() { $this.Out = $env:PSModulePath; Invoke-Evil; return $this }");
    assert!(error(bench.call(&module, Method::Get, "").0).id.contains("CommandNotFound"));
    let shown = bench.class("Shown", "", "[Shown] Get() { $this.Out = $env:PSModulePath; return $this }");
    let first = bench.out(&shown, "");
    assert!(first.ends_with("/Modules") && !first.contains(':'), "{first}");
    assert_eq!(bench.out(&shown, ""), first);
    let tables = bench.write(
        "Tables/Tables.psm1",
        "function Set-TargetResource { param($Name, [ciminstance[]] $How) }
         function Get-TargetResource { param($Name, [ciminstance[]] $How) @{ } }",
    );
    let table = Wire::Hashtable(vec![("k".to_owned(), Wire::String("v".to_owned()))]);
    let properties = [("How".to_owned(), table)];
    let cancel = Cancel::default();
    let deadline = Deadline::after(std::time::Duration::from_mins(1));
    let limits = Limits { deadline, output: 16 << 20, cancel: &cancel, inherited: &[], to_come: 0 };
    let call = Call {
        kind: DefinitionKind::Script,
        module: Module { path: &tables, stamp: "1" },
        resource: "Tables",
        method: Method::Set,
        properties: &properties,
        records: Records::None,
        progress: None,
        directory: Path::new("/"),
        root: Path::new("/"),
    };
    let refused = error(bench.pool.call(&call, &limits, &mut |_| {})).message;
    assert!(refused.contains("New-CimInstance here, which is not on this system"), "{refused}");
    assert!(!bench.folder.path().join("evil").exists(), "another user's code was run");
}

/// A request for a restart counts though the resource failed after it.
#[test]
fn a_restart_that_was_asked_for_before_an_error_is_kept() {
    let Some(bench) = Bench::new("a_restart_that_was_asked_for_before_an_error_is_kept") else { return };
    let module = bench.class("Asks", "", "[void] Set() { & ([scriptblock]::Create($this.How)) }");
    let cases = [
        ("$global:DSCMachineStatus = 1; throw 'no'", true),
        ("$global:DSCMachineStatus = 1; Write-Error 'no'", true),
        ("$global:DSCMachineStatus = 1; exit 3", true),
        ("throw 'no'", false),
        ("$global:DSCMachineStatus = 0; throw 'no'", false),
    ];
    for (how, expected) in cases {
        let failed = bench.call(&module, Method::Set, how).0.err().unwrap();
        assert_eq!(failed.asks_for_restart(), expected, "{how}: {failed}");
    }
}

/// A call that does not come to its method asks for nothing, whatever an earlier one asked for.
#[test]
fn a_restart_is_asked_for_by_its_own_call_alone() {
    let Some(bench) = Bench::new("a_restart_is_asked_for_by_its_own_call_alone") else { return };
    let get = "[Wants] Get() { & ([scriptblock]::Create($this.How)); return $this }";
    let module = bench.class("Wants", "", get);
    for ends in ["", "; exit 3"] {
        let (reply, _) = bench.call(&module, Method::Get, &format!("$global:DSCMachineStatus = 1{ends}"));
        assert!(reply.map_or_else(|failed| failed.asks_for_restart(), |reply| reply.reboot_required), "{ends}");
        let gone = [&*bench.folder.path().join("gone"), Path::new("/")];
        let (reply, _) = bench.call_at(&module, Method::Get, Wire::String(String::new()), Records::None, gone);
        let failed = reply.err().unwrap();
        assert!(failed.to_string().contains("/gone'") && !failed.asks_for_restart(), "{ends}: {failed}");
    }
}

/// Whatever is in them: values, and the folders of modules and documents.
#[test]
fn texts_arrive_as_they_are() {
    let Some(bench) = Bench::new("texts_arrive_as_they_are") else { return };
    let out = "[Odd] Get() { $this.Out = \"$PWD|\" + $this.How; return $this }";
    let module = bench.class("Odd", "", out);
    let odd = bench.folder.path().join("odd '\"`u{41}$(1)\t\n\u{1}\u{1e}\u{1f}\u{85}\u{2028}\u{1f980}");
    std::fs::rename(module.parent().unwrap(), &odd).unwrap();
    let controls: String = ('\0'..='\u{a0}').collect();
    let texts = [&*controls, "", "\\", "\\\\", "\\u0041 \\n \\", "\u{1}", "[\"json\"]", " '\"`$(1)\u{2028}\u{1f980}"];
    for how in texts {
        let place = [odd.as_path(), odd.as_path()];
        let reply =
            bench.call_at(&odd.join("Odd.psd1"), Method::Get, Wire::String(how.to_owned()), Records::None, place).0;
        let state: Json = serde_json::from_str(reply.unwrap().state().unwrap().unwrap().get()).unwrap();
        assert_eq!((&state["How"], &state["Out"]), (&json!(how), &json!(format!("{}|{how}", odd.display()))));
    }
}

/// A printed script finds, in a PowerShell of its own, its module and the folder of its document, whatever they are called.
#[test]
fn a_printed_script_does_what_its_call_does() {
    let test = "a_printed_script_does_what_its_call_does";
    let (Some(bench), Some(executable)) = (Bench::new(test), stead_testkit::powershell(test)) else { return };
    // As a pattern, the one is the other.
    let [_, folder] = ["a b'c", "[a] b'c"].map(|name| {
        let out = format!("{name} $PWD $env:DSC_CONFIG_ROOT");
        let function = format!("function Get-TargetResource {{ param($Name) @{{ Out = \"{out}\" }} }}");
        bench.write(&format!("{name}/Shown.psm1"), &function).parent().unwrap().to_owned()
    });
    let file = Arc::new(folder.join("Shown.psm1"));
    let resource = Resource {
        name: "Shown".to_owned(),
        class_name: None,
        kind: DefinitionKind::Script,
        version: None,
        file: Arc::clone(&file),
        implementation: file,
        place: LineColumn { line: 1, column: 1 },
        description: None,
        properties: vec![Property::new("Name", Type::String)],
        methods: Methods::default(),
    };
    let source = Source { module: folder.join("Shown.psm1"), stamp: Box::new(|| Ok("1".to_owned())) };
    let provider = PowerShellProvider::new(None, Arc::new(resource), source);
    let (context, input) = (Context::new(&*folder), Plain::new(json!({ "Name": "n" })));
    let script = provider.script(&context, &input, Operation::Get).unwrap();
    let mut shell = std::process::Command::new(executable);
    let printed = shell.args(["-NoProfile", "-NonInteractive", "-Command", &script]).output().unwrap();
    let state: Json = serde_json::from_slice(&printed.stdout).unwrap_or_else(|_| panic!("{script}\n{printed:?}"));
    assert_eq!(state["Out"], format!("[a] b'c {0} {0}", folder.display()), "{script}");
}

/// The members of a state are those that are declared as properties of a resource, hidden or not, also in what is nested.
#[test]
fn a_state_has_the_declared_properties() {
    let Some(bench) = Bench::new("a_state_has_the_declared_properties") else { return };
    let before =
        "class Part { [DscProperty()] [string] $In = 'i'; [string] $Not = 'n'; hidden [DscProperty()] [int] $Hid = 2 }
        class Plain { [string] $A = 'a'; hidden [string] $B = 'b' }
        class Base { [DscProperty()] [string] $Inherited = 'h'; [string] $OfBase = 'x' }";
    let class = "[DscResource()] class Declares : Base {
        [DscProperty(Key)] [string] $Name\n[DscProperty()] [string] $How
        [DscProperty()] [datetime] $When = [datetime]::new(2026, 1, 2, 3, 4, 5, [DateTimeKind]::Utc).ToLocalTime()
        [DscProperty()] [Part] $Part = [Part]::new()\n[DscProperty()] [Plain] $Plain = [Plain]::new()
        hidden [DscProperty()] [string] $Hidden = 'q'\n[string] $Undeclared = 'u'\nstatic [int] $Shared = 9
        [Declares] Get() { if ($this.How) { return [Made]::new() }; return $this } [bool] Test() { return $true } [void] Set() { } }";
    bench.write("Declares/Declares.psm1", &format!("{before}\n{class}\nclass Made : Declares {{ }}\n"));
    let module = bench.write(
        "Declares/Declares.psd1",
        "@{ RootModule = 'Declares.psm1'; ModuleVersion = '1.0'; DscResourcesToExport = 'Declares' }",
    );
    let expected = json!({
        "Name": "n", "How": "", "When": "2026-01-02T03:04:05Z", "Part": { "In": "i", "Hid": 2 }, "Plain": { "A": "a" },
        "Hidden": "q", "Inherited": "h",
    });
    assert_eq!(bench.state(&module, ""), expected);
    let mut derived = expected;
    derived["Name"] = Json::Null;
    derived["How"] = Json::Null;
    assert_eq!(bench.state(&module, "derived"), derived);
}

/// Nothing is made that nobody sees.
#[test]
fn only_records_that_are_wanted_are_sent() {
    let Some(bench) = Bench::new("only_records_that_are_wanted_are_sent") else { return };
    let writes = "Write-Warning w; Write-Host h; Write-Information i; Write-Verbose v; Write-Debug d";
    let module = bench.class("Writes", "", &format!("[bool] Test() {{ {writes}; return $true }}"));
    let cases = [
        (Records::None, vec!["w"]),
        (Records::Information, vec!["w", "h", "i"]),
        (Records::Verbose, vec!["w", "h", "i", "v"]),
        (Records::Debug, vec!["w", "h", "i", "v", "d"]),
    ];
    for (wanted, expected) in cases {
        let (reply, records) = bench.call_with(&module, Method::Test, "", wanted);
        reply.unwrap();
        assert_eq!(records.iter().map(|record| record.message.as_str()).collect::<Vec<_>>(), expected, "{wanted:?}");
    }
}
