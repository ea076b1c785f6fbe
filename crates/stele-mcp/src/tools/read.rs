//! `read_memory`.

use serde::Deserialize;
use serde_json::{Value, json};
use stele_client::{ClientError, encoded};
use stele_core::path::MemoryPath;

use super::Call;
use crate::answer::{Brought, failure, refusal, result};
use crate::arguments::{END_LINE, PATH, START_LINE};
use crate::door::{Ask, Door};

/// A memory as the Recursion dialect shows it, which finds one by its path. spec/recursion.md 4.2.
#[derive(Debug, Deserialize)]
pub(super) struct Whole {
    pub(super) memory_id: String,
    path: String,
    summary: String,
    pub(super) content: String,
    pub(super) content_sha256: String,
    byte_size: u64,
    updated_at: String,
}

impl<D: Door> Call<'_, D> {
    /// The memory at a path.
    pub(super) async fn memory_at(&self, path: &MemoryPath) -> Result<Whole, ClientError> {
        let query = format!("/memory?path={}", encoded(path.as_str()));
        let answer = self.door.ask(Ask::Get(self.store.recursion(&query))).await?;
        serde_json::from_value(answer)
            .map_err(|error| ClientError::Strange { url: "the server".into(), cause: error.to_string() })
    }

    /// What to say where the memory could not be read: of one that is not there also what there is instead.
    pub(super) async fn unread(&self, path: &MemoryPath, error: ClientError) -> String {
        if error.status() != Some(404) {
            return refusal(&error, path.as_str());
        }
        let alike = self.alike(path.as_str()).await;
        if !alike.is_empty() {
            let (path, alike) = (path.as_str(), alike.join(", "));
            return format!(
                "{path} not found: look at {alike}, or at what list_memories and search_memories show."
            );
        }
        match self.count().await {
            Ok(_) => refusal(&error, path.as_str()),
            Err(error) => failure(&error),
        }
    }

    /// The exact text is the first block; what is said about it stands in the data, with the text once more for
    /// clients that show their model nothing else.
    pub(super) async fn read(&self) -> Brought {
        let path = self.arguments.path(&PATH)?;
        let (start, end) = (self.arguments.number(&START_LINE), self.arguments.number(&END_LINE));
        if let (Some(start), Some(end)) = (start, end)
            && end < start
        {
            return Err("`end_line` must not come before `start_line`.".into());
        }
        let whole = match self.memory_at(&path).await {
            Ok(whole) => whole,
            Err(error) => return Err(self.unread(&path, error).await),
        };
        let mut data = json!({
            "store": self.store.slug, "path": whole.path, "summary": whole.summary,
            "content_sha256": whole.content_sha256, "content_size_bytes": whole.byte_size,
            "updated_at": whole.updated_at,
        });
        let text = match (start, end) {
            (None, None) => whole.content,
            _ => range(&whole.content, start.unwrap_or(1), end.unwrap_or(usize::MAX), &mut data).map_err(
                |lines| format!("{} has {lines} lines: `start_line` is behind them.", path.as_str()),
            )?,
        };
        data["content"] = text.as_str().into();
        Ok(result(text, data))
    }
}

/// Lines `start` to `end` of a text, each with its line break, so that ranges in a row make the whole.
///
/// # Errors
/// The text does not have so many lines: their number.
fn range(text: &str, start: usize, end: usize, data: &mut Value) -> Result<String, usize> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let end = end.min(lines.len());
    if start > lines.len().max(1) {
        return Err(lines.len());
    }
    let left = lines.len() - end;
    data["start_line"] = start.into();
    data["end_line"] = end.into();
    data["lines"] = lines.len().into();
    data["left"] = left.into();
    if left > 0 {
        data["next_start_line"] = (end + 1).into();
    }
    Ok(lines.get(start - 1..end).unwrap_or_default().concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_in_a_row_make_the_whole() {
        for text in ["", "\n", "a", "a\n", "a\nb\n\nc", "a\r\nb\r\n"] {
            for step in 1..4 {
                let (mut joined, mut start) = (String::new(), Some(1));
                while let Some(from) = start {
                    let mut data = json!({});
                    joined += &range(text, from, from + step - 1, &mut data).expect("lines");
                    start = data["next_start_line"].as_u64().map(|line| line as usize);
                }
                assert_eq!(joined, text);
            }
        }
    }

    #[test]
    fn a_range_behind_the_text_is_a_mistake_and_one_over_its_end_is_not() {
        assert_eq!(range("a\nb\n", 3, 9, &mut json!({})), Err(2));
        let mut data = json!({});
        assert_eq!(range("a\nb\n", 2, 9, &mut data).as_deref(), Ok("b\n"));
        assert_eq!((&data["end_line"], &data["left"]), (&json!(2), &json!(0)));
    }
}
