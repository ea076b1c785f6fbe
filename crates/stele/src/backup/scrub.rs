//! Rewriting a backup without what was redacted since.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use stele_core::backup::{BackupRecord, RedactionRecord, Remembered};
use stele_core::clock::{Clock, Random};
use stele_core::storage::StorageError;
use store_sqlite::{Draft, FILE, Replayed};

use super::make::{Partial, host, remove_dead};
use super::manifest::{Manifest, Origin, Sound, verify};

/// Redactions read at once.
const PAGE: usize = 1_000;

/// All redactions that are remembered.
pub(crate) async fn redactions(remembered: &dyn Remembered) -> Result<Vec<RedactionRecord>, StorageError> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = remembered.redaction_list(after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(all) };
        after = Some(last.place());
        all.extend(page);
    }
}

/// Scrubs a backup of this machine and remembers what it then is.
pub(crate) async fn scrub<S: Clock + Random>(
    remembered: &dyn Remembered,
    record: &BackupRecord,
    system: &S,
) -> anyhow::Result<Replayed> {
    ensure!(record.host == host(), "it was written on {}: scrub it there", record.host);
    let place = Path::new(&record.path);
    remove_dead(place.parent().unwrap_or(Path::new("/")), remembered).await.with_context(|| {
        format!("{} is out of reach; if it is gone for good: stele backup forget", place.display())
    })?;
    let redactions = redactions(remembered).await?;
    let (now, replayed) = tokio::task::block_in_place(|| rewrite(record, &redactions, system))?;
    remembered.backup_keep(now).await?;
    Ok(replayed)
}

fn rewrite<S: Clock + Random>(
    record: &BackupRecord,
    redactions: &[RedactionRecord],
    system: &S,
) -> anyhow::Result<(BackupRecord, Replayed)> {
    let place = PathBuf::from(&record.path);
    let sound = verify(&place)?;
    ensure!(sound.manifest.backup_id == record.id.to_string(), "there is another backup in that place");
    let partial = Partial::at(sound.dir.clone())?;
    match rewrite_in(&partial, &sound, redactions, system) {
        Ok((manifest, replayed)) => {
            let now = manifest.record(record.host.clone(), &place)?;
            partial.exchange()?;
            Ok((now, replayed))
        }
        Err(error) => {
            partial.discard();
            Err(error)
        }
    }
}

fn rewrite_in<S: Clock + Random>(
    partial: &Partial,
    sound: &Sound,
    redactions: &[RedactionRecord],
    system: &S,
) -> anyhow::Result<(Manifest, Replayed)> {
    let dir = partial.dir.join("draft");
    let mut draft = Draft::make(&sound.file(), &dir)?;
    let replayed = draft.replay(redactions, system)?;
    if let Some(first) = draft.examine()?.first() {
        bail!("the rewritten backup is not sound: {first}");
    }
    fs::rename(draft.seal()?, partial.dir.join(FILE))?;
    fs::remove_dir_all(&dir)?;
    let origin = Origin { scrubbed_at: Some(system.now()), ..sound.manifest.origin()? };
    Ok((partial.complete(&origin)?, replayed))
}
