//! A source of deliveries that is given to the agent in place of the folder that the settings name.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use stead_agent::control::{AgentStatus, ReadStatus};
use stead_agent::{BOOT_ID, Delivered, Newer, Options, STOP_GRACE, Source, call};
use stead_core::bundle::Bundle;
use stead_engine::{Host, HostOptions};
use stead_system::Cancel;
use stead_testkit::until;

/// Is closed at first, fails once, and then has one delivery. Every question is noted.
#[derive(Default)]
struct Shop(Mutex<Vec<(Timestamp, Option<String>)>>);

const CLOSED: Duration = Duration::from_millis(300);

impl fmt::Display for Shop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the shop")
    }
}

impl Source for Shop {
    fn newer(&self, than: Option<&str>) -> Result<Newer, Box<dyn Error>> {
        let mut asked = self.0.lock().unwrap();
        asked.push((Timestamp::now(), than.map(str::to_owned)));
        match asked.len() {
            1 => Ok(Newer::NotNow { until: Timestamp::now() + CLOSED }),
            2 => Err("it is on fire".into()),
            3 => {
                let text = Arc::from("resources: [{name: a, type: Microsoft.DSC.Debug/Echo, properties: {output: 1}}]");
                let bundle = Bundle::new(None, ("site.yaml".to_owned(), text), BTreeMap::new()).unwrap();
                let delivered =
                    Delivered::of_bundle("site.yaml".to_owned(), &bundle, serde_json::Map::new(), "/".into());
                Ok(Newer::Delivery { digest: Some("first".to_owned()), delivered: Box::new(delivered) })
            }
            _ => Ok(Newer::Nothing),
        }
    }
}

fn status(directory: &Path) -> Option<AgentStatus> {
    call(directory, ReadStatus {}).ok()?.ok().map(|answered| answered.answer)
}

fn options(directory: &Path, cancel: &Cancel, source: Arc<dyn Source>) -> Options {
    Options {
        directory: directory.to_owned(),
        boot_id: BOOT_ID.into(),
        host: Host::new(HostOptions::default()),
        stop: cancel.clone(),
        look: Arc::default(),
        stop_grace: STOP_GRACE,
        sinks: Vec::new(),
        source: Some(source),
    }
}

/// Always says that it answers again a minute ago.
#[derive(Default)]
struct Late(AtomicUsize);

impl fmt::Display for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the late one")
    }
}

impl Source for Late {
    fn newer(&self, _: Option<&str>) -> Result<Newer, Box<dyn Error>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(Newer::NotNow { until: Timestamp::now() - Duration::from_mins(1) })
    }
}

#[test]
fn a_time_that_has_passed_is_no_reason_to_ask_again_at_once() {
    let place = tempfile::tempdir().unwrap();
    let (directory, late, cancel) = (place.path().join("agent"), Arc::new(Late::default()), Cancel::default());
    let options = options(&directory, &cancel, Arc::clone(&late) as Arc<dyn Source>);
    let agent = thread::spawn(move || stead_agent::run(options).map_err(|error| error.to_string()));
    until(|| (late.0.load(Ordering::Relaxed) >= 1).then_some(()));
    for _ in 0..20 {
        until(|| status(&directory));
    }
    assert_eq!(late.0.load(Ordering::Relaxed), 1, "once a minute is usual");
    cancel.cancel();
    assert_eq!(agent.join().unwrap(), Ok(()));
}

#[test]
fn a_source_is_asked_when_it_answers_and_what_it_has_is_taken_once() {
    let place = tempfile::tempdir().unwrap();
    let (directory, shop, cancel) = (place.path().join("agent"), Arc::new(Shop::default()), Cancel::default());
    let options = options(&directory, &cancel, Arc::clone(&shop) as Arc<dyn Source>);
    let agent = thread::spawn(move || stead_agent::run(options).map_err(|error| error.to_string()));
    until(|| status(&directory)?.source.filter(|source| source.place == "the shop"));
    // It was closed, and is asked again when it opens.
    until(|| status(&directory)?.source?.failure.filter(|failure| failure == "it is on fire"));
    // Asked at once, as an operator does it: what failed is no longer shown.
    let settings = vec![("RefreshFrequencyMins".to_owned(), "0.02".to_owned())];
    call(&directory, stead_agent::control::ChangeSettings { changes: settings }).unwrap().unwrap();
    until(|| status(&directory)?.source.filter(|source| source.taken.as_deref() == Some("first")));
    until(|| (shop.0.lock().unwrap().len() >= 5).then_some(()));
    let found = status(&directory).unwrap();
    assert_eq!(found.source.unwrap().failure, None);
    assert_eq!(found.status.current.or(found.status.pending), Some(1), "it was taken once");
    let asked = shop.0.lock().unwrap().clone();
    assert!(asked[1].0 >= asked[0].0 + CLOSED, "not before it opens: {asked:?}");
    let than: Vec<_> = asked.iter().map(|(_, than)| than.as_deref()).take(5).collect();
    assert_eq!(than, [None, None, None, Some("first"), Some("first")]);
    cancel.cancel();
    assert_eq!(agent.join().unwrap(), Ok(()));
}
