//! Columns of tables, and names and values of settings of the kernel.

use std::net::IpAddr;

use super::{CHECKED, Checked, Text, breaks_line, is_name, text_type};

/// One word, as the files of the system have it in their columns.
#[derive(Clone, Copy)]
pub(crate) struct Word<'a>(pub(crate) &'a str, Checked);
text_type!(Word, { "type": "string", "pattern": "^[^\\s#\\p{Cc}]+$" });

impl<'a> Text<'a> for Word<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let is_word =
            !text.is_empty() && !text.contains(|each: char| each.is_whitespace() || each == '#' || each.is_control());
        if is_word { Ok(Self(text, CHECKED)) } else { Err("must be one word, without spaces and '#'") }
    }
}

/// The name of a parameter of the kernel.
#[derive(Clone, Copy)]
pub(crate) struct SysctlName<'a>(pub(crate) &'a str, Checked);
text_type!(SysctlName, { "type": "string", "pattern": "^[A-Za-z0-9_-]+([./][A-Za-z0-9_:@-]+)+$" });

impl<'a> Text<'a> for SysctlName<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let mut parts = text.split(['.', '/']);
        let is_part = |part: &str, signs: &str| {
            !part.is_empty() && part.chars().all(|each| each.is_ascii_alphanumeric() || signs.contains(each))
        };
        let first = parts.next().is_some_and(|first| is_part(first, "_-"));
        if first && text.contains(['.', '/']) && parts.all(|part| is_part(part, "_:@-")) {
            Ok(Self(text, CHECKED))
        } else {
            Err("must be a name such as \"net.ipv4.ip_forward\"")
        }
    }
}

/// The name of a machine.
#[derive(Clone, Copy)]
pub(crate) struct HostName<'a>(pub(crate) &'a str, Checked);
text_type!(HostName, {
    "type": "string",
    "maxLength": 64,
    "pattern": "^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?([.][A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*$"
});

impl<'a> Text<'a> for HostName<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let is_part = |part: &str| {
            let is_plain = part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
            is_plain && !part.is_empty() && !part.starts_with('-') && !part.ends_with('-')
        };
        // A name with another part is not read at boot: the machine has none then.
        if text.split('.').all(is_part) && text.len() <= 64 {
            Ok(Self(text, CHECKED))
        } else {
            Err(
                "must be words of letters, digits and '-' with a '.' between them, which do not begin or end with '-', at \
                 most 64 characters",
            )
        }
    }
}

/// A limit as PAM takes it.
#[derive(Clone, Copy)]
pub(crate) struct LimitValue<'a>(pub(crate) &'a str, Checked);
text_type!(LimitValue, { "type": "string", "pattern": "^(-?[0-9]{1,18}|unlimited|infinity)$" });

impl<'a> Text<'a> for LimitValue<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        // Beyond that PAM takes the largest number that there is.
        let is_number = (1..=18).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
        if is_number || matches!(text, "unlimited" | "infinity") {
            Ok(Self(text, CHECKED))
        } else {
            Err("must be a number in quotes, or \"unlimited\"")
        }
    }
}

/// An IP address.
#[derive(Clone, Copy)]
pub(crate) struct Address<'a> {
    pub(crate) text: &'a str,
    pub(crate) address: IpAddr,
}
text_type!(Address, { "type": "string", "minLength": 1 });

impl<'a> Text<'a> for Address<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        text.parse().map(|address| Self { text, address }).map_err(|_| "must be an IPv4 or IPv6 address")
    }
}

/// The name of a module of the kernel.
#[derive(Clone, Copy)]
pub(crate) struct ModuleName<'a>(pub(crate) &'a str, Checked);
text_type!(ModuleName, { "type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_-]*$" });

impl<'a> Text<'a> for ModuleName<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        if is_name(text, b"_-") {
            Ok(Self(text, CHECKED))
        } else {
            Err("must be the name of a module, such as br_netfilter")
        }
    }
}

/// Options of a module of the kernel, as modprobe.d(5) has them.
#[derive(Clone, Copy)]
pub(crate) struct ModuleOptions<'a>(pub(crate) &'a str, Checked);
text_type!(ModuleOptions, { "type": "string", "pattern": "^(\\t|[^\\p{Cc}#\\\\])*$" });

impl<'a> Text<'a> for ModuleOptions<'a> {
    fn check(text: &'a str) -> Result<Self, &'static str> {
        if text.contains(['#', '\\']) {
            Err("must not contain '#' or '\\', which modprobe leaves out")
        } else if text.contains(breaks_line) {
            Err("must be a single line without control characters")
        } else {
            Ok(Self(text, CHECKED))
        }
    }
}
