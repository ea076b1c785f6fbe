//! Paths: a store is a file tree, compared literally. spec/anthropic.md 3.3, DESIGN 3.6.

use stele_core::refusal::Refusal;

use crate::StoreFactory;
use crate::world::*;

fn occupied(wanted: &str, by: stele_core::id::MemoryId, at: &str) -> Refusal {
    Refusal::PathOccupied { wanted: path(wanted), by, at: path(at) }
}

pub(crate) async fn a_path_is_occupied_at_above_and_below(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let deep = store.create("/a/b/c", "one").await.id;
    for wanted in ["/a", "/a/b", "/a/b/c", "/a/b/c/d", "/a/b/c/d/e/f"] {
        assert_eq!(store.refused(create(wanted, "x")).await, occupied(wanted, deep, "/a/b/c"));
    }
    assert_eq!((store.paths().await, store.history().await.len()), (vec!["/a/b/c".to_owned()], 1));
}

pub(crate) async fn of_several_in_the_way_the_smallest_path_is_named(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    store.create("/a/z", "").await;
    let m = store.create("/a/m/deep", "").await.id;
    store.create("/a/n", "").await;
    assert_eq!(store.refused(create("/a", "x")).await, occupied("/a", m, "/a/m/deep"));
}

pub(crate) async fn neighbours_are_not_in_the_way(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let neighbours = [
        "/a/b",
        "/a.b",
        "/a!",
        "/a0",
        "/ab",
        "/A",
        "/A b/x",
        "/a_b",
        "/acb/x",
        "/100%",
        "/100x/y",
        "/*",
        "/?x",
        "/[a]",
        "/a\\b",
        "/é",
        "/é.md",
        "/e/x",
        "/'; DROP TABLE memories; --",
        "/\"q\"",
        "/.hidden",
        "/日本/語",
    ];
    for at in neighbours {
        store.create(at, at).await;
    }
    let mut sorted = neighbours;
    sorted.sort_unstable();
    assert_eq!(store.paths().await, sorted);
    for at in neighbours {
        let read = store.read(stele_core::storage::MemoryRef::Path(path(at))).await.expect("live");
        assert_eq!(read.content, at.as_bytes());
    }
}

pub(crate) async fn wildcards_of_a_database_mean_nothing_in_a_path(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    for at in ["/acb/x", "/abc/x", "/a/b/x", "/100 per cent/x", "/aXY/x"] {
        store.create(at, "").await;
    }
    for free in ["/a_b", "/a%", "/%", "/_", "/a*", "/a?b", "/100%", "/a__"] {
        store.create(free, "").await;
    }
}

pub(crate) async fn the_deepest_and_the_longest_path_work(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let deep = "/d".repeat(20);
    let long = format!("/{}", "é".repeat(511));
    for at in [&deep, &long] {
        store.create(at, at).await;
        assert!(store.read(stele_core::storage::MemoryRef::Path(path(at))).await.is_some());
    }
    assert!(matches!(store.refused(create("/d/d/d", "")).await, Refusal::PathOccupied { .. }));
}

pub(crate) async fn a_rename_onto_a_taken_path_changes_nothing(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let one = store.create("/one", "1").await;
    let two = store.create("/dir/two", "2").await;
    for wanted in ["/dir/two", "/dir", "/dir/two/below"] {
        let change = edit(one.id).path(wanted).content("changed too");
        assert_eq!(store.refused(change).await, occupied(wanted, two.id, "/dir/two"));
    }
    assert_eq!((store.text(one.id).await.as_str(), store.history().await.len()), ("1", 2));
}

pub(crate) async fn a_rename_below_or_above_its_own_path_moves_away_first(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let memory = store.create("/a", "one").await;
    for to in ["/a/b", "/a/b/c", "/a/d", "/a"] {
        store.write(edit(memory.id).path(to)).await;
        assert_eq!(store.paths().await, [to]);
    }
}

pub(crate) async fn a_rename_above_its_own_path_minds_its_siblings(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let first = store.create("/d/a", "one").await;
    let second = store.create("/d/b", "two").await;
    let refusal = store.refused(edit(first.id).path("/d")).await;
    assert_eq!(refusal, occupied("/d", second.id, "/d/b"), "the one that moves is not in its own way");
    assert_eq!(store.refused(edit(second.id).path("/d")).await, occupied("/d", first.id, "/d/a"));
    store.apply(delete(second.id)).await;
    store.write(edit(first.id).path("/d")).await;
}

pub(crate) async fn two_memories_swap_paths_by_way_of_a_third(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let (a, b) = (store.create("/a", "was a").await, store.create("/b", "was b").await);
    for (memory, to) in [(&a, "/tmp"), (&b, "/a"), (&a, "/b")] {
        store.write(edit(memory.id).path(to)).await;
    }
    for (at, text) in [("/a", "was b"), ("/b", "was a")] {
        let read = store.read(stele_core::storage::MemoryRef::Path(path(at))).await.expect("live");
        assert_eq!(read.content, text);
    }
}

pub(crate) async fn paths_of_other_stores_are_not_in_the_way(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    for called in ["one", "two"] {
        let store = world.store(called).await;
        store.create("/a", called).await;
        assert!(matches!(store.refused(create("/a/b", "")).await, Refusal::PathOccupied { .. }));
    }
}
