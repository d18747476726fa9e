//! `explain`, `facts`, `doctor` and `puppetize`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use stead_puppet::{ModuleOptions, ModuleVersion, PlainSecrets};

use super::candidates;
use super::document::Supplied;
use super::hosts::Fleet;
use super::values::TYPE_NAMES;
use crate::request::{DocumentRequest, ExplainRequest, FactsRequest, ParameterRequest, PuppetizeRequest};
use crate::terminal::Output;

#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// A code, function, resource type, TYPE.PROPERTY or document key such as directives.onChanges; lists all of them if omitted
    #[arg(value_name = "SUBJECT", add = ArgValueCompleter::new(candidates::subjects))]
    subject: Option<String>,
    /// With 'parameter': the parameter of DOCUMENT whose value and origin to show
    #[arg(value_name = "NAME", requires = "file")]
    name: Option<String>,
    /// The document of a parameter
    #[arg(short, long, value_name = "DOCUMENT", requires = "name")]
    file: Option<PathBuf>,
    /// Manage the operating system below FOLDER instead of the running one: its labels and facts count
    #[arg(long, value_name = "FOLDER", requires = "file")]
    system_root: Option<PathBuf>,
    #[command(flatten)]
    supplied: Supplied,
}

impl From<Explain> for ExplainRequest {
    fn from(Explain { subject, name, file, system_root, supplied }: Explain) -> Self {
        match (name, file) {
            (Some(name), Some(file)) if subject.as_deref() == Some("parameter") => {
                let document =
                    DocumentRequest { supplied: supplied.into(), system_root, ..DocumentRequest::of_file(file) };
                Self::Parameter(Box::new(ParameterRequest { document, name }))
            }
            (Some(_), _) => Self::Unusable { has_name: true },
            _ if subject.as_deref() == Some("parameter") => Self::Unusable { has_name: false },
            _ => Self::Subject(subject),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Facts {
    /// One fact, such as os.family [default: all]
    #[arg(value_name = "PATH")]
    path: Option<String>,
    /// Output format; text is YAML
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
    #[command(flatten)]
    fleet: Fleet,
}

impl From<Facts> for FactsRequest {
    fn from(Facts { path, output, fleet }: Facts) -> Self {
        Self { path, output, fleet: fleet.request(None) }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Puppetize {
    /// The resources: their types
    #[arg(value_name = "TYPE", value_parser = TYPE_NAMES, hide_possible_values = true)]
    #[arg(required_unless_present_any = ["adapter", "powershell_module"])]
    types: Vec<String>,
    /// All resources that this adapter lists
    #[arg(long, value_name = "TYPE")]
    adapter: Option<String>,
    #[arg(long, value_name = "NAME", help = "All resources of this PowerShell module")]
    powershell_module: Option<String>,
    /// The name of the module, without its author
    #[arg(long, value_name = "NAME")]
    module: String,
    /// The directory of the module [default: the name of the module]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// The author of the module
    #[arg(long, value_name = "NAME", default_value = "stead")]
    author: String,
    /// The version of the module
    #[arg(long, value_name = "VERSION", default_value = "0.1.0")]
    module_version: semver::Version,
    /// Prefix of type names [default: stead_, with --dsc-compat: dsc_]
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,
    #[arg(long, help = "Name attributes as modules of Puppet.Dsc do, so that their manifests need no change")]
    dsc_compat: bool,
    /// Accept secrets as plain strings, too, not only as Sensitive
    #[arg(long)]
    plain_secrets: bool,
    #[command(flatten)]
    metadata: ModuleMetadata,
    /// Write nothing; list files that are out of date
    #[arg(long)]
    check: bool,
}

/// What `metadata.json` of a module says for its readers.
#[derive(Debug, Args)]
struct ModuleMetadata {
    /// What the module is for, in one line [default: the types of its resources]
    #[arg(long, value_name = "TEXT")]
    summary: Option<String>,
    /// Where the source of the module is
    #[arg(long, value_name = "URL")]
    source: Option<String>,
    /// Where the module is described
    #[arg(long, value_name = "URL")]
    project_page: Option<String>,
    /// Where issues of the module are reported
    #[arg(long, value_name = "URL")]
    issues_url: Option<String>,
    /// A word that the module is found by, beside 'stead'; can be repeated
    #[arg(long, value_name = "WORD")]
    tag: Vec<String>,
}

/// The version of the support module that generated providers are written for.
const SUPPORT: semver::Version = semver::Version::new(0, 1, 0);

impl From<Puppetize> for PuppetizeRequest {
    fn from(puppetize: Puppetize) -> Self {
        let engine = semver::Version::parse(env!("CARGO_PKG_VERSION")).unwrap_or(SUPPORT);
        let version = ModuleVersion::Own(puppetize.module_version);
        let usual = ModuleOptions::new(&puppetize.module, version, engine, SUPPORT);
        let usual = if puppetize.dsc_compat { usual.dsc_compatible() } else { usual };
        let ModuleMetadata { summary, source, project_page, issues_url, tag } = puppetize.metadata;
        let options = ModuleOptions {
            author: puppetize.author,
            prefix: puppetize.prefix.unwrap_or(usual.prefix),
            plain_secrets: if puppetize.plain_secrets { PlainSecrets::Accepted } else { PlainSecrets::Refused },
            summary,
            source,
            project_page,
            issues_url,
            tags: tag,
            ..usual
        };
        Self {
            types: puppetize.types,
            adapter: puppetize.adapter,
            powershell_module: puppetize.powershell_module,
            options,
            folder: puppetize.out.unwrap_or_else(|| PathBuf::from(&puppetize.module)),
            only_checks: puppetize.check,
        }
    }
}
