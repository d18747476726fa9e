//! The example runs.

#[path = "../examples/embed.rs"]
#[expect(dead_code, reason = "the test calls what `main` calls")]
mod embed;

use std::fs;

#[test]
fn the_example_plans_applies_and_prints_events() {
    let folder = tempfile::tempdir().unwrap();
    let (document, file) = (folder.path().join("web.yaml"), folder.path().join("motd"));
    let text = format!(
        "resources:\n- name: motd\n  type: Stead/File\n  properties: {{path: '{}', content: hello}}\n",
        file.display()
    );
    fs::write(&document, text).unwrap();
    let mut out = Vec::new();
    embed::plan_and_apply(&document, &mut out).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "hello");
    let out = String::from_utf8(out).unwrap();
    for event in ["began", "callStarted", "callEnded", "settled"] {
        assert!(out.matches(&format!("\"event\":\"{event}\"")).count() >= 2, "{event}: {out}");
    }
    assert_eq!(out.matches("Totals").count(), 2);
}
