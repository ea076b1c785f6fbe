//! Chat completions: `POST {base}/chat/completions`, as OpenAI made them and many others serve them.

use serde_json::{Map, Value, json};
use stele_core::models::{Arguments, Block, Conversation, Fault, Message, Role, Stop, ToolChoice, Usage};

use crate::catalogue::Listed;
use crate::draft::Draft;
use crate::settings::{Key, Structured};
use crate::think::{Cutter, after_lone_end};
use crate::ways::{Cap, Ways};
use crate::wire::{Broken, Reading, Wire, count};

/// The wire.
pub(crate) struct OpenAi;

impl Wire for OpenAi {
    fn path(&self) -> &'static str {
        "/chat/completions"
    }

    fn models_path(&self) -> &'static str {
        "/models"
    }

    fn headers(&self, key: Option<&Key>) -> Vec<(&'static str, String)> {
        key.map(|key| ("authorization", format!("Bearer {}", key.reveal()))).into_iter().collect()
    }

    fn body(&self, model: &str, conversation: &Conversation, ways: &Ways) -> Value {
        let mut body = Map::new();
        body.insert("model".into(), model.into());
        let cap = match ways.cap {
            Cap::MaxTokens => "max_tokens",
            Cap::MaxCompletionTokens => "max_completion_tokens",
        };
        body.insert(cap.into(), conversation.max_tokens.into());
        let mut messages = Vec::new();
        if !conversation.system.is_empty() {
            messages.push(json!({"role": "system", "content": conversation.system}));
        }
        for message in &conversation.messages {
            put(message, &mut messages);
        }
        body.insert("messages".into(), messages.into());
        if ways.stream {
            body.insert("stream".into(), true.into());
            if ways.stream_usage {
                body.insert("stream_options".into(), json!({"include_usage": true}));
            }
        }
        if ways.tools && !conversation.tools.is_empty() {
            let tools = conversation.tools.iter().map(|tool| {
                let function = json!({
                    "name": tool.name, "description": tool.description, "parameters": tool.schema
                });
                json!({"type": "function", "function": function})
            });
            body.insert("tools".into(), tools.collect());
            if let Some(choice) = tool_choice(conversation, ways) {
                body.insert("tool_choice".into(), choice);
            }
        }
        if let Some(schema) = &conversation.schema {
            let format = match ways.structured {
                Structured::JsonSchema => {
                    let schema = json!({"name": schema.name, "schema": schema.schema});
                    Some(json!({"type": "json_schema", "json_schema": schema}))
                }
                Structured::JsonObject => Some(json!({"type": "json_object"})),
                Structured::None => None,
            };
            if let Some(format) = format {
                body.insert("response_format".into(), format);
            }
        }
        ways.put_sampling(conversation, &mut body);
        body.into()
    }

    fn events(&self) -> Box<dyn Reading> {
        Box::<Stream>::default()
    }

    fn whole(&self, answer: &Value, draft: &mut Draft<'_>) -> Result<(), Broken> {
        let mut stream = Stream::default();
        let choice = answer.get("choices").and_then(|choices| choices.get(0)).ok_or(Fault::Unreadable)?;
        let message = choice.get("message").filter(|message| message.is_object());
        stream.message(message.ok_or(Fault::Unreadable)?, draft)?;
        stream.reason = Some(choice.get("finish_reason").and_then(Value::as_str).map_or(Stop::EndTurn, stop));
        draft.usage = usage(&answer["usage"]);
        stream.end(draft)
    }

    fn listed(&self, page: &Value) -> Option<(Vec<Listed>, Option<String>)> {
        const CONTEXT: [&str; 4] =
            ["context_length", "context_window", "max_model_len", "max_context_length"];
        const OUTPUT: [&str; 2] = ["max_completion_tokens", "max_output_tokens"];
        let models = page.get("data")?.as_array()?.iter().filter_map(|model| {
            let id = model.get("id")?.as_str()?.to_owned();
            let display_name = model.get("name").and_then(Value::as_str).map(str::to_owned);
            let first = |names: &[&str]| names.iter().find_map(|name| count(model, name));
            Some(Listed { id, display_name, context_tokens: first(&CONTEXT), output_tokens: first(&OUTPUT) })
        });
        Some((models.collect(), None))
    }
}

fn tool_choice(conversation: &Conversation, ways: &Ways) -> Option<Value> {
    match &conversation.tool_choice {
        ToolChoice::Never => Some("none".into()),
        ToolChoice::Any if ways.forced_tool => Some("required".into()),
        ToolChoice::Tool(name) if ways.forced_tool => {
            Some(json!({"type": "function", "function": {"name": name}}))
        }
        ToolChoice::Auto | ToolChoice::Any | ToolChoice::Tool(_) => None,
    }
}

/// A turn: results of tools are messages of their own and come first, right after the uses that they answer.
fn put(message: &Message, messages: &mut Vec<Value>) {
    let (mut text, mut calls) = (String::new(), Vec::new());
    for block in &message.blocks {
        match block {
            Block::Text(part) => {
                if !text.is_empty() {
                    text.push_str("\n\n");
                }
                text.push_str(part);
            }
            Block::ToolUse(used) => {
                let arguments = match &used.arguments {
                    Arguments::Object(object) => Value::Object(object.clone()).to_string(),
                    Arguments::Malformed(_) => "{}".to_owned(),
                };
                let function = json!({"name": used.name, "arguments": arguments});
                calls.push(json!({"id": used.id, "type": "function", "function": function}));
            }
            Block::ToolResult(result) => {
                let content = match result.is_error {
                    true => format!("Error: {}", result.text),
                    false => result.text.clone(),
                };
                messages.push(json!({"role": "tool", "tool_call_id": result.tool_use, "content": content}));
            }
            Block::Reasoning(_) => {}
        }
    }
    match message.role {
        Role::User if text.is_empty() => {}
        Role::User => messages.push(json!({"role": "user", "content": text})),
        Role::Assistant if calls.is_empty() => messages.push(json!({"role": "assistant", "content": text})),
        Role::Assistant => {
            let content = if text.is_empty() { Value::Null } else { text.into() };
            messages.push(json!({"role": "assistant", "content": content, "tool_calls": calls}));
        }
    }
}

fn stop(reason: &str) -> Stop {
    match reason {
        "tool_calls" | "function_call" => Stop::ToolUse,
        "length" => Stop::MaxTokens,
        "content_filter" => Stop::Refusal,
        _ => Stop::EndTurn,
    }
}

/// `None` where nothing is said, or nothing but zeros, as some servers say it.
fn usage(counts: &Value) -> Option<Usage> {
    let all = count(counts, "prompt_tokens").filter(|all| *all > 0)?;
    let cache_read = counts.get("prompt_tokens_details").and_then(|details| count(details, "cached_tokens"));
    let cache_read = cache_read.unwrap_or(0).min(all);
    let output = count(counts, "completion_tokens").unwrap_or(0);
    Some(Usage { input: all - cache_read, output, cache_read, cache_write: 0, estimated: false })
}

#[derive(Default)]
struct Stream {
    cutter: Cutter,
    /// The uses of tools: the number that the stream gives each, and its place.
    uses: Vec<(Option<u64>, usize)>,
    reason: Option<Stop>,
    refused: bool,
    done: bool,
}

impl Stream {
    /// Reads a message, or a piece of one.
    fn message(&mut self, message: &Value, draft: &mut Draft<'_>) -> Result<(), Broken> {
        for name in ["reasoning_content", "reasoning"] {
            if let Some(piece) = message.get(name).and_then(Value::as_str).filter(|p| !p.is_empty()) {
                draft.thinks(piece.len())?;
            }
        }
        match message.get("content") {
            Some(Value::String(piece)) => self.text(piece, draft)?,
            // Some give text in parts, as it is sent to them.
            Some(Value::Array(parts)) => {
                for part in parts.iter().filter_map(|part| part.get("text")?.as_str()) {
                    self.text(part, draft)?;
                }
            }
            _ => {}
        }
        if let Some(piece) = message.get("refusal").and_then(Value::as_str).filter(|p| !p.is_empty()) {
            self.refused = true;
            draft.text(piece)?;
        }
        let calls = message.get("tool_calls").and_then(Value::as_array);
        for call in calls.into_iter().flatten() {
            self.tool_use(call, draft)?;
        }
        Ok(())
    }

    fn text(&mut self, piece: &str, draft: &mut Draft<'_>) -> Result<(), Broken> {
        let shown = self.cutter.read(piece);
        if self.cutter.is_inside() {
            draft.thinks(piece.len())?;
        }
        Ok(draft.text(&shown)?)
    }

    fn tool_use(&mut self, call: &Value, draft: &mut Draft<'_>) -> Result<(), Broken> {
        let number = call.get("index").and_then(Value::as_u64);
        let id = call.get("id").and_then(Value::as_str).filter(|id| !id.is_empty());
        let function = &call["function"];
        let name = function.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
        let known = self.uses.iter().rev().find(|(n, _)| number.is_some() && *n == number).map(|(_, at)| *at);
        // Servers that number nothing begin each use with its name and go on without one.
        let known =
            known.or_else(|| self.uses.last().filter(|_| number.is_none() && name.is_none()).map(|l| l.1));
        let index = match known {
            Some(index) => index,
            None => {
                let made = format!("call_{}", draft.use_count());
                let id = id.map_or(made, str::to_owned);
                let index = draft.begin_use(id, name.unwrap_or_default().to_owned())?;
                self.uses.push((number, index));
                index
            }
        };
        match function.get("arguments") {
            Some(Value::String(piece)) => draft.arguments(index, piece)?,
            Some(Value::Null) | None => {}
            Some(value) => draft.arguments(index, &value.to_string())?,
        }
        Ok(())
    }
}

impl Reading for Stream {
    fn event(&mut self, data: &[u8], draft: &mut Draft<'_>) -> Result<(), Broken> {
        if data.trim_ascii() == b"[DONE]" {
            self.done = true;
            return Ok(());
        }
        let event: Value = serde_json::from_slice(data).map_err(|_| Fault::Unreadable)?;
        if let Some(error) = event.get("error").filter(|error| !error.is_null()) {
            let code = error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
            return Err(Broken::Status(code.filter(|code| (400..600).contains(code)).unwrap_or(500)));
        }
        if let Some(usage) = event.get("usage").and_then(usage) {
            draft.usage = Some(usage);
        }
        let Some(choice) = event.get("choices").and_then(|choices| choices.get(0)) else { return Ok(()) };
        // A few send whole messages in place of pieces.
        let delta = choice.get("delta").or_else(|| choice.get("message"));
        if let Some(delta) = delta {
            self.message(delta, draft)?;
        }
        if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str) {
            self.reason = Some(stop(reason));
        }
        Ok(())
    }

    fn end(&mut self, draft: &mut Draft<'_>) -> Result<(), Broken> {
        draft.text(&self.cutter.end())?;
        if !self.cutter.opened() {
            draft.edit_text(|text| after_lone_end(text).map(str::to_owned));
        }
        draft.stop = self.reason.or(self.done.then_some(Stop::EndTurn));
        if self.refused && draft.stop.is_some() {
            draft.stop = Some(Stop::Refusal);
        }
        Ok(())
    }
}
