//! From declarations to resources.

use std::path::PathBuf;
use std::sync::Arc;

use super::MofFault;
use super::check::{BASE, is_any};
use super::declaration::{ClassDeclaration, PropertyDeclaration, Shape, Value};
use crate::resource::{DefinitionKind, Methods, Resource};
use crate::text::Text;
use crate::types::{Class, DEEPEST_CLASS, Type};
use crate::types::{Property, Rule};

/// The resources among the classes of a file.
pub(super) fn resources(
    classes: &[ClassDeclaration],
    text: &Text,
    file: &Arc<PathBuf>,
    faults: &mut Vec<MofFault>,
) -> Vec<Resource> {
    let mut convert = Convert { classes, text, faults, room: MOST_EMBEDDED };
    classes.iter().filter(|class| lineage(class, classes).1).map(|class| convert.resource(class, file)).collect()
}

/// A class and those that it derives from, itself first, and whether the last of them derives from the base of all resources.
fn lineage<'a>(class: &'a ClassDeclaration, classes: &'a [ClassDeclaration]) -> (Vec<&'a ClassDeclaration>, bool) {
    let mut lineage = vec![class];
    let mut base = class.base.as_deref();
    // A class can derive from each other one once, so that a circle ends.
    while let Some(found) = base.and_then(|base| find(classes, base)).filter(|_| lineage.len() <= classes.len()) {
        base = found.base.as_deref();
        lineage.push(found);
    }
    (lineage, base.is_some_and(|base| base.eq_ignore_ascii_case(BASE)))
}

fn find<'a>(classes: &'a [ClassDeclaration], name: &str) -> Option<&'a ClassDeclaration> {
    classes.iter().find(|class| class.name.eq_ignore_ascii_case(name))
}

struct Convert<'a> {
    classes: &'a [ClassDeclaration],
    text: &'a Text,
    faults: &'a mut Vec<MofFault>,
    /// How many properties of embedded classes may follow.
    room: usize,
}

/// How many properties of embedded classes a file has, as often as they are embedded: classes that embed others twice double them
/// with every level.
const MOST_EMBEDDED: usize = 5000;

impl Convert<'_> {
    fn resource(&mut self, class: &ClassDeclaration, file: &Arc<PathBuf>) -> Resource {
        let friendly = class.qualifiers.text("FriendlyName").filter(|name| !name.is_empty());
        Resource {
            name: friendly.unwrap_or(&class.name).to_owned(),
            class_name: friendly.filter(|name| *name != class.name).map(|_| class.name.clone()),
            kind: DefinitionKind::Script,
            version: class.qualifiers.text("ClassVersion").map(str::to_owned),
            file: file.clone(),
            implementation: file.clone(),
            place: self.text.place(class.offset),
            description: class.qualifiers.text("Description").map(str::to_owned),
            properties: self.properties(class, &mut Vec::new()),
            methods: Methods::default(),
        }
    }

    /// The properties of a class, those of base classes first; one that is declared again stays where it was.
    fn properties(&mut self, class: &ClassDeclaration, within: &mut Vec<String>) -> Vec<Property> {
        let (lineage, _) = lineage(class, self.classes);
        let mut properties: Vec<Property> = Vec::new();
        for declaring in lineage.into_iter().rev() {
            for declared in &declaring.properties {
                let mut property = self.property(declared, within);
                property.declared_in = (declaring.name != class.name).then(|| declaring.name.clone());
                match properties.iter_mut().find(|known| known.name.eq_ignore_ascii_case(&property.name)) {
                    Some(known) => *known = property,
                    None => properties.push(property),
                }
            }
        }
        properties
    }

    fn property(&mut self, declared: &PropertyDeclaration, within: &mut Vec<String>) -> Property {
        let qualifiers = &declared.qualifiers;
        let brackets = if declared.shape == Shape::Single { "" } else { "[]" };
        Property {
            name: declared.name.clone(),
            written: Some(format!("{}{brackets}", declared.written)),
            ty: self.data_type(declared, within),
            key: qualifiers.is("Key"),
            mandatory: qualifiers.is("Required"),
            read_only: qualifiers.is("Read") && !qualifiers.is("Key"),
            rules: rules(declared),
            description: qualifiers.text("Description").map(str::to_owned),
            default: declared.default.as_ref().filter(|(value, _)| *value != Value::Null).map(|(_, text)| text.clone()),
            declared_in: None,
            place: self.text.place(declared.offset),
        }
    }

    fn data_type(&mut self, declared: &PropertyDeclaration, within: &mut Vec<String>) -> Type {
        let element = match declared.qualifiers.text("EmbeddedInstance") {
            Some(name) if is_any(name, &["MSFT_KeyValuePair"]) => return Type::Hashtable,
            Some(name) if is_any(name, &["MSFT_Credential"]) => Type::Credential,
            Some(name) => Type::CimInstance(Arc::new(self.embedded(name, declared, within))),
            None => declared.element.clone(),
        };
        if declared.shape == Shape::Single { element } else { Type::Array(Box::new(element)) }
    }

    fn embedded(&mut self, name: &str, declared: &PropertyDeclaration, within: &mut Vec<String>) -> Class {
        let inside = within.iter().any(|outer| outer.eq_ignore_ascii_case(name));
        let found = find(self.classes, name);
        if found.is_none() {
            let message = format!("class '{name}' of property '{}' is not declared in this file", declared.name);
            self.faults
                .push(MofFault::ignored(declared.offset, message).help("declare it above the class of the resource"));
        }
        let deep = within.len() == DEEPEST_CLASS;
        if deep {
            let message = format!("property '{}' is within more than {DEEPEST_CLASS} classes", declared.name);
            self.faults.push(MofFault::ignored(declared.offset, message));
        }
        let count = found.map_or(0, |class| class.properties.len().max(1));
        let is_much = self.room > 0 && count > self.room;
        self.room = self.room.saturating_sub(count);
        if is_much {
            let message = format!("the classes of this file have more than {MOST_EMBEDDED} embedded properties");
            self.faults.push(MofFault::ignored(declared.offset, message));
        }
        let Some(class) = found.filter(|_| !inside && !deep && self.room > 0) else {
            return Class { name: name.to_owned(), properties: Vec::new() };
        };
        within.push(name.to_owned());
        let properties = self.properties(class, within);
        within.pop();
        Class { name: class.name.clone(), properties }
    }
}

/// Returns the restrictions on values. Users write what `Values` says; the resource gets what `ValueMap` has at the
/// same place.
fn rules(declared: &PropertyDeclaration) -> Vec<Rule> {
    let qualifiers = &declared.qualifiers;
    let mut rules = Vec::new();
    rules.extend(qualifiers.texts("Values").map(Rule::OneOf));
    rules.extend(qualifiers.texts("ValueMap").map(Rule::MappedTo));
    rules
}
