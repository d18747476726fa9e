//! Every setting: its name, what values it takes, and what it means.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use jiff::civil::Time;
use serde_json::{Value as Json, json};
use stead_core::diag::nearest;
use stead_core::document::ConfigurationMode;
use stead_host::facts::Labels;

use super::{ActionAfterReboot, NewDocument, Settings};
use crate::window::{Purpose, Window};

/// One setting.
///
/// # Examples
/// ```
/// use stead_agent::{Setting, Settings};
///
/// let setting = Setting::find("maxrestarts").ok_or("there is no such setting")?;
/// assert_eq!(setting.name, "MaxRestarts");
/// assert_eq!(setting.value(&Settings::default()), "5");
/// assert!(setting.values().starts_with("a whole number from"));
/// # Ok::<(), &str>(())
/// ```
pub struct Setting {
    /// Its name, in the case that it is printed in.
    pub name: &'static str,
    /// The meaning, in Markdown.
    pub meaning: &'static str,
    pub(super) form: SettingForm,
}

/// The values that a setting takes, and where they are kept.
pub(super) enum SettingForm {
    Truth(fn(&mut Settings) -> &mut bool),
    Count(RangeInclusive<u32>, fn(&mut Settings) -> &mut u32),
    Time(Unit, RangeInclusive<Duration>, fn(&mut Settings) -> &mut Duration),
    Word(Words),
    /// A program and its arguments.
    Command(fn(&mut Settings) -> &mut Vec<String>),
    Windows(fn(&mut Settings) -> &mut Vec<Window>),
    Folder(fn(&mut Settings) -> &mut Option<PathBuf>),
    /// An address of a web server.
    Web(fn(&mut Settings) -> &mut Option<String>),
    Labels(fn(&mut Settings) -> &mut Labels),
}

/// The unit that a number of a setting counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unit {
    Seconds,
    Minutes,
    Days,
}

/// The words of a setting that takes one of several. `set` says whether it knows the word; case does not matter.
pub(super) struct Words {
    pub(super) all: fn() -> Vec<&'static str>,
    get: fn(&Settings) -> &'static str,
    pub(super) set: fn(&mut Settings, &str) -> bool,
}

/// Days of the week, Monday first.
pub(super) const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// The purposes of windows, by name.
pub(super) const PURPOSES: [(&str, Purpose); 3] =
    [("Any", Purpose::Any), ("Set", Purpose::Set), ("Restart", Purpose::Restart)];

const ACTIONS: [(&str, ActionAfterReboot); 2] = [
    ("ContinueConfiguration", ActionAfterReboot::ContinueConfiguration),
    ("StopConfiguration", ActionAfterReboot::StopConfiguration),
];

const NEW_DOCUMENTS: [(&str, NewDocument); 2] =
    [("Supersede", NewDocument::Supersede), ("Refuse", NewDocument::Refuse)];

const SECOND: Duration = Duration::from_secs(1);

/// As the longest interval of the Local Configuration Manager.
const MONTH: Duration = Duration::from_hours(31 * 24);

const DAY: Duration = Duration::from_hours(24);

/// Every setting, in the order in which they are printed.
pub static SETTINGS: &[Setting] = &[
    Setting {
        name: "ConfigurationMode",
        meaning: "What is done with a document that does not say it itself: applied until it has converged once \
            (`ApplyOnly`), then checked (`ApplyAndMonitor`), then kept in its desired state (`ApplyAndAutoCorrect`), or \
            only ever tested (`MonitorOnly`).",
        form: SettingForm::Word(Words {
            all: || names(&ConfigurationMode::ALL),
            get: |settings| settings.configuration_mode.as_str(),
            set: |settings, text| put(&mut settings.configuration_mode, word(&ConfigurationMode::ALL, text)),
        }),
    },
    Setting {
        name: "ConfigurationModeFrequencyMins",
        meaning: "How often the current document is checked.",
        form: SettingForm::Time(Unit::Minutes, SECOND..=MONTH, |settings| &mut settings.check_every),
    },
    Setting {
        name: "SplaySecs",
        meaning: "Up to how much later a check begins, at random, so that not all machines check at once.",
        form: SettingForm::Time(Unit::Seconds, Duration::ZERO..=MONTH, |settings| &mut settings.splay),
    },
    Setting {
        name: "RebootNodeIfNeeded",
        meaning: "Whether the machine is restarted when a resource asks for it. If not, the document waits until an operator \
            restarts it.",
        form: SettingForm::Truth(|settings| &mut settings.reboot_node_if_needed),
    },
    Setting {
        name: "ActionAfterReboot",
        meaning: "What follows after a restart that a resource asked for: the document is applied further, or is held until \
            an operator asks for it.",
        form: SettingForm::Word(Words {
            all: || names(&ACTIONS),
            get: |settings| name(&ACTIONS, &settings.action_after_reboot),
            set: |settings, text| put(&mut settings.action_after_reboot, word(&ACTIONS, text)),
        }),
    },
    Setting {
        name: "MaxRestarts",
        meaning: "How often the machine is restarted for one document. Restarts for a document that has converged are \
            forgiven after a day without one.",
        form: SettingForm::Count(0..=1000, |settings| &mut settings.max_restarts),
    },
    Setting {
        name: "NewDocument",
        meaning: "What happens to a document that is delivered while another is pending: it replaces that one, or is \
            refused.",
        form: SettingForm::Word(Words {
            all: || names(&NEW_DOCUMENTS),
            get: |settings| name(&NEW_DOCUMENTS, &settings.new_document),
            set: |settings, text| put(&mut settings.new_document, word(&NEW_DOCUMENTS, text)),
        }),
    },
    Setting {
        name: "MaxPendingConfigRetryCount",
        meaning: "How often a pending document that failed is tried again; 0 for as often as it takes.",
        form: SettingForm::Count(0..=u32::MAX, |settings| &mut settings.max_pending_retries),
    },
    Setting {
        name: "PendingRetrySecs",
        meaning: "How long after its first failure a pending document is tried again; twice as long after each further one. \
            Each wait is shorter by up to half, at random, so that not all machines try at once.",
        form: SettingForm::Time(Unit::Seconds, SECOND..=MONTH, |settings| &mut settings.pending_backoff.base),
    },
    Setting {
        name: "PendingRetryMaxSecs",
        meaning: "The longest time between two tries of a pending document.",
        form: SettingForm::Time(Unit::Seconds, SECOND..=MONTH, |settings| &mut settings.pending_backoff.cap),
    },
    Setting {
        name: "ResourceRetryCount",
        meaning: "How often a resource that fails is tried again within one job.",
        form: SettingForm::Count(0..=1000, |settings| &mut settings.resource_retries),
    },
    Setting {
        name: "ResourceRetrySecs",
        meaning: "How long after its first failure a resource is tried again; twice as long after each further one.",
        form: SettingForm::Time(Unit::Seconds, Duration::ZERO..=DAY, |settings| &mut settings.resource_backoff.base),
    },
    Setting {
        name: "ResourceRetryMaxSecs",
        meaning: "The longest time between two tries of a resource.",
        form: SettingForm::Time(Unit::Seconds, Duration::ZERO..=DAY, |settings| &mut settings.resource_backoff.cap),
    },
    Setting {
        name: "ResourceTimeoutSecs",
        meaning: "How long one call of a resource may take.",
        form: SettingForm::Time(Unit::Seconds, SECOND..=MONTH, |settings| &mut settings.resource_timeout),
    },
    Setting {
        name: "MaintenanceWindows",
        meaning: "When the machine may be changed and restarted; at any time if there is no window for it. A window has \
            `From` and `To` (\"HH:MM\", local time; one that does not end after it begins ends on the next day), `Days` on \
            which it begins (every day if left out), and `For`: `Set`, `Restart`, or `Any` of them. Checks go on outside.",
        form: SettingForm::Windows(|settings| &mut settings.windows),
    },
    Setting {
        name: "StatusRetentionTimeInDays",
        meaning: "How long reports are kept.",
        form: SettingForm::Time(Unit::Days, DAY..=Duration::from_hours(36_500 * 24), |settings| {
            &mut settings.retention
        }),
    },
    Setting {
        name: "Generations",
        meaning: "How many former documents are kept for `restore`, besides those that are staged.",
        form: SettingForm::Count(0..=10_000, |settings| &mut settings.generations),
    },
    Setting {
        name: "RestartCommand",
        meaning: "The program that restarts the machine, and its arguments.",
        form: SettingForm::Command(|settings| &mut settings.restart_command),
    },
    Setting {
        name: "Width",
        meaning: "How many instances are worked on at once; 0 for as many as there are processors.",
        form: SettingForm::Count(0..=1024, |settings| &mut settings.width),
    },
    Setting {
        name: "SourceFolder",
        meaning: "The folder to take documents from: the bundle in it is delivered when it changes. Empty: no folder.",
        form: SettingForm::Folder(|settings| &mut settings.source_folder),
    },
    Setting {
        name: "RefreshFrequencyMins",
        meaning: "How often the folder that is followed is looked at.",
        form: SettingForm::Time(Unit::Minutes, SECOND..=MONTH, |settings| &mut settings.refresh_every),
    },
    Setting {
        name: "ReportUrl",
        meaning: "The address that a machine which follows releases sends its reports to, as it signs them. Empty: no address.",
        form: SettingForm::Web(|settings| &mut settings.report_url),
    },
    Setting {
        name: "Labels",
        meaning: "The labels of the machine in documents of the agent, as `facts('labels')` has them, and in its reports. They \
            count more than those of `/etc/stead/labels.yaml`, which other runs have as well.",
        form: SettingForm::Labels(|settings| &mut settings.labels),
    },
];

/// Settings of the Local Configuration Manager that have no meaning here, and why.
pub(super) const FOREIGN: [(&str, &str); 20] = [
    ("RefreshMode", DELIVERED),
    ("ConfigurationID", DELIVERED),
    ("ConfigurationDownloadManagers", DELIVERED),
    ("DownloadManagerName", DELIVERED),
    ("DownloadManagerCustomData", DELIVERED),
    ("Credential", DELIVERED),
    ("MaximumDownloadSizeMB", DELIVERED),
    ("ReportManagers", "reports are kept on this machine, and sent to the address of the setting ReportUrl"),
    ("ResourceModuleManagers", MODULES),
    ("AllowModuleOverwrite", MODULES),
    ("PartialConfigurations", "there is one document; it can include others"),
    ("CertificateID", "secrets are supplied by extensions"),
    ("SignatureValidationPolicy", UNSIGNED),
    ("SignatureValidations", UNSIGNED),
    ("DebugMode", "no resource is kept loaded between jobs"),
    ("AgentId", READ_ONLY),
    ("LCMVersion", READ_ONLY),
    ("LCMCompatibleVersions", READ_ONLY),
    ("LCMState", READ_ONLY),
    ("LCMStateDetail", READ_ONLY),
];

const DELIVERED: &str = "documents are delivered to the agent, or taken from the folder of the setting SourceFolder";
const MODULES: &str = "the agent installs no modules";
const UNSIGNED: &str = "signatures are not verified";
const READ_ONLY: &str = "it can only be read";

impl Setting {
    /// The setting of that name, whatever its case.
    pub fn find(name: &str) -> Option<&'static Self> {
        SETTINGS.iter().find(|setting| setting.name.eq_ignore_ascii_case(name))
    }

    /// The value in `settings`, as it is written in YAML on one line.
    pub fn value(&self, settings: &Settings) -> String {
        let mut settings = settings.clone();
        match &self.form {
            SettingForm::Truth(of) => of(&mut settings).to_string(),
            SettingForm::Count(_, of) => of(&mut settings).to_string(),
            SettingForm::Time(unit, _, of) => unit.count(*of(&mut settings)).to_string(),
            SettingForm::Word(words) => (words.get)(&settings).to_owned(),
            SettingForm::Command(of) => {
                let arguments: Vec<String> = of(&mut settings).iter().map(|argument| quoted(argument)).collect();
                format!("[{}]", arguments.join(", "))
            }
            SettingForm::Windows(of) => {
                let windows: Vec<String> = of(&mut settings).iter().map(written).collect();
                format!("[{}]", windows.join(", "))
            }
            SettingForm::Folder(of) => quoted(&folder(of(&mut settings).as_ref())),
            SettingForm::Web(of) => quoted(of(&mut settings).as_deref().unwrap_or_default()),
            SettingForm::Labels(of) => {
                let labels: Vec<String> =
                    of(&mut settings).iter().map(|(name, label)| format!("{name}: {}", quoted(&label.value))).collect();
                format!("{{{}}}", labels.join(", "))
            }
        }
    }

    /// The value in `settings`, as JSON.
    pub(super) fn json(&self, settings: &Settings) -> Json {
        let mut settings = settings.clone();
        match &self.form {
            SettingForm::Truth(of) => json!(of(&mut settings)),
            SettingForm::Count(_, of) => json!(of(&mut settings)),
            SettingForm::Time(unit, _, of) => whole(unit.count(*of(&mut settings))),
            SettingForm::Word(words) => json!((words.get)(&settings)),
            SettingForm::Command(of) => json!(of(&mut settings)),
            SettingForm::Windows(of) => of(&mut settings).iter().map(as_json).collect(),
            SettingForm::Folder(of) => json!(folder(of(&mut settings).as_ref())),
            SettingForm::Web(of) => json!(of(&mut settings).as_deref().unwrap_or_default()),
            SettingForm::Labels(of) => of(&mut settings).to_value().to_redacted_json(),
        }
    }

    /// Returns the values that it takes in words, such as `true or false`.
    pub fn values(&self) -> String {
        match &self.form {
            SettingForm::Truth(_) => "true or false".to_owned(),
            SettingForm::Count(range, _) => format!("a whole number from {} to {}", range.start(), range.end()),
            SettingForm::Time(unit, range, _) => {
                let (least, most) = (unit.shown(*range.start()), unit.shown(*range.end()));
                format!("a number of {}, at least {least} and at most {most}", unit.name())
            }
            SettingForm::Word(words) => format!("one of {}", (words.all)().join(", ")),
            SettingForm::Command(_) => "a program and its arguments, as an array of strings".to_owned(),
            SettingForm::Windows(_) => {
                "an array of windows such as {Days: [Sat, Sun], From: \"22:00\", To: \"04:00\", For: Any}".to_owned()
            }
            SettingForm::Labels(_) => "an object of names with texts such as {role: web}".to_owned(),
            SettingForm::Folder(_) => "the absolute path of a folder, without '..', or \"\" for none".to_owned(),
            SettingForm::Web(_) => {
                "an address of HTTPS without a user, a query and a fragment, or \"\" for none".to_owned()
            }
        }
    }
}

/// The setting that was most likely meant.
pub(super) fn meant(name: &str) -> Option<&'static str> {
    nearest(name, SETTINGS.iter().map(|setting| setting.name))
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Self::Seconds => "seconds",
            Self::Minutes => "minutes",
            Self::Days => "days",
        }
    }

    fn millis(self) -> f64 {
        match self {
            Self::Seconds => 1e3,
            Self::Minutes => 60e3,
            Self::Days => 86_400e3,
        }
    }

    fn count(self, time: Duration) -> f64 {
        time.as_secs_f64() * 1e3 / self.millis()
    }

    /// As a whole number of this unit, else of seconds.
    fn shown(self, time: Duration) -> String {
        let count = self.count(time);
        if count.fract() == 0.0 { count.to_string() } else { format!("{} s", time.as_secs_f64()) }
    }

    /// So many of it, to the millisecond.
    pub(super) fn time(self, count: f64) -> Option<Duration> {
        let exact = Duration::try_from_secs_f64(count * self.millis() / 1e3).ok()?;
        let rounded = exact.checked_add(Duration::from_micros(500))?.as_millis();
        u64::try_from(rounded).ok().map(Duration::from_millis)
    }
}

pub(super) fn word<T: Copy>(words: &[(&'static str, T)], text: &str) -> Option<T> {
    words.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)).map(|(_, meaning)| *meaning)
}

pub(super) fn names<T>(words: &[(&'static str, T)]) -> Vec<&'static str> {
    words.iter().map(|(name, _)| *name).collect()
}

fn name<T: PartialEq>(words: &[(&'static str, T)], wanted: &T) -> &'static str {
    words.iter().find(|(_, meaning)| meaning == wanted).map_or("", |(name, _)| name)
}

fn put<T>(place: &mut T, value: Option<T>) -> bool {
    value.map(|value| *place = value).is_some()
}

/// The path of a folder, or nothing.
fn folder(path: Option<&PathBuf>) -> String {
    path.map_or_else(String::new, |path| path.display().to_string())
}

/// As a string of JSON, in which nothing is left that YAML does not allow in text.
fn quoted(text: &str) -> String {
    let plain = |letter: char| letter.is_ascii_graphic() || letter == ' ' || letter.is_alphanumeric();
    let escaped = |letter: char| match u16::try_from(u32::from(letter)) {
        Ok(unit) if !plain(letter) => format!("\\u{unit:04x}"),
        _ => letter.to_string(),
    };
    serde_json::Value::from(text).to_string().chars().map(escaped).collect()
}

fn written(window: &Window) -> String {
    let days = match short_days(window) {
        days if days.is_empty() => String::new(),
        days => format!("Days: [{}], ", days.join(", ")),
    };
    let purpose = name(&PURPOSES, &window.purpose);
    format!("{{{days}From: \"{}\", To: \"{}\", For: {purpose}}}", time_of_day(window.from), time_of_day(window.to))
}

fn as_json(window: &Window) -> Json {
    let (from, to, purpose) = (time_of_day(window.from), time_of_day(window.to), name(&PURPOSES, &window.purpose));
    let mut members = json!({ "From": from, "To": to, "For": purpose });
    let days = short_days(window);
    if !days.is_empty() {
        members["Days"] = json!(days);
    }
    members
}

fn short_days(window: &Window) -> Vec<&'static str> {
    let names = window.days.iter().filter_map(|day| DAYS.get(usize::try_from(day - 1).ok()?)?.get(..3));
    names.collect()
}

fn time_of_day(time: Time) -> String {
    format!("{:02}:{:02}", time.hour(), time.minute())
}

/// A whole number where it is one.
fn whole(count: f64) -> Json {
    count.to_string().parse::<i64>().map_or_else(|_| json!(count), Json::from)
}
