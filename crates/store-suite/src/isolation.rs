//! Nothing crosses a workspace, and nothing crosses a store. DESIGN 3.8.

use stele_core::command::RedactedPath;
use stele_core::list::StoreFilter;
use stele_core::refusal::Refusal;

use crate::StoreFactory;
use crate::stores::is_nowhere;
use crate::world::*;

pub(crate) async fn a_foreign_store_is_as_good_as_unknown(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let elsewhere = world.elsewhere().await;
    let store = world.store("Notes").await;
    let memory = store.create("/a.md", "one").await;
    store.write(edit(memory.id).content("two")).await;
    let before = (store.store().await, store.history().await, store.list(everything()).await);
    is_nowhere(&store.seen_from(&elsewhere), memory.id, memory.version).await;
    assert_eq!((store.store().await, store.history().await, store.list(everything()).await), before);
}

pub(crate) async fn a_workspace_lists_only_its_own_stores(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let elsewhere = world.elsewhere().await;
    for n in 0..4 {
        world.clock.advance(1_000);
        world.store(&format!("ours {n}")).await;
        elsewhere.store(&format!("theirs {n}")).await;
    }
    for limit in [1, 3, 10] {
        let ours = world.walk_stores(StoreFilter::default(), limit).await;
        assert!(ours.iter().all(|store| store.workspace == world.workspace));
        assert_eq!((ours.len(), elsewhere.walk_stores(StoreFilter::default(), limit).await.len()), (4, 4));
    }
}

pub(crate) async fn stores_of_one_workspace_keep_apart(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let (one, two) = (world.store("One").await, world.store("Two").await);
    let memory = one.create("/a.md", "one").await;
    one.write(edit(memory.id).content("two")).await;
    let other = two.create("/a.md", "other").await;
    let before = (two.store().await, two.history().await, two.list(everything()).await);
    let missing = Refusal::MemoryNotFound(memory.id);
    assert_eq!(two.refused(edit(memory.id).content("x")).await, missing);
    assert_eq!(two.refused(delete(memory.id)).await, missing);
    for command in [restore(memory.version), redact(memory.version, RedactedPath::Keep)] {
        assert_eq!(two.refused(command).await, Refusal::VersionNotFound(memory.version));
    }
    one.write(edit(memory.id).content("three")).await;
    one.apply(delete(memory.id)).await;
    assert_eq!((two.store().await, two.history().await, two.list(everything()).await), before);
    one.apply(stele_core::command::Command::DeleteStore).await;
    sound(world.storage.sweep().await);
    assert_eq!((two.store().await, two.history().await, two.list(everything()).await), before);
    assert_eq!(two.text(other.id).await, "other");
}
