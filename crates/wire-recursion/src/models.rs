//! `/models`. spec/recursion.md 10.1.

use axum::http::StatusCode;
use stele_core::access::{Action, Resource};
use stele_http::flat::FlatError;

use crate::context::{Answer, Call};

/// No provider of models can be configured yet.
pub(crate) async fn list(call: Call) -> Answer {
    call.may(Resource::Agent, Action::Read)?;
    let message = "no model provider is configured";
    Err(FlatError::new(StatusCode::SERVICE_UNAVAILABLE, "model_gateway_unconfigured", message))
}
