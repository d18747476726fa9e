//! Laws of reading scripts: any text is read, in linear time, and all that is found lies within it.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::*;
use stead_powershell_reader::class::{File, Modules, declared};
use stead_powershell_reader::manifest::{self, Context};

struct Nothing;

impl Modules for Nothing {
    fn using(&self, _: &Path, _: &str) -> Option<Arc<File>> {
        None
    }
}

/// Reads a script and all that it declares.
fn read(bytes: &[u8]) -> File {
    let file = File::read(Arc::new(PathBuf::from("a.psm1")), bytes);
    let length = file.text.as_str().len();
    for problem in &file.script.problems {
        assert!(problem.at <= length, "{problem:?}");
        assert!(file.text.as_str().is_char_boundary(problem.at), "{problem:?}");
    }
    assert!(file.script.types.iter().all(|ty| ty.at < length && file.text.as_str().is_char_boundary(ty.at)));
    declared(&file, &Nothing);
    file
}

/// The pieces that scripts are made of.
const PIECES: &[&str] = &[
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    "$(",
    "@(",
    "@{",
    "\"",
    "'",
    "@\"\n",
    "\n\"@",
    "@'\n",
    "\n'@",
    "`",
    "\n",
    "\r",
    ";",
    ",",
    "|",
    "&&",
    "&",
    ".",
    "::",
    "?.",
    "?[",
    "?",
    ":",
    "=",
    "+=",
    "++",
    "-",
    "–",
    "!",
    "-eq",
    "-split",
    "..",
    ">",
    "2>&1",
    "<",
    "1",
    "0x1F",
    "1.5kb",
    "$a",
    "${a b}",
    "$a:",
    "@a",
    "#",
    "<#",
    "#>",
    "--%",
    "-x:",
    " ",
    "class",
    "enum",
    "if",
    "else",
    "switch",
    "foreach",
    "in",
    "do",
    "while",
    "try",
    "catch",
    "trap",
    "data",
    "function",
    "param",
    "begin",
    "using",
    "module",
    "configuration",
    "static",
    "hidden",
    "A",
    ": base",
    "[DscResource()]",
    "[DscProperty(Key)]",
    "[int]",
    "ä",
    "“",
    "’",
    "😀",
    "\u{85}",
    "\0",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(stead_testkit::cases(stead_testkit::ALL_LAWS, 512)))]

    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        read(&bytes);
    }

    #[test]
    fn any_pieces_are_read(pieces in proptest::collection::vec(proptest::sample::select(PIECES), 0..120)) {
        read(pieces.concat().as_bytes());
        read(pieces.join(" ").as_bytes());
    }
}

/// The scripts of the cases, and those that were recorded where they are there.
fn scripts() -> Vec<Vec<u8>> {
    let repository = stead_testkit::repository();
    let mut texts = Vec::new();
    for folder in ["corpus/powershell/script", "../shared/corpus/powershell/discovery/modules"] {
        collect(&repository.join(folder), &mut texts);
    }
    texts
}

fn collect(folder: &Path, texts: &mut Vec<Vec<u8>>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, texts);
        } else if path.extension().is_some_and(|found| ["txt", "psm1", "ps1"].iter().any(|known| found == *known)) {
            texts.push(std::fs::read(path).unwrap());
        }
    }
}

#[test]
fn every_prefix_is_read() {
    let mut prefixes = 0;
    for text in scripts().iter().filter(|text| text.len() < 3000) {
        for end in (0..text.len()).step_by(text.len() / 100 + 1) {
            read(&text[..end]);
            prefixes += 1;
        }
    }
    eprintln!("{prefixes} prefixes");
}

#[test]
fn nesting_ends_at_a_limit() {
    let count = stead_testkit::times("STEAD_NESTING", 10_000);
    let pieces = [
        "(", "{", "[", "$(", "@(", "@{a=", "\"$(", "\"$(\"", "'", "\"", "@\"\n", "@\"\n$(", "if(1){", "-", "!", "[int]",
    ];
    let more = [
        "[A([",
        "[A($(",
        "[A($([A($(",
        "$a[",
        "$a.(",
        "$a=",
        "a|",
        "1,",
        "1+",
        "<#",
        "`",
        "$a.b[c[",
        "class A{[void]M(){",
        "class A{[int",
        ":a ",
        "if(1){}elseif(1){}else{if(1){",
        "1|a|",
        "$a::b.",
        "a -b:(",
        "return ",
        "throw ",
        "data{",
        "trap{",
        "do{",
        "$a=if(1){",
        "a&&",
    ];
    let rest = [
        "$a?",
        "1?1:",
        "{param(",
        "function f{",
        "switch(1){1{",
        "[a[",
        "try{",
        "${",
        "@'\n",
        "x\"$(",
        "$(\"$(",
        "\"\"$(",
    ];
    for piece in pieces.iter().chain(&more).chain(&rest) {
        read(piece.repeat(count).as_bytes());
    }
    for (open, close) in
        [("(", ")"), ("{", "}"), ("$(", ")"), ("\"$(", ")\""), ("@{a=", "}"), ("[A($(", "))]"), ("\"$(", ")")]
    {
        read([open.repeat(count), "1".to_owned(), close.repeat(count)].concat().as_bytes());
    }
}

/// Elements side by side do not count as nesting, however many there are.
#[test]
fn chains_and_nesting_of_values_end_no_process() {
    let count = stead_testkit::times("STEAD_NESTING", 10_000);
    let context = Context { folder: "", environment: &|_| None, variables: None };
    let table = |value: &str| manifest::read(&format!("@{{ X = {value} }}"), &context);
    let chain = |first: &str, link: &str| table(&(first.to_owned() + &link.repeat(count)));
    let mut links =
        vec!["+1", "-1", " -band 1", " -bor 1", " -eq 1", " -and 1", " -or 0", " -xor 1", " -ge 0", " ?? 1"];
    links.extend(["*1", "/1", "%2", " -is [int]", " -shl 0", "+1*1", " -join 1"]);
    for link in links {
        let read = chain("1", link);
        assert!(read.is_ok() || !link.ends_with('1') || link == " -join 1", "{link}: {read:?}");
    }
    for (first, link) in [("", "1,"), ("if (1) {1}", " elseif (1) {1}"), ("'a'", "+'a'"), ("1", ".a"), ("1", "[0]")] {
        let _ = chain(first, link);
    }
    let mut nested =
        vec!["(", "@(", "$(", "@{a=", "-", "!", "[int]", "1?1:", "1?", "\"$(", "if(1){", "1+(", ",", "1,("];
    nested.extend(["Join-Path (", "if (1) {", "@{(", "1 -and -", "1 -eq !"]);
    for open in nested {
        assert!(table(&open.repeat(count)).is_err(), "{open}");
    }
    assert!(chain("'a'", "|Write-Host").unwrap_err().message.contains("too deep"));
    assert!(table(&("1".to_owned() + &"?1:1".repeat(count))).unwrap_err().message.contains("too deep"));
}

/// A type of a property that nests deeper than the limit is reported as a problem.
#[test]
fn types_end_at_a_limit() {
    let count = stead_testkit::times("STEAD_NESTING", 10_000);
    let class = |ty: &str| read(format!("class A {{ [DscProperty(Key)] [{ty}] $B }}").as_bytes()).script.problems;
    assert!(class(&format!("int{}", "[]".repeat(100))).is_empty());
    for ty in ["int".to_owned() + &"[]".repeat(count), "int".to_owned() + &"[,]".repeat(count), "a[".repeat(count)] {
        assert!(class(&ty).iter().any(|problem| problem.message.contains("levels of nesting")));
    }
    for order in [1, -1] {
        let mut numbers: Vec<_> = (0..1000).collect();
        numbers.sort_by_key(|number| number * order);
        let within = numbers.iter().map(|number| {
            let inner = number + 1;
            format!("[DscResource()] class A{number} {{ [DscProperty(Key)] [A{inner}] $B; [DscProperty()] [A{inner}] $C }}\n")
        });
        read(within.collect::<String>().as_bytes());
    }
}

/// Each class of the schema has the next one as a property.
#[test]
fn embedded_instances_end_at_a_limit() {
    let classes: Vec<_> = (0..3000)
        .map(|number| format!("class A{number} {{ [Write, EmbeddedInstance(\"A{}\")] string B; }};\n", number + 1))
        .collect();
    let resource = "[ClassVersion(\"1\")] class R : OMI_BaseResource { [Key] string K; [Write, EmbeddedInstance(\"A0\")] string B; };";
    let schema = stead_powershell_reader::mof::read(
        (classes.concat() + resource).as_bytes(),
        &Arc::new(PathBuf::from("R.schema.mof")),
    );
    assert!(
        schema.findings.iter().any(|finding| finding.message.contains("within more than")),
        "{:?}",
        schema.findings
    );
}

/// Twice the text takes twice the time: with ten times the text, far less than a hundred times of it.
#[test]
fn time_is_linear() {
    let unit = String::from_utf8_lossy(
        &std::fs::read(stead_testkit::repository().join("corpus/powershell/script/valid.txt")).unwrap(),
    )
    .into_owned();
    let time = |count: usize| {
        let text = unit.repeat(count);
        (0..3)
            .map(|_| {
                let began = processor_time();
                read(text.as_bytes());
                processor_time() - began
            })
            .min()
            .unwrap_or(i64::MAX)
    };
    let (one, ten) = (time(10), time(100));
    eprintln!("{one} and {ten} ns");
    assert!(ten < one * 40, "{one} and {ten} ns");
}

/// Of this thread, in nanoseconds: other work on the machine does not count.
fn processor_time() -> i64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}
