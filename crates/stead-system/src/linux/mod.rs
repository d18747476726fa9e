//! Linux.

pub mod folder;
pub mod fs;
pub mod lock;
pub mod places;
pub mod process;
pub mod user;
pub mod watch;
pub mod zone;
