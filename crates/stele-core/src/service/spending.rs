//! Calls of models that are counted to somebody, within budgets. spec/learning.md 15.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::access::{Action, Caller, Resource};
use crate::clock::Clock;
use crate::id::AgentId;
use crate::list::{Created, Page};
use crate::models::spending::{Amount, Budgets, CallError, DaySpending, Payer, Purpose, Settled};
use crate::models::{Conversation, Cost, Delta, Hear, Model, ModelEntry, ModelError, Reply, Usage};
use crate::records::{CommitError, Order, RecordWrite};
use crate::refusal::Refusal;
use crate::searcher::Workers;
use crate::service::Stele;
use crate::service::kept::{ATTEMPTS, Listing, Position, docs};
use crate::service::turns::Turns;
use crate::storage::{Error, Storage, StorageError};
use crate::time::Timestamp;
use crate::work::document::{Document, Kept, made};

/// A call that nobody waited for, or that failed, before anything came of it.
const NOT_BEGUN: Settled = Settled { usage: Usage::NONE, cost: Cost::NONE, failed: true };

/// Writes down what calls take.
#[derive(Clone)]
pub(super) struct Ledger {
    storage: Arc<dyn Storage>,
    clock: Arc<dyn Clock>,
    workers: Arc<dyn Workers>,
    turns: Arc<Turns>,
}

impl Ledger {
    pub(super) fn new(storage: Arc<dyn Storage>, clock: Arc<dyn Clock>, workers: Arc<dyn Workers>) -> Self {
        Self { storage, clock, workers, turns: Arc::default() }
    }

    /// Moves the documents of a payer on, all or none, beginning again where another writer came first.
    async fn write(
        &self,
        payer: &Payer,
        at: Timestamp,
        step: impl Fn(DaySpending) -> Result<DaySpending, CallError>,
    ) -> Result<(), CallError> {
        let owners = [Some(None), payer.agent.map(Some)].into_iter().flatten();
        let owners: Vec<Option<AgentId>> = owners.collect();
        // One turn for the workspace: all its documents are written together.
        let _turn = self.turns.take(*payer.workspace.as_bytes()).await;
        for _ in 0..ATTEMPTS {
            let mut writes: Vec<RecordWrite> = Vec::with_capacity(owners.len());
            for owner in &owners {
                let id = DaySpending::id_of(*owner, payer.purpose, at);
                let found = self.storage.record(payer.workspace, DaySpending::KIND, id).await?;
                let before = found.as_ref().map(Kept::<DaySpending>::of).transpose()?;
                writes.push(match before {
                    Some(kept) => kept.replaced_by(&step(kept.doc.clone())?),
                    None => made(payer.workspace, &step(DaySpending::new(*owner, payer.purpose, at))?),
                });
            }
            match self.storage.commit(writes).await {
                Ok(()) => return Ok(()),
                Err(CommitError::Conflict(_)) => {}
                Err(CommitError::Failed(error)) => return Err(error.into()),
            }
        }
        Err(StorageError::Overloaded.into())
    }

    async fn reserve(&self, payer: Payer, budgets: &Budgets, wanted: Amount) -> Result<Reserved, CallError> {
        let at = self.clock.now();
        self.write(&payer, at, |day| {
            let budget = if day.agent.is_some() { &budgets.agent } else { &budgets.workspace };
            day.reserve(wanted, budget)
        })
        .await?;
        Ok(Reserved { ledger: self.clone(), payer, at, amount: wanted, taken: NOT_BEGUN, written: None })
    }
}

/// A reservation. Dropping it writes down what became of it, also where the caller goes away in the middle of the call:
/// a task of its own does that, once, whatever happens to whoever waits for it.
struct Reserved {
    ledger: Ledger,
    payer: Payer,
    /// The day that it counts on.
    at: Timestamp,
    amount: Amount,
    /// What the call has taken so far, as far as one knows.
    taken: Settled,
    written: Option<oneshot::Sender<()>>,
}

impl Reserved {
    /// Writes down what the call took. What cannot be written stays reserved, as after a kill.
    async fn settle(mut self, taken: Settled) {
        let (sender, written) = oneshot::channel();
        (self.taken, self.written) = (taken, Some(sender));
        drop(self);
        let _ = written.await;
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let (ledger, payer, at) = (self.ledger.clone(), self.payer, self.at);
        let (amount, taken, written) = (self.amount, self.taken, self.written.take());
        self.ledger.workers.spawn(Box::pin(async move {
            let _ = ledger.write(&payer, at, |day| Ok(day.settle(amount, &taken))).await;
            if let Some(written) = written {
                let _ = written.send(());
            }
        }));
    }
}

/// Bytes that a piece of an answer adds to it.
fn bytes_of(delta: &Delta) -> usize {
    match delta {
        Delta::Begin | Delta::Thinking => 0,
        Delta::Text(text) => text.len(),
        Delta::ToolUse { name, .. } => name.len(),
        Delta::Arguments { json, .. } => json.len(),
    }
}

impl Stele {
    /// The models that can be called.
    ///
    /// # Errors
    /// No provider of models is configured.
    pub fn models(&self) -> Result<&Arc<dyn Model>, ModelError> {
        self.models.as_ref().ok_or(ModelError::Unconfigured)
    }

    /// Asks a model on somebody's account: what the call may take at most is reserved first, and what it took is
    /// counted afterwards, also where the future is dropped in the middle. As [`Model::call`] otherwise.
    ///
    /// # Errors
    /// No room in a budget; the model; the storage, before anything was asked. A reply that could not be counted is
    /// a reply all the same; its reservation stays.
    pub async fn model_call(
        &self,
        payer: Payer,
        budgets: &Budgets,
        model: &ModelEntry,
        conversation: &Conversation,
        hear: Hear<'_>,
    ) -> Result<Reply, CallError> {
        let models = self.models()?;
        let input = models.estimate_tokens(model, conversation.text_bytes());
        let cost = |usage: &Usage| model.price.map(|price| price.of(usage)).unwrap_or_default();
        let most = Usage { input, output: conversation.max_tokens, ..Usage::default() };
        let wanted = Amount { tokens: most.total(), cost: cost(&most) };
        let mut reserved = self.ledger.reserve(payer, budgets, wanted).await?;
        let mut said = 0;
        let called = {
            let taken = &mut reserved.taken;
            let mut hear = |delta: Delta| {
                said += bytes_of(&delta);
                let output = models.estimate_tokens(model, said);
                let usage = Usage { input, output, estimated: true, ..Usage::default() };
                *taken = Settled { usage, cost: cost(&usage), failed: true };
                hear(delta);
            };
            models.call(model, conversation, &mut hear).await
        };
        let taken = match &called {
            Ok(reply) => Settled { usage: reply.usage, cost: reply.cost.unwrap_or_default(), failed: false },
            // What was said before it broke off was paid for; what was never begun was not.
            Err(_) => reserved.taken,
        };
        reserved.settle(taken).await;
        Ok(called?)
    }

    /// What calls took by day, newest first: all of the workspace's for one purpose, or those for one agent.
    ///
    /// # Errors
    /// No read permission.
    pub async fn spending_list(
        &self,
        caller: &Caller,
        agent: Option<AgentId>,
        purpose: Purpose,
        after: Option<Position>,
        limit: usize,
    ) -> Result<Page<DaySpending>, Error> {
        caller.may(Resource::Agent, Action::Read).map_err(Refusal::from)?;
        let listing = Listing {
            tag: Some(DaySpending::tag(agent, purpose)),
            created: Created::default(),
            order: Order::NewestFirst,
            after,
            limit,
        };
        Ok(docs(self.list(caller.workspace, listing).await?))
    }
}
