//! The network interfaces of the running system.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::sys::socket::{LinkAddr, SockaddrIn, SockaddrIn6};

/// An interface, with the first of its addresses of each kind.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Interface {
    /// The kinds of address in the order in which the system lists them.
    pub addresses: Vec<Address>,
}

/// An address of an interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    /// Of IPv4, with the mask of its network.
    Ip4(Ipv4Addr, Option<Ipv4Addr>),
    /// Of IPv6; one that only counts on the link itself is left out.
    Ip6(Ipv6Addr),
    /// Of the hardware.
    Hardware([u8; 6]),
}

/// The interfaces by name; none where the system does not tell.
pub fn interfaces() -> BTreeMap<String, Interface> {
    let mut found: BTreeMap<String, Interface> = BTreeMap::new();
    for each in getifaddrs().into_iter().flatten() {
        let addresses = &mut found.entry(each.interface_name.clone()).or_default().addresses;
        if let Some(address) = address(&each)
            && !addresses.iter().any(|known| std::mem::discriminant(known) == std::mem::discriminant(&address))
        {
            addresses.push(address);
        }
    }
    found
}

fn address(of: &InterfaceAddress) -> Option<Address> {
    let address = of.address.as_ref()?;
    if let Some(ip) = address.as_sockaddr_in().map(SockaddrIn::ip) {
        let mask = of.netmask.as_ref().and_then(|mask| mask.as_sockaddr_in().map(SockaddrIn::ip));
        return Some(Address::Ip4(ip, mask));
    }
    if let Some(ip) = address.as_sockaddr_in6().map(SockaddrIn6::ip) {
        let is_of_the_link = ip.segments()[0] & 0xffc0 == 0xfe80;
        return (!is_of_the_link).then_some(Address::Ip6(ip));
    }
    address.as_link_addr().and_then(LinkAddr::addr).filter(|mac| *mac != [0; 6]).map(Address::Hardware)
}

/// The interface of the default route with the lowest metric.
pub fn primary() -> Option<String> {
    let routes = std::fs::read_to_string("/proc/net/route").ok()?;
    let fields = routes.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    let defaults = fields.filter_map(|fields| match fields.as_slice() {
        [name, "00000000", _, _, _, _, metric, "00000000", ..] => {
            Some((metric.parse::<u32>().ok()?, (*name).to_owned()))
        }
        _ => None,
    });
    defaults.min().map(|(_, name)| name)
}
