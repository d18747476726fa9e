//! `release make`: a release of a bundle, with what its document takes.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value as Json};
use stead_core::bundle::Bundle;
use stead_core::parameters::Supplied;
use stead_core::value::Value;
use stead_engine::Session;
use stead_release::{Digest, Release, ReleaseSecrets, SealedParameters};

use super::source::{self, Source, Unusable};
use super::{Failed, finish, link, wrong};
use crate::commands::files;
use crate::exit::Exit;
use crate::input::{self, BadParameters, Delivered, ParameterSources, Recipient, Text};
use crate::process_env::ProcessEnv;
use crate::request::{MakeRequest, SecretsRequest};
use crate::terminal::{complain, show_findings};

pub(super) fn make(request: &MakeRequest, env: &ProcessEnv) -> Result<(), Failed> {
    let MakeRequest { bundle: path, channel, selector, lasts, draft, .. } = request;
    let source = Source::open(&draft.fleet)?;
    let Content { bundle, parameters, secrets } = content(request, path, env)?;
    let former = source.walk(channel, None)?.floor().release.clone();
    let link = link(&source, former);
    let expires = link.made.checked_add(*lasts).map_err(|_| Failed::Wrong("it expires too late".to_owned(), None))?;
    let name: Digest = bundle.name().parse().map_err(|_| Failed::Wrong("it is not a bundle".to_owned(), None))?;
    source::write(&source.blob(&name), &bundle.encode())?;
    let (place, is_first) = (source.release(channel, link.number), link.number == 1);
    let sealed = secrets.as_ref().and_then(SealedParameters::of);
    if let (Some(secrets), Some(to)) = (&secrets, &request.secrets) {
        keep(secrets, &to.out)?;
    }
    let (channel, selector) = (channel.clone(), selector.clone());
    let is_sealed = sealed.is_some();
    finish(Release { link, channel, expires, selector, bundle: name, parameters, sealed }, draft, &place, &source)?;
    if is_sealed {
        complain("note: its secrets are sealed to no machine yet: 'stead release seal' does that once it is signed");
    }
    if is_first {
        complain("note: machines learn of a new channel from the roster: make it again once the release is signed");
    }
    Ok(())
}

/// What a release is made of.
struct Content {
    bundle: Bundle,
    parameters: Map<String, Json>,
    secrets: Option<ReleaseSecrets>,
}

/// The bundle, and the parameters that its document takes.
fn content(request: &MakeRequest, path: &Path, env: &ProcessEnv) -> Result<Content, Failed> {
    let mut session = env.host.session(input::folder(path));
    let unreadable = |error| Failed::Source(Unusable::Unreadable(error));
    let bundle = match input::delivered(&session, path).map_err(unreadable)? {
        Delivered::Bundle(bundle) => Arc::new(bundle),
        Delivered::Document(_) => {
            return Err(wrong(
                format!("'{}' is not a bundle", path.display()),
                "'stead bundle DOCUMENT -o FILE' makes one",
            ));
        }
    };
    input::opened(&mut session, &bundle, path).map_err(unreadable)?;
    let (name, text) = bundle.document();
    let text = Text { name: name.to_owned(), text: text.to_string() };
    let plain = ParameterSources {
        environment: false,
        recipient: Recipient::OtherMachines,
        ..ParameterSources::of(&request.supplied, &text)
    };
    let mut supplied = read(&mut session, &plain)?;
    let secret = request.secrets.as_ref().map(|from| secret(&mut session, from, &text)).transpose()?;
    let secret = secret.unwrap_or_default();
    let secrets = values(&secret);
    supplied.extend(secret);
    let prepared = session.prepare_values(&text.name, text.text.as_str(), supplied).map_err(|unusable| {
        show_findings(&unusable.findings, &unusable.sources);
        Failed::Said(Exit::Unusable)
    })?;
    let mut parameters = Map::new();
    for (name, value) in &prepared.supplied.values {
        match (value.has_sealed(), secrets.contains_key(name)) {
            (true, true) => {}
            (false, false) => drop(parameters.insert(name.clone(), value.to_redacted_json())),
            (true, false) => {
                let message = format!("the parameter '{name}' is secret, and a release is in plain text");
                return Err(wrong(message, "give it in a file to '--secrets', which seals it to the machines"));
            }
            (false, true) => {
                let message = format!("the parameter '{name}' is not secret");
                return Err(wrong(message, "the document must declare it as secureString or secureObject"));
            }
        }
    }
    drop(session);
    let secrets = (!secrets.is_empty()).then(|| ReleaseSecrets::new(&secrets)).transpose();
    let secrets = secrets.map_err(|bad| Failed::Wrong(bad.to_string(), None))?;
    Ok(Content { bundle: Arc::unwrap_or_clone(bundle), parameters, secrets })
}

fn read(session: &mut Session, from: &ParameterSources<'_>) -> Result<Supplied, Failed> {
    input::parameters(session, from).map_err(|bad| match bad {
        BadParameters::Unreadable(error) => Failed::Source(Unusable::Unreadable(error)),
        BadParameters::Findings(findings) => {
            show_findings(&findings, &session.sources);
            Failed::Said(Exit::Unusable)
        }
    })
}

/// The values of parameters that are secret, from a file and from the environment.
fn secret(session: &mut Session, from: &SecretsRequest, text: &Text) -> Result<Supplied, Failed> {
    let sources = ParameterSources { recipient: Recipient::OtherMachines, document: Some(text), ..Default::default() };
    let files: Vec<_> = from.file.iter().cloned().collect();
    let mut secret = read(session, &ParameterSources { environment: true, ..sources })?;
    let wanted: BTreeSet<&str> = from.environment.iter().map(String::as_str).collect();
    secret.values.retain(|name, _| wanted.contains(name));
    if let Some(missing) = wanted.iter().find(|name| secret.values.get(name).is_none()) {
        let message = format!("there is no variable STEAD_PARAM_{missing}, or the document has no such parameter");
        return Err(wrong(message, "'--secret-env NAME' takes the value of STEAD_PARAM_NAME"));
    }
    secret.extend(read(session, &ParameterSources { files: &files, ..sources })?);
    if secret.values.is_empty() {
        return Err(wrong("there are no secrets", "'--secrets FILE' or '--secret-env NAME' gives them"));
    }
    Ok(secret)
}

/// The values, which nothing has sealed yet: none of them is left out.
fn values(supplied: &Supplied) -> Map<String, Json> {
    match Value::Object(supplied.values.clone()).to_redacted_json() {
        Json::Object(values) => values,
        _ => Map::new(),
    }
}

/// Writes secrets for whoever seals them: to a new file that nobody else reads.
fn keep(secrets: &ReleaseSecrets, out: &Path) -> Result<(), Failed> {
    let path = std::path::absolute(out).map_err(|error| Failed::Wrong(stead_system::fs::reason(&error), None))?;
    if files::create(&path, secrets.expose().as_bytes(), 0o600).map_err(Unusable::from)? {
        return Ok(());
    }
    let advice = "the secrets of each release are another file; choose another file name";
    Err(wrong(format!("'{}' exists", out.display()), advice))
}
