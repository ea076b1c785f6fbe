//! The objects around memory: agents, environments, sessions with their attachments and events, and the work queue of
//! self-hosted environments. DESIGN 2 and 11, spec/anthropic.md 6 to 12, spec/recursion.md 10 and 16.
//!
//! Each is one object, which two dialects show. What changes together is one document: a session's snapshot, fixed
//! when it is made, is kept apart from its small state, so that an event costs one short commit. The rules here are
//! pure; the use cases in [`crate::service`] read, let them decide, and commit with the revisions read.

pub mod agent;
pub mod attachment;
pub mod automation;
pub mod console;
pub mod credential;
pub mod document;
pub mod environment;
pub mod event;
pub mod item;
pub mod note;
pub mod receipt;
pub mod refusal;
pub mod run;
pub mod schedule;
pub mod session;
pub mod timer;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Fields that are kept and shown as they were sent.
pub type Fields = Map<String, Value>;

/// The dialect that something was made through. It decides only where the two have different rules for one object:
/// spec/recursion.md 16.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// Anthropic's.
    Anthropic,
    /// Recursion's.
    Recursion,
}
