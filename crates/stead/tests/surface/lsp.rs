//! The language server as editors start it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};

use serde_json::{Value as Json, json};

/// A message of the protocol: a header with its length, and JSON.
fn read(from: &mut BufReader<ChildStdout>) -> Json {
    let mut length = 0;
    loop {
        let mut line = String::new();
        from.read_line(&mut line).unwrap();
        match line.trim_end() {
            "" => break,
            header => length = header.strip_prefix("Content-Length: ").map_or(length, |text| text.parse().unwrap()),
        }
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body).unwrap();
    serde_json::from_slice(&body).unwrap()
}

#[test]
fn an_editor_is_shown_what_is_wrong() {
    let mut server = Command::new(env!("CARGO_BIN_EXE_stead"))
        .arg("lsp")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = server.stdin.take().unwrap();
    let mut output = BufReader::new(server.stdout.take().unwrap());
    let mut send = |message: &Json| {
        let body = message.to_string();
        write!(input, "Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        input.flush().unwrap();
    };
    send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "capabilities": {} } }));
    assert_eq!(read(&mut output)["result"]["serverInfo"]["name"], "stead");
    send(&json!({ "jsonrpc": "2.0", "method": "initialized", "params": {} }));
    let text = "resources:\n- {name: a, type: Stead/Fiel}\n";
    let document = json!({ "uri": "file:///srv/a.yaml", "languageId": "yaml", "version": 7, "text": text });
    let params = json!({ "textDocument": document });
    send(&json!({ "jsonrpc": "2.0", "method": "textDocument/didOpen", "params": params }));
    let published = read(&mut output);
    assert_eq!(published["params"]["version"], 7);
    let codes: Vec<&Json> =
        published["params"]["diagnostics"].as_array().unwrap().iter().map(|each| &each["code"]).collect();
    assert!(codes.contains(&&json!("E0506")), "{published}");
    send(&json!({ "jsonrpc": "2.0", "id": 2, "method": "shutdown" }));
    assert_eq!(read(&mut output)["id"], 2);
    send(&json!({ "jsonrpc": "2.0", "method": "exit" }));
    assert!(server.wait().unwrap().success());
}

/// Neovim shows a mistake and its correction, a completion, documentation, a definition, a new name, and regular
/// blanks.
#[test]
fn neovim_is_helped() {
    const DOCUMENT: &str = "\
$schema: https://aka.ms/dsc/schemas/v3/bundled/config/document.json
parameters:
  folder: { type: string,defaultValue: /srv }
resources:
- name: page
  type: Stead/File   # by hand
  properties:
    path: \"[concat(parameters('folder'), '/page')]\"
    contents: x
";
    let test = "neovim_is_helped";
    if Command::new("nvim").arg("--version").stdout(Stdio::null()).status().is_err() {
        return stead_testkit::skip(test, "nvim is not installed");
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("main.yaml"), DOCUMENT).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/surface/editor.lua");
    let output = Command::new("nvim")
        .args(["--headless", "--clean", "-u", "NONE", "-n", "-c"])
        .arg(format!("luafile {}", script.display()))
        .env("STEAD", env!("CARGO_BIN_EXE_stead"))
        .env("DOCUMENT", "main.yaml")
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let expected = "\
findings: 1
  9:5 E0801 there is no property 'contents'; did you mean 'content'?
action: Replace by content
findings: 0
completion: mode
findings: 0
hover: # Stead/File
definition: line 3
findings: 0
formatting: 4 edits
findings: 0
$schema: https://aka.ms/dsc/schemas/v3/bundled/config/document.json
parameters:
  root: {type: string, defaultValue: /srv}
resources:
- name: page
  type: Stead/File # by hand
  properties:
    path: \"[concat(parameters('root'), '/page')]\"
    content: x
    mode: \"0644\"
";
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{errors}");
}
