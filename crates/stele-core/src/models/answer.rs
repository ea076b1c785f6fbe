//! What a model answers: piece by piece while it is made, and whole.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::models::catalogue::Cost;
use crate::models::conversation::ToolResult;
use crate::models::failure::ModelError;

/// A piece of an answer, while it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta {
    /// The answer begins; once more if an earlier try broke off, and then nothing that it said counts.
    Begin,
    /// The model reasons; what it thinks is not told.
    Thinking,
    /// More text.
    Text(String),
    /// A use of a tool begins.
    ToolUse {
        /// Its place among the uses of this answer, from 0.
        index: usize,
        /// Its id.
        id: String,
        /// The tool.
        name: String,
    },
    /// More of a use's arguments, as JSON text.
    Arguments {
        /// The use's place.
        index: usize,
        /// The piece.
        json: String,
    },
}

/// A part of a turn.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// Text.
    Text(String),
    /// The model uses a tool.
    ToolUse(ToolUse),
    /// A tool has answered.
    ToolResult(ToolResult),
    /// The model's reasoning as its provider gave it, to be sent back to it and for nothing else.
    Reasoning(Value),
}

/// A use of a tool by a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolUse {
    /// Its id, which the result names.
    pub id: String,
    /// The tool; the model may name one that there is not.
    pub name: String,
    /// What for.
    pub arguments: Arguments,
}

/// Arguments of a use of a tool. Whether they fit the tool's schema nobody has looked.
#[derive(Clone, Debug, PartialEq)]
pub enum Arguments {
    /// An object.
    Object(Map<String, Value>),
    /// No JSON object: what the model wrote instead. The tool cannot run; the model is to be told so.
    Malformed(String),
}

impl Arguments {
    /// Reads the text that a model wrote; none at all is an empty object.
    pub fn parse(text: &str) -> Self {
        if text.trim().is_empty() {
            return Self::Object(Map::new());
        }
        match serde_json::from_str(text) {
            Ok(Value::Object(object)) => Self::Object(object),
            Ok(_) | Err(_) => Self::Malformed(text.to_owned()),
        }
    }
}

/// Why a model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It has said what it has to say.
    EndTurn,
    /// It waits for its tools.
    ToolUse,
    /// The answer was cut: it reached its most tokens.
    MaxTokens,
    /// The context was full before the answer was whole.
    ContextFull,
    /// The model, or a filter before it, refuses.
    Refusal,
}

/// Tokens of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Read by the model, those of the cache not counted.
    pub input: u64,
    /// Written by it, reasoning included.
    pub output: u64,
    /// Read from the provider's cache.
    pub cache_read: u64,
    /// Put into the provider's cache.
    pub cache_write: u64,
    /// Whether the provider did not say and the numbers are guesses by the length of the texts.
    #[serde(default)]
    pub estimated: bool,
}

impl Usage {
    /// No tokens at all.
    pub const NONE: Self = Self { input: 0, output: 0, cache_read: 0, cache_write: 0, estimated: false };

    /// All tokens that the model read.
    pub fn all_input(&self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }

    /// All tokens, as budgets count them.
    pub fn total(&self) -> u64 {
        self.all_input().saturating_add(self.output)
    }
}

/// A whole answer, and what it took.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// Its parts: reasoning first, then text and uses of tools.
    pub blocks: Vec<Block>,
    /// Why it ends.
    pub stop: Stop,
    /// The provider that answered.
    pub provider: String,
    /// The id of the model that was asked.
    pub model: String,
    /// Its tokens.
    pub usage: Usage,
    /// What it cost; `None` where the provider's price is not configured.
    pub cost: Option<Cost>,
    /// From the beginning of the last try to the last byte.
    pub latency: Duration,
    /// How many tries it took.
    pub tries: u32,
}

impl Reply {
    /// All its text.
    pub fn text(&self) -> String {
        let texts = self.blocks.iter().filter_map(|block| match block {
            Block::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    /// Its uses of tools, in order.
    pub fn tool_uses(&self) -> impl Iterator<Item = &ToolUse> {
        self.blocks.iter().filter_map(|block| match block {
            Block::ToolUse(used) => Some(used),
            _ => None,
        })
    }

    /// The reply if it is whole, for callers that can do nothing with part of one.
    ///
    /// # Errors
    /// The model refused, or the answer was cut: [`ModelError::Refused`], [`ModelError::Cut`],
    /// [`ModelError::Overflow`].
    pub fn whole(self) -> Result<Self, ModelError> {
        let provider = self.provider.clone();
        match self.stop {
            Stop::EndTurn | Stop::ToolUse => Ok(self),
            Stop::Refusal => Err(ModelError::Refused { provider }),
            Stop::MaxTokens => Err(ModelError::Cut { provider }),
            Stop::ContextFull => Err(ModelError::Overflow { provider, status: None }),
        }
    }
}
