//! `memory_history`.

use serde::Deserialize;
use serde_json::{Value, json};
use stele_client::{ClientError, encoded};
use stele_core::path::MemoryPath;

use super::Call;
use super::browse::line;
use crate::answer::{Brought, failure, fits, refusal, result};
use crate::arguments::{LIMIT, PAGE, PATH, USUAL};
use crate::door::{Ask, Door};

/// Most versions of a page of the server.
const PAGE_OF: usize = 100;
/// Most pages that are looked through for the memory that was once at a path, or counted to say how many are left.
const PAGES: usize = 100;

/// A version. spec/recursion.md 4.3.
#[derive(Debug, Deserialize)]
struct Version {
    memory_version_id: String,
    memory_id: String,
    operation: String,
    author_kind: String,
    author_session_id: Option<String>,
    rationale: Option<String>,
    path: String,
    content_sha256: Option<String>,
    byte_size: Option<u64>,
    created_at: String,
    redacted_at: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Versions {
    memory_versions: Vec<Version>,
    next_cursor: Option<String>,
}

impl<D: Door> Call<'_, D> {
    async fn versions(
        &self,
        of: Option<&str>,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Versions, ClientError> {
        let mut query = format!("/memory_versions?limit={limit}");
        for (name, value) in [("memory_id", of), ("cursor", cursor)] {
            if let Some(value) = value {
                query += &format!("&{name}={}", encoded(value));
            }
        }
        let answer = self.door.ask(Ask::Get(self.store.recursion(&query))).await?;
        serde_json::from_value(answer)
            .map_err(|error| ClientError::Strange { url: "the server".into(), cause: error.to_string() })
    }

    /// The id of the memory at a path, else of the one that was there last.
    async fn memory_past(&self, path: &MemoryPath) -> Result<String, String> {
        let missing = match self.memory_at(path).await {
            Ok(whole) => return Ok(whole.memory_id),
            Err(error) if error.status() == Some(404) => error,
            Err(error) => return Err(refusal(&error, path.as_str())),
        };
        let mut cursor: Option<String> = None;
        for _ in 0..PAGES {
            let page =
                self.versions(None, PAGE_OF, cursor.as_deref()).await.map_err(|error| failure(&error))?;
            if let Some(version) = page.memory_versions.iter().find(|version| version.path == path.as_str()) {
                return Ok(version.memory_id.clone());
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        Err(self.unread(path, missing).await)
    }

    pub(super) async fn history(&self) -> Brought {
        let path = self.arguments.text(&PATH).is_some().then(|| self.arguments.path(&PATH)).transpose()?;
        let of = match &path {
            Some(path) => Some(self.memory_past(path).await?),
            None => None,
        };
        let mut limit = self.arguments.number(&LIMIT).unwrap_or(USUAL.1 as usize);
        let cursor = self.arguments.text(&PAGE);
        loop {
            let page = match self.versions(of.as_deref(), limit, cursor).await {
                Ok(page) => page,
                Err(ClientError::Refused { status: 400, .. }) if cursor.is_some() => {
                    return Err("`page` is none of this history: leave it out, or repeat path.".into());
                }
                Err(error) => return Err(failure(&error)),
            };
            if page.memory_versions.is_empty() {
                let text = self.nothing("Nothing has changed here yet.", "").await?;
                return Ok(result(
                    text.trim_end(),
                    json!({"store": self.store.slug, "versions": [], "left": 0}),
                ));
            }
            let left = self
                .left(of.as_deref(), page.next_cursor.as_deref())
                .await
                .map_err(|error| failure(&error))?;
            let shown = self.told(&page, left);
            if fits(&shown) || limit == 1 {
                return Ok(shown);
            }
            limit = (page.memory_versions.len() / 2).max(1);
        }
    }

    /// How many versions follow a page.
    async fn left(&self, of: Option<&str>, next: Option<&str>) -> Result<usize, ClientError> {
        let (mut count, mut cursor) = (0, next.map(str::to_owned));
        for _ in 0..PAGES {
            let Some(next) = cursor else { break };
            let page = self.versions(of, PAGE_OF, Some(&next)).await?;
            count += page.memory_versions.len();
            cursor = page.next_cursor;
        }
        Ok(count)
    }

    fn told(&self, page: &Versions, left: usize) -> rmcp::model::CallToolResult {
        let mut text = String::new();
        let mut versions: Vec<Value> = Vec::with_capacity(page.memory_versions.len());
        for version in &page.memory_versions {
            let by = version
                .author_session_id
                .as_ref()
                .map_or_else(|| version.author_kind.clone(), |session| format!("session {session}"));
            let size = match (&version.redacted_at, version.byte_size) {
                (Some(_), _) => ", redacted".to_owned(),
                (None, Some(bytes)) if version.operation != "delete" => format!(", {bytes} bytes"),
                _ => String::new(),
            };
            let why = version.rationale.as_deref().map(|why| format!(": {}", line(why))).unwrap_or_default();
            text += &format!(
                "{} {} {} by {by}{size}{why}\n",
                version.created_at, version.operation, version.path
            );
            versions.push(json!({
                "memory_version_id": version.memory_version_id, "created_at": version.created_at,
                "operation": version.operation, "path": version.path, "by": by, "reason": version.rationale,
                "content_sha256": version.content_sha256, "content_size_bytes": version.byte_size,
                "redacted": version.redacted_at.is_some(),
            }));
        }
        let mut data = json!({"store": self.store.slug, "versions": versions, "left": left});
        if let Some(cursor) = &page.next_cursor {
            text += &format!("\n{left} left: memory_history again with page {cursor:?}");
            data["page"] = cursor.as_str().into();
        }
        result(text.trim_end(), data)
    }
}
