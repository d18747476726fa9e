//! The types of the [Language Server Protocol][spec] that this server uses, named as in the specification.
//!
//! Other members are ignored.
//!
//! [spec]: https://microsoft.github.io/language-server-protocol/specifications/lsp/3.17/specification/

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The names of requests and notifications.
pub(crate) mod method {
    pub(crate) const CODE_ACTION: &str = "textDocument/codeAction";
    pub(crate) const COMPLETION: &str = "textDocument/completion";
    pub(crate) const DEFINITION: &str = "textDocument/definition";
    pub(crate) const DID_CHANGE: &str = "textDocument/didChange";
    pub(crate) const DID_CLOSE: &str = "textDocument/didClose";
    pub(crate) const DID_OPEN: &str = "textDocument/didOpen";
    pub(crate) const DOCUMENT_SYMBOL: &str = "textDocument/documentSymbol";
    pub(crate) const FORMATTING: &str = "textDocument/formatting";
    pub(crate) const HOVER: &str = "textDocument/hover";
    pub(crate) const PUBLISH_DIAGNOSTICS: &str = "textDocument/publishDiagnostics";
    pub(crate) const REFERENCES: &str = "textDocument/references";
    pub(crate) const RENAME: &str = "textDocument/rename";
}

/// An enumeration that the protocol encodes as a number.
macro_rules! number {
    ($(#[$about:meta])* $name:ident { $($constant:ident = $number:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, Serialize, Debug)]
        #[serde(transparent)]
        pub(crate) struct $name(u8);

        impl $name {
            $(pub(crate) const $constant: Self = Self($number);)*
        }
    };
}

/// The address of a document, as the editor writes it.
pub(crate) type Uri = String;

/// A place in a text: a line from 0, and a character in it as the [`PositionEncoding`] counts them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, Debug)]
pub(crate) struct Position {
    pub(crate) line: u32,
    pub(crate) character: u32,
}

/// A range in a text; `end` is exclusive.
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, Debug)]
pub(crate) struct Range {
    pub(crate) start: Position,
    pub(crate) end: Position,
}

/// How characters of a line are counted. Editors may offer others.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub(crate) enum PositionEncoding {
    #[serde(rename = "utf-8")]
    Utf8,
    #[serde(rename = "utf-16")]
    Utf16,
    #[serde(other)]
    Other,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct InitializeParams {
    pub(crate) capabilities: ClientCapabilities,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct ClientCapabilities {
    pub(crate) general: Option<GeneralClientCapabilities>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct GeneralClientCapabilities {
    pub(crate) position_encodings: Option<Vec<PositionEncoding>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InitializeResult<'a> {
    pub(crate) capabilities: ServerCapabilities,
    pub(crate) server_info: ServerInfo<'a>,
}

#[derive(Serialize)]
pub(crate) struct ServerInfo<'a> {
    pub(crate) name: &'a str,
    pub(crate) version: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "the protocol has a member for each thing that a server can do")]
pub(crate) struct ServerCapabilities {
    pub(crate) position_encoding: PositionEncoding,
    pub(crate) text_document_sync: TextDocumentSyncKind,
    pub(crate) completion_provider: CompletionOptions,
    pub(crate) hover_provider: bool,
    pub(crate) definition_provider: bool,
    pub(crate) references_provider: bool,
    pub(crate) rename_provider: bool,
    pub(crate) document_symbol_provider: bool,
    pub(crate) code_action_provider: bool,
    pub(crate) document_formatting_provider: bool,
}

number! {
    /// How an editor says what has changed.
    TextDocumentSyncKind {
        INCREMENTAL = 2,
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CompletionOptions {
    pub(crate) trigger_characters: &'static [&'static str],
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DidOpenTextDocumentParams {
    pub(crate) text_document: TextDocumentItem,
}

#[derive(Deserialize)]
pub(crate) struct TextDocumentItem {
    pub(crate) uri: Uri,
    pub(crate) version: i32,
    pub(crate) text: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DidChangeTextDocumentParams {
    pub(crate) text_document: VersionedTextDocumentIdentifier,
    pub(crate) content_changes: Vec<TextDocumentContentChangeEvent>,
}

#[derive(Deserialize)]
pub(crate) struct VersionedTextDocumentIdentifier {
    pub(crate) uri: Uri,
    pub(crate) version: i32,
}

/// A change: of a part of the text, or of all of it.
#[derive(Deserialize)]
pub(crate) struct TextDocumentContentChangeEvent {
    pub(crate) range: Option<Range>,
    pub(crate) text: String,
}

/// The parameters of what is asked of a document as a whole.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TextDocumentParams {
    pub(crate) text_document: TextDocumentIdentifier,
}

#[derive(Deserialize)]
pub(crate) struct TextDocumentIdentifier {
    pub(crate) uri: Uri,
}

/// The parameters of what is asked of a place.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TextDocumentPositionParams {
    pub(crate) text_document: TextDocumentIdentifier,
    pub(crate) position: Position,
}

#[derive(Deserialize)]
pub(crate) struct ReferenceParams {
    #[serde(flatten)]
    pub(crate) place: TextDocumentPositionParams,
    pub(crate) context: ReferenceContext,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReferenceContext {
    pub(crate) include_declaration: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RenameParams {
    #[serde(flatten)]
    pub(crate) place: TextDocumentPositionParams,
    pub(crate) new_name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CodeActionParams {
    pub(crate) text_document: TextDocumentIdentifier,
    pub(crate) range: Range,
}

#[derive(Serialize)]
pub(crate) struct PublishDiagnosticsParams {
    pub(crate) uri: Uri,
    pub(crate) diagnostics: Vec<Diagnostic>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<i32>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Diagnostic {
    pub(crate) range: Range,
    pub(crate) severity: DiagnosticSeverity,
    pub(crate) code: &'static str,
    pub(crate) source: &'static str,
    pub(crate) message: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) related_information: Vec<DiagnosticRelatedInformation>,
}

number! {
    /// How bad a diagnostic is.
    DiagnosticSeverity {
        ERROR = 1,
        WARNING = 2,
    }
}

#[derive(Serialize)]
pub(crate) struct DiagnosticRelatedInformation {
    pub(crate) location: Location,
    pub(crate) message: String,
}

#[derive(Serialize)]
pub(crate) struct Location {
    pub(crate) uri: Uri,
    pub(crate) range: Range,
}

/// Text for users.
#[derive(Serialize)]
pub(crate) struct MarkupContent {
    kind: &'static str,
    value: String,
}

impl MarkupContent {
    /// Text that is Markdown.
    pub(crate) fn markdown(value: String) -> Self {
        Self { kind: "markdown", value }
    }
}

#[derive(Serialize)]
pub(crate) struct Hover {
    pub(crate) contents: MarkupContent,
    pub(crate) range: Range,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CompletionItem {
    pub(crate) label: String,
    pub(crate) kind: CompletionItemKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) detail: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) documentation: Option<MarkupContent>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) insert_text_format: Option<InsertTextFormat>,
    pub(crate) text_edit: TextEdit,
}

number! {
    /// The picture that an editor shows beside a completion.
    CompletionItemKind {
        FUNCTION = 3,
        VARIABLE = 6,
        CLASS = 7,
        PROPERTY = 10,
        VALUE = 12,
        KEYWORD = 14,
        REFERENCE = 18,
        CONSTANT = 21,
    }
}

number! {
    /// How the text of a completion is read.
    InsertTextFormat {
        SNIPPET = 2,
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TextEdit {
    pub(crate) range: Range,
    pub(crate) new_text: String,
}

/// Edits by document.
#[derive(Serialize)]
pub(crate) struct WorkspaceEdit {
    pub(crate) changes: BTreeMap<Uri, Vec<TextEdit>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DocumentSymbol {
    pub(crate) name: String,
    pub(crate) detail: String,
    pub(crate) kind: SymbolKind,
    pub(crate) range: Range,
    pub(crate) selection_range: Range,
}

number! {
    /// The picture that an editor shows beside a symbol.
    SymbolKind {
        VARIABLE = 13,
        CONSTANT = 14,
        OBJECT = 19,
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CodeAction {
    pub(crate) title: String,
    pub(crate) kind: &'static str,
    pub(crate) diagnostics: Vec<Diagnostic>,
    pub(crate) edit: WorkspaceEdit,
    pub(crate) is_preferred: bool,
}

impl CodeAction {
    /// The kind of those that correct a diagnostic.
    pub(crate) const QUICK_FIX: &str = "quickfix";
}
