//! Queries of records and logs. Each runs in one short snapshot.

use bytes::Bytes;
use rusqlite::types::FromSqlError;
use rusqlite::{Connection, OptionalExtension, Row, named_params, params};
use stele_core::id::WorkspaceId;
use stele_core::list::Page;
use stele_core::records::{Entry, EntryQuery, Kind, Order, Record, RecordId, RecordQuery};
use stele_core::time::Timestamp;
use store_codec::decode_tags;

use crate::reads::sql_limit;
use crate::rows::{self, Col, Cursor, Sql};

/// Columns that [`record`] reads.
pub(crate) const RECORD: &str =
    "r.workspace, r.kind, r.id, r.revision, r.created_at, r.due_at, r.key, r.tags, r.body";

/// A record.
pub(crate) fn record(row: &Row<'_>) -> Sql<Record> {
    let c = &mut Cursor::new(row);
    Ok(Record {
        workspace: c.col()?,
        kind: Kind(c.take()?),
        id: c.take()?,
        revision: c.take()?,
        created_at: c.col()?,
        due_at: c.maybe()?,
        key: c.take()?,
        tags: decode_tags(c.value()?.as_bytes()?).ok_or(FromSqlError::InvalidType)?,
        body: Bytes::from(c.take::<Vec<u8>>()?),
    })
}

pub(crate) fn one(
    connection: &Connection,
    workspace: WorkspaceId,
    kind: Kind,
    id: RecordId,
) -> Sql<Option<Record>> {
    let sql = format!("SELECT {RECORD} FROM records r WHERE r.workspace = ? AND r.kind = ? AND r.id = ?");
    connection.prepare_cached(&sql)?.query_row(params![Col(workspace), kind.0, id], record).optional()
}

pub(crate) fn many(
    connection: &Connection,
    workspace: WorkspaceId,
    kind: Kind,
    ids: &[RecordId],
) -> Sql<Vec<Record>> {
    ids.iter().filter_map(|id| one(connection, workspace, kind, *id).transpose()).collect()
}

pub(crate) fn by_key(connection: &Connection, kind: Kind, key: [u8; 32]) -> Sql<Option<Record>> {
    let sql = format!("SELECT {RECORD} FROM records r WHERE r.kind = ? AND r.key = ?");
    connection.prepare_cached(&sql)?.query_row(params![kind.0, key], record).optional()
}

/// What an order is in SQL: how what comes later compares, and the direction.
fn order(order: Order) -> (&'static str, &'static str) {
    match order {
        Order::NewestFirst => ("<", "DESC"),
        Order::OldestFirst => (">", "ASC"),
    }
}

pub(crate) fn list(connection: &Connection, query: &RecordQuery) -> Sql<Page<Record>> {
    let (comes, direction) = order(query.order);
    // A place that no record can be before stands for the start of the list.
    let (after, after_id) = match (query.after, query.order) {
        (Some((at, id)), _) => (at.as_micros(), id),
        (None, Order::NewestFirst) => (i64::MAX, [255; 16]),
        (None, Order::OldestFirst) => (i64::MIN, [0; 16]),
    };
    // The place bounds the time too: SQLite begins a search at one bound only, be it the nearer one.
    let mut from = query.created.from.map_or(i64::MIN, |t| t.as_micros());
    let mut to = query.created.to.map_or(i64::MAX, |t| t.as_micros());
    match query.order {
        Order::NewestFirst => to = to.min(after),
        Order::OldestFirst => from = from.max(after),
    }
    // The table of tags has the order of the list; l is whichever table is walked.
    let (tables, of_tag) = match query.tag {
        Some(_) => (
            "record_tags l CROSS JOIN records r ON r.record = l.record",
            "l.name = :name AND l.value = :value",
        ),
        None => ("records r", ":name IS NULL AND :value IS NULL"),
    };
    let l = if query.tag.is_some() { "l" } else { "r" };
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {RECORD} FROM {tables} WHERE {l}.workspace = :workspace AND {l}.kind = :kind AND {of_tag} \
         AND {l}.created_at BETWEEN :from AND :to AND ({l}.created_at, {l}.id) {comes} (:after, :after_id) \
         ORDER BY {l}.created_at {direction}, {l}.id {direction} LIMIT :limit"
    ))?;
    let items = rows::all(
        &mut statement,
        named_params! {
            ":workspace": Col(query.workspace),
            ":kind": query.kind.0,
            ":name": query.tag.as_ref().map(|tag| tag.name),
            ":value": query.tag.as_ref().map(|tag| &tag.value),
            ":from": from,
            ":to": to,
            ":after": after,
            ":after_id": after_id,
            ":limit": sql_limit(query.limit),
        },
        record,
    )?;
    Ok(Page::cut(items, query.limit))
}

pub(crate) fn due(connection: &Connection, kind: Kind, now: Timestamp, limit: usize) -> Sql<Vec<Record>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let sql = format!(
        "SELECT {RECORD} FROM records r WHERE r.kind = ? AND r.due_at <= ? \
         ORDER BY r.due_at, r.workspace, r.id LIMIT ?"
    );
    rows::all(&mut *connection.prepare_cached(&sql)?, params![kind.0, Col(now), limit], record)
}

/// Columns that [`entry`] reads.
pub(crate) const ENTRY: &str = "sequence, id, at, kind, body";

/// An entry.
pub(crate) fn entry(row: &Row<'_>) -> Sql<Entry> {
    let c = &mut Cursor::new(row);
    Ok(Entry {
        sequence: c.take()?,
        id: c.take()?,
        at: c.col()?,
        kind: c.take()?,
        body: Bytes::from(c.take::<Vec<u8>>()?),
    })
}

/// The row number of a log that is not dropped.
pub(crate) fn log_number(connection: &Connection, workspace: WorkspaceId, log: RecordId) -> Sql<Option<i64>> {
    connection
        .prepare_cached("SELECT log FROM logs WHERE workspace = ? AND id = ? AND dropped = 0")?
        .query_row(params![Col(workspace), log], |row| row.get(0))
        .optional()
}

pub(crate) fn entries(connection: &Connection, query: &EntryQuery) -> Sql<Page<Entry>> {
    let Some(log) = log_number(connection, query.workspace, query.log)? else {
        return Ok(Page::cut(Vec::new(), query.limit));
    };
    let (comes, direction) = order(query.order);
    let after = match (query.after, query.order) {
        (Some(after), _) => i64::try_from(after).unwrap_or(i64::MAX),
        (None, Order::NewestFirst) => i64::MAX,
        (None, Order::OldestFirst) => 0,
    };
    let from = query.at.from.map_or(i64::MIN, |t| t.as_micros());
    let to = query.at.to.map_or(i64::MAX, |t| t.as_micros());
    let limit = sql_limit(query.limit);
    if query.kinds.is_empty() {
        let mut statement = connection.prepare_cached(&format!(
            "SELECT {ENTRY} FROM entries WHERE log = ? AND sequence {comes} ? AND at BETWEEN ? AND ? \
             ORDER BY sequence {direction} LIMIT ?"
        ))?;
        let items = rows::all(&mut statement, params![log, after, from, to, limit], entry)?;
        return Ok(Page::cut(items, query.limit));
    }
    // Each kind by its own index: one that is rare in a long log is found at once.
    let mut found: Vec<(i64, i64)> = Vec::new();
    let mut statement = connection.prepare_cached(&format!(
        "SELECT sequence, entry FROM entries WHERE log = ? AND kind = ? AND sequence {comes} ? \
         AND at BETWEEN ? AND ? ORDER BY sequence {direction} LIMIT ?"
    ))?;
    for kind in &query.kinds {
        let places = statement
            .query_map(params![log, kind, after, from, to, limit], |row| Ok((row.get(0)?, row.get(1)?)))?;
        for place in places {
            found.push(place?);
        }
    }
    found.sort_unstable();
    found.dedup();
    if query.order == Order::NewestFirst {
        found.reverse();
    }
    found.truncate(query.limit.saturating_add(1));
    let mut statement = connection.prepare_cached(&format!("SELECT {ENTRY} FROM entries WHERE entry = ?"))?;
    let items = found.into_iter().map(|(_, number)| statement.query_row([number], entry));
    Ok(Page::cut(items.collect::<Sql<_>>()?, query.limit))
}
