//! Caps as values: one figure for every dialect and every writer, set in the configuration. DESIGN 4.

/// The caps of an installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Live memories a store may have.
    pub memories_per_store: u64,
    /// Bytes of UTF-8 a content may have.
    pub content_bytes: usize,
    /// Characters a summary may have.
    pub summary_chars: usize,
    /// Stores a workspace may have, archived ones included; `None`: any number.
    pub stores_per_workspace: Option<u64>,
    /// Bytes that a store's live contents may have together; `None`: any number.
    pub store_bytes: Option<u64>,
    /// Versions a store may have; `None`: any number.
    pub versions_per_store: Option<u64>,
    /// Stores that a session may have attached, the agent's learned one included.
    pub stores_per_session: usize,
    /// Characters that the instructions of an attachment may have.
    pub instructions_chars: usize,
    /// How long, in seconds, every version is kept.
    pub version_retention_secs: u64,
    /// How many of a live memory's newest versions are kept whatever their age; its head always is.
    pub versions_kept: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memories_per_store: 10_000,
            content_bytes: 102_400,
            summary_chars: 512,
            stores_per_workspace: None,
            store_bytes: None,
            versions_per_store: None,
            stores_per_session: 8,
            instructions_chars: 4_096,
            version_retention_secs: 30 * 24 * 60 * 60,
            versions_kept: 10,
        }
    }
}
