//! From the command line to the process that holds the mounts.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;
use stele_core::work::attachment::Access;

use super::setup::{Setup, StoreSetup};
use super::{check, control};
use crate::attached::Attachments;
use crate::cli::{ClientFlags, MountStores};
use crate::failure::{Class, fail};
use crate::output::print;

/// The line by which a process of a mount says that all stores are mounted.
pub(super) const READY: &str = "ready";
/// Where the stores of a session are if nothing is said.
const SESSION_DIR: &str = "/mnt/memory";
/// What holds keys in the environment.
const SECRETS: [&str; 1] = ["STELE_API_KEY"];

pub(super) fn launch(flags: &ClientFlags, args: &MountStores) -> anyhow::Result<()> {
    let setup = setup(flags, args)?;
    if let Err(cause) = check::device() {
        let message = format!(
            "cannot mount {}: {cause}. `stele mount --check` says what this machine lacks; `stele sync` does without FUSE",
            setup.named()
        );
        return Err(fail(Class::Other, message));
    }
    if control::is_served(&setup.dir) {
        let message =
            format!("{0} is mounted already: `stele mount stop {0}` takes it away", setup.dir.display());
        return Err(fail(Class::Conflict, message));
    }
    let supervised = if args.daemon { !args.no_supervise } else { args.supervise };
    let role = if supervised { "--supervisor" } else { "--worker" };
    let program = std::env::current_exe().context("cannot find this program")?;
    if args.daemon { start(&program, role, &setup) } else { Err(become_one(&program, role, &setup)) }
}

fn setup(flags: &ClientFlags, args: &MountStores) -> anyhow::Result<Setup> {
    let dir = match &args.dir {
        Some(dir) => dir.clone(),
        None if args.directories.session.is_some() => SESSION_DIR.into(),
        None => {
            return Err(fail(
                Class::Usage,
                "name the directory to mount at, as in `stele mount --store notes DIR`",
            ));
        }
    };
    let dir = plain(&dir)?;
    let found = Attachments::find(flags, &args.directories)?;
    let stores = found.stores.iter().map(|store| StoreSetup {
        id: store.id.clone(),
        uuid: store.uuid.clone(),
        name: store.name.clone(),
        dir: if found.below { dir.join(&store.directory) } else { dir.clone() },
        read_only: args.read_only || store.access == Access::ReadOnly,
    });
    let (own_uid, own_gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let uid = args.uid.unwrap_or(own_uid);
    Ok(Setup {
        url: found.url,
        credential: found.credential,
        stores: stores.collect(),
        parent: found.below.then_some(args.scratch),
        dir,
        uid,
        gid: args.gid.unwrap_or(own_gid),
        // Another owner could not enter his own files otherwise.
        allow_other: args.allow_other || uid != own_uid,
        daemon: args.daemon,
        supervisor: None,
        made: Vec::new(),
        again: false,
    })
}

/// The path as the table of mounts shows it: absolute, without links, also where a dead mount stands at its end.
pub(super) fn plain(dir: &Path) -> anyhow::Result<PathBuf> {
    let dir = std::path::absolute(dir)?;
    if let Ok(plain) = dir.canonicalize() {
        return Ok(plain);
    }
    let (Some(above), Some(name)) = (dir.parent(), dir.file_name()) else { return Ok(dir) };
    Ok(plain(above)?.join(name))
}

fn command(program: &Path, role: &str, setup: &Setup) -> anyhow::Result<Command> {
    let mut command = Command::new(program);
    command.args(["mount", role]).arg(&setup.dir).stdin(setup.send()?).current_dir("/");
    for secret in SECRETS {
        command.env_remove(secret);
    }
    Ok(command)
}

/// Goes on as the process of the mount: same id, same terminal, no key in the environment.
fn become_one(program: &Path, role: &str, setup: &Setup) -> anyhow::Error {
    match command(program, role, setup) {
        Ok(mut command) => anyhow::Error::from(command.exec()).context("cannot start the mount"),
        Err(error) => error,
    }
}

/// Starts a process of the mount, to be waited for until its first lines or its end.
pub(super) fn spawn(role: &str, setup: &Setup) -> anyhow::Result<std::process::Child> {
    let program = std::env::current_exe().context("cannot find this program")?;
    Ok(command(&program, role, setup)?.stdout(Stdio::piped()).spawn()?)
}

/// Starts the daemon, and returns once the stores are mounted.
fn start(program: &Path, role: &str, setup: &Setup) -> anyhow::Result<()> {
    let mut child = command(program, role, setup)?.stdout(Stdio::piped()).spawn()?;
    let lines = BufReader::new(child.stdout.take().context("it has a standard output")?);
    for line in lines.lines() {
        let line = line?;
        if line == READY {
            return Ok(());
        }
        print(&line)?;
    }
    // It said on our standard error what is wrong.
    let code = child.wait()?.code().unwrap_or(1);
    std::process::exit(code)
}
