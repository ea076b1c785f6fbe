//! `stele scrub` on PostgreSQL: rewriting the tables, so that what was redacted or deleted is physically gone.
//!
//! An UPDATE leaves the old row in its page until the page is reused, and the log keeps it longer (LIMITS 6). Standbys,
//! archived logs and backups are out of reach from here.

use std::time::Duration;

use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use crate::connect::{Connector, SCHEMA};
use crate::migrate;
use crate::open::{OpenError, reach};
use crate::url::Url;

const TABLES: [&str; 3] = ["versions", "memories", "stores"];
/// Most log files that are written over.
const MOST_FILES: i64 = 512;

/// What a scrub could do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scrubbed {
    /// Whether the write-ahead log was written over too; the role may lack the right.
    pub log: bool,
}

/// Rewrites all tables and, where permitted, the write-ahead log. Requests wait meanwhile.
///
/// # Errors
/// The database cannot be reached, is not ours, or has no room for a second copy of its largest table.
pub async fn scrub(url: &Url) -> Result<Scrubbed, OpenError> {
    let client = reach(url, &Connector::new(url, Duration::from_secs(60))?).await?;
    if !migrate::exists(&client).await? {
        return Err(OpenError::NoDatabase(url.to_string()));
    }
    for table in TABLES {
        client.batch_execute(&format!("VACUUM (FULL) {SCHEMA}.{table}")).await?;
    }
    Ok(Scrubbed { log: permitted(write_over_log(&client).await)? })
}

/// Fills every file of the log once: what is not needed any more is kept for reuse with its old bytes in it.
async fn write_over_log(client: &Client) -> Result<(), tokio_postgres::Error> {
    client.batch_execute("SELECT pg_switch_wal(); CHECKPOINT").await?;
    let files: i64 = client.query_one("SELECT count(*) FROM pg_ls_waldir()", &[]).await?.try_get(0)?;
    for _ in 0..files.min(MOST_FILES) {
        client
            .batch_execute("SELECT pg_logical_emit_message(false, 'stele', 'scrub'); SELECT pg_switch_wal()")
            .await?;
    }
    client.batch_execute("CHECKPOINT").await
}

fn permitted(done: Result<(), tokio_postgres::Error>) -> Result<bool, tokio_postgres::Error> {
    match done {
        Ok(()) => Ok(true),
        Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => Ok(false),
        Err(error) => Err(error),
    }
}
