//! The storage port on embedded SQLite. DESIGN 5.
//!
//! One writer thread commits whatever waits together; reader threads hold one read-only connection each; neither
//! ever runs on the async threads. Rules live in `stele_core::decide`, not here.

mod backup;
mod check;
mod content;
mod dump;
mod fault;
mod feed;
mod gaps;
mod ledger;
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
mod replace;
mod restore;
mod rows;
mod space;
mod storage;
mod sweep;
mod writer;
mod writes;

pub use backup::{Inspected, Present, check_file, inspect, seal};
pub use check::{Damage, check, scrub};
pub use dump::{SqliteDump, SqliteLoad};
pub use lock::{LOCK_FILE, Locked, is_free, lock};
pub use open::{Config, FILE, OpenError, RESTORE_DRAFT};
pub use replace::{Draft, Known, Replayed, known};
pub use storage::SqliteStorage;
pub use store_codec::Compression;
