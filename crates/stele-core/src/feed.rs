//! A store's changes as they are told: what follows a sequence, oldest first, and the texts of many memories at once.
//! DESIGN 7.

use crate::id::{Epoch, MemoryId, VersionId};
use crate::model::{Mark, Operation, Store, Version, VersionText};
use crate::path::MemoryPath;
use crate::time::Timestamp;

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// One that wrote a version.
    Version {
        /// The version, as it is now.
        version: Box<Version>,
        /// Where the memory was before, if it moved and that may be told.
        previous_path: Option<MemoryPath>,
    },
    /// One that wrote none.
    Mark(Mark),
}

impl Told {
    /// A version with the version of the same memory just before it, if that is still kept.
    ///
    /// The path before is told only where it is another one, and where no redaction has taken either of them.
    pub fn version(version: Version, before: Option<Before>) -> Self {
        let moved = before.filter(|before| {
            !before.redacted && before.operation != Operation::Deleted && version.redaction.is_none()
        });
        let previous_path =
            moved.and_then(|before| before.path).filter(|path| Some(path) != version.path.as_ref());
        Self::Version { version: Box::new(version), previous_path }
    }

    /// Its place in the store's history.
    pub fn sequence(&self) -> u64 {
        match self {
            Self::Version { version, .. } => version.sequence,
            Self::Mark(mark) => mark.sequence,
        }
    }
}

/// What matters of the version before another one of the same memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Before {
    /// What it did.
    pub operation: Operation,
    /// Where the memory was then.
    pub path: Option<MemoryPath>,
    /// Whether its text is gone for good.
    pub redacted: bool,
}

/// What a back end knows of a store's changes behind a sequence, in one snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changes {
    /// The store; `None` once it is deleted. What was deleted with it may then be left out before the mark of its
    /// deletion.
    pub store: Option<Store>,
    /// Its last sequence.
    pub sequence: u64,
    /// The newest sequence that retention removed: what is asked for from below it cannot be told.
    pub floor: u64,
    /// The changes, oldest first and without gaps.
    pub told: Vec<Told>,
}

impl Changes {
    /// Changes out of versions and marks, each oldest first and as many as asked for, if there are as many.
    pub fn merged(versions: Vec<Told>, marks: Vec<Mark>, limit: usize) -> Vec<Told> {
        let mut told = versions;
        told.extend(marks.into_iter().map(Told::Mark));
        told.sort_by_key(Told::sequence);
        told.truncate(limit);
        told
    }
}

/// An entry of a store's history with all that is kept of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Past {
    /// One that wrote a version.
    Version(Box<VersionText>),
    /// One that wrote none.
    Mark(Mark),
}

impl Past {
    /// Its place in the store's history.
    pub fn sequence(&self) -> u64 {
        match self {
            Self::Version(text) => text.version.sequence,
            Self::Mark(mark) => mark.sequence,
        }
    }

    /// When it happened.
    pub fn created_at(&self) -> Timestamp {
        match self {
            Self::Version(text) => text.version.created_at,
            Self::Mark(mark) => mark.created_at,
        }
    }
}

/// A stretch of a store's history, read in one snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    /// The store.
    pub store: Store,
    /// Entries oldest first, without gaps above the store's floor.
    pub past: Vec<Past>,
}

/// Where a reader stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The last sequence that it knows of.
    pub after: u64,
    /// The life of the database that it has that from, where it says so.
    pub epoch: Option<Epoch>,
}

/// Whether a reader may be told of a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// It asks for the first time: a deleted store is not there.
    New,
    /// It has followed the store since before.
    Following,
}

/// A text that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The present one of a live memory.
    Memory(MemoryId),
    /// That of a version.
    Version(VersionId),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{KeyId, StoreId};
    use crate::model::{Actor, Redaction};

    const AT: Timestamp = Timestamp::from_micros(1);

    fn version(path: &str) -> Version {
        Version {
            id: VersionId::from_bytes([1; 16]),
            store: StoreId::from_bytes([2; 16]),
            memory: MemoryId::from_bytes([3; 16]),
            sequence: 7,
            operation: Operation::Updated,
            created_at: AT,
            author: Actor::ApiKey(KeyId::from_bytes([4; 16])),
            path: MemoryPath::parse(path).ok(),
            recorded: None,
            redaction: None,
        }
    }

    fn previous(version: Version, before: Option<Before>) -> Option<String> {
        match Told::version(version, before) {
            Told::Version { previous_path, .. } => previous_path.map(|path| path.as_str().to_owned()),
            Told::Mark(_) => unreachable!("a version"),
        }
    }

    #[test]
    fn the_path_before_is_told_where_it_moved_and_nothing_was_redacted() {
        let before =
            Before { operation: Operation::Updated, path: MemoryPath::parse("/a").ok(), redacted: false };
        let told = |before: &Before| previous(version("/b"), Some(before.clone()));
        assert_eq!(told(&before).as_deref(), Some("/a"));
        assert_eq!(previous(version("/a"), Some(before.clone())), None, "it did not move");
        assert_eq!(previous(version("/b"), None), None, "gone");
        assert_eq!(told(&Before { redacted: true, ..before.clone() }), None);
        assert_eq!(told(&Before { path: None, ..before.clone() }), None);
        assert_eq!(told(&Before { operation: Operation::Deleted, ..before.clone() }), None, "it was nowhere");
        let by = Actor::ApiKey(KeyId::from_bytes([4; 16]));
        let redacted = Version { redaction: Some(Redaction { at: AT, by }), ..version("/b") };
        assert_eq!(previous(redacted, Some(before)), None);
    }
}
