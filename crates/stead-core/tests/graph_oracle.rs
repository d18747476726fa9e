//! The order of graphs, compared with answers that another program gave: see `corpus/graph/README.md`.
//!
//! `STEAD_GRAPHS=1000000` compares so many with the oracle itself instead of the stored digests;
//! `STEAD_GRAPH_DOCUMENTS=20000` brings so many through whole documents.

#![expect(clippy::unwrap_used, reason = "a test may fail this way")]
#![expect(clippy::disallowed_types, reason = "the oracle is another program")]
#![expect(clippy::print_stdout, reason = "it says how many were compared")]
#![expect(clippy::disallowed_methods, reason = "the oracle is another program, and its answers lie in files")]

#[path = "support/catalog.rs"]
mod catalog;
#[path = "support/random.rs"]
mod random;
#[path = "support/seal.rs"]
mod seal;

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use catalog::Known;
use random::{Numbers, scaled};
use stead_core::diag::Diagnostic;
use stead_core::document;
use stead_core::graph::{Facts, Graph, Inputs, Resolution, resolve, sort};
use stead_core::parameters::Supplied;
use stead_core::text::{Limits, Source, Sources};
use stead_testkit::{asked, times};

const SEED: u64 = 1;

fn folder() -> PathBuf {
    stead_testkit::repository().join("corpus/graph")
}

#[test]
fn examples_have_their_answers() {
    let text = fs::read_to_string(folder().join("examples.txt")).unwrap();
    let examples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(examples.len() > 10);
    for example in examples {
        let (graph, expected) = example.split_once(" =").unwrap();
        let needs = parse(graph);
        assert_eq!(sorted(&needs), expected.trim(), "{example}");
        assert_eq!(through_document(&needs), expected.trim(), "{example}, as a document");
    }
}

#[test]
fn the_generator_makes_the_graphs_of_the_readme() {
    let expected = [
        (4, "14;1:10;2:10;6:2;10:7,7;11:8;13:3"),
        (5, "5;0:3;1:0;2:1,2,1;3:3;4:1,2"),
        (8, "23;3:19;9:19;10:6;17:18;18:9,20;20:22,4;21:0,0"),
    ];
    for (index, line) in expected {
        assert_eq!(generate(SEED, index), parse(line));
    }
}

#[test]
fn random_graphs_have_the_answers_of_the_oracle() {
    if let Some(count) = asked("STEAD_GRAPHS") {
        return compare_with_oracle(count);
    }
    let digests = fs::read_to_string(folder().join("seed-1.digests")).unwrap();
    assert_eq!(digests.lines().count(), 256);
    compare(digests.lines().map(str::to_owned));
}

/// Runs the oracle and compares as it prints.
fn compare_with_oracle(count: usize) {
    let mut command = Command::new("python3");
    command.arg(folder().join("oracle.py")).args(["digests", "1", "0", &count.to_string(), "1"]);
    let mut oracle = command.stdout(Stdio::piped()).spawn().expect("python3 runs");
    let lines = BufReader::new(oracle.stdout.take().unwrap()).lines();
    assert_eq!(compare(lines.map(Result::unwrap)), count);
    assert!(oracle.wait().unwrap().success());
}

/// Compares graphs from the first on with their digests; how many there were.
fn compare(digests: impl Iterator<Item = String>) -> usize {
    let mut seen = [0_u64; 3];
    let mut count = 0;
    for (index, expected) in (0..).zip(digests) {
        let answer = sorted(&generate(SEED, index));
        assert_eq!(format!("{:08x}", crc32(answer.as_bytes())), expected, "graph {index} of seed {SEED}: {answer}");
        let kind = if answer == "cycle" { 1 } else { usize::from(answer.starts_with('m')) * 2 };
        seen[kind] += 1;
        count += 1;
    }
    let [ordered, cycles, missing] = seen;
    println!("{count} graphs agree: {ordered} in order, {cycles} with a cycle, {missing} with a missing need");
    assert!(seen.iter().all(|kind| *kind > 0), "each kind occurs: {seen:?}");
    count
}

#[test]
fn whole_documents_have_the_same_answers() {
    let count = times("STEAD_GRAPH_DOCUMENTS", 150);
    for index in (0..).take(count) {
        let needs = generate(SEED, index);
        assert_eq!(through_document(&needs), sorted(&needs), "graph {index} of seed {SEED}");
    }
    println!("{count} documents agree");
}

fn parse(line: &str) -> Vec<Vec<usize>> {
    let mut parts = line.split(';');
    let mut needs = vec![Vec::new(); parts.next().unwrap().trim().parse().unwrap()];
    for part in parts {
        let (node, wanted) = part.split_once(':').unwrap();
        needs[node.parse::<usize>().unwrap()] = wanted.trim().split(',').map(|need| need.parse().unwrap()).collect();
    }
    needs
}

/// The answer by sorting numbers.
fn sorted(needs: &[Vec<usize>]) -> String {
    for (node, wanted) in needs.iter().enumerate() {
        if let Some(need) = wanted.iter().find(|need| **need >= needs.len()) {
            return format!("missing {node}->{need}");
        }
    }
    match sort(needs) {
        Ok(order) => joined(order.iter()),
        Err(cycle) => {
            assert_cycle(needs, &cycle.0);
            "cycle".to_owned()
        }
    }
}

fn joined(order: impl Iterator<Item = impl ToString>) -> String {
    order.map(|node| node.to_string()).collect::<Vec<_>>().join(" ")
}

/// Each needs the next and the last the first, and none occurs twice.
fn assert_cycle(needs: &[Vec<usize>], cycle: &[usize]) {
    assert!(!cycle.is_empty());
    for (at, node) in cycle.iter().enumerate() {
        let next = cycle[(at + 1) % cycle.len()];
        assert!(needs[*node].contains(&next), "{node} does not need {next} in {cycle:?}");
        assert!(!cycle[..at].contains(node), "{node} is in {cycle:?} twice");
    }
}

/// The answer by way of a document: instances named after their numbers; every third need is a `reference()`.
fn through_document(needs: &[Vec<usize>]) -> String {
    let text = document_of(needs);
    let mut sources = Sources::default();
    let id = sources.add(Source::new("main.yaml", &text));
    let (document, findings) = document::parse(id, &text, &Limits::default());
    assert!(findings.is_empty());
    let (catalog, facts, parameters) = (Known::with("").unwrap(), Facts::new(), Supplied::default());
    let inputs = Inputs {
        folder: "",
        catalog: &catalog,
        parameters: &parameters,
        facts: &facts,
        version: "3.0.0",
        names: stead_core::graph::Names::Unique,
        values: stead_core::graph::Values::Required,
        seal: &seal::Legible,
    };
    match resolve(&document.into(), &inputs, &mut sources) {
        Resolution::Graph(graph, _) => {
            assert_needs(needs, &graph);
            joined(graph.order.iter().map(|id| &graph.node(*id).name))
        }
        Resolution::Faulty { findings, .. } => faults(needs, &findings),
        Resolution::Needs(wants) => panic!("nothing is asked of the machine: {wants:?}"),
    }
}

fn document_of(needs: &[Vec<usize>]) -> String {
    if needs.is_empty() {
        return "$schema: s\nresources: []\n".to_owned();
    }
    let mut text = "$schema: s\nresources:\n".to_owned();
    for (node, wanted) in needs.iter().enumerate() {
        let refers = |at: &usize| at % 3 == 2;
        let pick = |wanted_kind: bool| wanted.iter().enumerate().filter(move |(at, _)| refers(at) == wanted_kind);
        let depends = pick(false).map(|(_, need)| format!("'Test/Echo:{need}'")).collect::<Vec<_>>().join(", ");
        let refers = pick(true).map(|(_, need)| format!("\"[reference('Test/Echo:{need}')]\"")).collect::<Vec<_>>();
        let refers = refers.join(", ");
        writeln!(text, "- {{type: Test/Echo, name: '{node}', dependsOn: [{depends}], properties: {{x: [{refers}]}}}}")
            .unwrap();
    }
    text
}

fn assert_needs(needs: &[Vec<usize>], graph: &Graph) {
    for ((_, node), wanted) in graph.iter().zip(needs) {
        let mut wanted = wanted.clone();
        wanted.sort_unstable();
        wanted.dedup();
        assert_eq!(
            node.needs.iter().map(|need| need.node.index()).collect::<Vec<_>>(),
            wanted,
            "needs of {}",
            node.name
        );
    }
}

/// Returns the mistakes, in the words of the oracle. Every missing need must be named, and every cycle that is
/// reported must be one.
fn faults(needs: &[Vec<usize>], findings: &[Diagnostic]) -> String {
    let numbers = |text: &str| -> Vec<usize> { text.split('\'').filter_map(|part| part.parse().ok()).collect() };
    let missing = findings.iter().filter(|finding| finding.code.id == "E0502");
    let missing: Vec<(usize, usize)> = missing
        .map(|finding| match numbers(&finding.message)[..] {
            // Either "there is no NEED for NODE", and the need again, or "NODE refers to NEED".
            [need, node, _] | [node, need] => (node, need),
            _ => panic!("{}", finding.message),
        })
        .collect();
    if let Some((node, need)) = missing.first() {
        let all = needs.iter().flatten().filter(|need| **need >= needs.len()).count();
        assert_eq!(missing.len(), all, "every missing need is named once");
        return format!("missing {node}->{need}");
    }
    let [finding] = findings else { panic!("one cycle is found: {findings:?}") };
    assert_eq!(finding.code.id, "E0504");
    let mut cycle = numbers(&finding.message);
    assert_eq!(cycle.pop(), cycle.first().copied(), "a cycle ends where it begins");
    assert_cycle(needs, &cycle);
    "cycle".to_owned()
}

/// The CRC-32 of gzip.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 };
    !bytes.iter().fold(u32::MAX, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}

/// Returns the needs of each node of a graph, in the order written.
fn generate(seed: u64, index: u64) -> Vec<Vec<usize>> {
    let mut numbers = Numbers::of(seed, index);
    let left = numbers.below(300);
    let count = 1 + left * numbers.below(300) / 299;
    let shape = numbers.below(10);
    let density = numbers.below(4);
    let edges = numbers.below((count << density) + 1);
    let keys: Vec<u64> = (0..count).map(|_| numbers.next()).collect();
    let rank = |node: usize| (keys[node], node);
    let mut needs = vec![Vec::new(); count];
    if shape >= 8 {
        let mut ranked: Vec<usize> = (0..count).collect();
        ranked.sort_by_key(|node| rank(*node));
        ranked.windows(2).for_each(|pair| needs[pair[1]].push(pair[0]));
        if shape == 9 {
            needs[ranked[0]].push(ranked[count - 1]);
        }
    }
    for _ in 0..edges {
        let number = numbers.next();
        let (mut a, mut b) = (scaled(number >> 32, count), scaled(number, count));
        if shape != 5 && shape != 7 {
            if a == b {
                continue;
            }
            if rank(a) < rank(b) {
                (a, b) = (b, a);
            }
        }
        let times = if number.trailing_zeros() >= 4 { 2 } else { 1 };
        needs[a].extend(std::iter::repeat_n(b, times));
    }
    if shape == 4 {
        let a = numbers.below(count);
        needs[a].push(numbers.below(count));
    }
    if shape == 6 || shape == 7 {
        let a = numbers.below(count);
        needs[a].push(count + numbers.below(3));
    }
    needs
}
