//! `stele import DIR`: the files of a directory become memories.

use std::path::Path;

use super::plan::{How, Wanted, carry_in};
use crate::cli::CarryIn;
use crate::commands::walk::{Listing, PlainFile, Unfit};
use crate::commands::{Session, resolve};

pub(super) fn import(session: &Session, args: &CarryIn) -> anyhow::Result<()> {
    let prefix = resolve::prefix(&args.store);
    let (wanted, unfit) = files(&args.source, &prefix, args.max_files)?;
    let store = resolve::store(&session.client, &args.store.store)?;
    let name =
        args.source.canonicalize().ok().and_then(|dir| Some(dir.file_name()?.to_string_lossy().into_owned()));
    let reason = format!("Imported from the directory {}.", name.as_deref().unwrap_or("/"));
    carry_in(session, (&store, &prefix), (&wanted, &unfit), how(args), &reason)
}

pub(super) fn how(args: &CarryIn) -> How {
    How {
        on_conflict: args.on_conflict,
        delete_missing: args.delete_missing,
        partial: args.partial,
        dry_run: args.dry_run,
    }
}

/// The files below `dir` as memories below `prefix`, by path; and those that cannot be.
pub(super) fn files(dir: &Path, prefix: &str, most: usize) -> anyhow::Result<(Vec<Wanted>, Vec<Unfit>)> {
    let Listing { files, mut unfit } = Listing::of(dir, most)?;
    let mut wanted = Vec::new();
    for PlainFile { file, name } in files {
        match Wanted::read(file, &format!("{prefix}{name}")) {
            Ok(file) => wanted.push(file),
            Err(why) => unfit.push(why),
        }
    }
    wanted.sort_by(|a, b| a.path.cmp(&b.path));
    unfit.sort_by(|a, b| a.file.cmp(&b.file));
    Ok((wanted, unfit))
}
