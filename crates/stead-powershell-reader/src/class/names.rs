//! The names of types that PowerShell and .NET bring along.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use crate::types::{Enumeration, Type};

/// Accelerators and the names of .NET that they stand for. The second name is found without its namespace `System` as well.
const NAMES: &[(&str, &str)] = &[
    ("array", "System.Array"),
    ("bigint", "System.Numerics.BigInteger"),
    ("bool", "System.Boolean"),
    ("byte", "System.Byte"),
    ("char", "System.Char"),
    ("ciminstance", "Microsoft.Management.Infrastructure.CimInstance"),
    ("cimsession", "Microsoft.Management.Infrastructure.CimSession"),
    ("cultureinfo", "System.Globalization.CultureInfo"),
    ("datetime", "System.DateTime"),
    ("datetimeoffset", "System.DateTimeOffset"),
    ("decimal", "System.Decimal"),
    ("double", "System.Double"),
    ("float", "System.Single"),
    ("guid", "System.Guid"),
    ("hashtable", "System.Collections.Hashtable"),
    ("initialsessionstate", "System.Management.Automation.Runspaces.InitialSessionState"),
    ("int", "System.Int32"),
    ("int16", "System.Int16"),
    ("int32", "System.Int32"),
    ("int64", "System.Int64"),
    ("ipaddress", "System.Net.IPAddress"),
    ("ipendpoint", "System.Net.IPEndPoint"),
    ("long", "System.Int64"),
    ("mailaddress", "System.Net.Mail.MailAddress"),
    ("object", "System.Object"),
    ("physicaladdress", "System.Net.NetworkInformation.PhysicalAddress"),
    ("powershell", "System.Management.Automation.PowerShell"),
    ("pscredential", "System.Management.Automation.PSCredential"),
    ("pscustomobject", "System.Management.Automation.PSObject"),
    ("psmoduleinfo", "System.Management.Automation.PSModuleInfo"),
    ("psobject", "System.Management.Automation.PSObject"),
    ("psprimitivedictionary", "System.Management.Automation.PSPrimitiveDictionary"),
    ("psvariable", "System.Management.Automation.PSVariable"),
    ("ref", "System.Management.Automation.PSReference"),
    ("regex", "System.Text.RegularExpressions.Regex"),
    ("runspace", "System.Management.Automation.Runspaces.Runspace"),
    ("sbyte", "System.SByte"),
    ("scriptblock", "System.Management.Automation.ScriptBlock"),
    ("securestring", "System.Security.SecureString"),
    ("semver", "System.Management.Automation.SemanticVersion"),
    ("short", "System.Int16"),
    ("single", "System.Single"),
    ("string", "System.String"),
    ("switch", "System.Management.Automation.SwitchParameter"),
    ("timespan", "System.TimeSpan"),
    ("type", "System.Type"),
    ("uint", "System.UInt32"),
    ("uint16", "System.UInt16"),
    ("uint32", "System.UInt32"),
    ("uint64", "System.UInt64"),
    ("ulong", "System.UInt64"),
    ("uri", "System.Uri"),
    ("ushort", "System.UInt16"),
    ("version", "System.Version"),
    ("void", "System.Void"),
    ("x500distinguishedname", "System.Security.Cryptography.X509Certificates.X500DistinguishedName"),
    ("x509certificate", "System.Security.Cryptography.X509Certificates.X509Certificate"),
    ("xml", "System.Xml.XmlDocument"),
];

/// Types of the namespace `System` that have no accelerator.
const SYSTEM: &[&str] = &[
    "Action",
    "AppDomain",
    "ApplicationException",
    "ArgumentException",
    "ArgumentNullException",
    "Attribute",
    "Boolean",
    "Console",
    "Convert",
    "DateOnly",
    "DayOfWeek",
    "Delegate",
    "Enum",
    "Environment",
    "EventArgs",
    "EventHandler",
    "Exception",
    "Func",
    "Half",
    "ICloneable",
    "IComparable",
    "IConvertible",
    "IDisposable",
    "IEquatable",
    "IFormatProvider",
    "IFormattable",
    "Index",
    "Int128",
    "IntPtr",
    "InvalidOperationException",
    "IServiceProvider",
    "Lazy",
    "Math",
    "NotImplementedException",
    "NotSupportedException",
    "Nullable",
    "OperatingSystem",
    "Progress",
    "Random",
    "Range",
    "StringComparer",
    "SystemException",
    "TimeOnly",
    "TimeZoneInfo",
    "Tuple",
    "UInt128",
    "UIntPtr",
    "UriBuilder",
    "ValueTuple",
    "ValueType",
    "WeakReference",
];

/// Enumerations of .NET that properties use, with their names in the order of their values.
const ENUMERATIONS: &[(&str, &str)] = &[
    ("System.DayOfWeek", "Sunday Monday Tuesday Wednesday Thursday Friday Saturday"),
    (
        "System.ConsoleColor",
        "Black DarkBlue DarkGreen DarkCyan DarkRed DarkMagenta DarkYellow Gray DarkGray Blue Green Cyan Red Magenta Yellow \
         White",
    ),
    (
        "System.StringComparison",
        "CurrentCulture CurrentCultureIgnoreCase InvariantCulture InvariantCultureIgnoreCase Ordinal OrdinalIgnoreCase",
    ),
    ("System.Management.Automation.ActionPreference", "SilentlyContinue Stop Continue Inquire Ignore Suspend Break"),
];

/// `System.IO.FileAttributes`, whose values are bits.
const FILE_ATTRIBUTES: &str = "None=0 ReadOnly=1 Hidden=2 System=4 Directory=16 Archive=32 Device=64 Normal=128 \
    Temporary=256 SparseFile=512 ReparsePoint=1024 Compressed=2048 Offline=4096 NotContentIndexed=8192 Encrypted=16384 \
    IntegrityStream=32768 NoScrubData=131072";

/// The full name that a name of PowerShell or of the namespace `System` stands for.
pub(super) fn full(name: &str) -> Option<&'static str> {
    FULL.get(&name.to_ascii_lowercase()).map(String::as_str)
}

/// The full names by what may be written for them, in lower case: a script names types all over.
static FULL: LazyLock<HashMap<String, String>> = LazyLock::new(|| {
    let mut names = HashMap::new();
    let mut add = |written: &str, full: &str| {
        let short = full.strip_prefix("System.").unwrap_or(full);
        for name in [written, full, short] {
            names.entry(name.to_ascii_lowercase()).or_insert_with(|| full.to_owned());
        }
    };
    for (short, full) in NAMES {
        add(short, full);
    }
    for (full, _) in ENUMERATIONS {
        add(full, full);
    }
    for known in SYSTEM {
        add(known, &format!("System.{known}"));
    }
    names
});

/// The type of that full name; `None` for one of which nothing is known but the name.
pub(super) fn known(full: &str) -> Option<Type> {
    let integer = |bits, signed| Type::Integer { bits, signed };
    let full = full.to_ascii_lowercase();
    Some(match full.strip_prefix("system.").unwrap_or(&full) {
        "object" => Type::Object,
        "string" => Type::String,
        "char" => Type::Char,
        "boolean" => Type::Boolean,
        "management.automation.switchparameter" => Type::Switch,
        "sbyte" => integer(8, true),
        "byte" => integer(8, false),
        "int16" => integer(16, true),
        "uint16" => integer(16, false),
        "int32" => integer(32, true),
        "uint32" => integer(32, false),
        "int64" => integer(64, true),
        "uint64" => integer(64, false),
        "numerics.biginteger" => Type::BigInteger,
        "single" => Type::Single,
        "double" => Type::Double,
        "decimal" => Type::Decimal,
        "datetime" => Type::DateTime,
        "datetimeoffset" => Type::DateTimeOffset,
        "timespan" => Type::TimeSpan,
        "guid" => Type::Guid,
        "uri" => Type::Uri,
        "version" => Type::Version,
        "collections.hashtable" | "collections.idictionary" => Type::Hashtable,
        "collections.specialized.ordereddictionary" => Type::OrderedDictionary,
        "management.automation.psobject" | "management.automation.pscustomobject" => Type::PsObject,
        "management.automation.pscredential" => Type::Credential,
        "security.securestring" => Type::SecureString,
        "management.automation.scriptblock" => Type::ScriptBlock,
        _ => return enumeration(&full).map(|found| Type::Enumeration(Arc::new(found))),
    })
}

fn enumeration(full: &str) -> Option<Enumeration> {
    if full == "system.io.fileattributes" {
        let members = FILE_ATTRIBUTES.split_whitespace().filter_map(|pair| pair.split_once('='));
        let members = members.filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?))).collect();
        return Some(Enumeration { name: "System.IO.FileAttributes".to_owned(), flags: true, members });
    }
    let (name, members) = ENUMERATIONS.iter().find(|(name, _)| name.eq_ignore_ascii_case(full))?;
    let members = members.split_whitespace().zip(0..).map(|(name, value)| (name.to_owned(), value)).collect();
    Some(Enumeration { name: (*name).to_owned(), flags: false, members })
}
