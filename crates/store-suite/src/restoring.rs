//! Restoring versions. spec/recursion.md 7.4.

use stele_core::command::RedactedPath;
use stele_core::limits::Limits;
use stele_core::model::Operation;
use stele_core::refusal::Refusal;
use stele_core::storage::MemoryRef;

use crate::StoreFactory;
use crate::world::*;

pub(crate) async fn over_a_live_memory_the_text_comes_back_and_the_path_stays(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let memory = store.create("/a.md", "one").await;
    store.write(edit(memory.id).path("/b.md").content("two").summary("other")).await;
    world.clock.advance(10);
    let current = store.by(actor(4)).write(restore(memory.version)).await;
    let read = store.read(MemoryRef::Id(memory.id)).await.expect("live");
    assert_eq!((&read.memory, &read.summary), (&current.memory, &current.summary));
    assert_eq!((read.content.as_ref(), read.summary.as_str()), (&b"one"[..], "about it"));
    assert_eq!((read.memory.path.as_str(), read.memory.created_at), ("/b.md", memory.created_at));
    let last = store.history().await.pop().expect("a version").version;
    assert_eq!((last.operation, last.author, last.sequence), (Operation::Updated, actor(4), 3));
    assert_eq!((last.id, last.path), (current.memory.version, Some(path("/b.md"))));
}

pub(crate) async fn a_restore_records_itself_also_when_the_text_is_the_same(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let memory = store.create("/a.md", "one").await;
    let current = store.write(restore(memory.version)).await.memory;
    assert_ne!(current.version, memory.version);
    assert_eq!((store.history().await.len(), store.text(memory.id).await.as_str()), (2, "one"));
    assert!(store.redact(memory.version, RedactedPath::Keep).await.redaction.is_some(), "no longer the head");
    assert_eq!(store.text(memory.id).await, "one");
}

pub(crate) async fn a_deleted_memory_comes_back_under_its_id_at_the_versions_path(
    factory: &dyn StoreFactory,
) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let memory = store.create("/a.md", "one").await;
    store.write(edit(memory.id).path("/b.md").content("two")).await;
    store.apply(delete(memory.id)).await;
    world.clock.advance(10);
    let current = store.write(restore(memory.version)).await.memory;
    assert_eq!((current.id, current.path.as_str()), (memory.id, "/a.md"));
    assert_eq!((current.created_at, current.updated_at), (world.now(), world.now()));
    assert_eq!((store.text(memory.id).await.as_str(), store.paths().await), ("one", vec!["/a.md".into()]));
    let last = store.history_of(memory.id).await.pop().expect("a version").version;
    assert_eq!((last.operation, last.sequence), (Operation::Recreated, 4));
    let counters = store.store().await.counters;
    assert_eq!((counters.memories, counters.bytes, counters.versions), (1, 3, 4));
}

pub(crate) async fn a_memory_goes_and_comes_again_and_again(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let memory = store.create("/a.md", "one").await;
    let mut version = memory.version;
    for _ in 0..3 {
        store.apply(delete(memory.id)).await;
        version = store.write(restore(version)).await.memory.version;
    }
    assert_eq!((store.text(memory.id).await.as_str(), store.history_of(memory.id).await.len()), ("one", 7));
}

pub(crate) async fn a_taken_path_refuses_and_stays_as_it_is(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let memory = store.create("/d/k.md", "one").await;
    store.apply(delete(memory.id)).await;
    for taken in ["/d/k.md", "/d", "/d/k.md/below"] {
        let other = store.create(taken, "new").await;
        let refusal = store.refused(restore(memory.version)).await;
        let expected = Refusal::PathOccupied { wanted: path("/d/k.md"), by: other.id, at: path(taken) };
        assert_eq!(refusal, expected);
        assert_eq!(store.text(other.id).await, "new");
        store.apply(delete(other.id)).await;
    }
    store.write(restore(memory.version)).await;
}

pub(crate) async fn a_path_taken_by_the_memory_itself_is_no_obstacle(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let memory = store.create("/a", "one").await;
    store.write(edit(memory.id).path("/a/b")).await;
    let other = store.create("/c", "two").await;
    store.write(restore(memory.version)).await;
    // The old path is another's by now, but the live memory keeps its own.
    store.write(edit(memory.id).path("/z")).await;
    store.write(edit(other.id).path("/a")).await;
    store.write(restore(memory.version)).await;
    assert_eq!(store.paths().await, ["/a", "/z"]);
}

pub(crate) async fn a_full_store_takes_no_deleted_memory_back(factory: &dyn StoreFactory) {
    let world = World::with_limits(factory, Limits { memories_per_store: 1, ..Limits::default() }).await;
    let store = world.store("Notes").await;
    let memory = store.create("/a", "one").await;
    store.apply(delete(memory.id)).await;
    let other = store.create("/b", "two").await;
    assert_eq!(store.refused(restore(memory.version)).await, Refusal::MemoryLimit { limit: 1 });
    store.write(restore(other.version)).await;
    store.apply(delete(other.id)).await;
    store.write(restore(memory.version)).await;
}

pub(crate) async fn what_holds_no_text_is_not_restored(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let memory = store.create("/k.md", "one").await;
    let second = store.write(edit(memory.id).content("two")).await.memory;
    store.redact(memory.version, RedactedPath::Keep).await;
    store.apply(delete(memory.id)).await;
    let deletion = store.history().await.pop().expect("a version").version.id;
    for id in [memory.version, deletion] {
        assert_eq!(store.refused(restore(id)).await, Refusal::VersionNotRestorable(id));
    }
    let foreign = world.store("Other").await.create("/x", "x").await.version;
    for id in [unknown_version(), foreign] {
        assert_eq!(store.refused(restore(id)).await, Refusal::VersionNotFound(id));
    }
    assert_eq!(store.history().await.len(), 3);
    let back = store.write(restore(second.version)).await.memory;
    assert_eq!((back.id, back.path.as_str()), (memory.id, "/k.md"));
    assert_eq!(store.history().await.len(), 4);
}

pub(crate) async fn large_texts_come_back_whole(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let text = "0123456789abcdef".repeat(6_400);
    let memory = store.create("/big", &text).await;
    store.write(edit(memory.id).content("small")).await;
    store.write(restore(memory.version)).await;
    assert_eq!(store.text(memory.id).await, text);
    assert_eq!(store.store().await.counters.bytes, 102_400);
}
