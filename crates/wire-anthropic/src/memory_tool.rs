//! `POST /v1/memory_stores/{id}/memory_tool`: the tool's input as the model wrote it. spec/anthropic.md 16 and 17.4.

use axum::body::Body;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use stele_core::access::{Action, Resource};
use stele_core::memory_tool::{ToolAnswer, ToolCommand, run};
use stele_core::service::{First, Target};
use stele_core::storage::At;
use stele_http::body;
use stele_http::reply::{at, bytes, json};

use crate::context::{Call, object};
use crate::error::ApiError;

/// The input of the tool. What the model got wrong in it is told to the model, so that nothing of it is refused here.
#[derive(JsonSchema)]
#[schemars(rename = "MemoryToolInput")]
#[expect(dead_code, reason = "the shape that the document describes")]
pub(crate) struct ToolInput {
    /// `view`, `create`, `str_replace`, `insert`, `delete` or `rename`.
    command: String,
    path: Option<String>,
    view_range: Option<[i64; 2]>,
    file_text: Option<String>,
    old_str: Option<String>,
    new_str: Option<String>,
    insert_line: Option<i64>,
    insert_text: Option<String>,
    old_path: Option<String>,
    new_path: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "MemoryToolResult")]
pub(crate) struct AnswerView {
    /// The text for the model.
    content: String,
    /// Whether it says what went wrong.
    is_error: bool,
}

/// The tool's input; what is wrong with it, in words for a model.
fn parse(input: &Map<String, Value>) -> Result<ToolCommand, String> {
    let optional = |name: &str| match input.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.contains('\0') => {
            Err(format!("`{name}` must not hold NUL characters."))
        }
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("`{name}` must be a string.")),
    };
    let required =
        |name: &str| optional(name)?.ok_or_else(|| format!("Missing required parameter: `{name}`."));
    let whole = |name: &str, value: &Value| {
        value.as_i64().ok_or_else(|| format!("`{name}` must be made of whole numbers."))
    };
    let command = required("command")?;
    Ok(match command.as_str() {
        "view" => {
            let view_range = match input.get("view_range") {
                None | Some(Value::Null) => None,
                Some(Value::Array(ends)) if ends.len() == 2 => {
                    Some([whole("view_range", &ends[0])?, whole("view_range", &ends[1])?])
                }
                Some(_) => return Err("`view_range` must be [first line, last line or -1].".into()),
            };
            ToolCommand::View { path: required("path")?, view_range }
        }
        "create" => ToolCommand::Create { path: required("path")?, file_text: required("file_text")? },
        "str_replace" => ToolCommand::StrReplace {
            path: required("path")?,
            old_str: required("old_str")?,
            new_str: optional("new_str")?.unwrap_or_default(),
        },
        "insert" => ToolCommand::Insert {
            path: required("path")?,
            insert_line: match input.get("insert_line") {
                None => return Err("Missing required parameter: `insert_line`.".into()),
                Some(line) => whole("insert_line", line)?,
            },
            insert_text: required("insert_text")?,
        },
        "delete" => ToolCommand::Delete { path: required("path")? },
        "rename" => ToolCommand::Rename { old_path: required("old_path")?, new_path: required("new_path")? },
        other => {
            return Err(format!(
                "Unknown command: {other}. Use view, create, str_replace, insert, delete or rename."
            ));
        }
    })
}

pub(crate) async fn call(call: Call, body: Body) -> Result<Response, ApiError> {
    let store = call.store()?;
    call.may(Resource::Memory, Action::Read)?;
    let body = body::read(body).await?;
    let answer = match parse(&object(&body)?) {
        Ok(command) => run(&call.stele, &call.caller, store, &command).await?,
        Err(content) => {
            let needed = (Resource::Memory, Action::Read);
            let store =
                call.stele.precondition(&call.caller, store, Target::Store, needed, First::Existence).await?;
            At { sequence: store.counters.sequence, value: ToolAnswer { content, is_error: true } }
        }
    };
    let ToolAnswer { content, is_error } = answer.value;
    Ok(at(answer.sequence, json(bytes(&AnswerView { content, is_error }))))
}
