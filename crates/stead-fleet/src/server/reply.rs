//! Answers of HTTP.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};
use serde::Serialize;

use crate::store::{FleetStoreError, WriteRefusal, WriterError};

/// An answer.
pub(super) type Reply = Response<Full<Bytes>>;

/// The mark of the answer that there were other acts since.
#[derive(Clone)]
pub(super) struct OtherActs;

/// How long whoever asks is to wait when the store is away, in seconds.
const LATER: u16 = 5;

/// An answer of words.
pub(super) fn said(status: StatusCode, text: impl Into<String>) -> Reply {
    let mut reply = Response::new(Full::new(Bytes::from(text.into() + "\n")));
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    reply
}

/// An answer in JSON.
pub(super) fn json(value: &impl Serialize) -> Reply {
    match serde_json::to_vec(value) {
        Ok(bytes) => bytes_of("application/json", bytes.into()),
        Err(error) => said(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    }
}

/// An answer of bytes.
pub(super) fn bytes_of(kind: &'static str, bytes: Bytes) -> Reply {
    let mut reply = Response::new(Full::new(bytes));
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    reply
}

/// The answer with a header more; without it if its text is none of a header.
pub(super) fn with(mut reply: Reply, name: HeaderName, value: &str) -> Reply {
    if let Ok(value) = HeaderValue::from_str(value) {
        reply.headers_mut().insert(name, value);
    }
    reply
}

/// The answer to what is not understood.
pub(super) fn bad(why: impl Into<String>) -> Reply {
    said(StatusCode::BAD_REQUEST, why)
}

/// The answer while the store is away.
pub(super) fn later(why: impl std::fmt::Display) -> Reply {
    let reply = said(StatusCode::SERVICE_UNAVAILABLE, why.to_string());
    with(reply, RETRY_AFTER, &LATER.to_string())
}

impl From<FleetStoreError> for Box<Reply> {
    fn from(error: FleetStoreError) -> Self {
        Box::new(later(error))
    }
}

impl From<WriterError> for Box<Reply> {
    fn from(error: WriterError) -> Self {
        Box::new(later(error))
    }
}

impl From<WriteRefusal> for Box<Reply> {
    fn from(refusal: WriteRefusal) -> Self {
        if refusal == WriteRefusal::Behind {
            return Self::new(later(refusal));
        }
        let status = match &refusal {
            WriteRefusal::Token | WriteRefusal::Invitation => StatusCode::FORBIDDEN,
            WriteRefusal::Full(_) => StatusCode::TOO_MANY_REQUESTS,
            WriteRefusal::Machine(_) => StatusCode::NOT_FOUND,
            WriteRefusal::Blob(_) => StatusCode::FAILED_DEPENDENCY,
            _ => StatusCode::CONFLICT,
        };
        let mut reply = said(status, refusal.to_string());
        if matches!(refusal, WriteRefusal::Head(_)) {
            reply.extensions_mut().insert(OtherActs);
        }
        Box::new(reply)
    }
}
