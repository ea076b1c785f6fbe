//! Backups of a running server: one thing at a time, in the background.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use stele_core::backup::{BackupError, BackupRecord, BackupStanding, Keeper, Progress};
use stele_core::clock::{Clock, Random, System};
use stele_core::id::BackupId;
use stele_core::refusal::Refusal;
use stele_core::storage::{Answer, Error, StorageError};
use tokio_util::task::TaskTracker;

use super::make::{Partial, Source, host, make, remove_dead};
use super::scrub::scrub;

/// How long a server that ends waits for a backup under way.
const MOMENT: Duration = Duration::from_secs(1);

/// Makes backups of the database that a server runs on.
pub(crate) struct BackupKeeper {
    source: Source,
    /// What was done last.
    last: Arc<Mutex<Option<(BackupId, Progress)>>>,
    tasks: TaskTracker,
}

impl BackupKeeper {
    pub(crate) fn new(source: Source) -> Arc<Self> {
        Arc::new(Self { source, last: Arc::default(), tasks: TaskTracker::new() })
    }

    /// Gives what is under way a moment to clear away after itself: its storage is closed, so that it cannot end well.
    /// What it leaves goes with the next backup.
    pub(crate) async fn end(&self) {
        self.tasks.close();
        let _ = tokio::time::timeout(MOMENT, self.tasks.wait()).await;
    }

    /// Takes the turn for a backup.
    fn take_turn(&self, id: BackupId, progress: Progress) -> Result<(), BackupError> {
        let mut last = self.last.lock().expect("no panic under the lock");
        if matches!(*last, Some((_, Progress::Making | Progress::Scrubbing))) {
            return Err(BackupError::Busy);
        }
        *last = Some((id, progress));
        Ok(())
    }

    /// Does it in the background, and remembers how it ended.
    fn go<T: Send + 'static>(
        &self,
        id: BackupId,
        what: &'static str,
        work: impl Future<Output = anyhow::Result<T>> + Send + 'static,
    ) {
        let last = self.last.clone();
        self.tasks.spawn(async move {
            let ended = match work.await {
                Ok(_) => {
                    tracing::info!(backup.id = %id, "{what}");
                    Progress::Done
                }
                Err(error) => {
                    // The reason goes to who asked: it may name a path.
                    tracing::warn!(backup.id = %id, "a backup was not {what}");
                    Progress::Failed(format!("{error:#}"))
                }
            };
            *last.lock().expect("no panic under the lock") = Some((id, ended));
        });
    }

    async fn record(&self, id: BackupId) -> Result<BackupRecord, BackupError> {
        let found = self.list().await?.into_iter().find(|standing| standing.record.id == id);
        Ok(found.ok_or(BackupError::NotFound(id))?.record)
    }
}

fn stored(error: StorageError) -> BackupError {
    BackupError::Storage(Error::Failed(error))
}

fn refused(problem: impl Into<String>) -> BackupError {
    BackupError::Storage(Refusal::shape("to", problem).into())
}

impl Keeper for BackupKeeper {
    fn begin(&self, to: PathBuf) -> Answer<'_, Result<BackupId, BackupError>> {
        Box::pin(async move {
            if !to.is_absolute() || !to.is_dir() {
                return Err(refused("must be the absolute path of a directory on the server's machine"));
            }
            if self.source.has_within(&to) {
                return Err(refused(
                    "must not be the data directory or lie in it: a backup there is lost together with the database",
                ));
            }
            let (now, id) = (System.now(), BackupId::mint(System.now(), System.bits()));
            self.take_turn(id, Progress::Making)?;
            let remembered = self.source.remembered();
            let partial = match remove_dead(&to, &*remembered).await {
                Ok(()) => tokio::task::block_in_place(|| Partial::new(&to, now)),
                Err(error) => Err(error),
            };
            let partial = partial.map_err(|error| {
                *self.last.lock().expect("no panic under the lock") = None;
                refused(format!("cannot be written to: {error:#}"))
            })?;
            let source = self.source.clone();
            self.go(id, "made", async move { make(&source, partial, id, &System).await });
            Ok(id)
        })
    }

    fn begin_scrub(&self, id: BackupId) -> Answer<'_, Result<(), BackupError>> {
        Box::pin(async move {
            let record = self.record(id).await?;
            if record.host != host() {
                return Err(BackupError::Elsewhere(record.host));
            }
            self.take_turn(id, Progress::Scrubbing)?;
            let remembered = self.source.remembered();
            self.go(id, "scrubbed", async move { scrub(&*remembered, &record, &System).await });
            Ok(())
        })
    }

    fn list(&self) -> Answer<'_, Result<Vec<BackupStanding>, BackupError>> {
        Box::pin(async { self.source.remembered().backup_list().await.map_err(stored) })
    }

    fn progress(&self, id: BackupId) -> Option<Progress> {
        let last = self.last.lock().expect("no panic under the lock");
        last.as_ref().filter(|(of, _)| *of == id).map(|(_, progress)| progress.clone())
    }

    fn forget(&self, id: BackupId) -> Answer<'_, Result<(), BackupError>> {
        Box::pin(async move {
            let forgotten = self.source.remembered().backup_forget(id).await.map_err(stored)?;
            if forgotten { Ok(()) } else { Err(BackupError::NotFound(id)) }
        })
    }
}
