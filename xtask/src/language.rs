//! Words and phrases that have a better one: the field's own, or a plainer one. They are listed in `xtask/words.txt`.

use crate::repository::{Finding, Repository};

/// The list: what to avoid, what to write, and where it is fine.
const WORDS: &str = "xtask/words.txt";

/// Every place where a phrase of the list is used, in texts and in the names of files.
pub(crate) fn check(repository: &Repository) -> Result<Vec<Finding>, String> {
    let list = repository.text(WORDS).map_err(|finding| finding.to_string())?;
    let words = Words::parse(list)?;
    Ok(repository.files.iter().flat_map(|(path, text)| words.findings(path, text)).collect())
}

struct Words<'t> {
    phrases: Vec<Phrase<'t>>,
    exceptions: Vec<Exception<'t>>,
}

struct Phrase<'t> {
    text: &'t str,
    better: &'t str,
    /// Longer phrases in which it is fine.
    fine: Vec<&'t str>,
}

struct Exception<'t> {
    path: &'t str,
    /// `*` for every phrase.
    phrase: &'t str,
}

impl<'t> Words<'t> {
    fn parse(list: &'t str) -> Result<Self, String> {
        let mut words = Self { phrases: Vec::new(), exceptions: Vec::new() };
        for line in list.lines().filter(|line| !line.starts_with('#')) {
            let columns: Vec<&str> = line.split('\t').collect();
            match columns.as_slice() {
                [text, better] => words.phrases.push(Phrase { text, better, fine: Vec::new() }),
                [path, phrase, _reason] if path.starts_with('!') => {
                    words.exceptions.push(Exception { path: path.trim_start_matches('!'), phrase });
                }
                [text, better, fine] => words.phrases.push(Phrase { text, better, fine: fine.split(", ").collect() }),
                _ => return Err(format!("{WORDS}: cannot read the line '{line}'")),
            }
        }
        Ok(words)
    }

    fn findings(&self, path: &str, text: &str) -> Vec<Finding> {
        let (name, text) = (path.to_lowercase(), text.to_lowercase());
        let relevant = self.phrases.iter().filter(|phrase| !self.is_exception(path, phrase));
        let relevant = relevant.filter(|phrase| text.contains(phrase.text) || name.contains(phrase.text));
        relevant.flat_map(|phrase| phrase.findings(path, &name, &text)).collect()
    }

    fn is_exception(&self, path: &str, phrase: &Phrase<'_>) -> bool {
        let mut exceptions = self.exceptions.iter().filter(|exception| path.starts_with(exception.path));
        exceptions.any(|exception| exception.phrase == "*" || exception.phrase == phrase.text)
    }
}

impl Phrase<'_> {
    fn findings(&self, path: &str, name: &str, text: &str) -> Vec<Finding> {
        let message = || format!("'{}': write {}", self.text, self.better);
        let in_name = self.is_in(name).then(|| Finding::of(path, message()));
        let lines = text.lines().enumerate().filter(|(_, line)| self.is_in(line));
        in_name.into_iter().chain(lines.map(|(number, _)| Finding::at(path, number + 1, message()))).collect()
    }

    /// Returns whether a line in lower case has the phrase as whole words, and not only within a phrase that is fine.
    fn is_in(&self, line: &str) -> bool {
        let starts = line.match_indices(self.text).map(|(at, _)| at);
        starts.filter(|at| is_whole(line, *at, self.text.len())).any(|at| !self.is_fine(line, at))
    }

    fn is_fine(&self, line: &str, at: usize) -> bool {
        self.fine.iter().any(|fine| {
            let within = fine.find(self.text).and_then(|offset| at.checked_sub(offset));
            within.and_then(|start| line.get(start..)).is_some_and(|rest| rest.starts_with(fine))
        })
    }
}

/// Returns whether no letter touches the stretch. Names are split at underscores: `read_holder` has the word
/// 'holder'.
fn is_whole(line: &str, at: usize, length: usize) -> bool {
    let before = line.get(..at).and_then(|before| before.chars().next_back());
    let after = line.get(at + length..).and_then(|after| after.chars().next());
    !before.is_some_and(char::is_alphabetic) && !after.is_some_and(char::is_alphabetic)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str =
        "# a comment\nis no\tis not a\tthere is no, is no longer\nmend\tfix\n!a/\tmend\tis quoted there\n";

    fn found(path: &str, text: &str) -> Vec<String> {
        let words = Words::parse(LIST).expect("the list is well-formed");
        words.findings(path, text).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn phrases_are_found_as_whole_words_with_what_to_write() {
        assert_eq!(found("x.md", "fine\nThis Is no file\n"), ["x.md:2: 'is no': write is not a"]);
        assert_eq!(found("x.rs", "fn mend_all() {}"), ["x.rs:1: 'mend': write fix"]);
        assert_eq!(found("mend.txt", ""), ["mend.txt: 'mend': write fix"]);
        assert_eq!(found("x.md", "recommended, this now"), [""; 0]);
    }

    #[test]
    fn longer_phrases_and_files_are_exceptions() {
        assert_eq!(found("x.md", "There is no file, and it is no longer needed"), [""; 0]);
        assert_eq!(found("x.md", "there is no file that is no text"), ["x.md:1: 'is no': write is not a"]);
        assert_eq!(found("a/x.md", "mend, but it is no file"), ["a/x.md:1: 'is no': write is not a"]);
    }

    #[test]
    fn a_line_of_another_form_is_an_error() {
        assert!(Words::parse("no columns").is_err());
    }
}
