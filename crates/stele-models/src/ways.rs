//! What a model's server can do, as found out by what it refuses. A way down that led to an answer is remembered.

use serde_json::{Map, Value};
use stele_core::models::{Conversation, ToolChoice};

use crate::settings::Structured;

/// Texts by which servers say that a conversation is too long, in lower case.
const OVERFLOWS: [&str; 8] = [
    "context_length_exceeded",
    "exceed_context_size",
    "maximum context length",
    "context length",
    "context window",
    "prompt is too long",
    "input is too long",
    "available context",
];

/// How to ask a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ways {
    /// How a schema is asked for.
    pub(crate) structured: Structured,
    /// Whether one tool may be forced.
    pub(crate) forced_tool: bool,
    /// Whether the answer comes in pieces.
    pub(crate) stream: bool,
    /// Whether the usage is asked for at the end of a stream (OpenAI wire).
    pub(crate) stream_usage: bool,
    /// The name of the cap of an answer's tokens (OpenAI wire).
    pub(crate) cap: Cap,
    /// Whether temperature and `top_p` are sent.
    pub(crate) sampling: bool,
    /// Whether tools are offered.
    pub(crate) tools: bool,
}

/// What the most tokens of an answer are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cap {
    /// By most servers.
    MaxTokens,
    /// By OpenAI's own newer models.
    MaxCompletionTokens,
}

impl Ways {
    /// What to begin with.
    pub(crate) fn new(structured: Structured, tools: bool) -> Self {
        Self {
            structured,
            tools,
            forced_tool: true,
            stream: true,
            stream_usage: true,
            cap: Cap::MaxTokens,
            sampling: true,
        }
    }

    /// Gives up what a refusal names, if it was sent; false if nothing is left to give up. `refusal` is in lower case.
    pub(crate) fn step_down(&mut self, refusal: &str, conversation: &Conversation) -> bool {
        let named = |names: &[&str]| names.iter().any(|name| refusal.contains(name));
        let forced = self.tools && matches!(conversation.tool_choice, ToolChoice::Any | ToolChoice::Tool(_));
        let sampled = conversation.temperature.is_some() || conversation.top_p.is_some();
        let shaped = conversation.schema.is_some();
        if shaped
            && self.structured != Structured::None
            && named(&["response_format", "json_schema", "json_object", "output_config", "output_format"])
        {
            self.structured = match self.structured {
                Structured::JsonSchema => Structured::JsonObject,
                Structured::JsonObject | Structured::None => Structured::None,
            };
        } else if forced && self.forced_tool && named(&["tool_choice"]) {
            self.forced_tool = false;
        } else if self.stream && self.stream_usage && named(&["stream_options", "include_usage"]) {
            self.stream_usage = false;
        } else if self.cap == Cap::MaxTokens && named(&["max_completion_tokens"]) {
            self.cap = Cap::MaxCompletionTokens;
        } else if sampled && self.sampling && named(&["temperature", "top_p"]) {
            self.sampling = false;
        } else if self.stream && named(&["stream"]) {
            self.stream = false;
        } else if forced && self.forced_tool {
            // Some only say that something is wrong.
            self.forced_tool = false;
        } else {
            return false;
        }
        true
    }

    /// Puts temperature and `top_p` into a body.
    pub(crate) fn put_sampling(&self, conversation: &Conversation, body: &mut Map<String, Value>) {
        let values = [("temperature", conversation.temperature), ("top_p", conversation.top_p)];
        for (name, value) in values {
            if let Some(value) = value.filter(|_| self.sampling) {
                body.insert(name.into(), value.into());
            }
        }
    }
}

/// Whether a refusal says that the conversation is too long. `refusal` is in lower case.
pub(crate) fn is_overflow(refusal: &str) -> bool {
    OVERFLOWS.iter().any(|text| refusal.contains(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stele_core::models::Schema;

    fn asked() -> Conversation {
        let schema = Schema { name: "x".into(), schema: serde_json::json!({"type": "object"}) };
        Conversation {
            schema: Some(schema),
            tool_choice: ToolChoice::Tool("t".into()),
            temperature: Some(0.0),
            ..Conversation::default()
        }
    }

    #[test]
    fn what_a_refusal_names_is_given_up_one_thing_at_a_time() {
        let mut ways = Ways::new(Structured::JsonSchema, true);
        let whole = ways;
        let mut down = |refusal: &str| ways.step_down(refusal, &asked()).then_some(ways);
        let steps = [
            (
                "unknown field response_format.json_schema",
                Ways { structured: Structured::JsonObject, ..whole },
            ),
            ("unknown field response_format", Ways { structured: Structured::None, ..whole }),
        ];
        for (refusal, expected) in steps {
            assert_eq!(down(refusal), Some(expected), "{refusal}");
        }
        let last = down("stream_options is not allowed").expect("a step");
        assert!(last.stream && !last.stream_usage);
        let last = down("use 'max_completion_tokens' instead").expect("a step");
        assert_eq!(last.cap, Cap::MaxCompletionTokens);
        assert!(!down("temperature is fixed").expect("a step").sampling);
        assert!(!down("stream is not supported").expect("a step").stream);
        assert!(!down("bad request").expect("the forced tool is the last thing to give up").forced_tool);
        assert_eq!(down("response_format stream tool_choice"), None);
    }

    #[test]
    fn what_was_not_asked_for_is_not_given_up() {
        let mut ways = Ways::new(Structured::JsonSchema, true);
        let plain = Conversation::default();
        for refusal in ["response_format", "tool_choice", "temperature", "no"] {
            assert!(!ways.step_down(refusal, &plain), "{refusal}");
        }
    }
}
