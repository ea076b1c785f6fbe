//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

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
    /// Make, list and revoke API keys of a running server.
    Key {
        #[command(subcommand)]
        action: Key,
        #[command(flatten)]
        client: ClientFlags,
    },
    /// Make and list workspaces of a running server.
    Workspace {
        #[command(subcommand)]
        action: Workspace,
        #[command(flatten)]
        client: ClientFlags,
    },
    /// Look after the database of a stopped server.
    Db {
        #[command(subcommand)]
        action: Db,
    },
    /// Rewrite the database of a stopped server, so that nothing deleted or redacted is left in its files.
    Scrub(Place),
}

/// Flags win over the environment, the environment over the configuration file.
#[derive(Debug, Default, Args)]
pub(crate) struct ServeFlags {
    /// Where the data lies [env: STELE_DATA_DIR] [default: a directory of this user's]
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Address to listen on [env: STELE_LISTEN] [default: 127.0.0.1:7878]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
    /// Configuration file [default: stele.toml in the data directory, else in this user's configuration directory]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Serve plain HTTP beyond this machine: keys and memories cross the network readable
    #[arg(long)]
    pub(crate) insecure: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ClientFlags {
    /// Address of the server [env: STELE_URL] [default: http://127.0.0.1:7878]
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Print JSON for programs
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Key {
    /// Make a key; it is shown once.
    Create(CreateKey),
    /// List the keys that work, without their secrets.
    List,
    /// Revoke a key.
    Revoke {
        /// The key's id, as `stele key list` shows it.
        id: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct CreateKey {
    /// A name to know it by.
    pub(crate) name: String,
    /// What it may do.
    #[arg(long, value_enum, conflicts_with = "permissions")]
    pub(crate) role: Option<RoleName>,
    /// Just these permissions instead of a role: read, create, update, delete.
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    pub(crate) permissions: Option<Vec<String>>,
    /// When it stops working by itself: an RFC 3339 time.
    #[arg(long, value_name = "TIME")]
    pub(crate) expires_at: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum RoleName {
    /// Everything, keys included.
    Admin,
    /// Read, create, update and delete.
    Developer,
    /// Read, create and update.
    Contributor,
    /// Read.
    Reader,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Workspace {
    /// Make a workspace; its admin key is shown once.
    Create {
        /// Its name.
        name: String,
    },
    /// List the workspaces.
    List,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Db {
    /// Compare hashes, heads and counters, and name what is damaged.
    Check(Place),
}

#[derive(Debug, Args)]
pub(crate) struct Place {
    /// Where the data lies [env: STELE_DATA_DIR] [default: a directory of this user's]
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
}
