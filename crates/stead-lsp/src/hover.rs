//! The text about the word under the cursor.

use stead_core::expr::functions;
use stead_engine::ResourceCall;

use crate::file::File;
use crate::place::{CursorContext, classified, path_at};

/// Markdown about what stands at a byte, and the bytes that it is about.
pub(crate) fn hover(file: &File, offset: usize) -> Option<(String, (usize, usize))> {
    if let Some(found) = function(&file.text, offset) {
        return Some(found);
    }
    let (text, root) = file.last_read().filter(|(text, _)| *text == file.text)?;
    let position = u32::try_from(offset).ok()?;
    let word = word_at(text, offset)?;
    let page = match classified(&path_at(root, position)?) {
        CursorContext::Type => resource(file, text.get(word.0..word.1)?)?.reference().to_markdown(),
        CursorContext::Property { type_name, path } => {
            let call = resource(file, &type_name)?;
            let name = path.join(".");
            let reference = call.reference();
            let property = reference.properties().into_iter().find(|property| property.name == name)?;
            let kind: Vec<&str> =
                std::iter::once(property.kind.as_str()).chain(property.marks.iter().map(String::as_str)).collect();
            format!("**{}** ({})\n\n{}", property.name, kind.join(", "), property.description)
        }
        _ => return None,
    };
    Some((page, word))
}

/// A resource of that type, looked for where those of the document are.
pub(crate) fn resource(file: &File, type_name: &str) -> Option<ResourceCall> {
    ResourceCall::find(file.beside(), type_name, None).ok()
}

/// A function that is called at a byte within an expression.
fn function(text: &str, offset: usize) -> Option<(String, (usize, usize))> {
    let (start, end) = word_at(text, offset)?;
    if !text.get(end..)?.starts_with('(') {
        return None;
    }
    let line = text.get(..start)?.rsplit('\n').next()?;
    let name = text.get(start..end)?;
    let function = functions().iter().find(|function| function.name == name).filter(|_| line.contains('['))?;
    let constraints = function.constraints.map(|text| format!("\n\n{text}")).unwrap_or_default();
    Some((format!("```text\n{}\n```\n\n{}{constraints}", function.syntax, function.description), (start, end)))
}

/// The word around a byte.
pub(crate) fn word_at(text: &str, offset: usize) -> Option<(usize, usize)> {
    let is_of_word = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | '/' | '$');
    let (before, behind) = (text.get(..offset)?, text.get(offset..)?);
    let start = before
        .rfind(|letter| !is_of_word(letter))
        .map_or(0, |at| at + before.get(at..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8));
    let end = offset + behind.find(|letter| !is_of_word(letter)).unwrap_or(behind.len());
    (start < end).then_some((start, end))
}
