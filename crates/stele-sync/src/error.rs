//! Why a folder cannot be synced.

use std::io;
use std::path::PathBuf;

use stele_client::ClientError;

/// Why a folder cannot be synced. Nothing of it is about a single memory: those are in the report.
#[derive(Debug, thiserror::Error)]
pub enum SyncError {
    /// The server refuses, or cannot be reached.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The store is not there. The folder is left as it is: what was deleted elsewhere cannot be told from what a server
    /// that lost its data never knew.
    #[error("the store {store} is not there any more; the files in {dir} are left as they are")]
    StoreGone {
        /// The store's id.
        store: String,
        /// The folder.
        dir: PathBuf,
    },
    /// The answer is not what a Stele server gives.
    #[error("the server's answer is not understood: {0}")]
    Strange(String),
    /// The folder holds files and was never synced.
    #[error(
        "{0} holds files already and was never synced: name an empty folder, or take its files into the store with --adopt"
    )]
    NotEmpty(PathBuf),
    /// The folder belongs to another store.
    #[error("{dir} is the folder of the store {is}, not of {wanted}: name another folder")]
    OtherStore {
        /// The folder.
        dir: PathBuf,
        /// Whose it is.
        is: String,
        /// Whose it should be.
        wanted: String,
    },
    /// Another process syncs the folder.
    #[error("{0} is being synced by another process")]
    InUse(PathBuf),
    /// What was written down about the last pass cannot be read.
    #[error(
        "{file} is damaged ({cause}): delete it and sync again with --adopt; texts that differ are then kept aside"
    )]
    Damaged {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        cause: String,
    },
    /// A file or folder cannot be read or written.
    #[error("{what} {path}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
}

impl SyncError {
    pub(crate) fn io(what: &'static str, path: impl Into<PathBuf>, error: impl Into<io::Error>) -> Self {
        Self::Io { what, path: path.into(), source: error.into() }
    }

    /// Whether it may pass by itself: no server, an overloaded one, one that is starting.
    pub fn passes(&self) -> bool {
        match self {
            Self::Client(ClientError::Refused { status, .. }) => *status == 429 || *status >= 500,
            Self::Client(_) => true,
            _ => false,
        }
    }
}
