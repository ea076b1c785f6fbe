//! Logs of entries: numbered without a gap whoever writes. DESIGN 5 and 7.

use std::ops::RangeInclusive;

use bytes::Bytes;
use stele_core::list::{Created, Page};
use stele_core::records::{Entry, EntryQuery, Order, RecordId, RecordWrite};
use stele_core::storage::Swept;
use stele_core::time::Timestamp;

use crate::StoreFactory;
use crate::records::{fresh_id, heard};
use crate::world::*;

const KINDS: [&str; 3] = ["user.message", "agent.message", "session.status"];

/// Where the entry of that number stands in time: not in order, as clocks go.
fn time_of(world: &World, sequence: u64) -> Timestamp {
    Timestamp::from_micros(world.now().as_micros() + (sequence as i64 * 7) % 10)
}

impl World {
    fn entry(&self, sequence: u64) -> Entry {
        Entry {
            sequence,
            id: fresh_id(),
            at: time_of(self, sequence),
            kind: KINDS[sequence as usize % 3].to_owned(),
            body: Bytes::from(format!("body of {sequence}")),
        }
    }

    pub(crate) fn append(&self, log: RecordId, sequences: RangeInclusive<u64>) -> RecordWrite {
        let entries = sequences.map(|sequence| self.entry(sequence)).collect();
        RecordWrite::Append { workspace: self.workspace, log, entries }
    }

    fn drop_log(&self, log: RecordId) -> RecordWrite {
        RecordWrite::DropLog { workspace: self.workspace, log }
    }

    async fn appended(&self, log: RecordId, sequences: RangeInclusive<u64>) {
        let write = self.append(log, sequences);
        assert_eq!(self.commit(vec![write]).await, Ok(()), "it is written");
    }

    fn entry_query(&self, log: RecordId) -> EntryQuery {
        EntryQuery {
            workspace: self.workspace,
            log,
            kinds: Vec::new(),
            at: Created::default(),
            order: Order::OldestFirst,
            after: None,
            limit: 10_000,
        }
    }

    async fn entries(&self, query: &EntryQuery) -> Page<Entry> {
        sound(self.storage.entries(query.clone()).await)
    }

    /// The whole log.
    pub(crate) async fn log(&self, log: RecordId) -> Vec<Entry> {
        self.entries(&self.entry_query(log)).await.items
    }
}

fn sequences(entries: &[Entry]) -> Vec<u64> {
    entries.iter().map(|entry| entry.sequence).collect()
}

pub(crate) async fn a_log_reads_back_as_it_was_written(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let log = fresh_id();
    assert!(world.log(log).await.is_empty());
    let mut entries: Vec<Entry> = (1..=3).map(|n| world.entry(n)).collect();
    entries[1].body = Bytes::from(vec![0, 255, 128]);
    entries[2].body = Bytes::from(vec![7; 300_000]);
    entries[2].kind = "ä".repeat(64);
    let write = RecordWrite::Append { workspace: world.workspace, log, entries: entries.clone() };
    assert_eq!(world.commit(vec![write]).await, Ok(()));
    assert_eq!(world.log(log).await, entries);
}

pub(crate) async fn entries_go_on_where_the_log_ends_or_not_at_all(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let log = fresh_id();
    for first in [0, 2, 7] {
        assert_eq!(world.commit(vec![world.append(log, first..=first)]).await, Err(0), "{first}");
    }
    world.appended(log, 1..=3).await;
    for (first, last) in [(0, 0), (1, 1), (1, 4), (3, 3), (3, 5), (5, 5)] {
        assert_eq!(world.commit(vec![world.append(log, first..=last)]).await, Err(0), "{first} to {last}");
    }
    let holed = RecordWrite::Append {
        workspace: world.workspace,
        log,
        entries: vec![world.entry(4), world.entry(6)],
    };
    assert_eq!(world.commit(vec![holed]).await, Err(0));
    assert_eq!(world.commit(vec![world.append(log, 4..=4), world.append(log, 5..=6)]).await, Ok(()));
    let nothing = RecordWrite::Append { workspace: world.workspace, log, entries: Vec::new() };
    assert_eq!(world.commit(vec![nothing]).await, Ok(()));
    assert_eq!(sequences(&world.log(log).await), [1, 2, 3, 4, 5, 6]);
}

pub(crate) async fn a_log_is_gapless_whoever_appends(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let log = fresh_id();
    let jobs = (0..8).map(|_| {
        let world = world.clone();
        async move {
            let mut own = Vec::new();
            while own.len() < 10 {
                let last = EntryQuery { order: Order::NewestFirst, limit: 1, ..world.entry_query(log) };
                let next = world.entries(&last).await.items.first().map_or(1, |entry| entry.sequence + 1);
                let entry = world.entry(next);
                let entries = vec![entry.clone()];
                let write = RecordWrite::Append { workspace: world.workspace, log, entries };
                if world.commit(vec![write]).await.is_ok() {
                    own.push(entry);
                }
            }
            own
        }
    });
    let mut written: Vec<Entry> = at_once(jobs).await.into_iter().flatten().collect();
    written.sort_by_key(|entry| entry.sequence);
    assert_eq!(sequences(&written), (1..=80).collect::<Vec<_>>());
    assert_eq!(world.log(log).await, written, "each is the one that was answered for");
}

pub(crate) async fn entries_go_both_ways_and_narrow_by_kind_and_time(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let (log, other) = (fresh_id(), fresh_id());
    world.appended(log, 1..=30).await;
    world.appended(other, 1..=5).await;
    let all = world.log(log).await;
    let at = |n: i64| Some(Timestamp::from_micros(world.now().as_micros() + n));
    let spans = [(None, None), (at(3), None), (None, at(6)), (at(3), at(6)), (at(6), at(3))];
    let kinds: [&[&str]; 5] = [&[], &KINDS[..1], &[KINDS[2], KINDS[0]], &[KINDS[1], KINDS[1]], &["unknown"]];
    for (from, to) in spans {
        for kinds in kinds {
            for order in [Order::OldestFirst, Order::NewestFirst] {
                let mut expected: Vec<Entry> = all
                    .iter()
                    .filter(|e| from.is_none_or(|from| e.at >= from) && to.is_none_or(|to| e.at <= to))
                    .filter(|e| kinds.is_empty() || kinds.contains(&e.kind.as_str()))
                    .cloned()
                    .collect();
                if order == Order::NewestFirst {
                    expected.reverse();
                }
                let kinds = kinds.iter().map(|kind| (*kind).to_owned()).collect();
                let at = Created { from, to };
                let query = EntryQuery { kinds, at, order, ..world.entry_query(log) };
                assert_eq!(world.entries(&query).await.items, expected, "{query:?}");
            }
        }
    }
}

pub(crate) async fn a_walk_shows_each_entry_once(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let log = fresh_id();
    world.appended(log, 1..=20).await;
    for kinds in [Vec::new(), vec![KINDS[0].to_owned(), KINDS[1].to_owned()]] {
        for order in [Order::OldestFirst, Order::NewestFirst] {
            for limit in [1, 7, 100] {
                let mut query = EntryQuery { kinds: kinds.clone(), order, limit, ..world.entry_query(log) };
                let whole = world.entries(&EntryQuery { limit: 1_000, ..query.clone() }).await;
                assert!(!whole.more);
                let mut walked: Vec<Entry> = Vec::new();
                loop {
                    let page = world.entries(&query).await;
                    assert!(!page.more || page.items.len() == limit, "only full pages go on");
                    walked.extend(page.items);
                    if !page.more {
                        break;
                    }
                    query.after = walked.last().map(|entry| entry.sequence);
                }
                assert_eq!(walked, whole.items, "{query:?}");
            }
        }
    }
}

pub(crate) async fn a_foreign_log_is_as_good_as_unknown(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let elsewhere = world.elsewhere().await;
    let log = fresh_id();
    world.appended(log, 1..=2).await;
    assert!(elsewhere.log(log).await.is_empty());
    assert_eq!(elsewhere.commit(vec![elsewhere.append(log, 3..=3)]).await, Err(0));
    assert_eq!(elsewhere.commit(vec![elsewhere.drop_log(log)]).await, Ok(()));
    elsewhere.appended(log, 1..=1).await;
    assert_eq!((world.log(log).await.len(), elsewhere.log(log).await.len()), (2, 1));
}

pub(crate) async fn a_dropped_log_is_gone_at_once_and_from_the_disk_with_the_sweep(
    factory: &dyn StoreFactory,
) {
    let world = World::open(factory).await;
    let (log, kept, unknown) = (fresh_id(), fresh_id(), fresh_id());
    for (log, word) in [(log, "xylophone"), (kept, "marimba")] {
        for n in 0..12 {
            let mut entries: Vec<Entry> = (n * 100 + 1..=n * 100 + 100).map(|n| world.entry(n)).collect();
            for entry in &mut entries {
                entry.body = Bytes::from(format!("{word} {}", entry.sequence));
            }
            let write = RecordWrite::Append { workspace: world.workspace, log, entries };
            assert_eq!(world.commit(vec![write]).await, Ok(()));
        }
    }
    assert_eq!(world.commit(vec![world.drop_log(log), world.drop_log(unknown)]).await, Ok(()));
    let kinds = vec![KINDS[0].to_owned()];
    for kinds in [Vec::new(), kinds] {
        let query = EntryQuery { kinds, ..world.entry_query(log) };
        assert!(world.entries(&query).await.items.is_empty());
    }
    for first in [1, 1_201] {
        assert_eq!(world.commit(vec![world.append(log, first..=first)]).await, Err(0), "no more is added");
    }
    assert_eq!(world.commit(vec![world.drop_log(log)]).await, Ok(()), "as if it were not there");
    assert_eq!(sound(world.storage.sweep().await), Swept { logs: 1, ..Swept::default() });
    assert_eq!(sound(world.storage.purge().await), Swept::default());
    assert!(world.log(log).await.is_empty());
    assert_eq!(sequences(&world.log(kept).await), (1..=1_200).collect::<Vec<_>>());
    if let Some(dir) = &world.data_dir {
        for file in std::fs::read_dir(dir).expect("the data directory") {
            let path = file.expect("an entry").path();
            let bytes = std::fs::read(&path).unwrap_or_default();
            let found = bytes.windows(9).any(|window| window == b"xylophone");
            assert!(!found, "the entries are still in {}", path.display());
        }
    }
}

pub(crate) async fn appends_are_announced_and_so_is_the_end(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let log = fresh_id();
    let mut watch = world.storage.watches().subscribe(log);
    world.appended(log, 1..=3).await;
    assert_eq!(heard(&mut watch), Some(3));
    assert_eq!(world.commit(vec![world.append(log, 3..=3)]).await, Err(0));
    assert_eq!(heard(&mut watch), None);
    world.appended(log, 4..=4).await;
    assert_eq!(heard(&mut watch), Some(4));
    assert_eq!(world.commit(vec![world.drop_log(log)]).await, Ok(()));
    assert_eq!(heard(&mut watch), Some(5));
}
