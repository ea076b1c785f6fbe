//! The manifest of a backup, and whether what lies beside it is what it says.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};
use stele_core::backup::BackupRecord;
use stele_core::dump::Totals;
use stele_core::hash::Sha256;
use stele_core::id::BackupId;
use stele_core::time::Timestamp;
use store_sqlite::{FILE, Inspected};

use crate::failure::{Class, fail};

/// The manifest's name.
pub(crate) const MANIFEST: &str = "manifest.json";
/// What an unfinished backup's name ends with.
pub(crate) const PARTIAL: &str = ".partial";
/// The format that this program writes, and the newest one that it reads.
const FORMAT: u32 = 1;

/// What stands in the manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    format: u32,
    pub(crate) backup_id: String,
    /// It holds what was committed until then.
    pub(crate) made_at: String,
    /// When it was last rewritten without what was redacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) scrubbed_at: Option<String>,
    made_by: String,
    /// The back end that it was made of.
    pub(crate) backend: String,
    /// Migrations of the embedded database that its file has had.
    schema: u32,
    pub(crate) installation: String,
    /// The life that the database was in.
    epoch: String,
    pub(crate) holds: Holds,
    /// Redactions of versions up to `newest_version_at` that are carried out in it.
    redactions: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    newest_version_at: Option<String>,
    files: Vec<Listed>,
}

/// How much is in a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Holds {
    pub(crate) workspaces: u64,
    keys: u64,
    pub(crate) stores: u64,
    pub(crate) memories: u64,
    pub(crate) versions: u64,
    marks: u64,
    records: u64,
    entries: u64,
}

impl From<Totals> for Holds {
    fn from(totals: Totals) -> Self {
        let Totals { workspaces, keys, stores, memories, versions, marks, records, entries } = totals;
        Self { workspaces, keys, stores, memories, versions, marks, records, entries }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    name: String,
    bytes: u64,
    sha256: String,
}

/// What a manifest says beside what its database shows.
pub(crate) struct Origin {
    pub(crate) id: BackupId,
    pub(crate) made_at: Timestamp,
    pub(crate) scrubbed_at: Option<Timestamp>,
    pub(crate) backend: String,
}

fn time(text: &str) -> anyhow::Result<Timestamp> {
    Timestamp::parse(text).context("a time in the manifest is none")
}

impl Manifest {
    /// The manifest of the sealed database file in `dir`.
    pub(crate) fn of(dir: &Path, inspected: &Inspected, origin: &Origin) -> anyhow::Result<Self> {
        let file = dir.join(FILE);
        let present = inspected.present.context("the copy is of an older schema")?;
        Ok(Self {
            format: FORMAT,
            backup_id: origin.id.to_string(),
            made_at: origin.made_at.to_string(),
            scrubbed_at: origin.scrubbed_at.map(|at| at.to_string()),
            made_by: concat!("stele ", env!("CARGO_PKG_VERSION")).into(),
            backend: origin.backend.clone(),
            schema: inspected.schema,
            installation: inspected.organization.to_string(),
            epoch: present.epoch.to_string(),
            holds: present.totals.into(),
            redactions: present.redactions,
            newest_version_at: present.newest_at.map(|at| at.to_string()),
            files: vec![Listed {
                name: FILE.into(),
                bytes: fs::metadata(&file)?.len(),
                sha256: Sha256::of_all(File::open(&file)?)?.to_string(),
            }],
        })
    }

    /// Writes it into `dir`, durably.
    pub(crate) fn write(&self, dir: &Path) -> anyhow::Result<()> {
        let path = dir.join(MANIFEST);
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path)?;
        file.write_all((serde_json::to_string_pretty(self)? + "\n").as_bytes())?;
        file.sync_all()?;
        Ok(File::open(dir)?.sync_all()?)
    }

    /// What the installation remembers of it.
    pub(crate) fn record(&self, host: String, path: &Path) -> anyhow::Result<BackupRecord> {
        Ok(BackupRecord {
            id: BackupId::parse(&self.backup_id).context("the id in the manifest is none")?,
            host,
            path: path.to_str().context("the path of a backup must be UTF-8")?.to_owned(),
            made_at: time(&self.made_at)?,
            newest_at: self.newest_version_at.as_deref().map(time).transpose()?,
            redactions: self.redactions,
            versions: self.holds.versions,
            bytes: self.files.iter().map(|file| file.bytes).sum(),
        })
    }

    pub(crate) fn origin(&self) -> anyhow::Result<Origin> {
        Ok(Origin {
            id: BackupId::parse(&self.backup_id).context("the id in the manifest is none")?,
            made_at: time(&self.made_at)?,
            scrubbed_at: self.scrubbed_at.as_deref().map(time).transpose()?,
            backend: self.backend.clone(),
        })
    }
}

/// A backup that was read whole and found sound.
pub(crate) struct Sound {
    /// Its directory, absolute.
    pub(crate) dir: PathBuf,
    pub(crate) manifest: Manifest,
}

impl Sound {
    /// Its database file.
    pub(crate) fn file(&self) -> PathBuf {
        self.dir.join(FILE)
    }
}

/// Reads a backup whole: its manifest, hashes, and the structure, hashes, heads and counters of its database. `path`
/// may also name a file in it.
pub(crate) fn verify(path: &Path) -> anyhow::Result<Sound> {
    let shown = path.display();
    let dir = fs::canonicalize(path)
        .map_err(|error| unreadable(format!("there is no backup at {shown}"), path, error))?;
    let dir = if dir.is_dir() { dir } else { dir.parent().map(Path::to_owned).unwrap_or(dir) };
    if dir.to_string_lossy().ends_with(PARTIAL) {
        return Err(fail(Class::Refused, format!("{shown} is an unfinished backup")));
    }
    let manifest = read(&dir)?;
    let damaged = |what: String| fail(Class::Refused, format!("the backup {shown} is damaged: {what}"));
    let file = dir.join(FILE);
    if let Err(error) = File::open(&file)
        && error.kind() != ErrorKind::NotFound
    {
        return Err(anyhow::Error::from(error).context(format!("cannot read {}", file.display())));
    }
    compare_files(&dir, &manifest).map_err(|error| damaged(format!("{error:#}")))?;
    let inspected = store_sqlite::inspect(&dir.join(FILE))
        .map_err(|error| fail(Class::Refused, format!("the backup {shown} cannot be used: {error}")))?;
    if inspected.organization.to_string() != manifest.installation
        || inspected.present.is_some_and(|present| Holds::from(present.totals) != manifest.holds)
    {
        return Err(damaged(format!("{FILE} does not hold what {MANIFEST} says")));
    }
    let damage = store_sqlite::check_file(&dir.join(FILE)).map_err(|error| damaged(error.to_string()))?;
    match damage.first() {
        None => Ok(Sound { dir, manifest }),
        Some(first) if damage.len() == 1 => Err(damaged(first.to_string())),
        Some(first) => Err(damaged(format!("{first}, and {} more", damage.len() - 1))),
    }
}

/// What is not there is no backup; what is there and may not be read could be one.
fn unreadable(missing: String, path: &Path, error: std::io::Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => {
            fail(Class::NotFound, format!("{missing}: {error}"))
        }
        _ => anyhow::Error::from(error).context(format!("cannot read {}", path.display())),
    }
}

/// Reads the manifest in `dir`.
pub(crate) fn read(dir: &Path) -> anyhow::Result<Manifest> {
    let shown = dir.display();
    let path = dir.join(MANIFEST);
    let text = fs::read_to_string(&path).map_err(|error| {
        unreadable(format!("{shown} is no backup of Stele's: {MANIFEST} cannot be read"), &path, error)
    })?;
    let foreign = |what: &str| {
        fail(Class::Refused, format!("{shown} is no backup that this Stele knows: {MANIFEST} {what}"))
    };
    let value: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| foreign(&format!("is not JSON: {error}")))?;
    match value["format"].as_u64() {
        Some(format) if format > u64::from(FORMAT) => Err(foreign("was written by a newer one")),
        _ => serde_json::from_value(value).map_err(|error| foreign(&format!("is not a manifest: {error}"))),
    }
}

fn compare_files(dir: &Path, manifest: &Manifest) -> anyhow::Result<()> {
    let names: Vec<&str> = manifest.files.iter().map(|file| file.name.as_str()).collect();
    anyhow::ensure!(names == [FILE], "{MANIFEST} lists other files than {FILE}");
    for listed in &manifest.files {
        let path = dir.join(&listed.name);
        let file = File::open(&path).with_context(|| format!("{} cannot be read", listed.name))?;
        let bytes = file.metadata()?.len();
        anyhow::ensure!(
            bytes == listed.bytes,
            "{} has {bytes} bytes instead of {}",
            listed.name,
            listed.bytes
        );
        let sha256 = Sha256::of_all(file).with_context(|| format!("{} cannot be read", listed.name))?;
        anyhow::ensure!(
            sha256.to_string() == listed.sha256,
            "{} does not have the hash that {MANIFEST} gives",
            listed.name
        );
    }
    Ok(())
}
