//! `stele db check` of a PostgreSQL: what is read from it row by row must fit together. A data directory has a check
//! of its own, which also looks at the structure of its files.

use std::collections::HashMap;

use stele_core::dump::{Dump, StorePlace, VersionRow};
use stele_core::id::VersionId;
use stele_core::model::{Memory, Store, Version};
use stele_core::storage::StorageError;
use store_sqlite::Damage;

/// Rows of a page.
const PAGE: usize = 500;

/// Whether the content of a version is what its hash says.
pub(crate) fn is_whole(row: &VersionRow) -> bool {
    match (&row.version.recorded, &row.content) {
        (None, None) => true,
        (Some(recorded), Some(stored)) => {
            let (size, sha256) = (recorded.size_bytes, recorded.content_sha256);
            store_codec::decode(stored.encoding, &stored.bytes, size, sha256).is_some()
        }
        _ => false,
    }
}

/// Compares hashes, heads, counters and logs; returns all that is damaged.
pub(crate) fn examine(dump: &mut dyn Dump) -> Result<Vec<Damage>, StorageError> {
    let (mut damage, mut after) = (Vec::new(), None);
    loop {
        let stores = dump.stores(after, PAGE)?;
        let Some(last) = stores.last() else { break };
        after = Some((last.workspace, last.id));
        for store in &stores {
            examine_store(dump, store, &mut damage)?;
        }
    }
    examine_records(dump)?;
    examine_logs(dump, &mut damage)?;
    Ok(damage)
}

/// Reads every record: one that is damaged says so itself.
fn examine_records(dump: &mut dyn Dump) -> Result<(), StorageError> {
    let mut after = None;
    loop {
        let records = dump.records(after, PAGE)?;
        let Some(last) = records.last() else { return Ok(()) };
        after = Some((last.workspace, last.kind, last.id));
    }
}

/// Every log must have its entries without a gap, up to the one that it ends with.
fn examine_logs(dump: &mut dyn Dump, damage: &mut Vec<Damage>) -> Result<(), StorageError> {
    let mut after = None;
    loop {
        let logs = dump.logs(after, PAGE)?;
        let Some(last) = logs.last() else { return Ok(()) };
        after = Some(last.place);
        for log in &logs {
            let (mut count, mut newest) = (0, 0);
            loop {
                let entries = dump.entries(log.place, newest, PAGE)?;
                let Some(last) = entries.last() else { break };
                count += entries.len() as u64;
                newest = last.sequence;
            }
            if (count, newest) != (log.last, log.last) {
                damage.push(Damage::Log { log: log.place.1 });
            }
        }
    }
}

fn examine_store(dump: &mut dyn Dump, store: &Store, damage: &mut Vec<Damage>) -> Result<(), StorageError> {
    let place = (store.workspace, store.id);
    let (mut versions, mut after) = (HashMap::new(), 0);
    loop {
        let rows = dump.versions(place, after, PAGE)?;
        let Some(last) = rows.last() else { break };
        after = last.version.sequence;
        for row in rows {
            if !is_whole(&row) {
                damage.push(Damage::Content { memory: row.version.memory, version: row.version.id });
            }
            versions.insert(row.version.id, row.version);
        }
    }
    let (memories, bytes) = heads(dump, place, &versions, damage)?;
    let counters = store.counters;
    let counted = (memories, bytes, versions.len() as u64);
    // Above the floor no sequence is missing: each is a version or a mark.
    let told = versions.values().filter(|version| version.sequence > counters.floor).count() as u64
        + marks_above(dump, place, counters.floor)?;
    if counted != (counters.memories, counters.bytes, counters.versions)
        || counters.sequence < after
        || counters.sequence.checked_sub(counters.floor) != Some(told)
    {
        damage.push(Damage::Counters { store: store.id });
    }
    Ok(())
}

fn marks_above(dump: &mut dyn Dump, place: StorePlace, floor: u64) -> Result<u64, StorageError> {
    let (mut count, mut after) = (0, floor);
    loop {
        let marks = dump.marks(place, after, PAGE)?;
        let Some(last) = marks.last() else { return Ok(count) };
        after = last.sequence;
        count += marks.len() as u64;
    }
}

/// Looks at the heads of the live memories; returns how many there are, and how many bytes.
fn heads(
    dump: &mut dyn Dump,
    place: StorePlace,
    versions: &HashMap<VersionId, Version>,
    damage: &mut Vec<Damage>,
) -> Result<(u64, u64), StorageError> {
    let (mut count, mut bytes, mut after) = (0, 0, None);
    loop {
        let memories = dump.memories(place, after, PAGE)?;
        let Some(last) = memories.last() else { return Ok((count, bytes)) };
        after = Some(last.id);
        for memory in &memories {
            if !versions.get(&memory.version).is_some_and(|head| is_head(head, memory)) {
                damage.push(Damage::Head { memory: memory.id });
            }
            count += 1;
            bytes += memory.size_bytes;
        }
    }
}

fn is_head(head: &Version, memory: &Memory) -> bool {
    let recorded = head.recorded.as_ref();
    head.memory == memory.id
        && head.path.as_ref() == Some(&memory.path)
        && recorded
            .is_some_and(|r| r.content_sha256 == memory.content_sha256 && r.size_bytes == memory.size_bytes)
}
