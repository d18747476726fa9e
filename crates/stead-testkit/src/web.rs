//! A web server of a test's own, which answers as the test likes, also wrongly.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

/// Answers one request per connection, one after the other, and keeps the heads of all, in lower case.
pub struct WebServer {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl WebServer {
    /// Starts it. `answer` gets the head of a request, and writes to the client, who may have gone.
    ///
    /// # Panics
    /// When the system gives no port.
    #[expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
    pub fn new(mut answer: impl FnMut(&str, &mut TcpStream) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, requests) = (listener.local_addr().unwrap(), Arc::<Mutex<Vec<String>>>::default());
        let kept = Arc::clone(&requests);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let Ok(mut client) = client else { return };
                let head = head(&mut client);
                kept.lock().unwrap_or_else(PoisonError::into_inner).push(head.to_lowercase());
                answer(&head, &mut client);
            }
        });
        Self { address, requests }
    }

    /// With the answers in their order, as they are sent; the last one is given for good.
    pub fn with(answers: Vec<Vec<u8>>) -> Self {
        let mut next = 0;
        Self::new(move |_, client| {
            if let Some(answer) = answers.get(next).or(answers.last()) {
                next += 1;
                let _ = client.write_all(answer);
            }
        })
    }

    /// The address of something there.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    /// The heads of the requests until now.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The head of a request, or what came before the client went.
fn head(client: &mut TcpStream) -> String {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") && client.read(&mut byte).is_ok_and(|read| read == 1) {
        head.extend(byte);
    }
    String::from_utf8_lossy(&head).into_owned()
}

/// An answer by its status, its headers, each with the end of its line, and its content. Nothing is added to them but that the
/// connection ends.
pub fn web_answer(status: &str, headers: &str, content: &[u8]) -> Vec<u8> {
    let mut answer = format!("HTTP/1.1 {status}\r\nconnection: close\r\n{headers}\r\n").into_bytes();
    answer.extend_from_slice(content);
    answer
}
