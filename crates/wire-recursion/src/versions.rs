//! `/memory_stores/{id}/memory_versions`. spec/recursion.md 7.

use axum::body::Body;
use stele_core::access::{Action, Resource};
use stele_core::command::{Command, RedactedPath};
use stele_core::id::{Epoch, MemoryId, StoreId};
use stele_core::list::{VersionFilter, VersionQuery};
use stele_core::refusal::Refusal;
use stele_core::service::Target;
use stele_core::storage::At;
use stele_http::cursor::{List, sequence_position};
use stele_http::query::Query;

use crate::context::{Answer, Call, query_id};
use crate::memories::changed_view;
use crate::view::{VersionView, VersionsView, nothing_at, shown_at};

/// The page that a query asks for, and the list that its cursor is bound to.
fn parse_list(
    query: &Query,
    (store, epoch): (StoreId, Epoch),
    memory: Option<MemoryId>,
) -> Result<(VersionQuery, List), Refusal> {
    let limit = query.number("limit", 1, 100, 50)?;
    let filter = VersionFilter { memory, ..VersionFilter::default() };
    let list = List::new(&["recursion versions", &format!("{filter:?}")]).of_store(store, epoch);
    let position = |text: &str| list.key(text).and_then(|key| sequence_position(&key));
    let before = query.get("cursor").map(position).transpose();
    let before = before.map_err(|_| Refusal::shape("cursor", "is not a cursor of this list"))?;
    Ok((VersionQuery { filter, full: false, before, limit }, list))
}

pub(crate) async fn list(call: Call) -> Answer {
    call.may(Resource::Version, Action::Read)?;
    let store = call.store()?;
    let query = call.query()?;
    let memory = query_id(&query, "memory_id")?;
    let (query, list) = match parse_list(&query, (store, call.stele.installation().epoch), memory) {
        Ok(wanted) => wanted,
        Err(malformed) => return Err(call.after_store(store, malformed).await),
    };
    let At { sequence, value: page } = call.stele.version_list(&call.caller, store, query).await?;
    let last = page.items.last().filter(|_| page.more);
    let next_cursor = last.map(|shown| list.cursor(&shown.version.sequence.to_be_bytes()));
    let organization = call.caller.workspace;
    let memory_versions = page.items.iter().map(|shown| VersionView::of(organization, shown)).collect();
    Ok(shown_at(sequence, &VersionsView { memory_versions, next_cursor }))
}

pub(crate) async fn retrieve(call: Call) -> Answer {
    call.may(Resource::Version, Action::Read)?;
    let (store, version) = (call.store()?, call.version()?);
    let found = call.stele.version_get(&call.caller, store, version, true).await?;
    Ok(shown_at(found.sequence, &VersionView::of(call.caller.workspace, &found.value)))
}

pub(crate) async fn restore(call: Call, body: Body) -> Answer {
    call.may(Resource::Version, Action::Restore)?;
    call.no_object(body).await?;
    let (store, version) = (call.store()?, call.version()?);
    let changed = call.act(store, Target::Version(version), Command::RestoreVersion { version }).await?;
    Ok(shown_at(changed.sequence, &changed_view(&call, &changed)))
}

pub(crate) async fn redact(call: Call, body: Body) -> Answer {
    call.may(Resource::Version, Action::Redact)?;
    call.no_object(body).await?;
    let (store, version) = (call.store()?, call.version()?);
    let command = Command::RedactVersion { version, path: RedactedPath::Keep };
    let changed = call.act(store, Target::Version(version), command).await?;
    Ok(nothing_at(changed.sequence))
}
