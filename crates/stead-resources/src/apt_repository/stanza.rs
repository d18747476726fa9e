//! The fields of one repository in deb822(5).

/// One stanza, without its comments.
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
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let last = stanzas.last_mut()?;
            if line.trim().is_empty() {
                if !last.is_empty() {
                    stanzas.push(Vec::new());
                }
            } else if line.starts_with([' ', '\t']) {
                let (_, text) = last.last_mut()?;
                text.push('\n');
                text.push_str(line);
            } else {
                let (field, text) = line.split_once(':')?;
                last.push((field.to_owned(), text.trim().to_owned()));
            }
        }
        stanzas.retain(|stanza| !stanza.is_empty());
        let [only] = <[_; 1]>::try_from(stanzas).ok()?;
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
        self.0.iter().flat_map(|(field, text)| [field, ": ", text, "\n"]).collect()
    }
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
        let written = "types: deb deb-src\nURIs: http://a\n  http://b\nSigned-By: \n -----BEGIN\n .\n x\nSuites: x\n";
        assert_eq!(stanza.text(), written);
        assert_eq!(Stanza::only(written).map(|stanza| stanza.text()), Some(written.to_owned()));
        for other in ["", "# only\n", "A: b\n\nA: c\n", "no colon\n", " continues\n"] {
            assert_eq!(Stanza::only(other), None, "{other:?}");
        }
    }
}
