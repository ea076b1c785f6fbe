//! `stele mcp`: the memory tools for one client on standard input and output. DESIGN 10.

use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};
use stele_client::Client;
use stele_mcp::{ClientDoor, ScopeError, Tools, Words, serve_stdio, session_uuid};

use crate::cli::{Mcp, With};
use crate::config::{client_log, process_env};
use crate::connect::client;
use crate::failure::{Class, fail};
use crate::output::complain;

/// Serves until standard input ends. Nothing but messages of the protocol goes to standard output.
pub(crate) fn run(given: With<Mcp>) -> anyhow::Result<()> {
    let _log = crate::log::start(client_log(&process_env)?);
    let Mcp { session, agent, store } = given.args;
    let client = client(&given.client)?;
    let client = match &session {
        Some(session) => with_token(client, session)?,
        None => client,
    };
    let words = Words { session, agents: agent, stores: store };
    let tools = Tools::new(ClientDoor::new(client), words.checked().map_err(unscoped)?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let served = runtime.block_on(async {
        match tools.scope_soon().await {
            Some(Ok(_)) => {}
            // It may come back, and then the tools work; until then they say what is the matter.
            None => complain("the server does not answer yet"),
            Some(Err(ScopeError::Server(error))) if error.status().is_none() => complain(&error.to_string()),
            Some(Err(error)) => return Err(unscoped(error)),
        }
        serve_stdio(tools, std::io::stdin(), std::io::stdout()).await;
        Ok(())
    });
    // A call to the server that nobody waits for any more must not hold up the end.
    runtime.shutdown_timeout(Duration::ZERO);
    served
}

/// A client with a token of the session, so that what is written is the session's. Whoever holds a token already
/// goes on with it. DESIGN 6.
fn with_token(client: Client, session: &str) -> anyhow::Result<Client> {
    if client.get("/stele/v1/self")?["type"] != "api_key" {
        return Ok(client);
    }
    let uuid = session_uuid(session).ok_or_else(|| fail(Class::NotFound, "session not found"))?;
    let made = client.post(&format!("/stele/v1/sessions/{uuid}/tokens"), &json!({}));
    let made = made.with_context(|| format!("no token of the session {session} could be made"))?;
    let token = made.get("token").and_then(Value::as_str).context("the server made no token")?;
    Ok(client.with_key(token))
}

fn unscoped(error: ScopeError) -> anyhow::Error {
    match error {
        ScopeError::Words(text) => fail(Class::Usage, text),
        ScopeError::Missing(text) => fail(Class::NotFound, text),
        ScopeError::Server(error) => error.into(),
    }
}
