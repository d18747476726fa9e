//! Properties whose values are secret, whether or not the document wraps them as such.

use super::Manifest;
use crate::value::{Object, Seal, Value};

/// A property whose value is secret, or may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SecretProperty {
    /// Its name.
    pub name: &'static str,
    /// The form of the secret in its value.
    pub form: SecretForm,
}

/// The part of the value of a property that is secret.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SecretForm {
    /// All of it.
    Whole,
    /// Each text in it that has credentials, such as an address with a user or a mount option with a password.
    Credentials,
}

impl SecretForm {
    /// Puts what is secret behind a seal.
    fn seal(self, value: &mut Value, seal: &dyn Seal) {
        match (self, value) {
            (_, Value::Null | Value::Sealed(_)) => {}
            (Self::Credentials, Value::Array(items)) => items.iter_mut().for_each(|item| self.seal(item, seal)),
            (Self::Credentials, Value::Object(members)) => {
                members.values_mut().for_each(|member| self.seal(member, seal));
            }
            (Self::Credentials, value) if !value.as_str().is_some_and(has_credentials) => {}
            (_, value) => *value = Value::secret(seal.seal(std::mem::take(value))),
        }
    }

    fn is_in(self, value: &Value) -> bool {
        match (self, value) {
            (_, Value::Null | Value::Sealed(_)) => false,
            (Self::Whole, _) => true,
            (Self::Credentials, Value::Array(items)) => items.iter().any(|item| self.is_in(item)),
            (Self::Credentials, Value::Object(members)) => members.values().any(|member| self.is_in(member)),
            (Self::Credentials, value) => value.as_str().is_some_and(has_credentials),
        }
    }
}

/// Returns whether a text has a user in front of the host of an address, a query behind it, or a password among its
/// options.
fn has_credentials(text: &str) -> bool {
    match text.split_once("://") {
        Some((scheme, rest)) => {
            let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
            let user = authority.rsplit_once('@').map(|(user, _)| user);
            // The user of SSH is not secret, as in 'git@host:path'.
            user.is_some_and(|user| scheme != "ssh" || user.contains(':')) || rest.contains('?')
        }
        // An address without a scheme, as of a proxy; 'git@host:path' has no password.
        None if text.split_once('@').is_some_and(|(user, _)| user.contains(':')) => true,
        None => text.split(',').any(is_password),
    }
}

/// Options of mount.cifs(8): `password=`, `pass=`, `password2=`, and `user=name%password`.
fn is_password(option: &str) -> bool {
    option
        .trim_start()
        .split_once('=')
        .is_some_and(|(name, value)| name.starts_with("pass") || name.starts_with("user") && value.contains('%'))
}

impl Manifest {
    /// Returns whether a state has a secret that is not sealed.
    pub fn states_secrets(&self, desired: &Value) -> bool {
        let members = desired.as_object();
        self.secret_places.as_ref().is_some_and(|places| places.are_in(desired))
            || self.secrets.iter().any(|secret| {
                members.and_then(|members| members.get(secret.name)).is_some_and(|value| secret.form.is_in(value))
            })
    }

    /// A state with those secrets sealed.
    pub fn sealing_secrets(&self, mut state: Value, seal: &dyn Seal) -> Value {
        if let Some(places) = &self.secret_places {
            places.seal(&mut state, seal);
        }
        if let Value::Object(members) = &mut state {
            for secret in &self.secrets {
                if let Some(value) = Object::get_mut(members, secret.name) {
                    secret.form.seal(value, seal);
                }
            }
        }
        state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_recognized() {
        let addresses = [
            "https://u@h/",
            "https://u:p@h",
            "ssh://u:p@h/",
            "http://h/a?token=x",
            "https://h?token=x",
            "https://h?to=/x",
            "u:p@h:1",
        ];
        let options = ["ro,password=x", "password=x", "pass=x", "ro,password2=x", "username=a%x,ro"];
        let without = [
            "https://h/a@b",
            "ssh://git@h/a",
            "git@host:path",
            "/a/b",
            "ro,noatime",
            "file:///srv/a",
            "deb",
            "username=a",
        ];
        for text in addresses.iter().chain(&options) {
            assert!(has_credentials(text), "{text}");
        }
        for text in without {
            assert!(!has_credentials(text), "{text}");
        }
    }
}
