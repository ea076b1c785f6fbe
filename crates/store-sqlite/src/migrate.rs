//! Numbered SQL files, embedded and checked by hash. An unknown newer schema is refused. DESIGN 5.

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use stele_core::hash::Sha256;

use crate::open::OpenError;

/// All migrations, oldest first; the number is the place in this list, from 1.
const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/0001_start.sql"),
    include_str!("../migrations/0002_caps_and_filters.sql"),
    include_str!("../migrations/0003_feed.sql"),
    include_str!("../migrations/0004_records.sql"),
];

/// Brings the schema up to date. Returns whether the database was empty before.
///
/// # Errors
/// A schema that this program does not know, or SQLite's.
pub(crate) fn migrate(connection: &mut Connection) -> Result<bool, OpenError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(
        "CREATE TABLE IF NOT EXISTS migrations (number INTEGER PRIMARY KEY, sha256 BLOB NOT NULL) STRICT",
    )?;
    let newest: Option<u32> = transaction
        .query_row("SELECT max(number) FROM migrations", [], |row| row.get(0))
        .optional()?
        .flatten();
    let fresh = newest.is_none();
    if newest.is_some_and(|newest| newest as usize > MIGRATIONS.len()) {
        return Err(OpenError::NewerSchema);
    }
    for (number, sql) in (1u32..).zip(MIGRATIONS) {
        let known = Sha256::of(sql.as_bytes());
        let applied: Option<[u8; 32]> = transaction
            .query_row("SELECT sha256 FROM migrations WHERE number = ?", [number], |row| row.get(0))
            .optional()?;
        match applied {
            Some(hash) if hash == *known.as_bytes() => {}
            Some(_) => return Err(OpenError::ForeignSchema { number }),
            None => {
                transaction.execute_batch(sql)?;
                transaction
                    .execute("INSERT INTO migrations VALUES (?, ?)", params![number, known.as_bytes()])?;
            }
        }
    }
    transaction.commit()?;
    Ok(fresh)
}
