//! What a mount is made of, why one cannot be made, and how one is doing.

use std::path::PathBuf;

use serde::Serialize;

/// Whether a mount takes changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// The kernel itself refuses whatever would change something.
    ReadOnly,
    /// What is written goes to the server.
    ReadWrite,
}

/// Whom the files belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
}

/// What is mounted, where, and for whom.
#[derive(Clone, Debug)]
pub struct Options {
    /// The store's id, as a UUID.
    pub store: String,
    /// The store's name: for messages and the mount's status only.
    pub name: String,
    /// Whether the mount takes changes.
    pub access: Access,
    /// The directory to mount on. It must exist, and nothing may be mounted there.
    pub dir: PathBuf,
    /// Whom the files belong to.
    pub owner: Owner,
    /// Whether users other than who mounts may enter; needs root, or `user_allow_other` in `/etc/fuse.conf`.
    pub allow_other: bool,
    /// Most bytes of contents that are kept beside what the kernel keeps.
    pub cache_bytes: usize,
}

impl Options {
    /// Bytes of contents that are kept if nothing is said.
    pub const CACHE_BYTES: usize = 32 * 1024 * 1024;
}

/// Why a store cannot be mounted.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// Its tree cannot be read.
    #[error("cannot read the store {store}")]
    Store {
        /// The store's id.
        store: String,
        /// Why.
        #[source]
        source: stele_client::ClientError,
    },
    /// The operating system refuses the mount.
    #[error("cannot mount the store {store} at {dir} through /dev/fuse: {source}")]
    System {
        /// The store's id.
        store: String,
        /// The directory.
        dir: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// How a mount is doing.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// The store's id, as a UUID.
    pub store: String,
    /// Its name, when it was mounted.
    pub name: String,
    /// The directory it is mounted on.
    pub dir: PathBuf,
    /// Whether the mount takes changes.
    pub access: Access,
    /// Whether the store's changes are being followed: else what is shown may be old, and writes fail.
    pub server_reachable: bool,
    /// Whether the store was archived, and so is read-only for good.
    pub archived: bool,
    /// Why nothing is shown any more: `credential` (session over, key revoked), `store_deleted`, or null.
    pub ended: Option<&'static str>,
    /// The sequence that the tree reflects.
    pub last_sequence: u64,
    /// The life of the server's database that the sequence is of.
    pub epoch: String,
    /// Memories in the tree.
    pub memories: u64,
    /// Files with changes that are not committed yet.
    pub dirty_files: u64,
    /// Scratch files, which live on this mount only.
    pub scratch_files: u64,
    /// Reads that the cache of contents answered, out of those that the kernel's own cache did not.
    pub cache_hits: u64,
    /// Reads for which the server was asked.
    pub cache_misses: u64,
    /// Bytes of contents in the cache.
    pub cache_bytes: u64,
    /// Requests made to the server, without those that wait for changes.
    pub requests: u64,
    /// Requests that waited for changes.
    pub polls: u64,
    /// Files opened.
    pub opens: u64,
    /// Versions written.
    pub commits: u64,
}
