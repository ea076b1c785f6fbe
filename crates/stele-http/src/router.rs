//! The one router: the dialects' routes, Stele's own, health, and what surrounds every request.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use stele_core::service::Stele;

use crate::archives;
use crate::backups;
use crate::console;
use crate::drain;
use crate::flat::{self, FlatError};
use crate::metrics;
use crate::models;
use crate::openapi::{self, Endpoint, Family, Operation};
use crate::own;
use crate::reply::EPOCH;
use crate::request::RequestId;
use crate::whole;

/// Builds the router out of the dialects' routes. `elsewhere` answers what none of them knows.
pub fn router(stele: Arc<Stele>, dialects: impl IntoIterator<Item = Router>, elsewhere: Router) -> Router {
    let base = openapi::router(endpoints(), "").with_state(stele.clone());
    dialects
        .into_iter()
        .fold(base, Router::merge)
        .fallback_service(elsewhere)
        .method_not_allowed_fallback(|| async { FlatError::no_method() })
        .layer(from_fn_with_state(stele, surround))
}

/// What answers where there are no pages: that there is no such route.
pub fn nowhere() -> Router {
    Router::new().fallback(|| async { FlatError::no_route() })
}

static RUNNING: Family = Family {
    tag: "Running it",
    about: "For probes and dashboards; no key is needed.",
    headers: Vec::new,
    error: flat::schema,
    statuses: &[],
    keyed: false,
};

fn endpoints() -> Vec<Endpoint> {
    let mut endpoints = vec![
        Endpoint::new(Method::GET, "/healthz", "health", &RUNNING, || async { "ok\n" })
            .about("Whether the process runs.")
            .answers_plain(200, "text/plain; charset=utf-8"),
        Endpoint::new(Method::GET, "/readyz", "readiness", &RUNNING, ready)
            .about("Whether requests can be served.")
            .answers_plain(200, "text/plain; charset=utf-8")
            .or(&[500, 503]),
    ];
    endpoints.extend(own::endpoints());
    endpoints.extend(models::endpoints());
    endpoints.extend(whole::endpoints());
    endpoints.extend(archives::endpoints());
    endpoints.extend(console::endpoints());
    endpoints
}

/// What `/openapi.json` says of the routes outside the dialects. `/metrics` is among them where it answers.
pub fn operations(with_metrics: bool) -> impl Iterator<Item = Operation> {
    let metrics = Endpoint::new(Method::GET, "/metrics", "metrics", &RUNNING, metrics::metrics)
        .about("Counts about this process, for Prometheus.")
        .answers_plain(200, "text/plain; version=0.0.4; charset=utf-8")
        .or(&[500, 503]);
    let all = endpoints().into_iter().chain(backups::endpoints()).chain(with_metrics.then_some(metrics));
    openapi::operations(all.collect())
}

async fn ready(State(stele): State<Arc<Stele>>) -> Response {
    match stele.ping().await {
        Ok(()) => "ready\n".into_response(),
        Err(error) => FlatError::from(error).into_response(),
    }
}

/// The answer; where a handler panics, that something failed inside. What it held is unwound, and the panic is logged.
async fn caught(answer: impl Future<Output = Response>) -> Response {
    let mut answer = pin!(answer);
    let poll = |context: &mut Context<'_>| {
        let polled = catch_unwind(AssertUnwindSafe(|| answer.as_mut().poll(context)));
        polled.unwrap_or_else(|_| {
            let text = "something failed inside; the server's log says more";
            let failed = FlatError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", text);
            Poll::Ready(failed.into_response())
        })
    };
    poll_fn(poll).await
}

/// Gives every request its id and every answer its headers, and logs one line without contents, paths or keys.
async fn surround(State(stele): State<Arc<Stele>>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let id = RequestId::mint(&stele);
    let method = request.method().clone();
    // The route's pattern, never the address: ids and queries may say what a memory is about.
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let (mut parts, body) = request.into_parts();
    parts.extensions.insert(id.clone());
    let (body, rest) = drain::keep(body);
    let mut response = flat::render(caught(next.run(Request::from_parts(parts, body))).await, id.as_str());
    if !rest.drain().await {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    let value = HeaderValue::from_str(id.as_str()).expect("base58 is a header value");
    response.headers_mut().insert("request-id", value.clone());
    response.headers_mut().insert("x-request-id", value);
    let epoch = stele.installation().epoch.to_string();
    response.headers_mut().insert(EPOCH, HeaderValue::from_str(&epoch).expect("a UUID is a header value"));
    metrics::observe(matched.as_ref(), &method, response.status(), began.elapsed());
    let status = response.status().as_u16();
    let route = matched.as_ref().map_or("unmatched", MatchedPath::as_str);
    let duration_ms = began.elapsed().as_secs_f64() * 1e3;
    tracing::info!(request.id = %id, %method, route, status, duration_ms, "answered");
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_answer() {
        let answer = caught(async { panic!("on purpose") }).await;
        assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(caught(async { "fine".into_response() }).await.status(), StatusCode::OK);
    }
}
