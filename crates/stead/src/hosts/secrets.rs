//! Secrets that a run elsewhere asks this process for, and the questions of such a run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::json;
use stead_core::value::Sensitive;
use stead_engine::{SecretSource, Session, SessionOptions, VaultEntry};
use stead_system::Cancel;

use super::order::{Question, Reply};
use crate::exit::Exit;
use crate::process_env::ProcessEnv;
use crate::terminal::{complain, complain_json};

/// How long a run waits for one answer: vaults may be slow, and other machines may ask as well.
const PATIENCE: Duration = Duration::from_mins(10);

/// How often a run that waits looks for its end.
const TICK: Duration = Duration::from_millis(100);

type Found = Result<Sensitive<String>, String>;

/// The vaults of whoever called the command, for the machines that it is carried out on.
///
/// Guarantees: only secrets that the document names are looked for, whatever a machine asks; each once for all machines.
pub(super) struct Secrets {
    session: Session,
    named: BTreeSet<VaultEntry>,
    found: Mutex<BTreeMap<VaultEntry, Found>>,
}

impl Secrets {
    /// Those of a document, with the folder that it starts from. An error is that nobody would be there to answer.
    pub(super) fn of(
        (root, named): (PathBuf, &BTreeSet<VaultEntry>),
        is_detached: bool,
        env: &ProcessEnv,
        cancel: &Cancel,
    ) -> Result<Self, Exit> {
        if is_detached && !named.is_empty() {
            complain("error: with '--detach' nobody answers a run that asks for the secrets of this document");
            complain("help: state 'directives: {secretsFrom: machine}', or apply it without '--detach'");
            return Err(Exit::Unusable);
        }
        let options = SessionOptions { cancel: cancel.clone(), ..SessionOptions::default() };
        let session = env.host.session_with(root, options);
        Ok(Self { session, named: named.clone(), found: Mutex::default() })
    }

    /// Answers a machine.
    pub(super) fn reply(&self, asked: &VaultEntry) -> Found {
        if !self.named.contains(asked) {
            return Err(not_named(&asked.name));
        }
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = found.get(asked) {
            return known.clone();
        }
        let opened = self.session.extensions().open_secret(&asked.name, asked.vault.as_deref());
        found.insert(asked.clone(), opened.clone());
        opened
    }
}

fn not_named(name: &str) -> String {
    format!(
        "the document does not name the secret '{name}' as literal text, and so it is not looked for where the command was \
         called; state 'directives: {{secretsFrom: machine}}', or write its name and vault as text"
    )
}

/// A run that asks whoever gave it its order. One question is answered before the next is asked.
pub(super) struct Asking {
    /// `None` once nobody answers any more: an answer that came too late would be taken for the next one.
    answers: Mutex<Option<Receiver<Reply>>>,
}

impl Asking {
    /// The source of secrets of a run that gets answers there, or that nobody answers.
    pub(super) fn source(answers: Option<Receiver<Reply>>) -> Arc<SecretSource> {
        let asking = Self { answers: Mutex::new(answers) };
        Arc::new(move |name, vault, cancel| asking.ask(name, vault, cancel))
    }

    fn ask(&self, name: &str, vault: Option<&str>, cancel: &Cancel) -> Found {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(open) = answers.as_ref() else { return Err(unanswered(name)) };
        let secret = VaultEntry { name: name.to_owned(), vault: vault.map(str::to_owned) };
        complain_json(&json!(Question { secret }));
        let begun = Instant::now();
        loop {
            match open.recv_timeout(TICK) {
                Ok(Reply::Secret(secret)) => return Ok(Sensitive::new(secret)),
                Ok(Reply::Refused(why)) => return Err(why),
                Err(RecvTimeoutError::Timeout) if !cancel.is_cancelled() && begun.elapsed() < PATIENCE => {}
                Err(_) => {
                    *answers = None;
                    return Err(unanswered(name));
                }
            }
        }
    }
}

fn unanswered(name: &str) -> String {
    format!("whoever called the command does not answer for the secret '{name}'")
}
