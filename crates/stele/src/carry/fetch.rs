//! What a store holds now, as the routes for mirrors tell it.

use std::collections::BTreeMap;

use stele_client::{Client, Node, Store, Text};

use crate::failure::{Class, fail};
use crate::ids::store_uuid;

/// A memory that is there.
#[derive(Clone, Debug)]
pub(super) struct Present {
    /// As a UUID.
    pub(super) memory: String,
    /// Its version, as a UUID.
    pub(super) version: String,
    pub(super) sha256: String,
    pub(super) size_bytes: usize,
    pub(super) summary: String,
}

/// The id of a store as Stele's own routes take it.
pub(super) fn uuid(store: &Store) -> anyhow::Result<String> {
    store_uuid(&store.id).ok_or_else(|| {
        let message = format!("{} is no id of a Stele: other servers are reached by `stele copy`", store.id);
        fail(Class::Refused, message)
    })
}

/// A store as it is now.
pub(super) struct Now {
    /// Its memories by path, with their summaries.
    pub(super) memories: BTreeMap<String, Present>,
    /// How many it may hold, where the server says so.
    cap: Option<u64>,
}

impl Now {
    pub(super) fn of(client: &Client, store: &Store) -> anyhow::Result<Self> {
        let id = uuid(store)?;
        let mut summaries: BTreeMap<String, String> =
            client.summaries(&id)?.into_iter().map(|one| (one.path, one.summary)).collect();
        let (nodes, cap) = client.tree_and_cap(&id)?;
        let present = |node: Node| {
            let summary = summaries.remove(&node.path).unwrap_or_default();
            let Node { path, memory_id: memory, memory_version_id: version, content_sha256: sha256, .. } =
                node;
            let size_bytes = usize::try_from(node.content_size_bytes).unwrap_or(usize::MAX);
            (path, Present { memory, version, sha256, size_bytes, summary })
        };
        Ok(Self { memories: nodes.into_iter().map(present).collect(), cap })
    }

    /// The memories below `prefix`.
    pub(super) fn below(&self, prefix: &str) -> BTreeMap<String, Present> {
        let below = self.memories.iter().filter(|(path, _)| path.starts_with(prefix));
        below.map(|(path, now)| (path.clone(), now.clone())).collect()
    }

    /// # Errors
    /// The store may not hold so many memories.
    pub(super) fn judge_number(&self, store: &Store, memories: usize) -> anyhow::Result<()> {
        match self.cap.filter(|cap| memories as u64 > *cap) {
            Some(cap) => Err(fail(
                Class::Refused,
                format!(
                    "nothing was sent: {} would hold {memories} memories, and may hold {cap}",
                    store.name
                ),
            )),
            None => Ok(()),
        }
    }
}

/// The texts of memories by their ids, each once.
pub(super) fn texts(
    client: &Client,
    store: &Store,
    memories: Vec<String>,
) -> anyhow::Result<BTreeMap<String, Text>> {
    let mut found = BTreeMap::new();
    for batch in client.texts(&uuid(store)?, memories) {
        found.extend(batch?.into_iter().map(|text| (text.memory_id.clone(), text)));
    }
    Ok(found)
}
