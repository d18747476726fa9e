//! Settings of systemd and what their values mean.

/// Returns whether a setting is that of this name, or has it as one of its parts.
pub(super) fn sets(setting: &str, key: &str) -> bool {
    setting == key || setting == "TimeoutSec" && ["TimeoutStartSec", "TimeoutStopSec"].contains(&key)
}

/// Returns whether two values of a setting mean one thing, such as `yes` and `true`, `90` and `1min 30s`, `1G` and `1024M`.
pub(super) fn is_same(key: &str, one: &str, other: &str) -> bool {
    one == other || meant(key, one).is_some_and(|meant_by_one| meant(key, other) == Some(meant_by_one))
}

/// A value as systemd reads it, of a setting that is not text: a limit has a soft value and a hard one. `None` of what is not known.
fn meant(key: &str, text: &str) -> Option<[u128; 2]> {
    let twice = |value: u128| [value, value];
    match key.strip_prefix("Limit") {
        Some("CPU") => limits(text, |text| sum(text, TIMES)),
        Some("AS" | "CORE" | "DATA" | "FSIZE" | "MEMLOCK" | "MSGQUEUE" | "RSS" | "STACK") => {
            limits(text, |text| sum(text, SIZES))
        }
        Some(_) => limits(text, count),
        None if TEXTS.contains(&key) => None,
        None if key.ends_with("Sec") => time(key, text).map(twice),
        None if key == "UMask" || key.ends_with("Mode") => u128::from_str_radix(text, 8).ok().map(twice),
        None => truth(text).or_else(|| sum(text, SIZES).filter(|_| key.contains("Memory"))).map(twice),
    }
}

/// Settings whose values are names or words of others, which have no second form.
const TEXTS: [&str; 16] = [
    "BusName",
    "Description",
    "FileDescriptorName",
    "Group",
    "LogNamespace",
    "PAMName",
    "Personality",
    "RootDirectory",
    "RootImage",
    "SELinuxContext",
    "SocketGroup",
    "SocketUser",
    "SyslogIdentifier",
    "TimerSlackNSec",
    "User",
    "UtmpIdentifier",
];

/// A time; one to wait at most that is zero has no end, but for two that systemd takes as they are.
fn time(key: &str, text: &str) -> Option<u128> {
    const TAKEN_AS_THEY_ARE: [&str; 2] = ["TimeoutAbortSec", "TimeoutCleanSec"];
    let is_longest = ["Timeout", "JobTimeout", "JobRunningTimeout"].iter().any(|beginning| key.starts_with(beginning));
    let has_no_end = is_longest && !TAKEN_AS_THEY_ARE.contains(&key);
    let found = if text == INFINITY { Some(u128::MAX) } else { sum(text, TIMES) };
    found.map(|time| if time == 0 && has_no_end { u128::MAX } else { time })
}

/// A number; behind a zero it is octal for some settings, which is not looked into.
fn count(text: &str) -> Option<u128> {
    text.parse().ok().filter(|_| text == "0" || text.starts_with(|first: char| matches!(first, '1'..='9')))
}

fn truth(text: &str) -> Option<u128> {
    const WORDS: [[&str; 6]; 2] = [["0", "no", "n", "false", "f", "off"], ["1", "yes", "y", "true", "t", "on"]];
    let at = WORDS.iter().position(|words| words.iter().any(|word| word.eq_ignore_ascii_case(text)))?;
    u128::try_from(at).ok()
}

const INFINITY: &str = "infinity";

/// A soft limit and a hard one, which is the soft one where there is one only.
fn limits(text: &str, read: impl Fn(&str) -> Option<u128>) -> Option<[u128; 2]> {
    let read = |text: &str| if text == INFINITY { Some(u128::MAX) } else { read(text) };
    let (soft, hard) = text.split_once(':').unwrap_or((text, text));
    Some([read(soft)?, read(hard)?])
}

/// Units by their names: how many of the least one they are.
type Units = &'static [(&'static [&'static str], u128)];

const SECOND: u128 = 1_000_000_000;

const TIMES: Units = &[
    (&["ns", "nsec"], 1),
    (&["us", "usec", "µs", "μs"], SECOND / 1_000_000),
    (&["ms", "msec"], SECOND / 1000),
    (&["", "s", "sec", "second", "seconds"], SECOND),
    (&["m", "min", "minute", "minutes"], 60 * SECOND),
    (&["h", "hr", "hour", "hours"], 3600 * SECOND),
    (&["d", "day", "days"], 86_400 * SECOND),
    (&["w", "week", "weeks"], 7 * 86_400 * SECOND),
    (&["M", "month", "months"], 2_629_800 * SECOND),
    (&["y", "year", "years"], 31_557_600 * SECOND),
];

const SIZES: Units = &[
    (&["", "B"], 1),
    (&["K"], 1 << 10),
    (&["M"], 1 << 20),
    (&["G"], 1 << 30),
    (&["T"], 1 << 40),
    (&["P"], 1 << 50),
    (&["E"], 1 << 60),
];

/// The sum of numbers with units, such as `1min 30s`; `None` of anything else.
fn sum(text: &str, units: Units) -> Option<u128> {
    let mut rest = text.trim();
    let mut found = None;
    while !rest.is_empty() {
        let (number, behind) = split_where(rest, |sign| !sign.is_ascii_digit() && sign != '.');
        let (name, behind) = split_where(behind.trim_start(), |sign| !sign.is_alphabetic());
        let (_, unit) = units.iter().find(|(names, _)| names.contains(&name))?;
        let amount = times(number, *unit)?;
        found = found.unwrap_or(0_u128).checked_add(amount);
        found?;
        rest = behind.trim_start();
    }
    found
}

fn split_where(text: &str, is_end: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at_checked(text.find(is_end).unwrap_or(text.len())).unwrap_or((text, ""))
}

/// A decimal number times a unit.
fn times(number: &str, unit: u128) -> Option<u128> {
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let places = u32::try_from(part.len()).ok()?;
    let part = part.parse::<u128>().ok()?.checked_mul(unit)? / 10_u128.checked_pow(places)?;
    whole.parse::<u128>().ok()?.checked_mul(unit)?.checked_add(part)
}

/// Returns whether this value of a setting takes the place of those that are read before it.
pub(super) fn replaces(key: &str, value: &str) -> bool {
    // Names of controllers are added to others, a word of truth says all.
    value.is_empty() || has_one_value(key) || key == "Delegate" && truth(value).is_some()
}

/// Returns whether a later value of a setting takes the place of a former one, as far as it is known: most settings are lists.
fn has_one_value(key: &str) -> bool {
    const BEGINNINGS: [&str; 9] =
        ["Limit", "Private", "Protect", "Memory", "Timeout", "Restart", "StartLimit", "Runtime", "CPU"];
    const LISTS: [&str; 4] = ["CPUAffinity", "RestartPreventExitStatus", "RestartForceExitStatus", "RuntimeDirectory"];
    !LISTS.contains(&key) && (ONE_VALUE.contains(&key) || BEGINNINGS.iter().any(|beginning| key.starts_with(beginning)))
}

/// Besides those with one of these beginnings.
const ONE_VALUE: &[&str] = &[
    "Accept",
    "AccuracySec",
    "AllowIsolate",
    "Backlog",
    "BindIPv6Only",
    "BindToDevice",
    "Broadcast",
    "BusName",
    "CacheDirectoryMode",
    "CollectMode",
    "ConfigurationDirectoryMode",
    "CoredumpFilter",
    "DefaultDependencies",
    "DeferTrigger",
    "Description",
    "DevicePolicy",
    "DirectoryMode",
    "DynamicUser",
    "ExitType",
    "FailureAction",
    "FailureActionExitStatus",
    "FileDescriptorName",
    "FileDescriptorStoreMax",
    "FileDescriptorStorePreserve",
    "FinalKillSignal",
    "FixedRandomDelay",
    "FlushPending",
    "FreeBind",
    "Group",
    "GuessMainPID",
    "IOAccounting",
    "IOSchedulingClass",
    "IOSchedulingPriority",
    "IOWeight",
    "IPAccounting",
    "IPTOS",
    "IPTTL",
    "IgnoreOnIsolate",
    "IgnoreSIGPIPE",
    "JobRunningTimeoutSec",
    "JobTimeoutAction",
    "JobTimeoutSec",
    "KeepAlive",
    "KeepAliveIntervalSec",
    "KeepAliveProbes",
    "KeepAliveTimeSec",
    "KeyringMode",
    "KillMode",
    "KillSignal",
    "LockPersonality",
    "LogLevelMax",
    "LogNamespace",
    "LogRateLimitBurst",
    "LogRateLimitIntervalSec",
    "LogsDirectoryMode",
    "MakeDirectory",
    "ManagedOOMMemoryPressure",
    "ManagedOOMMemoryPressureLimit",
    "ManagedOOMPreference",
    "ManagedOOMSwap",
    "Mark",
    "MaxConnections",
    "MaxConnectionsPerSource",
    "MessageQueueMaxMessages",
    "MessageQueueMessageSize",
    "MountAPIVFS",
    "MountFlags",
    "NUMAPolicy",
    "NetworkNamespacePath",
    "Nice",
    "NoDelay",
    "NoNewPrivileges",
    "NonBlocking",
    "NotifyAccess",
    "OOMPolicy",
    "OOMScoreAdjust",
    "OnFailureJobMode",
    "OnSuccessJobMode",
    "PAMName",
    "PIDFile",
    "PassCredentials",
    "PassFileDescriptorsToExec",
    "PassPacketInfo",
    "PassSecurity",
    "Persistent",
    "Personality",
    "PipeSize",
    "PollLimitBurst",
    "PollLimitIntervalSec",
    "Priority",
    "ProcSubset",
    "RandomizedDelaySec",
    "ReceiveBuffer",
    "RefuseManualStart",
    "RefuseManualStop",
    "ReloadSignal",
    "RemainAfterElapse",
    "RemainAfterExit",
    "RemoveIPC",
    "RemoveOnStop",
    "RestrictRealtime",
    "RestrictSUIDSGID",
    "ReusePort",
    "RootDirectory",
    "RootHash",
    "RootImage",
    "RootVerity",
    "SELinuxContext",
    "SELinuxContextFromNet",
    "SendBuffer",
    "SendSIGHUP",
    "SendSIGKILL",
    "Slice",
    "SocketGroup",
    "SocketMode",
    "SocketProtocol",
    "SocketUser",
    "SourcePath",
    "StandardError",
    "StandardInput",
    "StandardOutput",
    "StartupCPUWeight",
    "StartupIOWeight",
    "StateDirectoryMode",
    "StopWhenUnneeded",
    "SuccessAction",
    "SuccessActionExitStatus",
    "SurviveFinalKillSignal",
    "SyslogFacility",
    "SyslogIdentifier",
    "SyslogLevel",
    "SyslogLevelPrefix",
    "TCPCongestion",
    "TTYColumns",
    "TTYPath",
    "TTYReset",
    "TTYRows",
    "TTYVHangup",
    "TTYVTDisallocate",
    "TasksAccounting",
    "TasksMax",
    "TimerSlackNSec",
    "Timestamping",
    "Transparent",
    "TriggerLimitBurst",
    "TriggerLimitIntervalSec",
    "Type",
    "UMask",
    "USBFunctionDescriptors",
    "USBFunctionStrings",
    "Unit",
    "User",
    "UtmpIdentifier",
    "UtmpMode",
    "WakeSystem",
    "WatchdogSec",
    "WatchdogSignal",
    "WorkingDirectory",
    "Writable",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_compared_by_what_they_mean() {
        let same = [
            ("PrivateTmp", "yes", "True"),
            ("PrivateTmp", "0", "off"),
            ("TimeoutSec", "90", "90s"),
            ("TimeoutSec", "1min 30s", "90000ms"),
            ("RestartSec", "1.5min", "1m30"),
            ("RuntimeMaxSec", "1w", "7d"),
            ("LimitCPU", "60", "1min"),
            ("MemoryMax", "1G", "1024M"),
            ("MemoryMax", "1.5K", "1536"),
            ("LimitCORE", "1K", "1024:1024"),
            ("LimitNOFILE", "infinity", "infinity:infinity"),
            ("LimitNOFILE", "1024", "1024:1024"),
            ("LimitCPU", "60:120", "1min:2min"),
            ("TimeoutStopSec", "0", "infinity"),
            ("JobTimeoutSec", "0", "infinity"),
            ("JobRunningTimeoutSec", "infinity", "0s"),
            ("SocketMode", "600", "0600"),
        ];
        for (key, one, other) in same {
            assert!(is_same(key, one, other) && is_same(key, other, one), "{key}: {one}, {other}");
        }
        let others = [
            ("PrivateTmp", "yes", "disconnected"),
            ("TimeoutSec", "90", "90min"),
            ("TimeoutSec", "infinity", "90"),
            ("TimeoutSec", "1M", "1m"),
            ("MemoryMax", "50%", "60%"),
            ("MemoryMax", "infinity", "1G"),
            ("LimitCORE", "1:2", "2:1"),
            ("User", "1K", "1024"),
            ("User", "on", "yes"),
            ("SyslogIdentifier", "1", "true"),
            ("TimerSlackNSec", "1", "1s"),
            ("LimitNOFILE", "010", "10"),
            ("RestartSec", "0", "infinity"),
            ("TimeoutAbortSec", "0", "infinity"),
            ("TimeoutCleanSec", "infinity", "0"),
            ("WatchdogSec", "1", "yes"),
            ("TimeoutSec", "1..5", "1.5"),
            ("MemoryMax", "99999999999999999999999999999999999999999E", "x"),
        ];
        for (key, one, other) in others {
            assert!(!is_same(key, one, other) && !is_same(key, other, one), "{key}: {one}, {other}");
        }
    }
}
