//! All sources of a system: apt refuses all of them where two of the same repository contradict each other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use stead_core::call::Failure;
use stead_host::provider::Context;
use stead_system::fs::Identity;

use super::{MAX_SIZE, SOURCES, is_yes};
use crate::edit::entries_in;

/// A source of one suite of a repository.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Source {
    /// The file that it is in, and the line.
    pub(super) file: String,
    pub(super) line: usize,
    uri: String,
    suite: String,
    options: Options,
}

/// The options on which two sources of the same suite must agree.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Options {
    signed_by: BTreeSet<String>,
    trusted: Option<bool>,
}

impl Source {
    /// The property in which apt finds that a later source contradicts this one.
    pub(super) fn contradicted(&self, later: &Self) -> Option<&'static str> {
        if (&self.uri, &self.suite) != (&later.uri, &later.suite) {
            return None;
        }
        let (one, other) = (&self.options, &later.options);
        match () {
            () if !one.signed_by.is_empty() && one.signed_by != other.signed_by => Some("signedBy"),
            () if one.trusted.is_some() && one.trusted != other.trusted => Some("trusted"),
            () => None,
        }
    }
}

/// A cache of what the files of sources say, by path: each instance looks at all of them, and they hardly change.
#[derive(Default)]
pub(super) struct Known(Mutex<BTreeMap<PathBuf, Read>>);

/// The sources in a file, and the identity of the content that they were read from.
struct Read {
    of: Identity,
    sources: Arc<[Source]>,
}

impl Known {
    /// The sources that are enabled, in the order in which apt reads them, file by file.
    pub(super) fn all(&self, cx: &Context) -> Result<Vec<Arc<[Source]>>, Failure> {
        let folder = format!("/{SOURCES}");
        // apt follows links in it.
        let names = entries_in(cx, &folder)?.into_keys().filter_map(|name| name.into_string().ok());
        let names = names.map(|name| format!("{folder}/{name}"));
        let files = std::iter::once("/etc/apt/sources.list".to_owned()).chain(names);
        Ok(files.filter_map(|file| self.of_file(cx, &file)).collect())
    }

    fn of_file(&self, cx: &Context, file: &str) -> Option<Arc<[Source]>> {
        let read: fn(&str, &str) -> Vec<Source> = match Path::new(file).extension()?.to_str()? {
            "list" => of_lines,
            "sources" => of_stanzas,
            _ => return None,
        };
        let path = PathBuf::from(cx.resolve(file));
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let identity = cx.system_root.status(file)?.identity;
        if let Some(read) = known().get(&path).filter(|read| read.of == identity) {
            return Some(Arc::clone(&read.sources));
        }
        let content = cx.system_root.read(file, MAX_SIZE).ok()??;
        let sources: Arc<[Source]> = read(file, &String::from_utf8_lossy(&content.bytes)).into();
        known().insert(path, Read { of: content.status.identity, sources: Arc::clone(&sources) });
        Some(sources)
    }
}

/// The sources of a file with one on each line.
fn of_lines(file: &str, text: &str) -> Vec<Source> {
    let source = |(at, line): (usize, &str)| {
        let rest = line.trim().strip_prefix("deb-src").or_else(|| line.trim().strip_prefix("deb"))?;
        let rest = rest.strip_prefix([' ', '\t'])?.trim_start();
        let (options, rest) = match rest.strip_prefix('[') {
            Some(rest) => rest.split_once(']')?,
            None => ("", rest),
        };
        let options = options.split_whitespace().filter_map(|option| option.split_once('='));
        let options: BTreeMap<String, &str> = options.map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
        let mut words = rest.split_whitespace();
        let (uri, suite) = (words.next()?, words.next()?);
        let options = Options::of(options.get("signed-by").copied(), options.get("trusted").copied());
        Some(Source { file: file.to_owned(), line: at + 1, uri: with_slash(uri), suite: suite.to_owned(), options })
    };
    text.lines().enumerate().filter_map(source).collect()
}

/// The sources of a file with fields in stanzas.
pub(super) fn of_stanzas(file: &str, text: &str) -> Vec<Source> {
    let mut found = Vec::new();
    let mut stanza: BTreeMap<String, (usize, String)> = BTreeMap::new();
    let mut last = String::new();
    for (at, line) in text.lines().chain([""]).enumerate() {
        if line.trim().is_empty() {
            found.extend(of_stanza(file, &std::mem::take(&mut stanza)));
        } else if line.starts_with([' ', '\t']) {
            if let Some((_, value)) = stanza.get_mut(&last) {
                value.push('\n');
                value.push_str(line);
            }
        } else if let Some((name, value)) = line.split_once(':').filter(|_| !line.starts_with('#')) {
            last = name.to_ascii_lowercase();
            stanza.insert(last.clone(), (at + 1, value.to_owned()));
        }
    }
    found
}

fn of_stanza(file: &str, stanza: &BTreeMap<String, (usize, String)>) -> Vec<Source> {
    let field = |name: &str| stanza.get(name).map(|(_, value)| value.as_str());
    if field("enabled").is_some_and(|enabled| !is_yes(enabled.trim())) {
        return Vec::new();
    }
    let line = stanza.get("uris").map_or(1, |(line, _)| *line);
    let options = Options::of(field("signed-by"), field("trusted"));
    let words = |name: &str| field(name).unwrap_or_default().split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let suites = words("suites");
    let of_uri = |uri: String| {
        let source = |suite: &String| Source {
            file: file.to_owned(),
            line,
            uri: with_slash(&uri),
            suite: suite.clone(),
            options: options.clone(),
        };
        suites.iter().map(source).collect::<Vec<_>>()
    };
    words("uris").into_iter().flat_map(of_uri).collect()
}

impl Options {
    fn of(signed_by: Option<&str>, trusted: Option<&str>) -> Self {
        let signed_by = signed_by.unwrap_or_default().trim();
        // A key that is written out has lines in which commas mean nothing.
        let keys: BTreeSet<String> = if signed_by.contains("-----BEGIN") {
            [signed_by.split_whitespace().collect::<Vec<_>>().join(" ")].into()
        } else {
            signed_by.split([',', ' ', '\n', '\t']).filter(|key| !key.is_empty()).map(str::to_owned).collect()
        };
        Self { signed_by: keys, trusted: trusted.map(|trusted| is_yes(trusted.trim())) }
    }
}

fn with_slash(uri: &str) -> String {
    format!("{}/", uri.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_that_apt_refuses_together_contradict_each_other() {
        let lines = |text: &str| of_lines("a.list", text).remove(0);
        let one = lines("deb [arch=amd64 signed-by=/x.gpg] http://r.test/d/ stable main");
        for (later, expected) in [
            ("deb http://r.test/d stable main", Some("signedBy")),
            ("deb-src [signed-by=/y.gpg] http://r.test/d stable main", Some("signedBy")),
            ("deb [signed-by=/x.gpg] http://r.test/d stable other", None),
            ("deb [signed-by=/y.gpg] http://r.test/d other main", None),
        ] {
            assert_eq!(one.contradicted(&lines(later)), expected, "{later}");
        }
        assert_eq!(lines("deb http://r.test/d stable main").contradicted(&one), None);
        let text = "# c\nTypes: deb\nURIs: http://r.test/d\nSuites: a\n stable\nSigned-By: /y.gpg\n\nURIs: http://r.test/d\nSuites: stable\nEnabled: no\n";
        let stanzas = of_stanzas("b.sources", text);
        assert_eq!(
            stanzas.iter().map(|source| (source.line, source.suite.as_str())).collect::<Vec<_>>(),
            [(3, "a"), (3, "stable")]
        );
        assert_eq!(stanzas.iter().find_map(|source| one.contradicted(source)), Some("signedBy"));
    }
}
