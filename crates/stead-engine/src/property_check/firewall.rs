//! Rules of a firewall that other tools have as data, in the syntax of nft(8).

use std::collections::BTreeMap;

use stead_core::expr::Template;
use stead_core::text::Kind;

/// The names of properties with ports, in small letters without '_' and '-'.
const PORTS: [&str; 8] =
    ["port", "ports", "dport", "dports", "destinationport", "destinationports", "toport", "localport"];
const PROTOCOLS: [&str; 4] = ["proto", "protocol", "protocols", "ipprotocol"];
const VERDICTS: [&str; 5] = ["action", "jump", "verdict", "target", "rule"];
/// What other tools call a verdict, and nft.
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
const SERVICES: [(&str, &str); 4] = [("ssh", "22"), ("http", "80"), ("https", "443"), ("dns", "53")];
/// Of so many ports the chain is written out.
const MOST: usize = 12;

/// Returns a chain with the ports that the properties of a table state in the way of other tools, or else with that of SSH.
pub(super) fn chain(properties: &Template) -> String {
    let mut rules = Rules::default();
    rules.collect(properties, &Rule { protocol: "tcp", verdict: "accept" });
    if rules.ports.is_empty() {
        rules.add("22", &Rule { protocol: "tcp", verdict: "accept" });
    }
    let written: Vec<String> = rules.ports.iter().map(|(rule, ports)| rule.with(ports)).collect();
    let entries = properties.entries().unwrap_or_default();
    let policy = entries.iter().find(|entry| plain(&entry.key) == "policy").and_then(|entry| entry.value.as_str());
    if policy.is_some_and(|policy| WORDS.iter().any(|(word, verdict)| *word == policy && *verdict != "accept")) {
        // Without what belongs to connections of its own, a machine hears no answers.
        let known = "policy drop; ct state established,related accept; iif lo accept;";
        return in_chain(format!("{known} {}", written.join(" ")).trim_end_matches(';'));
    }
    in_chain(written.join(" ").trim_end_matches(';'))
}

/// A chain for incoming packets with these rules.
pub(super) fn in_chain(rules: &str) -> String {
    format!("chain input {{ type filter hook input priority 0; {rules}; }}")
}

/// What is done with packets to some ports.
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
                for entry in entries {
                    if PORTS.contains(&&*plain(&entry.key)) {
                        self.of_ports(&entry.value, &rule);
                    } else if matches!(entry.value.kind, Kind::Array(_) | Kind::Object(_)) {
                        self.collect(&entry.value, &rule);
                    } else if let Some(text) = entry.value.as_str().filter(|_| plain(&entry.key) != "name") {
                        self.of_text(text, &rule);
                    }
                }
            }
            Kind::Array(items) => items.iter().for_each(|item| match item.as_str() {
                Some(text) => self.of_text(text, outer),
                None => self.collect(item, outer),
            }),
            _ => {}
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

    /// A port in words, such as `22`, `8000:8010`, `53/udp` or `ssh`.
    fn of_word(&mut self, text: &str, rule: &Rule) {
        let (port, protocol) = text.split_once('/').unwrap_or((text, rule.protocol));
        let rule = Rule { protocol: if protocol == "udp" { "udp" } else { "tcp" }, ..rule.clone() };
        let range = port.replace(':', "-");
        let is_port = |part: &str| part.parse::<u16>().is_ok();
        let named = SERVICES.iter().find(|(name, _)| *name == port);
        match named {
            Some((_, number)) => self.add(number, &rule),
            None if range.split('-').count() <= 2 && range.split('-').all(is_port) => self.add(&range, &rule),
            None => {}
        }
    }

    /// A rule as a line of another program, such as `allow tcp 22` or `-p udp --dport 53 -j ACCEPT`.
    fn of_text(&mut self, text: &str, rule: &Rule) {
        let lower = text.to_lowercase();
        let words = || lower.split([' ', ',', ';', '{', '}']).filter(|word| !word.is_empty());
        let verdict = words().find_map(|word| WORDS.iter().find(|(name, _)| *name == word));
        let rule = Rule {
            protocol: if words().any(|word| word == "udp") { "udp" } else { rule.protocol },
            verdict: verdict.map_or(rule.verdict, |(_, verdict)| verdict),
        };
        words().for_each(|word| self.of_word(word, &rule));
    }
}

fn plain(word: &str) -> String {
    word.chars().filter(|each| !"_-".contains(*each)).flat_map(char::to_lowercase).collect()
}
