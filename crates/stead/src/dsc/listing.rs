//! What there is: resources, functions, extensions, schemas.

use std::io;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value as Json;
use stead_core::expr;
use stead_core::id::TypeName;
use stead_core::manifest::{self, Catalog, Implementation, Manifest, ResourceKind, extension_listing};
use stead_core::wire::function_definition;

use super::session_here;
use crate::exit::Exit;
use crate::interrupt;
use crate::process_env::ProcessEnv;
use crate::request::{FunctionsRequest, ListRequest};
use crate::schemas;
use crate::terminal::{self, ListFormat, OutputFormat, data, is_terminal, list_item, print_coloured, table};
use stead_engine::Session;
use stead_system::process::Environment;

/// Everything of a listing: as JSON, or as a table of some columns for users.
struct Listing<I> {
    items: I,
    columns: &'static [&'static str],
    row: fn(&Json) -> Vec<String>,
}

impl<I: IntoIterator<Item: Serialize>> Listing<I> {
    fn print(self, format: Option<ListFormat>) {
        let most = match format {
            None if is_terminal() => terminal::width(&io::stdout()),
            Some(ListFormat::TableNoTruncate) => None,
            _ => {
                for (at, item) in self.items.into_iter().enumerate() {
                    list_item(&item, format.unwrap_or(ListFormat::Json), at == 0);
                }
                return;
            }
        };
        let items = self.items.into_iter().filter_map(|item| serde_json::to_value(item).ok());
        let rows: Vec<_> = items.map(|item| (self.row)(&item)).collect();
        print_coloured(&table(self.columns, &rows, most));
    }
}

/// Returns whether a text fits a filter in which `*` stands for any text and `?` for one character; without regard to case.
pub(crate) fn fits(filter: &str, text: &str) -> bool {
    fn matches(filter: &[char], text: &[char]) -> bool {
        match filter.split_first() {
            None => text.is_empty(),
            Some(('*', rest)) => (0..=text.len()).any(|skipped| matches(rest, text.get(skipped..).unwrap_or_default())),
            Some((one, rest)) => {
                text.split_first().is_some_and(|(first, others)| (one == first || *one == '?') && matches(rest, others))
            }
        }
    }
    let folded = |text: &str| text.to_lowercase().chars().collect::<Vec<_>>();
    matches(&folded(filter), &folded(text))
}

/// Returns whether a text has a part that fits the filter.
fn is_found(filter: &str, text: &str) -> bool {
    fits(&format!("*{filter}*"), text)
}

fn contains(text: Option<&str>, wanted: Option<&String>) -> bool {
    wanted.is_none_or(|wanted| text.is_some_and(|text| text.to_lowercase().contains(&wanted.to_lowercase())))
}

pub(super) fn resources(request: &ListRequest, session: &Session) {
    let ListRequest { name, adapter, description, tags, format } = request;
    interrupt::catch(session);
    let catalog = everything(session, adapter.as_deref());
    if let Some(filter) = adapter.as_deref().filter(|filter| has_no_adapter(session, filter)) {
        tracing::error!("Adapter not found: {filter}");
    }
    session.trace_problems();
    let name = name.as_deref().unwrap_or("*");
    let wanted = |manifest: &&Arc<Manifest>| {
        fits(name, manifest.type_name.as_str())
            && is_carried_out_by(manifest, adapter.as_deref())
            && contains(manifest.description.as_deref(), description.as_ref())
            && (tags.is_empty() || tags.iter().any(|tag| manifest.tags.iter().any(|own| own.eq_ignore_ascii_case(tag))))
    };
    let shown: Vec<_> = catalog.iter().flat_map(|(_, versions)| versions).filter(wanted).collect();
    if tracing::enabled!(tracing::Level::INFO) {
        let environment = Environment::of_this_process(&[]);
        for manifest in &shown {
            tell_of_missing_programs(manifest, &environment);
        }
    }
    Listing {
        items: shown.into_iter().map(|manifest| manifest::ResourceListing::of(manifest)),
        columns: &["Type", "Kind", "Version", "Capabilities", "RequireAdapter", "Description"],
        row: |item| {
            let [type_name, kind, version, adapter, description] =
                row(item, ["type", "kind", "version", "requireAdapter", "description"]);
            vec![type_name, capitalized(&kind), version, letters(item, &OF_RESOURCES), adapter, description]
        },
    }
    .print(*format);
}

/// Says which programs of a resource are not there.
fn tell_of_missing_programs(manifest: &Manifest, environment: &Environment) {
    let Implementation::Command(command) = &manifest.implementation else { return };
    let folder = command.manifest_path.parent().unwrap_or(Path::new("/"));
    for (operation, method) in command.manifest.as_object().into_iter().flatten() {
        let executable = method.get("executable").and_then(Json::as_str);
        if let Some(executable) = executable.filter(|name| environment.find(name, folder).is_none()) {
            let of = &manifest.type_name;
            tracing::info!("Executable '{executable}' not found for operation '{operation}' for resource '{of}'");
        }
    }
}

/// Returns whether a resource is one of those that the adapters of that name carry out; any is, when there is no name.
pub(crate) fn is_carried_out_by(manifest: &Manifest, adapter: Option<&str>) -> bool {
    let own = manifest.require_adapter().map(TypeName::as_str);
    adapter.is_none_or(|filter| own.is_some_and(|own| fits(filter, own)))
}

/// Returns whether a filter names an adapter that is not there; `*` names none.
pub(crate) fn has_no_adapter(session: &Session, filter: &str) -> bool {
    let known = session.discovery().discovered().catalog.iter().flat_map(|(_, versions)| versions);
    let mut adapters = known.filter(|manifest| manifest.kind == ResourceKind::Adapter);
    filter != "*" && !adapters.any(|adapter| fits(filter, adapter.type_name.as_str()))
}

/// Everything that is known; with an adapter filter what those adapters list, as in dsc: of each the highest version, and not what
/// only files say of them.
pub(crate) fn everything(session: &Session, adapter: Option<&str>) -> Catalog {
    let mut catalog = Catalog::default();
    let Some(filter) = adapter else {
        let known = session.discovery().discovered().catalog.iter().flat_map(|(_, versions)| versions);
        known.filter(|manifest| session.lists(manifest)).for_each(|manifest| catalog.add(Arc::clone(manifest)));
        return catalog;
    };
    for adapter in session.discovery().adapters().iter().filter(|adapter| fits(filter, adapter.type_name.as_str())) {
        let listed = session.discovery().adapted_by(adapter);
        let highest =
            |versions: &[Arc<Manifest>]| versions.iter().max_by(|one, other| one.version.cmp(&other.version)).cloned();
        listed.iter().filter_map(|(_, versions)| highest(versions)).for_each(|manifest| catalog.add(manifest));
    }
    catalog
}

fn row<const N: usize>(item: &Json, keys: [&str; N]) -> [String; N] {
    keys.map(|key| match &item[key] {
        Json::Null => String::new(),
        Json::String(text) => text.clone(),
        Json::Array(items) => items.iter().filter_map(Json::as_str).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    })
}

/// What resources can do, and the letter that each has in a table, as dsc writes them.
const OF_RESOURCES: [(&str, char); 9] = [
    ("get", 'g'),
    ("set", 's'),
    ("setWhatIf", 'w'),
    ("setHandlesExist", 'x'),
    ("test", 't'),
    ("delete", 'd'),
    ("deleteWhatIf", 'W'),
    ("export", 'e'),
    ("resolve", 'r'),
];

/// The same of extensions.
const OF_EXTENSIONS: [(&str, char); 3] = [("discover", 'd'), ("secret", 's'), ("import", 'i')];

/// The letters of what something can do, a dash for what it cannot.
fn letters(item: &Json, all: &[(&str, char)]) -> String {
    let can = |name: &str| item["capabilities"].as_array().is_some_and(|own| own.iter().any(|each| each == name));
    all.iter().map(|(name, letter)| if can(name) { *letter } else { '-' }).collect()
}

fn shown_category(name: &str) -> String {
    if name == "cidr" { "CIDR".to_owned() } else { capitalized(name) }
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// The functions that fit, as they are listed; `*` stands for any text, and every category must match.
pub(crate) fn functions_like(name: Option<&str>, categories: &[String], description: Option<&str>) -> Vec<Json> {
    let has = |function: &expr::Builtin, wanted: &String| {
        function.categories.iter().any(|each| each.eq_ignore_ascii_case(wanted))
    };
    // In the order of the table: by category and name.
    let shown = expr::functions()
        .iter()
        .filter(|function| fits(name.unwrap_or("*"), function.name))
        .filter(|function| categories.iter().all(|wanted| has(function, wanted)))
        .filter(|function| description.is_none_or(|wanted| is_found(wanted, function.description)));
    shown.map(function_definition).collect()
}

/// Lists functions of expressions.
pub(crate) fn functions(request: &FunctionsRequest) -> Exit {
    let FunctionsRequest { name, categories, description, format } = request;
    Listing {
        items: functions_like(name.as_deref(), categories, description.as_deref()),
        columns: &["Category", "Function", "Syntax", "Description"],
        row: |item| {
            let [categories, name, syntax, description] = row(item, ["category", "name", "syntax", "description"]);
            let categories: Vec<String> = categories.split(", ").map(shown_category).collect();
            vec![categories.join(", "), name, syntax, description]
        },
    }
    .print(*format);
    Exit::Success
}

/// Lists extensions of a name, in which `*` stands for any text.
pub(crate) fn extensions(name: Option<&str>, format: Option<ListFormat>, env: &ProcessEnv) -> Exit {
    let session = session_here(env);
    let name = name.unwrap_or("*");
    let listed = session.listed_extensions();
    let found = listed.iter().filter(|extension| fits(name, extension.type_name.as_str()));
    session.trace_problems();
    Listing {
        items: found.map(extension_listing),
        columns: &["Type", "Version", "Capabilities", "Description"],
        row: |item| {
            let [type_name, version, description] = row(item, ["type", "version", "description"]);
            vec![type_name, version, letters(item, &OF_EXTENSIONS), description]
        },
    }
    .print(format);
    Exit::Success
}

/// Prints the schema of a type of documents or results.
pub(crate) fn schema(type_name: &str, format: Option<OutputFormat>) -> Exit {
    // The command line lets nothing else through.
    let Some(schema) = schemas::schema(type_name) else { return Exit::DscError };
    data(&schema, format);
    Exit::Success
}
