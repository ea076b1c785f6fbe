//! What is remembered of redactions and of backups. Asked for seldom, so nothing here is prepared beforehand.

use std::sync::Arc;

use stele_core::backup::{BackupRecord, BackupStanding, RedactionPlace, RedactionRecord, Remembered};
use stele_core::command::RedactedPath;
use stele_core::id::{BackupId, StoreId, VersionId, WorkspaceId};
use stele_core::model::Redaction;
use stele_core::storage::{Answer, StorageError};
use tokio_postgres::{Client, Row};

use crate::connect::Connected;
use crate::fault::Fault;
use crate::rows::{Col, Cursor, actor, signed};
use crate::storage::PostgresStorage;

const NOTHING: [u8; 16] = [0; 16];

/// Redactions by place, at most `limit`.
pub(crate) async fn list(
    client: &Client,
    after: Option<RedactionPlace>,
    limit: usize,
) -> Result<Vec<RedactionRecord>, Fault> {
    let start =
        (WorkspaceId::from_bytes(NOTHING), StoreId::from_bytes(NOTHING), VersionId::from_bytes(NOTHING));
    let (workspace, store, version) = after.unwrap_or(start);
    let sql = "SELECT workspace, store, version, written_at, redacted_at, redacted_by_kind, redacted_by, path_scrubbed \
               FROM redactions WHERE (workspace, store, version) > ($1, $2, $3) \
               ORDER BY workspace, store, version LIMIT $4";
    let limit = signed(limit as u64);
    let rows = client.query(sql, &[&Col(workspace), &Col(store), &Col(version), &limit]).await?;
    rows.iter().map(redaction).collect()
}

pub(crate) fn redaction(row: &Row) -> Result<RedactionRecord, Fault> {
    let c = &mut Cursor::new(row);
    Ok(RedactionRecord {
        workspace: c.col()?,
        store: c.col()?,
        version: c.col()?,
        written_at: c.time()?,
        redaction: Redaction { at: c.time()?, by: actor(c.take()?, c.take()?)? },
        path: if c.take()? { RedactedPath::Scrub } else { RedactedPath::Keep },
    })
}

/// All managed backups, oldest first.
pub(crate) async fn backups(client: &Client) -> Result<Vec<BackupStanding>, Fault> {
    let sql = "SELECT b.id, b.host, b.path, b.made_at, b.newest_at, b.redactions, b.versions, b.bytes, \
               (SELECT count(*) FROM redactions r WHERE r.written_at <= b.newest_at) \
               FROM backups b ORDER BY b.made_at, b.id";
    client.query(sql, &[]).await?.iter().map(standing).collect()
}

fn standing(row: &Row) -> Result<BackupStanding, Fault> {
    let c = &mut Cursor::new(row);
    let record = BackupRecord {
        id: c.col()?,
        host: c.take()?,
        path: c.take()?,
        made_at: c.time()?,
        newest_at: c.maybe_time()?,
        redactions: c.number()?,
        versions: c.number()?,
        bytes: c.number()?,
    };
    let unapplied = c.number()?.saturating_sub(record.redactions);
    Ok(BackupStanding { record, unapplied })
}

async fn keep(client: &Client, record: &BackupRecord) -> Result<(), Fault> {
    let sql = "INSERT INTO backups (id, host, path, made_at, newest_at, redactions, versions, bytes) \
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (id) DO UPDATE SET host = excluded.host, \
               path = excluded.path, newest_at = excluded.newest_at, redactions = excluded.redactions, \
               versions = excluded.versions, bytes = excluded.bytes";
    client
        .execute(
            sql,
            &[
                &Col(record.id),
                &record.host,
                &record.path,
                &record.made_at.as_micros(),
                &record.newest_at.map(|at| at.as_micros()),
                &signed(record.redactions),
                &signed(record.versions),
                &signed(record.bytes),
            ],
        )
        .await?;
    Ok(())
}

impl Remembered for PostgresStorage {
    fn redaction_list(
        &self,
        after: Option<RedactionPlace>,
        limit: usize,
    ) -> Answer<'_, Result<Vec<RedactionRecord>, StorageError>> {
        Box::pin(async move {
            let read = |c: Arc<Connected>| async move { list(&c.client, after, limit).await };
            Ok(self.shared.lists.read(read).await?)
        })
    }

    fn backup_list(&self) -> Answer<'_, Result<Vec<BackupStanding>, StorageError>> {
        Box::pin(async move {
            Ok(self.shared.lists.read(|c: Arc<Connected>| async move { backups(&c.client).await }).await?)
        })
    }

    fn backup_keep(&self, record: BackupRecord) -> Answer<'_, Result<(), StorageError>> {
        Box::pin(async move {
            let tx = self.shared.begin().await?;
            keep(&tx.connected().client, &record).await?;
            Ok(tx.commit().await?)
        })
    }

    fn backup_forget(&self, id: BackupId) -> Answer<'_, Result<bool, StorageError>> {
        Box::pin(async move {
            let tx = self.shared.begin().await?;
            let sql = "DELETE FROM backups WHERE id = $1";
            let forgotten = tx.connected().client.execute(sql, &[&Col(id)]).await.map_err(Fault::from)?;
            tx.commit().await?;
            Ok(forgotten == 1)
        })
    }
}
