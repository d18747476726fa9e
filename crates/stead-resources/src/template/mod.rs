//! `Stead/Template`: a file whose content a template gives.

use std::cell::OnceCell;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value as Json};
use stead_core::call::{Execution, Failure, Presumed};
use stead_core::claims::{Claims, Extent, Ties};
use stead_core::value::{Object, Value};
use stead_host::fs::{Names, Replacement, Status};
use stead_host::provider::{Context, Cost, Plain, Provider, SetReply, State, TestReply};

use crate::file::content::{self, Shown};
use crate::file::{Current, Desired, FileContent};
use crate::input::{
    AccountName, Backup, FilePath, Mode, PathText, ReadOnly, cannot, exclusive, read, read_each, required,
};
use crate::permissions::Permissions;
use crate::{ALL_BUT_EXPORT, BuiltIn, Profile, is_wanted, reply, schema};

mod render;

use render::Origin;

const PROFILE: Profile = Profile {
    type_name: "Stead/Template",
    description: "A file whose content is rendered from a template.",
    example: include_str!("example.yaml"),
    tags: &["file", "template", "linux"],
    capabilities: ALL_BUT_EXPORT,
    schema: schema::of::<Properties<'_>>,
};

/// A file whose content is rendered from a template in the language of Jinja2, with its mode and owner. A variable that is
/// not defined is an error. Nothing is escaped, a newline at the end is kept, and one behind a block tag is removed.
/// Rendering takes at most 10 million steps and yields at most 16 MiB.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(
    title = "Stead/Template",
    extend("dependentSchemas" = { "template": { "properties": { "source": false } } })
)]
#[expect(dead_code, reason = "what is read-only is declared for the schema and for its message")]
struct Properties<'a> {
    /// Where the file is. A relative path starts at the directory of the document, or at the system root that was given. A
    /// symbolic link as the last component is refused.
    #[serde(borrow)]
    path: FilePath<'a>,
    /// The template itself. Where expressions of the document are not meant, a text that begins with '[' begins with '[['.
    #[schemars(extend("writeOnly" = true))]
    template: Option<&'a str>,
    /// A file on this machine that has the template, of at most 1 MiB; in place of 'template'. A relative path starts where
    /// that of 'path' does.
    #[serde(borrow)]
    #[schemars(extend("writeOnly" = true))]
    source: Option<PathText<'a>>,
    /// The variables that the template uses, by their names. If any of them is a secret, plans and results do not show the
    /// content.
    #[serde(default)]
    #[schemars(extend("writeOnly" = true))]
    variables: Map<String, Json>,
    /// The permissions, as octal digits in quotes. A new file gets 0644 when none are given, whatever the umask is.
    #[serde(borrow)]
    mode: Option<Mode<'a>>,
    /// The name or number of the user that the file belongs to.
    #[serde(borrow)]
    owner: Option<AccountName<'a>>,
    /// The name or number of the group that the file belongs to.
    #[serde(borrow)]
    group: Option<AccountName<'a>>,
    /// Whether former content is kept when it is replaced or removed. With true it is kept beside the file as
    /// 'NAME.backup-' and the begin of its SHA-256, every content once; with a suffix as 'NAMESUFFIX', the last one only.
    #[serde(borrow, default)]
    #[schemars(extend("writeOnly" = true, "default" = false))]
    backup: Backup<'a>,
    /// Whether the file exists.
    #[serde(rename = "_exist", default = "is_wanted")]
    exist: bool,
    /// The content of the file.
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

impl<'a> crate::input::Properties<'a> for Properties<'a> {
    fn check(&self) -> Result<(), Failure> {
        if self.exist && self.template.is_none() && self.source.is_none() {
            return Err(required(&["template", "source"]));
        }
        exclusive(("template", self.template.is_some()), ("source", self.source.is_some()))?;
        self.template.map_or(Ok(()), |text| render::check(&Origin::Document, text))
    }
}

/// `Stead/Template` as it is registered.
pub(crate) fn built_in() -> Option<BuiltIn> {
    let built_in = PROFILE.built_in(Arc::new(Templates::default()))?;
    Some(BuiltIn { keys: &["path"], ..built_in })
}

#[derive(Default)]
struct Templates {
    names: Names,
}

impl Provider for Templates {
    fn validate(&self, cx: &Context, input: &Plain) -> Result<(), Failure> {
        self.desired(cx, input, read(input)?).map(|_| ())
    }

    fn get(&self, cx: &Context, input: &Plain) -> Result<State, Failure> {
        self.desired(cx, input, read_each(input)?)?.get(&self.names)
    }

    fn test(&self, cx: &Context, input: &Plain) -> Result<TestReply, Failure> {
        self.desired(cx, input, read(input)?)?.test(cx, &self.names)
    }

    fn set(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<SetReply, Failure> {
        self.desired(cx, input, read(input)?)?.set(cx, execution)
    }

    fn delete(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<Vec<String>, Failure> {
        self.desired(cx, input, read_each(input)?)?.delete(cx, execution)
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
        Some(match input.expose().get("backup").and_then(Backup::known_suffix) {
            Some(suffix) => claims.and_backup(suffix),
            None => claims,
        })
    }
}

impl Templates {
    fn desired<'a>(
        &self,
        cx: &Context,
        input: &Plain,
        stated: Properties<'a>,
    ) -> Result<Desired<'a, Rendered<'a>>, Failure> {
        let template = match (stated.template, stated.source) {
            (Some(text), _) => Template::Text(text),
            (None, Some(source)) => Template::File(source.resolve(cx)),
            (None, None) => Template::Text(""),
        };
        let visibility = if input.is_secret() { Visibility::Hidden } else { Visibility::Shown };
        let content = Rendered { template, variables: stated.variables, visibility, text: OnceCell::new() };
        let permissions = Permissions::find(cx, stated.mode, stated.owner, stated.group, &self.names)?;
        let mut desired = Desired::new(cx, stated.path, content, permissions, stated.backup);
        desired.exist = stated.exist;
        Ok(desired)
    }
}

enum Template<'a> {
    Text(&'a str),
    File(PathBuf),
}

/// Whether states may show the content.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Visibility {
    Shown,
    Hidden,
}

/// What a template makes of variables.
struct Rendered<'a> {
    template: Template<'a>,
    variables: Map<String, Json>,
    visibility: Visibility,
    /// Made when it is first needed: the file with the template may not exist yet.
    text: OnceCell<Result<String, Failure>>,
}

/// The greatest template that is read, in bytes.
const MAX_TEMPLATE: u64 = 1 << 20;

impl Rendered<'_> {
    fn text(&self) -> Result<&str, Failure> {
        self.text.get_or_init(|| self.render()).as_deref().map_err(Failure::clone)
    }

    fn render(&self) -> Result<String, Failure> {
        match &self.template {
            Template::Text(text) => render::render(&Origin::Document, text, &self.variables),
            Template::File(path) => {
                let source = content::source_text(path, MAX_TEMPLATE)?;
                render::render(&Origin::File(path), &source, &self.variables)
            }
        }
    }
}

impl FileContent for Rendered<'_> {
    fn property(&self) -> &'static str {
        "content"
    }

    fn is_in(&self, file: &File, status: &Status, at: &Path) -> Result<bool, Failure> {
        let text = self.text()?;
        content::equals(file, status, text.as_bytes()).map_err(|error| cannot("read", at, error))
    }

    fn presumed(&self) -> Option<Presumed> {
        let failure = self.text().err()?;
        let paths = match &self.template {
            Template::File(path) => vec![path.clone()],
            Template::Text(_) => Vec::new(),
        };
        Some(Presumed { failure, paths })
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
        let text = self.text().ok()?;
        Some(match self.visibility {
            Visibility::Shown => Shown::of(text.as_bytes()),
            Visibility::Hidden => Shown::Digest { size: text.len() as u64, sha256: None },
        })
    }

    fn shown_of(&self, file: &File, status: &Status) -> io::Result<Shown> {
        match self.visibility {
            Visibility::Shown => Shown::of_file(file, status, true),
            Visibility::Hidden => Ok(Shown::Digest { size: status.size, sha256: None }),
        }
    }

    fn give(&self, current: &Current, at: &Path, state: &mut Object) -> Result<(), Failure> {
        let reported = self.report(&current.file, &current.status, state);
        reported.map_err(|error| cannot("read", at, error))
    }

    fn write(&self, replacement: &Replacement<'_>) -> Result<(), Failure> {
        Ok(replacement.write(self.text()?.as_bytes())?)
    }
}
