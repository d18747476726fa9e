//! Modules that put types into a process which all code in it sees: a second version of the module, or another one with a type of
//! the same name, would get those. A class of PowerShell is not one of them: it belongs to its module.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use stead_powershell_reader::manifest::same;
use stead_powershell_reader::text::Text;
use stead_system::fs::{Identity, OpenError, Trust, TrustedDirectory, TrustedFile};

/// As much of a file is looked at.
const LARGEST: u64 = 4 << 20;

/// Returns whether there are any in the folder of a module or in files of it elsewhere. Of folders of other resources than the
/// `own` one, which are not loaded with it, nothing is looked at.
///
/// Caveats: it goes by names and words. A module that hides what it does is not recognized.
pub(crate) fn are_in(folder: &Path, own: Option<&Path>, files: &BTreeSet<PathBuf>, trust: Trust) -> bool {
    let elsewhere = |file: &PathBuf| is_one(file, TrustedFile::open(file, trust));
    let below = TrustedDirectory::open(folder, trust).is_ok_and(|folder| are_below(&folder, own, &mut BTreeSet::new()));
    below || files.iter().any(elsewhere)
}

fn are_below(folder: &TrustedDirectory, own: Option<&Path>, seen: &mut BTreeSet<(u64, u64)>) -> bool {
    if !seen.insert(Identity::of(folder.metadata()).inode()) {
        return false;
    }
    let is_of_resources =
        folder.path().file_name().and_then(OsStr::to_str).is_some_and(|name| same(name, "DscResources"));
    folder.names().unwrap_or_default().iter().any(|name| {
        let path = folder.path().join(name);
        match folder.directory(name) {
            Ok(inner) if is_of_resources && own.is_some_and(|own| !own.starts_with(inner.path())) => false,
            Ok(inner) => are_below(&inner, own, seen),
            Err(_) => is_one(&path, folder.file(name)),
        }
    })
}

fn is_one(path: &Path, file: Result<TrustedFile, OpenError>) -> bool {
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    let has: fn(&str) -> bool = match extension.as_deref() {
        Some("dll") => return file.is_ok(),
        Some("ps1" | "psm1") => adds_types,
        Some("psd1") => needs_assemblies,
        _ => return false,
    };
    let mut bytes = Vec::new();
    let read = file.and_then(|file| file.read()).map(|file| file.take(LARGEST).read_to_end(&mut bytes));
    matches!(read, Ok(Ok(_))) && has(&Text::decode(&bytes).as_str().to_lowercase())
}

/// The lines of a script in small letters, but for those that are comments.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split(['\n', '\r']).map(str::trim_start).filter(|line| !line.starts_with('#'))
}

/// How scripts load assemblies, or make them, by methods of .NET.
const LOADING: [&str; 6] =
    ["using assembly", "assemblyloadcontext", "loadfrom", "loadfile", "currentdomain.load", "definedynamicassembly"];

/// Returns whether a script adds types.
fn adds_types(script: &str) -> bool {
    let adds = |line: &str| line.split("add-type").skip(1).any(|rest| !names_assembly_of_dotnet(rest));
    let loads = |line: &str| {
        LOADING.iter().any(|word| line.contains(word))
            || line.split_once("assembly]").is_some_and(|(_, rest)| rest.contains("load"))
            || line.contains("import-module") && line.contains(".dll")
    };
    lines(script).any(|line| adds(line) || loads(line))
}

/// Returns whether an `Add-Type`, by what follows it, only names assemblies: those of .NET, which are the same for everybody. It may
/// name a file as well, or what the script computes.
fn names_assembly_of_dotnet(rest: &str) -> bool {
    let own = rest.split([';', '|', '}']).next().unwrap_or_default();
    own.trim_start().strip_prefix("-assemblyname").is_some_and(|value| {
        let value = value.replace("@(", "");
        !value.contains(['/', '\\', '$', '(', '{', '&', '`']) && !value.contains(".dll") && !value.contains(" -")
    })
}

/// Returns whether a manifest names assemblies.
fn needs_assemblies(manifest: &str) -> bool {
    let mut values = lines(manifest).filter_map(|line| line.split_once("requiredassemblies"));
    values.any(|(_, rest)| {
        let value = rest.trim_start_matches(['\'', '"', ' ', '\t', '=']).trim_end_matches([' ', '\t', ';']);
        !matches!(value, "@()" | "$null" | "''" | "\"\"")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_adds_types_is_not_what_names_those_of_dotnet() {
        for text in [
            "add-type -typedefinition 'public class h {}'",
            "if ($x) { add-type @p }",
            "using assembly ./x.dll",
            "add-type -assemblyname system.web; add-type -path x",
            "add-type -path x; add-type -assemblyname system.web",
            "add-type -assemblyname $psscriptroot/x.dll",
            "add-type -assemblyname (join-path a b)",
            "[runtime.loader.assemblyloadcontext]::default.loadfromassemblypath($x)",
            "$context.loadfromstream($stream)",
            "[reflection.assembly]::load($bytes)",
            "[reflection.assembly] :: 'loadfile'($x)",
            "[appdomain]::currentdomain.load($bytes)",
            "import-module $psscriptroot/../x.dll",
        ] {
            assert!(adds_types(text), "{text}");
        }
        for text in [
            "# add-type -path x",
            "add-type -assemblyname system.web",
            "add-type -assemblyname @('system.web', \"system.xml\"); if ($x) { add-type -assemblyname system.net.http }",
            "class h { }",
            "get-type",
            "[xml]::load($x)",
        ] {
            assert!(!adds_types(text), "{text}");
        }
        assert!(needs_assemblies("@{ moduleversion='1'\nrequiredassemblies = @('x.dll')\n}"));
        assert!(!needs_assemblies("@{\n# requiredassemblies = @()\n requiredassemblies = @()\n}"));
    }
}
