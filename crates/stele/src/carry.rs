//! Stores carried in and out by a client: directories of Markdown, git repositories, the memory files of other
//! programs, and other live servers. All of it goes through the public API alone. docs/FOLDERS.md says how.

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

use crate::cli::{CarryIn, Copy, Export, With};
use crate::commands::session;
use crate::commands::walk::Unfit;
use crate::failure::{Class, fail};
use crate::output::{cell, complain, count};

pub(crate) fn export(given: With<Export>) -> anyhow::Result<()> {
    let session = session(&given.client)?;
    match given.args.git {
        true => git_out::export(&session, &given.args),
        false => folder_out::export(&session, &given.args),
    }
}

pub(crate) fn import(given: With<CarryIn>) -> anyhow::Result<()> {
    let args = given.args;
    let program = args.source.to_str().and_then(programs::Program::of);
    match (program, &args.dir) {
        (Some(_), _) if args.git => {
            Err(fail(Class::Usage, "--git is for a repository, not for the memory files of a program"))
        }
        (Some(program), _) => programs::import(&session(&given.client)?, &args, program),
        (None, Some(dir)) => {
            let message = format!(
                "{} is left over: a second directory goes with claude-code or codex only",
                dir.display()
            );
            Err(fail(Class::Usage, message))
        }
        (None, None) if args.git => git_in::import(&session(&given.client)?, &args),
        (None, None) => folder_in::import(&session(&given.client)?, &args),
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
