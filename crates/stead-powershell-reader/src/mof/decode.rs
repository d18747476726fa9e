//! The text of a schema.

use super::MofFault;
use crate::text::Text;

/// Decodes a schema as PowerShell does: UTF-8 with a byte order mark, UTF-16 with or without one, and everything else as
/// text of the Western code page of Windows.
pub(super) fn decode(bytes: &[u8]) -> Result<Text, MofFault> {
    match bytes {
        [0xFF, 0xFE, 0, 0, ..] | [0, 0, 0xFE, 0xFF, ..] => {
            Err(MofFault::syntax(0, "the schema is encoded as UTF-32".to_owned()).help("save it as UTF-8"))
        }
        [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] | [0xEF, 0xBB, 0xBF, ..] => Ok(Text::decode(bytes)),
        [first, 0, ..] if *first != 0 => Ok(Text::decode(&[&[0xFF, 0xFE], bytes].concat())),
        [0, second, ..] if *second != 0 => Ok(Text::decode(&[&[0xFE, 0xFF], bytes].concat())),
        _ => Ok(Text::new(bytes.iter().map(|byte| windows_1252(*byte)).collect())),
    }
}

/// Returns where text begins that is UTF-8, but has no mark that says so: PowerShell reads other characters there.
pub(super) fn misread(bytes: &[u8]) -> Option<usize> {
    let marked = matches!(bytes, [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] | [0xEF, 0xBB, 0xBF, ..]);
    let at = bytes.iter().position(|byte| !byte.is_ascii())?;
    (!marked && !bytes.contains(&0) && std::str::from_utf8(bytes).is_ok()).then_some(at)
}

fn windows_1252(byte: u8) -> char {
    const HIGH: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8D}', 'Ž', '\u{8F}', '\u{90}', '‘',
        '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9D}', 'ž', 'Ÿ',
    ];
    let high = byte.checked_sub(0x80).and_then(|index| HIGH.get(usize::from(index)));
    high.copied().unwrap_or(char::from(byte))
}
