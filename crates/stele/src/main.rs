//! `stele`: the one binary. Only here are flags, environment and files of configuration read.

mod admin;
mod attached;
mod backend;
mod backup;
mod carry;
mod check;
mod cli;
mod commands;
mod config;
mod connect;
mod copy;
mod database;
mod examine;
mod failure;
mod first_start;
mod generate;
mod ids;
mod language;
mod log;
mod mcp;
#[cfg(target_os = "linux")]
mod mount;
mod output;
mod prompt;
mod reference;
mod serve;
mod signals;
mod transcript;
mod workers;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command, ConfigAction};

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure::exit(&error),
    }
}

fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Serve(flags) => serve::run(flags)?,
        Command::Mcp(given) => mcp::run(given)?,
        Command::Key(given) => admin::key(given.action, &given.client)?,
        Command::Workspace(given) => admin::workspace(given.action, &given.client)?,
        Command::Model { action } => language::run(action)?,
        Command::Config { action: ConfigAction::Check(args) } => check::check(&args)?,
        Command::Db { action } => database::run(action)?,
        Command::Backup(given) => backup::run(given)?,
        Command::Restore(args) => backup::restore(args)?,
        Command::Scrub(place) => database::scrub(place)?,
        Command::Export(given) => carry::export(given)?,
        Command::Import(given) => carry::import(given)?,
        Command::Copy(args) => carry::copy(&args)?,
        #[cfg(target_os = "linux")]
        Command::Mount(given) => mount::run(&given.client, given.args)?,
        Command::Completions { shell } => generate::completions(shell)?,
        Command::Man { dir } => generate::man(&dir)?,
        command => commands::run(command)?,
    }
    Ok(())
}
