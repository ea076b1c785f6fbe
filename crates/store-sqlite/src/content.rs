//! Contents in columns. How they are encoded is the business of `store-codec`, the same for every back end.

use bytes::Bytes;
use rusqlite::types::ValueRef;
use stele_core::hash::Sha256;

pub(crate) use store_codec::{Encoded, LARGE_BYTES, encode};

/// The content in a row: its bytes, if they are what the row says they are.
pub(crate) fn decode(encoding: u8, stored: ValueRef<'_>, size: u64, sha256: Sha256) -> Option<Bytes> {
    store_codec::decode(encoding, stored.as_blob().ok()?, size, sha256)
}
