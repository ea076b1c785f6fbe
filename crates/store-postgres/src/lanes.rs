//! Commands wait in line by store; those that wait together share a transaction. Commits of records wait in lines of
//! their own, one behind the other. DESIGN 5.
//!
//! Each line with waiting jobs has one task, so that a process never waits for itself at a store's row. Tasks
//! outlive the requests that they answer: a caller that goes away leaves no transaction half done.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use stele_core::id::WorkspaceId;
use stele_core::refusal::Refusal;
use stele_core::storage::{Changed, ChangedAll, Error, StorageError};
use tokio::sync::oneshot;

use crate::batch::{self, Answers, Batch, Broken, Done, Prepared, PreparedAll, Refused};
use crate::fault::Fault;
use crate::shared::Shared;

/// Most commands of one transaction.
const BATCH: usize = 64;
/// Most commands that wait, in all and of one workspace.
const MOST: usize = 8_192;
const MOST_OF_ONE: usize = 2_048;
/// How often a transaction that PostgreSQL chose as a victim is run again.
const REPEATS: u32 = 8;
/// How many dead connections one transaction may meet before its first statement gets through.
pub(crate) const RECONNECTS: u32 = 3;

/// A store, or the record or log that a commit writes first.
pub(crate) type Place = (WorkspaceId, [u8; 16]);
type Reply<T> = oneshot::Sender<Result<T, Error>>;

/// A command that waits, with the one who waits for it.
pub(crate) struct One {
    prepared: Prepared,
    reply: Reply<Changed>,
}

/// What waits for a store.
pub(crate) enum Job {
    /// A command, which those behind it may join.
    One(One),
    /// A changeset has a transaction of its own.
    All(PreparedAll, Reply<ChangedAll>),
}

/// What a store's task does next.
enum Turn {
    Together(Vec<One>),
    Alone(PreparedAll, Reply<ChangedAll>),
}

struct Waiting<J> {
    lanes: HashMap<Place, VecDeque<J>>,
    count: usize,
    of_workspace: HashMap<WorkspaceId, usize>,
    closed: bool,
}

/// All lines.
pub(crate) struct Lanes<J> {
    waiting: Mutex<Waiting<J>>,
}

impl<J> Default for Lanes<J> {
    fn default() -> Self {
        let (lanes, of_workspace) = (HashMap::new(), HashMap::new());
        Self { waiting: Mutex::new(Waiting { lanes, count: 0, of_workspace, closed: false }) }
    }
}

impl Lanes<Job> {
    /// Carries out a change when its turn comes.
    pub(crate) async fn change(&self, shared: &Arc<Shared>, prepared: Prepared) -> Result<Changed, Error> {
        let place = (prepared.change.workspace, *prepared.change.store.as_bytes());
        let (reply, answer) = oneshot::channel();
        self.queue(shared, place, Job::One(One { prepared, reply }))?;
        answer.await.map_err(|_| StorageError::Unavailable(None))?
    }

    /// Carries out a changeset when its turn comes.
    pub(crate) async fn change_all(
        &self,
        shared: &Arc<Shared>,
        prepared: PreparedAll,
    ) -> Result<ChangedAll, Error> {
        let place = (prepared.change.workspace, *prepared.change.store.as_bytes());
        let (reply, answer) = oneshot::channel();
        self.queue(shared, place, Job::All(prepared, reply))?;
        answer.await.map_err(|_| StorageError::Unavailable(None))?
    }

    fn queue(&self, shared: &Arc<Shared>, place: Place, job: Job) -> Result<(), StorageError> {
        if self.push(place, job)? {
            let worker = shared.clone();
            shared.tracker.spawn(async move { worker.lanes.work(place, &worker).await });
        }
        Ok(())
    }

    /// The next jobs of a store; `None` ends its task.
    fn turn(&self, place: Place) -> Option<Turn> {
        let jobs =
            self.take_while(place, BATCH, |first, next| matches!((first, next), (Job::One(_), Job::One(_))))?;
        let mut together = Vec::with_capacity(jobs.len());
        for job in jobs {
            match job {
                Job::One(one) => together.push(one),
                Job::All(prepared, reply) => return Some(Turn::Alone(prepared, reply)),
            }
        }
        Some(Turn::Together(together))
    }

    async fn work(&self, place: Place, shared: &Shared) {
        let _end = End { lanes: self, place };
        loop {
            // The connection first: what arrives while it is waited for comes along.
            let lent = shared.pool.lend().await;
            let Some(turn) = self.turn(place) else { return };
            // A caller that went away needs no answer.
            match (turn, lent) {
                (Turn::Together(jobs), Ok(lent)) => {
                    let commands: Vec<&Prepared> = jobs.iter().map(|job| &job.prepared).collect();
                    let answers = shared.commit_together(lent, &commands).await;
                    for (job, answer) in jobs.into_iter().zip(answers) {
                        let _ = job.reply.send(answer);
                    }
                }
                (Turn::Together(jobs), Err(fault)) => {
                    for job in jobs {
                        let _ = job.reply.send(Err(fault.again().into()));
                    }
                }
                (Turn::Alone(prepared, reply), Ok(lent)) => {
                    let _ = reply.send(shared.commit_changeset(lent, &prepared).await);
                }
                (Turn::Alone(_, reply), Err(fault)) => {
                    let _ = reply.send(Err(fault.again().into()));
                }
            }
        }
    }
}

impl<J> Lanes<J> {
    /// Lets a job wait; true if its line needs a task.
    pub(crate) fn push(&self, place: Place, job: J) -> Result<bool, StorageError> {
        let mut waiting = self.waiting.lock().expect("no panic under the lock");
        if waiting.closed {
            return Err(StorageError::Unavailable(None));
        }
        let of_workspace = waiting.of_workspace.get(&place.0).copied().unwrap_or(0);
        if waiting.count >= MOST || of_workspace >= MOST_OF_ONE {
            return Err(StorageError::Overloaded);
        }
        waiting.count += 1;
        *waiting.of_workspace.entry(place.0).or_default() += 1;
        let idle = !waiting.lanes.contains_key(&place);
        waiting.lanes.entry(place).or_default().push_back(job);
        Ok(idle)
    }

    /// The next job of a line; `None` ends its task.
    pub(crate) fn take(&self, place: Place) -> Option<J> {
        self.take_while(place, 1, |_, _| false)?.pop()
    }

    /// The next job of a line and those behind it that may share its turn; `None` ends the line's task.
    fn take_while(&self, place: Place, most: usize, joins: impl Fn(&J, &J) -> bool) -> Option<Vec<J>> {
        let mut waiting = self.waiting.lock().expect("no panic under the lock");
        let lane = waiting.lanes.get_mut(&place)?;
        let Some(first) = lane.front() else {
            waiting.lanes.remove(&place);
            return None;
        };
        let joining = lane.iter().skip(1).take(most - 1).take_while(|next| joins(first, next)).count();
        let jobs: Vec<J> = lane.drain(..=joining).collect();
        waiting.count -= jobs.len();
        let of_workspace = waiting.of_workspace.get_mut(&place.0).expect("jobs of a workspace are counted");
        *of_workspace -= jobs.len();
        if *of_workspace == 0 {
            waiting.of_workspace.remove(&place.0);
        }
        Some(jobs)
    }

    /// Takes no more jobs; what waits is still carried out.
    pub(crate) fn close(&self) {
        self.waiting.lock().expect("no panic under the lock").closed = true;
    }

    /// What waits in a line is let down: its task has panicked.
    fn abandon(&self, place: Place) {
        while self.take(place).is_some() {}
    }
}

/// The end of a line's task.
pub(crate) struct End<'a, J> {
    pub(crate) lanes: &'a Lanes<J>,
    pub(crate) place: Place,
}

impl<J> Drop for End<'_, J> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.lanes.abandon(self.place);
        }
    }
}

/// The answer to a single command.
fn changed(done: Result<Done, Refused>) -> Result<Changed, Error> {
    let Done { outcome, content, sequence, .. } = done.map_err(refused)?;
    Ok(Changed { outcome, content, sequence })
}

impl Shared {
    /// Runs the commands in one transaction, and each alone where that fails for a reason of one of them.
    async fn commit_together(
        &self,
        lent: crate::pool::Lent,
        commands: &[&Prepared],
    ) -> Vec<Result<Changed, Error>> {
        match self.commit_batch(Some(lent), &Batch::of_changes(commands)).await {
            Ok(answers) => answers.into_iter().map(changed).collect(),
            Err(fault) if commands.len() == 1 || fault.concerns_all() => {
                if !matches!(fault, Fault::Busy | Fault::Closed) {
                    tracing::warn!(error = ?fault.again(), commands = commands.len(), "a commit failed");
                }
                commands.iter().map(|_| Err(fault.again().into())).collect()
            }
            Err(_) => {
                let mut answers = Vec::with_capacity(commands.len());
                for command in commands {
                    let alone = self.commit_batch(None, &Batch::of_changes(&[*command])).await;
                    let answer = match alone {
                        Ok(mut answers) => changed(answers.pop().expect("one answer a command")),
                        Err(fault) => {
                            tracing::warn!(error = ?fault.again(), "a command failed");
                            Err(fault.again().into())
                        }
                    };
                    answers.push(answer);
                }
                answers
            }
        }
    }

    /// Runs a changeset in a transaction of its own.
    async fn commit_changeset(
        &self,
        lent: crate::pool::Lent,
        prepared: &PreparedAll,
    ) -> Result<ChangedAll, Error> {
        let answers = match self.commit_batch(Some(lent), &Batch::of_changeset(prepared)).await {
            Ok(answers) => answers,
            Err(fault) => {
                if !matches!(fault, Fault::Busy | Fault::Closed) {
                    tracing::warn!(error = ?fault.again(), "a changeset failed");
                }
                return Err(fault.again().into());
            }
        };
        let mut changed = ChangedAll { applied: Vec::with_capacity(answers.len()), sequence: 0 };
        for done in answers {
            let Done { applied, sequence, .. } = done.map_err(refused)?;
            changed.applied.push(applied.expect("changes of a changeset say what they did"));
            changed.sequence = sequence;
        }
        Ok(changed)
    }

    /// One transaction, repeated while PostgreSQL makes it a victim, and on another connection where one turns
    /// out to be dead before COMMIT was sent.
    async fn commit_batch(
        &self,
        mut lent: Option<crate::pool::Lent>,
        commands: &Batch<'_>,
    ) -> Result<Answers, Fault> {
        let mut repeats = Repeats::default();
        loop {
            let mut connection = match lent.take() {
                Some(lent) => lent,
                None => self.pool.lend().await?,
            };
            match self.attempt(&mut connection, commands).await {
                Ok(answers) => return Ok(answers),
                Err(broken) => repeats.after(broken, connection, self).await?,
            }
        }
    }

    async fn attempt(
        &self,
        connection: &mut crate::pool::Lent,
        commands: &Batch<'_>,
    ) -> Result<Answers, Broken> {
        // Beyond PostgreSQL's own timeouts: a connection that says nothing at all.
        let running = batch::run(connection.dirty(), commands, self);
        let committed = match tokio::time::timeout(self.patience, running).await {
            Ok(committed) => committed?,
            Err(_) => return Err(Broken { fault: Fault::Silent, committing: true }),
        };
        connection.clean();
        if let Some(at) = committed.changed_at {
            self.announce(&[(*commands.store().as_bytes(), at.as_micros().unsigned_abs())]);
        }
        Ok(committed.answers)
    }

    /// Gives a connection back without its transaction; one that does not even do that is closed.
    pub(crate) async fn roll_back(&self, mut connection: crate::pool::Lent) {
        let ended = connection.dirty().client.batch_execute("ROLLBACK");
        if let Ok(Ok(())) = tokio::time::timeout(self.patience, ended).await {
            connection.clean();
        }
    }
}

/// How often a transaction was run again.
#[derive(Default)]
pub(crate) struct Repeats {
    victim: u32,
    lost: u32,
}

impl Repeats {
    /// Gives up the connection of a transaction that broke, and comes back when it may be run again; with the fault
    /// where it may not.
    pub(crate) async fn after(
        &mut self,
        broken: Broken,
        connection: crate::pool::Lent,
        shared: &Shared,
    ) -> Result<(), Fault> {
        if broken.fault.is_lost() {
            drop(connection);
            if broken.committing || self.lost == RECONNECTS {
                return Err(broken.fault);
            }
            self.lost += 1;
        } else {
            shared.roll_back(connection).await;
            if !broken.fault.is_conflict() || self.victim == REPEATS {
                return Err(broken.fault);
            }
            self.victim += 1;
            let pause = shared.random.bits() % (1 << self.victim.min(6));
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
        Ok(())
    }
}

fn refused((refusal, sequence): (Refusal, Option<u64>)) -> Error {
    Error::refused(refusal, sequence)
}

impl Fault {
    /// Whether the commands of a batch have it in common, so that running them one by one would not help.
    fn concerns_all(&self) -> bool {
        self.is_lost()
            || self.is_conflict()
            || matches!(self.again(), StorageError::Overloaded | StorageError::Full)
            || matches!(self, Self::Busy | Self::Closed)
    }
}
