//! Random documents of built-in resources, and random trees that they are applied to.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use serde_json::{Map, Value as Json, json};

use crate::random::Numbers;

/// A document and the tree that it starts from.
pub(crate) struct Pair {
    number: u64,
    /// The lines of a tree.
    pub(crate) start: String,
    /// The text of the document.
    pub(crate) document: String,
    /// The names of instances that have something to do in every run, and of those that hold one.
    pub(crate) unguarded: BTreeSet<String>,
    /// The names of instances of one of several parts of a file: what one adds, another may match.
    pub(crate) lines: BTreeSet<String>,
    /// The names of instances that are about a path in a copied tree, and of those that copy one.
    pub(crate) copies: BTreeSet<String>,
    /// The names of commands that an earlier one may leave nothing to do.
    pub(crate) anticipated: BTreeSet<String>,
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "pair {}\nstart:\n{}document:\n{}", self.number, self.start, self.document)
    }
}

/// Few, so that instances often meet.
const PATHS: [&str; 9] = ["a", "b", "d", "d/x", "d/y", "d/e", "d/e/z", "new", "new/f"];

/// The documents that are only read.
const SOURCES: &str =
    "dir src 0755\nfile src/x 0640 \"x\\n\"\nfile src/y 0644 \"y\\n\"\ndir src/e 0700\nlink src/k -> x\n";

impl Pair {
    pub(crate) fn of(number: u64) -> Self {
        let mut writer = Writer { numbers: Numbers::of(17, number), names: 0, unguarded: BTreeSet::new() };
        let start = writer.tree();
        let count = 1 + writer.numbers.below(5);
        let resources = writer.instances(count, 0);
        Self::about(number, start, &resources, writer.unguarded)
    }

    /// Instances that manage one file, or a part of it.
    pub(crate) fn of_one_file(number: u64) -> Self {
        let mut writer = Writer { numbers: Numbers::of(18, number), names: 0, unguarded: BTreeSet::new() };
        let start = ["dir d 0755\n".to_owned(), writer.node("a", 5)].concat();
        let path = writer.one_of(&["a", "a", "new", "d/new"]);
        let count = 2 + writer.numbers.below(5);
        let part = |at| json!({ "name": format!("n{at}"), "type": "", "properties": {} });
        let mut resources: Vec<Json> = (0..count).map(part).collect();
        for (at, resource) in resources.iter_mut().enumerate() {
            let (type_name, mut properties) = writer.part(at);
            properties["path"] = json!(path);
            (resource["type"], resource["properties"]) = (json!(type_name), properties);
        }
        Self::about(number, start, &resources, writer.unguarded)
    }

    fn about(number: u64, start: String, resources: &[Json], unguarded: BTreeSet<String>) -> Self {
        let (anticipated, lines, copies) = (anticipated(resources), lines(resources), copies(resources));
        let document = serde_json::to_string_pretty(&json!({ "$schema": "s", "resources": resources })).unwrap();
        Self { number, start, document, unguarded, lines, copies, anticipated }
    }
}

/// The instances that an instance holds at any depth, or itself where it is not a container.
fn leaves(instance: &Json) -> Vec<Json> {
    match instance["properties"]["resources"].as_array() {
        Some(nested) => nested.iter().flat_map(leaves).collect(),
        None => vec![instance.clone()],
    }
}

/// The file that a command makes.
fn made(instance: &Json) -> Option<&str> {
    instance["properties"]["set"].as_str().and_then(|command| command.split(' ').next_back())
}

/// The path that an instance manages.
fn managed(instance: &Json) -> Option<&Path> {
    instance["properties"]["path"].as_str().or_else(|| made(instance)).map(Path::new)
}

/// Returns whether one manages what the other does, or something above it.
fn above(one: &Json, other: &Json) -> bool {
    managed(one).is_some_and(|one| managed(other).is_some_and(|other| other.starts_with(one)))
}

/// Commands that an earlier command may leave nothing to do: what programs do and look at is not known beforehand.
fn anticipated(resources: &[Json]) -> BTreeSet<String> {
    let all: Vec<Json> = resources.iter().flat_map(leaves).filter(|each| made(each).is_some()).collect();
    let is_made_before = |at: &usize| all[..*at].iter().any(|earlier| made(earlier) == made(&all[*at]));
    (0..all.len()).filter(is_made_before).map(|at| all[at]["name"].as_str().unwrap().to_owned()).collect()
}

/// The types of parts of a file.
const PARTS: [&str; 3] = ["Stead/Line", "Stead/Ini", "Stead/Block"];

/// Parts that share a file with another one.
fn lines(resources: &[Json]) -> BTreeSet<String> {
    let all: Vec<Json> =
        resources.iter().flat_map(leaves).filter(|each| PARTS.contains(&each["type"].as_str().unwrap())).collect();
    let shares = |one: &&Json| all.iter().filter(|other| managed(one) == managed(other)).count() > 1;
    all.iter().filter(shares).map(|one| one["name"].as_str().unwrap().to_owned()).collect()
}

/// Copies of trees with instances inside of them, and these instances.
fn copies(resources: &[Json]) -> BTreeSet<String> {
    let all: Vec<Json> = resources.iter().flat_map(leaves).collect();
    let is_copy = |each: &Json| each["type"] == "Stead/Directory" && each["properties"].get("source").is_some();
    let name = |each: &Json| each["name"].as_str().unwrap().to_owned();
    let meets = |copy: &Json, other: &Json| above(copy, other) && name(copy) != name(other);
    let of = |copy: &Json| {
        let inside: Vec<String> = all.iter().filter(|other| meets(copy, other)).map(name).collect();
        let itself = (!inside.is_empty()).then(|| name(copy));
        inside.into_iter().chain(itself).collect::<Vec<_>>()
    };
    all.iter().filter(|each| is_copy(each)).flat_map(of).collect()
}

fn with_value(mut ini: Json, value: &str) -> Json {
    ini["value"] = json!(value);
    ini
}

/// An instance that another one can be related to.
struct Adjacent {
    id: String,
    is_container: bool,
    leaves: Vec<Json>,
}

struct Writer {
    numbers: Numbers,
    names: usize,
    unguarded: BTreeSet<String>,
}

impl Writer {
    fn chance(&mut self, of: usize) -> bool {
        self.numbers.below(of) == 0
    }

    fn one_of<T: Clone>(&mut self, values: &[T]) -> T {
        values[self.numbers.below(values.len())].clone()
    }

    fn path(&mut self) -> &'static str {
        self.one_of(&PATHS)
    }

    fn tree(&mut self) -> String {
        let mut tree = SOURCES.to_owned();
        for name in ["a", "b"] {
            tree += &self.node(name, 10);
        }
        if self.chance(6) {
            return tree + &self.node("d", 10);
        }
        tree += "dir d 0755\n";
        for name in ["d/x", "d/y", "d/more"] {
            tree += &self.node(name, 10);
        }
        if !self.chance(3) {
            tree += "dir d/e 0750\n";
            tree += &self.node("d/e/z", 9);
        }
        tree
    }

    fn node(&mut self, name: &str, kinds: usize) -> String {
        let mode = self.one_of(&["0644", "0600", "0755"]);
        let content = self.one_of(&["", "x\\n", "one\\ntwo\\n", "one\\ntwo\\nthree", "\\u00ff"]);
        match self.numbers.below(kinds) {
            0..4 => format!("file {name} {mode} \"{content}\"\n"),
            4 => format!("dir {name} {mode}\n").replace("06", "07"),
            5 => format!("link {name} -> nowhere\n"),
            6 => format!("link {name} -> {}\n", self.one_of(&["src/x", "src", "../src"])),
            9 => format!(
                "dir {name} 0755\nfile {name}/below 0644 \"1\"\ndir {name}/deep 0755\nfile {name}/deep/er 0600 \"2\"\n"
            ),
            _ => String::new(),
        }
    }

    fn instances(&mut self, count: usize, depth: usize) -> Vec<Json> {
        let mut earlier: Vec<Adjacent> = Vec::new();
        let mut instances = Vec::new();
        for _ in 0..count {
            self.names += 1;
            let name = format!("n{}", self.names);
            let (type_name, properties) =
                if depth < 2 && self.chance(7) { self.container(&name, depth) } else { self.resource(&name, &earlier) };
            let mut instance = json!({ "name": name, "type": type_name, "properties": properties });
            self.relate(&mut instance, &earlier);
            let is_container = instance["properties"].get("resources").is_some();
            let own = leaves(&instance);
            earlier.push(Adjacent { id: format!("[resourceId('{type_name}', '{name}')]"), is_container, leaves: own });
            instances.push(instance);
        }
        instances
    }

    fn container(&mut self, name: &str, depth: usize) -> (&'static str, Json) {
        let count = 1 + self.numbers.below(3);
        let before = self.unguarded.len();
        let nested = self.instances(count, depth + 1);
        if self.unguarded.len() > before {
            self.unguarded.insert(name.to_owned());
        }
        let type_name = if self.chance(6) { "Microsoft.DSC/Assertion" } else { "Microsoft.DSC/Group" };
        (type_name, json!({ "resources": nested }))
    }

    /// Puts an instance into its place among those before it.
    fn relate(&mut self, instance: &mut Json, earlier: &[Adjacent]) {
        let own = leaves(instance);
        // Files are known to meet; of what programs do, only a dependency tells.
        let declares = self.chance(2);
        let must = |each: &Json| declares || made(each).is_some();
        let meets = |other: &&Adjacent| {
            let all = || own.iter().flat_map(|own| other.leaves.iter().map(move |other| (own, other)));
            all().any(|(own, other)| must(own) && (above(other, own) || above(own, other)))
        };
        let mut needs: BTreeSet<&String> = earlier.iter().filter(meets).map(|other| &other.id).collect();
        if !earlier.is_empty() && self.chance(4) {
            needs.insert(&self.of(earlier).id);
        }
        if !needs.is_empty() {
            instance["dependsOn"] = json!(needs);
        }
        for directive in ["onChanges", "onFailure", "requireAny"] {
            if !earlier.is_empty() && self.chance(24) {
                let ids: BTreeSet<&String> = (0..2).map(|_| &self.of(earlier).id).collect();
                instance["directives"][directive] = json!(ids);
            }
        }
        match self.numbers.below(24) {
            0 | 1 => instance["condition"] = json!("[equals(1, 1)]"),
            2 => instance["condition"] = json!("[equals(1, 2)]"),
            _ => {}
        }
    }

    fn of<'t, T>(&mut self, all: &'t [T]) -> &'t T {
        &all[self.numbers.below(all.len())]
    }

    fn resource(&mut self, name: &str, earlier: &[Adjacent]) -> (&'static str, Json) {
        match self.numbers.below(26) {
            0..6 => ("Stead/File", self.file()),
            6..12 => ("Stead/Directory", self.directory()),
            12..16 => ("Stead/Line", self.line()),
            16..20 => ("Stead/Symlink", self.symlink()),
            20..22 => ("Stead/Command", self.command(name)),
            22 => ("Microsoft.DSC.Transitional/RunCommandOnSet", self.program(name)),
            _ => ("Microsoft.DSC.Debug/Echo", self.echo(earlier)),
        }
    }

    /// Draws an echo of a property of an earlier instance, or of a text.
    fn echo(&mut self, earlier: &[Adjacent]) -> Json {
        let referable: Vec<&Adjacent> = earlier.iter().filter(|other| !other.is_container).collect();
        if referable.is_empty() || self.chance(2) {
            return json!({ "output": "x" });
        }
        let id = self.of(&referable).id.trim_matches(['[', ']']).to_owned();
        json!({ "output": format!("[reference({id})]") })
    }

    /// A program that has something to do in every run.
    fn program(&mut self, name: &str) -> Json {
        self.unguarded.insert(name.to_owned());
        json!({ "executable": "sh", "arguments": ["-c", format!("echo run >> ran-{name}")] })
    }

    /// Some of these members beside a path; each in one of `rare` cases.
    fn with(&mut self, rare: usize, members: &[(&str, &[Json])]) -> Json {
        let mut properties = Map::from_iter([("path".to_owned(), Json::from(self.path()))]);
        for (name, values) in members {
            if self.chance(rare) {
                properties.insert((*name).to_owned(), self.one_of(values));
            }
        }
        Json::Object(properties)
    }

    fn file(&mut self) -> Json {
        let mut file = self.with(
            4,
            &[
                ("mode", &[json!("0644"), json!("0600"), json!("2711")]),
                ("backup", &[json!(true), json!(".old")]),
                ("owner", &[json!("0")]),
                ("_exist", &[json!(false), json!(true)]),
            ],
        );
        match self.numbers.below(6) {
            0..3 => file["content"] = self.one_of(&[json!("x\n"), json!("one\ntwo\n"), json!("")]),
            3 => file["contentBase64"] = json!("/w=="),
            4 => file["source"] = json!("src/x"),
            _ => {}
        }
        file
    }

    fn directory(&mut self) -> Json {
        let flags = [json!(true), json!(false)];
        let modes = [json!("0755"), json!("0700")];
        let mut directory = self.with(3, &[("mode", &modes), ("recurse", &flags), ("_exist", &flags)]);
        match self.numbers.below(6) {
            0..2 => {
                directory["entries"] = self.one_of(&[json!([]), json!(["x"]), json!(["x", "y", "e", "k"])]);
                directory["_purge"] = json!(true);
            }
            2..4 => {
                directory["source"] = json!("src");
                directory["_purge"] = self.one_of(&flags);
            }
            _ => {}
        }
        directory
    }

    fn line(&mut self) -> Json {
        let mut line = self.with(
            4,
            &[
                ("match", &[json!("^t"), json!("^one$"), json!("e")]),
                ("after", &[json!("^one"), json!("BOF")]),
                ("create", &[json!(true)]),
                ("_exist", &[json!(false)]),
            ],
        );
        line["line"] = self.one_of(&[json!("one"), json!("two"), json!("new"), json!("x")]);
        line
    }

    /// A part of a file, or all of it where it is the first one.
    fn part(&mut self, at: usize) -> (&'static str, Json) {
        let exist = !self.chance(5);
        let create = self.chance(2);
        match self.numbers.below(if at == 0 { 12 } else { 9 }) {
            0..4 => ("Stead/Line", self.line()),
            4..6 => {
                let value = self.one_of(&["1", "2"]);
                let key = self.one_of(&["k", "l"]);
                let ini = json!({ "section": "s", "key": key, "_exist": exist, "create": create });
                ("Stead/Ini", if exist { with_value(ini, value) } else { ini })
            }
            6..9 => {
                let marker = self.one_of(&["m", "n"]);
                let content = self.one_of(&["one\n", "two\nthree\n"]);
                ("Stead/Block", json!({ "name": marker, "content": content, "_exist": exist, "create": create }))
            }
            9..11 => ("Stead/File", self.file()),
            _ => ("Stead/Template", json!({ "template": "{{ a }}\n", "variables": { "a": "one" } })),
        }
    }

    fn symlink(&mut self) -> Json {
        let mut link = self.with(3, &[("force", &[json!(true)]), ("_exist", &[json!(false)])]);
        link["target"] = self.one_of(&[json!("nowhere"), json!("/src/x"), json!("src"), json!("d")]);
        link
    }

    fn command(&mut self, name: &str) -> Json {
        let made = format!("made-{}", self.numbers.below(3));
        match self.numbers.below(4) {
            0..2 => json!({ "set": format!("echo made > {made}"), "creates": made }),
            2 => json!({ "set": format!("echo made > {made}"), "test": format!("test -e {made}") }),
            _ => {
                self.unguarded.insert(name.to_owned());
                json!({ "set": format!("echo again >> {made}") })
            }
        }
    }
}
