//! What the processes of a mount need to know.

use std::io::{PipeReader, Read, Write};
use std::path::PathBuf;

use anyhow::Context;
use serde::{Deserialize, Serialize};

use crate::cli::Scratch;

/// A store and where it is mounted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StoreSetup {
    /// Its id, `memstore_...`.
    pub(super) id: String,
    /// The same as a UUID.
    pub(super) uuid: String,
    pub(super) name: String,
    /// The mount point, absolute.
    pub(super) dir: PathBuf,
    pub(super) read_only: bool,
}

/// All that is known of a mount.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Setup {
    pub(super) url: String,
    /// A session's token, or a key.
    pub(super) credential: String,
    /// What the person named: the mount point of the one store, or the parent of all. Absolute.
    pub(super) dir: PathBuf,
    /// The rule of the parent; `None` where the one store is mounted at `dir` itself.
    pub(super) parent: Option<Scratch>,
    pub(super) stores: Vec<StoreSetup>,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) allow_other: bool,
    /// Whether the processes go on without a terminal.
    pub(super) daemon: bool,
    /// The process that prepares the place and replaces the worker; `None`: the worker does without.
    pub(super) supervisor: Option<u32>,
    /// What the supervisor made, for a worker that outlives it.
    pub(super) made: Vec<PathBuf>,
    /// Whether the place was prepared, and mounts may lie dead there, because a worker before this one died.
    pub(super) again: bool,
}

impl Setup {
    /// The setup that the process was started with, from standard input.
    ///
    /// # Errors
    /// There is none: the process was started by hand.
    pub(super) fn receive() -> anyhow::Result<Self> {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes)?;
        serde_json::from_slice(&bytes).context("this is started by `stele mount` itself")
    }

    /// The setup as another process's standard input.
    pub(super) fn send(&self) -> anyhow::Result<PipeReader> {
        let (reader, mut writer) = std::io::pipe()?;
        let bytes = serde_json::to_vec(self)?;
        // A pipe takes 64 KiB without a reader; a setup of eight stores is a fraction of that.
        writer.write_all(&bytes).context("the mount's setup is too large")?;
        Ok(reader)
    }

    /// The stores' names, for messages.
    pub(super) fn named(&self) -> String {
        let named = |store: &StoreSetup| format!("{} ({}) at {}", store.name, store.id, store.dir.display());
        self.stores.iter().map(named).collect::<Vec<_>>().join(", ")
    }
}
