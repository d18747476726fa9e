//! `stead bundle`: a document and the files that it reads, as one file.

use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use stead_core::bundle::{self, Bundle, Entry, Reach};
use stead_core::diag::{Diagnostic, any_error, counted};
use stead_core::event::Mode;
use stead_core::graph::Values;
use stead_core::graph::codes::UNKNOWN_TYPE;
use stead_core::identity::DocumentIdentity;
use stead_core::parameters::Supplied;
use stead_engine::{Bundled, NotBundled, Session, error_chain};
use stead_system::fs::Writes;

use super::files;
use super::ready::distinct;
use crate::exit::Exit;
use crate::input::{self, Text};
use crate::process_env::ProcessEnv;
use crate::request::BundleRequest;
use crate::terminal::{Output, complain, data_as, print, show_findings};

/// Writes the bundle of a document.
pub(crate) fn bundle(request: &BundleRequest, env: &ProcessEnv) -> Exit {
    let bundled = match made(request, env) {
        Ok(bundled) => bundled,
        Err(exit) => return exit,
    };
    if !files::may_become(&request.out, bundle::BEGIN) {
        let out = request.out.display();
        complain(&format!("error: the bundle was not written: '{out}' exists and is not a bundle"));
        complain("help: choose another file name, or remove the file first");
        return Exit::Failed;
    }
    let bytes = bundled.bundle.encode();
    let written = std::path::absolute(&request.out)
        .map_err(|error| stead_system::fs::reason(&error))
        .and_then(|path| files::write(&path, &bytes, 0o600, &Writes::default()).map_err(|error| error_chain(&error)));
    if let Err(reason) = written {
        complain(&format!("error: the bundle was not written: {reason}"));
        return Exit::Failed;
    }
    report(&bundled, bytes.len(), request.output);
    Exit::Success
}

fn made(request: &BundleRequest, env: &ProcessEnv) -> Result<Bundled, Exit> {
    let root = request.root.clone().unwrap_or_else(|| input::folder(&request.document));
    let session = env.host.session(std::path::absolute(&root).unwrap_or(root));
    let text = input::document(&session, &request.document).map_err(|error| {
        complain(&format!("error: {error}"));
        Exit::Unusable
    })?;
    of_text(session, &text)
}

/// Bundles a document with its files, and reports what is wrong with it.
pub(crate) fn of_text(mut session: Session, text: &Text) -> Result<Bundled, Exit> {
    let bundled = session.bundle(&text.name, &text.text, Reach::Folder);
    let Bundled { bundle, on_machine } = bundled.map_err(|not_bundled| refuse(&not_bundled, &session.sources))?;
    let bundle = Arc::new(bundle);
    check(session, text, &bundle)?;
    Ok(Bundled { bundle: Arc::unwrap_or_clone(bundle), on_machine })
}

/// Reports what is wrong with a document as its bundle is used: with no other files, and any parameters. A type that is not
/// installed where it is bundled can be where it is used.
fn check(session: Session, text: &Text, bundle: &Arc<Bundle>) -> Result<(), Exit> {
    let mut session = session.with(|options| options.values = Values::Open);
    input::opened(&mut session, bundle, Path::new(&text.name)).map_err(|error| {
        complain(&format!("error: {error}"));
        Exit::Failed
    })?;
    let findings = match session.prepare(&text.name, text.text.as_str(), Supplied::default()) {
        Ok(prepared) => {
            let mismatches = session.check_properties(&prepared, Mode::PLAN);
            prepared.warnings.iter().cloned().chain(mismatches).collect()
        }
        Err(unusable) => session.with_properties(unusable, Mode::PLAN).findings,
    };
    let (elsewhere, findings): (Vec<Diagnostic>, Vec<Diagnostic>) =
        distinct(&findings).into_iter().partition(|finding| *finding.code == UNKNOWN_TYPE);
    for finding in elsewhere {
        complain(&format!("note: {}; it must be installed where the bundle is used", finding.message));
    }
    show_findings(&findings, &session.sources);
    if any_error(&findings) { Err(Exit::Unusable) } else { Ok(()) }
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
                "identity": bundle.identity().and_then(DocumentIdentity::name),
                "files": bundle.entries().keys().collect::<Vec<_>>(),
                "onMachine": on_machine,
                "bytes": bytes,
            }),
            output,
        ),
    }
}
