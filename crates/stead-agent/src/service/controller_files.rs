//! The files of the releases that a controller serves. It says which release of which channel comes next; everything is checked here.

use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use stead_protocol::{EPOCH, KnownFile, KnownFiles, MachineAnswer, source_path};
use stead_release::{Name, SourceFile};
use stead_resources::exchange::ExchangeAnswer;
use stead_resources::transfer::TransferStart;
use stead_system::fs::reason;

use super::Agent;
use super::controller::Controller;
use crate::follow::{Fetch, FetchError, grown, longest};

/// How often a request is made whose proof was refused: with another session, or a higher number.
const TRIES: usize = 2;

/// The files of a controller.
pub(super) struct ControllerFiles {
    agent: Arc<Agent>,
    controller: Arc<Controller>,
    place: PathBuf,
    known: KnownFiles,
}

impl ControllerFiles {
    pub(super) fn new(agent: Arc<Agent>, controller: Arc<Controller>, place: PathBuf) -> Self {
        Self { agent, controller, place, known: KnownFiles::default() }
    }

    fn ask(&self, file: &SourceFile, range: Option<&str>) -> Result<Option<ExchangeAnswer>, FetchError> {
        let path = source_path(file);
        for last in (0..TRIES).rev() {
            let range = range.map(str::to_owned);
            let answered = self.controller.ask(&self.agent, path.clone(), range, longest(file));
            let answer = answered.map_err(|why| FetchError::new(format!("cannot fetch '{file}': {why}")))?;
            match answer.status {
                status if answer.header(EPOCH).is_none() => {
                    let why = format!("what answers is not a controller, but says {status}");
                    return Err(FetchError::new(format!("cannot fetch '{file}': {why}")));
                }
                200 | 206 | 416 => return Ok(Some(answer)),
                404 | 410 => return Ok(None),
                401 | 409 if last > 0 => {}
                status => {
                    let said = MachineAnswer::of(0, status, |name| answer.header(name), answer.body.clone());
                    let until = said.retry_after.map(|after| Timestamp::now().checked_add(Duration::from_secs(after)));
                    let reason = format!("cannot fetch '{file}': the controller says {status}: {}", said.words());
                    return Err(FetchError { reason, until: until.and_then(Result::ok) });
                }
            }
        }
        Ok(None)
    }

    /// Writes what is missing of a bundle to the end of a file, part by part.
    fn parts(&self, file: &SourceFile, start: TransferStart<'_>, mut to: &File) -> Result<bool, FetchError> {
        let unwritable = |error: std::io::Error| FetchError::new(format!("cannot write it: {}", reason(&error)));
        if !matches!(start, TransferStart::Part) {
            to.set_len(0).map_err(unwritable)?;
        }
        loop {
            let here = to.seek(SeekFrom::End(0)).map_err(unwritable)?;
            let Some(answer) = self.ask(file, Some(&format!("bytes={here}-")))? else { return Ok(false) };
            let total = answer.header("content-range").and_then(|range| range.rsplit_once('/')?.1.parse::<u64>().ok());
            if answer.status == 416 {
                return Ok(true);
            }
            if answer.status == 200 {
                to.set_len(0).and_then(|()| to.seek(SeekFrom::Start(0))).map_err(unwritable)?;
            }
            to.write_all(&answer.body).map_err(unwritable)?;
            let now = to.seek(SeekFrom::End(0)).map_err(unwritable)?;
            if now > longest(file) {
                return Err(FetchError::new(format!("'{file}' is too large")));
            }
            if answer.status == 200 || answer.body.is_empty() || total.is_none_or(|total| now >= total) {
                return Ok(true);
            }
        }
    }
}

impl Fetch for ControllerFiles {
    fn begin(&mut self) -> Result<(), FetchError> {
        self.known.begin(self.controller.newest());
        Ok(())
    }

    fn file(&mut self, file: &SourceFile) -> Result<Option<Vec<u8>>, FetchError> {
        match self.known.find(file) {
            KnownFile::Here(content) => return Ok(Some(content.to_vec())),
            KnownFile::Absent => return Ok(None),
            KnownFile::Unknown => {}
        }
        if let SourceFile::Blob(name) = file {
            return grown(&self.place, name, |start, to| self.parts(file, start, to));
        }
        let Some(answer) = self.ask(file, None)? else { return Ok(None) };
        self.known.keep(file.clone(), answer.body.as_slice().into());
        Ok(Some(answer.body))
    }

    fn is_ready(&self) -> bool {
        self.controller.newest().is_some()
    }

    fn channel(&self) -> Option<Name> {
        self.known.channel()
    }

    fn ended(&mut self, is_done: bool) {
        self.known.ended(is_done);
        self.controller.looked(&self.agent, is_done);
    }
}
