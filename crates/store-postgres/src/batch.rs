//! One transaction for the commands of one store that waited together. DESIGN 5.
//!
//! Two rounds where nothing stands in the way: lock and load, then writes and COMMIT. A command whose situation an
//! earlier one of the batch disturbed is loaded again behind that one's writes. A refusal is found before anything of
//! it is written, so that it touches only itself without a savepoint; after a failure the batch is run again, each
//! command alone.

use bytes::Bytes;
use stele_core::decide::{NewContent, Outcome, Write, decide};
use stele_core::model::Memory;
use stele_core::refusal::Refusal;
use stele_core::storage::{At, Change, Changed};
use store_codec::Encoded;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::connect::Connected;
use crate::draft::{Draft, StoreRow};
use crate::fault::Fault;
use crate::load::Place;
use crate::marks::insert_mark;
use crate::pipeline::{Sent, send};
use crate::reads::damaged_head;
use crate::rows::{self, Col, Cursor};
use crate::shared::Shared;
use crate::writes;

/// A change and its content as it is to be stored.
pub(crate) struct Prepared {
    pub(crate) change: Change,
    pub(crate) encoded: Option<Encoded>,
}

/// Why a transaction did not come to an answer.
pub(crate) struct Broken {
    pub(crate) fault: Fault,
    /// Whether COMMIT was on its way, so that nobody knows.
    pub(crate) committing: bool,
}

impl<F: Into<Fault>> From<F> for Broken {
    fn from(fault: F) -> Self {
        Self { fault: fault.into(), committing: false }
    }
}

type Executed<'a> = Sent<'a, Result<u64, tokio_postgres::Error>>;
type Answers = Vec<Result<Changed, Refused>>;

/// A refusal, with the sequence of the store, where that is there.
type Refused = (Refusal, Option<u64>);

/// What was decided, and the store's sequence afterwards.
type Judged = Result<At<Outcome>, Refused>;

pub(crate) const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";

/// Carries out changes of one store in one transaction; their answers, in order.
pub(crate) async fn run(
    connected: &Connected,
    batch: &[&Prepared],
    shared: &Shared,
) -> Result<Answers, Broken> {
    let first = &batch[0].change;
    let place = Place { connected, workspace: first.workspace, store: first.store };
    let begun = send(connected.client.batch_execute(BEGIN)).await;
    let locked = send(async {
        let lock = &connected.statements.lock_store;
        connected.client.query_opt(lock, &[&Col(place.workspace), &Col(place.store)]).await
    })
    .await;
    let adds = batch.iter().any(|prepared| prepared.change.command.may_add_memory());
    let asked_cap = if adds { Some(place.cap().await) } else { None };
    let mut loading = Vec::with_capacity(batch.len());
    for prepared in batch {
        loading.push(place.ask(&prepared.change.command).await);
    }
    begun.answer().await?;
    let store = locked.answer().await?.map(|row| rows::store(&mut Cursor::new(&row))).transpose()?;
    let cap = match asked_cap {
        Some(asked) => {
            asked.answer().await?.map(|row| row.try_get::<_, Option<i64>>(0)).transpose()?.flatten()
        }
        None => None,
    };
    let mut loaded = Vec::with_capacity(batch.len());
    for (loading, prepared) in loading.into_iter().zip(batch) {
        loaded.push(place.loaded(loading, &prepared.change.command).await?);
    }
    let mut draft = Draft::new(store, cap.map(i64::unsigned_abs));
    let mut judged = Vec::with_capacity(batch.len());
    for (number, (prepared, loaded)) in batch.iter().zip(loaded).enumerate() {
        let command = &prepared.change.command;
        let situation = match draft.situation(command, loaded) {
            Some(situation) => situation,
            None => {
                flush(&place, &mut draft, &batch[..number]).await?;
                let loading = place.ask(command).await;
                draft.fresh(place.loaded(loading, command).await?)
            }
        };
        let decided = decide(&situation, place.store, command, &shared.context(prepared.change.actor));
        let before = situation.store.as_ref().map(|store| store.counters.sequence);
        judged.push(decided.map_err(|refusal| (refusal, before)).map(|decision| {
            draft.take(command, &situation, decision.writes, &decision.outcome);
            At { sequence: decision.sequence, value: decision.outcome }
        }));
    }
    commit(&place, draft, batch, judged).await
}

/// Sends what the draft holds and waits for it.
async fn flush(place: &Place<'_>, draft: &mut Draft, batch: &[&Prepared]) -> Result<(), Fault> {
    let pending = std::mem::take(&mut draft.writes);
    for sent in send_all(place, &pending, batch).await? {
        sent.answer().await?;
    }
    Ok(())
}

async fn send_all<'a>(
    place: &Place<'a>,
    pending: &'a [Write],
    batch: &'a [&Prepared],
) -> Result<Vec<Executed<'a>>, Fault> {
    let mut sent = Vec::with_capacity(pending.len() + 1);
    let mut head: Option<&Write> = None;
    for write in pending {
        match write {
            // The head is the version written next.
            Write::InsertMemory(_) | Write::ReplaceMemory(_) => head = Some(write),
            Write::AppendVersion(new) => {
                match head.take() {
                    Some(Write::InsertMemory(memory)) => {
                        sent.push(writes::insert_memory(place, memory, new.version.sequence).await);
                    }
                    Some(Write::ReplaceMemory(memory)) => {
                        sent.push(writes::replace_memory(place, memory, new.version.sequence).await);
                    }
                    _ => {}
                }
                let encoded = match &new.content {
                    NewContent::Text(text) => Some(encoded(batch, text.sha256())?),
                    NewContent::None | NewContent::CopyOf(_) => None,
                };
                sent.push(writes::append_version(place, new, encoded).await);
            }
            Write::RemoveMemory(id) => sent.push(writes::remove_memory(place, *id).await),
            Write::Redact { version, redaction, path } => {
                sent.push(writes::redact(place, *version, *redaction, *path).await);
            }
            Write::DeleteStore { at, sequence } => {
                sent.push(writes::delete_store(place, *at, *sequence).await);
            }
            Write::Mark(mark) => sent.push(insert_mark(place, mark).await),
            // The draft keeps those of the store's row apart.
            Write::Store(_) | Write::Counters { .. } => {}
        }
    }
    Ok(sent)
}

fn encoded<'a>(batch: &'a [&Prepared], sha256: stele_core::hash::Sha256) -> Result<&'a Encoded, Fault> {
    let of = |prepared: &&'a Prepared| {
        let content = prepared.change.command.content()?;
        (content.sha256() == sha256).then_some(prepared.encoded.as_ref()).flatten()
    };
    batch.iter().find_map(of).ok_or_else(|| Fault::Damaged("a content that was not prepared".into()))
}

/// Sends what is left with COMMIT behind it, and answers once that is durable.
async fn commit(
    place: &Place<'_>,
    mut draft: Draft,
    batch: &[&Prepared],
    judged: Vec<Judged>,
) -> Result<Answers, Broken> {
    let contents = contents(place, &mut draft, batch, &judged).await?;
    let pending = std::mem::take(&mut draft.writes);
    let mut sent = send_all(place, &pending, batch).await?;
    match draft.store_row() {
        StoreRow::Same => {}
        StoreRow::Counters(store) => sent.push(writes::update_counters(place, store).await),
        StoreRow::Fields(store) => sent.push(writes::update_store(place, store).await),
    }
    // Every statement before it was sent with values of the types that it was prepared for, so that one that is not
    // carried out is PostgreSQL's refusal, which turns this COMMIT into a rollback.
    let committed = send(place.connected.client.batch_execute("COMMIT")).await;
    let unknown = |fault: Fault| Broken { committing: fault.is_lost(), fault };
    for sent in sent {
        sent.answer().await.map_err(|error| unknown(error.into()))?;
    }
    committed.answer().await.map_err(|error| unknown(error.into()))?;
    let answer = |(judged, content): (Judged, Option<Bytes>)| {
        judged.map(|At { sequence, value: outcome }| Changed { outcome, content, sequence })
    };
    Ok(judged.into_iter().zip(contents).map(answer).collect())
}

/// The contents that the answers are to bring: those that came with the commands, the others read back before COMMIT,
/// so that a damaged one is not written on.
async fn contents(
    place: &Place<'_>,
    draft: &mut Draft,
    batch: &[&Prepared],
    judged: &[Judged],
) -> Result<Vec<Option<Bytes>>, Fault> {
    let mut contents = vec![None; batch.len()];
    let mut missing = Vec::new();
    for (number, (prepared, judged)) in batch.iter().zip(judged).enumerate() {
        let Ok(At { value: Outcome::Memory(current), .. }) = judged else { continue };
        if !prepared.change.with_content {
            continue;
        }
        let sha256 = current.memory.content_sha256;
        match prepared.change.command.content().filter(|own| own.sha256() == sha256) {
            Some(own) => contents[number] = Some(own.bytes().clone()),
            None => missing.push((number, &current.memory)),
        }
    }
    if !missing.is_empty() {
        flush(place, draft, batch).await?;
    }
    for (number, memory) in missing {
        let statement = &place.connected.statements.content_of_version;
        let parameters: [&(dyn ToSql + Sync); 3] =
            [&Col(place.workspace), &Col(place.store), &Col(memory.version)];
        let row = place.connected.client.query_opt(statement, &parameters).await?;
        contents[number] =
            Some(row.and_then(|row| decoded(&row, memory)).ok_or_else(|| damaged_head(memory))?);
    }
    Ok(contents)
}

fn decoded(row: &Row, memory: &Memory) -> Option<Bytes> {
    let encoding = u8::try_from(row.try_get::<_, Option<i16>>(0).ok()??).ok()?;
    let stored: &[u8] = row.try_get::<_, Option<&[u8]>>(1).ok()??;
    store_codec::decode(encoding, stored, memory.size_bytes, memory.content_sha256)
}
