//! Runs of automations. spec/recursion.md 11.4 and 11.5.

use serde_json::{Value, json};

use crate::access::{Action, Caller, Resource};
use crate::id::{AutomationId, RunId, TriggerId};
use crate::list::{Created, Page};
use crate::model::{Origin, Status};
use crate::records::{Order, RecordWrite};
use crate::refusal::Refusal;
use crate::service::Stele;
use crate::service::kept::{Listing, Position};
use crate::service::once::{Answered, Once};
use crate::service::sessions::{NewSession, WantedResource};
use crate::storage::{Error, StorageError};
use crate::work::agent::DefinitionPatch;
use crate::work::attachment::{Naming, Wanted};
use crate::work::automation::Automation;
use crate::work::document::made;
use crate::work::event::{EventKind, NewEvent};
use crate::work::note::memory_note;
use crate::work::refusal::WorkRefusal;
use crate::work::run::{Cause, Ran, Run, runs_of};
use crate::work::session::Whole;
use crate::work::{Dialect, Fields};

/// Runs that are looked through in one read.
const STEP: usize = 500;
/// How often a session is begun anew because a store was archived in the meantime.
const STARTS: usize = 8;

/// The field of a session that names the stores which it was to have and has not.
pub const SKIPPED_STORES: &str = "skipped_memory_stores";

/// Which runs are listed.
#[derive(Clone, Debug, Default)]
pub struct RunQuery {
    /// Of this automation.
    pub automation: Option<AutomationId>,
    /// Of this trigger.
    pub trigger: Option<TriggerId>,
    /// With a cause of this name.
    pub cause: Option<&'static str>,
    /// With what became of them under this name.
    pub ran: Option<&'static str>,
    /// Begun in this span.
    pub created: Created,
    /// After this place.
    pub after: Option<Position>,
    /// At most so many.
    pub limit: usize,
}

impl RunQuery {
    fn shows(&self, run: &Run) -> bool {
        self.trigger.is_none_or(|trigger| run.trigger() == Some(trigger))
            && self.cause.is_none_or(|cause| run.cause.as_str() == cause)
            && self.ran.is_none_or(|ran| run.ran.as_str() == ran)
    }
}

impl Stele {
    /// Runs an automation by hand, paused or not, once for an idempotency key.
    ///
    /// # Errors
    /// No update permission, no such automation, the key stands for another request.
    pub async fn automation_run(
        &self,
        caller: &Caller,
        id: AutomationId,
        payload: Option<Value>,
        once: Option<Once<Run>>,
    ) -> Result<Answered<Run>, Error> {
        caller.may(Resource::Automation, Action::Update).map_err(Refusal::from)?;
        let draft = || async {
            let automation = self.automation_there(caller, id).await?.doc;
            let cause = Cause::Manual { payload: payload.clone() };
            let (run, whole, writes) = self.run_draft(caller, automation, cause).await?;
            Ok(((run, whole), writes))
        };
        let once = once.map(|Once { key, identity, answer }| Once {
            key,
            identity,
            answer: Box::new(move |(run, _): &(Run, Option<Whole>)| answer(run)),
        });
        Ok(match self.once(caller.workspace, once, draft).await? {
            Answered::Before(answer) => Answered::Before(answer),
            Answered::Now((run, whole)) => {
                if let Some(whole) = &whole {
                    self.session_begun(whole);
                }
                Answered::Now(run)
            }
        })
    }

    /// The note about memory that the next session of an automation gets, to the letter; `None` before the agent's first
    /// session, which makes the learned store that stands in it.
    ///
    /// # Errors
    /// No read permission, no such automation, or what would stand in the session's way.
    pub async fn automation_memory_note(
        &self,
        caller: &Caller,
        id: AutomationId,
    ) -> Result<Option<String>, Error> {
        let automation = self.automation_get(caller, id).await?;
        let agent = self.agent_there(caller.workspace, automation.definition.agent).await?.doc;
        if agent.learns() {
            let Some(learned) = agent.learned_store else { return Ok(None) };
            if self.storage.store_by_id(caller.workspace, learned).await?.is_none() {
                return Ok(None);
            }
        }
        // Drafted as a run drafts it, and not committed.
        let (whole, _) = self.automation_session(caller, &automation).await?;
        Ok(Some(memory_note(whole.session.attachments())))
    }

    /// A run with the session that it starts, and the writes that make both. What stands in the way of a session is
    /// what became of the run.
    pub(super) async fn run_draft(
        &self,
        caller: &Caller,
        automation: Automation,
        cause: Cause,
    ) -> Result<(Run, Option<Whole>, Vec<RecordWrite>), Error> {
        let now = self.clock.now();
        let id = RunId::mint(now, self.random.bits());
        let (ran, whole, mut writes) = match self.automation_session(caller, &automation).await {
            Ok((whole, writes)) => (Ran::Created { session: whole.session.id }, Some(whole), writes),
            Err(Error::Refused { refusal, .. }) => {
                (Ran::Failed { message: refusal.to_string() }, None, Vec::new())
            }
            Err(error) => return Err(error),
        };
        let run = Run { id, automation, cause, ran, created_at: now };
        writes.push(made(caller.workspace, &run));
        Ok((run, whole, writes))
    }

    /// A session of an automation: stores that it cannot have any more are left out and named. spec/recursion.md 11.4.
    async fn automation_session(
        &self,
        caller: &Caller,
        automation: &Automation,
    ) -> Result<(Whole, Vec<RecordWrite>), Error> {
        let wanted = &automation.definition;
        let version = self.version_by_id(caller.workspace, wanted.agent, wanted.agent_version).await?;
        let version = version.ok_or(Refusal::AgentNotFound(wanted.agent))?.version;
        for _ in 0..STARTS {
            let (stores, skipped) = self.stores_now(caller, automation).await?;
            let mut extra = Fields::new();
            if !skipped.is_empty() {
                extra.insert(SKIPPED_STORES.into(), skipped.into());
            }
            let text = json!([{"type": "text", "text": wanted.prompt}]);
            let mut opening =
                NewEvent::new(EventKind::USER_MESSAGE, Fields::from_iter([("content".to_owned(), text)]));
            opening.extra.insert("actor".into(), "system:stele".into());
            let new = NewSession {
                made_through: Dialect::Recursion,
                agent: wanted.agent,
                version: Some(version),
                overrides: DefinitionPatch::default(),
                environment: Some(wanted.environment),
                resources: stores.into_iter().map(WantedResource::Store).collect(),
                naming: Naming::BySlug,
                title: None,
                metadata: wanted.metadata.clone().unwrap_or_default(),
                vaults: Vec::new(),
                budget: None,
                extra,
                events: vec![opening],
            };
            match self.session_draft(caller, new).await {
                // A store changed since it was looked at: it is looked at again.
                Err(Error::Refused {
                    refusal: Refusal::StoreArchived(_) | Refusal::StoreNotFound(_),
                    ..
                }) => {}
                drafted => return drafted,
            }
        }
        Err(StorageError::Overloaded.into())
    }

    /// The stores of an automation that its sessions can have now, and those that they cannot, each with the reason.
    async fn stores_now(
        &self,
        caller: &Caller,
        automation: &Automation,
    ) -> Result<(Vec<Wanted>, Vec<Value>), StorageError> {
        // One place is the learned store's.
        let most = self.limits.stores_per_session.saturating_sub(1);
        let (mut stores, mut skipped) = (Vec::new(), Vec::new());
        for wanted in &automation.definition.stores {
            let store = self.storage.store_by_id(caller.workspace, wanted.store).await?;
            let agent = automation.definition.agent;
            let reason = match store {
                None => "deleted",
                Some(store) if store.status() == Status::Archived => "archived",
                Some(store) if store.agent.is_some_and(|owner| owner != agent) => "foreign_agent",
                Some(store) if store.origin == Origin::Curated && stores.len() < most => {
                    stores.push(wanted.clone());
                    continue;
                }
                Some(_) => "limit",
            };
            skipped.push(json!({"memory_store_id": wanted.store.to_string(), "reason": reason}));
        }
        Ok((stores, skipped))
    }

    /// A run.
    ///
    /// # Errors
    /// No read permission, or no such run.
    pub async fn run_get(&self, caller: &Caller, id: RunId) -> Result<Run, Error> {
        caller.may(Resource::Automation, Action::Read).map_err(Refusal::from)?;
        let found = self.find::<Run>(caller.workspace, *id.as_bytes()).await?;
        Ok(found.ok_or_else(|| Refusal::from(WorkRefusal::RunNotFound(id)))?.doc)
    }

    /// Runs, newest first, and how many there are in all.
    ///
    /// # Errors
    /// No read permission.
    pub async fn run_list(&self, caller: &Caller, query: &RunQuery) -> Result<(Page<Run>, usize), Error> {
        caller.may(Resource::Automation, Action::Read).map_err(Refusal::from)?;
        let (mut found, mut total, mut after) = (Vec::new(), 0, None);
        loop {
            let tag = query.automation.map(runs_of);
            let (created, order) = (query.created, Order::NewestFirst);
            let listing = Listing { tag, created, order, after, limit: STEP };
            let page = self.list::<Run>(caller.workspace, listing).await?;
            for run in page.items.into_iter().map(|kept| kept.doc) {
                let place = (run.created_at, *run.id.as_bytes());
                after = Some(place);
                if query.shows(&run) {
                    total += 1;
                    if found.len() <= query.limit && query.after.is_none_or(|after| place < after) {
                        found.push(run);
                    }
                }
            }
            if !page.more {
                return Ok((Page::cut(found, query.limit), total));
            }
        }
    }

    /// The newest run of an automation.
    ///
    /// # Errors
    /// No read permission.
    pub async fn run_latest(&self, caller: &Caller, id: AutomationId) -> Result<Option<Run>, Error> {
        caller.may(Resource::Automation, Action::Read).map_err(Refusal::from)?;
        let mut page = self.list::<Run>(caller.workspace, Listing::tagged(runs_of(id), 1)).await?;
        Ok(page.items.pop().map(|kept| kept.doc))
    }
}
