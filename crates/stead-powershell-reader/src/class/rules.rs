//! Checks that PowerShell makes once it knows all types of a script.

use std::collections::BTreeSet;

use stead_core::diag::codes::powershell::script as codes;

use super::{Inherited, VisibleTypes, attributes, known, names};
use crate::finding::ModuleFinding;
use crate::script::{Attribute, Member, MemberKind, TypeDefinition, TypeForm, TypeName};
use crate::types::Type;

/// Attributes that PowerShell finds without a namespace.
const ATTRIBUTES: &[&str] = &[
    "alias",
    "allowemptycollection",
    "allowemptystring",
    "allownull",
    "argumentcompleter",
    "argumentcompletions",
    "attributeusage",
    "clscompliant",
    "cmdletbinding",
    "credential",
    "dscproperty",
    "dscresource",
    "dsclocalconfigurationmanager",
    "experimental",
    "flags",
    "hidden",
    "norunspaceaffinity",
    "obsolete",
    "outputtype",
    "parameter",
    "psdefaultvalue",
    "pstypename",
    "serializable",
    "supportswildcards",
    "validatecount",
    "validatedrive",
    "validatelength",
    "validatenotnull",
    "validatenotnullorempty",
    "validatenotnullorwhitespace",
    "validatepattern",
    "validaterange",
    "validatescript",
    "validateset",
    "validatetrusteddata",
    "validateuserdrive",
];

/// The properties of attributes that may be given by name, in lower case.
const PROPERTIES: &[(&str, &[&str])] = &[
    ("dscproperty", &["key", "mandatory", "notconfigurable"]),
    ("dscresource", &["runascredential"]),
    ("validateset", &["errormessage", "ignorecase"]),
];

/// Adds what PowerShell refuses.
pub(super) fn check(types: &VisibleTypes<'_>, findings: &mut Vec<ModuleFinding>) {
    types.missing_modules(findings);
    let mut checker = Checker { types, findings };
    let mut names = BTreeSet::new();
    for ty in &types.file.script.types {
        if !names.insert(ty.name.to_lowercase()) {
            checker.report(&codes::DUPLICATE, ty.at, format!("'{}' is already defined in this script", ty.name));
        }
        checker.definition(ty);
    }
}

struct Checker<'c, 'a> {
    types: &'c VisibleTypes<'a>,
    findings: &'c mut Vec<ModuleFinding>,
}

impl Checker<'_, '_> {
    fn report(&mut self, code: stead_core::diag::Code, at: usize, message: String) {
        self.findings.push(self.types.file.finding(code, at, message));
    }

    fn definition(&mut self, ty: &TypeDefinition) {
        self.attributes(&ty.attributes, |name| match name {
            "flags" => ty.enumeration,
            "dscresource" => !ty.enumeration,
            name => !name.starts_with("validate") && name != "dscproperty",
        });
        if ty.enumeration {
            self.enumeration(ty);
        } else {
            self.class(ty);
        }
        if attributes::is(&ty.attributes, "dscresource") {
            self.resource(ty);
        }
    }

    fn enumeration(&mut self, ty: &TypeDefinition) {
        let underlying =
            ty.bases.first().map_or(Some(Type::Integer { bits: 32, signed: true }), |base| known(&base.text));
        let Some(Type::Integer { bits, signed }) = underlying else {
            let at = ty.bases.first().map_or(ty.at, |base| base.at);
            return self.report(&codes::ENUMERATION, at, "the type behind ':' is not an integer type".to_owned());
        };
        let high = 1_i128 << (u32::from(bits) - u32::from(signed));
        let low = if signed { -high } else { 0 };
        let mut names = BTreeSet::new();
        for (member, (name, value)) in ty.members.iter().zip(self.types.enumeration(ty).members) {
            if !(low..high).contains(&value) {
                self.report(&codes::ENUMERATION, member.at, format!("the value of '{name}' does not fit its type"));
            }
            if !names.insert(name.to_lowercase()) {
                self.report(&codes::DUPLICATE, member.at, format!("'{name}' is already a name of this enumeration"));
            }
        }
    }

    fn class(&mut self, ty: &TypeDefinition) {
        for base in &ty.bases {
            self.type_exists(base);
        }
        self.own_base(ty);
        let mut names = BTreeSet::new();
        for member in &ty.members {
            if let Some(name) = &member.ty {
                self.type_exists(name);
            }
            if !names.insert(signature(member)) {
                let message = format!("'{}' is already a member of this class", member.name);
                self.report(&codes::DUPLICATE, member.at, message);
            }
            let method = matches!(member.kind, MemberKind::Method(_));
            self.attributes(&member.attributes, |name| !method || !is_of_property(name));
            let MemberKind::Method(parameters) = &member.kind else { continue };
            for parameter in parameters {
                self.attributes(&parameter.attributes, |name| !is_of_property(name));
            }
        }
    }

    fn own_base(&mut self, ty: &TypeDefinition) {
        let lineage = self.types.lineage(self.types.file, ty);
        let outermost = lineage.first().and_then(|(_, class)| class.bases.first());
        let Some(TypeForm::Name(base)) = outermost.map(|base| &base.form) else { return };
        let round = self.types.find(base).is_some_and(|(_, class)| !class.enumeration);
        if round {
            self.report(&codes::BASE, ty.at, format!("'{}' is derived from itself", ty.name));
        }
    }

    fn type_exists(&mut self, name: &TypeName) {
        if self.types.open || !self.types.missing.is_empty() && self.types.find(&name.text).is_none() {
            return;
        }
        if let Some(unknown) = self.unknown(&name.form) {
            self.report(&codes::UNKNOWN_TYPE, name.at, format!("cannot find the type '{unknown}'"));
        }
    }

    /// The first name in a type that cannot be one: names with a namespace are believed.
    fn unknown<'n>(&self, form: &'n TypeForm) -> Option<&'n str> {
        match form {
            TypeForm::Array(element, _) => self.unknown(element),
            TypeForm::Generic(name, arguments) => {
                let plain = name.split('`').next().unwrap_or(name);
                let own = (!self.is_known(plain)).then_some(name.as_str());
                own.or_else(|| arguments.iter().find_map(|argument| self.unknown(argument)))
            }
            TypeForm::Name(name) => (!self.is_known(name)).then_some(name),
        }
    }

    fn is_known(&self, name: &str) -> bool {
        name.contains('.') || names::full(name).is_some() || self.types.find(name).is_some()
    }

    fn attributes(&mut self, list: &[Attribute], allowed: impl Fn(&str) -> bool) {
        for attribute in list {
            let short = attributes::name(attribute);
            let written = &attribute.name;
            let suffix = !written.contains('.') && written.to_ascii_lowercase().ends_with("attribute");
            let found = ATTRIBUTES.contains(&short.as_str()) && !suffix;
            if !found && !self.types.open && !written.contains('.') && self.types.find(written).is_none() {
                self.report(&codes::ATTRIBUTE, attribute.at, format!("cannot find the attribute '{written}'"));
            } else if !allowed(&short) {
                self.report(&codes::ATTRIBUTE, attribute.at, format!("'{written}' is not valid here"));
            }
            let Some((_, properties)) = PROPERTIES.iter().find(|(name, _)| *name == short) else { continue };
            for (name, argument) in &attribute.named {
                if !properties.contains(&name.to_ascii_lowercase().as_str()) {
                    self.report(&codes::ATTRIBUTE, argument.at, format!("'{written}' has no property '{name}'"));
                }
            }
        }
    }

    fn resource(&mut self, ty: &TypeDefinition) {
        let members = self.types.members(self.types.file, ty);
        self.methods(ty, &members);
        self.keys(ty, &members);
        let mut constructors = ty.members.iter().filter_map(|member| match &member.kind {
            MemberKind::Method(parameters) if is_constructor(ty, member) => Some(parameters.is_empty()),
            _ => None,
        });
        if let Some(first) = constructors.next()
            && !first
            && !constructors.any(|plain| plain)
        {
            let message = format!("'{}' has no constructor without parameters", ty.name);
            self.report(&codes::CONSTRUCTOR, ty.at, message);
        }
    }

    fn methods(&mut self, ty: &TypeDefinition, members: &[Inherited<'_>]) {
        let line: Vec<_> =
            self.types.lineage(self.types.file, ty).iter().map(|(_, class)| class.name.clone()).collect();
        let plain = |name: &str| {
            let named = members.iter().rev().map(|inherited| inherited.member);
            let named: Vec<_> = named.filter(|member| member.name.eq_ignore_ascii_case(name)).collect();
            named.into_iter().filter(|member| matches!(&member.kind, MemberKind::Method(list) if list.is_empty()))
        };
        let returns = |member: &Member| member.ty.as_ref().map(|ty| ty.form.clone());
        let is = |form: Option<TypeForm>, names: &[&str]| match form {
            None => names.contains(&""),
            Some(TypeForm::Name(name)) => names.iter().any(|known| known.eq_ignore_ascii_case(&name)),
            Some(_) => false,
        };
        let set = plain("Set").any(|member| is(returns(member), &["", "void", "System.Void"]));
        let test = plain("Test").any(|member| is(returns(member), &["bool", "Boolean", "System.Boolean"]));
        let get = plain("Get").any(|member| match returns(member) {
            Some(TypeForm::Array(element, 1)) => line.iter().any(|name| is(Some((*element).clone()), &[name])),
            form => line.iter().any(|name| is(form.clone(), &[name])),
        });
        for (found, name, result) in [(get, "Get", ty.name.as_str()), (set, "Set", "void"), (test, "Test", "bool")] {
            if !found {
                let message = format!("the resource '{}' has no method '[{result}] {name}()'", ty.name);
                self.report(&codes::METHOD, ty.at, message);
            }
        }
    }

    fn keys(&mut self, ty: &TypeDefinition, members: &[Inherited<'_>]) {
        let keys: Vec<_> = members.iter().filter(|member| attributes::flag(&member.member.attributes, "key")).collect();
        if keys.is_empty() {
            self.report(&codes::KEY, ty.at, format!("the resource '{}' has no key", ty.name));
        }
        for Inherited { file, member, .. } in keys {
            let valid = match self.types.type_of(member) {
                Type::String | Type::Integer { .. } | Type::Enumeration(_) => true,
                Type::Other(_) => member.ty.is_some(),
                _ => false,
            };
            if !valid {
                let message = format!("the key '{}' must be a string, an integer or an enumeration", member.name);
                self.findings.push(file.finding(&codes::KEY, member.at, message));
            }
        }
    }
}

/// Returns whether an attribute belongs to properties and parameters of functions; parameters of methods are neither.
fn is_of_property(name: &str) -> bool {
    name.starts_with("validate") || name.starts_with("allow") || matches!(name, "dscproperty" | "parameter" | "alias")
}

fn is_constructor(ty: &TypeDefinition, member: &Member) -> bool {
    !member.is_static && member.name.eq_ignore_ascii_case(&ty.name)
}

/// Returns the signature that two members of one class cannot share.
fn signature(member: &Member) -> (String, bool, Option<Vec<String>>) {
    let parameters = match &member.kind {
        MemberKind::Method(parameters) => {
            let types = parameters
                .iter()
                .map(|parameter| parameter.ty.as_ref().map_or(String::new(), |ty| ty.text.to_lowercase()));
            Some(types.collect())
        }
        _ => None,
    };
    (member.name.to_lowercase(), member.is_static, parameters)
}
