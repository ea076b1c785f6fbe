//! Changesets: several changes, all or nothing, with one reason. DESIGN 7.

use stele_core::changeset::{Applied, Changeset};
use stele_core::command::{Command, MemoryRef, OnArchived};
use stele_core::limits::Limits;
use stele_core::model::Operation;
use stele_core::refusal::Refusal;
use stele_core::storage::{ChangeAll, ChangedAll};
use stele_core::text::Reason;

use crate::StoreFactory;
use crate::replay::history_gives_the_present;
use crate::world::*;

fn at(path_text: &str) -> MemoryRef {
    MemoryRef::Path(path(path_text))
}

fn update_at(named: &str, content_text: Option<&str>, to: Option<&str>) -> Command {
    Command::UpdateMemory {
        memory: at(named),
        path: to.map(path),
        summary: None,
        content: content_text.map(content),
        expected: stele_core::command::Expected::Anything,
    }
}

fn delete_at(named: &str) -> Command {
    let expected = stele_core::command::Expected::Anything;
    Command::DeleteMemory { memory: at(named), expected, on_archived: OnArchived::Refuse }
}

async fn change_all(store: &Handle, reason: &str, commands: Vec<Command>) -> Result<ChangedAll, Refusal> {
    let reason = Reason::parse(reason).expect("a reason");
    let changeset = Changeset::new(Some(reason), commands).expect("within bounds");
    let (workspace, actor) = (store.world.workspace, store.actor);
    let change = ChangeAll { workspace, store: store.id, actor, changeset };
    verdict(store.world.storage.change_all(change).await)
}

/// What a changeset came to: the paths, and which of them wrote a version.
fn came_to(applied: &[Applied]) -> Vec<(&str, bool)> {
    applied.iter().map(|one| (one.path.as_str(), one.version.is_some())).collect()
}

pub(crate) async fn changes_are_carried_out_in_order(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let old = store.create("/a.md", "one").await;
    let gone = store.create("/gone.md", "gone").await;
    let done = change_all(
        &store,
        "tidied up",
        vec![
            delete(gone.id),
            create("/gone.md", "new"),
            update_at("/a.md", Some("two"), None),
            update_at("/a.md", None, Some("/b.md")),
            update_at("/b.md", Some("two"), None),
            create("/a.md/below.md", "the path is free by now"),
            edit(old.id).content("three").expecting("two").into(),
        ],
    )
    .await
    .expect("not refused");
    assert_eq!(
        came_to(&done.applied),
        [
            ("/gone.md", true),
            ("/gone.md", true),
            ("/a.md", true),
            ("/b.md", true),
            ("/b.md", false),
            ("/a.md/below.md", true),
            ("/b.md", true)
        ]
    );
    assert_eq!(store.paths().await, ["/a.md/below.md", "/b.md", "/gone.md"]);
    assert_eq!(store.text(old.id).await, "three");
    let sequence = store.store().await.counters.sequence;
    assert_eq!(done.sequence, sequence);
    let history = store.history().await;
    let written: Vec<_> = done.applied.iter().filter_map(|one| one.version).collect();
    let newest: Vec<_> = history[2..].iter().map(|text| text.version.id).collect();
    assert_eq!(newest, written, "one version a change, in order");
    for text in &history[2..] {
        assert_eq!(text.reason.as_deref(), Some("tidied up"));
    }
    assert!(history[..2].iter().all(|text| text.reason.is_none()));
    let operations: Vec<_> = store.history_of(old.id).await.iter().map(|t| t.version.operation).collect();
    assert_eq!(operations, [Operation::Created, Operation::Updated, Operation::Renamed, Operation::Updated]);
    history_gives_the_present(&store).await;
}

pub(crate) async fn a_refusal_leaves_nothing_of_it(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let kept = store.create("/kept.md", "kept").await;
    let before = (store.store().await, store.history().await.len());
    let nowhere = unknown_memory();
    let refused: Vec<(Command, Refusal)> = vec![
        (delete_at("/nowhere.md"), Refusal::PathNotFound),
        (delete(nowhere), Refusal::MemoryNotFound(nowhere)),
        (
            edit(kept.id).content("x").expecting("something else").into(),
            Refusal::ContentChanged {
                memory: kept.id,
                actual: stele_core::hash::Sha256::of(b"changed first"),
            },
        ),
    ];
    for (last, why) in refused {
        let commands = vec![
            create("/new.md", "new"),
            update_at("/kept.md", Some("changed first"), None),
            last,
            create("/never.md", "never"),
        ];
        assert_eq!(change_all(&store, "why", commands).await, Err(why.at(2)));
        assert_eq!((store.store().await, store.history().await.len()), before);
        assert_eq!(store.text(kept.id).await, "kept");
    }
    // The store goes on as if nothing had been.
    let done = change_all(&store, "why", vec![create("/new.md", "new")]).await.expect("not refused");
    assert_eq!(done.sequence, 2);
    history_gives_the_present(&store).await;
}

pub(crate) async fn changes_that_contradict_each_other_are_refused(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let memory = store.create("/a.md", "one").await;
    let contradictions: Vec<Vec<Command>> = vec![
        vec![delete(memory.id), edit(memory.id).content("two").into()],
        vec![create("/b.md", "b"), create("/b.md", "b again")],
        vec![create("/b.md", "b"), create("/b.md/c.md", "below a memory")],
        vec![update_at("/a.md", None, Some("/b.md")), update_at("/a.md", Some("two"), None)],
        vec![delete_at("/a.md"), delete_at("/a.md")],
        vec![update_at("/a.md", Some("two"), None), edit(memory.id).content("3").expecting("one").into()],
    ];
    for commands in contradictions {
        let refusal = change_all(&store, "why", commands.clone()).await.expect_err("refused");
        assert!(matches!(refusal, Refusal::InChangeset { index: 1, .. }), "{commands:?}: {refusal:?}");
    }
    assert_eq!(store.history().await.len(), 1);
}

pub(crate) async fn the_cap_counts_each_change(factory: &dyn StoreFactory) {
    let world = World::with_limits(factory, Limits { memories_per_store: 3, ..Limits::default() }).await;
    let store = world.store("Notes").await;
    store.create("/a.md", "a").await;
    let commands: Vec<_> = (0..3).map(|n| create(&format!("/n{n}.md"), "n")).collect();
    let refusal = change_all(&store, "why", commands.clone()).await.expect_err("one too many");
    assert_eq!(refusal, Refusal::MemoryLimit { limit: 3 }.at(2));
    let room_first = [vec![delete_at("/a.md")], commands].concat();
    change_all(&store, "why", room_first).await.expect("a deletion makes room for what follows");
    assert_eq!(store.store().await.counters.memories, 3);
}

pub(crate) async fn a_changeset_may_be_large(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let commands = |text: &str| {
        (0..1_000).map(|n| create(&format!("/{text}/n{n}.md"), &format!("{text} {n}"))).collect()
    };
    change_all(&store, "imported", commands("new")).await.expect("a thousand are taken");
    assert_eq!(store.paths().await.len(), 1_000);
    let moves = (0..1_000).map(|n| update_at(&format!("/new/n{n}.md"), None, Some(&format!("/old/n{n}.md"))));
    let done = change_all(&store, "moved", moves.collect()).await.expect("a thousand are taken");
    assert_eq!(done.sequence, 2_000);
    assert!(store.paths().await.iter().all(|path| path.starts_with("/old/")));
}

pub(crate) async fn changesets_and_single_changes_at_once_leave_whole_ones(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let counter = store.create("/counter.md", "0").await;
    let sets = (0..24).map(|n| {
        let store = store.clone();
        async move {
            let commands = vec![
                create(&format!("/set{n}/a.md"), "a"),
                // Only one of those that read 0 may win.
                edit(counter.id).content(&format!("{}", n + 1)).expecting("0").into(),
                create(&format!("/set{n}/b.md"), "b"),
            ];
            change_all(&store, &format!("set {n}"), commands).await.is_ok()
        }
    });
    let singles = (0..24).map(|n| {
        let store = store.clone();
        async move { store.change(create(&format!("/single{n}.md"), "s")).await.is_ok() }
    });
    let (sets, singles) = tokio::join!(at_once(sets), at_once(singles));
    assert_eq!(sets.iter().filter(|won| **won).count(), 1);
    assert!(singles.iter().all(|won| *won));
    let paths = store.paths().await;
    assert_eq!(paths.iter().filter(|path| path.starts_with("/set")).count(), 2, "whole or nothing");
    history_gives_the_present(&store).await;
}

pub(crate) async fn archived_and_foreign_stores_take_none(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let other = world.elsewhere().await;
    let foreign = store.seen_from(&other);
    let refusal = change_all(&foreign, "why", vec![create("/a.md", "a")]).await.expect_err("unknown");
    assert_eq!(refusal, Refusal::StoreNotFound(store.id).at(0));
    store.apply(Command::ArchiveStore).await;
    let refusal = change_all(&store, "why", vec![create("/a.md", "a")]).await.expect_err("archived");
    assert_eq!(refusal, Refusal::StoreArchived(store.id).at(0));
}
