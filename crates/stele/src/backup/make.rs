//! Making a backup: beside its place, checked there, and moved into it whole.

use std::fs::{self, DirBuilder, File};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use stele_core::backup::{BackupRecord, Remembered};
use stele_core::clock::Clock;
use stele_core::id::BackupId;
use stele_core::time::Timestamp;
use store_postgres::{PostgresDump, PostgresStorage, Url};
use store_sqlite::{FILE, LOCK_FILE, Locked, OpenError, SqliteLoad, SqliteStorage, lock};

use super::manifest::{Manifest, Origin, PARTIAL, read};

const PREFIX: &str = "stele-";
/// Bytes left free beside a backup.
const SPARE: u64 = 64 * 1024 * 1024;

/// What backups are made of.
#[derive(Clone)]
pub(crate) enum Source {
    /// The embedded database, with or without a server on it.
    Sqlite(Arc<SqliteStorage>, PathBuf),
    /// A PostgreSQL.
    Postgres(Arc<PostgresStorage>, Box<Url>),
}

impl Source {
    pub(crate) fn remembered(&self) -> Arc<dyn Remembered> {
        match self {
            Self::Sqlite(storage, _) => storage.clone(),
            Self::Postgres(storage, _) => storage.clone(),
        }
    }

    /// Whether a directory is the data directory of the database or lies in it: what befalls the one befalls both.
    pub(crate) fn has_within(&self, dir: &Path) -> bool {
        let Self::Sqlite(_, data_dir) = self else { return false };
        let canonical = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        canonical(dir).starts_with(canonical(data_dir))
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Sqlite(..) => "sqlite",
            Self::Postgres(..) => "postgres",
        }
    }

    /// Writes the database file into `partial`.
    async fn copy(&self, partial: &Path) -> anyhow::Result<()> {
        match self {
            Self::Sqlite(storage, _) => {
                room_for(partial, storage.bytes().await?)?;
                Ok(storage.copy_to(partial.join(FILE)).await?)
            }
            Self::Postgres(_, url) => {
                let (url, partial) = (url.clone(), partial.to_owned());
                tokio::task::spawn_blocking(move || rows(&url, &partial)).await?
            }
        }
    }
}

/// Refuses to fill the disk to the brim: it may be the one that the database lies on.
pub(crate) fn room_for(dir: &Path, bytes: u64) -> anyhow::Result<()> {
    let disk = rustix::fs::statvfs(dir)?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    ensure!(
        free >= bytes.saturating_add(SPARE),
        "there is no room in {}: {bytes} bytes are needed and {SPARE} more shall stay free, but only {free} are free on \
         that disk; make room there, or name a directory on another disk",
        dir.display()
    );
    Ok(())
}

/// Everything of a PostgreSQL as of one moment, as a database file.
fn rows(url: &Url, partial: &Path) -> anyhow::Result<()> {
    let load = partial.join("load");
    let mut dump = PostgresDump::open(url)?;
    let target = Box::new(SqliteLoad::open(&load)?);
    crate::copy::copy(&mut dump, target, &indicatif::ProgressBar::hidden())?;
    fs::rename(load.join(FILE), partial.join(FILE))?;
    Ok(fs::remove_dir_all(&load)?)
}

/// A directory in which a backup is put together; held, so that nobody takes it for one that was left behind.
pub(crate) struct Partial {
    pub(crate) dir: PathBuf,
    place: PathBuf,
    _locked: Locked,
}

impl Partial {
    /// For a new backup in `to`, named by the time.
    pub(crate) fn new(to: &Path, now: Timestamp) -> anyhow::Result<Self> {
        let time: String = now.to_string().chars().take(19).filter(|c| !matches!(c, '-' | ':')).collect();
        for number in 1..100 {
            let suffix = if number == 1 { String::new() } else { format!("-{number}") };
            let place = to.join(format!("{PREFIX}{time}Z{suffix}"));
            if !place.exists() {
                match Self::at(place) {
                    Err(error) if is_there(&error) => {}
                    made => return made,
                }
            }
        }
        bail!("{} has too many backups of this second", to.display())
    }

    /// For what shall stand at `place`.
    pub(crate) fn at(place: PathBuf) -> anyhow::Result<Self> {
        let mut dir = place.clone().into_os_string();
        dir.push(PARTIAL);
        let dir = PathBuf::from(dir);
        DirBuilder::new()
            .mode(0o700)
            .create(&dir)
            .with_context(|| format!("cannot make {}", dir.display()))?;
        let locked = lock(&dir)?;
        Ok(Self { dir, place, _locked: locked })
    }

    /// Where it shall stand.
    pub(crate) fn place(&self) -> &Path {
        &self.place
    }

    /// Seals, checks and describes the database file in it.
    pub(crate) fn complete(&self, origin: &Origin) -> anyhow::Result<Manifest> {
        let file = self.dir.join(FILE);
        store_sqlite::seal(&file)?;
        let inspected = store_sqlite::inspect(&file)?;
        if let Some(first) = store_sqlite::check_file(&file)?.first() {
            bail!("the copy is not sound, or the database is not: {first}");
        }
        let manifest = Manifest::of(&self.dir, &inspected, origin)?;
        manifest.write(&self.dir)?;
        Ok(manifest)
    }

    /// Moves it into its place, where nothing is yet.
    fn settle(self) -> anyhow::Result<PathBuf> {
        File::open(&self.dir)?.sync_all()?;
        ensure!(!self.place.exists(), "there is something at {} already", self.place.display());
        fs::rename(&self.dir, &self.place)?;
        sync_parent(&self.place)?;
        release(&self.place);
        Ok(self.place)
    }

    /// Changes places with what stands there, and removes that.
    pub(crate) fn exchange(self) -> anyhow::Result<()> {
        File::open(&self.dir)?.sync_all()?;
        rustix::fs::renameat_with(
            rustix::fs::CWD,
            &self.dir,
            rustix::fs::CWD,
            &self.place,
            rustix::fs::RenameFlags::EXCHANGE,
        )?;
        sync_parent(&self.place)?;
        release(&self.place);
        Ok(fs::remove_dir_all(&self.dir)?)
    }

    /// Removes it, as far as that goes: what stays goes with the next backup.
    pub(crate) fn discard(self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Removes the mark of who held a backup while it was put together; in a finished one it says nothing. Not before that:
/// another backup would take the unfinished one for dead.
fn release(place: &Path) {
    let _ = fs::remove_file(place.join(LOCK_FILE));
}

fn is_there(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == ErrorKind::AlreadyExists)
}

fn sync_parent(path: &Path) -> std::io::Result<()> {
    File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
}

/// What a backup left that was killed half way; held until it is removed.
struct Dead {
    dir: PathBuf,
    _held: Locked,
}

impl Dead {
    /// The backup that was remembered already and never got into its place. Where something stands in that place, the
    /// dead one was to change places with it, and that one is still remembered.
    fn unsettled(&self) -> Option<BackupId> {
        let place = PathBuf::from(self.dir.to_str()?.strip_suffix(PARTIAL)?);
        if place.exists() {
            return None;
        }
        Some(read(&self.dir).ok()?.origin().ok()?.id)
    }
}

fn find_dead(to: &Path) -> anyhow::Result<Vec<Dead>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(to).with_context(|| format!("cannot read {}", to.display()))? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !(name.starts_with(PREFIX) && name.ends_with(PARTIAL)) {
            continue;
        }
        let dir = entry.path();
        match lock(&dir) {
            Ok(held) => found.push(Dead { dir, _held: held }),
            Err(OpenError::InUse { .. }) => {}
            // Its backup got its name just now.
            Err(_) if !dir.exists() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(found)
}

/// Removes what backups left in `to` that were killed half way, and forgets those.
pub(crate) async fn remove_dead(to: &Path, remembered: &dyn Remembered) -> anyhow::Result<()> {
    for dead in tokio::task::block_in_place(|| find_dead(to))? {
        if let Some(id) = dead.unsettled() {
            remembered.backup_forget(id).await?;
        }
        fs::remove_dir_all(&dead.dir)?;
    }
    Ok(())
}

/// The name of this machine.
pub(crate) fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Makes a backup and remembers it.
pub(crate) async fn make(
    source: &Source,
    partial: Partial,
    id: BackupId,
    clock: &dyn Clock,
) -> anyhow::Result<(BackupRecord, Manifest)> {
    match make_in(source, &partial, id, clock).await {
        Ok((record, manifest)) => {
            // Remembered first: a backup that nobody knows of would never be scrubbed.
            source.remembered().backup_keep(record.clone()).await?;
            if let Err(error) = partial.settle() {
                source.remembered().backup_forget(id).await?;
                return Err(error);
            }
            Ok((record, manifest))
        }
        Err(error) => {
            partial.discard();
            Err(error)
        }
    }
}

async fn make_in(
    source: &Source,
    partial: &Partial,
    id: BackupId,
    clock: &dyn Clock,
) -> anyhow::Result<(BackupRecord, Manifest)> {
    source.copy(&partial.dir).await.context("the database could not be copied")?;
    let origin = Origin { id, made_at: clock.now(), scrubbed_at: None, backend: source.name().into() };
    let manifest = tokio::task::block_in_place(|| partial.complete(&origin))?;
    Ok((manifest.record(host(), partial.place())?, manifest))
}
