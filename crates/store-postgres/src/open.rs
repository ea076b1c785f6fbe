//! Opening a database: what to open, and why it may not be possible.

use std::path::PathBuf;
use std::time::Duration;

use stele_core::limits::Limits;
use store_codec::Compression;
use tokio_postgres::Client;

use crate::connect::Connector;
use crate::url::Url;

/// The oldest PostgreSQL that will do, as it numbers itself.
const OLDEST: u32 = 150_000;

/// What to open, and how.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where the database is.
    pub url: Url,
    /// The caps.
    pub limits: Limits,
    /// For contents written from now on.
    pub compression: Compression,
    /// Most connections for transactions; a few more are used for reads.
    pub connections: usize,
    /// Shared connections for reads of one thing, and as many for lists.
    pub readers: usize,
    /// How long a request may take before it is told that the database is busy or out of reach.
    pub patience: Duration,
}

impl Config {
    /// The usual settings: compression on, 16 connections for transactions, 2 for reads and 2 for lists, 4 s.
    pub fn new(url: Url, limits: Limits) -> Self {
        let patience = Duration::from_secs(4);
        Self { url, limits, compression: Compression::On, connections: 16, readers: 2, patience }
    }
}

/// Why a database could not be opened. The text never shows a password.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Nobody answers, or lets us in.
    #[error("cannot reach the database at {at}")]
    Unreachable {
        /// Where.
        at: String,
        /// Why.
        source: tokio_postgres::Error,
    },
    /// It is too old.
    #[error("the database server is PostgreSQL {0}, and Stele needs 15 or newer")]
    TooOld(String),
    /// It cannot hold every text.
    #[error(
        "the database's encoding is {0}, and Stele needs UTF8: make one with CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0"
    )]
    Encoding(String),
    /// It takes no writes.
    #[error("the database is read-only (a standby?): name the primary")]
    ReadOnly,
    /// There is nothing of Stele's in it.
    #[error("there is no Stele database at {0}")]
    NoDatabase(String),
    /// There is something of Stele's in it already.
    #[error("there is a Stele database at {0} already: name an empty one")]
    NotEmpty(String),
    /// A newer Stele wrote it.
    #[error("the database was written by a newer Stele; use that version or a newer one")]
    NewerSchema,
    /// It was not brought up to date yet.
    #[error("the database is of an older Stele: run stele db migrate")]
    OlderSchema,
    /// Not the schema that this Stele made.
    #[error("migration {number} of the database is not the one that this Stele knows")]
    ForeignSchema {
        /// The number of the migration that differs.
        number: i32,
    },
    /// The certificates to trust cannot be read.
    #[error("cannot read the certificates in {}: {why}", file.display())]
    Certificates {
        /// Where.
        file: PathBuf,
        /// Why.
        why: String,
    },
    /// PostgreSQL's.
    #[error("the database cannot be opened")]
    Postgres(#[from] tokio_postgres::Error),
}

/// Connects and looks whether the server will do.
pub(crate) async fn reach(url: &Url, connector: &Connector) -> Result<Client, OpenError> {
    let unreachable = |source| OpenError::Unreachable { at: url.to_string(), source };
    let client = connector.raw().await.map_err(unreachable)?;
    let sql = "SELECT current_setting('server_version_num'), current_setting('server_version'), \
               current_setting('server_encoding'), pg_is_in_recovery() OR current_setting('transaction_read_only')::bool";
    let row = client.query_one(sql, &[]).await?;
    judge(row.try_get(0)?, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?)?;
    Ok(client)
}

/// Whether a server of this version, encoding and state will do.
fn judge(number: &str, version: &str, encoding: &str, read_only: bool) -> Result<(), OpenError> {
    if number.parse::<u32>().is_ok_and(|number| number < OLDEST) {
        return Err(OpenError::TooOld(version.to_owned()));
    }
    if encoding != "UTF8" {
        return Err(OpenError::Encoding(encoding.to_owned()));
    }
    if read_only { Err(OpenError::ReadOnly) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_servers_foreign_encodings_and_standbys_are_refused() {
        assert!(judge("150018", "15.18", "UTF8", false).is_ok());
        assert!(judge("180001", "18.1", "UTF8", false).is_ok());
        assert!(matches!(judge("140013", "14.13", "UTF8", false), Err(OpenError::TooOld(v)) if v == "14.13"));
        assert!(matches!(judge("150018", "15.18", "LATIN1", false), Err(OpenError::Encoding(_))));
        assert!(matches!(judge("150018", "15.18", "SQL_ASCII", false), Err(OpenError::Encoding(_))));
        assert!(matches!(judge("150018", "15.18", "UTF8", true), Err(OpenError::ReadOnly)));
    }
}
