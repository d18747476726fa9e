//! `docs/codes` is what `stead explain` prints of each code: a page for each kind of codes. `STEAD_BLESS=1` writes it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use stead_testkit::{check_folder, check_list};

/// The subjects of the codes of a page: their first two digits, for errors and warnings alike.
const KINDS: [(&str, &str); 14] = [
    ("01", "Text"),
    ("02", "The form of documents"),
    ("03", "The form of expressions"),
    ("04", "Evaluation of expressions"),
    ("05", "Instances and their order"),
    ("06", "Manifests and settings"),
    ("07", "Parameters"),
    ("08", "Calls of resources"),
    ("09", "Checks of resources"),
    ("10", "SLS files"),
    ("11", "PowerShell"),
    ("12", "Inventories of machines"),
    ("13", "Tests of documents"),
    ("14", "Releases"),
];

struct Code {
    id: String,
    title: String,
    explanation: String,
}

fn explain(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_stead")).arg("explain").args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// All codes, by the two digits of their kind and then by their number.
fn codes() -> BTreeMap<String, BTreeMap<String, Code>> {
    let mut kinds: BTreeMap<String, BTreeMap<String, Code>> = BTreeMap::new();
    let all = explain(&[]);
    let (_, listed) = all.split_once("\nCodes\n").unwrap();
    for line in listed.lines() {
        let (id, title) = line.trim_start().split_once("  ").unwrap();
        let text = explain(&[id]);
        let explanation = text.strip_prefix(&format!("{id}: {title}\n\n")).unwrap().trim_end().to_owned();
        let code = Code { id: id.to_owned(), title: title.to_owned(), explanation };
        kinds.entry(id[1..3].to_owned()).or_default().insert(id[1..].to_owned(), code);
    }
    kinds
}

/// The pages by file name, and how the list of the book shows them.
fn pages(kinds: &BTreeMap<String, BTreeMap<String, Code>>) -> (BTreeMap<String, String>, Vec<String>) {
    let mut pages = BTreeMap::new();
    let mut list = Vec::new();
    let mut index = String::from(
        "# Troubleshooting by code\n\nErrors and warnings have a code, such as E0104 in `error[E0104]`. `stead explain CODE` prints its \
         entry.\n",
    );
    for (kind, codes) in kinds {
        let (_, title) = KINDS.iter().find(|(known, _)| known == kind).unwrap_or_else(|| panic!("{kind} has no title"));
        // Writing to a string cannot fail.
        let _ = write!(index, "\n## {title}\n\n");
        let mut page = format!("# {title}\n");
        for Code { id, title, explanation } in codes.values() {
            let _ = writeln!(index, "- [{id}]({kind}.md#{}): {title}", id.to_lowercase());
            let _ = write!(page, "\n## {id}\n\n**{title}**\n\n{explanation}\n");
        }
        pages.insert(format!("{kind}.md"), page);
        list.push(format!("[{title}](codes/{kind}.md)"));
    }
    pages.insert("README.md".to_owned(), index);
    (pages, list)
}

/// The codes that `stead lint` reports for a document.
fn linted(document: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("example.yaml");
    fs::write(&file, document).unwrap();
    let output =
        Command::new(env!("CARGO_BIN_EXE_stead")).arg("lint").arg(&file).args(["-o", "json"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let codes = text.split("\"code\": \"").skip(1).filter_map(|rest| rest.split('"').next());
    codes.map(str::to_owned).collect()
}

/// An example of an explanation as a document: instances, or else something that a document may have in its metadata.
fn document(example: &str) -> String {
    let indented = example.lines().flat_map(|line| ["  ", line, "\n"]).collect::<String>();
    match example {
        whole if whole.starts_with("resources:") => whole.to_owned(),
        instances if instances.starts_with("- ") => format!("resources:\n{instances}\n"),
        _ => format!("resources: []\nmetadata:\n{indented}"),
    }
}

#[test]
fn examples_of_explanations_are_good_or_show_the_code() {
    let mut count = 0;
    for code in codes().into_values().flat_map(BTreeMap::into_values) {
        let examples = code.explanation.split("```yaml\n").skip(1).filter_map(|rest| rest.split("\n```").next());
        for example in examples {
            let found = linted(&document(example));
            let is_wrong = example.contains("# wrong");
            let shows = found.contains(&code.id) || found.is_empty() && !is_wrong;
            assert!(shows, "the example of {} has {found:?}:\n{example}", code.id);
            count += 1;
        }
    }
    assert!(count > 5, "{count}");
}

#[test]
fn the_pages_of_codes_are_what_explain_prints() {
    let (pages, list) = pages(&codes());
    check_list("docs/SUMMARY.md", "- [Troubleshooting by code](codes/README.md)", &list);
    check_folder("docs/codes", &pages);
}
