//! Connections: TLS 1.3, HTTP/1.1, and what each may cost.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::{Controller, ControllerError, Stop};

/// How long a connection may take until TLS is agreed on, and then until the head of a request is there.
const HELLO: Duration = Duration::from_secs(10);
const HEAD: Duration = Duration::from_mins(1);
/// The longest head of a request, in bytes.
const LONGEST_HEAD: usize = 16 << 10;
/// How many connections there are at most. What is above it waits in the queue of the system.
const MOST_CONNECTIONS: usize = 60_000;
/// How many connections may wait to be accepted, as far as the system allows it. Behind that it drops them, and whoever connects tries again
/// after a second, and then after ever more: when all machines come back at once, and when others connect as fast as they can.
const QUEUE: u32 = 16_384;
/// How long connections may take to end when the controller does.
const END: Duration = Duration::from_secs(20);
/// How long, and for how many bytes, what comes behind the last answer is read.
const LINGER: Duration = Duration::from_secs(2);
const MOST_FORGOTTEN: usize = 1 << 20;
/// How often it is looked whether the certificate was replaced.
const RENEWAL: Duration = Duration::from_secs(2);
/// How long is waited when the system has no more descriptors.
const AGAIN: Duration = Duration::from_millis(50);

/// The certificate of a controller and its key, in PEM.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The certificate, with those behind it.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

impl TlsFiles {
    fn state(&self) -> FilesState {
        [&self.certificate, &self.key].map(|file| {
            let status = std::fs::metadata(file).ok()?;
            Some((status.modified().ok()?, status.len()))
        })
    }

    fn acceptor(&self) -> Result<TlsAcceptor, ControllerError> {
        let tls = |error: &dyn std::fmt::Display| ControllerError::Tls(error.to_string());
        let chain: Result<Vec<_>, _> =
            CertificateDer::pem_file_iter(&self.certificate).map_err(|why| tls(&why))?.collect();
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|why| tls(&why))?;
        let config = rustls::ServerConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
            .with_protocol_versions(&[&rustls::version::TLS13]);
        let config = config.map_err(|why| tls(&why))?.with_no_client_auth();
        let mut config = config.with_single_cert(chain.map_err(|why| tls(&why))?, key).map_err(|why| tls(&why))?;
        config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

/// An address that is listened on, before anybody is answered.
pub struct Bound {
    listener: TcpListener,
    certificate: Certificate,
}

/// Listens with a longer queue than [`TcpListener::bind`] asks for.
fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A controller that begins again does not wait until the connections of the former one are forgotten.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(QUEUE)
}

/// The certificate that is shown to whoever connects: that of the files, also when they are replaced.
struct Certificate {
    files: TlsFiles,
    state: FilesState,
    acceptor: TlsAcceptor,
}

/// The state by which files that were replaced are known: when each was changed, and how long it is.
type FilesState = [Option<(SystemTime, u64)>; 2];

impl Certificate {
    fn of(files: &TlsFiles) -> Result<Self, ControllerError> {
        // First the state: what is replaced in between is read once more the next time.
        let state = files.state();
        Ok(Self { files: files.clone(), state, acceptor: files.acceptor()? })
    }

    /// Reads the files again if they were replaced. Until both fit, the former ones count.
    fn renew(&mut self) {
        if self.files.state() == self.state {
            return;
        }
        match Self::of(&self.files) {
            Ok(renewed) => {
                *self = renewed;
                tracing::info!("the certificate was replaced");
            }
            Err(error) => tracing::warn!("the former certificate stays: {error}"),
        }
    }
}

impl Bound {
    /// Begins to listen, within a runtime.
    pub fn new(address: SocketAddr, files: &TlsFiles) -> Result<Self, ControllerError> {
        let certificate = Certificate::of(files)?;
        let listener = listen(address).map_err(|source| ControllerError::System { doing: "listen", source })?;
        Ok(Self { listener, certificate })
    }

    /// The address, with the port that was chosen.
    pub fn address(&self) -> Result<SocketAddr, ControllerError> {
        self.listener.local_addr().map_err(|source| ControllerError::System { doing: "listen", source })
    }

    /// Answers until `end`. Machines that wait are let go then, and requests under way are answered.
    pub async fn serve(mut self, controller: Arc<Controller>, stop: Stop, end: impl Future<Output = ()>) {
        let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        let mut connections = JoinSet::new();
        let keeping = tokio::spawn(Arc::clone(&controller).keep_heard());
        let tidying = tokio::spawn(Arc::clone(&controller).keep_tidy());
        tokio::pin!(end);
        let mut renewal = tokio::time::interval(RENEWAL);
        loop {
            let accepted = async {
                let place = Arc::clone(&room).acquire_owned().await;
                (place, self.listener.accept().await)
            };
            tokio::select! {
                (place, accepted) = accepted => match accepted {
                    Ok((stream, _)) => {
                        let acceptor = self.certificate.acceptor.clone();
                        connections.spawn(connection(stream, acceptor, Arc::clone(&controller), place));
                    }
                    Err(_) => tokio::time::sleep(AGAIN).await,
                },
                Some(_) = connections.join_next() => {}
                _ = renewal.tick() => self.certificate.renew(),
                () = &mut end => break,
            }
        }
        drop(self.listener);
        stop.stop();
        let all = async { while connections.join_next().await.is_some() {} };
        // Whoever is slower than that is cut off, and asks again.
        let _ = tokio::time::timeout(END, all).await;
        let _ = keeping.await;
        let _ = tidying.await;
    }
}

/// One connection until its end. What is wrong with it is its own matter.
///
/// What it needs only for a while is on the heap: ten thousand of them wait.
async fn connection<Place>(stream: TcpStream, acceptor: TlsAcceptor, controller: Arc<Controller>, _place: Place) {
    let _counted = Counted::new(&controller);
    let _ = stream.set_nodelay(true);
    let hello = Box::pin(tokio::time::timeout(HELLO, acceptor.accept(stream)));
    let Ok(Ok(mut stream)) = hello.await else { return };
    let mut stop = controller.stop.clone();
    let service = service_fn(move |request| {
        // An async block that captures a future stores it twice: as captured, and as awaited.
        let controller = Arc::clone(&controller);
        async move { Ok::<_, std::convert::Infallible>(controller.answer(request).await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(LONGEST_HEAD);
    let mut serve = Box::pin(builder.serve_connection(TokioIo::new(&mut stream), service));
    let ended = tokio::select! {
        _ = &mut serve => true,
        _ = stop.wait_for(|stop| *stop) => false,
    };
    if !ended {
        serve.as_mut().graceful_shutdown();
        let _ = serve.await;
        return;
    }
    drop(serve);
    let _ = tokio::time::timeout(LINGER, Box::pin(forget_the_rest(stream.get_mut().0))).await;
}

/// Reads what is still on its way, so that an answer that came before all of a request was read arrives: a system that closes a
/// connection of which something is unread resets it, and what was sent is lost with it.
async fn forget_the_rest(stream: &mut TcpStream) {
    let _ = stream.shutdown().await;
    let (mut room, mut left) = ([0; 4 << 10], MOST_FORGOTTEN);
    while let Ok(length @ 1..) = stream.read(&mut room).await
        && length < left
    {
        left -= length;
    }
}

/// A connection, as long as it is there.
struct Counted(Arc<Controller>);

impl Counted {
    fn new(controller: &Arc<Controller>) -> Self {
        controller.counters.connections.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(controller))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.counters.connections.fetch_sub(1, Ordering::Relaxed);
    }
}
