//! Reader threads: one read-only connection each, short snapshots, never on the async threads. DESIGN 5.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, RwLock};
use std::thread::JoinHandle;

use rusqlite::Connection;
use stele_core::storage::StorageError;
use tokio::sync::oneshot;

use crate::fault::Fault;
use crate::open::{OpenError, open_reader};

/// Most jobs that share a snapshot: waking the next thread costs more than a point read.
const BATCH: usize = 32;
/// Most jobs that wait.
const MOST: usize = 16_384;

type Job = Box<dyn FnOnce(&Connection) + Send>;

struct Waiting {
    jobs: VecDeque<Job>,
    closed: bool,
}

struct Shared {
    waiting: Mutex<Waiting>,
    arrived: Condvar,
    /// Held for reading while a snapshot is open, for writing while the log is emptied.
    gate: Arc<RwLock<()>>,
    threads: usize,
}

/// The reader threads.
pub(crate) struct Readers {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Readers {
    /// Starts `count` threads on the database in `data_dir`. Whoever holds `gate` for writing knows that none of
    /// them has a snapshot open.
    pub(crate) fn start(data_dir: &Path, count: usize, gate: Arc<RwLock<()>>) -> Result<Self, OpenError> {
        let waiting = Mutex::new(Waiting { jobs: VecDeque::new(), closed: false });
        let shared = Arc::new(Shared { waiting, arrived: Condvar::new(), gate, threads: count });
        let mut threads = Vec::with_capacity(count);
        for number in 0..count {
            let connection = open_reader(data_dir)?;
            let shared = shared.clone();
            let thread = std::thread::Builder::new()
                .name(format!("sqlite-read-{number}"))
                .spawn(move || shared.run(&connection))
                .map_err(|source| OpenError::Io { path: data_dir.to_owned(), source })?;
            threads.push(thread);
        }
        Ok(Self { shared, threads: Mutex::new(threads) })
    }

    /// Runs `read` in a snapshot that is taken after this call.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StorageError> {
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(move |connection| {
            // A caller that went away needs no answer.
            let _ = reply.send(read(connection));
        });
        self.shared.push(job)?;
        Ok(answer.await.map_err(|_| StorageError::Unavailable(None))??)
    }

    /// Ends the threads after what waits is done.
    pub(crate) fn stop(&self) {
        self.shared.waiting.lock().expect("no panic under the lock").closed = true;
        self.shared.arrived.notify_all();
        for thread in self.threads.lock().expect("no panic under the lock").drain(..) {
            // A panic was logged by the thread.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn push(&self, job: Job) -> Result<(), StorageError> {
        let mut waiting = self.waiting.lock().expect("no panic under the lock");
        if waiting.closed {
            return Err(StorageError::Unavailable(None));
        }
        if waiting.jobs.len() >= MOST {
            return Err(StorageError::Overloaded);
        }
        waiting.jobs.push_back(job);
        drop(waiting);
        self.arrived.notify_one();
        Ok(())
    }

    fn run(&self, connection: &Connection) {
        while let Some(batch) = self.next_batch() {
            let _open = self.gate.read().unwrap_or_else(|poisoned| poisoned.into_inner());
            // The snapshot is newer than every job in the batch, so each sees what was answered before it came.
            let began = connection.execute_batch("BEGIN");
            for job in batch {
                let run = std::panic::AssertUnwindSafe(|| job(connection));
                if std::panic::catch_unwind(run).is_err() {
                    tracing::error!("a read panicked");
                }
            }
            if let Err(error) = began.and_then(|()| connection.execute_batch("COMMIT")) {
                tracing::error!(error = &error as &dyn std::error::Error, "a read snapshot failed");
            }
        }
    }

    fn next_batch(&self) -> Option<Vec<Job>> {
        let mut waiting = self.waiting.lock().expect("no panic under the lock");
        loop {
            if !waiting.jobs.is_empty() {
                // A fair share, so that long reads don't queue up behind one thread while others idle.
                let count = waiting.jobs.len().div_ceil(self.threads).min(BATCH);
                return Some(waiting.jobs.drain(..count).collect());
            }
            if waiting.closed {
                return None;
            }
            waiting = self.arrived.wait(waiting).expect("no panic under the lock");
        }
    }
}
