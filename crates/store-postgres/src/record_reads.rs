//! Queries of records and logs, one snapshot each.

use stele_core::id::WorkspaceId;
use stele_core::list::{Created, Page};
use stele_core::records::{Entry, EntryQuery, Kind, Order, Record, RecordId, RecordQuery};
use stele_core::time::Timestamp;
use tokio_postgres::types::ToSql;

use crate::connect::Connected;
use crate::fault::Fault;
use crate::rows::{self, AnyId, Col, signed};

pub(crate) async fn one(
    connected: &Connected,
    workspace: WorkspaceId,
    kind: Kind,
    id: RecordId,
) -> Result<Option<Record>, Fault> {
    let statement = &connected.statements.record;
    let parameters: [&(dyn ToSql + Sync); 3] = [&Col(workspace), &i32::from(kind.0), &Col(AnyId(id))];
    let row = connected.client.query_opt(statement, &parameters).await?;
    row.as_ref().map(rows::record).transpose()
}

pub(crate) async fn many(
    connected: &Connected,
    workspace: WorkspaceId,
    kind: Kind,
    ids: &[RecordId],
) -> Result<Vec<Record>, Fault> {
    let ids: Vec<_> = ids.iter().map(|id| Col(AnyId(*id))).collect();
    let statement = &connected.statements.record_many;
    let found = connected.client.query(statement, &[&Col(workspace), &i32::from(kind.0), &ids]).await?;
    found.iter().map(rows::record).collect()
}

pub(crate) async fn by_key(
    connected: &Connected,
    kind: Kind,
    key: &[u8; 32],
) -> Result<Option<Record>, Fault> {
    let statement = &connected.statements.record_by_key;
    let row = connected.client.query_opt(statement, &[&i32::from(kind.0), &key.as_slice()]).await?;
    row.as_ref().map(rows::record).transpose()
}

pub(crate) async fn due(
    connected: &Connected,
    kind: Kind,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<Record>, Fault> {
    let (statement, limit) = (&connected.statements.record_due, signed(limit as u64));
    let found = connected.client.query(statement, &[&i32::from(kind.0), &now.as_micros(), &limit]).await?;
    found.iter().map(rows::record).collect()
}

fn bounds(span: Created) -> (i64, i64) {
    (span.from.map_or(i64::MIN, |t| t.as_micros()), span.to.map_or(i64::MAX, |t| t.as_micros()))
}

/// One row more than the page, to know whether there is one.
fn sql_limit(limit: usize) -> i64 {
    signed(limit as u64).saturating_add(1)
}

pub(crate) async fn list(connected: &Connected, query: &RecordQuery) -> Result<Page<Record>, Fault> {
    let (from, to) = bounds(query.created);
    // A place that no record can be before stands for the start of the list.
    let (after, after_id) = match (query.after, query.order) {
        (Some((at, id)), _) => (at.as_micros(), id),
        (None, Order::NewestFirst) => (i64::MAX, [255; 16]),
        (None, Order::OldestFirst) => (i64::MIN, [0; 16]),
    };
    let (workspace, kind, after_id) = (Col(query.workspace), i32::from(query.kind.0), Col(AnyId(after_id)));
    let limit = sql_limit(query.limit);
    let statements = &connected.statements;
    let mut parameters: Vec<&(dyn ToSql + Sync)> =
        vec![&workspace, &kind, &from, &to, &after, &after_id, &limit];
    let tag = query.tag.as_ref().map(|tag| (i32::from(tag.name), &tag.value));
    if let Some((name, value)) = &tag {
        parameters.extend([name as &(dyn ToSql + Sync), value]);
    }
    let statement = match (tag.is_some(), query.order) {
        (false, Order::NewestFirst) => &statements.records_newest,
        (false, Order::OldestFirst) => &statements.records_oldest,
        (true, Order::NewestFirst) => &statements.tagged_newest,
        (true, Order::OldestFirst) => &statements.tagged_oldest,
    };
    let found = connected.client.query(statement, &parameters).await?;
    Ok(Page::cut(found.iter().map(rows::record).collect::<Result<_, _>>()?, query.limit))
}

pub(crate) async fn entries(connected: &Connected, query: &EntryQuery) -> Result<Page<Entry>, Fault> {
    let (from, to) = bounds(query.at);
    let after = match (query.after, query.order) {
        (Some(after), _) => signed(after),
        (None, Order::NewestFirst) => i64::MAX,
        (None, Order::OldestFirst) => 0,
    };
    let (workspace, log, limit) = (Col(query.workspace), Col(AnyId(query.log)), sql_limit(query.limit));
    let statements = &connected.statements;
    let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![&workspace, &log, &from, &to, &after, &limit];
    let statement = match (query.kinds.is_empty(), query.order) {
        (true, Order::NewestFirst) => &statements.entries_newest,
        (true, Order::OldestFirst) => &statements.entries_oldest,
        (false, Order::NewestFirst) => &statements.kinds_newest,
        (false, Order::OldestFirst) => &statements.kinds_oldest,
    };
    if !query.kinds.is_empty() {
        parameters.push(&query.kinds);
    }
    let found = connected.client.query(statement, &parameters).await?;
    Ok(Page::cut(found.iter().map(rows::entry).collect::<Result<_, _>>()?, query.limit))
}
