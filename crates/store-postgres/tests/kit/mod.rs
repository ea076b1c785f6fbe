//! What the tests of this crate speak: servers (each a process's worth of storage) on one database.

#![allow(dead_code, reason = "each test file uses its part")]

use std::sync::Arc;
use std::time::Duration;

use stele_core::access::{Grant, Role};
use stele_core::clock::{Clock, Random, System};
use stele_core::command::{Command, Expected, NewStore};
use stele_core::decide::Outcome;
use stele_core::hash::Sha256;
use stele_core::id::{KeyId, MemoryId, OrganizationId, StoreId, WorkspaceId};
use stele_core::key::{ApiKey, Contract, Secret};
use stele_core::limits::Limits;
use stele_core::list::{Depth, Detail, MemoryEntry, MemoryQuery, VersionFilter, VersionQuery};
use stele_core::model::{Actor, Memory, Store, VersionText};
use stele_core::path::{MemoryPath, PathPrefix};
use stele_core::storage::{
    At, Change, Changed, Error, Installation, KeyRecord, MemoryRead, MemoryRef, Storage, StorageError,
    Workspace,
};
use stele_core::text::{Content, Description, MetadataPatch, Name, Summary};
use store_postgres::{Compression, Config, OpenError, PostgresStorage};

/// Settings that a busy machine does not disturb.
pub(crate) fn config(url: &str) -> Config {
    let mut config = Config::new(url.parse().expect("an address"), Limits::default());
    config.patience = Duration::from_secs(60);
    config.compression = Compression::Off;
    config
}

pub(crate) async fn try_open(config: Config) -> Result<Arc<PostgresStorage>, OpenError> {
    PostgresStorage::open(config, Arc::new(System), Arc::new(System)).await
}

pub(crate) async fn open(url: &str) -> Arc<PostgresStorage> {
    try_open(config(url)).await.expect("the database opens")
}

pub(crate) fn name(text: &str) -> Name {
    Name::parse(text).expect("a legal name")
}

pub(crate) fn author() -> Actor {
    Actor::ApiKey(KeyId::from_bytes([7; 16]))
}

/// A workspace and its first key, not stored yet.
pub(crate) fn new_workspace() -> (Workspace, KeyRecord, Secret) {
    let created_at = System.now();
    let workspace = Workspace {
        id: WorkspaceId::mint(created_at, System.bits()),
        name: name("w"),
        created_at,
        max_memories_per_store: None,
    };
    let secret = Secret::generate(&System);
    let key = ApiKey {
        id: KeyId::mint(created_at, System.bits()),
        workspace: workspace.id,
        name: name("a key"),
        grant: Grant::Role(Role::Admin),
        contract: Contract::default(),
        created_at,
        expires_at: None,
        revoked_at: None,
    };
    let record = KeyRecord { key, hash: secret.hash() };
    (workspace, record, secret)
}

pub(crate) async fn install(storage: &PostgresStorage) -> Installation {
    let (workspace, key, _) = new_workspace();
    let organization = OrganizationId::mint(System.now(), System.bits());
    storage.install(organization, workspace, key).await.expect("it installs")
}

pub(crate) async fn new_store(storage: &PostgresStorage, workspace: WorkspaceId, called: &str) -> Store {
    let metadata = MetadataPatch::default();
    let description = Description::parse("").expect("empty is legal");
    let new = NewStore { name: name(called), description, metadata, agent: None, learned: None };
    storage.store_create(workspace, author(), new).await.expect("the store is made")
}

pub(crate) fn create(at: &str, text: &str) -> Command {
    Command::CreateMemory {
        path: MemoryPath::parse(at).expect("a legal path"),
        summary: Summary::empty(),
        content: Content::parse(text, 102_400).expect("a legal content"),
    }
}

pub(crate) fn update(memory: MemoryId, text: &str, expected: Option<&str>) -> Command {
    let expected = expected.map_or(Expected::Anything, |text| Expected::Content(Sha256::of(text.as_bytes())));
    let content = Some(Content::parse(text, 102_400).expect("a legal content"));
    Command::UpdateMemory { memory: memory.into(), path: None, summary: None, content, expected }
}

pub(crate) async fn change(
    storage: &PostgresStorage,
    store: &Store,
    command: Command,
) -> Result<Changed, Error> {
    let change =
        Change { workspace: store.workspace, store: store.id, actor: author(), command, with_content: false };
    storage.change(change).await
}

/// The memory that a change leaves.
pub(crate) async fn written(storage: &PostgresStorage, store: &Store, command: Command) -> Memory {
    match change(storage, store, command).await.expect("it is carried out").outcome {
        Outcome::Memory(current) => current.memory,
        other => panic!("no memory: {other:?}"),
    }
}

pub(crate) async fn text(
    storage: &PostgresStorage,
    store: &Store,
    which: MemoryRef,
) -> Result<Option<String>, StorageError> {
    match storage.memory_get(store.workspace, store.id, which, Detail::Full, None).await? {
        Some(At { value: Some(MemoryRead::Read { content: Some(content), .. }), .. }) => {
            Ok(Some(String::from_utf8(content.to_vec()).expect("contents are UTF-8")))
        }
        Some(At { value: None, .. }) => Ok(None),
        other => panic!("not a text: {other:?}"),
    }
}

pub(crate) async fn memories(storage: &PostgresStorage, store: &Store) -> Vec<(Memory, String)> {
    let (prefix, limit) = (PathPrefix::root(), 100_000);
    let query = MemoryQuery { prefix, depth: Depth::All, detail: Detail::Full, after: None, limit };
    let page = storage.memory_list(store.workspace, store.id, query).await.expect("a list").expect("a store");
    let entry = |entry| match entry {
        MemoryEntry::Memory { memory, content: Some(content), .. } => {
            (memory, String::from_utf8(content.to_vec()).expect("contents are UTF-8"))
        }
        other => panic!("not a whole memory: {other:?}"),
    };
    page.value.items.into_iter().map(entry).collect()
}

pub(crate) async fn versions(storage: &PostgresStorage, store: &Store) -> Vec<VersionText> {
    let query = VersionQuery { filter: VersionFilter::default(), full: true, before: None, limit: 100_000 };
    let page =
        storage.version_list(store.workspace, store.id, query).await.expect("a list").expect("a store");
    page.value.items
}

pub(crate) async fn store(storage: &PostgresStorage, workspace: WorkspaceId, id: StoreId) -> Store {
    storage.store_by_id(workspace, id).await.expect("a read").expect("a store")
}

/// Every change is whole: sequences without gaps, counters that count, heads that are versions.
pub(crate) async fn is_sound(storage: &PostgresStorage, before: &Store) {
    let now = store(storage, before.workspace, before.id).await;
    let (memories, versions) = (memories(storage, before).await, versions(storage, before).await);
    let sequences: Vec<u64> = versions.iter().rev().map(|version| version.version.sequence).collect();
    // Redactions take places of their own.
    let redacted = versions.iter().filter(|version| version.version.redaction.is_some()).count() as u64;
    assert!(sequences.windows(2).all(|pair| pair[0] < pair[1]), "{sequences:?}");
    assert_eq!(sequences.len() as u64 + redacted, now.counters.sequence);
    assert_eq!(now.counters.versions, versions.len() as u64);
    assert_eq!(now.counters.memories, memories.len() as u64);
    assert_eq!(now.counters.bytes, memories.iter().map(|(memory, _)| memory.size_bytes).sum::<u64>());
    for (memory, _) in &memories {
        let newest = versions.iter().find(|version| version.version.memory == memory.id);
        assert_eq!(newest.map(|newest| newest.version.id), Some(memory.version));
    }
}

/// Makes the template of all databases.
pub(crate) fn migrate(url: &str) {
    let url = url.parse().expect("an address");
    let migrated = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(store_postgres::migrate(&url))
    });
    migrated.join().expect("no panic").expect("an empty database is migrated");
}
