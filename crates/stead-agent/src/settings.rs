//! The decisions of an administrator about the agent. Names and meaning are those of the settings of the DSC Local
//! Configuration Manager, where it has them.

mod file;
mod table;

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use stead_core::document::ConfigurationMode;
use stead_host::facts::Labels;

use crate::window::Window;
pub use file::{InvalidSetting, codes};
pub use table::{SETTINGS, Setting};

/// The settings of the agent.
///
/// # Examples
/// ```
/// use std::time::Duration;
///
/// use stead_agent::Settings;
/// use stead_core::text::SourceId;
///
/// // What a file does not state has its default.
/// let (settings, findings) = Settings::read(SourceId::default(), "RebootNodeIfNeeded: true\n");
/// assert!(findings.is_empty());
/// assert!(settings.reboot_node_if_needed);
/// assert_eq!(settings.check_every, Duration::from_mins(15));
///
/// // One setting at a time, as `stead agent settings NAME=VALUE` has it.
/// let settings = settings.with("maxrestarts", "2")?;
/// assert_eq!(settings.max_restarts, 2);
/// let error = settings.with("MaxRestart", "2").unwrap_err();
/// assert!(error.help.unwrap_or_default().contains("MaxRestarts"));
///
/// // A file that is written is read as the same settings.
/// assert_eq!(Settings::read(SourceId::default(), &settings.to_yaml()).0, settings);
/// # Ok::<(), stead_agent::InvalidSetting>(())
/// ```
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Settings {
    /// The mode of a document that does not state one itself.
    pub configuration_mode: ConfigurationMode,
    /// How often the current document is checked.
    pub check_every: Duration,
    /// Up to how much later than that, so that not all machines do it at once.
    pub splay: Duration,
    /// True if the machine is restarted when a resource asks for it.
    pub reboot_node_if_needed: bool,
    /// The action after a restart that a resource asked for.
    pub action_after_reboot: ActionAfterReboot,
    /// How often a document may have the machine restarted before it has converged.
    pub max_restarts: u32,
    /// The treatment of a document that is delivered while another is pending.
    pub new_document: NewDocument,
    /// How often a pending document that failed is tried again; 0 for as often as it takes.
    pub max_pending_retries: u32,
    /// How long is waited before a pending document is tried again.
    pub pending_backoff: Backoff,
    /// How often a resource that fails is tried again within one job.
    pub resource_retries: u32,
    /// How long is waited before that.
    pub resource_backoff: Backoff,
    /// How long one call of a program may take.
    pub resource_timeout: Duration,
    /// When the machine may be changed and restarted; at any time if there is none.
    pub windows: Vec<Window>,
    /// How long reports are kept.
    pub retention: Duration,
    /// How many generations are kept, besides those that are staged.
    pub generations: u32,
    /// The command that restarts the machine: a program and its arguments.
    pub restart_command: Vec<String>,
    /// How many instances are worked on at once; 0 for as many as there are processors.
    pub width: u32,
    /// The folder that is followed: the bundle in it is what is delivered.
    pub source_folder: Option<PathBuf>,
    /// How often it is looked at.
    pub refresh_every: Duration,
    /// The address of a web server that reports are sent to.
    pub report_url: Option<String>,
    /// The labels of the machine in jobs of the agent, besides those of its file.
    pub labels: Labels,
}

/// The action after a restart that a resource asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum ActionAfterReboot {
    /// The document is worked on.
    #[default]
    ContinueConfiguration,
    /// It stays pending until an operator asks for it.
    StopConfiguration,
}

/// The treatment of a document that is delivered while another is pending.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum NewDocument {
    /// It takes its place: the newest wins.
    #[default]
    Supersede,
    /// It is refused, as the Local Configuration Manager does without `-Force`.
    Refuse,
}

/// Waits that become longer: `base`, then twice as long each time, at most `cap`.
///
/// # Examples
/// ```
/// use std::time::Duration;
///
/// use stead_agent::Backoff;
///
/// let backoff = Backoff { base: Duration::from_secs(30), cap: Duration::from_secs(100) };
/// assert_eq!([0, 1, 2, 3, 99].map(|failures| backoff.after(failures).as_secs()), [0, 30, 60, 100, 100]);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Backoff {
    /// The first wait.
    pub base: Duration,
    /// The longest wait.
    pub cap: Duration,
}

impl Backoff {
    /// The wait after so many tries that failed; none after none.
    pub fn after(self, failures: u32) -> Duration {
        match failures.checked_sub(1) {
            None => Duration::ZERO,
            Some(doublings) => {
                let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
                self.base.saturating_mul(factor).min(self.cap)
            }
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            configuration_mode: ConfigurationMode::default(),
            check_every: Duration::from_mins(15),
            splay: Duration::ZERO,
            reboot_node_if_needed: false,
            action_after_reboot: ActionAfterReboot::default(),
            max_restarts: 5,
            new_document: NewDocument::default(),
            max_pending_retries: 0,
            pending_backoff: Backoff { base: Duration::from_secs(30), cap: Duration::from_mins(30) },
            resource_retries: 2,
            resource_backoff: Backoff { base: Duration::from_secs(3), cap: Duration::from_mins(1) },
            resource_timeout: Duration::from_mins(10),
            windows: Vec::new(),
            retention: Duration::from_hours(10 * 24),
            generations: 10,
            restart_command: vec!["systemctl".to_owned(), "reboot".to_owned()],
            width: 0,
            source_folder: None,
            report_url: None,
            refresh_every: Duration::from_mins(1),
            labels: Labels::default(),
        }
    }
}
