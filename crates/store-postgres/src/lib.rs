//! The storage port on PostgreSQL: any number of servers on one database. DESIGN 5.
//!
//! A command locks its store's row first, loads its situation in a later statement, is judged by
//! `stele_core::decide`, and is written with COMMIT in one pipelined round. No rule stands in SQL, and nothing that
//! matters lives in a process.

#[macro_use]
mod statements;

mod announce;
mod batch;
mod connect;
mod draft;
mod dump;
mod fault;
mod feed;
mod fill;
mod lanes;
mod ledger;
mod load;
mod marks;
mod migrate;
mod open;
mod pipeline;
mod points;
mod pool;
mod reads;
mod record_reads;
mod record_writes;
mod records;
mod restore;
mod rows;
mod scrub;
mod shared;
mod storage;
mod stores;
mod sweep;
mod tenancy;
mod url;
mod writes;

pub use dump::PostgresDump;
pub use fill::PostgresLoad;
pub use migrate::{Standing, migrate, standing};
pub use open::{Config, OpenError};
pub use scrub::{Scrubbed, scrub};
pub use storage::PostgresStorage;
pub use store_codec::Compression;
pub use url::{Url, UrlError};
