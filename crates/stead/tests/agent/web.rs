//! A machine that follows releases on a web server.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash as _, Hasher as _};
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use stead_testkit::{WebServer, web_answer};

use crate::releases::{BOTH, FOR_WEB, Shop};

/// A server of a folder, which knows tags of contents. While it is busy, it wants to be left alone for an hour.
fn serve(folder: PathBuf, busy: Arc<AtomicBool>) -> WebServer {
    WebServer::new(move |head, client| {
        let path = head.split(' ').nth(1).and_then(|path| path.strip_prefix("/shop/")).unwrap_or_default();
        let answer = match fs::read(folder.join(path)) {
            _ if busy.load(Ordering::SeqCst) => {
                web_answer("503 Service Unavailable", "retry-after: 3600\r\ncontent-length: 0\r\n", b"")
            }
            Err(_) => web_answer("404 Not Found", "content-length: 0\r\n", b""),
            Ok(content) => {
                let mut hasher = DefaultHasher::new();
                content.hash(&mut hasher);
                let tag = format!("\"{:016x}\"", hasher.finish());
                if head.contains(&tag) {
                    web_answer("304 Not Modified", "", b"")
                } else {
                    web_answer("200 OK", &format!("etag: {tag}\r\ncontent-length: {}\r\n", content.len()), &content)
                }
            }
        };
        let _ = client.write_all(&answer);
    })
}

#[test]
fn releases_come_from_a_web_server_which_is_left_alone_when_it_is_busy() {
    let mut shop = Shop::new();
    let busy = Arc::new(AtomicBool::new(false));
    let server = serve(shop.machine.path("fleet"), Arc::clone(&busy));
    shop.publish("one", FOR_WEB);
    shop.enrol(BOTH);
    shop.follow(&server.url("shop/"));
    shop.until_kept("one");
    shop.publish("two", FOR_WEB);
    shop.until_kept("two");
    // Half a release is nothing.
    shop.publish("three", "--where role=web --expires 90d --sign ann");
    shop.until_code("E1404");
    shop.stead("release sign fleet/web/3.release --sign ben");
    shop.until_kept("three");
    let requests = server.requests();
    let blobs: Vec<_> = requests.iter().filter(|each| each.starts_with("get /shop/blobs/")).collect();
    assert_eq!(blobs.len(), 3, "{blobs:?}");
    let roots: Vec<_> = requests.iter().filter(|each| each.starts_with("get /shop/root ")).collect();
    assert!(roots.len() > 2 && roots[1..].iter().all(|each| each.contains("if-none-match: ")), "{roots:?}");
    // The machine is kept meanwhile, for longer than a look would take, and the server is not asked.
    busy.store(true, Ordering::SeqCst);
    // Nobody asks for a look: one that was asked for could come behind the one that finds the server busy.
    let source = shop.until_source_by_itself(|source| source["Releases"]["Offline"]["Reason"].is_string());
    let why = source["Releases"]["Offline"]["Reason"].as_str().unwrap();
    assert!(why.contains("503 Service Unavailable, and wants to be left alone until 2"), "{why}");
    let asked = server.requests().len();
    for _ in 0..2 {
        shop.machine.write("kept", "drifted\n");
        shop.until_kept("three");
    }
    assert_eq!((server.requests().len(), shop.machine.status_and_code().1), (asked, Some(0)));
    shop.machine.stop();
}
