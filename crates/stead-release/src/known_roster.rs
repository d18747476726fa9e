//! The roster that a machine read last, as far as it concerns the machine.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::fleet::Fleet;
use crate::name::{Digest, Name};
use crate::refusal::ReleaseRefusal;
use crate::signed::Signed;
use crate::statements::{ChainLink, Numbered, Roster, RosterMachine};

/// The part of a roster that concerns one machine.
#[derive(Debug)]
pub(crate) struct OwnRoster {
    /// The digest of the file, with its signatures.
    file: Digest,
    name: Box<str>,
    pub(crate) digest: Digest,
    pub(crate) link: ChainLink,
    pub(crate) floors: BTreeMap<Name, Numbered>,
    pub(crate) machine: Option<RosterMachine>,
}

impl OwnRoster {
    fn of(file: Digest, name: &str, signed: &Signed<Roster>) -> Self {
        let Roster { link, floors, machines, .. } = signed.statement();
        let machine = machines.iter().find(|(named, _)| named.as_str() == name).map(|(_, machine)| machine.clone());
        Self { file, name: name.into(), digest: signed.digest(), link: link.clone(), floors: floors.clone(), machine }
    }
}

/// The last roster that was read and whose signatures were checked: as long as it is the newest, a look need not take the machines of the
/// whole fleet apart again.
///
/// Law: decisions are the same as without it.
#[derive(Debug, Default)]
pub struct KnownRoster(Mutex<Option<Arc<OwnRoster>>>);

impl KnownRoster {
    /// The roster that bytes are, which its list of signers has signed.
    pub(crate) fn read(&self, bytes: &[u8], name: &str, fleet: &Fleet) -> Result<Arc<OwnRoster>, ReleaseRefusal> {
        let file = Digest::of(bytes);
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A list of signers is what its digest says: whoever knows the list knows that the signatures are of it.
        let known = last.as_ref().filter(|last| last.file == file && *last.name == *name && fleet.knows(&last.link));
        if let Some(known) = known {
            return Ok(Arc::clone(known));
        }
        let read = Arc::new(OwnRoster::of(file, name, &fleet.roster_of_its_time(bytes)?));
        Ok(Arc::clone(last.insert(read)))
    }
}
