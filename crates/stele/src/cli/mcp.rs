//! Arguments of `stele mcp`.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Mcp {
    /// The stores attached to this session, each in its access; an API key makes a token of the session first
    #[arg(long, value_name = "ID", conflicts_with_all = ["agent", "store"])]
    pub(crate) session: Option<String>,
    /// What this agent has learned; may be repeated
    #[arg(long, value_name = "ID")]
    pub(crate) agent: Vec<String>,
    /// This store, by id or slug, with `:ro` behind it only for reading; may be repeated [default: all that the key opens]
    #[arg(long, value_name = "STORE[:ro]")]
    pub(crate) store: Vec<String>,
}
