//! The command line.

mod admin;
mod backup;
mod carry;
mod find;
mod mcp;
mod memory;
mod model;
mod mount;
mod work;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub(crate) use admin::{
    ConfigAction, ConfigCheck, CreateKey, Db, Key, Place, RoleName, ServeFlags, Workspace,
};
pub(crate) use backup::{Backup, BackupAction, CreateBackup, Installed, RestoreBackup};
pub(crate) use carry::{Conflict, Copy, Export, ExportArgs, Format, Import as CarryIn, ImportArgs};
pub(crate) use find::{Grep, Search, Watch};
pub(crate) use mcp::Mcp;
pub(crate) use memory::{
    Address, Diff, Drastic, Edit, List, Log, Memory, Merge, Move, Put, Read, Redact, Remove, Restore, Store,
    Tree, When, Write,
};
pub(crate) use model::{Model, ModelPlace};
pub(crate) use mount::{Directories, MountAction, MountStores, Scratch, SyncFolder};
pub(crate) use work::{Agent, Attach, Environment, Import, Made, Moment, Program, RecordedSession};

/// A self-hosted memory server for AI agents.
#[derive(Debug, Parser)]
#[command(name = "stele", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the server.
    Serve(ServeFlags),
    /// Make, list, show, change, watch, archive and delete stores.
    Store(Action<Store>),
    /// List, read, write, edit, move, delete and grep memories.
    Memory(Action<Memory>),
    /// List stores, or what is in one: `stele ls notes:/projects/`.
    Ls(With<List>),
    /// Print memories, byte for byte unless on a terminal.
    Cat(With<Read>),
    /// Show a store as a tree.
    Tree(With<Tree>),
    /// Give a memory another path.
    Mv(With<Move>),
    /// Delete memories; their history stays.
    Rm(With<Remove>),
    /// Edit a memory in $VISUAL or $EDITOR.
    Edit(With<Edit>),
    /// Take the files of a directory into a store.
    Put(With<Put>),
    /// Search the memories of a store by words or a question, best first.
    Search(With<Search>),
    /// Show the history of a store or memory, newest first.
    Log(With<Log>),
    /// Show what changed between two versions of a memory.
    Diff(With<Diff>),
    /// Remove the content of old versions for good.
    Redact(With<Redact>),
    /// Merge a version that another writer displaced into the present text.
    Merge(With<Merge>),
    /// Write a store into a directory of Markdown files, or its history into a git repository.
    Export(With<ExportArgs>),
    /// Take a directory, the history of a git repository, or the memory files of Claude Code or Codex into a store.
    Import(With<ImportArgs>),
    /// Copy stores between two live servers that speak the Anthropic dialect.
    Copy(Copy),
    /// Make stores directories, through FUSE.
    #[cfg(target_os = "linux")]
    Mount(With<MountStores>),
    /// Keep a folder and a store the same, where a mount is not possible.
    Sync(With<SyncFolder>),
    /// Make, list and show agents.
    Agent(Action<Agent>),
    /// Make and list environments, and make keys for their workers.
    Environment(Action<Environment>),
    /// Record sessions of agents that run elsewhere: start, send, finish; import transcripts.
    Session(Action<RecordedSession>),
    /// Serve memory tools to an MCP client on standard input and output.
    Mcp(With<Mcp>),
    /// Make, list and revoke API keys of a running server.
    Key(Action<Key>),
    /// Make and list workspaces of a running server.
    Workspace(Action<Workspace>),
    /// List and try the language models that the configuration names.
    Model {
        #[command(subcommand)]
        action: Model,
    },
    /// Check the configuration of the server.
    Config {
        #[command(subcommand)]
        action: ConfigAction,
    },
    /// Look after the database of a stopped server.
    Db {
        #[command(subcommand)]
        action: Db,
    },
    /// Make, list, check and scrub backups, also while a server runs.
    Backup(Backup),
    /// Put a backup in the place of the database of a stopped server.
    Restore(RestoreBackup),
    /// Rewrite the database of a stopped server, so that nothing deleted or redacted is left in its files.
    Scrub(Place),
    /// Print completions for a shell.
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
    /// Write the manual pages.
    Man {
        /// Into this directory.
        dir: PathBuf,
    },
}

/// A group of commands that speak with a server.
#[derive(Debug, Args)]
pub(crate) struct Action<A: Subcommand> {
    #[command(subcommand)]
    pub(crate) action: A,
    #[command(flatten)]
    pub(crate) client: ClientFlags,
}

/// A command that speaks with a server.
#[derive(Debug, Args)]
pub(crate) struct With<A: Args> {
    #[command(flatten)]
    pub(crate) args: A,
    #[command(flatten)]
    pub(crate) client: ClientFlags,
}

/// Which server and key: flags, else the environment, else the default profile, else the server on this machine.
#[derive(Debug, Args)]
pub(crate) struct ClientFlags {
    /// Address of the server [env: STELE_URL] [default: http://127.0.0.1:7878]
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Profile in this user's stele/profiles.toml [env: STELE_PROFILE]
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// Print JSON for programs
    #[arg(long, global = true)]
    pub(crate) json: bool,
}
