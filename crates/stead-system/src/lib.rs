//! The roof over the operating system: files, processes, locks, users, and what else stead asks of it.

mod cancel;
mod linux;

pub use cancel::Cancel;
pub use linux::{folder, fs, lock, places, process, user, watch, zone};
