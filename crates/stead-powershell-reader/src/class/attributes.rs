//! The meaning of attributes.

use super::File;
use crate::script::{Argument, Attribute, Constant};
use crate::types::Rule;

/// The name of an attribute without its namespace and suffix, in lower case.
pub(crate) fn name(attribute: &Attribute) -> String {
    short(&attribute.name).to_ascii_lowercase()
}

/// A name without its namespace and suffix, whatever their case.
fn short(name: &str) -> &str {
    let after = |space: &str| name.split_at_checked(space.len()).filter(|(own, _)| own.eq_ignore_ascii_case(space));
    let found = after("System.Management.Automation.").or_else(|| after("System."));
    let bare = found.map_or(name, |(_, rest)| rest);
    let split = bare.len().checked_sub("Attribute".len()).and_then(|at| bare.split_at_checked(at));
    split.filter(|(_, suffix)| suffix.eq_ignore_ascii_case("Attribute")).map_or(bare, |(rest, _)| rest)
}

/// Returns whether an attribute of that name is among them.
pub(crate) fn is(attributes: &[Attribute], wanted: &str) -> bool {
    attributes.iter().any(|attribute| short(&attribute.name).eq_ignore_ascii_case(wanted))
}

/// Returns the value of `DscProperty` under that name, whatever its case.
pub(crate) fn flag(attributes: &[Attribute], wanted: &str) -> bool {
    let properties = attributes.iter().filter(|attribute| short(&attribute.name).eq_ignore_ascii_case("DscProperty"));
    let named = properties.flat_map(|attribute| &attribute.named).filter(|(name, _)| name.eq_ignore_ascii_case(wanted));
    named.filter_map(|(_, argument)| argument.value.as_ref()).any(Constant::is_true)
}

/// Returns the restrictions that attributes put on values.
pub(crate) fn rules(attributes: &[Attribute]) -> Vec<Rule> {
    attributes.iter().filter_map(rule).collect()
}

fn rule(attribute: &Attribute) -> Option<Rule> {
    let arguments = &attribute.positional;
    Some(match name(attribute).as_str() {
        "validateset" => {
            let values: Option<Vec<_>> = arguments.iter().map(text).collect();
            // A class that makes the values is known when it runs only.
            Rule::OneOf(values.filter(|values| !values.is_empty())?)
        }
        "validaterange" => bounds(arguments)?,
        "validatelength" => Rule::Length(count(arguments.first())?, count(arguments.get(1))?),
        "validatecount" => Rule::Count(count(arguments.first())?, count(arguments.get(1))?),
        "validatepattern" => Rule::Pattern(arguments.first().and_then(text)?),
        "validatenotnull" => Rule::NotNull,
        "validatenotnullorempty" => Rule::NotEmpty,
        _ => return None,
    })
}

fn text(argument: &Argument) -> Option<String> {
    match argument.value.as_ref()? {
        Constant::Type(_) | Constant::Member(..) | Constant::List(_) => None,
        value => Some(value.to_text()),
    }
}

fn bounds(arguments: &[Argument]) -> Option<Rule> {
    let bound = |argument: &Argument| match argument.value.as_ref()? {
        value @ Constant::Member(..) => value.to_integer().map(|value| value.to_string()),
        _ => text(argument),
    };
    match arguments {
        [low, high] => Some(Rule::Range(bound(low)?, bound(high)?)),
        [kind] => {
            let (low, high) = match text(kind)?.to_ascii_lowercase().as_str() {
                "positive" => ("1", i64::MAX.to_string()),
                "nonnegative" => ("0", i64::MAX.to_string()),
                _ => return None,
            };
            Some(Rule::Range(low.to_owned(), high))
        }
        _ => None,
    }
}

fn count(argument: Option<&Argument>) -> Option<u64> {
    argument?.value.as_ref()?.to_integer()?.try_into().ok()
}

/// The text of the comment that ends right above an offset.
pub(super) fn comment_before(file: &File, at: usize) -> Option<String> {
    let before = file.text.as_str().get(..at)?.trim_end_matches([' ', '\t']);
    let before = before.strip_suffix('\n')?.trim_end_matches('\r');
    if let Some(block) = before.trim_end_matches([' ', '\t']).strip_suffix("#>") {
        return described(block.get(block.rfind("<#")? + 2..)?);
    }
    let mut lines: Vec<_> =
        before.split('\n').rev().map_while(|line| line.trim().strip_prefix('#')).take(100).map(str::trim).collect();
    lines.reverse();
    described(&lines.join("\n"))
}

/// Returns the description in a comment: of comment-based help its description, else its synopsis.
fn described(comment: &str) -> Option<String> {
    let section = |name: &str| {
        let mut lines = comment.lines().map(str::trim);
        lines.find(|line| line.eq_ignore_ascii_case(name))?;
        let body: Vec<_> = lines.take_while(|line| !line.starts_with('.')).filter(|line| !line.is_empty()).collect();
        Some(body.join("\n"))
    };
    let text = section(".DESCRIPTION").or_else(|| section(".SYNOPSIS"));
    let text = text.unwrap_or_else(|| comment.lines().map(str::trim).collect::<Vec<_>>().join("\n").trim().to_owned());
    (!text.is_empty() && !text.starts_with("region") && !text.starts_with("requires")).then_some(text)
}
