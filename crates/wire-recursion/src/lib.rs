//! The Recursion dialect under `/managed-agents/v1`: a thin translation over core. spec/recursion.md 2 to 7, 16.
//!
//! A handler judges the permission, turns the request into a core command or query, calls the use case and renders.
//! What every request brings (key, selectors) and every answer carries is in [`door`].

mod context;
mod door;
mod memories;
mod stores;
mod versions;
mod view;

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use stele_core::service::Stele;
use stele_http::flat::FlatError;

pub use crate::door::ErrorCodes;

/// The dialect's routes. `codes` counts where a request does not say which it wants.
pub fn routes(stele: Arc<Stele>, codes: ErrorCodes) -> Router {
    let memory_stores = Router::new()
        .route("/", get(stores::list).post(stores::create))
        .route("/{memory_store_id}", get(stores::retrieve).post(stores::update).delete(stores::delete))
        .route("/{memory_store_id}/archive", post(stores::archive))
        .route("/{memory_store_id}/memories", get(memories::list).post(memories::create))
        .route("/{memory_store_id}/memory", get(memories::retrieve_by_path))
        .route(
            "/{memory_store_id}/memories/{memory_id}",
            get(memories::retrieve).post(memories::update).delete(memories::delete),
        )
        .route("/{memory_store_id}/memory_versions", get(versions::list))
        .route("/{memory_store_id}/memory_versions/{memory_version_id}", get(versions::retrieve))
        .route("/{memory_store_id}/memory_versions/{memory_version_id}/restore", post(versions::restore))
        .route("/{memory_store_id}/memory_versions/{memory_version_id}/redact", post(versions::redact));
    let v1 = Router::new()
        .nest("/memory_stores", memory_stores)
        .fallback(|| async { FlatError::no_route() })
        .method_not_allowed_fallback(|| async { FlatError::no_method() })
        .with_state(stele.clone())
        .layer(from_fn_with_state(door::Door::new(stele, codes), door::pass));
    Router::new().nest("/managed-agents/v1", v1)
}
