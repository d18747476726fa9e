//! Settings: what an administrator decides for all runs, and how that goes together with arguments and environment.
//!
//! [`read_layer`] reads one file, [`Layers::load`] all of them, and [`resolve`], which is pure, decides what counts: the
//! policy before the command line, that before the environment, that before the settings files, those before defaults.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use stead_core::diag::{Diagnostic, any_error, nearest};
use stead_core::text::{Kind, Limits, Node, Source, SourceId, read};

pub use crate::provider::TraceLevel;

/// Codes of findings about settings.
pub mod codes {
    stead_core::codes! {
        /// E0631
        KEY = "E0631", "a settings file has a key that does not exist", "\
A settings file may hold `resourcePath` with `allowEnvOverride`, `appendEnvPath` and `directories`, and `tracing` with
`level`, `format` and `allowOverride`. In the file of defaults these stand below the version of the settings, `\"1\"`.";

        /// E0632
        VALUE = "E0632", "a value of a settings file is not allowed", "\
The message says which values the key takes. The whole file is ignored until it is mended, so that a misspelled policy is
not half in force.";
    }
}

impl TraceLevel {
    /// Every level and its word.
    pub const ALL: [(&'static str, Self); 5] = [
        ("ERROR", Self::Error),
        ("WARN", Self::Warn),
        ("INFO", Self::Info),
        ("DEBUG", Self::Debug),
        ("TRACE", Self::Trace),
    ];

    /// The level of that word; case does not matter.
    pub fn parse(text: &str) -> Option<Self> {
        word(&Self::ALL, text)
    }
}

/// How traces are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceFormat {
    /// In colour, for people.
    Default,
    /// The same without colour.
    Plaintext,
    /// One JSON object a line.
    Json,
    /// As it came from a resource.
    PassThrough,
}

impl TraceFormat {
    /// Every format and its word.
    pub const ALL: [(&'static str, Self); 4] = [
        ("Default", Self::Default),
        ("Plaintext", Self::Plaintext),
        ("Json", Self::Json),
        ("PassThrough", Self::PassThrough),
    ];
}

fn word<T: Copy>(words: &[(&'static str, T)], text: &str) -> Option<T> {
    words.iter().find(|(word, _)| word.eq_ignore_ascii_case(text)).map(|(_, meaning)| *meaning)
}

/// Where manifests are looked for, besides the environment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResourcePath {
    /// Whether `DSC_RESOURCE_PATH` replaces the directories.
    pub allow_env_override: bool,
    /// Whether the directories of `PATH` are searched after these.
    pub append_env_path: bool,
    /// Directories that are searched first.
    pub directories: Vec<PathBuf>,
}

impl Default for ResourcePath {
    fn default() -> Self {
        Self { allow_env_override: true, append_env_path: true, directories: Vec::new() }
    }
}

/// `tracing` of one file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TracingLayer {
    /// `level`
    pub level: Option<TraceLevel>,
    /// `format`
    pub format: Option<TraceFormat>,
    /// `allowOverride`: whether `DSC_TRACE_LEVEL` counts
    pub allow_override: Option<bool>,
}

/// What one file states.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Layer {
    /// `resourcePath`; what it leaves out has its default, it is not filled from the next file.
    pub resource_path: Option<ResourcePath>,
    /// `tracing`
    pub tracing: Option<TracingLayer>,
}

/// What is said about tracing outside of files.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stated {
    /// `--trace-level`
    pub argument_level: Option<TraceLevel>,
    /// `--trace-format`
    pub argument_format: Option<TraceFormat>,
    /// `DSC_TRACE_LEVEL`
    pub environment_level: Option<TraceLevel>,
}

/// What counts in the end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Where manifests are looked for.
    pub resource_path: ResourcePath,
    /// How much is traced.
    pub trace_level: TraceLevel,
    /// How traces are written.
    pub trace_format: TraceFormat,
}

/// The files, as far as they are there and valid.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Layers {
    /// Of the administrator; nothing overrides it.
    pub policy: Layer,
    /// Of this installation.
    pub settings: Layer,
    /// That this program came with.
    pub defaults: Layer,
}

/// Decides what counts.
pub fn resolve(layers: &Layers, stated: &Stated) -> Settings {
    let files = [&layers.policy, &layers.settings, &layers.defaults];
    let resource_path = files.iter().find_map(|layer| layer.resource_path.clone()).unwrap_or_default();
    let tracing = |layer: &Layer| layer.tracing.unwrap_or_default();
    let policy = tracing(&layers.policy);
    // Of the two files the first that speaks of tracing counts, as a whole.
    let file = layers.settings.tracing.or(layers.defaults.tracing).unwrap_or_default();
    let allowed = policy.allow_override.or(file.allow_override).unwrap_or(true);
    let environment = stated.environment_level.filter(|_| allowed);
    let level = policy.level.or(stated.argument_level).or(environment).or(file.level);
    let format = policy.format.or(stated.argument_format).or(file.format);
    Settings {
        resource_path,
        trace_level: level.unwrap_or(TraceLevel::Warn),
        trace_format: format.unwrap_or(TraceFormat::Default),
    }
}

/// Where the files are.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SettingsFiles {
    /// The policy, `/etc/dsc/dsc.settings.json`.
    pub policy: Option<PathBuf>,
    /// `dsc.settings.json` beside the program; `None` when settings are to be ignored.
    pub settings: Option<PathBuf>,
    /// `dsc_default.settings.json` beside the program; `None` when settings are to be ignored.
    pub defaults: Option<PathBuf>,
}

impl SettingsFiles {
    /// The files that belong to a program in that directory. `ignore` leaves out all but the policy, which nobody but
    /// the administrator can ignore.
    pub fn beside(program_directory: &Path, ignore: Ignore) -> Self {
        let beside = |name: &str| (ignore == Ignore::Nothing).then(|| program_directory.join(name));
        Self {
            policy: Some(PathBuf::from("/etc/dsc/dsc.settings.json")),
            settings: beside("dsc.settings.json"),
            defaults: beside("dsc_default.settings.json"),
        }
    }
}

/// Whether `--ignore-settings-file` or `DSC_IGNORE_SETTINGS_FILE` was given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ignore {
    /// Every file counts.
    Nothing,
    /// Only the policy counts.
    Settings,
}

/// A settings file that does not count, and why.
#[derive(Clone, Debug)]
pub struct IgnoredFile {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub reason: IgnoredBecause,
}

/// Why a settings file does not count.
#[derive(Clone, Debug, thiserror::Error)]
pub enum IgnoredBecause {
    /// The system refused to read it.
    #[error("it cannot be read: {0}")]
    Unreadable(io::ErrorKind),
    /// Others than root can change it.
    #[error("it and its directory have to be owned by root and writable by nobody else")]
    Untrusted,
    /// There are findings about its text, of which one at least is an error.
    #[error("it is not valid")]
    Invalid {
        /// The text; source 0 of the findings.
        text: Source,
        /// The findings.
        findings: Vec<Diagnostic>,
    },
}

impl Layers {
    /// Reads the files. One that is missing is no matter; one that cannot count is reported, and left out as a whole.
    pub fn load(files: &SettingsFiles) -> (Self, Vec<IgnoredFile>) {
        let mut ignored = Vec::new();
        let mut load = |path: &Option<PathBuf>, place: Place| {
            let path = path.as_deref().filter(|path| path.exists())?;
            let layer = load_layer(path, place);
            layer.map_err(|reason| ignored.push(IgnoredFile { path: path.to_owned(), reason })).ok()
        };
        let layers = Self {
            policy: load(&files.policy, Place::Policy).unwrap_or_default(),
            settings: load(&files.settings, Place::Settings).unwrap_or_default(),
            defaults: load(&files.defaults, Place::Defaults).unwrap_or_default(),
        };
        (layers, ignored)
    }
}

/// Which of the files it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// Trusted only where root alone can write.
    Policy,
    /// As it is.
    Settings,
    /// Below the version of the settings.
    Defaults,
}

fn load_layer(path: &Path, place: Place) -> Result<Layer, IgnoredBecause> {
    let unreadable = |error: io::Error| IgnoredBecause::Unreadable(error.kind());
    if place == Place::Policy {
        let directory = path.parent().unwrap_or(Path::new("/"));
        for place in [directory, path] {
            let metadata = fs::metadata(place).map_err(unreadable)?;
            if metadata.uid() != 0 || metadata.mode() & 0o022 != 0 {
                return Err(IgnoredBecause::Untrusted);
            }
        }
    }
    let text = fs::read_to_string(path).map_err(unreadable)?;
    let source = Source::new(path.to_string_lossy(), &text);
    let (layer, findings) = read_layer(SourceId::default(), &source.text, place);
    if any_error(&findings) { Err(IgnoredBecause::Invalid { text: source, findings }) } else { Ok(layer) }
}

/// Reads the text of one file.
pub fn read_layer(source: SourceId, text: &str, place: Place) -> (Layer, Vec<Diagnostic>) {
    let (node, found) = read(source, text, &Limits::default());
    let mut reader = Reader { found };
    let layer = node.map(|node| reader.file(&node, place)).unwrap_or_default();
    (layer, reader.found)
}

/// The one version of the settings that there is.
const VERSION: &str = "1";

struct Reader {
    found: Vec<Diagnostic>,
}

impl Reader {
    fn file(&mut self, node: &Node, place: Place) -> Layer {
        match place {
            Place::Policy | Place::Settings => self.layer(node),
            // Settings of later versions are for later programs.
            Place::Defaults => node.get(VERSION).map(|node| self.layer(node)).unwrap_or_default(),
        }
    }

    fn layer(&mut self, node: &Node) -> Layer {
        self.keys(node, &["resourcePath", "tracing"]);
        Layer {
            resource_path: node.get("resourcePath").map(|node| self.resource_path(node)),
            tracing: node.get("tracing").map(|node| self.tracing(node)),
        }
    }

    fn resource_path(&mut self, node: &Node) -> ResourcePath {
        self.keys(node, &["allowEnvOverride", "appendEnvPath", "directories"]);
        let default = ResourcePath::default();
        ResourcePath {
            allow_env_override: self.truth(node, "allowEnvOverride").unwrap_or(default.allow_env_override),
            append_env_path: self.truth(node, "appendEnvPath").unwrap_or(default.append_env_path),
            directories: self.directories(node),
        }
    }

    fn tracing(&mut self, node: &Node) -> TracingLayer {
        self.keys(node, &["level", "format", "allowOverride"]);
        TracingLayer {
            level: self.word(node, "level", &TraceLevel::ALL),
            format: self.word(node, "format", &TraceFormat::ALL),
            allow_override: self.truth(node, "allowOverride"),
        }
    }

    fn directories(&mut self, node: &Node) -> Vec<PathBuf> {
        let Some(value) = node.get("directories") else { return Vec::new() };
        let texts = value.items().map(|items| items.iter().map(Node::as_str).collect::<Option<Vec<_>>>());
        if let Some(texts) = texts.flatten() {
            return texts.into_iter().map(PathBuf::from).collect();
        }
        self.wrong(value, "'directories' has to be an array of strings");
        Vec::new()
    }

    fn truth(&mut self, node: &Node, key: &str) -> Option<bool> {
        let value = node.get(key)?;
        if let Kind::Bool(truth) = value.kind {
            return Some(truth);
        }
        self.wrong(value, &format!("'{key}' has to be true or false"));
        None
    }

    fn word<T: Copy>(&mut self, node: &Node, key: &str, words: &[(&'static str, T)]) -> Option<T> {
        let value = node.get(key)?;
        let found = value.as_str().and_then(|text| word(words, text));
        if found.is_none() {
            let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
            self.wrong(value, &format!("'{key}' has to be one of {}", words.join(", ")));
        }
        found
    }

    fn keys(&mut self, node: &Node, keys: &[&str]) {
        let Some(entries) = node.entries() else { return self.wrong(node, "this has to be an object") };
        for entry in entries.iter().filter(|entry| !keys.contains(&&*entry.key) && &*entry.key != "$schema") {
            let message = format!("there is no setting '{}' here", entry.key);
            let help = match nearest(&entry.key, keys.iter().copied()) {
                Some(near) => format!("did you mean '{near}'?"),
                None => format!("the settings are {}", keys.join(", ")),
            };
            self.found.push(Diagnostic::error(&codes::KEY, entry.key_span, message).with_help(help));
        }
    }

    fn wrong(&mut self, node: &Node, message: &str) {
        self.found.push(Diagnostic::error(&codes::VALUE, node.span, message));
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn layer(text: &str, place: Place) -> Layer {
        let (layer, findings) = read_layer(SourceId::default(), text, place);
        assert!(findings.is_empty(), "{findings:?}");
        layer
    }

    fn messages(text: &str) -> Vec<String> {
        let (_, findings) = read_layer(SourceId::default(), text, Place::Settings);
        findings
            .into_iter()
            .map(|each| format!("{} {} {}", each.code, each.message, each.help.unwrap_or_default()))
            .collect()
    }

    #[test]
    fn the_policy_wins_over_everything_and_the_file_over_nothing() {
        let policy = layer(r#"{"tracing": {"level": "ERROR"}}"#, Place::Policy);
        let settings = layer(
            r#"{"tracing": {"level": "debug", "format": "Json"}, "resourcePath": {"directories": ["/s"]}}"#,
            Place::Settings,
        );
        let defaults = layer(
            r#"{"1": {"tracing": {"allowOverride": false}, "resourcePath": {"appendEnvPath": false}}, "2": 7}"#,
            Place::Defaults,
        );
        let said = Stated {
            argument_level: Some(TraceLevel::Trace),
            argument_format: Some(TraceFormat::Plaintext),
            environment_level: Some(TraceLevel::Info),
        };
        let environment = Stated { environment_level: said.environment_level, ..Stated::default() };
        let level = |policy: &Layer, settings: &Layer, stated: &Stated| {
            let layers = Layers { policy: policy.clone(), settings: settings.clone(), defaults: defaults.clone() };
            let settings = resolve(&layers, stated);
            (settings.trace_level, settings.trace_format)
        };
        let none = Layer::default();
        assert_eq!(level(&policy, &settings, &said), (TraceLevel::Error, TraceFormat::Plaintext));
        assert_eq!(level(&none, &settings, &said), (TraceLevel::Trace, TraceFormat::Plaintext));
        assert_eq!(level(&none, &settings, &environment), (TraceLevel::Info, TraceFormat::Json));
        assert_eq!(level(&none, &settings, &Stated::default()), (TraceLevel::Debug, TraceFormat::Json));
        assert_eq!(level(&none, &none, &environment), (TraceLevel::Warn, TraceFormat::Default));
        let layers = Layers { settings, defaults, ..Layers::default() };
        let path = resolve(&layers, &said).resource_path;
        assert_eq!(path, ResourcePath { directories: vec!["/s".into()], ..ResourcePath::default() });
    }

    #[test]
    fn everything_wrong_is_said() {
        let found = messages(
            r#"{"tracng": {}, "tracing": {"level": "loud", "format": 1, "allowOverride": "no"},
                "resourcePath": {"directories": "x", "appendEnvPath": true, "other": 1}}"#,
        );
        let expected = [
            "E0631 there is no setting 'tracng' here did you mean 'tracing'?",
            "E0631 there is no setting 'other' here the settings are allowEnvOverride, appendEnvPath, directories",
            "E0632 'directories' has to be an array of strings ",
            "E0632 'level' has to be one of ERROR, WARN, INFO, DEBUG, TRACE ",
            "E0632 'format' has to be one of Default, Plaintext, Json, PassThrough ",
            "E0632 'allowOverride' has to be true or false ",
        ];
        assert_eq!(found, expected);
        assert_eq!(messages("[]"), ["E0632 this has to be an object "]);
        assert!(!messages("{").is_empty());
    }

    #[test]
    fn a_policy_counts_only_where_root_alone_writes() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("dsc.settings.json");
        fs::write(&file, r#"{"tracing": {"level": "TRACE"}}"#).unwrap();
        let mode = |mode: u32| fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        mode(0o644);
        let files = SettingsFiles { policy: Some(file.clone()), ..SettingsFiles::default() };
        let counts = |mode: u32| {
            fs::set_permissions(home.path(), fs::Permissions::from_mode(mode)).unwrap();
            let (layers, ignored) = Layers::load(&files);
            assert_eq!(layers.policy.tracing.is_some(), ignored.is_empty());
            ignored.is_empty()
        };
        let root = fs::metadata(&file).unwrap().uid() == 0;
        assert_eq!(counts(0o755), root);
        assert!(!counts(0o775) && !counts(0o757));
        mode(0o666);
        assert!(!counts(0o755));
        mode(0o644);
        let as_settings = SettingsFiles { settings: Some(file.clone()), ..SettingsFiles::default() };
        assert!(Layers::load(&as_settings).0.settings.tracing.is_some());
        fs::write(&file, "{\"tracing\": 1}").unwrap();
        let (layers, ignored) = Layers::load(&as_settings);
        assert!(layers == Layers::default() && matches!(ignored[0].reason, IgnoredBecause::Invalid { .. }));
        assert_eq!(
            Layers::load(&SettingsFiles::beside(Path::new("/nowhere"), Ignore::Nothing)).0.settings,
            Layer::default()
        );
    }
}
