//! Downloads over TLS, by a process that trusts the authority that is named in `SSL_CERT_FILE`.

use std::path::PathBuf;
use std::process::Command;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::*;

/// In the environment of a process that downloads: what it is to set.
const DESIRED: &str = "STEAD_TEST_DESIRED";

/// The authority that vouches for the server, as `localhost`. Both are valid until 2120.
const AUTHORITY: &str = "authority.pem";

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/tls").join(name)
}

impl Server {
    fn secure(answers: Vec<String>) -> Self {
        let certificate = CertificateDer::from_pem_file(file("server.pem")).unwrap();
        let key = PrivateKeyDer::from_pem_file(file("server.key")).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = Arc::new(config.with_no_client_auth().with_single_cert(vec![certificate], key).unwrap());
        Self::over(answers, move |client| StreamOwned::new(ServerConnection::new(Arc::clone(&config)).unwrap(), client))
    }

    fn secure_url(&self, host: &str) -> String {
        format!("https://{host}:{}/x", self.address.port())
    }
}

/// Returns the file that a process that trusts an authority downloads, or why it does not.
fn downloaded(authority: &str, url: &str) -> String {
    let desired = json!({"path": "f", "url": url, "checksum": DIGEST, "headers": {"x-token": "canary"}});
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tls::process_that_downloads", "--nocapture"])
        .envs([("SSL_CERT_FILE", file(authority)), (DESIRED, desired.to_string().into())])
        .env_remove("SSL_CERT_DIR")
        .output()
        .unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    let result = output.lines().find_map(|line| line.strip_prefix("result: "));
    result.unwrap_or_else(|| panic!("{output}")).to_owned()
}

/// The process that is started with another environment.
#[test]
fn process_that_downloads() {
    let Ok(desired) = std::env::var(DESIRED) else { return };
    let (world, desired) = (World::build(""), serde_json::from_str(&desired).unwrap());
    let result = set(&world, &desired, Execution::Actual).map_or_else(|failure| failure.message, |_| content(&world));
    println!("\nresult: {result}");
}

#[test]
fn a_server_is_trusted_that_a_trusted_authority_vouches_for() {
    let server = Server::secure(vec![whole("abcdefghij")]);
    assert_eq!(downloaded(AUTHORITY, &server.secure_url("localhost")), "abcdefghij");
    assert!(server.requests()[0].contains("x-token: canary"));
}

#[test]
fn an_unknown_authority_is_refused() {
    let server = Server::secure(vec![whole("abcdefghij")]);
    let result = downloaded("other-authority.pem", &server.secure_url("localhost"));
    assert!(result.ends_with("invalid peer certificate: UnknownIssuer"), "{result}");
}

#[test]
fn another_name_is_refused() {
    let server = Server::secure(vec![whole("abcdefghij")]);
    let result = downloaded(AUTHORITY, &server.secure_url("127.0.0.1"));
    assert!(result.contains("not valid for name") || result.contains("NotValidForName"), "{result}");
}

#[test]
fn a_server_without_a_certificate_is_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://localhost:{}/x", listener.local_addr().unwrap().port());
    std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        client.write_all(whole("abcdefghij").as_bytes()).unwrap();
    });
    let result = downloaded(AUTHORITY, &url);
    assert!(result.starts_with(&format!("cannot download '{url}'")), "{result}");
}

#[test]
fn without_trusted_authorities_only_http_is_left() {
    let server = Server::new(vec![whole("abcdefghij")]);
    assert_eq!(downloaded("server.key", &server.url("x")), "abcdefghij");
    let result = downloaded("server.key", "https://localhost:1/x");
    assert!(result.contains("the system has no certificates to check the server with"), "{result}");
}

#[test]
fn a_redirect_from_https_to_http_is_refused() {
    let plain = Server::new(vec![whole("abcdefghij")]);
    let target = plain.url("there?key=secret");
    let redirect = answer("302 Found", &format!("location: {target}\r\ncontent-length: 0\r\n"), "");
    let server = Server::secure(vec![redirect]);
    let result = downloaded(AUTHORITY, &server.secure_url("localhost"));
    assert!(result.ends_with(&format!("redirects from HTTPS to HTTP, to '{}'", plain.url("there"))), "{result}");
    assert!(plain.requests().is_empty());
}

#[test]
fn a_redirect_to_https_is_followed_without_headers() {
    let secure = Server::secure(vec![whole("abcdefghij"), whole("abcdefghij")]);
    let target = secure.secure_url("localhost");
    let redirect = answer("302 Found", &format!("location: {target}\r\ncontent-length: 0\r\n"), "");
    for server in [Server::new(vec![redirect.clone()]), Server::secure(vec![redirect])] {
        let url = if secure.requests().is_empty() { server.url("x") } else { server.secure_url("localhost") };
        assert_eq!(downloaded(AUTHORITY, &url), "abcdefghij");
    }
    assert!(secure.requests().iter().all(|request| !request.contains("canary")), "{:?}", secure.requests());
}

#[test]
fn a_redirect_to_something_else_is_refused() {
    let redirect = answer("302 Found", "location: file:///etc/passwd\r\ncontent-length: 0\r\n", "");
    let server = Server::new(vec![redirect]);
    let result = downloaded(AUTHORITY, &server.url("x"));
    assert!(result.ends_with("redirects to 'file:///etc/passwd', which is not HTTP"), "{result}");
}
