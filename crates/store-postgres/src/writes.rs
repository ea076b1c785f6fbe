//! The writes of a decision, each one statement, sent without waiting.

use stele_core::command::RedactedPath;
use stele_core::decide::NewContent;
use stele_core::decide::NewVersion;
use stele_core::id::{MemoryId, VersionId};
use stele_core::model::{Memory, Redaction, Store};
use stele_core::path::MemoryPath;
use stele_core::text::{Reason, Summary};
use stele_core::time::Timestamp;
use store_codec::Encoded;
use tokio_postgres::Statement;
use tokio_postgres::types::ToSql;

use crate::load::Place;
use crate::pipeline::{Sent, send};
use crate::rows::{Col, actor_columns, metadata_column, operation_number, signed};

type Executed<'a> = Sent<'a, Result<u64, tokio_postgres::Error>>;

pub(crate) async fn insert_memory<'a>(place: &Place<'a>, memory: &'a Memory, head: u64) -> Executed<'a> {
    let Place { connected, workspace, store } = *place;
    send(async move {
        let statement = &connected.statements.insert_memory;
        connected
            .client
            .execute(
                statement,
                &[
                    &Col(workspace),
                    &Col(store),
                    &Col(memory.id),
                    &memory.path.as_str(),
                    &signed(head),
                    &Col(memory.version),
                    &Col(memory.content_sha256),
                    &signed(memory.size_bytes),
                    &memory.created_at.as_micros(),
                    &memory.updated_at.as_micros(),
                ],
            )
            .await
    })
    .await
}

pub(crate) async fn replace_memory<'a>(place: &Place<'a>, memory: &'a Memory, head: u64) -> Executed<'a> {
    let Place { connected, workspace, store } = *place;
    send(async move {
        let statement = &connected.statements.replace_memory;
        connected
            .client
            .execute(
                statement,
                &[
                    &Col(workspace),
                    &Col(store),
                    &Col(memory.id),
                    &memory.path.as_str(),
                    &signed(head),
                    &Col(memory.version),
                    &Col(memory.content_sha256),
                    &signed(memory.size_bytes),
                    &memory.updated_at.as_micros(),
                ],
            )
            .await
    })
    .await
}

pub(crate) async fn remove_memory<'a>(place: &Place<'a>, id: MemoryId) -> Executed<'a> {
    let Place { connected, workspace, store } = *place;
    send(async move {
        let statement = &connected.statements.remove_memory;
        connected.client.execute(statement, &[&Col(workspace), &Col(store), &Col(id)]).await
    })
    .await
}

/// `encoded` is the content, if the version brings one of its own.
pub(crate) async fn append_version<'a>(
    place: &Place<'a>,
    new: &'a NewVersion,
    encoded: Option<&'a Encoded>,
) -> Executed<'a> {
    let Place { connected, workspace, store } = *place;
    send(async move {
        let version = &new.version;
        let (kind, author) = actor_columns(version.author);
        let recorded = version.recorded.as_ref();
        let (sequence, operation) = (signed(version.sequence), operation_number(version.operation));
        let created_at = version.created_at.as_micros();
        let sha256 = recorded.map(|recorded| Col(recorded.content_sha256));
        let size = recorded.map(|recorded| signed(recorded.size_bytes));
        let path = version.path.as_ref().map(MemoryPath::as_str);
        let summary = new.summary.as_ref().map(Summary::as_str);
        let reason = new.reason.as_ref().map(Reason::as_str);
        let encoding = encoded.map(|encoded| i16::from(encoded.encoding));
        let content = encoded.map(|encoded| &*encoded.bytes);
        let (workspace, store, id, memory) =
            (Col(workspace), Col(store), Col(version.id), Col(version.memory));
        match &new.content {
            NewContent::CopyOf(source) => {
                let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 15] = [
                    &workspace,
                    &store,
                    &sequence,
                    &id,
                    &memory,
                    &operation,
                    &created_at,
                    &kind,
                    &author,
                    &sha256,
                    &size,
                    &path,
                    &summary,
                    &reason,
                    &Col(*source),
                ];
                connected.client.execute(&connected.statements.insert_copy, &parameters).await
            }
            NewContent::None | NewContent::Text(_) => {
                let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 16] = [
                    &workspace,
                    &store,
                    &sequence,
                    &id,
                    &memory,
                    &operation,
                    &created_at,
                    &kind,
                    &author,
                    &sha256,
                    &size,
                    &path,
                    &summary,
                    &reason,
                    &encoding,
                    &content,
                ];
                connected.client.execute(&connected.statements.insert_version, &parameters).await
            }
        }
    })
    .await
}

pub(crate) async fn redact<'a>(
    place: &Place<'a>,
    version: VersionId,
    redaction: Redaction,
    path: RedactedPath,
) -> [Executed<'a>; 2] {
    let statements = &place.connected.statements;
    [
        redaction_by(&statements.redact, place, version, redaction, path).await,
        redaction_by(&statements.remember_redaction, place, version, redaction, path).await,
    ]
}

async fn redaction_by<'a>(
    statement: &'a Statement,
    place: &Place<'a>,
    version: VersionId,
    redaction: Redaction,
    path: RedactedPath,
) -> Executed<'a> {
    let Place { connected, workspace, store } = *place;
    send(async move {
        let (kind, by) = actor_columns(redaction.by);
        let scrub = path == RedactedPath::Scrub;
        let at = redaction.at.as_micros();
        let parameters: [&(dyn ToSql + Sync); 7] =
            [&Col(workspace), &Col(store), &Col(version), &at, &kind, &by, &scrub];
        connected.client.execute(statement, &parameters).await
    })
    .await
}

pub(crate) async fn update_counters<'a>(place: &Place<'a>, now: &'a Store) -> Executed<'a> {
    let Place { connected, workspace, store } = *place;
    send(async move {
        let counters = now.counters;
        let statement = &connected.statements.update_counters;
        connected
            .client
            .execute(
                statement,
                &[
                    &Col(workspace),
                    &Col(store),
                    &now.changed_at.as_micros(),
                    &signed(counters.sequence),
                    &signed(counters.memories),
                    &signed(counters.bytes),
                    &signed(counters.versions),
                ],
            )
            .await
    })
    .await
}

pub(crate) async fn update_store<'a>(place: &Place<'a>, now: &'a Store) -> Executed<'a> {
    let Place { connected, workspace, store } = *place;
    send(async move {
        let counters = now.counters;
        let statement = &connected.statements.update_store;
        connected
            .client
            .execute(
                statement,
                &[
                    &Col(workspace),
                    &Col(store),
                    &now.changed_at.as_micros(),
                    &signed(counters.sequence),
                    &signed(counters.memories),
                    &signed(counters.bytes),
                    &signed(counters.versions),
                    &now.name.as_str(),
                    &now.description.as_str(),
                    &metadata_column(&now.metadata),
                    &now.updated_at.as_micros(),
                    &now.archived_at.map(Timestamp::as_micros),
                ],
            )
            .await
    })
    .await
}

pub(crate) async fn delete_store<'a>(place: &Place<'a>, at: Timestamp, sequence: u64) -> Executed<'a> {
    let Place { connected, workspace, store } = *place;
    send(async move {
        let statement = &connected.statements.delete_store;
        let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
            [&Col(workspace), &Col(store), &at.as_micros(), &signed(sequence)];
        connected.client.execute(statement, &parameters).await
    })
    .await
}
