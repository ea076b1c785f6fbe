//! Memories: creating, reading, changing and deleting them. spec/anthropic.md 3.4 to 3.6 and 5.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use stele_core::command::{Command, Expected, OnArchived};
use stele_core::decide::Outcome;
use stele_core::hash::Sha256;
use stele_core::id::VersionId;
use stele_core::limits::Limits;
use stele_core::list::Detail;
use stele_core::model::{Memory, Operation};
use stele_core::refusal::Refusal;
use stele_core::storage::{KnownBodies, MemoryRead, MemoryRef, WorkspacePatch};

use crate::StoreFactory;
use crate::world::*;

pub(crate) async fn a_new_memory_reads_back_by_id_and_by_path(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let made = store.create("/dir/a.md", "one").await;
    assert_eq!((made.store, made.created_at, made.updated_at), (store.id, made.updated_at, made.created_at));
    assert_eq!((made.content_sha256, made.size_bytes), (Sha256::of(b"one"), 3));
    for reference in [MemoryRef::Id(made.id), MemoryRef::Path(path("/dir/a.md"))] {
        let read = store.read(reference).await.expect("live");
        assert_eq!((&read.memory, &read.summary), (&made, &summary("about it")));
        assert_eq!(read.content, "one");
    }
}

pub(crate) async fn a_read_brings_as_much_as_was_asked_for(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let memory = store.create("/a.md", "one").await;
    let (about, text) = (Some(summary("about it")), Some(Bytes::from("one")));
    let cases =
        [(Detail::Basic, None, None), (Detail::Summary, about.clone(), None), (Detail::Full, about, text)];
    for (detail, summary, content) in cases {
        let expected = Lookup::Found(MemoryRead::Read { memory: memory.clone(), summary, content });
        assert_eq!(store.get(MemoryRef::Id(memory.id), detail).await, expected, "{detail:?}");
        let by_path = store.get(MemoryRef::Path(memory.path.clone()), detail).await;
        assert_eq!(by_path, expected, "{detail:?}");
    }
}

pub(crate) async fn bytes_come_back_as_they_were_sent(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let mut noise = String::new();
    for n in 0u64..3_200 {
        noise += &Sha256::of(&n.to_be_bytes()).to_string()[..32];
    }
    let texts = [
        "".to_owned(),
        "no newline".to_owned(),
        "crlf\r\nand\rcr\n".to_owned(),
        "\u{feff}bom".to_owned(),
        "decomposed e\u{301}, composed é".to_owned(),
        "\u{1}control\u{7f}\t".to_owned(),
        "😀".repeat(25_600),
        "a".repeat(102_400),
        noise,
    ];
    for (n, text) in texts.iter().enumerate() {
        let made = store.create(&format!("/{n}"), text).await;
        assert_eq!((made.content_sha256, made.size_bytes), (Sha256::of(text.as_bytes()), text.len() as u64));
        assert_eq!(&store.text(made.id).await, text);
        let version = store.version(made.version).await;
        assert_eq!(version.content.as_deref(), Some(text.as_bytes()));
    }
}

pub(crate) async fn a_change_answers_with_content_where_it_is_asked_for(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let made = store.changed(create("/a.md", "one"), true).await.expect("not refused");
    assert_eq!(made.content.as_deref(), Some(&b"one"[..]));
    let first = store.read(MemoryRef::Path(path("/a.md"))).await.expect("live").memory;
    let changes: [(Command, &str); 5] = [
        (edit(first.id).content("two").into(), "two"),
        (edit(first.id).path("/b.md").into(), "two"),
        (edit(first.id).summary("other").into(), "two"),
        (edit(first.id).content("two").expecting("stale").into(), "two"),
        (restore(first.version), "one"),
    ];
    for (command, content) in changes {
        let changed = store.changed(command.clone(), true).await.expect("not refused");
        assert_eq!(changed.content.as_deref(), Some(content.as_bytes()), "{command:?}");
    }
    let changed = store.changed(edit(first.id).content("three"), false).await.expect("not refused");
    assert_eq!(changed.content, None);
    assert_eq!(store.changed(delete(first.id), true).await.expect("not refused").content, None);
}

pub(crate) async fn what_changed_decides_the_operation_and_the_id_stays(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let made = store.create("/a.md", "one").await;
    let changes = [
        (edit(made.id).content("two"), Operation::Updated),
        (edit(made.id).summary("other"), Operation::Updated),
        (edit(made.id).path("/b.md"), Operation::Renamed),
        (edit(made.id).path("/c.md").content("three").summary("third"), Operation::Updated),
    ];
    for (n, (change, operation)) in changes.into_iter().enumerate() {
        world.clock.advance(10);
        let current = store.write(change).await;
        let read = store.read(MemoryRef::Id(made.id)).await.expect("live");
        assert_eq!((&read.memory, &read.summary), (&current.memory, &current.summary));
        assert_eq!((read.memory.created_at, read.memory.updated_at), (made.created_at, world.now()));
        let history = store.history_of(made.id).await;
        let version = &history.last().expect("a version").version;
        assert_eq!((version.operation, history.len()), (operation, n + 2));
        assert_eq!((version.id, version.created_at), (read.memory.version, read.memory.updated_at));
    }
    let last = store.read(MemoryRef::Path(path("/c.md"))).await.expect("live");
    assert_eq!((last.content.as_ref(), last.summary.as_str()), (&b"three"[..], "third"));
    assert_eq!(store.paths().await, ["/c.md"]);
}

pub(crate) async fn an_update_that_changes_nothing_writes_nothing(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let made = store.create("/a.md", "one").await;
    let before = store.store().await;
    world.clock.advance(10);
    let same = [
        edit(made.id),
        edit(made.id).content("one"),
        edit(made.id).content("one").path("/a.md").summary("about it").expecting("stale"),
    ];
    for change in same {
        assert_eq!(store.write(change).await.memory, made);
        assert_eq!(store.store().await, before);
    }
    assert_eq!(store.history().await.len(), 1);
}

pub(crate) async fn a_stale_hash_refuses_and_changes_nothing(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let made = store.create("/a.md", "old").await;
    store.create("/taken", "").await;
    let current = store.write(edit(made.id).content("new")).await;
    let before = store.store().await;
    let stale = Refusal::ContentChanged { memory: made.id, actual: Sha256::of(b"new") };
    let deletion = |expected| Command::DeleteMemory {
        memory: made.id.into(),
        expected,
        on_archived: OnArchived::Refuse,
    };
    let commands = [
        edit(made.id).content("newer").expecting("old").into(),
        edit(made.id).path("/b.md").expecting("old").into(),
        edit(made.id).summary("other").expecting("old").into(),
        edit(made.id).path("/taken").expecting("old").into(),
        deletion(expecting("old")),
        deletion(Expected::Impossible),
    ];
    for command in commands {
        assert_eq!(store.refused(command).await, stale);
    }
    assert_eq!(store.store().await, before);
    let read = store.read(MemoryRef::Id(made.id)).await.expect("live");
    assert_eq!((read.memory, read.content.as_ref()), (current.memory, &b"new"[..]));
    store.write(edit(made.id).path("/b.md").expecting("new")).await;
    assert_eq!(store.apply(deletion(expecting("new"))).await, Outcome::MemoryDeleted(made.id));
}

pub(crate) async fn a_deleted_memory_leaves_every_read_and_frees_its_path(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let made = store.create("/a.md", "one").await;
    assert_eq!(store.apply(delete(made.id)).await, Outcome::MemoryDeleted(made.id));
    for reference in [MemoryRef::Id(made.id), MemoryRef::Path(made.path.clone())] {
        assert_eq!(store.get(reference, Detail::Full).await, Lookup::Missing);
    }
    assert!(store.paths().await.is_empty());
    for command in [delete(made.id), edit(made.id).content("x").into()] {
        assert_eq!(store.refused(command).await, Refusal::MemoryNotFound(made.id));
    }
    let next = store.create("/a.md", "one").await;
    assert_ne!(next.id, made.id);
    assert_eq!((store.history_of(made.id).await.len(), store.history_of(next.id).await.len()), (2, 1));
}

pub(crate) async fn what_is_not_there_is_missing(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let elsewhere = world.store("Other").await.create("/only-there", "one").await;
    let unknown = unknown_memory();
    for reference in [
        MemoryRef::Id(unknown),
        MemoryRef::Id(elsewhere.id),
        MemoryRef::Path(path("/only-there")),
        MemoryRef::Path(path("/none")),
    ] {
        assert_eq!(store.get(reference, Detail::Basic).await, Lookup::Missing);
    }
    for id in [unknown, elsewhere.id] {
        for command in [delete(id), edit(id).content("x").into(), edit(id).into()] {
            assert_eq!(store.refused(command).await, Refusal::MemoryNotFound(id));
        }
    }
}

pub(crate) async fn equal_contents_do_not_hang_together(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let text = "the same words ".repeat(500);
    let first = store.create("/a", &text).await;
    let second = store.create("/b", &text).await;
    store.write(edit(first.id).content("changed")).await;
    store.apply(delete(first.id)).await;
    assert_eq!(store.text(second.id).await, text);
}

/// Bodies that tell which heads they were asked for.
struct Asked {
    known: Option<(VersionId, Bytes)>,
    heads: Mutex<Vec<VersionId>>,
}

impl Asked {
    fn knowing(known: Option<(VersionId, Bytes)>) -> Arc<Self> {
        Arc::new(Self { known, heads: Mutex::default() })
    }

    fn heads(&self) -> Vec<VersionId> {
        self.heads.lock().expect("no panic under the lock").clone()
    }
}

impl KnownBodies for Asked {
    fn body(&self, head: VersionId) -> Option<Bytes> {
        self.heads.lock().expect("no panic under the lock").push(head);
        self.known.as_ref().filter(|(known, _)| *known == head).map(|(_, body)| body.clone())
    }
}

async fn get_with(store: &Handle, memory: MemoryRef, known: &Arc<Asked>) -> Lookup<MemoryRead> {
    let known = Some(Arc::clone(known) as Arc<dyn KnownBodies>);
    sound(store.world.storage.memory_get(store.world.workspace, store.id, memory, Detail::Full, known).await)
        .into()
}

fn references(memory: &Memory) -> [MemoryRef; 2] {
    [MemoryRef::Id(memory.id), MemoryRef::Path(memory.path.clone())]
}

pub(crate) async fn a_known_body_is_asked_for_by_the_current_head_and_returned(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let made = store.create("/a.md", "one").await;
    let body = Bytes::from_static(b"a ready body");
    for reference in references(&made) {
        let known = Asked::knowing(Some((made.version, body.clone())));
        assert_eq!(get_with(&store, reference, &known).await, Lookup::Found(MemoryRead::Known(body.clone())));
        assert_eq!(known.heads(), [made.version]);
    }
}

pub(crate) async fn a_body_of_an_older_head_is_never_returned(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let made = store.create("/a.md", "one").await;
    let old = Some((made.version, Bytes::from_static(b"old")));
    let current = store.write(edit(made.id).content("two")).await.memory;
    for reference in references(&made) {
        let known = Asked::knowing(old.clone());
        let read = get_with(&store, reference, &known).await;
        assert!(
            matches!(read, Lookup::Found(MemoryRead::Read { content: Some(content), .. }) if content == "two")
        );
        assert_eq!(known.heads(), [current.version]);
    }
    store.apply(delete(made.id)).await;
    for reference in references(&made) {
        let known = Asked::knowing(old.clone());
        assert_eq!(get_with(&store, reference, &known).await, Lookup::Missing);
        assert_eq!(known.heads(), []);
    }
}

pub(crate) async fn the_cap_on_memories_is_exact_and_a_deletion_makes_room(factory: &dyn StoreFactory) {
    let world = World::with_limits(factory, Limits { memories_per_store: 3, ..Limits::default() }).await;
    let store = world.store("Notes").await;
    let first = store.create("/a", "one").await;
    store.create("/b", "two").await;
    store.create("/c", "three").await;
    let full = Refusal::MemoryLimit { limit: 3 };
    assert_eq!(store.refused(create("/d", "four")).await, full);
    world.store("Other").await.create("/d", "four").await;
    store.write(edit(first.id).path("/d").content("still changeable")).await;
    store.apply(delete(first.id)).await;
    store.create("/a", "room at once").await;
    assert_eq!(
        store.refused(restore(first.version)).await,
        Refusal::PathOccupied {
            wanted: path("/a"),
            by: store.read(MemoryRef::Path(path("/a"))).await.expect("live").memory.id,
            at: path("/a"),
        }
    );
    store
        .write(edit(store.read(MemoryRef::Path(path("/a"))).await.expect("live").memory.id).path("/e"))
        .await;
    assert_eq!(store.refused(restore(first.version)).await, full);
}

pub(crate) async fn a_cap_of_the_workspace_counts_instead_of_the_servers(factory: &dyn StoreFactory) {
    let world = World::with_limits(factory, Limits { memories_per_store: 2, ..Limits::default() }).await;
    let elsewhere = world.elsewhere().await;
    let set = async |cap| {
        let patch = WorkspacePatch { max_memories_per_store: Some(cap), ..WorkspacePatch::default() };
        sound(world.storage.workspace_update(elsewhere.workspace, patch).await)
            .expect("the workspace is there")
    };
    set(Some(3)).await;
    let store = elsewhere.store("Notes").await;
    let first = store.create("/a", "one").await;
    store.create("/b", "two").await;
    store.create("/c", "three").await;
    assert_eq!(store.refused(create("/d", "four")).await, Refusal::MemoryLimit { limit: 3 });
    set(Some(1)).await;
    store.write(edit(first.id).content("still changeable")).await;
    store.apply(delete(first.id)).await;
    assert_eq!(store.refused(restore(first.version)).await, Refusal::MemoryLimit { limit: 1 });
    set(None).await;
    assert_eq!(store.refused(create("/d", "four")).await, Refusal::MemoryLimit { limit: 2 });
    let other = world.store("Notes").await;
    other.create("/a", "one").await;
    other.create("/b", "two").await;
    assert_eq!(other.refused(create("/c", "three")).await, Refusal::MemoryLimit { limit: 2 });
}

pub(crate) async fn caps_on_bytes_and_versions_hold(factory: &dyn StoreFactory) {
    let limits = Limits { store_bytes: Some(10), versions_per_store: Some(4), ..Limits::default() };
    let world = World::with_limits(factory, limits).await;
    let store = world.store("Notes").await;
    let first = store.create("/a", "123456").await;
    assert_eq!(store.refused(create("/b", "12345")).await, Refusal::StoreBytesLimit { limit: 10 });
    let second = store.create("/b", "1234").await;
    let growth = edit(first.id).content("1234567");
    assert_eq!(store.refused(growth).await, Refusal::StoreBytesLimit { limit: 10 });
    store.write(edit(first.id).content("12345")).await;
    store.write(edit(second.id).path("/c")).await;
    assert_eq!(store.refused(edit(second.id).path("/d")).await, Refusal::VersionLimit { limit: 4 });
    store.apply(delete(second.id)).await;
    assert_eq!(store.store().await.counters.versions, 5);
}
