//! What the handlers of agents, environments, sessions and their work share: the beta rule, bodies, lists.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::response::Response;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use stele_core::access::{Action, Resource};
use stele_core::id::{AgentId, EnvironmentId, SessionId, WorkItemId};
use stele_core::list::Created;
use stele_core::records::Order;
use stele_core::refusal::Refusal;
use stele_core::service::{Position, Stele};
use stele_core::text::{Metadata, MetadataPatch, TextError};
use stele_core::time::Timestamp;
use stele_core::work::Fields;
use stele_http::body;
use stele_http::cursor::{List, created_key, created_position};
use stele_http::query::Query;
use stele_http::reply::{bytes, json};

use crate::context::{Call, MANAGED_AGENTS, betas, object, page_cursor, read_cursor};
use crate::error::ApiError;
use crate::id::Prefixed;
use crate::stores::{Pairs, parse_metadata};
use crate::view::PageView;

pub(crate) type Answer = Result<Response, ApiError>;

/// The beta value that lets events of recorded sessions in. spec/anthropic.md 17.2.
pub(crate) const INGEST: &str = "stele-ingest-2026-12-01";

/// An authenticated call of a route of agents, environments or sessions.
pub(crate) struct WorkCall {
    call: Call,
    headers: HeaderMap,
}

impl Deref for WorkCall {
    type Target = Call;

    fn deref(&self) -> &Call {
        &self.call
    }
}

impl FromRequestParts<Arc<Stele>> for WorkCall {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, stele: &Arc<Stele>) -> Result<Self, ApiError> {
        let call = Call::open(parts, stele, managed_beta).await?;
        Ok(Self { call, headers: parts.headers.clone() })
    }
}

/// The rule of these routes: the value must be there, whatever else is. spec/anthropic.md 1.3.
fn managed_beta(headers: &HeaderMap) -> Result<(), ApiError> {
    if betas(headers).any(|value| value == MANAGED_AGENTS) {
        return Ok(());
    }
    Err(ApiError::not_found(format!("these routes need the header `anthropic-beta: {MANAGED_AGENTS}`")))
}

impl WorkCall {
    /// The headers of the request.
    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Whether the request asks to let recorded events in.
    pub(crate) fn records(&self) -> bool {
        betas(&self.headers).any(|value| value == INGEST)
    }

    /// The agent in the address.
    pub(crate) fn agent(&self) -> Result<AgentId, ApiError> {
        self.id("agent", "agent")
    }

    /// The environment in the address.
    pub(crate) fn environment(&self) -> Result<EnvironmentId, ApiError> {
        self.id("environment", "environment")
    }

    /// The session in the address, in either spelling.
    pub(crate) fn session(&self) -> Result<SessionId, ApiError> {
        let text = self.param("session");
        let alias = text.strip_prefix("session_").map(|token| format!("sesn_{token}"));
        SessionId::read(alias.as_deref().unwrap_or(text))
            .ok_or_else(|| ApiError::not_found("session not found: that is not an id of one"))
    }

    /// The work item in the address.
    pub(crate) fn work_item(&self) -> Result<WorkItemId, ApiError> {
        self.id("work", "work item")
    }

    /// The body of a caller who may do `action` on `resource`, in the shape `T`.
    pub(crate) async fn body<T: DeserializeOwned>(
        &self,
        resource: Resource,
        action: Action,
        body: Body,
    ) -> Result<T, ApiError> {
        self.may(resource, action)?;
        object(&body::read(body).await?)
    }

    /// Where a list by creation goes on.
    pub(crate) fn after(&self, list: &List) -> Result<Option<Position>, ApiError> {
        read_cursor(&self.query, list, |key| created_position(&key))
    }
}

/// A page of things made at some time.
pub(crate) fn page<T: Serialize>(list: &List, more: bool, last: Option<Position>, data: Vec<T>) -> Response {
    let next_page = page_cursor(list, more, last.map(created_key));
    json(bytes(&PageView { data, next_page }))
}

/// The span of creation times that a query asks for; `gt` and `lt` leave their time out.
pub(crate) fn created(query: &Query) -> Result<Created, Refusal> {
    let beside = |at: Timestamp, micros: i64| Timestamp::from_micros(at.as_micros().saturating_add(micros));
    let from = [query.time("created_at[gte]")?, query.time("created_at[gt]")?.map(|at| beside(at, 1))];
    let to = [query.time("created_at[lte]")?, query.time("created_at[lt]")?.map(|at| beside(at, -1))];
    Ok(Created { from: from.into_iter().flatten().max(), to: to.into_iter().flatten().min() })
}

/// The order that a query asks for.
pub(crate) fn order(query: &Query, default: Order) -> Result<Order, Refusal> {
    match query.get("order") {
        None => Ok(default),
        Some("asc") => Ok(Order::OldestFirst),
        Some("desc") => Ok(Order::NewestFirst),
        Some(_) => Err(Refusal::shape("order", "must be asc or desc")),
    }
}

/// A text of at most `most` characters, without NUL.
pub(crate) fn text(field: &str, text: String, least: usize, most: usize) -> Result<String, Refusal> {
    let actual = text.chars().count();
    let error = match () {
        () if actual < least => TextError::Empty,
        () if actual > most => TextError::TooLong { max: most, actual },
        () if text.contains('\0') => TextError::Nul,
        () => return Ok(text),
    };
    Err(Refusal::invalid(field, error))
}

/// The metadata of something new.
pub(crate) fn new_metadata(pairs: Option<Pairs>) -> Result<Metadata, Refusal> {
    if let Some((key, _)) = pairs.iter().flatten().find(|(_, value)| value.is_none()) {
        return Err(Refusal::shape(format!("metadata.{key}"), "must be a string"));
    }
    let patch: MetadataPatch = parse_metadata(pairs)?;
    Metadata::default().patched(&patch).map_err(|error| Refusal::invalid("metadata", error))
}

/// The pairs as they are shown.
pub(crate) fn pairs(metadata: &Metadata) -> BTreeMap<String, String> {
    metadata.pairs().clone()
}

/// Objects with a `type` each, at most 500.
pub(crate) fn typed(field: &str, items: Vec<Value>) -> Result<Vec<Value>, Refusal> {
    const MOST: usize = 500;
    if items.len() > MOST {
        return Err(Refusal::shape(field, format!("must be at most {MOST} items")));
    }
    match items.iter().position(|item| !item.get("type").is_some_and(Value::is_string)) {
        Some(place) => Err(Refusal::shape(format!("{field}.{place}.type"), "is required")),
        None => Ok(items),
    }
}

/// The text of `name` in an object that a handler reads field by field.
pub(crate) fn take_text(fields: &mut Fields, at: &str, name: &str) -> Result<Option<String>, Refusal> {
    match fields.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(Refusal::shape(format!("{at}.{name}"), "must be a string")),
    }
}

/// Refuses what a handler that reads an object field by field has left over.
pub(crate) fn nothing_left(fields: &Fields, at: &str) -> Result<(), Refusal> {
    match fields.keys().next() {
        Some(name) => Err(Refusal::shape(format!("{at}.{name}"), "is not a field of this request")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(values: &[&str]) -> Option<u16> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append("anthropic-beta", value.parse().expect("a value"));
        }
        managed_beta(&headers).err().map(|error| error.status())
    }

    #[test]
    fn the_value_of_managed_agents_opens_these_routes() {
        assert_eq!(judged(&["managed-agents-2026-04-01"]), None);
        assert_eq!(judged(&["agent-memory-2026-07-22", " managed-agents-2026-04-01"]), None);
        for none in [&[][..], &["agent-memory-2026-07-22"], &["dreaming-2026-04-21"], &[INGEST]] {
            assert_eq!(judged(none), Some(404), "{none:?}");
        }
    }

    #[test]
    fn bounds_that_leave_their_time_out_are_the_next_ones_in() {
        let query = Query::parse(Some(
            "created_at[gt]=2026-01-01T00:00:00Z&created_at[lt]=2026-01-02T00:00:00Z&created_at[gte]=2025-01-01T00:00:00Z",
        ));
        let Created { from, to } = created(&query).expect("times");
        assert_eq!(from.map(|at| at.to_string()).as_deref(), Some("2026-01-01T00:00:00.000001Z"));
        assert_eq!(to.map(|at| at.to_string()).as_deref(), Some("2026-01-01T23:59:59.999999Z"));
    }
}
