//! Variables that lead to places of others reach no worker of root.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Place;

/// The user whose places are not root's.
const EVE: u32 = 12345;

const VARIABLES: [&str; 7] =
    ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "DOTNET_ROOT", "TMPDIR", "PSModulePath"];

/// Says which variables lead to a trap, which module paths do, and whether a command of it is found.
const LOOK: &str = r"$found = @(foreach ($v in 'HOME','XDG_CONFIG_HOME','XDG_DATA_HOME','XDG_CACHE_HOME','DOTNET_ROOT','TMPDIR','PSModulePath') {
    if ([Environment]::GetEnvironmentVariable($v) -like '*trap*') { $v } })
if (Get-Command Get-Trapped -ErrorAction Ignore) { $found += 'its command' }
if ([IO.Path]::GetTempPath() -like '*trap*') { $found += 'its temporary files' }
$this.Seen = $found -join ' '";

/// Everything by which a PowerShell could be led astray, wherever a variable points to this folder.
fn set_trap(place: &Place, folder: &Path) {
    let module = "function Get-Trapped { 'trapped' }\nExport-ModuleMember -Function Get-Trapped\n";
    let written = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let modules = folder.display();
    let settings = format!(
        r#"{{"PSModulePath":"{modules}","PowerShellPolicies":{{"Transcription":{{"EnableTranscripting":true,"OutputDirectory":"{}"}}}}}}"#,
        place.path("transcripts").display()
    );
    for below in ["", ".local/share/powershell/Modules/", "powershell/Modules/"] {
        written(&format!("{below}Trap/Trap.psm1"), module);
    }
    for below in ["", ".config/"] {
        written(&format!("{below}powershell/powershell.config.json"), &settings);
    }
}

/// The ways in which a place is not root's alone.
fn traps(place: &Place) -> [PathBuf; 4] {
    let traps = ["of-another-trap", "link-trap", "writable-trap", "missing-trap"].map(|name| place.path(name));
    let [of_another, link, writable, missing] = &traps;
    for folder in [of_another, writable] {
        set_trap(place, folder);
    }
    chown(of_another, Some(EVE), None).unwrap();
    symlink(of_another, link).unwrap();
    fs::set_permissions(writable, Permissions::from_mode(0o775)).unwrap();
    // Whoever comes first creates it.
    let shared = place.path("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, Permissions::from_mode(0o1777)).unwrap();
    symlink(shared.join("trap"), missing).unwrap();
    traps
}

#[test]
fn nothing_of_others_reaches_a_worker_of_root() {
    let Some(place) = Place::new("nothing_of_others_reaches_a_worker_of_root") else { return };
    place.class("Look", LOOK);
    let modules = place.path("modules").display().to_string();
    for trap in traps(&place) {
        for variable in VARIABLES {
            let value = trap.display().to_string();
            let value = if variable == "PSModulePath" { format!("{value}:{modules}") } else { value };
            let seen = place.seen("Look/Look", "n", |command| _ = command.env(variable, value));
            assert_eq!(seen, "", "{variable}={}", trap.display());
        }
    }
    // Where a relative one leads depends on where somebody stands.
    set_trap(&place, &place.path("relative-trap"));
    for variable in VARIABLES {
        let seen = place.seen("Look/Look", "n", |command| {
            let more = if variable == "PSModulePath" { format!(":{modules}") } else { String::new() };
            command.env(variable, format!("relative-trap{more}"));
        });
        assert_eq!(seen, "", "{variable}=relative-trap");
    }
    assert!(!place.path("transcripts").exists());
}

/// Traps in the same places are found while those are root's alone.
#[test]
fn what_is_roots_reaches_its_workers() {
    let Some(place) = Place::new("what_is_roots_reaches_its_workers") else { return };
    place.class("Look", LOOK);
    let own = place.path("trap");
    set_trap(&place, &own);
    let modules = place.path("modules").display().to_string();
    let seen = |variable: &str, value: &str| place.seen("Look/Look", "n", |command| _ = command.env(variable, value));
    let value = own.display().to_string();
    assert_eq!(seen("PSModulePath", &format!("{value}:{modules}")), "PSModulePath its command");
    assert_eq!(seen("DOTNET_ROOT", &value), "DOTNET_ROOT");
    // Programs that a resource starts have their settings; PowerShell itself has none of a user.
    assert_eq!(seen("XDG_CONFIG_HOME", &value), "XDG_CONFIG_HOME");
    assert!(!place.path("transcripts").exists());
}

/// A runspace that a resource opens has a path of modules of its own making.
const RUNSPACE: &str = r"$job = Start-ThreadJob { if (Get-Command Get-Trapped -ErrorAction Ignore) { 'by a job' } }
$space = [runspacefactory]::CreateRunspace()
$space.Open()
$shell = [powershell]::Create()
$shell.Runspace = $space
$found = $shell.AddScript('if (Get-Command Get-Trapped -ErrorAction Ignore) { ''by a runspace'' }').Invoke()
$this.Seen = @(@(Receive-Job -Wait $job) + @($found) | ForEach-Object { [string]$_ }) -join ' '";

/// A home of root's in which the directory of modules is another's: nothing leads a runspace there either.
#[test]
fn runspaces_of_resources_find_nothing_of_others() {
    let Some(place) = Place::new("runspaces_of_resources_find_nothing_of_others") else { return };
    place.class("Space", RUNSPACE);
    let home = place.path("a-home");
    set_trap(&place, &home);
    let below = home.join(".local/share/powershell/Modules");
    let modules = place.path("modules").display().to_string();
    let seen =
        |path: &str| place.seen("Space/Space", "n", |command| _ = command.env("HOME", &home).env("PSModulePath", path));
    assert_eq!(seen(&format!("{modules}:{}", below.display())), "by a job by a runspace", "while it is root's");
    chown(&below, Some(EVE), None).unwrap();
    assert_eq!(seen(&modules), "");
    assert_eq!(seen(&format!("{modules}:{}", below.display())), "");
}

/// The directory of modules for all users is in every path.
#[test]
fn root_uses_no_powershell_with_modules_of_others_for_all_users() {
    let Some(place) = Place::new("root_uses_no_powershell_with_modules_of_others_for_all_users") else { return };
    place.class("Space", RUNSPACE);
    let said = |change: &str| {
        let command = place.command(&["invoke", "Space/Space", "--method", "get", "--property", "Name=n"]);
        let script = format!(
            "mount -t tmpfs -o mode=755 none /usr/local/share && M=/usr/local/share/powershell/Modules && mkdir -p $M/Trap && \
             echo 'function Get-Trapped {{ 1 }}' >$M/Trap/Trap.psm1 && {change} && exec \"$@\""
        );
        let mut within = Command::new("unshare");
        within.args(["-m", "sh", "-c", &script, "sh"]).arg(command.get_program()).args(command.get_args()).env_clear();
        within.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?)))).stdin(Stdio::null());
        let output = within.current_dir(place.path("")).output().unwrap();
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    let found = said("true");
    assert!(found.contains("by a job by a runspace"), "{found}");
    for change in ["", "/Trap", "/Trap/Trap.psm1"] {
        let refused = said(&format!("chown {EVE} $M{change}"));
        assert!(refused.contains("is owned by user 12345") && !refused.contains("by a "), "{change}: {refused}");
    }
    let refused = said("rm -r /usr/local/share/powershell && chmod 777 /usr/local/share");
    assert!(refused.contains("can be written by everyone"), "{refused}");
}

/// PowerShell would load it by the name of a command.
#[test]
fn a_module_of_others_beside_those_of_root_is_not_found() {
    let Some(place) = Place::new("a_module_of_others_beside_those_of_root_is_not_found") else { return };
    place.class("Look", r#"$this.Seen = "$(Get-Command Get-Trapped -ErrorAction Ignore)""#);
    let trap = place.write("modules/Trap/Trap.psm1", "function Get-Trapped { 'trapped' }\n");
    let seen = || place.seen("Look/Look", "n", |_| ());
    assert_eq!(seen(), "Get-Trapped");
    chown(&trap, Some(EVE), None).unwrap();
    assert_eq!(seen(), "");
    chown(&trap, Some(0), None).unwrap();
    chown(trap.parent().unwrap(), Some(EVE), None).unwrap();
    assert_eq!(seen(), "");
    let output = place.command(&["invoke", "Look/Look", "--method", "get", "--property", "Name=n"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("/Trap' is owned by user 12345"), "{said}");
    let instances =
        ["a", "b"].map(|name| format!("- {{name: {name}, type: Look/Look, properties: {{Name: {name}}}}}\n"));
    place.write("two.yaml", &format!("resources:\n{}", instances.concat()));
    let output = place.command(&["--isolated", "check", "two.yaml"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(said.matches("are not found by name").count(), 1, "once for all processes: {said}");
}

/// Files outside of its folder that a module names are judged like those in it.
#[test]
fn root_loads_nothing_of_others_that_a_module_names() {
    let Some(place) = Place::new("root_loads_nothing_of_others_that_a_module_names") else { return };
    let traps = traps(&place);
    let own = place.path("own");
    fs::create_dir(&own).unwrap();
    let mark = place.path("mark");
    let code = format!("Set-Content -LiteralPath '{}' trapped\n", mark.display());
    for folder in traps.iter().filter(|trap| trap.is_dir() && !trap.is_symlink()).chain([&own]) {
        for name in ["code.ps1", "code.psm1"] {
            fs::write(folder.join(name), &code).unwrap();
        }
    }
    for folder in traps.iter().chain([&own]) {
        for member in NAMING {
            let path = if member.contains("Modules =") {
                Path::new("../..").join(folder.file_name().unwrap())
            } else {
                folder.clone()
            };
            let member = member.replace("TRAP", &path.display().to_string());
            let (before, stated) = if member.starts_with(['u', '#']) { (&*member, "") } else { ("", &*member) };
            place.module("Named", "modules/Named", "1.0.0", before, "$this.Seen = 'ran'");
            let manifest = fs::read_to_string(place.path("modules/Named/Named.psd1")).unwrap();
            place.write("modules/Named/Named.psd1", &manifest.replace(" }", &format!("; {stated} }}")));
            let output =
                place.command(&["invoke", "Named/Named", "--method", "get", "--property", "Name=n"]).output().unwrap();
            if *folder == own {
                assert!(mark.exists() || member.contains("/later."), "{member} is code: {output:?}");
                let _ = fs::remove_file(&mark);
            } else {
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                let refused = ["owned by user", "can be written by", "there is no resource"];
                let refused = refused.iter().any(|reason| said.contains(reason));
                assert!(!output.status.success() && refused && !mark.exists(), "{member}: {output:?}");
            }
        }
    }
}

/// How a module names what is outside of its folder; what is not there yet could be put there.
const NAMING: [&str; 8] = [
    "NestedModules = 'TRAP/code.psm1'",
    "RequiredModules = 'TRAP/code.psm1'",
    "ScriptsToProcess = 'TRAP/code.ps1'",
    "TypesToProcess = 'TRAP/later.ps1xml'",
    "RequiredAssemblies = 'TRAP/later.dll'",
    "using module TRAP/code.psm1",
    "#requires -Modules TRAP/code.psm1",
    "#Requires -Version 7.0 -mod 'TRAP/code.psm1'",
];

/// Root's are nobody else's, and they are gone afterwards.
#[test]
fn temporary_files_are_in_a_folder_of_the_worker() {
    let Some(place) = Place::new("temporary_files_are_in_a_folder_of_the_worker") else { return };
    place.class(
        "Temporary",
        "$path = [IO.Path]::GetTempPath(); Set-Content (Join-Path $path kept) x; \
         $this.Seen = '{0} {1}' -f $path, [IO.File]::GetUnixFileMode($path)",
    );
    let folders: Vec<String> = (0..2).map(|_| place.seen("Temporary/Temporary", "n", |_| ())).collect();
    for seen in &folders {
        let (path, mode) = seen.split_once(' ').unwrap();
        assert_eq!(mode, "UserExecute, UserWrite, UserRead");
        assert!(!Path::new(path).parent().unwrap().exists(), "{path}");
    }
    assert_ne!(folders[0], folders[1]);
}
