//! The first start on an empty database: organization, workspace, and an admin key in a file. DESIGN 6.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use stele_core::clock::{Clock, Random};
use stele_core::service::FirstStart;
use stele_core::storage::{Installation, Storage};

/// Where the admin key of the first start lies.
pub(crate) fn admin_key_file(data_dir: &Path) -> PathBuf {
    data_dir.join("admin-key")
}

/// The installation; made, with its admin key put away, where there is none yet.
pub(crate) async fn installation(
    storage: &dyn Storage,
    data_dir: &Path,
    clock: &dyn Clock,
    random: &dyn Random,
) -> anyhow::Result<Installation> {
    if let Some(there) = storage.installation().await? {
        return Ok(there);
    }
    let first = FirstStart::mint(clock, random);
    // The file first: a key that is stored but was never put away would lock everybody out.
    let path = admin_key_file(data_dir);
    put_away(&path, first.admin_key.secret.reveal())
        .with_context(|| format!("cannot write the admin key to {}", path.display()))?;
    Ok(storage.install(first.organization, first.workspace, first.admin_key.record()).await?)
}

/// Writes a secret so that only its owner can read it, whole or not at all.
fn put_away(path: &Path, secret: &str) -> std::io::Result<()> {
    let draft = path.with_extension("new");
    match std::fs::remove_file(&draft) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    writeln!(file, "{secret}")?;
    file.sync_all()?;
    std::fs::rename(&draft, path)?;
    File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
}
