//! The Recursion dialect under `/managed-agents/v1`: a thin translation over core. spec/recursion.md 2 to 8, 10, 11, 16.
//!
//! A handler judges the permission, turns the request into a core command or query, calls the use case and renders.
//! What every request brings (key, selectors) and every answer carries is in [`door`].

mod agent_memory;
mod agents;
mod automations;
mod context;
mod door;
mod environments;
mod events;
mod fields;
mod memories;
mod models;
mod once;
mod sessions;
mod stores;
mod stream;
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
        .merge(work())
        .fallback(|| async { FlatError::no_route() })
        .method_not_allowed_fallback(|| async { FlatError::no_method() })
        .with_state(stele.clone())
        .layer(from_fn_with_state(door::Door::new(stele, codes), door::pass));
    Router::new().nest("/managed-agents/v1", v1)
}

/// Agents, environments, sessions and automations.
fn work() -> Router<Arc<Stele>> {
    let agents = Router::new()
        .route("/", get(agents::list).post(agents::create))
        .route("/{agent_id}", get(agents::retrieve).delete(agents::delete))
        .route("/{agent_id}/versions", get(agents::list_versions).post(agents::create_version))
        .route("/{agent_id}/versions/{agent_version_id}", get(agents::retrieve_version))
        .route("/{agent_id}/memory", get(agent_memory::retrieve))
        .route("/{agent_id}/memory/activity", get(agent_memory::activity))
        .route("/{agent_id}/memories", get(agent_memory::memories))
        .route("/{agent_id}/learning", get(agent_memory::learning).patch(agent_memory::update_learning));
    let environments = Router::new()
        .route("/", get(environments::list).post(environments::create))
        .route("/{environment_id}", get(environments::retrieve).delete(environments::delete));
    let sessions = Router::new()
        .route("/", get(sessions::list).post(sessions::start))
        .route("/{session_id}", get(sessions::retrieve).delete(sessions::delete))
        .route("/{session_id}/cancel", post(sessions::cancel))
        .route("/{session_id}/complete", post(sessions::complete))
        .route("/{session_id}/interrupt", post(sessions::interrupt))
        .route("/{session_id}/events", get(events::list).post(events::send))
        .route("/{session_id}/events/stream", get(stream::stream))
        .route("/{session_id}/threads", get(sessions::list_threads))
        .route("/{session_id}/threads/{thread_id}", get(sessions::retrieve_thread))
        .route("/{session_id}/resources", get(sessions::list_resources))
        .route("/{session_id}/pending-inputs", get(sessions::list_pending_inputs));
    let automations = Router::new()
        .route("/", get(automations::list).post(automations::create))
        .route(
            "/{automation_id}",
            get(automations::retrieve).put(automations::replace).delete(automations::delete),
        )
        .route("/{automation_id}/pause", post(automations::pause))
        .route("/{automation_id}/resume", post(automations::resume))
        .route("/{automation_id}/runs", post(automations::run))
        .route("/{automation_id}/status", get(automations::status));
    Router::new()
        .nest("/agents", agents)
        .nest("/environments", environments)
        .nest("/sessions", sessions)
        .nest("/automations", automations)
        .route("/agent_memory", get(agent_memory::list))
        .route("/reflections", get(agent_memory::reflections))
        .route("/automation-runs", get(automations::list_runs))
        .route("/automation-runs/{automation_run_id}", get(automations::retrieve_run))
        .route("/models", get(models::list))
}
