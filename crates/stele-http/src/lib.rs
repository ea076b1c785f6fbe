//! What every wire needs: keys, request ids, bodies, queries, cursors, the connection loop, and Stele's own routes.
//!
//! It knows no dialect: those build on it and hand it their routes.

pub mod archives;
pub mod attend;
pub mod auth;
pub mod backups;
pub mod body;
mod console;
pub mod cursor;
mod drain;
pub mod flat;
pub mod follow;
pub mod metrics;
mod models;
pub mod openapi;
pub mod own;
pub mod query;
pub mod reference;
pub mod reply;
pub mod request;
pub mod router;
pub mod serve;
pub mod stream;
mod whole;
