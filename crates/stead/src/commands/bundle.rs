//! `stead bundle`: a document and the files that it reads, as one file.

use serde_json::json;
use stead_core::bundle::{Entry, Reach};
use stead_core::diag::counted;
use stead_engine::{Bundled, NotBundled, error_chain};
use stead_host::fs::Writes;

use super::{files, show_findings};
use crate::args::{Bundle, Output};
use crate::exit::Exit;
use crate::input;
use crate::output::{complain, data_as, print};
use crate::process_env::ProcessEnv;

/// Writes the bundle of a document.
pub(crate) fn bundle(arguments: &Bundle, env: &ProcessEnv) -> Exit {
    let bundled = match made(arguments, env) {
        Ok(bundled) => bundled,
        Err(exit) => return exit,
    };
    let bytes = bundled.bundle.encode();
    let written = std::path::absolute(&arguments.out)
        .map_err(|error| stead_host::fs::reason(&error))
        .and_then(|path| files::write(&path, &bytes, 0o600, &Writes::default()).map_err(|error| error_chain(&error)));
    if let Err(reason) = written {
        complain(&format!("error: the bundle was not written: {reason}"));
        return Exit::Failed;
    }
    report(&bundled, bytes.len(), arguments.output);
    Exit::Success
}

fn made(arguments: &Bundle, env: &ProcessEnv) -> Result<Bundled, Exit> {
    let root = arguments.root.clone().unwrap_or_else(|| input::folder(&arguments.document));
    let mut session = env.host.session(std::path::absolute(&root).unwrap_or(root));
    let text = input::document(&session, &arguments.document).map_err(|error| {
        complain(&format!("error: {error}"));
        Exit::Unusable
    })?;
    let bundled = session.bundle(&text.name, &text.text, Reach::Folder);
    bundled.map_err(|not_bundled| refuse(&not_bundled, &session.sources))
}

/// Says why a document cannot be delivered.
pub(crate) fn refuse(why: &NotBundled, sources: &stead_core::text::Sources) -> Exit {
    match why {
        NotBundled::Findings(findings) => show_findings(findings, sources),
        NotBundled::Bundle(error) => complain(&format!("error: {error}")),
    }
    Exit::Unusable
}

fn report(bundled: &Bundled, bytes: usize, output: Output) {
    let Bundled { bundle, on_machine } = bundled;
    let is_file = |entry: &&Entry| matches!(entry, Entry::File { .. });
    let files = bundle.entries().values().filter(is_file).count();
    match output {
        Output::Text => {
            print(&format!("{}: a document and {}, {bytes} bytes\n", bundle.name(), counted(files, "file")));
            for path in on_machine {
                complain(&format!("note: '{path}' is not in the bundle: it is read on the machine"));
            }
        }
        output => data_as(
            &json!({
                "version": 1,
                "name": bundle.name(),
                "identity": bundle.identity(),
                "files": bundle.entries().keys().collect::<Vec<_>>(),
                "onMachine": on_machine,
                "bytes": bytes,
            }),
            output,
        ),
    }
}
