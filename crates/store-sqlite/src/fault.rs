//! What goes wrong below the port, and what a caller is told of it.

use rusqlite::ErrorCode;
use stele_core::id::StoreId;
use stele_core::records::CommitError;
use stele_core::refusal::Refusal;
use stele_core::storage::{Error, StorageError};

/// A failure of SQLite or of what is stored in it.
#[derive(Debug)]
pub(crate) enum Fault {
    /// SQLite's.
    Sqlite(rusqlite::Error),
    /// The record named is damaged.
    Damaged(String),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<Fault> for StorageError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Damaged(what) => Self::Corrupt(what),
            Fault::Sqlite(error) => match error.sqlite_error_code() {
                Some(ErrorCode::DiskFull) => Self::Full,
                Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                    Self::Corrupt(error.to_string())
                }
                Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::SystemIoFailure) => {
                    Self::Unavailable(Some(Box::new(error)))
                }
                _ => Self::Internal(Box::new(error)),
            },
        }
    }
}

/// After how many seconds one may look whether a store is still being put back: it takes as long as it takes.
const RESTORING_SECS: u32 = 10;

/// Why a write did not happen: it touches only itself.
#[derive(Debug)]
pub(crate) enum Stop {
    /// A rule refuses it; with the sequence of the store, where that is there.
    Refused(Refusal, Option<u64>),
    /// Another writer came before this write of a commit.
    Conflict(usize),
    /// The disk has no room for it.
    Full,
    /// This process is putting the store back already.
    Restoring(StoreId),
    /// A failure.
    Fault(Fault),
}

impl Stop {
    /// SQLite's failure, if it was one.
    pub(crate) fn sqlite(&self) -> Option<&rusqlite::Error> {
        match self {
            Self::Fault(Fault::Sqlite(error)) => Some(error),
            Self::Fault(Fault::Damaged(_))
            | Self::Refused(..)
            | Self::Conflict(_)
            | Self::Full
            | Self::Restoring(_) => None,
        }
    }
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal, None)
    }
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<rusqlite::Error> for Stop {
    fn from(error: rusqlite::Error) -> Self {
        Self::Fault(error.into())
    }
}

impl From<Stop> for Error {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Refused(refusal, sequence) => Self::refused(refusal, sequence),
            Stop::Conflict(at) => Self::Failed(StorageError::Internal(Box::new(CommitError::Conflict(at)))),
            Stop::Full => Self::Failed(StorageError::Full),
            Stop::Restoring(store) => Self::Failed(StorageError::Restoring { store, secs: RESTORING_SECS }),
            Stop::Fault(fault) => Self::Failed(fault.into()),
        }
    }
}
