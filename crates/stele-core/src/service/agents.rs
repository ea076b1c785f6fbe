//! Agents and their versions. spec/anthropic.md 10, spec/recursion.md 10.1.

use serde_json::Value;

use crate::access::{Action, Caller, Resource};
use crate::command::NewStore;
use crate::id::{AgentId, AgentVersionId, StoreId, WorkspaceId};
use crate::list::{Created, Page};
use crate::model::Store;
use crate::records::{Order, RecordWrite};
use crate::refusal::Refusal;
use crate::service::Stele;
use crate::service::kept::{ATTEMPTS, Listing, Position, docs};
use crate::service::once::{Answered, Once};
use crate::storage::{Error, StorageError};
use crate::text::{Description, MAX_NAME_CHARS, MetadataPatch, Name};
use crate::work::Dialect;
use crate::work::agent::{self, Agent, AgentVersion, Definition, DefinitionPatch};
use crate::work::document::{Kept, made};
use crate::work::refusal::WorkRefusal;

/// A new agent.
#[derive(Clone, Debug)]
pub struct NewAgent {
    /// The dialect that makes it.
    pub made_through: Dialect,
    /// What it is.
    pub definition: Definition,
    /// Recursion's tags.
    pub labels: Vec<Value>,
}

/// The version that a writer has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedVersion {
    /// By its number.
    Number(u32),
    /// By its id.
    Id(AgentVersionId),
}

impl Stele {
    /// Makes an agent.
    ///
    /// # Errors
    /// No create permission.
    pub async fn agent_create(&self, caller: &Caller, new: NewAgent) -> Result<Agent, Error> {
        match self.agent_create_once(caller, new, None).await? {
            Answered::Now(agent) => Ok(agent),
            Answered::Before(_) => unreachable!("without a key nothing was answered before"),
        }
    }

    /// Makes an agent, once for an idempotency key.
    ///
    /// # Errors
    /// No create permission; the key stands for another request.
    pub async fn agent_create_once(
        &self,
        caller: &Caller,
        new: NewAgent,
        once: Option<Once<Agent>>,
    ) -> Result<Answered<Agent>, Error> {
        caller.may(Resource::Agent, Action::Create).map_err(Refusal::from)?;
        let draft = || async { Ok(self.agent_draft(caller, new.clone())) };
        self.once(caller.workspace, once, draft).await
    }

    fn agent_draft(&self, caller: &Caller, new: NewAgent) -> (Agent, Vec<RecordWrite>) {
        let now = self.clock.now();
        let agent = Agent {
            id: AgentId::mint(now, self.random.bits()),
            made_through: new.made_through,
            version: 1,
            version_id: AgentVersionId::mint(now, self.random.bits()),
            definition: new.definition,
            learned_store: None,
            memory_model: None,
            labels: new.labels,
            created_at: now,
            updated_at: now,
            archived_at: None,
            deleted_at: None,
        };
        let writes = vec![made(caller.workspace, &agent), made(caller.workspace, &agent.newest_version())];
        (agent, writes)
    }

    /// An agent that is not deleted.
    ///
    /// # Errors
    /// No read permission, or no such agent.
    pub async fn agent_get(&self, caller: &Caller, id: AgentId) -> Result<Agent, Error> {
        caller.may(Resource::Agent, Action::Read).map_err(Refusal::from)?;
        Ok(self.agent_there(caller.workspace, id).await?.doc)
    }

    /// The agent, if it is there and not deleted.
    pub(super) async fn agent_there(
        &self,
        workspace: WorkspaceId,
        id: AgentId,
    ) -> Result<Kept<Agent>, Error> {
        let found = self.find::<Agent>(workspace, *id.as_bytes()).await?;
        let there = found.filter(|agent| agent.doc.deleted_at.is_none());
        Ok(there.ok_or(Refusal::AgentNotFound(id))?)
    }

    /// A version of an agent, by its number.
    ///
    /// # Errors
    /// No read permission, no such agent or version.
    pub async fn agent_version(
        &self,
        caller: &Caller,
        id: AgentId,
        version: u32,
    ) -> Result<(Agent, AgentVersion), Error> {
        let agent = self.agent_get(caller, id).await?;
        let found = self.version_there(caller.workspace, id, version).await?;
        Ok((agent, found))
    }

    /// The version of an agent with this number.
    pub(super) async fn version_there(
        &self,
        workspace: WorkspaceId,
        agent: AgentId,
        version: u32,
    ) -> Result<AgentVersion, Error> {
        let found = self.find_by_key::<AgentVersion>(AgentVersion::key_of(agent, version)).await?;
        let found = found.filter(|kept| kept.workspace == workspace);
        let missing = || Refusal::from(WorkRefusal::AgentVersionNotFound { agent, version });
        Ok(found.ok_or_else(missing)?.doc)
    }

    /// A version by its id, as Recursion names it; `None` if the agent has no such one.
    ///
    /// # Errors
    /// No read permission, or no such agent.
    pub async fn agent_version_by_id(
        &self,
        caller: &Caller,
        agent: AgentId,
        id: AgentVersionId,
    ) -> Result<Option<AgentVersion>, Error> {
        self.agent_get(caller, agent).await?;
        Ok(self.version_by_id(caller.workspace, agent, id).await?)
    }

    pub(super) async fn version_by_id(
        &self,
        workspace: WorkspaceId,
        agent: AgentId,
        id: AgentVersionId,
    ) -> Result<Option<AgentVersion>, StorageError> {
        let found = self.find::<AgentVersion>(workspace, *id.as_bytes()).await?;
        Ok(found.map(|kept| kept.doc).filter(|version| version.agent == agent))
    }

    /// Versions of an agent, newest first.
    ///
    /// # Errors
    /// No read permission, or no such agent.
    pub async fn agent_version_list(
        &self,
        caller: &Caller,
        id: AgentId,
        after: Option<Position>,
        limit: usize,
    ) -> Result<(Agent, Page<AgentVersion>), Error> {
        let agent = self.agent_get(caller, id).await?;
        let listing = Listing { after, ..Listing::tagged(agent::versions_of(id), limit) };
        Ok((agent, docs(self.list(caller.workspace, listing).await?)))
    }

    /// Agents, newest first.
    ///
    /// # Errors
    /// No read permission.
    pub async fn agent_list(
        &self,
        caller: &Caller,
        include_archived: bool,
        created: Created,
        after: Option<Position>,
        limit: usize,
    ) -> Result<Page<Agent>, Error> {
        caller.may(Resource::Agent, Action::Read).map_err(Refusal::from)?;
        let tag = Some(agent::listed(include_archived));
        let listing = Listing { tag, created, order: Order::NewestFirst, after, limit };
        Ok(docs(self.list(caller.workspace, listing).await?))
    }

    /// Changes an agent: a real change is a new version.
    ///
    /// # Errors
    /// No update permission, no such agent, archived, another version than expected, bounds.
    pub async fn agent_update(
        &self,
        caller: &Caller,
        id: AgentId,
        expected: Option<ExpectedVersion>,
        patch: DefinitionPatch,
    ) -> Result<Agent, Error> {
        caller.may(Resource::Agent, Action::Update).map_err(Refusal::from)?;
        let _turn = self.turns.take(*id.as_bytes()).await;
        for _ in 0..ATTEMPTS {
            let kept = self.agent_there(caller.workspace, id).await?;
            let old = &kept.doc;
            if old.archived_at.is_some() {
                return Err(Refusal::from(WorkRefusal::AgentArchived(id)).into());
            }
            let fits = match expected {
                None => true,
                Some(ExpectedVersion::Number(number)) => number == old.version,
                Some(ExpectedVersion::Id(version)) => version == old.version_id,
            };
            if !fits {
                return Err(Refusal::from(WorkRefusal::AgentChanged { newest: old.version }).into());
            }
            let definition = patch.apply(&old.definition)?;
            if definition == old.definition {
                return Ok(kept.doc);
            }
            let at = self.clock.now().after(old.updated_at);
            let mut agent = old.clone();
            (agent.definition, agent.updated_at) = (definition, at);
            agent.version += 1;
            agent.version_id = AgentVersionId::mint(at, self.random.bits());
            let version = made(caller.workspace, &agent.newest_version());
            if self.commit(vec![kept.replaced_by(&agent), version]).await? {
                return Ok(agent);
            }
        }
        Err(StorageError::Overloaded.into())
    }

    /// Sets the model that an agent's memory is learned with; `None` goes back to the agent's own. Makes no version.
    /// spec/recursion.md 8.5.
    ///
    /// # Errors
    /// No update permission, or no such agent.
    pub async fn agent_memory_model(
        &self,
        caller: &Caller,
        id: AgentId,
        model: Option<String>,
    ) -> Result<Agent, Error> {
        caller.may(Resource::Agent, Action::Update).map_err(Refusal::from)?;
        for _ in 0..ATTEMPTS {
            let kept = self.agent_there(caller.workspace, id).await?;
            let agent = Agent { memory_model: model.clone(), ..kept.doc.clone() };
            if agent == kept.doc || self.commit(vec![kept.replaced_by(&agent)]).await? {
                return Ok(agent);
            }
        }
        Err(StorageError::Overloaded.into())
    }

    /// Archives an agent; again changes nothing.
    ///
    /// # Errors
    /// No update permission, or no such agent.
    pub async fn agent_archive(&self, caller: &Caller, id: AgentId) -> Result<Agent, Error> {
        caller.may(Resource::Agent, Action::Archive).map_err(Refusal::from)?;
        self.agent_mark(caller, id, |agent, at| {
            agent.archived_at = Some(at);
            agent.updated_at = at;
        })
        .await
    }

    /// Deletes an agent as Recursion does: nothing shows it any more; its learned store and its sessions stay.
    ///
    /// # Errors
    /// No delete permission, or no such agent.
    pub async fn agent_delete(&self, caller: &Caller, id: AgentId) -> Result<(), Error> {
        caller.may(Resource::Agent, Action::Delete).map_err(Refusal::from)?;
        self.agent_mark(caller, id, |agent, at| agent.deleted_at = Some(at)).await.map(drop)
    }

    async fn agent_mark(
        &self,
        caller: &Caller,
        id: AgentId,
        mark: fn(&mut Agent, crate::time::Timestamp),
    ) -> Result<Agent, Error> {
        for _ in 0..ATTEMPTS {
            let kept = self.agent_there(caller.workspace, id).await?;
            let mut agent = kept.doc.clone();
            mark(&mut agent, self.clock.now().after(kept.doc.updated_at));
            let repeated = kept.doc.archived_at.is_some() && agent.deleted_at.is_none();
            if repeated {
                return Ok(kept.doc);
            }
            if self.commit(vec![kept.replaced_by(&agent)]).await? {
                return Ok(agent);
            }
        }
        Err(StorageError::Overloaded.into())
    }

    /// The agent's learned store, made now if it has none yet; `None` for an agent that does not learn. Its id is
    /// noted with the agent first, so that there is never a second one.
    pub(super) async fn learned_store(
        &self,
        caller: &Caller,
        mut kept: Kept<Agent>,
    ) -> Result<Option<Store>, Error> {
        if !kept.doc.learns() {
            return Ok(None);
        }
        let id = kept.doc.id;
        let _turn = self.turns.take(*id.as_bytes()).await;
        let mut noted = None;
        for _ in 0..ATTEMPTS {
            if kept.doc.learned_store.is_some() {
                noted = kept.doc.learned_store;
                break;
            }
            let mut agent = kept.doc.clone();
            agent.learned_store = Some(StoreId::mint(self.clock.now(), self.random.bits()));
            if self.commit(vec![kept.replaced_by(&agent)]).await? {
                noted = agent.learned_store;
                break;
            }
            kept = self.agent_there(caller.workspace, id).await?;
        }
        let store = noted.ok_or(StorageError::Overloaded)?;
        if let Some(there) = self.storage.store_by_id(caller.workspace, store).await? {
            return Ok(Some(there));
        }
        let name: String = format!("{} memory", kept.doc.definition.name)
            .chars()
            .filter(|c| !c.is_control())
            .take(MAX_NAME_CHARS)
            .collect();
        let new = NewStore {
            name: Name::from_trusted(name),
            description: Description::from_trusted(String::new()),
            metadata: MetadataPatch::default(),
            agent: Some(id),
            learned: Some(store),
        };
        match self.storage.store_create(caller.workspace, caller.actor(), new).await {
            Ok(made) => Ok(Some(made)),
            // Another process may have made it since it was looked for.
            Err(error) => match self.storage.store_by_id(caller.workspace, store).await? {
                Some(there) => Ok(Some(there)),
                None => Err(error),
            },
        }
    }
}
