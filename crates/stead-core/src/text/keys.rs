//! Names of members, of which a text has few that occur often.

use std::sync::Arc;

/// How many names are kept, each at a place that follows from it.
const PLACES: usize = 64;

/// The names that were read last.
#[derive(Default)]
pub(super) struct Keys(Vec<Option<Arc<str>>>);

impl Keys {
    /// The name, shared with a member that was read before where that is still known.
    pub(super) fn shared(&mut self, key: &str) -> Arc<str> {
        if self.0.is_empty() {
            self.0.resize(PLACES, None);
        }
        let bytes = key.as_bytes();
        let ends = [bytes.first(), bytes.last()].map(|byte| usize::from(byte.copied().unwrap_or_default()));
        let at = (bytes.len() + 7 * ends[0] + 31 * ends[1]) % PLACES;
        match self.0.get_mut(at) {
            Some(Some(known)) if **known == *key => Arc::clone(known),
            Some(place) => Arc::clone(place.insert(key.into())),
            None => key.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_shared_and_never_another() {
        let mut keys = Keys::default();
        let names = ["name", "type", "", "é", "name", "nose", "properties", "name", "type"];
        // Of the same length and with the same ends they have one place.
        let read = names.map(|name| keys.shared(name));
        assert_eq!(read.each_ref().map(|key| &**key), names);
        assert!(Arc::ptr_eq(&read[1], &read[8]));
    }
}
