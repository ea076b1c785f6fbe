//! Stores, memories and versions, as the Anthropic dialect spells them. spec/anthropic.md 2 to 4.

use std::collections::BTreeMap;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{Client, ClientError};

/// Most items of a page.
const PAGE: usize = 100;
/// Most memories or versions of a page that has their contents.
const WHOLE: usize = 20;
/// What is written with percent signs in addresses: all but the unreserved characters of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A store.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[expect(missing_docs, reason = "spec/anthropic.md 2.1 says what each field is")]
pub struct Store {
    pub id: String,
    pub r#type: String,
    pub name: String,
    pub description: String,
    pub metadata: BTreeMap<String, String>,
    pub created_at: String,
    pub updated_at: String,
    pub archived_at: Option<String>,
}

/// A store's slug, which stays when the store gets another name.
#[derive(Clone, Debug, Deserialize)]
pub struct Slug {
    /// The store's id, as a UUID.
    pub memory_store_id: String,
    /// The slug; no other store of the workspace has it.
    pub slug: String,
    /// `reflection` where its memories are learned from sessions, else `curated`.
    pub origin: String,
}

/// A live memory; `content` is there where it was asked for.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[expect(missing_docs, reason = "spec/anthropic.md 3.1 says what each field is")]
pub struct Memory {
    pub id: String,
    pub r#type: String,
    pub memory_store_id: String,
    pub memory_version_id: String,
    pub path: String,
    pub content: Option<String>,
    pub content_size_bytes: u64,
    pub content_sha256: String,
    pub created_at: String,
    pub updated_at: String,
}

/// An entry of a list of memories.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub enum Entry {
    /// A memory.
    Memory(Box<Memory>),
    /// A directory; its path ends with `/`.
    Directory {
        /// `memory_prefix`.
        r#type: String,
        /// Its path.
        path: String,
    },
}

/// Who wrote or redacted a version: a type and an id under a name of the type's.
pub type Actor = BTreeMap<String, String>;

/// A version.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[expect(missing_docs, reason = "spec/anthropic.md 4.1 says what each field is")]
pub struct Version {
    pub id: String,
    pub r#type: String,
    pub memory_store_id: String,
    pub memory_id: String,
    pub operation: String,
    pub created_at: String,
    pub created_by: Option<Actor>,
    pub path: Option<String>,
    pub content: Option<String>,
    pub content_sha256: Option<String>,
    pub content_size_bytes: Option<u64>,
    pub redacted_at: Option<String>,
    pub redacted_by: Option<Actor>,
}

/// What an update of a memory changes.
#[derive(Clone, Debug, Default)]
pub struct Update<'a> {
    /// The new content.
    pub content: Option<&'a str>,
    /// The new path.
    pub path: Option<&'a str>,
    /// The hash that the present content must have.
    pub expected: Option<&'a str>,
}

impl Update<'_> {
    fn body(&self) -> Value {
        let mut body = json!({});
        if let Some(content) = self.content {
            body["content"] = content.into();
        }
        if let Some(path) = self.path {
            body["path"] = path.into();
        }
        if let Some(hash) = self.expected {
            body["precondition"] = json!({"type": "content_sha256", "content_sha256": hash});
        }
        body
    }
}

#[derive(Deserialize)]
struct Slugs {
    memory_stores: Vec<Slug>,
}

#[derive(Deserialize)]
struct Page<T> {
    data: Vec<T>,
    next_page: Option<String>,
}

/// A text as part of an address.
pub fn encoded(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// A list, fetched page by page as it is read.
pub(crate) struct Pages<'a, T> {
    client: &'a Client,
    address: String,
    ready: std::vec::IntoIter<T>,
    /// The query of the next page; `None` behind the last.
    next: Option<String>,
}

impl<T: DeserializeOwned> Iterator for Pages<'_, T> {
    type Item = Result<T, ClientError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(item) = self.ready.next() {
                return Some(Ok(item));
            }
            let address = format!("{}{}", self.address, self.next.take()?);
            match self.client.get(&address).and_then(|answer| self.client.typed::<Page<T>>(answer)) {
                Ok(page) => {
                    self.next = page.next_page.map(|cursor| format!("&page={}", encoded(&cursor)));
                    self.ready = page.data.into_iter();
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// The calls; each fails with the server's refusal, or where there is no server.
#[expect(clippy::missing_errors_doc, reason = "all of them the same, as the line above says")]
impl Client {
    pub(crate) fn pages<T>(&self, address: String) -> Pages<'_, T> {
        Pages { client: self, address, ready: Vec::new().into_iter(), next: Some(String::new()) }
    }

    /// Stores, newest first.
    pub fn stores(&self, archived_too: bool) -> impl Iterator<Item = Result<Store, ClientError>> {
        self.pages(format!("/v1/memory_stores?limit={PAGE}&include_archived={archived_too}"))
    }

    /// The slugs of all stores. The Anthropic dialect has none, so the other one is asked. spec/recursion.md 5.1.
    pub fn slugs(&self) -> Result<Vec<Slug>, ClientError> {
        let answer = self.get("/managed-agents/v1/memory_stores?include_archived=true")?;
        Ok(self.typed::<Slugs>(answer)?.memory_stores)
    }

    /// A store.
    pub fn store(&self, id: &str) -> Result<Store, ClientError> {
        self.typed(self.get(&store_address(id, ""))?)
    }

    /// Makes a store out of `name`, `description` and `metadata`.
    pub fn store_create(&self, body: &Value) -> Result<Store, ClientError> {
        self.typed(self.post("/v1/memory_stores", body)?)
    }

    /// Changes what `body` names of `name`, `description` and `metadata`.
    pub fn store_update(&self, id: &str, body: &Value) -> Result<Store, ClientError> {
        self.typed(self.post(&store_address(id, ""), body)?)
    }

    /// Makes a store read-only for good.
    pub fn store_archive(&self, id: &str) -> Result<Store, ClientError> {
        self.typed(self.post(&store_address(id, "/archive"), &json!({}))?)
    }

    /// Deletes a store with all that is in it.
    pub fn store_delete(&self, id: &str) -> Result<(), ClientError> {
        self.delete(&store_address(id, "")).map(|_| ())
    }

    /// Every memory below `prefix`, which starts and ends with `/`, by path.
    pub fn memories(&self, store: &str, prefix: &str) -> impl Iterator<Item = Result<Memory, ClientError>> {
        let query = format!("/memories?limit={PAGE}&path_prefix={}", encoded(prefix));
        self.pages(store_address(store, &query))
    }

    /// Every memory with its content, by path.
    pub fn memories_whole(&self, store: &str) -> impl Iterator<Item = Result<Memory, ClientError>> {
        self.pages(store_address(store, &format!("/memories?limit={WHOLE}&view=full")))
    }

    /// The memories and directories directly below `prefix`, by path.
    pub fn children(&self, store: &str, prefix: &str) -> impl Iterator<Item = Result<Entry, ClientError>> {
        let query = format!("/memories?limit={PAGE}&depth=1&path_prefix={}", encoded(prefix));
        self.pages(store_address(store, &query))
    }

    /// The memory at `path`, without its content; `None` where there is none. The dialect finds memories by id only,
    /// so this reads the list of the directory up to the path.
    pub fn memory_at(&self, store: &str, path: &str) -> Result<Option<Memory>, ClientError> {
        let directory = path.rfind('/').map_or("/", |end| &path[..=end]);
        for entry in self.children(store, directory) {
            match entry? {
                Entry::Memory(memory) if memory.path == path => return Ok(Some(*memory)),
                Entry::Memory(memory) if memory.path.as_str() > path => break,
                _ => {}
            }
        }
        Ok(None)
    }

    /// A memory with its content.
    pub fn memory(&self, store: &str, id: &str) -> Result<Memory, ClientError> {
        self.typed(self.get(&store_address(store, &format!("/memories/{}", encoded(id))))?)
    }

    /// Makes a memory.
    pub fn memory_create(&self, store: &str, path: &str, content: &str) -> Result<Memory, ClientError> {
        let body = json!({"path": path, "content": content});
        self.typed(self.post(&store_address(store, "/memories"), &body)?)
    }

    /// Changes a memory.
    pub fn memory_update(&self, store: &str, id: &str, update: &Update<'_>) -> Result<Memory, ClientError> {
        let address = store_address(store, &format!("/memories/{}", encoded(id)));
        self.typed(self.post(&address, &update.body())?)
    }

    /// Deletes a memory whose content has the hash `expected`, where one is given.
    pub fn memory_delete(&self, store: &str, id: &str, expected: Option<&str>) -> Result<(), ClientError> {
        let query = expected.map(|hash| format!("?expected_content_sha256={hash}")).unwrap_or_default();
        self.delete(&store_address(store, &format!("/memories/{}{query}", encoded(id)))).map(|_| ())
    }

    /// The versions of a store, or of one memory in it, newest first, without contents.
    pub fn versions(
        &self,
        store: &str,
        memory: Option<&str>,
    ) -> impl Iterator<Item = Result<Version, ClientError>> {
        let memory = memory.map(|id| format!("&memory_id={}", encoded(id))).unwrap_or_default();
        self.pages(store_address(store, &format!("/memory_versions?limit={PAGE}{memory}")))
    }

    /// The versions of a store with their contents, newest first.
    pub fn versions_whole(&self, store: &str) -> impl Iterator<Item = Result<Version, ClientError>> {
        self.pages(store_address(store, &format!("/memory_versions?limit={WHOLE}&view=full")))
    }

    /// A version with its content.
    pub fn version(&self, store: &str, id: &str) -> Result<Version, ClientError> {
        self.typed(self.get(&store_address(store, &format!("/memory_versions/{}", encoded(id))))?)
    }

    /// Removes the content of a version for good.
    pub fn version_redact(&self, store: &str, id: &str) -> Result<Version, ClientError> {
        let address = store_address(store, &format!("/memory_versions/{}/redact", encoded(id)));
        self.typed(self.post(&address, &json!({}))?)
    }
}

pub(crate) fn store_address(id: &str, rest: &str) -> String {
    format!("/v1/memory_stores/{}{rest}", encoded(id))
}
