//! Many writers at once: winners, caps, isolation, order. DESIGN 3.4 to 3.6 and 5.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use stele_core::command::{Command, RedactedPath};
use stele_core::limits::Limits;
use stele_core::list::StoreFilter;
use stele_core::model::Operation;
use stele_core::refusal::Refusal;
use stele_core::storage::{Change, MemoryRead, MemoryRef};

use crate::StoreFactory;
use crate::replay::history_gives_the_present;
use crate::world::*;

/// All commands at once on one store; the answers in the order given.
async fn race(
    store: &Handle,
    commands: impl IntoIterator<Item = Command>,
) -> Vec<Result<stele_core::decide::Outcome, Refusal>> {
    let jobs = commands.into_iter().map(|command| {
        let store = store.clone();
        async move { store.change(command).await }
    });
    at_once(jobs).await
}

fn won<T>(answers: &[Result<T, Refusal>]) -> usize {
    answers.iter().filter(|answer| answer.is_ok()).count()
}

pub(crate) async fn parallel_creates_all_arrive(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let commands = (0..100).map(|n| create(&format!("/notes/n{n}.md"), &format!("note {n}")));
    assert_eq!(won(&race(&store, commands).await), 100);
    for n in 0..100 {
        let read = store.read(MemoryRef::Path(path(&format!("/notes/n{n}.md")))).await.expect("live");
        assert_eq!(read.content, format!("note {n}"));
    }
    history_gives_the_present(&store).await;
}

pub(crate) async fn of_fifty_writers_with_one_precondition_one_wins(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let memory = store.create("/plan.md", "base").await;
    let edits = (0..50).map(|n| edit(memory.id).content(&format!("edit {n}")).expecting("base").into());
    let answers = race(&store, edits).await;
    assert_eq!(won(&answers), 1);
    let winner = answers.iter().position(Result::is_ok).expect("one");
    assert_eq!(store.text(memory.id).await, format!("edit {winner}"));
    let actual = stele_core::hash::Sha256::of(format!("edit {winner}").as_bytes());
    for answer in answers.into_iter().filter_map(Result::err) {
        assert_eq!(answer, Refusal::ContentChanged { memory: memory.id, actual });
    }
    assert_eq!(store.history().await.len(), 2);
}

pub(crate) async fn writers_of_the_same_text_share_one_version(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let memory = store.create("/a", "base").await;
    let edits = (0..30).map(|_| edit(memory.id).content("same").expecting("base").into());
    assert_eq!(won(&race(&store, edits).await), 30);
    assert_eq!(store.history().await.len(), 2);
}

pub(crate) async fn a_counter_kept_by_preconditions_loses_nothing(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let memory = store.create("/n", "0 by nobody").await.id;
    let jobs = (0..8).map(|task| {
        let store = store.clone();
        async move {
            let mut done = 0;
            while done < 10 {
                let seen = store.text(memory).await;
                let n: u32 = seen.split(' ').next().and_then(|n| n.parse().ok()).expect("a number");
                let next = format!("{} by {task}", n + 1);
                match store.change(edit(memory).content(&next).expecting(&seen)).await {
                    Ok(_) => done += 1,
                    Err(refusal) => assert!(matches!(refusal, Refusal::ContentChanged { .. })),
                }
            }
        }
    });
    at_once(jobs).await;
    assert!(store.text(memory).await.starts_with("80 "));
    history_gives_the_present(&store).await;
}

pub(crate) async fn the_cap_on_memories_is_exact_under_parallel_creates(factory: &dyn StoreFactory) {
    let world = World::with_limits(factory, Limits { memories_per_store: 40, ..Limits::default() }).await;
    let store = world.store("Notes").await;
    for n in 0..30 {
        store.create(&format!("/old{n}"), "").await;
    }
    let answers = race(&store, (0..50).map(|n| create(&format!("/new{n}"), ""))).await;
    assert_eq!(won(&answers), 10);
    let full = Refusal::MemoryLimit { limit: 40 };
    assert!(answers.iter().filter_map(|answer| answer.as_ref().err()).all(|refusal| *refusal == full));
    assert_eq!((store.store().await.counters.memories, store.paths().await.len()), (40, 40));
    history_gives_the_present(&store).await;
}

pub(crate) async fn the_cap_on_stores_is_exact_under_parallel_creates(factory: &dyn StoreFactory) {
    let limits = Limits { stores_per_workspace: Some(10), ..Limits::default() };
    let world = World::with_limits(factory, limits).await;
    let jobs = (0..30).map(|_| {
        let world = world.clone();
        async move { world.try_store(new_store("Notes")).await }
    });
    let answers = at_once(jobs).await;
    assert_eq!(won(&answers), 10);
    let slugs: BTreeSet<_> = answers.into_iter().flatten().map(|store| store.slug).collect();
    let expected = (1..=10).map(|n| if n == 1 { "notes".to_owned() } else { format!("notes-{n}") });
    assert_eq!(slugs, expected.collect());
}

pub(crate) async fn a_file_and_a_directory_race_for_one_name(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    for round in 0..20 {
        let tree = ["", "/b", "/b/c", "/d", ""].map(|rest| create(&format!("/a{round}{rest}"), rest));
        let answers = race(&store, tree).await;
        assert!(won(&answers) >= 1);
        for refusal in answers.into_iter().filter_map(Result::err) {
            assert!(matches!(refusal, Refusal::PathOccupied { .. }), "{refusal:?}");
        }
    }
    history_gives_the_present(&store).await;
}

pub(crate) async fn renames_onto_one_path_have_one_winner(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let mut memories = Vec::new();
    for n in 0..20 {
        memories.push(store.create(&format!("/m{n}"), "").await.id);
    }
    let targets = ["/goal", "/goal/deep"];
    let renames = memories.iter().enumerate().map(|(n, id)| edit(*id).path(targets[n % 2]).into());
    assert_eq!(won(&race(&store, renames).await), 1);
    history_gives_the_present(&store).await;
}

pub(crate) async fn a_refusal_touches_only_itself(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let (store, other) = (world.store("Notes").await, world.store("Other").await);
    let memory = store.create("/taken", "base").await;
    for round in 0..5 {
        let jobs = (0..64).map(|n| {
            let store = if n % 8 < 6 { store.clone() } else { other.clone() };
            let command = match n % 4 {
                0 | 2 => create(&format!("/fine{round}-{n}"), &format!("{round} {n}")),
                1 => create("/taken/below", "never"),
                _ => edit(memory.id).content("never").expecting("stale").into(),
            };
            async move { (n, store.change(command).await.is_ok()) }
        });
        let answers = at_once(jobs).await;
        // The even ones are fine whatever stands beside them in a commit, the odd ones never.
        assert!(answers.iter().all(|(n, fine)| (n % 2 == 0) == *fine), "round {round}: {answers:?}");
    }
    assert_eq!(store.text(memory.id).await, "base");
    assert_eq!(store.store().await.counters.memories, 1 + 5 * 24);
    assert_eq!(other.store().await.counters.memories, 5 * 8);
    history_gives_the_present(&store).await;
    history_gives_the_present(&other).await;
}

pub(crate) async fn of_parallel_deletions_one_deletes(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let memory = store.create("/a", "one").await;
    let answers = race(&store, (0..20).map(|_| delete(memory.id))).await;
    assert_eq!(won(&answers), 1);
    assert!(answers.into_iter().filter_map(Result::err).all(|r| r == Refusal::MemoryNotFound(memory.id)));
    assert_eq!(store.history().await.len(), 2);
}

pub(crate) async fn of_parallel_restores_of_a_deleted_memory_one_recreates(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let memory = store.create("/a", "one").await;
    store.apply(delete(memory.id)).await;
    let answers = race(&store, (0..10).map(|_| restore(memory.version))).await;
    assert_eq!(won(&answers), 10);
    let operations: Vec<_> = store.history().await.iter().map(|text| text.version.operation).collect();
    assert_eq!(operations[2..], [&[Operation::Recreated][..], &[Operation::Updated; 9]].concat());
    history_gives_the_present(&store).await;
}

pub(crate) async fn parallel_redactions_keep_one_stamp(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let memory = store.create("/a", "one").await;
    store.write(edit(memory.id).content("two")).await;
    let jobs = (0..12).map(|n| {
        let (store, version) = (store.by(actor(n)), memory.version);
        async move { store.redact(version, RedactedPath::Scrub).await }
    });
    let answers = at_once(jobs).await;
    assert!(answers.windows(2).all(|pair| pair[0] == pair[1]));
}

pub(crate) async fn a_head_is_not_redacted_between_two_writes(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let memory = store.create("/a", "start").await;
    let mut head = memory.version;
    for n in 0..15 {
        let commands =
            [edit(memory.id).content(&n.to_string()).into(), redact(head, RedactedPath::Keep), restore(head)];
        for refusal in race(&store, commands).await.into_iter().filter_map(Result::err) {
            let fine = [Refusal::VersionIsHead(head), Refusal::VersionNotRestorable(head)];
            assert!(fine.contains(&refusal), "{refusal:?}");
        }
        head = store.read(MemoryRef::Id(memory.id)).await.expect("live").memory.version;
    }
    history_gives_the_present(&store).await;
}

pub(crate) async fn a_deleted_store_ends_the_writes_that_race_with_it(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    for round in 0..5 {
        let store = world.store("Notes").await;
        let creates = (0..40).map(|n| create(&format!("/{n}"), ""));
        let commands = creates.clone().take(20).chain([Command::DeleteStore]).chain(creates.skip(20));
        for refusal in race(&store, commands).await.into_iter().filter_map(Result::err) {
            assert_eq!(refusal, Refusal::StoreNotFound(store.id), "round {round}");
        }
        assert_eq!(store.find_store().await, None);
        assert_eq!(
            store.get(MemoryRef::Path(path("/0")), stele_core::list::Detail::Basic).await,
            Lookup::NoStore
        );
    }
    assert_eq!(sound(world.storage.sweep().await).stores, 5);
    assert_eq!(world.walk_stores(StoreFilter::default(), 10).await, []);
}

pub(crate) async fn of_parallel_deletions_of_a_store_one_deletes(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    assert_eq!(won(&race(&store, (0..10).map(|_| Command::DeleteStore)).await), 1);
    assert_eq!(sound(world.storage.sweep().await).stores, 1);
}

pub(crate) async fn an_archived_store_takes_no_write_that_comes_later(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let creates = (0..40).map(|n| create(&format!("/{n}"), ""));
    let commands = creates.clone().take(20).chain([Command::ArchiveStore]).chain(creates.skip(20));
    for refusal in race(&store, commands).await.into_iter().filter_map(Result::err) {
        assert_eq!(refusal, Refusal::StoreArchived(store.id));
    }
    let archived_at = store.store().await.archived_at.expect("archived");
    assert!(store.history().await.iter().all(|text| text.version.created_at < archived_at));
    history_gives_the_present(&store).await;
}

pub(crate) async fn one_order_by_time_id_and_sequence_while_the_clock_jumps(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let over = Arc::new(AtomicBool::new(false));
    let (clock, until) = (world.clock.clone(), over.clone());
    let jumps = tokio::spawn(async move {
        for n in 0i64.. {
            if until.load(Ordering::Relaxed) {
                break;
            }
            clock.advance(if n % 2 == 0 { -5_000_000 } else { 5_000_001 });
            tokio::task::yield_now().await;
        }
    });
    let commands = (0..200).map(|n| create(&format!("/{n}"), ""));
    assert_eq!(won(&race(&store, commands).await), 200);
    over.store(true, Ordering::Relaxed);
    jumps.await.expect("the clock does not panic");
    history_gives_the_present(&store).await;
}

pub(crate) async fn an_answered_write_is_seen_by_every_read_after_it(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let jobs = (0..8).map(|task| {
        let store = store.clone();
        async move {
            let memory = store.create(&format!("/{task}"), "start").await.id;
            for n in 0..20 {
                let text = format!("{task} {n}");
                let head = store.write(edit(memory).content(&text)).await.memory;
                let read = store.read(MemoryRef::Id(memory)).await.expect("live");
                assert_eq!((read.memory.version, read.content.as_ref()), (head.version, text.as_bytes()));
                assert_eq!(store.version(head.version).await.version.id, head.version);
                assert!(store.store().await.changed_at >= head.updated_at);
            }
            store.apply(delete(memory)).await;
            assert_eq!(store.read(MemoryRef::Id(memory)).await, None);
        }
    });
    at_once(jobs).await;
    history_gives_the_present(&store).await;
}

pub(crate) async fn a_read_never_mixes_two_versions(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let memory = store.create("/a", "").await.id;
    let writer = store.clone();
    let writes = tokio::spawn(async move {
        for n in 0..150 {
            let text = n.to_string().repeat(1 + n % 3_000);
            writer.write(edit(memory).content(&text).summary(&text.len().to_string())).await;
        }
    });
    while !writes.is_finished() {
        let read = store.get(MemoryRef::Id(memory), stele_core::list::Detail::Full).await;
        let Lookup::Found(MemoryRead::Read { memory, summary, content: Some(content) }) = read else {
            panic!("live: {read:?}")
        };
        assert_eq!(memory.content_sha256, stele_core::hash::Sha256::of(&content));
        let summary = summary.expect("a full read brings the summary");
        assert!(content.is_empty() || summary.as_str() == content.len().to_string());
    }
    writes.await.expect("the writer does not panic");
}

pub(crate) async fn a_caller_that_goes_away_leaves_it_wholly_there_or_absent(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let memory = store.create("/a", "start").await.id;
    for n in 0..60 {
        let change = Change {
            workspace: world.workspace,
            store: store.id,
            actor: actor(0),
            command: edit(memory).content(&n.to_string()).path(&format!("/a{n}")).into(),
            with_content: true,
        };
        let storage = world.storage.clone();
        let task = tokio::spawn(async move { storage.change(change).await.is_ok() });
        for _ in 0..n % 7 {
            tokio::task::yield_now().await;
        }
        task.abort();
        // Cancelled or done; a panic is neither.
        assert!(task.await.unwrap_or_else(|error| error.is_cancelled()));
    }
    store.create("/last", "still serving").await;
    history_gives_the_present(&store).await;
}

pub(crate) async fn workspaces_write_side_by_side(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let mut stores = Vec::new();
    for _ in 0..6 {
        stores.push(world.elsewhere().await.store("Notes").await);
    }
    let jobs = (0..6 * 40).map(|n| {
        let store = stores[n % 6].clone();
        async move { store.create(&format!("/{n}"), &n.to_string()).await }
    });
    at_once(jobs).await;
    for store in stores {
        assert_eq!(store.store().await.counters.memories, 40);
        history_gives_the_present(&store).await;
    }
}
