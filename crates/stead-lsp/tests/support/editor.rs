//! A client of the language server, as an editor is one.

#![expect(clippy::unwrap_used, reason = "a test may end with a panic wherever it is")]
#![allow(dead_code, reason = "not every test uses all of it")]

use std::thread::JoinHandle;

use lsp_server::{Connection, Message, Notification, Request, RequestId, Response};
use serde_json::{Value as Json, json};
use stead_engine::{Host, HostOptions};
use stead_lsp::serve_on;

/// The address of the document that is open.
pub(crate) const URI: &str = "file:///srv/stead/main.yaml";

/// An editor with one document.
pub(crate) struct Editor {
    connection: Connection,
    server: Option<JoinHandle<()>>,
    asked: i32,
    version: i32,
    pub(crate) text: String,
}

impl Editor {
    /// Opens a document.
    pub(crate) fn open(text: &str) -> Self {
        let (server, connection) = Connection::memory();
        let thread = std::thread::spawn(move || {
            serve_on(&server, &Host::new(HostOptions::default()), "1.0.0").unwrap();
        });
        let mut editor = Self { connection, server: Some(thread), asked: 0, version: 1, text: text.to_owned() };
        let answer =
            editor.ask("initialize", json!({ "capabilities": { "general": { "positionEncodings": ["utf-16"] } } }));
        assert_eq!(answer["capabilities"]["positionEncoding"], "utf-16");
        editor.tell("initialized", json!({}));
        let opened = json!({ "uri": URI, "languageId": "yaml", "version": 1, "text": text });
        editor.tell("textDocument/didOpen", json!({ "textDocument": opened }));
        editor
    }

    /// Sends a notification.
    pub(crate) fn tell(&self, method: &str, params: Json) {
        let notification = Notification { method: method.to_owned(), params };
        self.connection.sender.send(Message::Notification(notification)).unwrap();
    }

    /// Sends a request and waits for its answer; what is published meanwhile is passed over.
    pub(crate) fn ask(&mut self, method: &str, params: Json) -> Json {
        self.try_ask(method, params).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Asks like `ask`, and returns the message of an error.
    pub(crate) fn try_ask(&mut self, method: &str, params: Json) -> Result<Json, String> {
        self.asked += 1;
        let id = RequestId::from(self.asked);
        let request = Request { id: id.clone(), method: method.to_owned(), params };
        self.connection.sender.send(Message::Request(request)).unwrap();
        loop {
            match self.connection.receiver.recv().expect("the server answers") {
                Message::Response(Response { id: answered, response_result }) if answered == id => {
                    return response_result.map_err(|error| error.message);
                }
                Message::Notification(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// The findings of the version that is the last one.
    pub(crate) fn findings(&self) -> Vec<Json> {
        loop {
            match self.connection.receiver.recv().expect("the server publishes") {
                Message::Notification(Notification { params, .. }) if params["version"] == self.version => {
                    return params["diagnostics"].as_array().unwrap().clone();
                }
                _ => {}
            }
        }
    }

    /// Replaces a range, given in lines and characters from 0.
    pub(crate) fn edit(&mut self, range: &Json, text: &str) {
        self.version += 1;
        let changes = json!([{ "range": range, "text": text }]);
        self.tell(
            "textDocument/didChange",
            json!({ "textDocument": { "uri": URI, "version": self.version }, "contentChanges": changes }),
        );
    }

    /// The edits that format the document.
    pub(crate) fn format(&mut self) -> Vec<Json> {
        let options = json!({ "tabSize": 4, "insertSpaces": true });
        let params = json!({ "textDocument": { "uri": URI }, "options": options });
        self.ask("textDocument/formatting", params).as_array().unwrap().clone()
    }

    /// The parameters of a request about a place.
    pub(crate) fn place(line: u64, character: u64) -> Json {
        json!({ "textDocument": { "uri": URI }, "position": { "line": line, "character": character } })
    }
}

/// A text after edits, which are in its order and do not overlap.
pub(crate) fn edited(text: &str, edits: &[Json]) -> String {
    let byte = |position: &Json| {
        let number = |of: &str| usize::try_from(position[of].as_u64().unwrap()).unwrap();
        let start: usize = text.split_inclusive('\n').take(number("line")).map(str::len).sum();
        let mut units = 0;
        let before = text[start..].chars().take_while(|letter| {
            units += letter.len_utf16();
            units <= number("character")
        });
        start + before.map(char::len_utf8).sum::<usize>()
    };
    let (mut new, mut end) = (String::new(), 0);
    for edit in edits {
        let (start, after) = (byte(&edit["range"]["start"]), byte(&edit["range"]["end"]));
        new += &text[end..start];
        new += edit["newText"].as_str().unwrap();
        end = after;
    }
    new + &text[end..]
}

impl Drop for Editor {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        self.ask("shutdown", Json::Null);
        self.tell("exit", Json::Null);
        self.server.take().unwrap().join().unwrap();
    }
}
