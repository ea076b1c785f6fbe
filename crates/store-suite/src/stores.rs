//! Stores: making, changing, archiving, deleting and listing them. spec/anthropic.md 2, spec/recursion.md 5.

use stele_core::command::{Command, Expected, NewStore, OnArchived, RedactedPath};
use stele_core::decide::Outcome;
use stele_core::id::AgentId;
use stele_core::limits::Limits;
use stele_core::list::{Created, StoreFilter, VersionFilter, VersionQuery};
use stele_core::model::{Counters, Operation, Origin, Status, Store};
use stele_core::refusal::Refusal;
use stele_core::storage::MemoryRef;
use stele_core::text::Description;
use stele_core::time::Timestamp;

use crate::StoreFactory;
use crate::world::*;

fn store_of(outcome: Outcome) -> Store {
    match outcome {
        Outcome::Store(store) => *store,
        other => panic!("the answer is a store: {other:?}"),
    }
}

fn ids(stores: &[Store]) -> Vec<stele_core::id::StoreId> {
    stores.iter().map(|store| store.id).collect()
}

pub(crate) async fn a_new_store_reads_back_as_it_was_answered(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let new = NewStore {
        description: Description::parse("what é is for\n").expect("legal"),
        metadata: metadata(&[("team", Some("a")), ("empty", Some(""))]),
        agent: Some(AgentId::mint(world.now(), 5)),
        ..new_store("Release policy")
    };
    let made = world.try_store(new.clone()).await.expect("not refused");
    assert_eq!((&made.name, &made.description, made.agent), (&new.name, &new.description, new.agent));
    assert_eq!((made.slug.as_str(), made.origin), ("release-policy", Origin::Curated));
    assert_eq!((made.workspace, made.created_by), (world.workspace, actor(0)));
    assert_eq!((made.created_at, made.updated_at, made.archived_at), (world.now(), world.now(), None));
    assert_eq!(made.counters, Counters::default());
    assert_eq!(world.handle(made.id).store().await, made);
    assert_eq!(world.stores(StoreFilter::default(), None, 10).await.items, [made]);
}

pub(crate) async fn slugs_of_one_name_are_numbered(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let mut slugs = Vec::new();
    for called in ["Notes", "notes!", "NOTES", "Other"] {
        slugs.push(world.store(called).await.store().await.slug);
    }
    assert_eq!(slugs, ["notes", "notes-2", "notes-3", "other"]);
}

pub(crate) async fn a_number_that_a_name_has_taken_is_skipped(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let mut slugs = Vec::new();
    for called in ["Notes 2", "Notes", "Notes", "Notes 2"] {
        slugs.push(world.store(called).await.store().await.slug);
    }
    assert_eq!(slugs, ["notes-2", "notes", "notes-3", "notes-2-2"]);
}

pub(crate) async fn a_long_slug_is_cut_for_its_number(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let long = "a".repeat(255);
    assert_eq!(world.store(&long).await.store().await.slug, long);
    let second = world.store(&long).await.store().await.slug;
    assert_eq!(second, format!("{}-2", "a".repeat(253)));
}

pub(crate) async fn a_name_without_letters_or_digits_gives_the_id_as_slug(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    for _ in 0..2 {
        let store = world.store("日本").await.store().await;
        assert_eq!(store.slug, store.id.to_string());
    }
}

pub(crate) async fn a_slug_survives_renames_and_archiving_and_is_free_after_deletion(
    factory: &dyn StoreFactory,
) {
    let world = World::open(factory).await;
    let first = world.store("Notes").await;
    first.apply(rename_store("Something else")).await;
    first.apply(Command::ArchiveStore).await;
    assert_eq!(first.store().await.slug, "notes");
    let second = world.store("Notes").await;
    assert_eq!(second.store().await.slug, "notes-2");
    first.apply(Command::DeleteStore).await;
    assert_eq!(world.store("Notes").await.store().await.slug, "notes");
    second.apply(Command::DeleteStore).await;
    sound(world.storage.sweep().await);
    assert_eq!(world.store("Notes").await.store().await.slug, "notes-2");
}

pub(crate) async fn slugs_are_unique_within_a_workspace_only(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    world.store("Notes").await;
    assert_eq!(world.elsewhere().await.store("Notes").await.store().await.slug, "notes");
}

pub(crate) async fn an_update_changes_what_it_names_and_moves_updated_at(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let before = store.store().await;
    world.clock.advance(70);
    let described = Command::UpdateStore {
        name: None,
        description: Some(Description::parse("now described").expect("legal")),
        metadata: metadata(&[("a", Some("1")), ("b", Some("2"))]),
    };
    let answered = store_of(store.apply(described).await);
    assert_eq!(answered, store.store().await);
    assert_eq!((&answered.name, answered.description.as_str()), (&before.name, "now described"));
    assert_eq!((answered.updated_at, answered.created_at), (world.now(), before.created_at));
    let patch = metadata(&[("a", None), ("c", Some("3"))]);
    store.apply(Command::UpdateStore { name: Some(name("Next")), description: None, metadata: patch }).await;
    let last = store.store().await;
    let pairs: Vec<_> = last.metadata.pairs().iter().map(|(key, value)| (&**key, &**value)).collect();
    assert_eq!((last.name.as_str(), pairs), ("Next", vec![("b", "2"), ("c", "3")]));
    assert!(last.updated_at > answered.updated_at, "also while the clock stands still");
}

pub(crate) async fn an_update_that_changes_nothing_keeps_updated_at(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let before = store.store().await;
    world.clock.advance(70);
    let nothing = Command::UpdateStore { name: None, description: None, metadata: metadata(&[("x", None)]) };
    for command in [rename_store("Notes"), nothing] {
        assert_eq!(store_of(store.apply(command).await), before);
        assert_eq!(store.store().await, before);
    }
}

pub(crate) async fn metadata_out_of_bounds_is_refused_and_changes_nothing(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let before = store.store().await;
    let keys: Vec<String> = (0..17).map(|n| n.to_string()).collect();
    let pairs: Vec<_> = keys.iter().map(|key| (key.as_str(), Some("v"))).collect();
    let update =
        Command::UpdateStore { name: Some(name("Other")), description: None, metadata: metadata(&pairs) };
    assert!(matches!(store.refused(update).await, Refusal::Invalid { field, .. } if field == "metadata"));
    assert_eq!(store.store().await, before);
    let crowded = NewStore { metadata: metadata(&pairs), ..new_store("Crowded") };
    let refusal = world.try_store(crowded).await.expect_err("17 pairs");
    assert!(matches!(refusal, Refusal::Invalid { field, .. } if field == "metadata"));
    assert_eq!(world.stores(StoreFilter::default(), None, 10).await.items.len(), 1);
}

pub(crate) async fn memory_writes_move_changed_at_and_counters_but_not_updated_at(
    factory: &dyn StoreFactory,
) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let before = store.store().await;
    world.clock.advance(70);
    let memory = store.create("/a.md", "four").await;
    let after = store.store().await;
    assert_eq!((after.updated_at, after.changed_at), (before.updated_at, memory.created_at));
    assert_eq!(after.counters, Counters { sequence: 1, floor: 0, memories: 1, bytes: 4, versions: 1 });
    store.write(edit(memory.id).content("fourteen bytes")).await;
    store.create("/b.md", "é").await;
    store.apply(delete(memory.id)).await;
    assert_eq!(
        store.store().await.counters,
        Counters { sequence: 4, floor: 0, memories: 1, bytes: 2, versions: 4 }
    );
}

pub(crate) async fn archiving_stamps_once_and_for_good(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    world.clock.advance(70);
    let archived = store_of(store.apply(Command::ArchiveStore).await);
    assert_eq!((archived.archived_at, archived.updated_at), (Some(world.now()), world.now()));
    world.clock.advance(70);
    assert_eq!(store_of(store.apply(Command::ArchiveStore).await), archived);
    assert_eq!(store.store().await, archived);
}

pub(crate) async fn an_archived_store_is_read_but_not_written(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let memory = store.create("/a.md", "one").await;
    store.write(edit(memory.id).content("two")).await;
    store.apply(Command::ArchiveStore).await;
    let before = store.store().await;
    let refused = [
        rename_store("Other"),
        create("/b.md", "x"),
        edit(memory.id).content("three").into(),
        edit(memory.id).into(),
        delete(memory.id),
        restore(memory.version),
    ];
    for command in refused {
        assert_eq!(store.refused(command).await, Refusal::StoreArchived(store.id));
    }
    assert_eq!(store.store().await, before);
    assert_eq!((store.text(memory.id).await.as_str(), store.history().await.len()), ("two", 2));
}

pub(crate) async fn an_archived_store_takes_redactions_deletions_and_its_own(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let memory = store.create("/a.md", "one").await;
    store.write(edit(memory.id).content("two")).await;
    store.apply(Command::ArchiveStore).await;
    assert!(store.redact(memory.version, RedactedPath::Scrub).await.redaction.is_some());
    let (expected, on_archived) = (Expected::Anything, OnArchived::Allow);
    store.apply(Command::DeleteMemory { memory: memory.id.into(), expected, on_archived }).await;
    let last = store.history().await.pop().expect("a version");
    assert_eq!((last.version.operation, store.store().await.counters.memories), (Operation::Deleted, 0));
    store.apply(Command::DeleteStore).await;
    assert_eq!(store.find_store().await, None);
}

pub(crate) async fn a_deleted_store_is_gone_from_every_read_and_write_at_once(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let other = world.store("Other").await;
    let memory = store.create("/a.md", "one").await;
    store.write(edit(memory.id).content("two")).await;
    assert_eq!(store.apply(Command::DeleteStore).await, Outcome::StoreDeleted(store.id));
    is_nowhere(&store, memory.id, memory.version).await;
    let filter = StoreFilter { include_archived: true, ..StoreFilter::default() };
    assert_eq!(ids(&world.walk_stores(filter, 10).await), [other.id]);
    assert_eq!(sound(world.storage.store_count().await), 1);
    assert_eq!(sound(world.storage.sweep().await).stores, 1, "nothing of it is left");
    assert_eq!(sound(world.storage.sweep().await).stores, 0);
    is_nowhere(&store, memory.id, memory.version).await;
    assert_eq!(other.store().await.counters, Counters::default());
}

/// That no method knows the store or what is in it.
pub(crate) async fn is_nowhere(
    store: &Handle,
    memory: stele_core::id::MemoryId,
    version: stele_core::id::VersionId,
) {
    let (storage, workspace) = (&store.world.storage, store.world.workspace);
    assert_eq!(store.find_store().await, None);
    for reference in [MemoryRef::Id(memory), MemoryRef::Path(path("/a.md"))] {
        assert_eq!(store.get(reference, stele_core::list::Detail::Full).await, Lookup::NoStore);
    }
    assert_eq!(sound(storage.memory_list(workspace, store.id, everything()).await), None);
    assert_eq!(store.find_version(version, true).await, Lookup::NoStore);
    let query = VersionQuery { filter: VersionFilter::default(), full: false, before: None, limit: 10 };
    assert_eq!(sound(storage.version_list(workspace, store.id, query).await), None);
    let commands = [
        rename_store("Other"),
        Command::ArchiveStore,
        Command::DeleteStore,
        create("/b.md", "x"),
        edit(memory).content("x").into(),
        delete(memory),
        restore(version),
        redact(version, RedactedPath::Keep),
    ];
    for command in commands {
        assert_eq!(store.refused(command).await, Refusal::StoreNotFound(store.id));
    }
}

pub(crate) async fn an_unknown_store_is_nowhere(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    world.store("Notes").await.create("/a.md", "one").await;
    is_nowhere(&world.handle(unknown_store()), unknown_memory(), unknown_version()).await;
}

pub(crate) async fn stores_are_listed_newest_first(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let mut made = Vec::new();
    for n in 0..7 {
        // Two of each time, so that the id decides between them.
        world.clock.advance(if n % 2 == 0 { 1_000 } else { 0 });
        made.push(world.store(&format!("store {n}")).await.store().await);
    }
    made.sort_by_key(|store| std::cmp::Reverse((store.created_at, store.id)));
    for limit in [1, 2, 3, 6, 7, 8] {
        assert_eq!(world.walk_stores(StoreFilter::default(), limit).await, made, "pages of {limit}");
    }
}

pub(crate) async fn the_last_page_of_stores_says_so(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let empty = world.stores(StoreFilter::default(), None, 5).await;
    assert_eq!((empty.items.len(), empty.more), (0, false));
    for n in 0..4 {
        world.store(&format!("store {n}")).await;
    }
    for (limit, more) in [(3, true), (4, false), (5, false)] {
        assert_eq!(world.stores(StoreFilter::default(), None, limit).await.more, more, "limit {limit}");
    }
}

pub(crate) async fn a_walk_of_stores_during_writes_shows_the_untouched_once(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let mut stores = Vec::new();
    for n in 0..12 {
        world.clock.advance(1_000);
        stores.push(world.store(&format!("store {n}")).await);
    }
    let mut seen = Vec::new();
    let mut after = None;
    for n in 0.. {
        let page = world.stores(StoreFilter::default(), after, 2).await;
        seen.extend(ids(&page.items));
        after = page.items.last().map(position);
        // The store that the walk stands at, and one that is still to come, go; a new one arrives on top.
        if n == 1 {
            stores[8].apply(Command::DeleteStore).await;
            stores[3].apply(Command::ArchiveStore).await;
            sound(world.storage.sweep().await);
            world.clock.advance(1_000);
            world.store("late").await;
        }
        if !page.more {
            break;
        }
    }
    let untouched = [11, 10, 9, 8, 7, 6, 5, 4, 2, 1, 0].map(|n| stores[n].id);
    assert_eq!(seen, untouched);
}

pub(crate) async fn archived_stores_are_listed_when_asked_for(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let mut stores = Vec::new();
    for n in 0..6 {
        world.clock.advance(1_000);
        stores.push(world.store(&format!("store {n}")).await);
    }
    for n in [1, 2, 5] {
        stores[n].apply(Command::ArchiveStore).await;
    }
    let all = StoreFilter { include_archived: true, ..StoreFilter::default() };
    for limit in [1, 2, 10] {
        let live = world.walk_stores(StoreFilter::default(), limit).await;
        assert_eq!(ids(&live), [4, 3, 0].map(|n| stores[n].id));
        assert_eq!(world.walk_stores(all.clone(), limit).await.len(), 6);
    }
}

pub(crate) async fn filters_of_stores_by_status_origin_and_agent_combine(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let agents = [1, 2].map(|n| AgentId::mint(world.now(), n));
    let mut stores = Vec::new();
    for agent in [None, Some(agents[0]), Some(agents[0]), Some(agents[1])] {
        world.clock.advance(1_000);
        let made = world.try_store(NewStore { agent, ..new_store("Notes") }).await.expect("not refused");
        stores.push(made.id);
    }
    world.handle(stores[1]).apply(Command::ArchiveStore).await;
    let all = StoreFilter { include_archived: true, ..StoreFilter::default() };
    let of = |agent| StoreFilter { agent: Some(agent), ..all.clone() };
    let status = |status| StoreFilter { status: Some(status), ..StoreFilter::default() };
    let cases: [(StoreFilter, &[usize]); 9] = [
        (status(Status::Active), &[3, 2, 0]),
        (status(Status::Archived), &[1]),
        (StoreFilter { include_archived: true, ..status(Status::Active) }, &[3, 2, 0]),
        (of(agents[0]), &[2, 1]),
        (StoreFilter { include_archived: false, ..of(agents[0]) }, &[2]),
        (StoreFilter { agent: Some(agents[0]), ..status(Status::Archived) }, &[1]),
        (of(AgentId::mint(world.now(), 3)), &[]),
        (StoreFilter { origin: Some(Origin::Curated), ..all.clone() }, &[3, 2, 1, 0]),
        (StoreFilter { origin: Some(Origin::Reflection), ..all.clone() }, &[]),
    ];
    for (filter, expected) in cases {
        let expected: Vec<_> = expected.iter().map(|n| stores[*n]).collect();
        for limit in [1, 2, 10] {
            assert_eq!(ids(&world.walk_stores(filter.clone(), limit).await), expected, "{filter:?}");
        }
    }
    let elsewhere = world.elsewhere().await;
    assert_eq!(elsewhere.walk_stores(of(agents[0]), 10).await, []);
}

pub(crate) async fn bounds_of_creation_times_are_inclusive(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let mut times = Vec::new();
    for n in 0..5 {
        world.clock.advance(1_000);
        times.push(world.store(&format!("store {n}")).await.store().await.created_at);
    }
    let off = |time: Timestamp, by| Timestamp::from_micros(time.as_micros() + by);
    let cases = [
        (Some(times[1]), Some(times[3]), 3),
        (Some(off(times[1], 1)), Some(off(times[3], -1)), 1),
        (Some(times[4]), None, 1),
        (None, Some(times[0]), 1),
        (Some(off(times[4], 1)), None, 0),
        (Some(times[3]), Some(times[1]), 0),
    ];
    for (from, to, count) in cases {
        let filter = StoreFilter { created: Created { from, to }, ..StoreFilter::default() };
        for limit in [1, 10] {
            assert_eq!(world.walk_stores(filter.clone(), limit).await.len(), count, "{from:?} to {to:?}");
        }
    }
}

pub(crate) async fn the_cap_on_stores_counts_archived_ones_of_the_workspace(factory: &dyn StoreFactory) {
    let limits = Limits { stores_per_workspace: Some(3), ..Limits::default() };
    let world = World::with_limits(factory, limits).await;
    let first = world.store("a").await;
    world.store("b").await.apply(Command::ArchiveStore).await;
    world.store("c").await;
    let full = Err(Refusal::StoreLimit { limit: 3 });
    assert_eq!(world.try_store(new_store("d")).await, full);
    world.elsewhere().await.store("d").await;
    first.apply(Command::DeleteStore).await;
    world.store("d").await;
    assert_eq!(world.try_store(new_store("e")).await, full);
}

pub(crate) async fn stores_are_counted_over_all_workspaces(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    assert_eq!(sound(world.storage.store_count().await), 0);
    world.store("a").await;
    world.store("b").await.apply(Command::ArchiveStore).await;
    world.elsewhere().await.store("c").await;
    assert_eq!(sound(world.storage.store_count().await), 3);
}
