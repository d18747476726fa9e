//! Labels: names with texts, by which those who look after many machines tell them apart, such as `role: web`.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use stead_core::diag::{Diagnostic, any_error};
use stead_core::text::{Kind, Limits, Node, Source, SourceId, Sources, read};
use stead_core::value::Value;
use stead_system::fs::{OpenError, SystemRoot, TrustedFile, User, reason};

/// Codes of findings about labels.
pub mod codes {
    stead_core::codes! {
        /// E0634
        LABEL = "E0634", "a label of the machine is not allowed", "\
A label is a name with a text, such as `role: web`. The name begins with a letter, and has letters, digits, `-` and `_`, 63 at most;
the text has from 1 to 255 characters, and neither line breaks nor blanks at its ends. What YAML reads as a number or as true or false is
put in quotes: `rack: \"12\"`. A machine has at most 64 labels.";

        /// E0635
        FILE = "E0635", "the labels of the machine cannot be used", "\
`/etc/stead/labels.yaml` has the labels of the machine, which `facts('labels')` reads. While it is there and cannot be used, `facts()`
has no answer: a document that asks for a label would otherwise do what is meant for machines without it.

It must be a regular file with an object of names and texts, as YAML or JSON. For root, it and every directory on its path must be owned
by root and writable by nobody else. The message says what is wrong; correct the file, or remove it if the machine has no labels.";
    }
}

/// Where the file with the labels of a system is, from its root.
const FILE: &str = "etc/stead/labels.yaml";

/// The most that are read of it.
const LARGEST_FILE: u64 = 64 * 1024;

const MOST_LABELS: usize = 64;
const LONGEST_NAME: usize = 63;
const LONGEST_TEXT: usize = 255;

/// Who gave a machine a label; of two labels of one name the one with the later variant counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Provenance {
    /// Whoever administers the machine itself: nothing may be trusted to a machine because of such a label.
    Own,
    /// An operator, whose signature was verified.
    Signed,
}

/// The text of a label, and who gave it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Label {
    /// The text.
    pub value: String,
    /// Who gave it.
    pub provenance: Provenance,
}

/// The labels of a machine.
///
/// # Examples
/// ```
/// use stead_core::text::SourceId;
/// use stead_host::facts::{Labels, Provenance};
///
/// let (own, findings) = Labels::read(SourceId::default(), "role: web\nsite: berlin\n");
/// assert!(findings.is_empty());
/// // What was signed counts, whatever the machine says of itself.
/// let signed = Labels::read(SourceId::default(), "role: database").0.signed();
/// let labels = signed.with(&own);
/// let shown: Vec<_> = labels.iter().map(|(name, label)| (name, &*label.value, label.provenance)).collect();
/// assert_eq!(shown, [("role", "database", Provenance::Signed), ("site", "berlin", Provenance::Own)]);
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Labels(BTreeMap<String, Label>);

/// The file with the labels of a system cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the labels of the machine in '{}' cannot be used: {reason}", path.display())]
pub struct UnusableLabels {
    /// The file.
    pub path: PathBuf,
    /// Why, in one line.
    pub reason: String,
}

impl Labels {
    /// Reads a file of labels, as YAML or JSON. They are the machine's own.
    ///
    /// Guarantees: what is not wrong is taken.
    pub fn read(source: SourceId, text: &str) -> (Self, Vec<Diagnostic>) {
        if text.lines().map(str::trim_start).all(|line| line.is_empty() || line.starts_with('#')) {
            return (Self::default(), Vec::new());
        }
        let (node, mut found) = read(source, text, &Limits::default());
        let (labels, wrong) = node.as_ref().map(Self::stated).unwrap_or_default();
        found.extend(wrong);
        (labels, found)
    }

    /// Takes the labels of an object. They are the machine's own.
    ///
    /// Guarantees: what is not wrong is taken.
    pub fn stated(node: &Node) -> (Self, Vec<Diagnostic>) {
        let Some(entries) = node.entries() else {
            let message = "labels are names with texts";
            return (
                Self::default(),
                vec![wrong(node, message).with_help("write one label a line, such as 'role: web'")],
            );
        };
        let (mut labels, mut found) = (BTreeMap::new(), Vec::new());
        for entry in entries {
            if !is_name(&entry.key) {
                let message = format!("'{}' cannot be the name of a label", entry.key);
                let help =
                    format!("a name begins with a letter, and has up to {LONGEST_NAME} letters, digits, '-' and '_'");
                found.push(Diagnostic::error(&codes::LABEL, entry.key_span, message).with_help(help));
                continue;
            }
            match label_text(&entry.key, &entry.value) {
                Ok(value) => _ = labels.insert(entry.key.to_string(), Label { value, provenance: Provenance::Own }),
                Err(finding) => found.push(*finding),
            }
        }
        if labels.len() > MOST_LABELS {
            found.push(wrong(node, &format!("there are {} labels, more than {MOST_LABELS}", labels.len())));
        }
        (Self(labels), found)
    }

    /// The labels that the file of a system says it has, `/etc/stead/labels.yaml`; none without that file.
    ///
    /// # Errors
    /// When it is there and cannot be used: of the running system also when others than `user` and root could change it. Below another
    /// root, no link leads out of it.
    pub fn of_system(root: &SystemRoot, user: User) -> Result<Self, UnusableLabels> {
        let path = root.at(FILE);
        let read = if root.is_running() { judged_text(&path, user) } else { text_below(root) };
        let labels = read.and_then(|text| text.map_or_else(|| Ok(Self::default()), |text| Self::of_file(&path, &text)));
        labels.map_err(|reason| UnusableLabels { path: path.to_path_buf(), reason })
    }

    fn of_file(path: &Path, text: &str) -> Result<Self, String> {
        let mut sources = Sources::default();
        let id = sources.add(Source::new(path.to_string_lossy(), text));
        let (labels, findings) = Self::read(id, text);
        if !any_error(&findings) {
            return Ok(labels);
        }
        let help = |finding: &Diagnostic| finding.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
        let lines: Vec<_> = findings.iter().map(|finding| finding.brief(&sources) + &help(finding)).collect();
        Err(lines.join("; "))
    }

    /// The same labels, once an operator's signature over them was verified.
    #[must_use]
    pub fn signed(mut self) -> Self {
        self.0.values_mut().for_each(|label| label.provenance = Provenance::Signed);
        self
    }

    /// These labels and others. Of two with one name the other counts, unless this one is signed and the other is not.
    #[must_use]
    pub fn with(mut self, others: &Self) -> Self {
        for (name, other) in &others.0 {
            if self.0.get(name).is_none_or(|label| label.provenance <= other.provenance) {
                self.0.insert(name.clone(), other.clone());
            }
        }
        self
    }

    /// Each label with its name, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Label)> {
        self.0.iter().map(|(name, label)| (name.as_str(), label))
    }

    /// The object of their texts, as `facts('labels')` has it.
    pub fn to_value(&self) -> Value {
        Value::Object(self.iter().map(|(name, label)| (name.to_owned(), Value::from(label.value.as_str()))).collect())
    }
}

fn wrong(node: &Node, message: &str) -> Diagnostic {
    Diagnostic::error(&codes::LABEL, node.span, message)
}

/// Returns whether a label can have the name: one that has a place in a path of facts and in a condition without quotes.
fn is_name(name: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    name.len() <= LONGEST_NAME
        && name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.chars().all(is_plain)
}

fn label_text(name: &str, node: &Node) -> Result<String, Box<Diagnostic>> {
    let refused = |help: String| {
        Box::new(
            wrong(node, &format!("the label '{name}' must be a text of 1 to {LONGEST_TEXT} characters"))
                .with_help(help),
        )
    };
    match &node.kind {
        Kind::String(text) => {
            let is_plain = !text.is_empty() && text.trim() == &**text && !text.contains(char::is_control);
            let allowed = is_plain && text.chars().count() <= LONGEST_TEXT;
            allowed
                .then(|| text.to_string())
                .ok_or_else(|| refused("write it in one line, without blanks at its ends".to_owned()))
        }
        Kind::Bool(truth) => Err(refused(format!("write it in quotes: {name}: \"{truth}\""))),
        Kind::Number(number) => Err(refused(format!("write it in quotes: {name}: \"{number}\""))),
        _ => Err(refused(format!("for example, {name}: web"))),
    }
}

/// The text of a file of the running system, which nobody else could have written; `None` when nothing is there.
fn judged_text(path: &Path, user: User) -> Result<Option<String>, String> {
    let file = match TrustedFile::open(path, user.trust()).and_then(|file| file.read()) {
        Ok(file) => file,
        // What leads nowhere is there, and unusable.
        Err(error) if error.is_not_found() && path.symlink_metadata().is_err() => return Ok(None),
        Err(OpenError::Untrusted(untrusted)) => return Err(format!("{untrusted} ({})", untrusted.help())),
        Err(OpenError::System { source, .. }) => return Err(reason(&source)),
    };
    let mut bytes = Vec::new();
    io::Read::take(file, LARGEST_FILE + 1).read_to_end(&mut bytes).map_err(|error| reason(&error))?;
    if bytes.len() as u64 > LARGEST_FILE {
        return Err(format!("it has more than {LARGEST_FILE} bytes"));
    }
    utf8(bytes).map(Some)
}

/// The text of the file below the root of another system; `None` when nothing is there.
fn text_below(root: &SystemRoot) -> Result<Option<String>, String> {
    let content = root.read(FILE, LARGEST_FILE).map_err(|error| error.to_string())?;
    content.map(|content| utf8(content.bytes)).transpose()
}

fn utf8(bytes: Vec<u8>) -> Result<String, String> {
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())
}
