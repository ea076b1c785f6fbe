//! What a provider lists, kept for some minutes. spec/learning.md 15.

use std::sync::Arc;
use std::time::Duration;

use stele_core::models::Fault;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::http::{Endpoint, TryError};

/// How long a catalogue is kept.
const KEPT: Duration = Duration::from_secs(5 * 60);
/// How long a provider that did not answer is not asked again.
const SILENT: Duration = Duration::from_secs(10);
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

/// The provider lists nothing that can be read, and nothing is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Silent;

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

    /// The models; older ones where the provider does not answer.
    pub(crate) async fn models(&self, endpoint: &Endpoint) -> Result<Arc<Vec<Listed>>, Silent> {
        let fetched = match self {
            Self::Fixed(models) => return Ok(models.clone()),
            Self::Fetched(fetched) => fetched,
        };
        let mut fetched = fetched.lock().await;
        if fetched.until.is_none_or(|until| until <= Instant::now()) {
            match timeout(PATIENCE, fetch(endpoint)).await {
                Ok(Ok(models)) => {
                    *fetched = Fetched { models: Some(Arc::new(models)), until: Some(Instant::now() + KEPT) };
                }
                Ok(Err(_)) | Err(_) => fetched.until = Some(Instant::now() + SILENT),
            }
        }
        fetched.models.clone().ok_or(Silent)
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

/// Whether a listed id is meant by `name`: itself, or a name without the date that the id ends with, as Anthropic's
/// aliases are.
pub(crate) fn is_named(id: &str, name: &str) -> bool {
    match id.strip_prefix(name) {
        Some("") => true,
        Some(rest) => {
            let date = rest.strip_prefix('-').unwrap_or_default();
            date.len() == 8 && date.bytes().all(|b| b.is_ascii_digit())
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alias_is_an_id_without_its_date() {
        assert!(is_named("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"));
        assert!(is_named("m", "m"));
        for other in ["claude-sonnet-4", "claude-sonnet", "laude-sonnet-4-5-20250929"] {
            assert!(!is_named("claude-sonnet-4-5-20250929", other), "{other}");
        }
    }
}
