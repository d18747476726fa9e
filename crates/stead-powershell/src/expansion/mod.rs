//! The instances that an instance of a composite resource consists of.

mod expand;
mod keywords;
mod parameters;

pub(crate) use expand::expand;
pub(crate) use keywords::Installed;
