//! Inventories as they are written.

use std::collections::{BTreeMap, BTreeSet};

use stead_core::diag::{Diagnostic, any_error, nearest};
use stead_core::text::{self, Entry, Kind, Limits, Node, SourceId, Sources, Span, is_of_ansible_vault, locate};
use stead_core::value::Object;

use crate::ansible;
use crate::codes;
use crate::filter::{Filter, is_label};
use crate::finding::{Findings, stated};
use crate::inventory::{Destination, Inventory, MOST_MACHINES, Machine, NAME, port_of};
use crate::name::{Address, BadName, MachineName, UserName};
use crate::suspicious::UNKNOWN_LABEL;
use crate::words;

/// Reads an inventory of stead or of Ansible, whichever the text is. `None` where there is an error among the findings.
pub fn read(source: SourceId, sources: &Sources) -> (Option<Inventory>, Vec<Diagnostic>) {
    let Some(found) = sources.get(source) else { return (None, Vec::new()) };
    let mut findings = Findings::default();
    let is_ini = !is_of_ansible_vault(&found.text) && ansible::is_ini(&found.name, &found.text);
    let inventory = if is_ini {
        ansible::of_ini(source, &found.text, &mut findings)
    } else {
        let (root, faults) = text::read(source, &found.text, &Limits::default());
        findings.form.findings = faults;
        root.filter(|_| !any_error(&findings.form.findings))
            .map(|root| of_tree(&root, sources, &mut findings))
            .unwrap_or_default()
    };
    if inventory.machines.len() > MOST_MACHINES {
        findings.wrong(
            Span::new(source, 0, 0),
            "the inventory has more than 20000 machines",
            "use several inventories",
        );
    }
    (Some(inventory).filter(|_| !any_error(&findings.form.findings)), findings.form.findings)
}

fn of_tree(root: &Node, sources: &Sources, findings: &mut Findings) -> Inventory {
    let is_ours = root.entries().is_some_and(|entries| entries.iter().any(|entry| &*entry.key == MACHINES));
    if is_ours {
        return Reader { sources, findings, layers: Vec::new() }.inventory(root);
    }
    if let Some(groups) = root.entries().filter(|groups| ansible::is_tree(groups)) {
        return ansible::of_tree(groups, findings);
    }
    let has = |key: &str| root.get(key).is_some();
    let (message, help) = match () {
        () if has("resources") => (
            "this is a document, and not an inventory",
            "'--hosts' names the inventory, with 'machines'; the document stands for itself",
        ),
        () if has("hosts") => ("an inventory must have 'machines'", "write 'machines' in place of 'hosts'"),
        () if root.items().is_some() => (
            "an inventory must be an object, found a list",
            "write `machines:`, and below it each machine as its name with a colon, as in `web1: {address: 192.0.2.11}`",
        ),
        () if root.entries().is_some() => (
            "an inventory must have 'machines'",
            "write `machines:` above the machines, and indent them: `machines: {web1: {address: 192.0.2.11}}`",
        ),
        () if root.as_str().is_some_and(is_of_ansible_vault) => (
            "this inventory is encrypted by ansible-vault",
            "it is not decrypted here: `ansible-vault view FILE | stead hosts -` reads what is in it",
        ),
        () => ("an inventory must have 'machines'", "write machines as 'machines: {NAME: {labels: {}}}'"),
    };
    findings.wrong(root.span, message, help);
    Inventory::default()
}

const MACHINES: &str = "machines";
const OF_INVENTORY: &[&str] = &[MACHINES, "layers", "parameters", "port", "user"];
const OF_LAYER: &[&str] = &["where", "parameters"];
const OF_MACHINE: &[&str] = &["address", "labels", "parameters", "port", "user"];

/// Reads an inventory of stead.
struct Reader<'a> {
    sources: &'a Sources,
    findings: &'a mut Findings,
    layers: Vec<Layer>,
}

/// Parameters of the machines that match a filter.
struct Layer {
    filter: Filter,
    /// Where the filter is.
    span: Span,
    parameters: Object,
}

impl Reader<'_> {
    fn inventory(mut self, root: &Node) -> Inventory {
        self.findings.form.check_members(root, OF_INVENTORY, "an inventory");
        for entry in root.entries().unwrap_or_default().iter().filter(|entry| !OF_INVENTORY.contains(&&*entry.key)) {
            if let Some(help) = words::at_inventory(&entry.key) {
                self.findings.advise(entry.key_span, help);
            }
        }
        let usual = (self.user(root), self.port(root));
        let shared = self.parameters(root);
        self.read_layers(root);
        let stated = stated(root.get(MACHINES));
        let entries = self.findings.form.members(stated, "'machines'");
        if let Some((node, help)) = stated.and_then(|node| Some((node, words::as_machines(node)?))) {
            self.findings.advise(node.span, &help);
        }
        let machines = entries.iter().filter_map(|entry| self.machine(entry, &usual, &shared)).collect();
        let inventory = Inventory { machines };
        self.check_labels(&inventory);
        inventory
    }

    /// Warns of labels in the filters of layers that no machine has.
    fn check_labels(&mut self, inventory: &Inventory) {
        let machines = &inventory.machines;
        let known: BTreeSet<&str> = machines.iter().flat_map(|each| each.labels.keys().map(String::as_str)).collect();
        for layer in &self.layers {
            let mut named = BTreeSet::new();
            layer.filter.labels(&mut |label| named.extend([label]));
            for label in named.into_iter().filter(|label| *label != NAME && !known.contains(label)) {
                let message = format!("no machine has the label '{label}'");
                let help = inventory.advice_about_label(label);
                let help = help.unwrap_or_else(|| "give it to machines: `labels: {NAME: VALUE}`".to_owned());
                let finding = Diagnostic::warning(&UNKNOWN_LABEL, layer.span, message).with_help(help);
                self.findings.form.findings.push(finding);
            }
        }
    }

    fn read_layers(&mut self, root: &Node) {
        let Some(node) = root.get("layers") else { return };
        let Some(items) = node.items() else {
            return self.findings.wrong(node.span, "'layers' must be a list", "write each layer behind a '-'");
        };
        for item in items {
            self.findings.form.check_members(item, OF_LAYER, "a layer");
            let parameters = self.parameters(item);
            let filter = item.get("where").and_then(|node| Some((self.filter(node)?, node.span)));
            if let Some((filter, span)) = filter {
                self.layers.push(Layer { filter, span, parameters });
            } else if item.get("where").is_none() {
                self.findings.wrong(item.span, "'where' is missing in a layer", "state which machines it is for");
            }
        }
    }

    fn filter(&mut self, node: &Node) -> Option<Filter> {
        let Some(text) = node.as_str() else {
            self.findings.wrong(node.span, "'where' must be a string", FILTER);
            return None;
        };
        let parsed = Filter::parse(text).map_err(|error| {
            let span = locate(self.sources, node.span, error.range);
            self.findings
                .form
                .findings
                .push(Diagnostic::error(&codes::FILTER, span, error.message).with_help(error.help));
        });
        parsed.ok()
    }

    fn machine(&mut self, entry: &Entry, usual: &(Option<UserName>, Option<u16>), shared: &Object) -> Option<Machine> {
        let (node, span) = (&entry.value, entry.key_span);
        let name = self.findings.named(span, ("the name of a machine", &entry.key), MachineName::parse(&entry.key));
        if entry.key.contains('[') && entry.key.ends_with(']') {
            self.findings.advise(span, "name each machine: ranges such as [1:3] belong to inventories of Ansible");
        }
        if !matches!(node.kind, Kind::Null) {
            self.findings.form.check_members(node, OF_MACHINE, "a machine");
            if let Some(help) = words::as_machine(&entry.key, node) {
                self.findings.advise(node.span, &help);
            }
            let unknown = |member: &&Entry| !OF_MACHINE.contains(&&*member.key);
            for member in node.entries().unwrap_or_default().iter().filter(unknown) {
                if nearest(&member.key, OF_MACHINE.iter().copied()).is_none() {
                    self.findings.advise(member.key_span, &words::at_machine(&member.key, &member.value));
                }
            }
        }
        let stated = node.get("address").and_then(|node| self.text(node, "address"));
        let stated = stated.map(|(text, span)| {
            let parsed = Address::parse(&text);
            let parsed = if words::has_port(&text) { Err(BadName::Character(':')) } else { parsed };
            let address = self.findings.named(span, ("an address", &words::shown(&text)), parsed);
            if let Some(help) = words::apart(&text).filter(|_| address.is_none()) {
                self.findings.advise(span, &help);
            }
            address
        });
        let address = stated.unwrap_or_else(|| Address::parse(&entry.key).ok());
        let (user, port) = (self.user(node), self.port(node));
        let labels = self.labels(node);
        let own = self.parameters(node);
        let destination = Destination { address: address?, user: user.or(usual.0.clone()), port: port.or(usual.1) };
        let mut machine = Machine { labels, parameters: shared.clone(), ..Machine::at(name?, destination) };
        let layers = self.layers.iter().filter(|layer| machine.matches(&layer.filter));
        let layered: Vec<&Object> = layers.map(|layer| &layer.parameters).chain([&own]).collect();
        let merged =
            layered.into_iter().flat_map(|layer| layer.iter().map(|(name, value)| (name.clone(), value.clone())));
        machine.parameters.extend(merged.collect::<Vec<_>>());
        Some(machine)
    }

    fn user(&mut self, node: &Node) -> Option<UserName> {
        let (text, span) = node.get("user").and_then(|node| self.text(node, "user"))?;
        self.findings.named(span, ("the name of a user", &text), UserName::parse(&text))
    }

    fn port(&mut self, node: &Node) -> Option<u16> {
        let node = node.get("port")?;
        let port = node.literal().as_i64().and_then(port_of);
        if port.is_none() {
            let number = node.as_str().filter(|text| text.parse::<u16>().is_ok());
            let help = number.map(|number| format!("write it without quotes: `port: {number}`"));
            let help = help.as_deref().unwrap_or("the usual port of SSH is 22");
            self.findings.wrong(node.span, "'port' must be a number from 1 to 65535", help);
        }
        port
    }

    fn labels(&mut self, node: &Node) -> BTreeMap<String, String> {
        let Some(labels) = node.get("labels") else { return BTreeMap::new() };
        let entries = self.findings.form.members(stated(Some(labels)), "'labels'");
        if let Some(help) = words::as_labels(labels) {
            self.findings.advise(labels.span, &help);
        }
        entries.iter().filter_map(|entry| self.label(entry)).collect()
    }

    fn label(&mut self, entry: &Entry) -> Option<(String, String)> {
        let Entry { key, key_span, value } = entry;
        if &**key == NAME || !is_label(key) {
            let help = "labels begin with a letter, and have letters, digits, '_', '-', '.' and '/'";
            let help = if &**key == NAME { "'name' stands for the name of the machine" } else { help };
            self.findings.wrong(*key_span, format!("'{}' cannot be a label", key.escape_debug()), help);
            return None;
        }
        let (text, span) = self.text(value, key)?;
        if text.chars().any(char::is_control) || text.contains('"') && text.contains('\'') {
            self.findings.wrong(
                span,
                format!("the label '{key}' has a value that no filter can name"),
                "use plain text",
            );
            return None;
        }
        Some((key.to_string(), text))
    }

    /// A text, or a number or boolean as it was written.
    fn text(&mut self, node: &Node, what: &str) -> Option<(String, Span)> {
        let text = match &node.kind {
            Kind::String(text) => text.to_string(),
            Kind::Number(_) | Kind::Bool(_) => self.sources.text(node.span)?.to_owned(),
            _ => {
                self.findings.wrong(node.span, format!("'{what}' must be a string"), "write a word, or text in quotes");
                return None;
            }
        };
        Some((text, node.span))
    }

    fn parameters(&mut self, node: &Node) -> Object {
        let Some(parameters) = node.get("parameters") else { return Object::new() };
        let entries = self.findings.form.members(stated(Some(parameters)), "'parameters'");
        entries.iter().map(|entry| (entry.key.to_string(), entry.value.literal())).collect()
    }
}

const FILTER: &str = "write a comparison such as role=web";
