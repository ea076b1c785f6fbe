//! What every handler starts with: the caller, the parts of the address, the body, and the order of checks.
//! spec/recursion.md 2 and 3.3.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequestParts, OriginalUri, RawPathParams};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, Uri};
use axum::response::Response;
use bytes::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use stele_core::access::{Action, Caller, Resource};
use stele_core::command::Command;
use stele_core::hash::Sha256;
use stele_core::id::{
    AgentId, AgentVersionId, AutomationId, EnvironmentId, EventId, MemoryId, RunId, SessionId, StoreId,
    TriggerId, VersionId,
};
use stele_core::model::Store;
use stele_core::refusal::Refusal;
use stele_core::service::{First, Stele, Target, needed_for};
use stele_core::storage::{Changed, Error};
use stele_http::auth::Unknown;
use stele_http::body::{self, ShapeError};
use stele_http::flat::FlatError;
use stele_http::query::Query;

pub(crate) type Answer = Result<Response, FlatError>;

/// A call by a caller who is known.
pub(crate) struct Call {
    /// The server.
    pub(crate) stele: Arc<Stele>,
    /// Who asks.
    pub(crate) caller: Caller,
    /// The headers.
    pub(crate) headers: HeaderMap,
    method: Method,
    params: Vec<(String, String)>,
    uri: Uri,
    media: Media,
}

/// The type that the body says to be of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Media {
    /// JSON in UTF-8.
    Json,
    /// Something else, or nothing said.
    Other,
}

/// An object without fields that anybody reads.
#[derive(Deserialize)]
struct AnyObject {}

/// An id that is named in an address or a query.
pub(crate) trait Id: Sized {
    /// Reads its one spelling.
    fn read(text: &str) -> Option<Self>;
}

macro_rules! id {
    ($($name:ident)*) => {$(
        impl Id for $name {
            fn read(text: &str) -> Option<Self> {
                Self::parse(text)
            }
        }
    )*};
}

id! {
    StoreId MemoryId VersionId AgentId AgentVersionId EnvironmentId SessionId EventId AutomationId RunId TriggerId
}

impl Call {
    /// Judges the permission, before anything is read or looked up.
    pub(crate) fn may(&self, resource: Resource, action: Action) -> Result<(), FlatError> {
        Ok(self.caller.may(resource, action).map_err(Refusal::from)?)
    }

    /// Reads a body: first what is wrong with it as JSON, then, later in the order of checks, with its fields.
    pub(crate) async fn object<T: DeserializeOwned>(
        &self,
        body: Body,
    ) -> Result<Result<T, Refusal>, FlatError> {
        Ok(self.raw_object(body).await?.1)
    }

    /// Reads a body, and answers with its bytes too.
    pub(crate) async fn raw_object<T: DeserializeOwned>(
        &self,
        body: Body,
    ) -> Result<(Bytes, Result<T, Refusal>), FlatError> {
        let body = body::read(body).await?;
        if self.media == Media::Other && !body.is_empty() {
            return Err(FlatError::media_type());
        }
        match body::object(&body) {
            Ok(object) => Ok((body, Ok(object))),
            Err(ShapeError::Field(refusal)) => Ok((body, Err(refusal))),
            Err(error @ ShapeError::NotAnObject(_)) => Err(error.into()),
        }
    }

    /// What makes this request the same as another: method, path, query and body as they were sent.
    /// spec/recursion.md 2.1.
    pub(crate) fn identity(&self, body: &[u8]) -> Sha256 {
        let (path, query) = (self.uri.path(), self.uri.query().unwrap_or_default());
        let parts = [self.method.as_str().as_bytes(), path.as_bytes(), query.as_bytes(), body];
        Sha256::of(&parts.join(&b"\0"[..]))
    }

    /// Reads the body of an action: mostly there is none, and nothing in it counts.
    pub(crate) async fn no_object(&self, body: Body) -> Result<(), FlatError> {
        let body = body::read(body).await?;
        if !body::is_empty(&body) {
            let _nothing = self.object::<AnyObject>(body.into()).await?;
        }
        Ok(())
    }

    /// The id of this name in the address.
    pub(crate) fn id<T: Id>(&self, name: &str) -> Result<T, FlatError> {
        let text = self.params.iter().find(|(n, _)| n == name).map_or("", |(_, value)| value);
        T::read(text).ok_or_else(|| FlatError::malformed_id(name))
    }

    /// The store in the address.
    pub(crate) fn store(&self) -> Result<StoreId, FlatError> {
        self.id("memory_store_id")
    }

    /// The memory in the address.
    pub(crate) fn memory(&self) -> Result<MemoryId, FlatError> {
        self.id("memory_id")
    }

    /// The version in the address.
    pub(crate) fn version(&self) -> Result<VersionId, FlatError> {
        self.id("memory_version_id")
    }

    /// The query.
    pub(crate) fn query(&self) -> Result<Query, FlatError> {
        Ok(Query::parse(self.uri.query()))
    }

    /// Carries out a change. Of several things in the way the first of spec/recursion.md 3.3 is said: what is not
    /// there, before a store that takes no changes, before the fields that `parsed` refuses.
    pub(crate) async fn carry_out(
        &self,
        store: StoreId,
        target: Target,
        needed: (Resource, Action),
        parsed: Result<Command, Refusal>,
    ) -> Result<Changed, FlatError> {
        let refused = match parsed {
            Ok(command) => match self.change(store, command).await {
                Err(
                    refused @ Error::Refused {
                        refusal: Refusal::StoreArchived(_) | Refusal::StoreLearned(_),
                        ..
                    },
                ) => refused,
                done => return Ok(done?),
            },
            Err(malformed) => malformed.into(),
        };
        let judged = self.stele.precondition(&self.caller, store, target, needed, First::Existence);
        let sequence = judged.await?.counters.sequence;
        Err(FlatError { sequence: Some(sequence), ..refused.into() })
    }

    /// What a read is refused for: a store that is not there, before what the query gets wrong.
    pub(crate) async fn after_store(&self, store: StoreId, refused: Refusal) -> FlatError {
        let needed = (Resource::Memory, Action::Read);
        let judged = self.stele.precondition(&self.caller, store, Target::Store, needed, First::Existence);
        let refuse = |store: Store| Error::refused(refused, Some(store.counters.sequence)).into();
        judged.await.map_or_else(FlatError::from, refuse)
    }

    /// Carries out a command without fields.
    pub(crate) async fn act(
        &self,
        store: StoreId,
        target: Target,
        command: Command,
    ) -> Result<Changed, FlatError> {
        self.carry_out(store, target, needed_for(&command), Ok(command)).await
    }

    /// Changes answer with the content; what the command brings need not be read back for that.
    async fn change(&self, store: StoreId, command: Command) -> Result<Changed, Error> {
        let own: Option<Bytes> = command.content().map(|content| content.bytes().clone());
        let reads_back = own.is_none() && shows_content(&command);
        let changed = self.stele.change(&self.caller, store, command, reads_back).await?;
        Ok(Changed { content: changed.content.or(own), ..changed })
    }
}

fn shows_content(command: &Command) -> bool {
    matches!(
        command,
        Command::CreateMemory { .. } | Command::UpdateMemory { .. } | Command::RestoreVersion { .. }
    )
}

/// The id in a query, if it is given.
pub(crate) fn query_id<T: Id>(query: &Query, name: &str) -> Result<Option<T>, FlatError> {
    query.get(name).map(|text| T::read(text).ok_or_else(|| FlatError::malformed_id(name))).transpose()
}

impl Media {
    fn of(headers: &HeaderMap) -> Self {
        let value = headers.get(CONTENT_TYPE).map(HeaderValue::to_str);
        let Some(Ok(value)) = value else { return Self::Other };
        let mut parts = value.split(';').map(str::trim);
        let is_json = parts.next().is_some_and(|media| media.eq_ignore_ascii_case("application/json"));
        let charset = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches('"'))
        });
        match (is_json, charset) {
            (true, None) => Self::Json,
            (true, Some(charset)) if charset.eq_ignore_ascii_case("utf-8") => Self::Json,
            (true, Some(_)) | (false, _) => Self::Other,
        }
    }
}

impl FromRequestParts<Arc<Stele>> for Call {
    type Rejection = FlatError;

    async fn from_request_parts(parts: &mut Parts, stele: &Arc<Stele>) -> Result<Self, FlatError> {
        let caller = parts.extensions.get::<Caller>().cloned().ok_or(Unknown::Unauthenticated)?;
        // A part that is no UTF-8 is no id: it is left out here and malformed where it is asked for.
        let params = RawPathParams::from_request_parts(parts, &()).await;
        let params = params.iter().flatten().map(|(name, value)| (name.to_owned(), value.to_owned()));
        let params = params.collect();
        let media = Media::of(&parts.headers);
        let uri = parts.extensions.get::<OriginalUri>().map_or(&parts.uri, |original| &original.0).clone();
        let (headers, method) = (parts.headers.clone(), parts.method.clone());
        Ok(Self { stele: stele.clone(), caller, headers, method, params, uri, media })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_json_in_utf_8_is_json() {
        let media = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, value.parse().expect("a value"));
            Media::of(&headers)
        };
        for json in [
            "application/json",
            "Application/JSON",
            "application/json; charset=\"UTF-8\"",
            "application/json;x=y",
        ] {
            assert_eq!(media(json), Media::Json, "{json}");
        }
        for other in ["text/plain", "application/json; charset=latin1", "application/jsonl", "", "text/json"]
        {
            assert_eq!(media(other), Media::Other, "{other}");
        }
        assert_eq!(Media::of(&HeaderMap::new()), Media::Other);
    }
}
