//! `write_memory`, `edit_memory`, `rename_memory`, `delete_memory`: changesets of one change, which go by paths.

use serde::Deserialize;
use serde_json::{Value, json};
use stele_client::ClientError;
use stele_core::edit::{NotReplaced, replace_once};
use stele_core::hash::Sha256;
use stele_core::path::MemoryPath;

use super::Call;
use crate::answer::{Brought, refusal, result};
use crate::arguments::{CONTENT, NEW_PATH, NEW_STR, OLD_STR, PATH, SUMMARY};
use crate::door::{Ask, Door};

/// How often an edit is made again on the newest text because somebody else wrote meanwhile. Each time one of those who
/// edit at once gets through, so that of so many all do.
const EDITS: usize = 200;

#[derive(Debug, Deserialize)]
struct Applied {
    data: Vec<One>,
}

#[derive(Debug, Deserialize)]
struct One {
    /// Absent where nothing changed.
    memory_version_id: Option<String>,
}

impl<D: Door> Call<'_, D> {
    /// Carries out one change; whether it changed anything.
    async fn change(&self, change: &Value) -> Result<bool, ClientError> {
        let body = json!({"changes": [change]});
        let answer =
            self.door.ask(Ask::Post(self.store.anthropic("/changesets"), body)).await.map_err(alone)?;
        let applied: Applied = serde_json::from_value(answer)
            .map_err(|error| ClientError::Strange { url: "the server".into(), cause: error.to_string() })?;
        Ok(applied.data.iter().any(|one| one.memory_version_id.is_some()))
    }

    fn change_at(&self, op: &str, path: &MemoryPath) -> Result<Value, String> {
        let mut change = json!({"op": op, "path": path.as_str()});
        if let Some(hash) = self.arguments.expected()? {
            change["expected_content_sha256"] = hash.into();
        }
        Ok(change)
    }

    fn written(&self, path: &MemoryPath, operation: &str, content: &str) -> Brought {
        let (bytes, path) = (content.len(), path.as_str());
        let text = match operation {
            "created" => format!("Created {path} ({bytes} bytes)."),
            "unchanged" => format!("{path} holds that already: nothing changed."),
            _ => format!("Updated {path} ({bytes} bytes)."),
        };
        let data = json!({
            "store": self.store.slug, "path": path, "operation": operation,
            "content_sha256": Sha256::of(content.as_bytes()).to_string(), "content_size_bytes": bytes,
        });
        Ok(result(text, data))
    }

    /// Replaces the text at the path, else makes the memory. Whoever expects a hash expects a memory.
    pub(super) async fn write(&self) -> Brought {
        let path = self.arguments.path(&PATH)?;
        let content = self.arguments.the(&CONTENT);
        let mut update = self.change_at("update", &path)?;
        update["content"] = content.into();
        let mut create = json!({"op": "create", "path": path.as_str(), "content": content});
        if let Some(summary) = self.arguments.text(&SUMMARY) {
            update["summary"] = summary.into();
            create["summary"] = summary.into();
        }
        let (rights, expects) = (self.store.rights, self.arguments.expected()?.is_some());
        let updated = |changed| if changed { "updated" } else { "unchanged" };
        if rights.update {
            match self.change(&update).await {
                Ok(changed) => return self.written(&path, updated(changed), content),
                Err(error) if error.status() == Some(404) && rights.create && !expects => {}
                Err(error) => return Err(refusal(&error, path.as_str())),
            }
        }
        match self.change(&create).await {
            Ok(_) => self.written(&path, "created", content),
            // Somebody else made it a moment ago; or the path is taken by a directory, or lies below a memory.
            Err(taken) if taken.status() == Some(409) && rights.update => match self.change(&update).await {
                Ok(changed) => self.written(&path, updated(changed), content),
                Err(_) => Err(refusal(&taken, path.as_str())),
            },
            Err(error) => Err(refusal(&error, path.as_str())),
        }
    }

    /// Replaces a passage on the text as it stands; what others change meanwhile elsewhere in it stays.
    pub(super) async fn edit(&self) -> Brought {
        let path = self.arguments.path(&PATH)?;
        let expected = self.arguments.expected()?;
        let (old, new) = (self.arguments.the(&OLD_STR), self.arguments.the(&NEW_STR));
        let mut edits = 0;
        loop {
            let whole = match self.memory_at(&path).await {
                Ok(whole) => whole,
                Err(error) => return Err(self.unread(&path, error).await),
            };
            let replaced =
                replace_once(&whole.content, old, new).map_err(|error| not_replaced(&path, &error))?;
            let hash = expected.unwrap_or(&whole.content_sha256);
            let mut update = json!({
                "op": "update", "path": path.as_str(), "content": replaced.text, "expected_content_sha256": hash,
            });
            if let Some(summary) = self.arguments.text(&SUMMARY) {
                update["summary"] = summary.into();
            }
            edits += 1;
            match self.change(&update).await {
                Ok(changed) => {
                    let operation = if changed { "updated" } else { "unchanged" };
                    return self.written(&path, operation, &replaced.text);
                }
                Err(error) if error.is_precondition() && expected.is_none() && edits < EDITS => {}
                Err(error) => return Err(refusal(&error, path.as_str())),
            }
        }
    }

    pub(super) async fn rename(&self) -> Brought {
        let (path, new) = (self.arguments.path(&PATH)?, self.arguments.path(&NEW_PATH)?);
        let mut update = self.change_at("update", &path)?;
        update["new_path"] = new.as_str().into();
        match self.change(&update).await {
            Ok(_) => {
                let (from, to) = (path.as_str(), new.as_str());
                let data = json!({"store": self.store.slug, "path": to, "previous_path": from, "operation": "renamed"});
                Ok(result(format!("Renamed {from} to {to}."), data))
            }
            Err(error) if error.status() == Some(404) => Err(self.unread(&path, error).await),
            Err(error) => Err(refusal(&error, path.as_str())),
        }
    }

    pub(super) async fn delete(&self) -> Brought {
        let path = self.arguments.path(&PATH)?;
        match self.change(&self.change_at("delete", &path)?).await {
            Ok(_) => {
                let path = path.as_str();
                let data = json!({"store": self.store.slug, "path": path, "operation": "deleted"});
                Ok(result(format!("Deleted {path}. Its history stays."), data))
            }
            Err(error) if error.status() == Some(404) => Err(self.unread(&path, error).await),
            Err(error) => Err(refusal(&error, path.as_str())),
        }
    }
}

/// The refusal of a changeset of one change, without the words about its place in the changeset.
fn alone(error: ClientError) -> ClientError {
    match error {
        ClientError::Refused { status, code, message } => {
            let inner = message.strip_prefix("change 0 of the changeset: ");
            let inner = inner.and_then(|text| text.strip_suffix("; nothing was changed")).map(str::to_owned);
            ClientError::Refused { status, code, message: inner.unwrap_or(message) }
        }
        other => other,
    }
}

fn not_replaced(path: &MemoryPath, error: &NotReplaced) -> String {
    let path = path.as_str();
    match error {
        NotReplaced::Absent => {
            format!(
                "`old_str` is not in {path}: read_memory again and copy it exactly, spaces and line breaks too."
            )
        }
        NotReplaced::Several(lines) => {
            let lines: Vec<_> = lines.iter().map(ToString::to_string).collect();
            let lines = lines.join(", ");
            format!(
                "`old_str` is in {path} several times, at lines {lines}: take in more of the text around it."
            )
        }
    }
}
