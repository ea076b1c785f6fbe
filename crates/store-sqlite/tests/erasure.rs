//! What is redacted leaves every file of the data directory, whatever was written around it.

use std::path::Path;
use std::sync::Arc;

use stele_core::clock::{Clock, Random, System};
use stele_core::command::{Command, Expected, NewStore, OnArchived, RedactedPath};
use stele_core::decide::Outcome;
use stele_core::id::{KeyId, MemoryId, StoreId, VersionId, WorkspaceId};
use stele_core::limits::Limits;
use stele_core::model::Actor;
use stele_core::path::MemoryPath;
use stele_core::storage::{Change, Storage};
use stele_core::text::{Content, Description, MetadataPatch, Name, Summary};
use store_sqlite::{Compression, Config, SqliteStorage};

struct World {
    storage: Arc<SqliteStorage>,
    workspace: WorkspaceId,
    actor: Actor,
    store: StoreId,
}

impl World {
    async fn new(dir: &Path) -> Self {
        let mut config = Config::new(dir, Limits::default());
        config.compression = Compression::Off;
        let storage = SqliteStorage::open(config, Arc::new(System), Arc::new(System)).expect("it opens");
        let workspace = WorkspaceId::mint(System.now(), System.bits());
        let actor = Actor::ApiKey(KeyId::mint(System.now(), System.bits()));
        let new = NewStore {
            name: Name::parse("s").expect("legal"),
            description: Description::parse("").expect("legal"),
            metadata: MetadataPatch::default(),
            agent: None,
            learned: None,
        };
        let store = storage.store_create(workspace, actor, new).await.expect("a store").id;
        Self { storage, workspace, actor, store }
    }

    async fn change(&self, command: Command) -> Outcome {
        let change = Change {
            workspace: self.workspace,
            store: self.store,
            actor: self.actor,
            command,
            with_content: false,
        };
        self.storage.change(change).await.expect("it is carried out").outcome
    }

    async fn write(&self, command: Command) -> (MemoryId, VersionId) {
        match self.change(command).await {
            Outcome::Memory(current) => (current.memory.id, current.memory.version),
            other => panic!("{other:?}"),
        }
    }

    async fn create(&self, path: &str, text: String) -> (MemoryId, VersionId) {
        let summary = Summary::parse(&format!("summary of {text:.40}"), 512).expect("legal");
        let content = Content::parse(text, 102_400).expect("legal");
        self.write(Command::CreateMemory { path: MemoryPath::parse(path).expect("legal"), summary, content })
            .await
    }

    async fn update(&self, memory: MemoryId, path: Option<String>, text: String) -> VersionId {
        let command = Command::UpdateMemory {
            memory: memory.into(),
            path: path.map(|path| MemoryPath::parse(&path).expect("legal")),
            summary: Some(Summary::empty()),
            content: Some(Content::parse(text, 102_400).expect("legal")),
            expected: Expected::Anything,
        };
        self.write(command).await.1
    }

    async fn redact(&self, version: VersionId) {
        self.change(Command::RedactVersion { version, path: RedactedPath::Scrub }).await;
    }
}

/// How often `needle` stands in the files of `dir`.
fn count(dir: &Path, needle: &[u8]) -> usize {
    let files = std::fs::read_dir(dir).expect("a directory").map(|entry| entry.expect("an entry").path());
    files
        .map(|path| std::fs::read(path).expect("a file"))
        .map(|bytes| bytes.windows(needle.len()).filter(|window| *window == needle).count())
        .sum()
}

/// A spread of sizes: within a page, about a page, many pages.
fn size(number: usize) -> usize {
    [30, 120, 700, 1_500, 2_000, 4_000, 9_000, 60_000][number % 8]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redacted_texts_leave_the_files_whatever_their_order_and_neighbours() {
    let dir = tempfile::tempdir().expect("a directory");
    let world = World::new(dir.path()).await;
    let mut secrets = Vec::new();
    for number in 0..400 {
        let text = format!("canary-{number:04}-{}", "x".repeat(size(number)));
        let (memory, first) = world.create(&format!("/canary/{}/{number}", number * 7919 % 400), text).await;
        let (clean, moved) = (format!("clean {number}"), format!("/clean/{number}"));
        match number % 3 {
            0 => drop(world.update(memory, Some(moved), clean.repeat(50)).await),
            1 => drop(
                world
                    .change(Command::DeleteMemory {
                        memory: memory.into(),
                        expected: Expected::Anything,
                        on_archived: OnArchived::Refuse,
                    })
                    .await,
            ),
            _ => {
                let second = world.update(memory, Some(moved), format!("canary-{number:04} again")).await;
                world.update(memory, None, clean).await;
                secrets.push(second);
            }
        }
        secrets.push(first);
    }
    assert!(count(dir.path(), b"canary-0000") > 0, "the search finds what is there");
    // An order in which neighbours go at different times.
    let mut order: Vec<usize> = (0..secrets.len()).collect();
    order.sort_by_key(|n| n * 7919 % secrets.len());
    for n in order {
        world.redact(secrets[n]).await;
    }
    let texts = count(dir.path(), b"-xxxxxxxxxxxx") + count(dir.path(), b" again");
    assert_eq!(texts, 0, "contents");
    assert_eq!(count(dir.path(), b"summary of canary"), 0, "summaries");
}
