//! The documents of a folder, for those who name none.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

/// Of a folder so many entries are looked at, and of a file so many bytes.
const MOST: usize = 500;
const REACH: u64 = 16 << 10;
/// So many are named.
const NAMED: usize = 5;

/// The hint for a command line without its document: the ones that are in the current folder, or how to begin one.
pub(super) fn hint(command: &str) -> String {
    let found = in_folder(Path::new("."));
    let (named, more) = found.split_at(found.len().min(NAMED));
    match (named, more.len()) {
        ([], _) => format!(
            "name a document, as in '{command} site.yaml'; 'stead new document site.yaml' writes one to start from"
        ),
        ([one], _) => format!("a document is in this folder: '{command} {one}'"),
        ([first, ..], more) => {
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("documents are in this folder: {}{more}; write, for example, '{command} {first}'", named.join(", "))
        }
    }
}

/// The names of the documents in a folder, in order.
fn in_folder(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().take(MOST).filter_map(Result::ok);
    let is_document = |name: &String| {
        let is_named_so = [".yaml", ".yml", ".json"].iter().any(|ending| name.ends_with(ending));
        is_named_so
            && name.chars().all(|c| c.is_alphanumeric() || "._-+".contains(c))
            && has_resources(&folder.join(name))
    };
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).filter(is_document).collect();
    names.sort();
    names
}

/// Returns whether a file has the key `resources` at its top, near its beginning.
fn has_resources(path: &Path) -> bool {
    let is_file = fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    let mut begin = Vec::new();
    let read = is_file.then(|| File::open(path).ok()).flatten().map(|file| file.take(REACH).read_to_end(&mut begin));
    let text = String::from_utf8_lossy(&begin);
    let is_key = |line: &str| {
        line.starts_with("resources:") || line.trim_start_matches([' ', '\t', '{']).starts_with("\"resources\"")
    };
    read.is_some_and(|read| read.is_ok()) && text.lines().any(is_key)
}
