//! The error envelope and the one table from refusals to answers. spec/anthropic.md 1.7.

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};
use stele_core::meter;
use stele_core::refusal::{FieldError, Refusal};
use stele_core::storage::{Error, StorageError};
use stele_core::text::TextError;
use stele_core::work::refusal::WorkRefusal;
use stele_http::auth::Unknown;
use stele_http::body::{BodyError, ShapeError};
use stele_http::reply::SEQUENCE;
use stele_http::request::RequestId;

use crate::id::Prefixed;

/// An error of this dialect. The request id is added on its way out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ApiError {
    status: StatusCode,
    kind: &'static str,
    message: String,
    /// `details.error_code`.
    code: Option<&'static str>,
    /// `details.index`: which change of a changeset.
    index: Option<u32>,
    /// Further members of `error`.
    members: Map<String, Value>,
    /// Seconds after which a repeat may pass.
    retry_after: Option<u32>,
    /// The sequence of the store that refuses, where it is there.
    sequence: Option<u64>,
}

impl ApiError {
    fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        let members = Map::new();
        Self { status, kind, message, code: None, index: None, members, retry_after: None, sequence: None }
    }

    pub(crate) fn code(mut self, code: &'static str) -> Self {
        self.code = Some(code);
        self
    }

    /// With more to say.
    pub(crate) fn because(mut self, more: impl std::fmt::Display) -> Self {
        self.message = format!("{}: {more}", self.message);
        self
    }

    fn retry(mut self, after: u32) -> Self {
        self.retry_after = Some(after);
        self
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request_error", message)
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "permission_error", message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found_error", message)
    }

    #[cfg(test)]
    pub(crate) fn status(&self) -> u16 {
        self.status.as_u16()
    }

    /// An address that leads nowhere.
    pub(crate) fn no_route() -> Self {
        Self::not_found("there is no such route")
    }

    /// A known address with a method that it does not take.
    pub(crate) fn no_method() -> Self {
        let message = "this route does not take that method";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "invalid_request_error", message)
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        use StatusCode as S;
        let text = refusal.to_string();
        match &refusal {
            Refusal::InChangeset { index, refusal } => {
                let inner = Self::from(Refusal::clone(refusal));
                Self { message: text, index: u32::try_from(*index).ok(), ..inner }
            }
            Refusal::Forbidden(_) => Self::new(S::FORBIDDEN, "permission_error", text),
            Refusal::Invalid { field, error: FieldError::Text(TextError::TooLarge { .. }) }
                if field == "content" =>
            {
                Self::invalid(text).code("memory_content_too_large")
            }
            Refusal::Invalid { .. } | Refusal::StoreLearned(_) | Refusal::VersionNotRestorable(_) => {
                Self::invalid(text)
            }
            Refusal::StoreNotFound(id) => Self::not_found(format!("{text}: {}", id.spell())),
            Refusal::MemoryNotFound(id) => Self::not_found(format!("{text}: {}", id.spell())),
            Refusal::VersionNotFound(id) => Self::not_found(format!("{text}: {}", id.spell())),
            Refusal::KeyNotFound(id) => Self::not_found(format!("{text}: {}", id.spell())),
            Refusal::PathNotFound | Refusal::AgentNotFound(_) | Refusal::WorkspaceNotFound(_) => {
                Self::not_found(text)
            }
            Refusal::StoreArchived(_) => Self::invalid(text).code("memory_store_archived"),
            Refusal::ContentChanged { memory, .. } => {
                let message = format!("content_sha256 of {} does not match", memory.spell());
                Self::new(S::CONFLICT, "memory_precondition_failed_error", message)
            }
            Refusal::PathOccupied { wanted, by, at } => {
                let message = format!("path {wanted} is occupied by memory {} at {at}", by.spell());
                let mut error = Self::new(S::CONFLICT, "memory_path_conflict_error", message);
                error.members.insert("conflicting_memory_id".into(), by.spell().into());
                error.members.insert("conflicting_path".into(), at.as_str().into());
                error
            }
            Refusal::MemoryLimit { .. } => Self::invalid(text).code("memory_limit_reached"),
            Refusal::StoreLimit { .. } => Self::invalid(text).code("memory_store_limit_reached"),
            Refusal::StoreBytesLimit { .. } => Self::invalid(text).code("store_size_limit_reached"),
            Refusal::VersionLimit { .. } => Self::invalid(text).code("version_limit_reached"),
            Refusal::VersionIsHead(_) => Self::invalid(text).code("memory_version_is_head"),
            Refusal::StoreExists(_) => Self::new(S::CONFLICT, "invalid_request_error", text),
            Refusal::Unfit(unfit) => {
                let mut error = Self::invalid(text);
                let details = json!({
                    "error_code": "import_refused",
                    "problem_count": unfit.count,
                    "problems": stele_http::flat::problems(unfit),
                });
                error.members.insert("details".into(), details);
                error
            }
            Refusal::SequenceExpired(_) => {
                Self::new(S::GONE, "invalid_request_error", text).code("sequence_expired")
            }
            Refusal::Work(refusal) => Self::of_work(refusal, text),
        }
    }
}

impl ApiError {
    /// The answer to a refusal about agents, environments, sessions or their work.
    fn of_work(refusal: &WorkRefusal, text: String) -> Self {
        use StatusCode as S;
        match refusal {
            WorkRefusal::EnvironmentNotFound(id) => Self::not_found(format!("{text}: {}", id.spell())),
            WorkRefusal::SessionNotFound(id) => Self::not_found(format!("{text}: {}", id.spell())),
            WorkRefusal::WorkItemNotFound(id) => Self::not_found(format!("{text}: {}", id.spell())),
            WorkRefusal::AgentVersionNotFound { .. }
            | WorkRefusal::EnvironmentKeyNotFound
            | WorkRefusal::ResourceNotFound
            | WorkRefusal::ThreadNotFound
            | WorkRefusal::AutomationNotFound(_)
            | WorkRefusal::RunNotFound(_) => Self::not_found(text),
            WorkRefusal::ForeignEnvironment => Self::forbidden(text),
            WorkRefusal::EnvironmentArchived(_) => Self::invalid(text).code("environment_archived"),
            WorkRefusal::HostingFixed => Self::invalid(text).code("invalid_config_type_change"),
            WorkRefusal::AgentArchived(_)
            | WorkRefusal::SessionEnded(_)
            | WorkRefusal::SessionRunning(_)
            | WorkRefusal::AttachmentsFixed
            | WorkRefusal::AutomationReference { .. }
            | WorkRefusal::AutomationStore { .. } => Self::invalid(text),
            WorkRefusal::AgentChanged { .. }
            | WorkRefusal::WorkItemStopped(_)
            | WorkRefusal::AutomationChanged { .. }
            | WorkRefusal::KeyOfAnotherRequest => Self::new(S::CONFLICT, "invalid_request_error", text),
            WorkRefusal::HeartbeatMismatch { state, last_heartbeat, ttl_seconds } => {
                let mut error = Self::new(S::PRECONDITION_FAILED, "invalid_request_error", text);
                let current = json!({
                    "state": state.as_str(),
                    "last_heartbeat": last_heartbeat,
                    "lease_extended": false,
                    "ttl_seconds": ttl_seconds,
                });
                let details =
                    json!({"error_code": "heartbeat_precondition_failed", "current_state": current});
                error.members.insert("details".into(), details);
                error
            }
        }
    }
}

impl From<StorageError> for ApiError {
    fn from(error: StorageError) -> Self {
        use StatusCode as S;
        let text = error.to_string();
        match &error {
            StorageError::Overloaded => {
                let overloaded = S::from_u16(529).expect("529 is a status");
                Self::new(overloaded, "overloaded_error", text).retry(1)
            }
            StorageError::RedactionPending | StorageError::Unavailable(_) => {
                Self::new(S::SERVICE_UNAVAILABLE, "api_error", text).retry(1)
            }
            StorageError::Restoring { secs, .. } => {
                Self::new(S::SERVICE_UNAVAILABLE, "api_error", text).retry(*secs)
            }
            StorageError::Full => {
                Self::new(S::SERVICE_UNAVAILABLE, "api_error", text).code("storage_full").retry(30)
            }
            StorageError::Corrupt(_) | StorageError::Internal(_) => {
                tracing::error!(error = &error as &dyn std::error::Error, "the storage failed");
                let message = "something failed inside; the server's log says more";
                Self::new(S::INTERNAL_SERVER_ERROR, "api_error", message)
            }
        }
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::Refused { refusal, sequence } => Self { sequence, ..refusal.into() },
            Error::Failed(error) => error.into(),
        }
    }
}

impl From<Unknown> for ApiError {
    fn from(unknown: Unknown) -> Self {
        match unknown {
            Unknown::Unauthenticated => Self::new(
                StatusCode::UNAUTHORIZED,
                "authentication_error",
                "no valid API key: send one as `x-api-key: <key>` or `Authorization: Bearer <key>`",
            ),
            Unknown::Storage(error) => error.into(),
        }
    }
}

impl From<ShapeError> for ApiError {
    fn from(error: ShapeError) -> Self {
        match error {
            ShapeError::NotAnObject(message) => Self::invalid(message),
            ShapeError::Field(refusal) => refusal.into(),
        }
    }
}

impl From<BodyError> for ApiError {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::TooLarge => Self::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "request_too_large",
                "the request body is larger than 32 MiB",
            ),
            BodyError::TooSlow => {
                Self::new(StatusCode::REQUEST_TIMEOUT, "timeout_error", "the request body came too slowly")
            }
            BodyError::Broken => Self::invalid("the request body broke off"),
        }
    }
}

impl IntoResponse for ApiError {
    /// Carries the error in the response's extensions until [`render`] knows the request's id.
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// Writes the body of an error that a handler answered with.
pub(crate) fn render(mut response: Response, request_id: Option<&RequestId>) -> Response {
    let Some(error) = response.extensions_mut().remove::<ApiError>() else { return response };
    meter::refused(error.code.unwrap_or(error.kind));
    let mut members = error.members;
    members.insert("type".into(), error.kind.into());
    members.insert("message".into(), error.message.into());
    let code = error.code.map(|code| ("error_code".to_owned(), json!(code)));
    let index = error.index.map(|index| ("index".to_owned(), json!(index)));
    let details: Map<String, Value> = code.into_iter().chain(index).collect();
    if !details.is_empty() {
        members.insert("details".into(), details.into());
    }
    let request_id = request_id.map(RequestId::as_str);
    let body = json!({"type": "error", "error": members, "request_id": request_id});
    *response.body_mut() = body.to_string().into();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if matches!(error.status, StatusCode::CONFLICT | StatusCode::PRECONDITION_FAILED) {
        // Without it the SDKs repeat every 409 twice; no conflict here is cured by that.
        headers.insert("x-should-retry", HeaderValue::from_static("false"));
    }
    if let Some(after) = error.retry_after {
        headers.insert(RETRY_AFTER, after.into());
    }
    if let Some(sequence) = error.sequence {
        headers.insert(SEQUENCE, sequence.into());
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use stele_core::samples::{failures, refusals};

    #[test]
    fn the_whole_table_of_errors() {
        let errors =
            refusals().into_iter().map(ApiError::from).chain(failures().into_iter().map(ApiError::from));
        let rows = errors.map(|e| {
            let (code, retry) = (e.code.unwrap_or("-"), e.retry_after.map_or("-".into(), |s| s.to_string()));
            format!(
                "{} {} {code} retry-after={retry} {}{}\n  {}\n",
                e.status.as_u16(),
                e.kind,
                json!(e.members),
                e.index.map_or(String::new(), |index| format!(" index={index}")),
                e.message
            )
        });
        insta::assert_snapshot!(rows.collect::<String>());
    }
}
