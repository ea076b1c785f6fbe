//! Commits of records: one transaction each, in two rounds: locks and writes, then COMMIT. DESIGN 5.
//!
//! Rows that more than one writer may want are locked in a fixed order before anything is written. Two commits can
//! still meet crosswise at keys or ids that neither has yet; PostgreSQL chooses a victim then, which is run again.

use std::collections::BTreeSet;
use std::sync::Arc;

use stele_core::id::WorkspaceId;
use stele_core::records::{CommitError, Entry, Kind, Record, RecordId, RecordWrite, Tag, span};
use stele_core::storage::StorageError;
use stele_core::watch::Topic;
use store_codec::{decode_tags, encode_tags};
use tokio::sync::oneshot;
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;

use crate::batch::{BEGIN, Broken};
use crate::connect::Connected;
use crate::fault::Fault;
use crate::lanes::{End, Place, Repeats};
use crate::pipeline::{Sent, send};
use crate::pool::Lent;
use crate::rows::{AnyId, Col, signed};
use crate::shared::Shared;

/// A commit that waits.
pub(crate) struct Commit {
    writes: Vec<RecordWrite>,
    reply: oneshot::Sender<Result<(), CommitError>>,
}

/// What is to be announced, or the write that another writer came before.
type Outcome = Result<Vec<(Topic, u64)>, usize>;

impl Shared {
    /// Carries out a commit when its turn comes: those that write the same record or log first wait for each other
    /// here rather than with a connection each.
    pub(crate) async fn commit(self: &Arc<Self>, writes: Vec<RecordWrite>) -> Result<(), CommitError> {
        let Some(first) = writes.first() else { return Ok(()) };
        let place = (first.workspace(), first.id());
        let (reply, answer) = oneshot::channel();
        if self.commits.push(place, Commit { writes, reply })? {
            let shared = self.clone();
            self.tracker.spawn(async move { shared.work_commits(place).await });
        }
        answer.await.map_err(|_| StorageError::Unavailable(None))?
    }

    async fn work_commits(&self, place: Place) {
        let _end = End { lanes: &self.commits, place };
        while let Some(Commit { writes, reply }) = self.commits.take(place) {
            let answer = match self.commit_records(&writes).await {
                Ok(Ok(news)) => {
                    self.announce(&news);
                    Ok(())
                }
                Ok(Err(at)) => Err(CommitError::Conflict(at)),
                Err(fault) => {
                    if !matches!(fault, Fault::Busy | Fault::Closed) {
                        tracing::warn!(error = ?fault.again(), writes = writes.len(), "a commit failed");
                    }
                    Err(CommitError::Failed(fault.into()))
                }
            };
            // A caller that went away needs no answer.
            let _ = reply.send(answer);
        }
    }

    async fn commit_records(&self, writes: &[RecordWrite]) -> Result<Outcome, Fault> {
        let mut repeats = Repeats::default();
        loop {
            let mut lent = self.pool.lend().await?;
            match self.attempt_records(&mut lent, writes).await {
                Ok(Ok(news)) => return Ok(Ok(news)),
                Ok(Err(at)) => {
                    self.roll_back(lent).await;
                    return Ok(Err(at));
                }
                Err(broken) => repeats.after(broken, lent, self).await?,
            }
        }
    }

    async fn attempt_records(&self, lent: &mut Lent, writes: &[RecordWrite]) -> Result<Outcome, Broken> {
        // Beyond PostgreSQL's own timeouts: a connection that says nothing at all.
        let outcome = match tokio::time::timeout(self.patience, run(lent.dirty(), writes)).await {
            Ok(outcome) => outcome?,
            Err(_) => return Err(Broken { fault: Fault::Silent, committing: true }),
        };
        if outcome.is_ok() {
            lent.clean();
        }
        Ok(outcome)
    }
}

type Counted<'a> = Sent<'a, Result<u64, tokio_postgres::Error>>;
type Found<'a> = Sent<'a, Result<Option<Row>, tokio_postgres::Error>>;

/// A statement of a write, on its way.
enum Step<'a> {
    /// Writes one row, or another writer came first.
    One(Counted<'a>),
    /// Writes one row and answers with the tags and the time of creation that it had, or another writer came first.
    Over(Found<'a>),
    /// Writes as many rows as there are.
    Any(Counted<'a>),
    /// Answers with the last sequence of a log that is dropped now, if there was one.
    Dropped(Found<'a>),
}

/// Runs the transaction. After a conflict it is still open.
async fn run(connected: &Connected, writes: &[RecordWrite]) -> Result<Outcome, Broken> {
    let begun = send(connected.client.batch_execute(BEGIN)).await;
    let locks = lock(connected, writes).await;
    let mut steps = Vec::with_capacity(writes.len());
    let mut news = Vec::with_capacity(writes.len());
    for (at, write) in writes.iter().enumerate() {
        let Some(position) = send_write(connected, write, at, &mut steps).await else {
            // What is wrong by itself need not be asked about.
            drop((begun, locks, steps));
            return Ok(Err(at));
        };
        news.push((write.id(), position));
    }
    begun.answer().await?;
    for lock in locks {
        lock.answer().await?;
    }
    let mut retags = Vec::new();
    for (at, step) in steps {
        let came_first = match step {
            Step::One(sent) => match sent.answer().await {
                Ok(count) => {
                    retags.extend(Retag::of_new(&writes[at]));
                    count == 0
                }
                Err(error) => is_taken(error)?,
            },
            Step::Over(sent) => match sent.answer().await {
                Ok(Some(row)) => {
                    retags.extend(Retag::of_change(&writes[at], &row)?);
                    false
                }
                Ok(None) => true,
                Err(error) => is_taken(error)?,
            },
            Step::Any(sent) => {
                sent.answer().await?;
                false
            }
            Step::Dropped(sent) => {
                let last = sent.answer().await?.map(|row| row.try_get::<_, i64>(0)).transpose()?;
                news[at].1 = last.map_or(0, |last| last.unsigned_abs() + 1);
                false
            }
        };
        if came_first {
            return Ok(Err(at));
        }
    }
    let mut tagging = Vec::new();
    for retag in &retags {
        retag.send(connected, &mut tagging).await;
    }
    // A statement before it that is not carried out turns this COMMIT into a rollback.
    let committed = send(connected.client.batch_execute("COMMIT")).await;
    let unknown = |fault: Fault| Broken { committing: fault.is_lost(), fault };
    for sent in tagging {
        sent.answer().await.map_err(|error| unknown(error.into()))?;
    }
    committed.answer().await.map_err(|error| unknown(error.into()))?;
    // Nothing is told of what was not there.
    news.retain(|(_, position)| *position > 0);
    Ok(Ok(news))
}

/// Whether PostgreSQL refuses a write because its key is another record's.
fn is_taken(error: tokio_postgres::Error) -> Result<bool, Fault> {
    if error.code() == Some(&SqlState::UNIQUE_VIOLATION) { Ok(true) } else { Err(error.into()) }
}

/// What a write changes of the tags in their table.
struct Retag {
    workspace: Col<WorkspaceId>,
    kind: i32,
    id: Col<AnyId>,
    created_at: i64,
    gone: Vec<Tag>,
    new: Vec<Tag>,
}

impl Retag {
    fn of_new(write: &RecordWrite) -> Option<Self> {
        let RecordWrite::Put(record) = write else { return None };
        Some(Self {
            workspace: Col(record.workspace),
            kind: i32::from(record.kind.0),
            id: Col(AnyId(record.id)),
            created_at: record.created_at.as_micros(),
            gone: Vec::new(),
            new: record.tags.clone(),
        })
    }

    /// Of a write over a record that had what is in the row; `None` where its tags stay as they are.
    fn of_change(write: &RecordWrite, row: &Row) -> Result<Option<Self>, Fault> {
        let (workspace, kind, id, new): (_, _, _, &[Tag]) = match write {
            RecordWrite::Put(record) => (record.workspace, record.kind, record.id, &record.tags),
            RecordWrite::Delete { workspace, kind, id, .. } => (*workspace, *kind, *id, &[]),
            RecordWrite::Append { .. } | RecordWrite::DropLog { .. } => return Ok(None),
        };
        let old = decode_tags(row.try_get(0)?)
            .ok_or_else(|| Fault::Damaged(format!("of kind {}, in its tags", kind.0)))?;
        if old == new {
            return Ok(None);
        }
        Ok(Some(Self {
            workspace: Col(workspace),
            kind: i32::from(kind.0),
            id: Col(AnyId(id)),
            created_at: row.try_get(1)?,
            gone: old.iter().filter(|tag| !new.contains(tag)).cloned().collect(),
            new: new.iter().filter(|tag| !old.contains(tag)).cloned().collect(),
        }))
    }

    async fn send<'a>(&'a self, connected: &'a Connected, sent: &mut Vec<Counted<'a>>) {
        let statements = &connected.statements;
        let changes = (self.gone.iter().map(|tag| (&statements.delete_tag, tag)))
            .chain(self.new.iter().map(|tag| (&statements.insert_tag, tag)));
        for (statement, Tag { name, value }) in changes {
            let change = send(async move {
                let Self { workspace, kind, id, created_at, .. } = self;
                let name = i32::from(*name);
                connected.client.execute(statement, &[workspace, kind, &name, value, created_at, id]).await
            });
            sent.push(change.await);
        }
    }
}

/// Asks for the locks on the rows of a commit that has several.
async fn lock<'a>(connected: &'a Connected, writes: &[RecordWrite]) -> Vec<Found<'a>> {
    let places: BTreeSet<(WorkspaceId, Option<Kind>, RecordId)> = writes.iter().map(place).collect();
    let mut locks = Vec::new();
    if places.len() < 2 {
        return locks;
    }
    for (workspace, kind, id) in places {
        let sent = send(async move {
            let (client, statements) = (&connected.client, &connected.statements);
            let (workspace, id) = (Col(workspace), Col(AnyId(id)));
            match kind {
                Some(Kind(kind)) => {
                    client.query_opt(&statements.lock_record, &[&workspace, &i32::from(kind), &id]).await
                }
                None => client.query_opt(&statements.lock_log, &[&workspace, &id]).await,
            }
        });
        locks.push(sent.await);
    }
    locks
}

/// A record's place; a log's has no kind.
fn place(write: &RecordWrite) -> (WorkspaceId, Option<Kind>, RecordId) {
    let kind = match write {
        RecordWrite::Put(record) => Some(record.kind),
        RecordWrite::Delete { kind, .. } => Some(*kind),
        RecordWrite::Append { .. } | RecordWrite::DropLog { .. } => None,
    };
    (write.workspace(), kind, write.id())
}

/// Sends a write; the position that it leads to (0 where that is not known yet), or `None` if it cannot be right.
async fn send_write<'a>(
    connected: &'a Connected,
    write: &'a RecordWrite,
    at: usize,
    steps: &mut Vec<(usize, Step<'a>)>,
) -> Option<u64> {
    match write {
        RecordWrite::Put(record) => {
            let step = match record.revision {
                0 => return None,
                1 => Step::One(insert(connected, record).await),
                _ => Step::Over(update(connected, record).await),
            };
            steps.push((at, step));
            Some(record.revision)
        }
        RecordWrite::Delete { workspace, kind, id, revision } => {
            let (workspace, kind, id) = (Col(*workspace), i32::from(kind.0), Col(AnyId(*id)));
            let sent = send(async move {
                let statement = &connected.statements.delete_record;
                connected.client.query_opt(statement, &[&workspace, &kind, &id, &signed(*revision)]).await
            });
            steps.push((at, Step::Over(sent.await)));
            Some(revision + 1)
        }
        RecordWrite::Append { entries, .. } if entries.is_empty() => Some(0),
        RecordWrite::Append { workspace, log, entries } => {
            let (first, last) = span(entries)?;
            let log = (Col(*workspace), Col(AnyId(*log)));
            steps.push((at, Step::One(extend(connected, log, first, last).await)));
            steps.push((at, Step::Any(insert_entries(connected, log, entries).await)));
            Some(last)
        }
        RecordWrite::DropLog { workspace, log } => {
            let (workspace, log) = (Col(*workspace), Col(AnyId(*log)));
            let sent = send(async move {
                connected.client.query_opt(&connected.statements.drop_log, &[&workspace, &log]).await
            });
            steps.push((at, Step::Dropped(sent.await)));
            Some(0)
        }
    }
}

async fn insert<'a>(connected: &'a Connected, record: &'a Record) -> Counted<'a> {
    send(async move {
        let (workspace, kind, id) = (Col(record.workspace), i32::from(record.kind.0), Col(AnyId(record.id)));
        let (due_at, key) = (record.due_at.map(|at| at.as_micros()), record.key.as_ref().map(|key| &key[..]));
        let (tags, body) = (encode_tags(&record.tags), &record.body[..]);
        let (statement, created_at) = (&connected.statements.insert_record, record.created_at.as_micros());
        connected
            .client
            .execute(statement, &[&workspace, &kind, &id, &created_at, &due_at, &key, &tags, &body])
            .await
    })
    .await
}

async fn update<'a>(connected: &'a Connected, record: &'a Record) -> Found<'a> {
    send(async move {
        let (workspace, kind, id) = (Col(record.workspace), i32::from(record.kind.0), Col(AnyId(record.id)));
        let (due_at, key) = (record.due_at.map(|at| at.as_micros()), record.key.as_ref().map(|key| &key[..]));
        let (tags, body) = (encode_tags(&record.tags), &record.body[..]);
        let (statement, revision) = (&connected.statements.update_record, signed(record.revision));
        connected
            .client
            .query_opt(statement, &[&workspace, &kind, &id, &revision, &due_at, &key, &tags, &body])
            .await
    })
    .await
}

type Log = (Col<WorkspaceId>, Col<AnyId>);

async fn extend(connected: &Connected, (workspace, log): Log, first: u64, last: u64) -> Counted<'_> {
    send(async move {
        let (client, statements) = (&connected.client, &connected.statements);
        if first == 1 {
            client.execute(&statements.insert_log, &[&workspace, &log, &signed(last)]).await
        } else {
            let statement = &statements.extend_log;
            client.execute(statement, &[&workspace, &log, &signed(last), &signed(first - 1)]).await
        }
    })
    .await
}

async fn insert_entries<'a>(
    connected: &'a Connected,
    (workspace, log): Log,
    entries: &'a [Entry],
) -> Counted<'a> {
    send(async move {
        let sequences: Vec<i64> = entries.iter().map(|entry| signed(entry.sequence)).collect();
        let ids: Vec<_> = entries.iter().map(|entry| Col(AnyId(entry.id))).collect();
        let times: Vec<i64> = entries.iter().map(|entry| entry.at.as_micros()).collect();
        let kinds: Vec<&str> = entries.iter().map(|entry| entry.kind.as_str()).collect();
        let bodies: Vec<&[u8]> = entries.iter().map(|entry| &entry.body[..]).collect();
        let statement = &connected.statements.insert_entries;
        connected
            .client
            .execute(statement, &[&workspace, &log, &sequences, &ids, &times, &kinds, &bodies])
            .await
    })
    .await
}
