//! Transcripts of Claude Code: a line is a message in the shape of the Messages API, or something about the program.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::{
    About, Tell, Told, content, event, is_beyond, keep, mcp_tool, renew, result_kind, text, tool_use,
};

/// The newest major version of Claude Code whose transcripts are known.
const KNOWN: u32 = 2;
/// What the program writes into a message when a person stops it.
const INTERRUPTED: &str = "[Request interrupted by user";
/// How texts begin that the program puts into the mouth of a person.
const PUT_IN: &[&str] = &["<task-notification", "<system-reminder>", "<local-command-"];
/// Lines about the program itself.
const HOUSEKEEPING: &[&str] = &[
    "agent-name",
    "agent-setting",
    "file-history-snapshot",
    "last-prompt",
    "mode",
    "permission-mode",
    "pr-link",
    "progress",
    "result",
    "saved_hook_context",
    "tag",
    "worktree-state",
];

#[derive(Default)]
pub(super) struct ClaudeCode {
    /// Uses of MCP tools, whose results are of another kind.
    mcp: HashSet<String>,
    /// The request to the model whose answer is being told: its id, its time, its usage so far.
    request: Option<(String, Option<String>, Value)>,
    /// The requests that were told to their end: a late line of one is no request of its own.
    requests: HashSet<String>,
    /// What a person said last while the agent worked: the program notes it in two kinds of lines.
    steered: Option<String>,
}

impl Tell for ClaudeCode {
    fn tell(
        &mut self,
        number: u64,
        line: &Map<String, Value>,
        about: &mut About,
        events: &mut Vec<Value>,
    ) -> Told {
        let Some(kind) = text(line, "type") else { return Told::LeftOut("without a type") };
        let flag = |name: &str| line.get(name).and_then(Value::as_bool).unwrap_or_default();
        match kind {
            "summary" => renew(&mut about.title, text(line, "summary")),
            "custom-title" => renew(&mut about.title, text(line, "customTitle")),
            "ai-title" => renew(&mut about.title, text(line, "aiTitle")),
            "user" | "assistant" | "system" if flag("isSidechain") => return Told::LeftOut("of subagents"),
            "user" | "assistant" | "system" => {
                note(line, about);
                let place = Place {
                    id: text(line, "uuid")
                        .filter(|id| !id.is_empty())
                        .map_or_else(|| format!("line-{number}"), str::to_owned),
                    at: text(line, "timestamp"),
                };
                return match kind {
                    "user" if flag("isMeta") => Told::LeftOut("of the program's own"),
                    "user" if flag("isCompactSummary") => Told::LeftOut("that sum up what came before"),
                    "user" => self.user(&place, line, about, events),
                    "assistant" => self.assistant(&place, line, about, events),
                    _ => self.system(&place, line, events),
                };
            }
            "attachment" | "queue-operation" => return self.steering(number, line, events),
            kind if HOUSEKEEPING.contains(&kind) => return Told::LeftOut("of the program's own"),
            other => return Told::Unknown(other.to_owned()),
        }
        Told::Yes
    }

    fn end(&mut self, events: &mut Vec<Value>) {
        if let Some((id, at, usage)) = self.request.take() {
            let count = |name: &str| usage.get(name).and_then(Value::as_u64).unwrap_or_default();
            let names =
                ["input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"];
            let usage: Map<String, Value> =
                names.into_iter().map(|name| (name.to_owned(), count(name).into())).collect();
            let fields = json!({"model_request_start_id": id, "model_usage": usage});
            events.push(event(format!("{id}.end"), "span.model_request_end", at.as_deref(), fields));
        }
    }
}

/// Where an event stands.
struct Place<'l> {
    id: String,
    at: Option<&'l str>,
}

impl Place<'_> {
    /// The event for the `n`th block of the line.
    fn event(&self, n: usize, kind: &str, fields: Value) -> Value {
        let id = if n == 0 { self.id.clone() } else { format!("{}.{n}", self.id) };
        event(id, kind, self.at, fields)
    }
}

fn note(line: &Map<String, Value>, about: &mut About) {
    keep(&mut about.id, text(line, "sessionId"));
    keep(&mut about.directory, text(line, "cwd"));
    keep(&mut about.branch, text(line, "gitBranch"));
    keep(&mut about.began_at, text(line, "timestamp"));
    if let Some(version) = text(line, "version") {
        renew(&mut about.version, Some(version));
        if is_beyond(version, KNOWN) {
            renew(&mut about.strange_version, Some(version));
        }
    }
}

/// The blocks of a message: a text alone is one.
fn blocks(line: &Map<String, Value>) -> Vec<Value> {
    match line.get("message").and_then(|message| message.get("content")) {
        Some(Value::Array(blocks)) => blocks.clone(),
        Some(Value::String(text)) => vec![json!({"type": "text", "text": text})],
        _ => Vec::new(),
    }
}

impl ClaudeCode {
    fn user(
        &mut self,
        place: &Place<'_>,
        line: &Map<String, Value>,
        about: &mut About,
        events: &mut Vec<Value>,
    ) -> Told {
        let blocks = blocks(line);
        // Tools are used, and answer, while the rest of an answer is still to come.
        if !blocks.iter().any(|block| block.get("type").is_some_and(|kind| kind == "tool_result")) {
            self.end(events);
        }
        let before = events.len();
        let mut said = Vec::new();
        for (n, block) in blocks.iter().enumerate() {
            let kind = block.get("type").and_then(Value::as_str).unwrap_or_default();
            if kind == "tool_result" {
                events.extend(self.result(place, n, block));
                continue;
            }
            match block.get("text").and_then(Value::as_str) {
                Some(text) if text.starts_with(INTERRUPTED) => {
                    events.push(place.event(n, "user.interrupt", json!({})));
                }
                Some(text) if PUT_IN.iter().any(|start| text.trim_start().starts_with(start)) => {}
                text => {
                    keep(&mut about.opening, text.filter(|text| !text.trim_start().starts_with('<')));
                    if let Some(Value::Array(blocks)) = content::blocks(block) {
                        said.extend(blocks);
                    }
                }
            }
        }
        if !said.is_empty() {
            events.push(event(
                format!("{}.said", place.id),
                "user.message",
                place.at,
                json!({"content": said}),
            ));
        }
        if events.len() == before { Told::LeftOut("without content") } else { Told::Yes }
    }

    fn result(&self, place: &Place<'_>, n: usize, block: &Value) -> Option<Value> {
        let of = block.get("tool_use_id").and_then(Value::as_str)?;
        let (kind, name) = result_kind(self.mcp.contains(of));
        let mut fields = json!({name: of});
        if let Some(content) = block.get("content").and_then(content::blocks) {
            fields["content"] = content;
        }
        if let Some(failed) = block.get("is_error").and_then(Value::as_bool) {
            fields["is_error"] = failed.into();
        }
        Some(place.event(n, kind, fields))
    }

    fn assistant(
        &mut self,
        place: &Place<'_>,
        line: &Map<String, Value>,
        about: &mut About,
        events: &mut Vec<Value>,
    ) -> Told {
        let before = events.len();
        if line.get("isApiErrorMessage").and_then(Value::as_bool) == Some(true) {
            self.end(events);
            let message: Vec<String> = blocks(line)
                .iter()
                .filter_map(|block| Some(block.get("text")?.as_str()?.to_owned()))
                .collect();
            let retry = json!({"type": "exhausted"});
            let error = json!({"type": "model_request_failed_error", "message": message.join("\n"), "retry_status": retry});
            events.push(place.event(0, "session.error", json!({"error": error})));
            return Told::Yes;
        }
        self.request(place, line, about, events);
        for (n, block) in blocks(line).iter().enumerate() {
            events.extend(self.block(place, n, block));
        }
        if events.len() == before { Told::LeftOut("without content") } else { Told::Yes }
    }

    /// Notes whose answer the line is a part of: an answer comes in several lines, each with the usage so far.
    fn request(
        &mut self,
        place: &Place<'_>,
        line: &Map<String, Value>,
        about: &mut About,
        events: &mut Vec<Value>,
    ) {
        let Some(message) = line.get("message").and_then(Value::as_object) else { return };
        let model = text(message, "model").filter(|model| *model != "<synthetic>");
        renew(&mut about.model, model);
        let (Some(id), Some(usage), Some(_)) =
            (text(message, "id").filter(|id| !id.is_empty()), message.get("usage"), model)
        else {
            return;
        };
        if self.request.as_ref().is_some_and(|(last, ..)| last != id) {
            self.end(events);
        }
        if self.request.is_none() {
            if !self.requests.insert(id.to_owned()) {
                return;
            }
            events.push(event(id, "span.model_request_start", place.at, json!({})));
        }
        self.request = Some((id.to_owned(), place.at.map(str::to_owned), usage.clone()));
    }

    fn block(&mut self, place: &Place<'_>, n: usize, block: &Value) -> Option<Value> {
        let field = |name: &str| block.get(name).and_then(Value::as_str);
        match field("type").unwrap_or_default() {
            "thinking" | "redacted_thinking" => Some(place.event(n, "agent.thinking", json!({}))),
            "tool_use" | "server_tool_use" => {
                let (id, name) = (field("id").filter(|id| !id.is_empty())?, field("name")?);
                if mcp_tool(name).is_some() {
                    self.mcp.insert(id.to_owned());
                }
                Some(tool_use(id.to_owned(), place.at, name, content::input(block.get("input"))))
            }
            kind if kind.ends_with("tool_result") => self.result(place, n, block),
            _ => {
                let content = content::blocks(block)?;
                Some(place.event(n, "agent.message", json!({"content": content})))
            }
        }
    }

    /// What a person says while the agent works: it is put into the conversation without a line of its own.
    fn steering(&mut self, number: u64, line: &Map<String, Value>, events: &mut Vec<Value>) -> Told {
        let own = Told::LeftOut("of the program's own");
        let said = match line.get("attachment").and_then(Value::as_object) {
            Some(attachment) if text(attachment, "type") == Some("queued_command") => {
                if text(attachment, "commandMode").is_some_and(|mode| mode != "prompt") {
                    return own;
                }
                attachment.get("prompt")
            }
            None if text(line, "operation") == Some("remove") => line.get("content"),
            _ => return own,
        };
        let Some(content) = said.and_then(content::blocks) else { return own };
        let said = content[0]["text"].as_str().unwrap_or_default().to_owned();
        if PUT_IN.iter().any(|start| said.starts_with(start)) {
            return own;
        }
        if self.steered.take_if(|last| *last == said).is_some() {
            return Told::Yes;
        }
        self.steered = Some(said);
        let id = text(line, "uuid").filter(|id| !id.is_empty());
        let id = id.map_or_else(|| format!("line-{number}"), str::to_owned);
        let at = text(line, "timestamp");
        events.push(event(id, "user.message", at, json!({"content": content})));
        Told::Yes
    }

    fn system(&mut self, place: &Place<'_>, line: &Map<String, Value>, events: &mut Vec<Value>) -> Told {
        match text(line, "subtype") {
            Some("compact_boundary" | "microcompact_boundary") => {
                self.end(events);
                events.push(place.event(0, "agent.thread_context_compacted", json!({})));
                Told::Yes
            }
            _ => Told::LeftOut("of the program's own"),
        }
    }
}
