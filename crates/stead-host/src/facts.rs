//! Facts: what expressions ask of the machine.

mod labels;
mod system;

pub use labels::{Label, Labels, Provenance, UnusableLabels, codes};
pub use system::{MachineIdentity, machine_id};

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use stead_core::expr::FactKey;
use stead_core::value::{Object, Value};

use crate::bundle::BundleFiles;
use stead_system::fs::{Status, SystemRoot, User, open_followed};
use stead_system::user;

/// The largest document that can be included. A document is written by users; what is larger is something else.
const LARGEST_DOCUMENT: u64 = 16 * 1024 * 1024;

/// Asks the sources of secrets for one: its name and the vault, where one is named. The answer is the name under which
/// the [`Vault`](crate::vault::Vault) has it.
pub type FindSecret = dyn Fn(&str, Option<&str>) -> Result<String, String> + Send + Sync;

/// The machine as expressions see it. Nothing in it is read from the process behind the caller's back.
pub struct Machine {
    /// The environment variables.
    pub environment: Arc<BTreeMap<String, String>>,
    /// The directory that relative paths of documents start from, `DSC_CONFIG_ROOT`.
    pub root: PathBuf,
    /// The files of the bundle that the document came in, read in place of those of the root.
    pub files: Option<Arc<BundleFiles>>,
    /// The root of the system that is managed, `/` as a rule.
    pub system_root: PathBuf,
    /// The labels that its administrator gave it elsewhere than in the file of the system; they count more than those.
    pub labels: Labels,
    /// True if the program may do everything.
    pub elevated: bool,
    /// Where secrets come from.
    pub find_secret: Arc<FindSecret>,
    now: OnceLock<String>,
    facts: OnceLock<Result<Value, UnusableLabels>>,
}

fn no_secrets() -> Arc<FindSecret> {
    Arc::new(|_, _| Err("No secret extensions found".to_owned()))
}

impl Machine {
    /// The machine that this process runs on, without a source of secrets.
    ///
    /// Variables whose name or value is not Unicode are left out: an expression could not hold them.
    pub fn of_this_process(root: PathBuf) -> Self {
        let unicode =
            std::env::vars_os().filter_map(|(name, value)| name.into_string().ok().zip(value.into_string().ok()));
        Self::new(unicode.collect(), root)
    }

    /// A machine with these variables and this root of documents; everything else is as on this one.
    pub fn new(environment: BTreeMap<String, String>, root: PathBuf) -> Self {
        Self {
            environment: Arc::new(environment),
            root,
            files: None,
            system_root: PathBuf::from("/"),
            labels: Labels::default(),
            elevated: user::is_root(),
            find_secret: no_secrets(),
            now: OnceLock::new(),
            facts: OnceLock::new(),
        }
    }

    /// Returns the same machine for another piece of work, without a source of secrets. It answers anew.
    #[must_use]
    pub fn beside(&self) -> Self {
        Self {
            environment: Arc::clone(&self.environment),
            root: self.root.clone(),
            files: self.files.clone(),
            system_root: self.system_root.clone(),
            labels: self.labels.clone(),
            elevated: self.elevated,
            find_secret: no_secrets(),
            now: OnceLock::new(),
            facts: OnceLock::new(),
        }
    }

    /// Answers what an evaluation asked for. Every question has the same answer as before, as far as that is in our hands:
    /// the time does not go on.
    pub fn fact(&self, key: &FactKey) -> Result<Value, String> {
        match key {
            FactKey::Now => Ok(Value::from(self.now.get_or_init(|| format!("{:.9}", Timestamp::now())).as_str())),
            FactKey::EnvironmentVariable(name) if name == "DSC_CONFIG_ROOT" => path_text(&self.root).map(Value::from),
            FactKey::EnvironmentVariable(name) => Ok(text_or_null(self.environment.get(name).cloned())),
            FactKey::Executable(name) => Ok(text_or_null(self.executable(name))),
            FactKey::Context => Ok(self.context()),
            FactKey::Machine => self.facts().cloned().map_err(ToString::to_string),
            FactKey::SystemRoot => path_text(&self.system_root).map(Value::from),
            FactKey::Secret(name, vault) => (self.find_secret)(name, vault.as_deref()).map(Value::from),
            FactKey::Document(path) => self.document(path).map(Value::from),
        }
    }

    /// Returns the value of `facts()`: an object, the same as long as this lives.
    ///
    /// # Errors
    /// When the labels of the machine cannot be used.
    pub fn facts(&self) -> Result<&Value, &UnusableLabels> {
        let facts = self.facts.get_or_init(|| {
            let root = SystemRoot::below(&self.system_root);
            let labels = Labels::of_system(&root, User::current())?.with(&self.labels);
            Ok(system::facts(&root, &labels))
        });
        facts.as_ref()
    }

    /// The path of a program: itself when it is a path, else the first of that name on `PATH`.
    ///
    /// Empty and relative entries of `PATH` are passed over: what they mean depends on where the program was started.
    fn executable(&self, name: &str) -> Option<String> {
        let found = if name.contains('/') {
            Some(self.root.join(name)).filter(|path| is_executable(path))
        } else {
            let folders =
                self.environment.get("PATH").map(String::as_str).unwrap_or_default().split(':').map(Path::new);
            let absolute = folders.filter(|folder| folder.is_absolute());
            absolute.map(|folder| folder.join(name)).find(|path| is_executable(path))
        };
        found.filter(|_| !name.is_empty()).and_then(|path| path.into_os_string().into_string().ok())
    }

    fn context(&self) -> Value {
        let security = if self.elevated { "elevated" } else { "restricted" };
        let system = SystemRoot::below(&self.system_root);
        let release = ["etc/os-release", "usr/lib/os-release"].iter().find_map(|path| text_of(&system, path));
        let members = [("os", operating_system(&release.unwrap_or_default())), ("security", Value::from(security))];
        Value::Object(members.map(|(name, value)| (name.to_owned(), value)).into_iter().collect())
    }

    fn document(&self, path: &str) -> Result<String, String> {
        let place = Path::new(path);
        if place.components().any(|part| part == Component::ParentDir) {
            return Err(format!("'{path}' may not contain '..'; give an absolute path instead"));
        }
        if let Some(files) = &self.files {
            match files.content(path) {
                Some(content) => return document_text(path, content.to_vec()),
                None if place.is_absolute() => {}
                None => {
                    return Err(format!("'{path}' is not in the bundle; name it in 'directives: {{files: [...]}}'"));
                }
            }
        }
        let cannot = |error: io::Error| format!("cannot read '{path}': {}", stead_system::fs::reason(&error));
        let file = open_followed(&self.root.join(place)).map_err(cannot)?;
        if !file.metadata().map_err(cannot)?.is_file() {
            return Err(format!("cannot read '{path}': it is not a file"));
        }
        let text =
            limited(file).map_err(cannot)?.ok_or_else(|| format!("'{path}' is larger than a document may be"))?;
        document_text(path, text)
    }
}

fn document_text(path: &str, bytes: Vec<u8>) -> Result<String, String> {
    let mut text = String::from_utf8(bytes).map_err(|_| format!("'{path}' is not UTF-8 text"))?;
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    Ok(text)
}

/// The text of a small file of the system; `None` where there is none that can be read.
fn text_of(system: &SystemRoot, path: &str) -> Option<String> {
    system.text(path, LARGEST_DOCUMENT)
}

/// Returns the content of a file, unless it is too much. Its size is not asked for: a file may grow while it is read.
fn limited(file: File) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    let read = file.take(LARGEST_DOCUMENT + 1).read_to_end(&mut bytes)? as u64;
    Ok(Some(bytes).filter(|_| read <= LARGEST_DOCUMENT))
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && Status::from(&metadata).mode & 0o111 != 0)
}

fn text_or_null(text: Option<String>) -> Value {
    text.map_or(Value::Null, Value::from)
}

fn path_text(path: &Path) -> Result<String, String> {
    path.to_str().map(str::to_owned).ok_or_else(|| format!("the path '{}' is not Unicode text", path.display()))
}

/// Returns the value of `context().os`: the words are those of the resource `Microsoft/OSInfo`.
fn operating_system(release: &str) -> Value {
    let field = |name: &str| release_field(release, name);
    let version = field("VERSION_ID").map_or_else(|| "Unknown".to_owned(), |version| three_parts(&version));
    let members = [
        ("family", Some(Value::from(family()))),
        ("version", Some(Value::from(version))),
        ("codename", field("VERSION_CODENAME").map(Value::from)),
        ("bitness", Some(Value::from(i64::from(usize::BITS)))),
        ("architecture", Some(Value::from(std::env::consts::ARCH))),
    ];
    let stated = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(stated.collect::<Object>())
}

fn family() -> &'static str {
    match std::env::consts::OS {
        "macos" => "macOS",
        "windows" => "Windows",
        _ => "Linux",
    }
}

/// `12` as `12.0.0`; what is not made of up to three numbers stays as it is.
fn three_parts(version: &str) -> String {
    let parts = version.split('.').map(|part| part.parse::<u64>().ok()).collect::<Option<Vec<_>>>();
    match parts.as_deref() {
        Some([major]) => format!("{major}.0.0"),
        Some([major, minor]) => format!("{major}.{minor}.0"),
        Some([major, minor, patch]) => format!("{major}.{minor}.{patch}"),
        _ => version.to_owned(),
    }
}

fn release_field(release: &str, name: &str) -> Option<String> {
    let value = release.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix('='))?;
    let value = value.trim();
    let quoted = ['"', '\''].into_iter().find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote));
    Some(quoted.unwrap_or(value).to_owned()).filter(|value| !value.is_empty())
}
