//! Reports in a browser: what it shows, for eyes, for keys and for those who have it read to them. `STEAD_REPORTS=10000` has it look
//! at one of so many instances, at one of a tenth of them, and at one of 500 hostile names.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use stead_testkit::{repository, skip};

use super::Place;
use super::report::{hostile_document, large_document};

/// Something of everything that a report can show.
const VARIED: &str = r#"
parameters:
  site: {type: string, defaultValue: example.org}
  token: {type: secureString, defaultValue: nobody-sees-this}
resources:
- {name: folder, type: Stead/Directory, properties: {path: site}}
- {name: index, type: Stead/File, properties: {path: site/index.html, content: "<h1>Welcome</h1>\n<p>to [site]</p>\n"}}
- {name: settings, type: Stead/File, properties: {path: site.conf, content: "[concat('server_name ', parameters('site'), ';\n', 'listen 443;\n')]"}}
- {name: token, type: Stead/File, properties: {path: site/token, content: "[parameters('token')]", mode: "0600"}}
- {name: kept, type: Stead/File, properties: {path: kept, content: "as it was\n"}}
- {name: former, type: Stead/File, properties: {path: former, _exist: false}}
- name: accepted
  type: Stead/Command
  properties: {set: "echo 'nginx: [emerg] unknown directive \"lissten\" in site.conf:2' >&2; echo 'nginx: configuration file site.conf test failed' >&2; exit 1"}
  dependsOn: ["[resourceId('Stead/File', 'settings')]"]
- name: reload
  type: Stead/Command
  properties: {set: "true"}
  dependsOn: ["[resourceId('Stead/Command', 'accepted')]"]
- name: announced
  type: Stead/File
  properties: {path: announced, content: "done\n"}
  dependsOn: ["[resourceId('Stead/Command', 'reload')]"]
- name: limits
  type: Microsoft.DSC/Group
  properties:
    $schema: https://aka.ms/dsc/schemas/v3/bundled/config/document.json
    resources:
    - {name: files, type: Stead/Line, properties: {path: limits.conf, line: "* soft nofile 65536", create: true}}
"#;

/// The library that judges how pages can be used. `npm install axe-core` brings it along.
fn axe() -> Option<PathBuf> {
    let cache = std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache/stead-test"));
    let folders = std::env::var_os("STEAD_TEST_AXE").map(PathBuf::from).into_iter().chain(cache);
    let mut files = folders.map(|folder| folder.join("node_modules/axe-core/axe.min.js"));
    files.find(|file| file.exists())
}

fn has(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// Writes the reports that are looked at, and the list of them.
fn write_reports(place: &Place) -> PathBuf {
    let mut pages = String::new();
    let mut keep = |name: &str, tried: &str| {
        let page = place.path().join(name);
        fs::rename(place.path().join("r.html"), &page).unwrap();
        writeln!(pages, "{} {tried}", page.display()).unwrap();
    };
    place.write("site.conf", "server_name example.net;\nlisten 80;\n");
    place.write("former", "x");
    place.write("kept", "as it was\n");
    place.write("varied.yaml", VARIED);
    let apply = ["apply", "varied.yaml", "--reconcile", "none", "--report", "r.html"];
    assert_eq!(place.run(&apply).exit, 1);
    keep("failed.html", "");
    place.write("varied.yaml", &VARIED.replace("exit 1", "exit 0"));
    assert_eq!(place.run(&apply).exit, 0);
    keep("applied.html", "");
    place.write("limits.conf", "nothing\n");
    assert_eq!(place.run(&["check", "varied.yaml", "--report", "r.html"]).exit, 2);
    keep("drifted.html", "");
    let most = stead_testkit::asked("STEAD_REPORTS");
    for count in [Some(10), most.map(|most| most / 10), most].into_iter().flatten() {
        place.write("large.yaml", &large_document(count));
        place.run(&["plan", "-q", "large.yaml", "--report", "r.html"]);
        keep(&format!("plan-{count}.html"), "");
    }
    place.write("hostile.yaml", &hostile_document(if most.is_some() { 500 } else { 20 }));
    place.run(&["apply", "hostile.yaml", "--reconcile", "none", "--report", "r.html"]);
    keep("hostile.html", "inert");
    place.write("pages", &pages)
}

#[test]
fn reports_are_for_everybody_in_a_browser() {
    const TEST: &str = "reports_are_for_everybody_in_a_browser";
    let Some(axe) = axe() else { return skip(TEST, "there is no axe-core: .ci/packages says how it is installed") };
    if !has("chromedriver") || !has("python3") {
        return skip(TEST, "there is no chromedriver, which 'chromium-driver' has, or no python3");
    }
    let place = Place::new();
    let pages = write_reports(&place);
    let screenshots = Path::new(env!("CARGO_TARGET_TMPDIR")).join("screenshots");
    let script = repository().join("crates/stead/tests/surface/browser.py");
    let mut browser = Command::new("python3");
    // It leaves files behind.
    let files = place.path().join("files");
    fs::create_dir(&files).unwrap();
    let output = browser.env("TMPDIR", files).arg(script).arg(pages).arg(&screenshots).arg(axe).output().unwrap();
    let [printed, figures] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert_eq!((printed.trim(), output.status.success()), ("looked at, 0 findings", true), "{figures}");
    let _ = std::io::stderr().write_all(&output.stderr);
    let kept = fs::read_dir(&screenshots).unwrap().count();
    assert!(kept >= 5 * 6, "{kept} pictures in {}", screenshots.display());
}
