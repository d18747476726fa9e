//! A proxy that ends TLS: it is asked openly, and asks the controller.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use ureq::Agent;

use crate::site::{Site, try_ask};

/// The headers that are handed on.
const REQUEST: [&str; 6] = ["stead-request", "stead-signature", "stead-heartbeat", "prefer", "if-none-match", "range"];
const RESPONSE: [&str; 7] =
    ["stead-session", "stead-epoch", "stead-hold", "stead-life", "etag", "retry-after", "content-range"];

/// A proxy, until the process ends.
pub(crate) struct Proxy {
    pub(crate) url: String,
    leads_to: Arc<Mutex<(Agent, String)>>,
    refuses: Arc<Mutex<Option<String>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    pub(crate) fn start(site: &Site) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let leads_to = Arc::new(Mutex::new((site.agent.clone(), site.url.clone())));
        let refuses = Arc::new(Mutex::new(None));
        let asked = Arc::default();
        let (to, not, heard) = (Arc::clone(&leads_to), Arc::clone(&refuses), Arc::clone(&asked));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (to, not, heard) = (Arc::clone(&to), Arc::clone(&not), Arc::clone(&heard));
                std::thread::spawn(move || hand_on(stream, &to, &not, &heard));
            }
        });
        Self { url, leads_to, refuses, asked }
    }

    /// Has it answer files of releases itself, with this after the name of HTTP.
    pub(crate) fn refuse(&self, answer: Option<String>) {
        *self.refuses.lock().unwrap() = answer;
    }

    /// Returns whether a path that begins like this was asked for.
    pub(crate) fn was_asked_for(&self, path: &str) -> bool {
        self.asked.lock().unwrap().iter().any(|asked| asked.starts_with(path))
    }

    pub(crate) fn lead_to(&self, site: &Site) {
        *self.leads_to.lock().unwrap() = (site.agent.clone(), site.url.clone());
    }
}

/// Hands the requests of a connection on; `None` when it is over.
fn hand_on(
    stream: TcpStream,
    to: &Mutex<(Agent, String)>,
    refuses: &Mutex<Option<String>>,
    asked: &Mutex<Vec<String>>,
) -> Option<()> {
    let mut answers = stream.try_clone().ok()?;
    let mut requests = BufReader::new(stream);
    loop {
        let mut first = String::new();
        requests.read_line(&mut first).ok().filter(|read| *read > 0)?;
        let (method, path) = first.split_once(' ')?;
        let (path, _) = path.split_once(' ')?;
        asked.lock().unwrap().push(path.to_owned());
        let (mut headers, mut length) = (Vec::new(), 0);
        loop {
            let mut line = String::new();
            requests.read_line(&mut line).ok()?;
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            let name = name.to_ascii_lowercase();
            if name == "content-length" {
                length = value.parse().ok()?;
            }
            headers.extend(REQUEST.iter().filter(|known| **known == name).map(|known| (*known, value.to_owned())));
        }
        let mut body = vec![0; length];
        requests.read_exact(&mut body).ok()?;
        if let Some(answer) = refuses.lock().unwrap().clone().filter(|_| path.starts_with("/v1/source/")) {
            answers.write_all(format!("HTTP/1.1 {answer}").as_bytes()).ok()?;
            continue;
        }
        let (agent, url) = to.lock().unwrap().clone();
        match try_ask(&agent, &format!("{url}{path}"), method, &headers, &body) {
            Ok(answer) => {
                let mut head = format!("HTTP/1.1 {} -\r\n", answer.status);
                for name in RESPONSE {
                    head += &answer.header(name).map_or_else(String::new, |value| format!("{name}: {value}\r\n"));
                }
                if answer.status != 304 {
                    head.push_str("content-length: ");
                    head.push_str(&answer.body.len().to_string());
                    head.push_str("\r\n");
                }
                answers
                    .write_all(format!("{head}\r\n").as_bytes())
                    .and_then(|()| answers.write_all(&answer.body))
                    .ok()?;
            }
            Err(_) => answers.write_all(b"HTTP/1.1 502 -\r\ncontent-length: 5\r\n\r\naway\n").ok()?,
        }
    }
}
