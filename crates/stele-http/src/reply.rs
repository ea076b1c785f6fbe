//! Ready bodies: JSON made once, and contents as text.

use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
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

/// A stored content as text.
pub fn text(content: &Bytes) -> &str {
    std::str::from_utf8(content).expect("contents are UTF-8, and their hash was checked when they were read")
}
