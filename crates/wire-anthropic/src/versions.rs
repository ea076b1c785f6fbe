//! `/v1/memory_stores/{id}/memory_versions`. spec/anthropic.md 4.

use axum::body::Body;
use axum::response::Response;
use stele_core::command::{Command, RedactedPath};
use stele_core::decide::Outcome;
use stele_core::id::{KeyId, MemoryId, ServiceAccountId, VersionId};
use stele_core::list::{Created, VersionFilter, VersionQuery};
use stele_core::model::Operation;
use stele_core::refusal::Refusal;
use stele_core::storage::At;
use stele_http::cursor::{List, sequence_position};
use stele_http::query::Query;
use stele_http::reply::{at, bytes, json};

use crate::context::{Call, page_cursor, read_cursor};
use crate::error::ApiError;
use crate::id::{read_filter, read_session};
use crate::memories::FULL_PAGE;
use crate::view::{PageView, VersionView, View, operation};

type Answer = Result<Response, ApiError>;

/// The id in a filter, if it is given.
fn filter_id<T>(query: &Query, name: &str, read: impl Fn(&str) -> Option<T>) -> Result<Option<T>, Refusal> {
    let parse = |text| read(text).ok_or_else(|| Refusal::shape(name, "is not an id of that kind"));
    query.get(name).map(parse).transpose()
}

fn parse_filter(query: &Query) -> Result<VersionFilter, Refusal> {
    let mut filter = VersionFilter {
        memory: filter_id(query, "memory_id", read_filter::<MemoryId>)?,
        ..Default::default()
    };
    if let Some(wanted) = query.get("operation") {
        filter.operations = Operation::ALL.into_iter().filter(|o| operation(*o) == wanted).collect();
        if filter.operations.is_empty() {
            return Err(Refusal::shape("operation", "must be created, modified or deleted"));
        }
    }
    if let Some(id) = filter_id(query, "session_id", read_session)? {
        filter.by_session(id);
    }
    if let Some(id) = filter_id(query, "api_key_id", read_filter::<KeyId>)? {
        filter.by_key(id);
    }
    if let Some(id) = filter_id(query, "service_account_id", read_filter::<ServiceAccountId>)? {
        filter.by_service_account(id);
    }
    filter.created = Created { from: query.time("created_at[gte]")?, to: query.time("created_at[lte]")? };
    Ok(filter)
}

pub(crate) async fn list(call: Call) -> Answer {
    let store = call.store()?;
    let filter = parse_filter(&call.query)?;
    let limit = call.query.number("limit", 1, 100, 20)?;
    let view = View::of(&call.query, View::Basic)?;
    let list = List::new(&["anthropic versions", &format!("{filter:?}")])
        .of_store(store, call.stele.installation().epoch);
    let before = read_cursor(&call.query, &list, |key| sequence_position(&key))?;
    let limit = if view == View::Full { limit.min(FULL_PAGE) } else { limit };
    let query = VersionQuery { filter, full: view == View::Full, before, limit };
    let At { sequence, value: page } = call.stele.version_list(&call.caller, store, query).await?;
    let last = page.items.last().map(|text| text.version.sequence.to_be_bytes().to_vec());
    let data = page.items.iter().map(|text| VersionView::of(&text.version, text.content.as_ref()));
    let view = PageView { data: data.collect(), next_page: page_cursor(&list, page.more, last) };
    Ok(at(sequence, json(bytes(&view))))
}

pub(crate) async fn retrieve(call: Call) -> Answer {
    let (store, version) = (call.store()?, call.version()?);
    let full = View::of(&call.query, View::Full)? == View::Full;
    let At { sequence, value: text } = call.stele.version_get(&call.caller, store, version, full).await?;
    Ok(at(sequence, json(bytes(&VersionView::of(&text.version, text.content.as_ref())))))
}

pub(crate) async fn redact(call: Call, body: Body) -> Answer {
    let (store, version): (_, VersionId) = (call.store()?, call.version()?);
    call.no_fields(body).await?;
    let command = Command::RedactVersion { version, path: RedactedPath::Scrub };
    let changed = call.stele.change(&call.caller, store, command, false).await?;
    match changed.outcome {
        Outcome::Version(version) => Ok(at(changed.sequence, json(bytes(&VersionView::of(&version, None))))),
        Outcome::Store(_) | Outcome::StoreDeleted(_) | Outcome::Memory(_) | Outcome::MemoryDeleted(_) => {
            unreachable!("a redaction's outcome is a version")
        }
    }
}
