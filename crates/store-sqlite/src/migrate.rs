//! Numbered SQL files, embedded and checked by hash. An unknown newer schema is refused. DESIGN 5.

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use stele_core::hash::Sha256;

use crate::open::OpenError;

/// All migrations, oldest first; the number is the place in this list, from 1.
pub(crate) const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/0001_start.sql"),
    include_str!("../migrations/0002_caps_and_filters.sql"),
    include_str!("../migrations/0003_feed.sql"),
    include_str!("../migrations/0004_records.sql"),
    include_str!("../migrations/0005_backups.sql"),
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

/// How many migrations a database has had that may not be changed.
///
/// # Errors
/// A schema that this program does not know, or SQLite's.
pub(crate) fn known_schema(connection: &Connection) -> Result<u32, OpenError> {
    let mut statement = connection.prepare("SELECT number, sha256 FROM migrations ORDER BY number")?;
    let applied: Vec<(u32, [u8; 32])> =
        crate::rows::all(&mut statement, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    for (expected, (number, hash)) in (1u32..).zip(&applied) {
        let Some(sql) = MIGRATIONS.get(expected as usize - 1) else { return Err(OpenError::NewerSchema) };
        if *number != expected || hash != Sha256::of(sql.as_bytes()).as_bytes() {
            return Err(OpenError::ForeignSchema { number: *number });
        }
    }
    Ok(u32::try_from(applied.len()).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_retention_removed_before_the_feed_is_below_the_floor() {
        let connection = Connection::open_in_memory().expect("it opens");
        MIGRATIONS[..2].iter().for_each(|sql| connection.execute_batch(sql).expect("a migration"));
        let kept: [(i64, i64, &[i64]); 5] =
            [(1, 0, &[]), (2, 4, &[1, 2, 3, 4]), (3, 6, &[1, 4, 5, 6]), (4, 3, &[3]), (5, 2, &[])];
        for (store, sequence, versions) in kept {
            let insert = "INSERT INTO stores (store, id, workspace, name, slug, description, metadata, origin, \
                          created_by_kind, created_by, created_at, updated_at, changed_at, sequence, memories, bytes, \
                          versions) VALUES (?1, ?1, x'', '', ?1, '', '{}', 0, 1, x'', ?1, 0, 0, ?2, 0, 0, 0)";
            let id = format!("{store}").into_bytes();
            connection
                .execute(&insert.replace("(?1, ?1, x''", "(?1, ?3, x''"), params![store, sequence, id])
                .expect("a store");
            for version in versions {
                let insert = "INSERT INTO versions (store, sequence) VALUES (?, ?)";
                connection.execute(insert, [store, *version]).expect("a version");
            }
        }
        connection.execute_batch(MIGRATIONS[2]).expect("the migration");
        let mut statement = connection.prepare("SELECT floor FROM stores ORDER BY store").expect("SQL");
        let floors: Vec<i64> = crate::rows::all(&mut statement, [], |row| row.get(0)).expect("floors");
        assert_eq!(floors, [0, 0, 3, 2, 2]);
    }
}
