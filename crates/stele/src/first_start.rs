//! The first start on an empty database: organization, workspace, and an admin key in a file. DESIGN 6.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use stele_core::clock::{Clock, Random};
use stele_core::key::KeyHash;
use stele_core::service::FirstStart;
use stele_core::storage::{Installation, Storage};

/// What files are called that hold a key of which it is not yet known whether it is the one.
const DRAFT: &str = "admin-key.new.";

/// Where the admin key of the first start lies.
pub(crate) fn admin_key_file(data_dir: &Path) -> PathBuf {
    data_dir.join("admin-key")
}

/// The installation; made, with its admin key put away, where there is none yet. Of several servers that start on one
/// empty database one makes it, and only that one keeps a key.
pub(crate) async fn installation(
    storage: &dyn Storage,
    data_dir: &Path,
    clock: &dyn Clock,
    random: &dyn Random,
) -> anyhow::Result<Installation> {
    let path = admin_key_file(data_dir);
    let draft = draft_file(data_dir);
    if let Some(there) = storage.installation().await? {
        settle_drafts(storage, data_dir, &path).await?;
        return Ok(there);
    }
    let first = FirstStart::mint(clock, random);
    // The file first: a key that is stored but was never put away would lock everybody out. It gets its name once it
    // is known to be the key: servers that start together may share the directory.
    put_away(&draft, first.admin_key.secret.reveal())
        .with_context(|| format!("cannot write the admin key to {}", path.display()))?;
    let made = storage.install(first.organization, first.workspace, first.admin_key.record()).await?;
    if made.organization == first.organization {
        fs::rename(&draft, &path).with_context(|| format!("cannot write {}", path.display()))?;
        File::open(data_dir)?.sync_all()?;
    } else {
        fs::remove_file(&draft)?;
    }
    Ok(made)
}

/// Where a key is put away of which it is not yet known whether it is the one.
pub(crate) fn draft_file(data_dir: &Path) -> PathBuf {
    data_dir.join(format!("{DRAFT}{}", std::process::id()))
}

/// Looks after what a server left that ended between making the installation and naming its key file.
async fn settle_drafts(storage: &dyn Storage, data_dir: &Path, path: &Path) -> anyhow::Result<()> {
    for entry in fs::read_dir(data_dir)? {
        let draft = entry?.path();
        let is_draft = draft.file_name().is_some_and(|name| name.to_string_lossy().starts_with(DRAFT));
        // Another server that starts just now may take its draft away.
        let Some(secret) = is_draft.then(|| fs::read_to_string(&draft).ok()).flatten() else { continue };
        if !path.exists() && storage.key_by_hash(KeyHash::of(secret.trim())).await?.is_some() {
            fs::rename(&draft, path)?;
        }
    }
    Ok(())
}

/// Writes a secret so that only its owner can read it.
pub(crate) fn put_away(path: &Path, secret: &str) -> std::io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    writeln!(file, "{secret}")?;
    file.sync_all()?;
    File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
}
