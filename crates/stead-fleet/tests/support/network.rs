//! Hosts with networks of their own on this machine: namespaces, each with an address on one bridge.

use std::net::Ipv4Addr;
use std::process::{Command, Stdio};

use stead_testkit::skip;

/// A bridge and the hosts at it, which end with this.
pub(crate) struct Network {
    /// What the names of everything begin with: the bridge and its links have it as well, and links have short names.
    name: String,
    hosts: u8,
    /// The first three numbers of the addresses.
    net: [u8; 3],
}

fn ip(words: &[&str]) -> bool {
    let status = Command::new("ip").args(words).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

impl Network {
    /// A network of so many hosts. `None` where there can be none: then the test is reported as skipped.
    pub(crate) fn new(test: &str, hosts: u8) -> Option<Self> {
        let [.., high, low] = std::process::id().to_be_bytes();
        let net = [10, 64 | high, low];
        let this = Self { name: format!("sf{}", std::process::id() % 100_000), hosts, net };
        let bridge = &this.name;
        let is_made = ip(&["link", "add", bridge, "type", "bridge"])
            && ip(&["addr", "add", &format!("{}/24", this.address(254)), "dev", bridge])
            && ip(&["link", "set", bridge, "up"])
            && (1..=hosts).all(|host| this.add(host));
        if !is_made {
            skip(test, "networks need root and the program 'ip'");
            return None;
        }
        Some(this)
    }

    fn add(&self, host: u8) -> bool {
        let (space, outer) = (self.space(host), format!("{}.{host}", self.name));
        let address = format!("{}/24", self.address(host));
        ip(&["netns", "add", &space])
            && ip(&["link", "add", &outer, "type", "veth", "peer", "name", "eth0", "netns", &space])
            && ip(&["link", "set", &outer, "master", &self.name, "up"])
            && ip(&["-n", &space, "addr", "add", &address, "dev", "eth0"])
            && ip(&["-n", &space, "link", "set", "eth0", "up"])
            && ip(&["-n", &space, "link", "set", "lo", "up"])
    }

    /// The namespace of a host.
    pub(crate) fn space(&self, host: u8) -> String {
        format!("{}-{host}", self.name)
    }

    pub(crate) fn address(&self, host: u8) -> Ipv4Addr {
        let [first, second, third] = self.net;
        Ipv4Addr::new(first, second, third, host)
    }

    /// A program that runs at a host.
    pub(crate) fn program(&self, host: u8, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.space(host), program]);
        command
    }

    /// What one host sends to another one goes nowhere from now on, or arrives again.
    pub(crate) fn part(&self, from: u8, to: u8, is_parted: bool) {
        let route = format!("{}/32", self.address(to));
        let what = if is_parted { "add" } else { "del" };
        assert!(ip(&["-n", &self.space(from), "route", what, "blackhole", &route]), "{from} to {to}");
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for host in 1..=self.hosts {
            // What still runs there keeps the network, and its end of the link.
            ip(&["link", "del", &format!("{}.{host}", self.name)]);
            ip(&["netns", "del", &self.space(host)]);
        }
        ip(&["link", "del", &self.name]);
    }
}
