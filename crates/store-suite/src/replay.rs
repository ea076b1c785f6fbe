//! History against the present: replaying a store's versions gives its live memories and counters. DESIGN 3.1 and 4.

use std::collections::BTreeMap;

use stele_core::hash::Sha256;
use stele_core::id::MemoryId;
use stele_core::list::MemoryEntry;
use stele_core::model::{Operation, VersionText};
use stele_core::path::MemoryPath;

use crate::world::*;

/// Checks a store whose history is whole, nothing having been swept.
pub(crate) async fn history_gives_the_present(store: &Handle) {
    let history = store.history().await;
    let live = replay(&history);
    let state = store.store().await;
    let entries = store.list(everything()).await.items;
    let mut bytes = 0;
    let paths: Vec<_> = entries.iter().map(MemoryEntry::path).collect();
    let mut expected: Vec<_> =
        live.values().map(|head| head.version.path.as_ref().expect("heads keep it").as_str()).collect();
    expected.sort_unstable();
    assert_eq!(paths, expected);
    for entry in &entries {
        let MemoryEntry::Memory { memory, summary, content } = entry else {
            panic!("no directories asked for")
        };
        let head = live[&memory.id];
        assert_eq!((memory.version, memory.updated_at), (head.version.id, head.version.created_at));
        assert_eq!((summary, content), (&head.summary, &head.content));
        let content = content.as_ref().expect("a full list brings it");
        assert_eq!((memory.content_sha256, memory.size_bytes), (Sha256::of(content), content.len() as u64));
        assert_eq!(head.version.redaction, None, "no head is redacted");
        bytes += memory.size_bytes;
    }
    let counters = state.counters;
    assert_eq!((counters.memories, counters.bytes), (entries.len() as u64, bytes));
    assert_eq!(counters.versions, history.len() as u64);
    assert!(counters.sequence >= history.last().map_or(0, |newest| newest.version.sequence));
}

/// The heads of live memories after all of the history, oldest first; panics where a step was not legal.
fn replay(history: &[VersionText]) -> BTreeMap<MemoryId, &VersionText> {
    let mut live: BTreeMap<MemoryId, &VersionText> = BTreeMap::new();
    for (n, text) in history.iter().enumerate() {
        let version = &text.version;
        if n > 0 {
            let last = &history[n - 1].version;
            assert!(last.sequence < version.sequence, "each at a place of its own");
            assert!(last.created_at < version.created_at, "order by time is order by sequence");
            assert!(last.id < version.id, "order by id is order by sequence");
        }
        let earlier = history[..n].iter().any(|old| old.version.memory == version.memory);
        let known = live.remove(&version.memory).is_some();
        let legal = match version.operation {
            Operation::Created => !known && !earlier,
            Operation::Recreated => !known && earlier,
            Operation::Updated | Operation::Renamed | Operation::Deleted => known,
        };
        assert!(legal, "{:?} of {:?} at {n}", version.operation, version.memory);
        if version.operation != Operation::Deleted {
            let taken = |path: &MemoryPath| {
                let others = live.values().filter_map(|head| head.version.path.as_ref());
                others.into_iter().any(|other| other.overlaps(path))
            };
            // A scrubbed path is nobody's business any more.
            assert!(!version.path.as_ref().is_some_and(taken), "a free path at {n}");
            live.insert(version.memory, text);
        }
    }
    live
}
