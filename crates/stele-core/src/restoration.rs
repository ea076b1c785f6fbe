//! Putting a store back with its ids and history: whether rows from elsewhere are a store, and what redactions that are
//! known here do to them. DESIGN 3.3 and 3.13.

use std::collections::{HashMap, HashSet};

use crate::backup::RedactionRecord;
use crate::command::RedactedPath;
use crate::feed::Past;
use crate::id::{MemoryId, VersionId};
use crate::model::{Counters, MarkKind, Memory, Operation, Store, Version, VersionText};
use crate::path::MemoryPath;
use crate::time::Timestamp;

/// What is wrong with rows, in words.
pub type Wrong = String;

/// Judges whether rows are a store as one comes about: live memories by path first, then the history, oldest first.
#[derive(Debug)]
pub struct Check {
    store: Store,
    /// Live memories, and whether their heads were seen as the last version of theirs so far.
    live: HashMap<MemoryId, (Memory, bool)>,
    /// Memories of the history that are not live and not deleted yet.
    dangling: HashSet<MemoryId>,
    last_path: Option<MemoryPath>,
    paths: HashSet<String>,
    bytes: u64,
    versions: u64,
    /// The last entry.
    last: Option<(u64, Timestamp)>,
    last_version: Option<VersionId>,
    /// The newest sequence that is not there.
    newest_gap: u64,
}

impl Check {
    /// Of rows that are to be this store; what its counters say is compared.
    pub fn new(store: Store) -> Self {
        Self {
            store,
            live: HashMap::new(),
            dangling: HashSet::new(),
            last_path: None,
            paths: HashSet::new(),
            bytes: 0,
            versions: 0,
            last: None,
            last_version: None,
            newest_gap: 0,
        }
    }

    /// A live memory; they come by path.
    ///
    /// # Errors
    /// It cannot be one beside the others.
    pub fn memory(&mut self, memory: &Memory) -> Result<(), Wrong> {
        if let Some(last) = &self.last_path
            && *last >= memory.path
        {
            return Err("it does not follow the one before by path".to_owned());
        }
        if memory.path.ancestors().any(|path| self.paths.contains(path)) {
            return Err("another memory is above it: a path is a memory or a directory".to_owned());
        }
        self.paths.insert(memory.path.as_str().to_owned());
        self.last_path = Some(memory.path.clone());
        self.bytes += memory.size_bytes;
        match self.live.insert(memory.id, (memory.clone(), false)) {
            None => Ok(()),
            Some(_) => Err("its id is that of another memory".to_owned()),
        }
    }

    /// The next entry of the history.
    ///
    /// # Errors
    /// It cannot follow what was before.
    pub fn past(&mut self, past: &Past) -> Result<(), Wrong> {
        let (sequence, at) = (past.sequence(), past.created_at());
        let (before, since) = self.last.unwrap_or((0, Timestamp::from_micros(i64::MIN)));
        if sequence <= before || at <= since {
            return Err("it does not follow the entry before in sequence and time".to_owned());
        }
        if sequence > before + 1 {
            self.newest_gap = sequence - 1;
        }
        self.last = Some((sequence, at));
        match past {
            Past::Version(text) => self.version(text),
            Past::Mark(mark) => match mark.kind {
                MarkKind::Redacted { .. } => Ok(()),
                MarkKind::StoreArchived if self.store.archived_at.is_some() => Ok(()),
                MarkKind::StoreArchived | MarkKind::StoreDeleted => {
                    Err("the store is not archived or deleted then".to_owned())
                }
            },
        }
    }

    fn version(&mut self, text: &VersionText) -> Result<(), Wrong> {
        let version = &text.version;
        if self.last_version.is_some_and(|last| last >= version.id) {
            return Err("its id does not follow those before".to_owned());
        }
        self.last_version = Some(version.id);
        self.versions += 1;
        match self.live.get_mut(&version.memory) {
            Some((memory, seen)) => {
                *seen = version.id == memory.version;
                if *seen && !is_head(version, memory) {
                    return Err(format!("it is the head of {} and says something else", memory.path));
                }
            }
            None if version.operation == Operation::Deleted => {
                self.dangling.remove(&version.memory);
            }
            None => {
                self.dangling.insert(version.memory);
            }
        }
        Ok(())
    }

    /// The counters of the store that the rows are, `floor` being the newest sequence that retention removed.
    ///
    /// # Errors
    /// What the rows leave open.
    pub fn end(self, floor: u64) -> Result<Counters, Vec<Wrong>> {
        let counters = self.store.counters;
        let mut wrong = Vec::new();
        let last = self.last.map_or(0, |(sequence, _)| sequence);
        if last > counters.sequence || (last < counters.sequence && floor < counters.sequence) {
            wrong.push(format!("the history ends at sequence {last}, the store at {}", counters.sequence));
        }
        if floor > counters.sequence || self.newest_gap > floor {
            let gap = self.newest_gap;
            wrong.push(format!("sequence {gap} is missing, though only those up to {floor} may be"));
        }
        let headless = self.live.values().filter(|(_, seen)| !seen);
        wrong.extend(headless.take(10).map(|(memory, _)| {
            format!("the head of {} is not the newest version of it in the history", memory.path)
        }));
        if !self.dangling.is_empty() {
            let count = self.dangling.len();
            wrong.push(format!("{count} memories of the history are neither live nor deleted"));
        }
        if self.live.len() as u64 != counters.memories || self.bytes != counters.bytes {
            wrong.push("the store counts other memories than there are".to_owned());
        }
        if wrong.is_empty() {
            Ok(Counters { floor, versions: self.versions, ..counters })
        } else {
            Err(wrong)
        }
    }
}

fn is_head(version: &Version, memory: &Memory) -> bool {
    let recorded = version.recorded.as_ref();
    version.operation != Operation::Deleted
        && version.path.as_ref() == Some(&memory.path)
        && recorded.is_some_and(|recorded| {
            recorded.content_sha256 == memory.content_sha256 && recorded.size_bytes == memory.size_bytes
        })
}

/// Redactions that are known here of a store that is put back.
#[derive(Debug, Default)]
pub struct Known(HashMap<VersionId, RedactionRecord>);

impl Known {
    /// These.
    pub fn new(records: Vec<RedactionRecord>) -> Self {
        Self(records.into_iter().map(|record| (record.version, record)).collect())
    }

    /// An entry after them.
    pub fn redact(&self, past: Past) -> Past {
        let Past::Version(text) = past else { return past };
        let Some(record) = self.0.get(&text.version.id) else { return Past::Version(text) };
        let mut version = text.version;
        version.recorded = None;
        // The first stamps stay.
        version.redaction = version.redaction.or(Some(record.redaction));
        version.path = version.path.filter(|_| record.path == RedactedPath::Keep);
        Past::Version(Box::new(VersionText { version, summary: None, reason: None, content: None }))
    }

    /// The deletion of a live memory whose present text was redacted: there is no other that it could show. `None` for a
    /// memory that lives on. `at` is after all times of the store.
    pub fn deletion(
        &self,
        memory: &Memory,
        sequence: u64,
        at: Timestamp,
        random: u64,
    ) -> Option<VersionText> {
        let record = self.0.get(&memory.version)?;
        let scrubbed = record.path == RedactedPath::Scrub;
        let at = record.redaction.at.max(at);
        let version = Version {
            id: VersionId::mint(at, random),
            store: memory.store,
            memory: memory.id,
            sequence,
            operation: Operation::Deleted,
            created_at: at,
            author: record.redaction.by,
            // Its path goes where it was to go: then the deletion counts as redacted too.
            path: (!scrubbed).then(|| memory.path.clone()),
            recorded: None,
            redaction: scrubbed.then_some(record.redaction),
        };
        Some(VersionText { version, summary: None, reason: None, content: None })
    }
}
