//! Records: written against the revision that was read, found by id, key, tag and due time. DESIGN 5 and 11.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use stele_core::clock::{Random, System};
use stele_core::list::{Created, Page};
use stele_core::records::{CommitError, Kind, Order, Record, RecordId, RecordQuery, RecordWrite, Tag};
use stele_core::time::Timestamp;
use stele_core::watch::Watch;

use crate::StoreFactory;
use crate::world::*;

pub(crate) const KIND: Kind = Kind(7);
const OTHER: Kind = Kind(8);
const COLOUR: u16 = 1;

/// An id that nothing has.
pub(crate) fn fresh_id() -> RecordId {
    let mut id = [0; 16];
    System.fill(&mut id);
    id
}

pub(crate) fn tag(value: &str) -> Tag {
    Tag { name: COLOUR, value: value.as_bytes().to_vec() }
}

impl World {
    /// A record in the making, not written yet.
    pub(crate) fn record(&self, body: &str) -> Record {
        Record {
            workspace: self.workspace,
            kind: KIND,
            id: fresh_id(),
            revision: 1,
            created_at: self.now(),
            due_at: None,
            key: None,
            tags: Vec::new(),
            body: Bytes::copy_from_slice(body.as_bytes()),
        }
    }

    /// Commits; `Err` is the number of the write that another writer came before.
    pub(crate) async fn commit(&self, writes: Vec<RecordWrite>) -> Result<(), usize> {
        outcome(self.storage.commit(writes).await)
    }

    pub(crate) async fn put(&self, record: &Record) {
        assert_eq!(self.commit(vec![RecordWrite::Put(record.clone())]).await, Ok(()), "it is written");
    }

    async fn read(&self, record: &Record) -> Option<Record> {
        sound(self.storage.record(self.workspace, record.kind, record.id).await)
    }

    async fn by_key(&self, kind: Kind, key: [u8; 32]) -> Option<Record> {
        sound(self.storage.record_by_key(kind, key).await)
    }

    fn query(&self) -> RecordQuery {
        RecordQuery {
            workspace: self.workspace,
            kind: KIND,
            tag: None,
            created: Created::default(),
            order: Order::NewestFirst,
            after: None,
            limit: 1_000,
        }
    }

    async fn list(&self, query: &RecordQuery) -> Page<Record> {
        sound(self.storage.record_list(query.clone()).await)
    }

    /// All that the query finds, in pages of its limit, with something done between the pages.
    async fn walk<F: Future<Output = ()>>(
        &self,
        mut query: RecordQuery,
        mut between: impl FnMut() -> F,
    ) -> Vec<Record> {
        let mut all: Vec<Record> = Vec::new();
        loop {
            let page = self.list(&query).await;
            assert!(!page.more || page.items.len() == query.limit, "only full pages go on");
            all.extend(page.items);
            if !page.more {
                return all;
            }
            query.after = all.last().map(|last| (last.created_at, last.id));
            between().await;
        }
    }
}

pub(crate) fn outcome(result: Result<(), CommitError>) -> Result<(), usize> {
    match result {
        Ok(()) => Ok(()),
        Err(CommitError::Conflict(at)) => Err(at),
        Err(CommitError::Failed(error)) => panic!("the storage failed: {error:?}"),
    }
}

/// The next write of a record.
fn next(record: &Record, body: &str) -> Record {
    Record { revision: record.revision + 1, body: Bytes::copy_from_slice(body.as_bytes()), ..record.clone() }
}

fn deletion(record: &Record) -> RecordWrite {
    let Record { workspace, kind, id, revision, .. } = *record;
    RecordWrite::Delete { workspace, kind, id, revision }
}

/// What a watcher hears right now.
pub(crate) fn heard(watch: &mut Watch) -> Option<u64> {
    match pin!(watch.changed()).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(position) => Some(position),
        Poll::Pending => None,
    }
}

pub(crate) async fn a_record_reads_back_as_it_was_written(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let full = Record {
        due_at: Some(Timestamp::from_micros(-5)),
        key: Some([9; 32]),
        tags: vec![
            tag("red"),
            Tag { name: u16::MAX, value: vec![0, 255] },
            Tag { name: 0, value: Vec::new() },
        ],
        kind: Kind(u16::MAX),
        ..world.record("one")
    };
    let bare = world.record("two");
    for record in [&full, &bare] {
        assert_eq!(world.read(record).await, None);
        world.put(record).await;
        assert_eq!(world.read(record).await.as_ref(), Some(record));
    }
    assert_eq!(world.by_key(full.kind, [9; 32]).await, Some(full.clone()));
    assert_eq!(world.by_key(full.kind, [8; 32]).await, None);
    let other_kind = Record { kind: OTHER, ..bare.clone() };
    assert_eq!(world.read(&other_kind).await, None, "an id is one within its kind");
    world.put(&other_kind).await;
    let changed = Record { due_at: None, key: None, tags: Vec::new(), ..next(&full, "three") };
    world.put(&changed).await;
    assert_eq!(world.read(&full).await, Some(changed));
    assert_eq!(world.by_key(full.kind, [9; 32]).await, None);
    assert_eq!(world.read(&bare).await, Some(bare));
    assert_eq!(world.commit(Vec::new()).await, Ok(()));
}

pub(crate) async fn bodies_of_any_bytes_come_back(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let bytes: Vec<u8> = (0..=255).cycle().take(1_500_000).collect();
    for body in [Bytes::new(), Bytes::from_static(&[0, 255, 0, 128]), Bytes::from(bytes)] {
        let record = Record { body, ..world.record("") };
        world.put(&record).await;
        assert_eq!(world.read(&record).await, Some(record));
    }
}

pub(crate) async fn of_many_writers_of_one_revision_one_wins(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let mut record = world.record("0");
    world.put(&record).await;
    for round in 1..=5 {
        let jobs = (0..20).map(|n| {
            let (world, write) = (world.clone(), next(&record, &format!("{round} by {n}")));
            async move { (world.commit(vec![RecordWrite::Put(write.clone())]).await, write) }
        });
        let mut winners = Vec::new();
        for (outcome, write) in at_once(jobs).await {
            match outcome {
                Ok(()) => winners.push(write),
                Err(at) => assert_eq!(at, 0),
            }
        }
        assert_eq!(winners.len(), 1, "round {round}");
        record = world.read(&record).await.expect("it is there");
        assert_eq!(record, winners[0]);
    }
    for revision in [0, 1, 2, 5, 6, 8, 1_000] {
        let write = Record { revision, ..record.clone() };
        assert_eq!(world.commit(vec![RecordWrite::Put(write)]).await, Err(0), "revision {revision}");
    }
    let unknown = next(&world.record("x"), "y");
    assert_eq!(world.commit(vec![RecordWrite::Put(unknown.clone())]).await, Err(0));
    assert_eq!((world.read(&record).await, world.read(&unknown).await), (Some(record), None));
}

pub(crate) async fn of_many_makers_of_one_record_one_wins(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let record = world.record("");
    let jobs = (0..20).map(|n| {
        let (world, write) = (world.clone(), Record { body: Bytes::from(n.to_string()), ..record.clone() });
        async move { (world.commit(vec![RecordWrite::Put(write.clone())]).await, write) }
    });
    let answers = at_once(jobs).await;
    let winners: Vec<_> = answers.into_iter().filter(|(outcome, _)| outcome.is_ok()).collect();
    assert_eq!(winners.len(), 1);
    assert_eq!(world.read(&record).await.as_ref(), Some(&winners[0].1));
}

pub(crate) async fn a_key_is_one_records_in_all_workspaces(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let elsewhere = world.elsewhere().await;
    let jobs = (0..20).map(|n| {
        let world = if n % 2 == 0 { world.clone() } else { elsewhere.clone() };
        let record = Record { key: Some([1; 32]), ..world.record("x") };
        async move { (world.commit(vec![RecordWrite::Put(record.clone())]).await, record) }
    });
    let answers = at_once(jobs).await;
    let made: Vec<_> = answers.into_iter().filter(|(outcome, _)| outcome.is_ok()).collect();
    assert_eq!(made.len(), 1);
    let holder = &made[0].1;
    assert_eq!(world.by_key(KIND, [1; 32]).await.as_ref(), Some(holder));
    let other_kind = Record { key: Some([1; 32]), kind: OTHER, ..world.record("another kind") };
    world.put(&other_kind).await;
    let mut other = elsewhere.record("other");
    elsewhere.put(&other).await;
    other = Record { key: Some([1; 32]), ..next(&other, "wants it") };
    assert_eq!(elsewhere.commit(vec![RecordWrite::Put(other.clone())]).await, Err(0));
    world.put(&next(holder, "keeps it")).await;
    world.put(&Record { key: None, ..next(&next(holder, ""), "gives it away") }).await;
    elsewhere.put(&other).await;
    assert_eq!(world.by_key(KIND, [1; 32]).await, Some(other));
}

pub(crate) async fn a_conflict_anywhere_leaves_nothing(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let (kept, gone) = (world.record("kept"), world.record("gone"));
    world.put(&kept).await;
    world.put(&gone).await;
    let (new, log) =
        (Record { key: Some([3; 32]), tags: vec![tag("red")], ..world.record("new") }, fresh_id());
    let harmless = || {
        vec![
            RecordWrite::Put(new.clone()),
            RecordWrite::Put(next(&kept, "changed")),
            deletion(&gone),
            world.append(log, 1..=2),
        ]
    };
    let stale = Record { revision: 5, ..kept.clone() };
    let missing = RecordWrite::Delete { workspace: world.workspace, kind: KIND, id: fresh_id(), revision: 1 };
    let bad = [
        RecordWrite::Put(stale.clone()),
        deletion(&stale),
        missing,
        RecordWrite::Put(Record { key: Some([3; 32]), ..world.record("same key") }),
        RecordWrite::Put(new.clone()),
        world.append(log, 4..=4),
        world.append(fresh_id(), 2..=2),
    ];
    for (number, bad) in bad.into_iter().enumerate() {
        let mut last = harmless();
        last.push(bad.clone());
        assert_eq!(world.commit(last).await, Err(4), "{number}");
        assert_eq!(world.read(&kept).await.as_ref(), Some(&kept), "{number}");
        assert_eq!(world.read(&gone).await.as_ref(), Some(&gone), "{number}");
        assert_eq!((world.read(&new).await, world.by_key(KIND, [3; 32]).await), (None, None), "{number}");
        assert!(world.log(log).await.is_empty(), "{number}");
        let red = RecordQuery { tag: Some(tag("red")), ..world.query() };
        assert!(world.list(&red).await.items.is_empty(), "{number}");
    }
    assert_eq!(world.commit(harmless()).await, Ok(()));
    assert_eq!(world.read(&new).await, Some(new));
    assert_eq!((world.read(&gone).await, world.log(log).await.len()), (None, 2));
}

pub(crate) async fn a_write_sees_those_before_it(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let old = Record { key: Some([4; 32]), ..world.record("old") };
    world.put(&old).await;
    let new = Record { key: Some([4; 32]), ..world.record("new") };
    let later = next(&new, "later");
    let writes = vec![deletion(&old), RecordWrite::Put(new.clone()), RecordWrite::Put(later.clone())];
    assert_eq!(world.commit(writes).await, Ok(()));
    assert_eq!((world.read(&old).await, world.by_key(KIND, [4; 32]).await), (None, Some(later.clone())));
    let third = Record { key: Some([4; 32]), ..world.record("third") };
    let early = vec![RecordWrite::Put(third), deletion(&later)];
    assert_eq!(world.commit(early).await, Err(0), "the key is not free yet");
}

pub(crate) async fn commits_that_cross_each_other_all_end(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let (a, b) = (world.record("0"), world.record("0"));
    world.put(&a).await;
    world.put(&b).await;
    let jobs = (0..16).map(|n| {
        let (world, mut ids) = (world.clone(), [a.clone(), b.clone()]);
        if n % 2 == 0 {
            ids.reverse();
        }
        async move {
            for _ in 0..5 {
                loop {
                    let mut writes = Vec::new();
                    for record in &ids {
                        let now = world.read(record).await.expect("it is there");
                        writes.push(RecordWrite::Put(next(&now, &(now.revision).to_string())));
                    }
                    if world.commit(writes).await.is_ok() {
                        break;
                    }
                }
            }
        }
    });
    at_once(jobs).await;
    for record in [&a, &b] {
        assert_eq!(world.read(record).await.expect("it is there").revision, 81, "each commit counted once");
    }
}

pub(crate) async fn a_deleted_record_is_gone_and_a_stale_deletion_is_a_conflict(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let first = Record {
        key: Some([5; 32]),
        due_at: Some(world.now()),
        tags: vec![tag("red"), tag("blue")],
        ..world.record("one")
    };
    world.put(&first).await;
    let second = next(&first, "two");
    world.put(&second).await;
    assert_eq!(world.commit(vec![deletion(&first)]).await, Err(0));
    assert_eq!(world.commit(vec![deletion(&next(&second, ""))]).await, Err(0));
    assert_eq!(world.read(&second).await.as_ref(), Some(&second));
    assert_eq!(world.commit(vec![deletion(&second)]).await, Ok(()));
    assert_eq!((world.read(&second).await, world.by_key(KIND, [5; 32]).await), (None, None));
    assert!(world.list(&world.query()).await.items.is_empty());
    for colour in ["red", "blue"] {
        let query = RecordQuery { tag: Some(tag(colour)), ..world.query() };
        assert!(world.list(&query).await.items.is_empty(), "{colour}");
    }
    assert!(sound(world.storage.record_due(KIND, world.now(), 10).await).is_empty());
    assert_eq!(world.commit(vec![deletion(&second)]).await, Err(0));
}

pub(crate) async fn tags_are_replaced_with_each_write(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let mut record = Record { tags: vec![tag("red"), tag("blue")], ..world.record("") };
    world.put(&record).await;
    let steps: [&[&str]; 5] =
        [&["red", "blue"], &["blue", "green"], &[], &["red"], &["green", "blue", "red"]];
    for colours in steps {
        record = Record { tags: colours.iter().map(|colour| tag(colour)).collect(), ..next(&record, "") };
        world.put(&record).await;
        for colour in ["red", "blue", "green"] {
            let query = RecordQuery { tag: Some(tag(colour)), ..world.query() };
            let found = world.list(&query).await.items;
            assert_eq!(found.len(), usize::from(colours.contains(&colour)), "{colour} of {colours:?}");
            assert!(found.iter().all(|found| *found == record));
        }
        let other_name = Tag { name: COLOUR + 1, ..tag("red") };
        assert!(world.list(&RecordQuery { tag: Some(other_name), ..world.query() }).await.items.is_empty());
    }
}

pub(crate) async fn lists_go_both_ways_and_narrow_by_tag_and_time(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let mut all = Vec::new();
    for n in 0..12 {
        // Pairs of one moment: their ids decide.
        if n % 2 == 0 {
            world.clock.advance(1_000);
        }
        let colour = if n % 3 == 0 { "red" } else { "blue" };
        all.push(Record { tags: vec![tag(colour)], ..world.record(&n.to_string()) });
    }
    for record in &all {
        world.put(record).await;
    }
    world.put(&Record { kind: OTHER, tags: vec![tag("red")], ..world.record("another kind") }).await;
    all.sort_by_key(|record| (record.created_at, record.id));
    let (from, to) = (all[3].created_at, all[8].created_at);
    for bounds in
        [(None, None), (Some(from), None), (None, Some(to)), (Some(from), Some(to)), (Some(to), Some(from))]
    {
        let created = Created { from: bounds.0, to: bounds.1 };
        for colour in [None, Some("red"), Some("blue"), Some("green")] {
            for order in [Order::OldestFirst, Order::NewestFirst] {
                let mut expected: Vec<Record> = all
                    .iter()
                    .filter(|r| created.from.is_none_or(|from| r.created_at >= from))
                    .filter(|r| created.to.is_none_or(|to| r.created_at <= to))
                    .filter(|r| colour.is_none_or(|colour| r.tags == [tag(colour)]))
                    .cloned()
                    .collect();
                if order == Order::NewestFirst {
                    expected.reverse();
                }
                for limit in [1, 5, 100] {
                    let query = RecordQuery { tag: colour.map(tag), created, order, limit, ..world.query() };
                    let found = world.walk(query.clone(), || async {}).await;
                    assert_eq!(found, expected, "{query:?}");
                }
            }
        }
    }
}

pub(crate) async fn a_walk_during_writes_shows_the_untouched_once(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    for order in [Order::NewestFirst, Order::OldestFirst] {
        for narrowed in [None, Some(tag(&format!("{order:?}")))] {
            let tags: Vec<Tag> = narrowed.iter().cloned().collect();
            let mut untouched = Vec::new();
            let mut doomed = Vec::new();
            for n in 0..30 {
                world.clock.advance(10);
                let record = Record { tags: tags.clone(), ..world.record("untouched") };
                world.put(&record).await;
                if n % 5 == 4 { doomed.push(record) } else { untouched.push(record.id) }
            }
            let query = RecordQuery { tag: narrowed, order, limit: 4, ..world.query() };
            let doomed = std::sync::Mutex::new(doomed);
            let found = world
                .walk(query, || async {
                    let gone = doomed.lock().expect("no panic under the lock").pop();
                    if let Some(gone) = gone {
                        assert_eq!(world.commit(vec![deletion(&gone)]).await, Ok(()));
                    }
                    let early = Timestamp::from_micros(world.now().as_micros() - 150);
                    for created_at in [early, world.now()] {
                        world
                            .put(&Record { tags: tags.clone(), created_at, ..world.record("between") })
                            .await;
                    }
                })
                .await;
            let mut seen: Vec<RecordId> = found.iter().map(|record| record.id).collect();
            seen.retain(|id| untouched.contains(id));
            if order == Order::NewestFirst {
                untouched.reverse();
            }
            assert_eq!(seen, untouched, "{order:?}");
            for record in world.list(&world.query()).await.items {
                assert_eq!(world.commit(vec![deletion(&record)]).await, Ok(()));
            }
        }
    }
}

pub(crate) async fn the_time_of_creation_never_changes(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let record = Record { tags: vec![tag("red")], ..world.record("one") };
    world.put(&record).await;
    world.clock.advance(1_000);
    let moved =
        Record { created_at: world.now(), tags: vec![tag("red"), tag("blue")], ..next(&record, "two") };
    world.put(&moved).await;
    let expected = Record { created_at: record.created_at, ..moved };
    assert_eq!(world.read(&record).await.as_ref(), Some(&expected));
    let created = Created { from: None, to: Some(record.created_at) };
    for colour in ["red", "blue"] {
        let query = RecordQuery { tag: Some(tag(colour)), created, ..world.query() };
        assert_eq!(world.list(&query).await.items.as_slice(), std::slice::from_ref(&expected), "{colour}");
    }
}

pub(crate) async fn what_is_due_comes_from_all_workspaces_the_longest_due_first(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let elsewhere = world.elsewhere().await;
    let at = |n: i64| Timestamp::from_micros(world.now().as_micros() + n);
    let mut jobs = Vec::new();
    for n in [5, 1, 4, 2, 3, 9] {
        let world = if n % 2 == 0 { &world } else { &elsewhere };
        let job = Record { due_at: Some(at(n)), ..world.record(&n.to_string()) };
        world.put(&job).await;
        jobs.push(job);
    }
    world.put(&world.record("not a job")).await;
    world.put(&Record { due_at: Some(at(1)), kind: OTHER, ..world.record("another kind") }).await;
    jobs.sort_by_key(|job| job.due_at);
    let due = async |now: i64, limit: usize| sound(world.storage.record_due(KIND, at(now), limit).await);
    assert_eq!(due(0, 10).await, []);
    assert_eq!(due(5, 10).await, jobs[..5]);
    assert_eq!(due(5, 2).await, jobs[..2]);
    let done = Record { due_at: None, ..next(&jobs[0], "done") };
    let later = Record { due_at: Some(at(20)), ..next(&jobs[1], "later") };
    assert_eq!(world.commit(vec![RecordWrite::Put(done), RecordWrite::Put(later.clone())]).await, Ok(()));
    let mut left = jobs[2..].to_vec();
    left.push(later);
    assert_eq!(due(30, 10).await, left);
}

pub(crate) async fn many_are_answered_in_the_order_asked_for(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let records: Vec<Record> = (0..5).map(|n| world.record(&n.to_string())).collect();
    for record in &records {
        world.put(record).await;
    }
    let ids = vec![records[3].id, fresh_id(), records[0].id, records[4].id, records[0].id];
    let found = sound(world.storage.record_many(world.workspace, KIND, ids.clone()).await);
    let expected = [3, 0, 4, 0].map(|n: usize| records[n].clone());
    assert_eq!(found, expected);
    assert!(sound(world.storage.record_many(world.workspace, OTHER, ids).await).is_empty());
    assert!(sound(world.storage.record_many(world.workspace, KIND, Vec::new()).await).is_empty());
}

pub(crate) async fn a_foreign_record_is_as_good_as_unknown(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let elsewhere = world.elsewhere().await;
    let record = Record { tags: vec![tag("red")], ..world.record("ours") };
    world.put(&record).await;
    assert_eq!(elsewhere.read(&record).await, None);
    assert!(
        sound(elsewhere.storage.record_many(elsewhere.workspace, KIND, vec![record.id]).await).is_empty()
    );
    for tag in [None, Some(tag("red"))] {
        assert!(elsewhere.list(&RecordQuery { tag, ..elsewhere.query() }).await.items.is_empty());
    }
    let theirs = Record { workspace: elsewhere.workspace, ..next(&record, "theirs") };
    assert_eq!(elsewhere.commit(vec![RecordWrite::Put(theirs.clone())]).await, Err(0));
    assert_eq!(elsewhere.commit(vec![deletion(&Record { revision: 1, ..theirs.clone() })]).await, Err(0));
    assert_eq!(world.read(&record).await.as_ref(), Some(&record));
    let same_id = Record { revision: 1, ..theirs };
    elsewhere.put(&same_id).await;
    assert_eq!((world.read(&record).await, elsewhere.read(&record).await), (Some(record), Some(same_id)));
}

pub(crate) async fn what_is_committed_is_announced_and_a_conflict_is_not(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let (one, two) = (world.record("one"), world.record("two"));
    let watches = world.storage.watches();
    let (mut first, mut second) = (watches.subscribe(one.id), watches.subscribe(two.id));
    let both = vec![RecordWrite::Put(one.clone()), RecordWrite::Put(two.clone())];
    assert_eq!(world.commit(both.clone()).await, Ok(()));
    assert_eq!((heard(&mut first), heard(&mut second)), (Some(1), Some(1)));
    let half = vec![RecordWrite::Put(next(&one, "x")), RecordWrite::Put(two.clone())];
    assert_eq!(world.commit(half).await, Err(1));
    assert_eq!((heard(&mut first), heard(&mut second)), (None, None));
    world.put(&next(&one, "y")).await;
    assert_eq!((heard(&mut first), heard(&mut second)), (Some(2), None));
    assert_eq!(world.commit(vec![deletion(&two)]).await, Ok(()));
    assert_eq!((heard(&mut first), heard(&mut second)), (None, Some(2)));
}

/// Whoever is woken finds what woke him, though nobody waits for the commit's own answer.
pub(crate) async fn a_commit_whose_caller_went_away_is_announced(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let record = world.record("one");
    let mut watch = world.storage.watches().subscribe(record.id);
    let mut commit = world.storage.commit(vec![RecordWrite::Put(record.clone())]);
    let begun = commit.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(begun.is_pending(), "it is not durable yet");
    drop(commit);
    assert_eq!(watch.changed().await, 1);
    assert_eq!(world.read(&record).await, Some(record));
}
