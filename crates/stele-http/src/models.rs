//! Language models under `/stele/v1/models`: those that can be called, and how their providers are. DESIGN 12.

use axum::Json;
use axum::extract::State;
use axum::http::Method;
use axum::response::IntoResponse;
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::Arc;
use stele_core::access::{Action, Resource};
use stele_core::models::{Catalogue, ModelEntry, Standing};
use stele_core::refusal::Refusal;
use stele_core::service::Stele;

use crate::flat;
use crate::openapi::{Endpoint, Family};
use crate::own::{Answer, Call};

static MODELS: Family = Family {
    tag: "Models",
    about: "The language models that Stele can call for its own work.",
    headers: Vec::new,
    error: flat::schema,
    statuses: &[400, 401, 403, 500, 503],
    keyed: true,
};

pub(crate) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::new(Method::GET, "/stele/v1/models", "list_models", &MODELS, list)
            .about("List the models of the configured providers, and how the providers are.")
            .answers::<ModelsView>(200),
    ]
}

/// A model that can be called.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Model")]
struct ModelView {
    /// Its name among all providers: `provider/model`.
    model_ref: String,
    provider: String,
    model_id: String,
    display_name: String,
    /// Tokens of conversation and answer together.
    context_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    /// Whether it is offered tools.
    tools: bool,
    /// Absent where the configuration does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    price: Option<PriceView>,
}

/// The price of a million tokens.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ModelPrice")]
struct PriceView {
    input: f64,
    output: f64,
    cache_read: f64,
    cache_write: f64,
}

/// A configured provider.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ModelProvider")]
struct ProviderView {
    name: String,
    #[schemars(extend("enum" = ["anthropic", "openai"]))]
    kind: &'static str,
    /// Why it lists no models now.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    /// Seconds until it is called again, where it rests after too many failures.
    #[serde(skip_serializing_if = "Option::is_none")]
    rests_seconds: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Models")]
struct ModelsView {
    models: Vec<ModelView>,
    /// None where none is configured.
    providers: Vec<ProviderView>,
}

impl ModelView {
    fn of(model: ModelEntry) -> Self {
        let price = model.price.map(|price| PriceView {
            input: price.input,
            output: price.output,
            cache_read: price.cache_read,
            cache_write: price.cache_write,
        });
        Self {
            model_ref: model.reference(),
            provider: model.provider,
            model_id: model.id,
            display_name: model.display_name,
            context_tokens: model.context_tokens,
            max_output_tokens: model.output_tokens,
            tools: model.tools,
            price,
        }
    }
}

async fn list(State(stele): State<Arc<Stele>>, Call { caller, .. }: Call) -> Answer {
    caller.may(Resource::Agent, Action::Read).map_err(Refusal::from)?;
    let Ok(models) = stele.models() else {
        return Ok(Json(ModelsView { models: Vec::new(), providers: Vec::new() }).into_response());
    };
    let Catalogue { models: listed, silent } = models.catalogue().await;
    let provider = |standing: Standing| ProviderView {
        problem: silent
            .iter()
            .find(|silent| silent.provider == standing.provider)
            .map(|silent| silent.error.to_string()),
        name: standing.provider,
        kind: standing.kind,
        rests_seconds: standing.rests_secs,
    };
    let providers = models.standings().into_iter().map(provider).collect();
    let view = ModelsView { models: listed.into_iter().map(ModelView::of).collect(), providers };
    Ok(Json(view).into_response())
}
