//! `stele db check` and `stele scrub`: the database of a stopped server.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::cli::Place;
use crate::config::{default_data_dir, process_env};
use crate::output::{complain, say};

fn data_dir(place: Place) -> anyhow::Result<PathBuf> {
    place.data_dir.map_or_else(|| default_data_dir(&process_env), Ok)
}

pub(crate) fn check(place: Place) -> anyhow::Result<ExitCode> {
    let dir = data_dir(place)?;
    let damage = store_sqlite::check(&dir)?;
    for found in &damage {
        say(&found.to_string());
    }
    if damage.is_empty() {
        say(&format!("{}: hashes, heads and counters are sound", dir.display()));
        return Ok(ExitCode::SUCCESS);
    }
    complain(&format!("{} damaged", damage.len()));
    Ok(ExitCode::FAILURE)
}

pub(crate) fn scrub(place: Place) -> anyhow::Result<()> {
    let dir = data_dir(place)?;
    store_sqlite::scrub(&dir)?;
    say(&format!(
        "{}: rewritten; nothing deleted or redacted is left in the database's files",
        dir.display()
    ));
    Ok(())
}
