//! `stele mount`: stores as directories, through FUSE. The file system is `stele-mount`'s; here is what stands around
//! it: which stores and with which credential, the place they are mounted at, the process that serves them, the one
//! that replaces it when it dies, and the socket by which both are asked and stopped. DESIGN 9.
//!
//! ```text
//! stele mount ...            finds the stores, takes a session's token, and becomes (or, as a daemon, starts)
//!   stele mount --supervisor DIR   prepares the place, starts the server of the mounts, and another when it dies
//!     stele mount --worker DIR     holds the mounts and the control socket
//! ```
//!
//! What they need to know ([`Setup`]) comes by standard input, so that no credential stands in an environment, in
//! arguments or in a file.

mod check;
mod control;
mod launch;
mod place;
mod setup;
mod supervisor;
mod table;
mod worker;

use crate::cli::{ClientFlags, MountAction, MountStores};
use crate::failure::{Class, fail};

pub(crate) fn run(flags: &ClientFlags, args: MountStores) -> anyhow::Result<()> {
    match args.action {
        Some(MountAction::Status { dir }) => control::status(dir.as_deref(), flags.json),
        Some(MountAction::Stop { dir }) => control::stop(&dir),
        None if args.check => check::check(flags.json),
        None if args.worker => worker::run(setup::Setup::receive()?),
        None if args.supervisor => supervisor::run(setup::Setup::receive()?),
        None if args.directories.session.is_none() && args.directories.store.is_empty() => {
            Err(fail(Class::Usage, "name what to mount: --session SESSION, or --store STORE DIR"))
        }
        None => launch::launch(flags, &args),
    }
}
