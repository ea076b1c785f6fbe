//! `/models`. spec/recursion.md 10.1 and 10.4.

use axum::http::header::{ETAG, IF_NONE_MATCH};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use stele_core::access::{Action, Resource};
use stele_core::hash::Sha256;
use stele_core::models::{ModelEntry, ModelError};
use stele_core::refusal::Refusal;
use stele_http::flat::FlatError;
use stele_http::reply::{bytes, json};

use crate::context::{Answer, Call};

/// Seconds after which a provider that does not answer may be asked again.
const LATER: u64 = 30;

/// A model, in camelCase.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ModelView<'a> {
    model_id: String,
    display_name: &'a str,
    /// The provider: what a model belongs to, as far as Stele knows.
    family: &'a str,
    /// Stele sends no images to models.
    supports_image_input: bool,
    context_window: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
}

#[derive(Serialize)]
struct ModelsView<'a> {
    items: Vec<ModelView<'a>>,
}

impl<'a> ModelView<'a> {
    fn of(model: &'a ModelEntry) -> Self {
        Self {
            model_id: model.reference(),
            display_name: &model.display_name,
            family: &model.provider,
            supports_image_input: false,
            context_window: model.context_tokens,
            max_output_tokens: model.output_tokens,
        }
    }
}

/// The models of all configured providers, with an ETag of what is shown.
pub(crate) async fn list(call: Call) -> Answer {
    call.may(Resource::Agent, Action::Read)?;
    let models = call.stele.models().map_err(|error| unavailable(&error))?;
    let models = models.catalogue().await.reachable().map_err(|error| unavailable(&error))?;
    let body = bytes(&ModelsView { items: models.iter().map(ModelView::of).collect() });
    let etag = format!("\"{}\"", Sha256::of(&body));
    let sent = call.headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    // Whoever only wants to know whether something changed compares weakly. RFC 9110 13.1.2.
    let is_known = |tag: &str| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag;
    let known = sent.flat_map(|value| value.split(',')).any(|tag| is_known(tag.trim()));
    let response = if known { StatusCode::NOT_MODIFIED.into_response() } else { json(body) };
    Ok(tagged(response, &etag))
}

fn tagged(mut response: Response, etag: &str) -> Response {
    if let Ok(etag) = HeaderValue::from_str(etag) {
        response.headers_mut().insert(ETAG, etag);
    }
    response
}

fn unavailable(error: &ModelError) -> FlatError {
    let (code, retry_after) = match error {
        ModelError::Unconfigured => ("model_gateway_unconfigured", None),
        _ => ("model_gateway_unreachable", Some(LATER)),
    };
    FlatError { retry_after, ..FlatError::new(StatusCode::SERVICE_UNAVAILABLE, code, error.to_string()) }
}

/// Refuses the name of a model that no configured provider lists. Without a provider nobody knows, nor where the one
/// that may list it does not answer. spec/recursion.md 8.5 and 10.2.
pub(crate) async fn listed(call: &Call, field: &'static str, name: &str) -> Result<(), FlatError> {
    let Ok(models) = call.stele.models() else { return Ok(()) };
    if models.catalogue().await.may_have(name) {
        return Ok(());
    }
    let problem = "must be a model that a configured provider lists: see GET /managed-agents/v1/models";
    Err(Refusal::shape(field, problem).into())
}
