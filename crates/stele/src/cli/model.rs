//! Arguments of what is about language models.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::cli::ServeFlags;

#[derive(Debug, Subcommand)]
pub(crate) enum Model {
    /// List the models of the configured providers.
    List(ModelPlace),
    /// Ask a model for one word, and say what came back, how long it took and what it cost.
    Test {
        /// Which: PROVIDER/MODEL, or the id of a model that a provider lists.
        model: String,
        #[command(flatten)]
        place: ModelPlace,
    },
}

/// Where the configuration is, as for `stele serve`; no server needs to run.
#[derive(Debug, Args)]
pub(crate) struct ModelPlace {
    /// Configuration file [default: stele.toml in the data directory, else in this user's configuration directory]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where the data lies [env: STELE_DATA_DIR] [default: a directory of this user's]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Print JSON for programs
    #[arg(long)]
    pub(crate) json: bool,
}

impl ModelPlace {
    /// The flags of a server that would find the same configuration.
    pub(crate) fn as_serve_flags(&self) -> ServeFlags {
        let (config, data_dir) = (self.config.clone(), self.data_dir.clone());
        ServeFlags { config, data_dir, ..ServeFlags::default() }
    }
}
