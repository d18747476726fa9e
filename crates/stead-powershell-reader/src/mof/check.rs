//! Checks that PowerShell makes of a schema besides its grammar.

use std::collections::BTreeSet;
use std::path::Path;

use super::MofFault;
use super::declaration::{ClassDeclaration, PropertyDeclaration, Qualifier, Qualifiers, Value};
use super::parse::Parsed;
use super::qualifier::{Holds, QualifierRule, QualifierScope};
use crate::types::Type;

/// Returns the mistakes in the classes of a file.
pub(super) fn check(parsed: &Parsed, file: &Path) -> Vec<MofFault> {
    let mut check = Check { declared: &parsed.declared, faults: Vec::new() };
    let mut names = BTreeSet::new();
    for class in &parsed.classes {
        if !names.insert(class.name.to_lowercase()) {
            check.invalid(class.offset, format!("class '{}' is declared twice", class.name));
        }
        check.class(class, &names, file);
    }
    for (scope, all) in [(QualifierScope::Method, &parsed.methods), (QualifierScope::Parameter, &parsed.parameters)] {
        for qualifiers in all {
            check.qualifiers(qualifiers, scope);
        }
    }
    check.faults
}

/// The base class of all resources.
pub(super) const BASE: &str = "OMI_BaseResource";

/// Classes that PowerShell declares itself.
const BUILT_IN: &[&str] =
    &[BASE, "MSFT_Credential", "MSFT_KeyValuePair", "OMI_ConfigurationDocument", "OMI_MetaConfigurationResource"];

/// Properties that PowerShell drops, because configurations use these names for themselves.
const RESERVED: &[&str] = &["Require", "Trigger", "Notify", "Before", "After", "Subscribe"];

/// Names that PowerShell's parser does not take for a property.
const KEYWORDS: &[&str] = &["Association", "Indication", "Reference", "Property"];

pub(super) fn is_any(name: &str, names: &[&str]) -> bool {
    names.iter().any(|other| other.eq_ignore_ascii_case(name))
}

/// The name that the resource of a file must have.
fn stem(file: &Path) -> &str {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let cut = name.len().saturating_sub(".schema.mof".len());
    name.get(..cut).unwrap_or_default()
}

struct Check<'a> {
    declared: &'a [String],
    faults: Vec<MofFault>,
}

impl Check<'_> {
    fn invalid(&mut self, offset: usize, message: String) {
        self.faults.push(MofFault::invalid(offset, message));
    }

    fn class(&mut self, class: &ClassDeclaration, declared: &BTreeSet<String>, file: &Path) {
        let base = class.base.as_deref().unwrap_or_default();
        if base.eq_ignore_ascii_case(BASE) && !class.name.eq_ignore_ascii_case(stem(file)) {
            let message = format!("resource '{}' must be declared in '{}.schema.mof'", class.name, class.name);
            let fault = MofFault::new(&super::codes::SCHEMA_NAME, super::Severity::Error, class.offset, message);
            self.faults.push(fault.help("give the file, its folder and the class the same name"));
        }
        if !base.is_empty() && !is_any(base, BUILT_IN) && !declared.contains(&base.to_lowercase()) {
            self.invalid(class.offset, format!("base class '{base}' is not declared before '{}'", class.name));
        }
        self.qualifiers(&class.qualifiers, QualifierScope::Class);
        let mut names = BTreeSet::new();
        for property in &class.properties {
            if !names.insert(property.name.to_lowercase()) {
                self.invalid(property.offset, format!("property '{}' is declared twice", property.name));
            }
            self.property(property);
        }
    }

    fn property(&mut self, property: &PropertyDeclaration) {
        let (name, offset, qualifiers) = (&property.name, property.offset, &property.qualifiers);
        let reference = matches!(property.element, Type::Other(_));
        self.qualifiers(qualifiers, if reference { QualifierScope::Reference } else { QualifierScope::Property });
        if is_any(name, KEYWORDS) {
            self.invalid(offset, format!("PowerShell does not accept '{name}' as the name of a property"));
        }
        if is_any(name, RESERVED) {
            let message =
                format!("PowerShell drops property '{name}', because configurations use this name themselves");
            self.faults.push(MofFault::ignored(offset, message));
        }
        if let Some(read) = qualifiers.get("Read").filter(|read| read.value == Some(Value::Boolean(false))) {
            let message = format!("PowerShell treats '{name}' as read-only, whatever the value of 'Read'");
            self.faults.push(MofFault::ignored(read.offset, message).help("remove the qualifier 'Read'"));
        }
        if qualifiers.get("EmbeddedInstance").is_some() && property.element != Type::String {
            self.invalid(offset, format!("property '{name}' with 'EmbeddedInstance' must be a string"));
        }
        self.values(property);
    }

    /// `ValueMap` and `Values` are two columns of one table.
    fn values(&mut self, property: &PropertyDeclaration) {
        let (map, values) = (property.qualifiers.texts("ValueMap"), property.qualifiers.texts("Values"));
        let Some(values) = values else { return };
        let offset = property.qualifiers.get("Values").map_or(property.offset, |values| values.offset);
        if let Some(map) = map.filter(|map| map.len() != values.len()) {
            let message =
                format!("'ValueMap' of '{}' has {} entries, 'Values' has {}", property.name, map.len(), values.len());
            self.invalid(offset, message);
        }
        let mut seen = BTreeSet::new();
        if let Some(twice) = values.iter().find(|value| !seen.insert(value.to_lowercase())) {
            self.invalid(offset, format!("'Values' of '{}' has '{twice}' twice", property.name));
        }
    }

    fn qualifiers(&mut self, qualifiers: &Qualifiers, scope: QualifierScope) {
        let mut seen = BTreeSet::new();
        for qualifier in &qualifiers.0 {
            if !seen.insert(qualifier.name.to_lowercase()) {
                self.invalid(qualifier.offset, format!("qualifier '{}' is given twice", qualifier.name));
            }
            if qualifier.flavors > 1 {
                let message = format!("PowerShell refuses more than one flavor of qualifier '{}'", qualifier.name);
                self.faults.push(MofFault::refused(qualifier.offset, message));
            }
            match QualifierRule::find(&qualifier.name) {
                Some(known) => self.known(qualifier, known, scope),
                None if self.declared.iter().any(|name| name.eq_ignore_ascii_case(&qualifier.name)) => {}
                None => self.invalid(qualifier.offset, format!("unknown qualifier '{}'", qualifier.name)),
            }
        }
    }

    fn known(&mut self, qualifier: &Qualifier, known: &QualifierRule, scope: QualifierScope) {
        let name = &qualifier.name;
        if !known.allows(scope) {
            self.invalid(qualifier.offset, format!("qualifier '{name}' is not allowed here"));
        }
        match &qualifier.value {
            None if known.1 != Holds::Boolean => {
                let message = format!("PowerShell refuses qualifier '{name}' without a value");
                self.faults.push(MofFault::refused(qualifier.offset, message));
            }
            Some(value) if !fits(value, known.1) => {
                let expected = match known.1 {
                    Holds::Boolean => "true or false",
                    Holds::Text => "a string in double quotes",
                    Holds::Texts => "a list of strings",
                    Holds::Number => "a number",
                };
                self.invalid(qualifier.offset, format!("the value of qualifier '{name}' must be {expected}"));
            }
            _ => {}
        }
    }
}

fn fits(value: &Value, holds: Holds) -> bool {
    match (value, holds) {
        (Value::Array(values), Holds::Texts) => values.iter().all(|value| fits(value, Holds::Text)),
        (Value::Boolean(_), Holds::Boolean)
        | (Value::Text(_), Holds::Text | Holds::Texts)
        | (Value::Integer(_), Holds::Number)
        | (Value::Null, _) => true,
        _ => false,
    }
}
