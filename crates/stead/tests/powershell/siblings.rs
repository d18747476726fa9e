//! Each instance runs the code of its own module, whatever ran before it or runs beside it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::process::Command;

use serde_json::Value as Json;

use super::{Place, printed};

/// How two modules can have something of one name.
const KINDS: [&str; 6] = [
    "types of two versions",
    "types of two modules",
    "an assembly",
    "functions of two versions",
    "types of two modules behind those of .NET",
    "types of two modules by their context",
];

/// A file with an assembly, which its name does not say.
const BUILT: &str = "built.bin";

/// The source of a type that says something.
fn source(number: usize, answer: &str) -> String {
    format!("public class Shared{number} {{ public static string Say() {{ return \"{answer}\"; }} }}")
}

/// Makes the assembly in the folder of a module.
fn build(place: &Place, folder: &str, name: &str, source: &str) {
    let built = place.write(&format!("{folder}/{BUILT}"), "");
    let made = place.path(&format!("{name}.dll"));
    let command = format!("Add-Type -TypeDefinition '{source}' -OutputAssembly '{}'", made.display());
    let arguments = ["-NoProfile", "-NonInteractive", "-Command", &command];
    let output = Command::new(&place.pwsh).args(arguments).env("HOME", place.path("home")).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    std::fs::rename(made, built).unwrap();
}

/// The text before a class, and what its Get says.
fn text(kind: &str, number: usize, answer: &str) -> (String, String) {
    let ty = format!("Shared{number}");
    let source = source(number, answer);
    match kind {
        "functions of two versions" => {
            (format!("function Get-Shared {{ '{answer}' }}"), "$this.Seen = Get-Shared".to_owned())
        }
        "an assembly" => {
            let built = format!("$PSScriptRoot/Built{number}.dll");
            let load = format!(
                "if (-not (Test-Path \"{built}\")) {{ Add-Type -TypeDefinition '{source}' -OutputAssembly \"{built}\" }}\n\
                 Add-Type -Path \"{built}\"\nfunction Get-Shared {{ [{ty}]::Say() }}"
            );
            (load, "$this.Seen = Get-Shared".to_owned())
        }
        "types of two modules by their context" => {
            let load = format!(
                "$context = [System.Runtime.Loader.AssemblyLoadContext]::Default\n\
                 [void] $context.LoadFromAssemblyPath(\"$PSScriptRoot/{BUILT}\")\nfunction Get-Shared {{ [{ty}]::Say() }}"
            );
            (load, "$this.Seen = Get-Shared".to_owned())
        }
        "types of two modules behind those of .NET" => (
            format!(
                "Add-Type -AssemblyName System.Xml; Add-Type -TypeDefinition '{source}'\nfunction Get-Shared {{ [{ty}]::Say() }}"
            ),
            "$this.Seen = Get-Shared".to_owned(),
        ),
        _ => (
            format!("Add-Type -TypeDefinition '{source}'\nfunction Get-Shared {{ [{ty}]::Say() }}"),
            "$this.Seen = Get-Shared".to_owned(),
        ),
    }
}

/// A pair: the types of its instances with their versions, and what each of the two answers.
fn pair(place: &Place, kind: &str, number: usize) -> [(String, &'static str, String); 2] {
    let of_two_modules = kind.starts_with("types of two modules");
    ["1.0.0", "2.0.0"].map(|version| {
        let name = if of_two_modules { format!("Pair{number}x{}", &version[..1]) } else { format!("Pair{number}") };
        let answer = format!("{number} {version}");
        let (before, get) = text(kind, number, &answer);
        let version = if of_two_modules { "1.0.0" } else { version };
        let folder = format!("modules/{name}/{version}");
        place.module(&name, &folder, version, &before, &get);
        if kind.ends_with("context") {
            build(place, &folder, &name, &source(number, &answer));
        }
        (format!("{name}/{name}"), version, answer)
    })
}

#[test]
fn each_module_runs_its_own_code() {
    let Some(place) = Place::new("each_module_runs_its_own_code") else { return };
    let pairs: Vec<_> = (0..stead_testkit::times("STEAD_MODULE_PAIRS", KINDS.len()))
        .map(|number| pair(&place, KINDS[number % KINDS.len()], number))
        .collect();
    for reversed in [false, true] {
        let (mut document, mut answers) = ("resources:\n".to_owned(), Vec::new());
        for (number, pair) in pairs.iter().enumerate() {
            let mut pair: Vec<_> = pair.iter().collect();
            if reversed {
                pair.reverse();
            }
            for (at, (ty, version, answer)) in pair.into_iter().enumerate() {
                let name = format!("p{number}x{at}");
                writeln!(
                    document,
                    "- {{name: {name}, type: {ty}, requireVersion: '={version}', properties: {{Name: n}}}}"
                )
                .unwrap();
                answers.push((name, answer.clone()));
            }
        }
        place.write("pairs.yaml", &document);
        for width in ["1", "2"] {
            let output = place
                .command(&["dsc", "config", "get", "-f", "pairs.yaml", "-o", "json", "--width", width])
                .output()
                .unwrap();
            let result: Json = serde_json::from_str(&printed(&output)).unwrap_or_default();
            let states = result["results"].as_array().cloned().unwrap_or_default();
            let seen: Vec<(String, String)> = states.iter().map(answered).collect();
            assert_eq!(seen, answers, "{output:?}");
        }
    }
}

fn answered(instance: &Json) -> (String, String) {
    let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
    (text(&instance["name"]), text(&instance["result"]["actualState"]["Seen"]))
}

/// Says which process it is.
const WHO: &str = "$this.Seen = [Environment]::ProcessId";

/// A call with secrets is alone with its module, and no other module's code runs there afterwards.
#[test]
fn a_call_with_secrets_shares_its_process_with_its_module_alone() {
    let Some(place) = Place::new("a_call_with_secrets_shares_its_process_with_its_module_alone") else { return };
    for module in ["One", "Other"] {
        place.class(module, WHO);
    }
    let instance = |name: &str, module: &str, login: bool| {
        let login = if login { ", Login: \"[parameters('login')]\"" } else { "" };
        format!("- {{name: {name}, type: {module}/{module}, properties: {{Name: {name}{login}}}}}\n")
    };
    let document = format!(
        "parameters: {{login: {{type: secureObject}}}}\nresources:\n{}{}{}{}{}",
        instance("a", "Other", false),
        instance("b", "One", true),
        instance("c", "One", false),
        instance("d", "Other", false),
        instance("e", "One", true)
    );
    place.write("secret.yaml", &document);
    let login = r#"{"parameters": {"login": {"username": "u", "password": "p"}}}"#;
    let arguments = ["dsc", "config", "--parameters", login, "get", "-f", "secret.yaml", "-o", "json", "--width", "1"];
    let output = place.command(&arguments).output().unwrap();
    let result: Json = serde_json::from_str(&printed(&output)).unwrap_or_default();
    let seen: Vec<(String, String)> =
        result["results"].as_array().cloned().unwrap_or_default().iter().map(answered).collect();
    let pid = |name: &str| &seen.iter().find(|(known, _)| known == name).unwrap().1;
    assert_eq!(seen.len(), 5, "{output:?}");
    assert_eq!((pid("b"), pid("a")), (pid("e"), pid("d")), "each is kept");
    assert_ne!(pid("a"), pid("b"));
}

/// A type whose instances state scripts, on the disk.
const ON_DISK: &str = "[DscResource()] class Disk {\n[DscProperty(Key)] [string] $GetScript\n[DscProperty()] [string] $Seen\n\
    [DscProperty()] [pscredential] $Login\n[Disk] Get() { $this.Seen = & ([scriptblock]::Create($this.GetScript))\nreturn $this }\n\
    [bool] Test() { return $true }\n[void] Set() { } }\n";

/// Scripts that are given secrets run in a process where no script of another instance runs, before or afterwards.
#[test]
fn scripts_with_secrets_share_their_process_with_no_other_scripts() {
    let Some(place) = Place::new("scripts_with_secrets_share_their_process_with_no_other_scripts") else { return };
    place.class("One", WHO);
    place.write("modules/Disk/Disk.psm1", ON_DISK);
    let manifest = "@{ RootModule = 'Disk.psm1'; ModuleVersion = '1.0.0'; DscResourcesToExport = 'Disk' }\n";
    place.write("modules/Disk/Disk.psd1", manifest);
    let who = "$PID";
    let secret = |text: &str| format!("\"[concat('$null = ''', parameters('token'), '''; {text}')]\"");
    let built_in = |get: &str| {
        format!(
            "PSDesiredStateConfiguration/Script, properties: {{GetScript: {get}, TestScript: $true, SetScript: 'x'}}"
        )
    };
    let transitional =
        |get: &str| format!("Microsoft.DSC.Transitional/PowerShellScript, properties: {{getScript: {get}}}");
    let table = format!("@{{{{Result = {who}}}}}").replace("{{", "{").replace("}}", "}");
    let resources = [
        ("a", built_in(&format!("'{table}'"))),
        ("bSecret", built_in(&secret(&table))),
        ("c", built_in(&format!("'{table} '"))),
        ("dSecret", built_in(&secret(&format!("{table} ")))),
        ("e", transitional(&format!("'{who}'"))),
        ("fSecret", transitional(&secret(who))),
        // It differs from the one before by the value of the secret alone.
        ("fOtherSecret", transitional(&secret(who).replace("'token'", "'other'"))),
        ("gSecret", transitional(&secret(&format!("{who} ")))),
        ("h", format!("Disk/Disk, properties: {{GetScript: '{who}'}}")),
        ("iSecret", format!("Disk/Disk, properties: {{GetScript: '{who} ', Login: \"[parameters('login')]\"}}")),
        ("jSecret", format!("Disk/Disk, properties: {{GetScript: '{who}  ', Login: \"[parameters('login')]\"}}")),
        ("kSecret", "One/One, properties: {Name: k, Login: \"[parameters('login')]\"}".to_owned()),
        ("l", built_in(&format!("'{table}  '"))),
    ];
    let instance = |(name, resource): &(&str, String)| format!("- {{name: {name}, type: {resource}}}\n");
    let document = format!(
        "parameters: {{token: {{type: secureString}}, other: {{type: secureString}}, login: {{type: secureObject}}}}\nresources:\n{}",
        resources.iter().map(instance).collect::<String>()
    );
    place.write("scripts.yaml", &document);
    let values = r#"{"parameters": {"token": "hunter2canary", "other": "hunter3canary", "login": {"username": "u", "password": "p"}}}"#;
    let arguments =
        ["dsc", "config", "--parameters", values, "get", "-f", "scripts.yaml", "-o", "json", "--width", "1"];
    let output = place.command(&arguments).output().unwrap();
    let result: Json = serde_json::from_str(&printed(&output)).unwrap_or_default();
    let process = |instance: &Json| {
        let state = &instance["result"]["actualState"];
        let said = [&state["Result"], &state["output"][0], &state["Seen"]].into_iter().find(|said| !said.is_null());
        (instance["name"].as_str().unwrap().to_owned(), said.map(|said| said.to_string().replace('"', "")).unwrap())
    };
    let seen: Vec<(String, String)> = result["results"].as_array().into_iter().flatten().map(process).collect();
    assert_eq!(seen.len(), resources.len(), "{output:?}");
    let is_secret = |(name, _): &&(String, String)| name.ends_with("Secret");
    let (secret, open): (Vec<_>, Vec<_>) = seen.iter().partition(|each| is_secret(each));
    let processes = |of: &[&(String, String)]| of.iter().map(|(_, pid)| pid.clone()).collect::<BTreeSet<_>>();
    let (own, shared) = (processes(&secret), processes(&open));
    assert_eq!((own.len(), own.is_disjoint(&shared)), (secret.len(), true), "{seen:?}");
    assert_eq!(shared.len(), 1, "those without secrets share one: {seen:?}");
}
