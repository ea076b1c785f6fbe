//! Arguments of what makes stores directories.

use std::path::PathBuf;

use clap::Args;

use super::Attach;

/// Whose stores become directories.
#[derive(Debug, Args)]
pub(crate) struct Directories {
    /// All stores of this session, each in a directory of its own below DIR
    #[arg(long, value_name = "SESSION", required_unless_present = "store", conflicts_with = "store")]
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
