//! Sessions: making, reading, changing and ending them. spec/anthropic.md 6 and 7, spec/recursion.md 10.5 and 16.4.

use serde_json::{Value, json};

use crate::access::{Action, Caller, Principal, Resource as Kind};
use crate::id::{AgentId, EnvironmentId, ResourceId, SessionId, WorkItemId, WorkspaceId};
use crate::records::RecordWrite;
use crate::refusal::Refusal;
use crate::service::Stele;
use crate::service::kept::ATTEMPTS;
use crate::service::once::{Answered, Once};
use crate::storage::{Error, StorageError};
use crate::text::{Metadata, MetadataPatch};
use crate::work::agent::{AgentSnapshot, DefinitionPatch};
use crate::work::attachment::{self, Access, Attachment, Naming, Wanted};
use crate::work::document::{Kept, made};
use crate::work::environment::{Environment, Hosting};
use crate::work::event::{self, EventKind, NewEvent};
use crate::work::item::WorkItem;
use crate::work::note;
use crate::work::refusal::WorkRefusal;
use crate::work::session::{Resource, Session, SessionState, SessionStatus, Whole, log_of, state_of};
use crate::work::{Dialect, Fields};

mod end;
mod list;
mod resources;

pub use list::{SessionFilter, SessionQuery};

/// Documents that go with a deleted session in one commit.
const STEP: usize = 500;

/// Something that a new session is to carry.
#[derive(Clone, Debug)]
pub enum WantedResource {
    /// A memory store.
    Store(Wanted),
    /// A file or repository, with its fields.
    Other(Fields),
}

/// A new session.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// The dialect that makes it.
    pub made_through: Dialect,
    /// Its agent.
    pub agent: AgentId,
    /// The version of the agent; `None` for the newest.
    pub version: Option<u32>,
    /// What the session overrides of the agent's definition.
    pub overrides: DefinitionPatch,
    /// Where it runs.
    pub environment: Option<EnvironmentId>,
    /// What it carries, in order.
    pub resources: Vec<WantedResource>,
    /// How its directories are called.
    pub naming: Naming,
    /// Its title.
    pub title: Option<String>,
    /// Free pairs.
    pub metadata: Metadata,
    /// Vaults.
    pub vaults: Vec<String>,
    /// The budget.
    pub budget: Option<Value>,
    /// What only Recursion knows.
    pub extra: Fields,
    /// Its first events.
    pub events: Vec<NewEvent>,
}

/// A change of a session; `None` keeps a part.
#[derive(Clone, Debug, Default)]
pub struct SessionPatch {
    /// New title.
    pub title: Option<Option<String>>,
    /// Change of the metadata.
    pub metadata: MetadataPatch,
    /// New budget.
    pub budget: Option<Option<Value>>,
    /// Change of the agent's definition, and how the dialect shows the agent in the event that tells of it.
    pub agent: Option<(DefinitionPatch, ShowAgent)>,
}

/// How a dialect shows the agent of a session.
pub type ShowAgent = fn(&AgentSnapshot) -> Value;

/// What stands in the way of ending a session that is running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenRunning {
    /// Refuse.
    Refuse,
    /// End it all the same.
    End,
}

/// A session and its state as they were read.
pub(super) struct Read {
    pub(super) session: Kept<Session>,
    pub(super) state: Kept<SessionState>,
}

impl Read {
    pub(super) fn whole(&self) -> Whole {
        Whole { session: self.session.doc.clone(), state: self.state.doc.clone() }
    }

    fn not_running(&self) -> Result<(), Refusal> {
        match self.state.doc.status {
            SessionStatus::Running | SessionStatus::Rescheduling => {
                Err(WorkRefusal::SessionRunning(self.session.doc.id).into())
            }
            SessionStatus::Idle | SessionStatus::Terminated => Ok(()),
        }
    }
}

impl Stele {
    /// Starts a session. The agent's first one brings the agent its learned store, which is attached to each of its
    /// sessions, read_only. spec/recursion.md 8.1 and 16.4.
    ///
    /// # Errors
    /// No create permission; no such agent, version, environment or store; one that is archived; bounds.
    pub async fn session_create(&self, caller: &Caller, new: NewSession) -> Result<Whole, Error> {
        match self.session_create_once(caller, new, None).await? {
            Answered::Now(whole) => Ok(whole),
            Answered::Before(_) => unreachable!("without a key nothing was answered before"),
        }
    }

    /// Starts a session, once for an idempotency key.
    ///
    /// # Errors
    /// As [`Self::session_create`]; the key stands for another request.
    pub async fn session_create_once(
        &self,
        caller: &Caller,
        new: NewSession,
        once: Option<Once<Whole>>,
    ) -> Result<Answered<Whole>, Error> {
        caller.may(Kind::Session, Action::Create).map_err(Refusal::from)?;
        let draft = || self.session_draft(caller, new.clone());
        let answered = self.once(caller.workspace, once, draft).await?;
        if let Answered::Now(whole) = &answered {
            self.session_begun(whole);
        }
        Ok(answered)
    }

    /// A new session, with the writes that make it.
    pub(super) async fn session_draft(
        &self,
        caller: &Caller,
        new: NewSession,
    ) -> Result<(Whole, Vec<RecordWrite>), Error> {
        let kept = self.agent_there(caller.workspace, new.agent).await?;
        if kept.doc.archived_at.is_some() {
            return Err(Refusal::from(WorkRefusal::AgentArchived(new.agent)).into());
        }
        let mut agent = match new.version {
            Some(version) if version != kept.doc.version => {
                self.version_there(caller.workspace, new.agent, version).await?.snapshot()
            }
            _ => kept.doc.snapshot(),
        };
        agent.definition = new.overrides.apply(&agent.definition)?;
        let self_hosted = self.environment_for(caller, &new).await?;
        let resources = self.attach_all(caller, &new, kept).await?;
        let now = self.clock.now();
        let session = Session {
            id: SessionId::mint(now, self.random.bits()),
            made_through: new.made_through,
            agent,
            environment: new.environment,
            self_hosted,
            resources,
            title: new.title,
            metadata: new.metadata,
            vaults: new.vaults,
            budget: new.budget,
            extra: new.extra,
            created_at: now,
            updated_at: now,
            archived_at: None,
        };
        let state = SessionState::new(session.id, now);
        let appended = event::append(&state, new.events, now, &*self.random);
        let (mut state, events) = appended.map_err(|place| after_end("initial_events", place))?;
        let mut writes = vec![made(caller.workspace, &session)];
        if let Some(environment) = session.environment.filter(|_| self_hosted && !ended(&state)) {
            let id = WorkItemId::mint(now, self.random.bits());
            state.live_item = Some(id);
            writes.push(made(caller.workspace, &WorkItem::queued(id, environment, session.id, now)));
        }
        writes.push(made(caller.workspace, &state));
        if !events.is_empty() {
            let entries = events.iter().map(event::Event::entry).collect();
            writes.push(RecordWrite::Append { workspace: caller.workspace, log: session.log(), entries });
        }
        Ok((Whole { session, state }, writes))
    }

    /// Tells of a session that was committed.
    pub(super) fn session_begun(&self, whole: &Whole) {
        if let Some(environment) = whole.session.environment.filter(|_| whole.state.live_item.is_some()) {
            self.queue_moved(environment);
        }
    }

    /// Whether the environment of a new session has workers of its own.
    async fn environment_for(&self, caller: &Caller, new: &NewSession) -> Result<bool, Error> {
        let Some(id) = new.environment else { return Ok(false) };
        let environment: Environment = self.environment_there(caller, id).await?.doc;
        if environment.archived_at.is_some() {
            return Err(Refusal::from(WorkRefusal::EnvironmentArchived(id)).into());
        }
        let self_hosted = environment.hosting == Hosting::SelfHosted;
        let other = new.resources.iter().position(|wanted| matches!(wanted, WantedResource::Other(_)));
        if let Some(place) = other.filter(|_| self_hosted) {
            let problem = "a self-hosted environment takes memory_store resources only";
            return Err(Refusal::shape(format!("resources.{place}.type"), problem).into());
        }
        Ok(self_hosted)
    }

    async fn attach_all(
        &self,
        caller: &Caller,
        new: &NewSession,
        agent: Kept<crate::work::agent::Agent>,
    ) -> Result<Vec<Resource>, Error> {
        let wanted = new.resources.iter().enumerate().filter_map(|(place, wanted)| match wanted {
            WantedResource::Store(wanted) => Some((place, wanted.clone())),
            WantedResource::Other(_) => None,
        });
        let (places, wanted): (Vec<usize>, Vec<Wanted>) = wanted.unzip();
        attachment::check(&wanted, &self.limits, |n, field| match field {
            "" => format!("resources.{}", places[n]),
            field => format!("resources.{}.{field}", places[n]),
        })?;
        let mut stores = Vec::with_capacity(wanted.len());
        for one in &wanted {
            let store = self.storage.store_by_id(caller.workspace, one.store).await?;
            let store = store.ok_or(Refusal::StoreNotFound(one.store))?;
            // Judged before the agent's learned store is made: a refused session leaves nothing behind.
            attachment::attach(one, &store, new.naming, &[])?;
            stores.push(store);
        }
        let mut attached: Vec<Attachment> = Vec::with_capacity(stores.len() + 1);
        let learned = self.learned_store(caller, agent).await?;
        let learned = learned.filter(|store| !stores.iter().any(|other| other.id == store.id));
        let fits = stores.len() < self.limits.stores_per_session;
        let learned = learned
            .filter(|_| fits)
            .map(|store| (Wanted { store: store.id, access: Access::ReadOnly, instructions: None }, store));
        // Recursion shows the learned store first; who listed resources through Anthropic finds them where they were.
        let first = new.made_through == Dialect::Recursion;
        if let Some((wanted, store)) = learned.as_ref().filter(|_| first) {
            attached.push(attachment::attach(wanted, store, new.naming, &attached)?);
        }
        let mut asked_for = wanted.iter().zip(&stores);
        let now = self.clock.now();
        let mut resources = Vec::with_capacity(new.resources.len() + 1);
        resources.extend(attached.iter().cloned().map(Resource::Store));
        for wanted in &new.resources {
            resources.push(match wanted {
                WantedResource::Other(fields) => Resource::Other {
                    id: ResourceId::mint(now, self.random.bits()),
                    fields: fields.clone(),
                    created_at: now,
                },
                WantedResource::Store(_) => {
                    let (wanted, store) = asked_for.next().expect("each store asked for was looked up");
                    attached.push(attachment::attach(wanted, store, new.naming, &attached)?);
                    Resource::Store(attached.last().expect("just pushed").clone())
                }
            });
        }
        if let Some((wanted, store)) = learned.as_ref().filter(|_| !first) {
            resources.push(Resource::Store(attachment::attach(wanted, store, new.naming, &attached)?));
        }
        Ok(resources)
    }

    /// A session with its state, whoever asks.
    pub(super) async fn whole(
        &self,
        workspace: WorkspaceId,
        id: SessionId,
    ) -> Result<Option<Whole>, StorageError> {
        Ok(self.session_and_state(workspace, id).await?.map(|read| read.whole()))
    }

    async fn session_and_state(
        &self,
        workspace: WorkspaceId,
        id: SessionId,
    ) -> Result<Option<Read>, StorageError> {
        let Some(session) = self.find::<Session>(workspace, *id.as_bytes()).await? else { return Ok(None) };
        let state = self.find::<SessionState>(workspace, state_of(id)).await?;
        Ok(state.map(|state| Read { session, state }))
    }

    /// A session that the caller reaches: the holder of a token its own one, of an environment's key those in it.
    pub(super) async fn session_reached(&self, caller: &Caller, id: SessionId) -> Result<Read, Error> {
        let missing = || Refusal::from(WorkRefusal::SessionNotFound(id));
        if let Principal::Session(scope) = &caller.principal
            && scope.session != id
        {
            return Err(missing().into());
        }
        let read = self.session_and_state(caller.workspace, id).await?.ok_or_else(missing)?;
        match &caller.principal {
            Principal::Environment { environment, .. }
                if read.session.doc.environment != Some(*environment) =>
            {
                Err(Refusal::from(WorkRefusal::ForeignEnvironment).into())
            }
            _ => Ok(read),
        }
    }

    /// A session.
    ///
    /// # Errors
    /// No read permission, or no such session.
    pub async fn session_get(&self, caller: &Caller, id: SessionId) -> Result<Whole, Error> {
        caller.may(Kind::Session, Action::Read).map_err(Refusal::from)?;
        Ok(self.session_reached(caller, id).await?.whole())
    }

    /// The note about a session's stores. spec/anthropic.md 17.3.
    ///
    /// # Errors
    /// No read permission, or no such session.
    pub async fn memory_note(&self, caller: &Caller, id: SessionId) -> Result<String, Error> {
        let whole = self.session_get(caller, id).await?;
        Ok(note::memory_note(whole.session.attachments()))
    }

    /// Changes a session, and tells of it in an event.
    ///
    /// # Errors
    /// No update permission, no such session, archived, bounds; for its agent also: running.
    pub async fn session_update(
        &self,
        caller: &Caller,
        id: SessionId,
        patch: SessionPatch,
    ) -> Result<Whole, Error> {
        caller.may(Kind::Session, Action::Update).map_err(Refusal::from)?;
        let _turn = self.turns.take(*id.as_bytes()).await;
        for _ in 0..ATTEMPTS {
            let read = self.session_reached(caller, id).await?;
            if read.session.doc.archived_at.is_some() {
                return Err(Refusal::from(WorkRefusal::SessionEnded(id)).into());
            }
            if patch.agent.is_some() {
                read.not_running()?;
            }
            let (mut session, told) = patched(&read.session.doc, &patch)?;
            if session == read.session.doc {
                return Ok(read.whole());
            }
            session.updated_at = self.clock.now().after(read.session.doc.updated_at);
            let mut writes = vec![read.session.replaced_by(&session)];
            let mut state = read.state.doc.clone();
            if !ended(&state) {
                let event = NewEvent::new(EventKind::UPDATED, told);
                state = self.append_to(caller.workspace, &read.state, vec![event], &mut writes, "events")?;
            }
            if self.commit(writes).await? {
                return Ok(Whole { session, state });
            }
        }
        Err(StorageError::Overloaded.into())
    }

    /// Adds the writes that put events behind the last of a session, and answers with its state then.
    pub(super) fn append_to(
        &self,
        workspace: WorkspaceId,
        state: &Kept<SessionState>,
        events: Vec<NewEvent>,
        writes: &mut Vec<RecordWrite>,
        field: &str,
    ) -> Result<SessionState, Refusal> {
        let appended = event::append(&state.doc, events, self.clock.now(), &*self.random);
        let (after, events) = appended.map_err(|place| after_end(field, place))?;
        let entries = events.iter().map(event::Event::entry).collect();
        writes.push(state.replaced_by(&after));
        writes.push(RecordWrite::Append { workspace, log: log_of(after.session), entries });
        Ok(after)
    }

    pub(super) async fn live_item(
        &self,
        workspace: WorkspaceId,
        id: Option<WorkItemId>,
    ) -> Result<Option<Kept<WorkItem>>, StorageError> {
        match id {
            Some(id) => self.find(workspace, *id.as_bytes()).await,
            None => Ok(None),
        }
    }
}

/// The refusal of the event at `place`, which would follow the end of the session.
pub(super) fn after_end(field: &str, place: usize) -> Refusal {
    Refusal::shape(format!("{field}.{place}"), "follows the end of the session")
}

pub(super) fn ended(state: &SessionState) -> bool {
    state.status == SessionStatus::Terminated
}

/// The session after a change, and what its event tells: only what changed. spec/anthropic.md 8.1.
fn patched(old: &Session, patch: &SessionPatch) -> Result<(Session, Fields), Refusal> {
    let mut new = old.clone();
    let mut told = Fields::new();
    new.title = patch.title.clone().unwrap_or(new.title);
    if new.title != old.title {
        told.insert("title".into(), json!(new.title));
    }
    let metadata = old.metadata.patched(&patch.metadata);
    new.metadata = metadata.map_err(|error| Refusal::invalid("metadata", error))?;
    if new.metadata != old.metadata {
        told.insert("metadata".into(), json!(new.metadata));
    }
    new.budget = patch.budget.clone().unwrap_or(new.budget);
    if new.budget != old.budget {
        told.insert("budget".into(), json!(new.budget));
    }
    if let Some((patch, show)) = &patch.agent {
        new.agent.definition = patch.apply(&old.agent.definition)?;
        if new.agent != old.agent {
            told.insert("agent".into(), show(&new.agent));
        }
    }
    Ok((new, told))
}
