//! Finding and following: searches, whole trees, many texts, changes of a store. DESIGN 7 and 8.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::memory_stores::{Actor, encoded, store_address};
use crate::{Client, ClientError};

/// Most texts that are asked for at once.
pub(crate) const TEXTS: usize = 200;
/// Most changes of a page.
const CHANGES: usize = 1_000;

/// A piece of a snippet, in Unicode scalar values from its start.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[expect(missing_docs, reason = "the line above says what they are")]
pub struct Span {
    pub start: usize,
    pub end: usize,
}

/// A memory that a search found.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[expect(missing_docs, reason = "DESIGN 8 says what each field is")]
pub struct Hit {
    pub memory_id: String,
    pub path: String,
    pub summary: String,
    pub snippet: String,
    pub highlights: Vec<Span>,
    pub score: f64,
    pub updated_at: String,
}

/// A page of hits, best first.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[expect(missing_docs, reason = "DESIGN 8 says what each field is")]
pub struct Hits {
    pub data: Vec<Hit>,
    pub total_matches: usize,
    pub next_page: Option<String>,
}

/// A memory in the tree of a store, its ids as UUIDs.
#[derive(Clone, Debug, Deserialize)]
#[expect(missing_docs, reason = "docs/openapi.json says what each field is")]
pub struct Node {
    pub path: String,
    pub memory_id: String,
    pub memory_version_id: String,
    pub content_sha256: String,
    pub content_size_bytes: u64,
    pub updated_at: String,
}

/// The text of a memory.
#[derive(Clone, Debug, Deserialize)]
#[expect(missing_docs, reason = "docs/openapi.json says what each field is")]
pub struct Text {
    pub memory_id: String,
    pub memory_version_id: String,
    pub path: Option<String>,
    pub summary: Option<String>,
    pub content: Option<String>,
}

/// A change of a store. DESIGN 7.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[expect(missing_docs, reason = "DESIGN 7 says what each field is")]
pub struct Change {
    pub sequence: u64,
    pub memory_id: Option<String>,
    pub memory_version_id: Option<String>,
    pub operation: String,
    pub path: Option<String>,
    pub previous_path: Option<String>,
    pub content_sha256: Option<String>,
    pub content_size_bytes: Option<u64>,
    pub created_by: Option<Actor>,
    pub created_at: String,
}

/// A page of changes, oldest first, and where the next one goes on.
#[derive(Clone, Debug, Deserialize)]
#[expect(missing_docs, reason = "DESIGN 7 says what each field is")]
pub struct Changes {
    pub data: Vec<Change>,
    pub last_sequence: u64,
}

#[derive(Deserialize)]
struct Snapshot {
    max_memories: Option<u64>,
    memories: Vec<Node>,
}

#[derive(Deserialize)]
struct Contents {
    contents: Vec<Text>,
    remaining: Remaining,
}

#[derive(Deserialize)]
struct Remaining {
    memory_ids: Vec<String>,
    memory_version_ids: Vec<String>,
}

/// The calls; each fails with the server's refusal, or where there is no server.
#[expect(clippy::missing_errors_doc, reason = "all of them the same, as the line above says")]
impl Client {
    /// Searches a store below `prefix`, which starts and ends with `/`.
    pub fn search(
        &self,
        store: &str,
        query: &str,
        prefix: &str,
        limit: usize,
        page: Option<&str>,
    ) -> Result<Hits, ClientError> {
        let mut body = json!({"query": query, "path_prefix": prefix, "limit": limit});
        if let Some(page) = page {
            body["page"] = page.into();
        }
        self.typed(self.post(&store_address(store, "/memories/search"), &body)?)
    }

    /// Every memory of a store by path, as of one moment. `store` is a UUID.
    pub fn tree(&self, store: &str) -> Result<Vec<Node>, ClientError> {
        Ok(self.tree_and_cap(store)?.0)
    }

    /// The same, and how many memories the store may hold, where the server says so.
    pub fn tree_and_cap(&self, store: &str) -> Result<(Vec<Node>, Option<u64>), ClientError> {
        let answer = self.get(&format!("/stele/v1/memory_stores/{}/snapshot", encoded(store)))?;
        let Snapshot { max_memories, memories } = self.typed(answer)?;
        Ok((memories, max_memories))
    }

    /// The texts of memories, batch by batch in their order; those that are gone are left out. `store` is a UUID.
    pub fn texts(
        &self,
        store: &str,
        memories: Vec<String>,
    ) -> impl Iterator<Item = Result<Vec<Text>, ClientError>> {
        self.contents(store, memories, "memory_ids", |rest| rest.memory_ids)
    }

    /// The texts of versions, as [`Self::texts`]; a redacted one and a deletion have none.
    pub fn version_texts(
        &self,
        store: &str,
        versions: Vec<String>,
    ) -> impl Iterator<Item = Result<Vec<Text>, ClientError>> {
        self.contents(store, versions, "memory_version_ids", |rest| rest.memory_version_ids)
    }

    /// Asks for what `field` of a request names, until nothing that `rest` gives remains.
    fn contents(
        &self,
        store: &str,
        ids: Vec<String>,
        field: &'static str,
        rest_of: fn(Remaining) -> Vec<String>,
    ) -> impl Iterator<Item = Result<Vec<Text>, ClientError>> {
        let address = format!("/stele/v1/memory_stores/{}/contents", encoded(store));
        let mut wanted = ids;
        std::iter::from_fn(move || {
            if wanted.is_empty() {
                return None;
            }
            let rest = wanted.split_off(wanted.len().min(TEXTS));
            let body: Value = json!({field: wanted});
            match self.post(&address, &body).and_then(|answer| self.typed::<Contents>(answer)) {
                Ok(found) => {
                    wanted = rest_of(found.remaining);
                    wanted.extend(rest);
                    Some(Ok(found.contents))
                }
                Err(error) => {
                    wanted = Vec::new();
                    Some(Err(error))
                }
            }
        })
    }

    /// Where a store's history stands, and in which life of the database.
    pub fn store_stands(&self, id: &str) -> Result<(u64, Option<String>), ClientError> {
        let answer = self.get_at(&store_address(id, ""))?;
        Ok((answer.sequence.unwrap_or_default(), answer.epoch))
    }

    /// The changes of a store behind `after`, waited for up to `wait_secs` where there are none.
    pub fn changes(
        &self,
        store: &str,
        after: u64,
        epoch: Option<&str>,
        wait_secs: u64,
    ) -> Result<Changes, ClientError> {
        let epoch = epoch.map(|epoch| format!("&epoch={}", encoded(epoch))).unwrap_or_default();
        let query = format!("/changes?after={after}&limit={CHANGES}&wait={wait_secs}{epoch}");
        self.typed(self.get(&store_address(store, &query))?)
    }
}
