//! The tables that the running kernel has, and what nft makes of a text.

use std::ffi::OsString;

use serde_json::{Map, Value as Json};
use stead_core::call::{Failure, Presumed};
use stead_host::provider::Context;
use stead_system::fs::SystemPath;
use stead_system::memory_file::MemoryFile;

use super::boot::{Beside, Table, main_file};
use crate::input::{blocked, invalid, transient};
use crate::program::{self, Ended, Invocation, SearchPath, SystemProgram};

const NFT: SystemProgram = SystemProgram { name: "nft", package: "nftables" };
const UNSHARE: SystemProgram = SystemProgram { name: "unshare", package: "util-linux" };
const SHELL: SystemProgram = SystemProgram { name: "sh", package: "dash" };
const IP: SystemProgram = SystemProgram { name: "ip", package: "iproute2" };

/// Where it is as a rule.
const USUAL: &str = "/usr/sbin/nft";

/// Loads a text into the empty network that it is run in, with interfaces of these names, and prints the table, as JSON and as text.
const LOAD: &str = r#"
nft=$1 file=$2 family=$3 name=$4 ip=$5; shift 5
for interface; do "$ip" link add "$interface" type bridge >&2; done
"$nft" -f "$file" || exit 9
"$nft" -j list table "$family" "$name" && "$nft" -s list table "$family" "$name" || exit 8
"#;

/// Exit codes of that script: the text was refused; it leaves no such table.
const NOT_LOADED: i32 = 9;
const NO_TABLE: i32 = 8;

/// The content of a table, in a form in which tables that filter in the same way are equal.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Rules {
    objects: Vec<Json>,
    /// Properties that nft 1.0.6 lists as text alone, or wrongly as JSON.
    besides: Vec<String>,
}

/// The texts that nftables.service reads at boot.
pub(super) struct ReadAtBoot<'a> {
    /// The text of the main file.
    pub(super) main: &'a str,
    /// The files of the folder.
    pub(super) folder: &'a [Beside],
    /// The text of that of the table.
    pub(super) text: &'a str,
}

impl ReadAtBoot<'_> {
    /// Returns whether one of the texts has a word.
    fn mention(&self, word: &str) -> bool {
        let beside = self.folder.iter().filter_map(|file| file.text.as_deref());
        beside.chain([self.main, self.text]).any(|text| text.contains(word))
    }
}

/// The fate of a table at boot.
pub(super) enum AtBoot {
    /// The table as its file states it.
    Stated,
    /// Another one, or none.
    Other,
    /// Nothing: nft refuses what it reads.
    Refused(String),
}

/// In what-if: that there is no nft.
pub(super) fn presumed() -> Option<Presumed> {
    let missing = NFT.presumed()?;
    Some(Presumed { paths: if missing.paths.is_empty() { [USUAL.into()].into() } else { missing.paths }, ..missing })
}

/// The families and names of all tables; none without nft, which an instance in front of this one may install.
pub(super) fn tables(cx: &Context) -> Result<Vec<(String, String)>, Failure> {
    if NFT.is_missing() {
        return Ok(Vec::new());
    }
    // Of tables with flags nft 1.0.6 prints no valid JSON.
    let listed = NFT.run(cx, &["list", "tables"])?;
    let tables = listed.lines().filter_map(|line| line.strip_prefix("table ")?.split_once(' '));
    Ok(tables.map(|(family, name)| (family.to_owned(), name.to_owned())).collect())
}

/// The content of a table of the running kernel; `None` where it has none of the name.
pub(super) fn in_force(cx: &Context, table: &Table<'_>) -> Result<Option<Rules>, Failure> {
    let is_there = tables(cx)?.iter().any(|(family, name)| family == table.family && name == table.name);
    let list = |how: &str| NFT.run(cx, &[how, "list", "table", table.family, table.name]);
    is_there.then(|| Rules::of(&list("-j")?, &list("-s")?)).transpose()
}

/// The content of a table of the running kernel as text, without counters.
pub(super) fn listed(cx: &Context, table: &Table<'_>) -> Result<String, Failure> {
    let text = NFT.run(cx, &["-s", "list", "table", table.family, table.name])?;
    let mut lines: Vec<&str> = text.lines().collect();
    lines.pop();
    let content = lines.iter().skip_while(|line| !line.starts_with("table ")).skip(1);
    Ok(content.flat_map(|line| [line.strip_prefix('\t').unwrap_or(line), "\n"]).collect())
}

/// The content that a table has once a text of it is loaded, which is tried in a network of its own.
pub(super) fn meant(cx: &Context, table: &Table<'_>, content: &str, property: &str) -> Result<Rules, Failure> {
    let text = text_file(&table.text(content))?;
    let ended = load_apart(cx, table, &text, &|word| content.contains(word))?;
    if ended.code == 0 {
        return Rules::of_both(&ended.output);
    }
    check(cx, table, content, property)?;
    let failure = ended.failure("nft in a network namespace of its own");
    Err(blocked(property, format!("cannot tell what is loaded for it: {}", failure.message)))
}

/// The fate of a table at boot, which is tried in a network of its own.
pub(super) fn at_boot(
    cx: &Context,
    table: &Table<'_>,
    read: &ReadAtBoot<'_>,
    stated: &Rules,
) -> Result<AtBoot, Failure> {
    let own_path = table.path();
    if let Some(odd) = read.folder.iter().find(|file| file.text.is_none() && file.path != own_path) {
        let why = format!("'{}' is a device, a FIFO or a socket, which nft cannot read", odd.path);
        return Ok(AtBoot::Refused(why));
    }
    // nft takes some names for patterns, and finds such files by another pattern; a name that is not UTF-8 cannot be written.
    let has_odd_name = |file: &&Beside| file.path.contains(['"', '*', '?', '[', '\\', char::REPLACEMENT_CHARACTER]);
    let named = read.folder.iter().filter(|file| file.path != own_path);
    let (odd, plain): (Vec<_>, Vec<_>) = named.partition(has_odd_name);
    let mut copies = vec![(own_path, text_file(read.text)?)];
    for file in odd {
        copies.push((file.path.clone(), text_file(file.text.as_deref().unwrap_or_default())?));
    }
    let mut places: Vec<(String, String)> =
        copies.iter().map(|(path, copy)| (path.clone(), copy.path().display().to_string())).collect();
    let beside: Vec<_> =
        plain.iter().map(|file| (file.path.clone(), file.path.clone())).chain(places.iter().skip(1).cloned()).collect();
    let text = table.composed(read.main, &beside, places.first().map(|(_, at)| at.as_str()));
    let composed = text_file(&text)?;
    let ended = load_apart(cx, table, &composed, &|word| read.mention(word))?;
    match ended.code {
        0 if Rules::of_both(&ended.output)? == *stated => Ok(AtBoot::Stated),
        0 | NO_TABLE => Ok(AtBoot::Other),
        NOT_LOADED => {
            // What needs more than an empty network, such as a device, is asked of the one that there is. It has no tables at boot.
            let composed = text_file(&format!("{WITHOUT_TABLES}{text}"))?;
            let path = composed.path().display().to_string();
            let ended = run(cx, &NFT, vec!["-c".to_owned(), "-f".to_owned(), path.clone()])?;
            if ended.code == 0 {
                return Ok(AtBoot::Stated);
            }
            places.push((main_file(cx).to_owned(), path.clone()));
            Ok(AtBoot::Refused(said_of(&ended, &places, &path)))
        }
        _ => Err(ended.failure("nft in a network namespace of its own")),
    }
}

/// The line in front of a text that is tried as in a network without tables.
const WITHOUT_TABLES: &str = "flush ruleset\n";

/// The errors about copies of files, with the paths of these in place of those of the copies. The copy at `behind` begins with
/// [`WITHOUT_TABLES`].
fn said_of(ended: &Ended, places: &[(String, String)], behind: &str) -> String {
    let shown = |line: &str| {
        places.iter().fold(line.to_owned(), |line, (path, copy)| {
            let before = if copy == behind { WITHOUT_TABLES.lines().count() } else { 0 };
            relocated(&line, copy, path, before)
        })
    };
    ended.errors().map(shown).collect::<Vec<_>>().join("\n")
}

/// A line of an error with the path of a file in place of that of its copy, and without the lines that the copy has before it.
fn relocated(line: &str, copy: &str, path: &str, before: usize) -> String {
    let copy = format!("{copy}:");
    let mut parts = line.split(copy.as_str());
    let mut relocated = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (number, rest) = part.split_at(part.find(|each: char| !each.is_ascii_digit()).unwrap_or(part.len()));
        let own = number.parse::<usize>().ok().and_then(|number| number.checked_sub(before));
        let number = own.map_or_else(|| number.to_owned(), |own| own.to_string());
        relocated.extend([path, ":", &number, rest]);
    }
    relocated
}

/// Loads a text into an empty network, in which there are the interfaces that it names, with all that it includes.
fn load_apart(
    cx: &Context,
    table: &Table<'_>,
    text: &MemoryFile,
    mentions: &dyn Fn(&str) -> bool,
) -> Result<Ended, Failure> {
    let found = |program: &SystemProgram| program.find().map_err(|missing| missing.failure);
    let ip = IP.find().ok();
    // A rule about an interface is loaded where one has the name. Of loopback there is one already.
    let interfaces = stead_system::network::interfaces().into_keys().filter(|_| ip.is_some());
    let interfaces = interfaces.filter(|name| name != "lo" && mentions(name));
    let own = [table.family.into(), table.name.into(), ip.clone().unwrap_or_default().into_os_string()];
    let words = ["-n", "--"].map(OsString::from).into_iter().chain([found(&SHELL)?.into_os_string()]);
    let words = words.chain(["-c", LOAD, "stead"].map(OsString::from));
    let words = words.chain([found(&NFT)?.into_os_string(), text.path().into_os_string()]).chain(own);
    run(cx, &UNSHARE, words.map(|word| word.to_string_lossy().into_owned()).chain(interfaces).collect())
}

/// Fails where the running kernel would not take the text of a table. Changes nothing.
pub(super) fn check(cx: &Context, table: &Table<'_>, content: &str, property: &str) -> Result<(), Failure> {
    load_as(cx, &["-c"], table, content, property)
}

/// Has the running kernel have a table as a text states it, in place of the one that it has.
pub(super) fn load(cx: &Context, table: &Table<'_>, content: &str, property: &str) -> Result<(), Failure> {
    load_as(cx, &[], table, content, property)
}

/// Removes a table of the running kernel.
pub(super) fn remove(cx: &Context, table: &Table<'_>) -> Result<(), Failure> {
    NFT.run(cx, &["delete", "table", table.family, table.name]).map(|_| ())
}

fn load_as(cx: &Context, how: &[&str], table: &Table<'_>, content: &str, property: &str) -> Result<(), Failure> {
    let text = text_file(&table.text(content))?;
    let path = text.path().display().to_string();
    let arguments = how.iter().chain(&["-f", &path]).map(|&word| word.to_owned()).collect();
    let ended = run(cx, &NFT, arguments)?;
    if ended.code == 0 {
        return Ok(());
    }
    let said: Vec<String> = ended.errors().map(|line| located(line, &path)).collect();
    let message = format!("nft refuses the table:\n{}", said.join("\n"));
    // An interface may come later, as that of a tunnel does.
    let waits = said.iter().any(|line| line.ends_with("Interface does not exist"));
    Err(if waits { blocked(property, message) } else { invalid(property, message) })
}

/// A line of an error with the number that a line has in the content, in place of that in the whole text.
fn located(line: &str, path: &str) -> String {
    let numbered =
        line.strip_prefix(path).and_then(|rest| rest.strip_prefix(':')).and_then(|rest| rest.split_once(':'));
    let number = numbered.and_then(|(number, _)| number.parse::<usize>().ok()?.checked_sub(Table::LINES_BEFORE));
    match (numbered, number.filter(|number| *number > 0)) {
        (Some((_, rest)), Some(number)) => format!("line {number}, characters {rest}"),
        _ => line.replace(path, "the table"),
    }
}

fn text_file(text: &str) -> Result<MemoryFile, Failure> {
    MemoryFile::new("nftables", text.as_bytes())
        .map_err(|error| transient("", format!("cannot hand the table to nft: {error}")))
}

fn run(cx: &Context, program: &SystemProgram, arguments: Vec<String>) -> Result<Ended, Failure> {
    let invocation = Invocation {
        program: program.find().map_err(|missing| missing.failure)?.to_string_lossy().into_owned(),
        arguments,
        environment: vec![("LC_ALL".to_owned(), "C.UTF-8".to_owned())],
        directory: SystemPath::here("/"),
        timeout: None,
        search: SearchPath::System,
    };
    program::run(cx, &invocation, program.name)
}

fn parsed(text: &str) -> Result<Vec<Json>, Failure> {
    let listed: Option<Json> = serde_json::from_str(text).ok();
    let objects = listed.as_ref().and_then(|listed| listed.get("nftables")?.as_array());
    objects.cloned().ok_or_else(|| transient("", "nft lists its tables in a form that is not known"))
}

impl Rules {
    /// Those of a table that is listed as JSON, and behind that as text.
    fn of_both(listed: &str) -> Result<Self, Failure> {
        let (json, text) = listed.split_once('\n').unwrap_or((listed, ""));
        Self::of(json, text)
    }

    fn of(json: &str, text: &str) -> Result<Self, Failure> {
        let is_content = |each: &Json| each.get("metainfo").is_none() && each.get("table").is_none();
        let mut objects: Vec<Json> = parsed(json)?.into_iter().filter(is_content).collect();
        let mut filled = Vec::new();
        for each in &objects {
            note_filled(each, &mut filled);
        }
        for each in &mut objects {
            settle(each, &filled);
        }
        // Rules count in their order, and all else by its name.
        objects.sort_by_cached_key(|each| if each.get("rule").is_some() { chain_of(each) } else { each.to_string() });
        Ok(Self { objects, besides: besides(text) })
    }
}

/// The flags and comments of a table, the comments of its chains and how its sets merge elements, each with what it belongs to.
fn besides(text: &str) -> Vec<String> {
    let (mut all, mut block) = (Vec::new(), "");
    for line in text.lines() {
        let words = line.trim();
        if let Some(begun) = words.strip_suffix('{').filter(|_| !line.starts_with("\t\t")) {
            block = begun;
        } else if line == "\t}" {
            block = "";
        } else if words == "auto-merge" || words.starts_with("flags ") || words.starts_with("comment \"") {
            all.push(format!("{block}{words}"));
        }
    }
    all.sort();
    all
}

/// Where a rule comes among all that is sorted: behind that, chain by chain.
fn chain_of(rule: &Json) -> String {
    format!("~{}", rule.pointer("/rule/chain").unwrap_or(&Json::Null))
}

/// Notes the names of sets and maps that rules put elements into. nft 1.0.6 lists the flag `dynamic` as text alone, and a
/// statement about a map as its text.
fn note_filled(value: &Json, filled: &mut Vec<String>) {
    match value {
        Json::Array(items) => {
            for item in items {
                note_filled(item, filled);
            }
        }
        Json::String(text) => {
            let named = ["add @", "update @"].iter().find_map(|op| text.strip_prefix(op)?.split_whitespace().next());
            filled.extend(named.map(str::to_owned));
        }
        Json::Object(members) => {
            if matches!(members.get("op").and_then(Json::as_str), Some("add" | "update")) {
                let named = ["set", "map"].iter().filter_map(|kind| members.get(*kind)?.as_str()?.strip_prefix('@'));
                filled.extend(named.map(str::to_owned));
            }
            for member in members.values() {
                note_filled(member, filled);
            }
        }
        _ => {}
    }
}

/// Takes out what the kernel counts and numbers, and what packets put into a set.
fn settle(value: &mut Json, filled: &[String]) {
    match value {
        Json::Array(items) => items.iter_mut().for_each(|each| settle(each, filled)),
        Json::Object(members) => {
            let is_filled = is_filled(members, filled);
            members.retain(|name, _| !matches!(name.as_str(), "handle" | "expires" | "used" | "used_unit"));
            let is_counter = members.contains_key("packets") && members.contains_key("bytes");
            if is_counter {
                members.remove("packets");
                members.remove("bytes");
            }
            if let Some(Json::Array(elements)) = members.get_mut("elem") {
                elements.retain(|element| !is_filled && !is_passing(element));
                for element in elements.iter_mut() {
                    settle(element, filled);
                }
                elements.sort_by_cached_key(ToString::to_string);
            }
            // A set without elements lists none.
            members
                .retain(|name, value| name != "elem" || value.as_array().is_none_or(|elements| !elements.is_empty()));
            members.values_mut().for_each(|each| settle(each, filled));
        }
        _ => {}
    }
}

/// Returns whether packets put elements into a set.
fn is_filled(set: &Map<String, Json>, filled: &[String]) -> bool {
    let is_named = set.get("name").and_then(Json::as_str).is_some_and(|name| filled.iter().any(|each| each == name));
    let flags = set.get("flags").and_then(Json::as_array);
    set.contains_key("type") && (is_named || flags.is_some_and(|flags| flags.iter().any(|flag| flag == "dynamic")))
}

/// Returns whether time takes an element out of its set.
fn is_passing(element: &Json) -> bool {
    // Of a map it is the key that passes.
    let element = element.get(0).unwrap_or(element);
    element.get("elem").is_some_and(|element| ["timeout", "expires"].iter().any(|name| element.get(name).is_some()))
}
