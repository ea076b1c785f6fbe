//! One transaction for the commands of one store that waited together. DESIGN 5.
//!
//! Two rounds where nothing stands in the way: lock and load, then writes and COMMIT. A command whose situation an
//! earlier one of the batch disturbed is loaded again behind that one's writes. A refusal is found before anything of
//! it is written, so that it touches only itself without a savepoint; after a failure the batch is run again, each
//! command alone.

use std::collections::HashMap;

use bytes::Bytes;
use stele_core::changeset::Applied;
use stele_core::command::Command;
use stele_core::decide::{NewContent, Outcome, Write, decide};
use stele_core::hash::Sha256;
use stele_core::id::{StoreId, WorkspaceId};
use stele_core::model::{Actor, Memory};
use stele_core::refusal::Refusal;
use stele_core::storage::{Change, ChangeAll};
use stele_core::text::Reason;
use stele_core::time::Timestamp;
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

/// Contents by their hash, as they are to be stored: made before a transaction begins.
pub(crate) type Contents = HashMap<Sha256, Encoded>;

/// A change and its content as it is to be stored.
pub(crate) struct Prepared {
    pub(crate) change: Change,
    pub(crate) contents: Contents,
}

/// A changeset and its contents as they are to be stored.
pub(crate) struct PreparedAll {
    pub(crate) change: ChangeAll,
    pub(crate) contents: Contents,
}

/// One command of a batch, with what surrounds it.
pub(crate) struct Asked<'a> {
    command: &'a Command,
    actor: Actor,
    reason: Option<&'a Reason>,
    with_content: bool,
    contents: &'a Contents,
}

/// Commands of one store for one transaction.
pub(crate) struct Batch<'a> {
    workspace: WorkspaceId,
    store: StoreId,
    asked: Vec<Asked<'a>>,
    /// Whether the first refusal undoes all.
    whole: bool,
}

impl<'a> Batch<'a> {
    /// The store.
    pub(crate) fn store(&self) -> StoreId {
        self.store
    }

    /// Changes of one store that waited together; at least one.
    pub(crate) fn of_changes(changes: &[&'a Prepared]) -> Self {
        let asked = |prepared: &&'a Prepared| Asked {
            command: &prepared.change.command,
            actor: prepared.change.actor,
            reason: None,
            with_content: prepared.change.with_content,
            contents: &prepared.contents,
        };
        let Change { workspace, store, .. } = changes[0].change;
        Self { workspace, store, asked: changes.iter().map(asked).collect(), whole: false }
    }

    /// A changeset.
    pub(crate) fn of_changeset(all: &'a PreparedAll) -> Self {
        let ChangeAll { workspace, store, actor, ref changeset } = all.change;
        let asked = |command| Asked {
            command,
            actor,
            reason: changeset.reason(),
            with_content: false,
            contents: &all.contents,
        };
        Self { workspace, store, asked: changeset.commands().iter().map(asked).collect(), whole: true }
    }
}

/// What became of a command.
pub(crate) struct Done {
    pub(crate) outcome: Outcome,
    /// The content that the answer is to bring.
    pub(crate) content: Option<Bytes>,
    /// The store's sequence afterwards.
    pub(crate) sequence: u64,
    /// In a changeset.
    pub(crate) applied: Option<Applied>,
}

/// The answers to a batch, in order; to a changeset that is refused just the refusal.
pub(crate) type Answers = Vec<Result<Done, Refused>>;

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
/// What a transaction came to.
pub(crate) struct Committed {
    /// The answers.
    pub(crate) answers: Answers,
    /// The store's `changed_at`, if it changed.
    pub(crate) changed_at: Option<Timestamp>,
}

/// A refusal, with the sequence of the store, where that is there.
pub(crate) type Refused = (Refusal, Option<u64>);

pub(crate) const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";

/// Carries out changes of one store in one transaction.
pub(crate) async fn run(
    connected: &Connected,
    batch: &Batch<'_>,
    shared: &Shared,
) -> Result<Committed, Broken> {
    let Batch { workspace, store, asked, whole } = batch;
    let place = Place { connected, workspace: *workspace, store: *store };
    let begun = send(connected.client.batch_execute(BEGIN)).await;
    let locked = send(async {
        let lock = &connected.statements.lock_store;
        connected.client.query_opt(lock, &[&Col(place.workspace), &Col(place.store)]).await
    })
    .await;
    let adds = asked.iter().any(|asked| asked.command.may_add_memory());
    let asked_cap = if adds { Some(place.cap().await) } else { None };
    let mut loading = Vec::with_capacity(asked.len());
    for asked in asked {
        loading.push(place.ask(asked.command).await);
    }
    begun.answer().await?;
    let store = locked.answer().await?.map(|row| rows::store(&mut Cursor::new(&row))).transpose()?;
    let cap = match asked_cap {
        Some(asked) => {
            asked.answer().await?.map(|row| row.try_get::<_, Option<i64>>(0)).transpose()?.flatten()
        }
        None => None,
    };
    let mut loaded = Vec::with_capacity(asked.len());
    for (loading, asked) in loading.into_iter().zip(asked) {
        loaded.push(place.loaded(loading, asked.command).await?);
    }
    let at_first = store.as_ref().map(|store| store.counters.sequence);
    let mut draft = Draft::new(store, cap.map(i64::unsigned_abs));
    let mut judged = Answers::with_capacity(asked.len());
    for (number, (this, loaded)) in asked.iter().zip(loaded).enumerate() {
        let command = this.command;
        let situation = match draft.situation(command, loaded) {
            Some(situation) => situation,
            None => {
                flush(&place, &mut draft, &asked[..number]).await?;
                let loading = place.ask(command).await;
                draft.fresh(place.loaded(loading, command).await?)
            }
        };
        let before = situation.store.as_ref().map(|store| store.counters.sequence);
        match decide(&situation, place.store, command, &shared.context(this.actor, this.reason)) {
            Ok(decision) => {
                let applied = whole.then(|| Applied::of(&decision));
                let sequence = decision.sequence;
                draft.changed_at = decision.changed_at().or(draft.changed_at);
                draft.take(command, &situation, decision.writes, &decision.outcome);
                judged.push(Ok(Done { outcome: decision.outcome, content: None, sequence, applied }));
            }
            Err(refusal) if *whole => {
                connected.client.batch_execute("ROLLBACK").await?;
                return Ok(Committed {
                    answers: vec![Err((refusal.at(number), at_first))],
                    changed_at: None,
                });
            }
            Err(refusal) => judged.push(Err((refusal, before))),
        }
    }
    commit(&place, draft, asked, judged).await
}

/// Sends what the draft holds and waits for it.
async fn flush(place: &Place<'_>, draft: &mut Draft, asked: &[Asked<'_>]) -> Result<(), Fault> {
    let pending = std::mem::take(&mut draft.writes);
    for sent in send_all(place, &pending, asked).await? {
        sent.answer().await?;
    }
    Ok(())
}

async fn send_all<'a>(
    place: &Place<'a>,
    pending: &'a [Write],
    asked: &'a [Asked<'a>],
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
                    NewContent::Text(text) => Some(encoded(asked, text.sha256())?),
                    NewContent::None | NewContent::CopyOf(_) => None,
                };
                sent.push(writes::append_version(place, new, encoded).await);
            }
            Write::RemoveMemory(id) => sent.push(writes::remove_memory(place, *id).await),
            Write::Redact { version, redaction, path } => {
                sent.extend(writes::redact(place, *version, *redaction, *path).await);
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

fn encoded<'a>(asked: &'a [Asked<'a>], sha256: Sha256) -> Result<&'a Encoded, Fault> {
    // The commands of a changeset share their contents.
    let mut last = None;
    let mut different = asked.iter().map(|asked| asked.contents).filter(|contents| {
        let new = last.is_none_or(|last| !std::ptr::eq(last, *contents));
        last = Some(*contents);
        new
    });
    different
        .find_map(|contents| contents.get(&sha256))
        .ok_or_else(|| Fault::Damaged("a content that was not prepared".into()))
}

/// Sends what is left with COMMIT behind it, and answers once that is durable.
async fn commit(
    place: &Place<'_>,
    mut draft: Draft,
    asked: &[Asked<'_>],
    mut judged: Answers,
) -> Result<Committed, Broken> {
    add_contents(place, &mut draft, asked, &mut judged).await?;
    let pending = std::mem::take(&mut draft.writes);
    let mut sent = send_all(place, &pending, asked).await?;
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
    Ok(Committed { answers: judged, changed_at: draft.changed_at })
}

/// The contents that the answers are to bring: those that came with the commands, the others read back before COMMIT,
/// so that a damaged one is not written on.
async fn add_contents(
    place: &Place<'_>,
    draft: &mut Draft,
    asked: &[Asked<'_>],
    judged: &mut Answers,
) -> Result<(), Fault> {
    let mut missing = Vec::new();
    for (asked, judged) in asked.iter().zip(judged) {
        let Ok(Done { outcome: Outcome::Memory(current), content, .. }) = judged else { continue };
        if !asked.with_content {
            continue;
        }
        let sha256 = current.memory.content_sha256;
        match asked.command.content().filter(|own| own.sha256() == sha256) {
            Some(own) => *content = Some(own.bytes().clone()),
            None => missing.push((content, &current.memory)),
        }
    }
    if !missing.is_empty() {
        flush(place, draft, asked).await?;
    }
    for (content, memory) in missing {
        let statement = &place.connected.statements.content_of_version;
        let parameters: [&(dyn ToSql + Sync); 3] =
            [&Col(place.workspace), &Col(place.store), &Col(memory.version)];
        let row = place.connected.client.query_opt(statement, &parameters).await?;
        *content = Some(row.and_then(|row| decoded(&row, memory)).ok_or_else(|| damaged_head(memory))?);
    }
    Ok(())
}

fn decoded(row: &Row, memory: &Memory) -> Option<Bytes> {
    let encoding = u8::try_from(row.try_get::<_, Option<i16>>(0).ok()??).ok()?;
    let stored: &[u8] = row.try_get::<_, Option<&[u8]>>(1).ok()??;
    store_codec::decode(encoding, stored, memory.size_bytes, memory.content_sha256)
}
