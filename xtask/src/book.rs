//! The preprocessor of the book: what a page links to outside of `docs` becomes a page, so that a claim and its test are
//! read in the same place. mdBook calls it, as `book.toml` says.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use serde_json::{Value, json};

use crate::links::{self, Link};
use crate::repository::{Repository, has_extension};

/// Where the pages are in the repository, and where in the book those are that are added.
const PAGES: &str = "docs/";
const ADDED: &str = "source/";

/// Reads what mdBook gives and returns the book that it shall render. `supports NAME` is a question, which is answered yes.
pub(crate) fn run(repository: &Repository, arguments: &[String]) -> Result<String, String> {
    if arguments.first().is_some_and(|argument| argument == "supports") {
        return Ok(String::new());
    }
    let input: Value = serde_json::from_reader(io::stdin()).map_err(|error| format!("mdBook gave no JSON: {error}"))?;
    let mut book = input.get(1).cloned().ok_or("mdBook gave no book")?;
    // The former name is that of mdBook 0.4.
    let name = if book.get("items").is_some() { "items" } else { "sections" };
    let items = book.get_mut(name).and_then(Value::as_array_mut).ok_or("the book has no chapters")?;
    complete(repository, items);
    Ok(book.to_string())
}

/// Changes the links of the chapters, and appends the pages that they lead to.
fn complete(repository: &Repository, items: &mut Vec<Value>) {
    let mut added = Added { repository, chapters: BTreeSet::new(), pages: BTreeMap::new(), open: Vec::new() };
    each_chapter(items, &mut |chapter| {
        added.chapters.extend(path_of(chapter));
    });
    each_chapter(items, &mut |chapter| {
        if let (Some(path), Some(text)) = (path_of(chapter), chapter.get("content").and_then(Value::as_str)) {
            let text = added.relinked(&path, &path, text);
            chapter["content"] = text.into();
        }
    });
    while let Some(path) = added.open.pop() {
        let page = added.page(&path);
        added.pages.insert(path, page);
    }
    items.push(json!({ "PartTitle": "Linked from the pages" }));
    items.extend(added.pages.into_iter().map(|(path, page)| {
        let file = address(&path);
        json!({ "Chapter": { "name": path, "content": page, "number": null, "sub_items": [], "path": file,
                             "source_path": null, "parent_names": [] } })
    }));
}

fn each_chapter(items: &mut [Value], visit: &mut dyn FnMut(&mut Value)) {
    for chapter in items.iter_mut().filter_map(|item| item.get_mut("Chapter")) {
        visit(chapter);
        if let Some(items) = chapter.get_mut("sub_items").and_then(Value::as_array_mut) {
            each_chapter(items, visit);
        }
    }
}

fn path_of(chapter: &Value) -> Option<String> {
    chapter.get("path").and_then(Value::as_str).map(|path| PAGES.to_owned() + path)
}

/// Where the page of a file of the repository is, from the top of the book.
fn address(path: &str) -> String {
    format!("{ADDED}{}{}", path, if has_extension(path, "md") { "" } else { ".md" })
}

struct Added<'a> {
    repository: &'a Repository,
    /// The paths of the chapters in the repository.
    chapters: BTreeSet<String>,
    /// By the paths of the files that they show.
    pages: BTreeMap<String, String>,
    /// Those that are still to be written.
    open: Vec<String>,
}

impl Added<'_> {
    /// The text of the page `path`, which is read where `place` is, with links to pages of the book.
    fn relinked(&mut self, path: &str, place: &str, text: &str) -> String {
        let (mut changed, mut end) = (String::new(), 0);
        let up = "../".repeat(place.trim_start_matches(PAGES).matches('/').count());
        for Link { at, target, .. } in links::links(text) {
            let Some(found) = links::resolved(path, target).filter(|found| found != path) else { continue };
            let anchor = target.find('#').map_or("", |at| &target[at..]);
            let to = if self.chapters.contains(&found) {
                found.trim_start_matches(PAGES).to_owned()
            } else {
                if !self.pages.contains_key(&found) && !self.open.contains(&found) {
                    self.open.push(found.clone());
                }
                address(&found)
            };
            changed.extend([&text[end..at.start], &up, &to, anchor]);
            end = at.end;
        }
        changed + &text[end..]
    }

    /// The page of a file or a folder.
    fn page(&mut self, path: &str) -> String {
        let place = PAGES.to_owned() + &address(path);
        match self.repository.files.get(path) {
            Some(text) if has_extension(path, "md") => {
                // Only texts link further: a page shall not draw in the whole repository.
                self.relinked(path, &place, text)
            }
            Some(text) => {
                let language = path.rsplit_once('.').map_or("", |(_, extension)| extension).replace("txt", "text");
                let fence = "`".repeat(10);
                format!("# {path}\n\n{fence}{language}\n{}\n{fence}\n", text.trim_end())
            }
            None => {
                let folder = format!("{path}/");
                let files = self.repository.files.keys().filter(|file| file.starts_with(&folder));
                format!("# {path}\n\n{}", files.flat_map(|file| ["- `", file, "`\n"]).collect::<String>())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_linked_outside_of_the_book_becomes_a_page_of_it() {
        let files = [
            ("corpus/a.txt", "shown\n"),
            ("bench/README.md", "[a](../corpus/a.txt) [guide](../docs/guide/a.md#top)"),
            ("docs/guide/a.md", ""),
            ("examples/x/y.sh", ""),
        ];
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        let repository = Repository { files, metadata: Value::Null };
        let text = "[b](../../bench/README.md#b) [x](../../examples/x/) [self](#c) [w](https://w.example) `[z](z)`";
        let mut items = vec![
            json!({ "Chapter": { "path": "README.md", "content": "[a](guide/a.md)", "sub_items": [
                { "Chapter": { "path": "guide/a.md", "content": text, "sub_items": [] } }] } }),
            json!("Separator"),
        ];
        complete(&repository, &mut items);
        let shown = |item: &Value| (item["Chapter"]["path"].to_string(), item["Chapter"]["content"].to_string());
        let expected = |path: &str, content: &str| (json!(path).to_string(), json!(content).to_string());
        assert_eq!(shown(&items[0]), expected("README.md", "[a](guide/a.md)"));
        let relinked =
            "[b](../source/bench/README.md#b) [x](../source/examples/x.md) [self](#c) [w](https://w.example) `[z](z)`";
        assert_eq!(shown(&items[0]["Chapter"]["sub_items"][0]), expected("guide/a.md", relinked));
        let linked: Vec<_> = items[3..].iter().map(shown).collect();
        let fence = "`".repeat(10);
        assert_eq!(
            linked,
            [
                expected("source/bench/README.md", "[a](../../source/corpus/a.txt.md) [guide](../../guide/a.md#top)"),
                expected("source/corpus/a.txt.md", &format!("# corpus/a.txt\n\n{fence}text\nshown\n{fence}\n")),
                expected("source/examples/x.md", "# examples/x\n\n- `examples/x/y.sh`\n"),
            ]
        );
    }
}
