//! All configured providers behind the port.

use std::sync::Arc;

use stele_core::clock::{Clock, Random};
use stele_core::models::catalogue::is_named;
use stele_core::models::{
    Catalogue, Conversation, Hear, Model, ModelEntry, ModelError, Reply, Silent, Standing,
};
use stele_core::storage::Answer;

use crate::http::AddressError;
use crate::provider::Provider;
use crate::settings::{Patience, ProviderSettings};

/// The providers, by name.
pub struct Gateway {
    providers: Vec<Provider>,
}

/// Why a provider cannot be used at all.
#[derive(Debug, thiserror::Error)]
#[error("the model provider {provider} cannot be used")]
pub struct BuildError {
    /// Its name.
    pub provider: String,
    #[source]
    source: AddressError,
}

impl Gateway {
    /// The gateway to these providers; nothing is connected yet.
    ///
    /// # Errors
    /// An address that is none.
    pub fn new(
        providers: Vec<ProviderSettings>,
        patience: Patience,
        clock: &Arc<dyn Clock>,
        random: &Arc<dyn Random>,
    ) -> Result<Self, BuildError> {
        let build = |settings: ProviderSettings| {
            let provider = settings.name.clone();
            Provider::new(settings, patience, clock.clone(), random.clone())
                .map_err(|source| BuildError { provider, source })
        };
        let mut providers = providers.into_iter().map(build).collect::<Result<Vec<_>, _>>()?;
        providers.sort_by(|a, b| a.settings.name.cmp(&b.settings.name));
        Ok(Self { providers })
    }

    fn provider(&self, name: &str) -> Option<&Provider> {
        self.providers.iter().find(|provider| provider.settings.name == name)
    }

    async fn all(&self) -> Catalogue {
        let mut catalogue = Catalogue::default();
        for provider in &self.providers {
            match provider.models().await {
                Ok(models) => {
                    catalogue.models.extend(models.iter().map(|m| provider.entry(&m.id, Some(m))));
                }
                Err(error) => {
                    catalogue.silent.push(Silent { provider: provider.settings.name.clone(), error });
                }
            }
        }
        catalogue
    }

    async fn by_name(&self, name: &str) -> Result<ModelEntry, ModelError> {
        if self.providers.is_empty() {
            return Err(ModelError::Unconfigured);
        }
        if let Some((provider, id)) = name.split_once('/')
            && let Some(provider) = self.provider(provider)
            && !id.is_empty()
        {
            let models = provider.models().await.unwrap_or_default();
            return Ok(provider.entry(id, models.iter().find(|listed| is_named(&listed.id, id))));
        }
        let mut silent = Vec::new();
        let mut providers: Vec<_> = self.providers.iter().collect();
        providers.sort_by_key(|provider| provider.settings.kind);
        for provider in providers {
            match provider.models().await {
                Ok(models) => {
                    if let Some(listed) = models.iter().find(|listed| is_named(&listed.id, name)) {
                        return Ok(provider.entry(name, Some(listed)));
                    }
                }
                Err(_) => silent.push(provider.settings.name.clone()),
            }
        }
        // One that does not answer may have it.
        match silent.is_empty() {
            true => Err(ModelError::UnknownModel { name: name.to_owned() }),
            false => Err(ModelError::Unreachable { providers: silent }),
        }
    }
}

impl Model for Gateway {
    fn catalogue(&self) -> Answer<'_, Catalogue> {
        Box::pin(self.all())
    }

    fn find<'a>(&'a self, name: &'a str) -> Answer<'a, Result<ModelEntry, ModelError>> {
        Box::pin(self.by_name(name))
    }

    fn call<'a>(
        &'a self,
        model: &'a ModelEntry,
        conversation: &'a Conversation,
        hear: Hear<'a>,
    ) -> Answer<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            match self.provider(&model.provider) {
                Some(provider) => provider.call(&model.id, conversation, hear).await,
                None => Err(ModelError::UnknownModel { name: model.reference() }),
            }
        })
    }

    fn estimate_tokens(&self, model: &ModelEntry, bytes: usize) -> u64 {
        let provider = self.provider(&model.provider);
        provider.map_or(bytes.div_ceil(3) as u64, |provider| provider.estimates.tokens(&model.id, bytes))
    }

    fn standings(&self) -> Vec<Standing> {
        self.providers.iter().map(Provider::standing).collect()
    }
}
