//! The history of a store read whole, and a store put back out of it. DESIGN 3.13.

use stele_core::command::{Command, RedactedPath};
use stele_core::feed::{History, Past};
use stele_core::limits::Limits;
use stele_core::list::VersionFilter;
use stele_core::model::{Actor, Memory, Operation, Store};
use stele_core::refusal::Refusal;
use stele_core::storage::{At, Error, Rows, StorageError};

use crate::StoreFactory;
use crate::world::*;

/// All that there is of a store.
#[derive(Clone, Debug, PartialEq)]
struct Whole {
    store: Store,
    past: Vec<Past>,
    memories: Vec<Memory>,
}

async fn page(store: &Handle, after: u64, limit: usize, bytes: u64) -> Option<History> {
    let World { storage, workspace, .. } = &store.world;
    sound(storage.history(*workspace, store.id, after, limit, bytes).await)
}

async fn whole(store: &Handle, limit: usize, bytes: u64) -> Whole {
    let (mut past, mut after) = (Vec::new(), 0);
    let counted = loop {
        let found = page(store, after, limit, bytes).await.expect("the store is there");
        assert!(found.past.len() <= limit);
        let Some(last) = found.past.last() else { break found.store };
        after = last.sequence();
        past.extend(found.past);
    };
    let World { storage, workspace, .. } = &store.world;
    let tree = sound(storage.snapshot(*workspace, store.id).await);
    let At { sequence, value: memories } = tree.expect("the store is there");
    assert_eq!(sequence, counted.counters.sequence);
    Whole { store: counted, past, memories }
}

/// A store with versions of all kinds, in a world of which the clock moves on.
async fn lived(world: &World) -> Handle {
    let store = world.store("Notes").await;
    let memory = store.create("/a.md", "one").await;
    store.create("/long.md", &"long ".repeat(1_000)).await;
    world.clock.advance(10);
    let secret = store.write(edit(memory.id).content("secret").path("/b.md")).await.memory.version;
    store.by(actor(7)).write(edit(memory.id).content("clean").summary("what it is")).await;
    store.redact(secret, RedactedPath::Keep).await;
    let gone = store.create("/gone.md", "gone").await;
    store.apply(delete(gone.id)).await;
    store.redact(gone.version, RedactedPath::Scrub).await;
    store
}

/// Puts a store back as far as its end.
async fn put(world: &World, whole: &Whole) -> Result<(), Refusal> {
    let store = Store { workspace: world.workspace, ..whole.store.clone() };
    let place = (store.workspace, store.id);
    verdict(world.storage.restore_begin(store).await)?;
    for past in whole.past.chunks(3) {
        verdict(world.storage.restore_rows(place, Rows::Past(past.to_vec())).await)?;
    }
    verdict(world.storage.restore_rows(place, Rows::Memories(whole.memories.clone())).await)
}

async fn end(world: &World, whole: &Whole) -> Result<Store, Refusal> {
    let store = Store { workspace: world.workspace, ..whole.store.clone() };
    verdict(world.storage.restore_end(store).await)
}

pub(crate) async fn a_history_is_told_whole_in_pages_of_any_size(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = lived(&world).await;
    store.apply(Command::ArchiveStore).await;
    let all = whole(&store, 1_000, u64::MAX).await;
    let sequences: Vec<_> = all.past.iter().map(Past::sequence).collect();
    assert_eq!(sequences, (1..=9).collect::<Vec<_>>());
    assert_eq!(all.past.iter().filter(|past| matches!(past, Past::Mark(_))).count(), 3);
    let times: Vec<_> = all.past.iter().map(Past::created_at).collect();
    assert!(times.is_sorted_by(|a, b| a < b));
    for (limit, bytes) in [(1, u64::MAX), (2, u64::MAX), (3, 10), (1_000, 1), (1_000, 0)] {
        assert_eq!(whole(&store, limit, bytes).await, all, "{limit} entries, {bytes} bytes");
    }
    assert!(page(&world.handle(unknown_store()), 0, 9, 9).await.is_none());
    assert!(page(&world.elsewhere().await.handle(store.id), 0, 9, 9).await.is_none());
    store.apply(Command::DeleteStore).await;
    assert!(page(&store, 0, 9, 9).await.is_none());
}

pub(crate) async fn a_store_that_was_put_back_is_the_one_that_was(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = lived(&world).await;
    let all = whole(&store, 100, u64::MAX).await;
    let there = World::open(factory).await;
    put(&there, &all).await.expect("it is not there yet");
    let back = end(&there, &all).await.expect("it ends");
    let moved = Whole { store: Store { workspace: there.workspace, ..all.store.clone() }, ..all.clone() };
    assert_eq!(back, moved.store);
    let handle = there.handle(store.id);
    assert_eq!(whole(&handle, 100, u64::MAX).await, moved);
    assert_eq!(handle.paths().await, store.paths().await);
    let told = |world: &World| {
        let (storage, workspace) = (world.storage.clone(), world.workspace);
        async move { sound(storage.changes(workspace, store.id, 0, 100).await).expect("a feed").told }
    };
    assert_eq!(told(&there).await, told(&world).await);
    // It lives on.
    there.clock.advance(10);
    let memory = handle.create("/next.md", "next").await;
    let last = handle.history_of(memory.id).await.pop().expect("a version").version;
    assert_eq!(last.sequence, all.store.counters.sequence + 1);
    assert_eq!(verdict(there.storage.restore_begin(back).await), Err(Refusal::StoreExists(store.id)));
}

pub(crate) async fn nobody_sees_a_store_before_its_end(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let all = whole(&lived(&world).await, 100, u64::MAX).await;
    let limits = Limits { version_retention_secs: 1, versions_kept: 1, ..Limits::default() };
    let there = World::with_limits(factory, limits).await;
    there.clock.advance(1_000_000_000);
    put(&there, &all).await.expect("it is not there yet");
    let handle = there.handle(all.store.id);
    assert!(page(&handle, 0, 100, u64::MAX).await.is_none());
    assert!(sound(there.storage.store_by_id(there.workspace, all.store.id).await).is_none());
    assert_eq!(sound(there.storage.store_count().await), 0);
    let changes = sound(there.storage.changes(there.workspace, all.store.id, 0, 100).await);
    assert!(changes.is_none_or(|changes| changes.store.is_none() && changes.told.is_empty()));
    // Neither what deleted stores left nor what is too old is looked for in it.
    assert_eq!(sound(there.storage.purge().await).stores, 0);
    assert_eq!(sound(there.storage.sweep().await).versions, 0);
    assert_eq!(end(&there, &all).await.expect("it ends").counters, all.store.counters);
    assert_eq!(whole(&handle, 100, u64::MAX).await.past, all.past);
    assert!(sound(there.storage.sweep().await).versions > 0, "now they are too old");
}

pub(crate) async fn what_is_given_up_is_purged(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let all = whole(&lived(&world).await, 100, u64::MAX).await;
    let there = World::open(factory).await;
    put(&there, &all).await.expect("it is not there yet");
    let again = Store { workspace: there.workspace, ..all.store.clone() };
    let refused = there.storage.restore_begin(again).await.expect_err("it is being put back");
    assert!(
        matches!(refused, Error::Failed(StorageError::Restoring { store, secs: 1..=60 }) if store == all.store.id),
        "{refused:?}"
    );
    let place = (there.workspace, all.store.id);
    sound(there.storage.restore_abandon(place).await);
    let late = there.storage.restore_rows(place, Rows::Memories(Vec::new())).await;
    let ended = there.storage.restore_end(Store { workspace: there.workspace, ..all.store.clone() }).await;
    assert_eq!(sound(there.storage.purge().await).stores, 1);
    assert!(ended.is_err(), "it was given up");
    // Rows that come too late are refused, or there were none of them.
    drop(late);
    put(&there, &all).await.expect("nothing of it is left");
    end(&there, &all).await.expect("it ends");
    let back = whole(&there.handle(all.store.id), 100, u64::MAX).await;
    assert_eq!((back.past, back.memories), (all.past, all.memories));
}

pub(crate) async fn what_is_there_already_is_refused(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = lived(&world).await;
    let all = whole(&store, 100, u64::MAX).await;
    assert_eq!(put(&world, &all).await, Err(Refusal::StoreExists(store.id)));
    assert_eq!(put(&world.elsewhere().await, &all).await, Err(Refusal::StoreExists(store.id)));
    assert_eq!(whole(&store, 100, u64::MAX).await, all);
    let limits = Limits { stores_per_workspace: Some(1), ..Limits::default() };
    let full = World::with_limits(factory, limits).await;
    let other = full.store("Notes").await;
    assert_eq!(put(&full, &all).await, Err(Refusal::StoreLimit { limit: 1 }));
    full.storage.change(full_deletion(&full, &other)).await.expect("it is deleted");
    put(&full, &all).await.expect("there is room");
    // Somebody else was quicker.
    full.store("Notes").await;
    assert_eq!(end(&full, &all).await, Err(Refusal::StoreLimit { limit: 1 }));
}

fn full_deletion(world: &World, store: &Handle) -> stele_core::storage::Change {
    stele_core::storage::Change {
        workspace: world.workspace,
        store: store.id,
        actor: actor(0),
        command: Command::DeleteStore,
        with_content: false,
    }
}

pub(crate) async fn a_slug_that_is_taken_gives_way(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let all = whole(&lived(&world).await, 100, u64::MAX).await;
    let there = World::open(factory).await;
    let taken = there.store("Notes").await.store().await.slug;
    put(&there, &all).await.expect("it is not there yet");
    let back = end(&there, &all).await.expect("it ends");
    assert_eq!(taken, all.store.slug);
    assert_ne!(back.slug, taken);
}

/// The sequences of the versions that the filter lets through, read in pages of `limit`.
async fn listed(store: &Handle, filter: VersionFilter, limit: usize) -> Vec<u64> {
    store.walk_versions(filter, limit).await.iter().map(|text| text.version.sequence).collect()
}

pub(crate) async fn a_gap_of_any_size_in_a_history_costs_nothing(factory: &dyn StoreFactory) {
    const GAP: u64 = 1 << 52;
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let memory = store.create("/a.md", "one").await;
    store.create("/b.md", "other").await;
    store.write(edit(memory.id).content("two")).await;
    store.write(edit(memory.id).content("three")).await;
    let mut all = whole(&store, 100, u64::MAX).await;
    // As retention leaves it, had there been that many versions in between.
    for past in &mut all.past[2..] {
        let Past::Version(text) = past else { panic!("a version") };
        text.version.sequence += GAP;
    }
    all.store.counters.sequence += GAP;
    all.store.counters.floor = GAP + 2;
    let there = World::open(factory).await;
    put(&there, &all).await.expect("it is not there yet");
    end(&there, &all).await.expect("it ends");
    let back = there.handle(store.id);
    assert_eq!(whole(&back, 100, u64::MAX).await.past, all.past);
    for limit in [1, 2, 500] {
        let all = listed(&back, VersionFilter::default(), limit).await;
        assert_eq!(all, [GAP + 4, GAP + 3, 2, 1], "pages of {limit}");
        let created = VersionFilter { operations: vec![Operation::Created], ..VersionFilter::default() };
        assert_eq!(listed(&back, created, limit).await, [2_u64, 1], "pages of {limit}");
        let nothing = VersionFilter { authors: vec![actor(99)], ..VersionFilter::default() };
        assert!(listed(&back, nothing, limit).await.is_empty(), "pages of {limit}");
        let of_memory = VersionFilter { memory: Some(memory.id), ..VersionFilter::default() };
        assert_eq!(listed(&back, of_memory, limit).await, [GAP + 4, GAP + 3, 1], "pages of {limit}");
    }
    let World { storage, workspace, .. } = &there;
    let told = sound(storage.changes(*workspace, store.id, GAP + 2, 100).await).expect("a feed").told;
    assert_eq!(told.len(), 2);
    // It lives on.
    there.clock.advance(10);
    back.write(edit(memory.id).content("four")).await;
    assert_eq!(back.store().await.counters.sequence, GAP + 5);
    assert_eq!(listed(&back, VersionFilter::default(), 500).await, [GAP + 5, GAP + 4, GAP + 3, 2, 1]);
}

pub(crate) async fn what_is_left_of_a_deleted_store_is_told_and_goes(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = lived(&world).await;
    let all = whole(&store, 100, u64::MAX).await;
    store.apply(Command::DeleteStore).await;
    sound(world.storage.purge().await);
    let remains = verdict(world.storage.restore_begin(all.store.clone()).await).expect("it is gone");
    assert_eq!(remains.deleted_at, Some(all.store.counters.sequence + 1));
    let mut redacted: Vec<_> = remains.redactions.iter().map(|record| record.version).collect();
    redacted.sort();
    let redaction = |past: &Past| match past {
        Past::Version(text) => text.version.redaction.map(|_| text.version.id),
        Past::Mark(_) => None,
    };
    assert_eq!(redacted, all.past.iter().filter_map(redaction).collect::<Vec<_>>());
    assert!(remains.redactions.iter().all(|record| matches!(record.redaction.by, Actor::ApiKey(_))));
    let place = (world.workspace, store.id);
    verdict(world.storage.restore_rows(place, Rows::Past(all.past.clone())).await).expect("they are kept");
    verdict(world.storage.restore_rows(place, Rows::Memories(all.memories.clone())).await).expect("too");
    end(&world, &all).await.expect("it ends");
    assert_eq!(whole(&store, 100, u64::MAX).await, all);
}
