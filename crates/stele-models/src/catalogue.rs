//! What a provider lists, kept for some minutes. spec/learning.md 15.

use std::sync::Arc;
use std::time::Duration;

use stele_core::models::{Fault, ModelError};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::http::{Endpoint, TryError};

/// How long a catalogue is kept.
const KEPT: Duration = Duration::from_secs(5 * 60);
/// How long a provider that did not answer is not asked again.
const SILENT: Duration = Duration::from_secs(30);
/// How long a provider may take to list its models.
const PATIENCE: Duration = Duration::from_secs(10);
/// Most pages of a catalogue that are read.
const PAGES: usize = 20;

/// A model that a provider lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) id: String,
    pub(crate) display_name: Option<String>,
    pub(crate) context_tokens: Option<u64>,
    pub(crate) output_tokens: Option<u64>,
}

/// The catalogue of a provider.
pub(crate) enum Shelf {
    /// As the operator says.
    Fixed(Arc<Vec<Listed>>),
    /// As the provider says. Who asks while it is fetched waits for that.
    Fetched(Mutex<Fetched>),
}

/// What was fetched last.
#[derive(Default)]
pub(crate) struct Fetched {
    models: Option<Arc<Vec<Listed>>>,
    /// Why the last time did not help.
    failure: Option<ModelError>,
    /// Until when nobody fetches.
    until: Option<Instant>,
}

impl Shelf {
    /// The shelf of a provider whose models are `named`, or those that it lists.
    pub(crate) fn new(named: Option<&[String]>) -> Self {
        match named {
            None => Self::Fetched(Mutex::default()),
            Some(ids) => {
                let listed = |id: &String| Listed {
                    id: id.clone(),
                    display_name: None,
                    context_tokens: None,
                    output_tokens: None,
                };
                Self::Fixed(Arc::new(ids.iter().map(listed).collect()))
            }
        }
    }

    /// The models; older ones where the provider does not answer. `explain` says what a failure is.
    pub(crate) async fn models(
        &self,
        endpoint: &Endpoint,
        explain: impl Fn(TryError) -> ModelError,
        silence: impl Fn(Duration) -> ModelError,
    ) -> Result<Arc<Vec<Listed>>, ModelError> {
        let fetched = match self {
            Self::Fixed(models) => return Ok(models.clone()),
            Self::Fetched(fetched) => fetched,
        };
        let mut fetched = fetched.lock().await;
        if fetched.until.is_none_or(|until| until <= Instant::now()) {
            let failure = match timeout(PATIENCE, fetch(endpoint)).await {
                Ok(Ok(models)) => {
                    fetched.models = Some(Arc::new(models));
                    None
                }
                Ok(Err(error)) => Some(explain(error)),
                Err(_) => Some(silence(PATIENCE)),
            };
            let rest = if failure.is_some() { SILENT } else { KEPT };
            (fetched.failure, fetched.until) = (failure, Some(Instant::now() + rest));
        }
        match (&fetched.models, &fetched.failure) {
            (Some(models), _) => Ok(models.clone()),
            (None, Some(failure)) => Err(failure.clone()),
            (None, None) => Ok(Arc::default()),
        }
    }
}

async fn fetch(endpoint: &Endpoint) -> Result<Vec<Listed>, TryError> {
    let (mut models, mut place) = (Vec::new(), String::new());
    for _ in 0..PAGES {
        let page = endpoint.models(&place).await?;
        let (more, next) = endpoint.wire.listed(&page).ok_or(Fault::Unreadable)?;
        models.extend(more);
        match next {
            Some(next) => place = next,
            None => break,
        }
    }
    models.sort_by(|a, b| a.id.cmp(&b.id));
    models.dedup_by(|a, b| a.id == b.id);
    Ok(models)
}
