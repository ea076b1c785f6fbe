//! Reads: each one statement on a shared connection, so that it sees one snapshot.

use std::sync::Arc;

use bytes::Bytes;
use stele_core::id::{StoreId, VersionId, WorkspaceId};
use stele_core::list::{
    Depth, Detail, MemoryEntry, MemoryQuery, Page, StoreFilter, StorePosition, VersionQuery,
};
use stele_core::model::{Memory, Status, Store, VersionText};
use stele_core::storage::{At, InStore, KnownBodies, MemoryRead, MemoryRef};
use stele_core::text::Summary;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::connect::Connected;
use crate::fault::Fault;
use crate::load::end_of;
use crate::rows::{self, Col, Cursor, actor_columns, operation_number, origin_number, signed};

/// Sequences looked through in one statement where a filter may let few through.
const STRETCH: i64 = 20_000;

pub(crate) fn damaged_head(memory: &Memory) -> Fault {
    Fault::Damaged(format!("{} of memory {}", memory.version, memory.id))
}

/// One row more than the page, to know whether there is one.
fn sql_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1)
}

pub(crate) async fn store(
    connected: &Connected,
    workspace: WorkspaceId,
    id: StoreId,
) -> Result<Option<Store>, Fault> {
    let statement = &connected.statements.store_by_id;
    let row = connected.client.query_opt(statement, &[&Col(workspace), &Col(id)]).await?;
    row.map(|row| rows::store(&mut Cursor::new(&row))).transpose()
}

pub(crate) async fn stores(
    connected: &Connected,
    workspace: WorkspaceId,
    filter: &StoreFilter,
    after: Option<StorePosition>,
    most: usize,
) -> Result<Page<Store>, Fault> {
    let from = filter.created.from.map_or(i64::MIN, |t| t.as_micros());
    let to = filter.created.to.map_or(i64::MAX, |t| t.as_micros());
    // A position that no store can be before stands for the start of the list.
    let (before, before_id) =
        after.map_or((i64::MAX, StoreId::from_bytes([255; 16])), |p| (p.created_at.as_micros(), p.id));
    let (workspace, before_id, limit) = (Col(workspace), Col(before_id), sql_limit(most));
    let (active, archived) = (filter.shows(Status::Active), filter.shows(Status::Archived));
    let (origin, agent) = (filter.origin.map(origin_number), filter.agent.map(Col));
    let mut parameters: Vec<&(dyn ToSql + Sync)> =
        vec![&workspace, &from, &to, &before, &before_id, &active, &archived, &origin, &limit];
    let statement = match &agent {
        None => &connected.statements.store_list,
        Some(agent) => {
            parameters.push(agent);
            &connected.statements.store_list_of_agent
        }
    };
    let found = connected.client.query(statement, &parameters).await?;
    let items: Result<_, Fault> = found.iter().map(|row| rows::store(&mut Cursor::new(row))).collect();
    Ok(Page::cut(items?, most))
}

/// How much of a memory a statement brings.
fn detail_number(detail: Detail) -> i32 {
    match detail {
        Detail::Basic => 0,
        Detail::Summary => 1,
        Detail::Full => 2,
    }
}

/// A live memory. `hint` is a head whose ready body may be known: if it still is the head, its content is not sent.
pub(crate) async fn memory(
    connected: &Connected,
    workspace: WorkspaceId,
    store: StoreId,
    which: &MemoryRef,
    detail: Detail,
    known: Option<&Arc<dyn KnownBodies>>,
    hint: Option<VersionId>,
) -> Result<InStore<Option<MemoryRead>>, Fault> {
    let (number, hint) = (detail_number(detail), hint.filter(|_| known.is_some()).map(Col));
    let (client, statements) = (&connected.client, &connected.statements);
    let (workspace, place) = (Col(workspace), Col(store));
    let row = match which {
        MemoryRef::Id(id) => {
            client
                .query_opt(&statements.memory_by_id, &[&workspace, &place, &Col(*id), &number, &hint])
                .await?
        }
        MemoryRef::Path(path) => {
            let path = path.as_str();
            client.query_opt(&statements.memory_by_path, &[&workspace, &place, &path, &number, &hint]).await?
        }
    };
    let Some(row) = row else { return Ok(None) };
    let sequence = Cursor::new(&row).number()?;
    let at = |value| Ok(Some(At { sequence, value }));
    let Some((texts, memory)) = Texts::of_memory(&row, store)? else { return at(None) };
    if let Some(body) = known.and_then(|known| known.body(memory.version)) {
        return at(Some(MemoryRead::Known(body)));
    }
    if detail == Detail::Full && texts.stored.is_none() && hint.is_some_and(|hint| hint.0 == memory.version) {
        // The body was dropped in between: once more, without the hint.
        return Box::pin(self::memory(connected, workspace.0, store, which, detail, None, None)).await;
    }
    let (summary, content) = texts.read(&memory, detail)?;
    at(Some(MemoryRead::Read { memory, summary, content }))
}

/// The texts of a row, as they are stored.
struct Texts<'r> {
    summary: Option<Summary>,
    encoding: Option<i16>,
    stored: Option<&'r [u8]>,
}

impl<'r> Texts<'r> {
    /// Reads `sequence, summary, encoding, content` and the columns of a memory; `None` if the row has no memory.
    fn of_memory(row: &'r Row, store: StoreId) -> Result<Option<(Self, Memory)>, Fault> {
        let c = &mut Cursor::new(row);
        let _: u64 = c.number()?;
        let texts = Self { summary: c.summary()?, encoding: c.take()?, stored: c.take()? };
        if row.try_get::<_, Option<Col<stele_core::id::MemoryId>>>(4)?.is_none() {
            return Ok(None);
        }
        Ok(Some((texts, rows::memory(c, store)?)))
    }

    /// The texts of a head, as far as they are asked for.
    fn read(self, memory: &Memory, detail: Detail) -> Result<(Option<Summary>, Option<Bytes>), Fault> {
        let summary = || Some(self.summary.clone().unwrap_or_else(Summary::empty));
        match detail {
            Detail::Basic => Ok((None, None)),
            Detail::Summary => Ok((summary(), None)),
            Detail::Full => {
                let content = decoded(self.encoding, self.stored, memory.size_bytes, memory.content_sha256);
                Ok((summary(), Some(content.ok_or_else(|| damaged_head(memory))?)))
            }
        }
    }
}

fn decoded(
    encoding: Option<i16>,
    stored: Option<&[u8]>,
    size: u64,
    sha256: stele_core::hash::Sha256,
) -> Option<Bytes> {
    store_codec::decode(u8::try_from(encoding?).ok()?, stored?, size, sha256)
}

/// A text that is greater than `text` and not greater than any path greater than it: no path holds U+0001.
fn just_above(text: &str) -> String {
    format!("{text}\u{1}")
}

pub(crate) async fn memories(
    connected: &Connected,
    workspace: WorkspaceId,
    store: StoreId,
    query: &MemoryQuery,
) -> Result<InStore<Page<MemoryEntry>>, Fault> {
    let from = match &query.after {
        None => just_above(query.prefix.as_str()),
        Some(directory) if directory.ends_with('/') => end_of(directory),
        Some(path) => just_above(path),
    };
    let end = match query.prefix.as_str() {
        "/" => "0".to_owned(),
        prefix => end_of(prefix),
    };
    let (limit, detail) = (sql_limit(query.limit), detail_number(query.detail));
    let (client, statements) = (&connected.client, &connected.statements);
    let (workspace, place) = (Col(workspace), Col(store));
    let found = match query.depth {
        Depth::All => {
            client.query(&statements.memory_list, &[&workspace, &place, &from, &end, &limit, &detail]).await?
        }
        Depth::One => {
            let chars = i32::try_from(query.prefix.as_str().chars().count()).unwrap_or(i32::MAX);
            client
                .query(
                    &statements.memory_children,
                    &[&workspace, &place, &from, &end, &limit, &detail, &chars],
                )
                .await?
        }
    };
    let Some(first) = found.first() else { return Ok(None) };
    let sequence = Cursor::new(first).number()?;
    let entries: Result<Vec<_>, Fault> =
        found.iter().filter_map(|row| entry(row, store, query).transpose()).collect();
    Ok(Some(At { sequence, value: Page::cut(entries?, query.limit) }))
}

/// Reads `sequence, summary, encoding, content, directory, count` and the columns of a memory; `None` if the store is empty.
fn entry(row: &Row, store: StoreId, query: &MemoryQuery) -> Result<Option<MemoryEntry>, Fault> {
    let c = &mut Cursor::new(row);
    let _: u64 = c.number()?;
    let texts = Texts { summary: c.summary()?, encoding: c.take()?, stored: c.take()? };
    let (directory, count) = (c.take::<Option<String>>()?, c.take::<Option<i64>>()?);
    if let Some(path) = directory {
        return Ok(Some(MemoryEntry::Directory { path, count: count.map(i64::unsigned_abs) }));
    }
    if row.try_get::<_, Option<Col<stele_core::id::MemoryId>>>(6)?.is_none() {
        return Ok(None);
    }
    let memory = rows::memory(c, store)?;
    let (summary, content) = texts.read(&memory, query.detail)?;
    Ok(Some(MemoryEntry::Memory { memory, summary, content }))
}

pub(crate) async fn version(
    connected: &Connected,
    workspace: WorkspaceId,
    store: StoreId,
    id: VersionId,
    full: bool,
) -> Result<InStore<Option<VersionText>>, Fault> {
    let statement = &connected.statements.version_by_id;
    let row = connected.client.query_opt(statement, &[&Col(workspace), &Col(store), &Col(id), &full]).await?;
    let Some(row) = row else { return Ok(None) };
    let sequence = Cursor::new(&row).number()?;
    let there = row.try_get::<_, Option<Col<VersionId>>>(5)?.is_some();
    let value = if there { Some(version_text(&row, store, full)?) } else { None };
    Ok(Some(At { sequence, value }))
}

/// Reads `sequence, summary, reason, encoding, content` and the columns of a version.
pub(crate) fn version_text(row: &Row, store: StoreId, full: bool) -> Result<VersionText, Fault> {
    let c = &mut Cursor::new(row);
    let _: u64 = c.number()?;
    let (summary, reason) = (c.summary()?, c.take()?);
    let (encoding, stored) = (c.take::<Option<i16>>()?, c.take::<Option<&[u8]>>()?);
    let version = rows::version(c, store)?;
    let content = match &version.recorded {
        Some(recorded) if full => {
            let content = decoded(encoding, stored, recorded.size_bytes, recorded.content_sha256);
            let damaged = || Fault::Damaged(format!("{} of memory {}", version.id, version.memory));
            Some(content.ok_or_else(damaged)?)
        }
        _ => None,
    };
    Ok(VersionText { version, summary, reason, content })
}

/// The highest sequence given out in a store.
pub(crate) async fn newest_sequence(
    connected: &Connected,
    workspace: WorkspaceId,
    id: StoreId,
) -> Result<Option<i64>, Fault> {
    let statement = &connected.statements.store_sequence;
    let row = connected.client.query_opt(statement, &[&Col(workspace), &Col(id)]).await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?)
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
}

/// How many sequences one statement looks through: a memory's versions are found by an index of their own.
pub(crate) fn stretch_length(query: &VersionQuery) -> i64 {
    if query.filter.memory.is_some() { i64::MAX } else { STRETCH }
}

/// The versions of a stretch that the filter lets through, and below which sequence to go on. Where there are none, that is
/// right above the next version: a gap of any size costs one look.
pub(crate) async fn versions_on(
    connected: &Connected,
    workspace: WorkspaceId,
    store: StoreId,
    query: &VersionQuery,
    stretch: Stretch,
) -> Result<(Vec<VersionText>, i64), Fault> {
    let found = versions(connected, workspace, store, query, stretch).await?;
    if !found.is_empty() || stretch.from <= 0 {
        return Ok((found, stretch.from));
    }
    let statement = &connected.statements.newest_version_below;
    let next = connected.client.query_opt(statement, &[&Col(workspace), &Col(store), &stretch.from]).await?;
    let next: Option<i64> = next.map(|row| row.try_get(0)).transpose()?;
    Ok((found, next.map_or(0, |next| next.saturating_add(1))))
}

/// The versions of a stretch that the filter lets through.
async fn versions(
    connected: &Connected,
    workspace: WorkspaceId,
    store: StoreId,
    query: &VersionQuery,
    stretch: Stretch,
) -> Result<Vec<VersionText>, Fault> {
    let filter = &query.filter;
    let operations = filter.operations.iter().fold(0i32, |bits, o| bits | (1 << operation_number(*o)));
    let author = filter.authors.first().map(|author| actor_columns(*author));
    let (author_kind, author) = (author.map(|(kind, _)| kind), author.map(|(_, id)| id));
    let from = filter.created.from.map_or(i64::MIN, |t| t.as_micros());
    let to = filter.created.to.map_or(i64::MAX, |t| t.as_micros());
    let limit = signed(stretch.limit as u64);
    let (workspace, place) = (Col(workspace), Col(store));
    let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![
        &workspace,
        &place,
        &stretch.from,
        &stretch.before,
        &operations,
        &author_kind,
        &author,
        &from,
        &to,
        &limit,
        &query.full,
    ];
    let memory = filter.memory.map(Col);
    let statement = match &memory {
        None => &connected.statements.version_list,
        Some(memory) => {
            parameters.push(memory);
            &connected.statements.version_list_of_memory
        }
    };
    let found = connected.client.query(statement, &parameters).await?;
    found.iter().map(|row| version_text(row, store, query.full)).collect()
}
