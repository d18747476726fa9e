//! Laws of settings as text.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use jiff::civil::Time;
use proptest::prelude::*;
use stead_agent::{ActionAfterReboot, Backoff, NewDocument, Purpose, SETTINGS, Settings, Window};
use stead_core::document::ConfigurationMode;
use stead_core::source::SourceId;
use stead_host::facts::Labels;

/// These labels, as a file states them.
fn labels_of(texts: &BTreeMap<String, String>) -> Labels {
    let (labels, findings) = Labels::read(SourceId::default(), &serde_json::json!(texts).to_string());
    assert!(findings.is_empty(), "{texts:?}{findings:?}");
    labels
}

/// A time in whole milliseconds.
fn time(least: u64, most: u64) -> impl Strategy<Value = Duration> {
    (least..=most).prop_map(Duration::from_millis)
}

fn backoff(least: u64, most: u64) -> impl Strategy<Value = Backoff> {
    (time(least, most), time(least, most))
        .prop_map(|(one, other)| Backoff { base: one.min(other), cap: one.max(other) })
}

fn window() -> impl Strategy<Value = Window> {
    let time = || (0..24_i8, 0..60_i8).prop_map(|(hour, minute)| Time::constant(hour, minute, 0, 0));
    let days = proptest::collection::btree_set(1..=7_i8, 0..7).prop_map(|days| days.into_iter().collect());
    let purpose = prop_oneof![Just(Purpose::Any), Just(Purpose::Set), Just(Purpose::Restart)];
    (days, time(), time(), purpose).prop_map(|(days, from, to, purpose)| Window { days, from, to, purpose })
}

prop_compose! {
    fn settings()(
        mode in 0..4_usize,
        (reboot_node_if_needed, stops, refuses) in any::<(bool, bool, bool)>(),
        check_every in time(1_000, 2_678_400_000),
        splay in time(0, 2_678_400_000),
        (max_restarts, max_pending_retries) in (0..=1000_u32, any::<u32>()),
        pending_backoff in backoff(1_000, 2_678_400_000),
        (resource_retries, generations, width) in (0..=1000_u32, 0..=10_000_u32, 0..=1024_u32),
        resource_backoff in backoff(0, 86_400_000),
        resource_timeout in time(1_000, 2_678_400_000),
        windows in proptest::collection::vec(window(), 0..4),
        retention in time(86_400_000, 3_153_600_000_000),
        program in "[^\0]{1,20}",
        arguments in proptest::collection::vec("[^\0]{0,20}", 0..3),
        folder in proptest::option::of("/[^\0/.]{1,20}/[a-z]"),
        refresh_every in time(1_000, 2_678_400_000),
        report_path in proptest::option::of("[a-z]{0,8}"),
        labels in proptest::collection::btree_map("[a-zA-Z][a-zA-Z0-9_-]{0,8}", "[^\\pC\\s]([^\\pC]{0,8}[^\\pC\\s])?", 0..4),
    ) -> Settings {
        Settings {
            configuration_mode: ConfigurationMode::ALL[mode].1,
            check_every,
            splay,
            reboot_node_if_needed,
            action_after_reboot:
                if stops { ActionAfterReboot::StopConfiguration } else { ActionAfterReboot::ContinueConfiguration },
            max_restarts,
            new_document: if refuses { NewDocument::Refuse } else { NewDocument::Supersede },
            max_pending_retries,
            pending_backoff,
            resource_retries,
            resource_backoff,
            resource_timeout,
            windows,
            retention,
            generations,
            restart_command: std::iter::once(program).chain(arguments).collect(),
            width,
            source_folder: folder.map(PathBuf::from),
            refresh_every,
            report_url: report_path.map(|path| format!("https://example.org/{path}")),
            labels: labels_of(&labels),
        }
    }
}

proptest! {
    #[test]
    fn settings_that_are_printed_are_read_as_they_were(settings in settings()) {
        let text = settings.to_yaml();
        let (read, findings) = Settings::read(SourceId::default(), &text);
        prop_assert!(findings.is_empty(), "{text}{findings:?}");
        prop_assert_eq!(read, settings, "{}", text);
    }

    #[test]
    fn a_value_that_is_printed_is_taken(settings in settings(), number in 0..SETTINGS.len()) {
        let setting = &SETTINGS[number];
        // A wait alone may be in contradiction to the other one.
        if let Ok(one) = Settings::default().with(setting.name, &setting.value(&settings)) {
            prop_assert_eq!(setting.value(&one), setting.value(&settings));
        } else {
            prop_assert!(setting.name.contains("Retry"), "{}", setting.name);
        }
    }

    #[test]
    fn no_text_is_too_strange(text in "\\PC{0,80}", number in 0..SETTINGS.len()) {
        let name = SETTINGS[number].name;
        let _ = Settings::read(SourceId::default(), &format!("{name}: {text}\n"));
        let _ = Settings::default().with(name, &text);
    }
}

#[test]
fn the_defaults_are_allowed() {
    for setting in SETTINGS {
        let value = setting.value(&Settings::default());
        assert_eq!(Settings::default().with(setting.name, &value).unwrap(), Settings::default(), "{}", setting.name);
    }
}
