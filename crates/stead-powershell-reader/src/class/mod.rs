//! Resources out of classes: what a class with `[DscResource()]` declares, with what it inherits.

pub(crate) mod attributes;
mod names;
mod rules;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use stead_core::diag::codes::powershell::script as codes;
use stead_core::diag::{Code, Severity};

use crate::finding::ModuleFinding;
use crate::resource::{DefinitionKind, Methods, Resource};
use crate::script::{Constant, Member, MemberKind, Script, TypeDefinition, TypeForm, UsingKind};
use crate::text::Text;
use crate::types::Property;
use crate::types::{Class, DEEPEST_CLASS, Enumeration, Type};

/// How many enumerations in a row may name values of another.
const MAX_REFERENCES: usize = 4;

/// A script that was read.
#[derive(Debug)]
pub struct File {
    /// Where it lies.
    pub path: Arc<PathBuf>,
    /// Its text.
    pub text: Text,
    /// The definitions in it.
    pub script: Script,
}

impl File {
    /// Reads the bytes of a script.
    pub fn read(path: Arc<PathBuf>, bytes: &[u8]) -> Self {
        let text = Text::decode(bytes);
        let script = Script::read(&text);
        Self { path, text, script }
    }

    fn finding(&self, code: Code, at: usize, message: String) -> ModuleFinding {
        let place = self.text.place(at);
        ModuleFinding { code, severity: Severity::Error, message, help: None, file: self.path.clone(), place }
    }
}

/// Finds the files that scripts name.
pub trait Modules {
    /// The script of the module that `using module NAME` in that file names: a file, or the root of a module. The name is
    /// the text of a table when a script gives a version. `None` when there is none.
    fn using(&self, from: &Path, name: &str) -> Option<Arc<File>>;
}

/// The declarations of a script for users of its module.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DeclaredTypes {
    /// The classes with `[DscResource()]`, in the order of the text.
    pub resources: Vec<Resource>,
    /// The mistakes that PowerShell refuses, in the order of the text.
    pub findings: Vec<ModuleFinding>,
}

/// A file and the types that it sees.
pub struct VisibleTypes<'a> {
    file: &'a File,
    used: Vec<Arc<File>>,
    /// True if types may exist that this cannot see.
    open: bool,
    missing: Vec<(usize, String)>,
    /// Classes that were read, by how many others they are within.
    classes: Mutex<BTreeMap<(usize, String), Arc<Class>>>,
}

/// A member with the class and the file that declare it.
#[derive(Clone, Copy)]
pub struct Inherited<'t> {
    /// The file.
    pub file: &'t File,
    /// The class.
    pub class: &'t TypeDefinition,
    /// The member.
    pub member: &'t Member,
}

/// Reads what a script declares.
///
/// # Examples
/// ```
/// use std::path::{Path, PathBuf};
/// use std::sync::Arc;
///
/// use stead_powershell_reader::class::{File, Modules, declared};
/// use stead_powershell_reader::schema::json_schema;
///
/// /// The script uses no other module.
/// struct NoModules;
///
/// impl Modules for NoModules {
///     fn using(&self, _: &Path, _: &str) -> Option<Arc<File>> {
///         None
///     }
/// }
///
/// let script = "
/// [DscResource()] class Website {
///     [DscProperty(Key)] [string] $Name
///     [DscProperty()] [ValidateRange(1, 65535)] [int] $Port
///     [Website] Get() { return $this }
///     [bool] Test() { return $true }
///     [void] Set() { }
/// }
/// ";
/// let file = File::read(Arc::new(PathBuf::from("Website.psm1")), script.as_bytes());
/// let found = declared(&file, &NoModules);
/// assert!(found.findings.is_empty());
/// let schema = json_schema(&found.resources[0]);
/// assert_eq!(schema["title"], "Website");
/// assert_eq!(schema["properties"]["Port"]["maximum"], 65535);
/// assert_eq!(schema["required"], serde_json::json!(["Name"]));
/// ```
pub fn declared(file: &File, modules: &dyn Modules) -> DeclaredTypes {
    let types = VisibleTypes::new(file, modules);
    let resources = file.script.types.iter().filter(|ty| attributes::is(&ty.attributes, "dscresource"));
    let resources = resources.map(|ty| types.resource(ty)).collect();
    let mut findings: Vec<_> = file
        .script
        .problems
        .iter()
        .map(|problem| file.finding(problem.code, problem.at, problem.message.clone()))
        .collect();
    rules::check(&types, &mut findings);
    findings.sort_by_key(|finding| finding.place);
    DeclaredTypes { resources, findings }
}

impl<'a> VisibleTypes<'a> {
    /// The types that a file sees: its own and those of modules that it uses.
    pub fn new(file: &'a File, modules: &dyn Modules) -> Self {
        let (mut used, mut missing, mut open) = (Vec::new(), Vec::new(), false);
        for using in &file.script.usings {
            match using.kind {
                UsingKind::Module => match modules.using(&file.path, &using.name) {
                    Some(file) => used.push(file),
                    None => missing.push((using.at, using.name.clone())),
                },
                UsingKind::Assembly => open = true,
                UsingKind::Namespace => open |= !using.name.eq_ignore_ascii_case("System"),
            }
        }
        Self { file, used, open, missing, classes: Mutex::default() }
    }

    /// The class or enumeration of that name that PowerShell finds.
    pub fn find(&self, name: &str) -> Option<(&File, &TypeDefinition)> {
        let files = std::iter::once(self.file).chain(self.used.iter().map(AsRef::as_ref));
        let mut found = files.flat_map(|file| file.script.types.iter().map(move |ty| (file, ty)));
        found.find(|(_, ty)| ty.name.eq_ignore_ascii_case(name))
    }

    /// A class and its base classes, the outermost base first. One that is its own base is listed once.
    fn lineage<'t>(&'t self, file: &'t File, class: &'t TypeDefinition) -> Vec<(&'t File, &'t TypeDefinition)> {
        let mut line = vec![(file, class)];
        while let Some((_, last)) = line.last()
            && let Some(TypeForm::Name(base)) = last.bases.first().map(|base| &base.form)
            && let Some((file, class)) = self.find(base)
            && !class.enumeration
            && !line.iter().any(|(_, known)| std::ptr::eq(*known, class))
        {
            line.push((file, class));
        }
        line.reverse();
        line
    }

    /// The members of a class, those of base classes first. What a class declares again is listed twice.
    pub fn members<'t>(&'t self, file: &'t File, class: &'t TypeDefinition) -> Vec<Inherited<'t>> {
        let lineage = self.lineage(file, class).into_iter();
        lineage
            .flat_map(|(file, class)| class.members.iter().map(move |member| Inherited { file, class, member }))
            .collect()
    }

    /// The properties of instances of a class, each once: where it was first declared, as it was last.
    fn properties<'t>(&'t self, file: &'t File, class: &'t TypeDefinition) -> Vec<Inherited<'t>> {
        let mut found: Vec<Inherited<'_>> = Vec::new();
        let mut index = BTreeMap::new();
        for member in self.members(file, class) {
            if !matches!(member.member.kind, MemberKind::Property(_)) || member.member.is_static {
                continue;
            }
            let at = *index.entry(member.member.name.to_lowercase()).or_insert(found.len());
            match found.get_mut(at) {
                // Twice in one class is an error; the first is as good as the second.
                Some(known) if !std::ptr::eq(known.class, member.class) => *known = member,
                Some(_) => {}
                None => found.push(member),
            }
        }
        found
    }

    fn resource(&self, class: &TypeDefinition) -> Resource {
        let mut properties = self.properties(self.file, class);
        properties.retain(|property| attributes::is(&property.member.attributes, "dscproperty"));
        let properties = properties.into_iter().map(|property| self.property(property, class, &mut Vec::new()));
        Resource {
            name: class.name.clone(),
            class_name: None,
            kind: DefinitionKind::Class,
            version: None,
            file: self.file.path.clone(),
            implementation: self.file.path.clone(),
            place: self.file.text.place(class.at),
            description: attributes::comment_before(self.file, class.at),
            // As many as there are: modules stay for long.
            properties: properties.collect(),
            methods: self.methods(class),
        }
    }

    fn methods(&self, class: &TypeDefinition) -> Methods {
        let members = self.members(self.file, class);
        let has = |name: &str, is_static: bool| {
            members.iter().any(|Inherited { member, .. }| {
                let method = matches!(member.kind, MemberKind::Method(_)) && member.is_static == is_static;
                method && member.name.eq_ignore_ascii_case(name)
            })
        };
        Methods {
            delete: has("Delete", false),
            export: has("Export", true),
            what_if: has("WhatIf", false),
            set_handles_exist: has("SetHandlesExist", false),
        }
    }

    fn property(&self, property: Inherited<'_>, class: &TypeDefinition, within: &mut Vec<String>) -> Property {
        let Inherited { file, class: declaring, member } = property;
        let flag = |name| attributes::flag(&member.attributes, name);
        Property {
            name: member.name.clone(),
            written: member.ty.as_ref().map(|ty| ty.text.clone()),
            ty: member.ty.as_ref().map_or(Type::Object, |ty| self.resolve(&ty.form, within)),
            key: flag("key"),
            mandatory: flag("mandatory"),
            read_only: flag("notconfigurable"),
            rules: attributes::rules(&member.attributes),
            description: attributes::comment_before(file, member.at),
            default: default(member),
            declared_in: (!std::ptr::eq(declaring, class)).then(|| declaring.name.clone()),
            place: file.text.place(member.at),
        }
    }

    /// The type of a property.
    pub fn type_of(&self, member: &Member) -> Type {
        member.ty.as_ref().map_or(Type::Object, |ty| self.resolve(&ty.form, &mut Vec::new()))
    }

    /// The type that stands between brackets.
    pub(crate) fn named(&self, form: &TypeForm) -> Type {
        self.resolve(form, &mut Vec::new())
    }

    /// The type that a name stands for. `within` holds the names of the classes that are being read.
    fn resolve(&self, form: &TypeForm, within: &mut Vec<String>) -> Type {
        match form {
            TypeForm::Array(element, 1) => Type::Array(Box::new(self.resolve(element, within))),
            TypeForm::Array(..) => Type::Other(full_name(form)),
            TypeForm::Generic(name, arguments) => match arguments.as_slice() {
                [element] if is_nullable(name) => Type::Nullable(Box::new(self.resolve(element, within))),
                [element] if is_list(name) => Type::Array(Box::new(self.resolve(element, within))),
                _ => Type::Other(full_name(form)),
            },
            TypeForm::Name(name) => match self.find(name) {
                Some((_, ty)) if ty.enumeration => Type::Enumeration(Arc::new(self.enumeration(ty))),
                Some((file, ty)) => Type::Class(self.class(file, ty, within)),
                None if name.eq_ignore_ascii_case("array") => Type::Array(Box::new(Type::Object)),
                None => known(name).unwrap_or_else(|| Type::Other(full_name(form))),
            },
        }
    }

    /// A class as the type of values. One that is read already is not read again within itself.
    fn class(&self, file: &File, ty: &TypeDefinition, within: &mut Vec<String>) -> Arc<Class> {
        let name = ty.name.to_lowercase();
        let key = (within.len(), name.clone());
        let known = self.classes.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        if let Some(class) = known {
            return class;
        }
        let mut class = Class { name: ty.name.clone(), properties: Vec::new() };
        if within.len() == DEEPEST_CLASS || within.contains(&name) {
            return Arc::new(class);
        }
        within.push(name);
        for property in self.properties(file, ty) {
            class.properties.push(self.property(property, ty, within));
        }
        within.pop();
        let class = Arc::new(class);
        self.classes.lock().unwrap_or_else(PoisonError::into_inner).insert(key, class.clone());
        class
    }
}

/// The text of the default of a property.
fn default(member: &Member) -> Option<String> {
    if let MemberKind::Property(default) = &member.kind { default.clone() } else { None }
}

/// Returns whether a generic type of one argument holds a list of that: an array is converted to it.
fn is_list(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let name = name.strip_suffix("`1").unwrap_or(&name);
    let word = name.strip_prefix("system.collections.generic.").unwrap_or(name);
    let word = word.strip_prefix("system.collections.objectmodel.").unwrap_or(word);
    matches!(word, "list" | "ilist" | "hashset" | "collection" | "icollection" | "ienumerable")
}

fn is_nullable(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let name = name.strip_suffix("`1").unwrap_or(&name);
    matches!(name, "nullable" | "system.nullable")
}

fn known(name: &str) -> Option<Type> {
    names::known(names::full(name).unwrap_or(name))
}

/// The name of a type as .NET writes it, as far as it is known.
fn full_name(form: &TypeForm) -> String {
    match form {
        TypeForm::Name(name) => names::full(name).unwrap_or(name).to_owned(),
        TypeForm::Array(element, rank) => format!("{}[{}]", full_name(element), ",".repeat(rank - 1)),
        TypeForm::Generic(name, arguments) => {
            let plain = name.split('`').next().unwrap_or(name);
            let full = names::full(plain).unwrap_or(plain);
            let list: Vec<_> = arguments.iter().map(full_name).collect();
            format!("{full}`{}[{}]", arguments.len(), list.join(","))
        }
    }
}

impl VisibleTypes<'_> {
    /// An enumeration: a member without a value is one above the member before it.
    pub fn enumeration(&self, ty: &TypeDefinition) -> Enumeration {
        self.enumeration_within(ty, MAX_REFERENCES)
    }

    fn enumeration_within(&self, ty: &TypeDefinition, references: usize) -> Enumeration {
        let mut next = 0_i128;
        let members = ty.members.iter().map(|member| {
            let value = match &member.kind {
                MemberKind::Value(Some(argument)) => {
                    argument.value.as_ref().and_then(|value| self.integer(value, references))
                }
                _ => None,
            };
            let value = value.unwrap_or(next);
            next = value.saturating_add(1);
            (member.name.clone(), value)
        });
        let members = members.collect();
        Enumeration { name: ty.name.clone(), flags: attributes::is(&ty.attributes, "flags"), members }
    }

    /// The integer that a constant says, which may be a name of another enumeration.
    fn integer(&self, value: &Constant, references: usize) -> Option<i128> {
        let Constant::Member(ty, name) = value else { return value.to_integer() };
        let Some((_, ty)) = self.find(ty).filter(|(_, ty)| ty.enumeration) else { return value.to_integer() };
        let members = self.enumeration_within(ty, references.checked_sub(1)?).members;
        members.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    fn missing_modules(&self, findings: &mut Vec<ModuleFinding>) {
        for (at, name) in &self.missing {
            findings.push(self.file.finding(&codes::MODULE, *at, format!("cannot find the module '{name}'")));
        }
    }
}
