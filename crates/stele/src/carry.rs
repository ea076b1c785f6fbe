//! Stores carried in and out by a client: directories of Markdown, git repositories, the memory files of other
//! programs, and other live servers. All of it goes through the public API alone. docs/FOLDERS.md says how.

mod archive;
mod fetch;
mod folder_in;
mod folder_out;
mod git;
mod git_in;
mod git_out;
mod live;
mod plan;
mod programs;
mod slices;

use std::path::Path;

use crate::cli::{CarryIn, ClientFlags, Copy, ExportArgs, ImportArgs, With};
use crate::commands::session;
use crate::commands::walk::Unfit;
use crate::failure::{Class, fail};
use crate::output::{cell, complain, count};

pub(crate) fn export(given: With<ExportArgs>) -> anyhow::Result<()> {
    let session = session(&given.client)?;
    match given.args.folder() {
        Some(args) if args.git => git_out::export(&session, &args),
        Some(args) => folder_out::export(&session, &args),
        None => archive::export(&session, &given.args),
    }
}

pub(crate) fn import(given: With<ImportArgs>) -> anyhow::Result<()> {
    let mut args = given.args;
    if args.of_archive() {
        return archive::import(&session(&given.client)?, &args);
    }
    let store = args.store.take().ok_or_else(|| fail(Class::Usage, "--store names the store"))?;
    import_into(given.client, args.into(store))
}

fn import_into(client: ClientFlags, args: CarryIn) -> anyhow::Result<()> {
    let session = || session(&client);
    let program = args.source.to_str().and_then(programs::Program::of);
    match (program, &args.dir) {
        (Some(_), _) if args.git => {
            Err(fail(Class::Usage, "--git is for a repository, not for the memory files of a program"))
        }
        (Some(program), _) => programs::import(&session()?, &args, program),
        (None, Some(dir)) => {
            let message = format!(
                "{} is left over: a second directory goes with claude-code or codex only",
                dir.display()
            );
            Err(fail(Class::Usage, message))
        }
        (None, None) if args.git => git_in::import(&session()?, &args),
        (None, None) => folder_in::import(&session()?, &args),
    }
}

pub(crate) fn copy(args: &Copy) -> anyhow::Result<()> {
    live::copy(args)
}

/// Names what cannot be taken; an error where that is not to be left out.
fn judge(unfit: &[Unfit], partial: bool, nothing: &str) -> anyhow::Result<()> {
    for Unfit { file, why } in unfit {
        complain(&format!("{} {why}", shown(file)));
    }
    if unfit.is_empty() || partial {
        return Ok(());
    }
    let number = count(unfit.len(), "of them cannot be taken", "of them cannot be taken");
    Err(fail(Class::Refused, format!("{nothing}: {number}, and --partial leaves them out")))
}

fn shown(file: &Path) -> String {
    cell(&file.display().to_string()).into_owned()
}
