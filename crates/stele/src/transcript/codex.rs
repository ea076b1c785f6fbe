//! Rollouts of Codex: a line is `{timestamp, type, payload}`; in those of 2025's first half the payload alone.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::{
    About, Tell, Told, content, event, is_beyond, keep, mcp_tool, renew, result_kind, text, tool_use,
};

/// The newest major version of Codex whose rollouts are known.
const KNOWN: u32 = 1;
/// How texts begin that Codex puts into the mouth of its user.
const CONTEXT: &[&str] = &[
    "<environment_context>",
    "<user_instructions>",
    "<INSTRUCTIONS>",
    "<permissions",
    "<collaboration_mode>",
    "<turn_aborted>",
    "<skill>",
    "# AGENTS.md instructions",
];

#[derive(Default)]
pub(super) struct Codex {
    /// The tokens of the session when they were last told.
    total: Value,
    /// Uses of MCP tools, whose results are of another kind.
    mcp: HashSet<String>,
    /// Whether there are items of the conversation, which tell all that the program shows.
    items: bool,
    /// What the program showed while there were none.
    shown: Vec<Value>,
}

/// Where an event stands.
struct Place<'l> {
    number: u64,
    at: Option<&'l str>,
}

impl Place<'_> {
    fn event(&self, kind: &str, fields: Value) -> Value {
        event(format!("line-{}", self.number), kind, self.at, fields)
    }
}

impl Tell for Codex {
    fn tell(
        &mut self,
        number: u64,
        line: &Map<String, Value>,
        about: &mut About,
        events: &mut Vec<Value>,
    ) -> Told {
        let place = Place { number, at: text(line, "timestamp") };
        keep(&mut about.began_at, place.at);
        let payload = line.get("payload").and_then(Value::as_object);
        match (text(line, "type"), payload) {
            (Some("session_meta"), Some(meta)) => {
                session(meta, about);
                Told::Yes
            }
            (Some("turn_context"), Some(context)) => {
                renew(&mut about.model, text(context, "model"));
                keep(&mut about.directory, text(context, "cwd"));
                Told::Yes
            }
            (Some("response_item"), Some(item)) => self.item(&place, item, about, events),
            (Some("event_msg"), Some(message)) => self.message(&place, message, events),
            (Some("compacted"), _) => {
                events.push(place.event("agent.thread_context_compacted", json!({})));
                Told::Yes
            }
            (Some("inter_agent_communication"), _) => Told::LeftOut("of subagents"),
            (Some(kind), Some(_)) => Told::Unknown(kind.to_owned()),
            (Some(_), None) => self.item(&place, line, about, events),
            (None, _) if line.contains_key("record_type") => Told::LeftOut("of the program's own"),
            (None, _) if text(line, "id").is_some() => {
                session(line, about);
                Told::Yes
            }
            (None, _) => Told::LeftOut("without a type"),
        }
    }

    fn end(&mut self, events: &mut Vec<Value>) {
        // One message alone may be followed by its item in what is not written yet.
        let whole = self.shown.iter().any(|event| event["type"] == "agent.message");
        if whole && !self.items {
            events.append(&mut self.shown);
        }
    }
}

fn session(meta: &Map<String, Value>, about: &mut About) {
    keep(&mut about.id, text(meta, "id"));
    keep(&mut about.directory, text(meta, "cwd"));
    keep(&mut about.began_at, text(meta, "timestamp"));
    let branch = meta.get("git").and_then(|git| git.get("branch")).and_then(Value::as_str);
    keep(&mut about.branch, branch);
    if let Some(version) = text(meta, "cli_version") {
        renew(&mut about.version, Some(version));
        if is_beyond(version, KNOWN) {
            renew(&mut about.strange_version, Some(version));
        }
    }
}

fn message_told(
    place: &Place<'_>,
    item: &Map<String, Value>,
    about: &mut About,
    events: &mut Vec<Value>,
) -> Told {
    let Some(content) = item.get("content").and_then(content::blocks) else {
        return Told::LeftOut("without content");
    };
    let opening = content[0]["text"].as_str().unwrap_or_default().trim_start().to_owned();
    let kind = match text(item, "role") {
        Some("assistant") => "agent.message",
        Some("user") if CONTEXT.iter().any(|start| opening.starts_with(start)) => {
            return Told::LeftOut("of the program's own");
        }
        Some("user") => {
            keep(&mut about.opening, Some(&opening));
            "user.message"
        }
        _ => return Told::LeftOut("of the program's own"),
    };
    events.push(place.event(kind, json!({"content": content})));
    Told::Yes
}

/// The name and the input of a tool that is used.
fn used<'i>(kind: &str, item: &'i Map<String, Value>) -> (&'i str, Value) {
    let name = text(item, "name").unwrap_or("tool");
    match kind {
        "local_shell_call" => ("local_shell", content::input(item.get("action"))),
        "web_search_call" => ("web_search", content::input(item.get("action"))),
        "image_generation_call" => ("image_generation", json!({"prompt": text(item, "revised_prompt")})),
        "custom_tool_call" => (name, content::input(item.get("input"))),
        _ => (name, content::input(item.get("arguments"))),
    }
}

/// The output of a tool: a text, perhaps itself JSON that tells the exit code, or blocks, or an object with them.
fn tool_result(place: &Place<'_>, of: &str, of_mcp: bool, output: Option<&Value>) -> Value {
    let (kind, name) = result_kind(of_mcp);
    let mut fields = json!({name: of});
    let parsed = match output {
        Some(Value::String(text)) => serde_json::from_str::<Map<String, Value>>(text).ok().map(Value::Object),
        other => other.cloned(),
    };
    let (mut content, mut failed) = (output.cloned(), None);
    if let Some(Value::Object(object)) = &parsed {
        if let Some(inner) = object.get("output").or_else(|| object.get("content")) {
            content = Some(inner.clone());
        }
        let code =
            object.get("metadata").and_then(|metadata| metadata.get("exit_code")).and_then(Value::as_i64);
        let success = object.get("success").and_then(Value::as_bool);
        failed = code.map(|code| code != 0).or(success.map(|success| !success));
    }
    if let Some(content) = content.as_ref().and_then(content::blocks) {
        fields["content"] = content;
    }
    if let Some(failed) = failed {
        fields["is_error"] = failed.into();
    }
    place.event(kind, fields)
}

impl Codex {
    /// Tells an item of the conversation with the model.
    fn item(
        &mut self,
        place: &Place<'_>,
        item: &Map<String, Value>,
        about: &mut About,
        events: &mut Vec<Value>,
    ) -> Told {
        let kind = text(item, "type").unwrap_or_default();
        self.items = true;
        match kind {
            "message" => return message_told(place, item, about, events),
            "reasoning" => events.push(place.event("agent.thinking", json!({}))),
            "function_call"
            | "custom_tool_call"
            | "local_shell_call"
            | "web_search_call"
            | "tool_search_call"
            | "image_generation_call" => {
                let (name, input) = used(kind, item);
                let id = text(item, "call_id").filter(|id| !id.is_empty());
                let id = id.map_or_else(|| format!("line-{}", place.number), str::to_owned);
                // Newer ones name the server beside the tool.
                let name = match text(item, "namespace").filter(|space| space.starts_with("mcp__")) {
                    Some(space) => format!("{}__{name}", space.trim_end_matches('_')),
                    None => name.to_owned(),
                };
                if mcp_tool(&name).is_some() {
                    self.mcp.insert(id.clone());
                }
                events.push(tool_use(id, place.at, &name, input));
            }
            "function_call_output" | "custom_tool_call_output" | "tool_search_output" => {
                let Some(of) = text(item, "call_id") else { return Told::LeftOut("without content") };
                events.push(tool_result(place, of, self.mcp.contains(of), item.get("output")));
            }
            "compaction" | "context_compaction" | "compaction_summary" => {
                return Told::LeftOut("that only repeat or show");
            }
            "agent_message" => return Told::LeftOut("of subagents"),
            "ghost_snapshot" | "additional_tools" | "compaction_trigger" | "other" => {
                return Told::LeftOut("of the program's own");
            }
            other => return Told::Unknown(other.to_owned()),
        }
        Told::Yes
    }

    /// Tells what the program shows. Most of it is told already as an item of the conversation.
    fn message(&mut self, place: &Place<'_>, message: &Map<String, Value>, events: &mut Vec<Value>) -> Told {
        match text(message, "type").unwrap_or_default() {
            "token_count" => self.tokens(place, message, events),
            "turn_aborted" if matches!(text(message, "reason"), None | Some("interrupted")) => {
                events.push(place.event("user.interrupt", json!({})));
                Told::Yes
            }
            "error" | "stream_error" => {
                let why = text(message, "message").unwrap_or_default();
                let retry = if text(message, "type") == Some("error") { "exhausted" } else { "retrying" };
                let error = json!({"type": "unknown_error", "message": why, "retry_status": {"type": retry}});
                events.push(place.event("session.error", json!({"error": error})));
                Told::Yes
            }
            kind @ ("user_message" | "agent_message") if !self.items => {
                let kind = if kind == "user_message" { "user.message" } else { "agent.message" };
                if let Some(content) = message.get("message").and_then(content::blocks) {
                    self.shown.push(place.event(kind, json!({"content": content})));
                }
                Told::Yes
            }
            _ => Told::LeftOut("that only repeat or show"),
        }
    }

    /// Tells the tokens of a request. The same ones are often said several times.
    fn tokens(&mut self, place: &Place<'_>, message: &Map<String, Value>, events: &mut Vec<Value>) -> Told {
        let Some(info) = message.get("info").and_then(Value::as_object) else {
            return Told::LeftOut("that only repeat or show");
        };
        let total = info.get("total_token_usage").cloned().unwrap_or_default();
        let Some(last) = info.get("last_token_usage").filter(|_| total != self.total) else {
            return Told::LeftOut("that only repeat or show");
        };
        self.total = total;
        let count = |name: &str| last.get(name).and_then(Value::as_u64).unwrap_or_default();
        let cached = count("cached_input_tokens");
        let usage = json!({
            // Here those that were cached count as input too.
            "input_tokens": count("input_tokens").saturating_sub(cached),
            "output_tokens": count("output_tokens"),
            "cache_read_input_tokens": cached,
            "cache_creation_input_tokens": 0,
        });
        let start = format!("line-{}.start", place.number);
        events.push(event(start.clone(), "span.model_request_start", place.at, json!({})));
        let fields = json!({"model_request_start_id": start, "model_usage": usage});
        events.push(place.event("span.model_request_end", fields));
        Told::Yes
    }
}
