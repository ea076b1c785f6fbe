//! Carrying out a commit of records inside the writer's transaction.

use rusqlite::{Connection, OptionalExtension, params};
use stele_core::id::WorkspaceId;
use stele_core::records::{Entry, Kind, Record, RecordId, RecordWrite, Tag, span};
use stele_core::time::Timestamp;
use stele_core::watch::Topic;
use store_codec::{decode_tags, encode_tags};

use crate::fault::{Fault, Stop};
use crate::rows::{Col, Sql};

/// What is to be announced of a commit.
pub(crate) type News = Vec<(Topic, u64)>;

/// Carries out all writes, or stops at the first one that another writer came before.
pub(crate) fn commit(connection: &Connection, writes: &[RecordWrite]) -> Result<News, Stop> {
    let mut news = News::with_capacity(writes.len());
    for (at, write) in writes.iter().enumerate() {
        let position = match write {
            RecordWrite::Put(record) => put(connection, record)?,
            RecordWrite::Delete { workspace, kind, id, revision } => {
                let place = (*workspace, *kind, *id);
                delete(connection, place, *revision)?
            }
            RecordWrite::Append { entries, .. } if entries.is_empty() => continue,
            RecordWrite::Append { workspace, log, entries } => append(connection, *workspace, *log, entries)?,
            RecordWrite::DropLog { workspace, log } => match drop_log(connection, *workspace, *log)? {
                Some(last) => Some(last + 1),
                None => continue,
            },
        };
        news.push((write.id(), position.ok_or(Stop::Conflict(at))?));
    }
    Ok(news)
}

/// A record by workspace, kind and id.
type Place = (WorkspaceId, Kind, RecordId);

/// What of a record matters for the next write of it.
struct Standing {
    record: i64,
    revision: u64,
    created_at: Timestamp,
    tags: Vec<u8>,
}

impl Standing {
    fn tags(&self) -> Result<Vec<Tag>, Fault> {
        decode_tags(&self.tags)
            .ok_or_else(|| Fault::Damaged(format!("numbered {}, in its tags", self.record)))
    }
}

fn standing(connection: &Connection, (workspace, kind, id): Place) -> Sql<Option<Standing>> {
    connection
        .prepare_cached(
            "SELECT record, revision, created_at, tags FROM records WHERE workspace = ? AND kind = ? AND id = ?",
        )?
        .query_row(params![Col(workspace), kind.0, id], |row| {
            Ok(Standing {
                record: row.get(0)?,
                revision: row.get(1)?,
                created_at: row.get::<_, Col<Timestamp>>(2)?.0,
                tags: row.get(3)?,
            })
        })
        .optional()
}

/// The new revision; `None` where another writer came first.
fn put(connection: &Connection, record: &Record) -> Result<Option<u64>, Stop> {
    let tags = encode_tags(&record.tags);
    if record.revision == 1 {
        return Ok(insert(connection, record, &tags)?.then_some(1));
    }
    let place = (record.workspace, record.kind, record.id);
    let Some(now) = standing(connection, place)? else { return Ok(None) };
    if now.revision.checked_add(1) != Some(record.revision) {
        return Ok(None);
    }
    // What OR IGNORE passes over is a key that is taken.
    let written = connection
        .prepare_cached(
            "UPDATE OR IGNORE records SET revision = ?, due_at = ?, key = ?, tags = ?, body = ? WHERE record = ?",
        )?
        .execute(params![record.revision, record.due_at.map(Col), record.key, tags, &*record.body, now.record])?;
    if written == 0 {
        return Ok(None);
    }
    if tags != now.tags {
        let old = now.tags()?;
        for tag in old.iter().filter(|tag| !record.tags.contains(tag)) {
            untag(connection, place, now.created_at, tag)?;
        }
        for tag in record.tags.iter().filter(|tag| !old.contains(tag)) {
            tag_record(connection, record, now.created_at, now.record, tag)?;
        }
    }
    Ok(Some(record.revision))
}

/// Keeps a record that is new; false where its id or key is taken.
pub(crate) fn insert(connection: &Connection, record: &Record, tags: &[u8]) -> Sql<bool> {
    let written = connection
        .prepare_cached(
            "INSERT INTO records (workspace, kind, id, revision, created_at, due_at, key, tags, body) \
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        )?
        .execute(params![
            Col(record.workspace),
            record.kind.0,
            record.id,
            record.revision,
            Col(record.created_at),
            record.due_at.map(Col),
            record.key,
            tags,
            &*record.body
        ])?;
    if written == 0 {
        return Ok(false);
    }
    let number = connection.last_insert_rowid();
    for tag in &record.tags {
        tag_record(connection, record, record.created_at, number, tag)?;
    }
    Ok(true)
}

fn tag_record(connection: &Connection, record: &Record, at: Timestamp, number: i64, tag: &Tag) -> Sql<()> {
    connection.prepare_cached("INSERT OR IGNORE INTO record_tags VALUES (?, ?, ?, ?, ?, ?, ?)")?.execute(
        params![Col(record.workspace), record.kind.0, tag.name, tag.value, Col(at), record.id, number],
    )?;
    Ok(())
}

fn untag(connection: &Connection, (workspace, kind, id): Place, at: Timestamp, tag: &Tag) -> Sql<()> {
    connection
        .prepare_cached(
            "DELETE FROM record_tags WHERE workspace = ? AND kind = ? AND name = ? AND value = ? \
             AND created_at = ? AND id = ?",
        )?
        .execute(params![Col(workspace), kind.0, tag.name, tag.value, Col(at), id])?;
    Ok(())
}

/// The number after the last revision; `None` where another writer came first.
fn delete(connection: &Connection, place: Place, revision: u64) -> Result<Option<u64>, Stop> {
    let Some(now) = standing(connection, place)? else { return Ok(None) };
    if now.revision != revision {
        return Ok(None);
    }
    for tag in now.tags()? {
        untag(connection, place, now.created_at, &tag)?;
    }
    connection.prepare_cached("DELETE FROM records WHERE record = ?")?.execute([now.record])?;
    Ok(Some(revision + 1))
}

/// The last sequence; `None` where the log does not end before the entries.
fn append(
    connection: &Connection,
    workspace: WorkspaceId,
    log: RecordId,
    entries: &[Entry],
) -> Result<Option<u64>, Stop> {
    let Some((first, last)) = span(entries) else { return Ok(None) };
    let number = if first == 1 {
        let made = connection
            .prepare_cached("INSERT INTO logs (workspace, id, last) VALUES (?, ?, ?) ON CONFLICT DO NOTHING")?
            .execute(params![Col(workspace), log, last])?;
        (made == 1).then(|| connection.last_insert_rowid())
    } else {
        connection
            .prepare_cached(
                "UPDATE logs SET last = ? WHERE workspace = ? AND id = ? AND last = ? AND dropped = 0 RETURNING log",
            )?
            .query_row(params![last, Col(workspace), log, first - 1], |row| row.get(0))
            .optional()?
    };
    let Some(number) = number else { return Ok(None) };
    insert_entries(connection, number, entries)?;
    Ok(Some(last))
}

/// Keeps entries of the log numbered `log`.
pub(crate) fn insert_entries(connection: &Connection, log: i64, entries: &[Entry]) -> Sql<()> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO entries (log, sequence, id, at, kind, body) VALUES (?, ?, ?, ?, ?, ?)",
    )?;
    for entry in entries {
        statement.execute(params![log, entry.sequence, entry.id, Col(entry.at), entry.kind, &*entry.body])?;
    }
    Ok(())
}

/// The last sequence of the log, which is dropped now; `None` where there is none.
fn drop_log(connection: &Connection, workspace: WorkspaceId, log: RecordId) -> Sql<Option<u64>> {
    connection
        .prepare_cached(
            "UPDATE logs SET dropped = 1 WHERE workspace = ? AND id = ? AND dropped = 0 RETURNING last",
        )?
        .query_row(params![Col(workspace), log], |row| row.get(0))
        .optional()
}
