//! What the cases speak: a back end under a clock of their own, and short words for long calls.
//!
//! Every word panics where the storage fails, so that a case sees only answers and refusals.

use std::any::Any;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use stele_core::access::{Grant, Role};
use stele_core::clock::{Clock, Random, System};
use stele_core::command::{Command, Expected, NewStore, OnArchived, RedactedPath};
use stele_core::decide::{Current, Outcome};
use stele_core::hash::Sha256;
use stele_core::id::{KeyId, MemoryId, OrganizationId, StoreId, VersionId, WorkspaceId};
use stele_core::key::{ApiKey, Contract, Secret};
use stele_core::limits::Limits;
use stele_core::list::{
    Depth, Detail, MemoryEntry, MemoryQuery, Page, StoreFilter, StorePosition, VersionFilter, VersionQuery,
};
use stele_core::model::{Actor, Memory, MemoryText, Store, Version, VersionText};
use stele_core::path::{MemoryPath, PathPrefix};
use stele_core::refusal::Refusal;
use stele_core::storage::{
    At, Change, Changed, Error, InStore, KeyRecord, MemoryRead, MemoryRef, Storage, StorageError, Workspace,
};
use stele_core::text::{Content, Description, MetadataPatch, Name, Summary};
use stele_core::time::Timestamp;

use crate::{Options, StoreFactory, TestClock};

pub(crate) fn path(text: &str) -> MemoryPath {
    MemoryPath::parse(text).expect("a legal path")
}

pub(crate) fn prefix(text: &str) -> PathPrefix {
    PathPrefix::parse(text).expect("a legal prefix")
}

pub(crate) fn content(text: &str) -> Content {
    Content::parse(text, 102_400).expect("a legal content")
}

pub(crate) fn summary(text: &str) -> Summary {
    Summary::parse(text, 512).expect("a legal summary")
}

pub(crate) fn name(text: &str) -> Name {
    Name::parse(text).expect("a legal name")
}

pub(crate) fn metadata(pairs: &[(&str, Option<&str>)]) -> MetadataPatch {
    let pairs: BTreeMap<_, _> =
        pairs.iter().map(|(key, value)| ((*key).to_owned(), value.map(str::to_owned))).collect();
    MetadataPatch::parse(pairs).expect("a legal patch")
}

pub(crate) fn new_store(called: &str) -> NewStore {
    let description = Description::parse("").expect("empty is legal");
    NewStore { name: name(called), description, metadata: metadata(&[]), agent: None, learned: None }
}

/// An author; equal numbers are the same one.
pub(crate) fn actor(n: u64) -> Actor {
    Actor::ApiKey(KeyId::mint(Timestamp::from_micros(1), n))
}

/// An id that nothing has.
pub(crate) fn unknown_memory() -> MemoryId {
    MemoryId::mint(System.now(), System.bits())
}

/// An id that nothing has.
pub(crate) fn unknown_version() -> VersionId {
    VersionId::mint(System.now(), System.bits())
}

/// An id that nothing has.
pub(crate) fn unknown_store() -> StoreId {
    StoreId::mint(System.now(), System.bits())
}

pub(crate) fn create(at: &str, text: &str) -> Command {
    Command::CreateMemory { path: path(at), summary: summary("about it"), content: content(text) }
}

pub(crate) fn delete(memory: MemoryId) -> Command {
    Command::DeleteMemory {
        memory: memory.into(),
        expected: Expected::Anything,
        on_archived: OnArchived::Refuse,
    }
}

pub(crate) fn restore(version: VersionId) -> Command {
    Command::RestoreVersion { version }
}

pub(crate) fn redact(version: VersionId, path: RedactedPath) -> Command {
    Command::RedactVersion { version, path }
}

pub(crate) fn rename_store(to: &str) -> Command {
    Command::UpdateStore { name: Some(name(to)), description: None, metadata: metadata(&[]) }
}

pub(crate) fn expecting(text: &str) -> Expected {
    Expected::Content(Sha256::of(text.as_bytes()))
}

/// An update of a memory in the making.
#[derive(Clone)]
pub(crate) struct Edit {
    memory: MemoryId,
    path: Option<MemoryPath>,
    summary: Option<Summary>,
    content: Option<Content>,
    expected: Expected,
}

pub(crate) fn edit(memory: MemoryId) -> Edit {
    Edit { memory, path: None, summary: None, content: None, expected: Expected::Anything }
}

impl Edit {
    pub(crate) fn path(self, to: &str) -> Self {
        Self { path: Some(path(to)), ..self }
    }

    pub(crate) fn summary(self, to: &str) -> Self {
        Self { summary: Some(summary(to)), ..self }
    }

    pub(crate) fn content(self, to: &str) -> Self {
        Self { content: Some(content(to)), ..self }
    }

    pub(crate) fn expecting(self, text: &str) -> Self {
        Self { expected: expecting(text), ..self }
    }
}

impl From<Edit> for Command {
    fn from(edit: Edit) -> Self {
        let Edit { memory, path, summary, content, expected } = edit;
        Self::UpdateMemory { memory: memory.into(), path, summary, content, expected }
    }
}

/// The refusal, if it is one; a failure of the storage ends the case.
pub(crate) fn verdict<T>(result: Result<T, Error>) -> Result<T, Refusal> {
    match result {
        Ok(answer) => Ok(answer),
        Err(Error::Refused { refusal, .. }) => Err(refusal),
        Err(Error::Failed(error)) => panic!("the storage failed: {error:?}"),
    }
}

/// The answer; a failure of the storage ends the case.
pub(crate) fn sound<T>(result: Result<T, StorageError>) -> T {
    result.unwrap_or_else(|error| panic!("the storage failed: {error:?}"))
}

/// The result of looking something up in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lookup<T> {
    /// The store is unknown, deleted or of another workspace.
    NoStore,
    /// The store has no such thing.
    Missing,
    /// Here it is.
    Found(T),
}

impl<T> From<InStore<Option<T>>> for Lookup<T> {
    fn from(found: InStore<Option<T>>) -> Self {
        match found {
            None => Self::NoStore,
            Some(At { value: None, .. }) => Self::Missing,
            Some(At { value: Some(found), .. }) => Self::Found(found),
        }
    }
}

/// Runs all at once, each as a task; the answers in the order given.
pub(crate) async fn at_once<T: Send + 'static>(
    jobs: impl IntoIterator<Item = impl Future<Output = T> + Send + 'static>,
) -> Vec<T> {
    let tasks: Vec<_> = jobs.into_iter().map(tokio::spawn).collect();
    let mut answers = Vec::with_capacity(tasks.len());
    for task in tasks {
        answers.push(task.await.expect("the task does not panic"));
    }
    answers
}

/// A new key of the workspace and its secret.
pub(crate) fn new_key(workspace: WorkspaceId, created_at: Timestamp) -> (KeyRecord, Secret) {
    let secret = Secret::generate(&System);
    let key = ApiKey {
        id: KeyId::mint(created_at, System.bits()),
        workspace,
        name: name("a key"),
        grant: Grant::Role(Role::Admin),
        contract: Contract::default(),
        created_at,
        expires_at: None,
        revoked_at: None,
    };
    (KeyRecord { key, hash: secret.hash() }, secret)
}

/// A back end as seen from one workspace.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) clock: Arc<TestClock>,
    pub(crate) workspace: WorkspaceId,
    pub(crate) data_dir: Option<PathBuf>,
    _keep_alive: Arc<dyn Any + Send + Sync>,
}

impl World {
    /// An installation with the usual caps.
    pub(crate) async fn open(factory: &dyn StoreFactory) -> Self {
        Self::with_limits(factory, Limits::default()).await
    }

    /// An installation with these caps.
    pub(crate) async fn with_limits(factory: &dyn StoreFactory, limits: Limits) -> Self {
        let mut world = Self::bare(factory, limits).await;
        let workspace = world.new_workspace();
        let (key, _) = new_key(workspace.id, workspace.created_at);
        let organization = OrganizationId::mint(world.now(), System.bits());
        world.workspace = sound(world.storage.install(organization, workspace, key).await).first_workspace;
        world
    }

    /// A back end that nothing was installed in.
    pub(crate) async fn bare(factory: &dyn StoreFactory, limits: Limits) -> Self {
        let options = Options::with_limits(limits);
        let clock = options.clock.clone();
        let opened = factory.open(options).await;
        let workspace = WorkspaceId::mint(clock.now(), System.bits());
        let keep_alive = opened.keep_alive.into();
        let (storage, data_dir) = (opened.storage, opened.data_dir);
        Self { storage, clock, workspace, data_dir, _keep_alive: keep_alive }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A workspace that is not stored yet.
    pub(crate) fn new_workspace(&self) -> Workspace {
        let now = self.now();
        Workspace {
            id: WorkspaceId::mint(now, System.bits()),
            name: name("a workspace"),
            created_at: now,
            max_memories_per_store: None,
        }
    }

    /// The same back end from a new workspace.
    pub(crate) async fn elsewhere(&self) -> Self {
        let workspace = self.new_workspace();
        let (key, _) = new_key(workspace.id, workspace.created_at);
        sound(self.storage.workspace_create(workspace.clone(), key).await);
        Self { workspace: workspace.id, ..self.clone() }
    }

    pub(crate) async fn try_store(&self, new: NewStore) -> Result<Store, Refusal> {
        verdict(self.storage.store_create(self.workspace, actor(0), new).await)
    }

    /// A new store.
    pub(crate) async fn store(&self, called: &str) -> Handle {
        let store = self.try_store(new_store(called)).await.expect("the store is made");
        self.handle(store.id)
    }

    /// The store of that id, whether it is there or not.
    pub(crate) fn handle(&self, id: StoreId) -> Handle {
        Handle { world: self.clone(), id, actor: actor(0) }
    }

    pub(crate) async fn stores(
        &self,
        filter: StoreFilter,
        after: Option<StorePosition>,
        limit: usize,
    ) -> Page<Store> {
        sound(self.storage.store_list(self.workspace, filter, after, limit).await)
    }

    /// Every store that the filter lets through, in pages of `limit`.
    pub(crate) async fn walk_stores(&self, filter: StoreFilter, limit: usize) -> Vec<Store> {
        let mut all: Vec<Store> = Vec::new();
        loop {
            let page = self.stores(filter.clone(), all.last().map(position), limit).await;
            assert!(!page.more || page.items.len() == limit, "only full pages go on");
            all.extend(page.items);
            let order = |pair: &[Store]| (pair[0].created_at, pair[0].id) > (pair[1].created_at, pair[1].id);
            assert!(all.windows(2).all(order), "newest first, each once");
            if !page.more {
                return all;
            }
        }
    }
}

/// Where a list of stores goes on after this one.
pub(crate) fn position(store: &Store) -> StorePosition {
    StorePosition { created_at: store.created_at, id: store.id }
}

/// One store, and who writes to it.
#[derive(Clone)]
pub(crate) struct Handle {
    pub(crate) world: World,
    pub(crate) id: StoreId,
    pub(crate) actor: Actor,
}

/// Every memory of a store, in one page.
pub(crate) fn everything() -> MemoryQuery {
    let limit = 100_000;
    MemoryQuery { prefix: PathPrefix::root(), depth: Depth::All, detail: Detail::Full, after: None, limit }
}

impl Handle {
    /// The same store, written to by somebody else.
    pub(crate) fn by(&self, actor: Actor) -> Self {
        Self { actor, ..self.clone() }
    }

    /// The same store id as asked for from another workspace.
    pub(crate) fn seen_from(&self, world: &World) -> Self {
        Self { world: world.clone(), ..self.clone() }
    }

    pub(crate) async fn changed(
        &self,
        command: impl Into<Command>,
        with_content: bool,
    ) -> Result<Changed, Refusal> {
        let change = Change {
            workspace: self.world.workspace,
            store: self.id,
            actor: self.actor,
            command: command.into(),
            with_content,
        };
        verdict(self.world.storage.change(change).await)
    }

    pub(crate) async fn change(&self, command: impl Into<Command>) -> Result<Outcome, Refusal> {
        Ok(self.changed(command, false).await?.outcome)
    }

    /// Carries out what must not be refused.
    pub(crate) async fn apply(&self, command: impl Into<Command>) -> Outcome {
        self.change(command).await.expect("not refused")
    }

    /// Carries out a change of a memory that lives on.
    pub(crate) async fn write(&self, command: impl Into<Command>) -> Current {
        match self.apply(command).await {
            Outcome::Memory(current) => *current,
            other => panic!("the answer is a memory: {other:?}"),
        }
    }

    /// Asks for what must be refused.
    pub(crate) async fn refused(&self, command: impl Into<Command>) -> Refusal {
        self.change(command).await.expect_err("refused")
    }

    pub(crate) async fn create(&self, at: &str, text: &str) -> Memory {
        self.write(create(at, text)).await.memory
    }

    pub(crate) async fn redact(&self, version: VersionId, path: RedactedPath) -> Version {
        match self.apply(redact(version, path)).await {
            Outcome::Version(version) => *version,
            other => panic!("the answer is a version: {other:?}"),
        }
    }

    pub(crate) async fn find_store(&self) -> Option<Store> {
        sound(self.world.storage.store_by_id(self.world.workspace, self.id).await)
    }

    pub(crate) async fn store(&self) -> Store {
        self.find_store().await.expect("the store is there")
    }

    pub(crate) async fn get(&self, memory: MemoryRef, detail: Detail) -> Lookup<MemoryRead> {
        sound(self.world.storage.memory_get(self.world.workspace, self.id, memory, detail, None).await).into()
    }

    /// The memory with its texts, if it is live.
    pub(crate) async fn read(&self, memory: MemoryRef) -> Option<MemoryText> {
        match self.get(memory, Detail::Full).await {
            Lookup::Found(MemoryRead::Read { memory, summary, content }) => {
                let summary = summary.expect("a full read brings the summary");
                let content = content.expect("a full read brings the content");
                Some(MemoryText { memory, summary, content })
            }
            Lookup::Missing => None,
            other => panic!("the store is there and no body was known: {other:?}"),
        }
    }

    /// The text of a live memory.
    pub(crate) async fn text(&self, memory: MemoryId) -> String {
        let read = self.read(MemoryRef::Id(memory)).await.expect("live");
        String::from_utf8(read.content.to_vec()).expect("contents are UTF-8")
    }

    pub(crate) async fn list(&self, query: MemoryQuery) -> Page<MemoryEntry> {
        let page = sound(self.world.storage.memory_list(self.world.workspace, self.id, query).await);
        page.expect("the store is there").value
    }

    /// The names of all entries, in pages of `limit`.
    pub(crate) async fn walk(&self, below: &str, depth: Depth, limit: usize) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        loop {
            let after = names.last().cloned();
            let detail = Detail::Basic;
            let query = MemoryQuery { prefix: prefix(below), depth, detail, after, limit };
            let page = self.list(query).await;
            assert!(page.items.len() <= limit, "no page is longer than asked for");
            assert!(!page.more || page.items.len() == limit, "only full pages go on");
            names.extend(page.items.iter().map(|entry| entry.path().to_owned()));
            assert!(names.windows(2).all(|pair| pair[0] < pair[1]), "ascending, each once: {names:?}");
            if !page.more {
                return names;
            }
        }
    }

    /// All paths, in order.
    pub(crate) async fn paths(&self) -> Vec<String> {
        self.walk("/", Depth::All, 1_000).await
    }

    pub(crate) async fn find_version(&self, id: VersionId, full: bool) -> Lookup<VersionText> {
        sound(self.world.storage.version_by_id(self.world.workspace, self.id, id, full).await).into()
    }

    pub(crate) async fn version(&self, id: VersionId) -> VersionText {
        match self.find_version(id, true).await {
            Lookup::Found(version) => version,
            other => panic!("the version is there: {other:?}"),
        }
    }

    pub(crate) async fn version_page(&self, query: VersionQuery) -> Page<VersionText> {
        let page = sound(self.world.storage.version_list(self.world.workspace, self.id, query).await);
        page.expect("the store is there").value
    }

    /// Every version that the filter lets through, newest first, in pages of `limit`, with contents.
    pub(crate) async fn walk_versions(&self, filter: VersionFilter, limit: usize) -> Vec<VersionText> {
        let mut all: Vec<VersionText> = Vec::new();
        loop {
            let before = all.last().map(|last| last.version.sequence);
            let query = VersionQuery { filter: filter.clone(), full: true, before, limit };
            let page = self.version_page(query).await;
            assert!(page.items.len() <= limit, "no page is longer than asked for");
            assert!(!page.more || page.items.len() == limit, "only full pages go on");
            all.extend(page.items);
            let order = |pair: &[VersionText]| pair[0].version.sequence > pair[1].version.sequence;
            assert!(all.windows(2).all(order), "newest first, each once");
            if !page.more {
                return all;
            }
        }
    }

    /// The whole history, oldest first.
    pub(crate) async fn history(&self) -> Vec<VersionText> {
        let mut all = self.walk_versions(VersionFilter::default(), 500).await;
        all.reverse();
        all
    }

    /// The history of one memory, oldest first.
    pub(crate) async fn history_of(&self, memory: MemoryId) -> Vec<VersionText> {
        let filter = VersionFilter { memory: Some(memory), ..VersionFilter::default() };
        let mut all = self.walk_versions(filter, 500).await;
        all.reverse();
        all
    }
}
