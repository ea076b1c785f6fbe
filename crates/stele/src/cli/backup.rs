//! Arguments of what makes, checks and restores backups.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{ClientFlags, Place};

/// `stele backup`: without a subcommand it makes one.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Backup {
    #[command(subcommand)]
    pub(crate) action: Option<BackupAction>,
    /// The directory to keep it in; it becomes a directory there, named by the time.
    #[arg(long, value_name = "DIR")]
    pub(crate) to: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) of: Installed,
}

#[derive(Debug, Args)]
pub(crate) struct CreateBackup {
    /// The directory to keep it in; it becomes a directory there, named by the time.
    #[arg(long, value_name = "DIR")]
    pub(crate) to: PathBuf,
    #[command(flatten)]
    pub(crate) of: Installed,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BackupAction {
    /// Make a backup, also while a server runs: `stele backup --to DIR` for short.
    Create(CreateBackup),
    /// List the backups that were made, and what redacted text they may still hold.
    List(Installed),
    /// Read backups whole and say whether they are sound; without PATH all that were made here.
    Verify {
        /// Directories of backups.
        paths: Vec<PathBuf>,
        #[command(flatten)]
        of: Installed,
    },
    /// Rewrite the backups that may hold redacted text, without it.
    Scrub {
        /// Only these, by id or directory.
        backups: Vec<String>,
        #[command(flatten)]
        of: Installed,
    },
    /// Forget a backup that was removed or is looked after elsewhere; touches no file.
    Forget {
        /// Its id or directory.
        backup: String,
        #[command(flatten)]
        of: Installed,
    },
}

/// Which installation: a running server, or the database of a stopped one.
#[derive(Debug, Args)]
pub(crate) struct Installed {
    #[command(flatten)]
    pub(crate) place: Place,
    #[command(flatten)]
    pub(crate) client: ClientFlags,
}

#[derive(Debug, Args)]
pub(crate) struct RestoreBackup {
    /// The directory of the backup.
    pub(crate) backup: PathBuf,
    #[command(flatten)]
    pub(crate) place: Place,
    /// A data directory, PostgreSQL or newer backup whose redactions are carried out too; may be repeated.
    #[arg(long, value_name = "DIR|URL")]
    pub(crate) redactions_from: Vec<String>,
    /// Replace the database there although it is damaged: the redactions that it knows of are lost with it
    #[arg(long)]
    pub(crate) replace_unreadable: bool,
    /// Ask nothing
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Print JSON for programs
    #[arg(long)]
    pub(crate) json: bool,
}
