//! The conversation with an editor.

use std::collections::{BTreeMap, HashMap};
use std::ops;

use lsp_server::{Connection, ErrorCode, Message, Notification, Request, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use stead_core::text::SourceId;
use stead_engine::Host;

use crate::ServeError;
use crate::completion::completion;
use crate::file::File;
use crate::formatting::edits;
use crate::hover::hover;
use crate::names::{DocumentName, DocumentNames, Mention, NameForm, is_plain};
use crate::position::Encoding;
use crate::protocol::{
    CodeAction, CodeActionParams, CompletionOptions, DidChangeTextDocumentParams, DidOpenTextDocumentParams,
    DocumentSymbol, Hover, InitializeParams, InitializeResult, Location, MarkupContent, PublishDiagnosticsParams,
    Range, ReferenceParams, RenameParams, ServerCapabilities, ServerInfo, SymbolKind, TextDocumentParams,
    TextDocumentPositionParams, TextDocumentSyncKind, TextEdit, WorkspaceEdit, method,
};

/// Serves on a connection until the editor ends the session.
///
/// Guarantees: each change is made on the text that the one before it left. Findings are published for the last text when
/// nothing else is waiting, so that typing never waits for them.
pub fn serve_on(connection: &Connection, host: &Host, version: &str) -> Result<(), ServeError> {
    let (id, offered) = connection.initialize_start()?;
    let offered: InitializeParams = serde_json::from_value(offered).unwrap_or_default();
    let general = offered.capabilities.general.as_ref();
    let encoding = Encoding::choose(general.and_then(|general| general.position_encodings.as_deref()));
    let server_info = ServerInfo { name: "stead", version };
    let result = InitializeResult { capabilities: capabilities(encoding), server_info };
    connection.initialize_finish(id, data(result))?;
    let mut server = Server { connection, host, encoding, files: HashMap::new() };
    while let Ok(message) = connection.receiver.recv() {
        let mut next = Some(message);
        while let Some(message) = next {
            if !server.take(message)? {
                return Ok(());
            }
            next = connection.receiver.try_recv().ok();
        }
        server.check_changed();
    }
    Ok(())
}

fn capabilities(encoding: Encoding) -> ServerCapabilities {
    ServerCapabilities {
        position_encoding: encoding.kind(),
        text_document_sync: TextDocumentSyncKind::INCREMENTAL,
        completion_provider: CompletionOptions { trigger_characters: &["'", "[", "(", " ", ".", "/"] },
        hover_provider: true,
        definition_provider: true,
        references_provider: true,
        rename_provider: true,
        document_symbol_provider: true,
        code_action_provider: true,
        document_formatting_provider: true,
    }
}

fn data(value: impl Serialize) -> Json {
    serde_json::to_value(value).unwrap_or_default()
}

/// Why a request has no answer.
struct Refused(ErrorCode, String);

struct Server<'a> {
    connection: &'a Connection,
    host: &'a Host,
    encoding: Encoding,
    files: HashMap<String, File>,
}

impl Server<'_> {
    /// Answers a message. Returns whether the session goes on.
    fn take(&mut self, message: Message) -> Result<bool, ServeError> {
        match message {
            Message::Request(request) => {
                if self.connection.handle_shutdown(&request)? {
                    return Ok(false);
                }
                let id = request.id.clone();
                let response = match self.answer(request) {
                    Ok(result) => Response::new_ok(id, result),
                    Err(Refused(code, message)) => Response::new_err(id, code as i32, message),
                };
                // Who has gone misses nothing.
                let _ = self.connection.sender.send(Message::Response(response));
            }
            Message::Notification(notification) => self.note(notification),
            Message::Response(_) => {}
        }
        Ok(true)
    }

    fn note(&mut self, Notification { method, params }: Notification) {
        match method.as_str() {
            method::DID_OPEN => {
                if let Ok(DidOpenTextDocumentParams { text_document: opened }) = serde_json::from_value(params) {
                    let key = opened.uri.clone();
                    let file = File::open(self.host, opened.uri, opened.version, opened.text, self.encoding);
                    self.files.insert(key, file);
                }
            }
            method::DID_CHANGE => {
                if let Ok(DidChangeTextDocumentParams { text_document: changed, content_changes }) =
                    serde_json::from_value(params)
                    && let Some(file) = self.files.get_mut(&changed.uri)
                {
                    file.change(changed.version, content_changes);
                }
            }
            method::DID_CLOSE => {
                if let Ok(TextDocumentParams { text_document: closed }) = serde_json::from_value(params) {
                    self.files.remove(&closed.uri);
                    self.publish(PublishDiagnosticsParams { uri: closed.uri, diagnostics: Vec::new(), version: None });
                }
            }
            _ => {}
        }
    }

    /// Publishes what is wrong with the documents that have changed.
    fn check_changed(&mut self) {
        let mut published = Vec::new();
        for file in self.files.values_mut().filter(|file| file.is_dirty) {
            let diagnostics = file.check();
            let version = Some(file.version);
            published.push(PublishDiagnosticsParams { uri: file.uri.clone(), diagnostics, version });
        }
        for params in published {
            self.publish(params);
        }
    }

    fn publish(&self, params: PublishDiagnosticsParams) {
        let method = method::PUBLISH_DIAGNOSTICS.to_owned();
        let _ = self.connection.sender.send(Message::Notification(Notification { method, params: data(params) }));
    }

    fn answer(&mut self, request: Request) -> Result<Json, Refused> {
        let Request { method, params, .. } = request;
        // Findings, names and the tree are those of the text as it is now, for completion those of a former one.
        let needs_none = [method::COMPLETION, method::FORMATTING].contains(&method.as_str());
        if self.files.values().any(|file| file.is_dirty && !(needs_none && file.last_read().is_some())) {
            self.check_changed();
        }
        match method.as_str() {
            method::COMPLETION => {
                let (file, offset) = self.at(&read(params)?)?;
                Ok(data(completion(file, offset)))
            }
            method::HOVER => {
                let (file, offset) = self.at(&read(params)?)?;
                Ok(data(hover(file, offset).map(|(value, word)| Hover {
                    contents: MarkupContent::markdown(value),
                    range: file.lines.range(&file.text, word),
                })))
            }
            method::DEFINITION => {
                let (file, offset) = self.at(&read(params)?)?;
                let found = mentions(file, offset).map(|(_, all)| declarations(file, &all));
                Ok(data(found.unwrap_or_default()))
            }
            method::REFERENCES => {
                let params: ReferenceParams = read(params)?;
                let (file, offset) = self.at(&params.place)?;
                let with_declaration = params.context.include_declaration;
                let found = mentions(file, offset).map(|(_, all)| {
                    let wanted = all.iter().filter(|each| with_declaration || each.form != NameForm::Declaration);
                    wanted.map(|each| location(file, each)).collect::<Vec<Location>>()
                });
                Ok(data(found.unwrap_or_default()))
            }
            method::RENAME => {
                let params: RenameParams = read(params)?;
                let (file, offset) = self.at(&params.place)?;
                rename(file, offset, &params.new_name).map(data)
            }
            method::DOCUMENT_SYMBOL => {
                let params: TextDocumentParams = read(params)?;
                let file = self.file(&params.text_document.uri)?;
                Ok(data(symbols(file)))
            }
            method::CODE_ACTION => {
                let params: CodeActionParams = read(params)?;
                let file = self.file(&params.text_document.uri)?;
                Ok(data(actions(file, &params)))
            }
            method::FORMATTING => {
                let params: TextDocumentParams = read(params)?;
                formatted(self.file(&params.text_document.uri)?).map(data)
            }
            _ => Err(Refused(ErrorCode::MethodNotFound, format!("'{method}' is not supported"))),
        }
    }

    fn file(&self, uri: &str) -> Result<&File, Refused> {
        let missing = || Refused(ErrorCode::InvalidParams, format!("'{uri}' is not open"));
        self.files.get(uri).ok_or_else(missing)
    }

    fn at(&self, place: &TextDocumentPositionParams) -> Result<(&File, usize), Refused> {
        let file = self.file(&place.text_document.uri)?;
        Ok((file, file.lines.offset(&file.text, place.position)))
    }
}

fn read<T: DeserializeOwned>(params: Json) -> Result<T, Refused> {
    serde_json::from_value(params).map_err(|error| Refused(ErrorCode::InvalidParams, error.to_string()))
}

/// Returns the thing that is named at a byte, and every place where it is.
fn mentions(file: &File, offset: usize) -> Option<(DocumentName, Vec<Mention>)> {
    let (text, root) = file.last_read().filter(|(text, _)| *text == file.text)?;
    let names = DocumentNames::of(text, root);
    let at_cursor = names.at(offset)?.named.clone();
    let all = names.of_named(&at_cursor).cloned().collect();
    Some((at_cursor, all))
}

fn location(file: &File, mention: &Mention) -> Location {
    Location { uri: file.uri.clone(), range: file.range(mention.span) }
}

fn declarations(file: &File, all: &[Mention]) -> Vec<Location> {
    all.iter().filter(|mention| mention.form == NameForm::Declaration).map(|mention| location(file, mention)).collect()
}

fn rename(file: &File, offset: usize, name: &str) -> Result<WorkspaceEdit, Refused> {
    let refused = |why: String| Refused(ErrorCode::RequestFailed, why);
    let (named, all) =
        mentions(file, offset).ok_or_else(|| refused("there is nothing here that can be renamed".to_owned()))?;
    if !is_plain(name) {
        let why = "a name begins with a letter and consists of letters, digits, '_', '-' and '.'";
        return Err(refused(format!("'{name}' cannot be used: {why}")));
    }
    if all.iter().filter(|mention| mention.form == NameForm::Declaration).count() != 1 {
        return Err(refused(format!("'{}' is not declared just once in this document", named.name())));
    }
    let edit = |mention: &Mention| {
        let written = file.text.get(mention.span.start as usize..mention.span.end as usize)?;
        Some(TextEdit { range: file.range(mention.span), new_text: mention.renamed(written, name)? })
    };
    let edits = all.iter().map(edit).collect::<Option<Vec<TextEdit>>>();
    let edits =
        edits.ok_or_else(|| refused(format!("'{}' is written in a way that cannot be renamed", named.name())))?;
    Ok(one_file(file, edits))
}

fn one_file(file: &File, edits: Vec<TextEdit>) -> WorkspaceEdit {
    WorkspaceEdit { changes: BTreeMap::from([(file.uri.clone(), edits)]) }
}

/// The edits that format a document.
fn formatted(file: &File) -> Result<Vec<TextEdit>, Refused> {
    let edits = edits(&file.text).map_err(|error| Refused(ErrorCode::RequestFailed, error.to_string()))?;
    let edit = |(range, new_text): (ops::Range<usize>, String)| TextEdit {
        range: file.lines.range(&file.text, (range.start, range.end)),
        new_text,
    };
    Ok(edits.into_iter().map(edit).collect())
}

/// The outline: parameters, variables and instances.
fn symbols(file: &File) -> Vec<DocumentSymbol> {
    let Some((text, root)) = file.last_read().filter(|(text, _)| *text == file.text) else { return Vec::new() };
    let names = DocumentNames::of(text, root);
    let types: BTreeMap<String, &str> =
        names.instances.iter().map(|each| (each.type_name.to_lowercase(), each.type_name.as_str())).collect();
    let symbol = |mention: &Mention| {
        let (kind, detail) = match &mention.named {
            DocumentName::Parameter(_) => (SymbolKind::CONSTANT, "parameter".to_owned()),
            DocumentName::Variable(_) => (SymbolKind::VARIABLE, "variable".to_owned()),
            DocumentName::Instance { type_name, .. } => {
                (SymbolKind::OBJECT, types.get(type_name).copied().unwrap_or(type_name).to_owned())
            }
        };
        let range = file.range(mention.span);
        DocumentSymbol { name: mention.named.name().to_owned(), detail, kind, range, selection_range: range }
    };
    names.declared().map(symbol).collect()
}

/// The corrections of what was found in a range.
fn actions(file: &File, params: &CodeActionParams) -> Vec<CodeAction> {
    let asked = params.range;
    let touches = |range: Range| range.start <= asked.end && asked.start <= range.end;
    let action = |finding: &stead_core::diag::Diagnostic| {
        let fix = finding.fix.as_ref().filter(|fix| fix.span.source == SourceId(0))?;
        let shown = file.shown(finding);
        let range = file.range(fix.span);
        if !touches(shown.range) && !touches(range) {
            return None;
        }
        let edits = vec![TextEdit { range, new_text: fix.replacement.clone() }];
        let title = match fix.replacement.as_str() {
            "" => "Remove it".to_owned(),
            replacement => format!("Replace by {replacement}"),
        };
        Some(CodeAction {
            title,
            kind: CodeAction::QUICK_FIX,
            diagnostics: vec![shown],
            edit: one_file(file, edits),
            is_preferred: true,
        })
    };
    file.findings().iter().filter_map(action).collect()
}
