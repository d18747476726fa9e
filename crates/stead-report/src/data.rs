//! Data as text: JSON and YAML, in one line or in many.

use serde::Serialize;
use stead_core::visible::{is_obeyed, visible_json};

/// JSON in a line, without anything that a terminal would obey.
pub fn json(value: &impl Serialize) -> String {
    visible_json(&serde_json::to_string(value).unwrap_or_default()).into_owned()
}

/// JSON on several lines, without anything that a terminal would obey.
pub fn pretty(value: &impl Serialize) -> String {
    visible_json(&serde_json::to_string_pretty(value).unwrap_or_default()).into_owned()
}

/// YAML, ending in a line break; in the way of JSON if a terminal would obey something in it.
pub fn yaml(value: &impl Serialize) -> String {
    // Text stays in one line however long it is, so that it can be searched for.
    let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
    let mut text = serde_saphyr::to_string_with_options(value, options).unwrap_or_default();
    if text.contains(|character: char| is_obeyed(character) && !matches!(character, '\n' | '\t')) {
        text = json(value);
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::Value as Json;

    use super::*;

    #[test]
    fn yaml_holds_the_same_text() {
        let value = serde_json::json!({ "name": "a\u{202e}b\u{9b}", "lines": "a\nb" });
        let text = yaml(&value);
        assert!(!text.contains('\u{202e}') && !text.contains('\u{9b}'), "{text}");
        assert_eq!(serde_json::from_str::<Json>(&text).unwrap(), value);
    }
}
