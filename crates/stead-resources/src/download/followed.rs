//! What a server said of a file that follows its URL, kept beside it as `NAME.etag`: by that the server is asked whether
//! it has another content now.

use std::cell::OnceCell;
use std::fs::File;
use std::path::Path;

use serde::{Deserialize, Serialize};
use stead_core::call::Failure;
use stead_core::destruction::Item;
use stead_core::digest::sha256;
use stead_host::provider::Context;
use stead_system::fs::{Former, SystemPath};
use url::Url;

use super::Properties;
use super::beside::Beside;
use crate::credentials;
use crate::file::content;
use crate::input::{blocked, cannot};
use crate::transfer::Validators;

/// What comes behind the name of the file.
pub(super) const SUFFIX: &str = ".etag";

/// What is kept of a download.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Known {
    /// The digest of the URL without a user and a password.
    url: String,
    /// That of the content.
    sha256: String,
    #[serde(flatten)]
    validators: Validators,
}

/// What is known of a file that follows its URL.
pub(super) struct Followed {
    file: Beside,
    url: String,
    known: Option<Known>,
    /// Whether the server has another content, once it was asked.
    changed: OnceCell<bool>,
}

impl Followed {
    /// That of the file at a path, which the instance states like that.
    pub(super) fn of(path: &SystemPath, stated: &str, url: Option<&Url>) -> Result<Self, Failure> {
        let file = Beside::of(path, stated, SUFFIX, Properties::FOLLOW);
        let known = file.read()?.map(|content| {
            let shown = file.path().display();
            let message = format!("'{shown}' is not what was kept of a download. Remove it to download the file again");
            serde_json::from_slice::<Known>(&content).map_err(|_| blocked(Properties::FOLLOW, message))
        });
        let known = known.transpose()?;
        let url = url.cloned().map(|mut url| {
            let _ = credentials::take(&mut url);
            sha256(url.as_str())
        });
        Ok(Self { file, url: url.unwrap_or_default(), known, changed: OnceCell::new() })
    }

    /// Whether a file is what the URL had when the server was asked last, and has now. `changed` asks the server.
    pub(super) fn is_in(
        &self,
        (file, at): (&File, &Path),
        changed: impl FnOnce(&Validators) -> Result<bool, Failure>,
    ) -> Result<bool, Failure> {
        let Some(known) = self.known.as_ref().filter(|known| known.url == self.url) else { return Ok(false) };
        if content::sha256(file).map_err(|error| cannot("read", at, error))?.as_ref() != Some(&known.sha256) {
            return Ok(false);
        }
        if let Some(changed) = self.changed.get() {
            return Ok(!changed);
        }
        let answer = changed(&known.validators)?;
        Ok(!self.changed.get_or_init(|| answer))
    }

    /// What is created or removed with the file.
    pub(super) fn item(&self) -> Item {
        self.file.item(256)
    }

    /// Returns whether something is kept already.
    pub(super) fn is_kept(&self) -> bool {
        self.known.is_some()
    }

    /// Keeps what the server said of what was downloaded.
    pub(super) fn keep(&self, cx: &Context, sha256: &str, validators: Validators) -> Result<(), Failure> {
        let known = Known { url: self.url.clone(), sha256: sha256.to_owned(), validators };
        // These are texts.
        let text = serde_json::to_string(&known).unwrap_or_default() + "\n";
        // The digest of a URL that holds a secret is for nobody else.
        self.file.keep(cx, text.as_bytes(), (Former::Any, 0o600))
    }

    /// Forgets it.
    pub(super) fn remove(&self, cx: &Context) -> Result<(), Failure> {
        self.file.remove(cx)
    }
}
