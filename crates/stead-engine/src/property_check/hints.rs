//! Advice about properties that do not fit.

use stead_core::diag::{Diagnostic, Meant};
use stead_core::document::{INSTANCE_KEYS, Meaning, foreign_meanings, property_meaning};
use stead_core::expr::Template;
use stead_core::schema::{Reason, Spelling, Type};
use stead_core::text::Kind;

use super::{Pass, corrections, words};

/// The names that other tools give to the property that says if something should exist.
const STATES: [&str; 6] = ["ensure", "state", "exists", "exist", "present", "absent"];

/// A mistake in a property of an instance.
pub(super) struct Fault<'a> {
    /// The type of the instance.
    pub(super) type_name: &'a str,
    /// Why it is not accepted, where that is known as data.
    pub(super) reason: Option<&'a Reason>,
    /// Gives what to write for a word of another tool for what happens after a change.
    pub(super) change: &'a dyn Fn(&str) -> Option<String>,
    /// All properties of the instance.
    pub(super) properties: &'a Template,
    /// The name of the property; empty where it is about all of them.
    pub(super) property: &'a str,
    /// The value that is not accepted, where it is in the text.
    pub(super) value: Option<&'a Template>,
    /// The description of a property in the schema: how it is used.
    pub(super) advice: &'a dyn Fn(&str) -> Option<String>,
    /// Tells if a text would be accepted in place of the value.
    pub(super) accepts: &'a dyn Fn(&str) -> bool,
}

impl Pass<'_> {
    /// The finding with what to do about the fault, and the change that does it.
    pub(super) fn with_hint(&self, finding: Diagnostic, fault: &Fault<'_>) -> Diagnostic {
        let written = finding.span.and_then(|span| self.prepared.sources.text(span));
        if matches!(fault.reason, Some(Reason::Unknown { .. }))
            && let Some(help) = (fault.change)(fault.property)
        {
            return finding.with_help(help);
        }
        if let Some(meaning) = words::meaning(fault.type_name, fault.properties, (fault.property, fault.value)) {
            return match meaning {
                words::Meaning::Property(name) => finding.with_meant(fault.property, &Meant::only(name), written),
                words::Meaning::Advice(advice) => finding.with_help(advice),
            };
        }
        match (fault.reason, fault.value) {
            (Some(reason @ Reason::Unknown { name, known }), value) => {
                of_unknown_name(finding, (reason, name, known), value, written)
            }
            (Some(Reason::Missing(names)), _) => {
                let first = names.first().filter(|_| fault.property.is_empty());
                let outer = if fault.property.is_empty() { "properties" } else { fault.property };
                let help = first.and_then(|name| (fault.advice)(name));
                finding.with_help(help.unwrap_or_else(|| format!("add it to '{outer}'")))
            }
            (Some(Reason::Excluded(_)), _) => finding.with_help("remove one of them"),
            (Some(Reason::OneOf { near: Some(meant), .. }), Some(Template { kind: Kind::String(found), span })) => {
                let fixed = Diagnostic { span: Some(*span), ..finding.clone() };
                let fixed = fixed.with_meant(found, meant, self.prepared.sources.text(*span));
                Diagnostic { span: finding.span, ..fixed }
            }
            (Some(Reason::OneOf { allowed, near: None }), Some(Template { kind: Kind::String(found), .. }))
                if let Some(word) = of_other_tools(found, allowed) =>
            {
                finding.with_help(format!("write '{word}'"))
            }
            (Some(Reason::OneOf { near: None, .. }), Some(Template { kind: Kind::String(found), .. }))
                if fault.property == STATE
                    && let Some(help) = self::of_state(found, &|name| (fault.advice)(name).is_some()) =>
            {
                finding.with_help(help)
            }
            (_, Some(value)) if let Some(help) = words::form(fault.type_name, fault.property, value) => {
                finding.with_help(help)
            }
            (Some(Reason::Type(wanted)), Some(value))
                if let Some(hinted) = self.of_other_type(&finding, fault, (wanted, value), written) =>
            {
                hinted
            }
            (_, Some(value)) if let Some((help, meant)) = self.corrected(value, fault) => {
                let finding = finding.with_help(help);
                match meant {
                    Some(meant) => finding.with_fix(value.span, format!("\"{meant}\"")),
                    None => finding,
                }
            }
            (reason, value) => match reason.zip(value).and_then(of_type).or_else(|| (fault.advice)(fault.property)) {
                Some(help) => finding.with_help(help),
                None => finding,
            },
        }
    }

    /// The finding about a value of another type, where it is known how it is written in the right one.
    fn of_other_type(
        &self,
        finding: &Diagnostic,
        fault: &Fault<'_>,
        (wanted, value): (&[Type], &Template),
        written: Option<&str>,
    ) -> Option<Diagnostic> {
        let several = format!("{}s", fault.property);
        let is_list = matches!(value.kind, Kind::Array(_)) && wanted.contains(&Type::String);
        if is_list && (fault.advice)(&several).is_some() {
            let hinted = finding.clone().with_help(format!("for several, write '{several}'"));
            return Some(match finding.span.filter(|_| written == Some(fault.property)) {
                Some(span) => hinted.with_fix(span, several),
                None => hinted,
            });
        }
        if fault.type_name.starts_with("Stead/")
            && let Some(help) = corrections::listed(fault.property, wanted, value, fault.accepts)
        {
            return Some(finding.clone().with_help(help));
        }
        if let Some(digits) = self.octal(value, fault) {
            let hinted = finding.clone().with_help("write octal digits in quotes, without '0o'");
            return Some(hinted.with_fix(value.span, format!("\"0{digits}\"")));
        }
        let form = Spelling::of(wanted, &value.literal())?;
        let is_accepted = form != Spelling::Quoted || (fault.accepts)(self.written(value));
        is_accepted.then(|| self.in_form(finding.clone().with_help(form.help()), form, value))
    }

    fn written(&self, value: &Template) -> &str {
        self.prepared.sources.text(value.span).unwrap_or_default()
    }

    /// The digits of an octal number, where they are accepted as a text.
    fn octal(&self, value: &Template, fault: &Fault<'_>) -> Option<&str> {
        let digits = self.written(value).strip_prefix("0o")?;
        (fault.accepts)(&format!("0{digits}")).then_some(digits)
    }

    /// Advice about a text that is refused, and the text to write where that is all.
    fn corrected(&self, value: &Template, fault: &Fault<'_>) -> Option<(String, Option<String>)> {
        let Kind::String(text) = &value.kind else { return None };
        let written = self.written(value).trim_matches(['"', '\'']);
        // A text that begins with '[' is written with another one in front.
        let is_written = written == &**text || text.starts_with('[') && written.strip_prefix('[') == Some(text);
        if !is_written || text.contains(['"', '\\']) || (fault.accepts)(text) {
            return None;
        }
        let correction =
            corrections::of(fault.property, text).into_iter().find(|correction| (fault.accepts)(&correction.text));
        let has = |name: &str| (fault.advice)(name).is_some();
        let apart = || {
            let apart = corrections::apart(fault.property, text, &has, fault.accepts);
            let apart = apart.or_else(|| corrections::several(fault.property, text, &has));
            let apart = apart.or_else(|| corrections::line_of_cron(fault.property, text, fault.accepts));
            apart.or_else(|| words::line(fault.type_name, fault.property, text)).map(|help| (help, None))
        };
        correction.map(|found| (found.help, Some(found.text))).or_else(apart)
    }

    /// The finding with the change that writes the value in a form.
    fn in_form(&self, finding: Diagnostic, form: Spelling, value: &Template) -> Diagnostic {
        let written = self.written(value);
        let replacement = match (form, &value.kind) {
            // An alias is not what it stands for.
            (Spelling::Quoted, _) if !written.starts_with('*') => format!("\"{written}\""),
            (Spelling::Unquoted, Kind::String(text)) if written.trim_matches(['"', '\'']) == &**text => {
                (**text).to_owned()
            }
            _ => return finding,
        };
        finding.with_fix(value.span, replacement)
    }
}

/// The finding about a property that the resource does not have, with the one that was meant.
fn of_unknown_name(
    finding: Diagnostic,
    (reason, name, known): (&Reason, &str, &[String]),
    value: Option<&Template>,
    written: Option<&str>,
) -> Diagnostic {
    match (of_unknown(name, known), property_meaning(name, value, known), reason.meant()) {
        (_, Some(Meaning::Property(meant)), _) => finding.with_meant(name, &Meant::only(meant), written),
        (_, Some(Meaning::Inside(form, note)), _) => finding.with_help(format!("write `{form}`{note}")),
        (_, Some(meaning), _) => meaning.explain(finding, name, written),
        (Some(help), ..) => finding.with_help(help),
        (.., Some(meant)) => finding.with_meant(name, &meant, written),
        _ => {
            let help = at_instance(name).unwrap_or_else(|| format!("its properties are {}", known.join(", ")));
            finding.with_help(help)
        }
    }
}

/// Advice about a word that other tools have among the properties of a thing, and that belongs to the instance here.
fn at_instance(word: &str) -> Option<String> {
    let (_, advice) = foreign_meanings(word).into_iter().find(|(place, _)| *place == "an instance")?;
    let is_of_instance = advice.starts_with("write ") && !advice.contains("inside 'properties'");
    if is_of_instance {
        return Some(format!("it belongs to the instance, beside 'properties': {advice}"));
    }
    Some(advice).filter(|advice| !advice.contains("inside 'properties'"))
}

/// Words of other tools for a value, and the word of resources.
const VALUES: [(&str, &str); 4] =
    [("started", "running"), ("active", "running"), ("inactive", "stopped"), ("dead", "stopped")];

/// The property that says in which state a service or a mount is.
const STATE: &str = "state";

/// Returns what to write for a state of other tools that is none here, where the resource has that.
fn of_state(found: &str, has: &dyn Fn(&str) -> bool) -> Option<&'static str> {
    match found {
        "absent" if has("_exist") => Some("write `_exist: false` in place of 'state'"),
        "restarted" if has("restartedAfter") => {
            Some("write 'running', and name in 'restartedAfter' the files whose change restarts it")
        }
        "reloaded" if has("reloadedAfter") => {
            Some("write 'running', and name in 'reloadedAfter' the files whose change reloads it")
        }
        _ => None,
    }
}

/// Returns the allowed word for one of other tools.
fn of_other_tools(found: &str, allowed: &[String]) -> Option<&'static str> {
    let is_allowed = |word: &str| allowed.iter().any(|each| each.trim_matches('"') == word);
    VALUES.iter().find(|(foreign, word)| found.eq_ignore_ascii_case(foreign) && is_allowed(word)).map(|(_, word)| *word)
}

/// Returns advice about a property that the resource does not have, if it belongs to something else.
fn of_unknown(name: &str, known: &[String]) -> Option<String> {
    if INSTANCE_KEYS.contains(&name) {
        return Some(format!("'{name}' belongs to the instance: write it beside 'properties', not inside"));
    }
    let is_state = STATES.contains(&name.to_lowercase().as_str()) && known.iter().any(|name| name == "_exist");
    if name.starts_with('/') && known.iter().any(|name| name == "path") {
        return Some(format!("write the path as a property: `path: {name}`"));
    }
    is_state.then(|| "write '_exist: true' or '_exist: false' to say whether it should exist".to_owned())
}

/// Returns advice about a value of another type.
fn of_type((reason, value): (&Reason, &Template)) -> Option<String> {
    let Reason::Type(wanted) = reason else { return None };
    let wants = |each: Type| wanted.contains(&each);
    let help = match &value.kind {
        Kind::Null if wants(Type::String) => "leave it out, or write an empty string: \"\"",
        Kind::String(_) if wants(Type::Boolean) => {
            "write true or false, without quotes; YAML 1.2 reads yes, no, on and off as strings"
        }
        Kind::String(text) if (wants(Type::Number) || wants(Type::Integer)) && text.parse::<f64>().is_err() => {
            "write a number without a unit"
        }
        _ => return None,
    };
    Some(help.to_owned())
}
