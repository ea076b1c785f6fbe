//! Versions: what writes them, and reading them. spec/anthropic.md 4.1 to 4.3, spec/recursion.md 7.1 and 7.2.

use stele_core::id::{MemoryId, ServiceAccountId, SessionId, UserId};
use stele_core::list::{Created, VersionFilter, VersionQuery};
use stele_core::model::{Actor, Operation, Recorded, VersionText};
use stele_core::time::Timestamp;

use crate::StoreFactory;
use crate::world::*;

fn sequences(versions: &[VersionText]) -> Vec<u64> {
    versions.iter().map(|text| text.version.sequence).collect()
}

fn of_memory(memory: MemoryId) -> VersionFilter {
    VersionFilter { memory: Some(memory), ..VersionFilter::default() }
}

/// A store with 7 versions of two memories: a1 b1 a2 a3(renamed) b2 a4(deleted) a5(recreated).
async fn with_history(world: &World) -> (Handle, MemoryId, MemoryId) {
    let store = world.store("Notes").await;
    let step = || world.clock.advance(1_000);
    step();
    let a = store.create("/a", "a one").await;
    step();
    let b = store.by(actor(1)).create("/b", "b one").await;
    step();
    store.by(actor(2)).write(edit(a.id).content("a two")).await;
    step();
    store.write(edit(a.id).path("/a2")).await;
    step();
    store.by(actor(1)).write(edit(b.id).summary("only the summary")).await;
    step();
    store.by(actor(2)).apply(delete(a.id)).await;
    step();
    store.write(restore(a.version)).await;
    (store, a.id, b.id)
}

pub(crate) async fn each_change_writes_one_version_that_says_what_who_and_when(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let (store, a, b) = with_history(&world).await;
    let start = store.store().await.created_at.as_micros();
    type Row<'a> = (MemoryId, Operation, u64, &'a str, Option<&'a str>, Option<&'a str>);
    let expected: [Row<'_>; 7] = [
        (a, Operation::Created, 0, "/a", Some("about it"), Some("a one")),
        (b, Operation::Created, 1, "/b", Some("about it"), Some("b one")),
        (a, Operation::Updated, 2, "/a", Some("about it"), Some("a two")),
        (a, Operation::Renamed, 0, "/a2", Some("about it"), Some("a two")),
        (b, Operation::Updated, 1, "/b", Some("only the summary"), Some("b one")),
        (a, Operation::Deleted, 2, "/a2", None, None),
        (a, Operation::Recreated, 0, "/a", Some("about it"), Some("a one")),
    ];
    let history = store.history().await;
    assert_eq!(history.len(), expected.len());
    for (n, (text, (memory, operation, author, at, about, content))) in
        history.iter().zip(expected).enumerate()
    {
        let VersionText { version, summary: stored, reason, content: bytes } = text;
        assert_eq!((version.store, version.memory, version.sequence), (store.id, memory, n as u64 + 1));
        assert_eq!((version.operation, version.author, reason), (operation, actor(author), &None));
        assert_eq!(version.created_at, Timestamp::from_micros(start + 1_000 * (n as i64 + 1)));
        assert_eq!((version.path.as_ref(), version.redaction), (Some(&path(at)), None));
        let recorded = content.map(|text| Recorded {
            content_sha256: stele_core::hash::Sha256::of(text.as_bytes()),
            size_bytes: text.len() as u64,
        });
        assert_eq!((&version.recorded, stored), (&recorded, &about.map(summary)));
        assert_eq!(bytes.as_deref(), content.map(str::as_bytes));
    }
}

pub(crate) async fn a_version_reads_by_id_as_it_is_listed(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let (store, _, _) = with_history(&world).await;
    for listed in store.history().await {
        assert_eq!(store.version(listed.version.id).await, listed);
        let basic = VersionText { content: None, ..listed.clone() };
        assert_eq!(store.find_version(listed.version.id, false).await, Lookup::Found(basic));
    }
    let query = VersionQuery { filter: VersionFilter::default(), full: false, before: None, limit: 100 };
    let mut basic = store.version_page(query).await.items;
    basic.reverse();
    let history = store.history().await;
    assert_eq!(basic, history.into_iter().map(|v| VersionText { content: None, ..v }).collect::<Vec<_>>());
}

pub(crate) async fn unknown_versions_and_those_of_other_stores_are_missing(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let (store, a, _) = with_history(&world).await;
    let other = world.store("Other").await;
    let foreign = other.create("/x", "one").await;
    for id in [unknown_version(), foreign.version] {
        for full in [true, false] {
            assert_eq!(store.find_version(id, full).await, Lookup::Missing);
        }
    }
    for memory in [unknown_memory(), foreign.id] {
        assert_eq!(store.walk_versions(of_memory(memory), 10).await, []);
    }
    assert_eq!(other.walk_versions(of_memory(a), 10).await, []);
}

pub(crate) async fn versions_are_listed_newest_first_in_pages(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let (store, a, _) = with_history(&world).await;
    for limit in 1..9 {
        let all = store.walk_versions(VersionFilter::default(), limit).await;
        assert_eq!(sequences(&all), [7, 6, 5, 4, 3, 2, 1], "pages of {limit}");
        assert_eq!(sequences(&store.walk_versions(of_memory(a), limit).await), [7, 6, 4, 3, 1]);
    }
    let page = |before, limit| VersionQuery { filter: VersionFilter::default(), full: false, before, limit };
    for (before, limit, expected, more) in [
        (Some(4), 2, vec![3, 2], true),
        (Some(4), 3, vec![3, 2, 1], false),
        (Some(1), 3, vec![], false),
        (Some(u64::MAX), 1, vec![7], true),
        (None, 7, vec![7, 6, 5, 4, 3, 2, 1], false),
    ] {
        let seen = store.version_page(page(before, limit)).await;
        assert_eq!((sequences(&seen.items), seen.more), (expected, more), "before {before:?}");
    }
}

pub(crate) async fn filters_by_memory_operation_author_and_time_combine(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let (store, a, b) = with_history(&world).await;
    let history = store.history().await;
    let at = |sequence: usize| Some(history[sequence - 1].version.created_at);
    let none = VersionFilter::default;
    let authors = |n: &[u64]| VersionFilter { authors: n.iter().map(|n| actor(*n)).collect(), ..none() };
    let operations = |all: &[Operation]| VersionFilter { operations: all.to_vec(), ..none() };
    let cases = [
        (of_memory(b), vec![5, 2]),
        (operations(&[Operation::Created]), vec![2, 1]),
        (operations(&[Operation::Updated, Operation::Renamed, Operation::Recreated]), vec![7, 5, 4, 3]),
        (operations(&Operation::ALL), vec![7, 6, 5, 4, 3, 2, 1]),
        (authors(&[1]), vec![5, 2]),
        (authors(&[1, 1]), vec![5, 2]),
        (authors(&[1, 2]), vec![]),
        (authors(&[99]), vec![]),
        (VersionFilter { created: Created { from: at(3), to: at(5) }, ..none() }, vec![5, 4, 3]),
        (VersionFilter { created: Created { from: at(7), to: None }, ..none() }, vec![7]),
        (VersionFilter { created: Created { from: None, to: at(1) }, ..none() }, vec![1]),
        (VersionFilter { created: Created { from: at(5), to: at(3) }, ..none() }, vec![]),
        (VersionFilter { memory: Some(a), ..authors(&[2]) }, vec![6, 3]),
        (
            VersionFilter { memory: Some(a), ..operations(&[Operation::Deleted, Operation::Created]) },
            vec![6, 1],
        ),
        (
            VersionFilter {
                memory: Some(a),
                operations: vec![Operation::Updated, Operation::Deleted],
                authors: vec![actor(2)],
                created: Created { from: at(4), to: None },
            },
            vec![6],
        ),
    ];
    for (filter, expected) in cases {
        for limit in [1, 2, 10] {
            let seen = sequences(&store.walk_versions(filter.clone(), limit).await);
            assert_eq!(seen, expected, "{filter:?} in pages of {limit}");
        }
    }
}

pub(crate) async fn every_kind_of_author_is_recorded_and_found(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let at = Timestamp::from_micros(5);
    // One number for all, so that only the kind tells them apart.
    let authors = [
        Actor::Session(SessionId::mint(at, 1)),
        Actor::User(UserId::mint(at, 1)),
        Actor::ServiceAccount(ServiceAccountId::mint(at, 1)),
        Actor::ApiKey(stele_core::id::KeyId::mint(at, 1)),
    ];
    for (n, author) in authors.into_iter().enumerate() {
        store.by(author).create(&format!("/{n}"), "").await;
        let filter = VersionFilter { authors: vec![author], ..VersionFilter::default() };
        let found = store.walk_versions(filter, 10).await;
        assert_eq!((sequences(&found), found[0].version.author), (vec![n as u64 + 1], author));
    }
}

pub(crate) async fn history_outlives_its_memory(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let memory = store.create("/a", "one").await;
    let copy = store.write(edit(memory.id).path("/b")).await.memory;
    store.apply(delete(memory.id)).await;
    store.create("/b", "another").await;
    let history = store.history_of(memory.id).await;
    assert_eq!(sequences(&history), [1, 2, 3]);
    for id in [memory.version, copy.version] {
        assert_eq!(store.version(id).await.content.as_deref(), Some(&b"one"[..]));
    }
    let deletion = &history[2];
    assert_eq!((deletion.version.path.as_ref(), &deletion.content), (Some(&path("/b")), &None));
}

pub(crate) async fn versions_written_in_one_burst_keep_their_order(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let memory = store.create("/a", "0").await;
    for n in 1..=60 {
        store.write(edit(memory.id).content(&n.to_string())).await;
    }
    let walked = store.walk_versions(of_memory(memory.id), 7).await;
    let texts: Vec<_> = walked.iter().map(|v| v.content.clone().expect("a text")).collect();
    assert_eq!(texts, (0..=60).rev().map(|n| n.to_string()).collect::<Vec<_>>());
    for pair in walked.windows(2) {
        let [new, old] = [&pair[0].version, &pair[1].version];
        assert!(new.created_at > old.created_at && new.id > old.id, "the clock stands, history does not");
    }
}

pub(crate) async fn a_walk_of_versions_during_writes_shows_the_old_ones_once(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let (store, a, _) = with_history(&world).await;
    let mut seen = Vec::new();
    let mut before = None;
    loop {
        let query = VersionQuery { filter: VersionFilter::default(), full: true, before, limit: 2 };
        let page = store.version_page(query).await;
        seen.extend(sequences(&page.items));
        before = seen.last().copied();
        store.write(edit(a).content(&format!("after {before:?}"))).await;
        if !page.more {
            break;
        }
    }
    assert_eq!(seen, [7, 6, 5, 4, 3, 2, 1]);
}

pub(crate) async fn a_refusal_writes_no_version(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let (store, a, b) = with_history(&world).await;
    let (before, state) = (store.history().await, store.store().await);
    store.refused(create("/a/below", "x")).await;
    store.refused(edit(a).path("/b")).await;
    store.refused(edit(b).content("x").expecting("stale")).await;
    store.refused(delete(unknown_memory())).await;
    store.refused(restore(unknown_version())).await;
    assert_eq!((store.history().await, store.store().await), (before, state));
}
