//! `Stead/SshdConfig`: the configuration of the SSH server.

use std::sync::Arc;

use stead_core::call::Failure;
use stead_core::claims::{Claim, Claims, Extent};
use stead_core::manifest::Capabilities;
use stead_core::value::{Object, Value};
use stead_declare::resource;
use stead_host::provider::{Context, Lint};
use stead_system::fs::SystemRoot;

use crate::declared::{Declared as _, States};
use crate::edit::{FileLocks, Missing};
use crate::guard::{Guard, OwnGuard};
use crate::input::FilePath;
use crate::part::{Instances, Location, Part, Parts, Stated};
use crate::{ALL, BuiltIn, is_wanted};

mod editing;
mod keyword;
mod lints;
mod reading;
mod stated;

use editing::Edited;
use keyword::{known_as, spelled};
use reading::{Files, MAIN, Section, outline};
use stated::{Block, Settings, Wanted, value_of};

/// Keywords of `sshd_config(5)`, each as a property, such as `PermitRootLogin: false`; case is ignored. True and false are written
/// as 'yes' and 'no', a list as the lines or words that the keyword takes; null removes the keyword. Other lines and comments stay.
/// As in sshd, the first value counts, in the order of 'Include'. If an included file sets another value, the line is placed before
/// that 'Include'; if that does not help, the instance fails and names the file and line. `sshd -t` checks the file before it is
/// replaced, and in what-if too; below the root of another system without the files that it includes.
#[resource(
    "Stead/SshdConfig",
    about = "Keywords of the configuration of the SSH server.",
    tags("ssh", "sshd", "security", "linux"),
    exclusive(path, metadata),
    capabilities = Capabilities { set_handles_exist: false, delete: false, delete_what_if: false, ..ALL },
)]
struct Properties<'a> {
    /// The file, such as one in `/etc/ssh/sshd_config.d`; `/etc/ssh/sshd_config` where none is stated.
    #[property(identity, place)]
    path: Option<FilePath<'a>>,
    /// In place of 'path', as documents of DSC v3 have it.
    #[property(option, name = "_metadata")]
    metadata: Option<Metadata<'a>>,
    /// Blocks of 'Match', each with its criteria and its keywords. A block with the same criteria is changed, or else a new one
    /// comes at the end of the file, or in front of a block that would count in its place.
    #[property(name = "match")]
    blocks: Option<Vec<Block>>,
    /// Removes everything else from the file: other keywords, 'Include' and blocks of 'Match', but no comments.
    #[property(name = "_purge")]
    purge: bool,
    /// The name that '_purge' had in documents of DSC v3.
    #[property(option, name = "_clobber")]
    clobber: bool,
    /// Creates the file with mode 0644 if it does not exist; '_purge' implies it.
    #[property(option)]
    create: bool,
    /// Checks the file with `sshd -t` before it is replaced, which also fails without host keys.
    #[property(option)]
    #[serde(default = "is_wanted")]
    validate: bool,
    /// Changes nothing: in documents of DSC v3 it says whether a get reports defaults of sshd as well.
    #[property(option, name = "_includeDefaults")]
    #[allow(dead_code, reason = "accepted, and without a meaning here")]
    include_defaults: Option<bool>,
    #[property(rest)]
    settings: Settings,
}

/// Where the file is, as DSC v3 says it.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
struct Metadata<'a> {
    /// The file.
    #[serde(borrow)]
    filepath: FilePath<'a>,
}

impl<'a> crate::input::Properties<'a> for Properties<'a> {
    fn check(&self) -> Result<(), Failure> {
        self.statement().map(|_| ())
    }
}

/// `Stead/SshdConfig` as it is registered.
pub(crate) fn built_in(locks: &FileLocks) -> Option<BuiltIn> {
    Properties::built_in(Arc::new(Parts::<SshdConfig>::new(locks)))
}

struct SshdConfig;

impl Part for SshdConfig {
    type Stated<'a> = Properties<'a>;
    const NOUN: &'static str = "settings";
    const PATH: Option<&'static str> = Some(MAIN);
    const HAS_EXIST: bool = false;
    const PACKAGES: &'static [&'static str] = &["openssh-server"];
    const LINTER: Option<fn(&Object) -> Vec<Lint>> = Some(lints::lints);
    const FOLDERS: &'static [&'static str] = &["/etc/ssh/sshd_config.d"];

    /// Each keyword is a part of its own.
    fn claims(stated: &Value) -> Option<Claims> {
        let members = stated.as_object()?;
        let path = members.get(Properties::PATH).or_else(|| members.get(Properties::METADATA)?.get("filepath"));
        let path = path.map_or(Some(MAIN), Value::as_str)?;
        if [Properties::PURGE, Properties::CLOBBER].iter().any(|name| members.get(name) == Some(&Value::Bool(true))) {
            return Some(Claims::path(path, Extent::Whole));
        }
        let names = members.keys().map(String::as_str);
        let names = names.filter(|name| !stated::OWN.contains(name) || *name == Properties::BLOCKS);
        let part = |name: &str| Claims::path(path, Extent::Part { line: None, key: Some(known_as(name)) }).0;
        let claims: Vec<Claim> = names.flat_map(part).collect();
        let none = || Claims::path(path, Extent::Part { line: None, key: None });
        Some(if claims.is_empty() { none() } else { Claims(claims) })
    }

    fn list(text: &str) -> Result<Instances, Failure> {
        Ok(vec![("sshd_config".to_owned(), all_of(text))])
    }
}

impl States for Properties<'_> {
    fn identified(&self) -> Object {
        [(Properties::PATH.to_owned(), Value::from(self.path()))].into()
    }

    fn stated(&self) -> Object {
        let keywords = &self.settings.keywords.0;
        let mut stated: Object = keywords.iter().cloned().collect();
        let blocks = self.blocks.as_ref().map(|blocks| blocks.iter().map(Block::stated).collect::<Vec<_>>());
        stated.extend(blocks.map(|blocks| (Properties::BLOCKS.to_owned(), Value::from(blocks))));
        stated.extend(self.purges().then(|| (Properties::PURGE.to_owned(), Value::from(true))));
        stated
    }
}

impl<'a> Stated<'a> for Properties<'a> {
    fn guard(&self) -> Option<Guard<'a>> {
        self.validate.then_some(CHECK)
    }

    fn location(&self, cx: &Context) -> Result<Location<'a>, Failure> {
        self.settings.files.get_or_init(|| self.files(Some(cx.system_root.clone())));
        Ok(Location::stated(cx, self.path(), Missing::create_if(self.create || self.purges())))
    }

    fn find(&self, text: &str) -> Result<Option<Object>, Failure> {
        if self.settings.keywords.0.is_empty() && self.blocks.is_none() && !self.purges() {
            return Ok(Some(all_of(text)));
        }
        let statement = self.statement()?;
        let settings = self.settings.files.get().map_or_else(|| self.files(None), Files::clone).settings(text)?;
        let value = |wanted: &Wanted<'_>| {
            let rests: Vec<&str> = wanted.in_force(&settings).iter().map(|setting| setting.rest.as_str()).collect();
            let holds = wanted.holds(&settings);
            let value =
                if holds { wanted.value.clone() } else { value_of(&wanted.keyword, &rests, Some(wanted.value)) };
            (wanted.name.to_owned(), value)
        };
        let mut found: Object = statement.keywords.iter().map(value).collect();
        if let Some(blocks) = &self.blocks {
            let stated = blocks.iter().zip(&statement.blocks);
            let blocks: Vec<Value> = stated.map(|(block, (_, wanted))| block.with(wanted.iter().map(value))).collect();
            found.insert(Properties::BLOCKS.to_owned(), Value::from(blocks));
        }
        if self.purges() {
            found.insert(Properties::PURGE.to_owned(), Value::from(statement.unstated(text).is_empty()));
        }
        Ok(Some(found))
    }

    fn put(&self, text: &str) -> Result<String, Failure> {
        let statement = self.statement()?;
        let files = self.settings.files.get().map_or_else(|| self.files(None), Files::clone);
        let mut edited = Edited::new(&files, text);
        if self.purges() {
            edited.remove(&statement.unstated(text));
        }
        for wanted in &statement.keywords {
            edited.put(wanted)?;
        }
        for (line, wanted) in &statement.blocks {
            let settings = files.settings(&edited.text())?;
            if wanted.iter().all(|each| each.holds(&settings)) {
                continue;
            }
            edited.put_block(line, wanted);
            for each in wanted {
                edited.put(each)?;
            }
        }
        let settings = files.settings(&edited.text())?;
        match statement.all().find_map(|wanted| Some((wanted, wanted.elsewhere(&settings, &files.own)?))) {
            None => Ok(edited.text()),
            Some((wanted, elsewhere)) => Err(elsewhere.failure(wanted.name, &files.own)),
        }
    }

    fn displaced(&self, text: &str) -> Vec<usize> {
        let statement = self.statement().ok().filter(|_| self.purges());
        statement.map(|statement| statement.unstated(text).iter().map(|at| at + 1).collect()).unwrap_or_default()
    }

    fn remove(&self, text: &str) -> Result<String, Failure> {
        Ok(text.to_owned())
    }
}

/// `sshd` gives up without this directory, which the service makes when it starts, after it has read the configuration.
const CHECK: Guard<'static> = Guard::own(
    "sshd -t -f %s",
    OwnGuard {
        accepted: "Missing privilege separation directory",
        missing: "no hostkeys available",
        include: "include",
    },
);

/// The lines that an instance states.
struct Statement<'s> {
    keywords: Vec<Wanted<'s>>,
    /// Each with what is behind the keyword of its first line.
    blocks: Vec<(String, Vec<Wanted<'s>>)>,
}

impl<'s> Statement<'s> {
    fn all(&self) -> impl Iterator<Item = &Wanted<'s>> {
        self.keywords.iter().chain(self.blocks.iter().flat_map(|(_, wanted)| wanted))
    }

    /// The numbers of the lines, from 0, with what is not stated.
    fn unstated(&self, text: &str) -> Vec<usize> {
        let blocks: Vec<Section> = self.blocks.iter().map(|(line, _)| reading::criteria(line)).collect();
        let is_stated = |line: &reading::Line<'_>| match line.keyword.as_str() {
            "match" => blocks.contains(&line.section),
            keyword => self.all().any(|wanted| wanted.keyword == keyword && wanted.section == line.section),
        };
        outline(text).iter().filter(|line| !is_stated(line)).map(|line| line.at).collect()
    }
}

impl<'a> Properties<'a> {
    /// Returns whether everything else goes.
    fn purges(&self) -> bool {
        self.purge || self.clobber
    }

    fn path(&self) -> &'a str {
        let stated = self.path.or_else(|| Some(self.metadata.as_ref()?.filepath));
        stated.map_or(MAIN, |path| path.0.0)
    }

    fn files(&self, system: Option<SystemRoot>) -> Files {
        Files::new(system, self.path())
    }

    fn statement(&self) -> Result<Statement<'_>, Failure> {
        let blocks = self.blocks.iter().flatten().enumerate().map(|(number, block)| block.wanted(number));
        Ok(Statement {
            keywords: self.settings.keywords.wanted(&Section::new(), "")?,
            blocks: blocks.collect::<Result<_, _>>()?,
        })
    }
}

/// Everything that a text states.
fn all_of(text: &str) -> Object {
    let (mut all, mut blocks): (Object, Vec<Value>) = (Object::default(), Vec::new());
    for section in outline(text).chunk_by(|_, next| next.keyword != "match") {
        match section {
            [first, rest @ ..] if first.keyword == "match" => {
                let mut block = Object::from([("criteria".to_owned(), criteria_of(&first.section))]);
                block.extend(values_of(rest));
                blocks.push(Value::Object(block));
            }
            lines => all.extend(values_of(lines)),
        }
    }
    if !blocks.is_empty() {
        all.insert(Properties::BLOCKS.to_owned(), Value::from(blocks));
    }
    all
}

/// The keywords of lines of one section.
fn values_of(lines: &[reading::Line<'_>]) -> Object {
    let mut values = Object::default();
    for (at, line) in lines.iter().enumerate() {
        let is_first = !lines.iter().take(at).any(|other| other.keyword == line.keyword);
        let same = lines.iter().filter(|other| other.keyword == line.keyword);
        let count = if keyword::accumulates(&line.keyword) { usize::MAX } else { 1 };
        let rests: Vec<&str> = same.map(|line| line.rest).take(count).collect();
        if is_first {
            values.insert(spelled(line.written).to_owned(), value_of(&line.keyword, &rests, None));
        }
    }
    values
}

fn criteria_of(section: &Section) -> Value {
    let criterion = |text: &String| match text.split_once(' ') {
        None => (text.clone(), Value::from(true)),
        Some((name, values)) => (name.to_owned(), Value::from(values.split(',').map(Value::from).collect::<Vec<_>>())),
    };
    Value::Object(section.iter().map(criterion).collect())
}
