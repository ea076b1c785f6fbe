//! What a model is asked: a conversation, the tools it may use, the form its answer shall have.

use serde_json::{Map, Value};

use crate::models::answer::{Arguments, Block};

/// A conversation to go on with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conversation {
    /// The system prompt; empty for none.
    pub system: String,
    /// Whether the tools and the system prompt are to be cached: they are the same in the calls to come.
    pub cache_system: Cache,
    /// What was said so far, oldest first, beginning with the user.
    pub messages: Vec<Message>,
    /// The tools that the model may use. Left out for providers that offer none ([`ModelEntry::tools`]).
    ///
    /// [`ModelEntry::tools`]: crate::models::ModelEntry::tools
    pub tools: Vec<Tool>,
    /// Whether it must use one.
    pub tool_choice: ToolChoice,
    /// The form of the answer's text. A wish: a provider that knows no such thing answers with any text.
    pub schema: Option<Schema>,
    /// Most tokens of the answer.
    pub max_tokens: u64,
    /// Randomness; the provider's default where it is `None`.
    pub temperature: Option<f64>,
    /// The share of likely tokens that is drawn from; the provider's default where it is `None`.
    pub top_p: Option<f64>,
}

/// A mark for the provider's cache of prompts. Only the Anthropic wire has such marks, at most four a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cache {
    /// None here.
    #[default]
    No,
    /// All up to here comes again in later calls.
    UpToHere,
}

/// Who says something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Who asks, and what tools answered.
    User,
    /// The model.
    Assistant,
}

/// One turn of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Whose.
    pub role: Role,
    /// Its parts.
    pub blocks: Vec<Block>,
    /// Whether the conversation is to be cached up to here.
    pub cache: Cache,
}

impl Message {
    /// A text by the user.
    pub fn user(text: impl Into<String>) -> Self {
        Self { role: Role::User, blocks: vec![Block::Text(text.into())], cache: Cache::No }
    }

    /// What the model answered, to go on from.
    pub fn assistant(blocks: Vec<Block>) -> Self {
        Self { role: Role::Assistant, blocks, cache: Cache::No }
    }

    /// What the tools answered that the model used in its last turn: each of its uses needs one.
    pub fn results(results: impl IntoIterator<Item = ToolResult>) -> Self {
        let blocks = results.into_iter().map(Block::ToolResult).collect();
        Self { role: Role::User, blocks, cache: Cache::No }
    }
}

/// What a tool answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResult {
    /// The id of the use that it answers.
    pub tool_use: String,
    /// The answer.
    pub text: String,
    /// Whether it failed.
    pub is_error: bool,
}

/// A tool that a model may use.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// Its name: letters, digits, `_` and `-`, at most 64.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// The JSON schema of its arguments, an object's.
    pub schema: Value,
}

/// Whether a model must use a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// As it likes.
    #[default]
    Auto,
    /// One of them.
    Any,
    /// This one. A provider that refuses that is asked again with [`Self::Auto`].
    Tool(String),
    /// None of them, though the conversation has uses of them.
    Never,
}

/// The form of a structured answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    /// A name for it: letters, digits, `_` and `-`, at most 64.
    pub name: String,
    /// The JSON schema, an object's.
    pub schema: Value,
}

impl Conversation {
    /// Bytes of all texts that the model reads, tools included.
    pub fn text_bytes(&self) -> usize {
        let messages: usize = self.messages.iter().flat_map(|m| &m.blocks).map(block_bytes).sum();
        let tools = self.tools.iter();
        let tools: usize =
            tools.map(|t| t.name.len() + t.description.len() + t.schema.to_string().len()).sum();
        let schema = self.schema.as_ref().map_or(0, |schema| schema.schema.to_string().len());
        self.system.len() + messages + tools + schema
    }
}

fn block_bytes(block: &Block) -> usize {
    match block {
        Block::Text(text) => text.len(),
        Block::ToolUse(used) => used.name.len() + arguments_bytes(&used.arguments),
        Block::ToolResult(result) => result.text.len(),
        Block::Reasoning(value) => value.to_string().len(),
    }
}

fn arguments_bytes(arguments: &Arguments) -> usize {
    match arguments {
        Arguments::Object(map) => json_bytes(map),
        Arguments::Malformed(text) => text.len(),
    }
}

fn json_bytes(map: &Map<String, Value>) -> usize {
    serde_json::to_string(map).map_or(0, |text| text.len())
}
