//! Cases of `corpus/fmt`: a text, and the text that formatting makes of it.

use std::process::ExitCode;

use stead_core::text::{FormatError, Limits, Source, Sources, format};
use stead_testkit::{Case, Computed, Suite};

fn main() -> ExitCode {
    stead_testkit::main(&[Suite { folder: "fmt", run }])
}

fn run(case: &Case) -> Result<Computed, String> {
    let names = ["main.yaml", "main.json", "escaped"];
    let name = names.into_iter().find(|name| case.has(name)).ok_or("the case holds no text")?;
    let written = case.section(name);
    let is_escaped = name == "escaped";
    let text = if is_escaped { unescaped(written) } else { written.to_owned() };
    match format(&text, &Limits::default()) {
        Ok(formatted) if is_escaped => Ok(vec![("formatted", escaped(&formatted.text))]),
        Ok(formatted) => Ok(vec![("formatted", formatted.text)]),
        Err(FormatError::Unreadable(findings)) => {
            let mut sources = Sources::default();
            sources.add(Source::new("main.yaml", &text));
            Ok(vec![("diagnostics", findings.iter().map(|finding| finding.brief(&sources) + "\n").collect())])
        }
        Err(error) => Err(error.to_string()),
    }
}

/// The characters that are invisible in a file, as they are written in a case; line feeds are those of the case.
const ESCAPES: [(&str, &str); 4] = [("\\t", "\t"), ("\\r", "\r"), ("\\u{feff}", "\u{feff}"), ("\\s", " ")];

fn unescaped(text: &str) -> String {
    ESCAPES.iter().fold(text.to_owned(), |text, (escape, letter)| text.replace(escape, letter))
}

fn escaped(text: &str) -> String {
    ESCAPES.iter().take(3).fold(text.to_owned(), |text, (escape, letter)| text.replace(letter, escape))
}
