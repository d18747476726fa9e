//! What is handed over.

use std::error::Error;
use std::fmt;

use super::{Newer, Source};
use crate::store::Delivered;

/// A delivery that somebody hands over through the socket, and waits for what becomes of it. It is newer than anything, also
/// than itself: somebody asked for it now.
pub(crate) struct Handed(pub(crate) Delivered);

impl fmt::Display for Handed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the socket of the agent")
    }
}

impl Source for Handed {
    fn newer(&self, _: Option<&str>) -> Result<Newer, Box<dyn Error>> {
        Ok(Newer::Delivery { digest: None, delivered: Box::new(self.0.clone()) })
    }
}
