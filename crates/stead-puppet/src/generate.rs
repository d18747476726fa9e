//! From resources to the files of a module.

use std::collections::{BTreeMap, BTreeSet};

use semver::Version;

use crate::GeneratedFiles;
use crate::input::{Dialect, ModuleOptions, ResourceToGenerate};
use crate::name::{self, AttributeNames};
use crate::resource_type::{ResourceType, class_name};
use crate::{documents, example, reference, type_file};

/// Why no module is generated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is nothing to generate a type for.
    #[error("no resource is named: a module needs at least one")]
    NoResource,
    /// The name cannot be that of a module.
    #[error("'{0}' is not a valid module name: expected lower case letters, digits and '_', with a letter first")]
    ModuleName(String),
    /// The author cannot be one.
    #[error("'{0}' is not a valid author: expected letters and digits")]
    Author(String),
    /// The prefix cannot begin the name of a type.
    #[error("'{0}' is not a valid prefix: expected lower case letters, digits and '_', with a letter first")]
    Prefix(String),
    /// The version of the source is not one.
    #[error("'{0}' is not a valid version: expected the form 1.2.3 or 1.2.3.4")]
    SourceVersion(String),
    /// The name of a resource type has characters that no resource type has.
    #[error("'{0}' is not a valid resource type: expected 'Owner[.Area...]/Name'")]
    TypeName(String),
    /// The schema of a resource is not that of an object.
    #[error("the schema of '{0}' is not a JSON object")]
    Schema(String),
    /// A version of a resource occurs twice.
    #[error("'{0}' {1} is named twice")]
    Duplicate(String, Version),
    /// Two types would have the same Ruby class.
    #[error("the types '{0}' and '{1}' would have the same Ruby class; generate one of them in another module")]
    ClassName(String, String),
}

/// A module, and what its author should know of it.
#[derive(Clone, Debug)]
pub struct Module {
    /// Its files.
    pub files: GeneratedFiles,
    /// The things that a user may not expect.
    pub warnings: Vec<Warning>,
}

/// A property of a module that its user may not expect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    /// An attribute has another name than its property suggests, which Puppet or another attribute has.
    #[error("{resource}: the property '{property}' becomes the attribute '{attribute}': the plain name is taken")]
    Renamed {
        /// The type of the resource.
        resource: String,
        /// The property.
        property: String,
        /// The attribute.
        attribute: String,
    },
    /// A property that identifies instances is not in the schema.
    #[error("{resource}: the key '{key}' is not in the schema and is ignored")]
    UnknownKey {
        /// The type of the resource.
        resource: String,
        /// The key.
        key: String,
    },
    /// A path is too long for the tar that older versions of Puppet unpack modules with.
    #[error(
        "{path}: the path in the package of the module is longer than 100 characters: older versions of tar cannot unpack it"
    )]
    LongPath {
        /// The path.
        path: String,
    },
}

/// The longest path that every tar has.
const LONGEST_PATH: usize = 100;

/// Decides what a module for some resources contains.
///
/// Guarantees: the same input gives the same files, in whatever order the resources are. Of several versions of a resource the
/// highest has the plain name, the others have theirs with the version.
///
/// # Examples
/// ```
/// use semver::Version;
/// use serde_json::json;
/// use stead_puppet::{ModuleOptions, ModuleVersion, ResourceToGenerate, generate, stale_files};
///
/// let schema = json!({
///     "type": "object",
///     "required": ["name"],
///     "properties": { "name": { "type": "string" }, "open": { "type": "boolean" } },
/// });
/// let till = ResourceToGenerate {
///     keys: vec!["name".to_owned()],
///     ..ResourceToGenerate::new("Shop/Till", Version::new(1, 0, 0), schema)
/// };
/// let version = ModuleVersion::Own(Version::new(0, 1, 0));
/// let options = ModuleOptions::new("shop", version, Version::new(0, 1, 0), Version::new(0, 1, 0));
/// let module = generate(&[till], &options)?;
/// let types: Vec<_> = module.files.keys().filter(|path| path.starts_with("lib/puppet/type/")).collect();
/// assert_eq!(types.len(), 1);
/// // What is written now is not stale.
/// assert!(stale_files(&module.files, &module.files).is_empty());
/// # Ok::<(), stead_puppet::Error>(())
/// ```
///
/// # Errors
/// When names or versions are not valid, or a resource is selected twice.
pub fn generate(resources: &[ResourceToGenerate], options: &ModuleOptions) -> Result<Module, Error> {
    check(resources, options)?;
    let version = options.version.resolve()?;
    let types = types(resources, options)?;
    let mut files = documents::files(&types, options, &version);
    for each in &types {
        let name = &each.name;
        files.insert(format!("lib/puppet/type/{name}.rb"), type_file::type_file(each));
        files.insert(format!("lib/puppet/provider/{name}/{name}.rb"), type_file::provider_file(each));
        files.insert(format!("spec/types/{name}_spec.rb"), type_file::spec_file(each));
        files.insert(format!("examples/{name}.pp"), example::file(each, options.dialect));
    }
    files.insert("REFERENCE.md".to_owned(), reference::reference(&types));
    let folder = format!("{}-{}-{version}/", options.author, options.name);
    let warnings = types.iter().flat_map(|each| warnings(each, options.dialect)).chain(long_paths(&files, &folder));
    Ok(Module {
        warnings: warnings.collect(),
        files: files.into_iter().map(|(path, text)| (path, text.into())).collect(),
    })
}

fn check(resources: &[ResourceToGenerate], options: &ModuleOptions) -> Result<(), Error> {
    let is_author = !options.author.is_empty() && options.author.chars().all(|c| c.is_ascii_alphanumeric());
    match () {
        () if resources.is_empty() => return Err(Error::NoResource),
        () if !is_name(&options.name) => return Err(Error::ModuleName(options.name.clone())),
        () if !is_author => return Err(Error::Author(options.author.clone())),
        () if !is_name(&options.prefix) => return Err(Error::Prefix(options.prefix.clone())),
        () => {}
    }
    let mut seen = BTreeSet::new();
    for resource in resources {
        let name = &resource.type_name;
        if !is_type_name(name) {
            return Err(Error::TypeName(name.clone()));
        }
        if !resource.schema.is_object() {
            return Err(Error::Schema(name.clone()));
        }
        if !seen.insert((name.to_lowercase(), &resource.version)) {
            return Err(Error::Duplicate(name.clone(), resource.version.clone()));
        }
    }
    Ok(())
}

fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// Letters and digits of any script, in words with dots between them, a slash, and a word.
fn is_type_name(name: &str) -> bool {
    let is_word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    name.split_once('/').is_some_and(|(owner, name)| is_word(name) && owner.split('.').all(is_word))
}

/// The types, sorted by their names.
fn types<'r>(resources: &'r [ResourceToGenerate], options: &ModuleOptions) -> Result<Vec<ResourceType<'r>>, Error> {
    let mut sorted: Vec<_> = resources.iter().map(|each| (each.type_name.to_lowercase(), each)).collect();
    sorted.sort_by(|(a, first), (b, second)| a.cmp(b).then_with(|| second.version.cmp(&first.version)));
    let short = short_names(&sorted);
    let mut names = AttributeNames::default();
    let mut types = Vec::with_capacity(sorted.len());
    for versions in sorted.chunk_by(|(a, _), (b, _)| a == b) {
        let Some((folded, newest)) = versions.first() else { continue };
        let plain = names.take(&type_name(newest, options, &short, folded));
        for (_, resource) in versions {
            let is_newest = resource.version == newest.version;
            let name = if is_newest { plain.clone() } else { names.take(&older(&plain, &resource.version)) };
            types.push(ResourceType::new(name, resource, options, versions.len() > 1));
        }
    }
    types.sort_by(|a, b| a.name.cmp(&b.name));
    check_classes(&types)?;
    Ok(types)
}

/// The short names, and how many resources have each.
fn short_names(resources: &[(String, &ResourceToGenerate)]) -> BTreeMap<String, usize> {
    let distinct: BTreeSet<_> = resources.iter().map(|(folded, _)| folded.as_str()).collect();
    let mut counts = BTreeMap::new();
    for folded in distinct {
        *counts.entry(short(folded)).or_default() += 1;
    }
    counts
}

fn short(type_name: &str) -> String {
    name::lower(type_name.rsplit('/').next().unwrap_or_default())
}

/// The prefix and the name of a resource type: with all of its parts, or as Puppet.Dsc has it, with the last one.
fn type_name(
    resource: &ResourceToGenerate,
    options: &ModuleOptions,
    short_names: &BTreeMap<String, usize>,
    folded: &str,
) -> String {
    let is_unique = short_names.get(&short(folded)) == Some(&1);
    let name = match options.dialect {
        Dialect::DscCompatible if is_unique => short(&resource.type_name),
        Dialect::Native | Dialect::DscCompatible => name::lower(&resource.type_name),
    };
    // `Stead/File` is `stead_file`, not `stead_stead_file`.
    let rest = name.strip_prefix(&options.prefix).unwrap_or(&name);
    format!("{}{rest}", options.prefix)
}

fn older(name: &str, version: &Version) -> String {
    format!("{name}_v{}", name::lower(&version.to_string()))
}

fn check_classes(types: &[ResourceType<'_>]) -> Result<(), Error> {
    let mut classes = BTreeMap::new();
    for each in types {
        if let Some(other) = classes.insert(class_name(&each.name), &each.name) {
            return Err(Error::ClassName(other.clone(), each.name.clone()));
        }
    }
    Ok(())
}

fn warnings(of: &ResourceType<'_>, dialect: Dialect) -> Vec<Warning> {
    let resource = &of.resource.type_name;
    let renamed = of.attributes.iter().filter_map(|attribute| {
        let property = attribute.renamed(dialect)?;
        Some(Warning::Renamed {
            resource: resource.clone(),
            property: property.to_owned(),
            attribute: attribute.name.clone(),
        })
    });
    let is_there = |key: &String| of.attributes.iter().any(|attribute| attribute.property.as_ref() == Some(key));
    let unknown = of.resource.keys.iter().filter(|key| !is_there(key));
    let unknown = unknown.map(|key| Warning::UnknownKey { resource: resource.clone(), key: key.clone() });
    renamed.chain(unknown).collect()
}

fn long_paths(files: &BTreeMap<String, String>, folder: &str) -> Vec<Warning> {
    let is_long = |path: &&String| folder.len() + path.len() > LONGEST_PATH;
    files.keys().filter(is_long).map(|path| Warning::LongPath { path: path.clone() }).collect()
}
