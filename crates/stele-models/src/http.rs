//! One request to a provider.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::redirect::Policy;
use serde_json::Value;
use stele_core::clock::Clock;
use stele_core::models::{Conversation, Fault, Hear};

use crate::draft::{Draft, Said};
use crate::retry::retry_after;
use crate::settings::{Key, ProviderSettings};
use crate::sse::Events;
use crate::ways::Ways;
use crate::wire::{self, Broken, Wire};

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(10);
/// Most bytes of an answer on the wire: a token in a stream is some 200 of them.
const WIRE_BYTES: usize = 128 * 1024 * 1024;
/// Most bytes of a whole answer, and of a catalogue.
const WHOLE_BYTES: usize = 16 * 1024 * 1024;
/// What is read of a refusal, to see what it names.
const REFUSAL_BYTES: usize = 64 * 1024;

/// Why a try failed.
#[derive(Debug)]
pub(crate) enum TryError {
    /// The provider answered with a status that is a failure.
    Status {
        /// The status.
        status: u16,
        /// The wait that it asks for.
        retry_after: Option<Duration>,
        /// What it says, in lower case, to look for names of fields and for nothing else.
        refusal: String,
    },
    /// It could not be reached, or what it answered could not be read.
    Fault(Fault),
}

/// The address of a provider with all that each request brings.
pub(crate) struct Endpoint {
    client: reqwest::Client,
    base: String,
    headers: HeaderMap,
    clock: Arc<dyn Clock>,
    pub(crate) wire: Box<dyn Wire>,
}

/// Why there can be no connections to a provider.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AddressError {
    /// Its address is none.
    #[error("base_url must be an address such as http://127.0.0.1:11434/v1")]
    Malformed,
    /// Its address has parts that do not belong there.
    #[error(
        "base_url must have no user, password, query or fragment: keys belong into api_key_env or api_key_file"
    )]
    TooMuch,
    /// Connections cannot be made at all.
    #[error("connections cannot be made")]
    Client(#[source] reqwest::Error),
}

impl Endpoint {
    pub(crate) fn new(settings: &ProviderSettings, clock: Arc<dyn Clock>) -> Result<Self, AddressError> {
        let url = reqwest::Url::parse(&settings.base_url).map_err(|_| AddressError::Malformed)?;
        let host = url.host_str().filter(|_| matches!(url.scheme(), "http" | "https"));
        let host = host.ok_or(AddressError::Malformed)?;
        if !url.username().is_empty()
            || url.password().is_some()
            || url.query().is_some()
            || url.fragment().is_some()
        {
            return Err(AddressError::TooMuch);
        }
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("stele/", env!("CARGO_PKG_VERSION")))
            .redirect(Policy::none())
            .connect_timeout(CONNECT)
            .tls_backend_preconfigured(tls());
        if matches!(host.trim_matches(['[', ']']), "localhost" | "::1") || host.starts_with("127.") {
            builder = builder.no_proxy();
        } else if url.scheme() == "http" && settings.key.is_some() {
            tracing::warn!(
                provider = settings.name,
                "the key of this provider crosses the network readable: its base_url is plain HTTP"
            );
        }
        let wire = wire::of(settings.kind);
        let base = url.as_str().trim_end_matches('/');
        // The paths of this wire begin with it.
        let base = base.strip_suffix("/v1").filter(|_| wire.path().starts_with("/v1/")).unwrap_or(base);
        let headers = headers(&*wire, settings.key.as_ref());
        let client = builder.build().map_err(AddressError::Client)?;
        Ok(Self { client, base: base.to_owned(), headers, clock, wire })
    }

    /// Makes one try of a call.
    pub(crate) async fn call(
        &self,
        model: &str,
        conversation: &Conversation,
        ways: &Ways,
        hear: Hear<'_>,
    ) -> Result<Said, TryError> {
        let body = self.wire.body(model, conversation, ways).to_string();
        let request = self.client.post(format!("{}{}", self.base, self.wire.path()));
        let request = request.header(CONTENT_TYPE, "application/json").body(body);
        let mut response = self.send(request).await?;
        let draft = Draft::new(hear);
        if is_stream(response.headers()) {
            self.streamed(&mut response, draft).await
        } else {
            self.whole(&mut response, draft).await
        }
    }

    async fn streamed(
        &self,
        response: &mut reqwest::Response,
        mut draft: Draft<'_>,
    ) -> Result<Said, TryError> {
        let (mut events, mut reading, mut read) = (Events::default(), self.wire.events(), 0);
        while let Some(piece) = next(response).await? {
            read += piece.len();
            if read > WIRE_BYTES {
                return Err(Fault::TooLarge.into());
            }
            for data in events.read(&piece).map_err(|_| Fault::TooLarge)? {
                reading.event(&data, &mut draft)?;
            }
        }
        if let Some(data) = events.end() {
            // Half an event at the end is an answer that broke off.
            reading.event(&data, &mut draft).map_err(|_| Fault::BrokenOff)?;
        }
        reading.end(&mut draft)?;
        Ok(draft.end()?)
    }

    async fn whole(&self, response: &mut reqwest::Response, mut draft: Draft<'_>) -> Result<Said, TryError> {
        let body = read(response, WHOLE_BYTES).await?.ok_or(Fault::TooLarge)?;
        let answer: Value = serde_json::from_slice(&body).map_err(|_| Fault::Unreadable)?;
        self.wire.whole(&answer, &mut draft)?;
        Ok(draft.end()?)
    }

    /// A page of the catalogue, from `place` on.
    pub(crate) async fn models(&self, place: &str) -> Result<Value, TryError> {
        let request = self.client.get(format!("{}{}{place}", self.base, self.wire.models_path()));
        let mut response = self.send(request).await?;
        let body = read(&mut response, WHOLE_BYTES).await?.ok_or(Fault::TooLarge)?;
        Ok(serde_json::from_slice(&body).map_err(|_| Fault::Unreadable)?)
    }

    /// Sends a request; the answer if its status is one of success.
    async fn send(&self, request: reqwest::RequestBuilder) -> Result<reqwest::Response, TryError> {
        let sent = request.headers(self.headers.clone()).send().await;
        let mut response = sent.map_err(|error| match error.is_connect() {
            true => Fault::Unreachable,
            false => Fault::BrokenOff,
        })?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let retry_after = after.and_then(|value| retry_after(value, self.clock.now()));
        // What cannot be read of a refusal names nothing.
        let body = read(&mut response, REFUSAL_BYTES).await.ok().flatten().unwrap_or_default();
        let refusal = String::from_utf8_lossy(&body).to_lowercase();
        Err(TryError::Status { status: status.as_u16(), retry_after, refusal })
    }
}

fn headers(wire: &dyn Wire, key: Option<&Key>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in wire.headers(key) {
        let mut value = HeaderValue::from_str(&value).expect("a key is printable ASCII");
        value.set_sensitive(true);
        headers.insert(HeaderName::from_static(name), value);
    }
    headers
}

fn is_stream(headers: &HeaderMap) -> bool {
    let media = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    media.trim_start().to_ascii_lowercase().starts_with("text/event-stream")
}

async fn next(response: &mut reqwest::Response) -> Result<Option<Bytes>, Fault> {
    response.chunk().await.map_err(|_| Fault::BrokenOff)
}

/// The whole body; `None` if it is larger than `most`.
async fn read(response: &mut reqwest::Response, most: usize) -> Result<Option<Vec<u8>>, Fault> {
    let mut body = Vec::new();
    while let Some(piece) = next(response).await? {
        if body.len() + piece.len() > most {
            return Ok(None);
        }
        body.extend_from_slice(&piece);
    }
    Ok(Some(body))
}

/// TLS by ring with the certificates that the system trusts, read once.
fn tls() -> rustls::ClientConfig {
    static CONFIG: OnceLock<rustls::ClientConfig> = OnceLock::new();
    let make = || {
        let mut roots = rustls::RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("ring speaks the default versions of TLS")
            .with_root_certificates(roots)
            .with_no_client_auth()
    };
    CONFIG.get_or_init(make).clone()
}

impl From<Fault> for TryError {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<Broken> for TryError {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::Fault(fault) => Self::Fault(fault),
            Broken::Status(status) => Self::Status { status, retry_after: None, refusal: String::new() },
        }
    }
}
