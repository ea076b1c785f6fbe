//! Automations: defining, reading, pausing. spec/recursion.md 11.

use std::collections::HashMap;

use crate::access::{Action, Caller, Principal, Resource};
use crate::id::{AutomationId, KeyId, TriggerId};
use crate::list::{Created, Page};
use crate::model::{Origin, Status};
use crate::records::{Order, RecordWrite};
use crate::refusal::Refusal;
use crate::service::Stele;
use crate::service::kept::{ATTEMPTS, Listing, Position, docs};
use crate::service::once::{Answered, Once};
use crate::storage::{Error, StorageError};
use crate::time::Timestamp;
use crate::work::automation::{Automation, AutomationDefinition};
use crate::work::document::{Kept, made};
use crate::work::refusal::WorkRefusal;
use crate::work::timer::{Timer, timers_of};

/// Timers that an automation has at most, and then some.
const STEP: usize = 100;
/// Automations that are counted in one read.
const COUNTED: usize = 500;

impl Stele {
    /// Makes an automation, paused, once for an idempotency key.
    ///
    /// # Errors
    /// No create permission; it names an agent, a version, an environment or a store that its sessions could not have;
    /// the key stands for another request.
    pub async fn automation_create(
        &self,
        caller: &Caller,
        definition: AutomationDefinition,
        once: Option<Once<Automation>>,
    ) -> Result<Answered<Automation>, Error> {
        caller.may(Resource::Automation, Action::Create).map_err(Refusal::from)?;
        let made_by = match &caller.principal {
            Principal::Key { key, .. } => *key,
            // The table lets no other in.
            Principal::Environment { .. } | Principal::Session(_) => KeyId::from_bytes([0; 16]),
        };
        let draft = || async {
            self.automation_judge(caller, &definition).await?;
            let now = self.clock.now();
            let automation = Automation {
                id: AutomationId::mint(now, self.random.bits()),
                definition: definition.clone(),
                active: false,
                revision: 1,
                made_by,
                created_at: now,
                updated_at: now,
            };
            let mut writes = vec![made(caller.workspace, &automation)];
            for trigger in &automation.definition.triggers {
                writes.push(made(caller.workspace, &Timer::new(automation.id, trigger.id, 1, now)));
            }
            Ok((automation, writes))
        };
        self.once(caller.workspace, once, draft).await
    }

    /// Judges what a definition names. spec/recursion.md 11.2 and 11.3.
    async fn automation_judge(&self, caller: &Caller, new: &AutomationDefinition) -> Result<(), Error> {
        let reference = |field: &str, problem| {
            Refusal::from(WorkRefusal::AutomationReference { field: field.into(), problem })
        };
        let agent = match self.agent_there(caller.workspace, new.agent).await {
            Ok(agent) => agent,
            Err(Error::Refused { .. }) => return Err(reference("agentId", "names no agent").into()),
            Err(error) => return Err(error),
        };
        if agent.doc.archived_at.is_some() {
            return Err(reference("agentId", "names an archived agent").into());
        }
        let version = self.version_by_id(caller.workspace, new.agent, new.agent_version).await?;
        if version.is_none() {
            return Err(reference("agentVersionId", "names no version of the agent").into());
        }
        match self.environment_there(caller, new.environment).await {
            Ok(environment) if environment.doc.archived_at.is_some() => {
                return Err(reference("environmentId", "names an archived environment").into());
            }
            Ok(_) => {}
            Err(Error::Refused { .. }) => {
                return Err(reference("environmentId", "names no environment").into());
            }
            Err(error) => return Err(error),
        }
        for (place, wanted) in new.stores.iter().enumerate() {
            let store = self.storage.store_by_id(caller.workspace, wanted.store).await?;
            let problem = match &store {
                None => "names no memory store",
                Some(store) if store.origin == Origin::Reflection => {
                    "names a learned store, which sessions of its agent have anyway"
                }
                Some(store) if store.status() == Status::Archived => "names an archived store",
                Some(store) if store.agent.is_some_and(|agent| agent != new.agent) => {
                    "names a store of another agent"
                }
                Some(_) => continue,
            };
            let field = format!("runDefaults.memoryStores[{place}].memoryStoreId");
            return Err(Refusal::from(WorkRefusal::AutomationStore { field, problem }).into());
        }
        Ok(())
    }

    /// An automation.
    ///
    /// # Errors
    /// No read permission, or no such automation.
    pub async fn automation_get(&self, caller: &Caller, id: AutomationId) -> Result<Automation, Error> {
        caller.may(Resource::Automation, Action::Read).map_err(Refusal::from)?;
        Ok(self.automation_there(caller, id).await?.doc)
    }

    /// Whether there is such an automation for who may do `action` with it; what else is wrong is said later.
    ///
    /// # Errors
    /// No permission, or no such automation.
    pub async fn automation_judged(
        &self,
        caller: &Caller,
        id: AutomationId,
        action: Action,
    ) -> Result<(), Error> {
        caller.may(Resource::Automation, action).map_err(Refusal::from)?;
        self.automation_there(caller, id).await.map(drop)
    }

    pub(super) async fn automation_there(
        &self,
        caller: &Caller,
        id: AutomationId,
    ) -> Result<Kept<Automation>, Error> {
        let found = self.find::<Automation>(caller.workspace, *id.as_bytes()).await?;
        Ok(found.ok_or_else(|| Refusal::from(WorkRefusal::AutomationNotFound(id)))?)
    }

    /// Automations, newest first.
    ///
    /// # Errors
    /// No read permission.
    pub async fn automation_list(
        &self,
        caller: &Caller,
        after: Option<Position>,
        limit: usize,
    ) -> Result<Page<Automation>, Error> {
        caller.may(Resource::Automation, Action::Read).map_err(Refusal::from)?;
        let (created, order) = (Created::default(), Order::NewestFirst);
        let listing = Listing { tag: None, created, order, after, limit };
        Ok(docs(self.list(caller.workspace, listing).await?))
    }

    /// How many automations there are.
    ///
    /// # Errors
    /// No read permission.
    pub async fn automation_count(&self, caller: &Caller) -> Result<usize, Error> {
        let (mut count, mut after) = (0, None);
        loop {
            let page = self.automation_list(caller, after, COUNTED).await?;
            count += page.items.len();
            after = page.items.last().map(|one| (one.created_at, *one.id.as_bytes()));
            if !page.more {
                return Ok(count);
            }
        }
    }

    /// How the schedules of an automation stand, in the order of its triggers.
    ///
    /// # Errors
    /// No read permission, or no such automation.
    pub async fn automation_timers(
        &self,
        caller: &Caller,
        id: AutomationId,
    ) -> Result<(Automation, Vec<Timer>), Error> {
        let automation = self.automation_get(caller, id).await?;
        let mut timers = self.timers(caller, id).await?;
        let ordered = automation.definition.triggers.iter().filter_map(|trigger| timers.remove(&trigger.id));
        let ordered = ordered.map(|kept| kept.doc).collect();
        Ok((automation, ordered))
    }

    async fn timers(
        &self,
        caller: &Caller,
        id: AutomationId,
    ) -> Result<HashMap<TriggerId, Kept<Timer>>, StorageError> {
        let page = self.list::<Timer>(caller.workspace, Listing::tagged(timers_of(id), STEP)).await?;
        Ok(page.items.into_iter().map(|kept| (kept.doc.trigger, kept)).collect())
    }

    /// Replaces an automation whole, if it has the revision that the caller read.
    ///
    /// # Errors
    /// No update permission, no such automation, another revision; what it names.
    pub async fn automation_replace(
        &self,
        caller: &Caller,
        id: AutomationId,
        expected: impl Fn(u64) -> bool,
        definition: AutomationDefinition,
    ) -> Result<Automation, Error> {
        caller.may(Resource::Automation, Action::Update).map_err(Refusal::from)?;
        self.automation_expected(caller, id, &expected).await?;
        self.automation_judge(caller, &definition).await?;
        self.automation_change(caller, id, expected, |new| new.definition = definition.clone()).await
    }

    /// Lets the triggers of an automation fire, or lets them rest. Again changes nothing.
    ///
    /// # Errors
    /// No update permission, no such automation, or another revision.
    pub async fn automation_activate(
        &self,
        caller: &Caller,
        id: AutomationId,
        expected: impl Fn(u64) -> bool,
        active: bool,
    ) -> Result<Automation, Error> {
        caller.may(Resource::Automation, Action::Update).map_err(Refusal::from)?;
        self.automation_change(caller, id, expected, |new| new.active = active).await
    }

    async fn automation_expected(
        &self,
        caller: &Caller,
        id: AutomationId,
        expected: &impl Fn(u64) -> bool,
    ) -> Result<Kept<Automation>, Error> {
        let kept = self.automation_there(caller, id).await?;
        let revision = kept.doc.revision;
        if expected(revision) {
            Ok(kept)
        } else {
            Err(Refusal::from(WorkRefusal::AutomationChanged { revision }).into())
        }
    }

    async fn automation_change(
        &self,
        caller: &Caller,
        id: AutomationId,
        expected: impl Fn(u64) -> bool,
        change: impl Fn(&mut Automation),
    ) -> Result<Automation, Error> {
        for _ in 0..ATTEMPTS {
            let kept = self.automation_expected(caller, id, &expected).await?;
            let mut new = kept.doc.clone();
            change(&mut new);
            if new == kept.doc {
                return Ok(new);
            }
            new.revision += 1;
            new.updated_at = self.clock.now().after(kept.doc.updated_at);
            let mut writes = vec![kept.replaced_by(&new)];
            let mut timers = self.timers(caller, id).await?;
            for trigger in &new.definition.triggers {
                let before = timers.remove(&trigger.id);
                let fires = new.active && trigger.enabled;
                let unchanged = kept.doc.trigger(trigger.id) == Some(trigger);
                if unchanged && before.is_some() && kept.doc.active == new.active {
                    continue;
                }
                let timer = match &before {
                    Some(before) if unchanged => before.doc.clone(),
                    Some(before) => Timer { incarnation: new.revision, ..before.doc.clone() },
                    None => Timer::new(id, trigger.id, new.revision, new.updated_at),
                };
                let timer =
                    if fires { timer.running(&trigger.timing, new.updated_at) } else { timer.stopped() };
                writes.push(match &before {
                    Some(before) => before.replaced_by(&timer),
                    None => made(caller.workspace, &timer),
                });
            }
            writes.extend(timers.values().map(Kept::removed));
            if self.commit(writes).await? {
                return Ok(new);
            }
        }
        Err(StorageError::Overloaded.into())
    }

    /// Deletes an automation; its runs and their sessions stay.
    ///
    /// # Errors
    /// No delete permission, no such automation, or another revision.
    pub async fn automation_delete(
        &self,
        caller: &Caller,
        id: AutomationId,
        expected: impl Fn(u64) -> bool,
    ) -> Result<(), Error> {
        caller.may(Resource::Automation, Action::Delete).map_err(Refusal::from)?;
        for _ in 0..ATTEMPTS {
            let kept = self.automation_expected(caller, id, &expected).await?;
            let timers = self.timers(caller, id).await?;
            let writes: Vec<RecordWrite> =
                std::iter::once(kept.removed()).chain(timers.values().map(Kept::removed)).collect();
            if self.commit(writes).await? {
                return Ok(());
            }
        }
        Err(StorageError::Overloaded.into())
    }

    /// The next occasions of a timer, at most `most`.
    pub fn upcoming(automation: &Automation, timer: &Timer, most: usize) -> Vec<Timestamp> {
        let timing = automation.trigger(timer.trigger).map(|trigger| &trigger.timing);
        let after = |at: &Timestamp| timing.and_then(|timing| timing.next_occasion(*at));
        std::iter::successors(timer.next, after).take(most).collect()
    }
}
