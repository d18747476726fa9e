//! `agent identity`: the public keys of this machine.

use std::path::Path;

use serde_json::json;
use stead_agent::{KeysOrigin, KeysWanted, OwnKeys};
use stead_engine::error_chain;
use stead_system::Cancel;

use crate::commands::{confirm, is_attended};
use crate::exit::Exit;
use crate::request::IdentityRequest;
use crate::terminal::{Output, complain, data_as, print};

/// Prints the public keys, after making what there is not yet. It needs no agent that runs.
pub(super) fn identity(directory: &Path, wanted: IdentityRequest, output: Output) -> Exit {
    let wanted = match wanted {
        IdentityRequest::Present => KeysWanted::Present,
        IdentityRequest::New { asks } => {
            let question = "Make new keys? Reports are refused and secrets cannot be opened until the roster has them.";
            if asks
                && is_attended()
                && let Err(exit) = confirm::ask(question, &Cancel::default())
            {
                return exit;
            }
            KeysWanted::New
        }
    };
    match OwnKeys::open(directory, wanted) {
        Ok(own) => {
            show(&own, output);
            Exit::Success
        }
        Err(error) => {
            complain(&format!("error: {}", error_chain(&error)));
            Exit::Failed
        }
    }
}

fn show(OwnKeys { keys, origin }: &OwnKeys, output: Output) {
    let (word, note) = match origin {
        KeysOrigin::Kept => ("kept", None),
        KeysOrigin::First => {
            ("first", Some("keys were made for this machine; their private parts never leave it".to_owned()))
        }
        KeysOrigin::Renewed => ("renewed", Some("new keys were made; the roster needs them".to_owned())),
        KeysOrigin::Copied => {
            let note =
                "the keys that were here belong to another machine, of which this one is a copy; new ones were made";
            ("copied", Some(note.to_owned()))
        }
        KeysOrigin::Damaged(aside) => {
            let aside = aside.as_ref().map(|path| format!(" (set aside as '{}')", path.display())).unwrap_or_default();
            let note =
                format!("the keys that were here are damaged{aside}; new ones were made, which the roster needs");
            ("damaged", Some(note))
        }
    };
    if let Some(note) = note {
        complain(&format!("note: {note}"));
    }
    let identity = keys.identity().to_text();
    match output {
        Output::Text => print(&identity),
        output => data_as(
            &json!({
                "version": 1,
                "origin": word,
                "key": keys.key().to_string(),
                "fingerprint": keys.key().fingerprint(),
                "sealing": keys.sealing().to_string(),
                "identity": identity,
            }),
            output,
        ),
    }
}
