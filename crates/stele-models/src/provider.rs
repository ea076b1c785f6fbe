//! The calls of one provider: its tries, its slots, its rests, and what is learned about it. spec/learning.md 15.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use stele_core::clock::Random;
use stele_core::meter::{self, ModelMeter};
use stele_core::models::{Conversation, Fault, Hear, ModelEntry, ModelError, Reply, Standing, Usage};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};

use crate::breaker::Breaker;
use crate::catalogue::{Listed, Shelf};
use crate::draft::Said;
use crate::estimate::Estimates;
use crate::http::{AddressError, Endpoint, TryError};
use crate::retry::{LONGEST_WAIT, TRIES, backoff};
use crate::settings::{Patience, ProviderSettings};
use crate::ways::{Ways, is_overflow};

/// Models whose ways are remembered; names of models come from callers.
const MODELS: usize = 1_000;

/// A provider.
pub(crate) struct Provider {
    pub(crate) settings: ProviderSettings,
    patience: Patience,
    endpoint: Endpoint,
    random: Arc<dyn Random>,
    slots: Semaphore,
    breaker: Breaker,
    shelf: Shelf,
    ways: Mutex<HashMap<String, Ways>>,
    pub(crate) estimates: Estimates,
    meter: Option<&'static ModelMeter>,
}

/// What is to be done about a try that failed.
enum Verdict {
    /// The call has failed.
    Fail(ModelError),
    /// Another try, after this wait where the provider asks for one.
    Again(ModelError, Option<Duration>),
    /// Another try, in another way.
    Otherwise(Ways),
}

impl Provider {
    pub(crate) fn new(
        settings: ProviderSettings,
        patience: Patience,
        clock: Arc<dyn stele_core::clock::Clock>,
        random: Arc<dyn Random>,
    ) -> Result<Self, AddressError> {
        Ok(Self {
            endpoint: Endpoint::new(&settings, clock)?,
            slots: Semaphore::new(settings.concurrent_calls),
            breaker: Breaker::new(patience.rest),
            shelf: Shelf::new(settings.models.as_deref()),
            ways: Mutex::default(),
            estimates: Estimates::default(),
            meter: meter::MODELS.of(&settings.name, ModelMeter::boxed).map(|meter| &**meter),
            settings,
            patience,
            random,
        })
    }

    /// How it is.
    pub(crate) fn standing(&self) -> Standing {
        Standing {
            provider: self.settings.name.clone(),
            kind: self.settings.kind.as_str(),
            rests_secs: self.breaker.rests(Instant::now()).map(whole_secs),
        }
    }

    /// The models that it lists.
    pub(crate) async fn models(&self) -> Result<Arc<Vec<Listed>>, ModelError> {
        let explain = |failure| match failure {
            TryError::Fault(fault) => ModelError::Failed { provider: self.name(), status: None, fault },
            TryError::Status { status, retry_after, .. } => self.answered(status, retry_after),
        };
        let silence = |patience: Duration| self.timed_out(patience);
        self.shelf.models(&self.endpoint, explain, silence).await
    }

    /// A model of it, with what it lists about it, if anything.
    pub(crate) fn entry(&self, id: &str, listed: Option<&Listed>) -> ModelEntry {
        let settings = &self.settings;
        let listed_context = listed.and_then(|listed| listed.context_tokens);
        let context = settings.context_tokens.or(listed_context);
        ModelEntry {
            provider: settings.name.clone(),
            id: id.to_owned(),
            display_name: listed.and_then(|l| l.display_name.clone()).unwrap_or_else(|| id.to_owned()),
            context_tokens: context.unwrap_or(settings.kind.context_tokens()),
            output_tokens: listed.and_then(|listed| listed.output_tokens),
            tools: settings.tools,
            price: settings.price,
        }
    }

    /// Makes a call.
    pub(crate) async fn call(
        &self,
        model: &str,
        conversation: &Conversation,
        hear: Hear<'_>,
    ) -> Result<Reply, ModelError> {
        if let Some(rest) = self.breaker.rests(Instant::now()) {
            self.count(|meter| meter.resting.count());
            return Err(ModelError::Resting { provider: self.name(), secs: whole_secs(rest) });
        }
        let begun = Instant::now();
        let called = self.tries(model, conversation, hear).await;
        self.count(|meter| meter.durations.record_micros(begun.elapsed()));
        match &called {
            Ok(reply) => {
                self.breaker.answered();
                self.count(|meter| {
                    meter.answered.count();
                    meter.input_tokens.add(reply.usage.all_input());
                    meter.output_tokens.add(reply.usage.output);
                });
            }
            Err(error) => self.failed(error),
        }
        called
    }

    fn failed(&self, error: &ModelError) {
        let class = error.class();
        self.count(|meter| meter.failed(class).count());
        tracing::warn!(provider = self.settings.name, class = class.as_str(), error = %error, "a call of a model failed");
        // What is wrong with one conversation or one name of a model says nothing about the provider.
        let at_fault = match error {
            ModelError::Failed { fault, .. } => !matches!(
                fault,
                Fault::Malformed | Fault::NotFound | Fault::RequestTooLarge | Fault::TooLarge
            ),
            ModelError::Overflow { .. } => false,
            _ => true,
        };
        if at_fault && self.breaker.failed(Instant::now()) {
            tracing::warn!(provider = self.settings.name, "the provider failed too often and rests");
        }
    }

    async fn tries(
        &self,
        model: &str,
        conversation: &Conversation,
        hear: Hear<'_>,
    ) -> Result<Reply, ModelError> {
        let known = self.ways(model);
        let (mut ways, mut tries) = (known, 1);
        loop {
            let slot = self.slots.acquire().await.expect("the slots are never closed");
            let begun = Instant::now();
            let tried =
                timeout(self.patience.timeout, self.endpoint.call(model, conversation, &ways, &mut *hear));
            let failure = match tried.await {
                Ok(Ok(said)) => {
                    if ways != known {
                        self.remember(model, ways);
                    }
                    return Ok(self.reply(model, conversation, said, begun.elapsed(), tries));
                }
                Ok(Err(failure)) => failure,
                Err(_) => return Err(self.timed_out(self.patience.timeout)),
            };
            // Whoever waits for another try holds up nobody.
            drop(slot);
            match self.judge(failure, &ways, conversation) {
                Verdict::Fail(error) => return Err(error),
                Verdict::Otherwise(other) => ways = other,
                Verdict::Again(error, asked) => {
                    if tries == TRIES || asked.is_some_and(|wait| wait > LONGEST_WAIT) {
                        return Err(error);
                    }
                    self.count(|meter| meter.retries.count());
                    sleep(asked.unwrap_or_else(|| backoff(self.patience.backoff, tries, self.random.bits())))
                        .await;
                    tries += 1;
                }
            }
        }
    }

    fn judge(&self, failure: TryError, ways: &Ways, conversation: &Conversation) -> Verdict {
        let provider = self.name();
        let (status, asked, refusal) = match failure {
            TryError::Fault(fault) => {
                let error = ModelError::Failed { provider, status: None, fault };
                return match fault {
                    Fault::TooLarge => Verdict::Fail(error),
                    _ => Verdict::Again(error, None),
                };
            }
            TryError::Status { status, retry_after, refusal } => (status, retry_after, refusal),
        };
        if matches!(status, 400 | 413 | 422) && is_overflow(&refusal) {
            return Verdict::Fail(ModelError::Overflow { provider, status: Some(status) });
        }
        if matches!(status, 400 | 422) {
            let mut other = *ways;
            if other.step_down(&refusal, conversation) {
                return Verdict::Otherwise(other);
            }
        }
        let error = self.answered(status, asked);
        match status {
            408 | 429 | 500.. => Verdict::Again(error, asked),
            _ => Verdict::Fail(error),
        }
    }

    /// What a status is that is none of success.
    fn answered(&self, status: u16, asked: Option<Duration>) -> ModelError {
        let fault = match status {
            429 => {
                let retry_after_secs = asked.map(whole_secs);
                return ModelError::RateLimited { provider: self.name(), status, retry_after_secs };
            }
            300..400 => Fault::Redirected,
            400 | 422 => Fault::Malformed,
            401 | 403 => Fault::Key,
            404 => Fault::NotFound,
            413 => Fault::RequestTooLarge,
            _ => Fault::Status,
        };
        ModelError::Failed { provider: self.name(), status: Some(status), fault }
    }

    fn timed_out(&self, patience: Duration) -> ModelError {
        ModelError::TimedOut { provider: self.name(), secs: whole_secs(patience) }
    }

    fn reply(
        &self,
        model: &str,
        conversation: &Conversation,
        said: Said,
        latency: Duration,
        tries: u32,
    ) -> Reply {
        let bytes = conversation.text_bytes();
        let usage = match said.usage {
            Some(usage) => {
                self.estimates.reported(model, bytes, usage.all_input());
                usage
            }
            None => Usage {
                input: self.estimates.tokens(model, bytes),
                output: self.estimates.tokens(model, said.bytes),
                estimated: true,
                ..Usage::default()
            },
        };
        Reply {
            blocks: said.blocks,
            stop: said.stop,
            provider: self.name(),
            model: model.to_owned(),
            usage,
            cost: self.settings.price.map(|price| price.of(&usage)),
            latency,
            tries,
        }
    }

    fn ways(&self, model: &str) -> Ways {
        let known = self.ways.lock().unwrap_or_else(PoisonError::into_inner).get(model).copied();
        known.unwrap_or_else(|| Ways::new(self.settings.structured, self.settings.tools))
    }

    fn remember(&self, model: &str, ways: Ways) {
        let mut known = self.ways.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MODELS {
            known.clear();
        }
        known.insert(model.to_owned(), ways);
    }

    fn count(&self, count: impl FnOnce(&ModelMeter)) {
        if let Some(meter) = self.meter {
            count(meter);
        }
    }

    fn name(&self) -> String {
        self.settings.name.clone()
    }
}

/// Seconds, the last one begun counted whole.
fn whole_secs(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}
