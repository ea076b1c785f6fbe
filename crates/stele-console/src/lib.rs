//! The console's pages at `/`, beside the API. DESIGN 13.
//!
//! `console/dist` is embedded as it was when the crate was built; a debug build reads it from disk. A build without it
//! serves a page that says how to get it. The pages know the server only through its public API.

use std::borrow::Cow;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request};
use axum::http::header::{
    ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    IF_NONE_MATCH, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use rust_embed::RustEmbed;
use stele_http::flat::FlatError;

/// The built pages. Each file that pays to be compressed stands beside its `.gz`.
#[derive(RustEmbed)]
#[folder = "../../console/dist"]
#[allow_missing = true]
struct Dist;

const INDEX: &str = "index.html";
const MISSING: &str = include_str!("missing.html");

/// Nothing from elsewhere, nothing inline, no frame around it.
const POLICY: &str = "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      font-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// What every answer of this crate carries.
const HEADERS: [(HeaderName, &str); 6] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
    (REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// The router for what is no route of the API: the pages, their files, and 404 for what asks for no page.
pub fn pages() -> Router {
    Router::new()
        .route("/assets/{*file}", get(asset))
        .route("/favicon.svg", get(|headers: HeaderMap| async move { file("favicon.svg", &headers) }))
        .fallback(page)
        .layer(map_response(guarded))
}

async fn guarded(mut response: Response) -> Response {
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// A file whose name has a hash of its bytes.
async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Response {
    let mut response = file(&format!("assets/{name}"), &headers);
    if response.status() == StatusCode::OK {
        let forever = HeaderValue::from_static("public, max-age=31536000, immutable");
        response.headers_mut().insert(CACHE_CONTROL, forever);
    }
    response
}

/// Any other address: the page, whose script knows what stands there, for whoever asks for one.
async fn page(request: Request) -> Response {
    let wants_page = |headers: &HeaderMap| {
        headers
            .get_all(ACCEPT)
            .iter()
            .any(|accept| accept.as_bytes().windows(9).any(|part| part == b"text/html"))
    };
    let (path, method, headers) = (request.uri().path(), request.method(), request.headers());
    let reads = matches!(*method, Method::GET | Method::HEAD);
    if !reads || path.starts_with("/stele/") || !(path == "/" || wants_page(headers)) {
        return FlatError::no_route().into_response();
    }
    if Dist::get(INDEX).is_none() {
        let html = HeaderValue::from_static("text/html; charset=utf-8");
        return ([(CONTENT_TYPE, html)], MISSING).into_response();
    }
    file(INDEX, headers)
}

/// A file, compressed where the client takes it and 304 where it has it.
fn file(name: &str, headers: &HeaderMap) -> Response {
    let takes_gzip = headers
        .get_all(ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|coding| coding.trim().split(';').next() == Some("gzip"));
    let zipped = takes_gzip.then(|| Dist::get(&format!("{name}.gz"))).flatten();
    let is_zipped = zipped.is_some();
    let Some(found) = zipped.or_else(|| Dist::get(name)) else {
        return FlatError::no_route().into_response();
    };
    let hash: String = found.metadata.sha256_hash()[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    let tag = format!("\"{hash}\"");
    let known = headers.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let mut response = if known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let body = match found.data {
            Cow::Borrowed(bytes) => Body::from(bytes),
            Cow::Owned(bytes) => Body::from(bytes),
        };
        ([(CONTENT_TYPE, media_type(name))], body).into_response()
    };
    let headers = response.headers_mut();
    headers.insert(ETAG, HeaderValue::from_str(&tag).expect("hex digits are a header value"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    if is_zipped && !known {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

/// The kinds of files that a build of the console has.
fn media_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("json") => "application/json",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    async fn asked(method: Method, path: &str, accept: &str) -> (StatusCode, HeaderMap, String) {
        let request = Request::builder().method(method).uri(path).header(ACCEPT, accept);
        let answer =
            pages().oneshot(request.body(Body::empty()).expect("a request")).await.expect("an answer");
        let (status, headers) = (answer.status(), answer.headers().clone());
        let bytes = answer.into_body().collect().await.expect("a body").to_bytes();
        (status, headers, String::from_utf8_lossy(&bytes).into_owned())
    }

    /// With the pages or without them: both builds are tested, here whichever there is.
    #[tokio::test]
    async fn every_address_that_a_person_opens_is_a_page_that_nothing_can_frame_or_script() {
        for path in ["/", "/stores/0192/memories", "/no/such/place"] {
            let (status, headers, body) = asked(Method::GET, path, "text/html,*/*;q=0.8").await;
            assert_eq!(status, StatusCode::OK, "{path}");
            assert!(body.starts_with("<!doctype html>"), "{path}: {body}");
            let policy = headers[CONTENT_SECURITY_POLICY].to_str().expect("text");
            assert!(policy.contains("default-src 'self'") && policy.contains("frame-ancestors 'none'"));
            assert!(!policy.contains("unsafe"), "{policy}");
            assert_eq!(headers[X_CONTENT_TYPE_OPTIONS], "nosniff");
            assert_eq!(headers[REFERRER_POLICY], "no-referrer");
        }
    }

    #[tokio::test]
    async fn what_asks_for_no_page_is_told_that_there_is_no_such_route() {
        for (method, path, accept) in [
            (Method::GET, "/no/such/place", "application/json"),
            (Method::GET, "/stele/v1/nothing", "text/html"),
            (Method::POST, "/", "text/html"),
            (Method::GET, "/assets/nothing.js", "*/*"),
        ] {
            assert_eq!(asked(method.clone(), path, accept).await.0, StatusCode::NOT_FOUND, "{method} {path}");
        }
    }
}
