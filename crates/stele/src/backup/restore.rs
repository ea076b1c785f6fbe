//! `stele restore`: a backup in the place of a database, all of it or nothing.
//!
//! Nothing is touched before the backup was read whole and found sound. The new database is put together beside the
//! old one, with the redactions that the old one knows of, and takes its place by one rename.

use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use anyhow::{Context, bail};
use indicatif::ProgressBar;
use serde_json::json;
use stele_core::backup::{BackupRecord, RedactionRecord};
use stele_core::clock::{Clock, Random, System};
use stele_core::dump::Dump;
use stele_core::id::Epoch;
use stele_core::service::IssuedKey;
use store_postgres::{PostgresDump, PostgresLoad, Url};
use store_sqlite::{Draft, Known, OpenError, RESTORE_DRAFT, Replayed, SqliteDump};

use super::make::{host, room_for};
use super::manifest::{Holds, Sound, verify};
use crate::cli::RestoreBackup;
use crate::config::{database, default_data_dir, process_env};
use crate::database::Where;
use crate::failure::{Class, fail};
use crate::first_start::{admin_key_file, draft_file, put_away};
use crate::output::{complain, count, print, print_json, time};
use crate::prompt::confirm;

/// Where a restore into a PostgreSQL is put together, in the data directory of this user.
const POSTGRES_DRAFT: &str = "restore-into-postgres.partial";
/// Redactions read at once.
const PAGE: usize = 1_000;

/// Whether redactions made since the backup could be known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Since {
    /// They were read from a database.
    Known,
    /// No database that knows them was there.
    NoDatabase,
    /// The one that knows them is damaged.
    Unreadable,
}

pub(crate) fn run(args: RestoreBackup) -> anyhow::Result<()> {
    let place = Where::of(args.place.clone())?;
    if let Where::Directory(dir) = &place {
        store_sqlite::is_free(dir).map_err(|error| {
            let is_running = matches!(error, OpenError::InUse { .. });
            let why = if is_running { ": a server is running on that data directory" } else { "" };
            anyhow::Error::from(error).context(format!("nothing was restored{why}"))
        })?;
    }
    if !args.backup.exists() && args.backup.to_string_lossy().contains(":/") {
        let message = format!(
            "there is no backup at {}: to write an old version of a memory back: stele memory restore",
            args.backup.display()
        );
        return Err(fail(Class::NotFound, message));
    }
    let backup = verify(&args.backup).context("nothing was restored")?;
    let more =
        args.redactions_from.iter().map(|from| redactions_of(from)).collect::<anyhow::Result<Vec<_>>>()?;
    let more: Vec<RedactionRecord> = more.into_iter().flatten().collect();
    let named = !args.redactions_from.is_empty();
    let (shown, replayed, since) = match place {
        Where::Directory(dir) => into_directory(&backup, &dir, more, &args)?,
        Where::Server(url) => into_postgres(&backup, &url, &more)?,
    };
    let since = if named && since == Since::NoDatabase { Since::Known } else { since };
    report(&backup, &shown, replayed, since, args.json)
}

fn report(
    backup: &Sound,
    shown: &str,
    replayed: Replayed,
    since: Since,
    as_json: bool,
) -> anyhow::Result<()> {
    let manifest = &backup.manifest;
    if as_json {
        print_json(&json!({
            "restored": shown,
            "backup_id": manifest.backup_id,
            "made_at": manifest.made_at,
            "redactions_replayed": replayed.versions,
            "memories_deleted": replayed.memories,
            "redactions_known": since == Since::Known,
        }))?;
    } else {
        let Holds { stores, memories, versions, .. } = manifest.holds;
        let made_at = time(&manifest.made_at);
        let stores = count(usize::try_from(stores)?, "store", "stores");
        print(&format!(
            "{shown}: restored as of {made_at}: {stores} with {memories} memories and {versions} versions"
        ))?;
        let Replayed { versions, memories } = replayed;
        if since == Since::Known {
            print(&format!("redactions made since were carried out: {versions}"))?;
        }
        if memories > 0 {
            print(&format!(
                "memories deleted, because their text of that time was redacted since: {memories}"
            ))?;
        }
    }
    match since {
        Since::Known => {}
        Since::NoDatabase => complain(
            "redactions made since the backup are not known: there was no database here before. A database or newer \
             backup that knows them can be named: --redactions-from",
        ),
        Since::Unreadable => {
            complain("redactions made since the backup are not known: the database that was here was damaged")
        }
    }
    Ok(())
}

/// The redactions that another database or a newer backup knows of.
fn redactions_of(from: &str) -> anyhow::Result<Vec<RedactionRecord>> {
    let cannot = || format!("cannot read the redactions of {}", shown(from));
    if Url::looks_like(from) {
        let mut dump = PostgresDump::open(&database(from)?).with_context(cannot)?;
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let page = dump.redactions(after, PAGE).with_context(cannot)?;
            let Some(last) = page.last() else { return Ok(all) };
            after = Some(last.place());
            all.extend(page);
        }
    }
    let dir = Path::new(from);
    store_sqlite::is_free(dir).with_context(cannot)?;
    let known = store_sqlite::known(dir).with_context(cannot)?;
    Ok(known.with_context(|| format!("there is no Stele database in {from}"))?.redactions)
}

/// A place without its password.
fn shown(place: &str) -> String {
    match Url::looks_like(place).then(|| database(place)) {
        Some(Ok(url)) => url.to_string(),
        Some(Err(_)) => "that address".into(),
        None => place.to_owned(),
    }
}

/// What the database to be replaced knows; read while nobody else may open it. Its redactions are in no backup made
/// before them: one that is only out of reach is never replaced, a damaged one where that was asked for by name.
fn known(dir: &Path, replace_unreadable: bool) -> anyhow::Result<(Known, Since)> {
    let shown = dir.display();
    match store_sqlite::known(dir) {
        Ok(Some(known)) => Ok((known, Since::Known)),
        Ok(None) => Ok((Known::default(), Since::NoDatabase)),
        Err(error) if !error.is_damage() => Err(anyhow::Error::from(error).context(format!(
            "nothing was restored: the database in {shown} cannot be read, and redactions that only it knows of would \
             be lost with it. See to what is in the way; or move the database away and name a newer backup with \
             --redactions-from"
        ))),
        Err(error) if !replace_unreadable => {
            let message = format!(
                "nothing was restored: the database in {shown} is damaged ({:#}), and redactions that only it knows of \
                 would be lost with it. A newer backup that knows them can be named with --redactions-from; to replace \
                 it all the same: --replace-unreadable",
                anyhow::Error::from(error)
            );
            Err(fail(Class::Refused, message))
        }
        Err(_) => Ok((Known::default(), Since::Unreadable)),
    }
}

/// The backup itself, as the restored installation remembers it.
fn itself(backup: &Sound, others: &[BackupRecord]) -> anyhow::Result<Option<BackupRecord>> {
    let record = backup.manifest.record(host(), &backup.dir)?;
    Ok((!others.iter().any(|other| other.id == record.id)).then_some(record))
}

fn into_directory(
    backup: &Sound,
    dir: &Path,
    more: Vec<RedactionRecord>,
    args: &RestoreBackup,
) -> anyhow::Result<(String, Replayed, Since)> {
    let shown = dir.display().to_string();
    make_private(dir)?;
    // Taken before anything is asked: no server may start on what is about to go.
    let _locked = store_sqlite::lock(dir)?;
    let (mut known, since) = known(dir, args.replace_unreadable)?;
    let ours = &backup.manifest.installation;
    if known.organization.is_some_and(|there| there.to_string() != *ours) {
        let message = format!(
            "nothing was restored: {shown} holds another installation than the one that the backup was made of; \
             restore it into an empty data directory"
        );
        return Err(fail(Class::Refused, message));
    }
    if since == Since::Known {
        let made_at = time(&backup.manifest.made_at);
        let question = format!(
            "Replace the database in {shown} by the backup of {made_at}? What was written since is lost."
        );
        confirm(&question, args.yes)?;
    }
    known.redactions.extend(more);
    let replayed = in_draft(&dir.join(RESTORE_DRAFT), |at| settle(backup, dir, at, &known))?;
    Ok((shown, replayed, since))
}

fn settle(backup: &Sound, dir: &Path, at: &Path, known: &Known) -> anyhow::Result<Replayed> {
    let (draft, replayed) = draft(backup, at, known).with_context(|| not_put_together(at))?;
    let key = admin_key_file(dir);
    if key.exists() {
        draft.replace(dir).context("the restore did not end")?;
        return Ok(replayed);
    }
    // Keys are no part of a backup, and whoever lost the directory lost this one too. The file first, as at the first
    // start; a server gives it its name if this ends before.
    let mut made = None;
    draft.keep_first_key(|first| made.insert(IssuedKey::admin(first, &System, &System)).record())?;
    let secret = made.context("a key was made")?.secret;
    put_away(&draft_file(dir), secret.reveal())?;
    draft.replace(dir).context("the restore did not end")?;
    std::fs::rename(draft_file(dir), &key)?;
    complain(&format!("a new admin key was put into {}; the others go on working", key.display()));
    Ok(replayed)
}

fn not_put_together(at: &Path) -> String {
    format!(
        "nothing was restored: the new database could not be put together in {} (if the disk is full: make room there, \
         or name a data directory on another disk)",
        at.display()
    )
}

/// Makes a directory that only its owner may read.
fn make_private(dir: &Path) -> anyhow::Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.with_context(|| format!("nothing was restored: cannot make {}", dir.display()))
}

/// Works in a directory of which nothing is left, however that ends: what stands in it may have been redacted since.
fn in_draft<T>(at: &Path, work: impl FnOnce(&Path) -> anyhow::Result<T>) -> anyhow::Result<T> {
    let clear = || match std::fs::remove_dir_all(at) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(anyhow::Error::from(error).context(
            format!("{} could not be removed, and may hold what was redacted since: remove it", at.display()),
        )),
        _ => Ok(()),
    };
    clear()?;
    let worked = work(at);
    match (worked, clear()) {
        (Err(error), Err(left)) => Err(error.context(format!("{left:#}"))),
        (worked, cleared) => worked.and_then(|done| cleared.map(|()| done)),
    }
}

/// Removes what a restore into a PostgreSQL left in a data directory when it was killed.
pub(crate) fn clear_left(data_dir: &Path) -> Result<(), OpenError> {
    let left = data_dir.join(POSTGRES_DRAFT);
    if !left.exists() {
        return Ok(());
    }
    match store_sqlite::lock(&left) {
        Err(OpenError::InUse { .. }) => Ok(()),
        Err(error) => Err(error),
        Ok(_held) => std::fs::remove_dir_all(&left).map_err(|source| OpenError::Io { path: left, source }),
    }
}

/// The database as it shall be, checked, in a place of its own.
fn draft(backup: &Sound, at: &Path, known: &Known) -> anyhow::Result<(Draft, Replayed)> {
    let bytes = std::fs::metadata(backup.file())?.len();
    room_for(at.parent().unwrap_or(Path::new("/")), bytes)?;
    let mut draft = Draft::make(&backup.file(), at)?;
    let replayed = draft.replay(&known.redactions, &System)?;
    draft.renew_epoch(Epoch::mint(System.now(), System.bits()))?;
    draft.keep_backups(&known.backups)?;
    if let Some(record) = itself(backup, &known.backups)? {
        draft.keep_backups(&[record])?;
    }
    match draft.examine()?.first() {
        None => Ok((draft, replayed)),
        Some(first) => bail!("the restored database would not be sound: {first}"),
    }
}

fn into_postgres(
    backup: &Sound,
    url: &Url,
    more: &[RedactionRecord],
) -> anyhow::Result<(String, Replayed, Since)> {
    let nothing = || format!("nothing was restored to {url}");
    // Asked first: it refuses a database that is not empty.
    let target = PostgresLoad::open(url).with_context(nothing)?;
    let data_dir = default_data_dir(&process_env)?;
    let held = data_dir.join(POSTGRES_DRAFT);
    clear_left(&data_dir).with_context(nothing)?;
    make_private(&held)?;
    let _locked = store_sqlite::lock(&held).map_err(|error| match error {
        OpenError::InUse { holder, .. } => {
            let message = format!("nothing was restored: another restore is under way, by process {holder}");
            fail(Class::Conflict, message)
        }
        error => anyhow::Error::from(error).context(nothing()),
    })?;
    let known = Known { redactions: more.to_vec(), ..Known::default() };
    let replayed = in_draft(&held.join("draft"), |at| {
        let (draft, replayed) = draft(backup, at, &known).with_context(|| not_put_together(at))?;
        draft.seal()?;
        let mut source = SqliteDump::open(at)?;
        crate::copy::copy(&mut source, Box::new(target), &ProgressBar::hidden()).with_context(nothing)?;
        Ok(replayed)
    });
    let _ = std::fs::remove_dir_all(&held);
    Ok((url.to_string(), replayed?, Since::NoDatabase))
}
