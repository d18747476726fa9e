//! `stead fmt`: regular white space, in files and folders.

use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use similar::TextDiff;
use stead_core::text::{self, FormatError, Kind, Limits, Node, Source, SourceId, Sources};

use super::files;
use crate::exit::Exit;
use crate::input::{self, Text, Unreadable};
use crate::request::FmtRequest;
use crate::terminal::{complain, plain, print, print_exactly, show_findings};

/// Formats documents, or says which are not formatted. What cannot be formatted does not keep others from it.
pub(crate) fn fmt(request: &FmtRequest) -> Exit {
    let (mut files, mut exit) = (Vec::new(), Exit::Success);
    for path in &request.paths {
        // What is named is formatted, whatever it is called and holds.
        if path.as_os_str() != "-" && path.is_dir() {
            exit = worse(exit, documents(path, &mut files));
        } else {
            files.push(path.clone());
        }
    }
    for path in &files {
        exit = worse(exit, format(path, request));
    }
    exit
}

fn worse(one: Exit, other: Exit) -> Exit {
    let rank =
        |exit| [Exit::Success, Exit::Drifted, Exit::Failed, Exit::Unusable].iter().position(|each| *each == exit);
    if rank(other) > rank(one) { other } else { one }
}

fn format(path: &Path, request: &FmtRequest) -> Exit {
    let text = match input::read(path) {
        Ok(text) => text,
        Err(error) => {
            let message = match error {
                Unreadable::Empty { .. } => format!("{}: the text holds no document", path.display()),
                error => error.to_string(),
            };
            complain(&format!("error: {}", plain(&message)));
            return Exit::Unusable;
        }
    };
    let formatted = match text::format(&text.text, &Limits::default()) {
        Ok(formatted) => formatted,
        Err(FormatError::Unreadable(findings)) => {
            show_findings(&findings, &sources(&text));
            return Exit::Unusable;
        }
        Err(error) => {
            complain(&format!("error: {}: {error}", plain(&text.name)));
            return Exit::Failed;
        }
    };
    show_findings(&formatted.warnings, &sources(&text));
    let is_formatted = formatted.text == text.text;
    if request.lists || request.shows_changes {
        show_changes(request, &text, &formatted.text);
        return if is_formatted { Exit::Success } else { Exit::Drifted };
    }
    match (path.as_os_str() == "-", is_formatted) {
        (true, _) => print_exactly(&formatted.text),
        (false, true) => {}
        (false, false) => match files::correct(path, &text.text, &formatted.text) {
            Ok(()) => print(&format!("{}\n", plain(&text.name))),
            Err(exit) => return exit,
        },
    }
    Exit::Success
}

fn sources(text: &Text) -> Sources {
    let mut sources = Sources::default();
    sources.add(Source::new(text.name.clone(), &text.text));
    sources
}

fn show_changes(request: &FmtRequest, text: &Text, formatted: &str) {
    let name = plain(&text.name);
    if request.lists && text.text != formatted {
        print(&format!("{name}\n"));
    }
    if request.shows_changes {
        let diff = TextDiff::from_lines(text.text.as_str(), formatted);
        print(&diff.unified_diff().header(&name, &name).to_string());
    }
}

/// Adds the documents in a folder and below it, by name. Links, and what begins with a dot, are left out.
fn documents(folder: &Path, found: &mut Vec<PathBuf>) -> Exit {
    let listed = fs::read_dir(folder).and_then(|entries| {
        entries.map(|entry| entry.and_then(|entry| Ok((entry.file_name(), entry.file_type()?)))).collect()
    });
    let mut entries: Vec<(OsString, fs::FileType)> = match listed {
        Ok(entries) => entries,
        Err(error) => {
            let folder = folder.display().to_string();
            complain(&format!("error: cannot read {}: {}", plain(&folder), stead_system::fs::reason(&error)));
            return Exit::Unusable;
        }
    };
    entries.retain(|(name, _)| !name.as_encoded_bytes().starts_with(b"."));
    entries.sort_by(|(one, _), (other, _)| one.cmp(other));
    let mut exit = Exit::Success;
    for (name, kind) in entries {
        let path = if folder == Path::new(".") { PathBuf::from(name) } else { folder.join(name) };
        if kind.is_dir() {
            exit = worse(exit, documents(&path, found));
        } else if kind.is_file() && is_text(&path) && is_document(&path) {
            found.push(path);
        }
    }
    exit
}

fn is_text(path: &Path) -> bool {
    path.extension().is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|each| extension == *each))
}

/// Returns whether the name of a file, or what is in it, is that of a document or a manifest: other files may be of others, who have
/// rules of their own for them.
fn is_document(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if name.contains(".stead.") || name.contains(".dsc.") {
        return true;
    }
    match input::read(path) {
        Ok(text) => has_instances(&text.text),
        // It may be a document: that it cannot be read is reported when it is to be formatted.
        Err(Unreadable::File { source, .. }) => source.kind() != ErrorKind::InvalidData,
        Err(_) => false,
    }
}

fn has_instances(text: &str) -> bool {
    if !text.contains("resources") || !text.contains("type") {
        return false;
    }
    match text::read(SourceId::default(), text, &Limits::default()) {
        (Some(root), _) => root.get("resources").and_then(Node::items).is_some_and(|instances| {
            let is_instance = |node: &Node| matches!(&node.kind, Kind::Object(_)) && node.get("type").is_some();
            !instances.is_empty() && instances.iter().all(is_instance)
        }),
        // It would be passed over in silence otherwise.
        (None, _) => text.lines().any(|line| line.starts_with("resources:")),
    }
}
