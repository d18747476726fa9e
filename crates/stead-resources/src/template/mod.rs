//! `Stead/Template`: a file whose content a template gives.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value as Json};
use sha2::{Digest, Sha256};
use stead_core::call::{Execution, Failure, Presumed};
use stead_core::claims::{Claims, Extent, Ties};
use stead_core::digest::hex;
use stead_core::value::{Object, Value};
use stead_declare::resource;
use stead_host::provider::{Context, Cost, Lint, Linter, Plain, Provider, SetReply, State, TestReply};
use stead_system::fs::{Replacement, Status, SystemPath};
use stead_system::user::NamesByRoot;

use crate::declared::Declared as _;
use crate::file::content::{self, Shown};
use crate::file::{Current, Desired, FileContent};
use crate::guard::{Guard, in_use};
use crate::input::{Backup, FilePath, Mode, PathText, ReadOnly, cannot, read, read_each};
use crate::permissions::Permissions;
use crate::text::AccountName;
use crate::{BuiltIn, reply};

mod lints;
mod render;

use render::{Origin, Source, Visibility};

/// A file whose content is rendered from a template in the language of Jinja2, with its mode and owner. A variable that is
/// not defined is an error. Nothing is escaped, a newline at the end is kept, and one behind a block tag is removed.
/// Rendering takes at most a million steps and yields at most 16 MiB; values that are assigned are at most 100 levels deep, and lists
/// that are joined have at most 20,000 elements each. Brackets and blocks are nested at most 50 deep, and at most 200 operators, or
/// 'elif', follow each other. Plans and results show the content, but only its size
/// if a property holds a secret, and only size and digest where not everyone may read 'source' or the file that it replaces.
#[resource(
    "Stead/Template",
    about = "A file whose content is rendered from a template.",
    tags("file", "template", "linux"),
    any(template, source),
    exclusive(template, source)
)]
#[schemars(extend("dependentSchemas" = { "template": { "properties": { "source": false } } }))]
struct Properties<'a> {
    /// Where the file is. A relative path starts at the directory of the document, or at the system root that was given. A
    /// symbolic link as the last component is refused.
    #[property(key, place)]
    path: FilePath<'a>,
    /// The template itself. This or 'source' is required unless '_exist' is false. Where expressions of the document are not
    /// meant, a text that begins with '[' begins with '[['.
    #[property(option)]
    template: Option<&'a str>,
    /// A file on this machine that has the template, of at most 1 MiB; in place of 'template'. A relative path starts at
    /// the directory of the document, or at the system root if the document itself manages that path.
    #[property(option)]
    source: Option<PathText<'a>>,
    /// The variables that the template uses, by their names. They may be secrets.
    #[property(option)]
    #[serde(default)]
    variables: Map<String, Json>,
    /// The permissions, as octal digits in quotes. A new file gets 0644 when none are given, whatever the umask is;
    /// 0600 where its properties hold a secret.
    mode: Option<Mode<'a>>,
    /// The name or number of the user that the file belongs to.
    owner: Option<AccountName<'a>>,
    /// The name or number of the group that the file belongs to.
    group: Option<AccountName<'a>>,
    /// Whether former content is kept when it is replaced or removed. With true it is kept beside the file as
    /// 'NAME.backup-' and the first digits of its SHA-256, every content once; with a suffix as 'NAMESUFFIX', the last one only.
    #[property(option, removal)]
    #[serde(default)]
    #[schemars(extend("default" = false))]
    backup: Backup<'a>,
    /// A command that must accept new content before it is in place, such as 'nginx -t -c %s': words without a shell, with %s
    /// where the path of the content goes, which is a file of the same name that only this user can read. If it ends with another
    /// exit code than 0, the file stays as it is. It is run where something is changed, not for a plan, and is a program of the
    /// running system.
    #[property(option)]
    validate: Option<Guard<'a>>,
    /// Whether the file exists.
    exist: bool,
    /// The content of the file.
    #[property(shown)]
    content: Option<ReadOnly<String>>,
    /// The number of bytes.
    size: Option<ReadOnly<u64>>,
    /// The digest of the content.
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    sha256: Option<ReadOnly<String>>,
    /// When the content was last changed.
    #[schemars(extend("format" = "date-time"))]
    modified: Option<ReadOnly<String>>,
}

impl<'a> crate::input::Properties<'a> for Properties<'a> {}

/// `Stead/Template` as it is registered.
pub(crate) fn built_in() -> Option<BuiltIn> {
    Properties::built_in(Arc::new(Templates::default()))
}

#[derive(Default)]
struct Templates {
    names: NamesByRoot,
}

impl Provider for Templates {
    fn validate(&self, cx: &Context, input: &Plain) -> Result<(), Failure> {
        self.read(cx, input).map(|_| ())
    }

    fn get(&self, cx: &Context, input: &Plain) -> Result<State, Failure> {
        self.desired(cx, input, read_each(input)?)?.get(&self.names.of(&cx.system_root))
    }

    fn test(&self, cx: &Context, input: &Plain) -> Result<TestReply, Failure> {
        self.read(cx, input)?.test(cx, &self.names.of(&cx.system_root))
    }

    fn set(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<SetReply, Failure> {
        self.read(cx, input)?.set(cx, execution)
    }

    fn delete(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<Vec<String>, Failure> {
        self.desired(cx, input, read_each(input)?)?.delete(cx, execution)
    }

    fn linter(&self) -> Option<&dyn Linter> {
        const LINTER: fn(&Object) -> Vec<Lint> = lints::lints;
        Some(&LINTER)
    }

    fn cost(&self, _desired: &Value) -> Cost {
        Cost::Process
    }

    fn ties(&self, input: &Plain) -> Ties {
        reply::ties(input)
    }

    fn claims(&self, input: &Plain) -> Option<Claims> {
        let extent = if reply::is_removal(input) { Extent::Absent } else { Extent::Whole };
        let claims = reply::claims(input, extent)?;
        Some(match input.expose().get(Properties::BACKUP).and_then(Backup::known_suffix) {
            Some(suffix) => claims.and_backup(suffix),
            None => claims,
        })
    }
}

impl Templates {
    /// What is to be compared or set: a text that is not a template is refused.
    fn read<'a>(&self, cx: &Context, input: &'a Plain) -> Result<Desired<'a, Rendered<'a>>, Failure> {
        let stated: Properties<'a> = read(input)?;
        if let Some(text) = stated.template {
            render::check(&Source { origin: Origin::Document, text, visibility: Visibility::of(input) })?;
        }
        self.desired(cx, input, stated)
    }

    fn desired<'a>(
        &self,
        cx: &Context,
        input: &Plain,
        stated: Properties<'a>,
    ) -> Result<Desired<'a, Rendered<'a>>, Failure> {
        let template = match (stated.template, stated.source) {
            (Some(text), _) => Template::Text(text),
            (None, Some(source)) => Template::File(source.source(cx, Properties::SOURCE)?),
            (None, None) => Template::None,
        };
        let visibility = Visibility::of(input);
        let content = Rendered { template, variables: stated.variables, visibility, text: OnceCell::new() };
        let permissions =
            Permissions::find(cx, stated.mode, stated.owner, stated.group, &self.names.of(&cx.system_root))?;
        let mut desired = Desired::new(cx, stated.path, content, permissions, stated.backup).private_if_secret(input);
        (desired.exist, desired.guard) = (stated.exist, in_use(stated.validate, cx));
        Ok(desired)
    }
}

enum Template<'a> {
    Text(&'a str),
    File(SystemPath),
    /// None is stated: nothing is rendered.
    None,
}

/// What a template makes of variables.
struct Rendered<'a> {
    template: Template<'a>,
    variables: Map<String, Json>,
    visibility: Visibility,
    /// Made when it is first needed: the file with the template may not exist yet.
    text: OnceCell<Result<Text, Failure>>,
}

/// What was rendered.
struct Text {
    text: String,
    /// Whether it may be shown: that of a template that not everyone may read is shown as its digest.
    visibility: Visibility,
}

/// The greatest template that is read, in bytes.
const MAX_TEMPLATE: u64 = 1 << 20;

impl Rendered<'_> {
    fn text(&self) -> Result<&Text, Failure> {
        self.text.get_or_init(|| self.render()).as_ref().map_err(Failure::clone)
    }

    fn render(&self) -> Result<Text, Failure> {
        let of_file;
        let source = match &self.template {
            Template::Text(text) => Source { origin: Origin::Document, text, visibility: self.visibility },
            Template::File(path) => {
                let (text, status) = content::source_text(path, MAX_TEMPLATE)?;
                of_file = text;
                let visibility = self.visibility.min(Visibility::of_file(&status));
                Source { origin: Origin::File(path), text: &of_file, visibility }
            }
            Template::None => Source { origin: Origin::Document, text: "", visibility: self.visibility },
        };
        let text = render::render(&source, &self.variables)?;
        Ok(Text { text, visibility: source.visibility })
    }
}

impl FileContent for Rendered<'_> {
    fn property(&self) -> &'static str {
        Properties::CONTENT
    }

    fn is_in(&self, file: &File, status: &Status, at: &Path) -> Result<bool, Failure> {
        let Text { text, .. } = self.text()?;
        content::equals(file, status, text.as_bytes()).map_err(|error| cannot("read", at, error))
    }

    fn presumed(&self) -> Option<Presumed> {
        let failure = self.text().err()?;
        let paths = match &self.template {
            Template::File(path) => vec![path.to_path_buf()],
            Template::Text(_) | Template::None => Vec::new(),
        };
        Some(Presumed::of(failure, paths))
    }

    fn echo(&self, state: &mut Object) {
        if let Some(shown) = self.shown() {
            shown.report(state);
        }
    }

    fn is_shown_as_stated(&self) -> bool {
        false
    }

    fn announce(&self, shown: Option<&Shown>, state: &mut Object) {
        if let Some(shown) = shown {
            shown.report(state);
        }
    }

    fn shown(&self) -> Option<Shown> {
        let Text { text, visibility } = self.text().ok()?;
        let (bytes, size) = (text.as_bytes(), text.len() as u64);
        Some(match visibility {
            Visibility::Shown => Shown::of(bytes),
            Visibility::Digest => Shown::Digest { size, sha256: Some(hex(&Sha256::digest(bytes))) },
            Visibility::Hidden => Shown::Digest { size, sha256: None },
        })
    }

    fn shown_of(&self, file: &File, status: &Status) -> io::Result<Shown> {
        let visibility = match &self.template {
            Template::Text(_) => self.visibility,
            // Of what cannot be rendered it is not known.
            Template::File(_) => self.text().map_or(self.visibility.min(Visibility::Digest), |text| text.visibility),
            Template::None => self.visibility.min(Visibility::Digest),
        };
        let of_file = if let Template::File(_) = self.template { Visibility::of_file(status) } else { visibility };
        match visibility.min(of_file) {
            Visibility::Hidden => Ok(Shown::Digest { size: status.size, sha256: None }),
            visibility => Shown::of_file(file, status, visibility == Visibility::Shown),
        }
    }

    fn give(&self, current: &Current, at: &Path, state: &mut Object) -> Result<(), Failure> {
        if let Template::None = self.template {
            return Ok(());
        }
        let reported = self.report(&current.file, &current.status, state);
        reported.map_err(|error| cannot("read", at, error))
    }

    fn bytes(&self) -> Result<Cow<'_, [u8]>, Failure> {
        Ok(self.text()?.text.as_bytes().into())
    }

    fn write(&self, replacement: &Replacement<'_>) -> Result<(), Failure> {
        Ok(replacement.write(self.text()?.text.as_bytes())?)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use stead_system::fs::SystemRoot;

    use super::*;

    #[test]
    fn nothing_is_shown_of_what_holds_a_secret() {
        let root = tempfile::tempdir().unwrap();
        let cx = Context { system_root: SystemRoot::below(root.path()), ..Context::new(root.path()) };
        std::fs::write(root.path().join("f"), "former Canary").unwrap();
        std::fs::write(root.path().join("t"), "{{ a | Canary }}").unwrap();
        for stated in [
            json!({"path": "f", "template": "{{ a }}", "variables": {"a": "Canary"}}),
            json!({"path": "f", "template": "{{ a | Canary }}", "variables": {"a": 1}}),
            json!({"path": "f", "template": "{{ Canary }}"}),
            json!({"path": "f", "template": "{% Canary %}"}),
            json!({"path": "f", "template": "{{ a.b.Canary() }}", "variables": {"a": {"b": "Canary"}}}),
            json!({"path": "f", "source": "t", "variables": {"a": "Canary"}}),
        ] {
            let input = Plain::secret(stated);
            let templates = Templates::default();
            let what_if = templates.set(&cx, &input, Execution::WhatIf).map(|reply| {
                let after = reply.after.map(|state| state.to_json().to_string());
                let failure = reply.presumed.map(|presumed| presumed.failure.message);
                format!("{:?} {after:?} {failure:?} {:?}", reply.what_if, reply.effects)
            });
            let get = templates.get(&cx, &input).map(|state| state.to_json().to_string());
            for shown in [what_if, get].map(|shown| shown.unwrap_or_else(|failure| failure.message)) {
                assert!(!shown.contains("Canary"), "{shown}");
            }
        }
    }
}
