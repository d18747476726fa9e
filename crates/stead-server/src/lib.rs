//! A server of the Model Context Protocol: lets a program call stead over standard input and output.
//!
//! This crate is about the protocol alone. What a call means is decided by whoever implements [`Engine`]; the protocol's
//! library, which needs an async runtime, is seen by nobody else.

mod request;
mod tools;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer, ServerInitializeError};
use rmcp::{ServerHandler, ServiceExt};
use serde_json::Value;

pub use request::{Operation, Request};

/// How long calls that are under way may take to end when the caller has gone.
const GRACE: Duration = Duration::from_secs(10);

/// What carries out calls.
pub trait Engine: Send + Sync + 'static {
    /// Carries out one call: an object, or in words why there is none. Blocks; called from several threads at once.
    ///
    /// Once `cancel` is set nobody waits for the answer, and it should end in order and soon.
    fn answer(&self, request: Request, cancel: &Arc<AtomicBool>) -> Result<Value, String>;
}

/// Why the server ended, other than by being left.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The runtime cannot be started.
    #[error("cannot start the server: {0}")]
    Start(#[from] io::Error),
    /// The caller speaks something else.
    #[error("the caller does not speak the Model Context Protocol: {0}")]
    Protocol(#[from] Box<ServerInitializeError>),
    /// The loop that reads calls panicked.
    #[error("the server ended unexpectedly")]
    Defect,
}

/// Serves calls on standard input and output until standard input ends, or `stop` returns, which is called on a thread of
/// its own.
///
/// Guarantees: nothing but the protocol is written to standard output. A call that changes the machine has it for
/// itself: no other is carried out meanwhile. When the caller goes or the server is stopped, what is under way is cancelled, and
/// has some seconds to end in order.
pub fn serve(version: &str, engine: impl Engine, stop: impl FnOnce() + Send + 'static) -> Result<(), ServerError> {
    let (stopping, mut is_stopped) = tokio::sync::oneshot::channel();
    std::thread::Builder::new().name("stop".to_owned()).spawn(move || {
        stop();
        // Nobody listens any more once it has ended.
        let _ = stopping.send(());
    })?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let running = Arc::<Running>::default();
    let server = Server { version: version.to_owned(), engine: Arc::new(Exclusive::new(engine)), running };
    let running = Arc::clone(&server.running);
    let conversation = async {
        let service = match server.serve((tokio::io::stdin(), tokio::io::stdout())).await {
            Ok(service) => service,
            // Whoever starts a server and leaves has not done anything wrong.
            Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => return Err(ServerError::Protocol(Box::new(error))),
        };
        service.waiting().await.map(|_| ()).map_err(|_| ServerError::Defect)
    };
    let ended = runtime.block_on(async {
        tokio::select! {
            ended = conversation => ended,
            Ok(()) = &mut is_stopped => Ok(()),
        }
    });
    running.cancel();
    running.await_end(GRACE);
    // Its thread may wait for input that never comes.
    runtime.shutdown_background();
    ended
}

/// Keeps calls that change the machine apart from all others.
struct Exclusive<E> {
    engine: E,
    turn: RwLock<()>,
}

impl<E: Engine> Exclusive<E> {
    fn new(engine: E) -> Self {
        Self { engine, turn: RwLock::new(()) }
    }

    fn answer(&self, request: Request, cancel: &Arc<AtomicBool>) -> Result<Value, String> {
        if request.changes() {
            let _turn = self.turn.write().unwrap_or_else(PoisonError::into_inner);
            self.begin(request, cancel)
        } else {
            let _turn = self.turn.read().unwrap_or_else(PoisonError::into_inner);
            self.begin(request, cancel)
        }
    }

    /// What was cancelled while it waited for its turn does not begin.
    fn begin(&self, request: Request, cancel: &Arc<AtomicBool>) -> Result<Value, String> {
        if cancel.load(Ordering::SeqCst) {
            return Err("cancelled".to_owned());
        }
        self.engine.answer(request, cancel)
    }
}

/// The calls under way, to be cancelled when the caller goes.
#[derive(Default)]
struct Running(Mutex<Vec<Weak<Call>>>);

/// A call, until its engine has answered.
struct Call {
    cancel: Arc<AtomicBool>,
}

impl Running {
    fn begin(&self) -> Arc<Call> {
        let call = Arc::new(Call { cancel: Arc::default() });
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        calls.retain(|call| call.strong_count() > 0);
        calls.push(Arc::downgrade(&call));
        call
    }

    fn cancel(&self) {
        let calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        calls.iter().filter_map(Weak::upgrade).for_each(|call| call.cancel.store(true, Ordering::SeqCst));
    }

    /// Waits until no call is under way, at most so long.
    fn await_end(&self, longest: Duration) {
        const POLL: Duration = Duration::from_millis(10);
        let began = Instant::now();
        let is_any =
            || self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|call| call.strong_count() > 0);
        while is_any() && began.elapsed() < longest {
            std::thread::sleep(POLL);
        }
    }
}

struct Server<E> {
    version: String,
    engine: Arc<Exclusive<E>>,
    running: Arc<Running>,
}

impl<E: Engine> Server<E> {
    /// Carries out a call on a thread of its own: engines block.
    async fn carry_out(&self, request: Request, context: &RequestContext<RoleServer>) -> Result<Value, String> {
        let under_way = self.running.begin();
        let (engine, cancel) = (Arc::clone(&self.engine), Arc::clone(&under_way.cancel));
        let mut call = tokio::task::spawn_blocking(move || engine.answer(request, &under_way.cancel));
        let answer = tokio::select! {
            answer = &mut call => answer,
            () = context.ct.cancelled() => {
                cancel.store(true, Ordering::SeqCst);
                call.await
            }
        };
        answer
            .unwrap_or_else(|_| Err("internal error; standard error has the place; please report this bug".to_owned()))
    }
}

impl<E: Engine> ServerHandler for Server<E> {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("stead", self.version.as_str()))
            .with_instructions(tools::INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::all()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::all().into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = call.arguments.unwrap_or_default();
        let request =
            Request::parse(&call.name, arguments).map_err(|message| ErrorData::invalid_params(message, None))?;
        let result = match self.carry_out(request, &context).await {
            Ok(value) => CallToolResult::structured(value),
            Err(message) => CallToolResult::error(vec![ContentBlock::text(message)]),
        };
        Ok(result.into())
    }
}
