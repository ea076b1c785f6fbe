//! Arguments of what carries stores in and out.

use std::path::{Path, PathBuf};

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

/// What an archive file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// The whole store with its history, ids and authors.
    Archive,
    /// The live memories as Markdown files.
    Markdown,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// STORE, or for a directory of files STORE:/directory/ for a part of it.
    #[arg(required_unless_present = "all")]
    pub(crate) place: Option<Address>,
    /// A file that ends with .tar.zst, else a directory; with --git the repository [default: the store's slug with .tar.zst]
    pub(crate) target: Option<PathBuf>,
    /// The file to write, whatever it is called; with --all the directory to write files into
    #[arg(long, short = 'o', value_name = "FILE", conflicts_with = "target")]
    pub(crate) output: Option<PathBuf>,
    /// What the file holds [default: archive]
    #[arg(long, value_enum, conflicts_with = "git")]
    pub(crate) format: Option<Format>,
    /// Write a file for each store
    #[arg(long, conflicts_with_all = ["place", "git"])]
    pub(crate) all: bool,
    /// Write the history as a git repository, one commit a changeset; a second run adds what is new
    #[arg(long, requires = "target")]
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
pub(crate) struct ImportArgs {
    /// An archive file, a directory, or whose memory files: claude-code or codex.
    pub(crate) source: PathBuf,
    /// Of claude-code and codex: the project's directory [default: the present one]
    pub(crate) dir: Option<PathBuf>,
    /// The store, or STORE:/directory/ for a place in it
    #[arg(long, value_name = "STORE[:/directory/]", required_unless_present = "restore")]
    pub(crate) store: Option<Address>,
    /// Put the store of an archive back with its ids, history and authors
    #[arg(long, conflicts_with_all = ["store", "git", "dry_run", "on_conflict"])]
    pub(crate) restore: bool,
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

/// An export into a directory or repository.
#[derive(Debug)]
pub(crate) struct Export {
    pub(crate) place: Address,
    pub(crate) dir: PathBuf,
    pub(crate) git: bool,
    pub(crate) rewrite: bool,
    pub(crate) on_conflict: Conflict,
    pub(crate) delete_missing: bool,
    pub(crate) partial: bool,
    pub(crate) dry_run: bool,
}

/// An import out of a directory, a repository or the memory files of a program.
#[derive(Debug)]
pub(crate) struct Import {
    pub(crate) source: PathBuf,
    pub(crate) dir: Option<PathBuf>,
    pub(crate) store: Address,
    pub(crate) git: bool,
    pub(crate) branch: String,
    pub(crate) on_conflict: Conflict,
    pub(crate) delete_missing: bool,
    pub(crate) partial: bool,
    pub(crate) max_files: usize,
    pub(crate) dry_run: bool,
}

impl ExportArgs {
    /// Of a store into a directory; `None` where it is to be a file.
    pub(crate) fn folder(&self) -> Option<Export> {
        let (place, dir) = (self.place.clone()?, self.target.clone()?);
        if !self.git && (is_archive(&dir) || self.format.is_some()) {
            return None;
        }
        Some(Export {
            place,
            dir,
            git: self.git,
            rewrite: self.rewrite,
            on_conflict: self.on_conflict,
            delete_missing: self.delete_missing,
            partial: self.partial,
            dry_run: self.dry_run,
        })
    }
}

/// Whether a file is an archive by its name.
fn is_archive(file: &Path) -> bool {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    [".tar.zst", ".tzst", ".tar.zstd"].iter().any(|end| name.ends_with(end))
}

impl ImportArgs {
    /// Whether it is out of an archive, which may be called anything.
    pub(crate) fn of_archive(&self) -> bool {
        self.restore || self.source.is_file() || (is_archive(&self.source) && !self.source.is_dir())
    }

    /// Of something else than an archive, into `store`.
    pub(crate) fn into(self, store: Address) -> Import {
        Import {
            source: self.source,
            dir: self.dir,
            store,
            git: self.git,
            branch: self.branch,
            on_conflict: self.on_conflict,
            delete_missing: self.delete_missing,
            partial: self.partial,
            max_files: self.max_files,
            dry_run: self.dry_run,
        }
    }
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
