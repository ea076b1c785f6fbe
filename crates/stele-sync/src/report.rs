//! What a pass did, or would do.

use std::path::PathBuf;

/// What became of one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// The store's text was written into the folder.
    Pulled,
    /// Both sides had changed: the store's text stands in the folder, the local one was kept in this file.
    Displaced(PathBuf),
    /// The file was deleted, as the memory was.
    RemovedHere,
    /// A memory was made.
    Created,
    /// The memory was changed.
    Updated,
    /// The memory got this path; before it had that of the field.
    Moved(String),
    /// The memory was deleted, as the file was.
    DeletedThere,
    /// Nothing: it stays different for now.
    Left(Left),
}

impl Done {
    /// One word for programs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Pulled => "pulled",
            Self::Displaced(_) => "displaced",
            Self::RemovedHere => "removed_here",
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Moved(_) => "moved",
            Self::DeletedThere => "deleted_in_store",
            Self::Left(left) => left.name(),
        }
    }
}

/// Why a path stays different.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Left {
    /// The store is attached read-only and the file has changed.
    ReadOnly,
    /// What lies there cannot be a memory, for this reason.
    Unfit(String),
    /// The server refuses it, in these words; not asked again until the file changes.
    Refused(String),
    /// One deletion too many: it is one of many at once.
    HeldBack,
    /// It was just written or just deleted; looked at again in the next pass.
    Settling,
    /// The memory cannot be a file here, for this reason.
    Blocked(String),
    /// Somebody else was quicker; looked at again in the next pass.
    Raced,
}

impl Left {
    fn name(&self) -> &'static str {
        match self {
            Self::ReadOnly => "read_only",
            Self::Unfit(_) => "unfit",
            Self::Refused(_) => "refused",
            Self::HeldBack => "held_back",
            Self::Settling => "settling",
            Self::Blocked(_) => "blocked",
            Self::Raced => "raced",
        }
    }
}

/// A path and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The path in the store, `/a/b.md`; for files that cannot have one, the path in the folder.
    pub path: String,
    /// What became of it.
    pub done: Done,
}

/// What a pass did, by path; what is the same on both sides is not listed.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The paths.
    pub items: Vec<Item>,
    /// How many paths are the same on both sides now.
    pub same: usize,
}

impl Report {
    pub(crate) fn add(&mut self, path: impl Into<String>, done: Done) {
        self.items.push(Item { path: path.into(), done });
    }

    /// Whether another writer came in between, so that another pass at once is worth its while.
    pub fn raced(&self) -> bool {
        self.items.iter().any(|item| item.done == Done::Left(Left::Raced))
    }
}
