//! The files of the releases that a controller serves, as far as a machine knows them.

use std::collections::BTreeMap;
use std::sync::Arc;

use stead_core::bundle::{Bundle, Reach};
use stead_release::{Name, Release, Signed, SourceFile};

use crate::DesiredAnswer;

/// How many bytes of files are kept between two looks: the roster of ten thousand machines, and what leads to it.
const MOST_KEPT: usize = 8 << 20;

/// A file of the releases, before anybody asks for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KnownFile {
    /// It is here.
    Here(Arc<[u8]>),
    /// The controller does not have it, or it is behind what the controller names.
    Absent,
    /// The controller must be asked for it.
    Unknown,
}

/// The files that came with answers or that were asked for.
///
/// Guarantees: nothing is taken of the channel that the controller names behind the release that it names. What is known is kept for the
/// next look, until one does not end well. A bundle that came with an answer is given only as the one that its name commits to.
#[derive(Debug, Default)]
pub struct KnownFiles {
    desired: Option<DesiredAnswer>,
    files: BTreeMap<SourceFile, Arc<[u8]>>,
    /// The number of the roster that is kept.
    roster: u64,
    /// True from the beginning of a look until it ended well.
    is_suspicious: bool,
}

impl KnownFiles {
    /// A look begins, at what the newest answer names.
    pub fn begin(&mut self, desired: Option<DesiredAnswer>) {
        self.desired = desired;
        // What was wrong may be right when it is fetched again.
        if std::mem::replace(&mut self.is_suspicious, true) {
            self.files.clear();
        }
        let Some(desired) = &self.desired else { return };
        if desired.roster != self.roster {
            self.files.remove(&SourceFile::Roster);
            self.roster = desired.roster;
        }
        for text in desired.releases.clone() {
            let Ok(signed) = Signed::<Release>::parse(text.as_bytes()) else { continue };
            let Release { link, channel, .. } = signed.statement();
            self.keep(SourceFile::Release(channel.clone(), link.number), text.into_bytes().into());
        }
    }

    /// A file, as far as it is known.
    pub fn find(&self, file: &SourceFile) -> KnownFile {
        if self.is_later(file) {
            return KnownFile::Absent;
        }
        let kept = self.files.get(file).cloned().or_else(|| self.came_with_answer(file));
        kept.map_or(KnownFile::Unknown, KnownFile::Here)
    }

    /// A file was fetched. Secrets are not kept, and bundles are somewhere else.
    pub fn keep(&mut self, file: SourceFile, content: Arc<[u8]>) {
        if matches!(file, SourceFile::Envelope(..) | SourceFile::Blob(_)) {
            return;
        }
        let kept: usize = self.files.values().map(|content| content.len()).sum();
        if kept + content.len() > MOST_KEPT {
            self.files.clear();
        }
        self.files.insert(file, content);
    }

    /// The look has ended. What is known is fetched again if that was not well.
    pub fn ended(&mut self, is_well: bool) {
        self.is_suspicious = !is_well;
    }

    /// The channel that the controller names.
    pub fn channel(&self) -> Option<Name> {
        self.desired.as_ref()?.channel.parse().ok()
    }

    /// Returns whether a file is behind what the controller names.
    fn is_later(&self, file: &SourceFile) -> bool {
        let Some(desired) = &self.desired else { return false };
        match file {
            SourceFile::Signers(number) => *number > desired.signers,
            SourceFile::Release(channel, number) => channel.to_string() == desired.channel && *number > desired.number,
            _ => false,
        }
    }

    fn came_with_answer(&self, file: &SourceFile) -> Option<Arc<[u8]>> {
        let SourceFile::Blob(name) = file else { return None };
        let bundle = self.desired.as_ref()?.bundle.as_ref()?.as_bytes();
        Bundle::decode(bundle, Reach::Machine, Some(name.as_str())).ok().map(|_| bundle.into())
    }
}
