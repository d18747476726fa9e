//! Rules of other firewalls in the content of a table.

use stead_core::value::{Object, Value};
use stead_host::provider::Lint;

use super::Properties;

/// The first words of lines that other programs read.
const OTHERS: [&str; 10] =
    ["iptables", "ip6tables", "ufw", "firewall-cmd", "-A", "-P", "*filter", "allow", "deny", "COMMIT"];

/// Finds the first line that is one of `iptables`, `ufw` or the like.
pub(super) fn lints(properties: &Object) -> Vec<Lint> {
    let content = properties.get(Properties::CONTENT).and_then(Value::as_str).unwrap_or_default();
    let first = |line: &str| line.split_whitespace().next().is_some_and(|word| OTHERS.contains(&word));
    let found = content.lines().position(first).map(|at| {
        let message = format!("line {} is not in the syntax of nft(8)", at + 1);
        let help = "write chains with rules, such as `chain input { type filter hook input priority 0; tcp dport 22 accept; }`; \
                    `iptables-translate` translates a rule of iptables";
        Lint::new(&[Properties::CONTENT], message, help)
    });
    found.into_iter().collect()
}
