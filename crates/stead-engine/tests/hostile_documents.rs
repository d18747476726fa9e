//! Whatever is in a document, it is refused or made ready in little time and memory, without a panic.
//!
//! The documents are those of the corpus, taken apart and put together by what is known to hurt: values that repeat, nest,
//! double and loop. `STEAD_DOCUMENTS=100000` tries so many, `STEAD_FIRST_DOCUMENT=487` begins with that one. What the system
//! ends, and not an assertion, is left in `hostile-document.yaml` below the folder of temporary files of cargo's `target`.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]

#[path = "../../stead-core/tests/support/random.rs"]
mod random;

use std::fs;
use std::path::Path;
use std::time::Duration;

use random::Numbers;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use stead_core::diag::{any_error, render};
use stead_core::event::Mode;
use stead_core::value::Object;
use stead_engine::{Host, HostOptions};
use stead_testkit::{Case, asked, repository, times};

/// Of processor time, for one document in a debug build. The slowest known, a hundred million instances, takes a third of it.
const SOON: Duration = Duration::from_secs(30);
/// By how much memory may grow.
const LITTLE: u64 = 256 << 20;
/// The longest text that is made.
const LONGEST: usize = 256 << 10;

/// The values that cost much if nothing stops them.
const VALUES: &[&str] = &[
    "\"[range(0, 1000000)]\"",
    "\"[map(range(0, 10000), lambda('x', range(0, 10000)))]\"",
    "\"[concat(variables('v39'), variables('v39'))]\"",
    "\"[format('{0}{0}{0}{0}{0}{0}{0}{0}', variables('v20'))]\"",
    "\"[string(map(range(0, 1000), lambda('x', map(range(0, 1000), lambda('y', add(lambdaVariables('x'), 1))))))]\"",
    "\"[reduce(range(0, 100000), createArray(), lambda('a', 'b', concat(lambdaVariables('a'), createArray(lambdaVariables('b')))))]\"",
    "\"[padLeft('', 1000000000)]\"",
    "\"[reference(resourceId('Microsoft.DSC.Debug/Echo', 'a'))]\"",
    "99999999999999999999999999999999",
    "1e999",
    "*x9",
    "&x9 [*x9, *x9]",
    "{a: *x3, b: *x3}",
    "!!binary x",
];

/// Lines that are put between others.
fn lines(numbers: &mut Numbers) -> String {
    let power = |numbers: &mut Numbers, base: usize, most: u32| {
        base.pow(u32::try_from(numbers.below(most as usize + 1)).unwrap())
    };
    match numbers.below(5) {
        0 => format!("  copy: {{name: l, count: {}}}\n", power(numbers, 10, 9)),
        1 => {
            let doubled = |at: usize| format!("  v{at}: \"[concat(variables('v{0}'), variables('v{0}'))]\"\n", at - 1);
            format!("variables:\n  v0: aaaaaaaa\n{}", (1..2 + numbers.below(60)).map(doubled).collect::<String>())
        }
        2 => {
            let width = 2 + numbers.below(20);
            let level = |at: usize| format!("  x{at}: &x{at} [{}]\n", vec![format!("*x{}", at - 1); width].join(", "));
            format!("metadata:\n  x0: &x0 [y]\n{}", (1..2 + numbers.below(30)).map(level).collect::<String>())
        }
        3 => {
            let calls = power(numbers, 2, 13);
            format!(
                "outputs:\n  o: {{type: string, value: \"[{}'x'{}]\"}}\n",
                "string(".repeat(calls),
                ")".repeat(calls)
            )
        }
        _ => format!("- {{type: Microsoft.DSC.Debug/Echo, name: a, properties: {{output: {}}}}}\n", value(numbers)),
    }
}

fn value(numbers: &mut Numbers) -> String {
    let inner = VALUES[numbers.below(VALUES.len())];
    let (open, close) = [("[", "]"), ("{a: ", "}"), ("[[", "]]"), ("\"[", "]\"")][numbers.below(4)];
    let levels = [0, 0, 0, 1, 20, 200, 5000][numbers.below(7)];
    format!("{}{inner}{}", open.repeat(levels), close.repeat(levels))
}

/// A document with one change more.
fn changed(text: &str, others: &[String], numbers: &mut Numbers) -> String {
    let all: Vec<&str> = text.split_inclusive('\n').collect();
    let at = numbers.below(all.len() + 1);
    let to = (at + 1 + numbers.below(4)).min(all.len());
    let (before, rest) = all.split_at(at);
    let (some, after) = rest.split_at(to.saturating_sub(at));
    let middle = match numbers.below(6) {
        0 => some.concat().repeat(1 + numbers.below(2000)),
        1 => some.concat() + &lines(numbers),
        2 => match some.concat().split_once(": ") {
            Some((key, _)) => format!("{key}: {}\n", value(numbers)),
            None => format!("- {}\n", value(numbers)),
        },
        3 => {
            let other: Vec<&str> = others[numbers.below(others.len())].split_inclusive('\n').collect();
            let from = numbers.below(other.len() + 1);
            other[from..(from + 1 + numbers.below(8)).min(other.len())].concat()
        }
        4 => some.concat().chars().filter(|_| numbers.below(20) > 0).collect(),
        _ => {
            let marks: Vec<char> = "[]{}:,'\"&*!|>#%@- \t\n\u{feff}\0é".chars().collect();
            let mark = |c| if numbers.below(20) == 0 { marks[numbers.below(marks.len())] } else { c };
            some.concat().chars().map(mark).collect()
        }
    };
    let changed = before.concat() + &middle + &after.concat();
    let end = (0..=LONGEST.min(changed.len())).rev().find(|at| changed.is_char_boundary(*at)).unwrap_or(0);
    changed[..end].to_owned()
}

/// The documents of all cases.
fn documents(folder: &Path, found: &mut Vec<String>) {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            documents(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "txt") {
            let case = Case::parse(&path.to_string_lossy(), &fs::read_to_string(&path).unwrap());
            found.extend(case.files().filter(|(_, text)| text.contains("resources")).map(|(_, text)| text.to_owned()));
        }
    }
}

fn processor_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap()
}

/// The most memory that this process ever had, in bytes.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

fn limit(resource: Resource, most: u64) {
    setrlimit(resource, Rlimit { current: Some(most), maximum: getrlimit(resource).maximum }).unwrap();
}

/// Makes a document ready as commands do, and prints what is wrong with it.
fn prepare(host: &Host, folder: &Path, text: &str) {
    let mut session = host.session(folder);
    let findings = match session.prepare("hostile.yaml", text, Object::new()) {
        Ok(prepared) => session.check_properties(&prepared, Mode::PLAN),
        Err(unusable) => {
            assert!(any_error(&unusable.findings), "refused without an error");
            session.with_properties(unusable, Mode::PLAN).findings
        }
    };
    for finding in findings.iter().take(20) {
        let rendered = render(finding, &session.sources, false);
        assert!(!rendered.contains(|c: char| c.is_control() && c != '\n'), "{rendered:?}");
    }
}

#[test]
fn a_hostile_document_costs_little() {
    let mut known = Vec::new();
    documents(&repository().join("corpus"), &mut known);
    let host = Host::new(HostOptions::default());
    let folder = tempfile::tempdir().unwrap();
    let left = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hostile-document.yaml");
    let before = peak();
    // What goes on without an end is ended.
    limit(Resource::As, 6 << 30);
    let (first, count) = (asked("STEAD_FIRST_DOCUMENT").unwrap_or(0), times("STEAD_DOCUMENTS", 80));
    let mut longest = (Duration::ZERO, 0);
    for number in first..first + count {
        let numbers = &mut Numbers::of(41, number as u64);
        let start = known[numbers.below(known.len())].clone();
        let text = (0..=numbers.below(4)).fold(start, |text, _| changed(&text, &known, numbers));
        fs::write(&left, &text).unwrap();
        let begun = processor_time();
        limit(Resource::Cpu, begun.as_secs() + 2 * SOON.as_secs());
        prepare(&host, folder.path(), &text);
        let took = processor_time().saturating_sub(begun);
        assert!(took < SOON, "document {number} took {took:?}");
        assert!(peak() < before + LITTLE, "document {number}: memory grew by {} bytes", peak() - before);
        longest = longest.max((took, number));
    }
    println!("{count} documents: {} MiB more, the longest took {longest:?}", (peak() - before) >> 20);
}
