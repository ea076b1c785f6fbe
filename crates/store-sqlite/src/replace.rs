//! A database made out of a copy: with the redactions that were made since, to stand in another one's place.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension, params};
use stele_core::backup::{BackupRecord, RedactionRecord};
use stele_core::clock::Random;
use stele_core::command::RedactedPath;
use stele_core::id::{Epoch, MemoryId, OrganizationId, VersionId, WorkspaceId};
use stele_core::model::Operation;
use stele_core::storage::KeyRecord;
use stele_core::time::Timestamp;

use crate::backup::{open_copy, organization, seal};
use crate::check::{Damage, examine};
use crate::ledger::{self, has_table, redaction};
use crate::open::{FILE, LOG_FILE, OpenError, make_data_dir, open_writer};
use crate::rows::{self, Col, Sql, actor_columns};
use crate::storage::insert_key;
use crate::writer::merge;

/// What lies beside a database while it is open.
const COMPANIONS: [&str; 3] = [LOG_FILE, "stele.db-shm", "stele.db-journal"];

/// How long another program may be in the way of reading a database that no server holds.
const MOMENT: Duration = Duration::from_secs(1);

/// What a database knows that one in its place should know too.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Its tenant, if a server was ever started on it.
    pub organization: Option<OrganizationId>,
    /// Its redactions.
    pub redactions: Vec<RedactionRecord>,
    /// Its managed backups.
    pub backups: Vec<BackupRecord>,
}

/// Reads what the database in a directory knows, of whatever age it is; nobody else may use it meanwhile. `None`
/// where there is no database.
///
/// # Errors
/// It cannot be read; [`OpenError::is_damage`] says whether it ever could.
pub fn known(dir: &Path) -> Result<Option<Known>, OpenError> {
    let file = dir.join(FILE);
    if !can_be_used(&file)? {
        return Ok(None);
    }
    for companion in COMPANIONS {
        can_be_used(&dir.join(companion))?;
    }
    // Not read-only: what a crash left in the log is part of it.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(&file, flags)?;
    connection.busy_timeout(MOMENT)?;
    // Nor is the log merged by looking: it may be decided that nothing is replaced.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    if !has_table(&connection, "installation")? {
        // A server that was killed at its first start leaves a file with nothing in it.
        let tables: u64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        return if tables == 0 { Ok(Some(Known::default())) } else { Err(OpenError::Foreign(file)) };
    }
    let mut known = Known { organization: organization(&connection)?, ..Known::default() };
    if has_table(&connection, "redactions")? {
        known.redactions = ledger::list(&connection, None, usize::MAX)?;
        known.backups = ledger::backups(&connection)?.into_iter().map(|standing| standing.record).collect();
    } else {
        let mut statement = connection.prepare(
            "SELECT s.workspace, s.id, v.id, v.created_at, v.redacted_at, v.redacted_by_kind, v.redacted_by, \
             v.path IS NULL FROM versions v JOIN stores s ON s.store = v.store WHERE v.redacted_at IS NOT NULL",
        )?;
        known.redactions = rows::all(&mut statement, [], redaction)?;
    }
    Ok(Some(known))
}

/// Whether there is such a file; asked before SQLite is, for the operating system says why a file cannot be used.
fn can_be_used(file: &Path) -> Result<bool, OpenError> {
    match File::options().read(true).write(true).open(file) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound && !file.is_symlink() => Ok(false),
        Err(source) => Err(OpenError::Io { path: file.to_owned(), source }),
    }
}

/// What came of redactions in a draft.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Versions that lost their text.
    pub versions: u64,
    /// Live memories whose present text that was: they are deleted.
    pub memories: u64,
}

/// A database that is not yet in its place.
pub struct Draft {
    connection: Connection,
    dir: PathBuf,
}

impl Draft {
    /// Writes the copy `from` anew into the directory `dir`, and brings it up to date. What an older draft left there
    /// goes first.
    ///
    /// # Errors
    /// The copy cannot be read, or the directory cannot be written.
    pub fn make(from: &Path, dir: &Path) -> Result<Self, OpenError> {
        remove(dir)?;
        make_data_dir(dir)?;
        let file = dir.join(FILE);
        // Nothing but what lives is carried over: no free pages, and no leavings between the cells of a page.
        let target = file.to_string_lossy();
        let copy = open_copy(from)?;
        // The file that VACUUM makes takes this over: else a page whose rows move to new ones keeps their text.
        copy.pragma_update(None, "secure_delete", "ON")?;
        copy.execute("VACUUM INTO ?", [&*target])?;
        let (connection, _) = open_writer(dir)?;
        Ok(Self { connection, dir: dir.to_owned() })
    }

    /// Carries out redactions that were made elsewhere, and remembers them.
    ///
    /// # Errors
    /// SQLite's.
    pub fn replay(
        &mut self,
        records: &[RedactionRecord],
        random: &dyn Random,
    ) -> Result<Replayed, OpenError> {
        let transaction = self.connection.transaction()?;
        ledger::keep(&transaction, records)?;
        let mut replayed = Replayed::default();
        for record in records {
            replay(&transaction, record, random, &mut replayed)?;
        }
        transaction.commit()?;
        merge(&self.connection, &self.dir.join(LOG_FILE), "TRUNCATE")?;
        Ok(replayed)
    }

    /// Remembers managed backups.
    ///
    /// # Errors
    /// SQLite's.
    pub fn keep_backups(&self, records: &[BackupRecord]) -> Result<(), OpenError> {
        Ok(records.iter().try_for_each(|record| ledger::keep_backup(&self.connection, record))?)
    }

    /// Keeps a key of the first workspace, made by `issue` for it.
    ///
    /// # Errors
    /// SQLite's.
    pub fn keep_first_key(&self, issue: impl FnOnce(WorkspaceId) -> KeyRecord) -> Result<(), OpenError> {
        let read = |row: &rusqlite::Row<'_>| Ok(row.get::<_, Col<WorkspaceId>>(0)?.0);
        let first = self.connection.query_row("SELECT first_workspace FROM installation", [], read)?;
        Ok(insert_key(&self.connection, &issue(first))?)
    }

    /// Begins another life: sequences of the one before say nothing in it.
    ///
    /// # Errors
    /// SQLite's.
    pub fn renew_epoch(&self, epoch: Epoch) -> Result<(), OpenError> {
        self.connection.execute("UPDATE installation SET epoch = ?", [Col(epoch)])?;
        Ok(())
    }

    /// Compares structure, hashes, heads and counters; returns all that is damaged.
    ///
    /// # Errors
    /// SQLite's.
    pub fn examine(&self) -> Result<Vec<Damage>, OpenError> {
        Ok(examine(&self.connection)?)
    }

    /// Ends the draft as one sealed file; answers with it.
    ///
    /// # Errors
    /// SQLite's or the file system's.
    pub fn seal(self) -> Result<PathBuf, OpenError> {
        let file = self.dir.join(FILE);
        self.connection.execute_batch("VACUUM")?;
        self.connection.close().map_err(|(_, error)| error)?;
        seal(&file)?;
        Ok(file)
    }

    /// Puts the draft in the place of what `data_dir` holds; the caller holds that directory. At every moment there
    /// is either the old database or this one, each whole.
    ///
    /// # Errors
    /// SQLite's or the file system's.
    pub fn replace(self, data_dir: &Path) -> Result<(), OpenError> {
        let io = |path: &Path| {
            let path = path.to_owned();
            move |source| OpenError::Io { path, source }
        };
        merge(&self.connection, &self.dir.join(LOG_FILE), "TRUNCATE")?;
        self.connection.close().map_err(|(_, error)| error)?;
        let (file, place) = (self.dir.join(FILE), data_dir.join(FILE));
        File::open(&file).and_then(|file| file.sync_all()).map_err(io(&file))?;
        if place.exists() {
            empty_log(&place)?;
        }
        // An old log would be taken for the new database's.
        for companion in COMPANIONS {
            let path = data_dir.join(companion);
            if path.exists() {
                fs::remove_file(&path).map_err(io(&path))?;
            }
        }
        fs::rename(&file, &place).map_err(io(&place))?;
        File::open(data_dir).and_then(|dir| dir.sync_all()).map_err(io(data_dir))?;
        remove(&self.dir)
    }
}

/// Merges the log of the database that is to be replaced, so that it is whole without it until the last moment. That
/// of a damaged one is beyond use, as it is itself.
fn empty_log(place: &Path) -> Result<(), OpenError> {
    let merged = Connection::open(place)
        .and_then(|old| old.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())))
        .map_err(OpenError::from);
    match merged {
        Err(error) if !error.is_damage() => Err(error),
        _ => Ok(()),
    }
}

/// Removes a draft, if it is there: it may hold what a replay would have redacted.
pub(crate) fn remove(dir: &Path) -> Result<(), OpenError> {
    if !dir.exists() {
        return Ok(());
    }
    fs::remove_dir_all(dir).map_err(|source| OpenError::Io { path: dir.to_owned(), source })
}

/// A version to be redacted, as it stands in the draft.
struct Found {
    number: i64,
    store: i64,
    memory: Col<MemoryId>,
    done: bool,
}

fn replay(
    connection: &Connection,
    record: &RedactionRecord,
    random: &dyn Random,
    replayed: &mut Replayed,
) -> Sql<()> {
    let sql = "SELECT v.version, v.store, v.memory_id, v.redacted_at IS NOT NULL AND (v.path IS NULL OR NOT ?) \
               FROM versions v JOIN stores s ON s.store = v.store WHERE v.id = ? AND s.id = ?";
    let scrub = record.path == RedactedPath::Scrub;
    let found = connection
        .prepare_cached(sql)?
        .query_row(params![scrub, Col(record.version), Col(record.store)], |row| {
            Ok(Found { number: row.get(0)?, store: row.get(1)?, memory: row.get(2)?, done: row.get(3)? })
        })
        .optional()?;
    let Some(found) = found.filter(|found| !found.done) else { return Ok(()) };
    if delete_if_head(connection, &found, record, random)? {
        replayed.memories += 1;
    }
    crate::writes::redact(connection, record.version, record.redaction, record.path)?;
    replayed.versions += 1;
    Ok(())
}

/// The head of a live memory has no text to show any more: the memory is deleted, on the word of whoever redacted.
fn delete_if_head(
    connection: &Connection,
    found: &Found,
    record: &RedactionRecord,
    random: &dyn Random,
) -> Sql<bool> {
    let live: Option<(String, u64)> = connection
        .prepare_cached("SELECT path, size_bytes FROM memories WHERE id = ? AND store = ? AND head = ?")?
        .query_row(params![found.memory, found.store, found.number], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((path, bytes)) = live else { return Ok(false) };
    connection.prepare_cached("DELETE FROM memories WHERE id = ?")?.execute(params![found.memory])?;
    let (sequence, changed_at): (u64, Col<Timestamp>) = connection
        .prepare_cached("SELECT sequence + 1, changed_at FROM stores WHERE store = ?")?
        .query_row([found.store], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let at = record.redaction.at.max(Timestamp::from_micros(changed_at.0.as_micros() + 1));
    let (kind, by) = actor_columns(record.redaction.by);
    // Its path stays unless it was to go: then the deletion counts as redacted too.
    let redacted = (record.path == RedactedPath::Scrub).then_some(record.redaction.at);
    connection
        .prepare_cached(
            "INSERT INTO versions (store, sequence, id, memory_id, operation, created_at, author_kind, author, \
             redacted_at, redacted_by_kind, redacted_by, path) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )?
        .execute(params![
            found.store,
            sequence,
            Col(VersionId::mint(at, random.bits())),
            found.memory,
            Col(Operation::Deleted),
            Col(at),
            kind,
            by,
            redacted.map(Col),
            redacted.map(|_| kind),
            redacted.map(|_| by),
            redacted.is_none().then_some(path)
        ])?;
    connection
        .prepare_cached(
            "UPDATE stores SET sequence = ?, changed_at = ?, memories = memories - 1, bytes = bytes - ?, \
             versions = versions + 1 WHERE store = ?",
        )?
        .execute(params![sequence, Col(at), bytes, found.store])?;
    Ok(true)
}
