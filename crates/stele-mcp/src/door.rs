//! The port of the tools: a request to a Stele server, and its answer as JSON.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderValue, Request};
use http_body_util::BodyExt;
use serde_json::Value;
use stele_client::{Client, ClientError, beta};
use tokio::sync::Semaphore;
use tower::ServiceExt;

/// What is named as the address of the server where the answer comes from within it.
const INSIDE: &str = "this server";
/// Requests that `stele mcp` has under way at once; further ones wait. A client may send hundreds in one turn.
const AT_ONCE: usize = 16;

/// A request; its path is one of Stele's HTTP interface, query and all.
#[derive(Clone, Debug)]
pub enum Ask {
    /// GET.
    Get(String),
    /// POST with a JSON body.
    Post(String, Value),
}

/// Brings requests to a server with the credential of whoever uses the tools.
pub trait Door: Clone + Send + Sync + 'static {
    /// The answer to a request.
    ///
    /// # Errors
    /// The server's refusal, or no server.
    fn ask(&self, ask: Ask) -> impl Future<Output = Result<Value, ClientError>> + Send;
}

/// A server elsewhere, through HTTP.
///
/// The client blocks, so each request has a thread of the runtime's pool while it lasts: for the few that an agent has
/// under way at once this costs some 20 microseconds each, and no second HTTP client in the binary.
#[derive(Clone)]
pub struct ClientDoor {
    client: Arc<Client>,
    places: Arc<Semaphore>,
}

impl ClientDoor {
    /// A door that uses this client.
    pub fn new(client: Client) -> Self {
        Self { client: Arc::new(client), places: Arc::new(Semaphore::new(AT_ONCE)) }
    }
}

impl Door for ClientDoor {
    async fn ask(&self, ask: Ask) -> Result<Value, ClientError> {
        let _place = self.places.acquire().await.expect("the semaphore is never closed");
        let client = self.client.clone();
        let asked = tokio::task::spawn_blocking(move || match ask {
            Ask::Get(path) => client.get(&path),
            Ask::Post(path, body) => client.post(&path, &body),
        });
        asked.await.unwrap_or_else(|error| {
            Err(ClientError::Strange { url: "the client".into(), cause: error.to_string() })
        })
    }
}

/// The server that the tools are part of: its own router, with the credential that came with the request.
#[derive(Clone)]
pub(crate) struct InnerDoor {
    router: Router,
    credential: HeaderValue,
}

impl InnerDoor {
    /// A door into `router` for whoever shows `credential`; `None` if that can be in no header.
    pub(crate) fn new(router: Router, credential: &str) -> Option<Self> {
        let mut credential = HeaderValue::from_str(&format!("Bearer {credential}")).ok()?;
        credential.set_sensitive(true);
        Some(Self { router, credential })
    }
}

impl Door for InnerDoor {
    async fn ask(&self, ask: Ask) -> Result<Value, ClientError> {
        let (method, path, body) = match ask {
            Ask::Get(path) => ("GET", path, Body::empty()),
            Ask::Post(path, body) => ("POST", path, Body::from(body.to_string())),
        };
        let strange = |cause: String| ClientError::Strange { url: INSIDE.into(), cause };
        let request = Request::builder()
            .method(method)
            .header("anthropic-beta", beta(&path))
            .header(AUTHORIZATION, self.credential.clone())
            .header(CONTENT_TYPE, "application/json")
            .uri(path)
            .body(body)
            .map_err(|error| strange(error.to_string()))?;
        let Ok(response) = self.router.clone().oneshot(request).await;
        let status = response.status();
        let bytes =
            response.into_body().collect().await.map_err(|error| strange(error.to_string()))?.to_bytes();
        let body = match bytes.as_ref() {
            b"" => Value::Null,
            bytes => {
                serde_json::from_slice(bytes).map_err(|_| strange(format!("status {status}, no JSON")))?
            }
        };
        if status.is_success() { Ok(body) } else { Err(ClientError::refused(status.as_u16(), &body)) }
    }
}
