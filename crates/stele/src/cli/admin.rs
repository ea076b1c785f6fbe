//! Arguments of what looks after a server.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// Flags win over the environment, the environment over the configuration file.
#[derive(Debug, Default, Args)]
pub(crate) struct ServeFlags {
    /// Where the data lies [env: STELE_DATA_DIR] [default: a directory of this user's]
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// A PostgreSQL to keep everything in instead: postgres://user@host/database [env: STELE_DATABASE_URL]
    #[arg(long, value_name = "URL")]
    pub(crate) database_url: Option<String>,
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

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigAction {
    /// Print what `stele serve` would run with, secrets masked.
    Check(ConfigCheck),
}

#[derive(Debug, Args)]
pub(crate) struct ConfigCheck {
    #[command(flatten)]
    pub(crate) serve: ServeFlags,
    /// Print JSON for programs
    #[arg(long)]
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
        /// The key's id, as `stele key list` and `stele log` show it, or as `apikey_01...`.
        id: String,
        /// Ask nothing
        #[arg(long, short)]
        yes: bool,
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
    /// The person who holds it: what is written with it at the console is that person's in history.
    #[arg(long, value_name = "PERSON")]
    pub(crate) user: Option<String>,
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
        /// Most memories that a store of it may hold [default: what the server allows]
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
        max_memories_per_store: Option<u64>,
    },
    /// List the workspaces.
    List,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Db {
    /// Compare hashes, heads and counters, and name what is damaged.
    Check {
        #[command(flatten)]
        place: Place,
        /// Print JSON for programs
        #[arg(long)]
        json: bool,
    },
    /// Bring the schema up to date, as a starting server does.
    Migrate(Place),
    /// Say how far the schema is, changing nothing.
    Status(Place),
    /// Copy everything from one database to an empty other one, either way, and compare.
    Copy {
        /// Where from: a data directory, or postgres://user@host/database.
        #[arg(long, value_name = "DIR|URL")]
        from: String,
        /// Where to: a data directory without a database, or postgres://user@host/database.
        #[arg(long, value_name = "DIR|URL")]
        to: String,
    },
}

#[derive(Clone, Debug, Args)]
pub(crate) struct Place {
    /// Where the data lies [env: STELE_DATA_DIR] [default: a directory of this user's]
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// The PostgreSQL, if that is where everything is kept [env: STELE_DATABASE_URL]
    #[arg(long, value_name = "URL", conflicts_with = "data_dir")]
    pub(crate) database_url: Option<String>,
}
