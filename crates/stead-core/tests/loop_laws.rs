//! Laws of loops over items: each document has the graph of the same document written out, instance by instance.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

#[path = "support/catalog.rs"]
mod catalog;
#[path = "support/seal.rs"]
mod seal;

use std::collections::BTreeMap;

use catalog::Known;
use proptest::prelude::*;
use serde_json::{Value as Json, json};
use stead_core::budget::Budget;
use stead_core::document;
use stead_core::graph::{Facts, Graph, Inputs, Names, Resolution, Role, Values, evaluate, resolve};
use stead_core::parameters::Supplied;
use stead_core::text::{Limits, Source, Sources};

/// One entry of a document that has loops.
#[derive(Clone, Debug)]
struct Entry {
    shape: Shape,
    /// Which of the list of users it goes over, and whether that is written at the loop.
    is_written: bool,
    has_name: bool,
    /// Entries in front of it that it waits for, as wholes.
    waits_for: Vec<prop::sample::Index>,
}

#[derive(Clone, Copy, Debug)]
enum Shape {
    One,
    Users,
    Members,
    Keys,
    /// A group for each user, in which each key is an instance.
    Groups,
    Counted,
}

#[derive(Clone, Debug)]
struct User {
    name: Json,
    keys: Vec<String>,
}

fn word() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b'c", "[d]", "e f", "ü", "1", "/g", "x:y", "[[h"]).prop_map(str::to_owned)
}

fn users() -> impl Strategy<Value = Vec<User>> {
    let name = prop_oneof![word().prop_map(Json::from), (10..20_i64).prop_map(Json::from)];
    let user = (name, prop::collection::btree_set(word(), 0..3))
        .prop_map(|(name, keys)| User { name, keys: keys.into_iter().collect() });
    prop::collection::vec(user, 0..4).prop_map(|users| {
        let by_name: BTreeMap<String, User> = users.into_iter().map(|user| (key_of(&user.name), user)).collect();
        by_name.into_values().collect()
    })
}

fn entry() -> impl Strategy<Value = Entry> {
    use Shape::{Counted, Groups, Keys, Members, One, Users};
    let shape = prop::sample::select(vec![One, Users, Members, Keys, Groups, Counted]);
    let waits_for = prop::collection::vec(any::<prop::sample::Index>(), 0..3);
    (shape, any::<bool>(), any::<bool>(), waits_for).prop_map(|(shape, is_written, has_name, waits_for)| Entry {
        shape,
        is_written,
        has_name,
        waits_for,
    })
}

fn key_of(name: &Json) -> String {
    name.as_str().map_or_else(|| name.to_string(), str::to_owned)
}

/// Text that is not an expression.
fn literal(text: &str) -> String {
    if text.starts_with('[') { format!("[{text}") } else { text.to_owned() }
}

/// The value with no text in it an expression.
fn literally(value: &Json) -> Json {
    match value {
        Json::String(text) => literal(text).into(),
        Json::Array(items) => items.iter().map(literally).collect(),
        Json::Object(members) => {
            Json::Object(members.iter().map(|(key, value)| (key.clone(), literally(value))).collect())
        }
        other => other.clone(),
    }
}

fn as_json(users: &[User]) -> Vec<Json> {
    users.iter().map(|user| json!({ "name": user.name, "keys": user.keys })).collect()
}

fn id(name: &str) -> String {
    format!("[resourceId('Test/Echo', '{}')]", name.replace('\'', "''"))
}

/// An instance that is written out.
struct Written {
    name: String,
    output: Json,
    /// What is nested in it, if it is a group.
    nested: Option<Vec<(String, Json)>>,
}

impl Entry {
    fn loop_name(at: usize) -> String {
        format!("loop{at}")
    }

    /// The name of its instances, with what the items add.
    fn name(&self, at: usize, keys: &[&str]) -> String {
        let stem = self.stem(at).into_iter().chain(keys.iter().map(|key| (*key).to_owned()));
        stem.collect::<Vec<_>>().join("-")
    }

    /// Groups are of another type; of the others only one can do without a name.
    fn stem(&self, at: usize) -> Option<String> {
        let needs_none = matches!(self.shape, Shape::Users | Shape::Keys) && at == 0;
        (self.has_name || !needs_none).then(|| format!("entry{at}"))
    }

    /// The entry with its loops.
    fn short(&self, at: usize, users: &[User], waits_for: &[String]) -> Json {
        let each = |expression: &str| {
            if self.is_written { literally(&as_json(users).into()) } else { Json::from(expression) }
        };
        let name = Self::loop_name(at);
        let over_users = json!({ "name": name, "each": each("[variables('users')]"), "as": "user" });
        let keys = json!({ "name": format!("keys{at}"), "each": "[user().keys]", "as": "key" });
        let mut instance = json!({ "type": "Test/Echo", "dependsOn": waits_for });
        if let Some(stem) = self.stem(at) {
            instance["name"] = stem.into();
        }
        let (copy, output) = match self.shape {
            Shape::One => (None, json!("alone")),
            Shape::Users => (Some(over_users), json!("[format('{0}{1}', copyIndex(), string(user().keys))]")),
            Shape::Members => {
                let copy = json!({ "name": name, "each": "[variables('members')]" });
                (Some(copy), json!(["[item().key]", "[item().value.keys]"]))
            }
            Shape::Keys => {
                let output =
                    "[map(createArray(key()), lambda('x', concat(lambdaVariables('x'), string(user().name))))]";
                (Some(json!([over_users, keys])), json!({ "is": output, "at": format!("[copyIndex('{name}')]") }))
            }
            Shape::Groups => {
                instance["type"] = "Microsoft.DSC/Group".into();
                let output = json!(["[user()]", "[key()]"]);
                let nested = json!({ "type": "Test/Echo", "copy": keys, "properties": { "output": output } });
                instance["copy"] = over_users;
                instance["properties"] = json!({ "resources": [nested] });
                return instance;
            }
            Shape::Counted => {
                instance["name"] = format!("[format('entry{at}-{{0}}', copyIndex())]").into();
                (Some(json!({ "name": name, "count": 2 })), json!("[copyIndex()]"))
            }
        };
        if let Some(copy) = copy {
            instance["copy"] = copy;
        }
        instance["properties"] = json!({ "output": output });
        instance
    }

    /// Its instances.
    fn long(&self, at: usize, users: &[User]) -> Vec<Written> {
        let written = |name: String, output: Json| Written { name, output, nested: None };
        let json = as_json(users);
        let each = || users.iter().zip(&json).enumerate();
        match self.shape {
            Shape::One => vec![written(self.name(at, &[]), "alone".into())],
            Shape::Users => each()
                .map(|(index, (user, _))| {
                    let keys = serde_json::to_string(&user.keys).unwrap();
                    written(self.name(at, &[&key_of(&user.name)]), format!("{index}{keys}").into())
                })
                .collect(),
            Shape::Members => {
                let member = |user: &User| {
                    let key = key_of(&user.name);
                    written(self.name(at, &[&key]), json!([key, user.keys]))
                };
                users.iter().map(member).collect()
            }
            Shape::Keys => each()
                .flat_map(|(index, (user, _))| {
                    let name = key_of(&user.name);
                    let one = move |key: &String| {
                        let output = json!({ "is": [format!("{key}{name}")], "at": index });
                        written(self.name(at, &[&name, key]), output)
                    };
                    user.keys.iter().map(one).collect::<Vec<_>>()
                })
                .collect(),
            Shape::Groups => each()
                .map(|(_, (user, json))| Written {
                    name: self.name(at, &[&key_of(&user.name)]),
                    output: Json::Null,
                    nested: Some(user.keys.iter().map(|key| (key.clone(), json!([json, key]))).collect()),
                })
                .collect(),
            Shape::Counted => (0..2).map(|index| written(format!("entry{at}-{index}"), index.into())).collect(),
        }
    }

    fn id(&self, written: &Written) -> String {
        match self.shape {
            Shape::Groups => id(&written.name).replace("Test/Echo", "Microsoft.DSC/Group"),
            _ => id(&written.name),
        }
    }
}

impl Written {
    fn json(&self, depends_on: &[String]) -> Json {
        let echo = |name: &str, output: &Json| json!({ "type": "Test/Echo", "name": literal(name), "properties": { "output": literally(output) } });
        let mut instance = match &self.nested {
            None => echo(&self.name, &self.output),
            Some(nested) => json!({
                "type": "Microsoft.DSC/Group",
                "name": literal(&self.name),
                "properties": { "resources": nested.iter().map(|(name, output)| echo(name, output)).collect::<Vec<_>>() },
            }),
        };
        instance["dependsOn"] = depends_on.into();
        instance
    }
}

fn short_form(entries: &[Entry], users: &[User]) -> Json {
    let whole = |at: usize| match entries[at].shape {
        Shape::One => id(&entries[at].name(at, &[])),
        _ => Entry::loop_name(at),
    };
    let instances: Vec<Json> = (0..)
        .zip(entries)
        .map(|(at, entry)| {
            let waits_for: Vec<String> = fronts(entry, at).into_iter().map(whole).collect();
            entry.short(at, users, &waits_for)
        })
        .collect();
    let members: serde_json::Map<String, Json> =
        users.iter().map(|user| (key_of(&user.name), json!({ "keys": literally(&json!(user.keys)) }))).collect();
    json!({ "variables": { "users": literally(&as_json(users).into()), "members": members }, "resources": instances })
}

fn long_form(entries: &[Entry], users: &[User]) -> Json {
    let ids = |at: usize| {
        let entry = &entries[at];
        entry.long(at, users).iter().map(|written| entry.id(written)).collect::<Vec<_>>()
    };
    let instances = (0..).zip(entries).flat_map(|(at, entry)| {
        let depends_on: Vec<String> = fronts(entry, at).into_iter().flat_map(ids).collect();
        entry.long(at, users).into_iter().map(move |written| written.json(&depends_on)).collect::<Vec<_>>()
    });
    json!({ "resources": instances.collect::<Vec<_>>() })
}

/// The entries in front of it that an entry waits for.
fn fronts(entry: &Entry, at: usize) -> Vec<usize> {
    if at == 0 { Vec::new() } else { entry.waits_for.iter().map(|index| index.index(at)).collect() }
}

/// The graph in words: each instance in order, with its needs and properties.
fn described(document: &Json) -> Vec<String> {
    let text = document.to_string();
    let mut sources = Sources::default();
    let source = sources.add(Source::new("main.json", &text));
    let (document, findings) = document::parse(source, &text, &Limits::default());
    assert!(findings.is_empty(), "{findings:?}\n{text}");
    let (catalog, facts, parameters) = (Known::with("").unwrap(), Facts::new(), Supplied::default());
    let inputs = Inputs {
        folder: "",
        catalog: &catalog,
        parameters: &parameters,
        facts: &facts,
        version: "3.0.0",
        names: Names::Unique,
        values: Values::Required,
        seal: &seal::Legible,
    };
    match resolve(&document.into(), &inputs, &mut sources) {
        Resolution::Graph(graph, _) => graph.order.iter().map(|node| line(&graph, *node, &facts)).collect(),
        Resolution::Faulty { findings, .. } => panic!("{findings:?}\n{text}"),
        Resolution::Needs(wants) => panic!("{wants:?}"),
    }
}

fn line(graph: &Graph, node: stead_core::id::NodeId, facts: &Facts) -> String {
    let budget = Budget::new(Budget::DOCUMENT);
    let place = graph.node(node);
    let view = graph.static_view((place.scope, place.iteration.as_deref()), facts, &seal::Legible, &budget);
    let stated = graph.declaration(node).properties.as_ref().filter(|_| place.role == Role::Instance);
    let properties = stated.map(|properties| evaluate(properties, &view).unwrap());
    let needs: Vec<String> =
        place.needs.iter().map(|need| format!("{:?} {}", need.kind, graph.node(need.node).path)).collect();
    let properties = properties.map(|properties| properties.to_redacted_json().to_string());
    format!("{} {properties:?} {needs:?}", place.path)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(stead_testkit::cases("STEAD_LOOPS", 256)))]

    /// A document with loops has the instances, the order, the needs and the properties of the one that is written out.
    #[test]
    fn a_loop_is_what_it_is_written_out(users in users(), entries in prop::collection::vec(entry(), 1..6)) {
        prop_assert_eq!(described(&short_form(&entries, &users)), described(&long_form(&entries, &users)));
    }
}
