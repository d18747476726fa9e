//! The words in the files of a module that say what it does to its process and needs of it.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use stead_powershell_reader::manifest::same;
use stead_powershell_reader::text::Text;
use stead_system::fs::{Identity, OpenError, Trust, TrustedDirectory, TrustedFile};

/// As much of a file is looked at.
const LARGEST: u64 = 4 << 20;

/// The findings in the files of a module.
///
/// Caveats: it goes by names and words. A module that hides what it does is not recognized.
#[derive(Default)]
pub(crate) struct Words {
    /// True if the module puts types into the process which all code in it sees: a second version of it, or another module with a
    /// type of the same name, would get those. A class of PowerShell is not one of them: it belongs to its module.
    pub(crate) adds_types: bool,
    /// The variables of the environment that it reads and does not set itself.
    pub(crate) variables: BTreeSet<String>,
}

impl Words {
    /// Looks at the folder of a module and at files of it elsewhere. Of folders of other resources than the `own` one, which are not
    /// loaded with it, nothing is looked at.
    pub(crate) fn of(folder: &Path, own: Option<&Path>, files: &BTreeSet<PathBuf>, trust: Trust) -> Self {
        let mut look = Look::default();
        if let Ok(folder) = TrustedDirectory::open(folder, trust) {
            look.below(&folder, own, &mut BTreeSet::new());
        }
        for file in files {
            look.file(file, TrustedFile::open(file, trust));
        }
        let variables = look.variables.difference();
        Self { adds_types: look.adds_types, variables }
    }
}

/// A look at one file after the other.
#[derive(Default)]
struct Look {
    adds_types: bool,
    variables: Variables,
}

impl Look {
    fn below(&mut self, folder: &TrustedDirectory, own: Option<&Path>, seen: &mut BTreeSet<(u64, u64)>) {
        if !seen.insert(Identity::of(folder.metadata()).inode()) {
            return;
        }
        let is_of_resources =
            folder.path().file_name().and_then(OsStr::to_str).is_some_and(|name| same(name, "DscResources"));
        for name in folder.names().unwrap_or_default() {
            match folder.directory(&name) {
                Ok(inner) if is_of_resources && own.is_some_and(|own| !own.starts_with(inner.path())) => {}
                Ok(inner) => self.below(&inner, own, seen),
                Err(_) => self.file(&folder.path().join(&name), folder.file(&name)),
            }
        }
    }

    fn file(&mut self, path: &Path, file: Result<TrustedFile, OpenError>) {
        let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
        let is_script = match extension.as_deref() {
            Some("dll") => return self.adds_types |= file.is_ok(),
            Some("ps1" | "psm1") => true,
            Some("psd1") => false,
            _ => return,
        };
        let mut bytes = Vec::new();
        let read = file.and_then(|file| file.read()).map(|file| file.take(LARGEST).read_to_end(&mut bytes));
        if !matches!(read, Ok(Ok(_))) {
            return;
        }
        let text = Text::decode(&bytes);
        if is_script {
            self.variables.take(text.as_str());
        }
        let has = if is_script { adds_types } else { needs_assemblies };
        self.adds_types |= has(&text.as_str().to_lowercase());
    }
}

/// The variables of the environment in scripts.
#[derive(Default)]
pub(crate) struct Variables {
    read: BTreeSet<String>,
    set: BTreeSet<String>,
}

/// What stands before the name of one that is read.
const READING: [&str; 3] = ["$env:", "${env:", "getenvironmentvariable("];

impl Variables {
    /// Takes up those in a script.
    pub(crate) fn take(&mut self, script: &str) {
        for line in outside_of_blocks(script).flat_map(lines) {
            let small = line.to_ascii_lowercase();
            for (at, word) in READING.iter().flat_map(|word| small.match_indices(word)) {
                let rest = line.get(at + word.len()..).unwrap_or_default().trim_start_matches([' ', '\'', '"']);
                let end = rest.find(|each: char| !each.is_ascii_alphanumeric() && each != '_').unwrap_or(rest.len());
                let (name, behind) = rest.split_at(end);
                let is_set = behind.trim_start_matches(['}', ' ']).starts_with('=');
                let names = if is_set { &mut self.set } else { &mut self.read };
                names.insert(name.to_owned());
            }
        }
    }

    /// Those that are read and not set.
    pub(crate) fn difference(&self) -> BTreeSet<String> {
        self.read.difference(&self.set).filter(|name| !name.is_empty()).cloned().collect()
    }
}

/// The parts of a script between its block comments. What only looks like the begin of one hides what follows.
fn outside_of_blocks(script: &str) -> impl Iterator<Item = &str> {
    let mut parts = script.split("<#");
    let first = parts.next();
    first.into_iter().chain(parts.filter_map(|part| part.split_once("#>").map(|(_, behind)| behind)))
}

/// The lines of a script, but for those that are comments. Block comments are not left out: a text may only look like the begin of one.
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
    fn variables_that_a_script_reads_and_does_not_set() {
        for (script, expected) in [
            ("Join-Path $env:ROOT_DIR x", "ROOT_DIR"),
            ("\"${Env:ROOT}/x\" + [Environment]::GetEnvironmentVariable( 'OTHER' )", "OTHER ROOT"),
            ("# $env:A\n  $env:B = 1\n$env:C += $env:B", "C"),
            ("$environment:A; $env:; Get-Item Env:D", ""),
            ("<#\n.EXAMPLE\n$env:A = $env:B <# $env:C\n#> $env:D\n<# $env:E #>$env:F\n<# $env:G", "D F"),
            ("if ($env:A -eq 'x') { $env:B=$env:D }", "A D"),
        ] {
            let mut variables = Variables::default();
            variables.take(script);
            assert_eq!(Vec::from_iter(variables.difference()).join(" "), expected, "{script}");
        }
    }

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
