//! Ending early what is under way.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that ends what is under way; clones share it.
#[derive(Clone, Default, Debug)]
pub struct Cancel(Arc<Flags>);

#[derive(Default, Debug)]
struct Flags {
    own: Arc<AtomicBool>,
    other: Option<Cancel>,
}

impl From<Arc<AtomicBool>> for Cancel {
    fn from(own: Arc<AtomicBool>) -> Self {
        Self(Arc::new(Flags { own, other: None }))
    }
}

impl Cancel {
    /// Asks for the end.
    pub fn cancel(&self) {
        self.0.own.store(true, Ordering::SeqCst);
    }

    /// The flag itself, for whoever can only set one, such as a signal handler.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0.own)
    }

    /// Returns whether the end was asked for.
    pub fn is_cancelled(&self) -> bool {
        self.0.own.load(Ordering::SeqCst) || self.0.other.as_ref().is_some_and(Self::is_cancelled)
    }

    /// This one, which is cancelled as well when the other is.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        Self(Arc::new(Flags { own: self.flag(), other: Some(other.clone()) }))
    }
}
