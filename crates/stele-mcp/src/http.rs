//! `/mcp`: the protocol over streamable HTTP. No session is kept: each request is answered by itself, by whichever
//! server process it reaches, for whoever's credential it carries. MCP, "Streamable HTTP".

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{ACCEPT, CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::Value;
use stele_client::ClientError;
use stele_core::refusal::Refusal;
use stele_http::flat::FlatError;
use stele_http::{auth, body};

use crate::door::InnerDoor;
use crate::scope::{ScopeError, Words};
use crate::server::Tools;
use crate::stdio::parse;

/// Largest message: more than any document with its JSON around it.
const MOST_BYTES: usize = 4 * 1024 * 1024;
/// Web pages on this machine, such as a developer's own tools.
const LOCAL: [&str; 6] = [
    "http://localhost:*",
    "http://127.0.0.1:*",
    "http://[::1]:*",
    "https://localhost:*",
    "https://127.0.0.1:*",
    "https://[::1]:*",
];

/// The web pages whose scripts may call `/mcp`, by their origins; those of this machine always may.
///
/// A browser names the page's origin with every POST, also where the page had the server's address resolved to its
/// own name (DNS rebinding); other clients name none. So this alone keeps foreign pages out, and whoever puts a proxy
/// with another name before the server need not list it.
#[derive(Clone, Debug, Default)]
pub struct Origins(pub Vec<String>);

struct Mcp {
    inner: Router,
    config: StreamableHttpServerConfig,
}

/// The route, whose tools call `inner`: the server's own routes, with all that surrounds them.
pub fn routes(inner: Router, origins: Origins) -> Router {
    let origins = LOCAL.map(str::to_owned).into_iter().chain(origins.0);
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .disable_allowed_hosts()
        .with_allowed_origins(origins)
        .with_max_request_body_bytes(MOST_BYTES);
    Router::new().route("/mcp", any(answer)).with_state(Arc::new(Mcp { inner, config }))
}

async fn answer(State(mcp): State<Arc<Mcp>>, request: Request) -> Response {
    let (parts, sent) = request.into_parts();
    match mcp.tools(&parts).await {
        Ok(tools) => mcp.serve(tools, parts, sent).await,
        Err(error) => {
            let mut response = error.into_response();
            if response.status() == StatusCode::UNAUTHORIZED {
                response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            response
        }
    }
}

impl Mcp {
    /// The tools for this request's credential and query; a wrong one of either is refused before the body is read.
    async fn tools(&self, parts: &Parts) -> Result<Tools<InnerDoor>, FlatError> {
        let unknown = || FlatError::from(auth::Unknown::Unauthenticated);
        let credential = auth::credential(&parts.headers).ok_or_else(unknown)?;
        let door = InnerDoor::new(self.inner.clone(), credential).ok_or_else(unknown)?;
        let words = Words::of_query(parts.uri.query())
            .map_err(|error| FlatError::from(Refusal::shape("query", error.to_string())))?;
        let tools = Tools::new(door, words);
        tools.scope().await.map_err(refused)?;
        Ok(tools)
    }

    async fn serve(&self, tools: Tools<InnerDoor>, mut parts: Parts, sent: Body) -> Response {
        // The answer is JSON always; whoever would rather have an event stream takes JSON too.
        parts.headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        let bytes = match body::read(sent).await {
            Ok(bytes) if bytes.len() <= MOST_BYTES => bytes,
            Ok(_) => return too_large(),
            Err(error) => return FlatError::from(error).into_response(),
        };
        let is_json = parts
            .headers
            .get(CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
        if parts.method == "POST"
            && is_json
            && let Err(refusal) = parse(&bytes)
        {
            return bad(&refusal);
        }
        let service = StreamableHttpService::new(
            move || Ok(tools.clone()),
            Arc::new(NeverSessionManager::default()),
            self.config.clone(),
        );
        service.handle(Request::from_parts(parts, Body::from(bytes))).await.into_response()
    }
}

fn too_large() -> Response {
    let text = "a message to /mcp is at most 4 MiB";
    FlatError::new(StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large", text).into_response()
}

fn bad(refusal: &Value) -> Response {
    (StatusCode::BAD_REQUEST, [(CONTENT_TYPE, "application/json")], refusal.to_string()).into_response()
}

/// Why there is no scope, as an HTTP answer.
fn refused(error: ScopeError) -> FlatError {
    match error {
        ScopeError::Words(text) => Refusal::shape("query", text).into(),
        ScopeError::Missing(text) => FlatError::new(StatusCode::NOT_FOUND, "not_found", text),
        ScopeError::Server(ClientError::Refused { status: 401, .. }) => auth::Unknown::Unauthenticated.into(),
        ScopeError::Server(ClientError::Refused { status, message, .. }) => match status {
            403 => FlatError::new(StatusCode::FORBIDDEN, "forbidden", message),
            429 | 503 | 529 => {
                FlatError::new(StatusCode::SERVICE_UNAVAILABLE, "service_unavailable", message)
            }
            _ => internal(),
        },
        ScopeError::Server(_) => internal(),
    }
}

/// The request within the server has logged its cause.
fn internal() -> FlatError {
    let text = "something failed inside; the server's log says more";
    FlatError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", text)
}
