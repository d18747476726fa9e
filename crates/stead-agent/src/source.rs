//! Where deliveries come from.

mod folder;
mod handed;

use std::error::Error;
use std::fmt;

use jiff::Timestamp;

pub use folder::{Folder, UnusableFolder};
pub(crate) use handed::Handed;

use crate::control::Refused;
use crate::store::Delivered;

/// Why a source gave nothing.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SourceFailure {
    pub(crate) refused: Refused,
    pub(crate) code: Option<&'static str>,
}

impl From<Refused> for SourceFailure {
    fn from(refused: Refused) -> Self {
        Self { refused, code: None }
    }
}

/// A place that the agent asks for deliveries. Its text is the name by which messages call it.
///
/// Guarantees: what a source gives is validated as what a user delivers. It is taken once: the agent asks with the digest of what it
/// took last, and records that in one step with the generation that it became, so that whatever is killed meanwhile, nothing is
/// staged twice and nothing is passed over. What was refused is asked for again, since the reason may be gone.
///
/// Shipped are a [`Folder`], and what somebody hands over through the socket.
///
/// # Examples
/// ```
/// use std::error::Error;
/// use std::fmt;
///
/// use stead_agent::{Newer, Source};
///
/// /// A source that is closed at night.
/// struct Office(jiff::Timestamp);
///
/// impl fmt::Display for Office {
///     fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
///         f.write_str("the office")
///     }
/// }
///
/// impl Source for Office {
///     fn newer(&self, _: Option<&str>) -> Result<Newer, Box<dyn Error>> {
///         Ok(Newer::NotNow { until: self.0 })
///     }
/// }
/// ```
pub trait Source: fmt::Display + Send + Sync {
    /// Returns what it has that does not have this digest; without one, whatever it has. It may take its time: nothing of the
    /// agent waits for it.
    ///
    /// # Errors
    /// When it cannot be asked, or has what cannot be delivered. It is asked again in any case.
    fn newer(&self, than: Option<&str>) -> Result<Newer, Box<dyn Error>>;
}

/// The answer of a source.
#[derive(Debug)]
pub enum Newer {
    /// It has nothing newer.
    Nothing,
    /// It has this.
    Delivery {
        /// What it is asked with from then on, if it is asked again.
        digest: Option<String>,
        /// A document with its files.
        delivered: Box<Delivered>,
    },
    /// It does not answer before this time, and is not asked.
    NotNow {
        /// When it can be asked again.
        until: Timestamp,
    },
}
