//! Encodings: Base64, URIs, and the ids of instances.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use url::Url;

use super::super::builtin::{Arguments, BuiltinResult, Wrong};
use crate::id::{ResourceId, TypeName};

/// Everything but the unreserved characters of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

pub(super) fn base64(mut arguments: Arguments) -> BuiltinResult {
    Ok(STANDARD.encode(arguments.text()?).into())
}

pub(super) fn base64_to_string(mut arguments: Arguments) -> BuiltinResult {
    decode_base64(&arguments.text()?)
}

fn decode_base64(text: &str) -> BuiltinResult {
    let bytes = STANDARD.decode(text).map_err(|_| Wrong::value(0, "Invalid base64 encoding"))?;
    utf8(bytes)
}

fn utf8(bytes: Vec<u8>) -> BuiltinResult {
    let text = String::from_utf8(bytes).map_err(|_| Wrong::value(0, "Decoded bytes do not form valid UTF-8"))?;
    Ok(text.into())
}

pub(super) fn data_uri(mut arguments: Arguments) -> BuiltinResult {
    Ok(format!("data:application/json;base64,{}", STANDARD.encode(arguments.text()?)).into())
}

pub(super) fn data_uri_to_string(mut arguments: Arguments) -> BuiltinResult {
    let text = arguments.text()?;
    let invalid = || {
        Wrong::value(0, "Invalid data URI format")
            .with_help("a data URI has the form data:[<mediatype>][;charset=utf-8][;base64],<data>")
    };
    let (scheme, rest) = text.split_at_checked(5).ok_or_else(invalid)?;
    let (header, data) = rest.split_once(',').filter(|_| scheme.eq_ignore_ascii_case("data:")).ok_or_else(invalid)?;
    let (header, is_base64) = match header.rsplit_once(';') {
        Some((header, last)) if last.eq_ignore_ascii_case("base64") => (header, true),
        _ => (header, false),
    };
    let (media_type, charset) = header.split_once(';').map_or((header, None), |(kind, rest)| (kind, Some(rest)));
    if !(media_type.is_empty() || is_media_type(media_type)) {
        return Err(invalid());
    }
    if let Some(parameter) = charset {
        let (name, value) = parameter.split_once('=').ok_or_else(invalid)?;
        if !name.eq_ignore_ascii_case("charset") || value.is_empty() || value.contains(';') {
            return Err(invalid());
        }
        if !["utf-8", "utf8", "us-ascii"].iter().any(|known| value.eq_ignore_ascii_case(known)) {
            return Err(Wrong::value(0, format!("Unsupported charset '{value}': expected utf-8 or us-ascii")));
        }
    }
    if is_base64 { decode_base64(data) } else { utf8(percent_decode_str(data).collect()) }
}

fn is_media_type(text: &str) -> bool {
    let is_token =
        |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || "!#$&-^_.+".contains(c));
    text.split_once('/').is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype))
}

/// Resolves as RFC 3986 says.
pub(super) fn uri(mut arguments: Arguments) -> BuiltinResult {
    let (base, relative) = (arguments.text()?, arguments.text()?);
    if base.is_empty() {
        return Err(Wrong::value(0, "The baseUri parameter cannot be empty. An absolute URI is required."));
    }
    let base = Url::parse(&base).map_err(|error| {
        Wrong::value(0, format!("The baseUri is not an absolute URI: {error}"))
            .with_help("it begins with a scheme, such as https://")
    })?;
    let joined =
        base.join(&relative).map_err(|error| Wrong::value(1, format!("The relativeUri is not a URI: {error}")))?;
    Ok(String::from(joined).into())
}

pub(super) fn uri_component(mut arguments: Arguments) -> BuiltinResult {
    Ok(utf8_percent_encode(&arguments.text()?, RESERVED).to_string().into())
}

pub(super) fn uri_component_to_string(mut arguments: Arguments) -> BuiltinResult {
    let text = arguments.text()?;
    let decoded = percent_decode_str(&text).decode_utf8();
    let decoded = decoded.map_err(|_| Wrong::value(0, "Decoded bytes do not form valid UTF-8"))?;
    Ok(decoded.into_owned().into())
}

pub(super) fn resource_id(mut arguments: Arguments) -> BuiltinResult {
    let (type_name, name) = (arguments.text()?, arguments.text()?);
    let type_name = TypeName::parse(&type_name).map_err(|error| {
        let wrong = Wrong::value(0, error.to_string());
        wrong.with_help(match TypeName::parse(&name) {
            Ok(_) => format!("the type comes first: resourceId('{name}', '{type_name}')"),
            Err(_) => format!("write the type of '{name}', as in resourceId('Stead/File', '{name}')"),
        })
    })?;
    Ok(ResourceId { type_name, name: name.into() }.to_string().into())
}
