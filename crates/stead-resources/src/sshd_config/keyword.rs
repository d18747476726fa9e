//! The keywords of `sshd_config(5)`: how they are written, and what sshd makes of several lines with one.

use stead_core::diag::nearest;

/// How the arguments of a keyword are written behind it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// One argument; a list is joined by commas.
    One,
    /// Several arguments, with blanks between them.
    Words,
    /// The rest of the line as it is, signs of comments and of quoting among it.
    Rest,
}

/// The keywords with more than one argument, besides [`LISTS`].
const WORDS: &[&str] = &[
    "authenticationmethods",
    "authorizedkeysfile",
    "channeltimeout",
    "ipqos",
    "listenaddress",
    "logverbose",
    "permitlisten",
    "permitopen",
    "persourcepenalties",
    "pubkeyauthoptions",
    "rekeylimit",
    "setenv",
    "subsystem",
];

/// The keywords whose lines are not taken apart.
const REST: &[&str] = &["authorizedkeyscommand", "authorizedprincipalscommand", "forcecommand", "versionaddendum"];

/// The keywords of which all lines count, each of which may have several arguments: they say as much on one line.
const LISTS: &[&str] = &["acceptenv", "allowgroups", "allowusers", "denygroups", "denyusers", "include"];

/// The keywords of which all lines count, and each is one thing.
const LINES: &[&str] = &["hostcertificate", "hostkey", "listenaddress", "port", "subsystem"];

/// Former names of keywords, which sshd takes for the present ones.
const FORMER: &[(&str, &str)] = &[
    ("challengeresponseauthentication", "kbdinteractiveauthentication"),
    ("dsaauthentication", "pubkeyauthentication"),
    ("gssapicleanupcreds", "gssapicleanupcredentials"),
    ("hostbasedacceptedkeytypes", "hostbasedacceptedalgorithms"),
    ("hostdsakey", "hostkey"),
    ("keepalive", "tcpkeepalive"),
    ("pubkeyacceptedkeytypes", "pubkeyacceptedalgorithms"),
    ("skeyauthentication", "kbdinteractiveauthentication"),
];

/// The keywords, and the criteria of a `Match`, as the manual writes them.
const SPELLED: &str = "AcceptEnv Address AddressFamily AllowAgentForwarding AllowGroups AllowStreamLocalForwarding \
    AllowTcpForwarding AllowUsers AuthenticationMethods AuthorizedKeysCommand AuthorizedKeysCommandUser AuthorizedKeysFile \
    AuthorizedPrincipalsCommand AuthorizedPrincipalsCommandUser AuthorizedPrincipalsFile Banner CASignatureAlgorithms \
    ChannelTimeout ChrootDirectory Ciphers ClientAliveCountMax ClientAliveInterval Compression DebianBanner DenyGroups DenyUsers \
    DisableForwarding ExposeAuthInfo FingerprintHash ForceCommand GatewayPorts Group GSSAPIAuthentication \
    GSSAPICleanupCredentials GSSAPIKexAlgorithms GSSAPIKeyExchange GSSAPIStoreCredentialsOnRekey GSSAPIStrictAcceptorCheck Host HostbasedAcceptedAlgorithms HostbasedAuthentication \
    HostbasedUsesNameFromPacketOnly HostCertificate HostKey HostKeyAgent HostKeyAlgorithms IgnoreRhosts IgnoreUserKnownHosts \
    Include IPQoS KbdInteractiveAuthentication KerberosAuthentication KerberosGetAFSToken KerberosOrLocalPasswd \
    KerberosTicketCleanup KexAlgorithms ListenAddress LocalAddress LocalPort LoginGraceTime LogLevel LogVerbose MACs Match \
    MaxAuthTries MaxSessions MaxStartups ModuliFile PasswordAuthentication PermitEmptyPasswords PermitListen PermitOpen \
    PermitRootLogin PermitTTY PermitTunnel PermitUserEnvironment PermitUserRC PerSourceMaxStartups PerSourceNetBlockSize \
    PerSourcePenalties PerSourcePenaltyExemptList PidFile Port PrintLastLog PrintMotd PubkeyAcceptedAlgorithms \
    PubkeyAuthentication PubkeyAuthOptions RDomain RefuseConnection RekeyLimit RequiredRSASize RevokedKeys SecurityKeyProvider SetEnv \
    SshdAuthPath SshdSessionPath StreamLocalBindMask StreamLocalBindUnlink StrictModes Subsystem SyslogFacility TCPKeepAlive \
    TrustedUserCAKeys UnusedConnectionTimeout UseDNS UsePAM User VersionAddendum X11DisplayOffset X11Forwarding \
    X11UseLocalhost XAuthLocation";

/// The keyword that was probably meant by one that sshd does not know, as far as it is known here.
pub(super) fn meant(keyword: &str) -> Option<&'static str> {
    let lower = keyword.to_ascii_lowercase();
    let is_known = spelled(keyword) != keyword || SPELLED.split_ascii_whitespace().any(|each| each == keyword);
    let is_former = FORMER.iter().any(|(former, _)| *former == lower);
    if is_known || is_former { None } else { nearest(keyword, SPELLED.split_ascii_whitespace()) }
}

/// The present name of a keyword in lower case, by which it is known.
pub(super) fn known_as(keyword: &str) -> String {
    let lower = keyword.to_ascii_lowercase();
    FORMER.iter().find(|(former, _)| *former == lower).map_or(lower, |(_, present)| (*present).to_owned())
}

/// A keyword as the manual writes it, or as it is.
pub(super) fn spelled(keyword: &str) -> &str {
    SPELLED.split_ascii_whitespace().find(|each| each.eq_ignore_ascii_case(keyword)).unwrap_or(keyword)
}

pub(super) fn form(known: &str) -> Form {
    match known {
        _ if WORDS.contains(&known) || is_list(known) => Form::Words,
        _ if REST.contains(&known) => Form::Rest,
        _ => Form::One,
    }
}

/// Returns whether all lines with a keyword count, and not only the first one.
pub(super) fn accumulates(known: &str) -> bool {
    is_list(known) || LINES.contains(&known)
}

/// Returns whether its lines are one list, however many arguments are on each.
pub(super) fn is_list(known: &str) -> bool {
    LISTS.contains(&known)
}
