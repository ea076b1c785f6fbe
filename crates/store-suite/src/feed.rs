//! The change feed, the tree as of one moment, and many texts at once. DESIGN 7.

use std::time::Duration;

use stele_core::command::{Command, RedactedPath};
use stele_core::feed::{Changes, Told, Wanted};
use stele_core::limits::Limits;
use stele_core::list::MemoryEntry;
use stele_core::model::{Mark, MarkKind, Memory, VersionText};
use stele_core::storage::{At, InStore, MemoryRef};

use crate::StoreFactory;
use crate::world::*;

impl Handle {
    /// What is known of the store's changes after a sequence.
    pub(crate) async fn find_changes(&self, after: u64, limit: usize) -> Option<Changes> {
        sound(self.world.storage.changes(self.world.workspace, self.id, after, limit).await)
    }

    pub(crate) async fn changes(&self, after: u64, limit: usize) -> Changes {
        self.find_changes(after, limit).await.expect("the store is known")
    }

    /// All changes after a sequence, in pages of `limit`, which must follow each other without gaps.
    pub(crate) async fn follow(&self, mut after: u64, limit: usize) -> Vec<Told> {
        let mut all = Vec::new();
        loop {
            let page = self.changes(after, limit).await;
            assert!(page.told.len() <= limit, "no page is longer than asked for");
            for told in &page.told {
                assert_eq!(told.sequence(), after + 1, "without gaps");
                after += 1;
            }
            let end = page.told.is_empty();
            all.extend(page.told);
            if end {
                assert_eq!(after, page.sequence, "up to the last");
                return all;
            }
        }
    }

    async fn snapshot(&self) -> InStore<Vec<Memory>> {
        sound(self.world.storage.snapshot(self.world.workspace, self.id).await)
    }

    async fn contents(&self, wanted: &[Wanted], bytes: u64) -> At<Vec<Option<VersionText>>> {
        let storage = &self.world.storage;
        let found = sound(storage.contents(self.world.workspace, self.id, wanted.to_vec(), bytes).await);
        found.expect("the store is there")
    }
}

fn marks(told: &[Told]) -> Vec<Mark> {
    told.iter()
        .filter_map(|told| match told {
            Told::Mark(mark) => Some(*mark),
            Told::Version { .. } => None,
        })
        .collect()
}

/// The paths that a change tells: the one now, and the one before.
fn paths(told: &Told) -> (Option<&str>, Option<&str>) {
    match told {
        Told::Version { version, previous_path } => {
            (version.path.as_ref().map(|p| p.as_str()), previous_path.as_ref().map(|p| p.as_str()))
        }
        Told::Mark(_) => (None, None),
    }
}

pub(crate) async fn changes_are_told_oldest_first_and_once_in_pages_of_any_size(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let other = world.store("Other").await;
    let a = store.create("/a", "one").await;
    store.write(edit(a.id).content("two")).await;
    other.create("/a", "elsewhere").await;
    store.redact(a.version, RedactedPath::Scrub).await;
    let b = store.create("/b", "one").await;
    store.apply(delete(b.id)).await;
    store.apply(Command::ArchiveStore).await;
    for limit in [1, 2, 3, 6, 100] {
        let all = store.follow(0, limit).await;
        assert_eq!(all.len(), 6);
        for after in 0..=6 {
            assert_eq!(store.follow(after, limit).await, all[usize::try_from(after).expect("small")..]);
        }
    }
    let history = store.history().await;
    let told: Vec<_> = store.follow(0, 100).await;
    let versions = told.iter().filter_map(|told| match told {
        Told::Version { version, .. } => Some((**version).clone()),
        Told::Mark(_) => None,
    });
    assert!(versions.eq(history.into_iter().map(|text| text.version)), "versions as history has them");
    let beyond = store.changes(7, 10).await;
    assert_eq!((beyond.sequence, beyond.told), (6, vec![]));
    assert_eq!(store.changes(u64::MAX, 10).await.told, []);
}

pub(crate) async fn redaction_and_archiving_are_told_without_a_version(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let a = store.create("/a", "one").await;
    store.write(edit(a.id).content("two")).await;
    world.clock.advance(50);
    store.by(actor(7)).redact(a.version, RedactedPath::Keep).await;
    store.redact(a.version, RedactedPath::Keep).await;
    store.redact(a.version, RedactedPath::Scrub).await;
    let archived = store.by(actor(8));
    archived.apply(Command::ArchiveStore).await;
    archived.apply(Command::ArchiveStore).await;
    let marks = marks(&store.follow(0, 100).await);
    let redacted = MarkKind::Redacted { memory: a.id, version: a.version };
    let expected = [(3, redacted, actor(7)), (4, redacted, actor(0)), (5, MarkKind::StoreArchived, actor(8))];
    assert_eq!(
        marks.iter().map(|mark| (mark.sequence, mark.kind, mark.author)).collect::<Vec<_>>(),
        expected
    );
    assert!(marks.windows(2).all(|pair| pair[0].created_at < pair[1].created_at));
    let now = store.store().await;
    assert_eq!((now.counters.sequence, now.archived_at), (5, Some(marks[2].created_at)));
    assert_eq!(now.counters.versions, 2, "none of them is a version");
}

pub(crate) async fn a_move_tells_where_the_memory_was(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let a = store.create("/a", "one").await;
    store.write(edit(a.id).path("/b").content("two")).await;
    store.write(edit(a.id).content("three")).await;
    store.write(edit(a.id).path("/c")).await;
    store.apply(delete(a.id)).await;
    store.write(restore(a.version)).await;
    let told = store.follow(0, 100).await;
    let seen: Vec<_> = told.iter().map(paths).collect();
    let expected = [
        (Some("/a"), None),
        (Some("/b"), Some("/a")),
        (Some("/b"), None),
        (Some("/c"), Some("/b")),
        (Some("/c"), None),
        (Some("/a"), None),
    ];
    assert_eq!(seen, expected);
}

pub(crate) async fn a_redaction_takes_paths_and_hashes_out_of_what_was_told(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let a = store.create("/secret", "one").await;
    let b = store.write(edit(a.id).path("/secret2")).await.memory;
    store.write(edit(a.id).path("/clean").content("two")).await;
    for version in [a.version, b.version] {
        store.redact(version, RedactedPath::Scrub).await;
    }
    let told = store.follow(0, 100).await;
    let seen: Vec<_> = told.iter().map(paths).collect();
    assert_eq!(seen, [(None, None), (None, None), (Some("/clean"), None), (None, None), (None, None)]);
    let recorded = told.iter().filter(|told| match told {
        Told::Version { version, .. } => version.recorded.is_some(),
        Told::Mark(_) => false,
    });
    assert_eq!(recorded.count(), 1);
}

pub(crate) async fn a_deletion_is_told_to_who_followed_and_its_mark_outlives_the_store(
    factory: &dyn StoreFactory,
) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let a = store.create("/a", "one").await;
    store.write(edit(a.id).content("two")).await;
    store.redact(a.version, RedactedPath::Scrub).await;
    store.by(actor(9)).apply(Command::DeleteStore).await;
    for purged in [false, true] {
        let changes = store.changes(3, 10).await;
        assert_eq!((&changes.store, changes.sequence, changes.told.len()), (&None, 4, 1), "{purged}");
        let mark = marks(&changes.told)[0];
        assert_eq!((mark.sequence, mark.kind, mark.author), (4, MarkKind::StoreDeleted, actor(9)));
        assert_eq!(marks(&store.changes(0, 10).await.told).last(), Some(&mark), "however far behind");
        let known = store.changes(4, 10).await;
        assert_eq!((known.store, known.sequence, known.told), (None, 4, vec![]));
        assert_eq!(store.find_store().await, None);
        assert_eq!(store.snapshot().await, None);
        assert_eq!(store.seen_from(&world.elsewhere().await).find_changes(0, 10).await, None);
        sound(world.storage.purge().await);
    }
    world.clock.advance_days(40);
    sound(world.storage.sweep().await);
    assert_eq!(store.find_changes(3, 10).await, None, "past its retention");
}

pub(crate) async fn retention_raises_the_floor_to_what_it_removed(factory: &dyn StoreFactory) {
    let limits = Limits { versions_kept: 1, ..Limits::default() };
    let world = World::with_limits(factory, limits).await;
    let store = world.store("Notes").await;
    let kept = store.create("/kept", "one").await;
    let a = store.create("/a", "1").await;
    for n in 2..=4 {
        store.write(edit(a.id).content(&n.to_string())).await;
    }
    assert_eq!(store.changes(0, 10).await.floor, 0);
    world.clock.advance_days(40);
    sound(world.storage.sweep().await);
    let changes = store.changes(4, 10).await;
    assert_eq!((changes.floor, changes.sequence), (4, 5), "sequences 2 to 4 are gone, the head 1 is kept");
    assert_eq!(store.follow(4, 10).await.len(), 1);
    store.write(edit(kept.id).content("two")).await;
    store.redact(kept.version, RedactedPath::Scrub).await;
    assert_eq!(store.follow(4, 10).await.len(), 3);
    world.clock.advance_days(40);
    sound(world.storage.sweep().await);
    let changes = store.changes(7, 10).await;
    assert_eq!((changes.floor, changes.sequence), (7, 7), "the mark went last");
    store.write(edit(kept.id).content("three")).await;
    assert_eq!(store.follow(7, 10).await.len(), 1);
}

pub(crate) async fn each_answer_says_the_sequence_that_it_reflects(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let (storage, workspace) = (world.storage.clone(), world.workspace);
    assert_eq!(store.snapshot().await, Some(At { sequence: 0, value: vec![] }));
    let changed = store.changed(create("/a", "one"), false).await.expect("not refused");
    assert_eq!(changed.sequence, 1);
    let a = store.list(everything()).await.items.pop();
    let Some(MemoryEntry::Memory { memory: a, .. }) = a else { panic!("a memory: {a:?}") };
    let again = store.changed(edit(a.id).content("one"), false).await.expect("changes nothing");
    assert_eq!(again.sequence, 1);
    let second = store.changed(edit(a.id).content("two"), false).await.expect("not refused");
    assert_eq!(second.sequence, 2);
    assert_eq!(store.changed(rename_store("Other"), false).await.expect("not refused").sequence, 2);
    let redacted = store.changed(redact(a.version, RedactedPath::Keep), false).await.expect("not refused");
    assert_eq!(redacted.sequence, 3);
    let read =
        storage.memory_get(workspace, store.id, MemoryRef::Id(a.id), stele_core::list::Detail::Full, None);
    assert_eq!(sound(read.await).expect("the store").sequence, 3);
    let missing = storage.memory_get(
        workspace,
        store.id,
        MemoryRef::Id(unknown_memory()),
        stele_core::list::Detail::Basic,
        None,
    );
    assert_eq!(sound(missing.await), Some(At { sequence: 3, value: None }));
    let version = storage.version_by_id(workspace, store.id, a.version, false);
    assert_eq!(sound(version.await).expect("the store").sequence, 3);
    assert_eq!(sound(storage.memory_list(workspace, store.id, everything()).await).expect("it").sequence, 3);
    let refused = storage
        .change(stele_core::storage::Change {
            workspace,
            store: store.id,
            actor: actor(0),
            command: delete(unknown_memory()),
            with_content: false,
        })
        .await;
    let sequence = match refused {
        Err(stele_core::storage::Error::Refused { sequence, .. }) => sequence,
        other => panic!("refused: {other:?}"),
    };
    assert_eq!(sequence, Some(3));
    assert_eq!(store.changed(Command::DeleteStore, false).await.expect("not refused").sequence, 4);
}

pub(crate) async fn a_snapshot_is_the_tree_of_one_moment(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let writer = store.clone();
    let writes = tokio::spawn(async move {
        for n in 0..60 {
            writer.create(&format!("/{n}"), "text").await;
        }
    });
    // Each write adds one memory, so that their number is the sequence.
    while !writes.is_finished() {
        let At { sequence, value } = store.snapshot().await.expect("the store is there");
        assert_eq!(value.len() as u64, sequence);
        assert!(value.windows(2).all(|pair| pair[0].path < pair[1].path));
    }
    let At { sequence, value } = store.snapshot().await.expect("the store is there");
    let listed = store.list(everything()).await.items.into_iter().map(|entry| match entry {
        MemoryEntry::Memory { memory, .. } => memory,
        MemoryEntry::Directory { .. } => panic!("no directories asked for"),
    });
    assert_eq!((sequence, value), (60, listed.collect()));
}

pub(crate) async fn many_texts_come_in_order_and_unknown_ones_are_none(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let (store, other) = (world.store("Notes").await, world.store("Other").await);
    let a = store.create("/a", "one").await;
    let b = store.create("/b", "bee").await;
    store.write(edit(a.id).content("two")).await;
    let foreign = other.create("/a", "elsewhere").await;
    let wanted = [
        Wanted::Memory(b.id),
        Wanted::Version(a.version),
        Wanted::Memory(unknown_memory()),
        Wanted::Memory(a.id),
        Wanted::Version(foreign.version),
        Wanted::Memory(foreign.id),
        Wanted::Memory(b.id),
    ];
    let texts = |found: Vec<Option<VersionText>>| {
        let text =
            |text: VersionText| String::from_utf8(text.content.expect("a text").to_vec()).expect("UTF-8");
        found.into_iter().map(|found| found.map(text)).collect::<Vec<_>>()
    };
    let At { sequence, value } = store.contents(&wanted, 1_000).await;
    let expected = [Some("bee"), Some("one"), None, Some("two"), None, None, Some("bee")];
    assert_eq!((sequence, texts(value)), (3, expected.map(|text| text.map(str::to_owned)).to_vec()));
    for (bytes, count) in [(0, 1), (3, 1), (4, 2), (6, 2), (7, 4), (9, 4), (10, 7)] {
        assert_eq!(store.contents(&wanted, bytes).await.value.len(), count, "{bytes} bytes");
    }
    store.redact(a.version, RedactedPath::Scrub).await;
    let redacted = store.contents(&[Wanted::Version(a.version)], 10).await.value.pop().flatten();
    assert_eq!(redacted.map(|text| (text.content, text.version.path)), Some((None, None)));
}

pub(crate) async fn what_is_committed_wakes_who_waits(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let other = world.store("Other").await;
    let mut watch = world.storage.watches().subscribe(*store.id.as_bytes());
    let a = store.create("/a", "one").await;
    let commands: [Command; 4] = [
        edit(a.id).content("two").into(),
        rename_store("New name"),
        redact(a.version, RedactedPath::Scrub),
        Command::DeleteStore,
    ];
    let soon = Duration::from_secs(30);
    tokio::time::timeout(soon, watch.changed()).await.expect("woken by the creation");
    for command in commands {
        other.create(&format!("/{}", unknown_memory()), "not waited for").await;
        store.apply(command.clone()).await;
        tokio::time::timeout(soon, watch.changed()).await.unwrap_or_else(|_| panic!("woken by {command:?}"));
    }
}

pub(crate) async fn a_reader_beside_writers_misses_and_repeats_nothing(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let (reader, mut watch) = (store.clone(), world.storage.watches().subscribe(*store.id.as_bytes()));
    let reads = tokio::spawn(async move {
        let mut told: Vec<Told> = Vec::new();
        while told.len() < 160 {
            let page = reader.changes(told.len() as u64, 7).await.told;
            if page.is_empty() {
                watch.changed().await;
            }
            told.extend(page);
        }
        told
    });
    let jobs = (0..8).map(|task| {
        let store = store.clone();
        async move {
            let memory = store.create(&format!("/{task}"), "0").await;
            for n in 1..19 {
                store.write(edit(memory.id).content(&n.to_string())).await;
            }
            store.redact(memory.version, RedactedPath::Scrub).await;
        }
    });
    at_once(jobs).await;
    let told = tokio::time::timeout(Duration::from_secs(60), reads).await.expect("all of it comes");
    let told = told.expect("the reader does not panic");
    assert!(told.iter().map(Told::sequence).eq(1..=160));
    assert_eq!(marks(&told).len(), 8);
}
