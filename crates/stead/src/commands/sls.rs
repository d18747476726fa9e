//! `stead sls convert`: SLS files of Idem in, a document out.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use stead_core::text::{Source, Sources};
use stead_core::value::Value;
use stead_sls::{Conversion, Layout, Sls};

use crate::exit::Exit;
use crate::input;
use crate::terminal::{self, OutputFormat, complain, pretty, print_exactly, show_findings, yaml};

/// How many files a document can be made of.
const MOST_FILES: usize = 10_000;

/// Prints the document that SLS files become.
pub(crate) fn convert(paths: &[PathBuf], format: OutputFormat) -> Exit {
    let mut files = Files::default();
    if let Err(why) = paths.iter().try_for_each(|path| files.given(path)) {
        complain(&format!("error: {why}"));
        return Exit::Unusable;
    }
    let (document, findings) = loop {
        match stead_sls::convert(&files.loaded, &files.sources) {
            Conversion::Done { document, findings } => break (document, findings),
            Conversion::Needs(references) => references.into_iter().for_each(|reference| files.included(reference)),
        }
    };
    show_findings(&findings, &files.sources);
    let Some(document) = document else { return Exit::Unusable };
    let json = |value: &Value| value.to_redacted_json();
    print_exactly(&match format {
        OutputFormat::Yaml => document.text(|value| yaml(&json(value))),
        OutputFormat::Json => terminal::json(&json(&document.value())) + "\n",
        OutputFormat::PrettyJson => pretty(&json(&document.value())) + "\n",
    });
    if findings.is_empty() { Exit::Success } else { Exit::Drifted }
}

/// The files that are converted.
#[derive(Default)]
struct Files {
    sources: Sources,
    /// The folder of the first; references start from it.
    root: PathBuf,
    /// Those of the command line, by their references.
    given: BTreeMap<String, PathBuf>,
    loaded: Vec<Sls>,
}

/// A file of the command line that is not converted.
#[derive(Debug, thiserror::Error)]
enum NotGiven {
    #[error(transparent)]
    Unreadable(#[from] input::Unreadable),
    #[error("{path} is not in {root}, the directory of the first file; give the files of one tree")]
    Outside { path: PathBuf, root: PathBuf },
    #[error("{path} and {first} are both '{reference}'; give one of them")]
    Ambiguous { path: PathBuf, first: PathBuf, reference: String },
}

impl Files {
    /// Reads a file of the command line, once.
    fn given(&mut self, path: &Path) -> Result<(), NotGiven> {
        if self.loaded.is_empty() {
            self.root = input::folder(path);
        }
        let outside = || NotGiven::Outside { path: path.to_owned(), root: self.root.clone() };
        let file = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let inside = file.strip_prefix(&self.root).map_err(|_| outside())?;
        let (reference, layout) = reference(inside).ok_or_else(outside)?;
        if let Some(first) = self.given.get(&reference) {
            let (path, first) = (path.to_owned(), first.clone());
            return if first == file { Ok(()) } else { Err(NotGiven::Ambiguous { path, first, reference }) };
        }
        let text = input::read(path)?;
        let source = self.sources.add(Source::new(text.name, &text.text));
        self.given.insert(reference.clone(), file);
        self.loaded.push(Sls { reference, layout, text: Ok(source) });
        Ok(())
    }

    /// Reads a file that another includes.
    fn included(&mut self, reference: String) {
        let path = reference.replace('.', "/");
        let files =
            [Layout::Single, Layout::Init].map(|layout| (layout, self.root.join(path.clone() + layout.suffix())));
        let found = files.iter().find(|(_, file)| file.is_file());
        let text = match found {
            _ if self.loaded.len() >= MOST_FILES => Err(format!("there are more than {MOST_FILES} files")),
            None => {
                let [(_, single), (_, init)] = &files;
                Err(format!("there is neither {} nor {}", single.display(), init.display()))
            }
            Some((_, file)) => match input::read(file) {
                Ok(text) => Ok(self.sources.add(Source::new(text.name, &text.text))),
                Err(error) => Err(error.to_string()),
            },
        };
        let layout = found.map_or(Layout::Single, |(layout, _)| *layout);
        self.loaded.push(Sls { reference, layout, text });
    }
}

/// The reference of a file, by its path from the root. The `init.sls` of the root itself is `init`.
fn reference(inside: &Path) -> Option<(String, Layout)> {
    let file = inside.with_extension("");
    let mut parts = Vec::new();
    for part in file.components() {
        let Component::Normal(part) = part else { return None };
        parts.push(part.to_string_lossy());
    }
    let layout = if parts.len() > 1 && file.ends_with("init") { Layout::Init } else { Layout::Single };
    if layout == Layout::Init {
        parts.pop();
    }
    (!parts.is_empty()).then(|| (parts.join("."), layout))
}
