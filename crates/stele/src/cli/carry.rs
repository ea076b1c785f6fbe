//! Arguments of what carries stores in and out.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::Address;

/// What becomes of something that is there already with another text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Conflict {
    /// Nothing is done at all.
    #[default]
    Refuse,
    /// It stays as it is.
    Skip,
    /// It is written over; the text before stays in the history.
    Overwrite,
}

#[derive(Debug, Args)]
pub(crate) struct Export {
    /// STORE, or STORE:/directory/ for a part of it.
    pub(crate) place: Address,
    /// The directory to write into; with --git the repository.
    pub(crate) dir: PathBuf,
    /// Write the history as a git repository, one commit a changeset; a second run adds what is new
    #[arg(long)]
    pub(crate) git: bool,
    /// Write the whole history anew, so that the repository holds no text that was redacted since
    #[arg(long, requires = "git")]
    pub(crate) rewrite: bool,
    /// What becomes of files that are there with another text
    #[arg(long, value_enum, default_value_t, conflicts_with = "git")]
    pub(crate) on_conflict: Conflict,
    /// Delete files that are not in the store
    #[arg(long, conflicts_with = "git")]
    pub(crate) delete_missing: bool,
    /// Leave out what cannot be a file; else nothing is written where there is such a memory
    #[arg(long)]
    pub(crate) partial: bool,
    /// Only show what would be done
    #[arg(long, short = 'n')]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Import {
    /// A directory, or whose memory files: claude-code or codex.
    pub(crate) source: PathBuf,
    /// Of claude-code and codex: the project's directory [default: the present one]
    pub(crate) dir: Option<PathBuf>,
    /// The store, or STORE:/directory/ for a place in it
    #[arg(long, value_name = "STORE[:/directory/]")]
    pub(crate) store: Address,
    /// Take the history of a git repository, each commit as a changeset; a second run adds what is new
    #[arg(long)]
    pub(crate) git: bool,
    /// The branch or commit whose history is taken
    #[arg(long, value_name = "REF", default_value = "HEAD", requires = "git")]
    pub(crate) branch: String,
    /// What becomes of memories that are there with another text
    #[arg(long, value_enum, default_value_t, conflicts_with = "git")]
    pub(crate) on_conflict: Conflict,
    /// Delete memories that have no file
    #[arg(long, conflicts_with = "git")]
    pub(crate) delete_missing: bool,
    /// Leave out files that cannot be memories; else nothing is sent where there is one
    #[arg(long)]
    pub(crate) partial: bool,
    /// Refuse a directory with more files than this
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(crate) max_files: usize,
    /// Only show what would change
    #[arg(long, short = 'n')]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Copy {
    /// The stores, by name or id; all that are not archived where none is named.
    pub(crate) stores: Vec<String>,
    /// Address of the server that has them
    #[arg(long, value_name = "URL")]
    pub(crate) from: String,
    /// Address of the server that gets them
    #[arg(long, value_name = "URL")]
    pub(crate) to: String,
    /// The environment variable with the key for the one that has them [default: as for any command]
    #[arg(long, value_name = "NAME")]
    pub(crate) from_key_env: Option<String>,
    /// The environment variable with the key for the one that gets them [default: as for any command]
    #[arg(long, value_name = "NAME")]
    pub(crate) to_key_env: Option<String>,
    /// Copy every version in order, not only the present texts
    #[arg(long)]
    pub(crate) history: bool,
    /// What becomes of memories that were changed in the copy
    #[arg(long, value_enum, default_value_t, conflicts_with = "history")]
    pub(crate) on_conflict: Conflict,
    /// Delete memories of the copy that are not in the store any more
    #[arg(long, conflicts_with = "history")]
    pub(crate) delete_missing: bool,
    /// Leave out what the other server does not take; else nothing is written where there is something
    #[arg(long)]
    pub(crate) partial: bool,
    /// Only show what would be done
    #[arg(long, short = 'n')]
    pub(crate) dry_run: bool,
    /// Print JSON for programs
    #[arg(long)]
    pub(crate) json: bool,
}
