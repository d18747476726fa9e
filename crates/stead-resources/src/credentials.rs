//! Users and passwords in addresses: taken out for a header, and left out of what is shown.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use url::Url;

/// Takes the user and the password out of an address; returns them as the value of a header `Authorization`.
pub(crate) fn take(url: &mut Url) -> Option<String> {
    let decoded = |text: &str| percent_decode_str(text).collect::<Vec<u8>>();
    let mut pair = decoded(url.username());
    let is_stated = !pair.is_empty() || url.password().is_some();
    pair.push(b':');
    pair.extend(decoded(url.password().unwrap_or_default()));
    // Only an address without a host has no room for them; then there is nothing to take.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    is_stated.then(|| format!("Basic {}", STANDARD.encode(pair)))
}

/// An address without what may be secret of it: user, password and query. The user of SSH stays, who is not secret.
///
/// Guarantees: it holds for what is not a valid address, too.
pub(crate) fn without(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let host = match authority.rsplit_once('@') {
        Some((user, _)) if scheme == "ssh" && !user.contains(':') => authority,
        Some((_, host)) => host,
        None => authority,
    };
    format!("{scheme}://{host}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_taken_out() {
        let taken = |address: &str| {
            let mut url = Url::parse(address).unwrap();
            (take(&mut url), url.to_string())
        };
        let basic = |pair: &str| Some(format!("Basic {}", STANDARD.encode(pair)));
        assert_eq!(taken("https://us%65r:p%40ss@h/x"), (basic("user:p@ss"), "https://h/x".to_owned()));
        assert_eq!(taken("https://token@h/"), (basic("token:"), "https://h/".to_owned()));
        assert_eq!(taken("https://h/"), (None, "https://h/".to_owned()));
    }

    #[test]
    fn what_may_be_secret_is_left_out() {
        for (address, shown) in [
            ("https://user:word@h/x?token=y#z", "https://h/x"),
            ("https://token@h:99999/x", "https://h:99999/x"),
            ("https://a@b:c@h", "https://h"),
            ("ssh://git@h/x", "ssh://git@h/x"),
            ("ssh://git:word@h/x", "ssh://h/x"),
            ("git@h:x", "git@h:x"),
            ("/srv/a@b", "/srv/a@b"),
        ] {
            assert_eq!(without(address), shown);
        }
    }
}
