//! A store as an ordinary folder, for places without FUSE: macOS, containers that may not mount. DESIGN 9.
//!
//! Both sides are compared with what was the same the last time ([`state`]); [`plan`] says what follows for each path,
//! by the official worker's merge rules (spec/anthropic.md 13); [`pass`] carries it out; [`watch`] does so again and
//! again. Where both sides changed the store wins, as there, but the local text is kept aside and named.

mod error;
mod folder;
mod names;
mod pass;
mod plan;
mod remote;
mod report;
mod state;
mod watch;

pub use error::SyncError;
pub use pass::{Moment, Options, Sync};
pub use report::{Done, Item, Left, Report};
pub use watch::{Event, watch};
