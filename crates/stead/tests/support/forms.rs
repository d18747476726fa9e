//! What a secret looks like in what others write.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use serde_json::Value as Json;

/// The forms of a secret that are looked for.
pub(crate) fn forms(secret: &str) -> Vec<String> {
    let hex = |bytes: &[u8]| bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
    let percent = |keep: &str| {
        let mut text = String::new();
        for byte in secret.bytes() {
            let is_kept = byte.is_ascii_alphanumeric() || keep.bytes().any(|kept| kept == byte);
            if is_kept { text.push(char::from(byte)) } else { write!(text, "%{byte:02X}").unwrap() }
        }
        text
    };
    let wide: Vec<u8> = secret.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let json = within_json(secret);
    let ascii = json.chars().fold(String::new(), |text, letter| match letter {
        letter if letter.is_ascii() && !"<>&'+".contains(letter) => text + &letter.to_string(),
        letter => text + &format!("\\u{:04x}", u32::from(letter)),
    });
    let xml = secret.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    vec![
        secret.to_owned(),
        secret.to_uppercase(),
        secret.to_lowercase(),
        json,
        ascii,
        percent(""),
        percent("-_.~"),
        percent("-_.~").to_lowercase(),
        percent("-_.~").replace("%20", "+"),
        percent("-_.~/:@!$&'()*+,;="),
        hex(secret.as_bytes()),
        hex(secret.as_bytes()).to_uppercase(),
        STANDARD.encode(secret).trim_end_matches('=').to_owned(),
        URL_SAFE.encode(secret).trim_end_matches('=').to_owned(),
        STANDARD.encode(&wide).trim_end_matches('=').to_owned(),
        xml.clone(),
        xml.replace('"', "&quot;").replace('\'', "&apos;"),
        secret.replace('\'', "'\\''"),
        secret.replace('\'', "'\"'\"'"),
        secret.replace('\'', "''"),
        printf_q(secret),
    ]
}

/// As bash quotes it.
fn printf_q(secret: &str) -> String {
    secret.chars().fold(String::new(), |text, letter| match letter {
        letter if " !\"$&'()*,;<>?[\\]^`{|}".contains(letter) => text + "\\" + &letter.to_string(),
        letter => text + &letter.to_string(),
    })
}

/// As it is within the quotes of JSON.
pub(crate) fn within_json(secret: &str) -> String {
    let quoted = Json::from(secret).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}
