//! Settings: what an administrator decides for all runs, and how that goes together with arguments and environment.
//!
//! [`read_layer`] reads one file, [`Layers::load`] all of them, and [`resolve`], which is pure, decides what counts: the
//! policy before the command line, that before the environment, that before the settings files, those before defaults.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use stead_core::diag::{Diagnostic, any_error, did_you_mean, nearest};
use stead_core::event::Verify;
use stead_core::text::{Kind, Limits, Node, Source, SourceId, Sources, read};

use stead_system::fs::{OpenError, Status, Trust, TrustedFile, Untrusted, User};

pub use crate::provider::TraceLevel;

/// Codes of findings about settings.
pub mod codes {
    stead_core::codes! {
        /// E0631
        KEY = "E0631", "a settings file has a key that does not exist", "\
A settings file may hold `resourcePath` with `allowEnvOverride`, `appendEnvPath` and `directories`, `tracing` with
`level`, `format` and `allowOverride`, `set` with `requireDesiredState`, and `environment`, a list of names. In the file of defaults these stand below the version of the settings, `\"1\"`.";

        /// E0632
        VALUE = "E0632", "a value of a settings file is not allowed", "\
The message says which values the key takes. The whole file is ignored with a warning until it is corrected. An invalid
policy stops every command instead (E0633).";

        /// E0633
        POLICY = "E0633", "the policy cannot be used", "\
`/etc/dsc/dsc.settings.json` is the policy of the administrator, and nothing overrides it. While it is there and cannot be
used, stead refuses to work: otherwise a typing error would lift the restrictions that the policy makes.

The policy must be a regular file with a JSON or YAML object of settings, readable by everyone who runs stead. It and every
directory on its path must be owned by root and writable by nobody else. The message says what is wrong; correct the file,
or remove it if no policy is wanted.";
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
    /// In colour, for users.
    Default,
    /// Text for users, without colour.
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
    /// True if `DSC_RESOURCE_PATH` replaces the directories.
    pub allow_env_override: bool,
    /// True if the directories of `PATH` are searched after these.
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

/// The settings that one file states.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Layer {
    /// `resourcePath`; what it leaves out has its default, it is not filled from the next file.
    pub resource_path: Option<ResourcePath>,
    /// `tracing`
    pub tracing: Option<TracingLayer>,
    /// `set.requireDesiredState`
    pub verification: Option<Verify>,
    /// `environment`
    pub environment: Option<Vec<String>>,
}

/// The settings of tracing that are stated outside of files.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stated {
    /// `--trace-level`
    pub argument_level: Option<TraceLevel>,
    /// `--trace-format`
    pub argument_format: Option<TraceFormat>,
    /// `DSC_TRACE_LEVEL`
    pub environment_level: Option<TraceLevel>,
}

/// The settings that count in the end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Where manifests are looked for.
    pub resource_path: ResourcePath,
    /// How much is traced.
    pub trace_level: TraceLevel,
    /// How traces are written.
    pub trace_format: TraceFormat,
    /// The consequence of a set of the commands of dsc that does not reach the desired state.
    pub verification: Verify,
    /// The variables of the environment that programs are given besides those that all are.
    pub environment: Vec<String>,
}

/// The files, as far as they are there and valid.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Layers {
    /// Of the administrator; nothing overrides it.
    pub policy: Layer,
    /// Of the directory that the program was started in.
    pub workspace: Layer,
    /// Of the user.
    pub user: Layer,
    /// Of this installation.
    pub settings: Layer,
    /// That this program came with.
    pub defaults: Layer,
}

/// Decides what counts.
pub fn resolve(layers: &Layers, stated: &Stated) -> Settings {
    let Layers { policy, workspace, user, settings, defaults } = layers;
    let files = [policy, workspace, user, settings, defaults];
    let resource_path = files.iter().find_map(|layer| layer.resource_path.clone()).unwrap_or_default();
    let verification = files.iter().find_map(|layer| layer.verification);
    let environment_names = files.iter().find_map(|layer| layer.environment.clone()).unwrap_or_default();
    let policy = policy.tracing.unwrap_or_default();
    // Of the other files the first that speaks of tracing counts, as a whole.
    let file = files.iter().skip(1).find_map(|layer| layer.tracing).unwrap_or_default();
    let allowed = policy.allow_override.or(file.allow_override).unwrap_or(true);
    let environment = stated.environment_level.filter(|_| allowed);
    let level = policy.level.or(stated.argument_level).or(environment).or(file.level);
    let format = policy.format.or(stated.argument_format).or(file.format);
    Settings {
        resource_path,
        trace_level: level.unwrap_or(TraceLevel::Warn),
        trace_format: format.unwrap_or(TraceFormat::Default),
        verification: verification.unwrap_or(Verify::Lenient),
        environment: environment_names,
    }
}

/// Where the files are.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SettingsFiles {
    /// The policy, `/etc/dsc/dsc.settings.json`.
    pub policy: Option<PathBuf>,
    /// `dsc.settings.json` in the current directory.
    pub workspace: Option<PathBuf>,
    /// `dsc/dsc.settings.json` in the directory where a user has settings.
    pub user: Option<PathBuf>,
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
            workspace: None,
            user: None,
            settings: beside("dsc.settings.json"),
            defaults: beside("dsc_default.settings.json"),
        }
    }
}

/// The effect of `--ignore-settings-file` and `DSC_IGNORE_SETTINGS_FILE`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ignore {
    /// Every file counts.
    Nothing,
    /// Only the policy counts.
    Settings,
}

/// A settings file that cannot be used, and why.
#[derive(Debug)]
pub struct UnusableFile {
    /// The file.
    pub path: PathBuf,
    /// Which of the files it is.
    pub place: SettingsPlace,
    /// Why.
    pub reason: UnusableSettings,
}

/// Why a settings file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum UnusableSettings {
    /// The system refused to read it, or it is not a regular file.
    #[error("{}", stead_system::fs::reason(.0))]
    Unreadable(io::Error),
    /// Others could change it.
    #[error(transparent)]
    Untrusted(#[from] Untrusted),
    /// It is neither root's nor that of whoever runs this, or everyone can write it.
    #[error("another user can change it")]
    OfOthers,
    /// There is nothing in it.
    #[error("it is empty; an object of settings is expected")]
    Empty,
    /// There are findings about its text, of which one at least is an error.
    #[error("it is not valid")]
    Invalid {
        /// The text; source 0 of the findings.
        text: Source,
        /// The findings.
        findings: Vec<Diagnostic>,
    },
}

impl UnusableFile {
    /// Describes the mistakes, a line for each finding.
    pub fn describe(&self) -> String {
        let (path, reason) = (self.path.display(), &self.reason);
        let mut lines = match self.place {
            SettingsPlace::Policy => {
                vec![format!("error[{}]: the policy {path} cannot be used: {reason}", codes::POLICY.id)]
            }
            SettingsPlace::Workspace | SettingsPlace::User | SettingsPlace::Settings | SettingsPlace::Defaults => {
                vec![format!("Ignoring the settings file {path}: {reason}")]
            }
        };
        if let UnusableSettings::Invalid { text, findings } = reason {
            let mut sources = Sources::default();
            sources.add(text.clone());
            let help =
                |finding: &Diagnostic| finding.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
            lines.extend(findings.iter().map(|finding| finding.brief(&sources) + &help(finding)));
        }
        if let UnusableSettings::Untrusted(untrusted) = reason {
            lines.push(format!("help: {}", untrusted.help()));
        }
        lines.join("\n")
    }
}

impl Layers {
    /// Reads the files. One that is not there states nothing; one that cannot be used is reported, and states nothing
    /// either: if that is the policy, the caller must refuse to work.
    pub fn load(files: &SettingsFiles, user: User) -> (Self, Vec<UnusableFile>) {
        let mut unusable = Vec::new();
        let mut load = |path: &Option<PathBuf>, place: SettingsPlace| {
            let path = path.as_deref()?;
            // A policy is the administrator's word, whoever runs this.
            let trust = if place == SettingsPlace::Policy { Trust::Root } else { user.trust() };
            read_file(path, place, trust, user).unwrap_or_else(|reason| {
                unusable.push(UnusableFile { path: path.to_owned(), place, reason });
                None
            })
        };
        let layers = Self {
            policy: load(&files.policy, SettingsPlace::Policy).unwrap_or_default(),
            workspace: load(&files.workspace, SettingsPlace::Workspace).unwrap_or_default(),
            user: load(&files.user, SettingsPlace::User).unwrap_or_default(),
            settings: load(&files.settings, SettingsPlace::Settings).unwrap_or_default(),
            defaults: load(&files.defaults, SettingsPlace::Defaults).unwrap_or_default(),
        };
        (layers, unusable)
    }
}

/// Which of the files it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SettingsPlace {
    /// Nothing overrides it.
    Policy,
    /// Of a directory that somebody else may have made.
    Workspace,
    /// Of a user.
    User,
    /// As it is.
    Settings,
    /// Below the version of the settings.
    Defaults,
}

/// Reads one file; `None` when it is not there.
pub fn read_file(
    path: &Path,
    place: SettingsPlace,
    trust: Trust,
    user: User,
) -> Result<Option<Layer>, UnusableSettings> {
    // What leads nowhere is there, and unusable.
    if let Err(error) = fs::symlink_metadata(path)
        && matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
    {
        return Ok(None);
    }
    let file = TrustedFile::open(path, trust).and_then(|file| file.read()).map_err(|error| match error {
        OpenError::Untrusted(untrusted) => UnusableSettings::Untrusted(untrusted),
        OpenError::System { source, .. } => UnusableSettings::Unreadable(source),
    })?;
    let status = Status::from(&file.metadata().map_err(UnusableSettings::Unreadable)?);
    if place == SettingsPlace::Workspace && (![0, user.id].contains(&status.uid) || status.mode & 0o002 != 0) {
        return Err(UnusableSettings::OfOthers);
    }
    let limits = Limits::default();
    let most = u64::try_from(limits.bytes).unwrap_or(u64::MAX).saturating_add(1);
    let text = io::read_to_string(io::Read::take(file, most)).map_err(UnusableSettings::Unreadable)?;
    if text.trim_matches(['\u{feff}', ' ', '\t', '\r', '\n']).is_empty() {
        return Err(UnusableSettings::Empty);
    }
    let source = Source::new(path.to_string_lossy(), &text);
    let (layer, findings) = read_layer(SourceId::default(), &source.text, place);
    if any_error(&findings) { Err(UnusableSettings::Invalid { text: source, findings }) } else { Ok(Some(layer)) }
}

/// Reads the text of one file.
pub fn read_layer(source: SourceId, text: &str, place: SettingsPlace) -> (Layer, Vec<Diagnostic>) {
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
    fn file(&mut self, node: &Node, place: SettingsPlace) -> Layer {
        match place {
            // Settings of later versions are for later programs.
            SettingsPlace::Defaults => node.get(VERSION).map(|node| self.layer(node)).unwrap_or_default(),
            SettingsPlace::Policy | SettingsPlace::Workspace | SettingsPlace::User | SettingsPlace::Settings => {
                self.layer(node)
            }
        }
    }

    fn layer(&mut self, node: &Node) -> Layer {
        self.keys(node, &["resourcePath", "tracing", "set", "environment"]);
        Layer {
            resource_path: node.get("resourcePath").map(|node| self.resource_path(node)),
            tracing: node.get("tracing").map(|node| self.tracing(node)),
            verification: node.get("set").and_then(|node| self.verification(node)),
            environment: node.get("environment").map(|node| self.texts(node, "environment")),
        }
    }

    fn verification(&mut self, node: &Node) -> Option<Verify> {
        self.keys(node, &["requireDesiredState"]);
        let required = self.truth(node, "requireDesiredState")?;
        Some(if required { Verify::Strict } else { Verify::Lenient })
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
        let texts = node.get("directories").map(|value| self.texts(value, "directories"));
        texts.unwrap_or_default().into_iter().map(PathBuf::from).collect()
    }

    fn texts(&mut self, value: &Node, key: &str) -> Vec<String> {
        let texts = value.items().map(|items| items.iter().map(Node::as_str).collect::<Option<Vec<_>>>());
        if let Some(texts) = texts.flatten() {
            return texts.into_iter().map(str::to_owned).collect();
        }
        self.wrong(value, &format!("'{key}' must be an array of strings"));
        Vec::new()
    }

    fn truth(&mut self, node: &Node, key: &str) -> Option<bool> {
        let value = node.get(key)?;
        if let Kind::Bool(truth) = value.kind {
            return Some(truth);
        }
        self.wrong(value, &format!("'{key}' must be true or false"));
        None
    }

    fn word<T: Copy>(&mut self, node: &Node, key: &str, words: &[(&'static str, T)]) -> Option<T> {
        let value = node.get(key)?;
        let found = value.as_str().and_then(|text| word(words, text));
        if found.is_none() {
            let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
            self.wrong(value, &format!("'{key}' must be one of {}", words.join(", ")));
        }
        found
    }

    fn keys(&mut self, node: &Node, keys: &[&str]) {
        let Some(entries) = node.entries() else { return self.wrong(node, "this must be an object") };
        for entry in entries.iter().filter(|entry| !keys.contains(&&*entry.key) && &*entry.key != "$schema") {
            let message = format!("unknown setting '{}'", entry.key);
            let help = match nearest(&entry.key, keys.iter().copied()) {
                Some(near) => did_you_mean(near),
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

    fn layer(text: &str, place: SettingsPlace) -> Layer {
        let (layer, findings) = read_layer(SourceId::default(), text, place);
        assert!(findings.is_empty(), "{findings:?}");
        layer
    }

    fn messages(text: &str) -> Vec<String> {
        let (_, findings) = read_layer(SourceId::default(), text, SettingsPlace::Settings);
        findings
            .into_iter()
            .map(|each| format!("{} {} {}", each.code, each.message, each.help.unwrap_or_default()))
            .collect()
    }

    #[test]
    fn the_policy_wins_over_everything_and_the_file_over_nothing() {
        let policy = layer(r#"{"tracing": {"level": "ERROR"}}"#, SettingsPlace::Policy);
        let settings = layer(
            r#"{"tracing": {"level": "debug", "format": "Json"}, "resourcePath": {"directories": ["/s"]}}"#,
            SettingsPlace::Settings,
        );
        let defaults = layer(
            r#"{"1": {"tracing": {"allowOverride": false}, "resourcePath": {"appendEnvPath": false}}, "2": 7}"#,
            SettingsPlace::Defaults,
        );
        let said = Stated {
            argument_level: Some(TraceLevel::Trace),
            argument_format: Some(TraceFormat::Plaintext),
            environment_level: Some(TraceLevel::Info),
        };
        let environment = Stated { environment_level: said.environment_level, ..Stated::default() };
        let level = |policy: &Layer, settings: &Layer, stated: &Stated| {
            let (policy, settings, defaults) = (policy.clone(), settings.clone(), defaults.clone());
            let layers = Layers { policy, settings, defaults, ..Layers::default() };
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
            "E0631 unknown setting 'tracng' did you mean 'tracing'?",
            "E0631 unknown setting 'other' the settings are allowEnvOverride, appendEnvPath, directories",
            "E0632 'directories' must be an array of strings ",
            "E0632 'level' must be one of ERROR, WARN, INFO, DEBUG, TRACE ",
            "E0632 'format' must be one of Default, Plaintext, Json, PassThrough ",
            "E0632 'allowOverride' must be true or false ",
        ];
        assert_eq!(found, expected);
        assert_eq!(messages("[]"), ["E0632 this must be an object "]);
        assert!(!messages("{").is_empty());
    }

    #[test]
    fn a_file_of_the_current_directory_counts_unless_everyone_can_write_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("dsc.settings.json");
        fs::write(&file, r#"{"set": {"requireDesiredState": true}}"#).unwrap();
        for (place, mode, counts) in [
            (SettingsPlace::Workspace, 0o664, true),
            (SettingsPlace::Workspace, 0o646, false),
            (SettingsPlace::User, 0o646, true),
        ] {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            let read = read_file(&file, place, Trust::Everyone, User::current());
            assert_eq!(read.is_ok(), counts, "{mode:o}");
            assert!(counts || matches!(read, Err(UnusableSettings::OfOthers)));
        }
    }

    #[test]
    fn a_policy_that_is_there_counts_or_is_reported() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("dsc.settings.json");
        let files = SettingsFiles { policy: Some(file.clone()), ..SettingsFiles::default() };
        let load = || Layers::load(&files, User::current());
        assert!(load().1.is_empty(), "there is none");
        fs::write(&file, r#"{"tracing": {"level": "TRACE"}}"#).unwrap();
        let counts = |name: &Path, mode: u32| {
            fs::set_permissions(name, fs::Permissions::from_mode(mode)).unwrap();
            let (layers, unusable) = load();
            assert_eq!(layers.policy.tracing.is_some(), unusable.is_empty());
            unusable.is_empty()
        };
        let is_root = User::current().trust() == Trust::Root;
        assert_eq!(counts(&file, 0o644), is_root);
        assert!(!counts(home.path(), 0o775) && !counts(home.path(), 0o757));
        assert_eq!(counts(home.path(), 0o755), is_root);
        assert!(!counts(&file, 0o666) && !counts(&file, 0o664));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        for text in ["", "[]", r#"{"tracing": 1}"#, r#"{"tracng": {}}"#, "{"] {
            fs::write(&file, text).unwrap();
            assert_eq!(load().1.len(), 1, "{text}");
        }
    }
}
