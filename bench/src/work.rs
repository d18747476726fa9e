//! The work that is measured: documents, and for the floor lists of the same files.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

/// The type that the manifest of [`ECHO_MANIFEST`] declares: what it receives, it reports.
const ECHO_COMMAND: &str = "Bench/Echo";

/// A resource that is a program. It is one that starts fast, because starting it is all that the floor does.
pub(crate) const ECHO_MANIFEST: &str = r#"{
    "$schema": "https://aka.ms/dsc/schemas/v3/bundled/resource/manifest.json",
    "type": "Bench/Echo",
    "version": "1.0.0",
    "get": { "executable": "cat", "input": "stdin" },
    "schema": {
        "embedded": { "type": "object", "properties": { "output": { "type": "string" } } }
    }
}
"#;

/// The program of [`ECHO_MANIFEST`], for the floor.
pub(crate) const ECHO_PROGRAM: &str = "cat";

/// A document without instances.
pub(crate) fn empty() -> String {
    String::from("$schema: https://aka.ms/dsc/schemas/v3/bundled/config/document.json\nresources: []\n")
}

/// A document with as many instances of the built-in Echo.
pub(crate) fn echoes(count: u32) -> String {
    document((0..count).map(|number| instance("Microsoft.DSC.Debug/Echo", number, &[("output", &text_of(number))])))
}

/// Returns a document of as many instances, each but the first depending on another one.
pub(crate) fn dependent_echoes(count: u32, other: fn(u32) -> u32) -> String {
    let echo = |number| instance("Microsoft.DSC.Debug/Echo", number, &[("output", &text_of(number))]);
    let needs = |number| format!("  dependsOn: [\"Microsoft.DSC.Debug/Echo:instance {}\"]\n", other(number));
    document((0..count).map(|number| echo(number) + &if number > 0 { needs(number) } else { String::new() }))
}

/// Returns a document of as many instances of a resource that is a program.
pub(crate) fn echo_commands(count: u32) -> String {
    document((0..count).map(|number| instance(ECHO_COMMAND, number, &[("output", &text_of(number))])))
}

/// Puts a resource that `stead new` made where resources are found, and once more as one whose program does not stay.
pub(crate) fn note_resources(made: &Path, into: &Path, resident: &str, once: &str) -> io::Result<()> {
    for file in ["note.py", "stead_resource.py"] {
        fs::copy(made.join(file), into.join(file))?;
    }
    let manifest = fs::read_to_string(made.join("note.dsc.resource.json"))?;
    let stays = |line: &&str| line.contains("\"resident\"");
    let each: Vec<&str> = manifest.lines().filter(|line| !stays(line)).collect();
    fs::write(into.join("note.dsc.resource.json"), &manifest)?;
    fs::write(into.join("once.dsc.resource.json"), each.join("\n").replace(resident, once))
}

/// A document of notes, each of which is there.
pub(crate) fn notes(type_name: &str, folder: &Path, count: u32) -> String {
    document((0..count).map(|number| {
        let path = folder.join(number.to_string()).display().to_string();
        instance(type_name, number, &[("path", &path), ("text", &text_of(number))])
    }))
}

/// Writes the notes, and returns the requests that test them, one a line.
pub(crate) fn note_requests(folder: &Path, count: u32) -> io::Result<String> {
    fs::create_dir_all(folder)?;
    let mut requests =
        String::from("{\"jsonrpc\": \"2.0\", \"id\": 0, \"method\": \"initialize\", \"params\": {\"protocol\": 1}}\n");
    for number in 0..count {
        let path = folder.join(number.to_string());
        fs::write(&path, text_of(number))?;
        let (path, text, id) = (path.display(), text_of(number), number + 1);
        writeln!(
            requests,
            "{{\"jsonrpc\": \"2.0\", \"id\": {id}, \"method\": \"test\", \"params\": {{\"properties\": {{\"path\": \"{path}\", \"text\": \"{text}\"}}}}}}"
        )
        .map_err(io::Error::other)?;
    }
    Ok(requests)
}

/// A document that manages files `f0`, `f1`, ... of a folder.
pub(crate) fn files(folder: &Path, count: u32) -> String {
    document((0..count).map(|number| {
        let path = folder.join(format!("f{number}")).display().to_string();
        let content = text_of(number) + "\\n";
        instance("Stead/File", number, &[("path", &path), ("content", &content), ("mode", "0644")])
    }))
}

/// Returns the same document in JSON, as programs write it.
pub(crate) fn files_in_json(folder: &Path, count: u32) -> String {
    let instance = |number| {
        let path = folder.join(format!("f{number}")).display().to_string();
        let content = text_of(number) + "\\n";
        format!(
            r#"{{"name":"n{number}","type":"Stead/File","properties":{{"path":"{path}","content":"{content}","mode":"0644"}}}}"#
        )
    };
    let instances: Vec<String> = (0..count).map(instance).collect();
    format!(r#"{{"resources":[{}]}}"#, instances.join(",\n"))
}

/// The list of the same files for the floor.
pub(crate) fn file_list(folder: &Path, count: u32) -> String {
    let line = |number| format!("644\t{}\t{}\n", folder.join(format!("f{number}")).display(), text_of(number));
    (0..count).map(line).collect()
}

/// A document that manages every second line of a file of twice as many.
pub(crate) fn lines(file: &Path, count: u32) -> String {
    let path = file.display().to_string();
    document(
        (0..count).map(|number| instance("Stead/Line", number, &[("path", &path), ("line", &line_of(2 * number))])),
    )
}

pub(crate) fn line_file(count: u32) -> String {
    (0..2 * count).map(|number| line_of(number) + "\n").collect()
}

/// A resource of the modules that [`modules`] writes.
pub(crate) const MODULE_RESOURCE: &str = "Bench0000/Setting0000";

/// A document with as many instances of [`MODULE_RESOURCE`] in their state.
pub(crate) fn settings(count: u32) -> String {
    document((0..count).map(setting))
}

/// The same ones, each with a credential.
pub(crate) fn settings_with_credentials(count: u32) -> String {
    let parameter =
        "parameters:\n  as:\n    type: secureObject\n    defaultValue: {username: bench, password: s3cret-of-bench}\n";
    let credential = "    Credential: \"[parameters('as')]\"\n";
    parameter.to_owned() + &document((0..count).map(|number| setting(number) + credential))
}

fn setting(number: u32) -> String {
    instance(MODULE_RESOURCE, number, &[("Name", &format!("n{number}")), ("Ensure", "Present")])
}

/// The script that does what [`settings`] asks for and nothing else, for a PowerShell that nothing was loaded into.
pub(crate) fn settings_script(manifest: &Path, count: u32) -> String {
    format!(
        "Import-Module '{}'; $type = & (Get-Module Bench0000) {{ [Setting0000] }}; \
         foreach ($number in 1..{count}) {{ $one = $type::new(); $one.Name = \"n$number\"; $one.Ensure = 'Present'; \
         if (-not $one.Test()) {{ exit 1 }} }}",
        manifest.display()
    )
}

/// Lists of what [`modules`] wrote, a path each line.
#[derive(Default)]
pub(crate) struct ModuleLists {
    pub(crate) files: String,
    pub(crate) folders: String,
}

/// Writes as many modules of PowerShell, each a manifest and a script with a class.
pub(crate) fn modules(folder: &Path, count: u32) -> io::Result<ModuleLists> {
    let mut lists = ModuleLists { folders: format!("{}\n", folder.display()), ..ModuleLists::default() };
    for number in 0..count {
        let name = format!("Bench{number:04}");
        let module = folder.join(&name);
        fs::create_dir_all(&module)?;
        let _ = writeln!(lists.folders, "{}", module.display());
        let manifest = format!(
            "@{{\n    RootModule = '{name}.psm1'\n    ModuleVersion = '1.2.0'\n    GUID = '00000000-0000-0000-0000-00000000{number:04}'\n    \
             Author = 'Bench'\n    Description = 'Module {number}'\n    DscResourcesToExport = @('Setting{number:04}')\n}}\n"
        );
        for (extension, text) in [("psd1", manifest), ("psm1", class(number))] {
            let file = module.join(format!("{name}.{extension}"));
            fs::write(&file, text)?;
            let _ = writeln!(lists.files, "{}", file.display());
        }
    }
    Ok(lists)
}

fn class(number: u32) -> String {
    let mut properties = String::new();
    for index in 0..8 {
        let _ = writeln!(properties, "    [DscProperty()] [string] $Value{index}");
    }
    format!(
        "enum Ensure{number:04} {{ Absent; Present }}\n\n[DscResource()]\nclass Setting{number:04} {{\n    \
         [DscProperty(Key)] [string] $Name\n    [DscProperty()] [Ensure{number:04}] $Ensure = 'Present'\n    [DscProperty()] [pscredential] $Credential\n{properties}\n    \
         [Setting{number:04}] Get() {{\n        $found = [Setting{number:04}]@{{ Name = $this.Name }}\n        \
         if (Test-Path -LiteralPath \"/nowhere/$($this.Name)\") {{ $found.Ensure = 'Present' }}\n        return $found\n    }}\n    \
         [bool] Test() {{ return $this.Get().Ensure -eq $this.Ensure }}\n    [void] Set() {{ Write-Verbose \"sets $($this.Name)\" }}\n}}\n"
    )
}

fn text_of(number: u32) -> String {
    format!("This is what is to be in number {number:06}.")
}

fn line_of(number: u32) -> String {
    format!("setting_{number:04} = value {number}")
}

fn document(instances: impl Iterator<Item = String>) -> String {
    let head = "$schema: https://aka.ms/dsc/schemas/v3/bundled/config/document.json\nresources:\n";
    head.to_owned() + &instances.collect::<String>()
}

fn instance(of_type: &str, number: u32, properties: &[(&str, &str)]) -> String {
    let mut text = format!("- name: instance {number}\n  type: {of_type}\n  properties:\n");
    for (name, value) in properties {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "    {name}: \"{value}\"");
    }
    text
}
