//! Results of tools: a text for the model, the same as data, and a bound on both together.

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::Value;
use stele_client::ClientError;

/// Most bytes of an answer with entries, as it is sent.
pub(crate) const MOST_BYTES: usize = 100_000;

/// What a tool brings: its result, or a sentence on what went wrong and what to do next.
pub(crate) type Brought = Result<CallToolResult, String>;

/// A result. Some clients show a model the text, others the data alone, so each says it all.
pub(crate) fn result(text: impl Into<String>, data: Value) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = Some(data);
    result
}

/// A mistake; without data, so that every client shows the text.
pub(crate) fn mistake(text: impl Into<String>) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}

/// Whether a result is within the bound.
pub(crate) fn fits(result: &CallToolResult) -> bool {
    serde_json::to_string(result).is_ok_and(|text| text.len() <= MOST_BYTES)
}

/// What the server's refusal means for a model that wrote or read at `path`.
pub(crate) fn refusal(error: &ClientError, path: &str) -> String {
    let sentence = |message: &str| {
        let end = if message.ends_with('.') { "" } else { "." };
        format!("{path}: {message}{end}")
    };
    match error {
        ClientError::Refused { code, .. } if code == "memory_precondition_failed_error" => {
            format!(
                "{path} changed since you read it: read_memory again, and repeat with its content_sha256."
            )
        }
        ClientError::Refused { status: 404, .. } => {
            format!("{path} not found: list_memories or search_memories show what is there.")
        }
        ClientError::Refused { status: 401, .. } => {
            "The credential does not work any more: ask for a new one.".into()
        }
        ClientError::Refused { status: 429 | 503 | 529, message, .. } => {
            format!("The server cannot do that now ({message}): try again in a moment.")
        }
        ClientError::Refused { message, .. } | ClientError::Unfit { message, .. } => sentence(message),
        ClientError::Unreachable { .. } | ClientError::Slow { .. } | ClientError::Strange { .. } => {
            sentence_of(error)
        }
    }
}

/// A failure that has nothing to do with a path.
pub(crate) fn failure(error: &ClientError) -> String {
    match error {
        ClientError::Refused { status: 404, .. } => {
            "The store is gone: it was deleted, or is out of reach.".into()
        }
        ClientError::Refused { status: 401 | 429 | 503 | 529, .. } => refusal(error, ""),
        _ => sentence_of(error),
    }
}

fn sentence_of(error: &ClientError) -> String {
    let text = error.to_string();
    if text.ends_with('.') { text } else { text + "." }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, code: &str) -> ClientError {
        ClientError::Refused { status, code: code.into(), message: "the store is archived".into() }
    }

    /// Every failure of the server as a model reads it.
    #[test]
    fn the_whole_table_of_sentences() {
        let url = String::from("http://127.0.0.1:1");
        let errors = [
            refused(400, "memory_store_archived"),
            refused(401, "authentication_error"),
            refused(403, "permission_error"),
            refused(404, "not_found_error"),
            refused(409, "memory_precondition_failed_error"),
            refused(409, "memory_path_conflict_error"),
            refused(500, "api_error"),
            refused(503, "api_error"),
            refused(529, "overloaded_error"),
            ClientError::Unreachable { url: url.clone(), cause: "connection refused".into() },
            ClientError::Slow { url: url.clone() },
            ClientError::Strange { url, cause: "status 502, no JSON".into() },
        ];
        let mut rows = String::new();
        for error in errors {
            let status = error.status().map_or("-".into(), |status| status.to_string());
            rows += &format!("{status}\n  {}\n  {}\n", refusal(&error, "/a.md"), failure(&error));
        }
        insta::assert_snapshot!(rows);
    }
}
