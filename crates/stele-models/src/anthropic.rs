//! Anthropic's Messages: `POST {base}/v1/messages`.

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use stele_core::models::{
    Arguments, Block, Cache, Conversation, Fault, Message, Role, Stop, ToolChoice, Usage,
};

use crate::catalogue::Listed;
use crate::draft::Draft;
use crate::settings::{Key, Structured};
use crate::ways::Ways;
use crate::wire::{Broken, Reading, Wire, count};

const VERSION: &str = "2023-06-01";

/// The wire.
pub(crate) struct Anthropic;

impl Wire for Anthropic {
    fn path(&self) -> &'static str {
        "/v1/messages"
    }

    fn models_path(&self) -> &'static str {
        "/v1/models?limit=1000"
    }

    fn headers(&self, key: Option<&Key>) -> Vec<(&'static str, String)> {
        let version = ("anthropic-version", VERSION.to_owned());
        key.map(|key| ("x-api-key", key.reveal().to_owned())).into_iter().chain([version]).collect()
    }

    fn body(&self, model: &str, conversation: &Conversation, ways: &Ways) -> Value {
        let mut body = Map::new();
        body.insert("model".into(), model.into());
        body.insert("max_tokens".into(), conversation.max_tokens.into());
        body.insert("stream".into(), ways.stream.into());
        let (mut tools, mut system) = (tools(conversation, ways), Vec::new());
        if !conversation.system.is_empty() {
            system.push(json!({"type": "text", "text": conversation.system}));
        }
        // A mark covers all before it, and tools come before the system prompt.
        mark(conversation.cache_system, system.last_mut().or(tools.last_mut()));
        if !tools.is_empty() {
            body.insert("tools".into(), tools.into());
            body.insert("tool_choice".into(), tool_choice(conversation, ways));
        }
        if !system.is_empty() {
            body.insert("system".into(), system.into());
        }
        let messages: Vec<Value> = conversation.messages.iter().filter_map(message).collect();
        body.insert("messages".into(), messages.into());
        if let Some(schema) = &conversation.schema
            && ways.structured == Structured::JsonSchema
        {
            let format = json!({"type": "json_schema", "schema": schema.schema});
            body.insert("output_config".into(), json!({"format": format}));
        }
        ways.put_sampling(conversation, &mut body);
        body.into()
    }

    fn events(&self) -> Box<dyn Reading> {
        Box::<Stream>::default()
    }

    fn whole(&self, answer: &Value, draft: &mut Draft<'_>) -> Result<(), Broken> {
        let blocks = answer.get("content").and_then(Value::as_array).ok_or(Fault::Unreadable)?;
        for block in blocks {
            match text(block, "type") {
                "text" => draft.text(text(block, "text"))?,
                "tool_use" => {
                    let index = draft.begin_use(text(block, "id").into(), text(block, "name").into())?;
                    draft.arguments(index, &block["input"].to_string())?;
                }
                "thinking" | "redacted_thinking" => {
                    draft.thinks(block.to_string().len())?;
                    draft.reasoning(block.clone());
                }
                _ => {}
            }
        }
        draft.usage = usage(draft.usage, &answer["usage"]);
        draft.stop = Some(stop(answer.get("stop_reason").and_then(Value::as_str).ok_or(Fault::Unreadable)?));
        Ok(())
    }

    fn listed(&self, page: &Value) -> Option<(Vec<Listed>, Option<String>)> {
        let models = page.get("data")?.as_array()?.iter().filter_map(|model| {
            Some(Listed {
                id: model.get("id")?.as_str()?.to_owned(),
                display_name: model.get("display_name").and_then(Value::as_str).map(str::to_owned),
                context_tokens: count(model, "max_input_tokens"),
                output_tokens: count(model, "max_tokens"),
            })
        });
        let more = page.get("has_more").and_then(Value::as_bool).unwrap_or(false);
        let last = page.get("last_id").and_then(Value::as_str).filter(|_| more);
        Some((models.collect(), last.map(|last| format!("&after_id={last}"))))
    }
}

fn mark(cache: Cache, block: Option<&mut Value>) {
    if let (Cache::UpToHere, Some(block)) = (cache, block) {
        block["cache_control"] = json!({"type": "ephemeral"});
    }
}

fn tools(conversation: &Conversation, ways: &Ways) -> Vec<Value> {
    let tools = conversation.tools.iter().filter(|_| ways.tools);
    tools
        .map(|tool| json!({"name": tool.name, "description": tool.description, "input_schema": tool.schema}))
        .collect()
}

fn tool_choice(conversation: &Conversation, ways: &Ways) -> Value {
    match &conversation.tool_choice {
        ToolChoice::Never => json!({"type": "none"}),
        ToolChoice::Any if ways.forced_tool => json!({"type": "any"}),
        ToolChoice::Tool(name) if ways.forced_tool => json!({"type": "tool", "name": name}),
        ToolChoice::Auto | ToolChoice::Any | ToolChoice::Tool(_) => json!({"type": "auto"}),
    }
}

/// `None` for a turn with nothing in it, which the wire refuses.
fn message(message: &Message) -> Option<Value> {
    let blocks = message.blocks.iter().filter_map(|block| match block {
        Block::Text(text) => (!text.is_empty()).then(|| json!({"type": "text", "text": text})),
        Block::ToolUse(used) => {
            let input = match &used.arguments {
                Arguments::Object(object) => object.clone(),
                Arguments::Malformed(_) => Map::new(),
            };
            Some(json!({"type": "tool_use", "id": used.id, "name": used.name, "input": input}))
        }
        Block::ToolResult(result) => {
            let mut block = json!({
                "type": "tool_result", "tool_use_id": result.tool_use, "content": result.text
            });
            if result.is_error {
                block["is_error"] = true.into();
            }
            Some(block)
        }
        Block::Reasoning(value) => Some(value.clone()),
    });
    let mut blocks: Vec<Value> = blocks.collect();
    mark(message.cache, blocks.last_mut());
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    (!blocks.is_empty()).then(|| json!({"role": role, "content": blocks}))
}

fn stop(reason: &str) -> Stop {
    match reason {
        "tool_use" => Stop::ToolUse,
        "max_tokens" => Stop::MaxTokens,
        "model_context_window_exceeded" => Stop::ContextFull,
        "refusal" => Stop::Refusal,
        _ => Stop::EndTurn,
    }
}

/// Later counts take the place of earlier ones.
fn usage(before: Option<Usage>, counts: &Value) -> Option<Usage> {
    if !counts.is_object() {
        return before;
    }
    let old = before.unwrap_or_default();
    Some(Usage {
        input: count(counts, "input_tokens").unwrap_or(old.input),
        output: count(counts, "output_tokens").unwrap_or(old.output),
        cache_read: count(counts, "cache_read_input_tokens").unwrap_or(old.cache_read),
        cache_write: count(counts, "cache_creation_input_tokens").unwrap_or(old.cache_write),
        estimated: false,
    })
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Which status an error in the middle of a stream stands for.
fn status(error: &Value) -> u16 {
    match text(error, "type") {
        "invalid_request_error" => 400,
        "authentication_error" => 401,
        "permission_error" => 403,
        "not_found_error" => 404,
        "request_too_large" => 413,
        "rate_limit_error" => 429,
        "overloaded_error" => 529,
        _ => 500,
    }
}

/// The blocks of a stream by their number.
#[derive(Default)]
struct Stream {
    blocks: HashMap<u64, Open>,
    reason: Option<Stop>,
    ended: bool,
}

/// A block that goes on.
enum Open {
    Text,
    /// A use of a tool with its place; what was given of its arguments at once, in case nothing follows.
    Use {
        index: usize,
        given: Option<String>,
    },
    /// Reasoning, as it will be sent back.
    Reasoning(Value),
}

impl Stream {
    fn begin(&mut self, number: u64, block: &Value, draft: &mut Draft<'_>) -> Result<(), Broken> {
        let open = match text(block, "type") {
            "text" => {
                draft.text(text(block, "text"))?;
                Open::Text
            }
            "tool_use" => {
                let index = draft.begin_use(text(block, "id").into(), text(block, "name").into())?;
                let given = block.get("input").filter(|i| i.as_object().is_some_and(|i| !i.is_empty()));
                Open::Use { index, given: given.map(Value::to_string) }
            }
            "thinking" | "redacted_thinking" => {
                draft.thinks(block.to_string().len())?;
                Open::Reasoning(block.clone())
            }
            _ => return Ok(()),
        };
        self.blocks.insert(number, open);
        Ok(())
    }

    fn go_on(&mut self, number: u64, delta: &Value, draft: &mut Draft<'_>) -> Result<(), Broken> {
        match self.blocks.get_mut(&number) {
            Some(Open::Text) => draft.text(text(delta, "text"))?,
            Some(Open::Use { index, given }) => {
                let piece = text(delta, "partial_json");
                if !piece.is_empty() {
                    *given = None;
                }
                draft.arguments(*index, piece)?;
            }
            Some(Open::Reasoning(block)) => {
                for name in ["thinking", "signature"] {
                    let piece = text(delta, name);
                    if !piece.is_empty() {
                        draft.thinks(piece.len())?;
                        let whole = text(block, name).to_owned() + piece;
                        block[name] = whole.into();
                    }
                }
            }
            None => {}
        }
        Ok(())
    }
}

impl Reading for Stream {
    fn event(&mut self, data: &[u8], draft: &mut Draft<'_>) -> Result<(), Broken> {
        let event: Value = serde_json::from_slice(data).map_err(|_| Fault::Unreadable)?;
        let number = event.get("index").and_then(Value::as_u64).unwrap_or(0);
        match text(&event, "type") {
            "message_start" => draft.usage = usage(draft.usage, &event["message"]["usage"]),
            "content_block_start" => self.begin(number, &event["content_block"], draft)?,
            "content_block_delta" => self.go_on(number, &event["delta"], draft)?,
            "content_block_stop" => match self.blocks.remove(&number) {
                Some(Open::Reasoning(block)) => draft.reasoning(block),
                Some(Open::Use { index, given: Some(given) }) => draft.arguments(index, &given)?,
                Some(Open::Text | Open::Use { given: None, .. }) | None => {}
            },
            "message_delta" => {
                draft.usage = usage(draft.usage, &event["usage"]);
                self.reason = event["delta"].get("stop_reason").and_then(Value::as_str).map(stop);
            }
            "message_stop" => self.ended = true,
            "error" => return Err(Broken::Status(status(&event["error"]))),
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, draft: &mut Draft<'_>) -> Result<(), Broken> {
        // A stop reason without the last event is enough: all that follows it is that event.
        draft.stop = self.reason.or(self.ended.then_some(Stop::EndTurn));
        Ok(())
    }
}
