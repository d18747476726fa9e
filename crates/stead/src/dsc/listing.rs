//! What there is: resources, functions, extensions, schemas.

use std::io;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value as Json;
use stead_core::expr;
use stead_core::id::TypeName;
use stead_core::manifest::{self, Catalog, Kind, Manifest, extension_listing};
use stead_core::visible::visible;
use stead_core::wire::function_definition;

use super::session_here;
use crate::args::{Extension, Function, ListFormat, Resource, Schema};
use crate::exit::Exit;
use crate::interrupt;
use crate::output::{data, is_terminal, list_item, print_coloured};
use crate::process_env::ProcessEnv;
use crate::schemas;
use stead_engine::Session;

/// Everything of a listing: as JSON, or as a table of some columns for users.
struct Listing<I> {
    items: I,
    columns: &'static [&'static str],
    row: fn(&Json) -> Vec<String>,
}

impl<I: IntoIterator<Item: Serialize>> Listing<I> {
    fn print(self, format: Option<ListFormat>) {
        let most = match format {
            None if is_terminal() => stead_system::terminal::width(&io::stdout()),
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

/// A table with a line below its headings. Columns are as wide as their cells, and all fit in `most` columns of text if
/// that is given.
pub(crate) fn table(headings: &[&str], rows: &[Vec<String>], most: Option<usize>) -> String {
    let seen = |row: &Vec<String>| row.iter().map(|cell| visible(cell).into_owned()).collect::<Vec<_>>();
    let rows: Vec<Vec<String>> = rows.iter().map(seen).collect();
    let columns = columns(headings, &rows, most);
    let line = |cell: &dyn Fn(usize) -> String| {
        let cells = columns.iter().map(|(at, width)| format!("{:width$}", shortened(&cell(*at), *width)));
        cells.collect::<Vec<_>>().join(GAP).trim_end().to_owned() + "\n"
    };
    let rule = "-".repeat(total(&columns));
    let style = anstyle::AnsiColor::Green.on_default().bold();
    let heading = line(&|at| headings.get(at).copied().unwrap_or_default().to_owned());
    let body = rows.iter().map(|row| line(&|at| row.get(at).cloned().unwrap_or_default()));
    format!("{style}{heading}{rule}{style:#}\n") + &body.collect::<String>()
}

/// What stands between two columns.
const GAP: &str = "  ";

/// Which columns are shown, and how wide. Where there is too little room, columns without any text are left out, the last
/// one, a description, is cut or left out, and then the widest are cut.
fn columns(headings: &[&str], rows: &[Vec<String>], most: Option<usize>) -> Vec<(usize, usize)> {
    /// Less of a description says nothing.
    const LEAST: usize = 12;
    let cells = |at: usize| rows.iter().filter_map(move |row| row.get(at)).map(|cell| cell.chars().count());
    let width = |(at, heading): (usize, &&str)| (at, cells(at).chain([heading.chars().count()]).max().unwrap_or(0));
    let mut columns: Vec<(usize, usize)> = headings.iter().enumerate().map(width).collect();
    let Some(most) = most.filter(|most| total(&columns) > *most) else { return columns };
    columns.retain(|(at, _)| cells(*at).any(|cell| cell > 0));
    let Some((last, description)) = columns.pop() else { return columns };
    let left = most.saturating_sub(total(&columns) + GAP.len());
    if left >= LEAST.min(description) {
        columns.push((last, description.min(left)));
    }
    while total(&columns) > most {
        match columns.iter_mut().max_by_key(|(_, width)| *width) {
            Some((_, width)) if *width > 1 => *width -= 1,
            _ => break,
        }
    }
    columns
}

fn total(columns: &[(usize, usize)]) -> usize {
    columns.iter().map(|(_, width)| width).sum::<usize>() + GAP.len() * columns.len().saturating_sub(1)
}

/// The start of a text that is longer than that many characters.
fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// Whether a text fits a filter in which `*` stands for any text and `?` for one character; without regard to case.
fn fits(filter: &str, text: &str) -> bool {
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

/// Whether a text has a part that fits the filter.
fn is_found(filter: &str, text: &str) -> bool {
    fits(&format!("*{filter}*"), text)
}

fn contains(text: Option<&str>, wanted: Option<&String>) -> bool {
    wanted.is_none_or(|wanted| text.is_some_and(|text| text.to_lowercase().contains(&wanted.to_lowercase())))
}

pub(super) fn resources(command: &Resource, session: &Session) -> Exit {
    let Resource::List { resource_name, adapter_name, description, tags, output_format } = command else {
        return Exit::Success;
    };
    interrupt::catch(session);
    let catalog = everything(session, adapter_name.as_deref());
    if let Some(filter) = adapter_name.as_deref().filter(|filter| has_no_adapter(session, filter)) {
        tracing::error!("Adapter not found: {filter}");
    }
    session.trace_problems();
    let name = resource_name.as_deref().unwrap_or("*");
    let wanted = |manifest: &&Arc<Manifest>| {
        fits(name, manifest.type_name.as_str())
            && is_carried_out_by(manifest, adapter_name.as_deref())
            && contains(manifest.description.as_deref(), description.as_ref())
            && (tags.is_empty() || tags.iter().any(|tag| manifest.tags.iter().any(|own| own.eq_ignore_ascii_case(tag))))
    };
    let shown = catalog.iter().flat_map(|(_, versions)| versions).filter(wanted);
    Listing {
        items: shown.map(|manifest| manifest::Listing::of(manifest)),
        columns: &["Type", "Kind", "Version", "Capabilities", "RequireAdapter", "Description"],
        row: |item| {
            let [type_name, kind, version, adapter, description] =
                row(item, ["type", "kind", "version", "requireAdapter", "description"]);
            vec![type_name, capitalized(&kind), version, letters(item, &OF_RESOURCES), adapter, description]
        },
    }
    .print(*output_format);
    Exit::Success
}

/// Whether a resource is one of those that the adapters of that name carry out; any is, when there is no name.
pub(crate) fn is_carried_out_by(manifest: &Manifest, adapter: Option<&str>) -> bool {
    let own = manifest.require_adapter().map(TypeName::as_str);
    adapter.is_none_or(|filter| own.is_some_and(|own| fits(filter, own)))
}

/// Whether a filter names an adapter that is not there; `*` names none.
fn has_no_adapter(session: &Session, filter: &str) -> bool {
    let known = session.discovery().discovered().catalog.iter().flat_map(|(_, versions)| versions);
    let mut adapters = known.filter(|manifest| manifest.kind == Kind::Adapter);
    filter != "*" && !adapters.any(|adapter| fits(filter, adapter.type_name.as_str()))
}

/// Everything that is known; with an adapter filter what those adapters list, as in dsc: not what only files say of them.
pub(crate) fn everything(session: &Session, adapter: Option<&str>) -> Catalog {
    let Some(filter) = adapter else { return session.discovery().discovered().catalog.clone() };
    let mut catalog = Catalog::default();
    for adapter in session.discovery().adapters().iter().filter(|adapter| fits(filter, adapter.type_name.as_str())) {
        let listed = session.discovery().adapted_by(adapter);
        listed.iter().flat_map(|(_, versions)| versions).for_each(|manifest| catalog.add(Arc::clone(manifest)));
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

pub(super) fn functions(command: &Function) -> Exit {
    let Function::List { function_name, category, description, output_format } = command;
    Listing {
        items: functions_like(function_name.as_deref(), category, description.as_deref()),
        columns: &["Category", "Function", "Syntax", "Description"],
        row: |item| {
            let [categories, name, syntax, description] = row(item, ["category", "name", "syntax", "description"]);
            let categories: Vec<String> = categories.split(", ").map(shown_category).collect();
            vec![categories.join(", "), name, syntax, description]
        },
    }
    .print(*output_format);
    Exit::Success
}

pub(super) fn extensions(command: &Extension, env: &ProcessEnv) -> Exit {
    let Extension::List { extension_name, output_format } = command;
    let session = session_here(env);
    let name = extension_name.as_deref().unwrap_or("*");
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
    .print(*output_format);
    Exit::Success
}

pub(super) fn schema(command: &Schema) -> Exit {
    // The command line lets nothing else through.
    let Some(schema) = schemas::schema(&command.type_name) else { return Exit::DscError };
    data(&schema, command.output_format);
    Exit::Success
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(most: Option<usize>) -> Vec<String> {
        let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        let rows =
            [row(["Test/Long", "1.0.0", "", "A description that is far too long"]), row(["Test/B", "2.0.0", "", ""])];
        let text = table(&["Type", "Version", "Adapter", "Description"], &rows, most);
        let plain = anstream::adapter::strip_str(&text).to_string();
        plain.lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_table_is_as_wide_as_its_cells_or_as_the_terminal() {
        assert_eq!(shown(None)[0], "Type       Version  Adapter  Description");
        assert_eq!(shown(Some(100)), shown(None));
        let narrow = ["Type       Version  Description", &"-".repeat(40), "Test/Long  1.0.0    A description that …"];
        assert_eq!(shown(Some(40))[..3], narrow);
        assert_eq!(shown(Some(25))[..3], ["Type       Version", &"-".repeat(18), "Test/Long  1.0.0"]);
        assert_eq!(shown(Some(12))[..3], ["Type   Vers…", &"-".repeat(12), "Test…  1.0.0"]);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for most in 1..60 {
            let widest = shown(Some(most)).iter().map(|line| line.chars().count()).max();
            assert!(widest <= Some(most.max(4)), "{most}: {widest:?}");
        }
    }
}
