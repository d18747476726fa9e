//! Reports: one file each that loads nothing, in which no text of others becomes anything but text.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::process::{Command, Stdio};

use super::{Place, forms::forms};

/// What an independent reader of HTML finds: elements with their attributes, what is not closed, headings, links without
/// an end, names that are there twice.
const READER: &str = r##"
import sys
from html.parser import HTMLParser
VOID = {"meta", "rect", "path", "use", "circle", "line"}
class Reader(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.found, self.wrong, self.ids, self.links, self.level = [], set(), [], [], [], 0
    def handle_startendtag(self, tag, attrs):
        self.note(tag, attrs)
    def handle_starttag(self, tag, attrs):
        self.note(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)
    def note(self, tag, attrs):
        for name, value in attrs:
            self.found.add(f"{tag} {name}")
            if name == "id": self.ids.append(value)
            if name == "href": self.links.append(value)
        if not attrs: self.found.add(tag)
        if tag in ("h1", "h2", "h3"):
            level = int(tag[1])
            if level > self.level + 1: self.wrong.append(f"{tag} follows h{self.level}")
            self.level = level
    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag: self.wrong.append(f"</{tag}> closes something else")
reader = Reader()
reader.feed(sys.stdin.read()); reader.close()
if reader.open: reader.wrong.append(f"not closed: {reader.open}")
twice = {name for name in reader.ids if reader.ids.count(name) > 1} if len(reader.ids) < 3000 else set()
reader.wrong += [f"twice: {name}" for name in twice]
known = set(reader.ids)
reader.wrong += [f"leads nowhere: {link}" for link in reader.links if link[:1] != "#" or link[1:] not in known]
print("\n".join(sorted(reader.found))); print("--"); print("\n".join(reader.wrong))
"##;

/// Reads a report as a browser does; returns its elements with attributes.
fn read(html: &str) -> BTreeSet<String> {
    let mut reader = Command::new("python3");
    let reader = reader.args(["-c", READER]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut reader = reader.expect("python3 is there");
    std::io::Write::write_all(&mut reader.stdin.take().unwrap(), html.as_bytes()).unwrap();
    let output = reader.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (found, wrong) = text.split_once("--\n").unwrap();
    assert_eq!(wrong.trim(), "");
    found.lines().map(str::to_owned).collect()
}

/// Names that would become elements, attributes, addresses, styles or commands if they were not escaped.
fn hostile(count: usize) -> impl Iterator<Item = String> {
    const KINDS: [&str; 10] = [
        "<script>alert(1)</script>",
        "\\\" onload=\\\"alert(1)",
        "' onmouseover='alert(1)",
        "<img src=x onerror=alert(1)>",
        "</title></style></svg><b>",
        "javascript:alert(1)",
        "<!-- ]]> -->",
        "&lt;i&gt; &#60;u&#62; \\u202e",
        "}}</style><style>*{background:url(//x.invalid)}",
        "{{ 7*7 }}{% include x %}",
    ];
    (0..count).map(move |at| format!("{}{at}", KINDS[at % KINDS.len()]))
}

/// A document with so many instances of such names, half of which fail with their name as the message.
pub(super) fn hostile_document(count: usize) -> String {
    let mut document = "resources:\n".to_owned();
    for (at, name) in hostile(count).enumerate() {
        let does = if at % 2 == 0 {
            format!("set: [sh, -c, 'echo \"$1\" >&2; exit 1', sh, \"{name}\"]")
        } else {
            "get: 'true'".to_owned()
        };
        writeln!(document, "- {{name: \"{name}\", type: Stead/Command, properties: {{{does}}}}}").unwrap();
    }
    document
}

#[test]
fn names_and_messages_of_a_report_are_inert() {
    let place = Place::new();
    place.write("d.yaml", &hostile_document(500));
    let applied =
        place.run(&["apply", "d.yaml", "--reconcile", "none", "--report", "r.html", "--record", "--runs", "runs"]);
    assert!(applied.stdout.contains("failed"), "{}{}", applied.stdout, applied.stderr);
    let html = fs::read_to_string(place.path().join("r.html")).unwrap();
    let found = read(&html);
    assert!(html.contains("&#60;script&#62;alert(1)"), "the names are there");
    let shown = place.run(&["history", "show", "last", "--html", "--runs", "runs"]);
    let recorded = read(&shown.stdout);
    let drawn = place.run(&["graph", "d.yaml", "--format", "svg"]);
    read(&drawn.stdout.replacen("xmlns=", "data-x=", 1));
    // What is there is what a run without any such name has.
    let harmless = "resources:\n- {name: a, type: Stead/Command, properties: {get: 'true'}}\n- {name: c, type: Stead/File, \
                    properties: {path: c, content: \"a\\nb\\n\"}}\n- {name: b, type: Stead/Command, \
                    properties: {set: \"echo b >&2; exit 1\"}}\n";
    place.write("h.yaml", harmless);
    place.run(&["apply", "h.yaml", "--reconcile", "none", "--report", "h.html"]);
    let known = read(&fs::read_to_string(place.path().join("h.html")).unwrap());
    let of_lists = ["p", "pre class", "g"].map(str::to_owned);
    for found in [&found, &recorded] {
        let new: Vec<&String> =
            found.iter().filter(|each| !known.contains(*each) && !of_lists.contains(each)).collect();
        assert!(new.is_empty(), "{new:?}");
    }
}

/// A document of so many files.
pub(super) fn large_document(count: usize) -> String {
    let mut document = "resources:\n".to_owned();
    for at in 0..count {
        let after = at / 10;
        let depends = if at > 10 {
            format!("dependsOn: [\"[resourceId('Stead/File', 'file{after}')]\"], ")
        } else {
            String::new()
        };
        let lines = "a line of it & another <one>\\n".repeat(if at % 3 == 0 { 30 } else { 1 });
        writeln!(
            document,
            "- {{name: file{at}, type: Stead/File, {depends}properties: {{path: f{at}, content: \"{lines}\"}}}}"
        )
        .unwrap();
    }
    document
}

#[test]
fn a_report_of_any_run_is_small_and_whole() {
    let place = Place::new();
    for count in [10, 1_000, 10_000] {
        place.write("d.yaml", &large_document(count));
        let planned = place.run(&["plan", "-q", "d.yaml", "--report", "r.html"]);
        assert_eq!(planned.exit, 2, "{}", planned.stderr);
        let html = fs::read_to_string(place.path().join("r.html")).unwrap();
        assert!(html.len() <= 2_000_000, "{count}: {} bytes", html.len());
        assert!(html.contains(&format!("<h1>Plan: {count} of {count} would change</h1>")));
        read(&html);
    }
}

#[test]
fn a_report_replaces_reports_alone() {
    let place = Place::new();
    place.write("d.yaml", "resources:\n- {name: a, type: Stead/File, properties: {path: a, content: x}}\n");
    place.write("mine.txt", "mine");
    place.write("index.html", "<!doctype html>\n<title>mine</title>");
    let report = |name: &str| place.run(&["apply", "d.yaml", "--report", name]);
    assert_eq!(report("mine.txt").exit, 3);
    assert_eq!(report("index.html").exit, 3);
    assert_eq!(report("no/such/folder.html").exit, 3);
    std::os::unix::fs::symlink("mine.txt", place.path().join("link.html")).unwrap();
    assert_ne!(report("link.html").exit, 0);
    assert_eq!(fs::read_to_string(place.path().join("mine.txt")).unwrap(), "mine");
    // What could not have been reported was not done.
    assert!(!place.path().join("a").exists());
    assert_eq!(report("r.html").exit, 0);
    assert_eq!(report("r.html").exit, 0);
}

const SECRET: &str = "correct+horse/\"battery\" & <staple>'";

/// A run whose programs print a secret in all the forms in which others write it.
fn run_with_secrets(place: &Place) {
    let quoted = super::forms::within_json(SECRET);
    let mut document = format!(
        "parameters:\n  password: {{type: secureString, defaultValue: \"{quoted}\"}}\n  list: {{type: secureObject, defaultValue: {{a: \"{quoted}\"}}}}\n\
         resources:\n- {{name: file, type: Stead/File, properties: {{path: new, content: \"[parameters('password')]\"}}}}\n"
    );
    for (at, form) in forms(SECRET).iter().enumerate() {
        place.write(&format!("form{at}"), form);
        writeln!(
            document,
            "- {{name: says{at}, type: Stead/Command, properties: {{set: \"cat form{at} >&2; exit 1\"}}}}"
        )
        .unwrap();
    }
    place.write("d.yaml", &document);
    place.run(&["apply", "d.yaml", "--reconcile", "none", "--report", "r.html", "--record", "--runs", "runs"]);
}

#[test]
fn a_report_shows_no_secret() {
    let place = Place::new();
    run_with_secrets(&place);
    let page = fs::read_to_string(place.path().join("r.html")).unwrap();
    let recorded = place.run(&["history", "show", "last", "--html", "--runs", "runs"]).stdout;
    let forms = forms(SECRET);
    assert!(forms.len() >= 17);
    for shown in [&page, &recorded] {
        let last = format!("says{}", forms.len() - 1);
        assert!(shown.contains(&last) && shown.contains("failed"), "{shown}");
        let plain = plain(shown);
        for form in &forms {
            assert!(!shown.contains(form) && !plain.contains(form), "{form}");
        }
    }
    assert!(page.contains("covered</span>"));
}

/// A page with its references replaced, as a browser shows it.
fn plain(html: &str) -> String {
    let numbers = ["&#60;", "&#62;", "&#34;", "&#39;", "&#38;"];
    numbers.iter().zip(["<", ">", "\"", "'", "&"]).fold(html.to_owned(), |text, (from, to)| text.replace(from, to))
}
