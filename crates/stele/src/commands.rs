//! What works on stores and memories through a server.

mod agents;
mod edit;
mod editor;
mod grep;
pub(crate) mod history;
mod memories;
mod put;
pub(crate) mod resolve;
mod search;
mod sessions;
mod stores;
mod sync;
mod tree;
pub(crate) mod walk;
mod watch;

use crate::cli::{ClientFlags, Command, Memory, Store, With};
use crate::connect::client;

/// How a command runs: with which server, and how it answers.
pub(crate) struct Session {
    /// The server.
    pub(crate) client: stele_client::Client,
    /// Whether programs read the answer.
    pub(crate) json: bool,
}

/// A session with the server that flags, environment and profiles name.
pub(crate) fn session(flags: &ClientFlags) -> anyhow::Result<Session> {
    Ok(Session { client: client(flags)?, json: flags.json })
}

fn with<A: clap::Args>(
    given: With<A>,
    run: impl FnOnce(&Session, A) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    run(&session(&given.client)?, given.args)
}

/// Runs a command on stores, memories or their history.
pub(crate) fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Store(given) => store(&session(&given.client)?, given.action),
        Command::Memory(given) => memory(&session(&given.client)?, given.action),
        Command::Agent(given) => agents::agent(&session(&given.client)?, given.action),
        Command::Environment(given) => agents::environment(&session(&given.client)?, given.action),
        Command::Session(given) => sessions::run(&session(&given.client)?, given.action),
        Command::Ls(given) => with(given, memories::list),
        Command::Cat(given) => with(given, memories::read),
        Command::Tree(given) => with(given, tree::tree),
        Command::Mv(given) => with(given, memories::rename),
        Command::Rm(given) => with(given, memories::remove),
        Command::Edit(given) => with(given, edit::edit),
        Command::Put(given) => with(given, put::put),
        Command::Search(given) => with(given, search::search),
        Command::Log(given) => with(given, history::log),
        Command::Diff(given) => with(given, history::diff),
        Command::Redact(given) => with(given, history::redact),
        Command::Sync(given) => sync::sync(&given.client, &given.args),
        Command::Merge(given) => with(given, edit::merge_displaced),
        #[cfg(target_os = "linux")]
        Command::Mount(_) => unreachable!("main runs it itself"),
        Command::Serve(_)
        | Command::Mcp(_)
        | Command::Key(_)
        | Command::Workspace(_)
        | Command::Model { .. }
        | Command::Config { .. }
        | Command::Db { .. }
        | Command::Backup(_)
        | Command::Restore(_)
        | Command::Scrub(_)
        | Command::Export(_)
        | Command::Import(_)
        | Command::Copy(_)
        | Command::Completions { .. }
        | Command::Man { .. } => unreachable!("main runs these itself"),
    }
}

fn store(session: &Session, action: Store) -> anyhow::Result<()> {
    match action {
        Store::Create { name, description, metadata } => stores::create(session, name, description, metadata),
        Store::List { archived } => stores::list(session, archived),
        Store::Show { store } => stores::show(session, &store),
        Store::Update { store, name, description, metadata } => {
            stores::update(session, &store, name, description, metadata)
        }
        Store::Watch(args) => watch::watch(session, &args),
        Store::Archive(which) => stores::archive(session, &which),
        Store::Delete(which) => stores::delete(session, &which),
    }
}

fn memory(session: &Session, action: Memory) -> anyhow::Result<()> {
    match action {
        Memory::List(args) => memories::list(session, args),
        Memory::Read(args) => memories::read(session, args),
        Memory::Write(args) => memories::write(session, args),
        Memory::Edit(args) => edit::edit(session, args),
        Memory::Move(args) => memories::rename(session, args),
        Memory::Delete(args) => memories::remove(session, args),
        Memory::Put(args) => put::put(session, args),
        Memory::Tree(args) => tree::tree(session, args),
        Memory::Restore(args) => history::restore(session, args),
        Memory::Grep(args) => grep::grep(session, args),
    }
}
