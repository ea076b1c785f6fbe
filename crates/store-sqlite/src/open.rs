//! Opening a data directory: files, pragmas, migrations.

use std::fs::{DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use stele_core::limits::Limits;
use store_codec::Compression;

use crate::migrate::migrate;
use crate::restore::RESTORING;
use crate::writer::merge;

/// The database file in a data directory, and in a backup.
pub const FILE: &str = "stele.db";
/// Its write-ahead log.
pub(crate) const LOG_FILE: &str = "stele.db-wal";

/// Where a copy from elsewhere is put together, in the data directory that it is for.
pub(crate) const COPY_DRAFT: &str = "copy.partial";
/// Where a restore is put together.
pub const RESTORE_DRAFT: &str = "restore.partial";

/// What to open, and how.
#[derive(Clone, Debug)]
pub struct Config {
    /// The data directory; made if missing, readable by its owner only.
    pub data_dir: PathBuf,
    /// The caps.
    pub limits: Limits,
    /// For contents written from now on.
    pub compression: Compression,
    /// Reader threads.
    pub readers: usize,
}

impl Config {
    /// The usual settings: compression on, one reader thread a core and at least two.
    pub fn new(data_dir: impl Into<PathBuf>, limits: Limits) -> Self {
        let readers = std::thread::available_parallelism().map_or(2, |cores| cores.get().clamp(2, 16));
        Self { data_dir: data_dir.into(), limits, compression: Compression::On, readers }
    }
}

/// Why a data directory could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it.
    #[error("the data directory {} is in use by process {holder}: stop that one first, or name another directory with --data-dir", data_dir.display())]
    InUse {
        /// The directory.
        data_dir: PathBuf,
        /// The process id of the holder.
        holder: String,
    },
    /// There is a database in it already.
    #[error("there is a database in {} already: name an empty place", .0.display())]
    NotEmpty(PathBuf),
    /// There is no database in it.
    #[error("there is no Stele database in {}", .0.display())]
    NoDatabase(PathBuf),
    /// There is a database of something else's.
    #[error("{} is not a database of Stele's", .0.display())]
    Foreign(PathBuf),
    /// A file or directory could not be made or read.
    #[error("cannot use {}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A newer Stele wrote it.
    #[error("the database was written by a newer Stele; use that version or a newer one")]
    NewerSchema,
    /// Not the schema that this Stele made.
    #[error("migration {number} of the database is not the one that this Stele knows")]
    ForeignSchema {
        /// The number of the migration that differs.
        number: u32,
    },
    /// SQLite's.
    #[error("the database cannot be opened")]
    Sqlite(#[from] rusqlite::Error),
}

impl OpenError {
    /// Whether the database itself is damaged, rather than out of reach, in use, or something else's.
    pub fn is_damage(&self) -> bool {
        let Self::Sqlite(error) = self else { return false };
        matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
    }
}

/// Makes the data directory if it is missing.
pub(crate) fn make_data_dir(data_dir: &Path) -> Result<(), OpenError> {
    let io = |source| OpenError::Io { path: data_dir.to_owned(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(data_dir).map_err(io)
}

/// Opens the connection that writes, migrates, and empties the log: what a crash left in it may be redacted text.
/// Returns whether the database is new.
pub(crate) fn open_writer(data_dir: &Path) -> Result<(Connection, bool), OpenError> {
    let path = data_dir.join(FILE);
    let mut connection = Connection::open(&path)?;
    let io = |source| OpenError::Io { path: path.clone(), source };
    std::fs::set_permissions(&path, Permissions::from_mode(0o600)).map_err(io)?;
    // Sizes and modes first: they hold only before the first table is made.
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "secure_delete", "ON")?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "foreign_keys", "OFF")?;
    connection.pragma_update(None, "cache_size", -32_000)?;
    keep_statements(&connection)?;
    let new = migrate(&mut connection)?;
    connection.execute_batch(RESTORING)?;
    connection.busy_timeout(std::time::Duration::ZERO)?;
    match merge(&connection, &data_dir.join(LOG_FILE), "TRUNCATE") {
        // A full disk must not keep anybody from reading; the log is merged once there is room.
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DiskFull) => {
            tracing::warn!("the disk is full: the log could not be merged into the database");
        }
        merged => {
            merged?;
        }
    }
    Ok((connection, new))
}

/// Opens one of the connections that read.
pub(crate) fn open_reader(data_dir: &Path) -> Result<Connection, OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(data_dir.join(FILE), flags)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "cache_size", -16_000)?;
    keep_statements(&connection)?;
    Ok(connection)
}

/// Statements are prepared once. Without the stable planner SQLite prepares most of them anew each time a parameter
/// is bound, to look for a better plan by its value (measured: two thirds of the time of a read of many texts).
fn keep_statements(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.set_prepared_statement_cache_capacity(128);
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus;

    use super::*;

    #[test]
    fn a_statement_is_not_prepared_anew_for_another_parameter() {
        let dir = tempfile::tempdir().expect("a directory");
        let (writer, _) = open_writer(dir.path()).expect("it opens");
        let reader = open_reader(dir.path()).expect("it opens");
        for connection in [&writer, &reader] {
            let sql = "SELECT v.path FROM memories m JOIN versions v ON v.version = m.head WHERE m.id = ? AND m.store = ?";
            let mut statement = connection.prepare_cached(sql).expect("sound");
            for n in 0..3_u8 {
                let found = crate::rows::all(&mut statement, rusqlite::params![[n; 16], n], |row| {
                    row.get::<_, String>(0)
                });
                assert!(found.expect("it runs").is_empty());
            }
            assert_eq!(statement.get_status(StatementStatus::RePrepare), 0);
        }
    }

    #[test]
    fn memory_statistics_are_off() {
        let connection = Connection::open_in_memory().expect("it opens");
        let mut statement = connection.prepare("PRAGMA compile_options").expect("a pragma");
        let options: Vec<String> = crate::rows::all(&mut statement, [], |row| row.get(0)).expect("options");
        assert!(options.iter().any(|option| option == "DEFAULT_MEMSTATUS=0"), "{options:?}");
    }
}
