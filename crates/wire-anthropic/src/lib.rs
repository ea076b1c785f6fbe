//! The Anthropic dialect under `/v1`: a thin translation over core. spec/anthropic.md 1 to 13.
//!
//! A handler authenticates, turns the request into a core command or query, calls the use case and renders.

mod agents;
mod archives;
mod changes;
mod changesets;
mod context;
mod endpoints;
mod environments;
mod error;
mod events;
mod id;
mod memories;
mod memory_tool;
mod resources;
mod search;
mod sessions;
mod stores;
mod stream;
mod threads;
mod versions;
mod view;
mod work;
mod work_queue;

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::routing::any;
use stele_core::service::Stele;
use stele_http::openapi::{self, Operation};
use stele_http::request::RequestId;

use crate::error::ApiError;

/// The dialect's routes.
pub fn routes(stele: Arc<Stele>) -> Router {
    let v1 = openapi::router(endpoints::endpoints(), "/v1")
        .route("/messages", any(no_models))
        .route("/messages/{*rest}", any(no_models))
        .route("/models", any(no_models))
        .route("/models/{*rest}", any(no_models))
        .fallback(|| async { ApiError::no_route() })
        .method_not_allowed_fallback(|| async { ApiError::no_method() })
        .with_state(stele);
    // A nested router does not see its own address with a slash behind it.
    let outside = any(|| async { ApiError::no_route() });
    Router::new().nest("/v1", v1).route("/v1/", outside).layer(from_fn(render_errors))
}

/// What `/openapi.json` says of them.
pub fn operations() -> impl Iterator<Item = Operation> {
    openapi::operations(endpoints::endpoints())
}

/// A client of the Messages API pointed here by mistake is told what to do.
async fn no_models() -> ApiError {
    ApiError::not_found(
        "Stele is a memory server and runs no model: keep a second client with Anthropic's own base URL and key for \
         /v1/messages and /v1/models, and use this address for /v1/memory_stores, /v1/agents and /v1/sessions",
    )
}

/// Writes the bodies of errors, which name the request.
async fn render_errors(request: Request, next: Next) -> Response {
    let id = request.extensions().get::<RequestId>().cloned();
    error::render(next.run(request).await, id.as_ref())
}
