//! The worker that PowerShell compiles, and where it is kept.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use stead_core::digest::sha256;
use stead_powershell::worker::KeptWorker;
use stead_system::fs::User;

use super::*;

/// A pool of which the worker is kept in a folder, and a call by it.
fn answers(folder: &Path, module: &Path) -> Result<(), Failed> {
    let executable = stead_testkit::powershell("answers").unwrap();
    let settings = Settings::new(executable, Environment::of_this_process(&[]), 1);
    let compiled = Some(KeptWorker { folder: folder.to_owned(), user: User::current() });
    let (cancel, deadline) = (Cancel::default(), Deadline::after(Duration::from_mins(1)));
    let limits = Limits { deadline, output: 1 << 20, cancel: &cancel, inherited: &[], to_come: 0 };
    let call = Call {
        kind: DefinitionKind::Class,
        module: Module { path: module, stamp: "" },
        resource: "Kept",
        method: Method::Get,
        properties: &[],
        records: Records::None,
        progress: None,
        directory: Path::new("/"),
        root: Path::new("/"),
    };
    Pool::new(Settings { compiled, ..settings }).call(&call, &limits, &mut |_| {}).map(drop)
}

/// An assembly with the name of the worker that ends its process.
const FOREIGN: &str = "namespace SteadWorker { public class Worker { public static void Run(string a, string b, string c) \
    { System.Environment.Exit(9); } } }";

/// An assembly that PowerShell loads, and that is another one than the worker.
fn foreign(folder: &Path) -> Vec<u8> {
    let executable = stead_testkit::powershell("foreign").unwrap();
    let built = folder.join("foreign.dll");
    let command = format!("Add-Type -TypeDefinition '{FOREIGN}' -OutputAssembly '{}'", built.display());
    let arguments = ["-NoProfile", "-NonInteractive", "-Command", &command];
    let output = std::process::Command::new(executable).args(arguments).env("HOME", folder).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    fs::read(built).unwrap()
}

/// What is kept is run as it is, so that it is compiled anew where anybody else could have changed it, where it is not what was
/// written, or belongs to another stead or another PowerShell.
#[test]
fn a_worker_is_compiled_once_and_no_other_than_that_is_run() {
    let Some(bench) = Bench::new("a_worker_is_compiled_once_and_no_other_than_that_is_run") else { return };
    let module = bench.class("Kept", "", "");
    let kept = bench.folder.path().join("kept");
    answers(&kept, &module).unwrap();
    let file = kept.join("powershell-worker");
    let (first, of) = (fs::read(&file).unwrap(), fs::metadata(&file).unwrap());
    assert_eq!(of.permissions().mode() & 0o777, 0o600);
    answers(&kept, &module).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), of.modified().unwrap(), "it is not written again");

    // The header, and behind it the sources and the version that it was compiled of and by.
    let lines: Vec<&[u8]> = first.splitn(3, |byte| *byte == b'\n').collect();
    let [header, about, compiled] = lines[..] else { panic!("it has two lines in front") };
    let begin = String::from_utf8_lossy(header).rsplit_once(' ').unwrap().0.to_owned();
    let about = String::from_utf8_lossy(about).into_owned();
    let file_of = |about: &str, compiled: &[u8]| {
        let body = [about.as_bytes(), b"\n", compiled].concat();
        [format!("{begin} {}\n", sha256(&body)).as_bytes(), &body].concat()
    };
    assert_eq!(file_of(&about, compiled), first);
    let (foreign, broken) = (foreign(bench.folder.path()), b"no assembly");
    let sources = about.split(' ').next().unwrap();
    let others = [
        [&first[..first.len() - 1], b"?"].concat(),
        // Changed behind its digest.
        [&first[..first.len() - compiled.len()], &foreign].concat(),
        file_of(&about.replace(|digit: char| digit.is_ascii_digit(), "0"), &foreign),
        file_of(&format!("{sources} 7.2.0"), &foreign),
    ];
    for (index, other) in others.into_iter().enumerate() {
        fs::write(&file, other).unwrap();
        answers(&kept, &module).unwrap_or_else(|failed| panic!("{index}: {}", failed.explain()));
        assert!(fs::read(&file).unwrap().starts_with(format!("{begin} ").as_bytes()), "{index}");
    }
    // What this one compiled is run as it is: whoever can write it could write stead.
    fs::write(&file, file_of(&about, &foreign)).unwrap();
    answers(&kept, &module).unwrap_err();
    assert_eq!(fs::read(&file).unwrap(), file_of(&about, &foreign));
    // It is compiled again, once, where it cannot be loaded.
    fs::write(&file, file_of(&about, broken)).unwrap();
    answers(&kept, &module).unwrap();
    let (again, of) = (fs::read(&file).unwrap(), fs::metadata(&file).unwrap());
    assert!(again.starts_with(begin.as_bytes()) && again.len() > compiled.len());
    answers(&kept, &module).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), of.modified().unwrap(), "it is not written again");
    fs::write(&file, file_of(&about, &foreign)).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o620)).unwrap();
    answers(&kept, &module).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
}

/// Global variables that a call may have left behind are looked for where PowerShell has them, which it documents nowhere.
#[test]
fn the_worker_sees_the_variables_that_powershell_lists() {
    let Some(bench) = Bench::new("the_worker_sees_the_variables_that_powershell_lists") else { return };
    let script = "$global:Own = 1\n\
        $types = Add-Type -PassThru -Path ([System.IO.Directory]::GetFiles($env:SOURCES, '*.cs'))\n\
        $globals = $types | Where-Object Name -EQ Globals\n\
        & { foreach ($way in 'Table', 'Listed') {\n\
            $found = $globals.GetMethod($way, [System.Reflection.BindingFlags] 'NonPublic, Static').Invoke($null, @($ExecutionContext.SessionState))\n\
            ($found | ForEach-Object Name | Sort-Object -Unique) -join ' ' } }";
    let executable = stead_testkit::powershell("the_worker_sees_the_variables_that_powershell_lists").unwrap();
    let output = std::process::Command::new(executable)
        .args(["-NoProfile", "-NonInteractive", "-Command", script])
        .env("HOME", bench.folder.path())
        .env("SOURCES", concat!(env!("CARGO_MANIFEST_DIR"), "/src/worker/source"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    let [table, listed] = lines[..] else { panic!("{output:?}") };
    // Those that each script has of its own are none that a call could leave.
    let own = ["args", "input", "MyInvocation", "PSBoundParameters"];
    let listed: Vec<&str> = listed.split(' ').filter(|name| !own.contains(name)).collect();
    assert_eq!(table.split(' ').collect::<Vec<_>>(), listed);
    assert!(listed.contains(&"Own"));
}
