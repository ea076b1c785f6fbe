//! `list_memories`.

use serde::Deserialize;
use serde_json::json;
use stele_client::{ClientError, encoded};

use super::Call;
use crate::answer::{Brought, failure, fits, result};
use crate::arguments::{LIMIT, PAGE, USUAL};
use crate::door::{Ask, Door};

/// A memory in a listing. spec/recursion.md 4.4.
#[derive(Debug, Deserialize)]
pub(super) struct Listed {
    pub(super) path: String,
    #[serde(default)]
    pub(super) summary: String,
    #[serde(default)]
    pub(super) byte_size: u64,
    /// Of a directory: the memories beneath it.
    #[serde(default)]
    pub(super) count: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct Entries {
    entries: Vec<Listed>,
}

impl<D: Door> Call<'_, D> {
    /// What is below a directory: every memory, or one level with the directories counted.
    async fn browse(&self, prefix: &str, depth: u8) -> Result<Vec<Listed>, ClientError> {
        let query = format!("/memories?depth={depth}&path_prefix={}", encoded(prefix));
        let answer = self.door.ask(Ask::Get(self.store.recursion(&query))).await?;
        let entries: Entries = serde_json::from_value(answer)
            .map_err(|error| ClientError::Strange { url: "the server".into(), cause: error.to_string() })?;
        Ok(entries.entries)
    }

    /// How many memories the store holds.
    pub(super) async fn count(&self) -> Result<u64, ClientError> {
        let top = self.browse("/", 1).await?;
        Ok(top.iter().map(|entry| entry.count.unwrap_or(1)).sum())
    }

    /// The sentence for an answer without entries.
    pub(super) async fn nothing(&self, what: &str, hint: &str) -> Result<String, String> {
        let (slug, count) = (&self.store.slug, self.count().await.map_err(|error| failure(&error))?);
        Ok(match count {
            0 => format!("{what} `{slug}` holds 0 memories."),
            1 => format!("{what} `{slug}` holds 1 memory. {hint}"),
            count => format!("{what} `{slug}` holds {count} memories. {hint}"),
        })
    }

    /// Paths like one that is not there: of the same name elsewhere, else in the same directory.
    pub(super) async fn alike(&self, path: &str) -> Vec<String> {
        const MOST: usize = 5;
        let Ok(all) = self.browse("/", 0).await else { return Vec::new() };
        let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_lowercase();
        let directory = |path: &str| path.rfind('/').map_or(String::new(), |end| path[..end].to_lowercase());
        let (wanted, within) = (name(path), directory(path));
        let named = all.iter().filter(|entry| name(&entry.path) == wanted);
        let below = format!("{}/", path.trim_end_matches('/'));
        let beside = all.iter().filter(|entry| {
            name(&entry.path) != wanted
                && (directory(&entry.path) == within || entry.path.starts_with(&below))
        });
        named.chain(beside).take(MOST).map(|entry| entry.path.clone()).collect()
    }

    /// Pages go on behind a path, so that a walk shows every memory that was there all the while, once.
    pub(super) async fn list(&self) -> Brought {
        let prefix = self.arguments.prefix()?;
        let limit = self.arguments.number(&LIMIT).unwrap_or(USUAL.0 as usize);
        let all = self.browse(&prefix, 0).await.map_err(|error| failure(&error))?;
        let total = all.len();
        let after = self.arguments.text(&PAGE).unwrap_or_default();
        let rest: Vec<Listed> = all.into_iter().filter(|entry| entry.path.as_str() > after).collect();
        if rest.is_empty() {
            let what = match after {
                "" if prefix == "/" => "There is nothing yet.".to_owned(),
                "" => format!("There is nothing below {prefix}."),
                _ => "There is no further page.".to_owned(),
            };
            let text =
                self.nothing(&what, "Call list_memories without path_prefix and page to see them.").await?;
            let data = json!({"store": self.store.slug, "memories": [], "total": total, "left": 0});
            return Ok(result(text, data));
        }
        let mut shown = rest.len().min(limit);
        loop {
            let listed = self.listed(&rest[..shown], rest.len() - shown, total);
            if fits(&listed) || shown == 1 {
                return Ok(listed);
            }
            shown /= 2;
        }
    }

    fn listed(&self, shown: &[Listed], left: usize, total: usize) -> rmcp::model::CallToolResult {
        let mut text = String::new();
        for entry in shown {
            let colon = if entry.summary.is_empty() { "" } else { ": " };
            text += &format!("{} ({} bytes){colon}{}\n", entry.path, entry.byte_size, line(&entry.summary));
        }
        let memories: Vec<_> = shown
            .iter()
            .map(|entry| json!({"path": entry.path, "summary": entry.summary, "size_bytes": entry.byte_size}))
            .collect();
        let mut data = json!({"store": self.store.slug, "memories": memories, "total": total, "left": left});
        if let Some(last) = shown.last().filter(|_| left > 0) {
            text += &format!("\n{left} left: list_memories again with page {:?}", last.path);
            data["page"] = last.path.as_str().into();
        }
        result(text.trim_end(), data)
    }
}

/// A summary on one line.
pub(super) fn line(text: &str) -> String {
    text.split(['\n', '\r']).map(str::trim).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}
