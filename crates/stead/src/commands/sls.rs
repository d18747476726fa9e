//! `stead sls convert`: SLS files of Idem in, a document out.

use std::path::{Path, PathBuf};

use stead_core::sls::{self, Conversion, Sls};
use stead_core::text::{Source, Sources};
use stead_core::value::Value;

use super::show_findings;
use crate::args::{Convert, OutputFormat};
use crate::exit::Exit;
use crate::input;
use crate::output::{complain, pretty, print, yaml};

/// How many files a document can be made of.
const MOST_FILES: usize = 10_000;

/// Prints the document that SLS files become.
pub(crate) fn convert(arguments: &Convert) -> Exit {
    let mut files = Files { sources: Sources::default(), root: PathBuf::new(), loaded: Vec::new() };
    if let Err(why) = arguments.files.iter().try_for_each(|path| files.given(path)) {
        complain(&format!("error: {why}"));
        return Exit::Unusable;
    }
    let (document, findings) = loop {
        match sls::convert(&files.loaded, &files.sources) {
            Conversion::Done { document, findings } => break (document, findings),
            Conversion::Needs(references) => references.into_iter().for_each(|reference| files.included(reference)),
        }
    };
    show_findings(&findings, &files.sources);
    let Some(document) = document else { return Exit::Unusable };
    let json = |value: &Value| value.to_redacted_json();
    print(&match arguments.output_format {
        OutputFormat::Yaml => document.text(|value| yaml(&json(value))),
        OutputFormat::Json => json(&document.value()).to_string() + "\n",
        OutputFormat::PrettyJson => pretty(&json(&document.value())) + "\n",
    });
    if findings.is_empty() { Exit::Success } else { Exit::Drifted }
}

/// The files that are converted.
struct Files {
    sources: Sources,
    /// The folder of the first; references start from it.
    root: PathBuf,
    loaded: Vec<Sls>,
}

impl Files {
    /// Reads a file of the command line.
    fn given(&mut self, path: &Path) -> Result<(), input::Unreadable> {
        let text = input::read(path)?;
        if self.loaded.is_empty() {
            self.root = input::folder(path);
        }
        let file = path.with_extension("");
        let file = if file.ends_with("init") { input::folder(path) } else { file };
        let inside =
            std::path::absolute(&file).ok().and_then(|file| Some(file.strip_prefix(&self.root).ok()?.to_owned()));
        let parts: Vec<String> = inside.iter().flatten().map(|part| part.to_string_lossy().into_owned()).collect();
        let reference = if parts.is_empty() { "init".to_owned() } else { parts.join(".") };
        let source = self.sources.add(Source::new(text.name, &text.text));
        self.loaded.push(Sls { reference, text: Ok(source) });
        Ok(())
    }

    /// Reads a file that another includes.
    fn included(&mut self, reference: String) {
        let file = self.root.join(reference.replace('.', "/"));
        let (single, folder) = (file.with_extension("sls"), file.join("init.sls"));
        let text = match [&single, &folder].into_iter().find(|path| path.is_file()) {
            _ if self.loaded.len() >= MOST_FILES => Err(format!("there are more than {MOST_FILES} files")),
            None => Err(format!("there is neither {} nor {}", single.display(), folder.display())),
            Some(path) => match input::read(path) {
                Ok(text) => Ok(self.sources.add(Source::new(text.name, &text.text))),
                Err(error) => Err(error.to_string()),
            },
        };
        self.loaded.push(Sls { reference, text });
    }
}
