//! The PowerShell module `Stead` of this repository, as this program reads it. On PowerShell `powershell/tests` runs it.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use stead_powershell_reader::class::File;
use stead_powershell_reader::manifest::{self, Context, Value};
use stead_powershell_reader::module::{Disk, Modules};
use stead_powershell_reader::script::{Function, Parameter, Scope};
use stead_system::fs::Trust;

const EXPORTED: [&str; 2] = ["Get-DscResource", "Invoke-DscResource"];

/// The parameters of those of `PSDesiredStateConfiguration`, with their types; what is only here is last.
const PARAMETERS: [&str; 2] = [
    "string[] Name, object Module, switch Syntax",
    "string Name, Microsoft.PowerShell.Commands.ModuleSpecification ModuleName, string Method, hashtable Property, \
     switch IgnorePsDscRunAsCredential",
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../powershell").canonicalize().unwrap()
}

/// Returns the mistakes in the module below a folder.
fn faults(folder: &Path) -> Vec<String> {
    let (files, directories) = (Disk::new(Trust::Everyone), [folder.to_owned()]);
    let modules = Modules { files: &files, environment: &|_| None, directories: &directories };
    let (found, unreadable) = modules.read();
    let mut faults: Vec<String> = unreadable.iter().map(ToString::to_string).collect();
    faults.extend(found.iter().flat_map(|module| &module.findings).map(|finding| finding.message.clone()));
    let text = |file: &str| std::fs::read_to_string(folder.join("Stead").join(file)).unwrap();
    let context = Context { folder: "", environment: &|_| None, variables: None };
    let exported = manifest::read(&text("Stead.psd1"), &context).ok().and_then(|table| {
        Some(table.get("FunctionsToExport")?.clone().elements().iter().map(Value::to_text).collect::<Vec<_>>())
    });
    if exported.as_deref() != Some(&EXPORTED.map(str::to_owned)) {
        faults.push(format!("the manifest exports {exported:?}"));
    }
    let script = File::read(Arc::new(PathBuf::from("Stead.psm1")), text("Stead.psm1").as_bytes()).script;
    for (name, expected) in EXPORTED.iter().zip(PARAMETERS) {
        match script.functions.iter().find(|function| function.name == *name && function.scope == Scope::Top) {
            None => faults.push(format!("{name} is not defined")),
            Some(function) if parameters(function) != expected => {
                faults.push(format!("{name} has the parameters {}", parameters(function)));
            }
            Some(_) => {}
        }
    }
    // With another preference a caller goes past 'throw'.
    let module = text("Stead.psm1");
    for name in EXPORTED {
        let function = module.split_once(&format!("function {name} {{")).map_or("", |(_, rest)| rest);
        let begin = function.split_once("\n    process {").map_or("", |(begin, _)| begin);
        if !begin.contains("\n        $ErrorActionPreference = 'Stop'\n") {
            faults.push(format!("{name} does not stop at errors"));
        }
    }
    faults
}

fn parameters(function: &Function) -> String {
    let parameter = |it: &Parameter| format!("{} {}", it.ty.as_ref().map_or("", |ty| ty.text.as_str()), it.name);
    function.parameters.iter().map(parameter).collect::<Vec<_>>().join(", ")
}

#[test]
fn it_is_valid_and_defines_what_it_exports() {
    assert_eq!(faults(&folder()), Vec::<String>::new());
}

/// Breaks a module on purpose: a fault that the test above would not see is not tested.
#[test]
fn a_broken_module_is_noticed() {
    let breaks = [
        ("Stead.psd1", "'Stead.psm1'", "'Other.psm1'", "the module has no file 'Other.psm1'"),
        ("Stead.psd1", "ModuleVersion ", "Version ", "'Version' is not a member of a module manifest"),
        ("Stead.psd1", "'Get-DscResource', ", "", "the manifest exports Some([\"Invoke-DscResource\"])"),
        (
            "Stead.psm1",
            "finally { [Monitor]::Exit($process) }",
            "finally { [Monitor]::Exit($process) ",
            "'{' is not closed",
        ),
        ("Stead.psm1", "function Get-DscResource {", "function Get-Resource {", "Get-DscResource is not defined"),
        ("Stead.psm1", "[hashtable] $Property", "[object] $Property", "Invoke-DscResource has the parameters"),
        ("Stead.psm1", "$ErrorActionPreference = 'Stop'", "", "Invoke-DscResource does not stop at errors"),
        (
            "Stead.psm1",
            "= $ErrorActionPreference\n        $ErrorActionPreference = 'Stop'",
            "",
            "Get-DscResource does not stop",
        ),
    ];
    for (file, part, replaced, expected) in breaks {
        let copy = tempfile::tempdir().unwrap();
        std::fs::create_dir(copy.path().join("Stead")).unwrap();
        for name in ["Stead.psd1", "Stead.psm1", "Stead.format.ps1xml"] {
            let text = std::fs::read_to_string(folder().join("Stead").join(name)).unwrap();
            assert!(name != file || text.contains(part), "{part}");
            let text = if name == file { text.replacen(part, replaced, 1) } else { text };
            std::fs::write(copy.path().join("Stead").join(name), text).unwrap();
        }
        let found = faults(copy.path());
        assert!(found.iter().any(|fault| fault.starts_with(expected)), "{expected}: {found:?}");
    }
}
