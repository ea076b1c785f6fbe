//! What the commands of one transaction have decided so far, and what of the loaded situations still holds.

use std::collections::{HashMap, HashSet};

use stele_core::command::{Command, MemoryRef};
use stele_core::decide::{Current, Outcome, Situation, Write};
use stele_core::id::{MemoryId, VersionId};
use stele_core::model::Store;
use stele_core::path::MemoryPath;
use stele_core::time::Timestamp;

use crate::load::Loaded;

/// The writes of a transaction, and what they touched.
pub(crate) struct Draft {
    /// The store as it now is; `None` if there is none, or none any more.
    store: Option<Store>,
    memories_cap: Option<u64>,
    /// The newest time of a change, if there was one.
    pub(crate) changed_at: Option<Timestamp>,
    /// Writes that were not sent yet; those of the store's own row come last, in [`Self::row`].
    pub(crate) writes: Vec<Write>,
    row: Row,
    /// Memories touched, as they now are, if that is known.
    memories: HashMap<MemoryId, Option<Current>>,
    versions: HashSet<VersionId>,
    paths: Vec<MemoryPath>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Row {
    Same,
    Counters,
    Fields,
}

/// What is to become of the store's row.
pub(crate) enum StoreRow<'a> {
    /// Nothing.
    Same,
    /// Its counters are new.
    Counters(&'a Store),
    /// Its own fields too.
    Fields(&'a Store),
}

impl Draft {
    pub(crate) fn new(store: Option<Store>, memories_cap: Option<u64>) -> Self {
        Self {
            store,
            memories_cap,
            changed_at: None,
            writes: Vec::new(),
            row: Row::Same,
            memories: HashMap::new(),
            versions: HashSet::new(),
            paths: Vec::new(),
        }
    }

    /// The situation of a command, from what was loaded before the writes of this draft; `None` if that must be
    /// loaded again, after them.
    pub(crate) fn situation(&self, command: &Command, mut loaded: Loaded) -> Option<Situation> {
        let version = loaded.version.as_ref().map(|(version, _)| version);
        if version.is_some_and(|v| self.versions.contains(&v.id) || self.memories.contains_key(&v.memory)) {
            return None;
        }
        let disturbs = |wanted: &MemoryPath| self.paths.iter().any(|path| path.overlaps(wanted));
        match command.memory() {
            Some(MemoryRef::Id(id)) => {
                if let Some(now) = self.memories.get(id) {
                    loaded.memory = now.clone();
                }
            }
            Some(MemoryRef::Path(path)) if disturbs(path) => return None,
            Some(MemoryRef::Path(_)) | None => {}
        }
        if loaded.wanted(command).is_some_and(disturbs) {
            return None;
        }
        Some(self.fresh(loaded))
    }

    /// The situation of a command out of what was loaded after all writes so far.
    pub(crate) fn fresh(&self, loaded: Loaded) -> Situation {
        let Loaded { version, memory, occupant } = loaded;
        Situation { store: self.store.clone(), memory, version, occupant, memories_cap: self.memories_cap }
    }

    /// Takes the writes of a decision.
    pub(crate) fn take(
        &mut self,
        command: &Command,
        before: &Situation,
        writes: Vec<Write>,
        outcome: &Outcome,
    ) {
        if writes.is_empty() {
            return;
        }
        let now = match outcome {
            Outcome::Memory(now) => Some((now.memory.id, Some((**now).clone()))),
            Outcome::MemoryDeleted(id) => Some((*id, None)),
            Outcome::Store(_) | Outcome::StoreDeleted(_) | Outcome::Version(_) => None,
        };
        if let Some((id, now)) = now {
            self.paths.extend(before.memory.as_ref().map(|old| old.memory.path.clone()));
            self.paths.extend(now.as_ref().map(|now| now.memory.path.clone()));
            self.memories.insert(id, now);
        }
        self.versions.extend(command.version());
        for write in writes {
            match write {
                Write::Counters { changed_at, counters } => {
                    if let Some(store) = &mut self.store {
                        (store.changed_at, store.counters) = (changed_at, counters);
                    }
                    self.row = self.row.or(Row::Counters);
                }
                Write::Store(store) => {
                    self.store = Some(*store);
                    self.row = Row::Fields;
                }
                Write::DeleteStore { at, sequence } => {
                    self.store = None;
                    self.writes.push(Write::DeleteStore { at, sequence });
                }
                other => self.writes.push(other),
            }
        }
    }

    /// What is to be written to the store's row: once a transaction, however many commands moved it.
    pub(crate) fn store_row(&self) -> StoreRow<'_> {
        match (&self.store, self.row) {
            (None, _) | (_, Row::Same) => StoreRow::Same,
            (Some(store), Row::Counters) => StoreRow::Counters(store),
            (Some(store), Row::Fields) => StoreRow::Fields(store),
        }
    }
}

impl Row {
    fn or(self, other: Row) -> Row {
        if self == Row::Fields { self } else { other }
    }
}
