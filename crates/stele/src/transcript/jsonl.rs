//! The format for agents of one's own: a line is an event as spec/anthropic.md 8.1 spells it, or a chat message with a
//! `role`. A line `{"type":"session","id":...,"title":...}` says whose they are.

use serde_json::{Map, Value, json};
use stele_core::work::event::{EventKind, Source, kinds};

use super::{About, Tell, Told, content, event, keep, renew, text};

#[derive(Default)]
pub(super) struct Jsonl;

impl Tell for Jsonl {
    fn tell(
        &mut self,
        number: u64,
        line: &Map<String, Value>,
        about: &mut About,
        events: &mut Vec<Value>,
    ) -> Told {
        let at = ["processed_at", "timestamp", "created_at"].into_iter().find_map(|name| text(line, name));
        keep(&mut about.began_at, at);
        match (text(line, "type"), text(line, "role")) {
            (Some("session"), _) => {
                keep(&mut about.id, text(line, "id"));
                renew(&mut about.title, text(line, "title"));
                renew(&mut about.model, text(line, "model"));
                keep(&mut about.directory, text(line, "cwd"));
                Told::Yes
            }
            (None | Some("message"), Some(role)) => chat(number, at, role, line, about, events),
            (Some(kind), _) => told(number, at, kind, line, about, events),
            (None, None) => Told::LeftOut("with neither type nor role"),
        }
    }
}

/// Tells an event. What the server would refuse is left out here, so that one bad line does not hold up a batch.
fn told(
    number: u64,
    at: Option<&str>,
    kind: &str,
    line: &Map<String, Value>,
    about: &mut About,
    events: &mut Vec<Value>,
) -> Told {
    let Some(known) = EventKind::parse(kind) else { return Told::Unknown(kind.to_owned()) };
    if known.source() == Source::Server || known.status().is_some() {
        return Told::LeftOut("about the state of a session");
    }
    if known.answers_to().is_some() {
        return Told::LeftOut("that answer to a tool in the name of a person: send agent.tool_result");
    }
    let mut fields = line.clone();
    for name in ["id", "type", "processed_at", "timestamp", "created_at"] {
        fields.remove(name);
    }
    if let Some(blocks) = fields.get("content").and_then(content::blocks) {
        fields.insert("content".into(), blocks);
    }
    let Ok(fields) = kinds::parse_fields(known, fields) else {
        return Told::LeftOut("that are no whole events");
    };
    if kind == "user.message" {
        opening(&fields["content"], about);
    }
    let id = text(line, "id").filter(|id| !id.is_empty());
    let id = id.map_or_else(|| format!("line-{number}"), str::to_owned);
    events.push(event(id, kind, at, fields.into()));
    Told::Yes
}

fn opening(content: &Value, about: &mut About) {
    keep(&mut about.opening, content[0]["text"].as_str());
}

/// Tells a chat message, its calls of tools as Chat Completions have them.
fn chat(
    number: u64,
    at: Option<&str>,
    role: &str,
    line: &Map<String, Value>,
    about: &mut About,
    events: &mut Vec<Value>,
) -> Told {
    let before = events.len();
    let content = line.get("content").and_then(content::blocks);
    let id = format!("line-{number}");
    match (role, content) {
        ("user", Some(content)) => {
            opening(&content, about);
            events.push(event(id, "user.message", at, json!({"content": content})));
        }
        ("system" | "developer", Some(content)) => {
            events.push(event(id, "system.message", at, json!({"content": content})));
        }
        ("tool" | "function", content) => {
            let Some(of) = text(line, "tool_call_id").or(text(line, "name")) else {
                return Told::LeftOut("of tools without a tool_call_id");
            };
            let mut fields = json!({"tool_use_id": of});
            if let Some(content) = content {
                fields["content"] = content;
            }
            events.push(event(id, "agent.tool_result", at, fields));
        }
        ("assistant", content) => {
            if let Some(content) = content {
                events.push(event(id, "agent.message", at, json!({"content": content})));
            }
            let calls = line.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
            for (n, call) in calls.enumerate() {
                let Some(function) = call.get("function").and_then(Value::as_object) else { continue };
                let id = call.get("id").and_then(Value::as_str).filter(|id| !id.is_empty());
                let id = id.map_or_else(|| format!("line-{number}.call-{n}"), str::to_owned);
                let name = text(function, "name").unwrap_or("tool");
                let input = content::input(function.get("arguments"));
                events.push(event(id, "agent.tool_use", at, json!({"name": name, "input": input})));
            }
        }
        ("user" | "system" | "developer", None) => {}
        (other, _) => return Told::Unknown(format!("role {other}")),
    }
    if events.len() == before { Told::LeftOut("without content") } else { Told::Yes }
}
