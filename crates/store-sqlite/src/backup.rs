//! Copying the database while it is written to, and looking a copy over. DESIGN 5.
//!
//! The copy steps on the writer's own connection between its batches: what is committed meanwhile is carried over by
//! SQLite to the pages that were copied already, so that it never begins again and is as of the moment of its end.
//! No snapshot stays open between two steps.

use std::fs::{File, Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row};
use stele_core::dump::Totals;
use stele_core::id::{Epoch, OrganizationId};
use stele_core::storage::StorageError;
use stele_core::time::Timestamp;
use tokio::sync::oneshot;

use crate::check::{Damage, examine, structure};
use crate::dump::totals;
use crate::fault::Fault;
use crate::ledger::has_table;
use crate::migrate::{MIGRATIONS, known_schema};
use crate::open::OpenError;
use crate::rows::{Col, Sql};
use crate::storage::SqliteStorage;

/// How long the copy goes on between two batches of the writer.
const SLICE: Duration = Duration::from_millis(5);
/// Pages copied between two looks at the clock: 256 kB.
const STEP: i32 = 64;

/// Somebody who waits for a copy.
pub(crate) struct Wanted {
    target: PathBuf,
    reply: oneshot::Sender<Result<(), StorageError>>,
}

impl Wanted {
    pub(crate) fn new(target: PathBuf) -> (Self, oneshot::Receiver<Result<(), StorageError>>) {
        let (reply, answer) = oneshot::channel();
        (Self { target, reply }, answer)
    }

    /// Copies on this connection; `between` does the writer's other work and says whether to go on.
    pub(crate) fn carry_out(self, connection: &Connection, mut between: impl FnMut() -> bool) {
        let copied = self.copy(connection, &mut between);
        // Whoever went away needs no answer.
        let _ = self.reply.send(copied);
    }

    fn copy(&self, connection: &Connection, between: &mut dyn FnMut() -> bool) -> Result<(), StorageError> {
        let mut target = copy_target(&self.target).map_err(failed)?;
        let backup = Backup::new(connection, &mut target).map_err(failed)?;
        loop {
            let began = Instant::now();
            while began.elapsed() < SLICE {
                match backup.step(STEP).map_err(failed)? {
                    StepResult::Done => return Ok(()),
                    // Another connection of this process merges the log just now.
                    StepResult::Busy | StepResult::Locked => std::thread::sleep(Duration::from_millis(1)),
                    _ => {}
                }
            }
            if !between() || self.reply.is_closed() {
                return Err(StorageError::Unavailable(None));
            }
        }
    }
}

fn failed(error: rusqlite::Error) -> StorageError {
    Fault::from(error).into()
}

/// A fresh database to copy into: what goes wrong throws it away, and it is synced once, at the end.
fn copy_target(path: &Path) -> Sql<Connection> {
    let target = Connection::open(path)?;
    target.pragma_update(None, "journal_mode", "OFF")?;
    target.pragma_update(None, "synchronous", "OFF")?;
    target.pragma_update(None, "cache_size", -4_000)?;
    Ok(target)
}

impl SqliteStorage {
    /// Copies the database to the file `target`, which must not be there, while everything else goes on. What the
    /// copy holds is what was committed when this answers; it is whole only after [`seal`].
    ///
    /// # Errors
    /// The target cannot be written, or the storage closes.
    pub async fn copy_to(&self, target: PathBuf) -> Result<(), StorageError> {
        self.writer.copy(target).await
    }

    /// Bytes of the database.
    ///
    /// # Errors
    /// The storage's.
    pub async fn bytes(&self) -> Result<u64, StorageError> {
        let sql = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
        self.readers.read(move |c| Ok(c.query_row(sql, [], |row| row.get(0))?)).await
    }
}

/// Makes a copy one file without a log, on the disk.
///
/// # Errors
/// SQLite's or the file system's.
pub fn seal(file: &Path) -> Result<(), OpenError> {
    let io = |source| OpenError::Io { path: file.to_owned(), source };
    set_permissions(file, Permissions::from_mode(0o600)).map_err(io)?;
    let connection = Connection::open(file)?;
    connection.pragma_update(None, "journal_mode", "DELETE")?;
    connection.close().map_err(|(_, error)| error)?;
    File::open(file).and_then(|file| file.sync_all()).map_err(io)
}

/// What is in a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inspected {
    /// How many migrations it has had.
    pub schema: u32,
    /// The tenant: it says which installation it is of.
    pub organization: OrganizationId,
    /// What only a database of the present schema shows.
    pub present: Option<Present>,
}

/// What is in a copy of the present schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Present {
    /// The life of the database.
    pub epoch: Epoch,
    /// How much there is.
    pub totals: Totals,
    /// When the newest version was written.
    pub newest_at: Option<Timestamp>,
    /// How many redactions of versions up to then are carried out in it.
    pub redactions: u64,
}

pub(crate) fn open_copy(file: &Path) -> Result<Connection, OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Ok(Connection::open_with_flags(file, flags)?)
}

/// Looks what is in a copy, changing nothing.
///
/// # Errors
/// It is not a database of Stele's, or a newer Stele's.
pub fn inspect(file: &Path) -> Result<Inspected, OpenError> {
    inspect_open(&open_copy(file)?, file)
}

fn inspect_open(connection: &Connection, file: &Path) -> Result<Inspected, OpenError> {
    let foreign = || OpenError::NoDatabase(file.to_owned());
    if !has_table(connection, "migrations")? {
        return Err(foreign());
    }
    let schema = known_schema(connection)?;
    let organization = organization(connection)?.ok_or_else(foreign)?;
    let is_present = schema as usize == MIGRATIONS.len();
    Ok(Inspected { schema, organization, present: is_present.then(|| present(connection)).transpose()? })
}

/// The tenant in a database of any age; `None` where no server was ever started on it.
pub(crate) fn organization(connection: &Connection) -> Sql<Option<OrganizationId>> {
    let read = |row: &Row<'_>| Ok(row.get::<_, Col<OrganizationId>>(0)?.0);
    connection.query_row("SELECT organization FROM installation", [], read).optional()
}

fn present(connection: &Connection) -> Sql<Present> {
    let epoch = connection
        .query_row("SELECT epoch FROM installation", [], |row| Ok(row.get::<_, Col<Epoch>>(0)?.0))?;
    let newest_at = connection.query_row("SELECT max(created_at) FROM versions", [], |row| {
        Ok(row.get::<_, Option<Col<Timestamp>>>(0)?.map(|at| at.0))
    })?;
    let sql = "SELECT count(*) FROM redactions WHERE written_at <= ?";
    let redactions = connection.query_row(sql, [newest_at.map(Col)], |row| row.get(0))?;
    Ok(Present { epoch, totals: totals(connection)?, newest_at, redactions })
}

/// Compares structure, hashes, heads and counters of a copy, of one of an older schema its structure, changing nothing;
/// returns all that is damaged.
///
/// # Errors
/// It cannot be read.
pub fn check_file(file: &Path) -> Result<Vec<Damage>, OpenError> {
    let connection = open_copy(file)?;
    let is_present = known_schema(&connection)? as usize == MIGRATIONS.len();
    Ok(if is_present { examine(&connection)? } else { structure(&connection)? })
}
