//! Networks in CIDR notation.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::super::builtin::{Arguments, BuiltinResult, Wrong};
use crate::value::{Object, Value};

/// A network. Invariant: `prefix` is at most `width`, and the bits of `first` behind it are 0.
#[derive(Clone, Copy)]
struct Network {
    first: u128,
    prefix: u32,
    width: u32,
}

impl Network {
    fn read(text: &str) -> Result<Self, Wrong> {
        let invalid = || {
            Wrong::value(
                0,
                format!(
                    "Invalid CIDR notation: '{text}'. Expected format: IP/prefix (e.g., '192.168.1.0/24' or '2001:db8::/32')"
                ),
            )
        };
        let (address, prefix) = text.split_once('/').ok_or_else(invalid)?;
        let address: IpAddr = address.parse().map_err(|_| invalid())?;
        let (bits, width) = match address {
            IpAddr::V4(address) => (u128::from(address.to_bits()), 32),
            IpAddr::V6(address) => (address.to_bits(), 128),
        };
        // `u32::from_str` would take a sign.
        let is_number = !prefix.is_empty() && prefix.bytes().all(|byte| byte.is_ascii_digit());
        let prefix = prefix.parse::<u32>().ok().filter(|prefix| is_number && *prefix <= width).ok_or_else(invalid)?;
        let network = Self { first: 0, prefix, width };
        Ok(Self { first: bits & !network.host_mask(), ..network })
    }

    fn host_bits(self) -> u32 {
        self.width - self.prefix
    }

    fn host_mask(self) -> u128 {
        u128::MAX.checked_shr(128 - self.host_bits()).unwrap_or(0)
    }

    fn netmask(self) -> u128 {
        let all = u128::MAX >> (128 - self.width);
        all & !self.host_mask()
    }

    fn last(self) -> u128 {
        self.first | self.host_mask()
    }

    fn is_v4(self) -> bool {
        self.width == 32
    }

    fn address(self, bits: u128) -> IpAddr {
        match u32::try_from(bits) {
            Ok(bits) if self.is_v4() => Ipv4Addr::from_bits(bits).into(),
            _ => Ipv6Addr::from_bits(bits).into(),
        }
    }

    /// The first and the last address of hosts that `cidrHost` counts: without the address of the network itself and,
    /// in IPv4, without the broadcast address, except where there are only two.
    fn hosts(self) -> Option<(u128, u128)> {
        match self.host_bits() {
            0 => None,
            1 => Some((self.first, self.last())),
            _ => Some((self.first + 1, self.last() - u128::from(self.is_v4()))),
        }
    }
}

pub(super) fn parse(mut arguments: Arguments) -> BuiltinResult {
    let network = Network::read(&arguments.text()?)?;
    let text = |bits: u128| Value::from(network.address(bits).to_string());
    let inner = u128::from(network.is_v4() && network.host_bits() > 1);
    let mut properties = Object::new();
    properties.insert("network".to_owned(), text(network.first));
    properties.insert("netmask".to_owned(), text(network.netmask()));
    if network.is_v4() {
        properties.insert("broadcast".to_owned(), text(network.last()));
    }
    properties.insert("firstUsable".to_owned(), text(network.first + inner));
    properties.insert("lastUsable".to_owned(), text(network.last() - inner));
    properties.insert("cidr".to_owned(), i64::from(network.prefix).into());
    Ok(Value::Object(properties))
}

pub(super) fn subnet(mut arguments: Arguments) -> BuiltinResult {
    let network = Network::read(&arguments.text()?)?;
    let (prefix, index) = (arguments.integer()?, arguments.integer()?);
    let (version, width) = (if network.is_v4() { 4 } else { 6 }, network.width);
    let prefix = u32::try_from(prefix).ok().filter(|prefix| *prefix <= width).ok_or_else(|| {
        Wrong::value(1, format!("Invalid IPv{version} prefix: {prefix}. Must be between 0 and {width}"))
    })?;
    if prefix < network.prefix {
        let message =
            format!("New CIDR prefix {prefix} must be greater than or equal to the current prefix {}", network.prefix);
        return Err(Wrong::value(1, message).with_help("a subnet cannot be larger than its network"));
    }
    let index = u128::try_from(index).map_err(|_| Wrong::value(2, "SubnetIndex cannot be negative"))?;
    let count = 1_u128.checked_shl(prefix - network.prefix);
    if count.is_some_and(|count| index >= count) {
        let last = count.unwrap_or(u128::MAX) - 1;
        return Err(Wrong::value(2, format!("SubnetIndex {index} is out of range: the last subnet is {last}")));
    }
    // The index is below 2 to the power of 63, and of 0 when nothing is left to shift by.
    let offset = index.checked_shl(network.width - prefix).unwrap_or(0);
    Ok(format!("{}/{prefix}", network.address(network.first | offset)).into())
}

pub(super) fn host(mut arguments: Arguments) -> BuiltinResult {
    let network = Network::read(&arguments.text()?)?;
    let index = arguments.integer()?;
    let index = u128::try_from(index).map_err(|_| Wrong::value(1, "HostIndex cannot be negative"))?;
    let (first, last) =
        network.hosts().ok_or_else(|| Wrong::value(0, "Network has no usable host addresses (single IP address)"))?;
    match first.checked_add(index).filter(|address| *address <= last) {
        Some(address) => Ok(network.address(address).to_string().into()),
        None => Err(Wrong::value(1, format!("HostIndex {index} is out of range: the last host is {}", last - first))),
    }
}
