//! The work queue of self-hosted environments. spec/anthropic.md 12. The rules are [`crate::work::item`]'s.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::access::{Action, Caller, Principal, Resource};
use crate::id::{EnvironmentId, WorkItemId, WorkspaceId};
use crate::key::Secret;
use crate::list::{Created, Page};
use crate::records::{Order, RecordWrite};
use crate::refusal::Refusal;
use crate::service::Stele;
use crate::service::kept::{ATTEMPTS, Listing, Position, docs};
use crate::storage::{Error, StorageError};
use crate::text::MetadataPatch;
use crate::time::Timestamp;
use crate::watch::Watch;
use crate::work::credential::SessionToken;
use crate::work::document::{Document, Kept, made};
use crate::work::item::{self, Beat, ItemState, LEASE_SECS, WorkItem};
use crate::work::refusal::WorkRefusal;
use crate::work::session::{Session, SessionState, state_of};

/// Items looked through in one read.
const STEP: usize = 100;
/// Items whose time has come that are dealt with in one go.
const DUE: usize = 100;
/// How long a worker that polled counts as polling, in microseconds.
const POLLING_MICROS: i64 = 30_000_000;
/// Most names of workers remembered of one environment.
const POLLERS: usize = 10_000;

/// An item offered to a worker, with the token for its session.
#[derive(Debug)]
pub struct Offer {
    /// The item.
    pub item: WorkItem,
    /// The token, shown here only.
    pub token: Secret,
}

/// What there is in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueStats {
    /// Items that wait for a poll.
    pub depth: u64,
    /// Items that were offered and are not acknowledged yet.
    pub pending: u64,
    /// Since when the oldest of both waits.
    pub oldest_queued_at: Option<Timestamp>,
    /// Workers that named themselves at this server in the last 30 s.
    pub workers_polling: u64,
}

/// Who polled when, by environment and the name that the worker gives itself. What a server remembers of its own
/// pollers only; nothing but a figure for people depends on it.
#[derive(Debug, Default)]
pub(super) struct Pollers(Mutex<HashMap<EnvironmentId, HashMap<String, Timestamp>>>);

impl Pollers {
    fn saw(&self, environment: EnvironmentId, worker: &str, now: Timestamp) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_this = all.entry(environment).or_default();
        if of_this.len() >= POLLERS {
            of_this.clear();
        }
        of_this.insert(worker.to_owned(), now);
    }

    fn count(&self, environment: EnvironmentId, now: Timestamp) -> u64 {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(of_this) = all.get_mut(&environment) else { return 0 };
        of_this.retain(|_, at| now.as_micros() - at.as_micros() < POLLING_MICROS);
        of_this.len() as u64
    }
}

impl Stele {
    /// Offers the oldest item of an environment's queue, with a new token for its session; an older one of the item
    /// works no more.
    ///
    /// # Errors
    /// The caller holds no key of this environment.
    pub async fn work_poll(
        &self,
        caller: &Caller,
        environment: EnvironmentId,
        worker: Option<&str>,
        reclaim_older_than_millis: u64,
    ) -> Result<Option<Offer>, Error> {
        self.work_may(caller, environment, Action::Claim)?;
        if let Some(worker) = worker {
            self.pollers.saw(environment, worker, self.clock.now());
        }
        self.work_settle().await?;
        for _ in 0..ATTEMPTS {
            let Some(kept) = self.available(caller.workspace, environment, reclaim_older_than_millis).await?
            else {
                return Ok(None);
            };
            let Some(session) = self.find::<Session>(caller.workspace, *kept.doc.session.as_bytes()).await?
            else {
                // The session was deleted; whoever did that was not done with the queue yet.
                self.commit(vec![kept.removed()]).await?;
                continue;
            };
            let (token, secret) = self.new_token(&session.doc, Some(&kept.doc));
            let offered = kept.doc.offered(self.clock.now(), token.id);
            let mut writes = vec![kept.replaced_by(&offered), made(caller.workspace, &token)];
            let older = self.token_of(caller.workspace, &kept.doc).await?;
            writes.extend(older.as_ref().map(Kept::removed));
            if self.commit(writes).await? {
                if older.is_some() {
                    self.forget_narrow();
                }
                return Ok(Some(Offer { item: offered, token: secret }));
            }
        }
        Ok(None)
    }

    /// Where to wait for an environment's queue to grow. In other processes it may grow unheard: look again after a
    /// while.
    pub fn work_watch(&self, environment: EnvironmentId) -> Watch {
        self.storage.watches().subscribe(*environment.as_bytes())
    }

    /// Wakes those who wait for an environment's queue.
    pub(super) fn queue_moved(&self, environment: EnvironmentId) {
        let position = u64::try_from(self.clock.now().as_micros()).unwrap_or(0);
        self.storage.watches().announce(*environment.as_bytes(), position);
    }

    async fn available(
        &self,
        workspace: WorkspaceId,
        environment: EnvironmentId,
        reclaim_older_than_millis: u64,
    ) -> Result<Option<Kept<WorkItem>>, StorageError> {
        let now = self.clock.now();
        let mut after = None;
        loop {
            let page = self.list::<WorkItem>(workspace, waiting(environment, after)).await?;
            after = page.items.last().map(|kept| (kept.doc.created_at, kept.doc.record_id()));
            let mut items = page.items.into_iter();
            if let Some(item) = items.find(|kept| kept.doc.is_available(now, reclaim_older_than_millis)) {
                return Ok(Some(item));
            }
            if !page.more {
                return Ok(None);
            }
        }
    }

    async fn token_of(
        &self,
        workspace: WorkspaceId,
        item: &WorkItem,
    ) -> Result<Option<Kept<SessionToken>>, StorageError> {
        match item.token {
            Some(token) => self.find(workspace, *token.as_bytes()).await,
            None => Ok(None),
        }
    }

    /// Judges who acts on an environment's queue.
    fn work_may(&self, caller: &Caller, environment: EnvironmentId, action: Action) -> Result<(), Refusal> {
        caller.may(Resource::WorkItem, action)?;
        self.environment_reached(caller, environment)
    }

    /// An item of an environment's queue; for the holder of a token its own one only.
    async fn work_reached(
        &self,
        caller: &Caller,
        environment: EnvironmentId,
        id: WorkItemId,
    ) -> Result<Kept<WorkItem>, Error> {
        let missing = || Refusal::from(WorkRefusal::WorkItemNotFound(id));
        match &caller.principal {
            Principal::Key { .. } => drop(self.environment_there(caller, environment).await?),
            Principal::Session(scope) if scope.item != Some(id) => return Err(missing().into()),
            Principal::Session(_) | Principal::Environment { .. } => {}
        }
        let found = self.find::<WorkItem>(caller.workspace, *id.as_bytes()).await?;
        Ok(found.filter(|kept| kept.doc.environment == environment).ok_or_else(missing)?)
    }

    /// Changes an item by a rule, as it is now: a lease that has passed counts as passed.
    async fn work_change<T>(
        &self,
        caller: &Caller,
        (environment, id): (EnvironmentId, WorkItemId),
        rule: impl Fn(&WorkItem, Timestamp) -> Result<(WorkItem, T), Refusal>,
    ) -> Result<(WorkItem, T), Error> {
        let _turn = self.turns.take(*id.as_bytes()).await;
        for _ in 0..ATTEMPTS {
            let kept = self.work_reached(caller, environment, id).await?;
            let now = self.clock.now();
            let (item, answer) = rule(&kept.doc.settled(now), now)?;
            if item == kept.doc {
                return Ok((item, answer));
            }
            if self.work_commit(&kept, &item).await? {
                return Ok((item, answer));
            }
        }
        Err(StorageError::Overloaded.into())
    }

    /// Writes an item; one that stops leaves its session without a live one, in the same commit.
    async fn work_commit(&self, kept: &Kept<WorkItem>, item: &WorkItem) -> Result<bool, StorageError> {
        let mut writes = vec![kept.replaced_by(item)];
        let stops = item.state == ItemState::Stopped && kept.doc.state != ItemState::Stopped;
        if stops {
            let state = self.find::<SessionState>(kept.workspace, state_of(item.session)).await?;
            if let Some(state) = state.filter(|state| state.doc.live_item == Some(item.id)) {
                let without = SessionState { live_item: None, ..state.doc.clone() };
                writes.push(state.replaced_by(&without));
            }
        }
        let done = self.commit(writes).await?;
        if done && stops {
            self.forget_narrow();
        }
        if done && item.state == ItemState::Queued {
            self.queue_moved(item.environment);
        }
        Ok(done)
    }

    /// Takes an item out of the queue. spec/anthropic.md 12.4.
    ///
    /// # Errors
    /// The caller holds no key of this environment, no such item, or it is stopped.
    pub async fn work_acknowledge(
        &self,
        caller: &Caller,
        environment: EnvironmentId,
        id: WorkItemId,
    ) -> Result<WorkItem, Error> {
        self.work_may(caller, environment, Action::Claim)?;
        let rule = |item: &WorkItem, now| Ok((item.acknowledged(now)?, ()));
        Ok(self.work_change(caller, (environment, id), rule).await?.0)
    }

    /// A heartbeat of who holds an item. spec/anthropic.md 12.5.
    ///
    /// # Errors
    /// The caller may not, no such item, or it is not the holder's.
    pub async fn work_heartbeat(
        &self,
        caller: &Caller,
        environment: EnvironmentId,
        id: WorkItemId,
        expected: &str,
        ttl_secs: Option<u64>,
    ) -> Result<Beat, Error> {
        self.work_may(caller, environment, Action::Heartbeat)?;
        let ttl_secs = ttl_secs.unwrap_or(LEASE_SECS);
        let rule = |item: &WorkItem, now| Ok(item.beaten(expected, ttl_secs, now)?);
        Ok(self.work_change(caller, (environment, id), rule).await?.1)
    }

    /// Stops an item, or asks its worker to end. spec/anthropic.md 12.6.
    ///
    /// # Errors
    /// The caller may not, or no such item.
    pub async fn work_stop(
        &self,
        caller: &Caller,
        environment: EnvironmentId,
        id: WorkItemId,
        force: bool,
    ) -> Result<WorkItem, Error> {
        self.work_may(caller, environment, Action::Stop)?;
        let rule = |item: &WorkItem, now| Ok((item.asked_to_stop(force, now), ()));
        Ok(self.work_change(caller, (environment, id), rule).await?.0)
    }

    /// An item.
    ///
    /// # Errors
    /// No read permission, or no such item.
    pub async fn work_get(
        &self,
        caller: &Caller,
        environment: EnvironmentId,
        id: WorkItemId,
    ) -> Result<WorkItem, Error> {
        self.work_may(caller, environment, Action::Read)?;
        let kept = self.work_reached(caller, environment, id).await?;
        Ok(kept.doc.settled(self.clock.now()))
    }

    /// Changes the metadata of an item.
    ///
    /// # Errors
    /// No update permission, no such item, or too many pairs.
    pub async fn work_update(
        &self,
        caller: &Caller,
        environment: EnvironmentId,
        id: WorkItemId,
        metadata: MetadataPatch,
    ) -> Result<WorkItem, Error> {
        self.work_may(caller, environment, Action::Update)?;
        let rule = |item: &WorkItem, _| {
            let patched = item.metadata.patched(&metadata);
            let metadata = patched.map_err(|error| Refusal::invalid("metadata", error))?;
            Ok((WorkItem { metadata, ..item.clone() }, ()))
        };
        Ok(self.work_change(caller, (environment, id), rule).await?.0)
    }

    /// Items of an environment, newest first.
    ///
    /// # Errors
    /// The caller holds no key of this environment.
    pub async fn work_list(
        &self,
        caller: &Caller,
        environment: EnvironmentId,
        after: Option<Position>,
        limit: usize,
    ) -> Result<Page<WorkItem>, Error> {
        self.work_may(caller, environment, Action::List)?;
        let listing = Listing { after, ..Listing::tagged(item::of_environment(environment), limit) };
        let mut page = docs(self.list::<WorkItem>(caller.workspace, listing).await?);
        let now = self.clock.now();
        for item in &mut page.items {
            *item = item.settled(now);
        }
        Ok(page)
    }

    /// What there is in an environment's queue.
    ///
    /// # Errors
    /// No read permission, or no such environment.
    pub async fn work_stats(&self, caller: &Caller, environment: EnvironmentId) -> Result<QueueStats, Error> {
        self.work_may(caller, environment, Action::Read)?;
        self.environment_there(caller, environment).await?;
        self.work_settle().await?;
        let workers_polling = self.pollers.count(environment, self.clock.now());
        let mut stats = QueueStats { depth: 0, pending: 0, oldest_queued_at: None, workers_polling };
        let mut after = None;
        loop {
            let page = self.list::<WorkItem>(caller.workspace, waiting(environment, after)).await?;
            for Kept { doc: item, .. } in &page.items {
                let count = if item.offered_at.is_some() { &mut stats.pending } else { &mut stats.depth };
                *count += 1;
                stats.oldest_queued_at.get_or_insert(item.created_at);
                after = Some((item.created_at, item.record_id()));
            }
            if !page.more {
                return Ok(stats);
            }
        }
    }

    /// Deals with items whose time has come, in all workspaces: leases that have passed, tokens that outlived their
    /// item long enough. Costs one short read where there is nothing to do.
    ///
    /// # Errors
    /// The storage's.
    pub async fn work_settle(&self) -> Result<(), StorageError> {
        let now = self.clock.now();
        for record in self.storage.record_due(WorkItem::KIND, now, DUE).await? {
            let kept = Kept::<WorkItem>::of(&record)?;
            let settled = kept.doc.settled(now);
            // What conflicts has been dealt with by somebody else, or comes up again.
            if settled != kept.doc {
                self.work_commit(&kept, &settled).await?;
            } else {
                self.work_forget_token(&kept).await?;
            }
        }
        Ok(())
    }

    /// Removes the token of an item that was stopped a while ago; and the item, if its session is gone.
    async fn work_forget_token(&self, kept: &Kept<WorkItem>) -> Result<(), StorageError> {
        let token = self.token_of(kept.workspace, &kept.doc).await?;
        let session = self.find::<Session>(kept.workspace, *kept.doc.session.as_bytes()).await?;
        let without = WorkItem { token: None, ..kept.doc.clone() };
        let item = if session.is_some() { kept.replaced_by(&without) } else { kept.removed() };
        let writes: Vec<RecordWrite> =
            std::iter::once(item).chain(token.as_ref().map(Kept::removed)).collect();
        self.commit(writes).await.map(drop)
    }
}

/// Items in an environment's queue, the oldest first.
fn waiting(environment: EnvironmentId, after: Option<Position>) -> Listing {
    Listing {
        tag: Some(item::in_queue_of(environment)),
        created: Created::default(),
        order: Order::OldestFirst,
        after,
        limit: STEP,
    }
}
