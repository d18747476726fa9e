//! The fields of one repository in deb822(5).

/// One stanza. A comment is a field without a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Stanza(Vec<(String, String)>);

impl Stanza {
    /// One with a single field.
    pub(super) fn of(field: &str, text: &str) -> Self {
        Self(vec![(field.to_owned(), text.to_owned())])
    }

    /// The stanza of a file that has exactly one.
    pub(super) fn only(text: &str) -> Option<Self> {
        let mut stanzas: Vec<Vec<(String, String)>> = vec![Vec::new()];
        for line in text.lines() {
            let last = stanzas.last_mut()?;
            if line.starts_with('#') {
                last.push((String::new(), line.to_owned()));
            } else if line.trim().is_empty() {
                if has_fields(last) {
                    stanzas.push(Vec::new());
                }
            } else if line.starts_with([' ', '\t']) {
                let (_, text) = last.iter_mut().rev().find(|(field, _)| !field.is_empty())?;
                text.push('\n');
                text.push_str(line);
            } else {
                let (field, text) = line.split_once(':')?;
                last.push((field.to_owned(), text.trim().to_owned()));
            }
        }
        let (described, comments): (Vec<_>, Vec<_>) = stanzas.into_iter().partition(|stanza| has_fields(stanza));
        let [mut only] = <[_; 1]>::try_from(described).ok()?;
        only.extend(comments.into_iter().flatten());
        Some(Self(only))
    }

    /// The text of a field; names of fields have no case.
    pub(super) fn get(&self, field: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| name.eq_ignore_ascii_case(field)).map(|(_, text)| text.trim())
    }

    /// Sets a field.
    pub(super) fn set(&mut self, field: &str, text: &str) {
        match self.0.iter_mut().find(|(name, _)| name.eq_ignore_ascii_case(field)) {
            Some((_, former)) => text.clone_into(former),
            None => self.0.push((field.to_owned(), text.to_owned())),
        }
    }

    /// As it is written to a file.
    pub(super) fn text(&self) -> String {
        let separator = |field: &str| if field.is_empty() { "" } else { ": " };
        self.0.iter().flat_map(|(field, text)| [field, separator(field), text, "\n"]).collect()
    }
}

fn has_fields(stanza: &[(String, String)]) -> bool {
    stanza.iter().any(|(field, _)| !field.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_one_stanza_is_read_and_written() {
        let text = "# comment\n\ntypes: deb\nURIs: http://a\n  http://b\n# other\nSigned-By:\n -----BEGIN\n .\n x\n\n";
        let mut stanza = Stanza::only(text).unwrap_or_else(|| Stanza::of("", ""));
        assert_eq!(stanza.get("Types"), Some("deb"));
        assert_eq!(stanza.get("URIs"), Some("http://a\n  http://b"));
        stanza.set("Types", "deb deb-src");
        stanza.set("Suites", "x");
        let written = "# comment\ntypes: deb deb-src\nURIs: http://a\n  http://b\n# other\nSigned-By: \n -----BEGIN\n .\n x\nSuites: x\n";
        assert_eq!(stanza.text(), written);
        assert_eq!(Stanza::only(written).map(|stanza| stanza.text()), Some(written.to_owned()));
        for other in ["", "# only\n", "A: b\n\nA: c\n", "no colon\n", " continues\n"] {
            assert_eq!(Stanza::only(other), None, "{other:?}");
        }
    }
}
