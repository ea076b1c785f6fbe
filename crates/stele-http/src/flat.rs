//! The flat error envelope: Recursion's, of Stele's own routes, and of whatever lies outside the dialects.
//! spec/recursion.md 3.1 and 3.2.

use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};
use stele_core::import::Unfit;
use stele_core::meter;
use stele_core::refusal::Refusal;
use stele_core::storage::{Error, StorageError};
use stele_core::work::refusal::WorkRefusal;

use crate::auth::Unknown;
use crate::body::{BodyError, ShapeError};
use crate::reply::SEQUENCE;

/// An error in the flat envelope. The request id is added on its way out.
#[derive(Clone, Debug, PartialEq)]
pub struct FlatError {
    /// The HTTP status.
    pub status: StatusCode,
    /// The machine-readable code.
    pub code: &'static str,
    /// What a person reads.
    pub message: String,
    /// `field` and other details.
    pub details: Map<String, Value>,
    /// Seconds after which a repeat may pass.
    pub retry_after: Option<u64>,
    /// The sequence of the store that refuses, where it is there.
    pub sequence: Option<u64>,
}

impl FlatError {
    /// An error without details.
    pub fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), details: Map::new(), retry_after: None, sequence: None }
    }

    /// With the field at fault.
    #[must_use]
    pub fn on(mut self, field: impl Into<String>) -> Self {
        self.details.insert("field".into(), Value::String(field.into()));
        self
    }

    /// With one more detail.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.details.insert(key.into(), value.into());
        self
    }

    fn retry(mut self, after: u64) -> Self {
        self.retry_after = Some(after);
        self
    }

    /// An id in the address that is not an id.
    pub fn malformed_id(field: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request", format!("{field} must be a UUID")).on(field)
    }

    /// A body that is not JSON by its type.
    pub fn media_type() -> Self {
        Self::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "unsupported_media_type",
            "the body must be sent as Content-Type: application/json, in UTF-8",
        )
    }

    /// An address that leads nowhere.
    pub fn no_route() -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", "there is no such route")
    }

    /// A known address with a method that it does not take.
    pub fn no_method() -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method_not_allowed",
            "this route does not take that method",
        )
    }
}

impl From<Refusal> for FlatError {
    fn from(refusal: Refusal) -> Self {
        use StatusCode as S;
        let message = refusal.to_string();
        if let Refusal::InChangeset { index, refusal } = refusal {
            let mut error = Self::from(*refusal).with("index", index);
            error.message = message;
            return error;
        }
        let invalid = |field: &str| Self::new(S::BAD_REQUEST, "invalid_request", &message).on(field);
        let missing = || Self::new(S::NOT_FOUND, "not_found", &message);
        let conflict = |field: &str| Self::new(S::CONFLICT, "conflict", &message).on(field);
        let full =
            |reason: &str, limit: u64| invalid("memory_store_id").with("reason", reason).with("limit", limit);
        let unusable = |code: &str, field: &str| {
            let error = Self::new(S::UNPROCESSABLE_ENTITY, "semantic_validation_failed", &message);
            error.on(field).with("code", code)
        };
        match &refusal {
            Refusal::Forbidden(_) => Self::new(S::FORBIDDEN, "forbidden", &message),
            Refusal::Invalid { field, .. } => invalid(field),
            Refusal::StoreNotFound(_)
            | Refusal::MemoryNotFound(_)
            | Refusal::PathNotFound
            | Refusal::VersionNotFound(_)
            | Refusal::KeyNotFound(_)
            | Refusal::AgentNotFound(_)
            | Refusal::WorkspaceNotFound(_) => missing(),
            Refusal::StoreArchived(_) | Refusal::StoreLearned(_) => invalid("memory_store_id"),
            Refusal::ContentChanged { actual, .. } => {
                let code = "content_sha256_mismatch";
                Self::new(S::CONFLICT, code, &message)
                    .with("code", code)
                    .with("current_content_sha256", actual.to_string())
            }
            Refusal::PathOccupied { .. } => conflict("path"),
            Refusal::MemoryLimit { limit } => full("store_full", *limit),
            Refusal::StoreBytesLimit { limit } => full("store_bytes_full", *limit),
            Refusal::VersionLimit { limit } => full("versions_full", *limit),
            Refusal::StoreLimit { limit } => Self::new(S::BAD_REQUEST, "invalid_request", &message)
                .with("reason", "workspace_full")
                .with("limit", *limit),
            Refusal::InChangeset { .. } => unreachable!("answered above"),
            Refusal::VersionIsHead(_) => conflict("memory_version_id"),
            Refusal::VersionNotRestorable(_) => invalid("memory_version_id"),
            Refusal::StoreExists(_) => conflict("memory_store_id"),
            Refusal::Unfit(unfit) => Self::new(S::BAD_REQUEST, "invalid_request", &message)
                .with("problem_count", unfit.count)
                .with("problems", problems(unfit)),
            Refusal::SequenceExpired(_) => {
                Self::new(S::GONE, "invalid_request", &message).with("reason", "sequence_expired")
            }
            Refusal::Work(refusal) => match refusal {
                WorkRefusal::AgentVersionNotFound { .. }
                | WorkRefusal::EnvironmentNotFound(_)
                | WorkRefusal::EnvironmentKeyNotFound
                | WorkRefusal::SessionNotFound(_)
                | WorkRefusal::ResourceNotFound
                | WorkRefusal::ThreadNotFound
                | WorkRefusal::AutomationNotFound(_)
                | WorkRefusal::RunNotFound(_)
                | WorkRefusal::WorkItemNotFound(_) => missing(),
                WorkRefusal::ForeignEnvironment => Self::new(S::FORBIDDEN, "forbidden", &message),
                WorkRefusal::AgentArchived(_) => invalid("agent_id"),
                WorkRefusal::EnvironmentArchived(_) => invalid("environment_id"),
                WorkRefusal::HostingFixed => invalid("provider"),
                WorkRefusal::AttachmentsFixed => invalid("memory_stores"),
                WorkRefusal::AgentChanged { .. } => {
                    Self::new(S::CONFLICT, "revision_conflict", &message).on("base_agent_version_id")
                }
                WorkRefusal::SessionEnded(_) | WorkRefusal::SessionRunning(_) => conflict("session_id"),
                WorkRefusal::AutomationChanged { .. } => {
                    Self::new(S::PRECONDITION_FAILED, "precondition_failed", &message).on("If-Match")
                }
                WorkRefusal::AutomationReference { field, .. } => {
                    unusable("automation_reference_invalid", field)
                }
                WorkRefusal::AutomationStore { field, .. } => {
                    unusable("automation_memory_unavailable", field)
                }
                WorkRefusal::KeyOfAnotherRequest => {
                    Self::new(S::CONFLICT, "idempotency_conflict", &message).on("Idempotency-Key")
                }
                WorkRefusal::WorkItemStopped(_) | WorkRefusal::HeartbeatMismatch { .. } => {
                    conflict("work_id")
                }
            },
        }
    }
}

/// What is wrong with files, as both envelopes show it.
pub fn problems(unfit: &Unfit) -> Value {
    let shown = unfit.shown.iter().map(|problem| json!({"path": problem.path, "problem": problem.what}));
    shown.collect()
}

impl From<StorageError> for FlatError {
    fn from(error: StorageError) -> Self {
        use StatusCode as S;
        let unavailable =
            |after| Self::new(S::SERVICE_UNAVAILABLE, "service_unavailable", error.to_string()).retry(after);
        match &error {
            StorageError::Overloaded | StorageError::RedactionPending | StorageError::Unavailable(_) => {
                unavailable(1)
            }
            StorageError::Restoring { secs, .. } => unavailable(u64::from(*secs)),
            StorageError::Full => unavailable(30).with("reason", "storage_full"),
            StorageError::Corrupt(_) | StorageError::Internal(_) => {
                tracing::error!(error = &error as &dyn std::error::Error, "the storage failed");
                Self::new(
                    S::INTERNAL_SERVER_ERROR,
                    "internal_error",
                    "something failed inside; the log says more",
                )
            }
        }
    }
}

impl From<Error> for FlatError {
    fn from(error: Error) -> Self {
        match error {
            Error::Refused { refusal, sequence } => Self { sequence, ..refusal.into() },
            Error::Failed(error) => error.into(),
        }
    }
}

impl From<Unknown> for FlatError {
    fn from(unknown: Unknown) -> Self {
        match unknown {
            Unknown::Unauthenticated => Self::new(
                StatusCode::UNAUTHORIZED,
                "unauthorized",
                "no valid API key: send one as `Authorization: Bearer <key>` or `x-api-key: <key>`",
            ),
            Unknown::Storage(error) => error.into(),
        }
    }
}

impl From<ShapeError> for FlatError {
    fn from(error: ShapeError) -> Self {
        match error {
            ShapeError::NotAnObject(message) => Self::new(StatusCode::BAD_REQUEST, "invalid_json", message),
            ShapeError::Field(refusal) => refusal.into(),
        }
    }
}

impl From<BodyError> for FlatError {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::TooLarge => Self::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "payload_too_large",
                "the request body is larger than 32 MiB",
            ),
            BodyError::TooSlow => {
                Self::new(StatusCode::REQUEST_TIMEOUT, "invalid_request", "the request body came too slowly")
            }
            BodyError::Broken => {
                Self::new(StatusCode::BAD_REQUEST, "invalid_request", "the request body broke off")
            }
        }
    }
}

impl IntoResponse for FlatError {
    /// Carries the error in the response's extensions until [`render`] knows the request's id.
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// The name and schema of the envelope, for `/openapi.json`.
pub fn schema() -> (&'static str, Value) {
    let schema = json!({
        "type": "object",
        "required": ["code", "message", "details"],
        "properties": {
            "code": {"type": "string"},
            "message": {"type": "string"},
            "details": {
                "type": "object",
                "required": ["requestId"],
                "properties": {"requestId": {"type": "string"}, "field": {"type": "string"}},
            },
        },
    });
    ("FlatError", schema)
}

/// Writes the body of an error that a handler answered with.
pub fn render(mut response: Response, request_id: &str) -> Response {
    let Some(mut error) = response.extensions_mut().remove::<FlatError>() else { return response };
    meter::refused(error.code);
    error.details.insert("requestId".into(), Value::String(request_id.into()));
    let body = json!({"code": error.code, "message": error.message, "details": error.details});
    *response.body_mut() = body.to_string().into();
    // A router within the router may have counted the empty body already.
    response.headers_mut().remove(CONTENT_LENGTH);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(after) = error.retry_after {
        response.headers_mut().insert(RETRY_AFTER, after.into());
    }
    if let Some(sequence) = error.sequence {
        response.headers_mut().insert(SEQUENCE, sequence.into());
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;
    use stele_core::samples::{failures, refusals};

    /// What goes out for an error: status, `retry-after` and body.
    async fn sent(error: FlatError) -> (u16, Option<String>, Value) {
        let response = render(error.into_response(), "req_1");
        assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
        let retry = response.headers().get(RETRY_AFTER).map(|v| v.to_str().expect("digits").to_owned());
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.expect("a whole body").to_bytes();
        (status, retry, serde_json::from_slice(&body).expect("JSON"))
    }

    #[tokio::test]
    async fn the_whole_table_of_errors() {
        let edges: Vec<FlatError> = vec![
            Unknown::Unauthenticated.into(),
            ShapeError::NotAnObject("the body must be a JSON object".into()).into(),
            BodyError::TooLarge.into(),
            BodyError::TooSlow.into(),
            BodyError::Broken.into(),
            FlatError::malformed_id("memory_id"),
            FlatError::media_type(),
            FlatError::no_route(),
            FlatError::no_method(),
        ];
        let errors =
            refusals().into_iter().map(FlatError::from).chain(failures().into_iter().map(FlatError::from));
        let mut rows = String::new();
        for error in errors.chain(edges) {
            let (status, retry, body) = sent(error).await;
            assert_eq!(body["details"]["requestId"], "req_1");
            let mut details = body["details"].as_object().expect("an object").clone();
            details.remove("requestId");
            let (code, message) = (body["code"].as_str(), body["message"].as_str());
            rows += &format!(
                "{status} {} retry-after={} {}\n  {}\n",
                code.expect("a text"),
                retry.as_deref().unwrap_or("-"),
                Value::Object(details),
                message.expect("a text")
            );
        }
        insta::assert_snapshot!(rows);
    }
}
