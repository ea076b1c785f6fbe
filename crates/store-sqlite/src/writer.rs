//! The writer thread: it commits what waits together, each command in a savepoint of its own. DESIGN 5.
//!
//! A refusal touches only itself; a failed COMMIT fails its whole batch. Nothing is answered before the COMMIT, and
//! a redaction not before the log that may hold the old text is empty.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use stele_core::meter;
use stele_core::records::CommitError;
use stele_core::storage::StorageError;
use tokio::sync::oneshot;

use crate::backup::Wanted;
use crate::fault::{Fault, Stop};
use crate::gaps;
use crate::open::LOG_FILE;
use crate::queue::{Lane, Queue, Refused, Taken};
use crate::space::Space;

/// Most commands committed together.
const BATCH: usize = 256;
/// How often a pending redaction tries again to empty the log.
const SCRUB_EVERY: Duration = Duration::from_millis(10);
/// How long it tries before its caller is told to repeat it.
const SCRUB_FOR: Duration = Duration::from_secs(10);
/// From this many unmerged pages (4 kB each) on the log is merged into the database after a commit.
const MERGE_PAGES: i64 = 1_000;
/// From this many pages on readers are held off for a moment, so that the log starts again at its beginning.
const RESTART_PAGES: i64 = 4_000;

/// What a job asks of the writer besides its own statements.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Needs {
    /// The disk must have room. Changes judge that by themselves, after the rules.
    pub(crate) room: bool,
    /// The log must be empty before the answer.
    pub(crate) scrub: bool,
}

/// A command with the one who waits for it, its type erased.
trait Command: Send {
    fn needs(&self) -> Needs;
    /// Runs in a savepoint.
    fn run(&mut self, connection: &Connection) -> Ran;
    /// Whether it was carried out and wrote something.
    fn succeeded(&self) -> bool;
    /// Tells others what is committed now.
    fn announce(&self);
    /// Replaces the result by a failure.
    fn fail(&mut self, error: StorageError);
    /// Answers.
    fn answer(self: Box<Self>);
}

/// What becomes of a job's savepoint.
enum Ran {
    /// It stays.
    Keep,
    /// It is rolled back; with SQLite's failure, if that is why.
    Undo(Option<rusqlite::Error>),
}

type Job = Box<dyn Command>;
type Outcome<T> = Result<T, Fail>;

/// Why a job's caller gets no result.
#[derive(Debug)]
pub(crate) enum Fail {
    /// The job itself stopped.
    Stop(Stop),
    /// The writer could not commit it, or could not take it.
    Storage(StorageError),
}

impl From<Fail> for stele_core::storage::Error {
    fn from(fail: Fail) -> Self {
        match fail {
            Fail::Stop(stop) => stop.into(),
            Fail::Storage(error) => error.into(),
        }
    }
}

impl From<Fail> for StorageError {
    fn from(fail: Fail) -> Self {
        match stele_core::storage::Error::from(fail) {
            stele_core::storage::Error::Failed(error) => error,
            stele_core::storage::Error::Refused { refusal, .. } => StorageError::Internal(Box::new(refusal)),
        }
    }
}

impl From<Fail> for CommitError {
    fn from(fail: Fail) -> Self {
        match fail {
            Fail::Stop(Stop::Conflict(at)) => Self::Conflict(at),
            other => Self::Failed(other.into()),
        }
    }
}

struct Typed<T, F, A> {
    needs: Needs,
    work: Option<F>,
    announce: A,
    result: Option<Outcome<T>>,
    reply: oneshot::Sender<Outcome<T>>,
}

impl<T, F, A> Command for Typed<T, F, A>
where
    T: Send,
    F: FnOnce(&Connection) -> Result<T, Stop> + Send,
    A: Fn(&T) + Send,
{
    fn needs(&self) -> Needs {
        self.needs
    }

    fn run(&mut self, connection: &Connection) -> Ran {
        let work = self.work.take().expect("a job runs once");
        let result = catch_unwind(AssertUnwindSafe(|| work(connection)));
        let (result, ran) = match result {
            Ok(Ok(done)) => (Ok(done), Ran::Keep),
            Ok(Err(stop)) => {
                let ran = Ran::Undo(stop.sqlite().map(same_again));
                (Err(Fail::Stop(stop)), ran)
            }
            Err(_) => {
                (Err(Fail::Storage(StorageError::Internal("a write panicked".into()))), Ran::Undo(None))
            }
        };
        self.result = Some(result);
        ran
    }

    fn succeeded(&self) -> bool {
        matches!(self.result, Some(Ok(_)))
    }

    fn announce(&self) {
        if let Some(Ok(done)) = &self.result {
            (self.announce)(done);
        }
    }

    fn fail(&mut self, error: StorageError) {
        self.result = Some(Err(Fail::Storage(error)));
    }

    fn answer(self: Box<Self>) {
        let result = self.result.unwrap_or(Err(Fail::Storage(StorageError::Unavailable(None))));
        // A caller that went away needs no answer.
        let _ = self.reply.send(result);
    }
}

/// The way to the writer thread.
#[derive(Clone)]
pub(crate) struct Writer {
    queue: Arc<Queue<Job>>,
    copy: Arc<Mutex<Option<Wanted>>>,
}

impl Writer {
    /// Starts the thread. It holds `gate` for writing when readers must have no snapshot open.
    pub(crate) fn start(
        connection: Connection,
        data_dir: &Path,
        gate: Arc<RwLock<()>>,
        room: Arc<AtomicBool>,
    ) -> std::io::Result<(Self, std::thread::JoinHandle<()>)> {
        let writer = Self { queue: Arc::new(Queue::new()), copy: Arc::default() };
        let space = Space::new(data_dir);
        let (queue, copy, log_file) = (writer.queue.clone(), writer.copy.clone(), data_dir.join(LOG_FILE));
        let run = move || {
            let connection = Rc::new(connection);
            Thread { connection, queue, copy, space, room, gate, pending: Vec::new(), log_file }.run();
        };
        let handle = std::thread::Builder::new().name("sqlite-write".into()).spawn(run)?;
        Ok((writer, handle))
    }

    /// Runs `work` in a transaction on the writer thread and answers once that is durable.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        lane: Lane,
        needs: Needs,
        work: impl FnOnce(&Connection) -> Result<T, Stop> + Send + 'static,
    ) -> Result<T, Fail> {
        self.write_and_announce(lane, needs, work, |_| ()).await
    }

    /// The same; `announce` is called on the writer thread as soon as the result of `work` is committed, also where
    /// its caller has gone away.
    pub(crate) async fn write_and_announce<T: Send + 'static>(
        &self,
        lane: Lane,
        needs: Needs,
        work: impl FnOnce(&Connection) -> Result<T, Stop> + Send + 'static,
        announce: impl Fn(&T) + Send + 'static,
    ) -> Result<T, Fail> {
        let (reply, answer) = oneshot::channel();
        let job = Box::new(Typed { needs, work: Some(work), announce, result: None, reply });
        self.queue.push(lane, job).map_err(|refused| {
            Fail::Storage(match refused {
                Refused::Full => StorageError::Overloaded,
                Refused::Closed => StorageError::Unavailable(None),
            })
        })?;
        answer.await.map_err(|_| Fail::Storage(StorageError::Unavailable(None)))?
    }

    /// Copies the database to a new file between batches.
    pub(crate) async fn copy(&self, target: PathBuf) -> Result<(), StorageError> {
        let (wanted, answer) = Wanted::new(target);
        {
            let mut copy = self.copy.lock().expect("no panic under the lock");
            if copy.is_some() {
                return Err(StorageError::Overloaded);
            }
            *copy = Some(wanted);
        }
        // Wakes the thread.
        self.write(Lane::Background, Needs::default(), |_| Ok(())).await?;
        answer.await.map_err(|_| StorageError::Unavailable(None))?
    }

    /// Takes no more jobs; the thread ends when what waits is done.
    pub(crate) fn close(&self) {
        self.queue.close();
    }
}

/// A redaction that is committed while the log is not yet empty.
struct Pending {
    job: Job,
    until: Instant,
}

struct Thread {
    connection: Rc<Connection>,
    queue: Arc<Queue<Job>>,
    /// A copy that somebody waits for.
    copy: Arc<Mutex<Option<Wanted>>>,
    space: Space,
    /// What `space` said for the batch under way, for the jobs in it.
    room: Arc<AtomicBool>,
    gate: Arc<RwLock<()>>,
    pending: Vec<Pending>,
    log_file: PathBuf,
}

impl Thread {
    fn run(&mut self) {
        while self.turn((!self.pending.is_empty()).then_some(SCRUB_EVERY)) {
            let wanted = self.copy.lock().expect("no panic under the lock").take();
            if let Some(wanted) = wanted {
                let connection = self.connection.clone();
                wanted.carry_out(&connection, || self.turn(Some(Duration::ZERO)));
            }
        }
        for mut pending in self.pending.drain(..) {
            pending.job.fail(StorageError::RedactionPending);
            pending.job.answer();
        }
        if let Err(error) = self.checkpoint("TRUNCATE") {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the log could not be merged at the end"
            );
        }
    }

    /// Commits what waits, and tends the log; false once there will be no more.
    fn turn(&mut self, patience: Option<Duration>) -> bool {
        match self.queue.take(BATCH, patience) {
            Taken::Batch(batch) => self.commit(batch),
            Taken::Nothing => {}
            Taken::End => return false,
        }
        self.scrub();
        self.tend_log();
        true
    }

    fn commit(&mut self, mut batch: Vec<Job>) {
        meter::BATCHES.record(batch.len() as u64);
        let began = Instant::now();
        let ran = self.run_batch(&mut batch);
        meter::COMMITS.record_micros(began.elapsed());
        if let Err(error) = ran {
            if !self.connection.is_autocommit() {
                // The transaction is over either way; a failed rollback would say so again at the next BEGIN.
                let _ = self.connection.execute_batch("ROLLBACK");
            }
            tracing::error!(error = &error as &dyn std::error::Error, jobs = batch.len(), "a commit failed");
            let full = error.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull);
            for job in &mut batch {
                job.fail(if full { StorageError::Full } else { Fault::from(same_again(&error)).into() });
            }
        }
        batch.iter().for_each(|job| job.announce());
        let until = Instant::now() + SCRUB_FOR;
        for job in batch {
            if job.needs().scrub && job.succeeded() {
                self.pending.push(Pending { job, until });
            } else {
                job.answer();
            }
        }
    }

    fn run_batch(&mut self, batch: &mut [Job]) -> rusqlite::Result<()> {
        let room = self.space.is_there();
        self.room.store(room, Ordering::Relaxed);
        let execute = |sql: &str| self.connection.prepare_cached(sql)?.execute([]);
        execute("BEGIN IMMEDIATE")?;
        for job in batch.iter_mut() {
            if job.needs().room && !room {
                job.fail(StorageError::Full);
                continue;
            }
            execute("SAVEPOINT job")?;
            if let Ran::Undo(why) = job.run(&self.connection) {
                // Some errors (a full disk) end the whole transaction: then nothing is left to commit.
                if self.connection.is_autocommit() {
                    return Err(why.unwrap_or(rusqlite::Error::InvalidQuery));
                }
                execute("ROLLBACK TO job")?;
            }
            execute("RELEASE job")?;
        }
        execute("COMMIT")?;
        Ok(())
    }

    /// Empties the log for the redactions that wait for it.
    fn scrub(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let emptied = self.checkpoint("TRUNCATE").map(|log| log.done);
        let now = Instant::now();
        for mut pending in std::mem::take(&mut self.pending) {
            match &emptied {
                Ok(true) => pending.job.answer(),
                Ok(false) if now < pending.until => self.pending.push(pending),
                Ok(false) => {
                    pending.job.fail(StorageError::RedactionPending);
                    pending.job.answer();
                }
                Err(error) => {
                    pending.job.fail(Fault::from(same_again(error)).into());
                    pending.job.answer();
                }
            }
        }
    }

    /// Keeps the log short: merged in passing, and begun again where steady readers keep that from happening.
    fn tend_log(&self) {
        let tended = self.log().and_then(|log| {
            meter::WAL_PAGES.set(u64::try_from(log.pages).unwrap_or(0));
            if log.pages - log.merged < MERGE_PAGES && log.pages < RESTART_PAGES {
                return Ok(());
            }
            let log = self.merge("PASSIVE")?;
            if log.pages >= RESTART_PAGES {
                self.checkpoint("RESTART")?;
            }
            Ok(())
        });
        if let Err(error) = tended {
            tracing::warn!(error = &error as &dyn std::error::Error, "the log could not be merged");
        }
    }

    /// A checkpoint that no reader of this process is in the way of.
    fn checkpoint(&self, mode: &str) -> rusqlite::Result<Log> {
        let _closed = self.gate.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        self.merge(mode)
    }

    fn log(&self) -> rusqlite::Result<Log> {
        Log::after(&self.connection, "NOOP")
    }

    fn merge(&self, mode: &str) -> rusqlite::Result<Log> {
        merge(&self.connection, &self.log_file, mode)
    }
}

/// Merges the log into the database, after the pages in it were cleared of what SQLite left there.
pub(crate) fn merge(connection: &Connection, log_file: &Path, mode: &str) -> rusqlite::Result<Log> {
    let log = Log::after(connection, "NOOP")?;
    let frames = |count: i64| u64::try_from(count).unwrap_or(0);
    gaps::clear(connection, log_file, frames(log.merged), frames(log.pages))?;
    Log::after(connection, mode)
}

/// The state of the write-ahead log after a checkpoint.
pub(crate) struct Log {
    done: bool,
    pages: i64,
    merged: i64,
}

impl Log {
    fn after(connection: &Connection, mode: &str) -> rusqlite::Result<Self> {
        let mut statement = connection.prepare_cached(&format!("PRAGMA wal_checkpoint({mode})"))?;
        statement.query_row([], |row| {
            Ok(Self { done: row.get::<_, i64>(0)? == 0, pages: row.get(1)?, merged: row.get(2)? })
        })
    }
}

/// The same failure once more, for the next one who waits for it.
fn same_again(error: &rusqlite::Error) -> rusqlite::Error {
    match error {
        rusqlite::Error::SqliteFailure(code, text) => rusqlite::Error::SqliteFailure(*code, text.clone()),
        other => rusqlite::Error::SqliteFailure(
            rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_ERROR),
            Some(other.to_string()),
        ),
    }
}
