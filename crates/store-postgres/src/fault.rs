//! What goes wrong below the port, and what a caller is told of it.

use stele_core::id::StoreId;
use stele_core::refusal::Refusal;
use stele_core::storage::{Error, StorageError};
use tokio_postgres::error::SqlState;

/// A failure of PostgreSQL, of the way to it, or of what is stored in it.
#[derive(Debug)]
pub(crate) enum Fault {
    /// PostgreSQL's or the driver's.
    Postgres(tokio_postgres::Error),
    /// No connection was to be had in time, or too much waits.
    Busy,
    /// Nothing came back in time, so nothing is known.
    Silent,
    /// The storage is closing.
    Closed,
    /// The record named is damaged.
    Damaged(String),
    /// The store is being put back already, or was by a process that is gone; for so many seconds from now at least.
    Restoring(StoreId, u32),
}

impl From<tokio_postgres::Error> for Fault {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Postgres(error)
    }
}

impl Fault {
    /// Whether the same transaction may well pass if it is run once more: PostgreSQL chose it as a victim.
    pub(crate) fn is_conflict(&self) -> bool {
        matches!(self.code(), Some(code) if *code == SqlState::T_R_SERIALIZATION_FAILURE || *code == SqlState::T_R_DEADLOCK_DETECTED)
    }

    /// Whether the connection is gone, or is to be given up: what was not committed is not.
    pub(crate) fn is_lost(&self) -> bool {
        match self {
            Self::Postgres(error) => match error.code() {
                // 25006: a primary that became a standby.
                Some(code) => {
                    code.code().starts_with("08")
                        || code.code().starts_with("57P")
                        || *code == SqlState::READ_ONLY_SQL_TRANSACTION
                }
                None => true,
            },
            Self::Silent => true,
            Self::Busy | Self::Closed | Self::Damaged(_) | Self::Restoring(..) => false,
        }
    }

    fn code(&self) -> Option<&SqlState> {
        match self {
            Self::Postgres(error) => error.code(),
            _ => None,
        }
    }

    /// The same failure once more, for the next one who waits for it.
    pub(crate) fn again(&self) -> StorageError {
        match self {
            Self::Busy => StorageError::Overloaded,
            Self::Closed | Self::Silent => StorageError::Unavailable(None),
            Self::Damaged(what) => StorageError::Corrupt(what.clone()),
            Self::Restoring(store, secs) => StorageError::Restoring { store: *store, secs: *secs },
            Self::Postgres(error) => kind(error, || error.to_string().into()),
        }
    }
}

type Cause = Box<dyn std::error::Error + Send + Sync>;

fn kind(error: &tokio_postgres::Error, cause: impl FnOnce() -> Cause) -> StorageError {
    let Some(code) = error.code() else { return StorageError::Unavailable(Some(cause())) };
    match code.code() {
        // Too many connections; a lock or a statement that took too long; still a conflict after all repeats.
        "53300" | "55P03" | "57014" | "40001" | "40P01" => StorageError::Overloaded,
        "53100" => StorageError::Full,
        "XX001" | "XX002" => StorageError::Corrupt("PostgreSQL reports damaged data".into()),
        // A password or role that no longer holds is the operator's to mend; so is a database that is gone.
        "25006" | "28000" | "28P01" | "3D000" => StorageError::Unavailable(Some(cause())),
        code if code.starts_with("08") || code.starts_with("57P") || code.starts_with("53") => {
            StorageError::Unavailable(Some(cause()))
        }
        _ => StorageError::Internal(cause()),
    }
}

impl From<Fault> for StorageError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Postgres(error) => match kind(&error, || "".into()) {
                Self::Unavailable(_) => Self::Unavailable(Some(Box::new(error))),
                Self::Internal(_) => Self::Internal(Box::new(error)),
                other => other,
            },
            other => other.again(),
        }
    }
}

/// Why a write did not happen.
#[derive(Debug)]
pub(crate) enum Stop {
    /// A rule refuses it.
    Refused(Refusal),
    /// A failure.
    Fault(Fault),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<tokio_postgres::Error> for Stop {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Fault(error.into())
    }
}

impl From<Stop> for Error {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Refused(refusal) => refusal.into(),
            Stop::Fault(fault) => Self::Failed(fault.into()),
        }
    }
}

impl From<Stop> for StorageError {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Refused(refusal) => Self::Internal(Box::new(refusal)),
            Stop::Fault(fault) => fault.into(),
        }
    }
}
