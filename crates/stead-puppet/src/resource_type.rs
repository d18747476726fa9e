//! The Puppet type of a resource, as data: the files of a module are written from it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use crate::data_type::{Bounds, DataType, LetterCase, Member, Presence, quoted};
use crate::input::{Dialect, ModuleOptions, ResourceToGenerate};
use crate::members::{MemberNames, rename_members};
use crate::name::{self, AttributeNames};
use crate::ruby::Literal;
use crate::text;
use crate::translate::Translator;

/// The type of one resource.
#[derive(Clone, Debug)]
pub(crate) struct ResourceType<'r> {
    /// Its name in Puppet.
    pub(crate) name: String,
    pub(crate) resource: &'r ResourceToGenerate,
    /// True if the version is part of each request: there is another type for another version.
    pub(crate) pinned: bool,
    pub(crate) digest: String,
    pub(crate) docs: String,
    /// In the order of the file.
    pub(crate) attributes: Vec<Attribute>,
}

/// An attribute of a type.
#[derive(Clone, Debug)]
pub(crate) struct Attribute {
    pub(crate) name: String,
    pub(crate) data_type: DataType,
    pub(crate) desc: String,
    pub(crate) default: Option<Literal>,
    pub(crate) behaviour: Behaviour,
    /// The property that it is to the engine; `None` for what the engine does not see.
    pub(crate) property: Option<String>,
    /// The values for the engine, by those of Puppet.
    pub(crate) values: Vec<(&'static str, Literal)>,
    /// The keys for the engine of objects in it, by those of Puppet.
    pub(crate) keys: BTreeMap<String, String>,
    /// True if the schema says that it is secret, or something in it: Puppet never gets its value.
    pub(crate) secret: bool,
}

/// The behaviour of an attribute in the Resource API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behaviour {
    /// It is compared, and changed when it differs.
    Property,
    /// It identifies the instance.
    Namevar,
    /// It is given, and never read.
    Parameter,
    /// It is read, and never given.
    ReadOnly,
}

impl Behaviour {
    pub(crate) fn symbol(self) -> Option<&'static str> {
        match self {
            Self::Property => None,
            Self::Namevar => Some("namevar"),
            Self::Parameter => Some("parameter"),
            Self::ReadOnly => Some("read_only"),
        }
    }
}

impl Attribute {
    fn new(name: &str, data_type: DataType, desc: &str, behaviour: Behaviour) -> Self {
        Self {
            name: name.to_owned(),
            data_type,
            desc: desc.to_owned(),
            default: None,
            behaviour,
            property: None,
            values: Vec::new(),
            keys: BTreeMap::new(),
            secret: false,
        }
    }
}

impl Attribute {
    /// The property, if the attribute does not have the name that follows from it.
    pub(crate) fn renamed(&self, dialect: Dialect) -> Option<&str> {
        let property = self.property.as_deref()?;
        let is_renamed = self.values.is_empty() && self.name != attribute_name(property, dialect);
        is_renamed.then_some(property)
    }
}

impl<'r> ResourceType<'r> {
    pub(crate) fn new(name: String, resource: &'r ResourceToGenerate, options: &ModuleOptions, pinned: bool) -> Self {
        let described = resource.description.as_deref();
        let described = described.or_else(|| resource.schema.get("description").and_then(Json::as_str));
        let docs = described.map(text::plain).filter(|docs| !docs.is_empty());
        Self {
            name,
            resource,
            pinned,
            digest: stead_core::schema::digest(&resource.schema),
            docs: docs.unwrap_or_else(|| format!("Manages {}.", resource.type_name)),
            attributes: Builder::new(resource, options).attributes(),
        }
    }

    /// The name of the class of its provider, and of the module around that.
    pub(crate) fn class_name(&self) -> String {
        class_name(&self.name)
    }

    /// Types of Puppet, and the attributes that name the instances of them that this type needs.
    pub(crate) fn requires(&self) -> BTreeMap<&'static str, &str> {
        let found = self.attributes.iter().filter_map(|attribute| {
            let property = attribute.property.as_deref()?;
            let is_text = attribute.data_type.alternatives().iter().any(|each| matches!(each, DataType::String(_)));
            let is_given = attribute.behaviour != Behaviour::ReadOnly;
            let of = match property.to_ascii_lowercase().as_str() {
                "group" => "group",
                "owner" | "user" => "user",
                _ => return None,
            };
            (is_text && is_given).then_some((of, attribute.name.as_str()))
        });
        found.collect()
    }
}

/// Returns the class that the Resource API makes of the name of a type.
pub(crate) fn class_name(name: &str) -> String {
    let words = name.split('_').map(|word| {
        let (first, rest) = word.split_at(word.len().min(1));
        first.to_ascii_uppercase() + rest
    });
    words.collect()
}

/// The name that an attribute has if nothing else has it.
fn attribute_name(property: &str, dialect: Dialect) -> String {
    match dialect {
        Dialect::Native => name::identifier(&name::snake(property)),
        Dialect::DscCompatible => format!("dsc_{}", name::lower(property)),
    }
}

struct Builder<'r> {
    resource: &'r ResourceToGenerate,
    options: &'r ModuleOptions,
    /// Sorted, so that names which need a suffix get the same one in whatever order the schema has them.
    properties: BTreeMap<&'r str, &'r Json>,
    required: BTreeSet<&'r str>,
    translator: Translator<'r>,
}

impl<'r> Builder<'r> {
    fn new(resource: &'r ResourceToGenerate, options: &'r ModuleOptions) -> Self {
        let translator = Translator {
            root: &resource.schema,
            case: resource.case,
            timestamps: options.timestamps,
            plain_secrets: options.plain_secrets,
            secrets: &resource.secrets,
            steps: std::cell::Cell::default(),
        };
        let parts = translator.parts(&resource.schema);
        let properties = parts.iter().filter_map(|part| part.get("properties")?.as_object()).flatten();
        // The schema `false` says that the property is not there.
        let properties = properties.filter(|(_, schema)| **schema != Json::Bool(false));
        let properties = properties.map(|(name, schema)| (name.as_str(), schema)).collect();
        let required = parts.iter().filter_map(|part| part.get("required")?.as_array()).flatten();
        let required = required.filter_map(Json::as_str).collect();
        Self { resource, options, properties, required, translator }
    }

    /// `ensure`, what identifies an instance, the other properties by name, and what every type has.
    fn attributes(&self) -> Vec<Attribute> {
        let existence = self.existence();
        let of_every_type = self.of_every_type();
        let own = of_every_type.iter().map(|attribute| attribute.name.as_str());
        let mut names = AttributeNames::of_attributes(own.chain(existence.iter().map(|_| "dsc_ensure")));
        let mut attributes: Vec<_> = existence.iter().map(|existence| self.ensure(existence)).collect();
        attributes.extend(self.namevars(&mut names));
        let mut others = self.others(existence.as_ref(), &mut names);
        if let (Some(existence), Dialect::DscCompatible) = (&existence, self.options.dialect) {
            others.push(dsc_ensure(existence, &self.description(existence.property)));
        }
        others.sort_by(|a, b| a.name.cmp(&b.name));
        attributes.extend(others);
        attributes.extend(of_every_type);
        attributes
    }

    fn namevars(&self, names: &mut AttributeNames) -> Vec<Attribute> {
        let keys: Vec<_> = self.keys().collect();
        let mut namevars = Vec::with_capacity(keys.len() + 1);
        if keys.is_empty() || self.options.dialect == Dialect::DscCompatible {
            namevars.push(title());
        } else if keys == ["name"] {
            // Beside other keys it stays reserved: the Resource API takes an attribute of this name for the title.
            names.release("name");
        }
        namevars.extend(keys.iter().map(|key| self.attribute(key, Some(Behaviour::Namevar), names)));
        namevars
    }

    /// The keys that the schema has.
    fn keys(&self) -> impl Iterator<Item = &'r str> + '_ {
        let keys = self.resource.keys.iter();
        keys.filter_map(|key| self.properties.get_key_value(key.as_str()).map(|(name, _)| *name))
    }

    /// Returns the attributes of the properties that are neither a key nor what `ensure` stands for.
    fn others(&self, existence: Option<&Existence<'_>>, names: &mut AttributeNames) -> Vec<Attribute> {
        let is_ensure = |name: &str| existence.is_some_and(|existence| existence.property == name);
        let others = self.properties.keys().filter(|name| !is_ensure(name) && !self.keys().any(|key| key == **name));
        let is_run_as = |name: &str| name.eq_ignore_ascii_case(RUN_AS);
        let mut attributes: Vec<Attribute> = others.map(|name| self.attribute(name, None, names)).collect();
        // Types of Puppet.Dsc have it, whatever the resource is.
        let lacks_it =
            !self.properties.keys().any(|name| is_run_as(name)) && self.resource.case == LetterCase::Insensitive;
        if lacks_it && self.options.dialect == Dialect::DscCompatible {
            attributes.push(self.run_as());
        }
        attributes
    }

    fn run_as(&self) -> Attribute {
        let name = attribute_name(RUN_AS, self.options.dialect);
        let member = |name: &str, data_type| Member { name: name.to_owned(), data_type, presence: Presence::Required };
        let text = DataType::String(Bounds::NONE);
        let password = self.translator.protected(text.clone());
        let of = DataType::Struct(vec![member("user", text), member("password", password)]).optional();
        let mut attribute = Attribute::new(&name, of, RUN_AS_DESC, Behaviour::Parameter);
        attribute.secret = true;
        attribute
    }

    /// A keyword of the schema of a property, or of the one that it refers to.
    fn keyword(&self, property: &str, keyword: &str) -> Option<&'r Json> {
        let schema = *self.properties.get(property)?;
        schema.get(keyword).or_else(|| self.translator.referred(schema)?.get(keyword))
    }

    /// Returns what Puppet does with a property. Of a secret that is only written the engine knows whether it is the one that was
    /// set last.
    fn behaviour(&self, property: &str, is_secret: bool) -> Behaviour {
        let has = |keyword| self.keyword(property, keyword) == Some(&Json::Bool(true));
        let is_parameter = PARAMETERS_OF_DSC.iter().any(|name| name.eq_ignore_ascii_case(property));
        match () {
            () if has("readOnly") => Behaviour::ReadOnly,
            () if property.eq_ignore_ascii_case(RUN_AS) => Behaviour::Parameter,
            () if is_parameter && self.options.dialect == Dialect::DscCompatible => Behaviour::Parameter,
            () if is_secret && self.resource.case == LetterCase::Insensitive => Behaviour::Property,
            () if has("writeOnly") => Behaviour::Parameter,
            () => Behaviour::Property,
        }
    }

    /// The attribute of a property; without a behaviour that which follows from its schema.
    fn attribute(&self, property: &str, behaviour: Option<Behaviour>, names: &mut AttributeNames) -> Attribute {
        let data_type = self.translator.property(property, self.properties.get(property).unwrap_or(&&Json::Null));
        let secret = data_type.has_sensitive();
        let behaviour = behaviour.unwrap_or_else(|| self.behaviour(property, secret));
        let data_type = self.in_place(data_type, property, behaviour);
        let renamed = match self.options.dialect {
            Dialect::Native => MemberNames::default(),
            Dialect::DscCompatible => MemberNames::of(&data_type),
        };
        let name = names.take(&attribute_name(property, self.options.dialect));
        let desc = self.description(property);
        let mut attribute = Attribute::new(&name, rename_members(data_type, &renamed), &desc, behaviour);
        attribute.property = Some(property.to_owned());
        attribute.keys = renamed.into_keys();
        attribute.secret = secret;
        if let Some(default) = self.keyword(property, "default").filter(|_| !secret) {
            attribute.desc.push_str(&describe_default(default));
        }
        if let Some(property) = attribute.renamed(self.options.dialect) {
            attribute.desc = format!("{} This is the property '{}'.", attribute.desc, text::plain(property));
        }
        attribute
    }

    /// The type of a property as that of an attribute, which may be left out.
    fn in_place(&self, data_type: DataType, property: &str, behaviour: Behaviour) -> DataType {
        let is_required = self.required.contains(property);
        match behaviour {
            Behaviour::Namevar => data_type,
            Behaviour::ReadOnly => data_type.optional(),
            Behaviour::Property | Behaviour::Parameter if is_required => or_sensitive(data_type),
            Behaviour::Property | Behaviour::Parameter => or_sensitive(data_type).optional(),
        }
    }

    fn description(&self, property: &str) -> String {
        let description = self.keyword(property, "description").and_then(Json::as_str).map(text::plain);
        let description = description.filter(|text| !text.is_empty());
        description.unwrap_or_else(|| format!("The property '{}'.", text::plain(property)))
    }

    /// The property that says whether an instance is there, if Puppet's `ensure` can stand for it.
    fn existence(&self) -> Option<Existence<'r>> {
        let standard = self.properties.get_key_value("_exist").map(|(property, _)| Existence {
            property,
            present: Literal::Boolean(true),
            absent: Literal::Boolean(false),
        });
        standard.or_else(|| self.properties.iter().find_map(|(property, schema)| ensure_enum(property, schema)))
    }

    fn ensure(&self, existence: &Existence<'_>) -> Attribute {
        let data_type = DataType::Words(&["present", "absent"]);
        let desc = self.description(existence.property);
        let mut attribute = Attribute::new("ensure", data_type, &desc, Behaviour::Property);
        match self.options.dialect {
            Dialect::Native => attribute.default = Some(Literal::text("present")),
            // `dsc_ensure` says it as well.
            Dialect::DscCompatible => attribute.data_type = attribute.data_type.optional(),
        }
        attribute.property = Some(existence.property.to_owned());
        attribute.values = existence.values("present", "absent");
        attribute
    }

    fn of_every_type(&self) -> [Attribute; 3] {
        let mode = DataType::Words(&["property", "resource"]);
        let mut mode = Attribute::new("validation_mode", mode, VALIDATION_MODE, Behaviour::Parameter);
        mode.default = Some(Literal::text("property"));
        let name = match self.options.dialect {
            Dialect::Native => "stead_timeout",
            Dialect::DscCompatible => "dsc_timeout",
        };
        let seconds = DataType::Integer(Bounds::new(Some(1), None)).optional();
        let timeout = Attribute::new(name, seconds, TIMEOUT, Behaviour::Parameter);
        let mut verify = Attribute::new("stead_verify", DataType::Boolean, VERIFY, Behaviour::Parameter);
        // Each call of a resource of PowerShell counts.
        verify.default = Some(Literal::Boolean(self.resource.case == LetterCase::Sensitive));
        [mode, timeout, verify]
    }
}

/// A value of any kind may be secret to who writes the manifest, and so may any part of it, although the schema does not say so.
fn or_sensitive(data_type: DataType) -> DataType {
    let inner = |data_type: Box<DataType>| Box::new(or_sensitive(*data_type));
    let either = |data_type: DataType| match data_type {
        DataType::Variant(mut types) => {
            types.extend(types.clone().into_iter().map(DataType::sensitive));
            DataType::Variant(types)
        }
        data_type => DataType::Variant(vec![data_type.clone(), data_type.sensitive()]),
    };
    match data_type {
        DataType::Any | DataType::Undef | DataType::Sensitive(_) => data_type,
        _ if data_type.has_sensitive() => data_type,
        DataType::Optional(of) => or_sensitive(*of).optional(),
        DataType::Array(of, bounds) => either(DataType::Array(inner(of), bounds)),
        DataType::Hash(of, bounds) => either(DataType::Hash(inner(of), bounds)),
        DataType::Struct(members) => {
            let member = |member: Member| Member { data_type: or_sensitive(member.data_type), ..member };
            either(DataType::Struct(members.into_iter().map(member).collect()))
        }
        other => either(other),
    }
}

/// The property that names the user as whom a resource is called.
const RUN_AS: &str = "PsDscRunAsCredential";
const RUN_AS_DESC: &str = "The user as whom the resource would be called. stead calls it as the user who runs Puppet, and refuses \
                           resources with this attribute.";

/// The properties that types of Puppet.Dsc have as parameters.
const PARAMETERS_OF_DSC: [&str; 6] = ["Force", "JoinOU", "KeyUsage", "OID", "Purge", "Validate"];

const VALIDATION_MODE: &str = "Whether the properties that differ decide whether the resource is in its desired state, or \
                               its own test alone.";
const TIMEOUT: &str = "Seconds that each request for this resource may take. Default: 300.";
const VERIFY: &str = "Whether the resource is tested again after a change; one that still differs fails.";

fn title() -> Attribute {
    let desc = "The title of the resource; it is not sent to the engine.";
    Attribute::new("name", DataType::String(Bounds::NONE), desc, Behaviour::Namevar)
}

/// The attribute that modules of Puppet.Dsc have for it.
fn dsc_ensure(existence: &Existence<'_>, desc: &str) -> Attribute {
    let values = vec!["Present".to_owned(), "Absent".to_owned()];
    let data_type = DataType::Enum { values, case: LetterCase::Insensitive }.optional();
    let mut attribute = Attribute::new("dsc_ensure", data_type, desc, Behaviour::Property);
    attribute.property = Some(existence.property.to_owned());
    attribute.values = existence.values("Present", "Absent");
    attribute
}

/// The property that says whether an instance is there, and what it says when it is and when it is not.
struct Existence<'r> {
    property: &'r str,
    present: Literal,
    absent: Literal,
}

impl Existence<'_> {
    fn values(&self, present: &'static str, absent: &'static str) -> Vec<(&'static str, Literal)> {
        vec![(present, self.present.clone()), (absent, self.absent.clone())]
    }
}

/// The enum `Ensure` of PowerShell resources, if it has no other values than `Present` and `Absent`.
fn ensure_enum<'r>(property: &'r str, schema: &'r Json) -> Option<Existence<'r>> {
    let values = schema.get("enum").and_then(Json::as_array).filter(|_| property.eq_ignore_ascii_case("ensure"))?;
    let values: Vec<&str> = values.iter().filter(|value| !value.is_null()).map(Json::as_str).collect::<Option<_>>()?;
    let spelled = |word: &str| values.iter().find(|value| value.eq_ignore_ascii_case(word)).copied();
    let (present, absent) = (Literal::text(spelled("present")?), Literal::text(spelled("absent")?));
    let is_binary =
        values.iter().all(|value| ["present", "absent"].iter().any(|word| value.eq_ignore_ascii_case(word)));
    is_binary.then_some(Existence { property, present, absent })
}

/// Describes the value that the engine takes where a property is not given.
fn describe_default(default: &Json) -> String {
    match default {
        Json::Null => String::new(),
        Json::String(text) => format!(" Default: {}.", quoted(&text::plain(text))),
        other => format!(" Default: {}.", text::plain(&other.to_string())),
    }
}
