//! The codes of everything that this program says.

use stead_core::diag::{self, Code};

/// Every code there is, with its explanation.
pub(crate) fn all() -> Vec<Code> {
    let mut codes = diag::all();
    codes.extend(stead_host::settings::codes::CODES);
    codes.extend(stead_host::facts::codes::CODES);
    codes.extend(stead_host::check::codes::CODES);
    codes.extend(stead_host::provider::lint::codes::CODES);
    codes.extend(stead_agent::settings_codes::CODES);
    codes.extend(stead_hosts::suspicious::CODES);
    codes
}
