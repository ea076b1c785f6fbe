//! The stores of a Stele server as tools of the Model Context Protocol. DESIGN 10.
//!
//! One logic for the tools ([`Tools`]) over a small port ([`Door`]), which speaks Stele's own HTTP interface and so
//! meets the same keys, access and rules as every other client. Two doors: through HTTP, for `stele mcp` on standard
//! input and output ([`serve_stdio`]); and into the server's own router, for `/mcp` ([`routes`]).

mod answer;
mod arguments;
mod door;
mod http;
mod ids;
mod instructions;
mod scope;
mod server;
mod stdio;
mod tools;

pub use door::{Ask, ClientDoor, Door};
pub use http::{Origins, routes};
pub use ids::session_uuid;
pub use scope::{Scope, ScopeError, Words};
pub use server::Tools;
pub use stdio::serve_stdio;
