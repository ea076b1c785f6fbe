//! Idempotency keys. spec/recursion.md 2.1.

use axum::http::header::{ETAG, LOCATION};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use stele_core::refusal::Refusal;
use stele_core::service::{Answered, Once};
use stele_http::flat::FlatError;
use stele_http::reply::json;

use crate::context::Call;

const KEY: &str = "idempotency-key";
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// Longest key, in characters.
const LONGEST: usize = 256;

/// A success as it is answered, and answered again.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Success {
    status: u16,
    body: String,
    location: Option<String>,
    etag: Option<String>,
}

impl Success {
    /// With this status and view.
    pub(crate) fn of(status: StatusCode, view: &impl Serialize) -> Self {
        let body = serde_json::to_string(view).expect("a view is always JSON");
        Self { status: status.as_u16(), body, location: None, etag: None }
    }

    /// Saying where it is.
    pub(crate) fn at(self, location: String) -> Self {
        Self { location: Some(location), ..self }
    }

    /// Saying which state it is.
    pub(crate) fn tagged(self, etag: String) -> Self {
        Self { etag: Some(etag), ..self }
    }
}

impl IntoResponse for Success {
    fn into_response(self) -> Response {
        let mut response = json(self.body.into());
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap_or(StatusCode::OK);
        for (name, value) in [(LOCATION, self.location), (ETAG, self.etag)] {
            if let Some(value) = value.and_then(|value| HeaderValue::from_str(&value).ok()) {
                response.headers_mut().insert(name, value);
            }
        }
        response
    }
}

/// Whether an operation asks for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// It does.
    Required,
    /// It takes one.
    Optional,
}

/// What makes this call one that is carried out once, if it brings a key.
pub(crate) fn once<T>(
    call: &Call,
    key: Key,
    body: &[u8],
    success: impl Fn(&T) -> Success + Send + Sync + 'static,
) -> Result<Option<Once<T>>, Refusal> {
    let refuse = |problem| Err(Refusal::shape("Idempotency-Key", problem));
    let mut sent = call.headers.get_all(KEY).iter();
    let text = match (sent.next(), sent.next()) {
        (None, _) if key == Key::Optional => return Ok(None),
        (None, _) => return refuse("is required: send a header that no other request has"),
        (Some(_), Some(_)) => return refuse("is given twice"),
        (Some(value), None) => value.as_bytes(),
    };
    match str::from_utf8(text) {
        Ok(text) if (1..=LONGEST).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic()) => {
            let answer =
                move |made: &T| serde_json::to_string(&success(made)).expect("a success is always JSON");
            Ok(Some(Once { key: text.to_owned(), identity: call.identity(body), answer: Box::new(answer) }))
        }
        _ => refuse("must be 1 to 256 visible ASCII characters"),
    }
}

/// The answer now, or again.
pub(crate) fn answer<T>(
    answered: Answered<T>,
    success: impl Fn(&T) -> Success,
) -> Result<Response, FlatError> {
    match answered {
        Answered::Now(made) => Ok(success(&made).into_response()),
        Answered::Before(written) => {
            let success: Success = serde_json::from_str(&written).map_err(|_| {
                FlatError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", "a receipt is damaged")
            })?;
            let mut response = success.into_response();
            response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
            Ok(response)
        }
    }
}
