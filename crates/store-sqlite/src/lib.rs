//! The storage port on embedded SQLite. DESIGN 5.
//!
//! One writer thread commits whatever waits together; reader threads hold one read-only connection each; neither
//! ever runs on the async threads. Rules live in `stele_core::decide`, not here.

mod check;
mod content;
mod dump;
mod fault;
mod feed;
mod gaps;
mod lock;
mod marks;
mod migrate;
mod open;
mod queue;
mod reader;
mod reads;
mod reclaim;
mod record_dump;
mod record_reads;
mod record_writes;
mod records;
mod rows;
mod space;
mod storage;
mod sweep;
mod writer;
mod writes;

pub use check::{Damage, check, scrub};
pub use dump::{SqliteDump, SqliteLoad};
pub use lock::{Locked, lock};
pub use open::{Config, OpenError};
pub use storage::SqliteStorage;
pub use store_codec::Compression;
