//! Numbered SQL files, embedded and checked by hash, run by one process at a time. An unknown newer schema is
//! refused. DESIGN 5.

use std::time::Duration;

use stele_core::hash::Sha256;
use tokio_postgres::Client;

use crate::connect::{Connector, SCHEMA};
use crate::open::{OpenError, reach};
use crate::url::Url;

/// All migrations, oldest first; the number is the place in this list, from 1.
const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/0001_start.sql"),
    include_str!("../migrations/0002_feed.sql"),
    include_str!("../migrations/0003_records.sql"),
    include_str!("../migrations/0004_backups.sql"),
];

/// The advisory lock of whoever migrates: "stele" in ASCII.
const LOCK: i64 = 0x0073_7465_6c65;
/// How long one process waits for another that migrates.
const PATIENCE: Duration = Duration::from_secs(600);

/// How far a database is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Migrations it has had.
    pub applied: usize,
    /// Migrations that this Stele knows.
    pub known: usize,
}

/// Brings the database at `url` up to date.
///
/// # Errors
/// It cannot be reached or used, or its schema is not one that this Stele knows.
pub async fn migrate(url: &Url) -> Result<Standing, OpenError> {
    let mut client = reach(url, &Connector::new(url, PATIENCE)?).await?;
    run(&mut client).await?;
    Ok(Standing { applied: MIGRATIONS.len(), known: MIGRATIONS.len() })
}

/// Looks how far the database at `url` is, changing nothing.
///
/// # Errors
/// It cannot be reached or used, or its schema is not one that this Stele knows.
pub async fn standing(url: &Url) -> Result<Standing, OpenError> {
    let client = reach(url, &Connector::new(url, PATIENCE)?).await?;
    let applied = if exists(&client).await? { check(&applied(&client).await?)? } else { 0 };
    Ok(Standing { applied, known: MIGRATIONS.len() })
}

/// Whether the client's database has a schema of ours, however old.
pub(crate) async fn exists(client: &Client) -> Result<bool, OpenError> {
    let sql = format!("SELECT to_regclass('{SCHEMA}.migrations') IS NOT NULL");
    Ok(client.query_one(&sql, &[]).await?.try_get(0)?)
}

/// Refuses a schema that is not just the one that this Stele makes.
pub(crate) async fn is_current(client: &Client) -> Result<(), OpenError> {
    if check(&applied(client).await?)? < MIGRATIONS.len() { Err(OpenError::OlderSchema) } else { Ok(()) }
}

async fn applied(client: &impl tokio_postgres::GenericClient) -> Result<Vec<(i32, Vec<u8>)>, OpenError> {
    let sql = format!("SELECT number, sha256 FROM {SCHEMA}.migrations ORDER BY number");
    let rows = client.query(&sql, &[]).await?;
    rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
}

/// How many of our migrations are applied, if they are ours.
fn check(applied: &[(i32, Vec<u8>)]) -> Result<usize, OpenError> {
    if applied.len() > MIGRATIONS.len() {
        return Err(OpenError::NewerSchema);
    }
    for (expected, ((number, hash), sql)) in (1..).zip(applied.iter().zip(MIGRATIONS)) {
        if *number != expected || hash.as_slice() != Sha256::of(sql.as_bytes()).as_bytes() {
            return Err(OpenError::ForeignSchema { number: *number });
        }
    }
    Ok(applied.len())
}

/// Brings the schema up to date. Returns whether there was none before.
pub(crate) async fn run(client: &mut Client) -> Result<bool, OpenError> {
    if exists(client).await? && check(&applied(client).await?)? == MIGRATIONS.len() {
        return Ok(false);
    }
    let transaction = client.transaction().await?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    // Read only now: another process may just have done it all.
    let sql = "SELECT count(*) FROM pg_namespace WHERE nspname = $1";
    if transaction.query_one(sql, &[&SCHEMA]).await?.try_get::<_, i64>(0)? == 0 {
        // Not IF NOT EXISTS: that asks for the right to make one even where there is one.
        transaction.batch_execute(&format!("CREATE SCHEMA {SCHEMA}")).await?;
    }
    transaction
        .batch_execute(&format!(
            "SET LOCAL search_path = {SCHEMA}; SET LOCAL client_min_messages = error; \
             CREATE TABLE IF NOT EXISTS migrations (number int PRIMARY KEY, sha256 bytea NOT NULL, \
             applied_at timestamptz NOT NULL DEFAULT now())"
        ))
        .await?;
    let done = check(&applied(&transaction).await?)?;
    for (number, sql) in (1i32..).zip(MIGRATIONS).skip(done) {
        let hash = Sha256::of(sql.as_bytes());
        transaction.batch_execute(sql).await?;
        let insert = "INSERT INTO migrations (number, sha256) VALUES ($1, $2)";
        transaction.execute(insert, &[&number, &hash.as_bytes().as_slice()]).await?;
    }
    transaction.commit().await?;
    Ok(done == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_and_an_unknown_migration_are_refused() {
        let ours = Sha256::of(MIGRATIONS[0].as_bytes()).as_bytes().to_vec();
        assert_eq!(check(&[]).expect("none is fine"), 0);
        assert_eq!(check(&[(1, ours.clone())]).expect("ours"), 1);
        assert!(matches!(check(&[(1, vec![0; 32])]), Err(OpenError::ForeignSchema { number: 1 })));
        let more: Vec<_> = (1..).zip(vec![ours; MIGRATIONS.len() + 1]).collect();
        assert!(matches!(check(&more), Err(OpenError::NewerSchema)));
    }
}
