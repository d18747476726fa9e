//! Linux.

pub mod clock;
pub mod folder;
pub mod fs;
pub mod interrupt;
pub mod kernel;
pub mod lock;
pub mod machine;
pub mod memory_file;
pub mod mount;
pub mod network;
pub mod places;
pub mod process;
pub mod scratch;
pub mod services;
pub mod socket;
pub mod terminal;
pub mod unit;
pub mod user;
pub mod watch;
pub mod zone;
