//! `stead release`: what operators sign, and what machines that follow a source make of it.

mod make;
mod roster;
mod seal;
mod show;
mod sign;
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use stead_release::{
    ChainLink, MachineReport, Numbered, PublicIdentity, PublicKey, ReleaseRefusal, Root, Signable, Signed, Signers,
    Succession,
};

use self::show::{agreed, show};
use self::sign::sign;
use self::source::{AnyStatement, Source, Unusable};
use crate::commands::files;
use crate::exit::Exit;
use crate::process_env::ProcessEnv;
use crate::request::{Draft, NewSigners, ReleaseRequest};
use crate::terminal::{complain, plain, print};

/// Carries out what is asked for.
pub(crate) fn release(request: &ReleaseRequest, env: &ProcessEnv) -> Exit {
    let done = match request {
        ReleaseRequest::Root { name, signers, out } => root(name, signers, out),
        ReleaseRequest::Signers { signers, draft } => next_signers(signers, draft),
        ReleaseRequest::Roster { machine, change, acts, draft } => {
            roster::next_roster(machine, change, acts.as_ref(), draft)
        }
        ReleaseRequest::Make(request) => make::make(request, env),
        ReleaseRequest::Seal { file, fleet, secrets } => seal::seal(file, fleet, secrets),
        ReleaseRequest::Sign { file, keys } => sign_file(file, keys),
        ReleaseRequest::Verify { file, fleet } => verify(file, fleet),
        ReleaseRequest::Show { file, output } => {
            AnyStatement::read(file).map_err(Failed::from).map(|any| show(&any, *output))
        }
    };
    match done {
        Ok(()) => Exit::Success,
        Err(failed) => failed.said(),
    }
}

/// Why a command ended.
enum Failed {
    Source(Unusable),
    /// One sentence, and an advice.
    Wrong(String, Option<String>),
    /// It has been said.
    Said(Exit),
}

impl From<Unusable> for Failed {
    fn from(unusable: Unusable) -> Self {
        Self::Source(unusable)
    }
}

impl From<(String, String)> for Failed {
    fn from((message, advice): (String, String)) -> Self {
        Self::Wrong(message, Some(advice))
    }
}

fn wrong(message: impl Into<String>, advice: &str) -> Failed {
    Failed::Wrong(message.into(), Some(advice.to_owned()))
}

impl Failed {
    fn said(self) -> Exit {
        match self {
            Self::Said(exit) => exit,
            Self::Wrong(message, advice) => {
                complain(&format!("error: {}", plain(&message)));
                if let Some(advice) = advice {
                    complain(&format!("help: {}", plain(&advice)));
                }
                Exit::Unusable
            }
            Self::Source(Unusable::Refused { path, refusal }) => {
                let message = plain(&format!("{}: {refusal}", path.display())).into_owned();
                complain(&format!("error[{}]: {message}", refusal.code().id));
                if let ReleaseRefusal::Unsigned { wanted: 2.., .. } = refusal {
                    complain(&plain(&format!("help: 'stead release sign {} --sign KEY' adds one", path.display())));
                }
                complain(&format!("More about it: stead explain {}", refusal.code().id));
                Exit::Unusable
            }
            Self::Source(Unusable::Unreadable(error)) => {
                complain(&format!("error: {}", plain(&error.to_string())));
                Exit::Unusable
            }
            Self::Source(Unusable::Unwritten(error)) => {
                complain(&format!("error: {}", plain(&stead_engine::error_chain(&error))));
                Exit::Failed
            }
        }
    }
}

fn signers(asked: &NewSigners) -> Result<Signers, Failed> {
    let keys: BTreeSet<PublicKey> = asked.keys.iter().cloned().collect();
    if keys.len() < asked.keys.len() {
        return Err(wrong("a signer was named twice", "name each key once"));
    }
    let usual = if keys.len() == 1 { 1 } else { 2 };
    Signers::new(keys, asked.threshold.unwrap_or(usual)).map_err(|bad| Failed::Wrong(bad.to_string(), None))
}

fn root(name: &stead_release::Name, asked: &NewSigners, out: &Path) -> Result<(), Failed> {
    let root = Signed::new(Root { name: name.clone(), signers: signers(asked)? });
    let path = std::path::absolute(out).map_err(|error| Failed::Wrong(stead_system::fs::reason(&error), None))?;
    let created = files::create(&path, root.to_text().as_bytes(), 0o644).map_err(Unusable::from)?;
    if !created {
        let advice = "another root statement is another fleet; choose another file name";
        return Err(wrong(format!("'{}' exists", out.display()), advice));
    }
    print(&format!("{}: {} {}\n", out.display(), Root::WORD, root.digest()));
    complain(&format!(
        "note: machines are given this digest when they begin to follow: it stands for the fleet '{name}'"
    ));
    Ok(())
}

/// The place of the next statement of a chain.
fn link(source: &Source, former: Numbered) -> ChainLink {
    let (_, in_force, _) = source.fleet.in_force();
    ChainLink {
        fleet: source.fleet.root().clone(),
        number: former.number + 1,
        parent: former.digest,
        signers: in_force.clone(),
        made: now(),
    }
}

/// The time in whole seconds.
fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}

/// Signs what is new, writes it where it belongs or where it is wanted, and says what is still missing.
fn finish<S: Signable>(new: S, draft: &Draft, place: &Path, source: &Source) -> Result<(), Failed> {
    let mut signed = Signed::new(new);
    sign(&mut signed, &draft.keys)?;
    let signers = source.fleet.in_force().2;
    for (signature, key) in signed.signatures().iter().zip(&draft.keys) {
        if !signers.keys().contains(signature.key()) {
            let message = format!("'{}' is not the key of a signer", key.display());
            return Err(wrong(message, "the list of signers in force must sign; 'stead release show' prints it"));
        }
    }
    let path = draft.out.as_deref().unwrap_or(place);
    source::write(path, signed.to_text().as_bytes())?;
    print(&format!("{}: {} {}\n", path.display(), S::WORD, signed.digest()));
    note_missing(&signed, signers);
    Ok(())
}

fn note_missing<S: Signable>(signed: &Signed<S>, signers: &Signers) {
    let keys = signed.signatures().iter().map(stead_release::Signature::key);
    let have = keys.filter(|key| signers.keys().contains(key)).count();
    if have < signers.threshold() {
        complain(&format!("note: it has {have} of {} signatures; 'stead release sign' adds one", signers.threshold()));
    }
}

fn next_signers(asked: &NewSigners, draft: &Draft) -> Result<(), Failed> {
    let source = Source::open(&draft.fleet)?;
    let (number, digest, _) = source.fleet.in_force();
    let former = Numbered { number, digest: digest.clone() };
    let mut last = BTreeMap::new();
    for channel in source.channels()? {
        let release = source.walk(&channel, None)?.floor().release.clone();
        last.insert(channel, release);
    }
    let roster = source.roster_to_change()?;
    let roster = roster.map(|roster| Numbered { number: roster.statement().link.number, digest: roster.digest() });
    let new = Succession { link: link(&source, former), last, roster, signers: signers(asked)? };
    finish(new, draft, &source.signers(number + 1), &source)?;
    complain("note: a roster is signed by the list in force: make it again, too");
    Ok(())
}

fn sign_file(file: &Path, keys: &[PathBuf]) -> Result<(), Failed> {
    match AnyStatement::read(file)? {
        AnyStatement::Root(_) => {
            let advice = "machines are given its digest; what its signers sign comes after it";
            Err(wrong("a root statement is not signed", advice))
        }
        AnyStatement::Signers(signed) => sign_again(signed, file, keys),
        AnyStatement::Roster(signed) => sign_again(signed, file, keys),
        AnyStatement::Release(signed) => sign_again(signed, file, keys),
        AnyStatement::Envelope(_) => {
            Err(wrong("a sealed envelope is not signed", "signers sign what its release says of it"))
        }
        AnyStatement::Report(_) => {
            Err(wrong("a machine signs its reports itself", "'stead agent report --out' does that"))
        }
        AnyStatement::Identity(_) => {
            Err(wrong("a machine signs its identity itself", "a roster has it, which is signed"))
        }
    }
}

fn sign_again<S: Signable>(mut signed: Signed<S>, file: &Path, keys: &[PathBuf]) -> Result<(), Failed> {
    sign(&mut signed, keys)?;
    source::write(file, signed.to_text().as_bytes())?;
    print(&format!("{}: {} {}, {} signatures\n", file.display(), S::WORD, signed.digest(), signed.signatures().len()));
    Ok(())
}

/// Checks a file as a machine does that follows the source.
fn verify(file: &Path, fleet: &Path) -> Result<(), Failed> {
    let source = Source::open(fleet)?;
    let refused = |refusal| Failed::Source(Unusable::Refused { path: file.to_path_buf(), refusal });
    let bytes = source::read(file).map_err(Unusable::from)?;
    match AnyStatement::of(&bytes, file)? {
        AnyStatement::Root(root) if root.digest() == *source.fleet.root() => {
            agreed(&root);
            Ok(())
        }
        AnyStatement::Root(root) => Err(refused(ReleaseRefusal::Root(root.digest()))),
        AnyStatement::Signers(signed) => {
            let mut before = Source::until(fleet, signed.statement().link.number)?;
            before.fleet.follow(&bytes).map_err(refused)?;
            agreed(&signed);
            Ok(())
        }
        AnyStatement::Roster(_) => {
            let roster = source.fleet.roster(&bytes, None).map_err(refused)?;
            agreed(&roster);
            Ok(())
        }
        AnyStatement::Envelope(envelope) => seal::verify(&envelope, file, &source),
        AnyStatement::Report(signed) => {
            let roster = source
                .roster()?
                .ok_or_else(|| refused(ReleaseRefusal::NotInRoster(signed.statement().machine.to_string())))?;
            let report = MachineReport::read(&bytes, source.fleet.root(), roster.statement()).map_err(refused)?;
            agreed(&report);
            Ok(())
        }
        AnyStatement::Identity(signed) => {
            PublicIdentity::read(&bytes).map_err(refused)?;
            agreed(&signed);
            Ok(())
        }
        AnyStatement::Release(signed) => {
            source.takes(&signed, file)?;
            agreed(&signed);
            seal::note_waiting(&signed, &source)?;
            Ok(())
        }
    }
}
