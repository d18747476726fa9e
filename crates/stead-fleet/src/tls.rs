//! A certificate that a controller makes for itself.

use rcgen::{CertificateParams, KeyPair};
use stead_system::folder::{Folder, FolderError};

use crate::server::TlsFiles;

const CERTIFICATE: &str = "tls.pem";
const KEY: &str = "tls.key";
/// The files of the certificate and its key. With the certificate both are there.
pub const FILES: [&str; 2] = [KEY, CERTIFICATE];

/// The reason why there is not a certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// It cannot be made.
    #[error("cannot make a certificate")]
    Make(#[from] rcgen::Error),
    /// It cannot be kept.
    #[error(transparent)]
    Folder(#[from] FolderError),
}

/// The certificate in a folder. If there is none, one is made for these names and addresses; whoever connects is given it, since
/// nobody else vouches for it.
pub fn own(folder: &Folder, names: &[String]) -> Result<TlsFiles, CertificateError> {
    if folder.read(CERTIFICATE)?.is_none() || folder.read(KEY)?.is_none() {
        let key = KeyPair::generate()?;
        let certificate = CertificateParams::new(names.to_vec())?.self_signed(&key)?;
        folder.replace(KEY, key.serialize_pem().as_bytes())?;
        // Last: with it both are there.
        folder.replace(CERTIFICATE, certificate.pem().as_bytes())?;
    }
    Ok(TlsFiles { certificate: folder.path().join(CERTIFICATE), key: folder.path().join(KEY) })
}
