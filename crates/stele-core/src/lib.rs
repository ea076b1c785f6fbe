//! The core of Stele: domain types with parsing constructors, the rules, and the ports that edges implement.
//!
//! It knows no web, SQL, FUSE or model crate and no async runtime (of tokio only `sync`, which needs none).
//! `docs/ARCHITECTURE.md` has the map.

pub mod access;
pub mod backup;
pub mod changeset;
pub mod clock;
pub mod command;
pub mod decide;
pub mod dump;
pub mod edit;
pub mod embedder;
pub mod feed;
pub mod hash;
pub mod id;
pub mod import;
pub mod key;
pub mod limits;
pub mod list;
pub mod memory_tool;
pub mod merge;
pub mod meter;
pub mod model;
pub mod models;
pub mod path;
pub mod records;
pub mod refusal;
pub mod restoration;
pub mod retention;
#[cfg(feature = "test-util")]
pub mod samples;
pub mod scratch;
pub mod search;
pub mod searcher;
pub mod service;
pub mod storage;
pub mod text;
pub mod time;
pub mod watch;
pub mod work;
