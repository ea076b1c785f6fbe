//! The store, seen whole: its tree as of one moment, many texts at once, many changes at once. DESIGN 7.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};
use stele_client::{Client, ClientError};
use stele_core::hash::Sha256;

use crate::SyncError;

/// Most texts of one request.
const TEXTS: usize = 200;

/// A memory in the tree.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// Its id, as a UUID.
    pub(crate) memory_id: String,
    pub(crate) sha256: Sha256,
}

/// The tree of a store as of one sequence.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub(crate) sequence: u64,
    /// The life of the database that the sequence is of.
    pub(crate) epoch: String,
    pub(crate) nodes: BTreeMap<String, Node>,
}

/// A text as it is now.
pub(crate) struct Text {
    pub(crate) memory_id: String,
    pub(crate) path: String,
    pub(crate) content: String,
}

#[derive(Deserialize)]
struct Snapshot {
    sequence: u64,
    epoch: String,
    memories: Vec<SnapshotMemory>,
}

#[derive(Deserialize)]
struct SnapshotMemory {
    path: String,
    memory_id: String,
    content_sha256: String,
}

#[derive(Deserialize)]
struct Contents {
    contents: Vec<ContentsText>,
    remaining: Remaining,
}

#[derive(Deserialize)]
struct ContentsText {
    memory_id: String,
    path: Option<String>,
    content: Option<String>,
}

#[derive(Deserialize)]
struct Remaining {
    memory_ids: Vec<String>,
}

fn typed<T: serde::de::DeserializeOwned>(answer: Value) -> Result<T, SyncError> {
    serde_json::from_value(answer).map_err(|error| SyncError::Strange(error.to_string()))
}

/// The tree of the store with this UUID.
pub(crate) fn tree(client: &Client, store: &str) -> Result<Tree, SyncError> {
    let snapshot: Snapshot = typed(client.get(&format!("/stele/v1/memory_stores/{store}/snapshot"))?)?;
    let node = |memory: SnapshotMemory| {
        let sha256 =
            Sha256::parse(&memory.content_sha256).map_err(|error| SyncError::Strange(error.to_string()))?;
        Ok((memory.path, Node { memory_id: memory.memory_id, sha256 }))
    };
    let nodes = snapshot.memories.into_iter().map(node).collect::<Result<_, SyncError>>()?;
    Ok(Tree { sequence: snapshot.sequence, epoch: snapshot.epoch, nodes })
}

/// The texts of these memories, in batches; what is gone is left out.
pub(crate) fn texts(
    client: &Client,
    store: &str,
    mut wanted: Vec<String>,
    mut each: impl FnMut(Text) -> Result<(), SyncError>,
) -> Result<(), SyncError> {
    let address = format!("/stele/v1/memory_stores/{store}/contents");
    while !wanted.is_empty() {
        let rest = wanted.split_off(wanted.len().min(TEXTS));
        let found: Contents = typed(client.post(&address, &json!({"memory_ids": wanted}))?)?;
        if found.contents.is_empty() && found.remaining.memory_ids.len() >= wanted.len() {
            return Err(SyncError::Strange("it sends no texts".into()));
        }
        for text in found.contents {
            if let (Some(path), Some(content)) = (text.path, text.content) {
                each(Text { memory_id: text.memory_id, path, content })?;
            }
        }
        wanted = found.remaining.memory_ids;
        wanted.extend(rest);
    }
    Ok(())
}

/// Carries out these changes of the store with this id, all or none.
pub(crate) fn change(client: &Client, store: &str, changes: &[&Value]) -> Result<(), ClientError> {
    client.post(&format!("/v1/memory_stores/{store}/changesets"), &json!({"changes": changes})).map(|_| ())
}
