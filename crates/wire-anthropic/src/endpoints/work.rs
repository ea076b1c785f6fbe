//! The endpoints of agents, environments, sessions and their work. spec/anthropic.md 7 to 12 and 17.

use axum::http::Method;
use serde_json::{Value, json};
use stele_core::work::Fields;
use stele_http::openapi::{Endpoint, Family, Param, time, whole};

use super::{error, id};
use crate::context::{MANAGED_AGENTS, NoFields};
use crate::view::{DeletedView, PageView};
use crate::work::INGEST;
use crate::{agents, environments, events, resources, sessions, stream, threads, work_queue};

/// What a write may answer beside the statuses of all.
const WRITES: &[u16] = &[408, 413];
/// What a write that can meet another may answer.
const MEETS: &[u16] = &[408, 409, 413];

fn headers() -> Vec<Param> {
    let about = "This value; a list separated by commas may hold others too.";
    vec![Param::header("anthropic-beta", about, json!({"const": MANAGED_AGENTS}))]
}

fn recording_headers() -> Vec<Param> {
    let about = "With the second value who runs the agent may report its events.";
    let values = json!({"enum": [MANAGED_AGENTS, format!("{MANAGED_AGENTS},{INGEST}")]});
    vec![Param::header("anthropic-beta", about, values)]
}

macro_rules! family {
    ($name:ident $tag:literal $about:literal $headers:ident) => {
        static $name: Family = Family {
            tag: $tag,
            about: $about,
            headers: $headers,
            error: || ("AnthropicError", error()),
            statuses: &[400, 401, 403, 404, 500, 503, 529],
            keyed: true,
        };
    };
}

family!(AGENTS "Agents" "Who runs: definitions with versions." headers);
family!(ENVIRONMENTS "Environments" "Where sessions run, with the keys of their workers." headers);
family!(SESSIONS "Sessions" "One run of an agent, with the stores attached to it." headers);
family!(RECORDING "Sessions" "One run of an agent, with the stores attached to it." recording_headers);
family!(WORK "Work queue" "What workers of self-hosted environments speak." headers);

fn page(most: usize, default: usize) -> [Param; 2] {
    [
        Param::query("limit", "Most items of the page.", whole(1, most, default)),
        Param::query("page", "The `next_page` of the page before.", json!({"type": "string"})),
    ]
}

fn created(bounds: &[&'static str]) -> Vec<Param> {
    bounds.iter().map(|name| Param::query(name, "By time.", time())).collect()
}

const ALL_BOUNDS: &[&str] = &["created_at[gt]", "created_at[gte]", "created_at[lt]", "created_at[lte]"];

fn archived() -> Param {
    Param::query("include_archived", "Archived ones too.", json!({"type": "boolean", "default": false}))
}

fn order(default: &str) -> Param {
    Param::query("order", "By time.", json!({"type": "string", "enum": ["asc", "desc"], "default": default}))
}

fn many(name: &'static str, about: &'static str, words: Value) -> Param {
    Param::query(name, about, json!({"type": "array", "items": words}))
}

fn at(endpoint: Endpoint, name: &'static str, about: &'static str, prefix: &str) -> Endpoint {
    endpoint.params([Param::path(name, about, id(prefix))])
}

fn at_agent(endpoint: Endpoint) -> Endpoint {
    at(endpoint, "agent", "The agent's id.", "agent")
}

fn at_environment(endpoint: Endpoint) -> Endpoint {
    at(endpoint, "environment", "The environment's id.", "env")
}

fn at_session(endpoint: Endpoint) -> Endpoint {
    at(endpoint, "session", "The session's id.", "sesn")
}

fn at_item(endpoint: Endpoint) -> Endpoint {
    at(at_environment(endpoint), "work", "The item's id.", "work")
}

fn at_resource(endpoint: Endpoint) -> Endpoint {
    let about = "The resource's id; of an attached store, the store's.";
    let schema = json!({"type": "string", "pattern": "^(sesrsc|memstore)_01[1-9A-HJ-NP-Za-km-z]{22}$"});
    at_session(endpoint).params([Param::path("resource", about, schema)])
}

fn at_thread(endpoint: Endpoint) -> Endpoint {
    at(at_session(endpoint), "thread", "The thread's id.", "sthr")
}

macro_rules! endpoint {
    ($family:ident $method:ident $path:literal $id:literal $handler:path) => {
        Endpoint::new(Method::$method, concat!("/v1", $path), $id, &$family, $handler)
    };
}

/// All of them.
pub(super) fn endpoints() -> Vec<Endpoint> {
    [of_agents(), of_environments(), of_sessions(), of_resources(), of_events(), of_threads(), of_work()]
        .into_iter()
        .flatten()
        .collect()
}

fn of_agents() -> Vec<Endpoint> {
    let version = Param::query("version", "That version.", json!({"type": "integer", "minimum": 1}));
    vec![
        endpoint!(AGENTS GET "/agents" "list_agents" agents::list)
            .about("List agents, newest first.")
            .params([archived()])
            .params(created(&["created_at[gte]", "created_at[lte]"]))
            .params(page(100, 20))
            .answers::<PageView<agents::AgentView>>(200),
        endpoint!(AGENTS POST "/agents" "create_agent" agents::create)
            .about("Make an agent.")
            .takes::<agents::CreateAgent>()
            .answers::<agents::AgentView>(200)
            .gives(&[("agent", "/id")])
            .or(WRITES),
        at_agent(endpoint!(AGENTS GET "/agents/{agent}" "get_agent" agents::retrieve))
            .about("Get an agent, or one of its versions.")
            .params([version])
            .answers::<agents::AgentView>(200),
        at_agent(endpoint!(AGENTS POST "/agents/{agent}" "update_agent" agents::update))
            .about("Change an agent; a real change is a new version.")
            .takes::<agents::UpdateAgent>()
            .answers::<agents::AgentView>(200)
            .or(MEETS),
        at_agent(endpoint!(AGENTS POST "/agents/{agent}/archive" "archive_agent" agents::archive))
            .about("Archive an agent: it starts no more sessions.")
            .may_take::<NoFields>()
            .answers::<agents::AgentView>(200)
            .or(WRITES),
        at_agent(endpoint!(AGENTS GET "/agents/{agent}/versions" "list_agent_versions" agents::versions))
            .about("List the versions of an agent, newest first.")
            .params(page(100, 20))
            .answers::<PageView<agents::AgentView>>(200),
    ]
}

fn of_environments() -> Vec<Endpoint> {
    let at_key = |endpoint| at(at_environment(endpoint), "key", "The key's id.", "envkey");
    vec![
        endpoint!(ENVIRONMENTS GET "/environments" "list_environments" environments::list)
            .about("List environments, newest first.")
            .params([archived()])
            .params(page(100, 20))
            .answers::<PageView<environments::EnvironmentView>>(200),
        endpoint!(ENVIRONMENTS POST "/environments" "create_environment" environments::create)
            .about("Make an environment.")
            .takes::<environments::CreateEnvironment>()
            .answers::<environments::EnvironmentView>(200)
            .gives(&[("environment", "/id")])
            .or(WRITES),
        at_environment(endpoint!(ENVIRONMENTS GET "/environments/{environment}" "get_environment" environments::retrieve))
            .about("Get an environment.")
            .answers::<environments::EnvironmentView>(200),
        at_environment(endpoint!(ENVIRONMENTS POST "/environments/{environment}" "update_environment" environments::update))
            .about("Change an environment; its kind stays.")
            .takes::<environments::UpdateEnvironment>()
            .answers::<environments::EnvironmentView>(200)
            .or(WRITES),
        at_environment(endpoint!(ENVIRONMENTS DELETE "/environments/{environment}" "delete_environment" environments::delete))
            .about("Delete an environment with its keys and its queue.")
            .answers::<DeletedView>(200)
            .or(WRITES),
        at_environment(endpoint!(ENVIRONMENTS POST "/environments/{environment}/archive" "archive_environment" environments::archive))
            .about("Archive an environment: it takes no more sessions.")
            .may_take::<NoFields>()
            .answers::<environments::EnvironmentView>(200)
            .or(WRITES),
        at_environment(endpoint!(ENVIRONMENTS GET "/environments/{environment}/keys" "list_environment_keys" environments::list_keys))
            .about("List the keys of an environment, without their secrets; for admins.")
            .params(page(100, 20))
            .answers::<PageView<environments::KeyView>>(200),
        at_environment(endpoint!(ENVIRONMENTS POST "/environments/{environment}/keys" "create_environment_key" environments::create_key))
            .about("Make a key for the workers of an environment; the answer alone shows it. For admins.")
            .takes::<environments::CreateKey>()
            .answers::<environments::KeyView>(200)
            .or(WRITES),
        at_key(endpoint!(ENVIRONMENTS DELETE "/environments/{environment}/keys/{key}" "revoke_environment_key" environments::revoke_key))
            .about("Revoke a key of an environment; for admins.")
            .answers::<DeletedView>(200)
            .or(WRITES),
    ]
}

fn of_sessions() -> Vec<Endpoint> {
    let statuses = json!({"type": "string", "enum": ["idle", "running", "rescheduling", "terminated"]});
    vec![
        endpoint!(SESSIONS GET "/sessions" "list_sessions" sessions::list)
            .about("List sessions.")
            .params([
                Param::query("agent_id", "Only of this agent.", id("agent")),
                Param::query(
                    "agent_version",
                    "Only of this version.",
                    json!({"type": "integer", "minimum": 1}),
                ),
                Param::query("environment_id", "Only in this environment.", id("env")),
                Param::query("memory_store_id", "Only with this store attached.", id("memstore")),
                many("statuses[]", "Only with one of these statuses.", statuses),
                archived(),
                order("desc"),
            ])
            .params(created(ALL_BOUNDS))
            .params(page(1000, 20))
            .answers::<sessions::SessionsView>(200),
        endpoint!(SESSIONS POST "/sessions" "create_session" sessions::create)
            .about("Start a session, with the stores that it carries.")
            .takes::<sessions::CreateSession>()
            .answers::<sessions::SessionView>(200)
            .gives(&[("session", "/id")])
            .or(WRITES),
        at_session(endpoint!(SESSIONS GET "/sessions/{session}" "get_session" sessions::retrieve))
            .about("Get a session.")
            .answers::<sessions::SessionView>(200),
        at_session(endpoint!(SESSIONS POST "/sessions/{session}" "update_session" sessions::update))
            .about("Change title, metadata, budget, or what the agent may use.")
            .takes::<sessions::UpdateSession>()
            .answers::<sessions::SessionView>(200)
            .or(WRITES),
        at_session(endpoint!(SESSIONS DELETE "/sessions/{session}" "delete_session" sessions::delete))
            .about("Delete a session with its events.")
            .answers::<DeletedView>(200)
            .or(WRITES),
        at_session(
            endpoint!(SESSIONS POST "/sessions/{session}/archive" "archive_session" sessions::archive),
        )
        .about("End a session and keep it readable.")
        .may_take::<NoFields>()
        .answers::<sessions::SessionView>(200)
        .or(WRITES),
        at_session(
            endpoint!(SESSIONS GET "/sessions/{session}/memory_note" "get_memory_note" sessions::memory_note),
        )
        .about("Get the note on the session's stores, for the agent's system prompt.")
        .answers::<sessions::NoteView>(200),
    ]
}

fn of_resources() -> Vec<Endpoint> {
    vec![
        at_session(endpoint!(SESSIONS GET "/sessions/{session}/resources" "list_session_resources" resources::list))
            .about("List what the session carries.")
            .params(page(1000, 1000))
            .answers::<PageView<Fields>>(200),
        at_session(endpoint!(SESSIONS POST "/sessions/{session}/resources" "add_session_resource" resources::add))
            .about("Add a file. Stores are attached when a session is made.")
            .takes::<Fields>()
            .answers::<Fields>(200)
            .or(WRITES),
        at_resource(endpoint!(SESSIONS GET "/sessions/{session}/resources/{resource}" "get_session_resource" resources::retrieve))
            .about("Get one thing that the session carries.")
            .answers::<Fields>(200),
        at_resource(endpoint!(SESSIONS POST "/sessions/{session}/resources/{resource}" "update_session_resource" resources::update))
            .about("Give a repository a new token, which is not kept. Attachments do not change.")
            .takes::<Fields>()
            .answers::<Fields>(200)
            .or(WRITES),
        at_resource(endpoint!(SESSIONS DELETE "/sessions/{session}/resources/{resource}" "delete_session_resource" resources::remove))
            .about("Remove a file or repository. Attachments stay.")
            .answers::<DeletedView>(200)
            .or(WRITES),
    ]
}

fn event_params() -> Vec<Param> {
    let mut params = vec![many("types[]", "Only of these types.", json!({"type": "string"})), order("asc")];
    params.extend(created(ALL_BOUNDS));
    params.extend(page(1000, 100));
    params
}

fn deltas() -> Param {
    let words = json!({"type": "string", "enum": ["agent.message", "agent.thinking"]});
    many("event_deltas[]", "Accepted; no model runs here, so there are none.", words)
}

fn of_events() -> Vec<Endpoint> {
    vec![
        at_session(endpoint!(SESSIONS GET "/sessions/{session}/events" "list_session_events" events::list))
            .about("List the events of a session.")
            .params(event_params())
            .answers::<PageView<Fields>>(200),
        at_session(endpoint!(RECORDING POST "/sessions/{session}/events" "send_session_events" events::send))
            .about("Send events: all are taken, in their order, or none.")
            .takes::<events::SendEvents>()
            .answers::<events::SentView>(200)
            .or(WRITES),
        at_session(endpoint!(SESSIONS GET "/sessions/{session}/events/stream" "stream_session_events" stream::stream))
            .about("Follow the events of a session, from now on.")
            .params([deltas()])
            .answers_plain(200, "text/event-stream"),
    ]
}

fn of_threads() -> Vec<Endpoint> {
    vec![
        at_session(endpoint!(SESSIONS GET "/sessions/{session}/threads" "list_session_threads" threads::list))
            .about("List the threads of a session: its primary one.")
            .params([many("statuses[]", "Only with one of these statuses.", json!({"type": "string"}))])
            .params(page(1000, 100))
            .answers::<PageView<threads::ThreadView>>(200),
        at_thread(endpoint!(SESSIONS GET "/sessions/{session}/threads/{thread}" "get_session_thread" threads::retrieve))
            .about("Get a thread.")
            .answers::<threads::ThreadView>(200),
        at_thread(endpoint!(SESSIONS POST "/sessions/{session}/threads/{thread}/archive" "archive_session_thread" threads::archive))
            .about("Refused: the primary thread ends with its session.")
            .may_take::<NoFields>()
            .answers::<threads::ThreadView>(200)
            .or(WRITES),
        at_thread(endpoint!(SESSIONS GET "/sessions/{session}/threads/{thread}/events" "list_thread_events" threads::events))
            .about("List the events of a thread.")
            .params(event_params())
            .answers::<PageView<Fields>>(200),
        at_thread(endpoint!(SESSIONS GET "/sessions/{session}/threads/{thread}/stream" "stream_thread_events" threads::stream))
            .about("Follow the events of a thread, from now on.")
            .params([deltas()])
            .answers_plain(200, "text/event-stream"),
    ]
}

fn of_work() -> Vec<Endpoint> {
    let poll = [
        Param::query(
            "block_ms",
            "How long to wait for an item.",
            json!({"type": "integer", "minimum": 1, "maximum": 999}),
        ),
        Param::query(
            "reclaim_older_than_ms",
            "When an item that was offered and not acknowledged is offered again.",
            whole(0, 86_400_000, 5_000),
        ),
    ];
    let beat = [
        Param::query(
            "expected_last_heartbeat",
            "`NO_HEARTBEAT`, or what the last one answered. Required.",
            json!({"type": "string"}),
        ),
        Param::query(
            "desired_ttl_seconds",
            "How long the lease is to be; at most 300 is given.",
            json!({"type": "integer", "minimum": 1}),
        ),
    ];
    vec![
        at_environment(endpoint!(WORK GET "/environments/{environment}/work" "list_work" work_queue::list))
            .about("List the items of an environment; for its workers.")
            .params(page(1000, 100))
            .answers::<PageView<work_queue::WorkView>>(200),
        at_environment(endpoint!(WORK GET "/environments/{environment}/work/poll" "poll_work" work_queue::poll))
            .about("Ask for the oldest item that waits, or null; for workers.")
            .params(poll)
            .answers::<Option<work_queue::WorkView>>(200),
        at_environment(endpoint!(WORK GET "/environments/{environment}/work/stats" "get_work_stats" work_queue::stats))
            .about("Get what there is in a queue.")
            .answers::<work_queue::StatsView>(200),
        at_item(endpoint!(WORK GET "/environments/{environment}/work/{work}" "get_work" work_queue::retrieve))
            .about("Get an item.")
            .answers::<work_queue::WorkView>(200),
        at_item(endpoint!(WORK POST "/environments/{environment}/work/{work}" "update_work" work_queue::update))
            .about("Change the metadata of an item.")
            .takes::<work_queue::UpdateWork>()
            .answers::<work_queue::WorkView>(200)
            .or(WRITES),
        at_item(endpoint!(WORK POST "/environments/{environment}/work/{work}/ack" "acknowledge_work" work_queue::acknowledge))
            .about("Take an item out of the queue; for workers.")
            .may_take::<NoFields>()
            .answers::<work_queue::WorkView>(200)
            .or(MEETS),
        at_item(endpoint!(WORK POST "/environments/{environment}/work/{work}/heartbeat" "heartbeat_work" work_queue::heartbeat))
            .about("Claim an item, or extend its lease; for its worker.")
            .params(beat)
            .may_take::<NoFields>()
            .answers::<work_queue::BeatView>(200)
            .or(&[408, 412, 413]),
        at_item(endpoint!(WORK POST "/environments/{environment}/work/{work}/stop" "stop_work" work_queue::stop))
            .about("Stop an item, or ask its worker to end.")
            .may_take::<work_queue::StopWork>()
            .answers::<work_queue::WorkView>(200)
            .or(WRITES),
    ]
}
