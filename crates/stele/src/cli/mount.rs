//! Arguments of what makes stores directories.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use serde::{Deserialize, Serialize};

use super::Attach;

/// Whose stores become directories.
#[derive(Debug, Args)]
pub(crate) struct Directories {
    /// All stores of this session, each in a directory of its own below DIR
    #[arg(long, value_name = "SESSION", conflicts_with = "store")]
    pub(crate) session: Option<String>,
    /// A store, read-only with :ro; several get a directory each below DIR, by slug
    #[arg(long, value_name = "STORE[:ro]")]
    pub(crate) store: Vec<Attach>,
}

#[derive(Debug, Args)]
pub(crate) struct SyncFolder {
    #[command(flatten)]
    pub(crate) directories: Directories,
    /// The folder; made where it is missing.
    pub(crate) dir: PathBuf,
    /// Go on until stopped: changes of either side reach the other within seconds
    #[arg(long, short)]
    pub(crate) watch: bool,
    /// Only show what would be done
    #[arg(long, short = 'n', conflicts_with = "watch")]
    pub(crate) dry_run: bool,
    /// Take the files of a folder that was never synced into the store
    #[arg(long)]
    pub(crate) adopt: bool,
    /// Delete all memories whose files are gone, however many there are
    #[arg(long, conflicts_with = "watch")]
    pub(crate) delete_all: bool,
}

/// What becomes of files beside the stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Scratch {
    /// Refused.
    None,
    /// Taken, and lost when the mount ends.
    Session,
}

/// What is mounted and how, or what is to happen with a mount that runs.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct MountStores {
    #[command(subcommand)]
    pub(crate) action: Option<MountAction>,
    #[command(flatten)]
    pub(crate) directories: Directories,
    /// Where: made where it is missing [default with --session: /mnt/memory]
    pub(crate) dir: Option<PathBuf>,
    /// Go on in the background; returns once the stores are mounted
    #[arg(long)]
    pub(crate) daemon: bool,
    /// Replace the process of the mount at the same path when it dies; a daemon does so anyway
    #[arg(long)]
    pub(crate) supervise: bool,
    /// As a daemon, do without that
    #[arg(long, requires = "daemon", conflicts_with = "supervise")]
    pub(crate) no_supervise: bool,
    /// Take no changes, whatever access is given
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Let users other than this one in
    #[arg(long)]
    pub(crate) allow_other: bool,
    /// Show this user as the owner, and let him in [default: this user]
    #[arg(long, value_name = "UID")]
    pub(crate) uid: Option<u32>,
    /// Show this group as the owner [default: this user's group]
    #[arg(long, value_name = "GID")]
    pub(crate) gid: Option<u32>,
    /// Files beside the stores, in DIR, where each store has a directory: refused, or taken and lost at the end
    #[arg(long, value_enum, default_value_t = Scratch::None)]
    pub(crate) scratch: Scratch,
    /// Only look whether this machine can mount, and say what is missing
    #[arg(long, conflicts_with_all = ["session", "store", "dir"])]
    pub(crate) check: bool,
    /// The process that holds mounts; started by `stele mount`
    #[arg(long, hide = true)]
    pub(crate) worker: bool,
    /// The process that replaces it; started by `stele mount`
    #[arg(long, hide = true)]
    pub(crate) supervisor: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MountAction {
    /// Show the mounts that run: server, sequence, uncommitted files, cache.
    Status {
        /// Of this directory only.
        dir: Option<PathBuf>,
    },
    /// Commit what is open, and unmount.
    Stop {
        /// The directory that was given to `stele mount`, or one store's.
        dir: PathBuf,
    },
}
