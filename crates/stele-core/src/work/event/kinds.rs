//! Which events there are, who may send each, and what it holds: one table. spec/anthropic.md 8.1 and 17.2.

use std::fmt;

use serde_json::Value;

use crate::work::Fields;
use crate::work::event::NewEvent;
use crate::work::session::SessionStatus;

/// Who sends an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Whoever talks to the agent, or executes its tools.
    Sender,
    /// Whoever runs the agent and reports what happens.
    Recorder,
    /// The server.
    Server,
}

/// The shape of a field.
#[derive(Clone, Copy, Debug)]
enum Shape {
    Text,
    Flag,
    Count,
    Object,
    /// An object whose `type` is one of these.
    OneOf(&'static [&'static str]),
    /// An object with any `type`.
    Typed,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A list of content blocks, at least one.
    Blocks,
    /// A list of content blocks.
    AnyBlocks,
    Anything,
}

#[derive(Debug)]
struct Field {
    name: &'static str,
    shape: Shape,
    required: bool,
}

const fn must(name: &'static str, shape: Shape) -> Field {
    Field { name, shape, required: true }
}

const fn may(name: &'static str, shape: Shape) -> Field {
    Field { name, shape, required: false }
}

#[derive(Debug)]
struct Row {
    name: &'static str,
    source: Source,
    fields: &'static [Field],
}

const fn row(name: &'static str, source: Source, fields: &'static [Field]) -> Row {
    Row { name, source, fields }
}

const THREAD: Field = may("session_thread_id", Shape::Text);
const STOP_REASONS: &[&str] =
    &["end_turn", "requires_action", "retries_exhausted", "budget_reached", "refusal"];
const TOOL_USE: &[Field] = &[
    must("name", Shape::Text),
    must("input", Shape::Object),
    may("evaluated_permission", Shape::Word(&["allow", "ask", "deny"])),
    may("evaluation", Shape::Object),
    THREAD,
];
const MCP_TOOL_USE: &[Field] = &[
    must("mcp_server_name", Shape::Text),
    must("name", Shape::Text),
    must("input", Shape::Object),
    may("evaluated_permission", Shape::Word(&["allow", "ask", "deny"])),
    may("evaluation", Shape::Object),
    THREAD,
];
const RESULT: &[Field] = &[
    must("tool_use_id", Shape::Text),
    may("content", Shape::AnyBlocks),
    may("is_error", Shape::Flag),
    THREAD,
];
const IDLE: &[Field] = &[must("stop_reason", Shape::OneOf(STOP_REASONS)), may("stop_details", Shape::Object)];

#[rustfmt::skip]
const KINDS: &[Row] = &[
    row("user.message", Source::Sender, &[must("content", Shape::Blocks), THREAD]),
    row("user.interrupt", Source::Sender, &[THREAD]),
    row("user.tool_confirmation", Source::Sender, &[
        must("tool_use_id", Shape::Text), must("result", Shape::Word(&["allow", "deny"])), may("deny_message", Shape::Text), THREAD,
    ]),
    row("user.tool_result", Source::Sender, RESULT),
    row("user.custom_tool_result", Source::Sender, &[
        must("custom_tool_use_id", Shape::Text), may("content", Shape::AnyBlocks), may("is_error", Shape::Flag), THREAD,
    ]),
    row("user.define_outcome", Source::Sender, &[
        must("description", Shape::Text), must("rubric", Shape::Typed), may("max_iterations", Shape::Count),
    ]),
    row("system.message", Source::Sender, &[must("content", Shape::Blocks)]),
    row("agent.message", Source::Recorder, &[must("content", Shape::Blocks), THREAD]),
    row("agent.thinking", Source::Recorder, &[THREAD]),
    row("agent.tool_use", Source::Recorder, TOOL_USE),
    row("agent.tool_result", Source::Recorder, RESULT),
    row("agent.custom_tool_use", Source::Recorder, TOOL_USE),
    row("agent.mcp_tool_use", Source::Recorder, MCP_TOOL_USE),
    row("agent.mcp_tool_result", Source::Recorder, &[
        must("mcp_tool_use_id", Shape::Text), may("content", Shape::AnyBlocks), may("is_error", Shape::Flag), THREAD,
    ]),
    row("agent.thread_context_compacted", Source::Recorder, &[THREAD]),
    row("session.status_running", Source::Recorder, &[]),
    row("session.status_rescheduled", Source::Recorder, &[]),
    row("session.status_idle", Source::Recorder, IDLE),
    row("session.status_terminated", Source::Recorder, &[]),
    row("session.error", Source::Recorder, &[must("error", Shape::Typed)]),
    row("span.model_request_start", Source::Recorder, &[THREAD]),
    row("span.model_request_end", Source::Recorder, &[
        must("model_request_start_id", Shape::Text), may("is_error", Shape::Flag), must("model_usage", Shape::Object), THREAD,
    ]),
    row("session.updated", Source::Server, &[
        may("title", Shape::Anything), may("metadata", Shape::Anything), may("agent", Shape::Anything), may("budget", Shape::Anything),
    ]),
    row("session.deleted", Source::Server, &[]),
];

/// What an event is.
#[derive(Clone, Copy)]
pub struct EventKind(&'static Row);

macro_rules! kinds {
    ($($(#[$doc:meta])* $constant:ident $place:literal;)*) => {
        impl EventKind {
            $($(#[$doc])* pub const $constant: EventKind = EventKind(&KINDS[$place]);)*
        }
    };
}

kinds! {
    /// `user.message`.
    USER_MESSAGE 0;
    /// `system.message`.
    SYSTEM_MESSAGE 6;
    /// `user.interrupt`.
    INTERRUPT 1;
    /// `user.define_outcome`.
    DEFINE_OUTCOME 5;
    /// `agent.message`.
    AGENT_MESSAGE 7;
    /// `agent.tool_use`.
    TOOL_USE 9;
    /// `agent.tool_result`.
    TOOL_RESULT 10;
    /// `session.status_running`.
    RUNNING 15;
    /// `session.status_idle`.
    IDLE 17;
    /// `session.status_terminated`.
    TERMINATED 18;
    /// `span.model_request_end`.
    MODEL_END 21;
    /// `session.updated`.
    UPDATED 22;
    /// `session.deleted`.
    DELETED 23;
}

impl PartialEq for EventKind {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for EventKind {}

impl fmt::Debug for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl EventKind {
    /// All of them.
    pub fn all() -> impl Iterator<Item = EventKind> {
        KINDS.iter().map(EventKind)
    }

    /// The kind of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::all().find(|kind| kind.as_str() == name)
    }

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        self.0.name
    }

    /// Who sends it.
    pub const fn source(self) -> Source {
        self.0.source
    }

    /// The status that it says the session has.
    pub fn status(self) -> Option<SessionStatus> {
        match self.as_str() {
            "session.status_running" => Some(SessionStatus::Running),
            "session.status_rescheduled" => Some(SessionStatus::Rescheduling),
            "session.status_idle" => Some(SessionStatus::Idle),
            "session.status_terminated" => Some(SessionStatus::Terminated),
            _ => None,
        }
    }

    /// Whether it is input that waits until the agent takes it up. spec/anthropic.md 8.2.
    pub fn is_queued(self) -> bool {
        matches!(
            self.as_str(),
            "user.message" | "user.interrupt" | "user.tool_confirmation" | "system.message"
        )
    }

    /// Whether it asks for a worker. spec/anthropic.md 12.3.
    pub fn wants_a_worker(self) -> bool {
        matches!(self.as_str(), "user.message" | "user.interrupt" | "user.tool_confirmation")
    }

    /// Whether it shows that the agent has taken up what was queued before it.
    pub fn is_of_the_agent(self) -> bool {
        self.source() == Source::Recorder
    }

    /// The field in which it names the use of a tool that it answers to, and the kinds of that use.
    pub fn answers_to(self) -> Option<(&'static str, &'static [&'static str])> {
        match self.as_str() {
            "user.tool_result" => Some(("tool_use_id", &["agent.tool_use"])),
            "user.custom_tool_result" => Some(("custom_tool_use_id", &["agent.custom_tool_use"])),
            "user.tool_confirmation" => {
                Some(("tool_use_id", &["agent.tool_use", "agent.mcp_tool_use", "agent.custom_tool_use"]))
            }
            _ => None,
        }
    }
}

/// What is wrong with an event: the field in it, empty for the event itself, and the problem.
pub type Wrong = (String, String);

/// Most characters of an id that a sender names.
const GIVEN_ID_CHARS: usize = 256;

/// Reads an event as a sender spells it, without id and time. `null` counts as not given.
///
/// # Errors
/// What is missing, unknown or of the wrong shape.
pub fn parse_fields(kind: EventKind, mut sent: Fields) -> Result<Fields, Wrong> {
    sent.retain(|_, value| !value.is_null());
    for field in kind.0.fields {
        match sent.get(field.name) {
            Some(value) => {
                check(field.shape, value).map_err(|(below, problem)| {
                    let below = if below.is_empty() { below } else { format!(".{below}") };
                    (format!("{}{below}", field.name), problem)
                })?;
            }
            None if field.required => return Err((field.name.into(), "is required".into())),
            None => {}
        }
    }
    let known = |name: &str| kind.0.fields.iter().any(|field| field.name == name);
    match sent.keys().find(|name| !known(name)) {
        Some(unknown) => Err((unknown.clone(), format!("is not a field of {}", kind.as_str()))),
        None => Ok(sent),
    }
}

/// Reads an event from what is sent of it: a `type` that `may` be sent, for recorders perhaps an id and a time, and
/// its fields.
///
/// # Errors
/// What is missing, unknown or of the wrong shape.
pub fn parse(mut sent: Fields, recorder: bool) -> Result<NewEvent, Wrong> {
    let wrong = |field: &str, problem: &str| (field.to_owned(), problem.to_owned());
    let name = match sent.remove("type") {
        Some(Value::String(name)) => name,
        Some(_) => return Err(wrong("type", "must be a string")),
        None => return Err(wrong("type", "is required")),
    };
    let kind = EventKind::parse(&name).filter(|kind| match kind.source() {
        Source::Sender => true,
        Source::Recorder => recorder,
        Source::Server => false,
    });
    let Some(kind) = kind else {
        return Err(wrong("type", "is not a type of event that may be sent here"));
    };
    let mut new = NewEvent::bare(kind);
    if recorder {
        new.given_id = match sent.remove("id") {
            None | Some(Value::Null) => None,
            Some(Value::String(id)) if !id.is_empty() && id.chars().count() <= GIVEN_ID_CHARS => Some(id),
            Some(_) => return Err(wrong("id", "must be a string of 1 to 256 characters")),
        };
        new.processed_at = match sent.remove("processed_at") {
            None | Some(Value::Null) => None,
            Some(Value::String(at)) => Some(
                crate::time::Timestamp::parse(&at)
                    .ok_or_else(|| wrong("processed_at", "must be an RFC 3339 time"))?,
            ),
            Some(_) => return Err(wrong("processed_at", "must be an RFC 3339 time")),
        };
    }
    new.fields = parse_fields(kind, sent)?;
    Ok(new)
}

fn check(shape: Shape, value: &Value) -> Result<(), Wrong> {
    let wrong = |problem: &str| Err((String::new(), problem.to_owned()));
    match (shape, value) {
        (Shape::Anything, _)
        | (Shape::Text, Value::String(_))
        | (Shape::Flag, Value::Bool(_))
        | (Shape::Object, Value::Object(_)) => Ok(()),
        (Shape::Count, Value::Number(number)) if number.as_u64().is_some() => Ok(()),
        (Shape::Word(words), Value::String(word)) if words.contains(&word.as_str()) => Ok(()),
        (Shape::OneOf(types), Value::Object(object)) => match object.get("type").and_then(Value::as_str) {
            Some(name) if types.contains(&name) => Ok(()),
            _ => Err(("type".into(), format!("must be one of {}", types.join(", ")))),
        },
        (Shape::Typed, Value::Object(object)) if object.get("type").is_some_and(Value::is_string) => Ok(()),
        (Shape::Blocks, Value::Array(blocks)) if blocks.is_empty() => wrong("must not be empty"),
        (Shape::Blocks | Shape::AnyBlocks, Value::Array(blocks)) => {
            blocks.iter().enumerate().try_for_each(|(place, block)| check_block(place, block))
        }
        (Shape::Text, _) => wrong("must be a string"),
        (Shape::Flag, _) => wrong("must be true or false"),
        (Shape::Count, _) => wrong("must be a whole number"),
        (Shape::Object | Shape::OneOf(_), _) => wrong("must be an object"),
        (Shape::Typed, _) => wrong("must be an object with a type"),
        (Shape::Word(words), _) => Err((String::new(), format!("must be one of {}", words.join(", ")))),
        (Shape::Blocks | Shape::AnyBlocks, _) => wrong("must be a list of content blocks"),
    }
}

fn check_block(place: usize, block: &Value) -> Result<(), Wrong> {
    match block.get("type").and_then(Value::as_str) {
        Some("text") if !block.get("text").is_some_and(Value::is_string) => {
            Err((format!("{place}.text"), "must be a string".into()))
        }
        Some(_) => Ok(()),
        None => Err((format!("{place}.type"), "is required".into())),
    }
}
