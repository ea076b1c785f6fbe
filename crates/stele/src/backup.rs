//! Backups: a directory with a database file of Stele's own and a manifest, whichever back end it was made of.
//!
//! The embedded database is copied page by page while it is written to; a PostgreSQL is read row by row in one
//! snapshot, into a database file of the same kind. So one check, one scrub and one restore do for both, and what was
//! made of one back end can be restored into the other.

mod commands;
mod keeper;
mod make;
mod manifest;
mod restore;
mod scrub;

pub(crate) use commands::{holding, run};
pub(crate) use keeper::BackupKeeper;
pub(crate) use make::Source;
pub(crate) use restore::{clear_left, run as restore};
