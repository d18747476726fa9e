//! What a module declares of a resource, in the words that PowerShell has for it.

use std::sync::Arc;

use serde::Serialize;
use stead_powershell_reader::module::Module;
use stead_powershell_reader::resource::Resource;
use stead_powershell_reader::types::{Property, Rule, Type};

/// A resource as its module declares it.
pub struct ResourceDeclaration {
    pub(crate) module: Arc<Module>,
    pub(crate) resource: Arc<Resource>,
}

/// A property as `Get-DscResource` shows it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct DeclaredProperty {
    /// Its name.
    pub name: String,
    /// Its type in brackets.
    pub property_type: String,
    /// True if it must be stated.
    pub is_mandatory: bool,
    /// The values that it can have; empty where there is no list of them.
    pub values: Vec<String>,
}

impl ResourceDeclaration {
    /// The `GUID` of the manifest of its module.
    pub fn guid(&self) -> Option<&str> {
        self.module.manifest.as_ref()?.guid.as_deref()
    }

    /// The `CompanyName` of the manifest of its module.
    pub fn company(&self) -> Option<&str> {
        self.module.manifest.as_ref()?.company.as_deref()
    }

    /// The properties that can be stated, with those that every resource has: first what must be stated, then by name.
    pub fn properties(&self) -> Vec<DeclaredProperty> {
        let stated = self.resource.properties.iter().filter(|property| !property.read_only);
        let mut properties: Vec<_> = stated.map(DeclaredProperty::of).chain(DeclaredProperty::of_all()).collect();
        properties.sort_by_key(|property| (!property.is_mandatory, property.name.to_lowercase()));
        properties
    }

    /// The types of properties, by name, that a value has which JSON has no form for, or only a wider one.
    pub fn narrower_types(&self) -> Vec<(&str, String)> {
        let narrower = |property: &Property| is_narrower(&property.ty).then(|| name(&property.ty));
        let properties = self.resource.properties.iter();
        properties.filter_map(|property| Some((property.name.as_str(), narrower(property)?))).collect()
    }
}

impl DeclaredProperty {
    fn of(property: &Property) -> Self {
        Self {
            name: property.name.clone(),
            property_type: format!("[{}]", name(&property.ty)),
            is_mandatory: property.key || property.mandatory,
            values: values(property),
        }
    }

    fn of_all() -> [Self; 2] {
        let optional = |name: &str, ty: &str| Self {
            name: name.to_owned(),
            property_type: ty.to_owned(),
            is_mandatory: false,
            values: Vec::new(),
        };
        [optional("DependsOn", "[string[]]"), optional("PsDscRunAsCredential", "[PSCredential]")]
    }
}

fn values(property: &Property) -> Vec<String> {
    let listed = property.rules.iter().find_map(|rule| match rule {
        Rule::OneOf(words) => Some(words.clone()),
        _ => None,
    });
    let members = || match element(&property.ty) {
        Type::Enumeration(enumeration) => enumeration.members.iter().map(|(name, _)| name.clone()).collect(),
        _ => Vec::new(),
    };
    listed.unwrap_or_else(members)
}

fn element(ty: &Type) -> &Type {
    match ty {
        Type::Array(inner) | Type::Nullable(inner) => element(inner),
        other => other,
    }
}

fn is_narrower(ty: &Type) -> bool {
    use Type::{
        BigInteger, Char, DateTime, DateTimeOffset, Decimal, Guid, Integer, ScriptBlock, Single, TimeSpan, Uri, Version,
    };
    matches!(
        element(ty),
        BigInteger
            | Char
            | DateTime
            | DateTimeOffset
            | Decimal
            | Guid
            | Integer { .. }
            | ScriptBlock
            | Single
            | TimeSpan
            | Uri
            | Version
    )
}

/// The name that PowerShell has for a type. An enumeration is known in its module alone, and a text everywhere else.
fn name(ty: &Type) -> String {
    let name = match ty {
        Type::Integer { bits: 8, signed: true } => "sbyte",
        Type::Integer { bits: 8, signed: false } => "byte",
        Type::Integer { bits, signed } => return format!("{}int{bits}", if *signed { "" } else { "u" }),
        Type::Array(inner) => return format!("{}[]", self::name(inner)),
        Type::Nullable(inner) => return self::name(inner),
        Type::Class(class) | Type::CimInstance(class) => class.name.as_str(),
        Type::Other(name) => name.as_str(),
        Type::String | Type::Enumeration(_) => "string",
        Type::Object | Type::PsObject => "object",
        Type::Char => "char",
        Type::Boolean => "bool",
        Type::Switch => "switch",
        Type::BigInteger => "bigint",
        Type::Single => "float",
        Type::Double => "double",
        Type::Decimal => "decimal",
        Type::DateTime => "datetime",
        Type::DateTimeOffset => "DateTimeOffset",
        Type::TimeSpan => "timespan",
        Type::Guid => "guid",
        Type::Uri => "uri",
        Type::Version => "version",
        Type::Hashtable => "hashtable",
        Type::OrderedDictionary => "ordered",
        Type::Credential => "PSCredential",
        Type::SecureString => "securestring",
        Type::ScriptBlock => "scriptblock",
    };
    name.to_owned()
}
