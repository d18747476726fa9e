//! The language server as editors start it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
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
