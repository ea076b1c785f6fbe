//! Queries of the reader threads. Each runs in one short snapshot.

use std::sync::Arc;

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, params};
use stele_core::id::{MemoryId, StoreId, VersionId, WorkspaceId};
use stele_core::list::{
    Depth, Detail, MemoryEntry, MemoryQuery, Page, StoreFilter, StorePosition, VersionFilter,
};
use stele_core::model::{Memory, Status, Store, VersionText};
use stele_core::path::PathPrefix;
use stele_core::storage::{At, InStore, KnownBodies, MemoryRead, MemoryRef};
use stele_core::text::Summary;

use crate::content::decode;
use crate::fault::Fault;
use crate::rows::{self, Col, Cursor, Sql, actor_columns, operation_number};
use crate::writes::end_of;

/// The row number of a store that the workspace has, and its sequence.
pub(crate) fn store_number(
    connection: &Connection,
    workspace: WorkspaceId,
    id: StoreId,
) -> Sql<Option<(i64, u64)>> {
    connection
        .prepare_cached(
            "SELECT store, sequence FROM stores WHERE id = ? AND workspace = ? AND deleted_at IS NULL",
        )?
        .query_row(params![Col(id), Col(workspace)], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()
}

pub(crate) fn store(connection: &Connection, workspace: WorkspaceId, id: StoreId) -> Sql<Option<Store>> {
    let found = connection
        .prepare_cached(&format!(
            "SELECT {} FROM stores s WHERE s.id = ? AND s.workspace = ? AND s.deleted_at IS NULL",
            rows::STORE
        ))?
        .query_row(params![Col(id), Col(workspace)], rows::store)
        .optional()?;
    Ok(found.map(|(_, store)| store))
}

pub(crate) fn stores(
    connection: &Connection,
    workspace: WorkspaceId,
    filter: &StoreFilter,
    after: Option<StorePosition>,
    limit: usize,
) -> Sql<Page<Store>> {
    let from = filter.created.from.map_or(i64::MIN, |t| t.as_micros());
    let to = filter.created.to.map_or(i64::MAX, |t| t.as_micros());
    // A position that no store can be before stands for the start of the list.
    let (before, before_id) =
        after.map_or((i64::MAX, [255; 16]), |p| (p.created_at.as_micros(), *p.id.as_bytes()));
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {} FROM stores s WHERE s.workspace = :workspace AND s.deleted_at IS NULL {} \
         AND s.created_at BETWEEN :from AND :to AND (s.created_at, s.id) < (:before, :before_id) \
         AND CASE WHEN s.archived_at IS NULL THEN :active ELSE :archived END \
         AND (:origin IS NULL OR s.origin = :origin) ORDER BY s.created_at DESC, s.id DESC LIMIT :limit",
        rows::STORE,
        if filter.agent.is_some() { "AND s.agent = :agent" } else { "AND :agent IS NULL" },
    ))?;
    let items = rows::all(
        &mut statement,
        rusqlite::named_params! {
            ":workspace": Col(workspace),
            ":agent": filter.agent.map(Col),
            ":from": from,
            ":to": to,
            ":before": before,
            ":before_id": before_id,
            ":active": filter.shows(Status::Active),
            ":archived": filter.shows(Status::Archived),
            ":origin": filter.origin.map(Col),
            ":limit": sql_limit(limit),
        },
        rows::store,
    )?;
    Ok(Page::cut(items.into_iter().map(|(_, store)| store).collect(), limit))
}

/// One row more than the page, to know whether there is one.
pub(crate) fn sql_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1)
}

pub(crate) fn memory(
    connection: &Connection,
    workspace: WorkspaceId,
    store: StoreId,
    which: &MemoryRef,
    detail: Detail,
    known: Option<Arc<dyn KnownBodies>>,
) -> Result<InStore<Option<MemoryRead>>, Fault> {
    let Some((number, sequence)) = store_number(connection, workspace, store)? else { return Ok(None) };
    let at = |value| Ok(Some(At { sequence, value }));
    let read = |row: &rusqlite::Row<'_>| rows::memory(&mut Cursor::new(row), store);
    let found = match which {
        MemoryRef::Id(id) => connection
            .prepare_cached(&format!(
                "SELECT {} FROM memories m WHERE m.id = ? AND m.store = ?",
                rows::MEMORY
            ))?
            .query_row(params![Col(*id), number], read),
        MemoryRef::Path(path) => connection
            .prepare_cached(&format!(
                "SELECT {} FROM memories m WHERE m.store = ? AND m.path = ?",
                rows::MEMORY
            ))?
            .query_row(params![number, path.as_str()], read),
    };
    let Some((memory, head)) = found.optional()? else { return at(None) };
    if let Some(body) = known.and_then(|known| known.body(memory.version)) {
        return at(Some(MemoryRead::Known(body)));
    }
    let (summary, content) = texts(connection, &memory, head, detail)?;
    at(Some(MemoryRead::Read { memory, summary, content }))
}

/// The texts of a head, as far as they are asked for.
fn texts(
    connection: &Connection,
    memory: &Memory,
    head: i64,
    detail: Detail,
) -> Result<(Option<Summary>, Option<Bytes>), Fault> {
    let damaged = || Fault::Damaged(format!("{} of memory {}", memory.version, memory.id));
    let summary_of =
        |c: &mut Cursor<'_, '_>| rows::summary(c).map(|s| Some(s.unwrap_or_else(Summary::empty)));
    match detail {
        Detail::Basic => Ok((None, None)),
        Detail::Summary => {
            let summary = connection
                .prepare_cached("SELECT summary FROM versions WHERE version = ?")?
                .query_row([head], |row| summary_of(&mut Cursor::new(row)))
                .optional()?;
            Ok((summary.ok_or_else(damaged)?, None))
        }
        Detail::Full => {
            let found = connection
                .prepare_cached("SELECT summary, encoding, content FROM versions WHERE version = ?")?
                .query_row([head], |row| {
                    let c = &mut Cursor::new(row);
                    let (summary, encoding) = (summary_of(c)?, c.take::<Option<u8>>()?);
                    let stored = c.value()?;
                    let content =
                        encoding.and_then(|e| decode(e, stored, memory.size_bytes, memory.content_sha256));
                    Ok((summary, content))
                })
                .optional()?;
            match found {
                Some((summary, Some(content))) => Ok((summary, Some(content))),
                Some((_, None)) | None => Err(damaged()),
            }
        }
    }
}

pub(crate) fn memories(
    connection: &Connection,
    workspace: WorkspaceId,
    store: StoreId,
    query: &MemoryQuery,
) -> Result<InStore<Page<MemoryEntry>>, Fault> {
    let Some((number, sequence)) = store_number(connection, workspace, store)? else { return Ok(None) };
    let mut from = match &query.after {
        None => From::Above(query.prefix.as_str().to_owned()),
        Some(directory) if directory.ends_with('/') => From::At(end_of(directory)),
        Some(path) => From::Above(path.clone()),
    };
    let end = match query.prefix.as_str() {
        "/" => "0".to_owned(),
        prefix => end_of(prefix),
    };
    let mut entries = Vec::new();
    while entries.len() <= query.limit {
        match run(connection, store, number, query, &from, &end, &mut entries)? {
            Some(next) => from = next,
            None => break,
        }
    }
    Ok(Some(At { sequence, value: Page::cut(entries, query.limit) }))
}

/// Where a walk over paths begins.
enum From {
    /// At the first path greater than this text.
    Above(String),
    /// At the first path that is this text or greater.
    At(String),
}

/// Adds entries up to the next directory, that directory included; returns where the walk goes on behind it.
fn run(
    connection: &Connection,
    store: StoreId,
    number: i64,
    query: &MemoryQuery,
    from: &From,
    end: &str,
    entries: &mut Vec<MemoryEntry>,
) -> Result<Option<From>, Fault> {
    let (comparison, start) = match from {
        From::Above(text) => (">", text),
        From::At(text) => (">=", text),
    };
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {} FROM memories m WHERE m.store = ? AND m.path {comparison} ? AND m.path < ? \
         ORDER BY m.path LIMIT ?",
        rows::MEMORY
    ))?;
    let wanted = sql_limit(query.limit - entries.len().min(query.limit));
    let mut found = statement.query(params![number, start, end, wanted])?;
    while let Some(row) = found.next()? {
        let (memory, head) = rows::memory(&mut Cursor::new(row), store)?;
        if let Some(path) = rolled_up(query, &memory) {
            let end = end_of(&path);
            let count = (query.detail == Detail::Summary).then(|| beneath(connection, number, &path, &end));
            entries.push(MemoryEntry::Directory { path, count: count.transpose()? });
            return Ok(Some(From::At(end)));
        }
        let (summary, content) = texts(connection, &memory, head, query.detail)?;
        entries.push(MemoryEntry::Memory { memory, summary, content });
    }
    Ok(None)
}

/// How many memories lie in the directory at `path`, whose paths end before `end`: by the index of paths alone.
fn beneath(connection: &Connection, number: i64, path: &str, end: &str) -> Sql<u64> {
    connection
        .prepare_cached("SELECT count(*) FROM memories WHERE store = ? AND path > ? AND path < ?")?
        .query_row(params![number, path, end], |row| row.get(0))
}

fn rolled_up(query: &MemoryQuery, memory: &Memory) -> Option<String> {
    let prefix: &PathPrefix = &query.prefix;
    match query.depth {
        Depth::All => None,
        Depth::One => prefix.child_directory(memory.path.as_str()).map(str::to_owned),
    }
}

pub(crate) const VERSION_TEXTS: &str = "v.summary, v.reason, v.encoding, v.content";

pub(crate) fn version(
    connection: &Connection,
    workspace: WorkspaceId,
    store: StoreId,
    id: VersionId,
    full: bool,
) -> Result<InStore<Option<VersionText>>, Fault> {
    let Some((number, sequence)) = store_number(connection, workspace, store)? else { return Ok(None) };
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {}, {VERSION_TEXTS} FROM versions v WHERE v.id = ? AND v.store = ?",
        rows::VERSION
    ))?;
    let mut found = statement.query(params![Col(id), number])?;
    let value = found.next()?.map(|row| version_text(row, store, full)).transpose()?;
    Ok(Some(At { sequence, value }))
}

pub(crate) fn version_text(
    row: &rusqlite::Row<'_>,
    store: StoreId,
    full: bool,
) -> Result<VersionText, Fault> {
    let c = &mut Cursor::new(row);
    let version = rows::version(c, store)?;
    let (summary, reason, encoding) = (rows::summary(c)?, c.take()?, c.take::<Option<u8>>()?);
    let content = match (&version.recorded, encoding) {
        (Some(recorded), Some(encoding)) if full => {
            let content = decode(encoding, c.value()?, recorded.size_bytes, recorded.content_sha256);
            Some(
                content
                    .ok_or_else(|| Fault::Damaged(format!("{} of memory {}", version.id, version.memory)))?,
            )
        }
        _ => None,
    };
    Ok(VersionText { version, summary, reason, content })
}

/// A stretch of a store's history to look through, newest first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    /// Below this sequence.
    pub(crate) before: i64,
    /// At or above this one.
    pub(crate) from: i64,
    /// At most so many.
    pub(crate) limit: usize,
    /// With their content.
    pub(crate) full: bool,
}

/// The versions of a stretch that the filter lets through, and below which sequence to go on. Where there are none, that is
/// right above the next version: a gap of any size costs one look.
pub(crate) fn versions_on(
    connection: &Connection,
    number: i64,
    store: StoreId,
    filter: &VersionFilter,
    stretch: Stretch,
) -> Result<(Vec<VersionText>, i64), Fault> {
    let found = versions(connection, number, store, filter, stretch)?;
    if !found.is_empty() || stretch.from <= 0 {
        return Ok((found, stretch.from));
    }
    let next: Option<i64> = connection
        .prepare_cached("SELECT max(sequence) FROM versions WHERE store = ? AND sequence < ?")?
        .query_row([number, stretch.from], |row| row.get(0))?;
    Ok((found, next.map_or(0, |next| next.saturating_add(1))))
}

/// The versions of a stretch that the filter lets through.
fn versions(
    connection: &Connection,
    number: i64,
    store: StoreId,
    filter: &VersionFilter,
    stretch: Stretch,
) -> Result<Vec<VersionText>, Fault> {
    let operations = filter.operations.iter().fold(0i64, |bits, o| bits | (1 << operation_number(*o)));
    let author = filter.authors.first().map(|author| actor_columns(*author));
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {}, {VERSION_TEXTS} FROM versions v WHERE v.store = :store AND v.sequence < :before \
         AND v.sequence >= :from {} AND (:operations = 0 OR (:operations >> v.operation) & 1) \
         AND (:author_kind IS NULL OR (v.author_kind = :author_kind AND v.author = :author)) \
         AND v.created_at BETWEEN :created_from AND :created_to ORDER BY v.sequence DESC LIMIT :limit",
        rows::VERSION,
        if filter.memory.is_some() { "AND v.memory_id = :memory" } else { "AND :memory IS NULL" },
    ))?;
    let mut found = statement.query(rusqlite::named_params! {
        ":store": number,
        ":before": stretch.before,
        ":from": stretch.from,
        ":memory": filter.memory.map(Col::<MemoryId>),
        ":operations": operations,
        ":author_kind": author.map(|(kind, _)| kind),
        ":author": author.map(|(_, id)| id),
        ":created_from": filter.created.from.map_or(i64::MIN, |t| t.as_micros()),
        ":created_to": filter.created.to.map_or(i64::MAX, |t| t.as_micros()),
        ":limit": i64::try_from(stretch.limit).unwrap_or(i64::MAX),
    })?;
    let mut items = Vec::new();
    while let Some(row) = found.next()? {
        items.push(version_text(row, store, stretch.full)?);
    }
    Ok(items)
}
