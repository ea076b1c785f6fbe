//! `stele db copy`: everything from one database to an empty other one, either way, and the comparison afterwards.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use stele_core::dump::{Dump, Load, Log, StorePlace, Totals, VersionRow};
use stele_core::model::Store;
use stele_core::records::span;
use stele_core::storage::StorageError;
use store_postgres::{PostgresDump, PostgresLoad, Url};
use store_sqlite::{SqliteDump, SqliteLoad};

use crate::config::database;
use crate::examine::is_whole;
use crate::output::say;

/// Rows of a page; of versions, records and entries, which may be large, fewer.
const PAGE: usize = 1_000;
const VERSIONS: usize = 250;
const RECORDS: usize = 250;

fn dump(place: &str) -> anyhow::Result<Box<dyn Dump>> {
    if Url::looks_like(place) {
        return Ok(Box::new(PostgresDump::open(&database(place)?)?));
    }
    Ok(Box::new(SqliteDump::open(Path::new(place))?))
}

fn load(place: &str) -> anyhow::Result<Box<dyn Load>> {
    if Url::looks_like(place) {
        return Ok(Box::new(PostgresLoad::open(&database(place)?)?));
    }
    Ok(Box::new(SqliteLoad::open(Path::new(place))?))
}

/// A place as it is shown: without a password.
fn shown(place: &str) -> anyhow::Result<String> {
    if Url::looks_like(place) { Ok(database(place)?.to_string()) } else { Ok(place.to_owned()) }
}

pub(crate) fn run(from: &str, to: &str) -> anyhow::Result<()> {
    let (from_shown, to_shown) = (shown(from)?, shown(to)?);
    let mut source = dump(from).with_context(|| format!("cannot copy from {from_shown}"))?;
    let totals = source.totals()?;
    let target = load(to).with_context(|| format!("cannot copy to {to_shown}"))?;
    let bar = progress(&totals);
    bar.set_message("copying");
    copy(&mut *source, target, &bar).with_context(|| format!("nothing was copied to {to_shown}"))?;
    bar.set_message("comparing");
    let mut copied = dump(to).with_context(|| format!("cannot read {to_shown} again"))?;
    ensure!(copied.totals()? == totals, "{to_shown} does not hold as much as {from_shown}");
    compare(&mut *source, &mut *copied, &bar).with_context(|| format!("{to_shown} is not a true copy"))?;
    bar.finish_and_clear();
    let Totals { workspaces, keys, stores, memories, versions, records, entries, .. } = totals;
    say(&format!(
        "{from_shown} -> {to_shown}: {workspaces} workspaces, {keys} keys, {stores} stores, {memories} memories, \
         {versions} versions, {records} records and {entries} log entries copied and compared"
    ));
    Ok(())
}

/// A bar over memories, versions, records and entries, twice: copied and compared. Drawn only where a person looks on.
fn progress(totals: &Totals) -> ProgressBar {
    let bar = ProgressBar::new(2 * (totals.memories + totals.versions + totals.records + totals.entries));
    let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len}, {eta} left");
    bar.set_style(style.expect("a fixed template is legal"));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

pub(crate) fn copy(
    source: &mut dyn Dump,
    mut target: Box<dyn Load>,
    bar: &ProgressBar,
) -> anyhow::Result<()> {
    let installation =
        source.installation()?.context("there is nothing to copy: no server was ever started on it")?;
    target.workspaces(&source.workspaces()?)?;
    let mut after = None;
    loop {
        let keys = source.keys(after, PAGE)?;
        let Some(last) = keys.last() else { break };
        after = Some((last.key.workspace, last.key.id));
        target.keys(&keys)?;
    }
    let mut after = None;
    loop {
        let stores = source.stores(after, PAGE)?;
        let Some(last) = stores.last() else { break };
        after = Some(place(last));
        target.stores(&stores)?;
        for store in &stores {
            copy_store(source, &mut *target, place(store), bar)?;
        }
    }
    let mut after = None;
    loop {
        let redactions = source.redactions(after, PAGE)?;
        let Some(last) = redactions.last() else { break };
        after = Some(last.place());
        target.redactions(&redactions)?;
    }
    target.backups(&source.backups()?)?;
    copy_records(source, &mut *target, bar)?;
    Ok(target.finish(installation)?)
}

fn copy_records(source: &mut dyn Dump, target: &mut dyn Load, bar: &ProgressBar) -> anyhow::Result<()> {
    let mut after = None;
    loop {
        let records = source.records(after, RECORDS)?;
        let Some(last) = records.last() else { break };
        after = Some((last.workspace, last.kind, last.id));
        target.records(&records)?;
        bar.inc(records.len() as u64);
    }
    let mut after = None;
    loop {
        let logs = source.logs(after, PAGE)?;
        let Some(last) = logs.last() else { return Ok(()) };
        after = Some(last.place);
        target.logs(&logs)?;
        for log in &logs {
            copy_entries(source, target, log, bar)?;
        }
    }
}

/// Refuses to copy a log of which entries are missing.
fn copy_entries(
    source: &mut dyn Dump,
    target: &mut dyn Load,
    log: &Log,
    bar: &ProgressBar,
) -> anyhow::Result<()> {
    let mut last = 0;
    loop {
        let entries = source.entries(log.place, last, RECORDS)?;
        let goes_on = match span(&entries) {
            Some((first, _)) => first == last + 1,
            None => entries.is_empty() && last == log.last,
        };
        if !goes_on {
            let id = u128::from_be_bytes(log.place.1);
            return Err(StorageError::Corrupt(format!("{id:032x}, a log with missing entries,")).into());
        }
        if entries.is_empty() {
            return Ok(());
        }
        last += entries.len() as u64;
        target.entries(log.place, &entries)?;
        bar.inc(entries.len() as u64);
    }
}

fn place(store: &Store) -> StorePlace {
    (store.workspace, store.id)
}

fn copy_store(
    source: &mut dyn Dump,
    target: &mut dyn Load,
    place: StorePlace,
    bar: &ProgressBar,
) -> anyhow::Result<()> {
    let mut after = 0;
    loop {
        let versions = source.versions(place, after, VERSIONS)?;
        let Some(last) = versions.last() else { break };
        after = last.version.sequence;
        versions.iter().try_for_each(sound)?;
        target.versions(place, &versions)?;
        bar.inc(versions.len() as u64);
    }
    let mut after = 0;
    loop {
        let marks = source.marks(place, after, PAGE)?;
        let Some(last) = marks.last() else { break };
        after = last.sequence;
        target.marks(place, &marks)?;
    }
    let mut after = None;
    loop {
        let memories = source.memories(place, after, PAGE)?;
        let Some(last) = memories.last() else { break };
        after = Some(last.id);
        target.memories(place, &memories)?;
        bar.inc(memories.len() as u64);
    }
    Ok(())
}

/// Refuses to copy damage: the content must be what its hash says.
fn sound(row: &VersionRow) -> Result<(), StorageError> {
    let damaged = || StorageError::Corrupt(format!("{} of memory {}", row.version.id, row.version.memory));
    if is_whole(row) { Ok(()) } else { Err(damaged()) }
}

fn same<T: PartialEq>(what: &str, one: &T, other: &T) -> anyhow::Result<()> {
    if one == other { Ok(()) } else { bail!("{what} differ") }
}

/// Reads both side by side; every row must be equal, contents to the byte.
fn compare(source: &mut dyn Dump, copied: &mut dyn Dump, bar: &ProgressBar) -> anyhow::Result<()> {
    same("the installations", &source.installation()?, &copied.installation()?)?;
    same("the workspaces", &source.workspaces()?, &copied.workspaces()?)?;
    let mut after = None;
    loop {
        let keys = source.keys(after, PAGE)?;
        same("keys", &keys, &copied.keys(after, PAGE)?)?;
        let Some(last) = keys.last() else { break };
        after = Some((last.key.workspace, last.key.id));
    }
    compare_ledgers(source, copied)?;
    let mut after = None;
    loop {
        let stores = source.stores(after, PAGE)?;
        same("stores", &stores, &copied.stores(after, PAGE)?)?;
        let Some(last) = stores.last() else { break };
        after = Some(place(last));
        for store in &stores {
            compare_store(source, copied, place(store), bar)
                .with_context(|| format!("in store {}", store.id))?;
        }
    }
    compare_records(source, copied, bar)
}

fn compare_records(source: &mut dyn Dump, copied: &mut dyn Dump, bar: &ProgressBar) -> anyhow::Result<()> {
    let mut after = None;
    loop {
        let records = source.records(after, RECORDS)?;
        same("records", &records, &copied.records(after, RECORDS)?)?;
        let Some(last) = records.last() else { break };
        after = Some((last.workspace, last.kind, last.id));
        bar.inc(records.len() as u64);
    }
    let mut after = None;
    loop {
        let logs = source.logs(after, PAGE)?;
        same("logs", &logs, &copied.logs(after, PAGE)?)?;
        let Some(last) = logs.last() else { return Ok(()) };
        after = Some(last.place);
        for log in &logs {
            let mut after = 0;
            loop {
                let entries = source.entries(log.place, after, RECORDS)?;
                same("log entries", &entries, &copied.entries(log.place, after, RECORDS)?)?;
                let Some(last) = entries.last() else { break };
                after = last.sequence;
                bar.inc(entries.len() as u64);
            }
        }
    }
}

fn compare_ledgers(source: &mut dyn Dump, copied: &mut dyn Dump) -> anyhow::Result<()> {
    same("the backups", &source.backups()?, &copied.backups()?)?;
    let mut after = None;
    loop {
        let redactions = source.redactions(after, PAGE)?;
        same("redactions", &redactions, &copied.redactions(after, PAGE)?)?;
        let Some(last) = redactions.last() else { return Ok(()) };
        after = Some(last.place());
    }
}

fn compare_store(
    source: &mut dyn Dump,
    copied: &mut dyn Dump,
    place: StorePlace,
    bar: &ProgressBar,
) -> anyhow::Result<()> {
    let mut after = 0;
    loop {
        let versions = source.versions(place, after, VERSIONS)?;
        same("versions", &versions, &copied.versions(place, after, VERSIONS)?)?;
        let Some(last) = versions.last() else { break };
        after = last.version.sequence;
        bar.inc(versions.len() as u64);
    }
    let mut after = 0;
    loop {
        let marks = source.marks(place, after, PAGE)?;
        same("changes without a version", &marks, &copied.marks(place, after, PAGE)?)?;
        let Some(last) = marks.last() else { break };
        after = last.sequence;
    }
    let mut after = None;
    loop {
        let memories = source.memories(place, after, PAGE)?;
        same("memories", &memories, &copied.memories(place, after, PAGE)?)?;
        let Some(last) = memories.last() else { break };
        after = Some(last.id);
        bar.inc(memories.len() as u64);
    }
    Ok(())
}
