//! What every handler starts with: the caller, the beta rule, and the parts of the address.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use stele_core::access::{Action, Caller, Resource};
use stele_core::id::{MemoryId, StoreId, VersionId};
use stele_core::refusal::Refusal;
use stele_core::service::{First, Stele, Target};
use stele_core::storage::Error;
use stele_http::auth;
use stele_http::body;
use stele_http::cursor::{BadCursor, List};
use stele_http::query::Query;

use crate::error::ApiError;
use crate::id::Prefixed;
use crate::view::View;

pub(crate) const AGENT_MEMORY: &str = "agent-memory-2026-07-22";
pub(crate) const MANAGED_AGENTS: &str = "managed-agents-2026-04-01";

/// An authenticated call of a memory route with its query.
pub(crate) struct Call {
    /// The server.
    pub(crate) stele: Arc<Stele>,
    /// Who asks.
    pub(crate) caller: Caller,
    /// The query.
    pub(crate) query: Query,
    params: Vec<(String, String)>,
}

/// The body of an action: none, or an object without fields.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoFields {}

impl Call {
    /// The id in the address at `{name}`: malformed or of another kind is as good as unknown.
    pub(crate) fn id<T: Prefixed>(&self, name: &str, what: &str) -> Result<T, ApiError> {
        T::read(self.param(name))
            .ok_or_else(|| ApiError::not_found(format!("{what} not found: that is not an id of one")))
    }

    /// The part of the address at `{name}`.
    pub(crate) fn param(&self, name: &str) -> &str {
        self.params.iter().find(|(n, _)| n == name).map_or("", |(_, value)| value)
    }

    /// Judges the caller before its body is read: whoever may not write cannot make the server hold what it sends.
    pub(crate) fn may(&self, resource: Resource, action: Action) -> Result<(), ApiError> {
        Ok(self.caller.may(resource, action).map_err(Refusal::from)?)
    }

    /// The store in the address.
    pub(crate) fn store(&self) -> Result<StoreId, ApiError> {
        self.id("store", "memory store")
    }

    /// The memory in the address.
    pub(crate) fn memory(&self) -> Result<MemoryId, ApiError> {
        self.id("memory", "memory")
    }

    /// The version in the address.
    pub(crate) fn version(&self) -> Result<VersionId, ApiError> {
        self.id("version", "memory version")
    }

    /// Checks that the body of an action brings nothing.
    pub(crate) async fn no_fields(&self, body: Body) -> Result<(), ApiError> {
        object::<NoFields>(&body::read(body).await?).map(|NoFields {}| ())
    }

    /// Reads a body of the shape `T` by `parse`, and the view that its answer is to have.
    pub(crate) fn parse_with_view<T: DeserializeOwned, C>(
        &self,
        body: &[u8],
        default: View,
        parse: impl FnOnce(T) -> Result<C, Refusal>,
    ) -> Result<(C, View), ApiError> {
        let view = View::of(&self.query, default)?;
        Ok((parse(object(body)?)?, view))
    }

    /// What was parsed; where that failed, the refusal that comes first: what is forbidden, missing or archived is
    /// said before what is malformed. spec/anthropic.md 3.5.
    pub(crate) async fn or_first<T>(
        &self,
        parsed: Result<T, ApiError>,
        store: StoreId,
        memory: Option<MemoryId>,
        needed: (Resource, Action),
    ) -> Result<T, ApiError> {
        match parsed {
            Ok(parsed) => Ok(parsed),
            Err(malformed) => {
                let target = memory.map_or(Target::Store, Target::Memory);
                let judged = self.stele.precondition(&self.caller, store, target, needed, First::State).await;
                Err(judged.map_or_else(Error::into, |_| malformed))
            }
        }
    }
}

/// Reads a body of the shape `T`; an empty one counts as `{}`. spec/anthropic.md 1.1, rule 4.
pub(crate) fn object<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    Ok(body::object(if body::is_empty(body) { b"{}" } else { body })?)
}

/// The place behind the cursor in `page`, if there is one.
pub(crate) fn read_cursor<T>(
    query: &Query,
    list: &List,
    position: impl Fn(Vec<u8>) -> Result<T, BadCursor>,
) -> Result<Option<T>, ApiError> {
    cursor_key(query.get("page"), list, position)
}

/// The place behind this cursor, if there is one.
pub(crate) fn cursor_key<T>(
    page: Option<&str>,
    list: &List,
    position: impl Fn(Vec<u8>) -> Result<T, BadCursor>,
) -> Result<Option<T>, ApiError> {
    let read = |text: &str| {
        let key = text.strip_prefix("page_").ok_or(BadCursor).and_then(|cursor| list.key(cursor));
        key.and_then(&position).map_err(|BadCursor| Refusal::shape("page", "is not a cursor of this list"))
    };
    Ok(page.map(read).transpose()?)
}

/// The cursor behind the last item, if more follow.
pub(crate) fn page_cursor(list: &List, more: bool, last: Option<Vec<u8>>) -> Option<String> {
    last.filter(|_| more).map(|key| format!("page_{}", list.cursor(&key)))
}

impl FromRequestParts<Arc<Stele>> for Call {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, stele: &Arc<Stele>) -> Result<Self, ApiError> {
        Self::open(parts, stele, memory_beta).await
    }
}

impl Call {
    /// A call whose beta header fits `beta`, the rule of its routes.
    pub(crate) async fn open(
        parts: &mut Parts,
        stele: &Arc<Stele>,
        beta: fn(&HeaderMap) -> Result<(), ApiError>,
    ) -> Result<Self, ApiError> {
        let caller = auth::caller(stele, &parts.headers).await?;
        beta(&parts.headers)?;
        workspace(&parts.headers, &caller)?;
        let params = RawPathParams::from_request_parts(parts, &()).await.map_err(|_| ApiError::no_route())?;
        let params = params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let query = Query::parse(parts.uri.query());
        Ok(Self { stele: stele.clone(), caller, query, params })
    }
}

/// The values of `anthropic-beta`, joined over repeated headers. spec/anthropic.md 1.3.
pub(crate) fn betas(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    headers
        .get_all("anthropic-beta")
        .iter()
        .filter_map(|v| v.to_str().ok())
        .flat_map(|v| v.split(','))
        .map(str::trim)
}

/// The rule of memory routes: one of the two values, not both.
fn memory_beta(headers: &HeaderMap) -> Result<(), ApiError> {
    let has = |wanted: &str| betas(headers).any(|value| value == wanted);
    match (has(AGENT_MEMORY), has(MANAGED_AGENTS)) {
        (true, false) | (false, true) => Ok(()),
        (true, true) => Err(ApiError::invalid(format!(
            "anthropic-beta holds both {AGENT_MEMORY} and {MANAGED_AGENTS}: send one of them on memory routes"
        ))),
        (false, false) => Err(ApiError::not_found(format!(
            "memory routes need the header `anthropic-beta: {AGENT_MEMORY}` (or {MANAGED_AGENTS})"
        ))),
    }
}

/// A named workspace must be the key's. spec/anthropic.md 1.1, rule 6.
fn workspace(headers: &HeaderMap, caller: &Caller) -> Result<(), ApiError> {
    let Some(named) = headers.get("anthropic-workspace-id") else { return Ok(()) };
    let own = caller.workspace;
    if named.to_str().is_ok_and(|named| named == own.spell() || named == own.to_string()) {
        return Ok(());
    }
    Err(ApiError::forbidden("anthropic-workspace-id names another workspace than the key's"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(values: &[&str]) -> Option<u16> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append("anthropic-beta", value.parse().expect("a value"));
        }
        memory_beta(&headers).err().map(|error| error.status())
    }

    #[test]
    fn one_of_the_two_values_opens_memory_routes() {
        assert_eq!(judged(&[AGENT_MEMORY]), None);
        assert_eq!(judged(&[MANAGED_AGENTS]), None);
        assert_eq!(judged(&[" agent-memory-2026-07-22 ,, oauth-2025-04-20,agent-memory-2026-07-22"]), None);
        assert_eq!(judged(&["agent-memory-2026-07-22,managed-agents-2026-04-01"]), Some(400));
        assert_eq!(judged(&[AGENT_MEMORY, MANAGED_AGENTS]), Some(400));
        for none in
            [&[][..], &["AGENT-MEMORY-2026-07-22"], &["agent-memory-2026-07-22x"], &["dreaming-2026-04-21"]]
        {
            assert_eq!(judged(none), Some(404), "{none:?}");
        }
    }
}
