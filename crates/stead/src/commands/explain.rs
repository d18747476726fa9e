//! `explain`: the reference of a resource, one of its properties, a function, a key of documents, a word or a code.

use stead_core::diag;
use stead_core::document::{self, OtherType, Part, TOPICS};
use stead_core::expr;
use stead_core::manifest::Implementation;
use stead_core::text;
use stead_core::visible::visible_but;
use stead_engine::{DocumentKey, InvokeError, PropertyReference, ResourceCall, Session};

use stead_resources::{BuiltIn, builtins};

use crate::codes;
use crate::exit::Exit;
use crate::input;
use crate::process_env::ProcessEnv;
use crate::terminal::{complain, print};

/// Prints what is known of the subject, or all that can be asked for.
pub(crate) fn explain(subject: Option<&str>, env: &ProcessEnv) -> Exit {
    let Some(subject) = subject else {
        print(&subjects());
        return Exit::Success;
    };
    let own = code(subject).or_else(|| word(subject)).or_else(|| keys(subject));
    let others = || other_type(subject).or_else(|| foreign(subject)).or_else(|| advice_on_type(subject));
    let found = match own.or_else(others).or_else(|| fact_of_others(subject)) {
        Some(text) => Ok(text),
        None if is_below_a_key(subject) => {
            let paths: Vec<String> = DocumentKey::all().iter().map(DocumentKey::path).collect();
            Err(Unknown::hinted(subject, paths.iter().map(String::as_str)))
        }
        None if looks_like_a_code(subject) => Err(Unknown::hinted(subject, codes::all().iter().map(|code| code.id))),
        None => resource(subject, &|| env.host.session(input::current_folder())),
    };
    match found {
        Ok(text) => {
            print(&visible_but(&text, &['\n', '\t']));
            Exit::Success
        }
        Err(unknown) => {
            complain(&format!("error: {}", unknown.message));
            if let Some(help) = unknown.help {
                complain(&format!("help: {help}"));
            }
            Exit::Unusable
        }
    }
}

/// Refuses a name without `parameter` in front of it, or `parameter` without a name.
pub(crate) fn not_explained(has_name: bool) -> Exit {
    complain(if has_name {
        "error: only 'parameter' takes a name"
    } else {
        "error: 'parameter' requires a name and a document"
    });
    complain("help: stead explain parameter NAME --file DOCUMENT");
    Exit::Unusable
}

/// All that can be explained: names in groups, and codes with their titles.
fn subjects() -> String {
    let keys = Part::ALL.iter().filter(|(part, _)| *part != Part::Word).map(|(part, title)| {
        let path = |key: &DocumentKey| key.path();
        (*title, DocumentKey::of(*part).filter(|key| key.kind != "null").map(path).collect::<Vec<_>>())
    });
    let words = TOPICS.iter().filter(|topic| topic.part == Part::Word).map(|topic| topic.name.to_owned());
    let functions = expr::functions().iter().map(|function| function.name.to_owned());
    let types = builtins().iter().map(|built_in| built_in.manifest.type_name.to_string());
    let others = [("Words", words.collect()), ("Functions", functions.collect()), ("Resources", types.collect())];
    let groups = keys.chain(others).map(|(title, names)| format!("{title}\n{}\n", in_columns(&names)));
    let codes = codes::all().into_iter().map(|code| format!("  {}  {}\n", code.id, code.title));
    groups.chain(["Codes\n".to_owned()]).chain(codes).collect()
}

/// Names side by side, as many as fit in 78 columns.
fn in_columns(names: &[String]) -> String {
    let width = names.iter().map(String::len).max().unwrap_or_default() + 2;
    let line = |names: &[String]| {
        let cells: Vec<String> = names.iter().map(|name| format!("{name:width$}")).collect();
        format!("  {}\n", cells.concat().trim_end())
    };
    names.chunks((76 / width).max(1)).map(line).collect()
}

/// Why nothing is explained.
struct Unknown {
    message: String,
    help: Option<String>,
}

impl Unknown {
    fn hinted<'a>(subject: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        let help = diag::nearest(subject, known).map(diag::did_you_mean);
        Self { message: format!("there is nothing named '{subject}' to explain"), help }
    }
}

/// E0104: a letter and four digits.
fn looks_like_a_code(subject: &str) -> bool {
    let mut letters = subject.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic())
        && subject.len() > 1
        && letters.all(|each| each.is_ascii_digit())
}

/// Returns whether a path begins with a key of documents, such as `directives.onChanges`.
fn is_below_a_key(subject: &str) -> bool {
    let key = subject.split_once('.').map(|(key, _)| key);
    key.is_some_and(|key| DocumentKey::all().iter().any(|each| each.below.eq_ignore_ascii_case(key)))
}

fn code(subject: &str) -> Option<String> {
    let code = codes::all().into_iter().find(|each| each.id.eq_ignore_ascii_case(subject))?;
    Some(format!("{}: {}\n\n{}\n", code.id, code.title, code.explanation))
}

/// A key, a directive or a word, and the function of that name; and where both a function and a resource have a name, the
/// way to the resource.
fn word(subject: &str) -> Option<String> {
    let topic = document::topic(subject).map(|topic| {
        let is_meant = |key: &&DocumentKey| key.part == topic.part && topic.names().any(|name| name == key.name);
        let keys = DocumentKey::named(subject).into_iter().filter(is_meant);
        let keys: Vec<String> = keys.map(DocumentKey::to_text).collect();
        if keys.is_empty() { of_topic(topic) } else { keys.join("\n") }
    });
    let resource = || built_in(subject).map(|name| format!("'{name}' is a resource: stead explain {name}\n"));
    let parts: Vec<String> = [topic, function(subject)].into_iter().flatten().collect();
    let others = || resource().or_else(|| other_type(subject));
    (!parts.is_empty()).then(|| parts.into_iter().chain(others()).collect::<Vec<_>>().join("\n"))
}

fn of_topic(topic: &document::Topic) -> String {
    let form = match topic.form {
        "" => String::new(),
        form => format!("\n  {}\n", form.replace('\n', "\n  ")),
    };
    format!("{} ({})\n\n{}\n{form}", topic.name, topic.part.title().to_lowercase(), topic.text)
}

/// Returns whether a resource here or a property of one is called so.
fn is_own(subject: &str) -> bool {
    built_in(subject).is_some() || properties().any(|(_, name)| name.eq_ignore_ascii_case(subject))
}

/// A word of other tools, which a document says in another way. What a resource here is called is not foreign.
fn foreign(subject: &str) -> Option<String> {
    let meanings = if is_own(subject) { Vec::new() } else { document::foreign_meanings(subject) };
    let line = |(place, advice): &(&str, String)| format!("At {place}: {advice}\n");
    let lines: String = meanings.iter().map(line).collect();
    (!lines.is_empty()).then(|| format!("'{subject}' is a word of other tools.\n\n{lines}"))
}

/// A type of another tool that is a resource here.
fn other_type(subject: &str) -> Option<String> {
    let meant = document::type_of_others(subject).filter(|_| !is_own(subject))?;
    let text = format!("'{subject}' of other tools is the resource {meant}: stead explain {meant}\n");
    Some(foreign(subject).map_or_else(|| text.clone(), |words| format!("{text}\n{words}")))
}

/// A type of another tool that is none here: in words, what to write.
fn advice_on_type(subject: &str) -> Option<String> {
    match document::other_type(subject)? {
        OtherType::Advice(advice) => Some(format!("'{subject}' is a resource of other tools: {advice}\n")),
        OtherType::Type(_) => None,
    }
}

/// A fact that other tools have under this name.
fn fact_of_others(subject: &str) -> Option<String> {
    let fact = expr::fact_of_others(subject).filter(|_| subject.starts_with("ansible_"))?;
    Some(format!("'{subject}' of other tools is the fact '{fact}': \"[facts('{fact}')]\" in an expression\n"))
}

/// Keys of documents by their path, such as `directives.onChanges`, or by the end of it where no resource is called so.
fn keys(subject: &str) -> Option<String> {
    let texts: Vec<String> = DocumentKey::named(subject).iter().map(|key| key.to_text()).collect();
    (!texts.is_empty() && built_in(subject).is_none()).then(|| texts.join("\n"))
}

fn function(subject: &str) -> Option<String> {
    let name = subject.trim_end_matches("()");
    let function = expr::functions().iter().find(|each| each.name.eq_ignore_ascii_case(name))?;
    let constraints = function.constraints.map(|text| format!("\n{text}\n")).unwrap_or_default();
    Some(format!("{}\n\n{}\n{constraints}", function.syntax, function.description))
}

/// A resource by its type or the part behind the slash, or behind a dot one of its properties.
fn resource(subject: &str, session: &dyn Fn() -> Session) -> Result<String, Unknown> {
    let split = subject.rsplit_once('.').filter(|(name, property)| !name.is_empty() && !property.contains('/'));
    // Built-in resources are known without looking for others.
    if let Some((name, property)) = split.filter(|(name, _)| built_in(subject).is_none() && built_in(name).is_some()) {
        let found = find(name, session()).map_err(|error| unknown_resource(name, &error))?;
        return self::property(&found, property);
    }
    match (find(subject, session()), split) {
        (Ok(found), _) => Ok(found.reference().to_text()),
        (Err(_), Some((name, property))) => {
            let found = find(name, session()).map_err(|error| unknown_resource(name, &error))?;
            self::property(&found, property)
        }
        (Err(error), None) => Err(unknown_resource(subject, &error)),
    }
}

/// A resource by its type, or the part behind the slash.
pub(super) fn find(name: &str, session: Session) -> Result<ResourceCall, InvokeError> {
    let built_in = built_in(name);
    match built_in.as_deref().or(name.contains('/').then_some(name)) {
        Some(type_name) => ResourceCall::find(session, type_name, None).map_err(InvokeError::from),
        None => ResourceCall::named(session, name),
    }
}

/// The type of the built-in resource that a type or the part behind the slash means. Groups and their like come last.
fn built_in(name: &str) -> Option<String> {
    let is_meant = |built_in: &&BuiltIn| {
        let type_name = &built_in.manifest.type_name;
        [type_name.as_str(), type_name.short()].iter().any(|known| known.eq_ignore_ascii_case(name))
    };
    let mut found: Vec<&BuiltIn> = builtins().iter().filter(is_meant).collect();
    found.sort_by_key(|built_in| matches!(built_in.manifest.implementation, Implementation::Engine));
    found.first().map(|built_in| built_in.manifest.type_name.to_string())
}

fn unknown_resource(subject: &str, error: &InvokeError) -> Unknown {
    if subject.contains('/') {
        return Unknown { message: error.to_string(), help: error.help().map(str::to_owned) };
    }
    let topics = document::TOPICS.iter().flat_map(document::Topic::names);
    let functions = expr::functions().iter().map(|function| function.name);
    let resources = builtins().iter().map(|built_in| built_in.manifest.type_name.short());
    let having: Vec<_> = properties().filter(|(_, each)| each.eq_ignore_ascii_case(subject)).collect();
    if let [(first, property), ..] = &*having {
        let message = format!("'{property}' is a property of {}", joined(&having));
        return Unknown { message, help: Some(format!("`stead explain {first}.{property}` explains it")) };
    }
    let known = topics.chain(functions).chain(resources).map(str::to_owned);
    let known: Vec<String> = known.chain(properties().map(|(_, name)| name)).collect();
    let unknown = Unknown::hinted(subject, known.iter().map(String::as_str));
    let all = "it explains resources, properties, functions, keys of documents, words and codes";
    Unknown { help: unknown.help.or_else(|| Some(all.to_owned())), ..unknown }
}

/// The properties of the built-in resources, each with the name of its resource.
fn properties() -> impl Iterator<Item = (&'static str, String)> {
    let of = |built_in: &'static BuiltIn| {
        let names = built_in.schema()["properties"].as_object().map(|all| all.keys().cloned().collect::<Vec<_>>());
        names.unwrap_or_default().into_iter().map(|name| (built_in.manifest.type_name.short(), name))
    };
    builtins().iter().flat_map(of)
}

/// The names of the first three of some resources.
fn joined(all: &[(&str, String)]) -> String {
    let names: Vec<String> = all.iter().take(3).map(|(name, _)| format!("'{name}'")).collect();
    let more = if all.len() > names.len() { " and others" } else { "" };
    format!("{}{more}", names.join(", "))
}

fn property(resource: &ResourceCall, name: &str) -> Result<String, Unknown> {
    let reference = resource.reference();
    let properties = reference.properties();
    let is_within = |found: &str| found.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    let found: String =
        properties.iter().filter(|each| is_within(&each.name)).map(PropertyReference::to_text).collect();
    if found.is_empty() {
        let names: Vec<String> = properties.iter().map(|property| property.name.clone()).collect();
        let foreign = document::property_meaning::<text::Never>(name, None, &names).map(|meaning| match meaning {
            document::Meaning::Property(meant) => format!("it is called '{meant}' here"),
            other => other.advice(),
        });
        let near = || diag::nearest(name, names.iter().map(String::as_str)).map(diag::did_you_mean);
        let message = format!("'{}' has no property '{name}'", reference.manifest.type_name);
        return Err(Unknown { message, help: foreign.or_else(near) });
    }
    Ok(format!("{} {}\n\n{found}", reference.manifest.type_name, reference.manifest.version))
}
