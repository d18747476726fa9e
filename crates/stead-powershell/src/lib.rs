//! PowerShell DSC resources: listed without PowerShell, called in warm workers.
//!
//! ```text
//!                     Resource (stead-powershell-reader)
//!                        │
//! properties ──convert──▶ call ──▶ worker (PowerShell) ──▶ state, verdict, records
//! ```

pub mod adapter;
pub mod convert;
pub mod counterparts;
pub mod declared;
mod expansion;
pub mod index;
mod loaded;
pub mod provider;
mod script;
pub mod transitional;
mod words;
pub mod worker;
