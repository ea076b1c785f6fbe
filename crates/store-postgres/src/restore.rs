//! Putting a store back behind a tombstone, in short transactions. A lease keeps the purge of every process away while it
//! goes on; what stops in the middle is purged when the lease has ended. Asked for seldom, so that its statements are
//! prepared when they are needed.

use std::time::Duration;

use stele_core::backup::RedactionRecord;
use stele_core::command::RedactedPath;
use stele_core::decide::room_for_store;
use stele_core::dump::StorePlace;
use stele_core::feed::{History, Past};
use stele_core::id::{StoreId, WorkspaceId};
use stele_core::model::{Mark, Memory, Store, VersionText};
use stele_core::refusal::Refusal;
use stele_core::storage::{Remains, Rows};
use store_codec::{Encoded, encode_bytes};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;

use crate::connect::Connected;
use crate::fault::{Fault, Stop};
use crate::feed::TEXTS;
use crate::ledger;
use crate::load::Place;
use crate::marks::{self, insert_mark};
use crate::pipeline::{Sent, send};
use crate::reads::version_text;
use crate::rows::{self, AnyId, Col, Cursor, actor_columns, operation_number, signed};
use crate::shared::{Shared, Tx};
use crate::stores::{free_slug, insert_store};

/// How long a process that says nothing keeps the lease.
const LEASE: Duration = Duration::from_secs(60);
/// Rows of one transaction.
const SLICE: usize = 100;

const INSERT_VERSION: &str = "INSERT INTO versions (workspace, store, sequence, id, memory_id, operation, created_at, author_kind, author, \
     redacted_at, redacted_by_kind, redacted_by, content_sha256, size_bytes, path, summary, reason, encoding, content) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)";
const INSERT_REDACTION: &str = "INSERT INTO redactions (workspace, store, version, written_at, redacted_at, redacted_by_kind, redacted_by, \
     path_scrubbed) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (workspace, store, version) \
     DO UPDATE SET path_scrubbed = redactions.path_scrubbed OR excluded.path_scrubbed";
/// The head is the sequence of its version, which was kept before.
const INSERT_MEMORY: &str = "INSERT INTO memories (workspace, store, id, path, head, version_id, content_sha256, size_bytes, created_at, \
     updated_at) SELECT v.workspace, v.store, $3, $4, v.sequence, v.id, $6, $7, $8, $9 FROM versions v \
     WHERE v.workspace = $1 AND v.store = $2 AND v.id = $5";
const REDACTIONS: &str = "SELECT workspace, store, version, written_at, redacted_at, redacted_by_kind, redacted_by, path_scrubbed \
     FROM redactions WHERE workspace = $1 AND store = $2";
const LOCK: &str =
    "SELECT 1 FROM stores WHERE workspace = $1 AND id = $2 AND deleted_at IS NOT NULL FOR UPDATE";
/// Whole seconds until the lease ends; one that has ended is about to be purged.
const LEFT: &str =
    "SELECT ceil(extract(epoch FROM until - clock_timestamp()))::bigint FROM leases WHERE job = $1";
/// Only one that has not ended: else a purge may be under way.
const RENEW: &str = "UPDATE leases SET until = clock_timestamp() + $3::bigint * interval '1 millisecond' \
     WHERE job = $1 AND holder = $2 AND until > clock_timestamp()";

/// The name of the lease of a store that is put back; `statements.rs` knows it too.
pub(crate) fn job(store: StoreId) -> String {
    format!("restore {store}")
}

fn lease_millis() -> i64 {
    i64::try_from(LEASE.as_millis()).expect("a short time")
}

/// The history of a store after a sequence; the store's row is read first, so that the rest is as new.
pub(crate) async fn history(
    connected: &Connected,
    (workspace, id): (WorkspaceId, StoreId),
    after: u64,
    (limit, bytes): (usize, u64),
) -> Result<Option<History>, Fault> {
    let (client, statements) = (&connected.client, &connected.statements);
    let (space, place) = (Col(workspace), Col(id));
    let asked = limit.min(TEXTS);
    let (behind, texts, most) = (signed(after), signed(asked as u64), signed(limit as u64));
    let of_versions: [&(dyn ToSql + Sync); 4] = [&space, &place, &behind, &texts];
    let of_marks: [&(dyn ToSql + Sync); 4] = [&space, &place, &behind, &most];
    let row = send(client.query_opt(&statements.followed_store, &of_versions[..2])).await;
    let versions = send(client.query(&statements.history, &of_versions)).await;
    let marks = send(client.query(&statements.marks_after, &of_marks)).await;
    let (row, found, marks) = (row.answer().await?, versions.answer().await?, marks.answer().await?);
    let Some(row) = row else { return Ok(None) };
    let c = &mut Cursor::new(&row);
    if c.take::<bool>()? {
        return Ok(None);
    }
    let store = rows::store(c)?;
    let (mut past, mut read) = (Vec::new(), 0);
    for row in &found {
        let text = version_text(row, id, true)?;
        read += text.content.as_ref().map_or(0, |content| content.len() as u64);
        past.push(Past::Version(Box::new(text)));
        if read >= bytes {
            break;
        }
    }
    let cut = past.len() < found.len() || past.len() == asked;
    let end = past.last().filter(|_| cut).map_or(store.counters.sequence, Past::sequence);
    for row in &marks {
        past.push(Past::Mark(marks::mark(&mut Cursor::new(row))?));
    }
    past.retain(|past| past.sequence() <= end.min(store.counters.sequence));
    past.sort_by_key(Past::sequence);
    past.truncate(limit);
    Ok(Some(History { store, past }))
}

/// A row of a history as it is stored.
enum Kept {
    Version(Box<VersionText>, Option<Encoded>),
    Mark(Mark),
}

impl Shared {
    pub(crate) async fn restore_begin(&self, store: &Store) -> Result<Remains, Stop> {
        let tx = self.begin().await?;
        let begun = self.restore_begun(&tx, store).await;
        self.ended(tx, begun).await
    }

    /// Commits what was done, or undoes what was refused.
    async fn ended<T>(&self, tx: Tx, done: Result<T, Stop>) -> Result<T, Stop> {
        match done {
            Ok(done) => {
                tx.commit().await?;
                Ok(done)
            }
            Err(stop) => {
                self.roll_back(tx.lent).await;
                Err(stop)
            }
        }
    }

    async fn room(&self, connected: &Connected, store: &Store) -> Result<(), Stop> {
        let (client, statements) = (&connected.client, &connected.statements);
        client.query_opt(&statements.lock_workspace, &[&Col(store.workspace)]).await?;
        let stores: i64 =
            client.query_one(&statements.count_stores, &[&Col(store.workspace)]).await?.try_get(0)?;
        Ok(room_for_store(stores.unsigned_abs(), store.origin, &self.limits)?)
    }

    async fn restore_begun(&self, tx: &Tx, store: &Store) -> Result<Remains, Stop> {
        let connected = tx.connected();
        let (client, statements) = (&connected.client, &connected.statements);
        self.room(connected, store).await?;
        let (workspace, id) = (Col(store.workspace), Col(store.id));
        if client.query_opt("SELECT 1 FROM stores WHERE id = $1", &[&id]).await?.is_some() {
            return Err(in_the_way(connected, store.id).await?);
        }
        // Which slug it gets is settled at its end; that of a tombstone counts no more.
        let slug = free_slug(connected, store.workspace, &store.slug).await?;
        insert_store(connected, &Store { slug, ..store.clone() }).await?;
        let hide = "UPDATE stores SET deleted_at = changed_at WHERE workspace = $1 AND id = $2";
        client.execute(hide, &[&workspace, &id]).await?;
        let lease = [job(store.id)];
        let parameters: [&(dyn ToSql + Sync); 3] = [&lease[0], &Col(AnyId(self.holder)), &lease_millis()];
        if client.execute(&statements.take_lease, &parameters).await? != 1 {
            return Err(in_the_way(connected, store.id).await?);
        }
        let mark = "SELECT max(sequence) FROM marks WHERE workspace = $1 AND store = $2 AND kind = 3";
        let deleted_at: Option<i64> = client.query_one(mark, &[&workspace, &id]).await?.try_get(0)?;
        let redactions = client.query(REDACTIONS, &[&workspace, &id]).await?;
        let redactions = redactions.iter().map(ledger::redaction).collect::<Result<_, _>>()?;
        Ok(Remains { redactions, deleted_at: deleted_at.map(i64::unsigned_abs) })
    }

    pub(crate) async fn restore_rows(&self, place: StorePlace, rows: Rows) -> Result<(), Stop> {
        match rows {
            Rows::Memories(memories) => {
                for slice in memories.chunks(SLICE) {
                    let tx = self.begin().await?;
                    let kept = self.keep_memories(&tx, place, slice).await;
                    self.ended(tx, kept).await?;
                }
            }
            Rows::Past(past) => {
                let compression = self.compression;
                let kept = tokio::task::spawn_blocking(move || {
                    let kept = |past| match past {
                        Past::Mark(mark) => Kept::Mark(mark),
                        Past::Version(text) => {
                            let encoded =
                                text.content.as_ref().map(|content| encode_bytes(content, compression));
                            Kept::Version(text, encoded)
                        }
                    };
                    past.into_iter().map(kept).collect::<Vec<_>>()
                });
                let kept = kept.await.map_err(|_| Fault::Closed)?;
                for slice in kept.chunks(SLICE) {
                    let tx = self.begin().await?;
                    let kept = self.keep_past(&tx, place, slice).await;
                    self.ended(tx, kept).await?;
                }
            }
        }
        Ok(())
    }

    /// Makes sure that the store is still being put back, by this process, and is for a while.
    async fn still(&self, connected: &Connected, (workspace, store): StorePlace) -> Result<(), Stop> {
        let client = &connected.client;
        let there = client.query_opt(LOCK, &[&Col(workspace), &Col(store)]).await?.is_some();
        let parameters: [&(dyn ToSql + Sync); 3] = [&job(store), &Col(AnyId(self.holder)), &lease_millis()];
        if there && client.execute(RENEW, &parameters).await? == 1 {
            return Ok(());
        }
        Err(Fault::Damaged(format!("{store}, which is not being put back any more")).into())
    }

    async fn keep_past(&self, tx: &Tx, place: StorePlace, rows: &[Kept]) -> Result<(), Stop> {
        let connected = tx.connected();
        self.still(connected, place).await?;
        let insert = connected.client.prepare(INSERT_VERSION).await?;
        let remember = connected.client.prepare(INSERT_REDACTION).await?;
        let at = Place { connected, workspace: place.0, store: place.1 };
        let mut sent = Vec::with_capacity(rows.len());
        for row in rows {
            match row {
                Kept::Mark(mark) => sent.push(insert_mark(&at, mark).await),
                Kept::Version(text, encoded) => {
                    sent.push(insert_version(&at, &insert, text, encoded.as_ref()).await);
                    if let Some(record) = redaction_of(place, text) {
                        sent.push(insert_redaction(&at, &remember, record).await);
                    }
                }
            }
        }
        for sent in sent {
            sent.answer().await.map_err(taken(place))?;
        }
        Ok(())
    }

    async fn keep_memories(&self, tx: &Tx, place: StorePlace, rows: &[Memory]) -> Result<(), Stop> {
        let connected = tx.connected();
        self.still(connected, place).await?;
        let insert = connected.client.prepare(INSERT_MEMORY).await?;
        let mut sent = Vec::with_capacity(rows.len());
        for memory in rows {
            let insert = &insert;
            sent.push(
                send(async move {
                    let (size, path) = (signed(memory.size_bytes), memory.path.as_str());
                    let (created, updated) = (memory.created_at.as_micros(), memory.updated_at.as_micros());
                    let parameters: [&(dyn ToSql + Sync); 9] = [
                        &Col(place.0),
                        &Col(place.1),
                        &Col(memory.id),
                        &path,
                        &Col(memory.version),
                        &Col(memory.content_sha256),
                        &size,
                        &created,
                        &updated,
                    ];
                    connected.client.execute(insert, &parameters).await
                })
                .await,
            );
        }
        for (sent, memory) in sent.into_iter().zip(rows) {
            if sent.answer().await.map_err(taken(place))? != 1 {
                return Err(Fault::Damaged(format!("{} of memory {}", memory.version, memory.id)).into());
            }
        }
        Ok(())
    }

    pub(crate) async fn restore_end(&self, store: Store) -> Result<Store, Stop> {
        let tx = self.begin().await?;
        let ended = self.restore_ended(&tx, store).await;
        let store = self.ended(tx, ended).await?;
        self.announce(&[(*store.id.as_bytes(), store.changed_at.as_micros().unsigned_abs())]);
        Ok(store)
    }

    async fn restore_ended(&self, tx: &Tx, mut store: Store) -> Result<Store, Stop> {
        let connected = tx.connected();
        let (workspace, id) = (Col(store.workspace), Col(store.id));
        self.still(connected, (store.workspace, store.id)).await?;
        self.room(connected, &store).await?;
        store.slug = free_slug(connected, store.workspace, &store.slug).await?;
        let client = &connected.client;
        let forget = "DELETE FROM marks WHERE workspace = $1 AND store = $2 AND kind = 3";
        client.execute(forget, &[&workspace, &id]).await?;
        let counters = store.counters;
        let show = "UPDATE stores SET deleted_at = NULL, slug = $3, changed_at = $4, sequence = $5, floor = $6, \
                    memories = $7, bytes = $8, versions = $9 WHERE workspace = $1 AND id = $2";
        let parameters: [&(dyn ToSql + Sync); 9] = [
            &workspace,
            &id,
            &store.slug,
            &store.changed_at.as_micros(),
            &signed(counters.sequence),
            &signed(counters.floor),
            &signed(counters.memories),
            &signed(counters.bytes),
            &signed(counters.versions),
        ];
        client.execute(show, &parameters).await?;
        client.execute("DELETE FROM leases WHERE job = $1", &[&job(store.id)]).await?;
        Ok(store)
    }

    pub(crate) async fn restore_abandon(&self, (_, store): StorePlace) -> Result<(), Fault> {
        let tx = self.begin().await?;
        let statement = &tx.connected().statements.give_lease;
        let parameters: [&(dyn ToSql + Sync); 2] = [&job(store), &Col(AnyId(self.holder))];
        tx.connected().client.execute(statement, &parameters).await?;
        tx.commit().await
    }
}

/// Why a store cannot be put back over what there is of it: that is a store, or the beginning of one under the lease of a
/// process, which may be gone by now.
async fn in_the_way(connected: &Connected, store: StoreId) -> Result<Stop, Fault> {
    let left = connected.client.query_opt(LEFT, &[&job(store)]).await?;
    let Some(left) = left else { return Ok(Refusal::StoreExists(store).into()) };
    let secs = u32::try_from(left.try_get::<_, i64>(0)?.max(1)).unwrap_or(u32::MAX);
    Ok(Fault::Restoring(store, secs).into())
}

/// What is taken already is in the way: nothing but an archive that was made up has such.
fn taken(place: StorePlace) -> impl Fn(tokio_postgres::Error) -> Stop {
    move |error| match error.code() {
        Some(code) if *code == SqlState::UNIQUE_VIOLATION => Refusal::StoreExists(place.1).into(),
        _ => error.into(),
    }
}

fn redaction_of((workspace, store): StorePlace, text: &VersionText) -> Option<RedactionRecord> {
    let version = &text.version;
    version.redaction.map(|redaction| RedactionRecord {
        workspace,
        store,
        version: version.id,
        written_at: version.created_at,
        redaction,
        path: if version.path.is_none() { RedactedPath::Scrub } else { RedactedPath::Keep },
    })
}

type Executed<'a> = Sent<'a, Result<u64, tokio_postgres::Error>>;

async fn insert_version<'a>(
    place: &Place<'a>,
    statement: &'a tokio_postgres::Statement,
    text: &'a VersionText,
    encoded: Option<&'a Encoded>,
) -> Executed<'a> {
    let Place { connected, workspace, store } = *place;
    send(async move {
        let version = &text.version;
        let (kind, author) = actor_columns(version.author);
        let redaction = version.redaction.map(|redaction| (redaction.at, actor_columns(redaction.by)));
        let recorded = version.recorded.as_ref();
        let parameters: [&(dyn ToSql + Sync); 19] = [
            &Col(workspace),
            &Col(store),
            &signed(version.sequence),
            &Col(version.id),
            &Col(version.memory),
            &operation_number(version.operation),
            &version.created_at.as_micros(),
            &kind,
            &author,
            &redaction.map(|(at, _)| at.as_micros()),
            &redaction.map(|(_, (kind, _))| kind),
            &redaction.map(|(_, (_, by))| by),
            &recorded.map(|recorded| Col(recorded.content_sha256)),
            &recorded.map(|recorded| signed(recorded.size_bytes)),
            &version.path.as_ref().map(|path| path.as_str()),
            &text.summary.as_ref().map(|summary| summary.as_str()),
            &text.reason.as_deref(),
            &encoded.map(|encoded| i16::from(encoded.encoding)),
            &encoded.map(|encoded| &*encoded.bytes),
        ];
        connected.client.execute(statement, &parameters).await
    })
    .await
}

async fn insert_redaction<'a>(
    place: &Place<'a>,
    statement: &'a tokio_postgres::Statement,
    record: RedactionRecord,
) -> Executed<'a> {
    let connected = place.connected;
    send(async move {
        let (kind, by) = actor_columns(record.redaction.by);
        let parameters: [&(dyn ToSql + Sync); 8] = [
            &Col(record.workspace),
            &Col(record.store),
            &Col(record.version),
            &record.written_at.as_micros(),
            &record.redaction.at.as_micros(),
            &kind,
            &by,
            &(record.path == RedactedPath::Scrub),
        ];
        connected.client.execute(statement, &parameters).await
    })
    .await
}
