//! Members of objects under the names that modules of Puppet.Dsc have for them.

use std::collections::{BTreeMap, BTreeSet};

use crate::data_type::{DataType, Member};

/// New names of members, by the names in the schema.
#[derive(Debug, Default)]
pub(crate) struct MemberNames(BTreeMap<String, String>);

impl MemberNames {
    /// In lower case; and the name of the user of a credential is `user`.
    ///
    /// Guarantees: a new name stands for one member only. Members that differ in the case of letters keep their names.
    pub(crate) fn of(data_type: &DataType) -> Self {
        let mut wanted = BTreeMap::new();
        collect(data_type, &mut wanted);
        let mut wanting: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (member, name) in &wanted {
            wanting.entry(name).or_default().insert(member);
        }
        let contested: BTreeSet<String> =
            wanting.iter().filter(|(_, members)| members.len() > 1).map(|(name, _)| (*name).to_owned()).collect();
        wanted.retain(|member, name| member != name && !contested.contains(name));
        Self(wanted)
    }

    /// Returns the key in the schema for each new name.
    pub(crate) fn into_keys(self) -> BTreeMap<String, String> {
        self.0.into_iter().map(|(member, name)| (name, member)).collect()
    }
}

fn collect(data_type: &DataType, wanted: &mut BTreeMap<String, String>) {
    match data_type {
        DataType::Struct(members) => {
            let is_credential = is_credential(members);
            for member in members {
                let lower = member.name.to_lowercase();
                let name = if is_credential && lower == "username" { "user".to_owned() } else { lower };
                wanted.insert(member.name.clone(), name);
                collect(&member.data_type, wanted);
            }
        }
        DataType::Optional(of) | DataType::Array(of, _) | DataType::Hash(of, _) | DataType::Sensitive(of) => {
            collect(of, wanted);
        }
        DataType::Variant(of) => of.iter().for_each(|each| collect(each, wanted)),
        _ => {}
    }
}

fn is_credential(members: &[Member]) -> bool {
    let names: BTreeSet<_> = members.iter().map(|member| member.name.to_lowercase()).collect();
    names.iter().map(String::as_str).eq(["password", "username"])
}

/// The type with its members renamed.
pub(crate) fn rename_members(data_type: DataType, names: &MemberNames) -> DataType {
    let rename = |of: Box<DataType>| Box::new(rename_members(*of, names));
    match data_type {
        DataType::Struct(members) => {
            let members = members.into_iter().map(|member| Member {
                name: names.0.get(&member.name).cloned().unwrap_or(member.name),
                data_type: rename_members(member.data_type, names),
                presence: member.presence,
            });
            DataType::Struct(members.collect())
        }
        DataType::Optional(of) => DataType::Optional(rename(of)),
        DataType::Array(of, bounds) => DataType::Array(rename(of), bounds),
        DataType::Hash(of, bounds) => DataType::Hash(rename(of), bounds),
        DataType::Sensitive(of) => DataType::Sensitive(rename(of)),
        DataType::Variant(of) => DataType::Variant(of.into_iter().map(|each| rename_members(each, names)).collect()),
        other => other,
    }
}
