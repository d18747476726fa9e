//! Rules of a firewall that other tools have as data, in the syntax of nft(8).

use std::collections::BTreeMap;

use stead_core::expr::Template;
use stead_core::text::Kind;

use super::plain;

/// The names of properties with ports, in small letters without '_' and '-'.
const PORTS: [&str; 8] =
    ["port", "ports", "dport", "dports", "destinationport", "destinationports", "toport", "localport"];
const PROTOCOLS: [&str; 4] = ["proto", "protocol", "protocols", "ipprotocol"];
const VERDICTS: [&str; 5] = ["action", "jump", "verdict", "target", "rule"];
/// Verdicts by the names that other tools have for them, and that nft has.
const WORDS: [(&str, &str); 8] = [
    ("allow", "accept"),
    ("accept", "accept"),
    ("pass", "accept"),
    ("permit", "accept"),
    ("drop", "drop"),
    ("block", "drop"),
    ("deny", "drop"),
    ("reject", "reject"),
];
/// Properties that have rules.
const RULES: [&str; 6] = ["rules", "rule", "chains", "input", "service", "services"];
/// Properties that say nothing about packets.
const REMARKS: &str = "name comment description policy table tablename family boot state ensure enabled permanent immediate save persist \
    persistent position priority order hook type id content flush insert";
/// Properties for the direction of packets, and the values for those that come in.
const DIRECTIONS: [&str; 2] = ["chain", "direction"];
const INCOMING: [&str; 5] = ["in", "input", "ingress", "incoming", "inbound"];
/// Words of a rule in a line of another program that is about all packets that come in to a port.
const LINE: &str = "tcp udp -a -i input in -p --protocol -m multiport --dport --dports -j --jump to any port proto dport rule add inet filter";
/// A rule with a condition. It stands for rules that have one: a port that is open to some is not suggested as open to all.
const EXAMPLE: &str = "ip saddr 192.0.2.0/24 tcp dport 22 accept;";
const SERVICES: [(&str, &str); 4] = [("ssh", "22"), ("http", "80"), ("https", "443"), ("dns", "53")];
/// Of so many ports the chain is written out.
const MOST: usize = 12;

/// Returns a chain with the ports that the properties of a table state in the way of other tools, or else with that of SSH; where rules are
/// not about all packets to a port, with an example of such a rule.
pub(super) fn chain(properties: &Template) -> String {
    let mut rules = Rules::default();
    rules.collect(properties, &Rule { protocol: "tcp", verdict: "accept" });
    if rules.ports.is_empty() {
        rules.add("22", &Rule { protocol: "tcp", verdict: "accept" });
    }
    let each = rules.ports.iter().map(|(rule, ports)| rule.with(ports)).collect::<Vec<_>>().join(" ");
    let written = if rules.have_conditions { EXAMPLE.to_owned() } else { each };
    let entries = properties.entries().unwrap_or_default();
    let policy = entries.iter().find(|entry| plain(&entry.key) == "policy").and_then(|entry| entry.value.as_str());
    if policy.is_some_and(|policy| WORDS.iter().any(|(word, verdict)| *word == policy && *verdict != "accept")) {
        // Without what belongs to connections of its own, a machine hears no answers.
        let known = "policy drop; ct state established,related accept; iif lo accept;";
        return in_chain(format!("{known} {written}").trim_end_matches(';'));
    }
    in_chain(written.trim_end_matches(';'))
}

/// A chain for incoming packets with these rules.
pub(super) fn in_chain(rules: &str) -> String {
    format!("chain input {{ type filter hook input priority 0; {rules}; }}")
}

/// A verdict on packets to some ports.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Rule {
    protocol: &'static str,
    verdict: &'static str,
}

impl Rule {
    fn with(&self, ports: &[String]) -> String {
        let ports = match ports {
            [one] => one.clone(),
            several => format!("{{ {} }}", several.join(", ")),
        };
        format!("{} dport {ports} {};", self.protocol, self.verdict)
    }

    /// The rule with what an object says of it.
    fn of(&self, value: &Template) -> Self {
        let mut rule = self.clone();
        for entry in value.entries().unwrap_or_default() {
            let key = plain(&entry.key);
            let word = entry.value.as_str().unwrap_or_default().to_lowercase();
            if PROTOCOLS.contains(&&*key) {
                rule.protocol = if word == "udp" { "udp" } else { "tcp" };
            }
            if VERDICTS.contains(&&*key) {
                let known = WORDS.iter().find(|(name, _)| *name == word);
                rule.verdict = known.map_or(rule.verdict, |(_, verdict)| verdict);
            }
        }
        rule
    }
}

#[derive(Default)]
struct Rules {
    ports: BTreeMap<Rule, Vec<String>>,
    /// True if one of them is not about all packets that come in to a port.
    have_conditions: bool,
}

impl Rules {
    fn add(&mut self, port: &str, rule: &Rule) {
        let ports = self.ports.entry(rule.clone()).or_default();
        if ports.len() < MOST && !ports.iter().any(|known| known == port) {
            ports.push(port.to_owned());
        }
    }

    fn collect(&mut self, value: &Template, outer: &Rule) {
        match &value.kind {
            Kind::Object(entries) => {
                let rule = outer.of(value);
                entries.iter().for_each(|entry| self.of_property(&plain(&entry.key), &entry.value, &rule));
            }
            Kind::Array(items) => items.iter().for_each(|item| match item.as_str() {
                Some(text) => self.of_text(text, outer),
                None => self.collect(item, outer),
            }),
            _ => {}
        }
    }

    fn of_property(&mut self, key: &str, value: &Template, rule: &Rule) {
        let is_nested = matches!(value.kind, Kind::Array(_) | Kind::Object(_));
        match () {
            () if PORTS.contains(&key) => self.of_ports(value, rule),
            () if REMARKS.split(' ').any(|remark| remark == key) => {}
            () if DIRECTIONS.contains(&key) && !is_nested => {
                let direction = value.as_str().unwrap_or_default().to_lowercase();
                self.have_conditions |= !INCOMING.contains(&&*direction);
            }
            () => {
                let is_known = [&RULES[..], &DIRECTIONS, &PROTOCOLS, &VERDICTS].iter().any(|keys| keys.contains(&key));
                self.have_conditions |= !is_known;
                match value.as_str() {
                    Some(text) => self.of_text(text, rule),
                    None => self.collect(value, rule),
                }
            }
        }
    }

    fn of_ports(&mut self, value: &Template, rule: &Rule) {
        match &value.kind {
            Kind::Array(items) => items.iter().for_each(|item| self.of_ports(item, rule)),
            Kind::Number(number) => {
                if let Some(port) = number.as_u64().and_then(|port| u16::try_from(port).ok()) {
                    self.add(&port.to_string(), rule);
                }
            }
            _ => value.as_str().unwrap_or_default().split([',', ' ']).for_each(|text| self.of_word(text, rule)),
        }
    }

    fn of_word(&mut self, text: &str, rule: &Rule) {
        if let Some((port, protocol)) = port_and_protocol(text, rule.protocol) {
            self.add(&port, &Rule { protocol, ..rule.clone() });
        }
    }

    /// A rule as a line of another program, such as `allow tcp 22` or `-p udp --dport 53 -j ACCEPT`.
    fn of_text(&mut self, text: &str, rule: &Rule) {
        let lower = text.to_lowercase();
        let words = || lower.split([' ', ',', ';', '{', '}']).filter(|word| !word.is_empty());
        let is_known = |word: &str| {
            let is_verdict = WORDS.iter().any(|(name, _)| *name == word);
            is_verdict || port_and_protocol(word, "tcp").is_some() || LINE.split(' ').any(|known| known == word)
        };
        self.have_conditions |= !words().all(is_known);
        let verdict = words().find_map(|word| WORDS.iter().find(|(name, _)| *name == word));
        let rule = Rule {
            protocol: if words().any(|word| word == "udp") { "udp" } else { rule.protocol },
            verdict: verdict.map_or(rule.verdict, |(_, verdict)| verdict),
        };
        words().for_each(|word| self.of_word(word, &rule));
    }
}

/// A port in words, such as `22`, `8000:8010`, `53/udp` or `ssh`, and its protocol.
fn port_and_protocol(text: &str, protocol: &'static str) -> Option<(String, &'static str)> {
    let (port, stated) = text.split_once('/').unwrap_or((text, protocol));
    let protocol = if stated == "udp" { "udp" } else { "tcp" };
    if let Some((_, number)) = SERVICES.iter().find(|(name, _)| *name == port) {
        return Some(((*number).to_owned(), protocol));
    }
    let range = port.replace(':', "-");
    let is_range = range.split('-').count() <= 2 && range.split('-').all(|part| part.parse::<u16>().is_ok());
    is_range.then_some((range, protocol))
}
