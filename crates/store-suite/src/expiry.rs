//! Retention: what a sweep removes and what it keeps. spec/anthropic.md 4.5, spec/recursion.md 7.3.

use stele_core::command::{Command, RedactedPath};
use stele_core::id::MemoryId;
use stele_core::limits::Limits;
use stele_core::refusal::Refusal;
use stele_core::storage::{MemoryRef, Swept};

use crate::StoreFactory;
use crate::world::*;

/// A memory with so many versions, texts `1` to `versions`.
async fn written(store: &Handle, at: &str, versions: usize) -> MemoryId {
    let memory = store.create(at, "1").await.id;
    for n in 2..=versions {
        store.write(edit(memory).content(&n.to_string())).await;
    }
    memory
}

async fn texts(store: &Handle, memory: MemoryId) -> Vec<String> {
    let history = store.history_of(memory).await;
    let text = |content: Option<bytes::Bytes>| String::from_utf8(content.unwrap_or_default().to_vec());
    history.into_iter().map(|version| text(version.content).expect("contents are UTF-8")).collect()
}

async fn swept(world: &World) -> u64 {
    sound(world.storage.sweep().await).versions
}

pub(crate) async fn old_versions_go_and_the_newest_ten_of_the_living_stay(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let live = written(&store, "/live.md", 15).await;
    let dead = written(&store, "/dead.md", 3).await;
    store.apply(delete(dead)).await;
    let few = written(&store, "/few.md", 2).await;
    let gone = store.history().await[..5].to_vec();
    world.clock.advance_days(40);
    let young = written(&store, "/young.md", 15).await;
    let before = store.store().await.counters;
    assert_eq!(swept(&world).await, 5 + 4);
    assert_eq!(texts(&store, live).await, (6..=15).map(|n| n.to_string()).collect::<Vec<_>>());
    assert_eq!(texts(&store, dead).await, [] as [String; 0]);
    assert_eq!((texts(&store, few).await.len(), texts(&store, young).await.len()), (2, 15));
    assert_eq!(store.text(live).await, "15");
    for version in gone {
        let id = version.version.id;
        assert_eq!(store.find_version(id, true).await, Lookup::Missing);
        assert_eq!(store.refused(restore(id)).await, Refusal::VersionNotFound(id));
        assert_eq!(store.refused(redact(id, RedactedPath::Keep)).await, Refusal::VersionNotFound(id));
    }
    let after = store.store().await.counters;
    assert_eq!((after.versions, after.sequence), (before.versions - 9, before.sequence));
    assert_eq!((after.memories, after.bytes), (before.memories, before.bytes));
}

pub(crate) async fn a_second_sweep_finds_nothing(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    assert_eq!(sound(world.storage.sweep().await), Swept::default());
    let store = world.store("Notes").await;
    written(&store, "/a", 12).await;
    assert_eq!(swept(&world).await, 0);
    world.clock.advance_days(40);
    assert_eq!(swept(&world).await, 2);
    assert_eq!(sound(world.storage.sweep().await), Swept::default());
}

pub(crate) async fn the_sequence_goes_on_after_a_sweep(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let dead = written(&store, "/dead", 3).await;
    store.apply(delete(dead)).await;
    world.clock.advance_days(40);
    assert_eq!(swept(&world).await, 4);
    assert!(store.history().await.is_empty());
    store.create("/next", "").await;
    assert_eq!(store.history().await[0].version.sequence, 5);
    assert_eq!(store.store().await.counters.versions, 1);
}

pub(crate) async fn retention_ends_to_the_microsecond(factory: &dyn StoreFactory) {
    let world = World::with_limits(factory, Limits { versions_kept: 1, ..Limits::default() }).await;
    let store = world.store("Notes").await;
    let memory = written(&store, "/a", 1).await;
    let first = store.history().await[0].version.created_at;
    world.clock.advance(1_000);
    store.write(edit(memory).content("2")).await;
    world.clock.advance(first.as_micros() - world.now().as_micros());
    world.clock.advance_days(30);
    assert_eq!(swept(&world).await, 0, "30 days old and no more");
    world.clock.advance(1);
    assert_eq!(swept(&world).await, 1);
    assert_eq!(texts(&store, memory).await, ["2"]);
}

pub(crate) async fn the_head_stays_whatever_its_age_and_the_setting(factory: &dyn StoreFactory) {
    let limits = Limits { versions_kept: 0, version_retention_secs: 60, ..Limits::default() };
    let world = World::with_limits(factory, limits).await;
    let store = world.store("Notes").await;
    let memory = written(&store, "/a", 4).await;
    world.clock.advance_days(400);
    assert_eq!(swept(&world).await, 3);
    assert_eq!((store.text(memory).await.as_str(), texts(&store, memory).await.len()), ("4", 1));
}

pub(crate) async fn a_head_that_repeats_an_expired_text_keeps_it(factory: &dyn StoreFactory) {
    let world = World::with_limits(factory, Limits { versions_kept: 1, ..Limits::default() }).await;
    let store = world.store("Notes").await;
    let text = "a text long enough to be kept apart ".repeat(200);
    let renamed = store.create("/a", &text).await;
    store.write(edit(renamed.id).path("/b")).await;
    store.write(edit(renamed.id).path("/c")).await;
    let restored = store.create("/r", &text).await;
    store.write(edit(restored.id).content("between")).await;
    store.write(restore(restored.version)).await;
    world.clock.advance_days(40);
    assert_eq!(swept(&world).await, 4);
    for memory in [renamed.id, restored.id] {
        assert_eq!(store.text(memory).await, text);
        let history = store.history_of(memory).await;
        assert_eq!(history[0].content.as_deref(), Some(text.as_bytes()));
    }
}

pub(crate) async fn what_was_deleted_lately_can_still_come_back(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let memory = written(&store, "/a", 12).await;
    let first = store.history_of(memory).await[0].version.id;
    world.clock.advance_days(29);
    store.apply(delete(memory)).await;
    world.clock.advance_days(29);
    assert_eq!(swept(&world).await, 0, "deleted 29 days ago");
    store.write(restore(first)).await;
    assert_eq!(store.text(memory).await, "1");
    assert_eq!(swept(&world).await, 4, "living again: its newest ten, and what is young");
    store.apply(delete(memory)).await;
    world.clock.advance_days(31);
    assert_eq!(swept(&world).await, 11);
    assert!(store.history_of(memory).await.is_empty());
}

pub(crate) async fn a_redacted_version_expires_like_others(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let memory = written(&store, "/a", 12).await;
    let history = store.history().await;
    store.redact(history[0].version.id, RedactedPath::Scrub).await;
    store.redact(history[5].version.id, RedactedPath::Keep).await;
    world.clock.advance_days(40);
    assert_eq!(swept(&world).await, 2);
    let left = store.history_of(memory).await;
    assert_eq!(left.iter().filter(|version| version.version.redaction.is_some()).count(), 1);
}

pub(crate) async fn archived_stores_and_every_workspace_are_swept(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let archived = world.store("Archived").await;
    written(&archived, "/a", 12).await;
    archived.apply(Command::ArchiveStore).await;
    let elsewhere = world.elsewhere().await.store("Elsewhere").await;
    written(&elsewhere, "/a", 13).await;
    world.clock.advance_days(40);
    assert_eq!(swept(&world).await, 2 + 3);
    assert_eq!((archived.history().await.len(), elsewhere.history().await.len()), (10, 10));
}

pub(crate) async fn many_versions_and_deleted_stores_go_in_one_sweep(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let mut stores = Vec::new();
    // The last one lives, with more old versions than a back end looks at in one go.
    for (called, versions) in [("gone", 10), ("gone too", 10), ("living", 45)] {
        let store = world.store(called).await;
        let jobs = (0..60).map(|n| {
            let store = store.clone();
            async move { written(&store, &format!("/{n}"), versions).await }
        });
        at_once(jobs).await;
        stores.push(store);
    }
    stores[0].apply(Command::DeleteStore).await;
    stores[1].apply(Command::DeleteStore).await;
    world.clock.advance_days(40);
    let done = sound(world.storage.sweep().await);
    assert_eq!(done.stores, 2);
    assert!(done.versions >= 60 * 35, "those of the living store are counted");
    assert_eq!((stores[2].store().await.counters.versions, stores[2].history().await.len()), (600, 600));
    assert_eq!(sound(world.storage.sweep().await), Swept::default());
}

pub(crate) async fn a_purge_removes_deleted_stores_and_leaves_old_versions(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    assert_eq!(sound(world.storage.purge().await), Swept::default());
    let (kept, gone) = (world.store("Kept").await, world.store("Gone").await);
    for store in [&kept, &gone] {
        written(store, "/a", 12).await;
    }
    gone.apply(Command::DeleteStore).await;
    world.clock.advance_days(40);
    assert_eq!(sound(world.storage.purge().await), Swept { stores: 1, ..Swept::default() });
    assert_eq!(sound(world.storage.purge().await), Swept::default());
    assert_eq!(kept.history().await.len(), 12);
    assert_eq!(sound(world.storage.sweep().await), Swept { versions: 2, ..Swept::default() });
}

pub(crate) async fn purges_and_sweeps_at_once_count_each_store_once(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    for n in 0..6 {
        let store = world.store(&format!("store {n}")).await;
        written(&store, "/a", 30).await;
        store.apply(Command::DeleteStore).await;
    }
    let jobs = (0..6).map(|n| {
        let storage = world.storage.clone();
        async move { sound(if n % 2 == 0 { storage.purge().await } else { storage.sweep().await }).stores }
    });
    assert_eq!(at_once(jobs).await.into_iter().sum::<u64>(), 6);
}

pub(crate) async fn a_sweep_beside_updates_and_restores_loses_no_head(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let jobs = (0..20).map(|n| {
        let store = store.clone();
        async move { written(&store, &format!("/{n}"), 12).await }
    });
    let memories = at_once(jobs).await;
    let history = store.history().await;
    world.clock.advance_days(40);
    let sweeping = world.clone();
    let sweep = tokio::spawn(async move { swept(&sweeping).await });
    let jobs = memories.iter().enumerate().map(|(n, memory)| {
        let (store, memory) = (store.clone(), *memory);
        let old = history.iter().filter(|old| old.version.memory == memory).take(2).cloned();
        let old: Vec<_> = old.collect();
        async move {
            for version in old {
                if n % 2 == 0 {
                    store.write(edit(memory).content(&format!("new {n}"))).await;
                }
                let id = version.version.id;
                match store.change(restore(id)).await {
                    Ok(_) => {
                        assert_eq!(store.text(memory).await.as_bytes(), version.content.expect("a text"))
                    }
                    Err(refusal) => assert_eq!(refusal, Refusal::VersionNotFound(id)),
                }
            }
        }
    });
    at_once(jobs).await;
    sweep.await.expect("the sweep does not panic");
    swept(&world).await;
    for memory in memories {
        let read = store.read(MemoryRef::Id(memory)).await.expect("live");
        let left = store.history_of(memory).await;
        assert_eq!(left.last().map(|version| version.version.id), Some(read.memory.version));
        // Old ones beyond the newest ten are gone, young ones are all there.
        let cutoff = world.now().minus_secs(Limits::default().version_retention_secs);
        let old = left.iter().rev().skip(10).filter(|version| version.version.created_at < cutoff);
        assert_eq!((old.count(), left.len() >= 10), (0, true));
    }
    assert_eq!(store.store().await.counters.versions, store.history().await.len() as u64);
}

pub(crate) async fn two_sweeps_at_once_count_each_version_once(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    written(&store, "/a", 60).await;
    world.clock.advance_days(40);
    let jobs = (0..4).map(|_| {
        let world = world.clone();
        async move { swept(&world).await }
    });
    assert_eq!(at_once(jobs).await.into_iter().sum::<u64>(), 50);
    assert_eq!(store.store().await.counters.versions, 10);
}
