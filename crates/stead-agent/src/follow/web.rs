//! A web server with releases.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use stead_release::{Digest, SourceFile};
use stead_resources::transfer::{self, TransferProblem, TransferRequest, TransferStart, Validators, Vouched};
use stead_system::Cancel;
use stead_system::folder::Folder;
use url::Url;

use super::grown::{content, grown, unusable};
use super::{Fetch, FetchError, longest};

/// How long a statement may take, and a bundle.
const STATEMENT: Duration = Duration::from_mins(2);
const BUNDLE: Duration = Duration::from_hours(1);

/// How many bytes of statements are kept between two looks: those of a fleet of ten thousand machines.
const MOST_KEPT: usize = 8 << 20;

/// The name of the file that a statement is fetched into.
const STATEMENT_FILE: &str = "statement";

/// The files of a web server, over HTTPS.
///
/// Guarantees: the server is checked by the certificates that the system trusts, and redirects lead to HTTPS alone. A statement
/// that is known is asked for by what the server said of it. A bundle that breaks off goes on where it was, also in another
/// process, and is not fetched again once it is whole.
pub(super) struct WebFiles {
    base: Url,
    /// Where bundles grow.
    place: PathBuf,
    cancel: Cancel,
    /// The statements that were fetched, with what the server said of them.
    known: BTreeMap<SourceFile, (Validators, Vec<u8>)>,
    /// How long a statement may take, and a bundle.
    timeouts: (Duration, Duration),
}

/// The answer for one file.
enum Answer {
    /// The server does not have it.
    Absent,
    /// The server has what is known.
    Unchanged,
    /// All of it came, which the server tells from others by these.
    Whole(Validators),
}

impl WebFiles {
    pub(super) fn new(base: Url, place: PathBuf, cancel: Cancel) -> Self {
        Self { base, place, cancel, known: BTreeMap::new(), timeouts: (STATEMENT, BUNDLE) }
    }

    /// Fetches a file into another one.
    fn fetch(&self, file: &SourceFile, start: TransferStart<'_>, to: &File) -> Result<Answer, FetchError> {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(file.to_string().split('/'));
        }
        let timeout = if matches!(file, SourceFile::Blob(_)) { self.timeouts.1 } else { self.timeouts.0 };
        let (headers, max_size, cancel) = (BTreeMap::new(), longest(file), &self.cancel);
        let (vouched, leaves_alone) = (Vouched::BySignature, true);
        let request = TransferRequest {
            url: &url,
            headers: &headers,
            proxy: None,
            timeout,
            max_size,
            vouched,
            leaves_alone,
            cancel,
        };
        match transfer::fetch(&request, start, to) {
            Ok(fetched) => Ok(fetched.map_or(Answer::Unchanged, Answer::Whole)),
            Err(TransferProblem { status: Some(404 | 410), .. }) => Ok(Answer::Absent),
            Err(TransferProblem { reason, again, .. }) => {
                let until = again.map(|again| Timestamp::now().checked_add(again).unwrap_or(Timestamp::MAX));
                let rest = until.map(|until| format!(", and wants to be left alone until {until:.0}"));
                Err(FetchError { reason: format!("cannot fetch '{url}': {reason}{}", rest.unwrap_or_default()), until })
            }
        }
    }

    fn statement(&mut self, file: &SourceFile) -> Result<Option<Vec<u8>>, FetchError> {
        let folder = Folder::create(&self.place).map_err(|error| unusable(&error))?;
        let mut to = folder.open(STATEMENT_FILE).map_err(|error| unusable(&error))?;
        let known = self.known.get(file);
        let start = known.map_or(TransferStart::Anew, |(validators, _)| TransferStart::Known(validators));
        let fetched = self.fetch(file, start, &to);
        let fetched = fetched.and_then(|fetched| Ok((fetched, content(&mut to)?)));
        folder.remove_unflushed(STATEMENT_FILE).map_err(|error| unusable(&error))?;
        let (validators, content) = match fetched? {
            (Answer::Absent, _) => return Ok(None),
            (Answer::Unchanged, _) => return Ok(known.map(|(_, content)| content.clone())),
            (Answer::Whole(validators), content) => (validators, content),
        };
        self.keep(file, validators, &content);
        Ok(Some(content))
    }

    fn keep(&mut self, file: &SourceFile, validators: Validators, content: &[u8]) {
        self.known.remove(file);
        let kept: usize = self.known.values().map(|(_, content)| content.len()).sum();
        // Most of it is of releases that are behind the machine.
        if kept + content.len() > MOST_KEPT {
            self.known.clear();
        }
        if !validators.is_empty() {
            self.known.insert(file.clone(), (validators, content.to_owned()));
        }
    }

    fn bundle(&self, file: &SourceFile, name: &Digest) -> Result<Option<Vec<u8>>, FetchError> {
        grown(&self.place, name, |start, to| Ok(!matches!(self.fetch(file, start, to)?, Answer::Absent)))
    }
}

impl Fetch for WebFiles {
    fn file(&mut self, file: &SourceFile) -> Result<Option<Vec<u8>>, FetchError> {
        match file {
            SourceFile::Blob(name) => self.bundle(file, name),
            _ => self.statement(file),
        }
    }
}

#[cfg(test)]
mod tests;
