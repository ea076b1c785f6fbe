//! `stele db check` and `stele scrub`: the database of a stopped server.

use std::path::PathBuf;

use anyhow::bail;
use serde_json::json;

use crate::cli::Place;
use crate::config::{default_data_dir, process_env};
use crate::output::{print, print_json};

fn data_dir(place: Place) -> anyhow::Result<PathBuf> {
    place.data_dir.map_or_else(|| default_data_dir(&process_env), Ok)
}

pub(crate) fn check(place: Place, as_json: bool) -> anyhow::Result<()> {
    let dir = data_dir(place)?;
    let damage: Vec<String> = store_sqlite::check(&dir)?.iter().map(ToString::to_string).collect();
    if as_json {
        print_json(&json!({"data_dir": dir, "damage": damage}))?;
    } else {
        damage.iter().try_for_each(|found| print(found))?;
    }
    match damage.len() {
        0 if as_json => Ok(()),
        0 => print(&format!("{}: hashes, heads and counters are sound", dir.display())),
        n => bail!("{n} damaged"),
    }
}

pub(crate) fn scrub(place: Place) -> anyhow::Result<()> {
    let dir = data_dir(place)?;
    store_sqlite::scrub(&dir)?;
    print(&format!(
        "{}: rewritten; nothing deleted or redacted is left in the database's files",
        dir.display()
    ))
}
