//! Receipts: what was answered to a request with an idempotency key. spec/recursion.md 2.1.

use serde::{Deserialize, Serialize};

use crate::hash::Sha256;
use crate::records::{Kind, RecordId};
use crate::time::Timestamp;
use crate::work::document::{Document, kind};

/// How long a receipt counts.
pub const RECEIPT_SECS: u64 = 24 * 60 * 60;

/// What was answered to a request. It is committed with what the request did, so that neither is there alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    /// The hash of the key.
    key: RecordId,
    /// The hash of all that makes up the request.
    identity: String,
    /// The answer, as the dialect wrote it down.
    pub answer: String,
    /// When it was given.
    pub created_at: Timestamp,
}

impl Receipt {
    /// The receipt of the request with this key and identity.
    pub fn new(key: RecordId, identity: Sha256, answer: String, created_at: Timestamp) -> Self {
        Self { key, identity: identity.to_string(), answer, created_at }
    }

    /// What the receipt of a key is found by.
    pub fn id_of(key: &str) -> RecordId {
        let hash = Sha256::of(&[b"idempotency key\0", key.as_bytes()].concat());
        let mut id = [0; 16];
        id.copy_from_slice(&hash.as_bytes()[..16]);
        id
    }

    /// Whether it is of the same request.
    pub fn is_of(&self, identity: Sha256) -> bool {
        self.identity == identity.to_string()
    }

    /// When it stops to count.
    pub fn ends_at(&self) -> Timestamp {
        self.created_at.plus_millis(RECEIPT_SECS * 1_000)
    }
}

impl Document for Receipt {
    const KIND: Kind = kind::RECEIPT;

    fn record_id(&self) -> RecordId {
        self.key
    }

    fn created_at(&self) -> Timestamp {
        self.created_at
    }

    fn due_at(&self) -> Option<Timestamp> {
        Some(self.ends_at())
    }
}
