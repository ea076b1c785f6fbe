//! Redaction: what goes, what stays, what is refused. spec/anthropic.md 4.4, spec/recursion.md 7.5, DESIGN 3.2 and 3.3.

use std::path::Path;

use stele_core::command::RedactedPath;
use stele_core::limits::Limits;
use stele_core::list::VersionFilter;
use stele_core::model::{Counters, Operation, Redaction, Version, VersionText};
use stele_core::refusal::Refusal;

use crate::StoreFactory;
use crate::world::*;

/// A store with a memory of three versions, each with its own text, and the id of the first.
async fn with_three_versions(world: &World) -> (Handle, VersionText, VersionText) {
    let store = world.store("Notes").await;
    let memory = store.create("/k.md", "first words").await;
    store.write(edit(memory.id).content("second words")).await;
    store.write(edit(memory.id).content("clean").summary("clean")).await;
    let mut history = store.history().await;
    history.truncate(2);
    let second = history.pop().expect("the second");
    (store, history.pop().expect("the first"), second)
}

pub(crate) async fn text_hash_and_size_go_who_and_when_stay(factory: &dyn StoreFactory) {
    for (path, kept) in [(RedactedPath::Keep, true), (RedactedPath::Scrub, false)] {
        let world = World::open(factory).await;
        let (store, first, second) = with_three_versions(&world).await;
        let (counters, head) = (store.store().await.counters, store.text(first.version.memory).await);
        world.clock.advance(50);
        let answered = store.by(actor(7)).redact(first.version.id, path).await;
        let expected = Version {
            path: first.version.path.clone().filter(|_| kept),
            recorded: None,
            redaction: Some(Redaction { at: world.now(), by: actor(7) }),
            ..first.version.clone()
        };
        assert_eq!(answered, expected);
        let redacted = VersionText { version: expected, summary: None, reason: None, content: None };
        assert_eq!(store.version(first.version.id).await, redacted);
        let history = store.history().await;
        assert_eq!((&history[0], &history[1], history.len()), (&redacted, &second, 3));
        let after = Counters { sequence: counters.sequence + 1, ..counters };
        assert_eq!(store.store().await.counters, after, "a place in history, and no version");
        assert_eq!(store.text(first.version.memory).await, head);
    }
}

pub(crate) async fn a_redacted_version_is_found_by_what_it_keeps(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let (store, first, _) = with_three_versions(&world).await;
    store.by(actor(7)).redact(first.version.id, RedactedPath::Scrub).await;
    let filter = VersionFilter {
        memory: Some(first.version.memory),
        operations: vec![Operation::Created],
        authors: vec![actor(0)],
        ..VersionFilter::default()
    };
    let found = store.walk_versions(filter, 10).await;
    assert_eq!(found.iter().map(|text| text.version.id).collect::<Vec<_>>(), [first.version.id]);
}

pub(crate) async fn the_head_of_a_live_memory_is_refused(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let (store, first, _) = with_three_versions(&world).await;
    let head = store.history().await.pop().expect("a head");
    for path in [RedactedPath::Keep, RedactedPath::Scrub] {
        assert_eq!(
            store.refused(redact(head.version.id, path)).await,
            Refusal::VersionIsHead(head.version.id)
        );
    }
    assert_eq!(store.version(head.version.id).await, head);
    store.apply(delete(first.version.memory)).await;
    assert_eq!(store.redact(head.version.id, RedactedPath::Scrub).await.recorded, None);
}

pub(crate) async fn all_versions_of_a_deleted_memory_can_be_redacted(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let (store, first, _) = with_three_versions(&world).await;
    store.apply(delete(first.version.memory)).await;
    for text in store.history().await {
        store.redact(text.version.id, RedactedPath::Scrub).await;
    }
    let history = store.history().await;
    assert_eq!(history.len(), 4);
    for VersionText { version, summary, content, .. } in history {
        assert_eq!((version.path, version.recorded, summary, content), (None, None, None, None));
        assert!(version.redaction.is_some());
    }
}

pub(crate) async fn a_second_redaction_keeps_the_first_stamps(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let (store, first, _) = with_three_versions(&world).await;
    let once = store.redact(first.version.id, RedactedPath::Keep).await;
    world.clock.advance(50);
    let other = store.by(actor(7));
    assert_eq!(other.redact(first.version.id, RedactedPath::Keep).await, once);
    let scrubbed = Version { path: None, ..once };
    for path in [RedactedPath::Scrub, RedactedPath::Scrub, RedactedPath::Keep] {
        assert_eq!(other.redact(first.version.id, path).await, scrubbed);
        assert_eq!(store.version(first.version.id).await.version, scrubbed);
    }
}

pub(crate) async fn copies_of_a_redacted_text_stay_until_they_are_redacted(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let store = world.store("Notes").await;
    let text = "a text long enough to be kept apart ".repeat(200);
    let memory = store.create("/a", &text).await;
    let renamed = store.write(edit(memory.id).path("/b")).await.memory;
    store.write(edit(memory.id).content("clean")).await;
    let restored = store.write(restore(memory.version)).await.memory;
    let twin = store.create("/twin", &text).await;
    store.redact(memory.version, RedactedPath::Scrub).await;
    for version in [renamed.version, restored.version, twin.version] {
        assert_eq!(store.version(version).await.content.as_deref(), Some(text.as_bytes()));
    }
    assert_eq!((store.text(memory.id).await, store.text(twin.id).await), (text.clone(), text.clone()));
    store.redact(renamed.version, RedactedPath::Scrub).await;
    assert_eq!((store.text(memory.id).await, store.text(twin.id).await), (text.clone(), text));
}

pub(crate) async fn the_same_text_written_again_is_unaffected(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let (store, first, _) = with_three_versions(&world).await;
    store.redact(first.version.id, RedactedPath::Scrub).await;
    store.write(edit(first.version.memory).content("first words")).await;
    assert_eq!(store.text(first.version.memory).await, "first words");
    let again = store.create("/again", "first words").await;
    assert_eq!(store.text(again.id).await, "first words");
    assert_eq!(store.version(first.version.id).await.content, None);
}

pub(crate) async fn versions_of_other_stores_are_not_redacted(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let (store, first, _) = with_three_versions(&world).await;
    let other = world.store("Other").await;
    let unknown = unknown_version();
    for (store, id) in [(&store, unknown), (&other, first.version.id), (&other, unknown)] {
        let refusal = store.refused(redact(id, RedactedPath::Scrub)).await;
        assert_eq!(refusal, Refusal::VersionNotFound(id));
    }
    assert_eq!(store.version(first.version.id).await, first);
}

/// The files below `dir` that hold `needle`.
fn files_with(dir: &Path, needle: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).expect("the directory can be read") {
        let path = entry.expect("the directory can be read").path();
        if path.is_dir() {
            found.extend(files_with(&path, needle));
        } else if let Ok(bytes) = std::fs::read(&path)
            && bytes.windows(needle.len()).any(|window| window == needle)
        {
            found.push(path.display().to_string());
        }
    }
    found
}

pub(crate) async fn redacted_words_are_in_no_file_once_it_is_answered(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let Some(dir) = world.data_dir.clone() else { return };
    let store = world.store("Notes").await;
    let mut memories = Vec::new();
    for n in 0..30 {
        memories.push(store.create(&format!("/filler{n}"), &format!("filler {n} ").repeat(40)).await);
    }
    let memory = store.create("/canary-path", "token canary-7f3a91 end").await;
    store.write(edit(memory.id).summary("canary-summary")).await;
    store.write(edit(memory.id).path("/clean").content("clean").summary("clean")).await;
    let hash = *stele_core::hash::Sha256::of(b"token canary-7f3a91 end").as_bytes();
    assert_ne!(files_with(&dir, b"canary"), [] as [String; 0], "short texts lie as they are");
    assert_ne!(files_with(&dir, &hash), [] as [String; 0]);
    for text in store.history_of(memory.id).await.into_iter().take(2) {
        store.redact(text.version.id, RedactedPath::Scrub).await;
    }
    assert_eq!(files_with(&dir, b"canary"), [] as [String; 0]);
    assert_eq!(files_with(&dir, &hash), [] as [String; 0], "a short secret can be guessed from its hash");
    for (n, filler) in memories.into_iter().enumerate() {
        assert_eq!(store.text(filler.id).await, format!("filler {n} ").repeat(40));
    }
}

/// An index of paths splits and merges its pages as memories come, move and go; no piece of a path may stay behind.
pub(crate) async fn redacted_paths_of_many_memories_are_in_no_file(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let Some(dir) = world.data_dir.clone() else { return };
    for stride in [131, 37, 7_919] {
        let store = world.store("Notes").await;
        let order = || (0..300).map(move |n| (n * stride) % 300);
        let mut memories = std::collections::BTreeMap::new();
        for n in order() {
            let at = format!("/canary/{n}/x{}", "x".repeat(n * stride % 80));
            memories.insert(n, store.create(&at, "clean").await.id);
        }
        for n in order() {
            store.write(edit(memories[&n]).path(&format!("/clean/{n}"))).await;
            if n % 7 == 0 {
                store.apply(delete(memories[&n])).await;
            }
        }
        redact_all(&store, "/canary").await;
        assert_eq!(files_with(&dir, b"canary"), [] as [String; 0]);
        assert_eq!(store.paths().await.len(), 257);
    }
}

/// A sweep takes rows out from between others, whose pages are merged; no piece of a text may stay behind.
pub(crate) async fn words_redacted_after_sweeps_are_in_no_file(factory: &dyn StoreFactory) {
    let limits = Limits { versions_kept: 2, ..Limits::default() };
    let world = World::with_limits(factory, limits).await;
    let Some(dir) = world.data_dir.clone() else { return };
    let store = world.store("Notes").await;
    for round in 0..8 {
        for n in (0..60).map(|n| (n * 37) % 60) {
            let memory = store.create(&format!("/{round}/{n}"), "start").await.id;
            for m in 0..(n % 5) {
                let text = format!("token canary{m} {}", "word ".repeat((n * 31 + m * 17) % 120));
                store.write(edit(memory).content(&text).summary(&format!("canary{m}{n}"))).await;
            }
            store.write(edit(memory).content("clean").summary("clean")).await;
            if n % 4 == 0 {
                store.apply(delete(memory)).await;
            }
        }
        world.clock.advance_days(20);
        sound(world.storage.sweep().await);
    }
    redact_all(&store, "/").await;
    assert_eq!(files_with(&dir, b"canary"), [] as [String; 0]);
    for text in store.history().await.into_iter().filter(|text| text.version.redaction.is_none()) {
        assert!(text.content.is_none_or(|content| content == "clean"), "only heads are left");
    }
}

/// Redacts every version below `directory` that is no head, in an order of its own.
async fn redact_all(store: &Handle, directory: &str) {
    let below =
        |text: &VersionText| text.version.path.as_ref().is_some_and(|at| at.as_str().starts_with(directory));
    let mut history = store.history().await;
    history.retain(below);
    let count = history.len();
    let jobs = (0..count).map(|n| {
        let (store, id) = (store.clone(), history[(n * 7_919) % count].version.id);
        async move {
            if let Err(refusal) = store.change(redact(id, RedactedPath::Scrub)).await {
                assert_eq!(refusal, Refusal::VersionIsHead(id));
            }
        }
    });
    at_once(jobs).await;
}

pub(crate) async fn words_of_a_deleted_store_are_in_no_file_after_a_sweep(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let Some(dir) = world.data_dir.clone() else { return };
    let kept = world.store("Kept").await;
    let store = world.store("canary-name").await;
    for n in 0..40 {
        kept.create(&format!("/{n}"), "other words").await;
        store.create(&format!("/canary-path{n}"), "token canary-55 end").await;
    }
    store.apply(stele_core::command::Command::DeleteStore).await;
    assert_eq!(sound(world.storage.sweep().await).stores, 1);
    assert_eq!(files_with(&dir, b"canary"), [] as [String; 0]);
    assert_eq!(kept.store().await.counters.memories, 40);
}
