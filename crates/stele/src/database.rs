//! `stele db` and `stele scrub`: databases without a server on them.

use std::path::PathBuf;

use anyhow::bail;
use serde_json::json;
use store_postgres::{PostgresDump, Standing, Url};

use crate::cli::{Db, Place};
use crate::config::{DATABASE_URL, database, default_data_dir, process_env};
use crate::examine::examine;
use crate::output::{Report, print};

/// A database that a command is about.
pub(crate) enum Where {
    Directory(PathBuf),
    Server(Box<Url>),
}

impl Where {
    /// The place that the flags name, else the environment.
    pub(crate) fn of(place: Place) -> anyhow::Result<Self> {
        if let Some(dir) = place.data_dir {
            return Ok(Self::Directory(dir));
        }
        match place.database_url.or_else(|| process_env(DATABASE_URL)) {
            Some(url) => Ok(Self::Server(Box::new(database(&url)?))),
            None => Ok(Self::Directory(default_data_dir(&process_env)?)),
        }
    }
}

pub(crate) fn run(action: Db) -> anyhow::Result<()> {
    match action {
        Db::Check { place, json } => check(place, json),
        Db::Migrate(place) => migrate(place),
        Db::Status(place) => status(place),
        Db::Copy { from, to } => crate::copy::run(&from, &to),
    }
}

/// Runs what speaks to a PostgreSQL.
fn wait<T>(work: impl Future<Output = T>) -> anyhow::Result<T> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work))
}

fn check(place: Place, as_json: bool) -> anyhow::Result<()> {
    let (shown, damage) = match Where::of(place)? {
        Where::Directory(dir) => (dir.display().to_string(), store_sqlite::check(&dir)?),
        Where::Server(url) => (url.to_string(), examine(&mut PostgresDump::open(&url)?)?),
    };
    let damage: Vec<String> = damage.iter().map(ToString::to_string).collect();
    // The exit code says whether there is damage, although the reader of the list may have left.
    let mut report = Report::default();
    if as_json {
        report.json(&json!({"database": shown, "damage": damage}));
    } else {
        damage.iter().for_each(|found| report.line(found));
    }
    match damage.len() {
        0 if as_json => report.end(),
        0 => print(&format!("{shown}: hashes, heads and counters are sound")),
        n => bail!("{n} damaged"),
    }
}

fn server(place: Place) -> anyhow::Result<Box<Url>> {
    match Where::of(place)? {
        Where::Directory(_) => bail!("a data directory is migrated by the server that opens it: stele serve"),
        Where::Server(url) => Ok(url),
    }
}

fn migrate(place: Place) -> anyhow::Result<()> {
    let Standing { applied, known } = wait(store_postgres::migrate(&*server(place)?))??;
    print(&format!("the schema is up to date: {applied} of {known} migrations"))
}

fn status(place: Place) -> anyhow::Result<()> {
    let Standing { applied, known } = wait(store_postgres::standing(&*server(place)?))??;
    let mut report = Report::default();
    report.line(&format!("{applied} of {known} migrations are applied"));
    if applied == known {
        report.end()
    } else {
        bail!("the schema is behind: stele db migrate, or start a server")
    }
}

pub(crate) fn scrub(place: Place) -> anyhow::Result<()> {
    match Where::of(place)? {
        Where::Directory(dir) => {
            store_sqlite::scrub(&dir)?;
            let dir = dir.display();
            print(&format!("{dir}: rewritten; nothing deleted or redacted is left in the database's files"))
        }
        Where::Server(url) => {
            let scrubbed = wait(store_postgres::scrub(&url))??;
            print(&format!("{url}: the tables are rewritten without what was deleted or redacted"))?;
            print(if scrubbed.log {
                "the write-ahead log is written over; standbys, archived logs and backups keep theirs"
            } else {
                "the write-ahead log may still hold such text: the role may not switch it; run as a superuser, or \
                 grant pg_checkpoint, pg_monitor and EXECUTE on pg_switch_wal()"
            })
        }
    }
}
