//! Stores as files: an archive that keeps a store whole, and memories as Markdown. docs/EXPORT.md says what is in them.
//!
//! Both are a tar in zstd, written and read piece by piece: what is held at once is a chunk of rows and one content.
//! No I/O of its own: it writes bytes and reads a [`std::io::Read`].

pub mod markdown;

mod entries;
mod manifest;
mod reader;
mod writer;

pub use manifest::{ENTRY, FORMAT, IndexRow, Manifest, StoreFields, VERSION, tree_sha256};
pub use reader::{ArchiveError, Bounds, End, Found, Item, Reader};
pub use writer::{Writer, groups};

#[cfg(test)]
mod tests;
