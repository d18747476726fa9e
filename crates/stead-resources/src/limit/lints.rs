//! Groups that are written as in sudoers(5).

use stead_core::value::{Object, Value};
use stead_host::provider::Lint;

use super::Properties;

/// Finds a group behind '%', which limits.conf(5) has for the number of logins alone.
pub(super) fn lints(properties: &Object) -> Vec<Lint> {
    let text = |name: &str| properties.get(name).and_then(Value::as_str);
    let group = text(Properties::DOMAIN).and_then(|domain| domain.strip_prefix('%')).filter(|group| !group.is_empty());
    let is_other = text(Properties::ITEM).is_some_and(|item| !matches!(item, "maxlogins" | "maxsyslogins"));
    let lint = |group: &str| {
        let message = "'%' is for 'maxlogins' alone: for other limits a group has '@' in front";
        Lint::new(&[Properties::DOMAIN], message, format!("write \"@{group}\""))
    };
    group.filter(|_| is_other).map(lint).into_iter().collect()
}
