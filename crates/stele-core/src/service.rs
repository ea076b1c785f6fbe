//! The use cases: each judges the caller by the table of [`crate::access`], then asks the storage.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::access::{Action, Caller, Grant, Resource, Role};
use crate::changeset::Changeset;
use crate::clock::{Clock, Random};
use crate::command::{Command, NewStore};
use crate::embedder::Embedder;
use crate::id::{KeyId, MemoryId, OrganizationId, StoreId, VersionId, WorkspaceId};
use crate::key::{ApiKey, CONSOLE_PREFIX, Contract, ENVIRONMENT_PREFIX, KeyHash, SESSION_PREFIX, Secret};
use crate::limits::Limits;
use crate::list::{Depth, Detail, MemoryEntry, MemoryQuery, Page, StoreFilter, StorePosition, VersionQuery};
use crate::meter;
use crate::model::{Origin, Status, Store, VersionText};
use crate::models::Model;
use crate::path::PathPrefix;
use crate::refusal::Refusal;
use crate::searcher::{Searcher, Workers};
use crate::storage::{
    At, Change, ChangeAll, Changed, ChangedAll, Error, InStore, Installation, KeyRecord, KnownBodies,
    MemoryRead, MemoryRef, Storage, StorageError, Swept, Workspace, WorkspacePatch,
};
use crate::text::Name;
use crate::time::Timestamp;

mod agents;
mod archives;
mod automations;
mod console;
mod credentials;
mod environments;
mod events;
mod feed;
mod kept;
mod once;
mod queue;
mod runs;
mod search;
mod sessions;
mod spending;
mod timers;
mod turns;

pub use agents::{ExpectedVersion, NewAgent};
pub use archives::{Exported, Restoration};
pub use console::{SignedIn, Whoami};
pub use environments::{EnvironmentPatch, NewEnvironment};
pub use events::{EventFeed, EventsQuery, FollowedBy, ReadEventId};
pub use feed::LastPage;
pub use kept::Position;
pub use once::{Answered, Once};
pub use queue::{Offer, QueueStats};
pub use runs::{RunQuery, SKIPPED_STORES};
pub use sessions::{
    NewSession, SessionFilter, SessionPatch, SessionQuery, ShowAgent, WantedResource, WhenRunning,
};

/// How long a key that was looked up is believed, in microseconds: a revocation in another process is seen
/// within this time, one in this process at once. DESIGN 6 allows 5 s.
const KEY_BELIEVED_MICROS: i64 = 3_000_000;
/// Most keys believed at once.
const KEYS_BELIEVED: usize = 10_000;

/// Items that a list without pages reads in one snapshot, so that none is open for long. DESIGN 5.
const STEP: usize = 1_000;

/// Which ready form of a memory a body is: one a dialect and view.
pub type BodyForm = &'static str;

#[derive(Clone)]
struct BodyWeight;

impl Weighter<(VersionId, BodyForm), Bytes> for BodyWeight {
    fn weight(&self, _key: &(VersionId, BodyForm), body: &Bytes) -> u64 {
        body.len() as u64 + 128
    }
}

/// Ready response bodies of heads, within a budget of bytes.
struct Bodies {
    cache: Cache<(VersionId, BodyForm), Bytes, BodyWeight>,
}

/// The bodies of one form, as a back end asks for them.
struct BodiesOf {
    bodies: Arc<Bodies>,
    form: BodyForm,
}

impl KnownBodies for BodiesOf {
    fn body(&self, head: VersionId) -> Option<Bytes> {
        self.bodies.cache.get(&(head, self.form))
    }
}

/// What the present installation was started with.
pub struct Setup {
    /// The back end.
    pub storage: Arc<dyn Storage>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Arc<dyn Random>,
    /// The caps.
    pub limits: Limits,
    /// Bytes of ready response bodies to keep in memory.
    pub body_cache_bytes: u64,
    /// Bytes of indexes to keep in memory for searches.
    pub search_index_bytes: usize,
    /// Threads for searches and what outlives a request.
    pub workers: Arc<dyn Workers>,
    /// The embedding model for searches, where there is one.
    pub embedder: Option<Arc<dyn Embedder>>,
    /// The providers of models, where some are configured.
    pub models: Option<Arc<dyn Model>>,
    /// Called when a store was deleted, so that somebody calls [`Stele::purge`] soon.
    pub purge_wanted: Box<dyn Fn() + Send + Sync>,
}

/// The memory server without its wires.
pub struct Stele {
    storage: Arc<dyn Storage>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    limits: Limits,
    installation: Installation,
    keys: Mutex<HashMap<KeyHash, (ApiKey, Timestamp)>>,
    narrow: credentials::Believed,
    turns: turns::Turns,
    pollers: queue::Pollers,
    bodies: Arc<Bodies>,
    searcher: Arc<Searcher>,
    models: Option<Arc<dyn Model>>,
    ledger: spending::Ledger,
    forms: Mutex<Vec<BodyForm>>,
    purge_wanted: Box<dyn Fn() + Send + Sync>,
    ending: tokio::sync::watch::Sender<bool>,
    pages: feed::Pages,
}

/// What a request names inside a store.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    /// Nothing: it is about the store.
    Store,
    /// A live memory.
    Memory(MemoryId),
    /// A version.
    Version(VersionId),
}

/// What is said first where both hold: the dialects differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First {
    /// That the store takes no changes. spec/anthropic.md 3.5.
    State,
    /// That what the request names is not there. spec/recursion.md 3.3.
    Existence,
}

/// What a new workspace shall be.
#[derive(Clone, Debug)]
pub struct NewWorkspace {
    /// Its name.
    pub name: Name,
    /// The cap of memories of each of its stores, where it differs from the server's.
    pub max_memories_per_store: Option<u64>,
}

/// A key just made, with its secret, shown once.
#[derive(Debug)]
pub struct IssuedKey {
    /// The key.
    pub key: ApiKey,
    /// Its secret.
    pub secret: Secret,
}

/// What a new key shall be.
#[derive(Clone, Debug)]
pub struct NewKey {
    /// Its name.
    pub name: Name,
    /// What it may do.
    pub grant: Grant,
    /// Which of Recursion's contracts its holder speaks.
    pub contract: Contract,
    /// When it stops working by itself.
    pub expires_at: Option<Timestamp>,
    /// The person who holds it, by name: what is written with it at the console is that person's. DESIGN 6.
    pub person: Option<Name>,
}

/// What happens when a fresh database is opened for the first time.
#[derive(Debug)]
pub struct FirstStart {
    /// The tenant's id.
    pub organization: OrganizationId,
    /// The first workspace.
    pub workspace: Workspace,
    /// Its admin key.
    pub admin_key: IssuedKey,
}

impl FirstStart {
    /// Mints what a fresh installation needs; nothing is stored yet, so that the secret can be put away first.
    pub fn mint(clock: &dyn Clock, random: &dyn Random) -> Self {
        let now = clock.now();
        let new = NewWorkspace { name: named("default"), max_memories_per_store: None };
        let (workspace, admin_key) = new_workspace(new, now, random);
        Self { organization: OrganizationId::mint(now, random.bits()), workspace, admin_key }
    }
}

fn named(name: &str) -> Name {
    Name::parse(name).expect("a fixed name is legal")
}

fn new_workspace(new: NewWorkspace, now: Timestamp, random: &dyn Random) -> (Workspace, IssuedKey) {
    let workspace = Workspace {
        id: WorkspaceId::mint(now, random.bits()),
        name: new.name,
        created_at: now,
        max_memories_per_store: new.max_memories_per_store,
    };
    let key = new_key(workspace.id, admin(), now, random);
    (workspace, key)
}

fn admin() -> NewKey {
    NewKey {
        name: named("admin"),
        grant: Grant::Role(Role::Admin),
        contract: Contract::default(),
        expires_at: None,
        person: None,
    }
}

fn new_key(workspace: WorkspaceId, new: NewKey, now: Timestamp, random: &dyn Random) -> IssuedKey {
    let key = ApiKey {
        id: KeyId::mint(now, random.bits()),
        workspace,
        name: new.name,
        grant: new.grant,
        contract: new.contract,
        created_at: now,
        expires_at: new.expires_at,
        revoked_at: None,
    };
    IssuedKey { key, secret: Secret::generate(random) }
}

impl IssuedKey {
    /// A new admin key of a workspace, not yet stored: for whoever holds the database itself.
    pub fn admin(workspace: WorkspaceId, clock: &dyn Clock, random: &dyn Random) -> Self {
        new_key(workspace, admin(), clock.now(), random)
    }

    /// What is stored of it.
    pub fn record(&self) -> KeyRecord {
        KeyRecord { key: self.key.clone(), hash: self.secret.hash() }
    }
}

impl Stele {
    /// The server over an installation that exists.
    pub fn new(setup: Setup, installation: Installation) -> Self {
        let estimated_bodies = usize::try_from(setup.body_cache_bytes / 2048).unwrap_or(usize::MAX);
        let cache = Cache::with_weighter(estimated_bodies, setup.body_cache_bytes, BodyWeight);
        let searcher = Searcher::new(
            setup.storage.clone(),
            setup.workers.clone(),
            setup.embedder,
            setup.search_index_bytes,
        );
        let ledger = spending::Ledger::new(setup.storage.clone(), setup.clock.clone(), setup.workers);
        Self {
            models: setup.models,
            ledger,
            searcher,
            storage: setup.storage,
            clock: setup.clock,
            random: setup.random,
            limits: setup.limits,
            installation,
            keys: Mutex::default(),
            narrow: credentials::Believed::default(),
            turns: turns::Turns::default(),
            pollers: queue::Pollers::default(),
            bodies: Arc::new(Bodies { cache }),
            forms: Mutex::default(),
            purge_wanted: setup.purge_wanted,
            ending: tokio::sync::watch::Sender::new(false),
            pages: feed::Pages::default(),
        }
    }

    /// The caps.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The installation.
    pub fn installation(&self) -> Installation {
        self.installation
    }

    /// The present.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Random bits for ids that mean nothing to the storage, such as those of requests.
    pub fn random_bits(&self) -> u64 {
        self.random.bits()
    }

    /// The caller that a shown key stands for; `None` for an unknown, revoked or expired one.
    ///
    /// # Errors
    /// The storage's.
    pub async fn authenticate(&self, shown: &str) -> Result<Option<Caller>, StorageError> {
        let hash = KeyHash::of(shown);
        let now = self.clock.now();
        if [SESSION_PREFIX, ENVIRONMENT_PREFIX, CONSOLE_PREFIX].iter().any(|kind| shown.starts_with(kind)) {
            return self.narrow_caller(shown, hash, now).await;
        }
        let believed = self.believed(hash, now);
        let key = match believed {
            Some(key) => Some(key),
            None => self.storage.key_by_hash(hash).await?.inspect(|key| self.believe(hash, key, now)),
        };
        let working = key.filter(|key| key.works_at(now));
        Ok(working.map(|key| key.caller(self.installation.first_workspace)))
    }

    fn believed(&self, hash: KeyHash, now: Timestamp) -> Option<ApiKey> {
        let keys = self.keys.lock().expect("no panic under the lock");
        let (key, since) = keys.get(&hash)?;
        let age = now.as_micros() - since.as_micros();
        (0..KEY_BELIEVED_MICROS).contains(&age).then(|| key.clone())
    }

    fn believe(&self, hash: KeyHash, key: &ApiKey, now: Timestamp) {
        let mut keys = self.keys.lock().expect("no panic under the lock");
        if keys.len() >= KEYS_BELIEVED {
            keys.clear();
        }
        keys.insert(hash, (key.clone(), now));
    }

    fn forget_keys(&self) {
        self.keys.lock().expect("no panic under the lock").clear();
    }

    /// Makes a store.
    ///
    /// # Errors
    /// No create permission, no such agent, bounds, caps.
    pub async fn store_create(&self, caller: &Caller, new: NewStore) -> Result<Store, Error> {
        caller.may(Resource::Store, Action::Create).map_err(Refusal::from)?;
        if let Some(agent) = new.agent {
            self.agent_there(caller.workspace, agent).await?;
        }
        self.storage.store_create(caller.workspace, caller.actor(), new).await
    }

    /// A store.
    ///
    /// # Errors
    /// No read permission, or no such store.
    pub async fn store_get(&self, caller: &Caller, id: StoreId) -> Result<Store, Error> {
        caller.may(Resource::Store, Action::Read).map_err(Refusal::from)?;
        let store = self.storage.store_by_id(caller.workspace, id).await?;
        Ok(store.ok_or(Refusal::StoreNotFound(id))?)
    }

    /// Stores, newest first.
    ///
    /// # Errors
    /// No read permission.
    pub async fn store_list(
        &self,
        caller: &Caller,
        filter: StoreFilter,
        after: Option<StorePosition>,
        limit: usize,
    ) -> Result<Page<Store>, Error> {
        caller.may(Resource::Store, Action::Read).map_err(Refusal::from)?;
        Ok(self.storage.store_list(caller.workspace, filter, after, limit).await?)
    }

    /// All stores that the filter lets through, newest first.
    ///
    /// # Errors
    /// No read permission.
    pub async fn store_list_all(&self, caller: &Caller, filter: StoreFilter) -> Result<Vec<Store>, Error> {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let page = self.store_list(caller, filter.clone(), after, STEP).await?;
            after = page.items.last().map(|s| StorePosition { created_at: s.created_at, id: s.id });
            all.extend(page.items);
            if !page.more {
                return Ok(all);
            }
        }
    }

    /// Carries out a change of a store or of what is in it.
    ///
    /// # Errors
    /// No permission, or what [`crate::decide::decide`] refuses.
    pub async fn change(
        &self,
        caller: &Caller,
        store: StoreId,
        command: Command,
        with_content: bool,
    ) -> Result<Changed, Error> {
        let (resource, action) = needed_for(&command);
        caller.may_in(store, resource, action)?;
        let redacted = match &command {
            Command::RedactVersion { version, .. } => Some(*version),
            _ => None,
        };
        let deletes_store = matches!(command, Command::DeleteStore);
        // Who may write but not read is shown no text that it didn't bring.
        let may_read = caller.may(Resource::Memory, Action::Read).is_ok();
        let with_content = with_content && (may_read || command.brings_content());
        let change =
            Change { workspace: caller.workspace, store, actor: caller.actor(), command, with_content };
        let result = self.storage.change(change).await;
        if result.is_ok() {
            self.searcher.changed(caller.workspace, store);
        }
        if deletes_store && result.is_ok() {
            (self.purge_wanted)();
        }
        if redacted.is_some() && result.is_ok() {
            meter::REDACTIONS.count();
        }
        // Also after an error: a pending redaction is committed all the same.
        if let Some(version) = redacted {
            self.forget_bodies(version);
        }
        result
    }

    /// Carries out a changeset: all of it or nothing. DESIGN 7.
    ///
    /// # Errors
    /// No permission for one of the changes, or what [`crate::decide::decide`] refuses of one, with its index.
    pub async fn change_all(
        &self,
        caller: &Caller,
        store: StoreId,
        changeset: Changeset,
    ) -> Result<ChangedAll, Error> {
        for command in changeset.commands() {
            let (resource, action) = needed_for(command);
            caller.may_in(store, resource, action)?;
        }
        let change = ChangeAll { workspace: caller.workspace, store, actor: caller.actor(), changeset };
        let result = self.storage.change_all(change).await;
        if result.is_ok() {
            self.searcher.changed(caller.workspace, store);
        }
        result
    }

    /// A live memory.
    ///
    /// # Errors
    /// No read permission, or no such store or memory.
    pub async fn memory_get(
        &self,
        caller: &Caller,
        store: StoreId,
        memory: MemoryRef,
        detail: Detail,
        form: Option<BodyForm>,
    ) -> Result<At<MemoryRead>, Error> {
        caller.may_in(store, Resource::Memory, Action::Read)?;
        let known = form.map(|form| Arc::new(BodiesOf { bodies: self.bodies.clone(), form }) as Arc<_>);
        let missing = memory.missing();
        let found = self.storage.memory_get(caller.workspace, store, memory, detail, known).await?;
        match found.as_ref().and_then(|found| found.value.as_ref()) {
            Some(MemoryRead::Known(_)) => meter::BODY_CACHE_HITS.count(),
            Some(MemoryRead::Read { .. }) if form.is_some() => meter::BODY_CACHE_MISSES.count(),
            _ => {}
        }
        found_in(store, found, missing)
    }

    /// Keeps the ready body of a memory whose head is `head`, for the next [`Self::memory_get`] with this form.
    pub fn keep_body(&self, head: VersionId, form: BodyForm, body: Bytes) {
        let mut forms = self.forms.lock().expect("no panic under the lock");
        if !forms.contains(&form) {
            forms.push(form);
        }
        drop(forms);
        self.bodies.cache.insert((head, form), body);
    }

    fn forget_bodies(&self, version: VersionId) {
        for form in self.forms.lock().expect("no panic under the lock").iter() {
            self.bodies.cache.remove(&(version, *form));
        }
    }

    /// Live memories by path.
    ///
    /// # Errors
    /// No read permission, or no such store.
    pub async fn memory_list(
        &self,
        caller: &Caller,
        store: StoreId,
        query: MemoryQuery,
    ) -> Result<At<Page<MemoryEntry>>, Error> {
        caller.may_in(store, Resource::Memory, Action::Read)?;
        let page = self.storage.memory_list(caller.workspace, store, query).await?;
        Ok(page.ok_or(Refusal::StoreNotFound(store))?)
    }

    /// All that lies below a prefix, by path: summaries of memories, counts of directories. The sequence is that of
    /// the first part read, so that nothing is missed from there on.
    ///
    /// # Errors
    /// No read permission, or no such store.
    pub async fn memory_browse(
        &self,
        caller: &Caller,
        store: StoreId,
        prefix: PathPrefix,
        depth: Depth,
    ) -> Result<At<Vec<MemoryEntry>>, Error> {
        let (mut all, mut after, mut first) = (Vec::new(), None, None);
        loop {
            let query =
                MemoryQuery { prefix: prefix.clone(), depth, detail: Detail::Summary, after, limit: STEP };
            let At { sequence, value: page } = self.memory_list(caller, store, query).await?;
            let sequence = *first.get_or_insert(sequence);
            after = page.items.last().map(|entry| entry.path().to_owned());
            all.extend(page.items);
            if !page.more {
                return Ok(At { sequence, value: all });
            }
        }
    }

    /// A version.
    ///
    /// # Errors
    /// No read permission, or no such store or version.
    pub async fn version_get(
        &self,
        caller: &Caller,
        store: StoreId,
        id: VersionId,
        full: bool,
    ) -> Result<At<VersionText>, Error> {
        caller.may_in(store, Resource::Version, Action::Read)?;
        let found = self.storage.version_by_id(caller.workspace, store, id, full).await?;
        found_in(store, found, Refusal::VersionNotFound(id))
    }

    /// Versions, newest first.
    ///
    /// # Errors
    /// No read permission, or no such store.
    pub async fn version_list(
        &self,
        caller: &Caller,
        store: StoreId,
        query: VersionQuery,
    ) -> Result<At<Page<VersionText>>, Error> {
        caller.may_in(store, Resource::Version, Action::Read)?;
        let page = self.storage.version_list(caller.workspace, store, query).await?;
        Ok(page.ok_or(Refusal::StoreNotFound(store))?)
    }

    /// Makes a key of the caller's workspace.
    ///
    /// # Errors
    /// The caller is no admin.
    pub async fn key_create(&self, caller: &Caller, new: NewKey) -> Result<IssuedKey, Error> {
        caller.may(Resource::ApiKey, Action::Create).map_err(Refusal::from)?;
        let person = new.person.clone();
        let issued = new_key(caller.workspace, new, self.clock.now(), &*self.random);
        // First who holds it: a key that works and lost its person would write in nobody's name.
        if let Some(name) = person {
            self.key_holder_note(&issued.key, name).await?;
        }
        self.storage.key_create(issued.record()).await?;
        Ok(issued)
    }

    /// The workspace's keys that are not revoked, without their secrets.
    ///
    /// # Errors
    /// The caller is no admin.
    pub async fn key_list(&self, caller: &Caller) -> Result<Vec<ApiKey>, Error> {
        caller.may(Resource::ApiKey, Action::Read).map_err(Refusal::from)?;
        Ok(self.storage.key_list(caller.workspace).await?)
    }

    /// Revokes a key: at once in this process, within 5 s in the others.
    ///
    /// # Errors
    /// The caller is no admin, or there is no such key.
    pub async fn key_revoke(&self, caller: &Caller, id: KeyId) -> Result<(), Error> {
        caller.may(Resource::ApiKey, Action::Delete).map_err(Refusal::from)?;
        let revoked = self.storage.key_revoke(caller.workspace, id).await?;
        self.forget_keys();
        // The tokens of sessions that were made with it end too, and what was signed in with it.
        self.forget_narrow();
        if revoked { Ok(()) } else { Err(Refusal::KeyNotFound(id).into()) }
    }

    /// Makes a workspace with its admin key.
    ///
    /// # Errors
    /// The caller is no admin of the first workspace.
    pub async fn workspace_create(
        &self,
        caller: &Caller,
        new: NewWorkspace,
    ) -> Result<(Workspace, IssuedKey), Error> {
        caller.may(Resource::Workspace, Action::Create).map_err(Refusal::from)?;
        let (workspace, key) = new_workspace(new, self.clock.now(), &*self.random);
        self.storage.workspace_create(workspace.clone(), key.record()).await?;
        Ok((workspace, key))
    }

    /// All workspaces of the installation.
    ///
    /// # Errors
    /// The caller is no admin of the first workspace.
    pub async fn workspace_list(&self, caller: &Caller) -> Result<Vec<Workspace>, Error> {
        caller.may(Resource::Workspace, Action::Read).map_err(Refusal::from)?;
        Ok(self.storage.workspace_list().await?)
    }

    /// Changes a workspace.
    ///
    /// # Errors
    /// The caller is no admin of the first workspace, or there is no such workspace.
    pub async fn workspace_update(
        &self,
        caller: &Caller,
        id: WorkspaceId,
        patch: WorkspacePatch,
    ) -> Result<Workspace, Error> {
        caller.may(Resource::Workspace, Action::Update).map_err(Refusal::from)?;
        let changed = self.storage.workspace_update(id, patch).await?;
        Ok(changed.ok_or(Refusal::WorkspaceNotFound(id))?)
    }

    /// Judges what comes before the fields of a request: what the caller may not do, what is not there, what is
    /// closed. spec/anthropic.md 3.5, spec/recursion.md 3.3. Answers with the store.
    ///
    /// # Errors
    /// The first of these that stands in the way.
    pub async fn precondition(
        &self,
        caller: &Caller,
        store: StoreId,
        target: Target,
        (resource, action): (Resource, Action),
        first: First,
    ) -> Result<Store, Error> {
        caller.may_in(store, resource, action)?;
        let found =
            self.storage.store_by_id(caller.workspace, store).await?.ok_or(Refusal::StoreNotFound(store))?;
        let closed = closed(&found).filter(|_| matches!(action, Action::Create | Action::Update));
        let sequence = Some(found.counters.sequence);
        let state = closed.map_or(Ok(()), |refusal| Err(Error::refused(refusal, sequence)));
        if first == First::State {
            state?;
            self.target_there(caller, store, target).await?;
        } else {
            self.target_there(caller, store, target).await?;
            state?;
        }
        Ok(found)
    }

    async fn target_there(&self, caller: &Caller, store: StoreId, target: Target) -> Result<(), Error> {
        let workspace = caller.workspace;
        match target {
            Target::Store => {}
            Target::Memory(id) => {
                let which = MemoryRef::Id(id);
                let read = self.storage.memory_get(workspace, store, which, Detail::Basic, None).await?;
                found_in(store, read, Refusal::MemoryNotFound(id))?;
            }
            Target::Version(id) => {
                let read = self.storage.version_by_id(workspace, store, id, false).await?;
                found_in(store, read, Refusal::VersionNotFound(id))?;
            }
        }
        Ok(())
    }

    /// Removes what has outlived its retention.
    ///
    /// # Errors
    /// The storage's.
    pub async fn sweep(&self) -> Result<Swept, StorageError> {
        self.storage.sweep().await
    }

    /// Removes what deleted stores left behind.
    ///
    /// # Errors
    /// The storage's.
    pub async fn purge(&self) -> Result<Swept, StorageError> {
        self.storage.purge().await
    }

    /// How many stores there are in all workspaces: a figure for the operator, not for callers.
    ///
    /// # Errors
    /// The storage's.
    pub async fn store_count(&self) -> Result<u64, StorageError> {
        self.storage.store_count().await
    }

    /// Whether the storage can serve.
    ///
    /// # Errors
    /// The storage's.
    pub async fn ping(&self) -> Result<(), StorageError> {
        self.storage.ping().await
    }
}

fn found_in<T>(store: StoreId, found: InStore<Option<T>>, missing: Refusal) -> Result<At<T>, Error> {
    let At { sequence, value } = found.ok_or(Refusal::StoreNotFound(store))?;
    match value {
        Some(value) => Ok(At { sequence, value }),
        None => Err(Error::refused(missing, Some(sequence))),
    }
}

/// Why a store takes no changes of its fields and memories, if it takes none.
fn closed(store: &Store) -> Option<Refusal> {
    match (store.origin, store.status()) {
        (Origin::Reflection, _) => Some(Refusal::StoreLearned(store.id)),
        (Origin::Curated, Status::Archived) => Some(Refusal::StoreArchived(store.id)),
        (Origin::Curated, Status::Active) => None,
    }
}

/// What a command does to what, for the table of permissions.
pub fn needed_for(command: &Command) -> (Resource, Action) {
    match command {
        Command::UpdateStore { .. } => (Resource::Store, Action::Update),
        Command::ArchiveStore => (Resource::Store, Action::Archive),
        Command::DeleteStore => (Resource::Store, Action::Delete),
        Command::CreateMemory { .. } => (Resource::Memory, Action::Create),
        Command::UpdateMemory { .. } => (Resource::Memory, Action::Update),
        Command::DeleteMemory { .. } => (Resource::Memory, Action::Delete),
        Command::RestoreVersion { .. } => (Resource::Version, Action::Restore),
        Command::RedactVersion { .. } => (Resource::Version, Action::Redact),
    }
}
