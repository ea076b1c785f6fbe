//! The one table of the dialect's endpoints: the router and `/openapi.json` are made from it.

mod work;

use axum::http::Method;
use serde_json::{Value, json};
use stele_http::openapi::{Endpoint, Family, Param, one_of, time, whole};

use crate::changes::{self, ChangesView};
use crate::context::{AGENT_MEMORY, MANAGED_AGENTS, NoFields};
use crate::view::{DeletedView, EntryView, MemoryView, PageView, StoreView, VersionView};
use crate::{archives, changesets, memories, memory_tool, search, stores, versions};

/// What a write may answer beside the statuses of all.
const WRITES: &[u16] = &[408, 409, 413];
/// What an action without fields may answer.
const ACTS: &[u16] = &[408, 413];

static MEMORY: Family = Family {
    tag: "Memory stores",
    about: "The Anthropic dialect: stores, memories and their versions, as the official SDKs speak it.",
    headers: || {
        let about = "Exactly one of the two; a list separated by commas may hold others too.";
        let values = json!({"type": "string", "enum": [AGENT_MEMORY, MANAGED_AGENTS]});
        vec![Param::header("anthropic-beta", about, values)]
    },
    error: || ("AnthropicError", error()),
    statuses: &[400, 401, 403, 404, 500, 503, 529],
    keyed: true,
};

fn error() -> Value {
    json!({
        "type": "object",
        "required": ["type", "error", "request_id"],
        "properties": {
            "type": {"const": "error"},
            "error": {
                "type": "object",
                "required": ["type", "message"],
                "properties": {
                    "type": {"type": "string"},
                    "message": {"type": "string"},
                    "details": {"type": "object", "properties": {"error_code": {"type": "string"}}},
                    "conflicting_memory_id": {"type": "string"},
                    "conflicting_path": {"type": "string"},
                },
            },
            "request_id": {"type": ["string", "null"]},
        },
    })
}

fn id(prefix: &str) -> Value {
    json!({"type": "string", "pattern": format!("^{prefix}_01[1-9A-HJ-NP-Za-km-z]{{22}}$")})
}

fn hash() -> Value {
    json!({"type": "string", "pattern": "^[0-9a-f]{64}$"})
}

fn view(default: &'static str) -> Param {
    let other = if default == "full" { "basic" } else { "full" };
    Param::query(
        "view",
        "Whether contents are shown; lists with them hold at most 20 items.",
        one_of(&[default, other]),
    )
}

fn page() -> [Param; 2] {
    [
        Param::query("limit", "Most items of the page.", whole(1, 100, 20)),
        Param::query("page", "The `next_page` of the page before.", json!({"type": "string"})),
    ]
}

fn created() -> [Param; 2] {
    [
        Param::query("created_at[gte]", "Made then or later.", time()),
        Param::query("created_at[lte]", "Made then or earlier.", time()),
    ]
}

fn at(endpoint: Endpoint) -> Endpoint {
    endpoint.params([Param::path("store", "The store's id.", id("memstore"))])
}

fn at_memory(endpoint: Endpoint) -> Endpoint {
    at(endpoint).params([Param::path("memory", "The memory's id.", id("mem"))])
}

fn at_version(endpoint: Endpoint) -> Endpoint {
    at(endpoint).params([Param::path("version", "The version's id.", id("memver"))])
}

/// All of them. spec/anthropic.md 2.2, 3.2, 4.3, and what `work` names.
pub(crate) fn endpoints() -> Vec<Endpoint> {
    let memory = [of_stores(), of_feed(), of_memories(), of_versions(), of_changesets(), of_archives()];
    memory.into_iter().flatten().chain(work::endpoints()).collect()
}

macro_rules! endpoint {
    ($method:ident $path:literal $id:literal $handler:path) => {
        Endpoint::new(Method::$method, concat!("/v1/memory_stores", $path), $id, &MEMORY, $handler)
    };
}

fn of_stores() -> Vec<Endpoint> {
    let archived =
        Param::query("include_archived", "Archived ones too.", json!({"type": "boolean", "default": false}));
    vec![
        endpoint!(GET "" "list_memory_stores" stores::list)
            .about("List stores, newest first.")
            .params([archived])
            .params(created())
            .params(page())
            .answers::<PageView<StoreView<'_>>>(200),
        endpoint!(POST "" "create_memory_store" stores::create)
            .about("Make a store.")
            .takes::<stores::CreateStore>()
            .answers::<StoreView<'_>>(200)
            .gives(&[("store", "/id")])
            .or(ACTS),
        at(endpoint!(GET "/{store}" "get_memory_store" stores::retrieve))
            .about("Get a store.")
            .answers::<StoreView<'_>>(200),
        at(endpoint!(POST "/{store}" "update_memory_store" stores::update))
            .about("Change name, description or metadata.")
            .takes::<stores::UpdateStore>()
            .answers::<StoreView<'_>>(200)
            .or(ACTS),
        at(endpoint!(DELETE "/{store}" "delete_memory_store" stores::delete))
            .about("Delete a store with all that is in it.")
            .answers::<DeletedView>(200)
            .or(ACTS),
        at(endpoint!(POST "/{store}/archive" "archive_memory_store" stores::archive))
            .about("Make a store read-only for good.")
            .may_take::<NoFields>()
            .answers::<StoreView<'_>>(200)
            .or(ACTS),
    ]
}

fn of_feed() -> Vec<Endpoint> {
    let (most, usual) = changes::PAGE;
    let after = json!({"type": "integer", "minimum": 0, "default": 0});
    let epoch = json!({"type": "string", "format": "uuid"});
    vec![
        at(endpoint!(GET "/{store}/changes" "list_memory_store_changes" changes::changes))
            .about(
                "List what changed behind a sequence, oldest first; with `Accept: text/event-stream` as a stream of \
                 events `change` and `store`, resumed by `Last-Event-ID`.",
            )
            .params([
                Param::query("after", "Go on behind this sequence.", after),
                Param::query("epoch", "The `stele-epoch` that the sequence is of.", epoch),
                Param::query("limit", "Most changes of the page.", whole(1, most, usual)),
                Param::query("wait", "Seconds to wait for the first change.", whole(0, changes::WAIT, 0)),
            ])
            .answers::<ChangesView<'_>>(200)
            .or(&[410]),
    ]
}

fn of_memories() -> Vec<Endpoint> {
    let update = |method: Method, id| {
        at_memory(Endpoint::new(
            method,
            "/v1/memory_stores/{store}/memories/{memory}",
            id,
            &MEMORY,
            memories::update,
        ))
        .about("Change content, path or both.")
        .params([view("basic")])
        .takes::<memories::UpdateMemory>()
        .answers::<MemoryView<'_>>(200)
        .or(WRITES)
    };
    let prefix =
        json!({"type": "string", "pattern": "^/([^/\\u0000-\\u001f\\u007f-\\u009f]+/)*$", "default": "/"});
    let depth = json!({"type": "integer", "enum": [0, 1], "default": 0});
    let expected =
        Param::query("expected_content_sha256", "What the present content must have as its hash.", hash());
    vec![
        at(endpoint!(GET "/{store}/memories" "list_memories" memories::list))
            .about("List memories by path.")
            .params([
                Param::query("path_prefix", "Only below this directory.", prefix.clone()),
                Param::query("depth", "1 for the direct children of the directory only.", depth),
                view("basic"),
            ])
            .params(page())
            .answers::<PageView<EntryView<'_>>>(200),
        at(endpoint!(POST "/{store}/memories" "create_memory" memories::create))
            .about("Make a memory.")
            .params([view("basic")])
            .takes::<memories::CreateMemory>()
            .answers::<MemoryView<'_>>(200)
            .gives(&[("store", "/memory_store_id"), ("memory", "/id"), ("version", "/memory_version_id")])
            .or(WRITES),
        at(endpoint!(GET "/{store}/memories/search" "search_memories" search::by_address))
            .about("Search the memories of a store, best first. An addition of Stele's.")
            .params([
                Param::query(
                    "query",
                    "What to look for: words, a question, \"a phrase\"; never a syntax error.",
                    json!({"type": "string", "minLength": 1}),
                ),
                Param::query("path_prefix", "Only below this directory.", prefix.clone()),
            ])
            .params(page())
            .answers::<search::SearchView>(200),
        at(endpoint!(POST "/{store}/memories/search" "search_memories_by_body" search::by_body))
            .about("The same, for queries that are too long for an address.")
            .takes::<search::SearchBody>()
            .answers::<search::SearchView>(200)
            .or(ACTS),
        at_memory(endpoint!(GET "/{store}/memories/{memory}" "get_memory" memories::retrieve))
            .about("Get a memory.")
            .params([view("full")])
            .answers::<MemoryView<'_>>(200),
        update(Method::POST, "update_memory"),
        update(Method::PATCH, "patch_memory"),
        at_memory(endpoint!(DELETE "/{store}/memories/{memory}" "delete_memory" memories::delete))
            .about("Delete a memory; its history stays.")
            .params([expected])
            .answers::<DeletedView>(200)
            .or(WRITES),
    ]
}

fn of_changesets() -> Vec<Endpoint> {
    vec![
        at(endpoint!(POST "/{store}/changesets" "create_changeset" changesets::create))
            .about(
                "Change several memories, all or nothing. A refusal is that of the single change, with its place in \
                 `error.details.index`. An addition of Stele's.",
            )
            .takes::<changesets::NewChangeset>()
            .answers::<changesets::ChangesetView>(200)
            .or(WRITES),
        at(endpoint!(POST "/{store}/memory_tool" "call_memory_tool" memory_tool::call))
            .about("Carry out a command of the memory tool on the store. An addition of Stele's.")
            .takes::<memory_tool::ToolInput>()
            .answers::<memory_tool::AnswerView>(200)
            .or(ACTS),
    ]
}

fn of_archives() -> Vec<Endpoint> {
    let format = one_of(&["archive", "markdown"]);
    let dry_run = json!({"type": "boolean", "default": false});
    vec![
        at(endpoint!(GET "/{store}/export" "export_memory_store" archives::export))
            .about("Get a store as a file, all of it as of one sequence. An addition of Stele's.")
            .params([Param::query("format", "With history and ids, or the live memories as files.", format)])
            .answers_plain(200, stele_http::archives::MEDIA),
        at(endpoint!(POST "/{store}/import" "import_memories" archives::import))
            .about("Take the files of an archive or of a tree of Markdown files. An addition of Stele's.")
            .params([
                Param::query("dry_run", "Only say what would happen.", dry_run),
                Param::query(
                    "on_conflict",
                    "What happens where a memory with another text is.",
                    one_of(&["refuse", "skip", "overwrite"]),
                ),
            ])
            .takes_plain(stele_http::archives::MEDIA)
            .answers::<archives::ImportView<'_>>(200)
            .or(WRITES),
    ]
}

fn of_versions() -> Vec<Endpoint> {
    let operations = json!({"type": "string", "enum": ["created", "modified", "deleted"]});
    vec![
        at(endpoint!(GET "/{store}/memory_versions" "list_memory_versions" versions::list))
            .about("List versions, newest first.")
            .params([
                Param::query("memory_id", "Only of this memory.", id("mem")),
                Param::query("operation", "Only of this kind.", operations),
                Param::query("session_id", "Only by this session.", id("sesn")),
                Param::query("api_key_id", "Only by this key.", id("apikey")),
                Param::query("service_account_id", "Only by this service account.", id("svac")),
                view("basic"),
            ])
            .params(created())
            .params(page())
            .answers::<PageView<VersionView<'_>>>(200),
        at_version(endpoint!(GET "/{store}/memory_versions/{version}" "get_memory_version" versions::retrieve))
            .about("Get a version.")
            .params([view("full")])
            .answers::<VersionView<'_>>(200),
        at_version(endpoint!(POST "/{store}/memory_versions/{version}/redact" "redact_memory_version" versions::redact))
            .about("Remove the content of a version for good; who wrote it and when stays.")
            .may_take::<NoFields>()
            .answers::<VersionView<'_>>(200)
            .or(ACTS),
    ]
}
