//! What retention removes gives its space back, and what lives is still whole afterwards.

use std::path::Path;
use std::sync::Arc;

use stele_core::clock::{Clock, Random, System};
use stele_core::command::{Command, Expected, NewStore};
use stele_core::decide::Outcome;
use stele_core::id::{KeyId, MemoryId, StoreId, WorkspaceId};
use stele_core::limits::Limits;
use stele_core::list::{Detail, VersionFilter, VersionQuery};
use stele_core::model::Actor;
use stele_core::path::MemoryPath;
use stele_core::storage::{At, Change, MemoryRead, MemoryRef, Storage};
use stele_core::text::{Content, Description, MetadataPatch, Name, Summary};
use store_sqlite::{Config, SqliteStorage};
use store_suite::TestClock;

const WRITES: usize = 3_000;

fn text(number: usize) -> Content {
    // Poorly compressible, so that pages fill up.
    let noise: String = (0..40).map(|n| format!("{:x}", (number * 7919 + n * 104_729) % 1_000_003)).collect();
    Content::parse(format!("{number} {noise}"), 102_400).expect("legal")
}

async fn write(
    storage: &SqliteStorage,
    workspace: WorkspaceId,
    store: StoreId,
    command: Command,
) -> MemoryId {
    let actor = Actor::ApiKey(KeyId::from_bytes([9; 16]));
    let change = Change { workspace, store, actor, command, with_content: false };
    match storage.change(change).await.expect("it is carried out").outcome {
        Outcome::Memory(current) => current.memory.id,
        other => panic!("{other:?}"),
    }
}

fn update(memory: MemoryId, number: usize) -> Command {
    let content = Some(text(number));
    Command::UpdateMemory {
        memory: memory.into(),
        path: None,
        summary: None,
        content,
        expected: Expected::Anything,
    }
}

async fn content(
    storage: &SqliteStorage,
    workspace: WorkspaceId,
    store: StoreId,
    memory: MemoryId,
) -> Vec<u8> {
    let read = storage.memory_get(workspace, store, MemoryRef::Id(memory), Detail::Full, None).await;
    match read.expect("a read") {
        Some(At { value: Some(MemoryRead::Read { content: Some(content), .. }), .. }) => content.to_vec(),
        other => panic!("{other:?}"),
    }
}

fn database_bytes(dir: &Path) -> u64 {
    std::fs::metadata(dir.join("stele.db")).expect("the database").len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_swept_history_makes_room_for_the_next_one() {
    let dir = tempfile::tempdir().expect("a directory");
    let clock = Arc::new(TestClock::default());
    let config = Config::new(dir.path(), Limits::default());
    let storage = SqliteStorage::open(config, clock.clone(), Arc::new(System)).expect("it opens");
    let workspace = WorkspaceId::mint(clock.now(), System.bits());
    let new = NewStore {
        name: Name::parse("s").expect("legal"),
        description: Description::parse("").expect("legal"),
        metadata: MetadataPatch::default(),
        agent: None,
        learned: None,
    };
    let store = storage
        .store_create(workspace, Actor::ApiKey(KeyId::from_bytes([9; 16])), new)
        .await
        .expect("made")
        .id;
    let mut memories = Vec::new();
    for number in 0..20 {
        let path = MemoryPath::parse(&format!("/{number}")).expect("legal");
        let command = Command::CreateMemory { path, summary: Summary::empty(), content: text(number) };
        memories.push(write(&storage, workspace, store, command).await);
    }
    let mut sizes = Vec::new();
    for round in 0..3 {
        for number in 0..WRITES {
            let memory = memories[number * 31 % memories.len()];
            write(&storage, workspace, store, update(memory, round * WRITES + number)).await;
        }
        clock.advance_days(40);
        storage.sweep().await.expect("swept");
        sizes.push(database_bytes(dir.path()));
    }
    assert!(sizes[2] < sizes[0] * 3 / 2, "the same amount of history needs about the same room: {sizes:?}");

    let query = VersionQuery { filter: VersionFilter::default(), full: true, before: None, limit: 1_000 };
    let kept =
        storage.version_list(workspace, store, query).await.expect("a read").expect("the store").value.items;
    assert_eq!(kept.len(), 200, "ten of each");
    assert!(kept.windows(2).all(|pair| pair[0].version.sequence > pair[1].version.sequence));
    for (at, memory) in memories.iter().enumerate() {
        let newest = (0..WRITES).rev().find(|n| n * 31 % memories.len() == at).expect("each was written");
        let expected = text(2 * WRITES + newest);
        assert_eq!(content(&storage, workspace, store, *memory).await, expected.bytes().to_vec());
    }
    drop(storage);
    assert_eq!(store_sqlite::check(dir.path()).expect("checked"), []);
}
