//! Arguments of what works on stores and memories.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand, ValueEnum};

use super::{Grep, Watch};

/// A store by name, slug or id, and a path in it: `STORE`, `STORE:/` or `STORE:/path`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) store: String,
    pub(crate) path: Option<String>,
}

impl FromStr for Address {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (store, path) = match text.split_once(":/") {
            Some((store, path)) => (store, Some(format!("/{path}"))),
            None => (text.strip_suffix(':').unwrap_or(text), None),
        };
        match store {
            "" => Err("a store comes first, as in STORE:/path"),
            path if path.starts_with('/') => {
                Err("a path alone is not enough: put its store before it, as in STORE:/path")
            }
            _ => Ok(Self { store: store.into(), path }),
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Store {
    /// Make a store.
    Create {
        /// Its name.
        name: String,
        /// What it is for.
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
        /// Metadata as KEY=VALUE; may be repeated.
        #[arg(long, value_name = "KEY=VALUE")]
        metadata: Vec<String>,
    },
    /// List the stores, newest first.
    List {
        /// Show archived ones too
        #[arg(long)]
        archived: bool,
    },
    /// Show one store.
    Show {
        /// Its name, slug or id.
        store: String,
    },
    /// Change the name, description or metadata of a store.
    Update {
        /// Its name, slug or id.
        store: String,
        /// A new name.
        #[arg(long)]
        name: Option<String>,
        /// A new description; empty to clear it.
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
        /// Metadata to set as KEY=VALUE, or to remove as KEY; may be repeated.
        #[arg(long, value_name = "KEY[=VALUE]")]
        metadata: Vec<String>,
    },
    /// Follow the changes of a store, one line each, until it is deleted.
    Watch(Watch),
    /// Make a store read-only; this cannot be undone.
    Archive(Drastic),
    /// Delete a store with its memories and their history; this cannot be undone.
    Delete(Drastic),
}

#[derive(Debug, Args)]
pub(crate) struct Drastic {
    /// Its name, slug or id.
    pub(crate) store: String,
    /// Ask nothing
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Memory {
    /// List stores, or what is in one.
    #[command(visible_alias = "ls")]
    List(List),
    /// Print memories, byte for byte unless on a terminal.
    #[command(visible_alias = "cat")]
    Read(Read),
    /// Write a memory from a file or standard input.
    Write(Write),
    /// Edit a memory in $VISUAL or $EDITOR.
    Edit(Edit),
    /// Give a memory another path.
    #[command(visible_alias = "mv")]
    Move(Move),
    /// Delete memories; their history stays.
    #[command(visible_alias = "rm")]
    Delete(Remove),
    /// Take the files of a directory into a store.
    Put(Put),
    /// Show a store as a tree.
    Tree(Tree),
    /// Write the text of an old version back.
    Restore(Restore),
    /// Print the lines of memories that match a pattern; ends with 1 where none does.
    Grep(Grep),
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// STORE[:/directory/]; the stores where none is given.
    pub(crate) place: Option<Address>,
    /// Also what lies in directories
    #[arg(long, short = 'R')]
    pub(crate) recursive: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Read {
    /// STORE:/path of each.
    #[arg(required = true)]
    pub(crate) memories: Vec<Address>,
}

#[derive(Debug, Args)]
pub(crate) struct Tree {
    /// STORE[:/directory/].
    pub(crate) place: Address,
}

#[derive(Debug, Args)]
pub(crate) struct Write {
    /// STORE:/path.
    pub(crate) memory: Address,
    /// Take the text from this file instead of standard input
    #[arg(long, short, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Only where there is no memory yet
    #[arg(long, conflicts_with = "expect")]
    pub(crate) create: bool,
    /// Only over a text with this SHA-256
    #[arg(long, value_name = "SHA256")]
    pub(crate) expect: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Edit {
    /// STORE:/path.
    pub(crate) memory: Address,
}

#[derive(Debug, Args)]
pub(crate) struct Move {
    /// STORE:/path.
    pub(crate) from: Address,
    /// The new path; one that ends with / keeps the name.
    pub(crate) to: String,
}

#[derive(Debug, Args)]
pub(crate) struct Remove {
    /// STORE:/path of each.
    #[arg(required = true)]
    pub(crate) memories: Vec<Address>,
    /// Also all that lies in directories
    #[arg(long, short)]
    pub(crate) recursive: bool,
    /// Only show what would be deleted
    #[arg(long, short = 'n')]
    pub(crate) dry_run: bool,
    /// Ask nothing
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Put {
    /// The directory.
    pub(crate) dir: PathBuf,
    /// STORE[:/prefix].
    pub(crate) target: Address,
    /// Only show what would be done
    #[arg(long, short = 'n')]
    pub(crate) dry_run: bool,
    /// Leave out files that cannot be memories; else nothing is sent where there is one
    #[arg(long)]
    pub(crate) skip_invalid: bool,
    /// Refuse a directory with more files than this
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(crate) max_files: usize,
}

#[derive(Debug, Args)]
pub(crate) struct Log {
    /// STORE or STORE:/path; the path of a deleted memory too.
    pub(crate) place: Address,
    /// How many entries at most
    #[arg(long, short = 'n', value_name = "N", default_value_t = 50)]
    pub(crate) limit: usize,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum When {
    /// On a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// STORE:/path.
    pub(crate) memory: Address,
    /// The older version: its id, or @N for the Nth before the present one.
    #[arg(default_value = "@1")]
    pub(crate) from: String,
    /// The newer version.
    #[arg(default_value = "@0")]
    pub(crate) to: String,
    /// When to use colours
    #[arg(long, value_enum, default_value_t = When::Auto)]
    pub(crate) color: When,
}

#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// STORE:/path; the path of a deleted memory too.
    pub(crate) memory: Address,
    /// The version: its id, or @N for the Nth before the newest one.
    pub(crate) version: String,
    /// Only show what would change
    #[arg(long, short = 'n')]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Redact {
    /// STORE, or STORE:/path.
    pub(crate) place: Address,
    /// The versions: their ids, or with a path also @N for the Nth before the newest one.
    #[arg(required = true)]
    pub(crate) versions: Vec<String>,
    /// Only show what would be redacted
    #[arg(long, short = 'n')]
    pub(crate) dry_run: bool,
    /// Ask nothing
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Merge {
    /// STORE:/path.
    pub(crate) memory: Address,
    /// The displaced version: its id, or @N for the Nth before the present one.
    pub(crate) version: String,
    /// What both sides began with [default: the version before the displaced one]
    #[arg(long, value_name = "VERSION")]
    pub(crate) base: Option<String>,
    /// Only print the merged text
    #[arg(long, short = 'n')]
    pub(crate) dry_run: bool,
}
