//! `stele`: the one binary. Only here are flags, environment and files of configuration read.

mod admin;
mod cli;
mod config;
mod database;
mod first_start;
mod log;
mod output;
mod serve;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command};

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(code) => code,
        Err(error) => {
            output::complain(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    match cli.command {
        Command::Serve(flags) => serve::run(flags).map(|()| ExitCode::SUCCESS),
        Command::Key { action, client } => admin::key(action, client).map(|()| ExitCode::SUCCESS),
        Command::Workspace { action, client } => admin::workspace(action, client).map(|()| ExitCode::SUCCESS),
        Command::Db { action: cli::Db::Check(place) } => database::check(place),
        Command::Scrub(place) => database::scrub(place).map(|()| ExitCode::SUCCESS),
    }
}
