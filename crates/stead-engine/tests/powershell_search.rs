//! When PowerShell is looked for.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use stead_core::event::Mode;
use stead_core::id::TypeName;
use stead_core::value::Object;
use stead_engine::{Host, HostOptions, RunOptions};

#[test]
fn powershell_is_looked_for_once_and_only_for_what_may_be_its_resource() {
    let folder = tempfile::tempdir().unwrap();
    let searches = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&searches);
    let search = move || {
        counter.fetch_add(1, Ordering::Relaxed);
        None
    };
    let host = Host::new(HostOptions { powershell: Some(Arc::new(search)), ..HostOptions::default() });
    let mut session = host.session(folder.path());
    let text = "resources:\n- {name: motd, type: Stead/File, properties: {path: motd, content: hello}}\n";
    let Ok(prepared) = session.prepare("main.yaml", text, Object::new()) else { panic!("it is a document") };
    session.run(&prepared, RunOptions::new(Mode::APPLY, host.width())).unwrap();
    assert_eq!(searches.load(Ordering::Relaxed), 0);
    for _ in 0..2 {
        assert!(host.session(folder.path()).find(&TypeName::parse("Some/Resource").unwrap(), None).is_err());
    }
    assert_eq!(searches.load(Ordering::Relaxed), 1);
}
