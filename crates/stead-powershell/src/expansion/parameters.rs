//! The parameters of a composite resource: what an instance states, by type and rules, and the defaults of the others.

use std::collections::BTreeMap;
use std::path::Path;

use stead_core::value::{self, Object};
use stead_powershell_reader::composite;
use stead_powershell_reader::manifest::{Context, Evaluate, ManifestFault, Value, evaluate, same};
use stead_powershell_reader::resource::Resource;
use stead_powershell_reader::script::Function;
use stead_powershell_reader::types::Property;
use stead_powershell_reader::types::Type;

use crate::convert::{self, Json, Purpose, ValueRefusal, Wire};

/// The variables at the start of a configuration.
pub(super) struct Bound<'a> {
    /// The values by name in lower case.
    pub(super) variables: BTreeMap<String, Value>,
    /// The values that the document states for the parameters that are opaque.
    pub(super) opaque: BTreeMap<String, &'a value::Value>,
    properties: &'a [Property],
}

/// Why parameters have no values.
pub(super) enum Unbound {
    /// The document states something else than the resource accepts.
    Stated(Vec<ValueRefusal>),
    /// The composite is at fault, with the place in its text.
    Script(ManifestFault),
}

impl<'a> Bound<'a> {
    /// Binds what is stated to the parameters of a configuration.
    pub(super) fn new(
        resource: &'a Resource,
        configuration: &Function,
        stated: &'a Object,
        folder: &Path,
    ) -> Result<Self, Unbound> {
        let mut bound = Self { variables: BTreeMap::new(), opaque: BTreeMap::new(), properties: &resource.properties };
        bound.stated(stated).map_err(Unbound::Stated)?;
        let entries = bound.properties.iter().filter_map(|property| {
            Some((Value::from(property.name.as_str()), bound.variables.get(&property.name.to_lowercase())?.clone()))
        });
        let given = Value::Table(entries.collect());
        bound.variables.insert("psboundparameters".to_owned(), given);
        let folder = folder.to_string_lossy();
        for (property, parameter) in bound.properties.iter().zip(&configuration.parameters) {
            if !bound.variables.contains_key(&property.name.to_lowercase()) {
                let default = bound.default(property, parameter.default.as_deref(), &folder);
                let fault = |message| Unbound::Script(ManifestFault { offset: parameter.at, message });
                bound.variables.insert(property.name.to_lowercase(), default.map_err(fault)?);
            }
        }
        Ok(bound)
    }

    fn stated(&mut self, stated: &'a Object) -> Result<(), Vec<ValueRefusal>> {
        let declared = |name: &str| self.properties.iter().find(|property| same(&property.name, name));
        let is_secret = |name: &str, value: &value::Value| value.has_sealed() && declared(name).is_some();
        let secrets: Vec<_> = stated.iter().filter(|(name, value)| is_secret(name, value)).collect();
        let is_plain = |property: &&Property| !secrets.iter().any(|(name, _)| same(name, &property.name));
        let plain: Vec<Property> = self.properties.iter().filter(is_plain).cloned().collect();
        let others = stated.iter().filter(|(name, value)| !is_secret(name, value));
        let others: Vec<_> = others.map(|(name, value)| (name.clone(), Json::from(value))).collect();
        let wires = convert::properties(&plain, &others, Purpose::Instance)?;
        for (name, wire) in &wires {
            let Some(property) = self.properties.iter().find(|property| property.name == *name) else { continue };
            let given = stated.iter().find(|(stated, _)| same(stated, name));
            if let (None, Some((_, given))) = (self.bind(property, plain_value(&property.ty, wire)), given) {
                self.opaque.insert(name.to_lowercase(), given);
            }
        }
        for (name, value) in secrets {
            if let Some(property) = self.properties.iter().find(|property| same(&property.name, name)) {
                self.bind(property, None);
                self.opaque.insert(name.to_lowercase(), value);
            }
        }
        Ok(())
    }

    /// Gives a parameter a value; one that is opaque without one, `None` then.
    fn bind(&mut self, property: &Property, value: Option<Value>) -> Option<()> {
        let is_known = value.is_some();
        let is_true = matches!(property.ty, Type::Credential | Type::SecureString | Type::DateTime | Type::Guid);
        let value = value.unwrap_or_else(|| Value::Opaque { name: property.name.clone(), is_true });
        self.variables.insert(property.name.to_lowercase(), value);
        is_known.then_some(())
    }

    fn default(&self, property: &Property, text: Option<&str>, folder: &str) -> Evaluate<Value> {
        let Some(text) = text else { return coerce(&property.ty, Value::Null) };
        let wrong = |why: String| format!("the default of '${}' is not evaluated: {why}", property.name);
        let parsed = composite::expression(text);
        let parsed = parsed.map_err(|fault| wrong(fault.message))?;
        let context = Context { folder, environment: &|_| None, variables: Some(&self.variables) };
        let value = evaluate(&parsed, &context).and_then(|value| coerce(&property.ty, value));
        value.map_err(wrong)
    }

    /// A value that is assigned to a variable: by the type of the parameter, if it is one.
    pub(super) fn assigned(&self, name: &str, value: Value) -> Evaluate<Value> {
        match self.properties.iter().find(|property| same(&property.name, name)) {
            Some(property) if !property.rules.is_empty() => {
                Err(format!("'${name}' is a parameter with rules, which an assignment would have to keep"))
            }
            Some(property) => coerce(&property.ty, value),
            None => Ok(value),
        }
    }
}

/// A stated value as scripts see it; `None` for one that can only be passed on.
fn plain_value(ty: &Type, wire: &Wire) -> Option<Value> {
    Some(match (ty, wire) {
        (Type::Nullable(_) | Type::Array(_) | Type::Object | Type::Hashtable, Wire::Null) => Value::Null,
        (Type::Nullable(inner), wire) => plain_value(inner, wire)?,
        (Type::String, Wire::String(text)) => Value::Text(text.clone()),
        (Type::Boolean | Type::Switch, Wire::Bool(truth)) => Value::Boolean(*truth),
        (Type::Integer { bits, signed }, Wire::Integer(text)) => {
            Value::Integer { value: text.parse().ok()?, bits: *bits, signed: *signed }
        }
        (Type::Double, Wire::Double(text)) => Value::Double(text.parse().ok()?),
        (Type::Array(item), Wire::Array(items)) => {
            Value::List(items.iter().map(|each| plain_value(item, each)).collect::<Option<_>>()?)
        }
        (Type::Object | Type::Hashtable, wire) => untyped(wire)?,
        _ => return None,
    })
}

fn untyped(wire: &Wire) -> Option<Value> {
    Some(match wire {
        Wire::Null => Value::Null,
        Wire::Bool(truth) => Value::Boolean(*truth),
        Wire::String(text) => Value::Text(text.clone()),
        Wire::Integer(text) => {
            let value: i128 = text.parse().ok()?;
            let bits = if i32::try_from(value).is_ok() { 32 } else { 64 };
            Value::Integer { value: i64::try_from(value).ok()?.into(), bits, signed: true }
        }
        Wire::Double(text) => Value::Double(text.parse().ok()?),
        Wire::Array(items) => Value::List(items.iter().map(untyped).collect::<Option<_>>()?),
        Wire::Hashtable(members) => {
            let member = |(name, value): &(String, Wire)| Some((Value::from(name.as_str()), untyped(value)?));
            Value::Table(members.iter().map(member).collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

/// A value that the script gives to a typed variable, as PowerShell converts it where that is plain; null is what the type
/// makes of it.
fn coerce(ty: &Type, value: Value) -> Evaluate<Value> {
    Ok(match (ty, value) {
        (Type::Object, value)
        | (Type::Boolean | Type::Switch, value @ Value::Boolean(_))
        | (Type::Double, value @ Value::Double(_))
        | (Type::Hashtable, value @ Value::Table(_)) => value,
        (Type::Nullable(inner), value) if value != Value::Null => coerce(inner, value)?,
        (Type::String, Value::Null) => Value::from(""),
        (Type::String, value @ (Value::Boolean(_) | Value::Integer { .. } | Value::Text(_))) => {
            Value::Text(value.to_text())
        }
        (Type::Boolean | Type::Switch, Value::Null) => Value::Boolean(false),
        (Type::Integer { bits, signed }, Value::Null) => Value::Integer { value: 0, bits: *bits, signed: *signed },
        (Type::Integer { bits, signed }, Value::Integer { value, .. }) if fits(value, *bits, *signed) => {
            Value::Integer { value, bits: *bits, signed: *signed }
        }
        (Type::Double, Value::Null) => Value::Double(0.0),
        (Type::Array(item), value @ (Value::Text(_) | Value::Boolean(_) | Value::Integer { .. } | Value::List(_))) => {
            let items = value.elements().into_iter().map(|each| coerce(item, each));
            Value::List(items.collect::<Evaluate<_>>()?)
        }
        (
            Type::Guid | Type::DateTime | Type::TimeSpan | Type::Enumeration(_) | Type::Char | Type::Decimal,
            Value::Null,
        ) => {
            return Err("cannot assign $null to a variable of this type".to_owned());
        }
        (_, Value::Null) => Value::Null,
        _ => return Err("PowerShell would convert the value, which is not evaluated".to_owned()),
    })
}

fn fits(value: i128, bits: u8, signed: bool) -> bool {
    let half = 1_i128 << (bits - u8::from(signed)).min(64);
    (if signed { -half } else { 0 }..half).contains(&value)
}
