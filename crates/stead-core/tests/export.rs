//! Filters of exports, and text that must not turn into expressions.

#![expect(clippy::unwrap_used, reason = "a test may fail this way")]

use proptest::prelude::*;
use serde_json::json;
use stead_core::export::{ExportFilter, escaped, unescaped};
use stead_core::expr::is_expression;
use stead_core::value::Value;

fn fits(pattern: &str, text: &str) -> bool {
    let filter = ExportFilter::parse(&Value::from(json!({ "name": pattern }))).unwrap();
    filter.apply(&Value::from(json!({ "name": text }))).is_some()
}

#[test]
fn stars_stand_for_any_text() {
    for (pattern, fitting, other) in [
        ("", "", "a"),
        ("*", "", "\u{1}none"),
        ("abc", "ABC", "ab"),
        ("a*", "a", "ba"),
        ("*a", "ba", "ab"),
        ("a*a", "aa", "a"),
        ("*ab*ab*", "xabyabz", "xabz"),
        ("a**b", "axb", "axbc"),
        ("*aab", "aaaab", "aaba"),
        ("a*b*c", "a1b2b3c", "a1c2b"),
        ("ÄÖ*", "äöü", "äü"),
        ("a.c", "a.c", "abc"),
    ] {
        assert!(fits(pattern, fitting), "{pattern} {fitting}");
        assert!(pattern == "*" || !fits(pattern, other), "{pattern} {other}");
    }
}

/// Returns whether text fits a pattern, the slow and obvious way.
fn fits_slowly(pattern: &[char], text: &[char]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some(('*', rest)) => (0..=text.len()).any(|at| fits_slowly(rest, &text[at..])),
        Some((letter, rest)) => {
            text.split_first().is_some_and(|(first, text)| first == letter && fits_slowly(rest, text))
        }
    }
}

proptest! {
    #[test]
    fn patterns_fit_what_they_say(pattern in "[ab*]{0,6}", text in "[ab]{0,8}") {
        let letters = |text: &str| text.chars().collect::<Vec<_>>();
        prop_assert_eq!(fits(&pattern, &text), fits_slowly(&letters(&pattern), &letters(&text)));
    }

    #[test]
    fn escaped_text_is_no_expression_and_comes_back(text in "[\\[\\]a]{0,5}") {
        let value = Value::Array(vec![Value::from(text.as_str())]);
        let there = escaped(value.clone());
        prop_assert!(!is_expression(there.as_array().unwrap()[0].as_str().unwrap()));
        prop_assert_eq!(unescaped(there), value);
    }
}
