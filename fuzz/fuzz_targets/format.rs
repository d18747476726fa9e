//! Any text that can be read is formatted to one that says the same, and formatting that changes nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stead_core::text::{self, FormatError, Limits, SourceId};

fuzz_target!(|text: &str| {
    let limits = Limits { bytes: 1 << 16, aliases: 1000, findings: 50, ..Limits::default() };
    let formatted = match text::format(text, &limits) {
        Ok(formatted) => formatted.text,
        Err(FormatError::TooLong(_)) => return,
        Err(FormatError::Unreadable(findings)) => return assert!(!findings.is_empty()),
        // A byte order mark within a text is given up on.
        Err(FormatError::Meaning) => return assert!(text.contains('\u{feff}'), "{text:?}"),
    };
    let value = |text| text::read(SourceId(0), text, &limits).0.map(|root| root.literal());
    assert_eq!(value(text), value(&formatted), "{text:?} {formatted:?}");
    let again = text::format(&formatted, &limits).map(|again| again.text);
    assert_eq!(again.ok(), Some(formatted), "{text:?}");
});
