//! The files that PowerShell loads for a resource: those in the folder of its module, and what those name elsewhere.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use stead_powershell_reader::class::File;
use stead_powershell_reader::manifest::{self, Context, Value};
use stead_powershell_reader::script::UsingKind;
use stead_powershell_reader::text::Text;
use stead_system::fs::{Identity, OpenError, Trust, TrustedDirectory, TrustedFile, judge};
use stead_system::process::Environment;

/// The members of a manifest that name what is loaded with the module.
const MEMBERS: [&str; 8] = [
    "RootModule",
    "ModuleToProcess",
    "NestedModules",
    "ScriptsToProcess",
    "RequiredModules",
    "RequiredAssemblies",
    "TypesToProcess",
    "FormatsToProcess",
];

/// The endings of files that a name without one can mean, and of those in a folder of that name.
const EXTENSIONS: [&str; 4] = ["psd1", "psm1", "cdxml", "dll"];

/// How far names are followed from file to file.
const DEEPEST: usize = 16;

/// As much of a file is read for the names in it.
const LARGEST: u64 = 4 << 20;

/// A resource, and where the files lie that are loaded for it.
pub(crate) struct Loaded {
    /// The folder of the module: scripts load files of it that nothing but running them shows.
    pub(crate) folder: PathBuf,
    /// The file that is imported.
    pub(crate) entry: PathBuf,
    /// Files besides.
    pub(crate) files: BTreeSet<PathBuf>,
    /// Where modules are looked for that are named.
    pub(crate) directories: Vec<PathBuf>,
    pub(crate) environment: Environment,
    pub(crate) trust: Trust,
    /// The files elsewhere, and the stamp of all when those were found.
    pub(crate) known: Mutex<Option<(Arc<Elsewhere>, String)>>,
}

/// The files and folders that a module names outside of its own.
#[derive(Default)]
pub(crate) struct Elsewhere {
    pub(crate) files: BTreeSet<PathBuf>,
    folders: BTreeSet<PathBuf>,
}

impl Loaded {
    /// Something that changes whenever one of the files does, or one below the folders of modules that are named. Fails where one of
    /// them is not trusted any more, or where others could put something that is named.
    ///
    /// Caveats: it goes by manifests and `using`. What a script loads from elsewhere while it runs is not known.
    pub(crate) fn stamp(&self) -> Result<String, OpenError> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((elsewhere, stamp)) = &*known
            && self.stamp_of(elsewhere)? == *stamp
        {
            return Ok(stamp.clone());
        }
        let elsewhere = Arc::new(self.find());
        let stamp = self.stamp_of(&elsewhere)?;
        *known = Some((elsewhere, stamp.clone()));
        Ok(stamp)
    }

    /// The files outside of the folder, as of the last stamp.
    pub(crate) fn elsewhere(&self) -> Arc<Elsewhere> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.as_ref().map(|(elsewhere, _)| Arc::clone(elsewhere)).unwrap_or_default()
    }

    fn stamp_of(&self, elsewhere: &Elsewhere) -> Result<String, OpenError> {
        let mut hasher = DefaultHasher::new();
        for folder in std::iter::once(&self.folder).chain(&elsewhere.folders) {
            let directory = TrustedDirectory::open(folder, self.trust)?;
            stamp_below(&directory, &mut BTreeSet::new(), &mut hasher)?;
        }
        for file in &elsewhere.files {
            judge(file, self.trust)?;
            stamp_file(TrustedFile::open(file, self.trust), &mut hasher)?;
        }
        Ok(format!("{:016x}", hasher.finish()))
    }

    fn find(&self) -> Elsewhere {
        let mut search = Search { loaded: self, seen: BTreeSet::new(), found: Elsewhere::default() };
        for file in std::iter::once(&self.entry).chain(&self.files) {
            search.visit(file, DEEPEST);
        }
        search.found
    }

    /// Returns whether a file is in the folder of the module, whatever is a link there.
    fn is_own(&self, path: &Path) -> bool {
        path.starts_with(&self.folder) && !path.components().any(|component| component == Component::ParentDir)
    }
}

struct Search<'a> {
    loaded: &'a Loaded,
    seen: BTreeSet<PathBuf>,
    found: Elsewhere,
}

impl Search<'_> {
    /// Takes up a file, and what it names.
    fn visit(&mut self, file: &Path, depth: usize) {
        if depth == 0 || !self.seen.insert(file.to_owned()) {
            return;
        }
        if !self.loaded.is_own(file) {
            self.found.files.insert(file.to_owned());
        }
        let Some(folder) = file.parent() else { return };
        for name in self.names(file) {
            match self.meant(folder, &name) {
                Some(path) if path.is_dir() => _ = self.found.folders.insert(path),
                Some(path) => self.visit(&path, depth - 1),
                None => self.module(&name, depth),
            }
        }
    }

    /// The names of modules and files in a manifest or a script.
    fn names(&self, file: &Path) -> Vec<String> {
        let extension = file.extension().map(|extension| extension.to_string_lossy().to_lowercase());
        let read = || {
            let mut bytes = Vec::new();
            let opened = TrustedFile::open(file, self.loaded.trust).and_then(|file| file.read()).ok()?;
            opened.take(LARGEST).read_to_end(&mut bytes).ok().map(|_| bytes)
        };
        match extension.as_deref() {
            Some("psd1") => read().map(|bytes| self.named_by_manifest(file, &bytes)).unwrap_or_default(),
            Some("psm1" | "ps1") => read().map(|bytes| named_by_script(file, &bytes)).unwrap_or_default(),
            _ => Vec::new(),
        }
    }

    fn named_by_manifest(&self, file: &Path, bytes: &[u8]) -> Vec<String> {
        let folder = file.parent().unwrap_or(Path::new("/")).to_string_lossy();
        let environment = |name: &str| Some(self.loaded.environment.get(name)?.to_str()?.to_owned());
        let context = Context { folder: &folder, environment: &environment, variables: None };
        let Ok(table) = manifest::read(Text::decode(bytes).as_str(), &context) else { return Vec::new() };
        let elements = MEMBERS.iter().filter_map(|member| table.get(member)).flat_map(|value| value.clone().elements());
        let name = |value: Value| match value {
            Value::Table(_) => value.get("ModuleName").map(Value::to_text),
            other => Some(other.to_text()),
        };
        elements.filter_map(name).filter(|name| !name.is_empty()).collect()
    }

    /// The file that a name means in a folder, or the folder; `None` for the name of a module that is looked for.
    fn meant(&self, folder: &Path, name: &str) -> Option<PathBuf> {
        let name = name.replace('\\', "/");
        let path = folder.join(name.strip_prefix("./").unwrap_or(&name));
        let last = path.file_name()?.to_string_lossy().into_owned();
        let beside = EXTENSIONS.iter().map(|extension| path.with_file_name(format!("{last}.{extension}")));
        let within = EXTENSIONS.iter().map(|extension| path.join(format!("{last}.{extension}")));
        let candidates = std::iter::once(path.clone()).chain(beside).chain(within);
        let found = candidates.into_iter().find(|candidate| candidate.is_file());
        // What is not there yet could be put there.
        found.or_else(|| (name.contains('/') && !self.loaded.is_own(&path)).then_some(path))
    }

    /// Takes up a module by its name: the first one that PowerShell would find.
    fn module(&mut self, name: &str, depth: usize) {
        let usable = |folder: &&PathBuf| TrustedDirectory::open(folder, self.loaded.trust).is_ok();
        let folder =
            self.loaded.directories.iter().filter(usable).map(|folder| folder.join(name)).find(|path| path.is_dir());
        let Some(folder) = folder.filter(|folder| !self.loaded.is_own(folder)) else { return };
        let versions = std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let folders: Vec<PathBuf> = std::iter::once(folder.clone()).chain(versions).collect();
        self.found.folders.insert(folder);
        for file in
            folders.iter().flat_map(|folder| EXTENSIONS.map(|extension| folder.join(format!("{name}.{extension}"))))
        {
            if file.is_file() {
                self.visit(&file, depth - 1);
            }
        }
    }
}

fn named_by_script(file: &Path, bytes: &[u8]) -> Vec<String> {
    let File { text, script, .. } = File::read(Arc::new(file.to_owned()), bytes);
    let usings = script.usings.into_iter().filter(|using| using.kind != UsingKind::Namespace).map(|using| using.name);
    usings.chain(required(text.as_str())).map(|name| module_name(&name)).collect()
}

/// The modules that `#requires -Modules` names, as they are written. It may stand anywhere in a script, and goes to the end of the line.
///
/// Caveats: one within a text or another comment counts, although PowerShell does not load what it names.
fn required(text: &str) -> Vec<String> {
    const BEGIN: &str = "#requires";
    let mut names = Vec::new();
    for line in text.split(['\n', '\r']) {
        let Some(at) = line.to_ascii_lowercase().find(BEGIN) else { continue };
        let mut is_module = false;
        for word in words(line.get(at + BEGIN.len()..).unwrap_or_default()) {
            match word.strip_prefix(['-', '\u{2013}', '\u{2014}', '\u{2015}']) {
                Some(parameter) => {
                    let (name, value) = parameter.split_once(':').unwrap_or((parameter, ""));
                    is_module = "modules".starts_with(&name.to_lowercase());
                    names.extend(Some(value.to_owned()).filter(|value| is_module && !value.is_empty()));
                }
                None if is_module => names.push(word),
                None => {}
            }
        }
    }
    names
}

/// The words of a command: names without their quotation marks, parameters, and tables as they are written.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word) = (Vec::new(), String::new());
    let (mut quoted, mut depth) = (None, 0_usize);
    for character in text.chars() {
        let is_quote = matches!(character, '\'' | '"') && quoted.is_none_or(|open| open == character);
        match character {
            _ if is_quote => quoted = if quoted.is_some() { None } else { Some(character) },
            '{' if quoted.is_none() => depth += 1,
            '}' if quoted.is_none() => depth = depth.saturating_sub(1),
            _ => {}
        }
        let separates = character.is_whitespace() || matches!(character, ',' | '(' | ')');
        if separates && quoted.is_none() && depth == 0 {
            words.push(std::mem::take(&mut word));
        } else if !is_quote || depth > 0 {
            word.push(character);
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty() && word != "@");
    words
}

/// The name in what follows `using module`: the text of a table has it as its `ModuleName`.
fn module_name(text: &str) -> String {
    let context = Context { folder: "", environment: &|_| None, variables: None };
    let table = if text.starts_with("@{") { manifest::read(text, &context).ok() } else { None };
    table.and_then(|table| Some(table.get("ModuleName")?.to_text())).unwrap_or_else(|| text.to_owned())
}

/// Fails where something below a directory is not trusted.
pub(crate) fn judge_below(directory: &TrustedDirectory) -> Result<(), OpenError> {
    stamp_below(directory, &mut BTreeSet::new(), &mut DefaultHasher::new())
}

/// The stamps of everything below a directory. One that a link leads back to was seen before.
fn stamp_below(
    directory: &TrustedDirectory,
    seen: &mut BTreeSet<(u64, u64)>,
    hasher: &mut DefaultHasher,
) -> Result<(), OpenError> {
    if !seen.insert(Identity::of(directory.metadata()).inode()) {
        return Ok(());
    }
    let names = match directory.names() {
        // PowerShell cannot look for a file in it either.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => BTreeSet::new(),
        names => names.map_err(|source| OpenError::System { path: directory.path().to_owned(), source })?,
    };
    for name in names {
        name.hash(hasher);
        match directory.directory(&name) {
            Ok(inner) => stamp_below(&inner, seen, hasher)?,
            Err(OpenError::System { source, .. }) if source.kind() == io::ErrorKind::NotADirectory => {
                stamp_file(directory.file(&name), hasher)?;
            }
            Err(error) => stamp_file(Err(error), hasher)?,
        }
    }
    Ok(())
}

fn stamp_file(file: Result<TrustedFile, OpenError>, hasher: &mut DefaultHasher) -> Result<(), OpenError> {
    match file {
        Ok(opened) => Identity::of(opened.metadata()).hash(hasher),
        Err(error) if error.is_not_found() => "-".hash(hasher),
        Err(error) => return Err(error),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use stead_system::fs::User;

    use super::*;

    fn loaded(folder: &Path) -> Loaded {
        Loaded {
            folder: folder.to_owned(),
            entry: folder.join("M.psd1"),
            files: BTreeSet::new(),
            directories: Vec::new(),
            environment: Environment::default(),
            trust: User::current().trust(),
            known: Mutex::default(),
        }
    }

    #[test]
    fn whatever_lies_in_the_folder_counts() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("helpers")).unwrap();
        symlink("..", path("helpers/up")).unwrap();
        symlink("nowhere", path("helpers/broken")).unwrap();
        let now = || loaded(folder.path()).stamp().map_err(|error| error.to_string());
        let mut before = now().unwrap();
        for text in ["one", "other"] {
            fs::write(path("helpers/a.ps1"), text).unwrap();
            assert_ne!(now().unwrap(), std::mem::replace(&mut before, now().unwrap()));
        }
        assert_eq!(now().unwrap(), before);
        fs::set_permissions(path("helpers/a.ps1"), Permissions::from_mode(0o666)).unwrap();
        match User::current().trust() {
            Trust::Root | Trust::RootAnywhere => assert!(now().unwrap_err().contains("can be written by everyone")),
            Trust::Everyone => assert_ne!(now().unwrap(), before),
        }
    }

    /// Returns the stamps of a module that names something, before and after a change of what it names.
    fn stamps(member: &str, name: &str, changed: &str) -> (String, String) {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        for folder in ["m/M", "m/Other/1.0", "elsewhere"] {
            fs::create_dir_all(path(folder)).unwrap();
        }
        fs::write(
            path("m/Other/1.0/Other.psd1"),
            "@{ ModuleVersion = '1.0'; NestedModules = '../../../elsewhere/N.psm1' }",
        )
        .unwrap();
        fs::write(path("m/Other/1.0/help.ps1"), "").unwrap();
        fs::write(path("elsewhere/N.psm1"), "").unwrap();
        fs::write(path("m/M/M.psm1"), if member == "using" { name } else { "" }).unwrap();
        let stated = if member == "using" { String::new() } else { format!("; {member} = {name}") };
        fs::write(path("m/M/M.psd1"), format!("@{{ ModuleVersion = '1.0'; RootModule = 'M.psm1'{stated} }}")).unwrap();
        let loaded = Loaded { directories: vec![path("m")], ..loaded(&path("m/M")) };
        let first = loaded.stamp().unwrap();
        assert_eq!(loaded.stamp().unwrap(), first, "{member}");
        fs::write(path(changed), "# changed").unwrap();
        (first, loaded.stamp().unwrap())
    }

    #[test]
    fn what_is_named_elsewhere_counts() {
        let nested = "elsewhere/N.psm1";
        for (member, name, changed) in [
            ("NestedModules", "'../../elsewhere/N.psm1'", nested),
            ("NestedModules", "@(@{ ModuleName = '..\\..\\elsewhere\\N'; ModuleVersion = '1.0' })", nested),
            ("ScriptsToProcess", "'../../elsewhere/later.ps1'", "elsewhere/later.ps1"),
            ("RequiredModules", "@('Other')", "m/Other/1.0/help.ps1"),
            ("RequiredModules", "@('Other')", nested),
            ("TypesToProcess", "'../../elsewhere/later.ps1xml'", "elsewhere/later.ps1xml"),
            ("using", "using module ../../elsewhere/N.psm1", nested),
            ("using", "#requires -Modules ../../elsewhere/N.psm1", nested),
            ("using", "\n  #Requires -RunAsAdministrator -m:Unknown, '..\\..\\elsewhere\\N.psm1'", nested),
            (
                "using",
                "#requires -Version 5.1 -Modules Unknown,@{ ModuleName = \"Other\"; ModuleVersion = '1.0' }",
                nested,
            ),
            ("using", "using module @{ ModuleName = 'Other'; ModuleVersion = '1.0' }", nested),
        ] {
            let (before, after) = stamps(member, name, changed);
            assert_ne!(before, after, "{member} = {name}: {changed}");
        }
        let (before, after) = stamps("NestedModules", "'Other'", "elsewhere/unnamed.psm1");
        assert_eq!(before, after);
    }
}
