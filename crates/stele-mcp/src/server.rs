//! The server side of the protocol: what the tools are, and calls of them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, DiscoverResult, Implementation, InitializeRequestParams,
    InitializeResult, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio::sync::Mutex;

use crate::answer::failure;
use crate::door::Door;
use crate::instructions::instructions;
use crate::scope::{Rights, Scope, ScopeError, Words};
use crate::tools;

/// How long a scope is believed. Attachments of a session never change, but stores come and go; what is done with
/// one is judged by the server each time whatever the scope says.
const BELIEVED: Duration = Duration::from_secs(5);

/// How long a client that starts waits for the server.
const SOON: Duration = Duration::from_secs(2);

/// The tools on the stores that some words mean, through a door.
#[derive(Clone)]
pub struct Tools<D> {
    door: D,
    words: Arc<Words>,
    known: Arc<Mutex<Option<Known>>>,
}

/// A scope, and when it was asked for.
type Known = (Instant, Arc<Scope>);

impl<D: Door> Tools<D> {
    /// The tools on what `words` mean for whoever is at the door.
    pub fn new(door: D, words: Words) -> Self {
        Self { door, words: Arc::new(words), known: Arc::default() }
    }

    /// The scope, asked for anew where it is not fresh; callers that come at once share one look.
    ///
    /// # Errors
    /// What the words name is not there, or the server cannot be asked.
    pub async fn scope(&self) -> Result<Arc<Scope>, ScopeError> {
        let mut known = self.known.lock().await;
        if let Some((at, scope)) = &*known
            && at.elapsed() < BELIEVED
        {
            return Ok(scope.clone());
        }
        let scope = Arc::new(Scope::resolve(&self.door, &self.words).await?);
        *known = Some((Instant::now(), scope.clone()));
        Ok(scope)
    }

    /// The scope, if it can be told soon: a client that starts must not wait for a server that hangs.
    pub async fn scope_soon(&self) -> Option<Result<Arc<Scope>, ScopeError>> {
        tokio::time::timeout(SOON, self.scope()).await.ok()
    }

    /// What the server says of itself; with the stores in scope, if they can be told.
    async fn about(&self) -> ServerConfig {
        let about = self.get_info();
        match self.scope_soon().await {
            Some(Ok(scope)) => about.with_instructions(instructions(&scope)),
            _ => about,
        }
    }
}

impl<D: Door> ServerHandler for Tools<D> {
    fn get_info(&self) -> ServerConfig {
        let own = Implementation::new("stele", env!("CARGO_PKG_VERSION")).with_title("Stele memory");
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build()).with_server_info(own)
    }

    /// What was agreed on is kept as the peer's version, so that a client that asked for an unknown one is answered
    /// in the one that it was told.
    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let agreed = self.negotiate_initialize(&request)?.protocol_version;
        let peer = InitializeRequestParams::new(request.capabilities, request.client_info);
        context.peer.set_peer_info(peer.with_protocol_version(agreed.clone()));
        Ok(self.about().await.with_protocol_version(agreed))
    }

    async fn discover(&self, _: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let versions = self.supported_protocol_versions().into_owned();
        Ok(DiscoverResult::from_server_info(versions, self.about().await))
    }

    /// Where the scope cannot be told now, all tools are: a call then says what is the matter.
    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let rights = match self.scope_soon().await {
            Some(Ok(scope)) => scope.rights(),
            _ => Rights::ALL,
        };
        Ok(ListToolsResult::with_all_items(tools::list(rights)))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let scope = async { self.scope().await.map_err(|error| unscoped(&error)) };
        Ok(tools::call(&self.door, scope, &request.name, request.arguments).await.into())
    }
}

/// Why no tool can be used.
fn unscoped(error: &ScopeError) -> String {
    match error {
        ScopeError::Words(text) | ScopeError::Missing(text) => format!("The memory cannot be used: {text}."),
        ScopeError::Server(error) => failure(error),
    }
}
