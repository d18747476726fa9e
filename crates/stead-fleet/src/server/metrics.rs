//! Figures for Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use stead_protocol::FleetStatus;

/// Counts since the controller began.
#[derive(Default)]
pub(super) struct Counters {
    /// The answers by their status.
    answers: Mutex<BTreeMap<u16, u64>>,
    /// Reports that were new.
    pub(super) reports: AtomicU64,
    /// Reports that were forgotten, since they were old.
    pub(super) forgotten: AtomicU64,
    /// Connections that there are.
    pub(super) connections: AtomicU64,
}

impl Counters {
    pub(super) fn answered(&self, status: u16) {
        *self.answers.lock().unwrap_or_else(PoisonError::into_inner).entry(status).or_default() += 1;
    }

    /// The figures, with those of the machines.
    pub(super) fn text(&self, status: &FleetStatus) -> String {
        let mut figures = Figures(String::new());
        let machines = status.machines.iter().map(|(state, count)| (format!("state=\"{state}\""), *count));
        figures.put("machines", "gauge", "How many machines are in this state.", machines);
        let channels = |of: fn(&stead_protocol::ChannelShown) -> u64| {
            status.channels.iter().map(move |channel| (format!("channel=\"{}\"", channel.channel), of(channel)))
        };
        figures.put(
            "channel_release",
            "gauge",
            "The number of the newest release.",
            channels(|channel| channel.number),
        );
        figures.put(
            "channel_machines",
            "gauge",
            "How many machines should come to it.",
            channels(|channel| channel.machines),
        );
        figures.put("channel_applied", "gauge", "How many say that they have it.", channels(|channel| channel.applied));
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let answers = answers.into_iter().map(|(status, count)| (format!("status=\"{status}\""), count));
        figures.put("answers_total", "counter", "How many requests were answered with this status.", answers);
        for (name, kind, help, value) in [
            ("reports_total", "counter", "How many reports were stored.", &self.reports),
            (
                "reports_forgotten_total",
                "counter",
                "How many reports were removed, since they were old.",
                &self.forgotten,
            ),
            ("connections", "gauge", "How many connections there are.", &self.connections),
        ] {
            figures.put(name, kind, help, [(String::new(), value.load(Ordering::Relaxed))].into_iter());
        }
        let one = |value: u64| [(String::new(), value)].into_iter();
        figures.put("roster", "gauge", "The number of the roster.", one(status.roster));
        figures.put(
            "start_time_seconds",
            "gauge",
            "When this controller began, in seconds since 1970.",
            one(status.started / 1000),
        );
        figures.0
    }
}

struct Figures(String);

impl Figures {
    fn put(&mut self, name: &str, kind: &str, help: &str, values: impl Iterator<Item = (String, u64)>) {
        // Writing to a string cannot fail.
        let _ = write!(self.0, "# HELP stead_fleet_{name} {help}\n# TYPE stead_fleet_{name} {kind}\n");
        for (labels, value) in values {
            let labels = if labels.is_empty() { labels } else { format!("{{{labels}}}") };
            let _ = writeln!(self.0, "stead_fleet_{name}{labels} {value}");
        }
    }
}
