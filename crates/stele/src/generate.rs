//! `stele completions` and `stele man`: made from the definition of the command line.

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use clap::CommandFactory;

use crate::cli::Cli;

/// Prints the completions of a shell.
pub(crate) fn completions(shell: clap_complete::Shell) -> anyhow::Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "stele", &mut text);
    Ok(std::io::stdout().write_all(&text)?)
}

/// Writes a page for each command into `dir`.
pub(crate) fn man(dir: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let command = Cli::command().disable_help_subcommand(true);
    clap_mangen::generate_to(command, dir).with_context(|| format!("cannot write into {}", dir.display()))
}
