//! Laws of the filter language.

use std::collections::BTreeMap;

use proptest::prelude::*;
use stead_hosts::Filter;

/// A text that is a filter, of few labels and values, so that machines match now and then.
fn filter() -> impl Strategy<Value = String> {
    let label = prop::sample::select(vec!["a", "b", "site", "x.y/z"]);
    let value = prop::sample::select(vec!["1", "web", "we*", "*b", "w*b", "\"*\"", "'not'", "\"a'b\""]);
    let comparison = (label, value.clone(), value, 0..5_u8).prop_map(|(label, value, other, form)| match form {
        0 => label.to_owned(),
        1 => format!("{label}={value}"),
        2 => format!("{label}!={value}"),
        3 => format!("{label} in ({value},{other})"),
        _ => format!("{label} not in ( {value} , {other} )"),
    });
    comparison.prop_recursive(4, 32, 2, |inner| {
        (inner.clone(), inner, 0..4_u8).prop_map(|(left, right, form)| match form {
            0 => format!("not ({left})"),
            1 => format!("({left}) and {right}"),
            2 => format!("{left} or {right}"),
            _ => format!("not {left}"),
        })
    })
}

fn labels() -> impl Strategy<Value = BTreeMap<String, String>> {
    let label = prop::sample::select(vec!["a", "b", "site", "x.y/z"]).prop_map(str::to_owned);
    let value = prop::sample::select(vec!["1", "web", "*", "not", "a'b", ""]).prop_map(str::to_owned);
    prop::collection::btree_map(label, value, 0..4)
}

fn matches(text: &str, labels: &BTreeMap<String, String>) -> bool {
    let filter = Filter::parse(text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
    filter.matches(&|label: &str| labels.get(label).map(String::as_str))
}

proptest! {
    #[test]
    fn a_filter_is_printed_as_itself(text in filter()) {
        let filter = Filter::parse(&text).expect("a filter");
        prop_assert_eq!(Filter::parse(&filter.to_string()), Ok(filter), "{}", text);
    }

    #[test]
    fn the_words_mean_what_they_mean_in_logic(left in filter(), right in filter(), labels in labels()) {
        let (one, other) = (matches(&left, &labels), matches(&right, &labels));
        prop_assert_eq!(matches(&format!("({left}) and ({right})"), &labels), one && other);
        prop_assert_eq!(matches(&format!("({left}) or ({right})"), &labels), one || other);
        prop_assert_eq!(matches(&format!("not ({left})"), &labels), !one);
        // `and` binds more tightly than `or`.
        prop_assert_eq!(matches(&format!("a or ({left}) and ({right})"), &labels), labels.contains_key("a") || one && other);
    }

    #[test]
    fn any_text_is_a_filter_or_has_a_place_where_it_is_wrong(text in "[a-c*()=!, '\"&|ä\n\u{1b}]{0,24}|(not |and |in |\\(|a|=|b){0,300}") {
        if let Err(error) = Filter::parse(&text) {
            prop_assert!(text.get(error.range.clone()).is_some(), "{:?}: {:?}", text, error);
            let obeyed = error.message.contains(char::is_control);
            prop_assert!(!obeyed && !error.help.is_empty());
        }
    }
}
