//! Ready bodies: JSON made once, and contents as text.

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde::Serialize;

/// The JSON of a response body.
pub fn bytes(value: &impl Serialize) -> Bytes {
    serde_json::to_vec(value).expect("a view is always JSON").into()
}

/// A response with a ready JSON body.
pub fn json(body: Bytes) -> Response {
    let mut response = body.into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// The header of every answer about a store: the state that it reflects. DESIGN 7.
pub const SEQUENCE: HeaderName = HeaderName::from_static("stele-sequence");

/// The header that names the life of the database that sequences are of. DESIGN 7.
pub const EPOCH: HeaderName = HeaderName::from_static("stele-epoch");

/// The answer as of this sequence of its store.
pub fn at(sequence: u64, mut response: Response) -> Response {
    response.headers_mut().insert(SEQUENCE, sequence.into());
    response
}

/// A stored content as text.
pub fn text(content: &Bytes) -> &str {
    std::str::from_utf8(content).expect("contents are UTF-8, and their hash was checked when they were read")
}
